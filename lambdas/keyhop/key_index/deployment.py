"""The key indexes of a deployment: which tables may have one, and who keeps it."""

from collections.abc import Mapping
from dataclasses import dataclass

from keyhop.checks import InvalidInput
from keyhop.dynamodb.client import Connection
from keyhop.dynamodb.tables import Source, Table
from keyhop.jobs.request import allowed, table_name
from keyhop.jobs.runs import DeploymentSettings
from keyhop.jobs.task import TaskOptions
from keyhop.key_index.belief import Belief, Evidence, choose_source, gather
from keyhop.key_index.index import Sentinels, sentinels_of
from keyhop.key_index.registry import FENCE_SECONDS, Entry, Fence, Registry, bucket_registry
from keyhop.key_index.sentinel import Sentinel
from keyhop.key_index.task import WalkTask
from keyhop.streams.event_source import Watch


@dataclass(frozen=True, slots=True)
class KeyIndexes:
    """The key indexes of a deployment.

    places: for each of its tables with keyIndex, as the context names it, the sentinels' sort key,
    None for the least one. watch: sees the keeper; None where it is not looked at. settle_seconds:
    longer than the keeper, or a walker, can be at work after it was told to end.
    """

    deployment: DeploymentSettings
    places: Mapping[str, str | None]
    watch: Watch | None = None
    settle_seconds: float = FENCE_SECONDS

    def checked(self, table: str) -> str:
        """The table as requests name it; raises InvalidInput for one without keyIndex."""
        try:
            return allowed(table, list(self.places))
        except InvalidInput as error:
            listed = ", ".join(self.places) or "none"
            raise InvalidInput(
                f"Table {table!r} has no keyIndex in this deployment (those that have: {listed}): "
                f'write {{"table": "{table_name(table)}", "keyIndex": true}} into "tables" in '
                f"keyhop.json and deploy again."
            ) from error

    def registry(self, table: Table | Source) -> Registry:
        """Where what is known about a table's key index is written down."""
        runs = self.deployment.runs
        return bucket_registry(runs.s3, runs.bucket, table)

    def sentinel(self, table: Table) -> Sentinel:
        """The sentinels of a table; raises CannotStart if it can have none."""
        return Sentinel.of(table.space, self._place(table))

    def _listed(self, table: Table) -> str | None:
        """What `places` calls a table, however it was asked for: by its ARN, or by its name, which
        is of the deployment's own account and region; None if it is not among them.
        """
        by_name = () if table.arn in self.deployment.tables else (table.bare_name,)
        return next((name for name in (table.arn, *by_name) if name in self.places), None)

    def _place(self, table: Table) -> str | None:
        name = self._listed(table)
        return None if name is None else self.places[name]

    def kept_sentinel(self, table: Table) -> Sentinel:
        """Where the table's sentinels are; without a record, as `sentinel` says.

        What is configured says only where a new index has them: a keeper, or a walk, that followed
        it would put a second sentinel into each collection of an index that is there already.
        Raises what reading the record can raise, rather than guess.
        """
        return self.registry(table).known().place or self.sentinel(table)

    def believe(self, table: Table, method: str, anyway: bool) -> Belief:
        """Whether the keys are read from the index; see keys/task.py."""
        is_listed = self._listed(table) is not None
        sentinel = self.sentinel(table).to_json() if is_listed else None

        def evidence() -> Evidence:
            return gather(table, self._entry(table), self.watch, sentinel, is_listed)

        return choose_source(table, method, anyway, evidence)

    def sentinels_of(self, table: Table) -> Sentinels | None:
        """What tells the sentinels of a table; see keys/task.py."""
        return sentinels_of(table, self._entry(table), self._place(table))

    def _entry(self, table: Table) -> Entry:
        """Without any keyIndex a deployment has no registry, and no right to look for one."""
        return self.registry(table).entry() if self.places else Entry(table.identity)

    def task(self, connection: Connection, options: TaskOptions) -> WalkTask:
        """The task of a run that walks over one of the tables."""
        return WalkTask(connection, options, self._checked_sentinel, self._fence)

    def _fence(self, source: Source, holder: str) -> Fence:
        return Fence(self.registry(source), holder, self.settle_seconds / 4)

    def _checked_sentinel(self, table: Table) -> Sentinel:
        self.checked(table.name)
        return self.kept_sentinel(table)
