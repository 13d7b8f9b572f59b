"""Workers that are killed, late or poisoned; runs that go on."""

import json
import threading
from collections import Counter
from dataclasses import replace

import pytest
from keyhop.enumerate.fleet import working
from keyhop.enumerate.fleet.failing import RunFailed, clean_up
from keyhop.enumerate.fleet.working import GroupWork, Worked, scan_segments, working_seconds
from keyhop.errors import (
    BrokenPromise,
    CannotStart,
)

from tests.databases import Database
from tests.integration.fleet.conftest import SIZES, names
from tests.machine import WORKER, Machine


def test_a_worker_whose_time_is_over_hands_back_a_checkpoint_and_goes_on(
    machine: Machine, strict: Database, table_name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(working, "LEAST_MARGIN_SECONDS", 0.0)
    machine.remaining = 0.4
    expected = strict.collections(table_name, [2] * 300, filling=3_000)
    machine.start({"table": table_name, "segments": 64, "maxReadRate": 100}, name="run")
    assert names(machine, "run") == Counter(expected)
    assert machine.invocations > 4
    assert machine.manifest("run")["invocations"] > 3


def test_time_to_work_ends_well_before_the_deadline() -> None:
    assert working_seconds(900) == 840
    assert working_seconds(100) == 85
    assert working_seconds(30) == 25
    assert working_seconds(2) == 0


def test_a_killed_worker_and_a_late_twin_change_nothing(
    machine: Machine, strict: Database, table_name: str
) -> None:
    """Each first attempt goes on in the background while its retry works: both may commit."""
    expected = strict.collections(table_name, SIZES, filling=2_000)
    late: list[threading.Thread] = []

    def twice(*arguments) -> Worked:
        thread = threading.Thread(target=lambda: scan_segments(*arguments))
        thread.start()
        late.append(thread)
        return scan_segments(*arguments)

    machine.scan = twice
    machine.start({"table": table_name, "segments": 128, "maxConcurrency": 2}, name="run")
    assert names(machine, "run") == Counter(expected)
    for thread in late:
        thread.join()
    # What the twins have written since is not named by any commit, nor by any list for readers.
    machine.runs.store("run").replace("parts/g00000-s000009-ffffffffffff.jsonl.gz", b"late")
    assert names(machine, "run") == Counter(expected)


def test_a_poisoned_group_fails_the_run_with_its_cause_and_a_new_run_succeeds(
    machine: Machine, strict: Database, table_name: str
) -> None:
    expected = strict.collections(table_name, SIZES)
    given = {"table": table_name, "segments": 128, "maxConcurrency": 2}
    execution = machine.execution("poisoned")
    state = machine.plan(given, execution)
    machine.runs.store("poisoned").create("commits/g00002-s000000.json", b"{")
    with pytest.raises(BrokenPromise, match=r"g00002-s000000\.json is damaged") as raised:
        machine.go_on(state, execution)
    cause = json.dumps({"errorType": "BrokenPromise", "errorMessage": str(raised.value)})
    note = {"failure": {"Error": "BrokenPromise", "Cause": cause}, "item": {"group": 2}}
    note["execution"] = execution.id
    machine.runs.store("poisoned").replace("failures/g2.json", json.dumps(note).encode())
    failure = {"Error": "States.ExceedToleratedFailureThreshold", "Cause": "..."}
    with pytest.raises(RunFailed) as failed:
        clean_up("poisoned", failure, execution, "t1", machine.runs, WORKER)
    assert "Group 2 failed. BrokenPromise: " in str(failed.value)
    assert "start a new run" in str(failed.value)
    machine.start(given, name="new")
    assert names(machine, "new") == Counter(expected)


def test_a_failed_run_goes_on_with_resume_from_its_commits(
    machine: Machine, strict: Database, table_name: str
) -> None:
    expected = strict.collections(table_name, SIZES, filling=1_000)

    def failing(work: GroupWork, *rest) -> Worked:
        if work.group == 3:
            raise CannotStart("poison")
        return scan_segments(work, *rest)

    machine.scan = failing
    execution = machine.execution("begun")
    state = machine.plan({"table": table_name, "segments": 160}, execution)
    with pytest.raises(CannotStart):
        machine.go_on(state, execution)
    failure = {"Error": "CannotStart", "Cause": "poison"}
    with pytest.raises(RunFailed, match=r"start again with .*\"resume\": \"begun\"") as failed:
        clean_up("begun", failure, execution, "t1", machine.runs, WORKER)
    assert "128 of 160 segments are done" in str(failed.value)
    assert not machine.progress("begun")["finished"]
    machine.scan = scan_segments
    machine.invocations = 0
    told = machine.start({"table": table_name, "resume": "begun"})
    assert machine.invocations == 1
    assert told["run"] == "begun"
    assert names(machine, "begun") == Counter(expected)


def test_a_redriven_execution_is_sent_back_to_the_groups(machine: Machine) -> None:
    """A redrive begins at the state that failed, which is CleanUp."""
    execution = machine.execution("r")
    failure = {"Error": "GaveUp", "Cause": "throttled"}

    def enter(entered: str, redrives: int = 0) -> None:
        redriven = replace(execution, redrives=redrives)
        clean_up("r", failure, redriven, entered, machine.runs, WORKER)

    with pytest.raises(RunFailed, match="redrive the execution"):
        enter("t1")
    with pytest.raises(RunFailed):  # a retry of the same state is no redrive
        enter("t1")
    enter("t1", redrives=1)
    enter("t1", redrives=1)  # its answer was lost, and it was retried
    with pytest.raises(RunFailed):  # it failed again after its first redrive
        enter("t2", redrives=1)
    with pytest.raises(RunFailed):
        enter("t2", redrives=1)
    enter("t3", redrives=2)
    other = machine.execution("other")
    with pytest.raises(RunFailed):  # another execution of the same run has notes of its own
        clean_up("r", failure, other, "t4", machine.runs, WORKER)
    with pytest.raises(RunFailed):
        enter("t5", redrives=2)
