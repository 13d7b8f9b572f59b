"""A changed version is deployed while executions and the keeper are at work: they go on."""

import json
import re
import shutil
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from threading import Event, Thread
from typing import Any

import pytest
from keyhop import __version__
from keyhop.key_index.sentinel import Sentinel

from local.cloud import Cloud
from local.stream_bridge import bridge_for
from testing.databases import Database
from testing.executions import Executions
from testing.key_index_tables import drift, table_of
from testing.servers import ROOT, local_client
from tests.e2e.conftest import stop_following

STACK = "Turns"
TABLES: list[Any] = ["TurnsSlow", {"table": "TurnsKept", "keyIndex": True}]
NEWER = f"{__version__}.post1"
READ_RATE = 2
"""400 collections of 0.5 read units each, and a first look: more than a minute and a half."""

WRITE_RATE = 10
"""200 sentinels of 2 write units: 40 seconds, after the walk before it and the index."""

LONGEST_SECONDS = 300.0


def newer_version(folder: Path) -> Path:
    """The project with other code, as a release would be."""
    project = folder / "newer"
    left_out = (".*", "node_modules", "cdk.out", "__pycache__", "tests", "docs")
    shutil.copytree(ROOT, project, ignore=shutil.ignore_patterns(*left_out), symlinks=True)
    for name in (".venv", ".cache"):
        (project / name).symlink_to((ROOT / name).resolve())
    version = project / "lambdas" / "keyhop" / "__init__.py"
    text, count = re.subn(re.escape(__version__), NEWER, version.read_text())
    assert count == 1
    version.write_text(text)
    return project


@pytest.fixture
def followed(cloud: Cloud) -> Iterator[None]:
    yield
    stop_following(cloud, "TurnsKept/")


@pytest.mark.usefixtures("followed")
@pytest.mark.timeout(900)
def test_runs_a_build_and_the_keeper_go_on_under_a_version_that_is_deployed_meanwhile(
    cloud: Cloud, tmp_path: Path
) -> None:
    older = replace(cloud, folder=tmp_path, outputs={})
    outputs = older.deploy(TABLES, stackName=STACK, workerTimeoutSeconds="30")
    database = Database("dynamodb_local", cloud.dynamodb)
    keys = database.collections("TurnsSlow", [1] * 400, filling=3_000)
    database.collections("TurnsKept", [1] * 200)
    bucket = outputs["ResultsBucketName"]
    runs = Executions(cloud.client, outputs["StateMachineArn"], bucket)
    builds = Executions(cloud.client, outputs["BuildKeyIndexArn"], bucket)
    over, written = Event(), []

    def write() -> None:
        # DynamoDB Local fails a request now and then while it makes an index.
        client = local_client(cloud.dynamodb, attempts=8)
        while not over.wait(0.5):
            key = {"pk": {"S": f"new{len(written)}"}, "sk": {"S": "1"}}
            client.put_item(TableName="TurnsKept", Item=key)
            written.append(key)

    writer = Thread(target=write, daemon=True)
    bridge = bridge_for(older)
    with bridge.running():
        writer.start()
        slow = {"table": "TurnsSlow", "segments": 8, "maxConcurrency": 1, "maxReadRate": READ_RATE}
        run = runs.start(slow, "turns")
        given = {"table": "TurnsKept", "maxWriteRate": WRITE_RATE, "graceSeconds": 1}
        build = builds.start(given)
        newer = replace(older, project=newer_version(tmp_path))
        newer.deploy(TABLES, stackName=STACK, workerTimeoutSeconds="30")
        status = runs.states.describe_execution(executionArn=run)["status"]
        assert status == "RUNNING", "it was to last longer than the deployment"
        listed = runs.follow(run, LONGEST_SECONDS)
        built = builds.follow(build, LONGEST_SECONDS)
        over.set()
        writer.join()
    assert listed.status == "SUCCEEDED", listed
    assert sorted(key["pk"]["S"] for key in runs.keys("turns")) == sorted(keys)
    assert runs.manifest("turns")["software_version"] == NEWER
    assert built.status == "SUCCEEDED", built
    assert written
    bridge.deliver_all()
    sentinel = Sentinel.of(table_of(database, "TurnsKept").space)
    assert drift(database, "TurnsKept", sentinel) == (set(), set())
    assert json.dumps(built.output).count(NEWER) > 0
