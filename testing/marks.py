"""What of a test runs when: a fast representative in `make test`, the rest in `make prove`."""

from typing import Any

import pytest

on_every_database = pytest.mark.parametrize(
    "database", ["dynamodb_local", "dynalite", "stand_in"], indirect=True
)
"""dynalite too is asked in `make test`, as a second judge of order, cost or index segments."""


def prove(*values: Any) -> Any:
    """Parameters of a test that `make prove` alone runs."""
    return pytest.param(*values, marks=pytest.mark.prove)


def prove_long(*values: Any) -> Any:
    """Parameters of a test that `make prove-long` alone runs."""
    return pytest.param(*values, marks=pytest.mark.prove_long)
