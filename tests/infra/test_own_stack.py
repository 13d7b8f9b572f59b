"""Tests of the constructs in a user's stack, with the user's tables, topic, bucket and network."""

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
from tests.infra.apps import asset_free_app
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


def new_stack(name: str = "Shop", **options: Any) -> Stack:
    return Stack(asset_free_app(), name, **options)


def template(stack: Stack) -> Deployed:
    return Deployed(assertions.Template.from_stack(stack).to_json())


@pytest.fixture(scope="module")
def shop() -> Deployed:
    """A stack with an indexed, an encrypted sharded and an imported table."""
    stack = new_stack()
    orders = dynamodb.TableV2(stack, "Orders", **KEY)
    secret = dynamodb.Table(stack, "Secret", **KEY, encryption_key=kms.Key(stack, "SecretKey"))
    events = dynamodb.Table.from_table_name(stack, "Theirs", "Events")
    topic = sns.Topic(stack, "OnCall")
    keys = KeyEnumeration(
        stack,
        "Keys",
        tables=[
            keyhop_table(orders, key_index=True, key_attributes=["pk", "sk"]),
            keyhop_table(secret, sharding={"partition_key": "pk"}),
            events,
        ],
        alarm_topic=topic,
        worker_memory_mb=2048,
    )
    KeyIndex(stack, "KeyIndex", keys)
    ShardedTables(stack, "Sharding", keys)
    Tags.of(stack).add("team", "orders")
    boundary = iam.ManagedPolicy.from_managed_policy_name(stack, "Boundary", "Developers")
    iam.PermissionsBoundary.of(stack).apply(boundary)
    return template(stack)


def tables_of(shop: Deployed) -> dict[str, str]:
    """Return the logical ids of the user's tables by construct id."""
    kinds = ("AWS::DynamoDB::GlobalTable", "AWS::DynamoDB::Table")
    logical_ids = [name for kind in kinds for name in shop.of_type(kind)]
    names = ("Orders", "Secret")
    return {name: id_ for name in names for id_ in logical_ids if id_.startswith(name)}


def of_function(shop: Deployed, name: str) -> dict[str, Any]:
    functions = shop.properties_of("AWS::Lambda::Function")
    (function,) = (item for item in functions if item.get("FunctionName") == name)
    return dict(function)


def statements(shop: Deployed, sid: str) -> list[dict[str, Any]]:
    policies = shop.properties_of("AWS::IAM::Policy", "AWS::IAM::ManagedPolicy")
    return [
        statement
        for policy in policies
        for statement in policy["PolicyDocument"]["Statement"]
        if statement.get("Sid", "").startswith(sid)
    ]


def test_tables_of_the_stack_are_referenced_and_not_named(shop: Deployed):
    logical_ids = tables_of(shop)
    tables = of_function(shop, "Shop-PlanRun")["Environment"]["Variables"]["KEYHOP_TABLES"]
    assert tables == {
        "Fn::Join": [
            "",
            [
                '["',
                {"Ref": logical_ids["Orders"]},
                '", "',
                {"Ref": logical_ids["Secret"]},
                '", "Events"]',
            ],
        ]
    }
    (indexes,) = {
        str(of_function(shop, f"Shop-{name}")["Environment"]["Variables"]["KEYHOP_KEY_INDEXES"])
        for name in ("PlanRun", "ScanSegments", "KeepIndex", "ManageIndex")
    }
    assert logical_ids["Orders"] in indexes
    assert logical_ids["Secret"] not in indexes


def test_permissions_reference_the_arns_of_the_tables(shop: Deployed):
    table_arn = {"Fn::GetAtt": [tables_of(shop)["Orders"], "Arn"]}
    for sid in ("PutAndDeleteSentinels", "TurnStreamsOnAndOff"):
        for statement in statements(shop, sid):
            assert statement["Resource"] == table_arn
    assert statements(shop, "PutAndDeleteSentinels")


def test_the_encryption_key_of_a_table_may_be_used_through_dynamodb_only(shop: Deployed):
    decrypting = statements(shop, "DecryptTheTables")
    (key,) = shop.of_type("AWS::KMS::Key")
    assert decrypting
    for statement in decrypting:
        assert statement["Resource"] == {"Fn::GetAtt": [key, "Arn"]}
        (services,) = statement["Condition"]["StringEquals"].values()
        assert f"dynamodb.{REGION}.amazonaws.com" in shop.resolve(services)


def test_all_alarms_use_the_given_topic_and_no_other_is_created(shop: Deployed):
    (topic,) = shop.of_type("AWS::SNS::Topic")
    alarms = shop.properties_of("AWS::CloudWatch::Alarm")
    assert len(alarms) > 8
    assert all(alarm["AlarmActions"] == [{"Ref": topic}] for alarm in alarms)


def test_names_begin_with_the_stack_name_and_the_command_finds_the_outputs(shop: Deployed):
    for name in (*FUNCTIONS, *KEY_INDEX_FUNCTIONS, *SHARDING_FUNCTIONS):
        assert of_function(shop, f"Shop-{name}")
    assert {"StateMachineArn", "ResultsBucketName", "BuildKeyIndexArn", "DrainShardsArn"} <= set(
        shop.body["Outputs"]
    )
    tables = shop.properties_of("AWS::DynamoDB::Table")
    names = [table["TableName"] for table in tables if "TableName" in table]
    assert names == ["Shop-shards-Secret"]


def test_a_table_is_deleted_after_the_guard_has_released_it(shop: Deployed):
    guard = shop.only("Custom::KeeperMappings")
    assert {*tables_of(shop).values()} <= {*guard["DependsOn"]}
    assert guard["Properties"]["Tables"] == [{"Ref": tables_of(shop)["Orders"]}]


def test_tags_and_a_permissions_boundary_reach_everything(shop: Deployed):
    roles = shop.properties_of("AWS::IAM::Role")
    assert roles
    for role in roles:
        assert "Developers" in str(role["PermissionsBoundary"])
    kinds = ("AWS::Lambda::Function", "AWS::StepFunctions::StateMachine", "AWS::IAM::Role")
    for properties in shop.properties_of(*kinds):
        assert {"Key": "team", "Value": "orders"} in properties["Tags"]


def test_options_are_the_settings_of_keyhop_json(shop: Deployed):
    assert of_function(shop, "Shop-ScanSegments")["MemorySize"] == 2048


@pytest.fixture(scope="module")
def enclosed() -> Deployed:
    """A stack with a VPC, a bucket, a layer and a table of another account."""
    stack = new_stack("Enclosed", env=Environment(account=ACCOUNT, region=REGION))
    vpc = ec2.Vpc(stack, "Network", max_azs=2)
    far = f"arn:aws:dynamodb:{REGION}:222222222222:table/Far"
    bucket = s3.Bucket.from_bucket_name(stack, "Results", BUCKET)
    layer = "arn:aws:lambda:eu-west-1:111122223333:layer:keyhop:3"
    group = ec2.SecurityGroup(stack, "Group", vpc=vpc)
    options = {
        "results_bucket": bucket,
        "packages": lambda_.LayerVersion.from_layer_version_arn(stack, "Layer", layer),
        "network": Network(vpc, security_groups=[group]),
    }
    far_table = dynamodb.Table.from_table_arn(stack, "Far", far)
    KeyEnumeration(stack, "Keys", tables=[far_table], **options)
    near_table = dynamodb.Table.from_table_name(stack, "Near", "Near")
    KeyEnumeration(stack, "Others", tables=[near_table], stack_name="Others", **options)
    return template(stack)


def test_functions_run_in_the_vpc(enclosed: Deployed):
    all_functions = enclosed.properties_of("AWS::Lambda::Function")
    functions = [function for function in all_functions if "FunctionName" in function]
    assert len(functions) == 2 * (len(FUNCTIONS) + 1)
    for function in functions:
        network = function["VpcConfig"]
        assert len(network["SubnetIds"]) == 2
        assert len(network["SecurityGroupIds"]) == 1
    assert len(statements(enclosed, "HaveAddressesInTheNetwork")) == len(functions)


def test_the_given_bucket_and_layer_are_used(enclosed: Deployed):
    assert not enclosed.of_type("AWS::S3::Bucket")
    assert not enclosed.of_type("AWS::Lambda::LayerVersion")
    planner = of_function(enclosed, "Enclosed-PlanRun")
    assert planner["Environment"]["Variables"]["KEYHOP_BUCKET"] == BUCKET


def test_a_table_of_another_account_is_identified_by_its_arn(enclosed: Deployed):
    planner = of_function(enclosed, "Enclosed-PlanRun")
    tables = planner["Environment"]["Variables"]["KEYHOP_TABLES"]
    assert tables == f'["arn:aws:dynamodb:{REGION}:222222222222:table/Far"]'


def test_two_deployments_fit_into_one_stack(enclosed: Deployed):
    outputs = enclosed.body["Outputs"]
    assert "StateMachineArn" in outputs
    assert [name for name in outputs if name.startswith("OthersStateMachineArn")]


def refused(make: Callable[[Stack, dynamodb.ITable], object], **options: Any) -> str:
    stack = new_stack("Shop", **options)
    with pytest.raises(ConfigError) as error:
        make(stack, dynamodb.Table(stack, "Orders", **KEY))
    return str(error.value)


def test_a_configuration_error_is_one_sentence():
    assert "did you mean keyIndex?" in refused(lambda _, table: keyhop_table(table, key_indx=True))
    assert "logLevel" in refused(
        lambda stack, table: KeyEnumeration(stack, "Keys", tables=[table], log_level="LOUD")
    )
    assert "no table of Shop/Keys has key_index" in refused(
        lambda stack, table: KeyIndex(stack, "Index", KeyEnumeration(stack, "Keys", tables=[table]))
    )
    assert "it must be left out with keyIndex" in refused(
        lambda stack, table: keyhop_table(table, key_index=True, sharding={"partition_key": "pk"})
    )
    assert "tables is []" in refused(lambda stack, _: KeyEnumeration(stack, "Keys", tables=[]))


def test_a_key_index_needs_a_table_in_the_same_account_and_region():
    stack = new_stack("Shop", env=Environment(account=ACCOUNT, region=REGION))
    arn = f"arn:aws:dynamodb:{REGION}:222222222222:table/Far"
    far = dynamodb.Table.from_table_arn(stack, "Far", arn)
    with pytest.raises(ConfigError, match="another account or region"):
        keyhop_table(far, key_index=True)


@pytest.mark.parametrize("owns_destination", [True, prove(False)], ids=["both", "the source"])
def test_a_stack_rekeys_a_pair_of_its_tables(owns_destination: bool):
    stack = new_stack()
    orders = dynamodb.Table(stack, "Orders", **KEY, encryption_key=kms.Key(stack, "Secret"))
    destination: Any = "OrdersByTenant"
    if owns_destination:
        destination = dynamodb.TableV2(stack, "ByTenant", **KEY)
    keys = KeyEnumeration(
        stack,
        "Keys",
        tables=[dynamodb.Table.from_table_name(stack, "Theirs", "Events")],
        rekey=[keyhop_pair(orders, destination)],
        verify_schedule="never",
    )
    Rekey(stack, "Rekey", keys)
    deployed = template(stack)
    for sid in ("PutItemsIntoTheDestination", "GoByTheSideTables", "DecryptTheTables"):
        assert statements(deployed, sid), sid
    (source,) = statements(deployed, "ReadTheItemsOfTheSource")
    tables = deployed.of_type("AWS::DynamoDB::Table")
    (name,) = [name for name in tables if name.startswith("Orders")]
    assert source["Resource"] == {"Fn::GetAtt": [name, "Arn"]}
    variables = of_function(deployed, "Shop-Replicate")["Environment"]["Variables"]["KEYHOP_REKEY"]
    assert {"Ref": name} in variables["Fn::Join"][1]
    (guard,) = deployed.properties_of("Custom::KeeperMappings")
    assert guard["Rekeyed"][0][0] == {"Ref": name}


def test_a_stack_without_a_pair_has_nothing_to_rekey():
    stack = new_stack()
    keys = KeyEnumeration(stack, "Keys", tables=[dynamodb.TableV2(stack, "Orders", **KEY)])
    with pytest.raises(ConfigError, match="has rekey"):
        Rekey(stack, "Rekey", keys)
