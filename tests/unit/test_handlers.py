"""Check the handlers of the functions: their calls, answers, metrics and logs.

Other tests check the work itself. The last tests show which logs Lambda's filter lets through.
"""

import json
import os
from collections import Counter
from datetime import datetime
from types import SimpleNamespace
from typing import Any

import pytest
from botocore.exceptions import ClientError
from handlers import job, keep_index, manage_index, settings
from handlers.telemetry import function, make_logger, report
from keyhop.dynamodb.client import Connection
from keyhop.dynamodb.schema import KeyAttribute, KeySpace
from keyhop.dynamodb.tables import Table
from keyhop.dynamodb.usage import Usage
from keyhop.errors import GaveUp, InvalidInput, KeysMissing, RunFailed
from keyhop.jobs.journal import Checkpoint, Commit, Part
from keyhop.key_index.life_cycle import LifeCycle
from keyhop.key_index.request import Verify
from keyhop.key_index.sentinel import Sentinel
from keyhop.keys.verify import Verdict
from keyhop.streams.event_source import BatchResult

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


ENVIRONMENT = {
    "KEYHOP_BUCKET": "results",
    "KEYHOP_TABLES": '["Orders"]',
    "KEYHOP_WORKER_MEMORY_MB": "1769",
    "KEYHOP_ARCHITECTURE": "arm64",
    "KEYHOP_KEY_INDEXES": '{"Orders": null}',
    "KEYHOP_KEEPER": "arn:aws:lambda:us-east-1:111122223333:function:Keyhop-KeepIndex",
    "KEYHOP_FAILURE_QUEUE": "arn:aws:sqs:us-east-1:111122223333:failures",
    "KEYHOP_SETTLE_SECONDS": "65",
    "AWS_DEFAULT_REGION": "us-east-1",
    "POWERTOOLS_METRICS_NAMESPACE": "Keyhop",
    "POWERTOOLS_SERVICE_NAME": "enumerate-keys",
}


@pytest.fixture(autouse=True)
def environment(monkeypatch: pytest.MonkeyPatch) -> None:
    for name, value in ENVIRONMENT.items():
        monkeypatch.setenv(name, value)
    monkeypatch.delenv("KEYHOP_MOST_WORKERS", raising=False)
    monkeypatch.setattr(settings, "s3_client", lambda: "s3")


def replace_call(monkeypatch: pytest.MonkeyPatch, name: str, result: Any) -> list:
    """Replace the one call of a handler, and return the list of calls that it collects."""
    calls = []

    def call(*arguments: Any, **named: Any) -> Any:
        calls.append((arguments, named))
        if isinstance(result, Exception):
            raise result
        return result

    monkeypatch.setattr(name, call)
    return calls


@pytest.mark.parametrize("error", [None, GaveUp("throttled")])
def test_planning_counts_units_keys_and_segments(
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
    run_metrics = {"KeysFound": 5, "SegmentsDone": 1, "SegmentsPlanned": 4} if error is None else {}
    expected = {"ReadUnits": 1.5, **run_metrics}
    metrics = metrics_in(capsys.readouterr().out)
    assert metrics == {(name, ""): value for name, value in expected.items()}


def test_a_wrong_input_raises_the_error_that_the_state_machine_catches() -> None:
    with pytest.raises(InvalidInput, match="unknown: 'tabel'"):
        job.plan_run({"input": {"tabel": "Orders"}, "execution": EXECUTION}, Context())


REASON = "TableReadKeyRangeThroughputExceeded"


def commit_of(keys: int, ended: int) -> Commit:
    parts = (Part("parts/g3", 9, "", 0, ((3, keys, 9),)),)
    return Commit(3, 0, "a1", parts, ended, Usage(), 1.0, Checkpoint(), False)


def test_each_commit_is_reported_by_table_at_once_and_each_unit_once(
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
    answer = job.scan_segments(GROUP_STATE, Context())
    assert answer == {"done": True, "keys": 8, "commits": 2}
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
        no_dimensions = [["service"]] if "Throttles" in line else []
        dimensions = ["service", "table", *(["Reason"] if "Reason" in line else [])]
        assert [sorted(names) for names in emitted["Dimensions"]] == [
            *no_dimensions,
            sorted(dimensions),
        ]


def test_units_of_a_failed_slice_are_counted(monkeypatch: pytest.MonkeyPatch, capsys) -> None:
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
    scan_again = {"run": "e", "next": "scan"}
    replace_call(monkeypatch, "keyhop.jobs.fleet.finish_run", scan_again)
    assert job.finish_run(event, Context()) == scan_again
    assert metrics_in(capsys.readouterr().out) == {}
    result = {"table": "Orders", "seconds": 9.5, "cost": {"total": 0.25}}
    end = {"run": "e", "next": "end", "result": result}
    replace_call(monkeypatch, "keyhop.jobs.fleet.finish_run", end)
    assert job.finish_run(event, Context()) == end
    metrics = metrics_in(capsys.readouterr().out)
    assert metrics == {("RunSeconds", ""): 9.5, ("RunDollars", ""): 0.25}


@pytest.mark.parametrize("missing", [0, 2])
def test_a_check_counts_its_units_and_logs_no_examples(
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
    calls = tokens(monkeypatch)
    replace_call(
        monkeypatch, "keyhop.jobs.fleet.clean_up", RunFailed("Group 3 failed. " * 9_000, "GaveUp")
    )
    event = {"state": {"run": "e"}, "execution": EXECUTION, "token": "t1"}
    assert job.clean_up(event, Context()) == {}
    ((how, arguments),) = calls
    assert (how, arguments["taskToken"], arguments["error"]) == ("failure", "t1", "GaveUp")
    assert arguments["cause"].startswith("Group 3 failed. ")
    assert len(arguments["cause"]) < 32_768, "which Step Functions refuses"


def test_a_redriven_run_continues(monkeypatch: pytest.MonkeyPatch) -> None:
    calls = tokens(monkeypatch)
    replace_call(monkeypatch, "keyhop.jobs.fleet.clean_up", None)
    event = {"state": {"run": "e"}, "execution": EXECUTION, "token": "t1"}
    assert job.clean_up(event, Context()) == {}
    assert calls == [("success", {"taskToken": "t1", "output": "{}"})]


def tokens(monkeypatch: pytest.MonkeyPatch) -> list[tuple[str, dict[str, str]]]:
    """Replace Step Functions, and return the list of its calls that end a state by its token."""
    calls: list[tuple[str, dict[str, str]]] = []

    class States:
        def send_task_failure(self, **arguments: str) -> None:
            calls.append(("failure", arguments))

        def send_task_success(self, **arguments: str) -> None:
            calls.append(("success", arguments))

    monkeypatch.setattr(job.boto3, "client", lambda service: States())
    return calls


@pytest.mark.parametrize(
    ("unreserved", "maximum"), [(1_000, 800), (10, 8), (1, 1), (0, 1), (None, None)]
)
def test_a_run_has_no_more_workers_than_the_account_allows(
    monkeypatch: pytest.MonkeyPatch, unreserved: int | None, maximum: int | None
) -> None:
    """A new account may have ten in all. If Lambda reports no limit, workers queue."""

    class Lambda:
        def get_account_settings(self) -> Any:
            if unreserved is None:
                raise ClientError({"Error": {"Code": "AccessDenied"}}, "GetAccountSettings")
            return {"AccountLimit": {"UnreservedConcurrentExecutions": unreserved}}

    monkeypatch.setattr(settings.boto3, "client", lambda service: Lambda())
    assert settings.PlanSettings.from_env(os.environ).most_workers == maximum
    reserved = {**os.environ, "KEYHOP_MOST_WORKERS": "20"}
    assert settings.PlanSettings.from_env(reserved).most_workers == 20


def test_settings_refuse_values_that_the_stack_never_sets() -> None:
    good = {**ENVIRONMENT, "KEYHOP_WORKER_MEMORY_MB": "512", "KEYHOP_ARCHITECTURE": "x86_64"}
    assert settings.PlanSettings.from_env(good).worker.memory_mb == 512
    with pytest.raises(KeyError):
        settings.JobSettings.from_env({"KEYHOP_BUCKET": "b"})
    with pytest.raises(KeyError, match="KEYHOP_FAILURE_QUEUE"):
        settings.ManageSettings.from_env(
            {"KEYHOP_BUCKET": "b", "KEYHOP_TABLES": "[]", "KEYHOP_KEEPER": "k"}
        )
    with pytest.raises(ValueError, match="KEYHOP_TABLES"):
        settings.JobSettings.from_env({**good, "KEYHOP_TABLES": '"Orders"'})
    with pytest.raises(ValueError, match="invalid literal"):
        settings.WorkerSettings.from_env({**good, "KEYHOP_WORKER_MEMORY_MB": "much"})


STREAM = "arn:aws:dynamodb:ddblocal:000000000000:table/Orders/stream/2026-11-21T11:00:27.117"
TABLE = Table("Orders", {"TableName": "Orders"})
SPACE = KeySpace((KeyAttribute("pk", "S"),), KeyAttribute("sk", "S"))


def test_the_keeper_answers_the_records_to_retry_and_logs_no_key(
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    caplog: pytest.LogCaptureFixture,
) -> None:
    def keeper_of(stream: str) -> tuple[str, Connection, Sentinel, float]:
        assert stream == STREAM
        return "Orders", Connection(None), Sentinel.of(SPACE), 100.0  # type: ignore[arg-type]

    def keep(records: Any, collections: Any, on_failure: Any, withdraw: Any) -> BatchResult:
        collections.usage.count(put=2)
        for _ in range(3):
            collections.usage.count_throttle(("TableWriteAccountLimitExceeded",))
        on_failure(ValueError(SECRET))
        return BatchResult(2, 2, ("17",))

    monkeypatch.setattr(keep_index, "_keeper_of", keeper_of)
    monkeypatch.setattr(keep_index, "keep", keep)
    keys = {"pk": {"S": SECRET}, "sk": {"S": SECRET}}
    record = {"eventName": "INSERT", "eventSourceARN": STREAM, "dynamodb": {"Keys": keys}}
    answer = keep_index.handler({"Records": [record]}, Context())
    assert answer == {"batchItemFailures": [{"itemIdentifier": "17"}]}
    printed = capsys.readouterr().out
    logged = [vars(record) for record in caplog.records]
    assert SECRET not in printed + str(logged)
    assert logged[0]["cause"] == "ValueError"
    embedded = "\n".join(line for line in printed.splitlines() if '"_aws"' in line)
    metrics = metrics_in(embedded)
    assert metrics["SentinelsPut", ""] == 2
    assert metrics["RecordsFailed", ""] == 1
    assert metrics["Throttles", "TableWriteAccountLimitExceeded"] == 3


@pytest.mark.parametrize("place", ["us-east-1:111122223333", "ddblocal:000000000000"])
def test_the_table_of_a_stream_has_a_name(place: str) -> None:
    assert keep_index.table_name_of(f"arn:aws:dynamodb:{place}:table/Orders") == "Orders"


def test_a_step_is_passed_on_and_drift_is_counted(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    arguments_of_step: list[Any] = []

    def step(life_cycle: LifeCycle, *arguments: Any) -> dict[str, Any]:
        arguments_of_step.extend((life_cycle.order, *arguments))
        life_cycle.drift(3)
        return {"next": "end", "result": {}}

    monkeypatch.setattr(manage_index.LifeCycle, "step", step)
    monkeypatch.setattr(manage_index, "table_with_index", lambda connection, name: TABLE)
    event = {"action": "verify", "step": "finish", "input": {"table": "Orders"}, "state": {"a": 1}}
    assert manage_index.handler({**event, "execution": EXECUTION}, Context())["next"] == "end"
    assert arguments_of_step == [Verify(table="Orders"), "finish", {"a": 1}]
    embedded = [line for line in capsys.readouterr().out.splitlines() if '"_aws"' in line]
    assert metrics_in("\n".join(embedded))["KeyIndexDrift", ""] == 3


LEVELS = ("INFO", "WARNING", "ERROR")
OF_LAMBDA = "INFO"
"""The filter's level in the template, whatever logLevel is (tests/infra/test_functions.py)."""


def let_through(line: str, level: str = OF_LAMBDA) -> bool:
    """Return if Lambda's filter for logs in JSON format passes a line on.

    "If the level is invalid or missing, Lambda will assign the log output the level INFO. [...] If
    you don't supply a valid timestamp, Lambda will assign the log the level INFO" (Log-level
    filtering, Lambda Developer Guide).
    """
    record = json.loads(line)
    record_level = record.get("level")
    if record_level not in LEVELS or not is_rfc_3339(record.get("timestamp")):
        record_level = "INFO"
    return LEVELS.index(record_level) >= LEVELS.index(level)


def is_rfc_3339(timestamp: Any) -> bool:
    try:
        return datetime.fromisoformat(timestamp).tzinfo is not None and "T" in timestamp
    except (TypeError, ValueError):
        return False


@pytest.mark.parametrize("level", LEVELS)
def test_metrics_and_logs_of_the_level_pass_the_filter(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], level: str
) -> None:
    monkeypatch.setenv("AWS_LAMBDA_LOG_LEVEL", OF_LAMBDA)  # as Lambda sets it for its filter
    monkeypatch.setenv("POWERTOOLS_LOG_LEVEL", level)
    monkeypatch.setenv("POWERTOOLS_SERVICE_NAME", f"test-{level}")
    logger = make_logger()

    @function
    def handler(event: dict[str, Any], context: Any) -> None:
        report("Orders", KeysFound=1)
        for name in ("info", "warning", "error"):
            getattr(logger, name)(name)

    handler({}, Context())
    printed = capsys.readouterr().out.splitlines()
    assert all(map(let_through, printed)), "no printed line is dropped"
    assert metrics_in("\n".join(printed)) == {("KeysFound", ""): 1}
    logs = [json.loads(line) for line in printed if '"_aws"' not in line]
    assert [log["level"] for log in logs] == [*LEVELS[LEVELS.index(level) :]]
    assert all(is_rfc_3339(log["timestamp"]) for log in logs)


@pytest.mark.parametrize("level", ["WARNING", "ERROR"])
def test_a_filter_of_a_higher_level_would_drop_the_metrics(level: str) -> None:
    """The template once had such a filter, so the alarms never fired."""
    assert not let_through('{"_aws": {}, "KeysFound": [1.0]}', level)
