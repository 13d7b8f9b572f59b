"""`keyhop rekey` as a person meets it: cutover and rollback."""

import json
from pathlib import Path

import pytest
from keyhop.cli.rekey_pair import PairCommand
from keyhop.rekey.control import Control
from keyhop.rekey.side.figures import TTL, TURNED

from testing.rekey_tasks import at_once
from tests.integration.rekey.pairs import Pairs, made


def test_a_cutover_that_a_state_machine_made_is_given_again_for_the_time_to_live(
    pairs: Pairs,
) -> None:
    expires = {"Enabled": True, "AttributeName": "expires"}
    pairs.begun(Control(serving="destination", replicating=True))
    pairs.database.create(pairs.destination)
    pairs.database.client.update_time_to_live(
        TableName=pairs.source, TimeToLiveSpecification=expires
    )
    pairs.side.tell(TTL, {"attribute": "expires"})
    pairs.side.tell(TURNED, {"at": 0.0, "serving": "destination"})
    result = pairs.rekey("cutover")
    assert (result.status, "serves already" in result.err) == (2, True)
    told = [
        pairs.database.client.describe_time_to_live(TableName=name)["TimeToLiveDescription"]
        for name in (pairs.source, pairs.destination)
    ]
    assert [one["TimeToLiveStatus"] for one in told] == ["DISABLED", "ENABLED"]


def test_a_cutover_looks_at_its_gates_and_is_refused_at_a_shut_one(
    pairs: Pairs, template: Path
) -> None:
    made(pairs, template)
    assert pairs.rekey("start").status == 0
    before = pairs.side.control()
    for more, yes in ((("--dry-run",), False), ((), True)):
        result = pairs.rekey("cutover", *more, yes=yes)
        assert result.status == 3, result.err
        text = result.out.decode()
        assert "SHUT  verified" in text
        assert "do: keyhop rekey verify" in text
        assert "open  claims" in text
    assert pairs.side.control() == before
    told = json.loads(pairs.rekey("cutover", "--dry-run", "-f", "json").out)
    assert {gate["name"]: gate["open"] for gate in told["gates"]}["claims"] is True


def test_a_cutover_is_refused_where_nobody_is_known_to_follow(
    pairs: Pairs, template: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(PairCommand, "tasks", staticmethod(at_once))
    made(pairs, template)
    for action in ("start", "verify"):
        assert pairs.rekey(action).status == 0
    result = pairs.rekey("cutover")
    assert result.status == 3
    shut = [line.split()[1] for line in result.lines if line.startswith("  SHUT")]
    assert shut == ["streams"]
    assert pairs.side.control().stage == "open"


def test_there_is_nothing_to_roll_back_before_a_cutover(pairs: Pairs, template: Path) -> None:
    made(pairs, template)
    result = pairs.rekey("rollback")
    assert (result.status, "The source serves already" in result.err) == (2, True)
