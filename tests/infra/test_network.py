"""Functions in a VPC: the endpoints that they need, and what cannot work there."""

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
from tests.infra.apps import asset_free_app
from tests.infra.conftest import deployed, stack_of
from tests.infra.recorded import EACH, KEY_INDEXES, REKEY, REPORTED, SHARDED
from tests.infra.template import ACCOUNT, REGION, Deployed
from tests.infra.test_calls import RECORDED
from tests.infra.unrecorded import elsewhere

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
    """Return the services that functions of a deployment call and may call."""
    functions = template.of_type("AWS::Lambda::Function").values()
    names = {one["Properties"].get("FunctionName", "").partition("-")[2] for one in functions}
    found = set()
    for call in [*RECORDED, *(call for call, _ in elsewhere())]:
        if call.caller in names and is_allowed(template, call):
            service = call.action.partition(":")[0]
            found.add(STREAMS if call.action in READS_STREAMS else service)
    return {"monitoring" if service == "cloudwatch" else service for service in found}


def is_allowed(template: Deployed, call: Any) -> bool:
    try:
        return template.judge(call).allowed
    except NotAsked:
        return False


@pytest.mark.parametrize("capability", ENDPOINTS)
def test_the_endpoints_are_those_of_the_services_that_functions_call(capability: str) -> None:
    called = called_by(deployed(stack_of(CONTEXTS[capability])))
    assert called == {*ENDPOINTS["keys"], *ENDPOINTS[capability]}


def made(capability: str, table: str = "Small", **network: Any) -> Stack:
    """Return a stack with one capability in isolated subnets; of a pair for a re-key."""
    own = Stack(asset_free_app(), "Shop", env=Environment(account=ACCOUNT, region=REGION))
    vpc = ec2.Vpc(own, "Network", subnet_configuration=[ISOLATED], nat_gateways=0)
    entries = {name: context["tables"][0] for name, context in CONTEXTS.items()}
    entry = entries[capability]
    given = table if isinstance(entry, str) else {**entry, "table": table}
    settings = {"rekey": REKEY} if capability == "rekey" else {}
    config = Config.from_context({"tables": [given], "stackName": "Shop", **settings})
    keys = KeyEnumeration(own, "Keys", config=config, network=Network(vpc, **network))
    if capability != "keys":
        CONSTRUCTS[capability](own, "Capability", keys)
    return own


@pytest.mark.parametrize("capability", [name for name in ENDPOINTS if STREAMS in ENDPOINTS[name]])
def test_streams_cannot_be_read_from_isolated_subnets_without_an_endpoint(capability: str) -> None:
    with pytest.raises(ConfigError, match=r"reads DynamoDB Streams.*streams_endpoint"):
        made(capability)
    for streams_endpoint in (PRIVATE_DNS, ADDRESS):
        made(capability, streams_endpoint=streams_endpoint)


@pytest.mark.parametrize("capability", ENDPOINTS)
def test_isolated_functions_are_noted_with_the_endpoints_that_they_need(capability: str) -> None:
    notes = assertions.Annotations.from_stack(made(capability, streams_endpoint=PRIVATE_DNS))
    for services in (ENDPOINTS["keys"], ENDPOINTS[capability]):
        note = f"the VPC needs endpoints for {', '.join(services)}[.]"
        notes.has_info("*", assertions.Match.string_like_regexp(note))


def test_functions_get_the_address_of_streams() -> None:
    """boto3 reads it from the environment; with private DNS there is nothing to set."""
    for given, expected in ((ADDRESS, {ADDRESS}), (PRIVATE_DNS, {None})):
        own = made("report", streams_endpoint=given)
        body = assertions.Template.from_stack(own).to_json()
        found = Deployed(body).of_type("AWS::Lambda::Function").values()
        ours = [one["Properties"] for one in found if "FunctionName" in one["Properties"]]
        named = {one["Environment"]["Variables"].get(STREAMS_VARIABLE) for one in ours}
        assert named == expected, json.dumps(given)


def test_boto3_finds_the_address_by_the_variable(monkeypatch: pytest.MonkeyPatch) -> None:
    """So does CutOver, which makes its client without an address."""
    monkeypatch.setenv(STREAMS_VARIABLE, ADDRESS)
    client = boto3.client("dynamodbstreams", region_name=REGION)
    assert client.meta.endpoint_url == ADDRESS


@pytest.mark.parametrize("is_chosen", [False, True])
def test_only_the_subnets_of_the_functions_matter(is_chosen: bool) -> None:
    """A VPC may have isolated subnets beside those that have a way out."""
    own = Stack(asset_free_app(), "Shop", env=Environment(account=ACCOUNT, region=REGION))
    kinds = (ec2.SubnetType.PUBLIC, ec2.SubnetType.PRIVATE_WITH_EGRESS)
    outer = [ec2.SubnetConfiguration(name=kind.name.title(), subnet_type=kind) for kind in kinds]
    vpc = ec2.Vpc(own, "Network", subnet_configuration=[ISOLATED, *outer])
    isolated = ec2.SubnetSelection(subnet_type=ec2.SubnetType.PRIVATE_ISOLATED)
    network = Network(vpc, subnets=isolated if is_chosen else None)
    tables = Config.from_context(CONTEXTS["report"]).tables
    if is_chosen:
        with pytest.raises(ConfigError, match="reads DynamoDB Streams"):
            network.check(own, "report", tables)
    else:
        network.check(own, "report", tables)


def test_tables_of_another_region_are_out_of_reach() -> None:
    with pytest.raises(ConfigError, match=r"cannot reach tables of another region: .*Far"):
        made("keys", FAR)


def test_an_endpoint_of_streams_serves_one_region() -> None:
    own = Stack(asset_free_app(), "Shop", env=Environment(account=ACCOUNT, region=REGION))
    network = Network(ec2.Vpc(own, "Network", max_azs=2), streams_endpoint=ADDRESS)
    config = Config.from_context({"tables": [{**REPORTED, "table": FAR}], "stackName": "Shop"})
    keys = KeyEnumeration(own, "Keys", config=config, network=network)
    with pytest.raises(ConfigError, match=r"serves its own region only, and not .*Far"):
        KeyReports(own, "Reports", keys)


def test_with_a_way_out_nothing_is_refused() -> None:
    own = Stack(asset_free_app(), "Shop", env=Environment(account=ACCOUNT, region=REGION))
    config = Config.from_context({"tables": [REPORTED, FAR], "stackName": "Shop"})
    network = Network(ec2.Vpc(own, "Network", max_azs=2))
    KeyReports(own, "Reports", KeyEnumeration(own, "Keys", config=config, network=network))
    note = assertions.Match.string_like_regexp("the VPC needs endpoints")
    assertions.Annotations.from_stack(own).has_no_info("*", note)


@pytest.mark.parametrize("address", ["vpce-1a2b.streams", "http://streams", f"{ADDRESS}/x", ""])
def test_an_address_that_is_none_is_refused(address: str) -> None:
    with pytest.raises(ConfigError, match="must be an address as"):
        made("keys", streams_endpoint=address)
