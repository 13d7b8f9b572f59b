"""Answers that never come, metadata in trouble: each was a bug, or could be one."""

import threading
from collections.abc import Callable
from decimal import Decimal
from typing import Any

import pytest
from botocore.exceptions import ClientError, ReadTimeoutError
from keyhop.errors import CannotStart
from keyhop.sharding.drain import Drain, Next
from keyhop.sharding.key.policy import Policy

from testing.databases import Database
from tests.integration.sharding.hooks import hook, physical, refused
from tests.integration.sharding.single import Place


@pytest.fixture
def place(dynamodb: Database, table_name: str) -> Place:
    return Place(dynamodb, table_name)


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
    while step.shards.phase != "moving":
        place.clock.sleep(step.seconds)
        step = Drain(table).step("/f", 1, begun=step.begun)
    assert step.begun
    throttles = [True] * 60

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


def test_limits_of_nothing_are_refused(place: Place) -> None:
    table = place.table()
    table.put_item(Item={"path": "/f", "at": "a"})
    for limit in (0, -1):
        with pytest.raises(CannotStart, match="limit"):
            table.query_page("/f", limit=limit)
