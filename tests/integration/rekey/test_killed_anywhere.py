"""A job is killed at any of its requests and file operations; its successor repeats one page."""

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
from testing.rekey_tasks import verifying
from tests.integration.crashing import CrashingStore
from tests.integration.rekey.conftest import worker_of
from tests.integration.rekey.faults import Doom, Killed
from tests.integration.rekey.test_verify import plant

pytestmark = pytest.mark.timeout(1800)

ITEMS, SEGMENTS = 24, 6
EVERY = pytest.mark.parametrize("every", [prove(3), prove_long(1)])
"""The process is killed at every n-th moment."""


@dataclass
class Slices(Doom):
    """A process to kill; `sent` counts the requests of each committed and of the current slice."""

    sent: list[Counter[str]] = field(default_factory=lambda: [Counter()])


@dataclass
class DoomedClient:
    """A client that counts the reads of all tables and the writes of the table `writes_of`."""

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
    """The files of a run, whose operations are steps of a process."""

    def __init__(self, path: Path, doom: Slices) -> None:
        super().__init__(path)
        self.doom = doom
        self._step = doom.step  # type: ignore[method-assign]

    def within(self, folder: str) -> "DoomedStore":
        return DoomedStore(self.path / folder, self.doom)

    def create(self, name: str, content: bytes) -> bool:
        is_new = bool(super().create(name, content))
        if is_new and name.startswith("commits/"):
            self.doom.sent.append(Counter())
        return is_new


@dataclass
class OnePage:
    """Pages whose slice is over after one page."""

    pages: Any

    def __getattr__(self, name: str) -> Any:
        return getattr(self.pages, name)

    def step(self, segment: int, position: Any, over: Any) -> Any:
        result = self.pages.step(segment, position, over)
        over.set()
        return result


@dataclass
class Runs:
    """The runs of one job on one pair, by their directories."""

    requests: Mapping[str, Request]
    tasks_of: Callable[[Callable[[str], Journal]], Tasks]
    connection: Connection
    rekey: RekeyTables
    path: Path

    def run(self, doom: Slices) -> Mapping[str, Any]:
        """Start or continue the runs, and return the summary."""
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
            before: A function that is called before each run.
            looks: The number of slices whose reads of items are committed together.
        """
        before()
        uninterrupted = Slices()
        self.run(uninterrupted)
        slices = uninterrupted.sent
        assert len(slices) > 3
        total = sum(slices, Counter[str]())
        maximum = {name: max(each[name] for each in slices) for name in total}
        rows = [sum(slices[at : at + looks], Counter[str]()) for at in range(len(slices))]
        maximum["batch_get_item"] = max(row["batch_get_item"] for row in rows)
        for at, after in itertools.product(range(1, uninterrupted.steps, every), (False, True)):
            shutil.rmtree(self.path)
            before()
            first, second = Slices(at, after), Slices()
            with pytest.raises(Killed):
                self.run(first)
            summary = Journal(Directory(self.path)).manifest() or self.run(second)
            sent = sum((*first.sent, *second.sent), Counter[str]())
            for name in total:
                assert sent[name] <= total[name] + maximum[name], (at, after, name)
            yield summary


LOOKS = 3
"""The looks at each difference. A slice is one look, and only the last one is committed."""


@EVERY
def test_a_backfill_repeats_at_most_one_slice(
    contended: RekeyTables, connection: Connection, tmp_path: Path, every: int
) -> None:
    contended.put(order(number) for number in range(ITEMS - 1))
    contended.put([{**order(1), "pk": {"S": "another"}}])  # its place belongs to another item
    request = BackfillInput.parse({"rekey": contended.pair.destination, "maxWriteRate": 1e6})
    request = replace(request, segments=SEGMENTS)
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


def runs_of_a_verification(
    rekey: RekeyTables, connection: Connection, path: Path, **fields: Any
) -> Runs:
    request = VerifyInput.parse({"rekey": rekey.pair.destination, "repair": False, **fields})
    second = with_digests(request, str(path / DIGESTS))
    return Runs(
        {DIGESTS: digests_of(request), "": second},
        lambda journal_of: verifying(journal_of, transform_of),
        connection,
        rekey,
        path,
    )


@EVERY
def test_a_verification_repeats_at_most_the_looks_of_a_wave(
    rekey: RekeyTables, connection: Connection, tmp_path: Path, every: int
) -> None:
    """The job is killed in both runs: while it reads pages, and while it compares buckets."""
    orders = [order(number, size=250_000) for number in range(9)]
    rekey.put(orders[1:])
    changed = {**orders[-1], "total": {"N": "0"}}
    images = map(ByTenant().forward, [*orders[:-1], changed])
    rekey.database.fill(rekey.pair.destination, images)  # type: ignore[arg-type]
    runs = runs_of_a_verification(rekey, connection, tmp_path / "run")
    for summary in runs.killed(every, lambda: None, looks=LOOKS):
        report = summary["verify"]
        assert (report["items"], report["destination_items"]) == (8, 9)
        assert (report["surplus"], report["changed"], report["left"]) == (1, 1, 2)


@EVERY
def test_a_verification_with_repair_repeats_at_most_the_looks_of_a_wave(
    rekey: RekeyTables, connection: Connection, tmp_path: Path, every: int
) -> None:
    orders = [order(number) for number in range(ITEMS)]
    rekey.put(orders)
    rekey.database.fill(rekey.pair.destination, map(ByTenant().forward, orders))  # type: ignore[arg-type]
    runs = runs_of_a_verification(rekey, connection, tmp_path / "run", repair=True)
    right = rekey.copied()
    for _ in runs.killed(every, lambda: plant(rekey, orders, 6), looks=LOOKS):
        assert rekey.copied() == right
        worker_of(rekey, connection).sweep()  # a batch settles the claims of the killed run
        assert rekey.side.claims("forward") == []
