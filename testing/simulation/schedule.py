"""Tasks that take turns, in virtual time: real threads, of which exactly one runs, by a seed.

A task hands over its turn when it sleeps or waits, that is at each request; who is next is a matter
of the virtual moment for which each has asked, and of chance at the same moment. So the same seed
gives the same run, on any machine.
"""

import _thread
import random
from collections import deque
from collections.abc import Callable
from concurrent.futures import Executor, Future
from heapq import heappop, heappush
from typing import Any

Act = Callable[[], object]
"""Done by whichever thread has the turn; if it answers with a task, that is next."""


class Killed(BaseException):
    """The task's process is no more."""


class Process:
    """What is killed as one. name: for traces."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.is_alive = True


class Task:
    """A thread with its turn. call: what it is doing, for whoever is interested."""

    def __init__(self, process: Process, call: Any = None) -> None:
        self.process = process
        self.call = call
        self.turn = _thread.allocate_lock()
        self.turn.acquire()


class Schedule:
    """All tasks of one run, and the time."""

    def __init__(self, chance: random.Random) -> None:
        self.now = 0.0
        self.error: BaseException | None = None
        self._chance = chance
        self._events: list[tuple[float, float, int, Task | Act]] = []
        self._number = 0
        self._main = Task(Process("main"))
        self.running = self._main

    def after(self, seconds: float, what: Task | Act) -> None:
        """Wake a task, or do something that waits for nobody, in so many seconds."""
        self._number += 1
        heappush(self._events, (self.now + seconds, self._chance.random(), self._number, what))

    def spawn(self, function: Act, process: Process, call: Any = None) -> None:
        """A new task, which begins when its turn comes."""
        task = Task(process, call)

        def work() -> None:
            task.turn.acquire()
            try:
                if process.is_alive:
                    function()
            except Killed:
                pass
            except BaseException as error:
                self.error = self.error or error
            self._hand_over(None)

        _thread.start_new_thread(work, ())
        self.after(0.0, task)

    def sleep(self, seconds: float) -> None:
        """Raises Killed if the process was killed meanwhile."""
        self.after(seconds, self.running)
        self.wait()

    def sleep_while(self, holds: Callable[[], bool], seconds: float) -> None:
        """Sleep again and again, as long as this holds whenever so many seconds are over.

        It is looked at without a change of threads. Raises as `sleep`.
        """
        me = self.running

        def look() -> Task | None:
            if me.process.is_alive and holds():
                self.after(seconds, look)
                return None
            return me

        if look() is None:
            self.wait()

    def wait(self) -> None:
        """Until somebody wakes this task. Raises as `sleep`."""
        me = self.running
        self._hand_over(me)
        if not me.process.is_alive:
            raise Killed

    def run(self) -> None:
        """Until nothing is left to happen; the first error of a task ends it, and is raised."""
        self._hand_over(self._main)
        if self.error is not None:
            raise self.error

    def _hand_over(self, me: Task | None) -> None:
        following = self._following()
        if following is me:
            return
        self.running = following
        following.turn.release()
        if me is not None:
            me.turn.acquire()

    def _following(self) -> Task:
        while self._events and self.error is None:
            at, _, _, what = heappop(self._events)
            self.now = max(self.now, at)
            if isinstance(what, Task):
                return what
            try:
                woken = what()
            except BaseException as error:
                self.error = self.error or error
                continue
            if isinstance(woken, Task):
                return woken
        return self._main


class WaitingLock:
    """A lock whose holder may sleep; in place of a thread's."""

    def __init__(self, schedule: Schedule) -> None:
        self._schedule = schedule
        self._held = False
        self._waiting: deque[Task] = deque()

    def __enter__(self) -> None:
        while self._held:
            self._waiting.append(self._schedule.running)
            self._schedule.wait()
        self._held = True

    def __exit__(self, *_: object) -> None:
        self._held = False
        if self._waiting:
            self._schedule.after(0.0, self._waiting.popleft())


class _Job(Future[Any]):
    def __init__(self, schedule: Schedule) -> None:
        super().__init__()
        self._schedule = schedule
        self._waiting: list[Task] = []

    def end(self) -> None:
        for task in self._waiting:
            self._schedule.after(0.0, task)

    def wait(self) -> None:
        while not self.done():
            self._waiting.append(self._schedule.running)
            self._schedule.wait()

    def result(self, timeout: float | None = None) -> Any:
        self.wait()
        return super().result()

    def exception(self, timeout: float | None = None) -> BaseException | None:
        self.wait()
        return super().exception()


class Pool(Executor):
    """In place of a ThreadPoolExecutor: each job is a task of the process that submits it."""

    def __init__(self, schedule: Schedule) -> None:
        self._schedule = schedule
        self._jobs: list[_Job] = []

    def submit(self, function: Callable[..., Any], /, *given: Any, **named: Any) -> _Job:
        job = _Job(self._schedule)
        me = self._schedule.running

        def work() -> None:
            if not job.set_running_or_notify_cancel():
                return
            try:
                job.set_result(function(*given, **named))
            except BaseException as error:
                job.set_exception(error)
            job.end()

        self._schedule.spawn(work, me.process, me.call)
        self._jobs.append(job)
        return job

    def shutdown(self, wait: bool = True, *, cancel_futures: bool = False) -> None:
        jobs, self._jobs = self._jobs, []
        for job in jobs:
            if self._schedule.running.process.is_alive:
                job.wait()
