"""batch_writer and batch_get_item of boto3 and of ShardedTable, and the requests they need."""

from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import pytest
from boto3.dynamodb.conditions import Key
from botocore.exceptions import ClientError, ParamValidationError
from keyhop.errors import CannotStart

from tests.integration.sharding.hooks import hook
from tests.integration.sharding.single import Place

SETTINGS: dict[str, Any] = {
    "boto3": None,
    "calculated": {"placement": "calculated"},
    "random": {"placement": "random"},
    "append-only": {"placement": "random", "append_only": True},
}


@dataclass
class TableAndGet:
    """A table, and the batch_get_item of boto3's resource or of the sharded table."""

    table: Any
    batch_get_item: Callable[..., dict[str, Any]]


@pytest.fixture(params=SETTINGS)
def target(request: pytest.FixtureRequest, place: Place) -> Iterator[TableAndGet]:
    settings = SETTINGS[request.param]
    if settings is None:
        resource = place.boto3()
        yield TableAndGet(resource.Table(place.name), resource.batch_get_item)
        return
    table = place.table(**settings)
    for n in range(0 if settings.get("append_only") else 20):
        table.put_item(Item=item(n))
    place.grow(table, "/f", 3)
    yield TableAndGet(table, table.batch_get_item)
    table.close()


def item(n: int, v: int = 0) -> dict[str, Any]:
    return {"path": "/f", "at": f"{n:03}", "v": v}


def key(n: int) -> dict[str, Any]:
    return {name: item(n)[name] for name in ("path", "at")}


def read_versions(table: Any) -> dict[str, int]:
    answer = table.query(KeyConditionExpression=Key("path").eq("/f"), ConsistentRead=True)
    return {item["at"]: int(item["v"]) for item in answer["Items"]}


def test_puts_and_deletes_are_written(target: TableAndGet) -> None:
    with target.table.batch_writer() as batch:
        for n in range(70):
            batch.put_item(Item=item(n, 1))
    before = read_versions(target.table)
    assert len(before) == 70
    with target.table.batch_writer(overwrite_by_pkeys=["path", "at"]) as batch:
        for n in range(0, 70, 2):
            batch.delete_item(Key=key(n))
        for n in range(100, 110):
            batch.put_item(Item=item(n, 2))
            batch.delete_item(Key=key(n))
        batch.put_item(Item=item(200, 3))
        batch.delete_item(Key=key(300))
    odd = {f"{n:03}": before[f"{n:03}"] for n in range(1, 70, 2)}
    assert read_versions(target.table) == {**odd, "200": 3}


def test_a_failed_batch_raises_and_other_batches_are_written(target: TableAndGet) -> None:
    def write(item: dict[str, Any], failure: Exception | None = None) -> None:
        with target.table.batch_writer() as batch:
            batch.put_item(Item=item)
            if failure is not None:
                raise failure

    def delete(key: dict[str, Any]) -> None:
        with target.table.batch_writer() as batch:
            batch.delete_item(Key=key)

    with pytest.raises((ClientError, CannotStart)):
        write({"path": "/f", "at": 7})
    with pytest.raises(ZeroDivisionError):
        write(item(500, 5), failure=ZeroDivisionError())
    assert read_versions(target.table)["500"] == 5
    with pytest.raises(ClientError) as error:
        delete(item(500))
    assert error.value.response["Error"]["Code"] == "ValidationException"


@pytest.mark.parametrize("consistent", [False, True])
def test_many_items_are_found(target: TableAndGet, consistent: bool) -> None:
    with target.table.batch_writer() as batch:
        for n in range(20, 60):
            batch.put_item(Item=item(n, n))
    request = {"Keys": [key(n) for n in range(10, 100, 2)], "ConsistentRead": consistent}
    name = target.table.name
    answer = target.batch_get_item(RequestItems={name: request}, ReturnConsumedCapacity="TOTAL")
    expected = range(20, 60, 2)
    items = sorted(answer["Responses"][name], key=lambda item: item["at"])
    assert [i for i in items if i["at"] >= "020"] == [item(n, n) for n in expected]
    assert answer["UnprocessedKeys"] == {}
    assert answer["ResponseMetadata"]["HTTPStatusCode"] == 200
    assert [capacity["TableName"] for capacity in answer["ConsumedCapacity"]] == [name]
    request |= {"ProjectionExpression": "v, #p", "ExpressionAttributeNames": {"#p": "path"}}
    items = target.batch_get_item(RequestItems={name: request})["Responses"][name]
    assert sorted(int(item["v"]) for item in items if item["v"]) == [*expected]
    assert all(set(item) == {"path", "v"} for item in items)


def test_requests_that_the_service_refuses_are_refused(target: TableAndGet) -> None:
    calls: list[tuple[dict[str, Any], dict[str, Any]]] = [
        ({"Keys": [key(n) for n in range(101)]}, {}),
        ({"Keys": [key(1), key(1)]}, {}),
        ({"Keys": [{**key(1), "v": 1}]}, {}),
        ({"Keys": [key(1)], "ProjectionExpression": ""}, {}),
        ({"Keys": [key(1)]}, {"ReturnConsumedCapacity": "BOGUS"}),
    ]
    for request, more in calls:
        with pytest.raises(ClientError) as error:
            target.batch_get_item(RequestItems={target.table.name: request}, **more)
        assert error.value.response["Error"]["Code"] == "ValidationException"


@pytest.mark.parametrize(
    "request_", [{}, [key(1)], {"Keys": 5}, {"Keys": key(1)}, {"Keys": [5]}, None]
)
def test_requests_that_boto3_does_not_send_are_refused(target: TableAndGet, request_: Any) -> None:
    with pytest.raises((ParamValidationError, CannotStart), match=r"Keys|must be a mapping|valid"):
        target.batch_get_item(RequestItems={target.table.name: request_})


def test_a_batch_of_new_items_is_one_look_and_one_write(place: Place) -> None:
    table = place.table()
    operations: Counter[str] = Counter()

    def act(operation: str, parameters: dict[str, Any], send: Callable[[], Any]) -> Any:
        operations[operation] += 1
        return send()

    hook(table, act)
    place.grow(table, "/f", 1)
    place.grow(table, "/f", 2)
    table.put_item(Item=item(0))
    operations.clear()
    assert table.batch_write(item(n) for n in range(1, 26)).written == 25
    assert operations == {"batch_get_item": 1, "batch_write_item": 1}
    operations.clear()
    with table.batch_writer() as batch:
        for n in range(1000, 1025):
            batch.delete_item(Key=key(n))
    assert operations == {"batch_get_item": 1, "batch_write_item": 1}
    operations.clear()
    keys = [key(n) for n in range(26)]
    answer = table.batch_get_item(RequestItems={table.name: {"Keys": keys}})
    assert len(answer["Responses"][table.name]) == 26
    assert operations == {"batch_get_item": 1}
    for requested in ({"other": {"Keys": keys}}, {}, [], None):
        with pytest.raises(CannotStart, match="one table only"):
            table.batch_get_item(RequestItems=requested)
    with pytest.raises(AttributeError, match="list_keys with logical=True"):
        table.scan()
    with pytest.raises(CannotStart, match="overwrite_by_pkeys"):
        table.batch_writer(overwrite_by_pkeys=["v"])
    with pytest.raises(AttributeError, match="boto3's words for items only"):
        table.item_count  # noqa: B018
    table.close()
