"""The second half of a verification compares buckets of rows and finds the planted faults."""

import random
from collections.abc import Iterable, Iterator
from dataclasses import replace
from itertools import count, islice
from pathlib import Path
from threading import Event
from typing import Any, cast

import pytest
from keyhop.dynamodb.schema import KeyAttribute, KeySpace
from keyhop.dynamodb.usage import Usage
from keyhop.dynamodb.values import Item, Key
from keyhop.errors import StoreUnavailable
from keyhop.jobs.journal import Checkpoint, Commit, Journal, RunPlan, Totals
from keyhop.jobs.lifecycle import sum_up
from keyhop.jobs.rows import Rows
from keyhop.jobs.worker import GroupWorker
from keyhop.rekey.compare.looks import Looks
from keyhop.rekey.compare.rows import row_of
from keyhop.rekey.compare.task import AT_ONCE, BucketPages
from keyhop.rekey.transform import key_text
from keyhop.scan.skip_scan import BEGINNING, PageResult, Position
from keyhop.storage.local import Directory

from testing.rekey_pairs import ByTenant, order

BY = ByTenant()
SPACE = KeySpace((KeyAttribute("pk", "S"),), KeyAttribute("sk", "S"))


class Shop:
    """A source of orders, and a destination with faults; both are computed and not stored."""

    def __init__(self, orders: int, faults: int) -> None:
        self.orders = orders
        chosen = random.Random(3).sample(range(orders), faults)
        self.missing, self.changed = {*chosen[::3]}, {*chosen[1::3]}
        self.surplus = len(chosen[2::3])

    def source(self) -> Iterator[Item]:
        return map(order, range(self.orders))

    def destination(self) -> Iterator[Item]:
        for number in range(self.orders - 1, -1, -1):
            if (item := self.at(number)) is not None:
                yield item
        for number in range(self.surplus):
            yield {"pk": {"S": "t"}, "sk": {"S": f"none{number}#order{self.orders + number}"}}

    def at(self, number: int) -> Item | None:
        if number in self.missing:
            return None
        image = BY.forward(order(number))
        assert image is not None
        return {**image, "total": {"N": "-1"}} if number in self.changed else image


class Side:
    """The items of one side of a shop, in place of looks.Reads."""

    def __init__(self, shop: Shop, is_source: bool, usage: Usage) -> None:
        self.shop = shop
        self.is_source = is_source
        self.usage = usage

    def items(self, keys: Iterable[Key]) -> dict[str, Item]:
        items_by_key = {}
        self.usage.count(requests=1)
        for key in keys:
            number = int(key["sk"]["S"].rpartition("order")[2])
            item: Item | None = {**key}  # a surplus item
            if number < self.shop.orders:
                item = order(number) if self.is_source else self.shop.at(number)
            elif self.is_source:
                item = None
            if item is not None:
                items_by_key[key_text(key)] = item
        return items_by_key


class Digests:
    """The finished run of a shop's digests, with a group for each side."""

    def __init__(self, shop: Shop, path: Path, buckets: int, rows_per_slice: int) -> None:
        self.shop = shop
        self.journal = Journal(Directory(path))
        self.plan = replace(PLAN, segments=2, groups=2, buckets=buckets)
        self.journal.begin(self.plan)
        self.rows = 0
        source = (
            row_of(BY.forward(x) or {}, BY.place_of(x) or {}, BY.source.of(x), buckets)
            for x in shop.source()
        )
        destination = (row_of(x, BY.destination.of(x), None, buckets) for x in shop.destination())
        for group, rows in enumerate((source, destination)):
            number = 0
            while page := list(islice(rows, rows_per_slice)):
                self._commit(group, number, page)
                number += 1
            self._commit(group, number, [], is_end=True)

    def _commit(self, group: int, number: int, rows: list[Key], is_end: bool = False) -> None:
        sink = self.journal.new_part(self.plan, group, number)
        self.rows += sink.write(group, rows)
        checkpoint = Checkpoint(1, {} if is_end else {group: BEGINNING})
        assert self.journal.commit(
            Commit(
                group, number, "an attempt", sink.close(), is_end, Usage(), 0.0, checkpoint, is_end
            )
        )

    def pages(self, kind: type[BucketPages] = BucketPages) -> BucketPages:
        usage = Usage()
        sides = Side(self.shop, True, usage), Side(self.shop, False, usage)
        looks = Looks(BY, *cast(Any, sides), pauses=(0.0, 0.0))
        return kind(self.journal, self.plan, looks, Event(), usage=usage)


PLAN = RunPlan("r", "t", None, "i", SPACE, "listed", "", 1, 1, "jsonl", "2026-11-22")


def compared(
    digests: Digests, journal: Journal, groups: int = 2, kind: type[BucketPages] = BucketPages
) -> Totals:
    """Compare the buckets of digests, with one worker for each group."""
    plan = replace(PLAN, segments=digests.plan.buckets, groups=groups)
    journal.begin(plan)
    for group in range(groups):
        assert GroupWorker(journal, plan, group, digests.pages(kind), 256).run()
    return sum_up(journal, plan)[0]


def findings(journal: Journal, totals: Totals) -> list[str]:
    """Return the places of all rows of committed parts."""
    rows = (row for part in totals.parts for _, row in journal.keys(PLAN, part))
    return [row["place"]["S"] for row in rows]


@pytest.mark.timeout(1_800)
@pytest.mark.parametrize(
    ("orders", "faults"),
    [(4_000, 30), pytest.param(1_000_000, 1_000, marks=pytest.mark.prove_long)],
)
def test_every_planted_fault_and_nothing_else(tmp_path: Path, orders: int, faults: int) -> None:
    shop = Shop(orders, faults)
    digests = Digests(shop, tmp_path / "digests", max(5, orders // 400_000), orders // 4)
    journal = Journal(Directory(tmp_path))
    totals = compared(digests, journal)
    assert totals.finished == {0, 1}
    assert totals.counts == {
        "missing": len(shop.missing),
        "changed": len(shop.changed),
        "surplus": shop.surplus,
    }
    assert len({*findings(journal, totals)}) == totals.keys == faults
    assert totals.usage.items == digests.rows


class Dying(Directory):
    """A directory that kills the worker at a commit, after `remaining` others."""

    remaining = 0

    def create(self, name: str, content: bytes) -> bool:
        if name.startswith("commits/"):
            self.remaining -= 1
            if self.remaining < 0:
                raise Killed
        return super().create(name, content)


class Killed(Exception):
    """A worker ends without a commit."""


class Hasty(BucketPages):
    """Pages whose slice is over when each bucket has made a step."""

    def step(self, segment: int, position: Position, over: Event) -> PageResult:
        try:
            return super().step(segment, position, over)
        finally:
            over.set()


class Watched(BucketPages):
    """Pages that record the largest number of buckets that are in memory at the same time."""

    peak = 0

    def step(self, segment: int, position: Position, over: Event) -> PageResult:
        Watched.peak = max(Watched.peak, len({*self._open, segment}))
        return super().step(segment, position, over)


@pytest.mark.prove
def test_after_a_kill_before_any_commit_no_bucket_and_no_difference_counts_twice(
    tmp_path: Path,
) -> None:
    shop = Shop(300, 30)
    digests = Digests(shop, tmp_path / "digests", 4, 100)
    for lives in count():
        store = Dying(tmp_path / f"killed-{lives}")
        store.remaining = lives
        journal = Journal(store)
        commits_before = commits = 0
        try:
            totals = compared(digests, journal, 1, Hasty)
        except Killed:
            commits_before = journal.commit_files().total()
            store.remaining = 1_000
            totals = compared(digests, journal, 1, Hasty)
            commits = journal.commit_files().total()
        assert totals.keys == len({*findings(journal, totals)}) == 30
        assert totals.counts.total() == 30
        if not commits:
            break  # it was finished before the kill
        assert commits_before == lives, "every commit before the kill counts"
    assert lives >= 8, "buckets were read, and differences looked at, in separate slices"


def test_memory_holds_at_most_two_of_many_buckets(tmp_path: Path) -> None:
    digests = Digests(Shop(400, 12), tmp_path / "digests", 12, 50)
    assert compared(digests, Journal(Directory(tmp_path)), 1, Watched).keys == 12
    assert 0 < Watched.peak <= AT_ONCE


def test_all_rows_are_read_from_parts_of_many_groups_and_slices(tmp_path: Path) -> None:
    digests = Digests(Shop(200, 0), tmp_path, 3, 30)
    loaded = Rows(digests.journal, digests.plan).load(range(2))
    rows = [row for bucket in range(3) for row in loaded.pieces(bucket)]
    assert len({*map(str, rows)}) == len(rows) == digests.rows == 400
    assert {len([*loaded.blocks(bucket)]) for bucket in range(3)} == {14}, "one in each slice"


def test_rows_are_loaded_once_after_a_failed_attempt(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    digests = Digests(Shop(200, 0), tmp_path, 3, 30)
    rows, commits = Rows(digests.journal, digests.plan), digests.journal.commits

    def failing(group: int) -> Iterator[Commit]:
        if group == 1:
            raise StoreUnavailable("later")
        return commits(group)

    with monkeypatch.context() as patch:
        patch.setattr(digests.journal, "commits", failing)
        with pytest.raises(StoreUnavailable):
            rows.load(range(2))
    rows.load(range(2))
    assert sum(rows.count(bucket) for bucket in range(3)) == digests.rows
