"""A run's files in memory: for a run whose keys go elsewhere, and that cannot be resumed."""

from collections.abc import Iterator
from dataclasses import dataclass, field


@dataclass(slots=True)
class Memory:
    """A store that ends with the process."""

    files: dict[str, bytes] = field(default_factory=dict)

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

    def open_part(self, name: str) -> "_MemoryPart":
        return _MemoryPart(self, name)

    def sizes(self, folder: str) -> dict[str, int]:
        return {n: len(c) for n, c in self.files.items() if n.startswith(f"{folder}/")}

    def delete(self, name: str) -> None:
        self.files.pop(name, None)


@dataclass(slots=True)
class _MemoryPart:
    store: Memory
    name: str
    content: bytearray = field(default_factory=bytearray)

    def write(self, content: bytes) -> None:
        self.content += content

    def close(self) -> None:
        self.store.files[self.name] = bytes(self.content)
