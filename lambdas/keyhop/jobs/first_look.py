"""How a run begins: a first look at the table, where its layout depends on what is in it."""

import math
import random
import time
from dataclasses import dataclass

from keyhop.dynamodb.capacity import UNITS_PER_BLOCK
from keyhop.jobs.layout import (
    KEYS_PER_SEGMENT,
    SCAN_BYTES_PER_SEGMENT,
    Layout,
    Wishes,
    layout_for_scan,
    layout_for_skip,
    spread,
)
from keyhop.jobs.task import TaskPlan
from keyhop.scan.page_size import Ledger
from keyhop.scan.reader import PageReader
from keyhop.scan.sampling import Opening, Survey
from keyhop.scan.statistics import Interval, forecast, rough_interval, rough_keys

SURVEY_UNITS = 5.0
"""Read units that a run may spend on random segments, to choose how many to have."""

SEGMENTS_IN_DOUBT = 8
"""At least so many if the table is not small for certain: a few too many cost less than too few."""


@dataclass(slots=True)
class Start:
    """How a run begins. opening: what the first look has found, if the run goes on from there.
    seconds: that it took. keys: how many there are, roughly, if that was looked at. units: that all
    of the run will read, as far as the look tells.
    """

    layout: Layout
    ledger: Ledger
    opening: Opening | None = None
    seconds: float = 0.0
    keys: float | None = None
    units: Interval | None = None


def first_look(
    reader: PageReader,
    plan: TaskPlan,
    wishes: Wishes,
    visits: bool,
    allowance: float = math.inf,
) -> Start:
    """Choose the layout, and make a ledger for it; where the layout depends on the table's content,
    take a first look.

    Costs a few small pages, and at most SURVEY_UNITS for random segments; a small table is
    read whole by the former, as far as `allowance` read units go. visits: whether pages are to be
    visited, so that the run begins with the first of them once more.
    """
    began = time.monotonic()
    ledger = Ledger.for_table(reader.source.mean_item_bytes)
    if plan.layout is not None:
        return Start(plan.layout, ledger, units=plan.units or Interval(0.0, 0.0, 0.0))
    if plan.method == "skip":
        start = _look_for_skip(reader, ledger, wishes, allowance)
    else:
        start = _look_for_scan(reader, ledger, wishes)
    reader.end_first_look()
    if visits:
        start.opening = None
    start.seconds = time.monotonic() - began
    return start


def _look_for_scan(reader: PageReader, ledger: Ledger, wishes: Wishes) -> Start:
    source = reader.source
    if (
        wishes.segments is None
        and wishes.verify_share is None
        and source.size_bytes <= SCAN_BYTES_PER_SEGMENT
    ):
        if source.size_bytes and source.whole:  # whole items are visited, so none is kept from here
            return Start(Layout(1, 1), ledger)
        first_page = Survey(reader, ledger, math.inf, random.Random()).open_scan()
        if first_page.position is None or source.size_bytes:
            return Start(Layout(1, 1), ledger, first_page, units=_left_after(first_page))
    return Start(layout_for_scan(source.size_bytes or None, wishes), ledger)


def _left_after(opening: Opening) -> Interval | None:
    return Interval(0.0, 0.0, 0.0) if opening.position is None else None


def _look_for_skip(reader: PageReader, ledger: Ledger, wishes: Wishes, allowance: float) -> Start:
    if wishes.segments is not None:
        # Whoever fixes the segments is taken to want them of the size that a plan gives them.
        requests = wishes.segments * KEYS_PER_SEGMENT
        return Start(spread(wishes, wishes.segments, requests), ledger)
    chance = random.Random()
    opening: Opening | None = None
    if wishes.verify_share is None:
        opening = Survey(reader, ledger, allowance, chance).open()
        if opening.is_enough:
            return Start(Layout(1, 1), ledger, opening, units=_left_after(opening))
    looks = Survey(reader, ledger, SURVEY_UNITS, chance).look_around()
    keys = rough_keys(looks, reader.source.item_count)
    seen = [collection for look in looks for collection in look.collections]
    per_key = forecast(seen, ledger.size.mean, chance)
    layout = layout_for_skip(keys, per_key, wishes)
    if layout.segments < SEGMENTS_IN_DOUBT and not (looks and looks[0].whole):
        layout = spread(wishes, SEGMENTS_IN_DOUBT)
    found = rough_interval(looks, keys, 0).scaled(per_key.units_per_key)
    ends = UNITS_PER_BLOCK * layout.segments
    units = Interval(found.mean + ends, found.low, found.high + ends) if looks else None
    opening = opening if layout.segments == 1 else None
    return Start(layout, ledger, opening, keys=keys, units=units)
