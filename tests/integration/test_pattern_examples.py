"""The examples of docs/how-to/sharding-patterns.md, on DynamoDB Local."""

from datetime import datetime

import pytest
from keyhop.sharding.key.policy import Policy
from keyhop.sharding.table import ShardedTable

from examples.patterns.leaderboard import best
from examples.patterns.page_views import count
from examples.patterns.sensor_log import log
from examples.patterns.tables import create_tables, forget_tokens
from testing.databases import Database
from tests.docs.pages import ROOT
from tests.integration.sharding.single import JumpingClock

NOW = datetime(2027, 1, 15, 8)
"""The initial time of the JumpingClock."""


def table(database: Database, name: str) -> ShardedTable:
    return ShardedTable(
        name,
        metadata=f"{name}-shards",
        endpoint_url=database.url,
        clock=JumpingClock(),
        policy=Policy(start_shards={"7*": 4, "/pricing*": 3}),
    )


def test_page_views(
    dynamodb: Database, table_name: str, capsys: pytest.CaptureFixture[str]
) -> None:
    create_tables(dynamodb.client, table_name, "page", "part")
    forget_tokens(dynamodb.client, table_name)
    assert count(table(dynamodb, table_name)) == "5 views, 100 euros"
    assert capsys.readouterr().out == "order 4711 was counted before\n"


def test_sensor_log(dynamodb: Database, table_name: str) -> None:
    create_tables(dynamodb.client, table_name, "sensor", "at")
    assert log(table(dynamodb, table_name), NOW) == [
        "2027-01-15T08:00:00 0",
        "2027-01-15T04:00:00 1",
        "2027-01-15T00:00:00 2",
        "10 and 14 readings",
        "an hour each from 2027-01-22 on",
        *("2027-01-21", "2027-01-22T00", "2027-01-22T01"),
        "A day has 8 KB: a month would have 240 KB, and be read by one request instead of 30.",
    ]


def test_leaderboard(dynamodb: Database, table_name: str) -> None:
    create_tables(dynamodb.client, table_name, "level", "player", index="score")
    scores = {f"player {n}": n * 7919 % 1009 for n in range(1, 1001)}
    ranked = sorted(scores, key=scores.__getitem__, reverse=True)
    expected = [f"{player}: {scores[player]}" for player in (*ranked[:3], ranked[-1])]
    assert best(table(dynamodb, table_name)) == expected


@pytest.mark.parametrize("name", ["page_views", "sensor_log", "leaderboard"])
def test_the_page_links_each_example(name: str) -> None:
    page = (ROOT / "docs" / "how-to" / "sharding-patterns.md").read_text()
    assert f"../examples/patterns/{name}.py" in page
