"""ForEachKey: an action for each key of the tables that have the setting `each`."""

from collections.abc import Mapping

from constructs import Construct

from .config import which_each, which_key_indexes, which_tables
from .deployment import KeyEnumeration
from .monitoring import CAUSE, Monitoring
from .permissions import allow, allow_changing_collections, allow_reading_keys

RECEIVERS: Mapping[str, tuple[str, str]] = {
    "functions": ("InvokeTheFunctionsThatGetKeys", "lambda:InvokeFunction"),
    "queues": ("SendKeysToTheQueues", "sqs:SendMessage"),
    "machines": ("StartTheMachinesThatGetKeys", "states:StartExecution"),
}
"""The Sid and the permission for each kind of receiver in the setting."""


class ForEachKey(Construct):
    """An action for each key of those tables of a KeyEnumeration that have `each`.

    It has the state machine ForEachKey and the function of its workers, whose permissions are
    limited to the tables' settings. Raises ConfigError.
    """

    def __init__(self, scope: Construct, construct_id: str, keys: KeyEnumeration) -> None:
        super().__init__(scope, construct_id)
        config, runs = keys.config, keys.runs
        tables = config.each_tables
        keys.is_extended_by(self, "each", tables)
        # PlanRun refuses what the roles do not allow, before a key is listed for it.
        for name, value in which_each(tables).items():
            runs.job.functions["PlanRun"].add_environment(name, value)
        self.worker = runs.make.add(
            self,
            "EachKey",
            "Lists the keys of a group of segments, or does something for each of them",
            {
                "KEYHOP_BUCKET": keys.results.bucket.bucket_name,
                **which_tables(tables),
                **which_key_indexes(config.tables),
            },
            **runs.make.of_a_worker,
        )
        allow_reading_keys(self.worker, tables)
        allow_changing_collections(self.worker, tables)
        for field, (why, action) in RECEIVERS.items():
            arns = [arn for table in tables for arn in getattr(table.each, field)]
            if arns:
                allow(self.worker, why, action, *dict.fromkeys(arns))
        self.job = runs.another_job(self, "ForEachKey", "each", self.worker)
        self._show(keys.watch)
        keys.say(
            (
                "ForEachKeyArn",
                self.job.state_machine_arn,
                'Started with {"table": "...", "put": {...}} it puts an item for each key',
            )
        )

    def _show(self, watch: Monitoring) -> None:
        """Add the executions to the dashboard; the graphs of all runs have reads and progress."""
        watch.needs_a_person(
            "FailedForEachKey",
            "ForEachKey",
            f"An action was not done for all keys of a table. Its outcomes are recorded. {CAUSE}.",
        )
        no_room = watch.metric_of(self.worker, "Throttles", "EachKey: no concurrency left (right)")
        written = watch.of_table("WriteUnits", "write units (right)")
        watch.row(
            watch.graph(
                "For each key: executions",
                watch.ends_of(self.job, "that {}"),
                [watch.at_once(self.worker), written],
            ),
            watch.graph(
                "For each key: keys that failed, and errors",
                [watch.of_table("KeysFailed", "keys that failed")],
                [*watch.errors_of({"EachKey": self.worker}, "{}: errors (right)"), no_room],
            ),
        )
