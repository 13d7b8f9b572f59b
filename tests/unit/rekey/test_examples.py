"""examples/rekey: each template maps its example items as it says, and back."""

import json
import re
from decimal import Decimal
from pathlib import Path

import pytest
from keyhop.dynamodb.schema import KeyAttribute, KeySpace
from keyhop.dynamodb.values import Item, item_json, same_item
from keyhop.rekey.template.functions import tried
from keyhop.rekey.template.load import load, read
from keyhop.report.advice import PATTERNS

from testing.servers import ROOT

SIDES = ("before", "after")
EXAMPLES = sorted((ROOT / "examples" / "rekey").glob("*.yaml"))
INDEX = (ROOT / "examples" / "rekey" / "README.md").read_text()


def schema(text: str) -> KeySpace:
    partition, *sort = (KeyAttribute(*attribute.split()) for attribute in text.split(", "))
    return KeySpace((partition,), *sort)


def item(text: str) -> Item:
    return item_json(json.loads(text, parse_float=Decimal))


@pytest.mark.parametrize("path", EXAMPLES, ids=lambda path: path.stem)
def test_an_example_maps_items_as_it_says(path: Path):
    comments = re.findall(r"(?m)^# (\w+): (.*)$", path.read_text())
    values = dict(comments)
    template, code = read(path)
    tables = schema(values["source"]), schema(values["destination"])
    transform = load(template, *tables, code, trusted=code)
    items = {side: [item(text) for name, text in comments if name == side] for side in SIDES}
    assert items["before"]
    for before, after in zip(items["before"], items["after"], strict=True):
        assert transform.forward(before) == after
        assert same_item(transform.back(after), before)
    kind, _, owners = values["class"].partition(", by ")
    assert (transform.kind, ", ".join(transform.owner_attributes)) == (kind, owners)
    assert tried(transform, items["before"]) == []


def test_the_index_has_each_pattern_and_each_file():
    for number in PATTERNS:
        (line,) = re.findall(rf"(?m)^\| {number} .*$", INDEX)
        files = [path.name for path in EXAMPLES if path.name.startswith(f"p{int(number[1:]):02}-")]
        assert all(name in line for name in files)
        assert bool(files) != ("| none: " in line)
    assert all(path.name in INDEX for path in EXAMPLES)
