"""A report by a state machine: the work of ExamineTable in each state of ReportKeys.

A step keeps its results in the files of the report's run, and passes on only names; so each step
may be repeated. The sample is a separate run, of the job SampleKeys.
"""

import json
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass, replace
from typing import Any, Literal, TypeVar

from keyhop.dynamodb.client import Connection
from keyhop.dynamodb.usage import Usage
from keyhop.errors import RunConflict
from keyhop.jobs.journal import Journal
from keyhop.jobs.request import table_name
from keyhop.jobs.runs import ExecutionContext
from keyhop.report.assemble import assemble
from keyhop.report.candidates.evaluate import evaluated
from keyhop.report.candidates.streamed import Listener, Streamed, listening
from keyhop.report.candidates.template import Candidate, candidate
from keyhop.report.facts import (
    Absent,
    Facts,
    InsightFacts,
    MetricFacts,
    SampleFacts,
    StreamFacts,
    TableFacts,
)
from keyhop.report.facts_json import source_json, source_of
from keyhop.report.findings import Report, Severity, Spent
from keyhop.report.latest import PAGE, REPORT, WIDGETS, Latest
from keyhop.report.looks import Looks, total
from keyhop.report.outcome import by_severity, new_high, outcome, why_failed
from keyhop.report.pages.baseline import differences, status_of
from keyhop.report.pages.document import to_json
from keyhop.report.pages.page import page, widget
from keyhop.report.request import THROTTLED, ReportInput
from keyhop.report.second_look import look_again
from keyhop.report.shown import Shower
from keyhop.report.sources.absence import why_denied, why_not
from keyhop.report.sources.traffic import moment_of, write_units

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


@dataclass(frozen=True, slots=True)
class Steps:
    """The steps of one execution.

    Attributes:
        asked: The input of the execution.
        given: The input as plain JSON.
        table: The table as requests name it.
        journal: The journal of the report's run, which has the name of the execution.
        journal_of: Returns the journal of a sample's run, by its name.
        latest: The latest report on the table.
        tell: Receives the findings by severity, and the number of new ones of severity high.
        clock: Returns the time in epoch seconds.
    """

    asked: ReportInput
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
        if self.asked.baseline is not None:
            self._baseline(self.asked.baseline)
        looks = self._looks()
        table = looks.begin()
        if self.asked.dry_run:
            return {"dryRun": True, "estimate": self._estimate(table)}
        self._keep("table", table, looks)
        metrics = looks.metrics()
        self._keep("metrics", metrics, looks)
        state: State = {"dryRun": False, "at": looks.at, "identity": looks.table.identity}
        refused = why_not(metrics, looks.at, THROTTLED in self.asked.accept)
        if self.asked.control_plane_only:
            units = self.asked.read_units or 0.0
            refused = Absent("the data was not read", "without controlPlaneOnly", units)
        if refused is None:
            sample = {
                name: value for name, value in self.given.items() if name not in OF_THE_REPORT
            }
            return {**state, "sample": sample}
        self._keep("sample", refused, looks)
        return state

    def insights(self, state: State) -> State:
        """Read Contributor Insights, if the input includes it."""
        looks = self._looks(state)
        self._keep("insights", looks.insights(), looks)
        return {}

    def stream(self, state: State) -> State:
        """Read the stream, if the input includes it, and replay it for candidate keys."""
        looks = self._looks(state)
        candidates = [Listener(listener) for listener in self._candidates()]
        listeners = [listening(candidates, moment_of, write_units)] if candidates else []
        self._keep("stream", looks.stream(listeners), looks)
        self.journal.keep(HEARD, [_heard(listener) for listener in candidates])
        return {}

    def denied(self, state: State) -> State:
        """Keep the reason for the missing sample: a function of SampleKeys lacks a permission.

        Args:
            state: The state after Plan, with the failed execution of SampleKeys in `sampling`.

        Returns:
            The state of a table that is not sampled.
        """
        looks = self._looks(state)
        self._keep(
            "sample", why_denied(str(state["sampling"]["execution"].get("Cause", ""))), looks
        )
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
            max_read_rate=self.asked.max_read_rate,
            usage=usage,
        )
        looks = self._looks(state)
        dollars = self.connection.prices.dollars(usage.read_units)
        looks.spent.append(Spent(usage.read_units, usage.requests, dollars, 0.0))
        self._keep("sample", facts, looks)
        return state

    def advise(self, state: State) -> State:
        """Judge the facts, without any request to the table."""
        candidates = self._candidates()
        sources = [
            None if file is None else source_of(Streamed, file) for file in self.journal.load(HEARD)
        ]
        streamed = [source if isinstance(source, Streamed) else None for source in sources]
        facts = self._facts(state)
        facts = replace(facts, candidates=evaluated(candidates, streamed, facts))
        report = assemble(facts, self._spent(state), self.asked.show_keys, self.asked.settings())
        self.journal.keep(ADVICE, source_json(report))
        return state

    def render(self, state: State) -> State:
        """Write the report, count its findings, and replace the latest report."""
        report = source_of(Report, self.journal.load(ADVICE))
        assert isinstance(report, Report)
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
            self.tell(by_severity(report.findings), len(new_high(report, before)))
            self.latest.keep(files)
        baseline = None if self.asked.baseline is None else self._baseline(self.asked.baseline)
        changed = None if baseline is None else differences(baseline, report)
        status = status_of(report, self.asked.fail_on, self.asked.strict, changed)
        result = {
            "table": self.table,
            **outcome(report, new_high(report, before if baseline is None else baseline)),
            "run": self.execution.name,
            "page": self.journal.store.url(PAGE),
            "report": self.journal.store.url(REPORT),
        }
        why = why_failed(report, self.asked.fail_on, status, result["page"])
        return {"result": result, **({"why": why} if why else {})}

    def _baseline(self, run: str) -> Mapping[str, Any]:
        before = _read(self.journal_of(run).store.read(REPORT))
        if before is None:
            raise RunConflict(f"There is no report in the run {run!r} to compare with.")
        if before["table"]["name"] != table_name(self.table):
            raise RunConflict(f"The report in the run {run!r} is on another table.")
        return before

    def _estimate(self, table: TableFacts) -> State:
        """Return the maximum cost of the report."""
        prices = self.connection.prices
        units = self.asked.read_units
        if self.asked.control_plane_only:
            units = 0.0
        return {
            "table": self.table,
            "read_units": units,
            "dollars": None if units is None else prices.dollars(units, 0.0),
            "items": table.items,
            "bytes": table.bytes,
        }

    def _looks(self, state: State | None = None) -> Looks:
        """Return the reads of the table's sources.

        Args:
            state: The state of a step after Plan, which continues with Plan's facts.
        """
        settings = replace(self.asked, table=self.table)
        if state is None:
            return Looks(self.connection, settings, self.clock())
        looks = Looks(self.connection, settings, state["at"])
        looks.facts = self._table()
        looks.shower = Shower(state["identity"], settings.show_keys)
        return looks

    def _facts(self, state: State) -> Facts:
        return Facts(
            at=state["at"],
            table=self._table(),
            metrics=self._kept("metrics", MetricFacts),
            insights=self._kept("insights", InsightFacts),
            stream=self._kept("stream", StreamFacts),
            sample=self._kept("sample", SampleFacts),
            code=Absent("a deployment has no code to read", "keyhop report TABLE --code DIR"),
            requests=Absent(
                "a deployment has no file of the request sampler",
                "keyhop report TABLE --requests FILE",
            ),
            peak_writes=self.asked.peak_writes,
            prices=self.connection.prices,
        )

    def _candidates(self) -> tuple[Candidate, ...]:
        return tuple(map(candidate, self.asked.candidates))

    def _spent(self, state: State) -> Spent:
        """Return the cost of all sources, and of the run of the sample."""
        files = [self.journal.load(_name(source)) for source in SOURCES]
        costs = [Spent(**file["spent"]) for file in files if file is not None]
        if (run := state["sampled"]["run"]) is not None:
            manifest = self.journal_of(run).manifest() or {}
            units = manifest["read_units"]
            dollars = self.connection.prices.dollars(units)
            costs.append(Spent(units, manifest["requests"], dollars, 0.0))
        return replace(total(costs), seconds=self.clock() - state["at"])

    def _table(self) -> TableFacts:
        table = self._kept("table", TableFacts)
        assert isinstance(table, TableFacts), "Plan has kept it"
        return table

    def _kept(self, source: str, shape: type[T]) -> T | Absent:
        return source_of(shape, self.journal.load(_name(source)))

    def _keep(self, source: str, facts: Any, looks: Looks) -> None:
        """Keep facts with the cost of reading them."""
        spent = asdict(total(looks.spent))
        looks.spent.clear()
        self.journal.keep(_name(source), {**source_json(facts), "spent": spent})


def _heard(listener: Listener) -> dict[str, Any] | None:
    return source_json(listener.facts()) if listener.seen or listener.writes else None


def _name(source: str) -> str:
    return f"facts/{source}.json"


def _read(content: bytes | None) -> Mapping[str, Any] | None:
    """Return a report as JSON; None if there is none."""
    return None if content is None else dict(json.loads(content))
