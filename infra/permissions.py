"""IAM statements, each with a reason as its Sid, and a reason for cdk-nag for each wildcard.

The CDK's `grant_*` on imported tables and on buckets add more than the functions need.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import groupby
from typing import Any

import aws_cdk
from aws_cdk import Aws, Stack, Token
from aws_cdk import aws_iam as iam
from aws_cdk import aws_lambda as lambda_
from aws_cdk import aws_s3 as s3
from aws_cdk import aws_stepfunctions as sfn
from constructs import IConstruct
from keyhop.key_index.sentinel import INDEX, MARKER

from .config import Table

Owner = lambda_.Function | sfn.StateMachine | iam.Role
"""An owner of permissions: a construct with a role, or the role."""

ALL_RUNS = "runs/*"
"""The objects of all runs."""
KEY_INDEXES = "key-index/*"
"""The objects of the registry of key indexes."""
REPORTS = "reports/*"
"""The latest report on each table. The bucket has no other objects than these three kinds."""

IDS_OF_RUNS = "A run's id, and so the names of its objects, are known only when it is started."

ARNS_OF_A_STATEMENT = 12
"""The maximum number of ARNs in a statement, so that a statement is far smaller than a policy: the
CDK moves whole statements into managed policies when the policy of a role gets too large (see
limits.py)."""

Validations: Any = getattr(aws_cdk, "Validations", None)
"""The CDK's acknowledgments of findings; None before 2.251, which has none."""

_WHOLE_ITEMS_NEVER = {"dynamodb:Select": "SPECIFIC_ATTRIBUTES"}


def acknowledge(construct: IConstruct, reason: str, *rules: str) -> None:
    """Give cdk-nag the reason why its `rules` are not followed here, if the CDK can take it.

    A CDK before 2.266 refuses rules with an ARN.
    """
    for rule in rules if Validations else ():
        acknowledgment = aws_cdk.Acknowledgment(id=rule, reason=reason)
        try:
            Validations.of(construct).acknowledge(acknowledgment)
        except RuntimeError as error:
            if "InvalidValidationId" not in str(error):
                raise


def allow(
    owner: Owner,
    why: str,
    actions: str,
    *resources: str,
    wildcard: str = "",
    conditions: Mapping[str, Any] | None = None,
) -> None:
    """Add a statement to the owner's role, or several ones for many resources.

    Args:
        why: The Sid. Those of further statements end with And2, And3 and so on.
        actions: The actions, as "s3:GetObject PutObject".
        wildcard: The reason for a `*` in the resources, which cdk-nag requires.
    """
    service, names = actions.split(":")
    role = owner if isinstance(owner, iam.Role) else owner.role
    assert role is not None
    for number, first in enumerate(range(0, len(resources), ARNS_OF_A_STATEMENT), 1):
        role.add_to_principal_policy(
            iam.PolicyStatement(
                sid=why if number == 1 else f"{why}And{number}",
                actions=[f"{service}:{name}" for name in names.split()],
                resources=[*resources[first : first + ARNS_OF_A_STATEMENT]],
                conditions=conditions,
            )
        )
    for resource in resources if wildcard else ():
        text = _flat(Stack.of(role).resolve(resource))
        if "*" in text:
            acknowledge(role, wildcard, f"AwsSolutions-IAM5[Resource::{text}]")


def allow_describing(owner: Owner, tables: Sequence[Table], sid_end: str = "") -> None:
    """Allow DescribeTable, which cannot be limited to less than the table and returns no items. For
    `sid_end`, see allow_decrypting.
    """
    arns = table_arns(owner, tables)
    allow(owner, f"LookAtTheKeySchemaAndSizeOfTheTables{sid_end}", "dynamodb:DescribeTable", *arns)


def allow_decrypting(owner: Owner, tables: Sequence[Table], sid_end: str = "") -> None:
    """Allow the use of the keys that encrypt tables, through DynamoDB only.

    DynamoDB decrypts the key of a table in the name of the caller that reads or writes the table or
    its stream, and keeps it for five minutes (AWS documentation, "DynamoDB encryption at rest usage
    notes"). DescribeTable does not need it.

    Args:
        sid_end: The end of the Sid, if the owner already has such permissions for other tables.
    """
    keys = sorted({table.kms_key for table in tables if table.kms_key})
    services = sorted({service for key in keys for service in dynamodb_of(key)})
    if keys:
        through = {"StringEquals": {"kms:ViaService": services}}
        allow(owner, f"DecryptTheTables{sid_end}", "kms:Decrypt", *keys, conditions=through)


def allow_reading_keys(owner: Owner, tables: Sequence[Table]) -> None:
    """Allow describing tables, and scanning them and their indexes for key attributes only."""
    allow_describing(owner, tables)
    allow_decrypting(owner, tables)
    _allow_scanning(
        owner,
        tables,
        "ScanForKeysAndNeverForWholeItems",
        "*",
        "A run may enumerate any index of an allowed table; the indexes are not known at synth, "
        "and the condition on dynamodb:Select holds for them as well.",
    )


def allow_scanning_sentinels(owner: Owner, tables: Sequence[Table]) -> None:
    """Allow scanning the tables and their key indexes for key attributes and markers only."""
    _allow_scanning(owner, tables, "ScanForSentinelsAndNeverForWholeItems", INDEX)


def _allow_scanning(
    owner: Owner, tables: Sequence[Table], why: str, index: str, wildcard: str = ""
) -> None:
    # A Scan that names no attributes would return whole items: Select forbids it. The names
    # themselves can only be limited where the context has them (keyAttributes).
    for number, arns, named in _by_attributes(owner, tables):
        allow(
            owner,
            f"{why}{number}",
            "dynamodb:Scan",
            *(each for arn in arns for each in (arn, f"{arn}/index/{index}")),
            conditions={"StringEquals": _WHOLE_ITEMS_NEVER, **named},
            wildcard=wildcard,
        )


def allow_looking_into_collections(
    owner: Owner, tables: Sequence[Table], many: bool = False
) -> None:
    """Allow reading keys and markers of items; with `many`, of several items at once too."""
    allow_decrypting(owner, tables)
    for number, arns, named in _by_attributes(owner, tables):
        allow(
            owner,
            f"LookAtTheFirstItemsOfACollection{number}",
            "dynamodb:Query",
            *arns,
            conditions={"StringEquals": _WHOLE_ITEMS_NEVER, **named},
        )
        # IfExists, as in AWS's own example of such a policy: a request to get an item has no
        # parameter Select.
        allow(
            owner,
            f"SeeWhetherASentinelIsThere{number}",
            "dynamodb:GetItem BatchGetItem" if many else "dynamodb:GetItem",
            *arns,
            conditions={"StringEqualsIfExists": _WHOLE_ITEMS_NEVER, **named},
        )


def allow_writing_sentinels(owner: Owner, tables: Sequence[Table]) -> None:
    """Allow putting and deleting items, with key attributes only where the context has them."""
    # IAM sees which attributes a request names, not what it does to the item: that only sentinels
    # are deleted, and no item is overwritten, rests on the conditions of the requests
    # (lambdas/keyhop/key_index/keeper.py).
    for number, arns, named in _by_attributes(owner, tables):
        why, actions = f"PutAndDeleteSentinels{number}", "dynamodb:PutItem DeleteItem"
        allow(owner, why, actions, *arns, conditions=named or None)


def allow_changing_collections(owner: Owner, tables: Sequence[Table]) -> None:
    """Allow the actions on items that the settings `each` of the tables permit.

    Permission to put includes finding and checking another item of the collection, and deleting the
    new item, so that a put creates no collection and can be undone. If the setting has attributes,
    these requests may name no others. IAM sees the attributes of the new item and of the
    conditions, but not the attributes of an existing item.
    """
    putting = [table for table in tables if table.each and table.each.put]
    for number, arns, named in _by_attributes(owner, putting, _attributes_of_puts):
        allow(
            owner,
            f"PutItemsIntoCollectionsAndTakeThemBack{number}",
            "dynamodb:PutItem DeleteItem ConditionCheckItem",
            *arns,
            conditions=named or None,
        )
    if putting:
        allow(
            owner,
            "LookForAnotherItemOfACollection",
            "dynamodb:Query",
            *table_arns(owner, putting),
            conditions={"StringEquals": _WHOLE_ITEMS_NEVER},
        )
    for why, actions, able in (
        ("CompareItemsWithWhatWasPut", "GetItem BatchGetItem", putting),
        ("UpdateItemsThatAreThere", "UpdateItem", [t for t in tables if t.each and t.each.update]),
        (
            "DeleteItemsThatAreThere",
            "BatchGetItem DeleteItem",
            [t for t in tables if t.each and t.each.delete],
        ),
    ):
        if able:
            allow(owner, why, f"dynamodb:{actions}", *table_arns(owner, able))


def allow_reading_metrics(owner: Owner, why: str, action: str) -> None:
    """Allow an action that reads metrics, which CloudWatch cannot limit to some."""
    nothing_else = "Metrics know no resources: CloudWatch takes no other than *."
    allow(owner, why, f"cloudwatch:{action}", "*", wildcard=nothing_else)


def allow_objects(owner: Owner, bucket: s3.IBucket, why: str, actions: str) -> None:
    """Allow object actions ("GetObject PutObject") on the runs, and to list them."""
    runs = bucket.arn_for_objects(ALL_RUNS)
    allow(owner, why, f"s3:{actions}", runs, wildcard=IDS_OF_RUNS)
    allow_finding_objects(owner, bucket, ALL_RUNS)


def allow_finding_objects(owner: Owner, bucket: s3.IBucket, *prefixes: str) -> None:
    """Allow listing the objects of prefixes, and finding that an object is missing."""
    # Also decides that a missing object is "not found" and not "forbidden". S3 checks that with the
    # object's key as the prefix; if it should ever do so without any, IfExists lets it pass, and
    # with it a list of the whole bucket, in which there is nothing but these.
    # One prefix is a text, as it has always been in the template of a stack without key indexes.
    listed = prefixes[0] if len(prefixes) == 1 else [*prefixes]
    allow(
        owner,
        "FindTheObjectsOfARunAndSeeThatOneIsMissing",
        "s3:ListBucket",
        bucket.bucket_arn,
        conditions={"StringLikeIfExists": {"s3:prefix": listed}},
    )


def allow_reading_registry(owner: Owner, bucket: s3.IBucket) -> None:
    """Allow reading the registry of key indexes, and finding that it is empty."""
    objects = bucket.arn_for_objects(KEY_INDEXES)
    allow(
        owner,
        "ReadWhatIsKnownOfKeyIndexes",
        "s3:GetObject",
        objects,
        wildcard="There is a folder for each table, named by its identity.",
    )
    allow(
        owner,
        "SeeThatNothingIsKnownOfAKeyIndex",
        "s3:ListBucket",
        bucket.bucket_arn,
        conditions={"StringLikeIfExists": {"s3:prefix": KEY_INDEXES}},
    )


def dynamodb_of(key: str) -> tuple[str, ...]:
    """Return KMS's names of DynamoDB in the region of a key; China has two names."""
    if Token.is_unresolved(key):  # of a construct: DynamoDB takes keys of the table's region only
        return tuple(f"dynamodb.{Aws.REGION}.{name}" for name in ("amazonaws.com", Aws.URL_SUFFIX))
    _, partition, _, region, *_ = key.split(":")
    name = f"dynamodb.{region}.amazonaws.com"
    return (name, f"{name}.cn") if partition == "aws-cn" else (name,)


def table_arn(scope: IConstruct, table: Table) -> str:
    """Return a table's ARN; a bare name is a table of the stack's account and region."""
    return table.arn or _arn_of(scope, table.name)


def table_arns(scope: IConstruct, tables: Sequence[Table]) -> list[str]:
    """Return the ARNs of tables (see `table_arn`)."""
    return [table_arn(scope, table) for table in tables]


def metadata_arns(scope: IConstruct, tables: Sequence[Table]) -> list[str]:
    """Return the ARNs of the metadata tables of sharded tables."""
    return [_arn_of(scope, table.sharding.metadata) for table in tables if table.sharding]


def _arn_of(scope: IConstruct, name: str) -> str:
    return Stack.of(scope).format_arn(service="dynamodb", resource="table", resource_name=name)


def _attributes_of_puts(table: Table) -> tuple[str, ...]:
    return table.each.attributes if table.each else ()


def _attributes(table: Table) -> tuple[str, ...]:
    """Return the attributes that requests about the table may name; none if they are not
    restricted.

    The marker is allowed for any table: a table whose key index was removed, or belongs to another
    deployment, is read with it as well, to distinguish remaining sentinels from items.
    """
    return (*table.key_attributes, MARKER) if table.key_attributes else ()


def _by_attributes(
    owner: Owner,
    tables: Sequence[Table],
    names_of: Callable[[Table], tuple[str, ...]] = _attributes,
) -> Iterator[tuple[int, list[str], dict[str, Any]]]:
    """Yield the number, the ARNs and the condition of each statement that tables can share."""
    groups = groupby(sorted(tables, key=names_of), key=names_of)
    for number, (attributes, group) in enumerate(groups, 1):
        named = {"ForAllValues:StringEquals": {"dynamodb:Attributes": [*attributes]}}
        yield number, table_arns(owner, [*group]), named if attributes else {}


def _flat(value: Any) -> str:
    """Return a resource as cdk-nag writes it in the id of a finding."""
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
    if function == "Fn::If":
        return f"<{content[0]}>"
    raise ValueError(f"cdk-nag's name of {value} is not known")
