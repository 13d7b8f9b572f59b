"""Logical and physical partition keys: `"/f.txt"` and `"/f.txt_3"`. Pure.

A physical key is the logical key, the separator, and the shard's number in decimal, without leading
zeros. Every item of a sharded table has a physical key, those of the first shard too. So a physical
key has exactly one reading: its number is all of the digits at its end, as a separator holds no
digit. A logical key may itself end in separator and digits: `"a_1"` in shard 2 is `"a_1_2"`, which
is no shard of `"a"`.
"""

import re
from dataclasses import dataclass

from keyhop.dynamodb.values import KeyType, TypedValue
from keyhop.errors import CannotStart

DEFAULT_SEPARATOR = "_"
MOST_SHARDS = 1000
"""No logical key has more; so a suffix has at most four digits."""
MOST_KEY_BYTES = 2048
"""Of a partition key, says AWS's documentation."""

_NUMBER = re.compile(rb"[1-9][0-9]{0,3}\Z")
_SEPARATOR = re.compile(r"[!-/:-~]{1,16}")


@dataclass(frozen=True, slots=True)
class Names:
    """How the physical keys of one table are written. type: of its partition key.

    Raises CannotStart for a type or a separator that allows no suffix.
    """

    type: KeyType = "S"
    separator: str = DEFAULT_SEPARATOR

    def __post_init__(self) -> None:
        if self.type == "N":
            raise CannotStart(
                "The partition key is a number (N), which cannot carry a shard's suffix: only "
                "tables with a string (S) or binary (B) partition key can be sharded."
            )
        if not _SEPARATOR.fullmatch(self.separator):
            raise CannotStart(
                f"The separator {self.separator!r} is not possible: it must be 1 to 16 printable "
                "ASCII characters, with no digits and no spaces."
            )

    def physical(self, logical: TypedValue, shard: int) -> dict[str, str | bytes]:
        """The typed value of a shard's partition key; raises CannotStart if it is too long."""
        content = logical.get(self.type)
        if not isinstance(content, str if self.type == "S" else bytes):
            kind = "a text" if self.type == "S" else "bytes"
            raise CannotStart(f"A partition key of this table must be {kind}.")
        whole = content.encode() if isinstance(content, str) else content
        most = MOST_KEY_BYTES - len(self.separator) - len(str(MOST_SHARDS))
        if not 1 <= len(whole) <= most:
            raise CannotStart(
                f"A logical key must have 1 to {most} bytes, as a shard's suffix follows it; this "
                f"one has {len(whole)}."
            )
        whole = b"%b%b%d" % (whole, self.separator.encode(), shard)
        return {self.type: whole if self.type == "B" else whole.decode()}

    def parsed(self, physical: TypedValue) -> tuple[dict[str, str | bytes], int] | None:
        """Logical key and shard of a physical key; None for one that has no suffix."""
        content = physical.get(self.type)
        if content is None:
            return None
        whole = content.encode() if isinstance(content, str) else bytes(content)
        before, separator, digits = whole.rpartition(self.separator.encode())
        if not separator or not before or not _NUMBER.match(digits) or int(digits) > MOST_SHARDS:
            return None
        return {self.type: before if self.type == "B" else before.decode()}, int(digits)


def metadata_of(table: str, stack: str) -> str:
    """The name of a table's shard-metadata table, unless the deployment says otherwise."""
    return f"{stack}-shards-{table}"
