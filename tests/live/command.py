"""`keyhop keys` on the suite's tables, as a user starts it."""

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
    """On each table, and on the index."""
    for table in tables:
        index = INDEX if table.has_index else None
        report.check(
            "command",
            lambda table=table, index=index: keyhop_keys(table, index),
            f"{table.name}{f' --index {index}' if index else ''}",
        )


def keyhop_keys(table: Fixture, index: str | None) -> str:
    """All keys, once each; a skip-scan costs less than reading the large collection."""
    with tempfile.TemporaryDirectory(prefix="keyhop-live-") as folder:
        report = Path(folder) / "report.json"
        arguments = [
            *("keys", table.name, "--format", "typed-json", "--segments", str(SEGMENTS), "--quiet"),
            *("--summary", str(report)),
            *(("--index", index) if index else ()),
        ]
        # A process of its own: in this one its handling of Ctrl-C would be in the suite's way.
        done = subprocess.run(
            [sys.executable, "-m", "keyhop", *arguments],
            capture_output=True,
            check=False,
            timeout=COMMAND_SECONDS,
        )
        if done.returncode in INTERRUPTED:
            raise KeyboardInterrupt
        expect(done.returncode == 0, f"exit status {done.returncode}: {done.stderr.decode()}")
        told = json.loads(report.read_bytes())
    name = "day" if index else "pk"
    lines = done.stdout.decode().splitlines()
    keys = [comparable(from_json(json.loads(line))[name]) for line in lines]
    expect_keys(keys, {comparable(item[name]) for item in table.items})
    expect_equal(told["no_progress_hops"], 0, "hops without progress")
    if table.shape == "hops":
        expect_equal(told["method"], "skip", "method")
        expect(
            told["read_units"] < table.full_read_units / 2,
            f"{told['read_units']} read units; reading it through costs {table.full_read_units}",
        )
    return f"{len(keys)} keys, {told['read_units']:g} read units by {told['method']}"
