"""What a stream record tells of one write."""

import pytest
from keyhop.report.sources.traffic import Transitions, changed, counted, write_units

from tests.unit.report.sources.streams import record

AT = 1_795_338_000.0
KIB = 1024


def sized(letters: int) -> dict[str, dict[str, str]]:
    return {"body": {"S": "x" * letters}}


@pytest.mark.parametrize(
    ("told", "units"),
    [
        (record(AT, "a"), 1),
        (record(AT, "a", new=sized(10)), 1),
        (record(AT, "a", new=sized(2 * KIB)), 3),
        (record(AT, "a", event="MODIFY", new=sized(10), old=sized(5 * KIB)), 6),
        (record(AT, "a", event="REMOVE", old=sized(2 * KIB)), 3),
    ],
)
def test_write_units_are_those_of_the_larger_image_and_one_at_least(told: dict, units: float):
    assert write_units(told) == units


def test_what_ttl_deletes_costs_nothing_and_what_users_delete_does():
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
def test_a_counters_write_changes_numbers_and_moments_alone(old: dict, new: dict, names: list[str]):
    assert counted(old, new, changed(old, new)) == names


def went(transitions: Transitions, before: str, after: str, times: int = 1) -> None:
    old, new = {"status": {"S": before}}, {"status": {"S": after}}
    for _ in range(times):
        transitions.take(old, new, ["status"])


def test_rare_ways_back_are_counted():
    transitions = Transitions()
    went(transitions, "new", "paid", 100)
    went(transitions, "paid", "sent", 100)
    went(transitions, "sent", "paid", 3)
    assert transitions.reversals() == {"status": (203, 3)}


@pytest.mark.parametrize(("back", "counted"), [(25, 25), (26, 0)])
def test_a_way_back_may_leave_out_steps_and_is_rare_against_each_of_them(back: int, counted: int):
    transitions = Transitions()
    went(transitions, "new", "paid", 100)
    went(transitions, "paid", "sent", 120)
    went(transitions, "sent", "new", back)
    assert transitions.reversals() == {"status": (220 + back, counted)}


def test_a_cycle_with_a_rare_step_has_no_way_back():
    transitions = Transitions()
    went(transitions, "running", "done", 100)
    went(transitions, "running", "failed", 5)
    went(transitions, "failed", "running", 5)
    assert transitions.reversals() == {"status": (110, 0)}


def test_a_switch_that_goes_both_ways_has_none():
    transitions = Transitions()
    went(transitions, "on", "off", 100)
    went(transitions, "off", "on", 90)
    assert transitions.reversals() == {"status": (190, 0)}


def test_free_texts_are_no_status():
    transitions = Transitions()
    for count in range(30):
        went(transitions, f"text {count}", f"text {count + 1}")
    went(transitions, "text 1", "text 0")
    assert transitions.reversals() == {}
    long = Transitions()
    went(long, "x" * 50, "y")
    assert long.reversals() == {}
