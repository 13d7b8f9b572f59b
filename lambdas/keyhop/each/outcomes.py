"""The outcomes of an effect on a key, its limits, and the units that it needs. Pure.

A write costs one unit for each KB of the item, rounded up, before or after the write, whichever is
larger. In a transaction it costs twice as much. A failed condition costs the same. A strongly
consistent read costs one unit for each 4 KB, rounded up. Writes to indexes are not included.
"""

import math
from collections.abc import Mapping
from typing import Any

from keyhop.dynamodb.units import BLOCK_BYTES, WRITE_UNIT_BYTES

OUTCOME = "outcome"
ERROR = "error"
"""Attributes of a row besides its key: its outcome, and why it failed, in a text without keys."""

PUT, THERE, GONE, GUARDED, FAILED = "put", "there", "gone", "guarded", "failed"
UPDATED, DELETED, SENT, CHANGED = "updated", "deleted", "sent", "changed"
"""Outcomes of a key.

there: an item with this key existed. gone: the collection or the item no longer exists. guarded:
the item was the only one of its collection, so it was deleted again. changed: a user has changed
the item, so it was not undone.
"""

Row = Mapping[str, Mapping[str, Any]]

DEFAULT_BATCH = 100
MOST_BATCH = 1_000
LIMITS = ("max_write_rate", "max_write_units")
"""The options that are counted from zero at each start of a run."""

GUARDS = ("none", "look", "transaction")

ON_EXISTING = ("update", "delete")
"""The kinds of effects on items that exist, whose sizes are unknown before they are written."""


def done(row: Row, outcome: str, error: str = "") -> Row:
    """Return a row with its outcome, as it is written to the run's result."""
    result = {**row, OUTCOME: {"S": outcome}}
    return {**result, ERROR: {"S": error}} if error else result


def per_key(
    effect: Mapping[str, Any], item_bytes: float, mean_item_bytes: float
) -> tuple[float, float]:
    """Return the write and the read units that an effect needs for each key.

    item_bytes: the size of the item that is put or taken back, or of what is known of an item that
    is updated or deleted. mean_item_bytes: the mean size of the table's items. Such an item is
    updated or deleted, read, or checked in a transaction.
    """
    kind = effect["kind"]
    if kind in ON_EXISTING:
        item_bytes = max(item_bytes, mean_item_bytes)
    write = math.ceil(max(1.0, item_bytes) / WRITE_UNIT_BYTES)
    look = math.ceil(max(1.0, mean_item_bytes) / BLOCK_BYTES)
    if kind == "put":
        if effect["guard"] == "transaction":
            witness = math.ceil(max(1.0, mean_item_bytes) / WRITE_UNIT_BYTES)
            return 2.0 * (write + witness), float(look)
        return float(write), float(look) if effect["guard"] == "look" else 0.0
    if kind == "update":
        return float(write), 0.0
    if kind in ("delete", "undo"):  # the item is read before
        return float(write), float(math.ceil(max(1.0, item_bytes) / BLOCK_BYTES))
    return 0.0, 0.0
