"""Check that KeyConditionExpressions are parsed as the service parses them."""

from typing import Any

import pytest
from boto3.dynamodb.conditions import Attr, Key
from keyhop.errors import CannotStart
from keyhop.sharding.io.boto3_query import (
    KeyCondition,
    Range,
    greatest_beginning_with,
    key_condition,
)
from keyhop.sharding.io.items import clause_of

P, A, B = {"S": "/f"}, {"S": "a"}, {"S": "b"}
VALUES = {":p": "/f", ":a": "a", ":b": "b"}
AFTER_A = {"S": "a" + "\U0010ffff" * 255 + "\uffff"}
RANGES = {
    "= :a": Range(A, A),
    "< :a": Range(high=A, excludes=True),
    "<= :a": Range(high=A),
    "> :a": Range(low=A, excludes=True),
    ">= :a": Range(low=A),
    "BETWEEN :a AND :b": Range(A, B),
    " between :a and :b": Range(A, B),
}


def read(expression: Any, **names: str) -> KeyCondition:
    placeholders = {f"#{name}": value for name, value in names.items()}
    values = VALUES if isinstance(expression, str) else None
    clause = clause_of(expression, placeholders, values, is_key=True)
    return key_condition(clause, "path", "at", "S")


@pytest.mark.parametrize(
    "form", ["path=:p AND at {}", "(#p = :p) and (#a {})", "((#a {} AND #p=:p))"]
)
@pytest.mark.parametrize(("test", "expected"), RANGES.items())
def test_a_text_is_read(form: str, test: str, expected: Range) -> None:
    condition = read(form.format(test), p="path", a="at")
    assert (condition.partition, condition.range) == (P, expected)
    assert ":p" in condition.used
    assert ("#p" in condition.used) == ("#p" in form)


def test_the_partition_key_alone_and_begins_with() -> None:
    assert read("( path = :p )") == KeyCondition(P, Range(), frozenset({"path", ":p"}))
    assert read("begins_with ( at , :a ) AND path = :p").range == Range(A, AFTER_A)
    assert read("#and = :p AND #between > :a", **{"and": "path", "between": "at"}).range == Range(
        low=A, excludes=True
    )


@pytest.mark.parametrize(
    ("condition", "expected"),
    [
        (Key("at").eq("a"), Range(A, A)),
        (Key("at").lt("a"), Range(high=A, excludes=True)),
        (Key("at").gte("a"), Range(low=A)),
        (Key("at").between("a", "b"), Range(A, B)),
        (Key("at").begins_with("a"), Range(A, AFTER_A)),
    ],
)
def test_conditions_of_boto3_are_read(condition: Any, expected: Range) -> None:
    for both in (Key("path").eq("/f") & condition, condition & Key("path").eq("/f")):
        parsed = read(both)
        assert (parsed.partition, parsed.range) == (P, expected)


@pytest.mark.parametrize(
    "wrong",
    [
        "",
        "path > :p",
        "at = :a",
        "path = :p AND other = :a",
        "path = :p AND at = :a AND at > :b",
        "path = :p AND at <> :a",
        "path = :p OR at = :a",
        "path = :p AND at = :none",
        "path = :p AND contains(at, :a)",
        "(path = :p",
        Key("path").begins_with("/f"),
    ],
)
def test_an_invalid_key_condition_is_refused(wrong: Any) -> None:
    with pytest.raises(CannotStart, match="KeyConditionExpression"):
        read(wrong)


def test_a_condition_on_attr_is_refused() -> None:
    """boto3 refuses it too, by its class."""
    with pytest.raises(Exception, match="Attr"):
        read(Attr("path").eq("/f"))


@pytest.mark.parametrize("begin", ["", "a", "é", "\u20ac", "\U0001f600", "x" * 1024, "ab"])
def test_the_greatest_text_with_a_prefix_has_the_maximum_length(begin: str) -> None:
    greatest = greatest_beginning_with({"S": begin}, "S")["S"]
    assert greatest.startswith(begin)
    assert len(greatest.encode()) == 1024
    assert greatest_beginning_with({"B": b"a"}, "B") == {"B": b"a" + b"\xff" * 1023}
    with pytest.raises(CannotStart, match="begins_with"):
        greatest_beginning_with({"N": "1"}, "N")
