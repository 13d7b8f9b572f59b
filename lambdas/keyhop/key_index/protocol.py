"""The keeper's protocol: an item collection has a sentinel exactly where it has an item. Pure.

A keeper gets records of a stream, at least once each, in any order, while users write and other
keepers work on the same collection; it can be killed between any two calls, and then its record
comes again. It believes no record: a record only says where to look.

    look at the collection's first two items, strongly consistent; if what is seen is not right, put
    the sentinel if it is absent, or delete it if nothing else is there

Every write that changes something leaves a record, a user's as well as a keeper's own. So somebody
looks after each write, and in particular after the last one of all, whoever made it and whether or
not he was killed right afterwards. Nobody acts upon that look, or it was not the last write: so
what it has seen was right. Therefore the sentinel's own inserts must not be filtered out of the
stream. A keeper that looked again itself, after it has acted, could be killed before it does; its
record then comes again, finds the sentinel that it has put, and believes that all is well.

For an insert a strong read of the sentinel alone is enough if it is there: it was put by somebody
whose own record is still to be looked after, or after which somebody has looked; and whoever
deletes it leaves a record too. So an insert into an old collection costs one small read.

A user's sort key may sort before the sentinel's. If two do, a look does not tell whether the
sentinel is there; then it is read. Between the two reads anything may happen, but only by writes,
after each of which somebody looks.

An item of a user in the sentinel's place ends it: nothing can be put, so the index lacks the
collection, and the keeper withdraws the trust in the index. A keeper that is killed before that
gets its record again. The item may also come by a write that changes an item: a put over the
sentinel, or an update that takes its marker away. So the stream's filter lets those records pass
that change an item in this place, and no others of that kind. The item's removal leaves a record.
 Keepers do not remember such places to spare that read, whose cost is the item's size: the
removal may be worked by another keeper, and then an insert that was believed to be into an occupied
collection is the first one into an empty one.

A walk over all collections (build, audit) has no record that comes again: whoever walks looks again
after each of its writes, until what is seen is right. With a keeper at work that is once too often,
and harmless.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from enum import Enum

GRACE_SECONDS = 10.0
"""How long the keeper may need for a write before its absence counts as drift."""


class Call(Enum):
    """What to ask of the table next."""

    READ = "get the sentinel, strongly consistent"
    LOOK = "query the first two items of the collection, strongly consistent"
    PUT = "put the sentinel, if nothing has its key"
    DELETE = "delete the sentinel, if it carries the marker"
    WITHDRAW = "withdraw the trust in the index, which lacks this collection"


class Place(Enum):
    """What a read of the sentinel's place has found."""

    FREE = "nothing"
    SENTINEL = "the sentinel"
    OCCUPIED = "an item of a user"


@dataclass(frozen=True, slots=True)
class Seen:
    """What a look has found: items of users, and the sentinel (None: it cannot be told)."""

    items: bool
    sentinel: bool | None

    @classmethod
    def of(cls, first_two: Sequence[bool]) -> "Seen":
        """first_two: of each item that the look has returned, whether it is the sentinel."""
        sentinel = True if any(first_two) else (None if len(first_two) == 2 else False)
        return cls(items=not all(first_two), sentinel=sentinel)


def first_call(only_inserts: bool) -> Call:
    """For the records of one partition key; only_inserts: of users' items, and nothing else."""
    return Call.READ if only_inserts else Call.LOOK


def after_read(place: Place, items: bool) -> Call | None:
    """Return the call after the place was read; None: done. items: a look has seen items."""
    if place is Place.OCCUPIED:
        return Call.WITHDRAW
    if place is Place.SENTINEL:
        return None
    return Call.PUT if items else Call.LOOK


def after_put(place: Place) -> Call | None:
    """Return the call after a put that found `place`, or made it the sentinel's; None: done."""
    return Call.WITHDRAW if place is Place.OCCUPIED else None


def after_look(seen: Seen) -> Call | None:
    """The collection was looked at; None: done. A put or a delete ends a reconciliation."""
    if seen.items and seen.sentinel is None:
        return Call.READ
    if seen.items and not seen.sentinel:
        return Call.PUT
    if seen.sentinel and not seen.items:
        return Call.DELETE
    return None
