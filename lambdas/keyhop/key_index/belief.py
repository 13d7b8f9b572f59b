"""Whether to list the keys from the key index, and what to read then."""

from collections.abc import Callable, Mapping
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any

from keyhop.dynamodb.tables import Source, Table
from keyhop.key_index.index import check_has_one, is_ready, status_of
from keyhop.key_index.registry import Registry
from keyhop.key_index.sentinel import INDEX, Sentinel

AUDIT_COUNTS_DAYS = 30
"""An older audit says too little about today's table."""


def choose_source(
    table: Table,
    method: str,
    registry_of: Callable[[Table], Registry],
    place: str | None = None,
) -> tuple[Source | None, str]:
    """The key index to be read for `method`, "index" or "auto", and why; or None, and why not.

    `auto` takes the key index if it is ACTIVE and its last audit on record found no drift. The
    reason is empty where there is no index. place: the sentinels' sort key, if it is set (else: as
    in the registry). Raises CannotStart, IndexNotFound if the index is asked for and cannot be
    read.
    """
    if method != "index" and table.index(INDEX) is None:
        return None, ""
    registry = registry_of(table)
    audit = registry.audit()
    if method == "index":
        check_has_one(table)
        reason = "asked for"
    else:
        why = why_not(audit) if is_ready(table) else f"it is {status_of(table)}"
        if why is not None:
            return None, why
        assert audit is not None
        reason = f"the key index is ACTIVE, and its audit of {audit['ended']} found no drift"
    setup = registry.setup()
    sentinel = Sentinel.of(table.space, place)
    if setup is not None and "sentinel" in setup and place is None:
        sentinel = Sentinel.from_json(setup["sentinel"])
    return replace(table.source(INDEX), only=sentinel.key_of({})), reason


def why_not(audit: Mapping[str, Any] | None, now: datetime | None = None) -> str | None:
    """Why the index is not to be relied on without being asked for; None if it is."""
    if audit is None:
        return "no audit of it is on record here"
    if not audit.get("keeper"):
        return f"no keeper followed the table at its last audit, of {audit['ended']}"
    if audit["drift"]:
        return f"its last audit, of {audit['ended']}, found drift"
    age = (now or datetime.now(UTC)) - datetime.fromisoformat(audit["ended"])
    if age > timedelta(days=AUDIT_COUNTS_DAYS):
        return f"its last audit, of {audit['ended']}, is more than {AUDIT_COUNTS_DAYS} days old"
    return None
