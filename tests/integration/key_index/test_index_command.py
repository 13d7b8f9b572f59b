"""`keyhop index` on DynamoDB Local: build, read, verify, break it, repair it, remove it."""

import csv
import io
import json
from pathlib import Path
from typing import Any

import pytest
from keyhop.dynamodb import tables
from keyhop.key_index import provisioned
from keyhop.key_index.registry import local_registry
from keyhop.key_index.sentinel import INDEX, LEAST_SORT_KEY, MARKER, Sentinel

from testing.databases import by_day, partition_value
from testing.keepers import FakeLambda
from testing.marks import prove
from tests.integration.key_index.command import (
    STALE,
    Index,
    filled,
)


@pytest.mark.parametrize("type_", ["S", prove("N"), prove("B")])
def test_build_read_break_verify_remove(index: Index, tmp_path: Path, type_: str) -> None:
    filled(index, type_)
    before = index.items()
    sentinel = index.sentinel
    status, built = index.report("build")
    assert (status, built["build"]["put"], built["verification"]["drift"]) == (0, 60, 0)
    assert built["verification"]["collections"] == 60
    assert index.drift() == (set(), set())

    _, by_hops = index.keys("--method", "skip")
    read, by_index = index.keys(*STALE)
    assert by_hops == by_index
    assert len(read.keys) == 60
    by_auto, keys = index.keys()
    assert keys == by_index
    assert "skip: " in by_auto.err
    assert "not its key index: no keeper followed" in by_auto.err

    key = {"pk": {type_: partition_value(type_, 3)}}
    index.delete(sentinel.key_of(key))
    alone = {"pk": {type_: partition_value(type_, 1_000)}}
    index.put(sentinel.item_of(alone))
    missing_and_surplus = index.drift()
    assert [len(names) for names in missing_and_surplus] == [1, 1]
    status, looked = index.report("verify", "--no-repair")
    assert (status, looked["missing"], looked["surplus"], looked["repaired"]) == (3, 1, 1, 0)
    assert index.drift() == missing_and_surplus
    assert len(looked["examples"]["missing"]) == 1
    status, repaired = index.report("verify")
    assert (status, repaired["drift"], repaired["repaired"]) == (3, 2, 2)
    assert index.drift() == (set(), set())
    assert index("verify").status == 0

    assert index("remove").status == 0
    assert index.in_order() == sorted(map(repr, before))
    told = index.described()
    assert not told.get("GlobalSecondaryIndexes")
    assert "there is none" in index("status").out.decode()


@pytest.mark.prove
def test_a_build_that_is_repeated_writes_nothing(index: Index, tmp_path: Path) -> None:
    index.collections([1, 5, 20] * 30)
    index.built()
    status, again = index.report("build")
    assert (status, again["build"]["put"], again["build"]["write_units"]) == (0, 0, 0)


def test_a_users_items_are_never_changed(index: Index) -> None:
    index.collections([3] * 20)
    sentinel = index.sentinel
    mine = {
        "pk": {"S": "mine"},
        "sk": LEAST_SORT_KEY["S"],
        "note": {"S": "of a user"},
    }
    marked = {"pk": {"S": "marked"}, "sk": {"S": "x"}, MARKER: {"N": "7"}}
    index.built()
    index.put(mine, marked)
    before = [item for item in index.items() if not sentinel.is_one(item)]
    verification = index("verify")
    assert verification.status == 3
    assert b"an item of yours" in verification.out
    _, keys = index.keys(*STALE)
    assert len(keys) == 21, "the marked item is no sentinel, and its collection has one by now"
    assert index("remove").status == 0
    after = index.items()
    assert sorted(map(repr, after)) == sorted(map(repr, before))


def test_a_place_that_is_taken_is_refused(index: Index) -> None:
    index.create()
    index.put({"pk": {"S": "a"}, "sk": LEAST_SORT_KEY["S"]})
    index.refuses("--sentinel", "build")
    assert len(index.items()) == 1
    other = index("build", "--sentinel", "!another")
    assert other.status == 0
    assert {item["sk"]["S"] for item in index.items()} == {"!keyhop", "!another"}
    assert len(index.keys(*STALE)[1]) == 1


@pytest.mark.parametrize("more", [("--stack", "None such"), ("--stack", "")])
def test_a_stack_that_is_none_is_told(
    index: Index, lambdas: FakeLambda, more: tuple[str, ...]
) -> None:
    index.collections([2] * 2)
    index.refuses("stack", "status", *more)


@pytest.mark.parametrize("action", ["build", prove("verify"), prove("remove")])
def test_sentinels_are_not_put_beside_those_of_another_place(
    index: Index, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, action: str
) -> None:
    index.collections([2] * 5)
    index.built("--sentinel", "!other")
    before = index.in_order()
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "of somebody else"))
    index.refuses("built with another sort key", action)
    assert index.in_order() == before
    assert index("remove", "--sentinel", "!other").status == 0
    assert len(index.items()) == 10


@pytest.mark.prove
def test_an_index_that_somebody_has_deleted_leaves_no_sentinel_behind(index: Index) -> None:
    index.collections([1, 3] * 20)
    before = index.in_order()
    index.put({"pk": {"S": "early"}, "sk": {"S": " before"}})
    index.built()
    index.update(GlobalSecondaryIndexUpdates=[{"Delete": {"IndexName": INDEX}}])
    assert index("remove").status == 0
    assert len(index.items()) == len(before) + 1


def test_a_removal_goes_on_where_it_was_interrupted(index: Index) -> None:
    index.collections([2] * 20)
    index.built()
    table = index.looked_up()
    registry = local_registry(table)
    sentinel = Sentinel.of(table.space)
    for item in index.items():
        if sentinel.is_one(item):
            key = {name: item[name] for name in ("pk", "sk")}
            index.delete(key)
    registry.take("a removal", "remove", lambda *_: False)
    registry.change("a removal", emptied=True, lease=None)
    index.update(GlobalSecondaryIndexUpdates=[{"Delete": {"IndexName": INDEX}}])
    assert index("remove").status == 0
    assert registry.entry().sentinel is None
    index.built("--sentinel", "#x")
    assert len(index.keys(*STALE)[1]) == 20


def test_items_with_the_marker_attribute_are_refused(index: Index) -> None:
    """Of another type than a number, DynamoDB would refuse them once there is an index."""
    index.create()
    item = {"pk": {"S": "a"}, "sk": {"S": "b"}, MARKER: {"S": "mine"}}
    index.put(item)
    index.refuses("have an attribute 'keyhop'", "build")


@pytest.mark.prove
def test_a_refused_build_names_what_stands_in_its_way(
    index: Index, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """No more than the first on the screen, all in the report; the sample did not see them."""
    index.collections([3] * 150)
    mine = [{"pk": {"S": f"k{n}"}, "sk": LEAST_SORT_KEY["S"]} for n in range(100, 112)]
    index.fill(mine)
    monkeypatch.setattr("keyhop.key_index.life_cycle.check_items", lambda *_: None)
    refused = index("build", "--format", "typed-json")
    brief = index("build")
    assert (refused.status, brief.status) == (2, 2)
    assert "12 collections have an item of yours" in refused.err
    assert "verification.json" not in refused.err
    report = json.loads(refused.out)
    assert {key["pk"]["S"] for key in report["examples"]["occupied"]} == {
        item["pk"]["S"] for item in mine
    }
    assert brief.err.count("'pk'") == 10
    assert "and 2 more; --format json names all" in brief.err


@pytest.mark.parametrize(
    ("type_", "place"), [("N", "nan"), ("N", "1e200"), ("B", "$$$$"), ("S", "")]
)
def test_a_place_that_is_no_sort_key_is_refused(index: Index, type_: str, place: str) -> None:
    index.create(("pk", "S"), ("sk", type_))
    index.refuses("sort key", "build", "--sentinel", place)


def test_a_key_called_like_the_marker_is_refused(index: Index) -> None:
    index.create(("pk", "S"), (MARKER, "N"))
    index.refuses("cannot have a key index", "build")


def test_a_state_folder_that_cannot_be_written_is_told_before_the_walk(
    index: Index, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    index.collections([2] * 5)
    index.built()
    (tmp_path / "file").touch()
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "file"))
    index.refuses("cannot be made", "verify")
    assert len(index.keys()[1]) == 5, "then it hops"


def test_rows_at_another_place_are_not_an_empty_list(
    index: Index, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    index.collections([2] * 5)
    index.built("--sentinel", "!other")
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "of somebody else"))
    read = index.keys(*STALE)[0]
    assert read.status == 2
    assert "none with the sort key of sentinels" in read.err


def test_a_table_without_a_sort_key_is_refused(index: Index) -> None:
    index.create(("pk", "S"), None)
    index.refuses("each item is a separate collection", "build")


@pytest.mark.parametrize(
    ("action", "advice"), [("verify", "build one first"), ("remove", "--sweep")]
)
def test_without_an_index_there_is_nothing_to_do(index: Index, action: str, advice: str) -> None:
    index.collections([2] * 5)
    refused = index(action)
    assert refused.status == 2
    assert advice in refused.err
    read = index.keys(*STALE)[0]
    assert (read.status, read.out) == (2, b"")


def test_another_index_of_that_name_is_refused(index: Index) -> None:
    index.create(**by_day(INDEX))
    index.refuses("another shape", "build")


@pytest.mark.prove
def test_a_plan_says_what_a_build_costs_and_writes_nothing(index: Index, tmp_path: Path) -> None:
    index.collections([3] * 200, filling=200)
    status, told = index.report("build", "--dry-run")
    assert status == 0
    _, built = index.report("build")
    assert told["keys"]["exact"]
    assert told["write_units"] == 2 * 200
    written = sum(built[part]["put"] for part in ("build", "verification"))
    assert written == 200
    read = sum(built[part]["read_units"] for part in ("build", "verification"))
    assert read / 1.6 <= told["read_units"] <= read * 1.6


def test_an_index_of_a_provisioned_table_gets_little_throughput_and_not_the_tables(
    index: Index, monkeypatch: pytest.MonkeyPatch
) -> None:
    updates = []

    def remember(*about: Any, **changes: Any) -> dict[str, Any]:
        updates.extend([changes] if "update_table" in about else [])
        return request(*about, **changes)

    request = tables.request
    for module in (tables, provisioned):
        monkeypatch.setattr(module, "request", remember)
    throughput = {"ReadCapacityUnits": 5000, "WriteCapacityUnits": 10000}
    index.create(BillingMode="PROVISIONED", ProvisionedThroughput=throughput)
    index.put({"pk": {"S": "a"}, "sk": {"S": "b"}})
    planned = index("build", "--max-write-rate", "800", "--dry-run")
    said = " ".join((planned.out.decode() + planned.err).split())
    assert "400 WCU and 5 RCU while it is built" in said
    index.built("--max-write-rate", "800")
    (created,), (lowered,) = (one["GlobalSecondaryIndexUpdates"] for one in updates)
    kept = {"ReadCapacityUnits": 5, "WriteCapacityUnits": 5}
    assert created["Create"]["ProvisionedThroughput"] == {**kept, "WriteCapacityUnits": 400}
    assert lowered["Update"]["ProvisionedThroughput"] == kept
    (found,) = index.described()["GlobalSecondaryIndexes"]
    assert kept.items() <= found["ProvisionedThroughput"].items()


def test_every_action_puts_its_result_out_as_asked(index: Index) -> None:
    """Text or JSON or CSV on standard output; keys in DynamoDB's form, or plain."""
    index.create()
    index.fill([{"pk": {"S": "a"}, "sk": {"S": "x"}}])
    built = index("build", "--format", "csv")
    rows = list(csv.DictReader(io.StringIO(built.out.decode())))
    assert [(row["kind"], row["collections"]) for row in rows] == [("build", "1"), ("verify", "1")]
    assert index("verify").out.startswith(b"No drift: 1 ")
    index.delete_sentinels("a")
    look = ("verify", "--no-repair", "--quiet", "--format")
    for format_, key in (("typed-json", {"pk": {"S": "a"}}), ("json", {"pk": "a"})):
        told = json.loads(index(*look, format_).out)
        assert (told["missing"], told["examples"]["missing"]) == (1, [key])
    assert index(*look[:-1]).out == b""
    assert json.loads(index("status", "-f", "json").out)["index"] == "ACTIVE"
    assert json.loads(index("remove", "-f", "json").out)["deleted"] == 0
