"""The stages of the control item."""

import pytest
from keyhop.rekey.control import Control, Evidence

OPEN = Control(replicating=True)
FENCED = OPEN.closed().froze().fenced()


def test_a_cutover_and_a_rollback_pass_all_stages() -> None:
    forward = FENCED.turned().opened()
    assert (forward.serving, forward.stage, forward.revision) == ("destination", "open", 5)
    back = forward.closed().froze().fenced().turned().opened()
    assert (back.serving, back.stage, back.revision) == ("source", "open", 10)
    assert (forward.turns, back.turns) == (1, 2), "each change of the serving table is counted"
    assert Control.from_json(back.to_json()) == back


@pytest.mark.parametrize("control", [OPEN.closed(), OPEN.closed().froze(), FENCED])
def test_a_change_can_be_called_off_until_it_has_turned(control: Control) -> None:
    off = control.aborted()
    assert (off.serving, off.stage, off.revision) == ("source", "open", control.revision + 1)


@pytest.mark.parametrize("control", [OPEN, FENCED.turned()])
def test_no_change_can_be_called_off_before_it_starts_or_after_it_turned(control: Control) -> None:
    with pytest.raises(ValueError, match="no change to cancel"):
        control.aborted()


def test_stages_come_one_after_the_other() -> None:
    with pytest.raises(ValueError, match="turned comes after fenced, and not after frozen"):
        OPEN.closed().froze().turned()


def test_batches_write_in_one_direction_and_in_none_while_fenced() -> None:
    turned = FENCED.turned()
    controls = [OPEN, OPEN.closed(), OPEN.closed().froze(), FENCED, turned, turned.opened()]
    forward = [control.share_of("forward") for control in controls]
    assert forward == ["work", "work", "work", "later", "pass", "pass"]
    reverse = [control.share_of("reverse") for control in controls]
    assert reverse == ["pass", "pass", "pass", "pass", "later", "work"]


def test_records_are_kept_while_replication_is_paused() -> None:
    paused = OPEN.changed(replicating=False)
    assert (paused.direction, paused.share_of("forward")) == (None, "later")


def test_earlier_leases_end_before_the_next_stage() -> None:
    assert OPEN.closed().settle == OPEN.lease
    assert OPEN.closed().froze().settle == OPEN.closed().lease
    assert FENCED.turned().settle == FENCED.lease


def test_a_change_enters_its_next_stage_only_with_the_evidence_for_it() -> None:
    closing, long = OPEN.closed(), 60.0
    assert closing.following(Evidence(29.9)) == (None, "leases")
    frozen = closing.froze()
    assert closing.following(Evidence(30.0)) == (frozen, "")
    assert frozen.following(Evidence(1.9, drained=True)) == (None, "leases")
    assert frozen.following(Evidence(long)) == (None, "the drain")
    assert frozen.following(Evidence(long, drained=True, claims=1)) == (None, "claims")
    assert frozen.following(Evidence(long, drained=True, open_batches=1)) == (None, "batches")
    assert frozen.following(Evidence(long, drained=True)) == (FENCED, "")
    for stage in (frozen, FENCED):
        assert stage.following(Evidence(long, True, 1, 1, stragglers=1)) == (None, "stragglers")
    assert FENCED.following(Evidence(0.0, open_batches=1)) == (None, "batches")
    assert FENCED.following(Evidence(0.0, claims=1)) == (None, "claims")
    assert FENCED.following(Evidence(0.0)) == (FENCED.turned(), "")
    turned = FENCED.turned()
    assert turned.following(Evidence(1.9)) == (None, "leases")
    assert turned.following(Evidence(2.0, open_batches=1, claims=1)) == (turned.opened(), "")
    with pytest.raises(ValueError, match="no change is in progress"):
        OPEN.following(Evidence(long))


@pytest.mark.parametrize(
    "body",
    [
        [],
        "text",
        {},
        {"stage": "open", "revision": 1},
        {"serving": "nobody", "stage": "open", "revision": 1},
        {"serving": "source", "stage": "ajar", "revision": 1},
        {"serving": "source", "stage": "open", "revision": "1"},
    ],
)
def test_an_invalid_control_item_is_refused(body: object) -> None:
    with pytest.raises(ValueError, match="the table that serves"):
        Control.from_json(body)


def test_unknown_fields_of_another_version_are_ignored() -> None:
    body = {"serving": "destination", "stage": "open", "revision": 7, "later": True}
    assert Control.from_json(body) == Control("destination", "open", 7)
