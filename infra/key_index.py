"""Key indexes: the keeper on the tables' streams, and the state machines that build and check.

Streams, indexes and the keeper's mappings are made by BuildKeyIndex and not by the stack: a table
belongs to somebody else, and the ARN of its stream changes. So the stack has to let go of them when
it is destroyed: that is what ReleaseKeeper is for.
"""

from typing import Any

from aws_cdk import ArnFormat, CustomResource, Duration, Stack
from aws_cdk import aws_events as events
from aws_cdk import aws_events_targets as targets
from aws_cdk import aws_iam as iam
from aws_cdk import aws_lambda as lambda_
from aws_cdk import aws_s3 as s3
from aws_cdk import aws_sqs as sqs
from constructs import Construct

from infra.config import Config
from infra.enumeration import Enumeration
from infra.functions import Shape, which_key_indexes, which_tables, which_worker
from infra.job import Job, worker_shape
from infra.manage import ManageMachine
from infra.permissions import (
    ALL_RUNS,
    KEY_INDEXES,
    Owner,
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
    "BuildKeyIndex": ("build", "gives a table a key index"),
    "AuditKeyIndex": ("audit", "compares a key index with its table, and repairs it"),
    "RemoveKeyIndex": ("remove", "takes a key index away; the table is as before"),
}
"""The state machines, by name: their action, and what it does."""

KEEPER_SECONDS = 60
SETTLE_SECONDS = KEEPER_SECONDS + 5
"""After its mapping is gone, a keeper can be at work for as long as its timeout."""

LAPTOP_SETTLE_SECONDS = 1
FAILURE_DAYS = 14
"""As long as a queue can keep a message."""

RELEASE_SECONDS = 120
RELEASE_PATIENCE = Duration.minutes(15)
"""Three attempts of ReleaseKeeper, which Lambda makes minutes apart."""


class KeyIndex(Construct):
    """The keeper with its failure queue, the walks, three state machines, and their schedule."""

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
        self._which = {**which_tables(self._tables), **which_key_indexes(config)}
        self._add = runs.make.within(self).add
        self.bucket = bucket
        self.failures = self._failure_queue()
        self.keep_index = self._keep_index()
        self.manage_index = self._manage_index()
        self.release_keeper = self._release_keeper()
        self._let_go_in_the_end()
        self.functions = {
            "KeepIndex": self.keep_index,
            "ManageIndex": self.manage_index,
            "ReleaseKeeper": self.release_keeper,
        }
        # Workers that write are no workers that only read: all but them the jobs have in common.
        self.walks = Job(
            self,
            "WalkKeyIndexes",
            config,
            bucket,
            "key_index",
            {**runs.job.functions, "ScanSegments": self._walk_segments()},
        )
        self.machines = {
            name: ManageMachine(self, name, config, action, self.manage_index, self.walks)
            for name, (action, _) in MACHINES.items()
        }
        if config.audit_schedule:
            self._schedule_audits(config.audit_schedule)

    def outputs(self) -> list[tuple[str, str, str]]:
        """Name, value and description of what a user needs to know."""
        return [
            *(
                (
                    f"{name}Arn",
                    self.machines[name].state_machine_arn,
                    f'Started with {{"table": "..."}} it {does}',
                )
                for name, (_, does) in MACHINES.items()
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

    def _walk_segments(self) -> lambda_.Function:
        # No reservation: PlanRun plans no more of them at once than of ScanSegments.
        function = self._add(
            "WalkSegments",
            worker_shape(
                self._config, "Puts, compares or deletes the sentinels of a group of segments"
            ),
            {"KEYHOP_BUCKET": self.bucket.bucket_name, **self._which},
            module="scan_segments",
        )
        allow_describing(function, self._tables)
        allow_scanning_sentinels(function, self._tables)
        allow_looking_into_collections(function, self._tables)
        allow_writing_sentinels(function, self._tables)
        return function

    def _keep_index(self) -> lambda_.Function:
        function = self._add(
            "KeepIndex",
            Shape(
                "Keeps key indexes true: a sentinel in each item collection, and in no other place",
                memory_mb=512,
                timeout_seconds=KEEPER_SECONDS,
            ),
            self._which,
            no_dead_letters="Lambda itself invokes it with the records of a stream, and sends what "
            "fails again and again to the failure queue.",
        )
        allow_describing(function, self._tables)
        allow_looking_into_collections(function, self._tables)
        allow_writing_sentinels(function, self._tables)
        streams = [f"{table_arn(function, table)}/stream/*" for table in self._tables]
        allow(
            function,
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
            function,
            "HandOverRecordsThatFailAgainAndAgain",
            ["sqs:SendMessage"],
            [self.failures.queue_arn],
        )
        return function

    def _manage_index(self) -> lambda_.Function:
        on_a_laptop = self._config.dynamodb_endpoint is not None
        function = self._add(
            "ManageIndex",
            Shape("Prepares and finishes builds, audits and removals of key indexes", 512),
            {
                "KEYHOP_BUCKET": self.bucket.bucket_name,
                **self._which,
                **which_worker(self._config),
                **self._which_keeper(),
                "KEYHOP_SETTLE_SECONDS": str(
                    LAPTOP_SETTLE_SECONDS if on_a_laptop else SETTLE_SECONDS
                ),
            },
        )
        allow_describing(function, self._tables)
        allow(
            function,
            "TurnStreamsOnAndOffAddAndDeleteTheKeyIndex",
            ["dynamodb:UpdateTable"],
            [table_arn(function, table) for table in self._tables],
        )
        allow_scanning_sentinels(function, self._tables)
        allow_looking_into_collections(function, self._tables)
        allow(
            function,
            "AttachTheKeeperAndNoOtherFunction",
            ["lambda:CreateEventSourceMapping"],
            ["*"],
            conditions=self._of_the_keeper(),
            wildcard="A mapping that is not made yet has no name; the condition allows those of "
            "the keeper only.",
        )
        self._allow_changing_mappings(
            function, "lambda:GetEventSourceMapping", "lambda:UpdateEventSourceMapping"
        )
        for why, actions, objects in (
            ("WriteDownWhatIsKnownOfKeyIndexes", ("Get", "Put", "Delete"), KEY_INDEXES),
            ("ReadWhatAWalkHasFound", ("Get",), ALL_RUNS),
            ("WriteTheReportOfAnAudit", ("Put",), "runs/*/audit.json"),
        ):
            allow(
                function,
                why,
                [f"s3:{action}Object" for action in actions],
                [self.bucket.arn_for_objects(objects)],
                wildcard="Names of runs and reports are known only when an execution is started.",
            )
        allow_finding_objects(function, self.bucket, ALL_RUNS, KEY_INDEXES)
        return function

    def _release_keeper(self) -> lambda_.Function:
        function = self._add(
            "ReleaseKeeper",
            Shape(
                "Removes mappings of the keeper when tables or the stack go",
                memory_mb=256,
                timeout_seconds=RELEASE_SECONDS,
            ),
            self._which_keeper(),
            no_dead_letters="CloudFormation invokes it, waits for its answer, and shows a failure "
            "where the deployment is looked at.",
        )
        self._allow_changing_mappings(function)
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
        role = self.keep_index.role
        assert role is not None
        mappings.node.add_dependency(self.keep_index, role, self.failures)

    def _schedule_audits(self, schedule: str) -> None:
        audit = self.machines["AuditKeyIndex"]
        role = iam.Role(
            self,
            "AuditScheduleRole",
            assumed_by=iam.ServicePrincipal("events.amazonaws.com"),
            description="Starts audits of key indexes",
        )
        allow(role, "StartAudits", ["states:StartExecution"], [audit.state_machine_arn])
        for given in (table.given for table in self._tables):
            target = targets.SfnStateMachine(
                audit,
                input=events.RuleTargetInput.from_object({"table": given, "scheduled": True}),
                role=role.without_policy_updates(),
            )
            rule = events.Rule(
                self,
                f"Audit-{given}",
                description=f"An audit of the key index of {given}",
                schedule=events.Schedule.expression(schedule),
                targets=[target],
            )
            acknowledge(
                rule,
                "EventBridge tries for a day to start an audit; one that is missed is made up for "
                "by the next, and an index whose last audit is old is not relied on.",
                "Serverless-EventBusDLQ",
            )

    def _allow_changing_mappings(self, owner: Owner, *more: str) -> None:
        allow(
            owner,
            "FindTheMappingsOfTheKeeper",
            ["lambda:ListEventSourceMappings"],
            ["*"],
            wildcard="A list of mappings knows no resources: Lambda takes no other than *.",
        )
        allow(
            owner,
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
