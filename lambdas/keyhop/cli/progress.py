"""Progress on stderr: a bar on a terminal, a line every few seconds elsewhere."""

import sys
import time
from typing import TYPE_CHECKING

from keyhop.jobs.worker import Progress
from keyhop.scan.reader import PageReader

if TYPE_CHECKING:
    from rich.progress import Progress as Bar

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
        self._began = self._shown = time.monotonic()
        self._units_before = reader.usage.read_units
        self._ended_before: int | None = None
        self._bar: Bar | None = None

    def __enter__(self) -> "Display":
        return self

    def __exit__(self, *_: object) -> None:
        if self._bar is not None:
            self._bar.stop()

    def update(self) -> None:
        """Show how far the run is, if it is time to."""
        if self._ended_before is None:  # by now a run that goes on has counted what it had done
            self._ended_before = self._progress.ended
        if self._quiet:
            return
        now = time.monotonic()
        if self._terminal:
            if now - self._began >= QUIET_SECONDS:
                self._update_bar(now)
        elif now - self._shown >= LINE_SECONDS:
            self._shown = now
            try:
                print(self._line(now), file=sys.stderr, flush=True)
            except OSError:  # nobody reads it any more; that is no reason to end the run
                self._quiet = True

    def _line(self, now: float) -> str:
        """Where the run stands."""
        progress, usage = self._progress, self._reader.usage
        elapsed = max(1e-9, now - self._began)
        parts = [
            f"{progress.keys:,} keys",
            f"{usage.read_units:,.0f} RRU",
            f"{(usage.read_units - self._units_before) / elapsed:,.0f} RRU/s",
            f"{progress.ended:,} of {progress.segments:,} segments",
        ]
        if usage.throttles:
            parts.append(f"throttled {usage.throttles.total():,} times")
        ended = progress.ended - (self._ended_before or 0)
        if ended:
            left = elapsed / ended * (progress.segments - progress.ended)
            parts.append(f"about {duration(left)} left")
        return ", ".join(parts)

    def _update_bar(self, now: float) -> None:
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
            self._bar.add_task("", total=self._progress.segments)
            self._bar.start()
        (task,) = self._bar.task_ids
        self._bar.update(task, completed=self._progress.ended, description=self._line(now))


def duration(seconds: float) -> str:
    """A time span as people say it."""
    if seconds < 90:
        return f"{seconds:.0f} s"
    if seconds < 5400:
        return f"{seconds / 60:.0f} min"
    return f"{seconds / 3600:.1f} h"
