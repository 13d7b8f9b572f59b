"""The demo: what its ways cost in all, and at another size; work beside a block."""

from threading import Event

import pytest

from local.cloud import beside
from local.demo import Way, dollars, larger

HOPPED, SCANNED = Way("keyhop", 200, 210, 104.0), Way("full scan", 200, 16, 800.0)


def test_a_total_is_reads_and_services() -> None:
    result = {
        "keys": 200,
        "requests": 210,
        "read_units": 104.0,
        "cost": {"dynamodb": 0.000013, "lambda": 0.0001, "total": 0.000513},
    }
    way = Way.deployed("by a deployment", result)
    assert way.services == pytest.approx(0.0005)
    assert way.total == pytest.approx(0.000513)
    assert SCANNED.total == pytest.approx(0.0001)


def test_at_a_large_size_both_are_reckoned_alike_and_reads_decide() -> None:
    mine, scan = larger(1_000, HOPPED, SCANNED)
    assert (mine.keys, mine.units) == (200_000, 104_000.0)
    assert (scan.keys, scan.units) == (200_000, 800_000.0)
    assert 0 < mine.services < 0.01
    assert 0 < scan.services < 0.01
    assert 4 < scan.total / mine.total < 8


def test_where_collections_are_small_the_totals_are_alike() -> None:
    mine, scan = larger(1_000, Way("keyhop", 3_452, 1_120, 690.0), Way("scan", 3_452, 16, 830.0))
    assert mine.total == pytest.approx(scan.total, rel=0.3)


@pytest.mark.parametrize(("amount", "told"), [(0.0000134, "$0.000013"), (1234.5, "$1,234.50")])
def test_dollars(amount: float, told: str) -> None:
    assert dollars(amount) == told


def test_the_block_ends_with_the_work() -> None:
    ended = []

    def work(over: Event) -> None:
        over.wait()
        ended.append(True)

    with beside(work):
        assert not ended
    assert ended == [True]


def test_what_the_work_raises_is_raised_at_the_end() -> None:
    def work(over: Event) -> None:
        raise ValueError("a record was refused")

    with pytest.raises(ValueError, match="a record was refused"), beside(work):
        pass


def test_a_block_that_fails_does_not_wait_for_work_that_hangs() -> None:
    told, goes_on = Event(), Event()

    def work(over: Event) -> None:
        over.wait()
        told.set()
        goes_on.wait()

    with pytest.raises(KeyboardInterrupt), beside(work):
        raise KeyboardInterrupt
    assert told.wait(10)
    goes_on.set()
