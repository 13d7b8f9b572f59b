"""The one DynamoDB client of a process.

The low-level client, tuned: no parameter validation (Keyhop builds the parameters), one attempt
(Keyhop retries itself, so that it sees each throttle), a fixed user agent; and the many requests
about items take a shorter way (transport.py). The figures are in docs/internals/benchmark.md.
"""

import os
import time
from collections.abc import Callable
from copy import deepcopy
from dataclasses import dataclass, replace
from typing import Any, ClassVar, NamedTuple, Protocol
from urllib.parse import urlsplit

import botocore.session
from botocore import exceptions as boto
from botocore.config import Config
from botocore.configprovider import ConfiguredEndpointProvider
from botocore.credentials import AssumeRoleCredentialFetcher, DeferredRefreshableCredentials
from botocore.exceptions import BotoCoreError
from botocore.regions import EndpointResolver
from botocore.session import Session
from botocore.utils import validate_region_name

from keyhop.dynamodb.endpoint import Endpoint, table_region
from keyhop.dynamodb.refusals import explained
from keyhop.dynamodb.transport import USER_AGENT, Client, connections_to
from keyhop.dynamodb.units import US_EAST_1, VARIABLE, Prices
from keyhop.errors import CannotStart
from keyhop.retries import DEFAULT_PATIENCE_SECONDS

LOCAL_REGION = "us-east-1"
CONNECT_SECONDS = 5
READ_SECONDS = 30
LEAST_READ_SECONDS = 1.0
ADDRESSES = ("AWS_ENDPOINT_URL_DYNAMODB", "AWS_ENDPOINT_URL")


class DynamoDB(Protocol):
    """A client that sends requests by their names; boto3's client is another (`requester.send`)."""

    def call(self, operation: str, **parameters: Any) -> dict[str, Any]:
        """Send one request, by boto3's name for it, and return its answer."""


@dataclass(frozen=True, slots=True)
class Connection:
    """A client, its endpoint for messages, and the prices of units there.

    Attributes:
        patience: The maximum seconds for which a request about a whole table is repeated.
    """

    client: DynamoDB
    endpoint: Endpoint = Endpoint()
    clock: Callable[[], float] = time.monotonic
    prices: Prices = US_EAST_1
    patience: float = DEFAULT_PATIENCE_SECONDS


def connect(
    endpoint: Endpoint,
    connections: int = 16,
    own_prices: str | None = None,
    patience: float | None = None,
    give_up_after: float = DEFAULT_PATIENCE_SECONDS,
) -> Connection:
    """Return a connection with a pool of `connections`; raise CannotStart or NoCredentials.

    Args:
        own_prices: See Prices.of.
        patience: See dynamodb_client. By default it is a third of `give_up_after`, so that a last
            attempt ends soon after that time, and no more than usual.
        give_up_after: The patience of the connection.
    """
    if patience is None and give_up_after < 3 * READ_SECONDS:
        patience = max(LEAST_READ_SECONDS, give_up_after / 3)
    client = dynamodb_client(endpoint, connections, patience=patience)
    prices = Prices.of(client.region, own_prices)
    own_endpoint = replace(endpoint, region=client.region)
    return Connection(client, own_endpoint, prices=prices, patience=give_up_after)


class NamedTable(NamedTuple):
    """The name of a table, and the connection to it."""

    connection: Connection
    name: str


def endpoint_from(session: Any, url: str | None, table: str = "") -> Endpoint:
    """Return the endpoint of a boto3 session, an address and an ARN, or of the environment."""
    return Endpoint(
        None if session is not None else table_region(table),
        url=url or next(filter(None, map(os.environ.get, ADDRESSES)), None),
        session=getattr(session, "_session", session),
    )


def name_table(
    table: Any,
    session: Any = None,
    endpoint_url: str | None = None,
    connections: int = 16,
    patience: float = DEFAULT_PATIENCE_SECONDS,
) -> NamedTable:
    """Connect to a table that a caller of the library names, without a request.

    Args:
        table: A name, an ARN or boto3's Table, whose client sends all requests; a NamedTable is
            returned as it is.
        session: A boto3 session; by default the environment is used.
        endpoint_url: The address of DynamoDB; by default it is that of the environment.
        connections: The number of connections to keep open.
        patience: The patience of the connection.

    Raises:
        CannotStart: This is none of them.
    """
    if isinstance(table, NamedTable):
        return table
    if isinstance(table, str) and table:
        connection = connect(
            endpoint_from(session, endpoint_url, table),
            connections,
            os.environ.get(VARIABLE),
            give_up_after=patience,
        )
        return NamedTable(connection, table)
    client = getattr(getattr(table, "meta", None), "client", None)
    name = getattr(table, "name", None)
    if client is None or not isinstance(name, str):
        raise CannotStart("table must be the name or the ARN of a table, or boto3's Table.")
    if session is not None or endpoint_url is not None:
        raise CannotStart("boto3's Table already has a client: leave session and endpoint_url out.")
    meta = client.meta
    endpoint = Endpoint(meta.region_name, url=meta.endpoint_url)
    if endpoint.is_of_aws:
        endpoint = Endpoint(meta.region_name)
    prices = Prices.of(meta.region_name, os.environ.get(VARIABLE))
    connection = Connection(_ClientOfTable(client), endpoint, prices=prices, patience=patience)
    return NamedTable(connection, name)


class _ClientOfTable:
    """The client of boto3's Table, whose requests have Python values, for typed values."""

    def __init__(self, client: Any) -> None:
        from boto3.dynamodb.transform import ParameterTransformer
        from boto3.dynamodb.types import TypeDeserializer, TypeSerializer

        self._client = client
        self.region = client.meta.region_name
        self.exceptions = client.exceptions
        self._transform = ParameterTransformer().transform
        self._python_value = TypeDeserializer().deserialize
        self._typed_value = TypeSerializer().serialize

    def call(self, operation: str, **parameters: Any) -> dict[str, Any]:
        """Send one request; see dynamodb.client.DynamoDB."""
        name = self._client.meta.method_to_api_mapping[operation]
        model = self._client.meta.service_model.operation_model(name)
        request = deepcopy(parameters)
        self._transform(request, model.input_shape, self._python_value, "AttributeValue")
        answer: dict[str, Any] = getattr(self._client, operation)(**request)
        if model.output_shape is not None:
            self._transform(answer, model.output_shape, self._typed_value, "AttributeValue")
        return answer


def dynamodb_client(
    endpoint: Endpoint, connections: int = 16, *, patience: float | None = None
) -> Client:
    """Make a tuned client with a pool of `connections`; raise CannotStart or NoCredentials.

    `patience` is the seconds for an answer, and at most for a connection. A loopback endpoint needs
    no credentials and no region: stand-ins are used if there are none.
    """
    if endpoint.url is not None and not _is_http(endpoint.url):
        raise CannotStart(f"endpoint_url={endpoint.url} is not an http:// or https:// address.")
    times = (min(CONNECT_SECONDS, patience or CONNECT_SECONDS), patience or READ_SECONDS)
    try:
        session = _session(endpoint)
        if session is not endpoint.session:
            _share_errors(session, endpoint.session)
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
                connect_timeout=times[0],
                read_timeout=times[1],
            )

        credentials = session.get_credentials()
        if url is None or region is None or credentials is None:
            boto3_client = make()  # its first call reports missing settings
            client = Client(boto3_client.meta.region_name, lambda: boto3_client)
            url = boto3_client.meta.endpoint_url
        else:
            validate_region_name(region)
            client = Client(region, make)
        if credentials is not None:
            bundle = session.get_config_variable("ca_bundle")
            client.send_by(connections_to(url, bundle, *times), credentials)
        return client
    except (BotoCoreError, ValueError) as error:
        raise explained(error, endpoint) from error


def _usual_url(session: Session, region: str | None) -> str | None:
    """Return the usual address of DynamoDB in a region; None if the configuration may change it.

    boto3's client would find it too, but takes much longer to make.
    """
    configured = ConfiguredEndpointProvider(
        session.full_config, session.get_scoped_config(), "dynamodb"
    )
    is_special = any(
        session.get_config_variable(name)
        for name in ("use_fips_endpoint", "use_dualstack_endpoint")
    )
    if region is None or is_special or configured.provide():
        return None
    endpoints = session.get_component("data_loader").load_data("endpoints")
    endpoint = EndpointResolver(endpoints).construct_endpoint("dynamodb", region)
    return None if endpoint is None else f"https://{endpoint['hostname']}"


def _is_http(url: str) -> bool:
    try:
        parts = urlsplit(url)
        return parts.scheme in ("http", "https") and bool(parts.hostname) and parts.port != 0
    except ValueError:  # no port is called so, or a bracket is missing
        return False


def aws_client(
    service: str, endpoint: Endpoint, attempts: int = 3, url: str | None = None, **config: Any
) -> Any:
    """Make a client for another service beside the table, with its region and its credentials.

    The streams of a local table are at the table's address. AWS has them at another address than
    the table, also in a VPC, so the environment says where (AWS_ENDPOINT_URL_DYNAMODB_STREAMS), as
    for other services (AWS_ENDPOINT_URL).

    Args:
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
    if endpoint.session is not None:
        return endpoint.session
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


def _share_errors(session: Session, users: Session | None) -> None:
    """Let clients of a session raise the classes of errors that the user's own clients have.

    They are made for each session, so otherwise a user's `except` with a class of the `exceptions`
    of a boto3 client would not catch them. `users` is the user's session; None for the default
    session of boto3. It is looked for when the first error is raised, or `exceptions` are read.
    """

    def factory() -> Any:
        core = users
        if core is None:
            import boto3

            core = boto3._get_default_session()._session
        return core._get_internal_component("exceptions_factory")

    session._internal_components.lazy_register_component("exceptions_factory", factory)


def _region_or_stand_in(session: Session, endpoint: Endpoint) -> str | None:
    region: str | None = session.get_config_variable("region")
    return region or (LOCAL_REGION if endpoint.is_loopback else None)


@dataclass(frozen=True, slots=True)
class _Role:
    """A provider of credentials, as botocore has them: those of a role, assumed when needed."""

    role: str
    session: Session
    METHOD: ClassVar[str] = "assume-role"

    def load(self) -> Any:
        credentials = self.session.get_credentials()
        if credentials is None:
            raise boto.NoCredentialsError
        name = {"RoleSessionName": "keyhop"}
        fetcher = AssumeRoleCredentialFetcher(
            self.session.create_client, credentials, self.role, extra_args=name
        )
        return DeferredRefreshableCredentials(fetcher.fetch_credentials, self.METHOD)


def _session_in_role(endpoint: Endpoint, role: str) -> Session:
    base_session = _session(replace(endpoint, role=None))
    session = botocore.session.Session()
    session.get_component("credential_provider").providers.insert(0, _Role(role, base_session))
    session.set_config_variable("region", base_session.get_config_variable("region"))
    return session
