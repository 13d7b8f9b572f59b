"""A stack of the suite's own: deployed and destroyed by the CDK's command line, as a user does it.

What is left after that is removed by the services' own calls, and only what the stack listed as its
own resources before.
"""

import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

import boto3
from botocore.exceptions import BotoCoreError, ClientError

from local.cloud import CDK
from testing.servers import ROOT
from tests.live.report import Differs, Refused, say
from tests.live.ways import Ways
from tests.live.workshop import TAG

NAME = "KeyhopLive"
ENCLOSED = "KeyhopLiveVpc"
"""The stack of vpc_app.py."""
READER = "KeyhopLiveReader"
"""The stack of reader_app.py."""
STACKS = (ENCLOSED, READER, NAME)
"""All stacks of a start, in the order of their removal."""
DEPLOY_SECONDS = 3_600
CHANGE_SECONDS = 3_600.0
"""A function in a VPC is deleted after up to forty minutes."""

REMOVALS = 2
"""Attempts to delete a stack: what was in use at the first one may be free at the second."""

SKEW_SECONDS = 300.0
"""How far the clock here may be ahead of AWS's: if it is further, AWS refuses the signatures."""

GONE = "DELETE_COMPLETE"
REVIEWED = "REVIEW_IN_PROGRESS"
"""Of a stack whose change set was made and not executed: nothing goes on."""

BUCKET, TABLE, LOGS = "AWS::S3::Bucket", "AWS::DynamoDB::Table", "AWS::Logs::LogGroup"
NOTHING = "AWS::CDK::Metadata"
"""The type of an entry in the template by which the CDK counts its stacks; no resource of AWS."""

QUIET = {
    "JSII_SILENCE_WARNING_DEPRECATED_NODE_VERSION": "1",
    "JSII_SILENCE_WARNING_END_OF_LIFE_NODE_VERSION": "1",
}


class OwnStack:
    """A stack of one start of the suite. formation: boto3's client. app: the module of another
    CDK app than the project's.
    """

    def __init__(
        self,
        suite: str,
        ways: Ways,
        context: Mapping[str, str],
        formation: Any = None,
        name: str = NAME,
        app: str | None = None,
    ) -> None:
        self.name = name
        self._suite = suite
        self._ways = ways
        self._app = ("--app", f"{sys.executable} -m {app}") if app else ()
        self._context = {"stackName": name, **context}
        self._formation = formation or boto3.client("cloudformation")
        self._resources: set[tuple[str, str]] = set()
        self._began = 0.0
        self._folder = tempfile.TemporaryDirectory(prefix="keyhop-live-")

    def refuse_existing(self) -> None:
        """Raises Refused if there is a stack of that name, or the account is not bootstrapped."""
        if not CDK.exists():
            raise Refused("The CDK's command line is not set up: run make setup.")
        if (found := self._find()) is not None:
            raise Refused(
                f"There is a stack {self.name} already ({found['StackStatus']}): if another "
                f"start of the suite runs, wait for it; if one was killed, {removing(found)}."
            )
        if self._find("CDKToolkit") is None:
            raise Refused("The CDK has nothing in this account and region: npx cdk bootstrap")

    def deploy(self, *flags: str, **context: str) -> dict[str, str]:
        """`npx cdk deploy`, with some of the context otherwise; returns the outputs. Raises Differs
        with the end of its words.
        """
        self._began = self._began or time.time() - SKEW_SECONDS
        written = Path(self._folder.name) / "outputs.json"
        given = {**self._context, **context}
        self._cdk(
            *("deploy", *self._app, "--output", str(self._assembly)),
            *("--require-approval", "never", "--outputs-file", str(written)),
            *("--tags", f"{TAG}={self._suite}", *flags),
            *(part for name, value in given.items() for part in ("-c", f"{name}={value}")),
        )
        self._note_resources()
        (outputs,) = json.loads(written.read_text()).values()
        return dict(outputs)

    def destroy(self) -> list[str]:
        """`npx cdk destroy`, of what was deployed; returns what of its resources is still there."""
        self._note_resources()
        self._cdk("destroy", "--force", "--app", str(self._assembly))
        found = self._find()
        if found is not None and found["StackStatus"] != GONE:
            raise Differs(f"the stack is {found['StackStatus']} after cdk destroy")
        return sorted(name for kind, name in self._resources if self._is_there(kind, name))

    def adopt(self) -> bool:
        """Take over a stack that another process has made; returns whether one has this tag."""
        found = self._find()
        if found is None or {"Key": TAG, "Value": self._suite} not in found["Tags"]:
            return False
        self._began = found["CreationTime"].timestamp()
        return True

    def adopt_resources(self, resources: Iterable[tuple[str, str]]) -> None:
        """Take over what an earlier stack has left: the type of each resource, and its name."""
        self._resources.update(resources)

    def deleted_resources(self) -> list[str]:
        """Return the resources of the stack that are deleted, by their logical ids."""
        return [
            one["LogicalResourceId"]
            for one in self._list_resources()
            if one["ResourceStatus"] == GONE and one["ResourceType"] != NOTHING
        ]

    def why_no_update(self) -> str:
        """Try an update that changes nothing; returns why CloudFormation refuses it."""
        found = self._find() or {}
        parameters = [
            {"ParameterKey": one["ParameterKey"], "UsePreviousValue": True}
            for one in found.get("Parameters", ())
        ]
        try:
            self._formation.update_stack(
                StackName=self.name,
                UsePreviousTemplate=True,
                Parameters=parameters,
                Capabilities=["CAPABILITY_IAM", "CAPABILITY_NAMED_IAM"],
            )
        except ClientError as error:
            return str(error)
        raise Differs("an update was begun")

    def status(self) -> str:
        """As CloudFormation calls it."""
        found = self._find()
        return "there is no stack" if found is None else str(found["StackStatus"])

    def remove(self) -> list[str]:
        """Whatever is there; returns what could not be removed, and why."""
        if not self._began:
            return []
        left = []
        try:
            self._remove_stack()
        except (BotoCoreError, ClientError, Differs) as error:
            left.append(f"stack {self.name}: {error}")
        left += self.remove_left_over()
        self._folder.cleanup()
        return left

    def remove_left_over(self) -> list[str]:
        """What the stack's deletion leaves; returns what could not be removed, and why."""
        left = []
        for kind, name in sorted(self._resources):
            try:
                self._remove_resource(kind, name)
            except (BotoCoreError, ClientError) as error:
                left.append(f"{kind} {name}: {error}")
        return left

    def _remove_stack(self) -> None:
        found = self._wait_for_its_end()
        if found is None or found["StackStatus"] == GONE:
            return
        if not self._is_ours(found):
            raise Differs("it was not made by this start of the suite")
        self._note_resources()
        for _ in range(REMOVALS):
            self._empty_buckets()  # with the records of key indexes, for which it would refuse
            self._formation.delete_stack(StackName=found["StackId"])
            time.sleep(self._ways.poll_seconds)
            left = self._wait_for_its_end()
            if left is None or left["StackStatus"] == GONE:
                return
        raise Differs(f"it is {left['StackStatus']}: {left.get('StackStatusReason')}")

    def _is_ours(self, found: dict[str, Any]) -> bool:
        """By its tag; one that is only reviewed, as cdk was interrupted, may have none: before this
        start there was no stack of that name."""
        if found["StackStatus"] == REVIEWED or not self._ways.keeps_tags:
            return bool(found["CreationTime"].timestamp() >= self._began)
        return {"Key": TAG, "Value": self._suite} in found["Tags"]

    def _wait_for_its_end(self) -> dict[str, Any] | None:
        """Of a change that is under way; an interrupted cdk leaves it to CloudFormation."""
        deadline = time.monotonic() + CHANGE_SECONDS
        while (found := self._find()) and _is_changing(found["StackStatus"]):
            if time.monotonic() > deadline:
                raise Differs(f"it is {found['StackStatus']} for {CHANGE_SECONDS:g} seconds")
            time.sleep(self._ways.poll_seconds)
        return found

    def _note_resources(self) -> None:
        if self._find() is None:
            return
        for one in self._list_resources():
            kind, name = one["ResourceType"], one.get("PhysicalResourceId")
            if name and kind in (BUCKET, TABLE, LOGS):
                self._resources.add((kind, name))

    def _list_resources(self) -> list[dict[str, Any]]:
        pages = self._formation.get_paginator("list_stack_resources").paginate(StackName=self.name)
        return [one for page in pages for one in page["StackResourceSummaries"]]

    def _empty_buckets(self) -> None:
        for kind, name in self._resources:
            if kind == BUCKET and self._is_there(kind, name):
                _empty(name)

    def _is_there(self, kind: str, name: str) -> bool:
        looks = {
            BUCKET: ("s3", "head_bucket", {"Bucket": name}),
            TABLE: ("dynamodb", "describe_table", {"TableName": name}),
            LOGS: ("logs", "describe_log_groups", {"logGroupNamePrefix": name}),
        }
        service, operation, given = looks[kind]
        if kind == TABLE and not self._ways.stack_makes_tables:
            return False
        try:
            told = getattr(boto3.client(service), operation)(**given)
        except ClientError as error:
            if error.response["Error"]["Code"] in (
                "404",
                "NoSuchBucket",
                "ResourceNotFoundException",
            ):
                return False
            raise
        return kind != LOGS or any(one["logGroupName"] == name for one in told["logGroups"])

    def _remove_resource(self, kind: str, name: str) -> None:
        if not self._is_there(kind, name):
            return
        if kind == BUCKET:
            _empty(name)  # runs may have written after the stack was deleted
            boto3.client("s3").delete_bucket(Bucket=name)
        elif kind == LOGS:
            boto3.client("logs").delete_log_group(logGroupName=name)
        else:
            dynamodb = boto3.client("dynamodb")
            if dynamodb.describe_table(TableName=name)["Table"].get("DeletionProtectionEnabled"):
                dynamodb.update_table(TableName=name, DeletionProtectionEnabled=False)
            dynamodb.get_waiter("table_exists").wait(TableName=name)
            dynamodb.delete_table(TableName=name)
            dynamodb.get_waiter("table_not_exists").wait(TableName=name)

    def _find(self, name: str | None = None) -> dict[str, Any] | None:
        try:
            (found,) = self._formation.describe_stacks(StackName=name or self.name)["Stacks"]
        except ClientError as error:
            if error.response["Error"]["Code"] != "ValidationError":
                raise
            return None
        return None if found["StackStatus"] == GONE else dict(found)

    @property
    def _assembly(self) -> Path:
        return Path(self._folder.name) / "cdk.out"

    def _cdk(self, *arguments: str) -> None:
        say(f"  npx cdk {arguments[0]} {self.name} ...")
        # A group of its own: Ctrl-C is answered here, and not by a half of its processes.
        running = subprocess.Popen(
            [str(CDK), *arguments, "--no-notices"],
            cwd=ROOT,
            env={**os.environ, **QUIET},
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            start_new_session=True,
        )
        try:
            said, _ = running.communicate(timeout=DEPLOY_SECONDS)
        except BaseException:
            running.terminate()
            running.communicate()
            raise
        if running.returncode:
            end = "\n".join(said.strip().splitlines()[-15:])
            raise Differs(f"cdk {arguments[0]} ended with {running.returncode}:\n{end}")


def removing(found: Mapping[str, Any]) -> str:
    """Return how to remove a stack that a killed start has left, by the id in its tag."""
    suite = next((tag["Value"] for tag in found.get("Tags", ()) if tag["Key"] == TAG), None)
    return f"remove what it left: make live REMOVE={suite}" if suite else "delete the stack"


def _empty(bucket: str) -> None:
    s3 = boto3.client("s3")
    for page in s3.get_paginator("list_objects_v2").paginate(Bucket=bucket):
        keys = [{"Key": entry["Key"]} for entry in page.get("Contents", ())]
        if keys:
            s3.delete_objects(Bucket=bucket, Delete={"Objects": keys, "Quiet": True})


def _is_changing(status: str) -> bool:
    return status.endswith("_IN_PROGRESS") and status != REVIEWED
