"""The worker's protocol: the destination comes to hold what the source holds. Pure.

A record of the source's stream is believed in one thing only: which source key s to look at, and at
which *places* K of the destination something of s may have lain or is to lie. One `Work` is that:

    1. for each place of K: if the image of s lies there, write it, if nothing is there or an item
       of s; else remove what is there, if it is of s
    2. a write that was refused, as another source item o has the place: look at o. If it still lies
       there, both want it: claim the place for s. Else take it over from o, and in the same
       transaction claim it for o
    3. look at s. If it is as it was written: done; else again, with what was seen
    4. places outside K are left alone: they are those of another record

Who writes looks afterwards, or the work comes again. So the last write to a place was seen to agree
with the source, and any later change of the source brings a record, and with it a later write.

A *batch* notes that it has begun, and then reads the control item (`Control.share_of`). A batch
that was killed comes again and finds its note: a request of the one before may still take effect,
so it waits before its first write. So does a work that had no answer to a request of its own,
before its next write.

A *claim* (place, owner, token) is work that is left to do: (owner, {place}). Any claim puts a new
token. Whoever settles a claim

    takes it: swaps its token for one of his own; then reads the control item
    works (owner, {place}), looking first, each write on condition that the claim has his token
    drops it, on condition that it has his token

so who was overtaken, or killed, writes nothing any more, and a claim that is put meanwhile, also by
the work itself, stays. What verify finds becomes claims too (`claims_of`): a repair is no other.

Keys, places, images and tokens are opaque here: they are compared and handed on.
"""

from collections.abc import Callable, Hashable
from dataclasses import dataclass, replace
from enum import Enum
from typing import Any

WAIT_SECONDS = 5.0
"""A request takes effect within this time of its sending, or never (A2): clients have time-outs of
2 s, send nothing twice by themselves, and send nothing in the last 10 s of a function."""


class Kind(Enum):
    """What to do next, and what is its answer."""

    LOOK = "read `source`, strongly consistent: its image, or None"
    WRITE = (
        "put `image` at `place`, if nothing is there, or an item of `source`: None, or the owner"
    )
    REMOVE = "delete what is at `place`, if it is of `source`: None"
    LOOK_AT_OWNER = "read `owner`, strongly consistent: its image, or None"
    CLAIM = "put the claim of `source` on `place`, with a new token: None"
    TAKE_OVER = (
        "in one transaction: put `image` at `place`, if what is there is of `owner`, and put the "
        "claim of `owner` on `place`, with a new token: None, or anything else if refused"
    )
    WAIT = "for WAIT_SECONDS: None"


class Outcome(Enum):
    """Answers that are no images and no keys."""

    FOREIGN = "refused by an item that is of no source key"
    OVERTAKEN = "refused, as the claim has another token"
    REFUSED = "refused, as something else is there now"


@dataclass(frozen=True, slots=True)
class Call:
    """fence: not None: WRITE, REMOVE, TAKE_OVER are on condition that the claim of `source` on
    `place` has this token (a transaction), and are answered by OVERTAKEN if it has not."""

    kind: Kind
    source: Hashable
    place: Hashable = None
    image: Hashable = None
    owner: Hashable = None
    fence: Hashable = None


WRITES = frozenset({Kind.WRITE, Kind.REMOVE, Kind.TAKE_OVER})
"""What is waited for before; a claim is harmless whenever it takes effect."""


@dataclass(frozen=True, slots=True)
class Work:
    """One source key to be settled at some places. image: what it is taken to be, None for nothing.

    step: what is done next; None: done. at: the index of the place. owner: who refused. waits:
    whether a request may still take effect that this work does not know of. See Call for fence.
    """

    source: Hashable
    places: tuple[Hashable, ...]
    image: Hashable = None
    step: Kind | None = Kind.LOOK
    at: int = 0
    owner: Hashable = None
    waits: bool = False
    fence: Hashable = None
    first: bool = False
    """Whether the look that is next is the one before any write."""


@dataclass(frozen=True, slots=True)
class Claim:
    """Work that is left to do: `owner` at `place`."""

    place: Hashable
    owner: Hashable
    token: Hashable = None


@dataclass(frozen=True)
class Protocol:
    """place_of: where an image lies in the destination; None if nowhere, as an unmappable one."""

    place_of: Callable[[Any], Hashable]

    def begin(
        self,
        source: Hashable,
        places: tuple[Hashable, ...],
        image: Hashable,
        read_first: bool,
        waits: bool = False,
    ) -> Work:
        """The work for the records of one source key in a batch.

        places: those of all its old and new images there. image: the new one of the last record.
        read_first: of records that are older than a minute, or come again. waits: the batch's note
        was there.
        """
        if not places:
            return Work(source, places, image, step=None)
        if read_first:
            return Work(source, places, step=Kind.LOOK, waits=waits, first=True)
        return self._at(Work(source, places, image, waits=waits), 0)

    def settle(self, claim: Claim) -> Work:
        """The work for a claim that was taken; claim.token: the one that it was taken with."""
        return replace(self.begin(claim.owner, (claim.place,), None, True), fence=claim.token)

    def call(self, work: Work) -> Call | None:
        """What to ask next; None: the work is done."""
        if work.step is None:
            return None
        if work.step in WRITES and work.waits:
            return Call(Kind.WAIT, work.source)
        if work.step is Kind.LOOK:
            return Call(Kind.LOOK, work.source)
        place = work.places[work.at]
        image = work.image if work.step in (Kind.WRITE, Kind.TAKE_OVER) else None
        fence = work.fence if work.step in WRITES else None
        return Call(work.step, work.source, place, image, work.owner, fence)

    def answered(self, work: Work, answer: Hashable) -> Work:
        """The work after its call has had this answer."""
        if work.step in WRITES and work.waits:
            return replace(work, waits=False)
        if answer is Outcome.OVERTAKEN:
            return replace(work, step=None)
        if work.step is Kind.LOOK:
            return self.seen(work, answer)
        if work.step is Kind.WRITE and answer is not None:
            return self.refused(work, answer)
        if work.step is Kind.LOOK_AT_OWNER:
            return self.seen_owner(work, answer)
        if work.step is Kind.TAKE_OVER and answer is not None:
            return replace(work, step=Kind.WRITE, owner=None)
        return self._at(work, work.at + 1)

    def unanswered(self, work: Work) -> Work:
        """The work after a request whose fate is not known, as a time-out: all over, and a wait."""
        return replace(work, step=Kind.LOOK, owner=None, waits=True, first=True)

    def seen(self, work: Work, image: Hashable) -> Work:
        """A look at the source: the one at the beginning, or the one after the writes."""
        if image == work.image and not work.first:
            return replace(work, step=None)
        return self._at(replace(work, image=image, first=False), 0)

    def refused(self, work: Work, owner: Hashable) -> Work:
        """Another owner has the place."""
        if owner is Outcome.FOREIGN:
            return replace(work, step=Kind.CLAIM)
        return replace(work, step=Kind.LOOK_AT_OWNER, owner=owner)

    def seen_owner(self, work: Work, image: Hashable) -> Work:
        """A look at who has the place."""
        if self.lies_at(image, work.places[work.at]):
            return replace(work, step=Kind.CLAIM, owner=None)
        return replace(work, step=Kind.TAKE_OVER)

    def lies_at(self, image: Hashable, place: Hashable) -> bool:
        return image is not None and self.place_of(image) == place

    def _at(self, work: Work, at: int) -> Work:
        """Before the place with this index; after the last one comes a look."""
        if at == len(work.places):
            return replace(work, step=Kind.LOOK, at=0, owner=None)
        here = self.lies_at(work.image, work.places[at])
        return replace(work, step=Kind.WRITE if here else Kind.REMOVE, at=at, owner=None)


def claims_of(place: Hashable, wanted_by: Hashable, held_by: Hashable) -> tuple[Claim, ...]:
    """What verify claims for a place that is not as it should be.

    wanted_by: the source key whose item lies there; held_by: the owner of what is there; None for
    none. A place that several want is claimed for each of them, by a call for each. FOREIGN is
    nobody's: it is reported, and not repaired.
    """
    owners = dict.fromkeys((wanted_by, held_by))
    return tuple(Claim(place, who) for who in owners if who not in (None, Outcome.FOREIGN))
