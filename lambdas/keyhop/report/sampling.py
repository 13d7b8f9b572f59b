"""A sample in this process, and the second read of a finished sample's largest collections.

The second read is for their lengths and places. The files of a run hold only digests. So a key from
an index is found again in the segment of the index that contained it. Keys from the stream or
Contributor Insights are arguments, from a caller that has them in memory.
"""

import random
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from threading import Event
from typing import Any

from keyhop.dynamodb.client import Connection
from keyhop.dynamodb.rate_limit import Budget
from keyhop.dynamodb.tables import Table, look_up
from keyhop.dynamodb.units import BLOCK_BYTES
from keyhop.dynamodb.usage import Usage
from keyhop.dynamodb.values import Key
from keyhop.errors import BrokenPromise, BudgetSpent, NotPermitted, Stopped
from keyhop.jobs.journal import Journal, Part, RunPlan
from keyhop.jobs.local import LocalJob
from keyhop.jobs.request import Request
from keyhop.report.estimate import Estimate
from keyhop.report.facts import Collection, SampleFacts
from keyhop.report.facts_json import from_json
from keyhop.report.sample.examine import Examination, mean_bytes_of, place, probe
from keyhop.report.sample.largest import OF_INDEX, SEGMENT, by_size, within_bytes
from keyhop.report.sample.reading import Asker
from keyhop.report.sample.rows import DrawRow
from keyhop.report.statistics.window import BUDGET
from keyhop.report.task import SAMPLE, OursOf, ReportTask, examination, population, rows_of
from keyhop.scan.reader import PageReader
from keyhop.storage.store import Memory

ENOUGH = (BudgetSpent, NotPermitted)
"""Errors after which the facts stay as the sample gave them, since a second look only refines them.
The second look may need permissions that the sample did not: it may run under another role.
"""

FEWEST_UNITS = 2.0
"""The remaining units below which no further collection is read."""


def sample(
    connection: Connection,
    table: Table,
    request: Request,
    *,
    candidates: Mapping[str, Sequence[Key]] = {},
    ours_of: OursOf = lambda table: (),
    journal: Journal | None = None,
    stop: Event | None = None,
    usage: Usage | None = None,
    idle: Callable[[], None] = lambda: None,
) -> SampleFacts:
    """Return the facts from a sample of a table.

    Args:
        request: The request of report/request.py.
        candidates: See `look_again`.
        ours_of: Returns the attributes that identify items of Keyhop in a table.
        journal: The journal from which a stopped run can resume; None to leave nothing behind.
        stop: Set to stop the sample.
        usage: Receives the use of capacity.
        idle: Called while threads work.

    Raises:
        Stopped: `stop` was set.
        KeyhopError: Any error of a job.
    """

    def task(connection: Connection, options: Any) -> ReportTask:
        return ReportTask(connection, options, ours_of)

    job = LocalJob(
        request,
        {request.task: task},
        connection,
        journal or Journal(Memory()),
        stop=stop or Event(),
        patience=connection.patience,
        usage=usage or Usage(),
    )
    job.prepare(table)
    job.begin()
    is_kept = journal is not None
    job.work(idle, output=None if is_kept else job.journal.new_part(job.plan, 0, 0))
    if not job.finish()[1]["finished"]:
        raise Stopped
    return look_again(
        connection,
        job.journal,
        candidates,
        max_read_rate=request.max_read_rate,
        stop=job.stop,
        usage=job.usage,
    )


def look_again(
    connection: Connection,
    journal: Journal,
    candidates: Mapping[str, Sequence[Key]] = {},
    *,
    max_read_rate: float | None = None,
    stop: Event | None = None,
    usage: Usage | None = None,
) -> SampleFacts:
    """Return the facts of a finished run of the task `report`, with measured largest collections.

    It reads what remains of the run's units.

    Args:
        connection: The connection to DynamoDB.
        journal: The journal of the run.
        candidates: Partition keys that may be large, by their source, such as "stream".
        max_read_rate: The maximum read units a second.
        stop: Set to stop reading.
        usage: Receives the use of capacity.

    Raises:
        BrokenPromise: The sample is not finished, or the table is another one.
        Stopped: `stop` was set.
        KeyhopError: Any error of reading.
    """
    plan, manifest = journal.plan(), journal.manifest()
    if plan is None or manifest is None:
        raise BrokenPromise("The sample is not finished, so nothing can be confirmed.")
    facts = from_json(SampleFacts, manifest[SAMPLE])
    table = look_up(connection, plan.table)
    source = table.source()
    if source.identity != plan.identity:
        raise BrokenPromise(f"{plan.title} is not the table that was sampled: start a new report.")
    units = plan.options["units"]
    budget = Budget(max_read_rate, None if units is None else max(0.0, units - facts.rru))
    patience = connection.patience
    reader = PageReader(connection, source, budget, patience=patience, stop=stop or Event())
    try:
        return _looked_again(reader, journal, plan, manifest, facts, candidates)
    finally:
        if usage is not None:
            usage.add(reader.usage)


def _looked_again(
    reader: PageReader,
    journal: Journal,
    plan: RunPlan,
    manifest: Mapping[str, Any],
    facts: SampleFacts,
    candidates: Mapping[str, Sequence[Key]],
) -> SampleFacts:
    look = _Look(Asker(reader, plan.options["means"]), examination(plan), plan, _mean(facts))
    draws = _draws(journal, plan, manifest["parts"])
    collections = {collection.key: collection for collection in facts.top}
    biased = list(facts.biased)
    maximum = int(plan.options["report"]["confirm"])
    for by, keys in candidates.items():
        biased.append(by)
        for key in keys[:maximum]:
            name = look.shown(key)
            if name not in collections or collections[name].by == SEGMENT:
                collections[name] = look.measured(collections.get(name) or _unknown(name, by), key)
    for collection in by_size(collections.values())[:maximum]:
        if collection.by.startswith(OF_INDEX):
            collections[collection.key] = look.measured(
                collection, look.find(collection.key, draws)
            )
    return replace(
        facts,
        top=tuple(
            within_bytes(collection, population(plan))
            for collection in by_size(collections.values())
        ),
        biased=tuple(dict.fromkeys(biased)),
        rru=facts.rru + reader.usage.read_units,
        items_read=facts.items_read + reader.usage.items,
    )


class _Look:
    """Reads the largest collections of a sample.

    Args:
        asker: The sender of requests.
        looked: The examination of the run.
        plan: The plan of the run.
        mean: The mean bytes of the table's items.
    """

    def __init__(self, asker: Asker, looked: Examination, plan: RunPlan, mean: float) -> None:
        self._asker = asker
        self._looked = looked
        self._chance = random.Random(plan.options["seed"])
        self._mean = mean
        self.shown = looked.looking.shower.shown

    def find(self, shown_key: str, draws: Sequence[DrawRow]) -> Key | None:
        """Return the key that an index contained; None if it no longer exists."""
        row = next((row for row in draws if shown_key in row.keys), None)
        if row is None or self._is_spent:
            return None
        space = self._looked.space
        try:
            items = self._asker.run(self._looked.entries(row.index, row.number, row.segments))
        except ENOUGH:
            return None
        keys = map(space.partition_of, items)
        return next((key for key in keys if self.shown(key) == shown_key), None)

    def measured(self, collection: Collection, key: Key | None) -> Collection:
        """Return a collection with its length and its place, if the units suffice."""
        if key is None or self._is_spent:
            return collection
        space, ours = self._looked.space, self._looked.ours
        try:
            if space.sort is not None and collection.items.level < 1.0:
                length, read = self._asker.run(
                    probe(space, key, self._mean, ours, BUDGET, self._chance)
                )
                items, mean = better(collection.items, length), mean_bytes_of(read)
                size = items.scaled(mean) if mean else collection.bytes
                collection = replace(collection, items=items, bytes=size)
            if collection.place is None:
                collection = replace(collection, place=self._asker.run(place(space, key)))
        except ENOUGH:
            return collection
        return collection

    @property
    def _is_spent(self) -> bool:
        return self._asker.reader.budget.remaining < FEWEST_UNITS


def better(first: Estimate, second: Estimate) -> Estimate:
    """Return the estimate with the narrower interval, relative to its value."""

    def width(estimate: Estimate) -> float:
        return (estimate.high - estimate.low) / max(1.0, estimate.value)

    return second if width(second) < width(first) else first


def _mean(facts: SampleFacts) -> float:
    middle = facts.item_bytes.get(0.5)
    return BLOCK_BYTES if middle is None else middle.value


def _unknown(shown_key: str, by: str) -> Collection:
    return Collection(shown_key, Estimate.at_least(0.0, 0, by), None, None, by)


def _draws(journal: Journal, plan: RunPlan, parts: Sequence[Mapping[str, object]]) -> list[DrawRow]:
    named = {str(part["name"]) for part in parts}
    counted: list[Part] = [
        part
        for group in range(plan.groups)
        for commit in journal.commits(group)
        for part in commit.parts
        if part.name in named
    ]
    return [row for row in rows_of(journal, plan, counted, True) if isinstance(row, DrawRow)]
