"""Shell sessions in the documents: fenced blocks ```console of `$ command` and what it prints.

A page is one session: its blocks are played in order, in one directory. Of ```console commands what
they print is not shown: each has to succeed, or the comment names its exit status. ```console stack
is played where the stack is deployed (tests/e2e); ```console aws is not: what no laptop has. A line
`...` in an output stands for any lines. Figures are compared by their places only (masked).
"""

import re
import shlex
import subprocess
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

FENCE = re.compile(r"(?ms)^```console(?: (?P<kind>\w+))?\n(?P<text>.*?)^```$")
LEFT_OUT = "..."
HOME = "/home/ana"
"""In a document, the directory in which a session is played."""

SESSION, COMMANDS, STACK, AWS = "", "commands", "stack", "aws"


@dataclass(frozen=True)
class Ended:
    """A command that has ended: its exit status, and what it wrote."""

    status: int
    said: str = ""
    out: bytes = b""


Run = Callable[[list[str], bool], Ended]
"""`keyhop` with arguments; whether its output goes elsewhere than to the terminal."""


@dataclass(frozen=True)
class Step:
    """A command, and the lines that it prints."""

    command: str
    shown: tuple[str, ...] = ()

    @property
    def status(self) -> int:
        """The exit status that its comment names."""
        told = re.search(r"# .*exit status (\d+)", self.command)
        return int(told[1]) if told else 0


@dataclass(frozen=True)
class Block:
    """kind: SESSION, COMMANDS, STACK or AWS. start, end: where its text stands in its page."""

    kind: str
    steps: tuple[Step, ...]
    start: int
    end: int


def blocks(page: str) -> Iterator[Block]:
    for fence in FENCE.finditer(page):
        at = fence.span("text")
        yield Block(fence["kind"] or SESSION, tuple(_steps(fence["text"])), *at)


def _steps(text: str) -> Iterator[Step]:
    command, shown = "", []
    for line in text.splitlines():
        if line.startswith("$ "):
            if command:
                yield Step(command, tuple(shown))
            command, shown = line.removeprefix("$ "), []
        else:
            shown.append(line)
    if command:
        yield Step(command, tuple(shown))


def words(command: str) -> list[str]:
    """Of a command line, without its comment."""
    lexer = shlex.shlex(command, posix=True, punctuation_chars="|>")
    lexer.whitespace_split = True
    return list(lexer)


def play(command: str, folder: Path, keyhop: Run) -> Ended:
    """A command line in a folder: `keyhop` by the given one, all else by a shell."""
    given = words(command)
    if given[0] != "keyhop":
        return _shell(command, folder)
    own = next((at for at, word in enumerate(given) if word in ("|", ">")), len(given))
    ended, rest = keyhop(given[1:own], own < len(given)), given[own + 1 :]
    if not rest:
        return ended
    if given[own] == ">":
        (folder / rest[0]).write_bytes(ended.out)
        return Ended(ended.status, ended.said)
    piped = _shell(" ".join(map(_quoted, rest)), folder, ended.out)
    return Ended(piped.status, ended.said + piped.said, piped.out)


def _quoted(word: str) -> str:
    return word if word in ("|", ">") else shlex.quote(word)


def _shell(command: str, folder: Path, given: bytes = b"") -> Ended:
    done = subprocess.run(
        command, shell=True, cwd=folder, input=given, capture_output=True, check=False
    )
    return Ended(done.returncode, done.stderr.decode(), done.stdout)


def lines(ended: Ended, folder: Path) -> list[str]:
    """What a terminal shows of it: what it says, then what it puts out."""
    text = (ended.said + ended.out.decode()).replace(str(folder), HOME)
    return [line.rstrip() for line in text.splitlines() if not _is_progress(line)]


def _is_progress(line: str) -> bool:
    """Whether a line is there only where a command lasts."""
    return bool(re.search(r". \.\.\.$|\bRRU/s\b|\bWRU/s\b|^planning$|^fetching,", line))


def masked(line: str) -> str:
    """A line without what differs from run to run: figures, spans of time, plurals, ids, widths."""
    line = re.sub(r"[0-9a-f]{8,}(-[0-9a-f]{4,})*", "ID", line)
    line = re.sub(r"\d[\d,.:]*", "0", line)
    line = re.sub(r"0 (ms|s|min|h|days?)\b", "0 s", line)
    line = re.sub(r"\b0 ([a-z]+?)s?\b", r"0 \1", line)
    line = re.sub("\u2587+", "\u2587", line)
    return re.sub(r"[ \u2500-]{2,}", " ", line).strip()


def agrees(shown: tuple[str, ...], printed: list[str]) -> bool:
    """Whether lines are as shown, where LEFT_OUT is any number of them."""
    pattern = "".join(
        r"(?:.*\n)*" if line == LEFT_OUT else re.escape(masked(line)) + r"\n" for line in shown
    )
    return re.fullmatch(pattern, "".join(f"{masked(line)}\n" for line in printed)) is not None


def renewed(step: Step, printed: list[str]) -> list[str]:
    """What is to be shown of a step: as many lines before and after LEFT_OUT as there were."""
    if LEFT_OUT not in step.shown:
        return printed
    before = step.shown.index(LEFT_OUT)
    after = len(step.shown) - before - 1
    return [*printed[:before], LEFT_OUT, *printed[len(printed) - after :]]


def rewritten(page: str, kind: str, other: str, printed: Callable[[str], list[str]]) -> str:
    """The page with what its commands of a kind print now. other: of which the output is not shown.

    printed: plays a command; all of both kinds are played, in order.
    """
    done, at = [], 0
    for block in blocks(page):
        if block.kind in (kind, other):
            now = [(step, printed(step.command)) for step in block.steps]
            if block.kind == kind:
                told = [
                    "\n".join([f"$ {step.command}", *_still(step, lines)]) + "\n"
                    for step, lines in now
                ]
                done += [page[at : block.start], *told]
                at = block.end
    return "".join(done) + page[at:]


def _still(step: Step, printed: list[str]) -> tuple[str, ...] | list[str]:
    """What is shown, as long as it agrees: figures do not change for nothing."""
    return step.shown if agrees(step.shown, printed) else renewed(step, printed)
