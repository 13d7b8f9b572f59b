"""Servers on loopback: DynamoDB Local, and dynalite as a second oracle."""

import http.client
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import boto3
from botocore.config import Config

ROOT = Path(__file__).resolve().parent.parent
DYNAMODB_LOCAL = ROOT / ".cache" / "dynamodb-local"
ON_LOOPBACK = ROOT / "testing" / "dynamodb-local.xml"
DYNALITE = ROOT / "node_modules" / "dynalite" / "cli.js"
START_SECONDS = 60.0
JAVA = ("java", "-Xmx1g", "-XX:TieredStopAtLevel=1", "-XX:+UseSerialGC", "-XX:-UsePerfData")
"""The command, with the compiler and the collector that suit a process of minutes."""
LOCAL_CREDENTIALS = {
    "region_name": "us-east-1",
    "aws_access_key_id": "local",
    "aws_secret_access_key": "local",
}
"""Credentials for the local databases, which accept any."""


def free_port() -> int:
    """Return a TCP port on loopback that is not in use at this moment."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


@contextmanager
def dynamodb_local(port: int | None = None) -> Iterator[str]:
    """Run DynamoDB Local in memory, until the block or this process ends; yield its address."""
    if not (DYNAMODB_LOCAL / "DynamoDBLocal.jar").exists():
        raise SystemExit("DynamoDB Local is not set up: run make setup.")
    port = port or free_port()
    jars = [DYNAMODB_LOCAL / "DynamoDBLocal.jar", DYNAMODB_LOCAL / "DynamoDBLocal_lib" / "*"]
    with tempfile.TemporaryDirectory(prefix="keyhop-") as folder:
        command = [
            *JAVA,
            f"-Djava.io.tmpdir={folder}",
            f"-Djava.library.path={DYNAMODB_LOCAL / 'DynamoDBLocal_lib'}",
            "-Dorg.eclipse.jetty.LEVEL=WARN",
            "-Dorg.eclipse.jetty.util.log.announce=false",
            "-classpath",
            ":".join(map(str, jars)),
            "org.eclipse.jetty.xml.XmlConfiguration",
            f"keyhop.port={port}",
            str(ON_LOOPBACK),
        ]
        with running(command, port) as url:
            yield url


@contextmanager
def dynalite(port: int | None = None) -> Iterator[str]:
    """Run dynalite in memory, until the block or this process ends; yield its address."""
    if not DYNALITE.exists():
        raise SystemExit("dynalite is not set up: run make setup.")
    port = port or free_port()
    delays = [f"--{what}TableMs=5" for what in ("create", "update", "delete")]
    command = ["node", str(DYNALITE), "--host", "127.0.0.1", "--port", str(port), *delays]
    with running(command, port) as url:
        yield url


@contextmanager
def running(
    command: Sequence[str], port: int, environment: Mapping[str, str] | None = None
) -> Iterator[str]:
    """Run a server on `port`, until the block or this process ends, and yield its address."""
    with tempfile.TemporaryFile() as log, child(command, ROOT, environment, log) as server:
        _wait_until_up(server, port, log)
        yield f"http://127.0.0.1:{port}"


@contextmanager
def child(
    command: Sequence[str], folder: Path, environment: Mapping[str, str] | None, log: Any
) -> Iterator["subprocess.Popen[bytes]"]:
    """Run a process, which is killed with its children when the block or this process ends.

    folder: Its working directory.
    log: A file for its output.
    """
    process = subprocess.Popen(
        [sys.executable, str(ROOT / "testing" / "child.py"), *command],
        cwd=folder,
        env=environment,
        stdin=subprocess.PIPE,
        stdout=log,
        stderr=subprocess.STDOUT,
        # A signal to the process group of this process (by a terminal, `timeout` or a service
        # manager) must not kill the guard: the guard has to kill the server.
        start_new_session=True,
    )
    assert process.stdin is not None
    try:
        yield process
    finally:
        process.stdin.close()
        process.wait()


def _wait_until_up(server: "subprocess.Popen[bytes]", port: int, log: Any) -> None:
    deadline = time.monotonic() + START_SECONDS
    while time.monotonic() < deadline and server.poll() is None:
        connection = http.client.HTTPConnection("127.0.0.1", port, timeout=1)
        try:
            connection.request("GET", "/")
            connection.getresponse().read()
            return
        except OSError:
            time.sleep(0.05)
        finally:
            connection.close()
    log.seek(0)
    output = log.read().decode(errors="replace")[-1000:]
    raise SystemExit(f"The local server did not start on port {port}: {output}")


def local_client(url: str, connections: int = 16, attempts: int = 1) -> Any:
    """Return a client without parameter validation for a local database."""
    return boto3.client(
        "dynamodb",
        endpoint_url=url,
        **LOCAL_CREDENTIALS,
        config=Config(
            parameter_validation=False,
            max_pool_connections=connections,
            retries={"mode": "standard", "total_max_attempts": attempts},
        ),
    )
