"""The key index's part of the stack: keeper, queue, machines, schedule, and how it goes."""

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
from aws_cdk.assertions import Annotations, Match

from infra.functions import LAMBDAS
from infra.key_index import KEEPER_SECONDS, MACHINES, SETTLE_SECONDS
from infra.machines import names_in
from tests.infra.conftest import FAR_TABLE, KEPT_CONTEXT, deployed, stack_of
from tests.infra.template import (
    KEY_INDEX_FUNCTIONS,
    KEY_INDEX_MACHINES,
    QUEUE_ARN,
    QUEUE_URL,
    Deployed,
    function_arn,
    states_arn,
)

GIVEN = ["Orders", "Events", FAR_TABLE]
PLACES = {"Orders": None, "Events": "!", FAR_TABLE: None}
OF_AWS = re.compile(r"(States|Lambda|Sandbox|Runtime|S3|StepFunctions)\.\w+")
OURS = ("Custom::", "AWS::SQS::", "AWS::Events::")
SETTINGS = {
    "PlanRun": "PlanSettings",
    "ScanSegments": "ScanSettings",
    "KeepIndex": "KeeperSettings",
    "ManageIndex": "ManageSettings",
}


def environment(template: Deployed, function: str) -> dict[str, str]:
    return dict(template.function(function)["Environment"]["Variables"])


@pytest.fixture(params=KEY_INDEX_MACHINES)
def machine(request: pytest.FixtureRequest) -> str:
    """Each of the three state machines."""
    return str(request.param)


@pytest.fixture
def definition(machine: str) -> dict[str, Any]:
    return dict(json.loads(MACHINES[machine].read_text()))


@pytest.fixture(scope="module")
def packages(assembly: Path, template: Deployed) -> tuple[Path, Path]:
    """Code and layer, as they would be uploaded."""
    code = template.function("PlanRun")["Code"]["S3Key"]
    layer = template.only("AWS::Lambda::LayerVersion")["Properties"]["Content"]["S3Key"]
    return assembly / f"asset.{Path(code).stem}", assembly / f"asset.{Path(layer).stem}"


def test_without_a_key_index_nothing_of_it_is_there(template: Deployed):
    kinds = {resource["Type"] for resource in template.body["Resources"].values()}
    assert not [kind for kind in kinds if kind.startswith(OURS)]
    assert len(template.of_type("AWS::StepFunctions::StateMachine")) == 1
    assert len(template.of_type("AWS::Lambda::Function")) == 5
    assert "keyhop-keys" not in json.dumps(template.body)
    assert "KEYHOP_KEY_INDEXES" not in json.dumps(template.body)
    assert not [name for name in template.body["Outputs"] if "KeyIndex" in name]


def test_a_table_written_as_an_object_changes_nothing_by_itself():
    plain = deployed(stack_of({"tables": ["Orders"], "keyAttributes": {"Orders": ["customer"]}}))
    told = deployed(stack_of({"tables": [{"table": "Orders", "keyAttributes": ["customer"]}]}))
    assert plain.body == told.body


def test_a_key_index_replaces_nothing_that_was_there():
    """Turned on later, it must not make CloudFormation replace a bucket or a function."""
    before = deployed(stack_of({"tables": ["Orders"]})).body["Resources"]
    after = deployed(stack_of({"tables": [{"table": "Orders", "keyIndex": True}]}))
    for name, resource in before.items():
        assert after.body["Resources"][name]["Type"] == resource["Type"]


@pytest.mark.parametrize("name", ["KeepIndex", "ManageIndex"])
def test_only_tables_with_a_key_index_are_the_keepers_business(kept: Deployed, name: str):
    assert json.loads(environment(kept, name)["KEYHOP_TABLES"]) == GIVEN


@pytest.mark.parametrize("name", ["KeepIndex", "ManageIndex", "PlanRun", "ScanSegments"])
def test_who_meets_sentinels_knows_where_they_are(kept: Deployed, name: str):
    assert json.loads(environment(kept, name)["KEYHOP_KEY_INDEXES"]) == PLACES


@pytest.mark.parametrize("name", SETTINGS)
def test_the_environment_in_the_template_is_what_the_settings_class_needs(
    kept: Deployed, name: str
):
    settings = getattr(importlib.import_module("handlers.settings"), SETTINGS[name])
    assert settings.from_env(environment(kept, name)).places == PLACES


@pytest.mark.parametrize("name", ["ManageIndex", "ReleaseKeeper"])
def test_who_handles_mappings_knows_the_keeper_and_its_queue(kept: Deployed, name: str):
    told = environment(kept, name)
    assert told["KEYHOP_KEEPER"] == function_arn("Keyhop-KeepIndex")
    assert told["KEYHOP_FAILURE_QUEUE"] == QUEUE_ARN


@pytest.mark.parametrize("name", KEY_INDEX_FUNCTIONS)
def test_a_handler_reads_no_variable_that_the_template_has_not(kept: Deployed, name: str):
    module = kept.function(name)["Handler"].split(".")[1]
    text = (LAMBDAS / "handlers" / f"{module}.py").read_text()
    named = set(re.findall(r'environ\["(\w+)"\]', text))
    assert named <= set(environment(kept, name))


@pytest.mark.parametrize("name", KEY_INDEX_FUNCTIONS)
def test_every_handler_imports_from_what_is_uploaded_and_from_nothing_else(
    kept: Deployed, packages: tuple[Path, Path], name: str
):
    """-S: without this Python's own packages. The command line's part is not uploaded."""
    code, layer = packages
    module, function = kept.function(name)["Handler"].rsplit(".", 1)
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


def test_a_function_for_key_indexes_is_shaped_for_its_work(kept: Deployed):
    shapes = {
        name: (function["MemorySize"], function["Timeout"])
        for name in KEY_INDEX_FUNCTIONS
        for function in [kept.function(name)]
    }
    assert shapes == {
        "KeepIndex": (512, KEEPER_SECONDS),
        "ManageIndex": (512, 900),
        "ReleaseKeeper": (256, 120),
    }


@pytest.mark.parametrize("name", KEY_INDEX_FUNCTIONS)
def test_all_functions_are_alike_in_what_the_operator_sees(kept: Deployed, name: str):
    function, other = kept.function(name), kept.function("PlanRun")
    for field in ("Runtime", "Architectures", "TracingConfig", "Layers", "Code"):
        assert function[field] == other[field]
    assert function["LoggingConfig"]["LogFormat"] == "JSON"
    group = kept.body["Resources"][function["LoggingConfig"]["LogGroup"]]["Properties"]
    assert group["LogGroupName"] == f"/aws/lambda/Keyhop-{name}"
    assert group["RetentionInDays"] == 30


def test_the_code_finds_the_keeper_by_the_end_of_its_name(kept: Deployed):
    from keyhop.streams.event_source import KEEPER

    assert kept.function("KeepIndex")["FunctionName"].endswith(KEEPER)


def test_a_removal_waits_longer_than_a_keeper_lives(kept: Deployed):
    settle = int(environment(kept, "ManageIndex")["KEYHOP_SETTLE_SECONDS"])
    assert settle == SETTLE_SECONDS > kept.function("KeepIndex")["Timeout"]


def test_a_removal_on_the_laptop_is_not_kept_waiting():
    laptop = deployed(stack_of({**KEPT_CONTEXT, "dynamodbEndpoint": "http://127.0.0.1:8000"}))
    assert environment(laptop, "ManageIndex")["KEYHOP_SETTLE_SECONDS"] == "1"
    for name in KEY_INDEX_FUNCTIONS:
        assert environment(laptop, name)["AWS_ENDPOINT_URL_DYNAMODB"] == "http://127.0.0.1:8000"


def test_what_failed_is_kept_for_as_long_as_a_queue_can(kept: Deployed):
    queue = kept.only("AWS::SQS::Queue")["Properties"]
    assert queue["MessageRetentionPeriod"] == 14 * 24 * 3600
    assert queue["SqsManagedSseEnabled"] is True


def test_the_queue_is_reached_by_tls_only(kept: Deployed):
    policy = kept.only("AWS::SQS::QueuePolicy")["Properties"]["PolicyDocument"]["Statement"]
    assert [one["Effect"] for one in policy] == ["Deny"]
    assert policy[0]["Condition"] == {"Bool": {"aws:SecureTransport": "false"}}


def test_no_mapping_is_made_by_the_stack(kept: Deployed):
    """The table may have no stream yet, and its ARN changes."""
    assert not kept.of_type("AWS::Lambda::EventSourceMapping")


def test_mappings_go_before_the_keeper_and_what_it_may_do(kept: Deployed):
    """What depends on something is deleted before it."""
    release = kept.only("Custom::KeeperMappings")
    (keeper,) = (
        name
        for name, function in kept.of_type("AWS::Lambda::Function").items()
        if function["Properties"]["FunctionName"].endswith("-KeepIndex")
    )
    role = kept.body["Resources"][keeper]["Properties"]["Role"]["Fn::GetAtt"][0]
    (policy,) = (
        name
        for name, one in kept.of_type("AWS::IAM::Policy").items()
        if {"Ref": role} in one["Properties"]["Roles"]
    )
    (queue,) = kept.of_type("AWS::SQS::Queue")
    assert {keeper, role, policy, queue} <= set(release["DependsOn"])


def test_who_releases_the_keeper_can_still_do_so_when_it_is_asked(kept: Deployed):
    """Its role's policy must not be deleted before the custom resource."""
    release = kept.only("Custom::KeeperMappings")["Properties"]
    function = release["ServiceToken"]["Fn::GetAtt"][0]
    assert kept.resolve(release["ServiceToken"]) == function_arn("Keyhop-ReleaseKeeper")
    needed = kept.body["Resources"][function]["DependsOn"]
    assert [name for name in needed if name in kept.of_type("AWS::IAM::Policy")]


def test_a_table_that_leaves_the_context_is_told_by_the_names_of_those_that_stay(kept: Deployed):
    release = kept.only("Custom::KeeperMappings")["Properties"]
    assert release["Tables"] == ["Orders", "Events", "Ereignisse"]


def test_nobody_waits_an_hour_for_an_answer(kept: Deployed):
    timeout = kept.function("ReleaseKeeper")["Timeout"]
    patience = int(kept.only("Custom::KeeperMappings")["Properties"]["ServiceTimeout"])
    assert 3 * timeout + 180 <= patience < 3600


def test_each_table_is_audited_by_the_schedule(kept: Deployed):
    rules = [rule["Properties"] for rule in kept.of_type("AWS::Events::Rule").values()]
    assert {rule["ScheduleExpression"] for rule in rules} == {"rate(7 days)"}
    targets = [target for rule in rules for target in rule["Targets"]]
    assert [json.loads(target["Input"]) for target in targets] == [
        {"table": given, "scheduled": True} for given in GIVEN
    ]
    audit = states_arn("stateMachine:Keyhop-AuditKeyIndex")
    assert {kept.resolve(target["Arn"]) for target in targets} == {audit}


def test_the_context_sets_the_schedule():
    often = deployed(stack_of({**KEPT_CONTEXT, "auditSchedule": "cron(0 3 ? * SUN *)"}))
    rules = often.of_type("AWS::Events::Rule").values()
    schedules = {rule["Properties"]["ScheduleExpression"] for rule in rules}
    assert schedules == {"cron(0 3 ? * SUN *)"}
    never = deployed(stack_of({**KEPT_CONTEXT, "auditSchedule": "never"}))
    assert not never.of_type("AWS::Events::Rule")
    roles = never.of_type("AWS::IAM::Role").values()
    assumed = json.dumps([role["Properties"]["AssumeRolePolicyDocument"] for role in roles])
    assert "events.amazonaws.com" not in assumed


def test_the_outputs_lead_to_the_machines_and_the_queue(kept: Deployed):
    outputs = {name: kept.resolve(one["Value"]) for name, one in kept.body["Outputs"].items()}
    for name in KEY_INDEX_MACHINES:
        assert outputs[f"{name}Arn"] == states_arn(f"stateMachine:Keyhop-{name}")
    assert outputs["FailureQueueUrl"] == QUEUE_URL


def test_what_is_known_of_an_index_does_not_expire(kept: Deployed):
    rules = kept.only("AWS::S3::Bucket")["Properties"]["LifecycleConfiguration"]["Rules"]
    assert {rule.get("Prefix") for rule in rules if "ExpirationInDays" in rule} == {"runs/"}


def test_synth_says_where_iam_cannot_tell_a_sentinel_from_another_item():
    warned = Annotations.from_stack(stack_of(KEPT_CONTEXT))
    told = r"write more than sentinels in Events, arn:.*/Ereignisse, .*keyAttributes"
    warned.has_warning("*", Match.string_like_regexp(told))


def test_synth_has_nothing_to_say_where_the_key_attributes_are_known():
    closed = stack_of(
        {"tables": [{"table": "Orders", "keyIndex": True, "keyAttributes": ["customer", "order"]}]}
    )
    Annotations.from_stack(closed).has_no_warning("*", Match.any_value())


def test_two_deployments_in_one_account_do_not_meet():
    names = []
    for stack_name in ("Keyhop", "Second"):
        template = deployed(stack_of({**KEPT_CONTEXT, "stackName": stack_name}))
        names.append(
            {
                properties[field]
                for kind, field in (
                    ("AWS::Lambda::Function", "FunctionName"),
                    ("AWS::StepFunctions::StateMachine", "StateMachineName"),
                    ("AWS::CloudWatch::Alarm", "AlarmName"),
                    ("AWS::Logs::LogGroup", "LogGroupName"),
                )
                for resource in template.of_type(kind).values()
                for properties in [resource["Properties"]]
            }
        )
    assert not names[0] & names[1]


def test_a_definition_is_json_as_it_stands(machine: str, definition: dict[str, Any]):
    text = MACHINES[machine].read_text()
    strings = json.dumps(list(_strings(definition)))
    assert text.count("${") == strings.count("${")
    assert names_in(text) == names_in(strings)


def test_every_name_has_a_substitution_and_none_is_left_over(kept: Deployed, machine: str):
    properties = kept.machine(machine)
    substitutions = properties["DefinitionSubstitutions"]
    assert set(substitutions) == names_in(MACHINES[machine].read_text())
    known = {
        "Partition": "aws",
        "ManageIndexArn": function_arn("Keyhop-ManageIndex"),
        "EnumerateKeysArn": states_arn("stateMachine:Keyhop-EnumerateKeys"),
    }
    assert substitutions == {name: known[name] for name in substitutions}


def test_the_template_holds_the_definition_of_the_file(
    kept: Deployed, machine: str, definition: dict[str, Any]
):
    assert json.loads(kept.machine(machine)["DefinitionString"]) == definition


def test_a_machine_is_logged_and_traced_as_the_runs_are(kept: Deployed, machine: str):
    properties = kept.machine(machine)
    assert properties["StateMachineName"] == f"Keyhop-{machine}"
    assert properties["StateMachineType"] == "STANDARD"
    assert properties["TracingConfiguration"] == {"Enabled": True}
    logging = properties["LoggingConfiguration"]
    assert (logging["Level"], logging["IncludeExecutionData"]) == ("ERROR", False)
    groups = kept.of_type("AWS::Logs::LogGroup").values()
    names = [group["Properties"]["LogGroupName"] for group in groups]
    assert f"/aws/vendedlogs/states/Keyhop-{machine}" in names


def test_every_state_is_reached_and_every_target_exists(definition: dict[str, Any]):
    states = definition["States"]
    seen: set[str] = set()
    waiting = [definition["StartAt"]]
    while waiting:
        name = waiting.pop()
        if name not in seen:
            seen.add(name)
            waiting += _targets(states[name])
    assert seen == set(states)


def test_every_state_leads_to_an_end(definition: dict[str, Any]):
    for name, state in definition["States"].items():
        assert _targets(state) or state["Type"] in ("Succeed", "Fail") or state.get("End"), name


def test_every_error_of_ours_in_a_definition_exists(definition: dict[str, Any]):
    """Lambda reports an exception by its class's name: a renamed class would no longer match."""
    named = {
        error
        for state in definition["States"].values()
        for rule in (*state.get("Retry", ()), *state.get("Catch", ()))
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


def test_every_task_retries_by_name_and_catches_the_rest(definition: dict[str, Any]):
    tasks = {n: state for n, state in definition["States"].items() if state["Type"] == "Task"}
    assert tasks
    for name, state in tasks.items():
        assert state["Retry"], name
        for rule in state["Retry"]:
            assert not {"States.ALL", "States.TaskFailed"} & set(rule["ErrorEquals"]), name
        assert state["Catch"][-1]["ErrorEquals"] == ["States.ALL"], name


def test_a_step_names_an_action_and_a_step_that_the_function_knows(
    machine: str, definition: dict[str, Any]
):
    source = (LAMBDAS / "keyhop" / "key_index" / "manage.py").read_text()
    for name, state in definition["States"].items():
        payload = state.get("Parameters", {}).get("Payload")
        if payload:
            assert machine.lower().startswith(payload["action"]), name
            assert f'("{payload["action"]}", "{payload["step"]}")' in source, name


def test_a_walk_is_a_run_that_is_waited_for(definition: dict[str, Any]):
    """.sync:2: the state's result is the run's output, and its failure is the run's."""
    resources = {
        state["Resource"]
        for state in definition["States"].values()
        if state["Type"] == "Task" and "StateMachineArn" in state["Parameters"]
    }
    assert resources == {"arn:${Partition}:states:::states:startExecution.sync:2"}


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
