"""Where a run keeps its files: a few operations that a directory and a bucket both can do.

Everything above relies on two of them. `create` is atomic and exclusive: of any number of writers
that create the same name, one succeeds, and no reader ever sees half of what it wrote. `swap` is so
too: of any number of writers that have seen the same version, one succeeds.
"""

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Protocol

CHUNK_BYTES = 1 << 20


@dataclass(frozen=True, slots=True)
class Version:
    """A file as it stands. tag: another one for other content. age: seconds since it was written,
    by the store's own clock.
    """

    content: bytes
    tag: str
    age: float


class Store(Protocol):
    """Files by name; a name may hold slashes."""

    def within(self, folder: str) -> "Store":
        """The files in a folder, as a store of its own."""

    def url(self, name: str) -> str:
        """Where a file is, for people and programs."""

    def create(self, name: str, content: bytes) -> bool:
        """Write a file as a whole if it is not there yet; else False."""

    def replace(self, name: str, content: bytes) -> None:
        """Write a file as a whole, whether it is there or not."""

    def read(self, name: str) -> bytes | None:
        """A file's content; None if there is no such file."""

    def chunks(self, name: str) -> Iterator[bytes]:
        """A file's content bit by bit; nothing if there is no such file."""

    def span(self, name: str, start: int, size: int) -> bytes | None:
        """So many bytes of a file, or what there is of them; None if there is no such file."""

    def open_part(self, name: str) -> "PartFile":
        """A new file, to be written bit by bit."""

    def sizes(self, folder: str) -> dict[str, int]:
        """The files in a folder: bytes by name."""

    def delete(self, name: str) -> None:
        """Remove a file, if it is there."""

    def look(self, name: str) -> Version | None:
        """A file with its version; None if there is no such file."""

    def swap(self, name: str, content: bytes, tag: str | None) -> bool:
        """Write a file if its version is still `tag` (None: if it is not there).

        False: it is another one. Then that may be one's own, if an answer was lost.
        """


class PartFile(Protocol):
    """A file that grows; it counts for nothing until something names it."""

    def write(self, content: bytes) -> None:
        """Append."""

    def close(self) -> None:
        """Make sure that the content would survive a crash."""


@dataclass(slots=True)
class Memory:
    """For a run whose keys go elsewhere, and that cannot be resumed."""

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
        there = self.look(name)
        if (there and there.tag) != tag:
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
