"""What `keyhop rekey` does; start, verify, cutover and rollback are in rekey_runs.py."""

import sys
from collections.abc import Callable, Iterator, Mapping
from dataclasses import asdict, replace
from functools import partial
from pathlib import Path
from typing import Any

from keyhop.cli.exit_status import DONE, DRIFT_FOUND, FAILED
from keyhop.cli.options import Options
from keyhop.cli.output import aligned
from keyhop.cli.progress import StatusLine
from keyhop.cli.rekey_pair import PairCommand
from keyhop.cli.session import ASK_ABOVE, Facts, stop_on_signals
from keyhop.dynamodb.schema import KeyAttribute, KeySpace
from keyhop.dynamodb.values import Item, KeyType, to_json
from keyhop.errors import CannotStart
from keyhop.jobs.request import TABLE_NAME
from keyhop.rekey.digest import key_digest
from keyhop.rekey.life_cycle.create import Creation, found, taken
from keyhop.rekey.life_cycle.end import MOST_NAMED, Ending
from keyhop.rekey.life_cycle.likeness import Likeness, Row, export_command
from keyhop.rekey.pace import THROTTLE
from keyhop.rekey.pair import SIDE_SUFFIX, Pair
from keyhop.rekey.plan.planning import Plan, Planning, example_lines, lines
from keyhop.rekey.template.files import read
from keyhop.rekey.template.load import load
from keyhop.rekey.transform import KeyNames, Transform
from keyhop.wording import counted, duration

FULL, DIGEST = "full", "digest"

Given = tuple[str, KeyType | None] | None
"""A key attribute of the command line: its name, and its type if that was given."""


def run(options: Options) -> int:
    """Run one action on a pair of tables; return its exit status."""
    action = ACTIONS.get(options.action)
    if action is None:
        from keyhop.cli import rekey_runs  # with what copies, compares and cuts over

        action = rekey_runs.ACTIONS[options.action]
    with stop_on_signals("Start the same command again: it goes on.") as stop:
        return action(PairCommand(options, stop))
    return stop.status


def throttle(command: PairCommand) -> int:
    """Set the rate of the copy, or pause it for a rate of 0."""
    rate = command.options.rate
    return _tell_pace(command, rate=rate, paused=False) if rate else pause(command)


def pause(command: PairCommand) -> int:
    """Stop the copy for a while."""
    return _tell_pace(command, paused=True)


def resume(command: PairCommand) -> int:
    """Continue the copy at the last rate."""
    return _tell_pace(command, paused=False)


def _tell_pace(command: PairCommand, **more: Any) -> int:
    side = command.side()
    side.tell(THROTTLE, {"rate": None, "paused": False, **(side.told(THROTTLE) or {}), **more})
    return command.put_out_status(side)


def shadow(command: PairCommand) -> int:
    """Set the share of reads that is made on both tables."""
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
    """Print the status."""
    return command.put_out_status(command.side())


def redrive(command: PairCommand) -> int:
    """Work on the failure queue again; return FAILED if messages remain."""
    pair, stack = command.side().plan(), command.stack
    if stack is None:
        raise CannotStart("No deployment is known to follow the tables: give --stack.")
    command.confirm(f"have what was given up of {command.table.name} and {command.to} settled")
    outcome = stack.deployed(command.connection, pair).redrive()
    lines = [f"{counted(outcome.settled, 'message')} settled"]
    if outcome.left:
        lines.append(f"  {outcome.left:,} left, and stay in the queue: {outcome.why}")
    if outcome.others:
        lines.append(f"  {outcome.others:,} of other pairs, or of no key: left as they are")
    command.put_out(asdict(outcome), lambda: "\n".join(lines))
    return FAILED if outcome.left else DONE


def plan(command: PairCommand) -> int:
    """Try the template on a sample; return DRIFT_FOUND if the re-key is impossible."""
    options = command.options
    pair, keys, transform = designed(command)
    sentinels = command.key_index.sentinels_of(command.table)
    planning = Planning(
        command.connection,
        pair.source,
        pair.destination,
        keys,
        transform,
        client_of=command.client_of,
        ours=None if sentinels is None else sentinels.item,
        is_sharded=command.shards_of(options.stack)(command.table),
        accepted=options.accept,
        max_read_units=options.max_read_units,
        max_read_rate=options.max_read_rate,
        full=options.full,
    )
    if options.full:
        _ask(command)
    with StatusLine(options.quiet) as status:
        status.now("sample", f"reading a sample of {command.table.name} ...")
        result = planning.plan()
        if why := taken(command.connection, pair):
            result = replace(result, blocks=[*result.blocks, why])
    how = options.show_keys or (FULL if sys.stdout.isatty() else DIGEST)
    report = {**result.to_json(), "examples": _examples(result, how)}
    command.put_out(report, lambda: "\n".join([*lines(result), *_shown(result, how)]))
    return DRIFT_FOUND if result.blocks else DONE


def _ask(command: PairCommand) -> None:
    """Ask before the whole table is read, if that may cost more than a little."""
    source, prices = command.table.source(), command.connection.prices
    dollars = prices.dollars(source.size_bytes / 8192)
    if source.item_count and dollars <= ASK_ABOVE:
        return

    def facts() -> Facts:
        yield "items", f"{source.item_count:,}" if source.item_count else "not known yet"
        yield "cost", f"about ${dollars:,.2f} ({prices.on_demand})"

    command.confirm(f"read all items of {command.table.name}", facts)


def _examples(result: Plan, how: str) -> list[dict[str, Any]]:
    """Return keys before and after."""
    keys = result.source_keys, result.keys
    return [
        {
            name: _key(item, space, how)
            for name, item, space in zip(("before", "after"), pair, keys, strict=True)
        }
        for pair in result.examples
    ]


def _key(item: Item, space: KeySpace, how: str) -> Any:
    key = KeyNames.of_schema(space).of(item)
    return to_json(key) if how == FULL else key_digest(key).hex()[:12]


def _shown(result: Plan, how: str) -> Iterator[str]:
    if not result.examples:
        return
    yield ""
    if how == FULL:
        yield "Items before and after:"
        yield from example_lines(result)
        return
    yield "Items before and after, by digests of their keys (--show-keys full shows them):"
    for example in _examples(result, how):
        yield f"  {example['before']} -> {example['after']}"


def create(command: PairCommand) -> int:
    """Create the new table, the side table and the stream."""
    options = command.options
    pair, keys, transform = designed(command)
    creation = Creation(
        command.connection,
        pair,
        keys,
        client_of=command.client_of,
        accepted=options.accept,
        adopt=options.adopt,
        lease=options.lease,
    )
    if options.dry_run:
        looked = creation.look()
        command.put_out(
            _looked_json(pair, transform, looked), lambda: "\n".join(_likeness_lines(pair, looked))
        )
        return FAILED if looked.refused else DONE
    act = f"create {command.to} and {pair.side}, to be filled from {command.table.name}"
    command.confirm(act, partial(_creation_facts, command, creation))
    command.all_steps(creation.step)
    return command.put_out_status(command.side())


def _creation_facts(command: PairCommand, creation: Creation) -> Facts:
    for row in creation.look().rows:
        yield row.what, f"{row.fate}: {row.says}"
    if command.table.stream is None:
        yield "stream", "is turned on; cancel turns it off again"


def _looked_json(pair: Pair, transform: Transform, looked: Likeness) -> Mapping[str, Any]:
    return {
        "source": pair.source,
        "destination": pair.destination,
        "class": transform.kind,
        "rows": [row.to_json() for row in looked.rows],
        "refused": [row.what for row in looked.refused],
        "request": looked.request,
    }


def _likeness_lines(pair: Pair, looked: Likeness) -> Iterator[str]:
    yield f"{pair.destination} would be made like {pair.source}:"
    width = max((len(row.what) for row in looked.rows), default=0)
    for row in looked.rows:
        yield from _row_lines(row, width)


def _row_lines(row: Row, width: int) -> Iterator[str]:
    yield f"  {row.what.ljust(width)}  {row.fate}: {row.says}"
    if row.accept:
        yield f"  {' ' * width}  to go on all the same: --accept {' or '.join(row.accept)}"
    if row.command:
        yield f"  {' ' * width}  by hand: {row.command}"


def complete(command: PairCommand) -> int:
    """Remove the parts of Keyhop, and keep the new table."""
    options, source = command.options, command.table.bare_name
    ending = Ending(
        command.connection,
        command.to,
        "complete",
        followers=command.followers(),
        client_of=command.client_of,
        window_days=options.window,
        delete=options.delete_source or "",
        export=options.export or "",
    )
    fate = "is deleted" if options.delete_source else "is kept, and no longer kept true"
    report = {
        "serves": command.to,
        source: fate,
        "export": options.export or f"none; by hand: {export_command(command.table.arn)}",
        "way back": "none after this, but another re-key",
    }
    act = f"end the re-key of {command.table.name} to {command.to}"
    act += f", and delete {source} with all its items" if options.delete_source else ""
    return _end(command, ending, act, report)


def cancel(command: PairCommand) -> int:
    """Remove the parts of Keyhop and the new table; the old table is as before."""
    delete = "" if command.options.keep_new else command.to
    ending = Ending(
        command.connection,
        command.to,
        "cancel",
        followers=command.followers(),
        client_of=command.client_of,
        delete=delete,
    )
    report = {
        "serves": command.table.bare_name,
        command.to: "is deleted, with all that was copied" if delete else "is kept",
    }
    return _end(command, ending, f"cancel the re-key of {command.table.name}", report)


def _end(command: PairCommand, ending: Ending, act: str, report: Mapping[str, str]) -> int:
    command.side()
    ending.check()
    if routers := ending.routers_of_last_day():
        named = [f"{name} ({duration(age)} ago)" for name, age in routers.items()]
        more = f" and {len(named) - MOST_NAMED:,} more" if len(named) > MOST_NAMED else ""
        report = {
            **report,
            "routers": f"of the last day, with their last reports: {', '.join(named[:MOST_NAMED])}"
            f"{more}; a router that is used again after this fails: take it out of the "
            "application first",
        }
    if command.options.dry_run:
        command.put_out(report, lambda: "\n".join(aligned(report.items())))
        return DONE
    command.confirm(act, lambda: report.items())
    says = command.all_steps(ending.step).says
    command.put_out({**report, "done": says}, lambda: f"{says[:1].upper()}{says[1:]}.")
    return DONE


def designed(command: PairCommand) -> tuple[Pair, KeySpace, Transform]:
    """Return the pair, the keys of the new table, and how items are mapped.

    Raises:
        CannotStart: Something is wrong with the template, in one sentence.
    """
    options, source = command.options, command.table
    _check_name(source.bare_name, command.to)
    template, code = read(Path(options.template))
    keys = _keys(command)
    pair = Pair(source.bare_name, command.to, template, code)
    return pair, keys, load(template, source.space, keys, code, trusted=code)


def _check_name(source: str, new: str) -> None:
    if new == source:
        raise CannotStart("--to must name another table than the one that is re-keyed.")
    if not (TABLE_NAME.fullmatch(new) and TABLE_NAME.fullmatch(new + SIDE_SUFFIX)):
        raise CannotStart(
            f"{new!r} is no name for the new table: it has 3 to 249 of a-z A-Z 0-9 _ . -, as the "
            f"side table is called so, with {SIDE_SUFFIX} at its end."
        )


def _keys(command: PairCommand) -> KeySpace:
    """Return the keys of the new table if it exists, otherwise those of the flags."""
    options = command.options
    table = found(command.connection, command.to)
    has_flags = options.partition_key or options.sort_key
    if table is not None and not has_flags:
        return table.space
    return keys_of(command.table.space, options.partition_key, options.sort_key)


def keys_of(source: KeySpace, partition: Given, sort: Given) -> KeySpace:
    """Return the keys of the flags, or of the source without flags; "" means no sort key."""
    has_sort = sort is None or bool(sort[0])
    its_sort = _attribute(sort, source.sort, source) if has_sort else None
    its_partition = _attribute(partition, source.partition[0], source)
    assert its_partition is not None
    if its_sort is not None and its_sort.name == its_partition.name:
        raise CannotStart(
            f"{its_sort.name!r} cannot be both keys of the new table: give --sort-key another "
            "name, or --sort-key= for none."
        )
    return KeySpace((its_partition,), its_sort)


def _attribute(flag: Given, default: KeyAttribute | None, source: KeySpace) -> KeyAttribute | None:
    if flag is None:
        return default
    name, type_ = flag
    return KeyAttribute(name, type_ or source.types.get(name, "S"))


ACTIONS: Mapping[str, Callable[[PairCommand], int]] = {
    action.__name__: action
    for action in (
        *(plan, create, throttle, pause, resume, shadow),
        *(redrive, complete, cancel, status),
    )
}
