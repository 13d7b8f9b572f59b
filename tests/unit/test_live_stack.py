"""The live suite removes its own stack and what that leaves, and nobody else's."""

from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from typing import Any

import boto3
import pytest
from botocore.exceptions import ClientError
from moto import mock_aws

from tests.live.report import Refused
from tests.live.stack import BUCKET, NAME, REVIEWED, TABLE, OwnStack
from tests.live.ways import AWS
from tests.live.workshop import TAG

FAST = replace(AWS, poll_seconds=0.0)


@dataclass
class Formation:
    """Stacks, each by what it tells of itself; a deletion takes a look, and retains everything."""

    stacks: dict[str, dict[str, Any]] = field(default_factory=dict)
    resources: list[tuple[str, str]] = field(default_factory=list)

    def create(self, suite: str, name: str = NAME, status: str = "CREATE_COMPLETE") -> None:
        tags = [{"Key": TAG, "Value": suite}] if status != REVIEWED else []
        made = {"StackName": name, "StackId": name, "StackStatus": status, "Tags": tags}
        self.stacks[name] = {**made, "CreationTime": datetime.now(UTC)}

    def describe_stacks(self, StackName: str) -> dict[str, Any]:  # noqa: N803
        if StackName not in self.stacks:
            raise ClientError({"Error": {"Code": "ValidationError"}}, "DescribeStacks")
        told = dict(self.stacks[StackName])
        following = {"CREATE_IN_PROGRESS": "CREATE_COMPLETE", "DELETE_IN_PROGRESS": "gone"}
        self.stacks[StackName]["StackStatus"] = following.get(
            told["StackStatus"], told["StackStatus"]
        )
        if self.stacks[StackName]["StackStatus"] == "gone":
            del self.stacks[StackName]
        return {"Stacks": [told]}

    def get_paginator(self, _: str) -> "Formation":
        return self

    def paginate(self, StackName: str) -> list[dict[str, Any]]:  # noqa: N803
        rows = [{"ResourceType": kind, "PhysicalResourceId": name} for kind, name in self.resources]
        return [{"StackResourceSummaries": rows}]

    def delete_stack(self, StackName: str) -> None:  # noqa: N803
        self.stacks[StackName]["StackStatus"] = "DELETE_IN_PROGRESS"


@pytest.fixture
def formation(monkeypatch: pytest.MonkeyPatch) -> Iterator[Formation]:
    """With a bucket and a table of the stack, and a bucket of somebody."""
    monkeypatch.setenv("AWS_DEFAULT_REGION", "us-east-1")
    with mock_aws():
        s3 = boto3.client("s3")
        for name in ("a-users", "the-stacks"):
            s3.create_bucket(Bucket=name)
            s3.put_object(Bucket=name, Key="runs/r/manifest.json", Body=b"{}")
        boto3.client("dynamodb").create_table(
            TableName="shards",
            KeySchema=[{"AttributeName": "pk", "KeyType": "HASH"}],
            AttributeDefinitions=[{"AttributeName": "pk", "AttributeType": "S"}],
            BillingMode="PAY_PER_REQUEST",
            DeletionProtectionEnabled=True,
        )
        yield Formation(resources=[(BUCKET, "the-stacks"), (TABLE, "shards")])


def there() -> tuple[list[str], list[str]]:
    buckets = [one["Name"] for one in boto3.client("s3").list_buckets()["Buckets"]]
    return buckets, boto3.client("dynamodb").list_tables()["TableNames"]


ALL = (["a-users", "the-stacks"], ["shards"])


def begun(formation: Formation) -> OwnStack:
    """As after a deployment that was interrupted: begun, and its resources are not known."""
    stack = OwnStack("mine", FAST, {}, formation)
    stack._began = 1.0
    return stack


@pytest.mark.parametrize("status", ["CREATE_COMPLETE", "CREATE_IN_PROGRESS", REVIEWED])
def test_its_stack_goes_with_all_that_it_retains(formation: Formation, status: str) -> None:
    formation.create("mine", status=status)
    assert begun(formation).remove() == []
    assert formation.stacks == {}
    assert there() == (["a-users"], [])


def test_a_stack_of_another_start_stays(formation: Formation) -> None:
    formation.create("theirs")
    (left,) = begun(formation).remove()
    assert left == f"stack {NAME}: it was not made by this start of the suite"
    assert NAME in formation.stacks
    assert there() == ALL


def test_what_was_not_begun_is_not_looked_for(formation: Formation) -> None:
    formation.create("mine")
    assert OwnStack("mine", FAST, {}, formation).remove() == []
    assert NAME in formation.stacks
    assert there() == ALL


def test_a_stack_of_its_name_is_refused(formation: Formation) -> None:
    formation.create("theirs")
    with pytest.raises(Refused, match=f"There is a stack {NAME} already"):
        OwnStack("mine", FAST, {}, formation).refuse_existing()


def test_an_account_without_bootstrap_is_told_what_to_do(formation: Formation) -> None:
    with pytest.raises(Refused, match="npx cdk bootstrap"):
        OwnStack("mine", FAST, {}, formation).refuse_existing()
    formation.create("the CDK's", "CDKToolkit")
    OwnStack("mine", FAST, {}, formation).refuse_existing()
