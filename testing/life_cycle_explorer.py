"""Every interleaving of builds, verifications, removals, users, the keeper, a deploy and a crash.

The code that is explored is `LifeCycle` itself, `DeadLetters`, `Registry` and `why_not`. A world is
a value: the table, its stream, the keeper's mapping, the registry's entry, and how far each actor
is. An actor's step is run anew for each call that it makes: with the answers that it has had so
far, up to its next call, which is made on the world; so an actor between two calls is the answers
that it has had.

Time is not in it. What rests on time is stated as order: a wait for what others may still be doing
ends when they do not any more.
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

    def make(self, call: Call) -> Any:
        """The answer to a call that is made at once, and changes nothing."""
        return call(self)[1]

    def registry_entry(self) -> Entry:
        """As a reader sees it."""
        return Registry(Store(self), IDENTITY).entry()  # type: ignore[arg-type]


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


BATCH = "DDBStreamBatchInfo"


class Pause(BaseException):
    """The actor is about to make its next call, which is made on a world."""

    def __init__(self, call: Call) -> None:
        super().__init__()
        self.call = call


@dataclass
class Calls:
    """The calls of one step: answered as they were; the first that was not is the next to make."""

    answers: tuple[str, ...]
    at: int = 0

    def make(self, call: Call) -> Any:
        if self.at == len(self.answers):
            raise Pause(call)
        self.at += 1
        return json.loads(self.answers[self.at - 1])


@dataclass
class Store:
    """The registry's store, as an actor calls it, or a reader."""

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
    """DynamoDB, as far as an action asks it."""

    calls: Calls

    def describe_table(self, **_: Any) -> dict[str, Any]:
        return {"Table": self.calls.make(lambda world: (world, described(world)))}

    def scan(self, **asked: Any) -> dict[str, Any]:
        sentinel = SENTINEL.item_of

        def call(world: World) -> tuple[World, Any]:
            return world, sorted(world.sentinels) if asked.get("IndexName") else []

        names = self.calls.make(call)
        return {"Items": [sentinel({"pk": {"S": name}}) for name in names]}

    def call(self, operation: str, **asked: Any) -> dict[str, Any]:
        if operation != "update_table":
            return dict(getattr(self, operation)(**asked))

        def call(world: World) -> tuple[World, Any]:
            if "StreamSpecification" in asked:
                on = asked["StreamSpecification"]["StreamEnabled"]
                return streamed(world, on), None
            (change,) = asked["GlobalSecondaryIndexUpdates"]
            return replace(world, index="Create" in change), None

        self.calls.make(call)
        return {}


@dataclass
class Keeper:
    """The keeper's mapping, as an action sees and changes it."""

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
        found = self.calls.make(lambda world: (world, followers_of(world, stream)))
        return kept_by(tuple(Follower(**one) for one in found))


@dataclass
class Queue:
    """The keeper's failure queue, as the command calls it that works it off."""

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
    """A stream that has forgotten all records that a message points to."""

    def get_shard_iterator(self, **_: Any) -> None:
        raise ClientError({"Error": {"Code": "TrimmedDataAccessException"}}, "GetShardIterator")


class Journal:
    """The files of a walk whose report is in the name of its run."""

    def __init__(self, run: str) -> None:
        self._counted = json.loads(run)
        self.store = self

    def manifest(self) -> dict[str, Any]:
        figures = {"requests": 0, "items_read": 0, "read_units": 0.0, "no_progress_hops": 0}
        counted = {"index_walk": self._counted, "seconds": 0.0, "ended": MOMENT}
        return {**figures, **counted, "retries": 0, "throttles": {}}

    def plan(self) -> None:
        """Reports go by the list prices then."""

    def keep(self, name: str, content: Any) -> None: ...

    def url(self, name: str) -> str:
        return name

    def sizes(self, folder: str) -> dict[str, int]:
        return {}


@dataclass(frozen=True)
class Rules:
    """What is explored; others than the defaults are mutants, to show what each part is for.

    why_not: of trust. fences: walkers see whether the lease is theirs. waits: for what a dead
    holder, or the keeper, may still be doing. checks_again: a reader, at its end. life_cycle: the
    class that is explored. withdraws: who discards a message withdraws trust before. steps: what is
    known of them already.
    """

    withdraws: bool = True
    life_cycle: type[LifeCycle] = LifeCycle
    why_not: Callable[[Evidence], str | None] = lambda seen: why_not(seen, NOW)
    fences: bool = True
    waits: bool = True
    checks_again: bool = True
    compares_begun: bool = True
    steps: dict[Any, Any] = field(default_factory=dict)

    def explore(self, world: World, most: int = 5_000_000) -> int:
        """How many worlds can come of it; raises AssertionError with the first that is wrong."""
        return sum(1 for _ in reachable(world, self.nexts, most))

    def nexts(self, world: World) -> Iterator[World]:
        """All worlds that are one call away; each is looked at."""
        for number, actor in enumerate(world.actors):
            if actor.step == "over":
                continue
            if actor.alive or actor.is_walking:
                there = self._acted(world, number, actor)
                if there is not None:
                    yield there
            if actor.alive and world.crashes:
                dead = replace(actor, alive=False, answers=actor.answers * actor.is_walking)
                yield replace(_with(world, number, dead), crashes=world.crashes - 1)
            if not actor.alive and world.redrives:
                left = COLLECTIONS if actor.is_walking else ()
                again = _with(world, number, replace(actor, alive=True, answers=left))
                yield replace(again, redrives=world.redrives - 1)
        for number, operation in enumerate(world.users):
            rest = (*world.users[:number], *world.users[number + 1 :])
            yield self._used(replace(world, users=rest), operation)
        yield from self._kept(world)
        for write in world.late:
            yield written(replace(world, late=world.late - {write}), *write[1:])
        if world.reader is not None and not world.reader.over:
            yield self._read(world, world.reader)

    def _acted(self, world: World, number: int, actor: Actor) -> World | None:
        """One call of an actor; None: it has to wait."""
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
        """An actor's next call, or what its step came to: that follows from its answers alone."""
        known = (actor.name, actor.action, actor.step, actor.state, actor.answers)
        if known not in self.steps:
            try:
                self.steps[known] = self._step(Calls(actor.answers), actor)
            except (Pause, KeyhopError) as outcome:
                self.steps[known] = outcome
        return self.steps[known]

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
        """A collection is looked at, and a write begun that the look leads to; None: one is not
        done yet. A walker that is killed before that leaves it behind. It looks again afterwards.
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
            there = replace(actor, state=json.dumps(state))
            return _with(replace(world, late=late), number, there)
        actor = replace(actor, answers=tuple(rest), state=json.dumps(state))
        return _with(world, number, actor if rest else self._walk_ended(actor, state))

    def _walk_ended(self, actor: Actor, state: dict[str, Any]) -> Actor:
        if not actor.alive:
            return replace(actor, answers=())
        run = json.dumps(state["counted"][actor.step])
        done = {"walk": "walked", "verify": "verified"}[actor.step]
        state = {**state, done: {"run": run}}
        if actor.step == "walk" and "verify" in state:
            return _walking(replace(actor, state=json.dumps(state)), "verify")
        state.pop("counted")
        return replace(actor, step="finish", answers=(), state=json.dumps(state))

    def _used(self, world: World, operation: Operation) -> World:
        what, *name = operation
        if what == "insert":
            return told_of(replace(world, items=world.items | set(name)), name[0])
        if what == "delete":
            return told_of(replace(world, items=world.items - set(name)), name[0])
        if what == "unlist":
            return replace(mapped(world, False), listed=False)
        if what == "disable" and world.mapping is not None:
            changes = world.changes + 1
            mapping = (world.mapping[0], changes, False)
            return replace(world, mapping=mapping, changes=changes)
        if what == "enable" and world.mapping is not None:
            changes = world.changes + 1
            mapping = (world.mapping[0], changes, True)
            # A day later: the stream has forgotten what it told meanwhile.
            return replace(world, mapping=mapping, changes=changes, records=frozenset())
        if what == "forget":
            return replace(world, records=frozenset())
        if what == "give up" and name[0] in world.records:
            # The keeper failed again and again, and a day later the stream forgets the record.
            left = world.records - set(name)
            return replace(world, records=left, letters=world.letters | set(name))
        if what == "expire":
            return replace(world, letters=frozenset(), days=FAILURE_DAYS)
        if what == "attach" and world.stream:
            return mapped(world, True)
        if what == "stream":
            return streamed(world, name[0] == "on")
        return world

    def _kept(self, world: World) -> Iterator[World]:
        """The keeper takes a record, and acts upon what it has seen."""
        if world.mapping is not None and world.mapping[2] and world.mapping[0] == world.stream:
            for name in world.records:
                taken = replace(world, records=world.records - {name})
                yield replace(taken, busy=taken.busy | {(name, name in world.items)})
        for name, has_items in world.busy:
            done = replace(world, busy=world.busy - {(name, has_items)})
            yield written(done, "put" if has_items else "delete", name)

    def evidence(self, world: World) -> Evidence:
        """What a reader sees, all at one moment."""
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
            tuple(Follower(**one) for one in followers_of(world, stream)),
            lag_seconds=0.0,
            longest_lag_seconds=0.0,
            failures=len(world.letters),
        )

    def _read(self, world: World, reader: Reader) -> World:
        if reader.begun is None:
            seen = self.evidence(world)
            if self.why_not(seen) is not None:
                return replace(world, reader=replace(reader, over=True))
            # What nobody has looked at yet may be listed or not.
            waiting = world.records | {name for name, _ in world.busy}
            sure = world.items - waiting
            reader = replace(reader, begun=seen.entry.epoch, sure=sure)
        elif reader.left:
            name, *rest = reader.left
            found = reader.found | ({name} & world.sentinels if world.index else frozenset())
            reader = replace(reader, left=tuple(rest), found=found)
        else:
            seen = self.evidence(world)
            doubts = self.checks_again and self.why_not(seen) is not None
            differs = self.compares_begun and seen.entry.epoch != reader.begun
            reader = replace(reader, over=True)
            if not doubts and not differs:
                lacking = (reader.sure & world.items) - reader.found
                assert not lacking, f"a partial list: {sorted(lacking)} of {world}"
        return replace(world, reader=reader)


def _walking(actor: Actor, step: str) -> Actor:
    return replace(actor, step=step, answers=COLLECTIONS)


def _with(world: World, number: int, actor: Actor) -> World:
    actors = (*world.actors[:number], actor, *world.actors[number + 1 :])
    return replace(world, actors=actors)
