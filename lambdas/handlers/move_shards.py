"""State MoveShards of DrainShards: the next step of a drain, and how long to wait after it."""

import math
from typing import Any

from aws_lambda_powertools.utilities.typing import LambdaContext
from keyhop.sharding.drain import Drain, DrainStep

from handlers.sharded_tables import at_work, seconds_left
from handlers.sharding_requests import MoveRequest
from handlers.telemetry import function, make_logger

logger = make_logger()

LAST_MOVES_SECONDS = 60.0
"""The time to finish moves in flight, when no more are started. It exceeds their patience."""
LEAST_WAIT_SECONDS = 1
"""Limits a drain without progress to one state transition per second."""


@function(logger)
def handler(event: dict[str, Any], context: LambdaContext) -> dict[str, Any]:
    """Return the next state from the execution's input and the last step: done, or a wait and a
    step.
    """
    request = MoveRequest.from_event(event["request"])
    last = event["last"]  # at first this is the request, which has none of these fields
    has_begun = last.get("begun") is True
    previous = (last["last_updated"], last["seconds"]) if "last_updated" in last else None
    seconds = max(0.0, seconds_left(context) - LAST_MOVES_SECONDS)
    with at_work(request.table, context) as table:
        drain = Drain(table)
        step = drain.step(
            request.key, shards=request.shards, seconds=seconds, begun=has_begun, seen=previous
        )
    state = to_state(step)
    logger.info("stepped", table=request.table, **state)
    return state


def to_state(step: DrainStep) -> dict[str, Any]:
    """Return a step for the state machine. It contains no key."""
    return {
        "action": step.action.value,
        "seconds": max(LEAST_WAIT_SECONDS, math.ceil(step.seconds)),
        "phase": step.shards.phase.value,
        "moved": step.moved,
        "readable": step.shards.readable,
        "shards": step.shards.number,
        "begun": step.begun,
        "last_updated": step.shards.last_updated,
    }
