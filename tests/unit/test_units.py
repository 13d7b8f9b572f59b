import pytest
from keyhop.dynamodb.units import US_EAST_1, blocks_of


@pytest.mark.parametrize(
    ("size", "blocks"), [(0, 1), (1, 1), (4096, 1), (4097, 2), (8192, 2), (1 << 20, 256)]
)
def test_blocks_are_started_4_kb_at_least_one(size: int, blocks: int) -> None:
    assert blocks_of(size) == blocks


def test_two_million_keys_cost_thirteen_cents() -> None:
    """The figure of the cost model: 2 M keys of large collections, 0.5 read units each."""
    assert US_EAST_1.dollars(1_000_000) == pytest.approx(0.125)
