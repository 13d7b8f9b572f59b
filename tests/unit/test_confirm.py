"""The question before something is written, or costs more than a little."""

import io
import os
import pty
import select
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from threading import Event
from typing import TextIO

import pytest
from keyhop.cli.session import confirm, place
from keyhop.dynamodb.endpoint import Endpoint
from keyhop.errors import CannotStart, Stopped

ARN = "arn:aws:dynamodb:eu-west-1:123456789012:table/Orders"
FACTS = [("account", "123456789012"), ("cost", "about $2.10")]
ACT = "build the key index of Orders"


@dataclass
class Terminal:
    """A terminal seen from a person's side, and, in `ask`, from the command's."""

    side: int
    typed: TextIO
    shown: TextIO
    monkeypatch: pytest.MonkeyPatch

    def types(self, text: str) -> None:
        os.write(self.side, text.encode())

    def shows(self, text: str) -> bool:
        """A terminal hands on what was written in pieces: as many of them as there are."""
        shown = ""
        while text not in shown and select.select([self.side], [], [], 5)[0]:
            shown += os.read(self.side, 10_000).decode().replace("\r\n", "\n")
        return text in shown

    def ask(self, stop: Event | None = None) -> None:
        with self.monkeypatch.context() as here:  # not in a fixture: pytest has its own streams
            here.setattr(sys, "stdin", self.typed)
            here.setattr(sys, "stderr", self.shown)
            confirm(ACT, lambda: FACTS, yes=False, stop=stop or Event())


@pytest.fixture
def terminal(monkeypatch: pytest.MonkeyPatch) -> Iterator[Terminal]:
    side, other = pty.openpty()
    with (
        os.fdopen(other, "r", encoding="utf-8") as typed,
        os.fdopen(os.dup(other), "w", encoding="utf-8") as shown,
    ):
        yield Terminal(side, typed, shown, monkeypatch)
    os.close(side)


def never() -> list[tuple[str, str]]:
    raise AssertionError("a sample was read for nobody")


def test_a_yes_at_a_terminal_goes_on_and_the_facts_stand_above_it(terminal: Terminal) -> None:
    terminal.types("Yes\n")
    terminal.ask()
    assert terminal.shows(
        "  account  123456789012\n  cost     about $2.10\nBuild the key index of Orders? [y/N]"
    )


@pytest.mark.parametrize("answer", ["n\n", "\n", "yess\n", "\x04"])
def test_anything_else_ends_before_anything_is_done(terminal: Terminal, answer: str) -> None:
    terminal.types(answer)
    with pytest.raises(CannotStart, match="nothing more was done"):
        terminal.ask()


def test_ctrl_c_at_the_question_ends_it(terminal: Terminal) -> None:
    stop = Event()
    stop.set()
    with pytest.raises(Stopped):
        terminal.ask(stop)


@pytest.mark.parametrize("stream", ["stdin", "stderr"])
@pytest.mark.parametrize("is_closed", [True, False])
def test_without_a_terminal_it_must_be_told_yes_and_nothing_is_read(
    terminal: Terminal, monkeypatch: pytest.MonkeyPatch, stream: str, is_closed: bool
) -> None:
    monkeypatch.setattr(sys, "stdin", terminal.typed)
    monkeypatch.setattr(sys, "stderr", terminal.shown)
    monkeypatch.setattr(sys, stream, None if is_closed else io.StringIO())
    sentence = "This would build the key index of Orders, but there is no terminal on which"
    with pytest.raises(CannotStart, match=rf"^{sentence} to confirm it: add --yes\.$"):
        confirm(ACT, never, yes=False, stop=Event())


def test_yes_asks_nobody() -> None:
    confirm(ACT, never, yes=True, stop=Event())


def test_the_place_is_told_by_the_arn() -> None:
    assert [*place(ARN, Endpoint(region="us-east-1"))] == [
        ("account", "123456789012"),
        ("region", "eu-west-1"),
        ("table", "Orders"),
    ]
    local = Endpoint(region="us-east-1", url="http://me:secret@127.0.0.1:8000")
    assert dict(place("", local)) == {
        "account": "unknown",
        "region": "us-east-1",
        "endpoint": "http://127.0.0.1:8000",
        "table": "unknown",
    }
