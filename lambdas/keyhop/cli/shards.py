"""`keyhop shards ACTION TABLE`: the flags; what the actions do is in shards_actions.py."""

from typing import Any

import click

from keyhop.cli import options as shared
from keyhop.cli.options import Decorator, in_section, together, whole
from keyhop.sharding.key.names import MOST_SHARDS

option = in_section("This action")
choosing = in_section("How writers choose shards, in a table to which nobody has written yet")
metadata = option("--metadata NAME", help="the table's shard-metadata table", required=True)
as_json = option("--json", help="print JSON")
key = together(
    click.argument("key", help="the logical key: /f.txt, not /f.txt_3"),
    option("--base64", help="KEY is base64; a binary partition key needs it"),
)
changing = together(
    choosing("--placement", type=click.Choice(("random", "calculated"))),
    choosing(
        "--hash", help="(default: jump)", type=click.Choice(("jump", "modulo")), default="jump"
    ),
    choosing("--append-only"),
    choosing("--separator TEXT", help="(default: _)", default="_"),
    shared.quiet,
)
some_shards = whole(1, MOST_SHARDS - 1)


@click.group(no_args_is_help=False, subcommand_metavar="ACTION TABLE")
def shards() -> None:
    """Look at, add or drain the shards of a table's hot keys.

    A logical key of a sharded table (/f.txt) is spread over physical keys (/f.txt_1, /f.txt_2,
    ...). How many there are is in the table's shard-metadata table, an item for each logical key.
    Writers add shards by themselves when the service says that a key is hot; here you look, add
    some before a rush, and take some away after it. KEY is always the logical key.

    \b
    examples:
      keyhop shards list Audit --metadata Audit-shards           keys with more than one shard
      keyhop shards list Audit --metadata Audit-shards --all --json
      keyhop shards show Audit /f.txt --metadata Audit-shards    its phase, its history as a chart
      keyhop shards add Audit /f.txt --count 3 --metadata Audit-shards
      keyhop shards drain Audit /f.txt --shards 2 --metadata Audit-shards
      keyhop shards show Audit AP8= --base64 --metadata Audit-shards      a binary key

    exit status: 0 done, 2 error, 130 interrupted, 143 terminated. add and drain can be started
    again after an interruption: they go on with what the metadata says. Readers and writers go on
    meanwhile.
    """


def action(name: str, *options: Decorator) -> Decorator:
    """An action with these options and those of all actions."""
    command = shards.command(name, cls=shared.Command)
    return together(command, shared.table, *options, metadata, shared.where)


@action("list", option("--all", help="also keys with one shard"), as_json)
def list_(**options: Any) -> None:
    """List the keys with more than one shard, and how many would do.

    Reads the whole metadata table: a read unit for each 4 KB.
    """


@action("show", key, as_json)
def show(**options: Any) -> None:
    """Show one key's shard metadata, with its history as a chart."""


@action(
    "add",
    key,
    option(
        "--count N",
        help="how many to add (default 1); each query of the key reads all of them",
        type=some_shards,
        default=1,
    ),
    option("--no-wait", help="do not wait until writers use the new shards"),
    changing,
)
def add(**options: Any) -> None:
    """Add shards to a key.

    Readers read the new shards at once; writers use them after settle_seconds, when every reader
    knows. A key that was never written to is registered.
    """


@action(
    "drain",
    key,
    option("--shards M", help="how many are to be left", type=some_shards),
    option(
        "--call-off",
        help="end a drain that is under way, and use all shards again; what was moved stays there",
    ),
    changing,
)
def drain(shards: int | None, call_off: bool, **options: Any) -> None:
    """Move the items off a key's last shards, and stop reading those.

    Each item that is moved costs four write units for each KB. Every step waits for settle_seconds,
    so a drain takes at least four times that. While it is under way the key gets no new shards; if
    it becomes hot, its writers call the drain off, as --call-off does by hand.
    """
    if (shards is None) is not call_off:
        raise click.UsageError("give either --shards M or --call-off", click.get_current_context())
