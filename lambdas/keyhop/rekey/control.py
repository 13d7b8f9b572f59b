"""The control item: which table serves, and how far a change of that has come. Pure.

Clients of the router go by it while their lease lasts; the worker looks at it before each batch.

    open      reads and writes go to the table that serves
    closing   the same; leases get short
    frozen    reads go to it, writes wait; then the drain: all records are worked, no claim is left
    fenced    the same; no batch of any direction writes, and those that do are waited for
    turned    serving is the other one; reads go to it, writes wait
    open      and so on: from source to destination that is a cutover, back a rollback

Until `turned` anybody may go back to `open` (an abort), by a swap of the revision: of an abort and
a turn only one succeeds. After it there is nothing to wait for but leases, and anybody may open.

Nobody goes on to the next stage before `settle` seconds have passed since he saw this one, nor
before what the stage is for is done. Clients go by a read of this item that is at most half a lease
old, and their requests live at most half a lease.

Replication has one direction at most: from the table that serves, and none in `fenced` and
`turned`. No event source mapping is switched meanwhile (that takes the service up to a minute): a
batch notes that it has begun, and then reads this item; whoever has fenced looks for such notes
afterwards. So a batch either sees the fence, or is seen. A look before the fence would not do, nor
would one after the turn: a batch that begins in between, with an old record, would write an old
state where it is read already.
"""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, Literal, get_args

Side = Literal["source", "destination"]
Stage = Literal["open", "closing", "frozen", "fenced", "turned"]
Direction = Literal["forward", "reverse"]
Share = Literal["work", "later", "pass"]


def other_side(side: Side) -> Side:
    """Of the two tables, the other one."""
    return "destination" if side == "source" else "source"


def direction_from(serving: Side) -> Direction:
    """In which batches write while that table serves."""
    return "forward" if serving == "source" else "reverse"


def other_direction(direction: Direction) -> Direction:
    """Return the direction back."""
    return "reverse" if direction == "forward" else "forward"


def origin_of(direction: Direction) -> Side:
    """Return the table that a direction replicates."""
    return "source" if direction == "forward" else "destination"


LEASE_SECONDS = 30.0
ALIVE_SECONDS = 2 * LEASE_SECONDS
"""After its last report a router counts as alive for so long."""
"""While nothing changes, unless the re-key was created with another one."""

SHORT_LEASE_SECONDS = 2.0
"""From `closing` on, until the change is over."""

_SETTLES: dict[Stage, float] = {
    "open": 0.0,
    "closing": 1.0,
    "frozen": 1.0,
    "fenced": 0.0,
    "turned": 1.0,
}
"""For how many leases of those who go by what was before a stage is waited for."""

FREEZE_LIMIT_SECONDS = 10.0


Wait = Literal["", "leases", "the drain", "batches", "claims", "stragglers"]
"""What a change waits for; empty if it waits for nothing."""


@dataclass(frozen=True, slots=True)
class Evidence:
    """What the process that makes a change has observed since it first saw the present revision.

    Attributes:
        seen_for: Seconds since it first saw the revision.
        drained: Whether each open shard of the serving table's stream has shown a marker that was
            written after `Control.settle` seconds.
        open_batches: Batches of the present direction that may be in flight (strongly read).
        claims: Claims of the present direction (strongly read, after the batches).
        stragglers: Unsettled stragglers of either table (strongly read).
    """

    seen_for: float
    drained: bool = False
    open_batches: int = 0
    claims: int = 0
    stragglers: int = 0


@dataclass(frozen=True, slots=True)
class Control:
    """revision: goes up by one with each change; a change is a swap of it. freeze_limit: seconds
    after which a client that still sees the same frozen revision calls the change off itself.
    long_lease: seconds, while nothing changes; the same from `create` on, as clients go by it.
    replicating: whether the worker is to work at all (from `start` on, and not while it is paused).
    """

    serving: Side = "source"
    stage: Stage = "open"
    revision: int = 0
    freeze_limit: float = FREEZE_LIMIT_SECONDS
    long_lease: float = LEASE_SECONDS
    replicating: bool = False
    shadow: float = 0.0
    """Share of reads (0 to 1) that the router also makes on the table that does not serve."""
    expected_clients: int = 0
    """How many routers must have reported before a cutover; 0: not checked."""
    turns: int = 0
    """How many times the serving table has changed. A verify counts for the turn it was made in."""

    @property
    def lease(self) -> float:
        """Seconds for which a read of this item may be gone by, in all."""
        return self.long_lease if self.stage == "open" else SHORT_LEASE_SECONDS

    @property
    def takes_writes(self) -> bool:
        return self.stage in ("open", "closing")

    @property
    def settle(self) -> float:
        """Seconds that must have passed since this stage was seen first, before the next one.

        By then nobody goes by a stage before this one that differs from the next in what matters:
        `frozen` comes when nobody goes by `open` any more, `fenced` when nobody goes by `closing`,
        `open` when nobody goes by what was before `turned`.
        """
        lease = self.long_lease if self.stage == "closing" else SHORT_LEASE_SECONDS
        return _SETTLES[self.stage] * lease

    @property
    def direction(self) -> Direction | None:
        """The one in which batches may write now; None for none."""
        if not self.replicating or self.stage in ("fenced", "turned"):
            return None
        return direction_from(self.serving)

    def share_of(self, direction: Direction) -> Share:
        """What becomes of a batch that has noted that it began, and then read this item.

        work: it is worked. pass: its records are dropped, as the other table serves. later: neither
        is known to be right, as a fence may be called off: it fails, and comes again; so also
        while replication is paused. In these two cases nothing is written, and the note is removed;
        but for `later` not if it was there before: the batch that was killed may have written what
        it has not looked at, so it is under way until it has been worked.
        """
        if direction != direction_from(self.serving):
            return "pass"
        return "work" if self.direction == direction else "later"

    def following(self, evidence: Evidence) -> "tuple[Control | None, Wait]":
        """Decide whether a change in progress may enter its next stage.

        Returns:
            The next control item, to be swapped in on condition of this revision; or None and what
            the change waits for. Stragglers go only if both tables come to agree about their items.

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
        """When the drain is done."""
        return self._to("frozen", "fenced")

    def turned(self) -> "Control":
        """Return the item that makes the other table serve.

        It comes when no batch of the old direction is in flight, and no claim remains.
        """
        turned = self._to("fenced", "turned")
        return replace(turned, serving=other_side(self.serving), turns=self.turns + 1)

    def opened(self) -> "Control":
        """The end of a change."""
        return self._to("turned", "open")

    def aborted(self) -> "Control":
        """Back to where the change began; only before `turned`."""
        if self.stage not in ("closing", "frozen", "fenced"):
            raise ValueError(f"there is nothing to call off: {self.stage}")
        return replace(self, stage="open", revision=self.revision + 1)

    def changed(self, **fields: Any) -> "Control":
        """With other settings, as replicating, shadow or freeze_limit."""
        return replace(self, revision=self.revision + 1, **fields)

    def _to(self, before: Stage, after: Stage) -> "Control":
        if self.stage != before:
            raise ValueError(f"{after} comes after {before}, and not after {self.stage}")
        return replace(self, stage=after, revision=self.revision + 1)

    def to_json(self) -> dict[str, Any]:
        return {name: getattr(self, name) for name in self.__dataclass_fields__}

    @classmethod
    def from_json(cls, told: Any) -> "Control":
        """Settings may be missing, of another version. Raises ValueError if it is no control item:
        nothing is taken for granted of which table serves.
        """
        is_one = (
            isinstance(told, Mapping)
            and told.get("serving") in get_args(Side)
            and told.get("stage") in get_args(Stage)
            and isinstance(told.get("revision"), int)
        )
        if not is_one:
            raise ValueError("it does not say which table serves")
        return cls(**{name: told[name] for name in cls.__dataclass_fields__ if name in told})
