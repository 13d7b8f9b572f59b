"""The stream's worker: what has changed in one table of a pair is written into the other.

The protocol decides (protocol.py), the driver asks (drive.py); here is what a batch does around
that: its note, the control item, what it tells, and the claims that it sweeps.
"""

import json
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence, Set
from concurrent.futures import Executor, ThreadPoolExecutor
from typing import Any

from keyhop.dynamodb.client import Connection
from keyhop.dynamodb.usage import Usage
from keyhop.dynamodb.values import Key, from_json
from keyhop.errors import GaveUp
from keyhop.rekey.control import Direction, Share, Side, origin_of, other_direction
from keyhop.rekey.pair import Pair
from keyhop.rekey.side.layout import Straggler
from keyhop.rekey.side.rows import key_text
from keyhop.rekey.side.table import SideTable
from keyhop.rekey.transform import Transform
from keyhop.rekey.worker.drive import Driver, Task
from keyhop.rekey.worker.images import (
    Change,
    Record,
    by_key,
    changes_of,
    frozen,
    key_in,
    newest_of,
    thawed,
)
from keyhop.rekey.worker.protocol import WAIT_SECONDS
from keyhop.rekey.worker.stragglers import lag_of, resolved_among, stragglers_among
from keyhop.rekey.worker.sweep import MOST_CLAIMS, Sweeper
from keyhop.rekey.worker.target import Target
from keyhop.rekey.worker.worked import Worked

OLD_SECONDS = 60.0
"""Of a record: from then on its item is looked at before it is written."""

TELL_SECONDS = 3.0
"""For what is noted at the end of a batch that had too little time."""

LATER_SECONDS = 0.5
"""Between two looks at a control item that lets a batch neither work nor pass."""

KILLED_TIMES = 5
"""A batch that has begun so often and never ended is worked key by key from then on, each noted
before: whichever it dies of next is given up, and the others go on."""

GiveUp = Callable[[Key, Sequence[Key]], None]
"""Is told of a source key and its places in that batch; none, if telling them is what kills."""


class Replicator:
    """One direction of a pair; for one batch at a time.

    transform: from the origin to the target, so of the reverse direction `Transform.reverse`.
    origin, target: requests of the table that is replicated, and of the other. give_up: is told of
    a source key that has killed the worker again and again. now: seconds since 1970. pool: makes
    one of so many threads, for writes.
    """

    def __init__(
        self,
        direction: Direction,
        transform: Transform,
        origin: Target,
        target: Target,
        side: SideTable,
        *,
        give_up: GiveUp | None = None,
        clock: Callable[[], float] = time.monotonic,
        now: Callable[[], float] = time.time,
        pool: Callable[[int], Executor] = ThreadPoolExecutor,
        expects_pass: bool = False,
    ) -> None:
        self.expects_pass = expects_pass
        """Whether the last batch was passed: then the next one looks before it notes."""
        self.direction = direction
        self._transform = transform
        self._origin = origin
        self._target = target
        self._side = side
        self._give_up = give_up
        self._clock = clock
        self._now = now
        self._pool = pool
        self._has_turned = False
        """Whether the serving table has ever changed, as of the last look at the control item."""
        names = transform.source
        self._sweeper = Sweeper(direction, names, side, self._share, now)

    @classmethod
    def of(
        cls,
        pair: Pair,
        direction: Direction,
        transform: Transform,
        connection_of: Callable[[str], Connection],
        *,
        side: SideTable | None = None,
        give_up: GiveUp | None = None,
        now: Callable[[], float] = time.time,
        pool: Callable[[int], Executor] = ThreadPoolExecutor,
        **more: Any,
    ) -> "Replicator":
        """transform: from source to destination, whatever the direction. connection_of: by a
        table's name; clients should have time-outs of two seconds. more: as of ItemCalls.
        """
        names = (pair.source, pair.destination)
        origin, target = names if direction == "forward" else names[::-1]
        along = transform if direction == "forward" else transform.reverse
        beside = side or SideTable(connection_of(pair.side), pair.side, now=now, **more)
        here, there = (
            Target(connection_of(name), name, along, direction, beside, **more)
            for name in (origin, target)
        )
        clock = connection_of(origin).clock
        return cls(
            direction, along, here, there, beside, give_up=give_up, clock=clock, now=now, pool=pool
        )

    def end_at(self, moment: float) -> None:
        """Begin no request after this moment of the clock, and none about items somewhat earlier:
        batches then raise GaveUp.
        """
        self._side.end_at(moment)
        for calls in (self._origin, self._target):
            calls.end_at(moment - TELL_SECONDS)

    def take_usage(self) -> Usage:
        """Of all three tables, since it was taken last."""
        whole = Usage()
        for calls in (self._origin, self._target, self._side):
            whole.add(calls.usage.take())
        return whole

    def work(self, records: Sequence[Record]) -> Worked:
        """Work a batch; it is to come again if this raises."""
        first = records[0]
        # Lambda does not say which shard; a record's id is its own in the whole stream.
        note = (str(first.get("eventID", "")), str(first["dynamodb"]["SequenceNumber"]))
        passes = self.expects_pass and self._share() == "pass"
        if passes and not self._side.has_begun(self.direction, *note):
            return self._passed(records)
        began = self._clock()
        tries = self._side.begin(self.direction, *note)
        while (share := self._share()) == "later":
            if tries:  # it was killed: until it has been worked it is under way
                self._target.pause(LATER_SECONDS)
            else:
                self._end(note, tries, 0.0)
                self._target.pause(LATER_SECONDS)
                began = self._clock()
                tries = self._side.begin(self.direction, *note)
        quiet_at = began + WAIT_SECONDS if tries else 0.0
        if share == "pass":
            self._end(note, tries, quiet_at)
            return self._passed(records)
        self.expects_pass = False
        if tries < KILLED_TIMES or self._give_up is None:
            worked = self._worked(records, tries > 0, quiet_at)
        else:
            worked = self._one_by_one(records, note, quiet_at, self._give_up)
        self._end(note, tries, quiet_at)
        return worked

    def settle(self, source: Key, places: Iterable[Key]) -> bool:
        """Settle a source item at these places, which verify or somebody else has found wrong.

        Returns:
            Whether all are settled; see `settle_all`.
        """
        return all(self.settle_all([(source, place) for place in places]))

    def settle_all(self, pairs: Sequence[tuple[Key, Key]]) -> list[bool]:
        """Settle source items at places, all at once, and return which of them are settled.

        Each is noted as a claim first, so nothing is forgotten if this is killed. What is not
        settled stays a claim, which batches try again.

        Args:
            pairs: A source key and a place each. No place may come twice: who takes it over from
                its other owner would overtake the work of that one.
        """
        claims = self._side.claim_together(self.direction, pairs)
        return self._sweeper.settle(claims, self._driver())

    def again(self, source: Key, places: Iterable[Key]) -> bool:
        """Settle a source item that was given up: where it lies now, and at all places that it had
        in its batch. Returns whether it is settled.
        """
        key = frozen({name: source[name] for name in self._transform.source.all})
        image = self._driver().look([key]).get(key)
        now = [] if image is None or image.place is None else [image.place]
        names = self._transform.destination.all
        had = [frozen({name: place[name] for name in names}) for place in places]
        return self.settle(source, [thawed(place) for place in dict.fromkeys([*had, *now])])

    def sweep(self, most: int = MOST_CLAIMS) -> int:
        """Try again what is left to do, as no batch may come; returns how much is settled."""
        return self._sweeper.sweep(self._side.claims(self.direction, most), self._driver())

    # --- a batch ---

    def _worked(self, records: Sequence[Record], is_again: bool, quiet_at: float) -> Worked:
        told = changes_of(records, self._transform)
        worked = Worked(len(records), len(told.changes))
        driver = self._driver(worked.failures.append)
        tasks = [self._task(driver, one, is_again, quiet_at) for one in told.changes]
        driver.run(tasks)
        worked.left = sum(task.is_left for task in tasks)
        worked.unmapped = self._tell_unmapped(told.changes)
        touched = {place for task in tasks for place in task.values}
        worked.swept = self._swept(touched, driver, worked)
        self._see_markers(told.markers)
        worked.lag = max(0.0, self._now() - newest_of(records))
        self._side.tell_lag(self.direction, worked.lag)
        return worked

    def _see_markers(self, markers: Mapping[str, str]) -> None:
        for marker, record in markers.items():
            self._side.see_marker(marker, {"record": record})

    def _swept(self, touched: set[Any], driver: Driver, worked: Worked) -> int:
        try:
            return self._sweeper.sweep(self._sweeper.due(touched, driver.claims), driver)
        except GaveUp as error:  # they stay, for other batches; this one is done
            worked.failures.append(error)
            return 0

    def _one_by_one(
        self, records: Sequence[Record], note: tuple[str, str], quiet_at: float, give_up: GiveUp
    ) -> Worked:
        """A batch that something in it kills."""
        whole = Worked()
        names = self._transform.source
        groups = {key_text(thawed(key_in(one[0], names))): one for one in by_key(records, names)}
        suspect, was_told, skipped = self._side.suspect(self.direction, *note)
        if suspect in groups:  # a repeat begins alike, and may end sooner
            places = self._places(groups[suspect]) if was_told else []
            give_up(from_json(json.loads(suspect)), places)
            skipped = [*skipped, suspect]
        for key, group in groups.items():
            if key in skipped:
                whole.given_up += 1
                continue
            try:
                self._side.suspect_now(self.direction, *note, key, False, skipped)
                self._places(group)
                self._side.suspect_now(self.direction, *note, key, True, skipped)
                whole.add(self._worked(group, True, quiet_at))
            except Exception:
                self._side.suspect_now(self.direction, *note, "", False, skipped)
                raise
        self._side.suspect_now(self.direction, *note, "", False, skipped)
        return whole

    def _places(self, records: Sequence[Record]) -> list[Key]:
        """Of all images, which is more work than any other for a function of somebody's."""
        changes = changes_of(records, self._transform).changes
        return [thawed(place) for change in changes for place in change.places]

    def _task(self, driver: Driver, change: Change, is_again: bool, quiet_at: float) -> Task:
        is_old = self._now() - change.newest > OLD_SECONDS
        places = tuple(change.places)
        work = driver.protocol.begin(
            change.source, places, change.image, is_again or is_old, waits=is_again
        )
        return Task(work, change.places, change.bytes, quiet_at)

    def _tell_unmapped(self, changes: Sequence[Change]) -> int:
        """Whose images have no form there, as they are now; returns how many have none."""
        suspects = [change.source for change in changes if change.unmapped]
        images = self._driver().look(suspects)
        left = 0
        for source in suspects:
            image = images.get(source)
            if image is not None and image.why_unmappable:
                self._side.unmapped(self.direction, thawed(source), image.why_unmappable)
                left += 1
            else:
                self._side.mapped(self.direction, thawed(source))
        return left

    def _passed(self, records: Sequence[Record]) -> Worked:
        """Drop records of the table that does not serve, and note the stragglers among them.

        Before the first cutover there are none: all that is written to the destination is then the
        worker's own. The looks take seconds. If this table serves again by then, its writers are
        right, and this batch has delayed those after it: then it is worked.
        """
        self.expects_pass = True
        worked = Worked(len(records), share="pass")
        if not self._has_turned:
            return worked
        told = changes_of(records, self._transform)
        side = origin_of(self.direction)
        noted = {frozen(one.key): one for one in self._side.unsettled() if one.side == side}
        for change in told.changes:  # one that is deleted may leave no other trace of its places
            if (straggler := noted.get(change.source)) is not None:
                change.places |= {frozen(at): {} for at in straggler.places}
        found = stragglers_among(
            told.changes,
            self._transform,
            self._origin,
            self._target,
            lambda: lag_of(self._side, other_direction(self.direction), self._now()),
        )
        if found and self._share() != "pass":
            return self.work(records)
        for one in found:
            has_form = one.image is None or one.image.place is not None
            places = [thawed(at) for at in one.places]
            self._side.straggler(side, thawed(one.source), places, has_form)
        for straggler in self._resolved(side, {one.source for one in told.changes}):
            self._side.resolve(straggler)
        self._see_markers(told.markers)
        worked.stragglers = len(found)
        return worked

    def _resolved(self, side: Side, touched: Set[Any]) -> Iterator[Straggler]:
        """Yield stragglers that have come to an end: of these keys, and of some others in turn."""
        known = [one for one in self._side.unsettled() if one.side == side]
        first = int(self._now() * 1000) % max(1, len(known))
        known = known[first:] + known[:first]
        now = [one for one in known if frozen(one.key) in touched]
        now += [one for one in known if frozen(one.key) not in touched][:MOST_CLAIMS]
        for at in range(0, len(now), MOST_CLAIMS):
            some = now[at : at + MOST_CLAIMS]
            yield from resolved_among(some, self._transform, self._origin, self._target)

    # --- around ---

    def _driver(self, left: Callable[[Exception], None] = lambda error: None) -> Driver:
        return Driver(
            self.direction,
            self._transform,
            self._origin,
            self._target,
            self._side,
            self._clock,
            left,
            self._pool,
        )

    def _share(self) -> Share:
        control = self._side.control()
        self._has_turned = control.turns > 0
        return control.share_of(self.direction)

    def _end(self, note: tuple[str, str], tries: int, quiet_at: float) -> None:
        self._driver().wait_until(quiet_at)
        self._side.end(self.direction, *note, tries + 1)
