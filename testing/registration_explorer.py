"""Explore every interleaving of programs that register, read, lose and recover a key's metadata.

The explored code is `Metadata` itself, as in life_cycle_explorer: each program runs again from its
start for each of its requests, with the responses so far, up to its next request, which is made on
the world. So the state of a program between two requests is the list of its responses.

There is no time. What depends on time is expressed as an order: if the rules are `settled`,
metadata is lost only when no program acts on earlier reads any more.
"""

import json
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from botocore.exceptions import ClientError
from keyhop.dynamodb.schema import KeyAttribute
from keyhop.errors import CannotStart, MetadataLost
from keyhop.sharding.key.placement import Placement
from keyhop.sharding.key.schema import Names, Schema
from keyhop.sharding.store.metadata import Metadata, MetadataChanged
from keyhop.sharding.store.requests import Requests

from testing.life_cycle_explorer import Calls, Pause
from testing.worlds import with_broken

Call = Callable[["World"], tuple["World", Any]]
TABLE, METADATA = "t", "t-shards"
NAMES = Names()
SCHEMA = Schema(TABLE, KeyAttribute("p", "S"), KeyAttribute("s", "S"), NAMES)
REFUSED = {"Error": {"Code": "ConditionalCheckFailedException", "Message": ""}}


class Actor(NamedTuple):
    """A program. answers: the responses so far. acts: on what it read. over: how it ended."""

    answers: tuple[str, ...] = ()
    acts: bool = False
    over: str = ""


class World(NamedTuple):
    """The actors, the metadata items by key as JSON, and all (physical key, item) in the table.

    acknowledged: the items whose writes were acknowledged. lost: whether metadata was ever lost.
    conditional: whether requests are refused if their conditions do not hold.
    """

    actors: tuple[Actor, ...]
    metadata: tuple[tuple[str, str], ...] = ()
    shards: frozenset[tuple[str, str]] = frozenset()
    acknowledged: frozenset[tuple[str, str]] = frozenset()
    lost: bool = False
    conditional: bool = True


def settled(world: World) -> tuple[World, None]:
    """Change nothing. This call is made only when no program acts on an earlier read."""
    return world, None


@dataclass
class StoppedClock:
    """A clock for one program. It stands still, so cached metadata never expires."""

    now: float

    def monotonic(self) -> float:
        return 0.0

    def time(self) -> float:
        return self.now

    def sleep(self, seconds: float) -> None:
        pass


@dataclass
class Desk:
    """The client with which a program makes its requests. acts: see Actor."""

    calls: Calls
    name: str
    now: float
    acts: bool = False

    def make(self, call: Call) -> Any:
        answer = self.calls.make(call)
        self.acts = True
        return answer

    def call(self, operation: str, **parameters: Any) -> Any:
        answer = self.make(lambda world: respond(world, operation, parameters))
        if "Error" in answer:
            raise ClientError(answer, operation)
        return answer

    def metadata(
        self, kind: type[Metadata] = Metadata, first_count: int = 1, placement: str = "calculated"
    ) -> Metadata:
        """Return the metadata store of a new process, without cached metadata."""
        placed = Placement(placement == "calculated")
        requests = Requests(self, StoppedClock(self.now), patience=0.0)
        return kind(requests, METADATA, SCHEMA, placed, 5.0, None, lambda key: first_count)

    def put(self, shard: int, item: str) -> None:
        """Write an item; the write is acknowledged at once."""
        (physical,) = NAMES.physical({"S": "k"}, shard).values()
        stored = {(str(physical), item)}
        self.make(
            lambda world: (
                world._replace(
                    shards=world.shards | stored, acknowledged=world.acknowledged | stored
                ),
                None,
            )
        )

    def settle(self) -> None:
        """Wait until no program acts on an earlier read."""
        self.calls.make(settled)
        self.acts = False

    def items_in(self, shard: int) -> set[str]:
        (physical,) = NAMES.physical({"S": "k"}, shard).values()
        return set(self.make(lambda w: (w, [item for at, item in w.shards if at == physical])))

    def acknowledged(self) -> set[str]:
        return set(self.make(lambda world: (world, [item for _, item in world.acknowledged])))


Program = Callable[[Desk], None]


def writes(times: int = 1, into: tuple[int, ...] = (), **settings: Any) -> Program:
    """Return a program that reads metadata and puts items `into` shards, or the last writable."""

    def program(desk: Desk) -> None:
        metadata = desk.metadata(**settings)
        for n in range(times):
            record = metadata.of({"S": "k"}, register=True, fresh=True)
            for shard in into or (record.shards.writable,):
                desk.put(shard, f"{desk.name} {n} {shard}")
            desk.acts = False

    return program


def grows(**settings: Any) -> Program:
    """Return a program that gives the key a second shard at once, and puts an item into it."""

    def program(desk: Desk) -> None:
        metadata = desk.metadata(**settings)
        record = metadata.of({"S": "k"}, register=True)
        if record.shards.number == 1:
            after = record.shards.grown(2, 0.0).advanced(0.0).advanced(0.0)
            record = metadata.change({"S": "k"}, record, after)
        desk.put(record.shards.writable, desk.name)

    return program


def registers(key: str, **settings: Any) -> Program:
    """Return a program that registers a key, and does not use it."""

    def program(desk: Desk) -> None:
        desk.metadata(**settings).of({"S": key}, register=True)

    return program


def counts(desk: Desk) -> None:
    """Count shards."""
    item = desk.metadata().item
    item.recount(item.counted(), 5)
    item.count(2)


def recovers(kind: type[Metadata] = Metadata) -> Program:
    """Return `keyhop shards recover` as a program: it checks for a loss, then reads the keys."""

    def program(desk: Desk) -> None:
        metadata = desk.metadata(kind)
        if metadata.find({"S": "k"}) is not None:
            return
        desk.settle()
        physical = desk.make(lambda world: (world, sorted({at for at, _ in world.shards})))
        parsed = [NAMES.parsed({"S": at}) for at in physical]
        number = max((shard for _, shard in filter(None, parsed)), default=1)
        if number > 1:
            new = metadata.as_new(1).recovered(number, desk.now)
            metadata.create({"S": "k"}, new)

    return program


def reads(times: int = 1, **settings: Any) -> Program:
    """Return a program that reads all acknowledged items, or reports that it cannot."""

    def program(desk: Desk) -> None:
        metadata = desk.metadata(**settings)
        for _ in range(times):
            before = desk.acknowledged()
            record = metadata.of({"S": "k"}, fresh=True)
            shards = range(1, record.shards.readable + 1)
            visible = {item for shard in shards for item in desk.items_in(shard)}
            assert before <= visible, f"{sorted(before - visible)} is not seen"
            desk.acts = False

    return program


def loses(desk: Desk) -> None:
    """Delete the key's metadata."""
    desk.make(
        lambda world: (
            world._replace(metadata=tuple(m for m in world.metadata if m[0] != "k"), lost=True),
            None,
        )
    )


@dataclass
class Rules:
    """The explored programs and rules. Other values than the defaults show that each is needed.

    conditional: see World. settled: see the module. check: asserts what must hold in each world.
    """

    programs: Mapping[str, Program]
    conditional: bool = True
    settled: bool = True
    check: Callable[[World], None] = lambda world: None
    _following: dict[Any, Any] = field(default_factory=dict, init=False)

    def explore(self, max_worlds: int = 2_000_000) -> tuple[int, list[str]]:
        """Return the number of reachable worlds, and some of the violations in them."""
        first = World(tuple(Actor() for _ in self.programs), conditional=self.conditional)

        def steps(world: World) -> Iterator[tuple[World | str, bool]]:
            for number in range(len(world.actors)):
                try:
                    after = self._step(world, number)
                    if after is not None:
                        self.check(after)
                        yield after, True
                except AssertionError as error:
                    yield f"{error} in {world}", False

        return with_broken(first, steps, max_worlds)

    def _step(self, world: World, number: int) -> World | None:
        """Return the world after an actor's next request; None if it has none, or must wait."""
        name, actor = [*self.programs][number], world.actors[number]
        if actor.over:
            return None
        other_actors = (*world.actors[:number], *world.actors[number + 1 :])
        following, _ = self._run(name, number, actor.answers)
        assert isinstance(following, Pause)
        waits = self.settled and (following.call is settled or self.programs[name] is loses)
        if waits and any(other_actor.acts for other_actor in other_actors):
            return None
        world, answer = following.call(world)
        answers = (*actor.answers, json.dumps(answer))
        following, acts = self._run(name, number, answers)
        over = "" if isinstance(following, Pause) else following
        assert over != "MetadataLost" or world.lost, f"{name} misses what was never lost"
        actor = Actor(() if over else answers, acts and not over, over)
        return world._replace(actors=(*world.actors[:number], actor, *world.actors[number + 1 :]))

    def _run(self, name: str, number: int, answers: tuple[str, ...]) -> tuple[Pause | str, bool]:
        """Return a program's next request, or how it ended; and whether it acts on a read."""
        case = (name, answers)
        if case not in self._following:
            desk = Desk(Calls(answers), name, 1_800_000_000.0 + number)
            try:
                self.programs[name](desk)
                outcome: Pause | str = "done"
            except Pause as pause:
                outcome = pause
            except (CannotStart, MetadataLost, MetadataChanged) as error:
                outcome = type(error).__name__
            self._following[case] = outcome, desk.acts
        return self._following[case]


def respond(world: World, operation: str, request: Mapping[str, Any]) -> tuple[World, Any]:
    """Return the response to a request, of the kinds that `Metadata` makes, and the world after."""
    if operation == "query":
        (physical,) = request["ExpressionAttributeValues"][":p"].values()
        return world, {"Count": sum(at == physical for at, _ in world.shards)}
    items = dict(world.metadata)
    if operation == "scan":
        return world, {"Items": [json.loads(item) for item in items.values()]}
    if operation == "put_item":
        key, after = request["Item"]["p"]["S"], request["Item"]
    else:
        key = request["Key"]["p"]["S"]
    before = json.loads(items.get(key, "{}"))
    if operation == "get_item":
        return world, {"Item": before} if before else {}
    if operation == "update_item":
        after = {**(before or request["Key"]), **dict(_updates(before, request))}
    condition = request.get("ConditionExpression", "")
    if world.conditional and condition and not _holds(condition, before, request):
        return world, {**REFUSED, **({"Item": before} if before else {})}
    items[key] = json.dumps(after, sort_keys=True)
    return world._replace(metadata=tuple(sorted(items.items()))), {}


def _updates(item: Mapping[str, Any], request: Mapping[str, Any]) -> Iterator[tuple[str, Any]]:
    """Yield the attributes that SET or ADD changes, with their new values."""
    kind, _, rest = request["UpdateExpression"].partition(" ")
    for part in rest.split(", "):
        name, value = part.replace("=", " ").split()
        name, value = request["ExpressionAttributeNames"][name], _value(value, request)
        if kind == "ADD":
            value = {"N": str(int(item.get(name, {"N": "0"})["N"]) + int(value["N"]))}
        yield name, value


def _value(name: str, request: Mapping[str, Any]) -> Any:
    return request["ExpressionAttributeValues"][name]


def _holds(condition: str, item: Mapping[str, Any], request: Mapping[str, Any]) -> bool:
    """Return whether a condition holds: its parts are joined by AND."""
    names = request["ExpressionAttributeNames"]
    for part in condition.split(" AND "):
        function, _, argument = part.rstrip(")").partition("(")
        if argument:
            if (names[argument] in item) != (function == "attribute_exists"):
                return False
        else:
            name, value = part.split(" = ")
            if item.get(names[name]) != _value(value, request):
                return False
    return True
