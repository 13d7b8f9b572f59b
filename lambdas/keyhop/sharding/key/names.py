"""Logical and physical partition keys: `"/f.txt"` and `"/f.txt_3"`. Pure.

A physical key is the logical key, the separator, and the shard's number in decimal, without leading
zeros; also in the first shard. A separator has no digits, so each physical key has one meaning. A
logical key may itself end like one: `"a_1"` in shard 2 is `"a_1_2"`, which is not a shard of `"a"`.
"""

import re
from dataclasses import dataclass

from keyhop.dynamodb.values import KeyType, TypedValue
from keyhop.errors import CannotStart

DEFAULT_SEPARATOR = "_"
MOST_SHARDS = 1000
"""The maximum number of shards of a key, so that a suffix has at most four digits."""
MOST_KEY_BYTES = 2048
"""The maximum size of a partition key (AWS documentation)."""

_NUMBER = re.compile(rb"[1-9][0-9]{0,3}\Z")
_SEPARATOR = re.compile(r"[!-/:-~]{1,16}")


@dataclass(frozen=True, slots=True)
class Names:
    """The form of a table's physical keys. Raises CannotStart for a type of the partition key or a
    separator that does not allow suffixes.
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
        """Return the typed key of a shard. Raise CannotStart if it is too long."""
        content = logical.get(self.type)
        if not isinstance(content, str if self.type == "S" else bytes):
            kind = "a text" if self.type == "S" else "bytes"
            raise CannotStart(f"A partition key of this table must be {kind}.")
        data = content.encode() if isinstance(content, str) else content
        maximum = MOST_KEY_BYTES - len(self.separator) - len(str(MOST_SHARDS))
        if not 1 <= len(data) <= maximum:
            raise CannotStart(
                f"A logical key must have 1 to {maximum} bytes, as a shard's suffix follows it; "
                f"this one has {len(data)}."
            )
        data = b"%b%b%d" % (data, self.separator.encode(), shard)
        return {self.type: data if self.type == "B" else data.decode()}

    def parsed(self, physical: TypedValue) -> tuple[dict[str, str | bytes], int] | None:
        """Return the logical key and the shard of a physical key; None if it has no suffix."""
        content = physical.get(self.type)
        if content is None:
            return None
        data = content.encode() if isinstance(content, str) else bytes(content)
        before, separator, digits = data.rpartition(self.separator.encode())
        if not separator or not before or not _NUMBER.match(digits) or int(digits) > MOST_SHARDS:
            return None
        return {self.type: before if self.type == "B" else before.decode()}, int(digits)


def metadata_of(table: str, stack: str) -> str:
    """Return the default name of a table's shard-metadata table."""
    return f"{stack}-shards-{table}"
