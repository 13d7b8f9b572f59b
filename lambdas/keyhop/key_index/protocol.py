"""The protocol of the keeper: an item collection has a sentinel exactly if it has an item. Pure.

A keeper gets records of a stream, at least once each, in any order, while users write and other
keepers process the same collection. It can be killed between any two calls, and then it gets its
record again. It does not trust the content of a record: a record only says where to look.

    look at the first two items of the collection, strongly consistent. If something is wrong, put
    the sentinel if it is absent, or delete it if the collection has no other item

Every write that changes something leaves a record, whether a user or a keeper made it. So a keeper
looks after each write, and in particular after the last one, no matter who made it, and even if its
writer was killed right afterwards. After the look that follows the last write, no keeper writes: so
that look has seen a correct collection. For this reason the inserts of sentinels must not be
filtered out of the stream. A keeper that looked again itself after its write could be killed before
that look; its record would come again, and find the sentinel that the keeper had put, although the
collection may be empty by then.

For an insert, a strongly consistent read of the sentinel alone is enough if the sentinel exists:
either the record of its put has still to be processed, or a keeper has looked after it; and a
delete leaves a record too. So an insert into an old collection costs one small read.

A user's sort key may sort before the sort key of the sentinel. If two of them do, a look does not
show whether the sentinel exists, and the sentinel is read. Between the two reads anything may
happen, but only by writes, and a keeper looks after each write.

If an item of a user occupies the place of the sentinel, nothing can be put, and the index lacks the
collection. Then the keeper withdraws the trust in the index. A keeper that is killed before that
gets its record again. Such an item may also appear by a write that modifies an item: a put over the
sentinel, or an update that removes its marker. So the filter of the stream passes the records of
modifications in this place, and of no others. The removal of the item leaves a record. Keepers do
not remember such places to save that read, whose cost is the size of the item: another keeper may
process the removal, and then an insert into a collection that is thought to be occupied is the
first insert into an empty one.

A walk over all collections (build, verify) has no record that comes again. It looks again after
each of its writes, until nothing is wrong. If a keeper runs as well, one of the two looks is
superfluous and harmless.
"""

from collections.abc import Sequence
from enum import Enum

GRACE_SECONDS = 10.0
"""The time that the keeper may need after a write, before a missing sentinel counts as drift."""

UNSEEN_KEEPER = "unseen-keeper"
"""The word to accept for a removal that cannot see whether a keeper follows the table."""


class Call(Enum):
    """A request that comes next."""

    READ = "get the sentinel, strongly consistent"
    LOOK = "query the first two items of the collection, strongly consistent"
    PUT = "put the sentinel, if nothing has its key"
    DELETE = "delete the sentinel, if it carries the marker"
    WITHDRAW = "withdraw the trust in the index, which lacks this collection"


class Place(Enum):
    """The content of the place of a sentinel."""

    FREE = "nothing"
    SENTINEL = "the sentinel"
    OCCUPIED = "an item of a user"


def shown_by(first_two: Sequence[bool]) -> tuple[bool, bool | None]:
    """Return whether items of users, and the sentinel (None: unknown), exist, by a look.

    `first_two` says of each item that the look has read whether it is the sentinel.
    """
    sentinel = True if any(first_two) else (None if len(first_two) == 2 else False)
    return not all(first_two), sentinel


def first_call(only_inserts: bool) -> Call:
    """Return the first call for records of one key, which may all be inserts of users' items."""
    return Call.READ if only_inserts else Call.LOOK


def after_read(place: Place, items: bool) -> Call | None:
    """Return the call after the place was read, or None; `items`: whether a look has seen items."""
    if place is Place.OCCUPIED:
        return Call.WITHDRAW
    if place is Place.SENTINEL:
        return None
    return Call.PUT if items else Call.LOOK


def after_put(place: Place) -> Call | None:
    """Return the call after a put that found this content, or None if the collection is done."""
    return Call.WITHDRAW if place is Place.OCCUPIED else None


def after_look(items: bool, sentinel: bool | None) -> Call | None:
    """Return the call after a look (`shown_by`), or None. A put or a delete is the last call."""
    if items and sentinel is None:
        return Call.READ
    if items and not sentinel:
        return Call.PUT
    return Call.DELETE if sentinel and not items else None
