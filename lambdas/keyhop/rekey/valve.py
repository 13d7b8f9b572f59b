"""What holds a worker of the backfill back, looked up in the side table every few seconds.

No write is begun later than FRESH_SECONDS after a look, so that long and the life of a request
after a backfill's end was noted, nobody writes for it any more; a verify waits for that
(SETTLED_SECONDS). What no look helps against is a function that is frozen between its look and its
write, and thawed after that time: its write is put-if-absent, and the next verify finds it.

The gates of a cutover are shut while a backfill is under way. One that was begun right after they
were looked at stands still from `closing` on, whose lease is longer than both times: so none
writes into a table that serves, where the application may have deleted what it would put.
"""

import time
from collections.abc import Callable
from dataclasses import replace
from threading import Event, Lock

from keyhop.dynamodb.client import CONNECT_SECONDS
from keyhop.dynamodb.requester import pause
from keyhop.errors import RunConflict
from keyhop.rekey.pace import BACKFILL, THROTTLE, Pace, pace_of, why_not_mine
from keyhop.rekey.side.figures import LAG
from keyhop.rekey.side.table import SideTable

FRESH_SECONDS = 3.0
REQUEST_SECONDS = 5.0
"""A request takes effect within this time of its sending, or never (assumption A2); before that it
may wait CONNECT_SECONDS for a connection."""

SETTLED_SECONDS = 2.0 + FRESH_SECONDS + CONNECT_SECONDS + REQUEST_SECONDS
"""After the end of a backfill, until a verify may begin."""

PAUSE_SECONDS = 1.0


class Valve:
    """For all threads of a worker. run: the backfill's. changed: is told each new pace.

    clock: seconds of any beginning; now: seconds since 1970.
    """

    def __init__(
        self,
        side: SideTable,
        run: str,
        changed: Callable[[Pace], None],
        stop: Event,
        clock: Callable[[], float] = time.monotonic,
        now: Callable[[], float] = time.time,
    ) -> None:
        self.over: Event | None = None
        self._side = side
        self._run = run
        self._changed = changed
        self._stop = stop
        self._clock = clock
        self._now = now
        self._pace = Pace()
        self._looked_at: float | None = None
        self._lock = Lock()

    def check(self) -> None:
        """Before each write: waits while the backfill is paused.

        Raises RunConflict if this run may write no more, Stopped if it is to stop.
        """
        while self._look().is_paused:
            pause(self._stop, self.over, PAUSE_SECONDS)

    def _look(self) -> Pace:
        with self._lock:
            while self._looked_at is None or self._clock() - self._looked_at >= FRESH_SECONDS:
                self._pace, self._looked_at = self._told()
            return self._pace

    def _told(self) -> tuple[Pace, float]:
        """The pace, and from when on that may be old: before it was asked for."""
        looked_at = self._clock()
        why = why_not_mine(self._side.told(BACKFILL), self._run)
        control = self._side.control()
        if control.serving != "source":
            why = "The destination serves by now"
        if why is not None:
            raise RunConflict(f"{why}: nothing more is written for the run {self._run!r}.")
        if control.stage != "open":
            return replace(self._pace, share=0.0, reason="the serving table changes"), looked_at
        pace = pace_of(self._side.told(THROTTLE), self._side.told(f"{LAG}.forward"), self._now())
        if pace != self._pace:
            self._changed(pace)
        return pace, looked_at
