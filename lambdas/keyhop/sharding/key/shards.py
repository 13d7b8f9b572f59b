"""The shard metadata of one logical key, as a value, and its changes. Pure.

    number_of_shards   the shard count: how many physical keys are wanted
    last_updated       epoch seconds of the last change; each change makes it greater, so it is the
                       item's version, and every change is conditioned on the one that was seen
    shard_history      the 20 latest shard counts, each "epoch:count"

Those three are the published ones. For the protocol (protocol.py) there are besides:

    writable           the shards in which writers put new items: 1 to `writable`
    readable           the shards that readers read: 1 to `readable`; others hold nothing
    phase              where a change of the count stands; absent: steady
    placed_by          counts by which calculated places may have been chosen
    settle_seconds     how long a change must have been seen before the next
    placement          what all users of the key have agreed upon, as "calculated jump _"
    shards_before      the count before the present one
    of_table           whose keys these are
    called_off         whether a drain is to be given up as soon as that may be done

An item with the published three only is steady, with `number_of_shards` for all counts.
"""

import math
from collections.abc import Mapping
from dataclasses import dataclass, replace
from enum import StrEnum
from typing import Any

from keyhop.dynamodb.values import TypedValue
from keyhop.errors import BrokenPromise
from keyhop.sharding.key.names import MOST_SHARDS
from keyhop.sharding.key.placement import Placement

ATTRIBUTES = frozenset(
    {
        *("number_of_shards", "last_updated", "shard_history", "writable", "readable", "phase"),
        *("placed_by", "settle_seconds", "placement", "shards_before", "of_table", "called_off"),
        *("traffic", "shards_added"),
    }
)
"""What metadata items have beside their key; a partition key cannot be called so."""
HISTORY = 20
"""Entries that shard_history keeps."""
SETTLE_SECONDS = 5.0
"""Between two steps of a change, if the item does not say otherwise."""
LEAST_SETTLE_SECONDS = 2.0


class Phase(StrEnum):
    """Where a change of the shard count stands; what each allows is in protocol.py."""

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
"""A drain is under way."""
GROWING_FROM = frozenset({Phase.STEADY, Phase.OPENED, Phase.REOPENING})
"""From these a growth may begin; `opened` already goes by the count that `steady` will have."""
PASSING = frozenset({Phase.ANNOUNCED, Phase.OPENED, Phase.HALTED, Phase.REOPENING})
"""Nothing but time must pass: whoever has seen the phase for long enough ends it."""


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
    """What the metadata says of one logical key. history: (epoch second, count), oldest first."""

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
        """Of a key that is new."""
        at = math.ceil(now)
        return cls(
            number,
            at,
            ((at, number),),
            number,
            number,
            placed_by=frozenset({number}),
            settle=settle,
            placement=placement,
            before=number,
            table=table,
        )

    def grown(self, number: int, now: float) -> "Shards":
        """More shards are wanted: readers read them from now on, writers do not use them yet."""
        assert self.phase in GROWING_FROM
        assert self.number < number <= MOST_SHARDS
        return replace(
            self._counted(number, now),
            readable=max(self.readable, number),
            phase=Phase.ANNOUNCED,
            placed_by=self.placed_by | {number},
        )

    def shrunk(self, number: int, now: float) -> "Shards":
        """Fewer are wanted: nothing is moved, and writers still use all of them."""
        assert self.phase is Phase.STEADY
        assert 1 <= number < self.number
        return replace(
            self._counted(number, now),
            phase=Phase.CLOSING,
            placed_by=self.placed_by | {number},
        )

    def reopened(self, now: float) -> "Shards":
        """A drain is called off; nothing has to be moved back."""
        assert self.phase in DRAINING
        if self.phase is Phase.CLOSING:  # writers use all of them still
            counted = self._counted(self.writable, now)
            return replace(counted, phase=Phase.STEADY, called_off=False)
        later = Phase.HALTED if self.phase is Phase.MOVING else Phase.REOPENING
        return replace(self, last_updated=self._later(now), phase=later, called_off=False)

    def to_be_called_off(self, now: float) -> "Shards":
        """Whoever takes the drain's next step gives it up instead; nothing else changes."""
        assert self.phase in DRAINING
        return replace(self, last_updated=self._later(now), called_off=True)

    def advanced(self, now: float) -> "Shards":
        """The next step of a change; of a drain's, only once its work is done."""
        if self.phase is Phase.REOPENING:
            return self.grown(self.readable, now)
        if self.phase not in _FOLLOWING:
            raise ValueError(f"nothing follows {self.phase} by itself")
        after = replace(self, last_updated=self._later(now), phase=_FOLLOWING[self.phase])
        if self.phase in (Phase.ANNOUNCED, Phase.CLOSING):
            return replace(after, writable=self.number)
        if self.phase is Phase.MOVED:
            placed_by = self._placed_after_a_drain()
            return replace(after, readable=self.number, placed_by=placed_by)
        return after

    def fenced_again(self, now: float) -> "Shards":
        """Something was found in a shard that had been emptied: move once more."""
        assert self.phase is Phase.MOVED
        return replace(self, last_updated=self._later(now), phase=Phase.FENCED)

    def _counted(self, number: int, now: float) -> "Shards":
        at = self._later(now)
        known = self.history
        if (not known or known[-1][1] != self.number) and at > self.last_updated:
            known = (*known, (self.last_updated, self.number))  # somebody else has written it
        history = (*known, (at, number))[-HISTORY:]
        return replace(self, number=number, last_updated=at, history=history, before=self.number)

    def _later(self, now: float) -> int:
        return max(math.ceil(now), self.last_updated + 1)

    def _placed_after_a_drain(self) -> frozenset[int]:
        try:
            placement, _ = Placement.parse(self.placement or "")
        except ValueError:  # somebody else's, or nobody's: all counts may have been used
            return self.placed_by
        if placement.hash != "jump":
            return self.placed_by
        # A jump hash that is at most M by a greater count is the same by M.
        return frozenset(count for count in self.placed_by if count <= self.number)


def from_item(item: Mapping[str, TypedValue]) -> Shards:
    """Read a metadata item; raises BrokenPromise for one that cannot be."""
    try:
        number = int(item["number_of_shards"]["N"])
        history = tuple(sorted(_entry(text) for text in _texts(item.get("shard_history"))))
        placed = {int(count) for count in _texts(item.get("placed_by"))}
        if not placed:
            placed = {number, *(count for _, count in history)}
        shards = Shards(
            number,
            math.ceil(float(item["last_updated"]["N"])),
            history,
            int(_number(item, "writable", number)),
            int(_number(item, "readable", number)),
            Phase(item["phase"]["S"]) if "phase" in item else Phase.STEADY,
            frozenset(placed),
            float(_number(item, "settle_seconds", SETTLE_SECONDS)),
            item["placement"]["S"] if "placement" in item else None,
            int(_number(item, "shards_before", history[-2][1] if len(history) > 1 else number)),
            item["of_table"]["S"] if "of_table" in item else None,
            bool(item.get("called_off", {}).get("BOOL", False)),
        )
    except (KeyError, ValueError, TypeError) as error:
        raise BrokenPromise(
            "A shard metadata item is not readable: it must have number_of_shards and "
            f"last_updated (N), and shard_history (SS) of epoch:count ({type(error).__name__})."
        ) from error
    if not (
        1 <= shards.writable <= shards.readable <= MOST_SHARDS
        and 1 <= shards.number <= shards.readable
        and shards.settle >= LEAST_SETTLE_SECONDS
    ):
        raise BrokenPromise(
            f"A shard metadata item contradicts itself: {shards.number} shards, "
            f"{shards.writable} writable, {shards.readable} readable."
        )
    return shards


def to_item(shards: Shards) -> dict[str, dict[str, Any]]:
    """The attributes of a metadata item, without its key."""
    item: dict[str, dict[str, Any]] = {
        "number_of_shards": {"N": str(shards.number)},
        "last_updated": {"N": str(shards.last_updated)},
        "shard_history": {"SS": [*dict.fromkeys(f"{at}:{count}" for at, count in shards.history)]},
        "writable": {"N": str(shards.writable)},
        "readable": {"N": str(shards.readable)},
        "phase": {"S": shards.phase.value},
        "placed_by": {"NS": [str(count) for count in sorted(shards.placed_by)]},
        "settle_seconds": {"N": f"{shards.settle:g}"},
        "shards_before": {"N": str(shards.before)},
    }
    if not shards.history:
        del item["shard_history"]  # the service knows no empty sets
    item["called_off"] = {"BOOL": shards.called_off}
    if shards.placement is not None:
        item["placement"] = {"S": shards.placement}
    if shards.table is not None:
        item["of_table"] = {"S": shards.table}
    return item


def _entry(text: str) -> tuple[int, int]:
    at, _, count = text.partition(":")
    return math.ceil(float(at)), int(count)


def _texts(value: TypedValue | None) -> list[str]:
    if value is None:
        return []
    return list(value["SS"] if "SS" in value else value["NS"])


def _number(item: Mapping[str, TypedValue], name: str, default: float) -> float:
    return float(item[name]["N"]) if name in item else default
