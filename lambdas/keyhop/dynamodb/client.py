"""The one DynamoDB client of a process, and what its errors mean.

The low-level client, tuned: no parameter validation (Keyhop builds the parameters), one attempt
(Keyhop retries itself, so that it sees each throttle), a fixed user agent; and the many requests
about items take a shorter way (transport.py). The figures are in docs/benchmark.md.
"""

import os
import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from ipaddress import ip_address
from typing import Any, ClassVar, Protocol
from urllib.parse import urlsplit

import botocore.session
from botocore import exceptions as boto
from botocore.config import Config
from botocore.configprovider import ConfiguredEndpointProvider
from botocore.credentials import AssumeRoleCredentialFetcher, DeferredRefreshableCredentials
from botocore.exceptions import BotoCoreError, ClientError
from botocore.regions import EndpointResolver
from botocore.session import Session
from botocore.utils import validate_region_name

from keyhop.denied import Denied, clock_text
from keyhop.dynamodb.prices import US_EAST_1, Prices
from keyhop.dynamodb.throttling import is_throttling
from keyhop.dynamodb.transport import USER_AGENT, Client, connections_to
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
CONNECT_SECONDS = 5
READ_SECONDS = 30
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
_SIGNED_OUT = (boto.SSOError, boto.TokenRetrievalError)
NO_ANSWER = (boto.ConnectionError, boto.HTTPClientError)
NEVER_SENT = (
    boto.EndpointConnectionError,
    boto.ConnectTimeoutError,
    boto.ProxyConnectionError,
    boto.SSLError,
)
_KMS_DENIED = "KMS key access denied error"
"""How DynamoDB's refusal begins when it is KMS that refuses: the table's key, and not the table.
The text after it is the KMS client's; it names action and key, but for a key that KMS does not
show to the caller, and in the texts of some years ago."""


class DynamoDB(Protocol):
    """Sends requests; `requester.send` does it with boto3's client too."""

    def call(self, operation: str, **parameters: Any) -> dict[str, Any]:
        """One request, by boto3's name for it."""


OF_AWS = (".amazonaws.com", ".amazonaws.com.cn", ".api.aws")


@dataclass(frozen=True, slots=True)
class Endpoint:
    """Where the client talks to. None means: as the AWS configuration of the machine says.

    role: the ARN of one to assume, by the credentials that there are, and again whenever it ends.
    """

    region: str | None = None
    profile: str | None = None
    url: str | None = None
    role: str | None = None

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

    @property
    def is_of_aws(self) -> bool:
        """Tell whether the endpoint is one of AWS, such as an endpoint of a VPC."""
        return (urlsplit(self.url or "").hostname or "").endswith(OF_AWS)


@dataclass(frozen=True, slots=True)
class Connection:
    """A client, where it talks to, for messages, and what units cost there."""

    client: DynamoDB
    endpoint: Endpoint = Endpoint()
    clock: Callable[[], float] = time.monotonic
    prices: Prices = US_EAST_1


def connect(
    endpoint: Endpoint,
    connections: int = 16,
    own_prices: str | None = None,
    patience: float | None = None,
) -> Connection:
    """A connection with a pool of `connections`; raises CannotStart or NoCredentials.

    own_prices: see Prices.of. patience: see dynamodb_client.
    """
    client = dynamodb_client(endpoint, connections, patience=patience)
    prices = Prices.of(client.region, own_prices)
    return Connection(client, replace(endpoint, region=client.region), prices=prices)


def dynamodb_client(
    endpoint: Endpoint, connections: int = 16, *, patience: float | None = None
) -> Client:
    """A tuned client with a pool of `connections`; make it before the threads that share it.

    patience: seconds for a connection, and for an answer; None: as usual.
    A loopback endpoint needs no credentials and no region: stand-ins are used if there are none.
    Raises CannotStart or NoCredentials.
    """
    if endpoint.url is not None and not _is_http(endpoint.url):
        raise CannotStart(f"--endpoint-url {endpoint.url} is not an http:// or https:// address.")
    try:
        session = _session(endpoint)
        region = _region_or_stand_in(session, endpoint)
        url = endpoint.url or _usual_url(session, region)

        def make() -> Any:
            return _client_of(
                session,
                "dynamodb",
                endpoint,
                attempts=1,
                parameter_validation=False,
                user_agent=USER_AGENT,
                max_pool_connections=connections,
                tcp_keepalive=True,
                connect_timeout=patience or CONNECT_SECONDS,
                read_timeout=patience or READ_SECONDS,
            )

        credentials = session.get_credentials()
        if url is None or region is None or credentials is None:
            made = make()  # it knows the address, and its first call says what is missing
            found = Client(made.meta.region_name, lambda: made)
            url = made.meta.endpoint_url
        else:
            validate_region_name(region)
            found = Client(region, make)
        if credentials is not None:
            bundle = session.get_config_variable("ca_bundle")
            times = (patience or CONNECT_SECONDS, patience or READ_SECONDS)
            found.send_by(connections_to(url, bundle, *times), credentials)
        return found
    except (BotoCoreError, ValueError) as error:
        raise explained(error, endpoint) from error


def _usual_url(session: Session, region: str | None) -> str | None:
    """Where DynamoDB is in a region; None where anything is configured that may change it.

    As boto3's client finds it, at a fraction of what it takes to make one.
    """
    own = ConfiguredEndpointProvider(session.full_config, session.get_scoped_config(), "dynamodb")
    is_special = any(
        session.get_config_variable(name)
        for name in ("use_fips_endpoint", "use_dualstack_endpoint")
    )
    if region is None or is_special or own.provide():
        return None
    known = session.get_component("data_loader").load_data("endpoints")
    found = EndpointResolver(known).construct_endpoint("dynamodb", region)
    return None if found is None else f"https://{found['hostname']}"


def _is_http(url: str) -> bool:
    try:
        parts = urlsplit(url)
        return parts.scheme in ("http", "https") and bool(parts.hostname) and parts.port != 0
    except ValueError:  # no port is called so, or a bracket is missing
        return False


def aws_client(
    service: str, endpoint: Endpoint, attempts: int = 3, url: str | None = None, **config: Any
) -> Any:
    """Make a client for another service beside the table.

    The streams of a local table are at the table's address. AWS has them at another address than
    the table, also in a VPC, so the environment says where (AWS_ENDPOINT_URL_DYNAMODB_STREAMS), as
    for other services (AWS_ENDPOINT_URL).

    Args:
        service: The name of the service, as boto3 knows it.
        endpoint: The table's, of which the region and the credentials are taken.
        attempts: How often a request is sent at most.
        url: The address of the service, if it is known; None: as the environment says.
        config: The settings of botocore that are not the usual ones.
    """
    return _client_of(_session(endpoint), service, endpoint, attempts, url, **config)


def _client_of(
    session: Session,
    service: str,
    endpoint: Endpoint,
    attempts: int,
    url: str | None = None,
    **config: Any,
) -> Any:
    is_at_its_address = service == "dynamodb" or (
        service == "dynamodbstreams" and not endpoint.is_of_aws
    )
    return session.create_client(
        service,
        region_name=_region_or_stand_in(session, endpoint),
        endpoint_url=endpoint.url if is_at_its_address else url,
        config=Config(
            **{
                "retries": {"mode": "standard", "total_max_attempts": attempts},
                "connect_timeout": CONNECT_SECONDS,
                "read_timeout": READ_SECONDS,
                **config,
            }
        ),
    )


def _session(endpoint: Endpoint) -> Session:
    if endpoint.role is not None:
        return _session_in_role(endpoint, endpoint.role)
    session = botocore.session.Session(profile=endpoint.profile)
    if endpoint.is_loopback:
        # Asking the EC2 metadata service for credentials costs a second on a laptop.
        session.get_component("credential_provider").remove("iam-role")
    region = endpoint.region
    if region is None and endpoint.profile is None and "AWS_DEFAULT_REGION" not in os.environ:
        # Other SDKs and the CDK read AWS_REGION; botocore reads AWS_DEFAULT_REGION only.
        region = os.environ.get("AWS_REGION") or None
    if region is not None:
        session.set_config_variable("region", region)
    if endpoint.is_loopback and session.get_credentials() is None:
        session.set_credentials("local", "local")
    return session


def _region_or_stand_in(session: Session, endpoint: Endpoint) -> str | None:
    return _region(session) or (LOCAL_REGION if endpoint.is_loopback else None)


def _region(session: Session) -> str | None:
    found: str | None = session.get_config_variable("region")
    return found


@dataclass(frozen=True, slots=True)
class _Role:
    """A provider of credentials, as botocore has them: those of a role, assumed when needed."""

    role: str
    own: Session
    METHOD: ClassVar[str] = "assume-role"

    def load(self) -> Any:
        found = self.own.get_credentials()
        if found is None:
            raise boto.NoCredentialsError
        name = {"RoleSessionName": "keyhop"}
        fetcher = AssumeRoleCredentialFetcher(
            self.own.create_client, found, self.role, extra_args=name
        )
        return DeferredRefreshableCredentials(fetcher.fetch_credentials, self.METHOD)


def _session_in_role(endpoint: Endpoint, role: str) -> Session:
    own = _session(replace(endpoint, role=None))
    session = botocore.session.Session()
    session.get_component("credential_provider").providers.insert(0, _Role(role, own))
    session.set_config_variable("region", _region(own))
    return session


FUNCTION_NOT_READY = frozenset(
    {
        "CodeArtifactUserPendingException",
        "ResourceNotReadyException",
        "ResourceConflictException",
    }
)
"""What Lambda's Invoke answers with 409 or 502 while it prepares a function: one that was idle for
weeks, is in a VPC and gets its network interfaces, or is being updated (Lambda API reference)."""


def is_transient(error: BaseException) -> bool:
    """Return whether the same request may succeed later.

    That is so after throttling, 5xx, a broken connection, and while Lambda prepares a function.
    """
    if isinstance(error, ClientError):
        if error.response.get("Error", {}).get("Code") in FUNCTION_NOT_READY:
            return True
        status = error.response.get("ResponseMetadata", {}).get("HTTPStatusCode", 0)
        return status >= 500 or status in (408, 429) or is_throttling(error.response)
    return isinstance(error, NO_ANSWER) and not isinstance(error, boto.SSLError)


def may_have_been_served(error: BotoCoreError) -> bool:
    """Whether the service may have charged for a request that ended so: the answer was lost."""
    return isinstance(error, NO_ANSWER) and not isinstance(error, NEVER_SENT)


def explained(
    error: Exception, endpoint: Endpoint, table: str = "", arn: str = "", service: str = "DynamoDB"
) -> KeyhopError:
    """The error that a user can act on, for one that boto3 raised. arn: the table's, if known."""
    if isinstance(error, KeyhopError):
        return error
    if isinstance(error, ClientError):
        return _explained_response(error, endpoint, table, arn, service)
    if isinstance(error, (boto.NoCredentialsError, boto.PartialCredentialsError)):
        return NoCredentials(
            "No AWS credentials were found: sign in (aws sso login), choose a --profile, or set "
            "AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY."
        )
    if isinstance(error, _SIGNED_OUT):
        return NoCredentials(
            f"The session of AWS's single sign-on is over: sign in again{_sign_in(endpoint)}."
        )
    if isinstance(error, boto.ProfileNotFound):
        return CannotStart(
            f"The AWS profile {endpoint.profile!r} does not exist: see aws configure list-profiles."
        )
    if isinstance(error, boto.NoRegionError):
        return CannotStart("No AWS region is set: give --region, or set AWS_REGION.")
    if isinstance(error, boto.InvalidRegionError):
        return CannotStart(f"--region {endpoint.region} is not the name of an AWS region.")
    if isinstance(error, NO_ANSWER):
        return Unreachable(_unreachable(error, endpoint, service))
    return AwsRefused(f"The AWS client failed: {_one_line(error)}")


def _explained_response(
    error: ClientError, endpoint: Endpoint, table: str, arn: str, service: str
) -> KeyhopError:
    response = error.response
    code = response.get("Error", {}).get("Code", "")
    reasons: Any = response.get("CancellationReasons", ())
    told = [reason["Message"] for reason in reasons if reason.get("Message")]
    message = _one_line("; ".join(told) or response.get("Error", {}).get("Message", ""))
    where = f"region {endpoint.region}" if endpoint.region else "this account and region"
    if endpoint.url:
        where = f"{endpoint.shown} ({where})" if endpoint.region else endpoint.shown
    if code == "ResourceNotFoundException":
        return TableNotFound(
            f"There is no table {table!r} at {where}: check the name, --region and --profile."
        )
    if skewed := clock_text(response):
        return AwsRefused(skewed)
    if code in _CREDENTIAL_CODES:
        return NoCredentials(
            f"The AWS credentials were not accepted ({code}): sign in again{_sign_in(endpoint)}."
        )
    if code in ("AccessDeniedException", "AccessDenied"):
        denied = Denied.read(message)
        if message.startswith(_KMS_DENIED):
            action, key = "kms:Decrypt", "its key"
            if denied is not None:
                action, key = denied.action, denied.resource
            return NotPermitted(
                f"Table {table!r} is encrypted with a KMS key that may not be used: allow {action} "
                f"on {key}, which DescribeTable names as SSEDescription, in the caller's policy "
                "(for a deployment, kmsKey in its context) and in the key's own."
                + (f" That is: {denied}" if denied is not None else "")
            )
        if denied is not None:
            return NotPermitted(f"Permission is missing: {denied}")
        return NotPermitted(
            f"Permission is missing: allow dynamodb:{error.operation_name} on "
            f"{arn or f'table {table!r} in {where}'}. {message}".rstrip()
        )
    if code == "ValidationException":
        return CannotStart(f"{service} did not accept the request: {message}")
    return AwsRefused(f"{service} refused the request ({code}): {message}")


def _sign_in(endpoint: Endpoint) -> str:
    profile = f" --profile {endpoint.profile}" if endpoint.profile else ""
    return f" (as by aws sso login{profile})"


def _unreachable(error: Exception, endpoint: Endpoint, service: str) -> str:
    if isinstance(error, boto.SSLError):
        return f"No TLS connection to {service}: {_one_line(error)}; check the certificates."
    if isinstance(error, BotoCoreError) and may_have_been_served(error):
        return f"The connection to {service} broke, or brought no whole answer: {_one_line(error)}"
    if endpoint.url:
        return f"Nothing answers at {endpoint.shown}: is it running, and is --endpoint-url right?"
    target = isinstance(error, boto.EndpointConnectionError) and error.kwargs.get("endpoint_url")
    region = (
        f"--region {endpoint.region}" if endpoint.region else "the region of your configuration"
    )
    return (
        f"{service} cannot be reached{f' at {target}' if target else ''}: check the network and "
        f"that {region} exists."
    )


def _one_line(text: object) -> str:
    """Text of others for a message: no line breaks, no escape codes."""
    return "".join(c if c.isprintable() else "?" for c in " ".join(str(text).split()))
