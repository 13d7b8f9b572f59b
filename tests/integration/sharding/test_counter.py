"""Counters that are spread over shards: what is counted, what it costs, and while shards change."""

import contextlib
import math
import random
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest
from botocore.exceptions import ClientError
from keyhop.clock import SystemClock
from keyhop.errors import CannotStart, GaveUp
from keyhop.sharding.counter import ShardedCounter
from keyhop.sharding.drain import Drain, Next
from keyhop.sharding.io.adder import Added
from keyhop.sharding.key.policy import Policy

from testing.databases import Database
from tests.integration.sharding.crashes import Crash, Mortal
from tests.integration.sharding.hooks import hook, is_a, once, physical, refused
from tests.integration.sharding.single import Place
from tests.integration.sharding.tables import KEY, sharded


@pytest.fixture(params=["S", "N", "B"])
def of_each_type(
    request: pytest.FixtureRequest, dynamodb: Database, table_name: str
) -> tuple[ShardedCounter, Any]:
    partition = "B" if request.param == "B" else "S"
    place = Place(dynamodb, table_name, sort=request.param, partition=partition)
    return ShardedCounter(place.table()), b"\xff/f" if partition == "B" else "/f"


def spread(place: Place, shards: int = 4, adds: int = 40, **more: Any) -> ShardedCounter:
    """A counter of so many shards, with adds in all of them."""
    counter = ShardedCounter(place.table(**more))
    place.register("/f", shards, settle_seconds={"N": "2"})
    for _ in range(adds):
        counter.add("/f")
    return counter


def parts(place: Place) -> dict[int, int]:
    """What lies in the table, by shard."""
    found = {}
    for item in place.database.client.scan(TableName=place.name)["Items"]:
        parsed = place.names.parsed(item["path"])
        if "keyhop_count" in item and parsed is not None:
            found[parsed[1]] = int(item["keyhop_count"]["N"])
    return found


def test_a_count_of_each_type_of_key(of_each_type: tuple[ShardedCounter, Any]) -> None:
    counter, key = of_each_type
    assert counter.value(key, consistent=True) == 0
    assert counter.add(key) == Added()
    assert counter.add(key, 10**30, token="a") == Added()
    assert counter.add(key, 10**30, token="a") == Added(counted=False)
    counter.add(key, -3)
    assert counter.value(key) == counter.value(key, consistent=True) == 10**30 - 2


def test_adds_go_to_all_shards(place: Place) -> None:
    counter = spread(place)
    assert sorted(parts(place)) == [1, 2, 3, 4]
    assert sum(parts(place).values()) == counter.value("/f") == 40
    assert counter.table.metadata.traffic._waiting, "shrinking goes by it"


def test_what_it_costs(place: Place) -> None:
    """As the service's own counts: an add is 1, with a token it is 4; a value 0.5 or 1 a shard."""
    counter = spread(place)
    usage = counter.table.usage

    def cost(act: Callable[[], object]) -> tuple[float, float]:
        counter.table.metadata.of({"S": "/f"}, fresh=True)
        read, written = usage.read_units, usage.write_units
        act()
        return usage.write_units - written, usage.read_units - read

    assert cost(lambda: counter.add("/f")) == (1, 0)
    assert cost(lambda: counter.add("/f", token="a")) == (4, 0)
    assert cost(lambda: counter.value("/f")) == (0, 2)
    assert cost(lambda: counter.value("/f", consistent=True)) == (0, 4)


def test_a_marker_has_a_time_to_live(place: Place) -> None:
    counter = ShardedCounter(place.table(), token_seconds=7200)
    counter.add("/f", token="a")
    (marker,) = [
        item
        for item in place.database.client.scan(TableName=place.name)["Items"]
        if "keyhop_expires" in item
    ]
    left = int(marker["keyhop_expires"]["N"]) - place.clock.time()
    assert 7200 <= left <= 7202
    assert marker["path"]["S"].startswith("/f!tokens_")


@pytest.mark.parametrize("change", ["growth", "drain"])
def test_a_token_is_known_whatever_the_shard_count(place: Place, change: str) -> None:
    counter = spread(place, adds=0)
    for n in range(8):
        assert counter.add("/f", token=f"t{n}").counted
    if change == "growth":
        place.grow(counter.table, "/f", 5)
    else:
        place.drain(counter.table, "/f", 1)
    again = ShardedCounter(place.table())
    assert not any(again.add("/f", token=f"t{n}").counted for n in range(8))
    assert again.value("/f", consistent=True) == 8


def test_a_token_is_for_one_add(place: Place) -> None:
    counter = spread(place, adds=0)
    counter.add("/f", 2, token="a")
    with pytest.raises(CannotStart, match="to add 2 and not 3"):
        counter.add("/f", 3, token="a")
    assert counter.add("/g", 3, token="a").counted, "of another counter"


@pytest.mark.parametrize(
    ("n", "token"), [(1.5, None), (True, None), (10**37, None), ("1", None), (1, ""), (1, 7)]
)
def test_what_is_refused(place: Place, n: Any, token: Any) -> None:
    with pytest.raises(CannotStart):
        ShardedCounter(place.table()).add("/f", n, token)


@pytest.mark.parametrize("placement", ["calculated", "random"])
def test_a_counter_is_no_item_of_several_copies(place: Place, placement: str) -> None:
    """A put would delete all of them but one."""
    counter = spread(place, placement=placement)
    key = {"path": "/f", "at": "!keyhop-count"}
    for call, words in (
        ("put_item", {"Item": {**key, "n": 1}}),
        ("delete_item", {"Key": key}),
        (
            "update_item",
            {
                "Key": key,
                "UpdateExpression": "SET n = :n",
                "ExpressionAttributeValues": {":n": 1},
            },
        ),
    ):
        with pytest.raises(CannotStart, match=r"counter.* use ShardedCounter"):
            getattr(counter.table, call)(**words)
    assert counter.value("/f", consistent=True) == 40


@pytest.mark.parametrize("seconds", [60, math.nan, math.inf, "7200"])
def test_a_token_must_live_longer_than_clocks_differ(place: Place, seconds: Any) -> None:
    with pytest.raises(CannotStart, match="at least 3600"):
        ShardedCounter(place.table(), token_seconds=seconds)


def unanswered() -> ClientError:
    """Nobody knows whether it took effect."""
    told = {"Error": {"Code": "InternalServerError"}, "ResponseMetadata": {"HTTPStatusCode": 500}}
    return ClientError(told, "UpdateItem")


def failing(name: str, parameters: dict[str, Any], send: Callable[[], Any]) -> Any:
    """Nobody hears anything of a transaction."""
    if name == "transact_write_items":
        raise unanswered()
    return send()


def losing(counter: ShardedCounter, operation: str, times: int) -> None:
    """So many answers to this operation are lost; it takes effect."""
    left = [times]

    def act(name: str, parameters: dict[str, Any], send: Callable[[], Any]) -> Any:
        answer = send()
        if name == operation and left[0]:
            left[0] -= 1
            raise unanswered()
        return answer

    hook(counter.table, act)


def test_a_lost_answer_counts_too_often_and_says_so(place: Place) -> None:
    counter = spread(place, adds=0)
    losing(counter, "update_item", 2)
    assert counter.add("/f") == Added(at_most=3)
    assert counter.value("/f", consistent=True) == 3


def test_with_a_token_a_lost_answer_counts_once(place: Place) -> None:
    counter = spread(place, adds=0)
    losing(counter, "transact_write_items", 2)
    assert counter.add("/f", token="a") == Added(counted=True), "by this call, it knows"
    assert counter.value("/f", consistent=True) == 1


@pytest.mark.parametrize("after", [False, True], ids=["before", "after"])
def test_a_process_that_dies_is_repeated_by_another_with_its_token(
    place: Place, after: bool
) -> None:
    """At each of its requests, before and after it takes effect."""
    counter = spread(place, adds=0)
    for at in range(1, 5):
        dying = ShardedCounter(place.table())
        dying.table.requests.client = Mortal(dying.table.requests.client, at, after)
        with contextlib.suppress(Crash):
            dying.add("/f", 10, token=f"t{at}")
        counter.add("/f", 10, token=f"t{at}")
    assert counter.value("/f", consistent=True) == 40


def test_of_twenty_that_have_the_same_token_one_counts(place: Place) -> None:
    """At the same moment; with it, others add without a token."""
    policy = Policy(threshold=10_000)
    counter = ShardedCounter(
        place.table(policy=policy, clock=SystemClock(), chance=random.SystemRandom())
    )
    place.register("/f", 3)
    jobs = [f"t{n % 5}" if n % 5 else None for n in range(100)]
    with ThreadPoolExecutor(20) as threads:
        added = [*threads.map(lambda token: counter.add("/f", token=token), jobs)]
    once = [one.counted for one, token in zip(added, jobs, strict=True) if token]
    plain = [one for one, token in zip(added, jobs, strict=True) if not token]
    assert (once.count(True), len(plain)) == (4, 20)
    assert {one.at_most for one in added} == {1}
    assert counter.value("/f", consistent=True) == 4 + 20


def test_an_add_that_fails_says_whether_it_may_be_counted(place: Place) -> None:
    counter = spread(place, adds=0, patience=1.0)
    losing(counter, "update_item", 1000)
    with pytest.raises(ClientError) as failed:
        counter.add("/f")
    (note,) = failed.value.__notes__
    assert f"up to {counter.value('/f', consistent=True)}x" in note
    hook(counter.table, failing)
    with pytest.raises(ClientError) as failed:
        counter.add("/f", token="a")
    (note,) = failed.value.__notes__
    assert "once: repeat it with its token" in note


def test_a_drain_folds_all_parts(place: Place) -> None:
    counter = spread(place)
    held = parts(place)
    steps = place.drain(counter.table, "/f", 2)
    assert sum(step.moved for step in steps) == 2
    after = parts(place)
    assert sorted(after) == [1, 2]
    assert sum(after.values()) == sum(held.values()) == 40
    assert counter.value("/f", consistent=True) == 40


@pytest.mark.parametrize("settings", [{}, {"placement": "random", "append_only": True}], ids=str)
@pytest.mark.parametrize("after", [False, True], ids=["before", "after"])
def test_a_mover_that_dies_folds_nothing_twice(
    place: Place, settings: dict[str, Any], after: bool
) -> None:
    """At each of its requests, before and after it takes effect."""
    counter = spread(place, **settings)
    place.drain(counter.table, "/f", 1, until="moving")
    for at in range(2, 9):
        dying = place.table(**settings)
        dying.requests.client = Mortal(dying.requests.client, at, after)
        with contextlib.suppress(Crash):
            Drain(dying).step("/f", 1, begun=True)
        assert sum(parts(place).values()) == 40
        assert counter.value("/f", consistent=True) == 40
    place.drain(counter.table, "/f", 1)
    assert parts(place) == {1: 40}


def test_a_fold_whose_answer_is_lost_is_not_done_again(place: Place) -> None:
    counter = spread(place)
    losing(counter, "transact_write_items", 2)
    place.drain(counter.table, "/f", 1)
    assert parts(place) == {1: 40}


def test_a_part_that_changes_is_folded_as_it_is_then(place: Place) -> None:
    """Between the mover's read and its fold somebody adds, who is late: the fold is refused."""
    counter, other = spread(place), place.database.client
    done: list[str] = []

    def act(name: str, parameters: dict[str, Any], send: Callable[[], Any]) -> Any:
        if name == "transact_write_items" and not done:
            key = parameters["TransactItems"][1]["Delete"]["Key"]
            done.append(key["path"]["S"])
            other.update_item(
                TableName=place.name,
                Key=key,
                UpdateExpression="ADD keyhop_count :one",
                ExpressionAttributeValues={":one": {"N": "1"}},
            )
        return send()

    hook(counter.table, act)
    place.drain(counter.table, "/f", 1)
    assert parts(place) == {1: 41}


def folding_between(place: Place, reader: ShardedCounter, at: int) -> ShardedCounter:
    """Before the reader's `at`-th look, a mover folds one part. Returns the mover's counter."""
    mover = ShardedCounter(place.table())
    place.drain(mover.table, "/f", 1, until="moving")
    looks = [0]

    def act(name: str, parameters: dict[str, Any], send: Callable[[], Any]) -> Any:
        if name in ("batch_get_item", "get_item") and parameters.get("TableName") != place.metadata:
            looks[0] += 1
            if looks[0] == at:
                Drain(mover.table).step("/f", 1, begun=True)
        return send()

    hook(reader.table, act)
    return mover


@pytest.mark.parametrize("at", [1, 2, 3, 4])
def test_a_consistent_value_counts_once_what_is_folded_meanwhile(place: Place, at: int) -> None:
    counter = spread(place)
    folding_between(place, counter, at)
    assert counter.value("/f", consistent=True) == 40
    assert parts(place) == ({1: 40} if at < 4 else parts(place))


def test_a_value_in_a_drain_needs_its_third_look(place: Place) -> None:
    """An eventually consistent one has no such look, and says so."""
    counter = spread(place)
    folding_between(place, counter, 1)
    before = counter.table.usage.requests
    assert counter.value("/f", consistent=True) == 40
    assert counter.table.usage.requests - before >= 3


def test_an_add_whose_answer_comes_late_is_counted_once(place: Place) -> None:
    counter, other = spread(place, adds=0), ShardedCounter(place.table())
    late = once(
        counter.table,
        lambda name, parameters: (physical(place, name, parameters) or 0) > 1,
        lambda: place.drain(other.table, "/f", 1),
        answered=True,
    )
    for _ in range(10):
        counter.add("/f")
    assert late
    assert parts(place) == {1: 10}


@pytest.mark.parametrize("token", [None, "a"])
def test_an_add_that_takes_effect_late_is_folded(place: Place, token: str | None) -> None:
    """It lies where readers do not look any more; who has sent it, or repeats it, sees to it."""
    counter, other = spread(place, adds=0), ShardedCounter(place.table())
    counter.table.requests.chance.choice = lambda shards: shards[-1]  # type: ignore[method-assign]
    losing(counter, "transact_write_items", 1)
    add = is_a("transact_write_items" if token else "update_item")
    late = once(counter.table, add, lambda: place.drain(other.table, "/f", 1))
    counter.add("/f", token=token)
    assert late
    assert parts(place) == {1: 1}
    assert other.value("/f", consistent=True) == 1


def test_who_cannot_find_out_says_so(place: Place) -> None:
    counter, other = spread(place, adds=0, patience=1.0), ShardedCounter(place.table())
    late: list[str] = []

    def act(name: str, parameters: dict[str, Any], send: Callable[[], Any]) -> Any:
        if late and parameters.get("TableName") == place.metadata:
            raise refused("ThrottlingException")
        answer = send()
        if name == "update_item" and parameters["TableName"] == place.name:
            late.append(name)
            place.drain(other.table, "/f", 1)
        return answer

    hook(counter.table, act)
    with pytest.raises(GaveUp, match="Check whether the add was counted"):
        counter.add("/f")
    assert late == ["update_item"]


def conflicting(counter: ShardedCounter, place: Place, share: int) -> None:
    """Of `share` transactions one gets through: others meet in the same part."""
    seen = [0]

    def act(name: str, parameters: dict[str, Any], send: Callable[[], Any]) -> Any:
        if name == "transact_write_items" and parameters["TransactItems"][0].keys() == {"Put"}:
            seen[0] += 1
            place.clock.sleep(0.05)
            if seen[0] % share:
                error = refused("TransactionCanceledException")
                error.response["CancellationReasons"] = [
                    {"Code": "None"},
                    {"Code": "TransactionConflict"},
                ]
                raise error
        return send()

    hook(counter.table, act)


def test_adds_that_meet_get_more_shards(place: Place) -> None:
    """Transactions that conflict are not throttled, though more shards would help."""
    counter = ShardedCounter(place.table(policy=Policy(most_added=1)))
    conflicting(counter, place, 3)
    for n in range(60):
        counter.add("/f", token=f"t{n}")
    assert place.shards("/f").number > 1
    assert counter.value("/f", consistent=True) == 60


@pytest.fixture
def hot(dynamodb: Database, table_name: str) -> Iterator[tuple[Any, ShardedCounter]]:
    with sharded(dynamodb, table_name, rate=20.0) as setup:
        yield setup, ShardedCounter(setup.table(settle_seconds=2.0, patience=120))


@pytest.mark.prove
def test_a_counter_grows_by_throttles(hot: tuple[Any, ShardedCounter]) -> None:
    setup, counter = hot
    clock, end = setup.clock, setup.clock.monotonic() + 20
    counted = [0]
    lock = threading.Lock()

    def add() -> None:
        while clock.monotonic() < end:
            counter.add(KEY)
            with lock:
                counted[0] += 1
            clock.sleep(0.2)

    clock.run([add] * 16)
    assert setup.shards().number >= 4
    assert counter.value(KEY, consistent=True) == counted[0] > 16 * 30


@pytest.mark.prove
def test_adds_values_growth_and_drain_at_once(hot: tuple[Any, ShardedCounter]) -> None:
    """A consistent value is never below what was counted before, nor above what was begun."""
    setup, counter = hot
    setup.model.rate = 1000.0
    clock, end = setup.clock, setup.clock.monotonic() + 40
    begun, counted = [0], [0]
    others = [ShardedCounter(setup.table(settle_seconds=2.0)) for _ in range(3)]
    done: list[Next] = []

    def add(counter: ShardedCounter) -> Callable[[], None]:
        def adding() -> None:
            while clock.monotonic() < end:
                begun[0] += 1
                counter.add(KEY, token=f"t{begun[0]}" if begun[0] % 3 == 0 else None)
                counted[0] += 1
                clock.sleep(0.3)

        return adding

    def read() -> None:
        while clock.monotonic() < end:
            least = counted[0]
            value = others[2].value(KEY, consistent=True)
            assert least <= value <= begun[0]
            clock.sleep(0.1)

    def change() -> None:
        known = counter.table.metadata.of({"S": KEY}, register=True)
        clock.sleep(2.0)
        known = counter.table.metadata.of({"S": KEY}, fresh=True)
        if known.shards.phase == "steady":
            counter.table.metadata.grow({"S": KEY}, known, 6)
        clock.sleep(8.0)
        done.append(setup.drain(counter.table).action)

    clock.run([add(others[0]), add(others[1]), read, change])
    assert done == [Next.DONE]
    assert counter.value(KEY, consistent=True) == counted[0] > 200
