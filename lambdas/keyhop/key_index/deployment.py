"""The key indexes of a deployment: which tables may have one, and who keeps it."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar

from keyhop.checks import InvalidInput
from keyhop.dynamodb.client import Connection
from keyhop.dynamodb.tables import Source, Table
from keyhop.jobs.request import allowed, table_name
from keyhop.jobs.runs import Deployment
from keyhop.jobs.task import Options
from keyhop.key_index.belief import choose_source
from keyhop.key_index.registry import Registry, folder_of
from keyhop.key_index.sentinel import Sentinel
from keyhop.key_index.task import WalkTask
from keyhop.storage.s3 import Bucket
from keyhop.streams.event_source import Mappings


@dataclass(frozen=True, slots=True)
class KeyIndexes:
    """The key indexes of a deployment.

    places: for each of its tables with keyIndex, as the context names it, the sentinels' sort key,
    None for the least one.
    """

    deployment: Deployment
    places: Mapping[str, str | None]

    def checked(self, table: str) -> str:
        """The table as requests name it; raises InvalidInput for one without keyIndex."""
        try:
            return allowed(table, list(self.places))
        except InvalidInput as error:
            listed = ", ".join(self.places) or "none"
            raise InvalidInput(
                f"Table {table!r} has no keyIndex in this deployment (those that have: {listed}): "
                f'write {{"table": "{table_name(table)}", "keyIndex": true}} into "tables" in '
                f"cdk.json and deploy again."
            ) from error

    def registry(self, table: Table) -> Registry:
        """Where what is known about a table's key index is written down."""
        runs = self.deployment.runs
        store = Bucket(runs.s3, runs.bucket, f"key-index/{folder_of(table)}/")
        return Registry(store, table.identity)

    def sentinel(self, table: Table) -> Sentinel:
        """The sentinels of a table; raises CannotStart if it can have none."""
        return Sentinel.of(table.space, self.places.get(table.name))

    def believe(
        self, connection: Connection, table: Table, method: str
    ) -> tuple[Source | None, str]:
        """Whether the keys are read from the index; see keys/task.py."""
        return choose_source(table, method, self.registry, self.places.get(table.name))

    def task(self, connection: Connection, options: Options) -> WalkTask:
        """The task of a run that walks over one of the tables."""
        return WalkTask(connection, options, self._checked_sentinel)

    def _checked_sentinel(self, table: Table) -> Sentinel:
        self.checked(table.name)
        return self.sentinel(table)


@dataclass(frozen=True, slots=True)
class MappedKeeper:
    """The keeper function of a deployment, by its event source mappings (life_cycle.Keeper)."""

    turns_stream_on: ClassVar[bool] = True
    mappings_of: Mappings

    def attach(self, table: Table) -> bool:
        return table.stream is not None and self.mappings_of.attach(table.stream)

    def check_may_detach(self, table: Table) -> None:
        """Keeper.check_may_detach: its mappings are ours."""

    def detach(self, table: Table) -> bool:
        return self.mappings_of.detach(_stream_of(table))

    def shares_stream(self, table: Table) -> bool:
        return table.stream is not None and bool(self.mappings_of.others(table.stream))

    def mappings(self, table: Table) -> int:
        return len(self.mappings_of.of_table(_stream_of(table)))


def _stream_of(table: Table) -> str:
    """The table's stream, or an ARN like it: mappings to streams of yesterday go as well."""
    return table.stream or f"{table.arn}/stream/none"
