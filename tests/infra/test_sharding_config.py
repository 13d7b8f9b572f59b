"""Tests of the `sharding` of tables in the context: its fields, and the errors at synth."""

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


def test_only_the_partition_key_is_required():
    (table,) = config("Orders", audit()).sharded_tables
    assert (table.given, table.sharding) == ("Audit", DEFAULTS)


def test_every_field_can_be_set():
    loaded = config(
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
    (table,) = loaded.sharded_tables
    assert table.sharding == Sharding(
        "device", "B", "device-shards", "random", "modulo", True, "#", 1000, {"/logs/*": 8}
    )
    assert (loaded.shrink_schedule, loaded.start_drains) == (None, True)


def test_shard_counts_may_be_whole_numbers_of_any_type():
    counts = {"/a": "8", "/b": 8.0}
    (table,) = config(audit(startShards=counts, mostShards="8")).sharded_tables
    assert json.dumps(table.sharding.start_shards) == '{"/a": 8, "/b": 8}'


def test_a_sharded_table_may_be_json():
    """See `cdk deploy -c 'tables=[{"table":"Audit","sharding":{"partitionKey":"path"}}]'`."""
    config = Config.from_context({"tables": json.dumps([audit()])})
    assert config.tables[0].sharding == DEFAULTS


def test_the_metadata_table_is_named_after_the_stack_and_the_table():
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


@pytest.mark.parametrize(("value", "field", "expected"), WRONG)
def test_an_error_names_the_table_the_field_and_the_allowed_values(
    value: Any, field: str, expected: str
):
    complete = isinstance(value, dict) and value and "partitionKey" not in value
    sharding = {"partitionKey": "path", **value} if complete else value
    with pytest.raises(ConfigError) as error:
        config({"table": "Audit", "sharding": sharding}, "Orders")
    sentence = str(error.value)
    assert sentence.startswith("The context field tables has, for the table Audit, a ")
    assert field in sentence
    assert expected in sentence
    assert sentence[-1] in ".?"
    assert "\n" not in sentence


def test_two_tables_do_not_share_their_metadata():
    """Two tables can have the same logical keys."""
    orders = {"table": "Orders", "sharding": {"partitionKey": "customer", "metadata": "shards"}}
    with pytest.raises(ConfigError, match="this is that of the metadata table of Audit"):
        config(audit(metadata="shards"), orders)


def test_a_metadata_table_must_not_be_the_default_one_of_another_table():
    orders = {"table": "Orders", "sharding": {"partitionKey": "c", "metadata": DEFAULTS.metadata}}
    with pytest.raises(ConfigError, match="the name of no other table"):
        config(audit(), orders)


def test_a_default_name_that_is_too_long_is_refused():
    table = {"table": "A" * 250, "sharding": {"partitionKey": "path"}}
    with pytest.raises(ConfigError, match=r"too long; give a name of at most 255"):
        config(table)
    table["sharding"]["metadata"] = "shards"
    assert config(table).sharded_tables


def test_a_table_of_another_account_or_region_cannot_be_sharded():
    """One client reads items and metadata, which is in the account and region of the functions."""
    with pytest.raises(ConfigError, match="left out for a table given by its ARN"):
        config({"table": ARN, "sharding": {"partitionKey": "path"}})


def test_a_sharded_table_has_no_key_index():
    with pytest.raises(ConfigError, match="left out with keyIndex"):
        config({**audit(), "keyIndex": True})
    assert config({**audit(), "keyIndex": False}).sharded_tables


def test_the_list_of_sharded_tables_fits_into_the_environment_or_is_refused():
    """All variables of a function share 4,096 bytes, and FinishRun gets both lists."""
    sharded = [{"table": f"T{n:03}", "sharding": {"partitionKey": "path"}} for n in range(40)]
    assert config(*sharded[:16], *(f"Table{n:05}" for n in range(16)))
    with pytest.raises(ConfigError, match=r"has 40 tables, of which [0-9]+ fit.*second stack"):
        config(*sharded)
    with pytest.raises(ConfigError, match=r"has 216 tables, of which [0-9]+ fit.*second stack"):
        config(*sharded[:16], *(f"Table{n:05}" for n in range(200)))


def test_the_reserved_names_are_the_metadata_attributes_that_the_library_writes():
    registered = set(to_item(Shards.registered(0.0, 5.0, Placement(True).text("_"), table="Audit")))
    claims = {"claimed_shard", "claimed_by", "keyhop_expires"}
    assert registered | claims | {"traffic", "pressure", "shards_added"} == set(ATTRIBUTES)
    for name in ATTRIBUTES:
        with pytest.raises(ConfigError, match="metadata items use that one"):
            config(audit(partitionKey=name))


@pytest.mark.parametrize("type_", ["S", "B", "N"])
@pytest.mark.parametrize("separator", ["_", "#", "--", "_1", "1", " ", "", "ä", "~" * 16, "~" * 17])
def test_the_context_refuses_the_same_separators_as_the_library(type_: KeyType, separator: str):
    def raises(error: type[Exception], make: Any) -> bool:
        try:
            make()
        except error:
            return True
        return False

    by_library = raises(CannotStart, lambda: Names(type_, separator))
    by_context = raises(
        ConfigError, lambda: config(audit(partitionKeyType=type_, separator=separator))
    )
    assert by_context == by_library
