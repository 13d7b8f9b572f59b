"""Compute the limits on demand and the warm throughput of a table. Pure."""

from collections.abc import Mapping
from typing import Any

WARM_FROM_THE_START = {"ReadUnitsPerSecond": 12_000, "WriteUnitsPerSecond": 4_000}
"""The warm throughput of a new table on demand (AWS documentation, "Understanding DynamoDB warm
throughput"); for a provisioned table it is the provisioned capacity.
"""


def limits(description: Mapping[str, Any]) -> dict[str, int]:
    """Return the limits that are set; -1 means no limit (API Reference, OnDemandThroughput)."""
    found_limits = description.get("OnDemandThroughput") or {}
    names = ("MaxReadRequestUnits", "MaxWriteRequestUnits")
    return {name: found_limits[name] for name in names if found_limits.get(name, -1) > 0}


def warm_beyond(description: Mapping[str, Any], units: Mapping[str, int] | None) -> dict[str, int]:
    """Return the warm throughput if it exceeds a new table's, or the provisioned `units`."""
    warm = description.get("WarmThroughput") or {}
    new = WARM_FROM_THE_START
    if units is not None:
        new = {name: units[name.replace("UnitsPerSecond", "CapacityUnits")] for name in new}
    if all(warm.get(name, 0) <= minimum for name, minimum in new.items()):
        return {}
    return {name: max(minimum, warm.get(name, 0)) for name, minimum in new.items()}


def units_text(values: Mapping[str, int], before: str, after: str) -> str:
    """Return the reads and writes a second as text, for names that begin and end so."""
    parts = [
        f"{values[name]:,} {kind.lower()}s"
        for kind in ("Read", "Write")
        if (name := f"{before}{kind}{after}") in values
    ]
    return " and ".join(parts) + " a second"
