"""What is written down about the key index of a table, outside the table.

    setup.json    what the table was like before, and where its sentinels are
    audit.json    the last audit: `auto` reads the index only if that found no drift

A deployment keeps it in its bucket, below key-index/<table>/; the command line below the user's
state folder (`$XDG_STATE_HOME/keyhop`, else ~/.local/state/keyhop). Neither sees the other's, and
neither holds keys of the table: examples of drift are in reports, which do not stay for ever.
"""

import hashlib
import json
import os
import re
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

from keyhop.enumerate.store import Directory, Store
from keyhop.errors import BrokenPromise

SETUP = "setup.json"
AUDIT = "audit.json"
AUDIT_COUNTS_DAYS = 30
"""An older audit says too little about today's table."""


@dataclass(frozen=True, slots=True)
class Book:
    """The records of one table; identity: tells it from another table of the same name."""

    store: Store
    identity: str

    def setup(self) -> dict[str, Any] | None:
        """What was noted when the index was built; None if that is not known."""
        return self._read(SETUP)

    def note_setup(self, setup: Mapping[str, Any]) -> None:
        """Note what the table was like, unless that is known: a build may begin again."""
        if self.setup() is None:
            self._write(SETUP, setup)

    def audit(self) -> dict[str, Any] | None:
        """The last audit; None if there was none."""
        return self._read(AUDIT)

    def note_audit(self, report: Mapping[str, Any]) -> None:
        """Note what an audit has found, without its examples."""
        self._write(AUDIT, {name: told for name, told in report.items() if name != "examples"})

    def forget(self) -> None:
        """The index is gone."""
        self.store.delete(SETUP)
        self.store.delete(AUDIT)

    def _read(self, name: str) -> dict[str, Any] | None:
        content = self.store.read(name)
        if content is None:
            return None
        try:
            told = dict(json.loads(content))
        except (ValueError, TypeError) as error:
            raise BrokenPromise(f"The key index's {name} is damaged: delete it.") from error
        return told if told.get("identity") == self.identity else None

    def _write(self, name: str, content: Mapping[str, Any]) -> None:
        told = {"identity": self.identity, **content}
        self.store.replace(name, (json.dumps(told, ensure_ascii=False) + "\n").encode())


def local_book(table: str, identity: str) -> Book:
    """The command line's book of a table."""
    base = os.environ.get("XDG_STATE_HOME") or str(Path.home() / ".local" / "state")
    # Tables of one name in two accounts are told apart; no name leads out of the folder.
    name = re.sub(r"[^A-Za-z0-9_-]", "_", table)
    mark = hashlib.sha256(identity.encode()).hexdigest()[:12]
    return Book(Directory(Path(base) / "keyhop" / "key-index" / f"{name}-{mark}"), identity)


def why_not(audit: Mapping[str, Any] | None, now: datetime | None = None) -> str | None:
    """Why the index is not to be relied on without being asked for; None if it is."""
    if audit is None:
        return "no audit of it is on record here"
    if audit["drift"]:
        return f"its last audit, of {audit['ended']}, found drift"
    age = (now or datetime.now(UTC)) - datetime.fromisoformat(audit["ended"])
    if age > timedelta(days=AUDIT_COUNTS_DAYS):
        return f"its last audit, of {audit['ended']}, is more than {AUDIT_COUNTS_DAYS} days old"
    return None
