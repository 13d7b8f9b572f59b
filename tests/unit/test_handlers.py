"""The functions' handlers: what they pass on, count and log; their work is tested elsewhere."""

import json
import os
from collections import Counter
from types import SimpleNamespace
from typing import Any

import pytest
from botocore.exceptions import ClientError
from handlers import job, settings
from keyhop.dynamodb.usage import Usage
from keyhop.errors import GaveUp, InvalidInput, KeysMissing, RunFailed
from keyhop.jobs.journal import Checkpoint, Commit, Part
from keyhop.keys.verify import Verdict

from tests.unit.invocations import Context, metrics_in

EXECUTION = {"Id": "arn:e", "Name": "e", "StartTime": "2026-11-01T00:00:00Z", "Input": {}}
SECRET = "a partition key"
GROUP_STATE = {
    "run": "e",
    "execution": "arn:e",
    "maxReadRate": 100,
    "map": "e-0",
    "item": {"group": 3, "mayRead": None},
}


@pytest.fixture(autouse=True)
def environment(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("KEYHOP_BUCKET", "results")
    monkeypatch.setenv("KEYHOP_TABLES", '["Orders"]')
    monkeypatch.setenv("KEYHOP_WORKER_MEMORY_MB", "1769")
    monkeypatch.setenv("KEYHOP_ARCHITECTURE", "arm64")
    monkeypatch.delenv("KEYHOP_MOST_WORKERS", raising=False)
    monkeypatch.setenv("POWERTOOLS_METRICS_NAMESPACE", "Keyhop")
    monkeypatch.setenv("POWERTOOLS_SERVICE_NAME", "enumerate-keys")
    monkeypatch.setattr(settings, "s3_client", lambda: "s3")


def replaced(monkeypatch: pytest.MonkeyPatch, name: str, result: Any) -> list:
    """Put a stand-in for the one call of a handler; returns the calls that it gets."""
    calls = []

    def call(*arguments: Any, **named: Any) -> Any:
        calls.append((arguments, named))
        if isinstance(result, Exception):
            raise result
        return result

    monkeypatch.setattr(name, call)
    return calls


@pytest.mark.parametrize("error", [None, GaveUp("throttled")])
def test_planning_counts_what_it_has_read_found_and_planned(
    monkeypatch: pytest.MonkeyPatch, capsys, error: Exception | None
) -> None:
    state = {"run": "e", "plan": {"segments": 4}, "segmentsLeft": 3}

    def plan(planner, request, disbelieved):
        runs, tables = planner.deployment, planner.deployment.tables
        assert (request.table, planner.execution.name, runs.bucket) == ("Orders", "e", "results")
        assert (tables, planner.most_workers) == (["Orders"], 20)
        assert (planner.worker.memory_mb, planner.worker.architecture) == (1769, "arm64")
        planner.usage.add(Usage(requests=3, read_units=1.5))
        if error is not None:
            raise error
        planner.committed(commit_of(keys=5, ended=1))
        return state

    monkeypatch.setenv("KEYHOP_MOST_WORKERS", "20")
    monkeypatch.setattr("keyhop.jobs.fleet.Planner.plan_run", plan)
    event = {"input": {"table": "Orders"}, "execution": EXECUTION}
    if error is None:
        assert job.plan_run(event, Context()) == state
    else:
        with pytest.raises(GaveUp):
            job.plan_run(event, Context())
    found = {"KeysFound": 5, "SegmentsDone": 1, "SegmentsPlanned": 4} if error is None else {}
    expected = {"ReadUnits": 1.5, **found}
    counted = metrics_in(capsys.readouterr().out)
    assert counted == {(name, ""): value for name, value in expected.items()}


def test_a_wrong_input_fails_by_the_name_that_the_state_machine_catches() -> None:
    with pytest.raises(InvalidInput, match="unknown: 'tabel'"):
        job.plan_run({"input": {"tabel": "Orders"}, "execution": EXECUTION}, Context())


REASON = "TableReadKeyRangeThroughputExceeded"


def commit_of(keys: int, ended: int) -> Commit:
    parts = (Part("parts/g3", 9, "", 0, ((3, keys, 9),)),)
    return Commit(3, 0, "a1", parts, ended, Usage(), 1.0, Checkpoint(), False)


def test_each_commit_is_reported_at_once_by_table_and_each_unit_once(
    monkeypatch: pytest.MonkeyPatch, capsys
) -> None:
    plan = SimpleNamespace(table="Orders", id="e")

    def scan(state, deployment, tasks, seconds, worker, usage, report):
        assert (state["item"]["group"], seconds, worker) == (3, 900, "request-1")
        assert deployment.tables == ["Orders"]
        assert {"keys", "key_index"} <= set(tasks)
        usage.add(Usage(requests=9, read_units=4.5, throttles=Counter({REASON: 3, "": 1})))
        report(plan, commit_of(keys=7, ended=2))
        printed.append(capsys.readouterr().out)
        usage.add(Usage(requests=2, read_units=1.0, retries=1))
        report(plan, commit_of(keys=1, ended=1))
        report(plan, None)
        return {"done": True, "keys": 8, "commits": 2}

    printed: list[str] = []
    monkeypatch.setattr("keyhop.jobs.fleet.scan_segments", scan)
    told = job.scan_segments(GROUP_STATE, Context())
    assert told == {"done": True, "keys": 8, "commits": 2}
    printed.append(capsys.readouterr().out)
    first, second = map(metrics_in, printed)
    assert first == {
        ("KeysFound", ""): 7,
        ("ReadUnits", ""): 4.5,
        ("SegmentsDone", ""): 2,
        ("AllowedRate", ""): 100,
        ("Throttles", REASON): 3,
        ("Throttles", "Unknown"): 1,
    }
    assert second["KeysFound", ""] == 1
    assert second["ReadUnits", ""] == 1.0
    lines = [json.loads(line) for text in printed for line in text.splitlines() if "_aws" in line]
    assert {line["table"] for line in lines} == {"Orders"}
    assert [line["run"] for line in lines if "KeysFound" in line] == ["e", "e"]
    for line in lines:
        (emitted,) = line["_aws"]["CloudWatchMetrics"]
        of_all = [["service"]] if "Throttles" in line else []
        by = ["service", "table", *(["Reason"] if "Reason" in line else [])]
        assert [sorted(one) for one in emitted["Dimensions"]] == [*of_all, sorted(by)]


def test_what_a_failed_slice_has_read_is_counted_too(
    monkeypatch: pytest.MonkeyPatch, capsys
) -> None:
    def scan(*arguments, report):
        arguments[-1].add(Usage(read_units=2.0))
        report(SimpleNamespace(table="Orders", id="e"), None)
        raise GaveUp("throttled")

    monkeypatch.setattr("keyhop.jobs.fleet.scan_segments", scan)
    with pytest.raises(GaveUp):
        job.scan_segments(GROUP_STATE, Context())
    assert metrics_in(capsys.readouterr().out)["ReadUnits", ""] == 2


def test_finishing_counts_a_run_once_it_is_finished(
    monkeypatch: pytest.MonkeyPatch, capsys
) -> None:
    event = {"state": {"run": "e"}, "execution": EXECUTION}
    again = {"run": "e", "next": "scan"}
    replaced(monkeypatch, "keyhop.jobs.fleet.finish_run", again)
    assert job.finish_run(event, Context()) == again
    assert metrics_in(capsys.readouterr().out) == {}
    result = {"table": "Orders", "seconds": 9.5, "cost": {"total": 0.25}}
    end = {"run": "e", "next": "end", "result": result}
    replaced(monkeypatch, "keyhop.jobs.fleet.finish_run", end)
    assert job.finish_run(event, Context()) == end
    counted = metrics_in(capsys.readouterr().out)
    assert counted == {("RunSeconds", ""): 9.5, ("RunDollars", ""): 0.25}


@pytest.mark.parametrize("missing", [0, 2])
def test_a_check_counts_what_it_reads_and_tells_no_examples(
    monkeypatch: pytest.MonkeyPatch, capsys, missing: int
) -> None:
    verdict = Verdict(4, 0.5, 4, 9, missing, examples={"missing": [SECRET]})
    state = {"run": "e", "next": "end"}

    def check(*arguments):
        arguments[-1].add(Usage(read_units=2.0))
        if missing:
            raise KeysMissing("Keys are missing.", missing)
        return state, verdict

    monkeypatch.setattr("keyhop.keys.verify.verify_run", check)
    if missing:
        with pytest.raises(KeysMissing):
            job.verify_run({"run": "e", "table": "Orders"}, Context())
    else:
        assert job.verify_run({"run": "e", "table": "Orders"}, Context()) == state
    printed = capsys.readouterr()
    assert SECRET not in printed.out + printed.err
    assert metrics_in(printed.out) == {("ReadUnits", ""): 2}


def test_cleaning_up_fails_on_purpose(monkeypatch: pytest.MonkeyPatch) -> None:
    ended = tokens(monkeypatch)
    replaced(
        monkeypatch, "keyhop.jobs.fleet.clean_up", RunFailed("Group 3 failed. " * 9_000, "GaveUp")
    )
    event = {"state": {"run": "e"}, "execution": EXECUTION, "token": "t1"}
    assert job.clean_up(event, Context()) == {}
    ((how, told),) = ended
    assert (how, told["taskToken"], told["error"]) == ("failure", "t1", "GaveUp")
    assert told["cause"].startswith("Group 3 failed. ")
    assert len(told["cause"]) < 32_768, "which Step Functions refuses"


def test_a_redriven_run_goes_on(monkeypatch: pytest.MonkeyPatch) -> None:
    ended = tokens(monkeypatch)
    replaced(monkeypatch, "keyhop.jobs.fleet.clean_up", None)
    event = {"state": {"run": "e"}, "execution": EXECUTION, "token": "t1"}
    assert job.clean_up(event, Context()) == {}
    assert ended == [("success", {"taskToken": "t1", "output": "{}"})]


def tokens(monkeypatch: pytest.MonkeyPatch) -> list[tuple[str, dict[str, str]]]:
    """How states are ended by their tokens, from here on."""
    ended: list[tuple[str, dict[str, str]]] = []

    class States:
        def send_task_failure(self, **told: str) -> None:
            ended.append(("failure", told))

        def send_task_success(self, **told: str) -> None:
            ended.append(("success", told))

    monkeypatch.setattr(job.boto3, "client", lambda service: States())
    return ended


@pytest.mark.parametrize(
    ("unreserved", "most"), [(1_000, 800), (10, 8), (1, 1), (0, 1), (None, None)]
)
def test_a_run_takes_no_more_workers_than_the_account_serves(
    monkeypatch: pytest.MonkeyPatch, unreserved: int | None, most: int | None
) -> None:
    """A new account may have ten in all; where Lambda does not say, workers wait for their turn."""

    class Lambda:
        def get_account_settings(self) -> Any:
            if unreserved is None:
                raise ClientError({"Error": {"Code": "AccessDenied"}}, "GetAccountSettings")
            return {"AccountLimit": {"UnreservedConcurrentExecutions": unreserved}}

    monkeypatch.setattr(settings.boto3, "client", lambda service: Lambda())
    assert settings.PlanSettings.from_env(os.environ).most_workers == most
    reserved = {**os.environ, "KEYHOP_MOST_WORKERS": "20"}
    assert settings.PlanSettings.from_env(reserved).most_workers == 20


def test_settings_refuse_what_the_stack_would_not_make() -> None:
    good = {
        "KEYHOP_BUCKET": "b",
        "KEYHOP_TABLES": '["Orders"]',
        "KEYHOP_WORKER_MEMORY_MB": "512",
        "KEYHOP_ARCHITECTURE": "x86_64",
    }
    assert settings.PlanSettings.from_env(good).worker.memory_mb == 512
    with pytest.raises(KeyError):
        settings.JobSettings.from_env({"KEYHOP_BUCKET": "b"})
    with pytest.raises(ValueError, match="KEYHOP_TABLES"):
        settings.JobSettings.from_env({**good, "KEYHOP_TABLES": '"Orders"'})
    with pytest.raises(ValueError, match="invalid literal"):
        settings.WorkerSettings.from_env({**good, "KEYHOP_WORKER_MEMORY_MB": "much"})
