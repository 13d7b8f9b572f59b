"""Explore the interleavings of builds, verifications, removals, users, keeper, deploy and crash.

The explorer runs `LifeCycle` itself, `DeadLetters`, `Registry` and `why_not`. A world is a value:
the table, its stream, the keeper's mapping, the registry's entry, and the progress of each actor.
For each call of an actor, its step is run again: with the answers so far, up to the next call,
which is made on the world. So the state of an actor between two calls is its list of answers.

The model has no time. Rules that depend on time are stated as order: a wait for the work of others
ends when they have stopped.
"""

import json
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from functools import partial
from typing import Any

from botocore.exceptions import ClientError
from keyhop.dynamodb.client import Connection
from keyhop.dynamodb.tables import Table
from keyhop.errors import KeyhopError
from keyhop.key_index.life_cycle import LifeCycle
from keyhop.key_index.registry import DISCARDED, ENTRY, Entry, Lease, Registry
from keyhop.key_index.request import Order
from keyhop.key_index.sentinel import INDEX, MARKER, Sentinel
from keyhop.key_index.trust import Evidence, kept_by, why_not
from keyhop.storage.store import Version
from keyhop.streams.dead_letters import DeadLetters
from keyhop.streams.event_source import BatchResult, Follower

from infra.followers import FAILURE_DAYS
from testing.worlds import reachable

TABLE = "T"
IDENTITY = "arn:T#1"
COLLECTIONS = ("a", "b")
MOMENT = "2026-11-22T12:00:00+00:00"

NOW = datetime.fromisoformat(MOMENT)

Operation = tuple[str, ...]
Call = Callable[["World"], tuple["World", Any]]
"""A function that applies a call to a world, and returns the new world and the answer as JSON."""


@dataclass(frozen=True, slots=True)
class Actor:
    """An execution of an action.

    Attributes:
        step: The current step; or "walk" or "verify", during which `answers` are the remaining
            collections; or "settle" or "over".
        state: The output of the last step, as JSON.
        alive: Whether Step Functions reports that the execution is running.
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
        """Whether it has walkers, which continue for a while after it was stopped."""
        return self.step in ("walk", "verify")


@dataclass(frozen=True, slots=True)
class Reader:
    """A run of `auto`.

    Attributes:
        epoch: The registry's epoch when the run began to trust the index; before that, None.
        required: The collections that it must list.
        remaining: The collections that it has not read yet.
    """

    epoch: int | None = None
    required: frozenset[str] = frozenset()
    listed: frozenset[str] = frozenset()
    remaining: tuple[str, ...] = COLLECTIONS
    over: bool = False


@dataclass(frozen=True, slots=True)
class World:
    """A table with its stream, keeper and registry, the actors, and the events that may happen.

    Attributes:
        mapping: The keeper's stream, the number of its last change, and whether it is enabled.
        records: The collections with a record in the stream.
        busy: The collections that the keeper has read and will write.
        late: The writes in flight of walkers, as (actor, call, collection).
        users: The writes that users will make.
        crashes, redrives: How many executions may still be stopped, and redriven after that.
        letters: The collections whose records the keeper gave up and the stream has dropped, each
            with a message in the failure queue.
        days: The age of everything that is recorded.
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
        """Whether the keeper has processed all writes."""
        return not self.records and not self.busy and not self.late

    def make(self, call: Call) -> Any:
        """Return the answer to a call that changes nothing."""
        return call(self)[1]

    def registry_entry(self) -> Entry:
        """Return the registry's entry as a reader sees it."""
        return Registry(Store(self), IDENTITY).entry()  # type: ignore[arg-type]


def described(world: World) -> dict[str, Any]:
    """Return the answer of DescribeTable."""
    key = [{"AttributeName": "pk", "KeyType": "HASH"}]
    description: dict[str, Any] = {
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
        description["StreamSpecification"] = {"StreamEnabled": True, "StreamViewType": "KEYS_ONLY"}
        description["LatestStreamArn"] = arn_of(world.stream)
    if world.index:
        schema = [*key, {"AttributeName": MARKER, "KeyType": "RANGE"}]
        description["GlobalSecondaryIndexes"] = [
            {"IndexName": INDEX, "IndexStatus": "ACTIVE", "KeySchema": schema}
        ]
    return description


def arn_of(stream: int) -> str:
    return f"arn:T/stream/{stream}"


def streamed(world: World, on: bool) -> World:
    """Turn the stream on or off; a new stream has another ARN."""
    changes = world.changes + 1
    return replace(world, stream=changes if on else 0, changes=changes, records=frozenset())


def mapped(world: World, on: bool) -> World:
    changes = world.changes + 1
    return replace(world, mapping=(world.stream, changes, True) if on else None, changes=changes)


def followers_of(world: World, stream: str | None) -> list[dict[str, str]]:
    if world.mapping is None or arn_of(world.mapping[0]) != stream:
        return []
    state = "Enabled" if world.mapping[2] else "Disabled"
    mapping = {"uuid": "m", "function": "KeepIndex", "problem": "", "queue": "q"}
    return [{**mapping, "state": state, "modified": str(world.mapping[1])}]


def recorded(world: World, name: str) -> World:
    """Add the stream record of a write, if the table has a stream."""
    return replace(world, records=world.records | {name}) if world.stream else world


def written(world: World, call: str, name: str) -> World:
    """Put or delete a sentinel, and add a record if that changes anything."""
    sentinels = world.sentinels | {name} if call == "put" else world.sentinels - {name}
    if sentinels == world.sentinels:
        return world
    return recorded(replace(world, sentinels=sentinels), name)


BEFORE = Table(TABLE, described(World(())))
SENTINEL = Sentinel.of(BEFORE.space)


BATCH = "DDBStreamBatchInfo"


class Pause(BaseException):
    """Raised when an actor makes a call without a recorded answer; it is then made on a world."""

    def __init__(self, call: Call) -> None:
        super().__init__()
        self.call = call


@dataclass
class Calls:
    """The calls of a step: it repeats the recorded answers, and pauses at the first new call."""

    answers: tuple[str, ...]
    at: int = 0

    def make(self, call: Call) -> Any:
        if self.at == len(self.answers):
            raise Pause(call)
        self.at += 1
        return json.loads(self.answers[self.at - 1])


@dataclass
class Store:
    """The registry's store for an actor, or for a reader."""

    calls: Calls | World

    def look(self, name: str) -> Version | None:
        text = self.calls.make(lambda world: (world, world.entry))
        return Version(text.encode(), text, 0.0) if name == ENTRY and text else None

    def read(self, name: str) -> bytes | None:
        return None

    def swap(self, name: str, content: bytes, tag: str | None) -> bool:
        text = content.decode()

        def call(world: World) -> tuple[World, Any]:
            if (world.entry or None) != tag:
                return world, False
            return replace(world, entry=text), True

        return bool(self.calls.make(call))


@dataclass
class Client:
    """The DynamoDB operations that an action uses."""

    calls: Calls

    def describe_table(self, **_: Any) -> dict[str, Any]:
        return {"Table": self.calls.make(lambda world: (world, described(world)))}

    def scan(self, **request: Any) -> dict[str, Any]:
        sentinel = SENTINEL.item_of

        def call(world: World) -> tuple[World, Any]:
            return world, sorted(world.sentinels) if request.get("IndexName") else []

        names = self.calls.make(call)
        return {"Items": [sentinel({"pk": {"S": name}}) for name in names]}

    def call(self, operation: str, **request: Any) -> dict[str, Any]:
        if operation != "update_table":
            return dict(getattr(self, operation)(**request))

        def call(world: World) -> tuple[World, Any]:
            if "StreamSpecification" in request:
                on = request["StreamSpecification"]["StreamEnabled"]
                return streamed(world, on), None
            (change,) = request["GlobalSecondaryIndexUpdates"]
            return replace(world, index="Create" in change), None

        self.calls.make(call)
        return {}


@dataclass
class Keeper:
    """The keeper's mapping, for an action that reads and changes it."""

    calls: Calls
    turns_stream_on = True

    def attach(self, table: Table, sentinel: Sentinel) -> bool:
        def call(world: World) -> tuple[World, Any]:
            is_on = world.mapping is not None and world.mapping[2]
            if is_on and arn_of(world.mapping[0]) == table.stream:  # type: ignore[index]
                return world, True
            if arn_of(world.stream) != table.stream:
                return world, False
            return mapped(world, True), False

        return bool(self.calls.make(call))

    def check_may_detach(self, table: Table) -> None: ...

    def detach(self, table: Table) -> bool:
        def call(world: World) -> tuple[World, Any]:
            return (world, True) if world.mapping is None else (mapped(world, False), False)

        return bool(self.calls.make(call))

    def mappings(self, table: Table) -> int:
        return int(self.calls.make(lambda world: (world, int(world.mapping is not None))))

    def shares_stream(self, table: Table) -> bool:
        return False

    def kept_now(self, table: Table) -> dict[str, str]:
        stream = table.stream
        if stream is None:
            return {}
        followers = self.calls.make(lambda world: (world, followers_of(world, stream)))
        return kept_by(tuple(Follower(**follower) for follower in followers))


@dataclass
class Queue:
    """The keeper's failure queue, for the command that processes its messages."""

    calls: Calls

    def receive_message(self, **_: Any) -> dict[str, Any]:
        batch = {"streamArn": f"arn:x:table/{TABLE}/stream/1", "shardId": "s"}
        body = {**batch, "startSequenceNumber": "1", "endSequenceNumber": "1"}
        return {
            "Messages": [
                {"MessageId": name, "ReceiptHandle": name, "Body": json.dumps({BATCH: body})}
                for name in self.calls.make(lambda world: (world, sorted(world.letters)))
            ]
        }

    def delete_message(self, ReceiptHandle: str, **_: Any) -> None:  # noqa: N803
        def call(world: World) -> tuple[World, Any]:
            return replace(world, letters=world.letters - {ReceiptHandle}), None

        self.calls.make(call)


class ForgetfulStream:
    """A stream that has dropped all records to which a message refers."""

    def get_shard_iterator(self, **_: Any) -> None:
        raise ClientError({"Error": {"Code": "TrimmedDataAccessException"}}, "GetShardIterator")


class Journal:
    """The files of a walk; its report is the name of its run."""

    def __init__(self, run: str) -> None:
        self._counted = json.loads(run)
        self.store = self

    def manifest(self) -> dict[str, Any]:
        figures = {"requests": 0, "items_read": 0, "read_units": 0.0, "no_progress_hops": 0}
        counted = {"index_walk": self._counted, "seconds": 0.0, "ended": MOMENT}
        return {**figures, **counted, "retries": 0, "throttles": {}}

    def plan(self) -> None:
        """Return no plan, so that reports use the list prices."""

    def keep(self, name: str, content: Any) -> None: ...

    def url(self, name: str) -> str:
        return name

    def sizes(self, folder: str) -> dict[str, int]:
        return {}


@dataclass(frozen=True)
class Rules:
    """The rules that are explored; mutants change one, to show that each is needed.

    Attributes:
        withdraws: Whether a command that discards a message withdraws trust before.
        why_not: The decision whether to trust the index.
        fences: Whether walkers check that they hold the lease.
        waits: Whether actors wait for the work of a dead lease holder, and of the keeper.
        checks_again: Whether a reader decides about trust again at its end.
        compares_begun: Whether a reader compares the epochs of its beginning and its end.
        steps: A cache of the outcomes of steps.
    """

    withdraws: bool = True
    life_cycle: type[LifeCycle] = LifeCycle
    why_not: Callable[[Evidence], str | None] = lambda evidence: why_not(evidence, NOW)
    fences: bool = True
    waits: bool = True
    checks_again: bool = True
    compares_begun: bool = True
    steps: dict[Any, Any] = field(default_factory=dict)

    def explore(self, world: World, maximum: int = 5_000_000) -> int:
        """Return the number of reachable worlds; raise AssertionError at the first wrong one."""
        return sum(1 for _ in reachable(world, self.nexts, maximum))

    def nexts(self, world: World) -> Iterator[World]:
        """Yield all worlds that are one call away, and check each."""
        for number, actor in enumerate(world.actors):
            if actor.step == "over":
                continue
            if actor.alive or actor.is_walking:
                next_world = self._acted(world, number, actor)
                if next_world is not None:
                    yield next_world
            if actor.alive and world.crashes:
                dead = replace(actor, alive=False, answers=actor.answers * actor.is_walking)
                yield replace(_with(world, number, dead), crashes=world.crashes - 1)
            if not actor.alive and world.redrives:
                answers = COLLECTIONS if actor.is_walking else ()
                redriven = _with(world, number, replace(actor, alive=True, answers=answers))
                yield replace(redriven, redrives=world.redrives - 1)
        for number, operation in enumerate(world.users):
            rest = (*world.users[:number], *world.users[number + 1 :])
            yield self._used(replace(world, users=rest), operation)
        yield from self._kept(world)
        for write in world.late:
            yield written(replace(world, late=world.late - {write}), *write[1:])
        if world.reader is not None and not world.reader.over:
            yield self._read(world, world.reader)

    def _acted(self, world: World, number: int, actor: Actor) -> World | None:
        """Make one call of an actor; return None if it must wait."""
        if actor.is_walking:
            return self._walked(world, number, actor)
        state = json.loads(actor.state)
        if actor.step == "settle":
            if self.waits and (world.busy or world.late):
                return None
            return _with(world, number, _walking(actor, "walk"))
        waits_for_others = "heir" in state and not actor.answers
        if waits_for_others and self.waits and world.late:
            return None
        if not world.listed and not actor.answers:
            return _with(world, number, replace(actor, step="over", alive=False, error="unlisted"))
        following = self._following(actor)
        if not isinstance(following, Pause):
            return self._stepped(world, number, actor, state, following)
        world, answer = following.call(world)
        actor = replace(actor, answers=(*actor.answers, json.dumps(answer)))
        following = self._following(actor)
        if isinstance(following, Pause):
            return _with(world, number, actor)
        return self._stepped(world, number, actor, state, following)

    def _following(self, actor: Actor) -> Pause | dict[str, Any] | KeyhopError:
        """Return an actor's next call or its step's outcome; both depend on its answers only."""
        key = (actor.name, actor.action, actor.step, actor.state, actor.answers)
        if key not in self.steps:
            try:
                self.steps[key] = self._step(Calls(actor.answers), actor)
            except (Pause, KeyhopError) as outcome:
                self.steps[key] = outcome
        return self.steps[key]

    def _step(self, calls: Calls, actor: Actor) -> dict[str, Any]:
        if actor.action != "discard":
            return self._life_cycle(calls, actor).step(actor.step, json.loads(actor.state))
        registry = Registry(Store(calls), IDENTITY, lambda: MOMENT)  # type: ignore[arg-type]
        letters = DeadLetters(Queue(calls), ForgetfulStream(), "queue", TABLE)
        withdraw = partial(registry.withdraw, DISCARDED) if self.withdraws else lambda: None
        letters.work(lambda records, on_failure: BatchResult(0, 0, ()), withdraw)
        return {"next": "end", "result": {}}

    def _life_cycle(self, calls: Calls, actor: Actor) -> LifeCycle:
        def is_alive(lease: Lease, age: float) -> bool:
            alive = calls.make(
                lambda world: (world, [a.alive for a in world.actors if a.name == lease.holder])
            )
            return any(alive)

        return self.life_cycle(
            Order.parse(actor.action, {"table": TABLE, "graceSeconds": 0}),  # type: ignore[arg-type]
            Connection(Client(calls)),  # type: ignore[arg-type]
            BEFORE,
            lambda table: SENTINEL,
            Registry(Store(calls), IDENTITY, lambda: MOMENT),  # type: ignore[arg-type]
            Keeper(calls),  # type: ignore[arg-type]
            Journal,  # type: ignore[arg-type]
            actor.name,
            is_alive,
            settle_seconds=1,
        )

    def _stepped(
        self,
        world: World,
        number: int,
        actor: Actor,
        state: dict[str, Any],
        outcome: dict[str, Any] | KeyhopError,
    ) -> World:
        if isinstance(outcome, KeyhopError):
            error = str(outcome)
            over = replace(actor, step="over", answers=(), alive=False, error=error)
            return _with(world, number, over)
        state = {**state, **outcome}
        actor = replace(actor, answers=(), state=json.dumps(state))
        following = state["next"]
        if following == "wait":
            pass
        elif following == "walk":
            first = "walk" if "walk" in state else "verify"
            if first == "walk" and state["walk"]["walk"]["kind"] == "check":  # it only reads
                state["walked"] = {"run": json.dumps({})}
                return _with(world, number, replace(actor, step="finish", state=json.dumps(state)))
            is_removal = actor.action == "remove"
            actor = replace(actor, step="settle") if is_removal else _walking(actor, first)
        elif following == "finish":
            actor = replace(actor, step="finish")
        else:
            actor = replace(actor, step="over", alive=False)
            if actor.action == "remove" and "skipped" not in state["result"]:
                assert not world.sentinels, f"sentinels are left: {world}"
                assert not world.index, f"the index is left: {world}"
                assert world.mapping is None, f"the keeper is left: {world}"
        return _with(world, number, actor)

    def _walked(self, world: World, number: int, actor: Actor) -> World | None:
        """Check a collection, and start the write that repairs it; then the walker checks it again.

        Return None if there is nothing to check or an earlier write is in flight, which remains in
        flight if the walker is killed.
        """
        if not actor.answers or any(write[0] == actor.name for write in world.late):
            return None
        lease = world.registry_entry().lease
        if self.fences and (lease is None or lease.holder != actor.name):
            over = replace(actor, step="over", answers=(), alive=False, error="fenced")
            return _with(world, number, over)
        name, *rest = actor.answers
        removes = actor.action == "remove"
        wrong = name in world.sentinels if removes else name in world.items ^ world.sentinels
        state = json.loads(actor.state)
        counted = state.setdefault("counted", {}).setdefault(actor.step, {})
        if wrong:
            kind = "missing" if name in world.items else "surplus"
            counted[kind] = 1
            call = "delete" if removes or kind == "surplus" else "put"
            late = world.late | {(actor.name, call, name)}
            waiting = replace(actor, state=json.dumps(state))
            return _with(replace(world, late=late), number, waiting)
        actor = replace(actor, answers=tuple(rest), state=json.dumps(state))
        return _with(world, number, actor if rest else self._walk_ended(actor, state))

    def _walk_ended(self, actor: Actor, state: dict[str, Any]) -> Actor:
        if not actor.alive:
            return replace(actor, answers=())
        run = json.dumps(state["counted"][actor.step])
        result = {"walk": "walked", "verify": "verified"}[actor.step]
        state = {**state, result: {"run": run}}
        if actor.step == "walk" and "verify" in state:
            return _walking(replace(actor, state=json.dumps(state)), "verify")
        state.pop("counted")
        return replace(actor, step="finish", answers=(), state=json.dumps(state))

    def _used(self, world: World, operation: Operation) -> World:
        kind, *name = operation
        if kind == "insert":
            return recorded(replace(world, items=world.items | set(name)), name[0])
        if kind == "delete":
            return recorded(replace(world, items=world.items - set(name)), name[0])
        if kind == "unlist":
            return replace(mapped(world, False), listed=False)
        if kind == "disable" and world.mapping is not None:
            changes = world.changes + 1
            mapping = (world.mapping[0], changes, False)
            return replace(world, mapping=mapping, changes=changes)
        if kind == "enable" and world.mapping is not None:
            changes = world.changes + 1
            mapping = (world.mapping[0], changes, True)
            # This is a day later: the stream has dropped the records since then.
            return replace(world, mapping=mapping, changes=changes, records=frozenset())
        if kind == "forget":
            return replace(world, records=frozenset())
        if kind == "give up" and name[0] in world.records:
            # The keeper failed repeatedly, and a day later the stream drops the record.
            letters = world.letters | set(name)
            return replace(world, records=world.records - set(name), letters=letters)
        if kind == "expire":
            return replace(world, letters=frozenset(), days=FAILURE_DAYS)
        if kind == "attach" and world.stream:
            return mapped(world, True)
        if kind == "stream":
            return streamed(world, name[0] == "on")
        return world

    def _kept(self, world: World) -> Iterator[World]:
        """Let the keeper read a record's collection, or write what it has decided."""
        if world.mapping is not None and world.mapping[2] and world.mapping[0] == world.stream:
            for name in world.records:
                remaining = replace(world, records=world.records - {name})
                yield replace(remaining, busy=remaining.busy | {(name, name in world.items)})
        for name, has_items in world.busy:
            written_world = replace(world, busy=world.busy - {(name, has_items)})
            yield written(written_world, "put" if has_items else "delete", name)

    def evidence(self, world: World) -> Evidence:
        """Return the evidence that a reader finds at one moment."""
        stream = arn_of(world.stream) if world.stream else None
        entry = world.registry_entry()
        if entry.verification is not None:
            began = datetime.fromisoformat(entry.verification["began"]) - timedelta(days=world.days)
            entry = replace(entry, verification={**entry.verification, "began": began.isoformat()})
        return Evidence(
            "ACTIVE" if world.index else None,
            entry,
            SENTINEL,
            world.listed,
            stream,
            tuple(Follower(**follower) for follower in followers_of(world, stream)),
            lag_seconds=0.0,
            longest_lag_seconds=0.0,
            failures=len(world.letters),
        )

    def _read(self, world: World, reader: Reader) -> World:
        if reader.epoch is None:
            evidence = self.evidence(world)
            if self.why_not(evidence) is not None:
                return replace(world, reader=replace(reader, over=True))
            # A collection that the keeper has not processed may be listed or not.
            pending = world.records | {name for name, _ in world.busy}
            reader = replace(reader, epoch=evidence.entry.epoch, required=world.items - pending)
        elif reader.remaining:
            name, *rest = reader.remaining
            listed = reader.listed | ({name} & world.sentinels if world.index else frozenset())
            reader = replace(reader, remaining=tuple(rest), listed=listed)
        else:
            evidence = self.evidence(world)
            is_doubtful = self.checks_again and self.why_not(evidence) is not None
            differs = self.compares_begun and evidence.entry.epoch != reader.epoch
            reader = replace(reader, over=True)
            if not is_doubtful and not differs:
                missing = (reader.required & world.items) - reader.listed
                assert not missing, f"a partial list: {sorted(missing)} of {world}"
        return replace(world, reader=reader)


def _walking(actor: Actor, step: str) -> Actor:
    return replace(actor, step=step, answers=COLLECTIONS)


def _with(world: World, number: int, actor: Actor) -> World:
    actors = (*world.actors[:number], actor, *world.actors[number + 1 :])
    return replace(world, actors=actors)
