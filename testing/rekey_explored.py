"""The model of two tables that the explorers of re-keying share: scenarios, requests and checks."""

from dataclasses import dataclass
from typing import Any

from keyhop.rekey.compare.rows import Look
from keyhop.rekey.worker.protocol import Kind, Outcome

from testing.worlds import Numbers

Image = tuple[int, int]
"""An item's place in the destination, and its content."""

Candidate = tuple[int, tuple[int, ...]]
"""A place that a verification looks at, and the source keys that may own it."""

TO_DO, DONE = -2, -1
NOT_CLEAN = -3
"""The state of a verification without repair that has found a difference."""
PUT_IF_ABSENT = "backfill's write"
NEW = 0
"""The token of a claim that no worker has taken; no fence is equal to it."""


def place_of(image: Image) -> int:
    return image[0]


@dataclass(frozen=True, slots=True)
class Record:
    """The record of one source key in a batch.

    Attributes:
        is_retry: Whether an earlier batch with this record was killed and left its note.
        sweep: The token of the claim that this slot settles; NEW for a record of a stream.
    """

    source: int
    places: tuple[int, ...]
    image: Image | None
    is_retry: bool = False
    sweep: int = NEW


@dataclass(frozen=True, slots=True)
class Scenario:
    """A script of writes, and the faults that may interfere with it.

    Attributes:
        script: The writes in order, as (source key, its new image or None).
        copies: How many records may be delivered twice.
        crashes: How many workers may be killed, get no answer to a request, or leave their work.
        merges: Whether two records of a key may come in one batch.
        loses: Whether records may be lost while the backfill runs.
        copy_dies: Whether the backfill may be killed; otherwise it only misses answers.
        repairs: Whether verify settles the differences, or only reports them.
        joint: Whether the claims of verify share a row, and verify settles them.
        destination: Its initial items; by default those that correspond to the source.
    """

    script: tuple[tuple[int, Image | None], ...]
    before: tuple[Image | None, ...] = (None, None)
    places: int = 2
    workers: int = 2
    sweepers: int = 0
    copies: int = 0
    crashes: int = 0
    merges: bool = False
    backfill: bool = False
    loses: bool = False
    copy_dies: bool = True
    verify: bool = False
    repairs: bool = True
    places_first: bool = False
    joint: bool = False
    destination: tuple[tuple[int, Image] | None, ...] | None = None

    def first(self) -> tuple[Any, ...]:
        """Return the initial world (rekey_explorer.World)."""
        destination = self.destination
        if destination is None:
            items = {image[0]: (s, image) for s, image in enumerate(self.before) if image}
            destination = tuple(None if self.backfill else items.get(d) for d in range(self.places))
        fill = (TO_DO if self.backfill else DONE,) * len(self.before)
        verify = TO_DO if self.verify else DONE
        return (
            self.before,
            destination,
            0,
            (),
            (),
            (),
            (),
            self.copies,
            self.crashes,
            fill,
            verify,
        )


class Known:
    """A cache of a protocol's steps, which explorers of the same protocol may share."""

    def __init__(self) -> None:
        self.records, self.works, self.slots = Numbers(), Numbers(), Numbers()
        self.lates, self.hands = Numbers(), Numbers()
        self.calls: dict[int, Any] = {}
        self.after: dict[tuple[int, Any], Any] = {}
        self.begun: dict[int, int] = {}
        self.judged: dict[Any, bool] = {}


def is_settled(source: Any, destination: Any, claims: Any) -> bool:
    """Return whether each place corresponds to the source, or is claimed."""
    claimed_pairs = {claim[:2] for claim in claims}
    for place, item in enumerate(destination):
        owners = {s for s, image in enumerate(source) if image and image[0] == place}
        owner = item[0] if item else None
        if item is not None and owner == Outcome.FOREIGN:
            unsettled = owners - {s for d, s in claimed_pairs if d == place}
        elif item is None or owner not in owners or item[1] != source[owner]:
            unsettled = owners or ({owner} if item else set())
        else:
            unsettled = {s for s in owners - {owner} if (place, s) not in claimed_pairs}
            if len(owners) == 1 and any(d == place for d, _ in claimed_pairs):
                return False
        if unsettled:
            return False
    return True


def differences(values: Any, cut: int, places_first: bool) -> tuple[Candidate, ...]:
    """Return the places where the digests differ, with their possible owners.

    Args:
        values: All source keys and all places, as they were read.
        cut: How many values belong to the table that was read first.
        places_first: Whether that table is the destination.
    """
    source, destination = (
        (values[cut:], values[:cut]) if places_first else (values[:cut], values[cut:])
    )
    candidates = []
    for place, item in enumerate(destination):
        owners = tuple(s for s, image in enumerate(source) if image and image[0] == place)
        is_empty = item is None and not owners
        if not is_empty and not (len(owners) == 1 and item == (owners[0], source[owners[0]])):
            candidates.append((place, owners))
    return tuple(candidates)


def with_owner(owners: tuple[int, ...], item: Any) -> tuple[int, ...]:
    """Return the owners, with the owner of the item at their place if it has one."""
    owner = None if item is None else item[0]
    return owners if owner in (None, Outcome.FOREIGN, *owners) else (*owners, owner)


def look_of(place: int, item: Any, images: tuple[tuple[int, Image | None], ...]) -> Look:
    """Return the look at a place that holds this item, and whose owners have these images."""
    expected = tuple(sorted((s, image) for s, image in images if image and image[0] == place))
    return Look(item, expected, item is not None and item[0] == Outcome.FOREIGN)


def effect(step: Any, source: Any, destination: Any, claims: Any) -> tuple[Any, Any, Any]:
    """Apply a request at one instant, and return the destination, the claims and the answer."""
    kind, key, place, image, owner, fence = step
    if kind is Kind.LOOK:
        return destination, claims, source[key]
    if kind is Kind.LOOK_AT_OWNER:
        return destination, claims, source[owner]
    if kind is Kind.WAIT:
        return destination, claims, None
    if kind is Kind.CLAIM:
        return destination, claimed(claims, place, key, NEW), None
    item = destination[place]
    item_owner = item[0] if item else None
    if kind is Kind.REMOVE and item_owner != key:  # it reads the item before it checks the claim
        return destination, claims, None
    if fence is not None and (place, key, fence) not in claims:
        return destination, claims, Outcome.OVERTAKEN
    if kind is Kind.TAKE_OVER:
        if item_owner != owner:
            return destination, claims, Outcome.REFUSED
        claims = claimed(claims, place, owner, NEW)
    elif kind is Kind.REMOVE:
        return (*destination[:place], None, *destination[place + 1 :]), claims, None
    elif item_owner is not None and (item_owner != key or kind is PUT_IF_ABSENT):
        return destination, claims, item_owner
    return (*destination[:place], (key, image), *destination[place + 1 :]), claims, None


def claimed(claims: Any, place: int, owner: int, token: int) -> Any:
    """Return the claims, with this one under this token."""
    other_claims = [claim for claim in claims if claim[:2] != (place, owner) or claim[2] < NEW]
    return tuple(sorted([*other_claims, (place, owner, token)]))
