"""Decide what strong looks at a place of the destination say about it. Pure."""

from collections.abc import Hashable, Sequence
from dataclasses import dataclass
from typing import Literal

from keyhop.dynamodb.values import Item, Key
from keyhop.rekey.digest import item_digest, key_digest
from keyhop.rekey.transform import Transform
from keyhop.template import Unmappable

Finding = Literal["equal", "missing", "surplus", "changed", "contended"]
"""The findings at a place. `missing`: there should be an item, but there is none. `surplus`:
there should be none. `changed`: the item has other attributes than it should have.
`contended`: several source items map to the place, and one of them has it.
"""

DIFFERENCES: tuple[Finding, ...] = ("missing", "surplus", "changed", "contended")

Verdict = Literal["in flight", "difference", "changing"]
"""The verdicts on a place. `in flight`: it was equal at the last look. `difference`: it differed at
the last two looks, without a change between them. `changing`: it differed, and had changed.
"""


@dataclass(frozen=True, slots=True)
class Look:
    """The result of one strong look at a place, and the items that the source wants to have there,
    as values that are equal for equal items. A source item that maps to another place is not part
    of it, however often it changes. A foreign item does not identify a source key.
    """

    there: Hashable
    wanted: tuple[Hashable, ...]
    is_foreign: bool = False

    @property
    def finding(self) -> Finding:
        """Return how the place compares with the items that the source wants to have there."""
        if not self.wanted:
            return "equal" if self.there is None else "surplus"
        if self.there is None:
            return "missing"
        if self.there not in self.wanted:
            return "changed"
        return "equal" if len(self.wanted) == 1 else "contended"


def verdict(before: Look, last: Look) -> Verdict:
    """Decide what happens to a place that differed at the look before the last.

    Everything but "in flight" must be settled: a change of the place does not show that the
    stream's worker will ever write it. No repair can settle a foreign surplus, so it is always a
    difference.
    """
    if last.finding == "equal":
        return "in flight"
    if last == before or (last.finding == "surplus" and last.is_foreign):
        return "difference"
    return "changing"


def look_at(
    transform: Transform, place: Key, current: Item | None, sources: Sequence[Item]
) -> Look:
    """Return the look at a place from its item, and the source items of all possible owners."""
    expected = [
        item for source in sources if (item := item_at(transform, place, source)) is not None
    ]
    return Look(
        None if current is None else item_digest(current),
        tuple(sorted(map(item_digest, expected))),
        current is not None and transform.owner_of(current) is None,
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
