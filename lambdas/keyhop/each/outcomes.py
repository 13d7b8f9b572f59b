"""The outcomes of a key, and how a row records them. Pure."""

from collections.abc import Mapping
from typing import Any

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


def done(row: Row, outcome: str, error: str = "") -> Row:
    """Return a row with its outcome, as it is written to the run's result."""
    result = {**row, OUTCOME: {"S": outcome}}
    return {**result, ERROR: {"S": error}} if error else result
