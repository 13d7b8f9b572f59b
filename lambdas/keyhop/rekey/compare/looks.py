"""Take strong looks at candidates, and settle what still differs at the third one.

A row that differs at all three looks is a real difference if nothing has changed between the second
and the third. If something has changed, it may be in flight, or the change may hide a stale item:
so it is settled too, which is safe under traffic. The third look comes when what was there at the
second must have come through the stream, according to the lag that was last reported.
"""

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass

from keyhop.dynamodb.items import Item
from keyhop.dynamodb.values import Key
from keyhop.rekey.compare.look import Finding, Look, look_at, verdict
from keyhop.rekey.compare.rows import Candidate
from keyhop.rekey.side.rows import key_text
from keyhop.rekey.transform import Transform
from keyhop.scan.item_calls import MOST_KEYS_AT_ONCE, ItemCalls

Settle = Callable[[Key, Sequence[Key]], bool]
"""Bring these places of the destination to what a source key says now (replicate.Replicator), and
return whether that is done; what is not done remains as a claim."""

PAUSES = (2.0, 6.0)
"""Seconds before the second look and the third: longer than the stream is behind, of a table that
may be cut over (p99 under 2 s)."""

MOST_LAG_SECONDS = 40.0
"""For which the third look waits, as a slice has to be long enough for it (worker.CALM_SLICES);
behind a longer lag it may find real what is in flight, and the lag keeps the gate of a cutover shut
as well."""

IN_FLIGHT, EQUAL, REPAIRED, FOREIGN = "in_flight", "equal", "repaired", "foreign"
UNSETTLED, BYPASSED = "unsettled", "bypassed"
"""The other outcomes of a candidate. in_flight: it differed, and was equal at a later look or was
settled. equal: at the first look, where a row had no counterpart because only a sample was read.
foreign: of the surplus, items that belong to no source item at all. unsettled: it differed and was
changing at each look, and was not settled; nobody knows whether it is equal. bypassed: of these and
of the differences, items with an unsettled straggler, which no repair writes."""


class Reads(ItemCalls):
    """Strongly consistent reads of single items of one table."""

    def items(self, keys: Iterable[Key]) -> dict[str, Item]:
        """Return the items that exist, by the key_text of their keys; keys may come twice."""
        wanted = list({key_text(key): key for key in keys}.values())
        found: dict[str, Item] = {}
        for first in range(0, len(wanted), MOST_KEYS_AT_ONCE):
            for item in self._read_batch(wanted[first : first + MOST_KEYS_AT_ONCE], {}):
                found[key_text({name: item[name] for name in wanted[0]})] = item
        return found


@dataclass(slots=True)
class Found:
    """A candidate that still differs at the last look."""

    candidate: Candidate
    look: Look
    is_changing: bool = False
    is_repaired: bool = False
    is_bypassed: bool = False

    @property
    def finding(self) -> Finding:
        """How the place compared with the source at the last look."""
        return self.look.finding


@dataclass(slots=True)
class Looks:
    """Looks at candidates of one pair.

    Attributes:
        settle: None to repair nothing.
        sampled: Whether rows without a counterpart are usual.
        pauses: Seconds before the second look and before the third.
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
    ) -> tuple[Counter[str], list[Found]]:
        """Look at candidates until they are equal, or are known to differ.

        Returns:
            The counts of all outcomes, and each candidate that is a difference or unsettled.
        """
        counts = Counter[str]()
        last = self._look(candidates)
        before: Mapping[int, Look] = {}
        differing = [one for one in candidates if last[id(one)].finding != "equal"]
        counts[EQUAL if self.sampled else IN_FLIGHT] += len(candidates) - len(differing)
        for number, seconds in enumerate(self.pauses, 1):
            if not differing:
                return +counts, []
            pause(seconds)
            if number == len(self.pauses):
                self._await_the_stream(seconds, pause)
            looked, before = differing, last
            last = self._look(looked)
            differing = [one for one in looked if last[id(one)].finding != "equal"]
            counts[IN_FLIGHT] += len(looked) - len(differing)
        found = []
        for one in differing:
            look = last[id(one)]
            is_changing = verdict(before[id(one)], look) == "changing"
            found.append(Found(one, look, is_changing))
        if self.settle is not None and found:
            found = self._repaired(found, self.settle, counts)
        for each in found:
            counts[UNSETTLED if each.is_changing else each.finding] += 1
            counts[FOREIGN] += each.finding == "surplus" and each.look.is_foreign
        return +counts, found

    def _await_the_stream(self, waited: float, pause: Callable[[float], None]) -> None:
        """Pause until the stream's lag has passed, which may grow in the meantime."""
        while (left := min(MOST_LAG_SECONDS, self.lag()) - waited) > 0:
            pause(left)
            waited += left

    def _repaired(
        self, found: Sequence[Found], settle: Settle, counts: Counter[str]
    ) -> list[Found]:
        """Settle each for all who may own its place; return those that count as differences.

        A row that was changing is in flight if it was settled; one that was real is looked at
        again, and counts as repaired if it is equal now.
        """
        allowed = set(map(id, self.may_settle([one.candidate for one in found])))
        settled = set()
        for one in found:
            place, owners = one.candidate.place, one.candidate.owners
            one.is_bypassed = id(one.candidate) not in allowed
            counts[BYPASSED] += one.is_bypassed
            if owners and not one.is_bypassed:
                done = [settle(owner, [place]) for owner in owners]
                settled |= {id(one)} if all(done) else set()
        remaining = [one for one in found if not (one.is_changing and id(one) in settled)]
        counts[IN_FLIGHT] += len(found) - len(remaining)
        again = self._look([one.candidate for one in remaining])
        for one in remaining:
            is_equal = again[id(one.candidate)].finding == "equal"
            one.is_repaired = is_equal and not one.is_changing
            counts[REPAIRED] += one.is_repaired
        return remaining

    def _look(self, candidates: Sequence[Candidate]) -> dict[int, Look]:
        """Look at all candidates; return the looks by the candidates' identities.

        The destination is read first, as its items name more owners.
        """
        there = self.destination.items(one.place for one in candidates)
        for one in candidates:
            item = there.get(key_text(one.place))
            owner = None if item is None else self.transform.owner_of(item)
            if owner is not None:
                one.add(owner)
        sources = self.source.items(owner for one in candidates for owner in one.owners)
        looks = {}
        for one in candidates:
            here = [sources.get(key_text(owner)) for owner in one.owners]
            items = [item for item in here if item is not None]
            item = there.get(key_text(one.place))
            looks[id(one)] = look_at(self.transform, one.place, item, items)
        return looks
