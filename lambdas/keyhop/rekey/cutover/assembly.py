"""Assemble a cutover or a rollback of a re-key."""

import random
from collections.abc import Callable, Collection
from concurrent.futures import Executor, ThreadPoolExecutor
from typing import Any

from keyhop.clock import Clock, SystemClock
from keyhop.dynamodb.client import Connection
from keyhop.rekey.control import Control, Side, other_side
from keyhop.rekey.cutover.change import Change
from keyhop.rekey.cutover.deployed import Deployed, NotDeployed
from keyhop.rekey.cutover.markers import Markers
from keyhop.rekey.opening import side_table
from keyhop.rekey.standing import Gate, RekeyStatus

REQUEST_SECONDS = 2.0
"""The timeout of a request: a freeze has no time for slower ones."""

CONNECTIONS = 32

PATIENCE_SECONDS = 4.0
"""The time for retries of throttled requests. A freeze is aborted rather than to wait for long."""


def change_of(
    connection: Connection,
    destination: str,
    to: Side,
    streams: Any,
    *,
    deployed: Deployed | NotDeployed = NotDeployed(),  # noqa: B008 frozen
    accept: Collection[str] = (),
    expect: int | None = None,
    freeze_limit: float | None = None,
    report: Callable[[str], None] = lambda step: None,
    check: Callable[[], None] = lambda: None,
    clock: Clock | None = None,
    chance: random.Random | None = None,
    pool: Callable[[int], Executor] = ThreadPoolExecutor,
    **more: Any,
) -> Change:
    """Make a change of the serving table to `to`, of the re-key into `destination`.

    `streams` is boto3's client `dynamodbstreams`, `expect` is how many routers must have reported,
    and `accept` are the losses that the caller accepts (ACCEPTABLE). `more` are arguments of
    ItemCalls; see Change for `report` and `check`.
    """
    clock = clock or SystemClock()
    more = {"patience": PATIENCE_SECONDS, **more}
    side = side_table(connection, destination, now=clock.time, **more)
    pair = side.plan()
    serving = other_side(to)

    def markers(role: Side) -> Markers:
        arguments = (connection, pair.table(role), role, side, streams, clock)
        return Markers(*arguments, chance=chance, pool=pool, **more)

    def look(control: Control) -> list[Gate]:
        status = RekeyStatus.of(side, deployed, clock.time(), control, tries_way_back=True)
        return status.gates(to, accept, expect)

    examine = markers(to).prepare
    return Change(
        to, side, markers(serving), clock, look, report, freeze_limit, check, accept, examine
    )
