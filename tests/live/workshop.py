"""Makes the suite's tables, and removes exactly those."""

import time
from collections.abc import Callable, Iterable
from typing import Any

import boto3
from botocore.exceptions import BotoCoreError, ClientError
from keyhop.dynamodb.refusals import error_code
from keyhop.dynamodb.tables import NOT_NOW
from keyhop.dynamodb.units import UNITS_PER_BLOCK

from testing.databases import load
from tests.live.fixtures import INDEX, Fixture
from tests.live.report import Refused
from tests.live.ways import Ways

TAG = "keyhop-live"
"""Its value is the id of the suite's start that made the table."""

READY_SECONDS = 300.0
REMOVAL_SECONDS = 2_400.0
"""A table to which an index is being added cannot be deleted for many minutes."""

DOUBT_SECONDS = 300.0
"""Until a table without the tag is another's: a new table's tags are seen a little later."""

PENDING_DAYS = 7
"""The least that KMS allows; a key that waits for its deletion is not charged."""


def remove_all(steps: Iterable[Callable[[], list[str]]]) -> list[str]:
    """Take each step, whatever becomes of the others; returns what was not removed, and why."""
    left: list[str] = []
    for step in steps:
        try:
            left += step()
        except Exception as error:
            left.append(f"{type(error).__name__}: {error}")
    return left


class Workshop:
    """The tables of one start of the suite, told from all others by tag and identity."""

    def __init__(self, client: Any, suite: str, ways: Ways) -> None:
        self.read_units = 0.0
        self._client = client
        self._suite = suite
        self._ways = ways
        self._began = time.time() - 1.0
        # By name, what tells a table from others of that name; None while that is not known.
        self._made: dict[str, str | None] = {}

    def refuse_existing(self, names: Iterable[str]) -> None:
        """Raises Refused if a table is there already: it may be somebody's."""
        there = [name for name in names if self._describe(name) is not None]
        if there:
            raise Refused(
                f"There are tables already that this suite would make: {', '.join(there)}. If "
                f"another start of it runs, wait for it; if one was killed, remove what it left: "
                f"make live REMOVE=ID, where ID is the value of their tag {TAG}; else choose "
                f"another TABLE_PREFIX."
            )

    def make(self, tables: list[Fixture]) -> None:
        """Create, load, and wait until reads see all of it."""
        for table in tables:
            self._create(table)
            if table.indexes:  # DynamoDB creates one table with indexes at a time
                self._wait_until_ready(table)
        for table in tables:
            self._wait_until_ready(table)
            load(self._client, table.items, table.name)
        time.sleep(self._ways.settle_seconds)
        for table in tables:
            self._wait_until_visible(table)

    def expect(self, names: Iterable[str]) -> None:
        """Remove these too, which others will make, if they have the tag."""
        self._made |= dict.fromkeys(names)

    def remove(self) -> list[str]:
        """Delete what was made; returns what could not be, and why."""
        waiting: dict[str, str] = dict.fromkeys(self._made, "it is still there")
        left = []
        began = time.monotonic()
        while waiting and (passed := time.monotonic() - began) < REMOVAL_SECONDS:
            time.sleep(self._ways.poll_seconds)
            for name in list(waiting):
                try:
                    if self._is_gone(name):
                        del waiting[name]
                except ClientError as error:
                    waiting[name] = str(error)
                    if error_code(error) not in NOT_NOW:
                        left.append(f"table {name}: {waiting.pop(name)}")
                except Refused as error:
                    waiting[name] = str(error)
                    if passed > DOUBT_SECONDS:
                        left.append(f"table {name}: {waiting.pop(name)}")
                except BotoCoreError as error:
                    waiting[name] = str(error)
        left += [f"table {name}: {why}" for name, why in waiting.items()]
        return left

    def _create(self, table: Fixture) -> None:
        self._made[table.name] = None
        try:
            made = self._client.create_table(**definition(table, self._suite))["TableDescription"]
        except self._client.exceptions.ResourceInUseException as error:
            # Somebody was quicker; or it was ourselves, and the answer to a first attempt was lost.
            found = self._describe(table.name)
            if found is None or not self._has_our_tag(found):
                del self._made[table.name]
                raise Refused(f"Table {table.name} was made by somebody else just now.") from error
            made = found
        self._made[table.name] = _identity(made)

    def _wait_until_ready(self, table: Fixture) -> None:
        deadline = time.monotonic() + READY_SECONDS
        while time.monotonic() < deadline:
            found = self._describe(table.name)
            indexes = (found or {}).get("GlobalSecondaryIndexes", ())
            statuses = [(found or {}).get("TableStatus"), *(i["IndexStatus"] for i in indexes)]
            if set(statuses) == {"ACTIVE"}:
                return
            time.sleep(self._ways.poll_seconds)
        raise Refused(f"Table {table.name} was not ready after {READY_SECONDS:g} seconds.")

    def _wait_until_visible(self, table: Fixture) -> None:
        deadline = time.monotonic() + READY_SECONDS
        indexes = [None, INDEX] if table.has_index else [None]
        while time.monotonic() < deadline:
            if all(self._count(table.name, index) == len(table.items) for index in indexes):
                return
            time.sleep(self._ways.poll_seconds)
        raise Refused(
            f"Scans did not find all {len(table.items)} items of {table.name} after "
            f"{READY_SECONDS:g} seconds."
        )

    def _count(self, name: str, index: str | None) -> int:
        more = {} if index is None else {"IndexName": index}
        counted = 0
        start: dict[str, Any] = {}
        while True:
            page = self._client.scan(
                TableName=name, Select="COUNT", ReturnConsumedCapacity="TOTAL", **start, **more
            )
            counted += page["Count"]
            self.read_units += max(UNITS_PER_BLOCK, page["ConsumedCapacity"]["CapacityUnits"])
            if "LastEvaluatedKey" not in page:
                return counted
            start = {"ExclusiveStartKey": page["LastEvaluatedKey"]}

    def _is_gone(self, name: str) -> bool:
        """One step towards it; raises Refused if it is another's."""
        found = self._describe(name)
        if found is None:
            return True
        identity = self._made[name]
        ours = self._has_our_tag(found) if identity is None else _identity(found) == identity
        if not ours:
            raise Refused("it was not made by this start of the suite")
        if found["TableStatus"] == "ACTIVE":
            if found.get("DeletionProtectionEnabled"):
                self._client.update_table(TableName=name, DeletionProtectionEnabled=False)
            else:
                self._client.delete_table(TableName=name)
        return False

    def _has_our_tag(self, found: dict[str, Any]) -> bool:
        if not self._ways.keeps_tags:
            # Only on a laptop. Nothing of that name was there before this start of the suite.
            return bool(found["CreationDateTime"].timestamp() >= self._began)
        tags = self._client.list_tags_of_resource(ResourceArn=found["TableArn"])["Tags"]
        return {"Key": TAG, "Value": self._suite} in tags

    def _describe(self, name: str) -> dict[str, Any] | None:
        try:
            return dict(self._client.describe_table(TableName=name)["Table"])
        except self._client.exceptions.ResourceNotFoundException:
            return None


def definition(table: Fixture, suite: str) -> dict[str, Any]:
    """What CreateTable takes."""
    types = {"pk": table.partition}
    keys = [{"AttributeName": "pk", "KeyType": "HASH"}]
    if table.sort is not None:
        types["sk"] = table.sort
        keys.append({"AttributeName": "sk", "KeyType": "RANGE"})
    more: dict[str, Any] = {}
    if table.indexes:
        types |= dict.fromkeys(table.indexes.values(), "S")
        more["GlobalSecondaryIndexes"] = [index(*pair) for pair in table.indexes.items()]
    more["BillingMode"] = "PAY_PER_REQUEST"
    if table.capacity:
        units = {"ReadCapacityUnits": table.capacity, "WriteCapacityUnits": table.capacity}
        more |= {"BillingMode": "PROVISIONED", "ProvisionedThroughput": units}
    if table.streams:
        more["StreamSpecification"] = {"StreamEnabled": True, "StreamViewType": "NEW_IMAGE"}
    if table.key:
        more["SSESpecification"] = {"Enabled": True, "SSEType": "KMS", "KMSMasterKeyId": table.key}
    return {
        "TableName": table.name,
        "KeySchema": keys,
        "AttributeDefinitions": [
            {"AttributeName": name, "AttributeType": type_} for name, type_ in types.items()
        ],
        "Tags": [{"Key": TAG, "Value": suite}],
        **more,
    }


def index(name: str, attribute: str) -> dict[str, Any]:
    """Return the definition of an index whose partition key is an attribute."""
    return {
        "IndexName": name,
        "KeySchema": [{"AttributeName": attribute, "KeyType": "HASH"}],
        "Projection": {"ProjectionType": "KEYS_ONLY"},
    }


def _identity(description: dict[str, Any]) -> str:
    """As Keyhop tells tables of one name apart."""
    return str(description.get("TableId") or description["CreationDateTime"])


class OwnKey:
    """A customer-managed key for one table, tagged, that goes when the suite ends."""

    def __init__(self, suite: str) -> None:
        self._suite = suite
        self._client: Any = None
        self.arn: str | None = None

    def make(self) -> str:
        """Create it; its policy is KMS's default, by which IAM decides."""
        self._client = boto3.client("kms")
        made = self._client.create_key(
            Description="Keyhop's live suite: of one table, for an hour",
            Tags=[{"TagKey": TAG, "TagValue": self._suite}],
        )
        self.arn = str(made["KeyMetadata"]["Arn"])
        return self.arn

    def remove(self) -> list[str]:
        """Have it deleted; returns what could not be removed, and why."""
        if self._client is None:
            return []
        # Without an answer to CreateKey only its tag tells which it is.
        arns = [self.arn] if self.arn else [a for a in tagged(self._suite) if ":kms:" in a]
        return [why for arn in arns for why in remove_key(arn)]


def remove_key(arn: str) -> list[str]:
    """Schedule the deletion of a key, unless that is done; returns why it failed, if it did."""
    client = boto3.client("kms")
    try:
        if client.describe_key(KeyId=arn)["KeyMetadata"]["KeyState"] != "PendingDeletion":
            client.schedule_key_deletion(KeyId=arn, PendingWindowInDays=PENDING_DAYS)
    except (BotoCoreError, ClientError) as error:
        return [f"key {arn}: {error}"]
    return []


def tagged(suite: str) -> list[str]:
    """Return the ARNs of everything with the tag of a start. Deleted ones remain for a while."""
    pages = boto3.client("resourcegroupstaggingapi").get_paginator("get_resources")
    filters = [{"Key": TAG, "Values": [suite]}]
    found = pages.paginate(TagFilters=filters).search("ResourceTagMappingList[].ResourceARN")
    return sorted(arn for arn in found if arn)
