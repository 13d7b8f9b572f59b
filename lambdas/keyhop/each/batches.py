"""Keys in batches, for somebody else to work on: which go together, and by what id. Pure.

A batch's id says what was asked for (the run, and the place of its rows in the list) and which keys
these are. So the same keys at the same place have the same id, however often they are sent, and an
id never stands for other keys: a receiver that has seen it has nothing left to do.
"""

import hashlib
import json
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from keyhop.dynamodb.values import Key, plain, to_json

_NOT_IN_A_NAME = re.compile(r"[^A-Za-z0-9_-]")


class Nonsense(ValueError):
    """An answer that says of no key whether it is done; the message holds no key."""


@dataclass(frozen=True, slots=True)
class KeyBatch:
    """Keys that are sent together, as they are sent. page: where they are in the list."""

    page: str
    keys: Sequence[Any]

    @property
    def id(self) -> str:
        return f"{self.page}-{_digest(_json(self.keys), 12)}"

    def part(self, places: Sequence[int]) -> "KeyBatch":
        """Those at `places` alone."""
        return KeyBatch(self.page, [self.keys[place] for place in places])


def body(run: str, batch: KeyBatch, table: str) -> str:
    """What is sent: JSON, in ASCII, so as many bytes as characters."""
    return _json({"run": run, "batch": batch.id, "table": table, "keys": batch.keys})


def sent_key(partition: Key) -> Any:
    """A partition key as it is sent: its value, without a type; several attributes with theirs."""
    if len(partition) == 1:
        return plain(*partition.values())
    return to_json(partition)


def batches_of(page: str, keys: Sequence[Any], size: int, most_bytes: int) -> Iterator[KeyBatch]:
    """A page's batches, in order. size: keys of one at most. most_bytes: of all its keys.

    A key that is too large by itself is a batch of its own.
    """
    begin, taken = 0, 0
    for number, key in enumerate(keys):
        cost = len(_json(key)) + 1
        if number > begin and (number - begin == size or taken + cost > most_bytes):
            yield KeyBatch(page, keys[begin:number])
            begin, taken = number, 0
        taken += cost
    if begin < len(keys):
        yield KeyBatch(page, keys[begin:])


def failed_of(answer: Any, keys: Sequence[Any]) -> list[int]:
    """The places of the keys that an answer names as failed; raises Nonsense.

    It names a key as it was sent, or by its place in the batch; where keys are numbers themselves,
    by the key alone.
    """
    if not isinstance(answer, Mapping) or "failed" not in answer:
        return []
    named = answer["failed"]
    if not isinstance(named, list):
        raise Nonsense('its answer has a "failed" that is no list')
    places = {_json(key): place for place, key in enumerate(keys)}
    by_place = not any(isinstance(key, int | float) for key in keys)
    found = set()
    for one in named:
        place = places.get(_json(_as_sent(one)))
        if place is None and by_place and type(one) is int and 0 <= one < len(keys):
            place = one
        if place is None:
            raise Nonsense('its answer has a "failed" that names what was not in the batch')
        found.add(place)
    return sorted(found)


def name_of(id_: str, content: str, most: int) -> str:
    """A name of up to `most` characters for what is sent under an id: letters, digits, - and _.

    It says what the content is too, so equal names stand for equal contents.
    """
    return f"{_NOT_IN_A_NAME.sub('-', id_)[: most - 17]}-{_digest(content, 16)}"


def _digest(content: str, digits: int) -> str:
    return hashlib.sha256(content.encode()).hexdigest()[:digits]


def _as_sent(named: Any) -> Any:
    """Other languages write 5 as 5.0, or 1e21 with all its digits."""
    if isinstance(named, float) and named.is_integer():
        return int(named)
    return named


def _json(value: Any) -> str:
    return json.dumps(value, separators=(",", ":"))
