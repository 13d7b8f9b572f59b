"""Sharded tables: the shard metadata of each, functions to write and read, and DrainShards.

Each sharded table has a metadata table of its own: logical keys of two tables cannot collide, and
permissions, backups and restores go by table.
"""

from collections.abc import Sequence

from aws_cdk import Aws, RemovalPolicy
from aws_cdk import aws_dynamodb as dynamodb
from aws_cdk import aws_events as events
from aws_cdk import aws_events_targets as targets
from aws_cdk import aws_iam as iam
from aws_cdk import aws_lambda as lambda_
from aws_cdk import aws_stepfunctions as sfn
from constructs import Construct

from infra.config import Config
from infra.config_sharding import Sharding
from infra.functions import Functions, Shape, which_sharding, which_tables
from infra.machines import DEFINITIONS, machine_role, state_machine
from infra.permissions import acknowledge, allow, allow_describing, table_arn

DRAIN = "DrainShards"
DEFINITION = DEFINITIONS / "drain_shards.asl.json"

VCPU_MB = 1769
"""The memory at which a function has one whole vCPU."""
MANAGING_MB = 512
CALL_SECONDS = 120
"""Somebody waits for the answer of WriteSharded and QuerySharded."""

BY_SOMEBODY_WHO_WAITS = (
    "Whoever invokes it waits for its answer, which names each item that was not written: nothing "
    "is invoked asynchronously, which is all that a dead letter target serves."
)
BY_A_SCHEDULE = (
    "EventBridge invokes it by a schedule; a proposal that is missed is made by the next one, and "
    "its errors are on the dashboard."
)

_TYPES = {"S": dynamodb.AttributeType.STRING, "B": dynamodb.AttributeType.BINARY}


class ShardedTables(Construct):
    """Metadata tables, four functions, the state machine DrainShards, and a schedule."""

    def __init__(
        self, scope: Construct, construct_id: str, config: Config, functions: Functions
    ) -> None:
        super().__init__(scope, construct_id)
        self._config = config
        self._tables = config.sharded_tables
        self._add = functions.within(self).add
        self.metadata = [
            self._metadata_table(table.sharding)
            for table in self._tables
            if table.sharding is not None
        ]
        self.write_sharded = self._write_sharded()
        self.query_sharded = self._query_sharded()
        self.move_shards = self._move_shards()
        self.drain_shards = self._drain_shards()
        self.propose_drains = self._propose_drains()
        self.functions = {
            "WriteSharded": self.write_sharded,
            "QuerySharded": self.query_sharded,
            "MoveShards": self.move_shards,
            "ProposeDrains": self.propose_drains,
        }
        if config.shrink_schedule:
            self._schedule_proposals(config.shrink_schedule)

    def outputs(self) -> list[tuple[str, str, str]]:
        """Name, value and description of what a user needs to know."""
        return [
            (
                "WriteShardedName",
                self.write_sharded.function_name,
                'Invoked with {"table": "...", "items": [...]} it writes them over the shards',
            ),
            (
                "QueryShardedName",
                self.query_sharded.function_name,
                'Invoked with {"table": "...", "key": "..."} it reads all shards of a key',
            ),
            (
                f"{DRAIN}Arn",
                self.drain_shards.state_machine_arn,
                'Started with {"table": "...", "key": "...", "shards": 1} it lowers a shard count',
            ),
            (
                "ProposeDrainsName",
                self.propose_drains.function_name,
                "Invoked with {} it says which keys have more shards than they need",
            ),
        ]

    def _metadata_table(self, sharding: Sharding) -> dynamodb.Table:
        on_a_laptop = self._config.dynamodb_endpoint is not None
        # Whatever becomes of the stack: without it, items in all shards but the first are not
        # found any more.
        return dynamodb.Table(
            self,
            f"Metadata-{sharding.metadata}",
            table_name=sharding.metadata,
            partition_key=dynamodb.Attribute(
                name=sharding.partition_key, type=_TYPES[sharding.partition_key_type]
            ),
            billing_mode=dynamodb.BillingMode.PAY_PER_REQUEST,
            point_in_time_recovery_specification=dynamodb.PointInTimeRecoverySpecification(
                point_in_time_recovery_enabled=True
            ),
            deletion_protection=not on_a_laptop,
            removal_policy=RemovalPolicy.DESTROY if on_a_laptop else RemovalPolicy.RETAIN,
        )

    def _write_sharded(self) -> lambda_.Function:
        function, role = self._add(
            "WriteSharded",
            "write_sharded",
            Shape(
                "Writes items over the shards of their keys, and adds shards to hot ones",
                VCPU_MB,
                CALL_SECONDS,
            ),
            self._which(),
            no_dead_letters=BY_SOMEBODY_WHO_WAITS,
        )
        allow_describing(role, self._tables)
        # A transaction needs the rights of the writes within it, and ConditionCheckItem
        # (AWS documentation, "Using IAM with DynamoDB transactions").
        self._allow_tables(
            role,
            "PutItemsWhereTheyBelongAndMoveThoseOfOlderShards",
            *("PutItem", "UpdateItem", "DeleteItem", "BatchWriteItem", "ConditionCheckItem"),
        )
        self._allow_tables(role, "LookForAnItemInOlderShards", "GetItem", "BatchGetItem")
        self._allow_metadata(
            role, "RegisterKeysAddShardsAndReportTraffic", "GetItem", "PutItem", "UpdateItem"
        )
        allow(
            role,
            "SeeWhetherAThrottledTableOrAKeyIsTheCause",
            ["cloudwatch:GetMetricData"],
            ["*"],
            wildcard="Metrics know no resources: CloudWatch takes no other than *.",
        )
        return function

    def _query_sharded(self) -> lambda_.Function:
        function, role = self._add(
            "QuerySharded",
            "query_sharded",
            Shape("Reads all shards of a key as one, in order", VCPU_MB, CALL_SECONDS),
            self._which(),
            no_dead_letters=BY_SOMEBODY_WHO_WAITS,
        )
        allow_describing(role, self._tables)
        arns = self._table_arns(role)
        allow(
            role,
            "ReadTheShardsOfAKey",
            ["dynamodb:Query"],
            [*arns, *(f"{arn}/index/*" for arn in arns)],
            wildcard="Queries may be spread over indexes of the table's own schema, which are not "
            "known at synth.",
        )
        self._allow_metadata(role, "SeeHowManyShardsAKeyHas", "GetItem")
        return function

    def _move_shards(self) -> lambda_.Function:
        function, role = self._add(
            "MoveShards",
            "move_shards",
            Shape("Moves items off the last shards of a key, for a while", VCPU_MB),
            self._which(),
        )
        allow_describing(role, self._tables)
        self._allow_tables(role, "FindTheItemsOfTheLastShards", "Query", "GetItem", "BatchGetItem")
        self._allow_tables(
            role, "MoveAnItemInOneTransaction", "PutItem", "DeleteItem", "ConditionCheckItem"
        )
        self._allow_metadata(role, "LowerTheShardCountStepByStep", "GetItem", "UpdateItem")
        return function

    def _propose_drains(self) -> lambda_.Function:
        function, role = self._add(
            "ProposeDrains",
            "propose_drains",
            Shape("Says which keys have more shards than they need", MANAGING_MB),
            {
                **self._which(),
                "KEYHOP_DRAIN_MACHINE": self.drain_shards.state_machine_arn,
                "KEYHOP_START_DRAINS": "true" if self._config.start_drains else "false",
            },
            no_dead_letters=BY_A_SCHEDULE,
        )
        allow_describing(role, self._tables)
        self._allow_metadata(role, "LookThroughTheKeysAndForgetOldTraffic", "Scan", "UpdateItem")
        if self._config.start_drains:
            allow(
                role,
                "StartDrainsAndNothingElse",
                ["states:StartExecution"],
                [self.drain_shards.state_machine_arn],
            )
        return function

    def _drain_shards(self) -> sfn.StateMachine:
        role = machine_role(self, DRAIN, self._config)
        allow(role, "MoveItems", ["lambda:InvokeFunction"], [self.move_shards.function_arn])
        return state_machine(
            self,
            DRAIN,
            self._config,
            DEFINITION,
            {"Partition": Aws.PARTITION, "MoveShardsArn": self.move_shards.function_arn},
            role,
            only_errors="The history of an execution has all events, and is kept for 90 days; the "
            "log has the errors.",
        )

    def _schedule_proposals(self, schedule: str) -> None:
        rule = events.Rule(
            self,
            "ShrinkSchedule",
            description="Asks which keys have more shards than they need",
            schedule=events.Schedule.expression(schedule),
        )
        acknowledge(
            rule,
            "EventBridge tries for a day to invoke the function; what is missed is made up for by "
            "the next time, and too many shards cost reads but lose nothing.",
            "Serverless-EventBusDLQ",
        )
        rule.add_target(
            targets.LambdaFunction(
                self.propose_drains, event=events.RuleTargetInput.from_object({"scheduled": True})
            )
        )

    def _which(self) -> dict[str, str]:
        return {**which_tables(self._tables), **which_sharding(self._config)}

    def _table_arns(self, role: iam.Role) -> list[str]:
        return [table_arn(role, table) for table in self._tables]

    def _allow_tables(self, role: iam.Role, why: str, *actions: str) -> None:
        allow(role, why, _of_dynamodb(actions), self._table_arns(role))

    def _allow_metadata(self, role: iam.Role, why: str, *actions: str) -> None:
        allow(role, why, _of_dynamodb(actions), [one.table_arn for one in self.metadata])


def _of_dynamodb(actions: Sequence[str]) -> list[str]:
    return [f"dynamodb:{action}" for action in actions]
