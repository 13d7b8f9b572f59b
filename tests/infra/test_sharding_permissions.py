"""Who may do what for sharded tables; each test asks the template's roles as IAM would be asked."""

import pytest

from tests.infra.template import (
    FUNCTIONS,
    KEY_INDEX_FUNCTIONS,
    KEY_INDEX_MACHINES,
    SHARDING_FUNCTIONS,
    Deployed,
    function_arn,
    states_arn,
    table_arn,
)

OTHERS = (*FUNCTIONS, *KEY_INDEX_FUNCTIONS, *KEY_INDEX_MACHINES, "EnumerateKeys", "WalkKeyIndexes")
OWNERS = (*SHARDING_FUNCTIONS, "DrainShards")
SHARDED = (table_arn("Audit"), table_arn("Devices"))
METADATA = (table_arn("Keyhop-shards-Audit"), table_arn("device-shards"))
NOT_SHARDED = (table_arn("Flights"), table_arn("Orders"), table_arn("Others"))
DRAINS = states_arn("stateMachine:Keyhop-DrainShards")

ON_TABLES = {
    "WriteSharded": {
        *("PutItem", "DeleteItem", "BatchWriteItem", "ConditionCheckItem"),
        *("GetItem", "BatchGetItem", "DescribeTable"),
    },
    "QuerySharded": {"Query", "DescribeTable"},
    "MoveShards": {
        *("Query", "PutItem", "UpdateItem", "DeleteItem", "ConditionCheckItem", "DescribeTable"),
    },
    "ProposeDrains": {"DescribeTable"},
    "DrainShards": set(),
}
ON_METADATA = {
    "WriteSharded": {"GetItem", "PutItem", "UpdateItem"},
    "QuerySharded": {"GetItem"},
    "MoveShards": {"GetItem", "UpdateItem"},
    "ProposeDrains": {"Scan", "UpdateItem"},
    "DrainShards": set(),
}
WRITES = {"PutItem", "UpdateItem", "DeleteItem", "BatchWriteItem", "PartiQLUpdate"}
KNOWN = {
    *WRITES,
    *("GetItem", "BatchGetItem", "Query", "Scan", "ConditionCheckItem", "DescribeTable"),
    *("UpdateTable", "DeleteTable", "CreateTable", "UpdateTimeToLive"),
}


def allowed(template: Deployed, owner: str, resource: str) -> set[str]:
    return {one for one in KNOWN if template.allows(owner, f"dynamodb:{one}", resource)}


@pytest.mark.parametrize("owner", OWNERS)
@pytest.mark.parametrize("table", SHARDED)
def test_each_has_the_rights_to_a_table_that_it_needs_and_no_other(
    sharded: Deployed, owner: str, table: str
):
    assert allowed(sharded, owner, table) == ON_TABLES[owner]


@pytest.mark.parametrize("owner", OWNERS)
@pytest.mark.parametrize("table", METADATA)
def test_each_has_the_rights_to_the_metadata_that_it_needs_and_no_other(
    sharded: Deployed, owner: str, table: str
):
    assert allowed(sharded, owner, table) == ON_METADATA[owner]


def test_query_function_cannot_write_the_table(sharded: Deployed):
    for table in (*SHARDED, *METADATA):
        assert not allowed(sharded, "QuerySharded", table) & WRITES


def test_write_function_cannot_look_through_the_table(sharded: Deployed):
    """It finds an item by its key, and can be made to show no others."""
    for table in (*SHARDED, *METADATA):
        assert not allowed(sharded, "WriteSharded", table) & {"Scan", "Query"}


def test_write_function_can_see_that_a_shard_is_not_empty_and_how_keys_are_placed(
    sharded: Deployed,
):
    """Before it registers a key: no item, and no key, is shown to it."""
    for table in SHARDED:
        assert sharded.allows("WriteSharded", "dynamodb:Query", table, dynamodb__Select="COUNT")
    for table in METADATA:
        for names, may in (
            (["placement"], True),
            (["path"], False),
            (["placement", "path"], False),
        ):
            asked = {"dynamodb__Select": "SPECIFIC_ATTRIBUTES", "dynamodb__Attributes": names}
            assert sharded.allows("WriteSharded", "dynamodb:Scan", table, **asked) == may


def test_who_proposes_sees_no_item_of_a_table(sharded: Deployed):
    for table in SHARDED:
        assert allowed(sharded, "ProposeDrains", table) == {"DescribeTable"}


@pytest.mark.parametrize("owner", ["WriteSharded", "MoveShards"])
def test_a_transaction_has_the_rights_of_what_is_in_it(sharded: Deployed, owner: str):
    """There is no right named TransactWriteItems (AWS documentation, "Using IAM ...")."""
    for table in SHARDED:
        for action in ("PutItem", "DeleteItem", "ConditionCheckItem"):
            assert sharded.allows(owner, f"dynamodb:{action}", table)


@pytest.mark.parametrize("owner", OWNERS)
@pytest.mark.parametrize("table", NOT_SHARDED)
def test_tables_that_are_not_sharded_are_nobodys_business(
    sharded: Deployed, owner: str, table: str
):
    assert allowed(sharded, owner, table) == set()
    assert not sharded.allows(owner, "dynamodb:Query", f"{table}/index/ByDate")


@pytest.mark.parametrize("owner", OWNERS)
def test_only_queries_may_use_indexes(sharded: Deployed, owner: str):
    for table in SHARDED:
        may = sharded.allows(owner, "dynamodb:Query", f"{table}/index/Copy")
        assert may == (owner == "QuerySharded")


@pytest.mark.parametrize("owner", OTHERS)
def test_nobody_else_knows_of_the_metadata_but_who_folds_logical_keys_or_protects_it(
    sharded: Deployed, owner: str
):
    for table in METADATA:
        may = {
            "PlanRun": {"DescribeTable"},
            "FinishRun": {"Scan"},
            "ReleaseKeeper": {"UpdateTable", "DescribeTable"},  # protects it from deletion
        }
        assert allowed(sharded, owner, table) == may.get(owner, set())


def test_who_folds_logical_keys_sees_no_item_of_a_table(sharded: Deployed):
    for table in SHARDED:
        assert allowed(sharded, "FinishRun", table) == set()


@pytest.mark.parametrize("owner", [*OWNERS, *OTHERS])
def test_only_who_writes_asks_for_metrics(sharded: Deployed, owner: str):
    assert sharded.allows(owner, "cloudwatch:GetMetricData", "*") == (owner == "WriteSharded")


@pytest.mark.parametrize("owner", SHARDING_FUNCTIONS)
def test_a_proposal_starts_nothing(sharded: Deployed, owner: str):
    assert not sharded.allows(owner, "states:StartExecution", DRAINS)


@pytest.mark.parametrize("owner", [*OWNERS, *OTHERS])
def test_drains_are_started_only_when_the_context_says_so(draining: Deployed, owner: str):
    may = draining.allows(owner, "states:StartExecution", DRAINS)
    assert may == (owner == "ProposeDrains")


def test_who_starts_drains_starts_no_other_machine(draining: Deployed):
    for name in (*KEY_INDEX_MACHINES, "EnumerateKeys"):
        machine = states_arn(f"stateMachine:Keyhop-{name}")
        assert not draining.allows("ProposeDrains", "states:StartExecution", machine)


def test_the_machine_invokes_the_function_of_its_state_and_no_other(sharded: Deployed):
    invoked = {
        resource
        for statement in sharded.statements("DrainShards")
        if "lambda:InvokeFunction" in statement["Action"]
        for resource in statement["Resource"]
    }
    assert invoked == {function_arn("Keyhop-MoveShards")}
    services = {a.split(":")[0] for s in sharded.statements("DrainShards") for a in s["Action"]}
    assert services == {"lambda", "logs", "xray", "cloudwatch"}


def test_the_schedule_alone_may_invoke_who_proposes(sharded: Deployed):
    (permission,) = sharded.of_type("AWS::Lambda::Permission").values()
    properties = sharded.resolve(permission["Properties"])
    assert properties["FunctionName"] == function_arn("Keyhop-ProposeDrains")
    assert properties["Principal"] == "events.amazonaws.com"
    assert properties["SourceArn"]


@pytest.mark.parametrize("owner", OWNERS)
def test_each_statement_of_ours_says_why_and_no_two_the_same(draining: Deployed, owner: str):
    """IAM refuses a policy whose Sids are not unique."""
    statements = draining.statements(owner)
    sids = [statement["Sid"] for statement in statements if "Sid" in statement]
    assert len(set(sids)) == len(sids)
    for statement in statements:
        assert "Sid" in statement or statement["Resource"] == ["*"]


@pytest.mark.parametrize("owner", OWNERS)
def test_no_action_is_a_wildcard_and_whole_services_are_known_ones(draining: Deployed, owner: str):
    for statement in draining.statements(owner):
        for action in statement["Action"]:
            assert "*" not in action
            if "*" in statement["Resource"]:
                known = action in ("cloudwatch:GetMetricData", "cloudwatch:PutMetricData")
                assert known or action.split(":")[0] in ("xray", "logs")
