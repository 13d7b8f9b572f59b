"""What of a test runs when: a fast representative in `make test`, the rest in `make prove`."""

from typing import Any

import pytest
from hypothesis import settings

on_every_database = pytest.mark.parametrize(
    "database", ["dynamodb_local", "dynalite", "stand_in"], indirect=True
)
"""`make test` asks all three, for a contract of the service."""


def prove(*values: Any) -> Any:
    """Parameters of a test that `make prove` alone runs."""
    return pytest.param(*values, marks=pytest.mark.prove)


on_dynamodb_local = pytest.mark.parametrize(
    "database", ["dynamodb_local", prove("dynalite"), prove("stand_in")], indirect=True
)
"""`make test` asks the service's own software, where the order of keys of all types counts."""


def few() -> settings:
    """A tenth of the profile's examples, for a property whose examples take a second each."""
    return settings(max_examples=settings.default.max_examples // 10)


def prove_long(*values: Any) -> Any:
    """Parameters of a test that `make prove-long` alone runs."""
    return pytest.param(*values, marks=pytest.mark.prove_long)
