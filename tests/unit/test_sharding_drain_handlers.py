"""MoveShards and ProposeDrains: what they answer, log, count and start; the library is faked."""

import json
from collections.abc import Iterator
from typing import Any

import pytest
from boto3.dynamodb.types import Binary
from botocore.exceptions import ClientError
from handlers import sharding
from handlers.sharding_requests import MoveRequest
from keyhop.errors import BrokenPromise, InvalidInput
from keyhop.sharding.drain import DrainStep, Next
from keyhop.sharding.key.shards import Phase, Shards
from keyhop.sharding.manage import KeyShards

from tests.unit.invocations import Context, metrics_in
from tests.unit.sharding_fake import (
    MACHINE,
    SECRET,
    FakeTable,
    set_environment,
    stand_in,
)


@pytest.fixture
def table(monkeypatch: pytest.MonkeyPatch) -> FakeTable:
    return stand_in(monkeypatch)


@pytest.fixture(autouse=True)
def environment(monkeypatch: pytest.MonkeyPatch) -> None:
    set_environment(monkeypatch)


class FakeDrain:
    """A drain's next steps, in their order."""

    steps: list[DrainStep]
    asked: list[tuple[Any, int, float]]
    begun: list[bool]
    seen: list[tuple[int, float] | None]

    def __init__(self, table: Any) -> None:
        pass

    def step(
        self,
        key: Any,
        shards: int,
        seconds: float,
        *,
        begun: bool,
        seen: tuple[int, float] | None,
    ) -> DrainStep:
        self.asked.append((key, shards, seconds))
        self.begun.append(begun)
        self.seen.append(seen)
        return self.steps.pop(0)


def shards(phase: Phase) -> Shards:
    return Shards(1, 77, readable=4, phase=phase)


def test_a_step_of_a_drain_says_how_long_to_wait(
    table: FakeTable,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    caplog: pytest.LogCaptureFixture,
) -> None:
    FakeDrain.asked, FakeDrain.begun, FakeDrain.seen = [], [], []
    FakeDrain.steps = [
        DrainStep(Next.WAIT, shards(Phase.CLOSING), 4.2, begun=True),
        DrainStep(Next.AGAIN, shards(Phase.MOVING), moved=17, begun=True),
        DrainStep(Next.DONE, Shards(1, 0), begun=True),
    ]
    monkeypatch.setattr("keyhop.sharding.drain.Drain", FakeDrain)
    request = {"table": "Audit", "key": SECRET, "shards": 1}
    told = [request]
    for _ in range(3):
        told.append(sharding.move_shards({"request": request, "last": told[-1]}, Context()))
    del told[0]
    assert FakeDrain.begun == [False, True, True]
    assert FakeDrain.seen == [None, (77, 5), (77, 1)]
    assert [(one["action"], one["seconds"]) for one in told] == [
        ("wait", 5),
        ("again", 1),
        ("done", 1),
    ]
    assert told[1] == {
        "action": "again",
        "seconds": 1,
        "phase": "moving",
        "moved": 17,
        "readable": 4,
        "shards": 1,
        "begun": True,
        "last_updated": 77,
    }
    assert {(key, shards) for key, shards, _ in FakeDrain.asked} == {(SECRET, 1)}
    assert SECRET not in capsys.readouterr().out + str([vars(record) for record in caplog.records])


def test_items_are_moved_for_as_long_as_the_invocation_leaves_time(
    table: FakeTable, monkeypatch: pytest.MonkeyPatch
) -> None:
    class Hurried(Context):
        def get_remaining_time_in_millis(self) -> int:
            return 20_000

    FakeDrain.asked, FakeDrain.begun, FakeDrain.seen = [], [], []
    FakeDrain.steps = [DrainStep(Next.AGAIN, shards(Phase.MOVING))] * 2
    monkeypatch.setattr("keyhop.sharding.drain.Drain", FakeDrain)
    request = {"table": "Audit", "key": SECRET, "shards": 1}
    event = {"request": request, "last": request}
    for context in (Context(), Hurried()):
        sharding.move_shards(event, context)
    assert [seconds for _, _, seconds in FakeDrain.asked] == [835.0, 0.0]


def test_an_execution_that_another_one_started_is_understood() -> None:
    started = {"AWS_STEP_FUNCTIONS_STARTED_BY_EXECUTION_ID": "arn:e"}
    event = {"table": "Audit", "key": {"B": "/w=="}, "typed": True, "shards": 2, **started}
    assert MoveRequest.from_event(event) == MoveRequest("Audit", 2, b"\xff", typed=True)


@pytest.mark.parametrize("shards", [None, 0, -1, 1.5, "1", True])
def test_a_drain_needs_a_shard_count(shards: Any) -> None:
    with pytest.raises(InvalidInput, match="shards must be a whole number of at least 1"):
        MoveRequest.from_event({"table": "Audit", "key": SECRET, "shards": shards})


class FakeStepFunctions:
    """Refuses a name that was there, as Step Functions does for an execution that has ended."""

    class exceptions:  # noqa: N801
        class ExecutionAlreadyExists(Exception):
            pass

    def __init__(self) -> None:
        self.started: dict[str, dict[str, Any]] = {}

    def start_execution(self, stateMachineArn: str, name: str, input: str) -> None:  # noqa: N803
        assert stateMachineArn == MACHINE
        if name in self.started:
            raise self.exceptions.ExecutionAlreadyExists
        self.started[name] = json.loads(input)


@pytest.fixture
def stepfunctions(monkeypatch: pytest.MonkeyPatch) -> FakeStepFunctions:
    fake = FakeStepFunctions()
    monkeypatch.setattr(sharding.boto3, "client", lambda service: fake)
    return fake


def proposed(key: Any, number: int = 8, fewer: int = 2) -> KeyShards:
    return KeyShards(key, Shards(number, 0), {}, fewer, "the busiest hour of 24 had 3 units")


def test_proposals_name_key_and_counts_and_start_nothing(
    table: FakeTable,
    stepfunctions: FakeStepFunctions,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    caplog: pytest.LogCaptureFixture,
) -> None:
    monkeypatch.setattr("keyhop.sharding.manage.proposals", lambda _: iter([proposed(SECRET)]))
    assert sharding.propose_drains({"scheduled": True}, Context()) == [
        {
            "table": "Audit",
            "key": SECRET,
            "from": 8,
            "to": 2,
            "reason": "the busiest hour of 24 had 3 units",
            "started": False,
        }
    ]
    assert stepfunctions.started == {}
    printed = capsys.readouterr().out
    assert SECRET not in printed + str([vars(record) for record in caplog.records])
    embedded = "\n".join(line for line in printed.splitlines() if '"_aws"' in line)
    assert metrics_in(embedded)["DrainsProposed", ""] == 1


def test_drains_are_started_once_a_day_for_each_key(
    table: FakeTable, stepfunctions: FakeStepFunctions, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("KEYHOP_START_DRAINS", "true")
    keys = [proposed(SECRET), proposed(Binary(b"\xff"), 3, 1)]
    monkeypatch.setattr("keyhop.sharding.manage.proposals", lambda _: iter(keys))
    first = sharding.propose_drains({}, Context())
    second = sharding.propose_drains({}, Context())
    assert [one["started"] for one in first] == [True, True]
    assert [one["started"] for one in second] == [False, False]
    inputs = list(stepfunctions.started.values())
    assert inputs == [
        {"table": "Audit", "key": SECRET, "shards": 2},
        {"table": "Audit", "key": {"B": "/w=="}, "shards": 1, "typed": True},
    ]
    assert [MoveRequest.from_event(one).key for one in inputs] == [SECRET, b"\xff"]


def test_a_table_that_cannot_be_looked_through_does_not_hide_the_others(
    table: FakeTable, stepfunctions: FakeStepFunctions, monkeypatch: pytest.MonkeyPatch
) -> None:
    """And the invocation fails all the same, so that somebody sees it."""
    monkeypatch.setenv("KEYHOP_TABLES", '["Audit", "Devices"]')
    monkeypatch.setenv("KEYHOP_START_DRAINS", "true")
    answers: list[Any] = [BrokenPromise("cannot be read"), [proposed(SECRET)]]

    def next_answer(_: Any) -> Iterator[KeyShards]:
        answer = answers.pop(0)
        if isinstance(answer, Exception):
            raise answer
        return iter(answer)

    monkeypatch.setattr("keyhop.sharding.manage.proposals", next_answer)
    with pytest.raises(BrokenPromise):
        sharding.propose_drains({}, Context())
    assert [one["table"] for one in stepfunctions.started.values()] == ["Devices"]


def test_boto3_has_the_error_of_a_name_that_is_taken() -> None:
    """The stand-in above is named like it."""
    client = sharding.boto3.client("stepfunctions")
    assert issubclass(client.exceptions.ExecutionAlreadyExists, ClientError)


def test_an_executions_name_is_one_that_step_functions_takes_and_hides_the_key() -> None:
    one = sharding.proposal("Audit", proposed(SECRET))
    name = sharding.execution_name(one, "2026-11-21")
    assert name.startswith("2026-11-21-")
    assert len(name) <= 80
    assert name.replace("-", "").isalnum()
    assert SECRET not in name
    fewer = sharding.proposal("Audit", proposed(SECRET, 8, 3))
    assert sharding.execution_name(fewer, "2026-11-21") == name
    assert sharding.execution_name(one, "2026-11-22") != name


def test_one_invocation_starts_no_stampede(
    stepfunctions: FakeStepFunctions,
) -> None:
    many = [sharding.proposal("Audit", proposed(f"k{n}")) for n in range(150)]
    assert sharding.start_drains(stepfunctions, MACHINE, many) == sharding.MOST_STARTED
    assert sum(one["started"] for one in many) == sharding.MOST_STARTED
