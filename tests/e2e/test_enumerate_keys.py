"""The deployed application, end to end: executions started as a user starts them."""

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
    """Runs of a table that take tens of seconds because of their rates."""

    deployed: Deployed
    keys: set[str]

    def start(self, name: str, segments: int, at_once: int) -> str:
        values = {"table": "Slow", "segments": segments, "maxConcurrency": at_once}
        return self.deployed.executions.start({**values, "maxReadRate": RATES[name]}, name)

    def check(self, name: str) -> None:
        """Check that a run ends with all keys, and did not exceed its rate."""
        executions = self.deployed.executions
        arn = executions.state_machine.replace(":stateMachine:", ":execution:")
        run = executions.follow(f"{arn}:{name}", LONGEST_SECONDS)
        assert run.status == "SUCCEEDED", run
        assert self.deployed.listed_keys(name) == Counter(self.keys)
        times = executions.states.describe_execution(executionArn=f"{arn}:{name}")
        seconds = (times["stopDate"] - times["startDate"]).total_seconds()
        assert run.output["read_units"] / seconds <= 1.1 * RATES[name]


@pytest.fixture(scope="module", autouse=True)
def slow_runs(deployed: Deployed) -> SlowRuns:
    """Slow runs that continue while the other tests of this module run."""
    runs = SlowRuns(deployed, deployed.database.collections("Slow", [1] * 800, filling=3_000))
    runs.start("slices", segments=8, at_once=1)
    raised = runs.start("raised", segments=64, at_once=1)
    while not recorded_levels(deployed):
        time.sleep(0.1)  # until the first worker has started alone
    states = deployed.executions.states
    (run,) = states.list_map_runs(executionArn=raised)["mapRuns"]
    states.update_map_run(mapRunArn=run["mapRunArn"], maxConcurrency=2)
    return runs


def recorded_levels(deployed: Deployed) -> set[int]:
    """Return the levels of concurrency that the workers of the run `raised` have recorded."""
    listed = deployed.executions.s3.list_objects_v2(
        Bucket=deployed.executions.bucket, Prefix="runs/raised/levels/"
    )
    keys = [entry["Key"] for entry in listed.get("Contents", ()) if "/turns/" not in entry["Key"]]
    return {json.loads(deployed.executions.read(key))["level"] for key in keys}


def test_a_table_of_30_000_items_over_3_000_keys_is_listed_exactly(deployed: Deployed) -> None:
    sizes = ([10, 10, 9] * 99 + [43] * 3) * 10
    expected = deployed.database.collections("Whole", sizes)
    assert len(expected) == 3_000
    name = "whole"
    run = deployed.complete({"table": "Whole", "segments": 256, "maxConcurrency": 2}, name)
    assert deployed.listed_keys(name) == Counter(expected)
    manifest = deployed.executions.manifest(name)
    assert manifest["keys"] == run.output["keys"] == 3_000
    assert manifest["segments"]["ended"] == 256
    assert manifest["groups"] == 8
    assert manifest["invocations"] >= 8
    prefix = f"s3://{deployed.executions.bucket}/runs/{name}/"
    assert (run.output["manifest"], run.output["parts"]) == (
        f"{prefix}manifest.json",
        f"{prefix}parts.json",
    )
    assert run.output["read_units"] < 128 + 2_370
    deployed.database.client.delete_table(TableName="Whole")


def test_the_table_alone_is_enough_and_a_name_is_used_once(
    deployed: Deployed, small: set[str]
) -> None:
    deployed.complete({"table": "Small"}, "alone")
    assert deployed.listed_keys("alone") == Counter(small)
    with pytest.raises(RunConflict):
        deployed.executions.start({"table": "Small", "segments": 9}, "alone")


def test_a_run_can_have_more_than_a_hundred_groups(deployed: Deployed, small: set[str]) -> None:
    values = {"table": "Small", "segments": 3_300, "maxConcurrency": 4}
    deployed.complete(values, "many-groups")
    assert deployed.executions.manifest("many-groups")["groups"] == 104
    assert deployed.listed_keys("many-groups") == Counter(small)


def test_a_dry_run_ends_with_an_estimate(deployed: Deployed, small: set[str]) -> None:
    run = deployed.complete({"table": "Small", "dryRun": True}, "planned")
    keys = run.output["keys"]
    assert keys["low"] / 1.5 <= len(small) <= keys["high"] * 1.5
    assert run.output["cost"]["total"] > 0
    listed = deployed.executions.s3.list_objects_v2(
        Bucket=deployed.executions.bucket, Prefix="runs/planned/"
    )
    assert [entry["Key"] for entry in listed["Contents"]] == ["runs/planned/estimate-planned.json"]


@pytest.mark.parametrize(
    ("values", "error", "message"),
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
def test_wrong_input_is_refused_with_a_sentence(
    deployed: Deployed, small: set[str], values: Any, error: str, message: str
) -> None:
    before = deployed.alarms()
    run = deployed.run(values)
    assert (run.status, run.error) == ("FAILED", error)
    assert deployed.alarms() == before, "a wrong input raises no alarm"
    assert message in run.cause
    assert "errorMessage" not in run.cause, "the cause is the sentence, and not JSON"


def test_a_refused_input_of_a_schedule_raises_the_alarm(deployed: Deployed) -> None:
    before = deployed.alarms()
    run = deployed.run({"table": "Odd", "scheduled": True})
    assert (run.status, run.error) == ("FAILED", "TableNotFound")
    assert deployed.alarms() == before + 1


def test_a_share_of_the_segments_is_verified(deployed: Deployed, small: set[str]) -> None:
    values = {"table": "Small", "segments": 128, "verifyShare": 0.1}
    run = deployed.complete(values, "checked")
    assert run.output["verify"]["segments"] == 13
    assert run.output["verify"]["missing"] == 0


def test_a_budget_holds_and_the_run_can_be_resumed(deployed: Deployed, small: set[str]) -> None:
    values = {"table": "Small", "segments": 96, "maxConcurrency": 2, "maxReadUnits": 40}
    run = deployed.run(values, "poor")
    assert (run.status, run.error) == ("FAILED", "BudgetSpent")
    assert run.cause.startswith("The rest of maxReadUnits does not pay")
    advised = json.loads(run.cause.partition("start again with ")[2].rstrip("."))
    resume = {"table": "Small", "resume": "poor"}
    assert advised == {**resume, "maxConcurrency": 2, "maxReadUnits": 80}
    progress = json.loads(deployed.executions.read("runs/poor/progress.json"))
    assert not progress["finished"]
    assert progress["read_units"] <= 40
    resumed = deployed.complete({**advised, "maxReadUnits": 400}, "richer")
    assert resumed.output["read_units"] <= 440
    assert deployed.listed_keys("poor") == Counter(small)


def test_functions_that_were_idle_for_weeks_are_awaited(
    deployed: Deployed, small: set[str]
) -> None:
    """Each function refuses its first call. A failed run reports its own error nevertheless."""
    functions = deployed.cloud.client("lambda")
    for name in ("PlanRun", "ScanSegments", "FinishRun", "CleanUp"):
        arn = functions.get_function(FunctionName=f"Keyhop-{name}")["Configuration"]["FunctionArn"]
        functions.tag_resource(Resource=arn, Tags={"idle": "yes"})
    values = {"table": "Small", "segments": 96, "maxConcurrency": 2}
    run = deployed.run({**values, "maxReadUnits": 40}, "asleep")
    assert (run.status, run.error) == ("FAILED", "BudgetSpent")
    assert "start again with" in run.cause
    deployed.complete(values, "awake")
    assert deployed.listed_keys("awake") == Counter(small)
    for name in ("PlanRun", "ScanSegments", "FinishRun", "CleanUp"):
        arn = functions.get_function(FunctionName=f"Keyhop-{name}")["Configuration"]["FunctionArn"]
        assert "idle" not in functions.list_tags(Resource=arn)["Tags"], name


def test_a_poisoned_group_fails_the_run_with_its_cause_and_a_new_run_succeeds(
    deployed: Deployed, small: set[str]
) -> None:
    """Write a commit that is not JSON in the place of the last group's."""
    values = {"table": "Small", "segments": 256, "maxConcurrency": 1}
    before = deployed.alarms()
    execution = deployed.executions.start(values, "poisoned")
    while deployed.executions.progress(execution) is None:
        pass
    deployed.put("runs/poisoned/commits/g00007-s000000.json", b"{")
    run = deployed.executions.follow(execution, LONGEST_SECONDS)
    assert (run.status, run.error) == ("FAILED", "BrokenPromise")
    assert "Group 7 failed. commits/g00007-s000000.json is dam" in run.cause
    assert "start a new run" in run.cause
    assert deployed.alarms() == before + 1
    deployed.complete(values, "healthy")
    assert deployed.listed_keys("healthy") == Counter(small)


def test_killed_and_stopped_workers_change_nothing(slow_runs: SlowRuns) -> None:
    """Wait for the other two runs first, because their workers look the same."""
    slow_runs.check("slices")
    slow_runs.check("raised")
    slow_runs.start("killed", segments=64, at_once=2)
    victim = busy_worker(SCAN_SEGMENTS)
    os.kill(victim, signal.SIGKILL)
    # The second worker hangs until the function's timeout.
    os.kill(busy_worker(SCAN_SEGMENTS, excluded={victim}), signal.SIGSTOP)
    slow_runs.check("killed")


def test_a_slow_group_takes_several_invocations_and_a_rate_holds(slow_runs: SlowRuns) -> None:
    slow_runs.check("slices")
    assert slow_runs.deployed.executions.manifest("slices")["invocations"] >= 2


def test_a_rate_holds_while_the_concurrency_is_raised(slow_runs: SlowRuns) -> None:
    """UpdateMapRun starts a second worker, which waits until the first one knows of it."""
    slow_runs.check("raised")
    assert recorded_levels(slow_runs.deployed) == {1, 2}
