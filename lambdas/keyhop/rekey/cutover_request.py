"""What a person gives RekeyCutOver: the input of an execution. Pure."""

from dataclasses import dataclass
from typing import Annotated

from keyhop.checks import Must, Truth, number, one_of, read
from keyhop.jobs.request import A_TABLE
from keyhop.rekey.control import Side

LIKE = '{"rekey": "OrdersByTenant"}'

LEAST_FREEZE_SECONDS, MOST_FREEZE_SECONDS = 6.0, 20.0
"""Of a freeze: two leases and the drain; and what routers wait for without being told (25 s)."""


@dataclass(frozen=True, slots=True)
class CutOverInput:
    """The input of RekeyCutOver."""

    rekey: Annotated[str, A_TABLE, "the destination of a re-key: all else is in its side table"]
    to: Annotated[
        Side,
        Must(one_of("source", "destination"), '"destination" or "source"'),
        "the table that is to serve: the destination by a cutover, the source by a rollback",
    ] = "destination"
    accept: Annotated[Truth, "go back though items cannot be mapped back: they are lost"] = False
    expect: Annotated[
        int | None,
        Must(number(0, 100_000), "a whole number, 0 or more"),
        "how many routers must have reported; as the control item says if left out",
    ] = None
    freeze_limit: Annotated[
        float | None,
        Must(
            number(LEAST_FREEZE_SECONDS, MOST_FREEZE_SECONDS),
            f"seconds, from {LEAST_FREEZE_SECONDS:g} to {MOST_FREEZE_SECONDS:g}",
        ),
        "go back if writes would wait for longer; 10 if left out",
    ] = None
    dry_run: Annotated[Truth, "look at the gates, and change nothing"] = False


def parse_cut_over(given: object) -> CutOverInput:
    """Raises InvalidInput, which names all that is wrong."""
    return read(CutOverInput, given, LIKE)
