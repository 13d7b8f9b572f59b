"""Check the protocol's three promises over all interleavings of small scenarios."""

from dataclasses import replace

import pytest
from keyhop.sharding.key.placement import Placement
from keyhop.sharding.key.protocol import (
    SHARED,
    ByClaim,
    Claim,
    Create,
    Hold,
    Move,
    after_settling,
    home,
    lasts,
    step_by_claim,
    step_of_put,
)
from keyhop.sharding.key.shards import Phase, Shards

from testing.sharding_explorer import NOTHING, Mover, Reader, Rules, State, World, Writer, path_of

CALCULATED = Placement(calculated=True)
RANDOM = Placement(calculated=False)
LOG = Placement(calculated=False, append_only=True)


def step(shards: Shards) -> Shards:
    return shards.advanced(0.0)


def settle(shards: Shards) -> Shards:
    return after_settling(shards)


def end(shards: Shards) -> Shards:
    return replace(shards, phase=Phase.OPENED).advanced(0.0)


def call_off(shards: Shards) -> Shards:
    return shards.reopened(0.0)


ONE = Shards.registered(0.0, 5.0, None)
TWO = replace(ONE, number=2, writable=2, readable=2, placed_by=frozenset({1, 2}))
THREE = Shards.registered(0.0, 5.0, None, 3)
THREE = replace(THREE, placed_by=frozenset({1, 2, 3}))

GROWTH = path_of(ONE, lambda s: s.grown(2, 0.0), step, step)
OF_TWO = path_of(TWO, lambda s: s.grown(3, 0.0), step, step)
TWICE = path_of(ONE, lambda s: s.grown(2, 0.0), step, lambda s: s.grown(3, 0.0), step, step)
SETTLED = path_of(ONE, lambda s: s.grown(2, 0.0), step, settle, end)
SETTLED_TWICE = path_of(
    *(ONE, lambda s: s.grown(2, 0.0), step, settle),
    *(lambda s: s.grown(3, 0.0), step, settle, end),
)
ENDED = path_of(ONE, lambda s: s.grown(2, 0.0), step, step, lambda s: s.grown(3, 0.0), step, step)
ENDED_SETTLED = path_of(
    *(ONE, lambda s: s.grown(2, 0.0), step, settle, end, lambda s: s.grown(3, 0.0), step, step),
)
"""The next growth begins as soon as this one ends, while some callers still use its last phase."""
DRAIN = path_of(TWO, lambda s: s.shrunk(1, 0.0), step, step, step, step)
TO_TWO = path_of(THREE, lambda s: s.shrunk(2, 0.0), step, step, step, step)
DRAIN_AND_GROWTH = (*DRAIN, *path_of(DRAIN[-1], lambda s: s.grown(2, 0.0), step, step)[1:])
AGAIN = path_of(
    *(ONE, lambda s: s.grown(2, 0.0), step, step),
    *(lambda s: s.shrunk(1, 0.0), step, step, step, step),
    *(lambda s: s.grown(2, 0.0), step, step),
)
CALLED_OFF = path_of(TWO, lambda s: s.shrunk(1, 0.0), step, step, call_off, step, step, step, step)
CALLED_OFF_EARLY = path_of(TWO, lambda s: s.shrunk(1, 0.0), step, call_off, step, step, step)
NEVER_BEGUN = path_of(TWO, lambda s: s.shrunk(1, 0.0), call_off)

AT = {
    "stays": {1: 1, 2: 1, 3: 1},
    "moves to the second": {1: 1, 2: 2, 3: 2},
    "moves twice": {1: 1, 2: 2, 3: 3},
    "modulo": {1: 1, 2: 2, 3: 1},
}


def item_at(shard: int, *scripts: str, readers=1, movers=0, shards=3, gets=False) -> World:
    """Return a world with an item. Each script is a writer with one operation after the other."""
    copies = tuple((("a",), 0) if s == shard else None for s in range(1, shards + 1))
    return World(
        State(copies, ("a",) if shard else NOTHING),
        tuple(Writer((*s.split(", "),), name=f"writer {n}") for n, s in enumerate(scripts)),
        tuple(Reader(1, gets=gets) for _ in range(readers)),
        tuple(Mover() for _ in range(movers)),
    )


SCENARIOS = {
    "growth, a put moves": (GROWTH, item_at(1, "put b, put c")),
    "growth, new items": (GROWTH, item_at(0, "put b", "put c")),
    "growth, an update and a put": (GROWTH, item_at(1, "update b", "put c")),
    "growth, a delete and an update": (GROWTH, item_at(1, "delete", "update c")),
    "growth, a put and a delete": (GROWTH, item_at(1, "put b", "delete")),
    "growth, deletes": (GROWTH, item_at(1, "put b, delete", "delete")),
    "growth, new and deleted": (GROWTH, item_at(0, "put b", "delete")),
    "growth, new updates": (GROWTH, item_at(0, "update b", "update c")),
    "growth of two": (OF_TWO, item_at(1, "put b", "update c")),
    "growth twice": (TWICE, item_at(0, "put b", "put c")),
    "growth twice, unread": (TWICE, item_at(0, "put b", "put c", readers=0)),
    "growth twice, old items": (TWICE, item_at(1, "put b", "update c")),
    "growth, one new item after the other": (GROWTH, item_at(0, "put b, delete, put c", "put d")),
    "growth, three writers": (GROWTH, item_at(0, "put b", "put c", "put d", readers=0, shards=2)),
    "growth, replaced and new": (GROWTH, item_at(1, "delete, put b", "put c")),
    "growth, a put and an update of what is new": (GROWTH, item_at(0, "put b", "update c, delete")),
    "settled growth, new items": (SETTLED, item_at(0, "put b", "put c")),
    "settled growth, old items": (SETTLED, item_at(1, "put b", "update c")),
    "settled growth twice": (SETTLED_TWICE, item_at(0, "put b", "put c", readers=0)),
    "settled growth twice, old items": (SETTLED_TWICE, item_at(1, "put b", "delete")),
    "growth, ended, growth": (ENDED, item_at(0, "put b", "put c", readers=0)),
    "growth, ended, growth, old items": (ENDED, item_at(1, "put b", "update c")),
    "growth, ended, growth, one after the other": (
        ENDED,
        item_at(0, "put b, delete", "put c", readers=0),
    ),
    "settled growth, ended, growth": (ENDED_SETTLED, item_at(0, "put b", "put c", readers=0)),
    "growth again, after a drain": (
        AGAIN,
        item_at(0, "put b, delete", "put c", readers=0, movers=1, shards=2),
    ),
    "growth of two, a delete": (OF_TWO, item_at(2, "put b, delete")),
    "drain, an update": (DRAIN, item_at(2, "update b, update c", movers=1)),
    "drain, two updates": (DRAIN, item_at(2, "update b", "update c", movers=1)),
    "drain, two movers": (DRAIN, item_at(2, "update b", movers=2, readers=0)),
    "drain, readers only": (DRAIN, item_at(2, movers=1, readers=2)),
    "drain, a put and a delete": (DRAIN, item_at(2, "put b", "delete", movers=1)),
    "drain, new items": (DRAIN, item_at(0, "put b", "put c", movers=1)),
    "drain, an older place": (TO_TWO, item_at(3, "put b", movers=1)),
    "drain, a put of the lowest": (TO_TWO, item_at(1, "put b, put c", movers=1)),
    "drain, growth again": (DRAIN_AND_GROWTH, item_at(2, "put b", movers=1)),
    "drain called off": (CALLED_OFF, item_at(2, "update b, put c", movers=1)),
    "drain called off early": (CALLED_OFF_EARLY, item_at(2, "put b, delete")),
    "drain never begun": (NEVER_BEGUN, item_at(0, "put b", "put c", movers=1)),
}


LOSING = "growth, lost answers"
SCENARIOS |= {
    f"{LOSING}, new items": (GROWTH, item_at(0, "put b", "put c", readers=0)),
    f"{LOSING}, read": (GROWTH, item_at(0, "put b")),
    f"{LOSING}, a delete": (GROWTH, item_at(0, "put b", "delete", readers=0)),
    f"{LOSING}, replaced": (GROWTH, item_at(1, "delete, put b", "put c", readers=0)),
    f"{LOSING}, settled": (SETTLED, item_at(0, "put b", "put c", readers=0)),
}
"""Scenarios of this name may lose the answers to creations by a claim."""

GETS = {
    "growth of two": (OF_TWO, item_at(1, "put b, delete", gets=True)),
    "growth twice, two puts": (TWICE, item_at(1, "put b", "put c", gets=True)),
    "growth, ended, growth": (ENDED, item_at(1, "put b", "put c", gets=True)),
    "settled growth twice": (SETTLED_TWICE, item_at(1, "put b", "put c", gets=True)),
    "growth twice, puts by one": (TWICE, item_at(1, "put b, put c", gets=True)),
    "growth of two, a delete": (OF_TWO, item_at(2, "put b, delete", gets=True)),
    "drain": (DRAIN, item_at(2, "update b", movers=1, gets=True)),
    "drain, an older place": (TO_TWO, item_at(3, "put b", movers=1, gets=True)),
    "drain, growth again": (DRAIN_AND_GROWTH, item_at(2, "put b, put c", movers=1, gets=True)),
    "drain called off": (CALLED_OFF, item_at(2, "update b, put c", movers=1, gets=True)),
}


LOGS = {
    "growth": (GROWTH, item_at(0, "put b", readers=2)),
    "growth of two": (OF_TWO, item_at(0, "put b", readers=2)),
    "growth twice": (TWICE, item_at(0, "put b", readers=2)),
    "drain": (DRAIN, item_at(0, "put b", readers=2, movers=1)),
    "drain called off": (CALLED_OFF, item_at(0, "put b", movers=2)),
    "drain, growth again": (DRAIN_AND_GROWTH, item_at(0, "put b", movers=1)),
}


SLOW = (
    *("growth, ended, growth", "settled growth, ended, growth", "growth twice, unread"),
    *("growth, ended, growth, old items", "growth, one new item after the other"),
    *("growth twice, two puts",),
    *("growth twice", "settled growth twice", "settled growth twice, old items"),
    *("growth again, after a drain", "growth, ended, growth, one after the other"),
)


def cases():
    for scenario, (path, world) in SCENARIOS.items():
        for placement in (CALCULATED, RANDOM):
            title = f"{scenario}: {'calculated' if placement.calculated else 'random'}"
            losing = scenario.startswith(LOSING)
            is_slow = scenario in SLOW or placement is RANDOM
            marks = pytest.mark.prove if is_slow else ()
            yield pytest.param(path, placement, world, losing, id=title, marks=marks)
    for scenario, (path, world) in GETS.items():
        for placement in (CALCULATED, RANDOM):
            title = f"get, {scenario}: {'calculated' if placement.calculated else 'random'}"
            marks = pytest.mark.prove if scenario in SLOW or placement is RANDOM else ()
            yield pytest.param(path, placement, world, False, id=title, marks=marks)
    for scenario, (path, world) in LOGS.items():
        yield pytest.param(path, LOG, world, False, id=f"log, {scenario}")


@pytest.mark.parametrize(("path", "placement", "world", "losing"), list(cases()))
def test_reads_are_complete_copies_single_and_updates_kept(
    path: tuple[Shards, ...], placement: Placement, world: World, losing: bool
) -> None:
    """The places of the item vary; those that a scenario does not use are tried once."""
    explored: list[dict[int, int]] = []
    for places in AT.values():
        at = {shard for shard, copy in enumerate(world.state.copies, 1) if copy}
        if placement.calculated and not at <= {places[count] for count in path[0].placed_by}:
            continue  # no writer has put it there
        if any(before.items() <= places.items() for before in explored):
            continue  # the same worlds
        rules = Rules(path, placement, places, losing=losing)
        worlds, wrong = rules.explore(world)
        assert worlds >= 100, "nothing was interleaved"
        assert wrong == []
        explored.append({count: places[count] for count in rules.consulted})
    assert explored


def unclaimed(shards, placement, place, holders):
    step = step_of_put(shards, placement, place, holders)
    return Create(home(shards, place)) if isinstance(step, ByClaim) else step


def unclaimed_if(phase):
    def claiming(shards, place, claim, *more):
        if shards.phase is phase and claim is None:
            return Create(home(shards, place))
        return step_by_claim(shards, place, claim, *more)

    return claiming


def obstinate(shards, place, claim, *more):
    if shards.phase is Phase.ANNOUNCED and claim is not None:
        return Create(home(shards, place))
    return step_by_claim(shards, place, claim, *more)


def impatient(shards, place, *more):
    step = step_by_claim(shards, place, *more)
    return Create(home(shards, place)) if isinstance(step, Hold) else step


def as_owner(shards, place, claim, owner, maybe_written):
    owner = owner if claim is None or claim.owner == SHARED else claim.owner
    return step_by_claim(shards, place, claim, owner, maybe_written)


def unshared(shards, place, claim, *more):
    step = step_by_claim(shards, place, claim, *more)
    return Create(step.shard) if claim and step == Claim(claim.shard) else step


def careless(shards, place, claim, owner, maybe_written):
    return step_by_claim(shards, place, claim, owner, False)


def moving_on(shards, placement, place, holders):
    target = home(shards, place)
    if shards.phase is Phase.OPENED and len(holders) == 1 and target > holders[0]:
        return Move(holders[0], target)
    return step_of_put(shards, placement, place, holders)


NEW = f"{LOSING}, new items"
AT_ONCE = (*GROWTH[:2], replace(GROWTH[2], phase=Phase.STEADY))
THREE_NEW = "growth, three writers"

WITHOUT = {
    "metadata two phases old": ({"behind": 2}, "growth, new items"),
    "metadata two phases old, reading": ({"behind": 2}, "drain, readers only"),
    "an order of reading": ({"ordered": False}, "drain, an update"),
    "forgetting what newer metadata may have overtaken": (
        {"forgetful": False},
        "drain, an update",
    ),
    "fences": ({"fenced": False}, "drain, two updates"),
    "a check of the other place": ({"checked": False}, "drain, new items"),
    "claims": ({"put": unclaimed}, NEW),
    "claims in the old place": ({"claiming": unclaimed_if(Phase.ANNOUNCED)}, NEW),
    "claims in the new place": ({"claiming": unclaimed_if(Phase.OPENED)}, NEW),
    "following another's claim of the new place": ({"claiming": obstinate}, NEW),
    "waiting for the owner of a claim": ({"claiming": impatient}, NEW),
    "an owner that changes its own claim only": ({"claiming": as_owner}, NEW),
    "an owner that knows when others use its claim": ({"claiming": unshared}, THREE_NEW),
    "knowing that no request may create the item yet": ({"claiming": careless}, NEW),
    "claims until nobody acts on the old place": ({"path": AT_ONCE}, NEW),
    "knowing each change for some time, but the end of a growth": (
        {"ends": lambda before, after: before.counted_at == after.counted_at},
        "growth, ended, growth",
    ),
    "claims for one growth only": (
        {"growth": lambda shards: 0},
        "growth again, after a drain",
    ),
    "no moves while claims count": ({"put": moving_on}, "growth, replaced and new"),
    "a check of the place itself, before it counts as empty": (
        {"targeted": False},
        "drain never begun",
    ),
    "a second look in a drain": ({"looks": 1}, "drain"),
    "a condition on changes in place": ({"conditional": False}, "drain, two updates"),
    "trusting the late answer of a put": ({"repeated": True}, "growth twice, old items"),
    "trusting the late answer of a delete": (
        {"repeated": True},
        "growth, a delete and an update",
    ),
}


@pytest.mark.prove
@pytest.mark.parametrize("left_out", WITHOUT)
def test_each_part_of_the_protocol_is_needed(left_out: str) -> None:
    changes, scenario = WITHOUT[left_out]
    path, world = {**SCENARIOS, **GETS}[scenario]
    losing = scenario.startswith(LOSING)
    rules = Rules(path, CALCULATED, AT["moves twice"], losing=losing)
    rules = replace(rules, **changes)
    assert rules.explore(world)[1], "nothing goes wrong without it"


def test_a_log_needs_readers_that_know_the_shards_before_writers_use_them() -> None:
    path, world = LOGS["growth"]
    at_once = (path[0], path[2], path[3])
    assert Rules(at_once, LOG, AT["moves twice"]).explore(world)[1]


@pytest.mark.parametrize("path", [GROWTH, OF_TWO], ids=["1", "2"])
def test_a_log_may_use_new_shards_once_all_new_readers_know_them(
    path: tuple[Shards, ...],
) -> None:
    """A reader with metadata of two phases ago began before anything was put into them."""
    world = item_at(0, "put b", readers=2)
    worlds, wrong = Rules(path, LOG, AT["moves twice"], eager=True).explore(world)
    assert worlds > 100
    assert wrong == []


def test_other_items_need_all_writers_to_know_the_shards() -> None:
    path, world = SCENARIOS["growth, new items"]
    assert Rules(path, CALCULATED, AT["moves twice"], eager=True).explore(world)[1]


def test_how_long_a_phase_lasts() -> None:
    settle = ONE.settle
    assert [lasts(shards, LOG) for shards in GROWTH] == [0, settle / 2, settle, settle]
    assert [lasts(shards, CALCULATED) for shards in GROWTH] == [0, settle, settle, settle]
    assert {lasts(shards, LOG) for shards in DRAIN} == {settle}


def test_all_phases_lead_to_a_steady_one() -> None:
    assert [shards.phase for shards in GROWTH] == ["steady", "announced", "opened", "steady"]
    assert [s.phase for s in DRAIN] == ["steady", "closing", "fenced", "moving", "moved", "steady"]
    assert [s.phase for s in CALLED_OFF][4:] == [
        *("halted", "reopening", "announced", "opened", "steady")
    ]
    for path in (
        GROWTH,
        TWICE,
        ENDED,
        OF_TWO,
        DRAIN,
        TO_TWO,
        CALLED_OFF,
        CALLED_OFF_EARLY,
        NEVER_BEGUN,
    ):
        last = path[-1]
        assert last.phase is Phase.STEADY
        assert last.number == last.writable == last.readable
        updated = [shards.last_updated for shards in path]
        assert updated == sorted(set(updated)), "each change has its version"
