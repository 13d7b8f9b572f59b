"""Key indexes: the keeper on the tables' streams, and the state machines that build and check.

BuildKeyIndex makes streams, indexes and the keeper's mappings, and not the stack: a table does not
belong to the stack, and the ARN of its stream changes. guard.py protects them when a stack is
changed or destroyed.
"""

from aws_cdk import Stack
from aws_cdk import aws_lambda as lambda_
from constructs import Construct

from .config import which_key_indexes, which_tables
from .deployment import KeyEnumeration
from .followers import BY_LAMBDA, allow_following, allow_giving_up, failure_queue
from .functions import which_limit, which_worker
from .machines import IDS_OF_EXECUTIONS, Job, Machine, machine_name, start_regularly, states_arn
from .monitoring import BEHIND_MINUTES, CAUSE, DAY, FIVE_MINUTES, Monitoring
from .permissions import (
    ALL_RUNS,
    IDS_OF_RUNS,
    KEY_INDEXES,
    allow,
    allow_describing,
    allow_finding_objects,
    allow_looking_into_collections,
    allow_reading_metrics,
    allow_reading_registry,
    allow_scanning_sentinels,
    allow_writing_sentinels,
    table_arns,
)

DEFINITION = "manage"
MACHINES = {
    "BuildKeyIndex": (
        "build",
        "gives a table a key index",
        "A key index was not built to its end. The sentinels so far stay and are maintained; "
        "start the same input again.",
    ),
    "VerifyKeyIndex": (
        "verify",
        "compares a key index with its table, and repairs it",
        "A verification of a key index did not come to its end, so nobody knows whether "
        "the index is true. Start it again.",
    ),
    "RemoveKeyIndex": (
        "remove",
        "takes a key index away; the table is as before",
        "A key index was not removed to its end: its keeper is detached, so do not "
        "list keys from it. Start the same input again.",
    ),
}
"""The action of each state machine, what it does, and what its alarm says."""

KEEPER_SECONDS = 60
SETTLE_SECONDS = KEEPER_SECONDS + 5
"""The time after the removal of its mapping for which a keeper can still run, which is its timeout,
with a place of sentinels that it had read a little before (PLACE_SECONDS)."""

LAPTOP_SETTLE_SECONDS = 1


class KeyIndex(Construct):
    """Key indexes for those tables of a KeyEnumeration that have `key_index`.

    The keeper with its failure queue, the walks, three state machines (BuildKeyIndex,
    VerifyKeyIndex, RemoveKeyIndex), and the schedule of verifications. Deployed, it changes no
    table yet: an execution of BuildKeyIndex gives a table its index. Raises ConfigError.
    """

    def __init__(self, scope: Construct, construct_id: str, keys: KeyEnumeration) -> None:
        super().__init__(scope, construct_id)
        config, bucket, runs = keys.config, keys.results.bucket, keys.runs
        self._config = config
        self._guard = keys.guard
        self._tables = config.key_index_tables
        keys.is_extended_by(self, "key_index", self._tables)
        self._which = {
            "KEYHOP_BUCKET": bucket.bucket_name,
            **which_tables(self._tables),
            **which_key_indexes(config.tables),
        }
        on_a_laptop = config.dynamodb_endpoint is not None
        settle_seconds = LAPTOP_SETTLE_SECONDS if on_a_laptop else SETTLE_SECONDS
        self._settle = {"KEYHOP_SETTLE_SECONDS": str(settle_seconds)}
        self._make = runs.make
        self.bucket = bucket
        self.failures = failure_queue(self)
        self.keep_index = self._keep_index()
        self._let_runs_judge(runs.job)
        self.manage_index = self._manage_index()
        self.functions = {
            "KeepIndex": self.keep_index,
            "ManageIndex": self.manage_index,
            "ReleaseKeeper": self._guard.release_keeper,
        }
        self.walks = runs.another_job(self, "WalkKeyIndexes", "key_index", self._walk_segments())
        self.machines = {
            name: self._manage_machine(name, action) for name, (action, *_) in MACHINES.items()
        }
        start_regularly(
            self,
            "Verification",
            self.machines["VerifyKeyIndex"],
            {
                table.label: (config.verify_index_schedule, {"table": table.given})
                for table in self._tables
            },
            "A verification of the key index of {}",
            "EventBridge tries for a day to start a verification; one that is missed is made up "
            "for by the next, and an index whose last verification is old is not relied on.",
        )
        self._show(keys.watch)
        keys.say(*self._outputs())

    def _outputs(self) -> list[tuple[str, str, str]]:
        return [
            *(
                (
                    f"{name}Arn",
                    self.machines[name].state_machine_arn,
                    f'Started with {{"table": "..."}} it {does}',
                )
                for name, (_, does, _) in MACHINES.items()
            ),
            ("FailureQueueUrl", self.failures.queue_url, "Records that KeepIndex gave up on"),
        ]

    def _manage_machine(self, name: str, action: str) -> Machine:
        """Return a state machine that prepares, has a job walk over a table, and finishes."""
        manage, walks = self.manage_index.function_arn, self.walks.state_machine_arn
        names = {"Action": action, "ManageIndexArn": manage, "WalkKeyIndexesArn": walks}
        machine = Machine(self, name, self._config, DEFINITION, names)
        allow(machine, "PrepareAndFinish", "lambda:InvokeFunction", manage)
        self.walks.is_waited_for_by(machine, "Walk")
        return machine

    def _walk_segments(self) -> lambda_.Function:
        # No reservation: PlanRun plans no more of them at once than of ScanSegments.
        function = self._make.add(
            self,
            "WalkSegments",
            "Puts, compares or deletes the sentinels of a group of segments",
            {**self._which, **self._settle},
            **self._make.of_a_worker,
        )
        allow_reading_registry(function, self.bucket)  # who holds the lease
        allow_describing(function, self._tables)
        allow_scanning_sentinels(function, self._tables)
        allow_looking_into_collections(function, self._tables)
        allow_writing_sentinels(function, self._tables)
        return function

    def _keep_index(self) -> lambda_.Function:
        function = self._make.add(
            self,
            "KeepIndex",
            "Keeps key indexes true: a sentinel in each item collection, and in no other place",
            self._which,
            memory_mb=512,
            timeout_seconds=KEEPER_SECONDS,
            reserved_concurrency=self._config.keeper_concurrency,
            no_dead_letters=BY_LAMBDA,
        )
        allow_describing(function, self._tables)
        allow_looking_into_collections(function, self._tables, many=True)
        allow_writing_sentinels(function, self._tables)
        allow_following(function, self._tables)
        allow_reading_registry(function, self.bucket)  # where the sentinels are
        allow(
            function,
            "WithdrawTheTrustInAKeyIndex",
            "s3:PutObject",
            self.bucket.arn_for_objects(KEY_INDEXES),
            wildcard=IDS_OF_RUNS,
        )
        allow_giving_up(function, self.failures)
        return function

    def _manage_index(self) -> lambda_.Function:
        function = self._make.add(
            self,
            "ManageIndex",
            "Prepares and finishes builds, verifications and removals of key indexes",
            {
                **self._which,
                **which_worker(self._config),
                **which_limit(self._config),
                "KEYHOP_KEEPER": self.keep_index.function_arn,
                "KEYHOP_FAILURE_QUEUE": self.failures.queue_arn,
                **self._settle,
            },
            memory_mb=512,
        )
        allow_describing(function, self._tables)
        allow(
            function,
            "TurnStreamsOnAndOffAddAndDeleteTheKeyIndex",
            "dynamodb:UpdateTable",
            *table_arns(function, self._tables),
        )
        self._allow_scaling(function)
        allow_scanning_sentinels(function, self._tables)
        allow_looking_into_collections(function, self._tables)
        allow(
            function,
            "AttachTheKeeperAndNoOtherFunction",
            "lambda:CreateEventSourceMapping",
            "*",
            conditions=self._guard.of_the_keeper(),
            wildcard="A mapping that is not made yet has no name; the condition allows those of "
            "the keeper only.",
        )
        self._guard.allow_changing_mappings(function, "UpdateEventSourceMapping ")
        executions = [
            states_arn(self, "execution", f"{machine_name(self._config, name)}:*")
            for name in MACHINES
        ]
        allow(
            function,
            "SeeWhetherTheHolderOfALeaseIsStillAtWork",
            "states:DescribeExecution",
            *executions,
            wildcard=IDS_OF_EXECUTIONS,
        )
        for why, actions, objects in (
            # S3 requires both for a write on condition that the object is the one that was read.
            ("WriteDownWhatIsKnownOfKeyIndexes", "GetObject PutObject", KEY_INDEXES),
            ("ReadWhatAWalkHasFound", "GetObject", ALL_RUNS),
            ("WriteTheReportOfAVerification", "PutObject", "runs/*/verification.json"),
        ):
            arn = self.bucket.arn_for_objects(objects)
            allow(function, why, f"s3:{actions}", arn, wildcard=IDS_OF_RUNS)
        allow_finding_objects(function, self.bucket, ALL_RUNS, KEY_INDEXES)
        return function

    def _allow_scaling(self, function: lambda_.Function) -> None:
        """Let ManageIndex set up auto scaling of a key index if its table has auto scaling."""
        scaling = "application-autoscaling"
        allow(
            function,
            "SeeHowTheTablesScale",
            f"{scaling}:DescribeScalableTargets DescribeScalingPolicies",
            "*",
            wildcard="Lists of auto scaling know no resources: the service takes no other than *.",
        )
        dimensions = [f"dynamodb:index:{kind}CapacityUnits" for kind in ("Read", "Write")]
        allow(
            function,
            "LetIndexesScaleAndNothingElse",
            f"{scaling}:RegisterScalableTarget DeregisterScalableTarget PutScalingPolicy",
            Stack.of(self).format_arn(
                service=scaling, resource="scalable-target", resource_name="*"
            ),
            conditions={
                "StringEquals": {
                    f"{scaling}:service-namespace": "dynamodb",
                    f"{scaling}:scalable-dimension": dimensions,
                }
            },
            wildcard="The service names a target when it is registered; the conditions allow "
            "indexes of tables only.",
        )
        # Application Auto Scaling validates that its caller may manage alarms, and names no alarm
        # when it does so: a narrower resource refuses PutScalingPolicy (AWS documentation,
        # "Permissions validation for Application Auto Scaling API calls").
        allow(
            function,
            "HaveTheAlarmsByWhichAnIndexScales",
            "cloudwatch:DescribeAlarms PutMetricAlarm DeleteAlarms",
            "*",
            wildcard="Application Auto Scaling validates these permissions without a resource.",
        )

    def _let_runs_judge(self, job: Job) -> None:
        """Let runs check whether an index is up to date, before they read it and after that."""
        for name in ("PlanRun", "FinishRun"):
            function = job.functions[name]
            function.add_environment("KEYHOP_KEEPER", self.keep_index.function_arn)
            allow_reading_registry(function, self.bucket)
            self._guard.allow_finding_mappings(function)
            allow_reading_metrics(function, "SeeHowFarTheKeeperIsBehind", "GetMetricStatistics")
            allow(
                function,
                "SeeWhetherRecordsWaitInTheFailureQueue",
                "sqs:GetQueueUrl GetQueueAttributes",
                self.failures.queue_arn,
            )
        # PlanRun may look at all tables.
        allow_describing(job.functions["FinishRun"], self._tables)

    def _show(self, watch: Monitoring) -> None:
        """Add the keeper, its failure queue, and builds, verifications and removals."""
        keeper, worker = self.keep_index, self.walks.worker
        watch.alarm(
            "KeyIndexDrift",
            watch.ours("KeyIndexDrift", period=DAY),
            1,
            "A verification found that a sentinel was missing or surplus, so keys listed from the "
            "index were wrong; it has repaired that, unless its input forbids it. The report is in "
            f"s3://{self.bucket.bucket_name}/runs/RUN/verification.json. If it comes back, look "
            "at the errors of KeepIndex and at the failure queue.",
        )
        watch.alarm(
            "KeyIndexFailures",
            watch.waiting_in(self.failures),
            1,
            "KeepIndex gave up on records of a stream, so a key index may be untrue. Run "
            f"`keyhop index redrive TABLE --queue {self.failures.queue_url}` within 24 hours, "
            "while the stream still has the records. After that give it --discard-old and --stack "
            "too, which deletes the messages, and then start VerifyKeyIndex, which finds the lost "
            "changes. Until it has finished, method auto does not read the index.",
        )
        watch.alarm(
            "KeyIndexOccupied",
            watch.ours("PlacesOccupied", period=FIVE_MINUTES),
            1,
            "KeepIndex met an item of yours in the place of a sentinel, so its collection is not "
            "in the key index, and method auto does not read the index any more. Start "
            "VerifyKeyIndex, whose report names the collections; move or delete these items, and "
            "start it again.",
        )
        watch.alarm_if_behind(
            "KeeperBehind",
            keeper,
            f"KeepIndex is {BEHIND_MINUTES} minutes or more behind the stream of a table: new keys "
            "are missing in its key index for so long, and after 24 hours records are lost. Look "
            "at its errors, at throttles of the table, and at the concurrency that the account has "
            "left.",
        )
        for name, (_, _, advice) in MACHINES.items():
            watch.needs_a_person(f"Failed{name}", name, f"{advice} {CAUSE}.")

        functions = {**self.functions, "WalkSegments": worker}
        failed = watch.of_table("RecordsFailed", "records that failed (right)")
        watch.row(
            watch.graph(
                "Key indexes: how far the keeper is behind, and errors",
                [watch.iterator_age(keeper, "iterator age, milliseconds")],
                [*watch.errors_of(functions, "{}: errors (right)"), failed],
            ),
            watch.graph(
                "Key indexes: what the keeper does",
                watch.counts("KeysReconciled", "SentinelsPut", "SentinelsDeleted"),
                [watch.metric_of(keeper, "Invocations", "batches (right)")],
            ),
        )
        drift = watch.of_table(
            "KeyIndexDrift", "drift that verifications found", period=FIVE_MINUTES
        )
        writes = watch.expression(
            f"RUNNING_SUM(units) * {watch.prices.write_unit:.10f}",
            "dollars of a build's or a removal's writes so far (right)",
            {"units": watch.of_table("WriteUnits")},
        )
        ends = [
            end
            for name, machine in self.machines.items()
            for end in watch.ends_of(machine, f"{name}: {{}}")
        ]
        watch.row(
            watch.graph(
                "Key indexes: the failure queue, and drift",
                [watch.waiting_in(self.failures, "batches given up, in the failure queue"), drift],
            ),
            watch.graph(
                "Key indexes: builds, verifications, removals",
                ends,
                [watch.at_once(worker), writes],
            ),
        )
