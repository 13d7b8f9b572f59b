"""Open a re-key that `create` has made, by its destination's name, and the base of its jobs."""

import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from threading import Lock
from typing import Any

from keyhop.dynamodb.client import CONNECT_SECONDS, Connection
from keyhop.dynamodb.tables import Table, look_up
from keyhop.dynamodb.values import Key
from keyhop.errors import BrokenPromise, CannotStart, TableNotFound
from keyhop.jobs.journal import RunPlan
from keyhop.jobs.task import Task, TaskOptions
from keyhop.rekey.pair import SIDE_SUFFIX, Pair
from keyhop.rekey.side.layout import ALIVE
from keyhop.rekey.side.table import SideTable
from keyhop.rekey.transform import Transform
from keyhop.retries import DEFAULT_PATIENCE_SECONDS
from keyhop.scan.reader import PageReader

FRESH_SECONDS = 3.0
REQUEST_SECONDS = 5.0
"""A request takes effect within this time after it is sent, or never (assumption A2). Before that
it may wait CONNECT_SECONDS for a connection.
"""

SETTLED_SECONDS = 2.0 + FRESH_SECONDS + CONNECT_SECONDS + REQUEST_SECONDS
"""Seconds from the end of a backfill until a verification may begin."""

TransformOf = Callable[[Pair, Table, Table], Transform]
"""Load the transform of a plan, its source and its destination, or raise CannotStart."""

OursOf = Callable[[Table], Key | None]
"""Return the attributes that identify Keyhop's own items in a table; None if it can have none."""


@dataclass(frozen=True, slots=True)
class Rekey:
    """A re-key, with the current descriptions of both tables and the transform between them."""

    pair: Pair
    side: SideTable
    source: Table
    destination: Table
    transform: Transform

    def identities(self) -> dict[str, str]:
        """Return the values that must not change from the beginning to the end of a run."""
        return {
            "digest": self.pair.digest,
            "source": self.source.identity,
            "destination": self.destination.identity,
        }

    def check_same(self, identities: Mapping[str, Any]) -> None:
        """Raise BrokenPromise if a run was started with other identities than these."""
        changed = [name for name, value in self.identities().items() if identities[name] != value]
        if changed:
            what = "plan" if changed[0] == "digest" else f"{changed[0]} table"
            raise BrokenPromise(
                f"The {what} of the re-key has changed since the run began: start a new run."
            )


def side_table(connection: Connection, destination: str, **more: Any) -> SideTable:
    """Return the side table of the re-key into that table, with arguments of ItemCalls."""
    return SideTable(connection, destination + SIDE_SUFFIX, **more)


def plan_of(side: SideTable, destination: str) -> Pair:
    """Return the plan of the re-key into that table, or raise CannotStart if there is none."""
    try:
        return side.plan()
    except TableNotFound as error:
        raise CannotStart(
            f"There is no re-key into table {destination!r}: its side table "
            f"{destination + SIDE_SUFFIX!r} does not exist. Begin with create."
        ) from error


def opened(
    connection: Connection,
    destination: str,
    transform_of: TransformOf,
    patience: float = DEFAULT_PATIENCE_SECONDS,
    **more: Any,
) -> Rekey:
    """Read the plan of a re-key and describe both tables, or raise CannotStart or a subclass.
    `more` are arguments of ItemCalls.
    """
    side = side_table(connection, destination, patience=patience, **more)
    pair = plan_of(side, destination)
    source = look_up(connection, pair.source, patience)
    target = look_up(connection, pair.destination, patience)
    return Rekey(pair, side, source, target, transform_of(pair, source, target))


SIGN_SECONDS = 30.0


class SignsOfLife:
    """Records in the side table that a run was begun, and that its workers are running.

    The figure `figure` of the side table names the run that was begun last. Any number of threads
    may share an object.
    """

    def __init__(
        self, side: SideTable, figure: str, plan: RunPlan, now: Callable[[], float]
    ) -> None:
        self._side = side
        self._figure = figure
        self._run = plan.id
        self._now = now
        self._last = now()
        self._lock = Lock()
        current: Any = side.told(figure)
        is_older = current is not None and current["started"] > plan.started
        if not is_older and (current is None or current["run"] != plan.id):
            record = {"run": plan.id, "started": plan.started, "began": self._last, "ended": None}
            side.tell(figure, record)

    def give(self) -> None:
        """Record a sign of life, unless there was one in the last SIGN_SECONDS."""
        with self._lock:
            if self._now() - self._last < SIGN_SECONDS:
                return
            self._last = self._now()
        self._side.tell(f"{ALIVE}.{self._figure}", {"run": self._run, "at": self._last})


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
