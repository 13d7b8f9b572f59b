"""Tests that synth refuses what AWS would refuse at a deployment, and accepts 40 tables."""

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


def indexed(names: list[str], **more: Any) -> list[dict[str, Any]]:
    return [{"table": name, "keyIndex": True, **more} for name in names]


@pytest.mark.parametrize("context", ["plain", "mixed"])
def test_a_small_deployment_is_far_below_every_quota(context: str):
    limits.check_template(deployed(stack_of(CONTEXTS[context])).body, 7)


@pytest.mark.prove
def test_forty_tables_with_key_indexes_are_accepted(many: Deployed):
    limits.check_template(many.body, len(MANY))


@pytest.mark.parametrize("table", [table_arn(MANY[0]), table_arn(MANY[-1])])
def test_managed_policies_keep_every_permission(many: Deployed, table: str):
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
    sids = [statement["Sid"] for statement in many.statements(owner) if "Sid" in statement]
    assert len(set(sids)) == len(sids)
    assert all(sid.isalnum() for sid in sids), "IAM accepts only letters and digits"


@pytest.mark.parametrize(
    ("tables", "count"), [(NAMES, 93), (indexed(NAMES), 42)], ids=["plain", "with key indexes"]
)
def test_too_many_tables_for_an_environment_are_refused_with_the_number_that_fits(
    tables: list[Any], count: int
):
    with pytest.raises(ConfigError) as error:
        Config.from_context({"tables": tables})
    assert f"has 200 tables, of which {count} fit into one stack" in str(error.value)
    assert "second stack (stackName)" in str(error.value)
    assert len(Config.from_context({"tables": tables[:count]}).tables) == count


@pytest.mark.prove
@pytest.mark.timeout(600)
@pytest.mark.parametrize("tables", [NAMES[:93], indexed(NAMES[:42])], ids=["plain", "key indexes"])
def test_tables_that_fit_into_an_environment_are_below_every_quota(tables: list[Any]):
    limits.check_template(deployed(stack_of({"tables": tables})).body, len(tables))


@pytest.mark.prove
@pytest.mark.timeout(600)
def test_tables_with_long_or_short_names_fit_or_are_refused_with_the_number_that_fits():
    def check(tables: list[Any]) -> None:
        limits.check_template(deployed(stack_of({"tables": tables})).body, len(tables))

    check(indexed([f"{number:0200}" for number in range(7)]))
    attributes = [f"an-attribute-{number}" for number in range(8)]
    tables = indexed([f"T{n:02}" for n in range(60)])
    tables = [{**table, "keyAttributes": [*attributes, table["table"]]} for table in tables]
    with pytest.raises(ConfigError, match=r"has 60 tables.* managed policies of") as error:
        check(tables)
    count = int(str(error.value).split("; ")[1].split()[0])
    assert 20 < count < 60
    check(tables[:count])


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
    ("fitting", "too_much", "sentence"),
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
def test_each_quota_is_checked(fitting: dict[str, Any], too_much: dict[str, Any], sentence: str):
    limits.check_template({"Resources": fitting}, 10)
    with pytest.raises(ConfigError) as error:
        limits.check_template({"Resources": too_much}, 10)
    assert sentence in str(error.value)
    assert "8 of them fit. Deploy a second stack (stackName)" in str(error.value)


def test_a_value_of_cloudformation_counts_with_its_maximum_length():
    arn = {"Fn::Join": ["", ["arn:", {"Ref": "AWS::Partition"}, ":sns:", {"Ref": "AWS::Region"}]]}
    for value, characters in ((arn, 33), ({"Fn::GetAtt": ["Queue", "Arn"]}, 150)):
        resources = {"F": function(FunctionName=value)}
        if characters < 64:
            limits.check_template({"Resources": resources}, 1)
        else:
            with pytest.raises(ConfigError, match=f"of {characters},"):
                limits.check_template({"Resources": resources}, 1)


def warnings(region: str | None, *counts: int, credentials: str = "") -> list[str]:
    """Add rules in batches of these counts, and return the warnings of the stack.

    Args:
        region: The region of the stack, if it names one.
        credentials: The region of the user's credentials.
    """
    env = Environment(account="111122223333", region=region) if region else None
    stack = Stack(App(context={REGION: credentials}), "Stack", env=env)
    for batch, count in enumerate(counts):
        for number in range(count):
            schedule = events.Schedule.expression("rate(1 day)")
            events.Rule(stack, f"Rule{batch}-{number}", schedule=schedule)
        warn_of_many_rules(stack, count)
    metadata = stack.node.metadata
    return [str(entry.data) for entry in metadata if entry.type == "aws:cdk:warning"]


@pytest.mark.parametrize(
    ("region", "maximum"),
    [("eu-west-1", 300), ("af-south-1", 100), ("eu-south-1", 100), (None, 300)],
)
def test_too_many_rules_for_an_event_bus_cause_one_warning(region: str | None, maximum: int):
    assert warnings(region, maximum - 1, 1) == []
    (warning,) = warnings(region, maximum, 1, 5)
    assert f"more than {maximum} EventBridge rules" in warning
    assert (region or "event bus,") in warning


def test_a_stack_without_a_region_has_that_of_the_credentials():
    assert len(warnings(None, 101, credentials="af-south-1")) == 1
