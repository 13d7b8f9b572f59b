"""The stack, synthesized once for a test session, with the real layer and code."""

import json
from pathlib import Path
from typing import Any

import pytest
from aws_cdk import App, assertions

from infra.config import Config
from infra.stack import KeyhopStack
from tests.infra.template import Deployed

FOREIGN_TABLE = "arn:aws-cn:dynamodb:cn-north-1:123456789012:table/Bestellungen"
CONTEXT: dict[str, Any] = {
    "tables": ["Flights", "Orders", FOREIGN_TABLE],
    "keyAttributes": {"Orders": ["customer", "order"]},
    "alarmEmail": "keeper@example.com",
    "reservedConcurrency": 200,
}
FAR_TABLE = "arn:aws-cn:dynamodb:cn-north-1:123456789012:table/Ereignisse"
KEPT_CONTEXT: dict[str, Any] = {
    "tables": [
        "Flights",
        {"table": "Orders", "keyIndex": True, "keyAttributes": ["customer", "order"]},
        {"table": "Events", "keyIndex": True, "sentinelSortKey": "!"},
        {"table": FAR_TABLE, "keyIndex": True},
        {"table": FOREIGN_TABLE, "keyIndex": False},
        {"table": "Customers", "keyAttributes": ["customer"]},
    ],
    "alarmEmail": "keeper@example.com",
}
"""Three tables of six may have a key index."""

SHARDED_CONTEXT: dict[str, Any] = {
    "tables": [
        "Flights",
        {"table": "Audit", "sharding": {"partitionKey": "path", "appendOnly": True}},
        {
            "table": "Devices",
            "keyAttributes": ["device", "at"],
            "sharding": {
                "partitionKey": "device",
                "partitionKeyType": "B",
                "metadata": "device-shards",
                "placement": "random",
                "hash": "modulo",
                "separator": "#",
                "mostShards": 16,
            },
        },
        {"table": "Orders", "keyIndex": True, "keyAttributes": ["customer", "order"]},
    ],
    "alarmEmail": "keeper@example.com",
}
"""Two tables of four are sharded; one other has a key index."""

WITHOUT_ASSETS = {"aws:cdk:bundling-stacks": []}
"""What the CDK sets where nothing needs to be built."""


def stack_of(context: dict[str, Any], **app_options: Any) -> KeyhopStack:
    """A stack of its own app, without the layer."""
    app = App(context=WITHOUT_ASSETS, stack_traces=False, **app_options)
    return KeyhopStack(app, Config.from_context(context))


def deployed(stack: KeyhopStack) -> Deployed:
    """What the template says."""
    return Deployed(assertions.Template.from_stack(stack).to_json())


@pytest.fixture(scope="session")
def assembly(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder with template and assets that the CDK's command would deploy."""
    folder = tmp_path_factory.mktemp("cdk.out")
    app = App(outdir=str(folder), stack_traces=False)
    KeyhopStack(app, Config.from_context(CONTEXT))
    app.synth()
    return folder


@pytest.fixture(scope="session")
def template(assembly: Path) -> Deployed:
    return Deployed(json.loads((assembly / "Keyhop.template.json").read_text()))


@pytest.fixture(scope="session")
def kept() -> Deployed:
    """Of a deployment with key indexes."""
    return deployed(stack_of(KEPT_CONTEXT))


@pytest.fixture(scope="session")
def sharded() -> Deployed:
    """Of a deployment with sharded tables, which are only proposed to be drained."""
    return deployed(stack_of(SHARDED_CONTEXT))


@pytest.fixture(scope="session")
def draining() -> Deployed:
    """The same, told to start drains by itself."""
    return deployed(stack_of({**SHARDED_CONTEXT, "startDrains": True}))
