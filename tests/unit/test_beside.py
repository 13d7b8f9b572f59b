"""Work beside a block: waited for at its end, not when the block fails."""

from threading import Event

import pytest

from local.cloud import beside


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
