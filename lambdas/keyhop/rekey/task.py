"""The base of a re-key's jobs: they are given the destination's name, and read its source."""

import time
from collections.abc import Callable
from typing import Any

from keyhop.dynamodb.client import Connection
from keyhop.dynamodb.tables import Table, look_up
from keyhop.jobs.task import Task, TaskOptions
from keyhop.rekey.opening import (
    OursOf,
    Rekey,
    TransformOf,
    opened,
    plan_of,
    side_table,
)
from keyhop.rekey.side.table import SideTable
from keyhop.scan.reader import PageReader


class RekeyTask(Task):
    """A job of a re-key; its option `rekey` is the destination's name. `transform_of` loads the
    plan's template, and `ours_of` returns the attributes that identify sentinels of a key index.
    """

    visits = True

    def __init__(
        self,
        connection: Connection,
        options: TaskOptions,
        transform_of: TransformOf,
        ours_of: OursOf = lambda table: None,
        now: Callable[[], float] = time.time,
    ) -> None:
        super().__init__()
        self._connection = connection
        self._options = options
        self._transform_of = transform_of
        self._ours_of = ours_of
        self._now = now

    def reads(self, table: Table) -> Table:
        """Return the source of the re-key into this table (Task.reads)."""
        side = side_table(self._connection, table.name)
        return look_up(self._connection, plan_of(side, table.name).source)

    @property
    def _name(self) -> str:
        return str(self._options["rekey"])

    def _opened(self) -> Rekey:
        """Open the re-key, or raise CannotStart or a subclass."""
        return opened(self._connection, self._name, self._transform_of)

    def _opened_for(self, reader: PageReader, options: TaskOptions) -> Rekey:
        """Open the re-key for a worker, whose requests count together with those of its pages.
        Raise BrokenPromise if the run was started with another plan or other tables.
        """
        rekey = opened(
            self._connection,
            self._name,
            self._transform_of,
            reader.patience,
            stop=reader.stop,
            usage=reader.usage,
        )
        rekey.check_same(options)
        return rekey

    def _side(self, **more: Any) -> SideTable:
        """Return the side table, with arguments of ItemCalls."""
        return side_table(self._connection, self._name, **more)
