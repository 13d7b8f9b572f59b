"""Marks of tests: fast representatives run in `make test`, the others in `make prove`."""

from typing import Any

import pytest
from hypothesis import settings

on_every_database = pytest.mark.parametrize(
    "database", ["dynamodb_local", "dynalite", "stand_in"], indirect=True
)
"""The databases of `make test` for a contract of the service."""


def prove(*values: Any) -> Any:
    """Return the parameters of a test that only `make prove` runs."""
    return pytest.param(*values, marks=pytest.mark.prove)


on_dynamodb_local = pytest.mark.parametrize(
    "database", ["dynamodb_local", prove("dynalite"), prove("stand_in")], indirect=True
)
"""The databases of tests that depend on the order of keys: `make test` uses AWS's software only."""


def few() -> settings:
    """Return settings with a tenth of the examples, for properties that take a second for each."""
    return settings(max_examples=settings.default.max_examples // 10)


def prove_long(*values: Any) -> Any:
    """Return the parameters of a test that only `make prove-long` runs."""
    return pytest.param(*values, marks=pytest.mark.prove_long)
