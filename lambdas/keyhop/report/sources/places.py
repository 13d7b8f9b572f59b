"""The hash places of the keys in a stream, found by the start keys that Scans refuse."""

from collections.abc import Mapping
from typing import Any

from keyhop.dynamodb.client import Connection
from keyhop.dynamodb.rate_limit import Budget
from keyhop.dynamodb.tables import Table
from keyhop.dynamodb.usage import Usage
from keyhop.dynamodb.values import Key, canonical
from keyhop.errors import KeyhopError
from keyhop.report.sample.examine import place
from keyhop.report.sample.reading import Asker
from keyhop.report.sources.absence import TABLE_ARN
from keyhop.scan.reader import PageReader

ACTIONS: Mapping[str, tuple[str, ...]] = {"dynamodb:Scan": (TABLE_ARN,)}
BITS = 8
"""The key map has 256 places."""
UNITS = 400.0
"""The read units for about 200 keys of small items: each bit that is not refused costs half one."""
PATIENCE_SECONDS = 5.0


class Places:
    """Finds the hash place of a key, in [0, 1).

    Args:
        connection: The connection to DynamoDB.
        table: The table.
        units: The maximum read units.
        max_read_rate: The maximum read units a second.

    Attributes:
        usage: The use of capacity.
    """

    def __init__(
        self,
        connection: Connection,
        table: Table,
        *,
        units: float = UNITS,
        max_read_rate: float | None = None,
    ) -> None:
        self.usage = Usage()
        source = table.source()
        budget = Budget(max_read_rate, units)
        reader = PageReader(connection, source, budget, patience=PATIENCE_SECONDS, usage=self.usage)
        mean = source.mean_item_bytes
        self._asker = Asker(reader, {} if mean is None else {"": mean})
        self._space = table.space
        self._places: dict[Any, float] = {}
        self._has_ended = False

    def __call__(self, key: Key) -> float | None:
        """Return the place of a partition key, which need not exist any more.

        The result is None once the budget is spent or the table refuses a request.
        """
        name = tuple(map(canonical, key.values()))
        if name not in self._places and not self._has_ended:
            try:
                self._places[name] = self._asker.run(place(self._space, key, BITS))
            except KeyhopError:
                self._has_ended = True
        return self._places.get(name)
