"""Deploy an early version, start one job of each kind, and deploy this version.

Each job ends with the right result, or fails with a sentence that says what to start again. The
inputs of the state machines and the stored formats of the early version are different, so this is
harder than an upgrade between two releases.
"""

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pytest

from local.cloud import Cloud
from local.stream_bridge import bridge_for
from testing.databases import Database
from testing.executions import Executions
from testing.key_index_tables import scanned
from testing.servers import ROOT
from tests.e2e.conftest import stop_following

EARLY = "eb41f3b"
STACK = "Upgraded"
PAIR = {"source": "UpOrders", "destination": "UpOrdersByDay"}
TABLES: list[Any] = [
    "UpListed",
    {"table": "UpKept", "keyIndex": True},
    {"table": "UpEach", "each": {"put": True}},
    {"table": "UpReported", "report": True},
    {"table": "UpSharded", "sharding": {"partitionKey": "pk"}},
]
ITEM = {"sk": "#feature", "plan": "free"}
TEMPLATE = {
    "items": [
        {
            "name": "order",
            "match": {"pk": "USER#{user}", "sk": "ORDER#{order}"},
            "set": {"pk": "DAY#{day}", "sk": "ORDER#{order}"},
            "keep": {"pk": "oldPk"},
        }
    ]
}
SHARDS: Any = {
    "pk": {"S": "/srv/budget.xlsx"},
    "number_of_shards": {"N": "4"},
    "last_updated": {"N": "1700000000"},
    "shard_history": {"SS": ["1700000000:4"]},
    "settle_seconds": {"N": "2"},
}
"""A key with four shards in the metadata of the early version."""

METADATA = f"{STACK}-shards-UpSharded"
CONTEXT = {
    "stackName": STACK,
    "workerTimeoutSeconds": "30",
    "rekey": json.dumps([PAIR]),
}
ORDERS = 300
COPIED_PER_SECOND = 2
"""A rate at which the copy has not ended when this version is deployed."""

REFUSED = {
    "BuildKeyIndex": "Remove the key index with that version, and build it again",
    "RekeyBackfill": "End the re-key with that version, and begin it again",
}
"""The jobs whose stored formats have changed, with the advice in their cause."""

LONGEST_SECONDS = 400.0


def order(number: int) -> dict[str, Any]:
    """Return an item of the table that is re-keyed."""
    return {
        "pk": {"S": f"USER#{number % 40}"},
        "sk": {"S": f"ORDER#{number}"},
        "day": {"S": str(number % 7)},
    }


def early_version(folder: Path) -> Path:
    """Return the project at the commit EARLY."""
    project = folder / "early"
    project.mkdir()
    archived = subprocess.run(["git", "archive", EARLY], cwd=ROOT, capture_output=True, check=False)
    if archived.returncode:
        pytest.skip(f"this checkout does not have the commit {EARLY}: it is a shallow one")
    subprocess.run(["tar", "x", "-C", str(project)], input=archived.stdout, check=True)
    for name in (".venv", ".cache"):
        (project / name).symlink_to((ROOT / name).resolve())
    return project


@dataclass
class Early:
    """The deployment of the early version, and its command."""

    cloud: Cloud
    database: Database

    def machine(self, name: str) -> Executions:
        """Return the executions of one of its state machines."""
        outputs = self.cloud.outputs
        return Executions(self.cloud.client, outputs[f"{name}Arn"], outputs["ResultsBucketName"])

    def keyhop(self, *words: str) -> None:
        """Run its command, with tenacity from the layer of its functions."""
        (tenacity,) = (ROOT / ".cache" / "layers").glob("*/python/tenacity")
        library = self.cloud.folder / "library"
        if not library.exists():
            shutil.copytree(self.cloud.project / "lambdas", library)
            shutil.copytree(tenacity, library / "tenacity")
        process = subprocess.run(
            [sys.executable, "-m", "keyhop", *words],
            cwd=self.cloud.folder,
            env={**os.environ, **self.cloud.exports, "PYTHONPATH": str(library)},
            capture_output=True,
            text=True,
            check=False,
        )
        assert process.returncode == 0, process.stdout + process.stderr


@pytest.fixture
def early(cloud: Cloud, tmp_path: Path) -> Iterator[Early]:
    project = early_version(tmp_path)
    deployed = replace(cloud, folder=tmp_path, outputs={}, project=project)
    deployed.deploy(TABLES, **CONTEXT)
    yield Early(deployed, Database("dynamodb_local", cloud.dynamodb))
    stop_following(cloud, "Up")


@pytest.mark.timeout(1200)
def test_jobs_of_an_early_version_succeed_or_say_what_to_start_again(early: Early) -> None:
    database = early.database
    listed = database.collections("UpListed", [1] * 400, filling=3_000)
    database.collections("UpKept", [1] * 200)
    each = database.collections("UpEach", [1] * 400)
    database.collections("UpReported", [3] * 200)
    database.create("UpOrders")
    database.fill("UpOrders", map(order, range(ORDERS)))
    database.create("UpSharded")
    database.create(METADATA, sort=None)
    database.client.put_item(TableName=METADATA, Item=SHARDS)
    template = early.cloud.folder / "by-day.json"
    template.write_text(json.dumps(TEMPLATE))
    pair = (PAIR["source"], "--to", PAIR["destination"])
    jobs: dict[str, Any] = {
        "StateMachine": {"table": "UpListed", "segments": 8, "maxConcurrency": 1, "maxReadRate": 2},
        "BuildKeyIndex": {"table": "UpKept", "maxWriteRate": 10, "graceSeconds": 1},
        "ForEachKey": {"table": "UpEach", "put": ITEM, "maxWriteRate": 10},
        "ReportKeys": {"table": "UpReported", "maxReadRate": 2, "maxReadUnits": 200},
        "DrainShards": {"table": "UpSharded", "key": SHARDS["pk"]["S"], "shards": 1},
    }
    bridge = bridge_for(early.cloud)
    with bridge.running():
        early.keyhop("rekey", "create", *pair, "--template", str(template), "--yes")
        slowly = ("--max-write-rate", str(COPIED_PER_SECOND))
        early.keyhop("rekey", "start", *pair, "--stack", STACK, *slowly, "--yes")
        executions = {name: early.machine(name).start(job) for name, job in jobs.items()}
        (copy,) = early.machine("RekeyBackfill").of.latest(10)
        executions["RekeyBackfill"] = copy.execution
        replace(early.cloud, project=ROOT).deploy(TABLES, **CONTEXT)
        runs = {
            name: early.machine(name).follow(execution, LONGEST_SECONDS)
            for name, execution in executions.items()
        }
    for name, sentence in REFUSED.items():
        refused = runs.pop(name)
        assert (refused.status, sentence in str(refused.cause)) == ("FAILED", True), refused
    for name, run in runs.items():
        assert (name, run.status, run.error, run.cause) == (name, "SUCCEEDED", "", "")
    rows = early.machine("StateMachine").keys(runs["StateMachine"].name)
    assert sorted(row["pk"]["S"] for row in rows) == sorted(listed)
    put = [item["pk"]["S"] for item in scanned(database, "UpEach") if item["sk"]["S"] == "#feature"]
    assert sorted(put) == sorted(each)
    assert 0 < dict(runs["ReportKeys"].output or {})["read_units"] <= 200
    assert dict(runs["DrainShards"].output or {})["shards"] == 1
