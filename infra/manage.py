"""A state machine that prepares, has jobs walk over a table, and finishes."""

from aws_cdk import Stack
from aws_cdk import aws_lambda as lambda_
from constructs import Construct

from infra.config import Config
from infra.job import Job
from infra.machines import Machine
from infra.permissions import allow

DEFINITION = "manage"
WAITING_RULE = "StepFunctionsGetEventsForStepFunctionsExecutionRule"
"""The rule by which Step Functions hears that an execution has ended (AWS documentation)."""


class ManageMachine(Machine):
    """The state machine `name`, which does `action`. manage: takes its steps; walks: its jobs."""

    def __init__(
        self,
        scope: Construct,
        name: str,
        config: Config,
        action: str,
        manage: lambda_.Function,
        walks: Job,
    ) -> None:
        arns = {
            "ManageIndexArn": manage.function_arn,
            "WalkKeyIndexesArn": walks.state_machine_arn,
        }
        super().__init__(scope, name, config, DEFINITION, {"Action": action, **arns})
        allow(self, "PrepareAndFinish", ["lambda:InvokeFunction"], [manage.function_arn])
        allow(self, "WalkOverTheTable", ["states:StartExecution"], [walks.state_machine_arn])
        allow(
            self,
            "WaitForTheEndOfAWalkOrStopIt",
            ["states:DescribeExecution", "states:StopExecution"],
            [walks.executions],
            wildcard="Step Functions names a walk when it starts it.",
        )
        rule = Stack.of(self).format_arn(
            service="events", resource="rule", resource_name=WAITING_RULE
        )
        allow(
            self,
            "HearThatAWalkHasEnded",
            ["events:PutTargets", "events:PutRule", "events:DescribeRule"],
            [rule],
        )
