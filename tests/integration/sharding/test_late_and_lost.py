"""Answers that come late or never, metadata in trouble: each was a bug, or could be one."""

import threading
from collections.abc import Callable
from decimal import Decimal
from typing import Any

import pytest
from botocore.exceptions import ClientError, ReadTimeoutError
from keyhop.errors import CannotStart, GaveUp
from keyhop.sharding.drain import Drain, Next
from keyhop.sharding.key.policy import Policy
from keyhop.sharding.table import ShardedTable

from testing.databases import Database
from tests.integration.sharding.single import Place

Hook = Callable[[str, dict[str, Any], Callable[[], Any]], Any]


@pytest.fixture
def place(dynamodb: Database, table_name: str) -> Place:
    return Place(dynamodb, table_name)


def hook(table: ShardedTable, act: Hook) -> None:
    """From now on, each request goes through `act`, which may let it pass."""
    client = table.requests.client

    class Hooked:
        def call(self, operation: str, **parameters: Any) -> Any:
            return act(operation, parameters, lambda: client.call(operation, **parameters))

        def describe_table(self, **parameters: Any) -> Any:
            return client.describe_table(**parameters)

        def scan(self, **parameters: Any) -> Any:
            return client.scan(**parameters)

    table.requests.client = Hooked()


def refused(code: str) -> ClientError:
    return ClientError({"Error": {"Code": code}}, "PutItem")


def physical(place: Place, operation: str, parameters: dict[str, Any]) -> int | None:
    """The shard that a put or an update of the table goes to."""
    if parameters.get("TableName") != place.name or operation not in ("put_item", "update_item"):
        return None
    key = (parameters.get("Item") or parameters["Key"])["path"]
    parsed = place.names.parsed(key)
    return None if parsed is None else parsed[1]


def test_a_put_that_arrives_after_its_shard_was_emptied_is_not_lost(place: Place) -> None:
    slow, other = (place.table(placement="random", append_only=True) for _ in range(2))
    place.register("/f", 4, settle_seconds={"N": "2"})
    late = [True]

    def act(operation: str, parameters: dict[str, Any], send: Callable[[], Any]) -> Any:
        shard = physical(place, operation, parameters)
        if shard is not None and shard > 1 and late:
            late.clear()
            place.drain(other, "/f", 1)
        return send()

    hook(slow, act)
    for n in range(8):
        slow.put_item(Item={"path": "/f", "at": str(n)})
    assert not late
    items = [item["at"] for item in other.query("/f", consistent=True)]
    assert items == [str(n) for n in range(8)]
    assert {shard for shards in place.lies_in("/f").values() for shard in shards} == {1}


def test_a_page_that_arrives_after_a_drain_is_not_believed(place: Place) -> None:
    slow, other = (place.table(placement="random") for _ in range(2))
    place.register("/f", 2, settle_seconds={"N": "2"})
    for n in range(20):
        slow.put_item(Item={"path": "/f", "at": f"{n:02}"})
    once, lock = [True], threading.Lock()

    def act(operation: str, parameters: dict[str, Any], send: Callable[[], Any]) -> Any:
        if operation == "query" and "_2" in str(parameters["ExpressionAttributeValues"]):
            with lock:
                if once:
                    once.clear()
                    place.drain(other, "/f", 1)
        return send()

    hook(slow, act)
    assert [i["at"] for i in slow.query("/f", consistent=True)] == [f"{n:02}" for n in range(20)]
    assert not once


def test_an_update_whose_answer_comes_too_late_says_so(place: Place) -> None:
    slow, other = place.table(), place.table()
    place.register("/f", 4, settle_seconds={"N": "2"}, placement={"S": "calculated jump _"})
    for n in range(8):
        other.put_item(Item={"path": "/f", "at": str(n), "v": 0})
    late = [True]

    def act(operation: str, parameters: dict[str, Any], send: Callable[[], Any]) -> Any:
        answer = send()
        if (physical(place, operation, parameters) or 0) > 1 and late:
            late.clear()
            place.drain(other, "/f", 1)
        return answer

    hook(slow, act)

    def update_all() -> None:
        for n in range(8):
            slow.update_item(
                Key={"path": "/f", "at": str(n)},
                UpdateExpression="SET v = :v",
                ExpressionAttributeValues={":v": 1},
            )

    with pytest.raises(GaveUp, match="look whether the update was kept"):
        update_all()


@pytest.mark.parametrize("trouble", ["AccessDeniedException", "ThrottlingException"])
def test_trouble_with_the_metadata_is_not_the_writes(place: Place, trouble: str) -> None:
    """Reports, steps and growth are housekeeping: a write neither fails of it nor waits for it."""
    table = place.table()
    place.register("/f", 3)
    place.clock.sleep(100)
    table.update_item(
        Key={"path": "/f", "at": "a"},
        UpdateExpression="SET v = if_not_exists(v, :z) + :o",
        ExpressionAttributeValues={":z": 0, ":o": 1},
    )

    def act(operation: str, parameters: dict[str, Any], send: Callable[[], Any]) -> Any:
        if operation == "update_item" and parameters["TableName"] == place.metadata:
            raise refused(trouble)
        return send()

    hook(table, act)
    began = place.clock.now + 61
    place.clock.sleep(61)
    table.update_item(
        Key={"path": "/f", "at": "a"},
        UpdateExpression="ADD v :o",
        ExpressionAttributeValues={":o": 1},
    )
    assert table.get_item(Key={"path": "/f", "at": "a"}, ConsistentRead=True)["Item"]["v"] == 2
    assert place.clock.now == began
    place.register("/g", 2, phase={"S": "announced"}, writable={"N": "1"})
    table.put_item(Item={"path": "/g", "at": "a"})
    assert place.clock.now == began
    table.close()


def test_metadata_that_was_restored_to_an_earlier_state_is_believed(place: Place) -> None:
    table = place.table()
    place.register("/f", 3)
    table.put_item(Item={"path": "/f", "at": "a"})
    earlier = int(place.clock.time()) - 50_000
    place.register("/f", 2, last_updated={"N": str(earlier)})
    place.clock.sleep(10)
    table.put_item(Item={"path": "/f", "at": "b"})
    assert table.metadata.of({"S": "/f"}).shards.number == 2


def test_an_append_without_an_answer_stays_where_it_may_be(place: Place) -> None:
    """Attempt 1 is made and its answer lost; attempt 2 is throttled: attempt 3 must not stray."""
    table = place.table(placement="random", append_only=True)
    place.register("/f", 16)
    script = ["lost", "throttled"]

    def act(operation: str, parameters: dict[str, Any], send: Callable[[], Any]) -> Any:
        if physical(place, operation, parameters) is None or not script:
            return send()
        if script.pop(0) == "lost":
            send()
            raise ReadTimeoutError(endpoint_url="http://x")
        raise ClientError(
            {
                "Error": {"Code": "ThrottlingException"},
                "throttlingReasons": [{"reason": "TableWriteKeyRangeThroughputExceeded"}],
            },
            "PutItem",
        )

    hook(table, act)
    table.put_item(Item={"path": "/f", "at": "a"})
    assert [len(shards) for shards in place.lies_in("/f").values()] == [1]


def test_a_batch_without_an_answer_is_not_spread_a_second_time(place: Place) -> None:
    table = place.table(placement="random", append_only=True)
    place.register("/f", 16)
    lost = [True]

    def act(operation: str, parameters: dict[str, Any], send: Callable[[], Any]) -> Any:
        answer = send()
        if operation == "batch_write_item" and lost:
            lost.clear()
            raise ReadTimeoutError(endpoint_url="http://x")
        return answer

    hook(table, act)
    result = table.batch_write([{"path": "/f", "at": str(n)} for n in range(20)])
    assert (result.written, result.failed) == (20, [])
    assert {len(shards) for shards in place.lies_in("/f").values()} == {1}


def test_a_consistent_get_that_took_too_long_looks_again(place: Place) -> None:
    table, other = place.table(), place.table()
    items = [{"path": "/f", "at": str(n), "v": 1} for n in range(12)]
    table.batch_write(items)
    moved = [True]

    def act(operation: str, parameters: dict[str, Any], send: Callable[[], Any]) -> Any:
        if operation == "get_item" and parameters["TableName"] == place.name and moved:
            moved.clear()
            place.grow(other, "/f", 1)
            for item in items:
                other.put_item(Item={**item, "v": 2})
        return send()

    hook(table, act)
    for item in items:
        key = {"path": "/f", "at": item["at"]}
        assert table.get_item(Key=key, ConsistentRead=True)["Item"]["v"] == 2


def test_writers_and_readers_that_begin_at_once_do_not_wait_for_each_other(place: Place) -> None:
    for _ in range(20):
        table = place.table()
        begun = threading.Barrier(4)

        def act(work: Callable[[], Any], begun: threading.Barrier = begun) -> None:
            begun.wait()
            work()

        works: list[Callable[[], Any]] = [
            lambda table=table: table.put_item(Item={"path": "/f", "at": "a"}),
            lambda table=table: list(table.query("/f")),
            lambda table=table: table.metadata,
            lambda table=table: table.usage,
        ]
        threads = [threading.Thread(target=act, args=(work,), daemon=True) for work in works]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(30)
            assert not thread.is_alive()
        assert table.usage is table.metadata.requests.usage
        table.close()


def test_an_update_tells_its_attributes_in_every_phase(place: Place) -> None:
    table = place.table()
    table.put_item(Item={"path": "/f", "at": "0"})
    place.clock.sleep(100)
    place.register("/f", 2, phase={"S": "announced"}, writable={"N": "1"}, shards_before={"N": "1"})
    place.clock.sleep(10)
    for n in range(1, 9):
        told = table.update_item(
            Key={"path": "/f", "at": str(n)},
            UpdateExpression="ADD v :one",
            ExpressionAttributeValues={":one": 1},
            ReturnValues="UPDATED_NEW",
        )
        assert told["Attributes"]["v"] == 1
        table.update_item(Key={"path": "/f", "at": f"x{n}"})
    assert len(list(table.query("/f", consistent=True))) == 17


def test_a_hot_key_calls_its_drain_off(place: Place) -> None:
    policy = Policy(threshold=2, cooldown=1)
    table = place.table(placement="random", append_only=True, policy=policy)
    place.register("/f", 4)
    for n in range(8):
        table.put_item(Item={"path": "/f", "at": str(n)})
    step = Drain(table).step("/f", 1)
    for _ in range(2):
        place.clock.sleep(step.seconds)
        step = Drain(table).step("/f", 1, begun=step.begun)
    assert (step.phase, step.begun) == ("moving", True)
    throttles = [True] * 30

    def act(operation: str, parameters: dict[str, Any], send: Callable[[], Any]) -> Any:
        if physical(place, operation, parameters) is not None and throttles:
            throttles.pop()
            raise ClientError(
                {
                    "Error": {"Code": "ThrottlingException"},
                    "throttlingReasons": [{"reason": "TableWriteKeyRangeThroughputExceeded"}],
                },
                "PutItem",
            )
        return send()

    hook(table, act)
    table.put_item(Item={"path": "/f", "at": "hot"})
    throttles.clear()
    assert place.shards("/f").phase in ("halted", "reopening", "announced", "opened", "steady")
    for n in range(10):
        place.clock.sleep(5)
        table.put_item(Item={"path": "/f", "at": f"on {n}"})
    assert (place.shards("/f").writable, place.shards("/f").phase) == (4, "steady")
    assert Drain(table).step("/f", 1, begun=True).action is Next.CALLED_OFF
    assert len(list(table.query("/f", consistent=True))) == 19


def test_one_thread_ends_a_phase_and_the_others_go_on(place: Place) -> None:
    table = place.table()
    place.register("/f", 2, phase={"S": "announced"}, writable={"N": "1"})
    place.clock.sleep(100)
    updates = []

    def act(operation: str, parameters: dict[str, Any], send: Callable[[], Any]) -> Any:
        if operation == "update_item":
            updates.append(threading.get_ident())
        return send()

    hook(table, act)
    begun = threading.Barrier(16)

    def put(n: int) -> None:
        begun.wait()
        table.put_item(Item={"path": "/f", "at": str(n)})

    threads = [threading.Thread(target=put, args=(n,), daemon=True) for n in range(16)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    assert len(updates) <= 3
    assert table.usage.counters["races_lost"] == 0
    assert len(list(table.query("/f", consistent=True))) == 16


def test_a_number_is_one_key_however_it_is_written(dynamodb: Database, table_name: str) -> None:
    place = Place(dynamodb, table_name, sort="N")
    table = place.table(placement="random", append_only=True)
    place.register("/f", 16)
    forms = [Decimal("700"), Decimal("7E+2"), Decimal("700.0")]
    result = table.batch_write(
        [*({"path": "/f", "at": at, "n": n} for n, at in enumerate(forms)), {"path": "/f", "at": 1}]
    )
    assert (result.written, result.failed) == (4, [])
    assert [item.get("n") for item in table.query("/f")] == [None, 2]

    def act(operation: str, parameters: dict[str, Any], send: Callable[[], Any]) -> Any:
        if operation != "batch_write_item":
            return send()
        put = parameters["RequestItems"][place.name][0]["PutRequest"]["Item"]
        left = {"PutRequest": {"Item": {**put, "at": {"N": "900"}}}}
        return {"UnprocessedItems": {place.name: [left]}}

    hook(table, act)
    result = table.batch_write([{"path": "/f", "at": Decimal("9E+2")}, {"path": "/f", "at": 2}])
    assert result.written == 2


def test_keys_left_over_for_ever_end_with_patience(place: Place) -> None:
    table = place.table(placement="random")
    place.register("/f", 8)

    def act(operation: str, parameters: dict[str, Any], send: Callable[[], Any]) -> Any:
        if operation == "batch_get_item":
            return {"Responses": {}, "UnprocessedKeys": parameters["RequestItems"]}
        return send()

    hook(table, act)
    with pytest.raises(ClientError, match="left over"):
        table.get_item(Key={"path": "/f", "at": "a"})
    assert 25 < place.clock.now < 45
    assert table.usage.throttles["unknown"] > 5


def test_a_batch_is_traffic_too(place: Place) -> None:
    table = place.table(placement="random", append_only=True)
    place.register("/f", 4)
    table.batch_write([{"path": "/f", "at": str(n)} for n in range(25)])
    table.close()
    (one,) = place.table().metadata.all()
    assert sum(one[2].values()) == 25


def test_limits_of_nothing_are_refused(place: Place) -> None:
    table = place.table()
    table.put_item(Item={"path": "/f", "at": "a"})
    for limit in (0, -1):
        with pytest.raises(CannotStart, match="limit"):
            table.query_page("/f", limit=limit)
