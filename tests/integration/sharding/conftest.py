"""The table that most of these tests use."""

import pytest

from testing.databases import Database
from tests.integration.sharding.single import Place


@pytest.fixture
def place(dynamodb: Database, table_name: str, request: pytest.FixtureRequest) -> Place:
    """A new table. The parameter of the fixture has more arguments for CreateTable."""
    return Place(dynamodb, table_name, **getattr(request, "param", {}))
