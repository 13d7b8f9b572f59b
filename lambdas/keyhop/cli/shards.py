"""`keyhop shards ACTION TABLE`: the flags; what the actions do is in shards_actions.py."""

from typing import Any

import click

from keyhop.cli import options as shared
from keyhop.cli.options import Decorator, argument, in_section, together, whole
from keyhop.public.limits import DEFAULT_STACK, MOST_SHARDS

option = in_section("This action")
choosing = in_section("How writers choose shards")
metadata = option(
    "--metadata NAME",
    help="the table's shard-metadata table (default: that in the outputs of --stack, otherwise "
    "TABLE-shards)",
)
stack = shared.place(
    "--stack NAME",
    help="the deployment whose outputs name the shard-metadata table; it does the work of drain "
    f"--remote (default of that: {DEFAULT_STACK})",
)
key = together(
    argument("key", help="the logical key: /f.txt, not /f.txt_3"),
    option("--base64", help="KEY is base64; a binary partition key needs it"),
)
changing = together(
    option("--dry-run", "-n", help="print what the command would do, and change nothing"),
    choosing(
        "--placement",
        help="only for a table without writes so far, as the flags below",
        type=click.Choice(("random", "calculated")),
    ),
    choosing(
        "--hash", help="(default: jump)", type=click.Choice(("jump", "modulo")), default="jump"
    ),
    choosing("--append-only"),
    choosing("--separator TEXT", help="(default: _)", default="_"),
    shared.yes,
)
some_shards = whole(1, MOST_SHARDS - 1)

LOCAL = ("call_off", "dry_run", "metadata", "placement", "hash", "append_only", "separator")


@click.group(cls=shared.Group, subcommand_metavar="ACTION TABLE")
@shared.everywhere
@stack
def shards(**_: Any) -> None:
    """Look at, add, drain or recover the shards of a table's hot keys.

    \b
    examples:
      keyhop shards list Audit                    those with several shards
      keyhop shards list Audit --all -f json      all, for programs
      keyhop shards show Audit /f.txt             one, with a chart
      keyhop shards show Audit AP8= --base64      a binary key
      keyhop shards add Audit /f.txt --count 3
      keyhop shards drain Audit /f.txt --shards 2

    A logical key of a sharded table (/f.txt) is spread over physical keys (/f.txt_1, /f.txt_2,
    ...). How many there are is in the table's shard-metadata table, an item for each logical key.
    Its name is --metadata, or is in the outputs of --stack, or is TABLE-shards. Writers add shards
    when the service reports a hot key. With these commands you look at shards, add some before a
    rush, and drain them after it. KEY is always the logical key.

    exit status: 0 done, 2 error, 130 interrupted, 143 terminated. add and drain can be started
    again after an interruption: they continue from the metadata. Readers and writers are not
    interrupted.
    """


def action(name: str, *options: Decorator) -> Decorator:
    """An action with these options and those of all actions."""
    command = shards.command(name, cls=shared.Command)
    return together(
        *(command, shared.table, *options, metadata),
        *(shared.format_, shared.quiet, shared.where, stack),
    )


@action("list", option("--all", help="also keys with one shard"))
def list_(**options: Any) -> None:
    """List the keys with more than one shard, and the number that would suffice.

    \b
    examples:
      keyhop shards list Audit              keys with several shards
      keyhop shards list Audit --all        all keys

    Reads the whole metadata table: a read unit for each 4 KB.
    """


@action("show", key)
def show(**options: Any) -> None:
    """Show one key's shard metadata, with its history as a chart.

    \b
    examples:
      keyhop shards show Audit /f.txt
      keyhop shards show Audit AP8= --base64      a binary key
    """


@action(
    "add",
    key,
    option(
        "--count N",
        help="how many shards to add (default 1); each query of the key reads all of them",
        type=some_shards,
        default=1,
    ),
    option("--no-wait", help="do not wait until writers use the new shards"),
    changing,
)
def add(**options: Any) -> None:
    """Add shards to a key.

    \b
    examples:
      keyhop shards add Audit /f.txt --count 3
      keyhop shards add Audit /f.txt -y --no-wait     in a script
      keyhop shards add Audit /f.txt --stack Keyhop   of a deployment

    Readers read the new shards at once; writers use them after settle_seconds, when every reader
    knows. A key that was never written to is registered.
    """


@action(
    "drain",
    key,
    option("--shards M", help="how many shards the key keeps", type=some_shards),
    option(
        "--call-off",
        help="end a drain that is under way, and use all shards again; moved items stay there",
    ),
    changing,
    shared.remotely,
)
def drain(shards: int | None, call_off: bool, dry_run: bool, remote: bool, **options: Any) -> None:
    """Move the items off a key's last shards, and stop reading those.

    \b
    examples:
      keyhop shards drain Audit /f.txt --shards 2 --dry-run   what would it cost?
      keyhop shards drain Audit /f.txt --shards 2
      keyhop shards drain Audit /f.txt --call-off             does not ask
      keyhop shards drain Audit /f.txt --shards 2 --remote    by a deployment

    Each item that is moved costs four write units for each KB. Every step waits for settle_seconds,
    so a drain takes at least four times that. While it is under way the key gets no new shards; if
    it becomes hot, its writers call the drain off, as --call-off does by hand.
    """
    shared.check_place(remote, LOCAL)
    if (shards is None) is not call_off:
        raise click.UsageError("give either --shards M or --call-off", click.get_current_context())
    if call_off and dry_run:
        raise click.UsageError(
            "--call-off has no --dry-run: nothing is moved, and the command does not ask",
            click.get_current_context(),
        )


@action(
    "recover",
    option("--key KEY", help="only this logical key: it looks at each of 1,000 possible shards"),
    option("--base64", help="KEY is base64; a binary partition key needs it"),
    option(
        "--with-gaps",
        help="also keys with an empty shard before the last one; ordinary keys that end in _3 look "
        "the same",
    ),
    shared.limit(
        "--max-cost DOLLARS",
        help="do not begin if the least estimate is higher, and stop when this is spent (exit "
        "status 4). The reads of the list of keys count",
        type=shared.positive,
    ),
    changing,
)
def recover(**options: Any) -> None:
    """Rebuild deleted shard metadata from the table's keys.

    \b
    examples:
      keyhop shards recover Audit --dry-run
      keyhop shards recover Audit
      keyhop shards recover Audit --key /f.txt

    If the metadata of a key is missing, or has fewer shards than hold items, the key gets as many
    shards as the greatest number at the end of its physical keys. It reads the metadata table,
    waits for settle_seconds, and lists the table's keys, as keyhop keys does and for that price.
    Writers and readers can continue. After an interruption, start it again.
    """
