"""The task `each` over a list processes and counts each row once, despite crashes and races."""

import json
import threading
from collections import Counter
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pytest
from keyhop.dynamodb.client import connect
from keyhop.dynamodb.endpoint import Endpoint
from keyhop.dynamodb.tables import look_up
from keyhop.dynamodb.values import canonical
from keyhop.each.effect import Batch, Effect
from keyhop.each.outcomes import OUTCOME, PUT, THERE, Row, done
from keyhop.each.task import EachTask
from keyhop.errors import CannotStart
from keyhop.jobs.journal import Journal
from keyhop.jobs.local import LocalJob, opened
from keyhop.jobs.request import Request
from keyhop.scan.skip_scan import BEGINNING
from keyhop.storage.local import Directory

from testing.databases import Database
from testing.marks import prove

SIZES = [1, 3, 2] * 900


class Crash(Exception):
    """The simulated end of a process."""


class Shelf(Effect):
    """An effect that puts an item for each key into a dictionary, which survives crashes."""

    is_marked = True
    at_once = 7

    def __init__(self, shelf: dict[Any, str], mark: str) -> None:
        self.shelf = shelf
        self.mark = mark
        self.puts = 0
        self.crash_at = -1
        self.lock = threading.Lock()
        self.batches: Counter[str] = Counter()

    def apply(self, batch: Batch) -> list[Row]:
        rows = []
        self.batches[batch.id] += 1
        for row in batch.rows:
            if batch.over.is_set():
                break
            key = canonical(row["pk"])
            with self.lock:
                is_new = key not in self.shelf
                mark = self.shelf.setdefault(key, self.mark)
                self.puts += 1
                if self.puts == self.crash_at:
                    raise Crash
            was_put = is_new or (mark == self.mark and batch.was_tried())
            rows.append(done(row, PUT if was_put else THERE))
        return rows


@dataclass
class Jobs:
    """Jobs over the keys in the directory `list`, each in a separate directory."""

    database: Database
    table: str
    path: Path

    def listed(self, sizes: Sequence[int], *how: str) -> set[str]:
        """Create a table and the list of its keys, and return the keys."""
        keys = self.database.collections(self.table, sizes)
        assert self.database.keys(self.table, "-o", str(self.path / "list"), *how).status == 0
        return keys

    def __call__(self, effect: Effect, folder: str, resume: bool = False, **more: Any) -> LocalJob:
        connection = connect(Endpoint(region="us-east-1", url=self.database.url), 8)
        journal = opened(self.path / folder, resume)

        def each(connection: Any, options: Any) -> EachTask:
            return EachTask(connection, options, self.journal, lambda options, work: effect)

        options = {"effect": {"kind": "put", "overwrite": False}, "keys": "list", **more}
        request = Request(self.table, "each", options, format="jsonl")
        job = LocalJob(request, {"each": each}, connection, journal)
        job.prepare(look_up(connection, self.table))
        job.begin()
        journal.store.unlock()  # type: ignore[attr-defined]
        return job

    def journal(self, folder: str) -> Journal:
        return Journal(Directory(self.path / folder))

    def rows(self, folder: str) -> list[Row]:
        journal = self.journal(folder)
        plan, parts = journal.plan(), [part for c in journal.commits(0) for part in c.parts]
        return [row for part in parts for _, row in journal.keys(plan, part)]


@pytest.fixture
def jobs(strict: Database, table_name: str, tmp_path: Path) -> Jobs:
    return Jobs(strict, table_name, tmp_path)


def counts(job: LocalJob) -> Any:
    """Run a job, and return the number of rows with each outcome."""
    assert job.work()
    return job.finish()[1]["counts"]


@pytest.mark.parametrize(
    ("format_", "segments"),
    [
        ("typed-json", "60"),
        ("csv", "1"),
        *(prove("typed-json", "1"), prove("csv", "60"), prove("text", "1"), prove("text", "60")),
    ],
)
def test_each_key_is_processed_once(jobs: Jobs, format_: str, segments: str) -> None:
    expected = jobs.listed(SIZES, "--segments", segments, "--format", format_)
    effect = Shelf({}, "a")
    job = jobs(effect, "run")
    assert job.work()
    _, summary = job.finish()
    assert summary["counts"] == {PUT: len(expected)}
    assert summary["method"] == "listed"
    assert summary["read_units"] == 0
    assert Counter(row["pk"]["S"] for row in jobs.rows("run")) == Counter(expected)


@pytest.mark.prove
def test_a_crashed_and_resumed_job_has_the_same_result(jobs: Jobs) -> None:
    expected = jobs.listed(SIZES, "--segments", "60")
    shelf = {canonical(row["pk"]): "theirs" for row in jobs.rows("list")[:100]}
    for number in range(4):
        effect = Shelf(shelf, "a")
        effect.crash_at = 300 + 100 * number
        with pytest.raises(Crash):
            jobs(effect, "run", resume=number > 0).work()
    job = jobs(Shelf(shelf, "a"), "run", resume=True)
    assert counts(job) == {PUT: len(expected) - 100, THERE: 100}
    outcomes = Counter(row[OUTCOME]["S"] for row in jobs.rows("run"))
    assert outcomes == {PUT: len(expected) - 100, THERE: 100}


def test_an_equal_item_of_another_run_does_not_count_as_put(jobs: Jobs) -> None:
    expected = jobs.listed(SIZES[:300])
    shelf: dict[Any, str] = {}
    for run, outcome in (("one", PUT), ("two", THERE)):
        assert counts(jobs(Shelf(shelf, "a"), run)) == {outcome: len(expected)}


@pytest.mark.prove
def test_slices_that_end_in_the_middle_of_a_batch_count_their_rows(jobs: Jobs) -> None:
    """A slice ends in the middle of each of the first batches."""
    expected = jobs.listed(SIZES[:300], "--segments", "20")
    shelf: dict[Any, str] = {}

    class Interrupted(Shelf):
        def apply(self, batch: Batch) -> list[Row]:
            if self.puts < 100 and len(batch.rows) > 2:
                rows = super().apply(replace(batch, rows=batch.rows[:2]))
                batch.over.set()
                return rows
            return super().apply(batch)

    for run, outcome in (("one", PUT), ("two", THERE)):
        job = jobs(Interrupted(shelf, "a"), run)
        assert job.work()
        totals, summary = job.finish()
        assert summary["counts"] == {outcome: len(expected)}
        assert totals.commits > 20


def test_two_concurrent_jobs_count_each_key_once(jobs: Jobs) -> None:
    expected = jobs.listed(SIZES, "--segments", "60")
    shelf: dict[Any, str] = {}
    twins = [jobs(Shelf(shelf, "a"), "run", resume=twin) for twin in (False, True)]
    with ThreadPoolExecutor() as pool:
        assert all(pool.map(LocalJob.work, twins))
    assert twins[0].finish()[1]["counts"] == {PUT: len(expected)}


def test_a_condition_selects_keys(jobs: Jobs) -> None:
    expected = jobs.listed(SIZES[:300], "--segments", "9")
    effect = Shelf({}, "a")
    where = {"form": "begins_with", "arguments": ["k1"]}
    job = jobs(effect, "run", where=where)
    keys = [row["pk"] for row in jobs.rows("list")]
    selected = {canonical(key) for key in keys if key["S"].startswith("k1")}
    assert 0 < len(selected) < len(expected)
    assert counts(job) == {PUT: len(selected)}
    assert set(effect.shelf) == selected


def test_a_missing_list_is_refused(jobs: Jobs) -> None:
    jobs.database.collections(jobs.table, SIZES[:30])
    with pytest.raises(CannotStart, match="does not exist"):
        jobs(Shelf({}, "a"), "run")


@pytest.mark.parametrize("was_counted", [False, True])
def test_the_next_slice_knows_rows_that_were_processed_and_not_counted(
    jobs: Jobs, was_counted: bool
) -> None:
    """A slice may end after it has processed a batch, and before its rows are counted."""
    jobs.listed([1] * 40)
    tried = []

    class RecordingShelf(Shelf):
        def apply(self, batch: Batch) -> list[Row]:
            tried.append(batch.was_tried())
            return super().apply(batch)

    job = jobs(RecordingShelf({}, "a"), "run")
    pages = job.task.pages(job.journal, job.plan, job.reader)
    first = pages.step(0, BEGINNING, threading.Event()).position
    assert first is not None
    second = pages.step(0, first, threading.Event()).position
    for _ in range(2):  # the next slice may not come to this cell
        learnt = json.loads(json.dumps(pages.learnt()))  # it is stored with the checkpoint
        pages = job.task.pages(job.journal, job.plan, job.reader)
        pages.go_on(learnt)
    assert second is not None
    pages.step(0, second if was_counted else first, threading.Event())
    assert tried == [False, False, not was_counted]
