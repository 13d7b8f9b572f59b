"""Ctrl-C: answered at once, and over soon, whatever is being waited for."""

import os
import signal
from collections.abc import Sequence
from threading import Event

import pytest
from keyhop.cli.session import stop_on_signals
from keyhop.dynamodb.usage import Usage
from keyhop.dynamodb.values import Key
from keyhop.jobs.journal import Checkpoint
from keyhop.jobs.worker import Slice
from keyhop.scan.in_flight import InFlight
from keyhop.scan.skip_scan import BEGINNING, PageResult, Position

KEY: Key = {"pk": {"S": "a"}}


class Unanswered:
    """A source of pages of which the first is answered, and the others when the test says so."""

    def __init__(self) -> None:
        self.usage = Usage()
        self.stop = Event()
        self.in_flight = InFlight()
        self.waits = Event()
        self.released = Event()
        self.ended = Event()

    def go_on(self, learnt: object) -> None: ...

    def learnt(self) -> dict[str, object]:
        return {}

    def step(self, segment: int, position: Position, over: Event) -> PageResult:
        if position == BEGINNING:
            return PageResult([KEY], Position(KEY))
        self.waits.set()
        assert self.released.wait(60)
        self.ended.set()
        return PageResult([{"pk": {"S": "late"}}], None)


class Sink:
    def __init__(self) -> None:
        self.keys: list[Key] = []

    def write(self, segment: int, keys: Sequence[Key]) -> int:
        self.keys += keys
        return len(keys)


def test_a_slice_that_is_stopped_does_not_wait_for_an_answer_and_takes_none_that_is_late() -> None:
    pages, sink = Unanswered(), Sink()
    slice_ = Slice(pages, iter(range(1)), Checkpoint(), sink.write, last_seconds=0.0)

    def stop() -> None:
        if pages.waits.is_set():
            pages.stop.set()

    stands = slice_.work(1, float("inf"), idle=stop)
    assert not pages.released.is_set(), "it has waited for the answer"
    assert stands.open == {0: Position(KEY)}
    pages.released.set()
    assert pages.ended.wait(60)
    assert (sink.keys, slice_.keys, slice_.ended) == ([KEY], 1, 0)


@pytest.mark.parametrize(("number", "status"), [(signal.SIGINT, 130), (signal.SIGTERM, 143)])
def test_what_is_still_awaited_after_the_first_signal_is_given_up(
    number: signal.Signals, status: int, capfd: pytest.CaptureFixture[str]
) -> None:
    ended: list[int] = []
    over = Event()

    def end(with_status: int) -> None:
        ended.append(with_status)
        over.set()

    with stop_on_signals(patience=0.01, end=end) as stop:
        os.kill(os.getpid(), number)
        assert stop.event.wait(60)
        assert over.wait(60)
    assert ended == [status]


def test_a_second_signal_ends_at_once() -> None:
    ended: list[int] = []
    with stop_on_signals(patience=3600, end=ended.append):
        os.kill(os.getpid(), signal.SIGINT)
        assert ended == []
        os.kill(os.getpid(), signal.SIGINT)
        assert ended == [130]
