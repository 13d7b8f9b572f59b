"""What the control plane says of a table, and what it means that it does not."""

import pytest
from keyhop.errors import CannotStart, NotPermitted, TableNotFound
from keyhop.report.facts import Absent
from keyhop.report.sources.control_plane import ACTIONS, look

from testing.report_cloud import refusal
from tests.unit.report.sources.tables import Answers, connection, orders, recorded


def test_vector_indexes_are_named_and_are_no_indexes_of_the_report() -> None:
    with_vectors = orders(VectorIndexes=[{"IndexName": "by-meaning"}])
    assert with_vectors.vector_indexes == ("by-meaning",)
    assert with_vectors.indexes == orders().indexes


def test_a_table_is_told_in_full():
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


def test_a_table_by_its_arn_may_be_another_accounts():
    arn = "arn:aws:dynamodb:eu-central-1:111122223333:table/Orders"
    assert look(connection(), arn)[0].by_arn
    assert look(connection(), arn)[0].name == "Orders"
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


def test_provisioned_capacity_is_told_of_the_table_and_of_its_indexes():
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
def test_what_is_not_allowed_is_untold_and_does_not_read_as_off(operation: str, field: str):
    title = "".join(part.title() for part in operation.split("_"))
    facts, _, _ = look(connection(**{operation: refusal(title, "AccessDeniedException")}), "Orders")
    assert getattr(facts, field) is None
    assert facts.untold == {
        field: Absent(f"dynamodb:{title} is not allowed", f"allow dynamodb:{title}")
    }


def test_what_is_off_is_not_untold():
    off = {"TimeToLiveDescription": {"TimeToLiveStatus": "DISABLED"}}
    facts, _, _ = look(connection(describe_time_to_live=off), "Orders")
    assert facts.ttl is None
    assert "ttl" not in facts.untold


def test_a_local_database_that_knows_no_insights_does_not_end_the_report():
    unknown = refusal("DescribeContributorInsights", "UnknownOperationException", "no")
    facts, _, _ = look(connection(describe_contributor_insights=unknown), "Orders")
    assert facts.untold["insights"].reason == (
        "DescribeContributorInsights is not served at this endpoint"
    )


def test_insights_refused_for_the_table_are_not_asked_of_each_index():
    answers = Answers(
        describe_contributor_insights=refusal("DescribeContributorInsights", "AccessDenied")
    )
    look(connection().__class__(answers), "Orders")
    assert [name for name, _ in answers.asked].count("describe_contributor_insights") == 1


def test_a_table_that_is_not_there_or_not_readable_ends_the_report_with_one_sentence():
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


def test_each_request_is_among_the_actions():
    answers = Answers()
    look(connection().__class__(answers), "Orders")
    titles = {"".join(part.title() for part in name.split("_")) for name, _ in answers.asked}
    assert {f"dynamodb:{title}" for title in titles} == set(ACTIONS)
