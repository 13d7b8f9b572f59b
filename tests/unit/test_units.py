import pytest
from keyhop.dynamodb.capacity import blocks_of, charged_units, read_dollars


@pytest.mark.parametrize(
    ("size", "blocks"), [(0, 1), (1, 1), (4096, 1), (4097, 2), (8192, 2), (1 << 20, 256)]
)
def test_blocks_are_started_4_kb_at_least_one(size: int, blocks: int) -> None:
    assert blocks_of(size) == blocks


def test_an_empty_read_counts_as_half_a_unit_where_a_local_database_says_none() -> None:
    assert charged_units(0.0) == 0.5
    assert charged_units(3.5) == 3.5


def test_two_million_keys_cost_thirteen_cents() -> None:
    """The figure of the cost model: 2 M keys of large collections, 0.5 read units each."""
    assert read_dollars(1_000_000) == pytest.approx(0.125)
