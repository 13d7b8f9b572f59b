"""Everything that is not listed as allowed is denied, also for resources with similar names.

The listed calls are those of the end-to-end tests and of unrecorded.py. Each role is asked for each
of its actions on each resource that any call names, and on resources whose names differ a little:
`Kept2` and `xKept` for the table `Kept`, another account, and another region.
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
"""Where an ARN names something; the rest of it is a kind, or an id that nobody knows at synth."""


class Besides(NamedTuple):
    """What is allowed although no listed call needs it: patterns, and the reason.

    resource: the ARN after the account.
    """

    owners: str
    actions: str
    resource: str
    why: str


ALLOWED_BESIDES = (
    Besides(
        "ScanSegments|VerifyRun",
        "dynamodb:(DescribeTable|Scan)",
        "table/(Each|Kept|Reported|Sharded)",
        "The keys of each table of the settings can be listed.",
    ),
    Besides(
        "PlanRun|ScanSegments|VerifyRun",
        "dynamodb:Scan",
        "table/(Kept|Reported)/index/[^/]+",
        "An input names the index whose keys are listed.",
    ),
    Besides(
        "ExamineTable|SampleTable",
        "dynamodb:(Scan|DescribeContributorInsights)",
        "table/Reported/index/[^/]+",
        "A report reads all indexes of its table, whose names are not in the settings.",
    ),
    Besides(
        "ExamineTable",
        "cloudwatch:GetInsightRuleReport",
        "insight-rule/DynamoDBContributorInsights-.*",
        "A rule's name has 128 characters at most, so it cannot hold each table's whole name.",
    ),
    Besides(
        "Replicate|CompareBoth",
        "dynamodb:GetItem",
        "table/Rekeyed",
        "After a cutover the copy goes the other way.",
    ),
    Besides(
        "EnumerateKeys|WalkKeyIndexes|ForEachKey|SampleKeys|RekeyBackfill|RekeyVerify",
        "lambda:InvokeFunction",
        "function:Keyhop-(CleanUp|VerifyRun)",
        "These states are in the common definition of all runs.",
    ),
    Besides(
        "EnumerateKeys|WalkKeyIndexes|ForEachKey|SampleKeys|RekeyBackfill|RekeyVerify",
        "states:(DescribeExecution|StopExecution)",
        "execution:Keyhop-{owner}/ScanGroups:.+",
        "The children of its own map.",
    ),
)


def near_misses(resource: str) -> Iterator[str]:
    """Return resources that are not the given one, but are named much like it."""
    for pattern in NAMES:
        if (found := pattern.search(resource)) is not None:
            start, end = found.span("name")
            name = found["name"]
            for similar in (f"{name}2", f"{name}-2", f"x{name}", name[:-1]):
                yield resource[:start] + similar + resource[end:]
    parts = resource.split(":")
    if parts[4]:
        yield ":".join([*parts[:4], OTHER_ACCOUNT, *parts[5:]])
    if parts[3]:
        yield ":".join([*parts[:3], OTHER_REGION, *parts[4:]])


def test_near_misses_are_of_every_part_of_a_name() -> None:
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
    """Only ids of one's own account differ in nothing but account and region."""
    by_id = ("event-source-mapping:", "scalable-target/")
    least = 2 if any(kind in resource for kind in by_id) else 4
    assert len(set(near_misses(resource)) - {resource}) >= least


class Question(NamedTuple):
    """One request, in words that can be read in a failure."""

    action: str
    resource: str


def listed_as(resource: str) -> str:
    """Return the resource as it is listed: objects of a bucket by the first part of their key."""
    is_object = resource.startswith(f"{BUCKET_ARN}/")
    return "/".join(resource.split("/")[:2]) + "/object" if is_object else resource


@cache
def resources(service: str) -> frozenset[str]:
    """Return the resources of a service that a listed call names, and their near misses."""
    named = {
        listed_as(call.resource)
        for call in LISTED
        if call.action.startswith(f"{service}:") and call.resource != "*"
    }
    return frozenset(named | {similar for one in named for similar in near_misses(one)})


def allowed_but_not_listed(owner: str, statements: Sequence[Mapping[str, Any]]) -> set[Question]:
    """Ask for each action of the statements on each resource; return what should be denied."""
    found = set()
    for action in sorted({one for statement in statements for one in statement["Action"]}):
        calls = [call for call in LISTED if (call.caller, call.action) == (owner, action)]
        listed = {listed_as(call.resource) for call in calls}
        if "*" in listed:
            continue  # the action knows no resources
        contexts = {call.context for call in calls} or {"{}"}
        for resource in sorted(resources(action.partition(":")[0]) - listed):
            questions = [Call(owner, action, resource, context) for context in contexts]
            if not is_argued(owner, action, resource) and is_any_allowed(statements, questions):
                found.add(Question(action, resource))
    return found


def is_argued(owner: str, action: str, resource: str) -> bool:
    return any(covers(one, owner, action, resource) for one in ALLOWED_BESIDES)


def covers(argued: Besides, owner: str, action: str, resource: str) -> bool:
    """Tell whether an entry of ALLOWED_BESIDES is about this; of one's own account only."""
    _, _, service, region, account, name = resource.split(":", 5)
    here = account == ACCOUNT and (region == REGION or service == "cloudwatch")
    pattern = argued.resource.replace("{owner}", owner)
    about = (argued.owners, owner), (argued.actions, action), (pattern, name)
    return here and all(re.fullmatch(*one) for one in about)


def is_any_allowed(statements: Sequence[Mapping[str, Any]], calls: Sequence[Call]) -> bool:
    try:
        return any(simulator().decide(statements, call).allowed for call in calls)
    except NotAsked:
        return False  # the action knows no resource of this kind


@pytest.mark.prove
@pytest.mark.parametrize("owner", OWNERS)
def test_everything_that_is_not_listed_is_denied(owner: str) -> None:
    assert allowed_but_not_listed(owner, as_tested().statements(owner)) == set()


@pytest.mark.parametrize("argued", ALLOWED_BESIDES, ids=lambda argued: argued.why)
def test_what_is_allowed_besides_is_allowed(argued: Besides) -> None:
    """An entry that nobody needs any more has to go."""
    asked = {
        Call(call.caller, call.action, resource, call.context)
        for call in LISTED
        if re.fullmatch(argued.actions, call.action) and call.resource != "*"
        for resource in resources(call.action.partition(":")[0])
        if covers(argued, call.caller, call.action, resource)
    }
    listed = {(call.caller, call.action, listed_as(call.resource)) for call in LISTED}
    needed = [call for call in asked if (call.caller, call.action, call.resource) not in listed]
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
"""Statements that allow too much: whose, and what of an ARN is replaced with what."""


@pytest.mark.prove
@pytest.mark.parametrize("wider", WIDER)
def test_a_statement_that_allows_more_is_noticed(wider: str) -> None:
    owner, narrow, wide = WIDER[wider]
    statements = [
        {**one, "Resource": [resource.replace(narrow, wide) for resource in one["Resource"]]}
        for one in as_tested().statements(owner)
    ]
    changed = [one for one in statements if one not in as_tested().statements(owner)]
    assert changed, "nothing was replaced"
    assert all(one["Effect"] == "Allow" for one in statements)
    assert allowed_but_not_listed(owner, changed)
