"""An index of the source as CreateTable is asked for it, of the destination. Pure."""

from collections.abc import Mapping
from typing import Any

from keyhop.dynamodb.schema import KeySpace
from keyhop.rekey.life_cycle.throughput import limits, warm_beyond


def global_index(
    entry: Mapping[str, Any], keys: KeySpace, table_units: Mapping[str, int] | None
) -> dict[str, Any]:
    """entry: as DescribeTable tells it. keys: the destination's. table_units: of a provisioned
    source, None of one on demand.
    """
    asked = {
        "IndexName": entry["IndexName"],
        "KeySchema": entry["KeySchema"],
        "Projection": _projection(entry, keys),
    }
    units: dict[str, int] | None = None
    if table_units is not None:
        given = entry.get("ProvisionedThroughput", {})
        names = ("ReadCapacityUnits", "WriteCapacityUnits")
        units = asked["ProvisionedThroughput"] = {n: max(1, given.get(n, 1)) for n in names}
    if most := limits(entry):
        asked["OnDemandThroughput"] = most
    if warm := warm_beyond(entry, units):
        asked["WarmThroughput"] = warm
    return asked


def local_index(entry: Mapping[str, Any], keys: KeySpace) -> dict[str, Any]:
    """By the same sort key, under the destination's partition key."""
    names = {"HASH": keys.partition[0].name, "RANGE": entry["KeySchema"][1]["AttributeName"]}
    return {
        "IndexName": entry["IndexName"],
        "KeySchema": [{"AttributeName": name, "KeyType": kind} for kind, name in names.items()],
        "Projection": _projection(entry, keys),
    }


def _projection(entry: Mapping[str, Any], keys: KeySpace) -> dict[str, Any]:
    """Without the destination's keys, which are in each index anyway."""
    told = entry.get("Projection", {})
    kind = told.get("ProjectionType", "ALL")
    if named := [name for name in told.get("NonKeyAttributes", ()) if name not in keys.types]:
        return {"ProjectionType": kind, "NonKeyAttributes": named}
    return {"ProjectionType": "KEYS_ONLY" if kind == "INCLUDE" else kind}
