"""Assemble a cutover or a rollback of a re-key, and read the state that its gates judge."""

import random
from collections.abc import Callable, Collection
from concurrent.futures import Executor, ThreadPoolExecutor
from typing import Any

from keyhop.clock import Clock, SystemClock
from keyhop.dynamodb.client import Connection
from keyhop.rekey.control import Control, Side, direction_from, other_side
from keyhop.rekey.cutover.change import Change
from keyhop.rekey.cutover.deployed import Deployed, NotDeployed
from keyhop.rekey.cutover.gates import Gate, Seen, gates_of
from keyhop.rekey.cutover.markers import Markers
from keyhop.rekey.opening import side_table
from keyhop.rekey.pace import BACKFILL
from keyhop.rekey.side.layout import LAG, VERIFIED
from keyhop.rekey.side.table import SideTable

MOST_LISTED = 100
"""The limit for counting claims, and items that cannot be mapped."""

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
    told: Callable[[str], None] = lambda step: None,
    check: Callable[[], None] = lambda: None,
    clock: Clock | None = None,
    chance: random.Random | None = None,
    pool: Callable[[int], Executor] = ThreadPoolExecutor,
    **more: Any,
) -> Change:
    """Make a change of the serving table to `to`, of the re-key into `destination`.

    `streams` is boto3's client `dynamodbstreams`, `expect` is how many routers must have reported,
    and `accept` are the losses that the caller accepts (gates.ACCEPTABLE). `more` are arguments of
    ItemCalls; see Change for `told` and `check`.
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
        return gates_of(seen_of(side, control, to, clock, deployed, expect), to, accept)

    examine = markers(to).prepare
    return Change(
        to, side, markers(serving), clock, look, told, freeze_limit, check, accept, examine
    )


def seen_of(
    side: SideTable,
    control: Control,
    to: Side,
    clock: Clock,
    deployed: Deployed | NotDeployed,
    expect: int | None = None,
) -> Seen:
    """Read the current state that the gates judge."""
    direction = direction_from(other_side(to))
    verified = side.told(VERIFIED)
    claims = side.claims(direction, MOST_LISTED)
    unmappable = len(side.all_unmapped(direction, MOST_LISTED))
    if to == "destination":  # which a verification counts too
        unmappable = max(unmappable, int((verified or {}).get("unmappable", 0)))
        unmappable += int((verified or {}).get("irreversible", 0))
    return Seen(
        control=control,
        now=clock.time(),
        claims=len(claims),
        refusals=[claim.refusal for claim in claims if claim.refusal],
        unmappable=unmappable,
        failed=deployed.failed(),
        verified=verified,
        backfill=side.told(BACKFILL),
        lag=side.told(f"{LAG}.{direction}"),
        clients=side.clients(),
        expected=control.expected_clients if expect is None else expect,
        way_back=deployed.way_back(other_side(to)),
        mapped=deployed.mapped(),
        stragglers=side.stragglers(),
    )
