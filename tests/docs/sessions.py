"""Shell sessions in the documents: fenced ```console blocks of `$ command` lines and their output.

A page is one session: its blocks are played in order, in one directory. A block ```console commands
shows no output: each command must succeed, or its comment names the exit status. The tests in
tests/e2e play ```console stack with a deployed stack. Nothing plays ```console aws, which needs
services that a laptop does not have. A line `...` in an output matches any lines. Figures are
masked before outputs are compared.
"""

import re
import shlex
import subprocess
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

FENCE = re.compile(r"(?ms)^```console(?: (?P<kind>\w+))?\n(?P<text>.*?)^```$")
ELLIPSIS = "..."
HOME = "/home/ana"
"""The directory of a session in a document."""

SESSION, COMMANDS, STACK, AWS = "", "commands", "stack", "aws"


@dataclass(frozen=True)
class Result:
    """The exit status and the output of a command."""

    status: int
    stderr: str = ""
    stdout: bytes = b""


Run = Callable[[list[str], bool], Result]
"""Runs `keyhop` with arguments; the flag says whether its output is redirected."""


@dataclass(frozen=True)
class Step:
    """A command, and the lines that the document shows as its output."""

    command: str
    shown: tuple[str, ...] = ()

    @property
    def status(self) -> int:
        """The exit status that the comment of the command names."""
        match = re.search(r"# .*exit status (\d+)", self.command)
        return int(match[1]) if match else 0


@dataclass(frozen=True)
class Block:
    """A fenced block, with its kind (SESSION, COMMANDS, STACK or AWS) and position in the page."""

    kind: str
    steps: tuple[Step, ...]
    start: int
    end: int


def blocks(page: str) -> Iterator[Block]:
    for fence in FENCE.finditer(page):
        steps = tuple(_steps(fence["text"]))
        yield Block(fence["kind"] or SESSION, steps, *fence.span("text"))


def _steps(text: str) -> Iterator[Step]:
    command, output = "", []
    for line in text.splitlines():
        if line.startswith("$ "):
            if command:
                yield Step(command, tuple(output))
            command, output = line.removeprefix("$ "), []
        else:
            output.append(line)
    if command:
        yield Step(command, tuple(output))


def words(command: str) -> list[str]:
    """Return the words of a command line, without its comment."""
    lexer = shlex.shlex(command, posix=True, punctuation_chars="|>")
    lexer.whitespace_split = True
    return list(lexer)


def play(command: str, folder: Path, keyhop: Run) -> Result:
    """Run a command line in a folder: `keyhop` with the given runner, other commands in a shell."""
    arguments = words(command)
    if arguments[0] != "keyhop":
        return _shell(command, folder)
    end = next(
        (index for index, word in enumerate(arguments) if word in ("|", ">")), len(arguments)
    )
    result, rest = keyhop(arguments[1:end], end < len(arguments)), arguments[end + 1 :]
    if not rest:
        return result
    if arguments[end] == ">":
        (folder / rest[0]).write_bytes(result.stdout)
        return Result(result.status, result.stderr)
    piped = _shell(" ".join(map(_quoted, rest)), folder, result.stdout)
    return Result(piped.status, result.stderr + piped.stderr, piped.stdout)


def _quoted(word: str) -> str:
    return word if word in ("|", ">") else shlex.quote(word)


def _shell(command: str, folder: Path, stdin: bytes = b"") -> Result:
    process = subprocess.run(
        command, shell=True, cwd=folder, input=stdin, capture_output=True, check=False
    )
    return Result(process.returncode, process.stderr.decode(), process.stdout)


def lines(result: Result, folder: Path) -> list[str]:
    """Return the lines that a terminal shows: first stderr, then stdout."""
    text = (result.stderr + result.stdout.decode()).replace(str(folder), HOME)
    return [line.rstrip() for line in text.splitlines() if not _is_progress(line)]


def _is_progress(line: str) -> bool:
    """Return whether a line appears only if a command takes long."""
    return bool(re.search(r". \.\.\.$|\bRRU/s\b|\bWRU/s\b|^planning$|^fetching,", line))


def masked(line: str) -> str:
    """Mask the parts of a line that vary: figures, durations, plurals, ids and widths."""
    line = re.sub(r"[0-9a-f]{8,}(-[0-9a-f]{4,})*", "ID", line)
    line = re.sub(r"\d[\d,.:]*", "0", line)
    line = re.sub(r"0 (ms|s|min|h|days?)\b", "0 s", line)
    line = re.sub(r"\b0 ([a-z]+?)s?\b", r"0 \1", line)
    line = re.sub("\u2587+", "\u2587", line)
    return re.sub(r"[ \u2500-]{2,}", " ", line).strip()


def agrees(expected: tuple[str, ...], printed: list[str]) -> bool:
    """Return whether the printed lines match the expected ones, in which ELLIPSIS matches any."""
    pattern = "".join(
        r"(?:.*\n)*" if line == ELLIPSIS else re.escape(masked(line)) + r"\n" for line in expected
    )
    return re.fullmatch(pattern, "".join(f"{masked(line)}\n" for line in printed)) is not None


def renewed(step: Step, printed: list[str]) -> list[str]:
    """Return the new output of a step, with as many lines before and after ELLIPSIS as before."""
    if ELLIPSIS not in step.shown:
        return printed
    before = step.shown.index(ELLIPSIS)
    after = len(step.shown) - before - 1
    return [*printed[:before], ELLIPSIS, *printed[len(printed) - after :]]


def rewritten(page: str, kind: str, silent_kind: str, printed: Callable[[str], list[str]]) -> str:
    """Return the page with the current output of the blocks of a kind.

    Blocks of the silent kind are played too, in order, but show no output. `printed` plays a
    command.
    """
    parts, position = [], 0
    for block in blocks(page):
        if block.kind in (kind, silent_kind):
            outputs = [(step, printed(step.command)) for step in block.steps]
            if block.kind == kind:
                texts = [
                    "\n".join([f"$ {step.command}", *_still(step, lines)]) + "\n"
                    for step, lines in outputs
                ]
                parts += [page[position : block.start], *texts]
                position = block.end
    return "".join(parts) + page[position:]


def _still(step: Step, printed: list[str]) -> tuple[str, ...] | list[str]:
    """Keep the shown output if it still agrees, so that figures change only with the words."""
    return step.shown if agrees(step.shown, printed) else renewed(step, printed)
