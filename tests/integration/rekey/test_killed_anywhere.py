"""A job's function killed at any of its requests and file operations: what goes on with the run
repeats one slice at most. Slices are of one page here."""

import itertools
import shutil
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import pytest
from keyhop.dynamodb.client import Connection
from keyhop.jobs.journal import Journal
from keyhop.jobs.local import LocalJob
from keyhop.jobs.request import Request
from keyhop.jobs.task import Tasks
from keyhop.rekey.backfill import CLAIMED, COPIED, THERE
from keyhop.rekey.request import BackfillInput, VerifyInput, digests_of, with_digests
from keyhop.storage.local import DIGESTS, Directory
from keyhop.tasks import tasks_of

from testing.marks import prove, prove_long
from testing.rekey_pairs import ByTenant, RekeyTables, order, transform_of
from testing.rekey_tasks import verifying as tasks_of_a_verify
from tests.integration.crashing import CrashingStore
from tests.integration.rekey.conftest import worker_of
from tests.integration.rekey.faults import Doom, Killed
from tests.integration.rekey.test_verify import plant

pytestmark = pytest.mark.timeout(1800)

ITEMS, SEGMENTS = 24, 6
EVERY = pytest.mark.parametrize("every", [prove(3), prove_long(1)])
"""Of so many moments, one is tried."""


@dataclass
class Slices(Doom):
    """sent: what was asked, by slices: those that are committed, and the one under way."""

    sent: list[Counter[str]] = field(default_factory=lambda: [Counter()])


@dataclass
class DoomedClient:
    """Keyhop's own. writes_of: the table whose writes are counted; reads are counted of all."""

    client: Any
    doom: Slices
    writes_of: str

    def call(self, operation: str, **parameters: Any) -> Any:
        def act() -> Any:
            reads = operation in ("scan", "batch_get_item")
            if reads or parameters.get("TableName") == self.writes_of:
                self.doom.sent[-1][operation] += 1
            return self.client.call(operation, **parameters)

        return self.doom.step(act)


class DoomedStore(CrashingStore):
    """The files of a run."""

    def __init__(self, path: Path, doom: Slices) -> None:
        super().__init__(path)
        self.doom = doom
        self._step = doom.step  # type: ignore[method-assign]

    def within(self, folder: str) -> "DoomedStore":
        return DoomedStore(self.path / folder, self.doom)

    def create(self, name: str, content: bytes) -> bool:
        made = bool(super().create(name, content))
        if made and name.startswith("commits/"):
            self.doom.sent.append(Counter())
        return made


@dataclass
class OnePage:
    """Pages of which a slice has one."""

    pages: Any

    def __getattr__(self, name: str) -> Any:
        return getattr(self.pages, name)

    def step(self, segment: int, position: Any, over: Any) -> Any:
        step = self.pages.step(segment, position, over)
        over.set()
        return step


@dataclass
class Runs:
    """Of one job on one pair. requests: the runs that it is made of, by their directories."""

    requests: Mapping[str, Request]
    tasks_of: Callable[[Callable[[str], Journal]], Tasks]
    connection: Connection
    rekey: RekeyTables
    path: Path

    def run(self, doom: Slices) -> Mapping[str, Any]:
        """A new run, or on with it: its summary."""
        client = DoomedClient(self.connection.client, doom, self.rekey.pair.destination)
        connection = replace(self.connection, client=client)
        tasks = self.tasks_of(lambda run: Journal(DoomedStore(Path(run), doom)))
        summary: Mapping[str, Any] = {}
        for folder, request in self.requests.items():
            path = self.path / folder
            path.mkdir(parents=True, exist_ok=True)
            if Journal(Directory(path)).manifest():
                continue
            job = LocalJob(request, tasks, connection, Journal(DoomedStore(path, doom)))
            job.prepare()
            job.begin()
            job.group.pages = OnePage(job.group.pages)  # type: ignore[union-attr]
            job.group.most_threads = 1  # type: ignore[union-attr]
            assert job.work()
            summary = job.finish()[1]
        return summary

    def killed(
        self, every: int, before: Callable[[], object], looks: int = 1
    ) -> Iterator[Mapping[str, Any]]:
        """Kill a run at each moment, resume it, and yield its result each time.

        Asserts that no more is sent than without a kill, except for one slice, and for the reads of
        items of `looks` slices in a row.

        Args:
            before: Is called before each run.
            looks: The slices whose reads of items are committed together.
        """
        before()
        whole = Slices()
        self.run(whole)
        slices = whole.sent
        assert len(slices) > 3
        once = sum(slices, Counter[str]())
        most = {name: max(each[name] for each in slices) for name in once}
        rows = [sum(slices[at : at + looks], Counter[str]()) for at in range(len(slices))]
        most["batch_get_item"] = max(row["batch_get_item"] for row in rows)
        for at, after in itertools.product(range(1, whole.steps, every), (False, True)):
            shutil.rmtree(self.path)
            before()
            first, second = Slices(at, after), Slices()
            with pytest.raises(Killed):
                self.run(first)
            told = Journal(Directory(self.path)).manifest() or self.run(second)
            sent = sum((*first.sent, *second.sent), Counter[str]())
            for name in once:
                assert sent[name] <= once[name] + most[name], (at, after, name)
            yield told


LOOKS = 3
"""At each difference. A slice is one look at a wave, and nothing is committed before the last."""


@EVERY
def test_a_backfill_repeats_one_slice_at_most(
    contended: RekeyTables, connection: Connection, tmp_path: Path, every: int
) -> None:
    contended.put(order(number) for number in range(ITEMS - 1))
    contended.put([{**order(1), "pk": {"S": "another"}}])  # wants a place that is taken
    asked = BackfillInput.parse({"rekey": contended.pair.destination, "maxWriteRate": 1e6})
    request = replace(asked, segments=SEGMENTS)
    tasks = tasks_of(transform_of=transform_of)
    runs = Runs({"": request}, lambda journal_of: tasks, connection, contended, tmp_path / "run")

    def before() -> None:
        for partition, sort in contended.copied():
            key = {"pk": {"S": partition}, "sk": {"S": sort}}
            contended.database.client.delete_item(TableName=contended.pair.destination, Key=key)

    for summary in runs.killed(every, before):
        counts = summary["counts"]
        assert counts[COPIED] + counts.get(THERE, 0) == ITEMS - 1
        assert counts[CLAIMED] == 1
        assert len(contended.copied()) == ITEMS - 1
    assert len(contended.side.claims("forward")) in (1, 2)


def verifying(rekey: RekeyTables, connection: Connection, path: Path, **given: Any) -> Runs:
    request = VerifyInput.parse({"rekey": rekey.pair.destination, "repair": False, **given})
    second = with_digests(request, str(path / DIGESTS))
    return Runs(
        {DIGESTS: digests_of(request), "": second},
        lambda journal_of: tasks_of_a_verify(journal_of, transform_of),
        connection,
        rekey,
        path,
    )


@EVERY
def test_a_verify_repeats_the_looks_of_a_wave_at_most(
    rekey: RekeyTables, connection: Connection, tmp_path: Path, every: int
) -> None:
    """Both its parts: what reads the tables, page by page, and what compares the buckets."""
    orders = [order(number, size=250_000) for number in range(9)]
    rekey.put(orders[1:])
    changed = {**orders[-1], "total": {"N": "0"}}
    there = map(ByTenant().forward, [*orders[:-1], changed])
    rekey.database.fill(rekey.pair.destination, there)  # type: ignore[arg-type]
    runs = verifying(rekey, connection, tmp_path / "run")
    for summary in runs.killed(every, lambda: None, looks=LOOKS):
        told = summary["verify"]
        assert (told["items"], told["destination_items"]) == (8, 9)
        assert (told["surplus"], told["changed"], told["left"]) == (1, 1, 2)


@EVERY
def test_a_verify_that_repairs_repeats_the_looks_of_a_wave_at_most(
    rekey: RekeyTables, connection: Connection, tmp_path: Path, every: int
) -> None:
    orders = [order(number) for number in range(ITEMS)]
    rekey.put(orders)
    rekey.database.fill(rekey.pair.destination, map(ByTenant().forward, orders))  # type: ignore[arg-type]
    runs = verifying(rekey, connection, tmp_path / "run", repair=True)
    right = rekey.copied()
    for _ in runs.killed(every, lambda: plant(rekey, orders, 6), looks=LOOKS):
        assert rekey.copied() == right
        worker_of(rekey, connection).sweep()  # what was noted before it was settled, batches try
        assert rekey.side.claims("forward") == []
