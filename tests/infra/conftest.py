"""Stacks, each synthesized once for a test session: all of these tests run in one worker."""

import json
from functools import cache
from pathlib import Path
from typing import Any

import pytest
from aws_cdk import App, assertions

from infra.config import Config
from infra.stack import KeyhopStack
from tests.infra.apps import asset_free_app
from tests.infra.template import Deployed

CONTEXTS: dict[str, dict[str, Any]] = json.loads(
    (Path(__file__).parent.parent / "golden" / "contexts.json").read_text()
)
CONTEXT = CONTEXTS["named"]
INDEXED_CONTEXT = CONTEXTS["kept"]
"""Three tables of six may have a key index."""
SHARDED_CONTEXT = CONTEXTS["sharded"]
"""Two tables of four are sharded; one other has a key index."""
FOREIGN_TABLE = "arn:aws:dynamodb:us-east-1:123456789012:table/Bestellungen"
FAR_TABLE = "arn:aws:dynamodb:us-east-1:123456789012:table/Ereignisse"


def stack_of(context: dict[str, Any]) -> KeyhopStack:
    """Return the stack of a context, in a separate app without the layer, created once."""
    return _stack_of(json.dumps(context, sort_keys=True))


@cache
def _stack_of(context: str) -> KeyhopStack:
    return KeyhopStack(asset_free_app(), Config.from_context(json.loads(context)))


@cache
def deployed(stack: KeyhopStack) -> Deployed:
    """Return the template of a stack."""
    return Deployed(assertions.Template.from_stack(stack).to_json())


@pytest.fixture(scope="session")
def assembly(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder with the template and assets of all functions that `cdk deploy` would deploy."""
    folder = tmp_path_factory.mktemp("cdk.out")
    app = App(outdir=str(folder), stack_traces=False)
    KeyhopStack(app, Config.from_context(SHARDED_CONTEXT))
    app.synth()
    return folder


@pytest.fixture(scope="session")
def uploaded(assembly: Path) -> Deployed:
    """The template in that folder."""
    return Deployed(json.loads((assembly / "Keyhop.template.json").read_text()))


@pytest.fixture(scope="session")
def code(assembly: Path, uploaded: Deployed) -> Path:
    """The code asset that would be uploaded; all functions share it."""
    functions = uploaded.of_type("AWS::Lambda::Function").values()
    (key,) = {uploaded.resolve(function["Properties"]["Code"]["S3Key"]) for function in functions}
    return assembly / f"asset.{Path(key).stem}"


@pytest.fixture(scope="session")
def packages(assembly: Path, uploaded: Deployed) -> Path:
    """The layer asset that would be uploaded."""
    key = uploaded.only("AWS::Lambda::LayerVersion")["Properties"]["Content"]["S3Key"]
    return assembly / f"asset.{Path(key).stem}"


@pytest.fixture(scope="session")
def template() -> Deployed:
    """A deployment that only lists keys."""
    return deployed(stack_of(CONTEXT))


@pytest.fixture(scope="session")
def indexed() -> Deployed:
    """A deployment with key indexes."""
    return deployed(stack_of(INDEXED_CONTEXT))


MANY = [f"Table-of-28-characters-{number:05}" for number in range(40)]


@pytest.fixture(scope="session")
def many() -> Deployed:
    """A deployment with 40 tables, all with a key index."""
    return deployed(stack_of({"tables": [{"table": name, "keyIndex": True} for name in MANY]}))


@pytest.fixture(scope="session")
def sharded() -> Deployed:
    """A deployment with sharded tables, which only proposes drains."""
    return deployed(stack_of(SHARDED_CONTEXT))


@pytest.fixture(scope="session")
def mixed() -> Deployed:
    """A deployment with all capabilities, and a few tables with customer managed keys."""
    return deployed(stack_of(CONTEXTS["mixed"]))


@pytest.fixture(scope="session")
def reported() -> Deployed:
    """A deployment with reports on two tables of three."""
    return deployed(stack_of(CONTEXTS["reported"]))


@pytest.fixture(scope="session")
def draining() -> Deployed:
    """A deployment with sharded tables that starts drains automatically."""
    return deployed(stack_of(CONTEXTS["draining"]))


LAPTOP = "http://127.0.0.1:8000"


@pytest.fixture(scope="session")
def plain() -> Deployed:
    """A deployment of a context with tables and nothing else."""
    return deployed(stack_of(CONTEXTS["plain"]))


@pytest.fixture(scope="session")
def laptop() -> Deployed:
    """A deployment of all functions against DynamoDB on this machine."""
    return deployed(stack_of({**SHARDED_CONTEXT, "dynamodbEndpoint": LAPTOP}))


@pytest.fixture(scope="session")
def scheduled() -> Deployed:
    """A deployment with schedules from the context, and reserved concurrency."""
    cron = "cron(0 3 ? * SUN *)"
    schedules = {"verifyIndexSchedule": cron, "shrinkSchedule": cron}
    return deployed(stack_of({**SHARDED_CONTEXT, **schedules, "reservedConcurrency": "20"}))


@pytest.fixture(scope="session")
def unscheduled() -> Deployed:
    """A deployment with no schedules, and results that are deleted with the stack."""
    never = {"verifyIndexSchedule": "never", "shrinkSchedule": "never", "keepResults": "false"}
    return deployed(stack_of({**SHARDED_CONTEXT, **never}))
