"""The handler of Replicate finds the pair of a stream, and reports a batch without its keys."""

from typing import Any

import pytest
from handlers import replicate
from keyhop.dynamodb.tables import Table
from keyhop.dynamodb.usage import Usage
from keyhop.rekey.worker.images import SETTINGS
from keyhop.rekey.worker.replicate import Worked
from keyhop.streams.event_source import Mappings

from testing.keepers import FakeLambda
from tests.unit.invocations import Context, metrics_in

SECRET = "a key"
STREAM = "arn:aws:dynamodb:us-east-1:111122223333:table/Orders-2/stream/2026-11-22T00:00:00.000"
WORKER = "arn:aws:lambda:us-east-1:111122223333:function:Keyhop-Replicate"


class FakeReplicator:
    direction = "reverse"

    def __init__(self, error: Exception | None = None) -> None:
        self.error = error
        self.ends_at = 0.0

    def end_at(self, moment: float) -> None:
        self.ends_at = moment

    def work(self, records: Any) -> Worked:
        if self.error is not None:
            raise self.error
        return Worked(2, 2, lag=1.5, left=1, failures=[ValueError(SECRET)])

    def again(self, key: Any, places: Any) -> bool:
        return bool(key == {"pk": {"S": SECRET}} and places == [{"id": {"B": b"a"}}])

    def sweep(self) -> int:
        return 0

    def take_usage(self) -> Usage:
        return Usage(write_units=3.0)


@pytest.fixture(autouse=True)
def environment(monkeypatch: pytest.MonkeyPatch) -> None:
    for name, value in {
        "KEYHOP_REKEY": '[{"source": "Orders", "destination": "Orders-2"}]',
        "KEYHOP_FAILURE_QUEUE_URL": "https://queue",
        "AWS_DEFAULT_REGION": "us-east-1",
        "POWERTOOLS_METRICS_NAMESPACE": "Keyhop",
        "POWERTOOLS_SERVICE_NAME": "replicate",
    }.items():
        monkeypatch.setenv(name, value)


def records() -> dict[str, Any]:
    return {"Records": [{"eventSourceARN": STREAM, "dynamodb": {"Keys": {"pk": {"S": SECRET}}}}]}


def use(replicator: FakeReplicator, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(replicate, "_plan_of", lambda stream, moment: "a plan")
    monkeypatch.setattr(replicate, "_replicator_of", lambda stream, plan: replicator)


def test_a_batch_is_counted_and_its_keys_are_not_reported(
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    caplog: pytest.LogCaptureFixture,
) -> None:
    use(FakeReplicator(), monkeypatch)
    assert replicate.handler(records(), Context()) is None
    printed = capsys.readouterr().out
    assert SECRET not in printed + str([vars(record) for record in caplog.records])
    metrics = metrics_in("\n".join(line for line in printed.splitlines() if '"_aws"' in line))
    assert metrics["ReplicationLag", ""] == 1.5
    assert metrics["RecordsReplicated", ""] == 2
    assert metrics["ClaimsLeft", ""] == 1


def test_a_batch_that_fails_comes_again(monkeypatch: pytest.MonkeyPatch) -> None:
    use(FakeReplicator(RuntimeError("no")), monkeypatch)
    with pytest.raises(RuntimeError):
        replicate.handler(records(), Context())


def test_a_message_of_the_failure_queue_is_processed_again(monkeypatch: pytest.MonkeyPatch) -> None:
    """The message is the function's input, so it does not need the stream, which keeps one day."""
    use(FakeReplicator(), monkeypatch)
    arn = {"LatestStreamArn": STREAM, "StreamSpecification": {"StreamEnabled": True}}
    monkeypatch.setattr(replicate, "_connection", lambda: None)
    monkeypatch.setattr(replicate, "look_up", lambda connection, name: Table(name, arn))
    message = {"rekey": "Orders-2", "direction": "reverse"}
    key = {"key": {"pk": {"S": SECRET}}, "places": [{"id": {"B": "YQ=="}}]}
    assert replicate.handler({**message, **key}, Context()) == {"why_not": ""}
    assert replicate.handler(message, Context()) == {"why_not": ""}


def test_the_worker_follows_streams_by_settings_of_its_own() -> None:
    """A repeat must begin with the first record of the killed batch."""
    lambdas = FakeLambda()
    mappings = Mappings(lambdas, WORKER, "arn:aws:sqs:us-east-1:111122223333:failures", SETTINGS)
    assert not mappings.attach(STREAM)
    (mapping,) = lambdas.mappings.values()
    assert mapping["ParallelizationFactor"] == 1
    assert not mapping["BisectBatchOnFunctionError"]
    assert mapping["FunctionResponseTypes"] == []
    assert mapping["MaximumRetryAttempts"] == mapping["MaximumRecordAgeInSeconds"] == -1
    assert "FilterCriteria" not in mapping
