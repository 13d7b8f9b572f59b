"""The keeper on DynamoDB Local: any order, duplicates, crashes between any two calls."""

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
    """Stands for the end of a process."""


class Deadly(Client):
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
    """All records at least once, in any order and size of batch, until none is left."""
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


def test_a_sentinel_is_exactly_where_an_item_is_once_all_is_quiet(
    dynamodb: Database, table: str
) -> None:
    chance = random.Random(7)
    inner = dynamodb_client(Endpoint(url=dynamodb.url))
    deadly = Deadly(inner, chance, 0.03)
    stream = Stream(dynamodb, table)

    def work(batch: list[dict[str, Any]]) -> BatchResult:
        return keep(batch, collections_of(dynamodb, table, deadly), withdraw=lambda: None)

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


def kept(index: Index, stream: Stream) -> dict[str, Any]:
    """Deliver all that waits, and what comes of it; returns what that took."""
    collections = index.keeper()
    while records := stream.new():
        assert keep(records, collections, withdraw=lambda: None).failed == ()
    return usage_json(collections.usage)


def test_what_a_write_costs(index: Index) -> None:
    """As docs/reference/costs.md says: a steady insert takes one read, and no write."""
    index.create(**STREAM)
    stream = index.stream()

    def item(sort: str) -> dict[str, Any]:
        return {"pk": {"S": "one"}, "sk": {"S": sort}}

    index.put(item("a"))
    first = kept(index, stream)
    assert (first["put"], first["writes"], first["reads"]) == (1, 1, 3)
    index.put(item("b"))
    steady = kept(index, stream)
    assert (steady["reads"], steady["read_units"], steady["writes"]) == (1, 1.0, 0)
    index.put(item("b") | {"x": {"S": "changed"}})
    modified = kept(index, stream)
    assert (modified["reads"], modified["writes"]) == (0, 0)
    index.delete(item("b"))
    removed = kept(index, stream)
    assert (removed["reads"], removed["writes"]) == (1, 0)
    index.delete(item("a"))
    last = kept(index, stream)
    assert (last["deleted"], last["writes"], last["reads"]) == (1, 1, 2)
    assert index.items() == []


def test_an_item_of_the_user_in_the_sentinels_place_is_left_alone(index: Index) -> None:
    index.create(**STREAM)
    stream = index.stream()
    mine = {"pk": {"S": "one"}, "sk": LEAST_SORT_KEY["S"], "x": {"S": "mine"}}
    index.put(mine)
    assert kept(index, stream)["occupied"] == 1
    index.put({"pk": {"S": "one"}, "sk": {"S": "z"}})
    assert kept(index, stream)["occupied"] == 1
    assert mine in index.items()


ONE = {"pk": {"S": "one"}}
SENTINEL_KEY = {**ONE, "sk": LEAST_SORT_KEY["S"]}


def put_over_the_sentinel(index: Index) -> None:
    index.put(SENTINEL_KEY | {"x": {"S": "mine"}})


def remove_the_marker(index: Index) -> None:
    index.database.client.update_item(
        TableName=index.table, Key=SENTINEL_KEY, UpdateExpression=f"REMOVE {MARKER}"
    )


@pytest.mark.parametrize("others", [0, 1, 3])
@pytest.mark.parametrize("intrude", [put_over_the_sentinel, remove_the_marker])
def test_the_keeper_withdraws_trust_when_an_item_replaces_a_sentinel(
    index: Index, intrude: Callable[[Index], None], others: int
) -> None:
    index.create(**STREAM)
    stream = index.stream()
    index.put(index.keeper().sentinel.item_of(ONE))
    for number in range(others):
        item = {**ONE, "sk": {"S": f"{' ' if number < 2 else ''}{number}"}}
        index.put(item)
    stream.new()
    intrude(index)
    (record,) = stream.new()
    assert record["eventName"] == "MODIFY"
    withdrawn: list[bool] = []
    collections = index.keeper()
    done = keep([record], collections, withdraw=lambda: withdrawn.append(True))
    assert (done.failed, withdrawn) == ((), [True])


@pytest.mark.parametrize("count", [1, 3])
def test_records_fail_if_trust_cannot_be_withdrawn(index: Index, count: int) -> None:
    """Also where inserts of several occupied collections are looked at together."""
    index.create(**STREAM)
    stream = index.stream()
    keys = [{"pk": {"S": f"k{number}"}} for number in range(count)]
    index.put(*(key | {"sk": LEAST_SORT_KEY["S"]} for key in keys))
    stream.new()
    index.put(*(key | {"sk": {"S": "a"}} for key in keys))

    def withdraw() -> None:
        raise IndexBusy("others change the entry all the time")

    records = stream.new()
    done = keep(records, index.keeper(), withdraw=withdraw)
    assert set(done.failed) == {record["dynamodb"]["SequenceNumber"] for record in records}
    assert len(done.failed) == count


def test_a_record_that_makes_no_sense_comes_again_and_the_others_do_not(index: Index) -> None:
    index.create(**STREAM)
    stream = index.stream()
    index.put(*({"pk": {"S": f"k{number}"}, "sk": {"S": "a"}} for number in range(5)))
    records = stream.new()
    poison = records[2]["dynamodb"]["SequenceNumber"]
    del records[2]["dynamodb"]["Keys"]["pk"]
    told: list[Exception] = []
    collections = index.keeper()
    done = keep(records, collections, told.append, withdraw=lambda: None)
    assert done.failed == (poison,)
    assert [type(error) for error in told] == [KeyError]
    assert done.to_response() == {"batchItemFailures": [{"itemIdentifier": poison}]}
    assert index.drift()[0] == {("S", "k2")}
