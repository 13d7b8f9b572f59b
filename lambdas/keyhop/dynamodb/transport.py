"""Requests on the wire: JSON, a signature and a socket, without boto3's machinery.

boto3's client validates, serialises, resolves, emits events and parses by shape; for the requests
that Keyhop sends in great number that is most of the CPU (bench/). Here the JSON is made and read
directly, and sent over connections of our own. Credentials and their renewal, the endpoint and the
trusted certificates are botocore's, as it is configured. Where a proxy or an address with a path is
configured, boto3's client is used. Errors are botocore's.

boto3's client takes as long to make as Python takes to begin, so it is made when it is needed: for
an error, or for a request that is sent but now and then.
"""

import base64
import json
import os
import re
import time
from collections.abc import Callable, Mapping
from datetime import UTC, datetime
from threading import Lock
from typing import Any
from urllib.parse import urlsplit

from botocore.exceptions import ClientError, HTTPClientError
from botocore.httpsession import get_cert_path
from botocore.utils import get_environ_proxies

from keyhop import __version__
from keyhop.dynamodb.connections import Answer, Connections
from keyhop.dynamodb.signing import Signer
from keyhop.dynamodb.throttling import is_throttling
from keyhop.dynamodb.values import from_json, with_bytes

USER_AGENT = f"keyhop/{__version__}"
VERSION = "DynamoDB_20120810"
ITEM_CALLS = {
    "scan": "Scan",
    "get_item": "GetItem",
    "batch_get_item": "BatchGetItem",
    "query": "Query",
    "put_item": "PutItem",
    "update_item": "UpdateItem",
    "delete_item": "DeleteItem",
    "batch_write_item": "BatchWriteItem",
    "transact_write_items": "TransactWriteItems",
}
"""What goes the short way, by boto3's name."""

SHORT_CALLS = {**ITEM_CALLS, "describe_table": "DescribeTable"}

_BYTES = re.compile(rb'"BS?"\s*:')
"""Only in an answer with this, JSON differs from what boto3 makes of it."""

_NESTED = {"BS", "L", "M"}
"""Types that may hold binary values."""


def _base64(value: Any) -> str:
    """Binary values as the service's JSON has them."""
    if isinstance(value, bytes | bytearray):
        return base64.b64encode(value).decode()
    raise TypeError(f"{type(value).__name__} is no part of a request")


_ENCODER = json.JSONEncoder(separators=(",", ":"), default=_base64)


class Client:
    """boto3's client, with requests about items on the short way; for many threads at once."""

    def __init__(self, region: str, make: Callable[[], Any]) -> None:
        """make: makes boto3's client."""
        self.region = region
        self._make = make
        self._lock = Lock()
        self._made: Any = None
        self._connections: Connections | None = None

    def send_by(self, connections: Connections | None, credentials: Any) -> None:
        """Send by these from now on; None for boto3's own way."""
        self._connections = connections
        self._credentials = credentials
        if connections is not None:
            self._signer = Signer(connections.host, self.region, USER_AGENT)

    def call(self, operation: str, **parameters: Any) -> dict[str, Any]:
        """One request, by boto3's name for it, and what boto3's client answers.

        A Scan's answer has no ResponseMetadata.
        """
        if operation not in SHORT_CALLS or self._connections is None:
            return dict(getattr(self._client, operation)(**parameters))
        name = SHORT_CALLS[operation]
        response = self._send(name, parameters)
        content = response.content
        try:
            answer = json.loads(content.decode())
            if operation == "scan":
                return _page(answer, content)
            if operation == "describe_table":
                answer = _with_times(answer)
            converted: dict[str, Any] = with_bytes(answer) if _BYTES.search(content) else answer
            converted["ResponseMetadata"] = _metadata(response)
        except (ValueError, LookupError, TypeError, AttributeError, OverflowError) as error:
            raise _not_whole(name) from error
        return converted

    @property
    def exceptions(self) -> Any:
        """The classes of the errors that are raised, by their codes, as boto3's client has them."""
        return self._client.exceptions

    @property
    def _client(self) -> Any:
        with self._lock:
            if self._made is None:
                self._made = self._make()
            return self._made

    def _send(self, operation: str, parameters: Mapping[str, Any]) -> Answer:
        assert self._connections is not None
        body = _ENCODER.encode(parameters).encode()
        credentials = self._credentials.get_frozen_credentials()
        head = self._signer.head(credentials, f"{VERSION}.{operation}", body, time.time())
        answer = self._connections.ask(head + body)
        if answer.status != 200:
            raise self._error(operation, answer)
        return answer

    def _error(self, operation: str, answer: Answer) -> ClientError:
        """The error that boto3's client would raise, with further fields (ThrottlingReasons)."""
        try:
            body = dict(json.loads(answer.content))
        except (ValueError, TypeError):
            body = {}
        code = str(body.pop("__type", answer.status)).rsplit("#", 1)[-1]
        message = body.pop("message", None) or body.pop("Message", None) or ""
        response = {
            **with_bytes(body),
            "Error": {"Code": code, "Message": message},
            "ResponseMetadata": _metadata(answer),
        }
        if self._made is None and is_throttling(response):
            # At once, because other threads would continue too fast.
            return ClientError(response, operation)
        error: ClientError = self.exceptions.from_code(code)(response, operation)
        return error


def connections_to(
    url: str, ca_bundle: str | None, connect_timeout: float, read_timeout: float
) -> Connections | None:
    """Connections to an endpoint; None if they need what botocore alone can do.

    ca_bundle: as botocore's session is configured. Times in seconds.
    """
    parts = urlsplit(url)
    is_plain = parts.path in ("", "/") and not parts.query and "@" not in parts.netloc
    if not is_plain or get_environ_proxies(url).get(parts.scheme):
        return None
    trusted = ca_bundle or os.environ.get("REQUESTS_CA_BUNDLE") or get_cert_path(True)
    return Connections(url, trusted, connect_timeout, read_timeout)


def _not_whole(operation: str) -> HTTPClientError:
    """Something on the way cut the answer short, or answered itself."""
    article = "a page of a" if operation == "Scan" else "that of a"
    return HTTPClientError(error=f"the answer is not {article} {operation}")


def _page(answer: dict[str, Any], content: bytes) -> dict[str, Any]:
    """A Scan's answer; raises LookupError and its kin."""
    items = answer["Items"]
    if _BYTES.search(content):
        answer["Items"] = [_decoded(item) for item in items]
        if "LastEvaluatedKey" in answer:
            answer["LastEvaluatedKey"] = from_json(answer["LastEvaluatedKey"])
    return answer


def _decoded(item: dict[str, Any]) -> Mapping[str, Any]:
    """Only binary values differ between JSON and what boto3 makes of it."""
    types = {type_ for value in item.values() for type_ in value}
    if types & _NESTED:
        return dict(with_bytes(item))
    return from_json(item) if "B" in types else item


def _with_times(content: Any) -> Any:
    """Replace seconds by datetimes in the fields that contain times."""
    if isinstance(content, list):
        return [_with_times(member) for member in content]
    if not isinstance(content, dict):
        return content
    return {
        name: datetime.fromtimestamp(value, UTC)
        if name.endswith("DateTime") and isinstance(value, int | float)
        else _with_times(value)
        for name, value in content.items()
    }


def _metadata(answer: Answer) -> dict[str, Any]:
    headers = answer.headers()
    return {
        "RequestId": headers.get("x-amzn-requestid", ""),
        "HTTPStatusCode": answer.status,
        "HTTPHeaders": headers,
        "RetryAttempts": 0,
    }
