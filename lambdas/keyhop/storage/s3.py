"""The files of a run in an S3 bucket: `store.Store` by conditional puts.

`create` is a PutObject with `If-None-Match: *`, and `swap` is one with `If-Match`. S3 lets one of
several writers succeed, and shows no incomplete object. If the answer to a writer is lost, its
retry may find that the object exists. Then the writer reads its own object, as it would read that
of another writer.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from tempfile import SpooledTemporaryFile
from typing import Any

import boto3
from boto3.exceptions import Boto3Error
from boto3.s3.transfer import TransferConfig
from botocore.config import Config
from botocore.exceptions import BotoCoreError, ClientError

from keyhop.denied import Denied, clock_text
from keyhop.errors import AwsRefused, CannotStart, KeyhopError, NotPermitted, StoreUnavailable
from keyhop.retries import repeat
from keyhop.storage.store import CHUNK_BYTES, Version

PIECE_BYTES = 8 << 20
"""The size of the pieces of a larger part; S3 accepts 10,000 pieces of at least 5 MB."""

_TRANSFER = TransferConfig(
    multipart_threshold=PIECE_BYTES, multipart_chunksize=PIECE_BYTES, max_concurrency=2
)

CONFLICT_ATTEMPTS = 8
_TAKEN = "PreconditionFailed"
_CONFLICT = "ConditionalRequestConflict"
_MISSING = {"NoSuchKey", "404"}


def s3_client() -> Any:
    """Make a client of S3. The environment may name its endpoint."""
    return boto3.client(
        "s3",
        config=Config(
            retries={"mode": "standard", "total_max_attempts": 8},
            max_pool_connections=32,
            connect_timeout=5,
            read_timeout=60,
            # A private endpoint seldom has a host name for each bucket.
            s3={"addressing_style": "auto"},
        ),
    )


class Bucket:
    """The store under a prefix of a bucket, for any number of threads."""

    def __init__(self, client: Any, bucket: str, prefix: str) -> None:
        self._client = client
        self.bucket = bucket
        self.prefix = prefix

    def within(self, folder: str) -> "Bucket":
        return Bucket(self._client, self.bucket, f"{self.prefix}{folder}/")

    def url(self, name: str) -> str:
        return f"s3://{self.bucket}/{self.prefix}{name}"

    def create(self, name: str, content: bytes) -> bool:
        return self._put_if(name, content, IfNoneMatch="*")

    def replace(self, name: str, content: bytes) -> None:
        with self._explained():
            self._client.put_object(**self._at(name), Body=content)

    def read(self, name: str) -> bytes | None:
        version = self.look(name)
        return None if version is None else version.content

    def chunks(self, name: str) -> Iterator[bytes]:
        with self._explained():
            answer = self._get(name)
            if answer is not None:
                yield from answer["Body"].iter_chunks(CHUNK_BYTES)

    def span(self, name: str, start: int, size: int) -> bytes | None:
        with self._explained():
            answer = self._get(name, Range=f"bytes={start}-{start + size - 1}")
            return None if answer is None else b"".join(answer["Body"].iter_chunks(CHUNK_BYTES))

    def open_part(self, name: str) -> "_Upload":
        return _Upload(self, name)

    def upload(self, name: str, content: Any) -> None:
        """Write a file with the content of an open file."""
        at = self._at(name)
        with self._explained():
            self._client.upload_fileobj(content, at["Bucket"], at["Key"], Config=_TRANSFER)

    def sizes(self, folder: str) -> dict[str, int]:
        pages = self._client.get_paginator("list_objects_v2").paginate(
            Bucket=self.bucket, Prefix=f"{self.prefix}{folder}/"
        )
        with self._explained():
            return {
                entry["Key"].removeprefix(self.prefix): int(entry["Size"])
                for page in pages
                for entry in page.get("Contents", ())
            }

    def delete(self, name: str) -> None:
        with self._explained():
            self._client.delete_object(**self._at(name))

    def look(self, name: str) -> Version | None:
        with self._explained():
            answer = self._get(name)
            if answer is None:
                return None
            content = b"".join(answer["Body"].iter_chunks(CHUNK_BYTES))
        date = answer["ResponseMetadata"]["HTTPHeaders"].get("date")
        now = parsedate_to_datetime(date) if date else datetime.now(UTC)
        age = (now - answer["LastModified"]).total_seconds()
        return Version(content, answer["ETag"], max(0.0, age))

    def swap(self, name: str, content: bytes, tag: str | None) -> bool:
        return (
            self.create(name, content) if tag is None else self._put_if(name, content, IfMatch=tag)
        )

    def _put_if(self, name: str, content: bytes, **condition: str) -> bool:
        with self._explained():
            try:
                repeat(
                    lambda: self._client.put_object(**self._at(name), Body=content, **condition),
                    lambda error: _code(error) == _CONFLICT,
                    longest=2.0,
                    is_enough=lambda error, attempts: attempts >= CONFLICT_ATTEMPTS,
                )
            except ClientError as error:
                if _code(error) != _TAKEN and _code(error) not in _MISSING:
                    raise
                return False
        return True

    def _get(self, name: str, **more: str) -> Any:
        try:
            return self._client.get_object(**self._at(name), **more)
        except ClientError as error:
            if _code(error) not in _MISSING:
                raise
            return None

    def _at(self, name: str) -> dict[str, str]:
        return {"Bucket": self.bucket, "Key": self.prefix + name}

    @contextmanager
    def _explained(self) -> Iterator[None]:
        try:
            yield
        except (BotoCoreError, ClientError, Boto3Error) as error:
            raise self._error(error) from error

    def _error(self, error: Exception) -> KeyhopError:
        code = _code(error)
        if isinstance(error, ClientError) and (clock_error := clock_text(error.response)):
            return AwsRefused(clock_error)
        if code in ("AccessDenied", "403"):
            return NotPermitted(
                f"Permission is missing for the results, s3://{self.bucket}/{self.prefix}: "
                f"{Denied.read(str(error)) or error}"
            )
        if code == "NoSuchBucket":
            return CannotStart(f"There is no bucket {self.bucket}: deploy the application again.")
        status = 500
        if isinstance(error, ClientError):
            status = error.response.get("ResponseMetadata", {}).get("HTTPStatusCode", 500)
        if status >= 500 or code in ("SlowDown", "RequestTimeout", _CONFLICT):
            return StoreUnavailable(f"S3 refuses to write or read the run's files: {error}")
        return AwsRefused(f"S3 refused: {error}")


class _Upload:
    """A part that is collected in a temporary file, and then uploaded by s3transfer."""

    def __init__(self, bucket: Bucket, name: str) -> None:
        self._bucket = bucket
        self._name = name
        self._aside = SpooledTemporaryFile(max_size=PIECE_BYTES)  # noqa: SIM115

    def write(self, content: bytes) -> None:
        self._aside.write(content)

    def close(self) -> None:
        self._aside.seek(0)
        with self._aside:
            self._bucket.upload(self._name, self._aside)


def _code(error: BaseException) -> str:
    response = error.response if isinstance(error, ClientError) else {}
    return str(response.get("Error", {}).get("Code", ""))
