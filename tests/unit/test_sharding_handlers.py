"""The functions of sharded tables: what they answer, log, count and start; the library is faked.

WriteSharded, QuerySharded, MoveShards and ProposeDrains.
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
    """What handlers use of ShardedTable, without the shards."""

    name = "Audit"
    endpoint = sharding.Endpoint()

    def __init__(self) -> None:
        self.usage = Usage()
        self.schema = Schema(
            "Audit", KeyAttribute("path", "S"), KeyAttribute("at", "N"), Names("S", "_")
        )
        self.stored: list[dict[str, Any]] = []
        self.errors: dict[int, Exception] = {}
        self.asked: dict[str, Any] = {}
        self.given_away = self.paused = 0

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

    def query(self, **asked: Any) -> Iterator[dict[str, Any]]:
        self.asked = asked
        for item in self.stored[: asked["limit"]]:
            self.given_away += 1
            yield item

    def page_token(self, key: Any, last: Any, **asked: Any) -> str:
        return f"behind {last}"


@pytest.fixture
def table(monkeypatch: pytest.MonkeyPatch) -> FakeTable:
    """One fake table for all invocations of a test."""
    fake = FakeTable()
    client = SimpleNamespace(ends_at=0.0)
    monkeypatch.setattr(sharding, "warm", lambda name, writes: (fake, client))
    return fake


@pytest.fixture(autouse=True)
def environment(monkeypatch: pytest.MonkeyPatch) -> None:
    """What the stack would set, and the metrics' names."""
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


def counted_without_key(
    capsys: pytest.CaptureFixture[str], caplog: pytest.LogCaptureFixture
) -> dict[tuple[str, str], float]:
    """The metrics of what was printed, which shows the key as little as the log does."""
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
    assert [one["at"] for one in table.stored] == [Decimal(1), Decimal(2)]
    counted = counted_without_key(capsys, caplog)
    assert (counted["ItemsWritten", ""], counted["ItemsFailed", ""]) == (2, 1)


def test_what_the_library_did_not_write_is_named_by_its_place_in_the_event(
    table: FakeTable,
) -> None:
    """Items that cannot be read never reach it, so its places are other ones."""
    table.errors = {
        0: refusal("ValidationException"),
        1: CannotStart("The item has no key attribute at of the type N."),
        2: OutOfTime(),
        3: EndpointConnectionError(endpoint_url="https://dynamodb"),
        4: TypeError("Unsupported type"),
    }
    items = [7, item(1), item(2), {"path": float("nan")}, item(3), item(4), item(5), item(6)]
    answer = sharding.write_sharded({"table": "Audit", "items": items}, Context())
    assert [(one["index"], one["error"]) for one in answer["failed"]] == [
        (0, "InvalidItem"),
        (1, "ValidationException"),
        (2, "CannotStart"),
        (3, "InvalidItem"),
        (4, "OutOfTime"),
        (5, "Unreachable"),
        (6, "InvalidItem"),
    ]
    assert answer["written"] == 1
    assert [one["index"] for one in answer["results"]] == list(range(8))
    assert all(one["message"].endswith((".", "no")) for one in answer["failed"])


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


@pytest.mark.parametrize("told", ["no", "x" * 5_000])
def test_an_answer_of_failures_alone_stays_below_what_lambda_takes(
    table: FakeTable, told: str
) -> None:
    """6,291,556 bytes (AWS documentation); half of the items cannot even be read."""
    most = MOST_WRITTEN
    table.errors = dict.fromkeys(range(most), AwsRefused(told))
    items = [item(n) if n % 2 else [] for n in range(most)]
    answer = sharding.write_sharded({"table": "Audit", "items": items}, Context())
    assert len(answer["failed"]) == len(answer["results"]) == most
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


def test_typed_items_are_written_as_they_are_meant(table: FakeTable) -> None:
    given = {
        "path": {"B": base64.b64encode(b"\x00\xff").decode()},
        "at": {"N": "12345678901234567890.5"},
        "tags": {"SS": ["a", "b"]},
        "more": {"M": {"list": {"L": [{"NULL": True}, {"BOOL": False}]}}},
    }
    event = {"table": "Audit", "items": [given], "typed": True}
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
    ("event", "told"),
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
def test_a_wrong_write_is_one_clear_sentence(table: FakeTable, event: Any, told: str) -> None:
    with pytest.raises(CannotStart) as error:
        sharding.write_sharded(event, Context())
    assert type(error.value).__name__ == "InvalidInput"
    assert told in str(error.value)
    assert "\n" not in str(error.value)


def test_what_a_table_has_come_to_is_counted_also_when_it_fails(
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
    counted = metrics_in(capsys.readouterr().out)
    assert {name: value for (name, reason), value in counted.items() if not reason} == {
        "ShardsAdded": 1,
        "ShardsRemoved": 2,
        "RacesLost": 3,
        "HotKeyThrottles": 4,
        "KeysAtMaximum": 5,
        "ItemsMoved": 6,
    }
    assert counted["Throttles", THROTTLED] == 1
    assert not table.usage.counters, "taken, so that the next invocation does not count it again"


@pytest.mark.parametrize(
    ("raised", "told"),
    [
        (refusal("ProvisionedThroughputExceededException"), GaveUp),
        (refusal("InternalServerError", 500), GaveUp),
        (OutOfTime(), GaveUp),
        (refusal("ValidationException"), CannotStart),
        (CannotStart("no"), CannotStart),
    ],
)
def test_an_error_has_a_name_that_the_state_machine_knows(
    table: FakeTable, raised: Exception, told: type[Exception]
) -> None:
    """What may succeed later is GaveUp, which is retried; what cannot is refused."""
    with pytest.raises(told), sharding.at_work("Audit", Context()):
        raise raised


def test_no_request_is_sent_when_the_invocation_is_nearly_over() -> None:
    sent: list[str] = []

    class Client:
        region = "us-east-1"

        def call(self, operation: str, **parameters: Any) -> dict[str, Any]:
            sent.append(operation)
            return {}

    timed = TimedClient(Client())  # type: ignore[arg-type]
    timed.call("put_item")
    timed.ends_at = time.monotonic() - 1
    with pytest.raises(OutOfTime):
        timed.call("put_item")
    assert sent == ["put_item"]


def test_a_page_has_items_and_a_token_while_more_are_left(table: FakeTable) -> None:
    table.stored = [item(Decimal(n)) for n in range(5)]
    event = {"table": "Audit", "key": SECRET, "limit": 2, "descending": True, "between": [1, None]}
    page = sharding.query_sharded(event, Context())
    assert page == {"items": [item(0), item(1)], "count": 2, "pageToken": "behind 1"}
    assert table.asked == {
        "key": SECRET,
        "between": (Decimal(1), None),
        "descending": True,
        "limit": 3,
        "consistent": False,
        "page_token": None,
    }
    last = sharding.query_sharded({"table": "Audit", "key": SECRET, "limit": 5}, Context())
    assert (last["count"], last["pageToken"]) == (5, None)


def test_no_items_are_a_page_without_a_token(table: FakeTable) -> None:
    page = sharding.query_sharded({"table": "Audit", "key": SECRET}, Context())
    assert page == {"items": [], "count": 0, "pageToken": None}
    assert table.asked["limit"] == 101


@pytest.mark.parametrize("content", ["a" * 390_000, "ä" * 190_000, "\x01" * 300_000])
def test_an_answer_stays_below_what_lambda_takes(table: FakeTable, content: str) -> None:
    table.stored = [item(Decimal(n), content=content) for n in range(100)]
    page = sharding.query_sharded({"table": "Audit", "key": SECRET}, Context())
    assert len(json.dumps(page)) < 6_000_000
    assert 0 < page["count"] < 100
    assert page["pageToken"] == f"behind {page['count'] - 1}"
    assert table.given_away == page["count"] + 1, "what does not fit is not read for nothing"


def test_an_item_that_alone_is_too_large_is_given_all_the_same() -> None:
    found = iter([item(1, content="a" * sharding.ANSWER_BYTES), item(2)])
    items, last = sharding.take(found, 10, typed=False)
    assert (len(items), last and last["at"]) == (1, 1)


def test_a_typed_page_is_exact(table: FakeTable) -> None:
    number = Decimal("0.1234567890123456789012345678901234567")
    table.stored = [{"path": Binary(b"\xff"), "at": number, "tags": {"b", "a"}}]
    event = {"table": "Audit", "key": {"B": "/w=="}, "typed": True, "between": [{"N": "0"}, None]}
    page = sharding.query_sharded(event, Context())
    assert page["items"] == [
        {"path": {"B": "/w=="}, "at": {"N": str(number)}, "tags": {"SS": ["a", "b"]}}
    ]
    assert (table.asked["key"], table.asked["between"]) == (b"\xff", (Decimal(0), None))


@pytest.mark.parametrize(
    ("more", "told"),
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
    more: dict[str, Any], told: str
) -> None:
    with pytest.raises(InvalidInput) as error:
        QueryRequest.from_event({"table": "Audit", "key": SECRET, **more})
    assert told in str(error.value)
    assert SECRET not in str(error.value)


def test_a_request_may_be_empty() -> None:
    assert WriteRequest.from_event({"table": "Audit", "items": []}).items == []


class FakeDrain:
    """A drain's next steps, in their order; and what it was asked for."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, *steps: DrainStep) -> None:
        self.steps, self.asked = [*steps], list[dict[str, Any]]()
        monkeypatch.setattr("keyhop.sharding.drain.Drain", lambda table: self)

    def step(self, key: Any, shards: int, seconds: float, **more: Any) -> DrainStep:
        self.asked.append({"key": key, "shards": shards, "seconds": seconds, **more})
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
    told = [request]
    for _ in range(3):
        told.append(sharding.move_shards({"request": request, "last": told[-1]}, Context()))
    del told[0]
    assert [one["begun"] for one in drain.asked] == [False, True, True]
    assert [one["seen"] for one in drain.asked] == [None, (77, 5), (77, 1)]
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
    assert {(one["key"], one["shards"]) for one in drain.asked} == {(SECRET, 1)}
    counted_without_key(capsys, caplog)


def test_items_are_moved_for_as_long_as_the_invocation_leaves_time(
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
    assert [one["seconds"] for one in drain.asked] == [835.0, 0.0]


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
    assert counted_without_key(capsys, caplog)["DrainsProposed", ""] == 1


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


def test_one_invocation_starts_no_stampede(stepfunctions: FakeStepFunctions) -> None:
    many = [sharding.proposal("Audit", proposed(f"k{n}")) for n in range(150)]
    assert sharding.start_drains(stepfunctions, MACHINE, many) == sharding.MOST_STARTED
    assert sum(one["started"] for one in many) == sharding.MOST_STARTED
