"""From a batch of stream records to partition keys, each worked once.

A record only says where to look, so what counts of a batch is its distinct partition keys. Whatever
fails is reported by its sequence numbers and comes again; nothing else does.
"""

from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from itertools import chain
from typing import Any

from keyhop.dynamodb.requester import Stopped
from keyhop.dynamodb.values import Key, canonical, from_json

THREADS = 8
Record = Mapping[str, Any]
"""A stream record as Lambda gets it."""

OnFailure = Callable[[Exception], None]
"""Called with each failure, without a key."""


@dataclass(slots=True)
class Change:
    """What the records of one partition key say. only_inserts: of users' items, nothing else."""

    partition: Key
    only_inserts: bool = True
    sequence_numbers: list[str] = field(default_factory=list)


@dataclass(frozen=True, slots=True)
class BatchResult:
    """What a batch came to. failed: sequence numbers of records that must come again."""

    records: int
    keys: int
    failed: tuple[str, ...]

    def to_response(self) -> dict[str, Any]:
        """The answer to the event source mapping (ReportBatchItemFailures)."""
        return {"batchItemFailures": [{"itemIdentifier": number} for number in self.failed]}


def work_batch(
    records: Sequence[Record],
    partition: str,
    is_own: Callable[[Key], bool],
    select: Callable[[list[Change]], list[Change]],
    work: Callable[[Change], None],
    on_failure: OnFailure,
) -> BatchResult:
    """Work the partition keys of a batch, each once; a failure of one does not stop others.

    partition: the name of the table's partition key. is_own: whether an item's key is that of one
    of our own items. select: those of the changes that need work at all.
    """
    failed: list[str] = []
    changes: dict[Any, Change] = {}
    for record in records:
        try:
            _add(changes, record, partition, is_own)
        except (LookupError, ValueError, TypeError, AttributeError, ArithmeticError) as error:
            on_failure(error)
            failed.append(str(record.get("dynamodb", {}).get("SequenceNumber", "")))

    def attempt(change: Change) -> list[str]:
        try:
            work(change)
        except Stopped:
            raise
        except Exception as error:
            on_failure(error)
            return change.sequence_numbers
        return []

    with ThreadPoolExecutor(THREADS) as pool:
        failed += chain(*pool.map(attempt, select(list(changes.values()))))
    return BatchResult(len(records), len(changes), tuple(failed))


def _add(
    changes: dict[Any, Change], record: Record, partition: str, is_own: Callable[[Key], bool]
) -> None:
    event = record["eventName"]
    keys = from_json(record["dynamodb"]["Keys"])
    if event == "MODIFY" and not is_own(keys):
        return
    value = keys[partition]
    change = changes.setdefault(canonical(value), Change({partition: value}))
    change.only_inserts = change.only_inserts and event == "INSERT" and not is_own(keys)
    change.sequence_numbers.append(record["dynamodb"]["SequenceNumber"])
