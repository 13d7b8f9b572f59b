"""What AWS says, in its own words, to the deployed functions: its errors are put on the wire.

The texts are those of the service's documentation, or of public reports of them.
"""

import json
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace

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


def of(caller: str, operation: str, answer: Answer, times: int = 1_000_000) -> Fault:
    """Answers a function's requests of an operation, so many times."""
    left = iter(range(times))

    def fault(request: Request) -> Answer | None:
        asked = request.headers.get(SESSION) == f"Keyhop-{caller}" and request.operation
        if asked != operation or next(left, None) is None:
            return None
        return answer

    return fault


def states_refusal(code: str, message: str) -> Answer:
    """An error as Step Functions writes it."""
    return Answer(400, json.dumps({"__type": code, "message": message}).encode())


@contextmanager
def without(recorder: Recorder, owner: str, sid: str) -> Iterator[None]:
    """A role lacks a statement, as far as S3's answers go."""
    whole = recorder.template
    assert whole is not None
    less = replace(whole, _statements={})
    less.statements(owner)[:] = [one for one in whole.statements(owner) if one.get("Sid") != sid]
    assert len(less.statements(owner)) == len(whole.statements(owner)) - 1
    recorder.template = less
    try:
        yield
    finally:
        recorder.template = whole


@pytest.fixture(scope="module")
def builds(deployed: Deployed) -> Executions:
    """Executions of BuildKeyIndex."""
    return deployed.machine("BuildKeyIndex")


def test_what_is_not_known_of_an_index_is_found_to_be_missing(
    deployed: Deployed, recorder: Recorder, builds: Executions
) -> None:
    """To who may not list an object's key S3 says 403 of a missing one, as of a forbidden one."""
    expected = deployed.database.collections("Unknown", [1, 2, 3] * 5)
    with without(recorder, "ManageIndex", "FindTheObjectsOfARunAndSeeThatOneIsMissing"):
        ended = builds.follow(builds.start({"table": "Unknown"}), LONGEST_SECONDS)
    assert (ended.status, ended.error) == ("FAILED", "NotPermitted")
    assert "s3:ListBucket" in ended.cause
    with without(recorder, "PlanRun", "SeeThatNothingIsKnownOfAKeyIndex"):
        blind = deployed.run({"table": "Unknown"}, "blind")
    seeing = deployed.run({"table": "Unknown"}, "seeing")
    for ended in (blind, seeing):
        assert ended.status == "SUCCEEDED", ended
        assert ended.output["method"] == "skip"
        assert set(deployed.found(ended.output["run"])) == expected


def test_auto_works_while_an_index_is_being_built(deployed: Deployed, builds: Executions) -> None:
    """The entry of the index has a lease and no verification; a stopped build is begun anew."""
    expected = deployed.database.collections("Building", [1, 2, 3] * 40)
    build = builds.start({"table": "Building", "graceSeconds": 1, "maxWriteRate": 8})
    walks = builds.state_machine.replace("BuildKeyIndex", "WalkKeyIndexes")
    running = {"stateMachineArn": walks, "statusFilter": "RUNNING"}
    while not builds.states.list_executions(**running)["executions"]:
        assert builds.states.describe_execution(executionArn=build)["status"] == "RUNNING"
        time.sleep(0.1)
    ended = deployed.run({"table": "Building", "method": "auto"}, "meanwhile")
    status = builds.states.describe_execution(executionArn=build)["status"]
    builds.states.stop_execution(executionArn=build)
    assert status == "RUNNING"
    assert ended.status == "SUCCEEDED", ended
    assert ended.output["method"] == "skip"
    assert set(deployed.found("meanwhile")) == expected
    for walk in builds.states.list_executions(**running)["executions"]:
        builds.states.stop_execution(executionArn=walk["executionArn"])
    deployed.done({"table": "Building", "graceSeconds": 1}, machine="BuildKeyIndex")


def test_a_table_whose_kms_key_is_not_granted_is_told_by_the_key(
    deployed: Deployed, small: set[str], recorder: Recorder
) -> None:
    denied = of("PlanRun", "Scan", refusal("AccessDeniedException", KMS_DENIED))
    with recorder.answering(denied) as answered:
        ended = deployed.run({"table": "Small"})
    assert answered
    assert (ended.status, ended.error) == ("FAILED", "NotPermitted")
    assert "kms:Decrypt" in ended.cause
    assert KMS_KEY in ended.cause
    assert "dynamodb:Scan" not in ended.cause


def test_a_walk_that_may_not_write_says_so(
    deployed: Deployed, recorder: Recorder, builds: Executions
) -> None:
    """The error of one child goes through its map, the walk and the build."""
    deployed.database.collections("Denied", [1, 2, 3] * 5)
    told = (
        f"User: {ROLE} is not authorized to perform: dynamodb:PutItem on resource: "
        "arn:aws:dynamodb:us-east-1:000000000000:table/Denied because no identity-based policy "
        "allows the dynamodb:PutItem action"
    )
    fault = of("WalkSegments", "PutItem", refusal("AccessDeniedException", told))
    with recorder.answering(fault) as answered:
        ended = builds.follow(builds.start({"table": "Denied", "graceSeconds": 1}), LONGEST_SECONDS)
    assert answered
    assert ended.status == "FAILED"
    assert (
        "allow dynamodb:PutItem on arn:aws:dynamodb:us-east-1:000000000000:table/De" in ended.cause
    )


def test_a_build_waits_while_another_index_of_the_table_is_built(
    deployed: Deployed, recorder: Recorder, builds: Executions
) -> None:
    """DynamoDB builds one index of a table at a time, and refuses a second one so."""
    deployed.database.collections("Unbuilt", [1, 2, 3] * 5)
    busy = refusal("LimitExceededException", ONE_INDEX_AT_A_TIME)

    def of_an_index(request: Request) -> Answer | None:
        return fault(request) if b"GlobalSecondaryIndexUpdates" in request.body else None

    fault = of("ManageIndex", "UpdateTable", busy, times=2)
    with recorder.answering(of_an_index) as answered:
        ended = builds.follow(
            builds.start({"table": "Unbuilt", "graceSeconds": 1}), LONGEST_SECONDS
        )
    assert len(answered) == 2
    assert ended.status == "SUCCEEDED", ended


def test_a_worker_bears_it_that_step_functions_does_not_tell_the_level(
    deployed: Deployed, small: set[str], recorder: Recorder
) -> None:
    """ListMapRuns has 100 requests and one a second, for an account and region."""
    throttled = states_refusal("ThrottlingException", "Rate exceeded")
    with recorder.answering(of("ScanSegments", "ListMapRuns", throttled, times=4)) as answered:
        ended = deployed.run({"table": "Small", "maxReadRate": 4_000, "maxConcurrency": 1})
    assert answered
    assert ended.status == "SUCCEEDED", ended
    assert ended.output["keys"] == len(small)


@pytest.mark.parametrize("status", [503, 400])
def test_a_store_that_is_slow_or_down_is_tried_again(
    deployed: Deployed, small: set[str], recorder: Recorder, status: int
) -> None:
    """S3's 503 SlowDown, and a RequestTimeout, which is a 400."""
    code = "SlowDown" if status == 503 else "RequestTimeout"
    body = f"<?xml version='1.0'?><Error><Code>{code}</Code><Message>m</Message></Error>".encode()
    left = iter(range(3))

    def fault(request: Request) -> Answer | None:
        if request.method != "PUT" or "/commits/" not in request.path or next(left, None) is None:
            return None
        return Answer(status, body, {"Content-Type": "application/xml"})

    with recorder.answering(fault) as answered:
        ended = deployed.run({"table": "Small", "segments": 64})
    assert len(answered) == 3
    assert ended.status == "SUCCEEDED", ended
    assert ended.output["keys"] == len(small)
