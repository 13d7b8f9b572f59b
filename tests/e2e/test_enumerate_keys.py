"""The deployed application, end to end: by the CDK's command line, and started as by a user."""

import json
import os
import signal
import time
from collections import Counter
from typing import Any

import pytest

from tests.e2e.conftest import LONGEST_SECONDS, Deployed
from tests.e2e.processes import busy_worker

SCAN_SEGMENTS = "Keyhop-ScanSegments"


def test_a_table_of_100_000_items_over_3_000_keys_comes_out_exactly(deployed: Deployed) -> None:
    expected = deployed.database.collections("Whole", [34, 33, 33] * 990 + [100] * 30)
    assert len(expected) == 3_000
    ended = deployed.run({"table": "Whole", "segments": 256, "maxConcurrency": 2}, "whole")
    assert ended.status == "SUCCEEDED", ended
    assert deployed.found("whole") == Counter(expected)
    manifest = deployed.executions.manifest("whole")
    assert manifest["keys"] == ended.output["keys"] == 3_000
    assert manifest["segments"]["ended"] == 256
    assert manifest["groups"] == 8
    assert manifest["invocations"] >= 8
    prefix = f"s3://{deployed.executions.bucket}/runs/whole/"
    assert (ended.output["manifest"], ended.output["parts"]) == (
        f"{prefix}manifest.json",
        f"{prefix}parts.json",
    )
    assert ended.output["read_units"] < 2_500


def test_the_table_alone_is_enough(deployed: Deployed, small: set[str]) -> None:
    ended = deployed.run({"table": "Small"}, "alone")
    assert ended.status == "SUCCEEDED", ended
    assert deployed.found("alone") == Counter(small)


def test_more_than_a_hundred_groups(deployed: Deployed, small: set[str]) -> None:
    given = {"table": "Small", "segments": 3_300, "maxConcurrency": 4}
    ended = deployed.run(given, "many-groups")
    assert ended.status == "SUCCEEDED", ended
    assert deployed.executions.manifest("many-groups")["groups"] == 104
    assert deployed.found("many-groups") == Counter(small)


def test_a_plan_only_ends_with_an_estimate(deployed: Deployed, small: set[str]) -> None:
    ended = deployed.run({"table": "Small", "planOnly": True}, "planned")
    assert ended.status == "SUCCEEDED", ended
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
    execution = deployed.executions.start(given)
    ended = deployed.executions.follow(execution, 60)
    assert (ended.status, ended.error) == ("FAILED", error)
    assert told in ended.cause
    raw = deployed.executions.states.describe_execution(executionArn=execution)["cause"]
    assert raw == ended.cause, "the cause is the sentence itself, and no JSON"


def test_the_check_is_a_state_of_its_own(deployed: Deployed, small: set[str]) -> None:
    given = {"table": "Small", "segments": 128, "verifyShare": 0.1}
    ended = deployed.run(given, "checked")
    assert ended.status == "SUCCEEDED", ended
    assert ended.output["verify"]["segments"] == 13
    assert ended.output["verify"]["missing"] == 0


def test_a_second_run_of_the_same_name_is_refused_or_the_same(
    deployed: Deployed, small: set[str]
) -> None:
    states = deployed.executions.states
    assert deployed.run({"table": "Small"}, "named").status == "SUCCEEDED"
    with pytest.raises(states.exceptions.ExecutionAlreadyExists):
        deployed.executions.start({"table": "Small", "segments": 9}, "named")


def test_a_budget_of_units_holds_and_a_resume_goes_on(deployed: Deployed, small: set[str]) -> None:
    given = {"table": "Small", "segments": 96, "maxConcurrency": 2, "maxReadUnits": 40}
    ended = deployed.run(given, "poor")
    assert (ended.status, ended.error) == ("FAILED", "RunFailed")
    assert ended.cause.startswith("BudgetSpent: ")
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
    resumed = deployed.run({**advised, "maxReadUnits": 400}, "richer")
    assert resumed.status == "SUCCEEDED", resumed
    assert resumed.output["read_units"] <= 440
    assert deployed.found("poor") == Counter(small)


def test_a_poisoned_group_fails_the_run_with_its_cause_and_a_new_run_succeeds(
    deployed: Deployed, small: set[str]
) -> None:
    """The poison: a commit that is not JSON, where the last group will look for its own."""
    given = {"table": "Small", "segments": 512, "maxConcurrency": 1}
    execution = deployed.executions.start(given, "poisoned")
    while deployed.executions.progress(execution) is None:
        pass
    deployed.put("runs/poisoned/commits/g00015-s000000.json", b"{")
    ended = deployed.executions.follow(execution, LONGEST_SECONDS)
    assert (ended.status, ended.error) == ("FAILED", "RunFailed")
    assert "Group 15 failed. BrokenPromise: commits/g00015-s000000.json is dam" in ended.cause
    assert "start a new run" in ended.cause
    assert deployed.run(given, "healthy").status == "SUCCEEDED"
    assert deployed.found("healthy") == Counter(small)


@pytest.fixture(scope="module")
def slow(deployed: Deployed) -> set[str]:
    """A table that takes a while under a low rate: 500 read units at least."""
    return deployed.database.collections("Slow", [1] * 1_000, filling=3_000)


def test_killed_and_halted_workers_change_nothing(deployed: Deployed, slow: set[str]) -> None:
    given = {"table": "Slow", "segments": 64, "maxConcurrency": 2, "maxReadRate": 60}
    execution = deployed.executions.start(given, "killed")
    victim = busy_worker(SCAN_SEGMENTS)
    os.kill(victim, signal.SIGKILL)
    other = busy_worker(SCAN_SEGMENTS, but={victim})
    os.kill(other, signal.SIGSTOP)  # it hangs until the function's time is over
    ended = deployed.executions.follow(execution, 110)
    assert ended.status == "SUCCEEDED", ended
    assert deployed.found("killed") == Counter(slow)


def test_a_worker_whose_time_is_over_goes_on_and_a_rate_holds(
    deployed: Deployed, slow: set[str]
) -> None:
    """One group of a minute, workers of half a minute: it takes several invocations."""
    rate = 12.0
    given = {"table": "Slow", "segments": 8, "maxConcurrency": 1, "maxReadRate": rate}
    began = time.monotonic()
    ended = deployed.run(given, "slices", 110)
    took = time.monotonic() - began
    assert ended.status == "SUCCEEDED", ended
    assert deployed.found("slices") == Counter(slow)
    assert deployed.executions.manifest("slices")["invocations"] >= 2
    assert ended.output["read_units"] / took <= 1.1 * rate


def test_a_rate_holds_while_somebody_raises_the_concurrency(
    deployed: Deployed, slow: set[str]
) -> None:
    """UpdateMapRun lets a second worker begin: it waits until the first has heard of it."""
    rate = 25.0
    given = {"table": "Slow", "segments": 64, "maxConcurrency": 1, "maxReadRate": rate}
    states = deployed.executions.states
    began = time.monotonic()
    execution = deployed.executions.start(given, "raised")
    at = {"Bucket": deployed.executions.bucket, "Prefix": "runs/raised/levels/"}
    while not deployed.executions.s3.list_objects_v2(**at)["KeyCount"]:
        time.sleep(0.1)  # until the first worker has begun, alone
    runs = states.list_map_runs(executionArn=execution)["mapRuns"]
    states.update_map_run(mapRunArn=runs[0]["mapRunArn"], maxConcurrency=2)
    ended = deployed.executions.follow(execution, 110)
    took = time.monotonic() - began
    assert ended.status == "SUCCEEDED", ended
    assert deployed.found("raised") == Counter(slow)
    assert ended.output["read_units"] / took <= 1.1 * rate
    noted = deployed.executions.s3.list_objects_v2(**at)["Contents"]
    levels = {json.loads(deployed.executions.read(entry["Key"]))["level"] for entry in noted}
    assert levels == {1, 2}
