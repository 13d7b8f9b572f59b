"""Tests of the facts of the control plane, and of those that it does not report."""

import pytest
from keyhop.dynamodb.client import Connection
from keyhop.errors import CannotStart, NotPermitted, TableNotFound
from keyhop.report.facts import Absent
from keyhop.report.sources.control_plane import ACTIONS, look

from testing.report_cloud import refusal
from tests.unit.report.sources.tables import RecordedClient, connection, orders, recorded


def test_vector_indexes_are_named_but_not_assessed() -> None:
    with_vectors = orders(VectorIndexes=[{"IndexName": "by-meaning"}])
    assert with_vectors.vector_indexes == ("by-meaning",)
    assert with_vectors.indexes == orders().indexes


def test_all_facts_of_a_table_are_read():
    facts, spent, _ = look(connection(), "Orders")
    assert (facts.partition, facts.sort, facts.items) == ("customer", "placed", 2_000_000_000)
    assert facts.region == "eu-central-1"
    assert facts.on_demand
    assert facts.maximum == (-1, 5000)
    assert facts.warm == (24_000, 8_000)
    assert facts.table_class == "STANDARD_INFREQUENT_ACCESS"
    assert facts.ttl == "expires"
    assert facts.insights == "ENABLED"
    assert facts.stream_view == "NEW_AND_OLD_IMAGES"
    assert facts.untold == {}
    assert (spent.requests, spent.dollars) == (4, 0.0)


def test_the_facts_record_whether_the_table_was_given_by_its_arn():
    facts, _, _ = look(connection(), "arn:aws:dynamodb:eu-central-1:111122223333:table/Orders")
    assert (facts.by_arn, facts.name) == (True, "Orders")
    assert not look(connection(), "Orders")[0].by_arn


def test_indexes_have_their_keys_projection_and_status():
    facts, _, _ = look(connection(), "Orders")
    city, total = facts.indexes
    assert (city.kind, city.partition, city.sort) == ("GSI", ("city", "street"), ("placed",))
    assert city.projection == "INCLUDE"
    assert city.warm == (12_000, 4_000)
    assert city.throughput is None
    assert city.insights == "ENABLED"
    assert (total.kind, total.partition, total.sort, total.insights) == (
        *("LSI", ("customer",), ("total",)),
        None,
    )


def test_provisioned_capacity_is_read_for_the_table_and_its_indexes():
    table = recorded("describe_table", "dynamodb", "DescribeTable")["Table"]
    units = {"ReadCapacityUnits": 100, "WriteCapacityUnits": 50}
    table["ProvisionedThroughput"] = units
    table["GlobalSecondaryIndexes"][0]["ProvisionedThroughput"] = units
    del table["BillingModeSummary"], table["OnDemandThroughput"], table["WarmThroughput"]
    facts, _, _ = look(connection(describe_table={"Table": table}), "Orders")
    assert facts.throughput == (100, 50)
    assert facts.indexes[0].throughput == (100, 50)
    assert facts.maximum is None
    assert facts.warm is None


@pytest.mark.parametrize(
    ("operation", "field"),
    [("describe_time_to_live", "ttl"), ("describe_contributor_insights", "insights")],
)
def test_a_denied_setting_is_unknown_and_not_off(operation: str, field: str):
    title = "".join(part.title() for part in operation.split("_"))
    facts, _, _ = look(connection(**{operation: refusal(title, "AccessDeniedException")}), "Orders")
    assert getattr(facts, field) is None
    assert facts.untold == {
        field: Absent(f"dynamodb:{title} is not allowed", f"allow dynamodb:{title}")
    }


def test_a_setting_that_is_off_is_not_unknown():
    off = {"TimeToLiveDescription": {"TimeToLiveStatus": "DISABLED"}}
    facts, _, _ = look(connection(describe_time_to_live=off), "Orders")
    assert facts.ttl is None
    assert "ttl" not in facts.untold


def test_a_local_database_without_insights_does_not_end_the_report():
    unknown = refusal("DescribeContributorInsights", "UnknownOperationException", "no")
    facts, _, _ = look(connection(describe_contributor_insights=unknown), "Orders")
    assert facts.untold["insights"].reason == (
        "DescribeContributorInsights is not served at this endpoint"
    )


def test_insights_refused_for_the_table_are_not_requested_for_each_index():
    client = RecordedClient(
        describe_contributor_insights=refusal("DescribeContributorInsights", "AccessDenied")
    )
    look(Connection(client), "Orders")
    assert [name for name, _ in client.requests].count("describe_contributor_insights") == 1


def test_a_table_that_is_missing_denied_or_being_created_ends_the_report():
    missing = refusal("DescribeTable", "ResourceNotFoundException", "gone")
    with pytest.raises(TableNotFound, match="no table 'Orders'"):
        look(connection(describe_table=missing), "Orders")
    denied = refusal("DescribeTable", "AccessDeniedException")
    with pytest.raises(NotPermitted, match="dynamodb:DescribeTable"):
        look(connection(describe_table=denied), "Orders")
    table = recorded("describe_table", "dynamodb", "DescribeTable")["Table"]
    creating = {"Table": {**table, "TableStatus": "CREATING"}}
    with pytest.raises(CannotStart, match="CREATING"):
        look(connection(describe_table=creating), "Orders")


def test_the_actions_are_those_of_the_requests():
    client = RecordedClient()
    look(Connection(client), "Orders")
    titles = {"".join(part.title() for part in name.split("_")) for name, _ in client.requests}
    assert {f"dynamodb:{title}" for title in titles} == set(ACTIONS)
