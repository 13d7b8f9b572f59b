"""Open a re-key that `create` has made, by its destination's name. Both jobs begin with this."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from keyhop.dynamodb.client import Connection
from keyhop.dynamodb.tables import Table, look_up
from keyhop.dynamodb.values import Key
from keyhop.errors import BrokenPromise, CannotStart, TableNotFound
from keyhop.rekey.pair import SIDE_SUFFIX, Pair
from keyhop.rekey.side.table import SideTable
from keyhop.rekey.transform import Transform
from keyhop.retries import DEFAULT_PATIENCE_SECONDS

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
                f"The {what} of the re-key is not the one that the run was begun with: start a "
                f"new run."
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
            f"{destination + SIDE_SUFFIX!r} is not there. Begin with create."
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
