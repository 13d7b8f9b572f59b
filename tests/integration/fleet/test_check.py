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


def test_the_check_finds_nothing_to_complain_of_and_its_examples_stay_out_of_the_state(
    machine: Fleet,
) -> None:
    machine.collections(SIZES, filling=200)
    told = machine.run("run", segments=128, verifyShare=0.2)
    assert told["verify"]["segments"] == told["verify"]["drawn"] == 26
    assert told["verify"]["missing"] == 0
    assert "examples" not in told["verify"]


@pytest.mark.prove
def test_the_check_goes_on_where_an_earlier_invocation_stopped(
    machine: Fleet, charged: Scans, monkeypatch
) -> None:
    """The time is over while a segment is read; what is not read to its end is read again."""
    monkeypatch.setattr(verify, "working_seconds", lambda remaining: remaining)
    machine.collections(SIZES, filling=200)
    state, execution = machine.begin(segments=64, verifyShare=1)
    machine.map(state)
    state = machine.finish(state, execution)
    assert state["next"] == "verify"
    alone = state["result"]["cost"]["total"]
    charged.clear()
    state["maxReadRate"] = 25.0  # some 76 units: three seconds, and an invocation has half of it
    machine.remaining = 1.5
    turns = 0
    while state["next"] == "verify":
        state = machine.verify(state)
        turns += 1
    assert turns > 1
    told = state["result"]["verify"]
    assert (told["segments"], told["keys"], told["missing"]) == (64, len(SIZES), 0)
    assert told["read_units"] == units(charged)
    assert state["result"]["cost"]["total"] == pytest.approx(
        alone + state["result"]["cost"]["verify"]
    )
    assert machine.manifest("run")["verify"] == told


@pytest.mark.prove
def test_a_segment_takes_as_many_turns_as_it_needs_but_none_without_a_page(
    machine: Fleet, monkeypatch: pytest.MonkeyPatch
) -> None:
    machine.collections(SIZES, filling=2_000)
    state, execution = machine.begin(segments=1, verifyShare=1, maxReadRate=200)
    machine.map(state)
    state = machine.finish(state, execution)
    step, calls = TablePages.step, itertools.count(1)

    def ending(self: TablePages, *given):
        if next(calls) == 2:
            self.stop.set()
            raise Stopped
        return step(self, *given)

    monkeypatch.setattr(TablePages, "step", ending)
    state = machine.verify(state)
    assert state["next"] == "verify"
    with monkeypatch.context() as patch:
        patch.setattr(verify, "working_seconds", lambda remaining: 0.0)
        with pytest.raises(SegmentsTooLarge, match="came to the end of no segment"):
            machine.verify(state)
    told = machine.verify(state)["result"]["verify"]
    assert (told["segments"], told["keys"], told["missing"]) == (1, len(SIZES), 0)
    assert told["surplus"] == 0, "what an earlier turn had read was taken for gone"


@pytest.mark.prove
def test_two_invocations_at_once_check_the_same_segments(machine: Fleet) -> None:
    machine.collections(SIZES, filling=200)
    state, execution = machine.begin(segments=64, verifyShare=0.5)
    machine.map(state)
    state = machine.finish(state, execution)
    with ThreadPoolExecutor(2) as pool:
        states = list(pool.map(machine.verify, [state, state]))
    told = [state["result"]["verify"] for state in states]
    assert [(one["segments"], one["missing"], one["surplus"]) for one in told] == 2 * [(32, 0, 0)]
    assert told[0]["keys"] == told[1]["keys"]
    store = machine.runs.store("run")
    assert len(json.loads(store.read("verify/1/run.json"))["options"]["drawn"]) == 32
    assert store.read("verify/2/run.json") is None


@pytest.mark.prove
def test_what_a_check_has_read_counts_also_if_it_fails_and_a_resume_goes_on_with_it(
    machine: Fleet, charged: Scans
) -> None:
    machine.collections(SIZES, filling=2_000)
    alone = machine.run(segments=64)["read_units"]
    charged.clear()
    execution = machine.execution("run")
    most = 1.15 * alone + 100
    given = {"table": machine.table, "segments": 64, "verifyShare": 1, "maxReadUnits": most}
    state = machine.plan(given, execution)
    machine.map(state)
    state = machine.finish(state, execution)
    assert state["next"] == "verify"
    with pytest.raises(BudgetSpent) as spent:
        machine.verify(state)
    assert units(charged) <= most
    before = machine.manifest("run")
    with pytest.raises(BudgetSpent):
        machine.verify(state)
    assert units(charged) <= most, "what the first attempt has read was forgotten"
    state["failure"] = {"Error": "BudgetSpent", "Cause": str(spent.value)}
    with pytest.raises(RunFailed, match='"verifyShare": 1') as failed:
        machine.clean_up(state, execution)
    with pytest.raises(RunConflict, match="finished run"):
        machine.run(resume="run")
    advised = json.loads(str(failed.value).partition("start again with ")[2].rstrip("."))
    told = None
    while told is None:  # each start may read as much again
        before_this = units(charged)
        try:
            told = machine.start(advised)["verify"]
        except BudgetSpent:
            assert before_this < units(charged)
        assert units(charged) - before_this <= advised["maxReadUnits"]
    assert (told["segments"], told["missing"]) == (64, 0)
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
def test_a_second_check_reads_again_and_an_equal_share_is_the_same_check(
    machine: Fleet, charged: Scans
) -> None:
    machine.create(sort=None)
    machine.fill({"pk": {"S": f"k{n}"}} for n in range(200))
    first = machine.run("run", segments=64, verifyShare=1)
    assert first["verify"]["missing"] == 0
    machine.fill({"pk": {"S": f"late{n}"}} for n in range(20))
    charged.clear()
    again = {"table": machine.table, "resume": "run", "verifyShare": 1.0}
    with pytest.raises(KeysMissing, match="found 20 keys"):
        machine.start(again)
    assert units(charged) >= 32
    for number in range(20):
        machine.database.client.delete_item(
            TableName=machine.table, Key={"pk": {"S": f"late{number}"}}
        )
    told = machine.start(again)
    assert (told["verify"]["missing"], told["verify"]["segments"]) == (0, 64)
    assert told["cost"]["verify"] > 2 * first["cost"]["verify"], "of all checks"
