"""CPU time from the start of a process to its first request: `keyhop keys`, boto3's client, Python.

A process is killed when its first request arrives, and the system reports the time that it used.
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
    """Return each way's milliseconds of CPU: the minimum of rounds in which they take turns."""
    with closing(socket.create_server(("127.0.0.1", 0))) as door:
        door.settimeout(SECONDS)
        url = f"http://127.0.0.1:{door.getsockname()[1]}"
        ways = {
            "python": [sys.executable, "-c", _SOCKET, url],
            "boto3": [sys.executable, "-c", _BOTO3, url],
            "keyhop": keyhop(url),
        }
        fastest = dict.fromkeys(ways, float("inf"))
        with tempfile.TemporaryDirectory() as folder:
            for _ in range(ROUNDS):
                for name, command in ways.items():
                    fastest[name] = min(
                        fastest[name], _milliseconds(door, command, library, folder)
                    )
    return fastest


def _milliseconds(door: socket.socket, command: Sequence[str], library: Path, folder: str) -> float:
    process = subprocess.Popen(command, env=environment(library), cwd=folder)
    os.sched_setaffinity(process.pid, halves()[0])
    try:
        caller, _ = door.accept()
        with caller:
            caller.recv(1)
    finally:
        os.kill(
            process.pid, signal.SIGKILL
        )  # Popen's method would wait for the process and lose its figures
        _, _, used = os.wait4(process.pid, 0)
        process.returncode = 0
    return 1e3 * (used.ru_utime + used.ru_stime)


if __name__ == "__main__":
    print({name: round(ms) for name, ms in starts().items()})
