"""What --format makes of a result: alike for all commands."""

import base64
import csv
import io
import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from keyhop.cli.output import put_out, unwrapped
from keyhop.dynamodb.values import plain

REPORT: dict[str, Any] = {
    "table": "Orders",
    "verification": None,
    "uses": True,
    "keys": {"low": 1, "high": 0},
    "examples": {"missing": [{"pk": {"S": "a"}}, {"pk": {"N": "7"}}], "surplus": []},
}


def said(capsys: Any, format_: str | None, report: Any = REPORT, **more: Any) -> str:
    put_out(format_, report, lambda: "for a person", **more)
    return str(capsys.readouterr().out)


def test_text_is_for_a_person_and_is_what_comes_unasked(capsys: Any) -> None:
    assert said(capsys, None) == said(capsys, "text") == "for a person\n"


def test_json_has_plain_keys_and_typed_json_those_of_dynamodb(capsys: Any) -> None:
    assert json.loads(said(capsys, "typed-json")) == REPORT
    examples = {"missing": [{"pk": "a"}, {"pk": 7}], "surplus": []}
    assert json.loads(said(capsys, "json")) == {**REPORT, "examples": examples}


def test_csv_has_a_column_for_each_figure_and_a_row_for_each_record(capsys: Any) -> None:
    (row,) = csv.DictReader(io.StringIO(said(capsys, "csv")))
    assert row == {
        "table": "Orders",
        "verification": "",
        "uses": "true",
        "keys.low": "1",
        "keys.high": "0",
        "examples.missing": '[{"pk": "a"}, {"pk": 7}]',
        "examples.surplus": "[]",
    }
    assert said(capsys, "csv", [{"a": 1}, {"a": 2, "b": 3}]) == "a,b\n1,\n2,3\n"
    assert said(capsys, "csv", [{"a": 1}], rows=[{"c": 4}]) == "c\n4\n"
    assert said(capsys, "csv", []) == ""


def test_no_key_sends_an_escape_code_to_a_terminal(capsys: Any) -> None:
    odd = {"pk": {"S": "\x1b[31m\x9b\u202e"}}
    for format_ in ("json", "typed-json"):
        assert not {"\x1b", "\x9b", "\u202e"} & set(said(capsys, format_, odd))


def test_an_attribute_may_be_named_as_a_type() -> None:
    assert unwrapped({"S": {"S": "a"}, "N": {"N": "1"}}) == {"S": "a", "N": 1}
    assert unwrapped({"S": {"S": "a"}}) == {"S": "a"}
    assert unwrapped({"throttles": {}}) == {"throttles": {}}


@pytest.mark.parametrize(
    ("content", "is_"),
    [
        ("7", 7),
        ("-0.1", -0.1),
        ("9007199254740992", 2**53),
        ("9007199254740993", "9007199254740993"),
        ("12345678901234567890123456789012345678", "12345678901234567890123456789012345678"),
        ("0.12345678901234567890123456789012345678", "0.12345678901234567890123456789012345678"),
        ("1E-130", 1e-130),
    ],
)
def test_a_number_stays_one_where_a_double_is_equal_to_it(content: str, is_: Any) -> None:
    assert plain({"N": content}) == is_
    assert type(plain({"N": content})) is type(is_)


@given(st.binary())
def test_binary_is_base64_from_bytes_and_from_what_json_has_of_them(content: bytes) -> None:
    text = base64.b64encode(content).decode()
    assert plain({"B": content}) == plain({"B": text}) == text
