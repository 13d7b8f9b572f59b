"""The keeper: from a batch of stream records to collections that have been reconciled.

A record only says where to look (protocol.py), so what counts of a batch is its distinct partition
keys. Whatever fails is reported by its sequence numbers and comes again; nothing else does.
"""

import logging
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from typing import Any

from keyhop.dynamodb.values import Key, from_json
from keyhop.key_index.collections import Collections, name_of
from keyhop.key_index.protocol import first_call
from keyhop.key_index.reconcile import reconcile
from keyhop.key_index.sentinel import Sentinel
from keyhop.scan.reader import Stopped

WORKERS = 8
logger = logging.getLogger(__name__)


@dataclass(slots=True)
class Change:
    """What the records of one partition key say. only_inserts: of users' items, nothing else."""

    partition: Key
    only_inserts: bool = True
    sequence_numbers: list[str] = field(default_factory=list)


@dataclass(frozen=True, slots=True)
class Kept:
    """What a batch came to. failed: sequence numbers of records that must come again."""

    records: int
    keys: int
    failed: tuple[str, ...]

    def to_response(self) -> dict[str, Any]:
        """The answer to the event source mapping (ReportBatchItemFailures)."""
        return {"batchItemFailures": [{"itemIdentifier": number} for number in self.failed]}


def keep(
    records: Sequence[Mapping[str, Any]],
    collections: Collections,
    on_failure: Callable[[Exception], None] = lambda error: None,
) -> Kept:
    """Reconcile the partition keys of a batch, each once; a failure of one does not stop others.

    records: as Lambda gets them. on_failure: is told of each failure, without a key.
    """
    failed: list[str] = []
    changed: dict[str, Change] = {}
    for record in records:
        try:
            _add(changed, record, collections.sentinel)
        except (KeyError, ValueError, TypeError, AttributeError) as error:
            on_failure(error)
            failed.append(str(record.get("dynamodb", {}).get("SequenceNumber", "")))

    def work(change: Change) -> list[str]:
        try:
            reconcile(collections, change.partition, first_call(change.only_inserts))
        except Stopped:
            raise
        except Exception as error:
            on_failure(error)
            return change.sequence_numbers
        return []

    to_work = _still_to_work(list(changed.values()), collections)
    with ThreadPoolExecutor(WORKERS) as pool:
        for numbers in pool.map(work, to_work):
            failed.extend(numbers)
    return Kept(len(records), len(changed), tuple(failed))


def _still_to_work(changes: list[Change], collections: Collections) -> list[Change]:
    """Without the inserts whose collection has its sentinel: the protocol's READ, many at a time.

    Those not found go on with a look, as after a READ of their own.
    """
    inserts = [change.partition for change in changes if change.only_inserts]
    if len(inserts) < 2:
        return changes
    try:
        right = {name_of(key) for key in collections.read_many(inserts)}
    except Stopped:
        raise
    except Exception as error:  # one key that cannot be read must not hold up the others
        logger.warning("inserts are read one by one: %s", type(error).__name__)
        return changes
    left = []
    for change in changes:
        if change.only_inserts and name_of(change.partition) in right:
            continue
        change.only_inserts = False
        left.append(change)
    return left


def _add(changed: dict[str, Change], record: Mapping[str, Any], sentinel: Sentinel) -> None:
    event = record["eventName"]
    if event == "MODIFY":
        return
    keys = from_json(record["dynamodb"]["Keys"])
    partition = {sentinel.partition.name: keys[sentinel.partition.name]}
    is_insert = event == "INSERT" and not sentinel.is_at_place(keys)
    change = changed.setdefault(name_of(partition), Change(partition))
    change.only_inserts = change.only_inserts and is_insert
    change.sequence_numbers.append(record["dynamodb"]["SequenceNumber"])
