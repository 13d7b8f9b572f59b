"""Check items in the JSON of events and answers."""

import base64
import json
from decimal import Decimal
from typing import Any

import pytest
from boto3.dynamodb.types import TypeDeserializer
from handlers import sharding_requests as requests
from hypothesis import given
from hypothesis import strategies as st


@pytest.mark.parametrize(
    ("number", "json_text"),
    [
        ("7", "7"),
        ("-1E+3", "-1000"),
        ("12345678901234567890", "12345678901234567890"),
        ("0.1", "0.1"),
        ("1.5E-7", "1.5e-07"),
        ("0.12345678901234567890123", "0.12345678901234568"),
    ],
)
def test_a_number_of_a_plain_answer_is_a_number(number: str, json_text: str) -> None:
    """It is never a text. If a double cannot hold it, the nearest double is used."""
    assert json.dumps(requests.value_json(Decimal(number), typed=False)) == json_text


@pytest.mark.parametrize(
    ("value", "parsed"),
    [
        (0.1, Decimal("0.1")),
        (2**100, Decimal(2**100)),
        (1e100, Decimal("1E+100")),
        (True, True),
        (None, None),
        ([1, {"a": "b"}], [Decimal(1), {"a": "b"}]),
    ],
)
def test_plain_values_are_read(value: Any, parsed: Any) -> None:
    assert requests.value_of(value, typed=False) == parsed


@pytest.mark.parametrize("value", [float("nan"), float("inf"), 10**40 + 1, 1e300])
def test_a_plain_number_that_dynamodb_cannot_store_is_refused(value: Any) -> None:
    with pytest.raises(requests.InvalidItem):
        requests.value_of(value, typed=False)


@pytest.mark.parametrize(
    "value",
    [
        *({"S": 1}, {"N": 1}, {"N": "one"}, {"N": "Infinity"}, {"B": "?"}, {"B": 7}),
        *({"BOOL": "true"}, {"NULL": False}, {"M": []}, {"L": {}}, {"SS": []}, {"SS": "a"}),
        *({"SS": ["a", "a"]}, {"NS": [1]}, {"X": "a"}, {"S": "a", "N": "1"}, {}, "a", 7, None),
    ],
)
def test_an_invalid_typed_value_is_refused(value: Any) -> None:
    with pytest.raises(requests.InvalidItem) as error:
        requests.value_of(value, typed=True)
    assert str(error.value)


SCALARS = st.one_of(
    st.text(max_size=5).map(lambda text: {"S": text}),
    st.integers(-(10**30), 10**30).map(lambda number: {"N": str(number)}),
    st.binary(max_size=5).map(lambda content: {"B": base64.b64encode(content).decode()}),
    st.booleans().map(lambda truth: {"BOOL": truth}),
    st.just({"NULL": True}),
    st.sets(st.text(max_size=3), min_size=1, max_size=3).map(
        lambda members: {"SS": sorted(members)}
    ),
)
VALUES = st.recursive(
    SCALARS,
    lambda inside: st.one_of(
        st.lists(inside, max_size=3).map(lambda values: {"L": values}),
        st.dictionaries(st.text(max_size=3), inside, max_size=3).map(lambda values: {"M": values}),
    ),
    max_leaves=8,
)


@given(VALUES)
def test_typed_json_survives_a_round_trip(value: dict[str, Any]) -> None:
    assert requests.value_json(requests.value_of(value, typed=True), typed=True) == value


@given(VALUES)
def test_a_plain_answer_of_any_value_is_json(value: dict[str, Any]) -> None:
    json.dumps(requests.value_json(requests.value_of(value, typed=True), typed=False))


@given(SCALARS.filter(lambda value: "B" not in value))
def test_typed_values_are_read_as_boto3_reads_them(value: dict[str, Any]) -> None:
    assert requests.value_of(value, typed=True) == TypeDeserializer().deserialize(value)
