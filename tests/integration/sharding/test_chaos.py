"""Processes die, answers are lost, and shards come and go under readers and writers."""

import random
from collections import defaultdict
from collections.abc import Callable
from itertools import cycle
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
from tests.integration.sharding.crashes import PHASES, Crash, Far, Mortal, Prepared, prepared
from tests.integration.sharding.log import Log
from tests.integration.sharding.tables import KEY, Setup, in_time, sharded

SORTS = ("a", "b", "c", "d")
LONG = (pytest.mark.prove, pytest.mark.timeout(600))
QUICK = ("opened", "moving")
"""Phases in which writers also die in `make test`; in all others they do in `make prove`."""


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


def legal_after(here: Prepared, table: ShardedTable) -> tuple[dict[str, set[int | None]], bool]:
    """What each item may be after the script (None: not there), and whether it has crashed."""
    legal: dict[str, set[int | None]] = {sort: {v} for sort, v in here.versions.items()}
    try:
        for version, (act, sort) in enumerate(SCRIPT, 1):
            after = None if act is delete else version
            legal[sort] = legal.get(sort, {None}) | {after}
            act(table, here.key, sort, version)
            legal[sort] = {after}
    except Crash:
        return legal, True
    return legal, False


def check(here: Prepared, legal: dict[str, set[int | None]]) -> None:
    """Nothing acknowledged is lost, one copy of each, and the next user goes on."""
    told = f"{here.key}: "
    held = here.setup.copies(here.key)
    assert all(len(copies) == 1 for copies in held.values()), told + str(held)
    user = here.user()
    read = list(user.query(here.key, consistent=True))
    found = {item["at"]: int(item["version"]) for item in read}
    assert len(read) == len(found), told
    for sort, versions in legal.items():
        assert found.get(sort) in versions, f"{told}{sort} {found.get(sort)} {versions}"
    mended = ("a", "c")
    for sort in mended:
        got = user.get_item(Key={"path": here.key, "at": sort}, ConsistentRead=True)
        assert got.get("Item", {}).get("version") == found.get(sort), told
        put(user, here.key, sort, 99)
    held = here.setup.copies(here.key)
    for sort in mended:
        assert [item["version"] for item in held[sort].values()] == [{"N": "99"}], told


@pytest.mark.parametrize(
    "phase",
    [p if p in QUICK else pytest.param(p, marks=pytest.mark.prove) for p in PHASES],
)
def test_a_writer_dies_between_any_two_requests(
    dynamodb: Database, table_name: str, phase: str
) -> None:
    with sharded(dynamodb, table_name) as setup:
        setup.client = dynamodb_client(Endpoint(url=dynamodb.url))  # past the model
        setup.table(placement="calculated")
        for after in (False, True):
            number, crashed = 0, True
            while crashed:
                number += 1
                here = prepared(setup, f"{phase}-{number}-{after}", phase, SORTS)
                legal, crashed = legal_after(here, here.user(Mortal(setup.client, number, after)))
                check(here, legal)
            assert number > len(SCRIPT)


def drained(setup: Setup, table: ShardedTable, key: str, shards: int) -> int:
    """Drain a key to its end; returns how many items were moved."""
    drain, moved = Drain(table), 0
    for _ in range(100):
        step = drain.step(key, shards, seconds=5)
        moved += step.moved
        if step.action == "done":
            return moved
        setup.clock.sleep(step.seconds)
    raise AssertionError(f"the drain does not end: {step}")


@pytest.mark.prove
def test_a_drain_dies_between_any_two_requests(dynamodb: Database, table_name: str) -> None:
    with sharded(dynamodb, table_name) as setup:
        setup.client = dynamodb_client(Endpoint(url=dynamodb.url))  # past the model
        setup.table(placement="calculated")
        for after in (False, True):
            number, crashed = 0, True
            while crashed:
                number += 1
                here = prepared(setup, f"{number}-{after}", "closing", SORTS)
                try:
                    drained(setup, here.user(Mortal(setup.client, number, after)), here.key, 1)
                    crashed = False
                except Crash:
                    user = here.user()
                    read = {item["at"] for item in user.query(here.key, consistent=True)}
                    assert read == set(SORTS)
                    drained(setup, user, here.key, 1)
                held = setup.copies(here.key)
                assert {sort: list(copies) for sort, copies in held.items()} == {
                    sort: [1] for sort in SORTS
                }
                shards = setup.shards(here.key)
                assert (shards.number, shards.readable) == (1, 1)
            assert number > 10


def grown(setup: Setup, table: ShardedTable, key: str) -> None:
    """Add a shard, and see it through."""
    while True:
        try:
            add_shards(table, key)
            break
        except TooEarly as early:
            setup.clock.sleep(early.seconds)
    known = table.metadata.of({"S": key}, fresh=True)
    while known.shards.phase is not Phase.STEADY:
        setup.clock.sleep(1)
        known = table.metadata.of({"S": key}, fresh=True)
        known = table.writer.throttle_tracker.pass_on({"S": key}, known)


@pytest.mark.prove
def test_growth_dies_between_any_two_requests(dynamodb: Database, table_name: str) -> None:
    with sharded(dynamodb, table_name) as setup:
        setup.client = dynamodb_client(Endpoint(url=dynamodb.url))  # past the model
        setup.table(placement="calculated")
        for after in (False, True):
            number, crashed = 0, True
            while crashed:
                number += 1
                here = prepared(setup, f"{number}-{after}", "one", SORTS)
                try:
                    grown(setup, here.user(Mortal(setup.client, number, after)), here.key)
                    crashed = False
                except Crash:
                    grown(setup, here.user(), here.key)
                shards = setup.shards(here.key)
                assert shards.number in (2, 3)
                assert shards.phase is Phase.STEADY
                check(here, {sort: {0} for sort in SORTS})


WRITERS = 4
ITEMS = 8
"""Of each writer; only he writes them."""
SHARED = 3
"""Items that all write."""


def writing(setup: Setup, log: Log, number: int, **settings: Any) -> Callable[[], None]:
    chance = random.Random(setup.seed - 1 + 100 + number)
    far = Far(setup.client, setup.clock, random.Random(setup.seed - 1 + number))
    table = setup.table(far, **settings)
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


def reading(setup: Setup, log: Log, number: int, **settings: Any) -> Callable[[], None]:
    chance = random.Random(setup.seed - 1 + 200 + number)
    far = Far(setup.client, setup.clock, random.Random(setup.seed - 1 + 50 + number))
    table = setup.table(far, **settings)

    def run() -> None:
        while setup.clock.time() < log.ends:
            with log.read() as seen:
                paged = chance.random() < 0.5
                descending = chance.random() < 0.5
                token = None
                while True:
                    if not paged:
                        seen += table.query(KEY, consistent=True, descending=descending)
                        break
                    page = table.query_page(
                        KEY, consistent=True, descending=descending, limit=7, page_token=token
                    )
                    seen += page.items
                    token = page.token
                    if token is None:
                        break
            setup.clock.sleep(chance.uniform(0, 1))

    return run


def managing(
    setup: Setup, log: Log, happened: dict[str, int], **settings: Any
) -> Callable[[], None]:
    """Adds shards, drains them, and calls a drain off."""
    far = Far(setup.client, setup.clock, random.Random(setup.seed - 1 + 9), usual=0.3)
    table = setup.table(far, **settings)
    drain = Drain(table)

    def drain_to(shards: int, call_off_in: Phase | None = None) -> None:
        while setup.clock.time() < log.ends:
            step = drain.step(KEY, shards, seconds=2)
            happened["moved"] += step.moved
            if step.action == "done":
                happened["drained"] += 1
                return
            setup.clock.sleep(step.seconds)
            if step.shards.phase is call_off_in and drain.call_off(KEY).action == "done":
                happened["called off"] += 1
                return

    def grow_to(shards: int) -> None:
        while setup.clock.time() < log.ends:
            known = table.metadata.of({"S": KEY}, register=True, fresh=True)
            if known.shards.number >= shards and known.shards.phase is Phase.STEADY:
                happened["grown"] += 1
                return
            try:
                add_shards(table, KEY, max(1, shards - known.shards.number))
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


def auditing(setup: Setup, log: Log) -> Callable[[], None]:
    """Looks at the table itself, while everybody stands still: no item has two copies, ever."""

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
        happened: dict[str, int] = defaultdict(int)
        setup.clock.run(
            [
                managing(setup, log, happened, **settings),
                auditing(setup, log),
                *(writing(setup, log, number, **settings) for number in range(WRITERS)),
                *(reading(setup, log, number, **settings) for number in range(2)),
            ]
        )
        print(log.reads, log.writes, dict(happened), dict(setup.model.requests), setup.model.faults)
        assert not log.wrong, log.wrong[:3]
        # Where nothing is deleted, a paged read takes longer and longer.
        assert log.reads > seconds * (1 / 3 if "append_only" in settings else 5 / 6)
        assert log.writes > seconds * 5 / 3
        assert happened["grown"] >= seconds / 60
        assert happened["drained"] > 0
        assert happened["moved"] > 0
        copies = setup.copies()
        assert all(len(shards) == 1 for shards in copies.values())
        found = {
            sort: int(item["version"]["N"])
            for sort, (item,) in _values(copies)
            if not sort.startswith("shared")
        }
        assert found == log.last()


def _values(copies: dict[str, dict[int, Any]]) -> list[tuple[str, list[Any]]]:
    return [(sort, list(shards.values())) for sort, shards in copies.items()]
