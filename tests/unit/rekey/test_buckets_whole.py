"""The second half of a verify over many rows in buckets: each planted fault, and nothing else."""

import random
from collections.abc import Iterable, Iterator
from itertools import islice
from pathlib import Path
from threading import Event
from typing import Any

import pytest
from keyhop.dynamodb.items import Item
from keyhop.dynamodb.schema import KeyAttribute, KeySpace
from keyhop.dynamodb.values import Key
from keyhop.jobs.journal import Journal
from keyhop.jobs.model import RunPlan
from keyhop.jobs.nested import begun_within, work_within
from keyhop.rekey.compare.buckets import BucketPages
from keyhop.rekey.compare.looks import Looks
from keyhop.rekey.compare.rows import row_of
from keyhop.rekey.side.rows import key_text
from keyhop.storage.local import Directory

from testing.rekey_pairs import ByTenant, order

BY = ByTenant()
SPACE = KeySpace((KeyAttribute("pk", "S"),), KeyAttribute("sk", "S"))


class Shop:
    """A source of so many orders, and a destination with faults, neither of which is kept."""

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
        there = BY.forward(order(number))
        assert there is not None
        return {**there, "total": {"N": "-1"}} if number in self.changed else there


class Side:
    """looks.Reads of one side of a shop."""

    def __init__(self, shop: Shop, is_source: bool) -> None:
        self.shop = shop
        self.is_source = is_source

    def items(self, keys: Iterable[Key]) -> dict[str, Item]:
        found = {}
        for key in keys:
            number = int(key["sk"]["S"].rpartition("order")[2])
            item: Item | None = {**key}  # of the surplus
            if number < self.shop.orders:
                item = order(number) if self.is_source else self.shop.at(number)
            elif self.is_source:
                item = None
            if item is not None:
                found[key_text(key)] = item
        return found


@pytest.mark.timeout(1_800)
@pytest.mark.parametrize(
    ("orders", "faults"),
    [(4_000, 30), pytest.param(1_000_000, 1_000, marks=pytest.mark.prove_long)],
)
def test_every_planted_fault_and_nothing_else(tmp_path: Path, orders: int, faults: int) -> None:
    shop = Shop(orders, faults)
    buckets = max(3, orders // 400_000)
    journal = Journal(Directory(tmp_path))
    plan = RunPlan(
        "r", "t", None, "i", SPACE, "scan", "", 1, 1, "jsonl", "2026-11-22", buckets=buckets
    )
    sides = (
        (row_of(BY.forward(x) or {}, BY.place_of(x) or {}, BY.source.of(x), buckets) for x in side)
        if is_source
        else (row_of(x, BY.destination.of(x), None, buckets) for x in side)
        for side, is_source in ((shop.source(), True), (shop.destination(), False))
    )
    parts = []
    for number, rows in enumerate(sides):
        sink = journal.new_part(plan, 0, number)
        while some := list(islice(rows, 5_000)):
            sink.write(0, some)
        parts += sink.close()
    assert {block.segment for part in parts for block in part.blocks} == {*range(buckets)}
    looks = Looks(BY, Side(shop, True), Side(shop, False), pauses=(0.0, 0.0))  # type: ignore[arg-type]
    named: list[Any] = []
    pages = BucketPages(journal, plan, parts, looks, Event(), named.append)
    within = journal.within("compare")
    totals, _ = work_within(
        within, begun_within(within, plan, task="x", segments=buckets), lambda: pages, 2
    )
    assert totals.finished
    assert totals.counts == {
        "missing": len(shop.missing),
        "changed": len(shop.changed),
        "surplus": shop.surplus,
    }
    assert totals.keys == len(named) == faults
    assert totals.usage.items == sum(part.keys for part in parts)
