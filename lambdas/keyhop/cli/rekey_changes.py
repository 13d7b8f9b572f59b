"""`keyhop rekey cutover` and `rollback`: another table serves."""

import time
from collections.abc import Collection, Iterator, Sequence

from keyhop.cli.exit_status import DONE, DRIFT_FOUND, FAILED
from keyhop.cli.rekey_outcomes import Stages, serves_line, serving_of
from keyhop.cli.rekey_pair import PairCommand
from keyhop.cli.rekey_view import MOST_SHOWN
from keyhop.cli.session import Facts, is_terminal
from keyhop.dynamodb.client import aws_client, connect
from keyhop.dynamodb.values import to_json
from keyhop.errors import CannotStart, KeyhopError
from keyhop.jobs.formats import json_text
from keyhop.rekey.control import Side
from keyhop.rekey.cutover.assembly import CONNECTIONS, REQUEST_SECONDS, change_of
from keyhop.rekey.cutover.change import SHUT_BY_STRAGGLERS, Change, Next
from keyhop.rekey.cutover.deployed import NotDeployed
from keyhop.rekey.cutover.gates import ACCEPTABLE, Gate
from keyhop.rekey.life_cycle.expiry import follow
from keyhop.rekey.pair import Pair
from keyhop.rekey.request import STRAGGLERS
from keyhop.rekey.side.figures import TURNED

GATE_SHUT = DRIFT_FOUND
"""The exit status."""

NOBODY = "no deployment is known to follow it (start --stack)"


def cutover(command: PairCommand) -> int:
    """Let the new table serve; return the exit status."""
    act = f"let {command.to} serve instead of {command.table.name}"
    return _change(command, "destination", act)


def rollback(command: PairCommand) -> int:
    """Let the old table serve again; return the exit status."""
    return _change(command, "source", f"let {command.table.name} serve again")


def _change(command: PairCommand, to: Side, act: str) -> int:
    options = command.options
    side = command.side()
    control, pair = side.control(), side.plan()
    if control.stage == "open" and control.serving == to:
        if not options.dry_run and side.told(TURNED) is not None:
            move_expiry(command)  # which a state machine does not do
        raise CannotStart(f"The {to} serves already: see keyhop rekey status.")
    accept = set(options.accept)
    looked = _from_here(command, to, accept).dry_run()
    shut = {gate.name for gate in looked.gates if not gate.is_open}
    if options.dry_run:
        command.put_out(looked.to_json(), lambda: "\n".join(_gate_lines(looked.gates)))
        return GATE_SHUT if shut else DONE
    can_accept = shut <= ACCEPTABLE.keys() and not options.yes and is_terminal()
    settles = STRAGGLERS in accept and bool(side.unsettled(1))
    only_settles = settles and bool(shut) and shut <= SHUT_BY_STRAGGLERS
    if control.stage == "open" and shut and not (can_accept or only_settles):
        command.put_out(looked.to_json(), lambda: "\n".join(_gate_lines(looked.gates)))
        return GATE_SHUT

    def facts() -> Facts:
        for gate in looked.gates:
            yield gate.name, gate.says
            if gate.remedy:
                yield "", gate.remedy
            if gate.name == "stragglers":
                for one in side.unsettled(MOST_SHOWN):
                    yield "", f"{json_text(to_json(one.key))} in the {one.side}"
        yield "writes", "wait for a few seconds; reads never do"

    if only_settles:
        act = "settle the writes that bypassed the routers; then the tables must be compared again"
    command.confirm(f"accept what is lost, and {act}" if shut else act, facts)
    accept |= {ACCEPTABLE[gate] for gate in shut}
    if (deployed := command.by_deployment) is not None:
        given = {
            "rekey": command.to,
            "to": to,
            "accept": sorted(accept),
            "expect": getattr(options, "expect", None),
            "freezeLimit": getattr(options, "freeze_limit", None),
        }
        wanted = {name: value for name, value in given.items() if value not in (None, [])}
        status = deployed.run(
            "RekeyCutOver",
            wanted,
            lambda output: (DONE, [serves_line(pair, output["control"], output.get("pause"))]),
            Stages(pair, side.control, time.monotonic),
        )
        if status == DONE:
            move_expiry(command)
        return status
    found = _from_here(command, to, accept).run()
    if found.action == "done":
        move_expiry(command)
    command.put_out(found.to_json(), lambda: "\n".join(_end_lines(pair, found)))
    return DONE if found.action == "done" else GATE_SHUT if found.action == "refused" else FAILED


def move_expiry(command: PairCommand) -> None:
    """What is refused is told: the other table serves all the same, and `complete` asks again."""
    try:
        told = follow(command.connection, command.side())
    except KeyhopError as error:
        told = [f"items expire as before: {error}"]
    for says in told:
        command.say(f"  {says}")


def _from_here(command: PairCommand, to: Side, accept: Collection[str]) -> Change:
    """Return the change as made by this process, whatever follows the streams."""
    options, stack = command.options, command.stack
    endpoint = command.connection.endpoint
    return change_of(
        connect(endpoint, CONNECTIONS, patience=REQUEST_SECONDS),
        command.to,
        to,
        aws_client("dynamodbstreams", endpoint),
        deployed=NotDeployed(NOBODY)
        if stack is None
        else stack.deployed(command.connection, command.side().plan()),
        accept=accept,
        expect=getattr(options, "expect", None),
        freeze_limit=getattr(options, "freeze_limit", None),
        told=lambda step: command.say(f"  {step}"),
        check=command.check_stop,
    )


def _gate_lines(gates: Sequence[Gate]) -> Iterator[str]:
    width = max((len(gate.name) for gate in gates), default=0)
    for gate in gates:
        yield f"  {'open' if gate.is_open else 'SHUT'}  {gate.name.ljust(width)}  {gate.says}"
        if gate.remedy:
            yield f"        {' ' * width}  do: {gate.remedy}"
    shut = sum(not gate.is_open for gate in gates)
    yield (
        "All gates are open."
        if not shut
        else f"{shut} of {len(gates)} gates {'is' if shut == 1 else 'are'} shut."
    )


def _end_lines(pair: Pair, found: Next) -> Iterator[str]:
    control = found.control.to_json()
    if found.action == "done":
        yield serves_line(pair, control, found.pause)
        return
    if found.gates:
        yield from _gate_lines(found.gates)
    yield f"Called off: {serving_of(pair, control)} serves as before. {found.why}".rstrip()
