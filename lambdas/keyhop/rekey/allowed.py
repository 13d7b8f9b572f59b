"""The pairs that a deployment may re-key (setting `rekey`), for its roles and functions. Pure."""

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from keyhop.checks import hint
from keyhop.errors import CannotStart
from keyhop.rekey.control import Direction
from keyhop.rekey.pair import SIDE_SUFFIX, Pair


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
        f"The table {table} is in no pair of the field rekey of this deployment; {suggestion}"
    )


def pair_of_stream(pairs: Sequence[Allowed], stream: str) -> tuple[Allowed, Direction]:
    """Return the pair of a stream's ARN, and the direction that replicates from its table."""
    table = stream.partition("/stream/")[0].rpartition("/")[2]
    pair = allowed_pair(pairs, table)
    return pair, "forward" if table == pair.source else "reverse"
