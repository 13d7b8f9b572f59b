"""The context's sharding of tables: what is read, and what is refused before it is deployed."""

import json
from typing import Any

import pytest
from keyhop.dynamodb.values import KeyType
from keyhop.errors import CannotStart
from keyhop.sharding.key.placement import Placement
from keyhop.sharding.key.schema import Names
from keyhop.sharding.key.shards import ATTRIBUTES, Shards, to_item

from infra.config import Config, ConfigError, Sharding

ARN = "arn:aws:dynamodb:eu-west-1:123456789012:table/Audit"
DEFAULTS = Sharding(
    partition_key="path",
    partition_key_type="S",
    metadata="Keyhop-shards-Audit",
    placement="calculated",
    hash="jump",
    append_only=False,
    separator="_",
    most_shards=64,
)


def config(*tables: Any, **context: Any) -> Config:
    return Config.from_context({"tables": list(tables), **context})


def audit(**sharding: Any) -> dict[str, Any]:
    return {"table": "Audit", "sharding": {"partitionKey": "path", **sharding}}


def test_only_the_partition_key_must_be_told():
    (table,) = config("Orders", audit()).sharded_tables
    assert (table.given, table.sharding) == ("Audit", DEFAULTS)


def test_all_of_it_can_be_told():
    told = config(
        {
            "table": "Devices",
            "sharding": {
                "partitionKey": "device",
                "partitionKeyType": "B",
                "metadata": "device-shards",
                "placement": "random",
                "hash": "modulo",
                "appendOnly": True,
                "separator": "#",
                "mostShards": 1000,
                "startShards": {"/logs/*": 8},
            },
        },
        shrinkSchedule="never",
        startDrains="true",
    )
    (table,) = told.sharded_tables
    assert table.sharding == Sharding(
        "device", "B", "device-shards", "random", "modulo", True, "#", 1000, {"/logs/*": 8}
    )
    assert (told.shrink_schedule, told.start_drains) == (None, True)


def test_counts_of_shards_are_whole_numbers_in_any_form():
    counts = {"/a": "8", "/b": 8.0}
    (table,) = config(audit(startShards=counts, mostShards="8")).sharded_tables
    assert json.dumps(table.sharding.start_shards) == '{"/a": 8, "/b": 8}'


def test_a_sharded_table_may_be_typed():
    """`cdk deploy -c 'tables=[{"table":"Audit","sharding":{"partitionKey":"path"}}]'`."""
    typed = Config.from_context({"tables": json.dumps([audit()])})
    assert typed.tables[0].sharding == DEFAULTS


def test_the_metadata_table_is_named_after_stack_and_table():
    (table,) = config(audit(), stackName="Second").sharded_tables
    assert table.sharding is not None
    assert table.sharding.metadata == "Second-shards-Audit"


WRONG = [
    ("path", "sharding that is", 'an object, as {"partitionKey": "path"}'),
    (True, "sharding that is true", "an object"),
    ({}, "sharding.partitionKey that is missing", "partition key"),
    ({"partitionKey": ""}, 'sharding.partitionKey that is ""', "partition key"),
    ({"partitionKey": 7}, "sharding.partitionKey", "partition key"),
    ({"partitionKey": "k" * 256}, "sharding.partitionKey", "partition key"),
    ({"partitionKey": "phase"}, "sharding.partitionKey", "metadata items use that one"),
    ({"partitionKeyType": "N"}, 'partitionKeyType that is "N"', "a number cannot carry"),
    ({"partitionKeyType": "s"}, "partitionKeyType", "one of S, B"),
    ({"metadata": "no"}, "sharding.metadata", "3 to 255"),
    ({"metadata": ARN}, "sharding.metadata", "the name of a table"),
    ({"metadata": 7}, "sharding.metadata", "the name of a table"),
    ({"metadata": "Audit"}, "sharding.metadata", "this is that of the table Audit of this field"),
    ({"metadata": "Orders"}, "sharding.metadata", "this is that of the table Orders of this field"),
    ({"placement": "hashed"}, "sharding.placement", "one of calculated, random"),
    ({"placement": ["random"]}, "sharding.placement", "one of calculated, random"),
    ({"hash": "md5"}, "sharding.hash", "one of jump, modulo"),
    ({"appendOnly": "yes"}, "sharding.appendOnly", "true or false"),
    ({"appendOnly": 1}, "sharding.appendOnly", "true or false"),
    ({"separator": ""}, "sharding.separator", "no digits and no spaces"),
    ({"separator": "_1"}, 'sharding.separator that is "_1"', "no digits and no spaces"),
    ({"separator": " "}, "sharding.separator", "no digits and no spaces"),
    ({"separator": "ä"}, "sharding.separator", "ASCII"),
    ({"separator": "-" * 17}, "sharding.separator", "1 to 16"),
    ({"mostShards": 0}, "sharding.mostShards", "from 1 to 1000"),
    ({"mostShards": 1001}, "sharding.mostShards", "from 1 to 1000"),
    ({"mostShards": "many"}, "sharding.mostShards", "a whole number"),
    ({"mostShards": True}, "sharding.mostShards", "a whole number"),
    ({"startShards": {"/logs/*": 65}}, "sharding.startShards", "at most 64"),
    ({"startShards": {"/logs/*": 0}}, "sharding.startShards", "counts of 1 to 1000"),
    ({"startShards": {"/logs/*": True}}, "sharding.startShards", "counts of 1 to 1000"),
    ({"startShards": 8}, "sharding.startShards", "an object"),
    ({"mostShard": 8}, "mostShard, which is not known", "did you mean mostShards?"),
    ({"zone": 8}, "zone, which is not known", "known are partitionKey, partitionKeyType"),
]


@pytest.mark.parametrize(("given", "field", "told"), WRONG)
def test_a_wrong_value_names_the_table_the_field_and_what_is_allowed(
    given: Any, field: str, told: str
):
    complete = isinstance(given, dict) and given and "partitionKey" not in given
    sharding = {"partitionKey": "path", **given} if complete else given
    with pytest.raises(ConfigError) as error:
        config({"table": "Audit", "sharding": sharding}, "Orders")
    sentence = str(error.value)
    assert sentence.startswith("The context field tables has, for the table Audit, a ")
    assert field in sentence
    assert told in sentence
    assert sentence[-1] in ".?"
    assert "\n" not in sentence


def test_two_tables_do_not_share_their_metadata():
    """Their logical keys could be the same."""
    other = {"table": "Orders", "sharding": {"partitionKey": "customer", "metadata": "shards"}}
    with pytest.raises(ConfigError, match="this is that of the metadata table of Audit"):
        config(audit(metadata="shards"), other)


def test_a_metadata_table_is_not_the_default_one_of_another():
    other = {"table": "Orders", "sharding": {"partitionKey": "c", "metadata": DEFAULTS.metadata}}
    with pytest.raises(ConfigError, match="the name of no other table"):
        config(audit(), other)


def test_a_default_name_that_is_too_long_asks_for_another():
    long = {"table": "A" * 250, "sharding": {"partitionKey": "path"}}
    with pytest.raises(ConfigError, match=r"too long; give a name of at most 255"):
        config(long)
    long["sharding"]["metadata"] = "shards"
    assert config(long).sharded_tables


def test_a_table_of_another_account_or_region_cannot_be_sharded():
    """One client asks for items and metadata, and the metadata lies beside the functions."""
    with pytest.raises(ConfigError, match="left out for a table given by its ARN"):
        config({"table": ARN, "sharding": {"partitionKey": "path"}})


def test_a_sharded_table_has_no_key_index():
    with pytest.raises(ConfigError, match="left out with keyIndex"):
        config({**audit(), "keyIndex": True})
    assert config({**audit(), "keyIndex": False}).sharded_tables


def test_who_is_told_of_all_tables_and_of_the_sharded_ones_is_not_told_too_much():
    """All variables of a function share 4,096 bytes, and FinishRun gets both."""
    sharded = [{"table": f"T{n:03}", "sharding": {"partitionKey": "path"}} for n in range(40)]
    assert config(*sharded[:16], *(f"Table{n:05}" for n in range(16)))
    with pytest.raises(ConfigError, match=r"has 40 tables, of which [0-9]+ fit.*second stack"):
        config(*sharded)
    with pytest.raises(ConfigError, match=r"has 216 tables, of which [0-9]+ fit.*second stack"):
        config(*sharded[:16], *(f"Table{n:05}" for n in range(200)))


def test_the_metadatas_own_attributes_are_those_that_the_library_writes():
    written = set(to_item(Shards.registered(0.0, 5.0, Placement(True).text("_"), table="Audit")))
    claims = {"claimed_shard", "claimed_by", "keyhop_expires"}
    assert written | claims | {"traffic", "pressure", "shards_added"} == set(ATTRIBUTES)
    for name in ATTRIBUTES:
        with pytest.raises(ConfigError, match="metadata items use that one"):
            config(audit(partitionKey=name))


@pytest.mark.parametrize("type_", ["S", "B", "N"])
@pytest.mark.parametrize("separator", ["_", "#", "--", "_1", "1", " ", "", "ä", "~" * 16, "~" * 17])
def test_the_context_refuses_what_the_library_would_refuse(type_: KeyType, separator: str):
    def refused(error: type[Exception], make: Any) -> bool:
        try:
            make()
        except error:
            return True
        return False

    by_library = refused(CannotStart, lambda: Names(type_, separator))
    by_context = refused(
        ConfigError, lambda: config(audit(partitionKeyType=type_, separator=separator))
    )
    assert by_context == by_library
