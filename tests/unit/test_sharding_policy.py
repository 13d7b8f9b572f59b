"""When shards are added and when fewer would do: the pure policy, by properties."""

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st
from keyhop.dynamodb.throttling import ALL_REASONS
from keyhop.sharding.key.policy import (
    Action,
    Cause,
    Doubling,
    OneMore,
    Policy,
    RecentAttempts,
    Shrinking,
    cause_by_consumption,
    cause_of,
    decide,
    has_reasons,
    shrunk_count,
)
from keyhop.sharding.key.shards import Phase, Shards

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
    told = [{"reason": reason, "resource": "arn:aws:dynamodb:r:1:table/t"} for reason in reasons]
    return {"Error": {"Code": "ProvisionedThroughputExceededException"}, field: told}


@pytest.mark.parametrize("field", ["ThrottlingReasons", "throttlingReasons"])
@pytest.mark.parametrize("reason", ALL_REASONS)
def test_each_reason_has_its_cause_in_both_casings(reason: str, field: str) -> None:
    """Of the sixteen, the eight for reads say nothing of a write."""
    response = throttle(reason, field=field)
    assert has_reasons(response)
    assert cause_of(response) is CAUSES.get(reason, Cause.UNKNOWN)


def test_without_a_reason_nothing_is_known() -> None:
    for response in (throttle(), {"Error": {"Code": "ThrottlingException"}}):
        assert not has_reasons(response)
        assert cause_of(response) is Cause.UNKNOWN
    assert cause_of(throttle("SomethingNewExceeded")) is Cause.UNKNOWN


@given(st.sets(st.sampled_from(ALL_REASONS), min_size=1))
def test_a_key_is_hot_only_if_nothing_else_holds_the_write_up(reasons: set[str]) -> None:
    """More shards do not help against any other cause."""
    cause = cause_of(throttle(*reasons))
    causes = {CAUSES.get(reason, Cause.UNKNOWN) for reason in reasons}
    assert cause in causes
    if cause is Cause.HOT_KEY:
        assert causes <= {Cause.HOT_KEY, Cause.UNKNOWN}


def test_consumption_tells_a_small_table_from_a_hot_key() -> None:
    assert cause_by_consumption(95, 100) is Cause.TABLE_TOO_SMALL
    assert cause_by_consumption(20, 100) is Cause.HOT_KEY
    assert cause_by_consumption(70, 100) is Cause.UNKNOWN
    assert cause_by_consumption(70, None) is Cause.UNKNOWN
    assert cause_by_consumption(None, 100) is Cause.UNKNOWN


def hot(policy: Policy, hits: int, accepted: int = 0) -> RecentAttempts:
    recent = RecentAttempts(policy.window)
    for _ in range(accepted):
        recent.note(0.0, throttled=False, first=True)
    for _ in range(hits):
        recent.note(0.0, throttled=True, first=True)
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


@given(shards, st.integers(0, 20), st.integers(0, 500), st.floats(0, 100))
def test_shards_are_added_only_by_all_of_its_rules(
    known: Shards, hits: int, accepted: int, known_for: float
) -> None:
    """The cooldown is over by whichever clock shows more time: both are lower bounds of the age.

    A writer has seen for itself that nothing changed for `known_for` seconds, whereas the wall
    clock's age is too small by as much as the clock of whoever changed the metadata is ahead.
    """
    policy = Policy(threshold=5, cooldown=30, most=32)
    decision = decide(policy, known, hot(policy, hits, accepted), NOW, known_for)
    if decision.action is Action.GROW:
        assert hits >= policy.threshold
        assert known.phase in (Phase.STEADY, Phase.OPENED)
        assert max(known_for, NOW - known.last_updated) >= policy.cooldown
        assert known_for >= known.settle
        assert known.number < decision.number <= min(policy.most, 2 * known.number)
    if decision.action is Action.AT_MAXIMUM:
        assert known.number >= policy.most
    assert decision.reason


@pytest.mark.parametrize(("known_for", "action"), [(29, Action.WAIT), (30, Action.GROW)])
def test_a_clock_that_is_ahead_does_not_hold_growth_up(known_for: float, action: Action) -> None:
    """The metadata was changed by a machine whose clock is an hour ahead of this one's."""
    policy = Policy(threshold=5, cooldown=30)
    known = Shards(2, int(NOW + 3600), ((int(NOW + 3600), 2),), 2, 2)
    assert decide(policy, known, hot(policy, 5), NOW, known_for).action is action


@given(counts, st.floats(1, 1000), st.floats(0, 1000))
def test_growth_is_between_one_more_and_twice_as_many(
    number: int, pressure: float, age: float
) -> None:
    grown = Shards(
        number, int(NOW - age), ((1, max(1, number - 1)), (int(NOW - age), number)), number, 64
    )
    for growth in (OneMore(), Doubling()):
        following = growth.next_count(grown, NOW, pressure)
        assert number < following <= 2 * number


@given(st.integers(2, 64), st.floats(1, 4))
def test_fast_growth_ends_near_to_what_is_needed(number: int, factor: float) -> None:
    """Writes are refused by the shards in the proportion that they are too few."""
    needed = math.ceil(number * factor)
    shards, at = Shards.registered(NOW, 5.0, None), NOW
    while shards.number < needed:
        at += 15
        pressure = max(1.0, needed / shards.number)
        following = Doubling().next_count(shards, at, pressure)
        grown = shards.grown(following, at)
        shards = grown.advanced(at + 5).advanced(at + 10)
    assert shards.number <= needed + 1


def test_retries_do_not_make_a_key_look_hotter() -> None:
    recent = RecentAttempts(10)
    recent.note(0, throttled=True, first=True)
    for _ in range(50):
        recent.note(1, throttled=True, first=False)
    recent.note(1, throttled=False, first=True)
    assert recent.pressure == 1.2, "two attempts, and four that are supposed"
    assert len(recent.throttles) == 51
    recent.note(30, throttled=False, first=True)
    assert not recent.throttles
    assert recent.pressure == 1


@given(counts, st.dictionaries(st.integers(0, 100), st.floats(0, 4e7)), st.floats(0, 100))
def test_fewer_shards_are_proposed_only_for_a_quiet_key_and_with_headroom(
    number: int, ago: dict[int, float], hours: float
) -> None:
    updated = int(NOW - hours * 3600)
    known = Shards(number, updated, ((updated, number),), number, number)
    traffic = {int(NOW // 3600) - hour: units for hour, units in ago.items()}
    policy = Shrinking(quiet_hours=24, headroom=5)
    proposal = shrunk_count(policy, known, traffic, NOW)
    if proposal is not None:
        assert 1 <= proposal.number < number
        assert hours * 3600 >= 24 * 3600 - 1
        busiest = max((units for hour, units in ago.items() if hour <= 24), default=0)
        assert busiest / 3600 * 5 <= proposal.number * 1000


def test_a_key_that_is_being_changed_is_left_alone() -> None:
    quiet = Shards.registered(0, 5.0, None, 8)
    assert shrunk_count(Shrinking(), quiet, {}, NOW) is not None
    assert shrunk_count(Shrinking(), quiet.shrunk(4, 1.0), {}, NOW) is None


@pytest.mark.parametrize("wrong", [{"most": 0}, {"most": 1001}, {"threshold": 0}, {"window": -1}])
def test_a_policy_that_cannot_be_is_refused(wrong: dict) -> None:
    with pytest.raises(ValueError, match=r"shards|threshold"):
        Policy(**wrong)
