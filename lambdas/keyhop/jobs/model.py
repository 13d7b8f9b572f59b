"""What a run writes down: its plan, a commit for each slice, the manifest. Pure; shapes of JSON.

docs/architecture.md lists a run's files. A slice is *committed* by the creation of its commit. A
slice that is run again, run twice at once, or killed, creates none or loses the race for it; then
its parts do not count and the winner's checkpoint holds. So every key that was found is in exactly
one part that counts.
"""

from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from dataclasses import asdict, dataclass, field, replace
from functools import cache
from typing import Any, Self

from keyhop import __version__
from keyhop.dynamodb.prices import US_EAST_1, Prices
from keyhop.dynamodb.schema import KeySpace
from keyhop.dynamodb.usage import Usage
from keyhop.errors import BrokenPromise
from keyhop.jobs.formats import Format
from keyhop.jobs.layout import Method
from keyhop.jobs.price import price
from keyhop.scan.skip_scan import Position

LAYOUT_VERSION = 3
READABLE_LAYOUTS = (2, 3)


class Record:
    """What is written down as plain JSON, by its fields."""

    __slots__ = ()

    def to_json(self) -> dict[str, Any]:
        state: dict[str, Any] = _converter().unstructure(self)
        return state

    @classmethod
    def from_json(cls, state: Mapping[str, Any]) -> Self:
        found: Self = _converter().structure(state, cls)
        return found


@dataclass(frozen=True, slots=True)
class RunPlan(Record):
    """What a run does; fixed when it begins, as segments must not change within a run.

    planning, planning_seconds: what the first look at the table cost. at_once: groups that are
    worked at the same time. gzip: whether parts are compressed. begun_by: what began the run, so
    that it knows its own run again. ledger: what the first look taught; None for nothing. task,
    options: what is done with pages, and that task's own settings (task.py). prices: at which the
    run is reckoned, whoever sums it up. buckets: if rows say which of so many they belong to
    (formats.BUCKET), a part's blocks hold those of a bucket, and not of a segment; 0 for none.
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
    def from_json(cls, state: Mapping[str, Any]) -> Self:
        """The inverse of `to_json`; raises BrokenPromise for a layout that this version lacks.

        Layout 2 had no tasks: what it says beyond a plan's own fields are options of whoever knows
        them, and the task's name is empty.
        """
        if state.get("layout") not in READABLE_LAYOUTS:
            raise BrokenPromise(
                f"The run was begun by keyhop {state.get('software_version')}, whose files this "
                f"version ({__version__}) cannot read: finish it with that version."
            )
        if state["layout"] == 2:
            options = {name: value for name, value in state.items() if name not in _OWN_FIELDS}
            state = {**state, "options": options}
        found: Self = _converter().structure(state, cls)
        return found

    @property
    def needs_memory(self) -> bool:
        """Whether one worker must know all keys, as one can turn up twice."""
        return needs_memory(self.method, self.index)

    def spent(self, usage: Usage) -> float:
        """What of a usage counts against the units that a start may spend: of a list nothing is
        read, so there it is what is written.
        """
        return usage.write_units if self.method == "listed" else usage.read_units

    @property
    def limit(self) -> str:
        """The field of an input that limits these."""
        return "maxWriteUnits" if self.method == "listed" else "maxReadUnits"

    @property
    def title(self) -> str:
        """For messages: the table, and the index if there is one."""
        return f"{self.table}/{self.index}" if self.index else self.table

    def group_size(self, group: int) -> int:
        """How many segments a group has."""
        return len(range(group, self.segments, self.groups))


def needs_memory(method: Method, index: str | None) -> bool:
    """Whether a key can turn up twice: in parts whose keys are mapped, and in an index, unless it
    has one row for each key.
    """
    return method == "parts" or (index is not None and method != "index")


@dataclass(frozen=True, slots=True)
class Checkpoint:
    """Where a group stands.

    place: how many of the group's segments have been begun, in its order. open: those of them that
    are not finished. ledger: what the ledger had learnt, None for a fresh one.
    """

    place: int = 0
    open: Mapping[int, Position] = field(default_factory=dict)
    ledger: Mapping[str, Any] | None = None

    def is_end(self, segments: int) -> bool:
        """Whether all of the group's `segments` segments are finished."""
        return self.place == segments and not self.open


@dataclass(frozen=True, slots=True)
class Block:
    """Neighbouring lines of a part that belong to one segment, or bucket (RunPlan.buckets). size:
    in bytes. In JSON it is three numbers.
    """

    segment: int
    keys: int
    size: int


@dataclass(frozen=True, slots=True)
class Part(Record):
    """A file of keys that a commit names: `header` bytes, then the blocks. size: in bytes."""

    name: str
    size: int
    sha256: str
    header: int
    blocks: tuple[Block, ...]

    @property
    def keys(self) -> int:
        """How many keys it holds."""
        return sum(block.keys for block in self.blocks)

    def in_one(self) -> "Part":
        """With all that it holds as one block."""
        return replace(self, blocks=(Block(0, self.keys, self.size - self.header),))

    def summary(self) -> dict[str, Any]:
        """As a manifest names it."""
        return {"name": self.name, "keys": self.keys, "size": self.size, "sha256": self.sha256}


@dataclass(frozen=True, slots=True)
class Commit(Record):
    """What one slice did. ended: how many segments it finished. finished: so the group is.
    checkpoint: holds the keys at which open segments stopped. counts: what a task has counted with
    the keys, so that each counts once.

    worker: the process that worked it, by a name that tells it from others.
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
        """How many keys its parts hold."""
        return sum(part.keys for part in self.parts)


@dataclass(slots=True)
class Totals:
    """What all commits of a run come to, the planning included. spent: see RunPlan."""

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
        """Add up; memory grows with the segments and the parts, not with the keys, nor with the
        blocks of buckets, of which each part has one for each bucket.
        """
        counted = plan.planning.copy()
        places = plan.buckets or plan.segments
        totals = cls([0] * places, counted, plan.spent, seconds=plan.planning_seconds)
        totals._with_blocks = not plan.buckets
        for commit in commits:
            totals.add(commit)
        return totals

    def add(self, commit: Commit) -> None:
        """Take one more in."""
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


def manifest(plan: RunPlan, totals: Totals, finished: bool, ended_at: str) -> dict[str, Any]:
    """The run's summary as plain JSON; `keys` counts what was read."""
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
"""The counter of pages that brought a walk no further."""

LEFT_OUT = "left_out"
"""The counter of collections that hold nothing that counts; it is named only if there are any."""


def usage_json(usage: Usage) -> dict[str, Any]:
    """A usage as plain JSON, under the names that commits, manifests and reports use."""
    counters: dict[str, float] = {
        name: n for name, n in sorted(usage.counters.items()) if name not in (NO_PROGRESS, LEFT_OUT)
    }
    left_out = usage.counters[LEFT_OUT]
    written = {"write_units": round(usage.write_units, 3)} if usage.write_units else {}
    if counters and written:
        counters["write_units"] = usage.write_units
    return {
        "requests": usage.requests,
        "items_read": usage.items,
        "read_units": round(usage.read_units, 3),
        "no_progress_hops": usage.counters[NO_PROGRESS],
        "retries": usage.retries,
        "throttles": dict(sorted(usage.throttles.items())),
        **({LEFT_OUT: left_out} if left_out else {}),
        **written,
        **({"index_walk": counters} if counters else {}),
    }


def usage_of(state: Mapping[str, Any]) -> Usage:
    """The inverse of `usage_json`, from any record that has its names among others."""
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
    """Made when something is written down or read: so a command begins sooner."""
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
    # As commits have always been written.
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


_OWN_FIELDS = {*RunPlan.__dataclass_fields__, "layout", "software_version"}
