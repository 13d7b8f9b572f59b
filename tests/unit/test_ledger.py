"""The ledger: its bound, and what it costs on the tables of the cost model."""

import random

import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from keyhop.scan.page_size import DEEPEST_BANK, FIRST_DEPOSIT, Ledger, replay

from testing.simulator import LedgerPolicy, PublishedPolicy, Table, optimum, simulate
from testing.tables import TABLES

SLACK = 8.0
"""Blocks: the first deposit, and the last page."""

BLOCKS_PER_SEGMENT = 3.0


def blocks_of(table: Table, mean: float | None) -> tuple[int, int]:
    ours = simulate(table, LedgerPolicy(mean))
    published = simulate(table, PublishedPolicy())
    return ours.blocks, published.blocks


lengths = st.lists(
    st.one_of(st.just(1), st.integers(1, 12), st.integers(1, 400)), min_size=1, max_size=300
)


@given(lengths=lengths, size=st.integers(20, 4096), known=st.booleans())
@example(lengths=[1] * 200 + [400] * 40, size=150, known=True)
@example(lengths=[400] * 40 + [1] * 200, size=150, known=False)
@example(lengths=[1, 400] * 100, size=100, known=True)
@example(lengths=[10] * 300, size=500, known=True)
def test_uniform_items_cost_at_most_1_02_times_the_published_way(
    lengths: list[int], size: int, known: bool
) -> None:
    """Whatever the order and the lengths of the collections, for items up to 4 KB."""
    table = Table([[size] * length for length in lengths])
    ours, published = blocks_of(table, float(size) if known else None)
    assert ours <= 1.02 * published + SLACK


@given(
    segments=st.lists(lengths, min_size=2, max_size=40),
    size=st.integers(20, 4096),
    known=st.booleans(),
)
@example(segments=[[1] * 3] * 60, size=150, known=True)
@example(segments=[[400]] * 60, size=150, known=True)
@example(segments=[[1] * 60, [300]] * 30, size=150, known=True)
def test_each_segment_adds_little_to_the_bound(
    segments: list[list[int]], size: int, known: bool
) -> None:
    """One ledger goes through many segments."""
    policy = LedgerPolicy(float(size) if known else None)
    ours = published = 0
    for lengths_of_one in segments:
        table = Table([[size] * length for length in lengths_of_one])
        ours += simulate(table, policy).blocks
        published += simulate(table, PublishedPolicy()).blocks
    assert ours <= 1.02 * published + BLOCKS_PER_SEGMENT * len(segments) + SLACK


def test_short_segments_of_large_collections_end_a_streak_of_large_pages() -> None:
    """What was gained before is not counted here: at most the bank, and a little for each end."""
    policy = LedgerPolicy(150.0)
    simulate(Table([[150]] * 20_000), policy)
    ours = published = 0
    for _ in range(200):
        table = Table([[150] * 300])
        ours += simulate(table, policy).blocks
        published += simulate(table, PublishedPolicy()).blocks
    assert ours <= 1.02 * published + BLOCKS_PER_SEGMENT * 200 + DEEPEST_BANK + SLACK


@given(
    seed=st.integers(0, 10_000),
    sizes=st.lists(st.sampled_from([60, 200, 900, 5_000, 60_000]), min_size=1, max_size=3),
)
def test_surprises_in_size_cost_a_bounded_sum(seed: int, sizes: list[int]) -> None:
    """Collections in random order, as hashing makes it; items of mixed sizes."""
    chance = random.Random(seed)
    table = Table(
        [
            [chance.choice(sizes) for _ in range(chance.choice([1, 3, 50]))]
            for _ in range(chance.choice([20, 300]))
        ]
    )
    ours, published = blocks_of(table, table.mean_item_bytes)
    assert ours <= 1.1 * published + 2 * DEEPEST_BANK + SLACK


@pytest.mark.parametrize("name", list(TABLES))
def test_cost_model_tables(name: str) -> None:
    """Read units per key, and cost against the offline optimum, as the benchmark reports them."""
    spec = TABLES[name]
    table = Table(spec.make(random.Random(7), 1_500))
    ours = simulate(table, LedgerPolicy(table.mean_item_bytes))
    best = optimum(table)
    published = simulate(table, PublishedPolicy())
    assert ours.units / table.keys <= spec.most_units_per_key
    assert ours.cost <= spec.most_against_optimum * best.cost
    assert ours.blocks <= 1.02 * published.blocks + SLACK + spec.surprise_blocks


def test_a_hop_table_is_left_at_one_block_pages() -> None:
    """1,000 items a key: reading on never pays, so hardly anything is spent on trying."""
    table = Table([[500] * 1_000 for _ in range(600)])
    ours, published = blocks_of(table, 500.0)
    assert ours <= published + 12


def test_singles_are_read_in_large_pages() -> None:
    table = Table([[150] for _ in range(24_000)])
    ours = simulate(table, LedgerPolicy(150.0))
    assert ours.requests <= 30


def test_an_empty_page_teaches_nothing() -> None:
    ledger = Ledger.for_table(500.0)
    before = ledger.to_json()
    ledger.settle(ledger.bet(), [], 1)
    assert ledger.to_json() == before


def test_in_deficit_the_published_way_goes_on() -> None:
    ledger = Ledger.for_table(100.0)
    assert ledger.bet().limit > 30
    ledger.bank = -0.5
    assert ledger.bet().limit == 1


def test_the_bank_backs_every_page_under_way() -> None:
    """However many pages are out at once, their stakes exceed what is banked by one surprise."""
    ledger = Ledger.for_table(100.0)
    for _ in range(40):
        ledger.settle(ledger.bet(), [1] * 36, 1)
    banked = ledger.bank
    bets = [ledger.bet() for _ in range(100)]
    assert sum(bet.stake for bet in bets) <= banked + ledger.surprise
    assert ledger.bank >= -ledger.surprise
    assert sum(bet.limit > 1 for bet in bets) <= banked / ledger.surprise + 1
    for bet in bets:
        ledger.abandon(bet)
    assert ledger.bank == pytest.approx(banked)


def test_only_one_trial_of_a_new_size_is_under_way() -> None:
    ledger = Ledger.for_table(500.0)
    ledger.settle(ledger.bet(), [4, 3], 1)
    assert [bet.level for bet in (ledger.bet(), ledger.bet(), ledger.bet())] == [1, 0, 0]


def test_a_ledger_survives_a_checkpoint() -> None:
    ledger = Ledger.for_table(100.0)
    for _ in range(10):
        bet = ledger.bet()
        ledger.settle(bet, [1] * bet.limit, 1 << bet.level)
    restored = Ledger.from_json(ledger.to_json())
    assert restored.bank == pytest.approx(ledger.bank, abs=0.01)
    assert restored.bank > FIRST_DEPOSIT
    assert restored.bet().limit == ledger.bet().limit


@given(runs=st.lists(st.integers(1, 30), min_size=1, max_size=40), limit=st.integers(1, 50))
def test_replay_counts_pages_that_lie_inside_what_was_seen(runs: list[int], limit: int) -> None:
    """Against a plain simulation, item by item."""
    items = [number for number, run in enumerate(runs) for _ in range(run)]
    pages = 0
    keys: set[int] = set()
    at = 0
    while at < len(items) and at + limit <= len(items):
        page = items[at : at + limit]
        pages += 1
        keys.update(page)
        at = items.index(page[-1]) + runs[page[-1]]
    assert replay(runs, limit) == (pages, len(keys))
