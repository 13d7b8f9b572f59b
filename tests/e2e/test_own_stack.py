"""Deploy the constructs in a user's stack, and the template without the CDK.

Their tables are in the emulator's database, because these stacks have no setting for a laptop.
"""

import json
import shutil
import sys
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from infra import template
from local.cloud import Cloud, laptop_cloud
from testing.executions import Executions
from testing.package import installed_in, wheel_in
from testing.servers import ROOT

CUSTOMERS = {f"customer-{number}" for number in range(30)}


@pytest.fixture(scope="module")
def cloud() -> Iterator[Cloud]:
    """A separate cloud, because the functions of the other tests' stack have the same names."""
    with laptop_cloud() as cloud:
        yield cloud


def fill(dynamodb: Any, table: str) -> None:
    """Put three orders of each customer."""
    for customer in sorted(CUSTOMERS):
        for order in ("1", "2", "3"):
            dynamodb.put_item(
                TableName=table, Item={"customer": {"S": customer}, "order": {"S": order}}
            )


def list_keys(cloud: Cloud, outputs: dict[str, str], table: str) -> list[str]:
    """List the keys of a table by an execution."""
    executions = Executions(cloud.client, outputs["StateMachineArn"], outputs["ResultsBucketName"])
    run = executions.follow(executions.start({"table": table}), 100)
    assert run.status == "SUCCEEDED", run
    return sorted(key["customer"]["S"] for key in executions.keys(run.name))


def test_the_example_is_deployed_from_the_wheel_and_lists_the_keys_of_its_table(
    cloud: Cloud, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    site = installed_in(tmp_path / "site", wheel_in(tmp_path))
    project = tmp_path / "own_stack"
    shutil.copytree(ROOT / "examples" / "own_stack", project)
    (project / "cdk.json").write_text(json.dumps({"app": f"{sys.executable} app.py"}))
    monkeypatch.setenv("PYTHONPATH", str(site))
    stack = replace(cloud, folder=tmp_path, project=project, outputs={})
    outputs = stack.deploy([])
    resources = cloud.client("cloudformation").describe_stack_resources(StackName="Shop")
    (table,) = (
        resource["PhysicalResourceId"]
        for resource in resources["StackResources"]
        if resource["LogicalResourceId"].startswith("Orders")
    )
    fill(cloud.client("dynamodb"), table)
    assert list_keys(cloud, outputs, table) == sorted(CUSTOMERS)
    stack.destroy()


def test_the_template_is_deployed_by_two_commands_and_lists_the_keys_of_a_table_by_parameter(
    cloud: Cloud, tmp_path: Path
) -> None:
    template.write(tmp_path)
    s3, dynamodb, stacks = (cloud.client(name) for name in ("s3", "dynamodb", "cloudformation"))
    s3.create_bucket(Bucket="their-code")
    for path in tmp_path.iterdir():
        s3.upload_file(str(path), "their-code", f"keyhop/{path.name}")
    keys = (("customer", "HASH"), ("order", "RANGE"))
    dynamodb.create_table(
        TableName="Orders",
        KeySchema=[{"AttributeName": name, "KeyType": kind} for name, kind in keys],
        AttributeDefinitions=[{"AttributeName": name, "AttributeType": "S"} for name, _ in keys],
        BillingMode="PAY_PER_REQUEST",
    )
    fill(dynamodb, "Orders")
    parameters = {"CodeBucket": "their-code", "Table1": "Orders"}
    stacks.create_stack(
        StackName="Templated",
        TemplateURL=f"{cloud.url}/their-code/keyhop/keyhop.template.json",
        Parameters=[{"ParameterKey": k, "ParameterValue": v} for k, v in parameters.items()],
        Capabilities=["CAPABILITY_IAM"],
    )
    stacks.get_waiter("stack_create_complete").wait(
        StackName="Templated", WaiterConfig={"Delay": 1, "MaxAttempts": 60}
    )
    (stack,) = stacks.describe_stacks(StackName="Templated")["Stacks"]
    outputs = {output["OutputKey"]: output["OutputValue"] for output in stack["Outputs"]}
    assert list_keys(cloud, outputs, "Orders") == sorted(CUSTOMERS)
    stacks.delete_stack(StackName="Templated")
