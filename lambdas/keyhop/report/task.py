"""The task `report`: a sample of a live table's data, and what it says of the table's keys."""

import math
import random
import time
import uuid
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any

from keyhop.dynamodb.client import Connection
from keyhop.dynamodb.schema import KEY_INDEX, keyspace_of
from keyhop.dynamodb.tables import Table
from keyhop.dynamodb.tables import request as ask_of_table
from keyhop.dynamodb.units import BLOCK_BYTES, UNITS_PER_BLOCK
from keyhop.dynamodb.values import Key, from_json, to_json
from keyhop.errors import KeyhopError
from keyhop.jobs.journal import Journal
from keyhop.jobs.layout import Layout
from keyhop.jobs.model import Part, RunPlan
from keyhop.jobs.pages import Pages
from keyhop.jobs.request import Request
from keyhop.jobs.task import Ended, Summary, Task, TaskOptions, TaskPlan
from keyhop.report.candidates.template import candidate
from keyhop.report.facts_json import sample_json
from keyhop.report.sample.asks import Asks
from keyhop.report.sample.complete import counted
from keyhop.report.sample.drawing import Drawing, draw, reads_through, units_to_read_through
from keyhop.report.sample.examine import Examination
from keyhop.report.sample.gather import gather
from keyhop.report.sample.observation import Looking
from keyhop.report.sample.pages import SamplePages
from keyhop.report.sample.population import Population
from keyhop.report.sample.reading import Asker
from keyhop.report.sample.rows import Row, from_key
from keyhop.report.shown import Shower
from keyhop.scan.page_size import Ledger
from keyhop.scan.reader import PageReader
from keyhop.scan.sampling import Survey
from keyhop.scan.statistics import Interval, rough_keys

LOOK_UNITS, LEAST_LOOK_UNITS, LOOK_SHARE = 20.0, 5.0, 0.1
"""For the order of magnitude of the number of keys: of little that may be read, a share. With too
few of them the smallest segments are not looked at, and a large table is taken for a small one.
"""

THREADS = 16
SEGMENTS_PER_WORKER = 400
"""Of a fleet: a few seconds of work."""

MOST_UNITS_PER_KEY = 12.0
"""Of a look at all keys, in pages of one item: a hop, and for a long collection its windows."""

MOST_NOTED = 1_000
"""Segments of whose items something is noted, if all are read: more tell hardly more."""

SAMPLE = "sample"
"""What a manifest says of the data."""


OursOf = Callable[[Table], Sequence[Key]]
"""Returns the attributes that identify items of Keyhop in a table."""


def _look_units(units: float | None) -> float:
    """units: that may be read in all."""
    if units is None:
        return LOOK_UNITS
    return min(LOOK_UNITS, max(LEAST_LOOK_UNITS, LOOK_SHARE * units))


class ReportTask(Task):
    """options: `units` that may be read, None for all that there is; `show_keys`; `ttl`, if the
    attribute is known, else it is asked for; `seed` of the draws, chosen if there is none. Of a run
    that was begun also `drawing` and what the table was like then.
    """

    visits = True  # the first look is another one, and one process suffices on a laptop

    def __init__(
        self,
        connection: Connection,
        options: TaskOptions,
        ours_of: OursOf = lambda table: (),
        segments_per_worker: int = SEGMENTS_PER_WORKER,
    ) -> None:
        """ours_of: from a table to what tells items of Keyhop's own in it."""
        super().__init__()
        self._connection = connection
        self._options = options
        self._ours_of = ours_of
        self._segments_per_worker = segments_per_worker

    def plan(self, table: Table, request: Request) -> TaskPlan:
        """Task.plan: which segments are read is decided by `look`."""
        source = table.source()
        indexes = _global_indexes(table)
        ttl = self._options.get("ttl", ...)
        options = {
            **self._options,
            "ttl": self._ttl_of(table) if ttl is ... else ttl,
            "now": time.time(),
            "seed": self._options.get("seed") or uuid.uuid4().hex,
            "ours": [to_json(one) for one in self._ours_of(table)],
            "indexes": indexes,
            "items": source.item_count,
            "means": _means(table),
        }
        method = "skip" if source.space.sort is not None else "scan"
        return TaskPlan(source, method, "a sample", options)  # type: ignore[arg-type]

    def look(self, reader: PageReader, plan: TaskPlan) -> TaskPlan:
        """Task.look: random segments, for the number of keys; then what to read is drawn."""
        options = plan.options
        chance = random.Random(options["seed"])
        ledger = Ledger.for_table(plan.source.mean_item_bytes)
        units = options["units"]
        looks = Survey(reader, ledger, _look_units(units), chance).look_around()
        keys = rough_keys(looks, plan.source.item_count)
        left = None if units is None else max(0.0, units - reader.usage.read_units)
        of_indexes = {
            name: (told["names"][: told["partition"]], told["items"] or plan.source.item_count)
            for name, told in options["indexes"].items()
            if not {*told["names"][: told["partition"]]} & {*plan.source.space.names}
        }
        page = UNITS_PER_BLOCK * ledger.size.blocks(1)
        drawing = draw(keys, left, of_indexes, chance, page)
        workers = max(1, drawing.size // self._segments_per_worker)
        layout = Layout(drawing.size, THREADS, workers, workers)
        size = plan.source.item_count * (plan.source.mean_item_bytes or math.inf)
        through = reads_through(drawing, left, size / BLOCK_BYTES * UNITS_PER_BLOCK)
        told = {**options, "drawing": drawing.to_json(), "through": through}
        ahead = Interval(2.0 * keys, keys, MOST_UNITS_PER_KEY * keys).scaled(page)
        return replace(plan, options=told, layout=layout, units=ahead if units is None else None)

    def pages(
        self, journal: Journal, plan: RunPlan, reader: PageReader, ledger: Ledger | None = None
    ) -> Pages:
        drawing = Drawing.from_json(plan.options["drawing"])
        looked = examination(plan)

        def examine(number: int) -> Asks[Row]:
            if drawing.kind(number) == "draw":
                index, segment = drawing.of_index(number)
                return looked.draw(index.index, segment, index.segments, index.names)
            return looked.segment(drawing.of_table(number), drawing.kind(number) == "probe")

        return SamplePages(Asker(reader, plan.options["means"]), drawing, examine)

    def finish(self, ended: Ended) -> Summary | None:
        """Task.finish: the rows make facts."""
        plan, usage = ended.plan, ended.totals.usage
        rows = rows_of(ended.journal, plan, ended.totals.parts)
        facts = counted(gather(rows, population(plan), usage.read_units, usage.items), rows)
        return {**ended.summary, SAMPLE: sample_json(facts)}

    def _ttl_of(self, table: Table) -> str | None:
        """None too if it is not told."""
        try:
            answer = ask_of_table(self._connection, table.name, "describe_time_to_live")
        except KeyhopError:
            return None
        told = answer.get("TimeToLiveDescription", {})
        is_on = told.get("TimeToLiveStatus") in ("ENABLED", "ENABLING")
        return str(told["AttributeName"]) if is_on else None


def rows_of(journal: Journal, plan: RunPlan, parts: Iterable[Part]) -> list[Row]:
    """What these parts of a run hold."""
    return [from_key(key) for part in parts for _, key in journal.keys(plan, part)]


def examination(plan: RunPlan) -> Examination:
    """How a run looks at segments."""
    options = plan.options
    looking = Looking(
        Shower(plan.identity, options.get("show_keys", "digest")),
        options["now"],
        plan.space.sort.name if plan.space.sort else None,
        options["ttl"],
        {
            name: (tuple(told["names"]), told["partition"])
            for name, told in options["indexes"].items()
        },
        tuple(map(candidate, _candidates(plan))),
    )
    ours = tuple(map(from_json, options["ours"]))
    segments = options["drawing"]["segments"]
    noted = min(1.0, MOST_NOTED / segments) if options["units"] is None else 1.0
    return Examination(
        plan.space,
        segments,
        looking,
        ours,
        seed=options["seed"],
        noted=noted,
        through=options["through"],
    )


def population(plan: RunPlan) -> Population:
    """Return the table that a run has sampled, as it was described when the run began."""
    options, drawing = plan.options, plan.options["drawing"]
    size = options["items"] * options["means"].get("", 0.0)
    reading = size / BLOCK_BYTES * UNITS_PER_BLOCK
    through = units_to_read_through(drawing["segments"], reading, drawing["shares"])
    return Population(
        segments=drawing["segments"],
        items=options["items"],
        has_sort=plan.space.sort is not None,
        ttl=options["ttl"],
        indexes={name: told["items"] for name, told in options["indexes"].items()},
        candidates=_candidates(plan),
        bytes=size,
        has_sentinels=bool(options["ours"]),
        all_units=through + math.ceil(LOOK_UNITS) if size else 0.0,
    )


def _candidates(plan: RunPlan) -> tuple[str, ...]:
    """Templates of the candidate keys that were asked for."""
    return tuple(plan.options.get("report", {}).get("candidates", ()))


def _global_indexes(table: Table) -> dict[str, dict[str, Any]]:
    """Of each that can be read and is the user's: names of its key attributes, the partition's
    first, how many of those there are, and its items.
    """
    found = {}
    for entry in table.description.get("GlobalSecondaryIndexes", ()):
        if entry["IndexName"] == KEY_INDEX or entry.get("IndexStatus", "ACTIVE") != "ACTIVE":
            continue
        if entry.get("Backfilling"):
            continue
        space = keyspace_of(table.description, entry)
        sort = [one["AttributeName"] for one in entry["KeySchema"] if one["KeyType"] == "RANGE"]
        found[entry["IndexName"]] = {
            "names": [*space.names, *sort],
            "partition": len(space.names),
            "items": int(entry.get("ItemCount", 0)),
        }
    return found


def _means(table: Table) -> Mapping[str, float]:
    """Bytes of an item on average, by index and "" for the table; what is not told is left out."""
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
