"""Workers that are killed, late or fail, and runs that are resumed."""

import json
import threading
from collections import Counter
from dataclasses import replace
from typing import Any

import pytest
from keyhop.errors import BrokenPromise, CannotStart, NoProgress, RunConflict, RunFailed
from keyhop.jobs import worker as working
from keyhop.jobs.fleet import clean_up, scan_segments
from keyhop.jobs.worker import working_seconds

from testing.databases import BY_DAY
from tests.integration.fleet.conftest import SIZES, Fleet, names
from tests.machine import WORKER, failed_now


@pytest.mark.prove
def test_a_worker_whose_time_is_over_returns_a_checkpoint_and_continues(
    machine: Fleet, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(working, "LEAST_MARGIN_SECONDS", 0.0)
    machine.remaining = 1.0

    def retried(*arguments):
        # The state machine retries too. A test machine can be busy for a whole second.
        for _ in range(5):
            try:
                return scan_segments(*arguments)
            except NoProgress:
                continue
        return scan_segments(*arguments)

    machine.scan = retried
    expected = machine.collections([2] * 300, filling=3_000)
    machine.run("run", segments=64, maxReadRate=40)
    assert names(machine, "run") == Counter(expected)
    assert machine.invocations > 4
    assert machine.manifest("run")["invocations"] > 3


def test_time_to_work_ends_well_before_the_deadline() -> None:
    assert working_seconds(900) == 840
    assert working_seconds(100) == 85
    assert working_seconds(30) == 25
    assert working_seconds(2) == 0


@pytest.mark.prove
def test_a_late_first_attempt_beside_its_retry_changes_nothing(machine: Fleet) -> None:
    """Each first attempt continues in the background during its retry, and both may commit."""
    expected = machine.collections(SIZES, filling=2_000)
    late: list[threading.Thread] = []

    def twice(*arguments):
        thread = threading.Thread(target=lambda: scan_segments(*arguments))
        thread.start()
        late.append(thread)
        return scan_segments(*arguments)

    machine.scan = twice
    machine.run("run", segments=128, maxConcurrency=2)
    assert names(machine, "run") == Counter(expected)
    for thread in late:
        thread.join()
    # No commit and no list for readers names the parts that late attempts have written.
    machine.runs.store("run").replace("parts/g00000-s000009-ffffffffffff.jsonl.gz", b"late")
    assert names(machine, "run") == Counter(expected)


@pytest.mark.prove
def test_a_damaged_group_fails_the_run_with_its_cause_and_a_new_run_succeeds(
    machine: Fleet,
) -> None:
    expected = machine.collections(SIZES)
    fields = {"table": machine.table, "segments": 128, "maxConcurrency": 2}
    execution = machine.execution("poisoned")
    state = machine.plan(fields, execution)
    machine.runs.store("poisoned").create("commits/g00002-s000000.json", b"{")
    with pytest.raises(BrokenPromise, match=r"g00002-s000000\.json is damaged") as raised:
        machine.go_on(state, execution)
    cause = json.dumps({"errorType": "BrokenPromise", "errorMessage": str(raised.value)})
    note = {"failure": {"Error": "BrokenPromise", "Cause": cause}, "item": {"group": 2}}
    note["execution"] = execution.id
    machine.runs.store("poisoned").replace("failures/g2.json", json.dumps(note).encode())
    state["failure"] = {"Error": "States.ExceedToleratedFailureThreshold", "Cause": "..."}
    with pytest.raises(RunFailed) as failed:
        machine.clean_up(state, execution)
    assert failed.value.error == "BrokenPromise"
    assert "Group 2 failed. " in str(failed.value)
    assert "start a new run" in str(failed.value)
    machine.start(fields, name="new")
    assert names(machine, "new") == Counter(expected)


def test_a_resume_of_a_failed_run_continues_from_its_commits(machine: Fleet) -> None:
    expected = machine.collections(SIZES, filling=1_000)

    def failing(state, *rest):
        if state["item"]["group"] == 3:
            raise CannotStart("poison")
        return scan_segments(state, *rest)

    machine.scan = failing
    state, execution = machine.begin("begun", segments=160)
    with pytest.raises(CannotStart):
        machine.go_on(state, execution)
    state["failure"] = {"Error": "CannotStart", "Cause": "poison"}
    with pytest.raises(RunFailed, match=r"start again with .*\"resume\": \"begun\"") as failed:
        machine.clean_up(state, execution)
    assert "128 of 160 segments are done" in str(failed.value)
    assert not machine.progress("begun")["finished"]
    machine.scan = scan_segments
    machine.invocations = 0
    result = machine.run(resume="begun")
    assert machine.invocations == 1
    assert result["run"] == "begun"
    assert names(machine, "begun") == Counter(expected)


def test_a_redriven_execution_is_sent_back_to_the_groups(machine: Fleet) -> None:
    """A redrive begins at the state that failed, which is CleanUp."""
    machine.collections(SIZES)
    state, execution = machine.begin("r", segments=96)
    state["failure"] = {"Error": "GaveUp", "Cause": "throttled"}

    def enter(state: dict[str, Any], redrives: int) -> None:
        clean_up(state, replace(execution, redrives=redrives), machine.runs, WORKER)

    first = failed_now(state, execution)
    with pytest.raises(RunFailed, match="redrive the execution"):
        enter(first, redrives=0)
    with pytest.raises(RunFailed):  # its answer was lost
        enter(first, redrives=0)
    store = machine.runs.store("r")
    note = {"execution": execution.id, "item": {"group": 1}, "failure": {}}
    store.replace("failures/g1.json", json.dumps(note).encode())
    enter(first, redrives=1)  # at once, or after days
    enter(first, redrives=1)  # its answer was lost: once more
    assert store.sizes("failures") == {}
    second = failed_now(state, replace(execution, redrives=1))
    with pytest.raises(RunFailed):  # the redriven map has failed, within a second or not
        enter(second, redrives=1)
    enter(second, redrives=2)
    with pytest.raises(RunFailed, match='"resume": "r"'):  # a definition without CountRedrives
        enter(state, redrives=1)


def test_an_error_of_aws_fails_the_run_with_an_error_that_no_state_retries(machine: Fleet) -> None:
    machine.collections(SIZES)
    state, execution = machine.begin("r", segments=96)
    state["failure"] = {"Error": "Lambda.TooManyRequestsException", "Cause": "Rate exceeded"}
    with pytest.raises(RunFailed, match=r"^Lambda.TooManyRequestsException: Rate exc") as failed:
        machine.clean_up(state, execution)
    assert failed.value.error == "RunFailed"


def test_the_failure_of_a_run_that_cannot_be_resumed_advises_no_input(machine: Fleet) -> None:
    """A walk over a key index cannot be resumed; the action that started it is repeated."""
    machine.collections(SIZES)
    state, execution = machine.begin("r", segments=96)
    state |= {"failure": {"Error": "GaveUp", "Cause": "Throttled for long."}, "again": None}
    with pytest.raises(RunFailed, match=r"Throttled for long\. .* keys\.$") as failed:
        machine.clean_up(state, execution)
    assert failed.value.error == "GaveUp"


def test_the_advised_input_contains_the_limits_of_the_run(local: Fleet) -> None:
    local.create(**BY_DAY)
    local.fill(
        {"pk": {"S": f"k{n}"}, "sk": {"S": "1"}, "day": {"S": f"d{n % 9}"}} for n in range(300)
    )
    limits = {"maxConcurrency": 3, "maxReadRate": 900, "maxReadUnits": 500}
    state, _ = local.begin(index="by-day", **limits)
    state["failure"] = {"Error": "GaveUp", "Cause": "throttled"}
    with pytest.raises(RunFailed) as failed:
        local.clean_up(state, local.execution("run"))
    advised = json.loads(str(failed.value).partition("start again with ")[2].rstrip("."))
    assert advised == {"table": local.table, "resume": "run", **limits}
    assert local.start(advised)["keys"] == 9
    with pytest.raises(RunConflict, match="lists the keys of index by-day, not of index other"):
        local.start({**advised, "index": "other"})
    state["failure"] = {"Error": "BudgetSpent", "Cause": "spent"}
    with pytest.raises(RunFailed, match='"maxReadUnits": 1000'):
        local.clean_up(state, local.execution("run"))


def test_a_damaged_commit_is_reported(machine: Fleet) -> None:
    machine.collections(SIZES)
    state, execution = machine.begin("r", segments=64)
    machine.map(state)
    machine.runs.store("r").replace("commits/g00001-s000000.json", b"{}")
    with pytest.raises(BrokenPromise, match="it is not a commit") as broken:
        machine.finish(state, execution)
    state["failure"] = {"Error": "BrokenPromise", "Cause": str(broken.value)}
    with pytest.raises(RunFailed, match="start a new run"):
        machine.clean_up(state, execution)
    foreign = machine.object("runs/r/commits/g00000-s000000.json")
    machine.runs.store("r").replace("commits/g00001-s000000.json", foreign)
    with pytest.raises(BrokenPromise, match="it is the commit of another slice"):
        machine.finish(state, execution)
