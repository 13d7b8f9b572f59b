"""What `cdk destroy` takes away, and what it leaves."""

from pathlib import Path

from local.cloud import Cloud


def test_a_destroyed_stack_leaves_its_results_and_nothing_else(
    cloud: Cloud, tmp_path: Path
) -> None:
    other = Cloud(cloud.url, cloud.dynamodb, tmp_path)
    outputs = other.deploy(["Small"], stackName="Gone")
    states, functions, s3 = (cloud.client(name) for name in ("stepfunctions", "lambda", "s3"))

    def machines() -> list[str]:
        found = states.list_state_machines()["stateMachines"]
        return [machine["name"] for machine in found if machine["name"].startswith("Gone-")]

    def named() -> list[str]:
        found = functions.list_functions()["Functions"]
        return [one["FunctionName"] for one in found if one["FunctionName"].startswith("Gone-")]

    assert machines() == ["Gone-EnumerateKeys"]
    assert len(named()) == 5
    s3.put_object(Bucket=outputs["ResultsBucketName"], Key="runs/r/manifest.json", Body=b"{}")
    other.destroy(["Small"], stackName="Gone")
    assert machines() == named() == []
    kept = s3.list_objects_v2(Bucket=outputs["ResultsBucketName"])["Contents"]
    assert [entry["Key"] for entry in kept] == ["runs/r/manifest.json"]
