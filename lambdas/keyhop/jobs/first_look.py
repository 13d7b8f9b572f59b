"""How a run begins: a first look at the table, where its layout depends on what is in it."""

import math
import random
from dataclasses import dataclass

from keyhop.jobs.layout import (
    KEYS_PER_SEGMENT,
    REQUESTS_PER_SECOND,
    SCAN_BYTES_PER_SEGMENT,
    Layout,
    Method,
    Wishes,
    choose_threads,
    layout_for_scan,
    layout_for_skip,
)
from keyhop.scan.cost_simulation import forecast
from keyhop.scan.page_size import Ledger
from keyhop.scan.reader import PageReader
from keyhop.scan.sampling import Opening, Survey
from keyhop.scan.statistics import rough_keys

SURVEY_UNITS = 5.0
"""Read units that a run may spend on random segments, to choose how many to have."""

SEGMENTS_IN_DOUBT = 8
"""At least so many if the table is not small for certain: a few too many cost less than too few."""


@dataclass(slots=True)
class Start:
    """How a run begins. opening: what the first look has found, if the run goes on from there."""

    layout: Layout
    ledger: Ledger
    opening: Opening | None = None


def prepare(
    reader: PageReader, method: Method, wishes: Wishes, allowance: float = math.inf
) -> Start:
    """Choose the layout, and make a ledger for it; where the layout depends on the table's content,
    take a first look.

    Costs a few small pages, and at most SURVEY_UNITS for random segments; a small table is
    read whole by the former, as far as `allowance` read units go.
    """
    ledger = Ledger.for_table(reader.source.mean_item_bytes)
    if method == "skip":
        start = _look_for_skip(reader, ledger, wishes, allowance)
    else:
        start = _look_for_scan(reader, ledger, wishes)
    start.ledger.share(start.layout.threads)
    return start


def _look_for_scan(reader: PageReader, ledger: Ledger, wishes: Wishes) -> Start:
    source = reader.source
    if (
        wishes.segments is None
        and wishes.verify_share is None
        and source.size_bytes <= SCAN_BYTES_PER_SEGMENT
    ):
        first_page = Survey(reader, ledger, math.inf, random.Random()).open_scan()
        if first_page.position is None or source.size_bytes:
            return Start(Layout(1, 1), ledger, first_page)
    return Start(layout_for_scan(source.size_bytes or None, wishes), ledger)


def _look_for_skip(reader: PageReader, ledger: Ledger, wishes: Wishes, allowance: float) -> Start:
    if wishes.segments is not None:
        # Whoever fixes the segments is taken to want them of the size that a plan gives them.
        seconds_alone = wishes.segments * KEYS_PER_SEGMENT / REQUESTS_PER_SECOND
        threads = choose_threads(wishes, wishes.segments, seconds_alone)
        return Start(Layout(wishes.segments, threads), ledger)
    chance = random.Random()
    opening: Opening | None = None
    if wishes.verify_share is None:
        opening = Survey(reader, ledger, allowance, chance).open()
        if opening.is_enough:
            return Start(Layout(1, 1), ledger, opening)
    looks = Survey(reader, ledger, SURVEY_UNITS, chance).look_around()
    keys = rough_keys(looks, reader.source.item_count)
    seen = [collection for look in looks for collection in look.collections]
    layout = layout_for_skip(keys, forecast(seen, ledger.size.mean, chance), wishes)
    if layout.segments < SEGMENTS_IN_DOUBT and not (looks and looks[0].whole):
        layout = Layout(SEGMENTS_IN_DOUBT, choose_threads(wishes, SEGMENTS_IN_DOUBT))
    return Start(layout, ledger, opening if layout.segments == 1 else None)
