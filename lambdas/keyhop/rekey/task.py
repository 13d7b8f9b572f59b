"""What the jobs of a re-key have in common: they are given its destination, and read its source."""

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
    """options: `rekey`, the destination's name; the others are each task's own.

    transform_of: loads the plan's template. ours_of: from a table to what tells sentinels of a key
    index. now: seconds since 1970.
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
        """Task.reads: the source, of the re-key into this table."""
        side = side_table(self._connection, table.name)
        return look_up(self._connection, plan_of(side, table.name).source)

    @property
    def _name(self) -> str:
        return str(self._options["rekey"])

    def _opened(self) -> Rekey:
        """Raises CannotStart and its kin."""
        return opened(self._connection, self._name, self._transform_of)

    def _opened_for(self, reader: PageReader, begun: TaskOptions) -> Rekey:
        """By a worker: what its requests cost, those about pages have in common.

        begun: the options of the run's plan. Raises BrokenPromise if it was begun with another
        plan of a re-key, or other tables.
        """
        rekey = opened(
            self._connection,
            self._name,
            self._transform_of,
            reader.patience,
            stop=reader.stop,
            usage=reader.usage,
        )
        rekey.check_same(begun)
        return rekey

    def _side(self, **more: Any) -> SideTable:
        """more: as of ItemCalls."""
        return side_table(self._connection, self._name, **more)
