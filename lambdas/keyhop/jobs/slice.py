"""A slice: threads work the segments of a group until the slice is over.

How many threads is looked at anew all the time (scan/in_flight.py): one that is too many puts its
segment back. They share one source of pages and one sink. All bookkeeping of a page, its keys going
out and its segment moving on, is done in one step under one lock; so whenever the threads have
ended, the keys that went out and the checkpoint agree, whatever made them end.
"""

import math
import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from threading import Event, Lock, Thread, current_thread
from typing import Protocol

from keyhop.dynamodb.requester import Stopped
from keyhop.dynamodb.values import Key
from keyhop.jobs.model import Checkpoint
from keyhop.jobs.pages import Pages
from keyhop.scan.skip_scan import BEGINNING, Position

TICK_SECONDS = 0.05
"""How often the number of threads is looked at."""

LAST_SECONDS = 2.0
"""For so long a slice that is told to stop waits for answers; a page that comes later is lost."""


class Sink(Protocol):
    """Where keys go."""

    def write(self, segment: int, keys: Sequence[Key]) -> int:
        """Take in keys of a segment; returns how many were new. Never called by two at once."""


class Slice:
    """One slice, from a checkpoint; `work` runs it.

    order: the segments of the group that have not been begun, in its order. keys, ended, counts:
    may be read by another thread while it runs. error: what ended it, None if its time was over or
    its work done.
    """

    def __init__(
        self,
        pages: Pages,
        order: Iterator[int],
        checkpoint: Checkpoint,
        sink: Sink,
        last_seconds: float = LAST_SECONDS,
    ) -> None:
        self.keys = 0
        self.ended = 0
        self.counts: Counter[str] = Counter()
        self.error: BaseException | None = None
        self._pages = pages
        self._order = order
        self._sink = sink
        self._last_seconds = last_seconds
        self._waiting = list(checkpoint.open.items())
        self._open: dict[int, Position] = dict(checkpoint.open)
        self._place = checkpoint.place
        self._wanted = 1
        self._lanes: set[Thread] = set()
        self._is_tail = False
        self._over = Event()
        self._ended = Event()
        self._closed = False
        self._lock = Lock()

    def work(
        self, most: int, seconds: float, idle: Callable[[], None] = lambda: None
    ) -> Checkpoint:
        """Work for about `seconds`, which may be infinite, with as many threads as pay, up to
        `most`.

        idle: called a few times a second meanwhile, on the calling thread.
        """
        deadline = time.monotonic() + seconds
        until = math.inf
        self._wanted = self._pages.in_flight.begin(time.monotonic(), most)
        while self._keep_going() and time.monotonic() < until:
            self._ended.wait(TICK_SECONDS)
            idle()
            if time.monotonic() >= deadline:
                self._over.set()
            if math.isinf(until) and self._pages.stop.is_set():
                until = time.monotonic() + self._last_seconds
        with self._lock:
            self._closed = True
        return Checkpoint(self._place, dict(self._open), self._pages.learnt())

    def _keep_going(self) -> bool:
        """Start threads if more are wanted; whether any is at work."""
        with self._lock:
            more: list[Thread] = []
            if not self._is_tail and not self.was_cut_short:
                missing = self._wanted - len(self._lanes)
                more = [Thread(target=self._run, daemon=True) for _ in range(missing)]
                self._lanes.update(more)
        for lane in more:
            lane.start()
        return not self._ended.is_set()

    @property
    def was_cut_short(self) -> bool:
        """Whether it was told to end."""
        return self._over.is_set() or self._pages.stop.is_set()

    def _run(self) -> None:
        try:
            while (task := self._take()) is not None:
                self._walk(*task)
        except Stopped:
            self._over.set()
        except BaseException as error:  # handed to the calling thread, whatever it is
            with self._lock:
                self.error = self.error or error
            self._over.set()
        finally:
            with self._lock:
                self._leave()

    def _look(self, began: float, ended: float) -> None:
        """After a page: whether more threads would pay, or fewer do as well."""
        self._pages.in_flight.page(began, ended)
        if len(self._lanes) == self._wanted and not self._is_tail:
            self._wanted = self._pages.in_flight.look(ended)

    def _leave(self) -> None:
        """The thread works no longer."""
        self._lanes.discard(current_thread())
        if not self._lanes:
            self._ended.set()

    def _take(self) -> tuple[int, Position] | None:
        with self._lock:
            if self.was_cut_short or current_thread() not in self._lanes:
                return None
            if self._waiting:
                return self._waiting.pop()
            segment = next(self._order, None)
            if segment is None:
                self._is_tail = True
                return None
            self._place += 1
            self._open[segment] = BEGINNING
            return segment, BEGINNING

    def _walk(self, segment: int, position: Position) -> None:
        """On through a segment, to its end, or until the slice is over or the thread one too many.

        The last thread is never one too many, so there is somebody for what is put back.
        """
        following: Position | None = position
        while following is not None and not self._over.is_set():
            began = time.monotonic()
            step = self._pages.step(segment, following, self._over)
            following = step.position
            with self._lock:
                if self._closed:
                    return
                if step.keys:
                    self.keys += self._sink.write(segment, step.keys)
                if step.counts:
                    self.counts.update(step.counts)
                if following is None:
                    del self._open[segment]
                    self.ended += 1
                else:
                    self._open[segment] = following
                self._look(began, time.monotonic())
                if following is not None and len(self._lanes) > self._wanted:
                    self._waiting.append((segment, following))
                    self._leave()
                    return
