"""One laptop cloud with the deployed stack for all end-to-end tests.

All are `make prove`'s: what they catch first is the emulator's, CloudFormation's or a right's, and
`make test` has the same steps in one process (tests/machine.py), the definitions and the rights.
They run in one worker of pytest-xdist (the group "cloud"), so that there is one of it, and begin
first: the others have all other tests meanwhile.
"""

import io
import json
import os
import zipfile
from collections import Counter
from collections.abc import Iterator
from contextlib import nullcontext
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from keyhop.public.deployment import Run
from keyhop.rekey.pair import SIDE_SUFFIX

from infra.functions import SERVICE
from local.cloud import Cloud, laptop_cloud
from testing.databases import Database
from testing.executions import Executions
from tests.infra import recorded
from tests.infra.recorded import KEY_INDEXES, METADATA, REKEY, TABLES
from tests.infra.template import Deployed as Template
from tests.recording.calls import Kinds
from tests.recording.recorder import Recorder

PAIRED = [name for pair in REKEY for name in (*pair.values(), pair["destination"] + SIDE_SUFFIX)]
KINDS = Kinds(
    {
        **dict.fromkeys(KEY_INDEXES, "Kept"),
        "Sharded": "Sharded",
        METADATA: METADATA,
        "Each": "Each",
        "Reported": "Reported",
        **{name: name for name in PAIRED},
    },
    "Small",
    frozenset(("Sharded", METADATA, "Reported", *PAIRED)),
)
WORKER_SECONDS = 30
"""The least that the stack takes: a worker works half a minute, and hands back."""

LONGEST_SECONDS = 280.0
TEST_SECONDS = 300
"""With the deployment, which is part of the first test, on a machine that does something else."""


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption(
        "--record-calls", action="store_true", help="write tests/infra/calls.json anew (all tests)"
    )


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    here = f"{Path(__file__).parent}{os.sep}"
    for item in items:
        if str(item.path).startswith(here):
            item.add_marker(pytest.mark.timeout(TEST_SECONDS))
            item.add_marker(pytest.mark.prove)


@dataclass
class Deployed:
    """The deployed application."""

    cloud: Cloud
    executions: Executions
    database: Database
    names: set[str] = field(default_factory=set)

    def run(self, given: Any, name: str | None = None, machine: str | None = None) -> Run:
        """Start an execution of EnumerateKeys, or of another machine, and wait for its end."""
        executions = self.machine(machine) if machine else self.executions
        return executions.follow(executions.start(given, name), LONGEST_SECONDS)

    def done(self, given: Any, name: str | None = None, machine: str | None = None) -> Run:
        """The same, of one that succeeds."""
        ended = self.run(given, name, machine)
        assert ended.status == "SUCCEEDED", ended
        return ended

    def machine(self, name: str) -> Executions:
        """The executions of another state machine of the stack."""
        arn = self.cloud.outputs[f"{name}Arn"]
        return Executions(self.cloud.client, arn, self.executions.bucket)

    def found(self, run: str, attribute: str = "pk", type_: str = "S") -> Counter[str]:
        """The keys of a run, each with how often it is there."""
        return Counter(key[attribute][type_] for key in self.executions.keys(run))

    def alarms(self, machine: str = "EnumerateKeys") -> float:
        """How often the machine's RaiseAlarm has counted in the last hour."""
        now = datetime.now(UTC)
        names = {"service": SERVICE, "machine": machine}
        told = self.cloud.client("cloudwatch").get_metric_statistics(
            Namespace="Keyhop",
            MetricName="NeedsAPerson",
            Dimensions=[{"Name": name, "Value": value} for name, value in names.items()],
            StartTime=now - timedelta(hours=1),
            EndTime=now + timedelta(minutes=1),
            Period=60,
            Statistics=["Sum"],
        )
        return float(sum(one["Sum"] for one in told["Datapoints"]))

    def put(self, key: str, content: Any) -> None:
        """Write an object into the results bucket."""
        body = content if isinstance(content, bytes) else json.dumps(content).encode()
        self.executions.s3.put_object(Bucket=self.executions.bucket, Key=key, Body=body)


@pytest.fixture(scope="session")
def recorder(request: pytest.FixtureRequest) -> Iterator[Recorder]:
    """Of all calls of the session."""
    recorder = Recorder(KINDS)
    yield recorder
    if request.config.getoption("--record-calls"):
        recorded.write(recorder.calls)


@pytest.fixture(scope="session")
def cloud(dynamodb_local_url: str, recorder: Recorder) -> Iterator[Cloud]:
    """ministack, and the DynamoDB Local of the other tests."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("local.cloud.dynamodb_local", lambda: nullcontext(dynamodb_local_url))
        with laptop_cloud(recorder.seen) as cloud:
            yield cloud


@pytest.fixture(autouse=True)
def every_call_is_allowed(request: pytest.FixtureRequest) -> Iterator[None]:
    """By the roles that are deployed: the emulators have no IAM."""
    yield
    if "deployed" in request.fixturenames:
        recorder: Recorder = request.getfixturevalue("recorder")
        recorder.read_histories(request.getfixturevalue("cloud"))
        assert recorder.denied() == []


@pytest.fixture(scope="session")
def deployed(cloud: Cloud, recorder: Recorder) -> Deployed:
    """The stack, deployed by the CDK's command line as a user does it."""
    given = {"workerTimeoutSeconds": str(WORKER_SECONDS), "rekey": json.dumps(REKEY)}
    outputs = cloud.deploy(TABLES, **given)
    recorder.template = Template(json.loads(cloud.template.read_text()))
    executions = Executions(cloud.client, outputs["StateMachineArn"], outputs["ResultsBucketName"])
    return Deployed(cloud, executions, Database("dynamodb_local", cloud.dynamodb))


@pytest.fixture
def at_the_cloud(deployed: Deployed, monkeypatch: pytest.MonkeyPatch) -> None:
    """The command sees the laptop cloud."""
    for name, value in deployed.cloud.exports.items():
        monkeypatch.setenv(name, value)


def create_function(cloud: Cloud, name: str, code: str, **more: Any) -> str:
    """The ARN of a new function, whose code has a `handler`."""
    packed = io.BytesIO()
    with zipfile.ZipFile(packed, "w") as archive:
        archive.writestr("code.py", code)
    made = cloud.client("lambda").create_function(
        FunctionName=name,
        Runtime="python3.13",
        Handler="code.handler",
        Role="arn:aws:iam::000000000000:role/any",
        Code={"ZipFile": packed.getvalue()},
        **more,
    )
    return str(made["FunctionArn"])


def stop_following(cloud: Cloud, tables: str) -> None:
    """Delete the mappings of tables whose names begin so: all bridges of a cloud deliver what there
    is, and the code of this stack lies in a test's own folder."""
    functions = cloud.client("lambda")
    for mapping in functions.list_event_source_mappings()["EventSourceMappings"]:
        if f"/{tables}" in mapping["EventSourceArn"]:
            functions.delete_event_source_mapping(UUID=mapping["UUID"])


@pytest.fixture(scope="session")
def small(deployed: Deployed) -> set[str]:
    """The table Small; its keys."""
    return deployed.database.collections("Small", [1, 6, 1, 25, 2] * 60, filling=300)
