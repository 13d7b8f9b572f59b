"""What a value of an attribute may look like, and whether two looks exclude each other. Pure."""

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

DIGITS = frozenset("0123456789")


@dataclass(frozen=True, slots=True)
class Run:
    """Characters of a text: `least` to `most` of `chars`, or of all others if `others`."""

    chars: frozenset[str]
    least: int = 1
    most: int | None = 1
    others: bool = False

    @property
    def is_fixed(self) -> bool:
        return self.least == self.most

    @property
    def expression(self) -> str:
        """As a regular expression (with DOTALL)."""
        listed = "".join(map(re.escape, sorted(self.chars)))
        of = f"[{'^' if self.others else ''}{listed}]" if listed else "."
        if self.is_fixed:
            return of if self.least == 1 else f"{of}{{{self.least}}}"
        return f"{of}{{{self.least},{'' if self.most is None else self.most}}}"

    def meets(self, other: "Run") -> bool:
        """Whether some character is of both."""
        if self.others and other.others:
            return True  # there are more characters than are ever listed
        if self.others:
            return bool(other.chars - self.chars)
        return bool(self.chars - other.chars if other.others else self.chars & other.chars)


ANY = Run(frozenset(), 1, None, others=True)


def literal(text: str) -> list[Run]:
    """Exactly this text."""
    return [Run(frozenset(character)) for character in text]


@dataclass(frozen=True, slots=True)
class Look:
    """Of a value. type: None for any. runs: of a text of type S; None for any. constant: the value
    itself, if it is not a text.
    """

    type: str | None
    runs: tuple[Run, ...] | None = None
    constant: Any = None

    def excludes(self, other: "Look") -> bool:
        """Whether no value looks like both, for certain."""
        if self.type is None or other.type is None:
            return False
        if self.type != other.type:
            return True
        if self.runs is not None and other.runs is not None:
            return not _meet(self.runs, other.runs)
        if self.constant is not None and other.constant is not None:
            return bool(self.constant != other.constant)
        return False


def _meet(one: Sequence[Run], other: Sequence[Run]) -> bool:
    """Whether some text is made of both: walks through both side by side."""
    ours, theirs = _single(one), _single(other)
    open_, seen = [(0, 0)], {(0, 0)}
    while open_:
        i, j = open_.pop()
        if i == len(ours) and j == len(theirs):
            return True
        for place in _steps(ours, theirs, i, j):
            if place not in seen:
                seen.add(place)
                open_.append(place)
    return False


def _steps(
    ours: list[tuple[Run, bool]], theirs: list[tuple[Run, bool]], i: int, j: int
) -> Iterable[tuple[int, int]]:
    """A part that may be left out, or repeated, is passed without a character, or stayed at."""
    if i < len(ours) and ours[i][1]:
        yield i + 1, j
    if j < len(theirs) and theirs[j][1]:
        yield i, j + 1
    if i < len(ours) and j < len(theirs) and ours[i][0].meets(theirs[j][0]):
        for next_i in {i + 1, i} if ours[i][1] else {i + 1}:
            for next_j in {j + 1, j} if theirs[j][1] else {j + 1}:
                yield next_i, next_j


def _single(runs: Sequence[Run]) -> list[tuple[Run, bool]]:
    """A part for each character that must be, and one with True for those that may be (how many
    of these makes no difference here: more looks meet than do).
    """
    parts: list[tuple[Run, bool]] = []
    for run in runs:
        parts += [(run, False)] * run.least
        parts += [] if run.is_fixed else [(run, True)]
    return parts
