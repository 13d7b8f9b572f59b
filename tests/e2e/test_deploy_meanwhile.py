"""Deploy a new version while executions and the keeper are running; all of them continue."""

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
"""The rate at which 400 collections of 0.5 read units take more than a minute and a half."""

WRITE_RATE = 10
"""The rate at which 200 sentinels of 2 write units take 40 seconds."""

LONGEST_SECONDS = 300.0


def newer_version(folder: Path) -> Path:
    """Return a copy of the project with another version, as of a release."""
    project = folder / "newer"
    excluded = (".*", "node_modules", "cdk.out", "__pycache__", "tests", "docs")
    shutil.copytree(ROOT, project, ignore=shutil.ignore_patterns(*excluded), symlinks=True)
    for name in (".venv", ".cache"):
        (project / name).symlink_to((ROOT / name).resolve())
    version = project / "lambdas" / "keyhop" / "__init__.py"
    text, count = re.subn(re.escape(__version__), NEWER, version.read_text())
    assert count == 1
    version.write_text(text)
    return project


@pytest.fixture
def mapping_cleanup(cloud: Cloud) -> Iterator[None]:
    yield
    stop_following(cloud, "TurnsKept/")


@pytest.mark.usefixtures("mapping_cleanup")
@pytest.mark.timeout(900)
def test_runs_a_build_and_the_keeper_continue_under_a_new_version(
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
        # DynamoDB Local sometimes fails a request while it creates an index.
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
        build = builds.start({"table": "TurnsKept", "maxWriteRate": WRITE_RATE, "graceSeconds": 1})
        newer = replace(older, project=newer_version(tmp_path))
        newer.deploy(TABLES, stackName=STACK, workerTimeoutSeconds="30")
        status = runs.states.describe_execution(executionArn=run)["status"]
        assert status == "RUNNING", "it must take longer than the deployment"
        ended_run = runs.follow(run, LONGEST_SECONDS)
        ended_build = builds.follow(build, LONGEST_SECONDS)
        over.set()
        writer.join()
    assert ended_run.status == "SUCCEEDED", ended_run
    assert sorted(key["pk"]["S"] for key in runs.keys("turns")) == sorted(keys)
    assert runs.manifest("turns")["software_version"] == NEWER
    assert ended_build.status == "SUCCEEDED", ended_build
    assert written
    bridge.deliver_all()
    sentinel = Sentinel.of(table_of(database, "TurnsKept").space)
    assert drift(database, "TurnsKept", sentinel) == (set(), set())
    assert NEWER in json.dumps(ended_build.output)
