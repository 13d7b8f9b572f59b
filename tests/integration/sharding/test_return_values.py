"""A write returns the item that it replaced or wrote itself, even with concurrent writers."""

from collections.abc import Callable
from typing import Any

import pytest
from keyhop.errors import GaveUp
from keyhop.sharding.table import ShardedTable

from tests.integration.sharding.hooks import client_error, hook
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
"""Metadata during a change of the shard count between one and two."""


@pytest.fixture(params=CHANGING)
def changing(place: Place, request: pytest.FixtureRequest) -> Place:
    more = {
        **{"readable": {"N": "2"}, "writable": {"N": "2"}, "placed_by": {"NS": ["1", "2"]}},
        **CHANGING[request.param],
    }
    changed = {"last_updated": {"N": str(int(BEGIN))}, "phase": {"S": request.param}}
    place.register("/f", 2, **{**more, **changed, "placement": {"S": "calculated jump _"}})
    return place


def before_each_write(table: ShardedTable, name: str, act: Callable[[str], object]) -> None:
    """Call `act` once for each item, with its sort key, just before its write is sent."""
    written: set[str] = set()

    def send_later(operation: str, parameters: dict[str, Any], send: Callable[[], Any]) -> Any:
        parts = parameters.get("TransactItems") or [{"": parameters}]
        is_write = operation.startswith(("put", "update", "delete", "transact"))
        for request in (request for part in parts for request in part.values()):
            if is_write and request.get("TableName") == name:
                at = (request.get("Item") or request["Key"])["at"]["S"]
                if at not in written:
                    written.add(at)
                    act(at)
        return send()

    hook(table, send_later)


@pytest.mark.parametrize("kind", ["put", "update", "delete"])
def test_all_old_is_the_item_that_the_write_replaced(changing: Place, kind: str) -> None:
    """Another table creates each item between the look and the write."""
    slow, peer = changing.table(), changing.table()
    before_each_write(
        slow, changing.name, lambda at: peer.put_item(Item={"path": "/f", "at": at, "v": 1})
    )
    for key in KEYS:
        match kind:
            case "put":
                response = slow.put_item(Item={**key, "v": 7}, ReturnValues="ALL_OLD")
            case "update":
                response = slow.update_item(Key=key, **ADD_ONE, ReturnValues="ALL_OLD")
            case _:
                response = slow.delete_item(Key=key, ReturnValues="ALL_OLD")
        assert response.get("Attributes") == {**key, "v": 1}
    values = [item["v"] for item in peer.query("/f", consistent=True)]
    assert values == {"put": [7] * 8, "update": [2] * 8, "delete": []}[kind]


def test_an_update_that_sets_nothing_has_no_new_attributes(changing: Place) -> None:
    """boto3 returns none either, and the fence is not an attribute of the user."""
    table = changing.table()
    for key in KEYS:
        changing.put_physical("/f_2", key["at"])
        assert "Attributes" not in table.update_item(
            Key=key, UpdateExpression="REMOVE v", ReturnValues="UPDATED_NEW"
        )


@pytest.mark.parametrize("changing", ["announced", "opened"], indirect=True)
@pytest.mark.parametrize("returns", ["ALL_NEW", "UPDATED_NEW"])
def test_concurrent_adds_return_different_numbers(changing: Place, returns: str) -> None:
    """Another table adds to each item as soon as it exists. A growth ends automatically."""
    slow, peer = changing.table(), changing.table()
    reported: dict[str, list[Any]] = {}

    def add(table: ShardedTable, at: str) -> None:
        key = {"path": "/f", "at": at}
        response = table.update_item(Key=key, **ADD_ONE, ReturnValues=returns)
        reported.setdefault(at, []).append(response["Attributes"])

    def act(operation: str, parameters: dict[str, Any], send: Callable[[], Any]) -> Any:
        if operation == "get_item" and parameters["TableName"] == changing.name:
            for at in {key["at"] for key in KEYS} - {*reported}:
                if changing.shards_of_items("/f").get(at):
                    add(peer, at)
        return send()

    hook(slow, act)
    for key in KEYS:
        add(slow, key["at"])
    for key in KEYS:
        add(peer, key["at"])
        values = [attributes["v"] for attributes in reported[key["at"]]]
        assert len(set(values)) == len(values)
        returned_key = key if returns == "ALL_NEW" else {}
        assert reported[key["at"]] == [{**returned_key, "v": value} for value in values]


def test_all_old_of_a_put_that_moves_an_item_is_its_last_version(place: Place) -> None:
    """Another table changes each item between the look and the put."""
    slow, peer = place.table(), place.table()
    for key in KEYS:
        peer.put_item(Item={**key, "v": 0})
    place.grow(peer, "/f", 3)
    before_each_write(
        slow, place.name, lambda at: peer.update_item(Key={"path": "/f", "at": at}, **ADD_ONE)
    )
    for key in KEYS:
        response = slow.put_item(Item={**key, "v": 7}, ReturnValues="ALL_OLD")
        assert response["Attributes"] == {**key, "v": 1}
    assert [item["v"] for item in peer.query("/f", consistent=True)] == [7] * 8


@pytest.mark.parametrize("changing", ["closing", "fenced"], indirect=True)
def test_all_new_of_a_new_item_is_refused_while_it_is_unknown(changing: Place) -> None:
    """The phase does not end, because the metadata cannot be written. So no item is written."""
    table = changing.table(patience=10.0)

    def act(operation: str, parameters: dict[str, Any], send: Callable[[], Any]) -> Any:
        if operation == "update_item" and parameters["TableName"] == changing.metadata:
            raise client_error("AccessDeniedException")
        return send()

    hook(table, act)
    with pytest.raises(GaveUp, match="ALL_NEW of a new item is not known while the shard count"):
        table.update_item(Key=KEYS[0], **ADD_ONE, ReturnValues="ALL_NEW")
    assert changing.shards_of_items("/f") == {}
    table.update_item(Key=KEYS[0], **ADD_ONE)
    response = table.update_item(Key=KEYS[0], **ADD_ONE, ReturnValues="ALL_NEW")
    assert response["Attributes"]["v"] == 2
