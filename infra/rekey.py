"""Re-keying: the functions that keep the two tables of a pair equal, copy, compare and cut over.

The destination, the side table and the event source mappings are created by `keyhop rekey` and not
by the stack, because the source does not belong to the stack. guard.py protects them when the stack
is changed or removed.

The dashboard shows the lag, the differences, what blocks a cutover, and how long writes wait. The
metrics of a pair have the destination's name (handlers/telemetry.report_rekey).
"""

from collections.abc import Mapping
from functools import partial
from types import MappingProxyType
from typing import Any

from aws_cdk import aws_lambda as lambda_
from constructs import Construct

from .config import which_pairs, which_sharding, which_tables
from .deployment import KeyEnumeration
from .followers import (
    BY_LAMBDA,
    allow_following,
    allow_giving_up,
    allow_reading_streams,
    failure_queue,
)
from .guard import REPLICATE
from .machines import Machine, start_regularly
from .monitoring import BEHIND_MINUTES, CAUSE, DAY, FIVE_MINUTES, MINUTE, QUARTER, Monitoring
from .permissions import allow, allow_decrypting, allow_describing, table_arns

LONGEST_FREEZE_SECONDS = 15
"""The freeze limit is 10 s by default, and what follows takes two short leases. An abandoned freeze
raises no alarm, because each router ends it."""

CLAIM_PERIODS = 4
"""Periods of 15 minutes: a claim is settled within minutes, unless two items really collide."""

FAILED_MACHINES = {
    "RekeyBackfill": "A backfill did not finish. The copied items stay, and changes are still "
    "replicated; start the same input again, or redrive it.",
    "RekeyVerify": "A comparison of two tables did not finish, so a cutover has no result "
    "to check. Start the same input again.",
    "RekeyCutOver": "A cutover or a rollback did not finish. Before the turn it goes back "
    "automatically; `keyhop rekey status` shows which table serves. Start it "
    "again.",
}


REPLICATE_SECONDS = 300
"""A batch has time to wait for throttles. `complete` waits longer (side/layout.py)."""

REPLICATE_MB = 1024
"""Enough for its share of a vCPU, which limits it: 1,769 MB are one vCPU (AWS documentation)."""
DEFINITION = "rekey-cutover"
QUEUE_ATTRIBUTES = "sqs:GetQueueUrl GetQueueAttributes"
NOTHING: Mapping[str, str] = MappingProxyType({})

OF_PAIRS = "OfPairs"
"""The end of Sids in functions that all jobs share."""


class Rekey(Construct):
    """The pairs of tables in the setting `rekey` of a KeyEnumeration.

    It has Replicate with its failure queue, the jobs RekeyBackfill and RekeyVerify, each with a
    separate worker, and RekeyCutOver, which also rolls back. The deployment changes no table:
    `keyhop rekey start` attaches Replicate to the streams. Raises ConfigError.
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
        runs = keys.runs
        self._let_runs_begin(runs.job.functions)
        self.backfill = runs.another_job(
            self, "RekeyBackfill", "rekey_backfill", self._backfill_items()
        )
        self.verify = runs.another_job(self, "RekeyVerify", "rekey_verify", self._compare_both())
        self.cut_over = self._cut_over()
        invoked = self.cut_over.function_arn
        turn = Machine(self, "RekeyCutOver", config, DEFINITION, {"CutOverArn": invoked})
        allow(turn, "TakeEachStep", "lambda:InvokeFunction", invoked)
        self.machines: dict[str, Machine] = {
            "RekeyBackfill": self.backfill,
            "RekeyVerify": self.verify,
            "RekeyCutOver": turn,
        }
        self.functions = {
            REPLICATE: self.replicate,
            "BackfillItems": self.backfill.worker,
            "CompareBoth": self.verify.worker,
            "CutOver": self.cut_over,
        }
        start_regularly(
            self,
            "Verification",
            self.verify,
            {
                pair.label: (
                    config.verify_schedule,
                    {"rekey": pair.destination.given, "repair": False},
                )
                for pair in self._pairs
            },
            "A comparison of {} with what it is made of",
            "EventBridge tries for a day to start a comparison; one that is missed is made up for "
            "by the next, and a cutover asks how old the last one is.",
        )
        self._alarm(keys.watch)
        self._show(keys.watch)
        keys.say(*self._outputs())

    def _outputs(self) -> list[tuple[str, str, str]]:
        """Return the name, value and description of each output (`keyhop rekey start --remote`)."""
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
        # Each table is read and written, because the direction is reversed after the cutover.
        allow(
            function,
            "WriteWhatTheOtherTableHas",
            "dynamodb:GetItem BatchGetItem PutItem DeleteItem",
            *table_arns(function, self._both),
        )
        allow_following(function, self._both)
        allow_giving_up(function, self.failures)
        beside = "GetItem Query PutItem UpdateItem DeleteItem ConditionCheckItem"
        self._allow_beside(function, beside)
        return function

    def _let_runs_begin(self, functions: Mapping[str, lambda_.Function]) -> None:
        """Let PlanRun and FinishRun of all jobs plan and finish those of pairs."""
        plan_run, finish_run = functions["PlanRun"], functions["FinishRun"]
        for function in (plan_run, finish_run):
            for name, value in self._which.items():
                function.add_environment(name, value)
            self._allow_beside(function, "GetItem PutItem")
        allow_describing(plan_run, self._both, OF_PAIRS)
        # It refuses a backfill of a sharded table if the template does not handle its shards.
        for name, value in which_sharding(self._sources).items():
            plan_run.add_environment(name, value)
        allow_decrypting(plan_run, self._both, OF_PAIRS)
        first = "ReadTheFirstItemsOfASource"
        allow(plan_run, first, "dynamodb:Scan", *table_arns(plan_run, self._sources))

    def _backfill_items(self) -> lambda_.Function:
        function = self._of_both(
            "BackfillItems",
            "Puts the items of a group of segments where they are missing in the other table",
            **self._make.of_a_worker,
        )
        scan, put = "ReadTheItemsOfTheSource", "PutItemsIntoTheDestination"
        sources = table_arns(function, self._sources)
        allow(function, scan, "dynamodb:Scan", *sources)
        # An item that has moved since it was read is claimed at the place where it was put.
        allow(function, "LookAgainAtWhatWasPut", "dynamodb:BatchGetItem", *sources)
        # The item at a place is read if a refusal does not contain it.
        destinations = table_arns(function, self._destinations)
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
        both, destinations = (
            table_arns(function, tables) for tables in (self._both, self._destinations)
        )
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
        both = table_arns(function, self._both)
        # A marker is put only if the place has no item, and is deleted immediately.
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

    def _of_both(
        self, name: str, description: str, more: Mapping[str, str] = NOTHING, **shape: Any
    ) -> lambda_.Function:
        """Return a function that may describe both tables, and use their encryption keys."""
        which = {"KEYHOP_BUCKET": self._bucket.bucket_name, **which_tables(()), **self._which}
        function = self._make.add(self, name, description, {**which, **more}, **shape)
        allow_describing(function, self._both)
        allow_decrypting(function, self._both)
        return function

    def _allow_beside(self, function: lambda_.Function, actions: str) -> None:
        """Allow actions on the side tables, which have the control, plan, claims and batches."""
        arns = table_arns(function, [pair.side for pair in self._pairs])
        allow(function, "GoByTheSideTables", f"dynamodb:{actions}", *arns)

    def _alarm(self, watch: Monitoring) -> None:
        """Add alarms for all pairs."""
        ours = partial(watch.ours, statistic="Maximum")
        watch.alarm_if_behind(
            "RekeyBehind",
            self.replicate,
            f"Replicate is {BEHIND_MINUTES} minutes or more behind a stream, so one table of a "
            "pair is as old; after 24 hours records are lost, and RekeyVerify has to repair. Slow "
            "the backfill down with `keyhop rekey throttle`; look at errors of Replicate, at "
            "throttles of the table that it writes, and at the concurrency that the account has "
            "left.",
        )
        watch.alarm(
            "RekeyFailures",
            watch.waiting_in(self.failures),
            1,
            "Replicate died of an item again and again and gave it up, so the two tables of a pair "
            "may differ, and no cutover is allowed. Its log says why. When the cause is removed, "
            "`keyhop rekey redrive` settles the item; or start RekeyVerify, which reads the tables "
            f"themselves, and purge the queue {self.failures.queue_url}.",
        )
        watch.alarm(
            "RekeyClaims",
            ours("ClaimsLeft", period=QUARTER),
            1,
            "For an hour two items of a source have wanted one place in the destination, where "
            "only one can be; no cutover is allowed. `keyhop rekey status` names them by "
            "attributes: change one of the items, or give the template a key in which they differ, "
            "and begin again.",
            CLAIM_PERIODS,
        )
        watch.alarm(
            "RekeyUnmappable",
            ours("Unmappable", period=QUARTER),
            1,
            "An item has no form under the other key (an attribute is missing, or is not as the "
            "template needs it), so it is missing in the other table and no cutover is allowed. "
            "`keyhop rekey status` says why: mend the item in its table, and it is replicated "
            "then.",
        )
        watch.alarm(
            "RekeyDifferences",
            ours("Differences", period=DAY),
            1,
            "The daily RekeyVerify has found items that differ between the two tables of a pair. "
            "It repairs nothing: start RekeyVerify yourself, which does. If differences come back, "
            "somebody else writes to the destination, or records were lost: look at the failure "
            "queue and at RekeyBehind.",
        )
        watch.alarm(
            "RekeyFreezeLasts",
            ours("PauseSeconds", period=MINUTE),
            LONGEST_FREEZE_SECONDS,
            f"In a cutover or a rollback writes have waited for {LONGEST_FREEZE_SECONDS} seconds "
            "or more. It is over, and nothing is lost; but a writer may have timed out. Before the "
            "next one look at how far Replicate is behind, and at throttles of both tables, or set "
            "a lower freezeLimit: then it is called off instead.",
        )
        for name in self.machines:
            watch.needs_a_person(f"Failed{name}", name, f"{FAILED_MACHINES[name]} {CAUSE}.")

    def _show(self, watch: Monitoring) -> None:
        """Add graphs of the pair whose destination is selected."""
        maximum = partial(watch.of_table, statistic="Maximum", period=FIVE_MINUTES)
        watch.row(
            watch.graph(
                "Re-key: how far the other table is behind, and errors",
                [
                    maximum("ReplicationLag", "seconds"),
                    watch.iterator_age(self.replicate, "iterator age of all pairs, milliseconds"),
                ],
                [
                    *watch.errors_of(self.functions, "{}: errors (right)"),
                    watch.of_table("RecordsGivenUp", "records given up (right)"),
                    watch.waiting_in(
                        self.failures, "batches given up, in the failure queue (right)"
                    ),
                ],
            ),
            watch.graph(
                "Re-key: items",
                [
                    watch.of_table("RecordsReplicated", "changed keys that were replicated"),
                    watch.of_table("KeysFound", "items read by backfill or comparison"),
                ],
                [
                    watch.of_table("WriteUnits", "write units (right)"),
                    watch.at_once(self.backfill.worker, "workers of backfills at once (right)"),
                ],
            ),
        )
        ends = [
            end
            for name, machine in self.machines.items()
            for end in watch.ends_of(machine, f"{name}: {{}} (right)")
        ]
        watch.row(
            watch.graph(
                "Re-key: obstacles to a cutover",
                [
                    maximum("ClaimsLeft", "claims: two items want one place"),
                    watch.of_table("Unmappable", "items without a form under the other key"),
                    maximum("Differences", "differences that a comparison found"),
                    watch.of_table("Stragglers", "writes that bypassed the router"),
                ],
            ),
            watch.graph(
                "Re-key: how long writes have waited, and executions",
                [maximum("PauseSeconds", "seconds of a cutover or rollback")],
                [watch.of_table("CutoversAborted", "called off (right)"), *ends],
            ),
        )
