"""How long a read of the control item can be used, and what two reads prove. Pure.

The lease counts from before the request of the item. A process that changes the item waits for the
lease after its change took effect, so all views of the earlier item have ended by then. So a write
that is answered within the lease took effect while the view was valid. For one that is answered
later the clock proves nothing, so the item is read again (`held_for_writes`).
"""

from dataclasses import dataclass

from keyhop.rekey.control import Control

LEAST_CHANGES_OF_TWO_TURNS = 7
"""The fewest revisions between two stages that allow writes, with two turns between them."""


@dataclass(frozen=True, slots=True)
class Moment:
    """A moment on both clocks, of which the one that shows the longer time counts: after a machine
    was suspended, or a function was frozen, only one of them may show it.
    """

    monotonic: float
    wall: float

    def until(self, now: "Moment") -> float:
        """Return the seconds from this moment until now."""
        return max(now.monotonic - self.monotonic, now.wall - self.wall)


@dataclass(frozen=True, slots=True)
class View:
    """The control item, with the moment before it was requested."""

    control: Control
    asked: Moment

    def is_young(self, now: Moment) -> bool:
        """Return whether the view is recent enough not to read again."""
        return self.asked.until(now) <= self.control.lease / 4

    def may_send(self, now: Moment) -> bool:
        """Return whether the view allows sending a request."""
        return self.asked.until(now) <= self.control.lease / 2

    def holds(self, now: Moment) -> bool:
        """Return whether no process can have acted upon a later change yet."""
        return self.asked.until(now) <= self.control.lease


def held_for_writes(before: Control, after: Control) -> bool:
    """Return whether one table has served from one read to the other, and takes writes: then a
    write to it between them is valid, whenever it took effect.
    """
    return (
        before.takes_writes
        and after.takes_writes
        and before.serving == after.serving
        and 0 <= after.revision - before.revision < LEAST_CHANGES_OF_TWO_TURNS
    )


def held_for_reads(before: Control, after: Control) -> bool:
    """Return whether one table has served continuously between two reads of the control item.

    If so, a read of it in that time was not older than the latest possible write. The limit is one
    change lower than for writes, because reads continue between closing and open.
    """
    changes = after.revision - before.revision
    return before.serving == after.serving and 0 <= changes < LEAST_CHANGES_OF_TWO_TURNS - 1


def freeze_of(control: Control) -> int | None:
    """Return the revision that began a freeze; None without one that can be aborted."""
    if control.takes_writes or control.stage == "turned":
        return None
    return control.revision if control.stage == "frozen" else control.revision - 1
