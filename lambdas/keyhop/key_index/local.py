"""An action of the life cycle in one process, as the command has it."""

from collections.abc import Callable, Mapping
from typing import Any

from keyhop.key_index.life_cycle import LifeCycle


def all_steps(
    life_cycle_of: Callable[[], LifeCycle],
    walk: Callable[[LifeCycle, Mapping[str, Any]], str],
    wait: Callable[[str], None],
) -> dict[str, Any]:
    """The steps of an action, one after the other as a state machine has them; the last state.

    life_cycle_of: the table's, as it is now. walk: does the job that it is given, and returns its
    run. wait: is told for what.
    """
    step = "prepare"
    state: dict[str, Any] = {}
    while True:
        life_cycle = life_cycle_of()
        state |= life_cycle.step(step, state)
        if state["next"] in ("planned", "end"):
            return state
        if state["next"] == "wait":
            wait(state["says"])
            continue
        if state["next"] == "walk":
            for job, walked in (("walk", "walked"), ("audit", "audited")):
                if job in state:
                    state[walked] = {"run": walk(life_cycle, state[job])}
        step = "finish"
