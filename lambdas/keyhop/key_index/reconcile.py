"""One item collection, made right: the protocol's decisions, carried out call by call."""

from collections.abc import Callable
from dataclasses import dataclass

from keyhop.dynamodb.values import Key
from keyhop.errors import GaveUp
from keyhop.key_index.collections import Collections
from keyhop.key_index.protocol import Call, Place, after_look, after_put, after_read

MOST_ROUNDS = 50
"""Of one reconciliation; more only if others write to the collection all the time."""


@dataclass(frozen=True, slots=True)
class Reconciled:
    """What was done. acted: the first write, None if all was right. occupied: by a user's item."""

    acted: Call | None = None
    occupied: bool = False


def wrong(collections: Collections, partition: Key, first: Call = Call.LOOK) -> str | None:
    """What strongly consistent reads say: "missing", "surplus", "occupied", or None: all is right.

    first: READ if the collection is known to hold items.
    """
    if first is Call.LOOK:
        seen = collections.look(partition)
        if not seen.items:
            return "surplus" if seen.sentinel else None
        if seen.sentinel:
            return None
    place = collections.read(partition)
    if place is Place.FREE and first is Call.READ:
        return wrong(collections, partition)  # its items may be gone by now
    return {Place.FREE: "missing", Place.OCCUPIED: "occupied", Place.SENTINEL: None}[place]


def reconcile(
    collections: Collections,
    partition: Key,
    first: Call,
    *,
    items: bool = False,
    looks_again: bool = False,
    wrote: Callable[[], None] = lambda: None,
    withdraw: Callable[[], None] = lambda: None,
) -> Reconciled:
    """Go on from the call `first` until the protocol says that it is done.

    items: whether the collection is known to hold items of users. looks_again: look once more after
    each write, because no record of it will be worked by a keeper. wrote: called once, after the
    first write. withdraw: called if an item of a user occupies the sentinel's place. Raises what
    calls can raise, and GaveUp if others write to the collection all the time.
    """
    call: Call | None = first
    acted: Call | None = None
    for _ in range(MOST_ROUNDS):
        if call is None:
            return Reconciled(acted)
        if call is Call.READ:
            call = after_read(collections.read(partition), items)
        elif call is Call.LOOK:
            seen = collections.look(partition)
            items = seen.items
            call = after_look(seen)
        elif call is Call.WITHDRAW:
            withdraw()
            return Reconciled(acted, occupied=True)
        elif call is Call.PUT and not collections.put(partition):
            acted = acted or call
            call = after_put(Place.OCCUPIED)
        else:
            if call is Call.DELETE:
                collections.delete(partition)
            if acted is None:
                wrote()
            acted = acted or call
            call = Call.LOOK if looks_again else None
    raise GaveUp("An item collection was written to all the time while it was looked at.")
