"""Check quantiles, proportions and extreme numbers against published values."""

import math

import pytest
from keyhop.dynamodb.values import is_number
from keyhop.scan.statistics import proportion_limits, t_quantile


@pytest.mark.parametrize(
    ("freedom", "quantile"),
    [(1, 12.706), (2, 4.303), (3, 3.182), (4, 2.776), (10, 2.228), (30, 2.042), (120, 1.980)],
)
def test_student_s_t_matches_the_tables(freedom: int, quantile: float) -> None:
    """The tables are in the NIST/SEMATECH e-Handbook of Statistical Methods, 1.3.6.7.2."""
    assert t_quantile(freedom) == pytest.approx(quantile, rel=0.02)


def test_without_a_degree_of_freedom_the_quantile_is_infinite() -> None:
    assert t_quantile(0.99) == math.inf


@pytest.mark.parametrize(
    ("hits", "draws", "low", "high"),
    [(0, 10, 0.0, 0.3085), (5, 10, 0.1871, 0.8129), (1, 20, 0.0013, 0.2487), (10, 10, 0.6915, 1.0)],
)
def test_the_limits_of_a_proportion_match_clopper_and_pearson(
    hits: int, draws: int, low: float, high: float
) -> None:
    assert proportion_limits(hits, draws) == pytest.approx((low, high), abs=0.0001)


@pytest.mark.parametrize(
    ("text", "is_valid"),
    [
        ("1E-130", True),
        ("9.9999999999999999999999999999999999999E+125", True),
        ("1E-131", False),
        ("1E+126", False),
        ("1" * 38, True),
        ("1" * 39, False),
        ("0E+200", True),
    ],
)
def test_numbers_at_the_ends_of_the_service_s_range(text: str, is_valid: bool) -> None:
    """The range and the precision are from the AWS documentation."""
    assert is_number(text) == is_valid
