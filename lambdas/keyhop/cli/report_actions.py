"""What `keyhop report` does: read all sources, judge them, and print the report."""

import json
import sys
import time
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import fields, replace
from pathlib import Path
from typing import Any

from keyhop.checks import check_characters
from keyhop.cli.options import Options, flag
from keyhop.cli.output import encodable, width_of
from keyhop.cli.progress import StatusLine
from keyhop.cli.session import ASK_ABOVE, Session, Stop, stop_on_signals
from keyhop.dynamodb.client import Connection
from keyhop.dynamodb.tables import Table
from keyhop.dynamodb.usage import Usage
from keyhop.dynamodb.values import Key
from keyhop.errors import BaselineUnreadable, CannotStart, NotPermitted
from keyhop.report.candidates.streamed import Streamed
from keyhop.report.course import Course
from keyhop.report.facts import Absent, CodeFacts, RequestFacts, SampleFacts, StreamFacts
from keyhop.report.findings import Report
from keyhop.report.pages.baseline import AGAIN, Differences, check, differences, status_of
from keyhop.report.pages.document import to_json
from keyhop.report.pages.page import page
from keyhop.report.pages.text import Line, changes, summary
from keyhop.report.request import ReportInput
from keyhop.report.sampling import sample
from keyhop.report.sources.absence import why_denied
from keyhop.report.sources.code import read_directory
from keyhop.report.sources.metrics import Own
from keyhop.report.sources.requests import read_requests
from keyhop.report.sources.traffic import Busiest

HTML, JSON = "report.html", "report.json"
STYLES = {
    "title": "bold",
    "high": "bold red",
    "medium": "yellow",
    "low": "cyan",
    "info": "blue",
    "unknown": "magenta",
    "clear": "green",
    "command": "bold",
    "quiet": "dim",
}
_FIELDS = {one.name for one in fields(ReportInput)}


def run(options: Options) -> int:
    """Run the command; return its exit status, or raise a KeyhopError."""
    values = _wishes_of(options)
    baseline = None if options.baseline is None else _old(options.baseline)
    _check_output(options.output)
    with stop_on_signals("A report that is cut short says nothing.") as stop:
        report = ReportCommand(options, values, stop, baseline).report()
        return _put_out(
            options, report, None if baseline is None else differences(baseline, report)
        )
    return stop.status


def _wishes_of(options: Options) -> ReportInput:
    """Return the flags in the form of an execution's input.

    Raises:
        CannotStart: Flags exclude each other.
    """
    values = {name: value for name, value in vars(options).items() if name in _FIELDS}
    report_input = ReportInput(
        **{**values, "baseline": None, "candidates": tuple(options.candidate)}
    )
    for sentence in report_input.contradictions(flag):
        raise CannotStart(f"{sentence}.")
    return report_input


def _old(path: str) -> Any:
    try:
        report = json.loads(Path(path).read_bytes())
        check_characters(report)
        return report
    except (OSError, ValueError, RecursionError) as error:
        raise CannotStart(f"--baseline: {path} cannot be read as JSON: {error}.") from error


def _check_output(path: str | None) -> None:
    """Raise CannotStart, before anything is read, if the page could not be written."""
    if path is None:
        return
    try:
        Path(path).mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise CannotStart(f"--output {path}: {error.strerror}.") from error


class ReportCommand(Session):
    """The course of a report on one table, in this process."""

    def __init__(
        self, options: Options, values: ReportInput, stop: Stop, baseline: Any = None
    ) -> None:
        self._wishes = values
        self._old = baseline  # An earlier report, as JSON.
        self._began = time.monotonic()
        self._usage = Usage()
        super().__init__(options, stop, self._begin)

    def _begin(self, connection: Connection, _name: str) -> Table:
        """Read the control plane; raise CannotStart for an old report of another table."""
        self._course = Course(connection, self._wishes, flag)
        facts = self._course.begin()
        if self._old is not None:
            check(self._old, facts.name)
            self._course.ours = (self._earlier(),)
        return self._course.table

    def _earlier(self) -> Own:
        try:
            return Own.of_report(self._old)
        except (KeyError, TypeError, ValueError) as error:
            raise BaselineUnreadable(f"The baseline is damaged: {AGAIN}.") from error

    def report(self) -> Report:
        """Read the sources, and judge their facts. Raises Stopped."""
        course = self._course
        code, requests = self._code(), self._requests()
        with StatusLine(self.options.quiet) as status, ThreadPoolExecutor(1) as pool:
            status.now("metrics", f"looking at the metrics of {course.facts.name}")
            metrics = course.metrics()
            absent = course.why_no_data(metrics)
            insights = pool.submit(course.insights)
            if self._wishes.stream is not None:
                status.now("stream", "reading the stream")
            written = Busiest(course.facts.partition)
            stream, streamed = self._stream(written, absent is None)
            self.check_stop()
            sample = absent or self._sampled(status, written.keys())
        self.check_stop()
        course.add_reads(self._usage.read_units, self._usage.requests)
        return course.report(
            metrics=metrics,
            insights=insights.result(),
            stream=stream,
            sample=sample,
            code=code,
            requests=requests,
            streamed=streamed,
            seconds=time.monotonic() - self._began,
        )

    def _stream(
        self, written: Busiest, may_read: bool
    ) -> tuple[StreamFacts | Absent, list[Streamed | None]]:
        is_read = may_read and self._wishes.stream is not None
        places = self._course.places() if is_read else None
        try:
            return self._course.stream([written.take], places)
        finally:
            if places is not None:
                self._usage.add(places.usage)

    def _sampled(self, status: StatusLine, written: Sequence[Key]) -> SampleFacts | Absent:
        """Read the sample, or return why it was not read: a denied action ends no report."""
        values = self._wishes
        if values.exhaustive:
            self._ask()
        units = values.read_units
        if units is not None:
            values = replace(values, max_read_units=max(1.0, units - self._usage.read_units))
        request = values.request(flag, {})

        def idle() -> None:
            read = self._usage.read_units
            share = None if units is None else min(1.0, read / units)
            status.now("sample", f"{read:,.0f} RRU read", share)

        try:
            return sample(
                self.connection,
                self._course.table,
                request,
                ours_of=self._ours_of,
                candidates={"stream": written} if written else {},
                stop=self.stop.event,
                usage=self._usage,
                idle=idle,
            )
        except NotPermitted as error:
            return why_denied(str(error))

    def _ours_of(self, table: Table) -> tuple[Key, ...]:
        """Return the attributes by which Keyhop recognises its items."""
        sentinels = self.key_index.sentinels_of(table)
        return () if sentinels is None else (sentinels.item,)

    def _ask(self) -> None:
        """Ask before a look at a whole table that may cost more than a little."""
        facts, prices = self._course.facts, self.connection.prices
        units = max(facts.bytes / 8192, facts.items * 0.5 if facts.sort else 0.0)
        if facts.items and prices.dollars(units) <= ASK_ABOVE:
            return

        details = [
            ("items", f"{facts.items:,}" if facts.items else "not known yet"),
            ("cost", f"up to about ${prices.dollars(units):,.2f} ({prices.on_demand})"),
        ]
        self.confirm(f"look at every partition key of {facts.name}", lambda: details)

    def _code(self) -> CodeFacts | Absent:
        if self.options.code is None:
            return Absent("no code was given", "--code DIR")
        return read_directory(Path(self.options.code))

    def _requests(self) -> RequestFacts | Absent:
        if self.options.requests is None:
            return Absent("no requests were given", "--requests FILE")
        return read_requests(Path(self.options.requests), self._course.facts.name)


def _put_out(options: Options, report: Report, since: Differences | None) -> int:
    if options.output is not None:
        folder = Path(options.output)
        (folder / HTML).write_text(page(report), encoding="utf-8")
        (folder / JSON).write_text(_json(report), encoding="utf-8")
    forms: dict[str, Callable[[Report], str]] = {"json": _json, "html": page}
    if options.format in forms:
        sys.stdout.write(encodable(forms[options.format](report)))
    else:
        _print(summary(report, _width()))
        if since is not None:
            _print(changes(since))
        if options.output is not None:
            print(f"\nThe page, with pictures: {Path(options.output) / HTML}")
    return status_of(report, options.fail_on, options.strict, since)


def _width() -> int:
    """Return the width of the terminal; 0 means no limit."""
    return width_of(sys.stdout) if sys.stdout.isatty() else 0


def _json(report: Report) -> str:
    return json.dumps(to_json(report), indent=2, ensure_ascii=False) + "\n"


def _print(lines: list[Line]) -> None:
    if not sys.stdout.isatty():
        for line in lines:
            print(encodable(line.text))
        return
    from rich.console import Console
    from rich.text import Text

    console = Console(highlight=False, soft_wrap=True)
    for line in lines:
        console.print(Text(line.text, style=STYLES[line.tone]))
