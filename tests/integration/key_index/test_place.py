"""Where the sentinels of an index are: as on record, whatever is configured since it was built."""

import json
from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any

import pytest
from handlers import keep_index, settings
from keyhop.dynamodb.tables import Table
from keyhop.errors import BrokenPromise, CannotStart
from keyhop.key_index.registry import ENTRY
from keyhop.key_index.sentinel import LEAST_SORT_KEY, MARKER, Sentinel

from testing.databases import Database
from testing.key_index_tables import Stream, drift, scanned, table_of
from testing.marks import prove
from testing.s3 import MemoryS3
from tests.integration.key_index.machines import BUCKET, Machines
from tests.unit.invocations import Context

OTHER = "#other"


class Lasting(Context):
    def get_remaining_time_in_millis(self) -> int:
        return 60_000


@pytest.fixture
def built(dynamodb: Database, table_name: str, machines: Machines) -> Sentinel:
    """A table of 20 collections with a key index; the context has another place for sentinels."""
    dynamodb.collections(table_name, [2] * 20)
    machines.start("build", {"table": table_name, "graceSeconds": 0})
    machines.machine.places = {table_name: OTHER}
    return Sentinel.of(table_of(dynamodb, table_name).space)


@pytest.fixture
def keeper(
    table_name: str, s3: MemoryS3, monkeypatch: pytest.MonkeyPatch
) -> Iterator[Callable[..., Any]]:
    """KeepIndex, as a deploy with that context would make it."""
    for name, value in {
        "KEYHOP_BUCKET": BUCKET,
        "KEYHOP_TABLES": json.dumps([table_name]),
        "KEYHOP_KEY_INDEXES": json.dumps({table_name: OTHER}),
        "POWERTOOLS_METRICS_NAMESPACE": "Keyhop",
        "POWERTOOLS_SERVICE_NAME": "enumerate-keys",
    }.items():
        monkeypatch.setenv(name, value)
    monkeypatch.setattr(settings, "s3_client", lambda: s3)
    yield lambda records: keep_index.handler({"Records": records}, Lasting())
    keep_index._table_of.cache_clear()
    keep_index._sentinel.cache_clear()


def put(database: Database, table: str, *names: str) -> None:
    for name in names:
        item = {"pk": {"S": name}, "sk": {"S": "a"}}
        database.client.put_item(TableName=table, Item=item)


def places_of(database: Database, table: str) -> set[str]:
    """The sort keys of all items with the marker."""
    return {item["sk"]["S"] for item in scanned(database, table) if MARKER in item}


def kept(keeper: Callable[..., Any], stream: Stream) -> None:
    """Have the keeper work all records, and those of its own writes."""
    while records := stream.new():
        assert keeper(records) == {"batchItemFailures": []}


@pytest.mark.prove
def test_the_keeper_starts_no_second_sentinel_per_collection(
    dynamodb: Database, table_name: str, built: Sentinel, keeper: Callable[..., Any]
) -> None:
    stream = Stream(dynamodb, table_name)
    kept(keeper, stream)
    put(dynamodb, table_name, "new", "newer")
    gone = {"pk": {"S": "new"}, "sk": {"S": "a"}}
    kept(keeper, stream)
    dynamodb.client.delete_item(TableName=table_name, Key=gone)
    kept(keeper, stream)
    assert places_of(dynamodb, table_name) == {built.place["S"]}
    assert drift(dynamodb, table_name, built) == (set(), set())


def test_without_a_record_the_keeper_goes_by_the_context(
    dynamodb: Database, table_name: str, machines: Machines, keeper: Callable[..., Any]
) -> None:
    """Of an index that was built before there were records."""
    on = {"StreamEnabled": True, "StreamViewType": "KEYS_ONLY"}
    dynamodb.create(table_name, StreamSpecification=on)
    stream = Stream(dynamodb, table_name)
    put(dynamodb, table_name, "one")
    kept(keeper, stream)
    assert places_of(dynamodb, table_name) == {OTHER}


@pytest.mark.parametrize("listed_by", [prove("name"), "arn"])
def test_a_table_is_the_same_by_its_name_and_by_its_arn(
    dynamodb: Database, table_name: str, machines: Machines, listed_by: str
) -> None:
    """It is account, region and name that tell a table, and not how somebody calls it."""
    dynamodb.collections(table_name, [2] * 5)
    table = table_of(dynamodb, table_name)
    machines.machine.places = {table_name: OTHER}
    machines.start("build", {"table": table_name, "graceSeconds": 0})
    places = {getattr(table, listed_by): OTHER, "another": "#another"}
    place = Sentinel.of(table.space, OTHER)
    indexes = replace(machines.machine.indexes, places=places)
    for named in (table.bare_name, table.arn):
        asked = replace(table_of(dynamodb, table_name), name=named)
        assert indexes.sentinel(asked) == place
        trust = indexes.decide_trust(asked, "auto", False)
        assert (trust.doubt, trust.source and trust.source.only) == (None, place.item_of({}))
    elsewhere = table.arn.replace(":ddblocal:", ":eu-west-1:")
    theirs = Table(elsewhere, {**table.description, "TableArn": elsewhere})
    of_two = replace(indexes, deployment=replace(indexes.deployment, tables=[elsewhere]))
    assert of_two.sentinel(theirs).place == LEAST_SORT_KEY["S"], "listed by itself"


@pytest.mark.parametrize(
    ("damage", "error"),
    [
        prove(lambda store: store.replace(ENTRY, b"{"), BrokenPromise),
        (lambda store: store._client.delete_object(Bucket=BUCKET, Key="x"), None),
        (lambda store: _drop(store._client), CannotStart),
    ],
    ids=["damaged", "whole", "unreachable"],
)
def test_a_keeper_that_cannot_read_the_record_does_not_guess(
    dynamodb: Database,
    table_name: str,
    machines: Machines,
    built: Sentinel,
    keeper: Callable[..., Any],
    damage: Callable[[Any], None],
    error: type[Exception] | None,
) -> None:
    """The batch fails, so it comes again."""
    put(dynamodb, table_name, "new")
    records = Stream(dynamodb, table_name).new()
    damage(machines.machine.indexes.registry(table_of(dynamodb, table_name)).store)
    if error is None:
        assert keeper(records) == {"batchItemFailures": []}
        return
    before = sorted(map(repr, scanned(dynamodb, table_name)))
    with pytest.raises(error):
        keeper(records)
    assert sorted(map(repr, scanned(dynamodb, table_name))) == before


def _drop(s3: Any) -> None:
    for entry in s3.list_objects_v2(Bucket=BUCKET)["Contents"]:
        s3.delete_object(Bucket=BUCKET, Key=entry["Key"])
    s3.delete_bucket(Bucket=BUCKET)


@pytest.mark.prove
def test_a_build_and_a_verification_are_refused_and_a_removal_goes_by_the_record(
    dynamodb: Database, table_name: str, machines: Machines, built: Sentinel
) -> None:
    for action in ("build", "verify"):
        with pytest.raises(CannotStart, match="built with another sort key"):
            machines.start(action, {"table": table_name})
    assert len(list(scanned(dynamodb, table_name))) == 60
    removed = machines.start("remove", {"table": table_name})
    assert (removed["elsewhere"], removed["as_before"]) == (0, True)
    assert len(list(scanned(dynamodb, table_name))) == 40


@pytest.mark.parametrize("on_record", [prove(True), False])
def test_a_deploy_during_a_verification_moves_no_sentinel(
    dynamodb: Database, table_name: str, machines: Machines, built: Sentinel, on_record: bool
) -> None:
    given = {"table": table_name, "graceSeconds": 0}
    if not on_record:
        registry = machines.machine.indexes.registry(table_of(dynamodb, table_name))
        registry.store.delete(ENTRY)  # type: ignore[attr-defined]
    machines.machine.places = {table_name: None}
    execution = machines.machine.execution()
    state = machines.step("verify", "prepare", given, execution, {})
    assert state["next"] == "walk"
    machines.machine.places = {table_name: OTHER}
    state["verified"] = {"run": machines.machine.start(state["verify"], walk=True)["run"]}
    done = machines.step("verify", "finish", given, execution, state)
    assert done["result"]["verification"]["drift"] == 0
    assert places_of(dynamodb, table_name) == {built.place["S"]}
    entry = machines.machine.indexes.registry(table_of(dynamodb, table_name)).entry()
    assert entry.place == built


@pytest.mark.prove
def test_a_removal_says_that_rows_are_left_elsewhere(
    dynamodb: Database, table_name: str, machines: Machines, built: Sentinel
) -> None:
    """Of a second sentinel per collection, by an older version of the keeper."""
    for number in range(5):
        second = {"pk": {"S": f"k{number}"}, "sk": {"S": OTHER}, MARKER: {"N": "1"}}
        dynamodb.client.put_item(TableName=table_name, Item=second)
    removed = machines.start("remove", {"table": table_name})
    assert (removed["sentinels"], removed["elsewhere"], removed["as_before"]) == (0, 5, False)
    assert places_of(dynamodb, table_name) == {OTHER}
    again = machines.start("build", {"table": table_name, "graceSeconds": 0})
    assert again["verification"]["drift"] == 0
    assert machines.start("remove", {"table": table_name})["elsewhere"] == 0
