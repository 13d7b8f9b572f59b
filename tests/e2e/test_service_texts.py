"""Send the error texts of AWS to the deployed functions.

The texts are from the service's documentation, or from public reports of them.
"""

import json
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from itertools import repeat

import pytest

from testing.executions import Executions
from tests.e2e.conftest import LONGEST_SECONDS, Deployed
from tests.recording.proxy import Answer, Request, refusal
from tests.recording.recorder import SESSION, Fault, Recorder

KMS_KEY = "arn:aws:kms:us-east-1:000000000000:key/1234abcd-12ab-34cd-56ef-1234567890ab"
ROLE = "arn:aws:sts::000000000000:assumed-role/Keyhop-EnumerationPlanRunRole/Keyhop-PlanRun"
KMS_DENIED = (
    f"User: {ROLE} is not authorized to perform: kms:Decrypt on resource: {KMS_KEY} because no "
    "identity-based policy allows the kms:Decrypt action"
)
ONE_INDEX_AT_A_TIME = (
    "Subscriber limit exceeded: Only 1 online index can be created or deleted simultaneously per "
    "table"
)


def fault_of(caller: str, operation: str, answer: Answer, times: int = 1_000_000) -> Fault:
    """Return a fault that answers a function's first `times` requests of an operation."""
    answers = repeat(answer, times)

    def fault(request: Request) -> Answer | None:
        is_caller = request.headers.get(SESSION) == f"Keyhop-{caller}"
        return next(answers, None) if is_caller and request.operation == operation else None

    return fault


def states_refusal(code: str, message: str) -> Answer:
    """Return an error in the format of Step Functions."""
    return Answer(400, json.dumps({"__type": code, "message": message}).encode())


@contextmanager
def without(recorder: Recorder, owner: str, sid: str) -> Iterator[None]:
    """Let S3 answer as if a role lacked a statement."""
    template = recorder.template
    assert template is not None
    statements = template.statements(owner)
    reduced = replace(template, _statements={})
    reduced.statements(owner)[:] = [row for row in statements if row.get("Sid") != sid]
    assert len(reduced.statements(owner)) == len(statements) - 1
    recorder.template = reduced
    try:
        yield
    finally:
        recorder.template = template


@pytest.fixture(scope="module")
def builds(deployed: Deployed) -> Executions:
    return deployed.machine("BuildKeyIndex")


def test_missing_objects_are_handled_without_the_permission_to_list(
    deployed: Deployed, recorder: Recorder, builds: Executions
) -> None:
    """Without s3:ListBucket, S3 answers 403 for a missing object as for a forbidden one."""
    expected = deployed.database.collections("Unknown", [1, 2, 3] * 5)
    with without(recorder, "ManageIndex", "FindTheObjectsOfARunAndSeeThatOneIsMissing"):
        run = builds.follow(builds.start({"table": "Unknown"}), LONGEST_SECONDS)
    assert (run.status, run.error) == ("FAILED", "NotPermitted")
    assert "s3:ListBucket" in run.cause
    with without(recorder, "PlanRun", "SeeThatNothingIsKnownOfAKeyIndex"):
        blind = deployed.run({"table": "Unknown"}, "blind")
    seeing = deployed.run({"table": "Unknown"}, "seeing")
    for run in (blind, seeing):
        assert run.status == "SUCCEEDED", run
        assert run.output["method"] == "skip"
        assert set(deployed.listed_keys(run.output["run"])) == expected


def test_auto_works_while_an_index_is_being_built(deployed: Deployed, builds: Executions) -> None:
    """The entry of the index has a lease and no verification. A stopped build can start again."""
    expected = deployed.database.collections("Building", [1, 2, 3] * 40)
    build = builds.start({"table": "Building", "graceSeconds": 1, "maxWriteRate": 8})
    walks = builds.state_machine.replace("BuildKeyIndex", "WalkKeyIndexes")
    running = {"stateMachineArn": walks, "statusFilter": "RUNNING"}
    while not builds.states.list_executions(**running)["executions"]:
        assert builds.states.describe_execution(executionArn=build)["status"] == "RUNNING"
        time.sleep(0.1)
    run = deployed.run({"table": "Building", "method": "auto"}, "meanwhile")
    status = builds.states.describe_execution(executionArn=build)["status"]
    builds.states.stop_execution(executionArn=build)
    assert status == "RUNNING"
    assert run.status == "SUCCEEDED", run
    assert run.output["method"] == "skip"
    assert set(deployed.listed_keys("meanwhile")) == expected
    for walk in builds.states.list_executions(**running)["executions"]:
        builds.states.stop_execution(executionArn=walk["executionArn"])
    deployed.complete({"table": "Building", "graceSeconds": 1}, machine="BuildKeyIndex")


def test_a_denied_kms_key_is_named_in_the_cause(
    deployed: Deployed, small: set[str], recorder: Recorder
) -> None:
    denied = fault_of("PlanRun", "Scan", refusal("AccessDeniedException", KMS_DENIED))
    with recorder.answering(denied) as answered:
        run = deployed.run({"table": "Small"})
    assert answered
    assert (run.status, run.error) == ("FAILED", "NotPermitted")
    assert "kms:Decrypt" in run.cause
    assert KMS_KEY in run.cause
    assert "dynamodb:Scan" not in run.cause


def test_a_walk_without_permission_to_write_names_the_action(
    deployed: Deployed, recorder: Recorder, builds: Executions
) -> None:
    """The error of one child passes through its map, the walk and the build."""
    deployed.database.collections("Denied", [1, 2, 3] * 5)
    message = (
        f"User: {ROLE} is not authorized to perform: dynamodb:PutItem on resource: "
        "arn:aws:dynamodb:us-east-1:000000000000:table/Denied because no identity-based policy "
        "allows the dynamodb:PutItem action"
    )
    fault = fault_of("WalkSegments", "PutItem", refusal("AccessDeniedException", message))
    with recorder.answering(fault) as answered:
        run = builds.follow(builds.start({"table": "Denied", "graceSeconds": 1}), LONGEST_SECONDS)
    assert answered
    assert run.status == "FAILED"
    assert "allow dynamodb:PutItem on arn:aws:dynamodb:us-east-1:000000000000:table/De" in run.cause


def test_a_build_waits_while_another_index_of_the_table_is_built(
    deployed: Deployed, recorder: Recorder, builds: Executions
) -> None:
    """DynamoDB builds one index of a table at a time, and refuses a second one with this error."""
    deployed.database.collections("Unbuilt", [1, 2, 3] * 5)
    busy = refusal("LimitExceededException", ONE_INDEX_AT_A_TIME)

    def index_fault(request: Request) -> Answer | None:
        return fault(request) if b"GlobalSecondaryIndexUpdates" in request.body else None

    fault = fault_of("ManageIndex", "UpdateTable", busy, times=2)
    with recorder.answering(index_fault) as answered:
        run = builds.follow(builds.start({"table": "Unbuilt", "graceSeconds": 1}), LONGEST_SECONDS)
    assert len(answered) == 2
    assert run.status == "SUCCEEDED", run


def test_a_worker_tolerates_that_list_map_runs_is_throttled(
    deployed: Deployed, small: set[str], recorder: Recorder
) -> None:
    """An account has 100 requests of ListMapRuns in a region, and one more each second."""
    throttled = states_refusal("ThrottlingException", "Rate exceeded")
    fault = fault_of("ScanSegments", "ListMapRuns", throttled, times=4)
    with recorder.answering(fault) as answered:
        run = deployed.run({"table": "Small", "maxReadRate": 4_000, "maxConcurrency": 1})
    assert answered
    assert run.status == "SUCCEEDED", run
    assert run.output["keys"] == len(small)


@pytest.mark.parametrize(("status", "code"), [(503, "SlowDown"), (400, "RequestTimeout")])
def test_a_request_that_s3_cannot_serve_now_is_retried(
    deployed: Deployed, small: set[str], recorder: Recorder, status: int, code: str
) -> None:
    body = f"<?xml version='1.0'?><Error><Code>{code}</Code><Message>m</Message></Error>".encode()
    answers = repeat(Answer(status, body, {"Content-Type": "application/xml"}), 3)

    def fault(request: Request) -> Answer | None:
        is_commit = request.method == "PUT" and "/commits/" in request.path
        return next(answers, None) if is_commit else None

    with recorder.answering(fault) as answered:
        run = deployed.run({"table": "Small", "segments": 64})
    assert len(answered) == 3
    assert run.status == "SUCCEEDED", run
    assert run.output["keys"] == len(small)
