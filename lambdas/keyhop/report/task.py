"""The task `report`: a sample of a live table's data, and its figures for the table's keys."""

import random
import time
import uuid
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any

from keyhop.dynamodb import values
from keyhop.dynamodb.client import Connection
from keyhop.dynamodb.schema import KEY_INDEX, keyspace_of
from keyhop.dynamodb.tables import Table
from keyhop.dynamodb.tables import request as ask_of_table
from keyhop.dynamodb.units import BLOCK_BYTES, UNITS_PER_BLOCK
from keyhop.dynamodb.values import Key
from keyhop.errors import KeyhopError
from keyhop.jobs.journal import Journal, Part, RunPlan
from keyhop.jobs.layout import Layout
from keyhop.jobs.pages import Pages
from keyhop.jobs.request import Request
from keyhop.jobs.task import Ended, Summary, Task, TaskOptions, TaskPlan
from keyhop.report.candidates import candidate
from keyhop.report.facts_json import from_json, to_json
from keyhop.report.forms import Shower
from keyhop.report.sample.asks import Asks
from keyhop.report.sample.drawing import (
    Drawing,
    Population,
    draw,
    draw_all,
    units_to_read_through,
)
from keyhop.report.sample.examine import Examination
from keyhop.report.sample.gather import counted, gather
from keyhop.report.sample.reading import Asker, SamplePages
from keyhop.report.sample.rows import Looking, Row, from_key, is_draw
from keyhop.scan.page_size import Ledger
from keyhop.scan.reader import PageReader
from keyhop.scan.sampling import Survey
from keyhop.scan.statistics import Interval, rough_keys

LOOK_UNITS, LEAST_LOOK_UNITS, LOOK_SHARE = 20.0, 5.0, 0.1
"""Read units for the order of magnitude of the number of keys: a share of a small maximum.
With fewer units the smallest segments are not read, and a large table looks like a small one.
"""

THREADS = 16
SEGMENTS_PER_WORKER = 400
"""The segments of one worker of a fleet: a few seconds of work."""

MOST_UNITS_PER_KEY = 12.0
"""The maximum cost of a key in pages of one item: a hop, and the windows of a long collection."""

MOST_NOTED = 1_000
"""The maximum number of segments with observations of items; more would add little."""

GROWN = 3.0
"""A first look with this many keys for each reported item shows that the table has grown."""

MOST_OBSERVED = 100_000
"""The maximum number of observations of a sample that reads every item."""

SAMPLE = "sample"
"""The field of a manifest with the facts of the data."""

TTL_PATIENCE_SECONDS = 5.0
"""The sample can do without the attribute of time to live."""


OursOf = Callable[[Table], Sequence[Key]]
"""Returns the attributes that identify items of Keyhop in a table."""


def _look_units(units: float | None) -> float:
    """Return the read units of the first look.

    Args:
        units: The maximum read units of the sample; None for no limit.
    """
    if units is None:
        return LOOK_UNITS
    return min(LOOK_UNITS, max(LEAST_LOOK_UNITS, LOOK_SHARE * units))


class ReportTask(Task):
    """The sample of a table.

    The options are `units` (the maximum read units, None for no limit), `show_keys`, `ttl` (the
    attribute; read from the table if missing) and `seed` of the draws (random if missing). The
    options of a run that has begun also have `drawing` and the table's state at that time.
    """

    visits = True  # the first look differs, and one process suffices on a laptop

    def __init__(
        self,
        connection: Connection,
        options: TaskOptions,
        ours_of: OursOf = lambda table: (),
        segments_per_worker: int = SEGMENTS_PER_WORKER,
    ) -> None:
        """Create the task.

        Args:
            connection: The connection to DynamoDB.
            options: The options of the task.
            ours_of: Returns the attributes that identify items of Keyhop in a table.
            segments_per_worker: The number of segments of one worker.
        """
        super().__init__()
        self._connection = connection
        self._options = options
        self._ours_of = ours_of
        self._segments_per_worker = segments_per_worker

    def plan(self, table: Table, request: Request) -> TaskPlan:
        """Task.plan: `look` decides which segments are read."""
        source = table.source()
        indexes = _global_indexes(table)
        ttl = self._options.get("ttl", ...)
        options = {
            **self._options,
            "ttl": self._ttl_of(table) if ttl is ... else ttl,
            "now": time.time(),
            "seed": self._options.get("seed") or uuid.uuid4().hex,
            "ours": [values.to_json(attributes) for attributes in self._ours_of(table)],
            "indexes": indexes,
            "items": source.item_count,
            "means": _means(table),
        }
        method = "skip" if source.space.sort is not None else "scan"
        return TaskPlan(source, method, "a sample", options)  # type: ignore[arg-type]

    def look(self, reader: PageReader, plan: TaskPlan) -> TaskPlan:
        """Task.look: estimate the number of keys by random segments, then draw."""
        options = plan.options
        chance = random.Random(options["seed"])
        ledger = Ledger.for_table(plan.source.mean_item_bytes)
        units = options["units"]
        looks = Survey(reader, ledger, _look_units(units), chance).look_around()
        keys = rough_keys(looks, plan.source.item_count)
        remaining = None if units is None else max(0.0, units - reader.usage.read_units)
        of_indexes = {
            name: (index["names"][: index["partition"]], index["items"] or plan.source.item_count)
            for name, index in options["indexes"].items()
            if not {*index["names"][: index["partition"]]} & {*plan.source.space.names}
        }
        page = UNITS_PER_BLOCK * ledger.size.blocks(1)
        drawing = None
        if remaining is not None:
            items: float = plan.source.item_count
            items = keys if keys > GROWN * items else items
            size = items * (plan.source.mean_item_bytes or 0.0)
            drawing = draw_all(keys, remaining, size / BLOCK_BYTES * UNITS_PER_BLOCK, chance)
        drawing = drawing or draw(keys, remaining, of_indexes, chance, page)
        workers = max(1, drawing.size // self._segments_per_worker)
        layout = Layout(drawing.size, THREADS, workers, workers)
        drawn_options = {**options, "drawing": to_json(drawing)}
        expected = Interval(2.0 * keys, keys, MOST_UNITS_PER_KEY * keys).scaled(page)
        return replace(
            plan, options=drawn_options, layout=layout, units=expected if units is None else None
        )

    def pages(
        self, journal: Journal, plan: RunPlan, reader: PageReader, ledger: Ledger | None = None
    ) -> Pages:
        drawing = from_json(Drawing, plan.options["drawing"])
        looked = examination(plan)

        def examine(number: int) -> Asks[Row]:
            if drawing.kind(number) == "draw":
                index, segment = drawing.of_index(number)
                return looked.draw(index.index, segment, index.segments, index.names)
            return looked.segment(drawing.of_table(number), drawing.kind(number) == "probe")

        return SamplePages(Asker(reader, plan.options["means"]), drawing, examine)

    def finish(self, ended: Ended) -> Summary | None:
        """Task.finish: turn the rows into facts."""
        plan, usage = ended.plan, ended.totals.usage
        rows = rows_of(ended.journal, plan, ended.totals.parts)
        facts = counted(gather(rows, population(plan), usage.read_units, usage.items), rows)
        return {**ended.summary, SAMPLE: to_json(facts)}

    def _ttl_of(self, table: Table) -> str | None:
        """Return the attribute of time to live; None if it is off or cannot be read."""
        try:
            answer = ask_of_table(
                self._connection, table.name, "describe_time_to_live", TTL_PATIENCE_SECONDS
            )
        except KeyhopError:
            return None
        description = answer.get("TimeToLiveDescription", {})
        is_on = description.get("TimeToLiveStatus") in ("ENABLED", "ENABLING")
        return str(description["AttributeName"]) if is_on else None


def rows_of(
    journal: Journal, plan: RunPlan, parts: Iterable[Part], draws_only: bool = False
) -> list[Row]:
    """Return the rows in these parts of a run, or only its draws of indexes."""
    keys = (key for part in parts for _, key in journal.keys(plan, part))
    return [from_key(key) for key in keys if not draws_only or is_draw(key)]


def examination(plan: RunPlan) -> Examination:
    """Return the settings by which a run reads segments."""
    options = plan.options
    looking = Looking(
        Shower(plan.identity, options.get("show_keys", "digest")),
        options["now"],
        plan.space.sort.name if plan.space.sort else None,
        options["ttl"],
        {
            name: (tuple(index["names"]), index["partition"])
            for name, index in options["indexes"].items()
        },
        tuple(map(candidate, _candidates(plan))),
    )
    ours = tuple(map(values.from_json, options["ours"]))
    drawing = from_json(Drawing, options["drawing"])
    observed_share = 1.0
    if options["units"] is None:
        observed_share = min(1.0, MOST_NOTED / drawing.segments)
    elif drawing.through:
        observed_share = min(1.0, MOST_OBSERVED / max(1, options["items"]))
    return Examination(
        plan.space,
        drawing.segments,
        looking,
        ours,
        seed=options["seed"],
        observed_share=observed_share,
        through=drawing.through,
    )


def population(plan: RunPlan) -> Population:
    """Return the table that a run has sampled, as it was described when the run began."""
    options, drawing = plan.options, plan.options["drawing"]
    size = options["items"] * options["means"].get("", 0.0)
    through = units_to_read_through(size / BLOCK_BYTES * UNITS_PER_BLOCK)
    return Population(
        segments=drawing["segments"],
        items=options["items"],
        has_sort=plan.space.sort is not None,
        ttl=options["ttl"],
        indexes={name: index["items"] for name, index in options["indexes"].items()},
        candidates=_candidates(plan),
        bytes=size,
        has_sentinels=bool(options["ours"]),
        all_units=through + LOOK_UNITS if through else 0.0,
    )


def _candidates(plan: RunPlan) -> tuple[str, ...]:
    """Return the templates of the candidate keys."""
    return tuple(plan.options.get("report", {}).get("candidates", ()))


def _global_indexes(table: Table) -> dict[str, dict[str, Any]]:
    """Return the GSIs of the user that can be read.

    Each has the names of its key attributes, the partition's first, their number in the partition
    key, and its items.
    """
    indexes = {}
    for entry in table.description.get("GlobalSecondaryIndexes", ()):
        if entry["IndexName"] == KEY_INDEX or entry.get("IndexStatus", "ACTIVE") != "ACTIVE":
            continue
        if entry.get("Backfilling"):
            continue
        space = keyspace_of(table.description, entry)
        sort = [
            element["AttributeName"]
            for element in entry["KeySchema"]
            if element["KeyType"] == "RANGE"
        ]
        indexes[entry["IndexName"]] = {
            "names": [*space.names, *sort],
            "partition": len(space.names),
            "items": int(entry.get("ItemCount", 0)),
        }
    return indexes


def _means(table: Table) -> Mapping[str, float]:
    """Return the mean bytes of an item by index, and by "" for the table.

    Those without figures are left out.
    """
    entries = [("", table.description, "TableSizeBytes")]
    entries += [
        (entry["IndexName"], entry, "IndexSizeBytes")
        for entry in table.description.get("GlobalSecondaryIndexes", ())
    ]
    return {
        name: entry[size] / entry["ItemCount"]
        for name, entry, size in entries
        if entry.get("ItemCount") and entry.get(size)
    }
