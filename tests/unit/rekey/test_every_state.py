"""`keyhop rekey status` names one next command in each state, and the command is not refused."""

import re

import pytest
from keyhop.public.rekey_text import status_lines
from keyhop.rekey.control import other_side
from keyhop.rekey.pair import Pair
from keyhop.rekey.standing import WINDOW_DAYS, RekeyStatus, are_open

from testing.rekey_states import states

STATES = states(Pair("Orders", "OrdersByDay", {}), 1_795_000_000.0)
COMMAND = re.compile(r"keyhop rekey (\w+) Orders --to OrdersByDay((?: --[a-z-]+(?: (?!--)\S+)?)*)")


def is_allowed(state: RekeyStatus, action: str, flags: str) -> bool:
    """Return whether the rules that the commands use allow this command."""
    control, phase = state.control, state.phase
    if phase == "ending":
        how = state.ending["how"]
        return bool(action == how and not state.why_not_end(how, WINDOW_DAYS))
    if action in ("cutover", "rollback"):
        to = "destination" if action == "cutover" else "source"
        if control.stage != "open":
            return True  # it continues the change, or calls it off
        return control.serving != to and ("--dry-run" in flags or are_open(state.gates(to)))
    if action in ("complete", "cancel"):
        how = "complete" if action == "complete" else "cancel"
        starts_window = action == "complete" and state.turned_at is None
        return starts_window or not state.why_not_end(how, WINDOW_DAYS)
    is_before = control.serving == "source" and control.stage == "open"
    return {
        "create": phase == "creating",
        "start": is_before and phase != "creating",
        "resume": bool(state.figure("throttle").get("paused")),
        "verify": not state.why_not_compare(repair=True),
        "redrive": bool(state.figure("deployment")) and bool(state.failed),
        "status": True,
    }[action]


@pytest.mark.parametrize("name", STATES)
def test_it_names_one_next_command_and_only_commands_that_are_not_refused(name: str) -> None:
    state = STATES[name]
    command, reason = state.next_step
    assert COMMAND.fullmatch(command)
    assert reason
    for text in (command, reason, state.safe):
        for action, flags in COMMAND.findall(text):
            assert is_allowed(state, action, flags), f"{action} is refused: {text}"
    lines = list(status_lines(state))
    assert sum(line.startswith("  next ") for line in lines) == 1
    assert lines[-2].split(maxsplit=1) == ["next", command]


@pytest.mark.parametrize("name", STATES)
def test_no_sentence_contradicts_another(name: str) -> None:
    state = STATES[name]
    lines = list(status_lines(state))
    everything = "\n".join(lines)
    if state.control.stage in ("frozen", "fenced", "turned") and state.phase == "changing":
        assert "writes wait" in state.means
        assert "reads and writes go on" not in everything
        assert "reads and writes continue" not in everything
    if state.phase == "verified":
        assert not state.why_not_verified
    serves = "Orders" if state.control.serving == "source" else "OrdersByDay"
    assert f"  serves       {serves}" in lines
    gates = state.gates(other_side(state.control.serving))
    if "loses nothing" in state.safe:
        assert are_open(gates)
    if "all gates are open" in state.next_step[1]:
        assert are_open(gates)
    if any("nobody follows the stream" in trouble for trouble in state.troubles):
        assert "writes are followed" not in everything
    if not state.figure("deployment"):
        assert "  followed by  nobody" in lines
        assert "writes are followed" not in everything
    if any("start with remote=True" in trouble for trouble in state.troubles):
        assert state.control.serving == "source", "start is refused after a cutover"
