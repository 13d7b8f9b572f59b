"""The functions of all jobs, and EnumerateKeys, whose workers read and never write.

The graphs of its runs also have the reads of all other walks over tables.
"""

from aws_cdk import Aws
from aws_cdk import aws_cloudwatch as cw
from aws_cdk import aws_lambda as lambda_
from aws_cdk import aws_s3 as s3
from constructs import Construct

from .config import Config, which_key_indexes, which_sharding, which_tables
from .functions import DISK_MB, SERVICE, VCPU_MB, Functions, which_limit, which_worker
from .machines import WRITE_PARTS, Job, start_regularly
from .monitoring import ANY_TABLE, CAUSE, FIVE_MINUTES, MINUTE, QUARTER, WIDTH, Monitoring
from .network import Network
from .permissions import allow, allow_objects, allow_reading_keys, metadata_arns

SUMMING_UP_MB = 3008
"""FinishRun and CleanUp hold the counts of up to a million segments."""

MANY_THROTTLES = 1000
"""About one per second. Workers slow down after a few throttles, so these are normal."""

MOST_RUNS = 20
"""The maximum length of the list of runs."""

WHAT_TO_DO = {
    "an alarm": "open it: its description says what to do",
    "a run has failed": "open its execution: the cause says why, and has the input by which it "
    "goes on",
    "throttles, or others need the table": "open the execution's map run and lower its "
    "concurrency; start the next run with a smaller `maxReadRate`",
    "too slow, and the rate is as allowed": "start the next run with a larger `maxReadRate`",
    "too slow, and no worker is running": "others use the account's Lambda concurrency: wait, or "
    "have it raised",
    "it must stop": 'stop the execution; start one with `"resume"` and its name to go on',
}
"""The advice for each symptom on the dashboard."""

LIMITS = (
    "Workers report when they commit, at least every minute. *Done* and *minutes left* are of all "
    "segments that were planned in the time shown, so choose a time with only one run; the list of "
    "runs shows each of them."
)


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
        self._config = config
        self._bucket = bucket
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
            handler="job.plan_run",
        )
        allow_reading_keys(plan_run, config.tables)
        shard_counts = metadata_arns(self, config.sharded_tables)
        if shard_counts:  # PlanRun checks that the table that a run names is a metadata table
            allow(plan_run, "SeeThatATableHasShardCounts", "dynamodb:DescribeTable", *shard_counts)
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
            handler="job.finish_run",
            memory_mb=SUMMING_UP_MB,
            disk_mb=DISK_MB,
        )
        if shard_counts:  # and no items: a metadata table has none
            counted = "SeeHowManyShardsTheLogicalKeysHave"
            allow(finish_run, counted, "dynamodb:Scan", *shard_counts)
        swept = "ReadTheCommitsWriteTheManifestSweepTheRest"
        allow_objects(finish_run, bucket, swept, f"GetObject {WRITE_PARTS} DeleteObject")

        verify_run = self.make.add(
            self,
            "VerifyRun",
            "Compares a share of the segments with plain Scans",
            {**where, **tables, **which_worker(config, VCPU_MB)},
            handler="job.verify_run",
        )
        allow_reading_keys(verify_run, config.tables)
        compared = "ReadThePartsAndWriteTheComparison"
        allow_objects(verify_run, bucket, compared, "GetObject PutObject")

        clean_up = self.make.add(
            self,
            "CleanUp",
            "Sums up a run that failed, and says what to do",
            {**where, **price},
            handler="job.clean_up",
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
        start_regularly(
            self,
            "Run",
            self.job,
            {
                table.label: (table.run_schedule, {**table.run_input, "table": table.given})
                for table in config.tables
            },
            "Lists the keys of {}",
            "EventBridge tries for a day to start a run; one that is missed is made up for by "
            "the next, and the age of the last is that of its files.",
        )

    def another_job(self, scope: Construct, name: str, task: str, worker: lambda_.Function) -> Job:
        """Return a job with another worker; all jobs share the other functions.

        Each worker has a separate role, because some write and others only read.
        """
        functions = {**self.job.functions, "ScanSegments": worker}
        return Job(scope, name, self._config, self._bucket, task, functions)

    def show_on(self, watch: Monitoring) -> None:
        """Add the runs of EnumerateKeys, and the reads of all walks over tables."""
        job = self.job
        watch.needs_a_person(
            "FailedRun",
            "EnumerateKeys",
            f"A run failed, so there is no complete list of keys. {CAUSE}. What it read is kept: "
            'redrive it, or start one with "resume" and its id.',
        )
        watch.alarm(
            "ThrottledRun",
            watch.ours("Throttles", period=QUARTER),
            MANY_THROTTLES,
            f"DynamoDB throttled {MANY_THROTTLES} requests of the runs within a quarter of an "
            "hour; others that read the table are likely throttled as well. The dashboard has the "
            "reasons. Lower the map run's concurrency in the console, or start runs with a smaller "
            '"maxReadRate".',
        )
        watch.row(_guide(watch, job, self._bucket))
        _progress(watch, job)

        by_reason = cw.SearchExpression(
            expression=(
                f'SEARCH(\'{{"{watch.config.stack_name}",service,table,Reason}} '
                f'MetricName="Throttles" service="{SERVICE}" table="{ANY_TABLE}"\', \'Sum\', 60)'
            ),
            label=" ",
            period=MINUTE,
        )
        all_readers = cw.Metric(
            namespace="AWS/DynamoDB",
            metric_name="ConsumedReadCapacityUnits",
            dimensions_map={"TableName": ANY_TABLE},
            statistic="Sum",
            period=MINUTE,
        )
        watch.row(
            watch.graph(
                "Read units a second",
                [
                    _rate(watch),
                    watch.of_table("AllowedRate", "allowed (maxReadRate)", statistic="Maximum"),
                    watch.expression(
                        "table / 60", "all readers, as DynamoDB counts", {"table": all_readers}
                    ),
                ],
            ),
            watch.graph("Throttles, by DynamoDB's reason", [by_reason], stacked=True),
        )
        watch.row(_list_of_runs(watch, job))
        no_room = watch.metric_of(job.worker, "Throttles", "ScanSegments: no concurrency left")
        longest = [
            watch.expression(
                f"ms{name} / 1000",
                name,
                {f"ms{name}": watch.metric_of(function, "Duration", statistic="Maximum")},
            )
            for name, function in job.functions.items()
        ]
        watch.row(
            watch.graph(
                "Errors of the functions", [*watch.errors_of(job.functions, "{}"), no_room]
            ),
            watch.graph("Longest invocation, seconds", longest, [watch.at_once(job.worker)]),
        )
        ends = [
            watch.metric_of(job, f"Executions{end}", period=FIVE_MINUTES)
            for end in ("Started", "Succeeded", "Failed", "TimedOut", "Aborted")
        ]
        seconds = watch.of_table("RunSeconds", "seconds", statistic="Maximum")
        dollars = watch.of_table("RunDollars", "dollars, all services", statistic="Maximum")
        watch.row(
            watch.graph("Executions", ends, width=8),
            watch.graph("Duration of a run, seconds", [seconds], width=8),
            watch.graph("Cost of a run, dollars", [dollars], width=8),
        )


def _guide(watch: Monitoring, job: Job, bucket: s3.IBucket) -> cw.IWidget:
    """Return a text that says where to look and what to do."""
    logs = f"#logsV2:log-groups$3FlogGroupNameFilter$3D{watch.config.stack_name}-"
    places = {
        "executions": ("states/home?", f"#/statemachines/view/{job.state_machine_arn}"),
        "files of the runs": (f"s3/buckets/{bucket.bucket_name}?", "&prefix=runs/"),
        "logs": ("cloudwatch/home?", logs),
    }
    links = [
        f"[{name}]({watch.console}/{service}region={Aws.REGION}{place})"
        for name, (service, place) in places.items()
    ]
    lines = [
        f"# {watch.config.stack_name}: {ANY_TABLE}",
        f"Another table: above. Open the {', the '.join(links)}.",
        "",
        "what you see | what to do",
        "---|---",
        *(f"{symptom} | {advice}" for symptom, advice in WHAT_TO_DO.items()),
        "",
        LIMITS,
    ]
    return cw.TextWidget(markdown="\n".join(lines), width=WIDTH, height=8)


def _progress(watch: Monitoring, job: Job) -> None:
    """Add the progress of the runs of the table in the visible time."""
    ended, planned = watch.of_table("SegmentsDone"), watch.of_table("SegmentsPlanned")
    share = "100 * RUNNING_SUM(FILL(done, 0)) / RUNNING_SUM(FILL(planned, 0))"
    percent = watch.expression(share, "done, %", {"done": ended, "planned": planned})
    # Over five minutes, because a single worker does not end a segment every minute.
    minutes_left = watch.expression(
        "5 * (RUNNING_SUM(FILL(planned5, 0)) - RUNNING_SUM(FILL(done5, 0))) / done5",
        "minutes left, at this pace",
        {
            "done5": watch.of_table("SegmentsDone", period=FIVE_MINUTES),
            "planned5": watch.of_table("SegmentsPlanned", period=FIVE_MINUTES),
        },
        FIVE_MINUTES,
    )
    keys = watch.expression("RUNNING_SUM(keys)", "keys", {"keys": watch.of_table("KeysFound")})
    dollars = watch.expression(
        f"RUNNING_SUM(units) * {watch.prices.read_unit:.10f}",
        f"dollars of reads ({watch.prices.on_demand})",
        {"units": watch.of_table("ReadUnits")},
    )
    watch.row(
        watch.number("Done, %", percent, 4),
        watch.number("Keys found", keys, 5),
        watch.number("Read units a second", _rate(watch), 5),
        watch.number("Cost of reads so far, dollars", dollars, 5),
        watch.number("Minutes left", minutes_left, 5),
    )
    watch.row(
        watch.graph("Done, % of the segments planned in the time shown", [percent], [minutes_left]),
        watch.graph("Keys found, and what reading them has cost", [keys], [dollars]),
    )


def _rate(watch: Monitoring) -> cw.IMetric:
    """Return the rate over five minutes, because a report covers up to a minute."""
    units = watch.of_table("ReadUnits", period=FIVE_MINUTES)
    label = "of the runs, mean of 5 minutes"
    return watch.expression("units5 / PERIOD(units5)", label, {"units5": units}, FIVE_MINUTES)


def _list_of_runs(watch: Monitoring, job: Job) -> cw.IWidget:
    """Return a list of runs, from the lines that the functions log."""
    readers = ("PlanRun", "ScanSegments", "VerifyRun")
    groups = [job.functions[name].log_group.log_group_name for name in readers]
    columns = (
        "100 * sum(SegmentsDone.0) / max(SegmentsPlanned.0) as percent_done",
        "sum(KeysFound.0) as keys",
        "sum(ReadUnits.0) as read_units",
        f"sum(ReadUnits.0) * {watch.prices.read_unit:.10f} as dollars_of_reads",
        "sum(requests) as request_count",
        "sum(retries) as retry_count",
        "max(@timestamp) as last_report",
    )
    return cw.LogQueryWidget(
        title=f"Runs of {ANY_TABLE} that reported in the time shown",
        log_group_names=groups,
        query_lines=[
            f'filter table = "{ANY_TABLE}" and ispresent(run)',
            f"stats {', '.join(columns)} by run",
            "sort last_report desc",
            f"limit {MOST_RUNS}",
        ],
        view=cw.LogQueryVisualizationType.TABLE,
        width=WIDTH,
        height=6,
    )
