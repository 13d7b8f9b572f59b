"""The key indexes of a deployment: which tables may have one, and who keeps it."""

from collections.abc import Mapping
from dataclasses import dataclass

from keyhop.dynamodb.client import Connection
from keyhop.dynamodb.tables import Source, Table
from keyhop.errors import InvalidInput
from keyhop.jobs.request import allowed, table_name
from keyhop.jobs.runs import Runs
from keyhop.jobs.task import TaskOptions
from keyhop.key_index.index import Sentinels, sentinels_of
from keyhop.key_index.registry import FENCE_SECONDS, Entry, Fence, Registry, bucket_registry
from keyhop.key_index.sentinel import Sentinel
from keyhop.key_index.task import WalkTask
from keyhop.key_index.trust import Evidence, Trust, choose_source, gather
from keyhop.streams.event_source import Watch


@dataclass(frozen=True, slots=True)
class KeyIndexes:
    """The key indexes of a deployment.

    Attributes:
        deployment: The runs and tables of the deployment.
        places: The sort key of the sentinels by table, for the tables with keyIndex; None for the
            least possible sort key. Tables have the names of the context.
        watch: Finds the keeper; None if it is not looked for.
        settle_seconds: A time after which a keeper or a walker that was stopped has certainly
            ended.
    """

    deployment: Runs
    places: Mapping[str, str | None]
    watch: Watch | None = None
    settle_seconds: float = FENCE_SECONDS

    def checked(self, table: str) -> str:
        """Return the table as requests name it; raise InvalidInput for a table without keyIndex."""
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
        return bucket_registry(self.deployment.s3, self.deployment.bucket, table)

    def sentinel(self, table: Table) -> Sentinel:
        """Return the sentinel of a table; raise CannotStart if the table can have none."""
        return Sentinel.of(table.space, self._place(table))

    def _listed(self, table: Table) -> str | None:
        """Return the name of a table in `places`: its ARN, or its name if that means this table."""
        by_name = () if table.arn in self.deployment.tables else (table.bare_name,)
        return next((name for name in (table.arn, *by_name) if name in self.places), None)

    def _place(self, table: Table) -> str | None:
        name = self._listed(table)
        return None if name is None else self.places[name]

    def kept_sentinel(self, table: Table) -> Sentinel:
        """Return the sentinel of a table as recorded, or as configured if nothing is recorded.

        The configuration only says where a new index has its sentinels. A keeper or a walk that
        followed it would put a second sentinel into each collection of an existing index. So errors
        of reading the registry are raised.
        """
        return self.registry(table).load().place or self.sentinel(table)

    def decide_trust(self, table: Table, method: str, accepts_stale: bool) -> Trust:
        """Decide whether the keys are read from the index (keys/task.DecideTrust)."""
        is_listed = self._listed(table) is not None
        sentinel = self.sentinel(table) if is_listed else None

        def evidence() -> Evidence:
            return gather(table, self._entry(table), self.watch, sentinel, is_listed)

        return choose_source(table, method, accepts_stale, evidence)

    def sentinels_of(self, table: Table) -> Sentinels | None:
        """Return the sentinels of a table (key_index/index.SentinelsOf)."""
        return sentinels_of(table, self._entry(table), self._place(table))

    def _entry(self, table: Table) -> Entry:
        """Return the entry of a table. Without any keyIndex, the registry may not be read."""
        return self.registry(table).entry() if self.places else Entry(table.identity)

    def task(self, connection: Connection, options: TaskOptions) -> WalkTask:
        """Return the task of a run that walks over one of the tables."""

        def sentinel_of(table: Table) -> Sentinel:
            self.checked(table.name)
            return self.kept_sentinel(table)

        def fence_of(source: Source, holder: str) -> Fence:
            return Fence(self.registry(source), holder, self.settle_seconds)

        return WalkTask(connection, options, sentinel_of, fence_of)
