"""The steps of BuildKeyIndex, AuditKeyIndex and RemoveKeyIndex that are not runs."""

import os
from dataclasses import replace
from typing import Any

import boto3
from aws_lambda_powertools import Logger, Metrics
from aws_lambda_powertools.utilities.typing import LambdaContext
from keyhop.jobs.runs import Execution
from keyhop.key_index.deployment import MappedKeeper
from keyhop.key_index.index import table_with_index
from keyhop.key_index.life_cycle import LifeCycle
from keyhop.key_index.request import Order
from keyhop.streams.event_source import Mappings

from handlers.settings import ManageSettings
from handlers.telemetry import count, function

CONNECTIONS = 16
logger = Logger()
metrics = Metrics()


@function(logger, metrics)
def handler(event: dict[str, Any], context: LambdaContext) -> dict[str, Any]:
    """From action, step, input and state to the next state."""
    settings = ManageSettings.from_env(os.environ)
    execution = Execution.from_context(event["execution"])
    indexes = settings.key_indexes
    order = Order.parse(event["action"], event["input"])
    order = replace(order, table=indexes.checked(order.table))
    connection = settings.deployment.connect(order.table, CONNECTIONS)
    table = table_with_index(connection, order.table)
    life_cycle = LifeCycle(
        order,
        connection,
        table,
        indexes.sentinel,
        indexes.registry(table),
        MappedKeeper(Mappings(boto3.client("lambda"), settings.keeper, settings.queue)),
        settings.deployment.runs.journal,
        settings.settle_seconds,
        execution.id,
        lambda found: count(metrics, KeyIndexDrift=found),
    )
    state = life_cycle.step(event["step"], event.get("state") or {})
    logger.info(
        "stepped",
        action=event["action"],
        step=event["step"],
        following=state["next"],
        says=state.get("says"),
    )
    return state
