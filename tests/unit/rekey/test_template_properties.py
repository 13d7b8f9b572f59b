"""Many templates map items of all types to the destination and back, or refuse them."""

import random
from collections import Counter
from decimal import Decimal
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from keyhop.dynamodb.values import canonical, same_item
from keyhop.errors import CannotStart
from keyhop.rekey.template.load import load
from keyhop.rekey.transform import Transform
from keyhop.template import Unmappable

from tests.unit.rekey.templates import keys

Item = dict[str, dict[str, Any]]
SEED = st.integers(0, 2**40)
NAMES = ["a", "b", "n", "Type", "oldPK", "userId"]
TEXTS = [
    "",
    "a",
    "ab",
    "x#",
    "#x",
    "b-",
    "7",
    "007",
    "10",
    "-3",
    "2026-11-22T10:00:00Z",
    "none",
    "ü",
]
NUMBERS = ["0", "7", "10", "-3", "1.5", "100", "38", "1E+30", "123456789012345678", "0.1"]
FIELDS = [
    "{u}", "{u}", "{v}", "{PK}", "{SK}", "{a}", "{b:N}", "{c.x}", "{c.y[0]}", "{n?0}", "{u|pad:3}",
    "{u|upper}", "{b|shard:3|pad:2}", "{u|hash:md5}", "{PK|first:2}", "{n:N|str}", "{SK|num}",
    "{a:S?none}", "{b|mod:3}", "{n:N|pad:2}", "{a|date:%Y}", "{PK|str}", "{u|lower}", "{u|num}",
    "{PK|hash:sha256}",
]  # fmt: skip
MATCHED = [
    "U#{u}", "U#{u}#{v}", "{u}", "{u:N}", "{u}-{v}", "U#{u|pad:2}", "{u}##{v}", "U#{u:N}#{v}", "-",
]  # fmt: skip


def some_value(rng: random.Random, depth: int = 2) -> dict[str, Any]:
    match rng.randrange(14 if depth else 9):
        case 0 | 1 | 2:
            return {"S": rng.choice(TEXTS)}
        case 3 | 4:
            return {"N": rng.choice(NUMBERS)}
        case 5:
            return {"B": rng.randbytes(rng.randrange(3))}
        case 6:
            return {"BOOL": rng.random() < 0.5}
        case 7:
            return {"NULL": True}
        case 8:
            return {"NS": rng.sample(NUMBERS, 2)}
        case 9:
            return {"SS": rng.sample(TEXTS, 2)}
        case 10:
            return {"BS": [b"a", b"b"]}
        case 11:
            return {"L": [some_value(rng, depth - 1) for _ in range(rng.randrange(3))]}
        case _:
            return {"M": {n: some_value(rng, depth - 1) for n in rng.sample("xy", 1)}}


def some_key(rng: random.Random, type_: str, pattern: str) -> dict[str, Any]:
    """Return a key that a pattern of MATCHED usually matches."""
    if type_ == "N":
        return {"N": rng.choice(NUMBERS)}
    if type_ == "B":
        return {"B": rng.randbytes(1 + rng.randrange(3))}
    text = pattern
    for field in ("{u}", "{v}", "{u:N}", "{u|pad:2}"):
        text = text.replace(field, rng.choice([*TEXTS, "08", "12"]))
    return {"S": text or "-"}


def some_item(rng: random.Random, types: str, patterns: list[Any]) -> Item:
    key = [some_key(rng, *arguments) for arguments in zip(types, patterns, strict=True)]
    rest = {
        "a": {"S": rng.choice(TEXTS)},
        "b": {"N": rng.choice(NUMBERS)},
        "n": {"N": rng.choice(["1", "22", "333"])},
        "c": {"M": {"x": {"S": rng.choice(TEXTS)}, "y": {"L": [{"N": rng.choice(NUMBERS)}]}}},
    }
    for name in rng.sample([*rest, *NAMES], rng.choice([0, 0, 1, 3])):
        rest[name] = some_value(rng)
    return {"PK": key[0], "SK": key[1], **rest}


def some_text(rng: random.Random) -> str:
    """Return a text of fields, most of which have a separator between them."""
    text = rng.choice(["", "T#", "U#"]) + rng.choice(FIELDS)
    for _ in range(rng.choice([0, 0, 1, 1, 2])):
        text += rng.choice(["#", "-", "##", "0", ""]) + rng.choice(FIELDS)
    return text


def some_rule(rng: random.Random, name: str, types: str) -> dict[str, Any]:
    match = {n: rng.choice(MATCHED) for n, type_ in zip(("PK", "SK"), types, strict=True)
             if type_ == "S" and rng.random() < 0.8}  # fmt: skip
    if rng.random() < 0.2:
        match["Type"] = rng.choice(MATCHED)
    sets = {"PK": some_text(rng), "SK": some_text(rng)}
    if rng.random() < 0.4:
        sets[rng.choice(NAMES)] = some_text(rng)
    keep = {"PK": "oldPK", "SK": "oldSK", "Type": "oldType"}
    keeps = {name: keep[name] for name in rng.sample(sorted(keep), rng.randrange(4))}
    return {"name": name, "match": match, "set": sets, "keep": keeps}


def some_world(seed: int) -> tuple[Transform, list[Item]]:
    """Return the transform of the next template that can be loaded, and items for it."""
    rng = random.Random(seed)
    while True:
        types = rng.choice(["SS", "SS", "SN", "NS", "SB", "BN"])
        destination_types = rng.choice([types, "SS", "SS", "NS", "SN"])
        rules = [some_rule(rng, name, types) for name in "rs"[: rng.choice([1, 1, 2])]]
        template = {
            "items": [*rules, {"otherwise": rng.choice(["refuse", "refuse", "skip", "copy"])}],
            "separator": rng.choice(["", "", "#"]),
        }
        try:
            transform = load(template, keys(types=types), keys(types=destination_types))
        except CannotStart:
            continue
        patterns = [rules[0]["match"].get(name, "{u}") for name in ("PK", "SK")]
        return transform, [some_item(rng, types, patterns) for _ in range(24)]


def comparable(key: Any) -> Any:
    """Return a key in a form that is the same for all forms of its numbers."""
    return None if key is None else tuple(sorted((n, canonical(v)) for n, v in key.items()))


def only(item: Item, names: Any, more: Any) -> Item:
    return {name: item[name] for name in (*names, *more) if name in item}


def mapped(transform: Transform, items: list[Item]) -> list[tuple[Item, Item]]:
    """Return the items that can be mapped, with their images."""
    pairs = []
    for item in items:
        try:
            image = transform.forward(item)
        except Unmappable:
            continue
        if image is not None:
            pairs.append((item, image))
    return pairs


def checked(transform: Transform, items: list[Item]) -> None:
    """Check the promises of a Transform on items."""
    reverse = transform.reverse
    assert reverse.reverse is transform
    owners: dict[Any, Any] = {}
    for item, image in mapped(transform, items):
        assert same_item(transform.back(image), item)
        assert same_item(reverse.forward(image), item)
        assert same_item(reverse.back(item), image)
        owner = comparable(transform.source.of(item))
        place = comparable(transform.destination.of(image))
        assert comparable(transform.place_of(item)) == place
        part = only(image, transform.destination.all, transform.owner_attributes)
        assert (
            comparable(transform.owner_of(image)) == comparable(transform.owner_of(part)) == owner
        )
        part = only(item, transform.source.all, reverse.owner_attributes)
        assert comparable(reverse.owner_of(item)) == comparable(reverse.owner_of(part)) == place
        assert transform.kind == "recoverable" or owners.setdefault(place, owner) == owner


@given(SEED)
def test_a_mapped_item_comes_back_and_names_its_owner(seed):
    transform, items = some_world(seed)
    checked(transform, items)


@example(36147)  # a kept key that is empty
@given(SEED)
def test_what_the_application_changes_there_travels_back_or_is_refused(seed):
    transform, items = some_world(seed)
    rng = random.Random(seed)
    changed = []
    for _, there in mapped(transform, items):
        item = dict(there)
        for name in rng.sample([*NAMES, "oldSK", "oldType"], 2):
            item.pop(name, None)
            if rng.random() < 0.5:
                item[name] = some_value(rng)
        fit = transform.destination.of(there)
        changed.append({**item, **fit})
    checked(transform.reverse, changed)


def test_the_templates_and_items_of_these_tests_are_of_all_kinds():
    """Otherwise the two tests above would prove nothing."""
    kinds = Counter()
    for seed in range(150):
        transform, items = some_world(seed)
        pairs = mapped(transform, items)
        kinds[transform.kind] += len(pairs)
        kinds["reverse " + transform.reverse.kind] += len(pairs)
        kinds["none"] += not pairs
        kinds["changed"] += sum(item != image for item, image in pairs)
        kinds["refused"] += len(items) - len(pairs)
    assert min(kinds.values()) > 30, kinds
    assert kinds["changed"] > 300, kinds


@pytest.mark.prove
def test_mapped_items_of_many_templates_come_back():
    for seed in range(2_000):
        transform, items = some_world(seed)
        checked(transform, items)


@given(st.integers(-(10**38) + 1, 10**38 - 1), st.integers(-120, 80))
def test_a_whole_number_in_a_text_comes_back_equal_and_another_is_refused(digits, exponent):
    rule = {"match": {}, "set": {"PK": "T#{PK}", "SK": "{SK}"}}
    transform = load({"items": [rule]}, keys(types="NS"), keys())
    number = Decimal(digits).scaleb(exponent)
    item = {"PK": {"N": str(number)}, "SK": {"S": "-"}}
    if number == number.to_integral_value():
        image = transform.forward(item)
        assert "E" not in image["PK"]["S"]
        assert Decimal(transform.back(image)["PK"]["N"]) == number
    else:
        with pytest.raises(Unmappable, match="'PK' is not a whole number"):
            transform.forward(item)
