"""The table that most of these tests have."""

import pytest

from testing.databases import Database
from tests.integration.sharding.single import Place


@pytest.fixture
def place(dynamodb: Database, table_name: str, request: pytest.FixtureRequest) -> Place:
    """A parameter is what else is given to CreateTable."""
    return Place(dynamodb, table_name, **getattr(request, "param", {}))
