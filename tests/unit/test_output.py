import csv
import io
import json

import pytest
from hypothesis import given
from hypothesis import strategies as st
from keyhop.dynamodb.schema import KeyAttribute, KeySpace
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


@given(texts)
def test_a_text_line_holds_one_key_and_no_escape_code(string: str) -> None:
    line = Encoder("text", ONE["S"]).encode([{"pk": {"S": string}}]).decode()
    assert len(line.splitlines()) == 1
    assert not any(ord(c) < 32 or 127 <= ord(c) < 160 for c in line[:-1])


def test_plain_keys_are_printed_as_they_are() -> None:
    encoder = Encoder("text", ONE["S"])
    plain = ["a", "C:\\temp", "ü 😀", 'say "hi"', "a,b", " padded "]
    assert encoder.encode({"pk": {"S": s}} for s in plain).decode().split("\n")[:-1] == plain


def test_text_escapes_what_a_line_cannot_carry() -> None:
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
    assert (
        Encoder("jsonl", ONE["S"]).encode([{"pk": {"S": "ü"}}]) == '{"pk": {"S": "ü"}}\n'.encode()
    )


def test_csv_has_a_header_and_any_reader_understands_it() -> None:
    encoder = Encoder("csv", KeySpace((KeyAttribute("a,b", "S"),)))
    odd = ["x", "a\rb", "c\nd", 'e"f', "g,h"]
    content = encoder.header() + encoder.encode({"a,b": {"S": s}} for s in odd)
    rows = list(csv.reader(io.StringIO(content.decode(), newline="")))
    assert rows == [["a,b"], *([s] for s in odd)]
