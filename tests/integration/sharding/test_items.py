"""Valid items. Each item that could not be read back is refused before it is written."""

from typing import Any

import pytest
from keyhop.errors import CannotStart

from testing.databases import Database
from tests.integration.sharding.single import Place, index

LONE = "\ud800"
"""Half of a surrogate pair: valid in a Python text, but not in UTF-8."""


def nested(levels: int) -> Any:
    """Return a text within so many lists."""
    value: Any = "x"
    for _ in range(levels):
        value = [value]
    return value


RECURSIVE: list[Any] = []
RECURSIVE.append(RECURSIVE)
INVALID_ITEMS: list[Any] = [
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
    {"path": "/f", "at": "1", "v": RECURSIVE},
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
    """The valid items before and after the invalid ones need more than one request each."""
    table = place.table()
    place.register("/f", shards)
    good = [{"path": "/f", "at": f"{n:03}"} for n in range(60)]
    result = table.batch_write([*good[:30], *INVALID_ITEMS, *good[30:]])
    assert [at for at, _, _ in result.failed] == [*range(30, 30 + len(INVALID_ITEMS))]
    assert [item for _, item, _ in result.failed] == INVALID_ITEMS
    assert result.written == 60
    assert [item["at"] for item in table.query("/f", consistent=True)] == [
        item["at"] for item in good
    ]


@pytest.mark.parametrize("item", INVALID_ITEMS, ids=range(len(INVALID_ITEMS)))
def test_an_item_that_could_not_be_read_back_is_not_written(place: Place, item: Any) -> None:
    table = place.table()
    with pytest.raises((CannotStart, TypeError)):
        table.put_item(Item=item)
    assert table.usage.write_units == 0


def test_invalid_values_in_updates_and_reads_are_refused(place: Place) -> None:
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
    for call in (
        lambda: table.get_item(Key={"path": "/f", "at": LONE}),
        lambda: list(table.query(LONE)),
        lambda: list(table.query("/f", between=(LONE, None))),
    ):
        with pytest.raises(CannotStart):
            call()
    assert list(table.query("/f", consistent=True)) == []


def test_items_may_have_as_many_levels_as_the_service_allows(place: Place) -> None:
    """The AWS documentation says 32, which includes the level of the text."""
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
    items = list(table.query(bytearray(b"\x00f"), consistent=True))
    assert [item["v"] for item in items] == [*range(31)]


def test_the_name_of_the_sentinel_marker_is_free_for_users(place: Place) -> None:
    """A sharded table has no key index, so nothing in it is a sentinel."""
    table = place.table()
    items = [{"path": "/f", "at": at, "keyhop": 1} for at in ("!keyhop", "a", "b")]
    assert table.batch_write(items).written == 3
    table.put_item(Item={**items[1], "keyhop": 7})
    for consistent in (False, True):
        stored = list(table.query("/f", consistent=consistent))
        assert [(item["at"], item["keyhop"]) for item in stored] == [
            ("!keyhop", 1),
            ("a", 7),
            ("b", 1),
        ]


def test_a_table_with_a_key_index_is_refused(dynamodb: Database, table_name: str) -> None:
    """Keyhop would read and move its sentinels like items."""

    def place(name: str, index_name: str) -> Place:
        return Place(dynamodb, name, **index(index_name, "path", "keyhop", keyhop="N"))

    item = {"path": "/f", "at": "a"}
    with pytest.raises(CannotStart, match=r"has a key index.*remove the index first"):
        place(table_name, "keyhop-keys").table().put_item(Item=item)
    place(f"{table_name}-own", "of-my-own").table().put_item(Item=item)
