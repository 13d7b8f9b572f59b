"""The records of a run: its plan, a commit for each slice, and the manifest. Pure.

docs/architecture.md lists the files of a run. The creation of its commit *commits* a slice. A slice
that runs again, runs twice at once or is killed creates no commit, or it loses the race for it.
Then its parts do not count, and the winner's checkpoint is valid. So every key is in exactly one
part that counts.
"""

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import asdict, dataclass, field, replace
from functools import cache
from typing import Any, Self

from keyhop import __version__
from keyhop.dynamodb.schema import KeySpace
from keyhop.dynamodb.units import US_EAST_1, Prices
from keyhop.dynamodb.usage import Usage
from keyhop.errors import BrokenPromise
from keyhop.jobs.formats import Format
from keyhop.jobs.layout import Method
from keyhop.jobs.price import price
from keyhop.scan.segments import segment_at
from keyhop.scan.skip_scan import Position
from keyhop.wording import counted

LAYOUT_VERSION = 3
MOST_NAMED = 5
MOST_TIMES = 255


class Record:
    """A dataclass that is stored as plain JSON, with its fields as names."""

    __slots__ = ()

    def to_json(self) -> dict[str, Any]:
        state: dict[str, Any] = _converter().unstructure(self)
        return state

    @classmethod
    def from_json(cls, state: Mapping[str, Any]) -> Self:
        record: Self = _converter().structure(state, cls)
        return record


@dataclass(frozen=True, slots=True)
class RunPlan(Record):
    """The plan of a run, which does not change: the segments must stay the same within a run.

    Attributes:
        planning: The usage of the first look at the table.
        planning_seconds: The duration of the first look.
        at_once: The number of groups that workers read at the same time.
        gzip: Whether the parts are compressed.
        begun_by: The execution that began the run, so that it recognizes its run.
        ledger: The ledger that the first look has filled; None for a fresh one.
        task: The name of the task, which decides how pages are processed (task.py).
        options: The settings of the task.
        prices: The prices of the run, wherever its cost is calculated.
        buckets: The number of buckets if each row names its bucket (formats.BUCKET), else 0. Then a
            block of a part holds the rows of a bucket, and not of a segment.
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

    def to_json(self) -> dict[str, Any]:
        state: dict[str, Any] = _converter().unstructure(self)
        return {"layout": LAYOUT_VERSION, "software_version": __version__, **state}

    @classmethod
    def from_json(cls, state: Mapping[str, Any], place: str = "The file") -> Self:
        """Convert what `to_json` returns back.

        Args:
            state: The content of the file.
            place: Where the file is, for the message.

        Raises:
            BrokenPromise: The files of the run have another layout.
        """
        if state["layout"] != LAYOUT_VERSION:
            raise BrokenPromise(
                f"{place} belongs to a run of keyhop {state.get('software_version')} with layout "
                f"{state['layout']} of its files; keyhop {__version__} reads layout "
                f"{LAYOUT_VERSION}. Finish the run with that version, or start a new one."
            )
        record: Self = _converter().structure(state, cls)
        return record

    @property
    def needs_memory(self) -> bool:
        """Return whether one worker must know all keys, because a key can occur twice."""
        return needs_memory(self.method, self.index)

    def spent(self, usage: Usage) -> float:
        """Return the units of a usage that count against the limit of a start.

        A run over a list reads nothing from the table, so its write units count.
        """
        return usage.write_units if self.method == "listed" else usage.read_units

    @property
    def limit(self) -> str:
        """Return the field of an input that limits the units of `spent`."""
        return "maxWriteUnits" if self.method == "listed" else "maxReadUnits"

    @property
    def title(self) -> str:
        """Return the table, and the index if there is one, for messages."""
        return f"{self.table}/{self.index}" if self.index else self.table

    def group_size(self, group: int) -> int:
        """Return the number of segments of a group."""
        return len(range(group, self.segments, self.groups))


def needs_memory(method: Method, index: str | None) -> bool:
    """Return whether a key can occur twice.

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
        """Return whether all `segments` segments of the group are finished."""
        return self.place == segments and not self.open


@dataclass(frozen=True, slots=True)
class Block:
    """Neighbouring lines of a part that belong to one segment, or bucket (RunPlan.buckets).

    In JSON it is three numbers: the segment, the number of keys and the size in bytes.
    """

    segment: int
    keys: int
    size: int


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
        """Return the number of keys in the part."""
        return sum(block.keys for block in self.blocks)

    def in_one(self) -> "Part":
        """Return the part with all its keys in one block."""
        return replace(self, blocks=(Block(0, self.keys, self.size - self.header),))

    def summary(self) -> dict[str, Any]:
        """Return the entry of the part in a manifest."""
        return {"name": self.name, "keys": self.keys, "size": self.size, "sha256": self.sha256}


@dataclass(frozen=True, slots=True)
class Commit(Record):
    """The record of one slice.

    Attributes:
        ended: The number of segments that the slice finished.
        checkpoint: The keys at which the open segments stopped.
        finished: Whether the group is finished.
        worker: The unique name of the process that ran the slice.
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
        """Return the number of keys in the parts."""
        return sum(part.keys for part in self.parts)


@dataclass(slots=True)
class Totals:
    """The sum of all commits of a run and its planning, where RunPlan defines `spent`."""

    segments: list[int]
    usage: Usage
    spent: Callable[[Usage], float]
    keys: int = 0
    ended: int = 0
    seconds: float = 0.0
    parts: list[Part] = field(default_factory=list)
    commits: int = 0
    workers: set[str] = field(default_factory=set)
    spent_by_group: dict[int, float] = field(default_factory=dict)
    finished: set[int] = field(default_factory=set)
    counts: Counter[str] = field(default_factory=Counter)
    _with_blocks: bool = True

    @classmethod
    def of(cls, plan: RunPlan, commits: Iterable[Commit]) -> "Totals":
        """Add up the commits.

        Memory grows with the segments and the parts. It does not grow with the keys, nor with the
        blocks of buckets, because every part has a block for every bucket.
        """
        usage = plan.planning.copy()
        places = plan.buckets or plan.segments
        totals = cls([0] * places, usage, plan.spent, seconds=plan.planning_seconds)
        totals._with_blocks = not plan.buckets
        for commit in commits:
            totals.add(commit)
        return totals

    def add(self, commit: Commit) -> None:
        """Add one commit."""
        self.commits += 1
        self.keys += commit.keys
        self.ended += commit.ended
        self.seconds += commit.seconds
        self.usage.add(commit.usage)
        self.counts.update(commit.counts)
        self.parts.extend(
            commit.parts if self._with_blocks else [part.in_one() for part in commit.parts]
        )
        self.workers.add(commit.worker)
        spent = self.spent_by_group.get(commit.group, 0.0)
        self.spent_by_group[commit.group] = spent + self.spent(commit.usage)
        if commit.finished:
            self.finished.add(commit.group)
        for part in commit.parts:
            for block in part.blocks:
                self.segments[block.segment] += block.keys


@dataclass(slots=True)
class EndedSegments:
    """The number of times that each segment of a run ended, by the commits of its groups in order.

    A commit contains the checkpoint of its group at the end of the slice. Each segment that was
    open before the slice, or that began in it, is still open at that checkpoint or has ended.
    """

    plan: RunPlan
    times: bytearray = field(init=False)
    _places: dict[int, int] = field(default_factory=dict)
    _open: dict[int, set[int]] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.times = bytearray(self.plan.segments)

    def add(self, commit: Commit) -> None:
        """Add the next commit of its group; raise BrokenPromise if it cannot be the next one."""
        group, checkpoint = commit.group, commit.checkpoint
        places = range(group, self.plan.segments, self.plan.groups)
        before = self._places.get(group, 0)
        if not 0 <= group < self.plan.groups or not before <= checkpoint.place <= len(places):
            raise _wrong(commit, f"stands at place {checkpoint.place} of its group")
        new_places = places[before : checkpoint.place]
        new_segments = {segment_at(place, self.plan.segments) for place in new_places}
        expected = self._open.get(group, set()) | new_segments
        still_open = set(checkpoint.open)
        in_parts: set[int] = set()
        if not self.plan.buckets:
            in_parts = {block.segment for part in commit.parts for block in part.blocks}
        strange = sorted((still_open | in_parts) - expected)
        if strange:
            raise _wrong(commit, f"has worked segment {strange[0]}, which was not its to work")
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
        """Yield the same commits and add each of them."""
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
                f"The run claims to be finished, but these segments were not ended exactly once: "
                f"{named}{more}. Do not use its result."
            )


def _wrong(commit: Commit, how: str) -> BrokenPromise:
    return BrokenPromise(
        f"Commit {commit.slice} of group {commit.group} {how}: the run's files are harmed, so do "
        f"not use its result."
    )


def manifest(plan: RunPlan, totals: Totals, finished: bool, ended_at: str) -> dict[str, Any]:
    """Return the summary of a run as plain JSON; its `keys` is the number of keys read."""
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
"""The counter of collections without anything that counts; it is stored only if it is not 0."""


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


@cache
def _converter() -> Any:
    """Return the converter, which is made on first use, so that a command starts sooner."""
    from cattrs import Converter
    from cattrs.gen import make_dict_structure_fn, make_dict_unstructure_fn, override

    converter = Converter(detailed_validation=False)
    converter.register_unstructure_hook(Usage, usage_json)
    converter.register_structure_hook(Usage, lambda state, _: usage_of(state))
    converter.register_unstructure_hook(Block, lambda b: [b.segment, b.keys, b.size])
    converter.register_structure_hook(Block, lambda state, _: Block(*state))
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
