"""The last step of a run that lists logical keys: what its parts hold, folded, each key once.

Several physical keys may stand for one listed key (`/f.txt_1`, `/f.txt_2`: `/f.txt`), and they lie
in any segments, slices and groups. So such a run reads and commits physical keys, as any other.
When all its groups are finished, its parts are read once more, in one place, through a set in
bounded memory (dedup.py):

    logical/000000-<attempt>   the folded keys; they count only if fold.json names them
    fold.json                  created once: what the fold came to

A fold that is killed, repeated, or done twice at once creates no fold.json or loses the race for
it: then its files do not count. The run is finished after it, so a run that ends between the two
is resumed into its fold. Which keys are folded is for others to say: they hand in a function.
"""

import uuid
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import islice

from keyhop.dynamodb.schema import KeySpace
from keyhop.dynamodb.values import Key
from keyhop.errors import BrokenPromise, CannotStart
from keyhop.jobs.dedup import KnownKeys
from keyhop.jobs.journal import Journal, PartSink
from keyhop.jobs.model import Part, Record, RunPlan

FOLD = "fold.json"
FOLDER = "logical"
KEYS_AT_ONCE = 1_000
KEYS_OF_A_PART = 1_000_000

Fold = Callable[[Sequence[Key]], Sequence[Key]]
"""From physical keys to the keys to be listed, in the same order."""


@dataclass(frozen=True, slots=True)
class Folded(Record):
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


def check_can_fold(space: KeySpace) -> None:
    """Raises CannotStart for a key space whose keys cannot be physical ones."""
    if len(space.partition) != 1 or space.partition[0].type == "N":
        raise CannotStart(
            "Logical keys cannot be listed here: the partition key is a number (N), which cannot "
            "carry a shard's suffix; list the keys as they are."
        )


def folded(
    journal: Journal,
    plan: RunPlan,
    parts: Iterable[Part],
    fold_of: Callable[[], Fold],
    check: Callable[[int], None],
) -> Folded:
    """Fold the keys of a run's `parts`, which are all of it; or find what an earlier call did.

    fold_of: called once all parts are known. check: called now and then with how many keys are
    folded; it may raise what ends the fold before its time. Raises that, and BrokenPromise if a
    part is not as it was committed.
    """
    found = _read(journal)
    if found is None:
        check(0)
        found = _created(journal, _Folder(journal, plan, fold_of(), check).work(parts))
    journal.check_sizes(found.parts, FOLDER)
    journal.sweep(found.parts, FOLDER)
    return found


def listed(journal: Journal) -> tuple[Part, ...]:
    """The files of a run's logical keys that count; none if it is not folded."""
    found = _read(journal)
    return () if found is None else found.parts


def keys_of(journal: Journal, plan: RunPlan, parts: Iterable[Part]) -> Iterator[list[Key]]:
    """The keys of parts, in batches."""
    for part in parts:
        keys = (key for _, key in journal.keys(plan, part))
        while batch := list(islice(keys, KEYS_AT_ONCE)):
            yield batch


@dataclass(slots=True)
class _Folder:
    """One attempt at a fold."""

    journal: Journal
    plan: RunPlan
    fold: Fold
    check: Callable[[int], None]
    attempt: str = field(default_factory=lambda: uuid.uuid4().hex[:12])
    done: list[Part] = field(default_factory=list)
    begun: int = 0

    def work(self, parts: Iterable[Part]) -> Folded:
        memory = KnownKeys()
        physical = shards = in_this_part = 0
        try:
            sink = self._part(memory)
            for keys in keys_of(self.journal, self.plan, parts):
                self.check(physical)
                listed = self.fold(keys)
                physical += len(keys)
                shards += sum(key != other for key, other in zip(keys, listed, strict=True))
                in_this_part += sink.write(0, listed)
                if in_this_part >= KEYS_OF_A_PART:
                    self.done += sink.close()
                    sink, in_this_part = self._part(memory), 0
            self.done += sink.close()
        finally:
            memory.close()
        return Folded(tuple(self.done), physical, shards)

    def _part(self, memory: KnownKeys) -> PartSink:
        name = f"{FOLDER}/{self.begun:06}-{self.attempt}"
        self.begun += 1
        sink = self.journal.new_file(self.plan, name, self.attempt)
        sink.memory = memory
        return sink


def _created(journal: Journal, mine: Folded) -> Folded:
    """What counts: this attempt, or that of whoever was first."""
    if journal.keep_first(FOLD, mine.to_json()):
        return mine
    winner = _read(journal)
    if winner is None:
        raise BrokenPromise(f"{FOLD} was created by another process, and is gone again.")
    return winner


def _read(journal: Journal) -> Folded | None:
    state = journal.load(FOLD)
    try:
        return None if state is None else Folded.from_json(state)
    except (KeyError, TypeError, AttributeError, ValueError) as error:
        raise BrokenPromise(f"{FOLD} is damaged: it is not what a fold came to.") from error
