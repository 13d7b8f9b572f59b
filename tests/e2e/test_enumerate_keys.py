"""The deployed application, end to end: by the CDK's command line, and started as by a user."""

import json
import os
import signal
import time
from collections import Counter
from dataclasses import dataclass
from typing import Any

import pytest
from keyhop.errors import RunConflict

from tests.e2e.conftest import LONGEST_SECONDS, Deployed
from tests.e2e.processes import busy_worker

SCAN_SEGMENTS = "Keyhop-ScanSegments"
RATES = {"killed": 60.0, "slices": 12.0, "raised": 25.0}


@dataclass(frozen=True)
class SlowRuns:
    """Runs of one table, which last tens of seconds because of their rates."""

    deployed: Deployed
    keys: set[str]

    def start(self, name: str, segments: int, at_once: int) -> str:
        given = {"table": "Slow", "segments": segments, "maxConcurrency": at_once}
        return self.deployed.executions.start({**given, "maxReadRate": RATES[name]}, name)

    def check(self, name: str) -> None:
        """It ends with all keys, and has kept to its rate."""
        executions = self.deployed.executions
        arn = executions.state_machine.replace(":stateMachine:", ":execution:")
        ended = executions.follow(f"{arn}:{name}", LONGEST_SECONDS)
        assert ended.status == "SUCCEEDED", ended
        assert self.deployed.found(name) == Counter(self.keys)
        times = executions.states.describe_execution(executionArn=f"{arn}:{name}")
        seconds = (times["stopDate"] - times["startDate"]).total_seconds()
        assert ended.output["read_units"] / seconds <= 1.1 * RATES[name]


@pytest.fixture(scope="module", autouse=True)
def slow_runs(deployed: Deployed) -> SlowRuns:
    """They begin here, and go on while the other tests of this module run."""
    runs = SlowRuns(deployed, deployed.database.collections("Slow", [1] * 800, filling=3_000))
    runs.start("slices", segments=8, at_once=1)
    raised = runs.start("raised", segments=64, at_once=1)
    while not levels_noted(deployed):
        time.sleep(0.1)  # until the first worker has begun, alone
    states = deployed.executions.states
    (run,) = states.list_map_runs(executionArn=raised)["mapRuns"]
    states.update_map_run(mapRunArn=run["mapRunArn"], maxConcurrency=2)
    return runs


def levels_noted(deployed: Deployed) -> set[int]:
    """The levels of concurrency that the workers of the run `raised` have heard of."""
    listed = deployed.executions.s3.list_objects_v2(
        Bucket=deployed.executions.bucket, Prefix="runs/raised/levels/"
    )
    keys = [entry["Key"] for entry in listed.get("Contents", ()) if "/turns/" not in entry["Key"]]
    return {json.loads(deployed.executions.read(key))["level"] for key in keys}


def test_a_table_of_30_000_items_over_3_000_keys_comes_out_exactly(deployed: Deployed) -> None:
    sizes = ([10, 10, 9] * 99 + [43] * 3) * 10
    expected = deployed.database.collections("Whole", sizes)
    assert len(expected) == 3_000
    name = "whole"
    ended = deployed.done({"table": "Whole", "segments": 256, "maxConcurrency": 2}, name)
    assert deployed.found(name) == Counter(expected)
    manifest = deployed.executions.manifest(name)
    assert manifest["keys"] == ended.output["keys"] == 3_000
    assert manifest["segments"]["ended"] == 256
    assert manifest["groups"] == 8
    assert manifest["invocations"] >= 8
    prefix = f"s3://{deployed.executions.bucket}/runs/{name}/"
    assert (ended.output["manifest"], ended.output["parts"]) == (
        f"{prefix}manifest.json",
        f"{prefix}parts.json",
    )
    assert ended.output["read_units"] < 128 + 2_370
    deployed.database.client.delete_table(TableName="Whole")


def test_the_table_alone_is_enough_and_a_name_is_given_once(
    deployed: Deployed, small: set[str]
) -> None:
    deployed.done({"table": "Small"}, "alone")
    assert deployed.found("alone") == Counter(small)
    with pytest.raises(RunConflict):
        deployed.executions.start({"table": "Small", "segments": 9}, "alone")


def test_more_than_a_hundred_groups(deployed: Deployed, small: set[str]) -> None:
    given = {"table": "Small", "segments": 3_300, "maxConcurrency": 4}
    deployed.done(given, "many-groups")
    assert deployed.executions.manifest("many-groups")["groups"] == 104
    assert deployed.found("many-groups") == Counter(small)


def test_a_dry_run_ends_with_an_estimate(deployed: Deployed, small: set[str]) -> None:
    ended = deployed.done({"table": "Small", "dryRun": True}, "planned")
    keys = ended.output["keys"]
    assert keys["low"] / 1.5 <= len(small) <= keys["high"] * 1.5
    assert ended.output["cost"]["total"] > 0
    listed = deployed.executions.s3.list_objects_v2(
        Bucket=deployed.executions.bucket, Prefix="runs/planned/"
    )
    assert [entry["Key"] for entry in listed["Contents"]] == ["runs/planned/estimate-planned.json"]


@pytest.mark.parametrize(
    ("given", "error", "told"),
    [
        ({"table": "Small", "segmetns": 8}, "InvalidInput", "unknown: 'segmetns'"),
        ({"table": "Small", "segments": "8"}, "InvalidInput", "segments must be a whole number"),
        ({}, "InvalidInput", "table is missing"),
        ([], "InvalidInput", "must be a JSON object"),
        ({"table": "Payroll"}, "InvalidInput", "not one of the tables of this deployment"),
        ({"table": "Odd"}, "TableNotFound", "There is no table 'Odd'"),
        ({"table": "Small", "index": "by-day"}, "IndexNotFound", "has no index 'by-day'"),
        ({"table": "Small", "resume": "never"}, "RunConflict", "There is no run 'never'"),
    ],
)
def test_a_wrong_input_is_refused_with_a_sentence(
    deployed: Deployed, small: set[str], given: Any, error: str, told: str
) -> None:
    before = deployed.alarms()
    ended = deployed.run(given)
    assert (ended.status, ended.error) == ("FAILED", error)
    assert deployed.alarms() == before, "who asked is told, and nobody else"
    assert told in ended.cause
    assert "errorMessage" not in ended.cause, "the cause is the sentence itself, and no JSON"


def test_a_schedules_input_that_is_refused_raises_the_alarm(deployed: Deployed) -> None:
    before = deployed.alarms()
    ended = deployed.run({"table": "Odd", "scheduled": True})
    assert (ended.status, ended.error) == ("FAILED", "TableNotFound")
    assert deployed.alarms() == before + 1


def test_the_check_is_a_state_of_its_own(deployed: Deployed, small: set[str]) -> None:
    given = {"table": "Small", "segments": 128, "verifyShare": 0.1}
    ended = deployed.done(given, "checked")
    assert ended.output["verify"]["segments"] == 13
    assert ended.output["verify"]["missing"] == 0


def test_a_budget_of_units_holds_and_a_resume_goes_on(deployed: Deployed, small: set[str]) -> None:
    given = {"table": "Small", "segments": 96, "maxConcurrency": 2, "maxReadUnits": 40}
    ended = deployed.run(given, "poor")
    assert (ended.status, ended.error) == ("FAILED", "BudgetSpent")
    assert ended.cause.startswith("The rest of maxReadUnits does not pay")
    advised = json.loads(ended.cause.partition("start again with ")[2].rstrip("."))
    assert advised == {
        "table": "Small",
        "resume": "poor",
        "maxConcurrency": 2,
        "maxReadUnits": 80,
    }
    progress = json.loads(deployed.executions.read("runs/poor/progress.json"))
    assert not progress["finished"]
    assert progress["read_units"] <= 40
    resumed = deployed.done({**advised, "maxReadUnits": 400}, "richer")
    assert resumed.output["read_units"] <= 440
    assert deployed.found("poor") == Counter(small)


def test_functions_that_were_idle_for_weeks_are_waited_for(
    deployed: Deployed, small: set[str]
) -> None:
    """Each refuses its first call. The error of a run that fails is not lost either."""
    functions = deployed.cloud.client("lambda")
    for name in ("PlanRun", "ScanSegments", "FinishRun", "CleanUp"):
        arn = functions.get_function(FunctionName=f"Keyhop-{name}")["Configuration"]["FunctionArn"]
        functions.tag_resource(Resource=arn, Tags={"idle": "yes"})
    given = {"table": "Small", "segments": 96, "maxConcurrency": 2}
    ended = deployed.run({**given, "maxReadUnits": 40}, "asleep")
    assert (ended.status, ended.error) == ("FAILED", "BudgetSpent")
    assert "start again with" in ended.cause
    deployed.done(given, "awake")
    assert deployed.found("awake") == Counter(small)
    for name in ("PlanRun", "ScanSegments", "FinishRun", "CleanUp"):
        arn = functions.get_function(FunctionName=f"Keyhop-{name}")["Configuration"]["FunctionArn"]
        assert "idle" not in functions.list_tags(Resource=arn)["Tags"], name


def test_a_poisoned_group_fails_the_run_with_its_cause_and_a_new_run_succeeds(
    deployed: Deployed, small: set[str]
) -> None:
    """The poison: a commit that is not JSON, where the last group will look for its own."""
    given = {"table": "Small", "segments": 256, "maxConcurrency": 1}
    before = deployed.alarms()
    execution = deployed.executions.start(given, "poisoned")
    while deployed.executions.progress(execution) is None:
        pass
    deployed.put("runs/poisoned/commits/g00007-s000000.json", b"{")
    ended = deployed.executions.follow(execution, LONGEST_SECONDS)
    assert (ended.status, ended.error) == ("FAILED", "BrokenPromise")
    assert "Group 7 failed. commits/g00007-s000000.json is dam" in ended.cause
    assert "start a new run" in ended.cause
    assert deployed.alarms() == before + 1
    deployed.done(given, "healthy")
    assert deployed.found("healthy") == Counter(small)


def test_killed_and_halted_workers_change_nothing(slow_runs: SlowRuns) -> None:
    """After the other two, whose workers are not to be taken for this one's."""
    slow_runs.check("slices")
    slow_runs.check("raised")
    slow_runs.start("killed", segments=64, at_once=2)
    victim = busy_worker(SCAN_SEGMENTS)
    os.kill(victim, signal.SIGKILL)
    other = busy_worker(SCAN_SEGMENTS, but={victim})
    os.kill(other, signal.SIGSTOP)  # it hangs until the function's time is over
    slow_runs.check("killed")


def test_a_worker_whose_time_is_over_goes_on_and_a_rate_holds(slow_runs: SlowRuns) -> None:
    """One group of half a minute, workers of less: it takes several invocations."""
    slow_runs.check("slices")
    assert slow_runs.deployed.executions.manifest("slices")["invocations"] >= 2


def test_a_rate_holds_while_somebody_raises_the_concurrency(slow_runs: SlowRuns) -> None:
    """UpdateMapRun lets a second worker begin: it waits until the first has heard of it."""
    slow_runs.check("raised")
    assert levels_noted(slow_runs.deployed) == {1, 2}
