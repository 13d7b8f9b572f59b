"""The keeper on DynamoDB Local, with records in any order, duplicates and crashes."""

import random
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest
from keyhop.dynamodb.client import dynamodb_client
from keyhop.dynamodb.endpoint import Endpoint
from keyhop.dynamodb.transport import Client
from keyhop.errors import IndexBusy
from keyhop.key_index.keeper import keep, usage_json
from keyhop.key_index.sentinel import LEAST_SORT_KEY, MARKER
from keyhop.streams.event_source import BatchResult

from testing.databases import Database, partition_value
from testing.key_index_tables import STREAM, Stream, collections_of, drift, scanned
from testing.marks import prove
from tests.integration.key_index.command import Index

SORT_KEYS: dict[str, list[Any]] = {
    "S": [" before", "a", "b", "\U0010ffff"],
    "N": ["-9.99E+125", "0", "1", "7E+100"],
    "B": [b"\x00", b"a", b"b", b"\xff"],
}
"""The first one of S and B sorts before the sentinel."""


class Killed(BaseException):
    """The simulated end of a process."""


class KillingClient(Client):
    """A client whose process is killed before or after some of its calls."""

    def __init__(self, client: Client, chance: random.Random, share: float) -> None:
        self._inner = client
        self._chance = chance
        self._share = share
        self.region = client.region

    def call(self, operation: str, **parameters: Any) -> dict[str, Any]:
        if operation == "describe_table":
            return self._inner.call(operation, **parameters)
        if self._chance.random() < self._share:
            raise Killed
        answer = self._inner.call(operation, **parameters)
        if self._chance.random() < self._share:
            raise Killed
        return answer


@pytest.fixture(params=["S", prove("N"), prove("B")])
def table(request: pytest.FixtureRequest, dynamodb: Database, table_name: str) -> str:
    dynamodb.create(table_name, ("pk", request.param), ("sk", request.param), **STREAM)
    return table_name


def type_of(database: Database, table: str) -> str:
    definitions = database.client.describe_table(TableName=table)["Table"]["AttributeDefinitions"]
    return str(definitions[0]["AttributeType"])


def write_at_random(database: Database, table: str, seed: int, times: int, keys: int) -> None:
    chance = random.Random(seed)
    type_ = type_of(database, table)
    for _ in range(times):
        partition = {"pk": {type_: partition_value(type_, chance.randrange(keys))}}
        sort = {"sk": {type_: chance.choice(SORT_KEYS[type_])}}
        if chance.random() < 0.05:
            sort = {"sk": LEAST_SORT_KEY[type_]}  # a user deletes the sentinel
            database.client.delete_item(TableName=table, Key=partition | sort)
        elif chance.random() < 0.5:
            database.client.put_item(TableName=table, Item=partition | sort)
        else:
            database.client.delete_item(TableName=table, Key=partition | sort)


def deliver(
    stream: Stream,
    work: Callable[[list[dict[str, Any]]], BatchResult],
    chance: random.Random,
    until_written: Callable[[], bool] = lambda: True,
) -> None:
    """Deliver all records at least once, in random order and in batches of random size."""
    waiting: list[dict[str, Any]] = []
    while True:
        written = until_written()
        waiting += stream.new()
        if not waiting:
            if written:
                return
            continue
        chance.shuffle(waiting)
        size = chance.randint(1, min(len(waiting), 60))
        batch, waiting = waiting[:size], waiting[size:]
        try:
            failed = set(work(batch).failed)
            waiting += [r for r in batch if r["dynamodb"]["SequenceNumber"] in failed]
        except Killed:
            waiting += batch
        waiting += [record for record in batch if chance.random() < 0.1]


def test_exactly_the_collections_with_items_have_sentinels_after_all_records(
    dynamodb: Database, table: str
) -> None:
    chance = random.Random(7)
    inner = dynamodb_client(Endpoint(url=dynamodb.url))
    killing = KillingClient(inner, chance, 0.03)
    stream = Stream(dynamodb, table)

    def work(batch: list[dict[str, Any]]) -> BatchResult:
        return keep(batch, collections_of(dynamodb, table, killing), withdraw=lambda: None)

    with ThreadPoolExecutor(4) as pool:
        writers = [
            pool.submit(write_at_random, dynamodb, table, seed, 150, 12) for seed in range(4)
        ]
        deliver(stream, work, chance, lambda: all(writer.done() for writer in writers))
        for writer in writers:
            writer.result()
    sentinel = collections_of(dynamodb, table).sentinel
    assert drift(dynamodb, table, sentinel) == (set(), set())
    assert any(sentinel.is_one(item) for item in scanned(dynamodb, table))


def keep_all(index: Index, stream: Stream) -> dict[str, Any]:
    """Deliver all records, including those of the keeper's writes, and return the usage."""
    collections = index.keeper()
    while records := stream.new():
        assert keep(records, collections, withdraw=lambda: None).failed == ()
    return usage_json(collections.usage)


def test_the_keepers_requests_for_each_kind_of_write(index: Index) -> None:
    """An insert into an existing collection takes one read and no write (reference/costs.md)."""
    index.create(**STREAM)
    stream = index.stream()

    def item(sort: str) -> dict[str, Any]:
        return {"pk": {"S": "one"}, "sk": {"S": sort}}

    index.put(item("a"))
    first = keep_all(index, stream)
    assert (first["put"], first["writes"], first["reads"]) == (1, 1, 3)
    index.put(item("b"))
    steady = keep_all(index, stream)
    assert (steady["reads"], steady["read_units"], steady["writes"]) == (1, 1.0, 0)
    index.put(item("b") | {"x": {"S": "changed"}})
    modified = keep_all(index, stream)
    assert (modified["reads"], modified["writes"]) == (0, 0)
    index.delete(item("b"))
    removed = keep_all(index, stream)
    assert (removed["reads"], removed["writes"]) == (1, 0)
    index.delete(item("a"))
    last = keep_all(index, stream)
    assert (last["deleted"], last["writes"], last["reads"]) == (1, 1, 2)
    assert index.items() == []


def test_a_users_item_in_the_sentinels_place_is_not_changed(index: Index) -> None:
    index.create(**STREAM)
    stream = index.stream()
    user_item = {"pk": {"S": "one"}, "sk": LEAST_SORT_KEY["S"], "x": {"S": "mine"}}
    index.put(user_item)
    assert keep_all(index, stream)["occupied"] == 1
    index.put({"pk": {"S": "one"}, "sk": {"S": "z"}})
    assert keep_all(index, stream)["occupied"] == 1
    assert user_item in index.items()


ONE = {"pk": {"S": "one"}}
SENTINEL_KEY = {**ONE, "sk": LEAST_SORT_KEY["S"]}


def put_over_the_sentinel(index: Index) -> None:
    index.put(SENTINEL_KEY | {"x": {"S": "mine"}})


def remove_the_marker(index: Index) -> None:
    index.database.client.update_item(
        TableName=index.table, Key=SENTINEL_KEY, UpdateExpression=f"REMOVE {MARKER}"
    )


@pytest.mark.parametrize("other_items", [0, 1, 3])
@pytest.mark.parametrize("intrude", [put_over_the_sentinel, remove_the_marker])
def test_the_keeper_withdraws_trust_when_an_item_replaces_a_sentinel(
    index: Index, intrude: Callable[[Index], None], other_items: int
) -> None:
    index.create(**STREAM)
    stream = index.stream()
    index.put(index.keeper().sentinel.item_of(ONE))
    for number in range(other_items):
        index.put({**ONE, "sk": {"S": f"{' ' if number < 2 else ''}{number}"}})
    stream.new()
    intrude(index)
    (record,) = stream.new()
    assert record["eventName"] == "MODIFY"
    withdrawn: list[bool] = []
    result = keep([record], index.keeper(), withdraw=lambda: withdrawn.append(True))
    assert (result.failed, withdrawn) == ((), [True])


@pytest.mark.parametrize("count", [1, 3])
def test_records_fail_if_trust_cannot_be_withdrawn(index: Index, count: int) -> None:
    """This is true even if the keeper reads several occupied collections together."""
    index.create(**STREAM)
    stream = index.stream()
    keys = [{"pk": {"S": f"k{number}"}} for number in range(count)]
    index.put(*(key | {"sk": LEAST_SORT_KEY["S"]} for key in keys))
    stream.new()
    index.put(*(key | {"sk": {"S": "a"}} for key in keys))

    def withdraw() -> None:
        raise IndexBusy("others change the entry all the time")

    records = stream.new()
    failed = keep(records, index.keeper(), withdraw=withdraw).failed
    assert set(failed) == {record["dynamodb"]["SequenceNumber"] for record in records}
    assert len(failed) == count


def test_only_an_invalid_record_of_a_batch_fails(index: Index) -> None:
    index.create(**STREAM)
    stream = index.stream()
    index.put(*({"pk": {"S": f"k{number}"}, "sk": {"S": "a"}} for number in range(5)))
    records = stream.new()
    poison = records[2]["dynamodb"]["SequenceNumber"]
    del records[2]["dynamodb"]["Keys"]["pk"]
    errors: list[Exception] = []
    result = keep(records, index.keeper(), errors.append, withdraw=lambda: None)
    assert result.failed == (poison,)
    assert [type(error) for error in errors] == [KeyError]
    assert result.to_response() == {"batchItemFailures": [{"itemIdentifier": poison}]}
    assert index.drift()[0] == {("S", "k2")}
