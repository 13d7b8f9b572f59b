"""Run the real code of sharded tables under random schedules, which a seed reproduces."""

import pytest

from testing.marks import prove, prove_long
from testing.sharding_simulator.linearizable import (
    Operation,
    add,
    delete,
    is_linearizable,
    put,
    read,
)
from testing.sharding_simulator.mutants import MUTANTS, mutated
from testing.sharding_simulator.run import run

RUNS, RUNS_OF_PROVE = 1_000, 200
AT_ONCE = 100
FOUND_BY = {
    "a get looks once": 741,
    "nothing is claimed": 192,
    "claims end too early": 62,
    "a late success is believed, wherever it lies": 44,
    "wall clocks are compared": 41,
}
"""Seeds that find a mutant. They are tried first, because most others do not find it."""


@pytest.mark.parametrize(
    "seeds",
    [
        range(10),
        *(prove(range(at, at + AT_ONCE)) for at in range(0, RUNS_OF_PROVE, AT_ONCE)),
        *(prove_long(range(at, at + AT_ONCE)) for at in range(RUNS_OF_PROVE, RUNS, AT_ONCE)),
    ],
    ids=lambda seeds: f"{seeds.start}-{seeds.stop - 1}",
)
def test_no_schedule_breaks_a_promise(seeds: range) -> None:
    """There are late answers and effects, wrong clocks, forks, killed processes and changes."""
    operations = []
    for seed in seeds:
        outcome = run(seed)
        operations.append(outcome.operations)
        assert not outcome.wrong, f"seed {seed}: " + "\n".join(outcome.wrong)
    assert min(operations) > 20, f"seed {seeds[operations.index(min(operations))]} did nothing"
    assert sum(operations) > 100 * len(operations)


@pytest.mark.prove
@pytest.mark.parametrize("name", MUTANTS)
def test_each_mutant_is_found(name: str) -> None:
    with mutated(name):
        assert any(run(seed).wrong for seed in (FOUND_BY.get(name, 0), *range(RUNS)))


def test_a_seed_reproduces_its_run() -> None:
    assert run(7) == run(7)


def operation(began: int, ended: int, effect: object, **result: object) -> Operation:
    return Operation("", effect, began, ended, result, is_certain=True)


@pytest.mark.parametrize(
    ("holds", "operations"),
    [
        (True, [operation(1, 2, put("a")), operation(3, 4, read, content=("a", 0))]),
        (False, [operation(1, 2, put("a")), operation(3, 4, read, content=None)]),
        (True, [operation(1, 4, put("a")), operation(2, 3, read, content=None)]),
        (False, [operation(1, 2, add(), count=1), operation(1, 2, add(), count=1)]),
        (True, [operation(1, 2, add(), count=2), operation(1, 2, add(), count=1)]),
        # Unknown if it took effect: at most once, and not before it began.
        (True, [Operation("", put("a"), 1), operation(8, 9, read, content=("a", 0))]),
        (True, [Operation("", put("a"), 1), operation(8, 9, read, content=None)]),
        (False, [Operation("", add(), 3), operation(1, 2, read, content=(None, 1))]),
        (False, [Operation("", add(), 1), operation(8, 9, read, content=(None, 2))]),
        # If it took effect, then before its end.
        (
            False,
            [
                Operation("", delete, 3, 4),
                operation(1, 2, put("a")),
                operation(5, 6, read, content=("a", 0)),
                operation(7, 8, read, content=None),
            ],
        ),
    ],
)
def test_the_check_of_linearizability(holds: bool, operations: list[Operation]) -> None:
    assert is_linearizable(operations) == holds
