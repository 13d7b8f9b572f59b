"""The metrics of key indexes, of each and of sharding, and the common graphs and alarms of all
views. Other views are in runs_view.py, rekey.py and report.py.
"""

import re
from functools import partial
from typing import Protocol

from aws_cdk import aws_cloudwatch as cw
from aws_cdk import aws_lambda as lambda_
from aws_cdk import aws_s3 as s3
from aws_cdk import aws_sqs as sqs
from keyhop.dynamodb.units import Prices

from .job import Job
from .machines import DRAIN, Machine
from .monitoring import (
    DAY,
    FIVE_MINUTES,
    QUARTER,
    Monitoring,
    errors_of,
    expression,
    graph,
    metric_of,
)

BEHIND_MINUTES = 15
BEHIND_PERIODS = 3
"""The number of periods of five minutes after which a high iterator age is not a burst."""

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


class KeyIndexes(Protocol):
    """The parts of a KeyIndex construct that are watched."""

    bucket: s3.IBucket
    failures: sqs.Queue
    functions: dict[str, lambda_.Function]
    keep_index: lambda_.Function
    machines: dict[str, Machine]
    walks: Job


class Sharded(Protocol):
    """The parts of a ShardedTables construct that are watched."""

    drain_shards: Machine
    functions: dict[str, lambda_.Function]


def of_key_indexes(watch: Monitoring, key_index: KeyIndexes) -> None:
    """Add the keeper, its failure queue, and builds, audits and removals."""
    keeper, queue, walks = key_index.keep_index, key_index.failures, key_index.walks

    highest = partial(metric_of, statistic="Maximum", period=FIVE_MINUTES)
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
        "stream still has the records. After that give it --discard-old and --stack too, which "
        "deletes the messages, and then start AuditKeyIndex, which finds what they would have "
        "told. Until it has finished, method auto does not read the index.",
    )
    watch.alarm(
        "KeyIndexOccupied",
        watch.ours("PlacesOccupied", period=FIVE_MINUTES),
        1,
        "KeepIndex met an item of yours in the place of a sentinel, so its collection is not in "
        "the key index, and method auto does not read the index any more. Start AuditKeyIndex, "
        "whose report names the collections; move or delete these items, and audit again.",
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
            [metric_of(keeper, "Invocations", "batches (right)")],
        ),
    )
    drift = watch.of_table("KeyIndexDrift", "drift that audits found", period=FIVE_MINUTES)
    writes = expression(
        f"RUNNING_SUM(units) * {prices_of(watch).write_unit:.10f}",
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
        graph("Key indexes: builds, audits, removals", ends, [at_once(walks), writes]),
    )


def of_each(watch: Monitoring, job: Job) -> None:
    """Add the runs of ForEachKey; the graphs of all runs have their reads and progress."""
    needs_a_person(
        watch,
        "FailedForEachKey",
        "ForEachKey",
        f"Something was not done for each key of a table. What was done is on record: {CAUSE}.",
    )
    no_room = metric_of(job.worker, "Throttles", "EachKey: no concurrency left (right)")
    written = watch.of_table("WriteUnits", "write units (right)")
    watch.row(
        graph("For each key: executions", ends_of(job, "that {}"), [at_once(job), written]),
        graph(
            "For each key: keys that failed, and errors",
            [watch.of_table("KeysFailed", "keys that failed")],
            [*errors_of({"EachKey": job.worker}, "{}: errors (right)"), no_room],
        ),
    )


def of_sharding(watch: Monitoring, sharded: Sharded) -> None:
    """Add sharded tables: added and removed shards, hot keys, throttled writes, drains."""
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
    """Add an alarm for executions that the state RaiseAlarm of a machine has counted."""
    watch.alarm(alarm, watch.ours("NeedsAPerson", machine=machine), 1, description)


def ends_of(machine: Machine, label: str) -> list[cw.IMetric]:
    """Return how many executions of the state machine succeed and fail."""
    return [
        metric_of(machine, f"Executions{end}", label.format(end.lower()), period=FIVE_MINUTES)
        for end in ("Succeeded", "Failed")
    ]


def prices_of(watch: Monitoring) -> Prices:
    """Return the prices of the deployment or list prices, as a template has no region."""
    return Prices.of(None, watch.config.prices)


def _counts(watch: Monitoring, *names: str) -> list[cw.IMetric]:
    """Return our metrics, labelled by their names in words ("keys reconciled")."""
    return [watch.of_table(name, re.sub(r"(?<!^)(?=[A-Z])", " ", name).lower()) for name in names]


def at_once(job: Job) -> cw.IMetric:
    """Return the number of concurrent workers of a job."""
    return metric_of(
        job.worker, "ConcurrentExecutions", "workers at once (right)", statistic="Maximum"
    )
