"""Errors of a template are reported when it is read, and those of an item when it is mapped."""

import re
from typing import Any

import pytest
from keyhop.errors import CannotStart
from keyhop.rekey.template.load import load
from keyhop.template import Unmappable, why_no_key

from tests.unit.rekey.templates import NO_KEYS, keys

SET = {"PK": "T#{PK}", "SK": "{SK}"}


def rule(**parts: Any) -> dict[str, Any]:
    return {"items": [{"name": "r", "set": SET, **parts}]}


def matched(pk: str, sk: str = "{SK}", **parts: Any) -> dict[str, Any]:
    return rule(match={"PK": pk, "SK": sk}, **parts)


def setting(pk: Any, sk: Any = "{SK}", **parts: Any) -> dict[str, Any]:
    return rule(set={"PK": pk, "SK": sk, **parts})


def two(first: dict[str, Any], second: dict[str, Any], **more: Any) -> dict[str, Any]:
    return {"items": [{"name": "one", **first}, {"name": "two", **second}], **more}


ORDER = {"match": {"SK": "ORDER#{id}"}, "set": {"PK": "{PK}", "SK": "O#{id}"}}
LINE = {"match": {"SK": "ORDER#{id}#ITEM#{n}"}, "set": {"PK": "{PK}", "SK": "I#{id}#{n}"}}

WRONG = [
    ({}, "must be an object with the rules in it"),
    ({"items": []}, "has no items: list rules"),
    ({"item": []}, "The template has an unknown 'item'; did you mean items?"),
    (rule(sets={}), "Rule 'r' has an unknown 'sets'; did you mean set?"),
    ({"items": ["x"]}, "Rule number 1 of the template is not an object"),
    ({"items": [{"otherwise": "copy"}, {"set": SET}]}, "otherwise must be the last"),
    ({"items": [{"set": SET}, {"otherwise": "drop"}]}, "otherwise must be refuse, copy or skip"),
    ({**rule(), "separator": "##"}, "separator must be one character"),
    (two({"set": SET, "name": "a"}, {"set": SET, "name": "a"}), "have the same name"),
    (rule(set={"PK": "{PK}"}), "Rule 'r' does not set 'SK', the destination's sort key"),
    (setting("T#{PK|uper}"), "set of 'PK': there is no filter 'uper'; did you mean upper?"),
    (setting("T#{PK|pad}"), "the filter pad takes a whole number above 0, as pad:16"),
    (setting("T#{PK|pad:9999}"), "the filter pad takes 2048 at most"),
    (setting("T#{PK|upper:3}"), "the filter upper takes no argument"),
    (setting("T#{PK|hash:crc}"), "the filter hash takes md5 or sha256"),
    (setting("T#{PK|date:%b}"), "the filter date has no %b; it has %Y"),
    (setting("T#{PK|date:x}"), "the filter date takes a form such as date:%Y-%m"),
    (setting("T#{PK"), "a '{' is not closed"),
    (setting("T#PK}"), "a '}' closes nothing"),
    (setting("T#{}"), "{} does not begin with the name of an attribute"),
    (setting("T#{PK:X}"), "'X' is not a type of a key"),
    (setting("T#{PK:dya}"), "'dya' is not a type of a key: {PK:dya} takes one of S, N, B, year"),
    (setting("T#{hash(PK)}"), "{hash(PK)} is not a hash: write {hash(id)%4}"),
    (setting(""), "it is empty"),
    (setting("T#{PK:N}"), "'PK' is of type S, and not N"),
    (setting("{n:N}#{PK.x}"), "{PK.x} reads a part of a key or a variable"),
    (setting("{PK}", 7), "the key is of type S"),
    (setting("{PK}", "{n:N}"), "{n} is of type N, and the key of type S: write |str"),
    (setting("{PK|str}"), "the filter str of 'PK' cannot take type S"),
    (setting("{PK}{SK}"), "{PK} and {SK} touch: put a separator between them"),
    (setting("{PK|mod:9}{SK}"), "{PK} and {SK} touch"),
    (setting("{n:N}0{SK}"), "the separator after {n} begins with a digit"),
    (setting("{x:B}#{SK}"), "{x} is of type B: it must be the only part, or be hashed"),
    (setting("{PK}#{x?a#b}#{SK}"), "the default of {x} contains its separator"),
    (setting("{PK}#{x|pad:3?7}#{SK}"), "the default of {x} cannot be made by its filters"),
    (setting("{PK}", Type=["x"]), "set of 'Type': it must be a text, a number, true, false or"),
    (setting("{PK}", n=float("inf")), "set of 'n': inf is not a number that DynamoDB keeps"),
    (setting("{PK}", n=10**40 + 1), "set of 'n': 1000.* is not a number that DynamoDB keeps"),
    (setting("{PK}", n=10**5000), "set of 'n': it is not a number that DynamoDB keeps"),
    (rule(match={"n": float("nan")}), "match of 'n': nan is not a number that DynamoDB keeps"),
    (matched("{u|upper}"), "match of 'PK': {u} can have the filters pad, num and str only"),
    (matched("{u.x}"), "{u.x} reads a part of a key or a variable"),
    (matched("U#{SK}", "S#{v}"), "match of 'PK': 'SK' is a key of the source: choose another name"),
    (matched("U#{u:N}", "S#{u}"), "match of 'SK': 'u' has another type"),
    (rule(keep={"PK": "SK"}), "keeps 'PK' as 'SK', which it also sets"),
    (rule(keep={"PK": "old", "SK": "old"}), "keeps two attributes under one name"),
    (rule(keep={"PK": 1}), "keep says under which name 'PK' is kept, not 1"),
    (rule(keep=["PK"]), "Rule 'r': keep must be an object of attributes"),
    (setting("T#{a}"), "Rule 'r' loses 'PK', .* add keep: {PK: oldPK}"),
    (setting("T#{PK|lower}"), "loses 'PK', so"),
    (rule(match={"Type": "{t}"}, set={**SET, "Type": "x"}), "loses 't' of 'Type', .* oldType}"),
    (two(ORDER, LINE), "The rules 'one' and 'two' overlap: .* as separator: '#'"),
    (two({"set": SET, "match": {"SK": "X#{id}"}}, {"set": SET, "match": {"SK": "X#1"}}), "overlap"),
    (two({"set": SET, "match": {"SK": "X#1"}}, {"set": SET, "match": {"SK": "X#{id}"}}), "overlap"),
    (two({**ORDER, "set": SET}, {**LINE, "match": {"SK": "X#{id}"}, "set": SET}), "distinguished"),
]  # fmt: skip


@pytest.mark.parametrize(("template", "sentence"), WRONG, ids=range(len(WRONG)))
def test_the_error_of_a_template_is_one_sentence(template, sentence):
    with pytest.raises(CannotStart) as refused:
        load(template, keys(), keys())
    message = str(refused.value)
    assert re.search(re.sub(r"([{}|?%()\[\]])", r"\\\1", sentence), message), message
    assert message.endswith(".")
    assert message.count(". ") == 0


def test_a_key_of_type_n_takes_numbers():
    template = rule(set={"PK": "{PK}", "SK": "{SK}"})
    with pytest.raises(CannotStart, match=r"{SK} is of type S, and the key of type N: write \|num"):
        load(template, keys(), keys(types="SN"))
    with pytest.raises(CannotStart, match="it makes a text, and the key is of type N"):
        load(setting("{PK}", "{SK}#"), keys(), keys(types="SN"))
    with pytest.raises(CannotStart, match="match of 'SK': it makes a text, and the key is"):
        load(matched("{PK}", "ORDER#{n}"), keys(types="SN"), keys())


def test_only_equal_keys_can_be_copied():
    template = {"items": [{"set": {"PK": "{id}", "SK": "{SK}"}}, {"otherwise": "copy"}]}
    with pytest.raises(
        CannotStart, match="copies items that match no rule, but the keys of the tables differ"
    ):
        load(template, keys("id"), keys())


def test_a_separator_distinguishes_rules():
    transform = load(two(ORDER, LINE, separator="#"), keys(), keys())
    sort_keys = [
        transform.forward({"PK": {"S": "c"}, "SK": {"S": text}})["SK"]["S"]
        for text in ("ORDER#1", "ORDER#1#ITEM#2")
    ]
    assert sort_keys == ["O#1", "I#1#2"]
    with pytest.raises(Unmappable, match="no rule of the template matches it"):
        transform.forward({"PK": {"S": "c"}, "SK": {"S": "ORDER#1#2"}})


ITEM = {"PK": {"S": "secret"}, "SK": {"S": "s"}, "n": {"N": "7"}, "a": {"S": "x#y"}}

UNMAPPABLE = [
    (setting("{PK}#{x}"), {}, "rule 'r': 'x' is missing, and has no default"),
    (setting("{PK}#{m.x[0]}"), {"m": {"M": {}}}, "'m.x[0]' is missing, and has no default"),
    (setting("{a}#{PK}"), {}, "'a' contains its separator"),
    (setting("{a}##{PK}"), {"a": {"S": "x#"}}, "'a' contains its separator"),
    ({**setting("{PK}#{a}"), "separator": "#"}, {}, "'a' contains the separator"),
    (setting("{PK}#{n|pad:2}"), {"n": {"N": "-7"}}, "'n' is negative"),
    (setting("{PK}#{n|pad:2}"), {"n": {"N": "100"}}, "'n' has more than the 2 digits of its pad"),
    (setting("{PK}#{n|pad:2}"), {"n": {"N": "1.5"}}, "'n' is not a whole number"),
    (setting("{PK}#{n|pad:2}"), {"n": {"S": "x"}}, "'n' is not a whole number"),
    (setting("{PK}#{n|mod:7}"), {"n": {"S": "1" * 4301}}, "'n' has more than 4,300 digits"),
    (setting("{PK}#{n}"), {"n": {"N": "1.5"}}, "'n' is not a whole number, which a text needs"),
    (setting("{PK}#{n}"), {"n": {"BOOL": True}}, "'n' is of type BOOL and not a text"),
    (setting("{PK}#{n:N}"), {"n": {"S": "7"}}, "'n' is of type S, and not N"),
    (setting("{PK}#{n|upper}"), {}, "'n' is of type N, and not S"),
    (setting("{PK}#{a}"), {"a": {"S": ""}}, "'a' is empty"),
    (setting("{PK}", "{SK}", a="{a|num}"), {"a": {"S": "x"}}, "'a' is not a number that"),
    (setting("{PK}#{a|date:%Y}"), {"a": {"S": "soon"}}, "'a' is not a date"),
    (setting("{PK}#{n|date:%Y}"), {"n": {"N": "1E+30"}}, "'n' is not a date"),
    (setting("{PK}#{SK}", "{a}"), {"a": {"S": ""}}, "'SK' is a key, and would be"),
    (setting("T#{PK}"), {"PK": {"S": "x" * 2047}}, "'PK' would have 2,049 bytes; the maximum is"),
    (setting("T#{PK}"), {"PK": {"S": "ü" * 1024}}, "'PK' would have 2,050 bytes; the maximum is"),
    (setting("{PK}", "S#{SK}"), {"SK": {"S": "x" * 1023}}, "'SK' would have 1,025 bytes; "),
    (setting("{PK}", "{SK}", n="x"), {}, "the attributes 'n' would not come back as they are"),
    (rule(keep={"SK": "a"}), {}, "the attributes 'a' would not come back"),
    (matched("U#{u}"), {}, "no rule of the template matches it"),
    (matched("U#{u:N}"), {"PK": {"S": "U#" + "1" * 40}}, "'u' is not a number that DynamoDB keeps"),
    (matched("U#{u:N}"), {"PK": {"S": "U#" + "9" * 200}}, "'u' is not a number that DynamoDB"),
]  # fmt: skip


@pytest.mark.parametrize(
    ("template", "changes", "sentence"), UNMAPPABLE, ids=range(len(UNMAPPABLE))
)
def test_the_error_of_an_item_has_names_and_no_values(template, changes, sentence):
    transform = load(template, keys(), keys())
    with pytest.raises(Unmappable) as refused:
        transform.forward({**ITEM, **changes})
    assert sentence in str(refused.value)
    assert not re.search("secret|x#y|soon|xxx|ü", str(refused.value))


def test_longest_keys_are_mappable():
    item = {"PK": {"S": "x" * 2046}, "SK": {"S": "ü" * 512}}
    assert load(setting("T#{PK}"), keys(), keys()).forward(item)["PK"]["S"] == "T#" + "x" * 2046
    item = {"PK": {"B": b"x" * 2048}, "SK": {"B": b"x" * 1024}}
    binary = load(setting("{PK}", "{SK}"), keys(types="BB"), keys(types="BB"))
    assert binary.forward(item) == item
    with pytest.raises(Unmappable, match="'SK' would have 1,025 bytes"):
        binary.forward({**item, "SK": {"B": b"x" * 1025}})


def test_a_text_that_differs_from_the_text_of_its_number_is_unmappable():
    transform = load(setting("{PK}", "{SK|num}"), keys(), keys(types="SN"))
    assert transform.forward({"PK": {"S": "a"}, "SK": {"S": "17"}})["SK"] == {"N": "17"}
    with pytest.raises(Unmappable, match="'SK' would not come back"):
        transform.forward({"PK": {"S": "a"}, "SK": {"S": "017"}})


@pytest.mark.parametrize(("text", "digits"), [("{SK|str}", 40), ("{SK|pad:60}", 60)])
def test_a_text_of_more_digits_than_a_number_has_is_no_items_place(text: str, digits: int):
    """DynamoDB would round the number to the key of another item."""
    transform = load(setting("P#{PK}", text), keys(types="SN"), keys())
    image = {"PK": {"S": "P#p"}, "SK": {"S": "1" * digits}}
    with pytest.raises(Unmappable, match="'SK' is not a number that DynamoDB keeps"):
        transform.back(image)
    assert transform.owner_of(image) is None


def test_a_key_is_a_number_that_dynamodb_keeps():
    assert why_no_key({"N": "1" * 38 + "00"}) == ""
    for number in ("1" * 39, "1E+126", "1E-131"):
        assert why_no_key({"N": number}) == "is not a number that DynamoDB keeps"


@pytest.mark.parametrize("value", NO_KEYS, ids=range(len(NO_KEYS)))
def test_an_item_that_keeps_an_impossible_key_has_no_owner(value):
    template = rule(keep={"PK": "old"}, set={"PK": "T#{a}", "SK": "{SK}"})
    transform = load(template, keys(), keys())
    image = {"PK": {"S": "T#x"}, "SK": {"S": "s"}, "a": {"S": "x"}, "old": {"S": "p"}}
    assert transform.owner_of(image) == {"PK": {"S": "p"}, "SK": {"S": "s"}}
    assert transform.owner_of({**image, "old": value}) is None


@pytest.mark.parametrize("a", [{"S": ""}, {"S": "x" * 2049}, {"N": "5"}, {"NULL": True}])
def test_an_item_whose_new_key_is_impossible_has_no_place(a):
    transform = load(rule(set={"PK": "{a}", "SK": "{PK}#{SK}"}), keys(), keys())
    assert transform.reverse.owner_of({**ITEM, "a": a}) is None


def test_a_default_replaces_a_missing_attribute():
    template = setting("{tenant?none}#{PK}", "{n|pad:3?000}#{SK}")
    image = load(template, keys(), keys()).forward({"PK": {"S": "p"}, "SK": {"S": "s"}})
    assert image == {"PK": {"S": "none#p"}, "SK": {"S": "000#s"}}


def test_braces_and_dollars():
    template = setting("${{{{{PK}}}#${SK}#${{", "{SK}")
    template["items"][0]["keep"] = {}
    image = load(template, keys(), keys()).forward({"PK": {"S": "p"}, "SK": {"S": "s"}})
    assert image["PK"] == {"S": "${{p}#s#${"}


def test_a_match_can_name_an_attribute_with_dots():
    template = rule(match={"a.b": "{ab}"}, set={"PK": "{ab}#{PK}", "SK": "{SK}"})
    item = {"PK": {"S": "p"}, "SK": {"S": "s"}, "a.b": {"S": "x"}}
    assert load(template, keys(), keys()).forward(item)["PK"] == {"S": "x#p"}
    template = {"items": [{"set": {"PK": "x", "SK": "y"}, "keep": {"p{.k": "old"}}]}
    transform = load(template, keys("p{.k", None), keys())
    assert transform.owner_of({"old": {"S": "p"}, "PK": {"S": "x"}, "SK": {"S": "y"}}) == {
        "p{.k": {"S": "p"}
    }
