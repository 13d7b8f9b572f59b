"""The commands `keyhop rekey` with a deployment that does the work."""

import json
from pathlib import Path

import pytest
from keyhop.public import rekey
from keyhop.rekey.control import Control
from keyhop.rekey.cutover.deployed import NotDeployed
from keyhop.rekey.side.layout import DEPLOYMENT

from tests.integration.rekey.pairs import Pairs, States, create_rekey, items_of

COST = {"total": 0.5, "prices": "us-east-1"}


def test_start_remote_records_the_deployment_for_later_commands(
    pairs: Pairs, template: Path, states: States
) -> None:
    create_rekey(pairs, template)
    started = pairs.rekey("start", "--remote", "--max-write-rate", 500, "--max-cost", 2)
    assert started.status == 0, started.err
    (name,) = started.lines
    assert f"keyhop runs show {name} --follow" in started.err
    assert items_of(pairs, pairs.destination) == []
    states.outputs["RekeyVerify"] = {
        "compared": {"source_items": 30, "missing": 30, "repaired": 30},
        "cost": COST,
    }
    verified = pairs.rekey("verify", "--follow")
    assert verified.status == 3, verified.err
    assert "30 items of" in verified.lines[0]
    assert any("all repaired" in line for line in verified.lines)
    assert any("$0.5" in line for line in verified.lines)
    assert [machine for machine, _ in states.started] == ["RekeyBackfill", "RekeyVerify"]
    assert states.started[0][1] == {"rekey": pairs.destination, "maxWriteRate": 500, "maxCost": 2}
    local = pairs.rekey("verify", "--output", "verified")
    assert (local.status, "leave out --output" in local.err) == (2, True)
    assert "  stack        Keyhop" in pairs.rekey("status").lines


def test_an_endpoint_of_the_command_line_is_refused_with_remote(pairs: Pairs) -> None:
    refused = pairs.rekey("start", "--remote", "--endpoint-url", pairs.database.url)
    assert refused.status == 2
    assert "--endpoint-url does not work with --remote: a deployment reads" in refused.err


def test_a_copy_is_followed_to_its_end(pairs: Pairs, template: Path, states: States) -> None:
    create_rekey(pairs, template)
    states.outputs["RekeyBackfill"] = {"outcomes": {"copied": 30}, "cost": COST}
    result = pairs.rekey("start", "--remote", "--stack", "Mine", "--follow")
    assert result.status == 0, result.err
    assert result.lines[0] == f"30 items of {pairs.source} -> {pairs.destination}"
    assert pairs.status()["figures"]["deployment"] == {"stack": "Mine"}


def test_a_rollback_by_the_deployment_is_followed_to_its_end(
    pairs: Pairs, states: States, monkeypatch: pytest.MonkeyPatch
) -> None:
    pairs.begun(Control(serving="destination", replicating=True))
    pairs.database.create(pairs.destination)
    pairs.side.tell(DEPLOYMENT, {"stack": "Keyhop"})
    states.outputs["RekeyCutOver"] = {"control": Control().to_json(), "pause": 4.25}
    monkeypatch.setattr(rekey, "Deployed", lambda *_: NotDeployed())
    result = pairs.rekey("rollback", "--follow", "--freeze-limit", 8)
    assert result.status == 0, result.err
    assert result.lines == [f"{pairs.source} serves now; writes waited for 4.2 s."]
    values = {"rekey": pairs.destination, "to": "source", "freezeLimit": 8}
    assert states.started == [("RekeyCutOver", values)]


def test_a_dry_run_of_redrive_counts_the_messages(
    pairs: Pairs, template: Path, states: States
) -> None:
    create_rekey(pairs, template)
    assert pairs.rekey("start", "--remote").status == 0
    looked = pairs.rekey("redrive", "--dry-run", yes=False)
    assert looked.status == 0, looked.err
    assert "About 2 messages in the failure queue" in looked.out.decode()
    assert "would be sent to the function once" in looked.out.decode()
    as_json = pairs.rekey("redrive", "--dry-run", "-f", "json", yes=False)
    assert json.loads(as_json.out) == {"waiting": 2}
