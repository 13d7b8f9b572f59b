"""Check the functions of sharded tables: their answers, logs, metrics and executions.

WriteSharded, QuerySharded, MoveShards and ProposeDrains run with a fake of the library.
"""

import base64
import json
import time
from collections.abc import Iterator
from decimal import Decimal
from types import SimpleNamespace
from typing import Any

import pytest
from boto3.dynamodb.types import Binary
from botocore.exceptions import ClientError, EndpointConnectionError
from handlers import sharding
from handlers.sharding import OutOfTime, TimedClient
from handlers.sharding_requests import MOST_WRITTEN, MoveRequest, QueryRequest, WriteRequest
from keyhop.dynamodb.schema import KeyAttribute
from keyhop.dynamodb.usage import Usage
from keyhop.errors import AwsRefused, BrokenPromise, CannotStart, GaveUp, InvalidInput
from keyhop.sharding.drain import DrainStep, Next
from keyhop.sharding.io.batch import BatchResult
from keyhop.sharding.key.schema import Names, Schema
from keyhop.sharding.key.shards import Phase, Shards
from keyhop.sharding.manage import KeyShards

from tests.unit.invocations import Context, metrics_in

SECRET = "/a/partition/key"
SHARDED = {
    "metadata": "Keyhop-shards-Audit",
    "placement": "calculated",
    "hash": "jump",
    "appendOnly": False,
    "separator": "_",
    "mostShards": 64,
    "startShards": {"/logs/*": 8},
}
MACHINE = "arn:aws:states:us-east-1:111122223333:stateMachine:Keyhop-DrainShards"
THROTTLED = "TableWriteKeyRangeThroughputExceeded"


def refusal(code: str, status: int = 400) -> ClientError:
    response = {
        "Error": {"Code": code, "Message": "no"},
        "ResponseMetadata": {"HTTPStatusCode": status},
    }
    return ClientError(response, "PutItem")


class FakeTable:
    """The part of ShardedTable that handlers use, without the shards."""

    name = "Audit"
    endpoint = sharding.Endpoint()

    def __init__(self) -> None:
        self.usage = Usage()
        self.schema = Schema(
            "Audit", KeyAttribute("path", "S"), KeyAttribute("at", "N"), Names("S", "_")
        )
        self.stored: list[dict[str, Any]] = []
        self.errors: dict[int, Exception] = {}
        self.arguments: dict[str, Any] = {}
        self.yielded = self.paused = 0

    def pause(self) -> None:
        self.paused += 1

    def batch_write(self, items: list[dict[str, Any]]) -> BatchResult:
        result = BatchResult()
        for place, item in enumerate(items):
            if place in self.errors:
                result.failed.append((place, item, self.errors[place]))
            else:
                self.stored.append(item)
                result.written += 1
        return result

    def query(self, **arguments: Any) -> Iterator[dict[str, Any]]:
        self.arguments = arguments
        for item in self.stored[: arguments["limit"]]:
            self.yielded += 1
            yield item

    def page_token(self, key: Any, last: Any, **arguments: Any) -> str:
        return f"behind {last}"


@pytest.fixture
def table(monkeypatch: pytest.MonkeyPatch) -> FakeTable:
    """Return one fake table for all invocations of a test."""
    fake = FakeTable()
    client = SimpleNamespace(ends_at=0.0)
    monkeypatch.setattr(sharding, "warm", lambda name, writes: (fake, client))
    return fake


@pytest.fixture(autouse=True)
def environment(monkeypatch: pytest.MonkeyPatch) -> None:
    """Set the environment that the stack would set, and the names of the metrics."""
    for name, value in {
        "KEYHOP_TABLES": '["Audit"]',
        "KEYHOP_SHARDING": json.dumps({"Audit": SHARDED}),
        "KEYHOP_DRAIN_MACHINE": MACHINE,
        "KEYHOP_START_DRAINS": "false",
        "AWS_DEFAULT_REGION": "us-east-1",
        "POWERTOOLS_METRICS_NAMESPACE": "Keyhop",
        "POWERTOOLS_SERVICE_NAME": "enumerate-keys",
    }.items():
        monkeypatch.setenv(name, value)


def item(at: Any, **more: Any) -> dict[str, Any]:
    return {"path": SECRET, "at": at, **more}


def metrics_without_key(
    capsys: pytest.CaptureFixture[str], caplog: pytest.LogCaptureFixture
) -> dict[tuple[str, str], float]:
    """Return the printed metrics, after a check that neither output nor log shows the key."""
    printed = capsys.readouterr().out
    assert SECRET not in printed + str([vars(record) for record in caplog.records])
    return metrics_in("\n".join(line for line in printed.splitlines() if '"_aws"' in line))


def test_traffic_is_reported_at_the_end_of_each_invocation_that_writes(table: FakeTable) -> None:
    sharding.write_sharded({"table": "Audit", "items": [item(1)]}, Context())
    assert table.paused == 1
    sharding.query_sharded({"table": "Audit", "key": SECRET}, Context())
    assert table.paused == 1


def test_good_bad_good_names_the_bad_one_and_writes_the_others(
    table: FakeTable, capsys: pytest.CaptureFixture[str], caplog: pytest.LogCaptureFixture
) -> None:
    event = {"table": "Audit", "items": [item(1), "no item", item(2)]}
    answer = sharding.write_sharded(event, Context())
    assert answer == {
        "written": 2,
        "failed": [
            {
                "index": 1,
                "error": "InvalidItem",
                "message": "The item cannot be written: an item must be a JSON object of "
                "attributes.",
            }
        ],
        "results": [
            {"index": 0, "status": "written"},
            {"index": 1, "status": "failed"},
            {"index": 2, "status": "written"},
        ],
    }
    assert [stored["at"] for stored in table.stored] == [Decimal(1), Decimal(2)]
    metrics = metrics_without_key(capsys, caplog)
    assert (metrics["ItemsWritten", ""], metrics["ItemsFailed", ""]) == (2, 1)


def test_a_failed_item_is_named_by_its_place_in_the_event(
    table: FakeTable,
) -> None:
    """Invalid items never reach the library, so its places differ from those in the event."""
    table.errors = {
        0: refusal("ValidationException"),
        1: CannotStart("The item has no key attribute at of the type N."),
        2: OutOfTime(),
        3: EndpointConnectionError(endpoint_url="https://dynamodb"),
        4: TypeError("Unsupported type"),
    }
    items = [7, item(1), item(2), {"path": float("nan")}, item(3), item(4), item(5), item(6)]
    answer = sharding.write_sharded({"table": "Audit", "items": items}, Context())
    assert [(failure["index"], failure["error"]) for failure in answer["failed"]] == [
        (0, "InvalidItem"),
        (1, "ValidationException"),
        (2, "CannotStart"),
        (3, "InvalidItem"),
        (4, "OutOfTime"),
        (5, "Unreachable"),
        (6, "InvalidItem"),
    ]
    assert answer["written"] == 1
    assert [result["index"] for result in answer["results"]] == list(range(8))
    assert all(failure["message"].endswith((".", "no")) for failure in answer["failed"])


@pytest.mark.parametrize("typed", [False, True])
def test_an_item_that_is_too_deep_to_be_read_fails_alone(table: FakeTable, typed: bool) -> None:
    deep: Any = {"S": "x"} if typed else "x"
    for _ in range(5_000):
        deep = {"L": [deep]} if typed else [deep]
    good = {"path": {"S": SECRET}, "at": {"N": "1"}} if typed else item(1)
    event = {"table": "Audit", "items": [good, {**good, "v": deep}, good], "typed": typed}
    failures = sharding.write_items(table, WriteRequest.from_event(event))  # type: ignore[arg-type]
    assert {index: error for index, (error, _) in failures.items()} == {1: "InvalidItem"}
    assert len(table.stored) == 2


@pytest.mark.parametrize("message", ["no", "x" * 5_000])
def test_an_answer_with_failures_only_stays_below_lambdas_limit(
    table: FakeTable, message: str
) -> None:
    """The limit is 6,291,556 bytes (AWS documentation). Half of the items cannot even be read."""
    maximum = MOST_WRITTEN
    table.errors = dict.fromkeys(range(maximum), AwsRefused(message))
    items = [item(n) if n % 2 else [] for n in range(maximum)]
    answer = sharding.write_sharded({"table": "Audit", "items": items}, Context())
    assert len(answer["failed"]) == len(answer["results"]) == maximum
    assert len(json.dumps(answer)) < 6_000_000
    with pytest.raises(InvalidInput, match="at most 10,000 items"):
        sharding.write_sharded({"table": "Audit", "items": [*items, {}]}, Context())
    assert table.stored == []


def test_every_item_is_accounted_for_once(table: FakeTable) -> None:
    table.errors = {n: OutOfTime() for n in range(0, 30, 7)}
    answer = sharding.write_sharded(
        {"table": "Audit", "items": [item(n) for n in range(30)]}, Context()
    )
    assert answer["written"] + len(answer["failed"]) == len(answer["results"]) == 30
    assert answer["written"] == len(table.stored)


def test_typed_items_are_written_with_their_types(table: FakeTable) -> None:
    typed_item = {
        "path": {"B": base64.b64encode(b"\x00\xff").decode()},
        "at": {"N": "12345678901234567890.5"},
        "tags": {"SS": ["a", "b"]},
        "more": {"M": {"list": {"L": [{"NULL": True}, {"BOOL": False}]}}},
    }
    event = {"table": "Audit", "items": [typed_item], "typed": True}
    assert sharding.write_sharded(event, Context())["written"] == 1
    assert table.stored == [
        {
            "path": b"\x00\xff",
            "at": Decimal("12345678901234567890.5"),
            "tags": {"a", "b"},
            "more": {"list": [None, False]},
        }
    ]


@pytest.mark.parametrize(
    ("event", "message"),
    [
        ([], "must be a JSON object"),
        ({}, "table is missing"),
        ({"table": "", "items": []}, "table must be the name"),
        ({"table": "Audit"}, "items must be an array"),
        ({"table": "Audit", "items": {}}, "items must be an array"),
        ({"table": "Audit", "items": [], "typed": "yes"}, "typed must be true or false"),
        ({"table": "Audit", "item": []}, "did you mean items?"),
        ({"table": "Others", "items": []}, "not one of the tables of this deployment"),
    ],
)
def test_a_wrong_write_is_one_clear_sentence(table: FakeTable, event: Any, message: str) -> None:
    with pytest.raises(CannotStart) as error:
        sharding.write_sharded(event, Context())
    assert type(error.value).__name__ == "InvalidInput"
    assert message in str(error.value)
    assert "\n" not in str(error.value)


def test_metrics_are_counted_even_if_the_write_fails(
    table: FakeTable, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    table.usage.count(shards_added=1, shards_removed=2, races_lost=3)
    table.usage.count(hot_throttles=4, at_maximum=5, moves=6)
    table.usage.count_throttle((THROTTLED,))

    def fail(items: Any) -> BatchResult:
        raise refusal("AccessDeniedException")

    monkeypatch.setattr(table, "batch_write", fail)
    with pytest.raises(AwsRefused):
        sharding.write_sharded({"table": "Audit", "items": [item(1)]}, Context())
    metrics = metrics_in(capsys.readouterr().out)
    assert {name: value for (name, reason), value in metrics.items() if not reason} == {
        "ShardsAdded": 1,
        "ShardsRemoved": 2,
        "RacesLost": 3,
        "HotKeyThrottles": 4,
        "KeysAtMaximum": 5,
        "ItemsMoved": 6,
    }
    assert metrics["Throttles", THROTTLED] == 1
    assert not table.usage.counters, "reset, so that the next invocation does not count them again"


@pytest.mark.parametrize(
    ("raised", "expected"),
    [
        (refusal("ProvisionedThroughputExceededException"), GaveUp),
        (refusal("InternalServerError", 500), GaveUp),
        (OutOfTime(), GaveUp),
        (refusal("ValidationException"), CannotStart),
        (CannotStart("no"), CannotStart),
    ],
)
def test_an_error_has_a_name_that_the_state_machine_knows(
    table: FakeTable, raised: Exception, expected: type[Exception]
) -> None:
    """An error that may not happen again is GaveUp, which is retried. Others are refusals."""
    with pytest.raises(expected), sharding.at_work("Audit", Context()):
        raise raised


def test_no_request_is_sent_when_the_invocation_is_nearly_over() -> None:
    operations: list[str] = []

    class Client:
        region = "us-east-1"

        def call(self, operation: str, **parameters: Any) -> dict[str, Any]:
            operations.append(operation)
            return {}

    timed = TimedClient(Client())  # type: ignore[arg-type]
    timed.call("put_item")
    timed.ends_at = time.monotonic() - 1
    with pytest.raises(OutOfTime):
        timed.call("put_item")
    assert operations == ["put_item"]


def test_a_page_has_items_and_a_token_while_items_remain(table: FakeTable) -> None:
    table.stored = [item(Decimal(n)) for n in range(5)]
    event = {"table": "Audit", "key": SECRET, "limit": 2, "descending": True, "between": [1, None]}
    page = sharding.query_sharded(event, Context())
    assert page == {"items": [item(0), item(1)], "count": 2, "pageToken": "behind 1"}
    assert table.arguments == {
        "key": SECRET,
        "between": (Decimal(1), None),
        "descending": True,
        "limit": 3,
        "consistent": False,
        "page_token": None,
    }
    last = sharding.query_sharded({"table": "Audit", "key": SECRET, "limit": 5}, Context())
    assert (last["count"], last["pageToken"]) == (5, None)


def test_an_empty_page_has_no_token(table: FakeTable) -> None:
    page = sharding.query_sharded({"table": "Audit", "key": SECRET}, Context())
    assert page == {"items": [], "count": 0, "pageToken": None}
    assert table.arguments["limit"] == 101


@pytest.mark.parametrize("content", ["a" * 390_000, "ä" * 190_000, "\x01" * 300_000])
def test_an_answer_stays_below_lambdas_limit(table: FakeTable, content: str) -> None:
    table.stored = [item(Decimal(n), content=content) for n in range(100)]
    page = sharding.query_sharded({"table": "Audit", "key": SECRET}, Context())
    assert len(json.dumps(page)) < 6_000_000
    assert 0 < page["count"] < 100
    assert page["pageToken"] == f"behind {page['count'] - 1}"
    assert table.yielded == page["count"] + 1, "items that do not fit are not read"


def test_an_item_that_exceeds_the_limit_alone_is_returned_all_the_same() -> None:
    stored = iter([item(1, content="a" * sharding.ANSWER_BYTES), item(2)])
    items, last = sharding.take(stored, 10, typed=False)
    assert (len(items), last and last["at"]) == (1, 1)


def test_a_typed_page_is_exact(table: FakeTable) -> None:
    number = Decimal("0.1234567890123456789012345678901234567")
    table.stored = [{"path": Binary(b"\xff"), "at": number, "tags": {"b", "a"}}]
    event = {"table": "Audit", "key": {"B": "/w=="}, "typed": True, "between": [{"N": "0"}, None]}
    page = sharding.query_sharded(event, Context())
    assert page["items"] == [
        {"path": {"B": "/w=="}, "at": {"N": str(number)}, "tags": {"SS": ["a", "b"]}}
    ]
    assert (table.arguments["key"], table.arguments["between"]) == (b"\xff", (Decimal(0), None))


@pytest.mark.parametrize(
    ("more", "message"),
    [
        ({"key": ""}, "key must be a text"),
        ({"key": 7}, "key must be a text"),
        ({"key": None}, "key must be a text"),
        ({"key": {"B": "/w=="}}, 'with "typed": true'),
        ({"key": {"N": "1"}, "typed": True}, "key must be a text"),
        ({"key": {"B": "?"}, "typed": True}, "base64 text"),
        ({"limit": 0}, "limit must be a whole number from 1 to 1,000"),
        ({"limit": 1001}, "from 1 to 1,000"),
        ({"limit": "9"}, "from 1 to 1,000"),
        ({"limit": True}, "from 1 to 1,000"),
        ({"between": 7}, "two sort keys"),
        ({"between": [1]}, "two sort keys"),
        ({"between": [{"N": "x"}, None], "typed": True}, "between is wrong"),
        ({"descending": 1}, "descending must be true or false"),
        ({"consistent": "no"}, "consistent must be true or false"),
        ({"pageToken": 7}, "pageToken must be the text"),
        ({"page_token": "x"}, "did you mean pageToken?"),
    ],
)
def test_a_wrong_query_is_one_clear_sentence_without_the_key(
    more: dict[str, Any], message: str
) -> None:
    with pytest.raises(InvalidInput) as error:
        QueryRequest.from_event({"table": "Audit", "key": SECRET, **more})
    assert message in str(error.value)
    assert SECRET not in str(error.value)


def test_a_request_may_be_empty() -> None:
    assert WriteRequest.from_event({"table": "Audit", "items": []}).items == []


class FakeDrain:
    """A drain that returns these steps in order, and records its arguments."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, *steps: DrainStep) -> None:
        self.steps, self.arguments = [*steps], list[dict[str, Any]]()
        monkeypatch.setattr("keyhop.sharding.drain.Drain", lambda table: self)

    def step(self, key: Any, shards: int, seconds: float, **more: Any) -> DrainStep:
        self.arguments.append({"key": key, "shards": shards, "seconds": seconds, **more})
        return self.steps.pop(0)


def shards(phase: Phase) -> Shards:
    return Shards(1, 77, readable=4, phase=phase)


def test_a_step_of_a_drain_says_how_long_to_wait(
    table: FakeTable,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    caplog: pytest.LogCaptureFixture,
) -> None:
    drain = FakeDrain(
        monkeypatch,
        DrainStep(Next.WAIT, shards(Phase.CLOSING), 4.2, begun=True),
        DrainStep(Next.AGAIN, shards(Phase.MOVING), moved=17, begun=True),
        DrainStep(Next.DONE, Shards(1, 0), begun=True),
    )
    request = {"table": "Audit", "key": SECRET, "shards": 1}
    answers = [request]
    for _ in range(3):
        answers.append(sharding.move_shards({"request": request, "last": answers[-1]}, Context()))
    del answers[0]
    assert [step["begun"] for step in drain.arguments] == [False, True, True]
    assert [step["seen"] for step in drain.arguments] == [None, (77, 5), (77, 1)]
    assert [(answer["action"], answer["seconds"]) for answer in answers] == [
        ("wait", 5),
        ("again", 1),
        ("done", 1),
    ]
    assert answers[1] == {
        "action": "again",
        "seconds": 1,
        "phase": "moving",
        "moved": 17,
        "readable": 4,
        "shards": 1,
        "begun": True,
        "last_updated": 77,
    }
    assert {(step["key"], step["shards"]) for step in drain.arguments} == {(SECRET, 1)}
    metrics_without_key(capsys, caplog)


def test_items_are_moved_until_the_invocation_runs_out_of_time(
    table: FakeTable, monkeypatch: pytest.MonkeyPatch
) -> None:
    class Hurried(Context):
        def get_remaining_time_in_millis(self) -> int:
            return 20_000

    drain = FakeDrain(monkeypatch, *[DrainStep(Next.AGAIN, shards(Phase.MOVING))] * 2)
    request = {"table": "Audit", "key": SECRET, "shards": 1}
    event = {"request": request, "last": request}
    for context in (Context(), Hurried()):
        sharding.move_shards(event, context)
    assert [step["seconds"] for step in drain.arguments] == [835.0, 0.0]


def test_the_input_of_a_nested_execution_is_accepted() -> None:
    started = {"AWS_STEP_FUNCTIONS_STARTED_BY_EXECUTION_ID": "arn:e"}
    event = {"table": "Audit", "key": {"B": "/w=="}, "typed": True, "shards": 2, **started}
    assert MoveRequest.from_event(event) == MoveRequest("Audit", 2, b"\xff", typed=True)


@pytest.mark.parametrize("shards", [None, 0, -1, 1.5, "1", True])
def test_a_drain_needs_a_shard_count(shards: Any) -> None:
    with pytest.raises(InvalidInput, match="shards must be a whole number of at least 1"):
        MoveRequest.from_event({"table": "Audit", "key": SECRET, "shards": shards})


class FakeStepFunctions:
    """Step Functions that refuses an existing name, as it does after an execution has ended."""

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


def key_to_drain(key: Any, number: int = 8, fewer: int = 2) -> KeyShards:
    return KeyShards(key, Shards(number, 0), {}, fewer, "the busiest hour of 24 had 3 units")


def test_proposals_name_key_and_counts_and_start_nothing(
    table: FakeTable,
    stepfunctions: FakeStepFunctions,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    caplog: pytest.LogCaptureFixture,
) -> None:
    monkeypatch.setattr("keyhop.sharding.manage.proposals", lambda _: iter([key_to_drain(SECRET)]))
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
    assert metrics_without_key(capsys, caplog)["DrainsProposed", ""] == 1


def test_drains_are_started_once_a_day_for_each_key(
    table: FakeTable, stepfunctions: FakeStepFunctions, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("KEYHOP_START_DRAINS", "true")
    keys = [key_to_drain(SECRET), key_to_drain(Binary(b"\xff"), 3, 1)]
    monkeypatch.setattr("keyhop.sharding.manage.proposals", lambda _: iter(keys))
    first = sharding.propose_drains({}, Context())
    second = sharding.propose_drains({}, Context())
    assert [proposal["started"] for proposal in first] == [True, True]
    assert [proposal["started"] for proposal in second] == [False, False]
    inputs = list(stepfunctions.started.values())
    assert inputs == [
        {"table": "Audit", "key": SECRET, "shards": 2},
        {"table": "Audit", "key": {"B": "/w=="}, "shards": 1, "typed": True},
    ]
    assert [MoveRequest.from_event(event).key for event in inputs] == [SECRET, b"\xff"]


def test_a_table_that_cannot_be_read_does_not_hide_the_others(
    table: FakeTable, stepfunctions: FakeStepFunctions, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The invocation fails after the other tables, so that an operator notices it."""
    monkeypatch.setenv("KEYHOP_TABLES", '["Audit", "Devices"]')
    monkeypatch.setenv("KEYHOP_START_DRAINS", "true")
    answers: list[Any] = [BrokenPromise("cannot be read"), [key_to_drain(SECRET)]]

    def next_answer(_: Any) -> Iterator[KeyShards]:
        answer = answers.pop(0)
        if isinstance(answer, Exception):
            raise answer
        return iter(answer)

    monkeypatch.setattr("keyhop.sharding.manage.proposals", next_answer)
    with pytest.raises(BrokenPromise):
        sharding.propose_drains({}, Context())
    assert [event["table"] for event in stepfunctions.started.values()] == ["Devices"]


def test_boto3_has_the_error_for_a_name_that_exists() -> None:
    """The error of FakeStepFunctions has the same name."""
    client = sharding.boto3.client("stepfunctions")
    assert issubclass(client.exceptions.ExecutionAlreadyExists, ClientError)


def test_the_name_of_an_execution_is_valid_and_hides_the_key() -> None:
    proposal = sharding.proposal("Audit", key_to_drain(SECRET))
    name = sharding.execution_name(proposal, "2026-11-21")
    assert name.startswith("2026-11-21-")
    assert len(name) <= 80
    assert name.replace("-", "").isalnum()
    assert SECRET not in name
    fewer = sharding.proposal("Audit", key_to_drain(SECRET, 8, 3))
    assert sharding.execution_name(fewer, "2026-11-21") == name
    assert sharding.execution_name(proposal, "2026-11-22") != name


def test_one_invocation_starts_a_limited_number_of_drains(stepfunctions: FakeStepFunctions) -> None:
    many = [sharding.proposal("Audit", key_to_drain(f"k{n}")) for n in range(150)]
    assert sharding.start_drains(stepfunctions, MACHINE, many) == sharding.MOST_STARTED
    assert sum(proposal["started"] for proposal in many) == sharding.MOST_STARTED
