"""What is watched of re-keys: the lag, what differs, what is in the way, how long writes wait.

Of each pair the figures stand under the destination's name (handlers/telemetry.report_rekey).
"""

from functools import partial
from typing import Protocol

from aws_cdk import aws_cloudwatch as cw
from aws_cdk import aws_lambda as lambda_
from aws_cdk import aws_sqs as sqs

from .job import Job
from .machines import Machine
from .monitoring import (
    DAY,
    FIVE_MINUTES,
    MINUTE,
    QUARTER,
    Monitoring,
    errors_of,
    graph,
    of,
)
from .views import BEHIND_MINUTES, BEHIND_PERIODS, CAUSE, ends_of, needs_a_person

LONGEST_FREEZE_SECONDS = 15
"""The freeze limit is 10 s if nobody says otherwise, and what follows takes two short leases. A
freeze that somebody has left behind is called off by each router, and so raises none."""

CLAIM_PERIODS = 4
"""Of a quarter of an hour: a claim is settled within minutes, unless two items really collide."""

FAILED_MACHINES = {
    "RekeyBackfill": "A backfill did not come to its end. What was copied stays, and changes are "
    "replicated all the same; start the same input again, or redrive it.",
    "RekeyVerify": "A comparison of two tables did not come to its end, so a cutover has no result "
    "to go by. Start the same input again.",
    "RekeyCutOver": "A cutover or a rollback did not come to its end. Before it has turned it goes "
    "back by itself; `keyhop rekey status` shows which table serves. Start it again.",
}


class Rekeys(Protocol):
    """What of a Rekey is watched."""

    backfill: Job
    failures: sqs.Queue
    functions: dict[str, lambda_.Function]
    machines: dict[str, Machine]
    replicate: lambda_.Function


def of_rekeys(watch: Monitoring, rekeys: Rekeys) -> None:
    """Alarms of all pairs, and the pair whose destination is shown."""
    highest = partial(of, statistic="Maximum", period=FIVE_MINUTES)
    waiting = partial(highest, rekeys.failures, "ApproximateNumberOfMessagesVisible")
    age = partial(highest, rekeys.replicate, "IteratorAge")
    _alarms(watch, rekeys, waiting(), age())
    shown = partial(watch.of_table, statistic="Maximum", period=FIVE_MINUTES)
    watch.row(
        graph(
            "Re-key: how far the other table is behind, and errors",
            [shown("ReplicationLag", "seconds"), age("iterator age of all pairs, milliseconds")],
            [
                *errors_of(rekeys.functions, "{}: errors (right)"),
                watch.of_table("RecordsGivenUp", "records given up (right)"),
                waiting("batches given up, in the failure queue (right)"),
            ],
        ),
        graph(
            "Re-key: items",
            [
                watch.of_table("RecordsReplicated", "changed keys that were replicated"),
                watch.of_table("KeysFound", "items read by backfill or comparison"),
            ],
            [
                watch.of_table("WriteUnits", "write units (right)"),
                of(
                    rekeys.backfill.worker,
                    "ConcurrentExecutions",
                    "workers of backfills at once (right)",
                    statistic="Maximum",
                ),
            ],
        ),
    )
    ends = [
        end
        for name, machine in rekeys.machines.items()
        for end in ends_of(machine, f"{name}: {{}} (right)")
    ]
    watch.row(
        graph(
            "Re-key: what stands in the way of a cutover",
            [
                shown("ClaimsLeft", "claims: two items want one place"),
                watch.of_table("Unmappable", "items without a form under the other key"),
                shown("Differences", "differences that a comparison found"),
                watch.of_table("Stragglers", "writes that bypassed the router"),
            ],
        ),
        graph(
            "Re-key: how long writes have waited, and executions",
            [shown("PauseSeconds", "seconds of a cutover or rollback")],
            [watch.of_table("CutoversAborted", "called off (right)"), *ends],
        ),
    )


def _alarms(watch: Monitoring, rekeys: Rekeys, waiting: cw.IMetric, age: cw.IMetric) -> None:
    ours = partial(watch.ours, statistic="Maximum")
    watch.alarm(
        "RekeyBehind",
        age,
        BEHIND_MINUTES * 60 * 1000,
        f"Replicate is {BEHIND_MINUTES} minutes or more behind a stream, so one table of a pair is "
        "as old; after 24 hours records are lost, and RekeyVerify has to repair. Slow the backfill "
        "down with `keyhop rekey throttle`; look at errors of Replicate, at throttles of the table "
        "that it writes, and at the concurrency that the account has left.",
        BEHIND_PERIODS,
    )
    watch.alarm(
        "RekeyFailures",
        waiting,
        1,
        "Replicate died of an item again and again and gave it up, so the two tables of a pair may "
        "differ, and no cutover is allowed. Its log says why. When that is put right, `keyhop "
        "rekey redrive` has it settled; or start RekeyVerify with repair, which reads the tables "
        f"themselves, and purge the queue {rekeys.failures.queue_url}.",
    )
    watch.alarm(
        "RekeyClaims",
        ours("ClaimsLeft", period=QUARTER),
        1,
        "For an hour two items of a source have wanted one place in the destination, where only "
        "one can be; no cutover is allowed. `keyhop rekey status` names them by attributes: change "
        "one of the items, or give the template a key in which they differ, and begin anew.",
        CLAIM_PERIODS,
    )
    watch.alarm(
        "RekeyUnmappable",
        ours("Unmappable", period=QUARTER),
        1,
        "An item has no form under the other key (an attribute is missing, or is not as the "
        "template needs it), so it is missing in the other table and no cutover is allowed. "
        "`keyhop rekey status` says why: mend the item in its table, and it is replicated then.",
    )
    watch.alarm(
        "RekeyDifferences",
        ours("Differences", period=DAY),
        1,
        "RekeyVerify has found items that differ between the two tables of a pair, and has not put "
        "them right. Start it with repair. If differences come back, somebody else writes to the "
        "destination, or records were lost: look at the failure queue and at RekeyBehind.",
    )
    watch.alarm(
        "RekeyFreezeLasts",
        ours("PauseSeconds", period=MINUTE),
        LONGEST_FREEZE_SECONDS,
        f"In a cutover or a rollback writes have waited for {LONGEST_FREEZE_SECONDS} seconds or "
        "more. It is over, and nothing is lost; but a writer may have timed out. Before the next "
        "one look at how far Replicate is behind, and at throttles of both tables, or set a lower "
        "freezeLimit: then it is called off instead.",
    )
    for name in rekeys.machines:
        needs_a_person(watch, f"Failed{name}", name, f"{FAILED_MACHINES[name]} {CAUSE}.")
