"""Readers and writers while processes die, responses are lost, and the shards change."""

import random
from collections import defaultdict
from collections.abc import Callable, Iterator
from itertools import count, cycle
from typing import Any

import pytest
from keyhop.dynamodb.client import dynamodb_client
from keyhop.dynamodb.endpoint import Endpoint
from keyhop.sharding.drain import Drain
from keyhop.sharding.key.shards import Phase
from keyhop.sharding.manage import TooEarly, add_shards
from keyhop.sharding.store.metadata import MetadataChanged
from keyhop.sharding.table import ShardedTable

from testing.databases import Database
from tests.integration.sharding.crashes import (
    PHASES,
    Crash,
    DyingClient,
    PreparedKey,
    SlowClient,
    prepare,
)
from tests.integration.sharding.log import Log
from tests.integration.sharding.tables import KEY, Setup, in_time, sharded

SORTS = ("a", "b", "c", "d")
LONG = (pytest.mark.prove, pytest.mark.timeout(600))
QUICK = ("opened", "moving")
"""The phases in which writers die in `make test`. `make prove` has all phases."""


def put(table: ShardedTable, key: str, sort: str, version: int) -> None:
    table.put_item(Item={"path": key, "at": sort, "version": version})


def update(table: ShardedTable, key: str, sort: str, version: int) -> None:
    table.update_item(
        Key={"path": key, "at": sort},
        UpdateExpression="SET version = :v",
        ExpressionAttributeValues={":v": version},
    )


def delete(table: ShardedTable, key: str, sort: str, version: int) -> None:
    table.delete_item(Key={"path": key, "at": sort})


SCRIPT: list[tuple[Callable[[ShardedTable, str, str, int], None], str]] = [
    (put, "a"),
    (put, "new"),
    (update, "b"),
    (delete, "c"),
    (update, "other"),
]


def tables_that_die(
    database: Database, name: str, phase: str, min_requests: int
) -> Iterator[tuple[PreparedKey, ShardedTable]]:
    """Yield tables that die before, or after, their first request, their second one, and so on.

    Stop at a table that does not die. It must have made at least `min_requests` requests.
    """
    with sharded(database, name) as setup:
        setup.client = dynamodb_client(Endpoint(url=database.url))  # without the model
        setup.table(placement="calculated")
        for after in (False, True):
            for number in count(1):
                prepared = prepare(setup, f"{phase}-{number}-{after}", phase, SORTS)
                client = DyingClient(setup.client, number, after)
                yield prepared, prepared.user(client)
                if client.requests < number:
                    break
            assert number > min_requests


def legal_after(prepared: PreparedKey, table: ShardedTable) -> dict[str, set[int | None]]:
    """Run the script, and return the versions that each item may have then."""
    legal: dict[str, set[int | None]] = {sort: {v} for sort, v in prepared.versions.items()}
    try:
        for version, (act, sort) in enumerate(SCRIPT, 1):
            after = None if act is delete else version
            legal[sort] = legal.get(sort, {None}) | {after}
            act(table, prepared.key, sort, version)
            legal[sort] = {after}
    except Crash:
        pass
    return legal


def check(prepared: PreparedKey, legal: dict[str, set[int | None]]) -> None:
    """Check that no acknowledged write is lost, each item has one copy, and writes still work."""
    name = f"{prepared.key}: "
    stored = prepared.setup.copies(prepared.key)
    assert all(len(copies) == 1 for copies in stored.values()), name + str(stored)
    user = prepared.user()
    items = list(user.query(prepared.key, consistent=True))
    visible = {item["at"]: int(item["version"]) for item in items}
    assert len(items) == len(visible), name
    for sort, versions in legal.items():
        assert visible.get(sort) in versions, f"{name}{sort} {visible.get(sort)} {versions}"
    rewritten = ("a", "c")
    for sort in rewritten:
        response = user.get_item(Key={"path": prepared.key, "at": sort}, ConsistentRead=True)
        assert response.get("Item", {}).get("version") == visible.get(sort), name
        put(user, prepared.key, sort, 99)
    stored = prepared.setup.copies(prepared.key)
    for sort in rewritten:
        assert [item["version"] for item in stored[sort].values()] == [{"N": "99"}], name


@pytest.mark.parametrize(
    "phase",
    [p if p in QUICK else pytest.param(p, marks=pytest.mark.prove) for p in PHASES],
)
def test_a_writer_dies_between_any_two_requests(
    dynamodb: Database, table_name: str, phase: str
) -> None:
    for prepared, table in tables_that_die(dynamodb, table_name, phase, len(SCRIPT)):
        check(prepared, legal_after(prepared, table))


def drain_to_end(prepared: PreparedKey, table: ShardedTable) -> None:
    drain = Drain(table)
    for _ in range(100):
        step = drain.step(prepared.key, 1, seconds=5)
        if step.action == "done":
            return
        prepared.setup.clock.sleep(step.seconds)
    raise AssertionError(f"the drain does not end: {step}")


@pytest.mark.prove
def test_a_drain_dies_between_any_two_requests(dynamodb: Database, table_name: str) -> None:
    for prepared, table in tables_that_die(dynamodb, table_name, "closing", 10):
        try:
            drain_to_end(prepared, table)
        except Crash:
            user = prepared.user()
            visible = {item["at"] for item in user.query(prepared.key, consistent=True)}
            assert visible == set(SORTS)
            drain_to_end(prepared, user)
        copies_by_item = prepared.setup.copies(prepared.key)
        assert {sort: list(copies) for sort, copies in copies_by_item.items()} == {
            sort: [1] for sort in SORTS
        }
        shards = prepared.setup.shards(prepared.key)
        assert (shards.number, shards.readable) == (1, 1)


def grow_to_end(prepared: PreparedKey, table: ShardedTable) -> None:
    """Add a shard, and wait for the end of the change."""
    key, clock = {"S": prepared.key}, prepared.setup.clock
    while True:
        try:
            add_shards(table, prepared.key)
            break
        except TooEarly as early:
            clock.sleep(early.seconds)
    record = table.metadata.of(key, fresh=True)
    while record.shards.phase is not Phase.STEADY:
        clock.sleep(1)
        record = table.metadata.of(key, fresh=True)
        record = table.writer.throttle_tracker.pass_on(key, record)


@pytest.mark.prove
def test_growth_dies_between_any_two_requests(dynamodb: Database, table_name: str) -> None:
    for prepared, table in tables_that_die(dynamodb, table_name, "one", 1):
        try:
            grow_to_end(prepared, table)
        except Crash:
            grow_to_end(prepared, prepared.user())
        shards = prepared.setup.shards(prepared.key)
        assert shards.number in (2, 3)
        assert shards.phase is Phase.STEADY
        check(prepared, {sort: {0} for sort in SORTS})


WRITERS = 4
ITEMS = 8
"""The number of items of each writer, which no other writer writes."""
SHARED = 3
"""The number of items that all writers write."""


def writer(setup: Setup, log: Log, number: int, **settings: Any) -> Callable[[], None]:
    chance = random.Random(setup.seed - 1 + 100 + number)
    client = SlowClient(setup.client, setup.clock, random.Random(setup.seed - 1 + number))
    table = setup.table(client, **settings)
    acts = [put, put, put, update, update, delete]
    appends = settings.get("append_only", False)

    def run() -> None:
        version = 0
        while setup.clock.time() < log.ends:
            version += 1
            sort = f"w{number}-{chance.randrange(ITEMS)}"
            act = chance.choice(acts)
            if appends:
                act, sort = put, f"w{number}-{version:04}"
            elif chance.random() < 0.3:
                act(table, KEY, f"shared-{chance.randrange(SHARED)}", version)
                continue
            with log.write(sort, None if act is delete else version):
                act(table, KEY, sort, version)
            setup.clock.sleep(chance.uniform(0, 0.8))

    return run


def reader(setup: Setup, log: Log, number: int, **settings: Any) -> Callable[[], None]:
    chance = random.Random(setup.seed - 1 + 200 + number)
    client = SlowClient(setup.client, setup.clock, random.Random(setup.seed - 1 + 50 + number))
    table = setup.table(client, **settings)

    def run() -> None:
        while setup.clock.time() < log.ends:
            with log.read() as items:
                paged = chance.random() < 0.5
                descending = chance.random() < 0.5
                token = None
                while True:
                    if not paged:
                        items += table.query(KEY, consistent=True, descending=descending)
                        break
                    page = table.query_page(
                        KEY, consistent=True, descending=descending, limit=7, page_token=token
                    )
                    items += page.items
                    token = page.token
                    if token is None:
                        break
            setup.clock.sleep(chance.uniform(0, 1))

    return run


def manager(setup: Setup, log: Log, counts: dict[str, int], **settings: Any) -> Callable[[], None]:
    """Return a process that adds shards, drains them, and calls a drain off."""
    client = SlowClient(setup.client, setup.clock, random.Random(setup.seed - 1 + 9), usual=0.3)
    table = setup.table(client, **settings)
    drain = Drain(table)

    def drain_to(shards: int, call_off_in: Phase | None = None) -> None:
        while setup.clock.time() < log.ends:
            step = drain.step(KEY, shards, seconds=2)
            counts["moved"] += step.moved
            if step.action == "done":
                counts["drained"] += 1
                return
            setup.clock.sleep(step.seconds)
            if step.shards.phase is call_off_in and drain.call_off(KEY).action == "done":
                counts["called off"] += 1
                return

    def grow_to(shards: int) -> None:
        while setup.clock.time() < log.ends:
            record = table.metadata.of({"S": KEY}, register=True, fresh=True)
            if record.shards.number >= shards and record.shards.phase is Phase.STEADY:
                counts["grown"] += 1
                return
            try:
                add_shards(table, KEY, max(1, shards - record.shards.number))
            except TooEarly as early:
                setup.clock.sleep(early.seconds)
            except MetadataChanged:
                setup.clock.sleep(0.1)

    def run() -> None:
        while setup.clock.time() < log.ends:
            grow_to(4)
            drain_to(1)
            grow_to(2)
            drain_to(1, call_off_in=Phase.MOVING)

    return run


def auditor(setup: Setup, log: Log) -> Callable[[], None]:
    """Return a process that checks that no item has two copies, while no other process runs."""

    def run() -> None:
        while setup.clock.time() < log.ends:
            for sort, copies in setup.copies().items():
                if len(copies) > 1:
                    log.wrong.append(f"{setup.clock.time():.2f}: {sort} is in {sorted(copies)}")
            setup.clock.sleep(0.4)

    return run


WAYS: dict[str, dict[str, Any]] = {
    "calculated": {"placement": "calculated"},
    "random": {"placement": "random"},
    "append-only": {"placement": "random", "append_only": True},
}


def case(way: str, seconds: float, *marks: Any, seed: int = 1) -> Any:
    return pytest.param(seed, seconds, WAYS[way], id=f"{way}-{seed}-{seconds:.0f}", marks=marks)


@pytest.mark.parametrize(
    ("seed", "seconds", "settings"),
    [
        case("calculated", 30.0, pytest.mark.prove),
        *(case(way, 60.0, *LONG) for way in WAYS),
        *(
            case(way, 120.0, pytest.mark.prove_long, LONG[1], seed=1000 * number)
            for number, way in zip(range(10, 30), cycle(WAYS), strict=False)
        ),
    ],
)
def test_readers_see_each_finished_write_once_while_shards_come_and_go(
    dynamodb: Database,
    table_name: str,
    seed: int,
    seconds: float,
    settings: dict[str, Any],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    settings = {"settle_seconds": 2.0, "patience": 20.0, **settings}
    with sharded(dynamodb, table_name, seed=seed, failing=0.02, losing=0.03) as setup:
        in_time(setup.clock, monkeypatch)
        log = Log(setup.clock, setup.clock.time() + seconds)
        counts: dict[str, int] = defaultdict(int)
        setup.clock.run(
            [
                manager(setup, log, counts, **settings),
                auditor(setup, log),
                *(writer(setup, log, number, **settings) for number in range(WRITERS)),
                *(reader(setup, log, number, **settings) for number in range(2)),
            ]
        )
        print(log.reads, log.writes, dict(counts), dict(setup.model.requests), setup.model.faults)
        assert not log.wrong, log.wrong[:3]
        # Where nothing is deleted, a paged read takes longer and longer.
        assert log.reads > seconds * (1 / 3 if "append_only" in settings else 5 / 6)
        assert log.writes > seconds * 5 / 3
        assert counts["grown"] >= seconds / 60
        assert counts["drained"] > 0
        assert counts["moved"] > 0
        copies = setup.copies()
        assert all(len(shards) == 1 for shards in copies.values())
        versions = {
            sort: int(item["version"]["N"])
            for sort, shards in copies.items()
            for item in shards.values()
            if not sort.startswith("shared")
        }
        assert versions == log.last()
