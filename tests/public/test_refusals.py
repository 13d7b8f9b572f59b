"""DynamoDB's refusal of a user's request has the class that the user's own clients have."""

from contextlib import closing
from typing import Any

import boto3
import keyhop
import pytest
from boto3.dynamodb.conditions import Attr

from testing.databases import Database
from testing.servers import LOCAL_CREDENTIALS
from tests.integration.sharding.single import Place
from tests.public.conftest import boto3s_table


def made(
    how: str, dynamodb: Database, name: str, monkeypatch: pytest.MonkeyPatch
) -> tuple[Any, dict[str, Any]]:
    """The exceptions of a user's own client, and the argument of the constructor that has it."""
    session = boto3.Session(**LOCAL_CREDENTIALS)
    if how == "table":
        users = session.resource("dynamodb", endpoint_url=dynamodb.url).Table(name)
        return users.meta.client.exceptions, {"table": users}
    if how == "client":
        client = session.client("dynamodb", endpoint_url=dynamodb.url)
        return client.exceptions, {"client": client}
    if how == "default session":
        return boto3s_table(dynamodb, "T").meta.client.exceptions, {}
    monkeypatch.setenv("AWS_ENDPOINT_URL_DYNAMODB", dynamodb.url)
    return session.client("dynamodb").exceptions, {"session": session}


@pytest.mark.parametrize("how", ["default session", "session", "table", "client"])
def test_it_is_that_of_the_users_own_client(
    dynamodb: Database, table_name: str, monkeypatch: pytest.MonkeyPatch, how: str
) -> None:
    exceptions, settings = made(how, dynamodb, table_name, monkeypatch)
    place = Place(dynamodb, table_name)
    with (
        closing(place.table(**settings)) as table,
        pytest.raises(exceptions.ConditionalCheckFailedException),
    ):
        table.put_item(Item={"path": "/f", "at": "b"}, ConditionExpression=Attr("at").eq("c"))


def test_counters_and_calendars_refuse_as_their_table_does(
    dynamodb: Database, table_name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    exceptions, settings = made("session", dynamodb, table_name, monkeypatch)
    place = Place(dynamodb, table_name)
    with closing(place.table(**settings)) as table:
        day = keyhop.CalendarTable(table, bucket="day")
        with pytest.raises(exceptions.ConditionalCheckFailedException):
            day.put_item(
                Item={"path": "/f", "at": "2027-01-15T00:00:00Z"},
                ConditionExpression=Attr("at").eq("c"),
            )
        counter = keyhop.ShardedCounter(table)
        dynamodb.client.delete_table(TableName=table_name)
        with pytest.raises(exceptions.ResourceNotFoundException):
            counter.add("/n")
