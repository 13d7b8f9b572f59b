"""A run: the state machine EnumerateKeys and its functions."""

from aws_cdk import Aws
from aws_cdk import aws_iam as iam
from aws_cdk import aws_lambda as lambda_
from aws_cdk import aws_s3 as s3
from aws_cdk import aws_stepfunctions as sfn
from constructs import Construct

from infra.config import Config
from infra.functions import Functions, Shape, which_key_indexes, which_tables, which_worker
from infra.machines import DEFINITIONS, machine_name, machine_role, state_machine, states_arn
from infra.permissions import (
    KEY_INDEXES,
    allow,
    allow_looking_into_collections,
    allow_objects,
    allow_reading_keys,
    allow_writing_sentinels,
)

NAME = "EnumerateKeys"
DEFINITION = DEFINITIONS / "enumerate_keys.asl.json"
MAP_LABEL = "ScanGroups"
"""The Label of the distributed map in the definition; part of its children's ARNs."""

VCPU_MB = 1769
"""The memory at which a function has one whole vCPU."""
SUMMING_UP_MB = 3008
"""FinishRun and CleanUp hold the counts of up to a million segments."""
INDEX_DISK_MB = 4096
"""The keys of an index are made distinct on disk."""

_READ = "GetObject"
_WRITE = "PutObject"


class Enumeration(Construct):
    """The state machine and its five functions."""

    def __init__(
        self, scope: Construct, construct_id: str, config: Config, bucket: s3.IBucket
    ) -> None:
        super().__init__(scope, construct_id)
        self._config = config
        self._bucket = bucket
        self.name = machine_name(config, NAME)
        self.make = Functions(self, config)
        self._add = self.make.add
        self.plan_run = self._plan_run()
        self.scan_segments = self._scan_segments()
        self.finish_run = self._finish_run()
        self.verify_run = self._verify_run()
        self.clean_up = self._clean_up()
        self.functions = {
            "PlanRun": self.plan_run,
            "ScanSegments": self.scan_segments,
            "FinishRun": self.finish_run,
            "VerifyRun": self.verify_run,
            "CleanUp": self.clean_up,
        }
        self.state_machine = self._state_machine()

    def _plan_run(self) -> lambda_.Function:
        function, role = self._add(
            "PlanRun",
            "plan_run",
            Shape("Checks a run's input, samples the table, writes the plan", VCPU_MB),
            {
                **self._where(),
                **which_tables(self._config.tables),
                **which_key_indexes(self._config),
                **which_worker(self._config),
                **self._most_workers(),
            },
        )
        allow_reading_keys(role, self._config.tables)
        if self._config.key_index_tables:
            allow(
                role,
                "ReadTheLastAuditOfAKeyIndex",
                ["s3:GetObject"],
                [self._bucket.arn_for_objects(KEY_INDEXES)],
                wildcard="There is a folder for each table, and a report for each audit.",
            )
        allow_objects(role, self._bucket, "WriteThePlanAndReadTheRunToResume", _READ, _WRITE)
        return function

    def _scan_segments(self) -> lambda_.Function:
        worker = self._config.worker
        function, role = self._add(
            "ScanSegments",
            "scan_segments",
            Shape(
                "Reads the keys of a group of segments, a slice at a time",
                worker.memory_mb,
                worker.timeout_seconds,
                INDEX_DISK_MB,
                worker.reserved_concurrency,
            ),
            {
                **self._where(),
                **which_tables(self._config.tables),
                **which_key_indexes(self._config),
            },
        )
        allow_reading_keys(role, self._config.tables)
        if kept := self._config.key_index_tables:
            allow_looking_into_collections(role, kept)
            allow_writing_sentinels(role, kept)
        allow_objects(
            role,
            self._bucket,
            "WritePartsAndCommitsAndReadTheCommitsBefore",
            _READ,
            _WRITE,
            "AbortMultipartUpload",
        )
        # UpdateMapRun may change how many workers run at once, while they run: each asks for the
        # present number and keeps to its share of maxReadRate.
        live = "The ids of executions and of map runs are known only when a run is started."
        allow(
            role,
            "FindTheMapRunThatItBelongsTo",
            ["states:ListMapRuns"],
            [states_arn(self, "execution", f"{self.name}:*")],
            wildcard=live,
        )
        allow(
            role,
            "AskHowManyWorkersRunAtOnce",
            ["states:DescribeMapRun"],
            [states_arn(self, "mapRun", f"{self.name}/{MAP_LABEL}:*")],
            wildcard=live,
        )
        return function

    def _finish_run(self) -> lambda_.Function:
        function, role = self._add(
            "FinishRun",
            "finish_run",
            Shape(
                "Builds the manifest from the commits, folds logical keys, sweeps the rest",
                SUMMING_UP_MB,
                disk_mb=INDEX_DISK_MB,  # a fold remembers each logical key, as an index run does
            ),
            {**self._where(), **which_worker(self._config)},
        )
        allow_objects(
            role,
            self._bucket,
            "ReadTheCommitsWriteTheManifestSweepTheRest",
            _READ,
            _WRITE,
            "DeleteObject",
        )
        return function

    def _verify_run(self) -> lambda_.Function:
        function, role = self._add(
            "VerifyRun",
            "verify_run",
            Shape("Compares a share of the segments with plain Scans", VCPU_MB),
            {
                **self._where(),
                **which_tables(self._config.tables),
                **which_worker(self._config, VCPU_MB),
            },
        )
        allow_reading_keys(role, self._config.tables)
        allow_objects(role, self._bucket, "ReadThePartsAndWriteTheComparison", _READ, _WRITE)
        return function

    def _clean_up(self) -> lambda_.Function:
        function, role = self._add(
            "CleanUp",
            "clean_up",
            Shape("Sums up a run that failed, and says what to do", SUMMING_UP_MB),
            {**self._where(), **which_worker(self._config)},
        )
        allow_objects(
            role,
            self._bucket,
            "ReadTheCommitsAndFailuresWriteTheSummaryForgetOldFailures",
            _READ,
            _WRITE,
            "DeleteObject",
        )
        return function

    def _where(self) -> dict[str, str]:
        return {"KEYHOP_BUCKET": self._bucket.bucket_name}

    def _most_workers(self) -> dict[str, str]:
        # A map of more children than the reservation serves would only be refused and asked again.
        reserved = self._config.worker.reserved_concurrency
        return {} if reserved is None else {"KEYHOP_MOST_WORKERS": str(reserved)}

    def _state_machine(self) -> sfn.StateMachine:
        return state_machine(
            self,
            NAME,
            self._config,
            DEFINITION,
            {
                "Partition": Aws.PARTITION,
                "ResultsBucket": self._bucket.bucket_name,
                **{f"{name}Arn": one.function_arn for name, one in self.functions.items()},
            },
            self._state_machine_role(),
            only_errors="Each of up to a million children would log every event; the history of "
            "an execution has them all, and the log has the errors.",
        )

    def _state_machine_role(self) -> iam.Role:
        role = machine_role(self, NAME, self._config)
        allow(
            role,
            "InvokeTheFunctionOfEachState",
            ["lambda:InvokeFunction"],
            [function.function_arn for function in self.functions.values()],
        )
        run = "A run's id, and so the names of its objects, are known only when it is started."
        allow(
            role,
            "ReadTheGroupsOfAPlan",
            ["s3:GetObject"],
            [self._bucket.arn_for_objects("runs/*/groups/*")],
            wildcard=run,
        )
        allow(
            role,
            "NoteWhyAGroupFailed",
            ["s3:PutObject"],
            [self._bucket.arn_for_objects("runs/*/failures/*")],
            wildcard=run,
        )
        allow(
            role,
            "WriteTheMapsOwnResults",
            [
                *("s3:GetObject", "s3:PutObject"),
                *("s3:ListMultipartUploadParts", "s3:AbortMultipartUpload"),
            ],
            [self._bucket.arn_for_objects("runs/*/map-results/*")],
            wildcard=run,
        )
        # The machine's name is fixed, so its ARN is known here without a reference to it: a
        # reference would make a cycle of role and machine.
        allow(
            role,
            "StartTheChildrenOfTheMap",
            ["states:StartExecution"],
            [states_arn(self, "stateMachine", self.name)],
        )
        children = [
            states_arn(self, "execution", f"{self.name}:*"),
            states_arn(self, "execution", f"{self.name}/{MAP_LABEL}:*"),
        ]
        ids = "Step Functions names the children of a map when it starts them."
        allow(
            role,
            "FollowAndStopTheChildrenOfTheMap",
            ["states:DescribeExecution", "states:StopExecution"],
            children,
            wildcard=ids,
        )
        # A redrive of the run redrives its failed children.
        allow(
            role,
            "RedriveTheChildrenOfTheMap",
            ["states:RedriveExecution"],
            children[1:],
            wildcard=ids,
        )
        return role
