"""What building, verifying and removing a key index puts out."""

import json
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from keyhop.key_index.sentinel import Sentinel

from testing.databases import Database, keyhop
from testing.key_index_tables import table_of
from testing.servers import dynamodb_local
from tests.golden.capture.places import machine_on, objects, somewhere
from tests.golden.normal import normal, pattern_of, shape
from tests.integration.key_index.machines import Machines


def key_indexes() -> dict[str, Any]:
    """What the state machines of the key index put out, and what `keyhop index` reports."""
    with dynamodb_local() as url:
        database = Database("dynamodb_local", url)
        return {"machines": index_machines(database), "command": index_command(database)}


def index_machines(database: Database) -> dict[str, Any]:
    """BuildKeyIndex, VerifyKeyIndex, RemoveKeyIndex, with drift in between."""
    database.collections("ByMachine", [1, 6, 2] * 10)
    found: dict[str, Any] = {}
    with machine_on(database, "ByMachine") as machine:
        machine.places = {"ByMachine": None}
        machines = Machines(machine)
        given = {"table": "ByMachine", "graceSeconds": 0, "maxWriteRate": 10_000}

        def act(name: str, action: str, more: Mapping[str, Any]) -> None:
            told = machines.start(action, {**given, **more})
            found[name] = shape([told]) if "dryRun" in more else normal(told)

        act("plan", "build", {"dryRun": True})
        act("build", "build", {})
        harm(database, "ByMachine")
        act("look", "verify", {"repair": False})
        act("verify", "verify", {})
        found["not yet by index"] = normal(machine.start({"table": "ByMachine"}, name="by-skip"))
        act("verify again", "verify", {})
        found["by index"] = normal(machine.start({"table": "ByMachine"}, name="by-index"))
        found["bucket"] = sorted({pattern_of(key) for key in objects(machine)})
        given = {"table": "ByMachine"}
        act("remove", "remove", {})
        act("remove again", "remove", {})
    return found


def harm(database: Database, table: str) -> None:
    """Two collections lose their sentinels, and there is one of no collection."""
    sentinel = Sentinel.of(table_of(database, table).space)
    for name in ("k3", "k4"):
        key = sentinel.key_of({"pk": {"S": name}})
        database.client.delete_item(TableName=table, Key=key)
    alone = sentinel.item_of({"pk": {"S": "nobody"}})
    database.client.put_item(TableName=table, Item=alone)


def index_command(database: Database) -> dict[str, Any]:
    """`keyhop index`: exit statuses and reports; the state in the user's folder."""
    database.collections("ByHand", [1, 6, 2] * 10)
    found = {}
    with somewhere() as (folder, _):
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
            where = ("--endpoint-url", database.url, "--format", "typed-json", "--quiet")
            if name in ("build", "verify", "remove"):
                where = (*where, "--yes")
            result = keyhop("index", arguments[0], "ByHand", *arguments[1:], *where)
            told = json.loads(result.out) if result.out else None
            found[name] = {
                "status": result.status,
                "report": shape([told]) if name == "plan" else normal(told),
                "state": files_in(folder / "state"),
            }
    return found


def files_in(folder: Path) -> list[str]:
    """Patterns of the names below a folder, without the hash of a table's identity."""
    names = (str(path.relative_to(folder)) for path in folder.rglob("*") if path.is_file())
    return sorted({re.sub(r"-[0-9a-f]{8,}(?=/)", "-<hash>", name) for name in names})
