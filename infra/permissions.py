"""IAM statements by hand, each with its why, and the words to cdk-nag for each wildcard.

The CDK's `grant_*` on imported tables and on buckets add more than the functions need.
"""

from collections.abc import Iterable, Mapping, Sequence
from itertools import groupby
from typing import Any

from aws_cdk import Acknowledgment, Stack, Validations
from aws_cdk import aws_iam as iam
from aws_cdk import aws_s3 as s3
from constructs import IConstruct

from infra.config import Table

ALL_RUNS = "runs/*"
"""Everything of every run lies below this, and nothing else lies in the bucket."""


def acknowledge(construct: IConstruct, reason: str, *rules: str) -> None:
    """Tell cdk-nag why its `rules` are not followed here."""
    for rule in rules:
        Validations.of(construct).acknowledge(Acknowledgment(id=rule, reason=reason))


def allow(
    role: iam.Role,
    why: str,
    actions: Sequence[str],
    resources: Sequence[str],
    *,
    wildcard: str | None = None,
    conditions: Mapping[str, Any] | None = None,
) -> None:
    """Add one statement to the role; `why` is its Sid, in CamelCase.

    `wildcard` is the reason for a `*` in the resources; without it, cdk-nag refuses them.
    """
    role.add_to_policy(
        iam.PolicyStatement(
            sid=why, actions=list(actions), resources=list(resources), conditions=conditions
        )
    )
    if wildcard:
        for resource in resources:
            acknowledge_resource(role, resource, wildcard)


def acknowledge_resource(role: IConstruct, resource: str, reason: str) -> None:
    """Tell cdk-nag why this one resource with a `*` is in the role's policy."""
    shown = _flat(Stack.of(role).resolve(resource))
    if "*" in shown:
        acknowledge(role, reason, f"AwsSolutions-IAM5[Resource::{shown}]")


def allow_reading_keys(role: iam.Role, tables: Sequence[Table]) -> None:
    """Describe the tables, and Scan them and their indexes for key attributes only."""
    # DescribeTable has no finer grain than the table; it returns no items.
    allow(
        role,
        "LookAtTheKeySchemaAndSizeOfTheTables",
        ["dynamodb:DescribeTable"],
        [table_arn(role, table) for table in tables],
    )
    by_attributes = groupby(
        sorted(tables, key=lambda table: table.key_attributes),
        key=lambda table: table.key_attributes,
    )
    for number, (attributes, group) in enumerate(by_attributes, 1):
        # A Scan that names no attributes would return whole items: Select forbids it. The names
        # themselves can only be limited where the context has them (keyAttributes).
        conditions: dict[str, dict[str, Any]] = {
            "StringEquals": {"dynamodb:Select": "SPECIFIC_ATTRIBUTES"}
        }
        if attributes:
            conditions["ForAllValues:StringEquals"] = {"dynamodb:Attributes": list(attributes)}
        allow(
            role,
            f"ScanForKeysAndNeverForWholeItems{number}",
            ["dynamodb:Scan"],
            [arn for table in group for arn in _table_and_indexes(role, table)],
            conditions=conditions,
            wildcard="A run may enumerate any index of an allowed table; the indexes are not "
            "known at synth, and the condition on dynamodb:Select holds for them as well.",
        )


def allow_objects(role: iam.Role, bucket: s3.IBucket, why: str, *actions: str) -> None:
    """Allow object actions (`GetObject`, ...) on the runs, and to list them."""
    allow(
        role,
        why,
        [f"s3:{action}" for action in actions],
        [bucket.arn_for_objects(ALL_RUNS)],
        wildcard="A run's id, and so the names of its objects, are known only when it is started.",
    )
    # Also decides that a missing object is "not found" and not "forbidden". That check carries no
    # prefix, hence IfExists; a list of the bucket outside runs/ stays forbidden.
    allow(
        role,
        "FindTheObjectsOfARunAndSeeThatOneIsMissing",
        ["s3:ListBucket"],
        [bucket.bucket_arn],
        conditions={"StringLikeIfExists": {"s3:prefix": ALL_RUNS}},
    )


def table_arn(scope: IConstruct, table: Table) -> str:
    """The table's ARN; a bare name is a table of the stack's own account and region."""
    return table.arn or Stack.of(scope).format_arn(
        service="dynamodb", resource="table", resource_name=table.name
    )


def _table_and_indexes(scope: IConstruct, table: Table) -> Iterable[str]:
    arn = table_arn(scope, table)
    return arn, f"{arn}/index/*"


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
