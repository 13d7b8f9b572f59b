"""Check the virtual clock: threads wake in the order of their times, and nothing deadlocks."""

import hashlib
import threading
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor

import pytest

from testing import virtual_time
from testing.virtual_time import EPOCH, Pool, VirtualClock


def steps(
    clock: VirtualClock, log: list[tuple[float, str]], name: str, *seconds: float
) -> Callable[[], str]:
    def work() -> str:
        for duration in seconds:
            clock.sleep(duration)
            log.append((clock.monotonic() - EPOCH, name))
        return name

    return work


def test_threads_wake_in_the_order_of_their_moments() -> None:
    for _ in range(20):
        clock = VirtualClock()
        log: list[tuple[float, str]] = []
        functions = [
            steps(clock, log, "a", 3, 3),
            steps(clock, log, "b", 1, 5),
            steps(clock, log, "c", 4),
        ]
        assert clock.run(functions) == ["a", "b", "c"]
        assert log == [(1, "b"), (3, "a"), (4, "c"), (6, "b"), (6, "a")]


def test_hours_pass_in_no_time() -> None:
    clock = VirtualClock()
    log: list[tuple[float, str]] = []
    clock.run([steps(clock, log, str(n), *[3600.0] * 24) for n in range(10)])
    assert clock.time() == EPOCH + 24 * 3600


def test_one_thread_runs_at_a_time() -> None:
    clock = VirtualClock()
    inside = 0

    def work() -> None:
        nonlocal inside
        for _ in range(20):
            inside += 1
            assert inside == 1
            time.sleep(0)
            inside -= 1
            clock.sleep(1)

    clock.run([work] * 8)


def test_threads_of_the_same_moment_run_together_if_requested() -> None:
    clock = VirtualClock(together=True)
    gate = threading.Barrier(4)

    def work() -> None:
        for _ in range(5):
            gate.wait()
            clock.sleep(1)

    clock.run([work] * 4)
    assert clock.monotonic() == EPOCH + 5


def test_the_first_error_ends_all_and_is_raised() -> None:
    clock = VirtualClock()

    def fail() -> None:
        clock.sleep(5)
        raise KeyError("five")

    def forever() -> None:
        while True:
            clock.sleep(1)

    with pytest.raises(KeyError, match="five"):
        clock.run([forever, fail, forever])
    assert clock.monotonic() == EPOCH + 5
    assert clock.run([lambda: 7]) == [7]  # the clock still works


def test_a_thread_waits_for_a_pool_that_sleeps() -> None:
    clock = VirtualClock()
    log: list[tuple[float, str]] = []

    def work() -> None:
        with ThreadPoolExecutor(3) as pool:
            futures = [pool.submit(steps(clock, log, str(n), n, n)) for n in (1, 2, 3)]
            assert [future.result() for future in futures] == ["1", "2", "3"]

    clock.run([work, steps(clock, log, "w", 2.5, 100)])
    assert sorted(log) == [
        *[(1, "1"), (2, "1"), (2, "2"), (2.5, "w"), (3, "3"), (4, "2"), (6, "3"), (102.5, "w")]
    ]


def test_a_pool_of_the_clock_needs_no_polling() -> None:
    clock = VirtualClock()
    log: list[tuple[float, str]] = []

    def fail() -> None:
        raise KeyError("seven")

    def work() -> None:
        with Pool(clock, 2) as pool:
            futures = [pool.submit(steps(clock, log, str(n), n, n)) for n in (1, 2, 3)]
            assert [future.result() for future in futures] == ["1", "2", "3"]
            with pytest.raises(KeyError, match="seven"):
                pool.submit(fail).result()
            pool.submit(clock.sleep, 50)

    clock.run([work])
    assert sorted(log) == [(1, "1"), (2, "1"), (2, "2"), (3, "3"), (4, "2"), (6, "3")]
    assert 56 <= clock.monotonic() - EPOCH < 56.1


def test_a_thread_waits_for_a_lock_whose_holder_sleeps() -> None:
    clock, lock = VirtualClock(), threading.Lock()
    log: list[float] = []

    def work() -> None:
        for _ in range(2):
            with lock:
                clock.sleep(10)
                log.append(clock.monotonic() - EPOCH)

    clock.run([work] * 3)
    assert log == [10, 20, 30, 40, 50, 60]


def test_a_thread_that_is_ready_to_run_is_not_waiting() -> None:
    """This holds even on a machine that does not schedule the thread for seconds."""
    started, stop = threading.Event(), threading.Event()
    content = bytes(1 << 24)

    def work() -> None:
        while not stop.is_set():
            started.set()
            hashlib.sha256(content)

    thread = threading.Thread(target=work)
    thread.start()
    started.wait()
    try:
        while not virtual_time._others_run():
            pass
    finally:
        stop.set()
        thread.join()


def test_a_block_of_work_by_another_thread_takes_no_time() -> None:
    clock = VirtualClock()
    times: list[float] = []

    def work() -> None:
        entered = threading.Event()

        def other_thread() -> None:
            with clock.worker():
                entered.set()
                until = time.monotonic() + 0.2
                while time.monotonic() < until:
                    time.sleep(0)
                times.append(clock.monotonic() - EPOCH)

        thread = threading.Thread(target=other_thread)
        thread.start()
        entered.wait()
        clock.sleep(3)
        thread.join()

    clock.run([work])
    assert times == [0]


def test_without_a_run_a_sleep_returns_at_once() -> None:
    clock = VirtualClock(now=100.0)
    clock.sleep(5)
    with clock.worker():
        clock.sleep(6)
    assert clock.time() == 111.0
    with pytest.raises(ValueError, match="negative"):
        clock.sleep(-1)
