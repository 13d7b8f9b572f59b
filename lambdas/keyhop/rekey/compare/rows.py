"""What verify notes of each item, and how the two sides of a bucket are held against each other.

A row stands for an item that is, or should be, at a place of the destination: one of the source
says what should be there and whose it is, one of the destination what is there. Pure.
"""

import json
from collections.abc import Iterable
from dataclasses import dataclass

from keyhop.dynamodb.values import Item, Key, from_json
from keyhop.jobs.formats import BUCKET
from keyhop.rekey.digest import item_digest, key_digest
from keyhop.rekey.side.rows import key_text

ROWS_PER_BUCKET = 1_000_000
"""About: of both sides. While they are compared, those of one side are in memory: 74 MB were
measured for 500,000 of each, and 17 s of CPU for all (2026-11-23): less than a slice, which is what
it costs to be killed."""

_HASH, _DIGEST, _PLACE, _OWNER = "hash", "digest", "place", "owner"


def buckets_for(items: float) -> int:
    """How many buckets so many rows make."""
    return max(1, round(items / ROWS_PER_BUCKET))


def row_of(item: Item, place: Key, owner: Key | None, buckets: int) -> Key:
    """item: as it is, or should be, in the destination. owner: of a row of the source."""
    hashed = key_digest(place)
    bucket = int.from_bytes(hashed[:8], "big") % buckets
    return {
        BUCKET: {"N": str(bucket)},
        _HASH: {"S": hashed.hex()},
        _DIGEST: {"S": item_digest(item).hex()},
        _PLACE: {"S": key_text(place)},
        **({} if owner is None else {_OWNER: {"S": key_text(owner)}}),
    }


@dataclass(slots=True)
class Candidate:
    """A place where the two sides seem to differ, and who seems to want it."""

    place: Key
    owners: list[Key]

    def add(self, owner: Key) -> None:
        """Once, whatever form its numbers have."""
        if owner not in self.owners and key_text(owner) not in map(key_text, self.owners):
            self.owners.append(owner)


class Unmatched:
    """The places of a bucket of which not exactly one row of each side was seen, with the same
    digest: once all its rows are taken, in the order in which they were met.
    """

    def __init__(self) -> None:
        self.places: list[bytes] = []
        self._once: dict[bytes, bytes] = {}
        self._odd: dict[bytes, None] = {}

    def take(self, rows: Iterable[Key]) -> int:
        """Some more rows; returns how many."""
        taken, once = 0, self._once
        for row in rows:
            taken += 1
            place, digest = bytes.fromhex(row[_HASH]["S"]), bytes.fromhex(row[_DIGEST]["S"])
            if place in self._odd:
                continue
            mine, theirs = (b"s", b"d") if _OWNER in row else (b"d", b"s")
            other = once.pop(place, None)
            if other is None:
                once[place] = mine + digest
            elif other != theirs + digest:
                self._odd[place] = None
        return taken

    def end(self) -> None:
        """There are no more rows."""
        self.places = [*self._odd, *self._once]
        self._once, self._odd = {}, {}

    def candidates(self, rows: Iterable[Key], first: int, most: int) -> list[Candidate]:
        """Those of so many places; rows: the same once more."""
        wanted = {place: number for number, place in enumerate(self.places[first : first + most])}
        found: list[Candidate | None] = [None] * len(wanted)
        for row in rows:
            number = wanted.get(bytes.fromhex(row[_HASH]["S"]))
            if number is None:
                continue
            one = found[number] = found[number] or Candidate(_key(row[_PLACE]["S"]), [])
            if _OWNER in row:
                one.add(_key(row[_OWNER]["S"]))
        return [one for one in found if one is not None]


def _key(text: str) -> Key:
    return from_json(json.loads(text))
