"""What DynamoDB has learnt of late: vector indexes, and bulk puts from S3.

What these checks cost is not in the estimate of the suite: their prices are not known here. They
write four small items.
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
    """Leave a table with pk and sk, both S, and a stream, as it was. full: gets indexes."""
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
        seen: set[str] = set()

        def status() -> str:
            told = client.describe_bulk_operation(BulkOperationArn=arn)
            return str(told["BulkOperationDescription"]["BulkOperationStatus"])

        def all_have_come() -> bool:
            seen.update(image["pk"]["S"] for _, image in followed.records())
            followed.find_shards("TRIM_HORIZON")
            return seen >= {item["pk"]["S"] for item in ITEMS}

        def has_ended() -> bool:
            all_have_come()  # while the bulk put runs, because an iterator expires after 15 minutes
            return status() in ENDED

        _wait(has_ended, "the bulk put has not ended")
        expect_equal(status(), "COMPLETED", "the bulk put's status")

        _wait(all_have_come, "records of the bulk put have not come", 300.0)
    finally:
        for item in ITEMS:
            key = {name: item[name] for name in ("pk", "sk")}
            client.delete_item(TableName=table.name, Key=key)
        listed = s3.list_objects_v2(Bucket=bucket, Prefix=PREFIX).get("Contents", ())
        for one in listed:
            s3.delete_object(Bucket=bucket, Key=one["Key"])
    return f"{len(seen)} records"


def vector_index(client: Any, table: Fixture) -> None:
    """Add a vector index, put an item without a vector, and take the index away again."""
    key = {"pk": {"S": "vectors"}, "sk": {"S": "!keyhop"}}

    def found() -> dict[str, Any]:
        told = client.describe_table(TableName=table.name)["Table"]
        indexes = {one["IndexName"]: one for one in told.get("VectorIndexes", ())}
        return dict(indexes.get(INDEX, {}))

    client.update_table(TableName=table.name, VectorIndexUpdates=[{"Create": VECTORS}])
    try:
        _wait(
            lambda: found().get("IndexStatus") == "ACTIVE" and not found().get("Backfilling"),
            "the vector index is not ready",
        )
        client.put_item(TableName=table.name, Item={**key, "keyhop": {"N": "1"}})
        client.delete_item(TableName=table.name, Key=key)
    finally:
        client.update_table(
            TableName=table.name, VectorIndexUpdates=[{"Delete": {"IndexName": INDEX}}]
        )
        _wait(lambda: not found(), "the vector index is still there")


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
        told = client.describe_table(TableName=full.name)["Table"].get(kind, ())
        return sum(one["IndexStatus"] == "ACTIVE" and not one.get("Backfilling") for one in told)

    _wait(is_accepted, "the vector index is not accepted")
    when = "after" if active("GlobalSecondaryIndexes") == MOST_INDEXES else "before"
    _wait(lambda: active("VectorIndexes") == 1, "the vector index is not ready")
    _wait(lambda: active("GlobalSecondaryIndexes") == MOST_INDEXES, "the last index is not ready")
    return f"it was accepted {when} the last of {MOST_INDEXES} indexes was ready"


def _wait(is_so: Callable[[], bool], otherwise: str, seconds: float = WAIT_SECONDS) -> None:
    deadline = time.monotonic() + seconds
    while not is_so():
        expect(time.monotonic() < deadline, f"{otherwise} after {seconds:.0f} s")
        time.sleep(POLL_SECONDS)
