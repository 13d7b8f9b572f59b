import pytest
from keyhop.dynamodb.throttling import NO_REASON, is_throttling, reason_names

from testing.partitions import ALL_REASONS


def test_there_are_sixteen_reasons() -> None:
    assert len(set(ALL_REASONS)) == 16
    assert "TableReadKeyRangeThroughputExceeded" in ALL_REASONS
    assert "IndexWriteMaxOnDemandThroughputExceeded" in ALL_REASONS


@pytest.mark.parametrize("field", ["ThrottlingReasons", "throttlingReasons"])
@pytest.mark.parametrize("reason", ALL_REASONS)
def test_each_reason_is_read_in_both_casings_whatever_the_code(reason: str, field: str) -> None:
    response = {"Error": {"Code": "Whatever"}, field: [{"reason": reason, "resource": "arn"}]}
    assert is_throttling(response)
    assert reason_names(response) == (reason,)


def test_a_throttle_without_a_reason_is_counted_as_unknown() -> None:
    response = {"Error": {"Code": "ProvisionedThroughputExceededException"}}
    assert is_throttling(response)
    assert reason_names(response) == (NO_REASON,)


@pytest.mark.parametrize("code", ["ValidationException", "InternalServerError", ""])
def test_other_errors_are_no_throttles(code: str) -> None:
    assert not is_throttling({"Error": {"Code": code}})
