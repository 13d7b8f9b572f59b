"""The task `each` over a list: each row once, counted once, whoever is killed, cut off or twin."""

import json
import threading
from collections import Counter
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
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
    """Whatever ends a process."""


class Shelf(Effect):
    """Puts one item for each key on a shelf of its own, which survives crashes."""

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
                found = self.shelf.setdefault(key, self.mark)
                self.puts += 1
                if self.puts == self.crash_at:
                    raise Crash
            was_put = is_new or (found == self.mark and batch.was_tried())
            rows.append(done(row, PUT if was_put else THERE))
        return rows


@pytest.fixture
def job_of(strict: Database, table_name: str, tmp_path: Path) -> Callable[..., LocalJob]:
    """A job over the list in `list`, in a directory of its own."""
    connection = connect(Endpoint(region="us-east-1", url=strict.url), 8)

    def made(effect: Effect, folder: str, resume: bool = False, **options: Any) -> LocalJob:
        journal = opened(tmp_path / folder, resume)
        tasks = {
            "each": lambda connection, options: EachTask(
                connection,
                options,
                lambda name: Journal(Directory(tmp_path / name)),
                lambda options, work: effect,
            )
        }
        own = {"effect": {"kind": "put", "overwrite": False}, "keys": "list", **options}
        request = Request(table_name, "each", own, format="jsonl")
        job = LocalJob(request, tasks, connection, journal)
        job.prepare(look_up(connection, table_name))
        job.begin()
        journal.store.unlock()  # type: ignore[attr-defined]
        return job

    return made


def rows_of(path: Path) -> list[Row]:
    journal = Journal(Directory(path))
    plan = journal.plan()
    return [row for c in journal.commits(0) for p in c.parts for _, row in journal.keys(plan, p)]


@pytest.mark.parametrize(
    ("format_", "segments"),
    [
        ("typed-json", "60"),
        ("csv", "1"),
        *(prove("typed-json", "1"), prove("csv", "60"), prove("text", "1"), prove("text", "60")),
    ],
)
def test_each_key_is_worked_once(
    strict: Database,
    table_name: str,
    tmp_path: Path,
    job_of: Callable[..., LocalJob],
    format_: str,
    segments: str,
) -> None:
    expected = strict.collections(table_name, SIZES)
    where = ("--segments", segments, "--format", format_)
    assert strict.keys(table_name, "-o", str(tmp_path / "list"), *where).status == 0
    effect = Shelf({}, "a")
    job = job_of(effect, "run")
    assert job.work()
    _, summary = job.finish()
    assert summary["counts"] == {PUT: len(expected)}
    assert summary["method"] == "listed"
    assert summary["read_units"] == 0
    assert Counter(row["pk"]["S"] for row in rows_of(tmp_path / "run")) == Counter(expected)


def test_crashed_and_gone_on_with_it_comes_to_the_same(
    strict: Database, table_name: str, tmp_path: Path, job_of: Callable[..., LocalJob]
) -> None:
    expected = strict.collections(table_name, SIZES)
    assert strict.keys(table_name, "-o", str(tmp_path / "list"), "--segments", "60").status == 0
    shelf: dict[Any, str] = {}
    listed = rows_of(tmp_path / "list")
    shelf.update({canonical(row["pk"]): "theirs" for row in listed[:100]})
    for number in range(4):
        effect = Shelf(shelf, "a")
        effect.crash_at = 300 + 100 * number
        with pytest.raises(Crash):
            job_of(effect, "run", resume=number > 0).work()
    job = job_of(Shelf(shelf, "a"), "run", resume=True)
    assert job.work()
    _, summary = job.finish()
    assert summary["counts"] == {PUT: len(expected) - 100, THERE: 100}
    outcomes = Counter(row[OUTCOME]["S"] for row in rows_of(tmp_path / "run"))
    assert outcomes == summary["counts"]


def test_an_equal_item_of_another_run_is_no_put(
    strict: Database, table_name: str, tmp_path: Path, job_of: Callable[..., LocalJob]
) -> None:
    expected = strict.collections(table_name, SIZES[:300])
    assert strict.keys(table_name, "-o", str(tmp_path / "list")).status == 0
    shelf: dict[Any, str] = {}
    for run, outcome in (("one", PUT), ("two", THERE)):
        job = job_of(Shelf(shelf, "a"), run)
        assert job.work()
        assert job.finish()[1]["counts"] == {outcome: len(expected)}


@pytest.mark.prove
def test_slices_that_are_cut_off_anywhere_claim_nothing(
    strict: Database, table_name: str, tmp_path: Path, job_of: Callable[..., LocalJob]
) -> None:
    """A slice ends with each of the first batches, in the middle of it: what it had done counts."""
    expected = strict.collections(table_name, SIZES[:300])
    assert strict.keys(table_name, "-o", str(tmp_path / "list"), "--segments", "20").status == 0
    shelf: dict[Any, str] = {}

    class Interrupted(Shelf):
        def apply(self, batch: Batch) -> list[Row]:
            if self.puts < 100 and len(batch.rows) > 2:
                rows = super().apply(replace(batch, rows=batch.rows[:2]))
                batch.over.set()
                return rows
            return super().apply(batch)

    for run, outcome in (("one", PUT), ("two", THERE)):
        job = job_of(Interrupted(shelf, "a"), run)
        assert job.work()
        totals, summary = job.finish()
        assert summary["counts"] == {outcome: len(expected)}
        assert totals.commits > 20


def test_twins_count_each_key_once(
    strict: Database, table_name: str, tmp_path: Path, job_of: Callable[..., LocalJob]
) -> None:
    expected = strict.collections(table_name, SIZES)
    assert strict.keys(table_name, "-o", str(tmp_path / "list"), "--segments", "60").status == 0
    shelf: dict[Any, str] = {}
    jobs = [job_of(Shelf(shelf, "a"), "run", resume=twin) for twin in (False, True)]
    with ThreadPoolExecutor() as pool:
        assert all(pool.map(LocalJob.work, jobs))
    assert jobs[0].finish()[1]["counts"] == {PUT: len(expected)}


def test_only_keys_of_which_the_condition_holds(
    strict: Database, table_name: str, tmp_path: Path, job_of: Callable[..., LocalJob]
) -> None:
    expected = strict.collections(table_name, SIZES[:300])
    assert strict.keys(table_name, "-o", str(tmp_path / "list"), "--segments", "9").status == 0
    effect = Shelf({}, "a")
    where = {"form": "begins_with", "arguments": ["k1"]}
    job = job_of(effect, "run", where=where)
    assert job.work()
    wanted = {
        canonical(row["pk"])
        for row in rows_of(tmp_path / "list")
        if row["pk"]["S"].startswith("k1")
    }
    assert 0 < len(wanted) < len(expected)
    assert job.finish()[1]["counts"] == {PUT: len(wanted)}
    assert set(effect.shelf) == wanted


def test_what_is_no_list_is_refused(
    strict: Database, table_name: str, tmp_path: Path, job_of: Callable[..., LocalJob]
) -> None:
    strict.collections(table_name, SIZES[:30])
    with pytest.raises(CannotStart, match="does not exist"):
        job_of(Shelf({}, "a"), "run")


@pytest.mark.parametrize("was_handed_over", [False, True])
def test_rows_that_a_slice_has_worked_and_not_counted_are_known_to_the_next(
    strict: Database,
    table_name: str,
    tmp_path: Path,
    job_of: Callable[..., LocalJob],
    was_handed_over: bool,
) -> None:
    """A slice may end between a batch and the moment in which its rows are handed over."""
    strict.collections(table_name, [1] * 40)
    assert strict.keys(table_name, "-o", str(tmp_path / "list")).status == 0
    tried = []

    class Asks(Shelf):
        def apply(self, batch: Batch) -> list[Row]:
            tried.append(batch.was_tried())
            return super().apply(batch)

    job = job_of(Asks({}, "a"), "run")
    pages = job.task.pages(job.journal, job.plan, job.reader)
    first = pages.step(0, BEGINNING, threading.Event()).position
    assert first is not None
    second = pages.step(0, first, threading.Event()).position
    for _ in range(2):  # the next slice may not come to this cell
        learnt = json.loads(json.dumps(pages.learnt()))  # it is kept with the checkpoint
        pages = job.task.pages(job.journal, job.plan, job.reader)
        pages.go_on(learnt)
    assert second is not None
    pages.step(0, second if was_handed_over else first, threading.Event())
    assert tried == [False, False, not was_handed_over]
