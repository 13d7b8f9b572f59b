"""Writes to a table with each guard: concurrent users, lost answers, throttles and repetitions."""

import math
from threading import Event
from typing import Any

import pytest
from botocore.exceptions import ReadTimeoutError
from keyhop.dynamodb.client import Connection, connect
from keyhop.dynamodb.endpoint import Endpoint
from keyhop.dynamodb.rate_limit import Budget
from keyhop.dynamodb.tables import look_up
from keyhop.dynamodb.usage import Usage
from keyhop.dynamodb.values import to_json
from keyhop.each.effect import Batch, Effect, Work
from keyhop.each.template import template_json
from keyhop.each.write import writing
from keyhop.errors import BudgetSpent, CannotStart
from keyhop.key_index.sentinel import Sentinel

from testing.databases import Database
from testing.key_index_tables import scanned
from testing.partitions import ALL_REASONS
from tests.integration.each.meddling import Meddling, Params, error, once

STARTED = "2026-11-22T15:04:40+00:00"
ITEM = {"sk": "#feature", "run": "${run}", "of": "${key}"}
CONSTANT = {"sk": "#feature", "on": True}


class Bench:
    """A table, and effects on it."""

    def __init__(self, database: Database, table: str) -> None:
        self.database, self.table = database, table
        connection = connect(Endpoint(region="us-east-1", url=database.url), 8)
        self.client = Meddling(connection.client)
        self.connection = Connection(self.client, connection.endpoint)  # type: ignore[arg-type]
        self.usage = Usage()
        self.sentinel: Any = None
        self.stop = Event()
        self.notes: dict[str, str] = {}

    def effect(self, kind: str = "put", budget: Budget | None = None, **values: Any) -> Effect:
        options = {"kind": kind, "item": template_json(values.pop("item", ITEM))}
        if kind == "put":
            options |= {"guard": "look", "overwrite": False}
        if "values" in values:
            values["values"] = template_json(values["values"])
        source = look_up(self.connection, self.table).source()
        work = Work(
            self.connection, source, "run-7", STARTED, self.usage, self.stop, 60, self.sentinel
        )
        return writing({**options, "names": {}, "values": {}, **values}, work, budget)

    def apply(self, effect: Effect, *keys: Any, tried: bool = False, batch: str = "1") -> list[str]:
        """Apply an effect to these keys, and return the outcomes."""
        return [row["outcome"]["S"] for row in self.rows(effect, *keys, tried=tried, batch=batch)]

    def rows(self, effect: Effect, *keys: Any, tried: bool = False, batch: str = "1") -> list[Any]:
        def note(text: str) -> str | None:
            return None if self.notes.setdefault(batch, text) is text else self.notes[batch]

        rows = [key if isinstance(key, dict) else {"pk": {"S": key}} for key in keys]
        return effect.apply(Batch(batch, rows, was_tried=lambda: tried, noted=note))

    def user(self, pk: str, sk: str, **more: Any) -> None:
        """Write an item as a user."""
        item = {"pk": {"S": pk}, "sk": {"S": sk}, **more}
        self.database.client.put_item(TableName=self.table, Item=item)

    def remove(self, pk: str, sk: str) -> None:
        key = {"pk": {"S": pk}, "sk": {"S": sk}}
        self.database.client.delete_item(TableName=self.table, Key=key)

    def items(self) -> dict[tuple[str, str], Any]:
        """Return all items by their keys."""
        items = scanned(self.database, self.table)
        return {(item["pk"]["S"], item["sk"]["S"]): item for item in items}


@pytest.fixture
def bench(dynamodb: Database, table_name: str) -> Bench:
    dynamodb.collections(table_name, [1, 2, 3])
    return Bench(dynamodb, table_name)


GUARDS = ["none", "look", "transaction"]


def ours(key: str) -> dict[str, Any]:
    return {"pk": {"S": key}, "sk": {"S": "#feature"}, "run": {"S": "run-7"}, "of": {"S": key}}


@pytest.mark.parametrize("guard", GUARDS)
def test_an_item_is_put_into_each_collection_once(bench: Bench, guard: str) -> None:
    effect = bench.effect(guard=guard)
    assert bench.apply(effect, "k0", "k1", "k2") == ["put"] * 3
    assert all(bench.items()[key, "#feature"] == ours(key) for key in ("k0", "k1", "k2"))
    assert bench.apply(effect, "k0", "k1", tried=True) == ["put"] * 2, "a repeated batch"
    assert bench.apply(effect, "k0") == ["there"], "an equal item of a user"
    bench.user("k1", "#feature", run={"S": "mine"})
    assert bench.apply(effect, "k1", tried=True) == ["there"]
    assert bench.items()["k1", "#feature"]["run"] == {"S": "mine"}


@pytest.mark.parametrize(
    ("guard", "outcome"), [("none", "put"), ("look", "guarded"), ("transaction", "gone")]
)
@pytest.mark.parametrize("has_sentinel", [False, True])
def test_guards_do_not_create_collections_that_are_gone(
    bench: Bench, guard: str, outcome: str, has_sentinel: bool
) -> None:
    if has_sentinel:
        space = look_up(bench.connection, bench.table).space
        bench.sentinel = Sentinel.of(space).item_of({})
        bench.database.client.put_item(
            TableName=bench.table, Item={"pk": {"S": "gone"}, **bench.sentinel}
        )
    before = bench.items()
    assert bench.apply(bench.effect(guard=guard), "gone", "k0") == [outcome, "put"]
    added = {key for key, _ in bench.items().keys() - before.keys()}
    assert added == ({"gone", "k0"} if guard == "none" else {"k0"})


def test_a_collection_that_returns_before_its_item_is_deleted_again_keeps_the_item(
    bench: Bench,
) -> None:
    bench.client.before = once("delete_item", lambda: bench.user("new", "1"))
    assert bench.apply(bench.effect(), "new") == ["put"]
    assert ("new", "#feature") in bench.items()
    assert bench.client.calls["put_item"] == 2


def test_an_item_that_a_user_has_changed_is_not_deleted_again(bench: Bench) -> None:
    change = once("delete_item", lambda: bench.user("gone", "#feature", run={"S": "mine"}))
    bench.client.before = change
    assert bench.apply(bench.effect(), "gone") == ["put"]
    assert bench.items()["gone", "#feature"]["run"] == {"S": "mine"}


@pytest.mark.parametrize("is_another", [False, True])
def test_a_deleted_witness_is_replaced_by_another(bench: Bench, is_another: bool) -> None:
    bench.client.before = once(
        "transact_write_items", lambda: bench.remove("k1", "000001" if is_another else "x")
    )
    bench.user("k1", "000001")
    effect = bench.effect(guard="transaction")
    assert bench.apply(effect, "k1") == ["put"]
    assert bench.client.calls["transact_write_items"] == 1 + is_another
    bench.client.before = once("transact_write_items", lambda: bench.remove("k0", "000000"))
    assert bench.apply(effect, "k0") == ["gone"], "no witness remains"


def test_overwriting_replaces_existing_items(bench: Bench) -> None:
    bench.user("k0", "#feature", run={"S": "old"})
    bench.user("alone", "#feature", run={"S": "old"})
    effect = bench.effect(guard="transaction", overwrite=True)
    assert bench.apply(effect, "k0", "alone", "gone") == ["put", "put", "gone"]
    assert bench.items()["k0", "#feature"] == ours("k0")
    assert bench.items()["alone", "#feature"] == ours("alone")


@pytest.mark.parametrize("guard", GUARDS)
@pytest.mark.parametrize("item", [ITEM, CONSTANT], ids=["telling", "constant"])
def test_a_lost_answer_counts_once(bench: Bench, guard: str, item: Any) -> None:
    def lose() -> None:
        raise ReadTimeoutError(endpoint_url="x")

    on = "transact_write_items" if guard == "transaction" else "put_item"
    bench.client.after = once(on, lose)
    (row,) = bench.rows(bench.effect(guard=guard, item=item), "k0")
    assert row["outcome"]["S"] == "put"
    assert ("error" in row) == (guard != "transaction" and item == CONSTANT)
    assert bench.client.calls[on] == 2


@pytest.mark.parametrize("guard", GUARDS)
def test_throttles_of_all_reasons_are_retried_and_counted(bench: Bench, guard: str) -> None:
    on = "transact_write_items" if guard == "transaction" else "put_item"
    faults = [
        error("ThrottlingException", throttlingReasons=[{"reason": reason, "resource": "arn"}])
        for reason in ALL_REASONS
    ]
    faults += [error("TransactionConflictException"), error("InternalServerError", 500)]
    if guard == "transaction":
        for code in ("ThrottlingError", "ProvisionedThroughputExceeded", "TransactionConflict"):
            reasons = [{"Code": "None"}, {"Code": code}]
            faults.append(error("TransactionCanceledException", CancellationReasons=reasons))

    def before(operation: str, parameters: Params) -> None:
        if operation == on and faults:
            raise faults.pop()

    bench.client.before = before
    effect = bench.effect(guard=guard)
    effect._writer._requester.longest_wait = 0.001  # type: ignore[attr-defined]
    assert bench.apply(effect, "k0", "k1", "k2") == ["put"] * 3
    assert not faults
    assert set(ALL_REASONS) <= bench.usage.throttles.keys()
    assert {key for key, sk in bench.items() if sk == "#feature"} == {"k0", "k1", "k2"}


def test_the_units_of_each_guard(bench: Bench) -> None:
    """The database charges 1 WRU for a KB, and 1 RRU for a look."""
    costs = {}
    for guard in GUARDS:
        bench.usage.take()
        bench.apply(bench.effect(guard=guard, item={**ITEM, "sk": guard}), "k0", "k1", "k2")
        used = bench.usage.take()
        costs[guard] = (used.write_units / 3, used.read_units / 3)
    assert costs == {"none": (1, 0), "look": (1, 1), "transaction": (4, 1)}
    large = {"sk": "large", "data": "x" * 3000}
    bench.apply(bench.effect(guard="none", item=large), "k0")
    assert bench.usage.take().write_units == 3
    bench.apply(bench.effect(guard="none", item=large), "k0")
    assert bench.usage.take().write_units == 3, "as much as the existing item costs"


def test_an_invalid_row_does_not_affect_other_rows(bench: Bench) -> None:
    bench.user("k1", "#feature", run={"S": "there"})
    rows = bench.rows(
        bench.effect("update", item={"sk": "#feature"}, expression="SET a = b.c"), "k0", "k1"
    )
    assert [row["outcome"]["S"] for row in rows] == ["gone", "failed"]
    assert "DynamoDB did not accept" in rows[1]["error"]["S"]
    rows = bench.rows(bench.effect(item={"sk": "a", "x": "${first.x}"}), "k0")
    assert rows[0]["outcome"]["S"] == "failed"
    assert "no 'x'" in rows[0]["error"]["S"]


def test_update_and_delete_apply_to_one_item_of_each_collection(bench: Bench) -> None:
    bench.user("k0", "PROFILE")
    bench.user("k1", "PROFILE")
    update = bench.effect(
        "update",
        item={"sk": "PROFILE"},
        expression="SET plan = :free, name = :key REMOVE old",
        values={":free": "free", ":key": "${key}"},
    )
    assert bench.apply(update, "k0", "k1", "k2", "gone") == ["updated"] * 2 + ["gone"] * 2
    assert bench.apply(update, "k0", tried=True) == ["updated"]
    assert bench.items()["k0", "PROFILE"]["plan"] == {"S": "free"}
    assert bench.items()["k1", "PROFILE"]["name"] == {"S": "k1"}
    assert {sk for _, sk in bench.items()} == {"PROFILE", "000000", "000001", "000002"}

    delete = bench.effect("delete", item={"sk": "PROFILE"})
    writes = bench.client.calls["delete_item"]
    assert bench.apply(delete, "k0", "k1", "k2") == ["deleted", "deleted", "gone"]
    assert bench.client.calls["delete_item"] - writes == 2, "an absent item costs no write"
    assert bench.apply(delete, "k0", "k1", "k2") == ["deleted", "deleted", "gone"], "a repetition"
    assert bench.apply(delete, "k0", "k1", "k2", batch="2") == ["gone"] * 3


def test_a_killed_and_repeated_deletion_has_the_same_outcomes(bench: Bench) -> None:
    for key in ("k0", "k1", "k2"):
        bench.user(key, "PROFILE")

    def kill(operation: str, parameters: Params) -> None:
        if operation == "delete_item" and bench.client.calls["delete_item"] == 2:
            raise KeyboardInterrupt

    bench.client.before = kill
    delete = bench.effect("delete", item={"sk": "PROFILE"})
    with pytest.raises(KeyboardInterrupt):
        bench.apply(delete, "k0", "k1", "gone", "k2")
    bench.client.before = lambda operation, parameters: None
    assert bench.apply(delete, "k0", "k1", "gone", "k2") == ["deleted"] * 2 + ["gone", "deleted"]


def test_an_undo_deletes_only_unchanged_items_of_its_run(bench: Bench) -> None:
    put = bench.rows(bench.effect(), "k0", "k1", "k2")
    bench.user("k1", "#feature", run={"S": "run-7"}, of={"S": "k1"}, more={"S": "a user's"})
    bench.remove("k2", "#feature")
    before = bench.items().keys()
    undo = bench.effect("undo", id="run-7", started=STARTED)
    assert undo.wants(put[0])
    assert not undo.wants({"pk": {"S": "k"}, "outcome": {"S": "there"}})
    rows = bench.rows(undo, *put)
    assert [row["outcome"]["S"] for row in rows] == ["deleted", "changed", "gone"]
    assert before - bench.items().keys() == {("k0", "#feature")}
    assert bench.apply(undo, *put) == ["deleted", "changed", "gone"], "a repetition"


def test_an_undo_keeps_items_that_may_be_a_users(bench: Bench) -> None:
    bench.user("k0", "#feature", on={"BOOL": True})
    effect = bench.effect(item=CONSTANT)
    rows = bench.rows(effect, "k0", tried=True)
    assert rows[0]["outcome"]["S"] == "put"
    assert bench.apply(bench.effect("undo", item=CONSTANT), *rows) == ["changed"]
    assert ("k0", "#feature") in bench.items()


def test_an_undo_keeps_an_item_that_a_user_changes_at_the_last_moment(bench: Bench) -> None:
    put = bench.rows(bench.effect(), "k0", "k1")
    change = once("delete_item", lambda: bench.user("k0", "#feature", run={"S": "mine"}))
    bench.client.before = change
    assert bench.apply(bench.effect("undo"), *put) == ["changed", "deleted"]
    assert bench.items()["k0", "#feature"]["run"] == {"S": "mine"}


def test_a_budget_is_kept_and_a_batch_ends_before_it(bench: Bench) -> None:
    effect = bench.effect(guard="none", budget=Budget(None, 2.0))
    assert bench.apply(effect, "k0", "k1", "k2") == ["put", "put"]
    with pytest.raises(BudgetSpent, match="2 write units"):
        bench.apply(effect, "k2")
    assert bench.usage.write_units == 2


@pytest.mark.parametrize("kilobytes", [9, 40])
def test_a_transaction_with_a_large_witness_is_not_sent_beyond_the_budget(
    bench: Bench, kilobytes: int
) -> None:
    """The service charges two write units for each KB of the witness; DynamoDB Local fewer."""
    for key in ("k0", "k1"):
        bench.user(key, "z", data={"S": "x" * (1_000 * kilobytes)})
    assert bench.apply(bench.effect(guard="transaction"), "k0") == ["put"]
    costs = bench.usage.write_units
    assert 4 < costs <= 2 * (kilobytes + 1)
    poor = bench.effect(guard="transaction", budget=Budget(None, costs - 1))
    with pytest.raises(BudgetSpent):
        bench.apply(poor, "k1")
    assert bench.usage.write_units == costs
    assert ("k1", "#feature") not in bench.items()
    maximum = 2.0 * (4 * math.ceil(kilobytes / 4) + 1)
    rich = bench.effect(guard="transaction", budget=Budget(None, maximum))
    assert bench.apply(rich, "k1") == ["put"]
    assert bench.usage.write_units == 2 * costs


def test_a_batch_ends_between_rows_and_never_within_one(bench: Bench) -> None:
    over = Event()

    def before(operation: str, parameters: Params) -> None:
        if operation == "query" and bench.client.calls["query"] == 1:
            over.set()

    bench.client.before = before
    rows = [{"pk": {"S": key}} for key in ("k0", "k1", "k2")]
    applied = bench.effect().apply(Batch("1", rows, over))
    assert [row["pk"]["S"] for row in applied] == ["k0", "k1"]
    assert {key for key, sk in bench.items() if sk == "#feature"} == {"k0", "k1"}
    assert bench.effect().apply(Batch("1", rows[2:], over)) == []


def test_a_table_without_a_sort_key_has_no_place_for_a_put(
    dynamodb: Database, table_name: str
) -> None:
    dynamodb.create(table_name, sort=None)
    bench = Bench(dynamodb, table_name)
    with pytest.raises(CannotStart, match="its own partition key"):
        bench.effect()
    dynamodb.fill(table_name, [{"pk": {"S": "a"}}])
    update = bench.effect("update", item={}, expression="SET x = :x", values={":x": 1})
    assert bench.apply(update, "a", "b") == ["updated", "gone"]
    assert bench.apply(bench.effect("delete", item={}), "a", "b") == ["deleted", "gone"]


def test_an_item_in_the_sentinels_place_is_refused(bench: Bench) -> None:
    space = look_up(bench.connection, bench.table).space
    bench.sentinel = Sentinel.of(space).item_of({})
    with pytest.raises(CannotStart, match="sentinels"):
        bench.effect(item={"sk": "!keyhop"})


@pytest.mark.parametrize("type_", ["N", "B"])
def test_keys_of_other_types(dynamodb: Database, table_name: str, type_: str) -> None:
    dynamodb.create(table_name, ("pk", type_), ("sk", type_))
    low, high = (
        ({"N": "1.5"}, {"N": "77"}) if type_ == "N" else ({"B": b"\x00"}, {"B": b"\xff\x01"})
    )
    dynamodb.fill(table_name, [{"pk": high, "sk": low}])
    bench = Bench(dynamodb, table_name)
    template = {"sk": to_json({"x": high})["x"], "of": {type_: "${key}"}, "on": {"S": "${run}"}}
    for guard in GUARDS:
        effect = bench.effect(guard=guard, item=template)
        assert bench.apply(effect, {"pk": high}) == ["put" if guard == "none" else "there"]
    (put,) = [item for item in scanned(dynamodb, table_name) if item["sk"] == high]
    assert put["of"] == high
    undo = bench.effect("undo", item=template)
    assert bench.apply(undo, {"pk": high, "outcome": {"S": "put"}}) == ["deleted"]
