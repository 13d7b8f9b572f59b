"""Tests of `keyhop_cdk` installed from the wheel, outside the checkout."""

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from testing.package import installed_in, wheel_in
from testing.servers import ROOT
from tests.infra.conftest import CONTEXTS, deployed, stack_of
from tests.infra.template import FUNCTIONS, Deployed

SECONDS = 120
KEYHOP_STACK = """
import json, sys
from aws_cdk import App
from keyhop_cdk import KeyhopStack
from keyhop_cdk.config import Config

app = App(context={"aws:cdk:bundling-stacks": []}, outdir=sys.argv[1], stack_traces=False)
KeyhopStack(app, Config.from_context(json.loads(sys.argv[2])))
app.synth()
"""


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder in which only the wheel is installed."""
    folder = tmp_path_factory.mktemp("installed")
    return installed_in(folder / "site", wheel_in(folder))


def run(site: Path, folder: Path, *command: str, **environment: str) -> None:
    """Run Python in a folder outside the checkout, with Keyhop from the wheel."""
    cache = Path.home() / ".cache/aws/jsii/package-cache"
    process = subprocess.run(
        [sys.executable, *command],
        cwd=folder,
        env={
            "PATH": os.environ["PATH"],
            "HOME": str(folder),
            "JSII_RUNTIME_PACKAGE_CACHE_ROOT": str(cache),
            "PYTHONPATH": str(site),
            "CDK_VALIDATION": "false",
            **environment,
        },
        capture_output=True,
        text=True,
        timeout=SECONDS,
        check=False,
    )
    assert process.returncode == 0, process.stderr[-3000:]


@pytest.mark.prove
def test_the_wheel_synthesizes_the_same_stack_as_a_checkout(site: Path, tmp_path: Path):
    """The code is the same too, because the template contains the hash of the asset."""
    context = CONTEXTS["mixed"]
    run(site, tmp_path, "-c", KEYHOP_STACK, str(tmp_path / "out"), json.dumps(context))
    (written,) = (tmp_path / "out").glob("*.template.json")
    installed = json.loads(written.read_text())
    assert installed["Resources"] == deployed(stack_of(context)).body["Resources"]


@pytest.mark.prove
def test_the_example_synthesizes_from_the_wheel_with_a_layer_built_by_pip(
    site: Path, tmp_path: Path
):
    """`examples/own_stack` has a table, a topic, KeyEnumeration and KeyIndex."""
    shutil.copytree(ROOT / "examples" / "own_stack", tmp_path / "own_stack")
    run(site, tmp_path / "own_stack", "app.py", CDK_OUTDIR=str(tmp_path / "out"))
    shop = Deployed(json.loads((tmp_path / "out" / "Shop.template.json").read_text()))
    (table,) = shop.of_type("AWS::DynamoDB::GlobalTable")
    (topic,) = shop.of_type("AWS::SNS::Topic")
    for alarm in shop.properties_of("AWS::CloudWatch::Alarm"):
        assert alarm["AlarmActions"] == [{"Ref": topic}]
    assert {"Ref": table} == shop.only("Custom::KeeperMappings")["Properties"]["Tables"][0]
    functions = shop.properties_of("AWS::Lambda::Function")
    names = {function.get("FunctionName") for function in functions}
    assert {f"Shop-{name}" for name in (*FUNCTIONS, "KeepIndex")} <= names
    content = shop.only("AWS::Lambda::LayerVersion")["Properties"]["Content"]["S3Key"]
    packages = tmp_path / "out" / f"asset.{Path(content).stem}" / "python"
    assert (packages / "cattrs").is_dir()
    assert not (packages / "click").exists()
    assert not (packages / "rich").exists()
