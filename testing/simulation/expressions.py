"""The expressions of DynamoDB that the code under test sends.

What the service refuses raises Invalid. What it accepts, but nothing under test sends, raises
NotSimulated: indexes of lists, functions other than attribute_exists, attribute_not_exists and
if_not_exists, IN, sets in ADD, and DELETE.
"""

import re
from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import dataclass, field
from functools import cache
from typing import Any

from moto.dynamodb.parsing.reserved_keywords import ReservedKeywords

from testing.simulation.values import (
    Invalid,
    Item,
    NotSimulated,
    Value,
    added,
    compare,
    copy_of,
    order_of,
    stored,
)

Path = tuple[str, ...]
_TOKEN = re.compile(r"[#:]\w+|[A-Za-z_]\w*|<=|>=|<>|[=<>(),.+\-]")
_NAME = re.compile(r"#\w+|[A-Za-z_]\w*")
_COMPARISONS = ("=", "<>", "<", "<=", ">", ">=")
_SECTIONS = ("SET", "REMOVE", "ADD", "DELETE")
_OTHER_FUNCTIONS = ("attribute_type", "begins_with", "contains", "size", "list_append")
_RESERVED = frozenset(ReservedKeywords.get_reserved_keywords())


@dataclass(frozen=True)
class Placeholders:
    """The names and values that a request gives for the placeholders of its expressions."""

    names: Mapping[str, str]
    values: Mapping[str, Value]

    def path(self, path: Path) -> Path:
        """Return a path with the names of attributes in it."""
        return tuple(self.names.get(step, step) for step in path)


Check = Callable[[Placeholders], None]
"""Raises Invalid for what the service refuses before it reads the item."""
Test = Callable[[Item, Placeholders], bool]


@dataclass(frozen=True)
class Operand:
    """A value's placeholder, or a path with perhaps a default."""

    value: str = ""
    path: Path = ()
    default: "Operand | None" = None

    def read(self, item: Item, placeholders: Placeholders) -> Value | None:
        """Return the value, or None if the item does not have it."""
        if self.value:
            return placeholders.values[self.value]
        value = _at(item, placeholders.path(self.path))
        if self.default is None:
            return value
        # DynamoDB Local refuses a default that is missing, even if it is not needed.
        default = self.default.require(item, placeholders)
        return default if value is None else value

    def require(self, item: Item, placeholders: Placeholders) -> Value:
        """Return the value. Raise Invalid if the item does not have it."""
        value = self.read(item, placeholders)
        if value is None:
            raise Invalid(
                "The provided expression refers to an attribute that does not exist in the item"
            )
        return value


@dataclass(frozen=True)
class Action:
    """One change of an update. A sign of 0 means that it has only one operand."""

    section: str
    path: Path
    first: Operand | None = None
    sign: int = 0
    second: Operand | None = None

    def result(self, item: Item, placeholders: Placeholders) -> Value | None:
        """Return the attribute's new value; None removes it."""
        if self.first is None:
            return None
        if self.section == "ADD":
            before = _at(item, placeholders.path(self.path))
            addend = self.first.require(item, placeholders)
            return addend if before is None else added(before, addend)
        value = self.first.require(item, placeholders)
        if self.second is not None:
            value = added(value, self.second.require(item, placeholders), self.sign)
        return value


@dataclass
class Parsed:
    """An expression, with the placeholders that it uses and the paths that it names."""

    used: frozenset[str]
    paths: list[Path]
    checks: list[Check] = field(default_factory=list)
    test: Test = lambda item, placeholders: True
    actions: list[Action] = field(default_factory=list)
    clauses: list[tuple[Path, str, list[str]]] = field(default_factory=list)
    """The attribute, the operator, and the placeholders of each clause of a key condition."""


class Expressions:
    """The expressions of a request, or of one part of a transaction or a batch.

    Attributes:
        projected_names: The attributes that the projection names; None without a projection.
    """

    def __init__(
        self,
        request: Mapping[str, Any],
        keys: Collection[str],
        scalars: Collection[str] | None = None,
    ) -> None:
        """Parse and check the expressions.

        Args:
            request: The parameters of the request or its part.
            keys: The table's key attributes.
            scalars: The attributes that no path may enter; by default the table's key attributes.

        Raises:
            Invalid: The service refuses an expression for any item.
        """
        self._keys = keys
        parsed = {name: parse(request[name]) for name, parse in _PARSERS.items() if name in request}
        for kind in ("ExpressionAttributeNames", "ExpressionAttributeValues"):
            if kind in request and not request[kind]:
                raise Invalid(f"{kind} must not be empty")
        names = request.get("ExpressionAttributeNames", {})
        values = request.get("ExpressionAttributeValues", {})
        used = frozenset[str]().union(*(expression.used for expression in parsed.values()))
        if undefined := used - names.keys() - values.keys():
            raise Invalid(f"A placeholder used in an expression is not defined: {undefined}")
        if unused := (names.keys() | values.keys()) - used:
            raise Invalid(f"A placeholder is not used in any expression: {unused}")
        stored_values = {name: stored(value) for name, value in values.items()}
        placeholders = self._placeholders = Placeholders(names, stored_values)
        for expression in parsed.values():
            for check in expression.checks:
                check(placeholders)
        self._scalars = keys if scalars is None else scalars
        self._condition = parsed.get("ConditionExpression")
        self._update = parsed.get("UpdateExpression")
        for expression in parsed.values():
            if expression is not self._update:
                self._check_paths(expression)
        projection = parsed.get("ProjectionExpression")
        self.projected_names = (
            None
            if projection is None
            else {placeholders.path(path)[0] for path in projection.paths}
        )
        self._key_condition = parsed.get("KeyConditionExpression")

    def _check_paths(self, parsed: Parsed) -> None:
        paths = map(self._placeholders.path, parsed.paths)
        if any(len(path) > 1 and path[0] in self._scalars for path in paths):
            raise Invalid("Key attributes must be scalars; map lookup '.' is not allowed")

    def hold(self, item: Item | None) -> bool:
        """Return whether the condition holds for the item, or for a missing item (None)."""
        return self._condition is None or self._condition.test(item or {}, self._placeholders)

    @property
    def updated_paths(self) -> list[Path]:
        """The paths that the update changes."""
        actions = self._update.actions if self._update is not None else []
        return [self._placeholders.path(action.path) for action in actions]

    def updated(self, item: Item) -> dict[str, Value]:
        """Return the item as the update leaves it. Raise Invalid if the update does not suit it."""
        if any(path[0] in self._keys for path in self.updated_paths):
            raise Invalid("Cannot update an attribute that is part of the key")
        after = copy_of(item)
        actions = self._update.actions if self._update is not None else []
        if self._update is not None:
            # DynamoDB Local refuses these only after the condition held.
            self._check_paths(self._update)
        results = [action.result(item, self._placeholders) for action in actions]
        for action, result in zip(actions, results, strict=True):
            *way, name = self._placeholders.path(action.path)
            inner: Any = after
            for step in way:
                inner = inner.get(step, {}).get("M")
                if inner is None:
                    raise Invalid(
                        "The document path provided in the update expression is invalid for update"
                    )
            if result is None:
                inner.pop(name, None)
            else:
                inner[name] = copy_of({name: result})[name]
        return after

    def projected(self, item: Item) -> dict[str, Value]:
        """Return a copy of the attributes that the request wants."""
        names = self.projected_names
        if names is None:
            return copy_of(item)
        return copy_of({name: value for name, value in item.items() if name in names})

    def key_conditions(self) -> dict[str, tuple[str, list[Value]]]:
        """Return each key attribute's operator and values. Raise Invalid."""
        assert self._key_condition is not None
        conditions: dict[str, tuple[str, list[Value]]] = {}
        for path, operator, values in self._key_condition.clauses:
            (name,) = self._placeholders.path(path)
            if name in conditions:
                raise Invalid("KeyConditionExpressions must only contain one condition per key")
            conditions[name] = operator, [self._placeholders.values[value] for value in values]
        return conditions


def _at(item: Item, path: Path) -> Value | None:
    value: Value = {"M": item}
    for step in path:
        value = value.get("M", {}).get(step)
        if value is None:
            return None
    return value


class _Parser:
    """A recursive descent over the tokens of one expression."""

    def __init__(self, text: str) -> None:
        if not text.strip():
            raise Invalid("The expression can not be empty")
        if rest := _TOKEN.sub("", text).strip():
            raise NotSimulated(f"{rest!r} in the expression {text!r}")
        self.text = text
        self.tokens = _TOKEN.findall(text)
        self.place = 0
        self.checks: list[Check] = []
        self.paths: list[Path] = []

    def parsed(self, **parts: Any) -> Parsed:
        """Return the parsed expression. Raise Invalid unless all of it was parsed."""
        if self.token:
            raise self.error()
        used = frozenset(token for token in self.tokens if token[0] in "#:")
        return Parsed(used, self.paths, self.checks, **parts)

    @property
    def token(self) -> str:
        """The next token; an empty text at the end."""
        return self.tokens[self.place] if self.place < len(self.tokens) else ""

    def error(self) -> Invalid:
        return Invalid(f"Syntax error; token: {self.token or '<EOF>'}, in: {self.text}")

    def take(self, *expected: str) -> str:
        """Return the next token, which must be one of these words or signs, if any are given."""
        token = self.token
        if not token or (expected and token.upper() not in expected):
            raise self.error()
        self.place += 1
        return token

    def takes(self, word: str) -> bool:
        """Go past a word or a sign, if it comes next, and return whether it did."""
        is_next = self.token.upper() == word
        self.place += is_next
        return is_next

    # --- conditions ---

    def condition(self) -> Test:
        tests = [self.conjunction()]
        while self.takes("OR"):
            tests.append(self.conjunction())
        return lambda *arguments: any(test(*arguments) for test in tests)

    def conjunction(self) -> Test:
        tests = [self.simple_condition()]
        while self.takes("AND"):
            tests.append(self.simple_condition())
        return lambda *arguments: all(test(*arguments) for test in tests)

    def simple_condition(self) -> Test:
        if self.takes("NOT"):
            negated = self.simple_condition()
            return lambda *arguments: not negated(*arguments)
        if self.takes("("):
            begin = self.place
            test = self.condition()
            if self.tokens[begin] == "(" and self._closing(begin) == self.place - 1:
                raise Invalid("The expression has redundant parentheses")
            self.take(")")
            return test
        if self.tokens[self.place + 1 : self.place + 2] == ["("]:
            return self.existence()
        return self.comparison()

    def _closing(self, opening: int) -> int:
        """Return the place of the bracket that closes another one."""
        depth = 0
        for place in range(opening, len(self.tokens)):
            depth += (self.tokens[place] == "(") - (self.tokens[place] == ")")
            if not depth:
                return place
        raise self.error()

    def existence(self) -> Test:
        exists = {"attribute_exists": True, "attribute_not_exists": False}.get(self.function())
        if exists is None:
            raise self.error()
        path = self.path()
        self.take(")")
        return lambda item, placeholders: (_at(item, placeholders.path(path)) is not None) == exists

    def function(self) -> str:
        """Return the name of a function, and go past its opening bracket."""
        name = self.take()
        if name in _OTHER_FUNCTIONS:
            raise NotSimulated(f"{name} in the expression {self.text!r}")
        self.take("(")
        return name

    def comparison(self) -> Test:
        left = self.condition_operand()
        if self.token.upper() == "IN":
            raise NotSimulated(f"IN in the expression {self.text!r}")
        operator = self.take(*_COMPARISONS, "BETWEEN").upper()
        right = [self.condition_operand()]
        if operator == "BETWEEN":
            self.take("AND")
            right.append(self.condition_operand())
        self.checks.append(
            lambda placeholders: _check_comparison(operator, left, right, placeholders)
        )

        def test(item: Item, placeholders: Placeholders) -> bool:
            values = [operand.read(item, placeholders) for operand in right]
            if operator != "BETWEEN":
                return compare(operator, left.read(item, placeholders), values[0])
            value = left.read(item, placeholders)
            return compare(">=", value, values[0]) and compare("<=", value, values[1])

        return test

    def condition_operand(self) -> Operand:
        if self.token.startswith(":"):
            return Operand(value=self.take())
        if self.tokens[self.place + 1 : self.place + 2] == ["("]:
            self.function()
            raise self.error()
        return Operand(path=self.path())

    # --- updates ---

    def update(self) -> list[Action]:
        actions: list[Action] = []
        sections: set[str] = set()
        while self.token:
            section = self.take(*_SECTIONS).upper()
            if section == "DELETE":
                raise NotSimulated("DELETE in an update")
            if section in sections:
                raise Invalid(f"The {section} section can only be used once")
            sections.add(section)
            actions.append(self.action(section))
            while self.takes(","):
                actions.append(self.action(section))
        self.checks.append(
            lambda placeholders: _check_overlaps(placeholders, [action.path for action in actions])
        )
        return actions

    def action(self, section: str) -> Action:
        path = self.path()
        if section == "REMOVE":
            return Action(section, path)
        if section == "ADD":
            if not self.token.startswith(":"):
                raise self.error()
            operand = Operand(value=self.take())
            self.checks.append(
                lambda placeholders: _check_added(placeholders.values[operand.value])
            )
            return Action(section, path, operand)
        self.take("=")
        first = self.update_operand()
        if self.token not in ("+", "-"):
            return Action(section, path, first)
        sign = 1 if self.take() == "+" else -1
        second = self.update_operand()
        for operand in (first, second):
            if operand.value:
                self.checks.append(
                    lambda placeholders, name=operand.value: _check_number(placeholders, name)
                )
        return Action(section, path, first, sign, second)

    def update_operand(self) -> Operand:
        if self.token.startswith(":"):
            return Operand(value=self.take())
        if self.token == "(":
            raise NotSimulated(f"brackets in the update {self.text!r}")
        if self.tokens[self.place + 1 : self.place + 2] != ["("]:
            return Operand(path=self.path())
        if self.function() != "if_not_exists":
            raise self.error()
        path = self.path()
        self.take(",")
        default = self.update_operand()
        self.take(")")
        self.checks.append(lambda placeholders: _check_distinct(placeholders, path, default.path))
        return Operand(path=path, default=default)

    # --- paths ---

    def path(self) -> Path:
        path = [self.name()]
        while self.takes("."):
            path.append(self.name())
        self.paths.append(tuple(path))
        return self.paths[-1]

    def name(self) -> str:
        if not _NAME.fullmatch(self.token):
            raise self.error()
        if self.token.upper() in _RESERVED:
            raise Invalid(f"Attribute name is a reserved keyword; reserved keyword: {self.token}")
        return self.take()


@cache
def _condition(text: str) -> Parsed:
    parser = _Parser(text)
    test = parser.condition()
    return parser.parsed(test=test)


@cache
def _update(text: str) -> Parsed:
    parser = _Parser(text)
    actions = parser.update()
    return parser.parsed(actions=actions)


@cache
def _projection(text: str) -> Parsed:
    parser = _Parser(text)
    parser.path()
    while parser.takes(","):
        parser.path()
    if any(len(path) > 1 for path in parser.paths):
        raise NotSimulated(f"a path in the projection {text!r}")
    parser.checks.append(lambda placeholders: _check_overlaps(placeholders, parser.paths))
    return parser.parsed()


@cache
def _key_condition(text: str) -> Parsed:
    parser = _Parser(text)
    clauses = [_key_clause(parser)]
    while parser.takes("AND"):
        clauses.append(_key_clause(parser))
    return parser.parsed(clauses=clauses)


def _key_clause(parser: _Parser) -> tuple[Path, str, list[str]]:
    if parser.token == "(" or parser.token.startswith(":"):
        raise NotSimulated(f"the form of the key condition {parser.text!r}")
    if parser.tokens[parser.place + 1 : parser.place + 2] == ["("]:
        raise NotSimulated(f"a function in the key condition {parser.text!r}")
    path = parser.path()
    operator = parser.take(*_COMPARISONS, "BETWEEN").upper()
    if operator == "<>" or len(path) > 1:
        raise Invalid(f"Invalid operator or path used in KeyConditionExpression: {parser.text}")
    values = [_placeholder(parser)]
    if operator == "BETWEEN":
        parser.take("AND")
        values.append(_placeholder(parser))
        bounds = [Operand(value=value) for value in values]
        left = Operand(path=path)
        parser.checks.append(
            lambda placeholders: _check_comparison(operator, left, bounds, placeholders)
        )
    return path, operator, values


def _placeholder(parser: _Parser) -> str:
    if not parser.token.startswith(":"):
        raise parser.error()
    return parser.take()


_PARSERS: dict[str, Callable[[str], Parsed]] = {
    "ConditionExpression": _condition,
    "UpdateExpression": _update,
    "ProjectionExpression": _projection,
    "KeyConditionExpression": _key_condition,
}


def _check_distinct(placeholders: Placeholders, first: Path, second: Path) -> None:
    if first and placeholders.path(first) == placeholders.path(second):
        raise Invalid("The first operand must be distinct from the remaining operands")


def _check_comparison(
    operator: str, left: Operand, right: list[Operand], placeholders: Placeholders
) -> None:
    for operand in right:
        _check_distinct(placeholders, left.path, operand.path)
    if operator in ("=", "<>"):
        return
    operands = (left, *right)
    literals = [placeholders.values[operand.value] for operand in operands if operand.value]
    if not all(value.keys() <= {"S", "N", "B"} for value in literals):
        raise Invalid(f"Incorrect operand type for operator or function: {operator}")
    if operator == "BETWEEN" and all(operand.value for operand in right):
        low, high = literals[-2:]
        if low.keys() != high.keys() or order_of(low) > order_of(high):
            raise Invalid("The BETWEEN operator requires bounds of one type, the lower one first")


def _check_number(placeholders: Placeholders, name: str) -> None:
    if placeholders.values[name].keys() != {"N"}:
        raise Invalid("Incorrect operand type for operator or function: + or -")


def _check_added(value: Value) -> None:
    ((type_, _),) = value.items()
    if type_ in ("SS", "NS", "BS"):
        raise NotSimulated("ADD with a set")
    if type_ != "N":
        raise Invalid("Incorrect operand type for operator or function; operator: ADD")


def _check_overlaps(placeholders: Placeholders, paths: Iterable[Path]) -> None:
    previous_paths: list[Path] = []
    for path in map(placeholders.path, paths):
        for previous in previous_paths:
            shorter = min(len(path), len(previous))
            if path[:shorter] == previous[:shorter]:
                raise Invalid("Two document paths overlap with each other")
        previous_paths.append(path)
