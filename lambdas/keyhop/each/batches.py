"""Keys in batches for a receiver: how they are grouped, and the id of each batch. Pure.

A batch's id is made of the run, the position of its rows in the list, and the keys. The same keys
at the same position always have the same id, and an id is never used for other keys, so a receiver
that has seen an id can skip the batch.
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
    """An answer that does not say which keys have failed. The message holds no key."""


@dataclass(frozen=True, slots=True)
class KeyBatch:
    """The keys of one batch, as they are sent. page: their position in the list."""

    page: str
    keys: Sequence[Any]

    @property
    def id(self) -> str:
        return f"{self.page}-{_digest(_json(self.keys), 12)}"

    def part(self, places: Sequence[int]) -> "KeyBatch":
        """Return a batch of the keys at `places` only."""
        return KeyBatch(self.page, [self.keys[place] for place in places])


def body(run: str, batch: KeyBatch, table: str) -> str:
    """Return the body of a message as JSON in ASCII, so that it has as many bytes as characters."""
    return _json({"run": run, "batch": batch.id, "table": table, "keys": batch.keys})


def sent_key(partition: Key) -> Any:
    """Return a partition key as it is sent: a plain value, or several typed attributes."""
    if len(partition) == 1:
        return plain(*partition.values())
    return to_json(partition)


def batches_of(page: str, keys: Sequence[Any], size: int, most_bytes: int) -> Iterator[KeyBatch]:
    """Yield a page's batches, in order.

    size: the maximum number of keys in a batch. most_bytes: the maximum size of its keys together.
    A key that is larger than that is sent alone.
    """
    begin, total = 0, 0
    for number, key in enumerate(keys):
        cost = len(_json(key)) + 1
        if number > begin and (number - begin == size or total + cost > most_bytes):
            yield KeyBatch(page, keys[begin:number])
            begin, total = number, 0
        total += cost
    if begin < len(keys):
        yield KeyBatch(page, keys[begin:])


def failed_of(answer: Any, keys: Sequence[Any]) -> list[int]:
    """Return the places of the keys that an answer lists as failed. Raise Nonsense.

    The answer lists keys as they were sent, or by their places in the batch. If keys are numbers,
    it can list them only by value.
    """
    if not isinstance(answer, Mapping) or "failed" not in answer:
        return []
    named = answer["failed"]
    if not isinstance(named, list):
        raise Nonsense('its answer has a "failed" that is no list')
    places = {_json(key): place for place, key in enumerate(keys)}
    by_place = not any(isinstance(key, int | float) for key in keys)
    failed = set()
    for name in named:
        place = places.get(_json(_as_sent(name)))
        if place is None and by_place and type(name) is int and 0 <= name < len(keys):
            place = name
        if place is None:
            raise Nonsense('its answer has a "failed" that names what was not in the batch')
        failed.add(place)
    return sorted(failed)


def name_of(id_: str, content: str, most: int) -> str:
    """Return a name of up to `most` letters, digits, - and _ for content that is sent under an id.

    The name includes a digest of the content, so equal names mean equal content.
    """
    return f"{_NOT_IN_A_NAME.sub('-', id_)[: most - 17]}-{_digest(content, 16)}"


def _digest(content: str, digits: int) -> str:
    return hashlib.sha256(content.encode()).hexdigest()[:digits]


def _as_sent(named: Any) -> Any:
    """Convert a whole number that another language has written as 5.0 or 1e21."""
    if isinstance(named, float) and named.is_integer():
        return int(named)
    return named


def _json(value: Any) -> str:
    return json.dumps(value, separators=(",", ":"))
