"""What Keyhop is compared with: the published skip-scan, and a parallel full scan.

Both use boto3's client as it comes. The published way is the one of AWS's samples: Limit=1, then an
ExclusiveStartKey of the key found and the greatest sort key.
"""

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any

from keyhop.dynamodb.schema import KeySpace, keyspace_of


@dataclass(slots=True)
class Reading:
    """What a way of reading came to."""

    keys: int = 0
    requests: int = 0
    units: float = 0.0
    segments: int = 1

    def add(self, other: "Reading") -> None:
        """Add another segment's."""
        self.keys += other.keys
        self.requests += other.requests
        self.units += other.units


def published(client: Any, table: str, segments: int = 1) -> Reading:
    """One item a request. It is serial as published; with `segments`, that many at once."""
    return _in_segments(client, table, segments, _hop_through)


def full_scan(client: Any, table: str, segments: int = 1) -> Reading:
    """Everything, in pages of 1 MB, `segments` at once."""
    return _in_segments(client, table, segments, _scan_through)


def _in_segments(
    client: Any,
    table: str,
    segments: int,
    read: Callable[[Any, dict[str, Any], KeySpace], Reading],
) -> Reading:
    space = keyspace_of(client.describe_table(TableName=table)["Table"])
    total = Reading()

    def one(segment: int) -> Reading:
        where = {"Segment": segment, "TotalSegments": segments} if segments > 1 else {}
        return read(client, {"TableName": table, **where}, space)

    if segments == 1:
        return one(0)
    with ThreadPoolExecutor(8) as pool:
        for reading in pool.map(one, range(segments)):
            total.add(reading)
    return total


def _hop_through(client: Any, where: dict[str, Any], space: KeySpace) -> Reading:
    reading = Reading()
    start: dict[str, Any] = {}
    while True:
        page = client.scan(**where, **start, Limit=1, ReturnConsumedCapacity="TOTAL")
        reading.requests += 1
        reading.units += page["ConsumedCapacity"]["CapacityUnits"]
        if not page["Items"]:
            return reading
        reading.keys += 1
        partition = space.partition_of(page["Items"][0])
        start = {"ExclusiveStartKey": space.hop_from(partition)}


def _scan_through(client: Any, where: dict[str, Any], space: KeySpace) -> Reading:
    reading = Reading()
    start: dict[str, Any] = {}
    last = None
    while True:
        page = client.scan(
            **where,
            **start,
            ProjectionExpression="#p",
            ExpressionAttributeNames={"#p": space.names[0]},
            ReturnConsumedCapacity="TOTAL",
        )
        reading.requests += 1
        reading.units += page["ConsumedCapacity"]["CapacityUnits"]
        for item in page["Items"]:
            reading.keys += item != last
            last = item
        if "LastEvaluatedKey" not in page:
            return reading
        start = {"ExclusiveStartKey": page["LastEvaluatedKey"]}
