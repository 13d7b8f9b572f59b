"""Tests of functions in a VPC: the endpoints that they need, and what cannot work there."""

import json
from typing import Any

import boto3
import pytest
from aws_cdk import Environment, Stack, assertions
from aws_cdk import aws_ec2 as ec2

from infra import (
    PRIVATE_DNS,
    ConfigError,
    ForEachKey,
    KeyEnumeration,
    KeyIndex,
    KeyReports,
    Network,
    Rekey,
    ShardedTables,
)
from infra.config import Config
from infra.network import ENDPOINTS, STREAMS, STREAMS_VARIABLE
from testing.iam.simulator import NotAsked
from testing.marks import prove
from tests.infra.apps import asset_free_app
from tests.infra.conftest import deployed, stack_of
from tests.infra.recorded import EACH, KEY_INDEXES, REKEY, REPORTED, SHARDED
from tests.infra.template import ACCOUNT, REGION, Deployed
from tests.infra.test_calls import RECORDED
from tests.infra.unrecorded import unrecorded_calls

CONTEXTS: dict[str, dict[str, Any]] = {
    "keys": {"tables": ["Small"]},
    "key_index": {"tables": [{"table": name, "keyIndex": True} for name in KEY_INDEXES]},
    "sharding": {"tables": [SHARDED]},
    "each": {"tables": [EACH]},
    "report": {"tables": [REPORTED]},
    "rekey": {"tables": ["Small"], "rekey": REKEY},
}
READS_STREAMS = {f"dynamodb:{name}" for name in ("DescribeStream", "GetRecords")}
ADDRESS = "https://vpce-1a2b.streams.dynamodb.eu-west-1.vpce.amazonaws.com"
FAR = f"arn:aws:dynamodb:eu-central-1:{ACCOUNT}:table/Far"
CONSTRUCTS: dict[str, Any] = {
    "key_index": KeyIndex,
    "sharding": ShardedTables,
    "each": ForEachKey,
    "report": KeyReports,
    "rekey": Rekey,
}
ISOLATED = ec2.SubnetConfiguration(
    name="Inner", subnet_type=ec2.SubnetType.PRIVATE_ISOLATED, cidr_mask=24
)


def called_by(template: Deployed) -> set[str]:
    """Return the services that the functions of a deployment call and are allowed to call."""
    functions = template.properties_of("AWS::Lambda::Function")
    names = {function.get("FunctionName", "").partition("-")[2] for function in functions}
    services = set()
    for call in [*RECORDED, *(call for call, _ in unrecorded_calls())]:
        if call.caller in names and is_allowed(template, call):
            service = call.action.partition(":")[0]
            services.add(STREAMS if call.action in READS_STREAMS else service)
    return {"monitoring" if service == "cloudwatch" else service for service in services}


def is_allowed(template: Deployed, call: Any) -> bool:
    try:
        return template.judge(call).allowed
    except NotAsked:
        return False


CAPABILITIES = [name if name in ("keys", "rekey") else prove(name) for name in ENDPOINTS]


@pytest.mark.parametrize("capability", CAPABILITIES)
def test_a_capability_lists_the_endpoints_of_the_services_that_it_calls(capability: str) -> None:
    services = called_by(deployed(stack_of(CONTEXTS[capability])))
    assert services == {*ENDPOINTS["keys"], *ENDPOINTS[capability]}


def stack_with(capability: str, table: str = "Small", **network: Any) -> Stack:
    """Return a stack with one capability in isolated subnets."""
    stack = Stack(asset_free_app(), "Shop", env=Environment(account=ACCOUNT, region=REGION))
    vpc = ec2.Vpc(stack, "Network", subnet_configuration=[ISOLATED], nat_gateways=0)
    entries = {name: context["tables"][0] for name, context in CONTEXTS.items()}
    entry = entries[capability]
    table_entry = table if isinstance(entry, str) else {**entry, "table": table}
    pairs = {"rekey": REKEY} if capability == "rekey" else {}
    config = Config.from_context({"tables": [table_entry], "stackName": "Shop", **pairs})
    keys = KeyEnumeration(stack, "Keys", config=config, network=Network(vpc, **network))
    if capability != "keys":
        CONSTRUCTS[capability](stack, "Capability", keys)
    return stack


@pytest.mark.prove
@pytest.mark.parametrize("capability", [name for name in ENDPOINTS if STREAMS in ENDPOINTS[name]])
def test_streams_cannot_be_read_from_isolated_subnets_without_an_endpoint(capability: str) -> None:
    with pytest.raises(ConfigError, match=r"reads DynamoDB Streams.*streams_endpoint"):
        stack_with(capability)
    for streams_endpoint in (PRIVATE_DNS, ADDRESS):
        stack_with(capability, streams_endpoint=streams_endpoint)


@pytest.mark.parametrize("capability", CAPABILITIES)
def test_synth_lists_the_endpoints_that_isolated_functions_need(capability: str) -> None:
    notes = assertions.Annotations.from_stack(stack_with(capability, streams_endpoint=PRIVATE_DNS))
    for services in (ENDPOINTS["keys"], ENDPOINTS[capability]):
        note = f"the VPC needs endpoints for {', '.join(services)}[.]"
        notes.has_info("*", assertions.Match.string_like_regexp(note))


def test_functions_get_the_address_of_streams() -> None:
    """boto3 reads the address from the environment; with private DNS it needs none."""
    for streams_endpoint, expected in ((ADDRESS, {ADDRESS}), (PRIVATE_DNS, {None})):
        stack = stack_with("report", streams_endpoint=streams_endpoint)
        template = Deployed(assertions.Template.from_stack(stack).to_json())
        addresses = {
            function["Environment"]["Variables"].get(STREAMS_VARIABLE)
            for function in template.properties_of("AWS::Lambda::Function")
            if "FunctionName" in function
        }
        assert addresses == expected, json.dumps(streams_endpoint)


def test_boto3_finds_the_address_by_the_variable(monkeypatch: pytest.MonkeyPatch) -> None:
    """CutOver relies on this, because it creates its client without an address."""
    monkeypatch.setenv(STREAMS_VARIABLE, ADDRESS)
    client = boto3.client("dynamodbstreams", region_name=REGION)
    assert client.meta.endpoint_url == ADDRESS


@pytest.mark.parametrize("is_chosen", [False, True])
def test_only_the_subnets_of_the_functions_matter(is_chosen: bool) -> None:
    """A VPC may have isolated subnets besides those with internet access."""
    stack = Stack(asset_free_app(), "Shop", env=Environment(account=ACCOUNT, region=REGION))
    kinds = (ec2.SubnetType.PUBLIC, ec2.SubnetType.PRIVATE_WITH_EGRESS)
    outer_subnets = [
        ec2.SubnetConfiguration(name=kind.name.title(), subnet_type=kind) for kind in kinds
    ]
    vpc = ec2.Vpc(stack, "Network", subnet_configuration=[ISOLATED, *outer_subnets])
    isolated = ec2.SubnetSelection(subnet_type=ec2.SubnetType.PRIVATE_ISOLATED)
    network = Network(vpc, subnets=isolated if is_chosen else None)
    tables = Config.from_context(CONTEXTS["report"]).tables
    if is_chosen:
        with pytest.raises(ConfigError, match="reads DynamoDB Streams"):
            network.check(stack, "report", tables)
    else:
        network.check(stack, "report", tables)


def test_isolated_functions_cannot_reach_tables_of_another_region() -> None:
    with pytest.raises(ConfigError, match=r"cannot reach tables of another region: .*Far"):
        stack_with("keys", FAR)


def test_an_endpoint_of_streams_serves_one_region() -> None:
    stack = Stack(asset_free_app(), "Shop", env=Environment(account=ACCOUNT, region=REGION))
    network = Network(ec2.Vpc(stack, "Network", max_azs=2), streams_endpoint=ADDRESS)
    config = Config.from_context({"tables": [{**REPORTED, "table": FAR}], "stackName": "Shop"})
    keys = KeyEnumeration(stack, "Keys", config=config, network=network)
    with pytest.raises(ConfigError, match=r"serves its own region only, and not .*Far"):
        KeyReports(stack, "Reports", keys)


def test_functions_with_internet_access_need_no_endpoints() -> None:
    stack = Stack(asset_free_app(), "Shop", env=Environment(account=ACCOUNT, region=REGION))
    config = Config.from_context({"tables": [REPORTED, FAR], "stackName": "Shop"})
    network = Network(ec2.Vpc(stack, "Network", max_azs=2))
    KeyReports(stack, "Reports", KeyEnumeration(stack, "Keys", config=config, network=network))
    note = assertions.Match.string_like_regexp("the VPC needs endpoints")
    assertions.Annotations.from_stack(stack).has_no_info("*", note)


@pytest.mark.parametrize("address", ["vpce-1a2b.streams", "http://streams", f"{ADDRESS}/x", ""])
def test_an_invalid_address_is_refused(address: str) -> None:
    with pytest.raises(ConfigError, match="must be an address as"):
        stack_with("keys", streams_endpoint=address)
