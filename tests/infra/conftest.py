"""Stacks, each synthesized once for a test session: all of these tests run in one worker."""

import json
from functools import cache
from pathlib import Path
from typing import Any

import pytest
from aws_cdk import App, assertions

from infra.config import Config
from infra.stack import KeyhopStack
from tests.infra.apps import app
from tests.infra.template import Deployed

CONTEXTS: dict[str, dict[str, Any]] = json.loads(
    (Path(__file__).parent.parent / "golden" / "contexts.json").read_text()
)
CONTEXT = CONTEXTS["named"]
KEPT_CONTEXT = CONTEXTS["kept"]
"""Three tables of six may have a key index."""
SHARDED_CONTEXT = CONTEXTS["sharded"]
"""Two tables of four are sharded; one other has a key index."""
FOREIGN_TABLE = "arn:aws:dynamodb:us-east-1:123456789012:table/Bestellungen"
FAR_TABLE = "arn:aws:dynamodb:us-east-1:123456789012:table/Ereignisse"


def stack_of(context: dict[str, Any]) -> KeyhopStack:
    """The stack of a context, in an app of its own, without the layer; made once."""
    return _stack_of(json.dumps(context, sort_keys=True))


@cache
def _stack_of(context: str) -> KeyhopStack:
    return KeyhopStack(app(), Config.from_context(json.loads(context)))


@cache
def deployed(stack: KeyhopStack) -> Deployed:
    """What the template says."""
    return Deployed(assertions.Template.from_stack(stack).to_json())


@pytest.fixture(scope="session")
def assembly(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder with template and assets that the CDK's command would deploy: all functions."""
    folder = tmp_path_factory.mktemp("cdk.out")
    made = App(outdir=str(folder), stack_traces=False)
    KeyhopStack(made, Config.from_context(SHARDED_CONTEXT))
    made.synth()
    return folder


@pytest.fixture(scope="session")
def uploaded(assembly: Path) -> Deployed:
    """The template in that folder."""
    return Deployed(json.loads((assembly / "Keyhop.template.json").read_text()))


@pytest.fixture(scope="session")
def code(assembly: Path, uploaded: Deployed) -> Path:
    """The code asset, as it would be uploaded; the same for all functions."""
    functions = uploaded.of_type("AWS::Lambda::Function").values()
    (key,) = {uploaded.resolve(one["Properties"]["Code"]["S3Key"]) for one in functions}
    return assembly / f"asset.{Path(key).stem}"


@pytest.fixture(scope="session")
def packages(assembly: Path, uploaded: Deployed) -> Path:
    """The layer asset, as it would be uploaded."""
    key = uploaded.only("AWS::Lambda::LayerVersion")["Properties"]["Content"]["S3Key"]
    return assembly / f"asset.{Path(key).stem}"


@pytest.fixture(scope="session")
def template() -> Deployed:
    """Of a deployment that only lists keys."""
    return deployed(stack_of(CONTEXT))


@pytest.fixture(scope="session")
def kept() -> Deployed:
    """Of a deployment with key indexes."""
    return deployed(stack_of(KEPT_CONTEXT))


MANY = [f"Table-of-28-characters-{number:05}" for number in range(40)]


@pytest.fixture(scope="session")
def many() -> Deployed:
    """Of a deployment with 40 tables, all with a key index."""
    return deployed(stack_of({"tables": [{"table": name, "keyIndex": True} for name in MANY]}))


@pytest.fixture(scope="session")
def sharded() -> Deployed:
    """Of a deployment with sharded tables, which are only proposed to be drained."""
    return deployed(stack_of(SHARDED_CONTEXT))


@pytest.fixture(scope="session")
def mixed() -> Deployed:
    """Of a deployment with all that there is, and a few tables encrypted with keys of one's own."""
    return deployed(stack_of(CONTEXTS["mixed"]))


@pytest.fixture(scope="session")
def reported() -> Deployed:
    """Of a deployment with reports on two tables of three."""
    return deployed(stack_of(CONTEXTS["reported"]))


@pytest.fixture(scope="session")
def draining() -> Deployed:
    """The same, told to start drains by itself."""
    return deployed(stack_of(CONTEXTS["draining"]))


LAPTOP = "http://127.0.0.1:8000"


@pytest.fixture(scope="session")
def plain() -> Deployed:
    """Of a context with tables and nothing else."""
    return deployed(stack_of(CONTEXTS["plain"]))


@pytest.fixture(scope="session")
def laptop() -> Deployed:
    """All functions, on this machine."""
    return deployed(stack_of({**SHARDED_CONTEXT, "dynamodbEndpoint": LAPTOP}))


@pytest.fixture(scope="session")
def scheduled() -> Deployed:
    """With schedules of its own, and a reservation."""
    cron = "cron(0 3 ? * SUN *)"
    schedules = {"verifyIndexSchedule": cron, "shrinkSchedule": cron}
    return deployed(stack_of({**SHARDED_CONTEXT, **schedules, "reservedConcurrency": "20"}))


@pytest.fixture(scope="session")
def unscheduled() -> Deployed:
    """With no schedules, and results that go with the stack."""
    never = {"verifyIndexSchedule": "never", "shrinkSchedule": "never", "keepResults": "false"}
    return deployed(stack_of({**SHARDED_CONTEXT, **never}))
