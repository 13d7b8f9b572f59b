"""Check the policy that decides when shards are added and when fewer are enough, by properties."""

import math
from heapq import heapify, heappop, heappush
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from keyhop.sharding.key.policy import (
    Action,
    Cause,
    Demand,
    Policy,
    RecentAttempts,
    Sums,
    cause_by_consumption,
    cause_of,
    decide,
    fewer_shards,
)
from keyhop.sharding.key.shards import Phase, Shards

from testing.partitions import ALL_REASONS

CAUSES = {
    "TableWriteKeyRangeThroughputExceeded": Cause.HOT_KEY,
    "IndexWriteKeyRangeThroughputExceeded": Cause.HOT_INDEX_KEY,
    "TableWriteProvisionedThroughputExceeded": Cause.TABLE_TOO_SMALL,
    "IndexWriteProvisionedThroughputExceeded": Cause.INDEX_TOO_SMALL,
    "TableWriteMaxOnDemandThroughputExceeded": Cause.OWN_CAP,
    "IndexWriteMaxOnDemandThroughputExceeded": Cause.OWN_CAP,
    "TableWriteAccountLimitExceeded": Cause.ACCOUNT_QUOTA,
    "IndexWriteAccountLimitExceeded": Cause.ACCOUNT_QUOTA,
}
NOW = 1_800_000_000.0


def throttle(*reasons: str, field: str = "ThrottlingReasons") -> dict:
    details = [{"reason": reason, "resource": "arn:aws:dynamodb:r:1:table/t"} for reason in reasons]
    return {"Error": {"Code": "ProvisionedThroughputExceededException"}, field: details}


@pytest.mark.parametrize("field", ["ThrottlingReasons", "throttlingReasons"])
@pytest.mark.parametrize("reason", ALL_REASONS)
def test_each_reason_has_its_cause_in_both_casings(reason: str, field: str) -> None:
    """Eight of the sixteen reasons are for reads, and say nothing of a write."""
    response = throttle(reason, field=field)
    assert cause_of(response) is CAUSES.get(reason, Cause.UNKNOWN)


def test_without_a_reason_nothing_is_known() -> None:
    for response in (throttle(), {"Error": {"Code": "ThrottlingException"}}):
        assert cause_of(response) is None
    assert cause_of(throttle("SomethingNewExceeded")) is Cause.UNKNOWN


@given(st.sets(st.sampled_from(ALL_REASONS), min_size=1))
def test_a_key_is_hot_only_if_no_other_cause_delays_the_write(reasons: set[str]) -> None:
    """More shards do not help against any other cause."""
    cause = cause_of(throttle(*reasons))
    causes = {CAUSES.get(reason, Cause.UNKNOWN) for reason in reasons}
    assert cause in causes
    if cause is Cause.HOT_KEY:
        assert causes <= {Cause.HOT_KEY, Cause.UNKNOWN}


def test_consumption_distinguishes_a_small_table_from_a_hot_key() -> None:
    assert cause_by_consumption(95, 100) is Cause.TABLE_TOO_SMALL
    assert cause_by_consumption(20, 100) is Cause.HOT_KEY
    assert cause_by_consumption(70, 100) is Cause.UNKNOWN
    assert cause_by_consumption(70, None) is Cause.UNKNOWN
    assert cause_by_consumption(None, 100) is Cause.UNKNOWN


def hot(policy: Policy, hits: int, accepted: int = 0) -> RecentAttempts:
    recent = RecentAttempts(policy.window)
    for _ in range(accepted):
        recent.note(0.0, throttled=False, first=True)
    for hit in range(hits):
        recent.note(2.0 * hit / max(1, hits - 1), throttled=True, first=True)
    return recent


counts = st.integers(1, 64)
shards = st.builds(
    lambda number, age, phase: Shards(
        number, int(NOW - age), ((int(NOW - age), number),), number, 64, phase
    ),
    counts,
    st.floats(0, 200),
    st.sampled_from(Phase),
)


@given(shards, st.integers(0, 20), st.integers(0, 500), st.floats(0, 100), st.floats(0, 100))
def test_shards_are_added_only_if_all_rules_allow_it(
    key: Shards, hits: int, accepted: int, known: float, counted: float
) -> None:
    """A writer counts only its own observations, because other clocks may be wrong."""
    policy = Policy(threshold=5, cooldown=30, most=32)
    action, following = decide(policy, key, hot(policy, hits, accepted), known, counted)
    if action is Action.GROW:
        assert hits >= policy.threshold
        assert key.phase in (Phase.STEADY, Phase.OPENED)
        assert counted >= policy.cooldown
        assert known >= key.settle
        assert key.number < following <= min(policy.most, 32 * key.number)
    else:
        assert following == key.number
    if action is Action.AT_MAXIMUM:
        assert key.number >= policy.most


@pytest.mark.parametrize(("seconds", "action"), [(29, Action.WAIT), (30, Action.GROW)])
@pytest.mark.parametrize("ahead", [3600, 0, -3600])
def test_a_wrong_clock_neither_delays_nor_hastens_growth(
    seconds: float, action: Action, ahead: int
) -> None:
    """The clock of the machine that changed the metadata is `ahead` seconds ahead of this one."""
    policy = Policy(threshold=5, cooldown=30)
    current = Shards(2, int(NOW) + ahead, ((int(NOW) + ahead, 2),), 2, 2)
    assert decide(policy, current, hot(policy, 5), seconds, seconds, informed=True)[0] is action


@given(st.integers(1, 60), st.floats(1, 1000), st.integers(1, 100))
def test_growth_is_limited_to_a_factor_of_32(number: int, pressure: float, most_added: int) -> None:
    """A key with ten times the demand gets enough shards in one step."""
    following = Policy(most=1000).next_count(number, pressure)
    assert number < following <= 32 * number
    assert following >= min(10, pressure) * number or pressure < 2
    limited = Policy(most=1000, most_added=most_added).next_count(number, pressure)
    assert limited == min(following, number + most_added)
    assert Policy(most=number + 1).next_count(number, pressure) == number + 1


@given(st.integers(1, 64), st.floats(1, 15))
def test_fast_growth_ends_near_the_number_needed(number: int, factor: float) -> None:
    """The share of refused writes shows by which factor the shards are too few."""
    needed = math.ceil(number * factor)
    shards, at = Shards.registered(NOW, 5.0, None), NOW
    while shards.number < needed:
        at += 15
        pressure = max(1.0, needed / shards.number)
        following = Policy(most=1000).next_count(shards.number, pressure)
        grown = shards.grown(following, at)
        shards = grown.advanced(at + 5).advanced(at + 10)
    assert shards.number <= needed + 2


def test_retries_do_not_make_a_key_look_hotter() -> None:
    recent = RecentAttempts(10)
    recent.note(0, throttled=True, first=True)
    for _ in range(50):
        recent.note(1, throttled=True, first=False)
    recent.note(1, throttled=False, first=True)
    assert recent.pressure(1) == 1.2, "two attempts, and four assumed ones"
    assert len(recent.throttles) == 51
    recent.note(30, throttled=False, first=True)
    assert not recent.throttles
    assert recent.pressure(30) == 1


def callers(count: int, cycle: float, capacity: float, seconds: float) -> RecentAttempts:
    """Simulate callers that write once in `cycle` seconds; `capacity` writes a second succeed.

    A refused caller tries again a tenth of a second later, and sends no other request until then.
    """
    recent = RecentAttempts(10)
    tokens = last = 0.0
    turns = [(n * cycle / count, n, True, 0.0) for n in range(count)]
    heapify(turns)
    while turns[0][0] < seconds:
        now, caller, first, began = heappop(turns)
        tokens, last = min(capacity, tokens + (now - last) * capacity), now
        if first:
            began = now
            if recent.demand:
                recent.demand.note_request(caller, now)
        if tokens < 1:
            recent.note(now, throttled=True, first=first)
            recent.demand.callers.setdefault(caller, None)
            heappush(turns, (now + 0.1, caller, False, began))
            continue
        tokens -= 1
        if recent.demand:
            recent.demand.answered(caller, began if first else None)
        if first:
            recent.note(now, throttled=False, first=True)
        heappush(turns, (max(now, began + cycle), caller, True, now))
    return recent


@pytest.mark.parametrize("times", [2, 5, 12])
@pytest.mark.parametrize("count", [32, 200])
def test_pressure_is_the_ratio_of_wanted_to_accepted_writes(count: int, times: float) -> None:
    """A throttled caller sends fewer requests, which does not lower the measured pressure."""
    recent = callers(count, count / (100 * times), capacity=100, seconds=2.0)
    assert recent.is_measured(2.0)
    assert recent.pressure(2.0) == pytest.approx(times, rel=0.25)
    attempts = len(recent.throttled) + len(recent.accepted)
    assert attempts < 100 * times * 2 * 0.8


def test_the_pool_of_many_processes_with_one_caller_each_measures_demand() -> None:
    recent = callers(1, 1 / 15, capacity=3, seconds=1.0)
    assert recent.demand is not None
    assert not recent.is_measured(1.0)
    guessed = recent.pressure(1.0)
    recent.demand.pooled = Sums(caller_seconds=32.0, accepted=100.0, cycles=8.0, seconds=0.5)
    assert recent.is_measured(1.0)
    assert recent.pressure(1.0) == pytest.approx(5, rel=0.1) != guessed


def test_demand_is_not_reported_twice() -> None:
    demand = Demand(0.0)
    demand.note_request("a", 0.0)
    demand.answered("a", 0.0)
    assert demand.news(1.0) == Sums(1.12, 1.0, 0.0, 0.0), "includes the wait that begins now"
    assert demand.news(1.1) is None
    demand.note_request("a", 1.2)
    assert demand.news(1.2) is None, "a cycle is reported soon, not at once"
    assert demand.news(1.5) == Sums(0.5, 0.0, 1.0, 1.2)


def test_a_caller_brings_the_cycle_before_its_first_throttle_unless_it_is_long() -> None:
    demand = Demand(0.0)
    demand.joined("a", 0.1)
    demand.joined("a", 0.1)
    demand.joined("b", 5.0)
    demand.joined("c", None)
    assert demand.sums(1.0) == Sums(3.0, 0.0, 1.0, 0.1)


def test_a_process_asks_the_others_before_it_has_seen_enough() -> None:
    current = Shards.registered(NOW - 100, 5.0, None)
    recent = RecentAttempts(10)
    recent.note(0.0, throttled=True, first=True)
    recent.note(0.2, throttled=True, first=False)
    assert decide(Policy(), current, recent, 100, 100, at=0.2)[0] is Action.WAIT
    recent.note(0.4, throttled=True, first=False)
    assert decide(Policy(), current, recent, 100, 100, at=0.4)[0] is Action.ASK
    assert recent.demand is not None
    recent.demand.pooled = Sums(32.0, 100.0, 8.0, 0.5)
    assert decide(Policy(), current, recent, 100, 100, at=0.4)[0] is Action.WAIT


def test_the_end_of_a_growth_does_not_restart_the_cooldown() -> None:
    current = Shards.registered(NOW - 100, 2.0, None, 2)
    recent = hot(Policy(), 5)
    assert decide(Policy(), current, recent, 2, 4, at=2.0, informed=True)[0] is Action.WAIT
    assert decide(Policy(), current, recent, 2, 5, at=2.0, informed=True)[0] is Action.GROW


def test_a_process_that_cannot_measure_demand_asks_the_others_first() -> None:
    policy, current = Policy(), Shards.registered(NOW - 100, 5.0, None)
    recent = RecentAttempts(10)
    for n in range(6):
        recent.note(n / 10, throttled=True, first=True)
    assert decide(policy, current, recent, 100, 100, at=0.5)[0] is Action.ASK
    assert recent.demand is not None
    recent.demand.pooled = Sums(31.0, 100.0, 8.0, 0.5)
    assert decide(policy, current, recent, 100, 100, at=0.5) == (Action.GROW, 6)


def test_throttling_that_does_not_last_adds_nothing() -> None:
    policy = Policy(cooldown=0)
    current = Shards.registered(NOW - 100, 5.0, None)
    spike, lasting = RecentAttempts(10), RecentAttempts(10)
    for n in range(300):
        spike.note(n / 1000, throttled=True, first=True)
        lasting.note(n / 100, throttled=True, first=True)
    assert decide(policy, current, spike, 100, 100, at=0.3)[0] is Action.WAIT
    assert decide(policy, current, lasting, 100, 100, at=3.0, informed=True)[0] is Action.GROW


def test_a_few_throttles_of_many_writes_add_nothing() -> None:
    policy = Policy(cooldown=0)
    current = Shards.registered(NOW - 100, 5.0, None)
    recent = RecentAttempts(10)
    for n in range(1_000):
        recent.note(n / 100, throttled=n % 100 == 0, first=True)
    assert decide(policy, current, recent, 100, 100, at=10.0)[0] is Action.WAIT


def test_a_new_key_may_grow_without_an_observation_time() -> None:
    new = Shards.registered(NOW, 5.0, None)
    assert decide(Policy(), new, hot(Policy(), 20), 0.0, 0.0, informed=True)[0] is Action.GROW
    grown = Shards.registered(NOW, 5.0, None, 2)
    assert decide(Policy(), grown, hot(Policy(), 20), 0.0, 0.0)[0] is Action.WAIT


def test_keys_that_are_known_to_become_hot_start_with_more() -> None:
    policy = Policy(start_shards={"/logs/*": 4, "/logs/hot/*": 8, "/one": 2})
    keys = ("/logs/a", "/logs/hot/a", "/one", "/one/more", b"/logs/b")
    assert [policy.first_count(key) for key in keys] == [4, 8, 2, 1, 4]
    with pytest.raises(ValueError, match="start_shards"):
        Policy(most=4, start_shards={"/one": 5})
    with pytest.raises(ValueError, match="most is 1001; it must be a whole number from 1 to 1000"):
        Policy(most=1001)


@pytest.mark.parametrize(
    ("name", "minimum"),
    [("most", 1), ("threshold", 1), ("most_added", 1), ("most_in_all", 0), ("start_shards", 1)],
)
@pytest.mark.parametrize("wrong", [2.0, 2.5, math.nan, math.inf, True, "2", -1])
def test_a_count_is_an_int_in_its_range(name: str, minimum: int, wrong: Any) -> None:
    """Nobody could read the metadata of a key with 1.5 shards."""

    def policy(count: Any) -> Policy:
        return Policy(**{name: {"/f": count} if name == "start_shards" else count})

    for count in (wrong, minimum - 1):
        with pytest.raises(
            ValueError, match=rf"{name} is .*; it must be a whole number .*{minimum}"
        ):
            policy(count)
    policy(minimum)


@pytest.mark.parametrize("name", ["window", "cooldown", "spread", "lasting"])
@pytest.mark.parametrize("wrong", [math.nan, math.inf, -0.1, True, "2", None])
def test_a_time_is_a_finite_number(name: str, wrong: Any) -> None:
    with pytest.raises(ValueError, match=rf"{name} is .*; it must be a number of at least 0"):
        Policy(**{name: wrong})
    Policy(**{name: 0})


@given(counts, st.dictionaries(st.integers(0, 6000), st.floats(0, 7e5)), st.floats(0, 100))
def test_fewer_shards_are_proposed_only_for_a_quiet_key_and_with_headroom(
    number: int, ago: dict[int, float], hours: float
) -> None:
    updated = int(NOW - hours * 3600)
    current = Shards(number, updated, ((updated, number),), number, number)
    traffic = {int(NOW // 60) - minute: units for minute, units in ago.items()}
    proposal = fewer_shards(current, traffic, NOW)
    if proposal is not None:
        assert 1 <= proposal[0] < number
        assert hours * 3600 >= 24 * 3600 - 1
        busiest = max(units for minute, units in ago.items() if minute <= 24 * 60)
        assert busiest / 60 * 5 <= proposal[0] * 1000


def test_a_key_that_is_changing_gets_no_proposal() -> None:
    quiet = Shards.registered(0, 5.0, None, 8)
    traffic = {int(NOW // 60): 1.0}
    assert fewer_shards(quiet, traffic, NOW) is not None
    assert fewer_shards(quiet.shrunk(4, 1.0), traffic, NOW) is None


def test_unreported_traffic_is_unknown_and_never_drains() -> None:
    quiet = Shards.registered(0, 5.0, None, 8)
    by_hour = {int(NOW // 3600) - ago: 1.0 for ago in range(48)}
    assert fewer_shards(quiet, {}, NOW) is None
    assert fewer_shards(quiet, by_hour, NOW) is None, "earlier versions reported by hour"
    assert fewer_shards(quiet, {int(NOW // 60) - 25 * 60: 1.0}, NOW) is None


def test_a_busy_minute_is_not_hidden_by_its_hour() -> None:
    quiet = Shards.registered(0, 5.0, None, 8)
    minutes = {int(NOW // 60) - ago: 60.0 for ago in range(60)}
    assert fewer_shards(quiet, minutes, NOW)[0] == 1
    assert fewer_shards(quiet, {**minutes, int(NOW // 60) - 30: 60 * 1000.0}, NOW)[0] == 5
