"""A fixture and a helper for all tests of the public interface."""

from pathlib import Path
from typing import Any

import boto3
import pytest

from testing.databases import Database
from testing.servers import LOCAL_CREDENTIALS


@pytest.fixture(autouse=True)
def own_state(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))


def boto3s_table(database: Database, name: str) -> Any:
    """Return boto3's Table, as a user creates it."""
    resource = boto3.resource("dynamodb", endpoint_url=database.url, **LOCAL_CREDENTIALS)
    return resource.Table(name)
