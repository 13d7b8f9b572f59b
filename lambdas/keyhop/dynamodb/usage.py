"""What reading has come to. Pure."""

from collections import Counter
from dataclasses import dataclass, field
from typing import Any


@dataclass(slots=True)
class Tally:
    """What reading has come to. Requests are those that were answered with a page.

    index: what a walk for the key index has found and done, by name (key_index/walk.py).
    """

    requests: int = 0
    items: int = 0
    units: float = 0.0
    no_progress: int = 0
    retries: int = 0
    throttles: Counter[str] = field(default_factory=Counter)
    index: Counter[str] = field(default_factory=Counter)

    def add(self, other: "Tally") -> None:
        """Add another tally to this one."""
        self.requests += other.requests
        self.items += other.items
        self.units += other.units
        self.no_progress += other.no_progress
        self.retries += other.retries
        self.throttles.update(other.throttles)
        self.index.update(other.index)

    def __sub__(self, before: "Tally") -> "Tally":
        """What was read since `before`, an earlier state of the same tally."""
        return Tally(
            requests=self.requests - before.requests,
            items=self.items - before.items,
            units=self.units - before.units,
            no_progress=self.no_progress - before.no_progress,
            retries=self.retries - before.retries,
            throttles=self.throttles - before.throttles,
            index=self.index - before.index,
        )

    def to_json(self) -> dict[str, Any]:
        """As plain JSON, under the names that manifests and reports use."""
        return {
            "requests": self.requests,
            "items_read": self.items,
            "read_units": round(self.units, 3),
            "no_progress_hops": self.no_progress,
            "retries": self.retries,
            "throttles": dict(sorted(self.throttles.items())),
            **({"index_walk": dict(sorted(self.index.items()))} if self.index else {}),
        }

    @classmethod
    def from_json(cls, state: dict[str, Any]) -> "Tally":
        """The inverse of `to_json`."""
        return cls(
            requests=state["requests"],
            items=state["items_read"],
            units=state["read_units"],
            no_progress=state["no_progress_hops"],
            retries=state["retries"],
            throttles=Counter(state["throttles"]),
            index=Counter(state.get("index_walk", {})),
        )
