"""Check `keyhop keys` on the suite's tables, started as a user starts it."""

import json
import subprocess
import sys
import tempfile
from pathlib import Path

from keyhop.dynamodb.values import from_json

from tests.live.fixtures import INDEX, Fixture, comparable
from tests.live.report import Report, expect, expect_equal, expect_keys

SEGMENTS = 16
COMMAND_SECONDS = 300
INTERRUPTED = (130, 143)


def check_command(tables: list[Fixture], report: Report) -> None:
    """Run the command on each table, and on the index."""
    for table in tables:
        index = INDEX if table.has_index else None
        report.check(
            "command",
            lambda table=table, index=index: keyhop_keys(table, index),
            f"{table.name}{f' --index {index}' if index else ''}",
        )


def keyhop_keys(table: Fixture, index: str | None) -> str:
    """Check that each key is listed once, and that hops cost less than half of a full read."""
    with tempfile.TemporaryDirectory(prefix="keyhop-live-") as folder:
        summary_file = Path(folder) / "report.json"
        arguments = [
            *("keys", table.name, "--format", "typed-json", "--segments", str(SEGMENTS), "--quiet"),
            *("--summary", str(summary_file)),
            *(("--index", index) if index else ()),
        ]
        # In this process its handling of Ctrl-C would interfere with the suite's.
        process = subprocess.run(
            [sys.executable, "-m", "keyhop", *arguments],
            capture_output=True,
            check=False,
            timeout=COMMAND_SECONDS,
        )
        if process.returncode in INTERRUPTED:
            raise KeyboardInterrupt
        expect(
            process.returncode == 0, f"exit status {process.returncode}: {process.stderr.decode()}"
        )
        summary = json.loads(summary_file.read_bytes())
    name = "day" if index else "pk"
    lines = process.stdout.decode().splitlines()
    keys = [comparable(from_json(json.loads(line))[name]) for line in lines]
    expect_keys(keys, {comparable(item[name]) for item in table.items})
    expect_equal(summary["no_progress_hops"], 0, "hops without progress")
    if table.shape == "hops":
        expect_equal(summary["method"], "skip", "method")
        expect(
            summary["read_units"] < table.full_read_units / 2,
            f"{summary['read_units']} read units; reading it through costs {table.full_read_units}",
        )
    return f"{len(keys)} keys, {summary['read_units']:g} read units by {summary['method']}"
