"""The form in which a report writes keys: as digests by default. Pure.

A digest is keyed by the table's identity. So a key has the same digest in each report of the table,
which makes reports comparable, and another digest in another table. A reader who knows the identity
and guesses a key can see whether it exists. Digests of short keys cannot hide that.
"""

import hashlib
from dataclasses import dataclass
from typing import Literal

from keyhop.dynamodb.values import Key, distinct_bytes, plain, text_of
from keyhop.report.forms import tag_of

ShowKeys = Literal["digest", "prefix", "full"]
SHOW_KEYS: tuple[ShowKeys, ...] = ("digest", "prefix", "full")

DIGEST_BYTES = 6
"""There are 2 ** 48 digests, so of a million keys hardly two share one."""

PREFIX = 4
"""The characters of a key without a type tag that a prefix shows."""


@dataclass(frozen=True, slots=True)
class Shower:
    """Writes the keys of one table, and of its indexes.

    Attributes:
        identity: See Table.identity.
        how: The form of the keys.
    """

    identity: str
    how: ShowKeys = "digest"

    def digest(self, key: Key) -> str:
        """Return a digest of the values in the order of their names; equal numbers are equal."""
        secret = hashlib.sha256(self.identity.encode()).digest()
        digest = hashlib.blake2b(digest_size=DIGEST_BYTES, key=secret)
        for name in sorted(key):
            digest.update(distinct_bytes(key[name]))
        return digest.hexdigest()

    def shown(self, key: Key) -> str:
        """Return a key in the form that the report may show."""
        if self.how == "digest":
            return self.digest(key)
        if self.how == "full":
            return " ".join(str(plain(key[name])) for name in sorted(key))
        return f"{self._prefix(key)}…{self.digest(key)}"

    def _prefix(self, key: Key) -> str:
        value = key[min(key)]
        text = bytes(value["B"]).hex() if "B" in value else text_of(value)
        tag = tag_of(text) if "S" in value else ""
        return text[: len(tag) + 1] if tag else text[:PREFIX]
