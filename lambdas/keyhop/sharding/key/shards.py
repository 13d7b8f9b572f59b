"""The shard metadata of one logical key, as a value, and its changes. Pure.

docs/internals/sharding-protocol.md describes the attributes. An item with only the published ones,
`number_of_shards`, `last_updated` and `shard_history`, is steady, and `number_of_shards` applies to
all counts. Each change increases `last_updated`, on condition that it is as it was read.
"""

import math
from collections.abc import Mapping
from dataclasses import dataclass, replace
from enum import StrEnum
from typing import Any

from keyhop.dynamodb.values import TypedValue
from keyhop.errors import BrokenPromise
from keyhop.sharding.key.placement import Placement

ATTRIBUTES = {
    **dict.fromkeys(("number_of_shards", "last_updated", "writable", "readable"), "N"),
    **dict.fromkeys(("settle_seconds", "shards_before", "shards_added"), "N"),
    **dict.fromkeys(("phase", "placement", "of_table"), "S"),
    **{"shard_history": "SS", "placed_by": "NS", "called_off": "BOOL", "traffic": "M"},
    "pressure": "M",
    **{"claimed_shard": "N", "claimed_by": "S", "keyhop_expires": "N"},
}
"""The attributes of metadata items and their types; a partition key must have another name."""
MOST_SHARDS = 1000
"""The maximum number of shards of a key, so that a suffix has at most four digits."""
HISTORY = 20
"""The maximum number of entries in shard_history."""
SETTLE_SECONDS = 5.0
"""The default time between two steps of a change."""
LEAST_SETTLE_SECONDS = 2.0


class Phase(StrEnum):
    """The phases of a change of the shard count; protocol.py defines what each allows."""

    STEADY = "steady"
    ANNOUNCED = "announced"
    OPENED = "opened"
    CLOSING = "closing"
    FENCED = "fenced"
    MOVING = "moving"
    MOVED = "moved"
    HALTED = "halted"
    REOPENING = "reopening"


DRAINING = frozenset({Phase.CLOSING, Phase.FENCED, Phase.MOVING, Phase.MOVED})
"""The phases of a drain."""
GROWING_FROM = frozenset({Phase.STEADY, Phase.OPENED, Phase.REOPENING})
"""The phases in which growth may start; `opened` uses the same count as `steady`."""
PASSING = frozenset({Phase.ANNOUNCED, Phase.OPENED, Phase.HALTED, Phase.REOPENING})
"""The phases that end after a time: any client that has seen one for long enough ends it."""

_FOLLOWING = {
    Phase.ANNOUNCED: Phase.OPENED,
    Phase.OPENED: Phase.STEADY,
    Phase.CLOSING: Phase.FENCED,
    Phase.FENCED: Phase.MOVING,
    Phase.MOVING: Phase.MOVED,
    Phase.MOVED: Phase.STEADY,
    Phase.HALTED: Phase.REOPENING,
}


@dataclass(frozen=True, slots=True)
class Shards:
    """The metadata of one logical key (sharding-protocol.md), and its history as epoch seconds
    and counts, oldest first. It must be unchanged for `settle` seconds before the next change.

    New items are put in shards 1 to `writable`. Readers read 1 to `readable`; other shards are
    empty. `placed_by` are the counts by which items may have been placed, and `placement` is what
    all users must have in common, as "calculated jump _". `before` is the previous count. A drain
    that was called off must be cancelled as soon as possible.
    """

    number: int
    last_updated: int
    history: tuple[tuple[int, int], ...] = ()
    writable: int = 0
    readable: int = 0
    phase: Phase = Phase.STEADY
    placed_by: frozenset[int] = frozenset()
    settle: float = SETTLE_SECONDS
    placement: str | None = None
    before: int = 1
    table: str | None = None
    called_off: bool = False

    @classmethod
    def registered(
        cls,
        now: float,
        settle: float,
        placement: str | None,
        number: int = 1,
        table: str | None = None,
    ) -> "Shards":
        """Return the metadata of a new key."""
        at = math.ceil(now)
        return cls(
            number,
            at,
            history=((at, number),),
            writable=number,
            readable=number,
            placed_by=frozenset({number}),
            settle=settle,
            placement=placement,
            before=number,
            table=table,
        )

    @property
    def is_new(self) -> bool:
        """Whether the key has one shard, and never had another count."""
        return (
            self.phase is Phase.STEADY
            and self.number == self.readable == 1
            and len(self.history) <= 1
            and self.placed_by <= {1}
        )

    @property
    def counted_at(self) -> int:
        """The time of the latest change of the count; no other change of a key has the same."""
        return self.history[-1][0] if self.history else self.last_updated

    def recovered(self, number: int, now: float) -> "Shards":
        """Return the metadata of a key with items up to shard `number`, which its metadata lacks.

        The counts by which they were placed are unknown. With jump hashing any count up to `number`
        may have been used, because a greater one leads to the same shards. With modulo an item may
        be in any shard, as for a key without a placement. The phase must allow growth.
        """
        assert self.phase in GROWING_FROM
        is_by_modulo = " calculated modulo " in f" {self.placement}"
        return replace(
            self.grown(number, now),
            placed_by=self.placed_by | frozenset(range(1, number + 1)),
            placement=None if is_by_modulo else self.placement,
        )

    def has_forgotten(self, earlier: "Shards") -> bool:
        """Return whether this has fewer shards, but is not a later state: the metadata was restored
        or registered again. A history that is not full starts with the registration.
        """
        if self.readable >= earlier.readable:
            return False
        begins = [state.history[:1] for state in (self, earlier) if len(state.history) < HISTORY]
        is_another = len(begins) == 2 and all(begins) and begins[0] != begins[1]
        return is_another or self.last_updated < earlier.last_updated

    def grown(self, number: int, now: float) -> "Shards":
        """Add shards, which readers read from now on, while writers do not use them yet."""
        assert self.phase in GROWING_FROM
        assert self.number < number <= MOST_SHARDS
        assert self.readable <= number
        return self._counted(number, now, Phase.ANNOUNCED, readable=number)

    def shrunk(self, number: int, now: float) -> "Shards":
        """Start a drain: no items are moved yet, and writers still use all shards."""
        assert self.phase is Phase.STEADY
        assert 1 <= number < self.number
        return self._counted(number, now, Phase.CLOSING)

    def reopened(self, now: float) -> "Shards":
        """Cancel a drain; no items need to be moved back."""
        assert self.phase in DRAINING
        if self.phase is Phase.CLOSING:  # writers still use all shards
            return self._counted(self.writable, now, Phase.STEADY, called_off=False)
        later = Phase.HALTED if self.phase is Phase.MOVING else Phase.REOPENING
        return self._changed(now, later, called_off=False)

    def to_be_called_off(self, now: float) -> "Shards":
        """Mark a drain, so that the process that takes its next step cancels it instead."""
        assert self.phase in DRAINING
        return self._changed(now, self.phase, called_off=True)

    def advanced(self, now: float) -> "Shards":
        """Take the next step of a change; a drain's next step requires that its work is done."""
        if self.phase is Phase.REOPENING:
            return self.grown(self.readable, now)
        if self.phase not in _FOLLOWING:
            raise ValueError(f"no phase follows {self.phase} automatically")
        more: dict[str, Any] = {}
        if self.phase in (Phase.ANNOUNCED, Phase.CLOSING):
            more = {"writable": self.number}
        if self.phase is Phase.MOVED:
            more = {"readable": self.number, "placed_by": self._placed_after_a_drain()}
        return self._changed(now, _FOLLOWING[self.phase], **more)

    def fenced_again(self, now: float) -> "Shards":
        """Move again, because an item was found in a shard that had been emptied."""
        assert self.phase is Phase.MOVED
        return self._changed(now, Phase.FENCED)

    def _changed(self, now: float, phase: Phase, **more: Any) -> "Shards":
        return replace(self, last_updated=self._later(now), phase=phase, **more)

    def _counted(self, number: int, now: float, phase: Phase, **more: Any) -> "Shards":
        at = self._later(now)
        history = self.history
        if not history or history[-1][1] != self.number:
            history = (*history, (self.last_updated, self.number))  # written by another program
        more["history"] = (*history, (at, number))[-HISTORY:]
        more["placed_by"] = self.placed_by | {number}
        return self._changed(now, phase, number=number, before=self.number, **more)

    def _later(self, now: float) -> int:
        return max(math.ceil(now), self.last_updated + 1)

    def _placed_after_a_drain(self) -> frozenset[int]:
        try:
            placement, _ = Placement.parse(self.placement or "")
        except ValueError:  # missing or from another program: all counts may have been used
            return self.placed_by
        if placement.hash != "jump":
            return self.placed_by
        # By jump hashing, a shard of at most M by a greater count is the same shard by M.
        return frozenset(count for count in self.placed_by if count <= self.number)


def from_item(item: Mapping[str, TypedValue]) -> Shards:
    """Read a metadata item. Raise BrokenPromise if it is invalid."""
    try:
        types = {name: type_ for name, type_ in ATTRIBUTES.items() if name in item}
        for word in ("traffic", "pressure"):  # these do not concern the shards
            types.pop(word, None)
        contents = {name: item[name][type_] for name, type_ in types.items()}
        number = int(contents["number_of_shards"])
        history = tuple(sorted(_entry(text) for text in contents.get("shard_history", ())))
        counts = {number, *(count for _, count in history)}
        shards = Shards(
            number=number,
            last_updated=math.ceil(float(contents["last_updated"])),
            history=history,
            writable=int(contents.get("writable", number)),
            readable=int(contents.get("readable", number)),
            phase=Phase(contents.get("phase", Phase.STEADY)),
            placed_by=frozenset(int(count) for count in contents.get("placed_by", counts)),
            settle=float(contents.get("settle_seconds", SETTLE_SECONDS)),
            placement=contents.get("placement"),
            before=int(
                contents.get("shards_before", history[-2][1] if len(history) > 1 else number)
            ),
            table=contents.get("of_table"),
            called_off=contents.get("called_off", False),
        )
    except (KeyError, ValueError, TypeError) as error:
        raise BrokenPromise(
            "A shard metadata item is not readable: it must have number_of_shards and "
            f"last_updated (N), and shard_history (SS) of epoch:count ({type(error).__name__})."
        ) from error
    if not _is_possible(shards):
        raise BrokenPromise(
            f"A shard metadata item contradicts itself: {shards.phase}, {shards.number} shards, "
            f"{shards.writable} writable, {shards.readable} readable, placed by "
            f"{sorted(shards.placed_by)}, {shards.before} before, {shards.settle:g} s."
        )
    return shards


def _is_possible(shards: Shards) -> bool:
    """Return whether the changes above can lead to this metadata; other metadata is never used."""
    number, writable, readable = shards.number, shards.writable, shards.readable
    counts = (number, writable, readable, shards.before, *shards.placed_by)
    if min(counts) < 1 or max(counts) > MOST_SHARDS or shards.settle < LEAST_SETTLE_SECONDS:
        return False
    match shards.phase:
        case Phase.STEADY | Phase.OPENED:
            return number == writable == readable
        case Phase.ANNOUNCED:
            return writable < number == readable
        case Phase.CLOSING:
            return number < writable == readable
    return number == writable < readable


def to_item(shards: Shards) -> dict[str, dict[str, Any]]:
    """Return the attributes of a metadata item, without its key."""
    contents = {
        "number_of_shards": str(shards.number),
        "last_updated": str(shards.last_updated),
        "shard_history": [*dict.fromkeys(f"{at}:{count}" for at, count in shards.history)],
        "writable": str(shards.writable),
        "readable": str(shards.readable),
        "phase": shards.phase.value,
        "placed_by": [str(count) for count in sorted(shards.placed_by)],
        "settle_seconds": f"{shards.settle:g}",
        "placement": shards.placement,
        "shards_before": str(shards.before),
        "of_table": shards.table,
        "called_off": shards.called_off,
    }
    # DynamoDB has no empty sets.
    return {n: {ATTRIBUTES[n]: c} for n, c in contents.items() if c is not None and c != []}


def _entry(text: str) -> tuple[int, int]:
    at, _, count = text.partition(":")
    return math.ceil(float(at)), int(count)
