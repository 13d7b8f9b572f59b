"""A re-key that `create` has made, opened by its destination's name: what both jobs begin with."""

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
from keyhop.scan.reader import PageReader

TransformOf = Callable[[Pair, Table, Table], Transform]
"""From the plan, the source and the destination; raises CannotStart for what cannot be loaded."""

OursOf = Callable[[Table], Key | None]
"""From a table to attributes that tell items of Keyhop's own in it; None if it can have none."""


@dataclass(frozen=True, slots=True)
class Rekey:
    """Both tables as they are described now, and what lies between them."""

    pair: Pair
    side: SideTable
    source: Table
    destination: Table
    transform: Transform

    def identities(self) -> dict[str, str]:
        """What a run goes by from beginning to end."""
        return {
            "digest": self.pair.digest,
            "source": self.source.identity,
            "destination": self.destination.identity,
        }

    def check_same(self, begun: Mapping[str, Any]) -> None:
        """Raises BrokenPromise if these are not the identities that a run was begun with."""
        changed = [name for name, value in self.identities().items() if begun[name] != value]
        if changed:
            what = "plan" if changed[0] == "digest" else f"{changed[0]} table"
            raise BrokenPromise(
                f"The {what} of the re-key is not the one that the run was begun with: start a "
                f"new run."
            )


def side_table(connection: Connection, destination: str, **more: Any) -> SideTable:
    """The side table of the re-key into that table. more: as of ItemCalls."""
    return SideTable(connection, destination + SIDE_SUFFIX, **more)


def plan_of(side: SideTable, destination: str) -> Pair:
    """What is re-keyed; raises CannotStart if there is no re-key into that table."""
    try:
        return side.plan()
    except TableNotFound as error:
        raise CannotStart(
            f"There is no re-key into table {destination!r}: its side table "
            f"{destination + SIDE_SUFFIX!r} is not there. Begin with: keyhop rekey create"
        ) from error


def opened(
    connection: Connection,
    destination: str,
    transform_of: TransformOf,
    patience: float = DEFAULT_PATIENCE_SECONDS,
    **more: Any,
) -> Rekey:
    """Reads its plan, and describes both tables; raises CannotStart and its kin.

    more: as of ItemCalls.
    """
    side = side_table(connection, destination, patience=patience, **more)
    pair = plan_of(side, destination)
    source = look_up(connection, pair.source, patience)
    there = look_up(connection, pair.destination, patience)
    return Rekey(pair, side, source, there, transform_of(pair, source, there))


def opened_for(
    connection: Connection, destination: str, transform_of: TransformOf, reader: PageReader
) -> Rekey:
    """The same, by a worker: what its requests cost, those about pages have in common."""
    return opened(
        connection,
        destination,
        transform_of,
        reader.patience,
        stop=reader.stop,
        usage=reader.usage,
    )
