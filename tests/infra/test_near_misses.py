"""Tests that everything that is not listed is denied, also for resources with similar names.

The listed calls are those of the end-to-end tests and of unrecorded.py. The tests simulate each
action of each role on every listed resource and on its near misses: `Kept2` and `xKept` for the
table `Kept`, another account, and another region.
"""

import re
from collections.abc import Iterator, Mapping, Sequence
from functools import cache
from typing import Any, NamedTuple

import pytest

from testing.iam.simulator import Call, NotAsked, simulator
from tests.infra.template import ACCOUNT, BUCKET_ARN, REGION, table_arn
from tests.infra.test_calls import OWNERS, RECORDED, UNRECORDED, as_tested

LISTED = [*RECORDED, *(call for call, _ in UNRECORDED)]
OTHER_ACCOUNT = "444455556666"
OTHER_REGION = "eu-west-2"

NAMES = (
    re.compile(r":dynamodb:.*:table/(?P<name>[^/]+)"),
    re.compile(r":dynamodb:.*:table/[^/]+/index/(?P<name>.+)"),
    re.compile(r":lambda:.*:function:(?P<name>[\w-]+)"),
    re.compile(r":sqs:.*:(?P<name>[\w-]+)$"),
    re.compile(r":states:.*:(?:stateMachine|execution|mapRun):(?P<name>[\w-]+)"),
    re.compile(r":states:.*/(?P<name>ScanGroups):"),
    re.compile(r":logs:.*:log-group:/aws/lambda/(?P<name>[\w-]+)"),
    re.compile(r":events:.*:rule/(?P<name>.+)"),
    re.compile(r":insight-rule/DynamoDBContributorInsights-PKC-(?P<name>[\w.]+)-"),
    re.compile(r":s3:::(?P<name>[^/]+)"),
    re.compile(r":s3:::[^/]+/(?P<name>[^/]+)/"),
)
"""The names in ARNs; the rest of an ARN is a type, or an id that is unknown at synth."""


class Extra(NamedTuple):
    """Patterns of calls that are allowed although no listed call needs them, with the reason.

    The pattern `resource` matches the ARN after the account.
    """

    owners: str
    actions: str
    resource: str
    why: str


ALLOWED_EXTRAS = (
    Extra(
        "ScanSegments|VerifyRun",
        "dynamodb:(DescribeTable|Scan)",
        "table/(Each|Kept|Reported|Sharded)",
        "The keys of each table of the settings can be listed.",
    ),
    Extra(
        "PlanRun|ScanSegments|VerifyRun",
        "dynamodb:Scan",
        "table/(Kept|Reported)/index/[^/]+",
        "An input names the index whose keys are listed.",
    ),
    Extra(
        "ExamineTable|SampleTable",
        "dynamodb:(Scan|DescribeContributorInsights)",
        "table/Reported/index/[^/]+",
        "A report reads all indexes of its table, whose names are not in the settings.",
    ),
    Extra(
        "ExamineTable",
        "cloudwatch:GetInsightRuleReport",
        "insight-rule/DynamoDBContributorInsights-.*",
        "A rule's name is limited to 128 characters, so it cannot contain every table's full name.",
    ),
    Extra(
        "Replicate|CompareBoth",
        "dynamodb:GetItem",
        "table/Rekeyed",
        "After a cutover, replication runs in the other direction.",
    ),
    Extra(
        "EnumerateKeys|WalkKeyIndexes|ForEachKey|SampleKeys|RekeyBackfill|RekeyVerify",
        "lambda:InvokeFunction",
        "function:Keyhop-(CleanUp|VerifyRun)",
        "These states are in the common definition of all runs.",
    ),
    Extra(
        "EnumerateKeys|WalkKeyIndexes|ForEachKey|SampleKeys|RekeyBackfill|RekeyVerify",
        "states:(DescribeExecution|StopExecution)",
        "execution:Keyhop-{owner}/ScanGroups:.+",
        "A machine starts and stops the children of its map.",
    ),
)


def near_misses(resource: str) -> Iterator[str]:
    """Yield resources with names that are similar to the given one."""
    for pattern in NAMES:
        if (match := pattern.search(resource)) is not None:
            start, end = match.span("name")
            name = match["name"]
            for similar in (f"{name}2", f"{name}-2", f"x{name}", name[:-1]):
                yield resource[:start] + similar + resource[end:]
    parts = resource.split(":")
    if parts[4]:
        yield ":".join([*parts[:4], OTHER_ACCOUNT, *parts[5:]])
    if parts[3]:
        yield ":".join([*parts[:3], OTHER_REGION, *parts[4:]])


def test_near_misses_change_every_part_of_a_name() -> None:
    index = f"{table_arn('Kept')}/index/keyhop-keys"
    assert set(near_misses(index)) == {
        *(index.replace("Kept", name) for name in ("Kept2", "Kept-2", "xKept", "Kep")),
        *(index.replace("keyhop-keys", name) for name in ("keyhop-keys2", "keyhop-keys-2")),
        *(index.replace("keyhop-keys", name) for name in ("xkeyhop-keys", "keyhop-key")),
        index.replace(ACCOUNT, OTHER_ACCOUNT),
        index.replace(REGION, OTHER_REGION),
    }


@pytest.mark.parametrize("resource", sorted({call.resource for call in LISTED} - {"*"}))
def test_every_resource_with_a_name_has_near_misses(resource: str) -> None:
    """A resource with a generated id has near misses only in other accounts and regions."""
    by_id = ("event-source-mapping:", "scalable-target/")
    minimum = 2 if any(kind in resource for kind in by_id) else 4
    assert len(set(near_misses(resource)) - {resource}) >= minimum


class Question(NamedTuple):
    """A request that is readable in a failure."""

    action: str
    resource: str


def listed_as(resource: str) -> str:
    """Return the listed form of a resource, which shortens the keys of objects to one folder."""
    is_object = resource.startswith(f"{BUCKET_ARN}/")
    return "/".join(resource.split("/")[:2]) + "/object" if is_object else resource


@cache
def resources(service: str) -> frozenset[str]:
    """Return the resources of a service that a listed call names, and their near misses."""
    listed = {
        listed_as(call.resource)
        for call in LISTED
        if call.action.startswith(f"{service}:") and call.resource != "*"
    }
    return frozenset(listed | {similar for resource in listed for similar in near_misses(resource)})


def allowed_but_not_listed(owner: str, statements: Sequence[Mapping[str, Any]]) -> set[Question]:
    """Return the requests that the statements allow, but that should be denied."""
    unexpected = set()
    for action in sorted({name for statement in statements for name in statement["Action"]}):
        calls = [call for call in LISTED if (call.caller, call.action) == (owner, action)]
        listed = {listed_as(call.resource) for call in calls}
        if "*" in listed:
            continue  # The action has no resources.
        contexts = {call.context for call in calls} or {"{}"}
        for resource in sorted(resources(action.partition(":")[0]) - listed):
            questions = [Call(owner, action, resource, context) for context in contexts]
            is_extra = any(covers(item, owner, action, resource) for item in ALLOWED_EXTRAS)
            if not is_extra and is_any_allowed(statements, questions):
                unexpected.add(Question(action, resource))
    return unexpected


def covers(extra: Extra, owner: str, action: str, resource: str) -> bool:
    """Return whether an entry of ALLOWED_EXTRAS allows a call; it applies to ACCOUNT only."""
    _, _, service, region, account, name = resource.split(":", 5)
    is_own_account = account == ACCOUNT and (region == REGION or service == "cloudwatch")
    pattern = extra.resource.replace("{owner}", owner)
    pairs = (extra.owners, owner), (extra.actions, action), (pattern, name)
    return is_own_account and all(re.fullmatch(*pair) for pair in pairs)


def is_any_allowed(statements: Sequence[Mapping[str, Any]], calls: Sequence[Call]) -> bool:
    try:
        return any(simulator().decide(statements, call).allowed for call in calls)
    except NotAsked:
        return False  # The action has no resource of this type.


@pytest.mark.prove
@pytest.mark.parametrize("owner", OWNERS)
def test_everything_that_is_not_listed_is_denied(owner: str) -> None:
    assert allowed_but_not_listed(owner, as_tested().statements(owner)) == set()


@pytest.mark.parametrize("extra", ALLOWED_EXTRAS, ids=lambda extra: extra.why)
def test_each_extra_is_allowed(extra: Extra) -> None:
    """An entry that is no longer needed must be removed."""
    covered = {
        Call(call.caller, call.action, resource, call.context)
        for call in LISTED
        if re.fullmatch(extra.actions, call.action) and call.resource != "*"
        for resource in resources(call.action.partition(":")[0])
        if covers(extra, call.caller, call.action, resource)
    }
    listed = {(call.caller, call.action, listed_as(call.resource)) for call in LISTED}
    needed = [call for call in covered if (call.caller, call.action, call.resource) not in listed]
    assert any(is_any_allowed(as_tested().statements(call.caller), [call]) for call in needed)


WIDER = {
    "a stream of a table with a similar name": ("KeepIndex", "/Kept/stream/*", "/Kept*/stream/*"),
    "an index with a similar name": ("WalkSegments", "/index/keyhop-keys", "/index/keyhop-keys*"),
    "a table with a similar name": ("ManageIndex", "table/Kept", "table/*Kept"),
    "a function with a similar name": ("EachKey", "function:on-keys", "function:on-keys*"),
    "a queue with a similar name": ("EachKey", ":keys", ":*keys"),
    "a state machine with a similar name": ("EachKey", ":PerBatch", ":PerBatch*"),
    "executions of a similar machine": ("ScanSegments", "EnumerateKeys:*", "EnumerateKeys*"),
    "objects beside the runs": ("PlanRun", "/runs/*", "/runs*"),
    "another bucket": ("PlanRun", "the-results/", "the-results*/"),
    "a log group with a similar name": ("PlanRun", "/Keyhop-PlanRun:*", "/Keyhop-PlanRun*"),
    "another account": ("WriteSharded", f":{ACCOUNT}:table", ":*:table"),
    "another region": ("WriteSharded", f":{REGION}:{ACCOUNT}:table", f":*:{ACCOUNT}:table"),
}
"""Statements that allow too much: the owner, a part of an ARN and its wider replacement."""


@pytest.mark.prove
@pytest.mark.parametrize("wider", WIDER)
def test_a_statement_that_allows_more_is_detected(wider: str) -> None:
    owner, narrow, wide = WIDER[wider]
    originals = as_tested().statements(owner)
    statements = [
        {**original, "Resource": [arn.replace(narrow, wide) for arn in original["Resource"]]}
        for original in originals
    ]
    changed = [statement for statement in statements if statement not in originals]
    assert changed, "nothing was replaced"
    assert all(statement["Effect"] == "Allow" for statement in statements)
    assert allowed_but_not_listed(owner, changed)
