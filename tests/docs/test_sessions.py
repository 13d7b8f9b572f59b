"""Each `keyhop` in the documents is played, and prints what stands there: figures masked.

`make sessions` writes what is printed now into the pages.
"""

import re
from pathlib import Path

import pytest

from testing.databases import Database
from testing.marks import prove
from tests.docs.pages import PAGES, name_of
from tests.docs.sessions import (
    AWS,
    COMMANDS,
    SESSION,
    STACK,
    Step,
    agrees,
    blocks,
    lines,
    masked,
    play,
    rewritten,
    words,
)
from tests.docs.world import Alone, at_home, named, tables, ways

NOT_PLAYED: dict[str, str] = {
    "keyhop index redrive Orders --stack Keyhop": "the queue is a deployment's",
    "keyhop index redrive Orders --stack Keyhop --discard-old": "as above",
    "keyhop runs stop orders-2": "on a laptop the run has ended before it can be stopped",
    "keyhop keys Orders --remote --resume orders-2": "as above",
}
"""Commands of ```console aws, by their words: why no laptop plays them."""

SHORT = ("README.md", "docs/how-to/sharding.md")
"""Pages that `make test` plays, too."""

PLAYED = [
    page
    for page in PAGES
    if any(block.kind in (SESSION, COMMANDS) for block in blocks(page.read_text()))
]


@pytest.mark.parametrize(
    "page", [page if name_of(page) in SHORT else prove(page) for page in PLAYED], ids=name_of
)
def test_a_page_prints_what_it_shows(page: Path, dynamodb_local_url: str, tmp_path: Path) -> None:
    database, people = Database("dynamodb_local", dynamodb_local_url), Alone()
    text = page.read_text()
    differ = []
    with (
        tables(database, named(text)),
        people.seen(dynamodb_local_url) as url,
        at_home(tmp_path, AWS_ENDPOINT_URL=url) as keyhop,
    ):
        for block in blocks(text):
            for step in block.steps if block.kind in (SESSION, COMMANDS) else ():
                ended = play(step.command, tmp_path, keyhop)
                printed = lines(ended, tmp_path)
                if block.kind == COMMANDS and ended.status != step.status:
                    differ.append((step.command, f"exit status {ended.status}", printed))
                elif block.kind == SESSION and not agrees(step.shown, printed):
                    differ.append((step.command, step.shown, printed))
    assert differ == []
    assert people.denied() == [], "what it asked of AWS is not understood"


def _steps(*kinds: str) -> list[Step]:
    found = (block for page in PAGES for block in blocks(page.read_text()) if block.kind in kinds)
    return [step for block in found for step in block.steps]


def test_every_command_is_played() -> None:
    """Of the tree of commands each is in a session."""
    played = [step.command for step in _steps(SESSION, COMMANDS, STACK)]
    played += NOT_PLAYED
    assert [way for way in ways() if not any(one.startswith(way) for one in played)] == []


def test_what_no_laptop_plays_is_listed() -> None:
    assert {" ".join(words(step.command)) for step in _steps(AWS)} == NOT_PLAYED.keys()


@pytest.mark.parametrize("page", PAGES, ids=name_of)
def test_no_command_stands_outside_of_a_session(page: Path) -> None:
    """A fenced block with `keyhop` at the beginning of a line is one of a session."""
    text = page.read_text()
    fences = re.findall(r"(?ms)^```(\w*[^\n]*)\n(.*?)^```$", text)
    loose = [body for kind, body in fences if not kind.startswith("console")]
    assert [
        body for body in loose if re.search(r"(?m)^(\$ )?keyhop +(\w+ +){1,2}[A-Z]", body)
    ] == []


def test_figures_are_masked_and_words_are_not() -> None:
    printed = ["3,452 keys of Orders, in 5.6 s", "a0b1c2d3e4f5", "end"]
    assert agrees(("12 keys of Orders,   in 2 min", "0123456789ab", "end"), printed)
    assert agrees(("1 keys of Orders, in 1 s", "...", "end"), printed)
    assert not agrees(("1 keys of Audit, in 1 s", "...", "end"), printed)
    assert not agrees(("3,452 keys of Orders, in 5.6 s",), printed)
    assert masked("  2026-11-18 11:06:45  4 \u2587\u2587  ") == masked("2026-01-01 1:0:1 12 \u2587")


def test_a_page_is_written_anew() -> None:
    """Where it agrees, figures stay; where lines are left out, as many stay."""
    page = "a\n```console\n$ one\n1 key\n$ two\nx\n...\ny\n```\nb\n"
    new = {"one": ["2 key"], "two": ["p", "q", "r", "s"]}
    assert rewritten(page, SESSION, COMMANDS, new.__getitem__) == (
        "a\n```console\n$ one\n1 key\n$ two\np\n...\ns\n```\nb\n"
    )
