"""The VPC of the functions, and the endpoints that it needs without a route to the internet."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any
from urllib.parse import urlsplit

from aws_cdk import Annotations, Stack, Token
from aws_cdk import aws_ec2 as ec2
from constructs import Construct

from .config import Table
from .config_values import ConfigError

STREAMS = "dynamodb-streams"
STREAMS_VARIABLE = "AWS_ENDPOINT_URL_DYNAMODB_STREAMS"
"""The variable from which boto3 reads the address of this service."""
PRIVATE_DNS = "private DNS"
"""A value of Network.streams_endpoint: the usual name of the service leads to the endpoint."""

ENDPOINTS = {
    "keys": ("dynamodb", "s3", "states", "lambda"),
    "key_index": ("monitoring", "sqs", "application-autoscaling"),
    "sharding": ("monitoring",),
    "each": ("sqs",),
    "report": ("monitoring", STREAMS),
    "rekey": ("sqs", STREAMS),
}
"""The services that the functions of each capability call, as VPC endpoints are named
(com.amazonaws.REGION.NAME). All capabilities need those of `keys` too."""


@dataclass(frozen=True)
class Network:
    """A VPC for all functions; by default its private subnets.

    Attributes:
        streams_endpoint: The address of the VPC's interface endpoint for DynamoDB Streams, such as
            "https://vpce-1a2b.streams.dynamodb.eu-west-1.vpce.amazonaws.com", or PRIVATE_DNS if
            that endpoint has private DNS. Without it functions use the service's public address,
            which they cannot reach from isolated subnets.
    """

    vpc: ec2.IVpc
    subnets: ec2.SubnetSelection | None = None
    security_groups: Sequence[ec2.ISecurityGroup] = ()
    """Empty: each function has a separate one."""
    streams_endpoint: str | None = None

    def of_a_function(self) -> dict[str, Any]:
        """Return the arguments of the CDK's function."""
        groups = {"security_groups": [*self.security_groups]} if self.security_groups else {}
        return {"vpc": self.vpc, "vpc_subnets": self.subnets, **groups}

    @property
    def environment(self) -> dict[str, str]:
        """Return the variables by which boto3 finds services at other addresses."""
        address = self.streams_endpoint
        return {} if address in (None, PRIVATE_DNS) else {STREAMS_VARIABLE: str(address)}

    def check(self, scope: Construct, capability: str, tables: Sequence[Table]) -> None:
        """Name the endpoints that a capability needs; raise ConfigError if it cannot work here."""
        services = ENDPOINTS[capability]
        self._check_address()
        is_enclosed = self._is_enclosed
        far = [table.label for table in tables if _is_far(table, Stack.of(scope).region)]
        if is_enclosed and far:
            raise ConfigError(
                f"{scope.node.path}: the functions are in isolated subnets, from which they cannot "
                f"reach tables of another region: {', '.join(far)}. Use subnets with a NAT gateway."
            )
        if STREAMS in services and is_enclosed and self.streams_endpoint is None:
            raise ConfigError(
                f"{scope.node.path} reads DynamoDB Streams, which functions in isolated subnets "
                f"reach through an interface endpoint only ({STREAMS}). Give "
                f"Network(streams_endpoint=...): its address, or PRIVATE_DNS if it has private DNS."
            )
        if STREAMS in services and self.environment and far:
            raise ConfigError(
                f"{scope.node.path}: the endpoint of DynamoDB Streams serves its own region only, "
                f"and not {', '.join(far)}. Leave these tables out, or streams_endpoint."
            )
        if is_enclosed:
            Annotations.of(scope).add_info_v2(
                f"keyhop:endpoints-{capability}",
                f"The functions are in isolated subnets: the VPC needs endpoints for "
                f"{', '.join(services)}.",
            )

    def _check_address(self) -> None:
        address = self.streams_endpoint
        if address in (None, PRIVATE_DNS) or Token.is_unresolved(address):
            return
        parts = urlsplit(str(address))
        if parts.scheme != "https" or not parts.hostname or parts.path.strip("/"):
            raise ConfigError(
                f"Network(streams_endpoint=...) must be an address as "
                f'"https://vpce-1a2b.streams.dynamodb.eu-west-1.vpce.amazonaws.com", or '
                f"PRIVATE_DNS, and not {address!r}."
            )

    @property
    def _is_enclosed(self) -> bool:
        """True if functions have no route to the internet; False if synth cannot see that yet."""
        selection = self.subnets
        names = (
            *("availability_zones", "one_per_az", "subnet_filters", "subnet_group_name"),
            *("subnets", "subnet_type"),
        )
        chosen = {name: getattr(selection, name) for name in names if selection is not None}
        selected = self.vpc.select_subnets(**chosen)
        if selected.is_pending_lookup:
            return False
        isolated = {subnet.node.path for subnet in self.vpc.isolated_subnets}
        return any(subnet.node.path in isolated for subnet in selected.subnets)


def _is_far(table: Table, region: str) -> bool:
    """Return whether a table is in another region than the stack; False if synth cannot see it."""
    if Token.is_unresolved(table.given) or Token.is_unresolved(region):
        return False
    return table.given.startswith("arn:") and table.given.split(":")[3] != region
