"""Check the question before a command writes, or costs more than a little."""

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
    """A terminal. Its methods are the user's side, except for `ask`, the command's side."""

    user_side: int
    stdin: TextIO
    stderr: TextIO
    monkeypatch: pytest.MonkeyPatch

    def types(self, text: str) -> None:
        os.write(self.user_side, text.encode())

    def shows(self, text: str) -> bool:
        """Read until the text was shown; a terminal passes output on in pieces."""
        output_text = ""
        while text not in output_text and select.select([self.user_side], [], [], 5)[0]:
            output_text += os.read(self.user_side, 10_000).decode().replace("\r\n", "\n")
        return text in output_text

    def ask(self, stop: Event | None = None) -> None:
        with self.monkeypatch.context() as context:  # not in a fixture: pytest has its own streams
            context.setattr(sys, "stdin", self.stdin)
            context.setattr(sys, "stderr", self.stderr)
            confirm(ACT, lambda: FACTS, yes=False, stop=stop or Event())


@pytest.fixture
def terminal(monkeypatch: pytest.MonkeyPatch) -> Iterator[Terminal]:
    user_side, command_side = pty.openpty()
    with (
        os.fdopen(command_side, "r", encoding="utf-8") as stdin,
        os.fdopen(os.dup(command_side), "w", encoding="utf-8") as stderr,
    ):
        yield Terminal(user_side, stdin, stderr, monkeypatch)
    os.close(user_side)


def never() -> list[tuple[str, str]]:
    raise AssertionError("a sample was read for nobody")


def test_a_yes_continues_and_the_facts_are_shown_above_the_question(terminal: Terminal) -> None:
    terminal.types("Yes\n")
    terminal.ask()
    assert terminal.shows(
        "  account  123456789012\n  cost     about $2.10\nBuild the key index of Orders? [y/N]"
    )


@pytest.mark.parametrize("answer", ["n\n", "\n", "yess\n", "\x04"])
def test_any_other_answer_ends_the_command(terminal: Terminal, answer: str) -> None:
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
def test_without_a_terminal_yes_is_required_and_nothing_is_read(
    terminal: Terminal, monkeypatch: pytest.MonkeyPatch, stream: str, is_closed: bool
) -> None:
    monkeypatch.setattr(sys, "stdin", terminal.stdin)
    monkeypatch.setattr(sys, "stderr", terminal.stderr)
    monkeypatch.setattr(sys, stream, None if is_closed else io.StringIO())
    sentence = "This would build the key index of Orders, but there is no terminal on which"
    with pytest.raises(CannotStart, match=rf"^{sentence} to confirm it: add --yes\.$"):
        confirm(ACT, never, yes=False, stop=Event())


def test_yes_skips_the_question() -> None:
    confirm(ACT, never, yes=True, stop=Event())


def test_the_place_is_read_from_the_arn() -> None:
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
