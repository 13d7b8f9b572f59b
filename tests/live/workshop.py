"""Create the suite's tables, and remove exactly those."""

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
"""The tag whose value is the id of the start that created the resource."""

READY_SECONDS = 300.0
REMOVAL_SECONDS = 2_400.0
"""A table to which an index is being added cannot be deleted for many minutes."""

DOUBT_SECONDS = 300.0
"""How long a table may lack the tag: the tags of a new table become visible a little later."""

PENDING_DAYS = 7
"""The minimum of KMS. A key that waits for its deletion is not charged."""


def remove_all(steps: Iterable[Callable[[], list[str]]]) -> list[str]:
    """Take each step, even if others fail; return what could not be removed, and why."""
    failures: list[str] = []
    for step in steps:
        try:
            failures += step()
        except Exception as error:
            failures.append(f"{type(error).__name__}: {error}")
    return failures


class Workshop:
    """The tables of one start of the suite, recognized by their tag and their identity."""

    def __init__(self, client: Any, suite: str, ways: Ways) -> None:
        self.read_units = 0.0
        self._client = client
        self._suite = suite
        self._ways = ways
        self._began = time.time() - 1.0
        # The identity of each table, by name; None while it is unknown.
        self._made: dict[str, str | None] = {}

    def refuse_existing(self, names: Iterable[str]) -> None:
        """Raise Refused if a table exists already: it may be somebody else's."""
        if existing := [name for name in names if self._describe(name) is not None]:
            raise Refused(
                f"There are tables already that this suite would make: {', '.join(existing)}. If "
                f"another start of it runs, wait for it; if one was killed, remove what it left: "
                f"make live REMOVE=ID, where ID is the value of their tag {TAG}; else choose "
                f"another TABLE_PREFIX."
            )

    def make(self, tables: list[Fixture]) -> None:
        """Create and load tables, and wait until reads show all items."""
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
        """Include tables in `remove` that something else creates, if they have the tag."""
        self._made |= dict.fromkeys(names)

    def remove(self) -> list[str]:
        """Delete the tables; return what could not be deleted, and why."""
        pending: dict[str, str] = dict.fromkeys(self._made, "it is still there")
        failures = []
        began = time.monotonic()
        while pending and (elapsed := time.monotonic() - began) < REMOVAL_SECONDS:
            time.sleep(self._ways.poll_seconds)
            for name in list(pending):
                try:
                    if self._is_gone(name):
                        del pending[name]
                except ClientError as error:
                    pending[name] = str(error)
                    if error_code(error) not in NOT_NOW:
                        failures.append(f"table {name}: {pending.pop(name)}")
                except Refused as error:
                    pending[name] = str(error)
                    if elapsed > DOUBT_SECONDS:
                        failures.append(f"table {name}: {pending.pop(name)}")
                except BotoCoreError as error:
                    pending[name] = str(error)
        failures += [f"table {name}: {why}" for name, why in pending.items()]
        return failures

    def _create(self, table: Fixture) -> None:
        self._made[table.name] = None
        try:
            details = self._client.create_table(**definition(table, self._suite))[
                "TableDescription"
            ]
        except self._client.exceptions.ResourceInUseException as error:
            # Either somebody else created it, or our own first attempt did and its answer was lost.
            existing = self._describe(table.name)
            if existing is None or not self._has_our_tag(existing):
                del self._made[table.name]
                raise Refused(f"Table {table.name} was made by somebody else just now.") from error
            details = existing
        self._made[table.name] = _identity(details)

    def _wait_until_ready(self, table: Fixture) -> None:
        deadline = time.monotonic() + READY_SECONDS
        while time.monotonic() < deadline:
            details = self._describe(table.name)
            indexes = (details or {}).get("GlobalSecondaryIndexes", ())
            statuses = [(details or {}).get("TableStatus"), *(i["IndexStatus"] for i in indexes)]
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
        arguments = {} if index is None else {"IndexName": index}
        count = 0
        start: dict[str, Any] = {}
        while True:
            page = self._client.scan(
                TableName=name, Select="COUNT", ReturnConsumedCapacity="TOTAL", **start, **arguments
            )
            count += page["Count"]
            self.read_units += max(UNITS_PER_BLOCK, page["ConsumedCapacity"]["CapacityUnits"])
            if "LastEvaluatedKey" not in page:
                return count
            start = {"ExclusiveStartKey": page["LastEvaluatedKey"]}

    def _is_gone(self, name: str) -> bool:
        """Return whether a table is gone; if not, delete it, or raise Refused if it is not ours."""
        details = self._describe(name)
        if details is None:
            return True
        identity = self._made[name]
        ours = self._has_our_tag(details) if identity is None else _identity(details) == identity
        if not ours:
            raise Refused("it was not made by this start of the suite")
        if details["TableStatus"] == "ACTIVE":
            if details.get("DeletionProtectionEnabled"):
                self._client.update_table(TableName=name, DeletionProtectionEnabled=False)
            else:
                self._client.delete_table(TableName=name)
        return False

    def _has_our_tag(self, details: dict[str, Any]) -> bool:
        if not self._ways.keeps_tags:
            # Only on a laptop. No table had that name before this start of the suite.
            return bool(details["CreationDateTime"].timestamp() >= self._began)
        tags = self._client.list_tags_of_resource(ResourceArn=details["TableArn"])["Tags"]
        return {"Key": TAG, "Value": self._suite} in tags

    def _describe(self, name: str) -> dict[str, Any] | None:
        try:
            return dict(self._client.describe_table(TableName=name)["Table"])
        except self._client.exceptions.ResourceNotFoundException:
            return None


def definition(table: Fixture, suite: str) -> dict[str, Any]:
    """Return the arguments of CreateTable."""
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
    """Return what distinguishes a table from others with its name, as Keyhop does."""
    return str(description.get("TableId") or description["CreationDateTime"])


class OwnKey:
    """A customer-managed key for one table, tagged, and deleted when the suite ends."""

    def __init__(self, suite: str) -> None:
        self._suite = suite
        self._client: Any = None
        self.arn: str | None = None

    def make(self) -> str:
        """Create the key with the default policy of KMS, which leaves access to IAM."""
        self._client = boto3.client("kms")
        response = self._client.create_key(
            Description="Keyhop's live suite: of one table, for an hour",
            Tags=[{"TagKey": TAG, "TagValue": self._suite}],
        )
        self.arn = str(response["KeyMetadata"]["Arn"])
        return self.arn

    def remove(self) -> list[str]:
        """Schedule the key's deletion; return what could not be removed, and why."""
        if self._client is None:
            return []
        # If CreateKey was not answered, only the tag identifies the key.
        arns = [self.arn] if self.arn else [a for a in tagged(self._suite) if ":kms:" in a]
        return [why for arn in arns for why in remove_key(arn)]


def remove_key(arn: str) -> list[str]:
    """Schedule the deletion of a key, unless it is scheduled already; return errors."""
    client = boto3.client("kms")
    try:
        if client.describe_key(KeyId=arn)["KeyMetadata"]["KeyState"] != "PendingDeletion":
            client.schedule_key_deletion(KeyId=arn, PendingWindowInDays=PENDING_DAYS)
    except (BotoCoreError, ClientError) as error:
        return [f"key {arn}: {error}"]
    return []


def tagged(suite: str) -> list[str]:
    """Return the ARNs of all resources with the tag of a start, also of some deleted ones."""
    pages = boto3.client("resourcegroupstaggingapi").get_paginator("get_resources")
    filters = [{"Key": TAG, "Values": [suite]}]
    arns = pages.paginate(TagFilters=filters).search("ResourceTagMappingList[].ResourceARN")
    return sorted(arn for arn in arns if arn)
