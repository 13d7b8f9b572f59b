"""The formats of keys in files: text, json, jsonl and csv. Pure.

text   one key a line: strings and numbers as they are, binary as base64. A string that no line can
       carry (control characters, line separators) or that begins with a double quote is written as
       a JSON string; so every line has one meaning, and no key can send escape codes to a terminal.
json   one object a line: {"pk": "a"}; binary as base64, a number as text if no double equals it
jsonl  one object a line in DynamoDB's typed form: {"pk": {"S": "a"}}; control characters escaped
csv    quoted as in RFC 4180, with a header; binary as base64.

An index can have several partition key attributes: text separates them by tabs.
"""

import base64
import csv
import io
import json
import re
from collections.abc import Iterable, Iterator
from itertools import islice
from typing import Literal

from keyhop.dynamodb.schema import KeySpace
from keyhop.dynamodb.values import Key, TypedValue, from_json, plain, text_of, to_json

Format = Literal["text", "json", "jsonl", "csv"]
FORMATS: tuple[Format, ...] = ("text", "json", "jsonl", "csv")
SUFFIX: dict[Format, str] = {"text": "txt", "json": "jsonl", "jsonl": "jsonl", "csv": "csv"}

FIRST = "first"
"""The field of a row with attributes of its collection's first item, as JSON of typed values."""

BUCKET = "bucket"
"""The field of a row with the number of its bucket (RunPlan.buckets)."""

_NOT_PLAIN = re.compile(r'^"|[\x00-\x1f\x7f-\x9f\u2028-\u202e\u2066-\u2069]')
_ESCAPED_BY_US = re.compile(r"[\x7f-\x9f\u2028-\u202e\u2066-\u2069]")


class Encoder:
    """A converter between the keys of one key space and bytes of one format."""

    def __init__(self, format_: Format, space: KeySpace) -> None:
        self.format = format_
        self._names = space.names
        self._types = {attribute.name: attribute.type for attribute in space.partition}

    def header(self) -> bytes:
        """Return the bytes before the first key of a file. Only csv has any."""
        return csv_row(self._names).encode() if self.format == "csv" else b""

    def encode(self, keys: Iterable[Key]) -> bytes:
        """Return the lines of `keys`, each ended by a line feed."""
        if self.format == "text":
            lines = ("\t".join(_text(key[name]) for name in self._names) + "\n" for key in keys)
        elif self.format == "jsonl":
            lines = (json_text(to_json(key)) + "\n" for key in keys)
        elif self.format == "json":
            names = self._names
            lines = (json_text({n: plain(key[n]) for n in names}) + "\n" for key in keys)
        else:
            lines = (csv_row(_plain(key[name]) for name in self._names) for key in keys)
        return "".join(lines).encode()

    def decode(self, content: bytes, skip: int = 0) -> Iterator[Key]:
        """Yield the keys in lines that `encode` made, without a header, from number `skip` on."""
        text = io.StringIO(content.decode(), newline="")
        lines = islice(text, skip, None)
        if self.format == "jsonl":
            for line in lines:
                yield from_json(json.loads(line))
            return
        rows: Iterator[list[str]]
        if self.format == "csv":
            rows = islice(csv.reader(text), skip, None)  # a field may hold line breaks
        elif self.format == "json":
            objects = (json.loads(line, parse_int=str, parse_float=str) for line in lines)
            rows = ([item[name] for name in self._names] for item in objects)
        else:
            rows = (
                [json.loads(field) if field.startswith('"') else field for field in fields]
                for fields in (line[:-1].split("\t") for line in lines)
            )
        for row in rows:
            yield {
                name: _typed(type_, field)
                for (name, type_), field in zip(self._types.items(), row, strict=True)
            }


def _typed(type_: str, text: str) -> TypedValue:
    if type_ == "N" and "e" in text:  # as JSON has a small or large number, and the service has not
        return {"N": text_of({"N": text})}
    return {type_: base64.b64decode(text) if type_ == "B" else text}


def _plain(value: TypedValue) -> str:
    ((type_, content),) = value.items()
    return base64.b64encode(content).decode() if type_ == "B" else str(content)


def _text(value: TypedValue) -> str:
    text = _plain(value)
    if "S" in value and _NOT_PLAIN.search(text):
        return json_text(text)
    return text


def json_text(content: object, indent: int | None = None) -> str:
    """Return JSON without control characters, or characters that change the direction of text."""
    text = json.dumps(content, ensure_ascii=False, indent=indent)
    return _ESCAPED_BY_US.sub(lambda match: f"\\u{ord(match[0]):04x}", text)


def csv_row(fields: Iterable[object]) -> str:
    """Return a row of CSV, quoted as in RFC 4180."""
    # Written with CRLF, so that fields with either of the two are quoted (Python before 3.13 would
    # not quote a lone CR); the row itself ends as the other formats do.
    row = io.StringIO()
    csv.writer(row, lineterminator="\r\n").writerow(fields)
    return row.getvalue().removesuffix("\r\n") + "\n"
