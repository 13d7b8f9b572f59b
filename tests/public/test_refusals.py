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


def check_class(exceptions: Any, place: Place, **settings: Any) -> None:
    """The refusal of a put is caught by its class in these exceptions."""
    with (
        closing(place.table(**settings)) as table,
        pytest.raises(exceptions.ConditionalCheckFailedException),
    ):
        table.put_item(Item={"path": "/f", "at": "b"}, ConditionExpression=Attr("at").eq("c"))


def test_it_is_that_of_boto3s_default_session(dynamodb: Database, table_name: str) -> None:
    users = boto3.resource("dynamodb", endpoint_url=dynamodb.url, **LOCAL_CREDENTIALS).Table("T")
    check_class(users.meta.client.exceptions, Place(dynamodb, table_name))


def test_it_is_that_of_the_given_session(
    dynamodb: Database, table_name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("AWS_ENDPOINT_URL_DYNAMODB", dynamodb.url)
    session = boto3.Session(**LOCAL_CREDENTIALS)
    exceptions = session.client("dynamodb").exceptions
    check_class(exceptions, Place(dynamodb, table_name), session=session)


def test_counters_and_calendars_refuse_as_their_table_does(
    dynamodb: Database, table_name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("AWS_ENDPOINT_URL_DYNAMODB", dynamodb.url)
    session = boto3.Session(**LOCAL_CREDENTIALS)
    exceptions = session.client("dynamodb").exceptions
    place = Place(dynamodb, table_name)
    with closing(place.table(session=session)) as table:
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


def test_it_is_that_of_boto3s_table(dynamodb: Database, table_name: str) -> None:
    resource = boto3.Session(**LOCAL_CREDENTIALS).resource("dynamodb", endpoint_url=dynamodb.url)
    users = resource.Table(table_name)
    check_class(users.meta.client.exceptions, Place(dynamodb, table_name), table=users)


def test_it_is_that_of_the_given_client(dynamodb: Database, table_name: str) -> None:
    session = boto3.Session(**LOCAL_CREDENTIALS)
    client = session.client("dynamodb", endpoint_url=dynamodb.url)
    check_class(client.exceptions, Place(dynamodb, table_name), client=client)
