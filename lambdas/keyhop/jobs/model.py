"""What a run writes down: its plan, a commit for each slice, the manifest. Pure; shapes of JSON.

    run.json                        the plan; created once, so a place holds one run
    parts/<group>-<slice>-<attempt> keys; they count only if a commit names them
    commits/<group>-<slice>.json    created once: what a slice did, and where it stopped
    progress.json                   the summary of a run that is not finished
    manifest.json                   the summary of a finished one: there is none before
    logical/, fold.json             of a run that lists logical keys: those keys, and which files of
                                    them count (fold.py)
    parts.json, links/parts.txt     the parts that count, for other programs (output in S3 only)

A slice is *committed* by the creation of its commit. A slice that is run again, run twice at once,
or killed, creates none or loses the race for it; then its parts do not count and the winner's
checkpoint holds. So every key that was found is in exactly one part that counts.
"""

from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass, field
from typing import Any

from keyhop import __version__
from keyhop.dynamodb.capacity import PRICE_DATE, PRICE_REGION, read_dollars
from keyhop.dynamodb.schema import KeyAttribute, KeySpace
from keyhop.dynamodb.usage import Tally
from keyhop.errors import BrokenPromise
from keyhop.jobs.formats import Format
from keyhop.jobs.layout import Method
from keyhop.scan.skip_scan import Position

LAYOUT_VERSION = 2
SEPARATOR = "_"
"""Between a logical key and its shard, if nothing else is said."""


@dataclass(frozen=True, slots=True)
class RunPlan:
    """What a run does; fixed when it begins, as segments must not change within a run.

    planning, planning_seconds: what the first look at the table cost. at_once: groups that are
    worked at the same time. gzip: whether parts are compressed. begun_by: what began the run, so
    that it knows its own run again. ledger: what the first look taught; None for nothing.
    walk: what a run for the key index does about each collection (key_index/walk.py), and sentinel:
    the sentinels' sort key; both as plain JSON, None for other runs. fold: of a run that lists
    logical keys, the separator of shards, and the metadata table that says which keys are folded,
    None for all with a suffix (fold.py).
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
    planning: Tally = field(default_factory=Tally)
    planning_seconds: float = 0.0
    at_once: int = 1
    gzip: bool = False
    begun_by: str = ""
    ledger: Mapping[str, Any] | None = None
    walk: Mapping[str, Any] | None = None
    sentinel: Mapping[str, Any] | None = None
    fold: Mapping[str, Any] | None = None

    def to_json(self) -> dict[str, Any]:
        """As plain JSON."""
        state = asdict(self)
        if self.fold is None:
            del state["fold"]
        state["planning"] = self.planning.to_json()
        return {"layout": LAYOUT_VERSION, "software_version": __version__, **state}

    @classmethod
    def from_json(cls, state: Mapping[str, Any]) -> "RunPlan":
        """The inverse of `to_json`; raises BrokenPromise for a layout that this version lacks."""
        if state.get("layout") != LAYOUT_VERSION:
            raise BrokenPromise(
                f"The run was begun by keyhop {state.get('software_version')}, whose files this "
                f"version ({__version__}) cannot read: finish it with that version."
            )
        space = state["space"]
        return cls(
            id=state["id"],
            table=state["table"],
            index=state["index"],
            identity=state["identity"],
            space=KeySpace(
                tuple(KeyAttribute(**attribute) for attribute in space["partition"]),
                KeyAttribute(**space["sort"]) if space["sort"] else None,
            ),
            method=state["method"],
            reason=state["reason"],
            segments=state["segments"],
            groups=state["groups"],
            format=state["format"],
            started=state["started"],
            planning=Tally.from_json(state["planning"]),
            planning_seconds=state["planning_seconds"],
            at_once=state["at_once"],
            gzip=state["gzip"],
            begun_by=state["begun_by"],
            ledger=state["ledger"],
            walk=state.get("walk"),
            sentinel=state.get("sentinel"),
            fold=state.get("fold"),
        )

    @property
    def needs_memory(self) -> bool:
        """Whether a key can turn up twice: in an index, unless it holds one row for each key."""
        return self.index is not None and self.method != "index"

    @property
    def title(self) -> str:
        """For messages: the table, and the index if there is one."""
        return f"{self.table}/{self.index}" if self.index else self.table


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

    def to_json(self) -> dict[str, Any]:
        """As plain JSON; it holds the keys at which open segments stopped."""
        return {
            "place": self.place,
            "open": {str(segment): position.to_json() for segment, position in self.open.items()},
            "ledger": self.ledger,
        }

    @classmethod
    def from_json(cls, state: Mapping[str, Any]) -> "Checkpoint":
        """The inverse of `to_json`."""
        return cls(
            place=state["place"],
            open={int(s): Position.from_json(position) for s, position in state["open"].items()},
            ledger=state["ledger"],
        )


@dataclass(frozen=True, slots=True)
class Block:
    """Neighbouring lines of a part that belong to one segment. size: in bytes."""

    segment: int
    keys: int
    size: int


@dataclass(frozen=True, slots=True)
class Part:
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

    def summary(self) -> dict[str, Any]:
        """As a manifest names it."""
        return {"name": self.name, "keys": self.keys, "size": self.size, "sha256": self.sha256}

    def to_json(self) -> dict[str, Any]:
        """As plain JSON; a block is three numbers."""
        return {
            "name": self.name,
            "size": self.size,
            "sha256": self.sha256,
            "header": self.header,
            "blocks": [[block.segment, block.keys, block.size] for block in self.blocks],
        }

    @classmethod
    def from_json(cls, state: Mapping[str, Any]) -> "Part":
        """The inverse of `to_json`."""
        return cls(
            name=state["name"],
            size=state["size"],
            sha256=state["sha256"],
            header=state["header"],
            blocks=tuple(Block(*block) for block in state["blocks"]),
        )


@dataclass(frozen=True, slots=True)
class Commit:
    """What one slice did. ended: how many segments it finished. finished: so the group is.

    worker: the process that worked it, by a name that tells it from others.
    """

    group: int
    slice: int
    attempt: str
    parts: tuple[Part, ...]
    ended: int
    tally: Tally
    seconds: float
    checkpoint: Checkpoint
    finished: bool
    worker: str = ""

    @property
    def keys(self) -> int:
        """How many keys it found."""
        return sum(part.keys for part in self.parts)

    def to_json(self) -> dict[str, Any]:
        """As plain JSON."""
        return {
            "group": self.group,
            "slice": self.slice,
            "attempt": self.attempt,
            "parts": [part.to_json() for part in self.parts],
            "ended": self.ended,
            "tally": self.tally.to_json(),
            "seconds": round(self.seconds, 3),
            "checkpoint": self.checkpoint.to_json(),
            "finished": self.finished,
            "worker": self.worker,
        }

    @classmethod
    def from_json(cls, state: Mapping[str, Any]) -> "Commit":
        """The inverse of `to_json`."""
        return cls(
            group=state["group"],
            slice=state["slice"],
            attempt=state["attempt"],
            parts=tuple(Part.from_json(part) for part in state["parts"]),
            ended=state["ended"],
            tally=Tally.from_json(state["tally"]),
            seconds=state["seconds"],
            checkpoint=Checkpoint.from_json(state["checkpoint"]),
            finished=state["finished"],
            worker=state["worker"],
        )


@dataclass(slots=True)
class Totals:
    """What all commits of a run come to, the planning included."""

    segments: list[int]
    tally: Tally
    keys: int = 0
    ended: int = 0
    seconds: float = 0.0
    parts: list[Part] = field(default_factory=list)
    commits: int = 0
    workers: set[str] = field(default_factory=set)
    spent_by_group: dict[int, float] = field(default_factory=dict)
    finished: set[int] = field(default_factory=set)

    @classmethod
    def of(cls, plan: RunPlan, commits: Iterable[Commit]) -> "Totals":
        """Add up; memory grows with the segments and the parts, not with the keys."""
        totals = cls([0] * plan.segments, Tally(), seconds=plan.planning_seconds)
        totals.tally.add(plan.planning)
        for commit in commits:
            totals.commits += 1
            totals.keys += commit.keys
            totals.ended += commit.ended
            totals.seconds += commit.seconds
            totals.tally.add(commit.tally)
            totals.parts.extend(commit.parts)
            totals.workers.add(commit.worker)
            spent = totals.spent_by_group.get(commit.group, 0.0)
            totals.spent_by_group[commit.group] = spent + commit.tally.units
            if commit.finished:
                totals.finished.add(commit.group)
            for part in commit.parts:
                for block in part.blocks:
                    totals.segments[block.segment] += block.keys
        return totals


def manifest(plan: RunPlan, totals: Totals, finished: bool, ended_at: str) -> dict[str, Any]:
    """The run's summary as plain JSON; `keys` counts what was read, which a fold makes fewer."""
    logical = {"logical": {**plan.fold, "physical_keys": totals.keys}} if plan.fold else {}
    return {
        "run": plan.id,
        "finished": finished,
        "table": plan.table,
        "index": plan.index,
        "method": plan.method,
        "reason": plan.reason,
        "format": plan.format,
        "keys": totals.keys,
        **logical,
        **totals.tally.to_json(),
        **price(totals.tally.units),
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


def price(read_units: float) -> dict[str, Any]:
    """What read units cost on demand, with the date of the price."""
    return {
        "dollars": round(read_dollars(read_units), 9),
        "price": f"on-demand reads, {PRICE_REGION}, {PRICE_DATE}",
    }
