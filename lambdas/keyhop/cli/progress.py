"""Progress on stderr: a bar on a terminal, a line every few seconds elsewhere."""

import sys
import time
from typing import TYPE_CHECKING

from keyhop.jobs.worker import Progress
from keyhop.scan.reader import PageReader

if TYPE_CHECKING:
    from rich.progress import Progress as Bar
    from rich.progress import TaskID

QUIET_SECONDS = 1.0
"""A run shorter than this shows no bar."""

LINE_SECONDS = 5.0


class Display:
    """Shows how a run proceeds; `update` is called a few times a second."""

    def __init__(self, reader: PageReader, progress: Progress, quiet: bool) -> None:
        self._reader = reader
        self._progress = progress
        self._quiet = quiet
        self._terminal = sys.stderr.isatty()
        self._began = time.monotonic()
        self._shown = self._began
        self._units_at_begin = reader.usage.read_units
        self._ended_at_begin = progress.ended
        self._bar: Bar | None = None
        self._task: TaskID | None = None

    def __enter__(self) -> "Display":
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def update(self) -> None:
        """Show how far the run is, if it is time to."""
        if self._quiet:
            return
        now = time.monotonic()
        if self._terminal:
            if now - self._began >= QUIET_SECONDS:
                self._update_bar()
        elif now - self._shown >= LINE_SECONDS:
            self._shown = now
            try:
                print(self.line(now), file=sys.stderr, flush=True)
            except OSError:  # nobody reads it any more; that is no reason to end the run
                self._quiet = True

    def close(self) -> None:
        """Take the bar away."""
        if self._bar is not None:
            self._bar.stop()
            self._bar = None

    def line(self, now: float) -> str:
        """Where the run stands, in one line."""
        elapsed = max(1e-9, now - self._began)
        units = self._reader.usage.read_units
        rate = (units - self._units_at_begin) / elapsed
        parts = [
            f"{self._progress.keys:,} keys",
            f"{units:,.0f} RRU",
            f"{rate:,.0f} RRU/s",
            f"{self._progress.ended:,} of {self._progress.segments:,} segments",
        ]
        throttles = sum(self._reader.usage.throttles.values())
        if throttles:
            parts.append(f"throttled {throttles:,} times")
        left = self._seconds_left(elapsed)
        if left is not None:
            parts.append(f"about {duration(left)} left")
        return ", ".join(parts)

    def _seconds_left(self, elapsed: float) -> float | None:
        ended = self._progress.ended - self._ended_at_begin
        if not ended:
            return None
        return elapsed / ended * (self._progress.segments - self._progress.ended)

    def _update_bar(self) -> None:
        if self._bar is None:
            from rich.console import Console
            from rich.progress import BarColumn, TextColumn
            from rich.progress import Progress as Bar

            self._bar = Bar(
                BarColumn(bar_width=24),
                TextColumn("{task.percentage:>3.0f}%"),
                TextColumn("{task.description}"),
                console=Console(stderr=True),
                transient=True,
            )
            self._task = self._bar.add_task("", total=self._progress.segments)
            self._bar.start()
        assert self._task is not None
        self._bar.update(
            self._task, completed=self._progress.ended, description=self.line(time.monotonic())
        )


def duration(seconds: float) -> str:
    """A time span as people say it."""
    if seconds < 90:
        return f"{seconds:.0f} s"
    if seconds < 5400:
        return f"{seconds / 60:.0f} min"
    return f"{seconds / 3600:.1f} h"
