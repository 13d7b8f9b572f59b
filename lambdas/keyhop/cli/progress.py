"""The progress of a command on standard error."""

import sys
import time
from collections.abc import Sequence
from typing import TYPE_CHECKING

from keyhop.cli.output import folded, width_of
from keyhop.public.runs import Progress
from keyhop.wording import counted, duration

if TYPE_CHECKING:
    from rich.progress import Progress as Live

QUIET_SECONDS = 1.0
"""A run shorter than this shows no progress."""

LINE_SECONDS = 5.0

BAR_GAPS = len("  100% ")
"""The columns of a terminal's line that neither its bar nor its text takes."""


class StatusLine:
    """The current state on standard error: one line of a terminal, elsewhere a line now and then.

    A context manager, which removes the line at its end.
    """

    def __init__(self, quiet: bool) -> None:
        self._quiet = quiet
        self._live: Live | None = None
        self._said, self._said_at = "", time.monotonic()

    def __enter__(self) -> "StatusLine":
        return self

    def __exit__(self, *_: object) -> None:
        self.end()

    def end(self) -> None:
        """Remove the line."""
        if self._live is not None:
            self._live.stop()
            self._live = None

    def now(self, kind: str, text: str | Sequence[str], share: float | None = None) -> None:
        """Show the current state.

        Args:
            kind: Outside a terminal, text of the same kind is repeated every LINE_SECONDS only.
            text: The text, or its parts; a terminal shows as many of them as fit.
            share: The share that is done.
        """
        if self._quiet:
            return
        parts = [text] if isinstance(text, str) else text
        if sys.stderr.isatty():
            self._live = self._live or _live(with_bar=share is not None)
            width = self._live.console.width
            used = 2 if share is None else _bar_width(width) + BAR_GAPS
            visible = fitting(parts, width - used)
            self._live.update(self._live.task_ids[0], completed=share, description=visible)
        elif kind != self._said or time.monotonic() - self._said_at >= LINE_SECONDS:
            self.say(", ".join(parts), kind)

    def say(self, text: str, kind: str = "") -> None:
        """Print a line that stays; `kind` is the kind of the next text, see `now`."""
        if self._quiet:
            return
        self._said, self._said_at = kind, time.monotonic()
        try:
            print(folded(text, width_of(sys.stderr)), file=sys.stderr, flush=True)
        except OSError:  # The reader has ended, but the work goes on.
            self._quiet = True


def fitting(parts: Sequence[str], width: int) -> str:
    """Join as many of the parts as fit into a line, and at least the first one."""
    count = len(parts)
    while count > 1 and len(", ".join(parts[:count])) > width:
        count -= 1
    return ", ".join(parts[:count])


def _bar_width(columns: int) -> int:
    return max(6, min(24, columns // 8))


def _live(with_bar: bool) -> "Live":
    from rich.console import Console
    from rich.progress import BarColumn, Progress, SpinnerColumn, TextColumn
    from rich.table import Column

    console = Console(stderr=True)
    bar = (
        BarColumn(bar_width=_bar_width(console.width)),
        TextColumn("{task.percentage:>3.0f}%"),
    )
    # Text that does not fit is cut off, because a line that wraps would jump.
    column = Column(no_wrap=True, overflow="crop")
    text = TextColumn("{task.description}", markup=False, table_column=column)
    columns = (*bar, text) if with_bar else (SpinnerColumn(), text)
    live = Progress(*columns, console=console, transient=True)
    live.add_task("", total=1.0)
    live.start()
    return live


class JobProgress:
    """The progress of a job; call `update` before the work, and a few times a second."""

    def __init__(self, status: StatusLine, state: str = "reading", what: str = "key") -> None:
        self._status = status
        self._state = state
        self._what = what
        self._began = time.monotonic()
        self._before: Progress | None = None
        self._share_before: float | None = None
        self._shown = 0.0

    def update(self, progress: Progress) -> None:
        """Show the progress if it is time to."""
        if progress.is_over:
            self._status.end()
            return
        if self._before is None:
            self._before = progress
            return
        self._shown = max(self._shown, progress.share)
        if self._share_before is None:  # A resumed run has counted its earlier work by now.
            self._share_before = progress.share
        elapsed = time.monotonic() - self._began
        if elapsed < QUIET_SECONDS:
            return
        gained = progress.share - self._share_before
        parts = progress_text(
            progress.keys,
            progress.read_units,
            (progress.read_units - self._before.read_units) / elapsed,
            (progress.segments_done, progress.segments),
            elapsed * (1 - progress.share) / gained if gained > 0 else None,
            progress.throttles,
            state=self._state,
            sentinels=progress.sentinels,
            writes=progress.write_units,
            write_rate=(progress.write_units - self._before.write_units) / elapsed,
            what=self._what,
        )
        self._status.now(self._state, parts, self._shown)


def progress_text(
    keys: int,
    units: float,
    rate: float,
    segments: tuple[int, int],
    seconds_left: float | None,
    throttles: int,
    *,
    state: str = "reading",
    sentinels: int = 0,
    writes: float = 0.0,
    write_rate: float = 0.0,
    what: str = "key",
) -> list[str]:
    """Return the progress of a run in parts for one line, the most important ones first.

    Args:
        rate: Read units a second.
        segments: How many have ended, and how many there are.
        sentinels: How many were put or deleted.
        what: The noun for what `keys` counts.
    """
    ended, total = segments
    parts = [
        state,
        f"ETA {'unknown' if seconds_left is None else duration(seconds_left)}",
        counted(sentinels, "sentinel") if sentinels else counted(keys, what),
    ]
    if throttles:
        parts.append(f"throttled {counted(throttles, 'time')}")
    if writes:
        parts += [f"{writes:,.0f} WRU", f"{write_rate:,.0f} WRU/s"]
    parts += [f"{units:,.0f} RRU", f"{rate:,.0f} RRU/s"]
    if sentinels:
        parts.append(counted(keys, "key"))
    return [*parts, f"{ended:,} of {counted(total, 'segment')}"]
