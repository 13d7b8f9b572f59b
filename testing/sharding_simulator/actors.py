"""The concurrent actors: users of a table, and processes that change the shards of its keys."""

import random
from collections.abc import Callable
from typing import Any

from botocore.exceptions import BotoCoreError, ClientError
from keyhop.dynamodb.refusals import CONDITION_FAILED, error_code
from keyhop.errors import CannotStart, GaveUp, MetadataLost
from keyhop.sharding.drain import Drain, Next
from keyhop.sharding.key.shards import Phase
from keyhop.sharding.manage import TooEarly, add_shards
from keyhop.sharding.store.metadata import MetadataChanged
from keyhop.sharding.store.requests import Overtaken
from keyhop.sharding.table import ShardedTable

from testing.sharding_simulator import linearizable
from testing.sharding_simulator.linearizable import Content, Effect, Operation
from testing.sharding_simulator.network import Call
from testing.sharding_simulator.world import PARTITION, SETTLE, SORT, World
from testing.simulation.schedule import Pool, Process

FAILED = (GaveUp, ClientError, BotoCoreError, Overtaken, MetadataChanged)
ADD_ONE = {"UpdateExpression": "ADD n :one"}
IF_NEW = {
    "ConditionExpression": "attribute_not_exists(#sort)",
    "ExpressionAttributeNames": {"#sort": SORT},
}


def content_of(item: dict[str, Any] | None) -> Content:
    return None if not item else (item.get("v"), int(item.get("n", 0)))


def in_order_of(
    keys: list[dict[str, str]], items: list[dict[str, Any]]
) -> list[dict[str, Any] | None]:
    """Return the item of each key, or None."""
    by_sort = {item[SORT]: item for item in items}
    return [by_sort.get(key[SORT]) for key in keys]


def name_of(key: str, at: str) -> str:
    return f"{key} {at}"


class User:
    """A user that does one operation after the other on items of a table, and records them.

    items: the (key, at) pairs that all users share. log: whether items are only appended.
    """

    def __init__(
        self,
        world: World,
        table: ShardedTable,
        process: Process,
        items: list[tuple[str, str]],
        log: bool,
        name: str,
    ) -> None:
        self.world = world
        self.table = table
        self.process = process
        self.items = items
        self.log = log
        self.name = name
        self.chance = random.Random(world.chance.random())
        self.count = 0
        self.values: dict[str, str | None] = {}

    def run(self, until: float, pause: float) -> None:
        """Run until this time, with pauses of this mean length."""
        schedule = self.world.schedule
        acts = self._acts()
        weights = [weight for weight, _ in acts]
        while schedule.now < until:
            # Most errors happen just after a change.
            is_new = schedule.now - self.world.network.changed < 2 * SETTLE
            schedule.sleep(self.chance.expovariate((3 if is_new else 0.7) / pause))
            self.chance.choices(acts, weights)[0][1]()

    def _acts(self) -> list[tuple[int, Callable[[], None]]]:
        if self.log:
            return [(12, self.append), (2, self.append_batch), (3, self.get), (3, self.query)]
        return [
            *((6, self.put), (3, self.create), (6, self.add), (2, self.add_if), (3, self.delete)),
            *((4, self.get), (3, self.query), (1, self.batch), (1, self.get_batch)),
        ]

    def _key(self) -> dict[str, str]:
        """Return a random key: usually the one that all users share at the moment."""
        second = int(self.world.schedule.now / 3)
        is_usual = self.chance.random() < 0.7
        key, at = (
            self.items[second % len(self.items)] if is_usual else self.chance.choice(self.items)
        )
        return {PARTITION: key, SORT: at}

    def _value(self) -> str:
        self.count += 1
        return f"{self.name}{self.count}"

    def _write(
        self,
        what: str,
        key: dict[str, str],
        effect: Effect,
        send: Callable[[], dict[str, Any]],
        **reported: Callable[[dict[str, Any]], Any],
    ) -> None:
        """Send a write and record it. reported: reads its report from the response's Attributes."""
        name = name_of(key[PARTITION], key[SORT])
        self._write_all(what, [(name, effect)], send, reported)

    def _write_all(
        self,
        what: str,
        effects: list[tuple[str, Effect]],
        send: Callable[[], Any],
        reported: dict[str, Callable[[dict[str, Any]], Any]],
        failed: Callable[[Any], set[int]] = lambda answer: set(),
    ) -> None:
        """Send writes and record them. failed: the numbers of unknown effects, by the response."""
        world = self.world
        operations = [world.begin(name, f"{self.name} {what}", effect) for name, effect in effects]
        call = Call()
        world.schedule.running.call = call
        try:
            answer = send()
        except FAILED as error:
            if error_code(error) == CONDITION_FAILED and len(operations) == 1:
                world.end(operations[0], refused=True)
        else:
            unknown = failed(answer)
            for number, operation in enumerate(operations):
                if number not in unknown:
                    report = {
                        name: read(answer.get("Attributes", {})) for name, read in reported.items()
                    }
                    world.end(operation, **({"refused": False} | report))
        finally:
            world.schedule.running.call = None
            for (name, _), operation in zip(effects, operations, strict=True):
                world.record_repeats(name, operation, call.repeats)

    def put(self, only_new: bool = False) -> None:
        key, value = self._key(), self._value()
        item = {**key, "v": value, "n": 0}
        more: dict[str, Any] = dict(IF_NEW) if only_new else {}
        reported = {}
        if self.chance.random() < 0.4:
            more["ReturnValues"], reported["old"] = "ALL_OLD", content_of
        self._write(
            f"{'creates' if only_new else 'puts'} {value}{' ALL_OLD' if reported else ''}",
            key,
            linearizable.put(value, only_new),
            lambda: self.table.put_item(Item=item, **more),
            **reported,
        )
        self.values[name_of(key[PARTITION], key[SORT])] = value

    def create(self) -> None:
        self.put(only_new=True)

    def add(self, only_of: str | None = None) -> None:
        key = self._key()
        values: dict[str, Any] = {":one": 1}
        more: dict[str, Any] = {}
        if only_of is not None:
            values[":v"], more["ConditionExpression"] = only_of, "v = :v"
        reported: dict[str, Any] = {}
        returns = self.chance.choice([None, "ALL_OLD", "ALL_NEW", "UPDATED_NEW"])
        if returns is not None:
            more["ReturnValues"] = returns
            reported = {
                "ALL_OLD": {"old": content_of},
                "ALL_NEW": {"new": content_of},
                "UPDATED_NEW": {"count": lambda item: int(item["n"])},
            }[returns]
        self._write(
            f"adds {only_of or ''} {returns}",
            key,
            linearizable.add(only_of),
            lambda: self.table.update_item(
                Key=key, ExpressionAttributeValues=values, **ADD_ONE, **more
            ),
            **reported,
        )

    def add_if(self) -> None:
        values = [value for value in self.values.values() if value]
        self.add(self.chance.choice(values) if values else "nobody's")

    def delete(self) -> None:
        key = self._key()
        more: dict[str, Any] = {}
        reported = {}
        if self.chance.random() < 0.5:
            more, reported = {"ReturnValues": "ALL_OLD"}, {"old": content_of}
        self._write(
            f"deletes {'ALL_OLD' if reported else ''}",
            key,
            linearizable.delete,
            lambda: self.table.delete_item(Key=key, **more),
            **reported,
        )

    def batch(self) -> None:
        chosen = self.chance.sample(self.items, min(2, len(self.items)))
        items = [{PARTITION: key, SORT: at, "v": self._value(), "n": 0} for key, at in chosen]
        self._batch(items)

    def append(self) -> None:
        item = self._new_item()
        self._write(
            "appends",
            {PARTITION: item[PARTITION], SORT: item[SORT]},
            linearizable.put(item["v"]),
            lambda: self.table.put_item(Item=item),
        )

    def append_batch(self) -> None:
        self._batch([self._new_item() for _ in range(3)])

    def _new_item(self) -> dict[str, Any]:
        value = self._value()
        key = self.chance.choice(self.items)[0]
        self.items.append((key, value))
        return {PARTITION: key, SORT: value, "v": value, "n": 0}

    def _batch(self, items: list[dict[str, Any]]) -> None:
        effects = [
            (name_of(item[PARTITION], item[SORT]), linearizable.put(item["v"])) for item in items
        ]
        self._write_all(
            "puts in a batch",
            effects,
            lambda: self.table.batch_write(items),
            {},
            lambda result: {place for place, _, _ in result.failed},
        )

    def get(self) -> None:
        self._read([self._key()], lambda keys: [self._get_item(keys[0])])

    def _get_item(self, key: dict[str, str]) -> dict[str, Any] | None:
        return self.table.get_item(Key=key, ConsistentRead=True).get("Item")

    def get_batch(self) -> None:
        chosen = self.chance.sample(self.items, min(2, len(self.items)))
        keys = [{PARTITION: key, SORT: at} for key, at in chosen]

        def read(keys: list[dict[str, str]]) -> list[dict[str, Any] | None]:
            requests = {self.table.name: {"Keys": keys, "ConsistentRead": True}}
            answer = self.table.batch_get_item(RequestItems=requests)
            return in_order_of(keys, answer["Responses"][self.table.name])

        if len({key[SORT] for key in keys}) == len(keys):
            self._read(keys, read)

    def query(self) -> None:
        """Read all items of a key, with an iterator or by pages, in either direction."""
        key = self.chance.choice(self.items)[0]
        query: dict[str, Any] = {"descending": self.chance.random() < 0.5, "consistent": True}
        limit = self.chance.choice([None, None, 1, 2])

        def read(keys: list[dict[str, str]]) -> list[dict[str, Any] | None]:
            if limit is None:
                items = list(self.table.query(key, **query))
            else:
                items = self._pages(key, limit, query)
            order = [item[SORT] for item in items]
            if order != sorted(set(order), reverse=query["descending"]):
                self.world.wrong.append(f"a query's order: {order}")
            return in_order_of(keys, items)

        self._read(self.keys_of(key), read)

    def keys_of(self, key: str) -> list[dict[str, str]]:
        """Return the primary keys of all items with this partition key, in order."""
        ats = {at for partition, at in self.items if partition == key}
        return [{PARTITION: key, SORT: at} for at in sorted(ats)]

    def _pages(self, key: str, limit: int, query: dict[str, Any]) -> list[dict[str, Any]]:
        items: list[dict[str, Any]] = []
        token: str | None = None
        while True:
            page = self.table.query_page(key, limit=limit, page_token=token, **query)
            if len(page.items) > limit or (page.token and len(page.items) < limit):
                self.world.wrong.append(f"a page of {limit}: {page.items}, {page.token}")
            items += page.items
            token = page.token
            if token is None:
                return items

    def _read(
        self,
        keys: list[dict[str, str]],
        get: Callable[[list[dict[str, str]]], list[dict[str, Any] | None]],
    ) -> None:
        """Read items and record each read separately, because the reads are not a snapshot."""
        world = self.world
        began = world.moment()
        try:
            items = get(keys)
        except FAILED:
            return
        ended = world.moment()
        for key, item in zip(keys, items, strict=True):
            name = name_of(key[PARTITION], key[SORT])
            content = {"content": content_of(item)}
            read = Operation(
                f"{self.name} reads", linearizable.read, began, ended, content, is_certain=True
            )
            world.record.setdefault(name, []).append(read)
            if item:
                self.values[name] = item.get("v")


def grow(world: World, table: ShardedTable, key: str, until: float) -> None:
    """Add shards at random times."""
    schedule, chance = world.schedule, world.chance
    while schedule.now < until:
        schedule.sleep(chance.uniform(0.5, 10.0))
        try:
            if chance.random() < 0.5:
                add_shards(table, key, chance.choice([1, 1, 2]))
            else:
                _grow_urgently(table, key, chance.choice([1, 2, 3]))
        except TooEarly as early:
            schedule.sleep(early.seconds)
        except (*FAILED, CannotStart, MetadataLost):
            pass


def _grow_urgently(table: ShardedTable, key: str, count: int) -> None:
    """Add shards as a writer does that is always throttled."""
    logical = {"S": key}
    record = table.metadata.of(logical, register=True)
    number = record.shards.number + count
    is_possible = (
        record.shards.phase in (Phase.STEADY, Phase.OPENED) and number <= table.policy.most
    )
    if is_possible and not table.metadata.unsettled(record):
        table.metadata.grow(logical, record, number, patiently=False)


def drain(world: World, table: ShardedTable, key: str, until: float) -> None:
    """Remove shards at random times; sometimes call it off, or stop in between."""
    schedule, chance = world.schedule, world.chance
    drains = Drain(table, lambda *_: Pool(schedule))
    has_begun, target = False, 1
    while schedule.now < until:
        try:
            if chance.random() < 0.03:
                step = drains.call_off(key)
            else:
                step = drains.step(key, target, 5.0, begun=has_begun)
        except (*FAILED, CannotStart, MetadataLost):
            schedule.sleep(1.0)
            continue
        has_begun = step.begun
        if step.action in (Next.DONE, Next.CALLED_OFF):
            has_begun, target = False, chance.choice([1, 1, 2])
            schedule.sleep(chance.uniform(0.0, 12.0))
        else:
            schedule.sleep(step.seconds)


def heat(world: World, until: float) -> None:
    """Make the keys hot, and cool them down."""
    schedule, chance = world.schedule, world.chance
    while schedule.now < until:
        schedule.sleep(chance.uniform(1.0, 15.0))
        world.network.is_hot = True
        schedule.sleep(chance.uniform(0.5, 4.0))
        world.network.is_hot = False
