"""Check the keeper's promise over all interleavings of small scenarios, and random larger ones."""

import random

import pytest
from keyhop.key_index.protocol import Call, shown_by

from testing.key_index_explorer import WALKED, Rules, World
from testing.marks import prove, prove_long

PROTOCOL = Rules()
NOBODY_WITHDRAWS = Rules(withdraws=False)
CHANGES_ARE_FILTERED_OUT = Rules(passes_changes=False)
NOBODY_LOOKS_AFTER_A_PUT = Rules(own_inserts=False)
NOBODY_LOOKS_AFTER_A_DELETE = Rules(own_deletes=False)
THE_KEEPER_ITSELF_LOOKS = Rules(own_inserts=False, own_deletes=False, looks_again=True)

WALKER = (WALKED, Call.PUT, True)
"""A walker that has read an item and no sentinel, and will now put the sentinel."""


def world(
    writers: str,
    items: str = "",
    before: str = "",
    keepers: int = 2,
    walkers: int = 0,
    crashes: int = 1,
    copies: int = 0,
) -> World:
    """Return a world whose writers are separated by |; each has one operation after the other.

    A collection with items has its sentinel, unless walkers are about to put it.
    """
    return World(
        tuple(tuple(operations.split()) for operations in writers.split("|")),
        (WALKER,) * walkers + (None,) * (keepers - walkers),
        frozenset(items),
        sentinel=bool(items) and not walkers,
        before=frozenset(before),
        crashes=crashes,
        copies=copies,
    )


SCENARIOS = {
    "an item comes and goes": world("+a -a", crashes=2, copies=1),
    "one goes while another comes": world("-a | +b", "a", copies=1),
    "two come and go at the same time": world("+a -a | +b -b"),
    "three keepers": world("+a -a | +b", keepers=3, copies=1),
    "one comes, goes and comes again": world("+a -a +a", keepers=3),
    "a user deletes the sentinel": world("-! | +b -a", "a"),
    "a user deletes it again and again": world("-! -! | -a", "a"),
    "items sort before the sentinel": world("+a +b -a | -b", before="ab", copies=1),
    "a walk puts a sentinel for an item that is gone": world(
        "-a | +b -b", "a", walkers=1, copies=1
    ),
    "two walks at once": world("-a +b", "a", keepers=3, walkers=2),
    "two before it, and a user deletes it": world("-! | -a -b", "ab", before="ab"),
    "a user's item is put over the sentinel": world("+! | +b -a", "a", copies=1),
    "the marker of a sentinel is removed": world("~! | -a", "a", crashes=2, copies=1),
    "the first item of a collection is in the sentinel's place": world("+! | +a", copies=1),
    "an item comes to the place and goes again": world("+! -! | +a", "b"),
    "an item comes to the place while two sort before it": world("+! | -a", "ab", before="ab"),
}


@pytest.mark.parametrize("scenario", SCENARIOS)
def test_in_the_end_exactly_the_collections_with_items_have_a_sentinel(scenario: str) -> None:
    worlds, wrong = PROTOCOL.explore(SCENARIOS[scenario])
    assert worlds > 100, "nothing was interleaved"
    assert wrong == []


@pytest.mark.parametrize(
    ("mutant", "scenario"),
    [
        (NOBODY_WITHDRAWS, "a user's item is put over the sentinel"),
        (NOBODY_WITHDRAWS, "the first item of a collection is in the sentinel's place"),
        (CHANGES_ARE_FILTERED_OUT, "a user's item is put over the sentinel"),
        (CHANGES_ARE_FILTERED_OUT, "the marker of a sentinel is removed"),
    ],
)
def test_without_withdrawals_an_incomplete_index_is_trusted(mutant: Rules, scenario: str) -> None:
    _, wrong = mutant.explore(SCENARIOS[scenario])
    assert wrong
    assert all(end.occupied and end.trusted for end in wrong)


def test_an_additional_look_by_the_keeper_does_no_harm() -> None:
    for scenario in ("an item comes and goes", "a user deletes the sentinel"):
        assert Rules(looks_again=True).explore(SCENARIOS[scenario])[1] == []


def test_without_a_look_after_a_put_a_sentinel_is_left_behind() -> None:
    _, wrong = NOBODY_LOOKS_AFTER_A_PUT.explore(SCENARIOS["an item comes and goes"])
    assert wrong
    assert all(end.sentinel and not end.items for end in wrong)


def test_without_a_look_after_a_delete_a_sentinel_is_missing() -> None:
    _, wrong = NOBODY_LOOKS_AFTER_A_DELETE.explore(SCENARIOS["one goes while another comes"])
    assert wrong
    assert any(end.items and not end.sentinel for end in wrong)


def test_a_second_look_by_the_keeper_itself_is_lost_in_a_crash() -> None:
    """The record is delivered again, but the sentinel that it has put hides the problem."""
    _, wrong = THE_KEEPER_ITSELF_LOOKS.explore(SCENARIOS["an item comes and goes"])
    assert wrong
    without_crashes = SCENARIOS["an item comes and goes"].without_crashes()
    assert THE_KEEPER_ITSELF_LOOKS.explore(without_crashes)[1] == []


def random_world(chance: random.Random) -> World:
    names = "abcde"
    writers = tuple(
        tuple(
            f"{chance.choice('+-')}{chance.choice(names)}"
            if chance.random() < 0.9
            else chance.choice(("-!", "+!", "~!"))
            for _ in range(chance.randint(1, 8))
        )
        for _ in range(chance.randint(1, 4))
    )
    items = frozenset(name for name in names if chance.random() < 0.3)
    before = frozenset(name for name in names if chance.random() < 0.3)
    keepers = (None,) * chance.randint(1, 4)
    return World(writers, keepers, items, bool(items), before=before, crashes=4, copies=4)


@pytest.mark.parametrize("histories", [500, prove(6_000), prove_long(20_000)])
@pytest.mark.timeout(900)
def test_random_histories_of_more_items_writers_and_keepers_end_right(histories: int) -> None:
    for seed in range(histories):
        chance = random.Random(seed)
        assert PROTOCOL.wander(random_world(chance), chance).is_right, f"seed {seed}"


@pytest.mark.parametrize(
    ("first_two", "items", "sentinel"),
    [
        ([], False, False),
        ([True], False, True),
        ([False], True, False),
        ([True, False], True, True),
        ([False, True], True, True),
        ([False, False], True, None),
    ],
)
def test_a_look_shows_the_state(first_two: list[bool], items: bool, sentinel: bool | None) -> None:
    assert shown_by(first_two) == (items, sentinel)
