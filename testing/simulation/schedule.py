"""A scheduler of tasks in virtual time. Tasks are real threads, of which exactly one runs.

A task yields its turn when it sleeps or waits, that is, at each request. The next task is the one
with the earliest virtual time; a random number decides between equal times. So the same seed gives
the same run on any machine.
"""

import _thread
import random
from collections import deque
from collections.abc import Callable
from concurrent.futures import Executor, Future
from heapq import heappop, heappush
from typing import Any

Act = Callable[[], object]
"""A function that any thread may execute; if it returns a task, that task is next."""


class Killed(BaseException):
    """The task's process was killed."""


class Process:
    """A process, whose tasks are killed together. The name is for traces."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.is_alive = True


class Task:
    """A thread that takes turns; `call` describes its work, for other tasks."""

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

    def after(self, seconds: float, event: Task | Act) -> None:
        """Wake a task, or execute a function that does not wait, in so many seconds."""
        self._number += 1
        heappush(self._events, (self.now + seconds, self._chance.random(), self._number, event))

    def spawn(self, function: Act, process: Process, call: Any = None) -> None:
        """Start a task, which begins at its first turn."""
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
        """Sleep. Raise Killed if the process was killed in the meantime."""
        self.after(seconds, self.running)
        self.wait()

    def sleep_while(self, holds: Callable[[], bool], seconds: float) -> None:
        """Sleep while a condition holds, which is checked every so many seconds.

        The check does not switch threads. Raise Killed like `sleep`.
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
        """Wait until another task wakes this one. Raise Killed like `sleep`."""
        me = self.running
        self._hand_over(me)
        if not me.process.is_alive:
            raise Killed

    def run(self) -> None:
        """Run until no events remain. Raise the first error of a task, which ends the run."""
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
            at, _, _, event = heappop(self._events)
            self.now = max(self.now, at)
            if isinstance(event, Task):
                return event
            try:
                woken = event()
            except BaseException as error:
                self.error = self.error or error
                continue
            if isinstance(woken, Task):
                return woken
        return self._main


class WaitingLock:
    """A lock whose holder may sleep, as a substitute for threading.Lock."""

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
    """A substitute for ThreadPoolExecutor; each job is a task of the process that submits it."""

    def __init__(self, schedule: Schedule) -> None:
        self._schedule = schedule
        self._jobs: list[_Job] = []

    def submit(self, function: Callable[..., Any], /, *arguments: Any, **keywords: Any) -> _Job:
        job = _Job(self._schedule)
        me = self._schedule.running

        def work() -> None:
            if not job.set_running_or_notify_cancel():
                return
            try:
                job.set_result(function(*arguments, **keywords))
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
