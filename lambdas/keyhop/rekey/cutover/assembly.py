"""A cutover or a rollback of a re-key that is there: what it is done with, and what the gates see.

What only a deployment has (the function that follows the streams, its failure queue) is handed in.
"""

import random
from collections.abc import Callable, Mapping
from concurrent.futures import Executor, ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any

from keyhop.clock import Clock, SystemClock
from keyhop.dynamodb.client import Connection
from keyhop.errors import KeyhopError
from keyhop.rekey.control import Control, Direction, Side
from keyhop.rekey.cutover.change import Change
from keyhop.rekey.cutover.gates import Gate, Seen, gates_of
from keyhop.rekey.cutover.markers import Markers
from keyhop.rekey.opening import side_table
from keyhop.rekey.pace import BACKFILL
from keyhop.rekey.side.layout import LAG
from keyhop.rekey.side.table import SideTable
from keyhop.scan.item_calls import ItemCalls

VERIFY = "verify"
"""What verify tells (compare/outcome.py)."""

MOST_LISTED = 100
"""Of claims, and of items that cannot be mapped: more are not counted."""

PATIENCE_SECONDS = 4.0
"""For requests that are throttled, in a freeze: it is called off rather than to wait for long."""


@dataclass(frozen=True, slots=True)
class Around:
    """What a deployment knows. failed: messages in the failure queue, None if it cannot be seen.
    mapped: what is wrong with each direction's mapping (gates.Seen). way_back: gates.Seen.
    """

    failed: Callable[[], int | None] = lambda: 0
    mapped: Callable[[], Mapping[Direction, str]] = dict
    way_back: Callable[[Side], str | None] = lambda side: None


def change_of(
    connection: Connection,
    destination: str,
    to: Side,
    streams: Any,
    *,
    around: Around | None = None,
    accept: bool = False,
    expect: int | None = None,
    freeze_limit: float | None = None,
    told: Callable[[str], None] = lambda step: None,
    check: Callable[[], None] = lambda: None,
    clock: Clock | None = None,
    chance: random.Random | None = None,
    pool: Callable[[int], Executor] = ThreadPoolExecutor,
    **more: Any,
) -> Change:
    """Of the re-key into that table. streams: boto3's client `dynamodbstreams`. accept: that items
    that cannot be mapped back are lost. expect: how many routers must have reported. check: as of
    Change. more: as of ItemCalls.
    """
    clock, around = clock or SystemClock(), around or Around()
    more = {"patience": PATIENCE_SECONDS, **more}
    side = side_table(connection, destination, now=clock.time, **more)
    pair = side.plan()
    serving: Side = "source" if to == "destination" else "destination"
    table = pair.source if serving == "source" else pair.destination
    given = (connection, table, serving, side, streams, clock)
    drain = Markers(*given, chance=chance, pool=pool, **more)

    def look(control: Control) -> list[Gate]:
        return gates_of(seen_of(side, control, to, clock, around, expect), to, accept)

    return Change(to, side, drain, clock, look, told, freeze_limit, check)


def seen_of(
    side: SideTable,
    control: Control,
    to: Side,
    clock: Clock,
    around: Around,
    expect: int | None = None,
) -> Seen:
    """What the gates go by, as it is now."""
    direction: Direction = "forward" if to == "destination" else "reverse"
    verified = side.told(VERIFY)
    unmappable = len(side.all_unmapped(direction, MOST_LISTED))
    if to == "destination":  # which a verify counts too
        unmappable = max(unmappable, int((verified or {}).get("unmappable", 0)))
        unmappable += int((verified or {}).get("irreversible", 0))
    return Seen(
        control=control,
        now=clock.time(),
        claims=len(side.claims(direction, MOST_LISTED)),
        unmappable=unmappable,
        failed=around.failed(),
        verified=verified,
        backfill=side.told(BACKFILL),
        lag=side.told(f"{LAG}.{direction}"),
        clients=side.clients(),
        expected=control.expected_clients if expect is None else expect,
        way_back=around.way_back("source" if to == "destination" else "destination"),
        mapped=around.mapped(),
    )


class Probe(ItemCalls):
    """Writes of one table that must be refused: they prove the right and the path."""

    def why_not(self, key: Mapping[str, Any]) -> str:
        """Why it cannot be written; empty if it can. key: a primary key that nobody has."""
        name = next(iter(key))
        never: dict[str, Any] = {
            "ConditionExpression": "attribute_exists(#p) AND attribute_not_exists(#p)",
            "ExpressionAttributeNames": {"#p": name},
        }
        try:
            put = self._write("put_item", 1.0, 1.0, TableName=self._table, Item=dict(key), **never)
            gone = self._write(
                "delete_item", 1.0, 1.0, TableName=self._table, Key=dict(key), **never
            )
        except KeyhopError as error:
            return str(error)
        if put.refused is None or gone.refused is None:
            return "a write was made that must be refused"
        return ""
