"""The functions of all jobs, and EnumerateKeys, whose workers read and never write."""

from aws_cdk import aws_lambda as lambda_
from aws_cdk import aws_s3 as s3
from constructs import Construct

from .config import Config, which_key_indexes, which_sharding, which_tables
from .functions import DISK_MB, VCPU_MB, Functions, which_limit, which_worker
from .job import WRITE_PARTS, Job
from .network import Network
from .permissions import (
    allow,
    allow_objects,
    allow_reading_keys,
    allow_reading_shard_counts,
    allow_recognizing_shard_counts,
)
from .schedules import Start, start_regularly

SUMMING_UP_MB = 3008
"""FinishRun and CleanUp hold the counts of up to a million segments."""


class Enumeration(Construct):
    """The state machine EnumerateKeys and its five functions."""

    def __init__(
        self,
        scope: Construct,
        construct_id: str,
        config: Config,
        bucket: s3.IBucket,
        packages: lambda_.ILayerVersion | None = None,
        network: Network | None = None,
    ) -> None:
        super().__init__(scope, construct_id)
        self.make = Functions(self, config, packages, network)
        where = {"KEYHOP_BUCKET": bucket.bucket_name}
        tables = which_tables(config.tables)
        indexes = which_key_indexes(config.tables)
        price = which_worker(config)
        reserved = config.reserved_concurrency
        # More children of a map than reserved workers would only be throttled and retried.
        worker_limit = {} if reserved is None else {"KEYHOP_MOST_WORKERS": str(reserved)}

        plan_run = self.make.add(
            self,
            "PlanRun",
            "Checks a run's input, samples the table, writes the plan",
            {**where, **tables, **indexes, **price, **worker_limit, **which_limit(config)},
        )
        allow_reading_keys(plan_run, config.tables)
        allow_recognizing_shard_counts(plan_run, config.sharded_tables)
        allow_objects(plan_run, bucket, "WriteThePlanAndReadTheRunToResume", "GetObject PutObject")
        allow(
            plan_run,
            "SeeHowManyFunctionsMayRunAtOnce",
            "lambda:GetAccountSettings",
            "*",
            wildcard="An account's settings know no resources: Lambda takes no other than *.",
        )

        scan_segments = self.make.add(
            self,
            "ScanSegments",
            "Reads the keys of a group of segments, a slice at a time",
            {**where, **tables, **indexes},
            reserved_concurrency=reserved,
            **self.make.of_a_worker,
        )
        allow_reading_keys(scan_segments, config.tables)

        finish_run = self.make.add(
            self,
            "FinishRun",
            "Builds the manifest from the commits, folds logical keys, sweeps the rest",
            {**where, **tables, **indexes, **price, **which_sharding(config.tables)},
            memory_mb=SUMMING_UP_MB,
            disk_mb=DISK_MB,
        )
        allow_reading_shard_counts(finish_run, config.sharded_tables)
        swept = "ReadTheCommitsWriteTheManifestSweepTheRest"
        allow_objects(finish_run, bucket, swept, f"GetObject {WRITE_PARTS} DeleteObject")

        verify_run = self.make.add(
            self,
            "VerifyRun",
            "Compares a share of the segments with plain Scans",
            {**where, **tables, **which_worker(config, VCPU_MB)},
        )
        allow_reading_keys(verify_run, config.tables)
        compared = "ReadThePartsAndWriteTheComparison"
        allow_objects(verify_run, bucket, compared, "GetObject PutObject")

        clean_up = self.make.add(
            self,
            "CleanUp",
            "Sums up a run that failed, and says what to do",
            {**where, **price},
            memory_mb=SUMMING_UP_MB,
        )
        summed = "ReadTheCommitsAndFailuresWriteTheSummaryForgetOldFailures"
        allow_objects(clean_up, bucket, summed, "GetObject PutObject DeleteObject")

        functions = {
            "PlanRun": plan_run,
            "ScanSegments": scan_segments,
            "FinishRun": finish_run,
            "VerifyRun": verify_run,
            "CleanUp": clean_up,
        }
        self.job = Job(self, "EnumerateKeys", config, bucket, "keys", functions)
        starts = [
            Start(
                f"Run-{table.label}",
                f"Lists the keys of {table.label}",
                table.run_schedule,
                {**table.run_input, "table": table.given},
            )
            for table in config.tables
            if table.run_schedule
        ]
        if starts:
            start_regularly(
                self,
                "Run",
                self.job,
                starts,
                "EventBridge tries for a day to start a run; one that is missed is made up for by "
                "the next, and the age of the last is that of its files.",
            )
