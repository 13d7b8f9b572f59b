"""ForEachKey: a list, and then something for each of its keys, by one execution."""

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
"""The price of a unit."""


class Shelf(Effect):
    """Puts an item for each key on a shelf; each costs a write unit."""

    is_marked = True
    item_bytes = 100.0

    def __init__(self, options: Any, work: Work) -> None:
        self.work = work

    shelf: Counter[str]
    lock: threading.Lock
    most = 1_000_000

    def apply(self, batch: Batch) -> list[Row]:
        with self.lock:
            if self.shelf.total() + len(batch.rows) > self.most:
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
    """The machine ForEachKey, whose effect is a shelf."""
    shelf = type("Shelf", (Shelf,), {"shelf": Counter(), "lock": threading.Lock()})
    machine.name = "ForEachKey"
    machine.own = {
        "each": partial(EachTask, journal_of=machine.runs.journal, effect_of=shelf, list_of=list_of)
    }
    machine.shelf = shelf.shelf  # type: ignore[attr-defined]
    return machine


def outcomes(machine: Fleet, run: str) -> Counter[str]:
    return Counter(row[OUTCOME]["S"] for row in machine.keys(run))


def test_an_execution_lists_the_keys_and_then_does_something_for_each(each: Fleet) -> None:
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


def test_keys_of_a_finished_run_are_worked_at_once(each: Fleet) -> None:
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
def test_a_step_that_is_made_again_finds_its_own_runs(each: Fleet) -> None:
    each.collections(SIZES)
    given = {"table": each.table, "put": ITEM}
    execution = each.execution("feature")
    states = [each.plan(given, execution) for _ in range(2)]
    assert states[0] == states[1]
    assert states[0]["run"] == "feature-keys"
    each.map(states[0])
    ended = [each.finish(states[0], execution) for _ in range(2)]
    assert ended[0]["next"] == "plan"
    following = [each.plan(given, execution, ended=ended[0]) for _ in range(2)]
    assert following[0] == following[1]
    assert following[0]["run"] == "feature"
    each.go_on(following[1], execution, given)
    assert each.manifest("feature")["counts"] == {PUT: len(SIZES)}


@pytest.mark.prove
def test_the_names_of_both_runs_are_ids_however_long_the_execution_s_is(each: Fleet) -> None:
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
def test_an_index_that_is_not_believed_at_the_end_is_listed_anew_and_then_worked(
    each: Fleet,
) -> None:
    expected = each.collections(SIZES)
    is_first = [True]

    class Doubting(KeysTask):
        def finish(self, ended: Any) -> Any:
            if is_first.pop() if is_first else False:
                raise StaleIndex("The key index is no longer up to date.")
            return KeysTask.finish(self, ended)

    keys = each.tasks["keys"]
    each.own = {**each.own, "keys": partial(Doubting, **keys.keywords)}  # type: ignore[attr-defined]
    result = each.run("feature", put=ITEM)
    assert result["outcomes"] == {PUT: len(expected)}
    assert each.runs.open_run("feature")[1].options["keys"] == "feature-keys-anew"


def failed(machine: Fleet, state: dict[str, Any], execution: Any) -> str:
    failure = {"Error": "Broken", "Cause": "It broke."}
    with pytest.raises(RunFailed) as error:
        machine.clean_up({**state, "failure": failure}, execution)
    return str(error.value)


@pytest.mark.prove
def test_a_failure_says_what_was_done_what_resumes_and_what_takes_it_back(each: Fleet) -> None:
    expected = each.collections(SIZES)
    given = {"table": each.table, "put": ITEM, "maxConcurrency": 3, "maxWriteUnits": 5000}
    execution = each.execution("feature")
    state = each.plan(given, execution)
    says = failed(each, state, execution)
    assert '"resume": "feature-keys"' in says
    assert '"put": {"sk": "#feature"' in says, "the list is of no use alone"
    each.map(state)
    state = each.plan(given, execution, ended=each.finish(state, execution))
    shelf = each.own["each"].keywords["effect_of"]  # type: ignore[attr-defined]
    shelf.most = 100
    with pytest.raises(OSError, match="closed"):
        each.map(state)
    says = failed(each, state, execution)
    count = sum(each.shelf.values())  # type: ignore[attr-defined]
    assert 0 < count < len(expected)
    assert f"({count:,} put)" in says
    assert '"resume": "feature"' in says
    assert '"maxWriteUnits": 5000' in says
    assert f'{{"table": "{each.table}", "undo": "feature"}}' in says
    shelf.most = 1_000
    result = each.run("again", resume="feature")
    assert result["run"] == "feature"
    assert result["outcomes"] == {PUT: len(expected)}
    assert set(expected) == set(each.shelf)  # type: ignore[attr-defined]


@pytest.mark.prove
@pytest.mark.parametrize("is_listed", [False, True])
def test_a_list_is_gone_on_with_and_then_worked(each: Fleet, is_listed: bool) -> None:
    expected = each.collections(SIZES)
    given = {"table": each.table, "put": ITEM, "maxConcurrency": 3}
    execution = each.execution("feature")
    state = each.plan(given, execution)
    if is_listed:
        each.map(state)
        each.finish(state, execution)
    with pytest.raises(CannotStart, match="give the action as well"):
        each.run("unsaid", resume="feature-keys")
    result = each.start({**given, "resume": "feature-keys"}, "again")
    assert result["run"] == "again"
    assert result["outcomes"] == {PUT: len(expected)}
    assert each.runs.open_run("again")[1].options["keys"] == "feature-keys"


@pytest.mark.prove
def test_a_run_is_not_gone_on_with_to_do_something_else(each: Fleet) -> None:
    each.collections(SIZES)
    given = {"table": each.table, "put": ITEM}
    execution = each.execution("feature")
    state = each.plan(given, execution)
    each.map(state)
    each.plan(given, execution, ended=each.finish(state, execution))
    with pytest.raises(RunConflict, match="effect"):
        each.start({"table": each.table, "put": {"sk": "other"}, "resume": "feature"}, "other")
    assert each.start({**given, "resume": "feature"}, "same")["outcomes"] == {PUT: len(SIZES)}


@pytest.mark.prove
def test_a_plan_tells_of_the_list_and_of_the_writes_and_writes_nothing(each: Fleet) -> None:
    each.collections(SIZES)
    given = {"table": each.table, "put": ITEM, "guard": "none", "maxWriteRate": 100}
    told = each.start({**given, "dryRun": True})
    keys = told["each"]["keys"]
    assert 0.8 * len(SIZES) < keys < 1.2 * len(SIZES)
    assert told["each"]["write_units"] == keys
    assert told["each"]["seconds"] == pytest.approx(keys / 100, abs=0.1)
    assert not each.shelf  # type: ignore[attr-defined]
    each.name = "EnumerateKeys"
    each.run("list")
    each.name = "ForEachKey"
    told = each.start({**given, "keys": "list", "dryRun": True})
    assert told["each"]["keys"] == len(SIZES)
    assert told["each"]["dollars"] == pytest.approx(len(SIZES) * 0.625e-6, abs=1e-6)


@pytest.mark.prove
def test_units_to_write_are_shared_by_the_groups_and_what_some_leave_over_again(
    local: Fleet,
) -> None:
    """The real effect, on a database that writes: each put costs a unit, and no more are spent."""
    expected = local.collections(SIZES * 10)
    local.name = "ForEachKey"
    given = {"table": local.table, "put": ITEM, "guard": "none", "maxConcurrency": 4}
    execution = local.execution("feature")
    state = local.plan({**given, "maxWriteUnits": 1000}, execution)
    assert state["readUnitsLimit"] is None, "the list reads what it needs"
    local.map(state)
    state = local.plan(
        {**given, "maxWriteUnits": 1000}, execution, ended=local.finish(state, execution)
    )
    assert state["readUnitsLimit"] == 1000
    with pytest.raises(BudgetSpent, match="maxWriteUnits"):
        local.go_on(state, execution, given)
    written = local.runs.journal("feature").load("progress.json")
    assert written is not None
    assert 900 <= written["write_units"] <= 1000
    again = {"table": local.table, "resume": "feature", "maxWriteUnits": 5000}
    result = local.start(again, "again")
    assert result["outcomes"] == {PUT: len(expected)}
    assert result["writeUnits"] == len(expected), "none was written twice"


def test_what_would_cost_too_much_is_refused_before_it_is_written(each: Fleet) -> None:
    """300 writes are $0.0002: the item is as large as an item can be."""
    each.collections(SIZES)
    each.own["each"].keywords["effect_of"].item_bytes = 400_000.0  # type: ignore[attr-defined]
    with pytest.raises(TooExpensive, match="maxCost"):
        each.run(put=ITEM, maxCost=0.01)
    assert not each.shelf  # type: ignore[attr-defined]


def test_a_resumed_run_is_refused_for_its_writes_and_not_for_a_scan_that_it_does_not_make(
    each: Fleet,
) -> None:
    """A unit costs a dollar: the puts cost $300, and a scan of the table twice as much."""
    each.collections(SIZES, filling=3_000)
    each.deployment = replace(each.deployment, prices=A_DOLLAR)
    given = {"table": each.table, "put": ITEM, "guard": "none", "maxConcurrency": 2}
    execution = each.execution("feature")
    state = each.plan({**given, "maxCost": 1e9}, execution)
    each.map(state)
    each.plan({**given, "maxCost": 1e9}, execution, ended=each.finish(state, execution))
    writes = len(SIZES)
    with pytest.raises(TooExpensive, match=rf"up to \${writes}\.\d\d, about \${writes}\.\d\d by"):
        each.start({**given, "resume": "feature", "maxCost": writes - 2}, "refused")
    assert not each.shelf  # type: ignore[attr-defined]
    result = each.start({**given, "resume": "feature", "maxCost": writes + 2}, "resumed")
    assert result["outcomes"] == {PUT: writes}


def test_what_cannot_be_done_is_refused_before_a_list_is_made(each: Fleet) -> None:
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
