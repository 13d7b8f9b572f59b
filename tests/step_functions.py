"""Step Functions with the state machine EnumerateKeys, whose executions run in this process.

Each description of an execution advances it by at most one step: plan, map, finish.
"""

import json
from collections.abc import Iterator
from datetime import UTC, datetime
from operator import itemgetter
from types import SimpleNamespace
from typing import Any

from botocore.exceptions import ClientError
from keyhop.errors import KeyhopError
from keyhop.public.deployment import OpenStack

from tests.machine import Machine

MACHINE = "arn:aws:states:eu-west-1:123456789012:stateMachine:Keyhop-EnumerateKeys"


class StepFunctions:
    """A boto3 client with the methods that keyhop.Deployment calls."""

    def __init__(self, machine: Machine) -> None:
        self.meta = SimpleNamespace(endpoint_url="http://127.0.0.1:1")
        self.inputs: list[Any] = []
        self._machine = machine
        self._executions: dict[str, dict[str, Any]] = {}
        self._steps: dict[str, Iterator[dict[str, Any]]] = {}

    def start_execution(self, *, stateMachineArn: str, input: str, name: str) -> dict[str, Any]:  # noqa: N803
        assert stateMachineArn == MACHINE
        arn = f"{MACHINE.replace(':stateMachine:', ':execution:')}:{name}"
        if arn in self._executions:
            raise ClientError({"Error": {"Code": "ExecutionAlreadyExists"}}, "StartExecution")
        self.inputs.append(json.loads(input))
        started = {"status": "RUNNING", "startDate": datetime.now(UTC), "input": input}
        self._executions[arn] = {"executionArn": arn, **started}
        self._steps[arn] = self._run(json.loads(input), name)
        return {"executionArn": arn}

    def describe_execution(self, *, executionArn: str) -> dict[str, Any]:  # noqa: N803
        if executionArn not in self._executions:
            raise ClientError({"Error": {"Code": "ExecutionDoesNotExist"}}, "DescribeExecution")
        execution = self._executions[executionArn]
        if execution["status"] == "RUNNING":
            execution |= next(self._steps[executionArn])
        return dict(execution)

    def list_executions(self, *, stateMachineArn: str, maxResults: int) -> dict[str, Any]:  # noqa: N803
        executions = sorted(self._executions.values(), key=itemgetter("startDate"), reverse=True)
        return {"executions": executions[:maxResults]}

    def stop_execution(self, *, executionArn: str) -> None:  # noqa: N803
        self._executions[executionArn] |= {"status": "ABORTED", "stopDate": datetime.now(UTC)}

    def _run(self, values: Any, name: str) -> Iterator[dict[str, Any]]:
        yield {}
        yield {}
        ended: dict[str, Any] = {"status": "SUCCEEDED"}
        try:
            execution = self._machine.execution(name)
            state = self._machine.plan(values, execution)
            if state["dryRun"]:
                result = state["estimate"]
            else:
                yield {}
                self._machine.map(state)
                yield {}
                yield {}
                result = self._machine.go_on({**state, "next": "finish"}, execution, values)
            ended["output"] = json.dumps(result)
        except KeyhopError as error:
            ended = {"status": "FAILED", "error": type(error).__name__, "cause": str(error)}
        yield {**ended, "stopDate": datetime.now(UTC)}


def stack_of(machine: Machine, states: Any) -> OpenStack:
    """Return the deployment that has the machine's bucket."""
    outputs = {"ResultsBucketName": machine.runs.bucket, "StateMachineArn": MACHINE}
    clients = {"s3": machine.runs.s3, "stepfunctions": states}
    return OpenStack("Keyhop", outputs, clients.__getitem__)
