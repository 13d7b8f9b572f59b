"""What AWS would refuse at a deploy is refused at synth, and 40 tables are not."""

from typing import Any

import pytest
from aws_cdk import App, Environment, Stack
from aws_cdk import aws_events as events

from infra import limits
from infra.config import Config, ConfigError
from infra.machines import REGION, warn_of_many_rules
from tests.infra.conftest import CONTEXTS, MANY, deployed, stack_of
from tests.infra.template import KEY_INDEX_FUNCTIONS, Deployed, table_arn

READERS = ("PlanRun", "ScanSegments", "VerifyRun")
NAMED = {"dynamodb__Select": "SPECIFIC_ATTRIBUTES"}
NAMES = [f"Table-of-28-characters-{number:05}" for number in range(200)]


def kept(names: list[str], **more: Any) -> list[dict[str, Any]]:
    return [{"table": name, "keyIndex": True, **more} for name in names]


@pytest.mark.parametrize("context", ["plain", "mixed"])
def test_a_deployment_of_a_few_tables_is_far_from_every_quota(context: str):
    limits.check_template(deployed(stack_of(CONTEXTS[context])).body, 7)


@pytest.mark.prove
def test_forty_tables_with_key_indexes_are_taken(many: Deployed):
    limits.check_template(many.body, len(MANY))


@pytest.mark.parametrize("table", [table_arn(MANY[0]), table_arn(MANY[-1])])
def test_no_right_is_lost_on_the_way_into_managed_policies(many: Deployed, table: str):
    assert many.of_type("AWS::IAM::ManagedPolicy")
    for function in READERS:
        assert many.allows(function, "dynamodb:Scan", f"{table}/index/ByDate", **NAMED)
    for function in ("WalkSegments", "KeepIndex"):
        for action in ("DescribeTable", "GetItem", "PutItem", "DeleteItem"):
            assert many.allows(function, f"dynamodb:{action}", table)
    assert many.allows("KeepIndex", "dynamodb:GetRecords", f"{table}/stream/2026")
    assert many.allows("ManageIndex", "dynamodb:UpdateTable", table)


@pytest.mark.parametrize("owner", [*READERS, *KEY_INDEX_FUNCTIONS])
def test_no_two_statements_have_the_same_name(many: Deployed, owner: str):
    sids = [one["Sid"] for one in many.statements(owner) if "Sid" in one]
    assert len(set(sids)) == len(sids)
    assert all(sid.isalnum() for sid in sids), "IAM takes nothing else"


@pytest.mark.parametrize(
    ("tables", "fit"), [(NAMES, 93), (kept(NAMES), 42)], ids=["plain", "with key indexes"]
)
def test_what_does_not_fit_into_an_environment_is_refused_with_the_number_that_does(
    tables: list[Any], fit: int
):
    with pytest.raises(ConfigError) as refused:
        Config.from_context({"tables": tables})
    assert f"has 200 tables, of which {fit} fit into one stack" in str(refused.value)
    assert "second stack (stackName)" in str(refused.value)
    assert len(Config.from_context({"tables": tables[:fit]}).tables) == fit


@pytest.mark.prove
@pytest.mark.timeout(600)
@pytest.mark.parametrize("tables", [NAMES[:93], kept(NAMES[:42])], ids=["plain", "key indexes"])
def test_as_many_as_fit_into_an_environment_fit_everywhere(tables: list[Any]):
    limits.check_template(deployed(stack_of({"tables": tables})).body, len(tables))


@pytest.mark.prove
@pytest.mark.timeout(600)
def test_long_names_and_short_ones_fit_or_are_refused_with_a_number_that_fits():
    def checked(tables: list[Any]) -> None:
        limits.check_template(deployed(stack_of({"tables": tables})).body, len(tables))

    checked(kept([f"{number:0200}" for number in range(7)]))
    attributes = [f"an-attribute-{number}" for number in range(8)]
    tables = kept([f"T{n:02}" for n in range(60)])
    tables = [{**one, "keyAttributes": [*attributes, one["table"]]} for one in tables]
    with pytest.raises(ConfigError, match=r"has 60 tables.* managed policies of") as refused:
        checked(tables)
    fit = int(str(refused.value).split("; ")[1].split()[0])
    assert 20 < fit < 60
    checked(tables[:fit])


ROLE = {"Type": "AWS::IAM::Role", "Properties": {}}


def policy(kind: str, characters: int) -> dict[str, Any]:
    document = {"Statement": ["x" * (characters - len('{"Statement":[""]}'))]}
    return {
        "Type": f"AWS::IAM::{kind}",
        "Properties": {"PolicyDocument": document, "Roles": [{"Ref": "Role"}]},
    }


def function(**properties: Any) -> dict[str, Any]:
    return {"Type": "AWS::Lambda::Function", "Properties": properties}


def variables(characters: int) -> dict[str, Any]:
    text = '"' + "x" * (characters - len(r'{"A":"\""}'))
    return function(Environment={"Variables": {"A": text}})


@pytest.mark.parametrize(
    ("just", "too_much", "told"),
    [
        (
            {"Role": ROLE, "A": policy("Policy", 5_000), "B": policy("Policy", 5_240)},
            {"Role": ROLE, "A": policy("Policy", 5_000), "B": policy("Policy", 5_241)},
            "Role has inline policies of 10,241, and AWS takes 10,240",
        ),
        (
            {"A": policy("ManagedPolicy", 6_144)},
            {"A": policy("ManagedPolicy", 6_145)},
            "A has a length of 6,145, and AWS takes 6,144",
        ),
        (
            {"Role": ROLE, **{f"P{n}": policy("ManagedPolicy", 99) for n in range(10)}},
            {"Role": ROLE, **{f"P{n}": policy("ManagedPolicy", 99) for n in range(11)}},
            "Role has a number of managed policies of 11, and AWS takes 10",
        ),
        ({"F": variables(4_096)}, {"F": variables(4_097)}, "F has an environment of 4,097"),
        (
            {"F": function(FunctionName="f" * 64)},
            {"F": function(FunctionName="f" * 65)},
            "F has a FunctionName of 65, and AWS takes 64",
        ),
        (
            {f"R{n}": ROLE for n in range(500)},
            {f"R{n}": ROLE for n in range(501)},
            "number of resources of 501",
        ),
        (
            {"S": {"Type": "X", "Properties": {"Text": "x" * 1_048_000}}},
            {"S": {"Type": "X", "Properties": {"Text": "x" * 1_048_576}}},
            "the template has a length of 1,048,",
        ),
    ],
)
def test_each_quota_is_looked_at(just: dict[str, Any], too_much: dict[str, Any], told: str):
    limits.check_template({"Resources": just}, 10)
    with pytest.raises(ConfigError) as refused:
        limits.check_template({"Resources": too_much}, 10)
    assert told in str(refused.value)
    assert "8 of them fit. Deploy a second stack (stackName)" in str(refused.value)


def test_what_cloudformation_puts_in_counts_as_long_as_it_can_get():
    arn = {"Fn::Join": ["", ["arn:", {"Ref": "AWS::Partition"}, ":sns:", {"Ref": "AWS::Region"}]]}
    for value, characters in ((arn, 33), ({"Fn::GetAtt": ["Queue", "Arn"]}, 150)):
        named = {"F": function(FunctionName=value)}
        if characters < 64:
            limits.check_template({"Resources": named}, 1)
        else:
            with pytest.raises(ConfigError, match=f"of {characters},"):
                limits.check_template({"Resources": named}, 1)


def warnings(region: str | None, *counts: int, credentials: str = "") -> list[str]:
    """Add so many rules at a time; return the warnings of the stack.

    region: of the stack. credentials: the region that they tell.
    """
    env = Environment(account="111122223333", region=region) if region else None
    stack = Stack(App(context={REGION: credentials}), "Stack", env=env)
    for turn, count in enumerate(counts):
        for number in range(count):
            schedule = events.Schedule.expression("rate(1 day)")
            events.Rule(stack, f"Rule{turn}-{number}", schedule=schedule)
        warn_of_many_rules(stack, count)
    metadata = stack.node.metadata
    return [str(one.data) for one in metadata if one.type == "aws:cdk:warning"]


@pytest.mark.parametrize(
    ("region", "most"), [("eu-west-1", 300), ("af-south-1", 100), ("eu-south-1", 100), (None, 300)]
)
def test_one_warning_tells_of_more_rules_than_an_event_bus_has(region: str | None, most: int):
    assert warnings(region, most - 1, 1) == []
    (said,) = warnings(region, most, 1, 5)
    assert f"more than {most} EventBridge rules" in said
    assert (region or "event bus,") in said


def test_the_region_of_the_credentials_counts_where_the_stack_names_none():
    assert len(warnings(None, 101, credentials="af-south-1")) == 1
