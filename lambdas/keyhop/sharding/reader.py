"""Reads pages of single shards, for a query that merges them (merge.py)."""

from collections.abc import Mapping, Sequence
from concurrent.futures import Executor
from dataclasses import dataclass, field
from itertools import count as counter
from typing import Any

from botocore.exceptions import BotoCoreError, ClientError

from keyhop.dynamodb.values import TypedValue
from keyhop.key_index.sentinel import MARKER
from keyhop.sharding.calls import Calls
from keyhop.sharding.items import Schema
from keyhop.sharding.metadata import Known, Metadata
from keyhop.sharding.parts import Part, Question, Stale, rank_of
from keyhop.sharding.protocol import Placement


@dataclass(slots=True)
class Reader:
    """Pages of one table; for any number of threads.

    indexes: of the same schema, over which eventually consistent queries are spread in turn.
    """

    calls: Calls
    metadata: Metadata
    table: str
    schema: Schema
    placement: Placement
    executor: Executor
    indexes: Sequence[str] = ()
    _turn: "counter[int]" = field(default_factory=counter)

    def read(
        self,
        question: Question,
        part: Part,
        known: Known,
        most: int | None,
        bound: TypedValue | None = None,
    ) -> None:
        """Read one page more of a shard. most: items. bound: read no further than this sort key.

        Raises Stale rather than to send a request when the metadata has expired.
        """
        request = self._request(question, part, bound)
        if most is not None:
            request["Limit"] = most
        failed: list[Exception | None] = [None]

        def attempt() -> dict[str, Any]:
            if self.calls.clock.monotonic() >= known.expires:
                raise Stale(failed[0])
            try:
                return self.calls.once("query", **request)
            except (ClientError, BotoCoreError) as error:
                failed[0] = error
                raise

        answer = self.calls.patiently(attempt)
        if self.calls.clock.monotonic() > known.effective_until:
            raise Stale(None)  # nobody knows when it was read
        sort = self.schema.sort.name
        part.held.extend(
            (rank_of(item[sort], question.descending), item)
            for item in answer["Items"]
            if not is_sentinel(item)
        )
        last = answer.get("LastEvaluatedKey")
        if last is None and bound is None:
            part.done = True
            return
        part.after = bound if last is None else last[sort]
        assert part.after is not None
        part.reached = rank_of(part.after, question.descending)

    def _request(self, question: Question, part: Part, bound: TypedValue | None) -> dict[str, Any]:
        physical = self.schema.names.physical(question.logical, part.number)
        low, high = question.between
        if bound is not None:
            low, high = (bound, high) if question.descending else (low, bound)
        names = {"#p": self.schema.partition.name}
        values: dict[str, TypedValue] = {":p": physical}
        condition = "#p = :p"
        if low is not None and high is not None:
            condition += " AND #s BETWEEN :low AND :high"
            values.update({":low": low, ":high": high})
        elif low is not None:
            condition += " AND #s >= :low"
            values[":low"] = low
        elif high is not None:
            condition += " AND #s <= :high"
            values[":high"] = high
        if len(values) > 1:
            names["#s"] = self.schema.sort.name
        request: dict[str, Any] = {
            "TableName": self.table,
            "KeyConditionExpression": condition,
            "ExpressionAttributeNames": names,
            "ExpressionAttributeValues": values,
            "ScanIndexForward": not question.descending,
            "ConsistentRead": question.consistent,
        }
        if part.after is not None:
            request["ExclusiveStartKey"] = {
                self.schema.partition.name: physical,
                self.schema.sort.name: part.after,
            }
        if self.indexes and not question.consistent:
            index = (None, *self.indexes)[next(self._turn) % (len(self.indexes) + 1)]
            if index is not None:
                request["IndexName"] = index
        return request


def is_sentinel(item: Mapping[str, TypedValue]) -> bool:
    """Whether it is a key index's: nothing but its key and the marker, a number."""
    return len(item) == 3 and "N" in item.get(MARKER, {})
