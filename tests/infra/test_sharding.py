"""The part of the stack for sharded tables: metadata, functions, schedule, and the drain."""

import ast
import importlib
import json
import re
import subprocess
import sys
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import pytest

from infra.functions import LAMBDAS
from infra.machines import names_in
from infra.sharding import CALL_SECONDS, DEFINITION
from tests.infra.conftest import SHARDED_CONTEXT, deployed, stack_of
from tests.infra.template import SHARDING_FUNCTIONS, Deployed, function_arn, states_arn

TEXT = DEFINITION.read_text()
DRAIN = json.loads(TEXT)
STATES: dict[str, dict[str, Any]] = DRAIN["States"]
MOVE = STATES["MoveShards"]
NO_ROOM = "Lambda.TooManyRequestsException"
OF_AWS = re.compile(r"(States|Lambda|Sandbox|Runtime)\.\w+")
METADATA = ("Keyhop-shards-Audit", "device-shards")
GIVEN = ["Audit", "Devices"]


def environment(template: Deployed, function: str) -> dict[str, str]:
    return dict(template.function(function)["Environment"]["Variables"])


def metadata_of(template: Deployed) -> dict[str, dict[str, Any]]:
    """The metadata tables, whole resources, by their names."""
    tables = template.of_type("AWS::DynamoDB::Table").values()
    return {table["Properties"]["TableName"]: dict(table) for table in tables}


@pytest.fixture(scope="module")
def packages(assembly: Path, template: Deployed) -> tuple[Path, Path]:
    """Code and layer, as they would be uploaded."""
    code = template.function("PlanRun")["Code"]["S3Key"]
    layer = template.only("AWS::Lambda::LayerVersion")["Properties"]["Content"]["S3Key"]
    return assembly / f"asset.{Path(code).stem}", assembly / f"asset.{Path(layer).stem}"


@pytest.mark.parametrize("name", ["template", "kept"])
def test_without_a_sharded_table_nothing_of_it_is_there(name: str, request: Any):
    plain: Deployed = request.getfixturevalue(name)
    text = json.dumps(plain.body)
    assert not plain.of_type("AWS::DynamoDB::Table")
    assert not plain.of_type("AWS::Lambda::Permission")
    for word in (*SHARDING_FUNCTIONS, "DrainShards", "KEYHOP_SHARDING", "Sharded"):
        assert word not in text


@pytest.mark.parametrize("told", [{"shrinkSchedule": "rate(2 days)"}, {"startDrains": True}])
def test_its_schedule_alone_changes_nothing(told: dict[str, Any]):
    plain = deployed(stack_of({"tables": ["Orders"]}))
    assert deployed(stack_of({"tables": ["Orders"], **told})).body == plain.body


def test_sharding_replaces_nothing_that_was_there(kept: Deployed):
    """Turned on later, it must not make CloudFormation replace a bucket or a function."""
    before = deployed(stack_of({"tables": ["Audit"]})).body["Resources"]
    sharding = {"partitionKey": "path"}
    after = deployed(stack_of({"tables": [{"table": "Audit", "sharding": sharding}]}))
    for name, resource in before.items():
        assert after.body["Resources"][name]["Type"] == resource["Type"]


def test_each_sharded_table_has_metadata_of_its_own_under_the_tables_own_key(sharded: Deployed):
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
def test_metadata_is_on_demand_and_can_be_restored(sharded: Deployed, name: str):
    properties = metadata_of(sharded)[name]["Properties"]
    assert properties["BillingMode"] == "PAY_PER_REQUEST"
    assert properties["PointInTimeRecoverySpecification"] == {"PointInTimeRecoveryEnabled": True}
    assert "SSESpecification" not in properties, "the key is AWS's own, which costs nothing"


@pytest.mark.parametrize("name", METADATA)
def test_metadata_outlives_the_stack(sharded: Deployed, name: str):
    """Without it, items in all shards but the first are not found."""
    table = metadata_of(sharded)[name]
    assert table["DeletionPolicy"] == table["UpdateReplacePolicy"] == "Retain"
    assert table["Properties"]["DeletionProtectionEnabled"] is True


def test_metadata_on_a_laptop_goes_with_the_stack():
    laptop = deployed(stack_of({**SHARDED_CONTEXT, "dynamodbEndpoint": "http://127.0.0.1:8000"}))
    for table in metadata_of(laptop).values():
        assert table["DeletionPolicy"] == "Delete"
        assert not table["Properties"]["DeletionProtectionEnabled"]
    for name in SHARDING_FUNCTIONS:
        assert environment(laptop, name)["AWS_ENDPOINT_URL_DYNAMODB"] == "http://127.0.0.1:8000"


@pytest.mark.parametrize("name", SHARDING_FUNCTIONS)
def test_the_environment_in_the_template_is_what_the_settings_class_needs(
    sharded: Deployed, name: str
):
    settings = importlib.import_module("handlers.settings")
    found = settings.ShardingSettings.from_env(environment(sharded, name))
    assert found.tables == GIVEN
    assert found.sharded == {
        "Audit": settings.Sharded("Keyhop-shards-Audit", "calculated", "jump", True, "_", 64),
        "Devices": settings.Sharded("device-shards", "random", "modulo", False, "#", 16),
    }


@pytest.mark.parametrize(("name", "start"), [("sharded", False), ("draining", True)])
def test_who_proposes_is_told_whether_to_start(name: str, start: bool, request: Any):
    settings = importlib.import_module("handlers.settings")
    template: Deployed = request.getfixturevalue(name)
    found = settings.ProposeSettings.from_env(environment(template, "ProposeDrains"))
    machine = states_arn("stateMachine:Keyhop-DrainShards")
    assert found == settings.ProposeSettings(GIVEN, machine, start)


def test_the_environment_makes_tables_that_the_library_takes(
    sharded: Deployed, monkeypatch: pytest.MonkeyPatch
):
    """Nothing is asked before the first call, so this needs no service."""
    from handlers import sharded_tables

    for name, value in environment(sharded, "WriteSharded").items():
        monkeypatch.setenv(name, value)
    monkeypatch.setenv("AWS_DEFAULT_REGION", "eu-west-1")
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", "test")
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "test")
    sharded_tables.warm.cache_clear()
    audit, _ = sharded_tables.warm("Audit", True)
    devices, _ = sharded_tables.warm("Devices", False)
    assert (audit.placement.text("_"), audit.policy.most) == ("append-only calculated jump", 64)
    assert (devices.placement.text("_"), devices.policy.most) == ("random modulo", 16)
    assert sharded_tables.warm("Audit", True)[0] is audit
    sharded_tables.warm.cache_clear()


@pytest.mark.parametrize("name", SHARDING_FUNCTIONS)
def test_every_handler_imports_from_what_is_uploaded_and_from_nothing_else(
    sharded: Deployed, packages: tuple[Path, Path], name: str
):
    """-S: without this Python's own packages. The command line's part is not uploaded."""
    code, layer = packages
    module, function = sharded.function(name)["Handler"].rsplit(".", 1)
    done = subprocess.run(
        [sys.executable, "-S", "-c", f"import {module}; assert callable({module}.{function})"],
        env={
            "PYTHONPATH": f"{code}:{layer / 'python'}",
            "PYTHONDONTWRITEBYTECODE": "1",
            "POWERTOOLS_SERVICE_NAME": "test",
            "POWERTOOLS_TRACE_DISABLED": "true",
        },
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize("service", ["cloudwatch", "dynamodb", "stepfunctions"])
def test_the_layer_has_the_models_of_the_services_that_are_asked(
    packages: tuple[Path, Path], service: str
):
    assert (packages[1] / "python" / "botocore" / "data" / service).is_dir()


def test_a_function_is_shaped_for_its_work(sharded: Deployed):
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


@pytest.mark.parametrize("name", SHARDING_FUNCTIONS)
def test_all_functions_are_alike_in_what_the_operator_sees(sharded: Deployed, name: str):
    function, other = sharded.function(name), sharded.function("PlanRun")
    for field in ("Runtime", "Architectures", "TracingConfig", "Layers", "Code"):
        assert function[field] == other[field]
    group = sharded.body["Resources"][function["LoggingConfig"]["LogGroup"]]["Properties"]
    assert group["LogGroupName"] == f"/aws/lambda/Keyhop-{name}"
    assert group["RetentionInDays"] == 30


def shrink_rules(template: Deployed) -> list[dict[str, Any]]:
    """The rules that invoke ProposeDrains."""
    rules = [
        template.resolve(r["Properties"]) for r in template.of_type("AWS::Events::Rule").values()
    ]
    proposes = function_arn("Keyhop-ProposeDrains")
    return [rule for rule in rules if rule["Targets"][0]["Arn"] == proposes]


def test_it_is_asked_once_a_day_what_can_shrink(sharded: Deployed):
    (rule,) = shrink_rules(sharded)
    assert rule["ScheduleExpression"] == "rate(1 day)"
    assert json.loads(rule["Targets"][0]["Input"]) == {"scheduled": True}


def test_the_context_sets_the_schedule():
    weekly = deployed(stack_of({**SHARDED_CONTEXT, "shrinkSchedule": "cron(0 3 ? * SUN *)"}))
    (rule,) = shrink_rules(weekly)
    assert rule["ScheduleExpression"] == "cron(0 3 ? * SUN *)"
    never = deployed(stack_of({**SHARDED_CONTEXT, "shrinkSchedule": "never"}))
    assert not shrink_rules(never)
    assert not never.of_type("AWS::Lambda::Permission")


def test_the_outputs_lead_to_the_functions_and_the_machine(sharded: Deployed):
    outputs = {name: sharded.resolve(one["Value"]) for name, one in sharded.body["Outputs"].items()}
    for name in ("WriteSharded", "QuerySharded", "ProposeDrains"):
        assert outputs[f"{name}Name"] == f"Keyhop-{name}"
    assert outputs["DrainShardsArn"] == states_arn("stateMachine:Keyhop-DrainShards")


def test_two_deployments_in_one_account_do_not_meet():
    context = {"tables": [{"table": "Audit", "sharding": {"partitionKey": "path"}}]}
    names = [
        {
            resource["Properties"][field]
            for kind, field in (
                ("AWS::Lambda::Function", "FunctionName"),
                ("AWS::StepFunctions::StateMachine", "StateMachineName"),
                ("AWS::CloudWatch::Alarm", "AlarmName"),
                ("AWS::Logs::LogGroup", "LogGroupName"),
                ("AWS::DynamoDB::Table", "TableName"),
            )
            for resource in template.of_type(kind).values()
        }
        for template in (
            deployed(stack_of({**context, "stackName": one})) for one in ("Keyhop", "Second")
        )
    ]
    assert not names[0] & names[1]


def test_the_definition_is_json_as_it_stands():
    strings = json.dumps(list(_strings(DRAIN)))
    assert TEXT.count("${") == strings.count("${")
    assert names_in(TEXT) == names_in(strings)


def test_every_name_has_a_substitution_and_none_is_left_over(sharded: Deployed):
    properties = sharded.machine("DrainShards")
    assert properties["DefinitionSubstitutions"] == {
        "Partition": "aws",
        "MoveShardsArn": function_arn("Keyhop-MoveShards"),
    }
    assert set(properties["DefinitionSubstitutions"]) == names_in(TEXT)
    assert json.loads(properties["DefinitionString"]) == DRAIN


def test_the_machine_is_a_standard_one_logged_and_traced_as_the_runs_are(sharded: Deployed):
    """Only standard machines wait for days, and refuse a second execution of one name."""
    properties = sharded.machine("DrainShards")
    assert properties["StateMachineType"] == "STANDARD"
    assert properties["TracingConfiguration"] == {"Enabled": True}
    logging = properties["LoggingConfiguration"]
    assert (logging["Level"], logging["IncludeExecutionData"]) == ("ERROR", False)


def test_a_step_gets_the_executions_own_input(sharded: Deployed):
    """Of the last step it only hears whether this drain has begun: it asks the metadata itself."""
    assert MOVE["Parameters"]["Payload"] == {"request.$": "$$.Execution.Input", "last.$": "$"}
    assert MOVE["Parameters"]["FunctionName"] == "${MoveShardsArn}"


def test_step_functions_waits_for_a_step_longer_than_the_function_lives(sharded: Deployed):
    assert MOVE["TimeoutSeconds"] > sharded.function("MoveShards")["Timeout"]


def test_a_retry_names_its_errors_and_what_is_not_retried_is_caught():
    for rule in MOVE["Retry"]:
        assert not {"States.ALL", "States.TaskFailed", "Exception"} & set(rule["ErrorEquals"])
        if rule["ErrorEquals"] != [NO_ROOM]:
            assert rule["MaxAttempts"] <= 10
    assert MOVE["Retry"][0]["ErrorEquals"] == [NO_ROOM]
    assert MOVE["Catch"][-1]["ErrorEquals"] == ["States.ALL"]


def test_a_drain_that_failed_looks_failed():
    """With the sentence of the error as its cause; only the end of a drain is a success."""
    ends = {name: state["Type"] for name, state in STATES.items() if not _targets(state)}
    assert ends == {
        "Drained": "Succeed",
        "CalledOff": "Fail",
        "Refused": "Fail",
        "Broken": "Fail",
    }
    caught = {target for rule in MOVE["Catch"] for target in [rule["Next"]]}
    assert caught == {"ExplainRefusal", "Broken"}
    assert STATES["Refused"]["CausePath"] == "$.exception.errorMessage"


def test_a_drain_ends_when_it_is_done_and_waits_otherwise():
    choice = STATES["IsDrained"]
    follows = {rule["StringEquals"]: rule["Next"] for rule in choice["Choices"]}
    assert follows == {"done": "Drained", "called off": "CalledOff"}
    assert {rule["Variable"] for rule in choice["Choices"]} == {"$.action"}
    assert choice["Default"] == "Wait"
    assert STATES["Wait"]["SecondsPath"] == "$.seconds"
    assert STATES["Wait"]["Next"] == "MoveShards"


def test_what_the_choice_reads_is_what_the_function_answers():
    from handlers.move_shards import to_state
    from keyhop.sharding.drain import DrainStep, Next
    from keyhop.sharding.key.shards import Phase

    told = {action: to_state(DrainStep(action, Phase.MOVING, 1, 4, 0.2)) for action in Next}
    assert told[Next.DONE]["action"] == "done"
    for state in told.values():
        assert isinstance(state["seconds"], int)
        assert state["seconds"] >= 1, "a drain that gets nowhere must not spin"


def test_every_state_is_reached_and_every_target_exists():
    targets = {DRAIN["StartAt"], *(one for state in STATES.values() for one in _targets(state))}
    assert targets == set(STATES)


def test_every_error_of_ours_in_the_definition_exists():
    """Lambda reports an exception by its class's name: a renamed class would no longer match."""
    named = {
        error
        for rule in (*MOVE["Retry"], *MOVE["Catch"])
        for error in rule["ErrorEquals"]
        if not OF_AWS.fullmatch(error)
    }
    classes = {
        node.name
        for path in LAMBDAS.rglob("*.py")
        for node in ast.walk(ast.parse(path.read_text()))
        if isinstance(node, ast.ClassDef)
    }
    assert named
    assert named - classes == set()


def _targets(state: dict[str, Any]) -> list[str]:
    rules = (*state.get("Catch", ()), *state.get("Choices", ()))
    return [
        *(state[field] for field in ("Next", "Default") if field in state),
        *(rule["Next"] for rule in rules),
    ]


def _strings(value: Any) -> list[str]:
    if isinstance(value, str):
        return [value]
    inside = value.values() if isinstance(value, dict) else value
    return (
        [text for one in inside for text in _strings(one)] if isinstance(inside, Iterable) else []
    )
