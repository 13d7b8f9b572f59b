"""Every interleaving of those who register a key, read it, lose its metadata, and recover it.

The code that is explored is `Metadata` itself, as it is in life_cycle_explorer: a program is run
anew for each request that it makes, with the answers that it has had so far, up to its next one,
which is made on the world. So whoever is between two requests is the answers that he has had.

Time is not in it. What rests on time is stated as order: where a world is `settled`, metadata is
lost only when nobody acts any more upon what he had read before.
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
    """answers: to its requests so far. acts: upon what it has read. over: how it has ended."""

    answers: tuple[str, ...] = ()
    acts: bool = False
    over: str = ""


class World(NamedTuple):
    """metadata: items by key, as JSON. shards: (physical key, item), all that lies in the table.

    acknowledged: of these, what was. lost: whether metadata has ever been lost. conditional:
    whether requests are refused whose conditions do not hold.
    """

    actors: tuple[Actor, ...]
    metadata: tuple[tuple[str, str], ...] = ()
    shards: frozenset[tuple[str, str]] = frozenset()
    acknowledged: frozenset[tuple[str, str]] = frozenset()
    lost: bool = False
    conditional: bool = True


def settled(world: World) -> tuple[World, None]:
    """A call that changes nothing, and is made only when nobody acts upon what he has read."""
    return world, None


@dataclass
class StoppedClock:
    """What is cached stays so; programs say when they read anew. No two have the same time."""

    now: float

    def monotonic(self) -> float:
        return 0.0

    def time(self) -> float:
        return self.now

    def sleep(self, seconds: float) -> None:
        pass


@dataclass
class Desk:
    """Where a program makes its requests, as Keyhop's client. acts: see Actor."""

    calls: Calls
    name: str
    now: float
    acts: bool = False

    def make(self, call: Call) -> Any:
        answer = self.calls.make(call)
        self.acts = True
        return answer

    def call(self, operation: str, **parameters: Any) -> Any:
        answer = self.make(lambda world: answered(world, operation, parameters))
        if "Error" in answer:
            raise ClientError(answer, operation)
        return answer

    def metadata(
        self, kind: type[Metadata] = Metadata, first_count: int = 1, placement: str = "calculated"
    ) -> Metadata:
        """What a process has in its memory; none at first."""
        how = Placement(placement == "calculated")
        requests = Requests(self, StoppedClock(self.now), patience=0.0)
        return kind(requests, METADATA, SCHEMA, how, 5.0, None, lambda key: first_count)

    def put(self, shard: int, item: str) -> None:
        """A write that is acknowledged at once."""
        (physical,) = NAMES.physical({"S": "k"}, shard).values()
        one = {(str(physical), item)}
        self.make(
            lambda world: (
                world._replace(shards=world.shards | one, acknowledged=world.acknowledged | one),
                None,
            )
        )

    def settle(self) -> None:
        """Time passes, until nobody acts upon what he had read before."""
        self.calls.make(settled)
        self.acts = False

    def lies_in(self, shard: int) -> set[str]:
        (physical,) = NAMES.physical({"S": "k"}, shard).values()
        return set(self.make(lambda w: (w, [item for at, item in w.shards if at == physical])))

    def acknowledged(self) -> set[str]:
        return set(self.make(lambda world: (world, [item for _, item in world.acknowledged])))


Program = Callable[[Desk], None]


def writes(times: int = 1, into: tuple[int, ...] = (), **how: Any) -> Program:
    """Puts an item into the last shard that may be written, or into these; each time by what it
    reads anew.
    """

    def program(desk: Desk) -> None:
        metadata = desk.metadata(**how)
        for n in range(times):
            known = metadata.of({"S": "k"}, register=True, fresh=True)
            for shard in into or (known.shards.writable,):
                desk.put(shard, f"{desk.name} {n} {shard}")
            desk.acts = False

    return program


def grows(**how: Any) -> Program:
    """Gives the key a second shard, and puts an item into it. The steps between are elsewhere."""

    def program(desk: Desk) -> None:
        metadata = desk.metadata(**how)
        known = metadata.of({"S": "k"}, register=True)
        if known.shards.number == 1:
            after = known.shards.grown(2, 0.0).advanced(0.0).advanced(0.0)
            known = metadata.change({"S": "k"}, known, after)
        desk.put(known.shards.writable, desk.name)

    return program


def registers(key: str, **how: Any) -> Program:
    """Registers a key, and does nothing with it."""

    def program(desk: Desk) -> None:
        desk.metadata(**how).of({"S": key}, register=True)

    return program


def counts(desk: Desk) -> None:
    """Counts shards."""
    item = desk.metadata().item
    item.recount(item.counted(), 5)
    item.count(2)


def recovers(kind: type[Metadata] = Metadata) -> Program:
    """`keyhop shards recover`: what is lost is found before the physical keys are read."""

    def program(desk: Desk) -> None:
        metadata = desk.metadata(kind)
        if metadata.find({"S": "k"}) is not None:
            return
        desk.settle()
        physical = desk.make(lambda world: (world, sorted({at for at, _ in world.shards})))
        parsed = [NAMES.parsed({"S": at}) for at in physical]
        number = max((one[1] for one in parsed if one), default=1)
        if number > 1:
            new = metadata.as_new(1).recovered(number, desk.now)
            metadata.create({"S": "k"}, new)

    return program


def reads(times: int = 1, **how: Any) -> Program:
    """Reports all that was acknowledged before; or that it cannot."""

    def program(desk: Desk) -> None:
        metadata = desk.metadata(**how)
        for _ in range(times):
            before = desk.acknowledged()
            known = metadata.of({"S": "k"}, fresh=True)
            shards = range(1, known.shards.readable + 1)
            found = {item for shard in shards for item in desk.lies_in(shard)}
            assert before <= found, f"{sorted(before - found)} is not seen"
            desk.acts = False

    return program


def loses(desk: Desk) -> None:
    """Somebody deletes the key's metadata."""
    desk.make(
        lambda world: (
            world._replace(metadata=tuple(m for m in world.metadata if m[0] != "k"), lost=True),
            None,
        )
    )


@dataclass
class Rules:
    """What is explored; others than the defaults show what each part is for.

    conditional: see World. settled: see above. check: of each world, what must be so.
    """

    programs: Mapping[str, Program]
    conditional: bool = True
    settled: bool = True
    check: Callable[[World], None] = lambda world: None
    _following: dict[Any, Any] = field(default_factory=dict, init=False)

    def explore(self, most: int = 2_000_000) -> tuple[int, list[str]]:
        """How many worlds can come of it, and some of what goes wrong in them."""
        begin = World(tuple(Actor() for _ in self.programs), conditional=self.conditional)

        def steps(here: World) -> Iterator[tuple[World | str, bool]]:
            for number in range(len(here.actors)):
                try:
                    there = self._stepped(here, number)
                    if there is not None:
                        self.check(there)
                        yield there, True
                except AssertionError as error:
                    yield f"{error} in {here}", False

        return with_broken(begin, steps, most)

    def _stepped(self, world: World, number: int) -> World | None:
        """After the next request of somebody; None if there is none, or not yet."""
        name, actor = [*self.programs][number], world.actors[number]
        if actor.over:
            return None
        others = (*world.actors[:number], *world.actors[number + 1 :])
        following, _ = self._run(name, number, actor.answers)
        assert isinstance(following, Pause)
        waits = self.settled and (following.call is settled or self.programs[name] is loses)
        if waits and any(one.acts for one in others):
            return None
        world, answer = following.call(world)
        answers = (*actor.answers, json.dumps(answer))
        following, acts = self._run(name, number, answers)
        over = "" if isinstance(following, Pause) else following
        assert over != "MetadataLost" or world.lost, f"{name} misses what was never lost"
        actor = Actor(() if over else answers, acts and not over, over)
        return world._replace(actors=(*world.actors[:number], actor, *world.actors[number + 1 :]))

    def _run(self, name: str, number: int, answers: tuple[str, ...]) -> tuple[Pause | str, bool]:
        """The next request of a program, or how it has ended; and whether it acts by then."""
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


def answered(world: World, operation: str, given: Mapping[str, Any]) -> tuple[World, Any]:
    """A request to DynamoDB, as far as `Metadata` makes any."""
    if operation == "query":
        (physical,) = given["ExpressionAttributeValues"][":p"].values()
        return world, {"Count": sum(at == physical for at, _ in world.shards)}
    held = dict(world.metadata)
    if operation == "scan":
        return world, {"Items": [json.loads(item) for item in held.values()]}
    if operation == "put_item":
        key, after = given["Item"]["p"]["S"], given["Item"]
    else:
        key = given["Key"]["p"]["S"]
    before = json.loads(held.get(key, "{}"))
    if operation == "get_item":
        return world, {"Item": before} if before else {}
    if operation == "update_item":
        after = {**(before or given["Key"]), **dict(_updated(before, given))}
    condition = given.get("ConditionExpression", "")
    if world.conditional and condition and not _holds(condition, before, given):
        return world, {**REFUSED, **({"Item": before} if before else {})}
    held[key] = json.dumps(after, sort_keys=True)
    return world._replace(metadata=tuple(sorted(held.items()))), {}


def _updated(item: Mapping[str, Any], given: Mapping[str, Any]) -> Iterator[tuple[str, Any]]:
    """What SET and ADD make of an item, by attribute."""
    kind, _, rest = given["UpdateExpression"].partition(" ")
    for part in rest.split(", "):
        name, value = part.replace("=", " ").split()
        name, value = given["ExpressionAttributeNames"][name], _value(value, given)
        if kind == "ADD":
            value = {"N": str(int(item.get(name, {"N": "0"})["N"]) + int(value["N"]))}
        yield name, value


def _value(name: str, given: Mapping[str, Any]) -> Any:
    return given["ExpressionAttributeValues"][name]


def _holds(condition: str, item: Mapping[str, Any], given: Mapping[str, Any]) -> bool:
    """Whether a condition does: parts joined by AND."""
    names = given["ExpressionAttributeNames"]
    for part in condition.split(" AND "):
        function, _, argument = part.rstrip(")").partition("(")
        if argument:
            if (names[argument] in item) != (function == "attribute_exists"):
                return False
        else:
            name, value = part.split(" = ")
            if item.get(names[name]) != _value(value, given):
                return False
    return True
