"""`start`: attach the replicating function to the streams and begin to replicate. Repeatable."""

import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol

from keyhop.dynamodb.client import Connection
from keyhop.dynamodb.tables import StepResult, Table, look_up
from keyhop.errors import CannotStart
from keyhop.rekey.life_cycle.create import check_stream_view
from keyhop.rekey.pair import Pair
from keyhop.rekey.side.figures import COPIED, ENDING, STARTED
from keyhop.rekey.side.table import SideTable


class Followers(Protocol):
    """The replicating function's event source mappings (streams/event_source.Mappings)."""

    def attach(self, stream: str) -> bool:
        """Make the function follow the stream, and return whether it does by now."""

    def detach(self, stream: str) -> bool:
        """Detach the function from all streams of a table; return whether that is done."""

    def others(self, stream: str) -> list[str]:
        """Return the names of other functions that follow the stream."""


@dataclass(frozen=True, slots=True)
class Starting:
    """Starts the replication; `followers` is None without functions, as on a laptop.

    The function follows both streams from here until the end; the control item says in which
    direction it may write. The reverse direction begins while the destination is empty.
    """

    connection: Connection
    pair: Pair
    followers: Followers | None
    now: Callable[[], float] = time.time

    def step(self) -> StepResult:
        """Make the next step; raise CannotStart if `create` has not finished."""
        side = SideTable(self.connection, self.pair.side)
        check_goes_on(side, self.pair)
        if side.told(COPIED) is None:
            raise CannotStart("There is no destination yet: let create come to its end.")
        for name in (self.pair.destination, self.pair.source):
            table = look_up(self.connection, name)
            stream = stream_of(table)
            if self.followers is not None and not self.followers.attach(stream):
                return StepResult(False, f"attaching the function to the stream of {name}")
        if side.told(STARTED) is None:
            side.tell(STARTED, {"at": self.now()})
        return replicating(side)


def replicating(side: SideTable) -> StepResult:
    """Let batches write, without disturbing a change of the serving table."""
    control = side.control()
    if control.replicating:
        return StepResult(True, "replicating")
    if control.stage != "open":
        return StepResult(False, f"waiting for the cutover, which is {control.stage}")
    # If another process changed the item first, the next step reads it again.
    side.swap(control, control.changed(replicating=True))
    return StepResult(False, "beginning to replicate")


def check_goes_on(side: SideTable, pair: Pair) -> None:
    """Raise CannotStart for another plan, or if `cancel` or `complete` has begun."""
    if side.plan().digest != pair.digest:
        raise CannotStart(f"The side table {pair.side!r} holds another plan.")
    if ending := side.told(ENDING):
        raise CannotStart(f"This re-key is being ended: let {ending['how']} come to its end.")


def stream_of(table: Table) -> str:
    """Return the ARN of the table's stream; raise CannotStart if it is disabled or lacks images."""
    check_stream_view(table)
    if table.stream is None:
        raise CannotStart(
            f"The stream of {table.bare_name!r} is off: run create again, which turns it on. What "
            "was written meanwhile, verify finds."
        )
    return table.stream
