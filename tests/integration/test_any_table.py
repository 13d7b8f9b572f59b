"""Each key of every kind of table is listed exactly once, on every database."""

from itertools import product

import pytest

from testing.databases import EXTREMES, Database, hashable, index_of, keyhop, partition_value
from testing.marks import on_dynamodb_local, prove

pytestmark = on_dynamodb_local
TYPES = ["S", "N", "B"]
LAYOUTS = [(), *(("--segments", number) for number in ("1", "4", "16", "200"))]
"""Options for the planned number of segments, and for one to more segments than keys."""
FEW = LAYOUTS[:-1:2]
"""Options for the planned number of segments, and for a few."""


@pytest.mark.parametrize(
    ("partition", "sort"),
    [pair if pair[0] == pair[1] else prove(*pair) for pair in product(TYPES, TYPES)],
)
def test_all_nine_type_combinations_with_items_at_the_greatest_sort_keys(
    database: Database, table_name: str, partition: str, sort: str
) -> None:
    database.create(table_name, ("pk", partition), ("sk", sort))
    keys = [{"pk": {partition: partition_value(partition, number)}} for number in range(40)]
    extremes = EXTREMES[sort]
    database.fill(
        table_name,
        (
            {**key, "sk": {sort: value}, "data": {"S": "x" * 300}}
            for number, key in enumerate(keys)
            for value in extremes[number % 4 :]
        ),
    )
    for segments in LAYOUTS:
        assert hashable(database.keys(table_name, *segments).keys) == hashable(keys), segments


@pytest.mark.parametrize("segments", ["1", prove("4"), "16", prove("1000")])
@pytest.mark.parametrize("method", ["skip", "scan"])
def test_segments_and_methods_agree(
    database: Database, table_name: str, segments: str, method: str
) -> None:
    sizes = [1, 2, 3, 30, 1, 1, 7, 200, 1, 5] * 12
    expected = database.collections(table_name, sizes, filling=200)
    result = database.keys(table_name, "--segments", segments, "--method", method)
    assert result.status == 0
    assert sorted(key["pk"]["S"] for key in result.keys) == sorted(expected)


@pytest.mark.parametrize("type_", ["S", prove("N"), prove("B")])
def test_a_table_with_a_partition_key_alone(
    database: Database, table_name: str, type_: str
) -> None:
    database.create(table_name, ("id", type_), None)
    keys = [{"id": {type_: partition_value(type_, number)}} for number in range(150)]
    database.fill(table_name, ({**key, "data": {"S": "x" * 50}} for key in keys))
    for segments in FEW:
        result = database.keys(table_name, *segments)
        assert hashable(result.keys) == hashable(keys)
        assert "scan: the table has no sort key" in result.err


@pytest.mark.parametrize(
    ("partition", "sort"),
    [prove("name", "date"), ("a.b-c d", "#x"), ("Größe", "日付"), (":p", "select")],
)
def test_any_attribute_names(
    database: Database, table_name: str, partition: str, sort: str
) -> None:
    database.create(table_name, (partition, "S"), (sort, "S"))
    keys = [{partition: {"S": f"k{number}"}} for number in range(60)]
    database.fill(
        table_name, ({**key, sort: {"S": str(item)}} for key in keys for item in range(4))
    )
    for segments in FEW:
        result = database.keys(table_name, *segments)
        assert result.keys[0].keys() == {partition}
        assert hashable(result.keys) == hashable(keys)


def test_an_empty_table(database: Database, table_name: str) -> None:
    database.create(table_name)
    for segments in LAYOUTS:
        result = database.keys(table_name, *segments)
        assert (result.status, result.out) == (0, b"")
        assert "0 keys" in result.err


def test_one_giant_collection_costs_a_few_requests(database: Database, table_name: str) -> None:
    database.collections(table_name, [3000], filling=400)
    result = database.keys(table_name)
    assert [key["pk"]["S"] for key in result.keys] == ["k0"]
    requests = int(result.err.split(" requests")[0].rsplit(" ", 1)[1])
    assert requests <= 4
    for segments in LAYOUTS:
        result = database.keys(table_name, *segments)
        assert [key["pk"]["S"] for key in result.keys] == ["k0"]


def test_keys_of_the_greatest_length(database: Database, table_name: str) -> None:
    database.create(table_name, ("pk", "B"), ("sk", "S"))
    keys = [{"pk": {"B": bytes([number]) * 2048}} for number in range(30)]
    database.fill(
        table_name, ({**key, "sk": {"S": f"{item}" * 1024}} for key in keys for item in range(3))
    )
    for segments in FEW:
        assert hashable(database.keys(table_name, *segments).keys) == hashable(keys)


def test_the_type_of_a_key_is_looked_up_by_name(database: Database, table_name: str) -> None:
    """The attributes of indexes may precede those of the key in AttributeDefinitions."""
    database.create(
        table_name,
        ("pk", "B"),
        ("sk", "N"),
        AttributeDefinitions=[
            {"AttributeName": name, "AttributeType": "S"} for name in ("aa", "bb")
        ],
        GlobalSecondaryIndexes=[index_of("by-aa", "aa")],
        LocalSecondaryIndexes=[index_of("by-bb", "pk", "bb")],
    )
    keys = [{"pk": {"B": b"key%d" % number}} for number in range(80)]
    database.fill(
        table_name,
        (
            {**key, "sk": {"N": str(item)}, "aa": {"S": f"a{number % 7}"}}
            | ({"bb": {"S": "b"}} if number < 30 else {})
            for number, key in enumerate(keys)
            for item in range(5)
        ),
    )
    assert hashable(database.keys(table_name).keys) == hashable(keys)
    for segments in ("1", "9"):
        globally = database.keys(table_name, "--index", "by-aa", "--segments", segments)
        assert hashable(globally.keys) == hashable({"aa": {"S": f"a{n}"}} for n in range(7))
        # An item without the index's sort key is not in the index.
        locally = database.keys(table_name, "--index", "by-bb", "--segments", segments)
        assert hashable(locally.keys) == hashable(keys[:30])
        assert "scan: an index has no promised order" in locally.err


@pytest.mark.parametrize("format_", ["text", "json", "typed-json", "csv"])
def test_every_key_is_printed_once_in_every_format(
    database: Database, table_name: str, format_: str
) -> None:
    expected = database.collections(table_name, [3] * 100)
    result = keyhop("keys", table_name, "--endpoint-url", database.url, "--format", format_)
    lines = result.lines
    if format_ == "csv":
        assert lines.pop(0) == "pk"
    if format_ == "json":
        assert set(lines) == {f'{{"pk": "{key}"}}' for key in expected}
    elif "json" in format_:
        assert set(lines) == {f'{{"pk": {{"S": "{key}"}}}}' for key in expected}
    else:
        assert set(lines) == expected
    assert len(lines) == len(expected)
