"""The one DynamoDB client of a process, and what its errors mean.

The low-level client, tuned: no parameter validation (Keyhop builds the parameters), one attempt
(Keyhop retries itself, so that it sees each throttle), a fixed user agent; and Scan, which is sent
in great number, takes a shorter way (transport.py). The figures are in docs/benchmark.md.
"""

import os
import re
import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from ipaddress import ip_address
from typing import Any, Protocol
from urllib.parse import urlsplit

import boto3
import botocore.session
from botocore.config import Config
from botocore.credentials import Credentials
from botocore.exceptions import (
    BotoCoreError,
    ClientError,
    ConnectTimeoutError,
    EndpointConnectionError,
    HTTPClientError,
    InvalidRegionError,
    NoCredentialsError,
    NoRegionError,
    PartialCredentialsError,
    ProfileNotFound,
    ProxyConnectionError,
    SSLError,
)
from botocore.exceptions import (
    ConnectionError as BotoConnectionError,
)

from keyhop import __version__
from keyhop.dynamodb.throttling import is_throttling
from keyhop.dynamodb.transport import ITEM_CALLS, Wire
from keyhop.errors import (
    AwsRefused,
    CannotStart,
    KeyhopError,
    NoCredentials,
    NotPermitted,
    TableNotFound,
    Unreachable,
)

LOCAL_REGION = "us-east-1"
_USER_AGENT = f"keyhop/{__version__}"
_CREDENTIAL_CODES = {
    "ExpiredToken",
    "ExpiredTokenException",
    "IncompleteSignature",
    "InvalidClientTokenId",
    "InvalidSignatureException",
    "MissingAuthenticationToken",
    "MissingAuthenticationTokenException",
    "SignatureDoesNotMatch",
    "UnrecognizedClientException",
}
_DENIED = re.compile(r"perform: (?P<action>\S+) on resource: (?P<resource>\S+)")


class DynamoDB(Protocol):
    """The calls that Keyhop makes; boto3's `client("dynamodb")` has them."""

    def describe_table(self, **parameters: Any) -> dict[str, Any]:
        """DescribeTable."""

    def scan(self, **parameters: Any) -> dict[str, Any]:
        """Scan, one page."""

    def call(self, operation: str, **parameters: Any) -> dict[str, Any]:
        """Any other operation, by boto3's name for it."""


@dataclass(frozen=True, slots=True)
class Endpoint:
    """Where the client talks to. None means: as the AWS configuration of the machine says."""

    region: str | None = None
    profile: str | None = None
    url: str | None = None

    @property
    def shown(self) -> str:
        """The URL for messages, without a password that it may hold."""
        url = urlsplit(self.url or "")
        return url._replace(netloc=url.netloc.rpartition("@")[2]).geturl()

    @property
    def is_loopback(self) -> bool:
        """Whether the endpoint is on this machine, where credentials mean nothing."""
        host = urlsplit(self.url or "").hostname or ""
        try:
            return ip_address(host).is_loopback
        except ValueError:
            return host == "localhost"


@dataclass(frozen=True, slots=True)
class Connection:
    """A client, and where it talks to, for messages. clock: seconds of some clock."""

    client: DynamoDB
    endpoint: Endpoint = Endpoint()
    clock: Callable[[], float] = time.monotonic


def connect(endpoint: Endpoint, connections: int = 16) -> Connection:
    """A connection with a pool of `connections`; raises CannotStart or NoCredentials."""
    client = dynamodb_client(endpoint, connections)
    return Connection(client, replace(endpoint, region=client.region))


def dynamodb_client(endpoint: Endpoint, connections: int = 16) -> "Client":
    """A tuned client with a pool of `connections`; make it before the threads that share it.

    A loopback endpoint needs no credentials and no region: stand-ins are used if there are none.
    Raises CannotStart or NoCredentials.
    """
    if endpoint.url is not None and not _is_http(endpoint.url):
        raise CannotStart(f"--endpoint-url {endpoint.url} is not an http:// or https:// address.")
    try:
        session = _session(endpoint)
        credentials = session.get_credentials()
        extra: dict[str, Any] = {}
        if credentials is None and endpoint.is_loopback:
            credentials = Credentials("local", "local")
            extra = {"aws_access_key_id": "local", "aws_secret_access_key": "local"}
        region = session.region_name or (LOCAL_REGION if endpoint.is_loopback else None)
        client = session.client(
            "dynamodb",
            endpoint_url=endpoint.url,
            region_name=region,
            config=Config(
                parameter_validation=False,
                retries={"mode": "standard", "total_max_attempts": 1},
                user_agent=_USER_AGENT,
                max_pool_connections=connections,
                connect_timeout=5,
                read_timeout=30,
                tcp_keepalive=True,
            ),
            **extra,
        )
    except (BotoCoreError, ValueError) as error:
        raise explained(error, endpoint) from error
    return Client(client, credentials)


def _is_http(url: str) -> bool:
    try:
        parts = urlsplit(url)
        return parts.scheme in ("http", "https") and bool(parts.hostname) and parts.port != 0
    except ValueError:  # no port is called so, or a bracket is missing
        return False


class Client:
    """boto3's client, with requests about items on the short way (wire.py)."""

    def __init__(self, client: Any, credentials: Credentials | None) -> None:
        self.region: str = client.meta.region_name
        self._client = client
        # The client's own connections: the one thing that botocore offers no public name for.
        http = getattr(getattr(client, "_endpoint", None), "http_session", None)
        self._wire = None
        if http is not None and credentials is not None:
            self._wire = Wire(
                http,
                credentials,
                client.meta.endpoint_url,
                client.meta.region_name,
                _USER_AGENT,
            )

    def describe_table(self, **parameters: Any) -> dict[str, Any]:
        """DescribeTable."""
        description: dict[str, Any] = self._client.describe_table(**parameters)
        return description

    def scan(self, **parameters: Any) -> dict[str, Any]:
        """Scan, one page."""
        page: dict[str, Any] = (self._wire or self._client).scan(**parameters)
        return page

    def call(self, operation: str, **parameters: Any) -> dict[str, Any]:
        """Any operation, by boto3's name for it."""
        if operation == "scan":
            return self.scan(**parameters)
        if self._wire is not None and operation in ITEM_CALLS:
            return self._wire.call(operation, **parameters)
        answer: dict[str, Any] = getattr(self._client, operation)(**parameters)
        return answer


def aws_client(service: str, endpoint: Endpoint, attempts: int = 3) -> Any:
    """A client for another service beside the table; a local table's streams are at its address.

    Others of a local table are where the environment says (AWS_ENDPOINT_URL).
    """
    local = endpoint.is_loopback
    extra: dict[str, Any] = {}
    if local:
        extra = {"aws_access_key_id": "local", "aws_secret_access_key": "local"}
    return boto3.Session(profile_name=endpoint.profile).client(
        service,
        region_name=endpoint.region or (LOCAL_REGION if local else None),
        endpoint_url=endpoint.url if service == "dynamodbstreams" else None,
        config=Config(
            retries={"mode": "standard", "total_max_attempts": attempts},
            connect_timeout=5,
            read_timeout=30,
        ),
        **extra,
    )


def _session(endpoint: Endpoint) -> boto3.Session:
    core = botocore.session.get_session()
    if endpoint.is_loopback:
        # Asking the EC2 metadata service for credentials costs a second on a laptop.
        core.get_component("credential_provider").remove("iam-role")
    region = endpoint.region
    if region is None and endpoint.profile is None and "AWS_DEFAULT_REGION" not in os.environ:
        # Other SDKs and the CDK read AWS_REGION; boto3 reads AWS_DEFAULT_REGION only.
        region = os.environ.get("AWS_REGION") or None
    return boto3.Session(profile_name=endpoint.profile, region_name=region, botocore_session=core)


def is_transient(error: BaseException) -> bool:
    """Whether the same request may succeed later: throttling, 5xx, a broken connection."""
    if isinstance(error, ClientError):
        status = error.response.get("ResponseMetadata", {}).get("HTTPStatusCode", 0)
        return status >= 500 or status in (408, 429) or is_throttling(error.response)
    if isinstance(error, SSLError):
        return False
    return isinstance(error, (BotoConnectionError, HTTPClientError))


def may_have_been_served(error: BotoCoreError) -> bool:
    """Whether the service may have charged for a request that ended so: the answer was lost."""
    never_arrived = (EndpointConnectionError, ConnectTimeoutError, ProxyConnectionError, SSLError)
    return isinstance(error, (BotoConnectionError, HTTPClientError)) and not isinstance(
        error, never_arrived
    )


def explained(error: Exception, endpoint: Endpoint, table: str = "", arn: str = "") -> KeyhopError:
    """The error that a user can act on, for one that boto3 raised. arn: the table's, if known."""
    if isinstance(error, KeyhopError):
        return error
    if isinstance(error, ClientError):
        return _explained_response(error, endpoint, table, arn)
    if isinstance(error, (NoCredentialsError, PartialCredentialsError)):
        return NoCredentials(
            "No AWS credentials were found: sign in (aws sso login), choose a --profile, or set "
            "AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY."
        )
    if isinstance(error, ProfileNotFound):
        return CannotStart(
            f"The AWS profile {endpoint.profile!r} does not exist: see aws configure list-profiles."
        )
    if isinstance(error, NoRegionError):
        return CannotStart("No AWS region is set: give --region, or set AWS_REGION.")
    if isinstance(error, InvalidRegionError):
        return CannotStart(f"--region {endpoint.region} is not the name of an AWS region.")
    if isinstance(error, (BotoConnectionError, HTTPClientError)):
        return Unreachable(_unreachable(error, endpoint))
    return AwsRefused(f"The AWS client failed: {_one_line(error)}")


def _explained_response(
    error: ClientError, endpoint: Endpoint, table: str, arn: str
) -> KeyhopError:
    response = error.response
    code = response.get("Error", {}).get("Code", "")
    message = _one_line(response.get("Error", {}).get("Message", ""))
    where = f"region {endpoint.region}" if endpoint.region else "this account and region"
    if endpoint.url:
        where = f"{endpoint.shown} ({where})" if endpoint.region else endpoint.shown
    if code == "ResourceNotFoundException":
        return TableNotFound(
            f"There is no table {table!r} at {where}: check the name, --region and --profile."
        )
    if code in _CREDENTIAL_CODES:
        return NoCredentials(f"The AWS credentials were not accepted ({code}): sign in again.")
    if code in ("AccessDeniedException", "AccessDenied"):
        denied = _DENIED.search(message)
        if denied:
            return NotPermitted(
                f"Permission is missing: allow {denied['action']} on {denied['resource']}."
            )
        return NotPermitted(
            f"Permission is missing: allow dynamodb:{error.operation_name} on "
            f"{arn or f'table {table!r} in {where}'}. {message}".rstrip()
        )
    if code == "ValidationException":
        return CannotStart(f"DynamoDB did not accept the request: {message}")
    return AwsRefused(f"DynamoDB refused the request ({code}): {message}")


def _unreachable(error: Exception, endpoint: Endpoint) -> str:
    if isinstance(error, SSLError):
        return f"No TLS connection to DynamoDB: {_one_line(error)}; check the certificates."
    if isinstance(error, BotoCoreError) and may_have_been_served(error):
        return f"The connection to DynamoDB broke, or brought no whole answer: {_one_line(error)}"
    if endpoint.url:
        return f"Nothing answers at {endpoint.shown}: is it running, and is --endpoint-url right?"
    target = (
        error.kwargs.get("endpoint_url", "") if isinstance(error, EndpointConnectionError) else ""
    )
    return (
        f"DynamoDB cannot be reached{f' at {target}' if target else ''}: check the network and "
        f"that --region {endpoint.region or ''} exists."
    )


def _one_line(text: object) -> str:
    """Text of others for a message: no line breaks, no escape codes."""
    return "".join(c if c.isprintable() else "?" for c in " ".join(str(text).split()))
