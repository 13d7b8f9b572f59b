"""What a table may take beside its capacity: limits on demand, warm throughput. Pure."""

from collections.abc import Mapping
from typing import Any

WARM_FROM_THE_START = {"ReadUnitsPerSecond": 12_000, "WriteUnitsPerSecond": 4_000}
"""Of a new table on demand (AWS documentation, "Understanding DynamoDB warm throughput"); of a
provisioned one it is what is provisioned."""


def limits(told: Mapping[str, Any]) -> dict[str, int]:
    """Without those of -1: there is none (API Reference, OnDemandThroughput)."""
    given = told.get("OnDemandThroughput") or {}
    names = ("MaxReadRequestUnits", "MaxWriteRequestUnits")
    return {name: given[name] for name in names if given.get(name, -1) > 0}


def warm_beyond(told: Mapping[str, Any], units: Mapping[str, int] | None) -> dict[str, int]:
    """What is above that of a new table, which is its capacity if it is provisioned (`units`)."""
    given = told.get("WarmThroughput") or {}
    new = WARM_FROM_THE_START
    if units is not None:
        new = {name: units[name.replace("UnitsPerSecond", "CapacityUnits")] for name in new}
    if all(given.get(name, 0) <= least for name, least in new.items()):
        return {}
    return {name: max(least, given.get(name, 0)) for name, least in new.items()}


def units_text(given: Mapping[str, int], before: str, after: str) -> str:
    """For a person: reads and writes a second, where they are named so."""
    parts = [
        f"{given[name]:,} {kind.lower()}s"
        for kind in ("Read", "Write")
        if (name := f"{before}{kind}{after}") in given
    ]
    return " and ".join(parts) + " a second"
