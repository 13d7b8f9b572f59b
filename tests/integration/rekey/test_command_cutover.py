"""The commands `keyhop rekey cutover` and `rollback`."""

import json
import os
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from keyhop.rekey.control import Control
from keyhop.rekey.side.layout import TTL, TURNED

from tests.integration.rekey.pairs import Pairs, create_rekey


def test_a_repeated_cutover_moves_the_time_to_live(pairs: Pairs) -> None:
    expires = {"Enabled": True, "AttributeName": "expires"}
    pairs.begun(Control(serving="destination", replicating=True))
    pairs.database.create(pairs.destination)
    pairs.database.client.update_time_to_live(
        TableName=pairs.source, TimeToLiveSpecification=expires
    )
    pairs.side.tell(TTL, {"attribute": "expires"})
    pairs.side.tell(TURNED, {"at": 0.0, "serving": "destination"})
    result = pairs.rekey("cutover")
    assert (result.status, "already serves" in result.err) == (2, True)
    descriptions = [
        pairs.database.client.describe_time_to_live(TableName=name)["TimeToLiveDescription"]
        for name in (pairs.source, pairs.destination)
    ]
    assert [each["TimeToLiveStatus"] for each in descriptions] == ["DISABLED", "ENABLED"]


def test_a_cutover_is_refused_at_a_shut_gate(pairs: Pairs, template: Path) -> None:
    create_rekey(pairs, template)
    assert pairs.rekey("start").status == 0
    before = pairs.side.control()
    for more, yes in ((("--dry-run",), False), ((), True)):
        result = pairs.rekey("cutover", *more, yes=yes)
        assert result.status == 3, result.err
        text = result.out.decode()
        assert "SHUT  verified" in text
        assert "do: verify" in text
        assert "open  claims" in text
    assert pairs.side.control() == before
    report = json.loads(pairs.rekey("cutover", "--dry-run", "-f", "json").out)
    assert {gate["name"]: gate["open"] for gate in report["gates"]}["claims"] is True


def test_a_cutover_is_refused_if_no_function_is_known_to_follow_the_streams(
    pairs: Pairs, template: Path, nothing_waits: None
) -> None:
    create_rekey(pairs, template)
    for action in ("start", "verify"):
        assert pairs.rekey(action).status == 0
    result = pairs.rekey("cutover")
    assert result.status == 3
    shut = [line.split()[1] for line in result.lines if line.startswith("  SHUT")]
    assert shut == ["streams"]
    assert pairs.side.control().stage == "open"


@pytest.fixture
def says_no(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """A terminal on which "no" is typed, and functions that follow both streams."""
    monkeypatch.setattr("keyhop.public.rekey.NOBODY", "")
    for module in ("session", "rekey_actions"):
        monkeypatch.setattr(f"keyhop.cli.{module}.is_terminal", lambda: True)
    reading, writing = os.pipe()
    os.write(writing, b"no\n")
    os.close(writing)
    with os.fdopen(reading) as typed:
        monkeypatch.setattr(sys, "stdin", typed)
        yield


def test_a_rollback_with_stragglers_shows_them_and_their_loss_and_asks(
    pairs: Pairs, says_no: None
) -> None:
    pairs.begun(Control("destination", replicating=True, turns=1))
    pairs.database.create(pairs.destination)
    pairs.side.straggler("source", {"pk": {"S": "bypassed"}}, [{"pk": {"S": "there"}}])
    result = pairs.rekey("rollback", yes=False)
    assert (result.status, "nothing more was done" in result.err) == (2, True)
    assert f"Accept the loss, and let {pairs.source} serve again? [y/N]" in result.err
    assert '{"pk": {"S": "bypassed"}} in the source' in result.err
    assert "overwrites each of these items in the source" in result.err
    assert "in about 5 seconds" in result.err
    assert "what only the source has is lost" in result.err
    assert "Without settling, what the destination has would be lost" in result.err
    assert pairs.rekey("rollback").status == 3, "--yes alone does not accept it"
    assert len(pairs.side.unsettled()) == 1


def test_stragglers_that_keep_the_tables_from_being_equal_can_be_settled_before_a_cutover(
    pairs: Pairs, says_no: None
) -> None:
    pairs.begun(Control(replicating=True, turns=2))
    pairs.database.create(pairs.destination)
    pairs.side.straggler("destination", {"pk": {"S": "bypassed"}}, [{"pk": {"S": "there"}}])
    refused = pairs.rekey("cutover", yes=False)
    assert (refused.status, refused.err) == (3, "")
    question = pairs.rekey("cutover", "--accept", "stragglers", yes=False)
    assert question.status == 2
    assert "settle the writes that bypassed the routers" in question.err
    assert len(pairs.side.unsettled()) == 1
    pairs.side.resolve(*pairs.side.unsettled())
    assert pairs.rekey("cutover", "--accept", "stragglers", yes=False).status == 3


def test_an_interrupted_cutover_asks_only_whether_to_continue(pairs: Pairs, says_no: None) -> None:
    control = Control(replicating=True).closed()
    pairs.begun(control)
    pairs.database.create(pairs.destination)
    question = pairs.rekey("cutover", yes=False)
    assert question.status == 2
    assert f"Let {pairs.destination} serve instead of {pairs.source}? [y/N]" in question.err
    assert "ccept what is lost" not in question.err
    assert pairs.side.control() == control


def test_there_is_nothing_to_roll_back_before_a_cutover(pairs: Pairs, template: Path) -> None:
    create_rekey(pairs, template)
    result = pairs.rekey("rollback")
    assert (result.status, "The source already serves" in result.err) == (2, True)
