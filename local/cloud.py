"""A laptop cloud: DynamoDB Local for DynamoDB, ministack for the rest, both on loopback.

The usual CDK command line deploys the stack to it. All files are in a temporary folder, or in
.cache, which git ignores.
"""

import json
import os
import signal
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import dataclass, field
from pathlib import Path
from threading import Event, Thread, Timer
from types import FrameType
from typing import Any, NoReturn

import boto3
from botocore.config import Config
from rich.console import Console

from testing.servers import ROOT, child, dynamodb_local, free_port, running

console = Console(highlight=False, soft_wrap=True)
"""The console on which the demos print."""

REGION = "us-east-1"
ACCOUNT = "000000000000"
CREDENTIALS = {"aws_access_key_id": "test", "aws_secret_access_key": "test"}
CDK = ROOT / "node_modules" / ".bin" / "cdk"
CDK_SECONDS = 300
CACHES = {
    "CDK_HOME": str(ROOT / ".cache" / "cdk"),
    "JSII_RUNTIME_PACKAGE_CACHE_ROOT": str(ROOT / ".cache" / "jsii"),
}
SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
STOP_SECONDS = 30.0
"""The time after which the process ends without waiting for servers. Stopping them takes a second
or two, and longer on a busy machine, where thousands of files must be deleted."""

EMPTY_APP = {
    "version": "36.0.0",
    "artifacts": {
        "Empty": {
            "type": "aws:cloudformation:stack",
            "environment": f"aws://{ACCOUNT}/{REGION}",
            "properties": {"templateFile": "empty.json"},
        }
    },
}


class Failed(Exception):
    """A deployment or an execution has failed; the message is for the user."""


class Stopped(KeyboardInterrupt):
    """A signal asks the process to end; the argument is its number."""


def exit_with(main: Callable[[], int]) -> NoReturn:
    """End the process with the status that `main` returns, after all servers have stopped.

    Ctrl-C, SIGTERM and a closed terminal (SIGHUP) leave the blocks of `main`, which stop their
    servers. If that takes longer than STOP_SECONDS, the process ends, and the servers end with it.
    """
    terminals = [file for file in (1, 2) if os.isatty(file)]

    def stop(number: int, _frame: FrameType | None) -> None:
        for handled in SIGNALS:  # once is enough
            signal.signal(handled, signal.SIG_IGN)
        if number == signal.SIGHUP:
            _discard_output(terminals)
        os.write(sys.stderr.fileno(), b"Stopping ...\n")  # print may be under way
        last = Timer(STOP_SECONDS, os._exit, (128 + number,))
        last.daemon = True
        last.start()
        raise Stopped(number)

    for handled in SIGNALS:
        if (
            handled != signal.SIGHUP or signal.getsignal(handled) != signal.SIG_IGN
        ):  # as nohup sets it
            signal.signal(handled, stop)
    try:
        sys.exit(main())
    except Failed as error:
        sys.exit(str(error))
    except Stopped as stopped:
        print("All servers are stopped.", file=sys.stderr)
        sys.exit(128 + stopped.args[0])


def _discard_output(files: Sequence[int]) -> None:
    """Discard output to these file descriptors, because writing to a closed terminal fails."""
    nowhere = os.open(os.devnull, os.O_WRONLY)
    for file in files:
        os.dup2(nowhere, file)


@dataclass
class Cloud:
    """A laptop cloud.

    Attributes:
        url: The address of ministack.
        dynamodb: The address of DynamoDB Local.
        folder: The folder for its files.
        database: The address of DynamoDB Local for the functions.
        project: The folder of the application to deploy.
    """

    url: str
    dynamodb: str
    folder: Path
    database: str
    outputs: dict[str, str] = field(default_factory=dict)
    bootstrapped: bool = False
    project: Path = ROOT
    _given_up: Event = field(default_factory=Event)

    def client(self, service: str) -> Any:
        """Return a client for a service other than DynamoDB."""
        return boto3.client(
            service,
            endpoint_url=self.url,
            region_name=REGION,
            config=Config(s3={"addressing_style": "path"}),
            **CREDENTIALS,
        )

    @property
    def exports(self) -> dict[str, str]:
        """Return the variables that direct the SDKs and the AWS command line to this cloud."""
        return {
            "AWS_ENDPOINT_URL": self.url,
            "AWS_ENDPOINT_URL_DYNAMODB": self.dynamodb,
            "AWS_REGION": REGION,
            "AWS_DEFAULT_REGION": REGION,
            **{name.upper(): value for name, value in CREDENTIALS.items()},
        }

    def deploy(self, tables: Sequence[str | Mapping[str, Any]], **context: str) -> dict[str, str]:
        """Run `cdk bootstrap` and `cdk deploy`, and return the stack's outputs; raise Failed."""
        if not self.bootstrapped:
            self.bootstrap()
        written = self.folder / "outputs.json"
        context_values = {
            "settings": "",  # none of a deployment of the user's
            "tables": json.dumps(list(tables)),
            "dynamodbEndpoint": self.database,
            **context,
        }
        self._cdk(
            *("deploy", "--require-approval", "never", "--outputs-file", str(written)),
            *("--output", str(self._assembly)),
            *(part for name, value in context_values.items() for part in ("-c", f"{name}={value}")),
        )
        (self.outputs,) = json.loads(written.read_text()).values()
        return self.outputs

    @contextmanager
    def deploying(
        self, tables: Sequence[str | Mapping[str, Any]], **context: str
    ) -> Iterator["Future[dict[str, str]]"]:
        """Run `deploy` while the block runs; stop it if the block fails."""
        with ThreadPoolExecutor(1) as pool:
            try:
                yield pool.submit(self.deploy, tables, **context)
            except BaseException:
                self._given_up.set()
                raise

    def bootstrap(self) -> None:
        """Run `cdk bootstrap` with an empty app, because it would synthesize ours otherwise."""
        app = self.folder / "bootstrap"
        app.mkdir(exist_ok=True)
        (app / "empty.json").write_text('{"Resources": {}}')
        (app / "manifest.json").write_text(json.dumps(EMPTY_APP))
        self._cdk("bootstrap", f"aws://{ACCOUNT}/{REGION}", "--app", str(app))
        self.bootstrapped = True

    def destroy(self) -> None:
        """Run `cdk destroy` for the last deployment; raise Failed."""
        self._cdk("destroy", "--force", "--app", str(self._assembly))

    def keyhop(self, words: Sequence[str], folder: Path = ROOT, output: Any = None) -> int:
        """Run `keyhop` in a folder, as a user of this cloud would; return its exit status.

        `output` is a file for what it prints; by default it prints to the terminal.
        """
        command = [sys.executable, "-m", "keyhop", *words]
        with child(command, folder, {**os.environ, **self.exports}, output) as process:
            return int(process.wait())

    @property
    def template(self) -> Path:
        """Return the path of the template that was deployed last."""
        (path,) = self._assembly.glob("*.template.json")
        return path

    @property
    def _assembly(self) -> Path:
        return self.folder / "cdk.out"

    def _cdk(self, *arguments: str) -> None:
        if not CDK.exists():
            raise Failed("The CDK's command line is not set up: run make setup.")
        environment = {
            **_without_aws(),
            **self.exports,
            **CACHES,
            "JSII_SILENCE_WARNING_DEPRECATED_NODE_VERSION": "1",
            "JSII_SILENCE_WARNING_END_OF_LIFE_NODE_VERSION": "1",
            "CDK_DISABLE_CLI_TELEMETRY": "true",
            # Five seconds for warnings about the template: a test of infra/ has them.
            "CDK_VALIDATION": "false",
        }
        command = [str(CDK), *arguments, "--no-notices"]
        deadline = time.monotonic() + CDK_SECONDS
        with (
            tempfile.TemporaryFile() as log,
            child(command, self.project, environment, log) as process,
        ):
            while process.poll() is None and not self._given_up.wait(0.05):
                if time.monotonic() > deadline:
                    raise Failed(f"cdk {arguments[0]} did not end within {CDK_SECONDS} seconds.")
            if process.poll() != 0:
                log.seek(0)
                end = log.read().decode(errors="replace").strip().splitlines()[-15:]
                raise Failed("\n".join((f"cdk {arguments[0]} failed:", *end)))


@contextmanager
def laptop_cloud(
    address_for: Callable[[str], AbstractContextManager[str]] = nullcontext,
) -> Iterator[Cloud]:
    """Start both servers, empty; they end with the block, or with this process.

    Args:
        address_for: Converts the address of a server to the one that functions use.
    """
    port = free_port()
    with (
        tempfile.TemporaryDirectory(prefix="keyhop-") as name,
        dynamodb_local() as dynamodb,
        address_for(dynamodb) as database,
        address_for(f"http://127.0.0.1:{port}") as services,
    ):
        environment = {
            **_without_aws(),
            "BIND_HOST": "127.0.0.1",
            "GATEWAY_PORT": str(port),
            "IOT_MTLS_ENABLED": "0",
            "TMPDIR": name,
            "STATE_DIR": f"{name}/state",
            "AWS_ENDPOINT_URL": services,  # of the functions
            # There is nobody to send traces to.
            "POWERTOOLS_TRACE_DISABLED": "true",
            # The functions run here beside each other, from the deployed code and layer: what one
            # has compiled, the next need not.
            "PYTHONDONTWRITEBYTECODE": "",
            "PYTHONPYCACHEPREFIX": f"{name}/pycache",
        }
        command = [sys.executable, "-m", "local.emulator"]
        with running(command, port, environment) as url:
            yield Cloud(url, dynamodb, Path(name), database)


@contextmanager
def beside(work: Callable[[Event], None]) -> Iterator[None]:
    """Run `work` in a thread until the block ends, which sets its event; raise the error of `work`.

    A block that fails, for example by Ctrl-C, does not wait for a request in flight: the thread
    continues alone, and ends with the process at the latest.
    """
    over = Event()
    ended: Future[None] = Future()

    def run() -> None:
        try:
            work(over)
        except BaseException as error:  # handed to the block's thread, whatever it is
            ended.set_exception(error)
        else:
            ended.set_result(None)

    Thread(target=run, daemon=True).start()
    try:
        yield
    finally:
        over.set()
    ended.result()


def _without_aws() -> dict[str, str]:
    """Nothing of a real account may leak into the laptop cloud, nor anything reach it."""
    return {name: value for name, value in os.environ.items() if not name.startswith("AWS_")}
