"""`keyhop shards ACTION TABLE`: the flags; what the actions do is in shards_actions.py."""

import argparse
from collections.abc import Callable
from typing import Any

from keyhop.cli.options import whole
from keyhop.sharding.key.names import MOST_SHARDS

EPILOG = """\
A logical key of a sharded table (/f.txt) is spread over physical keys (/f.txt_1, /f.txt_2, ...).
How many there are is in the table's shard-metadata table, an item for each logical key. Writers add
shards by themselves when the service says that a key is hot; here you look, add some before a
rush, and take some away after it. KEY is always the logical key.

examples:
  keyhop shards list Audit --metadata Audit-shards           keys with more than one shard
  keyhop shards list Audit --metadata Audit-shards --all --json
  keyhop shards show Audit /f.txt --metadata Audit-shards    its phase, its history as a chart
  keyhop shards add Audit /f.txt --count 3 --metadata Audit-shards
  keyhop shards drain Audit /f.txt --shards 2 --metadata Audit-shards
  keyhop shards show Audit AP8= --base64 --metadata Audit-shards      a binary key

exit status: 0 done, 2 error, 130 interrupted, 143 terminated. add and drain can be started again
after an interruption: they go on with what the metadata says. Readers and writers go on meanwhile.
"""


def add_command(commands: Any) -> None:
    """Add `shards` to the command line."""
    command = commands.add_parser(
        "shards",
        help="look at, add or drain the shards of a table's hot keys",
        description="The shards of a table's partition keys: how many, since when, and why.",
        epilog=EPILOG,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    actions = command.add_subparsers(title="actions", metavar="ACTION", required=True)

    list_ = _action(
        actions,
        "list",
        _doing("list_"),
        "the keys with more than one shard, and how many would do",
        "Reads the whole metadata table: a read unit for each 4 KB.",
    )
    list_.add_argument("--all", action="store_true", help="also keys with one shard")
    list_.add_argument("--json", action="store_true", help="as a JSON array")

    show = _action(
        actions,
        "show",
        _doing("show"),
        "what the metadata says of one key, in words, with its history as a chart",
    )
    _key(show)
    show.add_argument("--json", action="store_true", help="as a JSON object")

    add = _action(
        actions,
        "add",
        _doing("add"),
        "add shards to a key",
        "Readers read the new shards at once; writers use them after settle_seconds, when every "
        "reader knows. A key that was never written to is registered.",
    )
    _key(add)
    add.add_argument(
        "--count",
        type=whole(1, MOST_SHARDS - 1),
        default=1,
        metavar="N",
        help="how many to add (default 1); each query of the key reads all of them",
    )
    add.add_argument(
        "--no-wait", action="store_true", help="do not wait until writers use the new shards"
    )
    _placement(add)
    add.add_argument("--quiet", action="store_true", help="no progress")

    drain = _action(
        actions,
        "drain",
        _doing("drain"),
        "move the items off a key's last shards, then stop reading those",
        "Each item that is moved costs four write units for each KB. Every step waits for "
        "settle_seconds, so a drain takes at least four times that. While it is under way the key "
        "gets no new shards; if it becomes hot, its writers call the drain off, as --call-off does "
        "by hand.",
    )
    _key(drain)
    aim = drain.add_mutually_exclusive_group(required=True)
    aim.add_argument(
        "--shards", type=whole(1, MOST_SHARDS - 1), metavar="M", help="how many are to be left"
    )
    aim.add_argument(
        "--call-off",
        action="store_true",
        help="end a drain that is under way, and use all shards again; what was moved stays there",
    )
    _placement(drain)
    drain.add_argument("--quiet", action="store_true", help="no progress")


def _doing(name: str) -> Callable[[argparse.Namespace], int]:
    def run(options: argparse.Namespace) -> int:
        from keyhop.cli import shards_actions  # the other commands start without the library

        return int(getattr(shards_actions, name)(options))

    return run


def _action(
    actions: Any, name: str, run: Any, help_: str, more: str = ""
) -> argparse.ArgumentParser:
    parser: argparse.ArgumentParser = actions.add_parser(
        name, help=help_, description=f"{help_[0].upper()}{help_[1:]}. {more}".strip()
    )
    parser.set_defaults(run=run)
    parser.add_argument("table", metavar="TABLE", help="name or ARN of the sharded table")
    parser.add_argument(
        "--metadata", required=True, metavar="NAME", help="the table's shard-metadata table"
    )
    place = parser.add_argument_group("where the tables are")
    place.add_argument("--region", help="AWS region (default: from your AWS configuration)")
    place.add_argument("--profile", help="AWS profile")
    place.add_argument("--endpoint-url", metavar="URL", help="another endpoint")
    return parser


def _key(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("key", metavar="KEY", help="the logical key: /f.txt, not /f.txt_3")
    parser.add_argument(
        "--base64", action="store_true", help="KEY is base64; a binary partition key needs it"
    )


def _placement(parser: argparse.ArgumentParser) -> None:
    placement = parser.add_argument_group(
        "how writers choose shards",
        "Only where the metadata does not say it: in a table to which nobody has written yet.",
    )
    placement.add_argument("--placement", choices=("random", "calculated"))
    placement.add_argument("--hash", choices=("jump", "modulo"), default="jump")
    placement.add_argument("--append-only", action="store_true")
    placement.add_argument("--separator", metavar="TEXT", default="_")
