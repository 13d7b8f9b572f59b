"""Pause or stop a worker of the backfill, as the side table says. It is read every few seconds.

No write begins later than FRESH_SECONDS after a look at the side table. So the last write of a
backfill ends within that time and the life of a request after its end was recorded, and a
verification waits for both (SETTLED_SECONDS). One exception is a function that is frozen between
its look and its write: the write is conditional on an empty place, and the next verification finds
it.

The gates of a cutover are shut while a backfill is running. A backfill that begins right after the
gates were checked pauses from `closing` on, whose lease is longer than both times. So no backfill
writes to a table that serves, where the application may have deleted the item.
"""

import time
from collections.abc import Callable
from dataclasses import replace
from threading import Event, Lock

from keyhop.dynamodb.client import CONNECT_SECONDS
from keyhop.dynamodb.requester import pause
from keyhop.errors import RunConflict
from keyhop.rekey.pace import BACKFILL, THROTTLE, Pace, pace_of, why_not_mine
from keyhop.rekey.side.layout import LAG
from keyhop.rekey.side.table import SideTable

FRESH_SECONDS = 3.0
REQUEST_SECONDS = 5.0
"""A request takes effect within this time after it is sent, or never (assumption A2). Before that
it may wait CONNECT_SECONDS for a connection.
"""

SETTLED_SECONDS = 2.0 + FRESH_SECONDS + CONNECT_SECONDS + REQUEST_SECONDS
"""Seconds from the end of a backfill until a verification may begin."""

PAUSE_SECONDS = 1.0


class Valve:
    """The pause and stop switch of a worker of a backfill, for all of its threads."""

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
        """Wait before a write while the backfill is paused. Raise RunConflict if this run may not
        write any more, or Stopped if it is to stop.
        """
        while self._look().is_paused:
            pause(self._stop, self.over, PAUSE_SECONDS)

    def _look(self) -> Pace:
        with self._lock:
            while self._looked_at is None or self._clock() - self._looked_at >= FRESH_SECONDS:
                self._pace, self._looked_at = self._read_pace()
            return self._pace

    def _read_pace(self) -> tuple[Pace, float]:
        """Return the pace, and the moment before it was read, from which its age counts."""
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
