"""A laptop cloud with the deployed stack, shared by all end-to-end tests.

The tests run in `make prove` only. They find faults of the emulator, CloudFormation and
permissions; `make test` runs the same steps in one process (tests/machine.py). One worker of
pytest-xdist runs them (the group "cloud"), before its other tests, so that they share one cloud.
Tests that deploy two versions (the group "versions") have another one: together, all these tests
would take minutes longer than the other workers need.
"""

import io
import json
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
"""The minimum that the stack accepts: a worker runs for half a minute, and returns a checkpoint."""

LONGEST_SECONDS = 280.0
TEST_SECONDS = 300
"""The limit on a busy machine, including the deployment, which is part of the first test."""


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption(
        "--record-calls", action="store_true", help="rewrite tests/infra/calls.json (all tests)"
    )


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        if item.path.is_relative_to(Path(__file__).parent):
            item.add_marker(pytest.mark.timeout(TEST_SECONDS))
            item.add_marker(pytest.mark.prove)


@dataclass
class Deployed:
    cloud: Cloud
    executions: Executions
    database: Database
    names: set[str] = field(default_factory=set)

    def run(self, values: Any, name: str | None = None, machine: str | None = None) -> Run:
        """Start an execution of EnumerateKeys, or of another machine, and wait for its end."""
        executions = self.machine(machine) if machine else self.executions
        return executions.follow(executions.start(values, name), LONGEST_SECONDS)

    def complete(self, values: Any, name: str | None = None, machine: str | None = None) -> Run:
        """Run an execution that must succeed."""
        run = self.run(values, name, machine)
        assert run.status == "SUCCEEDED", run
        return run

    def machine(self, name: str) -> Executions:
        """Return the executions of another state machine of the stack."""
        arn = self.cloud.outputs[f"{name}Arn"]
        return Executions(self.cloud.client, arn, self.executions.bucket)

    def listed_keys(self, run: str, attribute: str = "pk", type_: str = "S") -> Counter[str]:
        """Count each key in the result of a run."""
        return Counter(key[attribute][type_] for key in self.executions.keys(run))

    def alarms(self, machine: str = "EnumerateKeys") -> float:
        """Return the sum of the metric of the machine's RaiseAlarm in the last hour."""
        now = datetime.now(UTC)
        names = {"service": SERVICE, "machine": machine}
        statistics = self.cloud.client("cloudwatch").get_metric_statistics(
            Namespace="Keyhop",
            MetricName="NeedsAPerson",
            Dimensions=[{"Name": name, "Value": value} for name, value in names.items()],
            StartTime=now - timedelta(hours=1),
            EndTime=now + timedelta(minutes=1),
            Period=60,
            Statistics=["Sum"],
        )
        return float(sum(point["Sum"] for point in statistics["Datapoints"]))

    def put(self, key: str, content: Any) -> None:
        """Write an object into the results bucket."""
        body = content if isinstance(content, bytes) else json.dumps(content).encode()
        self.executions.s3.put_object(Bucket=self.executions.bucket, Key=key, Body=body)


@pytest.fixture(scope="session")
def recorder(request: pytest.FixtureRequest) -> Iterator[Recorder]:
    """A recorder of all calls of the session."""
    recorder = Recorder(KINDS)
    yield recorder
    if request.config.getoption("--record-calls"):
        recorded.write(recorder.calls)


@pytest.fixture(scope="session")
def cloud(dynamodb_local_url: str, recorder: Recorder) -> Iterator[Cloud]:
    """A cloud of ministack, and of the DynamoDB Local of the other tests."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("local.cloud.dynamodb_local", lambda: nullcontext(dynamodb_local_url))
        with laptop_cloud(recorder.seen) as cloud:
            yield cloud


@pytest.fixture(autouse=True)
def every_call_is_allowed(request: pytest.FixtureRequest) -> Iterator[None]:
    """Check each call against the deployed roles, because the emulators have no IAM."""
    yield
    if "deployed" in request.fixturenames:
        recorder: Recorder = request.getfixturevalue("recorder")
        recorder.read_histories(request.getfixturevalue("cloud"))
        assert recorder.denied() == []


@pytest.fixture(scope="session")
def deployed(cloud: Cloud, recorder: Recorder) -> Deployed:
    """The stack, deployed by the CDK's command line as a user does it."""
    context = {"workerTimeoutSeconds": str(WORKER_SECONDS), "rekey": json.dumps(REKEY)}
    outputs = cloud.deploy(TABLES, **context)
    recorder.template = Template(json.loads(cloud.template.read_text()))
    executions = Executions(cloud.client, outputs["StateMachineArn"], outputs["ResultsBucketName"])
    return Deployed(cloud, executions, Database("dynamodb_local", cloud.dynamodb))


@pytest.fixture
def at_the_cloud(deployed: Deployed, monkeypatch: pytest.MonkeyPatch) -> None:
    """Direct the command to the laptop cloud."""
    for name, value in deployed.cloud.exports.items():
        monkeypatch.setenv(name, value)


def create_function(cloud: Cloud, name: str, code: str, **more: Any) -> str:
    """Create a function whose code has a `handler`, and return its ARN."""
    packed = io.BytesIO()
    with zipfile.ZipFile(packed, "w") as archive:
        archive.writestr("code.py", code)
    response = cloud.client("lambda").create_function(
        FunctionName=name,
        Runtime="python3.13",
        Handler="code.handler",
        Role="arn:aws:iam::000000000000:role/any",
        Code={"ZipFile": packed.getvalue()},
        **more,
    )
    return str(response["FunctionArn"])


def stop_following(cloud: Cloud, tables: str) -> None:
    """Delete the event source mappings of tables whose names begin with `tables`. Other bridges
    would deliver records to functions whose code is in the folder of a finished test.
    """
    functions = cloud.client("lambda")
    for mapping in functions.list_event_source_mappings()["EventSourceMappings"]:
        if f"/{tables}" in mapping["EventSourceArn"]:
            functions.delete_event_source_mapping(UUID=mapping["UUID"])


@pytest.fixture(scope="session")
def small(deployed: Deployed) -> set[str]:
    """The keys of the table Small."""
    return deployed.database.collections("Small", [1, 6, 1, 25, 2] * 60, filling=300)
