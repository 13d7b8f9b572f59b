"""Tests that each `keyhop` command in the documents prints the shown output, with masked figures.

`make sessions` writes the current output into the pages.
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
from tests.docs.world import LocalRecorder, command_in, command_names, tables, tables_of

NOT_PLAYED: dict[str, str] = {
    "keyhop index redrive Orders --stack Keyhop": "the queue is a deployment's",
    "keyhop index redrive Orders --stack Keyhop --discard-old": "as above",
    "keyhop runs stop orders-2": "on a laptop the run has ended before it can be stopped",
    "keyhop keys Orders --remote --resume orders-2": "as above",
}
"""The commands of ```console aws, with the reason why no laptop plays them."""

FAST_PAGES = ("README.md", "docs/how-to/sharding.md")
"""The pages that `make test` plays too."""

PLAYED = [
    page
    for page in PAGES
    if any(block.kind in (SESSION, COMMANDS) for block in blocks(page.read_text()))
]


@pytest.mark.parametrize(
    "page", [page if name_of(page) in FAST_PAGES else prove(page) for page in PLAYED], ids=name_of
)
def test_a_page_prints_what_it_shows(page: Path, dynamodb_local_url: str, tmp_path: Path) -> None:
    database, recorder = Database("dynamodb_local", dynamodb_local_url), LocalRecorder()
    text = page.read_text()
    differences = []
    with (
        tables(database, tables_of(text)),
        recorder.seen(dynamodb_local_url) as url,
        command_in(tmp_path, AWS_ENDPOINT_URL=url) as keyhop,
    ):
        for block in blocks(text):
            for step in block.steps if block.kind in (SESSION, COMMANDS) else ():
                result = play(step.command, tmp_path, keyhop)
                printed = lines(result, tmp_path)
                if block.kind == COMMANDS and result.status != step.status:
                    differences.append((step.command, f"exit status {result.status}", printed))
                elif block.kind == SESSION and not agrees(step.shown, printed):
                    differences.append((step.command, step.shown, printed))
    assert differences == []
    assert recorder.denied() == [], "the recorder could not read these calls"


def _steps(*kinds: str) -> list[Step]:
    all_blocks = (block for page in PAGES for block in blocks(page.read_text()))
    return [step for block in all_blocks if block.kind in kinds for step in block.steps]


def test_every_command_is_played() -> None:
    """Each command of the command line is in a session."""
    played = [step.command for step in _steps(SESSION, COMMANDS, STACK)]
    played += NOT_PLAYED
    unplayed = {name for name in command_names() if not any(c.startswith(name) for c in played)}
    assert unplayed == set()


def test_the_commands_that_no_laptop_plays_are_listed() -> None:
    assert {" ".join(words(step.command)) for step in _steps(AWS)} == NOT_PLAYED.keys()


@pytest.mark.parametrize("page", PAGES, ids=name_of)
def test_every_command_is_in_a_session(page: Path) -> None:
    """Each fenced block with `keyhop` at the beginning of a line must be a session."""
    fences = re.findall(r"(?ms)^```(\w*[^\n]*)\n(.*?)^```$", page.read_text())
    command = re.compile(r"(?m)^(\$ )?keyhop +(\w+ +){1,2}[A-Z]")
    bodies = [body for kind, body in fences if not kind.startswith("console")]
    assert [body for body in bodies if command.search(body)] == []


def test_figures_are_masked_and_words_are_not() -> None:
    printed = ["3,452 keys of Orders, in 5.6 s", "a0b1c2d3e4f5", "end"]
    assert agrees(("12 keys of Orders,   in 2 min", "0123456789ab", "end"), printed)
    assert agrees(("1 keys of Orders, in 1 s", "...", "end"), printed)
    assert not agrees(("1 keys of Audit, in 1 s", "...", "end"), printed)
    assert not agrees(("3,452 keys of Orders, in 5.6 s",), printed)
    assert masked("  2026-11-18 11:06:45  4 \u2587\u2587  ") == masked("2026-01-01 1:0:1 12 \u2587")


def test_a_page_gets_new_output_only_where_it_differs() -> None:
    """An output that agrees keeps its figures, and `...` keeps its place."""
    page = "a\n```console\n$ one\n1 key\n$ two\nx\n...\ny\n```\nb\n"
    new = {"one": ["2 key"], "two": ["p", "q", "r", "s"]}
    assert rewritten(page, SESSION, COMMANDS, new.__getitem__) == (
        "a\n```console\n$ one\n1 key\n$ two\np\n...\ns\n```\nb\n"
    )
