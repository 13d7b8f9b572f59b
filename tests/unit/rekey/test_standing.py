"""The status of a re-key: its phase, its troubles and its next step."""

from dataclasses import replace
from types import SimpleNamespace
from typing import Any, cast

import pytest
from keyhop.dynamodb.tables import Table
from keyhop.jobs.journal import RunPlan
from keyhop.public.rekey_text import status_lines
from keyhop.rekey.compare.rows import DIFFERENCES
from keyhop.rekey.compare.task import told_of
from keyhop.rekey.control import Control
from keyhop.rekey.pair import Pair
from keyhop.rekey.side.layout import Claim, Straggler, Unmapped
from keyhop.rekey.standing import VERIFY_SECONDS, Phase, RekeyStatus

NOW = 1_795_000_000.0
CLEAN = {"at": NOW - 60, "items": 5, "missing": 0, "surplus": 0, "changed": 0, "finished": True}
COPIED = {"run": "r", "began": NOW - 90, "ended": NOW - 80, "counts": {"copied": 5}}
WORKING = Control(replicating=True)
BYPASSING = Straggler("source", {"id": {"S": "s"}}, (), NOW - 1_000)
AHEAD = {"seconds": 0.5, "at": NOW - 5}


def status_of(control: Control = WORKING, **more: Any) -> RekeyStatus:
    figures = {name: more.pop(name) for name in list(more) if name in FIGURES}
    figures["lag.forward"] = figures.pop("lag", None)
    return RekeyStatus(Pair("Old", "New", {}), control, NOW, figures=figures, **more)


FIGURES = (
    *("copied", "end", "ending", "backfill", "throttle", "verify", "lag"),
    *("deployment", "destination", "turned"),
)

SHADOWING = status_of(replace(WORKING, shadow=0.1), backfill=COPIED, verify=CLEAN, lag=AHEAD)


@pytest.mark.parametrize(
    ("status", "phase", "command"),
    [
        (status_of(Control()), "creating", "rekey create"),
        (status_of(Control(), copied=[]), "created", "rekey start"),
        (status_of(Control(), copied=[], ending={"how": "cancel"}), "ending", "rekey cancel"),
        (status_of(Control(), copied=[], end={"how": "cancel"}), "ending", "rekey cancel"),
        (status_of(), "copying", "rekey start"),
        (status_of(throttle={"paused": True}), "paused", "rekey resume"),
        (status_of(Control(), copied=[], throttle={"paused": True}), "created", "rekey resume"),
        (status_of(backfill=COPIED), "copied", "rekey verify"),
        (status_of(backfill=COPIED, throttle={"paused": True}), "copied", "rekey verify"),
        (
            status_of(backfill=COPIED, verify=CLEAN, lag=AHEAD),
            "verified",
            "rekey cutover Old --to New --dry-run",
        ),
        (
            status_of(backfill=COPIED, verify={**CLEAN, "missing": 1, "left": 1}),
            "copied",
            "rekey verify",
        ),
        (status_of(backfill=COPIED, verify={**CLEAN, "missing": 1}), "verified", ""),
        (status_of(backfill=COPIED, verify={**CLEAN, "share": 0.5}), "copied", "rekey verify"),
        (
            status_of(backfill=COPIED, verify={**CLEAN, "at": NOW - VERIFY_SECONDS}),
            "copied",
            "rekey verify",
        ),
        (status_of(backfill={**COPIED, "ended": None}, verify=CLEAN), "copying", "wait"),
        (status_of(backfill=COPIED, verify={**CLEAN, "began": NOW - 85}), "copied", "rekey verify"),
        (SHADOWING, "shadowing", "rekey cutover Old --to New --dry-run"),
        (status_of(replace(WORKING, shadow=0.1), backfill=COPIED), "copied", "rekey verify"),
        (status_of(replace(Control(), shadow=0.1), copied=[]), "created", "rekey start"),
        (status_of(replace(WORKING, stage="frozen")), "changing", "calls it off"),
        (status_of(replace(WORKING, serving="destination")), "cut over", "keyhop rekey complete"),
    ],
)
def test_the_phase_and_the_next_step(status: RekeyStatus, phase: Phase, command: str) -> None:
    assert status.phase == phase
    assert command in " ".join(status.next_step)
    assert status.means


def test_all_troubles_are_named_and_come_before_the_cutover() -> None:
    status = status_of(
        backfill=COPIED,
        verify=CLEAN,
        deployment={"stack": "Keyhop"},
        lag={"seconds": 300.0, "at": NOW},
        claims=[Claim("forward", {}, {}, NOW, "t")] * 2,
        unmapped=[Unmapped("d", "it lacks day", NOW, {})] * 3,
        failed=1,
        stragglers=[BYPASSING],
        clients={
            "gone": {"until": NOW, "shadow_real": 1, "guarded": True},
            "alive": {"until": NOW + 1, "guarded": False},
        },
    )
    assert len(status.troubles) == 7
    assert status.next_step[0] == "keyhop rekey redrive Old --to New"


def test_routers_without_a_guard_are_named_if_they_are_alive() -> None:
    clients = {
        "guarded": {"until": NOW + 1, "guarded": True},
        "b": {"until": NOW + 1, "guarded": False},
        "a": {"until": NOW + 1, "guarded": False},
        "gone": {"until": NOW - 1, "guarded": False},
    }
    status = status_of(backfill=COPIED, verify=CLEAN, lag=AHEAD, clients=clients)
    assert status.unguarded == ["a", "b"]
    (trouble,) = status.troubles
    assert trouble.startswith("2 routers have no guard: ")
    assert "clients=[dynamodb]" in trouble
    assert "see to the trouble first" in status.next_step[1]
    assert "  clients      3, 2 without a guard" in status_lines(status)
    report = status.to_json()
    assert (report["clients"], report["unguarded_clients"]) == (3, 2)


def test_guarded_routers_are_no_trouble() -> None:
    status = status_of(clients={"guarded": {"until": NOW + 1, "guarded": True}})
    assert status.unguarded == []
    assert status.troubles == []
    assert "  clients      1" in status_lines(status)


@pytest.mark.parametrize("repairs", [False, True])
@pytest.mark.parametrize("kind", [*DIFFERENCES, "unsettled"])
def test_the_phase_after_a_verification_agrees_with_its_gate(kind: str, repairs: bool) -> None:
    plan = SimpleNamespace(id="r", options={"began": "2026-11-22T00:00:00+00:00"})
    counts = {kind: 2, "repaired": 2 if repairs else 0}
    if kind == "unsettled":  # a settled item is in flight
        counts = {"in_flight" if repairs else kind: 2}
    report = told_of(cast(RunPlan, plan), counts, NOW - 1)
    status = status_of(backfill=COPIED, verify=report)
    is_open = {gate.name: gate.is_open for gate in status.gates("destination")}["verified"]
    assert (status.phase == "verified") == is_open == repairs


@pytest.mark.parametrize("serving", ["source", "destination"])
def test_writes_wait_in_a_change_only_while_it_is_frozen(serving: Any) -> None:
    """An abandoned change in `closing` stops no writes, and no router calls it off."""
    command, opposite = "cutover", "rollback"
    if serving == "destination":
        command, opposite = opposite, command
    closing = status_of(replace(WORKING, stage="closing", serving=serving))
    assert "writes go on" in closing.means
    assert closing.next_step[0] == f"keyhop rekey {command} Old --to New"
    assert f"{opposite} Old --to New calls the {command} off" in closing.safe
    for stage in ("frozen", "fenced"):
        frozen = status_of(replace(WORKING, stage=cast(Any, stage), serving=serving))
        assert "writes wait" in frozen.means
        assert frozen.next_step[0] == f"keyhop rekey {command} Old --to New"
        assert "calls it off" in frozen.next_step[1]
    turned = status_of(replace(WORKING, stage="turned", serving=serving))
    assert turned.next_step[0] == f"keyhop rekey {opposite} Old --to New"
    assert "completes it" in turned.next_step[1]


def test_a_comparison_with_a_difference_is_reported_as_one() -> None:
    status = status_of(backfill=COPIED, verify={**CLEAN, "contended": 1, "left": 1})
    assert status.phase == "copied"
    assert "1 difference remained" in status.means


def test_unmappable_items_need_another_verification() -> None:
    status = status_of(backfill=COPIED, verify={**CLEAN, "unmappable": 2})
    assert status.unmappable == 2
    (trouble,) = status.troubles
    assert trouble.startswith("2 items cannot be mapped, as the last comparison has found")
    assert "verify" in trouble


def test_a_rollback_would_lose_unmappable_items() -> None:
    control = replace(WORKING, serving="destination")
    status = status_of(
        control, unmapped=[Unmapped("d", "no oldPK", NOW, {})], verify={"unmappable": 5}
    )
    assert status.unmappable == 1, "the last verification was about the other direction"
    (trouble,) = status.troubles
    assert "going back would lose 1 item" in trouble


def test_an_old_report_of_a_lag_is_ignored() -> None:
    """A function that no longer works reports nothing, so its last lag says nothing."""
    assert status_of(lag=AHEAD).lag == 0.5
    stale = status_of(lag={"seconds": 0.5, "at": NOW - 3600})
    assert stale.lag is None


UNMAPPED = [Unmapped("d", "it lacks day", NOW, {"id": {"S": "x"}})]
STACK = {"stack": "Keyhop"}


@pytest.mark.parametrize(
    ("fields", "expected"),
    [
        ({"deployment": STACK, "unmapped": UNMAPPED}, "rekey status Old --to New --show-keys full"),
        ({"unmapped": UNMAPPED}, "rekey verify Old --to New"),
        ({"verify": {**CLEAN, "unmappable": 1}}, "rekey verify Old --to New"),
        ({"verify": {**CLEAN, "irreversible": 1}}, "rekey verify Old --to New"),
        ({"verify": {**CLEAN, "unmappable": 1}, "deployment": STACK}, "rekey verify Old --to New"),
    ],
)
def test_the_next_step_of_unmappable_items_shows_some_or_counts_them_again(
    fields: dict[str, Any], expected: str
) -> None:
    status = status_of(backfill=COPIED, lag=AHEAD, **{"verify": CLEAN, **fields})
    command, reason = status.next_step
    assert command == f"keyhop {expected}"
    shows_keys = bool(status.unmapped)
    assert ("--show-keys full" in command + reason) == shows_keys, "only if it names an item"
    (trouble,) = status.troubles
    assert trouble.endswith("then verify") == ("verify" in command)


def test_a_running_verification_ends_before_items_are_counted_again() -> None:
    running = {"run": "w", "began": NOW - 10, "ended": None}
    status = status_of(backfill=COPIED, verify={**CLEAN, "unmappable": 1}, lag=AHEAD)
    status = replace(status, figures={**status.figures, "verifying": running})
    assert status.next_step[0] == "keyhop rekey status Old --to New"


def test_foreign_items_that_remain_are_a_trouble() -> None:
    report = {**CLEAN, "surplus": 2, "foreign": 2, "left": 2}
    status = status_of(backfill=COPIED, verify=report)
    (trouble,) = status.troubles
    assert trouble.startswith("2 items of New are foreign: no key of Old follows from them")
    command, reason = status.next_step
    assert command == "keyhop rekey verify Old --to New"
    assert reason.startswith("first delete the foreign items of New, or write them to Old")
    assert status_of(replace(WORKING, serving="destination"), verify=report).foreign == 0


@pytest.mark.parametrize("how", ["complete", "cancel"])
def test_an_end_that_was_killed_after_its_first_step_can_continue(how: Any) -> None:
    """The length of the window no longer matters, since nothing replicates any more."""
    serving: Any = "destination" if how == "complete" else "source"
    figures: dict[str, Any] = {"end": {"how": how, "delete": "", "export": ""}}
    figures["turned"] = {"at": NOW - 2 * 86_400, "serving": "destination"}
    status = status_of(Control(serving, turns=1), **figures)
    assert status.next_step[0].startswith(f"keyhop rekey {how} ")
    assert status.why_not_end(how, 7.0) == ""
    replicating = status_of(Control(serving, replicating=True, turns=1), **figures)
    assert bool(replicating.why_not_end("complete", 7.0)), "it has not begun: it replicates"


def table(name: str, identity: int = 1, stream: bool = True) -> Table:
    return Table(
        name,
        {
            "TableName": name,
            "TableArn": name,
            "TableId": str(identity),
            "StreamSpecification": {"StreamEnabled": stream},
            "LatestStreamArn": f"{name}/stream",
        },
    )


OLD, NEW = table("Old"), table("New")
IDENTITIES = {"identity": NEW.identity, "adopted": False, "source": OLD.identity}
CUT_OVER = replace(WORKING, serving="destination", turns=1)


@pytest.mark.parametrize(
    ("control", "old", "new", "says", "expected"),
    [
        (WORKING, OLD, NEW, "", "verify"),
        (WORKING, OLD, None, "table New does not exist any more: cancel", "cancel"),
        (WORKING, OLD, table("New", 2), "table New is another table", "cancel --keep-new"),
        (WORKING, None, NEW, "table Old does not exist any more: New may", "cancel --keep-new"),
        (WORKING, table("Old", 2), NEW, "table Old is another table", "cancel --keep-new"),
        (WORKING, table("Old", 1, False), NEW, "the stream of Old is off", "create"),
        (WORKING, OLD, table("New", 1, False), "the stream of New is off", "create"),
        (CUT_OVER, None, NEW, "table Old does not exist any more: no rollback", "status"),
        (CUT_OVER, OLD, None, "table New does not exist any more: Old may", "status"),
    ],
)
def test_a_missing_table_and_a_stream_that_is_off_are_troubles(
    control: Control, old: Table | None, new: Table | None, says: str, expected: str
) -> None:
    figures: dict[str, Any] = {"copied": [], "destination": IDENTITIES, "backfill": COPIED}
    figures["turned"] = {"at": NOW - 60, "serving": "destination"}
    status = status_of(control, tables={"source": old, "destination": new}, **figures)
    assert [trouble.startswith(says) for trouble in status.troubles] == [True] * bool(says)
    action, _, flags = expected.partition(" ")
    command, reason = status.next_step
    assert command.startswith(f"keyhop rekey {action} Old --to New")
    assert command.endswith(flags)
    assert reason
    text = "\n".join(status_lines(status))
    if None in (old, new):
        assert "does not exist any more" in status.means
    if old is None:
        assert "leaves Old as it was" not in text
        assert "Old serves as before" not in text
    if new is None:
        assert "deletes New" not in text


def test_a_missing_destination_is_no_trouble_while_it_is_created_or_deleted() -> None:
    tables: Any = {"source": OLD, "destination": None}
    creating = status_of(Control(), destination={"identity": "", "adopted": False}, tables=tables)
    assert (creating.troubles, creating.phase) == ([], "creating")
    assert "create" in creating.next_step[0]
    end = {"how": "cancel", "delete": "New", "export": ""}
    ending = status_of(Control(), copied=[], destination=IDENTITIES, end=end, tables=tables)
    assert (ending.troubles, ending.phase) == ([], "ending")
