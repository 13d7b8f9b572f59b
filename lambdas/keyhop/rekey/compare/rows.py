"""The rows that a verification keeps of items, the comparison of a bucket's two sides, and what
strong looks at a place of the destination say about it. Pure.

A row of the source says which item should be at a place of the destination and who owns it; a row
of the destination says which item is there.
"""

import json
from collections.abc import Hashable, Iterable, Sequence
from dataclasses import dataclass
from typing import Literal

from keyhop.dynamodb.values import Item, Key, from_json
from keyhop.jobs.formats import BUCKET
from keyhop.rekey.transform import Transform, item_digest, key_digest, key_text
from keyhop.template import Unmappable

ROWS_PER_BUCKET = 1_000_000
"""The approximate number of rows of both sides. During the comparison, the rows of one side are in
memory: for 500,000 of each side, 74 MB and 17 s of CPU were measured (2026-11-23). That is less
than a slice, which is the cost of being killed.
"""

_HASH, _DIGEST, _PLACE, _OWNER = "hash", "digest", "place", "owner"


def buckets_for(items: float) -> int:
    """Return the number of buckets for so many rows."""
    return max(1, round(items / ROWS_PER_BUCKET))


def row_of(item: Item, place: Key, owner: Key | None, buckets: int) -> Key:
    """Return the row of an item as it is, or should be, in the destination. `owner` is the source
    key for a row of the source, and None for one of the destination.
    """
    hashed = key_digest(place)
    bucket = int.from_bytes(hashed[:8], "big") % buckets
    return {
        BUCKET: {"N": str(bucket)},
        _HASH: {"S": hashed.hex()},
        _DIGEST: {"S": item_digest(item).hex()},
        _PLACE: {"S": key_text(place)},
        **({} if owner is None else {_OWNER: {"S": key_text(owner)}}),
    }


Finding = Literal["equal", "missing", "surplus", "changed", "contended"]
"""The findings at a place. `missing`: there should be an item, but there is none. `surplus`:
there should be none. `changed`: the item has other attributes than it should have.
`contended`: several source items map to the place, and one of them has it.
"""

DIFFERENCES: tuple[Finding, ...] = ("missing", "surplus", "changed", "contended")

UNSETTLED: Literal["unsettled"] = "unsettled"
"""Not a finding of one look: the place was changing, and was not settled."""

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

    current: Hashable
    expected: tuple[Hashable, ...]
    is_foreign: bool = False

    @property
    def finding(self) -> Finding:
        """Return how the place compares with the items that the source wants to have there."""
        if not self.expected:
            return "equal" if self.current is None else "surplus"
        if self.current is None:
            return "missing"
        if self.current not in self.expected:
            return "changed"
        return "equal" if len(self.expected) == 1 else "contended"


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


@dataclass(slots=True)
class Candidate:
    """A place where the two sides seem to differ, and the owners that seem to want it.

    Attributes:
        look: The last look at the place.
        was_equal_at_once: Whether it was equal at the first look.
        is_changing: Whether it had changed between the last two looks.
        is_bypassed: Whether it has an unsettled straggler, and was not repaired.
    """

    place: Key
    owners: list[Key]
    look: Look = Look(None, ())
    was_equal_at_once: bool = False
    is_changing: bool = False
    is_repaired: bool = False
    is_bypassed: bool = False

    @property
    def finding(self) -> Finding | Literal["unsettled"]:
        """Return the name under which it is counted."""
        return UNSETTLED if self.is_changing else self.look.finding

    def add(self, owner: Key) -> None:
        """Add an owner once, in whatever form its numbers are."""
        if owner not in self.owners and key_text(owner) not in map(key_text, self.owners):
            self.owners.append(owner)


class Unmatched:
    """The places of a bucket that do not have exactly one row of each side with the same digest.
    They are complete once all rows are taken, and are in the order of their first rows.
    """

    def __init__(self) -> None:
        self.places: list[bytes] = []
        self._once: dict[bytes, bytes] = {}
        self._odd: dict[bytes, None] = {}

    def take(self, rows: Iterable[Key]) -> int:
        """Take some more rows, and return how many."""
        count, once = 0, self._once
        for row in rows:
            count += 1
            place, digest = bytes.fromhex(row[_HASH]["S"]), bytes.fromhex(row[_DIGEST]["S"])
            if place in self._odd:
                continue
            side, theirs = (b"s", b"d") if _OWNER in row else (b"d", b"s")
            previous = once.pop(place, None)
            if previous is None:
                once[place] = side + digest
            elif previous != theirs + digest:
                self._odd[place] = None
        return count

    def end(self) -> None:
        """Finish the places, when there are no more rows."""
        self.places = [*self._odd, *self._once]
        self._once, self._odd = {}, {}

    def candidates(self, rows: Iterable[Key], first: int, maximum: int) -> list[Candidate]:
        """Return the candidates of so many places, from the same rows, which are read again."""
        numbers = {
            place: number for number, place in enumerate(self.places[first : first + maximum])
        }
        candidates: list[Candidate | None] = [None] * len(numbers)
        for row in rows:
            number = numbers.get(bytes.fromhex(row[_HASH]["S"]))
            if number is None:
                continue
            candidate = candidates[number] = candidates[number] or Candidate(
                _key(row[_PLACE]["S"]), []
            )
            if _OWNER in row:
                candidate.add(_key(row[_OWNER]["S"]))
        return [candidate for candidate in candidates if candidate is not None]


def _key(text: str) -> Key:
    return from_json(json.loads(text))
