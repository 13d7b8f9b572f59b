"""The files of a run: what they hold, how they are written and read, and what they add up to. Pure.

docs/architecture.md lists the files. The creation of its commit *commits* a slice. A
slice that runs again, runs twice at once or is killed creates no commit, or it loses the race for
it. Then its parts do not count, and the winner's checkpoint is valid. So every key is in exactly
one part that counts.
"""

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
from dataclasses import asdict, dataclass, field, replace
from functools import cache
from typing import Any, Self

from keyhop import __version__
from keyhop.dynamodb.schema import KeySpace
from keyhop.dynamodb.units import US_EAST_1, Prices
from keyhop.dynamodb.usage import Usage
from keyhop.dynamodb.values import Key
from keyhop.errors import BrokenPromise, RunConflict
from keyhop.jobs.formats import BUCKET, SUFFIX, Encoder, Format
from keyhop.jobs.layout import LEAST_BLIND_SHARE, LEAST_SHARE, Method
from keyhop.jobs.price import price
from keyhop.scan.segments import segment_at
from keyhop.scan.skip_scan import Position
from keyhop.storage.store import CHUNK_BYTES, PartFile, Store
from keyhop.wording import counted

LAYOUT_VERSION = 3
MOST_NAMED = 5
MOST_TIMES = 255

HARMED = (zlib.error, gzip.BadGzipFile, EOFError, ValueError, LookupError, AttributeError)
PLAN = "run.json"
MANIFEST = "manifest.json"
PROGRESS = "progress.json"
STALE_INDEX = "stale-index.json"
"""Why a worker could not read the key index that the run reads."""
ANEW = "-anew"
"""The suffix of the name of a run that replaces one whose key index was not trusted."""
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


class Record:
    """A dataclass that is stored as plain JSON, with its fields as names."""

    __slots__ = ()

    def to_json(self) -> dict[str, Any]:
        state: dict[str, Any] = _converter().unstructure(self)
        return state

    @classmethod
    def from_json(cls, state: Mapping[str, Any]) -> Self:
        record: Self = _structured(state, cls)
        return record


@dataclass(frozen=True, slots=True)
class RunPlan(Record):
    """The plan of a run, which does not change: the segments must stay the same within a run.

    Attributes:
        planning: The usage of the first look at the table.
        at_once: The number of groups that workers read at the same time.
        begun_by: The execution that began the run, so that it recognizes its run.
        ledger: The ledger that the first look has filled; None for a fresh one.
        task: The name of the task, which decides how pages are processed (task.py).
        prices: The prices of the run, wherever its cost is calculated.
        buckets: The number of buckets if each row names its bucket (formats.BUCKET), else 0. Then a
            block of a part holds the rows of a bucket, and not of a segment.
        rows: The number of rows of the list that the run works on, else 0.
    """

    id: str
    table: str
    index: str | None
    identity: str
    space: KeySpace
    method: Method
    reason: str
    segments: int
    groups: int
    format: Format
    started: str
    planning: Usage = field(default_factory=Usage)
    planning_seconds: float = 0.0
    at_once: int = 1
    gzip: bool = False
    begun_by: str = ""
    ledger: Mapping[str, Any] | None = None
    task: str = ""
    options: Mapping[str, Any] = field(default_factory=dict)
    prices: Prices = US_EAST_1
    buckets: int = 0
    rows: int = 0

    def to_json(self) -> dict[str, Any]:
        state = Record.to_json(self)
        return {"layout": LAYOUT_VERSION, "software_version": __version__, **state}

    @classmethod
    def from_json(cls, state: Mapping[str, Any], place: str = "The file") -> Self:
        """Convert what `to_json` returns back; raise BrokenPromise for another layout of files."""
        if state["layout"] != LAYOUT_VERSION:
            raise BrokenPromise(
                f"{place} belongs to a run of keyhop {state.get('software_version')} with layout "
                f"{state['layout']} of its files; keyhop {__version__} reads layout "
                f"{LAYOUT_VERSION}. Finish the run with that version, or start a new one."
            )
        record: Self = _structured(state, cls)
        return record

    @property
    def needs_memory(self) -> bool:
        return needs_memory(self.method, self.index)

    @property
    def counts_writes(self) -> bool:
        """Return whether write units count against the limit of a start, and not read units.

        A run over a list reads nothing from the table.
        """
        return self.method == "listed"

    def spent(self, usage: Usage) -> float:
        """Return the units of a usage that count against the limit of a start."""
        return usage.write_units if self.counts_writes else usage.read_units

    @property
    def least_share(self) -> float:
        """Return the units below which a group does not begin, if other groups can use them.

        While the size of items is unknown, the first page may cost as much as an item of 400 KB.
        """
        return LEAST_SHARE if self.planning.items else LEAST_BLIND_SHARE

    @property
    def title(self) -> str:
        return f"{self.table}/{self.index}" if self.index else self.table

    def group_size(self, group: int) -> int:
        return len(range(group, self.segments, self.groups))


def needs_memory(method: Method, index: str | None) -> bool:
    """Return whether a key can occur twice, so that one worker must know all keys.

    It can in parts whose keys are mapped, and in an index that may have several rows for each key.
    """
    return method == "parts" or (index is not None and method != "index")


@dataclass(frozen=True, slots=True)
class Checkpoint:
    """The progress of a group.

    Attributes:
        place: The number of segments that have begun, in the order of the group.
        open: The unfinished segments among them, with their positions.
        ledger: The state of the ledger; None for a fresh one.
    """

    place: int = 0
    open: Mapping[int, Position] = field(default_factory=dict)
    ledger: Mapping[str, Any] | None = None

    def is_end(self, segments: int) -> bool:
        """Return whether all segments of the group are finished, of which there are `segments`."""
        return self.place == segments and not self.open


Block = tuple[int, int, int]
"""Neighbouring lines of a part that belong to one segment, or bucket (RunPlan.buckets): its number,
the number of keys, and the size in bytes."""


@dataclass(frozen=True, slots=True)
class Part(Record):
    """A file of keys that a commit names: `header` bytes, then the blocks; `size` is in bytes."""

    name: str
    size: int
    sha256: str
    header: int
    blocks: tuple[Block, ...]

    @property
    def keys(self) -> int:
        return sum(keys for _, keys, _ in self.blocks)

    def in_one(self) -> "Part":
        """Return the part with all its keys in one block."""
        return replace(self, blocks=((0, self.keys, self.size - self.header),))

    def summary(self) -> dict[str, Any]:
        """Return the entry of a manifest."""
        return {"name": self.name, "keys": self.keys, "size": self.size, "sha256": self.sha256}


@dataclass(frozen=True, slots=True)
class Commit(Record):
    """The record of one slice.

    Attributes:
        ended: The number of segments that the slice finished.
        checkpoint: The keys at which the open segments stopped.
        counts: The counters of the task. They are stored with the keys, so that each counts once.
    """

    group: int
    slice: int
    attempt: str
    parts: tuple[Part, ...]
    ended: int
    usage: Usage
    seconds: float
    checkpoint: Checkpoint
    finished: bool
    worker: str = ""
    counts: Counter[str] = field(default_factory=Counter)

    @property
    def keys(self) -> int:
        return sum(part.keys for part in self.parts)


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
            raise RunConflict(f"{PLAN} exists, but is not the plan of a run.") from error

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
        """Return the commit of a slice, if there is one."""
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
            for segment, _, size in part.blocks:
                content = lines.read(size)
                if segments is None or segment in segments:
                    for key in encoder.decode(content):
                        yield segment, key
            if lines.read(1):
                raise broken(part.name)
        except HARMED as error:
            raise broken(part.name) from error

    def unpacked(self, plan: RunPlan, part: Part) -> Iterator[bytes]:
        """Yield the lines of a part in chunks; raise BrokenPromise as `keys` does."""
        lines = self._lines(plan, part)
        try:
            while chunk := lines.read(CHUNK_BYTES):
                yield chunk
        except HARMED as error:
            raise broken(part.name) from error

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
                raise broken(part["name"])

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
            raise broken(part.name)

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
    """Name an attempt at a slice."""
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
        self, store: Store, name: str, encoder: Encoder, compressor: Any = None, buckets: int = 0
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
            rows_by_bucket: dict[int, list[Key]] = defaultdict(list)
            for row in keys:
                rows_by_bucket[int(row[BUCKET]["N"])].append(row)
            for bucket, rows in rows_by_bucket.items():
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
                self._blocks.append((segment, sum(n for _, n in pieces), len(block)))
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


def broken(part: str) -> BrokenPromise:
    """Return an error about a damaged part."""
    return BrokenPromise(
        f"{part} was changed after its commit, so keys may be missing: start a new run in another "
        "place."
    )


def _commit_name(group: int, number: int) -> str:
    return f"commits/g{group:05}-s{number:06}.json"


def _dump(state: Any) -> bytes:
    return (json.dumps(state, ensure_ascii=False) + "\n").encode()


class Totals:
    """The sum of all commits of a run and its planning.

    Memory grows with the segments and the parts. It does not grow with the keys, nor with the
    blocks of buckets, because every part has a block for every bucket.
    """

    def __init__(self, plan: RunPlan, commits: Iterable[Commit] = ()) -> None:
        self.segments = [0] * (plan.buckets or plan.segments)
        self.usage = plan.planning.copy()
        self.seconds = plan.planning_seconds
        self.keys = self.ended = self.commits = 0
        self.parts: list[Part] = []
        self.workers: set[str] = set()
        self.spent_by_group: dict[int, float] = defaultdict(float)
        self.finished: set[int] = set()
        self.counts: Counter[str] = Counter()
        self._plan = plan
        for commit in commits:
            self.add(commit)

    def add(self, commit: Commit) -> None:
        self.commits += 1
        self.keys += commit.keys
        self.ended += commit.ended
        self.seconds += commit.seconds
        self.usage.add(commit.usage)
        self.counts.update(commit.counts)
        self.parts.extend(
            [part.in_one() for part in commit.parts] if self._plan.buckets else commit.parts
        )
        self.workers.add(commit.worker)
        self.spent_by_group[commit.group] += self._plan.spent(commit.usage)
        if commit.finished:
            self.finished.add(commit.group)
        for part in commit.parts:
            for segment, keys, _ in part.blocks:
                self.segments[segment] += keys


class EndedSegments:
    """The number of times that each segment of a run ended, by the commits of its groups in order.

    A commit contains the checkpoint of its group at the end of the slice. Each segment that was
    open before the slice, or that began in it, is still open at that checkpoint or has ended.
    """

    def __init__(self, plan: RunPlan) -> None:
        self.plan = plan
        self.times = bytearray(plan.segments)
        self._places: dict[int, int] = {}
        self._open: dict[int, set[int]] = {}

    def add(self, commit: Commit) -> None:
        """Add the next commit of its group; raise BrokenPromise if it cannot be the next one."""
        group, checkpoint = commit.group, commit.checkpoint
        places = range(group, self.plan.segments, self.plan.groups)
        before = self._places.get(group, 0)
        if not 0 <= group < self.plan.groups or not before <= checkpoint.place <= len(places):
            raise _wrong(commit, f"is at place {checkpoint.place} of its group")
        new_places = places[before : checkpoint.place]
        new_segments = {segment_at(place, self.plan.segments) for place in new_places}
        expected = self._open.get(group, set()) | new_segments
        still_open = set(checkpoint.open)
        in_parts: set[int] = set()
        if not self.plan.buckets:
            in_parts = {segment for part in commit.parts for segment, _, _ in part.blocks}
        strange = sorted((still_open | in_parts) - expected)
        if strange:
            raise _wrong(commit, f"has read segment {strange[0]}, which does not belong to it")
        ended = expected - still_open
        if len(ended) != commit.ended:
            raise _wrong(
                commit,
                f"ended {counted(commit.ended, 'segment')} by its count, {len(ended)} by name",
            )
        for segment in ended:
            self.times[segment] = min(MOST_TIMES, self.times[segment] + 1)
        self._places[group] = checkpoint.place
        self._open[group] = still_open

    def watch(self, commits: Iterable[Commit]) -> Iterator[Commit]:
        """Add commits, and pass them on."""
        for commit in commits:
            self.add(commit)
            yield commit

    def check_complete(self) -> None:
        """Raise BrokenPromise unless every segment ended exactly once."""
        wrong = [segment for segment, times in enumerate(self.times) if times != 1]
        if wrong:
            named = ", ".join(
                f"{segment} ({self.times[segment]} times)" for segment in wrong[:MOST_NAMED]
            )
            more = "" if len(wrong) <= MOST_NAMED else f" and {len(wrong) - MOST_NAMED:,} more"
            raise BrokenPromise(
                "The run is marked as finished, but these segments did not end exactly once: "
                f"{named}{more}. Do not use its result."
            )


def _wrong(commit: Commit, how: str) -> BrokenPromise:
    return BrokenPromise(
        f"Commit {commit.slice} of group {commit.group} {how}: the run's files are damaged, so do "
        "not use its result."
    )


def manifest(plan: RunPlan, totals: Totals, finished: bool, ended_at: str) -> dict[str, Any]:
    """Return the summary of a run as plain JSON: its manifest, or its progress.

    `keys` is the number of results of the task: keys, copied items, or processed rows of a list.
    """
    return {
        "run": plan.id,
        "finished": finished,
        "table": plan.table,
        "index": plan.index,
        "method": plan.method,
        "reason": plan.reason,
        "format": plan.format,
        "keys": totals.keys,
        **({"counts": dict(sorted(totals.counts.items()))} if totals.counts else {}),
        **usage_json(totals.usage),
        **price(totals.usage.read_units, plan.prices),
        "seconds": round(totals.seconds, 3),
        "started": plan.started,
        "ended": ended_at,
        "segments": {
            "total": plan.segments,
            "ended": totals.ended,
            "most_keys": max(totals.segments),
            "mean_keys": round(totals.keys / plan.segments, 3),
            "skew": round(max(totals.segments) * plan.segments / max(1, totals.keys), 3),
            "keys": totals.segments,
        },
        "parts": [part.summary() for part in totals.parts],
        "software_version": __version__,
    }


NO_PROGRESS = "no_progress"
"""The counter of pages that did not advance the position."""

LEFT_OUT = "left_out"
"""The counter of item collections that are left out, such as one with only a sentinel; it is
stored only if it is not 0."""


def usage_json(usage: Usage) -> dict[str, Any]:
    """Return a usage as plain JSON, with the names of commits, manifests and reports."""
    counters: dict[str, float] = {
        name: n for name, n in sorted(usage.counters.items()) if name not in (NO_PROGRESS, LEFT_OUT)
    }
    left_out = usage.counters[LEFT_OUT]
    writes = {"write_units": round(usage.write_units, 3)} if usage.write_units else {}
    if counters and writes:
        counters["write_units"] = usage.write_units
    return {
        "requests": usage.requests,
        "items_read": usage.items,
        "read_units": round(usage.read_units, 3),
        "no_progress_hops": usage.counters[NO_PROGRESS],
        "retries": usage.retries,
        "throttles": dict(sorted(usage.throttles.items())),
        **({LEFT_OUT: left_out} if left_out else {}),
        **writes,
        **({"index_walk": counters} if counters else {}),
    }


def usage_of(state: Mapping[str, Any]) -> Usage:
    """Return the usage of a record that has the names of `usage_json` among others."""
    counters: Counter[str] = Counter(state.get("index_walk", {}))
    write_units = float(counters.pop("write_units", state.get("write_units", 0.0)))
    if state["no_progress_hops"]:
        counters[NO_PROGRESS] = state["no_progress_hops"]
    if LEFT_OUT in state:
        counters[LEFT_OUT] = state[LEFT_OUT]
    return Usage(
        requests=state["requests"],
        items=state["items_read"],
        read_units=state["read_units"],
        write_units=write_units,
        retries=state["retries"],
        throttles=Counter(state["throttles"]),
        counters=counters,
    )


def _structured(state: Mapping[str, Any], cls: type) -> Any:
    """Return plain JSON as a record; raise ValueError if it is not one."""
    try:
        return _converter().structure(state, cls)
    except Exception as error:  # the converter's versions raise different ones
        raise ValueError(str(error)) from error


@cache
def _converter() -> Any:
    """Return the converter, which is made on first use, so that a command starts sooner."""
    from cattrs import Converter
    from cattrs.gen import make_dict_structure_fn, make_dict_unstructure_fn, override

    converter = Converter(detailed_validation=False)
    converter.register_unstructure_hook(Usage, usage_json)
    converter.register_structure_hook(Usage, lambda state, _: usage_of(state))
    converter.register_unstructure_hook(Position, Position.to_json)
    converter.register_structure_hook(Position, lambda state, _: Position.from_json(state))
    converter.register_unstructure_hook(KeySpace, asdict)
    converter.register_structure_hook(Any, lambda state, _: state)
    # The stored format has this name for the usage.
    tally = override(rename="tally")
    rounded = override(unstruct_hook=lambda seconds: round(seconds, 3))
    if_any = override(omit_if_default=True)
    converter.register_unstructure_hook(
        RunPlan, make_dict_unstructure_fn(RunPlan, converter, buckets=if_any)
    )
    converter.register_unstructure_hook(
        Commit,
        make_dict_unstructure_fn(Commit, converter, usage=tally, seconds=rounded, counts=if_any),
    )
    converter.register_structure_hook(
        Commit, make_dict_structure_fn(Commit, converter, usage=tally)
    )
    return converter
