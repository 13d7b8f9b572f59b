"""What is watched: alarms, which say what to do, and graphs. One view for each capability."""

import re
from functools import partial
from typing import Protocol

from aws_cdk import Aws
from aws_cdk import aws_cloudwatch as cw
from aws_cdk import aws_lambda as lambda_
from aws_cdk import aws_s3 as s3
from aws_cdk import aws_sqs as sqs
from keyhop.dynamodb.prices import Prices

from .functions import SERVICE
from .job import Job
from .machines import DRAIN, Machine
from .monitoring import (
    ANY_TABLE,
    DAY,
    FIVE_MINUTES,
    MINUTE,
    QUARTER,
    WIDTH,
    Monitoring,
    errors_of,
    expression,
    graph,
    number,
    of,
)

MANY_THROTTLES = 1000
"""About one a second; a few are how DynamoDB asks to be given time, and workers give it."""

BEHIND_MINUTES = 15
BEHIND_PERIODS = 3
"""Of five minutes: an iterator age that stays high is no burst."""

MOST_RUNS = 20
"""In the list of runs."""

CAUSE = "Open the execution in the Step Functions console: its cause says why and what to do"
FAILED_MACHINES = {
    "BuildKeyIndex": "A key index was not built to its end. What is built stays and is kept true; "
    "start the same input again.",
    "AuditKeyIndex": "An audit of a key index did not come to its end, so nobody knows whether "
    "the index is true. Start it again.",
    "RemoveKeyIndex": "A key index was not removed to its end: its keeper is detached, so do not "
    "list keys from it. Start the same input again.",
    DRAIN: "A drain did not come to its end. Nothing is lost: readers go on reading every shard "
    "that may hold items; start the same input again.",
}

WHAT_TO_DO = {
    "an alarm": "open it: its description says what to do",
    "a run has failed": "open its execution: the cause says why, and has the input by which it "
    "goes on",
    "throttles, or others need the table": "open the execution's map run and lower its "
    "concurrency; start the next run with a smaller `maxReadRate`",
    "too slow, and the rate is as allowed": "start the next run with a larger `maxReadRate`",
    "too slow, and no worker is at work": "others have the account's Lambda concurrency: wait, or "
    "have it raised",
    "it must stop": 'stop the execution; start one with `"resume"` and its name to go on',
}
"""By what is seen on the dashboard."""

LIMITS = (
    "Workers report when they commit, at least every minute. *Done* and *minutes left* are of all "
    "segments that were planned in the time shown, so choose one with one run in it; the list of "
    "runs tells them apart."
)


class KeyIndexes(Protocol):
    """What of a KeyIndex is watched."""

    bucket: s3.IBucket
    failures: sqs.Queue
    functions: dict[str, lambda_.Function]
    keep_index: lambda_.Function
    machines: dict[str, Machine]
    walks: Job


class Sharded(Protocol):
    """What of ShardedTables is watched."""

    drain_shards: Machine
    functions: dict[str, lambda_.Function]


def of_runs(watch: Monitoring, job: Job, bucket: s3.IBucket) -> None:
    """The runs of EnumerateKeys, and what reading needs of all walks over tables."""
    needs_a_person(
        watch,
        "FailedRun",
        "EnumerateKeys",
        f"A run failed, so there is no complete list of keys. {CAUSE}. What it read is kept: "
        'redrive it, or start one with "resume" and its id.',
    )
    watch.alarm(
        "ThrottledRun",
        watch.ours("Throttles", period=QUARTER),
        MANY_THROTTLES,
        f"DynamoDB throttled {MANY_THROTTLES} requests of the runs within a quarter of an hour; "
        "others that read the table are likely throttled as well. The dashboard has the reasons. "
        "Lower the map run's concurrency in the console, or start runs with a smaller "
        '"maxReadRate".',
    )
    watch.row(_guide(watch, job, bucket))
    _progress(watch, job)

    by_reason = cw.SearchExpression(
        expression=(
            f'SEARCH(\'{{"{watch.config.stack_name}",service,table,Reason}} MetricName="Throttles" '
            f'service="{SERVICE}" table="{ANY_TABLE}"\', \'Sum\', 60)'
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
        graph(
            "Read units a second",
            [
                _rate(watch),
                watch.of_table("AllowedRate", "allowed (maxReadRate)", statistic="Maximum"),
                expression("table / 60", "all readers, as DynamoDB counts", {"table": all_readers}),
            ],
        ),
        graph("Throttles, by DynamoDB's reason", [by_reason], stacked=True),
    )
    watch.row(_list_of_runs(watch, job))
    no_room = of(job.worker, "Throttles", "ScanSegments: no concurrency left")
    longest = [
        expression(
            f"ms{name} / 1000", name, {f"ms{name}": of(one, "Duration", statistic="Maximum")}
        )
        for name, one in job.functions.items()
    ]
    watch.row(
        graph("Errors of the functions", [*errors_of(job.functions, "{}"), no_room]),
        graph("Longest invocation, seconds", longest, [_at_once(job)]),
    )
    ends = [
        of(job, f"Executions{end}", period=FIVE_MINUTES)
        for end in ("Started", "Succeeded", "Failed", "TimedOut", "Aborted")
    ]
    seconds = watch.of_table("RunSeconds", "seconds", statistic="Maximum")
    dollars = watch.of_table("RunDollars", "dollars, all services", statistic="Maximum")
    watch.row(
        graph("Executions", ends, width=8),
        graph("Duration of a run, seconds", [seconds], width=8),
        graph("Cost of a run, dollars", [dollars], width=8),
    )


def _guide(watch: Monitoring, job: Job, bucket: s3.IBucket) -> cw.IWidget:
    """Where to look, and what to do."""
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
        *(f"{seen} | {advice}" for seen, advice in WHAT_TO_DO.items()),
        "",
        LIMITS,
    ]
    return cw.TextWidget(markdown="\n".join(lines), width=WIDTH, height=8)


def _progress(watch: Monitoring, job: Job) -> None:
    """How far the runs of the table are, in the time that is shown."""
    done, planned = watch.of_table("SegmentsDone"), watch.of_table("SegmentsPlanned")
    share = "100 * RUNNING_SUM(FILL(done, 0)) / RUNNING_SUM(FILL(planned, 0))"
    percent = expression(share, "done, %", {"done": done, "planned": planned})
    # Of five minutes: a worker that is alone ends a segment now and then.
    left = expression(
        "5 * (RUNNING_SUM(FILL(planned5, 0)) - RUNNING_SUM(FILL(done5, 0))) / done5",
        "minutes left, at this pace",
        {
            "done5": watch.of_table("SegmentsDone", period=FIVE_MINUTES),
            "planned5": watch.of_table("SegmentsPlanned", period=FIVE_MINUTES),
        },
        FIVE_MINUTES,
    )
    keys = expression("RUNNING_SUM(keys)", "keys", {"keys": watch.of_table("KeysFound")})
    prices = _prices(watch)
    dollars = expression(
        f"RUNNING_SUM(units) * {prices.read_unit:.10f}",
        f"dollars of reads ({prices.on_demand})",
        {"units": watch.of_table("ReadUnits")},
    )
    watch.row(
        number("Done, %", percent, 4),
        number("Keys found", keys, 5),
        number("Read units a second", _rate(watch), 5),
        number("Cost of reads so far, dollars", dollars, 5),
        number("Minutes left", left, 5),
    )
    watch.row(
        graph("Done, % of the segments planned in the time shown", [percent], [left]),
        graph("Keys found, and what reading them has cost", [keys], [dollars]),
    )


def _prices(watch: Monitoring) -> Prices:
    """The deployment's own, else list prices: a template does not know its region."""
    return Prices.of(None, watch.config.prices)


def _rate(watch: Monitoring) -> cw.IMetric:
    """Of five minutes: a report is of up to a minute, so the minutes would jump."""
    units = watch.of_table("ReadUnits", period=FIVE_MINUTES)
    label = "of the runs, mean of 5 minutes"
    return expression("units5 / PERIOD(units5)", label, {"units5": units}, FIVE_MINUTES)


def _list_of_runs(watch: Monitoring, job: Job) -> cw.IWidget:
    """Each run by itself, of the lines by which its functions report."""
    readers = ("PlanRun", "ScanSegments", "VerifyRun")
    groups = [job.functions[name].log_group.log_group_name for name in readers]
    columns = (
        "100 * sum(SegmentsDone.0) / max(SegmentsPlanned.0) as percent_done",
        "sum(KeysFound.0) as keys",
        "sum(ReadUnits.0) as read_units",
        f"sum(ReadUnits.0) * {_prices(watch).read_unit:.10f} as dollars_of_reads",
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


def of_key_indexes(watch: Monitoring, key_index: KeyIndexes) -> None:
    """The keeper, its failure queue, and what builds, checks and removes."""
    keeper, queue, walks = key_index.keep_index, key_index.failures, key_index.walks

    highest = partial(of, statistic="Maximum", period=FIVE_MINUTES)
    waiting = partial(highest, queue, "ApproximateNumberOfMessagesVisible")
    age = partial(highest, keeper, "IteratorAge")

    watch.alarm(
        "KeyIndexDrift",
        watch.ours("KeyIndexDrift", period=DAY),
        1,
        "An audit found that a sentinel was missing or surplus, so keys listed from the index were "
        "wrong; unless it was told not to, it has put that right. The report is in "
        f"s3://{key_index.bucket.bucket_name}/runs/RUN/audit.json. If it comes back, look at the "
        "errors of KeepIndex and at the failure queue.",
    )
    watch.alarm(
        "KeyIndexFailures",
        waiting(),
        1,
        "KeepIndex gave up on records of a stream, so a key index may be untrue. Run "
        f"`keyhop index reconcile TABLE --queue {queue.queue_url}` within 24 hours, while the "
        "stream still has the records. After that start AuditKeyIndex, which finds what they would "
        "have told, and run it with --discard-old.",
    )
    watch.alarm(
        "KeeperBehind",
        age(),
        BEHIND_MINUTES * 60 * 1000,
        f"KeepIndex is {BEHIND_MINUTES} minutes or more behind the stream of a table: new keys are "
        "missing in its key index for so long, and after 24 hours records are lost. Look at its "
        "errors, at throttles of the table, and at the concurrency that the account has left.",
        BEHIND_PERIODS,
    )
    for name in key_index.machines:
        needs_a_person(watch, f"Failed{name}", name, f"{FAILED_MACHINES[name]} {CAUSE}.")

    functions = {**key_index.functions, "WalkSegments": walks.worker}
    failed = watch.of_table("RecordsFailed", "records that failed (right)")
    watch.row(
        graph(
            "Key indexes: how far the keeper is behind, and errors",
            [age("iterator age, milliseconds")],
            [*errors_of(functions, "{}: errors (right)"), failed],
        ),
        graph(
            "Key indexes: what the keeper does",
            _counts(watch, "KeysReconciled", "SentinelsPut", "SentinelsDeleted"),
            [of(keeper, "Invocations", "batches (right)")],
        ),
    )
    drift = watch.of_table("KeyIndexDrift", "drift that audits found", period=FIVE_MINUTES)
    writes = expression(
        f"RUNNING_SUM(units) * {_prices(watch).write_unit:.10f}",
        "dollars of a build's or a removal's writes so far (right)",
        {"units": watch.of_table("WriteUnits")},
    )
    ends = [
        end
        for name, machine in key_index.machines.items()
        for end in ends_of(machine, f"{name}: {{}}")
    ]
    watch.row(
        graph(
            "Key indexes: the failure queue, and drift",
            [waiting("batches given up, in the failure queue"), drift],
        ),
        graph("Key indexes: builds, audits, removals", ends, [_at_once(walks), writes]),
    )


def of_each(watch: Monitoring, job: Job) -> None:
    """The runs of ForEachKey; what they read and how far they are is among that of all runs."""
    needs_a_person(
        watch,
        "FailedForEachKey",
        "ForEachKey",
        f"Something was not done for each key of a table. What was done is on record: {CAUSE}.",
    )
    no_room = of(job.worker, "Throttles", "EachKey: no concurrency left (right)")
    written = watch.of_table("WriteUnits", "write units (right)")
    watch.row(
        graph("For each key: executions", ends_of(job, "that {}"), [_at_once(job), written]),
        graph(
            "For each key: keys that failed, and errors",
            [watch.of_table("KeysFailed", "keys that failed")],
            [*errors_of({"EachKey": job.worker}, "{}: errors (right)"), no_room],
        ),
    )


def of_sharding(watch: Monitoring, sharded: Sharded) -> None:
    """Sharded tables: shards that come and go, hot keys, throttled writes, drains."""
    watch.alarm(
        "KeyAtMaximum",
        watch.ours("KeysAtMaximum", period=QUARTER),
        1,
        "A hot key has the most shards that it may have, so its writes go on being throttled. "
        "Raise sharding.mostShards of its table in keyhop.json and deploy again, or write less; "
        "`keyhop shards list TABLE` shows which key it is.",
    )
    needs_a_person(watch, f"Failed{DRAIN}", DRAIN, f"{FAILED_MACHINES[DRAIN]} {CAUSE}.")
    at_maximum = watch.of_table("KeysAtMaximum", "hot keys at the maximum")
    watch.row(
        graph(
            "Sharded tables: shards, and hot keys",
            [*_counts(watch, "ShardsAdded", "ShardsRemoved", "RacesLost"), at_maximum],
            [watch.of_table("HotKeyThrottles", "throttles of hot keys (right)")],
        ),
        graph(
            "Sharded tables: items",
            _counts(watch, "ItemsWritten", "ItemsMoved"),
            [watch.of_table("ItemsFailed", "items that failed (right)")],
        ),
    )
    proposed = watch.of_table("DrainsProposed", "drains proposed", period=FIVE_MINUTES)
    watch.row(
        graph(
            "Sharded tables: drains, and errors",
            [proposed, *ends_of(sharded.drain_shards, "drains that {}")],
            errors_of(sharded.functions, "{}: errors (right)", FIVE_MINUTES),
        ),
    )


def needs_a_person(watch: Monitoring, alarm: str, machine: str, description: str) -> None:
    """An end of the machine that its state RaiseAlarm has counted."""
    watch.alarm(alarm, watch.ours("NeedsAPerson", machine=machine), 1, description)


def ends_of(machine: Machine, label: str) -> list[cw.IMetric]:
    """How often executions of the machine succeed and fail."""
    return [
        of(machine, f"Executions{end}", label.format(end.lower()), period=FIVE_MINUTES)
        for end in ("Succeeded", "Failed")
    ]


def _counts(watch: Monitoring, *names: str) -> list[cw.IMetric]:
    """Metrics of ours, labelled by their names in words: KeysReconciled is "keys reconciled"."""
    return [watch.of_table(name, re.sub(r"(?<!^)(?=[A-Z])", " ", name).lower()) for name in names]


def _at_once(job: Job) -> cw.IMetric:
    return of(job.worker, "ConcurrentExecutions", "workers at once (right)", statistic="Maximum")
