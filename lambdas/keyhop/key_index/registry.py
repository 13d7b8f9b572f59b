"""The registry: what is written down about the key index of a table, outside the table.

    setup.json    what the table was like before, and where its sentinels are
    audit.json    the last audit: `auto` reads the index only if that found no drift

A deployment keeps it in its bucket, below key-index/<table>-<hash>/; the command line below the
user's state folder (`$XDG_STATE_HOME/keyhop`, else ~/.local/state/keyhop). Neither sees the
other's, and neither holds keys of the table: examples of drift are in reports, which do not stay
for ever.
"""

import hashlib
import json
import os
import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from keyhop.dynamodb.tables import Table
from keyhop.errors import CannotStart
from keyhop.key_index.sentinel import Sentinel
from keyhop.storage.local import Directory
from keyhop.storage.store import Store

SETUP = "setup.json"
AUDIT = "audit.json"


@dataclass(frozen=True, slots=True)
class Registry:
    """What is known of one table; identity: tells it from another table of the same name."""

    store: Store
    identity: str

    def setup(self) -> dict[str, Any] | None:
        """What was noted when the index was built; None if that is not known."""
        return self._read(SETUP)

    def note_setup(self, before: Mapping[str, Any], sentinel: Sentinel) -> None:
        """Note where sentinels go, and what the table was like, unless that is known.

        A build may begin again, after it has changed the table.
        """
        known = self.setup()
        shape = before if known is None else known["before"]
        self._write(SETUP, {"before": shape, "sentinel": sentinel.to_json()})

    def note_emptied(self) -> None:
        """All sentinels are deleted; what is left of a removal is the index."""
        self._write(SETUP, {**(self.setup() or {"before": None}), "emptied": True})

    def audit(self) -> dict[str, Any] | None:
        """The last audit; None if there was none."""
        return self._read(AUDIT)

    def note_audit(self, report: Mapping[str, Any]) -> None:
        """Note what an audit has found, without its examples."""
        self._write(AUDIT, without_examples(report))

    def void_audit(self) -> None:
        """No audit counts from now on: what it has found to be true is about to be changed."""
        self.store.delete(AUDIT)

    def check_writable(self) -> None:
        """Raises CannotStart if nothing can be noted: better before a long walk than after it."""
        if isinstance(self.store, Directory):
            self.store.make()
            if not os.access(self.store.path, os.W_OK):
                raise CannotStart(
                    f"{self.store.path} cannot be written: set XDG_STATE_HOME to a folder of yours."
                )

    def forget(self) -> None:
        """The index is gone."""
        self.store.delete(SETUP)
        self.store.delete(AUDIT)

    def _read(self, name: str) -> dict[str, Any] | None:
        # What cannot be read says nothing: then the keys are found without the index.
        try:
            state = json.loads(self.store.read(name) or b"null")
        except (ValueError, OSError):
            return None
        is_ours = isinstance(state, dict) and state.get("identity") == self.identity
        return dict(state) if is_ours else None

    def _write(self, name: str, content: Mapping[str, Any]) -> None:
        state = {"identity": self.identity, **content}
        self.store.replace(name, (json.dumps(state, ensure_ascii=False) + "\n").encode())


def without_examples(report: Mapping[str, Any]) -> dict[str, Any]:
    """A report that holds no keys."""
    return {name: value for name, value in report.items() if name != "examples"}


def folder_of(table: Table) -> str:
    """The name of a registry's folder; it tells apart tables of one name in two accounts."""
    name = re.sub(r"[^A-Za-z0-9_-]", "_", table.bare_name)  # and no name leads anywhere else
    return f"{name}-{hashlib.sha256(table.identity.encode()).hexdigest()[:12]}"


def local_registry(table: Table) -> Registry:
    """The command line's registry of a table."""
    base = os.environ.get("XDG_STATE_HOME") or str(Path.home() / ".local" / "state")
    path = Path(base) / "keyhop" / "key-index" / folder_of(table)
    return Registry(Directory(path), table.identity)
