"""S3 in memory, without a network: the calls that runs make, with the answers of the service.

tests/unit/test_stores.py compares it with moto, and also uses moto to test the network's part:
events, checksums and multipart uploads.
"""

import hashlib
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime
from email.utils import format_datetime
from io import BytesIO
from threading import RLock
from typing import Any, BinaryIO, NoReturn

from botocore.exceptions import ClientError
from botocore.response import StreamingBody

PAGE_OBJECTS = 1_000

Answer = dict[str, Any]


@dataclass(frozen=True)
class Object:
    content: bytes
    tag: str
    changed: datetime


class MemoryS3:
    """A client of boto3 with its buckets, which several threads may share."""

    def __init__(self, *buckets: str) -> None:
        self._buckets: dict[str, dict[str, Object]] = {name: {} for name in buckets}
        self._lock = RLock()

    def create_bucket(self, *, Bucket: str) -> Answer:
        with self._lock:
            self._buckets[Bucket] = {}
        return _answer(200, Location=f"/{Bucket}")

    def delete_bucket(self, *, Bucket: str) -> Answer:
        with self._lock:
            if self._objects(Bucket, "DeleteBucket"):
                _fail("DeleteBucket", "BucketNotEmpty", 409)
            del self._buckets[Bucket]
        return _answer(204)

    def put_object(
        self,
        *,
        Bucket: str,
        Key: str,
        Body: bytes = b"",
        IfNoneMatch: str | None = None,
        IfMatch: str | None = None,
    ) -> Answer:
        assert IfNoneMatch in (None, "*"), "S3 takes no other"
        with self._lock:
            objects = self._objects(Bucket, "PutObject")
            old = objects.get(Key)
            if IfMatch is not None and old is None:
                _fail("PutObject", "NoSuchKey", 404)
            if old is not None and (
                IfNoneMatch or (IfMatch is not None and IfMatch.strip('"') != old.tag.strip('"'))
            ):
                _fail("PutObject", "PreconditionFailed", 412)
            tag = f'"{hashlib.md5(Body).hexdigest()}"'
            objects[Key] = Object(bytes(Body), tag, datetime.now(UTC).replace(microsecond=0))
        return _answer(200, ETag=tag)

    def upload_fileobj(self, Fileobj: BinaryIO, Bucket: str, Key: str, Config: Any = None) -> None:
        self.put_object(Bucket=Bucket, Key=Key, Body=Fileobj.read())

    def get_object(self, *, Bucket: str, Key: str, Range: str | None = None) -> Answer:
        """Return an object, or the part of it in a Range of the form `bytes=first-last`."""
        with self._lock:
            stored = self._objects(Bucket, "GetObject").get(Key)
        if stored is None:
            _fail("GetObject", "NoSuchKey", 404)
        content, status, more = stored.content, 200, {}
        if Range is not None:
            first, last = map(int, Range.removeprefix("bytes=").split("-"))
            if first >= len(content):
                _fail("GetObject", "InvalidRange", 416)
            last = min(last, len(content) - 1)
            more = {"ContentRange": f"bytes {first}-{last}/{len(content)}"}
            content, status = content[first : last + 1], 206
        return _answer(
            status,
            Body=StreamingBody(BytesIO(content), len(content)),
            ContentLength=len(content),
            ETag=stored.tag,
            LastModified=stored.changed,
            **more,
        )

    def delete_object(self, *, Bucket: str, Key: str) -> Answer:
        with self._lock:
            self._objects(Bucket, "DeleteObject").pop(Key, None)
        return _answer(204)

    def list_objects_v2(
        self,
        *,
        Bucket: str,
        Prefix: str = "",
        MaxKeys: int = PAGE_OBJECTS,
        ContinuationToken: str = "",
    ) -> Answer:
        with self._lock:
            objects = dict(self._objects(Bucket, "ListObjectsV2"))
        keys = sorted((key for key in objects if key.startswith(Prefix)), key=str.encode)
        keys = [key for key in keys if key > ContinuationToken]
        page = keys[: min(MaxKeys, PAGE_OBJECTS)]
        contents = [
            {
                "Key": key,
                "Size": len(objects[key].content),
                "ETag": objects[key].tag,
                "LastModified": objects[key].changed,
            }
            for key in page
        ]
        more = {"NextContinuationToken": page[-1]} if len(page) < len(keys) else {}
        return _answer(
            200,
            Name=Bucket,
            Prefix=Prefix,
            KeyCount=len(page),
            IsTruncated=bool(more),
            **more,
            **({"Contents": contents} if contents else {}),
        )

    def get_paginator(self, operation: str) -> "Paginator":
        assert operation == "list_objects_v2"
        return Paginator(self)

    def _objects(self, bucket: str, operation: str) -> dict[str, Object]:
        if bucket not in self._buckets:
            _fail(operation, "NoSuchBucket", 404)
        return self._buckets[bucket]


@dataclass(frozen=True)
class Paginator:
    s3: MemoryS3

    def paginate(self, **request: Any) -> Iterator[Answer]:
        """Yield all pages."""
        while True:
            page = self.s3.list_objects_v2(**request)
            yield page
            if not page["IsTruncated"]:
                return
            request["ContinuationToken"] = page["NextContinuationToken"]


def _answer(status: int, **fields: Any) -> Answer:
    headers = {"date": format_datetime(datetime.now(UTC), usegmt=True)}
    return {**fields, "ResponseMetadata": {"HTTPStatusCode": status, "HTTPHeaders": headers}}


def _fail(operation: str, code: str, status: int) -> NoReturn:
    error = {"Code": code, "Message": code}
    raise ClientError({"Error": error, "ResponseMetadata": {"HTTPStatusCode": status}}, operation)
