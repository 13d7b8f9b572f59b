"""What an item may be: whatever cannot be read back is refused, alone, before it is written."""

from typing import Any

import pytest
from keyhop.errors import CannotStart

from testing.databases import Database
from tests.integration.sharding.single import Place, index

LONE = "\ud800"
"""Half of a surrogate pair, which no UTF-8 has: a text of Python, and of no service."""


def nested(levels: int) -> Any:
    """A text within so many lists."""
    value: Any = "x"
    for _ in range(levels):
        value = [value]
    return value


ITSELF: list[Any] = []
ITSELF.append(ITSELF)
NO_ITEMS: list[Any] = [
    {"path": LONE, "at": "1"},
    {"path": "/f", "at": f"1{LONE}"},
    {"path": "/f", "at": "1", "v": LONE},
    {"path": "/f", "at": "1", "v": {"deep": [{LONE}]}},
    {"path": "/f", "at": "1", "v": {LONE: 1}},
    {"path": "/f", "at": "1", LONE: 1},
    {"path": "/f", "at": "1", 5: 1},
    {"path": "/f", "at": "1", "v": {None: 1}},
    {"path": "/f", "at": "1", "v": nested(330)},
    {"path": "/f", "at": "1", "v": nested(5_000)},
    {"path": "/f", "at": "1", "v": ITSELF},
    {"path": bytearray(b"/f"), "at": "1"},
    {"path": "/f", "at": bytearray(b"1")},
    {"path": "/f", "at": "1", "v": 0.5},
    {"path": "/f", "at": "1", "v": object()},
    {"path": "/f"},
    "no item",
    None,
]


@pytest.mark.parametrize("shards", [1, 3])
def test_each_item_of_a_batch_has_its_own_result(place: Place, shards: int) -> None:
    """More than one request's items come before the bad ones, and more behind them."""
    table = place.table()
    place.register("/f", shards)
    good = [{"path": "/f", "at": f"{n:03}"} for n in range(60)]
    result = table.batch_write([*good[:30], *NO_ITEMS, *good[30:]])
    assert [at for at, _, _ in result.failed] == [*range(30, 30 + len(NO_ITEMS))]
    assert [item for _, item, _ in result.failed] == NO_ITEMS
    assert result.written == 60
    assert [item["at"] for item in table.query("/f", consistent=True)] == [
        item["at"] for item in good
    ]


@pytest.mark.parametrize("item", NO_ITEMS, ids=range(len(NO_ITEMS)))
def test_what_cannot_be_read_back_is_not_written(place: Place, item: Any) -> None:
    table = place.table()
    with pytest.raises((CannotStart, TypeError)):
        table.put_item(Item=item)
    assert table.usage.write_units == 0


def test_an_update_is_held_to_the_same(place: Place) -> None:
    table = place.table()
    key = {"path": "/f", "at": "1"}
    for wrong in (LONE, nested(330)):
        with pytest.raises(CannotStart):
            table.update_item(
                Key=key,
                UpdateExpression="SET v = :v",
                ExpressionAttributeValues={":v": wrong},
            )
    with pytest.raises(CannotStart):
        table.update_item(
            Key=key,
            UpdateExpression="SET #n = :v",
            ExpressionAttributeNames={"#n": LONE},
            ExpressionAttributeValues={":v": 1},
        )
    for ask in (
        lambda: table.get_item(Key={"path": "/f", "at": LONE}),
        lambda: list(table.query(LONE)),
        lambda: list(table.query("/f", between=(LONE, None))),
    ):
        with pytest.raises(CannotStart):
            ask()
    assert list(table.query("/f", consistent=True)) == []


def test_as_many_levels_as_the_service_takes_are_written(place: Place) -> None:
    """AWS documentation: 32; the text within is one of them."""
    table = place.table()
    item = {"path": "/f", "at": "1", "v": nested(31)}
    table.put_item(Item=item)
    assert list(table.query("/f")) == [item]
    with pytest.raises(CannotStart, match="32 levels"):
        table.put_item(Item={**item, "v": nested(32)})


def test_a_bytearray_is_bytes_like_any_other(dynamodb: Database, table_name: str) -> None:
    place = Place(dynamodb, table_name, "B", "B")
    table = place.table()
    items = [{"path": bytearray(b"\x00f"), "at": bytearray([n]), "v": n} for n in range(30)]
    result = table.batch_write(items)
    assert (result.written, result.failed) == (30, [])
    table.put_item(Item={"path": bytearray(b"\x00f"), "at": bytearray([30]), "v": 30})
    found = list(table.query(bytearray(b"\x00f"), consistent=True))
    assert [item["v"] for item in found] == [*range(31)]


def test_an_attribute_called_as_a_sentinels_marker_is_the_users(place: Place) -> None:
    """A sharded table has no key index, so nothing in it is a sentinel."""
    table = place.table()
    items = [{"path": "/f", "at": at, "keyhop": 1} for at in ("!keyhop", "a", "b")]
    assert table.batch_write(items).written == 3
    table.put_item(Item={**items[1], "keyhop": 7})
    for consistent in (False, True):
        found = list(table.query("/f", consistent=consistent))
        assert [(item["at"], item["keyhop"]) for item in found] == [
            ("!keyhop", 1),
            ("a", 7),
            ("b", 1),
        ]


def test_a_table_with_a_key_index_is_refused_and_no_other_index_is(
    dynamodb: Database, table_name: str
) -> None:
    """Its sentinels would be read and moved like items."""

    def place(name: str, index_name: str) -> Place:
        return Place(dynamodb, name, **index(index_name, "path", "keyhop", keyhop="N"))

    item = {"path": "/f", "at": "a"}
    with pytest.raises(CannotStart, match=r"has a key index.*remove the index first"):
        place(table_name, "keyhop-keys").table().put_item(Item=item)
    place(f"{table_name}-own", "of-my-own").table().put_item(Item=item)
