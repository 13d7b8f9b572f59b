"""QuerySharded: the pages that it answers; the library's work is faked."""

import json
from decimal import Decimal
from typing import Any

import pytest
from boto3.dynamodb.types import Binary
from handlers import sharding
from handlers.sharding_requests import QueryRequest, WriteRequest
from keyhop.errors import InvalidInput

from tests.unit.invocations import Context
from tests.unit.sharding_fake import SECRET, FakeTable, item, set_environment, stand_in


@pytest.fixture
def table(monkeypatch: pytest.MonkeyPatch) -> FakeTable:
    return stand_in(monkeypatch)


@pytest.fixture(autouse=True)
def environment(monkeypatch: pytest.MonkeyPatch) -> None:
    set_environment(monkeypatch)


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
