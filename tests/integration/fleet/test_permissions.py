"""The roles of the template allow every request of the states to S3.

The emulators have no IAM. S3 is moto's, so that boto3's client sends the requests.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest
from keyhop.errors import BudgetSpent, KeysMissing, RunFailed
from keyhop.jobs.runs import Runs
from keyhop.storage.s3 import s3_client
from moto import mock_aws

from tests.infra.conftest import CONTEXTS, deployed, stack_of
from tests.infra.template import BUCKET_ARN, Deployed
from tests.integration.fleet.conftest import BUCKET, SIZES, Fleet

ACTIONS = {"ListObjectsV2": "ListBucket"}


class Guard:
    """A check of each request to S3 against the role of the current state."""

    def __init__(self, s3: Any, template: Deployed) -> None:
        self.template = template
        self.owner = ""
        self.checked: set[tuple[str, str]] = set()
        s3.meta.events.register("provide-client-params.s3.*", self._check)

    @contextmanager
    def state(self, name: str) -> Iterator[None]:
        self.owner = name
        yield
        self.owner = ""

    def _check(self, params: dict[str, Any], model: Any, **_: Any) -> None:
        if not self.owner:
            return
        action = f"s3:{ACTIONS.get(model.name, model.name)}"
        self.checked.add((self.owner, action))
        if action == "s3:ListBucket":
            assert self.template.allows(self.owner, action, BUCKET_ARN, s3__prefix=params["Prefix"])
            return
        resource = f"{BUCKET_ARN}/{params['Key']}"
        assert self.template.allows(self.owner, action, resource), (self.owner, action, resource)


@pytest.fixture
def runs(monkeypatch: pytest.MonkeyPatch) -> Iterator[Runs]:
    for name in ("AWS_REGION", "AWS_DEFAULT_REGION"):
        monkeypatch.setenv(name, "us-east-1")
    with mock_aws():
        s3 = s3_client()
        s3.create_bucket(Bucket=BUCKET)
        yield Runs(s3, BUCKET)


@pytest.fixture
def guard(machine: Fleet) -> Guard:
    return Guard(machine.runs.s3, deployed(stack_of(CONTEXTS["plain"])))


@pytest.mark.prove
def test_the_roles_allow_all_requests_of_the_states(machine: Fleet, guard: Guard) -> None:
    machine.collections(SIZES)
    with guard.state("PlanRun"):
        machine.run(dryRun=True)
        state, execution = machine.begin(segments=96, verifyShare=1, maxReadRate=4_000)
    with guard.state("ScanSegments"):
        machine.map(state)
    machine.runs.store("run").replace("parts/g00000-s000009-ffffffffffff.jsonl.gz", b"late")
    with guard.state("FinishRun"):
        state = machine.finish(state, execution)
    assert ("FinishRun", "s3:DeleteObject") in guard.checked
    with guard.state("VerifyRun"):
        state = machine.verify(state)
    assert ("VerifyRun", "s3:PutObject") in guard.checked
    state["failure"] = {"Error": "GaveUp", "Cause": "throttled"}
    with guard.state("CleanUp"), pytest.raises(RunFailed):
        machine.clean_up(state, execution)
    with guard.state("PlanRun"):
        machine.plan({"table": machine.table, "resume": "run", "verifyShare": 0.5}, execution)


@pytest.mark.prove
def test_the_roles_allow_all_requests_of_the_states_of_failed_runs(
    machine: Fleet, guard: Guard
) -> None:
    machine.create(sort=None)
    machine.fill({"pk": {"S": f"k{n}"}} for n in range(300))
    with guard.state("PlanRun"):
        state, execution = machine.begin(segments=64, verifyShare=1, maxReadUnits=20)
    with guard.state("ScanSegments"):
        machine.map(state)
    with guard.state("FinishRun"), pytest.raises(BudgetSpent):
        machine.go_on(state, execution)
    state["failure"] = {"Error": "BudgetSpent", "Cause": "spent"}
    with guard.state("CleanUp"), pytest.raises(RunFailed):
        machine.clean_up(state, execution)
    machine.run(resume="run")
    machine.fill([{"pk": {"S": "late"}}])
    state, execution = machine.begin("again", resume="run", verifyShare=1)
    state = machine.finish(state, execution)
    with guard.state("VerifyRun"), pytest.raises(KeysMissing):
        machine.verify(state)
    assert {owner for owner, _ in guard.checked} >= {"PlanRun", "ScanSegments", "FinishRun"}
