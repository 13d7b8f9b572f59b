"""IAM statements by hand, each with its why, and the words to cdk-nag for each wildcard.

The CDK's `grant_*` on imported tables and on buckets add more than the functions need.
"""

from collections.abc import Iterator, Mapping, Sequence
from itertools import groupby
from typing import Any

from aws_cdk import Acknowledgment, Stack, Validations
from aws_cdk import aws_iam as iam
from aws_cdk import aws_lambda as lambda_
from aws_cdk import aws_s3 as s3
from aws_cdk import aws_stepfunctions as sfn
from constructs import IConstruct
from keyhop.key_index.sentinel import INDEX, MARKER

from infra.config_tables import Table

Owner = lambda_.Function | sfn.StateMachine | iam.Role
"""Who has rights: by its role, or the role itself."""

ALL_RUNS = "runs/*"
"""Everything of every run lies below this."""
KEY_INDEXES = "key-index/*"
"""What is known about key indexes lies below this; nothing else lies in the bucket."""

_WHOLE_ITEMS_NEVER = {"dynamodb:Select": "SPECIFIC_ATTRIBUTES"}


def acknowledge(construct: IConstruct, reason: str, *rules: str) -> None:
    """Tell cdk-nag why its `rules` are not followed here."""
    for rule in rules:
        Validations.of(construct).acknowledge(Acknowledgment(id=rule, reason=reason))


def allow(
    owner: Owner,
    why: str,
    actions: Sequence[str],
    resources: Sequence[str],
    *,
    wildcard: str | None = None,
    conditions: Mapping[str, Any] | None = None,
) -> None:
    """Add one statement to the owner's role; `why` is its Sid, in CamelCase.

    `wildcard` is the reason for a `*` in the resources; without it, cdk-nag refuses them.
    """
    role = owner if isinstance(owner, iam.Role) else owner.role
    assert role is not None
    role.add_to_principal_policy(
        iam.PolicyStatement(
            sid=why, actions=list(actions), resources=list(resources), conditions=conditions
        )
    )
    for resource in resources if wildcard else ():
        shown = _flat(Stack.of(role).resolve(resource))
        if wildcard and "*" in shown:
            acknowledge(role, wildcard, f"AwsSolutions-IAM5[Resource::{shown}]")


def allow_describing(owner: Owner, tables: Sequence[Table]) -> None:
    """Describe the tables."""
    # DescribeTable has no finer grain than the table; it returns no items.
    allow(
        owner,
        "LookAtTheKeySchemaAndSizeOfTheTables",
        ["dynamodb:DescribeTable"],
        [table_arn(owner, table) for table in tables],
    )


def allow_reading_keys(owner: Owner, tables: Sequence[Table]) -> None:
    """Describe the tables, and Scan them and their indexes for key attributes only."""
    allow_describing(owner, tables)
    for number, attributes, group in _by_attributes(tables):
        # A Scan that names no attributes would return whole items: Select forbids it. The names
        # themselves can only be limited where the context has them (keyAttributes).
        allow(
            owner,
            f"ScanForKeysAndNeverForWholeItems{number}",
            ["dynamodb:Scan"],
            [arn for table in group for arn in _table_and_index(owner, table, "*")],
            conditions={"StringEquals": _WHOLE_ITEMS_NEVER, **_named(attributes)},
            wildcard="A run may enumerate any index of an allowed table; the indexes are not "
            "known at synth, and the condition on dynamodb:Select holds for them as well.",
        )


def allow_scanning_sentinels(owner: Owner, tables: Sequence[Table]) -> None:
    """Scan the tables and their key indexes, for key attributes and markers only."""
    for number, attributes, group in _by_attributes(tables):
        allow(
            owner,
            f"ScanForSentinelsAndNeverForWholeItems{number}",
            ["dynamodb:Scan"],
            [arn for table in group for arn in _table_and_index(owner, table, INDEX)],
            conditions={"StringEquals": _WHOLE_ITEMS_NEVER, **_named(attributes)},
        )


def allow_looking_into_collections(owner: Owner, tables: Sequence[Table]) -> None:
    """Read keys and markers of single items of the tables."""
    for number, attributes, group in _by_attributes(tables):
        arns = [table_arn(owner, table) for table in group]
        allow(
            owner,
            f"LookAtTheFirstItemsOfACollection{number}",
            ["dynamodb:Query"],
            arns,
            conditions={"StringEquals": _WHOLE_ITEMS_NEVER, **_named(attributes)},
        )
        # IfExists, as in AWS's own example of such a policy: a request to get an item has no
        # parameter Select.
        allow(
            owner,
            f"SeeWhetherASentinelIsThere{number}",
            ["dynamodb:GetItem", "dynamodb:BatchGetItem"],
            arns,
            conditions={"StringEqualsIfExists": _WHOLE_ITEMS_NEVER, **_named(attributes)},
        )


def allow_writing_sentinels(owner: Owner, tables: Sequence[Table]) -> None:
    """Put and delete items, naming their keys and the marker only where the context knows them."""
    # IAM sees which attributes a request names, not what it does to the item: that only sentinels
    # are deleted, and no item is overwritten, rests on the conditions of the requests
    # (lambdas/keyhop/key_index/collections.py).
    for number, attributes, group in _by_attributes(tables):
        allow(
            owner,
            f"PutAndDeleteSentinels{number}",
            ["dynamodb:PutItem", "dynamodb:DeleteItem"],
            [table_arn(owner, table) for table in group],
            conditions=_named(attributes) or None,
        )


def allow_reading_shard_counts(owner: Owner, tables: Sequence[Table]) -> None:
    """Read the metadata tables of sharded tables through: they hold shard counts, no items."""
    metadata = [table.sharding.metadata for table in tables if table.sharding]
    if metadata:
        allow(
            owner,
            "SeeHowManyShardsTheLogicalKeysHave",
            ["dynamodb:DescribeTable", "dynamodb:Scan"],
            [_arn_of(owner, name) for name in metadata],
        )


def allow_objects(owner: Owner, bucket: s3.IBucket, why: str, *actions: str) -> None:
    """Allow object actions (`GetObject`, ...) on the runs, and to list them."""
    allow(
        owner,
        why,
        [f"s3:{action}" for action in actions],
        [bucket.arn_for_objects(ALL_RUNS)],
        wildcard="A run's id, and so the names of its objects, are known only when it is started.",
    )
    allow_finding_objects(owner, bucket, ALL_RUNS)


def allow_finding_objects(owner: Owner, bucket: s3.IBucket, *prefixes: str) -> None:
    """List the objects of prefixes, and see that an object is missing."""
    # Also decides that a missing object is "not found" and not "forbidden". That check carries no
    # prefix, hence IfExists; a list of the bucket outside of them stays forbidden.
    allow(
        owner,
        "FindTheObjectsOfARunAndSeeThatOneIsMissing",
        ["s3:ListBucket"],
        [bucket.bucket_arn],
        conditions={
            # One prefix as a text: so the template of a stack without key indexes has always been.
            "StringLikeIfExists": {"s3:prefix": prefixes[0] if len(prefixes) == 1 else [*prefixes]}
        },
    )


def table_arn(scope: IConstruct, table: Table) -> str:
    """The table's ARN; a bare name is a table of the stack's own account and region."""
    return table.arn or _arn_of(scope, table.name)


def _arn_of(scope: IConstruct, name: str) -> str:
    return Stack.of(scope).format_arn(service="dynamodb", resource="table", resource_name=name)


def _table_and_index(scope: IConstruct, table: Table, index: str) -> tuple[str, str]:
    arn = table_arn(scope, table)
    return arn, f"{arn}/index/{index}"


def _by_attributes(tables: Sequence[Table]) -> Iterator[tuple[int, tuple[str, ...], list[Table]]]:
    """The tables that a statement can have in common, with a number for it."""
    ordered = sorted(tables, key=_attributes)
    for number, (attributes, group) in enumerate(groupby(ordered, key=_attributes), 1):
        yield number, attributes, list(group)


def _attributes(table: Table) -> tuple[str, ...]:
    """What requests about the table may name; empty: not restricted by name."""
    if not table.key_attributes or not table.key_index:
        return table.key_attributes
    return (*table.key_attributes, MARKER)


def _named(attributes: Sequence[str]) -> dict[str, dict[str, Any]]:
    if not attributes:
        return {}
    return {"ForAllValues:StringEquals": {"dynamodb:Attributes": list(attributes)}}


def _flat(value: Any) -> str:
    """A resource as cdk-nag writes it in the id of a finding."""
    if isinstance(value, str):
        return value
    (function, content), *_ = value.items()
    if function == "Fn::Join":
        separator, parts = content
        return str(separator).join(map(_flat, parts))
    if function == "Fn::GetAtt":
        return f"<{'.'.join(content)}>"
    if function == "Ref":
        return f"<{content}>"
    raise ValueError(f"cdk-nag's name of {value} is not known")
