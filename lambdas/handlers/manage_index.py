"""The steps of BuildKeyIndex, VerifyKeyIndex and RemoveKeyIndex that are not runs."""

from dataclasses import replace
from functools import partial
from typing import Any

import boto3
from aws_lambda_powertools.utilities.typing import LambdaContext
from keyhop.checks import without_origin
from keyhop.jobs.runs import ExecutionContext
from keyhop.key_index.index import table_with_index
from keyhop.key_index.life_cycle import LifeCycle, check_cost
from keyhop.key_index.provisioned import Scaling
from keyhop.key_index.registry import is_alive
from keyhop.key_index.request import Order
from keyhop.key_index.trust import MappedKeeper
from keyhop.streams.event_source import Mappings

from handlers.settings import ManageSettings
from handlers.telemetry import function, logger, report

CONNECTIONS = 16


@function
def handler(event: dict[str, Any], context: LambdaContext) -> dict[str, Any]:
    """Return the next state from the action, the step, the input and the state."""
    settings = ManageSettings.from_env()
    execution = ExecutionContext.from_context(event["execution"])
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
        MappedKeeper(
            Mappings(boto3.client("lambda"), settings.keeper, settings.queue), settings.watch
        ),
        settings.deployment.journal,
        execution.id,
        partial(is_alive, lambda: boto3.client("stepfunctions")),
        settings.settle_seconds,
        lambda drift: report(order.table, of_all=True, KeyIndexDrift=drift),
        Scaling(lambda: boto3.client("application-autoscaling")),
    )
    before = event.get("state") or {}
    if event["step"] == "prepare":
        check_cost(life_cycle, without_origin(event["input"]), before, settings.max_cost)
    state = life_cycle.step(event["step"], before)
    logger.info(
        "stepped",
        action=event["action"],
        step=event["step"],
        following=state["next"],
        says=state.get("says"),
    )
    return state
