"""Tests that each role allows the intended actions and denies all others, as IAM would decide.

test_calls.py and test_near_misses.py check that each call of a full deployment is allowed, and
that no permission is wider.
"""

import re
from collections.abc import Iterator, Mapping
from fnmatch import fnmatchcase
from typing import Any

import pytest
from keyhop.key_index.sentinel import MARKER

from infra import LAMBDAS
from infra.permissions import ALL_RUNS, KEY_INDEXES, REPORTS, dynamodb_of
from testing.iam.simulator import NotAsked
from tests.infra.conftest import CONTEXTS, FAR_TABLE, FOREIGN_TABLE, deployed, stack_of
from tests.infra.template import (
    ACCOUNT,
    BUCKET_ARN,
    FUNCTIONS,
    KEY_INDEX_MACHINES,
    REGION,
    SHARDING_FUNCTIONS,
    Deployed,
    function_arn,
    states_arn,
    table_arn,
)
from tests.infra.test_calls import as_tested
from tests.infra.test_each import ALL as EACH
from tests.infra.test_each import TABLES as EACH_TABLES
from tests.infra.unrecorded import JOBS

FAR = {"Bestellungen": FOREIGN_TABLE, "Ereignisse": FAR_TABLE}
"""The ARNs of tables of another account and region."""
SHARED = "PlanRun ScanSegments VerifyRun"
INDEX_READERS = "KeepIndex WalkSegments ManageIndex"
INDEXED, METADATA = "Orders Events Ereignisse", "Keyhop-shards-Audit device-shards"
INDEX = "Orders/index/keyhop-keys"
DESCRIBE, KEYS = "DescribeTable", "DescribeTable Scan"
STREAM = "DescribeStream GetRecords GetShardIterator"
SETTLE = "GetItem PutItem DeleteItem ConditionCheckItem Query"
SOURCES, DESTINATIONS = "Orders Events", "OrdersByTenant EventsByDay"
SIDES = "OrdersByTenant.rekey EventsByDay.rekey"
STREAMS = "Orders/stream/2026 EventsByDay/stream/2026"
PUTS = "PutItem DeleteItem ConditionCheckItem Query GetItem BatchGetItem"

ON_TABLES: dict[str, dict[str, dict[str, str]]] = {
    "named": {
        SHARED: {
            "Flights Orders Bestellungen": KEYS,
            "Orders/index/ByDate Bestellungen/index/ByDate": "Scan",
        }
    },
    "kept": {
        SHARED: {
            f"Flights Customers Bestellungen {INDEXED}": KEYS,
            f"Orders/index/ByDate Flights/index/ByDate {INDEX}": "Scan",
        },
        "FinishRun": {INDEXED: DESCRIBE},
        "KeepIndex": {
            INDEXED: f"{DESCRIBE} Query GetItem BatchGetItem PutItem DeleteItem",
            "Orders/stream/2026 Ereignisse/stream/2026": STREAM,
        },
        "WalkSegments": {INDEXED: f"{KEYS} Query GetItem PutItem DeleteItem", INDEX: "Scan"},
        "ManageIndex": {INDEXED: f"{KEYS} Query GetItem UpdateTable", INDEX: "Scan"},
    },
    "sharded": {
        SHARED: {"Flights Orders Audit Devices": KEYS, "Audit/index/Copy": "Scan"},
        "PlanRun": {METADATA: DESCRIBE},
        "FinishRun": {"Orders": DESCRIBE, METADATA: "Scan"},
        "ReleaseKeeper": {METADATA: f"{DESCRIBE} UpdateTable"},  # for deletion protection
        "KeepIndex": {"Orders": f"{DESCRIBE} Query GetItem BatchGetItem PutItem DeleteItem"},
        "WalkSegments": {"Orders": f"{KEYS} Query GetItem PutItem DeleteItem"},
        "ManageIndex": {"Orders": f"{KEYS} Query GetItem UpdateTable"},
        # IAM has no action TransactWriteItems (AWS documentation, "Using IAM ..."). A transaction
        # finds an item by its key, and a condition can restrict what it returns: see CONDITIONS.
        "WriteSharded": {
            "Audit Devices": "DescribeTable GetItem BatchGetItem PutItem DeleteItem BatchWriteItem "
            "ConditionCheckItem",
            METADATA: "GetItem PutItem UpdateItem Scan",
        },
        "QuerySharded": {
            "Audit Devices": "DescribeTable Query",
            "Audit/index/Copy": "Query",
            METADATA: "GetItem",
        },
        "MoveShards": {
            "Audit Devices": f"{DESCRIBE} Query PutItem UpdateItem DeleteItem ConditionCheckItem",
            METADATA: "GetItem UpdateItem",
        },
        "ProposeDrains": {"Audit Devices": DESCRIBE, METADATA: "Scan UpdateItem"},
    },
    "each": {
        SHARED: {"Listed Orders Open Handed Updated": KEYS},
        "EachKey": {
            "Orders Open Handed Updated": KEYS,
            "Orders Open": PUTS,
            "Orders Updated": "UpdateItem",
        },
    },
    "reported": {
        SHARED: {"Flights Orders Ereignisse": KEYS, "Orders/index/byCity": "Scan"},
        "PlanRun": {"Orders Ereignisse": "DescribeTimeToLive"},
        "ExamineTable": {
            "Orders Ereignisse": f"{KEYS} Query DescribeTimeToLive DescribeContributorInsights",
            "Orders/index/byCity": "Scan DescribeContributorInsights",
            "Orders/stream/2026": STREAM,
        },
        "SampleTable": {"Orders Ereignisse": f"{KEYS} Query", "Orders/index/byCity": "Scan"},
    },
    # No role may change or create a table: `keyhop rekey` does, with its user's permissions.
    "rekeyed": {
        SHARED: {"Flights Orders": KEYS},
        "PlanRun": {"Events": KEYS, DESTINATIONS: DESCRIBE, SIDES: "GetItem PutItem"},
        "FinishRun": {SIDES: "GetItem PutItem"},
        "BackfillItems": {
            SOURCES: f"{KEYS} BatchGetItem",
            DESTINATIONS: f"{DESCRIBE} PutItem GetItem",
            SIDES: "GetItem PutItem",
        },
        "CompareBoth": {
            f"{SOURCES} {DESTINATIONS}": f"{KEYS} GetItem BatchGetItem",
            DESTINATIONS: "PutItem DeleteItem",
            SIDES: SETTLE,
        },
        "Replicate": {
            f"{SOURCES} {DESTINATIONS}": f"{DESCRIBE} GetItem BatchGetItem PutItem DeleteItem",
            SIDES: f"{SETTLE} UpdateItem",
            STREAMS: STREAM,
        },
        "CutOver": {
            f"{SOURCES} {DESTINATIONS}": f"{DESCRIBE} PutItem DeleteItem",
            SIDES: SETTLE,
            STREAMS: STREAM,
        },
    },
}
"""The table actions that each function may do in each deployment, with named attributes."""


def stack(name: str) -> Deployed:
    if name == "as tested":
        return as_tested()
    return deployed(stack_of({"tables": EACH_TABLES} if name == "each" else CONTEXTS[name]))


def arn(name: str) -> str:
    table, *rest = name.split("/")
    return "/".join([FAR.get(table, table_arn(table)), *rest])


def similar(resource: str) -> Iterator[str]:
    """Yield the resource with similar table names, and in another account and region."""
    place, _, name = resource.partition(":table/")
    table, *rest = name.split("/")
    for similar_name in (f"{table}2", f"x{table}"):
        yield "/".join([f"{place}:table/{similar_name}", *rest])
    _, _, _, region, account = place.split(":")
    yield resource.replace(region, "eu-west-2")
    yield resource.replace(account, "999999999999")


def is_allowed(template: Deployed, owner: str, action: str, resource: str, **context: Any) -> bool:
    try:
        return template.allows(owner, action, resource, **context)
    except NotAsked:
        return False  # The action has no resource of this type.


def granted(template: Deployed, owner: str, resource: str) -> Iterator[str]:
    """Yield the actions that a role may do: it has no others, as no statement has a wildcard."""
    actions = {
        action
        for statement in template.statements(owner)
        for action in statement["Action"]
        if action.startswith(f"{resource.split(':')[2]}:")
        if any(fnmatchcase(resource, pattern) for pattern in statement["Resource"])
    }
    for action in actions:
        if is_allowed(template, owner, action, resource, **SELECT):
            yield action.partition(":")[2]


def cells(table: Mapping[str, Mapping[str, str]]) -> set[tuple[str, str, str]]:
    """Return each owner, resource and action of a table of permissions."""
    return {
        (owner, resource, action)
        for owners, rights in table.items()
        for resources, actions in rights.items()
        for owner in owners.split()
        for resource in resources.split()
        for action in actions.split()
    }


@pytest.mark.parametrize("context", ON_TABLES)
def test_each_role_allows_only_the_table_actions_that_it_needs(context: str) -> None:
    expected = cells(ON_TABLES[context])
    names = {resource for _, resource, _ in expected} | {"Others", "Flights/stream/2026"}
    names_by_arn = {arn(name): name for name in names}
    names_by_arn |= {near_miss: near_miss for name in names for near_miss in similar(arn(name))}
    template = stack(context)
    assert {
        (owner, name, action)
        for owner in template.owners
        for resource, name in names_by_arn.items()
        for action in granted(template, owner, resource)
    } == expected


RUN = "runs/r1/"
ALL_OF_A_RUN = f"{RUN}parts/0.gz {RUN}commits/0.json {RUN}manifest.json {RUN}verification.json"
PARTS_OF_A_MAP = f"{RUN}groups/0.json {RUN}failures/g3.json {RUN}map-results/8a1e/manifest.json"
OBJECTS = f"{ALL_OF_A_RUN} {PARTS_OF_A_MAP}"
ENTRY, REPORT = "key-index/Orders-1a2b/entry.json", "reports/Orders/report.json"
ON_OBJECTS: dict[str, dict[str, str]] = {
    # A part above 8 MB is uploaded in pieces; the objects that PlanRun writes are smaller.
    "ScanSegments WalkSegments EachKey SampleTable BackfillItems CompareBoth FinishRun": {
        OBJECTS: "GetObject PutObject AbortMultipartUpload"
    },
    "PlanRun VerifyRun CleanUp ExamineTable": {OBJECTS: "GetObject PutObject"},
    "FinishRun CleanUp": {OBJECTS: "DeleteObject"},
    "ManageIndex": {OBJECTS: "GetObject", f"{RUN}verification.json": "PutObject"},
    # S3 also demands GetObject to write an object on the condition that it has not changed.
    f"PlanRun FinishRun ReleaseKeeper {INDEX_READERS}": {ENTRY: "GetObject"},
    "ManageIndex KeepIndex": {ENTRY: "PutObject"},
    "ExamineTable": {REPORT: "GetObject PutObject"},
    "ShowReport": {REPORT: "GetObject"},
    " ".join(JOBS): {
        f"{RUN}groups/0.json": "GetObject",
        f"{RUN}failures/g3.json": "PutObject",
        f"{RUN}map-results/8a1e/manifest.json": "GetObject PutObject AbortMultipartUpload "
        "ListMultipartUploadParts",
    },
}
"""The actions that each function may do on objects of the bucket in a full deployment."""


@pytest.mark.parametrize("context", ["named", "as tested"])
def test_each_role_allows_only_the_object_actions_that_it_needs(context: str) -> None:
    """Without a key index and a report, only the guard reads their objects."""
    template = stack(context)
    expected = {cell for cell in cells(ON_OBJECTS) if cell[0] in template.owners}
    if context == "named":
        guard_cells = {("ReleaseKeeper", ENTRY, "GetObject")}
        expected = {cell for cell in expected if cell[1] not in (ENTRY, REPORT)} | guard_cells
    assert {
        (owner, key, action)
        for owner in template.owners
        for key in (*OBJECTS.split(), ENTRY, REPORT, "other/file")
        for action in granted(template, owner, f"{BUCKET_ARN}/{key}")
    } == expected


@pytest.mark.parametrize("context", ["named", "kept", "sharded", "as tested"])
def test_functions_that_read_an_object_can_see_that_it_is_missing(context: str) -> None:
    """S3 answers 404 only to roles that may list the object's key as a prefix, and 403 to others.

    The same applies to a conditional write (`If-Match`) of a missing object. State machines do not
    need this: they read groups that PlanRun has just written.
    """
    template = stack(context)
    functions = template.properties_of("AWS::Lambda::Function")
    reader_count = 0
    for name in (function["FunctionName"].split("-")[1] for function in functions):
        objects = {
            resource.removeprefix(f"{BUCKET_ARN}/").replace("*", "any/thing.json")
            for statement in template.statements(name)
            if "s3:GetObject" in statement["Action"]
            for resource in statement["Resource"]
        }
        reader_count += bool(objects)
        for key in objects:
            assert template.allows(name, "s3:ListBucket", BUCKET_ARN, s3__prefix=key), (name, key)
            assert template.allows(name, "s3:ListBucket", BUCKET_ARN), name
        assert not template.allows(name, "s3:ListBucket", BUCKET_ARN, s3__prefix="other/"), name
    assert reader_count >= len(FUNCTIONS)


READS_OF_ROOTS = re.compile(r'Bucket\([^)]*?f"(?P<root>[a-z-]+)/')


def test_the_roles_cover_the_roots_that_the_library_reads() -> None:
    """No role has a root that is new in the library; this test finds it before a run fails."""
    sources = (path.read_text() for path in (LAMBDAS / "keyhop").rglob("*.py"))
    roots = {match["root"] for text in sources for match in READS_OF_ROOTS.finditer(text)}
    assert roots == {root.split("/")[0] for root in (ALL_RUNS, KEY_INDEXES, REPORTS)}


def select(value: str, *attributes: str) -> dict[str, Any]:
    """Return the condition keys of a request with this Select and these attributes."""
    return {"dynamodb__Select": value, **(names(*attributes) if attributes else {})}


def names(*attributes: str) -> dict[str, Any]:
    return {"dynamodb__Attributes": [*attributes]}


def of_function(name: str | None) -> dict[str, Any]:
    return {"lambda__FunctionArn": name and function_arn(name)}


def scales(service: str, dimension: str) -> dict[str, str]:
    prefix = "application-autoscaling__"
    return {f"{prefix}service-namespace": service, f"{prefix}scalable-dimension": dimension}


SELECT = select("SPECIFIC_ATTRIBUTES")
WHOLE = [{}, *map(select, ("ALL_ATTRIBUTES", "ALL_PROJECTED_ATTRIBUTES", "COUNT"))]
"""The condition keys of requests that return more than named attributes."""
KEY, MORE = ("customer", "order", MARKER), ("customer", "order", "creditCard")
SCANNED = ([{**SELECT, **names(*KEY)}], [{**SELECT, **names(*MORE)}, names(*KEY)])
WRITTEN = ([names(*KEY)], [names(*MORE)])
GOT = ([{**SELECT, **names(*KEY)}, names(*KEY)], [{**SELECT, **names(*MORE)}, WHOLE[1]])
MAPPING = f"arn:aws:lambda:{REGION}:{ACCOUNT}:event-source-mapping:1-2-3"
TARGET = f"arn:aws:application-autoscaling:{REGION}:{ACCOUNT}:scalable-target/1a2b"
OF_KEEPER = (
    [of_function("Keyhop-KeepIndex")],
    [of_function("Keyhop-ManageIndex"), of_function("SomebodyElses"), {}],
)
OF_INDEXES = (
    [scales("dynamodb", "dynamodb:index:WriteCapacityUnits")],
    [
        scales("dynamodb", "dynamodb:table:WriteCapacityUnits"),
        scales("ecs", "dynamodb:index:WriteCapacityUnits"),
    ],
)
REGISTRY, RUNS, OTHER = ({"s3__prefix": name} for name in ("key-index/", "runs/r1/", "other/"))

Requests = list[dict[str, Any]]
CONDITIONS: list[tuple[str, str, str, str, Requests, Requests]] = [
    ("named", SHARED, "dynamodb:Scan", "Flights", [SELECT], WHOLE),
    ("named", SHARED, "dynamodb:Scan", "Orders", *SCANNED),
    # A table without a key index may still contain sentinels, which are not keys.
    ("kept", SHARED, "dynamodb:Scan", "Customers", [{**SELECT, **names("customer", MARKER)}], []),
    *(
        ("kept", f"{SHARED} WalkSegments ManageIndex", "dynamodb:Scan", resource, *SCANNED)
        for resource in ("Orders", INDEX)
    ),
    ("kept", INDEX_READERS, "dynamodb:Query", "Orders", *SCANNED),
    ("kept", INDEX_READERS, "dynamodb:Query", "Events", [SELECT], WHOLE),
    # GetItem has no Select, and is allowed nevertheless.
    ("kept", INDEX_READERS, "dynamodb:GetItem", "Orders", *GOT),
    ("kept", "KeepIndex", "dynamodb:BatchGetItem", "Orders", *GOT),
    ("kept", "KeepIndex WalkSegments", "dynamodb:PutItem", "Orders", *WRITTEN),
    ("kept", "KeepIndex WalkSegments", "dynamodb:DeleteItem", "Orders", *WRITTEN),
    ("kept", "ManageIndex", "lambda:CreateEventSourceMapping", "*", *OF_KEEPER),
    ("kept", "ManageIndex", "lambda:UpdateEventSourceMapping", MAPPING, *OF_KEEPER),
    ("kept", "ManageIndex ReleaseKeeper", "lambda:DeleteEventSourceMapping", MAPPING, *OF_KEEPER),
    *(  # The scaling of the tables themselves does not change.
        ("kept", "ManageIndex", f"application-autoscaling:{action}", TARGET, *OF_INDEXES)
        for action in ("RegisterScalableTarget", "DeregisterScalableTarget")
    ),
    ("kept", "ManageIndex", "s3:ListBucket", BUCKET_ARN, [REGISTRY, RUNS], [OTHER]),
    ("kept", "KeepIndex ReleaseKeeper", "s3:ListBucket", BUCKET_ARN, [REGISTRY], [RUNS, OTHER]),
    # Before it registers a key, it reads whether a shard is empty and the placement, but no item.
    ("sharded", "WriteSharded", "dynamodb:Query", "Audit", [select("COUNT")], [{}, SELECT]),
    (
        *("sharded", "WriteSharded", "dynamodb:Scan", "device-shards"),
        [{**SELECT, **names("placement")}],
        [{**SELECT, **names("path")}, {**SELECT, **names("placement", "path")}],
    ),
    (
        *("each", "EachKey", "dynamodb:PutItem", "Orders"),
        [names("customer", "sk", "plan")],
        [names("customer", "sk", "plan", "isAdmin")],
    ),
    ("each", "EachKey", "dynamodb:PutItem", "Open", [names("customer", "sk", "anything")], []),
]
"""The requests that each role allows and denies, by deployment, owners, action and resource."""


@pytest.mark.parametrize(("context", "owners", "action", "name", "allowed", "denied"), CONDITIONS)
def test_conditions_allow_requests_by_their_attributes(
    context: str, owners: str, action: str, name: str, allowed: Requests, denied: Requests
) -> None:
    template = stack(context)
    resource = name if name[:4] in ("*", "arn:") else arn(name)
    for owner in owners.split():
        for request in allowed:
            assert is_allowed(template, owner, action, resource, **request), (owner, request)
        for request in denied:
            assert not is_allowed(template, owner, action, resource, **request), (owner, request)
    if action.startswith(("lambda:", "application-autoscaling:")):
        for owner in {*template.owners} - {*owners.split()}:
            assert not is_allowed(template, owner, action, resource, **allowed[0]), owner


WORKER = {
    "EnumerateKeys": "ScanSegments",
    "WalkKeyIndexes": "WalkSegments",
    "ForEachKey": "EachKey",
    "SampleKeys": "SampleTable",
    "RekeyBackfill": "BackfillItems",
    "RekeyVerify": "CompareBoth",
}
INVOKED = {
    **{job: {*FUNCTIONS} - {"ScanSegments"} | {WORKER[job]} for job in JOBS},
    **{machine: {"ManageIndex"} for machine in KEY_INDEX_MACHINES},
    **{"DrainShards": {"MoveShards"}, "ReportKeys": {"ExamineTable"}, "RekeyCutOver": {"CutOver"}},
    **{"CutOver": {"Replicate"}, "EachKey": {"on-keys"}},
}
STARTED = {
    **{job: {job} for job in JOBS},
    **{machine: {"WalkKeyIndexes"} for machine in KEY_INDEX_MACHINES},
    **{"ReportKeys": {"SampleKeys"}, "EachKey": {"PerBatch"}},
}


@pytest.mark.parametrize(
    ("action", "expected"), [("lambda:InvokeFunction", INVOKED), ("states:StartExecution", STARTED)]
)
def test_each_role_invokes_only_the_functions_and_machines_that_it_needs(
    action: str, expected: dict[str, set[str]]
) -> None:
    template = as_tested()
    targets = {
        owner: {
            resource.rpartition(":")[2].removeprefix("Keyhop-")
            for statement in template.statements(owner)
            if action in statement["Action"]
            for resource in statement["Resource"]
        }
        for owner in template.owners
    }
    assert {owner: names for owner, names in targets.items() if names} == expected


def test_keys_are_sent_only_to_the_targets_in_the_settings() -> None:
    template = stack("each")
    targets = {
        "lambda:InvokeFunction": EACH["functions"],
        "sqs:SendMessage": [f"arn:aws:sqs:{REGION}:{ACCOUNT}:keys.fifo"],
        "states:StartExecution": EACH["machines"],
    }
    for action, (target,) in targets.items():
        assert template.allows("EachKey", action, target)
        assert not template.allows("EachKey", action, f"{target}-2")
        assert not template.allows("PlanRun", action, target)


def test_only_drains_are_started_and_only_if_the_context_enables_it() -> None:
    proposed, started = stack("sharded"), stack("draining")
    machines = {*KEY_INDEX_MACHINES, "EnumerateKeys", "DrainShards"}
    for owner in (*SHARDING_FUNCTIONS, *FUNCTIONS, "DrainShards", *KEY_INDEX_MACHINES):
        for machine in machines - {owner}:
            request = (owner, "states:StartExecution", states_arn(f"stateMachine:Keyhop-{machine}"))
            assert not proposed.allows(*request)
            expected = (owner, machine) == ("ProposeDrains", "DrainShards")
            assert started.allows(*request) == expected, request


def test_schedules_only_start_verifications_and_propose_drains() -> None:
    indexed, sharded = stack("kept"), stack("sharded")
    rules = indexed.properties_of("AWS::Events::Rule")
    (role,) = {rule["Targets"][0]["RoleArn"]["Fn::GetAtt"][0] for rule in rules}
    (statement,) = indexed.statements_of({"Role": {"Fn::GetAtt": [role, "Arn"]}})
    assert (statement["Sid"], statement["Action"], statement["Resource"]) == (
        "StartVerifications",
        ["states:StartExecution"],
        [states_arn("stateMachine:Keyhop-VerifyKeyIndex")],
    )
    (permission,) = sharded.properties_of("AWS::Lambda::Permission")
    assert sharded.resolve(permission["FunctionName"]) == function_arn("Keyhop-ProposeDrains")
    assert permission["Principal"] == "events.amazonaws.com"
    assert sharded.resolve(permission["SourceArn"])


ORDERS, AUDIT, DAYS = (
    f"arn:aws:kms:{REGION}:{ACCOUNT}:key/{key}"
    for key in ("0a1b-orders", "2c3d-audit", "6a7b-days")
)
EREIGNISSE = "arn:aws:kms:us-east-1:123456789012:key/4e5f-ereignisse"
FOLLOWERS = "PlanRun Replicate BackfillItems CompareBoth CutOver"
DECRYPTS = {
    "mixed": {
        **dict.fromkeys((ORDERS, EREIGNISSE), f"{SHARED} {INDEX_READERS}"),
        AUDIT: f"{SHARED} WriteSharded QuerySharded MoveShards",
    },
    "reported": {ORDERS: f"{SHARED} ExamineTable SampleTable"},
    "rekeyed": {ORDERS: f"{SHARED} {FOLLOWERS}", DAYS: FOLLOWERS},
    "kept": {},
}
"""The owners that may decrypt with each customer managed key, by deployment."""
KEY_OF = {"Orders": ORDERS, "Audit": AUDIT, "Ereignisse": EREIGNISSE, "EventsByDay": DAYS}
OF_ITEMS = {
    *("Scan", "Query", "GetItem", "BatchGetItem", "PutItem", "UpdateItem", "DeleteItem"),
    *("BatchWriteItem", "ConditionCheckItem", "GetRecords"),
}
BY_DYNAMODB = {"kms__ViaService": f"dynamodb.{REGION}.amazonaws.com"}


@pytest.mark.parametrize("context", DECRYPTS)
def test_functions_use_the_key_of_a_table_through_dynamodb_only(context: str) -> None:
    template, keys = stack(context), DECRYPTS[context]
    for owner in template.owners:
        decrypts = (owner, "kms:Decrypt")
        allowed = {key for key in KEY_OF.values() if template.allows(*decrypts, key, **BY_DYNAMODB)}
        assert allowed == {key for key, owners in keys.items() if owner in owners.split()}, owner
        # A function that is granted items later needs the key too.
        tables = {
            (resource + "/").split(":table/")[1].split("/")[0]
            for statement in template.statements(owner)
            if OF_ITEMS & {action.removeprefix("dynamodb:") for action in statement["Action"]}
            for resource in statement["Resource"]
            if ":table/" in resource
        }
        needed_keys = {KEY_OF[table] for table in tables & KEY_OF.keys()}
        assert needed_keys & keys.keys() <= allowed, owner
        for key in allowed:
            assert not template.allows(*decrypts, key)
            assert not template.allows(owner, "kms:Encrypt", key, **BY_DYNAMODB)
            by_s3 = {"kms__ViaService": f"s3.{REGION}.amazonaws.com"}
            assert not template.allows(*decrypts, key, **by_s3)


def test_the_key_condition_names_dynamodb_in_the_region_of_the_key() -> None:
    """In China the service may have either name."""
    by_far_dynamodb = {"kms__ViaService": "dynamodb.us-east-1.amazonaws.com"}
    assert stack("mixed").allows("KeepIndex", "kms:Decrypt", EREIGNISSE, **by_far_dynamodb)
    assert dynamodb_of("arn:aws-cn:kms:cn-north-1:123456789012:key/4e5f") == (
        "dynamodb.cn-north-1.amazonaws.com",
        "dynamodb.cn-north-1.amazonaws.com.cn",
    )


WILDCARDS = re.compile(
    r"arn:aws:(s3:::the-results/(runs|key-index|reports)/.*"
    r"|dynamodb:[^*]*:table/[^*]+/(index|stream)/\*"
    r"|states:[^*]*:(execution|mapRun):Keyhop-[^*]+:\*"
    r"|logs:[^*]*:log-group:/aws/lambda/Keyhop-[^*]+:\*"
    r"|lambda:[^*]*:event-source-mapping:\*"
    r"|application-autoscaling:[^*]*:scalable-target/\*"
    r"|cloudwatch:\*:[^*]*:insight-rule/DynamoDBContributorInsights-\*)"
)
WITHOUT_RESOURCES = {
    *("lambda:ListEventSourceMappings", "lambda:GetAccountSettings", "dynamodb:ListStreams"),
    *("cloudwatch:GetMetricStatistics", "cloudwatch:GetMetricData", "cloudwatch:PutMetricData"),
    "application-autoscaling:DescribeScalableTargets",
    "application-autoscaling:DescribeScalingPolicies",
    # Application Auto Scaling checks these permissions without naming an alarm.
    *("cloudwatch:DescribeAlarms", "cloudwatch:PutMetricAlarm", "cloudwatch:DeleteAlarms"),
    "lambda:CreateEventSourceMapping",  # A new mapping has no name; a condition restricts it.
}
"""Actions on resource `*`, besides those of X-Ray and of log delivery."""


@pytest.mark.parametrize("context", ["named", "kept", "draining", "rekeyed", "as tested"])
def test_each_statement_has_a_unique_sid_and_only_expected_wildcards(context: str) -> None:
    """IAM rejects a policy whose Sids are not unique. The CDK's statements have none."""
    template = stack(context)
    for owner in template.owners:
        statements = template.statements(owner)
        sids = [statement["Sid"] for statement in statements if "Sid" in statement]
        assert len(set(sids)) == len(sids), owner
        for statement in statements:
            assert "Sid" in statement or statement["Resource"] == ["*"]
            assert not [action for action in statement["Action"] if "*" in action]
            for resource in statement["Resource"]:
                if resource == "*":
                    services = ("xray:", "logs:")
                    actions = {a for a in statement["Action"] if not a.startswith(services)}
                    assert actions <= WITHOUT_RESOURCES, owner
                else:
                    assert "*" not in resource or WILDCARDS.fullmatch(resource), owner
    for role in template.properties_of("AWS::IAM::Role"):
        assert "ManagedPolicyArns" not in role, "others can change a managed policy"
