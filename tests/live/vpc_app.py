"""The CDK app of a second stack of the suite, whose functions are in a VPC without a route out.

The VPC has one isolated subnet and the endpoints that docs/how-to/constructs.md names for listing
keys. Context: `stackName`, `table`, `zone`.
"""

from aws_cdk import App, Stack
from aws_cdk import aws_dynamodb as dynamodb
from aws_cdk import aws_ec2 as ec2

from infra.deployment import KeyEnumeration
from infra.network import ENDPOINTS, Network

GATEWAYS = ("dynamodb", "s3")
"""The services with gateway endpoints, which are free."""


class Enclosed(Stack):
    """A stack that lists the keys of a table from a VPC."""

    def __init__(self, app: App, name: str, table: str, zone: str | None = None) -> None:
        super().__init__(app, name)
        isolated = ec2.SubnetSelection(subnet_type=ec2.SubnetType.PRIVATE_ISOLATED)
        subnet = ec2.SubnetConfiguration(
            name="isolated", subnet_type=ec2.SubnetType.PRIVATE_ISOLATED, cidr_mask=24
        )
        # Some zones do not have endpoints of all services.
        place = {"availability_zones": [zone]} if zone else {"max_azs": 1}
        vpc = ec2.Vpc(self, "Vpc", nat_gateways=0, subnet_configuration=[subnet], **place)
        for service in ENDPOINTS["keys"]:
            if service in GATEWAYS:
                gateway = ec2.GatewayVpcEndpointAwsService(service)
                vpc.add_gateway_endpoint(service, service=gateway)
            else:
                interface = ec2.InterfaceVpcEndpointAwsService(service)
                vpc.add_interface_endpoint(service, service=interface, subnets=isolated)
        KeyEnumeration(
            self,
            "Keys",
            tables=[dynamodb.Table.from_table_name(self, "Table", table)],
            network=Network(vpc, isolated),
            log_level="ERROR",
        )


def main() -> None:
    """Synthesize the app."""
    app = App(stack_traces=False)
    context = app.node.get_context
    zone = app.node.try_get_context("zone")
    Enclosed(app, context("stackName"), context("table"), zone)
    app.synth()


if __name__ == "__main__":
    main()
