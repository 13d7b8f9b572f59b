"""The stream's worker when requests fail or are late, and when it is killed."""

from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from functools import partial
from random import Random
from typing import Any

import pytest
from keyhop.dynamodb.values import Item, Key
from keyhop.errors import GaveUp
from keyhop.rekey.cutover.deployed import NotDeployed
from keyhop.rekey.standing import RekeyStatus
from keyhop.rekey.worker.protocol import WAIT_SECONDS
from keyhop.rekey.worker.replicate import KILLED_TIMES, GiveUp, Replicator

from testing.rekey_owned import Owned
from tests.integration.rekey.faults import WRITES, Fate, Faulty, Killed
from tests.integration.rekey.worlds import World, batches

GivenUp = tuple[Key, Sequence[Key]]


def faulty(
    world: World, fate: Callable[[str, Mapping[str, Any]], Fate], **more: Any
) -> tuple[Replicator, Faulty]:
    client = Faulty(world.connection.client, fate)
    connection = replace(world.connection, client=client)
    return world.replicator(connection_of=lambda name: connection, **more), client


class Deadly(Owned):
    """A transform that kills the process that maps a certain item."""

    def forward(self, item: Item) -> Item | None:
        if item["id"] == {"S": "s1"}:
            raise Killed
        return super().forward(item)


def _record(given_up: list[GivenUp]) -> GiveUp:
    return lambda key, places: given_up.append((key, places))


def once(fate: Fate, table: str, operations: set[str] = WRITES) -> Callable[..., Fate]:
    """Return a function that chooses a fate for the first such request to a table."""
    fates = [fate]

    def choose(operation: str, parameters: Mapping[str, Any]) -> Fate:
        if operation in operations and parameters.get("TableName") == table and fates:
            return fates.pop()
        return None

    return choose


def test_a_note_that_lands_late_does_not_outlast_its_batch(world: World) -> None:
    """The late note is the first attempt of a repeated request.

    If it remained after the end of its batch, a cutover would wait for ever.
    """
    replicator, client = faulty(world, once("late", world.pair.side))
    end = world.moments.now + WAIT_SECONDS
    world.moments.on_wait = lambda seconds: client.land() if world.moments.now > end - 0.1 else None
    world.put("s", "d")
    replicator.work(world.records())
    if world.moments.now < end:
        client.land()
    assert world.side.open_batches("forward") == []


def test_a_write_without_an_answer_is_waited_for_and_not_sent_again_before(world: World) -> None:
    """The write lands after the source has changed, which the second read alone would not see."""
    world.put("s", "d", data="old")
    replicator, client = faulty(world, once("late", world.pair.destination))
    records = world.records()
    world.put("s", "d", data="new")
    world.moments.on_wait = lambda seconds: client.land()
    worked = replicator.work(records)
    assert world.moments.waits == [pytest.approx(WAIT_SECONDS)]
    assert worked.keys == 1
    assert world.actual == world.expected


def test_a_batch_that_was_killed_waits_before_it_writes(world: World) -> None:
    world.put("s", "d")
    records = world.records()
    killed, client = faulty(world, once("killed", world.pair.destination))
    with pytest.raises(Killed):
        killed.work(records)
    assert len(world.side.open_batches("forward")) == 1
    successor, client = faulty(world, lambda operation, parameters: None)
    write_counts: list[int] = []
    world.moments.on_wait = lambda seconds: write_counts.append(
        sum(request.get("TableName") == world.pair.destination for _, request in client.calls)
    )
    successor.work(records)
    assert write_counts[0] == 0, "nothing was written before the wait"
    assert world.moments.waits[0] == pytest.approx(WAIT_SECONDS)
    assert world.actual == world.expected
    assert world.side.open_batches("forward") == []


def test_a_killed_batch_of_the_passive_direction_removes_its_note_after_the_wait(
    world: World,
) -> None:
    world.put("s", "d")
    world.replicator().work(world.records())
    records = world.records("reverse")
    killed = Faulty(world.connection.client, once("killed", world.pair.side, {"get_item"}))
    connection = replace(world.connection, client=killed)
    with pytest.raises(Killed):
        world.replicator("reverse", lambda name: connection).work(records)
    assert len(world.side.open_batches("reverse")) == 1
    assert world.replicator("reverse").work(records).share == "pass"
    assert world.moments.waits == [pytest.approx(WAIT_SECONDS)]
    assert world.side.open_batches("reverse") == []


def throttled(world: World) -> Callable[..., Fate]:
    """Return a function that throttles each request to the destination."""
    table = world.pair.destination
    return lambda _, parameters: "throttled" if parameters.get("TableName") == table else None


def test_throttled_writes_are_sent_again_until_there_is_no_time_left(world: World) -> None:
    world.put("s", "d")
    records = world.records()
    replicator, client = faulty(world, throttled(world))
    replicator.end_at(world.moments.now + 30)
    with pytest.raises(GaveUp):
        replicator.work(records)
    assert len(client.calls) > 5
    assert world.moments.now < 1_031, "nothing is sent after that"
    assert len(world.side.open_batches("forward")) == 1, "so the repeat knows that it is one"
    world.replicator().work(records)
    assert world.actual == world.expected


def test_an_item_that_the_other_table_refuses_remains_as_a_claim(world: World) -> None:
    """The batch ends, and the claim remains until the item changes."""
    world.put("good", "d")
    day = {"day": {"N": "1"}}  # the type in an index is S
    bad = {"id": {"S": "bad"}, "to": {"S": "e"}, **day}
    world.client.put_item(TableName=world.pair.source, Item=bad)
    worked = world.replicator().work(world.records())
    assert worked.left == 1
    assert worked.failures
    (claim,) = world.side.claims("forward")
    assert claim.owner == {"id": {"S": "bad"}}
    assert "Type mismatch for Index Key" in claim.refusal
    assert world.side.put_plan(world.pair)
    status = RekeyStatus.of(world.side, NotDeployed(), 0.0)
    (trouble,) = status.troubles
    assert trouble.startswith(f"1 item cannot be written to {world.pair.destination} (")
    (gate,) = [gate for gate in status.gates("destination") if gate.name == "claims"]
    assert not gate.is_open
    assert f"1 item cannot be written to {world.pair.destination}" in gate.says
    assert claim.refusal in gate.says
    assert [item["id"]["S"] for item in world.actual] == ["good"]
    world.put("bad", "f")
    world.replicator().work(world.records())
    assert world.side.claims("forward") == []
    assert world.actual == world.expected


def test_an_item_that_always_changes_does_not_delay_its_batch(world: World) -> None:
    world.put("hot", "d")
    records = world.records()
    counts = iter(range(1_000))

    def busy(operation: str, parameters: Mapping[str, Any]) -> Fate:
        if operation == "batch_get_item" and not at_rest:
            world.put("hot", "d", count=str(next(counts)))
        return None

    at_rest: list[bool] = []
    replicator, _ = faulty(world, busy)
    assert replicator.work(records).left == 1
    assert len(world.side.claims("forward")) == 1
    at_rest.append(True)
    world.replicator().sweep()
    assert world.side.claims("forward") == []
    assert world.actual == world.expected


def test_a_batch_that_kills_the_worker_is_processed_key_by_key(world: World) -> None:
    """The worker gives up the deadly key with its places, and writes the other items."""
    for n in range(6):
        world.put(f"s{n}", f"d{n}")
    world.put("s3", "d9")
    records = world.records()
    given_up: list[GivenUp] = []

    def deadly(operation: str, parameters: Mapping[str, Any]) -> Fate:
        item = parameters.get("Item", {})
        return "killed" if item.get("pk") == {"S": "d9"} else None

    give_up = _record(given_up)
    for _ in range(20):
        try:
            worked = faulty(world, deadly, give_up=give_up)[0].work(records)
        except Killed:
            continue
        break
    places = [{"pk": {"S": "d3"}}, {"pk": {"S": "d9"}}]
    assert given_up == [({"id": {"S": "s3"}}, places)]
    assert worked.given_up == 1
    assert [item["id"]["S"] for item in world.actual] == ["s0", "s1", "s2", "s4", "s5"]
    assert world.side.open_batches("forward") == []


def test_a_repeat_may_be_shorter_than_the_killed_batch(world: World) -> None:
    """The repeat begins with the same record, and the next batch has the missing ones."""
    for n in range(4):
        world.put(f"s{n}", f"d{n}")
    records = world.records()
    shorter = records[:-1]
    last = records[-1]["dynamodb"]["NewImage"]["to"]

    def deadly(operation: str, parameters: Mapping[str, Any]) -> Fate:
        return "killed" if parameters.get("Item", {}).get("pk") == last else None

    for _ in range(KILLED_TIMES + 1):
        with pytest.raises(Killed):
            faulty(world, deadly, give_up=_record([]))[0].work(records)
    given_up: list[GivenUp] = []
    worked = world.replicator(give_up=_record(given_up)).work(shorter)
    assert (worked.records, given_up) == (3, [])
    world.replicator(give_up=_record(given_up)).work(records[-1:])
    assert world.actual == world.expected


def test_a_transform_that_kills_the_worker_is_not_called_to_find_the_places(world: World) -> None:
    """Otherwise the batch would also be killed while it gives up the key."""
    world.put("s0", "d0")
    world.put("s1", "d1")
    records = world.records()
    given_up: list[GivenUp] = []
    world.transform = Deadly()
    for _ in range(20):
        try:
            world.replicator(give_up=_record(given_up)).work(records)
        except Killed:
            continue
        break
    assert given_up == [({"id": {"S": "s1"}}, [])]
    assert [item["id"]["S"] for item in world.actual] == ["s0"]


def test_temporary_failures_do_not_count_as_kills(world: World) -> None:
    for n in range(3):
        world.put(f"s{n}", f"d{n}")
    records = world.records()
    given_up: list[GivenUp] = []
    for _ in range(10):
        replicator, _ = faulty(world, throttled(world), give_up=_record(given_up))
        replicator.end_at(world.moments.now + 20)
        with pytest.raises(GaveUp):
            replicator.work(records)
    world.replicator(give_up=_record(given_up)).work(records)
    assert given_up == []
    assert world.actual == world.expected


@pytest.mark.prove
@pytest.mark.parametrize("seed", range(12))
def test_the_destination_equals_the_source_after_any_faults(world: World, seed: int) -> None:
    """The faults are parallel and repeated batches, throttles, lost and late requests, kills."""
    chance = Random(seed)
    waiting: list[Any] = []
    clients: list[Faulty] = []
    world.moments.on_wait = lambda seconds: [client.land() for client in clients]
    for _ in range(4):
        for _ in range(30):
            _some_write(world, chance)
        waiting += list(batches(world.records(), chance.randint(3, 20)))
        if chance.random() < 0.5:
            waiting += chance.sample(waiting, len(waiting) // 4)
        chance.shuffle(waiting)
        parts, waiting = waiting[:6], waiting[6:]
        seeds = [chance.random() for _ in parts]
        with ThreadPoolExecutor(3) as pool:
            ended = list(pool.map(partial(_attempt, world, clients), parts, seeds))
        waiting += [part for part, is_done in zip(parts, ended, strict=True) if not is_done]
    while waiting := [*waiting, *batches(world.records(), 20)]:
        world.replicator().work(waiting.pop())
    for _ in range(5):
        world.replicator().sweep()
    world.check()


def _some_write(world: World, chance: Random) -> None:
    id_ = f"s{chance.randrange(15)}"
    if chance.random() < 0.25:
        world.delete(id_)
    else:
        world.put(id_, f"d{chance.randrange(40)}", data=str(chance.random()))


def _attempt(world: World, clients: list[Faulty], part: Any, seed: float) -> bool:
    """Process a batch once, let its late requests land, and return whether it ended."""
    chance = Random(seed)

    def fate(operation: str, parameters: Mapping[str, Any]) -> Fate:
        if chance.random() < 0.05:
            _some_write(world, chance)
        if operation in WRITES:
            fates = ["throttled", "lost", "late", "killed", None]
            return chance.choices(fates, [5, 3, 3, 1, 88])[0]
        return "throttled" if chance.random() < 0.03 else None

    replicator, client = faulty(world, fate)
    clients.append(client)
    try:
        replicator.work(part)
    except Killed:
        return False
    finally:
        client.land()
    return True
