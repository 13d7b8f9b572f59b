"""Checks of new features of DynamoDB: vector indexes, and bulk puts from S3.

Their cost is not in the estimate of the suite, because their prices are not known here. They write
four small items.
"""

import json
import time
from collections.abc import Callable
from typing import Any

import boto3
from botocore.exceptions import ClientError
from keyhop.dynamodb.refusals import error_code
from keyhop.dynamodb.tables import NOT_NOW
from keyhop.dynamodb.units import MOST_INDEXES

from tests.live.fixtures import Fixture
from tests.live.report import Report, expect, expect_equal
from tests.live.streams import Followed
from tests.live.workshop import index

INDEX = "keyhop-live-vectors"
VECTORS = {
    "IndexName": INDEX,
    "VectorAttribute": {"AttributeName": "embedding"},
    "Projection": {"ProjectionType": "KEYS_ONLY"},
    "Dimensions": 3,
    "DistanceFunction": "COSINE",
}
PREFIX = "keyhop-live-bulk-put/"
ITEMS = [{"pk": {"S": f"bulk {n}"}, "sk": {"S": "a"}, "n": {"N": str(n)}} for n in range(3)]
WAIT_SECONDS = 3_600.0
POLL_SECONDS = 5.0
ENDED = {"COMPLETED", "COMPLETED_WITH_ERRORS", "CANCELLED", "FAILED"}


def check_newer(
    client: Any, streams: Any, table: Fixture, full: Fixture, bucket: str, report: Report
) -> None:
    """Make the checks. Leave `table`, which has a stream, as it was; add indexes to `full`."""
    report.check("bulk-put-records", lambda: bulk_put(client, streams, table, bucket), table.name)
    report.check("vector-index", lambda: vector_index(client, table), table.name)
    report.check("vector-index-beside", lambda: vector_index_beside(client, full), full.name)


def bulk_put(client: Any, streams: Any, table: Fixture, bucket: str) -> str:
    """Put three items from S3, and wait for their records."""
    s3 = boto3.client("s3")
    followed = Followed(client, streams, table)
    lines = "".join(json.dumps({"Item": item}) + "\n" for item in ITEMS)
    s3.put_object(Bucket=bucket, Key=f"{PREFIX}in/items.json", Body=lines.encode())
    try:
        started = client.start_bulk_put_items(
            TableName=table.name,
            InputS3Configuration={
                "S3Bucket": bucket,
                "S3KeyPrefix": f"{PREFIX}in/",
                "InputFormat": "DYNAMODB_JSON",
            },
            OutputS3Configuration={
                "S3Bucket": bucket,
                "S3KeyPrefix": f"{PREFIX}out/",
                "OutputType": ["ERROR"],
            },
        )
        arn = started["BulkOperationDescription"]["BulkOperationArn"]
        keys: set[str] = set()

        def status() -> str:
            response = client.describe_bulk_operation(BulkOperationArn=arn)
            return str(response["BulkOperationDescription"]["BulkOperationStatus"])

        def has_all_records() -> bool:
            keys.update(image["pk"]["S"] for _, image in followed.records())
            followed.find_shards("TRIM_HORIZON")
            return keys >= {item["pk"]["S"] for item in ITEMS}

        def has_ended() -> bool:
            has_all_records()  # during the bulk put, because an iterator expires after 15 minutes
            return status() in ENDED

        _wait(has_ended, "the bulk put has not ended")
        expect_equal(status(), "COMPLETED", "the bulk put's status")
        _wait(has_all_records, "records of the bulk put have not come", 300.0)
    finally:
        for item in ITEMS:
            key = {name: item[name] for name in ("pk", "sk")}
            client.delete_item(TableName=table.name, Key=key)
        for entry in s3.list_objects_v2(Bucket=bucket, Prefix=PREFIX).get("Contents", ()):
            s3.delete_object(Bucket=bucket, Key=entry["Key"])
    return f"{len(keys)} records"


def vector_index(client: Any, table: Fixture) -> None:
    """Add a vector index, put an item without a vector, and remove the index."""
    key = {"pk": {"S": "vectors"}, "sk": {"S": "!keyhop"}}

    def describe() -> dict[str, Any]:
        indexes = client.describe_table(TableName=table.name)["Table"].get("VectorIndexes", ())
        return next((dict(row) for row in indexes if row["IndexName"] == INDEX), {})

    client.update_table(TableName=table.name, VectorIndexUpdates=[{"Create": VECTORS}])
    try:
        _wait(
            lambda: describe().get("IndexStatus") == "ACTIVE" and not describe().get("Backfilling"),
            "the vector index is not ready",
        )
        client.put_item(TableName=table.name, Item={**key, "keyhop": {"N": "1"}})
        client.delete_item(TableName=table.name, Key=key)
    finally:
        client.update_table(
            TableName=table.name, VectorIndexUpdates=[{"Delete": {"IndexName": INDEX}}]
        )
        _wait(lambda: not describe(), "the vector index is still there")


def vector_index_beside(client: Any, full: Fixture) -> str:
    """Add the last index that a table may have, and a vector index as soon as that is accepted.
    The deletion of the table removes both.
    """
    client.update_table(
        TableName=full.name,
        AttributeDefinitions=[{"AttributeName": "sk", "AttributeType": "S"}],
        GlobalSecondaryIndexUpdates=[{"Create": index("the-last", "sk")}],
    )

    def is_accepted() -> bool:
        try:
            client.update_table(TableName=full.name, VectorIndexUpdates=[{"Create": VECTORS}])
        except ClientError as error:
            if error_code(error) not in NOT_NOW:
                raise
            return False
        return True

    def active(kind: str) -> int:
        rows = client.describe_table(TableName=full.name)["Table"].get(kind, ())
        return sum(row["IndexStatus"] == "ACTIVE" and not row.get("Backfilling") for row in rows)

    _wait(is_accepted, "the vector index is not accepted")
    when = "after" if active("GlobalSecondaryIndexes") == MOST_INDEXES else "before"
    _wait(lambda: active("VectorIndexes") == 1, "the vector index is not ready")
    _wait(lambda: active("GlobalSecondaryIndexes") == MOST_INDEXES, "the last index is not ready")
    return f"it was accepted {when} the last of {MOST_INDEXES} indexes was ready"


def _wait(condition: Callable[[], bool], failure: str, seconds: float = WAIT_SECONDS) -> None:
    deadline = time.monotonic() + seconds
    while not condition():
        expect(time.monotonic() < deadline, f"{failure} after {seconds:.0f} s")
        time.sleep(POLL_SECONDS)
