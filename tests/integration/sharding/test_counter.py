"""Counters that are spread over shards: their values, their cost, and changes of the shards."""

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
from tests.integration.sharding.crashes import Crash, DyingClient
from tests.integration.sharding.hooks import client_error, hook, is_operation, once, shard_of_write
from tests.integration.sharding.single import Place
from tests.integration.sharding.tables import KEY, sharded


@pytest.fixture(params=["S", "N", "B"])
def counter_and_key(
    request: pytest.FixtureRequest, dynamodb: Database, table_name: str
) -> tuple[ShardedCounter, Any]:
    partition = "B" if request.param == "B" else "S"
    place = Place(dynamodb, table_name, sort=request.param, partition=partition)
    return ShardedCounter(place.table()), b"\xff/f" if partition == "B" else "/f"


def spread_counter(place: Place, shards: int = 4, adds: int = 40, **more: Any) -> ShardedCounter:
    """Return a counter with adds in all of its shards."""
    counter = ShardedCounter(place.table(**more))
    place.register("/f", shards, settle_seconds={"N": "2"})
    for _ in range(adds):
        counter.add("/f")
    return counter


def parts(place: Place) -> dict[int, int]:
    """Return the stored parts of the counters, by shard."""
    by_shard = {}
    for item in place.database.client.scan(TableName=place.name)["Items"]:
        parsed = place.names.parsed(item["path"])
        if "keyhop_count" in item and parsed is not None:
            by_shard[parsed[1]] = int(item["keyhop_count"]["N"])
    return by_shard


def test_counters_accept_each_type_of_key(counter_and_key: tuple[ShardedCounter, Any]) -> None:
    counter, key = counter_and_key
    assert counter.value(key, consistent=True) == 0
    assert counter.add(key) == Added()
    assert counter.add(key, 10**30, token="a") == Added()
    assert counter.add(key, 10**30, token="a") == Added(counted=False)
    counter.add(key, -3)
    assert counter.value(key) == counter.value(key, consistent=True) == 10**30 - 2


def test_adds_go_to_all_shards(place: Place) -> None:
    counter = spread_counter(place)
    assert sorted(parts(place)) == [1, 2, 3, 4]
    assert sum(parts(place).values()) == counter.value("/f") == 40
    assert counter.table.metadata.traffic._waiting, "drains depend on reported traffic"


def test_an_add_and_a_value_have_their_documented_cost(place: Place) -> None:
    """Compare with units of the service: 1 per add, 4 with a token; 0.5 or 1 per shard read."""
    counter = spread_counter(place)
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
    items = place.database.client.scan(TableName=place.name)["Items"]
    (marker,) = [item for item in items if "keyhop_expires" in item]
    seconds = int(marker["keyhop_expires"]["N"]) - place.clock.time()
    assert 7200 <= seconds <= 7202
    assert marker["path"]["S"].startswith("/f!tokens_")


@pytest.mark.parametrize("change", ["growth", "drain"])
def test_a_token_is_remembered_when_the_shard_count_changes(place: Place, change: str) -> None:
    counter = spread_counter(place, adds=0)
    for n in range(8):
        assert counter.add("/f", token=f"t{n}").counted
    if change == "growth":
        place.grow(counter.table, "/f", 5)
    else:
        place.drain(counter.table, "/f", 1)
    fresh = ShardedCounter(place.table())
    assert not any(fresh.add("/f", token=f"t{n}").counted for n in range(8))
    assert fresh.value("/f", consistent=True) == 8


def test_a_token_is_for_one_add(place: Place) -> None:
    counter = spread_counter(place, adds=0)
    counter.add("/f", 2, token="a")
    with pytest.raises(CannotStart, match="to add 2 and not 3"):
        counter.add("/f", 3, token="a")
    assert counter.add("/g", 3, token="a").counted, "another counter"


@pytest.mark.parametrize(
    ("n", "token"), [(1.5, None), (True, None), (10**37, None), ("1", None), (1, ""), (1, 7)]
)
def test_invalid_numbers_and_tokens_are_refused(place: Place, n: Any, token: Any) -> None:
    with pytest.raises(CannotStart):
        ShardedCounter(place.table()).add("/f", n, token)


@pytest.mark.parametrize("placement", ["calculated", "random"])
def test_a_counter_cannot_be_written_as_an_item(place: Place, placement: str) -> None:
    """A put would delete all parts but one."""
    counter = spread_counter(place, placement=placement)
    key = {"path": "/f", "at": "!keyhop-count"}
    update = {"UpdateExpression": "SET n = :n", "ExpressionAttributeValues": {":n": 1}}
    for call, arguments in (
        ("put_item", {"Item": {**key, "n": 1}}),
        ("delete_item", {"Key": key}),
        ("update_item", {"Key": key, **update}),
    ):
        with pytest.raises(CannotStart, match=r"counter.* use ShardedCounter"):
            getattr(counter.table, call)(**arguments)
    assert counter.value("/f", consistent=True) == 40


@pytest.mark.parametrize("seconds", [60, math.nan, math.inf, "7200"])
def test_a_token_must_live_longer_than_clocks_differ(place: Place, seconds: Any) -> None:
    with pytest.raises(CannotStart, match="at least 3600"):
        ShardedCounter(place.table(), token_seconds=seconds)


def unknown_outcome() -> ClientError:
    """Return an error that leaves unknown whether the write took effect."""
    error = {"Error": {"Code": "InternalServerError"}, "ResponseMetadata": {"HTTPStatusCode": 500}}
    return ClientError(error, "UpdateItem")


def lose_transactions(name: str, parameters: dict[str, Any], send: Callable[[], Any]) -> Any:
    """Answer each transaction with an unknown outcome, without sending it."""
    if name == "transact_write_items":
        raise unknown_outcome()
    return send()


def lose_responses(counter: ShardedCounter, operation: str, times: int) -> None:
    """Lose so many responses to this operation, which takes effect."""
    remaining = [times]

    def act(name: str, parameters: dict[str, Any], send: Callable[[], Any]) -> Any:
        answer = send()
        if name == operation and remaining[0]:
            remaining[0] -= 1
            raise unknown_outcome()
        return answer

    hook(counter.table, act)


def test_retries_after_lost_responses_are_reported(place: Place) -> None:
    counter = spread_counter(place, adds=0)
    lose_responses(counter, "update_item", 2)
    assert counter.add("/f") == Added(at_most=3)
    assert counter.value("/f", consistent=True) == 3


def test_with_a_token_a_lost_response_counts_once(place: Place) -> None:
    counter = spread_counter(place, adds=0)
    lose_responses(counter, "transact_write_items", 2)
    assert counter.add("/f", token="a") == Added(counted=True), "counted by this call"
    assert counter.value("/f", consistent=True) == 1


@pytest.mark.parametrize("after", [False, True], ids=["before", "after"])
def test_another_process_repeats_an_add_with_its_token(place: Place, after: bool) -> None:
    """The first process dies at each of its requests, before or after it takes effect."""
    counter = spread_counter(place, adds=0)
    for at in range(1, 5):
        dying = ShardedCounter(place.table())
        dying.table.requests.client = DyingClient(dying.table.requests.client, at, after)
        with contextlib.suppress(Crash):
            dying.add("/f", 10, token=f"t{at}")
        counter.add("/f", 10, token=f"t{at}")
    assert counter.value("/f", consistent=True) == 40


def test_concurrent_adds_with_the_same_token_count_once(place: Place) -> None:
    """Other adds run at the same time without a token."""
    policy = Policy(threshold=10_000)
    counter = ShardedCounter(
        place.table(policy=policy, clock=SystemClock(), chance=random.SystemRandom())
    )
    place.register("/f", 3)
    jobs = [f"t{n % 5}" if n % 5 else None for n in range(100)]
    with ThreadPoolExecutor(20) as threads:
        added = [*threads.map(lambda token: counter.add("/f", token=token), jobs)]
    counted = [result.counted for result, token in zip(added, jobs, strict=True) if token]
    plain = [result for result, token in zip(added, jobs, strict=True) if not token]
    assert (counted.count(True), len(plain)) == (4, 20)
    assert {result.at_most for result in added} == {1}
    assert counter.value("/f", consistent=True) == 4 + 20


def test_an_add_that_fails_says_whether_it_may_be_counted(place: Place) -> None:
    counter = spread_counter(place, adds=0, patience=1.0)
    lose_responses(counter, "update_item", 1000)
    with pytest.raises(ClientError) as caught:
        counter.add("/f")
    (note,) = caught.value.__notes__
    assert f"up to {counter.value('/f', consistent=True)}x" in note
    hook(counter.table, lose_transactions)
    with pytest.raises(ClientError) as caught:
        counter.add("/f", token="a")
    (note,) = caught.value.__notes__
    assert "once: repeat it with its token" in note


def test_a_drain_folds_all_parts(place: Place) -> None:
    counter = spread_counter(place)
    before = parts(place)
    steps = place.drain(counter.table, "/f", 2)
    assert sum(step.moved for step in steps) == 2
    after = parts(place)
    assert sorted(after) == [1, 2]
    assert sum(after.values()) == sum(before.values()) == 40
    assert counter.value("/f", consistent=True) == 40


@pytest.mark.parametrize("settings", [{}, {"placement": "random", "append_only": True}], ids=str)
@pytest.mark.parametrize("after", [False, True], ids=["before", "after"])
def test_a_mover_that_dies_folds_nothing_twice(
    place: Place, settings: dict[str, Any], after: bool
) -> None:
    """It dies at each of its requests, before or after it takes effect."""
    counter = spread_counter(place, **settings)
    place.drain(counter.table, "/f", 1, until="moving")
    for at in range(2, 9):
        dying = place.table(**settings)
        dying.requests.client = DyingClient(dying.requests.client, at, after)
        with contextlib.suppress(Crash):
            Drain(dying).step("/f", 1, begun=True)
        assert sum(parts(place).values()) == 40
        assert counter.value("/f", consistent=True) == 40
    place.drain(counter.table, "/f", 1)
    assert parts(place) == {1: 40}


def test_a_fold_with_a_lost_response_is_not_repeated(place: Place) -> None:
    counter = spread_counter(place)
    lose_responses(counter, "transact_write_items", 2)
    place.drain(counter.table, "/f", 1)
    assert parts(place) == {1: 40}


def test_a_part_that_changes_is_folded_with_its_current_value(place: Place) -> None:
    """A late add takes effect between the mover's read and its fold, which is refused."""
    counter, client = spread_counter(place), place.database.client
    changed: list[str] = []

    def act(name: str, parameters: dict[str, Any], send: Callable[[], Any]) -> Any:
        if name == "transact_write_items" and not changed:
            key = parameters["TransactItems"][1]["Delete"]["Key"]
            changed.append(key["path"]["S"])
            client.update_item(
                TableName=place.name,
                Key=key,
                UpdateExpression="ADD keyhop_count :one",
                ExpressionAttributeValues={":one": {"N": "1"}},
            )
        return send()

    hook(counter.table, act)
    place.drain(counter.table, "/f", 1)
    assert parts(place) == {1: 41}


def fold_before_look(place: Place, reader: ShardedCounter, at: int) -> ShardedCounter:
    """Fold one part before the reader's `at`-th look, and return the counter of the mover."""
    mover = ShardedCounter(place.table())
    place.drain(mover.table, "/f", 1, until="moving")
    look_count = [0]

    def act(name: str, parameters: dict[str, Any], send: Callable[[], Any]) -> Any:
        if name in ("batch_get_item", "get_item") and parameters.get("TableName") != place.metadata:
            look_count[0] += 1
            if look_count[0] == at:
                Drain(mover.table).step("/f", 1, begun=True)
        return send()

    hook(reader.table, act)
    return mover


@pytest.mark.parametrize("at", [1, 2, 3, 4])
def test_a_consistent_value_counts_a_part_once_during_a_fold(place: Place, at: int) -> None:
    counter = spread_counter(place)
    fold_before_look(place, counter, at)
    assert counter.value("/f", consistent=True) == 40
    assert sum(parts(place).values()) == 40
    assert (parts(place) == {1: 40}) == (at < 4), "the reader looks three times"


def test_a_value_in_a_drain_needs_its_third_look(place: Place) -> None:
    """An eventually consistent value has no such look, as its documentation says."""
    counter = spread_counter(place)
    fold_before_look(place, counter, 1)
    before = counter.table.usage.requests
    assert counter.value("/f", consistent=True) == 40
    assert counter.table.usage.requests - before >= 3


def test_an_add_with_a_late_response_is_counted_once(place: Place) -> None:
    counter, peer = spread_counter(place, adds=0), ShardedCounter(place.table())
    late = once(
        counter.table,
        lambda name, parameters: (shard_of_write(place, name, parameters) or 0) > 1,
        lambda: place.drain(peer.table, "/f", 1),
        after=True,
    )
    for _ in range(10):
        counter.add("/f")
    assert late
    assert parts(place) == {1: 10}


@pytest.mark.parametrize("token", [None, "a"])
def test_an_add_that_takes_effect_late_is_folded(place: Place, token: str | None) -> None:
    """Readers no longer read its shard, so its sender, or a retry of it, must fold it."""
    counter, peer = spread_counter(place, adds=0), ShardedCounter(place.table())
    counter.table.requests.chance.choice = lambda shards: shards[-1]  # type: ignore[method-assign]
    lose_responses(counter, "transact_write_items", 1)
    add = is_operation("transact_write_items" if token else "update_item")
    late = once(counter.table, add, lambda: place.drain(peer.table, "/f", 1))
    counter.add("/f", token=token)
    assert late
    assert parts(place) == {1: 1}
    assert peer.value("/f", consistent=True) == 1


def test_an_add_with_an_unknown_outcome_raises(place: Place) -> None:
    counter, peer = spread_counter(place, adds=0, patience=1.0), ShardedCounter(place.table())
    late: list[str] = []

    def act(name: str, parameters: dict[str, Any], send: Callable[[], Any]) -> Any:
        if late and parameters.get("TableName") == place.metadata:
            raise client_error("ThrottlingException")
        answer = send()
        if name == "update_item" and parameters["TableName"] == place.name:
            late.append(name)
            place.drain(peer.table, "/f", 1)
        return answer

    hook(counter.table, act)
    with pytest.raises(GaveUp, match="Check whether the add was counted"):
        counter.add("/f")
    assert late == ["update_item"]


def conflict(counter: ShardedCounter, place: Place, share: int) -> None:
    """Let one of `share` transactions succeed. The others conflict in the same part."""
    requests = [0]

    def act(name: str, parameters: dict[str, Any], send: Callable[[], Any]) -> Any:
        if name == "transact_write_items" and parameters["TransactItems"][0].keys() == {"Put"}:
            requests[0] += 1
            place.clock.sleep(0.05)
            if requests[0] % share:
                error = client_error("TransactionCanceledException")
                error.response["CancellationReasons"] = [
                    {"Code": "None"},
                    {"Code": "TransactionConflict"},
                ]
                raise error
        return send()

    hook(counter.table, act)


def test_conflicting_adds_cause_growth(place: Place) -> None:
    """Conflicting transactions are not throttled, although more shards would help."""
    counter = ShardedCounter(place.table(policy=Policy(most_added=1)))
    conflict(counter, place, 3)
    for n in range(60):
        counter.add("/f", token=f"t{n}")
    assert place.shards("/f").number > 1
    assert counter.value("/f", consistent=True) == 60


@pytest.fixture
def hot_counter(dynamodb: Database, table_name: str) -> Iterator[tuple[Any, ShardedCounter]]:
    with sharded(dynamodb, table_name, rate=20.0) as setup:
        yield setup, ShardedCounter(setup.table(settle_seconds=2.0, patience=120))


@pytest.mark.prove
def test_a_counter_grows_by_throttles(hot_counter: tuple[Any, ShardedCounter]) -> None:
    setup, counter = hot_counter
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
def test_adds_values_growth_and_drain_at_once(hot_counter: tuple[Any, ShardedCounter]) -> None:
    """A consistent value is between the adds that had returned and the adds that had started."""
    setup, counter = hot_counter
    setup.model.rate = 1000.0
    clock, end = setup.clock, setup.clock.monotonic() + 40
    started, counted = [0], [0]
    counters = [ShardedCounter(setup.table(settle_seconds=2.0)) for _ in range(3)]
    last_steps: list[Next] = []

    def add(counter: ShardedCounter) -> Callable[[], None]:
        def adding() -> None:
            while clock.monotonic() < end:
                started[0] += 1
                counter.add(KEY, token=f"t{started[0]}" if started[0] % 3 == 0 else None)
                counted[0] += 1
                clock.sleep(0.3)

        return adding

    def read() -> None:
        while clock.monotonic() < end:
            before = counted[0]
            value = counters[2].value(KEY, consistent=True)
            assert before <= value <= started[0]
            clock.sleep(0.1)

    def change() -> None:
        record = counter.table.metadata.of({"S": KEY}, register=True)
        clock.sleep(2.0)
        record = counter.table.metadata.of({"S": KEY}, fresh=True)
        if record.shards.phase == "steady":
            counter.table.metadata.grow({"S": KEY}, record, 6)
        clock.sleep(8.0)
        last_steps.append(setup.drain(counter.table).action)

    clock.run([add(counters[0]), add(counters[1]), read, change])
    assert last_steps == [Next.DONE]
    assert counter.value(KEY, consistent=True) == counted[0] > 200
