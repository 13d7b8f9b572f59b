"""Functions in place of rules: only trusted ones are executed, and their results are checked."""

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


def test_functions_map_an_item_and_back_and_the_template_keeps_the_key():
    transform = loaded()
    image = transform.forward(ITEM)
    assert image["PK"] == {"S": "T#t"}
    assert (image["oldPK"], image["oldSK"]) == (ITEM["PK"], ITEM["SK"])
    assert transform.back(image) == ITEM
    assert (transform.kind, transform.owner_attributes) == ("recoverable", ("oldPK", "oldSK"))
    assert transform.reverse.owner_attributes == ("tenant",)
    assert transform.owner_of(image) == {"PK": ITEM["PK"], "SK": ITEM["SK"]}
    assert transform.owner_of({"PK": {"S": "x"}}) is None
    assert transform.reverse.owner_of(ITEM) == transform.place_of(ITEM)
    assert transform.forward({**ITEM, "left": {"BOOL": True}}) is None
    assert tried(transform, [ITEM]) == []


@pytest.mark.parametrize("value", NO_KEYS, ids=range(len(NO_KEYS)))
def test_an_item_that_keeps_an_impossible_key_has_no_owner(value):
    image = {**loaded().forward(ITEM), "oldPK": value}
    assert loaded().owner_of(image) is None
    with pytest.raises(Unmappable, match="hold no such key"):
        loaded().back(image)


@pytest.mark.parametrize("trusted", [None, "", CODE + "#"])
def test_only_trusted_code_is_executed(trusted):
    """A plan in a table may contain any code; if this code were executed, it would end the test."""
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
def test_errors_of_a_template_of_functions(changes, sentence):
    with pytest.raises(CannotStart) as refused:
        loaded(**changes)
    assert sentence in str(refused.value)


def test_the_error_of_a_file_that_is_not_python_has_no_text_of_it():
    with pytest.raises(CannotStart, match=r"'f.py' cannot be read as Python: SyntaxError\."):
        loaded("def forward(:")


def test_a_file_that_ends_the_process_is_reported_as_unreadable():
    with pytest.raises(CannotStart, match=r"'f.py' cannot be read as Python: SystemExit\."):
        loaded("raise SystemExit(0)")


def test_the_owner_of_an_item_does_not_depend_on_the_order_of_keep():
    """Owners are compared with the order of their attributes."""
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
def test_an_error_of_a_function_makes_an_item_unmappable(body, sentence):
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
def test_a_sample_detects_functions_that_are_not_pure(body, sentence):
    transform = loaded(CODE + f"\nseen = []\ndef forward(item):\n    {body}\n")
    errors = tried(transform, [{**ITEM, "m": {"M": {}}, "n": {"S": "7"}}])
    assert any(sentence in error for error in errors)


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
def test_a_file_that_is_not_a_template_is_refused(tmp_path: Path, text: str):
    (tmp_path / "t.yaml").write_text(text)
    with pytest.raises(CannotStart, match="is not a template"):
        read(tmp_path / "t.yaml")
    with pytest.raises(CannotStart, match="cannot be read"):
        read(tmp_path / "none.yaml")
