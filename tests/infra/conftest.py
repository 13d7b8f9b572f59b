"""Stacks for the tests, each synthesized once per session; these tests run in one worker."""

import json
from collections.abc import Callable
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
    """The template in the folder `assembly`."""
    return Deployed(json.loads((assembly / "Keyhop.template.json").read_text()))


@pytest.fixture(scope="session")
def code(assembly: Path, uploaded: Deployed) -> Path:
    """The code asset that would be uploaded; all functions share it."""
    functions = uploaded.properties_of("AWS::Lambda::Function")
    (key,) = {uploaded.resolve(function["Code"]["S3Key"]) for function in functions}
    return assembly / f"asset.{Path(key).stem}"


@pytest.fixture(scope="session")
def packages(assembly: Path, uploaded: Deployed) -> Path:
    """The layer asset that would be uploaded."""
    key = uploaded.only("AWS::Lambda::LayerVersion")["Properties"]["Content"]["S3Key"]
    return assembly / f"asset.{Path(key).stem}"


def deployment_fixture(context: dict[str, Any]) -> Callable[[], Deployed]:
    """Return a fixture with the template of a context."""

    @pytest.fixture(scope="session")
    def deployment() -> Deployed:
        return deployed(stack_of(context))

    return deployment


LAPTOP = "http://127.0.0.1:8000"
MANY = [f"Table-of-28-characters-{number:05}" for number in range(40)]
CRON = "cron(0 3 ? * SUN *)"
SCHEDULES = {"verifyIndexSchedule": CRON, "shrinkSchedule": CRON}
NEVER = dict.fromkeys(SCHEDULES, "never")

plain = deployment_fixture(CONTEXTS["plain"])
"""A deployment of a context with tables and nothing else."""
template = deployment_fixture(CONTEXT)
"""A deployment that only lists keys."""
indexed = deployment_fixture(INDEXED_CONTEXT)
"""A deployment with key indexes."""
many = deployment_fixture({"tables": [{"table": name, "keyIndex": True} for name in MANY]})
"""A deployment with 40 tables, all with a key index."""
sharded = deployment_fixture(SHARDED_CONTEXT)
"""A deployment with sharded tables, which only proposes drains."""
draining = deployment_fixture(CONTEXTS["draining"])
"""A deployment with sharded tables that starts drains automatically."""
reported = deployment_fixture(CONTEXTS["reported"])
"""A deployment with reports on two tables of three."""
laptop = deployment_fixture({**SHARDED_CONTEXT, "dynamodbEndpoint": LAPTOP})
"""A deployment of all functions against DynamoDB on this machine."""
scheduled = deployment_fixture({**SHARDED_CONTEXT, **SCHEDULES, "reservedConcurrency": "20"})
"""A deployment with schedules from the context, and reserved concurrency."""
unscheduled = deployment_fixture({**SHARDED_CONTEXT, **NEVER, "keepResults": "false"})
"""A deployment with no schedules, and results that are deleted with the stack."""
