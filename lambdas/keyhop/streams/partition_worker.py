"""Processing of a batch of stream records, once for each partition key.

A record only identifies a partition key to look at, so a batch is reduced to its distinct partition
keys. Keys that fail are reported by their sequence numbers, and only these records are sent again.
"""

import base64
import json
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from datetime import datetime
from itertools import chain
from typing import Any

from keyhop.dynamodb.values import Key, canonical, from_json
from keyhop.errors import Stopped

THREADS = 8
Record = Mapping[str, Any]
"""A stream record as Lambda passes it to a function."""

OnFailure = Callable[[Exception], None]
"""A function that is called with each error. The error contains no key."""


@dataclass(slots=True)
class Change:
    """The records of one partition key.

    Attributes:
        only_inserts: Whether all of them are inserts of users' items.
    """

    partition: Key
    only_inserts: bool = True
    sequence_numbers: list[str] = field(default_factory=list)


@dataclass(frozen=True, slots=True)
class BatchResult:
    """The result of a batch.

    Attributes:
        keys: The number of distinct partition keys.
        failed: The sequence numbers of the records that must be sent again.
    """

    records: int
    keys: int
    failed: tuple[str, ...]

    def to_response(self) -> dict[str, Any]:
        """Return the response to the event source mapping (ReportBatchItemFailures)."""
        return {"batchItemFailures": [{"itemIdentifier": number} for number in self.failed]}


def work_batch(
    records: Sequence[Record],
    partition: str,
    is_own: Callable[[Key], bool],
    select: Callable[[list[Change]], list[Change]],
    work: Callable[[Change], None],
    on_failure: OnFailure,
) -> BatchResult:
    """Process each partition key of a batch once. The failure of one does not stop the others.

    Args:
        partition: The name of the table's partition key.
        is_own: Returns whether a key is that of one of Keyhop's own items.
        select: Returns those of the changes that must be processed.
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


def as_event(record: Mapping[str, Any], stream: str) -> dict[str, Any]:
    """Convert a record of GetRecords to the form in which Lambda passes it.

    Times become numbers, and binary values become base64. `stream` is the ARN of the stream.
    """
    event = {**record, "eventSourceARN": stream}
    return dict(json.loads(json.dumps(event, default=_plain)))


def _plain(value: Any) -> Any:
    if isinstance(value, datetime):
        return value.timestamp()
    return base64.b64encode(value).decode("ascii")
