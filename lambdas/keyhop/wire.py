"""A Scan request on the wire: botocore's signing and HTTP, without the rest of its machinery.

boto3's client validates, serialises, resolves, emits events and parses by shape; for the one
request that Keyhop sends in great number that is half of the CPU (bench/). Here the JSON is made
and read directly. Signing, credentials and their renewal, connections, TLS, proxies and time-outs
remain botocore's, as the client is configured. Errors are botocore's own, so that nobody else can
tell.
"""

import json
from collections.abc import Mapping
from typing import Any

from botocore.auth import SigV4Auth
from botocore.awsrequest import AWSRequest
from botocore.credentials import Credentials
from botocore.exceptions import ClientError, HTTPClientError
from botocore.httpsession import URLLib3Session

from keyhop.keyspace import from_json, to_json

TARGET = "DynamoDB_20120810.Scan"


class ScanWire:
    """Sends Scan requests; for any number of threads at once."""

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
            "X-Amz-Target": TARGET,
        }

    def scan(self, **parameters: Any) -> dict[str, Any]:
        """As boto3's `client.scan`, for projections to S, N and B attributes."""
        if "ExclusiveStartKey" in parameters:
            parameters["ExclusiveStartKey"] = to_json(parameters["ExclusiveStartKey"])
        body = json.dumps(parameters).encode()
        request = AWSRequest("POST", self._url, headers=self._headers, data=body)
        credentials = self._credentials.get_frozen_credentials()
        SigV4Auth(credentials, "dynamodb", self._region).add_auth(request)
        response = self._http.send(request.prepare())
        if response.status_code != 200:
            raise _error(response.status_code, response.content, response.headers)
        try:
            page: dict[str, Any] = json.loads(response.content)
            page["Items"] = [_decoded(item) for item in page["Items"]]
            if "LastEvaluatedKey" in page:
                page["LastEvaluatedKey"] = from_json(page["LastEvaluatedKey"])
        except (ValueError, KeyError, TypeError, AttributeError) as error:
            # Not what the service sends: something on the way cut it short, or answered itself.
            raise HTTPClientError(error="the answer is not a page of a Scan") from error
        return page


def _decoded(item: dict[str, Any]) -> Mapping[str, Any]:
    """Only binary values differ between JSON and what boto3 makes of it."""
    for value in item.values():
        if "B" in value:
            return from_json(item)
    return item


def _error(status: int, content: bytes, headers: Mapping[str, str]) -> ClientError:
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
        **body,
        "Error": {"Code": code, "Message": message},
        "ResponseMetadata": {
            "HTTPStatusCode": status,
            "RequestId": headers.get("x-amzn-requestid", ""),
        },
    }
    return ClientError(response, "Scan")
