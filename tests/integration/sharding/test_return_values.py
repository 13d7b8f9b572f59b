"""What a write returns is what it has replaced or made itself, whoever else writes."""

from collections.abc import Callable
from typing import Any

import pytest
from keyhop.errors import GaveUp
from keyhop.sharding.table import ShardedTable

from tests.integration.sharding.hooks import hook, refused
from tests.integration.sharding.single import BEGIN, Place

KEYS = [{"path": "/f", "at": str(n)} for n in range(8)]
ADD_ONE = {"UpdateExpression": "ADD v :one", "ExpressionAttributeValues": {":one": 1}}
CHANGING: dict[str, dict[str, Any]] = {
    "announced": {"writable": {"N": "1"}, "shards_before": {"N": "1"}},
    "opened": {"shards_before": {"N": "1"}},
    "closing": {"number_of_shards": {"N": "1"}, "shards_before": {"N": "2"}},
    "fenced": {
        **{"number_of_shards": {"N": "1"}, "shards_before": {"N": "2"}},
        **{"writable": {"N": "1"}, "readable": {"N": "2"}},
    },
}
"""Metadata while the count changes between one and two."""


@pytest.fixture(params=CHANGING)
def changing(place: Place, request: pytest.FixtureRequest) -> Place:
    more = {
        **{"readable": {"N": "2"}, "writable": {"N": "2"}, "placed_by": {"NS": ["1", "2"]}},
        **CHANGING[request.param],
    }
    changed = {"last_updated": {"N": str(int(BEGIN))}, "phase": {"S": request.param}}
    place.register("/f", 2, **{**more, **changed, "placement": {"S": "calculated jump _"}})
    return place


def just_before_writes(table: ShardedTable, name: str, act: Callable[[str], object]) -> None:
    """Of each item, once: `act` on its sort key, when the write is on its way to the table."""
    done: set[str] = set()

    def first(operation: str, parameters: dict[str, Any], send: Callable[[], Any]) -> Any:
        parts = parameters.get("TransactItems") or [{"": parameters}]
        is_write = operation.startswith(("put", "update", "delete", "transact"))
        for request in (one for part in parts for one in part.values()):
            if is_write and request.get("TableName") == name:
                at = (request.get("Item") or request["Key"])["at"]["S"]
                if at not in done:
                    done.add(at)
                    act(at)
        return send()

    hook(table, first)


@pytest.mark.parametrize("kind", ["put", "update", "delete"])
def test_all_old_is_what_the_write_has_replaced(changing: Place, kind: str) -> None:
    """Another user creates each item between the look and the write."""
    slow, other = changing.table(), changing.table()
    just_before_writes(
        slow, changing.name, lambda at: other.put_item(Item={"path": "/f", "at": at, "v": 1})
    )
    for key in KEYS:
        match kind:
            case "put":
                told = slow.put_item(Item={**key, "v": 7}, ReturnValues="ALL_OLD")
            case "update":
                told = slow.update_item(Key=key, **ADD_ONE, ReturnValues="ALL_OLD")
            case _:
                told = slow.delete_item(Key=key, ReturnValues="ALL_OLD")
        assert told.get("Attributes") == {**key, "v": 1}
    left = [item["v"] for item in other.query("/f", consistent=True)]
    assert left == {"put": [7] * 8, "update": [2] * 8, "delete": []}[kind]


def test_an_update_that_sets_nothing_has_no_new_attributes(changing: Place) -> None:
    """Neither has boto3's; the fence is not the user's."""
    table = changing.table()
    for key in KEYS:
        changing.put_physical("/f_2", key["at"])
        assert "Attributes" not in table.update_item(
            Key=key, UpdateExpression="REMOVE v", ReturnValues="UPDATED_NEW"
        )


@pytest.mark.parametrize("changing", ["announced", "opened"], indirect=True)
@pytest.mark.parametrize("returns", ["ALL_NEW", "UPDATED_NEW"])
def test_two_counters_are_told_two_numbers(changing: Place, returns: str) -> None:
    """Another user adds to each item as soon as it is there. A growth ends by itself."""
    slow, other = changing.table(), changing.table()
    told: dict[str, list[Any]] = {}

    def add(table: ShardedTable, at: str) -> None:
        key = {"path": "/f", "at": at}
        answer = table.update_item(Key=key, **ADD_ONE, ReturnValues=returns)
        told.setdefault(at, []).append(answer["Attributes"])

    def act(operation: str, parameters: dict[str, Any], send: Callable[[], Any]) -> Any:
        if operation == "get_item" and parameters["TableName"] == changing.name:
            for at in {key["at"] for key in KEYS} - {*told}:
                if changing.lies_in("/f").get(at):
                    add(other, at)
        return send()

    hook(slow, act)
    for key in KEYS:
        add(slow, key["at"])
    for key in KEYS:
        add(other, key["at"])
        values = [one["v"] for one in told[key["at"]]]
        assert len(set(values)) == len(values)
        whole = key if returns == "ALL_NEW" else {}
        assert all(one == {**whole, "v": one["v"]} for one in told[key["at"]])


def test_all_old_of_a_put_to_an_older_item_is_what_was_there_last(place: Place) -> None:
    """Another user changes each item between the look and the put."""
    slow, other = place.table(), place.table()
    for key in KEYS:
        other.put_item(Item={**key, "v": 0})
    place.grow(other, "/f", 3)
    just_before_writes(
        slow, place.name, lambda at: other.update_item(Key={"path": "/f", "at": at}, **ADD_ONE)
    )
    for key in KEYS:
        told = slow.put_item(Item={**key, "v": 7}, ReturnValues="ALL_OLD")
        assert told["Attributes"] == {**key, "v": 1}
    assert [item["v"] for item in other.query("/f", consistent=True)] == [7] * 8


@pytest.mark.parametrize("changing", ["closing", "fenced"], indirect=True)
def test_what_cannot_be_told_while_the_count_changes_is_refused(changing: Place) -> None:
    """The phase lasts, as the metadata cannot be written: nothing is written in the end."""
    table = changing.table(patience=10.0)

    def act(operation: str, parameters: dict[str, Any], send: Callable[[], Any]) -> Any:
        if operation == "update_item" and parameters["TableName"] == changing.metadata:
            raise refused("AccessDeniedException")
        return send()

    hook(table, act)
    with pytest.raises(GaveUp, match="ALL_NEW of a new item is not known while the shard count"):
        table.update_item(Key=KEYS[0], **ADD_ONE, ReturnValues="ALL_NEW")
    assert changing.lies_in("/f") == {}
    table.update_item(Key=KEYS[0], **ADD_ONE)
    told = table.update_item(Key=KEYS[0], **ADD_ONE, ReturnValues="ALL_NEW")
    assert told["Attributes"]["v"] == 2
