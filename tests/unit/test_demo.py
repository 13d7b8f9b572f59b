"""Check the demo: the total cost of each way, its cost at another size, and background work."""

from threading import Event

import pytest

from local.cloud import beside
from local.demo import Way, dollars, larger

HOPPED, SCANNED = Way("keyhop", 200, 210, 104.0), Way("full scan", 200, 16, 800.0)


def test_a_total_contains_reads_and_services() -> None:
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


def test_reads_decide_the_cost_of_a_large_table() -> None:
    hopped, scan = larger(1_000, HOPPED, SCANNED)
    assert (hopped.keys, hopped.units) == (200_000, 104_000.0)
    assert (scan.keys, scan.units) == (200_000, 800_000.0)
    assert 0 < hopped.services < 0.01
    assert 0 < scan.services < 0.01
    assert 4 < scan.total / hopped.total < 8


def test_the_totals_are_similar_if_collections_are_small() -> None:
    hopped, scan = larger(1_000, Way("keyhop", 3_452, 1_120, 690.0), Way("scan", 3_452, 16, 830.0))
    assert hopped.total == pytest.approx(scan.total, rel=0.3)


@pytest.mark.parametrize(("amount", "text"), [(0.0000134, "$0.000013"), (1234.5, "$1,234.50")])
def test_dollars(amount: float, text: str) -> None:
    assert dollars(amount) == text


def test_the_block_ends_with_the_work() -> None:
    results = []

    def work(over: Event) -> None:
        over.wait()
        results.append(True)

    with beside(work):
        assert not results
    assert results == [True]


def test_an_error_of_the_work_is_raised_at_the_end() -> None:
    def work(over: Event) -> None:
        raise ValueError("a record was refused")

    with pytest.raises(ValueError, match="a record was refused"), beside(work):
        pass


def test_a_block_that_fails_does_not_wait_for_work_that_hangs() -> None:
    is_stopped, released = Event(), Event()

    def work(over: Event) -> None:
        over.wait()
        is_stopped.set()
        released.wait()

    with pytest.raises(KeyboardInterrupt), beside(work):
        raise KeyboardInterrupt
    assert is_stopped.wait(10)
    released.set()
