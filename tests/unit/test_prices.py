"""Check read units and prices, which always name their source."""

import pytest
from keyhop.dynamodb.units import US_EAST_1, Prices, are_prices, blocks_of
from keyhop.errors import CannotStart
from keyhop.jobs.price import FunctionSize, run_cost

CUSTOM = '{"reads": 0.2, "writes": 1}'


@pytest.mark.parametrize(
    ("size", "blocks"), [(0, 1), (1, 1), (4096, 1), (4097, 2), (8192, 2), (1 << 20, 256)]
)
def test_blocks_are_started_4_kb_and_never_zero(size: int, blocks: int) -> None:
    assert blocks_of(size) == blocks


def test_two_million_keys_cost_thirteen_cents() -> None:
    """The cost model has 2 million keys of large collections, with 0.5 read units each."""
    assert US_EAST_1.dollars(1_000_000) == pytest.approx(0.125)


@pytest.mark.parametrize("region", [None, "us-east-1", "us-east-2", "us-west-2"])
def test_a_known_list_price_has_its_region_and_date(region: str | None) -> None:
    prices = Prices.of(region)
    assert prices.on_demand == f"on demand, {region or 'us-east-1'}, 2026-08"
    assert prices.dollars(8_000_000, 1_600_000) == pytest.approx(2.0)


@pytest.mark.parametrize("region", ["eu-west-1", "us-gov-west-1", "cn-north-1", "xx-new-9"])
def test_other_regions_have_the_prices_of_us_east_1_with_a_note(region: str) -> None:
    whose = f"us-east-1, 2026-08, as those of {region} are not known here"
    assert Prices.of(region).whose == whose


def test_prices_of_the_user() -> None:
    prices = Prices.of("cn-north-1", CUSTOM)
    assert prices.dollars(1_000_000, 2_000_000) == pytest.approx(2.2)
    assert prices.on_demand == "on demand, at your own prices"
    cost = run_cost(FunctionSize(1769, "arm64"), 1e6, 0, 0, 0, 0, prices=prices)
    assert cost["dynamodb"] == 0.2
    assert cost["prices"].endswith("; Lambda, Step Functions and S3 as in us-east-1, 2026-08")


@pytest.mark.parametrize(
    "prices",
    [
        *("", "1", "[]", "{"),
        *('{"reads": 1}', '{"reads": 1, "writes": -1}', '{"reads": 1, "writes": "1"}'),
    ],
)
def test_invalid_prices_are_refused(prices: str) -> None:
    assert not are_prices(prices)
    if prices:
        with pytest.raises(CannotStart, match=r"KEYHOP_PRICES is .* it must be dollars"):
            Prices.of("eu-west-1", prices)
