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
from tests.integration.key_index.command import STALE, Index, fill_table


@pytest.mark.parametrize("type_", ["S", prove("N"), prove("B")])
def test_build_read_break_verify_remove(index: Index, tmp_path: Path, type_: str) -> None:
    fill_table(index, type_)
    before = index.in_order()
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
    status, report = index.report("verify", "--no-repair")
    assert (status, report["missing"], report["surplus"], report["repaired"]) == (3, 1, 1, 0)
    assert index.drift() == missing_and_surplus
    assert len(report["examples"]["missing"]) == 1
    status, repaired = index.report("verify")
    assert (status, repaired["drift"], repaired["repaired"]) == (3, 2, 2)
    assert index.drift() == (set(), set())
    assert index("verify").status == 0

    assert index("remove").status == 0
    assert index.in_order() == before
    assert not index.described().get("GlobalSecondaryIndexes")
    assert "there is none" in index("status").out.decode()


@pytest.mark.prove
def test_a_repeated_build_writes_nothing(index: Index, tmp_path: Path) -> None:
    index.collections([1, 5, 20] * 30)
    index.built()
    status, report = index.report("build")
    assert (status, report["build"]["put"], report["build"]["write_units"]) == (0, 0, 0)


def test_a_users_items_are_never_changed(index: Index) -> None:
    index.collections([3] * 20)
    sentinel = index.sentinel
    user_item = {"pk": {"S": "mine"}, "sk": LEAST_SORT_KEY["S"], "note": {"S": "of a user"}}
    marked = {"pk": {"S": "marked"}, "sk": {"S": "x"}, MARKER: {"N": "7"}}
    index.built()
    index.put(user_item, marked)
    before = [item for item in index.items() if not sentinel.is_one(item)]
    verification = index("verify")
    assert verification.status == 3
    assert b"an item of yours" in verification.out
    _, keys = index.keys(*STALE)
    assert len(keys) == 21, "the collection of the marked item has a sentinel by now"
    assert index("remove").status == 0
    assert index.in_order() == sorted(map(repr, before))


def test_an_occupied_place_is_refused(index: Index) -> None:
    index.create()
    index.put({"pk": {"S": "a"}, "sk": LEAST_SORT_KEY["S"]})
    index.refuses("--sentinel", "build")
    assert len(index.items()) == 1
    assert index("build", "--sentinel", "!another").status == 0
    assert {item["sk"]["S"] for item in index.items()} == {"!keyhop", "!another"}
    assert len(index.keys(*STALE)[1]) == 1


@pytest.mark.parametrize("more", [("--stack", "None such"), ("--stack", "")])
def test_an_unknown_stack_is_refused(
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
def test_a_removal_deletes_the_sentinels_of_a_deleted_index(index: Index) -> None:
    index.collections([1, 3] * 20)
    before = index.in_order()
    index.put({"pk": {"S": "early"}, "sk": {"S": " before"}})
    index.built()
    index.update(GlobalSecondaryIndexUpdates=[{"Delete": {"IndexName": INDEX}}])
    assert index("remove").status == 0
    assert len(index.items()) == len(before) + 1


@pytest.mark.prove
def test_a_removal_continues_where_it_was_interrupted(index: Index) -> None:
    index.collections([2] * 20)
    index.built()
    table = index.looked_up()
    registry = local_registry(table)
    sentinels = filter(Sentinel.of(table.space).is_one, index.items())
    index.delete(*({name: item[name] for name in ("pk", "sk")} for item in sentinels))
    registry.take("a removal", "remove", lambda *_: False)
    registry.change("a removal", emptied=True, lease=None)
    index.update(GlobalSecondaryIndexUpdates=[{"Delete": {"IndexName": INDEX}}])
    assert index("remove").status == 0
    assert registry.entry().sentinel is None
    index.built("--sentinel", "#x")
    assert len(index.keys(*STALE)[1]) == 20


def test_items_with_the_marker_attribute_are_refused(index: Index) -> None:
    """DynamoDB would refuse such items once there is an index, as the type is not a number."""
    index.create()
    index.put({"pk": {"S": "a"}, "sk": {"S": "b"}, MARKER: {"S": "mine"}})
    index.refuses("have an attribute 'keyhop'", "build")


@pytest.mark.prove
def test_a_refused_build_names_the_occupied_collections(
    index: Index, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The screen shows the first ones, the report all. The check of a sample is turned off."""
    index.collections([3] * 150)
    user_items = [{"pk": {"S": f"k{n}"}, "sk": LEAST_SORT_KEY["S"]} for n in range(100, 112)]
    index.fill(user_items)
    monkeypatch.setattr("keyhop.key_index.life_cycle.check_items", lambda *_: None)
    refused = index("build", "--format", "typed-json")
    brief = index("build")
    assert (refused.status, brief.status) == (2, 2)
    assert "12 collections have an item of yours" in refused.err
    assert "verification.json" not in refused.err
    report = json.loads(refused.out)
    assert {key["pk"]["S"] for key in report["examples"]["occupied"]} == {
        item["pk"]["S"] for item in user_items
    }
    assert brief.err.count("'pk'") == 10
    assert "and 2 more; --format json names all" in brief.err


@pytest.mark.parametrize(
    ("type_", "place"), [("N", "nan"), ("N", "1e200"), ("B", "$$$$"), ("S", "")]
)
def test_a_place_that_is_not_a_sort_key_is_refused(index: Index, type_: str, place: str) -> None:
    index.create(("pk", "S"), ("sk", type_))
    index.refuses("sort key", "build", "--sentinel", place)


def test_a_key_named_like_the_marker_is_refused(index: Index) -> None:
    index.create(("pk", "S"), (MARKER, "N"))
    index.refuses("cannot have a key index", "build")


def test_a_state_folder_that_cannot_be_written_is_refused_before_the_walk(
    index: Index, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    index.collections([2] * 5)
    index.built()
    (tmp_path / "file").touch()
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "file"))
    index.refuses("cannot be made", "verify")
    assert len(index.keys()[1]) == 5, "the list uses hops instead"


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
def test_a_missing_index_is_reported_with_advice(index: Index, action: str, advice: str) -> None:
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
    status, estimate = index.report("build", "--dry-run")
    assert status == 0
    _, built = index.report("build")
    assert estimate["keys"]["exact"]
    assert estimate["write_units"] == 2 * 200
    written = sum(built[part]["put"] for part in ("build", "verification"))
    assert written == 200
    read = sum(built[part]["read_units"] for part in ("build", "verification"))
    assert read / 1.6 <= estimate["read_units"] <= read * 1.6


def test_an_index_of_a_provisioned_table_gets_little_throughput(
    index: Index, monkeypatch: pytest.MonkeyPatch
) -> None:
    updates = []

    def recorded_request(*args: Any, **changes: Any) -> dict[str, Any]:
        updates.extend([changes] if "update_table" in args else [])
        return request(*args, **changes)

    request = tables.request
    for module in (tables, provisioned):
        monkeypatch.setattr(module, "request", recorded_request)
    throughput = {"ReadCapacityUnits": 5000, "WriteCapacityUnits": 10000}
    index.create(BillingMode="PROVISIONED", ProvisionedThroughput=throughput)
    index.put({"pk": {"S": "a"}, "sk": {"S": "b"}})
    planned = index("build", "--max-write-rate", "800", "--dry-run")
    output = " ".join((planned.out.decode() + planned.err).split())
    assert "400 WCU and 5 RCU while it is built" in output
    index.built("--max-write-rate", "800")
    (created,), (lowered,) = (update["GlobalSecondaryIndexUpdates"] for update in updates)
    low = {"ReadCapacityUnits": 5, "WriteCapacityUnits": 5}
    assert created["Create"]["ProvisionedThroughput"] == {**low, "WriteCapacityUnits": 400}
    assert lowered["Update"]["ProvisionedThroughput"] == low
    (description,) = index.described()["GlobalSecondaryIndexes"]
    assert low.items() <= description["ProvisionedThroughput"].items()


def test_every_action_prints_its_result_in_the_requested_format(index: Index) -> None:
    """The formats are text, CSV, and JSON with typed or plain keys."""
    index.create()
    index.fill([{"pk": {"S": "a"}, "sk": {"S": "x"}}])
    built = index("build", "--format", "csv")
    rows = list(csv.DictReader(io.StringIO(built.out.decode())))
    assert [(row["kind"], row["collections"]) for row in rows] == [("build", "1"), ("verify", "1")]
    assert index("verify").out.startswith(b"No drift: 1 ")
    index.delete_sentinels("a")
    verify = ("verify", "--no-repair", "--quiet")
    for format_, key in (("typed-json", {"pk": {"S": "a"}}), ("json", {"pk": "a"})):
        report = json.loads(index(*verify, "--format", format_).out)
        assert (report["missing"], report["examples"]["missing"]) == (1, [key])
    assert index(*verify).out == b""
    assert json.loads(index("status", "-f", "json").out)["index"] == "ACTIVE"
    assert json.loads(index("remove", "-f", "json").out)["deleted"] == 0
