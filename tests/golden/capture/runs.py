"""Capture the files of runs of the command and of a fleet."""

import json
import re
from collections.abc import Mapping
from typing import Any

from tests.golden.capture.places import empty_environment, machine_on, objects, stand_in
from tests.golden.normal import normal, pattern_of, shape

RUNS: dict[str, tuple[str, ...]] = {
    "skip": (),
    "scan as csv": ("--method", "scan", "--format", "csv"),
    "index": ("--index", "by-day"),
    "logical": ("--logical",),
    "stopped": ("--max-read-units", "13"),
    "verified": ("--verify", "1"),
}


def command_runs() -> dict[str, Any]:
    """Return the outcomes and files of `keyhop keys Orders --output DIR --summary FILE`."""
    results = {}
    with empty_environment() as (folder, _), stand_in() as database:
        for name, arguments in RUNS.items():
            path, report = folder / name, folder / "report.json"
            output_options = ("--output", str(path), "--summary", str(report))
            scan_options = ("--segments", "4", "--threads", "1")
            result = database.keys("Orders", *output_options, *scan_options, *arguments)
            summary = json.loads(report.read_text().replace(str(folder), "<place>"))
            files = {str(p.relative_to(path)): p for p in path.rglob("*") if p.is_file()}
            content = {file: file_path.read_bytes() for file, file_path in files.items()}
            results[name] = {
                "status": result.status,
                "report": normal(summary),
                "summary": sorted(set(re.findall(r"(?m)^  ([a-z]+) ", result.err))),
                **run_files(content),
            }
    return results


def run_files(content: Mapping[str, bytes]) -> dict[str, Any]:
    """Return the normalised files of a run, from their content by name."""
    names = sorted(name for name in content if name.startswith("commits/"))
    commits = [json.loads(content[name]) for name in names]
    # The number of slices and the checkpoints between them depend on time.
    finished = [commit for commit in commits if commit["finished"]] or commits[-1:]
    result: dict[str, Any] = {
        "files": sorted({pattern_of(name) for name in content}),
        "commits": shape(finished),
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
            content_json = json.loads(content[name])
            for field in ("parts", "files"):
                if isinstance(content_json.get(field), list):
                    content_json[field] = shape(content_json[field])
            ledger = content_json.get("ledger")
            content_json["ledger"] = shape([ledger]) if "ledger" in content_json else "no ledger"
            result[name] = normal(content_json)
    return result


FLEET: dict[str, dict[str, Any]] = {
    "plain": {},
    "scan as csv": {"method": "scan", "fileFormat": "csv"},
    "verified": {"verifyShare": 1},
    "logical": {"logical": True},
    "index": {"index": "by-day"},
}


def fleet_runs() -> dict[str, Any]:
    """Return the outputs of executions of EnumerateKeys, and their files in the bucket."""
    results: dict[str, Any] = {}
    with stand_in() as database, machine_on(database, "Orders") as machine:
        planned = machine.start({"table": "Orders", "dryRun": True}, name="plan")
        results["plan only"] = {"output": shape([planned])}
        for number, (name, options) in enumerate(FLEET.items()):
            run = f"run-{number}"
            output = machine.start({"table": "Orders", "segments": 64, **options}, run)
            prefix = f"runs/{run}/"
            files = {k.removeprefix(prefix): v for k, v in objects(machine).items() if prefix in k}
            results[name] = {"output": normal(output), **run_files(files)}
        results["bucket"] = sorted({pattern_of(key).partition("/")[0] for key in objects(machine)})
    return results
