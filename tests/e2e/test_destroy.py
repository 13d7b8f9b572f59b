"""What `cdk destroy` takes away, and what it leaves."""

from dataclasses import replace
from pathlib import Path

import pytest
from keyhop.streams.event_source import Mappings

from local.cloud import Cloud
from testing.databases import Database
from testing.key_index_tables import STREAM

TABLES = ["Small", {"table": "Left", "keyIndex": True}]


@pytest.mark.prove
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
