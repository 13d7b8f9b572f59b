"""Make the index descriptions of CreateTable for the destination from those of the source. Pure."""

from collections.abc import Mapping
from typing import Any

from keyhop.dynamodb.schema import KeySpace
from keyhop.rekey.life_cycle.throughput import limits, warm_beyond


def global_index(
    entry: Mapping[str, Any], keys: KeySpace, table_units: Mapping[str, int] | None
) -> dict[str, Any]:
    """Return a global index by its `entry` in DescribeTable; `table_units` are None on demand."""
    request = {
        "IndexName": entry["IndexName"],
        "KeySchema": entry["KeySchema"],
        "Projection": _projection(entry, keys),
    }
    units: dict[str, int] | None = None
    if table_units is not None:
        provisioned = entry.get("ProvisionedThroughput", {})
        names = ("ReadCapacityUnits", "WriteCapacityUnits")
        units = request["ProvisionedThroughput"] = {n: max(1, provisioned.get(n, 1)) for n in names}
    if maximum := limits(entry):
        request["OnDemandThroughput"] = maximum
    if warm := warm_beyond(entry, units):
        request["WarmThroughput"] = warm
    return request


def local_index(entry: Mapping[str, Any], keys: KeySpace) -> dict[str, Any]:
    """Return a local index with the same sort key, under the destination's partition key."""
    names = {"HASH": keys.partition[0].name, "RANGE": entry["KeySchema"][1]["AttributeName"]}
    return {
        "IndexName": entry["IndexName"],
        "KeySchema": [{"AttributeName": name, "KeyType": kind} for kind, name in names.items()],
        "Projection": _projection(entry, keys),
    }


def _projection(entry: Mapping[str, Any], keys: KeySpace) -> dict[str, Any]:
    """Return the projection without the destination's keys, which each index contains anyway."""
    projection = entry.get("Projection", {})
    kind = projection.get("ProjectionType", "ALL")
    if named := [name for name in projection.get("NonKeyAttributes", ()) if name not in keys.types]:
        return {"ProjectionType": kind, "NonKeyAttributes": named}
    return {"ProjectionType": "KEYS_ONLY" if kind == "INCLUDE" else kind}
