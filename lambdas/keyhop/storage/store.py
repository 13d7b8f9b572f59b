"""The storage of a run's files: the operations that a directory and a bucket have in common.

The rest of Keyhop relies on two of them. `create` is atomic and exclusive: if several writers
create the same name, one of them succeeds, and no reader sees an incomplete file. `swap` is atomic
and exclusive too: if several writers have seen the same version, one of them succeeds.
"""

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Protocol

CHUNK_BYTES = 1 << 20


@dataclass(frozen=True, slots=True)
class Version:
    """A version of a file: another content has another `tag`.

    The `age` is in seconds since the file was written, by the clock of the store.
    """

    content: bytes
    tag: str
    age: float


class Store(Protocol):
    """Files by name. A name may have slashes."""

    def within(self, folder: str) -> "Store":
        """Return the files of a folder as a store."""

    def url(self, name: str) -> str:
        """Return the address of a file."""

    def create(self, name: str, content: bytes) -> bool:
        """Write a new file; return False if it exists already."""

    def replace(self, name: str, content: bytes) -> None:
        """Write a file, whether or not it exists."""

    def read(self, name: str) -> bytes | None:
        """Return the content of a file; None if it does not exist."""

    def chunks(self, name: str) -> Iterator[bytes]:
        """Yield the content of a file in chunks; nothing if it does not exist."""

    def span(self, name: str, start: int, size: int) -> bytes | None:
        """Return up to `size` bytes of a file; None if it does not exist."""

    def open_part(self, name: str) -> "PartFile":
        """Create a file that is written in chunks."""

    def sizes(self, folder: str) -> dict[str, int]:
        """Return the sizes of the files in a folder, in bytes, by their names."""

    def delete(self, name: str) -> None:
        """Delete a file if it exists."""

    def look(self, name: str) -> Version | None:
        """Return the present version of a file; None if it does not exist."""

    def swap(self, name: str, content: bytes, tag: str | None) -> bool:
        """Write a file if its version still has this tag; None: if it does not exist.

        Returns:
            False if the version is another one. If an answer was lost, it may be the caller's.
        """


class PartFile(Protocol):
    """A file that is written in chunks. It has no effect until another file names it."""

    def write(self, content: bytes) -> None:
        """Append content."""

    def close(self) -> None:
        """Close the file, and make sure that a crash does not lose its content."""


@dataclass(slots=True)
class Memory:
    """A store in memory, for a run that cannot be resumed and whose keys are not stored."""

    files: dict[str, bytes] = field(default_factory=dict)
    folders: dict[str, "Memory"] = field(default_factory=dict)

    def within(self, folder: str) -> "Memory":
        return self.folders.setdefault(folder, Memory())

    def url(self, name: str) -> str:
        return name

    def create(self, name: str, content: bytes) -> bool:
        return self.files.setdefault(name, content) is content

    def replace(self, name: str, content: bytes) -> None:
        self.files[name] = content

    def read(self, name: str) -> bytes | None:
        return self.files.get(name)

    def chunks(self, name: str) -> Iterator[bytes]:
        if name in self.files:
            yield self.files[name]

    def span(self, name: str, start: int, size: int) -> bytes | None:
        content = self.read(name)
        return None if content is None else content[start : start + size]

    def open_part(self, name: str) -> "_MemoryPart":
        return _MemoryPart(self, name)

    def sizes(self, folder: str) -> dict[str, int]:
        return {n: len(c) for n, c in self.files.items() if n.startswith(f"{folder}/")}

    def delete(self, name: str) -> None:
        self.files.pop(name, None)

    def look(self, name: str) -> Version | None:
        content = self.files.get(name)
        return None if content is None else Version(content, content.hex(), 0.0)

    def swap(self, name: str, content: bytes, tag: str | None) -> bool:
        present = self.look(name)
        if (present and present.tag) != tag:
            return False
        self.files[name] = content
        return True


@dataclass(slots=True)
class _MemoryPart:
    store: Memory
    name: str
    content: bytearray = field(default_factory=bytearray)

    def write(self, content: bytes) -> None:
        self.content += content

    def close(self) -> None:
        self.store.files[self.name] = bytes(self.content)
