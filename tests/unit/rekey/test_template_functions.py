"""Functions in the place of rules: executed only if they are the trusted ones, and not believed."""

import json
from pathlib import Path
from typing import Any

import pytest
from keyhop.errors import CannotStart
from keyhop.rekey.template.functions import tried
from keyhop.rekey.template.load import load, read
from keyhop.rekey.transform import Transform
from keyhop.template import Unmappable

from tests.unit.rekey.templates import NO_KEYS, ORDERS, keys

CODE = """
def forward(item):
    if "left" in item:
        return None
    return {**item, "PK": {"S": "T#" + item["tenant"]["S"]}, "SK": item["SK"]}

def backward(item):
    return {name: value for name, value in item.items() if name != "SK"}
"""
TEMPLATE: dict[str, Any] = {
    "transform": "f.py:forward",
    "inverse": "f.py:backward",
    "keep": {"PK": "oldPK", "SK": "oldSK"},
    "reads": ["tenant"],
}
ITEM = {"PK": {"S": "p"}, "SK": {"S": "s"}, "tenant": {"S": "t"}, "n": {"N": "1.5"}}


def loaded(code: str = CODE, **changes: Any) -> Transform:
    return load({**TEMPLATE, **changes}, keys(), keys(), code, trusted=code)


def test_functions_go_there_and_back_and_the_key_is_kept_beside_them():
    transform = loaded()
    there = transform.forward(ITEM)
    assert there["PK"] == {"S": "T#t"}
    assert (there["oldPK"], there["oldSK"]) == (ITEM["PK"], ITEM["SK"])
    assert transform.back(there) == ITEM
    assert (transform.kind, transform.owner_attributes) == ("recoverable", ("oldPK", "oldSK"))
    assert transform.reverse.owner_attributes == ("tenant",)
    assert transform.owner_of(there) == {"PK": ITEM["PK"], "SK": ITEM["SK"]}
    assert transform.owner_of({"PK": {"S": "x"}}) is None
    assert transform.reverse.owner_of(ITEM) == transform.place_of(ITEM)
    assert transform.forward({**ITEM, "left": {"BOOL": True}}) is None
    assert tried(transform, [ITEM]) == []


@pytest.mark.parametrize("kept", NO_KEYS, ids=range(len(NO_KEYS)))
def test_an_item_that_keeps_an_impossible_key_has_no_owner(kept):
    there = {**loaded().forward(ITEM), "oldPK": kept}
    assert loaded().owner_of(there) is None
    with pytest.raises(Unmappable, match="hold no such key"):
        loaded().back(there)


@pytest.mark.parametrize("trusted", [None, "", CODE + "#"])
def test_only_trusted_code_is_executed(trusted):
    """Whatever a plan in a table says: here it would end the test."""
    evil = "raise SystemExit(1)"
    with pytest.raises(CannotStart, match="are not those of this deployment: deploy with"):
        load(TEMPLATE, keys(), keys(), evil, trusted=trusted)


@pytest.mark.parametrize(
    ("changes", "sentence"),
    [
        ({"keep": {"PK": "oldPK"}}, "add keep: {PK: oldPK, SK: oldSK}"),
        ({"keep": {"PK": "SK", "SK": "oldSK"}}, "under other names"),
        ({"keep": "PK"}, "must keep the source's key"),
        ({"keep": {"PK": ["old"], "SK": "oldSK"}}, "must keep the source's key"),
        ({"keep": {"PK": 1, "SK": "oldSK"}}, "must keep the source's key"),
        ({"reads": None}, "must have reads"),
        ({"inverse": "g.py:backward"}, "must be in one file"),
        ({"inverse": "f.py"}, "inverse must be a file and a function"),
        ({"transform": "f.py:away"}, "The file 'f.py' has no function 'away'"),
        ({"kep": {}}, "unknown 'kep'; did you mean keep?"),
    ],
)
def test_what_is_wrong_with_a_template_of_functions(changes, sentence):
    with pytest.raises(CannotStart) as refused:
        loaded(**changes)
    assert sentence in str(refused.value)


def test_a_file_that_is_no_python_is_told_without_its_text():
    with pytest.raises(CannotStart, match=r"'f.py' cannot be read as Python: SyntaxError\."):
        loaded("def forward(:")


def test_a_file_that_ends_the_process_is_told_as_any_that_cannot_be_read():
    with pytest.raises(CannotStart, match=r"'f.py' cannot be read as Python: SystemExit\."):
        loaded("raise SystemExit(0)")


def test_whose_an_item_is_does_not_depend_on_the_order_in_which_the_template_keeps():
    """Owners are compared as they come: by another order each would be somebody else's."""
    transform = loaded(keep={"SK": "oldSK", "PK": "oldPK"})
    owner = transform.owner_of(transform.forward(ITEM))
    assert list(owner.items()) == list(transform.source.of(ITEM).items())


@pytest.mark.parametrize(
    ("body", "sentence"),
    [
        ("return {**item, 'PK': item['none']}", "forward raised KeyError"),
        ("raise ValueError(item)", "forward raised ValueError"),
        ("return {'PK': 'x'}", "forward returned no item of typed values"),
        ("return {**item, 'PK': {'S': 5}}", "forward returned no item of typed values"),
        ("return {**item, 'x': {'L': [{'S': b'x'}]}}", "returned no item of typed values"),
        ("return {**item, 'x': {'N': 'one'}}", "forward returned no item of typed values"),
        ("return {**item, 'x': {'NS': []}}", "forward returned no item of typed values"),
        ("return {**item, 1: {'S': 'x'}}", "forward returned no item of typed values"),
        ("raise SystemExit(0)", "forward raised SystemExit"),
        ("return {**item, 'PK': {'N': '1'}}", "makes no 'PK' of type S"),
        ("return {**item, 'PK': {'S': ''}}", "'PK' is a key, and would be empty"),
        ("return {**item, 'n': {'N': '2'}}", "the attributes 'n' do not come back by the inverse"),
    ],
)
def test_what_functions_do_wrong_makes_an_item_unmappable(body, sentence):
    transform = loaded(CODE + f"\ndef forward(item):\n    {body}\n")
    with pytest.raises(Unmappable) as refused:
        transform.forward(ITEM)
    assert sentence in str(refused.value)


@pytest.mark.parametrize(
    ("body", "sentence"),
    [
        ("seen.append(1); return {**item, 'PK': {'S': str(len(seen))}}", "makes different items"),
        ("item['m']['M']['x'] = {'S': 'y'}; return {**item}", "changes the item that it is given"),
        ("return {**item, 'PK': item.get('n', {'S': 'x'})}", "of more attributes than reads says"),
    ],
)
def test_functions_that_are_not_pure_are_found_by_a_sample(body, sentence):
    transform = loaded(CODE + f"\nseen = []\ndef forward(item):\n    {body}\n")
    wrong = tried(transform, [{**ITEM, "m": {"M": {}}, "n": {"S": "7"}}])
    assert any(sentence in one for one in wrong)


def test_a_sample_finds_nothing_wrong_with_rules():
    assert tried(load(ORDERS, keys(), keys()), [ITEM]) == []


def test_a_template_is_read_from_json_and_yaml(tmp_path: Path):
    (tmp_path / "t.json").write_text(json.dumps(ORDERS))
    (tmp_path / "t.yaml").write_text("items: [{set: {PK: 2026-11-22}}]")
    assert read(tmp_path / "t.json") == (ORDERS, "")
    with pytest.raises(CannotStart, match="it is not YAML that JSON can hold"):
        read(tmp_path / "t.yaml")


def test_a_tab_in_yaml_is_refused_with_its_line(tmp_path: Path):
    (tmp_path / "t.yaml").write_text("items:\n\t- set: {PK: a}\n")
    with pytest.raises(CannotStart, match="line 2 has a tab where YAML expects spaces: indent"):
        read(tmp_path / "t.yaml")


def test_the_file_of_functions_lies_beside_the_template(tmp_path: Path):
    (tmp_path / "f.py").write_text(CODE)
    (tmp_path / "t.yml").write_text("transform: f.py:forward")
    assert read(tmp_path / "t.yml")[1] == CODE
    (tmp_path / "t.yml").write_text("transform: ../f.py:forward")
    with pytest.raises(CannotStart, match="must be in the folder of the template"):
        read(tmp_path / "t.yml")


NO_TEMPLATES = [
    *("- a", "{", "items: [{set: {No: x}}]", "1: x", "!!python/object:os.system {}", "a: &x [*x]"),
    *("a: .nan", "a: 2026-11-22"),
]


@pytest.mark.parametrize("text", NO_TEMPLATES)
def test_what_is_no_template_is_refused(tmp_path: Path, text: str):
    (tmp_path / "t.yaml").write_text(text)
    with pytest.raises(CannotStart, match="is not a template"):
        read(tmp_path / "t.yaml")
    with pytest.raises(CannotStart, match="cannot be read"):
        read(tmp_path / "none.yaml")
