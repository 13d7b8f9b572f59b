import pytest
from hypothesis import given
from hypothesis import strategies as st
from keyhop.dynamodb.schema import (
    GREATEST_SORT_KEY,
    KeyAttribute,
    KeySpace,
    indexes_of,
    keyspace_of,
)
from keyhop.dynamodb.tables import Table
from keyhop.dynamodb.values import from_json, to_json

DESCRIPTION = {
    "AttributeDefinitions": [
        {"AttributeName": "a", "AttributeType": "N"},
        {"AttributeName": "b", "AttributeType": "B"},
        {"AttributeName": "sk", "AttributeType": "N"},
        {"AttributeName": "pk", "AttributeType": "B"},
    ],
    "KeySchema": [
        {"AttributeName": "sk", "KeyType": "RANGE"},
        {"AttributeName": "pk", "KeyType": "HASH"},
    ],
    "GlobalSecondaryIndexes": [
        {
            "IndexName": "several",
            "KeySchema": [
                {"AttributeName": "a", "KeyType": "HASH"},
                {"AttributeName": "b", "KeyType": "HASH"},
                {"AttributeName": "sk", "KeyType": "RANGE"},
            ],
        }
    ],
}


def test_the_greatest_sort_keys_have_the_maximum_length() -> None:
    assert len(GREATEST_SORT_KEY["S"]["S"].encode()) == 1024
    assert len(GREATEST_SORT_KEY["B"]["B"]) == 1024
    assert len(GREATEST_SORT_KEY["N"]["N"].replace(".", "").split("E")[0]) == 38


def test_a_table_is_read_by_name_and_role_not_by_position() -> None:
    space = keyspace_of(DESCRIPTION)
    assert space == KeySpace((KeyAttribute("pk", "B"),), KeyAttribute("sk", "N"))
    assert space.hop_from({"pk": {"B": b"x"}}) == {"pk": {"B": b"x"}, "sk": GREATEST_SORT_KEY["N"]}


def test_an_index_can_have_several_partition_key_attributes_and_is_never_hopped() -> None:
    (entry,) = (e for e in indexes_of(DESCRIPTION) if e["IndexName"] == "several")
    space = keyspace_of(DESCRIPTION, entry)
    assert space == KeySpace((KeyAttribute("a", "N"), KeyAttribute("b", "B")), None)
    with pytest.raises(ValueError, match="nothing to hop over"):
        space.hop_from({"a": {"N": "1"}, "b": {"B": b""}})


def test_an_unknown_index_is_none() -> None:
    assert Table("Orders", DESCRIPTION).index("other") is None


values = st.one_of(
    st.builds(lambda v: {"S": v}, st.text()),
    st.builds(lambda v: {"N": str(v)}, st.integers()),
    st.builds(lambda v: {"B": v}, st.binary()),
)


@given(st.dictionaries(st.text(min_size=1), values, max_size=3))
def test_keys_survive_json(key: dict) -> None:
    assert from_json(to_json(key)) == key
