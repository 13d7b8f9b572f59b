"""WriteSharded: what it answers, logs and counts; the library's work is faked."""

import base64
import json
import time
from decimal import Decimal
from typing import Any

import pytest
from botocore.exceptions import EndpointConnectionError
from handlers import sharding
from handlers.sharding import OutOfTime, TimedClient
from handlers.sharding_requests import MOST_WRITTEN, WriteRequest
from keyhop.errors import AwsRefused, CannotStart, GaveUp, InvalidInput
from keyhop.sharding.io.batch import BatchResult

from tests.unit.invocations import Context, metrics_in
from tests.unit.sharding_fake import (
    SECRET,
    THROTTLED,
    FakeTable,
    item,
    refusal,
    set_environment,
    stand_in,
)


@pytest.fixture
def table(monkeypatch: pytest.MonkeyPatch) -> FakeTable:
    return stand_in(monkeypatch)


@pytest.fixture(autouse=True)
def environment(monkeypatch: pytest.MonkeyPatch) -> None:
    set_environment(monkeypatch)


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
    printed = capsys.readouterr().out
    assert SECRET not in printed + str([vars(record) for record in caplog.records])
    counted = metrics_in("\n".join(line for line in printed.splitlines() if '"_aws"' in line))
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
    for times, name in enumerate(
        (
            *("shards_added", "shards_removed", "races_lost"),
            *("hot_throttles", "at_maximum", "moves"),
        ),
        1,
    ):
        table.usage.count(**{name: times})
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
    with (
        pytest.raises(told),
        sharding.at_work("Audit", Context()),
    ):
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
