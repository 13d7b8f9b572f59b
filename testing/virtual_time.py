"""A clock for threads, whose time advances only when all of them sleep: nothing waits in earnest.

It is a discrete-event simulation of real threads and real requests: `run` gives each function a
thread, of which one is awake at a time (or, with `together`, all that wake at the same moment).
When it sleeps or ends, the next sleeper is woken, and the clock is set to the moment it slept for.
What threads do meanwhile takes no time, on a fast machine or a slow one, and their turns are the
same in each run.

Threads that the clock does not know, such as a pool's, may sleep in it as well. And a thread may
wait outside of it, for a lock or a pool, with those that it waits for asleep: then nobody moves.
`run` looks for that, and wakes the next sleeper once no thread of the process has moved for some
looks; one that waits for an answer from a socket, or for the processor, counts as moving.
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
"""Of the clock's own time."""
STILL_LOOKS = 5
_ON_THE_NETWORK = ("socket.py", "ssl.py", "selectors.py", "http/client.py", "urllib3/")
_SERVERS = ("process_request_thread", "serve_forever")
_AT_WORK = ("R", "D")
"""As /proc has it: running or ready to run; waiting for a disk."""


class JumpingClock:
    """For a single thread: time that jumps ahead instead of being waited for."""

    def __init__(self, begin: float = EPOCH) -> None:
        self.begin, self.now = begin, 0.0

    def monotonic(self) -> float:
        return self.now

    def time(self) -> float:
        return self.begin + self.now

    def sleep(self, seconds: float) -> None:
        self.now += seconds


class Stopped(BaseException):
    """Another function of the same run has failed."""


@dataclass(slots=True)
class _Nap:
    """member: whether the sleeper is one of the clock's own."""

    member: bool
    ident: int = 0
    over: Event = field(default_factory=Event)


class VirtualClock:
    """now: epoch seconds to begin with. together: all that wake at one moment run at once."""

    def __init__(self, now: float = EPOCH, *, together: bool = False) -> None:
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
        """Seconds."""
        return self._now

    def time(self) -> float:
        """Epoch seconds."""
        return self._now

    def sleep(self, seconds: float) -> None:
        """Return at the moment that is `seconds` from now. Raises Stopped."""
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
        """Time stands still in this block, but for the thread's own sleeps."""
        with self._lock:
            known = get_ident() in self._members
            self._members.add(get_ident())
            self._awake += not known
        try:
            yield
        finally:
            if not known:
                self._retire()

    def run(self, functions: Sequence[Callable[[], T]]) -> list[T]:
        """What the functions return, each in its thread; the first error of any ends all."""
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
        """Whose turn it is, if nobody is awake."""
        while self._awake == 0 and self._naps:
            self._now = max(self._now, self._naps[0][0])
            self._wake_one()
            while self._together and self._naps and self._naps[0][0] <= self._now:
                self._wake_one()
            if self._watched:  # a stranger's turn may not be counted; the watch sees its end
                return

    def _wake_one(self) -> None:
        _, _, nap = heappop(self._naps)
        self._turns += 1
        self._awake += nap.member
        nap.over.set()

    def _watch(self, threads: Sequence[Thread]) -> None:
        """Until all have ended."""
        seen: object = None
        still = turns = 0
        while any(thread.is_alive() for thread in threads):
            time.sleep(LOOK_SECONDS)
            with self._lock:
                if turns != self._turns or not self._naps:
                    seen, still, turns = None, 0, self._turns
                    continue
                here = self._positions()
                still = still + 1 if here is not None and here == seen else 0
                seen = here
                if still >= STILL_LOOKS and not _others_run():
                    self._now = max(self._now, self._naps[0][0])
                    self._wake_one()

    def _positions(self) -> dict[int, tuple[int, int, float]] | None:
        """Where each thread is that does not sleep here; None if one waits for an answer."""
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
    """Where all threads are. A garbage collection meanwhile may hang Python 3.11 (gh-106883)."""
    collects = gc.isenabled()
    gc.disable()
    try:
        return sys._current_frames()
    finally:
        if collects:
            gc.enable()


def _others_run() -> bool:
    """Whether another thread of the process has the processor, or waits for it; False where the
    system does not tell. On a busy machine one that could go on may stand still for seconds.
    """
    own = str(get_native_id())
    with suppress(OSError):
        for task in Path("/proc/self/task").iterdir():
            with suppress(OSError):  # it has ended meanwhile
                state = (task / "stat").read_text().rpartition(")")[2].split()[0]
                if task.name != own and state in _AT_WORK:
                    return True
    return False


def _cpu_seconds(ident: int) -> float:
    """What a thread has used; 0 where the system does not tell. It lives, as it has a frame."""
    clock_of = getattr(time, "pthread_getcpuclockid", None)
    return 0.0 if clock_of is None else time.clock_gettime(clock_of(ident))


class _Job(Future[Any]):
    """What a job comes to; who waits for it sleeps in the clock."""

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
    """In place of a ThreadPoolExecutor: its jobs, and who waits for them, live in the clock.

    Each job has a thread at once. `partial(Pool, clock)` can stand for the class.
    """

    def __init__(self, clock: VirtualClock, *given: object) -> None:
        self._clock = clock
        self._jobs: list[_Job] = []

    def submit(self, function: Callable[..., Any], /, *given: Any, **named: Any) -> Future[Any]:
        job, begun = _Job(self._clock), Event()

        def work() -> None:
            with self._clock.worker():
                begun.set()
                try:
                    self._clock.sleep(0)
                    job.set_result(function(*given, **named))
                except BaseException as error:
                    job.set_exception(error)

        Thread(target=work, daemon=True).start()
        begun.wait()
        self._jobs = [*(one for one in self._jobs if not one.done()), job]
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
