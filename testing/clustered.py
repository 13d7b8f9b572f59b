"""A table in this process whose items are similar within a collection, and generated on demand.

Sizes, tags and attributes depend on the collection more than on the item, and large collections
have larger items. So the items of one page say little about the others, as in real tables.
"""

import math
import random
import time
from bisect import bisect_left, bisect_right
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from functools import cached_property
from itertools import accumulate
from typing import Any

from botocore.exceptions import ClientError
from keyhop.dynamodb.client import Connection
from keyhop.dynamodb.tables import look_up
from keyhop.report.facts import SampleFacts
from keyhop.report.request import ReportInput
from keyhop.report.sampling import sample

KEYS, MEAN = 10_000, 40
LEVELS = (0.5, 0.9, 0.99)
OVERHEAD = 40
"""The approximate bytes of an item without its filling."""


def lengths_of(name: str, chance: random.Random) -> list[int]:
    match name:
        case "Zipf 1.0":
            scale = MEAN * KEYS / math.fsum(1 / rank for rank in range(1, KEYS + 1))
            lengths = [scale / rank for rank in range(1, KEYS + 1)]
        case "one key of 40 %":
            lengths = [chance.lognormvariate(math.log(MEAN * 0.6) - 0.5, 1) for _ in range(KEYS)]
            lengths[0] = math.fsum(lengths) * 0.4 / 0.6
        case "equal":
            lengths = [float(MEAN)] * KEYS
        case _:
            lengths = [chance.lognormvariate(math.log(MEAN) - 0.5, 1) for _ in range(KEYS)]
    chance.shuffle(lengths)
    return [max(1, round(length)) for length in lengths]


TABLES = ("lognormal, sigma 1", "Zipf 1.0", "one key of 40 %", "equal")


class ClusteredTable:
    """A table with the interface of keyhop.dynamodb.client.DynamoDB, whose keys are in hash order.

    Attributes:
        lengths: The number of items of each key.
        grown: The ratio of its number of items to that of DescribeTable.
    """

    def __init__(self, lengths: Sequence[int], seed: str = "", grown: float = 1.0) -> None:
        chance = random.Random(seed)
        self.lengths, self.grown = lengths, grown
        self._first = [0, *accumulate(self.lengths)]
        self._hashes = sorted(chance.random() for _ in self.lengths)
        self._means = [
            min(20_000.0, chance.lognormvariate(math.log(250), 0.8) * (length / MEAN) ** 0.3)
            for length in self.lengths
        ]
        self._has = [chance.random() < 0.3 for _ in self.lengths]
        self._sizes = [
            max(1, round(mean * chance.uniform(0.6, 1.4)))
            for mean, length in zip(self._means, self.lengths, strict=True)
            for _ in range(length)
        ]
        self._odd = bytes(chance.random() < 0.1 for _ in self._sizes)
        self.bytes = sum(self._sizes) + OVERHEAD * len(self._sizes)

    @property
    def items(self) -> int:
        return len(self._sizes)

    def key(self, number: int) -> str:
        return f"{'USER' if number % 4 else 'ORG'}#{number:06}"

    def sort(self, number: int, at: int) -> str:
        second = 1_700_000_000 + (at * 30_000_000 + 7_919 * number % 9_973) // self.lengths[number]
        return time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(second)) + f"#{at:06}"

    def item(self, number: int, at: int) -> dict[str, Any]:
        entry = self._first[number] + at
        item = {
            "pk": {"S": self.key(number)},
            "sk": {"S": self.sort(number, at)},
            "data": {"S": "x" * self._sizes[entry]},
        }
        if self._has[number] != self._odd[entry]:
            item["mail"] = {"S": "a@b.c"}
        return item

    @cached_property
    def true(self) -> dict[str, float]:
        """Return the true value of each statistic."""
        lengths, sizes = sorted(self.lengths), []
        mails = 0
        for number, length in enumerate(self.lengths):
            for at in range(length):
                entry = self._first[number] + at
                mail = self._has[number] != self._odd[entry]
                mails += mail
                sizes.append(self._sizes[entry] + OVERHEAD + (9 if mail else 0))
        keys, items, sizes = len(lengths), self.items, sorted(sizes)
        ranked = math.fsum(rank * length for rank, length in enumerate(lengths, 1))
        tagged = sum(self.lengths[number] for number in range(0, keys, 4))
        return {
            "keys": float(keys),
            "items per key, mean": items / keys,
            "Gini": 2 * ranked / (keys * items) - (keys + 1) / keys,
            "item size, mean": math.fsum(sizes) / items,
            "share with an attribute": mails / items,
            "share with a tag": tagged / items,
            **{f"items per key, p{100 * p:g}": float(lengths[int(keys * p)]) for p in LEVELS},
            **{f"item size, p{100 * p:g}": float(sizes[int(items * p)]) for p in LEVELS},
        }

    def share_above(self, items: float) -> float:
        """Return the share of items in collections with more than so many items."""
        return sum(length for length in self.lengths if length > items) / self.items

    # The service

    def call(self, operation: str, **request: Any) -> dict[str, Any]:
        """Answer a request of keyhop.dynamodb.client.DynamoDB."""
        if operation == "describe_table":
            return {"Table": self._description()}
        if operation == "describe_time_to_live":
            return {"TimeToLiveDescription": {"TimeToLiveStatus": "DISABLED"}}
        walk = self._scanned(request) if operation == "scan" else self._queried(request)
        items: list[dict[str, Any]] = []
        size, last = 0, None
        for number, at in walk:
            if len(items) == request["Limit"] or size > 1 << 20:
                last = items[-1]
                break
            items.append(self.item(number, at))
            entry = self._first[number] + at
            size += self._sizes[entry] + OVERHEAD
        answer: dict[str, Any] = {"Items": items, "Count": len(items)}
        if last is not None:
            answer["LastEvaluatedKey"] = {name: last[name] for name in ("pk", "sk")}
        units = 0.5 * max(1, -(-size // 4096))
        return {**answer, "ConsumedCapacity": {"CapacityUnits": units}}

    def _scanned(self, request: Mapping[str, Any]) -> Iterator[tuple[int, int]]:
        segment, segments = request.get("Segment", 0), request.get("TotalSegments", 1)
        first = bisect_left(self._hashes, segment / segments)
        end = bisect_left(self._hashes, (segment + 1) / segments)
        at = 0
        if (start := request.get("ExclusiveStartKey")) is not None:
            number = int(start["pk"]["S"].partition("#")[2])
            if not first <= number < end:
                error = {"Code": "ValidationException", "Message": "not in the segment"}
                raise ClientError({"Error": error}, "Scan")  # type: ignore[typeddict-item]
            first, at = number, self._at(number, start["sk"]["S"], after=True)
        for number in range(first, end):
            yield from ((number, place) for place in range(at, self.lengths[number]))
            at = 0

    def _queried(self, request: Mapping[str, Any]) -> Iterator[tuple[int, int]]:
        values = request["ExpressionAttributeValues"]
        number = int(values[":0"]["S"].partition("#")[2])
        first, end = 0, self.lengths[number]
        condition = request["KeyConditionExpression"]
        if ":s" in values:
            bound, is_equal = values[":s"]["S"], "=" in condition.partition("#s")[2]
            if ">" in condition:
                first = self._at(number, bound, after=not is_equal)
            else:
                end = self._at(number, bound, after=is_equal)
        places = range(first, end)
        if request.get("ScanIndexForward", True) is False:
            places = places[::-1]
        return ((number, at) for at in places)

    def _at(self, number: int, bound: str, after: bool) -> int:
        """Return the place of the first item at a sort key, or after it."""
        find = bisect_right if after else bisect_left
        return find(range(self.lengths[number]), bound, key=lambda at: self.sort(number, at))

    def _description(self) -> dict[str, Any]:
        return {
            "TableName": "Clustered",
            "TableArn": "arn:aws:dynamodb:us-east-1:111122223333:table/Clustered",
            "TableId": "1",
            "TableStatus": "ACTIVE",
            "CreationDateTime": 1_700_000_000.0,
            "KeySchema": [
                {"AttributeName": "pk", "KeyType": "HASH"},
                {"AttributeName": "sk", "KeyType": "RANGE"},
            ],
            "AttributeDefinitions": [
                {"AttributeName": name, "AttributeType": "S"} for name in ("pk", "sk")
            ],
            "ItemCount": round(self.items / self.grown),
            "TableSizeBytes": round(self.bytes / self.grown),
        }


def sampled(table: ClusteredTable, seed: str, units: float) -> SampleFacts:
    """Return the facts of one sample."""
    connection = Connection(table)
    request = ReportInput(table="Clustered", max_read_units=units, confirm=0).request(str, {})
    request = replace(request, threads=1, options={**request.options, "seed": seed})
    return sample(connection, look_up(connection, "Clustered"), request)
