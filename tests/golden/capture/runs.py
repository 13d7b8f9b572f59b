"""What runs leave behind: of the command, and of a fleet."""

import json
import re
from collections.abc import Mapping
from typing import Any

from tests.golden.capture.places import machine_on, objects, somewhere, stand_in
from tests.golden.normal import normal, pattern_of, shape
from tests.integration.fleet.test_logical import through

RUNS: dict[str, tuple[str, ...]] = {
    "skip": (),
    "scan as csv": ("--method", "scan", "--format", "csv"),
    "index": ("--index", "by-day"),
    "logical": ("--logical",),
    "stopped": ("--max-read-units", "13"),
    "verified": ("--verify", "1"),
}


def command_runs() -> dict[str, Any]:
    """What `keyhop keys Orders --output DIR --summary FILE` leaves behind."""
    found = {}
    with somewhere() as (folder, _), stand_in() as database:
        for name, arguments in RUNS.items():
            path, report = folder / name, folder / "report.json"
            where = ("--output", str(path), "--summary", str(report))
            how = ("--segments", "4", "--threads", "1")
            result = database.keys("Orders", *where, *how, *arguments)
            told = json.loads(report.read_text().replace(str(folder), "<place>"))
            files = {str(p.relative_to(path)): p for p in path.rglob("*") if p.is_file()}
            content = {file: at.read_bytes() for file, at in files.items()}
            found[name] = {
                "status": result.status,
                "report": normal(told),
                "summary": sorted(set(re.findall(r"(?m)^  ([a-z]+) ", result.err))),
                **run_files(content),
            }
    return found


def run_files(content: Mapping[str, bytes]) -> dict[str, Any]:
    """A run's files, by their names within the run."""
    names = sorted(name for name in content if name.startswith("commits/"))
    commits = [json.loads(content[name]) for name in names]
    # How many slices there are depends on time, and so does where those in between leave off.
    lasting = [commit for commit in commits if commit["finished"]] or commits[-1:]
    found: dict[str, Any] = {
        "files": sorted({pattern_of(name) for name in content}),
        "commits": shape(lasting),
        "commits_say": {
            "keys": sum(
                block[1] for c in commits for part in c["parts"] for block in part["blocks"]
            ),
            "ended": sum(commit["ended"] for commit in commits),
            "groups": len({commit["group"] for commit in commits}),
        },
    }
    for name in ("run.json", "manifest.json", "progress.json", "fold.json"):
        if name in content:
            told = json.loads(content[name])
            for listed in ("parts", "files"):
                if isinstance(told.get(listed), list):
                    told[listed] = shape(told[listed])
            told["ledger"] = shape([told["ledger"]]) if "ledger" in told else "no ledger"
            found[name] = normal(told)
    return found


FLEET: dict[str, dict[str, Any]] = {
    "plain": {},
    "scan as csv": {"method": "scan", "fileFormat": "csv"},
    "verified": {"verifyShare": 1},
    "logical": {"logical": True},
    "index": {"index": "by-day"},
}


def fleet_runs() -> dict[str, Any]:
    """What executions of EnumerateKeys put out, and leave in the bucket."""
    found: dict[str, Any] = {}
    with stand_in() as database, machine_on(database, "Orders") as machine:
        planned = machine.start({"table": "Orders", "dryRun": True}, name="plan")
        found["plan only"] = {"output": shape([planned])}
        for number, (name, more) in enumerate(FLEET.items()):
            run = f"run-{number}"
            output = through(machine, {"table": "Orders", "segments": 64, **more}, run)
            prefix = f"runs/{run}/"
            there = {k.removeprefix(prefix): v for k, v in objects(machine).items() if prefix in k}
            found[name] = {"output": normal(output), **run_files(there)}
        found["bucket"] = sorted({pattern_of(key).partition("/")[0] for key in objects(machine)})
    return found
