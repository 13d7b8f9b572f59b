"""Key indexes: the keeper on the tables' streams, and the state machines that build and check.

Streams, indexes and the keeper's mappings are made by BuildKeyIndex and not by the stack: a table
belongs to somebody else, and the ARN of its stream changes. So the stack has to let go of them when
it is destroyed: that is what ReleaseKeeper is for.
"""

from typing import Any

from aws_cdk import ArnFormat, Aws, CustomResource, Duration, Stack
from aws_cdk import aws_events as events
from aws_cdk import aws_events_targets as targets
from aws_cdk import aws_iam as iam
from aws_cdk import aws_lambda as lambda_
from aws_cdk import aws_s3 as s3
from aws_cdk import aws_sqs as sqs
from aws_cdk import aws_stepfunctions as sfn
from constructs import Construct

from infra.config import Config
from infra.config_tables import Table
from infra.enumeration import Enumeration
from infra.functions import Shape, which_key_indexes, which_tables, which_worker
from infra.machines import DEFINITIONS, machine_role, state_machine, states_arn
from infra.permissions import (
    ALL_RUNS,
    KEY_INDEXES,
    acknowledge,
    allow,
    allow_describing,
    allow_finding_objects,
    allow_looking_into_collections,
    allow_scanning_sentinels,
    allow_writing_sentinels,
    table_arn,
)

MACHINES = {
    "BuildKeyIndex": DEFINITIONS / "build_key_index.asl.json",
    "AuditKeyIndex": DEFINITIONS / "audit_key_index.asl.json",
    "RemoveKeyIndex": DEFINITIONS / "remove_key_index.asl.json",
}
"""The state machines, with their definitions."""

KEEPER_SECONDS = 60
SETTLE_SECONDS = KEEPER_SECONDS + 5
"""After its mapping is gone, a keeper can be at work for as long as its timeout."""

LAPTOP_SETTLE_SECONDS = 1
FAILURE_DAYS = 14
"""As long as a queue can keep a message."""

RELEASE_SECONDS = 120
RELEASE_PATIENCE = Duration.minutes(15)
"""Three attempts of ReleaseKeeper, which Lambda makes minutes apart."""

WAITING_RULE = "StepFunctionsGetEventsForStepFunctionsExecutionRule"
"""The rule by which Step Functions hears that an execution has ended (AWS documentation)."""


class KeyIndex(Construct):
    """The keeper with its failure queue, three state machines, and their schedule."""

    def __init__(
        self,
        scope: Construct,
        construct_id: str,
        config: Config,
        bucket: s3.IBucket,
        runs: Enumeration,
    ) -> None:
        super().__init__(scope, construct_id)
        self._config = config
        self._tables = config.key_index_tables
        self._runs = runs
        self._add = runs.make.within(self).add
        self.bucket = bucket
        self.failures = self._failure_queue()
        self.keep_index, self._keepers_role = self._keep_index()
        self.manage_index = self._manage_index()
        self.release_keeper = self._release_keeper()
        self._let_go_in_the_end()
        self.functions = {
            "KeepIndex": self.keep_index,
            "ManageIndex": self.manage_index,
            "ReleaseKeeper": self.release_keeper,
        }
        self.machines = {name: self._machine(name) for name in MACHINES}
        if config.audit_schedule:
            self._schedule_audits(config.audit_schedule)

    def outputs(self) -> list[tuple[str, str, str]]:
        """Name, value and description of what a user needs to know."""
        what = {
            "BuildKeyIndex": "gives a table a key index",
            "AuditKeyIndex": "compares a key index with its table, and repairs it",
            "RemoveKeyIndex": "takes a key index away; the table is as before",
        }
        return [
            *(
                (
                    f"{name}Arn",
                    machine.state_machine_arn,
                    f'Started with {{"table": "..."}} it {what[name]}',
                )
                for name, machine in self.machines.items()
            ),
            ("FailureQueueUrl", self.failures.queue_url, "Records that KeepIndex gave up on"),
        ]

    def _failure_queue(self) -> sqs.Queue:
        queue = sqs.Queue(
            self,
            "Failures",
            encryption=sqs.QueueEncryption.SQS_MANAGED,
            enforce_ssl=True,
            retention_period=Duration.days(FAILURE_DAYS),
        )
        acknowledge(
            queue,
            "It is the dead letter queue itself: what lies in it is looked at by a person, and "
            "nothing receives from it again and again.",
            "AwsSolutions-SQS3",
            "Serverless-SQSRedrivePolicy",
        )
        return queue

    def _keep_index(self) -> tuple[lambda_.Function, iam.Role]:
        function, role = self._add(
            "KeepIndex",
            "keep_index",
            Shape(
                "Keeps key indexes true: a sentinel in each item collection, and in no other place",
                memory_mb=512,
                timeout_seconds=KEEPER_SECONDS,
            ),
            {**which_tables(self._tables), **which_key_indexes(self._config)},
            no_dead_letters="Lambda itself invokes it with the records of a stream, and sends what "
            "fails again and again to the failure queue.",
        )
        allow_describing(role, self._tables)
        allow_looking_into_collections(role, self._tables)
        allow_writing_sentinels(role, self._tables)
        streams = [f"{table_arn(role, table)}/stream/*" for table in self._tables]
        allow(
            role,
            "ReadTheStreamsOfTheTables",
            [
                *("dynamodb:DescribeStream", "dynamodb:GetRecords"),
                *("dynamodb:GetShardIterator", "dynamodb:ListStreams"),
            ],
            streams,
            wildcard="A stream is named by the moment at which it was turned on, which may be "
            "after the deployment, and again and again.",
        )
        allow(
            role,
            "HandOverRecordsThatFailAgainAndAgain",
            ["sqs:SendMessage"],
            [self.failures.queue_arn],
        )
        return function, role

    def _manage_index(self) -> lambda_.Function:
        on_a_laptop = self._config.dynamodb_endpoint is not None
        function, role = self._add(
            "ManageIndex",
            "manage_index",
            Shape("Prepares and finishes builds, audits and removals of key indexes", 512),
            {
                "KEYHOP_BUCKET": self.bucket.bucket_name,
                **which_tables(self._tables),
                **which_key_indexes(self._config),
                **which_worker(self._config),
                **self._which_keeper(),
                "KEYHOP_SETTLE_SECONDS": str(
                    LAPTOP_SETTLE_SECONDS if on_a_laptop else SETTLE_SECONDS
                ),
            },
        )
        allow_describing(role, self._tables)
        allow(
            role,
            "TurnStreamsOnAndOffAddAndDeleteTheKeyIndex",
            ["dynamodb:UpdateTable"],
            [table_arn(role, table) for table in self._tables],
        )
        allow_scanning_sentinels(role, self._tables)
        allow_looking_into_collections(role, self._tables)
        allow(
            role,
            "AttachTheKeeperAndNoOtherFunction",
            ["lambda:CreateEventSourceMapping"],
            ["*"],
            conditions=self._of_the_keeper(),
            wildcard="A mapping that is not made yet has no name; the condition allows those of "
            "the keeper only.",
        )
        self._allow_changing_mappings(
            role, "lambda:GetEventSourceMapping", "lambda:UpdateEventSourceMapping"
        )
        for why, actions, objects in (
            ("WriteDownWhatIsKnownOfKeyIndexes", ("Get", "Put", "Delete"), KEY_INDEXES),
            ("ReadWhatAWalkHasFound", ("Get",), ALL_RUNS),
            ("WriteTheReportOfAnAudit", ("Put",), "runs/*/audit.json"),
        ):
            allow(
                role,
                why,
                [f"s3:{action}Object" for action in actions],
                [self.bucket.arn_for_objects(objects)],
                wildcard="Names of runs and reports are known only when an execution is started.",
            )
        allow_finding_objects(role, self.bucket, ALL_RUNS, KEY_INDEXES)
        return function

    def _release_keeper(self) -> lambda_.Function:
        function, role = self._add(
            "ReleaseKeeper",
            "release_keeper",
            Shape(
                "Removes mappings of the keeper when tables or the stack go",
                memory_mb=256,
                timeout_seconds=RELEASE_SECONDS,
            ),
            self._which_keeper(),
            no_dead_letters="CloudFormation invokes it, waits for its answer, and shows a failure "
            "where the deployment is looked at.",
        )
        self._allow_changing_mappings(role)
        return function

    def _let_go_in_the_end(self) -> None:
        mappings = CustomResource(
            self,
            "KeeperMappings",
            service_token=self.release_keeper.function_arn,
            resource_type="Custom::KeeperMappings",
            properties={"Tables": [table.name for table in self._tables]},
            service_timeout=RELEASE_PATIENCE,
        )
        # What depends on something is deleted before it: a mapping without its function, or whose
        # function may not read any more, would stay behind and fail for ever.
        mappings.node.add_dependency(self.keep_index, self._keepers_role, self.failures)

    def _machine(self, name: str) -> sfn.StateMachine:
        return state_machine(
            self,
            name,
            self._config,
            MACHINES[name],
            {
                "Partition": Aws.PARTITION,
                "ManageIndexArn": self.manage_index.function_arn,
                "EnumerateKeysArn": self._runs.state_machine.state_machine_arn,
            },
            self._machine_role(name),
            only_errors="The history of an execution has all events, and is kept for 90 days; the "
            "log has the errors.",
        )

    def _machine_role(self, name: str) -> iam.Role:
        role = machine_role(self, name, self._config)
        walks = self._runs.state_machine
        allow(
            role,
            "PrepareAndFinish",
            ["lambda:InvokeFunction"],
            [self.manage_index.function_arn],
        )
        allow(
            role,
            "WalkOverTheTable",
            ["states:StartExecution"],
            [walks.state_machine_arn],
        )
        allow(
            role,
            "WaitForTheEndOfAWalkOrStopIt",
            ["states:DescribeExecution", "states:StopExecution"],
            [states_arn(self, "execution", f"{self._runs.name}:*")],
            wildcard="Step Functions names a walk when it starts it.",
        )
        allow(
            role,
            "HearThatAWalkHasEnded",
            ["events:PutTargets", "events:PutRule", "events:DescribeRule"],
            [
                Stack.of(self).format_arn(
                    service="events", resource="rule", resource_name=WAITING_RULE
                )
            ],
        )
        return role

    def _schedule_audits(self, schedule: str) -> None:
        audit = self.machines["AuditKeyIndex"]
        role = iam.Role(
            self,
            "AuditScheduleRole",
            assumed_by=iam.ServicePrincipal("events.amazonaws.com"),
            description="Starts audits of key indexes",
        )
        allow(role, "StartAudits", ["states:StartExecution"], [audit.state_machine_arn])
        for table in self._tables:
            self._schedule_audit(schedule, table, audit, role)

    def _schedule_audit(
        self, schedule: str, table: Table, audit: sfn.StateMachine, role: iam.Role
    ) -> None:
        rule = events.Rule(
            self,
            f"Audit-{table.given}",
            description=f"An audit of the key index of {table.given}",
            schedule=events.Schedule.expression(schedule),
        )
        acknowledge(
            rule,
            "EventBridge tries for a day to start an audit; one that is missed is made up for by "
            "the next, and an index whose last audit is old is not relied on.",
            "Serverless-EventBusDLQ",
        )
        rule.add_target(
            targets.SfnStateMachine(
                audit,
                input=events.RuleTargetInput.from_object({"table": table.given, "scheduled": True}),
                role=role.without_policy_updates(),
            )
        )

    def _allow_changing_mappings(self, role: iam.Role, *more: str) -> None:
        allow(
            role,
            "FindTheMappingsOfTheKeeper",
            ["lambda:ListEventSourceMappings"],
            ["*"],
            wildcard="A list of mappings knows no resources: Lambda takes no other than *.",
        )
        allow(
            role,
            "ChangeMappingsOfTheKeeperOnly",
            [*more, "lambda:DeleteEventSourceMapping"],
            [
                Stack.of(self).format_arn(
                    service="lambda",
                    resource="event-source-mapping",
                    resource_name="*",
                    arn_format=ArnFormat.COLON_RESOURCE_NAME,
                )
            ],
            conditions=self._of_the_keeper(),
            wildcard="Lambda names a mapping when it is made; the condition allows those of the "
            "keeper only.",
        )

    def _of_the_keeper(self) -> dict[str, Any]:
        return {"ArnEquals": {"lambda:FunctionArn": self.keep_index.function_arn}}

    def _which_keeper(self) -> dict[str, str]:
        return {
            "KEYHOP_KEEPER": self.keep_index.function_arn,
            "KEYHOP_FAILURE_QUEUE": self.failures.queue_arn,
        }
