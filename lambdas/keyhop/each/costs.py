"""What an effect writes and reads for each key, by what DynamoDB charges. Pure.

A write costs a unit for each started KB of the item, before or after, whichever is larger; within a
transaction, twice that. A condition that fails costs as much. A strongly consistent read costs a
unit for each started 4 KB. Indexes that the item enters cost more: they are not in it.
"""

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

READ_BYTES = 4096
WRITE_BYTES = 1024


@dataclass(frozen=True, slots=True)
class PerKey:
    """Units for each key."""

    write_units: float
    read_units: float = 0.0


def per_key(effect: Mapping[str, Any], item_bytes: float, mean_item_bytes: float) -> PerKey:
    """item_bytes: of what is put, or of what is updated or deleted. mean_item_bytes: of the table's
    items, one of which is looked at, or checked in a transaction.
    """
    write = math.ceil(max(1.0, item_bytes) / WRITE_BYTES)
    look = math.ceil(max(1.0, mean_item_bytes) / READ_BYTES)
    kind = effect["kind"]
    if kind == "put":
        if effect["guard"] == "transaction":
            witness = math.ceil(max(1.0, mean_item_bytes) / WRITE_BYTES)
            return PerKey(2.0 * (write + witness), float(look))
        return PerKey(float(write), float(look) if effect["guard"] == "look" else 0.0)
    if kind == "update":
        return PerKey(float(write))
    if kind in ("delete", "undo"):  # what is there is read before
        return PerKey(float(write), float(math.ceil(max(1.0, item_bytes) / READ_BYTES)))
    return PerKey(0.0)
