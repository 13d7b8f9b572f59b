"""The report on the keys of a table: `examine`."""

import time
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field, replace
from html import escape
from pathlib import Path
from threading import Event
from typing import Any

from keyhop.checks import Must, check_arguments, number, requirements_of
from keyhop.dynamodb.client import NamedTable, name_table
from keyhop.dynamodb.tables import Table
from keyhop.dynamodb.usage import Usage
from keyhop.dynamodb.values import Key
from keyhop.errors import BaselineUnreadable, BudgetSpent, CannotStart, NotPermitted, Stopped
from keyhop.public.runs import Progress
from keyhop.public.tables import CONNECTIONS, index_record
from keyhop.report.candidates import Streamed
from keyhop.report.course import Course
from keyhop.report.facts import Absent, CodeFacts, RequestFacts, SampleFacts, StreamFacts
from keyhop.report.findings import Finding, Report, Severity
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
from keyhop.retries import DEFAULT_PATIENCE_SECONDS

FRAME = '<iframe srcdoc="{}" sandbox="" width="100%" height="720" style="border:0"></iframe>'
"""A notebook shows the page in a frame, so that its styles do not change the notebook."""

_ABOVE_ZERO = Must(number(5e-324), "a number above 0")


@dataclass(frozen=True, slots=True)
class Examination:
    """The report on a table's keys; after a dry run, its price. `repr` shows no keys.

    Attributes:
        table, arn: The table's name and ARN.
        dry_run: Whether none of the table's data was read; the figures are then expected ones.
        read_units, dollars: The costs of the requests, or the maximum price of the sample. None if
            nobody can know it before, because the service does not know the table's size yet.
        findings: The results of all rules: found, clear or unknown. Empty after a dry run.
        changes: The changes since the baseline; None without one.
        report: All that the page shows; None after a dry run.
    """

    table: str
    arn: str
    dry_run: bool
    read_units: float | None
    dollars: float | None
    findings: tuple[Finding, ...] = field(default=(), repr=False)
    changes: Differences | None = field(default=None, repr=False)
    report: Report | None = field(default=None, repr=False)
    _price: Mapping[str, Any] = field(default_factory=dict, repr=False)

    def __repr__(self) -> str:
        if self.dry_run:
            return f"<keyhop.Examination of {self.table}: a dry run>"
        statuses = [finding.status for finding in self.findings]
        counts = ", ".join(f"{statuses.count(each)} {each}" for each in ("found", "clear"))
        return (
            f"<keyhop.Examination of {self.table}: {counts}, {statuses.count('unknown')} unknown>"
        )

    def to_json(self) -> dict[str, Any]:
        """Return the report, as `keyhop report --format json` prints it; or the price."""
        return dict(self._price) if self.report is None else to_json(self.report)

    def to_html(self) -> str:
        """Return the page, which refers to no other file and to no address.

        Raises:
            CannotStart: This was a dry run, which has no page.
        """
        return page(self._complete_report())

    def to_text(self) -> str:
        """Return the report, or the price, for a person."""
        if self.report is not None:
            return "\n".join(line.text for line in self.lines())
        if self.read_units is None or self.dollars is None:
            cost = "an unknown amount, because the size of the table is not known yet"
        else:
            cost = f"at most about {self.read_units:,.0f} RRU: ${self.dollars:,.6f}"
        return f"A report on {self.table} reads {cost}. Nothing of its data was read."

    def lines(self, width: int = 0, verbose: bool = False) -> list[Line]:
        """Return the report, and the changes since the baseline, as lines with their tones.

        Args:
            width: The columns of the longest line; 0 for no limit.
            verbose: Whether all evidence, all steps, and what is unknown or clear are included.

        Raises:
            CannotStart: This was a dry run, which has no report.
        """
        since = [] if self.changes is None else changes(self.changes)
        return [*summary(self._complete_report(), width, verbose), *since]

    def exit_status(self, fail_on: Severity | None = None, strict: bool = False) -> int:
        """Return the exit status of `keyhop report` with these flags: 0, 5 or 6.

        Raises:
            CannotStart: This was a dry run, which has no report.
        """
        return status_of(self._complete_report(), fail_on, strict, self.changes)

    def _complete_report(self) -> Report:
        if self.report is None:
            raise CannotStart("A dry run has no page: examine the table without dry_run.")
        return self.report

    def _repr_html_(self) -> str | None:
        """Return the page for a notebook; a dry run has none."""
        return None if self.report is None else FRAME.format(escape(self.to_html()))


def examine(
    table: Any,
    *,
    session: Any = None,
    endpoint_url: str | None = None,
    stack: str | None = None,
    exhaustive: bool = False,
    control_plane_only: bool = False,
    since: str = "14d",
    stream: float | None = None,
    insights: bool = False,
    code: str | Path | None = None,
    requests: str | Path | None = None,
    accept: Sequence[str] = (),
    peak_writes: float | None = None,
    candidates: Sequence[str] = (),
    confirm: int = 3,
    max_read_units: float | None = None,
    max_read_rate: float | None = None,
    max_cost: float | None = None,
    show_keys: str = "digest",
    baseline: Mapping[str, Any] | None = None,
    patience: float = DEFAULT_PATIENCE_SECONDS,
    dry_run: bool = False,
    progress: Callable[[Progress], None] | None = None,
    approve: Callable[[Examination], None] | None = None,
    stop: Event | None = None,
) -> Examination:
    """Report the problems of a table's keys, with advice and its costs.

    This reads a sample of the table, and writes nothing.

        examination = keyhop.examine("Orders")
        for finding in examination.findings:
            if finding.status == "found":
                print(finding.severity, finding.id, finding.summary)

    Args:
        table, session: See `list_keys`. Boto3's Table sends the requests of DynamoDB; CloudWatch
            and the stream are read with the credentials of the environment.
        endpoint_url: The address of DynamoDB and its streams. Outside AWS, CloudWatch is then asked
            only if AWS_ENDPOINT_URL gives its address; otherwise its findings are "unknown".
        stack: The name of the deployment whose record of the key index counts. By default that of
            this machine counts.
        exhaustive: Read every partition key instead of a sample.
        control_plane_only: Read nothing of the table's data.
        since: How far back metrics are read, such as "14d", "6h" or "30m".
        stream: Read the last records of the table's stream, of so many seconds.
        insights: Ask Contributor Insights for the most accessed keys, where it is on.
        code: A directory, in whose Python files calls of DynamoDB are looked for. None is run.
        requests: The file that `keyhop.report.sampler` has written in your application.
        accept: ["throttled"]: read the table even if its key ranges were throttled within the last
            hour.
        peak_writes: The write units a second that you expect.
        candidates: Other partition keys to be judged, such as "PK=DEVICE#{deviceId}#{ts:day}".
        confirm: How many of the largest collections are measured again.
        max_read_units: The maximum read units of the sample, 2,000 by default.
        max_read_rate: The maximum read units a second.
        max_cost: The maximum dollars of the sample. If `exhaustive` may cost more, BudgetSpent is
            raised, at once or when so much is spent.
        show_keys: How keys are written: "digest", "prefix" or "full".
        baseline: An earlier report on the table, as `to_json` returned it, for `changes`.
        patience: Raise GaveUp when nothing but throttling and failures came for so many seconds.
        dry_run: Only return the price of the sample.
        progress: Is called before each source is read, and a few times a second during the sample,
            in the calling thread.
        approve: Is called with the price, before data of the table is read. An exception that it
            raises ends the call.
        stop: An event that ends the call, with the exception Stopped, when it is set.

    Raises:
        CannotStart: An argument is wrong.
        TableNotFound: The table does not exist.
        BaselineUnreadable: The baseline is not a report on this table.
        KeyhopError: See keyhop.errors.
    """
    arguments = locals()
    check_arguments(arguments, _requirements())
    named = name_table(table, session, endpoint_url, CONNECTIONS, patience)
    names = ("exhaustive", "control_plane_only", "since", "stream", "insights", "peak_writes")
    more = ("confirm", "max_read_units", "max_read_rate", "max_cost", "show_keys", "dry_run")
    settings = ReportInput(
        table=named.name,
        candidates=tuple(candidates),
        accept=tuple(accept),
        **{name: arguments[name] for name in (*names, *more)},
    )
    for sentence in settings.contradictions(str):
        raise CannotStart(f"{sentence}.")
    if max_cost is not None and not exhaustive:
        units = named.connection.prices.units_for(max_cost)
        settings = replace(settings, max_read_units=min(settings.read_units or units, units))
    return _Examining(
        named,
        settings,
        stack,
        progress or (lambda progress: None),
        approve or (lambda price: None),
        stop or Event(),
    ).examine(code, requests, baseline)


def _requirements() -> dict[str, Must]:
    """Return the requirements on arguments, which are those on the fields of an input."""
    declared = requirements_of(ReportInput)
    for name in ("table", "baseline"):  # an input has the names of a table and of a run
        del declared[name]
    # Those of a deployment are narrower.
    limits = dict.fromkeys(("max_read_units", "max_read_rate", "max_cost"), _ABOVE_ZERO)
    seconds = Must(number(5e-324), "a number of seconds above 0")
    return {**declared, **limits, "stream": seconds}


def _flag(name: str) -> str:
    """Return the flag for a field, because a report names flags."""
    return f"--{name.replace('_', '-')}"


@dataclass(slots=True)
class _Examining:
    """One report, which is made in this process."""

    named: NamedTable
    settings: ReportInput
    stack: str | None
    progress: Callable[[Progress], None]
    approve: Callable[[Examination], None]
    stop: Event
    usage: Usage = field(default_factory=Usage)
    course: Course = field(init=False)

    def examine(
        self,
        code: str | Path | None,
        requests: str | Path | None,
        baseline: Mapping[str, Any] | None,
    ) -> Examination:
        """Read the sources, and judge their facts. Raises Stopped."""
        began = time.monotonic()
        self.course = course = Course(self.named.connection, self.settings, _flag)
        table = course.begin()
        if baseline is not None:
            check(baseline, table.name)
            course.ours = (_own_reads(baseline),)
        if self.settings.dry_run:
            return self._price()
        code_facts, request_facts = _code(code), _requests(requests, table.name)
        with ThreadPoolExecutor(1) as pool:
            self._show("metrics")
            metrics = course.metrics()
            absent = course.why_no_data(metrics)
            if absent is None:
                self._check_price()
            insights = pool.submit(course.insights)
            if self.settings.stream is not None:
                self._show("stream")
            written = Busiest(table.partition)
            stream, streamed = self._stream(written, absent is None)
            self._check_stop()
            sampled = absent or self._sample(written.keys())
        self._check_stop()
        course.add_reads(self.usage.read_units, self.usage.requests)
        report = course.report(
            metrics=metrics,
            insights=insights.result(),
            stream=stream,
            sample=sampled,
            code=code_facts,
            requests=request_facts,
            streamed=streamed,
            seconds=time.monotonic() - began,
        )
        return Examination(
            table.name,
            table.arn,
            False,
            report.spent.rru,
            report.spent.dollars,
            report.findings,
            None if baseline is None else differences(baseline, report),
            report,
        )

    def _price(self) -> Examination:
        price, table = self.course.price(), self.course.facts
        units, dollars = price["read_units"], price["dollars"]
        return Examination(table.name, table.arn, True, units, dollars, _price=price)

    def _check_price(self) -> None:
        """Raise BudgetSpent if the data may cost too much, or what `approve` raises."""
        price, maximum = self._price(), self.settings.max_cost
        if maximum is not None and (price.dollars or 0.0) > maximum:
            raise BudgetSpent(
                f"Reading every partition key of {price.table} costs up to about "
                f"${price.dollars:,.2f}, more than the maximum of ${maximum:g}: give a "
                "higher max_cost=, or leave exhaustive= out."
            )
        self.approve(price)

    def _stream(
        self, written: Busiest, may_read: bool
    ) -> tuple[StreamFacts | Absent, list[Streamed | None]]:
        is_read = may_read and self.settings.stream is not None
        places = self.course.places() if is_read else None
        try:
            return self.course.stream([written.take], places)
        finally:
            if places is not None:
                self.usage.add(places.usage)

    def _sample(self, written: Sequence[Key]) -> SampleFacts | Absent:
        """Read the sample, or return why it was not read: a denied action ends no report."""
        settings, connection = self.settings, self.named.connection
        units, request = settings.read_units, settings.request(str, {})
        if units is None and settings.max_cost is not None:
            units = connection.prices.units_for(settings.max_cost)
        if units is not None:
            remaining = max(1.0, units - self.usage.read_units)
            is_limited = settings.read_units is not None
            settings = replace(settings, max_read_units=remaining) if is_limited else settings
            request = replace(settings.request(str, {}), max_read_units=remaining)
        try:
            return sample(
                connection,
                self.course.table,
                request,
                ours_of=self._ours_of,
                candidates={"stream": written} if written else {},
                stop=self.stop,
                usage=self.usage,
                idle=lambda: self._show("sample", units),
            )
        except NotPermitted as error:
            return why_denied(str(error))

    def _ours_of(self, table: Table) -> tuple[Key, ...]:
        """Return the attributes by which Keyhop recognises its items."""
        connection = self.named.connection
        sentinels = index_record(connection, self.stack).sentinels_of(table)
        return () if sentinels is None else (sentinels.item,)

    def _show(self, activity: str, units: float | None = None) -> None:
        read = self.usage.read_units
        share = min(1.0, read / units) if units else 0.0
        self.progress(Progress(0, None, share, 0, 0, read, 0.0, 0, activity=activity))

    def _check_stop(self) -> None:
        if self.stop.is_set():
            raise Stopped


def _own_reads(baseline: Mapping[str, Any]) -> Own:
    """Return the reads of an earlier report, which are not traffic of the application."""
    try:
        return Own.of_report(baseline)
    except (KeyError, TypeError, ValueError) as error:
        raise BaselineUnreadable(f"The baseline is damaged: {AGAIN}.") from error


def _code(path: str | Path | None) -> CodeFacts | Absent:
    if path is None:
        return Absent("no code was given", "--code DIR")
    return read_directory(Path(path))


def _requests(path: str | Path | None, table: str) -> RequestFacts | Absent:
    if path is None:
        return Absent("no requests were given", "--requests FILE")
    return read_requests(Path(path), table)
