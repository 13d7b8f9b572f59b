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


def kept(database: Database, table: str, stream: Stream) -> dict[str, Any]:
    """Deliver all that waits, and what comes of it; returns what that took."""
    collections = collections_of(database, table)
    while records := stream.new():
        assert keep(records, collections, withdraw=lambda: None).failed == ()
    return usage_json(collections.usage)


def test_what_a_write_costs(dynamodb: Database, table_name: str) -> None:
    """As docs/reference/costs.md says: a steady insert takes one read, and no write."""
    dynamodb.create(table_name, **STREAM)
    stream = Stream(dynamodb, table_name)

    def item(sort: str) -> dict[str, Any]:
        return {"pk": {"S": "one"}, "sk": {"S": sort}}

    dynamodb.client.put_item(TableName=table_name, Item=item("a"))
    first = kept(dynamodb, table_name, stream)
    assert (first["put"], first["writes"], first["reads"]) == (1, 1, 3)
    dynamodb.client.put_item(TableName=table_name, Item=item("b"))
    steady = kept(dynamodb, table_name, stream)
    assert (steady["reads"], steady["read_units"], steady["writes"]) == (1, 1.0, 0)
    dynamodb.client.put_item(TableName=table_name, Item=item("b") | {"x": {"S": "changed"}})
    modified = kept(dynamodb, table_name, stream)
    assert (modified["reads"], modified["writes"]) == (0, 0)
    dynamodb.client.delete_item(TableName=table_name, Key=item("b"))
    removed = kept(dynamodb, table_name, stream)
    assert (removed["reads"], removed["writes"]) == (1, 0)
    dynamodb.client.delete_item(TableName=table_name, Key=item("a"))
    last = kept(dynamodb, table_name, stream)
    assert (last["deleted"], last["writes"], last["reads"]) == (1, 1, 2)
    assert list(scanned(dynamodb, table_name)) == []


def test_an_item_of_the_user_in_the_sentinels_place_is_left_alone(
    dynamodb: Database, table_name: str
) -> None:
    dynamodb.create(table_name, **STREAM)
    stream = Stream(dynamodb, table_name)
    mine = {"pk": {"S": "one"}, "sk": LEAST_SORT_KEY["S"], "x": {"S": "mine"}}
    dynamodb.client.put_item(TableName=table_name, Item=mine)
    assert kept(dynamodb, table_name, stream)["occupied"] == 1
    dynamodb.client.put_item(TableName=table_name, Item={"pk": {"S": "one"}, "sk": {"S": "z"}})
    assert kept(dynamodb, table_name, stream)["occupied"] == 1
    assert mine in list(scanned(dynamodb, table_name))


ONE = {"pk": {"S": "one"}}
SENTINEL_KEY = {**ONE, "sk": LEAST_SORT_KEY["S"]}


def put_over_the_sentinel(database: Database, table: str) -> None:
    database.client.put_item(TableName=table, Item=SENTINEL_KEY | {"x": {"S": "mine"}})


def remove_the_marker(database: Database, table: str) -> None:
    database.client.update_item(
        TableName=table, Key=SENTINEL_KEY, UpdateExpression=f"REMOVE {MARKER}"
    )


@pytest.mark.parametrize("others", [0, 1, 3])
@pytest.mark.parametrize("intrude", [put_over_the_sentinel, remove_the_marker])
def test_the_keeper_withdraws_trust_when_an_item_replaces_a_sentinel(
    dynamodb: Database, table_name: str, intrude: Callable[[Database, str], None], others: int
) -> None:
    dynamodb.create(table_name, **STREAM)
    stream = Stream(dynamodb, table_name)
    dynamodb.client.put_item(
        TableName=table_name, Item=collections_of(dynamodb, table_name).sentinel.item_of(ONE)
    )
    for number in range(others):
        item = {**ONE, "sk": {"S": f"{' ' if number < 2 else ''}{number}"}}
        dynamodb.client.put_item(TableName=table_name, Item=item)
    stream.new()
    intrude(dynamodb, table_name)
    (record,) = stream.new()
    assert record["eventName"] == "MODIFY"
    withdrawn: list[bool] = []
    collections = collections_of(dynamodb, table_name)
    done = keep([record], collections, withdraw=lambda: withdrawn.append(True))
    assert (done.failed, withdrawn) == ((), [True])


@pytest.mark.parametrize("count", [1, 3])
def test_records_fail_if_trust_cannot_be_withdrawn(
    dynamodb: Database, table_name: str, count: int
) -> None:
    """Also where inserts of several occupied collections are looked at together."""
    dynamodb.create(table_name, **STREAM)
    stream = Stream(dynamodb, table_name)
    keys = [{"pk": {"S": f"k{number}"}} for number in range(count)]
    for key in keys:
        dynamodb.client.put_item(TableName=table_name, Item=key | {"sk": LEAST_SORT_KEY["S"]})
    stream.new()
    for key in keys:
        dynamodb.client.put_item(TableName=table_name, Item=key | {"sk": {"S": "a"}})

    def withdraw() -> None:
        raise IndexBusy("others change the entry all the time")

    records = stream.new()
    done = keep(records, collections_of(dynamodb, table_name), withdraw=withdraw)
    assert set(done.failed) == {record["dynamodb"]["SequenceNumber"] for record in records}
    assert len(done.failed) == count


def test_a_record_that_makes_no_sense_comes_again_and_the_others_do_not(
    dynamodb: Database, table_name: str
) -> None:
    dynamodb.create(table_name, **STREAM)
    stream = Stream(dynamodb, table_name)
    for number in range(5):
        dynamodb.client.put_item(
            TableName=table_name, Item={"pk": {"S": f"k{number}"}, "sk": {"S": "a"}}
        )
    records = stream.new()
    poison = records[2]["dynamodb"]["SequenceNumber"]
    del records[2]["dynamodb"]["Keys"]["pk"]
    told: list[Exception] = []
    collections = collections_of(dynamodb, table_name)
    done = keep(records, collections, told.append, withdraw=lambda: None)
    assert done.failed == (poison,)
    assert [type(error) for error in told] == [KeyError]
    assert done.to_response() == {"batchItemFailures": [{"itemIdentifier": poison}]}
    assert drift(dynamodb, table_name, collections.sentinel)[0] == {("S", "k2")}
