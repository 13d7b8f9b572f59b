"""Check templates: how their form is recognized, their checks, and that rendering is repeatable."""

import json
from decimal import Decimal

import pytest
from hypothesis import given
from hypothesis import strategies as st
from keyhop.dynamodb.schema import KeyAttribute, KeySpace
from keyhop.dynamodb.values import item_json, same, same_item, size_of
from keyhop.each.template import NotRendered, Template, Variables, template_json
from keyhop.errors import CannotStart

STARTED = "2026-11-22T15:04:40+00:00"


def space(partition: str = "S", sort: str | None = "S") -> KeySpace:
    return KeySpace((KeyAttribute("pk", partition),), sort and KeyAttribute("sk", sort))


def template(item, partition: str = "S", sort: str | None = "S", **types: str) -> Template:
    keys = space(partition, sort)
    variables = Variables(keys.partition[0], "run-7", STARTED)
    return Template.of_item(template_json(item), keys, {"sk": sort, **types}, variables)


def rendered(item, key=None, first=None, partition: str = "S", **types: str):
    row = {
        "pk": key or {"S": "k1"},
        **({} if first is None else {"first": {"S": json.dumps(first)}}),
    }
    return template(item, partition, **types).render(row)


def refusal(item, **more) -> str:
    with pytest.raises(CannotStart) as error:
        template(item, **more)
    return str(error.value)


def test_plain_json_and_dynamodb_json_make_the_same_item() -> None:
    plain = {"sk": "#feature", "on": True, "n": 1.5, "none": None, "m": {"l": [1, "a"]}}
    typed = {
        "sk": {"S": "#feature"},
        "on": {"BOOL": True},
        "n": {"N": "1.5"},
        "none": {"NULL": True},
        "m": {"M": {"l": {"L": [{"N": "1"}, {"S": "a"}]}}},
    }
    assert rendered(plain) == rendered(typed) == {"pk": {"S": "k1"}, **typed}


def test_a_number_is_kept_exactly() -> None:
    digits = "12345678901234567890.123456789012345678"
    assert rendered({"sk": "a", "n": Decimal(digits)})["n"] == {"N": digits}
    assert rendered({"sk": {"S": "a"}, "n": {"N": digits}})["n"] == {"N": digits}
    assert "number" in refusal({"sk": {"S": "a"}, "n": {"N": digits + "9"}})
    assert "number" in refusal({"sk": "a", "n": float("nan")})


def test_a_map_that_looks_typed_among_plain_values_is_refused() -> None:
    assert "plain JSON" in refusal({"sk": "a", "config": {"S": "x"}})


def test_variables() -> None:
    item = rendered(
        {
            "sk": "#f",
            "text": "k=${key} run=${run} $${key} $5",
            "now": "${now}",
            "epoch": "${now:epoch}",
            "name": "${first.name}",
            "greeting": ["hi ${first.name}"],
        },
        first={"name": {"S": "Ann"}},
    )
    assert item["text"] == {"S": "k=k1 run=run-7 ${key} $5"}
    assert item["now"] == {"S": STARTED}
    assert item["epoch"] == {"N": "1795359880"}
    assert item["name"] == {"S": "Ann"}
    assert item["greeting"] == {"L": [{"S": "hi Ann"}]}


@pytest.mark.parametrize(
    ("key", "text"),
    [({"S": "a"}, "a"), ({"N": "1.5"}, "1.5"), ({"B": b"\x00\xff"}, "AP8=")],
)
def test_a_key_alone_keeps_its_type_and_in_a_text_becomes_text(key, text: str) -> None:
    (type_,) = key
    item = rendered({"sk": "a", "alone": "${key}", "within": "<${key}>"}, key, partition=type_)
    assert item["alone"] == key
    assert item["within"] == {"S": f"<{text}>"}
    typed = {"sk": {"S": "a"}, "as_text": {"S": "${key}"}, "as_it_is": {type_: "${key}"}}
    item = rendered(typed, key, partition=type_)
    assert item["as_text"] == {"S": text}
    assert item["as_it_is"] == key


def test_first_alone_keeps_its_type_and_in_a_typed_value_has_that_type() -> None:
    tags = {"L": [{"S": "x"}]}
    assert rendered({"sk": "a", "tags": "${first.tags}"}, first={"tags": tags})["tags"] == tags
    typed = {"sk": {"S": "a"}, "n": {"N": "${first.n}"}}
    assert rendered(typed, first={"n": {"N": "7"}})["n"] == {"N": "7"}
    with pytest.raises(NotRendered, match="not of type N"):
        rendered(typed, first={"n": {"S": "7"}})
    with pytest.raises(NotRendered, match="cannot be a part of a text"):
        rendered({"sk": "a", "t": "tags ${first.tags}"}, first={"tags": tags})


@pytest.mark.parametrize("first", [None, {}, {"other": {"S": "x"}}])
def test_a_row_without_the_first_items_attribute_fails(first) -> None:
    with pytest.raises(NotRendered, match="has no 'name'"):
        rendered({"sk": "a", "name": "${first.name}"}, first=first)


def test_the_names_of_first_are_collected() -> None:
    variables = Variables(KeyAttribute("pk", "S"), "r", STARTED)
    item = template_json({"sk": "a", "x": {"y": ["${first.n}", "${first.m o} ${key}"]}})
    Template.of_item(item, space(), {}, variables)
    assert variables.first == {"n", "m o"}


@pytest.mark.parametrize(
    ("item", "message"),
    [
        ({"pk": "x", "sk": "a"}, "leave it out"),
        ({"other": "a"}, "the table's sort key"),
        ({"sk": 1}, "key of type S"),
        ({"sk": ""}, "must not be empty"),
        ({"sk": "x" * 1025}, "1,024 bytes"),
        ({"sk": "a", "by_day": 5}, "key of type S"),
        ({"sk": "a", "by_day": ""}, "must not be empty"),
        ({"sk": "a", "keyhop": 1}, "sentinels"),
        ({"sk": "a", "x": "${kee}"}, "no variable"),
        ({"sk": "a", "x": "${"}, "not closed"),
        ({"sk": "a", "x": "${first.}"}, "no variable"),
        ({"sk": "a", "${key}": "x"}, "only values"),
        ({"sk": "a", "x": {"${key}": 1}}, "only values"),
        ({"sk": "a", "": 1}, "must not be empty"),
        ({"sk": "a", "x": "x" * 410_000}, "bytes"),
        ({"sk": {"S": "a"}, "x": {"N": "${key}"}}, "type S, not N"),
        ({"sk": {"S": "a"}, "x": {"N": "1_0"}}, "number"),
        ({"sk": {"S": "a"}, "x": {"N": "x${now:epoch}"}}, "number"),
        ({"sk": {"S": "a"}, "x": {"B": "?"}}, "wrong"),
        ({"sk": {"S": "a"}, "x": {"B": "a${key}"}}, "one variable alone"),
        ({"sk": {"S": "a"}, "x": {"SS": []}}, "must not be empty"),
        ({"sk": {"S": "a"}, "x": {"NS": ["1", "1.0"]}}, "must differ"),
        ({"sk": {"S": "a"}, "x": {"BOOL": 1}}, "not a value of type BOOL"),
        ({"sk": {"S": "a"}, "x": {"L": {"S": "a"}}}, "not a value of type L"),
        ({"sk": {"S": "a"}, "x": {"L": ["a"]}}, "not a typed value"),
        ({"sk": {"S": "a"}, "x": {"L": [{"T": "a"}]}}, "not a type"),
        ({"sk": "\ud800"}, "wrong"),
        ([], "JSON object"),
    ],
)
def test_a_template_that_is_wrong_for_every_row_is_refused(item, message: str) -> None:
    assert message in refusal(item, by_day="S")


def test_a_table_without_a_sort_key_takes_no_item() -> None:
    assert "its own partition key" in refusal({"a": 1}, sort=None)


def test_a_template_that_is_too_deep_is_refused() -> None:
    deep: object = "x"
    for _ in range(40):
        deep = [deep]
    assert "32 levels" in refusal({"sk": "a", "x": deep})


def test_an_invalid_item_fails_without_showing_its_value() -> None:
    secret = "s" * 1200
    with pytest.raises(NotRendered) as error:
        rendered({"sk": "#${key}"}, {"S": secret})
    assert "sort key" in str(error.value)
    assert "sss" not in str(error.value)
    with pytest.raises(NotRendered, match="must differ"):
        rendered({"sk": {"S": "a"}, "x": {"SS": ["${key}", "k1"]}})
    with pytest.raises(NotRendered, match="more than"):
        rendered({"sk": "a", "x": "${first.x}"}, first={"x": {"S": "x" * 410_000}})


def test_a_named_item_is_named_by_its_sort_key() -> None:
    def key(item, sort: str | None = "S"):
        keys = space("S", sort)
        variables = Variables(keys.partition[0], "r", STARTED)
        return Template.of_key(template_json(item), keys, variables).render({"pk": {"S": "k"}})

    assert key({"sk": "PROFILE#${key}"}) == {"pk": {"S": "k"}, "sk": {"S": "PROFILE#k"}}
    assert key({"sk": "5"}, "N") == {"pk": {"S": "k"}, "sk": {"N": "5"}}
    assert key({}, None) == {"pk": {"S": "k"}}
    for wrong, sort in [({}, "S"), ({"sk": "a", "b": 1}, "S"), ({"sk": "a"}, None)]:
        with pytest.raises(CannotStart):
            key(wrong, sort)
    with pytest.raises(
        CannotStart, match="not named: give the value of its sort key 'sk' in item="
    ):
        key({})


TEXTS = st.text(st.characters(exclude_categories=["Cs"]), max_size=8)
PLAIN = st.recursive(
    st.none() | st.booleans() | st.integers(-(10**9), 10**9) | TEXTS,
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(TEXTS.filter(lambda n: n and "${" not in n), inner, max_size=3)
    ),
    max_leaves=6,
)


def escaped(value):
    if isinstance(value, str):
        return value.replace("${", "$${")
    if isinstance(value, list):
        return [escaped(element) for element in value]
    return {n: escaped(v) for n, v in value.items()} if isinstance(value, dict) else value


@given(PLAIN)
def test_a_template_without_variables_is_put_unchanged(value) -> None:
    """The JSON of a plan, and a second rendering, change nothing."""
    if isinstance(value, dict) and set(value) & {"S", "N", "B", "L", "M", "SS", "NS", "BS"}:
        return
    stored = json.loads(json.dumps(template_json({"sk": "a", "x": escaped(value)})))
    variables = Variables(KeyAttribute("pk", "S"), "r", STARTED)
    parsed_template = Template.of_item(stored, space(), {"sk": "S"}, variables)
    row = {"pk": {"S": "k"}}
    expected_value = item_json({"pk": "k", "sk": "a", "x": [value]})["x"]["L"][0]
    assert parsed_template.render(row)["x"] == expected_value
    assert same_item(parsed_template.render(row), parsed_template.render(row))


@given(TEXTS, TEXTS, TEXTS)
def test_a_key_replaces_its_variable(prefix: str, key: str, suffix: str) -> None:
    text = f"{escaped(prefix)}\u00a7${{key}}\u00a7{escaped(suffix)}"
    value = rendered({"sk": "a", "x": text}, {"S": key})["x"]
    assert value == {"S": f"{prefix}\u00a7{key}\u00a7{suffix}"}


@given(st.decimals(allow_nan=False, allow_infinity=False, places=5, min_value=-1e9, max_value=1e9))
def test_numbers_are_equal_by_value(number: Decimal) -> None:
    forms = [str(number), f"{number:E}", f"{number}0"]
    for form in forms:
        assert same({"N": forms[0]}, {"N": form})
        assert same(
            {"L": [{"M": {"n": {"NS": [form]}}}]}, {"L": [{"M": {"n": {"NS": [forms[0]]}}}]}
        )
    assert not same({"N": forms[0]}, {"S": forms[0]})


def test_equality_of_items() -> None:
    assert same({"SS": ["a", "b"]}, {"SS": ["b", "a"]})
    assert not same({"L": [{"S": "a"}]}, {"L": [{"S": "a"}, {"S": "b"}]})
    assert not same_item({"a": {"S": "x"}}, {"a": {"S": "x"}, "b": {"S": "y"}})
    assert not same({"M": {"a": {"S": "x"}}}, {"M": {"a": {"S": "y"}}})


def test_sizes_are_the_documented_ones() -> None:
    assert size_of({"ab": {"S": "xyz"}}) == 5
    assert size_of({"n": {"N": "-12.5"}}) == 1 + 2 + 1 + 1
    assert size_of({"m": {"M": {"a": {"BOOL": True}}}}) == 1 + 3 + 1 + 1 + 1
