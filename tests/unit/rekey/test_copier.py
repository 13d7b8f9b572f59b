"""The copy reads the source a second time, in the simulated service and in virtual time."""

import random
from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

import pytest
from keyhop.dynamodb.requester import is_over
from keyhop.dynamodb.usage import Usage
from keyhop.errors import Stopped
from keyhop.rekey.backfill import Copier, Destination
from keyhop.rekey.compare.looks import Reads
from keyhop.rekey.worker.protocol import WAIT_SECONDS
from keyhop.scan.skip_scan import Page

from testing.simulation.schedule import Process
from tests.unit.rekey.chaos_world import ChaosWorld, Waiting

Item = dict[str, Any]


def item(number: int, **more: str) -> Item:
    values = {"id": f"s{number}", "to": f"d{number}", **more}
    return {name: {"S": value} for name, value in values.items()}


class Copy:
    """A copy of one page, whose source may change right before the put of its first item.

    `fate` decides about each request of the copy. `scan` has the parameters of the page's Scan.
    """

    def __init__(self, items: int = 3, scan: Mapping[str, Any] | None = None) -> None:
        self.page = Page((), (), None, 0.5, scan=scan or {})
        self.world = ChaosWorld(random.Random(1))
        self.items = [item(number) for number in range(items)]
        self.world.put_first(self.items)
        self.spent = Usage()
        self.sent: list[tuple[float, str]] = []
        self.before_put: Callable[[], None] = lambda: None
        self.fate: Callable[[str, Mapping[str, Any]], str] = lambda operation, request: "well"

    @property
    def source(self) -> Any:
        return self.world.tables[self.world.pair.source]

    @property
    def destination(self) -> list[str]:
        """The owners of the copied items."""
        return sorted(item["id"]["S"] for item in self.world.items(self.world.pair.destination))

    @property
    def claims(self) -> list[tuple[str, str]]:
        """The claimed places and their owners, after everything else has ended."""
        claims: list[tuple[str, str]] = []

        def read() -> None:
            for claim in self.world.side().claims("forward"):
                claims.append((claim.place["pk"]["S"], claim.owner["id"]["S"]))

        self.run(read)
        return sorted(claims)

    def run(self, act: Callable[[], object]) -> None:
        self.world.schedule.spawn(act, Process("test"))
        self.world.schedule.run()

    def copied(
        self, is_over: Callable[[], bool] = lambda: False, stop: Any = None
    ) -> tuple[dict[str, int], int]:
        """Copy the page; return the counts of outcomes, and the number of finished items."""
        puts = [self.before_put]

        def fate(operation: str, request: Mapping[str, Any]) -> str:
            is_put = operation == "put_item" and request["TableName"] == self.world.pair.destination
            if is_put and puts:
                puts.pop()()
            self.sent.append((self.world.monotonic(), operation))
            return self.fate(operation, request)

        connection = self.world.connection(fate)
        stop = stop or self.world.stop
        copier = Copier(
            self.world.transform,
            Destination(connection, self.world.pair.destination, stop=stop),
            Reads(connection, self.world.pair.source, stop=stop, finishes=True),
            self.world.side(connection, finishes=True),
            spent=self.spent.add,
        )
        outcome: list[tuple[dict[str, int], int]] = []

        def act() -> None:
            counts, finished = copier.copy(replace(self.page, items=self.items), is_over)
            outcome.append((dict(counts), finished))

        self.run(act)
        return outcome[0]

    def moments(self, operation: str) -> list[float]:
        return [moment for moment, name in self.sent if name == operation]


def test_the_source_is_read_again_and_an_unchanged_item_is_not_claimed() -> None:
    copy = Copy()
    assert copy.copied() == ({"copied": 3}, 3)
    assert copy.destination == ["s0", "s1", "s2"]
    assert len(copy.moments("batch_get_item")) == 1
    assert copy.spent.read_units == 3
    assert copy.claims == []


def test_a_page_is_scanned_again_if_that_costs_less() -> None:
    copy = Copy(scan={"Limit": 3})
    assert copy.copied() == ({"copied": 3}, 3)
    assert (len(copy.moments("scan")), copy.moments("batch_get_item")) == (1, [])
    assert copy.spent.read_units == 1
    assert copy.claims == []


def test_items_that_a_second_scan_does_not_return_are_read_by_their_keys() -> None:
    """The second scan has the limit of the first one, and may return new items instead."""
    copy = Copy(scan={"Limit": 2})
    assert copy.copied() == ({"copied": 3}, 3)
    assert (len(copy.moments("scan")), len(copy.moments("batch_get_item"))) == (1, 1)
    assert copy.spent.read_units == 2
    assert copy.claims == []


def test_if_few_items_of_a_page_were_put_they_are_read_by_their_keys() -> None:
    copy = Copy(scan={"Limit": 3})
    answers = [False, True]
    assert copy.copied(is_over=lambda: answers.pop(0)) == ({"copied": 1}, 1)
    assert (copy.moments("scan"), len(copy.moments("batch_get_item"))) == ([], 1)


@pytest.mark.parametrize("scan", [{}, {"Limit": 3}], ids=["by key", "by scan"])
@pytest.mark.parametrize(
    ("change", "is_claimed"),
    [
        (lambda source: source.put(item(0, to="elsewhere")), True),
        (lambda source: source.put(item(0, to="-")), True),
        (lambda source: source.put({"id": {"S": "s0"}}), True),
        (lambda source: source.delete({"id": {"S": "s0"}}), True),
        (lambda source: source.put(item(0, data="changed")), False),
    ],
    ids=["moved", "without an image now", "skipped now", "deleted", "changed in place"],
)
def test_a_place_that_its_item_has_left_is_claimed(
    change: Callable[[Any], None], is_claimed: bool, scan: Mapping[str, Any]
) -> None:
    """A change in place causes a record, and the stream's worker writes it."""
    copy = Copy(scan=scan)
    copy.before_put = lambda: change(copy.source)
    assert copy.copied() == ({"copied": 3}, 3)
    assert copy.claims == ([("d0", "s0")] if is_claimed else [])


def test_an_item_that_was_not_put_is_not_read_again() -> None:
    copy = Copy()
    image = {"id": {"S": "s0"}, "pk": {"S": "d0"}}
    copy.world.tables[copy.world.pair.destination].put(image)
    assert copy.copied() == ({"there": 1, "copied": 2}, 3)
    assert copy.spent.read_units == 2


@pytest.mark.parametrize("fate", ["lost", "late"])
def test_a_put_without_an_answer_may_take_effect_before_the_second_read(fate: str) -> None:
    """A put whose answer is lost is repeated, and its earlier attempt may take effect later."""
    copy = Copy(items=1)
    fates = [fate]

    def first(operation: str, request: Mapping[str, Any]) -> str:
        is_put = operation == "put_item" and request["TableName"] == copy.world.pair.destination
        return fates.pop() if is_put and fates else "well"

    copy.fate = first
    copy.before_put = lambda: copy.source.put(item(0, to="elsewhere"))
    _, finished = copy.copied()
    assert finished == 1
    (look,) = copy.moments("batch_get_item")
    last_put = [moment for moment in copy.moments("put_item") if moment < look][-1]
    assert look >= last_put + WAIT_SECONDS
    assert copy.claims == [("d0", "s0")]


def test_items_that_were_put_are_read_again_when_the_slice_is_over() -> None:
    copy = Copy()
    copy.before_put = lambda: copy.source.put(item(0, to="elsewhere"))
    answers = [False, False, True]
    assert copy.copied(is_over=lambda: answers.pop(0)) == ({"copied": 2}, 2)
    assert copy.destination == ["s0", "s1"]
    assert copy.claims == [("d0", "s0")]


def test_items_that_were_put_are_read_again_when_the_run_stops() -> None:
    copy = Copy()
    stop = Stopping(copy.world)
    copy.before_put = stop.begin
    assert copy.copied(is_over=lambda: is_over(stop, None), stop=stop) == ({"copied": 1}, 1)
    assert copy.spent.read_units == 1


def test_the_second_read_does_not_wait_when_the_run_stops() -> None:
    copy = Copy()
    stop = Stopping(copy.world)
    copy.before_put = stop.begin
    copy.fate = lambda operation, request: "throttled" if operation == "batch_get_item" else "well"
    with pytest.raises(Stopped):
        copy.copied(is_over=lambda: is_over(stop, None), stop=stop)


class Stopping(Waiting):
    """The event that stops a run, in virtual time."""

    def __init__(self, world: ChaosWorld) -> None:
        super().__init__(world.schedule)
        self.has_begun = False

    def begin(self) -> None:
        self.has_begun = True

    def is_set(self) -> bool:
        return super().is_set() or self.has_begun
