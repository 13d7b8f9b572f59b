"""A laptop cloud: DynamoDB Local for DynamoDB, ministack for the rest, both on loopback.

The stack is deployed to it by the stock CDK command line. All that it needs to write lies in a
temporary folder, or in .cache, which is ignored.
"""

import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import boto3
from botocore.config import Config

from testing.servers import ROOT, dynamodb_local, free_port, running

REGION = "us-east-1"
ACCOUNT = "000000000000"
CREDENTIALS = {"aws_access_key_id": "test", "aws_secret_access_key": "test"}
CDK = ROOT / "node_modules" / ".bin" / "cdk"
CDK_SECONDS = 300
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


Tables = Sequence[str | Mapping[str, Any]]
"""As in the context field `tables`."""


class DeploymentError(Exception):
    """The CDK's command line failed; the message has its last lines."""


@dataclass
class Cloud:
    """One laptop cloud. url: of ministack; dynamodb: of DynamoDB Local; folder: for its files."""

    url: str
    dynamodb: str
    folder: Path
    outputs: dict[str, str] = field(default_factory=dict)
    bootstrapped: bool = False

    def client(self, service: str) -> Any:
        """A client for a service other than DynamoDB."""
        return boto3.client(
            service,
            endpoint_url=self.url,
            region_name=REGION,
            config=Config(s3={"addressing_style": "path"}),
            **CREDENTIALS,
        )

    @property
    def exports(self) -> dict[str, str]:
        """What points the SDKs and the AWS command line here."""
        return {
            "AWS_ENDPOINT_URL": self.url,
            "AWS_ENDPOINT_URL_DYNAMODB": self.dynamodb,
            "AWS_REGION": REGION,
            "AWS_DEFAULT_REGION": REGION,
            "AWS_ACCESS_KEY_ID": "test",
            "AWS_SECRET_ACCESS_KEY": "test",
        }

    def deploy(self, tables: Tables, **context: str) -> dict[str, str]:
        """`cdk bootstrap` and `cdk deploy`; returns the stack's outputs. Raises DeploymentError."""
        if not self.bootstrapped:
            self._bootstrap()
        written = self.folder / "outputs.json"
        given = {"tables": json.dumps(list(tables)), "dynamodbEndpoint": self.dynamodb, **context}
        self._cdk(
            *("deploy", "--require-approval", "never", "--outputs-file", str(written)),
            *("--output", str(self._assembly)),
            *(part for name, value in given.items() for part in ("-c", f"{name}={value}")),
        )
        (self.outputs,) = json.loads(written.read_text()).values()
        return self.outputs

    def _bootstrap(self) -> None:
        """`cdk bootstrap`, by an app that is there already: it would synthesize ours for it."""
        app = self.folder / "bootstrap"
        app.mkdir(exist_ok=True)
        (app / "empty.json").write_text('{"Resources": {}}')
        (app / "manifest.json").write_text(json.dumps(EMPTY_APP))
        self._cdk("bootstrap", f"aws://{ACCOUNT}/{REGION}", "--app", str(app))
        self.bootstrapped = True

    def destroy(self) -> None:
        """`cdk destroy` of what was deployed last. Raises DeploymentError."""
        self._cdk("destroy", "--force", "--app", str(self._assembly))

    @property
    def _assembly(self) -> Path:
        return self.folder / "cdk.out"

    def _cdk(self, *arguments: str) -> None:
        if not CDK.exists():
            raise DeploymentError("The CDK's command line is not set up: run make setup.")
        cache = ROOT / ".cache"
        try:
            done = subprocess.run(
                [CDK, *arguments, "--no-notices"],
                cwd=ROOT,
                env={
                    **_without_aws(os.environ),
                    **self.exports,
                    "CDK_HOME": str(cache / "cdk"),
                    "JSII_RUNTIME_PACKAGE_CACHE_ROOT": str(cache / "jsii"),
                    "JSII_SILENCE_WARNING_DEPRECATED_NODE_VERSION": "1",
                    "JSII_SILENCE_WARNING_END_OF_LIFE_NODE_VERSION": "1",
                    "CDK_DISABLE_CLI_TELEMETRY": "true",
                },
                capture_output=True,
                text=True,
                check=False,
                timeout=CDK_SECONDS,
            )
        except subprocess.TimeoutExpired as late:
            raise DeploymentError(
                f"cdk {arguments[0]} did not end within {CDK_SECONDS} seconds."
            ) from late
        if done.returncode:
            said = "\n".join((done.stdout + done.stderr).strip().splitlines()[-15:])
            raise DeploymentError(f"cdk {arguments[0]} failed:\n{said}")


@contextmanager
def laptop_cloud() -> Iterator[Cloud]:
    """Both servers, empty; they end with the block, or with this process."""
    with tempfile.TemporaryDirectory(prefix="keyhop-") as name, dynamodb_local() as dynamodb:
        port = free_port()
        environment = {
            **_without_aws(os.environ),
            "BIND_HOST": "127.0.0.1",
            "GATEWAY_PORT": str(port),
            "IOT_MTLS_ENABLED": "0",
            "TMPDIR": name,
            "STATE_DIR": f"{name}/state",
            # There is nobody to send traces to.
            "POWERTOOLS_TRACE_DISABLED": "true",
            # The functions run here beside each other, from the deployed code and layer.
            "PYTHONDONTWRITEBYTECODE": "1",
        }
        command = [sys.executable, "-m", "local.emulator"]
        with running(command, port, environment) as url:
            yield Cloud(url, dynamodb, Path(name))


def _without_aws(environment: Mapping[str, str]) -> dict[str, str]:
    """Nothing of a real account may leak into the laptop cloud, nor anything reach it."""
    return {name: value for name, value in environment.items() if not name.startswith("AWS_")}
