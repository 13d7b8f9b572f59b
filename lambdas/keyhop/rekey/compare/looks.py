"""Look at candidates three times, strongly consistent, with pauses; settle confirmed differences.

The third look comes when all that existed at the second must have come through the stream, by the
last reported lag. A place that still differs is settled for each of its owners, even if it is
changing: settling is safe under traffic, and perhaps no record of the stream refers to its item.
docs/internals/rekey-protocol.md explains the counts.
"""

import math
import time
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import Executor, ThreadPoolExecutor
from dataclasses import dataclass
from typing import TypeVar

from keyhop.dynamodb.requester import ItemCalls
from keyhop.dynamodb.units import MOST_KEYS_AT_ONCE
from keyhop.dynamodb.values import Item, Key
from keyhop.rekey.compare.rows import (
    DIFFERENCES,
    UNSETTLED,
    Candidate,
    Look,
    look_at,
    verdict,
)
from keyhop.rekey.transform import Transform, key_text
from keyhop.scan.skip_scan import Page

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
BYPASSED = "bypassed"
"""The other counts of candidates. `in_flight`: they differed, and were equal at a later look, or
were changing and have been settled. `equal`: they were equal at the first look, and had no
counterpart because only a sample was read. `foreign`: surplus items from which no source key
follows, which no repair deletes. `unsettled`: they differed at every look, were changing, and were
not settled.
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

    def look(self, candidates: Sequence[Candidate]) -> list[Candidate]:
        """Look for the first time at as many of the first candidates as the time allows, and return
        these.
        """
        looks = self._look(candidates, FIRST_LOOK_SECONDS)
        for candidate, look in zip(candidates, looks, strict=False):
            candidate.look, candidate.was_equal_at_once = look, look.finding == "equal"
            candidate.is_changing = candidate.is_repaired = candidate.is_bypassed = False
        return list(candidates[: len(looks)])

    def look_again(self, candidates: Sequence[Candidate]) -> Iterator[float]:
        """Look again at differing places, until they are equal or the difference is confirmed.
        Yield the minimum seconds to wait before each look.
        """
        differing = _differing(candidates)
        for number, seconds in enumerate(self.pauses, 1):
            if not differing:
                return
            yield seconds
            if number == len(self.pauses):
                yield from self._until_the_stream_has_come(seconds)
            for candidate, look in zip(differing, self._look(differing), strict=True):
                candidate.is_changing = verdict(candidate.look, look) == "changing"
                candidate.look = look
            differing = _differing(differing)

    def settled(self, candidates: Sequence[Candidate]) -> tuple[Counter[str], list[Candidate]]:
        """Settle places that still differ; return all counts, and what differs or is unsettled."""
        unequal = _differing(candidates)
        if self.settle is not None:
            self._in_threads(REPAIRING_THREADS, self._repair, _groups(unequal, REPAIRS_AT_ONCE))
        differing = [each for each in unequal if not (each.is_changing and each.is_repaired)]
        counts: Counter[str] = Counter()
        at_once = sum(candidate.was_equal_at_once for candidate in candidates)
        counts[EQUAL if self.sampled else IN_FLIGHT] += at_once
        counts[IN_FLIGHT] += len(candidates) - at_once - len(differing)
        for candidate in differing:
            counts[candidate.finding] += 1
            counts[FOREIGN] += candidate.finding == "surplus" and candidate.look.is_foreign
            counts[REPAIRED] += candidate.is_repaired
            counts[BYPASSED] += candidate.is_bypassed
        return +counts, differing

    def _until_the_stream_has_come(self, waited: float) -> Iterator[float]:
        """Yield seconds to wait until the stream's lag, which may grow, has passed."""
        while (remaining := min(MOST_LAG_SECONDS, self.lag()) - waited) > 0:
            yield remaining
            waited += remaining

    def _repair(self, candidates: Sequence[Candidate]) -> None:
        """Settle each place for all of its owners.

        A place that was not changing is repaired if it is equal afterwards. If it is not, it may
        have begun to change, so it is settled again, a few times. A place that was changing before
        need not be equal at any moment: it is repaired if all of its claims were settled.
        """
        remaining = [*candidates]
        for _ in range(MOST_REPAIRS):
            # Read every time, as new stragglers may be recorded at any time.
            allowed = set(map(id, self.may_settle(remaining)))
            for candidate in remaining:
                candidate.is_bypassed = id(candidate) not in allowed
                candidate.is_repaired = not candidate.is_bypassed
            self._settle_owners([each for each in remaining if not each.is_bypassed])
            quiet = [each for each in remaining if not (each.is_changing or each.is_bypassed)]
            remaining = []
            for candidate, after in zip(quiet, self._look(quiet), strict=True):
                is_settled, candidate.is_repaired = candidate.is_repaired, after.finding == "equal"
                if is_settled and not candidate.is_repaired and candidate.owners:
                    remaining.append(candidate)
            if not remaining:
                return

    def _settle_owners(self, candidates: Sequence[Candidate]) -> None:
        """Settle places together, but the owners of one place one after the other."""
        assert self.settle is not None
        for number in range(max((len(each.owners) for each in candidates), default=0)):
            some = [each for each in candidates if number < len(each.owners)]
            pairs = [(candidate.owners[number], candidate.place) for candidate in some]
            for candidate, has_succeeded in zip(some, self.settle(pairs), strict=True):
                candidate.is_repaired = candidate.is_repaired and has_succeeded

    def _look(self, candidates: Sequence[Candidate], seconds: float = math.inf) -> list[Look]:
        """Look at candidates in several threads; start no new work after so many seconds."""
        groups = _groups(candidates, MOST_KEYS_AT_ONCE)
        ends_at = self.clock() + seconds
        looks = self._in_threads(LOOKING_THREADS, self._look_at, groups, ends_at)
        return [look for group in looks for look in group]

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

    def _look_at(self, candidates: Sequence[Candidate]) -> list[Look]:
        """Read the destination first, as its items name more owners, and then the source."""
        items = self.destination.items(candidate.place for candidate in candidates)
        current_items = [items.get(key_text(candidate.place)) for candidate in candidates]
        for candidate, item in zip(candidates, current_items, strict=True):
            owner = None if item is None else self.transform.owner_of(item)
            if owner is not None:
                candidate.add(owner)
        sources = self.source.items(owner for candidate in candidates for owner in candidate.owners)
        looks = []
        for candidate, item in zip(candidates, current_items, strict=True):
            owned = [sources.get(key_text(owner)) for owner in candidate.owners]
            source_items = [source for source in owned if source is not None]
            looks.append(look_at(self.transform, candidate.place, item, source_items))
        return looks


def _differing(candidates: Sequence[Candidate]) -> list[Candidate]:
    """Return those that were not equal at their last look."""
    return [candidate for candidate in candidates if candidate.look.finding != "equal"]


def _groups(values: Sequence[T], size: int) -> list[Sequence[T]]:
    """Return the values in groups of this size; the last one may be smaller."""
    return [values[first : first + size] for first in range(0, len(values), size)]
