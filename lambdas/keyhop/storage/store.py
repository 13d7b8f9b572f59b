"""Where a run keeps its files: a few operations that a directory and a bucket both can do.

Everything above relies on one of them: `create` is atomic and exclusive. Of any number of writers
that create the same name, one succeeds, and no reader ever sees half of what it wrote.
"""

from collections.abc import Iterator
from typing import Protocol

CHUNK_BYTES = 1 << 20


class Store(Protocol):
    """Files by name; a name may hold slashes."""

    def url(self, name: str) -> str:
        """Where a file is, for people and programs."""

    def create(self, name: str, content: bytes) -> bool:
        """Write a file that is not there yet, as a whole; False if it is there."""

    def replace(self, name: str, content: bytes) -> None:
        """Write a file as a whole, whether it is there or not."""

    def read(self, name: str) -> bytes | None:
        """A file's content; None if there is no such file."""

    def chunks(self, name: str) -> Iterator[bytes]:
        """A file's content bit by bit; nothing if there is no such file."""

    def open_part(self, name: str) -> "PartFile":
        """A new file, to be written bit by bit."""

    def sizes(self, folder: str) -> dict[str, int]:
        """The files in a folder: bytes by name."""

    def delete(self, name: str) -> None:
        """Remove a file, if it is there."""


class PartFile(Protocol):
    """A file that grows; it counts for nothing until something names it."""

    def write(self, content: bytes) -> None:
        """Append."""

    def close(self) -> None:
        """Make sure that the content would survive a crash."""
