"""The files of a run in a store: their names, and how they are written and read."""

import gzip
import hashlib
import io
import json
import re
import uuid
import zlib
from collections import Counter, defaultdict
from collections.abc import Container, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from itertools import islice
from typing import Any

from keyhop.dynamodb.values import Key
from keyhop.errors import BrokenPromise, RunConflict
from keyhop.jobs.formats import BUCKET, SUFFIX, Encoder
from keyhop.jobs.model import Block, Commit, Part, RunPlan
from keyhop.storage.store import CHUNK_BYTES, PartFile, Store

_HARMED = (zlib.error, gzip.BadGzipFile, EOFError, ValueError, LookupError, AttributeError)
PLAN = "run.json"
MANIFEST = "manifest.json"
PROGRESS = "progress.json"
STALE_INDEX = "stale-index.json"
"""Why a worker could not read the key index that the run reads."""
MOST_WAITING_BYTES = 4 << 20
WAITING_BYTES_PER_BUCKET = 128 << 10
MOST_WAITING_FOR_BUCKETS = 128 << 20
"""The limits of the rows in memory, which are large enough for pieces of a useful size.

Other runs read the pieces of a bucket one by one. With 1,000 buckets, all rows of a slice are
written at once.
"""
COMMIT_NAME = re.compile(r"commits/g(?P<group>\d{5,})-s(?P<slice>\d{6,})\.json")
PART_NAME = re.compile(r"parts/g\d{5,}-s\d{6,}-[0-9a-f]{12}\.(txt|jsonl|csv)(\.gz)?")
GZIP = 31
"""The window size for which zlib writes one gzip member."""

READERS = 16
"""The number of threads that read commits of groups, or pieces of parts."""


class Journal:
    """The files of one run."""

    def __init__(self, store: Store) -> None:
        self.store = store

    def within(self, folder: str) -> "Journal":
        """Return the journal of another run, in a folder of this one."""
        return Journal(self.store.within(folder))

    def plan(self) -> RunPlan | None:
        """Return the plan of the run, or None if no run was begun in this store."""
        state = self.load(PLAN)
        try:
            return None if state is None else RunPlan.from_json(state, self.store.url(PLAN))
        except (KeyError, TypeError, AttributeError, ValueError) as error:
            raise RunConflict(f"{PLAN} is there, but is not the plan of a run.") from error

    def begin(self, plan: RunPlan) -> bool:
        """Write the plan; return False if another run was begun here first."""
        return self.keep_first(PLAN, plan.to_json())

    def manifest(self) -> dict[str, Any] | None:
        """Return the manifest of the run, or None if the run is not finished."""
        state = self.load(MANIFEST)
        return dict(state) if state and state["finished"] else None

    def is_finished(self) -> bool:
        return self.manifest() is not None

    def write_summary(self, summary: dict[str, Any]) -> None:
        """Write a summary over the previous one: the manifest if the run is finished.

        The summary of an unfinished run has another name. So a late writer that does not know that
        the run is finished cannot replace the manifest.
        """
        self.keep(MANIFEST if summary["finished"] else PROGRESS, summary)

    def forget_progress(self) -> None:
        self.store.delete(PROGRESS)

    def commits(self, group: int) -> Iterator[Commit]:
        number = 0
        while (commit := self.commit_of(group, number)) is not None:
            yield commit
            if commit.finished:
                return
            number += 1

    def commits_of(self, groups: Iterable[int]) -> Iterator[Commit]:
        """Yield the commits of several groups, which are read concurrently."""
        with ThreadPoolExecutor(READERS) as pool:
            for commits in pool.map(lambda group: list(self.commits(group)), groups):
                yield from commits

    def commit_of(self, group: int, number: int) -> Commit | None:
        """Return the commit of a slice, or None if the slice is not committed."""
        name = _commit_name(group, number)
        state = self.load(name)
        if state is None:
            return None
        try:
            commit = Commit.from_json(state)
        except (KeyError, TypeError, AttributeError, ValueError) as error:
            raise BrokenPromise(f"{name} is damaged: it is not a commit.") from error
        if (commit.group, commit.slice) != (group, number):
            raise BrokenPromise(f"{name} is damaged: it is the commit of another slice.")
        return commit

    def commit(self, commit: Commit) -> bool:
        """Commit a slice; return False if another attempt was first, so that its commit counts."""
        name = _commit_name(commit.group, commit.slice)
        if self.keep_first(name, commit.to_json()):
            return True
        # A store can create the file and lose the response. Its retry then reports that another
        # attempt was first, although the file is this attempt's.
        winner = self.commit_of(commit.group, commit.slice)
        return winner is not None and winner.attempt == commit.attempt

    def new_part(self, plan: RunPlan, group: int, number: int, attempt: str = "") -> "PartSink":
        """Return the receiver of the keys of one attempt at a slice, with a new name by default."""
        attempt = attempt or new_attempt()
        name = f"parts/g{group:05}-s{number:06}-{attempt}.{SUFFIX[plan.format]}"
        encoder = Encoder(plan.format, plan.space)
        if not plan.gzip:
            return PartSink(self.store, name, encoder, buckets=plan.buckets)
        compressor = zlib.compressobj(wbits=GZIP)
        return PartSink(self.store, f"{name}.gz", encoder, compressor)

    def pieces(self, plan: RunPlan, spans: Iterable[tuple[str, int, int]]) -> Iterator[Key]:
        """Yield the rows of blocks, in the order of `spans`.

        Only the checksum of a whole part exists, so this cannot check that the rows are those that
        were committed.

        Args:
            spans: The part, the position and the size of each block. Parts are not compressed.

        Raises:
            BrokenPromise: A block is missing or is not readable.
        """
        encoder = Encoder(plan.format, plan.space)
        remaining = iter(spans)
        with ThreadPoolExecutor(READERS) as pool:
            while some := list(islice(remaining, READERS)):
                for (name, _, size), content in zip(some, pool.map(self._span, some), strict=True):
                    if content is None or len(content) != size:
                        raise _broken(name)
                    try:
                        yield from encoder.decode(content)
                    except _HARMED as error:
                        raise _broken(name) from error

    def _span(self, span: tuple[str, int, int]) -> bytes | None:
        return self.store.span(*span)

    def keys(
        self, plan: RunPlan, part: Part, segments: Container[int] | None = None
    ) -> Iterator[tuple[int, Key]]:
        """Yield the keys of a part with their segments, or only those of `segments`.

        Raises BrokenPromise, at the end or before, if the part differs from the committed one.
        """
        encoder = Encoder(plan.format, plan.space)
        lines = self._lines(plan, part)
        try:
            lines.read(part.header)
            for block in part.blocks:
                content = lines.read(block.size)
                if segments is None or block.segment in segments:
                    for key in encoder.decode(content):
                        yield block.segment, key
            if lines.read(1):
                raise _broken(part.name)
        except _HARMED as error:
            raise _broken(part.name) from error

    def unpacked(self, plan: RunPlan, part: Part) -> Iterator[bytes]:
        """Yield the lines of a part in chunks; raise BrokenPromise as `keys` does."""
        lines = self._lines(plan, part)
        try:
            while chunk := lines.read(CHUNK_BYTES):
                yield chunk
        except _HARMED as error:
            raise _broken(part.name) from error

    def _lines(self, plan: RunPlan, part: Part) -> Any:
        file: Any = io.BufferedReader(_Bytes(self.content(part)), CHUNK_BYTES)
        return gzip.GzipFile(fileobj=file) if plan.gzip else file

    def commit_files(self) -> Counter[int]:
        """Return the number of commits of each group, even if one is missing between them."""
        names = map(COMMIT_NAME.fullmatch, self.store.sizes("commits"))
        return Counter(int(name["group"]) for name in names if name)

    def check_sizes(self, parts: Iterable[Mapping[str, Any]]) -> None:
        """Raise BrokenPromise unless all `parts` of a manifest exist and have their sizes."""
        sizes: dict[str, dict[str, int]] = {}
        for part in parts:
            folder = part["name"].rpartition("/")[0]
            if folder not in sizes:
                sizes[folder] = self.store.sizes(folder)
            if sizes[folder].get(part["name"]) != part["size"]:
                raise _broken(part["name"])

    def check_content(self, parts: list[Part]) -> None:
        """Read all `parts`; raise BrokenPromise if one differs from the committed part."""
        for part in parts:
            for _ in self.content(part):
                pass

    def sweep(self, parts: Iterable[Part]) -> int:
        """Delete all other parts than `parts`, and return how many there were."""
        names = {part.name for part in parts}
        stray = [
            name
            for name in self.store.sizes("parts")
            if PART_NAME.fullmatch(name) and name not in names
        ]
        for name in stray:
            self.store.delete(name)
        return len(stray)

    def forget_run(self) -> None:
        """Delete the run, in an order that leaves a valid, shorter run if the process is killed."""
        for folder in ("commits", "parts"):
            for name in sorted(self.store.sizes(folder), reverse=True):
                self.store.delete(name)
        self.forget_progress()
        self.store.delete(PLAN)

    def content(self, part: Part) -> Iterator[bytes]:
        """Yield the bytes of a part; raise BrokenPromise at the end if they differ from it."""
        digest = hashlib.sha256()
        for chunk in self.store.chunks(part.name):
            digest.update(chunk)
            yield chunk
        if digest.hexdigest() != part.sha256:
            raise _broken(part.name)

    def keep(self, name: str, state: Any) -> None:
        """Write a JSON file over the previous one."""
        self.store.replace(name, _dump(state))

    def keep_first(self, name: str, state: Any) -> bool:
        """Write a JSON file; return False if there is one already."""
        return self.store.create(name, _dump(state))

    def load(self, name: str) -> Any:
        """Return a JSON file of the run, or None if it does not exist; raise BrokenPromise."""
        content = self.store.read(name)
        if content is None:
            return None
        try:
            return json.loads(content)
        except ValueError as error:
            raise BrokenPromise(f"{name} is damaged: it is not JSON.") from error


def new_attempt() -> str:
    """Return a unique name for an attempt at a slice."""
    return uuid.uuid4().hex[:12]


class PartSink:
    """The receiver of the keys of one attempt at a slice, which writes them to one part.

    Without a key, it writes no part. The keys of a segment are written in blocks, so that a reader
    can find them. After a failed write, all later calls fail too, because the content of the file
    is unknown then.

    Args:
        compressor: Compresses the whole file; None for an uncompressed one.
        buckets: See RunPlan.
    """

    def __init__(
        self,
        store: Store,
        name: str,
        encoder: Encoder,
        compressor: Any = None,
        buckets: int = 0,
    ) -> None:
        self._store = store
        self._name = name
        self._encoder = encoder
        self._compressor = compressor
        self._buckets = buckets
        waiting = max(MOST_WAITING_BYTES, buckets * WAITING_BYTES_PER_BUCKET)
        self._most_waiting = min(waiting, MOST_WAITING_FOR_BUCKETS)
        self._file: PartFile | None = None
        self._sha256 = hashlib.sha256()
        self._size = 0
        self._header = b""
        self._blocks: list[Block] = []
        self._gathered: dict[int, list[tuple[bytes, int]]] = defaultdict(list)
        self._waiting = 0
        self._failure: BaseException | None = None

    def write(self, segment: int, keys: Sequence[Key]) -> int:
        """Take keys of a segment, and return how many there were."""
        if self._buckets:
            for bucket, rows in _by_bucket(keys).items():
                self._gather(bucket, rows)
        elif keys:
            self._gather(segment, keys)
        if self._waiting >= self._most_waiting:
            self._flush()
        return len(keys)

    def _gather(self, place: int, keys: Sequence[Key]) -> None:
        lines = self._encoder.encode(keys)
        self._gathered[place].append((lines, len(keys)))
        self._waiting += len(lines)

    def close(self) -> tuple[Part, ...]:
        """Return the part, which is durable now; empty if there was no key."""
        self._flush()
        if self._file is None:
            return ()
        with self._noting_failure():
            if self._compressor is not None:
                self._put(self._compressor.flush())
            self._file.close()
        digest = self._sha256.hexdigest()
        return (Part(self._name, self._size, digest, len(self._header), tuple(self._blocks)),)

    def _flush(self) -> None:
        with self._noting_failure():
            if self._gathered and self._file is None:
                self._file = self._store.open_part(self._name)
                self._header = self._encoder.header()
                self._append(self._header)
            for segment, pieces in self._gathered.items():
                block = b"".join(lines for lines, _ in pieces)
                self._append(block)
                self._blocks.append(Block(segment, sum(n for _, n in pieces), len(block)))
        self._gathered.clear()
        self._waiting = 0

    @contextmanager
    def _noting_failure(self) -> Iterator[None]:
        if self._failure is not None:
            raise self._failure
        try:
            yield
        except BaseException as error:
            self._failure = error
            raise

    def _append(self, content: bytes) -> None:
        self._put(content if self._compressor is None else self._compressor.compress(content))

    def _put(self, content: bytes) -> None:
        assert self._file is not None
        self._file.write(content)
        self._sha256.update(content)
        self._size += len(content)


def _by_bucket(rows: Sequence[Key]) -> dict[int, list[Key]]:
    buckets: dict[int, list[Key]] = defaultdict(list)
    for row in rows:
        buckets[int(row[BUCKET]["N"])].append(row)
    return buckets


class _Bytes(io.RawIOBase):
    """A readable file of the bytes of chunks of any size."""

    def __init__(self, chunks: Iterator[bytes]) -> None:
        self._chunks = chunks
        self._waiting = b""

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        self._waiting = self._waiting or next(self._chunks, b"")
        piece, self._waiting = self._waiting[: len(buffer)], self._waiting[len(buffer) :]
        buffer[: len(piece)] = piece
        return len(piece)


def _broken(part: str) -> BrokenPromise:
    return BrokenPromise(
        f"{part} is not as it was committed, so its keys may be lost: run again into another place."
    )


def _commit_name(group: int, number: int) -> str:
    return f"commits/g{group:05}-s{number:06}.json"


def _dump(state: Any) -> bytes:
    return (json.dumps(state, ensure_ascii=False) + "\n").encode()
