"""Capture the outputs of building, verifying and removing a key index."""

import json
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from keyhop.key_index.sentinel import Sentinel

from testing.databases import Database, keyhop
from testing.key_index_tables import table_of
from testing.servers import dynamodb_local
from tests.golden.capture.places import empty_environment, machine_on, objects
from tests.golden.normal import normal, pattern_of, shape
from tests.integration.key_index.machines import Machines


def key_indexes() -> dict[str, Any]:
    """Return the outputs of the key index's state machines, and the reports of `keyhop index`."""
    with dynamodb_local() as url:
        database = Database("dynamodb_local", url)
        return {"machines": index_machines(database), "command": index_command(database)}


def index_machines(database: Database) -> dict[str, Any]:
    """Run BuildKeyIndex, VerifyKeyIndex and RemoveKeyIndex, with drift in between."""
    database.collections("ByMachine", [1, 6, 2] * 10)
    results: dict[str, Any] = {}
    with machine_on(database, "ByMachine") as machine:
        machine.places = {"ByMachine": None}
        machines = Machines(machine)
        arguments = {"table": "ByMachine", "graceSeconds": 0, "maxWriteRate": 10_000}

        def run(name: str, action: str, options: Mapping[str, Any]) -> None:
            output = machines.start(action, {**arguments, **options})
            results[name] = shape([output]) if "dryRun" in options else normal(output)

        run("plan", "build", {"dryRun": True})
        run("build", "build", {})
        harm(database, "ByMachine")
        run("look", "verify", {"repair": False})
        run("verify", "verify", {})
        results["not yet by index"] = normal(machine.start({"table": "ByMachine"}, name="by-skip"))
        run("verify again", "verify", {})
        results["by index"] = normal(machine.start({"table": "ByMachine"}, name="by-index"))
        results["bucket"] = sorted({pattern_of(key) for key in objects(machine)})
        arguments = {"table": "ByMachine"}
        run("remove", "remove", {})
        run("remove again", "remove", {})
    return results


def harm(database: Database, table: str) -> None:
    """Delete the sentinels of two collections, and add one without a collection."""
    sentinel = Sentinel.of(table_of(database, table).space)
    for name in ("k3", "k4"):
        key = sentinel.key_of({"pk": {"S": name}})
        database.client.delete_item(TableName=table, Key=key)
    orphan = sentinel.item_of({"pk": {"S": "nobody"}})
    database.client.put_item(TableName=table, Item=orphan)


def index_command(database: Database) -> dict[str, Any]:
    """Run `keyhop index`, and return its exit statuses, its reports and the user's state files."""
    database.collections("ByHand", [1, 6, 2] * 10)
    results = {}
    with empty_environment() as (folder, _):
        for name, *arguments in (
            ("plan", "build", "--dry-run"),
            ("build", "build"),
            ("look", "verify", "--no-repair", "--grace", "0"),
            ("verify", "verify", "--grace", "0"),
            ("status", "status"),
            ("remove", "remove"),
            ("status after all", "status"),
        ):
            if name == "look":
                harm(database, "ByHand")
            options = ("--endpoint-url", database.url, "--format", "typed-json", "--quiet")
            if name in ("build", "verify", "remove"):
                options = (*options, "--yes")
            result = keyhop("index", arguments[0], "ByHand", *arguments[1:], *options)
            report = json.loads(result.out) if result.out else None
            results[name] = {
                "status": result.status,
                "report": shape([report]) if name == "plan" else normal(report),
                "state": files_in(folder / "state"),
            }
    return results


def files_in(folder: Path) -> list[str]:
    """Return patterns of the files in a folder, without the hashes of table identities."""
    names = (str(path.relative_to(folder)) for path in folder.rglob("*") if path.is_file())
    return sorted({re.sub(r"-[0-9a-f]{8,}(?=/)", "-<hash>", name) for name in names})
