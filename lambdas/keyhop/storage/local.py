"""The files of a run in a local directory: `store.Store` by links and renames."""

import errno
import hashlib
import os
import shutil
import time
import uuid
from collections.abc import Iterator
from pathlib import Path
from typing import IO

from keyhop.errors import CannotStart, RunConflict
from keyhop.storage.store import CHUNK_BYTES, Version

try:
    import fcntl
except ImportError:  # Windows has no fcntl: there, nothing prevents two runs in one directory
    fcntl = None  # type: ignore[assignment]

LIST, UNDO, DIGESTS = BESIDE = ("keys", "undo", "digests")
"""Folders of further runs: the list of keys, the undo of a run, and digests."""

LOCK = ".lock"
ASIDE = ".keyhop-tmp"
NO_LINKS = {errno.EPERM, errno.ENOTSUP, errno.EOPNOTSUPP, errno.ENOSYS}


class Directory:
    """The store in the directory `path`."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._lock: IO[bytes] | None = None
        self._is_new = False

    def within(self, folder: str) -> "Directory":
        return Directory(self.path / folder)

    def is_empty(self) -> bool:
        """Return whether the directory has no run.

        A lock, folders of further runs, and temporary files of a crashed process do not count.
        """
        return not self.path.exists() or all(
            entry.name in (LOCK, *BESIDE) or entry.name.endswith(ASIDE)
            for entry in self.path.iterdir()
        )

    def lock(self) -> None:
        """Lock the directory until `unlock` or the end of this process; raise RunConflict."""
        self._lock = (self.path / LOCK).open("ab")
        if fcntl is not None:
            try:
                fcntl.flock(self._lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except OSError as error:
                self.unlock()
                raise RunConflict(
                    f"Another process is working on {self.path}: wait for it, or choose another."
                ) from error
        for left_by_a_crash in self.path.rglob(f"*{ASIDE}"):
            left_by_a_crash.unlink()

    @property
    def locked_by(self) -> tuple[int, ...]:
        """Return the descriptors of the lock. A process that inherits them holds the lock too."""
        return () if self._lock is None else (self._lock.fileno(),)

    def unlock(self) -> None:
        """Release the lock, and remove the directory if it is new and still empty.

        Processes that inherited the lock, such as forks of the caller's, lose it too.
        """
        if self._lock is not None:
            if fcntl is not None:
                fcntl.flock(self._lock, fcntl.LOCK_UN)
            self._lock.close()
            self._lock = None
        if self._is_new and self.is_empty():
            shutil.rmtree(self.path, ignore_errors=True)

    def make(self) -> None:
        """Create the directory; raise CannotStart if that fails."""
        self._is_new = not self.path.exists()
        try:
            self.path.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise CannotStart(
                f"The directory {self.path} cannot be made: {error.strerror}."
            ) from error

    def url(self, name: str) -> str:
        return str(self.path / name)

    def create(self, name: str, content: bytes) -> bool:
        temporary = self._write_aside(name, content)
        try:
            os.link(temporary, self.path / name)  # fails if the name is taken
        except FileExistsError:
            return False
        except OSError as error:
            if error.errno not in NO_LINKS:
                raise
            raise CannotStart(
                f"The file system of {self.path} has no hard links, which commits rely on: choose "
                f"a directory on another one."
            ) from error
        finally:
            temporary.unlink()
        _sync(self.path / name)
        return True

    def replace(self, name: str, content: bytes) -> None:
        self._write_aside(name, content).replace(self.path / name)
        _sync(self.path / name)

    def read(self, name: str) -> bytes | None:
        try:
            return (self.path / name).read_bytes()
        except FileNotFoundError:
            return None

    def chunks(self, name: str) -> Iterator[bytes]:
        try:
            with (self.path / name).open("rb") as file:
                while chunk := file.read(CHUNK_BYTES):
                    yield chunk
        except FileNotFoundError:
            return

    def span(self, name: str, start: int, size: int) -> bytes | None:
        try:
            with (self.path / name).open("rb") as file:
                file.seek(start)
                return file.read(size)
        except FileNotFoundError:
            return None

    def open_part(self, name: str) -> "_LocalPart":
        return _LocalPart(self._make_folder(name))

    def sizes(self, folder: str) -> dict[str, int]:
        # Temporary files may appear and disappear.
        files = (f for f in (self.path / folder).glob("*") if not f.name.endswith(ASIDE))
        return {f"{folder}/{file.name}": file.stat().st_size for file in files}

    def delete(self, name: str) -> None:
        (self.path / name).unlink(missing_ok=True)

    def look(self, name: str) -> Version | None:
        try:
            with (self.path / name).open("rb") as file:
                content = file.read()
                age = time.time() - os.fstat(file.fileno()).st_mtime
        except FileNotFoundError:
            return None
        return Version(content, hashlib.sha256(content).hexdigest(), max(0.0, age))

    def swap(self, name: str, content: bytes, tag: str | None) -> bool:
        """Write a file if its version has this tag (Store.swap), under a lock of the file."""
        target = self._make_folder(name)
        with target.with_name(f".{target.name}{LOCK}").open("ab") as lock:
            if fcntl is not None:
                fcntl.flock(lock, fcntl.LOCK_EX)
            present = self.look(name)
            if (present and present.tag) != tag:
                return False
            self.replace(name, content)
            return True

    def _write_aside(self, name: str, content: bytes) -> Path:
        target = self._make_folder(name)
        temporary = target.with_name(f".{target.name}.{uuid.uuid4().hex}{ASIDE}")
        try:
            with temporary.open("xb") as file:
                file.write(content)
                file.flush()
                os.fsync(file.fileno())
        except OSError:
            temporary.unlink(missing_ok=True)
            raise
        return temporary

    def _make_folder(self, name: str) -> Path:
        target = self.path / name
        target.parent.mkdir(parents=True, exist_ok=True)
        return target


class _LocalPart:
    def __init__(self, path: Path) -> None:
        self._path = path
        self._file = path.open("xb")

    def write(self, content: bytes) -> None:
        self._file.write(content)

    def close(self) -> None:
        self._file.flush()
        os.fsync(self._file.fileno())
        self._file.close()
        _sync(self._path)


def _sync(path: Path) -> None:
    """Make a new directory entry survive a crash."""
    descriptor = os.open(path.parent, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
