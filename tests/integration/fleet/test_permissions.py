"""What each state asks of S3, held against the roles of the template: the emulators have no IAM.

S3 is moto's, so that each is asked by boto3's client.
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
    """Stands before S3, and asks the role of the state that is at work."""

    def __init__(self, s3: Any, template: Deployed) -> None:
        self.template = template
        self.owner = ""
        self.asked: set[tuple[str, str]] = set()
        s3.meta.events.register("provide-client-params.s3.*", self._ask)

    @contextmanager
    def state(self, name: str) -> Iterator[None]:
        self.owner = name
        yield
        self.owner = ""

    def _ask(self, params: dict[str, Any], model: Any, **_: Any) -> None:
        if not self.owner:
            return
        action = f"s3:{ACTIONS.get(model.name, model.name)}"
        self.asked.add((self.owner, action))
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


def test_no_state_asks_for_more_than_its_role_allows(machine: Fleet, guard: Guard) -> None:
    machine.collections(SIZES)
    execution = machine.execution("run")
    given = {"table": machine.table, "segments": 96, "verifyShare": 1, "maxReadRate": 4_000}
    with guard.state("PlanRun"):
        machine.run(dryRun=True)
        state = machine.plan(given, execution)
    with guard.state("ScanSegments"):
        machine.map(state)
    machine.runs.store("run").replace("parts/g00000-s000009-ffffffffffff.jsonl.gz", b"late")
    with guard.state("FinishRun"):
        state = machine.finish(state, execution)
    assert ("FinishRun", "s3:DeleteObject") in guard.asked
    with guard.state("VerifyRun"):
        state = machine.verify(state)
    assert ("VerifyRun", "s3:PutObject") in guard.asked
    state["failure"] = {"Error": "GaveUp", "Cause": "throttled"}
    with guard.state("CleanUp"), pytest.raises(RunFailed):
        machine.clean_up(state, execution)
    with guard.state("PlanRun"):
        machine.plan({"table": machine.table, "resume": "run", "verifyShare": 0.5}, execution)


def test_nor_do_states_of_runs_that_fail(machine: Fleet, guard: Guard) -> None:
    machine.create(sort=None)
    machine.fill({"pk": {"S": f"k{n}"}} for n in range(300))
    execution = machine.execution("run")
    given = {"table": machine.table, "segments": 64, "verifyShare": 1, "maxReadUnits": 20}
    with guard.state("PlanRun"):
        state = machine.plan(given, execution)
    with guard.state("ScanSegments"):
        machine.map(state)
    with guard.state("FinishRun"), pytest.raises(BudgetSpent):
        machine.go_on(state, execution)
    state["failure"] = {"Error": "BudgetSpent", "Cause": "spent"}
    with guard.state("CleanUp"), pytest.raises(RunFailed):
        machine.clean_up(state, execution)
    machine.run(resume="run")
    machine.fill([{"pk": {"S": "late"}}])
    again = machine.execution("again")
    state = machine.plan({"table": machine.table, "resume": "run", "verifyShare": 1}, again)
    state = machine.finish(state, again)
    with guard.state("VerifyRun"), pytest.raises(KeysMissing):
        machine.verify(state)
    assert {owner for owner, _ in guard.asked} >= {"PlanRun", "ScanSegments", "FinishRun"}
