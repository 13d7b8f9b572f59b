"""A refusal by DynamoDB has the exception class of the user's client."""

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


def client_exceptions(
    source: str, dynamodb: Database, name: str, monkeypatch: pytest.MonkeyPatch
) -> tuple[Any, dict[str, Any]]:
    """Return the exceptions of a user's client, and the constructor argument with the client."""
    session = boto3.Session(**LOCAL_CREDENTIALS)
    if source == "table":
        table = session.resource("dynamodb", endpoint_url=dynamodb.url).Table(name)
        return table.meta.client.exceptions, {"table": table}
    if source == "client":
        client = session.client("dynamodb", endpoint_url=dynamodb.url)
        return client.exceptions, {"client": client}
    if source == "default session":
        return boto3s_table(dynamodb, "T").meta.client.exceptions, {}
    monkeypatch.setenv("AWS_ENDPOINT_URL_DYNAMODB", dynamodb.url)
    return session.client("dynamodb").exceptions, {"session": session}


@pytest.mark.parametrize("source", ["default session", "session", "table", "client"])
def test_a_refusal_has_the_class_of_the_users_client(
    dynamodb: Database, table_name: str, monkeypatch: pytest.MonkeyPatch, source: str
) -> None:
    exceptions, settings = client_exceptions(source, dynamodb, table_name, monkeypatch)
    place = Place(dynamodb, table_name)
    with (
        closing(place.table(**settings)) as table,
        pytest.raises(exceptions.ConditionalCheckFailedException),
    ):
        table.put_item(Item={"path": "/f", "at": "b"}, ConditionExpression=Attr("at").eq("c"))


def test_counters_and_calendars_raise_the_errors_of_their_table(
    dynamodb: Database, table_name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    exceptions, settings = client_exceptions("session", dynamodb, table_name, monkeypatch)
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
