"""How far a re-key is said to be, and what is said to come next."""

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


def standing(control: Control = WORKING, **more: Any) -> RekeyStatus:
    figures = {name: more.pop(name) for name in list(more) if name in FIGURES}
    figures["lag.forward"] = figures.pop("lag", None)
    return RekeyStatus(Pair("Old", "New", {}), control, NOW, figures=figures, **more)


FIGURES = (
    *("copied", "end", "ending", "backfill", "throttle", "verify", "lag"),
    *("deployment", "destination", "turned"),
)

SHADOWING = standing(replace(WORKING, shadow=0.1), backfill=COPIED, verify=CLEAN, lag=AHEAD)


@pytest.mark.parametrize(
    ("one", "phase", "todo"),
    [
        (standing(Control()), "creating", "rekey create"),
        (standing(Control(), copied=[]), "created", "rekey start"),
        (standing(Control(), copied=[], ending={"how": "cancel"}), "ending", "rekey cancel"),
        (standing(Control(), copied=[], end={"how": "cancel"}), "ending", "rekey cancel"),
        (standing(), "copying", "rekey start"),
        (standing(throttle={"paused": True}), "paused", "rekey resume"),
        (standing(Control(), copied=[], throttle={"paused": True}), "created", "rekey resume"),
        (standing(backfill=COPIED), "copied", "rekey verify"),
        (standing(backfill=COPIED, throttle={"paused": True}), "copied", "rekey verify"),
        (
            standing(backfill=COPIED, verify=CLEAN, lag=AHEAD),
            "verified",
            "rekey cutover Old --to New --dry-run",
        ),
        (
            standing(backfill=COPIED, verify={**CLEAN, "missing": 1, "left": 1}),
            "copied",
            "rekey verify",
        ),
        (standing(backfill=COPIED, verify={**CLEAN, "missing": 1}), "verified", ""),
        (standing(backfill=COPIED, verify={**CLEAN, "share": 0.5}), "copied", "rekey verify"),
        (
            standing(backfill=COPIED, verify={**CLEAN, "at": NOW - VERIFY_SECONDS}),
            "copied",
            "rekey verify",
        ),
        (standing(backfill={**COPIED, "ended": None}, verify=CLEAN), "copying", "wait"),
        (standing(backfill=COPIED, verify={**CLEAN, "began": NOW - 85}), "copied", "rekey verify"),
        (SHADOWING, "shadowing", "rekey cutover Old --to New --dry-run"),
        (standing(replace(WORKING, shadow=0.1), backfill=COPIED), "copied", "rekey verify"),
        (standing(replace(Control(), shadow=0.1), copied=[]), "created", "rekey start"),
        (standing(replace(WORKING, stage="frozen")), "changing", "calls it off"),
        (standing(replace(WORKING, serving="destination")), "cut over", "keyhop rekey complete"),
    ],
)
def test_the_phase_and_what_comes_next(one: RekeyStatus, phase: Phase, todo: str) -> None:
    assert one.phase == phase
    assert todo in " ".join(one.next_step)
    assert one.means


def test_what_is_wrong_is_named_and_comes_before_the_cutover() -> None:
    one = standing(
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
    assert len(one.troubles) == 7
    assert one.next_step[0] == "keyhop rekey redrive Old --to New"


def test_routers_without_a_guard_are_named_if_they_are_alive() -> None:
    clients = {
        "guarded": {"until": NOW + 1, "guarded": True},
        "b": {"until": NOW + 1, "guarded": False},
        "a": {"until": NOW + 1, "guarded": False},
        "gone": {"until": NOW - 1, "guarded": False},
    }
    one = standing(backfill=COPIED, verify=CLEAN, lag=AHEAD, clients=clients)
    assert one.unguarded == ["a", "b"]
    (trouble,) = one.troubles
    assert trouble.startswith("2 routers have no guard: ")
    assert "clients=[dynamodb]" in trouble
    assert "see to the trouble first" in one.next_step[1]
    assert "  clients      3, 2 without a guard" in status_lines(one)
    shown = one.to_json()
    assert (shown["clients"], shown["unguarded_clients"]) == (3, 2)


def test_guarded_routers_are_no_trouble() -> None:
    one = standing(clients={"guarded": {"until": NOW + 1, "guarded": True}})
    assert one.unguarded == []
    assert one.troubles == []
    assert "  clients      1" in status_lines(one)


@pytest.mark.parametrize("repairs", [False, True])
@pytest.mark.parametrize("kind", [*DIFFERENCES, "unsettled"])
def test_what_verify_has_left_is_told_as_the_gate_has_it(kind: str, repairs: bool) -> None:
    plan = SimpleNamespace(id="r", options={"began": "2026-11-22T00:00:00+00:00"})
    counts = {kind: 2, "repaired": 2 if repairs else 0}
    if kind == "unsettled":  # a repair leaves none: what it has settled is in flight
        counts = {"in_flight" if repairs else kind: 2}
    told = told_of(cast(RunPlan, plan), counts, NOW - 1)
    one = standing(backfill=COPIED, verify=told)
    is_open = {gate.name: gate.is_open for gate in one.gates("destination")}["verified"]
    assert (one.phase == "verified") == is_open == repairs


@pytest.mark.parametrize("serving", ["source", "destination"])
def test_writes_wait_in_a_change_only_when_it_is_frozen(serving: Any) -> None:
    """One that is left in `closing` hurts nobody, and nobody calls it off by himself."""
    command, opposite = "cutover", "rollback"
    if serving == "destination":
        command, opposite = opposite, command
    closing = standing(replace(WORKING, stage="closing", serving=serving))
    assert "writes go on" in closing.means
    assert closing.next_step[0] == f"keyhop rekey {command} Old --to New"
    assert f"{opposite} Old --to New calls the {command} off" in closing.safe
    for stage in ("frozen", "fenced"):
        frozen = standing(replace(WORKING, stage=cast(Any, stage), serving=serving))
        assert "writes wait" in frozen.means
        assert frozen.next_step[0] == f"keyhop rekey {command} Old --to New"
        assert "calls it off" in frozen.next_step[1]
    turned = standing(replace(WORKING, stage="turned", serving=serving))
    assert turned.next_step[0] == f"keyhop rekey {opposite} Old --to New"
    assert "completes it" in turned.next_step[1]


def test_what_was_compared_and_differed_is_not_said_to_be_uncompared() -> None:
    one = standing(backfill=COPIED, verify={**CLEAN, "contended": 1, "left": 1})
    assert one.phase == "copied"
    assert "1 difference remained" in one.means


def test_items_that_are_mended_need_another_verify() -> None:
    one = standing(backfill=COPIED, verify={**CLEAN, "unmappable": 2})
    assert one.unmappable == 2
    (told,) = one.troubles
    assert told.startswith("2 items cannot be mapped, as the last comparison has found")
    assert "verify" in told


def test_what_cannot_go_back_is_said_to_be_lost_by_a_rollback() -> None:
    after = replace(WORKING, serving="destination")
    one = standing(after, unmapped=[Unmapped("d", "no oldPK", NOW, {})], verify={"unmappable": 5})
    assert one.unmappable == 1, "the last verification was about the other direction"
    (told,) = one.troubles
    assert "going back would lose 1 item" in told


def test_a_lag_that_was_told_long_ago_is_none() -> None:
    """A function that no longer works tells nothing: that is not a lag of half a second."""
    assert standing(lag=AHEAD).lag == 0.5
    stale = standing(lag={"seconds": 0.5, "at": NOW - 3600})
    assert stale.lag is None


UNMAPPED = [Unmapped("d", "it lacks day", NOW, {"id": {"S": "x"}})]
STACK = {"stack": "Keyhop"}


@pytest.mark.parametrize(
    ("more", "todo"),
    [
        ({"deployment": STACK, "unmapped": UNMAPPED}, "rekey status Old --to New --show-keys full"),
        ({"unmapped": UNMAPPED}, "rekey verify Old --to New"),
        ({"verify": {**CLEAN, "unmappable": 1}}, "rekey verify Old --to New"),
        ({"verify": {**CLEAN, "irreversible": 1}}, "rekey verify Old --to New"),
        (
            {"verify": {**CLEAN, "unmappable": 1}, "deployment": STACK},
            "rekey verify Old --to New",
        ),
    ],
)
def test_the_next_step_of_unmappable_items_shows_some_or_counts_them_again(
    more: dict[str, Any], todo: str
) -> None:
    one = standing(backfill=COPIED, lag=AHEAD, **{"verify": CLEAN, **more})
    command, reason = one.next_step
    assert command == f"keyhop {todo}"
    shows_keys = bool(one.unmapped)
    assert ("--show-keys full" in command + reason) == shows_keys, "only if it names an item"
    (trouble,) = one.troubles
    assert trouble.endswith("then verify") == ("verify" in command)


def test_a_verification_that_runs_is_waited_for_before_items_are_counted_again() -> None:
    running = {"run": "w", "began": NOW - 10, "ended": None}
    one = standing(backfill=COPIED, verify={**CLEAN, "unmappable": 1}, lag=AHEAD)
    one = replace(one, figures={**one.figures, "verifying": running})
    assert one.next_step[0] == "keyhop rekey status Old --to New"


def test_foreign_items_that_remain_are_a_trouble() -> None:
    left = {**CLEAN, "surplus": 2, "foreign": 2, "left": 2}
    one = standing(backfill=COPIED, verify=left)
    (trouble,) = one.troubles
    assert trouble.startswith("2 items of New are foreign: no key of Old follows from them")
    command, reason = one.next_step
    assert command == "keyhop rekey verify Old --to New"
    assert reason.startswith("first delete the foreign items of New, or write them to Old")
    assert standing(replace(WORKING, serving="destination"), verify=left).foreign == 0


@pytest.mark.parametrize("how", ["complete", "cancel"])
def test_an_end_that_was_killed_after_its_first_step_can_go_on(how: Any) -> None:
    """Whatever window it was begun with: nothing replicates any more."""
    serving: Any = "destination" if how == "complete" else "source"
    figures: dict[str, Any] = {"end": {"how": how, "delete": "", "export": ""}}
    figures["turned"] = {"at": NOW - 2 * 86_400, "serving": "destination"}
    one = standing(Control(serving, turns=1), **figures)
    assert one.next_step[0].startswith(f"keyhop rekey {how} ")
    assert one.why_not_end(how, 7.0) == ""
    another = standing(Control(serving, replicating=True, turns=1), **figures)
    assert bool(another.why_not_end("complete", 7.0)), "it has not begun: something replicates"


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
MADE = {"identity": NEW.identity, "adopted": False, "source": OLD.identity}
THERE = replace(WORKING, serving="destination", turns=1)


@pytest.mark.parametrize(
    ("control", "old", "new", "says", "todo"),
    [
        (WORKING, OLD, NEW, "", "verify"),
        (WORKING, OLD, None, "table New does not exist any more: cancel", "cancel"),
        (WORKING, OLD, table("New", 2), "table New is another table", "cancel --keep-new"),
        (WORKING, None, NEW, "table Old does not exist any more: New may", "cancel --keep-new"),
        (WORKING, table("Old", 2), NEW, "table Old is another table", "cancel --keep-new"),
        (WORKING, table("Old", 1, False), NEW, "the stream of Old is off", "create"),
        (WORKING, OLD, table("New", 1, False), "the stream of New is off", "create"),
        (THERE, None, NEW, "table Old does not exist any more: no rollback", "status"),
        (THERE, OLD, None, "table New does not exist any more: Old may", "status"),
    ],
)
def test_a_table_that_is_lost_and_a_stream_that_is_off_are_troubles(
    control: Control, old: Table | None, new: Table | None, says: str, todo: str
) -> None:
    figures: dict[str, Any] = {"copied": [], "destination": MADE, "backfill": COPIED}
    figures["turned"] = {"at": NOW - 60, "serving": "destination"}
    one = standing(control, tables={"source": old, "destination": new}, **figures)
    assert [trouble.startswith(says) for trouble in one.troubles] == [True] * bool(says)
    action, _, flags = todo.partition(" ")
    command, reason = one.next_step
    assert command.startswith(f"keyhop rekey {action} Old --to New")
    assert command.endswith(flags)
    assert reason
    shown = "\n".join(status_lines(one))
    if None in (old, new):
        assert "does not exist any more" in one.means
    if old is None:
        assert "leaves Old as it was" not in shown
        assert "Old serves as before" not in shown
    if new is None:
        assert "deletes New" not in shown


def test_a_destination_that_is_not_made_yet_and_an_end_are_no_troubles_of_tables() -> None:
    tables: Any = {"source": OLD, "destination": None}
    making = standing(Control(), destination={"identity": "", "adopted": False}, tables=tables)
    assert (making.troubles, making.phase) == ([], "creating")
    assert "create" in making.next_step[0]
    end = {"how": "cancel", "delete": "New", "export": ""}
    ending = standing(Control(), copied=[], destination=MADE, end=end, tables=tables)
    assert (ending.troubles, ending.phase) == ([], "ending")
