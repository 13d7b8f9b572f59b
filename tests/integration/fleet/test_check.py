"""The sampled check of a finished run."""

import itertools
import json
from concurrent.futures import ThreadPoolExecutor

import pytest
from keyhop.errors import (
    BudgetSpent,
    KeysMissing,
    RunConflict,
    RunFailed,
    SegmentsTooLarge,
    Stopped,
)
from keyhop.jobs.pages import TablePages
from keyhop.keys import verify

from tests.integration.fleet.conftest import SIZES, Fleet, Scans, units


def test_a_check_without_findings_keeps_its_examples_out_of_the_state(machine: Fleet) -> None:
    machine.collections(SIZES, filling=200)
    verified = machine.run("run", segments=128, verifyShare=0.2)["verify"]
    assert verified["segments"] == verified["drawn"] == 26
    assert verified["missing"] == 0
    assert "examples" not in verified


@pytest.mark.prove
def test_the_check_continues_where_an_earlier_invocation_stopped(
    machine: Fleet, charged: Scans, monkeypatch
) -> None:
    """A segment that is not read completely when the time is over is read again."""
    monkeypatch.setattr(verify, "working_seconds", lambda remaining: remaining)
    machine.collections(SIZES, filling=200)
    state, execution = machine.begin(segments=64, verifyShare=1)
    machine.map(state)
    state = machine.finish(state, execution)
    assert state["next"] == "verify"
    run_cost = state["result"]["cost"]["total"]
    charged.clear()
    state["maxReadRate"] = 25.0  # some 76 units: three seconds, and an invocation has half of it
    machine.remaining = 1.5
    turns = 0
    while state["next"] == "verify":
        state = machine.verify(state)
        turns += 1
    assert turns > 1
    verified, cost = state["result"]["verify"], state["result"]["cost"]
    assert (verified["segments"], verified["keys"], verified["missing"]) == (64, len(SIZES), 0)
    assert verified["read_units"] == units(charged)
    assert cost["total"] == pytest.approx(run_cost + cost["verify"])
    assert machine.manifest("run")["verify"] == verified


@pytest.mark.prove
def test_a_segment_takes_as_many_turns_as_it_needs_but_none_without_a_page(
    machine: Fleet, monkeypatch: pytest.MonkeyPatch
) -> None:
    machine.collections(SIZES, filling=2_000)
    state, execution = machine.begin(segments=1, verifyShare=1, maxReadRate=200)
    machine.map(state)
    state = machine.finish(state, execution)
    step, calls = TablePages.step, itertools.count(1)

    def stopping_step(self: TablePages, *args):
        if next(calls) == 2:
            self.stop.set()
            raise Stopped
        return step(self, *args)

    monkeypatch.setattr(TablePages, "step", stopping_step)
    state = machine.verify(state)
    assert state["next"] == "verify"
    with monkeypatch.context() as patch:
        patch.setattr(verify, "working_seconds", lambda remaining: 0.0)
        with pytest.raises(SegmentsTooLarge, match="came to the end of no segment"):
            machine.verify(state)
    verified = machine.verify(state)["result"]["verify"]
    assert (verified["segments"], verified["keys"], verified["missing"]) == (1, len(SIZES), 0)
    assert verified["surplus"] == 0, "keys that an earlier turn had read were counted as surplus"


@pytest.mark.prove
def test_two_invocations_at_once_check_the_same_segments(machine: Fleet) -> None:
    machine.collections(SIZES, filling=200)
    state, execution = machine.begin(segments=64, verifyShare=0.5)
    machine.map(state)
    state = machine.finish(state, execution)
    with ThreadPoolExecutor(2) as pool:
        states = list(pool.map(machine.verify, [state, state]))
    first, second = (state["result"]["verify"] for state in states)
    for verified in (first, second):
        assert (verified["segments"], verified["missing"], verified["surplus"]) == (32, 0, 0)
    assert first["keys"] == second["keys"]
    store = machine.runs.store("run")
    assert len(json.loads(store.read("verify/1/run.json"))["options"]["drawn"]) == 32
    assert store.read("verify/2/run.json") is None


@pytest.mark.prove
def test_the_units_of_a_failed_check_count_and_a_resume_continues_it(
    machine: Fleet, charged: Scans
) -> None:
    machine.collections(SIZES, filling=2_000)
    limit = 1.15 * machine.run(segments=64)["read_units"] + 100
    charged.clear()
    state, execution = machine.begin(segments=64, verifyShare=1, maxReadUnits=limit)
    machine.map(state)
    state = machine.finish(state, execution)
    assert state["next"] == "verify"
    with pytest.raises(BudgetSpent) as spent:
        machine.verify(state)
    assert units(charged) <= limit
    before = machine.manifest("run")
    with pytest.raises(BudgetSpent):
        machine.verify(state)
    assert units(charged) <= limit, "the units of the first attempt were not counted"
    state["failure"] = {"Error": "BudgetSpent", "Cause": str(spent.value)}
    with pytest.raises(RunFailed, match='"verifyShare": 1') as failed:
        machine.clean_up(state, execution)
    with pytest.raises(RunConflict, match="finished run"):
        machine.run(resume="run")
    advised = json.loads(str(failed.value).partition("start again with ")[2].rstrip("."))
    verified = None
    while verified is None:  # each start may read as much again
        before_start = units(charged)
        try:
            verified = machine.start(advised)["verify"]
        except BudgetSpent:
            assert before_start < units(charged)
        assert units(charged) - before_start <= advised["maxReadUnits"]
    assert (verified["segments"], verified["missing"]) == (64, 0)
    after = machine.manifest("run")
    assert {**after, "cost": 0, "verify": 0} == {**before, "cost": 0, "verify": 0}


def test_a_key_that_is_missing_fails_the_run(
    machine: Fleet, monkeypatch: pytest.MonkeyPatch
) -> None:
    machine.create(sort=None)
    machine.fill({"pk": {"S": f"k{n}"}} for n in range(200))
    state, execution = machine.begin(segments=64, verifyShare=1)
    machine.map(state)
    machine.fill([{"pk": {"S": "late"}}])
    with pytest.raises(KeysMissing, match="found 1 key that the run did not report"):
        machine.go_on(state, execution)
    assert json.loads(machine.object("runs/run/verify.json"))["verdict"]["examples"]
    assert machine.manifest("run")["verify"]["missing"] == 1


@pytest.mark.prove
def test_a_second_check_with_an_equal_share_reads_again(machine: Fleet, charged: Scans) -> None:
    machine.create(sort=None)
    machine.fill({"pk": {"S": f"k{n}"}} for n in range(200))
    first = machine.run("run", segments=64, verifyShare=1)
    assert first["verify"]["missing"] == 0
    machine.fill({"pk": {"S": f"late{n}"}} for n in range(20))
    charged.clear()
    fields = {"table": machine.table, "resume": "run", "verifyShare": 1.0}
    with pytest.raises(KeysMissing, match="found 20 keys"):
        machine.start(fields)
    assert units(charged) >= 32
    for number in range(20):
        machine.database.client.delete_item(
            TableName=machine.table, Key={"pk": {"S": f"late{number}"}}
        )
    last = machine.start(fields)
    assert (last["verify"]["missing"], last["verify"]["segments"]) == (0, 64)
    assert last["cost"]["verify"] > 2 * first["cost"]["verify"], "the cost includes all checks"
