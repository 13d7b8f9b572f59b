"""Lost responses and failing requests for metadata. Most of these cases were bugs.

Also the maximum duration of a call while all requests are throttled.
"""

from collections.abc import Callable
from decimal import Decimal
from functools import partial
from typing import Any

import pytest
from botocore.exceptions import ClientError, ReadTimeoutError
from keyhop.sharding.drain import Drain, Next
from keyhop.sharding.key.policy import Policy
from keyhop.sharding.table import ShardedTable

from testing.databases import Database
from tests.integration.sharding.hooks import (
    client_error,
    hook,
    is_operation,
    once,
    run_together,
    shard_of_write,
)
from tests.integration.sharding.single import Place


def throttled() -> ClientError:
    error = client_error("ThrottlingException")
    error.response["throttlingReasons"] = [{"reason": "TableWriteKeyRangeThroughputExceeded"}]
    return error


@pytest.mark.parametrize("code", ["AccessDeniedException", "ThrottlingException"])
def test_failing_updates_of_metadata_fail_no_write(place: Place, code: str) -> None:
    """A write neither fails nor waits because reports, steps or growth fail."""
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
            raise client_error(code)
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


def test_metadata_that_was_restored_to_an_earlier_state_is_used(place: Place) -> None:
    table = place.table()
    place.register("/f", 3)
    table.put_item(Item={"path": "/f", "at": "a"})
    earlier = int(place.clock.time()) - 50_000
    place.register("/f", 2, last_updated={"N": str(earlier)})
    place.clock.sleep(10)
    table.put_item(Item={"path": "/f", "at": "b"})
    assert table.metadata.of({"S": "/f"}).shards.number == 2


def test_a_retry_of_an_append_uses_the_shard_of_the_lost_response(place: Place) -> None:
    """The first response is lost and attempt 2 is throttled. Attempt 3 must use the same shard."""
    table = place.table(placement="random", append_only=True)
    place.register("/f", 16)
    script = ["lost", "throttled"]

    def act(operation: str, parameters: dict[str, Any], send: Callable[[], Any]) -> Any:
        if shard_of_write(place, operation, parameters) is None or not script:
            return send()
        if script.pop(0) == "lost":
            send()
            raise ReadTimeoutError(endpoint_url="http://x")
        raise throttled()

    hook(table, act)
    table.put_item(Item={"path": "/f", "at": "a"})
    assert [len(shards) for shards in place.shards_of_items("/f").values()] == [1]


def test_a_retry_of_a_batch_uses_the_same_shards(place: Place) -> None:
    table = place.table(placement="random", append_only=True)
    place.register("/f", 16)

    def lose() -> None:
        raise ReadTimeoutError(endpoint_url="http://x")

    once(table, is_operation("batch_write_item"), lose, after=True)
    result = table.batch_write([{"path": "/f", "at": str(n)} for n in range(20)])
    assert (result.written, result.failed) == (20, [])
    assert {len(shards) for shards in place.shards_of_items("/f").values()} == {1}


def test_writers_and_readers_that_begin_at_once_do_not_wait_for_each_other(place: Place) -> None:
    for _ in range(20):
        table = place.table()
        assert not run_together(
            lambda table=table: table.put_item(Item={"path": "/f", "at": "a"}),
            lambda table=table: list(table.query("/f")),
            lambda table=table: table.metadata,
            lambda table=table: table.usage,
        )
        assert table.usage is table.metadata.requests.usage
        table.close()


def test_an_update_returns_its_attributes_during_a_growth(place: Place) -> None:
    table = place.table()
    table.put_item(Item={"path": "/f", "at": "0"})
    place.clock.sleep(100)
    place.register("/f", 2, phase={"S": "announced"}, writable={"N": "1"}, shards_before={"N": "1"})
    place.clock.sleep(10)
    for n in range(1, 9):
        response = table.update_item(
            Key={"path": "/f", "at": str(n)},
            UpdateExpression="ADD v :one",
            ExpressionAttributeValues={":one": 1},
            ReturnValues="UPDATED_NEW",
        )
        assert response["Attributes"]["v"] == 1
        table.update_item(Key={"path": "/f", "at": f"x{n}"})
    assert len(list(table.query("/f", consistent=True))) == 17


def test_a_hot_key_calls_its_drain_off(place: Place) -> None:
    policy = Policy(threshold=2, cooldown=1)
    table = place.table(placement="random", append_only=True, policy=policy)
    place.register("/f", 4)
    for n in range(8):
        table.put_item(Item={"path": "/f", "at": str(n)})
    assert place.drain(table, "/f", 1, until="moving")[-1].begun
    throttles = [True] * 60

    def act(operation: str, parameters: dict[str, Any], send: Callable[[], Any]) -> Any:
        if shard_of_write(place, operation, parameters) is not None and throttles:
            throttles.pop()
            raise throttled()
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


def test_one_thread_ends_a_phase_for_all(place: Place) -> None:
    table = place.table()
    place.register("/f", 2, phase={"S": "announced"}, writable={"N": "1"})
    place.clock.sleep(100)
    updates = []

    def act(operation: str, parameters: dict[str, Any], send: Callable[[], Any]) -> Any:
        if operation == "update_item":
            updates.append(operation)
        return send()

    hook(table, act)
    items = [{"path": "/f", "at": str(n)} for n in range(16)]
    assert not run_together(*(partial(table.put_item, Item=item) for item in items))
    assert len(updates) <= 3
    assert table.usage.counters["races_lost"] == 0
    assert len(list(table.query("/f", consistent=True))) == 16


def test_numbers_with_the_same_value_are_the_same_key(dynamodb: Database, table_name: str) -> None:
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
        unprocessed = {"PutRequest": {"Item": {**put, "at": {"N": "900"}}}}
        return {"UnprocessedItems": {place.name: [unprocessed]}}

    hook(table, act)
    result = table.batch_write([{"path": "/f", "at": Decimal("9E+2")}, {"path": "/f", "at": 2}])
    assert result.written == 2


def test_keys_that_are_never_processed_raise_after_the_patience(place: Place) -> None:
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


KEY = {"path": "/f", "at": "a"}
CALLS: list[Callable[[ShardedTable], Any]] = [
    lambda table: table.put_item(Item=KEY),
    lambda table: table.update_item(Key=KEY),
    lambda table: table.get_item(Key=KEY, ConsistentRead=True),
    lambda table: table.batch_write([KEY]).failed[0][2],
]


@pytest.mark.parametrize("call", CALLS, ids=("put", "update", "get", "batch"))
@pytest.mark.parametrize("looks_until", [0.0, 15.0, 29.0])
def test_patience_limits_the_whole_call(
    place: Place, call: Callable[[ShardedTable], Any], looks_until: float
) -> None:
    """All writes of items are throttled, and all looks after `looks_until`.

    A look within a write has the remaining time of the write. A backoff ends a little later.
    """
    table = place.table(placement="random", patience=30.0)
    place.register("/f", 3)

    def throttle(operation: str, parameters: dict[str, Any], send: Callable[[], Any]) -> Any:
        is_item_request = parameters.get("TableName", place.name) == place.name
        is_read = operation in ("batch_get_item", "get_item")
        if is_item_request and (not is_read or place.clock.now >= looks_until):
            raise client_error("ProvisionedThroughputExceededException")
        return send()

    hook(table, throttle)
    began = place.clock.now
    try:
        error = call(table)
    except ClientError as caught:
        error = caught
    if isinstance(error, ClientError):
        assert place.clock.now - began <= 30.0 + 2.0
    else:
        assert call is CALLS[2]
        assert place.clock.now - began <= 30.0
