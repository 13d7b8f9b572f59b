"""A million keys from the stand-in: how much memory does the command need?

`python -m bench.million KEYS` serves a table of so many keys and prints its address; it ends when
its standard input closes.
"""

import json
import subprocess
import sys
import tempfile
import threading
from pathlib import Path
from typing import Any

from testing.servers import ROOT
from testing.standin.engine import Table
from testing.standin.server import StandIn

KEYS = 1_000_000
TABLE = "Million"
_RUN = """
import sys
from keyhop.cli.main import main
status = main(sys.argv[1:])
from bench.measure import peak_megabytes
print(f"peak {peak_megabytes():.1f}", file=sys.stderr)
sys.exit(status)
"""


def peak_megabytes() -> list[dict[str, Any]]:
    """Peak memory of `keyhop keys` on the table: to standard output, and into a directory."""
    server = subprocess.Popen(
        [sys.executable, "-m", "bench.million", str(KEYS)],
        cwd=ROOT,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    assert server.stdin is not None
    assert server.stdout is not None
    rows = []
    try:
        url = server.stdout.readline().strip()
        with tempfile.TemporaryDirectory() as folder:
            for name, more in (
                ("to standard output", []),
                ("with --output", ["--output", str(Path(folder) / "out")]),
            ):
                rows.append(_run(name, ["keys", TABLE, "--endpoint-url", url, *more], folder))
    finally:
        server.stdin.close()
        server.wait()
    return rows


def _run(name: str, arguments: list[str], folder: str) -> dict[str, Any]:
    report = Path(folder) / "report.json"
    ended = subprocess.run(
        [sys.executable, "-c", _RUN, *arguments, "--report", str(report), "--quiet"],
        cwd=ROOT,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        text=True,
        check=True,
    )
    found = json.loads(report.read_text())
    return {
        "way": name,
        "keys": found["keys"],
        "requests": found["requests"],
        "units": found["read_units"],
        "seconds": found["seconds"],
        "megabytes": float(ended.stderr.split("peak ")[1]),
    }


def serve(keys: int) -> None:
    """Serve the table until standard input closes."""
    stand_in = StandIn()
    table = Table(
        {
            "TableName": TABLE,
            "KeySchema": [
                {"AttributeName": "pk", "KeyType": "HASH"},
                {"AttributeName": "sk", "KeyType": "RANGE"},
            ],
            "AttributeDefinitions": [
                {"AttributeName": "pk", "AttributeType": "S"},
                {"AttributeName": "sk", "AttributeType": "S"},
            ],
        }
    )
    sort = {"S": "0"}
    data = {"S": "x" * 120}
    table.base.put_all(
        {"pk": {"S": f"customer-{number:08}"}, "sk": sort, "data": data} for number in range(keys)
    )
    table.reported = (keys, 150 * keys)
    stand_in.service.tables[TABLE] = table
    threading.Thread(target=stand_in.serve, daemon=True).start()
    print(stand_in.url, flush=True)
    sys.stdin.read()
    stand_in.stop()


if __name__ == "__main__":
    serve(int(sys.argv[1]))
