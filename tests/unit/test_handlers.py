"""The functions' handlers: what they pass on, count and log; their work is tested elsewhere."""

from collections import Counter
from types import ModuleType
from typing import Any

import pytest
from handlers import clean_up, finish_run, plan_run, scan_segments, settings, verify_run
from keyhop.checks import InvalidInput
from keyhop.dynamodb.usage import Usage
from keyhop.errors import GaveUp, KeysMissing
from keyhop.jobs.failure import RunFailed
from keyhop.jobs.work import SliceResult
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
    monkeypatch.setenv("POWERTOOLS_METRICS_NAMESPACE", "Keyhop")
    monkeypatch.setattr(settings, "s3_client", lambda: "s3")
    for module in (plan_run, scan_segments, finish_run, verify_run, clean_up):
        monkeypatch.setattr(module.metrics.provider, "namespace", "Keyhop")
        monkeypatch.setattr(module.metrics.provider, "service", "enumerate-keys")


def replaced(monkeypatch: pytest.MonkeyPatch, module: ModuleType, name: str, result: Any) -> list:
    """Put a stand-in for the one call of a handler; returns the calls that it gets."""
    calls = []

    def call(*arguments: Any, **named: Any) -> Any:
        calls.append((arguments, named))
        if isinstance(result, Exception):
            raise result
        return result

    monkeypatch.setattr(module, name, call)
    return calls


@pytest.mark.parametrize("error", [None, GaveUp("throttled")])
def test_planning_counts_what_it_has_read(
    monkeypatch: pytest.MonkeyPatch, capsys, error: Exception | None
) -> None:
    state = {"run": "e", "plan": {"segments": 4}}

    def plan(planner, request):
        runs, tables = planner.deployment.runs, planner.deployment.tables
        assert (request.table, planner.execution.name, runs.bucket) == ("Orders", "e", "results")
        assert (tables, planner.most_workers) == (["Orders"], None)
        assert (planner.worker.memory_mb, planner.worker.architecture) == (1769, "arm64")
        planner.usage.add(Usage(requests=3, read_units=1.5))
        if error is not None:
            raise error
        return state

    monkeypatch.setattr(plan_run.Planner, "plan_run", plan)
    event = {"input": {"table": "Orders"}, "execution": EXECUTION}
    if error is None:
        assert plan_run.handler(event, Context()) == state
    else:
        with pytest.raises(GaveUp):
            plan_run.handler(event, Context())
    counted = metrics_in(capsys.readouterr().out)
    assert counted["ReadUnits", ""] == 1.5
    assert counted.get(("RunsPlanned", "")) == (1 if error is None else None)


def test_a_wrong_input_fails_by_the_name_that_the_state_machine_catches() -> None:
    with (
        pytest.warns(UserWarning, match="No application metrics"),
        pytest.raises(InvalidInput, match="unknown: 'tabel'"),
    ):
        plan_run.handler({"input": {"tabel": "Orders"}, "execution": EXECUTION}, Context())


def test_a_slice_counts_keys_units_and_throttles_by_reason(
    monkeypatch: pytest.MonkeyPatch, capsys
) -> None:
    reason = "TableReadKeyRangeThroughputExceeded"
    read = Usage(requests=9, read_units=4.5, retries=4, throttles=Counter({reason: 3, "": 1}))

    def scan(work, deployment, tasks, seconds, worker, usage) -> SliceResult:
        assert (work.group, seconds, worker) == (3, 900, "request-1")
        assert deployment.tables == ["Orders"]
        assert {"keys", "key_index"} <= set(tasks)
        usage.add(read)
        return SliceResult(True, 7, 2)

    monkeypatch.setattr(scan_segments, "scan_segments", scan)
    told = scan_segments.handler(GROUP_STATE, Context())
    assert told == {"done": True, "keys": 7, "commits": 2}
    counted = metrics_in(capsys.readouterr().out)
    assert counted["KeysFound", ""] == 7
    assert counted["Slices", ""] == 2
    assert counted["ReadBudget", ""] == 100
    assert counted["Throttles", ""] == 4
    assert counted["Throttles", reason] == 3
    assert counted["Throttles", "Unknown"] == 1


def test_what_a_failed_slice_has_read_is_counted_too(
    monkeypatch: pytest.MonkeyPatch, capsys
) -> None:
    def scan(*arguments) -> SliceResult:
        arguments[-1].add(Usage(read_units=2.0))
        raise GaveUp("throttled")

    monkeypatch.setattr(scan_segments, "scan_segments", scan)
    with pytest.raises(GaveUp):
        scan_segments.handler(GROUP_STATE, Context())
    assert metrics_in(capsys.readouterr().out)["ReadUnits", ""] == 2


def test_finishing_counts_a_run_once_it_is_finished(
    monkeypatch: pytest.MonkeyPatch, capsys
) -> None:
    event = {"state": {"run": "e"}, "execution": EXECUTION}
    again = {"run": "e", "next": "scan"}
    replaced(monkeypatch, finish_run, "finish_run", again)
    with pytest.warns(UserWarning, match="No application metrics"):
        assert finish_run.handler(event, Context()) == again
    capsys.readouterr()
    end = {"run": "e", "next": "end", "result": {"seconds": 9.5, "cost": {"total": 0.25}}}
    replaced(monkeypatch, finish_run, "finish_run", end)
    assert finish_run.handler(event, Context()) == end
    counted = metrics_in(capsys.readouterr().out)
    assert counted == {("RunsFinished", ""): 1, ("RunSeconds", ""): 9.5, ("RunDollars", ""): 0.25}


@pytest.mark.parametrize("missing", [0, 2])
def test_a_check_logs_counts_and_no_examples(
    monkeypatch: pytest.MonkeyPatch, capsys, missing: int
) -> None:
    verdict = Verdict(4, 0.5, 4, 9, missing, examples={"missing": [SECRET]})
    state = {"run": "e", "next": "end"}

    def check(*arguments):
        arguments[-1].add(Usage(read_units=2.0))
        if missing:
            raise KeysMissing("Keys are missing.", missing)
        return state, verdict

    monkeypatch.setattr(verify_run, "verify_run", check)
    if missing:
        with pytest.raises(KeysMissing):
            verify_run.handler({"run": "e"}, Context())
    else:
        assert verify_run.handler({"run": "e"}, Context()) == state
    printed = capsys.readouterr()
    assert SECRET not in printed.out + printed.err
    assert metrics_in(printed.out)["KeysMissing", ""] == missing
    assert metrics_in(printed.out)["ReadUnits", ""] == 2


def test_cleaning_up_fails_on_purpose_and_counts_it(
    monkeypatch: pytest.MonkeyPatch, capsys
) -> None:
    replaced(monkeypatch, clean_up, "clean_up", RunFailed("Group 3 failed."))
    event = {"state": {"run": "e"}, "execution": EXECUTION, "entered": "t1"}
    with pytest.raises(RunFailed, match="Group 3"):
        clean_up.handler(event, Context())
    assert metrics_in(capsys.readouterr().out) == {("RunsFailed", ""): 1}


def test_a_redriven_run_goes_on(monkeypatch: pytest.MonkeyPatch) -> None:
    replaced(monkeypatch, clean_up, "clean_up", None)
    event = {"state": {"run": "e"}, "execution": EXECUTION, "entered": "t1"}
    with pytest.warns(UserWarning, match="No application metrics"):
        assert clean_up.handler(event, Context()) == {}


def test_settings_refuse_what_the_stack_would_not_make() -> None:
    good = {
        "KEYHOP_BUCKET": "b",
        "KEYHOP_TABLES": '["Orders"]',
        "KEYHOP_WORKER_MEMORY_MB": "512",
        "KEYHOP_ARCHITECTURE": "x86_64",
    }
    assert settings.PlanSettings.from_env(good).worker.memory_mb == 512
    assert settings.PlanSettings.from_env(good).most_workers is None
    reserved = {**good, "KEYHOP_MOST_WORKERS": "20"}
    assert settings.PlanSettings.from_env(reserved).most_workers == 20
    with pytest.raises(KeyError):
        settings.ScanSettings.from_env({"KEYHOP_BUCKET": "b"})
    with pytest.raises(ValueError, match="KEYHOP_TABLES"):
        settings.ScanSettings.from_env({**good, "KEYHOP_TABLES": '"Orders"'})
    with pytest.raises(ValueError, match="invalid literal"):
        settings.FinishSettings.from_env({**good, "KEYHOP_WORKER_MEMORY_MB": "much"})
