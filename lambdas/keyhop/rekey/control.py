"""The control item: the table that serves, and the progress of a change of it. Pure.

Clients of the router rely on it while their lease lasts. The worker reads it before each batch.

    open      reads and writes go to the serving table
    closing   the same, but leases become short
    frozen    reads go to the serving table and writes wait, until the drain has ended
    fenced    the same; no batch of any direction writes, and the change waits for running batches
    turned    the other table is now the serving one; reads go to it, writes wait
    open      again; a change from source to destination is a cutover, the reverse a rollback

docs/internals/rekey-protocol.md explains when a change enters its next stage, aborts, leases, and
why there is a fence. No event source mapping is switched to stop a direction, which would take the
service up to a minute. Instead, each batch records that it has started, and then reads this item.
"""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, Literal, get_args

Side = Literal["source", "destination"]
Stage = Literal["open", "closing", "frozen", "fenced", "turned"]
Direction = Literal["forward", "reverse"]
Share = Literal["work", "later", "pass"]

NO_LIMIT = "none"
"""The rate of a copy that has no limit."""


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
"""How many leases a change waits in each stage, so that no client still uses the previous one."""

FREEZE_LIMIT_SECONDS = 10.0


Wait = Literal["", "leases", "the drain", "batches", "claims", "stragglers"]
"""What a change waits for; empty if it waits for nothing."""


@dataclass(frozen=True, slots=True)
class Evidence:
    """The observations of the process that makes a change, for the `seen_for` seconds of a
    revision.

    Batches and claims are those of the current direction, and stragglers those of either table. All
    are strongly read, the claims after the batches. The stream is drained when each open shard of
    the serving table has returned a marker that was written after `Control.settle` seconds.
    """

    seen_for: float
    drained: bool = False
    open_batches: int = 0
    claims: int = 0
    stragglers: int = 0


@dataclass(frozen=True, slots=True)
class Control:
    """The state of a re-key that routers and workers share; each change swaps its revision.

    Attributes:
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
    """How many times the serving table has changed. A verification counts for its turn only."""

    @property
    def lease(self) -> float:
        """Return the seconds for which a client may use a read of this item, in all."""
        return self.long_lease if self.stage == "open" else SHORT_LEASE_SECONDS

    @property
    def takes_writes(self) -> bool:
        return self.stage in ("open", "closing")

    @property
    def settle(self) -> float:
        """Return the seconds that must pass after this stage was first seen, before the next one:
        by then no client uses an earlier stage that matters (docs/internals/rekey-protocol.md).
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

        With `work` it is processed. With `pass` its records are dropped, because the other table
        serves. With `later` it fails and is delivered again, because a fence may be aborted, or
        replication is paused. Except with `work`, nothing is written and the record of the start is
        removed; but `later` keeps a record that existed before, because the batch that was killed
        may have written something that it did not check.
        """
        if direction != direction_from(self.serving):
            return "pass"
        return "work" if self.direction == direction else "later"

    def following(self, evidence: Evidence) -> "tuple[Control | None, Wait]":
        """Return the next control item if a change in progress may enter its next stage, to replace
        this one if the revision is unchanged, or None and what the change waits for. Stragglers are
        settled only when both tables agree about their items. Raise ValueError without a change.
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
        """Return the item that makes the other table serve, after all batches and claims."""
        turned = self._to("fenced", "turned")
        return replace(turned, serving=other_side(self.serving), turns=self.turns + 1)

    def opened(self) -> "Control":
        """Return the item that ends a change."""
        return self._to("turned", "open")

    def aborted(self) -> "Control":
        """Return the item that takes a change back to its beginning, before `turned`."""
        if self.stage not in ("closing", "frozen", "fenced"):
            raise ValueError(f"there is no change to cancel: {self.stage}")
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
        """Return the control item, with defaults, or raise ValueError if no table serves."""
        is_one = (
            isinstance(content, Mapping)
            and content.get("serving") in get_args(Side)
            and content.get("stage") in get_args(Stage)
            and isinstance(content.get("revision"), int)
        )
        if not is_one:
            raise ValueError("it does not name the table that serves")
        return cls(**{name: content[name] for name in cls.__dataclass_fields__ if name in content})
