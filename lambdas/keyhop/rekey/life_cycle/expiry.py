"""Keep time to live enabled on the serving table, and disabled on the other, where its deletes
would be writes that bypass the router.
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
"""A part of the error for a second change within an hour (API Reference, UpdateTimeToLive)."""

Standing = Literal["on", "off", "changing"]


def step_towards(
    connection: Connection, pair: Pair, attribute: str | None, serving: Side
) -> StepResult:
    """Make one change, or report a wait for one, which may take an hour but does not delay a change
    of the other table. `attribute` is the one by which items expire; None if they do not.
    """
    if attribute is None:
        return StepResult(True, "items do not expire")
    serves = pair.table(serving)
    waiting = []
    for table, should_be_on in ((serves, True), (pair.table(other_side(serving)), False)):
        standing = standing_of(connection, table, attribute)
        if standing == "changing":
            says = f"waiting for the time to live of {table}, which is changing"
            waiting.append(StepResult(False, says))
        elif (standing == "on") != should_be_on:
            step = _change(connection, table, attribute, should_be_on)
            if not step.says.startswith("waiting"):
                return step
            waiting.append(step)
    return waiting[0] if waiting else StepResult(True, f"items of {serves} expire by {attribute}")


def follow(connection: Connection, side: SideTable) -> list[str]:
    """Make the changes after a cutover or a rollback, and return a sentence for each. Do not wait,
    because that can take an hour: `complete` makes the remaining changes.
    """
    pair, attribute = side.plan(), (side.told(TTL) or {}).get("attribute")
    serving = side.control().serving
    sentences: list[str] = []
    while not (step := step_towards(connection, pair, attribute, serving)).done:
        if step.says in sentences or step.says.startswith("waiting"):
            return [*sentences, step.says]
        sentences.append(step.says)
    return sentences


def standing_of(connection: Connection, table: str, attribute: str) -> Standing:
    """Return the state of a table's time to live; raise CannotStart if it has another attribute."""
    description = request(connection, table, "describe_time_to_live")["TimeToLiveDescription"]
    status = description.get("TimeToLiveStatus", "DISABLED")
    if status in ("ENABLING", "DISABLING"):
        return "changing"
    if status == "DISABLED":
        return "off"
    if description.get("AttributeName") != attribute:
        raise CannotStart(
            f"Items of {table!r} expire by another attribute than {attribute!r}, which the source "
            "had when the re-key was made: turn that off first."
        )
    return "on"


def _change(connection: Connection, table: str, attribute: str, on: bool) -> StepResult:
    word = "on" if on else "off"
    specification = {"Enabled": on, "AttributeName": attribute}
    try:
        request(connection, table, "update_time_to_live", TimeToLiveSpecification=specification)
    except CannotStart as error:
        if TOO_SOON not in str(error):
            raise
        return StepResult(
            False, f"waiting to turn the time to live of {table} {word}: once an hour"
        )
    return StepResult(False, f"turning the time to live of {table} {word}")
