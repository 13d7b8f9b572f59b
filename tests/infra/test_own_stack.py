"""The constructs in somebody's own stack: over their tables, topic, bucket, layer and network."""

from collections.abc import Callable
from typing import Any

import pytest
from aws_cdk import Environment, Stack, Tags, assertions
from aws_cdk import aws_dynamodb as dynamodb
from aws_cdk import aws_ec2 as ec2
from aws_cdk import aws_iam as iam
from aws_cdk import aws_kms as kms
from aws_cdk import aws_lambda as lambda_
from aws_cdk import aws_s3 as s3
from aws_cdk import aws_sns as sns

from infra import (
    ConfigError,
    KeyEnumeration,
    KeyIndex,
    Network,
    Rekey,
    ShardedTables,
    keyhop_pair,
    keyhop_table,
)
from testing.marks import prove
from tests.infra.apps import app
from tests.infra.template import (
    ACCOUNT,
    BUCKET,
    FUNCTIONS,
    KEY_INDEX_FUNCTIONS,
    REGION,
    SHARDING_FUNCTIONS,
    Deployed,
)

BY_STRING = dynamodb.AttributeType.STRING
KEY = {
    "partition_key": dynamodb.Attribute(name="pk", type=BY_STRING),
    "sort_key": dynamodb.Attribute(name="sk", type=BY_STRING),
}


def stack(name: str = "Shop", **options: Any) -> Stack:
    return Stack(app(), name, **options)


def template(of: Stack) -> Deployed:
    return Deployed(assertions.Template.from_stack(of).to_json())


@pytest.fixture(scope="module")
def shop() -> Deployed:
    """Three tables: one with an index, one sharded with a key of its own, one imported."""
    own = stack()
    orders = dynamodb.TableV2(own, "Orders", **KEY)
    secret = dynamodb.Table(own, "Secret", **KEY, encryption_key=kms.Key(own, "SecretKey"))
    events = dynamodb.Table.from_table_name(own, "Theirs", "Events")
    topic = sns.Topic(own, "OnCall")
    keys = KeyEnumeration(
        own,
        "Keys",
        tables=[
            keyhop_table(orders, key_index=True, key_attributes=["pk", "sk"]),
            keyhop_table(secret, sharding={"partition_key": "pk"}),
            events,
        ],
        alarm_topic=topic,
        worker_memory_mb=2048,
    )
    KeyIndex(own, "KeyIndex", keys)
    ShardedTables(own, "Sharding", keys)
    Tags.of(own).add("team", "orders")
    boundary = iam.ManagedPolicy.from_managed_policy_name(own, "Boundary", "Developers")
    iam.PermissionsBoundary.of(own).apply(boundary)
    return template(own)


def tables_of(shop: Deployed) -> dict[str, str]:
    """The logical ids of their tables, by their construct's ids."""
    kinds = ("AWS::DynamoDB::GlobalTable", "AWS::DynamoDB::Table")
    named = [name for kind in kinds for name in shop.of_type(kind)]
    return {own: name for own in ("Orders", "Secret") for name in named if name.startswith(own)}


def of_function(shop: Deployed, name: str) -> dict[str, Any]:
    (found,) = (
        one["Properties"]
        for one in shop.of_type("AWS::Lambda::Function").values()
        if one["Properties"].get("FunctionName") == name
    )
    return dict(found)


def statements(shop: Deployed, sid: str) -> list[dict[str, Any]]:
    kinds = ("AWS::IAM::Policy", "AWS::IAM::ManagedPolicy")
    policies = [one for kind in kinds for one in shop.of_type(kind).values()]
    found = [s for one in policies for s in one["Properties"]["PolicyDocument"]["Statement"]]
    return [statement for statement in found if statement.get("Sid", "").startswith(sid)]


def test_their_tables_are_referred_to_and_not_named(shop: Deployed):
    own = tables_of(shop)
    tables = of_function(shop, "Shop-PlanRun")["Environment"]["Variables"]["KEYHOP_TABLES"]
    assert tables == {
        "Fn::Join": [
            "",
            ['["', {"Ref": own["Orders"]}, '", "', {"Ref": own["Secret"]}, '", "Events"]'],
        ]
    }
    (indexes,) = {
        str(of_function(shop, f"Shop-{name}")["Environment"]["Variables"]["KEYHOP_KEY_INDEXES"])
        for name in ("PlanRun", "ScanSegments", "KeepIndex", "ManageIndex")
    }
    assert own["Orders"] in indexes
    assert own["Secret"] not in indexes


def test_rights_name_their_tables_by_the_arns_that_these_have(shop: Deployed):
    own = {"Fn::GetAtt": [tables_of(shop)["Orders"], "Arn"]}
    for sid in ("PutAndDeleteSentinels", "TurnStreamsOnAndOff"):
        for statement in statements(shop, sid):
            assert statement["Resource"] == own
    assert statements(shop, "PutAndDeleteSentinels")


def test_what_encrypts_their_table_may_be_used_through_dynamodb_only(shop: Deployed):
    found = statements(shop, "DecryptTheTables")
    (key,) = shop.of_type("AWS::KMS::Key")
    assert found
    for statement in found:
        assert statement["Resource"] == {"Fn::GetAtt": [key, "Arn"]}
        (services,) = statement["Condition"]["StringEquals"].values()
        shown = shop.resolve(services)
        assert f"dynamodb.{REGION}.amazonaws.com" in shown


def test_all_alarms_tell_their_topic_and_no_other_is_made(shop: Deployed):
    (topic,) = shop.of_type("AWS::SNS::Topic")
    alarms = shop.of_type("AWS::CloudWatch::Alarm").values()
    assert len(alarms) > 8
    assert all(one["Properties"]["AlarmActions"] == [{"Ref": topic}] for one in alarms)


def test_names_begin_with_their_stacks_and_outputs_are_found_by_the_command(shop: Deployed):
    for name in (*FUNCTIONS, *KEY_INDEX_FUNCTIONS, *SHARDING_FUNCTIONS):
        assert of_function(shop, f"Shop-{name}")
    assert {"StateMachineArn", "ResultsBucketName", "BuildKeyIndexArn", "DrainShardsArn"} <= set(
        shop.body["Outputs"]
    )
    (metadata,) = (
        one["Properties"]["TableName"]
        for one in shop.of_type("AWS::DynamoDB::Table").values()
        if "TableName" in one["Properties"]
    )
    assert metadata == "Shop-shards-Secret"


def test_their_table_goes_after_the_guard_has_let_go_of_it(shop: Deployed):
    guard = shop.only("Custom::KeeperMappings")
    assert {*tables_of(shop).values()} <= {*guard["DependsOn"]}
    assert guard["Properties"]["Tables"] == [{"Ref": tables_of(shop)["Orders"]}]


def test_tags_and_a_permissions_boundary_reach_everything(shop: Deployed):
    roles = shop.of_type("AWS::IAM::Role").values()
    assert roles
    for role in roles:
        assert "Developers" in str(role["Properties"]["PermissionsBoundary"])
    for kind in ("AWS::Lambda::Function", "AWS::StepFunctions::StateMachine", "AWS::IAM::Role"):
        for one in shop.of_type(kind).values():
            assert {"Key": "team", "Value": "orders"} in one["Properties"]["Tags"]


def test_settings_are_those_of_keyhop_json(shop: Deployed):
    assert of_function(shop, "Shop-ScanSegments")["MemorySize"] == 2048


@pytest.fixture(scope="module")
def enclosed() -> Deployed:
    """In a network, with a bucket and a layer of their own, over a table of another account."""
    own = stack("Enclosed", env=Environment(account=ACCOUNT, region=REGION))
    vpc = ec2.Vpc(own, "Network", max_azs=2)
    far = f"arn:aws:dynamodb:{REGION}:222222222222:table/Far"
    bucket = s3.Bucket.from_bucket_name(own, "Results", BUCKET)
    layer = "arn:aws:lambda:eu-west-1:111122223333:layer:keyhop:3"
    group = ec2.SecurityGroup(own, "Group", vpc=vpc)
    given = {
        "results_bucket": bucket,
        "packages": lambda_.LayerVersion.from_layer_version_arn(own, "Layer", layer),
        "network": Network(vpc, security_groups=[group]),
    }
    KeyEnumeration(own, "Keys", tables=[dynamodb.Table.from_table_arn(own, "Far", far)], **given)
    near = dynamodb.Table.from_table_name(own, "Near", "Near")
    KeyEnumeration(own, "Others", tables=[near], stack_name="Others", **given)
    return template(own)


def test_functions_have_their_addresses_in_the_network(enclosed: Deployed):
    found = enclosed.of_type("AWS::Lambda::Function").values()
    ours = [one for one in found if "FunctionName" in one["Properties"]]
    assert len(ours) == 2 * (len(FUNCTIONS) + 1)
    for one in ours:
        network = one["Properties"]["VpcConfig"]
        assert len(network["SubnetIds"]) == 2
        assert len(network["SecurityGroupIds"]) == 1
    assert len(statements(enclosed, "HaveAddressesInTheNetwork")) == len(ours)


def test_their_bucket_and_their_layer_are_taken(enclosed: Deployed):
    assert not enclosed.of_type("AWS::S3::Bucket")
    assert not enclosed.of_type("AWS::Lambda::LayerVersion")
    planner = of_function(enclosed, "Enclosed-PlanRun")
    assert planner["Environment"]["Variables"]["KEYHOP_BUCKET"] == BUCKET


def test_a_table_of_another_account_is_known_by_its_arn(enclosed: Deployed):
    planner = of_function(enclosed, "Enclosed-PlanRun")
    tables = planner["Environment"]["Variables"]["KEYHOP_TABLES"]
    assert tables == f'["arn:aws:dynamodb:{REGION}:222222222222:table/Far"]'


def test_two_deployments_fit_into_one_stack(enclosed: Deployed):
    outputs = enclosed.body["Outputs"]
    assert "StateMachineArn" in outputs
    assert [name for name in outputs if name.startswith("OthersStateMachineArn")]


def refused(make: Callable[[Stack, dynamodb.ITable], object], **options: Any) -> str:
    own = stack("Shop", **options)
    with pytest.raises(ConfigError) as error:
        make(own, dynamodb.Table(own, "Orders", **KEY))
    return str(error.value)


def test_what_is_wrong_is_one_sentence():
    assert "did you mean keyIndex?" in refused(lambda _, table: keyhop_table(table, key_indx=True))
    assert "logLevel" in refused(
        lambda own, table: KeyEnumeration(own, "Keys", tables=[table], log_level="LOUD")
    )
    assert "no table of Shop/Keys has key_index" in refused(
        lambda own, table: KeyIndex(own, "Index", KeyEnumeration(own, "Keys", tables=[table]))
    )
    assert "it must be left out with keyIndex" in refused(
        lambda own, table: keyhop_table(table, key_index=True, sharding={"partition_key": "pk"})
    )
    assert "tables is []" in refused(lambda own, _: KeyEnumeration(own, "Keys", tables=[]))


def test_an_index_needs_its_table_at_home():
    own = stack("Shop", env=Environment(account=ACCOUNT, region=REGION))
    arn = f"arn:aws:dynamodb:{REGION}:222222222222:table/Far"
    far = dynamodb.Table.from_table_arn(own, "Far", arn)
    with pytest.raises(ConfigError, match="another account or region"):
        keyhop_table(far, key_index=True)


@pytest.mark.parametrize("both", [True, prove(False)], ids=["both", "the source"])
def test_a_pair_of_their_tables_is_rekeyed_in_their_stack(both: bool):
    own = stack()
    orders = dynamodb.Table(own, "Orders", **KEY, encryption_key=kms.Key(own, "Secret"))
    there: Any = dynamodb.TableV2(own, "ByTenant", **KEY) if both else "OrdersByTenant"
    keys = KeyEnumeration(
        own,
        "Keys",
        tables=[dynamodb.Table.from_table_name(own, "Theirs", "Events")],
        rekey=[keyhop_pair(orders, there)],
        verify_schedule="never",
    )
    Rekey(own, "Rekey", keys)
    made = template(own)
    for sid in ("PutItemsIntoTheDestination", "GoByTheSideTables", "DecryptTheTables"):
        assert statements(made, sid), sid
    (source,) = statements(made, "ReadTheItemsOfTheSource")
    (name,) = [name for name in made.of_type("AWS::DynamoDB::Table") if name.startswith("Orders")]
    assert source["Resource"] == {"Fn::GetAtt": [name, "Arn"]}
    told = of_function(made, "Shop-Replicate")["Environment"]["Variables"]["KEYHOP_REKEY"]
    assert {"Ref": name} in told["Fn::Join"][1]
    (guard,) = made.of_type("Custom::KeeperMappings").values()
    assert guard["Properties"]["Rekeyed"][0][0] == {"Ref": name}


def test_a_stack_without_a_pair_has_nothing_to_rekey():
    own = stack()
    keys = KeyEnumeration(own, "Keys", tables=[dynamodb.TableV2(own, "Orders", **KEY)])
    with pytest.raises(ConfigError, match="has rekey"):
        Rekey(own, "Rekey", keys)
