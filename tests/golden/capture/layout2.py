"""Runs as layout version 2 stored them, gone on with."""

import json
import shutil
from contextlib import suppress
from typing import Any

from keyhop.errors import BudgetSpent
from keyhop.jobs.failure import RunFailed

from tests.golden.capture.contexts import FILES
from tests.golden.capture.places import machine_on, objects, somewhere, stand_in
from tests.machine import Machine

LAYOUT = FILES / "layout2"


def write_layout() -> None:
    """Store runs of this version; only ever for a new layout version."""
    shutil.rmtree(LAYOUT, ignore_errors=True)
    how = ("--segments", "4", "--workers", "1")
    with somewhere(), stand_in() as database:
        database.keys("Orders", "--output", str(LAYOUT / "finished"), *how)
        place = str(LAYOUT / "unfinished")
        database.keys("Orders", "--output", place, "--max-read-units", "13", *how)
        for lock in LAYOUT.rglob(".lock"):
            lock.unlink()
    for name, limit in (("finished", {}), ("unfinished", {"maxReadUnits": 30})):
        with stand_in() as database, machine_on(database, "Orders") as machine:
            given = {"table": "Orders", "segments": 64, "maxConcurrency": 1, **limit}
            fleet_run(machine, given)
            for key, content in objects(machine).items():
                path = LAYOUT / f"s3-{name}" / key
                path.parent.mkdir(parents=True, exist_ok=True)
                path.write_bytes(content)


def fleet_run(machine: Machine, given: dict[str, Any]) -> None:
    """An execution to its end, which may be that its budget is spent."""
    execution = machine.execution("stored")
    state = machine.plan(given, execution)
    try:
        machine.go_on(state, execution)
    except BudgetSpent as spent:
        state["failure"] = {"Error": "BudgetSpent", "Cause": str(spent)}
        with suppress(RunFailed):
            machine.clean_up(state, execution)


def resumed(name: str) -> tuple[int, str, list[str]]:
    """`keyhop keys --resume` on a copy of a stored run: status, what it says, the keys it lists."""
    with somewhere() as (folder, _), stand_in() as database:
        place = folder / "stored"
        shutil.copytree(LAYOUT / name, place)
        result = database.keys("Orders", "--output", str(place), "--resume")
        manifest = place / "manifest.json"
        parts = json.loads(manifest.read_text())["parts"] if manifest.exists() else ()
        files = [(place / part["name"]).read_text() for part in parts]
        lines = [line for file in files for line in file.splitlines()]
        return result.status, result.err, sorted(json.loads(line)["pk"]["S"] for line in lines)


def resumed_in_s3(name: str, **more: Any) -> tuple[dict[str, Any], list[str]]:
    """The fleet's resume of a stored run: its output, and the keys that the run lists."""
    with stand_in() as database, machine_on(database, "Orders") as machine:
        stored = LAYOUT / f"s3-{name}"
        for path in stored.rglob("*"):
            if path.is_file():
                key = str(path.relative_to(stored))
                machine.runs.s3.put_object(Bucket="results", Key=key, Body=path.read_bytes())
        output = machine.start({"table": "Orders", "resume": "stored", **more}, name="again")
        return output, sorted(key["pk"]["S"] for key in machine.keys("stored"))
