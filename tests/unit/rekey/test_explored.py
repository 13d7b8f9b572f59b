"""Every interleaving of the protocol, and mutants of its parts (testing/rekey_explorer.py)."""

from dataclasses import replace

import pytest

from testing.marks import prove
from testing.rekey_explored import Known, Scenario
from testing.rekey_mutants import MUTANTS, RIGHT, TWICE, StaleLooks, but
from testing.rekey_scenarios import FAMILIES, ONE, explore, scripts

SHARES = {"live": 101, "swept": 101, "filled": 257, "repaired": 29, "shared": 83}
"""`make test` explores one scenario in this many, and those of RIGHT for the family `turned`."""

LEAST_WORLDS = 20_000_000


@pytest.mark.parametrize("family", SHARES)
def test_a_share_of_all_histories_ends_well(family: str) -> None:
    assert explore(family, SHARES[family]) > 0


@pytest.mark.prove
@pytest.mark.timeout(1800)
def test_a_fortieth_of_all_histories_ends_well() -> None:
    worlds = {family: explore(family, 41) for family in FAMILIES}
    print(f"\n{sum(worlds.values()):,} worlds: {worlds}")
    assert sum(worlds.values()) >= LEAST_WORLDS / 40


@pytest.mark.prove_long
@pytest.mark.timeout(4 * 3600)
def test_all_histories_end_well() -> None:
    """This takes ten minutes of one core and half a gigabyte."""
    worlds = {family: explore(family) for family in FAMILIES}
    print(f"\n{sum(worlds.values()):,} worlds: {worlds}")
    assert sum(worlds.values()) >= LEAST_WORLDS


@pytest.mark.prove
@pytest.mark.parametrize("mutant", MUTANTS)
def test_each_part_is_needed(mutant: str) -> None:
    assert MUTANTS[mutant]()[1] is not None


@pytest.mark.prove
@pytest.mark.parametrize("scenario", RIGHT)
def test_with_all_parts_the_same_histories_end_well(scenario: str) -> None:
    assert RIGHT[scenario]()[1] is None


@pytest.mark.parametrize("length", [2, prove(3)])
def test_the_next_read_corrects_a_stale_read(length: int) -> None:
    """A read that differs from the written item causes another write and another read."""
    known = Known()
    for script in scripts(length):
        scenario = Scenario(script, before=ONE, crashes=1)
        assert StaleLooks(scenario, known=known).explore()[1] is None


def test_a_stale_read_that_agrees_is_not_detected() -> None:
    """A further read after a difference would not make assumption A1 unnecessary either."""
    assert but(StaleLooks, agreeing=True)(replace(TWICE, crashes=1)).explore()[1] is not None
