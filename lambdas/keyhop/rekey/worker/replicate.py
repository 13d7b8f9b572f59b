"""The stream's worker: write the changes of one table of a pair to the other table.

The protocol decides (protocol.py), and the driver makes the requests (drive.py). This module does
the rest of a batch: its record, the control item, its reports, and the claims that it sweeps.
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
"""The age of a record after which its item is read before it is written."""

TELL_SECONDS = 3.0
"""The time for records at the end of a batch that had too little time."""

LATER_SECONDS = 0.5
"""Seconds between two reads of a control item that lets a batch neither work nor pass."""

KILLED_TIMES = 5
"""The starts without an end after which a batch is processed key by key, each recorded before: the
key that kills it next is given up, and the others continue.
"""

GiveUp = Callable[[Key, Sequence[Key]], None]
"""Receives a source key and its places in that batch; none if computing them kills the worker."""


class Replicator:
    """Replicates one direction of a pair; for one batch at a time. `transform` maps the origin to
    the target. `give_up` receives a source key that has killed the worker repeatedly.
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
        """Whether the last batch was passed: the next reads the control item before its record."""
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
        """Whether the serving table has ever changed, by the last read of the control item."""
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
        """Return a worker of one direction; `transform` always maps the source to the destination,
        and clients of `connection_of` need time-outs of two seconds. `more` is for ItemCalls.
        """
        names = (pair.source, pair.destination)
        origin, target = names if direction == "forward" else names[::-1]
        along = transform if direction == "forward" else transform.reverse
        beside = side or SideTable(connection_of(pair.side), pair.side, now=now, **more)
        origin_calls, target_calls = (
            Target(connection_of(name), name, along, direction, beside, **more)
            for name in (origin, target)
        )
        clock = connection_of(origin).clock
        return cls(
            direction,
            along,
            origin_calls,
            target_calls,
            beside,
            give_up=give_up,
            clock=clock,
            now=now,
            pool=pool,
        )

    def end_at(self, moment: float) -> None:
        """Start no request after this moment of the clock, and none about items somewhat earlier.
        Batches raise GaveUp then.
        """
        self._side.end_at(moment)
        for calls in (self._origin, self._target):
            calls.end_at(moment - TELL_SECONDS)

    def take_usage(self) -> Usage:
        """Return the usage of all three tables since the last call."""
        usage = Usage()
        for calls in (self._origin, self._target, self._side):
            usage.add(calls.usage.take())
        return usage

    def work(self, records: Sequence[Record]) -> Worked:
        """Process a batch; if this raises, the batch must be delivered again."""
        first = records[0]
        # Lambda does not name the shard; a record's id is unique in the whole stream.
        note = (str(first.get("eventID", "")), str(first["dynamodb"]["SequenceNumber"]))
        passes = self.expects_pass and self._share() == "pass"
        if passes and not self._side.has_begun(self.direction, *note):
            return self._passed(records)
        began = self._clock()
        tries = self._side.begin(self.direction, *note)
        while (share := self._share()) == "later":
            if tries:  # it was killed, and is in flight until it is processed
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
            result = self._worked(records, tries > 0, quiet_at)
        else:
            result = self._one_by_one(records, note, quiet_at, self._give_up)
        self._end(note, tries, quiet_at)
        return result

    def settle(self, source: Key, places: Iterable[Key]) -> bool:
        """Settle a source item at places that were found wrong, as `settle_all` does."""
        return all(self.settle_all([(source, place) for place in places]))

    def settle_all(self, pairs: Sequence[tuple[Key, Key]]) -> list[bool]:
        """Settle pairs of a source key and a place, all at once, and return which are settled.

        Each is recorded as a claim first, so nothing is forgotten if this is killed. A place that
        is not settled remains a claim, which batches try again. No place may occur twice: to take
        it over from its other owner would overtake the work of that owner.
        """
        claims = self._side.claim_together(self.direction, pairs)
        return self._sweeper.settle(claims, self._driver())

    def again(self, source: Key, places: Iterable[Key]) -> bool:
        """Settle a source item that was given up, at its current place and at these places."""
        key = frozen({name: source[name] for name in self._transform.source.all})
        image = self._driver().look([key]).get(key)
        now = [] if image is None or image.place is None else [image.place]
        names = self._transform.destination.all
        had = [frozen({name: place[name] for name in names}) for place in places]
        return self.settle(source, [thawed(place) for place in dict.fromkeys([*had, *now])])

    def sweep(self, most: int = MOST_CLAIMS) -> int:
        """Settle remaining claims, as no batch may come; return how many are settled."""
        return self._sweeper.sweep(self._side.claims(self.direction, most), self._driver())

    # --- a batch ---

    def _worked(self, records: Sequence[Record], is_again: bool, quiet_at: float) -> Worked:
        batch = changes_of(records, self._transform)
        result = Worked(len(records), len(batch.changes))
        driver = self._driver(result.failures.append)
        tasks = [self._task(driver, change, is_again, quiet_at) for change in batch.changes]
        driver.run(tasks)
        result.left = sum(task.is_left for task in tasks)
        result.unmapped = self._tell_unmapped(batch.changes)
        touched = {place for task in tasks for place in task.values}
        result.swept = self._swept(touched, driver, result)
        self._see_markers(batch.markers)
        result.lag = max(0.0, self._now() - newest_of(records))
        self._side.tell_lag(self.direction, result.lag)
        return result

    def _see_markers(self, markers: Mapping[str, str]) -> None:
        for marker, record in markers.items():
            self._side.see_marker(marker, {"record": record})

    def _swept(self, touched: set[Any], driver: Driver, result: Worked) -> int:
        try:
            return self._sweeper.sweep(self._sweeper.due(touched, driver.claims), driver)
        except GaveUp as error:  # the claims remain for other batches
            result.failures.append(error)
            return 0

    def _one_by_one(
        self, records: Sequence[Record], note: tuple[str, str], quiet_at: float, give_up: GiveUp
    ) -> Worked:
        """Process a batch key by key, because one of its items kills the worker."""
        result = Worked()
        names = self._transform.source
        groups = {
            key_text(thawed(key_in(group[0], names))): group for group in by_key(records, names)
        }
        suspect, was_told, skipped = self._side.suspect(self.direction, *note)
        if suspect in groups:  # a repeated batch has the same beginning, and may be shorter
            places = self._places(groups[suspect]) if was_told else []
            give_up(from_json(json.loads(suspect)), places)
            skipped = [*skipped, suspect]
        for key, group in groups.items():
            if key in skipped:
                result.given_up += 1
                continue
            try:
                self._side.suspect_now(self.direction, *note, key, False, skipped)
                self._places(group)
                self._side.suspect_now(self.direction, *note, key, True, skipped)
                result.add(self._worked(group, True, quiet_at))
            except Exception:
                self._side.suspect_now(self.direction, *note, "", False, skipped)
                raise
        self._side.suspect_now(self.direction, *note, "", False, skipped)
        return result

    def _places(self, records: Sequence[Record]) -> list[Key]:
        """Return the places of all images; this calls the users' functions the most."""
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
        """Record which suspects are unmappable now, and return how many."""
        suspects = [change.source for change in changes if change.unmapped]
        images = self._driver().look(suspects)
        count = 0
        for source in suspects:
            image = images.get(source)
            if image is not None and image.why_unmappable:
                self._side.unmapped(self.direction, thawed(source), image.why_unmappable)
                count += 1
            else:
                self._side.mapped(self.direction, thawed(source))
        return count

    def _passed(self, records: Sequence[Record]) -> Worked:
        """Drop records of the table that does not serve, and record the stragglers among them.

        There are none before the first cutover, when only the worker writes to the destination. The
        reads take seconds. If this table serves again by then, its writers are right, and this
        batch has delayed the later ones: then it is processed.
        """
        self.expects_pass = True
        result = Worked(len(records), share="pass")
        if not self._has_turned:
            return result
        batch = changes_of(records, self._transform)
        side = origin_of(self.direction)
        unsettled = {
            frozen(straggler.key): straggler
            for straggler in self._side.unsettled()
            if straggler.side == side
        }
        for change in batch.changes:  # a deleted item may have no other trace of its places
            if (straggler := unsettled.get(change.source)) is not None:
                change.places |= {frozen(at): {} for at in straggler.places}
        bypassing = stragglers_among(
            batch.changes,
            self._transform,
            self._origin,
            self._target,
            lambda: lag_of(self._side, other_direction(self.direction), self._now()),
        )
        if bypassing and self._share() != "pass":
            return self.work(records)
        for bypass in bypassing:
            has_form = bypass.image is None or bypass.image.place is not None
            places = [thawed(at) for at in bypass.places]
            self._side.straggler(side, thawed(bypass.source), places, has_form)
        for straggler in self._resolved(side, {change.source for change in batch.changes}):
            self._side.resolve(straggler)
        self._see_markers(batch.markers)
        result.stragglers = len(bypassing)
        return result

    def _resolved(self, side: Side, touched: Set[Any]) -> Iterator[Straggler]:
        """Yield stragglers that are resolved: those of these keys, and some others in turn."""
        unsettled = [straggler for straggler in self._side.unsettled() if straggler.side == side]
        first = int(self._now() * 1000) % max(1, len(unsettled))
        unsettled = unsettled[first:] + unsettled[:first]
        now = [straggler for straggler in unsettled if frozen(straggler.key) in touched]
        now += [straggler for straggler in unsettled if frozen(straggler.key) not in touched][
            :MOST_CLAIMS
        ]
        for at in range(0, len(now), MOST_CLAIMS):
            some = now[at : at + MOST_CLAIMS]
            yield from resolved_among(some, self._transform, self._origin, self._target)

    # --- around ---

    def _driver(self, failed: Callable[[Exception], None] = lambda error: None) -> Driver:
        return Driver(
            self.direction,
            self._transform,
            self._origin,
            self._target,
            self._side,
            self._clock,
            failed,
            self._pool,
        )

    def _share(self) -> Share:
        control = self._side.control()
        self._has_turned = control.turns > 0
        return control.share_of(self.direction)

    def _end(self, note: tuple[str, str], tries: int, quiet_at: float) -> None:
        self._driver().wait_until(quiet_at)
        self._side.end(self.direction, *note, tries + 1)
