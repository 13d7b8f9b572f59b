"""The plan of a re-key: its two tables, its side table and its template. Pure.

`create` writes it once, as the item `plan` of the side table, and everything else uses that item.
"""

import hashlib
import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any

from keyhop.rekey.control import Side

SIDE_SUFFIX = ".rekey"
"""The side table is named like the destination, with this suffix."""


@dataclass(frozen=True, slots=True)
class Pair:
    """The plan of a re-key: the template's content, and the text of its functions, if any."""

    source: str
    destination: str
    template: Mapping[str, Any]
    code: str = ""

    @property
    def side(self) -> str:
        """Return the side table's name."""
        return self.destination + SIDE_SUFFIX

    def table(self, side: Side) -> str:
        """Return the name of the source or of the destination."""
        return self.source if side == "source" else self.destination

    @property
    def digest(self) -> str:
        """Return the digest of the template and its functions: plans with other ones differ."""
        text = json.dumps([self.template, self.code], sort_keys=True, separators=(",", ":"))
        return hashlib.sha256(text.encode()).hexdigest()

    def to_json(self) -> dict[str, Any]:
        return {**asdict(self), "digest": self.digest}

    @classmethod
    def from_json(cls, content: Mapping[str, Any]) -> "Pair":
        return cls(
            content["source"], content["destination"], content["template"], content.get("code", "")
        )
