"""The handlers of the key index: what they answer, log and count; no work of theirs."""

from typing import Any

import pytest
from handlers import keep_index, manage_index, settings
from keyhop.dynamodb.client import Connection
from keyhop.dynamodb.schema import KeyAttribute, KeySpace
from keyhop.dynamodb.tables import Table
from keyhop.key_index.life_cycle import LifeCycle
from keyhop.key_index.request import Verify
from keyhop.key_index.sentinel import Sentinel
from keyhop.streams.event_source import BatchResult

from tests.unit.invocations import Context, metrics_in
from tests.unit.test_handlers import EXECUTION

SECRET = "a partition key"
STREAM = "arn:aws:dynamodb:ddblocal:000000000000:table/Orders/stream/2026-11-21T11:00:27.117"
TABLE = Table("Orders", {"TableName": "Orders"})
SPACE = KeySpace((KeyAttribute("pk", "S"),), KeyAttribute("sk", "S"))


@pytest.fixture(autouse=True)
def environment(monkeypatch: pytest.MonkeyPatch) -> None:
    for name, value in {
        "KEYHOP_BUCKET": "results",
        "KEYHOP_TABLES": '["Orders"]',
        "KEYHOP_KEY_INDEXES": '{"Orders": null}',
        "KEYHOP_KEEPER": "arn:aws:lambda:us-east-1:111122223333:function:Keyhop-KeepIndex",
        "KEYHOP_FAILURE_QUEUE": "arn:aws:sqs:us-east-1:111122223333:failures",
        "KEYHOP_SETTLE_SECONDS": "65",
        "AWS_DEFAULT_REGION": "us-east-1",
        "POWERTOOLS_METRICS_NAMESPACE": "Keyhop",
        "POWERTOOLS_SERVICE_NAME": "enumerate-keys",
    }.items():
        monkeypatch.setenv(name, value)


def test_the_keeper_answers_what_must_come_again_and_logs_no_key(
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
    records = [
        {"eventName": "INSERT", "eventSourceARN": STREAM, "dynamodb": {"Keys": keys}},
    ]
    answer = keep_index.handler({"Records": records}, Context())
    assert answer == {"batchItemFailures": [{"itemIdentifier": "17"}]}
    printed = capsys.readouterr().out
    logged = [vars(record) for record in caplog.records]
    assert SECRET not in printed + str(logged)
    assert logged[0]["cause"] == "ValueError"
    embedded = "\n".join(line for line in printed.splitlines() if '"_aws"' in line)
    counted = metrics_in(embedded)
    assert counted["SentinelsPut", ""] == 2
    assert counted["RecordsFailed", ""] == 1
    assert counted["Throttles", "TableWriteAccountLimitExceeded"] == 3


@pytest.mark.parametrize(
    ("arn", "name"),
    [
        ("arn:aws:dynamodb:us-east-1:111122223333:table/Orders", "Orders"),
        ("arn:aws:dynamodb:ddblocal:000000000000:table/Orders", "Orders"),
    ],
)
def test_a_streams_table_is_found_by_its_name(arn: str, name: str) -> None:
    assert keep_index.table_name_of(arn) == name


def test_a_step_is_passed_on_and_drift_is_counted(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    given: list[Any] = []

    def step(life_cycle: LifeCycle, *arguments: Any) -> dict[str, Any]:
        given.extend((life_cycle.order, *arguments))
        life_cycle.drift(3)
        return {"next": "end", "result": {}}

    monkeypatch.setattr(manage_index.LifeCycle, "step", step)
    monkeypatch.setattr(manage_index, "table_with_index", lambda connection, name: TABLE)
    monkeypatch.setattr(settings, "s3_client", lambda: "s3")
    event = {"action": "verify", "step": "finish", "input": {"table": "Orders"}, "state": {"a": 1}}
    assert manage_index.handler({**event, "execution": EXECUTION}, Context())["next"] == "end"
    assert given == [Verify(table="Orders"), "finish", {"a": 1}]
    embedded = [line for line in capsys.readouterr().out.splitlines() if '"_aws"' in line]
    assert metrics_in("\n".join(embedded))["KeyIndexDrift", ""] == 3


def test_settings_name_what_is_missing(monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(KeyError, match="KEYHOP_FAILURE_QUEUE"):
        settings.ManageSettings.from_env(
            {"KEYHOP_BUCKET": "b", "KEYHOP_TABLES": "[]", "KEYHOP_KEEPER": "k"}
        )
