"""Tests of the states of ReportKeys and of its output, on DynamoDB Local.

The sample is a run of SampleKeys by the functions of the fleet.
"""

import json
import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import pytest
from keyhop.errors import NotPermitted, RunConflict
from keyhop.jobs.runs import ExecutionContext
from keyhop.report import course
from keyhop.report.findings import Severity
from keyhop.report.latest import Latest, latest_in
from keyhop.report.request import ReportInput
from keyhop.report.steps import Steps

from testing.databases import Database, keyhop
from testing.marks import prove
from testing.report_cloud import FakeCloudWatch
from testing.schemas.watch import exchanged
from testing.simulation.service import failure
from testing.standin.server import StandIn
from tests.machine import Machine, passed_on

AT = 1_795_000_000.0
CANARY = "canary-7f3a"


@dataclass
class Reports:
    """A runner of executions of ReportKeys, without Step Functions."""

    machine: Machine
    table: str
    counts: list[tuple[dict[Severity, int], int]] = field(default_factory=list)
    at: float = AT

    def __post_init__(self) -> None:
        self.machine.name = "SampleKeys"

    @property
    def latest(self) -> Latest:
        runs = self.machine.runs
        return latest_in(runs.s3, runs.bucket, self.table)

    def steps(self, execution: ExecutionContext, arguments: Mapping[str, Any]) -> Steps:
        request, runs = ReportInput.parse(passed_on(arguments)), self.machine.runs
        return Steps(
            ReportInput.of(request),
            request.job_input,
            self.table,
            execution,
            self.machine.deployment.connect(self.table, 4),
            runs.journal(execution.name),
            runs.journal,
            self.latest,
            lambda by_severity, new: self.counts.append((dict(by_severity), new)),
            lambda: self.at,
        )

    def state(self, name: str, **options: Any) -> tuple[Steps, dict[str, Any], dict[str, Any]]:
        """Run the states before Advise, and return the steps, the input and the last state."""
        arguments = {"table": self.table, **options}
        steps = self.steps(self.machine.execution(name), arguments)
        state = passed_on(steps.take("plan", {}))
        if state["dryRun"]:
            return steps, arguments, state
        for source in ("insights", "stream"):
            steps.take(source, state)  # type: ignore[arg-type]
        return steps, arguments, {**state, "sampled": {"run": self._sampled(steps, state)["run"]}}

    def _sampled(self, steps: Steps, state: dict[str, Any]) -> dict[str, Any]:
        """Run the branch of the sample. A denied execution passes its error and cause on."""
        if "sample" not in state:
            return {"run": None}
        try:
            return self.machine.start(state["sample"])
        except NotPermitted as error:
            cause = f"Group 0 failed. {error} 3 of 90 segments are done. Give the permission."
            failure = {"execution": {"Error": "NotPermitted", "Cause": cause}}
            return passed_on(steps.take("denied", passed_on({**state, "sampling": failure})))

    def run(self, name: str, **options: Any) -> dict[str, Any]:
        """Return the last state, whose result is the output of the execution."""
        steps, arguments, state = self.state(name, **options)
        if not state["dryRun"]:
            state = finish(steps, state)
        exchanged("ReportKeys", arguments, state.get("result") or state["estimate"])
        return state

    def object(self, key: str) -> str:
        return self.machine.object(key).decode()

    def document(self, name: str) -> Any:
        return json.loads(self.object(f"runs/{name}/report.json"))


def finish(steps: Steps, state: dict[str, Any]) -> dict[str, Any]:
    """Run the states after Sources."""
    for step in ("probe", "advise", "render"):
        state = passed_on(steps.take(step, state))  # type: ignore[arg-type]
    return state


def comparable(finding: Mapping[str, Any]) -> list[Any]:
    """Return the parts of a finding that the command and the execution have in common.

    The reasons of unknown findings differ.
    """
    return [finding[name] for name in ("id", "target", "status", "severity", "advice")]


@pytest.mark.prove
def test_a_candidate_key_is_judged(reports: Reports) -> None:
    reports.run("candidate", candidates=["PK={sk}"], stream=60)
    document = reports.document("candidate")
    assert "PK={sk}" in json.dumps(document["pictures"]) + json.dumps(document["findings"])


@pytest.fixture
def reports(local: Machine, dynamodb: Database, table_name: str) -> Reports:
    """Return reports on a table with the anti-pattern that its partition keys are dates."""
    dynamodb.create(table_name)
    dynamodb.fill(
        table_name,
        (
            {"pk": {"S": f"2025-{day % 12 + 1:02}-{day % 28 + 1:02}"}, "sk": {"S": f"{CANARY}-{n}"}}
            for day in range(84)
            for n in range(3)
        ),
    )
    return Reports(local, table_name)


def test_the_output_has_the_findings_the_cost_and_the_address_of_the_page(
    reports: Reports,
) -> None:
    result = reports.run("weekly")["result"]
    findings = reports.document("weekly")["findings"]
    found_rules = [finding["id"] for finding in findings if finding["status"] == "found"]
    assert "A3" in found_rules
    assert "A3" in {finding["rule"] for finding in result["found"]}
    assert result["findings"].keys() == {"high", "medium", "low", "info"}
    assert sum(result["findings"].values()) == len(found_rules)
    assert 0 < result["read_units"] <= 3_000
    assert 0 < result["dollars"] < 0.01
    assert result["page"] == "s3://results/runs/weekly/report.html"
    assert "<html" in reports.object("runs/weekly/report.html")
    for key in ("runs/weekly/report.json", "runs/weekly/report.html"):
        assert CANARY not in reports.object(key)


def test_the_report_is_that_of_the_command(reports: Reports, dynamodb: Database) -> None:
    """All items of the small table are read, and no estimate depends on chance."""
    reports.at = time.time()
    reports.run("here")
    deployed = reports.document("here")
    result = keyhop("report", reports.table, "--endpoint-url", dynamodb.url, "--format", "json")
    printed = json.loads(result.out)
    for document in (deployed, printed):
        del document["pictures"]["top"]  # all collections are equally large
    for name in ("estimates", "pictures", "not_assessed", "table"):
        assert deployed[name] == printed[name], name
    assert [*map(comparable, deployed["findings"])] == [*map(comparable, printed["findings"])]


def test_the_latest_report_is_replaced_and_a_new_finding_is_counted_once(
    reports: Reports,
) -> None:
    reports.run("first")
    reports.at += 7 * 86_400
    reports.run("second")
    latest = json.loads(reports.latest.report() or b"")
    assert latest["at"] == reports.at
    assert reports.latest.widget("dark") != reports.latest.widget("light")
    assert [by_severity for by_severity, _ in reports.counts] == [reports.counts[0][0]] * 2
    assert reports.counts[1][1] == 0, "the first report had it"


def test_the_reads_of_the_latest_report_are_not_counted_as_an_application_s(
    reports: Reports, monkeypatch: pytest.MonkeyPatch
) -> None:
    reports.run("first")
    requests = json.loads(reports.latest.report() or b"")["spent"]["requests"]
    cloud = FakeCloudWatch(reports.at + 3600)
    cloud.plant_life(reports.table)
    dimensions = {"TableName": reports.table, "Operation": "Scan"}
    cloud.plant("SuccessfulRequestLatency", 1_000, reports.at, **dimensions)
    monkeypatch.setattr(course, "client_beside", lambda service, endpoint: cloud)
    reports.at = cloud.now
    reports.run("second")
    metrics = json.loads(reports.object("runs/second/facts/metrics.json"))
    assert metrics["seen"]["calls"]["Scan"] == 1_000 - requests
    assert requests > 0


def test_an_older_report_that_ends_late_does_not_replace_a_newer_one(reports: Reports) -> None:
    late, _, state = reports.state("late")
    reports.at += 60
    reports.run("newer")
    finish(late, state)
    assert json.loads(reports.latest.report() or b"")["at"] == reports.at
    assert len(reports.counts) == 1


def test_each_step_may_run_twice(reports: Reports) -> None:
    steps, _, state = reports.state("twice")
    assert finish(steps, state)["result"]["page"] == finish(steps, state)["result"]["page"]
    assert len(reports.counts) == 1


def test_the_report_states_which_sources_were_not_read(reports: Reports) -> None:
    reports.run("sources", insights=True, stream=60)
    sources = reports.document("sources")["sources"]
    assert sources["control plane"] == "looked at"
    assert sources["sample"] == "looked at"
    assert "no stream" in sources["stream"]
    assert "deployment" in sources["code"]
    assert "deployment" in sources["requests"]


def test_without_data_a_rule_about_items_is_unknown(reports: Reports) -> None:
    result = reports.run("settings", controlPlaneOnly=True)["result"]
    assert result["read_units"] == 0
    document = reports.document("settings")
    (finding,) = [finding for finding in document["findings"] if finding["id"] == "A3"]
    assert finding["status"] == "unknown"
    assert "not read" in document["sources"]["sample"]


def test_an_estimate_reads_no_item(reports: Reports) -> None:
    estimate = reports.run("estimate", dryRun=True)["estimate"]
    assert (estimate["read_units"], estimate["table"]) == (2_000, reports.table)
    assert not reports.counts


def test_an_execution_with_fail_on_fails_for_a_finding(reports: Reports) -> None:
    state = reports.run("strict", failOn="info")
    assert "runs/strict/report.html" in state["why"]
    assert "failOn info" in state["why"]
    assert reports.latest.report(), "the report is stored nevertheless"
    state = reports.run("since", failOn="info", baseline="strict")
    assert "why" not in state, "no finding is new"


def test_a_missing_baseline_and_a_used_name_are_refused(reports: Reports) -> None:
    with pytest.raises(RunConflict, match="no report in the run 'none'"):
        reports.run("compared", baseline="none")
    reports.machine.name = "SampleKeys"
    assert reports.machine.start({"table": reports.table}, "taken")["run"] == "taken"
    with pytest.raises(RunConflict, match="start with another name"):
        reports.run("taken")


def deny(stand_in: StandIn, operation: str) -> None:
    """Refuse an operation from now on, with the message of IAM."""

    def fault(requested: str, request: Any) -> None:
        if requested == operation:
            raise failure(
                "AccessDeniedException",
                "User: arn:aws:sts::123456789012:assumed-role/Reader/ana is not authorized to "
                f"perform: dynamodb:{operation} on resource: arn:aws:dynamodb:x:1:table/Orders",
            )

    stand_in.fault = fault


@pytest.mark.parametrize("operation", ["Scan", prove("Query")])
def test_a_denied_read_loses_the_sample_and_not_the_other_findings(
    machine: Machine, strict: Database, stand_in: StandIn, table_name: str, operation: str
) -> None:
    strict.collections(table_name, [400] * 20, filling=900)
    deny(stand_in, operation)
    result = Reports(machine, table_name).run("denied", maxReadUnits=150)["result"]
    document = json.loads(machine.object("runs/denied/report.json"))
    action = f"dynamodb:{operation}"
    assert document["sources"]["sample"] == (
        f"{action} is not allowed; allow {action} on arn:aws:dynamodb:x:1:table/Orders"
    )
    statuses = {finding["id"]: finding["status"] for finding in document["findings"]}
    assert {statuses[rule] for rule in ("A2", "A3", "A13", "A18")} == {"unknown"}
    assert "clear" in statuses.values(), "other sources give findings"
    assert result["unknown"] == [*statuses.values()].count("unknown")


@pytest.mark.parametrize("operation", ["Scan", prove("Query")])
def test_a_denied_second_look_leaves_the_sample_unchanged(
    machine: Machine, strict: Database, stand_in: StandIn, table_name: str, operation: str
) -> None:
    """The role of ExamineTable differs from that of the functions that read the sample."""
    strict.collections(table_name, [400] * 20, filling=900)
    steps, _, state = Reports(machine, table_name).state("second", maxReadUnits=150)
    deny(stand_in, operation)
    finish(steps, state)
    document = json.loads(machine.object("runs/second/report.json"))
    assert document["sources"]["sample"] == "looked at"
    assert document["estimates"]["keys"]["value"] > 0
