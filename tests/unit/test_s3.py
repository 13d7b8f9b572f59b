"""The S3 of the tests answers as moto's does, call by call."""

from collections.abc import Iterator
from io import BytesIO
from typing import Any

import pytest
from botocore.exceptions import ClientError
from keyhop.storage.s3 import s3_client
from moto import mock_aws

from testing.s3 import MemoryS3

IN = {"Bucket": "results"}
AT = {**IN, "Key": "runs/a/x"}
NOWHERE = {"Bucket": "nobodys", "Key": "x"}
CALLS: list[tuple[str, dict[str, Any]]] = [
    ("list_objects_v2", IN),
    ("get_object", AT),
    ("delete_object", AT),
    ("put_object", {**AT, "Body": b"never", "IfMatch": '"another"'}),
    ("put_object", {**AT, "Body": b"the first", "IfNoneMatch": "*"}),
    ("put_object", {**AT, "Body": b"never", "IfNoneMatch": "*"}),
    ("get_object", AT),
    ("put_object", {**AT, "Body": b"never", "IfMatch": '"another"'}),
    ("put_object", {**AT, "Body": b"2", "IfMatch": '"7e79441b624883ef4f3216c5b1ef2e3a"'}),
    ("put_object", {**AT, "Body": b"0123456789"}),
    ("put_object", {**AT, "Body": b"0123456789", "IfMatch": '"781e5e245d69b566979b86e28d23f2c7"'}),
    *(("get_object", {**AT, "Range": f"bytes={r}"}) for r in ("0-3", "2-2", "4-99", "10-12")),
    *(("put_object", {**IN, "Key": key}) for key in ("runs/a/é", "runs/a/y", "runs/b", "runs/a0")),
    ("list_objects_v2", {**IN, "Prefix": "runs/a/"}),
    ("list_objects_v2", {**IN, "Prefix": "nothing/"}),
    ("list_objects_v2", {**IN, "Prefix": "runs/", "MaxKeys": 2}),
    ("delete_object", AT),
    ("list_objects_v2", IN),
    ("delete_bucket", IN),
    ("get_object", NOWHERE),
    ("put_object", NOWHERE),
    ("delete_object", NOWHERE),
    ("list_objects_v2", {"Bucket": "nobodys"}),
    ("delete_bucket", {"Bucket": "nobodys"}),
]


@pytest.fixture
def both(monkeypatch: pytest.MonkeyPatch) -> Iterator[tuple[Any, Any]]:
    monkeypatch.setenv("AWS_DEFAULT_REGION", "us-east-1")
    with mock_aws():
        moto = s3_client()
        moto.create_bucket(**IN)
        yield moto, MemoryS3("results")


def told(client: Any, operation: str, asked: dict[str, Any]) -> Any:
    """What is the same of an answer whenever it is given."""
    try:
        answer = dict(getattr(client, operation)(**asked))
    except ClientError as error:
        status = error.response["ResponseMetadata"]["HTTPStatusCode"]
        return error.operation_name, error.response["Error"]["Code"], status
    same = ("ETag", "ContentLength", "ContentRange", "KeyCount", "IsTruncated", "Prefix")
    found = {name: answer[name] for name in same if name in answer}
    found["status"] = answer["ResponseMetadata"]["HTTPStatusCode"]
    if "Body" in answer:
        found["body"] = b"".join(answer["Body"].iter_chunks(3))
        found["changed"] = answer["LastModified"].tzinfo is not None
    if "Contents" in answer:
        found["contents"] = [
            {name: entry[name] for name in ("Key", "Size", "ETag")} for entry in answer["Contents"]
        ]
    return found


def test_each_call_is_answered_alike(both: tuple[Any, Any]) -> None:
    moto, memory = both
    for operation, asked in CALLS:
        assert told(memory, operation, asked) == told(moto, operation, asked), (operation, asked)


def test_pages_and_uploads_are_alike(both: tuple[Any, Any]) -> None:
    listed = []
    for client in both:
        for number in range(25):
            client.upload_fileobj(BytesIO(b"x" * number), "results", f"parts/{number}")
        pages = client.get_paginator("list_objects_v2").paginate(**IN, MaxKeys=10)
        listed.append([[(e["Key"], e["Size"]) for e in page["Contents"]] for page in pages])
    assert listed[0] == listed[1]
    assert len(listed[0]) == 3
