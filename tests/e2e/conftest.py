"""One laptop cloud with the deployed stack for all end-to-end tests.

They run in one worker of pytest-xdist (the group "cloud"), so that there is one of it, and begin
first: the other worker has all other tests meanwhile.
"""

import json
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from local.cloud import Cloud, laptop_cloud
from local.follow import Ended, Executions
from testing.databases import Database
from tests.live.fixtures import enumerated, fixtures

LIVE_PREFIX = "e2e-"
SHARDED = {"table": "Sharded", "sharding": {"partitionKey": "path"}}
TABLES = [
    *("Whole", "Small", "Slow", "Odd"),
    *({"table": name, "keyIndex": True} for name in ("Kept", "Chaos")),
    SHARDED,
    *(table.name for table in enumerated(fixtures(LIVE_PREFIX))),
]
"""What the deployment may touch; each test module has tables of its own."""

WORKER_SECONDS = 30
"""The least that the stack takes: a worker works half a minute, and hands back."""

LONGEST_SECONDS = 100.0
TEST_SECONDS = 300
"""With the deployment, which is part of the first test, on a machine that does something else."""


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        if Path(__file__).parent in item.path.parents:
            item.add_marker(pytest.mark.timeout(TEST_SECONDS))


@dataclass
class Deployed:
    """The deployed application."""

    cloud: Cloud
    executions: Executions
    database: Database
    names: set[str] = field(default_factory=set)

    def run(self, given: Any, name: str | None = None, seconds: float = LONGEST_SECONDS) -> Ended:
        """Start an execution and wait for its end."""
        return self.executions.follow(self.executions.start(given, name), seconds)

    def found(self, run: str, attribute: str = "pk", type_: str = "S") -> Counter[str]:
        """The keys of a run, each with how often it is there."""
        return Counter(key[attribute][type_] for key in self.executions.keys(run))

    def put(self, key: str, content: Any) -> None:
        """Write an object into the results bucket."""
        body = content if isinstance(content, bytes) else json.dumps(content).encode()
        self.executions.s3.put_object(Bucket=self.executions.bucket, Key=key, Body=body)


@pytest.fixture(scope="session")
def cloud() -> Iterator[Cloud]:
    """ministack and DynamoDB Local."""
    with laptop_cloud() as cloud:
        yield cloud


@pytest.fixture(scope="session")
def deployed(cloud: Cloud) -> Deployed:
    """The stack, deployed by the CDK's command line as a user does it."""
    outputs = cloud.deploy(TABLES, workerTimeoutSeconds=str(WORKER_SECONDS))
    executions = Executions(cloud.client, outputs["StateMachineArn"], outputs["ResultsBucketName"])
    return Deployed(cloud, executions, Database("dynamodb_local", cloud.dynamodb))


@pytest.fixture(scope="session")
def small(deployed: Deployed) -> set[str]:
    """The table Small; its keys."""
    return deployed.database.collections("Small", [1, 6, 1, 25, 2] * 60, filling=300)
