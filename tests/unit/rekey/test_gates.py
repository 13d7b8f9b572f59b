"""The gates of a cutover and of a rollback."""

from collections.abc import Collection
from dataclasses import replace
from typing import Any

import pytest
from keyhop.rekey.control import Control
from keyhop.rekey.cutover.deployed import why_not
from keyhop.rekey.pair import Pair
from keyhop.rekey.side.layout import Claim, Straggler, Unmapped
from keyhop.rekey.standing import RekeyStatus, are_open

NOW = 1_000_000.0
VERIFIED = {"finished": True, "share": 1.0, "left": 0, "at": NOW - 3600}
LAG = {"seconds": 0.4, "at": NOW - 5}
READY = RekeyStatus(
    Pair("Old", "New", {}),
    Control(replicating=True, revision=7, expected_clients=1),
    NOW,
    figures={"verify": VERIFIED, "lag.forward": LAG, "lag.reverse": LAG},
    clients={"a": {"revision": 7, "until": NOW + 10}, "gone": {"revision": 1, "until": NOW - 1}},
    way_back="",
    mapped={"forward": "", "reverse": ""},
)
ALL = ("unmapped", "stragglers")
COPIED = {"backfill": {"run": "r", "ended": NOW - 7000}}
FIGURES = {
    "verified": ("verify",),
    "backfill": ("backfill",),
    "lag": ("lag.forward", "lag.reverse"),
}


def but(state: RekeyStatus, **change: Any) -> RekeyStatus:
    """Return the state with other fields, figures, or a number of unmappable items."""
    figures = dict(state.figures)
    for name in FIGURES.keys() & change:
        figures |= dict.fromkeys(FIGURES[name], change.pop(name))
    if "unmappable" in change:
        change["unmapped"] = [Unmapped("d", "no day", NOW, {})] * change.pop("unmappable")
    if "expected" in change:
        expected = change.pop("expected")
        change["control"] = replace(state.control, expected_clients=expected)
    return replace(state, figures=figures, **change)


def shut(state: RekeyStatus, to: str = "destination", accept: Collection[str] = ()) -> list[str]:
    gates = state.gates(to, accept)  # type: ignore[arg-type]
    assert are_open(gates) == all(gate.is_open for gate in gates)
    assert all(gate.says and (gate.is_open or gate.remedy) for gate in gates)
    return [gate.name for gate in gates if not gate.is_open]


def test_all_gates_are_open() -> None:
    assert shut(READY) == []


@pytest.mark.parametrize(
    ("change", "name"),
    [
        ({"control": Control("destination", replicating=True, revision=7)}, "stage"),
        ({"control": Control(stage="closing", replicating=True, revision=7)}, "stage"),
        ({"control": Control(revision=7)}, "stage"),
        ({"verified": None}, "verified"),
        ({"verified": {**VERIFIED, "share": 0.1}}, "verified"),
        ({"verified": {**VERIFIED, "left": 1}}, "verified"),
        ({"verified": {**VERIFIED, "at": NOW - 86_401}}, "verified"),
        ({"control": Control(replicating=True, revision=7, turns=2)}, "verified"),
        ({"verified": {**VERIFIED, "turns": 2}}, "verified"),
        ({"claims": [Claim("forward", {}, {}, NOW, "t")]}, "claims"),
        ({"unmappable": 1}, "unmappable"),
        ({"lag": {"seconds": 2.0, "at": NOW}}, "lag"),
        ({"verified": {**VERIFIED, "began": NOW - 7200}, **COPIED}, "verified"),
        ({"backfill": {"run": "r", "ended": None}}, "verified"),
        ({"failed": 1}, "failures"),
        ({"failed": None}, "failures"),
        ({"mapped": {"forward": "", "reverse": "the mapping is Disabled"}}, "streams"),
        ({"way_back": "Permission is missing"}, "way back"),
        ({"expected": 2}, "routers"),
        ({"clients": {"a": {"revision": 6, "until": NOW + 10}}}, "routers"),
        ({"clients": {}}, "routers"),
    ],
)
def test_each_is_shut_by_what_it_is_for(change: dict, name: str) -> None:
    assert shut(but(READY, **change)) == [name]


def test_the_gate_of_the_stage_names_the_reason() -> None:
    for says, control in {
        "serves already": Control("destination", replicating=True),
        "under way: closing": Control(stage="closing", replicating=True),
        "not replicated": Control(),
    }.items():
        gates = but(READY, control=control).gates("destination")
        assert [says in gate.says for gate in gates if gate.name == "stage"] == [True]


@pytest.mark.parametrize("lag", [None, {"seconds": 50.0, "at": NOW - 121}])
def test_a_table_without_writes_opens_the_gate_of_the_lag(lag: dict | None) -> None:
    """Otherwise no rollback would be possible in a quiet hour. The rehearsal tests the function."""
    assert shut(but(READY, lag=lag)) == []


def test_a_lag_does_not_prevent_a_rollback() -> None:
    """In an incident, the stream is often behind. The drain and the freeze limit still protect."""
    control = Control("destination", replicating=True, revision=7, turns=1)
    behind = but(READY, control=control, lag={"seconds": 40.0, "at": NOW})
    assert shut(behind, "source") == []
    (gate,) = [gate for gate in behind.gates("source") if gate.name == "lag"]
    assert "40.0 seconds behind" in gate.says


@pytest.mark.parametrize(
    ("backfill", "advice"),
    [
        (None, "capacity"),
        (COPIED["backfill"], "capacity"),
        ({"run": "r", "ended": None}, "slow the copy down (throttle)"),
    ],
)
def test_the_advice_to_slow_down_is_only_for_a_running_copy(
    backfill: dict | None, advice: str
) -> None:
    behind = but(READY, lag={"seconds": 5.0, "at": NOW}, backfill=backfill)
    (gate,) = [gate for gate in behind.gates("destination") if gate.name == "lag"]
    assert not gate.is_open
    assert advice in gate.remedy


def test_a_verification_after_the_copy_opens_the_gate() -> None:
    assert shut(but(READY, verified={**VERIFIED, "began": NOW - 6900}, **COPIED)) == []


def test_no_number_of_routers_is_expected_by_default() -> None:
    assert shut(but(READY, expected=0, clients={})) == []


BACK = but(READY, control=Control("destination", replicating=True, revision=7), verified=None)


def test_a_rollback_needs_no_verification() -> None:
    assert shut(BACK, "source") == []


def test_the_losses_of_a_rollback_are_always_named_and_must_be_accepted() -> None:
    losing = but(BACK, unmappable=3)
    assert shut(losing, "source") == ["would lose"]
    assert shut(losing, "source", accept=ALL) == []
    for status in (BACK, losing):
        (gate,) = [gate for gate in status.gates("source") if gate.name == "would lose"]
        assert f"lose {status.unmappable} items" in gate.says


def bypassing(at: float = NOW - 9000) -> Straggler:
    return Straggler("source", {"id": {"S": "s"}}, ({"pk": {"S": "d"}},), at)


@pytest.mark.parametrize("to", ["source", "destination"])
def test_stragglers_shut_each_change_until_their_loss_is_accepted(to: str) -> None:
    status = but(READY if to == "destination" else BACK, stragglers=[bypassing()] * 7)
    assert shut(status, to) == ["stragglers"]
    assert shut(status, to, accept=ALL) == []
    (gate,) = [gate for gate in status.gates(to) if gate.name == "stragglers"]  # type: ignore[arg-type]
    assert "7 writes" in gate.says
    assert "2 more" in gate.says
    assert "overwrites each of these items" in gate.says
    assert "seconds" in gate.says
    assert "is lost" in gate.remedy
    assert '"s"' not in str(gate.to_json()), "keys may be personal data"


def test_a_straggler_after_the_last_verification_invalidates_it() -> None:
    verified = {**VERIFIED, "began": NOW - 3700}
    status = but(READY, verified=verified, stragglers=[bypassing(NOW - 3650)])
    assert shut(status, accept=ALL) == ["verified"]
    assert shut(but(status, stragglers=[bypassing(NOW - 3800)]), accept=ALL) == []
    settled = replace(bypassing(NOW - 3650), settled=NOW - 3640)
    assert shut(but(status, stragglers=[settled])) == ["verified"]
    assert shut(but(status, stragglers=[replace(settled, at=NOW - 3800)])) == []


MAPPING = {"EventSourceArn": "stream", "State": "Enabled", "ParallelizationFactor": 1}


@pytest.mark.parametrize(
    ("mappings", "why"),
    [
        ([MAPPING], ""),
        ([], "nobody"),
        ([{**MAPPING, "EventSourceArn": "yesterday's"}], "nobody"),
        ([MAPPING, MAPPING], "two"),
        ([{**MAPPING, "State": "Disabled"}], "Disabled"),
        ([{**MAPPING, "ParallelizationFactor": 2}], "several"),
        ([{**MAPPING, "LastProcessingResult": "PROBLEM: Function call failed"}], "problem"),
    ],
)
def test_the_reason_why_a_stream_is_not_followed_correctly(mappings: list, why: str) -> None:
    assert why in why_not(mappings, "stream")
    assert bool(why_not(mappings, "stream")) == bool(why)


def test_a_stream_that_is_off_is_not_followed() -> None:
    assert why_not([MAPPING], None)
