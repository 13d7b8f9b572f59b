"""Keys as bytes: text, jsonl and csv.

text   one key a line: strings and numbers as they are, binary as base64. A string that no line can
       carry (control characters, line separators) or that begins with a double quote is written as
       a JSON string; so every line has one meaning, and no key can send escape codes to a terminal.
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
from typing import Literal

from keyhop.dynamodb.schema import KeySpace
from keyhop.dynamodb.values import Key, TypedValue, from_json, to_json

Format = Literal["text", "jsonl", "csv"]
FORMATS: tuple[Format, ...] = ("text", "jsonl", "csv")
SUFFIX: dict[Format, str] = {"text": "txt", "jsonl": "jsonl", "csv": "csv"}

_NOT_PLAIN = re.compile(r'^"|[\x00-\x1f\x7f-\x9f\u2028-\u202e\u2066-\u2069]')
_ESCAPED_BY_US = re.compile(r"[\x7f-\x9f\u2028-\u202e\u2066-\u2069]")


class Encoder:
    """Turns keys of one key space into bytes of one format."""

    def __init__(self, format_: Format, space: KeySpace) -> None:
        self.format = format_
        self._space = space
        self._names = space.names

    def header(self) -> bytes:
        """What comes before the first key of a file; empty but for csv."""
        return _csv_row(self._names).encode() if self.format == "csv" else b""

    def encode(self, keys: Iterable[Key]) -> bytes:
        """The lines of `keys`, each ended by a line feed."""
        if self.format == "text":
            lines = ("\t".join(_text(key[name]) for name in self._names) + "\n" for key in keys)
        elif self.format == "jsonl":
            lines = (_json(to_json(key)) + "\n" for key in keys)
        else:
            lines = (_csv_row(_plain(key[name]) for name in self._names) for key in keys)
        return "".join(lines).encode()

    def decode(self, content: bytes) -> Iterator[Key]:
        """The keys in lines that `encode` made, without a header."""
        text = io.StringIO(content.decode(), newline="")
        if self.format == "jsonl":
            for line in text:
                yield from_json(json.loads(line))
            return
        if self.format == "csv":
            rows: Iterator[list[str]] = csv.reader(text)
        else:
            rows = ([_untext(field) for field in line[:-1].split("\t")] for line in text)
        for row in rows:
            yield {
                attribute.name: {attribute.type: _content(attribute.type, field)}
                for attribute, field in zip(self._space.partition, row, strict=True)
            }


def _plain(value: TypedValue) -> str:
    ((type_, content),) = value.items()
    return base64.b64encode(content).decode() if type_ == "B" else str(content)


def _text(value: TypedValue) -> str:
    plain = _plain(value)
    if "S" in value and _NOT_PLAIN.search(plain):
        return _json(plain)
    return plain


def _json(content: object) -> str:
    """JSON whose strings hold no control characters, nor any that change the direction of text."""
    text = json.dumps(content, ensure_ascii=False)
    return _ESCAPED_BY_US.sub(lambda found: f"\\u{ord(found[0]):04x}", text)


def _untext(field: str) -> str:
    return str(json.loads(field)) if field.startswith('"') else field


def _content(type_: str, field: str) -> str | bytes:
    return base64.b64decode(field) if type_ == "B" else field


def _csv_row(fields: Iterable[str]) -> str:
    # Written with CRLF, so that fields with either of the two are quoted (Python before 3.13 would
    # not quote a lone CR); the row itself ends as the other formats do.
    row = io.StringIO()
    csv.writer(row, lineterminator="\r\n").writerow(fields)
    return row.getvalue().removesuffix("\r\n") + "\n"
