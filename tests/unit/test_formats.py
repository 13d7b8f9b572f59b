"""Check keys in each file format, and results in each --format of the commands."""

import base64
import csv
import io
import json
from decimal import Decimal
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from keyhop.cli.output import put_out, unwrapped
from keyhop.dynamodb.schema import KeyAttribute, KeySpace
from keyhop.dynamodb.values import key_text, plain, text_of
from keyhop.jobs.formats import FORMATS, Encoder

ONE = {type_: KeySpace((KeyAttribute("pk", type_),)) for type_ in ("S", "N", "B")}
SEVERAL = KeySpace((KeyAttribute("p", "S"), KeyAttribute("q", "B"), KeyAttribute("r", "N")))

texts = st.text(st.characters(codec="utf-8"), min_size=1)


@pytest.mark.parametrize("format_", FORMATS)
@given(st.lists(texts, max_size=20))
def test_string_keys_survive_every_format(format_: str, strings: list[str]) -> None:
    keys = [{"pk": {"S": string}} for string in strings]
    encoder = Encoder(format_, ONE["S"])
    assert list(encoder.decode(encoder.encode(keys))) == keys


@pytest.mark.parametrize("format_", FORMATS)
@given(st.lists(st.tuples(texts, st.binary(min_size=1), st.integers()), max_size=20))
def test_keys_of_several_attributes_survive_every_format(format_: str, rows: list) -> None:
    keys = [{"p": {"S": p}, "q": {"B": q}, "r": {"N": str(r)}} for p, q, r in rows]
    encoder = Encoder(format_, SEVERAL)
    assert list(encoder.decode(encoder.encode(keys))) == keys


@pytest.mark.parametrize("format_", FORMATS)
@given(st.lists(st.decimals(-(10**15), 10**15, allow_nan=False, places=20), max_size=20))
@example([Decimal("0.00004"), Decimal("-1E-10"), Decimal("1E-130"), Decimal("1E+22")])
def test_numbers_are_read_in_the_form_of_the_service(format_: str, numbers: list[Decimal]) -> None:
    keys = [{"pk": {"N": text_of({"N": str(number)})}} for number in numbers]
    encoder = Encoder(format_, ONE["N"])
    assert list(encoder.decode(encoder.encode(keys))) == keys


@pytest.mark.parametrize("number", ["40e-6", "4.0E-5", "0.000040"])
def test_the_text_of_a_key_is_the_same_in_each_form_of_a_number(number: str) -> None:
    assert key_text({"b": {"N": number}, "a": {"B": b"x"}}) == key_text(
        {"a": {"B": b"x"}, "b": {"N": "0.00004"}}
    )


@given(texts)
def test_a_text_line_holds_one_key_and_no_escape_code(string: str) -> None:
    line = Encoder("text", ONE["S"]).encode([{"pk": {"S": string}}]).decode()
    assert len(line.splitlines()) == 1
    assert not any(ord(c) < 32 or 127 <= ord(c) < 160 for c in line[:-1])


def test_plain_keys_are_printed_unchanged() -> None:
    encoder = Encoder("text", ONE["S"])
    plain = ["a", "C:\\temp", "ü 😀", 'say "hi"', "a,b", " padded "]
    assert encoder.encode({"pk": {"S": s}} for s in plain).decode().split("\n")[:-1] == plain


def test_text_escapes_keys_that_do_not_fit_a_line() -> None:
    encoder = Encoder("text", ONE["S"])
    odd = ["a\nb", '"quoted"', "\x1b[31mred", "\x7f"]
    lines = encoder.encode({"pk": {"S": s}} for s in odd).decode().split("\n")[:-1]
    assert [json.loads(line) for line in lines] == odd


def test_binary_is_base64_in_every_format() -> None:
    key = {"pk": {"B": b"\x00\xff"}}
    assert Encoder("text", ONE["B"]).encode([key]) == b"AP8=\n"
    assert Encoder("jsonl", ONE["B"]).encode([key]) == b'{"pk": {"B": "AP8="}}\n'
    assert Encoder("csv", ONE["B"]).encode([key]) == b"AP8=\n"


def test_jsonl_is_dynamodb_s_typed_form_in_utf_8() -> None:
    line = Encoder("jsonl", ONE["S"]).encode([{"pk": {"S": "ü"}}])
    assert line.decode() == '{"pk": {"S": "ü"}}\n'


def test_csv_has_a_header_and_any_reader_understands_it() -> None:
    encoder = Encoder("csv", KeySpace((KeyAttribute("a,b", "S"),)))
    odd = ["x", "a\rb", "c\nd", 'e"f', "g,h"]
    content = encoder.header() + encoder.encode({"a,b": {"S": s}} for s in odd)
    rows = list(csv.reader(io.StringIO(content.decode(), newline="")))
    assert rows == [["a,b"], *([s] for s in odd)]


REPORT: dict[str, Any] = {
    "table": "Orders",
    "verification": None,
    "uses": True,
    "keys": {"low": 1, "high": 0},
    "examples": {"missing": [{"pk": {"S": "a"}}, {"pk": {"N": "7"}}], "surplus": []},
}


def printed(capsys: Any, format_: str | None, report: Any = REPORT, **more: Any) -> str:
    put_out(format_, report, lambda: "for a person", **more)
    return str(capsys.readouterr().out)


def test_text_is_the_default_and_for_people(capsys: Any) -> None:
    assert printed(capsys, None) == printed(capsys, "text") == "for a person\n"


def test_json_has_plain_keys_and_typed_json_those_of_dynamodb(capsys: Any) -> None:
    assert json.loads(printed(capsys, "typed-json")) == REPORT
    examples = {"missing": [{"pk": "a"}, {"pk": 7}], "surplus": []}
    assert json.loads(printed(capsys, "json")) == {**REPORT, "examples": examples}


def test_csv_has_a_column_for_each_figure_and_a_row_for_each_record(capsys: Any) -> None:
    (row,) = csv.DictReader(io.StringIO(printed(capsys, "csv")))
    assert row == {
        "table": "Orders",
        "verification": "",
        "uses": "true",
        "keys.low": "1",
        "keys.high": "0",
        "examples.missing": '[{"pk": "a"}, {"pk": 7}]',
        "examples.surplus": "[]",
    }
    assert printed(capsys, "csv", [{"a": 1}, {"a": 2, "b": 3}]) == "a,b\n1,\n2,3\n"
    assert printed(capsys, "csv", [{"a": 1}], rows=[{"c": 4}]) == "c\n4\n"
    assert printed(capsys, "csv", []) == ""


def test_no_key_sends_an_escape_code_to_a_terminal(capsys: Any) -> None:
    odd = {"pk": {"S": "\x1b[31m\x9b\u202e"}}
    for format_ in ("json", "typed-json"):
        assert not {"\x1b", "\x9b", "\u202e"} & set(printed(capsys, format_, odd))


def test_an_attribute_may_be_named_as_a_type() -> None:
    assert unwrapped({"S": {"S": "a"}, "N": {"N": "1"}}) == {"S": "a", "N": 1}
    assert unwrapped({"S": {"S": "a"}}) == {"S": "a"}
    assert unwrapped({"throttles": {}}) == {"throttles": {}}


@pytest.mark.parametrize(
    ("content", "expected"),
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
def test_a_number_stays_one_if_a_double_is_equal(content: str, expected: Any) -> None:
    assert plain({"N": content}) == expected
    assert type(plain({"N": content})) is type(expected)


@given(st.binary())
def test_binary_is_base64_from_bytes_and_from_json(content: bytes) -> None:
    text = base64.b64encode(content).decode()
    assert plain({"B": content}) == plain({"B": text}) == text
