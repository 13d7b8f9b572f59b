"""Strong looks at candidates: what differs at three looks, with pauses between them, is real.

But only if nothing has changed on either side from the second look to the third: an item that is
written to all the time differs at each look, and is in flight. And the third look comes when what
was there at the second must have come through the stream, by the lag that was told last.
"""

from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from keyhop.dynamodb.items import Item
from keyhop.dynamodb.values import Key
from keyhop.rekey.compare.look import Finding, judged
from keyhop.rekey.compare.rows import Candidate
from keyhop.rekey.digest import item_digest
from keyhop.rekey.side.rows import key_text
from keyhop.rekey.transform import Transform
from keyhop.scan.item_calls import MOST_KEYS_AT_ONCE, ItemCalls

Settle = Callable[[Key, Sequence[Key]], Any]
"""Bring these places of the destination to what a source key says now (replicate.Replicator)."""

PAUSES = (2.0, 6.0)
"""Seconds before the second look and the third: longer than the stream is behind, of a table that
may be cut over (p99 under 2 s)."""

MOST_LAG_SECONDS = 40.0
"""For which the third look waits, as a slice has to be long enough for it (worker.CALM_SLICES);
behind a longer lag it may find real what is in flight, and the lag keeps the gate of a cutover shut
as well."""

IN_FLIGHT, EQUAL, REPAIRED, FOREIGN = "in_flight", "equal", "repaired", "foreign"
"""What else becomes of a candidate. equal: at the first look, of a row that had no counterpart as
only a sample was read. foreign: of the surplus, items that are of no source item at all."""


class Reads(ItemCalls):
    """Items of one table, by their keys, strongly consistent."""

    def items(self, keys: Iterable[Key]) -> dict[str, Item]:
        """Those that are there, by key_text; keys may come twice."""
        wanted = list({key_text(key): key for key in keys}.values())
        found: dict[str, Item] = {}
        for first in range(0, len(wanted), MOST_KEYS_AT_ONCE):
            for item in self._read_batch(wanted[first : first + MOST_KEYS_AT_ONCE], {}):
                found[key_text({name: item[name] for name in wanted[0]})] = item
        return found


@dataclass(slots=True)
class Looks:
    """sampled: whether rows without a counterpart are usual. settle: None to repair nothing.
    lag: seconds by which the stream is behind now.
    """

    transform: Transform
    source: Reads
    destination: Reads
    settle: Settle | None = None
    sampled: bool = False
    pauses: Sequence[float] = PAUSES
    lag: Callable[[], float] = lambda: 0.0

    def settled(
        self, candidates: Sequence[Candidate], pause: Callable[[float], None]
    ) -> tuple[Counter[str], list["Found"]]:
        """What they come to: counts, and the real differences."""
        found = self._look(candidates)
        left = [one for one in found if one.finding != "equal"]
        counts = Counter({EQUAL if self.sampled else IN_FLIGHT: len(found) - len(left)})
        before = left
        for number, seconds in enumerate(self.pauses, 1):
            if not left:
                return +counts, []
            before = left
            pause(seconds)
            if number == len(self.pauses):
                self._await_the_stream(seconds, pause)
            found = self._look([one.candidate for one in before])
            left = [one for one in found if one.finding != "equal"]
            counts[IN_FLIGHT] += len(found) - len(left)
        seen = {id(one.candidate): one.state for one in before}
        real = [one for one in left if one.state == seen[id(one.candidate)]]
        counts[IN_FLIGHT] += len(left) - len(real)
        for one in real:
            counts[one.finding] += 1
            counts[FOREIGN] += one.finding == "surplus" and not one.candidate.owners
        if self.settle is not None and real:
            counts[REPAIRED] += self._repair(real)
        return +counts, real

    def _await_the_stream(self, waited: float, pause: Callable[[float], None]) -> None:
        """Until its lag has passed, which may grow meanwhile."""
        while (left := min(MOST_LAG_SECONDS, self.lag()) - waited) > 0:
            pause(left)
            waited += left

    def _repair(self, real: Sequence["Found"]) -> int:
        """How many were put right."""
        assert self.settle is not None
        for one in real:
            for owner in one.candidate.owners:
                self.settle(owner, [one.candidate.place])
        again = self._look([one.candidate for one in real])
        for before, after in zip(real, again, strict=True):
            before.is_repaired = after.finding == "equal"
        return sum(one.is_repaired for one in real)

    def _look(self, candidates: Sequence[Candidate]) -> list["Found"]:
        """The destination first, as its items name more owners."""
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
            item = there.get(key_text(one.place))
            finding = judged(self.transform, one.place, item, items)
            found.append(Found(one, finding, [item_digest(each) for each in (item, *here) if each]))
        return found


@dataclass(slots=True)
class Found:
    """A candidate, and what it was at the last look. state: digests of all that was there."""

    candidate: Candidate
    finding: Finding
    state: list[bytes]
    is_repaired: bool = False
