"""The control item: the table that serves, and the progress of a change of it. Pure.

Clients of the router rely on it while their lease lasts. The worker reads it before each batch.

    open      reads and writes go to the serving table
    closing   the same, but leases become short
    frozen    reads go to the serving table and writes wait; the drain ends when all records are
              processed and no claim remains
    fenced    the same; no batch of any direction writes, and the change waits for running batches
    turned    the other table is now the serving one; reads go to it, writes wait
    open      again; a change from source to destination is a cutover, the reverse a rollback

Until `turned`, any process may go back to `open` (an abort) by a swap of the revision. If an abort
and a turn compete, only one succeeds. After `turned` only leases have to expire, and any process
may go on to `open`.

No process enters the next stage before `settle` seconds have passed since it first saw the current
one, nor before the purpose of the current stage is fulfilled. Clients use a read of this item for
at most half a lease, and their requests live at most half a lease.

Replication has at most one direction: from the serving table. It has none in `fenced` and `turned`.
No event source mapping is switched for that, which would take the service up to a minute. Instead,
a batch records that it has started and then reads this item, and the process that has set the fence
looks for such records afterwards. So a batch either sees the fence, or is seen. It would not be
enough to look before the fence, or after the turn: a batch that starts in between, with an old
record, would write an old state to a table that is already read.
"""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, Literal, get_args

Side = Literal["source", "destination"]
Stage = Literal["open", "closing", "frozen", "fenced", "turned"]
Direction = Literal["forward", "reverse"]
Share = Literal["work", "later", "pass"]


def other_side(side: Side) -> Side:
    """Return the other one of the two tables."""
    return "destination" if side == "source" else "source"


def direction_from(serving: Side) -> Direction:
    """Return the direction in which batches write while that table serves."""
    return "forward" if serving == "source" else "reverse"


def other_direction(direction: Direction) -> Direction:
    """Return the direction back."""
    return "reverse" if direction == "forward" else "forward"


def origin_of(direction: Direction) -> Side:
    """Return the table that a direction replicates."""
    return "source" if direction == "forward" else "destination"


LEASE_SECONDS = 30.0
"""The lease while nothing changes, unless the re-key was created with another one."""
ALIVE_SECONDS = 2 * LEASE_SECONDS
"""A router counts as alive for this long after its last report."""

SHORT_LEASE_SECONDS = 2.0
"""The lease from `closing` until the change is over."""

_SETTLES: dict[Stage, float] = {
    "open": 0.0,
    "closing": 1.0,
    "frozen": 1.0,
    "fenced": 0.0,
    "turned": 1.0,
}
"""How many leases a change waits in each stage, so that no client still uses the stage before it.
"""

FREEZE_LIMIT_SECONDS = 10.0


Wait = Literal["", "leases", "the drain", "batches", "claims", "stragglers"]
"""What a change waits for; empty if it waits for nothing."""


@dataclass(frozen=True, slots=True)
class Evidence:
    """The observations of the process that makes a change, since it first saw the current revision.

    Attributes:
        seen_for: Seconds since it first saw the revision.
        drained: Whether each open shard of the serving table's stream has returned a marker that
            was written after `Control.settle` seconds.
        open_batches: Batches of the current direction that may be in flight (strongly read).
        claims: Claims of the current direction (strongly read, after the batches).
        stragglers: Unsettled stragglers of either table (strongly read).
    """

    seen_for: float
    drained: bool = False
    open_batches: int = 0
    claims: int = 0
    stragglers: int = 0


@dataclass(frozen=True, slots=True)
class Control:
    """The state of a re-key that routers and workers share.

    Attributes:
        revision: The number of changes so far; a change is a swap of it.
        freeze_limit: Seconds after which a client that still sees the same frozen revision aborts
            the change itself.
        long_lease: Seconds of a lease while nothing changes. It stays the same after `create`,
            because clients rely on it.
        replicating: Whether the worker replicates: from `start` on, except while it is paused.
    """

    serving: Side = "source"
    stage: Stage = "open"
    revision: int = 0
    freeze_limit: float = FREEZE_LIMIT_SECONDS
    long_lease: float = LEASE_SECONDS
    replicating: bool = False
    shadow: float = 0.0
    """The share of reads (0 to 1) that the router also makes on the table that does not serve."""
    expected_clients: int = 0
    """How many routers must have reported before a cutover; 0: not checked."""
    turns: int = 0
    """How many times the serving table has changed. A verify counts for the turn it was made in."""

    @property
    def lease(self) -> float:
        """Return the seconds for which a client may use a read of this item, in all."""
        return self.long_lease if self.stage == "open" else SHORT_LEASE_SECONDS

    @property
    def takes_writes(self) -> bool:
        return self.stage in ("open", "closing")

    @property
    def settle(self) -> float:
        """Return the seconds that must pass after this stage was first seen, before the next one.

        By then no client uses an earlier stage that differs from the next one in a way that
        matters: `frozen` begins when no client uses `open` any more, `fenced` when no client uses
        `closing`, and `open` when no client uses a stage before `turned`.
        """
        lease = self.long_lease if self.stage == "closing" else SHORT_LEASE_SECONDS
        return _SETTLES[self.stage] * lease

    @property
    def direction(self) -> Direction | None:
        """Return the direction in which batches may write now; None for no direction."""
        if not self.replicating or self.stage in ("fenced", "turned"):
            return None
        return direction_from(self.serving)

    def share_of(self, direction: Direction) -> Share:
        """Decide what happens to a batch that has recorded its start and then read this item.

        Returns:
            `work`: The batch is processed. `pass`: Its records are dropped, because the other table
            serves. `later`: It is not clear which of the two is right, because a fence may be
            aborted, or replication is paused; the batch fails and is delivered again. With `pass`
            and `later` nothing is written and the record of the start is removed. There is an
            exception for `later`: a record that existed before is kept, because the batch that was
            killed may have written something that it did not check. That batch is in flight until
            it has been processed.
        """
        if direction != direction_from(self.serving):
            return "pass"
        return "work" if self.direction == direction else "later"

    def following(self, evidence: Evidence) -> "tuple[Control | None, Wait]":
        """Decide whether a change in progress may enter its next stage.

        Returns:
            The next control item, which replaces this one if the revision is unchanged; or None and
            the thing that the change waits for. Stragglers are settled only when both tables agree
            about their items.

        Raises:
            ValueError: No change is in progress.
        """
        if self.stage == "open":
            raise ValueError("no change is in progress")
        if evidence.seen_for < self.settle:
            return None, "leases"
        if self.stage == "closing":
            return self.froze(), ""
        if self.stage == "turned":
            return self.opened(), ""
        if evidence.stragglers:
            return None, "stragglers"
        if self.stage == "frozen" and not evidence.drained:
            return None, "the drain"
        # While it is frozen, batches still settle claims; once it is fenced, no batch does.
        if evidence.open_batches:
            return None, "batches"
        if evidence.claims:
            return None, "claims"
        return (self.fenced() if self.stage == "frozen" else self.turned()), ""

    def closed(self) -> "Control":
        return self._to("open", "closing")

    def froze(self) -> "Control":
        return self._to("closing", "frozen")

    def fenced(self) -> "Control":
        """Return the item that fences off all batches, once the drain is done."""
        return self._to("frozen", "fenced")

    def turned(self) -> "Control":
        """Return the item that makes the other table serve.

        It comes when no batch of the old direction is in flight, and no claim remains.
        """
        turned = self._to("fenced", "turned")
        return replace(turned, serving=other_side(self.serving), turns=self.turns + 1)

    def opened(self) -> "Control":
        """Return the item that ends a change."""
        return self._to("turned", "open")

    def aborted(self) -> "Control":
        """Return the item that takes a change back to its beginning, before `turned`."""
        if self.stage not in ("closing", "frozen", "fenced"):
            raise ValueError(f"there is nothing to call off: {self.stage}")
        return replace(self, stage="open", revision=self.revision + 1)

    def changed(self, **fields: Any) -> "Control":
        """Return the item with other settings, such as replicating, shadow or freeze_limit."""
        return replace(self, revision=self.revision + 1, **fields)

    def _to(self, before: Stage, after: Stage) -> "Control":
        if self.stage != before:
            raise ValueError(f"{after} comes after {before}, and not after {self.stage}")
        return replace(self, stage=after, revision=self.revision + 1)

    def to_json(self) -> dict[str, Any]:
        return {name: getattr(self, name) for name in self.__dataclass_fields__}

    @classmethod
    def from_json(cls, content: Any) -> "Control":
        """Return the control item from its JSON form; settings of another version may be missing.

        Raises:
            ValueError: The content does not say which table serves.
        """
        is_one = (
            isinstance(content, Mapping)
            and content.get("serving") in get_args(Side)
            and content.get("stage") in get_args(Stage)
            and isinstance(content.get("revision"), int)
        )
        if not is_one:
            raise ValueError("it does not say which table serves")
        return cls(**{name: content[name] for name in cls.__dataclass_fields__ if name in content})
