"""What `cdk destroy` takes away, what it leaves, and what it refuses."""

import json
from dataclasses import replace
from pathlib import Path

import pytest
from keyhop.streams.event_source import Mappings

from local.cloud import Cloud, Failed
from testing.databases import Database
from testing.key_index_tables import STREAM

TABLES = ["Small", {"table": "Left", "keyIndex": True}]


def test_a_destroyed_stack_leaves_its_results_and_nothing_else(
    cloud: Cloud, tmp_path: Path
) -> None:
    other = replace(cloud, folder=tmp_path, outputs={})
    outputs = other.deploy(TABLES, stackName="Gone")
    states, functions, s3 = (cloud.client(name) for name in ("stepfunctions", "lambda", "s3"))

    def machines() -> list[str]:
        found = states.list_state_machines()["stateMachines"]
        return [machine["name"] for machine in found if machine["name"].startswith("Gone-")]

    def named() -> list[str]:
        found = functions.list_functions()["Functions"]
        return [one["FunctionName"] for one in found if one["FunctionName"].startswith("Gone-")]

    assert "Gone-EnumerateKeys" in machines()
    assert "Gone-KeepIndex" in named()
    database = Database("dynamodb_local", cloud.dynamodb)
    database.create("Left", **STREAM)
    stream = database.client.describe_table(TableName="Left")["Table"]["LatestStreamArn"]
    queue = "arn:aws:sqs:us-east-1:000000000000:failures"
    mappings = Mappings(functions, "Gone-KeepIndex", queue)
    while not mappings.attach(stream):
        pass
    assert len(mappings.of_table(stream)) == 1
    s3.put_object(Bucket=outputs["ResultsBucketName"], Key="runs/r/manifest.json", Body=b"{}")
    other.destroy()
    assert machines() == named() == mappings.of_table(stream) == []
    kept = s3.list_objects_v2(Bucket=outputs["ResultsBucketName"])["Contents"]
    assert [entry["Key"] for entry in kept] == ["runs/r/manifest.json"]


def test_a_stack_lets_go_of_no_table_while_its_key_index_stands(
    cloud: Cloud, tmp_path: Path
) -> None:
    other = replace(cloud, folder=tmp_path, outputs={})
    functions, s3 = cloud.client("lambda"), cloud.client("s3")
    cloudformation = cloud.client("cloudformation")
    bucket = other.deploy(TABLES, stackName="Stays")["ResultsBucketName"]
    identity = "arn:aws:dynamodb:us-east-1:000000000000:table/Left#1"
    entry = {"identity": identity, "sentinel": {"sort": "!keyhop"}}
    s3.put_object(
        Bucket=bucket, Key="key-index/Left-0123/entry.json", Body=json.dumps(entry).encode()
    )

    def named() -> set[str]:
        found = functions.list_functions()["Functions"]
        return {one["FunctionName"] for one in found if one["FunctionName"].startswith("Stays-")}

    before = named()
    with pytest.raises(Failed, match="The key index of Left stands"):
        other.deploy(["Small"], stackName="Stays")
    assert named() == before, "the update is rolled back"
    with pytest.raises(Failed):
        other.destroy()
    pages = cloudformation.get_paginator("describe_stack_events").paginate(StackName="Stays")
    events = [
        (event["LogicalResourceId"], event["ResourceStatus"])
        for page in pages
        for event in page["StackEvents"]
    ]
    events.reverse()
    begun = events.index(("Stays", "DELETE_IN_PROGRESS"))
    (guard, first), (same, second) = events[begun + 1 : begun + 3]
    assert (guard, first, second) == (same, "DELETE_IN_PROGRESS", "DELETE_FAILED")
    assert guard.startswith("KeyIndexKeeperMappings"), "it is asked before anything is gone"
    # All else waits for it in CloudFormation, which deletes nothing that another resource depends
    # on (test_a_stack_that_refuses_to_go_has_lost_nothing); the emulator goes on.
    cloudformation.delete_stack(StackName="Stays", RetainResources=[guard])
