"""Responses and requests that are late while the shards of a key change."""

from collections.abc import Callable
from functools import partial
from typing import Any

import pytest
from keyhop.errors import GaveUp
from keyhop.sharding.key.schema import ItemKey
from keyhop.sharding.table import ShardedTable

from tests.integration.sharding.hooks import client_error, hook, is_operation, once, shard_of_write
from tests.integration.sharding.single import BEGIN, Place

CHANGES: dict[str, Callable[[Place, ShardedTable], object]] = {
    "growth": lambda place, peer: place.grow(peer, "/f", 3),
    "drain": lambda place, peer: place.drain(peer, "/f", 1),
    "drain and growth": lambda place, peer: (
        place.drain(peer, "/f", 1),
        place.grow(peer, "/f", 4),
    ),
}


def two_tables(place: Place, **settings: Any) -> tuple[ShardedTable, ShardedTable]:
    """Return two tables of a key with two shards. Responses to the first may be delayed."""
    slow, peer = place.table(**settings), place.table(**settings)
    agreed = {"S": slow.placement.text("_")}
    place.register("/f", 2, settle_seconds={"N": "2"}, placement=agreed)
    return slow, peer


def delay_response(place: Place, slow: ShardedTable, action: Callable[[str], object]) -> list[str]:
    """Call `action` between the first write to shard 2 and its response.

    Return the operations that have written items, from that write on.
    """
    written: list[str] = []

    def act(operation: str, parameters: dict[str, Any], send: Callable[[], Any]) -> Any:
        is_late = shard_of_write(place, operation, parameters) == 2 and not written
        response = send()
        if is_late:
            written.append(operation)
            action((parameters.get("Item") or parameters["Key"])["at"]["S"])
        elif written and parameters.get("TableName") == place.name and "get" not in operation:
            written.append(operation)
        return response

    hook(slow, act)
    return written


ADD_ONE = {"UpdateExpression": "ADD v :one", "ExpressionAttributeValues": {":one": 1}}


@pytest.mark.parametrize("change", CHANGES)
@pytest.mark.parametrize("condition", [None, "attribute_not_exists(v)"])
def test_a_put_with_a_late_response_is_not_repeated(
    place: Place, change: str, condition: str | None
) -> None:
    """Later adds to the item stay, and the put does not fail because its item exists."""
    slow, peer = two_tables(place)
    late: list[str] = []

    def change_and_update(at: str) -> None:
        late.append(at)
        CHANGES[change](place, peer)
        peer.update_item(Key={"path": "/f", "at": at}, **ADD_ONE)

    delay_response(place, slow, change_and_update)
    more = {"ConditionExpression": condition} if condition else {}
    for n in range(8):
        slow.put_item(Item={"path": "/f", "at": str(n), "v": 0}, **more)
    (at,) = late
    items = {item["at"]: item["v"] for item in peer.query("/f", consistent=True)}
    assert items == {str(n): int(str(n) == at) for n in range(8)}
    assert {len(shards) for shards in place.shards_of_items("/f").values()} == {1}


@pytest.mark.parametrize("change", CHANGES)
def test_a_delete_with_a_late_response_removes_no_later_item(place: Place, change: str) -> None:
    slow, peer = two_tables(place)
    late: list[str] = []

    def change_and_put(at: str) -> None:
        late.append(at)
        CHANGES[change](place, peer)
        peer.put_item(Item={"path": "/f", "at": at, "v": "since"})

    for n in range(8):
        peer.put_item(Item={"path": "/f", "at": str(n)})
    delay_response(place, slow, change_and_put)
    for n in range(8):
        slow.delete_item(Key={"path": "/f", "at": str(n)})
    assert [(i["at"], i["v"]) for i in peer.query("/f", consistent=True)] == [(late[0], "since")]


@pytest.mark.parametrize("change", ["growth", "drain"])
def test_a_late_update_succeeds_unless_its_shard_is_drained(place: Place, change: str) -> None:
    slow, peer = two_tables(place)
    written = delay_response(place, slow, lambda _: CHANGES[change](place, peer))

    def update_all() -> None:
        for n in range(8):
            slow.update_item(Key={"path": "/f", "at": str(n)}, **ADD_ONE)

    if change == "growth":
        update_all()
        assert [item["v"] for item in peer.query("/f", consistent=True)] == [1] * 8
    else:
        with pytest.raises(GaveUp, match="look whether the update was kept"):
            update_all()
        assert written == ["update_item"]


@pytest.mark.parametrize("code", ["AccessDeniedException", "ThrottlingException"])
def test_an_error_during_verification_repeats_no_write(place: Place, code: str) -> None:
    slow, peer = two_tables(place)
    written: list[str] = []

    def act(operation: str, parameters: dict[str, Any], send: Callable[[], Any]) -> Any:
        if written and parameters.get("TableName") == place.metadata:
            raise client_error(code)
        if shard_of_write(place, operation, parameters) is None:
            return send()
        answer = send()
        CHANGES["drain"](place, peer)
        written.append(operation)
        return answer

    hook(slow, act)
    with pytest.raises(GaveUp, match="look whether"):
        slow.put_item(Item={"path": "/f", "at": "1"})
    assert written == ["put_item"]


@pytest.mark.parametrize("after", [True, False], ids=["answered late", "arrives late"])
def test_a_late_batch_leaves_no_item_in_a_drained_shard(place: Place, after: bool) -> None:
    slow, peer = two_tables(place, placement="random", append_only=True)
    drain = partial(place.drain, peer, "/f", 1)
    late = once(slow, is_operation("batch_write_item"), drain, after=after)
    result = slow.batch_write([{"path": "/f", "at": f"{n:02}"} for n in range(20)])
    assert late
    assert (result.written, result.failed) == (20, [])
    assert place.shards_of_items("/f") == {f"{n:02}": [1] for n in range(20)}


def test_a_put_that_arrives_after_its_shard_was_emptied_is_not_lost(place: Place) -> None:
    slow, peer = (place.table(placement="random", append_only=True) for _ in range(2))
    place.register("/f", 4, settle_seconds={"N": "2"})
    late = once(
        slow,
        lambda operation, parameters: (shard_of_write(place, operation, parameters) or 0) > 1,
        lambda: place.drain(peer, "/f", 1),
    )
    for n in range(8):
        slow.put_item(Item={"path": "/f", "at": str(n)})
    assert late
    items = [item["at"] for item in peer.query("/f", consistent=True)]
    assert items == [str(n) for n in range(8)]
    assert {shard for shards in place.shards_of_items("/f").values() for shard in shards} == {1}


def test_a_page_that_arrives_after_a_drain_is_read_again(place: Place) -> None:
    slow, peer = (place.table(placement="random") for _ in range(2))
    place.register("/f", 2, settle_seconds={"N": "2"})
    for n in range(20):
        slow.put_item(Item={"path": "/f", "at": f"{n:02}"})
    late = once(
        slow,
        lambda name, words: name == "query" and "_2" in str(words["ExpressionAttributeValues"]),
        lambda: place.drain(peer, "/f", 1),
    )
    assert [i["at"] for i in slow.query("/f", consistent=True)] == [f"{n:02}" for n in range(20)]
    assert late


def test_a_slow_consistent_get_looks_again(place: Place) -> None:
    table, peer = place.table(), place.table()
    items = [{"path": "/f", "at": str(n), "v": 1} for n in range(12)]
    table.batch_write(items)

    def move() -> None:
        place.grow(peer, "/f", 1)
        for item in items:
            peer.put_item(Item={**item, "v": 2})

    once(table, is_operation("get_item", place.name), move)
    for item in items:
        key = {"path": "/f", "at": item["at"]}
        assert table.get_item(Key=key, ConsistentRead=True)["Item"]["v"] == 2


def test_a_consistent_get_finds_an_item_that_moves_during_its_look(place: Place) -> None:
    """A look is not a snapshot: it has read the target before the move."""
    table = place.table()
    at = next(at for at in map(str, range(1000)) if shards_by_count(table, at) == [1, 2, 4])
    place.register(
        "/f",
        4,
        readable={"N": "4"},
        last_updated={"N": str(int(BEGIN))},
        placed_by={"NS": ["1", "2", "4"]},
        placement={"S": "calculated jump _"},
    )
    client, name = place.database.client, place.name
    place.put_physical("/f_1", at, v={"S": "here"})
    moves = [("/f_1", "/f_4")]

    def act(operation: str, parameters: dict[str, Any], send: Callable[[], Any]) -> Any:
        if operation != "batch_get_item":
            return send()
        items, source, target = [], *(moves.pop(0) if moves else ("", ""))
        keys = parameters["RequestItems"][name]["Keys"]
        for key in sorted(keys, key=lambda key: key["path"]["S"] != target):
            answer = client.get_item(TableName=name, Key=key, ConsistentRead=True)
            items += [answer["Item"]] if "Item" in answer else []
            if key["path"]["S"] == target:
                place.put_physical(target, at, v={"S": "here"})
                source_key = {"path": {"S": source}, "at": {"S": at}}
                client.delete_item(TableName=name, Key=source_key)
        return {"Responses": {name: items}, "UnprocessedKeys": {}}

    hook(table, act)
    response = table.get_item(Key={"path": "/f", "at": at}, ConsistentRead=True)
    assert response["Item"]["v"] == "here"
    assert not moves


def shards_by_count(table: ShardedTable, at: str) -> list[int]:
    place = table.writer.place_of(ItemKey({"S": "/f"}, {"S": at}))
    return [place(count) for count in (1, 2, 4)]


def test_an_outdated_read_of_metadata_is_not_a_loss(place: Place) -> None:
    """Another thread has read the grown metadata in the meantime. The simulator found this."""
    table = place.table()
    table.put_item(Item={"path": "/f", "at": "1"})

    def grow() -> None:
        table.metadata.grow({"S": "/f"}, table.metadata.of({"S": "/f"}), 2)
        place.put_physical("/f_2", "2")

    late = once(table, is_operation("get_item", place.metadata), grow, after=True)
    record = table.metadata.find({"S": "/f"})
    assert late
    assert record is not None
    assert record.shards.number == 2
