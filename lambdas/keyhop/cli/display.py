"""What the commands show: progress on standard error, an estimate, a summary, the --report file."""

import json
import math
import os
import sys
import time
import uuid
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from keyhop.cli.output import folded, width_of
from keyhop.errors import CannotStart
from keyhop.jobs.estimate import Estimate
from keyhop.jobs.local import LocalJob
from keyhop.wording import counted, duration

if TYPE_CHECKING:
    from rich.progress import Progress as Live

QUIET_SECONDS = 1.0
"""A run shorter than this shows no progress."""

LINE_SECONDS = 5.0

BAR_GAPS = len("  100% ")
"""What the line of a terminal has beside its bar and its text."""


class StatusLine:
    """What goes on, on standard error: one line on a terminal, elsewhere a line now and then."""

    def __init__(self, quiet: bool) -> None:
        self._quiet = quiet
        self._live: Live | None = None
        self._said, self._said_at = "", time.monotonic()

    def __enter__(self) -> "StatusLine":
        return self

    def __exit__(self, *_: object) -> None:
        if self._live is not None:
            self._live.stop()

    def now(self, kind: str, text: str | Sequence[str], share: float | None = None) -> None:
        """What goes on, and the share that is done; repeated seldom while it is of one kind.

        text: or parts of it; a terminal shows as many of them as it has room for.
        """
        if self._quiet:
            return
        parts = [text] if isinstance(text, str) else text
        if sys.stderr.isatty():
            self._live = self._live or _live(with_bar=share is not None)
            width = self._live.console.width
            taken = 2 if share is None else _bar_width(width) + BAR_GAPS
            shown = fitting(parts, width - taken)
            self._live.update(self._live.task_ids[0], completed=share, description=shown)
        elif kind != self._said or time.monotonic() - self._said_at >= LINE_SECONDS:
            self.say(", ".join(parts), kind)

    def say(self, text: str, kind: str = "") -> None:
        """A line that stays; kind: what it is the first of."""
        if self._quiet:
            return
        self._said, self._said_at = kind, time.monotonic()
        try:
            print(folded(text, width_of(sys.stderr)), file=sys.stderr, flush=True)
        except OSError:  # nobody reads it any more; that is no reason to end the work
            self._quiet = True


def fitting(parts: Sequence[str], width: int) -> str:
    """As many of the parts as a line of this width has room for; the first one in any case."""
    kept = len(parts)
    while kept > 1 and len(", ".join(parts[:kept])) > width:
        kept -= 1
    return ", ".join(parts[:kept])


def _bar_width(width: int) -> int:
    """Of a terminal with so many columns."""
    return max(6, min(24, width // 8))


def _live(with_bar: bool) -> "Live":
    from rich.console import Console
    from rich.progress import BarColumn, Progress, SpinnerColumn, TextColumn
    from rich.table import Column

    console = Console(stderr=True)
    bar = (
        BarColumn(bar_width=_bar_width(console.width)),
        TextColumn("{task.percentage:>3.0f}%"),
    )
    # What has no room is cut off: a line that wraps would jump.
    column = Column(no_wrap=True, overflow="crop")
    text = TextColumn("{task.description}", markup=False, table_column=column)
    columns = (*bar, text) if with_bar else (SpinnerColumn(), text)
    live = Progress(*columns, console=console, transient=True)
    live.add_task("", total=1.0)
    live.start()
    return live


class JobProgress:
    """How far a job is; `update` is called a few times a second.

    state: what is being done.
    """

    def __init__(self, job: LocalJob, status: StatusLine, state: str = "reading") -> None:
        self._group = job.group
        self._segments = job.plan.segments
        self._usage = job.reader.usage
        self._status = status
        self._state = state
        self._began = time.monotonic()
        self._before = self._usage.copy()
        self._expected = job.expected
        self._what = "item" if job.plan.task.startswith("rekey") else "key"
        self._share_before: float | None = None
        self._shown = 0.0

    def update(self) -> None:
        """Show how far it is, if it is time to."""
        group, usage, before = self._group, self._usage, self._before
        sentinels = int(usage.counters["put"] + usage.counters["deleted"])
        share = share_done(
            group.ended, self._segments, group.threads, max(group.keys, sentinels), self._expected
        )
        self._shown = max(self._shown, share)
        if self._share_before is None:  # by now a run that goes on has counted what it had done
            self._share_before = share
        elapsed = time.monotonic() - self._began
        if elapsed < QUIET_SECONDS:
            return
        gained = share - self._share_before
        parts = progress_text(
            group.keys,
            usage.read_units,
            (usage.read_units - before.read_units) / elapsed,
            (group.ended, self._segments),
            elapsed * (1 - share) / gained if gained > 0 else None,
            usage.throttles.total(),
            state=self._state,
            sentinels=sentinels,
            writes=usage.write_units,
            write_rate=(usage.write_units - before.write_units) / elapsed,
            what=self._what,
        )
        self._status.now(self._state, parts, self._shown)


def share_done(
    ended: int, segments: int, threads: int, found: int, expected: float | None
) -> float:
    """How much of a job is done, from 0 to 1, as far as can be told.

    Segments tell too little: they may take long, and none may have ended yet. Keys, where it is
    known roughly how many are expected, may tell too much; but no more is done than was begun.
    """
    by_segments = ended / segments
    begun = min(segments, ended + threads) / segments
    by_keys = found / expected if expected else 0.0
    # More than were expected: the expectation was wrong, and says no more.
    return max(by_segments, min(by_keys, begun) if by_keys < 1 else by_segments)


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
    """What a run has come to, in parts for one line: what matters most comes first.

    rate: read units a second. segments: how many are done, and how many there are. sentinels: that
    were put or deleted. what: is counted.
    """
    done, total = segments
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
    return [*parts, f"{done:,} of {counted(total, 'segment')}"]


def plan_lines(estimate: Estimate, not_index: str | None, width: int) -> Iterator[str]:
    """The estimate, for a terminal of so many columns.

    not_index: why the key index is not read; None where it is, or where an index is to be listed.
    """
    yield _headline(estimate)
    yield ""
    rows = [*_rows(estimate)]
    if not_index is not None:
        rows.insert(-1 if "published" in estimate.costs else len(rows), ("index", *["-"] * 5))
    table = _aligned([("method", "RRU", "95% interval", "dollars", "requests", "time"), *rows])
    if max(map(len, table)) > width:
        table = _aligned([("method", "RRU", "dollars", "requests", "time"), *map(_brief, rows)])
    yield from table
    yield ""
    layout = estimate.layout
    yield f"{estimate.method}: {estimate.reason}; {counted(layout.segments, 'segment')}."
    if not_index is not None:
        yield f"index: not read, {not_index}."
    if "published" in estimate.costs:
        yield "Limit=1: one item a request, one request at a time; for comparison."
    yield (
        f"This plan read {estimate.spent_units:,.1f} RRU in "
        f"{counted(estimate.spent_requests, 'request')}. "
        f"Prices: {estimate.prices.on_demand}."
    )


def _aligned(rows: Sequence[tuple[str, ...]]) -> list[str]:
    """The first column to the left, the others to the right."""
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    return [
        "  ".join((name.ljust(widths[0]), *map(str.rjust, cells, widths[1:])))
        for name, *cells in rows
    ]


def _brief(row: tuple[str, ...]) -> tuple[str, ...]:
    """Without the interval."""
    return (*row[:2], *row[3:])


def _rows(estimate: Estimate) -> Iterator[tuple[str, ...]]:
    for name, cost in estimate.costs.items():
        units, more = cost.units, ">= " if cost.at_least else ""
        is_exact = units.low == units.high
        yield (
            "Limit=1" if name == "published" else name + " <- auto" * (name == estimate.method),
            more + (f"{units.mean:,.1f}" if is_exact else f"{units.mean:,.0f}"),
            "" if is_exact else f"{units.low:,.0f} to {units.high:,.0f}",
            f"{more}${estimate.prices.dollars(units.mean):,.6f}",
            f"{more}{cost.requests:,.0f}",
            more + duration(cost.seconds),
        )


def _headline(estimate: Estimate) -> str:
    keys = estimate.findings.keys
    name = f"{estimate.table}/{estimate.index}" if estimate.index else estimate.table
    if estimate.findings.exact:
        return f"{name} has {counted(keys.mean, 'distinct partition key')} (read whole)."
    if not estimate.sampled:
        most = "" if math.isinf(keys.high) else f", at most {keys.high:,.0f} by its item count"
        return (
            f"{name} has at least {counted(keys.low, 'distinct partition key')}{most}: the "
            f"allowance was too small for a sample; give more with --max-read-units."
        )
    return (
        f"{name} has about {counted(keys.mean, 'distinct partition key')} "
        f"(95% interval {keys.low:,.0f} to {keys.high:,.0f})."
    )


def summary_lines(report: Mapping[str, Any]) -> Iterator[str]:
    """The --report of `keyhop keys`, for a person."""
    name = f"{report['table']}/{report['index']}" if report["index"] else report["table"]
    so_far = "" if report["finished"] else " so far"
    seconds = report["seconds"]
    lasted = f"{seconds:.1f} s" if seconds < 90 else duration(seconds)
    fold = report.get("logical", {})
    # Until a run that lists logical keys has folded some, its keys are physical ones.
    is_folded = "folded" in fold
    kind = "logical " if is_folded else "physical " if fold else ""
    yield f"{counted(report['keys'], f'{kind}key')} of {name}{so_far}, in {lasted}"
    yield f"  method    {report['method']}: {report['reason']}"
    yield f"  read      {_read_text(report)}"
    processes = report.get("processes", 1)
    spread = f"{counted(report['segments'], 'segment')}, {report['workers']} at once"
    yield f"  spread    {spread}" + f", in {processes} processes" * (processes > 1)
    if is_folded:
        folded = f"{fold['folded']:,} of {fold['physical_keys']:,}"
        yield f"  folded    {folded} physical keys: {_fold_text(fold)}"
    if left_out := report.get("left_out"):
        left = counted(left_out, "collection")
        yield f"  left out  {left} with no item but a sentinel of the key index"
    if report["throttles"]:
        reasons = sorted(report["throttles"].items(), key=lambda entry: -entry[1])
        yield f"  throttled {', '.join(f'{count:,} x {why}' for why, count in reasons)}"
    if report["no_progress_hops"]:
        yield f"  hops without progress: {report['no_progress_hops']:,}"
    if report["output"]:
        yield f"  keys in   {report['output']}"
    if "verify" in report:
        yield from _verdict_lines(report["verify"])


def _fold_text(fold: Mapping[str, Any]) -> str:
    suffix = f"{fold['separator']}1 to {fold['separator']}1000"
    if fold["metadata"] is None:
        return f"every key that ends in {suffix} is taken for a shard"
    return f"those that end in {suffix} and that {fold['metadata']} knows as shards"


def _read_text(usage: Mapping[str, Any]) -> str:
    return (
        f"{usage['read_units']:,.1f} RRU in {counted(usage['requests'], 'request')}: "
        f"${usage['dollars']:,.6f} (on demand, {usage['price'].partition(', ')[2]})"
    )


def _verdict_lines(verdict: Mapping[str, Any]) -> Iterator[str]:
    yield (
        f"  checked   {verdict['share']:.1%} of the hash space "
        f"({counted(verdict['segments'], 'segment')}, {counted(verdict['keys'], 'key')}), "
        f"for {_read_text(verdict)}"
    )
    yield f"            missing {verdict['missing']:,}, surplus {verdict['surplus']:,}"
    if verdict["appeared"]:
        yield (
            f"            {verdict['appeared']:,} more appeared since the run: a second skip-scan "
            f"finds them"
        )
    for kind, keys in verdict["examples"].items():
        yield f"            {kind}: {'; '.join(map(json.dumps, keys))}"


def check_report_path(path: str | None) -> None:
    """Raises CannotStart if a report is wanted that could not be written there."""
    if not path:
        return
    folder = Path(path).resolve().parent
    if Path(path).is_dir() or not folder.is_dir() or not os.access(folder, os.W_OK):
        raise CannotStart(
            f"--report {path} cannot be written: choose a file in a directory of yours."
        )


def write_report(path: str | None, report: Mapping[str, Any]) -> None:
    """Write a report, if one is wanted: a file as a whole, a pipe or /dev/stderr as it is."""
    if not path:
        return
    text = json.dumps(report, indent=2, ensure_ascii=False) + "\n"
    target = Path(path).resolve()
    if target.exists() and not target.is_file():
        target.write_text(text, encoding="utf-8")
        return
    aside = target.with_name(f".{target.name}.{uuid.uuid4().hex}")
    with aside.open("x", encoding="utf-8") as file:
        file.write(text)
    aside.replace(target)
