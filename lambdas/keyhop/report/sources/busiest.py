"""The keys that a stream has most records of, as keys: to be looked at again in the table. Pure.

They are held in memory alone, by whoever reads the stream and then the table.
"""

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from keyhop.dynamodb.values import Key

MOST_HELD = 10_000
"""When so many are held, those that are rare go: what is frequent comes again."""
MOST = 5


@dataclass(slots=True)
class Busiest:
    """partition: the name of the partition key's attribute."""

    partition: str
    _counts: Counter[tuple[str, Any]] = field(default_factory=Counter)

    def take(self, record: Mapping[str, Any]) -> None:
        """One record of the stream."""
        ((type_, value),) = record["dynamodb"]["Keys"][self.partition].items()
        self._counts[type_, value] += 1
        if len(self._counts) > MOST_HELD:
            self._counts = Counter(dict(self._counts.most_common(MOST_HELD // 2)))

    def keys(self) -> list[Key]:
        """The busiest first, of those that have more than one record."""
        return [
            {self.partition: {type_: value}}
            for (type_, value), count in self._counts.most_common(MOST)
            if count > 1
        ]
