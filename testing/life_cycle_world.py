"""A world of a key index as a value: the table, its stream, its keeper, and who acts upon it."""

from collections.abc import Callable
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any

from keyhop.dynamodb.tables import Table
from keyhop.key_index.registry import ENTRY, Entry, Registry
from keyhop.key_index.sentinel import INDEX, MARKER, Sentinel
from keyhop.storage.store import Version

TABLE = "T"
IDENTITY = "arn:T#1"
COLLECTIONS = ("a", "b")
MOMENT = "2026-11-22T12:00:00+00:00"

NOW = datetime.fromisoformat(MOMENT)

Operation = tuple[str, ...]
Call = Callable[["World"], tuple["World", Any]]
"""What a call does to a world, and its answer, as plain JSON."""


@dataclass(frozen=True, slots=True)
class Actor:
    """An execution of an action. state: of the last step that ended, as JSON. step: what is under
    way: a step, "walk" or "verify" (then `answers` are the collections that are left), "settle",
    "over". alive: as Step Functions tells.
    """

    name: str
    action: str
    step: str = "prepare"
    state: str = "{}"
    answers: tuple[str, ...] = ()
    alive: bool = True
    error: str = ""

    @property
    def is_walking(self) -> bool:
        """Its walkers go on for a while after it was stopped."""
        return self.step in ("walk", "verify")


@dataclass(frozen=True, slots=True)
class Reader:
    """A run of `auto`. begun: which builds and removals had begun when it believed the index; None:
    it did not yet. sure: collections that it has to list. left: those that it has not read yet.
    """

    begun: int | None = None
    sure: frozenset[str] = frozenset()
    found: frozenset[str] = frozenset()
    left: tuple[str, ...] = COLLECTIONS
    over: bool = False


@dataclass(frozen=True, slots=True)
class World:
    """records: collections that the stream tells of. busy: those that the keeper has looked at and
    will act upon. late: writes of a walker that was let pass, as (actor, call, collection). users:
    writes that will yet be made. crashes, redrives: how many executions may yet be stopped, and
    go on after that. mapping: the stream it is on, and how often it was changed. letters:
    collections whose records the keeper gave up and the stream has forgotten, each with a message
    in the failure queue. days: how long ago all that was noted is by now.
    """

    actors: tuple[Actor, ...]
    items: frozenset[str] = frozenset("a")
    sentinels: frozenset[str] = frozenset()
    index: bool = False
    stream: int = 0
    mapping: tuple[int, int, bool] | None = None
    listed: bool = True
    entry: str = ""
    records: frozenset[str] = frozenset()
    busy: frozenset[tuple[str, bool]] = frozenset()
    late: frozenset[tuple[str, str, str]] = frozenset()
    users: tuple[Operation, ...] = ()
    crashes: int = 0
    redrives: int = 0
    changes: int = 0
    reader: Reader | None = None
    letters: frozenset[str] = frozenset()
    days: int = 0

    @property
    def is_quiet(self) -> bool:
        """The keeper has looked at all that was written."""
        return not self.records and not self.busy and not self.late

    def registry_entry(self) -> Entry:
        """As a reader sees it."""
        return Registry(Files(self), IDENTITY).entry()  # type: ignore[arg-type]


@dataclass
class Files:
    """The registry's store, looked at directly."""

    world: World

    def look(self, name: str) -> Version | None:
        text = self.world.entry
        return Version(text.encode(), text, 0.0) if name == ENTRY and text else None

    def read(self, name: str) -> bytes | None:
        return None


def described(world: World) -> dict[str, Any]:
    """DescribeTable's answer."""
    key = [{"AttributeName": "pk", "KeyType": "HASH"}]
    told: dict[str, Any] = {
        "TableName": TABLE,
        "TableArn": "arn:T",
        "TableId": "1",
        "TableStatus": "ACTIVE",
        "KeySchema": [*key, {"AttributeName": "sk", "KeyType": "RANGE"}],
        "AttributeDefinitions": [
            {"AttributeName": name, "AttributeType": type_}
            for name, type_ in (("pk", "S"), ("sk", "S"), (MARKER, "N"))
        ],
        "BillingModeSummary": {"BillingMode": "PAY_PER_REQUEST"},
    }
    if world.stream:
        told["StreamSpecification"] = {"StreamEnabled": True, "StreamViewType": "KEYS_ONLY"}
        told["LatestStreamArn"] = arn_of(world.stream)
    if world.index:
        schema = [*key, {"AttributeName": MARKER, "KeyType": "RANGE"}]
        told["GlobalSecondaryIndexes"] = [
            {"IndexName": INDEX, "IndexStatus": "ACTIVE", "KeySchema": schema}
        ]
    return told


def arn_of(stream: int) -> str:
    return f"arn:T/stream/{stream}"


def streamed(world: World, on: bool) -> World:
    """The stream turned on or off: a new one has another ARN."""
    changes = world.changes + 1
    return replace(world, stream=changes if on else 0, changes=changes, records=frozenset())


def mapped(world: World, on: bool) -> World:
    changes = world.changes + 1
    return replace(world, mapping=(world.stream, changes, True) if on else None, changes=changes)


def followers_of(world: World, stream: str | None) -> list[dict[str, str]]:
    if world.mapping is None or arn_of(world.mapping[0]) != stream:
        return []
    state = "Enabled" if world.mapping[2] else "Disabled"
    own = {"uuid": "m", "function": "KeepIndex", "problem": "", "queue": "q"}
    return [{**own, "state": state, "modified": str(world.mapping[1])}]


def told_of(world: World, name: str) -> World:
    """A write leaves a record, if the table has a stream."""
    return replace(world, records=world.records | {name}) if world.stream else world


def written(world: World, call: str, name: str) -> World:
    """A sentinel is put or deleted, and leaves a record if that changed anything."""
    sentinels = world.sentinels | {name} if call == "put" else world.sentinels - {name}
    if sentinels == world.sentinels:
        return world
    return told_of(replace(world, sentinels=sentinels), name)


BEFORE = Table(TABLE, described(World(())))
SENTINEL = Sentinel.of(BEFORE.space)
