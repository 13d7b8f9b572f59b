"""Typed values, which are stored, compared and added like those of the service."""

import re
from collections.abc import Mapping
from decimal import Context, Decimal
from typing import Any

Value = Any
"""A typed value: a dictionary of one type and its content."""
Item = Mapping[str, Value]

MOST_DIGITS = 38
GREATEST_EXPONENT, LEAST_EXPONENT = 125, -130
_EXACT = Context(prec=600)
"""Holds the sum of any two numbers of the service."""
_NUMBER = re.compile(r"[+-]?([0-9]+\.?[0-9]*|\.[0-9]+)([eE][+-]?[0-9]+)?")


class Invalid(Exception):
    """The service refuses the request with a ValidationException."""


class NotSimulated(BaseException):
    """The service can do what the request says, and the simulation cannot.

    It is not an Exception, so that no code under test mistakes it for an error of the service.
    """


def stored(value: Value) -> Value:
    """Return a copy of a typed value in the form in which the service stores it.

    Numbers have no exponent and no superfluous digits, and sets are sorted. So values are equal if
    they are equal for the service.

    Raises:
        Invalid: The service does not accept the value.
    """
    if len(value) != 1:
        raise Invalid("Supplied AttributeValue must contain exactly one of the supported datatypes")
    ((type_, content),) = value.items()
    match type_:
        case "S" | "BOOL":
            return {type_: content}
        case "N":
            return {"N": number(content)}
        case "M":
            return {"M": {name: stored(part) for name, part in content.items()}}
        case "L":
            return {"L": [stored(part) for part in content]}
        case "SS" | "NS" | "BS":
            members = [stored({type_[0]: member})[type_[0]] for member in content]
            if not members or len(set(members)) < len(members):
                raise Invalid("A set must not be empty, nor contain duplicates")
            return {type_: sorted(members, key=lambda member: order_of({type_[0]: member}))}
        case "NULL" if content is not True:
            raise Invalid("Null attribute value types must have the value of true")
        case "NULL":
            return {"NULL": True}
        case "B":
            return {"B": bytes(content)}
    raise Invalid(f"{type_} is not a type")


def stored_item(item: Item) -> dict[str, Value]:
    """Return a copy of an item in the form in which the service stores it. Raise Invalid."""
    return {name: stored(value) for name, value in item.items()}


def copy_of(item: Item) -> dict[str, Value]:
    """Return a deep copy of an item."""
    return {name: _copied(value) for name, value in item.items()}


def _copied(value: Value) -> Value:
    type_ = next(iter(value))
    if type_ == "M":
        return {"M": copy_of(value["M"])}
    if type_ == "L":
        return {"L": [_copied(part) for part in value["L"]]}
    return {type_: list(value[type_])} if type_ in ("SS", "NS", "BS") else dict(value)


def number(text: str) -> str:
    """Return a number as the service writes it. Raise Invalid."""
    if not _NUMBER.fullmatch(text):
        raise Invalid("A value provided cannot be converted into a number")
    return _written(Decimal(text))


def _written(exact: Decimal) -> str:
    if not exact:
        return "0"
    exact = exact.normalize(_EXACT)
    if len(exact.as_tuple().digits) > MOST_DIGITS:
        raise Invalid("DynamoDB only supports precision up to 38 digits")
    if not LEAST_EXPONENT <= exact.adjusted() <= GREATEST_EXPONENT:
        raise Invalid("Number overflow or underflow")
    return format(exact, "f")


def added(first: Value, second: Value, sign: int = 1) -> Value:
    """Return the sum of two numbers, or with the sign -1 their difference. Raise Invalid."""
    if first.keys() != {"N"} or second.keys() != {"N"}:
        raise Invalid("An operand in the update expression has an incorrect data type")
    return {"N": _written(_EXACT.add(Decimal(first["N"]), sign * Decimal(second["N"])))}


def order_of(value: Value) -> Any:
    """Return the sort value of a string, a number or a binary value."""
    ((type_, content),) = value.items()
    if type_ == "N":
        return Decimal(content)
    return content.encode() if isinstance(content, str) else content


def compare(operator: str, left: Value | None, right: Value | None) -> bool:
    """Compare two stored values like a condition. None stands for a missing attribute."""
    if operator == "=":
        return left is not None and left == right
    if operator == "<>":
        return left is None or left != right
    if left is None or right is None or left.keys() != right.keys():
        return False
    if not left.keys() <= {"S", "N", "B"}:
        return False
    first, second = order_of(left), order_of(right)
    match operator:
        case "<":
            return bool(first < second)
        case "<=":
            return bool(first <= second)
        case ">":
            return bool(first > second)
        case ">=":
            return bool(first >= second)
    raise AssertionError(operator)
