"""The worker's protocol: make the destination hold what the source holds. Pure.

The worker uses a record of the source's stream only to learn which source key s to read, and at
which *places* K of the destination an item of s may be or should be. One `Work` is this:

    1. for each place of K: if the image of s belongs there, write it if the place is empty or has
       an item of s; otherwise remove the item there if it is of s
    2. after a write that was refused because another source item o has the place: read o. If o
       still belongs there, both want the place: record a claim of s to it. Otherwise take it over
       from o, and record a claim of o to it in the same transaction
    3. read s. If it is as it was written, the work is done; otherwise repeat it with the new image
    4. do not touch places outside K: they belong to another record

A *claim* (place, owner, token) is remaining work: (owner, {place}), reading first, each write on
condition of the token. docs/internals/rekey-protocol.md explains claims, batches and waits, and why
all this holds. Keys, places, images and tokens are opaque here: they are only compared and passed
on.
"""

from collections.abc import Callable, Hashable
from dataclasses import dataclass, replace
from enum import Enum
from typing import Any

WAIT_SECONDS = 5.0
"""A request takes effect within this time after it is sent, or never (A2): clients have time-outs
of 2 s, do not retry on their own, and send nothing in the last 10 s of a function.
"""


class Kind(Enum):
    """The next action of a work, with its answer."""

    LOOK = "read `source`, strongly consistent: its image, or None"
    WRITE = (
        "put `image` at `place`, if nothing is there, or an item of `source`: None, or the owner"
    )
    REMOVE = "delete the item at `place`, if it is of `source`: None"
    LOOK_AT_OWNER = "read `owner`, strongly consistent: its image, or None"
    CLAIM = "put the claim of `source` on `place`, with a new token: None"
    TAKE_OVER = (
        "in one transaction: put `image` at `place`, if the item there is of `owner`, and put the "
        "claim of `owner` on `place`, with a new token: None, or anything else if refused"
    )
    WAIT = "for WAIT_SECONDS: None"


class Outcome(Enum):
    """Answers that are neither images nor keys."""

    FOREIGN = "refused by an item that is of no source key"
    OVERTAKEN = "refused, as the claim has another token"
    REFUSED = "refused, as something else is there now"


@dataclass(frozen=True, slots=True)
class Call:
    """A request of the protocol. With a `fence`, WRITE, REMOVE and TAKE_OVER are made in a
    transaction if the claim of `source` to `place` has this token, and are answered by OVERTAKEN
    otherwise.
    """

    kind: Kind
    source: Hashable
    place: Hashable = None
    image: Hashable = None
    owner: Hashable = None
    fence: Hashable = None


WRITES = frozenset({Kind.WRITE, Kind.REMOVE, Kind.TAKE_OVER})
"""The requests that a wait must precede; a claim is harmless whenever it takes effect."""


@dataclass(frozen=True, slots=True)
class Work:
    """A source key that must be settled at some places, with an assumed image; None for no item.
    `step` is the next action, None if the work is done, for the place with the index `at`, where
    `owner` may have refused a write. `waits` means that an unknown request may still take effect.
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
    """Whether the next read is the one before any write."""
    is_left: bool = False
    """Whether the work is given up: the next actions record claims for it."""


@dataclass(frozen=True, slots=True)
class Claim:
    """Remaining work: `owner` at `place`."""

    place: Hashable
    owner: Hashable
    token: Hashable = None


@dataclass(frozen=True)
class Protocol:
    """Decides the next action of a work; `place_of` returns None for an unmappable image."""

    place_of: Callable[[Any], Hashable]

    def begin(
        self,
        source: Hashable,
        places: tuple[Hashable, ...],
        image: Hashable,
        read_first: bool,
        waits: bool = False,
    ) -> Work:
        """Return the work for one source key in a batch, with all its places and the last image.
        Read first if the records are older than a minute, or are delivered again, and wait if the
        batch had recorded its start before.
        """
        if not places:
            return Work(source, places, image, step=None)
        if read_first:
            return Work(source, places, step=Kind.LOOK, waits=waits, first=True)
        return self._at(Work(source, places, image, waits=waits), 0)

    def settle(self, claim: Claim) -> Work:
        """Return the work for a claim that was taken with the token `claim.token`."""
        return replace(self.begin(claim.owner, (claim.place,), None, True), fence=claim.token)

    def call(self, work: Work) -> Call | None:
        """Return the next request, or None if the work is done."""
        if work.step is None:
            return None
        if self._must_wait(work):
            return Call(Kind.WAIT, work.source)
        if work.step is Kind.LOOK:
            return Call(Kind.LOOK, work.source)
        place = work.places[work.at]
        image = work.image if work.step in (Kind.WRITE, Kind.TAKE_OVER) else None
        fence = work.fence if work.step in WRITES else None
        return Call(work.step, work.source, place, image, work.owner, fence)

    def answered(self, work: Work, answer: Hashable) -> Work:
        """Return the work after the answer to its request."""
        if self._must_wait(work):
            return replace(work, waits=False)
        if work.is_left:
            return self._claimed(work, work.at + 1)
        if answer is Outcome.OVERTAKEN:
            return replace(work, step=None)
        if work.step is Kind.LOOK:
            return self.look_again_after(work, answer)
        if work.step is Kind.WRITE and answer is not None:
            return self.refused(work, answer)
        if work.step is Kind.LOOK_AT_OWNER:
            return self.seen_owner(work, answer)
        if work.step is Kind.TAKE_OVER and answer is not None:
            return replace(work, step=Kind.WRITE, owner=None)
        return self._at(work, work.at + 1)

    def unanswered(self, work: Work) -> Work:
        """Return the work after a request with an unknown result: it waits and repeats."""
        if work.is_left:
            return work
        return replace(work, step=Kind.LOOK, owner=None, waits=True, first=True)

    def leave(self, work: Work) -> Work:
        """Return the work given up, as its item changes too fast or is refused. Each place is
        claimed, after a wait if one is due, because a worker that settles a claim does not wait. If
        the work is for a claim, that claim remains.
        """
        abandoned = replace(work, owner=None, is_left=True)
        return self._claimed(abandoned, 0) if work.fence is None else replace(abandoned, step=None)

    def look_again_after(self, work: Work, image: Hashable) -> Work:
        """Return the work after a read of the source, at its beginning or after its writes."""
        if image == work.image and not work.first:
            return replace(work, step=None)
        return self._at(replace(work, image=image, first=False), 0)

    def refused(self, work: Work, owner: Hashable) -> Work:
        """Return the work after a refusal because another owner has the place."""
        if owner is Outcome.FOREIGN:
            return replace(work, step=Kind.CLAIM)
        return replace(work, step=Kind.LOOK_AT_OWNER, owner=owner)

    def seen_owner(self, work: Work, image: Hashable) -> Work:
        """Return the work after a read of the owner that has the place."""
        if self.lies_at(image, work.places[work.at]):
            return replace(work, step=Kind.CLAIM, owner=None)
        return replace(work, step=Kind.TAKE_OVER)

    def lies_at(self, image: Hashable, place: Hashable) -> bool:
        return image is not None and self.place_of(image) == place

    def _must_wait(self, work: Work) -> bool:
        """Return whether a wait is due before the first write, or an abandoned work's claim."""
        return work.waits and (work.step in WRITES or (work.is_left and work.step is not None))

    def _claimed(self, work: Work, at: int) -> Work:
        """Return abandoned work before the claim of the place with this index."""
        return replace(work, step=Kind.CLAIM if at < len(work.places) else None, at=at)

    def _at(self, work: Work, at: int) -> Work:
        """Return the work before the place with this index; after the last place comes a read."""
        if at == len(work.places):
            return replace(work, step=Kind.LOOK, at=0, owner=None)
        belongs_here = self.lies_at(work.image, work.places[at])
        return replace(work, step=Kind.WRITE if belongs_here else Kind.REMOVE, at=at, owner=None)
