"""What is re-keyed: two tables, the side table beside them, and the template between them. Pure.

It is written down once, by `create`, as the item `plan` of the side table; all else goes by that.
"""

import hashlib
import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any

from keyhop.rekey.control import Side

SIDE_SUFFIX = ".rekey"
"""The side table is called as the destination, with this at the end."""


@dataclass(frozen=True, slots=True)
class Pair:
    """source, destination: names of tables. template: as its file has it, parsed (a JSON object).

    code: the text of the file with functions, if the template names one; else empty.
    """

    source: str
    destination: str
    template: Mapping[str, Any]
    code: str = ""

    @property
    def side(self) -> str:
        """The side table's name."""
        return self.destination + SIDE_SUFFIX

    def table(self, side: Side) -> str:
        """The name of the source, or of the destination."""
        return self.source if side == "source" else self.destination

    @property
    def digest(self) -> str:
        """Of the template and its functions: another one is another plan."""
        whole = json.dumps([self.template, self.code], sort_keys=True, separators=(",", ":"))
        return hashlib.sha256(whole.encode()).hexdigest()

    def to_json(self) -> dict[str, Any]:
        return {**asdict(self), "digest": self.digest}

    @classmethod
    def from_json(cls, told: Mapping[str, Any]) -> "Pair":
        return cls(told["source"], told["destination"], told["template"], told.get("code", ""))
