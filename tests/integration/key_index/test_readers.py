"""Without a keeper, skip, scan and the check list the keys of users' items only."""

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
from keyhop.dynamodb.requester import Requester
from keyhop.jobs.runs import Runs
from keyhop.key_index.registry import local_registry
from keyhop.key_index.sentinel import INDEX, LEAST_SORT_KEY, MARKER, Sentinel

from testing.databases import Database, index_of
from testing.key_index_tables import table_of
from testing.s3 import MemoryS3
from testing.standin.server import StandIn
from tests.machine import Machine

INDEXED: dict[str, Any] = {
    "AttributeDefinitions": [{"AttributeName": MARKER, "AttributeType": "N"}],
    "GlobalSecondaryIndexes": [index_of(INDEX, "pk", MARKER)],
}
WAYS = [
    ("--method", method, "--segments", segments)
    for method in ("skip", "scan")
    for segments in ("1", "3", "200")
] + [(), ("--method", "scan"), ("--verify", "1"), ("--method", "skip", "--verify", "0.5")]
"""Options for one and for many segments, for the plan's choice, and for a check."""


@pytest.fixture(autouse=True)
def own_state_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))


def sentinel_of(collection: str, place: Mapping[str, Any] = LEAST_SORT_KEY["S"]) -> dict[str, Any]:
    return {"pk": {"S": collection}, "sk": dict(place), MARKER: {"N": "1"}}


def items_of(
    collection: str, sort_keys: list[str], filling: int = 0, **more: Any
) -> list[dict[str, Any]]:
    padding = {"data": {"S": "x" * filling}} if filling else {}
    return [{"pk": {"S": collection}, "sk": {"S": sk}, **padding, **more} for sk in sort_keys]


def listed(keys: list[dict[str, Any]]) -> list[str]:
    return sorted(key["pk"]["S"] for key in keys)


@pytest.mark.parametrize("filling", [0, 3_000])
def test_keys_that_have_only_a_sentinel_are_not_listed(
    database: Database, table_name: str, tmp_path: Path, filling: int
) -> None:
    """30 collections have sentinels and 20 have items, some of them before the sentinel."""
    database.create(table_name, **INDEXED)
    with_items = [f"k{number}" for number in range(20)]
    without_items = [f"gone{number}" for number in range(10)]
    database.fill(table_name, map(sentinel_of, with_items + without_items))
    for number, collection in enumerate(with_items):
        sort_keys = [["a"], ["\x01"], ["\x01", "\x02", "z"], list("abcdefgh")][number % 4]
        database.fill(table_name, items_of(collection, sort_keys, filling))
    for way in WAYS:
        status, report = database.report(table_name, tmp_path, *way)
        assert status == 0, way
        assert listed(report["out"]) == sorted(with_items), way
        assert report["left_out"] == 10, way
        if "--verify" in way:
            verdict = report["verify"]
            assert (verdict["missing"], verdict["appeared"], verdict["surplus"]) == (0, 0, 0)
            assert verdict["keys"] == 20 or "0.5" in way
    result = database.keys(table_name, "--method", "skip")
    assert "10 collections with no item but a sentinel of the key index" in result.err


@pytest.mark.prove
def test_a_fleet_and_its_check_leave_out_the_same_keys(
    dynamodb: Database, table_name: str, s3: MemoryS3, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A collection that has lost its items since the run is surplus to the check."""
    monkeypatch.setenv("AWS_ENDPOINT_URL_DYNAMODB", dynamodb.url)
    dynamodb.create(table_name, **INDEXED)
    collections = [f"k{number}" for number in range(30)]
    place = {"S": "mm"}
    dynamodb.fill(table_name, [sentinel_of(collection, place) for collection in collections])
    for collection in collections[:20]:
        dynamodb.fill(table_name, items_of(collection, ["a", "z"]))
    machine = Machine(Runs(s3, "results", [table_name]), places={table_name: "mm"})
    for method in ("skip", "scan"):
        result = machine.start(
            {"table": table_name, "method": method, "segments": 3, "verifyShare": 1}
        )
        assert listed(machine.keys(result["run"])) == sorted(collections[:20])
        assert (result["keys"], result["leftOut"]) == (20, 10)
        assert result["verify"]["surplus"] == result["verify"]["missing"] == 0
    planned = machine.start({"table": table_name, "dryRun": True})
    assert planned["keys"]["estimate"] == 20
    for sort in "az":
        dynamodb.client.delete_item(TableName=table_name, Key=items_of("k7", [sort])[0])
    checked = machine.start({"table": table_name, "resume": result["run"], "verifyShare": 1})
    assert (checked["verify"]["surplus"], checked["verify"]["keys"]) == (1, 19)


@pytest.mark.prove
def test_the_record_has_the_place_of_sentinels_when_the_index_is_gone(
    database: Database, table_name: str, tmp_path: Path
) -> None:
    """A stack was destroyed. 100 collections have sentinels, and 60 have items."""
    database.create(table_name)
    place = {"S": "mm"}
    collections = [f"k{number}" for number in range(100)]
    database.fill(table_name, [sentinel_of(collection, place) for collection in collections])
    for collection in collections[:60]:
        database.fill(table_name, items_of(collection, ["a", "z"][: 1 + len(collection) % 2]))
    assert len(database.keys(table_name).keys) == 100, "without a record, the place is unknown"
    table = table_of(database, table_name)
    registry = local_registry(table)
    registry.check_writable()
    registry.take("somebody", "build", lambda lease, age: False)
    registry.change("somebody", sentinel=Sentinel.of(table.space, "mm").to_json(), lease=None)
    for way in WAYS:
        status, report = database.report(table_name, tmp_path, *way)
        assert (status, report["left_out"]) == (0, 40), way
        assert listed(report["out"]) == sorted(collections[:60]), way
    plan = database.keys(table_name, "--dry-run", "--format", "json")
    assert b'"estimate": 60' in plan.out


SAMPLING = [(), ("--method", "skip"), ("--method", "scan"), ("--verify", "1")]
"""Options of runs that start with a sample."""


@pytest.mark.parametrize("filling", [0, 2_000])
def test_left_over_sentinels_are_recognised_by_their_place_and_marker(
    database: Database, table_name: str, tmp_path: Path, filling: int
) -> None:
    """There is neither a record nor an index.

    With 2,000 bytes per item, the first pages do not contain the whole table.
    """
    database.create(table_name)
    collections = [f"k{number}" for number in range(100)]
    database.fill(table_name, map(sentinel_of, collections))
    for collection in collections[:60]:
        database.fill(table_name, items_of(collection, list("abcdwxyz"), filling))
    for way in SAMPLING:
        status, report = database.report(table_name, tmp_path, *way)
        assert (status, report["left_out"]) == (0, 40), way
        assert listed(report["out"]) == sorted(collections[:60]), way
    plan = json.loads(database.keys(table_name, "--dry-run", "--format", "json").out)
    assert plan["keys"]["low"] <= 60 <= plan["keys"]["high"]


@pytest.mark.prove
def test_a_fleet_recognises_left_over_sentinels(
    dynamodb: Database, table_name: str, s3: MemoryS3, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The plan passes the place to the workers, even if the table has no keyIndex."""
    monkeypatch.setenv("AWS_ENDPOINT_URL_DYNAMODB", dynamodb.url)
    dynamodb.create(table_name)
    collections = [f"k{number}" for number in range(300)]
    dynamodb.fill(table_name, map(sentinel_of, collections))
    for collection in collections[:200]:
        dynamodb.fill(table_name, items_of(collection, ["a", "z"], 2_000))
    machine = Machine(Runs(s3, "results", [table_name]))
    result = machine.start({"table": table_name, "verifyShare": 1})
    assert machine.runs.open_run(result["run"])[1].segments > 1
    assert listed(machine.keys(result["run"])) == sorted(collections[:200])
    assert (result["keys"], result["leftOut"]) == (200, 100)


@pytest.mark.prove
def test_only_the_sample_requests_the_marker_of_a_table_without_sentinels(
    strict: Database, table_name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The attribute costs CPU time for each item, though no read units."""
    strict.create(table_name)
    for number in range(400):
        strict.fill(table_name, items_of(f"k{number}", list("abcd"), 2_000))
    once, with_marker = Requester.once, []

    def recorded(self: Requester, operation: str, minimum: float, **parameters: Any) -> Any:
        with_marker.append(MARKER in parameters["ExpressionAttributeNames"].values())
        return once(self, operation, minimum, **parameters)

    monkeypatch.setattr(Requester, "once", recorded)
    assert len(strict.keys(table_name, "--method", "skip").keys) == 400
    sample_requests = with_marker.index(False)
    assert 0 < sample_requests < 100
    assert not any(with_marker[sample_requests:])
    assert len(with_marker) > 2 * sample_requests


def test_items_of_users_that_resemble_sentinels_are_keys(
    database: Database, table_name: str, tmp_path: Path
) -> None:
    database.create(table_name, **INDEXED)
    lookalikes = [
        *items_of("another-marker", ["!keyhop"], **{MARKER: {"N": "5"}}),
        *items_of("no-marker", ["!keyhop"]),
        *items_of("another-place", ["a"], **{MARKER: {"N": "1"}}),
    ]
    database.fill(table_name, [*lookalikes, sentinel_of("gone"), sentinel_of("another-place")])
    for way in WAYS:
        keys = listed(database.keys(table_name, *way).keys)
        assert keys == ["another-marker", "another-place", "no-marker"], way


def test_a_users_index_of_the_same_name_has_no_effect(database: Database, table_name: str) -> None:
    database.create(table_name, **INDEXED | {"GlobalSecondaryIndexes": [index_of(INDEX, MARKER)]})
    database.fill(table_name, [sentinel_of("k")])
    assert listed(database.keys(table_name, "--method", "skip").keys) == ["k"]


def test_logical_keys_that_have_only_a_sentinel_are_not_listed(
    database: Database, table_name: str, tmp_path: Path
) -> None:
    database.create(table_name, **INDEXED)
    database.fill(table_name, map(sentinel_of, ["a_1", "a_2", "b_1", "c"]))
    database.fill(table_name, [*items_of("a_2", ["x"]), *items_of("c", ["x", "y"])])
    for way in ((), ("--method", "scan"), ("--output", str(tmp_path / "run"))):
        result = database.keys(table_name, "--logical", *way)
        assert result.status == 0
        if not way or way[0] != "--output":
            assert listed(result.keys) == ["a", "c"]
        else:
            assert "2 logical keys" in result.err


@pytest.mark.prove
def test_sentinels_add_only_their_bytes_to_the_cost_of_a_list(
    strict: Database, stand_in: StandIn, table_name: str
) -> None:
    """The first page of each collection reads the sentinel and one more item in one request."""
    spent: dict[str, tuple[int, float]] = {}
    for name in ("plain", "sentinels"):
        table = f"{table_name}-{name}"
        strict.create(table, **(INDEXED if name == "sentinels" else {}))
        for number in range(200):
            strict.fill(table, items_of(f"k{number}", list("abcde"), 7_000))
        if name == "sentinels":
            strict.fill(table, [sentinel_of(f"k{number}") for number in range(200)])
        before = stand_in.requests["Scan"], stand_in.units
        result = strict.keys(table, "--method", "skip", "--segments", "1")
        assert len(result.keys) == 200
        requests, units = stand_in.requests["Scan"] - before[0], stand_in.units - before[1]
        spent[name] = requests, units
    assert spent["plain"][0] == spent["sentinels"][0] == 201
    assert spent["plain"][1] == pytest.approx(200, rel=0.02)
    assert spent["sentinels"][1] == pytest.approx(spent["plain"][1], rel=0.02)


def test_a_collection_with_only_a_sentinel_costs_at_most_half_a_read_unit(
    strict: Database, stand_in: StandIn, table_name: str, tmp_path: Path
) -> None:
    strict.create(table_name, **INDEXED)
    strict.fill(table_name, [sentinel_of(f"k{number}") for number in range(500)])
    status, report = strict.report(table_name, tmp_path, "--method", "skip", "--segments", "1")
    assert (status, report["keys"], report["left_out"]) == (0, 0, 500)
    assert report["read_units"] <= 500 * 0.5
