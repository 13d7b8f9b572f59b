"""What a strong look at a place and at all who may want it comes to. Pure."""

from collections.abc import Sequence
from typing import Literal

from keyhop.dynamodb.items import Item, same_item
from keyhop.dynamodb.values import Key
from keyhop.rekey.digest import key_digest
from keyhop.rekey.transform import Transform, Unmappable

Finding = Literal["equal", "missing", "surplus", "changed", "contended"]
"""missing: something should be there, and nothing is. surplus: nothing should be there. changed:
other attributes than should be. contended: several source items want it; one of them has it."""

DIFFERENCES: tuple[Finding, ...] = ("missing", "surplus", "changed", "contended")


def judged(
    transform: Transform, place: Key, there: Item | None, sources: Sequence[Item]
) -> Finding:
    """there: what is at `place`. sources: the items of all owners that may want it, as they are."""
    wanted = [item for source in sources if (item := _at(transform, place, source)) is not None]
    if not wanted:
        return "equal" if there is None else "surplus"
    if there is None:
        return "missing"
    if not any(same_item(there, item) for item in wanted):
        return "changed"
    return "equal" if len(wanted) == 1 else "contended"


def _at(transform: Transform, place: Key, source: Item) -> Item | None:
    """The destination item of a source item, if it belongs there."""
    try:
        item = transform.forward(source)
    except Unmappable:
        return None
    if item is None or key_digest(transform.destination.of(item)) != key_digest(place):
        return None
    return item
