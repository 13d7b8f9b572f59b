"""The place of an index's sentinels is that on record, even if the configuration has changed."""

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

from testing.key_index_tables import STREAM, Stream
from testing.marks import prove
from testing.s3 import MemoryS3
from tests.integration.key_index.machines import BUCKET, Machines
from tests.unit.invocations import Context

OTHER = "#other"


class MinuteContext(Context):
    def get_remaining_time_in_millis(self) -> int:
        return 60_000


@pytest.fixture
def built(machines: Machines) -> Sentinel:
    """The sentinel of an index with 20 collections, after its configured place has changed."""
    machines.built([2] * 20)
    machines.machine.places = {machines.table: OTHER}
    return machines.sentinel


@pytest.fixture
def keeper(
    table_name: str, s3: MemoryS3, monkeypatch: pytest.MonkeyPatch
) -> Iterator[Callable[..., Any]]:
    """The function KeepIndex after a deployment with the changed place."""
    for name, value in {
        "KEYHOP_BUCKET": BUCKET,
        "KEYHOP_TABLES": json.dumps([table_name]),
        "KEYHOP_KEY_INDEXES": json.dumps({table_name: OTHER}),
        "POWERTOOLS_METRICS_NAMESPACE": "Keyhop",
        "POWERTOOLS_SERVICE_NAME": "enumerate-keys",
    }.items():
        monkeypatch.setenv(name, value)
    monkeypatch.setattr(settings, "s3_client", lambda: s3)
    yield lambda records: keep_index.handler({"Records": records}, MinuteContext())
    keep_index._table_of.cache_clear()
    keep_index._sentinel.cache_clear()


def item(name: str) -> dict[str, Any]:
    return {"pk": {"S": name}, "sk": {"S": "a"}}


def places_of(machines: Machines) -> set[str]:
    """Return the sort keys of all items with the marker."""
    return {item["sk"]["S"] for item in machines.items() if MARKER in item}


def keep_all(keeper: Callable[..., Any], stream: Stream) -> None:
    """Let the keeper process all records, including those that its writes cause."""
    while records := stream.new():
        assert keeper(records) == {"batchItemFailures": []}


@pytest.mark.prove
def test_the_keeper_puts_no_second_sentinel_into_a_collection(
    machines: Machines, built: Sentinel, keeper: Callable[..., Any]
) -> None:
    stream = machines.stream()
    keep_all(keeper, stream)
    machines.put(item("new"), item("newer"))
    keep_all(keeper, stream)
    machines.delete(item("new"))
    keep_all(keeper, stream)
    assert places_of(machines) == {built.place["S"]}
    assert machines.drift() == (set(), set())


def test_without_a_record_the_keeper_uses_the_configured_place(
    machines: Machines, keeper: Callable[..., Any]
) -> None:
    machines.create(**STREAM)
    stream = machines.stream()
    machines.put(item("one"))
    keep_all(keeper, stream)
    assert places_of(machines) == {OTHER}


@pytest.mark.parametrize("listed_by", [prove("name"), "arn"])
def test_a_table_is_the_same_by_its_name_and_by_its_arn(machines: Machines, listed_by: str) -> None:
    """Account, region and name identify a table."""
    machines.collections([2] * 5)
    table = machines.looked_up()
    machines.machine.places = {machines.table: OTHER}
    machines.build()
    places = {getattr(table, listed_by): OTHER, "another": "#another"}
    place = Sentinel.of(table.space, OTHER)
    indexes = replace(machines.machine.indexes, places=places)
    for name in (table.bare_name, table.arn):
        renamed = replace(machines.looked_up(), name=name)
        assert indexes.sentinel(renamed) == place
        trust = indexes.decide_trust(renamed, "auto", False)
        assert (trust.doubt, trust.source and trust.source.only) == (None, place.item_of({}))
    foreign_arn = table.arn.replace(":ddblocal:", ":eu-west-1:")
    foreign = Table(foreign_arn, {**table.description, "TableArn": foreign_arn})
    deployment = replace(indexes.deployment, tables=[foreign_arn])
    foreign_place = replace(indexes, deployment=deployment).sentinel(foreign).place
    assert foreign_place == LEAST_SORT_KEY["S"], "a table of another region"


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
    machines: Machines,
    built: Sentinel,
    keeper: Callable[..., Any],
    damage: Callable[[Any], None],
    error: type[Exception] | None,
) -> None:
    """The batch fails, so it is delivered again."""
    machines.put(item("new"))
    records = machines.stream().new()
    damage(machines.registry.store)
    if error is None:
        assert keeper(records) == {"batchItemFailures": []}
        return
    before = machines.in_order()
    with pytest.raises(error):
        keeper(records)
    assert machines.in_order() == before


def _drop(s3: Any) -> None:
    for entry in s3.list_objects_v2(Bucket=BUCKET)["Contents"]:
        s3.delete_object(Bucket=BUCKET, Key=entry["Key"])
    s3.delete_bucket(Bucket=BUCKET)


@pytest.mark.prove
def test_a_changed_place_blocks_builds_and_verifications_but_not_removals(
    machines: Machines, built: Sentinel
) -> None:
    for action in ("build", "verify"):
        with pytest.raises(CannotStart, match="built with another sort key"):
            machines.start(action, {"table": machines.table})
    assert len(machines.items()) == 60
    removed = machines.remove()
    assert (removed["elsewhere"], removed["as_before"]) == (0, True)
    assert len(machines.items()) == 40


@pytest.mark.parametrize("on_record", [prove(True), False])
def test_a_deploy_during_a_verification_moves_no_sentinel(
    machines: Machines, built: Sentinel, on_record: bool
) -> None:
    fields = {"table": machines.table, "graceSeconds": 0}
    if not on_record:
        machines.registry.store.delete(ENTRY)  # type: ignore[attr-defined]
    machines.machine.places = {machines.table: None}
    execution = machines.machine.execution()
    state = machines.step("verify", "prepare", fields, execution, {})
    assert state["next"] == "walk"
    machines.machine.places = {machines.table: OTHER}
    state["verified"] = {"run": machines.machine.start(state["verify"], walk=True)["run"]}
    state = machines.step("verify", "finish", fields, execution, state)
    assert state["result"]["verification"]["drift"] == 0
    assert places_of(machines) == {built.place["S"]}
    assert machines.registry.entry().place == built


@pytest.mark.prove
def test_a_removal_reports_sentinels_in_another_place(machines: Machines, built: Sentinel) -> None:
    """An older version of the keeper put a second sentinel into some collections."""
    second = {"sk": {"S": OTHER}, MARKER: {"N": "1"}}
    machines.put(*({"pk": {"S": f"k{number}"}, **second} for number in range(5)))
    removed = machines.remove()
    assert (removed["sentinels"], removed["elsewhere"], removed["as_before"]) == (0, 5, False)
    assert places_of(machines) == {OTHER}
    assert machines.build()["verification"]["drift"] == 0
    assert machines.remove()["elsewhere"] == 0
