"""Tables encrypted with keys of one's own: who may use these, and only through DynamoDB."""

import pytest

from infra import permissions
from tests.infra.template import (
    ACCOUNT,
    FUNCTIONS,
    KEY_INDEX_FUNCTIONS,
    REGION,
    SHARDING_FUNCTIONS,
    Deployed,
)

ORDERS, AUDIT, FAR = KEYS = (
    f"arn:aws:kms:{REGION}:{ACCOUNT}:key/0a1b-orders",
    f"arn:aws:kms:{REGION}:{ACCOUNT}:key/2c3d-audit",
    "arn:aws:kms:us-east-1:123456789012:key/4e5f-ereignisse",
)
"""Of a table with a key index, of a sharded one, and of one with a key index elsewhere."""
THROUGH_DYNAMODB = {"kms__ViaService": f"dynamodb.{REGION}.amazonaws.com"}
LISTING = {"PlanRun": KEYS, "ScanSegments": KEYS, "VerifyRun": KEYS}
KEEPING = dict.fromkeys(("KeepIndex", "WalkSegments", "ManageIndex"), (ORDERS, FAR))
SHARDING = dict.fromkeys(("WriteSharded", "QuerySharded", "MoveShards"), (AUDIT,))
WHOSE = {**LISTING, **KEEPING, **SHARDING}
"""Of the others none reads or writes an item: they describe tables, or read metadata."""
OWNERS = (*FUNCTIONS, *KEY_INDEX_FUNCTIONS, *SHARDING_FUNCTIONS, "EnumerateKeys", "BuildKeyIndex")
OF_ITEMS = {
    *("Scan", "Query", "GetItem", "BatchGetItem", "PutItem", "UpdateItem", "DeleteItem"),
    *("BatchWriteItem", "ConditionCheckItem", "GetRecords"),
}


@pytest.mark.parametrize("owner", OWNERS)
def test_who_touches_a_table_uses_its_key_through_dynamodb_alone(mixed: Deployed, owner: str):
    for key in KEYS:
        may = mixed.allows(owner, "kms:Decrypt", key, **THROUGH_DYNAMODB)
        assert may == (key in WHOSE.get(owner, ())), key
        assert not mixed.allows(owner, "kms:Decrypt", key)
        assert not mixed.allows(owner, "kms:Encrypt", key, **THROUGH_DYNAMODB)
        elsewhere = f"s3.{REGION}.amazonaws.com"
        assert not mixed.allows(owner, "kms:Decrypt", key, kms__ViaService=elsewhere)


@pytest.mark.parametrize("owner", [*FUNCTIONS, *KEY_INDEX_FUNCTIONS, *SHARDING_FUNCTIONS])
def test_no_right_to_items_of_an_encrypted_table_is_without_one_to_its_key(
    mixed: Deployed, owner: str
):
    """Derived from the role: what is given to a function later is looked at as well."""
    touched = {
        (resource + "/").split(":table/")[1].split("/")[0]
        for statement in mixed.statements(owner)
        if OF_ITEMS & {action.removeprefix("dynamodb:") for action in statement["Action"]}
        for resource in statement["Resource"]
        if ":table/" in resource
    }
    keys = {"Orders": ORDERS, "Audit": AUDIT, "Ereignisse": FAR}
    for key in {keys[table] for table in touched if table in keys}:
        assert mixed.allows(owner, "kms:Decrypt", key, **THROUGH_DYNAMODB), key


def test_dynamodb_is_named_by_the_keys_region_and_in_china_it_may_have_either_name(mixed: Deployed):
    there = {"kms__ViaService": "dynamodb.us-east-1.amazonaws.com"}
    assert mixed.allows("KeepIndex", "kms:Decrypt", FAR, **there)
    assert permissions.dynamodb_of("arn:aws-cn:kms:cn-north-1:123456789012:key/4e5f") == (
        "dynamodb.cn-north-1.amazonaws.com",
        "dynamodb.cn-north-1.amazonaws.com.cn",
    )


def test_without_such_tables_nobody_uses_any_key(kept: Deployed):
    for owner in (*FUNCTIONS, *KEY_INDEX_FUNCTIONS):
        actions = [action for one in kept.statements(owner) for action in one["Action"]]
        assert not [action for action in actions if action.startswith("kms:")]
