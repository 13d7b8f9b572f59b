"""The keeper: reconciles the item collections that a batch of stream records names.

`reconcile` carries out the decisions of the protocol (protocol.py) for one item collection, call by
call; walks use it too.
"""

import logging
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from keyhop.dynamodb.requester import Stopped
from keyhop.dynamodb.values import Key, canonical
from keyhop.errors import GaveUp
from keyhop.key_index.collections import Collections
from keyhop.key_index.protocol import Call, Place, after_look, after_put, after_read, first_call
from keyhop.streams.partition_worker import BatchResult, Change, OnFailure, Record, work_batch

MOST_ROUNDS = 50
"""The maximum number of rounds of one reconciliation. More are needed only if others write to the
collection all the time."""


@dataclass(frozen=True, slots=True)
class Reconciled:
    """The result of a reconciliation.

    Attributes:
        acted: The first write, or None if nothing was wrong.
        occupied: Whether an item of a user occupies the place of the sentinel.
    """

    acted: Call | None = None
    occupied: bool = False


def wrong(collections: Collections, partition: Key, first: Call = Call.LOOK) -> str | None:
    """Return what is wrong with a collection, by strongly consistent reads.

    Args:
        collections: The item collections of the table.
        partition: The partition key.
        first: READ if the collection is known to hold items.

    Returns:
        "missing", "surplus" or "occupied", or None if nothing is wrong.
    """
    if first is Call.LOOK:
        look = collections.look(partition)
        if not look.items:
            return "surplus" if look.sentinel else None
        if look.sentinel:
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
    """Make the calls of the protocol, beginning with `first`, until it is done.

    Args:
        collections: The item collections of the table.
        partition: The partition key.
        first: The first call.
        items: Whether the collection is known to hold items of users.
        looks_again: Whether to look once more after each write, because no keeper will process a
            record of it.
        wrote: Is called once, after the first write.
        withdraw: Is called if an item of a user occupies the place of the sentinel.

    Raises:
        GaveUp: Others write to the collection all the time.
    """
    call: Call | None = first
    acted: Call | None = None
    for _ in range(MOST_ROUNDS):
        if call is None:
            return Reconciled(acted)
        if call is Call.READ:
            call = after_read(collections.read(partition), items)
        elif call is Call.LOOK:
            look = collections.look(partition)
            items = look.items
            call = after_look(look)
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


logger = logging.getLogger(__name__)


def keep(
    records: Sequence[Record],
    collections: Collections,
    on_failure: OnFailure = lambda error: None,
    *,
    withdraw: Callable[[], None],
) -> BatchResult:
    """Reconcile the partition keys of a batch.

    Args:
        on_failure: called with each failure.
        withdraw: called for each collection whose sentinel's place is occupied by an item of a
            user. It withdraws the trust in the index. If it raises an exception, the records of
            the collection fail, and come again.
    """
    sentinel = collections.sentinel
    name = sentinel.partition.name

    def work(change: Change) -> None:
        reconcile(collections, change.partition, first_call(change.only_inserts), withdraw=withdraw)

    def select(changes: list[Change]) -> list[Change]:
        """Return the changes without the inserts whose collection has its sentinel.

        This is the READ of the protocol, for many collections in one request. The other inserts
        continue with a look, as after a READ.
        """
        inserts = [change.partition for change in changes if change.only_inserts]
        if len(inserts) < 2:
            return changes
        try:
            right = {canonical(key[name]) for key in collections.read_many(inserts)}
        except Stopped:
            raise
        except Exception as error:  # one key that cannot be read must not hold up the others
            logger.warning("inserts are read one by one: %s", type(error).__name__)
            return changes
        remaining = []
        for change in changes:
            if change.only_inserts and canonical(change.partition[name]) in right:
                continue
            change.only_inserts = False
            remaining.append(change)
        return remaining

    return work_batch(records, name, sentinel.is_at_place, select, work, on_failure)
