"""Sharded tables: the shard metadata of each, functions to write and read, and DrainShards.

Each sharded table has a separate metadata table, because then logical keys of two tables cannot
collide, and permissions, backups and restores apply to one table.
"""

from collections.abc import Mapping
from types import MappingProxyType
from typing import Any

from aws_cdk import RemovalPolicy
from aws_cdk import aws_dynamodb as dynamodb
from aws_cdk import aws_events as events
from aws_cdk import aws_events_targets as targets
from aws_cdk import aws_lambda as lambda_
from constructs import Construct

from .config import Sharding, which_sharding, which_tables
from .deployment import KEPT, KeyEnumeration
from .functions import snake
from .machines import Machine, warn_of_many_rules
from .monitoring import CAUSE, FIVE_MINUTES, QUARTER, Monitoring
from .permissions import (
    acknowledge,
    allow,
    allow_decrypting,
    allow_describing,
    allow_reading_metrics,
    table_arns,
)

DRAIN = "DrainShards"
"""The name of the state machine."""
DEFINITION = "drain"
MANAGING_MB = 512
CALL_SECONDS = 120
"""Short, because a caller waits for the answer of WriteSharded and QuerySharded."""

BY_SOMEBODY_WHO_WAITS = (
    "Its caller waits for the answer, which names each item that was not written: nothing "
    "is invoked asynchronously, which is all that a dead letter target serves."
)
BY_A_SCHEDULE = (
    "EventBridge invokes it by a schedule; a proposal that is missed is made by the next one, and "
    "its errors are on the dashboard."
)

_TYPES = {"S": dynamodb.AttributeType.STRING, "B": dynamodb.AttributeType.BINARY}


class ShardedTables(Construct):
    """Write sharding for those tables of a KeyEnumeration that have `sharding`.

    It has metadata tables, four functions (WriteSharded, QuerySharded, MoveShards, ProposeDrains),
    the state machine DrainShards, and the schedule of proposals. Raises ConfigError.
    """

    def __init__(self, scope: Construct, construct_id: str, keys: KeyEnumeration) -> None:
        super().__init__(scope, construct_id)
        config = keys.config
        self._config = config
        self._tables = config.sharded_tables
        keys.is_extended_by(self, "sharding", self._tables)
        self._make = keys.runs.make
        self.metadata = [
            self._metadata_table(table.sharding) for table in self._tables if table.sharding
        ]
        self.functions: dict[str, lambda_.Function] = {}
        self._add_write_sharded()
        self._add_query_sharded()
        self._add_move_shards()
        move = self.functions["MoveShards"].function_arn
        self.drain_shards = Machine(self, DRAIN, config, DEFINITION, {"MoveShardsArn": move})
        allow(self.drain_shards, "MoveItems", "lambda:InvokeFunction", move)
        self._add_propose_drains()
        if config.shrink_schedule:
            self._schedule_proposals(config.shrink_schedule)
        self._show(keys.watch)
        keys.say(*self._outputs())

    def _outputs(self) -> list[tuple[str, str, str]]:
        return [
            (
                "WriteShardedName",
                self.functions["WriteSharded"].function_name,
                'Invoked with {"table": "...", "items": [...]} it writes them over the shards',
            ),
            (
                "QueryShardedName",
                self.functions["QuerySharded"].function_name,
                'Invoked with {"table": "...", "key": "..."} it reads all shards of a key',
            ),
            (
                f"{DRAIN}Arn",
                self.drain_shards.state_machine_arn,
                'Started with {"table": "...", "key": "...", "shards": 1} it lowers a shard count',
            ),
            (
                "ProposeDrainsName",
                self.functions["ProposeDrains"].function_name,
                "Invoked with {} it says which keys have more shards than they need",
            ),
            *(
                (
                    f"ShardMetadata{number}",
                    f"{table.name} {table.sharding.metadata}",
                    "A sharded table, and its shard-metadata table",
                )
                for number, table in enumerate(self._tables, 1)
                if table.sharding
            ),
        ]

    def _metadata_table(self, sharding: Sharding) -> dynamodb.Table:
        on_a_laptop = self._config.dynamodb_endpoint is not None
        # It survives the stack, because without it items in all shards but the first cannot be
        # found. Only a failed deployment deletes a table that it has just created, so the
        # protection from deletion is added when the deployment has succeeded (guard.py).
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
            time_to_live_attribute="keyhop_expires",  # of claims
            removal_policy=RemovalPolicy.DESTROY if on_a_laptop else KEPT,
        )

    def _add_write_sharded(self) -> None:
        # A transaction needs the rights of the writes within it, and ConditionCheckItem
        # (AWS documentation, "Using IAM with DynamoDB transactions").
        writes = "PutItem DeleteItem BatchWriteItem ConditionCheckItem"
        function = self._add(
            "WriteSharded",
            "Writes items over the shards of their keys, and adds shards to hot ones",
            tables={
                "PutItemsWhereTheyBelongAndMoveThoseOfOlderShards": writes,
                "LookForAnItemInOlderShards": "GetItem BatchGetItem",
            },
            metadata={"RegisterKeysAddShardsAndReportTraffic": "GetItem PutItem UpdateItem"},
            timeout_seconds=CALL_SECONDS,
            no_dead_letters=BY_SOMEBODY_WHO_WAITS,
        )
        allow(
            function,
            "SeeWhetherANewKeyHasItemsWithoutSeeingThem",
            "dynamodb:Query",
            *table_arns(function, self._tables),
            conditions={"StringEquals": {"dynamodb:Select": "COUNT"}},
        )
        allow(
            function,
            "SeeHowOtherKeysAreShardedAndNotWhich",
            "dynamodb:Scan",
            *(table.table_arn for table in self.metadata),
            conditions={
                "StringEquals": {"dynamodb:Select": "SPECIFIC_ATTRIBUTES"},
                "ForAllValues:StringEquals": {"dynamodb:Attributes": ["placement"]},
            },
        )
        allow_reading_metrics(
            function, "SeeWhetherAThrottledTableOrAKeyIsTheCause", "GetMetricData"
        )

    def _add_query_sharded(self) -> None:
        function = self._add(
            "QuerySharded",
            "Reads all shards of a key as one, in order",
            metadata={"SeeHowManyShardsAKeyHas": "GetItem"},
            timeout_seconds=CALL_SECONDS,
            no_dead_letters=BY_SOMEBODY_WHO_WAITS,
        )
        allow_decrypting(function, self._tables)
        arns = table_arns(function, self._tables)
        allow(
            function,
            "ReadTheShardsOfAKey",
            "dynamodb:Query",
            *(*arns, *(f"{arn}/index/*" for arn in arns)),
            wildcard="Queries may be spread over indexes of the table's own schema, which are not "
            "known at synth.",
        )

    def _add_move_shards(self) -> None:
        self._add(
            "MoveShards",
            "Moves items off the last shards of a key, for a while",
            tables={
                "FindTheItemsOfTheLastShards": "Query",
                "MoveAnItemInOneTransaction": "PutItem DeleteItem ConditionCheckItem",
                "AddTheCountersOfAShardToAnother": "UpdateItem",
            },
            metadata={"LowerTheShardCountStepByStep": "GetItem UpdateItem"},
        )

    def _add_propose_drains(self) -> None:
        drain = self.drain_shards.state_machine_arn
        starts = self._config.start_drains
        function = self._add(
            "ProposeDrains",
            "Says which keys have more shards than they need",
            {"KEYHOP_DRAIN_MACHINE": drain, "KEYHOP_START_DRAINS": "true" if starts else "false"},
            metadata={"LookThroughTheKeysAndForgetOldTraffic": "Scan UpdateItem"},
            memory_mb=MANAGING_MB,
            no_dead_letters=BY_A_SCHEDULE,
        )
        if starts:
            allow(function, "StartDrainsAndNothingElse", "states:StartExecution", drain)

    def _add(
        self,
        name: str,
        description: str,
        environment: Mapping[str, str] = MappingProxyType({}),
        *,
        tables: Mapping[str, str] = MappingProxyType({}),
        metadata: Mapping[str, str],
        **shape: Any,
    ) -> lambda_.Function:
        """Add a function with its actions on tables and metadata tables, by Sid."""
        which = {**which_tables(self._tables), **which_sharding(self._tables)}
        function = self._make.add(
            self,
            name,
            description,
            {**which, **environment},
            handler=f"sharding.{snake(name)}",
            **shape,
        )
        allow_describing(function, self._tables)
        if tables:
            allow_decrypting(function, self._tables)
        for rights, arns in (
            (tables, table_arns(function, self._tables)),
            (metadata, [table.table_arn for table in self.metadata]),
        ):
            for why, actions in rights.items():
                allow(function, why, f"dynamodb:{actions}", *arns)
        self.functions[name] = function
        return function

    def _schedule_proposals(self, schedule: str) -> None:
        rule = events.Rule(
            self,
            "ShrinkSchedule",
            description="Asks which keys have more shards than they need",
            schedule=events.Schedule.expression(schedule),
        )
        acknowledge(
            rule,
            "EventBridge tries for a day to invoke the function; the next invocation replaces a "
            "missed one, and too many shards cost reads but lose nothing.",
            "Serverless-EventBusDLQ",
        )
        rule.add_target(
            targets.LambdaFunction(
                self.functions["ProposeDrains"],
                event=events.RuleTargetInput.from_object({"scheduled": True}),
            )
        )
        warn_of_many_rules(self, 1)

    def _show(self, watch: Monitoring) -> None:
        """Add added and removed shards, hot keys, throttled writes and drains."""
        watch.alarm(
            "KeyAtMaximum",
            watch.ours("KeysAtMaximum", period=QUARTER),
            1,
            "A hot key has the most shards that it may have, so its writes go on being throttled. "
            "Raise sharding.mostShards of its table in keyhop.json and deploy again, or write "
            "less; `keyhop shards list TABLE` shows which key it is.",
        )
        watch.needs_a_person(
            f"Failed{DRAIN}",
            DRAIN,
            "A drain did not finish. Nothing is lost: readers go on reading every shard that "
            f"may hold items; start the same input again. {CAUSE}.",
        )
        at_maximum = watch.of_table("KeysAtMaximum", "hot keys at the maximum")
        watch.row(
            watch.graph(
                "Sharded tables: shards, and hot keys",
                [*watch.counts("ShardsAdded", "ShardsRemoved", "RacesLost"), at_maximum],
                [watch.of_table("HotKeyThrottles", "throttles of hot keys (right)")],
            ),
            watch.graph(
                "Sharded tables: items",
                watch.counts("ItemsWritten", "ItemsMoved"),
                [watch.of_table("ItemsFailed", "items that failed (right)")],
            ),
        )
        proposed = watch.of_table("DrainsProposed", "drains proposed", period=FIVE_MINUTES)
        watch.row(
            watch.graph(
                "Sharded tables: drains, and errors",
                [proposed, *watch.ends_of(self.drain_shards, "drains that {}")],
                watch.errors_of(self.functions, "{}: errors (right)", FIVE_MINUTES),
            )
        )
