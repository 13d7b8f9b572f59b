"""Copy the files of a finished run into a directory like that of keyhop keys --output.

Names of files come from the bucket, so only the names of commits and parts are accepted: a writer
to the bucket cannot have a file written elsewhere. The manifest is copied last. Until then, the
same command continues; it checks existing files by SHA-256, and copies damaged ones again.
"""

from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from itertools import accumulate
from pathlib import Path
from threading import Event
from typing import IO, Any

from keyhop.errors import BrokenPromise, RunConflict, Stopped, StoreUnavailable
from keyhop.jobs.formats import Encoder
from keyhop.jobs.journal import COMMIT_NAME, MANIFEST, PART_NAME, PLAN, Journal, Part
from keyhop.jobs.lifecycle import sum_up
from keyhop.keys.task import FOLDER
from keyhop.public.runs import Progress
from keyhop.public.sinks import FORMATS, ByteSink, KeySink
from keyhop.retries import repeat
from keyhop.storage.local import Directory

FILES_AT_ONCE = 8
MOST_ATTEMPTS = 5
Report = Callable[[Progress], None]


def copy_run(remote: Journal, path: Path, stop: Event, report: Report) -> dict[str, Any]:
    """Copy a finished run, and return its manifest. Raise KeyhopError, or Stopped."""
    manifest = _manifest(remote)
    with _opened(path, remote) as local:
        copies = [_Copy(remote, local, stop)]
        if remote.within(FOLDER).plan() is not None:  # logical keys
            copies.append(_Copy(remote.within(FOLDER), local.within(FOLDER), stop, f"{FOLDER}/"))
        for copy in copies:
            copy.take_commits()
        parts = [named for copy in copies for named in copy.parts()]
        names = {copy.folder + part.name for copy, part in parts}
        if strange := {part["name"] for part in manifest["parts"]} - names:
            raise _no_part(min(strange))
        _take_parts(parts, report)
        for copy in copies:
            if plan := copy.local.plan():
                sum_up(copy.local, plan)
        _take(remote, local, MANIFEST)
    return manifest


def write_keys(remote: Journal, stream: IO[bytes], format_: str, stop: Event) -> dict[str, Any]:
    """Write the keys of a finished run to a stream, and return its manifest. Raise Stopped."""
    manifest, plan = _manifest(remote), remote.plan()
    assert plan is not None
    nested = remote.within(FOLDER)
    journal = remote if nested.plan() is None else nested
    sink = ByteSink(stream, Encoder(FORMATS[format_], plan.space))
    sink.begin()
    for commit in journal.commits_of(sorted(journal.commit_files())):
        for part in commit.parts:
            if stop.is_set():
                raise Stopped
            KeySink.show(sink, journal, plan, [part])  # in another format than that of the part
    return manifest


def _manifest(remote: Journal) -> dict[str, Any]:
    """Return the manifest; raise BrokenPromise if a part is missing."""
    manifest = remote.manifest()
    assert manifest is not None
    remote.check_sizes(manifest["parts"])
    return manifest


def check_is_free(path: Path) -> None:
    """Raise RunConflict if a new run could not be copied into a directory."""
    if path.is_file():
        raise RunConflict(f"{path} is a file: name a directory.")
    if not Directory(path).is_empty():
        raise RunConflict(f"{path} holds other files: name an empty directory, or a new one.")


@contextmanager
def _opened(path: Path, remote: Journal) -> Iterator[Journal]:
    """Lock the directory, with the plan of the run; raise RunConflict, CannotStart."""
    directory = Directory(path)
    if not path.is_dir() or directory.read(PLAN) != remote.store.read(PLAN):
        check_is_free(path)
    directory.make()
    directory.lock()
    try:
        local = Journal(directory)
        if local.plan() is None:
            _take(remote, local, PLAN)
        yield local
    finally:
        directory.unlock()


def _no_part(name: str) -> BrokenPromise:
    return BrokenPromise(
        f"The run's files name {name!r}, which is not part of it: do not use them."
    )


def _take(remote: Journal, local: Journal, name: str) -> None:
    content = remote.store.read(name)
    if content is None:
        raise BrokenPromise(f"{remote.store.url(name)} is missing: the run's files are damaged.")
    local.store.replace(name, content)


@dataclass(frozen=True, slots=True)
class _Copy:
    """A run, or the run in a folder of it that lists logical keys."""

    remote: Journal
    local: Journal
    stop: Event
    folder: str = ""

    def take_commits(self) -> None:
        """Copy the plan, and all commits that are missing."""
        if self.local.plan() is None:
            _take(self.remote, self.local, PLAN)
        local_sizes = self.local.store.sizes("commits")
        sizes = self.remote.store.sizes("commits")
        names = [name for name in sizes if COMMIT_NAME.fullmatch(name)]

        def take(name: str) -> None:
            if self.stop.is_set():
                raise Stopped
            if local_sizes.get(name) != sizes[name]:
                _take(self.remote, self.local, name)

        with ThreadPoolExecutor(FILES_AT_ONCE) as pool:
            list(pool.map(take, names))

    def parts(self) -> Iterator[tuple["_Copy", Part]]:
        """Return the parts of all commits; raise BrokenPromise for a name that is not a part's."""
        for commit in self.local.commits_of(sorted(self.local.commit_files())):
            for part in commit.parts:
                if not PART_NAME.fullmatch(part.name):
                    raise _no_part(part.name)
                yield self, part

    def take_part(self, part: Part) -> int:
        """Copy a part, unless it is complete; begin again when a response breaks off.

        Return its size.
        """
        with suppress(BrokenPromise):
            self.local.check_content([part])
            return part.size
        repeat(
            lambda: self._write(part),
            lambda error: isinstance(error, StoreUnavailable),
            is_enough=lambda error, attempts: attempts >= MOST_ATTEMPTS,
        )
        return part.size

    def _write(self, part: Part) -> None:
        store = self.local.store
        store.delete(part.name)
        file = store.open_part(part.name)
        try:
            for chunk in self.remote.content(part):
                if self.stop.is_set():
                    raise Stopped
                file.write(chunk)
        finally:
            file.close()


def _take_parts(parts: list[tuple[_Copy, Part]], report: Report) -> None:
    total = max(1, sum(part.size for _, part in parts))

    def progress(ended: int, copied: int, is_over: bool = False) -> Progress:
        share = copied / total
        return Progress(
            *(0, None, share, len(parts), ended, 0.0, 0.0, 0), activity="fetching", is_over=is_over
        )

    with ThreadPoolExecutor(FILES_AT_ONCE) as pool:
        sizes = pool.map(lambda pair: pair[0].take_part(pair[1]), parts)
        for ended, copied in enumerate(accumulate(sizes), 1):
            report(progress(ended, copied))
    report(progress(len(parts), total, is_over=True))
