"""Check each patch of ministack that this project needs, with a simple function and map."""

import gzip
import json
import os
import signal
import time
from collections.abc import Callable
from itertools import count
from pathlib import Path
from typing import Any

import pytest

from local.cloud import Cloud
from local.emulator import MENDED, mended
from testing.executions import Executions
from tests.e2e.conftest import LONGEST_SECONDS, create_function
from tests.e2e.processes import busy_worker, workers_of

CODE = """
import os
import time

class Poisoned(Exception):
    pass

def handler(event, context):
    if event.get("poison"):
        raise Poisoned("one sentence")
    end = time.time() + event.get("seconds", 0)
    while time.time() < end or not os.path.exists(event.get("until", "/")):
        pass
    return {"done": True}
"""
ROLE = "arn:aws:iam::000000000000:role/any"

Machine = Callable[[dict[str, Any]], Executions]


def test_a_patch_of_another_version_is_refused() -> None:
    for name, mends in MENDED.items():
        with pytest.raises(SystemExit, match=rf"{name} is not as in ministack 1\.5\.33"):
            mended(name, "another version", mends)


@pytest.fixture(scope="module")
def function(cloud: Cloud) -> str:
    return create_function(cloud, "probe", CODE, Timeout=10)


@pytest.fixture(scope="module")
def machine(cloud: Cloud) -> Machine:
    numbers = count()

    def create(definition: dict[str, Any]) -> Executions:
        arn = cloud.client("stepfunctions").create_state_machine(
            name=f"probe-{next(numbers)}", roleArn=ROLE, definition=json.dumps(definition)
        )["stateMachineArn"]
        return Executions(cloud.client, arn, "")

    return create


def task(function: str, **more: Any) -> dict[str, Any]:
    return {"Type": "Task", "Resource": function, "End": True, **more}


def test_an_exception_is_caught_by_its_name_with_the_cause_of_lambda(
    machine: Machine, function: str
) -> None:
    caught = [{"ErrorEquals": ["Poisoned"], "ResultPath": "$.failure", "Next": "Caught"}]
    states = {"Call": task(function, Catch=caught), "Caught": {"Type": "Pass", "End": True}}
    executions = machine({"StartAt": "Call", "States": states})
    run = executions.follow(executions.start({"poison": True}), LONGEST_SECONDS)
    assert run.status == "SUCCEEDED"
    assert run.output["failure"]["Error"] == "Poisoned"
    cause = json.loads(run.output["failure"]["Cause"])
    assert (cause["errorType"], cause["errorMessage"]) == ("Poisoned", "one sentence")
    assert set(cause) == {"errorType", "errorMessage", "requestId", "stackTrace"}


@pytest.mark.parametrize(
    ("send", "error"), [(signal.SIGKILL, "Runtime.ExitError"), (signal.SIGSTOP, "Sandbox.Timedout")]
)
def test_a_worker_that_dies_or_hangs_is_retried_by_the_error_of_lambda(
    machine: Machine, function: str, send: signal.Signals, error: str, tmp_path: Path
) -> None:
    """Send a signal to a worker that runs until then."""
    retry = [{"ErrorEquals": [error], "IntervalSeconds": 1, "MaxAttempts": 1}]
    executions = machine({"StartAt": "Call", "States": {"Call": task(function, Retry=retry)}})
    execution = executions.start({"until": str(tmp_path / "over")})
    os.kill(busy_worker("probe"), send)
    (tmp_path / "over").touch()
    assert executions.follow(execution, LONGEST_SECONDS).status == "SUCCEEDED"


def test_a_worker_that_hangs_while_it_starts_is_retried(machine: Machine, cloud: Cloud) -> None:
    retry = [{"ErrorEquals": ["Runtime.ExitError"], "IntervalSeconds": 1, "MaxAttempts": 1}]
    call = task(create_function(cloud, "hangs", CODE, Timeout=10), Retry=retry)
    executions = machine({"StartAt": "Call", "States": {"Call": call}})
    execution = executions.start({})
    while not (starting := workers_of("hangs")):
        pass
    os.kill(starting.pop(), signal.SIGSTOP)
    assert executions.follow(execution, LONGEST_SECONDS).status == "SUCCEEDED"


def mapped(function: str, **more: Any) -> dict[str, Any]:
    return {
        "StartAt": "Each",
        "States": {
            "Each": {
                "Type": "Map",
                "ItemsPath": "$.items",
                "MaxConcurrencyPath": "$.atOnce",
                "ToleratedFailurePercentage": 0,
                "ItemProcessor": {
                    "ProcessorConfig": {"Mode": "DISTRIBUTED", "ExecutionType": "STANDARD"},
                    "StartAt": "Call",
                    "States": {"Call": task(function)},
                },
                "End": True,
                **more,
            }
        },
    }


def until_running(executions: Executions, execution: str, many: int) -> None:
    while (progress := executions.progress(execution)) is None or progress.running != many:
        pass


def max_running(executions: Executions, execution: str, seconds: float) -> int:
    """Return the maximum number of running children until the map ends or `seconds` are over."""
    maximum = 0
    deadline = time.monotonic() + seconds
    while time.monotonic() < deadline:
        progress = executions.progress(execution)
        if progress is not None:
            maximum = max(maximum, progress.running)
            if progress.done == progress.total:
                break
    return maximum


def gated(folder: Path, many: int) -> tuple[list[Path], list[dict[str, str]]]:
    """Return files, and items of a map, each of which ends when its file exists."""
    gates = [folder / str(number) for number in range(many)]
    return gates, [{"until": str(gate)} for gate in gates]


def test_a_map_takes_its_concurrency_from_the_input(
    machine: Machine, function: str, tmp_path: Path
) -> None:
    executions = machine(mapped(function))
    gates, items = gated(tmp_path, 9)
    execution = executions.start({"items": items, "atOnce": 3})
    until_running(executions, execution, 3)
    for gate in gates:
        gate.touch()
    assert max_running(executions, execution, LONGEST_SECONDS) <= 3
    assert executions.follow(execution, LONGEST_SECONDS).status == "SUCCEEDED"


def test_a_map_reads_the_lines_of_a_gzipped_object(machine: Machine, cloud: Cloud) -> None:
    s3, lines = cloud.client("s3"), [{"number": 1}, {"number": 2}]
    s3.create_bucket(Bucket="packed")
    packed = gzip.compress("".join(f"{json.dumps(line)}\n" for line in lines).encode())
    s3.put_object(Bucket="packed", Key="lines.jsonl.gz", Body=packed)
    each = {
        "Type": "Map",
        "ItemReader": {
            "Resource": "arn:aws:states:::s3:getObject",
            "ReaderConfig": {"InputType": "JSONL"},
            "Parameters": {"Bucket": "packed", "Key": "lines.jsonl.gz"},
        },
        "ItemProcessor": {
            "ProcessorConfig": {"Mode": "DISTRIBUTED", "ExecutionType": "STANDARD"},
            "StartAt": "Return",
            "States": {"Return": {"Type": "Pass", "End": True}},
        },
        "End": True,
    }
    executions = machine({"StartAt": "Each", "States": {"Each": each}})
    assert executions.follow(executions.start({}), LONGEST_SECONDS).output == lines


def test_concurrency_can_be_changed_while_a_map_runs(
    machine: Machine, function: str, tmp_path: Path
) -> None:
    executions = machine(mapped(function))
    gates, items = gated(tmp_path, 24)
    execution = executions.start({"items": items, "atOnce": 4})
    until_running(executions, execution, 4)
    (run,) = executions.states.list_map_runs(executionArn=execution)["mapRuns"]
    executions.states.update_map_run(mapRunArn=run["mapRunArn"], maxConcurrency=1)
    for gate in gates[:4]:
        gate.touch()
    until_running(executions, execution, 1)
    assert max_running(executions, execution, 1.5) == 1
    executions.states.update_map_run(mapRunArn=run["mapRunArn"], maxConcurrency=6)
    until_running(executions, execution, 6)
    for gate in gates:
        gate.touch()
    assert max_running(executions, execution, LONGEST_SECONDS) <= 6
    assert executions.follow(execution, LONGEST_SECONDS).status == "SUCCEEDED"


def test_a_map_without_tolerance_starts_no_child_after_a_failure(
    machine: Machine, function: str
) -> None:
    executions = machine(mapped(function))
    items = [{"poison": True}] + [{"seconds": 0.1}] * 30
    run = executions.follow(executions.start({"items": items, "atOnce": 1}), LONGEST_SECONDS)
    assert (run.status, run.error) == ("FAILED", "States.ExceedToleratedFailureThreshold")
