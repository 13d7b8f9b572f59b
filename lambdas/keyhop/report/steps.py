"""A report by a state machine: the work of ExamineTable in each state of ReportKeys.

A step keeps its results in the files of the report's run, and passes on only names; so each step
may be repeated. The sample is a separate run, of the job SampleKeys.
"""

import json
from collections.abc import Callable, Iterable, Mapping
from dataclasses import asdict, dataclass, replace
from typing import Any, Literal, TypeVar

from keyhop.checks import camel
from keyhop.dynamodb.client import Connection
from keyhop.dynamodb.usage import Usage
from keyhop.errors import BaselineUnreadable, RunConflict
from keyhop.jobs.journal import Journal
from keyhop.jobs.request import table_name
from keyhop.jobs.runs import ExecutionContext
from keyhop.report.candidates import Streamed
from keyhop.report.course import Course, total
from keyhop.report.facts import (
    Absent,
    InsightFacts,
    MetricFacts,
    SampleFacts,
    StreamFacts,
    TableFacts,
)
from keyhop.report.facts_json import source_json, source_of
from keyhop.report.findings import SEVERITIES, Finding, Report, Severity, Spent, worst_first
from keyhop.report.forms import Shower
from keyhop.report.latest import PAGE, REPORT, WIDGETS, Latest
from keyhop.report.pages.baseline import FINE, FOUND, differences, status_of
from keyhop.report.pages.document import to_json
from keyhop.report.pages.page import page, widget
from keyhop.report.request import ReportInput
from keyhop.report.sampling import look_again
from keyhop.report.sources.absence import why_denied
from keyhop.report.sources.metrics import Own

T = TypeVar("T")
SOURCES = ("table", "metrics", "insights", "stream", "sample")
Step = Literal["plan", "insights", "stream", "denied", "probe", "advise", "render"]
STEPS: tuple[Step, ...] = ("plan", "insights", "stream", "denied", "probe", "advise", "render")
State = dict[str, Any]

OF_THE_REPORT = {"scheduled", "failOn", "strict", "baseline"}
"""The fields of the input that the job SampleKeys does not receive."""

HEARD = "facts/heard.json"
"""The file with the stream's figures for each candidate key, if it has any."""
ADVICE = "advice.json"
"""The file with the report, from the step that makes it to the step that writes it."""

MOST_TOLD = 20
"""The maximum number of findings in an execution's output; the report has all."""


@dataclass(frozen=True, slots=True)
class Steps:
    """The steps of one execution.

    Attributes:
        wishes: The input of the execution.
        given: The input as plain JSON.
        table: The table as requests name it.
        journal: The journal of the report's run, which has the name of the execution.
        journal_of: Returns the journal of a sample's run, by its name.
        latest: The latest report on the table.
        tell: Receives the findings by severity, and the number of new ones of severity high.
        clock: Returns the time in epoch seconds.
    """

    wishes: ReportInput
    given: Mapping[str, Any]
    table: str
    execution: ExecutionContext
    connection: Connection
    journal: Journal
    journal_of: Callable[[str], Journal]
    latest: Latest
    tell: Callable[[Mapping[Severity, int], int], None]
    clock: Callable[[], float]

    def take(self, step: Step, state: State) -> State:
        """Return the next state.

        Raises:
            KeyhopError: Any error of reading or sampling the table.
        """
        return {
            "plan": lambda state: self.plan(),
            "insights": self.insights,
            "stream": self.stream,
            "denied": self.denied,
            "probe": self.probe,
            "advise": self.advise,
            "render": self.render,
        }[step](state)

    def plan(self) -> State:
        """Read the table's settings and its metrics.

        This is before the sample, so the metrics do not include its reads.
        """
        if self.journal.plan() is not None:
            raise RunConflict(
                f"There is a run named {self.execution.name!r} already: start with another name."
            )
        if self.wishes.baseline is not None:
            self._baseline(self.wishes.baseline)
        course = self._course()
        if (before := _read(self.latest.report())) is not None:
            course.ours = (Own.of_report(before),)
        table = course.begin()
        if self.wishes.dry_run:
            return {"dryRun": True, "estimate": course.price()}
        self._keep("table", table, course)
        metrics = course.metrics()
        self._keep("metrics", metrics, course)
        state: State = {"dryRun": False, "at": course.at, "identity": course.table.identity}
        if (absent := course.why_no_data(metrics)) is None:
            sample = {
                name: value for name, value in self.given.items() if name not in OF_THE_REPORT
            }
            return {**state, "sample": sample}
        self._keep("sample", absent, course)
        return state

    def insights(self, state: State) -> State:
        """Read Contributor Insights, if the input includes it."""
        course = self._course(state)
        self._keep("insights", course.insights(), course)
        return {}

    def stream(self, state: State) -> State:
        """Read the stream, if the input includes it, and replay it for candidate keys."""
        course = self._course(state)
        facts, streamed = course.stream()
        self._keep("stream", facts, course)
        self.journal.keep(HEARD, [figures and source_json(figures) for figures in streamed])
        return {}

    def denied(self, state: State) -> State:
        """Keep the reason for the missing sample: a function of SampleKeys lacks a permission.

        Args:
            state: The state after Plan, with the failed execution of SampleKeys in `sampling`.

        Returns:
            The state of a table that is not sampled.
        """
        cause = str(state["sampling"]["execution"].get("Cause", ""))
        self._keep("sample", why_denied(cause), self._course(state))
        return {"run": None}

    def probe(self, state: State) -> State:
        """Measure the largest collections of the sample.

        Collections from Insights and the stream are not measured: no file holds their keys, only
        digests.
        """
        if (run := state["sampled"]["run"]) is None:
            return state
        usage = Usage()
        facts = look_again(
            self.connection,
            self.journal_of(run),
            max_read_rate=self.wishes.max_read_rate,
            usage=usage,
        )
        course = self._course(state)
        course.add_reads(usage.read_units, usage.requests)
        self._keep("sample", facts, course)
        return state

    def advise(self, state: State) -> State:
        """Judge the facts, without any request to the table."""
        course = self._course(state)
        files = [self.journal.load(_name(source)) for source in SOURCES]
        course.spent += [Spent(**file["spent"]) for file in files if file is not None]
        if (run := state["sampled"]["run"]) is not None:
            manifest = self.journal_of(run).manifest() or {}
            course.add_reads(manifest["read_units"], manifest["requests"])
        streamed = [
            None if file is None else _present(source_of(Streamed, file))
            for file in self.journal.load(HEARD)
        ]
        report = course.report(
            metrics=self._kept("metrics", MetricFacts),
            insights=self._kept("insights", InsightFacts),
            stream=self._kept("stream", StreamFacts),
            sample=self._kept("sample", SampleFacts),
            code=Absent("a deployment has no code to read", "keyhop report TABLE --code DIR"),
            requests=Absent(
                "a deployment has no file of the request sampler",
                "keyhop report TABLE --requests FILE",
            ),
            streamed=streamed,
            seconds=self.clock() - state["at"],
        )
        self.journal.keep(ADVICE, source_json(report))
        return state

    def render(self, state: State) -> State:
        """Write the report, count its findings, and replace the latest report."""
        report = _present(source_of(Report, self.journal.load(ADVICE)))
        files = {
            REPORT: json.dumps(to_json(report), allow_nan=False),
            PAGE: page(report),
            WIDGETS["light"]: widget(report, "light"),
            WIDGETS["dark"]: widget(report, "dark"),
        }
        for name, content in files.items():
            self.journal.store.replace(name, content.encode())
        before = _read(self.latest.report())
        if before is None or before["at"] < report.at:
            # Before it is kept: an interrupted step reports this twice rather than never.
            self.tell(_by_severity(report.findings), len(_new_high(report, before)))
            self.latest.keep(files)
        baseline = None if self.wishes.baseline is None else self._baseline(self.wishes.baseline)
        changed = None if baseline is None else differences(baseline, report)
        status = status_of(report, self.wishes.fail_on, self.wishes.strict, changed)
        result = {
            "table": self.table,
            **_outcome(report, _new_high(report, before if baseline is None else baseline)),
            "run": self.execution.name,
            "page": self.journal.store.url(PAGE),
            "report": self.journal.store.url(REPORT),
        }
        why = _why_failed(report, self.wishes.fail_on, status, result["page"])
        return {"result": result, **({"why": why} if why else {})}

    def _baseline(self, run: str) -> Mapping[str, Any]:
        before = _read(self.journal_of(run).store.read(REPORT))
        if before is None:
            raise RunConflict(f"There is no report in the run {run!r} to compare with.")
        if before["table"]["name"] != table_name(self.table):
            raise RunConflict(f"The report in the run {run!r} is on another table.")
        return before

    def _course(self, state: State | None = None) -> Course:
        """Return the course of the report.

        Args:
            state: The state of a step after Plan, which continues with Plan's facts.
        """
        wishes = replace(self.wishes, table=self.table)
        if state is None:
            return Course(self.connection, wishes, camel, self.clock())
        course = Course(self.connection, wishes, camel, state["at"])
        course.facts = _present(self._kept("table", TableFacts))
        course.shower = Shower(state["identity"], wishes.show_keys)
        return course

    def _kept(self, source: str, shape: type[T]) -> T | Absent:
        return source_of(shape, self.journal.load(_name(source)))

    def _keep(self, source: str, facts: Any, course: Course) -> None:
        """Keep facts with the cost of reading them."""
        spent = asdict(total(course.spent))
        course.spent.clear()
        self.journal.keep(_name(source), {**source_json(facts), "spent": spent})


def _present(facts: T | Absent) -> T:
    assert not isinstance(facts, Absent), "an earlier step has kept it"
    return facts


def _name(source: str) -> str:
    return f"facts/{source}.json"


def _read(content: bytes | None) -> Mapping[str, Any] | None:
    """Return a report as JSON; None if there is none."""
    return None if content is None else dict(json.loads(content))


def _by_severity(findings: Iterable[Finding]) -> dict[Severity, int]:
    """Return how many findings of each severity were found, zeros included."""
    severities = [finding.severity for finding in findings if finding.status == "found"]
    return {severity: severities.count(severity) for severity in SEVERITIES}


def _new_high(report: Report, before: Mapping[str, Any] | None) -> list[Finding]:
    """Return the findings of severity high that the previous report did not have.

    Args:
        report: The report.
        before: The previous report as JSON. If it is missing or cannot be compared, the result has
            every such finding.
    """
    high = [
        finding
        for finding in report.findings
        if (finding.status, finding.severity) == ("found", "high")
    ]
    if before is None:
        return high
    try:
        changed = differences(before, report)
    except BaselineUnreadable:  # another version has other alarms
        return high
    return [finding for finding in (*changed.new, *changed.worse) if finding.severity == "high"]


def _outcome(report: Report, new: Iterable[Finding]) -> dict[str, Any]:
    """Return the output of an execution, with the findings first."""
    problems = worst_first([finding for finding in report.findings if finding.status == "found"])
    return {
        "findings": _by_severity(report.findings),
        "new_high": [_called(finding) for finding in new],
        "unknown": sum(finding.status == "unknown" for finding in report.findings),
        "found": [
            {
                "rule": finding.id,
                "target": finding.target,
                "severity": finding.severity,
                "summary": finding.summary,
            }
            for finding in problems[:MOST_TOLD]
        ],
        "read_units": report.spent.rru,
        "dollars": report.spent.dollars,
        "seconds": report.spent.seconds,
    }


def _called(finding: Finding) -> str:
    """Name a finding, such as `A6` or `A9 of byCity`."""
    return f"{finding.id} of {finding.target}" if finding.target else finding.id


def _why_failed(report: Report, fail_on: Severity | None, status: int, page: str) -> str:
    """Return why an execution has failed, in a sentence; "" if it has not.

    Args:
        report: The report.
        fail_on: The severity at which it fails.
        status: The result of `status_of`.
        page: The address of the report's page.
    """
    if status == FINE:
        return ""
    if status != FOUND:
        return f"A rule is unknown that another source could answer (strict). The report is {page}."
    counts = ", ".join(f"{number} {name}" for name, number in _by_severity(report.findings).items())
    return f"Found: {counts} (failOn {fail_on}). The report is {page}."
