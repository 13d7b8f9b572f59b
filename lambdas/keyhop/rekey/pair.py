"""The plan of a re-key, and the pairs of tables that a deployment may re-key. Pure.

`create` writes the plan once, as the item `plan` of the side table, and everything else uses that
item. The setting `rekey` of a deployment has the pairs for its roles and functions.
"""

import hashlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

from keyhop.checks import hint
from keyhop.errors import CannotStart
from keyhop.rekey.control import Direction, Side

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


def code_digest(code: str) -> str:
    """Return the SHA-256 digest, in hexadecimal, of the text of a file with functions."""
    return hashlib.sha256(code.encode()).hexdigest()


@dataclass(frozen=True, slots=True)
class Allowed:
    """One pair of tables that may be re-keyed. `code` is the digest of the only file whose
    functions may run for the pair; empty if none may.
    """

    source: str
    destination: str
    code: str = ""

    @property
    def side(self) -> str:
        """Return the side table's name."""
        return self.destination + SIDE_SUFFIX

    def to_json(self) -> dict[str, Any]:
        """Return the pair as JSON, for a function's settings."""
        names = {"source": self.source, "destination": self.destination}
        return {**names, "code": self.code} if self.code else names

    def check(self, pair: Pair) -> None:
        """Raise CannotStart if a plan is for other tables, or its functions are not deployed: the
        side table holds their text, but the code that runs is the file that was deployed at synth.
        """
        if (pair.source, pair.destination) != (self.source, self.destination):
            raise CannotStart(
                f"The plan beside {self.destination} is one of {pair.source} to "
                f"{pair.destination}, and not of {self.source}: re-key them by another deployment."
            )
        if pair.code and code_digest(pair.code) != self.code:
            what = "another file" if self.code else "no file"
            raise CannotStart(
                f"The plan of {self.source} to {self.destination} has functions, and {what} is "
                f'deployed for it: name the file as "transform" of this pair in the field rekey '
                f"of keyhop.json, and deploy again."
            )


def allowed_pair(pairs: Sequence[Allowed], table: str) -> Allowed:
    """Return the pair that has the table as its source or destination, or raise CannotStart."""
    for pair in pairs:
        if table in (pair.source, pair.destination):
            return pair
    names = [name for pair in pairs for name in (pair.source, pair.destination)]
    suggestion = hint(table, names) or "it has " + ", ".join(names) if names else "it has none"
    raise CannotStart(
        f"The table {table} is not in a pair of the field rekey of this deployment; {suggestion}"
    )


def pair_of_stream(pairs: Sequence[Allowed], stream: str) -> tuple[Allowed, Direction]:
    """Return the pair of a stream's ARN, and the direction that replicates from its table."""
    table = stream.partition("/stream/")[0].rpartition("/")[2]
    pair = allowed_pair(pairs, table)
    return pair, "forward" if table == pair.source else "reverse"
