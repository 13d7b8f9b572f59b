"""The stream's worker: write the changes of one table of a pair to the other table.

The protocol decides (protocol.py), and the driver makes the requests (drive.py). This module does
the rest of a batch: its record, the control item, its reports, and the claims that it sweeps.

It also finds stragglers: writes to the table that does not serve, by writers that bypass the
routers. The stream of that table also contains the writes of the other worker. They are recognised
because both tables agree about the item, at the latest when the other worker has processed it.
"""

import json
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence, Set
from concurrent.futures import Executor, ThreadPoolExecutor
from dataclasses import dataclass, field
from typing import Any

from keyhop.dynamodb.client import Connection
from keyhop.dynamodb.units import MOST_KEYS_AT_ONCE
from keyhop.dynamodb.usage import Usage
from keyhop.dynamodb.values import Item, Key, from_json, same_item
from keyhop.errors import GaveUp
from keyhop.rekey.control import Direction, Share, Side, origin_of, other_direction
from keyhop.rekey.pair import Pair
from keyhop.rekey.side.layout import LAG, Straggler
from keyhop.rekey.side.table import SideTable
from keyhop.rekey.standing import STALE_SECONDS
from keyhop.rekey.transform import Transform, key_text
from keyhop.rekey.worker.drive import MOST_CLAIMS, Driver, Target, Task
from keyhop.rekey.worker.images import (
    Change,
    FrozenKey,
    Image,
    Record,
    by_key,
    changes_of,
    frozen,
    key_in,
    newest_of,
    thawed,
)
from keyhop.rekey.worker.protocol import WAIT_SECONDS
from keyhop.wording import counted


@dataclass(slots=True)
class Worked:
    """The result of a batch; `lag` is the age of its newest record at its end, in seconds. `left`
    are works that became claims, `stragglers` writes that bypassed the router, `unmapped` keys
    whose item cannot be mapped, and `given_up` keys that killed the worker repeatedly.
    """

    records: int = 0
    keys: int = 0
    lag: float = 0.0
    swept: int = 0
    left: int = 0
    stragglers: int = 0
    unmapped: int = 0
    given_up: int = 0
    share: Share = "work"
    failures: list[Exception] = field(default_factory=list)

    def add(self, part: "Worked") -> None:
        """Add the result of a part of the batch."""
        for name in ("records", "keys", "swept", "left", "unmapped"):
            setattr(self, name, getattr(self, name) + getattr(part, name))
        self.lag = max(self.lag, part.lag)
        self.failures += part.failures


LOOKS_AT_SECONDS = (0.0, 1.0, 4.0)
"""The seconds before each look. A write is a straggler if the tables disagree about its item at
each look, and the item in one of the two tables has not changed since the first. Reason: the other
worker makes both agree. It would have changed this table's item, and does that only if the other
table's item has changed. By its lag, it has processed the item before the last look.
"""

MOST_LAG_SECONDS = 25.0
"""The longest lag of the other worker, for a batch that has 45 seconds. If the lag is longer,
the batch is delivered again: a write that is only delayed looks like a straggler until then.
"""


def lag_of(side: SideTable, direction: Direction, now: float) -> float:
    """Return the seconds by which a direction is behind; 0 without a recent report."""
    report = side.told(f"{LAG}.{direction}") or {"at": 0.0}
    return float(report["seconds"]) if now - report["at"] <= STALE_SECONDS else 0.0


def stragglers_among(
    changes: Sequence[Change],
    transform: Transform,
    origin: Target,
    target: Target,
    lag: Callable[[], float],
) -> list[Change]:
    """Return the changes of the origin whose item differs from the one in the target. Raise GaveUp
    if the other worker, which is `lag` seconds behind now, is too far behind for a decision.
    """
    suspects = list(changes)
    first: dict[FrozenKey, _Look] = {}
    for seconds in LOOKS_AT_SECONDS:
        if not suspects:
            break
        if seconds == LOOKS_AT_SECONDS[-1]:
            behind = lag()
            if behind > MOST_LAG_SECONDS:
                raise GaveUp(
                    f"The other direction is {counted(behind, 'second')} behind: which writes "
                    "bypassed the routers is known when it has caught up."
                )
            seconds = max(seconds, behind)
        if seconds:
            origin.pause(seconds)
        differing = []
        for at in range(0, len(suspects), MOST_KEYS_AT_ONCE):
            some = suspects[at : at + MOST_KEYS_AT_ONCE]
            for change, look in _looks(some, transform, origin, target):
                before = first.setdefault(change.source, look)
                if look.differs and (look.is_here_as(before) or look.is_there_as(before)):
                    differing.append(change)
        suspects = differing
    return suspects


def resolved_among(
    stragglers: Sequence[Straggler], transform: Transform, origin: Target, target: Target
) -> list[Straggler]:
    """Return the stragglers of the origin about whose items both tables agree now: later writes
    have replaced them, or the other worker was further behind than it had reported.
    """
    if not stragglers:
        return []
    changes = [
        Change(frozen(straggler.key), {frozen(at): {} for at in straggler.places})
        for straggler in stragglers
    ]
    looks = [look for _, look in _looks(changes, transform, origin, target)]
    return [
        straggler for straggler, look in zip(stragglers, looks, strict=True) if not look.differs
    ]


@dataclass(frozen=True, slots=True)
class _Look:
    """An item in the origin, and the item that the other table maps to; None if there is none. The
    place of the first in the other table is None if it cannot be mapped.
    """

    own: Item | None
    mapped: Item | None
    place: FrozenKey | None

    @property
    def differs(self) -> bool:
        return not _same(self.own, self.mapped)

    def is_here_as(self, before: "_Look") -> bool:
        return _same(self.own, before.own)

    def is_there_as(self, before: "_Look") -> bool:
        """Return whether the other table's item has not changed. If there is none, it may have
        moved to a place that is not read, unless the place of this item is the same as before.
        """
        is_at_rest = self.mapped is not None or self.place == before.place
        return is_at_rest and _same(self.mapped, before.mapped)


def _looks(
    changes: Sequence[Change], transform: Transform, origin: Target, target: Target
) -> Iterator[tuple[Change, _Look]]:
    """Read the items of at most MOST_KEYS_AT_ONCE changes in both tables: first the other one, at
    the places of the records, and again at its current place for an item that has moved since then.
    """
    target_items = {
        change.source: _there(change.source, change.places, transform, target) for change in changes
    }
    keys = [thawed(change.source) for change in changes]
    origin_items = {frozen(transform.source.of(item)): item for item in origin.get_many(keys)}
    for change in changes:
        item, target_item = origin_items.get(change.source), target_items[change.source]
        place = None if item is None else Image(item, transform).place
        if place is not None and place not in change.places and not _same(item, target_item):
            target_item = _there(change.source, [place], transform, target) or target_item
        yield change, _Look(item, target_item, place)


def _there(
    source: FrozenKey, places: Iterable[FrozenKey], transform: Transform, target: Target
) -> Item | None:
    """Return the source item that the other table has at any of these places."""
    for place in places:
        item = target.get(thawed(place))
        back = None if item is None else _back(item, transform)
        if back is not None and frozen(transform.source.of(back)) == source:
            return back
    return None


def _back(item: Item, transform: Transform) -> Item | None:
    try:
        return transform.back(item)
    except Exception:  # unmappable, or a user's function
        return None


def _same(first: Item | None, second: Item | None) -> bool:
    if first is None or second is None:
        return first is second
    return same_item(first, second)


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
    """Replicates one direction of a pair; for one batch at a time.

    `transform` always maps the source to the destination, and clients of `connection_of` need
    time-outs of two seconds. `give_up` receives a source key that has killed the worker repeatedly.
    `more` is for ItemCalls.
    """

    def __init__(
        self,
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
    ) -> None:
        self.expects_pass = False
        """Whether the last batch was passed: the next reads the control item before its record."""
        self.direction = direction
        names = (pair.source, pair.destination)
        origin, target = names if direction == "forward" else names[::-1]
        self._transform = transform if direction == "forward" else transform.reverse
        self._side = side or SideTable(connection_of(pair.side), pair.side, now=now, **more)
        self._origin, self._target = (
            Target(connection_of(name), name, self._transform, direction, self._side, **more)
            for name in (origin, target)
        )
        self._give_up = give_up
        self._clock = connection_of(origin).clock
        self._now = now
        self._has_turned = False
        """Whether the serving table has ever changed, by the last read of the control item."""
        tables = self._transform, self._origin, self._target, self._side
        self._driver = Driver(direction, *tables, self._share, self._clock, now, pool)

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
        return self._driver.settle(claims)

    def again(self, source: Key, places: Iterable[Key]) -> bool:
        """Settle a source item that was given up, at its current place and at these places."""
        key = frozen({name: source[name] for name in self._transform.source.all})
        image = self._driver.look([key]).get(key)
        now = [] if image is None or image.place is None else [image.place]
        names = self._transform.destination.all
        had = [frozen({name: place[name] for name in names}) for place in places]
        return self.settle(source, [thawed(place) for place in dict.fromkeys([*had, *now])])

    def sweep(self, maximum: int = MOST_CLAIMS) -> int:
        """Settle remaining claims, as no batch may come; return how many are settled."""
        return self._driver.sweep(self._side.claims(self.direction, maximum))

    # --- a batch ---

    def _worked(self, records: Sequence[Record], is_again: bool, quiet_at: float) -> Worked:
        changes, markers = changes_of(records, self._transform)
        result = Worked(len(records), len(changes))
        driver = self._driver
        driver.begin()
        tasks = [self._task(change, is_again, quiet_at) for change in changes]
        driver.run(tasks)
        result.left = sum(task.is_left for task in tasks)
        result.unmapped = self._tell_unmapped(changes)
        touched = {place for task in tasks for place in task.values}
        result.swept = self._swept(touched)
        self._see_markers(markers)
        result.failures = driver.failures
        result.lag = max(0.0, self._now() - newest_of(records))
        self._side.tell_lag(self.direction, result.lag)
        return result

    def _see_markers(self, markers: Mapping[str, str]) -> None:
        for marker, record in markers.items():
            self._side.see_marker(marker, {"record": record})

    def _swept(self, touched: set[Any]) -> int:
        try:
            return self._driver.sweep(self._driver.due(touched))
        except GaveUp as error:  # the claims remain for other batches
            self._driver.failures.append(error)
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
        changes, _ = changes_of(records, self._transform)
        return [thawed(place) for change in changes for place in change.places]

    def _task(self, change: Change, is_again: bool, quiet_at: float) -> Task:
        is_old = self._now() - change.newest > OLD_SECONDS
        places = tuple(change.places)
        work = self._driver.protocol.begin(
            change.source, places, change.image, is_again or is_old, waits=is_again
        )
        return Task(work, change.places, change.bytes, quiet_at)

    def _tell_unmapped(self, changes: Sequence[Change]) -> int:
        """Record which suspects are unmappable now, and return how many."""
        suspects = [change.source for change in changes if change.unmapped]
        images = self._driver.look(suspects)
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
        changes, markers = changes_of(records, self._transform)
        side = origin_of(self.direction)
        unsettled = {
            frozen(straggler.key): straggler
            for straggler in self._side.unsettled()
            if straggler.side == side
        }
        for change in changes:  # a deleted item may have no other trace of its places
            if (straggler := unsettled.get(change.source)) is not None:
                change.places |= {frozen(at): {} for at in straggler.places}
        bypassing = stragglers_among(
            changes,
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
        for straggler in self._resolved(side, {change.source for change in changes}):
            self._side.resolve(straggler)
        self._see_markers(markers)
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

    def _share(self) -> Share:
        control = self._side.control()
        self._has_turned = control.turns > 0
        return control.share_of(self.direction)

    def _end(self, note: tuple[str, str], tries: int, quiet_at: float) -> None:
        self._driver.wait_until(quiet_at)
        self._side.end(self.direction, *note, tries + 1)
