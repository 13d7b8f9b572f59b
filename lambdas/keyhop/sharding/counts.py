"""What the calls of a sharded table have come to."""

from collections import Counter
from dataclasses import dataclass, field
from threading import Lock
from typing import Any


@dataclass(slots=True)
class Counts:
    """Requests, units and throttles by the service's reasons; for any number of threads.

    It holds no keys. tally: names are those of `NAMES`.
    """

    tally: Counter[str] = field(default_factory=Counter)
    throttles: Counter[str] = field(default_factory=Counter)
    read_units: float = 0.0
    write_units: float = 0.0
    _lock: Lock = field(default_factory=Lock)

    def add(self, name: str, times: int = 1) -> None:
        """Count something, by its name."""
        with self._lock:
            self.tally[name] += times

    def spent(self, reads: float = 0.0, writes: float = 0.0) -> None:
        """Count units."""
        with self._lock:
            self.read_units += reads
            self.write_units += writes

    def throttled(self, reasons: tuple[str, ...]) -> None:
        """Count a throttle, under each of its reasons."""
        with self._lock:
            self.throttles.update(reasons)

    def take(self) -> "Counts":
        """What has come together since the last `take`."""
        with self._lock:
            taken = Counts(self.tally, self.throttles, self.read_units, self.write_units)
            self.tally, self.throttles = Counter(), Counter()
            self.read_units = self.write_units = 0.0
        return taken

    def to_json(self) -> dict[str, Any]:
        """As plain JSON."""
        return {
            **{name: self.tally[name] for name in NAMES},
            "read_units": round(self.read_units, 3),
            "write_units": round(self.write_units, 3),
            "throttles": dict(sorted(self.throttles.items())),
        }


REQUESTS = "requests"
"""Of all kinds, those of the metadata among them."""
RETRIES = "retries"
METADATA_READS = "metadata_reads"
LOOKS = "looks"
"""Looks for an item in the shards where it may be, before a write."""
MOVES = "moves"
"""Items moved from one shard to another."""
HOT_THROTTLES = "hot_throttles"
"""Throttles of a hot key range of the table."""
SHARDS_ADDED = "shards_added"
SHARDS_REMOVED = "shards_removed"
RACES_LOST = "races_lost"
AT_MAXIMUM = "at_maximum"
"""Times that a hot key had the most shards allowed."""
PROBES = "probes"
NAMES = (
    *(REQUESTS, RETRIES, METADATA_READS, LOOKS, MOVES, HOT_THROTTLES, SHARDS_ADDED),
    *(SHARDS_REMOVED, RACES_LOST, AT_MAXIMUM, PROBES),
)
