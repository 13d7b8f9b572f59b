"""Sharded tables: the shard metadata of each, functions to write and read, and DrainShards.

Each sharded table has a metadata table of its own: logical keys of two tables cannot collide, and
permissions, backups and restores go by table.
"""

from collections.abc import Mapping, Sequence
from types import MappingProxyType

from aws_cdk import RemovalPolicy
from aws_cdk import aws_dynamodb as dynamodb
from aws_cdk import aws_events as events
from aws_cdk import aws_events_targets as targets
from aws_cdk import aws_lambda as lambda_
from constructs import Construct

from infra.config import Config
from infra.config_tables import Sharding
from infra.functions import BY_STEP_FUNCTIONS, Functions, Shape, which_sharding, which_tables
from infra.machines import Machine
from infra.permissions import acknowledge, allow, allow_describing, table_arn

DRAIN = "DrainShards"
DEFINITION = "drain"
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
        self.metadata = [self._metadata_table(one.sharding) for one in self._tables if one.sharding]
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
        # A transaction needs the rights of the writes within it, and ConditionCheckItem
        # (AWS documentation, "Using IAM with DynamoDB transactions").
        writes = ("PutItem", "UpdateItem", "DeleteItem", "BatchWriteItem", "ConditionCheckItem")
        function = self._function(
            "WriteSharded",
            Shape(
                "Writes items over the shards of their keys, and adds shards to hot ones",
                timeout_seconds=CALL_SECONDS,
            ),
            BY_SOMEBODY_WHO_WAITS,
            tables={
                "PutItemsWhereTheyBelongAndMoveThoseOfOlderShards": writes,
                "LookForAnItemInOlderShards": ("GetItem", "BatchGetItem"),
            },
            metadata={
                "RegisterKeysAddShardsAndReportTraffic": ("GetItem", "PutItem", "UpdateItem")
            },
        )
        allow(
            function,
            "SeeWhetherAThrottledTableOrAKeyIsTheCause",
            ["cloudwatch:GetMetricData"],
            ["*"],
            wildcard="Metrics know no resources: CloudWatch takes no other than *.",
        )
        return function

    def _query_sharded(self) -> lambda_.Function:
        function = self._function(
            "QuerySharded",
            Shape("Reads all shards of a key as one, in order", timeout_seconds=CALL_SECONDS),
            BY_SOMEBODY_WHO_WAITS,
            metadata={"SeeHowManyShardsAKeyHas": ("GetItem",)},
        )
        arns = [table_arn(function, table) for table in self._tables]
        allow(
            function,
            "ReadTheShardsOfAKey",
            ["dynamodb:Query"],
            [*arns, *(f"{arn}/index/*" for arn in arns)],
            wildcard="Queries may be spread over indexes of the table's own schema, which are not "
            "known at synth.",
        )
        return function

    def _move_shards(self) -> lambda_.Function:
        return self._function(
            "MoveShards",
            Shape("Moves items off the last shards of a key, for a while"),
            tables={
                "FindTheItemsOfTheLastShards": ("Query", "GetItem", "BatchGetItem"),
                "MoveAnItemInOneTransaction": ("PutItem", "DeleteItem", "ConditionCheckItem"),
            },
            metadata={"LowerTheShardCountStepByStep": ("GetItem", "UpdateItem")},
        )

    def _propose_drains(self) -> lambda_.Function:
        drain = self.drain_shards.state_machine_arn
        starts = self._config.start_drains
        function = self._function(
            "ProposeDrains",
            Shape("Says which keys have more shards than they need", MANAGING_MB),
            BY_A_SCHEDULE,
            metadata={"LookThroughTheKeysAndForgetOldTraffic": ("Scan", "UpdateItem")},
            KEYHOP_DRAIN_MACHINE=drain,
            KEYHOP_START_DRAINS="true" if starts else "false",
        )
        if starts:
            allow(function, "StartDrainsAndNothingElse", ["states:StartExecution"], [drain])
        return function

    def _function(
        self,
        name: str,
        shape: Shape,
        no_dead_letters: str = BY_STEP_FUNCTIONS,
        *,
        tables: Mapping[str, Sequence[str]] = MappingProxyType({}),
        metadata: Mapping[str, Sequence[str]],
        **environment: str,
    ) -> lambda_.Function:
        """tables, metadata: what it may do there, by the reason."""
        which = {**which_tables(self._tables), **which_sharding(self._config)}
        function = self._add(name, shape, {**which, **environment}, None, no_dead_letters)
        allow_describing(function, self._tables)
        for rights, arns in (
            (tables, [table_arn(function, table) for table in self._tables]),
            (metadata, [table.table_arn for table in self.metadata]),
        ):
            for why, actions in rights.items():
                allow(function, why, [f"dynamodb:{action}" for action in actions], arns)
        return function

    def _drain_shards(self) -> Machine:
        move = self.move_shards.function_arn
        machine = Machine(self, DRAIN, self._config, DEFINITION, {"MoveShardsArn": move})
        allow(machine, "MoveItems", ["lambda:InvokeFunction"], [move])
        return machine

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
