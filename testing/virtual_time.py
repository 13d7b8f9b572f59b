"""A clock for threads whose time advances only when all of them sleep, without real waiting.

It is a discrete-event simulation of real threads and real requests: `run` starts a thread for each
function, of which one is awake at a time (or, with `together`, all that wake at the same time).
When it sleeps or ends, the next sleeper wakes, and the clock is set to its time. Other work takes
no time, on a fast machine or a slow one, and the order of turns is the same in each run.

Threads that the clock does not know, such as those of a pool, may sleep in it, too. A thread may
also wait outside the clock, for a lock or a pool, while the threads that it waits for are asleep:
then no thread moves. `run` detects this, and wakes the next sleeper after no thread of the process
has moved for several checks. A thread that waits for a socket or the processor counts as moving.
"""

import gc
import itertools
import sys
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Executor, Future
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from heapq import heappop, heappush
from pathlib import Path
from threading import Event, Lock, Thread, get_ident, get_native_id
from types import FrameType
from typing import Any, TypeVar

T = TypeVar("T")

EPOCH = 1_800_000_000.0
LOOK_SECONDS = 0.005
POLL_SECONDS = 0.004
"""The interval, in the clock's time, at which a thread checks whether a job is done."""
STILL_LOOKS = 5
_ON_THE_NETWORK = ("socket.py", "ssl.py", "selectors.py", "http/client.py", "urllib3/")
_SERVERS = ("process_request_thread", "serve_forever")
_BUSY_STATES = ("R", "D")
"""States in /proc: running or ready to run, and waiting for a disk."""


class JumpingClock:
    """A clock for a single thread, whose sleeps return at once."""

    def __init__(self, begin: float = EPOCH) -> None:
        self.begin, self.now = begin, 0.0

    def monotonic(self) -> float:
        return self.now

    def time(self) -> float:
        return self.begin + self.now

    def sleep(self, seconds: float) -> None:
        self.now += seconds


class Stopped(BaseException):
    """Raised in a thread after another function of the same run has failed."""


@dataclass(slots=True)
class _Nap:
    """A thread's sleep; `member` says whether the clock knows the thread."""

    member: bool
    ident: int = 0
    over: Event = field(default_factory=Event)


class VirtualClock:
    """A clock for threads."""

    def __init__(self, now: float = EPOCH, *, together: bool = False) -> None:
        """Create a clock.

        Args:
            now: The first moment, in epoch seconds.
            together: Whether all threads that wake at the same moment run at once.
        """
        self._now = now
        self._together = together
        self._lock = Lock()
        self._naps: list[tuple[float, int, _Nap]] = []
        self._numbers = itertools.count()
        self._awake = self._turns = 0
        self._members: set[int] = set()
        self._watched = False
        self._error: BaseException | None = None

    def monotonic(self) -> float:
        return self._now

    def time(self) -> float:
        return self._now

    def sleep(self, seconds: float) -> None:
        """Sleep in the clock's time. Raise Stopped if another function has failed."""
        if seconds < 0:
            raise ValueError("a sleep's length must not be negative")
        with self._lock:
            self._stop_here()
            nap = _Nap(get_ident() in self._members, get_ident())
            self._lie_down(nap, seconds)
            self._awake -= nap.member
            self._wake_next()
        nap.over.wait()
        self._stop_here()

    @contextmanager
    def worker(self) -> Iterator[None]:
        """Stop the time in this block, except in the thread's sleeps."""
        with self._lock:
            is_member = get_ident() in self._members
            self._members.add(get_ident())
            self._awake += not is_member
        try:
            yield
        finally:
            if not is_member:
                self._retire()

    def run(self, functions: Sequence[Callable[[], T]]) -> list[T]:
        """Run each function in a thread, and return the results. The first error ends all."""
        results: dict[int, T] = {}
        naps = [_Nap(member=True) for _ in functions]

        def work(number: int) -> None:
            naps[number].ident = get_ident()
            naps[number].over.wait()
            with self._lock:
                self._members.add(get_ident())
            try:
                self._stop_here()
                results[number] = functions[number]()
            except Stopped:
                pass
            except BaseException as error:
                self._fail(error)
            finally:
                self._retire()

        threads = [Thread(target=work, args=(n,), daemon=True) for n in range(len(naps))]
        with self._lock:
            assert not self._watched, "one run at a time"
            self._watched, self._error = True, None
            for nap in naps:
                self._lie_down(nap, 0.0)
        for thread in threads:
            thread.start()
        with self._lock:
            self._wake_next()
        self._watch(threads)
        with self._lock:
            self._watched, error, self._error = False, self._error, None
        if error is not None:
            raise error
        return [results[number] for number in range(len(naps))]

    def _lie_down(self, nap: _Nap, seconds: float) -> None:
        self._turns += 1
        heappush(self._naps, (self._now + seconds, next(self._numbers), nap))

    def _stop_here(self) -> None:
        if self._error is not None:
            raise Stopped

    def _retire(self) -> None:
        with self._lock:
            self._members.discard(get_ident())
            self._awake -= 1
            self._wake_next()

    def _fail(self, error: BaseException) -> None:
        with self._lock:
            if self._error is None:
                self._error = error
            while self._naps:
                self._wake_one()

    def _wake_next(self) -> None:
        """Wake the next thread, if none is awake."""
        while self._awake == 0 and self._naps:
            self._now = max(self._now, self._naps[0][0])
            self._wake_one()
            while self._together and self._naps and self._naps[0][0] <= self._now:
                self._wake_one()
            if self._watched:  # an unknown thread is not counted; `_watch` detects its end
                return

    def _wake_one(self) -> None:
        _, _, nap = heappop(self._naps)
        self._turns += 1
        self._awake += nap.member
        nap.over.set()

    def _watch(self, threads: Sequence[Thread]) -> None:
        """Wait until all threads have ended, and wake sleepers when no thread moves."""
        previous: object = None
        still = turns = 0
        while any(thread.is_alive() for thread in threads):
            time.sleep(LOOK_SECONDS)
            with self._lock:
                if turns != self._turns or not self._naps:
                    previous, still, turns = None, 0, self._turns
                    continue
                positions = self._positions()
                still = still + 1 if positions is not None and positions == previous else 0
                previous = positions
                if still >= STILL_LOOKS and not _others_run():
                    self._now = max(self._now, self._naps[0][0])
                    self._wake_one()

    def _positions(self) -> dict[int, tuple[int, int, float]] | None:
        """Return the position of each thread that is not asleep; None if one awaits an answer."""
        names = {thread.ident: thread.name for thread in threading.enumerate()}
        asleep = {nap.ident for _, _, nap in self._naps} | {get_ident()}
        places: dict[int, tuple[int, int, float]] = {}
        for ident, frame in _frames().items():
            if ident in asleep or any(server in names.get(ident, "") for server in _SERVERS):
                continue
            if _is_on_the_network(frame):
                return None
            places[ident] = (id(frame), frame.f_lasti, _cpu_seconds(ident))
        return places


def _frames() -> dict[int, FrameType]:
    """Return the frames of all threads, without garbage collection, which may hang (gh-106883)."""
    collects = gc.isenabled()
    gc.disable()
    try:
        return sys._current_frames()
    finally:
        if collects:
            gc.enable()


def _others_run() -> bool:
    """Return whether another thread of the process uses the processor or waits for it.

    On a busy machine, a thread that is ready may wait for seconds. Return False if the system does
    not report states.
    """
    own_task = str(get_native_id())
    with suppress(OSError):
        for task in Path("/proc/self/task").iterdir():
            with suppress(OSError):  # the thread has ended
                state = (task / "stat").read_text().rpartition(")")[2].split()[0]
                if task.name != own_task and state in _BUSY_STATES:
                    return True
    return False


def _cpu_seconds(ident: int) -> float:
    """Return the processor time of a running thread, or 0 if the system does not report it."""
    clock_of = getattr(time, "pthread_getcpuclockid", None)
    return 0.0 if clock_of is None else time.clock_gettime(clock_of(ident))


class _Job(Future[Any]):
    """The future of a job; threads that wait for it sleep in the clock."""

    def __init__(self, clock: VirtualClock) -> None:
        super().__init__()
        self._clock = clock

    def result(self, timeout: float | None = None) -> Any:
        self.wait()
        return super().result()

    def exception(self, timeout: float | None = None) -> BaseException | None:
        self.wait()
        return super().exception()

    def wait(self) -> None:
        while not self.done():
            self._clock.sleep(POLL_SECONDS)


class Pool(Executor):
    """A substitute for ThreadPoolExecutor, whose jobs and waiting threads use the clock.

    Each job gets a thread immediately. `partial(Pool, clock)` can replace the class.
    """

    def __init__(self, clock: VirtualClock, *arguments: object) -> None:
        self._clock = clock
        self._jobs: list[_Job] = []

    def submit(
        self, function: Callable[..., Any], /, *arguments: Any, **keywords: Any
    ) -> Future[Any]:
        job, has_started = _Job(self._clock), Event()

        def work() -> None:
            with self._clock.worker():
                has_started.set()
                try:
                    self._clock.sleep(0)
                    job.set_result(function(*arguments, **keywords))
                except BaseException as error:
                    job.set_exception(error)

        Thread(target=work, daemon=True).start()
        has_started.wait()
        self._jobs = [*(each for each in self._jobs if not each.done()), job]
        return job

    def shutdown(self, wait: bool = True, *, cancel_futures: bool = False) -> None:
        for job in self._jobs:
            job.wait()


def _is_on_the_network(frame: FrameType | None) -> bool:
    for _ in range(4):
        if frame is None:
            return False
        if any(part in frame.f_code.co_filename for part in _ON_THE_NETWORK):
            return True
        frame = frame.f_back
    return False
