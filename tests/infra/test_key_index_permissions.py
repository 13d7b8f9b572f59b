"""Who may do what for key indexes; each test asks the template's roles as IAM would be asked."""

from itertools import product
from typing import Any

import pytest
from keyhop.key_index.sentinel import INDEX, MARKER

from tests.infra.conftest import FAR_TABLE, FOREIGN_TABLE
from tests.infra.template import (
    ACCOUNT,
    BUCKET_ARN,
    FUNCTIONS,
    KEY_INDEX_FUNCTIONS,
    KEY_INDEX_MACHINES,
    QUEUE_ARN,
    REGION,
    Deployed,
    function_arn,
    states_arn,
    table_arn,
)

MACHINES = ("EnumerateKeys", "WalkKeyIndexes", *KEY_INDEX_MACHINES)
ALL_FUNCTIONS = (*FUNCTIONS, *KEY_INDEX_FUNCTIONS)
OWNERS = (*ALL_FUNCTIONS, *MACHINES)
WRITERS = ("KeepIndex", "WalkSegments")
LOOKERS = (*WRITERS, "ManageIndex")
ORDERS, EVENTS = table_arn("Orders"), table_arn("Events")
KEPT = (ORDERS, EVENTS, FAR_TABLE)
NOT_KEPT = (table_arn("Flights"), table_arn("Customers"), table_arn("Others"), FOREIGN_TABLE)
NAMED = {"dynamodb__Select": "SPECIFIC_ATTRIBUTES"}
KEY = {"dynamodb__Attributes": ["customer", "order", MARKER]}
MORE = {"dynamodb__Attributes": ["customer", "order", "creditCard"]}
KEEPER = function_arn("Keyhop-KeepIndex")
MAPPING = f"arn:aws:lambda:{REGION}:{ACCOUNT}:event-source-mapping:1-2-3"
ENTRY = f"{BUCKET_ARN}/key-index/Orders-1a2b/entry.json"
RUN = f"{BUCKET_ARN}/runs/r1/manifest.json"

JUDGES = ("PlanRun", "FinishRun")
"""Who decides whether an index may be believed."""
REGISTRY_READERS = (*JUDGES, *LOOKERS, "ReleaseKeeper")

WHOLE_SERVICE = {
    "xray": "knows no resources",
    "logs": "log delivery knows no resources",
    "lambda:ListEventSourceMappings": "a list knows no resources",
    "lambda:GetAccountSettings": "an account's settings know no resources",
    "cloudwatch:GetMetricStatistics": "metrics know no resources",
    "cloudwatch:PutMetricData": "metrics know no resources; narrowed by a condition",
    "dynamodb:ListStreams": "a list knows no resources",
    "application-autoscaling:DescribeScalableTargets": "a list knows no resources",
    "application-autoscaling:DescribeScalingPolicies": "a list knows no resources",
    "cloudwatch:DescribeAlarms": "Application Auto Scaling asks without a resource",
    "cloudwatch:PutMetricAlarm": "Application Auto Scaling asks without a resource",
    "cloudwatch:DeleteAlarms": "Application Auto Scaling asks without a resource",
    "lambda:CreateEventSourceMapping": "has no name yet; narrowed by a condition",
}


@pytest.mark.parametrize("table", [*KEPT, *NOT_KEPT])
def test_scan_function_cannot_write_the_data_table(kept: Deployed, table: str):
    """Whoever lists keys changes nothing, also where there is a key index."""
    for action in ("PutItem", "DeleteItem", "UpdateItem", "BatchWriteItem", "Query", "GetItem"):
        assert not kept.allows("ScanSegments", f"dynamodb:{action}", table, **NAMED, **KEY)


@pytest.mark.parametrize("table", KEPT)
def test_walk_function_writes_sentinels_where_there_is_a_key_index(kept: Deployed, table: str):
    assert kept.allows("WalkSegments", "dynamodb:PutItem", table, **KEY)
    assert kept.allows("WalkSegments", "dynamodb:DeleteItem", table, **KEY)


@pytest.mark.parametrize("table", NOT_KEPT)
def test_walk_function_has_no_business_with_other_tables(kept: Deployed, table: str):
    for action in ("PutItem", "DeleteItem", "Scan", "Query", "GetItem", "DescribeTable"):
        assert not kept.allows("WalkSegments", f"dynamodb:{action}", table, **NAMED, **KEY)


def test_only_walks_invoke_the_function_that_writes(kept: Deployed):
    for machine in MACHINES:
        may = kept.allows(machine, "lambda:InvokeFunction", function_arn("Keyhop-WalkSegments"))
        assert may == (machine == "WalkKeyIndexes")


@pytest.mark.parametrize(
    ("worker", "machine"), [("ScanSegments", "EnumerateKeys"), ("WalkSegments", "WalkKeyIndexes")]
)
def test_a_worker_asks_about_the_map_of_its_own_machine(kept: Deployed, worker: str, machine: str):
    for one in ("EnumerateKeys", "WalkKeyIndexes"):
        map_run = states_arn(f"mapRun:Keyhop-{one}/ScanGroups:8a1e")
        may = kept.allows(worker, "states:DescribeMapRun", map_run)
        assert may == (one == machine)


@pytest.mark.parametrize("owner", OWNERS)
@pytest.mark.parametrize("action", ["PutItem", "DeleteItem"])
def test_only_who_keeps_an_index_writes_and_only_where_there_is_one(
    kept: Deployed, owner: str, action: str
):
    for table in KEPT:
        may = kept.allows(owner, f"dynamodb:{action}", table, **KEY)
        assert may == (owner in WRITERS), table
    for table in NOT_KEPT:
        assert not kept.allows(owner, f"dynamodb:{action}", table, **KEY), table


@pytest.mark.parametrize("owner", OWNERS)
def test_nobody_has_another_way_to_write(kept: Deployed, owner: str):
    """And nobody may make or delete a table, or change what is kept about it."""
    actions = {
        action
        for statement in kept.statements(owner)
        for action in statement["Action"]
        if action.startswith("dynamodb:")
    }
    assert actions <= {
        f"dynamodb:{name}"
        for name in (
            *("DescribeTable", "Scan", "Query", "GetItem", "BatchGetItem"),
            *("PutItem", "DeleteItem", "UpdateTable"),
            *("DescribeStream", "GetRecords", "GetShardIterator", "ListStreams"),
        )
    }


@pytest.mark.parametrize("owner", OWNERS)
def test_only_who_manages_changes_a_table(kept: Deployed, owner: str):
    for table in KEPT:
        may = kept.allows(owner, "dynamodb:UpdateTable", table)
        assert may == (owner == "ManageIndex"), table
    for table in NOT_KEPT:
        assert not kept.allows(owner, "dynamodb:UpdateTable", table)


@pytest.mark.parametrize("function", WRITERS)
@pytest.mark.parametrize("action", ["PutItem", "DeleteItem"])
def test_what_is_written_has_no_attribute_but_key_and_marker(
    kept: Deployed, function: str, action: str
):
    """Where the context names the key attributes; elsewhere a warning of the synth says so."""
    assert kept.allows(function, f"dynamodb:{action}", ORDERS, **KEY)
    assert not kept.allows(function, f"dynamodb:{action}", ORDERS, **MORE)


LOOKS = [*product(["Query", "GetItem"], LOOKERS), ("BatchGetItem", "KeepIndex")]
"""Of many collections at once the keeper alone reads."""


@pytest.mark.parametrize(("action", "function"), LOOKS)
def test_who_looks_into_collections_sees_keys_only(kept: Deployed, function: str, action: str):
    def may(table: str, **context: Any) -> bool:
        return kept.allows(function, f"dynamodb:{action}", table, **context)

    for table in KEPT:
        assert may(table, **NAMED, **KEY)
        assert not may(table, dynamodb__Select="ALL_ATTRIBUTES", **KEY)
    assert not may(ORDERS, **NAMED, **MORE)
    for table in NOT_KEPT:
        assert not may(table, **NAMED, **KEY)


@pytest.mark.parametrize("function", LOOKERS)
def test_a_query_says_that_it_wants_named_attributes(kept: Deployed, function: str):
    assert not kept.allows(function, "dynamodb:Query", ORDERS, **KEY)


@pytest.mark.parametrize(("action", "function"), [look for look in LOOKS if look[0] != "Query"])
def test_a_get_has_no_select_and_is_allowed_all_the_same(
    kept: Deployed, function: str, action: str
):
    assert kept.allows(function, f"dynamodb:{action}", ORDERS, **KEY)


@pytest.mark.parametrize("owner", OWNERS)
def test_nobody_else_reads_single_items(kept: Deployed, owner: str):
    for action in ("Query", "GetItem", "BatchGetItem"):
        for table in KEPT:
            may = kept.allows(owner, f"dynamodb:{action}", table, **NAMED, **KEY)
            assert may == ((action, owner) in LOOKS)


@pytest.mark.parametrize(
    "function", ["PlanRun", "ScanSegments", "WalkSegments", "VerifyRun", "ManageIndex"]
)
def test_who_scans_a_kept_table_sees_the_marker_as_well(kept: Deployed, function: str):
    for resource in (ORDERS, f"{ORDERS}/index/{INDEX}"):
        assert kept.allows(function, "dynamodb:Scan", resource, **NAMED, **KEY)
        assert not kept.allows(function, "dynamodb:Scan", resource, **NAMED, **MORE)
        assert not kept.allows(function, "dynamodb:Scan", resource, **KEY)
    customers = {"dynamodb__Attributes": ["customer", MARKER]}
    lists_keys = function in ("PlanRun", "ScanSegments", "VerifyRun")
    assert lists_keys == kept.allows(
        function, "dynamodb:Scan", table_arn("Customers"), **NAMED, **customers
    ), "sentinels may be left in it, which are no keys; but nobody walks over it"


@pytest.mark.parametrize("function", ["ManageIndex", "WalkSegments"])
def test_who_manages_scans_the_key_index_and_no_other(kept: Deployed, function: str):
    for table in KEPT:
        assert not kept.allows(function, "dynamodb:Scan", f"{table}/index/ByDate", **NAMED)
    for table in NOT_KEPT:
        assert not kept.allows(function, "dynamodb:Scan", table, **NAMED)


@pytest.mark.parametrize("owner", OWNERS)
@pytest.mark.parametrize("action", ["DescribeStream", "GetRecords", "GetShardIterator"])
def test_only_the_keeper_reads_streams(kept: Deployed, owner: str, action: str):
    for table in KEPT:
        stream = f"{table}/stream/2026-11-21T09:00:00.000"
        assert kept.allows(owner, f"dynamodb:{action}", stream) == (owner == "KeepIndex")
    for table in NOT_KEPT:
        assert not kept.allows(owner, f"dynamodb:{action}", f"{table}/stream/2026-11-21")
    assert kept.allows(owner, "dynamodb:ListStreams", "*") == (owner == "KeepIndex")


@pytest.mark.parametrize("owner", OWNERS)
def test_only_the_keepers_failures_go_to_the_queue(kept: Deployed, owner: str):
    assert kept.allows(owner, "sqs:SendMessage", QUEUE_ARN) == (owner == "KeepIndex")
    for action in ("ReceiveMessage", "DeleteMessage", "PurgeQueue"):
        assert not kept.allows(owner, f"sqs:{action}", QUEUE_ARN)


@pytest.mark.parametrize(
    ("action", "resource", "who"),
    [
        ("Create", "*", {"ManageIndex"}),
        ("Update", MAPPING, {"ManageIndex"}),
        ("Delete", MAPPING, {"ManageIndex", "ReleaseKeeper"}),
    ],
)
@pytest.mark.parametrize("owner", OWNERS)
def test_mappings_are_changed_for_the_keeper_only(
    kept: Deployed, owner: str, action: str, resource: str, who: set[str]
):
    def may(function: str | None) -> bool:
        name = f"lambda:{action}EventSourceMapping"
        return kept.allows(owner, name, resource, lambda__FunctionArn=function)

    assert may(KEEPER) == (owner in who)
    assert not may(function_arn("Keyhop-ManageIndex"))
    assert not may(function_arn("SomebodyElses"))
    assert not may(None)


@pytest.mark.parametrize("owner", OWNERS)
def test_who_changes_mappings_or_judges_by_them_can_find_them(kept: Deployed, owner: str):
    may = kept.allows(owner, "lambda:ListEventSourceMappings", "*")
    assert may == (owner in ("ManageIndex", "ReleaseKeeper", *JUDGES))


@pytest.mark.parametrize("owner", OWNERS)
def test_who_judges_sees_how_far_the_keeper_is_and_what_it_gave_up(kept: Deployed, owner: str):
    """Without one of these the index is believed by nobody: what is unknown is no evidence."""
    judges = owner in JUDGES
    assert kept.allows(owner, "cloudwatch:GetMetricStatistics", "*") == judges
    for action in ("GetQueueUrl", "GetQueueAttributes"):
        assert kept.allows(owner, f"sqs:{action}", QUEUE_ARN) == judges
        assert not kept.allows(owner, f"sqs:{action}", QUEUE_ARN + "-of-another")


@pytest.mark.parametrize("table", KEPT)
@pytest.mark.parametrize("function", JUDGES)
def test_who_judges_sees_the_index_and_the_stream_of_a_table(
    kept: Deployed, function: str, table: str
):
    assert kept.allows(function, "dynamodb:DescribeTable", table)


@pytest.mark.parametrize("table", NOT_KEPT)
def test_who_ends_a_run_looks_at_no_table_without_a_key_index(kept: Deployed, table: str):
    assert not kept.allows("FinishRun", "dynamodb:DescribeTable", table)


@pytest.mark.parametrize("machine", KEY_INDEX_MACHINES)
def test_who_manages_sees_whether_the_holder_of_a_lease_is_at_work(kept: Deployed, machine: str):
    """Else a lease of an execution that was stopped would never end."""
    execution = states_arn(f"execution:Keyhop-{machine}:e1")
    for owner in ALL_FUNCTIONS:
        may = kept.allows(owner, "states:DescribeExecution", execution)
        assert may == (owner == "ManageIndex")
    for other in ("Keyhop-EnumerateKeys", "Keyhop-WalkKeyIndexes", "Another"):
        execution = states_arn(f"execution:{other}:e1")
        assert not kept.allows("ManageIndex", "states:DescribeExecution", execution)


@pytest.mark.parametrize("owner", OWNERS)
def test_only_who_manages_writes_what_is_known_of_an_index(kept: Deployed, owner: str):
    """To write an object only if it is still the one that was read, S3 demands GetObject too."""
    assert kept.allows(owner, "s3:PutObject", ENTRY) == (owner in ("ManageIndex", "KeepIndex"))
    assert not kept.allows(owner, "s3:DeleteObject", ENTRY)
    assert kept.allows(owner, "s3:GetObject", ENTRY) == (owner in REGISTRY_READERS)


def test_who_manages_reads_runs_and_adds_a_report(kept: Deployed):
    assert kept.allows("ManageIndex", "s3:PutObject", RUN.replace("manifest", "verification"))
    assert kept.allows("ManageIndex", "s3:GetObject", RUN)
    for action in ("PutObject", "DeleteObject"):
        assert not kept.allows("ManageIndex", f"s3:{action}", RUN)
    for prefix in ("runs/r1/drift/", "key-index/Orders/"):
        assert kept.allows("ManageIndex", "s3:ListBucket", BUCKET_ARN, s3__prefix=prefix)
    assert not kept.allows("ManageIndex", "s3:ListBucket", BUCKET_ARN, s3__prefix="other/")


def test_the_keeper_reads_where_sentinels_are_and_nothing_else_of_the_bucket(kept: Deployed):
    for action in ("GetObject", "PutObject"):
        assert not kept.allows("KeepIndex", f"s3:{action}", RUN)
    assert not kept.allows("KeepIndex", "s3:ListBucket", BUCKET_ARN, s3__prefix="runs/r1/")


def test_who_releases_tables_reads_which_key_indexes_stand_and_nothing_else(kept: Deployed):
    assert kept.allows("ReleaseKeeper", "s3:ListBucket", BUCKET_ARN, s3__prefix="key-index/")
    assert not kept.allows("ReleaseKeeper", "s3:ListBucket", BUCKET_ARN, s3__prefix="runs/")
    assert not kept.allows("ReleaseKeeper", "s3:GetObject", RUN)


@pytest.mark.parametrize("machine", KEY_INDEX_MACHINES)
def test_a_machine_starts_walks_and_waits_for_their_end(kept: Deployed, machine: str):
    """What `startExecution.sync:2` needs by AWS's documentation."""
    walks = states_arn("stateMachine:Keyhop-WalkKeyIndexes")
    walk = states_arn("execution:Keyhop-WalkKeyIndexes:w1")
    rule = (
        f"arn:aws:events:{REGION}:{ACCOUNT}:rule/"
        "StepFunctionsGetEventsForStepFunctionsExecutionRule"
    )
    assert kept.allows(machine, "states:StartExecution", walks)
    for action in ("DescribeExecution", "StopExecution"):
        assert kept.allows(machine, f"states:{action}", walk)
    for action in ("PutTargets", "PutRule", "DescribeRule"):
        assert kept.allows(machine, f"events:{action}", rule)


@pytest.mark.parametrize("machine", KEY_INDEX_MACHINES)
def test_a_machine_does_nothing_else(kept: Deployed, machine: str):
    invoked = {
        resource
        for statement in kept.statements(machine)
        if "lambda:InvokeFunction" in statement["Action"]
        for resource in statement["Resource"]
    }
    assert invoked == {function_arn("Keyhop-ManageIndex")}
    for other in MACHINES:
        may = kept.allows(
            machine, "states:StartExecution", states_arn(f"stateMachine:Keyhop-{other}")
        )
        assert may == (other == "WalkKeyIndexes")
    services = {a.split(":")[0] for s in kept.statements(machine) for a in s["Action"]}
    assert services == {"lambda", "states", "events", "logs", "xray", "cloudwatch"}


def test_the_schedule_starts_verifications_and_nothing_else(kept: Deployed):
    (role,) = {
        rule["Properties"]["Targets"][0]["RoleArn"]["Fn::GetAtt"][0]
        for rule in kept.of_type("AWS::Events::Rule").values()
    }
    (statement,) = kept.statements_of({"Role": {"Fn::GetAtt": [role, "Arn"]}})
    assert statement["Sid"] == "StartVerifications"
    assert statement["Action"] == ["states:StartExecution"]
    assert statement["Resource"] == [states_arn("stateMachine:Keyhop-VerifyKeyIndex")]


@pytest.mark.parametrize("owner", OWNERS)
def test_each_statement_of_ours_says_why_and_no_two_the_same(kept: Deployed, owner: str):
    """IAM refuses a policy whose Sids are not unique."""
    statements = kept.statements(owner)
    sids = [statement["Sid"] for statement in statements if "Sid" in statement]
    assert len(set(sids)) == len(sids)
    for statement in statements:
        assert "Sid" in statement or statement["Resource"] == ["*"]


@pytest.mark.parametrize("owner", OWNERS)
def test_no_action_is_a_wildcard_and_whole_services_are_known_ones(kept: Deployed, owner: str):
    for statement in kept.statements(owner):
        for action in statement["Action"]:
            assert "*" not in action
            if "*" in statement["Resource"]:
                assert action in WHOLE_SERVICE or action.split(":")[0] in WHOLE_SERVICE


@pytest.mark.parametrize("owner", FUNCTIONS)
def test_without_a_key_index_nobody_can_write(template: Deployed, owner: str):
    for table in (table_arn("Flights"), ORDERS, FOREIGN_TABLE):
        for action in ("PutItem", "DeleteItem", "UpdateTable", "Query", "GetItem"):
            assert not template.allows(owner, f"dynamodb:{action}", table, **NAMED)
    assert not template.allows(owner, "s3:GetObject", ENTRY)


@pytest.mark.parametrize("owner", OWNERS)
@pytest.mark.parametrize("action", ["RegisterScalableTarget", "DeregisterScalableTarget"])
def test_only_indexes_are_made_to_scale_and_only_by_who_makes_them(
    kept: Deployed, owner: str, action: str
):
    """The users' tables scale as they did."""
    target = f"arn:aws:application-autoscaling:{REGION}:{ACCOUNT}:scalable-target/1a2b"

    def may(service: str, dimension: str) -> bool:
        prefix = "application-autoscaling__"
        asked = {f"{prefix}service-namespace": service, f"{prefix}scalable-dimension": dimension}
        return kept.allows(owner, f"application-autoscaling:{action}", target, **asked)

    index = "dynamodb:index:WriteCapacityUnits"
    assert may("dynamodb", index) == (owner == "ManageIndex")
    assert not may("dynamodb", "dynamodb:table:WriteCapacityUnits")
    assert not may("ecs", index)


@pytest.mark.parametrize("owner", OWNERS)
@pytest.mark.parametrize("action", ["DescribeAlarms", "PutMetricAlarm", "DeleteAlarms"])
def test_only_the_manager_has_the_alarm_permissions_that_auto_scaling_requires(
    kept: Deployed, owner: str, action: str
):
    """Application Auto Scaling validates these permissions without naming an alarm."""
    assert kept.allows(owner, f"cloudwatch:{action}", "*") == (owner == "ManageIndex")
