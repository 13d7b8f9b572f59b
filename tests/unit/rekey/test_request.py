"""The inputs of RekeyBackfill and RekeyVerify."""

import pytest
from keyhop.errors import InvalidInput
from keyhop.rekey.request import BackfillInput, VerifyInput


def test_an_input_names_the_destination() -> None:
    request = BackfillInput.parse({"rekey": "New", "maxWriteRate": 50, "maxCost": 3})
    assert (request.table, request.task, request.named_by) == ("New", "rekey_backfill", "rekey")
    assert request.options["max_write_rate"] == 50.0
    assert request.max_cost == 3
    request = VerifyInput.parse({"rekey": "New", "repair": True, "share": 0.01})
    assert (request.task, request.options["repair"]) == ("rekey_verify", True)
    assert request.options["share"] == 0.01


@pytest.mark.parametrize(
    ("input", "message"),
    [
        ({}, 'rekey is missing: {"rekey": "OrdersByTenant"}'),
        ({"rekey": "New", "repair": True}, "unknown: 'repair'"),
        ({"rekey": "New", "maxWriteRate": 0}, "maxWriteRate must be a number of write units"),
    ],
)
def test_an_invalid_input_is_named(input: dict[str, object], message: str) -> None:
    with pytest.raises(InvalidInput) as refused:
        BackfillInput.parse(input)
    assert message in str(refused.value)


def test_a_sample_is_a_share() -> None:
    with pytest.raises(InvalidInput, match="share must be a number from"):
        VerifyInput.parse({"rekey": "New", "share": 2})
