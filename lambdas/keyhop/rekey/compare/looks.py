"""Look at candidates three times, strongly consistent, with pauses; settle what still differs.

The third look comes when what was there at the second must have come through the stream, by the lag
that was told last. What differs then is settled for each of its owners, whether or not it has
changed since the second look: settling is safe under traffic, and a place that changes may still
hold an item that no record of the stream leads to. A changing place that was settled is no
difference; without repair, it is counted as unsettled, and keeps a verify from being clean.
"""

import math
import time
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import Executor, ThreadPoolExecutor
from dataclasses import dataclass
from typing import Literal, TypeVar

from keyhop.dynamodb.item_calls import MOST_KEYS_AT_ONCE, ItemCalls
from keyhop.dynamodb.values import Item, Key
from keyhop.rekey.compare.look import DIFFERENCES, Finding, Look, look_at, verdict
from keyhop.rekey.compare.rows import Candidate
from keyhop.rekey.side.rows import key_text
from keyhop.rekey.transform import Transform
from keyhop.scan.skip_scan import Page

T = TypeVar("T")
V = TypeVar("V")

_RANGE = ("Segment", "TotalSegments", "ExclusiveStartKey", "Limit")
"""The parameters of a Scan that say which items a page has."""

Settle = Callable[[Sequence[tuple[Key, Key]]], Sequence[bool]]
"""Bring places of the destination to what the source says now (Replicator.settle_all).

It is given pairs of a source key and a place, in which no place comes twice, and returns whether
each succeeded; what did not succeed stays a claim."""

PAUSES = (2.0, 6.0)
"""Seconds before the second look and the third: longer than the stream is behind, of a table that
may be cut over (p99 under 2 s)."""

MOST_REPAIRS = 3
"""How often a place is settled that was quiet, and differs after it was settled."""

REPAIRS_AT_ONCE = 100
"""Places that are settled together. The stragglers are asked for before each such group, so no more
places are written after a straggler was noted."""

REPAIRING_THREADS = 2
"""Groups of REPAIRS_AT_ONCE places that are settled at the same time: while one waits for its last
answers, another keeps the worker busy."""

LOOKING_THREADS = 8

FIRST_LOOK_SECONDS = 2.0
"""For the first look at candidates: as many as are looked at in this time wait together. The other
looks take as long."""

MOST_LAG_SECONDS = 40.0
"""For which the third look waits, as a slice has to be long enough for it (worker.CALM_SLICES);
behind a longer lag it may find real what is in flight, and the lag keeps the gate of a cutover shut
as well."""

IN_FLIGHT, EQUAL, REPAIRED, FOREIGN = "in_flight", "equal", "repaired", "foreign"
UNSETTLED: Literal["unsettled"] = "unsettled"
BYPASSED = "bypassed"
"""The other counts of candidates. in_flight: they differed, and were equal at a later look, or were
changing and have been settled. equal: they were equal at the first look, and had no counterpart as
only a sample was read. foreign: of the surplus, items of no source item at all. unsettled: they
differed at every look, were changing, and were not settled. bypassed: of all that differed, items
with an unsettled straggler, which no repair writes."""

NOT_EQUAL = (*DIFFERENCES, UNSETTLED)
"""The counts that keep a verify from being clean, unless they were repaired."""


class Reads(ItemCalls):
    """Reads items of one table, strongly consistent."""

    def items(self, keys: Iterable[Key], page: Page | None = None) -> dict[str, Item]:
        """Return the items that are there now, by key_text.

        Args:
            keys: The keys of the items; they may come twice.
            page: The page of a Scan by which they were read before. Where that costs less than a
                unit for each item, its range is scanned once more, and only those items are read by
                their keys that the second Scan does not bring: they were deleted, or others have
                come before them.
        """
        wanted = {key_text(key): key for key in keys}
        found: dict[str, Item] = {}
        if page is not None and page.scan and 2 * page.units < len(wanted):
            found = self._scanned_again(page, wanted)
        return found | self._by_key([key for text, key in wanted.items() if text not in found])

    def _scanned_again(self, page: Page, wanted: Mapping[str, Key]) -> dict[str, Item]:
        names = next(iter(wanted.values()))
        scan = {name: page.scan[name] for name in _RANGE if name in page.scan}
        items = self._read("scan", **scan)["Items"]
        by_text = {key_text({name: item[name] for name in names}): item for item in items}
        return {text: by_text[text] for text in wanted if text in by_text}

    def _by_key(self, wanted: Sequence[Key]) -> dict[str, Item]:
        found: dict[str, Item] = {}
        for first in range(0, len(wanted), MOST_KEYS_AT_ONCE):
            for item in self._read_batch(wanted[first : first + MOST_KEYS_AT_ONCE], {}):
                found[key_text({name: item[name] for name in wanted[0]})] = item
        return found


@dataclass(slots=True)
class Looks:
    """The looks at candidates of one verify.

    Attributes:
        settle: Repairs a place; None to repair nothing.
        sampled: Whether rows without a counterpart are usual, as only a share was read.
        pauses: Seconds before each look but the first.
        lag: Returns the seconds by which the stream is behind now.
        may_settle: Returns the candidates that have no unsettled straggler.
        clock: Returns seconds since any moment.
        pool: Makes a pool of so many threads, for looks.
    """

    transform: Transform
    source: Reads
    destination: Reads
    settle: Settle | None = None
    sampled: bool = False
    pauses: Sequence[float] = PAUSES
    lag: Callable[[], float] = lambda: 0.0
    may_settle: Callable[[Sequence[Candidate]], Sequence[Candidate]] = lambda candidates: candidates
    clock: Callable[[], float] = time.monotonic
    pool: Callable[[int], Executor] = ThreadPoolExecutor

    def look(self, candidates: Sequence[Candidate]) -> list["Found"]:
        """Look at candidates, the first so many of them, for the first time.

        Args:
            candidates: Places where the two tables seem to differ.

        Returns:
            The look at each of the first candidates. How many these are is decided by the time that
            it takes.
        """
        found = self._look(candidates, FIRST_LOOK_SECONDS)
        for one in found:
            one.was_equal_at_once = one.look.finding == "equal"
        return found

    def look_again(self, found: Sequence["Found"]) -> Iterator[float]:
        """Look again at what differs, until it is equal or really differs.

        Args:
            found: What `look` has returned. It gets the later looks.

        Yields:
            Seconds to wait before the next look, at least.
        """
        left = _differing(found)
        for number, seconds in enumerate(self.pauses, 1):
            if not left:
                return
            yield seconds
            if number == len(self.pauses):
                yield from self._until_the_stream_has_come(seconds)
            again = self._look([one.candidate for one in left])
            for one, after in zip(left, again, strict=True):
                one.is_changing = verdict(one.look, after.look) == "changing"
                one.look = after.look
            left = _differing(left)

    def settled(self, found: Sequence["Found"]) -> tuple[Counter[str], list["Found"]]:
        """Settle those that still differ, and return what became of all.

        Args:
            found: What has been looked at until it is equal or differs, or a part of that.

        Returns:
            The counts of all candidates, and those that are a difference or are unsettled.
        """
        left = _differing(found)
        if self.settle is not None:
            self._in_threads(REPAIRING_THREADS, self._repair, _groups(left, REPAIRS_AT_ONCE))
        differing = [one for one in left if not (one.is_changing and one.is_repaired)]
        counts: Counter[str] = Counter()
        at_once = sum(one.was_equal_at_once for one in found)
        counts[EQUAL if self.sampled else IN_FLIGHT] += at_once
        counts[IN_FLIGHT] += len(found) - at_once - len(differing)
        for one in differing:
            counts[one.finding] += 1
            counts[FOREIGN] += one.finding == "surplus" and one.look.is_foreign
            counts[REPAIRED] += one.is_repaired
            counts[BYPASSED] += one.is_bypassed
        return +counts, differing

    def _until_the_stream_has_come(self, waited: float) -> Iterator[float]:
        """Yield seconds to wait until the stream's lag has passed, which may grow meanwhile."""
        while (left := min(MOST_LAG_SECONDS, self.lag()) - waited) > 0:
            yield left
            waited += left

    def _repair(self, found: Sequence["Found"]) -> None:
        """Settle each place for all of its owners.

        A place that was not changing is repaired if it is equal afterwards. One that is not may
        have begun to change, so it is settled again, a few times. A place that was changing before
        need not be equal at any moment: it is repaired if all of its claims were settled.
        """
        left = [*found]
        for _ in range(MOST_REPAIRS):
            # Asked for each time, as stragglers are noted meanwhile.
            allowed = {id(one) for one in self.may_settle([one.candidate for one in left])}
            for one in left:
                one.is_bypassed = id(one.candidate) not in allowed
                one.is_repaired = not one.is_bypassed
            self._settle_owners([one for one in left if not one.is_bypassed])
            quiet = [one for one in left if not (one.is_changing or one.is_bypassed)]
            again = self._look([one.candidate for one in quiet])
            left = []
            for one, after in zip(quiet, again, strict=True):
                is_settled, one.is_repaired = one.is_repaired, after.look.finding == "equal"
                if is_settled and not one.is_repaired and one.candidate.owners:
                    left.append(one)
            if not left:
                return

    def _settle_owners(self, found: Sequence["Found"]) -> None:
        """Settle places together, but the owners of one place one after the other."""
        assert self.settle is not None
        for number in range(max((len(one.candidate.owners) for one in found), default=0)):
            some = [one for one in found if number < len(one.candidate.owners)]
            pairs = [(one.candidate.owners[number], one.candidate.place) for one in some]
            for one, has_succeeded in zip(some, self.settle(pairs), strict=True):
                one.is_repaired = one.is_repaired and has_succeeded

    def _look(self, candidates: Sequence[Candidate], seconds: float = math.inf) -> list["Found"]:
        """Look at candidates by several threads; begin nothing more after so many seconds."""
        groups = _groups(candidates, MOST_KEYS_AT_ONCE)
        ends_at = self.clock() + seconds
        looks = self._in_threads(LOOKING_THREADS, self._look_at, groups, ends_at)
        return [found for group in looks for found in group]

    def _in_threads(
        self,
        threads: int,
        work: Callable[[Sequence[T]], V],
        groups: Sequence[Sequence[T]],
        ends_at: float = math.inf,
    ) -> list[V]:
        """Work groups by several threads, and return the results in order.

        Args:
            threads: So many groups are worked at the same time.
            work: Works one group. If it raises, no further group begins.
            groups: The groups.
            ends_at: The moment of the clock after which no group begins but the first ones.
        """
        if len(groups) <= 1:
            return [work(group) for group in groups]
        results: list[V] = []
        with self.pool(threads) as pool:
            for some in _groups(groups, threads):
                if results and self.clock() >= ends_at:
                    break
                running = [pool.submit(work, group) for group in some]
                results += [one.result() for one in running]
        return results

    def _look_at(self, candidates: Sequence[Candidate]) -> list["Found"]:
        """Read the destination first, as its items name more owners, and then the source."""
        items = self.destination.items(one.place for one in candidates)
        there = [items.get(key_text(one.place)) for one in candidates]
        for one, item in zip(candidates, there, strict=True):
            owner = None if item is None else self.transform.owner_of(item)
            if owner is not None:
                one.add(owner)
        sources = self.source.items(owner for one in candidates for owner in one.owners)
        found = []
        for one, item in zip(candidates, there, strict=True):
            here = [sources.get(key_text(owner)) for owner in one.owners]
            look = look_at(
                self.transform, one.place, item, [each for each in here if each is not None]
            )
            found.append(Found(one, look))
        return found


@dataclass(slots=True)
class Found:
    """A candidate, with the last look at it.

    Attributes:
        is_changing: Whether it had changed between the last two looks.
        is_repaired: Whether it was settled.
        is_bypassed: Whether it has an unsettled straggler, and was left alone.
        was_equal_at_once: Whether it was equal at the first look.
    """

    candidate: Candidate
    look: Look
    is_changing: bool = False
    is_repaired: bool = False
    is_bypassed: bool = False
    was_equal_at_once: bool = False

    @property
    def finding(self) -> Finding | Literal["unsettled"]:
        """The name under which it is counted."""
        return UNSETTLED if self.is_changing else self.look.finding


def _differing(found: Sequence[Found]) -> list[Found]:
    """Return those that were not equal at their last look."""
    return [one for one in found if one.look.finding != "equal"]


def _groups(values: Sequence[T], size: int) -> list[Sequence[T]]:
    """Return the values in groups of this size; the last one may be smaller."""
    return [values[first : first + size] for first in range(0, len(values), size)]
