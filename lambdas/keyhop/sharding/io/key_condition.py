"""Parses a KeyConditionExpression into a partition key and a range of sort keys. Pure.

    partition = :value [AND sort (= | < | <= | > | >=) :value | sort BETWEEN :low AND :high
                        | begins_with(sort, :value)]

in any order and with any parentheses (AWS documentation, "Key condition expressions").
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import get_args

from keyhop.dynamodb.units import MOST_SORT_KEY_BYTES
from keyhop.dynamodb.values import KeyType, TypedValue
from keyhop.errors import CannotStart
from keyhop.sharding.io.items import Clause, is_enclosed

_NAME, _VALUE = r"(?P<name>#?[\w.-]+)", r"(?P<value>:\w+)"
_TESTS = (
    re.compile(rf"{_NAME}\s*(?P<operator><=|>=|=|<|>)\s*{_VALUE}"),
    re.compile(rf"(?P<operator>begins_with)\s*\(\s*{_NAME}\s*,\s*{_VALUE}\s*\)"),
    re.compile(rf"{_NAME}\s+(?P<operator>BETWEEN)\s+{_VALUE}\s+AND\s+(?P<high>:\w+)", re.I),
)
_GREATEST = {1: "\x7f", 2: "\u07ff", 3: "\uffff", 4: "\U0010ffff"}
"""The last character in sort order by its number of bytes in UTF-8."""


@dataclass(frozen=True, slots=True)
class Range:
    """A range of sort keys; None: no limit. excludes: whether the only limit itself is excluded."""

    low: TypedValue | None = None
    high: TypedValue | None = None
    excludes: bool = False


@dataclass(frozen=True, slots=True)
class KeyCondition:
    """A partition key and a range. used: the expression's names and values."""

    partition: TypedValue
    range: Range
    used: frozenset[str]


@dataclass(frozen=True, slots=True)
class _Test:
    name: str
    operator: str
    value: str
    high: str | None

    def range(self, values: Mapping[str, TypedValue], type_: KeyType) -> Range:
        value = _value(values, self.value)
        match self.operator:
            case "=":
                return Range(value, value)
            case "<" | "<=":
                return Range(high=value, excludes=self.operator == "<")
            case ">" | ">=":
                return Range(low=value, excludes=self.operator == ">")
            case "begins_with":
                return Range(value, greatest_beginning_with(value, type_))
        assert self.high is not None
        return Range(value, _value(values, self.high))


def key_condition(clause: Clause, partition: str, sort: str, type_: KeyType) -> KeyCondition:
    """Return the condition on the two key attributes, or raise CannotStart for an invalid one."""
    tests = [_test(text) for text in _conjuncts(clause.condition)]
    by_name = {clause.names.get(test.name, test.name): test for test in tests}
    key = by_name.pop(partition, None)
    of_sort = by_name.pop(sort, None)
    if key is None or key.operator != "=" or by_name or len(tests) > 2:
        raise CannotStart(
            f"KeyConditionExpression must be {partition} = one value, and at most one condition "
            f"on {sort} besides."
        )
    used = {word for test in tests for word in (test.name, test.value, test.high) if word}
    within = of_sort.range(clause.values, type_) if of_sort else Range()
    return KeyCondition(_value(clause.values, key.value), within, frozenset(used))


def greatest_beginning_with(value: TypedValue, type_: KeyType) -> TypedValue:
    """Return the greatest sort key with this beginning. Raise CannotStart for a number."""
    content = value.get(type_)
    if type_ == "B" and content is not None:
        return {"B": bytes(content).ljust(MOST_SORT_KEY_BYTES, b"\xff")}
    if type_ == "S" and content is not None:
        wide, rest = divmod(max(0, MOST_SORT_KEY_BYTES - len(content.encode())), 4)
        return {"S": content + _GREATEST[4] * wide + _GREATEST.get(rest, "")}
    raise CannotStart(f"begins_with must be given a value of the type {type_} of the sort key.")


def _conjuncts(text: str) -> list[str]:
    """Return the expression's one or two tests, without enclosing parentheses."""
    text = text.strip()
    while is_enclosed(text):
        text = text[1:-1].strip()
    for at, between in _ands(text):
        if not between:
            return [*_conjuncts(text[: at.start()]), *_conjuncts(text[at.end() :])]
    return [text]


def _ands(text: str) -> list[tuple[re.Match[str], bool]]:
    """Return the ANDs outside of parentheses, and whether each belongs to a BETWEEN."""
    ands, after_between = [], False
    for word in re.finditer(r"\bBETWEEN\b|\bAND\b", text, re.I):
        before = text[: word.start()]
        if before.count("(") != before.count(")") or before[-1:] in ("#", ":", ".", "-"):
            continue
        if word[0].upper() == "BETWEEN":
            after_between = True
        else:
            ands.append((word, after_between))
            after_between = False
    return ands


def _test(text: str) -> _Test:
    for form in _TESTS:
        match = form.fullmatch(text)
        if match is not None:
            parts: Mapping[str, str] = match.groupdict()
            return _Test(parts["name"], parts["operator"], parts["value"], parts.get("high"))
    raise CannotStart(f"KeyConditionExpression has {text!r}, which is no condition on a key.")


def _value(values: Mapping[str, TypedValue], name: str) -> TypedValue:
    if name not in values:
        raise CannotStart(f"KeyConditionExpression has {name}, which has no value.")
    value = values[name]
    if value.keys().isdisjoint(get_args(KeyType)):
        raise CannotStart(
            "KeyConditionExpression compares a key with a value that is no text, number or bytes. "
            "Write values as for boto3's Table: 'a', not {'S': 'a'}."
        )
    return value
