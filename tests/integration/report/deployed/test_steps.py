"""ReportKeys on DynamoDB Local, state by state: what each leaves for the next, and what comes out.

The sample is a run of SampleKeys, planned, worked and finished by the fleet's own functions.
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
    """Executions of ReportKeys, without Step Functions."""

    machine: Machine
    table: str
    told: list[tuple[dict[Severity, int], int]] = field(default_factory=list)
    at: float = AT

    def __post_init__(self) -> None:
        self.machine.name = "SampleKeys"

    @property
    def latest(self) -> Latest:
        runs = self.machine.runs
        return latest_in(runs.s3, runs.bucket, self.table)

    def steps(self, execution: ExecutionContext, given: Mapping[str, Any]) -> Steps:
        request, runs = ReportInput.parse(passed_on(given)), self.machine.runs
        return Steps(
            ReportInput.of(request),
            request.job_input,
            self.table,
            execution,
            self.machine.deployment.connect(self.table, 4),
            runs.journal(execution.name),
            runs.journal,
            self.latest,
            lambda found, new: self.told.append((dict(found), new)),
            lambda: self.at,
        )

    def state(self, name: str, **more: Any) -> tuple[Steps, dict[str, Any], dict[str, Any]]:
        """After the states before Advise."""
        given = {"table": self.table, **more}
        steps = self.steps(self.machine.execution(name), given)
        state = passed_on(steps.take("plan", {}))
        if state["dryRun"]:
            return steps, given, state
        for source in ("insights", "stream"):
            steps.take(source, state)  # type: ignore[arg-type]
        return steps, given, {**state, "sampled": {"run": self._sampled(steps, state)["run"]}}

    def _sampled(self, steps: Steps, state: dict[str, Any]) -> dict[str, Any]:
        """Walk the branch of the sample; an execution that fails tells its error and its cause."""
        if "sample" not in state:
            return {"run": None}
        try:
            return self.machine.start(state["sample"])
        except NotPermitted as error:
            cause = f"Group 0 failed. {error} 3 of 90 segments are done. Give the permission."
            failed = {"execution": {"Error": "NotPermitted", "Cause": cause}}
            return passed_on(steps.take("denied", passed_on({**state, "sampling": failed})))

    def run(self, name: str, **more: Any) -> dict[str, Any]:
        """The last state, whose result is the execution's output."""
        steps, given, state = self.state(name, **more)
        if not state["dryRun"]:
            state = after(steps, state)
        exchanged("ReportKeys", given, state.get("result") or state["estimate"])
        return state

    def object(self, key: str) -> str:
        return self.machine.object(key).decode()


def after(steps: Steps, state: dict[str, Any]) -> dict[str, Any]:
    """The states after Sources."""
    for step in ("probe", "advise", "render"):
        state = passed_on(steps.take(step, state))  # type: ignore[arg-type]
    return state


def judged(finding: Mapping[str, Any]) -> list[Any]:
    """Return what a finding says, without why something is unknown: that depends on the place."""
    return [finding[name] for name in ("id", "target", "status", "severity", "advice")]


@pytest.mark.prove
def test_a_candidate_key_is_judged(reports: Reports) -> None:
    reports.run("candidate", candidates=["PK={sk}"], stream=60)
    drawn = json.loads(reports.object("runs/candidate/report.json"))
    assert "PK={sk}" in json.dumps(drawn["pictures"]) + json.dumps(drawn["findings"])


@pytest.fixture
def reports(local: Machine, dynamodb: Database, table_name: str) -> Reports:
    """Of a table whose partition keys are dates, which is what is wrong with it."""
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


def test_an_execution_says_what_it_has_found_what_it_cost_and_where_the_page_is(
    reports: Reports,
) -> None:
    result = reports.run("weekly")["result"]
    document = json.loads(reports.object("runs/weekly/report.json"))
    found = {one["id"] for one in document["findings"] if one["status"] == "found"}
    assert "A3" in found
    assert "A3" in {one["rule"] for one in result["found"]}
    assert result["findings"].keys() == {"high", "medium", "low", "info"}
    assert sum(result["findings"].values()) == len(
        [one for one in document["findings"] if one["status"] == "found"]
    )
    assert 0 < result["read_units"] <= 3_000
    assert 0 < result["dollars"] < 0.01
    assert result["page"] == "s3://results/runs/weekly/report.html"
    assert "<html" in reports.object("runs/weekly/report.html")
    for key in ("runs/weekly/report.json", "runs/weekly/report.html"):
        assert CANARY not in reports.object(key)


def test_the_report_is_that_of_the_command(reports: Reports, dynamodb: Database) -> None:
    """The table is small and so is read through: no estimate is a matter of chance."""
    reports.at = time.time()
    reports.run("here")
    ours = json.loads(reports.object("runs/here/report.json"))
    shown = keyhop("report", reports.table, "--endpoint-url", dynamodb.url, "--format", "json")
    theirs = json.loads(shown.out)
    for document in (ours, theirs):
        del document["pictures"]["top"]  # all collections are equally large
    for name in ("estimates", "pictures", "not_assessed", "table"):
        assert ours[name] == theirs[name], name
    assert [*map(judged, ours["findings"])] == [*map(judged, theirs["findings"])]


def test_the_latest_report_of_the_table_is_replaced_and_what_is_new_is_told_once(
    reports: Reports,
) -> None:
    reports.run("first")
    reports.at += 7 * 86_400
    reports.run("second")
    latest = json.loads(reports.latest.report() or b"")
    assert latest["at"] == reports.at
    assert reports.latest.widget("dark") != reports.latest.widget("light")
    assert [found for found, _ in reports.told] == [reports.told[0][0]] * 2
    assert reports.told[1][1] == 0, "it was there before"


def test_the_reads_of_the_latest_report_are_not_those_of_an_application(
    reports: Reports, monkeypatch: pytest.MonkeyPatch
) -> None:
    reports.run("first")
    requests = json.loads(reports.latest.report() or b"")["spent"]["requests"]
    cloud = FakeCloudWatch(reports.at + 3600)
    cloud.plant_life(reports.table)
    where = {"TableName": reports.table, "Operation": "Scan"}
    cloud.plant("SuccessfulRequestLatency", 1_000, reports.at, **where)
    monkeypatch.setattr(course, "client_beside", lambda service, endpoint: cloud)
    reports.at = cloud.now
    reports.run("second")
    metrics = json.loads(reports.object("runs/second/facts/metrics.json"))
    assert metrics["seen"]["calls"]["Scan"] == 1_000 - requests
    assert requests > 0


def test_an_older_report_that_is_late_does_not_replace_a_newer_one(reports: Reports) -> None:
    late, _, state = reports.state("late")
    reports.at += 60
    reports.run("newer")
    after(late, state)
    assert json.loads(reports.latest.report() or b"")["at"] == reports.at
    assert len(reports.told) == 1


def test_any_step_may_be_taken_twice(reports: Reports) -> None:
    steps, _, state = reports.state("twice")
    assert after(steps, state)["result"]["page"] == after(steps, state)["result"]["page"]
    assert len(reports.told) == 1


def test_sources_that_were_not_asked_say_so(reports: Reports) -> None:
    reports.run("asked", insights=True, stream=60)
    sources = json.loads(reports.object("runs/asked/report.json"))["sources"]
    assert sources["control plane"] == "looked at"
    assert sources["sample"] == "looked at"
    assert "no stream" in sources["stream"]
    assert "deployment" in sources["code"]
    assert "deployment" in sources["requests"]


def test_without_the_data_nothing_of_them_is_clear(reports: Reports) -> None:
    result = reports.run("settings", controlPlaneOnly=True)["result"]
    assert result["read_units"] == 0
    document = json.loads(reports.object("runs/settings/report.json"))
    (dates,) = [one for one in document["findings"] if one["id"] == "A3"]
    assert dates["status"] == "unknown"
    assert "not read" in document["sources"]["sample"]


def test_an_estimate_reads_no_item(reports: Reports) -> None:
    estimate = reports.run("estimate", dryRun=True)["estimate"]
    assert (estimate["read_units"], estimate["table"]) == (2_000, reports.table)
    assert not reports.told


def test_an_execution_may_be_told_to_fail_for_what_it_finds(reports: Reports) -> None:
    state = reports.run("strict", failOn="info")
    assert "runs/strict/report.html" in state["why"]
    assert "failOn info" in state["why"]
    assert reports.latest.report(), "it is kept all the same"
    state = reports.run("since", failOn="info", baseline="strict")
    assert "why" not in state, "there is nothing new"


def test_what_cannot_be_done_is_refused_before_anything_is_read(reports: Reports) -> None:
    with pytest.raises(RunConflict, match="no report in the run 'none'"):
        reports.run("compared", baseline="none")
    reports.machine.name = "SampleKeys"
    taken = reports.machine.start({"table": reports.table}, "taken")
    assert taken["run"] == "taken"
    with pytest.raises(RunConflict, match="start with another name"):
        reports.run("taken")


def deny(stand_in: StandIn, operation: str) -> None:
    """Refuse an operation from now on, in IAM's words."""

    def fault(called: str, request: Any) -> None:
        if called == operation:
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
    statuses = {one["id"]: one["status"] for one in document["findings"]}
    assert {statuses[rule] for rule in ("A2", "A3", "A13", "A18")} == {"unknown"}
    assert "clear" in statuses.values(), "other sources have answered"
    assert result["unknown"] == [*statuses.values()].count("unknown")


@pytest.mark.parametrize("operation", ["Scan", prove("Query")])
def test_a_second_look_that_is_denied_leaves_the_sample_as_it_is(
    machine: Machine, strict: Database, stand_in: StandIn, table_name: str, operation: str
) -> None:
    """ExamineTable takes it, under another role than the functions that have read the sample."""
    strict.collections(table_name, [400] * 20, filling=900)
    steps, _, state = Reports(machine, table_name).state("second", maxReadUnits=150)
    deny(stand_in, operation)
    after(steps, state)
    document = json.loads(machine.object("runs/second/report.json"))
    assert document["sources"]["sample"] == "looked at"
    assert document["estimates"]["keys"]["value"] > 0
