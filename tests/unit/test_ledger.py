"""Check the cost limit of the ledger, and its cost on the tables of the cost model."""

import random

import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from keyhop.scan.page_size import (
    DEEPEST_BANK,
    FIRST_DEPOSIT,
    FIRST_MARGIN,
    ItemSize,
    Ledger,
    replay,
)

from testing.marks import prove
from testing.simulator import (
    LedgerPolicy,
    PublishedPolicy,
    Table,
    best_online,
    optimum,
    simulate,
    simulate_lanes,
)
from testing.tables import TABLES

SLACK = 8.0
"""Blocks for the first deposit and the last page."""

BLOCKS_PER_SEGMENT = 3.0

SLOW = ("1x150", "singles-1%", "log-normal")
"""Tables that take a second each."""


def blocks_of(table: Table, mean: float | None) -> tuple[int, int]:
    ours = simulate(table, LedgerPolicy(mean))
    published = simulate(table, PublishedPolicy())
    return ours.blocks, published.blocks


lengths = st.lists(
    st.one_of(st.just(1), st.integers(1, 12), st.integers(1, 400)), min_size=1, max_size=300
)


@given(lengths=lengths, size=st.integers(20, 4096), size_is_known=st.booleans())
@example(lengths=[1] * 200 + [400] * 40, size=150, size_is_known=True)
@example(lengths=[400] * 40 + [1] * 200, size=150, size_is_known=False)
@example(lengths=[1, 400] * 100, size=100, size_is_known=True)
@example(lengths=[10] * 300, size=500, size_is_known=True)
def test_uniform_items_cost_at_most_1_02_times_the_published_way(
    lengths: list[int], size: int, size_is_known: bool
) -> None:
    """This holds for any order and length of collections, with items up to 4 KB."""
    table = Table([[size] * length for length in lengths])
    ours, published = blocks_of(table, float(size) if size_is_known else None)
    assert ours <= 1.02 * published + SLACK


@given(
    segments=st.lists(lengths, min_size=2, max_size=40),
    size=st.integers(20, 4096),
    size_is_known=st.booleans(),
)
@example(segments=[[1] * 3] * 60, size=150, size_is_known=True)
@example(segments=[[400]] * 60, size=150, size_is_known=True)
@example(segments=[[1] * 60, [300]] * 30, size=150, size_is_known=True)
def test_each_segment_adds_little_to_the_bound(
    segments: list[list[int]], size: int, size_is_known: bool
) -> None:
    """One ledger goes through many segments."""
    policy = LedgerPolicy(float(size) if size_is_known else None)
    ours = published = 0
    for lengths_of_one in segments:
        table = Table([[size] * length for length in lengths_of_one])
        ours += simulate(table, policy).blocks
        published += simulate(table, PublishedPolicy()).blocks
    assert ours <= 1.02 * published + BLOCKS_PER_SEGMENT * len(segments) + SLACK


def test_short_segments_of_large_collections_end_a_streak_of_large_pages() -> None:
    """Earlier savings do not count here, except for the bank and a little for each end."""
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
    """Collections are in random order, as hashing leaves them, with items of mixed sizes."""
    chance = random.Random(seed)
    table = Table(
        [
            [chance.choice(sizes) for _ in range(chance.choice([1, 3, 50]))]
            for _ in range(chance.choice([20, 300]))
        ]
    )
    ours, published = blocks_of(table, table.mean_item_bytes)
    assert ours <= 1.1 * published + 2 * DEEPEST_BANK + SLACK


@pytest.mark.parametrize("name", [prove(name) if name in SLOW else name for name in TABLES])
def test_cost_model_tables(name: str) -> None:
    """Check units per key, and the cost relative to the offline optimum, as the benchmark does."""
    spec = TABLES[name]
    table = Table(spec.make(random.Random(7), 1_500))
    ours = simulate(table, LedgerPolicy(table.mean_item_bytes))
    best = optimum(table)
    published = simulate(table, PublishedPolicy())
    assert ours.units / table.keys <= spec.most_units_per_key
    assert ours.cost <= spec.most_against_optimum * best.cost
    assert ours.blocks <= 1.02 * published.blocks + SLACK + spec.surprise_blocks


def test_a_hop_table_is_left_at_one_block_pages() -> None:
    """Reading on never pays with 1,000 items a key, so trials must cost hardly anything."""
    table = Table([[500] * 1_000 for _ in range(600)])
    ours, published = blocks_of(table, 500.0)
    assert ours <= published + 12


def test_singles_are_read_in_large_pages() -> None:
    table = Table([[150] for _ in range(24_000)])
    ours = simulate(table, LedgerPolicy(150.0))
    assert ours.requests <= 30


def test_an_empty_page_teaches_nothing() -> None:
    ledger = Ledger.for_table(500.0)
    state = ledger.to_json()
    ledger.settle(ledger.bet(), [], 1)
    assert ledger.to_json() == state


def test_a_ledger_in_deficit_reads_the_published_way() -> None:
    ledger = Ledger.for_table(100.0)
    assert ledger.bet().limit > 30
    ledger.bank = -0.5
    assert ledger.bet().limit == 1


def test_the_bank_backs_every_page_in_flight() -> None:
    """The stakes of all pages in flight exceed the bank by one surprise or less."""
    ledger = Ledger.for_table(100.0)
    for _ in range(40):
        ledger.settle(ledger.bet(), [1] * 36, 1)
    bank = ledger.bank
    bets = [ledger.bet() for _ in range(100)]
    assert sum(bet.stake for bet in bets) <= bank + ledger.surprise
    assert ledger.bank >= -ledger.surprise
    assert sum(bet.limit > 1 for bet in bets) <= bank / ledger.surprise + 1
    for bet in bets:
        ledger.abandon(bet)
    assert ledger.bank == pytest.approx(bank)


def test_a_new_size_has_one_page_in_flight_and_one_more_for_each_answer() -> None:
    """Otherwise all lanes would adopt a size after one good page, before a second one returns."""
    ledger = Ledger.for_table(500.0)
    ledger.level, ledger.bank = 1, 100.0
    ledger.retry_at[2] = 1_000
    for judged in range(5):
        bets = [ledger.bet() for _ in range(8)]
        assert [bet.level for bet in bets].count(1) == 1 + judged
        ledger.settle(bets[0], [1] * bets[0].limit, 2)
        for bet in bets[1:]:
            ledger.abandon(bet)


@pytest.mark.parametrize("name", ["10x500", "zipf", "audit", "mixed", "bimodal-small", "3x100K"])
def test_many_pages_in_flight_cost_hardly_more_than_few(name: str) -> None:
    table = Table(TABLES[name].make(random.Random(7), 6_000))
    few, many = (simulate_lanes(table, lanes, segments=60) for lanes in (8, 64))
    assert many <= 1.01 * few


def test_pages_that_end_with_their_segment_are_judged() -> None:
    """A page that reads a whole segment never has all its items. It saves here, but less than a
    smaller page, so the bank does not show it.
    """
    chance = random.Random(7)
    policy = LedgerPolicy(150.0)
    simulate(Table([[150]] * 20_000), policy)
    assert policy.ledger.level >= 5
    for _ in range(100):
        simulate(Table([[150] * chance.choice([1, 1, 60]) for _ in range(20)]), policy)
    assert policy.ledger.bet().level <= 1


def test_later_lanes_add_no_deposit_if_the_first_one_is_lost() -> None:
    """Otherwise a table on which no large page pays would be charged for each of them."""
    lost, intact = Ledger(ItemSize(500.0, 32.0), bank=1.0), Ledger(ItemSize(500.0, 32.0), bank=5.0)
    for ledger in (lost, intact):
        ledger.bet()  # the stake of a page in flight is not lost
        ledger.serve(11)
    assert lost.bank + lost.staked == 1.0
    assert intact.bank + intact.staked == 5.0 + 10 * FIRST_DEPOSIT


def test_each_of_many_pages_in_flight_changes_the_margin_less() -> None:
    """They all used the same margin, so full steps would make it oscillate."""
    changes = []
    for lanes in (1, 64):
        ledger = Ledger(ItemSize(500.0, 32.0), lanes=lanes)
        bet = ledger.bet()
        ledger.settle(bet, [1] * bet.limit, 2)
        changes.append(ledger.margin - FIRST_MARGIN)
    assert changes[1] == pytest.approx(changes[0] / 8)


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
def test_replay_counts_pages_inside_the_observed_runs(runs: list[int], limit: int) -> None:
    """Compare with a plain simulation, item by item."""
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


def test_a_size_that_the_rate_allows_replaces_a_larger_one() -> None:
    """Each page shows one key, so the ledger leaves the size, as it would without a rate."""
    ledger = Ledger(ItemSize(400.0, 32.0), bank=100.0, level=5)
    bet = ledger.bet(most_items=40)
    assert bet.level == 2
    assert bet.limit <= 40
    ledger.settle(bet, [bet.limit], ledger.size.blocks(bet.limit))
    assert ledger.level == 1


def test_no_reader_that_learns_reaches_the_optimum_of_mixed_sizes() -> None:
    """Mixed sizes cost such a reader 1.4 times the optimum; the ledger costs at most 5 % more."""
    collections = TABLES["mixed"].make(random.Random(7), 1_000)
    table = Table(collections)
    best, online = optimum(table).cost, best_online(collections).cost
    assert online > 1.35 * best
    assert online <= simulate(table, LedgerPolicy(table.mean_item_bytes)).cost <= 1.05 * online


def test_a_reader_that_learns_hops_over_each_large_collection() -> None:
    """Each key costs one block and 3.54 ms."""
    online = best_online([[4_000] * 10] * 60)
    assert (online.blocks, online.requests) == (60, 60)
    assert online.milliseconds == pytest.approx(60 * 3.54)
