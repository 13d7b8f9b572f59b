"""The last step of a run that lists logical keys: what its parts hold, folded, each key once.

Several physical keys may stand for one listed key (`/f.txt_1`, `/f.txt_2`: `/f.txt`), and they lie
in any segments, slices and groups. So such a run reads and commits physical keys, as any other.
When all its groups are finished, its parts are read once more, in one place, through a set in
bounded memory (seen.py):

    logical/000000-<attempt>   the folded keys; they count only if fold.json names them
    fold.json                  created once: what the fold came to

A fold that is killed, repeated, or done twice at once creates no fold.json or loses the race for
it: then its files do not count. The run is finished after it, so a run that ends between the two
is resumed into its fold. Which keys are folded is for others to say: they hand in a function.
"""

import json
import uuid
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import islice
from typing import Any

from keyhop.dynamodb.schema import KeySpace
from keyhop.dynamodb.values import Key, KeyType, TypedValue
from keyhop.errors import BrokenPromise, CannotStart
from keyhop.jobs.dedup import SeenKeys
from keyhop.jobs.journal import PartSink, RunLog
from keyhop.jobs.model import Part, RunPlan

FOLD = "fold.json"
FOLDER = "logical"
KEYS_AT_ONCE = 1_000
KEYS_OF_A_PART = 1_000_000

Fold = Callable[[Sequence[Key]], Sequence[Key]]
"""From physical keys to the keys to be listed, in the same order."""

Parse = Callable[[TypedValue], tuple[TypedValue, int] | None]
"""From a physical key's value to the logical one and the shard; None for one without a suffix."""

Parsers = Callable[[KeyType, str], Parse]
"""From the partition key's type and a separator; raises CannotStart for what allows no suffix."""


@dataclass(frozen=True, slots=True)
class Folding:
    """How a run is folded. fold: called once all parts are known. check: called now and then
    meanwhile; it may raise what ends the fold before its time.
    """

    fold: Callable[[RunPlan], Fold]
    check: Callable[[int], None] = lambda done: None


@dataclass(frozen=True, slots=True)
class Folded:
    """What a fold came to. physical: keys that were read; shards: those of them that were folded
    into another.
    """

    parts: tuple[Part, ...]
    physical: int
    shards: int

    @property
    def keys(self) -> int:
        """How many keys it lists."""
        return sum(part.keys for part in self.parts)

    def to_json(self) -> dict[str, Any]:
        """As plain JSON."""
        return {
            "physical": self.physical,
            "shards": self.shards,
            "parts": [part.to_json() for part in self.parts],
        }

    @classmethod
    def from_json(cls, state: Mapping[str, Any]) -> "Folded":
        """The inverse of `to_json`."""
        parts = tuple(Part.from_json(part) for part in state["parts"])
        return cls(parts, state["physical"], state["shards"])

    def over(self, summary: Mapping[str, Any]) -> dict[str, Any]:
        """A finished run's summary, which counts physical keys, with the listed keys instead."""
        return {
            **summary,
            "keys": self.keys,
            "logical": {**summary["logical"], "folded": self.shards},
            "parts": [part.summary() for part in self.parts],
        }


def check_can_fold(space: KeySpace) -> None:
    """Raises CannotStart for a key space whose keys cannot be physical ones."""
    if len(space.partition) != 1 or space.partition[0].type == "N":
        raise CannotStart(
            "Logical keys cannot be listed here: the partition key is a number (N), which cannot "
            "carry a shard's suffix; list the keys as they are."
        )


def by_suffix(space: KeySpace, parse: Parse) -> Fold:
    """The fold that takes each key with a suffix for a shard."""
    name = space.partition[0].name

    def fold(keys: Sequence[Key]) -> list[Key]:
        parsed = ((key, parse(key[name])) for key in keys)
        return [key if found is None else {name: found[0]} for key, found in parsed]

    return fold


def folded(log: RunLog, plan: RunPlan, parts: Iterable[Part], folding: Folding) -> Folded:
    """Fold the keys of a run's `parts`, which are all of it; or find what an earlier call did.

    Raises BrokenPromise if a part is not as it was committed, and whatever `check` raises.
    """
    found = _read(log)
    if found is None:
        found = _created(log, _Work(log, plan, folding).work(parts))
    log.check_sizes(found.parts, FOLDER)
    log.sweep(found.parts, FOLDER)
    return found


def listed(log: RunLog) -> tuple[Part, ...]:
    """The files of a run's logical keys that count; none if it is not folded."""
    found = _read(log)
    return () if found is None else found.parts


def keys_of(log: RunLog, plan: RunPlan, parts: Iterable[Part]) -> Iterator[list[Key]]:
    """The keys of parts, in batches."""
    for part in parts:
        keys = (key for _, key in log.keys(plan, part))
        while batch := list(islice(keys, KEYS_AT_ONCE)):
            yield batch


@dataclass(slots=True)
class _Work:
    """One attempt at a fold."""

    log: RunLog
    plan: RunPlan
    folding: Folding
    attempt: str = field(default_factory=lambda: uuid.uuid4().hex[:12])
    done: list[Part] = field(default_factory=list)
    begun: int = 0

    def work(self, parts: Iterable[Part]) -> Folded:
        self.folding.check(0)
        fold = self.folding.fold(self.plan)
        seen = SeenKeys()
        physical = shards = in_this_part = 0
        try:
            sink = self._part(seen)
            for keys in keys_of(self.log, self.plan, parts):
                self.folding.check(physical)
                listed = fold(keys)
                physical += len(keys)
                shards += sum(key != other for key, other in zip(keys, listed, strict=True))
                in_this_part += sink.write(0, listed)
                if in_this_part >= KEYS_OF_A_PART:
                    self.done += sink.close()
                    sink, in_this_part = self._part(seen), 0
            self.done += sink.close()
        finally:
            seen.close()
        return Folded(tuple(self.done), physical, shards)

    def _part(self, seen: SeenKeys) -> PartSink:
        name = f"{FOLDER}/{self.begun:06}-{self.attempt}"
        self.begun += 1
        sink = self.log.new_file(self.plan, name, self.attempt)
        sink.seen = seen
        return sink


def _created(log: RunLog, mine: Folded) -> Folded:
    """What counts: this attempt, or that of whoever was first."""
    if log.store.create(FOLD, (json.dumps(mine.to_json()) + "\n").encode()):
        return mine
    winner = _read(log)
    if winner is None:
        raise BrokenPromise(f"{FOLD} was created by another process, and is gone again.")
    return winner


def _read(log: RunLog) -> Folded | None:
    content = log.store.read(FOLD)
    if content is None:
        return None
    try:
        return Folded.from_json(json.loads(content))
    except (KeyError, TypeError, AttributeError, ValueError) as error:
        raise BrokenPromise(f"{FOLD} is damaged: it is not what a fold came to.") from error
