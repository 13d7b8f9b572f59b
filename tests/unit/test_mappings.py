"""The keeper's event source mapping: what it is made with, and how an older one is mended."""

from typing import Any

from keyhop.streams.event_source import SETTINGS, Mappings, modified_at

from testing.keepers import KEEPER, QUEUE, FakeLambda

STREAM = "arn:aws:dynamodb:us-east-1:111122223333:table/Orders/stream/2026-11-01T00:00:00.000"


def attached(lambdas: FakeLambda) -> dict[str, Any]:
    """The one mapping, as soon as it is at work."""
    mappings = Mappings(lambdas, KEEPER, QUEUE)
    looks = 0
    while not mappings.attach(STREAM):
        looks += 1
        assert looks < 5
    (mapping,) = lambdas.mappings.values()
    return mapping


def test_no_record_is_given_up_for_its_age() -> None:
    """The stream may have been on for a day, and it begins with the oldest of its records."""
    mapping = attached(FakeLambda())
    assert mapping["StartingPosition"] == "TRIM_HORIZON"
    assert mapping["MaximumRecordAgeInSeconds"] == -1
    assert 0 < mapping["MaximumRetryAttempts"] < 100, "what bounds a poison record"


def test_a_quiet_table_pays_no_invocation_for_each_record() -> None:
    assert 1 <= attached(FakeLambda())["MaximumBatchingWindowInSeconds"] <= 2


def test_a_mapping_of_an_older_version_is_mended_and_one_of_this_is_left_alone() -> None:
    lambdas = FakeLambda()
    older = {"MaximumRecordAgeInSeconds": 21_600, "MaximumBatchingWindowInSeconds": 0}
    lambdas.create_event_source_mapping(
        **{**SETTINGS, **older, "MaximumRetryAttempts": 3}, EventSourceArn=STREAM
    )
    mapping = attached(lambdas)
    assert mapping["MaximumRecordAgeInSeconds"] == -1
    assert mapping["MaximumBatchingWindowInSeconds"] == 2
    assert mapping["MaximumRetryAttempts"] == 3, "as somebody has set it"
    changes = lambdas.changes
    attached(lambdas)
    assert lambdas.changes == changes


def test_a_mapping_of_an_older_version_gets_the_pattern_of_the_sentinels_place() -> None:
    """Otherwise the keeper never hears of a put over a sentinel."""
    lambdas = FakeLambda()
    attached(lambdas)
    mappings, pattern = Mappings(lambdas, KEEPER, QUEUE), modified_at("sk", {"S": "!keyhop"})
    assert not mappings.attach(STREAM, pattern)
    (mapping,) = lambdas.mappings.values()
    filters = mapping["FilterCriteria"]["Filters"]
    assert filters == [*SETTINGS["FilterCriteria"]["Filters"], {"Pattern": pattern}]
    changes = lambdas.changes
    assert mappings.attach(STREAM, pattern)
    assert lambdas.changes == changes
