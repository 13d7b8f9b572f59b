"""The functions of all jobs, and EnumerateKeys, whose workers read and never write."""

from aws_cdk import aws_s3 as s3
from constructs import Construct

from infra.config import Config
from infra.functions import (
    VCPU_MB,
    Functions,
    Shape,
    which_key_indexes,
    which_sharding,
    which_tables,
    which_worker,
)
from infra.job import DISK_MB, Job, worker_shape
from infra.permissions import (
    KEY_INDEXES,
    allow,
    allow_objects,
    allow_reading_keys,
    allow_reading_shard_counts,
)

SUMMING_UP_MB = 3008
"""FinishRun and CleanUp hold the counts of up to a million segments."""

_READ = "GetObject"
_WRITE = "PutObject"


class Enumeration(Construct):
    """The state machine EnumerateKeys and its five functions."""

    def __init__(
        self, scope: Construct, construct_id: str, config: Config, bucket: s3.IBucket
    ) -> None:
        super().__init__(scope, construct_id)
        self.make = Functions.first(self, config)
        where = {"KEYHOP_BUCKET": bucket.bucket_name}
        tables = which_tables(config.tables)
        indexes = which_key_indexes(config)
        price = which_worker(config)
        reserved = config.reserved_concurrency
        # A map of more children than the reservation serves would only be refused and asked again.
        most = {} if reserved is None else {"KEYHOP_MOST_WORKERS": str(reserved)}

        plan_run = self.make.add(
            "PlanRun",
            Shape("Checks a run's input, samples the table, writes the plan"),
            {**where, **tables, **indexes, **price, **most},
        )
        allow_reading_keys(plan_run, config.tables)
        if config.key_index_tables:
            allow(
                plan_run,
                "ReadTheLastAuditOfAKeyIndex",
                ["s3:GetObject"],
                [bucket.arn_for_objects(KEY_INDEXES)],
                wildcard="There is a folder for each table, and a report for each audit.",
            )
        allow_objects(plan_run, bucket, "WriteThePlanAndReadTheRunToResume", _READ, _WRITE)

        scan_segments = self.make.add(
            "ScanSegments",
            worker_shape(
                config, "Reads the keys of a group of segments, a slice at a time", reserved
            ),
            {**where, **tables, **indexes},
        )
        allow_reading_keys(scan_segments, config.tables)

        finish_run = self.make.add(
            "FinishRun",
            Shape(
                "Builds the manifest from the commits, folds logical keys, sweeps the rest",
                SUMMING_UP_MB,
                disk_mb=DISK_MB,
            ),
            {**where, **tables, **price, **which_sharding(config)},
        )
        allow_reading_shard_counts(finish_run, config.sharded_tables)
        swept = "ReadTheCommitsWriteTheManifestSweepTheRest"
        allow_objects(finish_run, bucket, swept, _READ, _WRITE, "DeleteObject")

        verify_run = self.make.add(
            "VerifyRun",
            Shape("Compares a share of the segments with plain Scans"),
            {**where, **tables, **which_worker(config, VCPU_MB)},
        )
        allow_reading_keys(verify_run, config.tables)
        allow_objects(verify_run, bucket, "ReadThePartsAndWriteTheComparison", _READ, _WRITE)

        clean_up = self.make.add(
            "CleanUp",
            Shape("Sums up a run that failed, and says what to do", SUMMING_UP_MB),
            {**where, **price},
        )
        summed = "ReadTheCommitsAndFailuresWriteTheSummaryForgetOldFailures"
        allow_objects(clean_up, bucket, summed, _READ, _WRITE, "DeleteObject")

        functions = {
            "PlanRun": plan_run,
            "ScanSegments": scan_segments,
            "FinishRun": finish_run,
            "VerifyRun": verify_run,
            "CleanUp": clean_up,
        }
        self.job = Job(self, "EnumerateKeys", config, bucket, "keys", functions)
