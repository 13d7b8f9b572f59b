"""Sharded tables: the shard metadata of each, functions to write and read, and DrainShards.

Each sharded table has a metadata table of its own: logical keys of two tables cannot collide, and
permissions, backups and restores go by table.
"""

from collections.abc import Sequence

from aws_cdk import RemovalPolicy
from aws_cdk import aws_dynamodb as dynamodb
from aws_cdk import aws_events as events
from aws_cdk import aws_events_targets as targets
from aws_cdk import aws_lambda as lambda_
from constructs import Construct

from infra.config import Config
from infra.config_tables import Sharding
from infra.functions import Functions, Shape, which_sharding, which_tables
from infra.machines import Machine
from infra.permissions import Owner, acknowledge, allow, allow_describing, table_arn

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
        function = self._add(
            "WriteSharded",
            Shape(
                "Writes items over the shards of their keys, and adds shards to hot ones",
                timeout_seconds=CALL_SECONDS,
            ),
            self._which(),
            no_dead_letters=BY_SOMEBODY_WHO_WAITS,
        )
        allow_describing(function, self._tables)
        # A transaction needs the rights of the writes within it, and ConditionCheckItem
        # (AWS documentation, "Using IAM with DynamoDB transactions").
        self._allow_tables(
            function,
            "PutItemsWhereTheyBelongAndMoveThoseOfOlderShards",
            *("PutItem", "UpdateItem", "DeleteItem", "BatchWriteItem", "ConditionCheckItem"),
        )
        self._allow_tables(function, "LookForAnItemInOlderShards", "GetItem", "BatchGetItem")
        self._allow_metadata(
            function, "RegisterKeysAddShardsAndReportTraffic", "GetItem", "PutItem", "UpdateItem"
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
        function = self._add(
            "QuerySharded",
            Shape("Reads all shards of a key as one, in order", timeout_seconds=CALL_SECONDS),
            self._which(),
            no_dead_letters=BY_SOMEBODY_WHO_WAITS,
        )
        allow_describing(function, self._tables)
        arns = self._table_arns(function)
        allow(
            function,
            "ReadTheShardsOfAKey",
            ["dynamodb:Query"],
            [*arns, *(f"{arn}/index/*" for arn in arns)],
            wildcard="Queries may be spread over indexes of the table's own schema, which are not "
            "known at synth.",
        )
        self._allow_metadata(function, "SeeHowManyShardsAKeyHas", "GetItem")
        return function

    def _move_shards(self) -> lambda_.Function:
        function = self._add(
            "MoveShards",
            Shape("Moves items off the last shards of a key, for a while"),
            self._which(),
        )
        allow_describing(function, self._tables)
        self._allow_tables(
            function, "FindTheItemsOfTheLastShards", "Query", "GetItem", "BatchGetItem"
        )
        self._allow_tables(
            function, "MoveAnItemInOneTransaction", "PutItem", "DeleteItem", "ConditionCheckItem"
        )
        self._allow_metadata(function, "LowerTheShardCountStepByStep", "GetItem", "UpdateItem")
        return function

    def _propose_drains(self) -> lambda_.Function:
        function = self._add(
            "ProposeDrains",
            Shape("Says which keys have more shards than they need", MANAGING_MB),
            {
                **self._which(),
                "KEYHOP_DRAIN_MACHINE": self.drain_shards.state_machine_arn,
                "KEYHOP_START_DRAINS": "true" if self._config.start_drains else "false",
            },
            no_dead_letters=BY_A_SCHEDULE,
        )
        allow_describing(function, self._tables)
        self._allow_metadata(
            function, "LookThroughTheKeysAndForgetOldTraffic", "Scan", "UpdateItem"
        )
        if self._config.start_drains:
            allow(
                function,
                "StartDrainsAndNothingElse",
                ["states:StartExecution"],
                [self.drain_shards.state_machine_arn],
            )
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

    def _which(self) -> dict[str, str]:
        return {**which_tables(self._tables), **which_sharding(self._config)}

    def _table_arns(self, owner: Owner) -> list[str]:
        return [table_arn(owner, table) for table in self._tables]

    def _allow_tables(self, owner: Owner, why: str, *actions: str) -> None:
        allow(owner, why, _of_dynamodb(actions), self._table_arns(owner))

    def _allow_metadata(self, owner: Owner, why: str, *actions: str) -> None:
        allow(owner, why, _of_dynamodb(actions), [one.table_arn for one in self.metadata])


def _of_dynamodb(actions: Sequence[str]) -> list[str]:
    return [f"dynamodb:{action}" for action in actions]
