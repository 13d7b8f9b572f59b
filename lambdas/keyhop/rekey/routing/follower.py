"""A router's cached copy of the control item, refreshed on demand by the calling thread. It has no
thread, because a function is frozen between its invocations.

The lease counts from before the request of the item. A process that changes the item waits for the
lease after its change took effect, so all views of the earlier item have ended by then. So a write
that is answered within the lease took effect while the view was valid. For one that is answered
later the clock proves nothing, so the item is read again (`held_for_writes`).
"""

from collections.abc import Callable
from dataclasses import dataclass, field
from threading import Lock

from botocore.exceptions import BotoCoreError, ClientError

from keyhop.clock import Clock
from keyhop.dynamodb.usage import Usage
from keyhop.errors import KeyhopError
from keyhop.rekey.control import ALIVE_SECONDS, LEASE_SECONDS, Control, Evidence
from keyhop.rekey.side.layout import SHADOWED
from keyhop.rekey.side.table import SideTable

LEAST_CHANGES_OF_TWO_TURNS = 7
"""The fewest revisions between two stages that allow writes, with two turns between them."""


@dataclass(frozen=True, slots=True)
class Moment:
    """A moment on both clocks, of which the one that shows the longer time counts: after a machine
    was suspended, or a function was frozen, only one of them may show it.
    """

    monotonic: float
    wall: float

    def until(self, now: "Moment") -> float:
        """Return the seconds from this moment until now."""
        return max(now.monotonic - self.monotonic, now.wall - self.wall)


@dataclass(frozen=True, slots=True)
class View:
    """The control item, with the moment before it was requested."""

    control: Control
    requested_at: Moment

    def is_young(self, now: Moment) -> bool:
        """Return whether the view is recent enough not to read again."""
        return self.requested_at.until(now) <= self.control.lease / 4

    def may_send(self, now: Moment) -> bool:
        """Return whether the view allows sending a request."""
        return self.requested_at.until(now) <= self.control.lease / 2

    def holds(self, now: Moment) -> bool:
        """Return whether no process can have acted upon a later change yet."""
        return self.requested_at.until(now) <= self.control.lease


def held_for_writes(before: Control, after: Control) -> bool:
    """Return whether one table has served from one read to the other, and takes writes: then a
    write to it between them is valid, whenever it took effect.
    """
    return (
        before.takes_writes
        and after.takes_writes
        and before.serving == after.serving
        and 0 <= after.revision - before.revision < LEAST_CHANGES_OF_TWO_TURNS
    )


def held_for_reads(before: Control, after: Control) -> bool:
    """Return whether one table has served continuously between two reads of the control item.

    If so, a read of it in that time was not older than the latest possible write. The limit is one
    change lower than for writes, because reads continue between closing and open.
    """
    changes = after.revision - before.revision
    return before.serving == after.serving and 0 <= changes < LEAST_CHANGES_OF_TWO_TURNS - 1


def freeze_of(control: Control) -> int | None:
    """Return the revision that began a freeze; None without one that can be aborted."""
    if control.takes_writes or control.stage == "turned":
        return None
    return control.revision if control.stage == "frozen" else control.revision - 1


GRACE_SECONDS = 1.0
"""Seconds beyond the freeze limit before a router aborts a change, and beyond the lease after a
turn before it opens the table. So the process that makes the change comes first.
"""

FAILURES = (KeyhopError, BotoCoreError, ClientError)


def moment(clock: Clock) -> Moment:
    """Return the current moment on both clocks."""
    return Moment(clock.monotonic(), clock.time())


@dataclass(slots=True, eq=False)
class Follower:
    """A cached copy of the control item, for any number of threads, of which one reads at a time.

    It counts looks, looks_failed, reports_failed, called_off, opened and mends_failed. `name` is
    the router's name in the side table, where `guarded` is reported: whether it guards a client.
    `on_change` is called with the control item whenever it differs from the last one read.
    """

    side: SideTable
    name: str
    clock: Clock
    usage: Usage = field(default_factory=Usage)
    on_change: Callable[[Control], None] = lambda control: None
    guarded: bool = False
    _lock: Lock = field(default_factory=Lock)
    _view: View | None = None
    _tries: int = 0
    _error: BaseException | None = None
    _frozen: tuple[int, float] | None = None
    _turned: tuple[int, float] | None = None
    _reported: tuple[int, float] | None = None

    def view(self, *, anew: bool = False) -> View:
        """Return a view that allows sending a request now, and is read after this call if `anew`.
        Raise the errors of reading the item.
        """
        view, tries = self._view, self._tries
        now = moment(self.clock)
        if view is not None and not anew:
            if view.is_young(now):
                return view
            if view.may_send(now):
                return self._ahead_of_need(view)
        with self._lock:
            if self._tries != tries and not anew:  # another thread read it during the wait
                if self._error is not None:
                    raise self._error
                if self._view is not None and self._view.may_send(moment(self.clock)):
                    return self._view
            return self._look()

    def _ahead_of_need(self, view: View) -> View:
        """Refresh early; other threads use the current view until it ends."""
        if not self._lock.acquire(blocking=False):
            return view
        try:
            return self._look()
        except FAILURES:
            if view.may_send(moment(self.clock)):
                return view
            raise
        finally:
            self._lock.release()

    def _look(self) -> View:
        requested_at = moment(self.clock)
        self.usage.count(looks=1)
        try:
            control = self.side.control()
            control = self._mend(control)
        except FAILURES as error:
            self._tries, self._error = self._tries + 1, error
            self.usage.count(looks_failed=1)
            raise
        self._tries, self._error = self._tries + 1, None
        before, self._view = self._view, View(control, requested_at)
        if before is None or before.control != control:
            self.on_change(control)
        self._report(control)
        return self._view

    def _mend(self, control: Control) -> Control:
        """End a change that seems to be abandoned: abort it, or open the table that has turned. A
        swap that fails was overtaken by another process; the next look shows its result.
        """
        now = self.clock.monotonic()
        freeze = freeze_of(control)
        self._frozen = _since(self._frozen, freeze, now)
        turn = control.revision if control.stage == "turned" else None
        self._turned = _since(self._turned, turn, now)
        limit = control.freeze_limit + GRACE_SECONDS
        if self._frozen is not None and now - self._frozen[1] >= limit:
            return self._swap(control, control.aborted(), "called_off")
        if self._turned is not None:
            seen_for = now - self._turned[1] - GRACE_SECONDS
            opened, _ = control.following(Evidence(seen_for))
            if opened is not None:
                return self._swap(control, opened, "opened")
        return control

    def _swap(self, old: Control, new: Control, counted: str) -> Control:
        try:
            is_swapped = self.side.swap(old, new)
        except FAILURES:
            self.usage.count(mends_failed=1)
            return old
        self.usage.count(**{counted: int(is_swapped)})
        return new if is_swapped else old

    def _report(self, control: Control) -> None:
        """Report the router at each new revision, and every half minute, as it counts as alive for
        a minute.
        """
        now = self.clock.time()
        if self._reported is not None:
            revision, at = self._reported
            if revision == control.revision and abs(now - at) < LEASE_SECONDS:
                return
        if not control.takes_writes:  # the side table's capacity is for the change
            return
        until = now + ALIVE_SECONDS
        try:
            counts = self.usage.counters
            shadowed = {name: int(counts[name]) for name in SHADOWED if counts[name]}
            report = {"revision": control.revision, "until": until, "guarded": self.guarded}
            self.side.report_client(self.name, {**report, **shadowed})
            self._reported = (control.revision, now)
        except FAILURES:
            self.usage.count(reports_failed=1)


def _since(
    first_seen: tuple[int, float] | None, what: int | None, now: float
) -> tuple[int, float] | None:
    if what is None:
        return None
    return first_seen if first_seen is not None and first_seen[0] == what else (what, now)
