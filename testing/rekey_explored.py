"""Two tables as they are explored: what is done to them, what requests do, when they are right."""

from collections.abc import Hashable
from dataclasses import dataclass
from typing import Any

from keyhop.rekey.compare.look import Look
from keyhop.rekey.compare.rows import Unmatched, row_of
from keyhop.rekey.worker.protocol import Kind, Outcome

from testing.rekey_owned import Owned
from testing.worlds import Numbers

Image = tuple[int, int]
"""Of an item: its place in the destination, and its content."""

TO_DO, DONE, UNCLEAN = -2, -1, -3
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
    """What may happen in one exploration.

    script: (source key, its new image or None) one after the other. crashes: how many workers may
    be killed, or get no answer, with a request in flight, or leave their work. copies: records that
    come twice. merges: whether two records of a key may come in one batch. loses: records may be
    lost while the backfill runs. repair: whether verify settles what differs; else it says whether
    it has found anything, and only a world that it calls clean is judged. destination: as it is at
    the beginning; default: as the source is.
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
    verify: bool = False
    repair: bool = True
    places_first: bool = False
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
        self.looked: dict[Any, Any] = {}


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


def unmatched(seen: Any, cut: int, places_first: bool) -> tuple[tuple[int, tuple[int, ...]], ...]:
    """Return the places that the digests leave as candidates, each with the owners of its rows.

    Args:
        seen: All keys and all places, as they were read, the first `cut` of them first.
    """
    source, there = (seen[cut:], seen[:cut]) if places_first else (seen[:cut], seen[cut:])
    rows = [
        row_of(destination_item(s, image), _key("pk", image[0]), _key("id", s), 1)
        for s, image in enumerate(source)
        if image is not None
    ]
    rows += [
        row_of(destination_item(*held), _key("pk", place), None, 1)
        for place, held in enumerate(there)
        if held is not None
    ]
    compared = Unmatched()
    compared.take(rows)
    compared.end()
    found = compared.candidates(rows, 0, len(compared.places))
    return tuple(
        (int(one.place["pk"]["S"]), tuple(int(owner["id"]["S"]) for owner in one.owners))
        for one in found
    )


def look(place: int, held: Any, owners: tuple[tuple[int, Image | None], ...]) -> Look:
    """Return one strong look at a place.

    Args:
        held: What lies there: its owner and its image.
        owners: Each source key that may own it, with its image.
    """
    wanted = tuple(sorted(one for one in owners if one[1] is not None and one[1][0] == place))
    return Look(held, wanted, held is not None and held[0] is Outcome.FOREIGN)


TRANSFORM = Owned()


def source_item(key: int, image: Image) -> dict[str, Any]:
    place, content = image
    return {**_key("id", key), "to": {"S": str(place)}, "n": {"N": str(content)}}


def destination_item(owner: Hashable, image: Image) -> dict[str, Any]:
    """The item of an owner at its place; of FOREIGN, one that tells no owner."""
    if owner is Outcome.FOREIGN:
        return {**_key("pk", image[0]), "n": {"N": str(image[1])}}
    made = TRANSFORM.forward(source_item(int(str(owner)), image))
    assert made is not None
    return dict(made)


def _key(name: str, number: int) -> dict[str, Any]:
    return {name: {"S": str(number)}}


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
    others = [claim for claim in claims if claim[:2] != (place, owner)]
    return tuple(sorted([*others, (place, owner, token)]))
