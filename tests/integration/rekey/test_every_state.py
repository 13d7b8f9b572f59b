"""In each state, `keyhop rekey status` names a next command that is not refused."""

import shlex
from pathlib import Path
from time import time
from typing import Any

import pytest
from keyhop.public import rekey
from keyhop.rekey.cutover.deployed import NotDeployed
from keyhop.rekey.standing import RekeyStatus

from testing.rekey_states import states as states_of
from testing.rekey_states import write
from tests.integration.rekey.pairs import Pairs, States, create_rekey

DRY_RUNS = {"start", "verify", "cutover", "rollback", "redrive", "complete", "cancel"}
SHUT, REFUSED = 3, 2


class StateDeployment(NotDeployed):
    """The deployment of a state."""

    def __init__(self, state: RekeyStatus) -> None:
        super().__init__()
        object.__setattr__(self, "state", state)

    def failed(self) -> Any:
        return self.state.failed  # type: ignore[attr-defined]

    def mapped(self) -> Any:
        return self.state.mapped  # type: ignore[attr-defined]


@pytest.mark.prove
def test_the_next_command_is_not_refused(
    pairs: Pairs, template: Path, states: States, monkeypatch: pytest.MonkeyPatch
) -> None:
    create_rekey(pairs, template)
    identity = pairs.side.told("destination")["identity"]
    for name, state in states_of(pairs.side.plan(), time(), identity).items():
        monkeypatch.setattr(rekey, "Deployed", lambda *_, state=state: StateDeployment(state))
        write(pairs.side, state)
        command = pairs.status()["next"]
        _, _, action, source, *flags = shlex.split(command)
        assert source == pairs.source
        if action == "create":
            continue  # it needs the template of the first create
        flags = [flag for flag in flags if flag not in ("--to", pairs.destination)]
        looks = ["--dry-run"] if action in DRY_RUNS and "--dry-run" not in flags else []
        result = pairs.rekey(action, *flags, *looks, yes=False)
        may_be_shut = state.control.stage != "open"  # a dry run of a change in progress exits so
        allowed = (0, SHUT) if may_be_shut else (0,)
        if state.phase == "cut over" and state.turned_at is None:
            allowed = (REFUSED,)  # it would start the window
        assert result.status in allowed, f"{name}: {command}: {result.out.decode()}{result.err}"
