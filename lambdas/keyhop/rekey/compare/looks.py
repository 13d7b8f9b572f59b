"""Look at candidates three times, strongly consistent, with pauses; settle confirmed differences.

The third look comes when all that existed at the second must have come through the stream, by the
last reported lag. A place that still differs is settled for each of its owners, even if it is
changing: settling is safe under traffic, and perhaps no record of the stream refers to its item.
docs/internals/rekey-protocol.md explains the counts.
"""

import math
import time
from collections import Counter
from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import Executor, ThreadPoolExecutor
from dataclasses import dataclass
from typing import Literal, TypeVar

from keyhop.dynamodb.requester import ItemCalls
from keyhop.dynamodb.units import MOST_KEYS_AT_ONCE
from keyhop.dynamodb.values import Item, Key
from keyhop.rekey.compare.rows import Candidate
from keyhop.rekey.transform import Transform, Unmappable, item_digest, key_digest, key_text
from keyhop.scan.skip_scan import Page

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


T = TypeVar("T")
V = TypeVar("V")

_RANGE = ("Segment", "TotalSegments", "ExclusiveStartKey", "Limit")
"""The parameters of a Scan that determine the items of a page."""

Settle = Callable[[Sequence[tuple[Key, Key]]], Sequence[bool]]
"""Bring places of the destination up to date (Replicator.settle_all), by pairs of a source key and
a place, which occurs once. Return whether each succeeded; a failed one remains a claim.
"""

PAUSES = (2.0, 6.0)
"""Seconds before the second and third look: more than the lag before a cutover (p99 under 2 s)."""

MOST_REPAIRS = 3
"""How often a place is settled that was quiet, and still differs after it was settled."""

REPAIRS_AT_ONCE = 100
"""Places that are settled together. The stragglers are read before each such group, so at most one
group is written after a straggler was recorded.
"""

REPAIRING_THREADS = 2
"""Groups of places that are settled in parallel: one keeps the worker busy while another waits."""

LOOKING_THREADS = 8

FIRST_LOOK_SECONDS = 2.0
"""Time for the first look at candidates that wait together. The other looks take as long."""

MOST_LAG_SECONDS = 40.0
"""The longest lag for which the third look waits: a slice must be long enough (worker.CALM_SLICES).
Beyond it an item in flight may count as a difference, but the lag shuts the gate of a cutover too.
"""

IN_FLIGHT, EQUAL, REPAIRED, FOREIGN = "in_flight", "equal", "repaired", "foreign"
UNSETTLED: Literal["unsettled"] = "unsettled"
BYPASSED = "bypassed"
"""The other counts of candidates. `in_flight`: they differed, and were equal at a later look, or
were changing and have been settled. `equal`: they were equal at the first look, and had no
counterpart because only a sample was read. `foreign`: surplus items that belong to no source
item. `unsettled`: they differed at every look, were changing, and were not settled.
`bypassed`: differing items with an unsettled straggler, which no repair writes.
"""

NOT_EQUAL = (*DIFFERENCES, UNSETTLED)
"""The counts that keep a verification from being clean, unless they were repaired."""


class Reads(ItemCalls):
    """Reads items of one table, strongly consistent."""

    def items(self, keys: Iterable[Key], page: Page | None = None) -> dict[str, Item]:
        """Return the items that exist now, by key_text; a key may occur twice.

        If a second Scan of the page that read them before costs less than a unit for each item, its
        range is scanned once more, and only the items that the second Scan does not return are read
        by their keys: they were deleted, or other items have been inserted before them.
        """
        keys_by_text = {key_text(key): key for key in keys}
        items: dict[str, Item] = {}
        if page is not None and page.scan and 2 * page.units < len(keys_by_text):
            items = self._scanned_again(page, keys_by_text)
        return items | self._by_key(
            [key for text, key in keys_by_text.items() if text not in items]
        )

    def _scanned_again(self, page: Page, keys_by_text: Mapping[str, Key]) -> dict[str, Item]:
        names = next(iter(keys_by_text.values()))
        scan = {name: page.scan[name] for name in _RANGE if name in page.scan}
        items = self._read("scan", **scan)["Items"]
        by_text = {key_text({name: item[name] for name in names}): item for item in items}
        return {text: by_text[text] for text in keys_by_text if text in by_text}

    def _by_key(self, keys: Sequence[Key]) -> dict[str, Item]:
        items: dict[str, Item] = {}
        for first in range(0, len(keys), MOST_KEYS_AT_ONCE):
            for item in self._read_batch(keys[first : first + MOST_KEYS_AT_ONCE], {}):
                items[key_text({name: item[name] for name in keys[0]})] = item
        return items


@dataclass(slots=True)
class Looks:
    """The looks at candidates of a verification, with pauses in seconds before each but the first.

    `settle` repairs places; None to repair nothing. `may_settle` returns the candidates that have
    no unsettled straggler. When only a share was read, `sampled`, rows without a counterpart are
    usual. `lag` returns the seconds by which the stream is behind now.
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
        """Look for the first time at as many of the first candidates as the time allows."""
        results = self._look(candidates, FIRST_LOOK_SECONDS)
        for result in results:
            result.was_equal_at_once = result.look.finding == "equal"
        return results

    def look_again(self, results: Sequence["Found"]) -> Iterator[float]:
        """Look again at differing places, until they are equal or the difference is confirmed.
        Update the results, and yield the minimum seconds to wait before each look.
        """
        differing = _differing(results)
        for number, seconds in enumerate(self.pauses, 1):
            if not differing:
                return
            yield seconds
            if number == len(self.pauses):
                yield from self._until_the_stream_has_come(seconds)
            looks = self._look([result.candidate for result in differing])
            for result, after in zip(differing, looks, strict=True):
                result.is_changing = verdict(result.look, after.look) == "changing"
                result.look = after.look
            differing = _differing(differing)

    def settled(self, results: Sequence["Found"]) -> tuple[Counter[str], list["Found"]]:
        """Settle places that still differ; return all counts, and what differs or is unsettled."""
        unequal = _differing(results)
        if self.settle is not None:
            self._in_threads(REPAIRING_THREADS, self._repair, _groups(unequal, REPAIRS_AT_ONCE))
        differing = [
            result for result in unequal if not (result.is_changing and result.is_repaired)
        ]
        counts: Counter[str] = Counter()
        at_once = sum(result.was_equal_at_once for result in results)
        counts[EQUAL if self.sampled else IN_FLIGHT] += at_once
        counts[IN_FLIGHT] += len(results) - at_once - len(differing)
        for result in differing:
            counts[result.finding] += 1
            counts[FOREIGN] += result.finding == "surplus" and result.look.is_foreign
            counts[REPAIRED] += result.is_repaired
            counts[BYPASSED] += result.is_bypassed
        return +counts, differing

    def _until_the_stream_has_come(self, waited: float) -> Iterator[float]:
        """Yield seconds to wait until the stream's lag, which may grow, has passed."""
        while (remaining := min(MOST_LAG_SECONDS, self.lag()) - waited) > 0:
            yield remaining
            waited += remaining

    def _repair(self, results: Sequence["Found"]) -> None:
        """Settle each place for all of its owners.

        A place that was not changing is repaired if it is equal afterwards. If it is not, it may
        have begun to change, so it is settled again, a few times. A place that was changing before
        need not be equal at any moment: it is repaired if all of its claims were settled.
        """
        remaining = [*results]
        for _ in range(MOST_REPAIRS):
            # Read every time, as new stragglers may be recorded at any time.
            allowed = {
                id(candidate)
                for candidate in self.may_settle([result.candidate for result in remaining])
            }
            for result in remaining:
                result.is_bypassed = id(result.candidate) not in allowed
                result.is_repaired = not result.is_bypassed
            self._settle_owners([result for result in remaining if not result.is_bypassed])
            quiet = [
                result for result in remaining if not (result.is_changing or result.is_bypassed)
            ]
            looks = self._look([result.candidate for result in quiet])
            remaining = []
            for result, after in zip(quiet, looks, strict=True):
                is_settled, result.is_repaired = result.is_repaired, after.look.finding == "equal"
                if is_settled and not result.is_repaired and result.candidate.owners:
                    remaining.append(result)
            if not remaining:
                return

    def _settle_owners(self, results: Sequence["Found"]) -> None:
        """Settle places together, but the owners of one place one after the other."""
        assert self.settle is not None
        for number in range(max((len(result.candidate.owners) for result in results), default=0)):
            some = [result for result in results if number < len(result.candidate.owners)]
            pairs = [(result.candidate.owners[number], result.candidate.place) for result in some]
            for result, has_succeeded in zip(some, self.settle(pairs), strict=True):
                result.is_repaired = result.is_repaired and has_succeeded

    def _look(self, candidates: Sequence[Candidate], seconds: float = math.inf) -> list["Found"]:
        """Look at candidates in several threads; start no new work after so many seconds."""
        groups = _groups(candidates, MOST_KEYS_AT_ONCE)
        ends_at = self.clock() + seconds
        looks = self._in_threads(LOOKING_THREADS, self._look_at, groups, ends_at)
        return [result for group in looks for result in group]

    def _in_threads(
        self,
        threads: int,
        work: Callable[[Sequence[T]], V],
        groups: Sequence[Sequence[T]],
        ends_at: float = math.inf,
    ) -> list[V]:
        """Process groups in parallel, and return the results in order. If one raises, no further
        group begins. After the moment `ends_at` of the clock, none begins but the first ones.
        """
        if len(groups) <= 1:
            return [work(group) for group in groups]
        results: list[V] = []
        with self.pool(threads) as pool:
            for some in _groups(groups, threads):
                if results and self.clock() >= ends_at:
                    break
                running = [pool.submit(work, group) for group in some]
                results += [future.result() for future in running]
        return results

    def _look_at(self, candidates: Sequence[Candidate]) -> list["Found"]:
        """Read the destination first, as its items name more owners, and then the source."""
        items = self.destination.items(candidate.place for candidate in candidates)
        current_items = [items.get(key_text(candidate.place)) for candidate in candidates]
        for candidate, item in zip(candidates, current_items, strict=True):
            owner = None if item is None else self.transform.owner_of(item)
            if owner is not None:
                candidate.add(owner)
        sources = self.source.items(owner for candidate in candidates for owner in candidate.owners)
        results = []
        for candidate, item in zip(candidates, current_items, strict=True):
            source_items = [sources.get(key_text(owner)) for owner in candidate.owners]
            look = look_at(
                self.transform,
                candidate.place,
                item,
                [each for each in source_items if each is not None],
            )
            results.append(Found(candidate, look))
        return results


@dataclass(slots=True)
class Found:
    """A candidate, with the last look at it. It is changing if it had changed between the last two
    looks, and bypassed if it has an unsettled straggler, and was not repaired.
    """

    candidate: Candidate
    look: Look
    is_changing: bool = False
    is_repaired: bool = False
    is_bypassed: bool = False
    was_equal_at_once: bool = False

    @property
    def finding(self) -> Finding | Literal["unsettled"]:
        """Return the name under which it is counted."""
        return UNSETTLED if self.is_changing else self.look.finding


def _differing(results: Sequence[Found]) -> list[Found]:
    """Return those that were not equal at their last look."""
    return [result for result in results if result.look.finding != "equal"]


def _groups(values: Sequence[T], size: int) -> list[Sequence[T]]:
    """Return the values in groups of this size; the last one may be smaller."""
    return [values[first : first + size] for first in range(0, len(values), size)]
