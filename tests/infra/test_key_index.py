"""Tests of the key index's resources: keeper, queue, machines, schedule and their removal."""

import importlib
import json
import re

import pytest
from aws_cdk.assertions import Annotations, Match
from handlers.keep_index import PLACE_SECONDS

from infra.functions import LAMBDAS
from infra.key_index import KEEPER_SECONDS, SETTLE_SECONDS
from tests.infra.conftest import CONTEXTS, FAR_TABLE, INDEXED_CONTEXT, deployed, stack_of
from tests.infra.template import (
    KEY_INDEX_FUNCTIONS,
    KEY_INDEX_MACHINES,
    QUEUE_ARN,
    QUEUE_URL,
    Deployed,
    function_arn,
    states_arn,
)

TABLES = ["Orders", "Events", FAR_TABLE]
PLACES = {"Orders": None, "Events": "!", FAR_TABLE: None}
OF_AWS = re.compile(r"(States|Lambda|Sandbox|Runtime|S3|StepFunctions)\.\w+")
OURS = ("AWS::SQS::", "AWS::Events::")
SETTINGS = {
    "PlanRun": "PlanSettings",
    "ScanSegments": "JobSettings",
    "WalkSegments": "JobSettings",
    "KeepIndex": "JobSettings",
    "FinishRun": "WorkerSettings",
    "ManageIndex": "ManageSettings",
}


def test_without_a_key_index_only_its_guard_is_deployed(template: Deployed):
    """The guard is updated when a table gets keyIndex, and when the last one loses it."""
    kinds = {resource["Type"] for resource in template.body["Resources"].values()}
    assert not [kind for kind in kinds if kind.startswith(OURS)]
    assert len(template.of_type("AWS::StepFunctions::StateMachine")) == 1
    assert len(template.of_type("AWS::Lambda::Function")) == 6
    assert "keyhop-keys" not in json.dumps(template.body)
    assert "KEYHOP_KEY_INDEXES" not in json.dumps(template.body)
    assert template.only("Custom::KeeperMappings")["Properties"]["Tables"] == []
    assert not [name for name in template.body["Outputs"] if "KeyIndex" in name]


@pytest.mark.parametrize("name", SETTINGS)
def test_functions_that_read_sentinels_know_their_places(indexed: Deployed, name: str):
    environment = indexed.environment(name)
    assert json.loads(environment["KEYHOP_KEY_INDEXES"]) == PLACES
    settings = getattr(importlib.import_module("handlers.settings"), SETTINGS[name])
    assert settings.from_env(environment).places == PLACES
    if name in KEY_INDEX_FUNCTIONS:
        assert json.loads(environment["KEYHOP_TABLES"]) == TABLES


def test_functions_that_manage_mappings_or_decide_about_trust_know_the_keeper(
    indexed: Deployed, plain: Deployed
):
    for name in ("ManageIndex", "ReleaseKeeper", "PlanRun", "FinishRun"):
        assert indexed.environment(name)["KEYHOP_KEEPER"] == function_arn("Keyhop-KeepIndex")
    queues = [
        indexed.environment(n).get("KEYHOP_FAILURE_QUEUE") for n in ("ManageIndex", "ReleaseKeeper")
    ]
    assert queues == [QUEUE_ARN, None]
    for name in ("PlanRun", "FinishRun"):
        assert "KEYHOP_KEEPER" not in plain.environment(name)
    settings = importlib.import_module("handlers.settings").PlanSettings
    assert settings.from_env(indexed.environment("PlanRun")).watch is not None
    assert settings.from_env(plain.environment("PlanRun")).watch is None


@pytest.mark.parametrize("name", KEY_INDEX_FUNCTIONS)
def test_the_template_sets_each_variable_that_a_handler_reads(indexed: Deployed, name: str):
    module = indexed.function(name)["Handler"].split(".")[1]
    text = (LAMBDAS / "handlers" / f"{module}.py").read_text()
    named = set(re.findall(r'environ\["(\w+)"\]', text))
    assert named <= set(indexed.environment(name))


def test_functions_for_key_indexes_have_their_memory_and_timeout(indexed: Deployed):
    shapes = {
        name: (function["MemorySize"], function["Timeout"])
        for name in KEY_INDEX_FUNCTIONS
        for function in [indexed.function(name)]
    }
    assert shapes == {
        "KeepIndex": (512, KEEPER_SECONDS),
        "ManageIndex": (512, 900),
        "ReleaseKeeper": (256, 120),
        "WalkSegments": (1769, 900),
    }


def test_only_one_worker_function_reserves_concurrency(scheduled: Deployed):
    """The plan of a walk has at most as many workers as ScanSegments has reserved."""
    assert scheduled.function("ScanSegments")["ReservedConcurrentExecutions"] == 20
    assert "ReservedConcurrentExecutions" not in scheduled.function("WalkSegments")


@pytest.mark.prove
def test_the_keeper_may_have_a_reservation(indexed: Deployed):
    assert "ReservedConcurrentExecutions" not in indexed.function("KeepIndex")
    reserved = deployed(stack_of({**INDEXED_CONTEXT, "keeperConcurrency": "12"}))
    assert reserved.function("KeepIndex")["ReservedConcurrentExecutions"] == 12


def test_the_code_finds_the_keeper_by_the_end_of_its_name(indexed: Deployed):
    from keyhop.streams.event_source import KEEPER

    assert indexed.function("KeepIndex")["FunctionName"].endswith(KEEPER)


def test_a_removal_waits_longer_than_a_keeper_runs(indexed: Deployed, laptop: Deployed):
    """It also outlasts a keeper's cached place. The next holder of a walker's lease waits too."""
    settle = "KEYHOP_SETTLE_SECONDS"
    assert int(indexed.environment("ManageIndex")[settle]) == SETTLE_SECONDS
    assert indexed.function("KeepIndex")["Timeout"] + PLACE_SECONDS <= SETTLE_SECONDS
    assert indexed.environment("WalkSegments")[settle] == indexed.environment("ManageIndex")[settle]
    assert laptop.environment("ManageIndex")[settle] == "1"


def test_the_failure_queue_has_the_longest_retention_and_demands_tls(indexed: Deployed):
    queue = indexed.only("AWS::SQS::Queue")["Properties"]
    assert queue["MessageRetentionPeriod"] == 14 * 24 * 3600
    assert queue["SqsManagedSseEnabled"] is True
    (policy,) = indexed.only("AWS::SQS::QueuePolicy")["Properties"]["PolicyDocument"]["Statement"]
    denied = (policy["Effect"], policy["Condition"])
    assert denied == ("Deny", {"Bool": {"aws:SecureTransport": "false"}})


def test_the_stack_creates_no_mapping(indexed: Deployed):
    """The table may not have a stream yet, and the ARN of the stream changes."""
    assert not indexed.of_type("AWS::Lambda::EventSourceMapping")


def test_mappings_are_deleted_before_the_keeper_and_its_permissions(indexed: Deployed):
    """A resource is deleted before its dependencies: see the next test."""
    release = indexed.only("Custom::KeeperMappings")
    (keeper,) = (
        name
        for name, function in indexed.of_type("AWS::Lambda::Function").items()
        if function["Properties"]["FunctionName"].endswith("-KeepIndex")
    )
    role = indexed.body["Resources"][keeper]["Properties"]["Role"]["Fn::GetAtt"][0]
    (policy,) = (
        name
        for name, resource in indexed.of_type("AWS::IAM::Policy").items()
        if {"Ref": role} in resource["Properties"]["Roles"]
    )
    (queue,) = indexed.of_type("AWS::SQS::Queue")
    assert {keeper, role, policy, queue} <= set(release["DependsOn"])


@pytest.mark.parametrize("context", CONTEXTS)
def test_a_stack_that_refuses_to_go_has_lost_nothing(context: str):
    """All other resources are created before the custom resource and deleted after it."""
    body = deployed(stack_of(CONTEXTS[context])).body
    other_names = {
        name
        for name, resource in body["Resources"].items()
        if resource["Type"] != "Custom::KeeperMappings"
    }
    (guard,) = body["Resources"].keys() - other_names
    assert set(body["Resources"][guard]["DependsOn"]) == other_names
    assert not [name for name in other_names if guard in json.dumps(body["Resources"][name])]


def test_removing_the_last_key_index_updates_the_guard(indexed: Deployed, plain: Deployed):
    """A deleted guard could refuse nothing: CloudFormation deletes it after a successful update."""
    (before,), (after,) = (
        template.of_type("Custom::KeeperMappings").items() for template in (indexed, plain)
    )
    assert before[0] == after[0]
    tokens = [guard["Properties"]["ServiceToken"] for _, guard in (before, after)]
    assert tokens[0] == tokens[1], "CloudFormation does not allow a change of the token"


def test_the_guard_keeps_its_permissions_until_it_is_deleted(indexed: Deployed):
    """Its role's policy must not be deleted before the custom resource."""
    release = indexed.only("Custom::KeeperMappings")["Properties"]
    function = release["ServiceToken"]["Fn::GetAtt"][0]
    assert indexed.resolve(release["ServiceToken"]) == function_arn("Keyhop-ReleaseKeeper")
    dependencies = indexed.body["Resources"][function]["DependsOn"]
    assert [name for name in dependencies if name in indexed.of_type("AWS::IAM::Policy")]


def test_the_guard_lists_the_tables_that_have_a_key_index(indexed: Deployed):
    release = indexed.only("Custom::KeeperMappings")["Properties"]
    assert release["Tables"] == ["Orders", "Events", "Ereignisse"]


def test_the_guard_times_out_in_less_than_an_hour(indexed: Deployed):
    timeout = indexed.function("ReleaseKeeper")["Timeout"]
    limit = int(indexed.only("Custom::KeeperMappings")["Properties"]["ServiceTimeout"])
    assert 3 * timeout + 180 <= limit < 3600


def test_the_schedule_verifies_each_table(indexed: Deployed):
    rules = indexed.properties_of("AWS::Events::Rule")
    assert {rule["ScheduleExpression"] for rule in rules} == {"rate(7 days)"}
    targets = [target for rule in rules for target in rule["Targets"]]
    assert [json.loads(target["Input"]) for target in targets] == [
        {"table": table, "scheduled": True} for table in TABLES
    ]
    verification = states_arn("stateMachine:Keyhop-VerifyKeyIndex")
    assert {indexed.resolve(target["Arn"]) for target in targets} == {verification}


def test_the_context_sets_the_schedule(scheduled: Deployed, unscheduled: Deployed):
    rules = scheduled.properties_of("AWS::Events::Rule")
    assert {rule["ScheduleExpression"] for rule in rules} == {"cron(0 3 ? * SUN *)"}
    assert not unscheduled.of_type("AWS::Events::Rule")
    roles = unscheduled.properties_of("AWS::IAM::Role")
    assumed = json.dumps([role["AssumeRolePolicyDocument"] for role in roles])
    assert "events.amazonaws.com" not in assumed


def test_the_outputs_name_the_machines_and_the_queue(indexed: Deployed):
    outputs = {
        name: indexed.resolve(output["Value"]) for name, output in indexed.body["Outputs"].items()
    }
    for name in KEY_INDEX_MACHINES:
        assert outputs[f"{name}Arn"] == states_arn(f"stateMachine:Keyhop-{name}")
    assert outputs["FailureQueueUrl"] == QUEUE_URL


def test_only_files_of_runs_expire(indexed: Deployed):
    rules = indexed.only("AWS::S3::Bucket")["Properties"]["LifecycleConfiguration"]["Rules"]
    assert {rule.get("Prefix") for rule in rules if "ExpirationInDays" in rule} == {"runs/"}


def test_synth_warns_where_iam_cannot_distinguish_sentinels_from_other_items():
    annotations = Annotations.from_stack(stack_of(INDEXED_CONTEXT))
    warning = r"write more than sentinels into Events, arn:.*/Ereignisse; .*keyAttributes"
    annotations.has_warning("*", Match.string_like_regexp(warning))


def test_synth_does_not_warn_if_the_key_attributes_are_set():
    closed = stack_of(
        {"tables": [{"table": "Orders", "keyIndex": True, "keyAttributes": ["customer", "order"]}]}
    )
    Annotations.from_stack(closed).has_no_warning("*", Match.any_value())
