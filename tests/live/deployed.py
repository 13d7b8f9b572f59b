"""An existing deployment: its state machine, the tables it may read, and how to allow more."""

import json
import shlex
from dataclasses import dataclass
from typing import Any

import boto3
from botocore.exceptions import ClientError
from keyhop.jobs.price import FunctionSize

from tests.live.fixtures import Fixture, enumerated
from tests.live.report import Refused

MACHINE_SUFFIX = "-EnumerateKeys"
DEFAULT_STACK = "Keyhop"
GIVEN_STACK = "STACK_NAME and STATE_MACHINE_ARN"


@dataclass(frozen=True, slots=True)
class Deployed:
    """A deployment. `tables` is its allow-list of names and ARNs."""

    arn: str
    bucket: str
    tables: list[str]
    worker: FunctionSize

    @property
    def stack_name(self) -> str:
        """The name of the stack, which the state machine's name begins with."""
        return self.arn.rpartition(":")[2].removesuffix(MACHINE_SUFFIX)

    def check(self, tables: list[Fixture], region: str, account: str) -> None:
        """Raise Refused unless it is in this account and region and may read the suite's tables."""
        if self.arn.split(":")[3:5] != [region, account]:
            raise Refused(
                f"{self.arn} is not in account {account}, region {region}, where the tables would "
                f"be made: set AWS_DEFAULT_REGION or AWS_PROFILE."
            )
        missing = [t.name for t in enumerated(tables) if t.name not in self.tables]
        if missing:
            raise Refused(
                f"{self.arn} may not read {', '.join(missing)}. Allow them, with the context that "
                f"it is deployed with:\n\n"
                f"  {deploy_command([*self.tables, *missing], self.stack_name)}\n\n"
                f"or leave {GIVEN_STACK} out: then the suite deploys a stack of its own."
            )


def find(arn: str | None, stack: str) -> Deployed:
    """Find a deployment by its ARN, or by its stack's output; raise Refused if it is missing."""
    if not arn:
        arn = _arn_of(stack)
    machine = boto3.client("stepfunctions").describe_state_machine(stateMachineArn=arn)
    # The definition names the function, whose environment has the settings of the deployment.
    plan_run = json.loads(machine["definition"])["States"]["PlanRun"]["Parameters"]["FunctionName"]
    function = boto3.client("lambda").get_function_configuration(FunctionName=plan_run)
    settings: dict[str, Any] = function["Environment"]["Variables"]
    return Deployed(
        arn=arn,
        bucket=settings["KEYHOP_BUCKET"],
        tables=json.loads(settings["KEYHOP_TABLES"]),
        worker=FunctionSize(
            int(settings["KEYHOP_WORKER_MEMORY_MB"]), settings["KEYHOP_ARCHITECTURE"]
        ),
    )


def _arn_of(stack: str) -> str:
    try:
        (details,) = boto3.client("cloudformation").describe_stacks(StackName=stack)["Stacks"]
    except ClientError as error:
        if error.response["Error"]["Code"] != "ValidationError":
            raise
        raise Refused(
            f"There is no stack {stack}. Leave {GIVEN_STACK} out, then the suite deploys one of "
            f"its own; or leave the state machine out: WITHOUT_STACK=1."
        ) from error
    outputs = {o["OutputKey"]: o["OutputValue"] for o in details.get("Outputs", ())}
    if "StateMachineArn" not in outputs:
        raise Refused(
            f"The stack {stack} ({details['StackStatus']}) has no output StateMachineArn: is it "
            f"Keyhop's, and is its deployment done?"
        )
    return str(outputs["StateMachineArn"])


def deploy_command(tables: list[str], stack: str) -> str:
    """Return the command that deploys with these tables."""
    command = ["npx", "cdk", "deploy", "-c", f"tables={','.join(tables)}"]
    if stack != DEFAULT_STACK:
        command += ["-c", f"stackName={stack}"]
    return shlex.join(command)
