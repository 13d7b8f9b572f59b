"""Who may do what; each test asks the template's roles as IAM would be asked."""

import re

import pytest

from infra import LAMBDAS
from infra.permissions import ALL_RUNS, KEY_INDEXES, REPORTS
from tests.infra.conftest import FOREIGN_TABLE
from tests.infra.template import (
    ACCOUNT,
    BUCKET_ARN,
    FUNCTIONS,
    REGION,
    Deployed,
    log_group_arn,
    states_arn,
    table_arn,
)

READERS = ("PlanRun", "ScanSegments", "VerifyRun")
OTHERS = ("FinishRun", "CleanUp", "EnumerateKeys")
FLIGHTS, ORDERS = table_arn("Flights"), table_arn("Orders")
NAMED = {"dynamodb__Select": "SPECIFIC_ATTRIBUTES"}
PART = f"{BUCKET_ARN}/runs/r1/parts/0-0.jsonl.gz"
KNOWN_WILDCARDS = {
    "dynamodb": "/index/*",
    "s3": f"{BUCKET_ARN}/runs/*",
    "states": "*",
    "logs": ":*",
}


@pytest.mark.parametrize("action", ["PutItem", "UpdateItem", "DeleteItem", "BatchWriteItem"])
@pytest.mark.parametrize("function", FUNCTIONS)
def test_no_function_can_write_a_table(template: Deployed, function: str, action: str):
    assert not template.allows(function, f"dynamodb:{action}", FLIGHTS, **NAMED)


def test_the_scan_function_has_no_right_to_a_table_but_to_look_and_to_scan(template: Deployed):
    actions = {
        action
        for statement in template.statements("ScanSegments")
        for action in statement["Action"]
        if action.startswith("dynamodb:")
    }
    assert actions == {"dynamodb:DescribeTable", "dynamodb:Scan"}


@pytest.mark.parametrize("function", READERS)
@pytest.mark.parametrize("resource", [FLIGHTS, f"{FLIGHTS}/index/ByDate", FOREIGN_TABLE])
def test_keys_of_allowed_tables_and_their_indexes_can_be_scanned(
    template: Deployed, function: str, resource: str
):
    assert template.allows(function, "dynamodb:Scan", resource, **NAMED)


@pytest.mark.parametrize("function", READERS)
@pytest.mark.parametrize(
    "resource",
    [
        table_arn("Customers"),
        table_arn("Flights2"),
        f"{table_arn('Customers')}/index/ByDate",
        f"arn:aws:dynamodb:us-east-1:{ACCOUNT}:table/Flights",
        f"arn:aws:dynamodb:{REGION}:999999999999:table/Flights",
    ],
)
def test_a_table_that_is_not_on_the_list_cannot_be_read(
    template: Deployed, function: str, resource: str
):
    assert not template.allows(function, "dynamodb:Scan", resource, **NAMED)
    assert not template.allows(function, "dynamodb:DescribeTable", resource)


@pytest.mark.parametrize("function", READERS)
@pytest.mark.parametrize("select", [None, "ALL_ATTRIBUTES", "ALL_PROJECTED_ATTRIBUTES", "COUNT"])
def test_a_scan_that_would_return_whole_items_is_refused(
    template: Deployed, function: str, select: str | None
):
    """Not asking for named attributes is how a Scan comes to return everything."""
    assert not template.allows(function, "dynamodb:Scan", FLIGHTS, dynamodb__Select=select)


@pytest.mark.parametrize("function", READERS)
def test_only_key_attributes_can_be_read_where_the_context_names_them(
    template: Deployed, function: str
):
    def may(*attributes: str) -> bool:
        return template.allows(
            function, "dynamodb:Scan", ORDERS, dynamodb__Attributes=list(attributes), **NAMED
        )

    assert may("customer")
    assert may("customer", "order")
    assert not may("customer", "creditCard")


@pytest.mark.parametrize("owner", OTHERS)
def test_who_sums_up_has_no_business_with_tables(template: Deployed, owner: str):
    for statement in template.statements(owner):
        assert not [action for action in statement["Action"] if action.startswith("dynamodb:")]


@pytest.mark.parametrize("function", FUNCTIONS)
def test_each_function_reads_and_writes_runs_and_nothing_else_in_the_bucket(
    template: Deployed, function: str
):
    for action in ("s3:GetObject", "s3:PutObject"):
        assert template.allows(function, action, PART)
        assert not template.allows(function, action, f"{BUCKET_ARN}/other/file")


@pytest.mark.parametrize("deployment", ["template", "kept", "sharded"])
def test_who_may_read_an_object_finds_out_that_it_is_missing(
    deployment: str, request: pytest.FixtureRequest
):
    """S3 answers 404 only to who may list, with the object's key as the prefix; to others 403.

    Also for a conditional write of what is gone: `If-Match` on nothing is a 404 or a 403 as well.
    Not for state machines: these read groups that PlanRun has written a moment ago.
    """
    stack: Deployed = request.getfixturevalue(deployment)
    functions = stack.of_type("AWS::Lambda::Function").values()
    readers = 0
    for name in (one["Properties"]["FunctionName"].split("-")[1] for one in functions):
        objects = {
            resource.removeprefix(f"{BUCKET_ARN}/").replace("*", "any/thing.json")
            for statement in stack.statements(name)
            if "s3:GetObject" in statement["Action"]
            for resource in statement["Resource"]
        }
        readers += bool(objects)
        for key in objects:
            assert stack.allows(name, "s3:ListBucket", BUCKET_ARN, s3__prefix=key), (name, key)
            assert stack.allows(name, "s3:ListBucket", BUCKET_ARN), name
        assert not stack.allows(name, "s3:ListBucket", BUCKET_ARN, s3__prefix="other/"), name
    assert readers >= len(FUNCTIONS)


READS_OF_ROOTS = re.compile(r'Bucket\([^)]*?f"(?P<root>[a-z-]+)/')


def test_the_roots_that_the_library_reads_are_those_that_roles_are_for():
    """A root that is new in the library is in no role; this finds it before a run does."""
    sources = (path.read_text() for path in (LAMBDAS / "keyhop").rglob("*.py"))
    roots = {found["root"] for text in sources for found in READS_OF_ROOTS.finditer(text)}
    assert roots == {root.split("/")[0] for root in (ALL_RUNS, KEY_INDEXES, REPORTS)}


@pytest.mark.parametrize("owner", [*FUNCTIONS, "EnumerateKeys"])
def test_only_who_sweeps_can_delete(template: Deployed, owner: str):
    may = template.allows(owner, "s3:DeleteObject", PART)
    assert may == (owner in ("FinishRun", "CleanUp"))


def test_a_worker_sees_how_many_work_at_once_of_this_machine_only(template: Deployed):
    """maxReadRate is shared by the workers that run at once, also after an UpdateMapRun."""
    run = states_arn("execution:Keyhop-EnumerateKeys:r1")
    map_run = states_arn("mapRun:Keyhop-EnumerateKeys/ScanGroups:8a1e")
    assert template.allows("ScanSegments", "states:ListMapRuns", run)
    assert template.allows("ScanSegments", "states:DescribeMapRun", map_run)
    assert not template.allows("ScanSegments", "states:UpdateMapRun", map_run)
    other = states_arn("mapRun:Another/ScanGroups:8a1e")
    assert not template.allows("ScanSegments", "states:DescribeMapRun", other)


def test_the_machine_invokes_its_functions_and_no_others(template: Deployed):
    function = f"arn:aws:lambda:{REGION}:{ACCOUNT}:function:"
    for name in FUNCTIONS:
        assert template.allows("EnumerateKeys", "lambda:InvokeFunction", f"{function}Keyhop-{name}")
    assert not template.allows("EnumerateKeys", "lambda:InvokeFunction", f"{function}Other")


def test_the_machine_starts_follows_and_stops_the_children_of_its_map(template: Deployed):
    itself = states_arn("stateMachine:Keyhop-EnumerateKeys")
    child = states_arn("execution:Keyhop-EnumerateKeys/ScanGroups:8a1e")
    assert template.allows("EnumerateKeys", "states:StartExecution", itself)
    assert template.allows("EnumerateKeys", "states:DescribeExecution", child)
    assert template.allows("EnumerateKeys", "states:StopExecution", child)
    other = states_arn("stateMachine:Another")
    assert not template.allows("EnumerateKeys", "states:StartExecution", other)


def test_a_redrive_of_a_run_can_redrive_the_children_of_its_map(template: Deployed):
    child = states_arn("execution:Keyhop-EnumerateKeys/ScanGroups:8a1e")
    assert template.allows("EnumerateKeys", "states:RedriveExecution", child)


@pytest.mark.parametrize(
    ("action", "key"),
    [
        ("s3:GetObject", "runs/r1/groups/0.json"),
        ("s3:PutObject", "runs/r1/failures/g3.json"),
        ("s3:PutObject", "runs/r1/map-results/8a1e/manifest.json"),
        ("s3:GetObject", "runs/r1/map-results/8a1e/manifest.json"),
        ("s3:ListMultipartUploadParts", "runs/r1/map-results/8a1e/SUCCEEDED_0.json"),
        ("s3:AbortMultipartUpload", "runs/r1/map-results/8a1e/SUCCEEDED_0.json"),
    ],
)
def test_the_map_reads_its_groups_and_writes_its_results(template: Deployed, action: str, key: str):
    assert template.allows("EnumerateKeys", action, f"{BUCKET_ARN}/{key}")


def test_the_machine_itself_cannot_touch_parts_or_commits(template: Deployed):
    for key in ("runs/r1/parts/0.jsonl.gz", "runs/r1/commits/g0-0.json", "runs/r1/manifest.json"):
        assert not template.allows("EnumerateKeys", "s3:PutObject", f"{BUCKET_ARN}/{key}")
        assert not template.allows("EnumerateKeys", "s3:GetObject", f"{BUCKET_ARN}/{key}")


@pytest.mark.parametrize("owner", [*FUNCTIONS, "EnumerateKeys"])
def test_no_action_is_a_wildcard_and_every_wildcard_resource_is_a_known_one(
    template: Deployed, owner: str
):
    for statement in template.statements(owner):
        services = {action.split(":")[0] for action in statement["Action"]}
        assert not any("*" in action for action in statement["Action"])
        for resource in statement["Resource"]:
            if resource == "*":
                # The only ones whose actions know no resources.
                known = {"lambda": "GetAccountSettings", "cloudwatch": "PutMetricData"}
                listed = {of for of in known if statement["Action"] == [f"{of}:{known[of]}"]}
                assert services <= {"xray", "logs", *listed}
            elif "*" in resource:
                (service,) = services
                assert KNOWN_WILDCARDS[service] in resource
                assert "*" not in resource.split("/")[0] or service in ("states", "logs")
        if services == {"states"}:
            assert all("Keyhop-EnumerateKeys" in one for one in statement["Resource"])


@pytest.mark.parametrize("owner", [*FUNCTIONS, "EnumerateKeys"])
def test_each_statement_of_ours_says_why(template: Deployed, owner: str):
    """The CDK's own for tracing and log delivery are the ones with the resource *."""
    for statement in template.statements(owner):
        assert statement["Resource"] == ["*"] or statement.get("Sid")


def test_no_role_has_a_policy_that_somebody_else_may_change(template: Deployed):
    for role in template.of_type("AWS::IAM::Role").values():
        assert "ManagedPolicyArns" not in role["Properties"]
    assert not template.of_type("AWS::IAM::ManagedPolicy")


@pytest.mark.parametrize("function", FUNCTIONS)
def test_a_function_writes_its_own_log_only(template: Deployed, function: str):
    own = template.function(function)["LoggingConfig"]["LogGroup"]
    for group, resource in template.of_type("AWS::Logs::LogGroup").items():
        name = log_group_arn(resource["Properties"]["LogGroupName"])
        stream = f"{name}:log-stream:2026/11/22/[$LATEST]8a1e"
        assert template.allows(function, "logs:PutLogEvents", stream) == (group == own)
        assert not template.allows(function, "logs:CreateLogGroup", name)
