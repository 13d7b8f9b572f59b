"""Re-keying: what keeps the two tables of a pair true to one another, fills, compares, cuts over.

The destination, the side table and the event source mappings are made by `keyhop rekey` and not by
the stack: what they are follows the source, which belongs to somebody else. What that asks of a
stack that is changed or destroyed is in guard.py.
"""

from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import Any

from aws_cdk import aws_lambda as lambda_
from constructs import Construct

from .config_rekey import which_pairs
from .config_tables import Table, which_sharding, which_tables
from .deployment import KeyEnumeration
from .followers import (
    BY_LAMBDA,
    allow_following,
    allow_giving_up,
    allow_reading_streams,
    failure_queue,
)
from .guard import REPLICATE
from .job import Job
from .machines import Machine
from .permissions import (
    Owner,
    allow,
    allow_decrypting,
    allow_describing,
    table_arn,
)
from .rekey_view import of_rekeys
from .schedules import Start, start_regularly

REPLICATE_SECONDS = 300
"""Throttles are waited out within a batch. `complete` waits longer (side/layout.py)."""

REPLICATE_MB = 1024
"""For its share of a processor, which is what limits: 1,769 MB are a whole one (AWS documentation).
"""
DEFINITION = "rekey-cutover"
QUEUE_ATTRIBUTES = "sqs:GetQueueUrl GetQueueAttributes"
NOTHING: Mapping[str, str] = MappingProxyType({})

OF_PAIRS = "OfPairs"
"""The end of Sids of functions that all jobs have."""


class Rekey(Construct):
    """The pairs of a KeyEnumeration that have been named in its setting `rekey`.

    Replicate with its failure queue, the jobs RekeyBackfill and RekeyVerify, each with a worker of
    its own, and RekeyCutOver, which also goes back. Deployed, it touches no table yet: `keyhop
    rekey start` has Replicate follow the streams. Raises ConfigError.
    """

    def __init__(self, scope: Construct, construct_id: str, keys: KeyEnumeration) -> None:
        super().__init__(scope, construct_id)
        config, self._bucket = keys.config, keys.results.bucket
        self._config = config
        self._make = keys.runs.make
        self._pairs = config.rekey
        self._sources = [pair.source for pair in self._pairs]
        self._destinations = [pair.destination for pair in self._pairs]
        self._both = [table for pair in self._pairs for table in pair.both]
        keys.is_extended_by(self, "rekey", self._both)
        self._which = which_pairs(self._pairs)
        self.failures = failure_queue(self)
        self.replicate = self._replicate()
        common = keys.runs.job.functions
        self._let_runs_begin(common)
        # Workers that write are no workers that only read: all but them the jobs have in common.
        self.backfill = Job(
            self,
            "RekeyBackfill",
            config,
            self._bucket,
            "rekey_backfill",
            {**common, "ScanSegments": self._backfill_items()},
        )
        self.verify = Job(
            self,
            "RekeyVerify",
            config,
            self._bucket,
            "rekey_verify",
            {**common, "ScanSegments": self._compare_both()},
        )
        self.cut_over = self._cut_over()
        self.machines: dict[str, Machine] = {
            "RekeyBackfill": self.backfill,
            "RekeyVerify": self.verify,
            "RekeyCutOver": self._cut_over_machine(),
        }
        self.functions = {
            REPLICATE: self.replicate,
            "BackfillItems": self.backfill.worker,
            "CompareBoth": self.verify.worker,
            "CutOver": self.cut_over,
        }
        if config.verify_schedule:
            self._schedule_verify(config.verify_schedule)
        of_rekeys(keys.watch, self)
        keys.say(*self._outputs())

    def _outputs(self) -> list[tuple[str, str, str]]:
        """Name, value and description of what a user, and `keyhop rekey --stack`, needs to know."""
        like = 'Started with {"rekey": "DESTINATION"} it'
        does = {
            "RekeyBackfill": f"{like} copies all items that are missing there",
            "RekeyVerify": f"{like} compares the two tables",
            "RekeyCutOver": f'{like} has it serve; with "to": "source" besides, goes back',
        }
        return [
            *(
                (f"{name}Arn", machine.state_machine_arn, does[name])
                for name, machine in self.machines.items()
            ),
            ("ReplicateArn", self.replicate.function_arn, "Follows the streams of pairs"),
            ("RekeyFailureQueueUrl", self.failures.queue_url, "Records Replicate gave up on"),
            ("RekeyFailureQueueArn", self.failures.queue_arn, "The same, as mappings name it"),
        ]

    def _schedule_verify(self, schedule: str) -> None:
        start_regularly(
            self,
            "Verify",
            self.verify,
            [
                Start(
                    f"Verify-{pair.label}",
                    f"A comparison of {pair.destination.label} with what it is made of",
                    schedule,
                    {"rekey": pair.destination.given},
                )
                for pair in self._pairs
            ],
            "EventBridge tries for a day to start a comparison; one that is missed is made up for "
            "by the next, and a cutover asks how old the last one is.",
        )

    def _replicate(self) -> lambda_.Function:
        function = self._make.add(
            self,
            REPLICATE,
            "Writes what has changed in one table of a pair into the other",
            {**self._which, "KEYHOP_FAILURE_QUEUE_URL": self.failures.queue_url},
            memory_mb=REPLICATE_MB,
            timeout_seconds=REPLICATE_SECONDS,
            reserved_concurrency=self._config.replicate_concurrency,
            no_dead_letters=BY_LAMBDA,
        )
        allow_describing(function, self._both)
        allow_decrypting(function, self._both)
        # Forward and, after the cutover, reverse: each table is read here and written there.
        allow(
            function,
            "WriteWhatTheOtherTableHas",
            "dynamodb:GetItem BatchGetItem PutItem DeleteItem",
            *_arns(function, self._both),
        )
        allow_following(function, self._both)
        allow_giving_up(function, self.failures)
        beside = "GetItem Query PutItem UpdateItem DeleteItem ConditionCheckItem"
        self._allow_beside(function, beside)
        return function

    def _let_runs_begin(self, functions: Mapping[str, lambda_.Function]) -> None:
        """PlanRun plans all jobs; FinishRun ends a backfill as it ends others, but tells so."""
        plan_run, finish_run = functions["PlanRun"], functions["FinishRun"]
        for function in (plan_run, finish_run):
            for name, value in self._which.items():
                function.add_environment(name, value)
            self._allow_beside(function, "GetItem PutItem")
        allow_describing(plan_run, self._both, OF_PAIRS)
        # It refuses a backfill of a sharded table whose shards the template does not deal with.
        for name, value in which_sharding(self._sources).items():
            plan_run.add_environment(name, value)
        allow_decrypting(plan_run, self._both, OF_PAIRS)
        first = "ReadTheFirstItemsOfASource"
        allow(plan_run, first, "dynamodb:Scan", *_arns(plan_run, self._sources))

    def _backfill_items(self) -> lambda_.Function:
        function = self._of_both(
            "BackfillItems",
            "Puts the items of a group of segments where they are missing in the other table",
            **self._make.of_a_worker,
        )
        scan, put = "ReadTheItemsOfTheSource", "PutItemsIntoTheDestination"
        sources = _arns(function, self._sources)
        allow(function, scan, "dynamodb:Scan", *sources)
        # An item that has moved since it was read is claimed at the place where it was put.
        allow(function, "LookAgainAtWhatWasPut", "dynamodb:BatchGetItem", *sources)
        # What stands where an item belongs is read if a refusal does not tell it.
        destinations = _arns(function, self._destinations)
        allow(function, put, "dynamodb:PutItem GetItem", *destinations)
        self._allow_beside(function, "GetItem PutItem")
        return function

    def _compare_both(self) -> lambda_.Function:
        # One map makes the digests of both tables, the next one compares them and repairs: both are
        # runs of one state machine, and so of one worker.
        function = self._of_both(
            "CompareBoth",
            "Makes digests of both tables of a pair, compares them, and repairs if asked",
            **self._make.of_a_worker,
        )
        both, destinations = (_arns(function, one) for one in (self._both, self._destinations))
        allow(function, "ReadTheItemsOfBothTables", "dynamodb:Scan", *both)
        allow(function, "LookAtWhatDiffers", "dynamodb:GetItem BatchGetItem", *both)
        allow(function, "RepairTheDestination", "dynamodb:PutItem DeleteItem", *destinations)
        self._allow_beside(function, "GetItem Query PutItem DeleteItem ConditionCheckItem")
        return function

    def _cut_over(self) -> lambda_.Function:
        queue, replicate = self.failures.queue_arn, self.replicate.function_arn
        function = self._of_both(
            "CutOver",
            "Takes the steps of a cutover or a rollback: gates, leases, the freeze, the turn",
            {"KEYHOP_REPLICATE": replicate, "KEYHOP_FAILURE_QUEUE": queue},
        )
        self._allow_beside(function, "GetItem Query PutItem DeleteItem ConditionCheckItem")
        both = _arns(function, self._both)
        # A marker is put and deleted at once, on condition that no item stands there.
        allow(function, "PutMarkersAndTakeThemBack", "dynamodb:PutItem DeleteItem", *both)
        allow_reading_streams(function, self._both)
        allow(function, "SeeWhetherRecordsWaitInTheFailureQueue", QUEUE_ATTRIBUTES, queue)
        allow(function, "AskReplicateWhetherItCanWrite", "lambda:InvokeFunction", replicate)
        allow(
            function,
            "SeeWhetherReplicateFollowsTheStreams",
            "lambda:ListEventSourceMappings",
            "*",
            wildcard="A list of mappings knows no resources: Lambda takes no other than *.",
        )
        return function

    def _cut_over_machine(self) -> Machine:
        cut_over = self.cut_over.function_arn
        names = {"CutOverArn": cut_over}
        machine = Machine(self, "RekeyCutOver", self._config, DEFINITION, names)
        allow(machine, "TakeEachStep", "lambda:InvokeFunction", cut_over)
        return machine

    def _of_both(
        self, name: str, description: str, more: Mapping[str, str] = NOTHING, **shape: Any
    ) -> lambda_.Function:
        """A function that may describe both tables, and use their keys."""
        which = {"KEYHOP_BUCKET": self._bucket.bucket_name, **which_tables(()), **self._which}
        function = self._make.add(self, name, description, {**which, **more}, **shape)
        allow_describing(function, self._both)
        allow_decrypting(function, self._both)
        return function

    def _allow_beside(self, function: lambda_.Function, actions: str) -> None:
        """Rights to the side tables, where control, plan, claims and notes of batches lie."""
        arns = _arns(function, [pair.side for pair in self._pairs])
        allow(function, "GoByTheSideTables", f"dynamodb:{actions}", *arns)


def _arns(owner: Owner, tables: Sequence[Table]) -> list[str]:
    return [table_arn(owner, table) for table in tables]
