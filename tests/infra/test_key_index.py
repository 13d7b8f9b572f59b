"""The key index's part of the stack: keeper, queue, machines, schedule, and how it goes."""

import importlib
import json
import re

import pytest
from aws_cdk.assertions import Annotations, Match
from handlers.keep_index import PLACE_SECONDS

from infra.functions import LAMBDAS
from infra.key_index import KEEPER_SECONDS, SETTLE_SECONDS
from tests.infra.conftest import CONTEXTS, FAR_TABLE, KEPT_CONTEXT, deployed, stack_of
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
OURS = ("AWS::SQS::", "AWS::Events::")
SETTINGS = {
    "PlanRun": "PlanSettings",
    "ScanSegments": "JobSettings",
    "WalkSegments": "JobSettings",
    "KeepIndex": "JobSettings",
    "FinishRun": "WorkerSettings",
    "ManageIndex": "ManageSettings",
}


def test_without_a_key_index_nothing_of_it_is_there_but_the_guard(template: Deployed):
    """Which sees it when a table gets keyIndex, and when the last one loses it."""
    kinds = {resource["Type"] for resource in template.body["Resources"].values()}
    assert not [kind for kind in kinds if kind.startswith(OURS)]
    assert len(template.of_type("AWS::StepFunctions::StateMachine")) == 1
    assert len(template.of_type("AWS::Lambda::Function")) == 6
    assert "keyhop-keys" not in json.dumps(template.body)
    assert "KEYHOP_KEY_INDEXES" not in json.dumps(template.body)
    assert template.only("Custom::KeeperMappings")["Properties"]["Tables"] == []
    assert not [name for name in template.body["Outputs"] if "KeyIndex" in name]


def test_a_key_index_replaces_nothing_that_was_there(plain: Deployed, kept: Deployed):
    """Turned on later, it must not make CloudFormation replace a bucket or a function."""
    for name, resource in plain.body["Resources"].items():
        assert kept.body["Resources"][name]["Type"] == resource["Type"]


@pytest.mark.parametrize("name", SETTINGS)
def test_who_meets_sentinels_knows_where_they_are(kept: Deployed, name: str):
    told = kept.environment(name)
    assert json.loads(told["KEYHOP_KEY_INDEXES"]) == PLACES
    settings = getattr(importlib.import_module("handlers.settings"), SETTINGS[name])
    assert settings.from_env(told).places == PLACES
    if name in KEY_INDEX_FUNCTIONS:
        assert json.loads(told["KEYHOP_TABLES"]) == GIVEN, "no other is its business"


def test_who_handles_mappings_or_decides_about_trust_knows_the_keeper(
    kept: Deployed, plain: Deployed
):
    for name in ("ManageIndex", "ReleaseKeeper", "PlanRun", "FinishRun"):
        assert kept.environment(name)["KEYHOP_KEEPER"] == function_arn("Keyhop-KeepIndex")
    queues = [
        kept.environment(n).get("KEYHOP_FAILURE_QUEUE") for n in ("ManageIndex", "ReleaseKeeper")
    ]
    assert queues == [QUEUE_ARN, None]
    for name in ("PlanRun", "FinishRun"):
        assert "KEYHOP_KEEPER" not in plain.environment(name)
    settings = importlib.import_module("handlers.settings").PlanSettings
    assert settings.from_env(kept.environment("PlanRun")).watch is not None
    assert settings.from_env(plain.environment("PlanRun")).watch is None


@pytest.mark.parametrize("name", KEY_INDEX_FUNCTIONS)
def test_a_handler_reads_no_variable_that_the_template_has_not(kept: Deployed, name: str):
    module = kept.function(name)["Handler"].split(".")[1]
    text = (LAMBDAS / "handlers" / f"{module}.py").read_text()
    named = set(re.findall(r'environ\["(\w+)"\]', text))
    assert named <= set(kept.environment(name))


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
        "WalkSegments": (1769, 900),
    }


def test_a_reservation_is_not_held_twice(scheduled: Deployed):
    """The plan of a walk has no more workers than the reservation of ScanSegments serves."""
    assert scheduled.function("ScanSegments")["ReservedConcurrentExecutions"] == 20
    assert "ReservedConcurrentExecutions" not in scheduled.function("WalkSegments")


@pytest.mark.prove
def test_the_keeper_may_have_a_reservation(kept: Deployed):
    assert "ReservedConcurrentExecutions" not in kept.function("KeepIndex")
    reserved = deployed(stack_of({**KEPT_CONTEXT, "keeperConcurrency": "12"}))
    assert reserved.function("KeepIndex")["ReservedConcurrentExecutions"] == 12


def test_the_code_finds_the_keeper_by_the_end_of_its_name(kept: Deployed):
    from keyhop.streams.event_source import KEEPER

    assert kept.function("KeepIndex")["FunctionName"].endswith(KEEPER)


def test_a_removal_waits_longer_than_a_keeper_lives(kept: Deployed, laptop: Deployed):
    """And than it goes by a place that it has read. Who inherits a walker's lease waits as long."""
    settle = "KEYHOP_SETTLE_SECONDS"
    assert int(kept.environment("ManageIndex")[settle]) == SETTLE_SECONDS
    assert kept.function("KeepIndex")["Timeout"] + PLACE_SECONDS <= SETTLE_SECONDS
    assert kept.environment("WalkSegments")[settle] == kept.environment("ManageIndex")[settle]
    assert laptop.environment("ManageIndex")[settle] == "1"


def test_what_failed_is_kept_as_long_as_a_queue_can_which_is_reached_by_tls_only(kept: Deployed):
    queue = kept.only("AWS::SQS::Queue")["Properties"]
    assert queue["MessageRetentionPeriod"] == 14 * 24 * 3600
    assert queue["SqsManagedSseEnabled"] is True
    (policy,) = kept.only("AWS::SQS::QueuePolicy")["Properties"]["PolicyDocument"]["Statement"]
    denied = (policy["Effect"], policy["Condition"])
    assert denied == ("Deny", {"Bool": {"aws:SecureTransport": "false"}})


def test_no_mapping_is_made_by_the_stack(kept: Deployed):
    """The table may have no stream yet, and its ARN changes."""
    assert not kept.of_type("AWS::Lambda::EventSourceMapping")


def test_mappings_go_before_the_keeper_and_what_it_may_do(kept: Deployed):
    """What depends on something is deleted before it: see the next test."""
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


@pytest.mark.parametrize("context", CONTEXTS)
def test_a_stack_that_refuses_to_go_has_lost_nothing(context: str):
    """All else is made before the custom resource and deleted after it."""
    body = deployed(stack_of(CONTEXTS[context])).body
    others = {
        name for name, one in body["Resources"].items() if one["Type"] != "Custom::KeeperMappings"
    }
    (guard,) = body["Resources"].keys() - others
    assert set(body["Resources"][guard]["DependsOn"]) == others
    assert not [name for name in others if guard in json.dumps(body["Resources"][name])]


def test_the_last_table_with_a_key_index_leaves_by_an_update(kept: Deployed, plain: Deployed):
    """A custom resource that was deleted with it could refuse nothing: CloudFormation deletes
    what an update no longer has after that has succeeded.
    """
    (one,), (other,) = (
        template.of_type("Custom::KeeperMappings").items() for template in (kept, plain)
    )
    assert one[0] == other[0]
    tokens = [guard["Properties"]["ServiceToken"] for _, guard in (one, other)]
    assert tokens[0] == tokens[1], "CloudFormation allows no other"


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


def test_each_table_is_verified_by_the_schedule(kept: Deployed):
    rules = [rule["Properties"] for rule in kept.of_type("AWS::Events::Rule").values()]
    assert {rule["ScheduleExpression"] for rule in rules} == {"rate(7 days)"}
    targets = [target for rule in rules for target in rule["Targets"]]
    assert [json.loads(target["Input"]) for target in targets] == [
        {"table": given, "scheduled": True} for given in GIVEN
    ]
    verification = states_arn("stateMachine:Keyhop-VerifyKeyIndex")
    assert {kept.resolve(target["Arn"]) for target in targets} == {verification}


def test_the_context_sets_the_schedule(scheduled: Deployed, unscheduled: Deployed):
    rules = scheduled.of_type("AWS::Events::Rule").values()
    schedules = {rule["Properties"]["ScheduleExpression"] for rule in rules}
    assert schedules == {"cron(0 3 ? * SUN *)"}
    assert not unscheduled.of_type("AWS::Events::Rule")
    roles = unscheduled.of_type("AWS::IAM::Role").values()
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
    told = r"write more than sentinels into Events, arn:.*/Ereignisse; .*keyAttributes"
    warned.has_warning("*", Match.string_like_regexp(told))


def test_synth_has_nothing_to_say_where_the_key_attributes_are_known():
    closed = stack_of(
        {"tables": [{"table": "Orders", "keyIndex": True, "keyAttributes": ["customer", "order"]}]}
    )
    Annotations.from_stack(closed).has_no_warning("*", Match.any_value())
