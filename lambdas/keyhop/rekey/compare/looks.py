"""Look at candidates three times, strongly consistent, with pauses; settle what still differs.

The third look comes when what was there at the second must have come through the stream, by the lag
that was told last. What differs then is settled for each of its owners, whether or not it has
changed since the second look: settling is safe under traffic, and a place that changes may still
hold an item that no record of the stream leads to. A changing place that was settled is no
difference; without repair, it is counted as unsettled, and keeps a verify from being clean.
"""

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

from keyhop.dynamodb.items import Item
from keyhop.dynamodb.values import Key
from keyhop.rekey.compare.look import DIFFERENCES, Finding, Look, look_at, verdict
from keyhop.rekey.compare.rows import Candidate
from keyhop.rekey.side.rows import key_text
from keyhop.rekey.transform import Transform
from keyhop.scan.item_calls import MOST_KEYS_AT_ONCE, ItemCalls
from keyhop.scan.skip_scan import Page

_RANGE = ("Segment", "TotalSegments", "ExclusiveStartKey", "Limit")
"""The parameters of a Scan that say which items a page has."""

Settle = Callable[[Key, Sequence[Key]], bool]
"""Bring these places of the destination to what a source key says now (replicate.Replicator), and
return whether that succeeded; what did not succeed stays a claim."""

PAUSES = (2.0, 6.0)
"""Seconds before the second look and the third: longer than the stream is behind, of a table that
may be cut over (p99 under 2 s)."""

MOST_REPAIRS = 3
"""How often a place is settled that was quiet, and differs after it was settled."""

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
    """

    transform: Transform
    source: Reads
    destination: Reads
    settle: Settle | None = None
    sampled: bool = False
    pauses: Sequence[float] = PAUSES
    lag: Callable[[], float] = lambda: 0.0
    may_settle: Callable[[Sequence[Candidate]], Sequence[Candidate]] = lambda candidates: candidates

    def settled(
        self, candidates: Sequence[Candidate], pause: Callable[[float], None]
    ) -> tuple[Counter[str], list["Found"]]:
        """Look at candidates until they are equal or really differ, and settle what differs.

        Args:
            candidates: Places where the two tables seem to differ.
            pause: Waits for so many seconds.

        Returns:
            The counts of all candidates, and those that are a difference or are unsettled.
        """
        left = self._look(candidates)
        counts: Counter[str] = Counter()
        before: dict[int, Look] = {}
        for number, seconds in enumerate((None, *self.pauses)):
            if seconds is not None:
                before = {id(one.candidate): one.look for one in left}
                pause(seconds)
                if number == len(self.pauses):
                    self._await_the_stream(seconds, pause)
                left = self._look([one.candidate for one in left])
            looked_at, left = len(left), [one for one in left if one.look.finding != "equal"]
            is_first = seconds is None
            counts[EQUAL if self.sampled and is_first else IN_FLIGHT] += looked_at - len(left)
            if not left:
                return +counts, []
        for one in left:
            one.is_changing = verdict(before[id(one.candidate)], one.look) == "changing"
        if self.settle is not None:
            self._repair(left)
        differing = [one for one in left if not (one.is_changing and one.is_repaired)]
        counts[IN_FLIGHT] += len(left) - len(differing)
        for one in differing:
            counts[one.finding] += 1
            counts[FOREIGN] += one.finding == "surplus" and one.look.is_foreign
            counts[REPAIRED] += one.is_repaired
            counts[BYPASSED] += one.is_bypassed
        return +counts, differing

    def _await_the_stream(self, waited: float, pause: Callable[[float], None]) -> None:
        """Wait until the stream's lag has passed, which may grow meanwhile."""
        while (left := min(MOST_LAG_SECONDS, self.lag()) - waited) > 0:
            pause(left)
            waited += left

    def _repair(self, found: Sequence["Found"]) -> None:
        """Settle each place for all of its owners.

        A place that was not changing is repaired if it is equal afterwards. One that is not may
        have begun to change, so it is settled again, a few times. A place that was changing before
        need not be equal at any moment: it is repaired if all of its claims were settled.
        """
        assert self.settle is not None
        left = [*found]
        for _ in range(MOST_REPAIRS):
            for one in left:  # each is asked for by itself: stragglers are noted meanwhile
                one.is_bypassed = not self.may_settle([one.candidate])
                one.is_repaired = False
                if not one.is_bypassed:
                    place = [one.candidate.place]
                    succeeded = [self.settle(owner, place) for owner in one.candidate.owners]
                    one.is_repaired = all(succeeded)
            quiet = [one for one in left if not (one.is_changing or one.is_bypassed)]
            again = self._look([one.candidate for one in quiet])
            left = []
            for one, after in zip(quiet, again, strict=True):
                is_settled, one.is_repaired = one.is_repaired, after.look.finding == "equal"
                if is_settled and not one.is_repaired and one.candidate.owners:
                    left.append(one)
            if not left:
                return

    def _look(self, candidates: Sequence[Candidate]) -> list["Found"]:
        """Read the destination first, as its items name more owners, and then the source."""
        there = self.destination.items(one.place for one in candidates)
        for one in candidates:
            item = there.get(key_text(one.place))
            owner = None if item is None else self.transform.owner_of(item)
            if owner is not None:
                one.add(owner)
        sources = self.source.items(owner for one in candidates for owner in one.owners)
        found = []
        for one in candidates:
            here = [sources.get(key_text(owner)) for owner in one.owners]
            items = [item for item in here if item is not None]
            look = look_at(self.transform, one.place, there.get(key_text(one.place)), items)
            found.append(Found(one, look))
        return found


@dataclass(slots=True)
class Found:
    """A candidate, with the last look at it.

    Attributes:
        is_changing: Whether it had changed between the last two looks.
        is_repaired: Whether it was settled.
        is_bypassed: Whether it has an unsettled straggler, and was left alone.
    """

    candidate: Candidate
    look: Look
    is_changing: bool = False
    is_repaired: bool = False
    is_bypassed: bool = False

    @property
    def finding(self) -> Finding | Literal["unsettled"]:
        """The name under which it is counted."""
        return UNSETTLED if self.is_changing else self.look.finding
