"""How long a read of the control item may be gone by, and what two reads prove. Pure.

The lease is counted from before the item was asked for. A change of it is made known to whoever
changes it after it took effect, so a view of what was before ends a lease after that at the latest.

A write that is answered within the lease has taken effect while what was seen still held. Of one
that is answered later nobody knows by the clock; then the item is read again (`held_for_writes`).
"""

from dataclasses import dataclass

from keyhop.rekey.control import Control

LEAST_CHANGES_OF_TWO_TURNS = 7
"""Revisions from one stage in which writes are taken to another, with two turns between them."""


@dataclass(frozen=True, slots=True)
class Moment:
    """By both clocks. A machine that was suspended, or a function that was frozen, may show it in
    only one of them; whichever says that more time has passed is believed.
    """

    monotonic: float
    wall: float

    def until(self, now: "Moment") -> float:
        """Seconds."""
        return max(now.monotonic - self.monotonic, now.wall - self.wall)


@dataclass(frozen=True, slots=True)
class View:
    """What the control item was, and a moment before it was asked for."""

    control: Control
    asked: Moment

    def is_young(self, now: Moment) -> bool:
        """Whether there is no need to look again yet."""
        return self.asked.until(now) <= self.control.lease / 4

    def may_send(self, now: Moment) -> bool:
        """Whether a request may be sent by it."""
        return self.asked.until(now) <= self.control.lease / 2

    def holds(self, now: Moment) -> bool:
        """Whether nobody can have acted upon a change of it yet."""
        return self.asked.until(now) <= self.control.lease


def held_for_writes(before: Control, after: Control) -> bool:
    """Whether one table has served without a break from one read to the other, and takes writes
    now: then a write to it in between counts, whenever it took effect.
    """
    return (
        before.takes_writes
        and after.takes_writes
        and before.serving == after.serving
        and 0 <= after.revision - before.revision < LEAST_CHANGES_OF_TWO_TURNS
    )


def held_for_reads(before: Control, after: Control) -> bool:
    """Whether one table has served without a break: then what a read of it has found in between is
    no older than what could be written meanwhile. Two turns are one stage nearer than for writes,
    as reads go on between closing and open.
    """
    changes = after.revision - before.revision
    return before.serving == after.serving and 0 <= changes < LEAST_CHANGES_OF_TWO_TURNS - 1


def freeze_of(control: Control) -> int | None:
    """What tells one freeze from another: the revision that it began with; None: there is none that
    could be called off.
    """
    if control.takes_writes or control.stage == "turned":
        return None
    return control.revision if control.stage == "frozen" else control.revision - 1
