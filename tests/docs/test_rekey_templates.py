"""Tests that the template and the filters in rekey-templates.md have the described results."""

import json
import re

import pytest
import yaml
from keyhop.dynamodb.values import item_json, same_item
from keyhop.rekey.template.load import load

from tests.docs.pages import ROOT
from tests.unit.rekey.templates import keys

TEXT = (ROOT / "docs" / "reference" / "rekey-templates.md").read_text()
FILTERS = re.findall(r"(?m)^\| `(\{.*?\})` \| `(.*?)` \| `(.*?)` \| (yes|no) \|$", TEXT)


def test_the_template_of_the_page_has_the_described_result():
    (example,) = re.findall(r"(?ms)^```yaml\n(.*?)^```$", TEXT)
    comments = dict(re.findall(r"(?m)^# (\w+): (.*)$", example))
    before, after = (item_json(json.loads(comments[side])) for side in ("before", "after"))
    transform = load(yaml.safe_load(example), keys(), keys())
    assert transform.forward(before) == after
    assert transform.back(after) == before
    assert comments["class"] == f"{transform.kind}, by {', '.join(transform.owner_attributes)}"


@pytest.mark.parametrize(("field", "source", "becomes", "reversible"), FILTERS)
def test_a_filter_has_the_result_in_the_table(field, source, becomes, reversible):
    """The filter transforms the source's sort key into the destination's."""
    field = field.replace("\\|", "|")
    name = re.match(r"\{(\w+)", field)[1]
    value, result = (item_json({name: json.loads(text)})[name] for text in (source, becomes))
    (before,), (after,) = value, result
    keep = {name: "old"} if reversible == "no" else {}
    rule = {"set": {"PK": "{PK}", "SK": field}, "keep": keep}
    source_keys, destination_keys = keys(sort=name, types=f"S{before}"), keys(types=f"S{after}")
    transform = load({"items": [rule]}, source_keys, destination_keys)
    item = {"PK": {"S": "p"}, name: value}
    assert transform.forward(item)["SK"] == result
    assert same_item(transform.back(transform.forward(item)), item)
    assert (transform.kind == "bijective") == (reversible == "yes")


def test_the_table_has_every_filter():
    names = set(re.findall(r"\|(\w+)", " ".join(field for field, *_ in FILTERS)))
    assert names == {"pad", "upper", "lower", "first", "date", "hash", "mod", "shard", "num", "str"}
