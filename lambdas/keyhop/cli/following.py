"""How far an execution is, in a line, again and again."""

from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass, field

from keyhop.cli.executions import Execution
from keyhop.cli.progress import StatusLine, progress_text
from keyhop.cli.stack import ENUMERATE_KEYS, Stack
from keyhop.cli.standing import WatchedRun
from keyhop.errors import KeyhopError

Beside = Callable[[], tuple[str, Sequence[str]]]
"""What else is to be told of an execution: of what kind it is, and parts of a line."""


def nothing_beside() -> tuple[str, Sequence[str]]:
    """Of most executions."""
    return "", ()


@dataclass(frozen=True, slots=True)
class Words:
    """Of the executions of a job."""

    planning: str = "planning"
    reading: str = "reading"
    ending: str = "reading"
    """When all is read, and the task has something to do still."""
    what: str = "key"


JOBS = {
    ENUMERATE_KEYS: Words(),
    "RekeyBackfill": Words(reading="copying", ending="copying", what="item"),
    "RekeyVerify": Words(
        "planning; within 12 s of a copy it waits until nothing of that is under way",
        "comparing",
        "looking at what differs",
        "item",
    ),
}
"""Their runs lie in the bucket."""


@dataclass(slots=True)
class Following:
    """Of one execution. beside: is asked at each look; another kind is shown at once."""

    stack: Stack
    beside: Beside = nothing_beside
    _standing: WatchedRun | None = None
    _before: tuple[float, int, float] = field(default=(0.0, 0, 0.0))

    def show(self, seen: Execution, status: StatusLine) -> None:
        """Look at what its run has committed, if it is a job's; at what is beside it, in any case.

        What cannot be seen is left out: the execution ends by itself, whatever becomes of this.
        """
        machine = seen.machine.rpartition("-")[2]
        kind, more = nothing_beside()
        with suppress(KeyhopError):
            kind, more = self.beside()
        if machine in JOBS:
            self._show_job(seen, status, JOBS[machine], more)
        else:
            status.now(kind or seen.status, more or f"{machine}: at work")

    def _show_job(
        self, seen: Execution, status: StatusLine, words: Words, more: Sequence[str]
    ) -> None:
        is_first = self._standing is None
        self._standing = standing = self._standing or WatchedRun(self.stack.runs, seen.run)
        totals = None
        with suppress(KeyhopError):
            totals = standing.look()
        if totals is None or standing.plan is None:
            status.now("planning", words.planning, 0.0)
            return
        units, ended = totals.usage.read_units, totals.ended
        if is_first and seen.run != seen.name:  # what an earlier execution has done
            self._before = units, ended, seen.seconds
        units_before, ended_before, seconds_before = self._before
        elapsed = max(1.0, seen.seconds - seconds_before)
        segments, gained = standing.plan.segments, ended - ended_before
        parts = progress_text(
            max(totals.keys, totals.counts.total()),
            units,
            (units - units_before) / elapsed,
            (ended, segments),
            elapsed * (segments - ended) / gained if gained > 0 else None,
            totals.usage.throttles.total(),
            state=words.reading if ended < segments else words.ending,
            writes=totals.usage.write_units,
            write_rate=totals.usage.write_units / elapsed,
            what=words.what,
        )
        status.now("", [*parts[:2], *more, *parts[2:]], ended / segments)
