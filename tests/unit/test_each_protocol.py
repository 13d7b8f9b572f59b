"""Check the promises of a put over all interleavings of users, crashes, lost answers and twins."""

from dataclasses import replace

import pytest
from keyhop.each.outcomes import GONE, GUARDED, PUT, THERE
from keyhop.each.protocol import FOUND, Answer, Call
from keyhop.each.protocol import Rules as ProtocolRules

from testing.each_explorer import (
    EQUAL,
    OTHER,
    OURS,
    Rules,
    World,
    is_alone,
    is_miscounted,
    is_robbed,
)
from testing.marks import prove

GUARDS = {
    "none": Rules(ProtocolRules("none", telling=True)),
    "look": Rules(ProtocolRules("look", telling=True)),
    "transaction": Rules(ProtocolRules("transaction", telling=True)),
}

USERS = {
    "one deletes the collection": (("-a",),),
    "one deletes it and writes another": (("-a", "+b"),),
    "one deletes it and another writes": (("-a",), ("+b",)),
    "one writes and deletes, another deletes": (("+b", "-b"), ("-a",)),
    "one changes our item, another deletes": (("~",), ("-a",)),
    "one deletes our item, another the rest": (("-",), ("-a",)),
    "one puts an item there": (("+",), ("-a",)),
    "one puts an item there and deletes it": (("+", "-"), ("-a", "+b")),
}
MORE_USERS = {
    "each comes and goes": (("-a", "+b", "-b"), ("+c", "-c")),
    "all three ways at our place": (("+", "~", "-"), ("-a", "+b", "-b")),
    "two empty and refill": (("-a", "+a", "-a"), ("+b", "-b", "+b")),
    "three users": (("-a",), ("+b", "-b"), ("~", "-")),
}


def scenarios():
    for users in USERS:
        yield pytest.param(USERS[users], 1, id=users)
    for users in (*USERS, *MORE_USERS):
        scripts = {**USERS, **MORE_USERS}[users]
        yield pytest.param(scripts, 2, id=f"{users}, two crashes", marks=pytest.mark.prove)


def world(users, **more) -> World:
    return World(users, **more)


@pytest.mark.parametrize("guard", GUARDS)
@pytest.mark.parametrize(("users", "crashes"), list(scenarios()))
def test_counted_items_exist_after_crashes_and_lost_answers(users, crashes, guard) -> None:
    rules = GUARDS[guard]
    for place in (None, OTHER):
        for sentinel in (False, True):
            start = world(
                users, place=place, sentinel=sentinel, crashes=crashes, losses=1, more=1 + crashes
            )
            worlds, ends = rules.explore(start)
            assert worlds > 20, "nothing was interleaved"
            assert ends
            for end in ends:
                assert not end.harm, end
                assert not is_miscounted(end), end
                assert not is_robbed(end), end
                if guard != "none":
                    assert not is_alone(end), end


def test_each_outcome_is_reached() -> None:
    users = (("-a", "+b"), ("-b",))
    outcomes = {
        guard: {end.result for end in rules.explore(world(users, crashes=1, more=2))[1]}
        for guard, rules in GUARDS.items()
    }
    assert outcomes == {"none": {PUT}, "look": {PUT, GUARDED}, "transaction": {PUT, GONE}}


def test_without_a_guard_an_item_may_stand_alone() -> None:
    assert any(map(is_alone, GUARDS["none"].explore(world((("-a",),)))[1]))


@pytest.mark.parametrize("guard", ["look", "transaction"])
@pytest.mark.parametrize(
    "users", [*USERS.values(), *(prove(users) for users in MORE_USERS.values())], ids=str
)
def test_late_twins_leave_no_item_alone(users, guard) -> None:
    """This holds while no twin is killed. A twin treats all items as users' items."""
    for place in (None, OTHER):
        _, ends = GUARDS[guard].explore(world(users, place=place, more=2, twins=True))
        for end in ends:
            assert not end.harm
            assert not is_alone(end), end


ADDING = [(("+b",), ("~",)), (("+b", "+c"),), (("~",), ("~",))]


@pytest.mark.parametrize("guard", GUARDS)
@pytest.mark.parametrize("users", ADDING, ids=str)
def test_twins_count_correctly_if_nobody_deletes(users, guard) -> None:
    for place in (None, OTHER):
        start = world(users, place=place, more=2, twins=True, crashes=1, losses=1)
        for end in GUARDS[guard].explore(start)[1]:
            assert not is_miscounted(end), end
            assert end.result == (PUT if place is None else THERE) or end.place == OTHER


@pytest.mark.parametrize("guard", GUARDS)
def test_an_equal_item_counts_as_the_users_on_a_first_attempt(guard) -> None:
    rules = Rules(ProtocolRules(guard))
    _, ends = rules.explore(world((("-a",),), place=EQUAL))
    assert {end.result for end in ends} == {THERE}


@pytest.mark.parametrize("guard", GUARDS)
def test_a_users_equal_item_is_never_taken_back(guard) -> None:
    """The run may count it as its item after a crash, but never deletes it."""
    rules = Rules(ProtocolRules(guard))
    _, ends = rules.explore(world((("-a",), ("+b",)), place=EQUAL, crashes=2, losses=1, more=3))
    for end in ends:
        assert not end.harm
        assert end.place == EQUAL
    assert {end.result for end in ends} == {THERE, FOUND}


def test_an_item_that_does_not_name_its_run_may_stand_alone_after_a_crash() -> None:
    rules = Rules(ProtocolRules("look"))
    _, ends = rules.explore(world((("-a",),), crashes=1, more=2))
    alone = [end for end in ends if is_alone(end)]
    assert {end.result for end in alone} == {FOUND}
    _, ends = rules.explore(world((("-a",),)))
    assert not any(map(is_alone, ends))


def test_overwriting_needs_an_item_and_leaves_ours() -> None:
    rules = Rules(ProtocolRules("transaction", overwrite=True, telling=True))
    for users in USERS.values():
        for place in (None, OTHER):
            start = world(users, place=place, crashes=1, more=2, losses=1)
            for end in rules.explore(start)[1]:
                assert end.result in (PUT, GONE)
                assert not is_alone(end), end
                assert not is_miscounted(end), end
                assert not is_robbed(end), end


# Mutants: each lacks one part of a course.


def never_looks(rules):
    answer = yield Call.PUT
    return THERE if answer is not Answer.FREE else PUT


def looks_once(rules):
    """Assume that nobody writes between the look and the delete of the item."""
    answer = yield Call.PUT
    if answer is Answer.OTHER:
        return THERE
    if answer is Answer.EQUAL and (yield Call.ASK) is Answer.FREE:
        return THERE
    if (yield Call.LOOK) is Answer.WITNESS or (yield Call.TAKE_BACK) is Answer.OTHER:
        return PUT
    return GUARDED


def never_asks(rules):
    """Count an equal item as the run's."""
    answer = yield Call.PUT
    return PUT if answer is not Answer.OTHER else THERE


def asks_before(rules):
    """Ask for attempts in flight before the put, and not after it found an equal item."""
    earlier_attempt = yield Call.ASK
    answer = yield Call.PUT
    if answer is Answer.OTHER or (answer is Answer.EQUAL and earlier_attempt is Answer.FREE):
        return THERE
    return PUT


def forgets_earlier_attempts(rules):
    """Count an equal item as a user's."""
    answer = yield Call.PUT
    if answer is not Answer.FREE:
        return THERE
    return PUT


def trusts_an_earlier_look(rules):
    """Do not look on behalf of an attempt that was killed."""
    answer = yield Call.PUT
    if answer is Answer.EQUAL:
        return PUT if (yield Call.ASK) is Answer.EQUAL else THERE
    if answer is Answer.OTHER:
        return THERE
    if (yield Call.LOOK) is Answer.WITNESS:
        return PUT
    yield Call.TAKE_BACK
    return GUARDED if (yield Call.LOOK) is Answer.FREE else PUT


def gives_up_without_its_first_witness(rules):
    if (yield Call.LOOK) is not Answer.WITNESS:
        return GONE
    return GONE if (yield Call.CHECKED_PUT) is Answer.LOST else PUT


def looks_first(rules):
    """Look before the put, and not after it."""
    if (yield Call.LOOK) is not Answer.WITNESS:
        return GONE
    answer = yield Call.PUT
    return PUT if answer is not Answer.OTHER else THERE


LOOK, TRANSACTION = GUARDS["look"], GUARDS["transaction"]
DELETED = world((("-a",),))
REFILLED = world((("-a", "+b"),))
MUTANTS = {
    "no look": (replace(LOOK, course=never_looks), DELETED, is_alone),
    "a look before, and not after": (replace(LOOK, course=looks_first), DELETED, is_alone),
    "no second look after the delete": (replace(LOOK, course=looks_once), REFILLED, is_robbed),
    "unconditional delete": (
        replace(LOOK, unconditional=True, known={}),
        world((("-a",), ("~",))),
        lambda end: bool(end.harm),
    ),
    "a sentinel as witness": (
        replace(LOOK, sees_sentinels=True),
        replace(DELETED, sentinel=True),
        is_alone,
    ),
    "a sentinel as witness of a transaction": (
        replace(TRANSACTION, sees_sentinels=True),
        replace(DELETED, sentinel=True),
        is_alone,
    ),
    "our own item as witness": (replace(LOOK, sees_itself=True), DELETED, is_alone),
    "equal counted without asking": (
        Rules(ProtocolRules("none"), course=never_asks),
        world((), place=EQUAL),
        lambda end: end.result == PUT,
    ),
    "asking before the put": (
        Rules(ProtocolRules("none", telling=True), course=asks_before),
        world((), more=2, twins=True),
        is_miscounted,
    ),
    "an earlier attempt's item as a user's": (
        Rules(ProtocolRules("none", telling=True), course=forgets_earlier_attempts),
        world((), more=2, crashes=1, losses=1),
        is_miscounted,
    ),
    "no look in a killed attempt's place": (
        replace(LOOK, course=trusts_an_earlier_look),
        world((("-a",),), crashes=1, more=2),
        is_alone,
    ),
    "one witness only": (
        replace(TRANSACTION, course=gives_up_without_its_first_witness),
        world((("-a",), ("+b",))),
        is_robbed,
    ),
    "an item taken back that does not tell": (
        Rules(
            ProtocolRules("look"),
            course=lambda rules: LOOK.given.course(replace(rules, telling=True)),
        ),
        world((("-a",),), place=EQUAL, crashes=1, more=2),
        lambda end: bool(end.harm),
    ),
}


@pytest.mark.prove
@pytest.mark.parametrize("mutant", MUTANTS)
def test_each_part_of_the_protocol_is_needed(mutant) -> None:
    rules, start, goes_wrong = MUTANTS[mutant]
    rules = replace(rules, known={})
    assert any(map(goes_wrong, rules.explore(start)[1])), "nothing goes wrong without it"


def test_a_twin_that_is_killed_may_leave_an_item_alone() -> None:
    """The docstring of the protocol says so. A twin of a transaction never does."""
    users = (("-a",),)
    start = world(users, more=2, twins=True, crashes=1)
    assert any(map(is_alone, LOOK.explore(start)[1]))
    assert not any(map(is_alone, TRANSACTION.explore(start)[1]))
    assert OURS in {end.place for end in LOOK.explore(start)[1]}
