"""rekey-templates.md: its template makes what it says, so does each of its filters."""

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


def test_the_template_of_the_page_makes_what_it_says():
    (example,) = re.findall(r"(?ms)^```yaml\n(.*?)^```$", TEXT)
    told = dict(re.findall(r"(?m)^# (\w+): (.*)$", example))
    before, after = (item_json(json.loads(told[side])) for side in ("before", "after"))
    transform = load(yaml.safe_load(example), keys(), keys())
    assert transform.forward(before) == after
    assert transform.back(after) == before
    assert told["class"] == f"{transform.kind}, by {', '.join(transform.owner_attributes)}"


@pytest.mark.parametrize(("field", "of", "becomes", "undone"), FILTERS)
def test_a_filter_makes_what_the_table_says(field, of, becomes, undone):
    """As a sort key, of the type of what it becomes, made of the source's sort key."""
    field = field.replace("\\|", "|")
    name = re.match(r"\{(\w+)", field)[1]
    given, made = (item_json({name: json.loads(text)})[name] for text in (of, becomes))
    (before,), (after,) = given, made
    rule = {"set": {"PK": "{PK}", "SK": field}, "keep": {name: "old"} if undone == "no" else {}}
    here, there = keys(sort=name, types=f"S{before}"), keys(types=f"S{after}")
    transform = load({"items": [rule]}, here, there)
    item = {"PK": {"S": "p"}, name: given}
    assert transform.forward(item)["SK"] == made
    assert same_item(transform.back(transform.forward(item)), item)
    assert (transform.kind == "bijective") == (undone == "yes")


def test_the_table_has_every_filter():
    shown = set(re.findall(r"\|(\w+)", " ".join(field for field, *_ in FILTERS)))
    assert shown == {"pad", "upper", "lower", "first", "date", "hash", "mod", "shard", "num", "str"}
