"""Where the keys that a stream tells of lie in the order of hashes, by what Scans refuse."""

from collections.abc import Mapping
from dataclasses import KW_ONLY, dataclass, field
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
"""As the key map has 256 places."""
UNITS = 400.0
"""Read units: half a unit for each bit that is not refused, so some 200 keys of small items."""
PATIENCE_SECONDS = 5.0


@dataclass(slots=True)
class Places:
    """Finds the place of a key, in [0, 1); None once the budget is spent or the table refuses.

    usage: gets what it costs. max_read_rate: read units a second.
    """

    connection: Connection
    table: Table
    _: KW_ONLY
    units: float = UNITS
    max_read_rate: float | None = None
    usage: Usage = field(default_factory=Usage)
    _found: dict[Any, float] = field(default_factory=dict)
    _asker: Asker | None = None
    _over: bool = False

    def __call__(self, key: Key) -> float | None:
        """Of a partition key, that need not be there any more."""
        at = tuple(map(canonical, key.values()))
        if at not in self._found and not self._over:
            try:
                self._found[at] = self._reader().run(place(self.table.space, key, BITS))
            except KeyhopError:
                self._over = True
        return self._found.get(at)

    def _reader(self) -> Asker:
        if self._asker is None:
            source = self.table.source()
            reader = PageReader(
                self.connection,
                source,
                Budget(self.max_read_rate, self.units),
                patience=PATIENCE_SECONDS,
                usage=self.usage,
            )
            mean = source.mean_item_bytes
            self._asker = Asker(reader, {} if mean is None else {"": mean})
        return self._asker
