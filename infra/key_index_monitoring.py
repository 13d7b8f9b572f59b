"""What is seen of key indexes, and when somebody is told."""

from aws_cdk import Duration
from aws_cdk import aws_cloudwatch as cw

from infra.config import Config
from infra.graphs import MINUTE, MakesAlarms, graph, keyhop
from infra.key_index import KeyIndex

QUARTER = Duration.minutes(15)
KEEPER_ERRORS = 3
BEHIND_MINUTES = 15
BEHIND_PERIODS = 3
"""Of five minutes: an iterator age that stays high is no burst."""

FIVE_MINUTES = Duration.minutes(5)
WHAT_THE_MACHINES_DO = {
    "BuildKeyIndex": "A key index was not built to its end. What is built stays and is kept true; "
    "start the same input again.",
    "AuditKeyIndex": "An audit of a key index did not come to its end, so nobody knows whether "
    "the index is true. Start it again.",
    "RemoveKeyIndex": "A key index was not removed to its end: its keeper is detached, so do not "
    "list keys from it. Start the same input again.",
}


class KeyIndexMonitoring:
    """Alarms and widgets; the topic and the dashboard are those of all."""

    def __init__(self, config: Config, key_index: KeyIndex, alarm: MakesAlarms) -> None:
        self._config = config
        self._key_index = key_index
        self._alarm = alarm
        self.alarms = [
            self._drift(),
            self._failures(),
            self._behind(),
            self._errors(),
            *(self._failed(name) for name in key_index.machines),
        ]

    def widgets(self) -> list[list[cw.IWidget]]:
        """Rows of the dashboard."""
        return [
            [self._keeper_graph(), self._work_graph()],
            [self._queue_graph(), self._executions_graph()],
        ]

    def _drift(self) -> cw.Alarm:
        return self._alarm(
            "KeyIndexDrift",
            keyhop(self._config, "KeyIndexDrift", period=Duration.days(1)),
            1,
            "An audit found that a sentinel was missing or surplus, so keys listed from the index "
            "were wrong; unless it was told not to, it has put that right. The report is in "
            f"s3://{self._key_index.bucket.bucket_name}/runs/RUN/audit.json. If it comes "
            "back, look at the errors of KeepIndex and at the failure queue.",
        )

    def _failures(self) -> cw.Alarm:
        queue = self._key_index.failures
        return self._alarm(
            "KeyIndexFailures",
            queue.metric_approximate_number_of_messages_visible(
                period=FIVE_MINUTES, statistic="Maximum"
            ),
            1,
            "KeepIndex gave up on records of a stream, so a key index may be untrue. Run "
            f"`keyhop index reconcile TABLE --queue {queue.queue_url}` within 24 hours, while the "
            "stream still has the records. After that start AuditKeyIndex, which finds what they "
            "would have told, and run it with --discard-old.",
        )

    def _behind(self) -> cw.Alarm:
        return self._alarm(
            "KeeperBehind",
            self._iterator_age(),
            BEHIND_MINUTES * 60 * 1000,
            f"KeepIndex is {BEHIND_MINUTES} minutes or more behind the stream of a table: new keys "
            "are missing in its key index for so long, and after 24 hours records are lost. Look "
            "at its errors, at throttles of the table, and at the concurrency that the account "
            "has left.",
            BEHIND_PERIODS,
        )

    def _errors(self) -> cw.Alarm:
        return self._alarm(
            "KeeperErrors",
            self._key_index.keep_index.metric_errors(period=QUARTER, statistic="Sum"),
            KEEPER_ERRORS,
            f"KeepIndex failed {KEEPER_ERRORS} times or more in a quarter of an hour. Its records "
            "come again, 16 times, and then go to the failure queue. Search the function's log "
            "for ERROR.",
        )

    def _failed(self, name: str) -> cw.Alarm:
        return self._alarm(
            f"Failed{name}",
            self._key_index.machines[name].metric_failed(period=MINUTE, statistic="Sum"),
            1,
            f"{WHAT_THE_MACHINES_DO[name]} The cause of the execution, in the Step Functions "
            "console, says what happened.",
        )

    def _iterator_age(self, label: str | None = None) -> cw.Metric:
        return self._key_index.keep_index.metric(
            "IteratorAge", label=label, period=FIVE_MINUTES, statistic="Maximum"
        )

    def _keeper_graph(self) -> cw.IWidget:
        errors: list[cw.IMetric] = [
            function.metric_errors(label=f"{name}: errors (right)", period=MINUTE, statistic="Sum")
            for name, function in self._key_index.functions.items()
        ]
        failed = keyhop(self._config, "RecordsFailed", "records that failed (right)")
        return graph(
            "Key indexes: how far the keeper is behind, and errors",
            [self._iterator_age("iterator age, milliseconds")],
            right=[*errors, failed],
        )

    def _work_graph(self) -> cw.IWidget:
        keeper = self._key_index.keep_index
        return graph(
            "Key indexes: what the keeper does",
            [
                keyhop(self._config, "KeysReconciled", "keys reconciled"),
                keyhop(self._config, "SentinelsPut", "sentinels put"),
                keyhop(self._config, "SentinelsDeleted", "sentinels deleted"),
            ],
            right=[
                keeper.metric_invocations(label="batches (right)", period=MINUTE, statistic="Sum")
            ],
        )

    def _queue_graph(self) -> cw.IWidget:
        waiting = self._key_index.failures.metric_approximate_number_of_messages_visible(
            label="batches given up, in the failure queue", period=FIVE_MINUTES, statistic="Maximum"
        )
        drift = keyhop(
            self._config, "KeyIndexDrift", "drift that audits found", period=FIVE_MINUTES
        )
        return graph("Key indexes: the failure queue, and drift", [waiting, drift])

    def _executions_graph(self) -> cw.IWidget:
        shown: list[cw.IMetric] = []
        for name, machine in self._key_index.machines.items():
            shown += [
                machine.metric_succeeded(
                    label=f"{name}: succeeded", period=FIVE_MINUTES, statistic="Sum"
                ),
                machine.metric_failed(
                    label=f"{name}: failed", period=FIVE_MINUTES, statistic="Sum"
                ),
            ]
        return graph("Key indexes: builds, audits, removals", shown)
