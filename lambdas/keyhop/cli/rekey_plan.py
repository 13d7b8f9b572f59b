"""`keyhop rekey plan`: a template tried on a sample, with what it would come to."""

import sys
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

from keyhop.cli.exit_status import DONE, DRIFT_FOUND
from keyhop.cli.progress import StatusLine
from keyhop.cli.rekey_pair import PairCommand
from keyhop.cli.rekey_template import designed
from keyhop.cli.session import ASK_ABOVE, Facts
from keyhop.dynamodb.schema import KeySpace
from keyhop.dynamodb.values import Item, to_json
from keyhop.rekey.digest import key_digest
from keyhop.rekey.life_cycle.create import taken
from keyhop.rekey.plan.lines import example_lines, lines
from keyhop.rekey.plan.planning import Plan, Planning
from keyhop.rekey.transform import KeyNames

FULL, DIGEST = "full", "digest"


def plan(command: PairCommand) -> int:
    """Nothing is changed; 3 if something stands in the way."""
    options = command.options
    design = designed(command)
    sentinels = command.key_index.sentinels_of(command.table)
    planning = Planning(
        command.connection,
        design.pair.source,
        design.pair.destination,
        design.keys,
        design.transform,
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
        found = planning.plan()
        if why := taken(command.connection, design.pair):
            found = replace(found, blocks=[*found.blocks, why])
    shown = options.show_keys or (FULL if sys.stdout.isatty() else DIGEST)
    told = {**found.to_json(), "examples": _examples(found, shown)}
    command.put_out(told, lambda: "\n".join([*lines(found), *_shown(found, shown)]))
    return DRIFT_FOUND if found.blocks else DONE


def _ask(command: PairCommand) -> None:
    """Before the whole table is read, if that may cost more than a little."""
    source, prices = command.table.source(), command.connection.prices
    dollars = prices.dollars(source.size_bytes / 8192)
    if source.item_count and dollars <= ASK_ABOVE:
        return

    def told() -> Facts:
        yield "items", f"{source.item_count:,}" if source.item_count else "not known yet"
        yield "cost", f"about ${dollars:,.2f} ({prices.on_demand})"

    command.confirm(f"read all items of {command.table.name}", told)


def _examples(found: Plan, shown: str) -> list[dict[str, Any]]:
    """Keys before and after."""
    keys = found.source_keys, found.keys
    return [
        {
            name: _key(item, space, shown)
            for name, item, space in zip(("before", "after"), pair, keys, strict=True)
        }
        for pair in found.examples
    ]


def _key(item: Item, space: KeySpace, shown: str) -> Any:
    key = KeyNames.of_schema(space).of(item)
    return to_json(key) if shown == FULL else key_digest(key).hex()[:12]


def _shown(found: Plan, shown: str) -> Iterator[str]:
    if not found.examples:
        return
    yield ""
    if shown == FULL:
        yield "Items before and after:"
        yield from example_lines(found)
        return
    yield "Items before and after, by digests of their keys (--show-keys full shows them):"
    for one in _examples(found, shown):
        yield f"  {one['before']} -> {one['after']}"
