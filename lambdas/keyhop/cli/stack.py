"""A deployment as its stack's outputs tell of it: its state machines, and where its results are."""

from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from functools import cache, partial
from typing import Any

from botocore.exceptions import ClientError

from keyhop.checks import hint
from keyhop.cli.executions import ARN, Execution, Executions, explaining
from keyhop.dynamodb.client import aws_client
from keyhop.dynamodb.endpoint import Endpoint
from keyhop.dynamodb.refusals import error_code
from keyhop.errors import CannotStart, KeyhopError
from keyhop.jobs.request import RUN_ID
from keyhop.jobs.runs import Runs

BUCKET = "ResultsBucketName"
ENUMERATE_KEYS = "EnumerateKeys"
FOR_EACH_KEY = "ForEachKey"

MACHINES = {
    ENUMERATE_KEYS: "StateMachineArn",
    FOR_EACH_KEY: "ForEachKeyArn",
    "ReportKeys": "ReportKeysArn",
    "BuildKeyIndex": "BuildKeyIndexArn",
    "AuditKeyIndex": "AuditKeyIndexArn",
    "RemoveKeyIndex": "RemoveKeyIndexArn",
    "DrainShards": "DrainShardsArn",
    "RekeyBackfill": "RekeyBackfillArn",
    "RekeyVerify": "RekeyVerifyArn",
    "RekeyCutOver": "RekeyCutOverArn",
}
"""The output that names a state machine; a deployment has those of what it was deployed with."""


@dataclass(frozen=True)
class Stack:
    """A deployment. client: makes a client by service."""

    name: str
    outputs: Mapping[str, str]
    client: Callable[[str], Any]
    endpoint: Endpoint = field(default_factory=Endpoint)

    @property
    def bucket(self) -> str:
        return self.outputs[BUCKET]

    @property
    def runs(self) -> Runs:
        return Runs(self.client("s3"), self.bucket)

    def executions(self, machine: str = ENUMERATE_KEYS) -> Executions:
        """Of one of MACHINES, which is deployed."""
        arn = self.outputs[MACHINES[machine]]
        return Executions(self.client("stepfunctions"), arn, self.endpoint)

    def all_executions(self) -> Iterator[Executions]:
        """Of all state machines, that of EnumerateKeys first."""
        for machine, output in MACHINES.items():
            if output in self.outputs:
                yield self.executions(machine)

    def find(self, run: str) -> tuple[Executions, Execution]:
        """An execution by its name or ARN; raises CannotStart."""
        arn = ARN.fullmatch(run)
        if arn is None and not RUN_ID.fullmatch(run):
            raise CannotStart(f"{run!r} is not the name of a run: see keyhop runs.")
        for executions in self.all_executions():
            if arn is not None and not run.startswith(f"{executions.arn('')}"):
                continue
            if found := executions.look(run if arn else executions.arn(run)):
                return executions, found
        raise CannotStart(
            f"Stack {self.name!r} has no run {run!r}: see keyhop runs. Step Functions forgets an "
            f"execution 90 days after its end."
        )


def find_stack(name: str, endpoint: Endpoint) -> Stack:
    """The stack of that name; raises CannotStart if there is none, or if it is none of Keyhop's."""
    client = cache(partial(aws_client, endpoint=endpoint))
    with explaining(endpoint):
        cloudformation = client("cloudformation")
        try:
            (told,) = cloudformation.describe_stacks(StackName=name)["Stacks"]
        except ClientError as error:
            if error_code(error) != "ValidationError":
                raise
            region = cloudformation.meta.region_name
            raise CannotStart(
                f"There is no stack {name!r} in region {region}: "
                f"{_what_there_is(name, cloudformation)}"
            ) from error
    outputs = _outputs(told)
    if BUCKET not in outputs:
        raise CannotStart(
            f"Stack {name!r} ({told['StackStatus']}) has no output {BUCKET}: it is none of "
            f"Keyhop's, or its deployment is not done."
        )
    return Stack(name, outputs, client, endpoint)


def _outputs(told: Mapping[str, Any]) -> dict[str, str]:
    return {one["OutputKey"]: one["OutputValue"] for one in told.get("Outputs", ())}


def _what_there_is(name: str, cloudformation: Any) -> str:
    """What else may have been meant. To list stacks is a right of its own."""
    names: list[str] = []
    with suppress(ClientError, KeyhopError):
        pages = cloudformation.get_paginator("describe_stacks").paginate()
        stacks = (stack for page in pages for stack in page["Stacks"])
        ours = {BUCKET, MACHINES[ENUMERATE_KEYS]}
        names = [stack["StackName"] for stack in stacks if ours <= _outputs(stack).keys()]
    if names:
        return hint(name, names) or f"Keyhop is there as {', '.join(names)}; give --stack."
    return "deploy it first (npx cdk deploy), or give --stack or --region."
