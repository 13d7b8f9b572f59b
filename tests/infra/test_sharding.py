"""Tests of the resources for sharded tables: metadata, functions, schedule, and the drain."""

import importlib
import json
from pathlib import Path
from typing import Any

import pytest

from infra.sharding import CALL_SECONDS
from tests.infra.conftest import CONTEXTS, deployed, stack_of
from tests.infra.template import SHARDING_FUNCTIONS, Deployed, function_arn, states_arn

METADATA = ("Keyhop-shards-Audit", "device-shards")
TABLES = ["Audit", "Devices"]


def metadata_of(template: Deployed) -> dict[str, dict[str, Any]]:
    """Return the resources of the metadata tables by name."""
    tables = template.of_type("AWS::DynamoDB::Table").values()
    return {table["Properties"]["TableName"]: dict(table) for table in tables}


@pytest.mark.parametrize("name", ["template", "indexed"])
def test_without_a_sharded_table_nothing_of_sharding_is_deployed(name: str, request: Any):
    plain: Deployed = request.getfixturevalue(name)
    text = json.dumps(plain.body)
    assert not plain.of_type("AWS::DynamoDB::Table")
    assert not plain.of_type("AWS::Lambda::Permission")
    for word in (*SHARDING_FUNCTIONS, "DrainShards", "KEYHOP_SHARDING", "Sharded"):
        assert word not in text


def test_the_schedule_without_a_sharded_table_changes_nothing(plain: Deployed):
    settings = {"shrinkSchedule": "rate(2 days)", "startDrains": True}
    assert deployed(stack_of({**CONTEXTS["plain"], **settings})).body == plain.body


def test_each_sharded_table_has_a_metadata_table_with_the_same_partition_key(sharded: Deployed):
    keys = {
        name: (table["Properties"]["KeySchema"], table["Properties"]["AttributeDefinitions"])
        for name, table in metadata_of(sharded).items()
    }
    assert keys == {
        name: (
            [{"AttributeName": key, "KeyType": "HASH"}],
            [{"AttributeName": key, "AttributeType": type_}],
        )
        for name, key, type_ in zip(METADATA, ("path", "device"), ("S", "B"), strict=True)
    }


@pytest.mark.parametrize("name", METADATA)
def test_metadata_is_on_demand_can_be_restored_and_outlives_the_stack(
    sharded: Deployed, laptop: Deployed, name: str
):
    """Without the metadata, queries find only the items of the first shard.

    The table's name is fixed. A table that the rollback of a failed first deployment could not
    delete would block the next deployment.
    """
    table = metadata_of(sharded)[name]
    properties = table["Properties"]
    assert properties["BillingMode"] == "PAY_PER_REQUEST"
    assert properties["PointInTimeRecoverySpecification"] == {"PointInTimeRecoveryEnabled": True}
    assert "SSESpecification" not in properties, "an AWS owned key is free of charge"
    assert table["DeletionPolicy"] == "RetainExceptOnCreate"
    assert table["UpdateReplacePolicy"] == "Retain"
    assert "DeletionProtectionEnabled" not in properties
    assert metadata_of(laptop)[name]["DeletionPolicy"] == "Delete"


def test_the_guard_protects_the_metadata_after_a_deployment(
    sharded: Deployed, plain: Deployed, laptop: Deployed
):
    protected = [
        template.only("Custom::KeeperMappings")["Properties"]["Protected"]
        for template in (sharded, plain, laptop)
    ]
    assert protected == [[*METADATA], [], []]


def test_finish_run_knows_how_tables_are_sharded(sharded: Deployed):
    finish, query = (sharded.environment(name) for name in ("FinishRun", "QuerySharded"))
    assert finish["KEYHOP_SHARDING"] == query["KEYHOP_SHARDING"]


@pytest.mark.parametrize("name", SHARDING_FUNCTIONS)
def test_the_template_sets_the_variables_of_the_settings_class(sharded: Deployed, name: str):
    module = importlib.import_module("handlers.settings")
    settings = module.ShardingSettings.from_env(sharded.environment(name))
    assert settings.tables == TABLES
    assert settings.sharded == {
        "Audit": {
            "metadata": "Keyhop-shards-Audit",
            "placement": "calculated",
            "hash": "jump",
            "appendOnly": True,
            "separator": "_",
            "mostShards": 64,
        },
        "Devices": {
            "metadata": "device-shards",
            "placement": "random",
            "hash": "modulo",
            "appendOnly": False,
            "separator": "#",
            "mostShards": 16,
        },
    }


@pytest.mark.parametrize(("name", "start"), [("sharded", False), ("draining", True)])
def test_propose_drains_knows_whether_to_start_them(name: str, start: bool, request: Any):
    settings = importlib.import_module("handlers.settings")
    template: Deployed = request.getfixturevalue(name)
    parsed = settings.ProposeSettings.from_env(template.environment("ProposeDrains"))
    machine = states_arn("stateMachine:Keyhop-DrainShards")
    assert parsed == settings.ProposeSettings(TABLES, machine, start)


def test_the_library_creates_its_tables_from_the_environment(
    sharded: Deployed, monkeypatch: pytest.MonkeyPatch
):
    """The library sends no request before the first call, so this test needs no service."""
    from handlers import sharding

    for name, value in sharded.environment("WriteSharded").items():
        monkeypatch.setenv(name, value)
    monkeypatch.setenv("AWS_DEFAULT_REGION", "eu-west-1")
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", "test")
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "test")
    sharding.warm.cache_clear()
    audit, _ = sharding.warm("Audit", True)
    devices, _ = sharding.warm("Devices", False)
    assert (audit.placement.text("_"), audit.policy.most) == ("append-only calculated jump _", 64)
    assert (devices.placement.text("#"), devices.policy.most) == ("random modulo #", 16)
    assert sharding.warm("Audit", True)[0] is audit
    sharding.warm.cache_clear()


@pytest.mark.parametrize("service", ["cloudwatch", "dynamodb", "stepfunctions"])
def test_the_layer_has_the_models_of_the_services(packages: Path, service: str):
    assert (packages / "python" / "botocore" / "data" / service).is_dir()


def test_functions_for_sharding_have_their_memory_and_timeout(sharded: Deployed):
    shapes = {
        name: (function["MemorySize"], function["Timeout"])
        for name in SHARDING_FUNCTIONS
        for function in [sharded.function(name)]
    }
    assert shapes == {
        "WriteSharded": (1769, CALL_SECONDS),
        "QuerySharded": (1769, CALL_SECONDS),
        "MoveShards": (1769, 900),
        "ProposeDrains": (512, 900),
    }


def shrink_rules(template: Deployed) -> list[dict[str, Any]]:
    """Return the rules that invoke ProposeDrains."""
    rules = map(template.resolve, template.properties_of("AWS::Events::Rule"))
    propose_arn = function_arn("Keyhop-ProposeDrains")
    return [rule for rule in rules if rule["Targets"][0]["Arn"] == propose_arn]


def test_drains_are_proposed_once_a_day(sharded: Deployed):
    (rule,) = shrink_rules(sharded)
    assert rule["ScheduleExpression"] == "rate(1 day)"
    assert json.loads(rule["Targets"][0]["Input"]) == {"scheduled": True}


def test_the_context_sets_the_schedule(scheduled: Deployed, unscheduled: Deployed):
    (rule,) = shrink_rules(scheduled)
    assert rule["ScheduleExpression"] == "cron(0 3 ? * SUN *)"
    assert not shrink_rules(unscheduled)
    assert not unscheduled.of_type("AWS::Lambda::Permission")


def test_the_outputs_name_the_functions_and_the_machine(sharded: Deployed):
    outputs = {
        name: sharded.resolve(output["Value"]) for name, output in sharded.body["Outputs"].items()
    }
    for name in ("WriteSharded", "QuerySharded", "ProposeDrains"):
        assert outputs[f"{name}Name"] == f"Keyhop-{name}"
    assert outputs["DrainShardsArn"] == states_arn("stateMachine:Keyhop-DrainShards")
