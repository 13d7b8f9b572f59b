"""Tests of the app through the CDK's command, without an account."""

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from aws_cdk.assertions import Annotations, Match

import app
from infra import layer
from infra.config import Config
from tests.infra.conftest import CONTEXTS, deployed, stack_of
from tests.infra.template import Deployed, table_arn

ROOT = Path(__file__).parents[2]
CDK = ROOT / "node_modules" / ".bin" / "cdk"
NO_NETWORK = "http://127.0.0.1:9"
PHYSICAL_NAMES = {
    "AWS::Lambda::Function": "FunctionName",
    "AWS::Logs::LogGroup": "LogGroupName",
    "AWS::StepFunctions::StateMachine": "StateMachineName",
    "AWS::CloudWatch::Alarm": "AlarmName",
    "AWS::DynamoDB::Table": "TableName",
    "AWS::CloudWatch::Dashboard": "DashboardName",
}


@pytest.fixture
def sandbox(tmp_path: Path) -> dict[str, str]:
    """An environment with no account and no network, and with a new home folder."""
    home = tmp_path / "home"
    home.mkdir()
    return {
        "PATH": os.environ["PATH"],
        "HOME": str(home),
        "CDK_HOME": str(home),
        # Without this, the CDK's library is unpacked into the new home, which takes ten seconds.
        "JSII_RUNTIME_PACKAGE_CACHE_ROOT": str(Path.home() / ".cache/aws/jsii/package-cache"),
        # Without this, the CDK's packages are compiled again, which takes seven seconds.
        "PYTHONPYCACHEPREFIX": sys.pycache_prefix or "",
        "CDK_DISABLE_CLI_TELEMETRY": "true",
        "AWS_EC2_METADATA_DISABLED": "true",
        "AWS_CONFIG_FILE": os.devnull,
        "AWS_SHARED_CREDENTIALS_FILE": os.devnull,
        **dict.fromkeys(("HTTP_PROXY", "HTTPS_PROXY", "http_proxy", "https_proxy"), NO_NETWORK),
    }


AS_DEPLOYED = """
import runpy, sys

sys.modules.update(dict.fromkeys(("boto3", "botocore", "rich", "click")))
runpy.run_path("app.py", run_name="__main__")
"""
"""Run the app without packages that requirements-deploy.txt does not have."""


def run_app(environment: dict[str, str], context: dict[str, Any]) -> subprocess.CompletedProcess:
    """Run app.py as the CDK runs it."""
    return subprocess.run(
        [sys.executable, "-c", AS_DEPLOYED],
        cwd=ROOT,
        env={**environment, "CDK_CONTEXT_JSON": json.dumps({"settings": "", **context})},
        capture_output=True,
        text=True,
        check=False,
    )


@pytest.mark.prove  # tests/e2e deploys with the same command, on this machine
@pytest.mark.timeout(400)  # node and Python must start, possibly on a busy machine
@pytest.mark.usefixtures("assembly")
def test_synth_needs_no_account_and_no_network(sandbox: dict[str, str], tmp_path: Path):
    """The fixture `assembly` has built the layer, which is the only download."""
    output = tmp_path / "cdk.out"
    command = [str(CDK), "synth", "--quiet", "--output", str(output), "-c", "settings="]
    command += ["-c", "tables=Flights,Orders"]
    process = subprocess.run(
        command, cwd=ROOT, env=sandbox, capture_output=True, text=True, check=False
    )
    assert process.returncode == 0, process.stderr
    synthesized = Deployed(json.loads((output / "Keyhop.template.json").read_text()))
    assert synthesized.allows(
        "ScanSegments",
        "dynamodb:Scan",
        table_arn("Orders"),
        dynamodb__Select="SPECIFIC_ATTRIBUTES",
    )
    assert str(ROOT) not in (output / "Keyhop.template.json").read_text()


def test_missing_settings_cause_one_sentence_and_no_traceback(sandbox: dict[str, str]):
    assert json.loads((ROOT / "cdk.json").read_text()) == {"app": ".venv/bin/python app.py"}
    process = run_app(sandbox, {})
    assert process.returncode == 1
    assert "copy keyhop.example.json to keyhop.json" in process.stderr
    assert "Traceback" not in process.stderr


def test_an_invalid_context_causes_one_sentence_and_no_traceback(
    sandbox: dict[str, str],
):
    process = run_app(sandbox, {"tables": "Flights", "workerMemoryMb": "9"})
    assert process.returncode == 1
    sentence = (
        'The context field workerMemoryMb is "9"; it must be a whole number from 512 to 10240.'
    )
    assert sentence in process.stderr.splitlines()
    assert "Traceback" not in process.stderr


def test_a_layer_that_cannot_be_built_causes_one_sentence_and_no_traceback(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
):
    def fail() -> Path:
        raise layer.LayerError("pip cannot install six.")

    config = Config.from_context({"tables": "Flights"})
    monkeypatch.setattr(layer, "built", fail)
    monkeypatch.setattr(app, "settings_of", lambda context: context)
    monkeypatch.setattr(Config, "from_context", lambda _: config)
    assert app.main() == 1
    assert capsys.readouterr().err == "pip cannot install six.\n"


@pytest.mark.prove
def test_two_deployments_in_one_account_share_no_names():
    first, second = (
        deployed(stack_of({**CONTEXTS["mixed"], "stackName": name}))
        for name in ("Keyhop", "Second")
    )
    for kind, field in PHYSICAL_NAMES.items():
        names = [{item[field] for item in stack.properties_of(kind)} for stack in (first, second)]
        assert all(names), kind
        assert not names[0] & names[1], kind
    databases = [
        template.only("AWS::Glue::Database")["Properties"]["DatabaseInput"]["Name"]
        for template in (first, second)
    ]
    assert databases == ["keyhop", "second"]
    namespaces = {
        template.environment("ScanSegments")["POWERTOOLS_METRICS_NAMESPACE"]
        for template in (first, second)
    }
    assert len(namespaces) == 2, "they would share metrics and alarms"


def test_synth_names_the_tables_that_are_not_limited_to_their_key_attributes():
    stack = stack_of({"tables": "Flights,Orders", "keyAttributes": '{"Orders": ["customer"]}'})
    Annotations.from_stack(stack).has_warning(
        "*", Match.string_like_regexp(r"named attributes of Flights; .*keyAttributes")
    )


def test_synth_does_not_warn_if_all_tables_are_limited():
    stack = stack_of({"tables": "Orders", "keyAttributes": '{"Orders": ["customer"]}'})
    Annotations.from_stack(stack).has_no_warning("*", Match.any_value())
