"""boto3 clients and resources whose requests are answered in this process, without a network.

Everything of boto3 runs, with its events and its retries. Only the HTTP session is replaced, which
is the last step before the socket.
"""

import json
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import boto3
from botocore.awsrequest import AWSPreparedRequest, AWSResponse
from botocore.config import Config
from moto.core.botocore_stubber import MockRawResponse

from testing.servers import LOCAL_CREDENTIALS

Answer = Callable[[str, dict[str, Any]], dict[str, Any]]
URL = "http://dynamodb.in-process"


class Refused(Exception):
    """An error response of the service, with its HTTP status and its error code."""

    def __init__(self, status: int, code: str) -> None:
        super().__init__(code)
        self.status, self.code = status, code


@dataclass
class Wire:
    """The place of the network: `answer` gets each request that is sent.

    Attributes:
        answer: returns the response to an operation and its parameters, or raises Refused.
        sent: the operation and the parameters of each request, in the order of their sending.
    """

    answer: Answer = lambda operation, parameters: {}
    sent: list[tuple[str, dict[str, Any]]] = field(default_factory=list)

    def client(self, service: str = "dynamodb", **config: Any) -> Any:
        client = boto3.client(
            service, endpoint_url=URL, config=Config(**config), **LOCAL_CREDENTIALS
        )
        return self._connected(client)

    def resource(self, **config: Any) -> Any:
        resource = boto3.resource(
            "dynamodb", endpoint_url=URL, config=Config(**config), **LOCAL_CREDENTIALS
        )
        self._connected(resource.meta.client)
        return resource

    def send(self, request: AWSPreparedRequest) -> AWSResponse:
        operation = _text(request.headers["X-Amz-Target"]).rpartition(".")[2]
        parameters = json.loads(_text(request.body))
        self.sent.append((operation, parameters))
        try:
            status, body = 200, self.answer(operation, parameters)
        except Refused as error:
            status, body = error.status, {"__type": error.code}
        raw = MockRawResponse(json.dumps(body).encode())
        return AWSResponse(request.url, status, {}, raw)

    def tables(self) -> list[str]:
        """Return the table of each request that names one, in the order of their sending."""
        return [request["TableName"] for _, request in self.sent if "TableName" in request]

    def _connected(self, client: Any) -> Any:
        client._endpoint.http_session = self
        return client


def _text(value: str | bytes) -> str:
    return value.decode() if isinstance(value, bytes) else value
