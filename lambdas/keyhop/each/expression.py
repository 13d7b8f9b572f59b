"""Parses update expressions, to refuse those that must not be repeated. Pure.

    SET path = operand [+ operand], ... REMOVE path, ... ADD path :v, ... DELETE path :v, ...

(AWS documentation, "Update expressions"). A page may be processed again, so an update must have the
same result each time. This holds if no clause reads what a clause writes, except if_not_exists of
the path that is set; if no clause writes or removes an element of a list by its number, because
numbers change, and new elements are appended; and if nothing is added to a number.

Names without # are replaced by placeholders, so that words that DynamoDB reserves can be used.
"""

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from keyhop.dynamodb.schema import MARKER, KeySpace
from keyhop.dynamodb.values import Key, TypedValue
from keyhop.each.template import ALONE, Render, Variables
from keyhop.errors import CannotStart

_TOKEN = re.compile(
    r"(?:(?P<name>#\w+|[A-Za-z_]\w*)|(?P<value>:\w+)|(?P<number>\d+)|(?P<mark>[=+\-.,()\[\]]))\s*",
    re.ASCII,
)
_CLAUSES = ("SET", "REMOVE", "ADD", "DELETE")
_SETS = ("SS", "NS", "BS")
_FUNCTIONS = {"if_not_exists": 2, "list_append": 2}
OURS = "#kh_"
"""The prefix of the placeholders that Keyhop adds."""

Path = tuple[str | int, ...]
"""Names and positions in lists, starting at the item."""


@dataclass(frozen=True, slots=True)
class Update:
    """An update that can be repeated. names: the names behind its placeholders."""

    expression: str
    names: Mapping[str, str]
    constants: Mapping[str, TypedValue]
    varying: Mapping[str, Render]

    @classmethod
    def of(
        cls,
        expression: str,
        values: Mapping[str, Any],
        names: Mapping[str, str],
        space: KeySpace,
        variables: Variables,
    ) -> "Update":
        """Parse an expression; `values` are of `template_json`. Raise CannotStart."""
        constants, varying = variables.compiled_all(values)
        for placeholder, name in names.items():
            if not (isinstance(name, str) and name):
                raise CannotStart(f"The value of {placeholder} must be a name, not {name!r}.")
        types = {name: next(iter(value)) for name, value in values.items()}
        reading = _Reading(expression, names, types, space)
        reading.read()
        return cls("".join(reading.written), reading.placeholders, constants, varying)

    def values(self, row: Key) -> dict[str, TypedValue]:
        """Return the values of the :placeholders for a row. Raise NotRendered."""
        return {**self.constants, **{name: make(row) for name, make in self.varying.items()}}


@dataclass(slots=True)
class _Reading:
    """One pass over an expression.

    values: the types of the values. written: the expression with placeholders for all names.
    """

    expression: str
    names: Mapping[str, str]
    values: Mapping[str, str]
    space: KeySpace
    written: list[str] = field(default_factory=list)
    placeholders: dict[str, str] = field(default_factory=dict)
    used: set[str] = field(default_factory=set)
    targets: list[tuple[str, Path]] = field(default_factory=list)
    sources: list[tuple[str, Path]] = field(default_factory=list)
    tokens: list[tuple[str, str]] = field(default_factory=list)
    at: int = 0

    def read(self) -> None:
        self.tokens = list(_tokens(self.expression.strip()))
        if not self.tokens:
            raise CannotStart("The update expression is empty.")
        clauses: set[str] = set()
        while self.at < len(self.tokens):
            clause = self._next("name").upper()
            if clause not in _CLAUSES:
                raise self._wrong(f"{', '.join(_CLAUSES)} are expected, not {clause!r}")
            if clause in clauses:
                raise self._wrong(f"there are two clauses {clause}")
            clauses.add(clause)
            self.written.append(f"{' ' if self.written else ''}{clause} ")
            self._action(clause)
            while self._is(","):
                self._take(",")
                self._action(clause)
        self._check_placeholders()
        self._check_paths()

    def _action(self, clause: str) -> None:
        target = self._path()
        action = f"{clause} {_shown(target)}"
        self.targets.append((action, target))
        if clause == "SET":
            self._take("=")
            self._operand(action, target)
            if self._is("+") or self._is("-"):
                self._take(self.tokens[self.at][1])
                self._operand(action, target, is_sum=True)
        elif clause in ("ADD", "DELETE"):
            self.written.append(" ")
            type_ = self.values[self._value()]
            if type_ not in _SETS and clause == "ADD":
                raise CannotStart(
                    f"{action} would add again if a page were repeated: ADD works only for sets. "
                    "SET a value instead."
                )
            if type_ not in {*_SETS, ALONE}:
                raise CannotStart(f"{action}: only members of a set can be deleted, not a {type_}.")
        self._check_target(action, target)

    def _operand(self, action: str, target: Path, is_sum: bool = False) -> None:
        kind, _ = self._peek()
        following = self.tokens[self.at + 1][1] if self.at + 1 < len(self.tokens) else ""
        if kind == "value":
            self._value()
        elif kind == "name" and following == "(":
            self._function(action, target, is_sum or self._is_followed_by_a_sign())
        else:
            self.sources.append((action, self._path()))

    def _function(self, action: str, target: Path, is_part: bool) -> None:
        """Read a function. is_part: whether its result is used in a sum or a list."""
        name = self._next("name")
        if name not in _FUNCTIONS:
            raise self._wrong(f"there is no function {name!r} in an update")
        self.written.append(name)
        self._take("(")
        if name == "if_not_exists":
            path = self._path()
            if path != target or is_part:
                self.sources.append((action, path))
        else:
            self._operand(action, target, is_sum=True)
        self._take(",")
        self._operand(action, target, is_sum=is_part or name == "list_append")
        self._take(")")

    def _is_followed_by_a_sign(self) -> bool:
        """Return whether + or - follows the function that starts here."""
        depth = 0
        for at in range(self.at + 1, len(self.tokens)):
            depth += {"(": 1, ")": -1}.get(self.tokens[at][1], 0)
            if not depth:
                return at + 1 < len(self.tokens) and self.tokens[at + 1][1] in "+-"
        return False

    def _path(self) -> Path:
        path: list[str | int] = [self._name()]
        while self._is(".") or self._is("["):
            if self._is("."):
                self._take(".")
                path.append(self._name())
            else:
                self._take("[")
                place = self._next("number")
                self.written.append(place)
                path.append(int(place))
                self._take("]")
        return tuple(path)

    def _name(self) -> str:
        token = self._next("name")
        if token.startswith("#"):
            if token not in self.names:
                raise CannotStart(
                    f"The update expression has {token}, but no name was given for it."
                )
            self.used.add(token)
            if token.startswith(OURS):
                raise CannotStart(
                    f"Names that begin with {OURS} are reserved for Keyhop: choose "
                    f"another name than {token}."
                )
            self.placeholders[token] = self.names[token]
            self.written.append(token)
            return self.names[token]
        placeholders = [
            placeholder for placeholder, name in self.placeholders.items() if name == token
        ]
        placeholder = placeholders[0] if placeholders else f"{OURS}{len(self.placeholders)}"
        self.placeholders[placeholder] = token
        self.written.append(placeholder)
        return token

    def _value(self) -> str:
        token = self._next("value")
        if token not in self.values:
            raise CannotStart(f"The update expression has {token}, but no value was given for it.")
        self.used.add(token)
        self.written.append(token)
        return token

    def _peek(self) -> tuple[str, str]:
        if self.at == len(self.tokens):
            raise self._wrong("it ends too early")
        return self.tokens[self.at]

    def _next(self, kind: str) -> str:
        actual, token = self._peek()
        if actual != kind:
            raise self._wrong(f"a {kind} is expected, not {token!r}")
        self.at += 1
        return token

    def _is(self, mark: str) -> bool:
        return self.at < len(self.tokens) and self.tokens[self.at][1] == mark

    def _take(self, mark: str) -> None:
        if self._peek()[1] != mark:
            raise self._wrong(f"{mark!r} is expected, not {self._peek()[1]!r}")
        self.at += 1
        self.written.append(mark if mark in ".[]()" else f"{mark} " if mark == "," else f" {mark} ")

    def _wrong(self, why: str) -> CannotStart:
        return CannotStart(f"The update expression {self.expression!r} is wrong: {why}.")

    def _check_target(self, action: str, target: Path) -> None:
        keys = {*self.space.names, *([self.space.sort.name] if self.space.sort else ())}
        if target[0] in keys:
            raise CannotStart(
                f"{action}: it is a key attribute of the table, which an update cannot change."
            )
        if target[0] == MARKER:
            raise CannotStart(f"{action}: {MARKER!r} marks the sentinels of a key index.")
        if isinstance(target[-1], int):
            raise CannotStart(
                f"{action}: if a page were repeated, this place in the list could be another "
                "element. Set the whole list instead."
            )

    def _check_paths(self) -> None:
        for number, (action, path) in enumerate(self.targets):
            for writer, written in self.targets[:number]:
                if _overlap(path, written):
                    raise CannotStart(f"{action} and {writer} write the same.")
        for action, source in self.sources:
            for writer, written in self.targets:
                if _overlap(source, written):
                    raise CannotStart(
                        f"{action} is made of {_shown(source)}, which {writer} writes: the result "
                        "would change if a page were repeated. SET a value that does not depend "
                        "on it."
                    )

    def _check_placeholders(self) -> None:
        unused = sorted({*self.names, *self.values} - self.used)
        if unused:
            raise CannotStart(f"The update expression does not use {', '.join(unused)}.")


def _tokens(expression: str) -> Iterator[tuple[str, str]]:
    at = 0
    while at < len(expression):
        match = _TOKEN.match(expression, at)
        if match is None:
            raise CannotStart(
                f"The update expression {expression!r} is wrong at {expression[at : at + 20]!r}."
            )
        at = match.end()
        assert match.lastgroup is not None
        yield match.lastgroup, match[match.lastgroup]


def _overlap(path: Sequence[str | int], second: Sequence[str | int]) -> bool:
    """Return whether one of two paths is the beginning of the other."""
    return all(part == match for part, match in zip(path, second, strict=False))


def _shown(path: Path) -> str:
    first, *rest = path
    return str(first) + "".join(
        f"[{part}]" if isinstance(part, int) else f".{part}" for part in rest
    )
