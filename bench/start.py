"""CPU of a start: of `keyhop keys`, of boto3's client alone, and of Python, to their first request.

A process is killed when its first request arrives, and asked what it has used.
"""

import os
import signal
import socket
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from contextlib import closing
from pathlib import Path

from bench.command import LIBRARY, environment, halves, keyhop

ROUNDS = 7
SECONDS = 60.0
_BOTO3 = "import sys, boto3; boto3.client('dynamodb', endpoint_url=sys.argv[1]).list_tables()"
_SOCKET = (
    "import sys, socket; port = int(sys.argv[1].rpartition(':')[2]);"
    "socket.create_connection(('127.0.0.1', port)).sendall(b'GET')"
)


def starts(library: Path = LIBRARY) -> dict[str, float]:
    """Milliseconds of CPU of each, the least of some rounds by turns."""
    with closing(socket.create_server(("127.0.0.1", 0))) as door:
        door.settimeout(SECONDS)
        url = f"http://127.0.0.1:{door.getsockname()[1]}"
        ways = {
            "python": [sys.executable, "-c", _SOCKET, url],
            "boto3": [sys.executable, "-c", _BOTO3, url],
            "keyhop": keyhop(url),
        }
        least = dict.fromkeys(ways, float("inf"))
        with tempfile.TemporaryDirectory() as folder:
            for _ in range(ROUNDS):
                for name, command in ways.items():
                    least[name] = min(least[name], _milliseconds(door, command, library, folder))
    return least


def _milliseconds(door: socket.socket, command: Sequence[str], library: Path, folder: str) -> float:
    process = subprocess.Popen(command, env=environment(library), cwd=folder)
    os.sched_setaffinity(process.pid, halves()[0])
    try:
        caller, _ = door.accept()
        with caller:
            caller.recv(1)
    finally:
        os.kill(process.pid, signal.SIGKILL)  # Popen's own would wait, and the figures be lost
        _, _, used = os.wait4(process.pid, 0)
        process.returncode = 0
    return 1e3 * (used.ru_utime + used.ru_stime)


if __name__ == "__main__":
    print({name: round(ms) for name, ms in starts().items()})
