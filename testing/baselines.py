"""The baselines for Keyhop: the published skip-scan, and a parallel full scan.

Both use boto3's client with its defaults. The published skip-scan is that of AWS's samples: it uses
Limit=1, and an ExclusiveStartKey of the last key and the greatest sort key.
"""

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any

from keyhop.dynamodb.schema import KeySpace, keyspace_of


@dataclass(slots=True)
class Reading:
    """The result and the cost of reading a table."""

    keys: int = 0
    requests: int = 0
    units: float = 0.0
    segments: int = 1

    def add(self, segment: "Reading") -> None:
        """Add the reading of a segment."""
        self.keys += segment.keys
        self.requests += segment.requests
        self.units += segment.units


def published(client: Any, table: str, segments: int = 1) -> Reading:
    """List keys with one item per request: serially, as published, or in parallel segments."""
    return _in_segments(client, table, segments, _hop_through)


def full_scan(client: Any, table: str, segments: int = 1) -> Reading:
    """Read everything in pages of 1 MB, in parallel segments."""
    return _in_segments(client, table, segments, _scan_through)


def _in_segments(
    client: Any,
    table: str,
    segments: int,
    read: Callable[[Any, dict[str, Any], KeySpace], Reading],
) -> Reading:
    space = keyspace_of(client.describe_table(TableName=table)["Table"])
    total = Reading()

    def read_segment(segment: int) -> Reading:
        where = {"Segment": segment, "TotalSegments": segments} if segments > 1 else {}
        return read(client, {"TableName": table, **where}, space)

    if segments == 1:
        return read_segment(0)
    with ThreadPoolExecutor(8) as pool:
        for reading in pool.map(read_segment, range(segments)):
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
