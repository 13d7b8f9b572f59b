"""The keeper: the partition keys that a batch of stream records names, reconciled (protocol.py)."""

import logging
from collections.abc import Callable, Sequence

from keyhop.dynamodb.requester import Stopped
from keyhop.dynamodb.values import canonical
from keyhop.key_index.collections import Collections
from keyhop.key_index.protocol import first_call
from keyhop.key_index.reconcile import reconcile
from keyhop.streams.partition_worker import BatchResult, Change, OnFailure, Record, work_batch

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

        This is the protocol's READ, for many collections at once.

        Those not found go on with a look, as after a READ of their own.
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
        left = []
        for change in changes:
            if change.only_inserts and canonical(change.partition[name]) in right:
                continue
            change.only_inserts = False
            left.append(change)
        return left

    return work_batch(records, name, sentinel.is_at_place, select, work, on_failure)
