"""Executions of ForEachKey, which list the keys and then perform an action for each of them."""

import threading
from collections import Counter
from dataclasses import replace
from functools import partial
from typing import Any

import pytest
from keyhop.each.effect import Batch, Effect, Work
from keyhop.each.outcomes import OUTCOME, PUT, THERE, Row, done
from keyhop.each.task import EachTask
from keyhop.errors import BudgetSpent, CannotStart, RunConflict, RunFailed, StaleIndex, TooExpensive
from keyhop.keys.task import KeysTask
from keyhop.tasks import list_of

from tests.integration.fleet.conftest import Fleet

SIZES = [1, 6, 1, 25, 2] * 60
ITEM = {"sk": "#feature", "plan": "free"}
A_DOLLAR = '{"reads": 1000000, "writes": 1000000}'
"""Prices at which a unit costs a dollar."""


class Shelf(Effect):
    """An effect that counts the puts of each key, each of which costs a write unit."""

    is_marked = True
    item_bytes = 100.0

    def __init__(self, options: Any, work: Work) -> None:
        self.work = work

    shelf: Counter[str]
    lock: threading.Lock
    max_puts = 1_000_000

    def apply(self, batch: Batch) -> list[Row]:
        with self.lock:
            if self.shelf.total() + len(batch.rows) > self.max_puts:
                raise OSError("the account was closed")  # before it puts any of them
            rows = []
            for row in batch.rows:
                self.shelf[row["pk"]["S"]] += 1
                is_first = self.shelf[row["pk"]["S"]] == 1
                rows.append(done(row, PUT if is_first or batch.was_tried() else THERE))
        self.work.usage.count(write_units=len(rows), requests=len(rows))
        return rows


@pytest.fixture
def each(machine: Fleet) -> Fleet:
    """The machine ForEachKey with the effect Shelf."""
    shelf = type("Shelf", (Shelf,), {"shelf": Counter(), "lock": threading.Lock()})
    machine.name = "ForEachKey"
    machine.own = {
        "each": partial(EachTask, journal_of=machine.runs.journal, effect_of=shelf, list_of=list_of)
    }
    machine.shelf = shelf.shelf  # type: ignore[attr-defined]
    return machine


def outcomes(machine: Fleet, run: str) -> Counter[str]:
    return Counter(row[OUTCOME]["S"] for row in machine.keys(run))


def test_an_execution_lists_the_keys_and_then_puts_an_item_for_each(each: Fleet) -> None:
    expected = each.collections(SIZES)
    result = each.run("feature", put=ITEM, maxConcurrency=3)
    assert result["run"] == "feature"
    assert result["keys"] == len(expected)
    assert result["outcomes"] == {PUT: len(expected)}
    assert result["writeUnits"] == len(expected)
    assert Counter(expected) == each.shelf  # type: ignore[attr-defined]
    assert each.manifest("feature-keys")["keys"] == len(expected)
    assert each.runs.open_run("feature")[1].options["keys"] == "feature-keys"
    assert outcomes(each, "feature") == {PUT: len(expected)}


def test_the_keys_of_a_finished_run_are_not_listed_again(each: Fleet) -> None:
    expected = each.collections(SIZES)
    each.name = "EnumerateKeys"
    each.run("list")
    each.name = "ForEachKey"
    result = each.run("feature", put=ITEM, keys="list")
    assert result["outcomes"] == {PUT: len(expected)}
    assert result["read_units"] == 0
    with pytest.raises(RunConflict):
        each.runs.open_run("feature-keys")


@pytest.mark.prove
def test_a_repeated_step_finds_the_runs_of_its_execution(each: Fleet) -> None:
    each.collections(SIZES)
    fields = {"table": each.table, "put": ITEM}
    execution = each.execution("feature")
    states = [each.plan(fields, execution) for _ in range(2)]
    assert states[0] == states[1]
    assert states[0]["run"] == "feature-keys"
    each.map(states[0])
    ended = [each.finish(states[0], execution) for _ in range(2)]
    assert ended[0]["next"] == "plan"
    following = [each.plan(fields, execution, ended=ended[0]) for _ in range(2)]
    assert following[0] == following[1]
    assert following[0]["run"] == "feature"
    each.go_on(following[1], execution, fields)
    assert each.manifest("feature")["counts"] == {PUT: len(SIZES)}


@pytest.mark.prove
def test_both_runs_of_an_execution_with_a_long_name_have_valid_ids(each: Fleet) -> None:
    each.collections(SIZES[:10])
    names = [f"{'x' * 79}{end}" for end in "ab"]
    lists = set()
    for name in names:
        assert each.start({"table": each.table, "put": ITEM}, name)["run"] == name
        listed = each.runs.open_run(name)[1].options["keys"]
        assert len(listed) <= 80
        assert each.manifest(listed)["finished"]
        lists.add(listed)
    assert len(lists) == 2


@pytest.mark.prove
def test_keys_from_an_index_that_became_stale_are_listed_again(each: Fleet) -> None:
    expected = each.collections(SIZES)
    is_first = [True]

    class StaleAtFirst(KeysTask):
        def finish(self, ended: Any) -> Any:
            if is_first.pop() if is_first else False:
                raise StaleIndex("The key index is no longer up to date.")
            return KeysTask.finish(self, ended)

    keys = each.tasks["keys"]
    each.own = {**each.own, "keys": partial(StaleAtFirst, **keys.keywords)}  # type: ignore[attr-defined]
    result = each.run("feature", put=ITEM)
    assert result["outcomes"] == {PUT: len(expected)}
    assert each.runs.open_run("feature")[1].options["keys"] == "feature-keys-anew"


def failure_message(machine: Fleet, state: dict[str, Any], execution: Any) -> str:
    failure = {"Error": "Broken", "Cause": "It broke."}
    with pytest.raises(RunFailed) as error:
        machine.clean_up({**state, "failure": failure}, execution)
    return str(error.value)


@pytest.mark.prove
def test_a_failure_reports_its_outcomes_and_how_to_resume_or_undo(each: Fleet) -> None:
    expected = each.collections(SIZES)
    fields = {"table": each.table, "put": ITEM, "maxConcurrency": 3, "maxWriteUnits": 5000}
    execution = each.execution("feature")
    state = each.plan(fields, execution)
    message = failure_message(each, state, execution)
    assert '"resume": "feature-keys"' in message
    assert '"put": {"sk": "#feature"' in message, "a resume of the list alone is of no use"
    each.map(state)
    state = each.plan(fields, execution, ended=each.finish(state, execution))
    shelf = each.own["each"].keywords["effect_of"]  # type: ignore[attr-defined]
    shelf.max_puts = 100
    with pytest.raises(OSError, match="closed"):
        each.map(state)
    message = failure_message(each, state, execution)
    count = sum(each.shelf.values())  # type: ignore[attr-defined]
    assert 0 < count < len(expected)
    assert f"({count:,} put)" in message
    assert '"resume": "feature"' in message
    assert '"maxWriteUnits": 5000' in message
    assert f'{{"table": "{each.table}", "undo": "feature"}}' in message
    shelf.max_puts = 1_000
    result = each.run("again", resume="feature")
    assert result["run"] == "feature"
    assert result["outcomes"] == {PUT: len(expected)}
    assert set(expected) == set(each.shelf)  # type: ignore[attr-defined]


@pytest.mark.prove
@pytest.mark.parametrize("is_listed", [False, True])
def test_a_run_of_the_list_can_be_resumed_with_the_action(each: Fleet, is_listed: bool) -> None:
    expected = each.collections(SIZES)
    fields = {"table": each.table, "put": ITEM, "maxConcurrency": 3}
    execution = each.execution("feature")
    state = each.plan(fields, execution)
    if is_listed:
        each.map(state)
        each.finish(state, execution)
    with pytest.raises(CannotStart, match="give the action as well"):
        each.run("unsaid", resume="feature-keys")
    result = each.start({**fields, "resume": "feature-keys"}, "again")
    assert result["run"] == "again"
    assert result["outcomes"] == {PUT: len(expected)}
    assert each.runs.open_run("again")[1].options["keys"] == "feature-keys"


@pytest.mark.prove
def test_a_run_cannot_be_resumed_with_another_action(each: Fleet) -> None:
    each.collections(SIZES)
    fields = {"table": each.table, "put": ITEM}
    execution = each.execution("feature")
    state = each.plan(fields, execution)
    each.map(state)
    each.plan(fields, execution, ended=each.finish(state, execution))
    with pytest.raises(RunConflict, match="effect"):
        each.start({"table": each.table, "put": {"sk": "other"}, "resume": "feature"}, "other")
    assert each.start({**fields, "resume": "feature"}, "same")["outcomes"] == {PUT: len(SIZES)}


@pytest.mark.prove
def test_a_dry_run_estimates_keys_and_writes_and_writes_nothing(each: Fleet) -> None:
    each.collections(SIZES)
    fields = {"table": each.table, "put": ITEM, "guard": "none", "maxWriteRate": 100}
    estimate = each.start({**fields, "dryRun": True})["each"]
    keys = estimate["keys"]
    assert 0.8 * len(SIZES) < keys < 1.2 * len(SIZES)
    assert estimate["write_units"] == keys
    assert estimate["seconds"] == pytest.approx(keys / 100, abs=0.1)
    assert not each.shelf  # type: ignore[attr-defined]
    each.name = "EnumerateKeys"
    each.run("list")
    each.name = "ForEachKey"
    estimate = each.start({**fields, "keys": "list", "dryRun": True})["each"]
    assert estimate["keys"] == len(SIZES)
    assert estimate["dollars"] == pytest.approx(len(SIZES) * 0.625e-6, abs=1e-6)


@pytest.mark.prove
def test_write_units_and_leftovers_are_shared_by_the_groups(local: Fleet) -> None:
    """The real effect spends one unit per put, and no more than the run may spend."""
    expected = local.collections(SIZES * 10)
    local.name = "ForEachKey"
    fields = {"table": local.table, "put": ITEM, "guard": "none", "maxConcurrency": 4}
    execution = local.execution("feature")
    state = local.plan({**fields, "maxWriteUnits": 1000}, execution)
    assert state["readUnitsLimit"] is None, "the list reads what it needs"
    local.map(state)
    ended = local.finish(state, execution)
    state = local.plan({**fields, "maxWriteUnits": 1000}, execution, ended=ended)
    assert state["readUnitsLimit"] == 1000
    with pytest.raises(BudgetSpent, match="maxWriteUnits"):
        local.go_on(state, execution, fields)
    progress = local.runs.journal("feature").load("progress.json")
    assert progress is not None
    assert 900 <= progress["write_units"] <= 1000
    result = local.run("again", resume="feature", maxWriteUnits=5000)
    assert result["outcomes"] == {PUT: len(expected)}
    assert result["writeUnits"] == len(expected), "none was written twice"


def test_writes_that_would_cost_too_much_are_refused(each: Fleet) -> None:
    """300 small writes cost $0.0002, so the item has the maximum size."""
    each.collections(SIZES)
    each.own["each"].keywords["effect_of"].item_bytes = 400_000.0  # type: ignore[attr-defined]
    with pytest.raises(TooExpensive, match="maxCost"):
        each.run(put=ITEM, maxCost=0.01)
    assert not each.shelf  # type: ignore[attr-defined]


def test_the_cost_of_a_resumed_run_is_that_of_its_writes(each: Fleet) -> None:
    """A unit costs a dollar: the puts cost $300, and a scan of the table twice as much."""
    each.collections(SIZES, filling=3_000)
    each.deployment = replace(each.deployment, prices=A_DOLLAR)
    fields = {"table": each.table, "put": ITEM, "guard": "none", "maxConcurrency": 2}
    execution = each.execution("feature")
    state = each.plan({**fields, "maxCost": 1e9}, execution)
    each.map(state)
    each.plan({**fields, "maxCost": 1e9}, execution, ended=each.finish(state, execution))
    writes = len(SIZES)
    with pytest.raises(TooExpensive, match=rf"up to \${writes}\.\d\d, about \${writes}\.\d\d by"):
        each.start({**fields, "resume": "feature", "maxCost": writes - 2}, "refused")
    assert not each.shelf  # type: ignore[attr-defined]
    result = each.start({**fields, "resume": "feature", "maxCost": writes + 2}, "resumed")
    assert result["outcomes"] == {PUT: writes}


def test_an_impossible_action_is_refused_before_the_keys_are_listed(each: Fleet) -> None:
    each.collections(SIZES)

    def refuses(options: Any, work: Work) -> Effect:
        raise CannotStart("There is no such sort key.")

    def permits_nothing(table: str, effect: Any, space: Any) -> None:
        raise CannotStart("This deployment may not perform this action.")

    task = each.own["each"].keywords  # type: ignore[attr-defined]
    for name, value, match in (
        ("effect_of", refuses, "no such sort key"),
        ("permit", permits_nothing, "may not perform this action"),
    ):
        before = task.get(name)
        task[name] = value
        with pytest.raises(CannotStart, match=match):
            each.plan({"table": each.table, "put": ITEM}, each.execution("refused"))
        task[name] = before
    with pytest.raises(RunConflict):
        each.runs.open_run("refused-keys")
