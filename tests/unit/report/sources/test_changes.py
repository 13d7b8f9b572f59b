"""Tests of what a stream record shows about one write."""

import pytest
from keyhop.report.sources.traffic import Transitions, changed, counted, write_units

from tests.unit.report.sources.streams import record

AT = 1_795_338_000.0
KIB = 1024


def sized(letters: int) -> dict[str, dict[str, str]]:
    return {"body": {"S": "x" * letters}}


@pytest.mark.parametrize(
    ("change", "units"),
    [
        (record(AT, "a"), 1),
        (record(AT, "a", new=sized(10)), 1),
        (record(AT, "a", new=sized(2 * KIB)), 3),
        (record(AT, "a", event="MODIFY", new=sized(10), old=sized(5 * KIB)), 6),
        (record(AT, "a", event="REMOVE", old=sized(2 * KIB)), 3),
    ],
)
def test_write_units_are_those_of_the_larger_image_and_at_least_one(change: dict, units: float):
    assert write_units(change) == units


def test_deletions_by_ttl_cost_nothing_and_those_by_users_cost_units():
    ttl = {"Type": "Service", "PrincipalId": "dynamodb.amazonaws.com"}
    assert write_units(record(AT, "a", event="REMOVE", old=sized(9), userIdentity=ttl)) == 0
    assert write_units(record(AT, "a", event="REMOVE", old=sized(9))) == 1


def number(value: str) -> dict[str, str]:
    return {"N": value}


@pytest.mark.parametrize(
    ("old", "new", "names"),
    [
        ({"hits": number("1")}, {"hits": number("2")}, ["hits"]),
        ({"hits": number("1.0")}, {"hits": number("1")}, []),
        (
            {"hits": number("1"), "at": {"S": "2026-11-22T09:00Z"}},
            {"hits": number("2"), "at": {"S": "2026-11-22T09:01Z"}},
            ["hits"],
        ),
        (
            {"hits": number("1"), "at": number("1795338000")},
            {"hits": number("2"), "at": number("1795338001")},
            ["hits"],
        ),
        ({"seen": number("1795338000")}, {"seen": number("1795338001")}, []),
        ({"b": number("1"), "a": number("1")}, {"b": number("2"), "a": number("2")}, ["a", "b"]),
        ({"a": number("1"), "b": {"S": "x"}}, {"a": number("2"), "b": {"S": "y"}}, []),
        ({"status": {"S": "new"}}, {"status": {"S": "paid"}}, []),
        ({}, {"hits": number("1")}, []),
    ],
)
def test_a_write_to_a_counter_changes_only_numbers_and_times(
    old: dict, new: dict, names: list[str]
):
    assert counted(old, new, changed(old, new)) == names


def take(transitions: Transitions, before: str, after: str, times: int = 1) -> None:
    old, new = {"status": {"S": before}}, {"status": {"S": after}}
    for _ in range(times):
        transitions.take(old, new, ["status"])


def test_rare_reversals_are_counted():
    transitions = Transitions()
    take(transitions, "new", "paid", 100)
    take(transitions, "paid", "sent", 100)
    take(transitions, "sent", "paid", 3)
    assert transitions.reversals() == {"status": (203, 3)}


@pytest.mark.parametrize(("back", "counted"), [(25, 25), (26, 0)])
def test_a_reversal_may_skip_steps_and_is_rare_compared_with_each_of_them(back: int, counted: int):
    transitions = Transitions()
    take(transitions, "new", "paid", 100)
    take(transitions, "paid", "sent", 120)
    take(transitions, "sent", "new", back)
    assert transitions.reversals() == {"status": (220 + back, counted)}


def test_a_cycle_with_a_rare_step_has_no_reversals():
    transitions = Transitions()
    take(transitions, "running", "done", 100)
    take(transitions, "running", "failed", 5)
    take(transitions, "failed", "running", 5)
    assert transitions.reversals() == {"status": (110, 0)}


def test_a_switch_that_goes_both_ways_has_no_reversals():
    transitions = Transitions()
    take(transitions, "on", "off", 100)
    take(transitions, "off", "on", 90)
    assert transitions.reversals() == {"status": (190, 0)}


def test_free_text_is_not_a_status():
    transitions = Transitions()
    for count in range(30):
        take(transitions, f"text {count}", f"text {count + 1}")
    take(transitions, "text 1", "text 0")
    assert transitions.reversals() == {}
    transitions = Transitions()
    take(transitions, "x" * 50, "y")
    assert transitions.reversals() == {}
