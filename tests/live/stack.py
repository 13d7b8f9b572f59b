"""A stack of the suite, deployed and destroyed by the CDK's command line, as a user does it.

Resources that remain after that are removed by API calls, if the stack listed them before.
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
from keyhop.dynamodb.refusals import error_code

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
"""The stacks of a start, in the order of their removal."""
DEPLOY_SECONDS = 3_600
CHANGE_SECONDS = 3_600.0
"""The limit for a change. A function in a VPC is deleted after up to forty minutes."""

REMOVALS = 2
"""The attempts to delete a stack. A resource in use at the first one may be free at the second."""

SKEW_SECONDS = 300.0
"""The maximum difference to AWS's clock: AWS refuses signatures if it is greater."""

GONE = "DELETE_COMPLETE"
REVIEWED = "REVIEW_IN_PROGRESS"
"""The status of a stack whose change set was created and not executed. Nothing is in progress."""

BUCKET, TABLE, LOGS = "AWS::S3::Bucket", "AWS::DynamoDB::Table", "AWS::Logs::LogGroup"
NOTHING = "AWS::CDK::Metadata"
"""The type of an entry in the template with which the CDK counts its stacks, not of a resource."""

QUIET = {
    "JSII_SILENCE_WARNING_DEPRECATED_NODE_VERSION": "1",
    "JSII_SILENCE_WARNING_END_OF_LIFE_NODE_VERSION": "1",
}


class OwnStack:
    """A stack of one start of the suite. `formation` is the client of CloudFormation; `app` is the
    module of a CDK app, if it is not the project's.
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
        """Raise Refused if a stack has the name, or the account is not bootstrapped."""
        if not CDK.exists():
            raise Refused("The CDK's command line is not set up: run make setup.")
        if (stack := self._find()) is not None:
            raise Refused(
                f"There is a stack {self.name} already ({stack['StackStatus']}): if another "
                f"start of the suite runs, wait for it; if one was killed, {removing(stack)}."
            )
        if self._find("CDKToolkit") is None:
            raise Refused("The CDK has nothing in this account and region: npx cdk bootstrap")

    def deploy(self, *flags: str, **context: str) -> dict[str, str]:
        """Run `npx cdk deploy` with more or other context; return the outputs, or raise Differs."""
        self._began = self._began or time.time() - SKEW_SECONDS
        output_file = Path(self._folder.name) / "outputs.json"
        merged = {**self._context, **context}
        self._cdk(
            *("deploy", *self._app, "--output", str(self._assembly)),
            *("--require-approval", "never", "--outputs-file", str(output_file)),
            *("--tags", f"{TAG}={self._suite}", *flags),
            *(part for name, value in merged.items() for part in ("-c", f"{name}={value}")),
        )
        self._record_resources()
        (outputs,) = json.loads(output_file.read_text()).values()
        return dict(outputs)

    def destroy(self) -> list[str]:
        """Run `npx cdk destroy`, and return the remaining resources."""
        self._record_resources()
        self._cdk("destroy", "--force", "--app", str(self._assembly))
        stack = self._find()
        if stack is not None and stack["StackStatus"] != GONE:
            raise Differs(f"the stack is {stack['StackStatus']} after cdk destroy")
        return sorted(name for kind, name in self._resources if self._exists(kind, name))

    def adopt(self) -> bool:
        """Take over the stack of another process with this tag; return whether there is one."""
        stack = self._find()
        if stack is None or {"Key": TAG, "Value": self._suite} not in stack["Tags"]:
            return False
        self._began = stack["CreationTime"].timestamp()
        return True

    def adopt_resources(self, resources: Iterable[tuple[str, str]]) -> None:
        """Take over the types and names of resources that remain from an earlier stack."""
        self._resources.update(resources)

    def deleted_resources(self) -> list[str]:
        """Return the logical ids of the stack's deleted resources."""
        return [
            resource["LogicalResourceId"]
            for resource in self._list_resources()
            if resource["ResourceStatus"] == GONE and resource["ResourceType"] != NOTHING
        ]

    def why_no_update(self) -> str:
        """Try an update without changes, and return the error with which CloudFormation refuses."""
        parameters = [
            {"ParameterKey": parameter["ParameterKey"], "UsePreviousValue": True}
            for parameter in (self._find() or {}).get("Parameters", ())
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
        """Return the stack's status in CloudFormation."""
        stack = self._find()
        return "there is no stack" if stack is None else str(stack["StackStatus"])

    def remove(self) -> list[str]:
        """Remove the stack and its resources; return what could not be removed, and why."""
        if not self._began:
            return []
        failures = []
        try:
            self._remove_stack()
        except (BotoCoreError, ClientError, Differs) as error:
            failures.append(f"stack {self.name}: {error}")
        failures += self.remove_left_over()
        self._folder.cleanup()
        return failures

    def remove_left_over(self) -> list[str]:
        """Remove what remains after the stack; return what could not be removed, and why."""
        failures = []
        for kind, name in sorted(self._resources):
            try:
                self._remove_resource(kind, name)
            except (BotoCoreError, ClientError) as error:
                failures.append(f"{kind} {name}: {error}")
        return failures

    def _remove_stack(self) -> None:
        stack = self._wait_for_change()
        if stack is None or stack["StackStatus"] == GONE:
            return
        if not self._is_ours(stack):
            raise Differs("it was not made by this start of the suite")
        stack_id = stack["StackId"]
        self._record_resources()
        for _ in range(REMOVALS):
            self._empty_buckets()  # a stack whose bucket records key indexes refuses its deletion
            self._formation.delete_stack(StackName=stack_id)
            time.sleep(self._ways.poll_seconds)
            stack = self._wait_for_change()
            if stack is None or stack["StackStatus"] == GONE:
                return
        raise Differs(f"it is {stack['StackStatus']}: {stack.get('StackStatusReason')}")

    def _is_ours(self, stack: dict[str, Any]) -> bool:
        """Return whether the stack has the tag. If cdk was interrupted at the change set, it may
        have no tag; then it counts that no stack had the name before this start.
        """
        if stack["StackStatus"] == REVIEWED or not self._ways.keeps_tags:
            return bool(stack["CreationTime"].timestamp() >= self._began)
        return {"Key": TAG, "Value": self._suite} in stack["Tags"]

    def _wait_for_change(self) -> dict[str, Any] | None:
        """Wait for the end of a change, as after an interruption of cdk; return the stack."""
        deadline = time.monotonic() + CHANGE_SECONDS
        while (stack := self._find()) and _is_changing(stack["StackStatus"]):
            if time.monotonic() > deadline:
                raise Differs(f"it is {stack['StackStatus']} for {CHANGE_SECONDS:g} seconds")
            time.sleep(self._ways.poll_seconds)
        return stack

    def _record_resources(self) -> None:
        if self._find() is None:
            return
        for resource in self._list_resources():
            kind, name = resource["ResourceType"], resource.get("PhysicalResourceId")
            if name and kind in (BUCKET, TABLE, LOGS):
                self._resources.add((kind, name))

    def _list_resources(self) -> list[dict[str, Any]]:
        pages = self._formation.get_paginator("list_stack_resources").paginate(StackName=self.name)
        return [resource for page in pages for resource in page["StackResourceSummaries"]]

    def _empty_buckets(self) -> None:
        for kind, name in self._resources:
            if kind == BUCKET and self._exists(kind, name):
                _empty(name)

    def _exists(self, kind: str, name: str) -> bool:
        calls = {
            BUCKET: ("s3", "head_bucket", {"Bucket": name}),
            TABLE: ("dynamodb", "describe_table", {"TableName": name}),
            LOGS: ("logs", "describe_log_groups", {"logGroupNamePrefix": name}),
        }
        service, operation, arguments = calls[kind]
        if kind == TABLE and not self._ways.stack_makes_tables:
            return False
        try:
            response = getattr(boto3.client(service), operation)(**arguments)
        except ClientError as error:
            if error_code(error) in ("404", "NoSuchBucket", "ResourceNotFoundException"):
                return False
            raise
        return kind != LOGS or name in {group["logGroupName"] for group in response["logGroups"]}

    def _remove_resource(self, kind: str, name: str) -> None:
        if not self._exists(kind, name):
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
            (stack,) = self._formation.describe_stacks(StackName=name or self.name)["Stacks"]
        except ClientError as error:
            if error_code(error) != "ValidationError":
                raise
            return None
        return None if stack["StackStatus"] == GONE else dict(stack)

    @property
    def _assembly(self) -> Path:
        return Path(self._folder.name) / "cdk.out"

    def _cdk(self, *arguments: str) -> None:
        say(f"  npx cdk {arguments[0]} {self.name} ...")
        # In a new session, Ctrl-C reaches only this process, and not some of cdk's processes.
        process = subprocess.Popen(
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
            output, _ = process.communicate(timeout=DEPLOY_SECONDS)
        except BaseException:
            process.terminate()
            process.communicate()
            raise
        if process.returncode:
            end = "\n".join(output.strip().splitlines()[-15:])
            raise Differs(f"cdk {arguments[0]} ended with {process.returncode}:\n{end}")


def removing(stack: Mapping[str, Any]) -> str:
    """Return how to remove a stack that a killed start has left, by the id in its tag."""
    suite = next((tag["Value"] for tag in stack.get("Tags", ()) if tag["Key"] == TAG), None)
    return f"remove what it left: make live REMOVE={suite}" if suite else "delete the stack"


def _empty(bucket: str) -> None:
    s3 = boto3.client("s3")
    for page in s3.get_paginator("list_objects_v2").paginate(Bucket=bucket):
        keys = [{"Key": entry["Key"]} for entry in page.get("Contents", ())]
        if keys:
            s3.delete_objects(Bucket=bucket, Delete={"Objects": keys, "Quiet": True})


def _is_changing(status: str) -> bool:
    return status.endswith("_IN_PROGRESS") and status != REVIEWED
