"""What is watched: alarms, which say what to do, and graphs. One view for each capability."""

import re
from functools import partial

from aws_cdk import aws_cloudwatch as cw
from keyhop.dynamodb.throttling import ALL_REASONS, NO_REASON

from infra.config import Config
from infra.functions import SERVICE
from infra.job import Job
from infra.key_index import KeyIndex
from infra.machines import Machine
from infra.metrics import (
    DAY,
    FIVE_MINUTES,
    MINUTE,
    QUARTER,
    Alarm,
    View,
    divided,
    graph,
    keyhop,
    of,
    of_each,
)
from infra.sharding import DRAIN, ShardedTables

MANY_THROTTLES = 1000
"""About one a second; a few are how DynamoDB asks to be given time, and workers give it."""

MANY_ERRORS = 3
BEHIND_MINUTES = 15
BEHIND_PERIODS = 3
"""Of five minutes: an iterator age that stays high is no burst."""

REASONS = (*(reason for reason in ALL_REASONS if "Write" in reason), NO_REASON)
"""Why DynamoDB throttles writes; the last: it did not say."""

UNFINISHED_RUNS = {
    "FailedRun": ("ExecutionsFailed", "was refused or failed"),
    "TimedOutRun": ("ExecutionsTimedOut", "took too long"),
    "StoppedRun": ("ExecutionsAborted", "was stopped by somebody"),
}
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


def of_runs(config: Config, job: Job) -> View:
    """The runs of EnumerateKeys, and what reading needs of all walks over tables."""
    counts = partial(_counts, config)
    worker = job.worker
    unfinished = [
        Alarm(
            name,
            of(job, metric),
            1,
            f"A run {what}, so there is no complete list of keys. Open the execution in the Step "
            "Functions console: its cause says what to do. What it read is kept: redrive it, or "
            'start one with "resume" and its id.',
        )
        for name, (metric, what) in UNFINISHED_RUNS.items()
    ]
    throttled = Alarm(
        "ThrottledRun",
        # A worker hands in its counts when it ends: rates of less time than a slice would jump.
        keyhop(config, "Throttles", period=QUARTER),
        MANY_THROTTLES,
        f"DynamoDB throttled {MANY_THROTTLES} requests of the runs within a quarter of an hour; "
        "others that read the table are likely throttled as well. The dashboard has the reasons. "
        "Lower the map run's concurrency in the console, or start runs with a smaller "
        '"maxReadRate".',
    )
    units = keyhop(config, "ReadUnits", period=QUARTER)
    by_reason = cw.SearchExpression(
        expression=(
            f'SEARCH(\'{{"{config.stack_name}",service,Reason}} MetricName="Throttles" '
            f"service=\"{SERVICE}\"', 'Sum', 60)"
        ),
        label=" ",
        period=MINUTE,
    )
    longest = [
        divided(
            of(function, "Duration", statistic="Maximum"),
            *(f"milliseconds{name}", "1000", name, MINUTE),
        )
        for name, function in job.functions.items()
    ]
    no_room = of(worker, "Throttles", "ScanSegments: no concurrency left")
    ends = [
        of(job, f"Executions{end}", period=FIVE_MINUTES)
        for end in ("Started", "Succeeded", "Failed", "TimedOut", "Aborted")
    ]
    return View(
        [*unfinished, throttled, _failing_worker("WorkerErrors", "ScanSegments", job)],
        [
            [
                graph("Keys found", [keyhop(config, "KeysFound", "keys")]),
                graph(
                    "Read units a second, and the budget",
                    [
                        divided(units, "units", "PERIOD({})", "the runs, over 15 minutes", QUARTER),
                        *_rates_of_tables(config),
                        keyhop(config, "ReadBudget", "budget (maxReadRate)", statistic="Maximum"),
                    ],
                ),
            ],
            [
                graph("Throttles, by DynamoDB's reason", [by_reason], stacked=True),
                graph(
                    "Slices, requests and retries",
                    counts("Slices", "Retries"),
                    [keyhop(config, "Requests", "requests (right)")],
                ),
            ],
            [
                graph(
                    "Errors of the functions", [*of_each(job.functions, "Errors", "{}"), no_room]
                ),
                graph("Longest invocation, seconds", longest, [_at_once(job)]),
            ],
            [
                graph("Runs", ends, width=8),
                *(
                    graph(title, [keyhop(config, name, label, statistic="Maximum")], width=8)
                    for title, name, label in (
                        ("Duration of a run, seconds", "RunSeconds", "seconds"),
                        ("Cost of a run, dollars", "RunDollars", "dollars"),
                    )
                ),
            ],
        ],
    )


def of_key_indexes(config: Config, key_index: KeyIndex) -> View:
    """The keeper, its failure queue, and what builds, checks and removes."""
    counts = partial(_counts, config)
    keeper, queue = key_index.keep_index, key_index.failures
    functions = {**key_index.functions, "WalkSegments": key_index.walks.worker}

    def waiting(label: str | None = None) -> cw.Metric:
        return of(
            queue,
            "ApproximateNumberOfMessagesVisible",
            label,
            statistic="Maximum",
            period=FIVE_MINUTES,
        )

    def age(label: str | None = None) -> cw.Metric:
        return of(keeper, "IteratorAge", label, statistic="Maximum", period=FIVE_MINUTES)

    return View(
        [
            Alarm(
                "KeyIndexDrift",
                keyhop(config, "KeyIndexDrift", period=DAY),
                1,
                "An audit found that a sentinel was missing or surplus, so keys listed from the "
                "index were wrong; unless it was told not to, it has put that right. The report is "
                f"in s3://{key_index.bucket.bucket_name}/runs/RUN/audit.json. If it comes back, "
                "look at the errors of KeepIndex and at the failure queue.",
            ),
            Alarm(
                "KeyIndexFailures",
                waiting(),
                1,
                "KeepIndex gave up on records of a stream, so a key index may be untrue. Run "
                f"`keyhop index reconcile TABLE --queue {queue.queue_url}` within 24 hours, while "
                "the stream still has the records. After that start AuditKeyIndex, which finds "
                "what they would have told, and run it with --discard-old.",
            ),
            Alarm(
                "KeeperBehind",
                age(),
                BEHIND_MINUTES * 60 * 1000,
                f"KeepIndex is {BEHIND_MINUTES} minutes or more behind the stream of a table: new "
                "keys are missing in its key index for so long, and after 24 hours records are "
                "lost. Look at its errors, at throttles of the table, and at the concurrency that "
                "the account has left.",
                BEHIND_PERIODS,
            ),
            Alarm(
                "KeeperErrors",
                of(keeper, "Errors", period=QUARTER),
                MANY_ERRORS,
                f"KeepIndex failed {MANY_ERRORS} times or more in a quarter of an hour. Its "
                "records come again, 16 times, and then go to the failure queue. Search the "
                "function's log for ERROR.",
            ),
            _failing_worker("WalkerErrors", "WalkSegments", key_index.walks),
            *(_failed(name, machine) for name, machine in key_index.machines.items()),
        ],
        [
            [
                graph(
                    "Key indexes: how far the keeper is behind, and errors",
                    [age("iterator age, milliseconds")],
                    [
                        *of_each(functions, "Errors", "{}: errors (right)"),
                        keyhop(config, "RecordsFailed", "records that failed (right)"),
                    ],
                ),
                graph(
                    "Key indexes: what the keeper does",
                    counts("KeysReconciled", "SentinelsPut", "SentinelsDeleted"),
                    [of(keeper, "Invocations", "batches (right)")],
                ),
            ],
            [
                graph(
                    "Key indexes: the failure queue, and drift",
                    [
                        waiting("batches given up, in the failure queue"),
                        keyhop(
                            config, "KeyIndexDrift", "drift that audits found", period=FIVE_MINUTES
                        ),
                    ],
                ),
                graph(
                    "Key indexes: builds, audits, removals",
                    [
                        one
                        for name, machine in key_index.machines.items()
                        for one in _ends(machine, f"{name}: {{}}")
                    ],
                    [_at_once(key_index.walks)],
                ),
            ],
        ],
    )


def of_sharding(config: Config, sharded: ShardedTables) -> View:
    """Sharded tables: shards that come and go, hot keys, throttled writes, drains."""
    counts = partial(_counts, config)
    drains = sharded.drain_shards
    return View(
        [
            Alarm(
                "KeyAtMaximum",
                keyhop(config, "KeysAtMaximum", period=QUARTER),
                1,
                "A hot key has the most shards that it may have, so its writes go on being "
                "throttled. Raise sharding.mostShards of its table in cdk.json and deploy again, "
                "or write less to it; `keyhop shards list TABLE` shows which key it is.",
            ),
            _failed(DRAIN, drains),
        ],
        [
            [
                graph(
                    "Sharded tables: shards, and hot keys",
                    [
                        *counts("ShardsAdded", "ShardsRemoved", "RacesLost"),
                        keyhop(config, "KeysAtMaximum", "hot keys at the maximum"),
                    ],
                    [keyhop(config, "HotKeyThrottles", "throttles of hot keys (right)")],
                ),
                graph(
                    "Sharded tables: throttled writes, by reason",
                    [keyhop(config, "Throttles", reason, Reason=reason) for reason in REASONS],
                    stacked=True,
                ),
            ],
            [
                graph(
                    "Sharded tables: items",
                    counts("ItemsWritten", "ItemsMoved"),
                    [keyhop(config, "ItemsFailed", "items that failed (right)")],
                ),
                graph(
                    "Sharded tables: drains, and errors",
                    [
                        keyhop(config, "DrainsProposed", "drains proposed", period=FIVE_MINUTES),
                        *_ends(drains, "drains that {}"),
                    ],
                    of_each(sharded.functions, "Errors", "{}: errors (right)", FIVE_MINUTES),
                ),
            ],
        ],
    )


def _failed(name: str, machine: Machine) -> Alarm:
    return Alarm(
        f"Failed{name}",
        of(machine, "ExecutionsFailed"),
        1,
        f"{FAILED_MACHINES[name]} The cause of the execution, in the Step Functions console, says "
        "what happened.",
    )


def _failing_worker(name: str, function: str, job: Job) -> Alarm:
    return Alarm(
        name,
        of(job.worker, "Errors", period=QUARTER),
        MANY_ERRORS,
        f"{function} failed {MANY_ERRORS} times or more in a quarter of an hour. Each is tried "
        "again and loses nothing, but a run ends as failed when it goes on. Search the function's "
        "log for ERROR; if it ran out of memory, raise workerMemoryMb in cdk.json.",
    )


def _ends(machine: Machine, label: str) -> list[cw.IMetric]:
    return [
        of(machine, f"Executions{end}", label.format(end.lower()), period=FIVE_MINUTES)
        for end in ("Succeeded", "Failed")
    ]


def _counts(config: Config, *names: str) -> list[cw.IMetric]:
    """Metrics of ours, labelled by their names in words: KeysReconciled is "keys reconciled"."""
    words = (re.sub(r"(?<!^)(?=[A-Z])", " ", name).lower() for name in names)
    return [keyhop(config, name, label) for name, label in zip(names, words, strict=True)]


def _at_once(job: Job) -> cw.IMetric:
    return of(job.worker, "ConcurrentExecutions", "workers at once (right)", statistic="Maximum")


def _rates_of_tables(config: Config) -> list[cw.IMetric]:
    """What DynamoDB itself measures each minute, of all who read the tables."""
    rates = []
    for number, table in enumerate(config.tables):
        units = cw.Metric(
            namespace="AWS/DynamoDB",
            metric_name="ConsumedReadCapacityUnits",
            dimensions_map={"TableName": table.name},
            statistic="Sum",
            period=MINUTE,
        )
        label = f"{table.name}, all readers"
        rates.append(divided(units, f"table{number}", "60", label, MINUTE))
    return rates
