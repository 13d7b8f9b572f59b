"""The table from which a sample was drawn. Pure."""

from collections.abc import Mapping
from dataclasses import dataclass, field


@dataclass(frozen=True, slots=True)
class Population:
    """The table from which a sample was drawn, as DescribeTable reports it.

    Attributes:
        segments: The number of segments into which the table was divided.
        items: The number of items of the table; 0 if it is not known. It is up to six hours old.
        bytes: The size of all items; 0 if it is not known. It is as old.
        has_sort: Whether a collection can have more than one item.
        ttl: The TTL attribute, if there is one.
        indexes: The number of entries of each GSI; 0 if it is not known.
        candidates: The templates of keys that the items might have.
        has_sentinels: Whether each collection has an item of Keyhop, which `items` counts and the
            sample leaves out.
        all_units: The read units with which a sample reads every item; 0 if that is not known.
    """

    segments: int
    items: int
    has_sort: bool = True
    ttl: str | None = None
    indexes: Mapping[str, int] = field(default_factory=dict)
    candidates: tuple[str, ...] = ()
    bytes: float = 0.0
    has_sentinels: bool = False
    all_units: float = 0.0

    @property
    def mean_bytes(self) -> float:
        """Return the mean size of an item; 0 if it is not known."""
        return self.bytes / self.items if self.items else 0.0
