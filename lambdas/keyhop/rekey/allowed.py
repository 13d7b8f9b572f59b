"""Which pairs of tables a deployment may re-key: its setting `rekey`. Pure.

The same shape is read from the context, where the roles are made of it, and by the functions.
"""

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from keyhop.checks import hint
from keyhop.errors import CannotStart
from keyhop.rekey.control import Direction
from keyhop.rekey.pair import SIDE_SUFFIX, Pair


def code_digest(code: str) -> str:
    """Of the text of a file with functions, as hexadecimal SHA-256."""
    return hashlib.sha256(code.encode()).hexdigest()


@dataclass(frozen=True, slots=True)
class Allowed:
    """One pair, by the names of its tables. code: the digest of the one file whose functions may
    run for it; empty: none may.
    """

    source: str
    destination: str
    code: str = ""

    @property
    def side(self) -> str:
        """The side table's name."""
        return self.destination + SIDE_SUFFIX

    def to_json(self) -> dict[str, Any]:
        """What a function is told."""
        told = {"source": self.source, "destination": self.destination}
        return {**told, "code": self.code} if self.code else told

    def check(self, pair: Pair) -> None:
        """Raises CannotStart for a plan of other tables, or with functions that are not deployed.

        The text of functions lies in the side table; what runs is what was there at synth.
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
    """The pair that the table is the source or the destination of; raises CannotStart."""
    for pair in pairs:
        if table in (pair.source, pair.destination):
            return pair
    known = [name for pair in pairs for name in (pair.source, pair.destination)]
    meant = hint(table, known) or "it has " + ", ".join(known) if known else "it has none"
    raise CannotStart(
        f"The table {table} is in no pair of the field rekey of this deployment; {meant}"
    )


def pair_of_stream(pairs: Sequence[Allowed], stream: str) -> tuple[Allowed, Direction]:
    """Of a stream's ARN: its pair, and the direction that replicates from its table."""
    table = stream.partition("/stream/")[0].rpartition("/")[2]
    pair = allowed_pair(pairs, table)
    return pair, "forward" if table == pair.source else "reverse"
