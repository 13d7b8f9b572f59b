"""Decide what strong looks at a place of the destination say about it. Pure."""

from collections.abc import Hashable, Sequence
from dataclasses import dataclass
from typing import Literal

from keyhop.dynamodb.values import Item, Key
from keyhop.rekey.digest import item_digest, key_digest
from keyhop.rekey.transform import Transform, Unmappable

Finding = Literal["equal", "missing", "surplus", "changed", "contended"]
"""missing: something should be there, and nothing is. surplus: nothing should be there. changed:
other attributes than should be. contended: several source items want it; one of them has it."""

DIFFERENCES: tuple[Finding, ...] = ("missing", "surplus", "changed", "contended")

Verdict = Literal["in flight", "difference", "changing"]
"""in flight: the place was equal at the last look. difference: it differed at the last two looks,
and nothing had changed between them. changing: it differed at the last look, and had changed."""


@dataclass(frozen=True, slots=True)
class Look:
    """What one strong look found at a place, and which items the source wants there.

    A source item that lies elsewhere is not part of it, however often it changes.

    Attributes:
        there: Stands for the item at the place, and is equal for equal items; None for no item.
        wanted: Stands, in the same way, for each destination item that a source item wants there.
        is_foreign: Whether no source key can be told from the item at the place.
    """

    there: Hashable
    wanted: tuple[Hashable, ...]
    is_foreign: bool = False

    @property
    def finding(self) -> Finding:
        """How the place compares with what the source wants there."""
        if not self.wanted:
            return "equal" if self.there is None else "surplus"
        if self.there is None:
            return "missing"
        if self.there not in self.wanted:
            return "changed"
        return "equal" if len(self.wanted) == 1 else "contended"


def verdict(before: Look, last: Look) -> Verdict:
    """Decide what becomes of a place that differed at the look before the last.

    Everything but "in flight" has to be settled: that the place has changed does not show that the
    stream's worker will ever write it. A foreign surplus is a difference even if it has changed, as
    no repair can settle it.
    """
    if last.finding == "equal":
        return "in flight"
    if last == before or (last.finding == "surplus" and last.is_foreign):
        return "difference"
    return "changing"


def look_at(transform: Transform, place: Key, there: Item | None, sources: Sequence[Item]) -> Look:
    """Return the look at a place, from the items that were read.

    Args:
        transform: Maps source items to their destination items.
        place: The primary key in the destination.
        there: The item at `place`; None for no item.
        sources: The source items of all owners that may want the place.
    """
    wanted = [item for source in sources if (item := item_at(transform, place, source)) is not None]
    return Look(
        None if there is None else item_digest(there),
        tuple(sorted(map(item_digest, wanted))),
        there is not None and transform.owner_of(there) is None,
    )


def item_at(transform: Transform, place: Key, source: Item) -> Item | None:
    """Return the destination item of a source item if it belongs at `place`, else None."""
    try:
        item = transform.forward(source)
    except Unmappable:
        return None
    if item is None or key_digest(transform.destination.of(item)) != key_digest(place):
        return None
    return item
