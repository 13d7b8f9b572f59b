"""Who may do what, as it is meant; all else is denied. The roles are asked as IAM would be asked.

That each call which is made is allowed, and that no right is wider, is in test_calls.py and
test_near_misses.py, of a deployment that has everything.
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
"""Tables of another account and region."""
SHARED = "PlanRun ScanSegments VerifyRun"
LOOKERS = "KeepIndex WalkSegments ManageIndex"
KEPT, METADATA = "Orders Events Ereignisse", "Keyhop-shards-Audit device-shards"
INDEX = "Orders/index/keyhop-keys"
LOOK, KEYS = "DescribeTable", "DescribeTable Scan"
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
            f"Flights Customers Bestellungen {KEPT}": KEYS,
            f"Orders/index/ByDate Flights/index/ByDate {INDEX}": "Scan",
        },
        "FinishRun": {KEPT: LOOK},
        "KeepIndex": {
            KEPT: f"{LOOK} Query GetItem BatchGetItem PutItem DeleteItem",
            "Orders/stream/2026 Ereignisse/stream/2026": STREAM,
        },
        "WalkSegments": {KEPT: f"{KEYS} Query GetItem PutItem DeleteItem", INDEX: "Scan"},
        "ManageIndex": {KEPT: f"{KEYS} Query GetItem UpdateTable", INDEX: "Scan"},
    },
    "sharded": {
        SHARED: {"Flights Orders Audit Devices": KEYS, "Audit/index/Copy": "Scan"},
        "PlanRun": {METADATA: LOOK},
        "FinishRun": {"Orders": LOOK, METADATA: "Scan"},
        "ReleaseKeeper": {METADATA: f"{LOOK} UpdateTable"},  # protects it from deletion
        "KeepIndex": {"Orders": f"{LOOK} Query GetItem BatchGetItem PutItem DeleteItem"},
        "WalkSegments": {"Orders": f"{KEYS} Query GetItem PutItem DeleteItem"},
        "ManageIndex": {"Orders": f"{KEYS} Query GetItem UpdateTable"},
        # There is no right named TransactWriteItems (AWS documentation, "Using IAM ..."). It finds
        # an item by its key, and can be made to show no others: see CONDITIONS.
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
            "Audit Devices": f"{LOOK} Query PutItem UpdateItem DeleteItem ConditionCheckItem",
            METADATA: "GetItem UpdateItem",
        },
        "ProposeDrains": {"Audit Devices": LOOK, METADATA: "Scan UpdateItem"},
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
    # Nobody changes a table or makes one: `keyhop rekey` does, with the rights of whoever runs it.
    "rekeyed": {
        SHARED: {"Flights Orders": KEYS},
        "PlanRun": {"Events": KEYS, DESTINATIONS: LOOK, SIDES: "GetItem PutItem"},
        "FinishRun": {SIDES: "GetItem PutItem"},
        "BackfillItems": {
            SOURCES: f"{KEYS} BatchGetItem",
            DESTINATIONS: f"{LOOK} PutItem GetItem",
            SIDES: "GetItem PutItem",
        },
        "CompareBoth": {
            f"{SOURCES} {DESTINATIONS}": f"{KEYS} GetItem BatchGetItem",
            DESTINATIONS: "PutItem DeleteItem",
            SIDES: SETTLE,
        },
        "Replicate": {
            f"{SOURCES} {DESTINATIONS}": f"{LOOK} GetItem BatchGetItem PutItem DeleteItem",
            SIDES: f"{SETTLE} UpdateItem",
            STREAMS: STREAM,
        },
        "CutOver": {
            f"{SOURCES} {DESTINATIONS}": f"{LOOK} PutItem DeleteItem",
            SIDES: SETTLE,
            STREAMS: STREAM,
        },
    },
}
"""By deployment and function, what it may do to tables, asking for named attributes."""


def stack(name: str) -> Deployed:
    if name == "as tested":
        return as_tested()
    return deployed(stack_of({"tables": EACH_TABLES} if name == "each" else CONTEXTS[name]))


def arn(name: str) -> str:
    table, *rest = name.split("/")
    return "/".join([FAR.get(table, table_arn(table)), *rest])


def similar(resource: str) -> Iterator[str]:
    """Return the same of tables with similar names, and of another account and region."""
    place, _, name = resource.partition(":table/")
    table, *rest = name.split("/")
    for other in (f"{table}2", f"x{table}"):
        yield "/".join([f"{place}:table/{other}", *rest])
    _, _, _, region, account = place.split(":")
    yield resource.replace(region, "eu-west-2")
    yield resource.replace(account, "999999999999")


def is_allowed(template: Deployed, owner: str, action: str, resource: str, **context: Any) -> bool:
    try:
        return template.allows(owner, action, resource, **context)
    except NotAsked:
        return False  # the action knows no resource of this kind


def granted(template: Deployed, owner: str, resource: str) -> Iterator[str]:
    """Return the actions that a role may do: as none is a wildcard, there are no others."""
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
    """Return each owner, resource and action of a table of rights."""
    return {
        (owner, resource, action)
        for owners, rights in table.items()
        for resources, actions in rights.items()
        for owner in owners.split()
        for resource in resources.split()
        for action in actions.split()
    }


@pytest.mark.parametrize("context", ON_TABLES)
def test_each_may_do_to_tables_what_it_needs_and_nothing_else(context: str) -> None:
    expected = cells(ON_TABLES[context])
    named = {resource for _, resource, _ in expected} | {"Others", "Flights/stream/2026"}
    asked = {arn(name): name for name in named}
    asked |= {other: other for resource in list(asked) for other in similar(resource)}
    template = stack(context)
    assert {
        (owner, name, action)
        for owner in template.owners
        for resource, name in asked.items()
        for action in granted(template, owner, resource)
    } == expected


RUN = "runs/r1/"
ALL_OF_A_RUN = f"{RUN}parts/0.gz {RUN}commits/0.json {RUN}manifest.json {RUN}verification.json"
PARTS_OF_A_MAP = f"{RUN}groups/0.json {RUN}failures/g3.json {RUN}map-results/8a1e/manifest.json"
OBJECTS = f"{ALL_OF_A_RUN} {PARTS_OF_A_MAP}"
ENTRY, REPORT = "key-index/Orders-1a2b/entry.json", "reports/Orders/report.json"
ON_OBJECTS: dict[str, dict[str, str]] = {
    # A part above 8 MB is uploaded in pieces; what PlanRun finds at its first look is less.
    "ScanSegments WalkSegments EachKey SampleTable BackfillItems CompareBoth FinishRun": {
        OBJECTS: "GetObject PutObject AbortMultipartUpload"
    },
    "PlanRun VerifyRun CleanUp ExamineTable": {OBJECTS: "GetObject PutObject"},
    "FinishRun CleanUp": {OBJECTS: "DeleteObject"},
    "ManageIndex": {OBJECTS: "GetObject", f"{RUN}verification.json": "PutObject"},
    # To write an object only if it is still the one that was read, S3 demands GetObject too.
    f"PlanRun FinishRun ReleaseKeeper {LOOKERS}": {ENTRY: "GetObject"},
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
"""Of the bucket, where everything is deployed."""


@pytest.mark.parametrize("context", ["named", "as tested"])
def test_each_reads_and_writes_the_objects_that_it_needs_and_no_others(context: str) -> None:
    """Without a key index and a report, nobody but the guard reads what is kept of these."""
    template = stack(context)
    expected = {cell for cell in cells(ON_OBJECTS) if cell[0] in template.owners}
    if context == "named":
        kept = {("ReleaseKeeper", ENTRY, "GetObject")}
        expected = {cell for cell in expected if cell[1] not in (ENTRY, REPORT)} | kept
    assert {
        (owner, key, action)
        for owner in template.owners
        for key in (*OBJECTS.split(), ENTRY, REPORT, "other/file")
        for action in granted(template, owner, f"{BUCKET_ARN}/{key}")
    } == expected


@pytest.mark.parametrize("context", ["named", "kept", "sharded", "as tested"])
def test_who_may_read_an_object_finds_out_that_it_is_missing(context: str) -> None:
    """S3 answers 404 only to who may list, with the object's key as the prefix; to others 403.

    Also for a conditional write of what is gone: `If-Match` on nothing is a 404 or a 403 as well.
    Not for state machines: these read groups that PlanRun has written a moment ago.
    """
    template = stack(context)
    functions = template.of_type("AWS::Lambda::Function").values()
    readers = 0
    for name in (one["Properties"]["FunctionName"].split("-")[1] for one in functions):
        objects = {
            resource.removeprefix(f"{BUCKET_ARN}/").replace("*", "any/thing.json")
            for statement in template.statements(name)
            if "s3:GetObject" in statement["Action"]
            for resource in statement["Resource"]
        }
        readers += bool(objects)
        for key in objects:
            assert template.allows(name, "s3:ListBucket", BUCKET_ARN, s3__prefix=key), (name, key)
            assert template.allows(name, "s3:ListBucket", BUCKET_ARN), name
        assert not template.allows(name, "s3:ListBucket", BUCKET_ARN, s3__prefix="other/"), name
    assert readers >= len(FUNCTIONS)


READS_OF_ROOTS = re.compile(r'Bucket\([^)]*?f"(?P<root>[a-z-]+)/')


def test_the_roots_that_the_library_reads_are_those_that_roles_are_for() -> None:
    """A root that is new in the library is in no role; this finds it before a run does."""
    sources = (path.read_text() for path in (LAMBDAS / "keyhop").rglob("*.py"))
    roots = {found["root"] for text in sources for found in READS_OF_ROOTS.finditer(text)}
    assert roots == {root.split("/")[0] for root in (ALL_RUNS, KEY_INDEXES, REPORTS)}


def select(value: str, *attributes: str) -> dict[str, Any]:
    """The condition keys of a request that asks so for attributes."""
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
"""Not asking for named attributes is how a request comes to return everything."""
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
REGISTRY, RUNS, ELSEWHERE = ({"s3__prefix": one} for one in ("key-index/", "runs/r1/", "other/"))

Asked = list[dict[str, Any]]
CONDITIONS: list[tuple[str, str, str, str, Asked, Asked]] = [
    ("named", SHARED, "dynamodb:Scan", "Flights", [SELECT], WHOLE),
    ("named", SHARED, "dynamodb:Scan", "Orders", *SCANNED),
    # Sentinels may be left in a table, which are no keys; but nobody walks over it.
    ("kept", SHARED, "dynamodb:Scan", "Customers", [{**SELECT, **names("customer", MARKER)}], []),
    *(
        ("kept", f"{SHARED} WalkSegments ManageIndex", "dynamodb:Scan", resource, *SCANNED)
        for resource in ("Orders", INDEX)
    ),
    ("kept", LOOKERS, "dynamodb:Query", "Orders", *SCANNED),
    ("kept", LOOKERS, "dynamodb:Query", "Events", [SELECT], WHOLE),
    # A get has no Select, and is allowed all the same.
    ("kept", LOOKERS, "dynamodb:GetItem", "Orders", *GOT),
    ("kept", "KeepIndex", "dynamodb:BatchGetItem", "Orders", *GOT),
    ("kept", "KeepIndex WalkSegments", "dynamodb:PutItem", "Orders", *WRITTEN),
    ("kept", "KeepIndex WalkSegments", "dynamodb:DeleteItem", "Orders", *WRITTEN),
    ("kept", "ManageIndex", "lambda:CreateEventSourceMapping", "*", *OF_KEEPER),
    ("kept", "ManageIndex", "lambda:UpdateEventSourceMapping", MAPPING, *OF_KEEPER),
    ("kept", "ManageIndex ReleaseKeeper", "lambda:DeleteEventSourceMapping", MAPPING, *OF_KEEPER),
    *(  # the users' tables scale as they did
        ("kept", "ManageIndex", f"application-autoscaling:{action}", TARGET, *OF_INDEXES)
        for action in ("RegisterScalableTarget", "DeregisterScalableTarget")
    ),
    ("kept", "ManageIndex", "s3:ListBucket", BUCKET_ARN, [REGISTRY, RUNS], [ELSEWHERE]),
    ("kept", "KeepIndex ReleaseKeeper", "s3:ListBucket", BUCKET_ARN, [REGISTRY], [RUNS, ELSEWHERE]),
    # Before it registers a key: that a shard is not empty, and how keys are placed; no item.
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
"""Whose requests are allowed, and which are denied."""


@pytest.mark.parametrize(("context", "owners", "action", "name", "allowed", "denied"), CONDITIONS)
def test_requests_are_allowed_by_what_they_ask_for(
    context: str, owners: str, action: str, name: str, allowed: Asked, denied: Asked
) -> None:
    template = stack(context)
    resource = name if name[:4] in ("*", "arn:") else arn(name)
    for owner in owners.split():
        assert [
            one for one in allowed if not is_allowed(template, owner, action, resource, **one)
        ] == []
        assert [one for one in denied if is_allowed(template, owner, action, resource, **one)] == []
    if action.startswith(("lambda:", "application-autoscaling:")):
        others = {*template.owners} - {*owners.split()}
        assert not [o for o in others if is_allowed(template, o, action, resource, **allowed[0])]


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
def test_each_invokes_the_functions_and_starts_the_machines_that_it_needs(
    action: str, expected: dict[str, set[str]]
) -> None:
    template = as_tested()
    named = {
        owner: {
            resource.rpartition(":")[2].removeprefix("Keyhop-")
            for statement in template.statements(owner)
            if action in statement["Action"]
            for resource in statement["Resource"]
        }
        for owner in template.owners
    }
    assert {owner: found for owner, found in named.items() if found} == expected


def test_keys_are_handed_where_the_settings_of_each_say() -> None:
    template = stack("each")
    targets = {
        "lambda:InvokeFunction": EACH["functions"],
        "sqs:SendMessage": [f"arn:aws:sqs:{REGION}:{ACCOUNT}:keys.fifo"],
        "states:StartExecution": EACH["machines"],
    }
    for action, (named,) in targets.items():
        assert template.allows("EachKey", action, named)
        assert not template.allows("EachKey", action, f"{named}-2")
        assert not template.allows("PlanRun", action, named)


def test_drains_alone_are_started_and_only_when_the_context_says_so() -> None:
    proposed, started = stack("sharded"), stack("draining")
    machines = {*KEY_INDEX_MACHINES, "EnumerateKeys", "DrainShards"}
    for owner in (*SHARDING_FUNCTIONS, *FUNCTIONS, "DrainShards", *KEY_INDEX_MACHINES):
        for machine in machines - {owner}:
            asked = (owner, "states:StartExecution", states_arn(f"stateMachine:Keyhop-{machine}"))
            assert not proposed.allows(*asked)
            is_it = (owner, machine) == ("ProposeDrains", "DrainShards")
            assert started.allows(*asked) == is_it, asked


def test_schedules_start_verifications_and_invoke_who_proposes_drains_and_nothing_else() -> None:
    kept, sharded = stack("kept"), stack("sharded")
    (role,) = {
        rule["Properties"]["Targets"][0]["RoleArn"]["Fn::GetAtt"][0]
        for rule in kept.of_type("AWS::Events::Rule").values()
    }
    (statement,) = kept.statements_of({"Role": {"Fn::GetAtt": [role, "Arn"]}})
    assert (statement["Sid"], statement["Action"], statement["Resource"]) == (
        "StartVerifications",
        ["states:StartExecution"],
        [states_arn("stateMachine:Keyhop-VerifyKeyIndex")],
    )
    (permission,) = sharded.of_type("AWS::Lambda::Permission").values()
    properties = sharded.resolve(permission["Properties"])
    assert properties["FunctionName"] == function_arn("Keyhop-ProposeDrains")
    assert properties["Principal"] == "events.amazonaws.com"
    assert properties["SourceArn"]


ORDERS, AUDIT, DAYS = (
    f"arn:aws:kms:{REGION}:{ACCOUNT}:key/{key}"
    for key in ("0a1b-orders", "2c3d-audit", "6a7b-days")
)
EREIGNISSE = "arn:aws:kms:us-east-1:123456789012:key/4e5f-ereignisse"
FOLLOWERS = "PlanRun Replicate BackfillItems CompareBoth CutOver"
DECRYPTS = {
    "mixed": {
        **dict.fromkeys((ORDERS, EREIGNISSE), f"{SHARED} {LOOKERS}"),
        AUDIT: f"{SHARED} WriteSharded QuerySharded MoveShards",
    },
    "reported": {ORDERS: f"{SHARED} ExamineTable SampleTable"},
    "rekeyed": {ORDERS: f"{SHARED} {FOLLOWERS}", DAYS: FOLLOWERS},
    "kept": {},
}
"""By deployment and key of one's own. The others describe tables, or read metadata."""
KEY_OF = {"Orders": ORDERS, "Audit": AUDIT, "Ereignisse": EREIGNISSE, "EventsByDay": DAYS}
OF_ITEMS = {
    *("Scan", "Query", "GetItem", "BatchGetItem", "PutItem", "UpdateItem", "DeleteItem"),
    *("BatchWriteItem", "ConditionCheckItem", "GetRecords"),
}
HERE = {"kms__ViaService": f"dynamodb.{REGION}.amazonaws.com"}


@pytest.mark.parametrize("context", DECRYPTS)
def test_who_touches_items_of_a_table_uses_its_key_through_dynamodb_alone(context: str) -> None:
    template, keys = stack(context), DECRYPTS[context]
    for owner in template.owners:
        may = {key for key in KEY_OF.values() if template.allows(owner, "kms:Decrypt", key, **HERE)}
        assert may == {key for key, owners in keys.items() if owner in owners.split()}, owner
        # What is given to a function later is looked at as well.
        touched = {
            (resource + "/").split(":table/")[1].split("/")[0]
            for statement in template.statements(owner)
            if OF_ITEMS & {action.removeprefix("dynamodb:") for action in statement["Action"]}
            for resource in statement["Resource"]
            if ":table/" in resource
        }
        assert {KEY_OF[table] for table in touched & KEY_OF.keys()} & keys.keys() <= may, owner
        for key in may:
            assert not template.allows(owner, "kms:Decrypt", key)
            assert not template.allows(owner, "kms:Encrypt", key, **HERE)
            by_s3 = {"kms__ViaService": f"s3.{REGION}.amazonaws.com"}
            assert not template.allows(owner, "kms:Decrypt", key, **by_s3)


def test_dynamodb_is_named_by_the_keys_region_and_in_china_it_may_have_either_name() -> None:
    there = {"kms__ViaService": "dynamodb.us-east-1.amazonaws.com"}
    assert stack("mixed").allows("KeepIndex", "kms:Decrypt", EREIGNISSE, **there)
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
KNOW_NO_RESOURCES = {
    *("lambda:ListEventSourceMappings", "lambda:GetAccountSettings", "dynamodb:ListStreams"),
    *("cloudwatch:GetMetricStatistics", "cloudwatch:GetMetricData", "cloudwatch:PutMetricData"),
    "application-autoscaling:DescribeScalableTargets",
    "application-autoscaling:DescribeScalingPolicies",
    # Application Auto Scaling validates these without naming an alarm.
    *("cloudwatch:DescribeAlarms", "cloudwatch:PutMetricAlarm", "cloudwatch:DeleteAlarms"),
    "lambda:CreateEventSourceMapping",  # it has no name yet, and is narrowed by a condition
}
"""Beside those of X-Ray and of log delivery."""


@pytest.mark.parametrize("context", ["named", "kept", "draining", "rekeyed", "as tested"])
def test_each_statement_says_why_and_has_no_wildcard_but_known_ones(context: str) -> None:
    """IAM refuses a policy whose Sids are not unique. The CDK's own statements have none."""
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
                    ours = {a for a in statement["Action"] if not a.startswith(("xray:", "logs:"))}
                    assert ours <= KNOW_NO_RESOURCES, owner
                else:
                    assert "*" not in resource or WILDCARDS.fullmatch(resource), owner
    for role in template.of_type("AWS::IAM::Role").values():
        assert "ManagedPolicyArns" not in role["Properties"], "which somebody else may change"
