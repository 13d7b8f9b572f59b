"""The command `keyhop rekey status`, and commands that write only to the side table."""

import json

from keyhop.rekey.control import Control
from keyhop.rekey.side.layout import COPIED

from tests.integration.rekey.pairs import Pairs


def test_without_a_re_key_the_status_names_the_first_command(pairs: Pairs) -> None:
    pairs.database.create(pairs.source)
    result = pairs.rekey("status")
    assert result.status == 2
    assert "begin with plan, then create" in result.err


def test_the_status_of_a_new_pair_names_the_next_command(pairs: Pairs) -> None:
    pairs.begun()
    assert pairs.status()["phase"] == "creating"
    pairs.side.tell(COPIED, [])
    status = pairs.status()
    assert (status["phase"], status["serving"], status["next"]) == (
        "created",
        "source",
        f"keyhop rekey start {pairs.source} --to {pairs.destination}",
    )
    lines = pairs.rekey("status").lines
    assert lines[0] == f"{pairs.source} -> {pairs.destination}: created"
    assert "  verified     never" in lines


def test_another_source_is_refused(pairs: Pairs) -> None:
    pairs.begun()
    second_pairs = Pairs(pairs.database, destination=pairs.destination)
    second_pairs.database.create(second_pairs.source)
    result = second_pairs.rekey("status")
    second_pairs.database.client.delete_table(TableName=second_pairs.source)
    assert result.status == 2
    assert f"is being made of {pairs.source}, and not of {second_pairs.source}" in result.err


def test_nothing_changes_without_a_yes(pairs: Pairs) -> None:
    pairs.begun()
    result = pairs.rekey("shadow", 5, yes=False)
    assert result.status == 2
    assert "there is no terminal on which to confirm it" in result.err
    assert pairs.status()["figures"] == {}
    assert pairs.side.control() == Control()


def test_a_pause_keeps_the_rate_and_asks_nothing(pairs: Pairs) -> None:
    pairs.begun()
    for action, expected in (
        (("throttle", 500), {"rate": 500.0, "paused": False}),
        (("pause",), {"rate": 500.0, "paused": True}),
        (("resume",), {"rate": 500.0, "paused": False}),
        (("throttle", 0), {"rate": 500.0, "paused": True}),
        (("resume",), {"rate": 500.0, "paused": False}),
        (("throttle", "none"), {"rate": "none", "paused": False}),
    ):
        assert pairs.rekey(*action, yes=False).status == 0
        assert pairs.status()["figures"]["throttle"] == expected


def test_a_dry_run_of_shadow_prints_the_reads_and_changes_nothing(pairs: Pairs) -> None:
    pairs.begun()
    looked = pairs.rekey("shadow", 10, "--dry-run", yes=False)
    assert looked.status == 0
    text = looked.out.decode()
    assert "10 % of the routers' reads, on both tables; now 0 %" in text
    assert "1 WRU, of the control item" in text
    as_json = pairs.rekey("shadow", 10, "--dry-run", "-f", "json", yes=False)
    assert json.loads(as_json.out) == {"share": 10.0, "current_share": 0.0}
    assert pairs.side.control() == Control()


def test_a_real_difference_forbids_a_larger_share(pairs: Pairs) -> None:
    pairs.begun()
    assert pairs.rekey("shadow", 10).status == 0
    assert pairs.side.control() == Control(shadow=0.1, revision=1)
    pairs.side.report_client("r", {"revision": 1, "until": 0, "shadow_real": 1})
    refused = pairs.rekey("shadow", 50)
    assert (refused.status, "1 real difference:" in refused.err) == (2, True)
    assert pairs.status()["troubles"] == ["shadow reads have found real differences: run verify"]
    assert pairs.rekey("shadow", 5).status == 0
    assert pairs.side.control().shadow == 0.05


def test_a_quiet_command_prints_its_result_for_programs_only(pairs: Pairs) -> None:
    pairs.begun()
    assert pairs.rekey("status", "--quiet").out == b""
    assert (
        json.loads(pairs.rekey("status", "--format", "json", "--quiet").out)["phase"] == "creating"
    )
