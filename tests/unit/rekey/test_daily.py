"""The reasons why a scheduled comparison has nothing to compare."""

from typing import Any

import pytest
from keyhop.errors import CannotStart, TableNotFound
from keyhop.rekey.compare.digests import nothing_to_compare
from keyhop.rekey.control import Control
from keyhop.rekey.side.layout import BACKFILL

from testing.rekey_side import SideInMemory

ENDED = {"run": "r", "ended": 17.0}


@pytest.mark.parametrize(
    ("control", "backfill", "why"),
    [
        (Control(replicating=True), ENDED, None),
        (Control(replicating=True), {"run": "r", "ended": None}, "the backfill has not ended"),
        (Control(replicating=True), None, "the backfill has not ended"),
        (Control(), ENDED, "nothing replicates at the moment"),
        (Control(replicating=True, stage="frozen"), ENDED, "a cutover is under way"),
        (Control(replicating=True, serving="destination"), ENDED, "the destination serves already"),
    ],
)
def test_tables_are_compared_from_the_end_of_the_backfill_to_the_cutover(
    control: Control, backfill: Any, why: str | None
) -> None:
    side: Any = SideInMemory(control, figures={BACKFILL: backfill})
    assert nothing_to_compare(side) == why


@pytest.mark.parametrize("error", [TableNotFound("gone"), CannotStart("no control item")])
def test_without_a_rekey_there_is_nothing_to_compare(error: Exception) -> None:
    class NoSide:
        def control(self) -> Control:
            raise error

    side: Any = NoSide()
    assert nothing_to_compare(side) == "no re-key is in progress"
