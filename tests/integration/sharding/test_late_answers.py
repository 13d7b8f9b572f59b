"""Answers that come late, and requests that arrive late, while the shards of a key change."""

from collections.abc import Callable
from functools import partial
from typing import Any

import pytest
from keyhop.errors import GaveUp
from keyhop.sharding.key.schema import ItemKey
from keyhop.sharding.table import ShardedTable

from tests.integration.sharding.hooks import hook, is_a, once, physical, refused
from tests.integration.sharding.single import BEGIN, Place

CHANGES: dict[str, Callable[[Place, ShardedTable], object]] = {
    "growth": lambda place, other: place.grow(other, "/f", 3),
    "drain": lambda place, other: place.drain(other, "/f", 1),
    "drain and growth": lambda place, other: (
        place.drain(other, "/f", 1),
        place.grow(other, "/f", 4),
    ),
}


def two_users(place: Place, **way: Any) -> tuple[ShardedTable, ShardedTable]:
    """Of a key with two shards; the answers of the first may be held up."""
    slow, other = place.table(**way), place.table(**way)
    agreed = {"S": slow.placement.text("_")}
    place.register("/f", 2, settle_seconds={"N": "2"}, placement=agreed)
    return slow, other


def answered_late(
    place: Place, slow: ShardedTable, meanwhile: Callable[[str], object]
) -> list[str]:
    """The first write to shard 2 takes effect at once, and is answered after `meanwhile`.

    Returns the operations that have written items; the first of them was late.
    """
    written: list[str] = []

    def act(operation: str, parameters: dict[str, Any], send: Callable[[], Any]) -> Any:
        is_late = physical(place, operation, parameters) == 2 and not written
        answer = send()
        if is_late:
            written.append(operation)
            meanwhile((parameters.get("Item") or parameters["Key"])["at"]["S"])
        elif written and parameters.get("TableName") == place.name and "get" not in operation:
            written.append(operation)
        return answer

    hook(slow, act)
    return written


ADD_ONE = {"UpdateExpression": "ADD v :one", "ExpressionAttributeValues": {":one": 1}}


@pytest.mark.parametrize("change", CHANGES)
@pytest.mark.parametrize("condition", [None, "attribute_not_exists(v)"])
def test_a_put_that_is_answered_late_is_not_put_again(
    place: Place, change: str, condition: str | None
) -> None:
    """What others have added to it since stays; and it does not fail of having been created."""
    slow, other = two_users(place)
    late: list[str] = []

    def meanwhile(at: str) -> None:
        late.append(at)
        CHANGES[change](place, other)
        other.update_item(Key={"path": "/f", "at": at}, **ADD_ONE)

    answered_late(place, slow, meanwhile)
    more = {"ConditionExpression": condition} if condition else {}
    for n in range(8):
        slow.put_item(Item={"path": "/f", "at": str(n), "v": 0}, **more)
    (at,) = late
    items = {item["at"]: item["v"] for item in other.query("/f", consistent=True)}
    assert items == {str(n): int(str(n) == at) for n in range(8)}
    assert {len(shards) for shards in place.lies_in("/f").values()} == {1}


@pytest.mark.parametrize("change", CHANGES)
def test_a_delete_that_is_answered_late_takes_nothing_that_came_since(
    place: Place, change: str
) -> None:
    slow, other = two_users(place)
    late: list[str] = []

    def meanwhile(at: str) -> None:
        late.append(at)
        CHANGES[change](place, other)
        other.put_item(Item={"path": "/f", "at": at, "v": "since"})

    for n in range(8):
        other.put_item(Item={"path": "/f", "at": str(n)})
    answered_late(place, slow, meanwhile)
    for n in range(8):
        slow.delete_item(Key={"path": "/f", "at": str(n)})
    assert [(i["at"], i["v"]) for i in other.query("/f", consistent=True)] == [(late[0], "since")]


@pytest.mark.parametrize("change", ["growth", "drain"])
def test_an_update_is_believed_unless_its_shard_is_drained(place: Place, change: str) -> None:
    slow, other = two_users(place)
    written = answered_late(place, slow, lambda _: CHANGES[change](place, other))

    def update_all() -> None:
        for n in range(8):
            slow.update_item(Key={"path": "/f", "at": str(n)}, **ADD_ONE)

    if change == "growth":
        update_all()
        assert [item["v"] for item in other.query("/f", consistent=True)] == [1] * 8
    else:
        with pytest.raises(GaveUp, match="look whether the update was kept"):
            update_all()
        assert written == ["update_item"]


@pytest.mark.parametrize("trouble", ["AccessDeniedException", "ThrottlingException"])
def test_trouble_in_verifying_repeats_no_write(place: Place, trouble: str) -> None:
    slow, other = two_users(place)
    written: list[str] = []

    def act(operation: str, parameters: dict[str, Any], send: Callable[[], Any]) -> Any:
        if written and parameters.get("TableName") == place.metadata:
            raise refused(trouble)
        if physical(place, operation, parameters) is None:
            return send()
        answer = send()
        CHANGES["drain"](place, other)
        written.append(operation)
        return answer

    hook(slow, act)
    with pytest.raises(GaveUp, match="look whether"):
        slow.put_item(Item={"path": "/f", "at": "1"})
    assert written == ["put_item"]


@pytest.mark.parametrize("answered", [True, False], ids=["answered late", "arrives late"])
def test_a_late_batch_is_believed_or_leaves_nothing_where_nobody_reads(
    place: Place, answered: bool
) -> None:
    slow, other = two_users(place, placement="random", append_only=True)
    drain = partial(place.drain, other, "/f", 1)
    late = once(slow, is_a("batch_write_item"), drain, answered=answered)
    result = slow.batch_write([{"path": "/f", "at": f"{n:02}"} for n in range(20)])
    assert late
    assert (result.written, result.failed) == (20, [])
    assert place.lies_in("/f") == {f"{n:02}": [1] for n in range(20)}


def test_a_put_that_arrives_after_its_shard_was_emptied_is_not_lost(place: Place) -> None:
    slow, other = (place.table(placement="random", append_only=True) for _ in range(2))
    place.register("/f", 4, settle_seconds={"N": "2"})
    late = once(
        slow,
        lambda operation, parameters: (physical(place, operation, parameters) or 0) > 1,
        lambda: place.drain(other, "/f", 1),
    )
    for n in range(8):
        slow.put_item(Item={"path": "/f", "at": str(n)})
    assert late
    items = [item["at"] for item in other.query("/f", consistent=True)]
    assert items == [str(n) for n in range(8)]
    assert {shard for shards in place.lies_in("/f").values() for shard in shards} == {1}


def test_a_page_that_arrives_after_a_drain_is_not_believed(place: Place) -> None:
    slow, other = (place.table(placement="random") for _ in range(2))
    place.register("/f", 2, settle_seconds={"N": "2"})
    for n in range(20):
        slow.put_item(Item={"path": "/f", "at": f"{n:02}"})
    late = once(
        slow,
        lambda name, words: name == "query" and "_2" in str(words["ExpressionAttributeValues"]),
        lambda: place.drain(other, "/f", 1),
    )
    assert [i["at"] for i in slow.query("/f", consistent=True)] == [f"{n:02}" for n in range(20)]
    assert late


def test_a_consistent_get_that_took_too_long_looks_again(place: Place) -> None:
    table, other = place.table(), place.table()
    items = [{"path": "/f", "at": str(n), "v": 1} for n in range(12)]
    table.batch_write(items)

    def move() -> None:
        place.grow(other, "/f", 1)
        for item in items:
            other.put_item(Item={**item, "v": 2})

    once(table, is_a("get_item", place.name), move)
    for item in items:
        key = {"path": "/f", "at": item["at"]}
        assert table.get_item(Key=key, ConsistentRead=True)["Item"]["v"] == 2


def test_a_consistent_get_finds_an_item_that_moves_during_its_look(place: Place) -> None:
    """A look is no snapshot: what it has read of the target is older than the move."""
    table = place.table()
    at = next(at for at in map(str, range(1000)) if places(table, at) == [1, 2, 4])
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
        found, first, last = [], *(moves.pop(0) if moves else ("", ""))
        keys = parameters["RequestItems"][name]["Keys"]
        for key in sorted(keys, key=lambda key: key["path"]["S"] != last):
            answer = client.get_item(TableName=name, Key=key, ConsistentRead=True)
            found += [answer["Item"]] if "Item" in answer else []
            if key["path"]["S"] == last:
                place.put_physical(last, at, v={"S": "here"})
                gone = {"path": {"S": first}, "at": {"S": at}}
                client.delete_item(TableName=name, Key=gone)
        return {"Responses": {name: found}, "UnprocessedKeys": {}}

    hook(table, act)
    got = table.get_item(Key={"path": "/f", "at": at}, ConsistentRead=True)
    assert got["Item"]["v"] == "here"
    assert not moves


def places(table: ShardedTable, at: str) -> list[int]:
    place = table.writer.place_of(ItemKey({"S": "/f"}, {"S": at}))
    return [place(count) for count in (1, 2, 4)]


def test_an_answer_about_the_metadata_that_was_overtaken_is_no_loss(place: Place) -> None:
    """Another thread has seen the key grow meanwhile; the simulator has found it."""
    table = place.table()
    table.put_item(Item={"path": "/f", "at": "1"})

    def grow() -> None:
        table.metadata.grow({"S": "/f"}, table.metadata.of({"S": "/f"}), 2)
        place.put_physical("/f_2", "2")

    late = once(table, is_a("get_item", place.metadata), grow, answered=True)
    found = table.metadata.find({"S": "/f"})
    assert late
    assert found is not None
    assert found.shards.number == 2
