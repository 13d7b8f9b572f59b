"""keyhop.rekey.template: templates map items to the destination and back."""

import hashlib

import pytest
from keyhop.errors import CannotStart
from keyhop.rekey.template.load import load
from keyhop.template import Unmappable, filter_of, parsed

from tests.unit.rekey.templates import ORDER, ORDERS, keys


def test_the_example_template_maps_an_item_and_back():
    transform = load(ORDERS, keys(), keys())
    image = transform.forward(ORDER)
    assert image == {
        "PK": {"S": "TENANT#t1#11"},
        "SK": {"S": "ORDER#2026-11#o17"},
        "Type": {"S": "order"},
        "oldPK": ORDER["PK"],
        "oldSK": ORDER["SK"],
        **{name: ORDER[name] for name in ("tenantId", "lines", "tags")},
    }
    assert transform.back(image) == ORDER
    assert transform.kind == "recoverable"
    assert transform.owner_attributes == ("oldPK", "oldSK")
    assert transform.owner_of(image) == {"PK": ORDER["PK"], "SK": ORDER["SK"]}
    reverse = transform.reverse
    assert reverse.owner_attributes == ("tenantId",)
    assert reverse.forward(image) == ORDER
    assert reverse.owner_of(ORDER) == transform.place_of(ORDER)


def test_a_template_that_loses_a_key_is_refused_with_the_keep_that_it_needs():
    rule = {**ORDERS["items"][0], "keep": {"SK": "oldSK"}}
    with pytest.raises(CannotStart, match=r"loses 'userId' of 'PK'.* keep: {PK: oldPK}"):
        load({"items": [rule]}, keys(), keys())


def test_an_item_without_an_attribute_is_unmappable_and_the_error_has_no_values():
    item = {name: value for name, value in ORDER.items() if name != "tenantId"}
    with pytest.raises(Unmappable, match="'tenantId' is missing") as refused:
        load(ORDERS, keys(), keys()).forward(item)
    assert "u1" not in str(refused.value)


def transform_of_two_kinds(**more):
    """Return a transform of two rules with similar keys, which set an attribute differently."""
    to = {"PK": "{PK}", "SK": "{id}"}
    users = {"name": "user", "match": {"SK": "USER#{id}"}, "set": {**to, "Type": "user"}}
    groups = {"name": "group", "match": {"SK": "GROUP#{id}"}, "set": {**to, "Type": "group"}}
    return load({"items": [users, groups], **more}, keys(), keys())


@pytest.mark.parametrize("kind", ["USER", "GROUP"])
def test_an_attribute_distinguishes_rules_with_similar_keys_and_identifies_the_owner(kind):
    transform = transform_of_two_kinds()
    item = {"PK": {"S": "p"}, "SK": {"S": f"{kind}#1"}}
    image = transform.forward(item)
    assert image == {"PK": {"S": "p"}, "SK": {"S": "1"}, "Type": {"S": kind.lower()}}
    assert transform.back(image) == item
    assert (transform.kind, transform.owner_attributes) == ("recoverable", ("Type",))
    assert transform.owner_of(image) == item
    with pytest.raises(Unmappable, match="no rule of the template makes such an item"):
        transform.back({**image, "Type": {"S": "other"}})


def test_the_reverse_of_a_match_by_an_attribute_is_recoverable():
    """A skipped item of the source may have the key to which another item is mapped back."""
    rule = {"match": {"Type": "user"}, "set": {"PK": "{PK}", "SK": "{SK}"}}
    transform = load({"items": [rule, {"otherwise": "skip"}]}, keys(), keys())
    item = {"PK": {"S": "p"}, "SK": {"S": "s"}, "Type": {"S": "user"}}
    assert transform.forward(item) == item
    assert transform.forward({**item, "Type": {"S": "group"}}) is None
    assert transform.kind == "bijective"
    assert transform.reverse.owner_attributes == ("Type",)
    assert transform.reverse.owner_of({**item, "Type": {"S": "group"}}) is None
    with pytest.raises(Unmappable, match="are not as the template makes them"):
        transform.back({**item, "Type": {"S": "group"}})


def test_a_changed_attribute_is_mapped_back_unless_the_template_sets_it():
    transform = load(ORDERS, keys(), keys())
    image = transform.forward(ORDER)
    new = {"note": {"S": "new"}, "lines": {"L": []}}
    assert transform.back({**image, **new}) == {**ORDER, **new}
    with pytest.raises(Unmappable, match="the attributes 'Type' are not as the template makes"):
        transform.back({**image, "Type": {"S": "ORDER"}})
    with pytest.raises(Unmappable, match="'oldPK' is missing; it keeps 'PK'"):
        transform.back({name: value for name, value in image.items() if name != "oldPK"})
    assert transform.owner_of({**image, "Type": {"S": "ORDER"}}) == transform.source.of(ORDER)


def test_an_attribute_that_equals_a_part_of_the_key_identifies_the_owner_without_a_keep():
    rule = {
        "match": {"PK": "U#{user}", "SK": "ORDER#{id}", "orderId": "{id}", "user": "{user}"},
        "set": {"PK": "ALL", "SK": "{at|date:%Y}"},
    }
    transform = load({"items": [rule]}, keys(), keys())
    rest = {"orderId": {"S": "7"}, "user": {"S": "ana"}, "at": {"S": "2026-11-22"}}
    item = {"PK": {"S": "U#ana"}, "SK": {"S": "ORDER#7"}, **rest}
    image = transform.forward(item)
    assert image == {"PK": {"S": "ALL"}, "SK": {"S": "2026"}, **rest}
    assert transform.owner_attributes == ("user", "orderId")
    assert transform.back(image) == item
    with pytest.raises(Unmappable, match="no rule of the template matches it"):
        transform.forward({**item, "orderId": {"S": "8"}})


def there_and_back(rule, item):
    transform = load({"items": [rule]}, keys(), keys())
    image = transform.forward(item)
    assert transform.back(image) == item
    return image


def test_a_variable_may_be_written_to_a_new_attribute_of_its_name():
    to = {"PK": "{PK}", "SK": "O#{orderId}", "orderId": "{orderId}"}
    rule = {"match": {"SK": "ORDER#{orderId}"}, "set": to}
    image = there_and_back(rule, {"PK": {"S": "p"}, "SK": {"S": "ORDER#7"}})
    assert image == {"PK": {"S": "p"}, "SK": {"S": "O#7"}, "orderId": {"S": "7"}}


def test_a_separator_of_two_characters_ends_a_field_at_its_first_occurrence():
    item = {"PK": {"S": "x#y"}, "SK": {"S": "a##b"}}
    assert there_and_back({"set": {"PK": "T", "SK": "{PK}##{SK}"}}, item)["SK"]["S"] == "x#y##a##b"


def test_the_type_or_the_value_of_an_attribute_may_distinguish_rules():
    rules = [
        {"name": f"{kind}", "match": {"kind": kind}, "set": {"PK": f"K{n}#{{PK}}", "SK": "{SK}"}}
        for n, kind in enumerate(["a", 1, 2, True, None])
    ]
    transform = load({"items": rules}, keys(), keys())
    kinds = [{"S": "a"}, {"N": "1"}, {"N": "2.0"}, {"BOOL": True}, {"NULL": True}]
    for n, kind in enumerate(kinds):
        item = {"PK": {"S": "p"}, "SK": {"S": "s"}, "kind": kind}
        assert transform.forward(item)["PK"] == {"S": f"K{n}#p"}


def test_a_number_in_a_text_matches_only_in_its_canonical_form():
    rule = {"match": {"SK": "ORDER#{n:N}"}, "set": {"PK": "{PK}", "SK": "O#{n|pad:3}"}}
    transform = load({"items": [rule, {"otherwise": "skip"}]}, keys(), keys())
    images = {
        text: transform.forward({"PK": {"S": "p"}, "SK": {"S": f"ORDER#{text}"}})
        for text in ("0", "17", "017", "x", "1.0")
    }
    assert {text: image and image["SK"]["S"] for text, image in images.items()} == {
        **{"0": "O#000", "17": "O#017"},
        **dict.fromkeys(["017", "x", "1.0"]),
    }


@pytest.mark.parametrize(
    ("number", "filtered", "date"),
    [
        ("-1", "date:%Y-%m-%d:ms", "1969-12-31"),
        ("-0.5", "date:%Y-%m-%d", "1969-12-31"),
        ("-86400000", "date:%Y-%m-%d:ms", "1969-12-31"),
        ("0", "date:%Y-%m-%d:ms", "1970-01-01"),
        ("999.99999999999999999999999999999999999", "date:%S:ms", "00"),
        ("99999999999", "date:%Y-%m-%d", "5138-11-16"),
        ("100000000000", "date:%Y-%m-%d", "1973-03-03"),
        ("-100000000000", "date:%Y-%m-%d", "1966-10-31"),
        ("100000000000", "date:%Y-%m-%d:s", "5138-11-16"),
    ],
)
def test_the_date_of_a_number_rounds_down_to_the_second(
    number: str, filtered: str, date: str
) -> None:
    assert filter_of(*filtered.split(":", 1)).apply({"N": number}) == {"S": date}


@pytest.mark.parametrize(
    ("number", "digits"), [("100", "100"), ("1E+2", "100"), ("1200", "1200"), ("0.10", "0.1")]
)
def test_the_hash_of_a_number_uses_its_digits(number: str, digits: str) -> None:
    """The digits include the zeros at the end, so that other programs can compute the hash."""
    md5 = hashlib.md5(digits.encode(), usedforsecurity=False).hexdigest()
    assert filter_of("hash", "md5").apply({"N": number}) == {"S": md5}
    sha = hashlib.sha256(f"N{len(digits)}:{digits}".encode()).digest()
    assert filter_of("shard", "16").apply({"N": number}) == {"N": str(sha[7] % 16)}


@pytest.mark.parametrize(
    ("written", "means"),
    [
        ("{region ? none}", "{region?none}"),
        ("{ region ?none }", "{region?none}"),
        ("{ region | upper ? none at all }", "{region|upper?none at all}"),
        ("{n : N | pad : 5 ? 0}", "{n:N|pad:5?0}"),
        ("{ address.city }", "{address.city}"),
        ("{at:day}", "{at|date:%Y-%m-%d}"),
        ("{at : hour | first : 4 ? none}", "{at|date:%Y-%m-%dT%H|first:4?none}"),
        ("{city:upper}", "{city|upper}"),
        ("{hash( id ) % 4|pad:2}", "{id|shard:4|pad:2}"),
    ],
)
def test_spaces_have_no_meaning_and_short_forms_replace_filters(written: str, means: str) -> None:
    assert parsed(written) == parsed(means)


def test_a_space_before_the_default_leaves_an_item_its_own_value() -> None:
    """The grammar in the documentation writes a default with spaces."""
    rule = {"set": {"PK": "T#{region ? none}", "SK": "{PK}#{SK}"}, "keep": {"PK": "p", "SK": "s"}}
    transform = load({"items": [rule]}, keys(), keys())
    item = {"PK": {"S": "p"}, "SK": {"S": "s"}}
    regions = [transform.forward({**item, **more}) for more in ({"region": {"S": "eu"}}, {})]
    assert [image["PK"]["S"] for image in regions] == ["T#eu", "T#none"]


@pytest.mark.parametrize("written", ["{address .city}", "{address. city}", "{lines [0]}", "{ }"])
def test_a_field_with_spaces_that_would_name_another_attribute_is_refused(written: str) -> None:
    with pytest.raises(ValueError, match=r"space beside|does not begin with the name"):
        parsed(written)
