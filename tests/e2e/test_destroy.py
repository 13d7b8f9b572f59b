"""Check what `cdk destroy` deletes, what remains, and what it refuses."""

import json
from dataclasses import replace
from pathlib import Path

import pytest
from keyhop.streams.event_source import Mappings

from local.cloud import Cloud, Failed
from testing.databases import Database
from testing.key_index_tables import STREAM

TABLES = ["Small", {"table": "Left", "keyIndex": True}]


def functions_of(cloud: Cloud, stack: str) -> set[str]:
    rows = cloud.client("lambda").list_functions()["Functions"]
    return {row["FunctionName"] for row in rows if row["FunctionName"].startswith(f"{stack}-")}


def test_a_destroyed_stack_leaves_its_results_and_nothing_else(
    cloud: Cloud, tmp_path: Path
) -> None:
    stack = replace(cloud, folder=tmp_path, outputs={})
    outputs = stack.deploy(TABLES, stackName="Gone")
    states, functions, s3 = (cloud.client(name) for name in ("stepfunctions", "lambda", "s3"))

    def machines() -> set[str]:
        rows = states.list_state_machines()["stateMachines"]
        return {row["name"] for row in rows if row["name"].startswith("Gone-")}

    assert "Gone-EnumerateKeys" in machines()
    assert "Gone-KeepIndex" in functions_of(cloud, "Gone")
    database = Database("dynamodb_local", cloud.dynamodb)
    database.create("Left", **STREAM)
    stream = database.client.describe_table(TableName="Left")["Table"]["LatestStreamArn"]
    queue = "arn:aws:sqs:us-east-1:000000000000:failures"
    mappings = Mappings(functions, "Gone-KeepIndex", queue)
    while not mappings.attach(stream):
        pass
    assert len(mappings.of_table(stream)) == 1
    s3.put_object(Bucket=outputs["ResultsBucketName"], Key="runs/r/manifest.json", Body=b"{}")
    stack.destroy()
    assert machines() == functions_of(cloud, "Gone") == set()
    assert mappings.of_table(stream) == []
    objects = s3.list_objects_v2(Bucket=outputs["ResultsBucketName"])["Contents"]
    assert [entry["Key"] for entry in objects] == ["runs/r/manifest.json"]


def test_a_table_with_a_key_index_cannot_leave_the_stack(cloud: Cloud, tmp_path: Path) -> None:
    stack = replace(cloud, folder=tmp_path, outputs={})
    cloudformation, s3 = cloud.client("cloudformation"), cloud.client("s3")
    bucket = stack.deploy(TABLES, stackName="Stays")["ResultsBucketName"]
    identity = "arn:aws:dynamodb:us-east-1:000000000000:table/Left#1"
    entry = {"identity": identity, "sentinel": {"sort": "!keyhop"}}
    s3.put_object(
        Bucket=bucket, Key="key-index/Left-0123/entry.json", Body=json.dumps(entry).encode()
    )
    before = functions_of(cloud, "Stays")
    with pytest.raises(Failed, match="The key index of Left stands"):
        stack.deploy(["Small"], stackName="Stays")
    assert functions_of(cloud, "Stays") == before, "the update is rolled back"
    with pytest.raises(Failed):
        stack.destroy()
    pages = cloudformation.get_paginator("describe_stack_events").paginate(StackName="Stays")
    events = [
        (event["LogicalResourceId"], event["ResourceStatus"])
        for page in pages
        for event in page["StackEvents"]
    ]
    events.reverse()
    start = events.index(("Stays", "DELETE_IN_PROGRESS"))
    (guard, first), (same, second) = events[start + 1 : start + 3]
    assert (guard, first, second) == (same, "DELETE_IN_PROGRESS", "DELETE_FAILED")
    assert guard.startswith("KeyIndexKeeperMappings"), "it is called before anything is deleted"
    # CloudFormation does not delete the resources that this one depends on, so all others remain
    # (test_a_stack_that_refuses_to_go_has_lost_nothing); the emulator deletes them.
    cloudformation.delete_stack(StackName="Stays", RetainResources=[guard])
