"""Requests on the wire: botocore's signing and HTTP, without the rest of its machinery.

boto3's client validates, serialises, resolves, emits events and parses by shape; for the
requests that Keyhop sends in great number that is half of the CPU (bench/). Here the JSON is made
and read directly. Signing, credentials and their renewal, connections, TLS, proxies and time-outs
remain botocore's, as the client is configured. Errors are botocore's own, so that nobody else can
tell.
"""

import base64
import json
from collections.abc import Mapping
from typing import Any

from botocore.auth import SigV4Auth
from botocore.awsrequest import AWSRequest
from botocore.credentials import Credentials
from botocore.exceptions import ClientError, HTTPClientError
from botocore.httpsession import URLLib3Session

from keyhop.dynamodb.values import from_json

VERSION = "DynamoDB_20120810"
ITEM_CALLS = {
    "get_item": "GetItem",
    "batch_get_item": "BatchGetItem",
    "query": "Query",
    "put_item": "PutItem",
    "update_item": "UpdateItem",
    "delete_item": "DeleteItem",
    "batch_write_item": "BatchWriteItem",
    "transact_write_items": "TransactWriteItems",
}
"""What can be sent besides Scan, by boto3's name."""


class Wire:
    """Sends requests about items; for any number of threads at once."""

    def __init__(
        self,
        http: URLLib3Session,
        credentials: Credentials,
        endpoint_url: str,
        region: str,
        user_agent: str,
    ) -> None:
        self._http = http
        self._credentials = credentials
        self._url = endpoint_url.rstrip("/") + "/"
        self._region = region
        self._headers = {
            "Content-Type": "application/x-amz-json-1.0",
            "User-Agent": user_agent,
        }

    def scan(self, **parameters: Any) -> dict[str, Any]:
        """As boto3's `client.scan`, for projections to S, N and B attributes."""
        page = self._send("Scan", parameters)
        try:
            page["Items"] = [_decoded(item) for item in page["Items"]]
            if "LastEvaluatedKey" in page:
                page["LastEvaluatedKey"] = from_json(page["LastEvaluatedKey"])
        except (ValueError, KeyError, TypeError, AttributeError) as error:
            raise _not_whole("Scan") from error
        return page

    def call(self, operation: str, **parameters: Any) -> dict[str, Any]:
        """As boto3's method of that name, which must be one of ITEM_CALLS."""
        answer: dict[str, Any] = _with_bytes(self._send(ITEM_CALLS[operation], parameters))
        return answer

    def _send(self, operation: str, parameters: Mapping[str, Any]) -> dict[str, Any]:
        """Raises ClientError, and HTTPClientError for an answer that is none."""
        body = json.dumps(parameters, default=_base64).encode()
        headers = {**self._headers, "X-Amz-Target": f"{VERSION}.{operation}"}
        request = AWSRequest("POST", self._url, headers=headers, data=body)
        credentials = self._credentials.get_frozen_credentials()
        SigV4Auth(credentials, "dynamodb", self._region).add_auth(request)
        response = self._http.send(request.prepare())
        if response.status_code != 200:
            raise _error(operation, response.status_code, response.content, response.headers)
        try:
            answer = json.loads(response.content)
        except ValueError as error:
            raise _not_whole(operation) from error
        if not isinstance(answer, dict):
            raise _not_whole(operation)
        return answer


def _not_whole(operation: str) -> HTTPClientError:
    """Not what the service sends: something on the way cut it short, or answered itself."""
    article = "a page of a" if operation == "Scan" else "that of a"
    return HTTPClientError(error=f"the answer is not {article} {operation}")


def _base64(value: Any) -> str:
    """Binary values as the service's JSON has them."""
    if isinstance(value, bytes | bytearray):
        return base64.b64encode(value).decode()
    raise TypeError(f"{type(value).__name__} is no part of a request")


def _with_bytes(value: Any) -> Any:
    """An answer with its binary values as bytes: {"B": text} is one, wherever it stands."""
    if isinstance(value, dict):
        if len(value) == 1 and isinstance(value.get("B"), str):
            return {"B": base64.b64decode(value["B"])}
        if len(value) == 1 and _is_texts(value.get("BS")):
            return {"BS": [base64.b64decode(text) for text in value["BS"]]}
        return {name: _with_bytes(content) for name, content in value.items()}
    if isinstance(value, list):
        return [_with_bytes(content) for content in value]
    return value


def _is_texts(value: Any) -> bool:
    return isinstance(value, list) and all(isinstance(text, str) for text in value)


def _decoded(item: dict[str, Any]) -> Mapping[str, Any]:
    """Only binary values differ between JSON and what boto3 makes of it."""
    for value in item.values():
        if "B" in value:
            return from_json(item)
    return item


def _error(operation: str, status: int, content: bytes, headers: Mapping[str, str]) -> ClientError:
    """The error that boto3's client would raise, further fields (ThrottlingReasons) included."""
    try:
        body = json.loads(content)
    except ValueError:
        body = {}
    if not isinstance(body, dict):
        body = {}
    code = str(body.pop("__type", status)).rsplit("#", 1)[-1]
    message = body.pop("message", None) or body.pop("Message", None) or ""
    response = {
        **_with_bytes(body),
        "Error": {"Code": code, "Message": message},
        "ResponseMetadata": {
            "HTTPStatusCode": status,
            "RequestId": headers.get("x-amzn-requestid", ""),
        },
    }
    return ClientError(response, operation)
