"""`keyhop rekey cutover` and `rollback`: another table serves."""

import time
from collections.abc import Iterator, Sequence

from keyhop.cli.confirm import Facts
from keyhop.cli.exit_status import DONE, DRIFT_FOUND, FAILED
from keyhop.cli.rekey_outcomes import Stages, serves_line, serving_of
from keyhop.cli.rekey_pair import PairCommand
from keyhop.dynamodb.client import aws_client, connect
from keyhop.errors import CannotStart, KeyhopError
from keyhop.rekey.control import Side
from keyhop.rekey.cutover.assembly import Around, change_of
from keyhop.rekey.cutover.change import Change, Next
from keyhop.rekey.cutover.gates import Gate, are_open
from keyhop.rekey.life_cycle.expiry import follow
from keyhop.rekey.pair import Pair
from keyhop.rekey.side.layout import TURNED

GATE_SHUT = DRIFT_FOUND
"""The exit status."""

NOBODY = "no deployment is known to follow it (start --stack)"

REQUEST_SECONDS = 2.0
CONNECTIONS = 32


def cutover(command: PairCommand) -> int:
    """NEW serves."""
    return _change(
        command, "destination", f"let {command.to} serve instead of {command.table.name}"
    )


def rollback(command: PairCommand) -> int:
    """TABLE serves again."""
    return _change(command, "source", f"let {command.table.name} serve again")


def _change(command: PairCommand, to: Side, act: str) -> int:
    options = command.options
    side = command.side()
    control, pair = side.control(), side.plan()
    if control.stage == "open" and control.serving == to:
        if not options.dry_run and side.told(TURNED) is not None:
            move_expiry(command)  # which a state machine does not do
        raise CannotStart(f"The {to} serves already: see keyhop rekey status.")
    change = _from_here(command, to)
    looked = change.dry_run()
    if options.dry_run:
        command.put_out(looked.to_json(), lambda: "\n".join(_gate_lines(looked.gates)))
        return DONE if are_open(list(looked.gates)) else GATE_SHUT
    if control.stage == "open" and not are_open(list(looked.gates)):
        command.put_out(looked.to_json(), lambda: "\n".join(_gate_lines(looked.gates)))
        return GATE_SHUT

    def facts() -> Facts:
        for gate in looked.gates:
            yield gate.name, gate.says
        yield "writes", "wait for a few seconds; reads never do"

    command.confirm(act, facts)
    if (deployed := command.by_deployment) is not None:
        given = {
            "rekey": command.to,
            "to": to,
            "accept": getattr(options, "accept", False),
            "expect": getattr(options, "expect", None),
            "freezeLimit": getattr(options, "freeze_limit", None),
        }
        wanted = {name: value for name, value in given.items() if value not in (None, False)}
        status = deployed.run(
            "RekeyCutOver",
            wanted,
            lambda output: (DONE, [serves_line(pair, output["control"], output.get("pause"))]),
            Stages(pair, side.control, time.monotonic),
        )
        if status == DONE:
            move_expiry(command)
        return status
    found = change.run()
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


def _from_here(command: PairCommand, to: Side) -> Change:
    """With requests that are answered soon, or not at all: a freeze has no time for others."""
    options, deployed = command.options, command.deployed
    endpoint = command.connection.endpoint
    if deployed is None:
        around = Around(mapped=lambda: {"forward": NOBODY, "reverse": NOBODY})
    else:
        seen = deployed.seen(command.connection, command.side().plan())
        around = Around(seen.failed, seen.mapped, seen.way_back)
    return change_of(
        connect(endpoint, CONNECTIONS, patience=REQUEST_SECONDS),
        command.to,
        to,
        aws_client("dynamodbstreams", endpoint),
        around=around,
        accept=getattr(options, "accept", False),
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
    yield "All gates are open." if not shut else f"{shut} of {len(gates)} gates are shut."


def _end_lines(pair: Pair, found: Next) -> Iterator[str]:
    control = found.control.to_json()
    if found.action == "done":
        yield serves_line(pair, control, found.pause)
        return
    if found.gates:
        yield from _gate_lines(found.gates)
    yield f"Called off: {serving_of(pair, control)} serves as before. {found.why}".rstrip()
