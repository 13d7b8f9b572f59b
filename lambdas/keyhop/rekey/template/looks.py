"""The possible forms of an attribute's value, and whether two forms exclude each other. Pure."""

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
        """Return the regular expression (with DOTALL)."""
        listed = "".join(map(re.escape, sorted(self.chars)))
        character = f"[{'^' if self.others else ''}{listed}]" if listed else "."
        if self.is_fixed:
            return character if self.least == 1 else f"{character}{{{self.least}}}"
        return f"{character}{{{self.least},{'' if self.most is None else self.most}}}"

    def meets(self, another: "Run") -> bool:
        """Return whether the two have a character in common."""
        if self.others and another.others:
            return True  # there are more characters than are ever listed
        if self.others:
            return bool(another.chars - self.chars)
        return bool(self.chars - another.chars if another.others else self.chars & another.chars)


ANY = Run(frozenset(), 1, None, others=True)


def literal(text: str) -> list[Run]:
    """Return the runs of exactly this text."""
    return [Run(frozenset(character)) for character in text]


@dataclass(frozen=True, slots=True)
class Look:
    """The form of a value; None for any type. A text of type S has runs, or None for any text. A
    value that is not a text may be a constant.
    """

    type: str | None
    runs: tuple[Run, ...] | None = None
    constant: Any = None

    def excludes(self, another: "Look") -> bool:
        """Return whether certainly no value has both forms."""
        if self.type is None or another.type is None:
            return False
        if self.type != another.type:
            return True
        if self.runs is not None and another.runs is not None:
            return not _meet(self.runs, another.runs)
        if self.constant is not None and another.constant is not None:
            return bool(self.constant != another.constant)
        return False


def _meet(first: Sequence[Run], second: Sequence[Run]) -> bool:
    """Return whether a text with both forms exists, by a parallel walk through both."""
    ours, theirs = _single(first), _single(second)
    open_, visited = [(0, 0)], {(0, 0)}
    while open_:
        i, j = open_.pop()
        if i == len(ours) and j == len(theirs):
            return True
        for place in _steps(ours, theirs, i, j):
            if place not in visited:
                visited.add(place)
                open_.append(place)
    return False


def _steps(
    ours: list[tuple[Run, bool]], theirs: list[tuple[Run, bool]], i: int, j: int
) -> Iterable[tuple[int, int]]:
    """Yield the next steps. An optional part can be skipped, and a repeated one can match again."""
    if i < len(ours) and ours[i][1]:
        yield i + 1, j
    if j < len(theirs) and theirs[j][1]:
        yield i, j + 1
    if i < len(ours) and j < len(theirs) and ours[i][0].meets(theirs[j][0]):
        for next_i in {i + 1, i} if ours[i][1] else {i + 1}:
            for next_j in {j + 1, j} if theirs[j][1] else {j + 1}:
                yield next_i, next_j


def _single(runs: Sequence[Run]) -> list[tuple[Run, bool]]:
    """Return a part for each required character, and one with True for optional ones, whose number
    is ignored, so more forms may meet than really do.
    """
    parts: list[tuple[Run, bool]] = []
    for run in runs:
        parts += [(run, False)] * run.least
        parts += [] if run.is_fixed else [(run, True)]
    return parts
