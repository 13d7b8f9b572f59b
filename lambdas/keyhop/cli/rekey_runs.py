"""`keyhop rekey start` and `verify`: the copy and the comparison, here or by a deployment."""

import time
from collections.abc import Mapping
from contextlib import ExitStack
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from keyhop.cli.exit_status import DONE, DRIFT_FOUND
from keyhop.cli.rekey_outcomes import compared_lines, copied_lines, cost_line, cost_lines
from keyhop.cli.rekey_pair import PairCommand
from keyhop.cli.session import PREFIX, Facts
from keyhop.dynamodb.units import write_units
from keyhop.errors import CannotStart
from keyhop.jobs.journal import Journal
from keyhop.jobs.local import check_is_begun
from keyhop.jobs.request import Request
from keyhop.rekey.backfill import check_unsharded
from keyhop.rekey.compare.looks import NOT_EQUAL
from keyhop.rekey.life_cycle.start import Starting
from keyhop.rekey.pace import THROTTLE, pace_of
from keyhop.rekey.pair import Pair
from keyhop.rekey.request import SHARDS, BackfillInput, VerifyInput, digests_of, with_digests
from keyhop.rekey.side.figures import DEPLOYMENT, LAG
from keyhop.rekey.side.table import SideTable
from keyhop.rekey.template.files import text_of
from keyhop.storage.local import DIGESTS, Directory
from keyhop.tasks import transform_of
from keyhop.wording import duration

ALONE = (
    "No function follows {} here: what was written since the copy began is missing in {}, until "
    "keyhop rekey verify finds and repairs it while nobody writes."
)


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
    facts = partial(_facts, command)
    if options.dry_run:
        told = dict(facts())
        command.put_out(told, lambda: "\n".join(f"{name:11} {text}" for name, text in told.items()))
        return DONE
    if not options.resume:
        command.confirm(f"copy {command.table.name} into {command.to}", facts)
    given = _without_none(
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
        return deployed.run("RekeyBackfill", given, end, lambda: ("", _pace(side)))
    path = _path(command)
    items = command.table.source().item_count
    summary = _here(
        command, path, BackfillInput.parse(given), "copying", items, is_sharded=is_sharded
    )
    counts, examples = summary.get("counts", {}), summary.get("unmappable", ())
    lines = [*copied_lines(side.plan(), counts, examples), _cost(command, summary)]
    command.put_out(summary, lambda: "\n".join(lines))
    if deployed is None:
        command.say(ALONE.format(command.table.bare_name, command.to))
    return DONE


def verify(command: PairCommand) -> int:
    """Compare, and repair."""
    options = command.options
    pair = command.side().plan()
    given = _without_none(
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
        return deployed.run("RekeyVerify", given, partial(_compared_there, pair))
    summary = _verified_here(command, VerifyInput.parse(given))
    counts = summary.get("counts", {})
    lines = [*compared_lines(pair, counts), _cost(command, summary)]
    command.put_out(summary, lambda: "\n".join(lines))
    return _status_of(counts)


def _pace(side: SideTable) -> list[str]:
    """How far the functions are behind, and what holds the copy back."""
    lag = side.told(f"{LAG}.forward")
    pace = pace_of(side.told(THROTTLE), lag, time.time())
    told = [] if lag is None else [f"live writes {lag['seconds']:.1f} s behind"]
    return [*told, pace.reason] if pace.reason else told


def _status_of(counts: Mapping[str, int]) -> int:
    return DRIFT_FOUND if any(counts.get(name) for name in NOT_EQUAL) else DONE


def _copied_there(pair: Pair, output: Mapping[str, Any]) -> tuple[int, list[str]]:
    return DONE, [*copied_lines(pair, output["outcomes"]), *cost_lines(output["cost"])]


def _compared_there(pair: Pair, output: Mapping[str, Any]) -> tuple[int, list[str]]:
    counts = output["compared"]
    return _status_of(counts), [*compared_lines(pair, counts), *cost_lines(output["cost"])]


def _cost(command: PairCommand, summary: Mapping[str, Any]) -> str:
    reads, writes = summary.get("read_units", 0.0), summary.get("write_units", 0.0)
    return cost_line(command.connection.prices, reads, writes)


def _verified_here(command: PairCommand, request: Request) -> Mapping[str, Any]:
    """The digests, and then their comparison, in a place for the time being if none is given."""
    with ExitStack() as aside:
        path = _path(command) or Path(aside.enter_context(TemporaryDirectory(prefix=PREFIX)))
        known: dict[str, Any] = {"journal_of": lambda path: Journal(Directory(Path(path)))}
        beside = path / DIGESTS
        items = 2 * command.table.source().item_count
        digests = _here(command, beside, digests_of(request), "reading both", items, **known)
        request = with_digests(request, str(beside))
        summary = _here(command, path, request, "comparing", **known)
    read = digests["read_units"] + summary["read_units"]
    return {**summary, "read_units": round(read, 3)}


def _path(command: PairCommand) -> Path | None:
    """Of the run; raises CannotStart, or RunConflict, if there is none to go on with."""
    options = command.options
    path = Path(options.output) if options.output else None
    if options.resume:
        if path is None:
            raise CannotStart("--resume needs --output DIR: the directory of the run.")
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
    """The manifest of a run of this process; knowing: as of tasks_of. Raises Stopped.

    items: about so many are to be read, 0 if that is not known.
    """
    options = command.options
    if options.functions is not None:
        knowing["transform_of"] = partial(transform_of, trusted=text_of(Path(options.functions)))
    tasks = command.tasks(sentinels_of=command.key_index.sentinels_of, **knowing)
    job = command.run_job(path, request, tasks, state, float(items) or None)
    return job.journal.manifest() or {}


def _facts(command: PairCommand) -> Facts:
    """What the copy comes to, by what DescribeTable says."""
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


def _without_none(given: Mapping[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in given.items() if value is not None}
