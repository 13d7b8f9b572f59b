"""Condition, update and key expressions of DynamoDB, as far as sharded tables send them."""

import re
from collections.abc import Callable, Mapping
from decimal import Decimal
from functools import cache
from typing import Any

Value = Any
Item = Mapping[str, Value]
Test = Callable[[Item, Mapping[str, str], Mapping[str, Value]], bool]
_TOKEN = re.compile(r"\s*([#:]?[A-Za-z_]\w*|<=|>=|<>|[=<>(),+.\-])")
_SECTIONS = ("SET", "REMOVE", "ADD", "DELETE")


def order_of(value: Value) -> Any:
    """What a typed value compares by."""
    ((type_, content),) = value.items()
    if type_ == "N":
        return Decimal(content)
    return content.encode() if isinstance(content, str) else content


def holds(request: Mapping[str, Any], item: Item | None) -> bool:
    """Whether a write's condition holds; item: None if there is none."""
    text = request.get("ConditionExpression")
    return text is None or matches(text, request, item or {})


def matches(text: str, request: Mapping[str, Any], item: Item) -> bool:
    """Whether an item meets a condition, by the request's names and values."""
    names = request.get("ExpressionAttributeNames", {})
    values = request.get("ExpressionAttributeValues", {})
    return _test(text)(item, names, values)


@cache
def _test(text: str) -> Test:
    parser = _Parser(_TOKEN.findall(text))
    test = parser.either()
    assert not parser.tokens, f"not understood: {text}"
    return test


class _Parser:
    def __init__(self, tokens: list[str]) -> None:
        self.tokens = tokens

    def next(self, *expected: str) -> str:
        token = self.tokens.pop(0)
        assert not expected or token in expected, f"{token} instead of {expected}"
        return token

    def is_next(self, word: str) -> bool:
        return bool(self.tokens) and self.tokens[0].upper() == word

    def either(self) -> Test:
        tests = [self.both()]
        while self.is_next("OR"):
            self.next()
            tests.append(self.both())
        return lambda *given: any(test(*given) for test in tests)

    def both(self) -> Test:
        tests = [self.one()]
        while self.is_next("AND"):
            self.next()
            tests.append(self.one())
        return lambda *given: all(test(*given) for test in tests)

    def one(self) -> Test:
        if self.is_next("NOT"):
            self.next()
            test = self.one()
            return lambda *given: not test(*given)
        if self.is_next("("):
            self.next()
            test = self.either()
            self.next(")")
            return test
        if self.tokens[1] == "(":
            function = self.next()
            self.next("(")
            path = self.path()
            self.next(")")
            exists = {"attribute_exists": True, "attribute_not_exists": False}[function]
            return lambda item, names, _: (_at(item, path, names) is not None) == exists
        return self.comparison()

    def comparison(self) -> Test:
        left = self.operand()
        operator = self.next("=", "<>", "<", "<=", ">", ">=", "BETWEEN")
        right = self.operand()
        if operator == "BETWEEN":
            self.next("AND")
            most = self.operand()
            return lambda *given: (
                _compared(">=", left(*given), right(*given))
                and _compared("<=", left(*given), most(*given))
            )
        return lambda *given: _compared(operator, left(*given), right(*given))

    def path(self) -> tuple[str, ...]:
        path = [self.next()]
        while self.is_next("."):
            self.next()
            path.append(self.next())
        return tuple(path)

    def operand(self) -> Callable[[Item, Mapping[str, str], Mapping[str, Value]], Value]:
        if self.tokens[0].startswith(":"):
            name = self.next()
            return lambda item, names, values: values[name]
        if self.is_next("IF_NOT_EXISTS"):
            self.next()
            self.next("(")
            there = self.path()
            self.next(",")
            other = self.operand()
            self.next(")")
            return lambda item, names, values: _at(item, there, names) or other(item, names, values)
        path = self.path()
        return lambda item, names, _: _at(item, path, names)


def _compared(operator: str, left: Value, right: Value) -> bool:
    if left is None or right is None or left.keys() != right.keys():
        return operator == "<>"
    one, other = order_of(left), order_of(right)
    match operator:
        case "=":
            return bool(one == other)
        case "<>":
            return bool(one != other)
        case "<":
            return bool(one < other)
        case "<=":
            return bool(one <= other)
        case ">":
            return bool(one > other)
    return bool(one >= other)


def _at(item: Item, path: tuple[str, ...], names: Mapping[str, str]) -> Value:
    value: Value = {"M": item}
    for step in path:
        value = value.get("M", {}).get(names.get(step, step))
        if value is None:
            return None
    return value


def updated(request: Mapping[str, Any], item: Item) -> dict[str, Value]:
    """The item, changed by an update expression."""
    names = request.get("ExpressionAttributeNames", {})
    values = request.get("ExpressionAttributeValues", {})
    after = dict(item)
    parser = _Parser(_TOKEN.findall(request.get("UpdateExpression", "")))
    section = ""
    while parser.tokens:
        if parser.tokens[0].upper() in _SECTIONS:
            section = parser.next().upper()
        path = parser.path()
        if section == "SET":
            parser.next("=")
            value = parser.operand()(item, names, values)
            if parser.is_next("+"):
                parser.next()
                value = _sum(value, parser.operand()(item, names, values))
            _set(after, path, names, value)
        elif section == "ADD":
            more = parser.operand()(item, names, values)
            before = _at(item, path, names)
            _set(after, path, names, more if before is None else _sum(before, more))
        elif section == "REMOVE":
            _set(after, path, names, None)
        else:
            raise AssertionError(f"{section} is not known")
        if parser.is_next(","):
            parser.next()
    return after


def _sum(one: Value, other: Value) -> Value:
    return {"N": str(Decimal(one["N"]) + Decimal(other["N"]))}


def _set(
    item: dict[str, Value], path: tuple[str, ...], names: Mapping[str, str], value: Value
) -> None:
    """Maps on the way are copied: others hold the item as it was."""
    name = names.get(path[0], path[0])
    if len(path) > 1:
        inner = dict(item[name]["M"])
        _set(inner, path[1:], names, value)
        item[name] = {"M": inner}
    elif value is None:
        item.pop(name, None)
    else:
        item[name] = value
