"""Two tables as they are explored: what is done to them, what requests do, when they are right."""

from dataclasses import dataclass
from typing import Any

from keyhop.rekey.compare.rows import Look
from keyhop.rekey.worker.protocol import Kind, Outcome

from testing.worlds import Numbers

Image = tuple[int, int]
"""Of an item: its place in the destination, and its content."""

Candidate = tuple[int, tuple[int, ...]]
"""A place that a verification looks at, and the source keys that may want it."""

TO_DO, DONE = -2, -1
NOT_CLEAN = -3
"""A verification without repair that has found something: nobody goes by what it has seen."""
PUT_IF_ABSENT = "backfill's write"
NEW = 0
"""The token of a claim that nobody has taken: no fence is equal to it."""


def place_of(image: Image) -> int:
    return image[0]


@dataclass(frozen=True, slots=True)
class Record:
    """What a batch has of one source key. again: its batch was killed: a note of it is there.

    sweep: none, but a claim that was taken with this token.
    """

    source: int
    places: tuple[int, ...]
    image: Image | None
    again: bool = False
    sweep: int = NEW


@dataclass(frozen=True, slots=True)
class Scenario:
    """script: (source key, its new image or None) one after the other. crashes: how many workers
    may be killed, or get no answer, with a request under way, or leave their work. copies: records
    that come twice. merges: whether two records of a key may come in one batch. loses: records may
    be lost as long as the backfill runs. copy_dies: whether the backfill may be killed; else it
    only misses answers. repairs: whether verify settles what differs, or only says so. joint:
    whether its claims share a row, and it settles them itself. destination: as it is at the
    beginning; default: as the source is.
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
        """The world to begin with (rekey_explorer.World)."""
        there = self.destination
        if there is None:
            held = {image[0]: (s, image) for s, image in enumerate(self.before) if image}
            there = tuple(None if self.backfill else held.get(d) for d in range(self.places))
        fill = (TO_DO if self.backfill else DONE,) * len(self.before)
        verify = TO_DO if self.verify else DONE
        return (self.before, there, 0, (), (), (), (), self.copies, self.crashes, fill, verify)


class Known:
    """What is known of a protocol's steps already; explorers of the same protocol may share it."""

    def __init__(self) -> None:
        self.records, self.works, self.slots = Numbers(), Numbers(), Numbers()
        self.lates, self.hands = Numbers(), Numbers()
        self.calls: dict[int, Any] = {}
        self.after: dict[tuple[int, Any], Any] = {}
        self.begun: dict[int, int] = {}
        self.judged: dict[Any, bool] = {}


def is_settled(source: Any, there: Any, claims: Any) -> bool:
    """Whether each place is as the source says, or is claimed."""
    left = {claim[:2] for claim in claims}
    for place, held in enumerate(there):
        wanting = {s for s, image in enumerate(source) if image and image[0] == place}
        holder = held[0] if held else None
        if held is not None and holder == Outcome.FOREIGN:
            wrong = wanting - {s for d, s in left if d == place}
        elif held is None or holder not in wanting or held[1] != source[holder]:
            wrong = wanting or ({holder} if held else set())
        else:
            wrong = {s for s in wanting - {holder} if (place, s) not in left}
            if len(wanting) == 1 and any(d == place for d, _ in left):
                return False
        if wrong:
            return False
    return True


def differences(seen: Any, cut: int, places_first: bool) -> tuple[Candidate, ...]:
    """Return the places where the digests differ, with the owners that are known by them.

    Args:
        seen: All source keys and all places, as they were read.
        cut: How many of them were read first.
        places_first: Whether those are the places.
    """
    source, there = (seen[cut:], seen[:cut]) if places_first else (seen[:cut], seen[cut:])
    found = []
    for place, held in enumerate(there):
        wanting = tuple(s for s, image in enumerate(source) if image and image[0] == place)
        right = held is None and not wanting
        if not right and not (len(wanting) == 1 and held == (wanting[0], source[wanting[0]])):
            found.append((place, wanting))
    return tuple(found)


def with_owner(owners: tuple[int, ...], held: Any) -> tuple[int, ...]:
    """Return the owners, with that of the item at their place if it can be told."""
    owner = None if held is None else held[0]
    return owners if owner in (None, Outcome.FOREIGN, *owners) else (*owners, owner)


def look_of(place: int, held: Any, images: tuple[tuple[int, Image | None], ...]) -> Look:
    """Return the look at a place that holds `held`, and whose owners have these images."""
    wanted = tuple(sorted((s, image) for s, image in images if image and image[0] == place))
    return Look(held, wanted, held is not None and held[0] == Outcome.FOREIGN)


def effect(step: Any, source: Any, there: Any, claims: Any) -> tuple[Any, Any, Any]:
    """A request, at one instant: the destination and the claims after it, and the answer."""
    kind, key, place, image, owner, fence = step
    if kind is Kind.LOOK:
        return there, claims, source[key]
    if kind is Kind.LOOK_AT_OWNER:
        return there, claims, source[owner]
    if kind is Kind.WAIT:
        return there, claims, None
    if kind is Kind.CLAIM:
        return there, claimed(claims, place, key, NEW), None
    held = there[place]
    holder = held[0] if held else None
    if kind is Kind.REMOVE and holder != key:  # it looks, before it asks for the claim's token
        return there, claims, None
    if fence is not None and (place, key, fence) not in claims:
        return there, claims, Outcome.OVERTAKEN
    if kind is Kind.TAKE_OVER:
        if holder != owner:
            return there, claims, Outcome.REFUSED
        claims = claimed(claims, place, owner, NEW)
    elif kind is Kind.REMOVE:
        return (*there[:place], None, *there[place + 1 :]), claims, None
    elif holder is not None and (holder != key or kind is PUT_IF_ABSENT):
        return there, claims, holder
    return (*there[:place], (key, image), *there[place + 1 :]), claims, None


def claimed(claims: Any, place: int, owner: int, token: int) -> Any:
    """With this claim, by this token."""
    others = [claim for claim in claims if claim[:2] != (place, owner) or claim[2] < NEW]
    return tuple(sorted([*others, (place, owner, token)]))
