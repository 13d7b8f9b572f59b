"""`keyhop.for_each_key`, as a Python program calls it."""

import subprocess
import sys
import time
from collections import Counter
from decimal import Decimal
from pathlib import Path
from threading import Event
from typing import Any

import boto3
import keyhop
import pytest
from keyhop.dynamodb.schema import KeyAttribute, KeySpace
from keyhop.errors import Stopped
from keyhop.key_index.sentinel import Sentinel

from testing.databases import Database
from testing.servers import LOCAL_CREDENTIALS, ROOT
from testing.simulation.service import failure
from testing.standin.server import StandIn
from tests.public.conftest import boto3s_table

SIZES = [1, 3, 2] * 20
SPACE = KeySpace((KeyAttribute("pk", "S"),), KeyAttribute("sk", "S"))
ITEM = {"sk": "#feature", "of": "${key}", "by": "${run}"}


@pytest.fixture(autouse=True)
def in_a_directory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "here").mkdir()
    monkeypatch.chdir(tmp_path / "here")


class Each:
    """The public function with one table, and the items of that table."""

    def __init__(self, database: Database, name: str, sizes: list[int]) -> None:
        self.database, self.name = database, name
        self.keys = database.collections(name, sizes)

    def __call__(self, **arguments: Any) -> keyhop.EachResult:
        return keyhop.for_each_key(self.name, endpoint_url=self.database.url, **arguments)

    def items(self) -> dict[tuple[str, str], Any]:
        pages = self.database.client.get_paginator("scan").paginate(TableName=self.name)
        return {
            (item["pk"]["S"], item["sk"]["S"]): item for page in pages for item in page["Items"]
        }

    def features(self) -> set[str]:
        return {key for key, sort in self.items() if sort == "#feature"}


@pytest.fixture
def each(dynamodb: Database, table_name: str) -> Each:
    return Each(dynamodb, table_name, SIZES)


def test_two_runs_in_one_second_have_two_directories(
    each: Each, monkeypatch: pytest.MonkeyPatch
) -> None:
    strftime = time.strftime
    monkeypatch.setattr(
        time, "strftime", lambda form, *at: strftime(form, *at) if at else "20261127-120000"
    )
    first, second = each(put=ITEM), each(put=ITEM)
    name = f"each-{each.name}-20261127-120000"
    assert [str(first.output), str(second.output)] == [name, f"{name}-2"]
    assert second.outcomes == {"there": len(each.keys)}


def test_put_into_each_collection_and_undone(each: Each) -> None:
    before = each.items()
    reports: list[keyhop.Progress] = []
    messages: list[str] = []
    approvals: list[tuple[str, int]] = []
    result = each(
        put=ITEM,
        progress=reports.append,
        approve=lambda action, estimate: approvals.append((action, estimate().keys)),
        say=messages.append,
    )
    assert (result.action, result.dry_run, result.finished) == ("put", False, True)
    assert (result.keys, result.outcomes) == (len(SIZES), {"put": len(SIZES)})
    assert result.write_units == pytest.approx(len(SIZES))
    assert result.dollars > 0
    assert approvals == [("put", len(SIZES))]
    assert result.output is not None
    assert messages == [f"The run is kept in {result.output}."]
    assert [*Path().iterdir()] == [result.output]
    assert {progress.activity for progress in reports} == {"listing the keys", "putting"}
    assert (reports[-1].keys, reports[-1].share, reports[-1].is_over) == (len(SIZES), 1.0, True)
    assert each.features() == each.keys
    assert {item["of"]["S"] for item in each.items().values() if "of" in item} == each.keys
    assert result.to_json()["list"]["keys"] == len(SIZES)
    assert not [key for key in each.keys if key in repr(result)]
    undone = each(undo=result.output)
    assert (undone.action, undone.outcomes) == ("undo", {"deleted": len(SIZES)})
    assert undone.output == result.output / "undo"
    assert each.items() == before


def test_one_item_of_each_is_updated_and_deleted(each: Each) -> None:
    sort, count = min(Counter(sort for _, sort in each.items()).items(), key=lambda pair: pair[1])
    missing = len(SIZES) - count
    update = {"update": "SET plan = :p", "values": {":p": "free"}, "item": {"sk": sort}}
    assert each(**update, output="one").outcomes == {"updated": count, "gone": missing}
    assert Counter("plan" in item for item in each.items().values())[True] == count
    result = each(delete=True, item={"sk": sort}, keys="one/keys", output="two")
    assert result.outcomes == {"deleted": count, "gone": missing}
    assert result.to_json()["list"] is None


def test_a_dry_run_returns_the_estimate_and_writes_nothing(each: Each) -> None:
    before = each.items()
    result = each(put=ITEM, dry_run=True, approve=lambda *_: pytest.fail("it asks"))
    assert (result.dry_run, result.finished, result.output) == (True, False, None)
    assert (result.keys, result.write_units) == (len(SIZES), len(SIZES))
    assert result.read_units > len(SIZES)
    estimate = result.to_json()
    assert estimate["keys"] == {"estimate": len(SIZES), "low": len(SIZES), "high": len(SIZES)}
    assert estimate["maximum_dollars"] >= result.dollars > 0
    started = "arn:aws:states:eu-west-1:111122223333:stateMachine:M"
    assert each(start_machine=started, dry_run=True).action == "start_machine"
    assert each.items() == before
    assert [*Path().iterdir()] == []


def test_an_exception_in_approve_ends_a_call_before_it_writes(each: Each) -> None:
    class Refusal(Exception): ...

    def refuse(action: str, estimate: Any) -> None:
        raise Refusal

    before = each.items()
    with pytest.raises(Refusal):
        each(put=ITEM, approve=refuse)
    assert each.items() == before
    assert [*Path().iterdir()] == []


PROGRAM = """
import sys, keyhop
table, url, output = sys.argv[1:]
item = {"sk": "#feature", "by": "${run}"}
keyhop.for_each_key(table, endpoint_url=url, put=item, output=output, max_write_rate=20)
"""


@pytest.mark.prove
def test_a_killed_run_is_resumed(dynamodb: Database, table_name: str) -> None:
    each = Each(dynamodb, table_name, [2] * 200)
    command = [sys.executable, "-c", PROGRAM, table_name, dynamodb.url, str(Path("run").resolve())]
    process = subprocess.Popen(command, cwd=ROOT)
    try:
        while len(each.features()) < 15:
            assert process.poll() is None, "it ended before it was killed"
            Event().wait(0.1)
    finally:
        process.kill()
        process.wait()
    assert len(each.features()) < 200
    with pytest.raises(keyhop.errors.RunConflict):
        each(put=ITEM, output="run")
    result = each(output="run", resume=True, approve=lambda *_: pytest.fail("it asks"))
    assert (result.action, result.outcomes) == ("put", {"put": 200})
    assert each.features() == each.keys
    assert each(output="run", resume=True).outcomes == {"put": 200}
    assert each(undo="run").outcomes == {"deleted": 200}
    assert each.features() == set()


def test_an_error_has_the_figures_so_far_and_the_run_can_be_resumed(each: Each) -> None:
    with pytest.raises(keyhop.errors.BudgetSpent) as raised:
        each(put=ITEM, output="run", max_write_units=20)
    result = raised.value.result
    assert (result.finished, result.output) == (False, Path("run"))
    assert 0 < result.outcomes["put"] == len(each.features()) <= 20
    assert each(output="run", resume=True).outcomes == {"put": len(SIZES)}


LARGE = "x" * 4_500


@pytest.fixture
def large(dynamodb: Database, table_name: str) -> Each:
    """A table of forty collections, each with one item that costs five write units."""
    each = Each(dynamodb, table_name, [])
    names = [f"k{number:03}" for number in range(40)]
    dynamodb.fill(
        table_name, ({"pk": {"S": n}, "sk": {"S": "#m"}, "v": {"S": LARGE}} for n in names)
    )
    return each


UPDATE = {"update": "SET seen = :yes", "values": {":yes": True}, "item": {"sk": "#m"}}


def test_a_limit_of_units_holds_for_items_that_are_larger_than_expected(large: Each) -> None:
    with pytest.raises(keyhop.errors.BudgetSpent) as raised:
        large(**UPDATE, output="run", max_write_units=25)
    updated = raised.value.result.outcomes["updated"]
    assert updated in (4, 5), "the fifth may be sent after the cost of the others is measured"
    assert raised.value.result.write_units == 5 * updated


@pytest.mark.parametrize("action", [UPDATE, {"delete": True, "item": {"sk": "#m"}}])
def test_an_existing_item_is_expected_to_be_as_large_as_the_mean(
    large: Each, action: dict[str, Any]
) -> None:
    estimate = large(**action, dry_run=True).to_json()
    assert estimate["write_units_per_key"] == 5
    assert estimate["minimum_dollars"] < estimate["dollars"]
    assert estimate["maximum_dollars"] is None


def test_an_undo_is_expected_to_cost_as_much_as_the_put(each: Each) -> None:
    put = each(put={**ITEM, "v": "x" * 2_500}, output="run")
    undone = each(undo="run", dry_run=True).to_json()
    assert undone["write_units_per_key"] == put.write_units / len(SIZES) == 3
    assert undone["read_units"] == len(SIZES)


def test_a_condition_on_keys_lowers_the_least_cost_to_that_of_the_list(each: Each) -> None:
    estimate = each(put=ITEM, where="begins_with(nothing)", guard="none", dry_run=True).to_json()
    assert (
        0 < estimate["minimum_dollars"] < each(put=ITEM, dry_run=True).to_json()["minimum_dollars"]
    )


@pytest.mark.parametrize(
    ("condition", "refused"), [("nan, 5", "nan"), ("1, Infinity", "Infinity"), ("1, b", "b")]
)
def test_the_bounds_of_keys_that_are_numbers_must_be_numbers(
    dynamodb: Database, table_name: str, condition: str, refused: str
) -> None:
    dynamodb.create(table_name, ("pk", "N"))
    with pytest.raises(keyhop.errors.InvalidInput, match=f"'{refused}' must be a number"):
        keyhop.for_each_key(
            table_name, endpoint_url=dynamodb.url, put=ITEM, where=f"between({condition})"
        )


def test_a_list_without_the_attributes_of_first_items_is_refused(
    each: Each,
) -> None:
    keyhop.list_keys(each.name, endpoint_url=each.database.url, output="list").run()
    for is_dry in (False, True):
        with pytest.raises(keyhop.errors.CannotStart, match="attributes v, w of first items"):
            each(put={**ITEM, "a": "${first.w}${first.v}"}, keys="list", dry_run=is_dry)
    assert each.features() == set()


@pytest.mark.prove
@pytest.mark.parametrize("operation", ["Scan", "PutItem"])
def test_a_run_is_stopped_while_it_lists_or_writes(
    strict: Database, stand_in: StandIn, table_name: str, operation: str
) -> None:
    each, stop = Each(strict, table_name, [40] * 250), Event()

    def throttle(called: str, request: Any) -> None:
        if called == operation and Path("run/keys/run.json").exists():
            stop.set()
            raise failure("ThrottlingException", "later")

    stand_in.fault = throttle
    result = each(put=ITEM, output="run", stop=stop)
    stand_in.fault = lambda called, request: None
    assert (result.finished, result.outcomes, each.features()) == (False, {}, set())
    if operation == "Scan":
        with pytest.raises(keyhop.errors.CannotStart, match="give the action"):
            each(output="run", resume=True)
    with pytest.raises(Stopped):
        each(put=ITEM, dry_run=True, stop=stop)
    assert each(put=ITEM, output="run", resume=True).outcomes == {"put": len(each.keys)}
    assert each.features() == each.keys


@pytest.mark.parametrize("method", ["skip", "scan"])
def test_sentinels_of_an_earlier_index_are_not_first_items(
    dynamodb: Database, table_name: str, method: str
) -> None:
    """Every second collection has a sentinel, and every third has no other item."""
    dynamodb.create(table_name, sort=("sk", "S"))
    names = [f"k{number:03}" for number in range(60)]
    items, with_items = [], set()
    for number, name in enumerate(names):
        if number % 2 == 0:
            sentinel = Sentinel.of(SPACE).item_of({"pk": {"S": name}})
            items.append({"pk": {"S": name}, **sentinel})
        if number % 3 != 0:
            with_items.add(name)
            items.append({"pk": {"S": name}, "sk": {"S": "a"}, "v": {"S": f"of {name}"}})
            items.append({"pk": {"S": name}, "sk": {"S": "b"}, "v": {"S": "second"}})
    dynamodb.fill(table_name, items)
    result = keyhop.for_each_key(
        table_name,
        put={"sk": "#feature", "v": "${first.v}"},
        method=method,
        endpoint_url=dynamodb.url,
    )
    assert result.outcomes == {"put": len(with_items)}
    pages = dynamodb.client.get_paginator("scan").paginate(TableName=table_name)
    put = {
        item["pk"]["S"]: item["v"]["S"]
        for page in pages
        for item in page["Items"]
        if item["sk"]["S"] == "#feature"
    }
    assert put == {name: f"of {name}" for name in with_items}


@pytest.mark.parametrize("guard", ["look", "transaction"])
def test_boto3s_table_sends_the_requests(each: Each, guard: str) -> None:
    table = boto3s_table(each.database, each.name)
    operations: set[str] = set()
    table.meta.client.meta.events.register(
        "before-call.dynamodb", lambda model, **_: operations.add(model.name)
    )
    first, *_ = sorted(each.keys)
    table.put_item(Item={"pk": first, "sk": "#feature"})
    item = {"sk": "#feature", "b": b"\x00", "n": Decimal("1.50"), "s": {"a", "b"}, "r": "${run}"}
    result = keyhop.for_each_key(table, put=item, guard=guard)
    assert result.outcomes == {"put": len(SIZES) - 1, "there": 1}
    put = each.items()[max(each.keys), "#feature"]
    assert (put["b"], put["n"], sorted(put["s"]["SS"])) == (
        {"B": b"\x00"},
        {"N": "1.5"},
        ["a", "b"],
    )
    assert result.output is not None
    assert keyhop.for_each_key(table, undo=result.output).outcomes == {"deleted": len(SIZES) - 1}
    assert {"Query", "DeleteItem", "BatchGetItem"} <= operations


def test_an_error_has_a_cause_of_the_users_class(
    dynamodb: Database, table_name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("AWS_ENDPOINT_URL_DYNAMODB", dynamodb.url)
    session = boto3.Session(**LOCAL_CREDENTIALS)
    with pytest.raises(keyhop.errors.TableNotFound) as raised:
        keyhop.for_each_key(table_name, put=ITEM, session=session)
    exceptions = session.client("dynamodb").exceptions
    assert isinstance(raised.value.__cause__, exceptions.ResourceNotFoundException)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({}, "Give one thing to do, put=, update="),
        ({"put": ITEM, "delete": True}, "there is put and delete"),
        ({"put": "item.json"}, "put must be a JSON object, not 'item.json'"),
        ({"put": {**ITEM, "n": {1, "a"}}}, "a set must have"),
        ({"put": {**ITEM, "n": object()}}, "object cannot be written as JSON"),
        ({"put": {**ITEM, "n": "\udcff"}}, "put cannot be written: .*surrogate"),
        ({"put": ITEM, "guard": "perhaps"}, "guard must be"),
        ({"put": ITEM, "overwrite": True, "guard": "look"}, "overwrite needs guard transaction"),
        ({"put": ITEM, "max_write_rate": 0}, "max_write_rate must be a number above 0"),
        ({"put": ITEM, "where": "like(x)"}, "must be begins_with"),
        ({"put": ITEM, "resume": True}, "resume needs output"),
        ({"put": ITEM, "resume": True, "dry_run": True, "output": "run"}, "exclude each other"),
        ({"put": ITEM, "output": ""}, "output is empty"),
        ({"put": ITEM, "keys": "nowhere"}, "nowhere holds no finished run"),
        ({"undo": "nowhere"}, "nowhere holds no finished run"),
        ({"output": "nowhere", "resume": True}, "nowhere holds no run"),
        ({"delete": True}, "sort key"),
    ],
)
def test_a_wrong_argument_is_one_sentence(
    each: Each, arguments: dict[str, Any], message: str
) -> None:
    with pytest.raises(keyhop.errors.CannotStart, match=message):
        each(**arguments)
    assert [*Path().iterdir()] == []
