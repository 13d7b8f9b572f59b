"""What `keyhop rekey` does: each action by its name. Here, those about the side table alone."""

from collections.abc import Callable, Mapping
from dataclasses import asdict
from importlib import import_module
from typing import Any

from keyhop.cli.exit_status import DONE, FAILED
from keyhop.cli.options import Options
from keyhop.cli.output import check_report_path
from keyhop.cli.rekey_pair import PairCommand
from keyhop.cli.session import stop_on_signals
from keyhop.errors import CannotStart
from keyhop.rekey.pace import THROTTLE
from keyhop.wording import counted

ELSEWHERE = {
    "plan": "rekey_plan",
    "create": "rekey_tables",
    "complete": "rekey_tables",
    "cancel": "rekey_tables",
    "start": "rekey_runs",
    "verify": "rekey_runs",
    "cutover": "rekey_changes",
    "rollback": "rekey_changes",
}
"""Where the other actions are."""


def run(options: Options) -> int:
    """One action on a pair of tables; returns its exit status."""
    check_report_path(options.report)
    module = ELSEWHERE.get(options.action)
    action: Callable[[PairCommand], int]
    if module is None:
        action = HERE[options.action]
    else:
        action = getattr(import_module(f"keyhop.cli.{module}"), options.action)
    with stop_on_signals("Start the same command again: it goes on.") as stop:
        return action(PairCommand(options, stop))
    return stop.status


def throttle(command: PairCommand) -> int:
    """The rate of the copy."""
    rate = command.options.rate
    act = f"hold the copy of {command.table.name} under {rate:g} write units a second"
    return _tell_pace(command, act, {"rate": rate or None, "paused": rate == 0})


def pause(command: PairCommand) -> int:
    """The copy stands."""
    return _tell_pace(command, f"let the copy of {command.table.name} stand", {"paused": True})


def resume(command: PairCommand) -> int:
    """It goes on."""
    return _tell_pace(command, f"let the copy of {command.table.name} go on", {"paused": False})


def _tell_pace(command: PairCommand, act: str, more: Mapping[str, Any]) -> int:
    side = command.side()
    command.confirm(act)
    side.tell(THROTTLE, {"rate": None, "paused": False, **(side.told(THROTTLE) or {}), **more})
    return command.put_out_status(side)


def shadow(command: PairCommand) -> int:
    """The share of reads that is made on both tables."""
    percent, side = command.options.share, command.side()
    standing = command.standing(side)
    real = standing.shadowed["real"]
    if real and percent / 100 > standing.control.shadow:
        raise CannotStart(
            f"Shadow reads have found {counted(real, 'real difference')}: verify; when the routers "
            "that found them have gone, or were started anew, the share may grow."
        )
    command.confirm(f"make {percent:g} % of the reads on both tables")
    command.change(side, lambda control: control.changed(shadow=percent / 100))
    return command.put_out_status(side)


def status(command: PairCommand) -> int:
    """How far it is."""
    return command.put_out_status(command.side())


def redrive(command: PairCommand) -> int:
    """What the functions gave up; 2 if some of it is left."""
    pair, stack = command.side().plan(), command.stack
    if stack is None:
        raise CannotStart("No deployment is known to follow the tables: give --stack.")
    command.confirm(f"have what was given up of {command.table.name} and {command.to} settled")
    done = stack.deployed(command.connection, pair).redrive()
    lines = [f"{counted(done.settled, 'message')} settled"]
    if done.left:
        lines.append(f"  {done.left:,} left, and stay in the queue: {done.why}")
    if done.others:
        lines.append(f"  {done.others:,} of other pairs, or of no key: left as they are")
    command.put_out(asdict(done), lambda: "\n".join(lines))
    return FAILED if done.left else DONE


HERE = {one.__name__: one for one in (throttle, pause, resume, shadow, status, redrive)}
