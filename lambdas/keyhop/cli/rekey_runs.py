"""`keyhop rekey start`, `verify`, `cutover` and `rollback`: by this process or by a deployment."""

import time
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import ExitStack
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from keyhop.cli.exit_status import DONE, DRIFT_FOUND, FAILED
from keyhop.cli.output import aligned
from keyhop.cli.rekey_pair import PairCommand
from keyhop.cli.rekey_view import (
    MOST_SHOWN,
    Stages,
    compared_lines,
    copied_lines,
    cost_lines,
    execution_cost_lines,
    serves_line,
    serving_of,
)
from keyhop.cli.session import Facts, is_terminal
from keyhop.dynamodb.client import aws_client, connect
from keyhop.dynamodb.units import write_units
from keyhop.dynamodb.values import to_json
from keyhop.errors import CannotStart, KeyhopError
from keyhop.jobs.formats import json_text
from keyhop.jobs.journal import Journal
from keyhop.jobs.local import check_is_begun
from keyhop.jobs.request import Request
from keyhop.public.runs import PREFIX
from keyhop.rekey.backfill import check_unsharded
from keyhop.rekey.compare.looks import NOT_EQUAL
from keyhop.rekey.control import Side
from keyhop.rekey.cutover.assembly import CONNECTIONS, REQUEST_SECONDS, change_of
from keyhop.rekey.cutover.change import SHUT_BY_STRAGGLERS, Change, Next
from keyhop.rekey.cutover.deployed import NotDeployed
from keyhop.rekey.cutover.gates import ACCEPTABLE, Gate
from keyhop.rekey.life_cycle.create import Starting
from keyhop.rekey.life_cycle.end import settle_expiry
from keyhop.rekey.pace import THROTTLE, pace_of
from keyhop.rekey.pair import Pair
from keyhop.rekey.request import (
    SHARDS,
    STRAGGLERS,
    BackfillInput,
    VerifyInput,
    digests_of,
    with_digests,
)
from keyhop.rekey.side.layout import DEPLOYMENT, LAG, TURNED
from keyhop.rekey.side.table import SideTable
from keyhop.rekey.template.files import text_of
from keyhop.storage.local import DIGESTS, Directory
from keyhop.tasks import transform_of
from keyhop.wording import duration

ALONE = (
    "No function follows {} here: what was written since the copy began is missing in {}, until "
    "keyhop rekey verify finds and repairs it while nobody writes."
)

GATE_SHUT = DRIFT_FOUND
"""The exit status if a gate is shut."""

NOBODY = "no deployment is known to follow it (start --stack)"


def start(command: PairCommand) -> int:
    """Follow the old table, then copy it."""
    options = command.options
    side = command.side()
    control = side.control()
    if control.serving != "source" or control.stage != "open":
        raise CannotStart(
            f"{command.to} serves already, or is about to: there is nothing to copy. See keyhop "
            "rekey status."
        )
    deployed = command.stack
    is_sharded = command.shards_of(None if deployed is None else deployed.name)
    if SHARDS not in options.accept:
        check_unsharded(command.table, is_sharded)
    facts = partial(_copy_facts, command)
    if options.dry_run:
        report = dict(facts())
        command.put_out(report, lambda: "\n".join(aligned(report.items(), width=11)))
        return DONE
    if not options.resume:
        command.confirm(f"copy {command.table.name} into {command.to}", facts)
    values = _without_none(
        {
            "rekey": command.to,
            "maxWriteRate": options.max_write_rate,
            "maxReadRate": options.max_read_rate,
            "accept": [*options.accept] or None,
        }
    )
    if deployed is not None:
        side.tell(DEPLOYMENT, {"stack": deployed.name})
    command.all_steps(Starting(command.connection, side.plan(), command.followers()).step)
    if command.by_deployment is not None and deployed is not None:
        end = partial(_copied_there, side.plan())
        return deployed.run("RekeyBackfill", values, end, lambda: ("", _pace(side)))
    path = _path(command)
    items = command.table.source().item_count
    summary = _here(
        command, path, BackfillInput.parse(values), "copying", items, is_sharded=is_sharded
    )
    counts, examples = summary.get("counts", {}), summary.get("unmappable", ())
    lines = [
        *copied_lines(side.plan(), counts, examples),
        *cost_lines(summary, command.connection.prices),
    ]
    command.put_out(summary, lambda: "\n".join(lines))
    if deployed is None:
        command.say(ALONE.format(command.table.bare_name, command.to))
    return DONE


def verify(command: PairCommand) -> int:
    """Compare, and repair."""
    options = command.options
    pair = command.side().plan()
    values = _without_none(
        {
            "rekey": command.to,
            "repair": not options.no_repair,
            "share": options.share,
            "maxReadRate": options.max_read_rate,
        }
    )
    if not options.no_repair and not options.resume:
        command.confirm(f"compare {command.table.name} and {command.to}, and repair {command.to}")
    if (deployed := command.by_deployment) is not None:
        return deployed.run("RekeyVerify", values, partial(_compared_there, pair))
    summary = _verified_here(command, VerifyInput.parse(values))
    counts = summary.get("counts", {})
    lines = [*compared_lines(pair, counts), *cost_lines(summary, command.connection.prices)]
    command.put_out(summary, lambda: "\n".join(lines))
    return _status_of(counts)


def _pace(side: SideTable) -> list[str]:
    """Return the lag of the functions, and the reason for a slow copy."""
    lag = side.told(f"{LAG}.forward")
    pace = pace_of(side.told(THROTTLE), lag, time.time())
    parts = [] if lag is None else [f"live writes {lag['seconds']:.1f} s behind"]
    return [*parts, pace.reason] if pace.reason else parts


def _status_of(counts: Mapping[str, int]) -> int:
    return DRIFT_FOUND if any(counts.get(name) for name in NOT_EQUAL) else DONE


def _copied_there(pair: Pair, output: Mapping[str, Any]) -> tuple[int, list[str]]:
    return DONE, [*copied_lines(pair, output["outcomes"]), *execution_cost_lines(output["cost"])]


def _compared_there(pair: Pair, output: Mapping[str, Any]) -> tuple[int, list[str]]:
    counts = output["compared"]
    return _status_of(counts), [
        *compared_lines(pair, counts),
        *execution_cost_lines(output["cost"]),
    ]


def _verified_here(command: PairCommand, request: Request) -> Mapping[str, Any]:
    """Make the digests, then compare them, in a temporary directory without --output."""
    with ExitStack() as cleaning:
        path = _path(command) or Path(cleaning.enter_context(TemporaryDirectory(prefix=PREFIX)))
        more: dict[str, Any] = {"journal_of": lambda path: Journal(Directory(Path(path)))}
        beside = path / DIGESTS
        items = 2 * command.table.source().item_count
        digests = _here(command, beside, digests_of(request), "reading both", items, **more)
        request = with_digests(request, str(beside))
        summary = _here(command, path, request, "comparing", **more)
    read = digests["read_units"] + summary["read_units"]
    return {**summary, "read_units": round(read, 3)}


def _path(command: PairCommand) -> Path | None:
    """Return the run's directory; raise RunConflict if there is none to resume."""
    options = command.options
    path = Path(options.output) if options.output else None
    if path is not None and options.resume:
        check_is_begun(path)
    return path


def _here(
    command: PairCommand,
    path: Path | None,
    request: Request,
    state: str,
    items: int = 0,
    **knowing: Any,
) -> Mapping[str, Any]:
    """Run a job in this process and return its manifest. Raise Stopped.

    Args:
        items: About how many items will be read; 0 if that is unknown.
        knowing: Arguments of tasks_of.
    """
    options = command.options
    if options.functions is not None:
        knowing["transform_of"] = partial(transform_of, trusted=text_of(Path(options.functions)))
    tasks = command.tasks(sentinels_of=command.key_index.sentinels_of, **knowing)
    job = command.run_job(path, request, tasks, state, float(items) or None)
    return job.journal.manifest() or {}


def _copy_facts(command: PairCommand) -> Facts:
    """Estimate the copy by DescribeTable."""
    options, source = command.options, command.table.source()
    items, mean = source.item_count, source.mean_item_bytes or 0.0
    each = write_units(int(mean) or 1) * (1 + len(command.table.global_indexes))
    prices = command.connection.prices
    reads, writes = source.size_bytes / 8192, items * each
    yield "items", f"about {items:,}, as DynamoDB tells (up to six hours old)"
    yield "reads", f"about {reads:,.0f} RRU"
    yield "writes", f"about {writes:,.0f} WRU, with the indexes"
    yield "cost", f"about ${prices.dollars(reads, writes):,.4f} ({prices.on_demand})"
    yield "time", f"at least {duration(writes / options.max_write_rate)} of writing"


def _without_none(values: Mapping[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in values.items() if value is not None}


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
                for straggler in side.unsettled(MOST_SHOWN):
                    yield "", f"{json_text(to_json(straggler.key))} in the {straggler.side}"
        yield "writes", "wait for a few seconds; reads never do"

    if only_settles:
        act = "settle the writes that bypassed the routers; then the tables must be compared again"
    command.confirm(f"accept what is lost, and {act}" if shut else act, facts)
    accept |= {ACCEPTABLE[gate] for gate in shut}
    if (deployed := command.by_deployment) is not None:
        values = {
            "rekey": command.to,
            "to": to,
            "accept": sorted(accept),
            "expect": getattr(options, "expect", None),
            "freezeLimit": getattr(options, "freeze_limit", None),
        }
        order = {name: value for name, value in values.items() if value not in (None, [])}
        status = deployed.run(
            "RekeyCutOver",
            order,
            lambda output: (DONE, [serves_line(pair, output["control"], output.get("pause"))]),
            Stages(pair, side.control, time.monotonic),
        )
        if status == DONE:
            move_expiry(command)
        return status
    result = _from_here(command, to, accept).run()
    if result.action == "done":
        move_expiry(command)
    command.put_out(result.to_json(), lambda: "\n".join(_end_lines(pair, result)))
    return DONE if result.action == "done" else GATE_SHUT if result.action == "refused" else FAILED


def move_expiry(command: PairCommand) -> None:
    """Report errors only: the other table serves already, and `complete` tries again."""
    try:
        sentences = settle_expiry(command.connection, command.side())
    except KeyhopError as error:
        sentences = [f"items expire as before: {error}"]
    for says in sentences:
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


def _end_lines(pair: Pair, result: Next) -> Iterator[str]:
    control = result.control.to_json()
    if result.action == "done":
        yield serves_line(pair, control, result.pause)
        return
    if result.gates:
        yield from _gate_lines(result.gates)
    yield f"Called off: {serving_of(pair, control)} serves as before. {result.why}".rstrip()


ACTIONS = {action.__name__: action for action in (start, verify, cutover, rollback)}
