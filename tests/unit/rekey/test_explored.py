"""Every interleaving, and what each part of the protocol is for (testing/rekey_explorer.py)."""

import pytest

from testing.rekey_mutants import MUTANTS, RIGHT
from testing.rekey_scenarios import FAMILIES, explore

SHARES = {"live": 101, "swept": 101, "filled": 101, "repaired": 37}
"""One scenario in so many is explored in `make test`; of `turned` it is those of RIGHT."""

LEAST_WORLDS = 20_000_000


@pytest.mark.parametrize("family", SHARES)
def test_a_share_of_all_histories_ends_well(family: str) -> None:
    assert explore(family, SHARES[family]) > 0


@pytest.mark.prove
def test_a_tenth_of_all_histories_ends_well() -> None:
    worlds = {family: explore(family, 9) for family in FAMILIES}
    print(f"\n{sum(worlds.values()):,} worlds: {worlds}")
    assert sum(worlds.values()) >= LEAST_WORLDS / 10


@pytest.mark.prove_long
def test_all_histories_end_well() -> None:
    """Ten minutes of a core."""
    worlds = {family: explore(family) for family in FAMILIES}
    print(f"\n{sum(worlds.values()):,} worlds: {worlds}")
    assert sum(worlds.values()) >= LEAST_WORLDS


@pytest.mark.parametrize("mutant", MUTANTS)
def test_each_part_is_needed(mutant: str) -> None:
    assert MUTANTS[mutant]()[1] is not None


@pytest.mark.parametrize("scenario", RIGHT)
def test_with_all_parts_the_same_histories_end_well(scenario: str) -> None:
    assert RIGHT[scenario]()[1] is None
