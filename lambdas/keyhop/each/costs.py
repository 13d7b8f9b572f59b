"""What an effect reads and writes for each key, in the units that DynamoDB charges. Pure.

A write costs one unit for each KB of the item, rounded up, before or after the write, whichever is
larger. In a transaction it costs twice as much. A failed condition costs the same. A strongly
consistent read costs one unit for each 4 KB, rounded up. Writes to indexes are not included.
"""

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from keyhop.dynamodb.units import BLOCK_BYTES, WRITE_UNIT_BYTES


@dataclass(frozen=True, slots=True)
class PerKey:
    """Read and write units for each key."""

    write_units: float
    read_units: float = 0.0


def per_key(effect: Mapping[str, Any], item_bytes: float, mean_item_bytes: float) -> PerKey:
    """Return the units that an effect needs for each key.

    item_bytes: the size of the item that is put, updated or deleted. mean_item_bytes: the mean size
    of the table's items, one of which is read, or checked in a transaction.
    """
    write = math.ceil(max(1.0, item_bytes) / WRITE_UNIT_BYTES)
    look = math.ceil(max(1.0, mean_item_bytes) / BLOCK_BYTES)
    kind = effect["kind"]
    if kind == "put":
        if effect["guard"] == "transaction":
            witness = math.ceil(max(1.0, mean_item_bytes) / WRITE_UNIT_BYTES)
            return PerKey(2.0 * (write + witness), float(look))
        return PerKey(float(write), float(look) if effect["guard"] == "look" else 0.0)
    if kind == "update":
        return PerKey(float(write))
    if kind in ("delete", "undo"):  # the item is read before
        return PerKey(float(write), float(math.ceil(max(1.0, item_bytes) / BLOCK_BYTES)))
    return PerKey(0.0)
