"""What can become of a key, and how a row says it. Pure."""

from collections.abc import Mapping
from typing import Any

OUTCOME = "outcome"
ERROR = "error"
"""Attributes of a row beside its key: what became of it; why it failed, in words that hold no keys.
"""

PUT, THERE, GONE, GUARDED, FAILED = "put", "there", "gone", "guarded", "failed"
UPDATED, DELETED, SENT, CHANGED = "updated", "deleted", "sent", "changed"
"""Outcomes. there: an item was there already. gone: there is no collection, or no such item, any
more. guarded: the item stood alone when it was put, so it was taken back. changed: somebody has
changed the item, so it was not undone."""

Row = Mapping[str, Mapping[str, Any]]


def done(row: Row, outcome: str, error: str = "") -> Row:
    """What goes to the run's part."""
    told = {**row, OUTCOME: {"S": outcome}}
    return {**told, ERROR: {"S": error}} if error else told
