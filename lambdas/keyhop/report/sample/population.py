"""What is known of a table from which a sample was drawn. Pure."""

from collections.abc import Mapping
from dataclasses import dataclass, field


@dataclass(frozen=True, slots=True)
class Population:
    """What is known of what was sampled. segments: into which the table was divided. items: as the
    table reports them, and indexes: as each GSI does; 0 if not known. has_sort: whether a
    collection can have more than one item. ttl: whether there is a TTL attribute.
    candidates: templates of keys that the items might have.
    """

    segments: int
    items: int
    has_sort: bool = True
    ttl: str | None = None
    indexes: Mapping[str, int] = field(default_factory=dict)
    candidates: tuple[str, ...] = ()
