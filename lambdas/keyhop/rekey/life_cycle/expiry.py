"""Time to live follows the table that serves: on there, and off on the other.

Were it on where it does not serve, its deletes would be writes that nobody asked the router for.
"""

from typing import Literal

from keyhop.dynamodb.client import Connection
from keyhop.dynamodb.tables import StepResult, request
from keyhop.errors import CannotStart
from keyhop.rekey.control import Side, other_side
from keyhop.rekey.pair import Pair
from keyhop.rekey.side.figures import TTL
from keyhop.rekey.side.table import SideTable

TOO_SOON = "multiple times within a fixed interval"
"""Of the refusal of a second change within an hour (API Reference, UpdateTimeToLive)."""

Standing = Literal["on", "off", "changing"]


def step_towards(
    connection: Connection, pair: Pair, attribute: str | None, serving: Side
) -> StepResult:
    """One change, or the wait for one, which holds up no change of the other table, as it may take
    an hour. attribute: that items expire by, None if they do not.
    """
    if attribute is None:
        return StepResult(True, "items do not expire")
    serves = pair.table(serving)
    waiting = []
    for table, wanted in ((serves, True), (pair.table(other_side(serving)), False)):
        standing = standing_of(connection, table, attribute)
        if standing == "changing":
            says = f"waiting for the time to live of {table}, which is changing"
            waiting.append(StepResult(False, says))
        elif (standing == "on") != wanted:
            step = _change(connection, table, attribute, wanted)
            if not step.says.startswith("waiting"):
                return step
            waiting.append(step)
    return waiting[0] if waiting else StepResult(True, f"items of {serves} expire by {attribute}")


def follow(connection: Connection, side: SideTable) -> list[str]:
    """Right after a cutover or a rollback: what was changed, or why not yet, in words. Nothing is
    waited for, which can take an hour: `complete` does what is left.
    """
    pair, attribute = side.plan(), (side.told(TTL) or {}).get("attribute")
    serving = side.control().serving
    told: list[str] = []
    while not (step := step_towards(connection, pair, attribute, serving)).done:
        if step.says in told or step.says.startswith("waiting"):
            return [*told, step.says]
        told.append(step.says)
    return told


def standing_of(connection: Connection, table: str, attribute: str) -> Standing:
    """Raises CannotStart if items expire by another attribute."""
    told = request(connection, table, "describe_time_to_live")["TimeToLiveDescription"]
    status = told.get("TimeToLiveStatus", "DISABLED")
    if status in ("ENABLING", "DISABLING"):
        return "changing"
    if status == "DISABLED":
        return "off"
    if told.get("AttributeName") != attribute:
        raise CannotStart(
            f"Items of {table!r} expire by another attribute than {attribute!r}, which the source "
            "had when the re-key was made: turn that off first."
        )
    return "on"


def _change(connection: Connection, table: str, attribute: str, on: bool) -> StepResult:
    word = "on" if on else "off"
    asked = {"Enabled": on, "AttributeName": attribute}
    try:
        request(connection, table, "update_time_to_live", TimeToLiveSpecification=asked)
    except CannotStart as error:
        if TOO_SOON not in str(error):
            raise
        return StepResult(
            False, f"waiting to turn the time to live of {table} {word}: once an hour"
        )
    return StepResult(False, f"turning the time to live of {table} {word}")
