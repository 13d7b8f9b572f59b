"""`keyhop index ACTION TABLE`: the flags; what the actions do is in index_actions.py."""

from typing import Any

import click

from keyhop.cli import options as shared
from keyhop.cli.options import Decorator, in_section, output, together
from keyhop.public.limits import GRACE_SECONDS, UNSEEN_KEEPER

option = in_section("This action")
writing = together(
    option("--dry-run", "-n", help="read a small sample, print what it would cost, and end"),
    shared.yes,
    option(
        "--sentinel SORT_KEY",
        help="the sort key of the sentinels, base64 if it is binary (default: that of the build, "
        "otherwise the least sort key)",
    ),
    shared.max_write_rate,
    shared.max_read_rate,
    shared.give_up_after,
    output(
        "--output DIR",
        "-o",
        type=shared.directory,
        help="keep the walks in DIR, so that they can be resumed",
    ),
    shared.resume,
    shared.remotely,
    shared.max_concurrency,
)
LOCAL = ("output", "resume", "give_up_after", "sentinel", "accept")


@click.group(cls=shared.Group, subcommand_metavar="ACTION TABLE")
@shared.everywhere
@shared.stack
def index(**_: Any) -> None:
    """Build, verify or remove the key index of a table.

    \b
    examples:
      keyhop index build Orders --dry-run         what would it cost?
      keyhop index build Orders                   add it, put sentinels, verify
      keyhop index status Orders                  does keyhop keys use it?
      keyhop keys Orders --method index           read the keys from it
      keyhop index verify Orders --no-repair      only compare
      keyhop index verify Orders                  compare and repair
      keyhop index redrive Orders --stack Keyhop  after failures of the keeper
      keyhop index remove Orders                  delete sentinels and index

    A key index is a permanent list of the partition keys. It holds one tiny item, a sentinel, for
    each key; reading it costs 0.5 read units for each 4 KB of keys. It stays correct
    only while a keeper follows the table's stream: deploy one with keyIndex
    (docs/how-to/key-index.md). Without a keeper it is only as correct as its last verification.

    exit status: 0 done, 2 error, 3 verify found drift, 4 --max-cost
    reached, 130 interrupted, 143 terminated. Each
    command can be started again after an interruption. Reports name up to ten keys of each kind of
    drift.
    """


def action(*options: Decorator) -> Decorator:
    """An action with these options and those of all actions."""
    command = index.command(cls=shared.Command)
    return together(command, shared.table, *options, shared.reporting, shared.where, shared.stack)


@action(shared.max_cost, writing)
def build(**options: Any) -> None:
    """Add the index, put a sentinel for each key, verify.

    \b
    examples:
      keyhop index build Orders --dry-run           what would it cost?
      keyhop index build Orders                     asks, then builds
      keyhop index build Orders -y -o walks         in a script; can be resumed
      keyhop index build Orders --stack Keyhop      beside a deployment's keeper
      keyhop index build Orders --remote --follow   by the deployment
    """
    shared.check_place(options["remote"], LOCAL)


@action(
    option("--no-repair", help="report the differences without repairing them"),
    option(
        "--grace SECONDS",
        help=f"how long a keeper may be behind (default {GRACE_SECONDS:g})",
        type=shared.seconds,
        default=GRACE_SECONDS,
    ),
    shared.max_cost,
    writing,
)
def verify(**options: Any) -> None:
    """Compare the index with the table, and repair the differences.

    \b
    examples:
      keyhop index verify Orders --no-repair        only compares
      keyhop index verify Orders                    asks, then repairs too
    """
    shared.check_place(options["remote"], LOCAL)


@action(
    option(
        "--sweep",
        help="look for sentinels even if no index is known: one strong read for each key",
    ),
    option(
        "--accept WHAT",
        help=f"{UNSEEN_KEEPER}: remove the index even if it is unknown whether a keeper follows "
        "the table; use it only if there is none",
        type=click.Choice((UNSEEN_KEEPER,)),
        multiple=True,
    ),
    writing,
)
def remove(**options: Any) -> None:
    """Delete the sentinels, then the index.

    \b
    examples:
      keyhop index remove Orders                    asks, then removes
      keyhop index remove Orders --sweep            the index is gone already
    """
    shared.check_place(options["remote"], LOCAL)


@action()
def status(**options: Any) -> None:
    """Show the state of the key index, and what the last verification found.

    \b
    examples:
      keyhop index status Orders                    by the record of this machine
      keyhop index status Orders --stack Keyhop     by that of a deployment
      keyhop index status Orders -f json | jq .auto_uses_it
    """


@action(
    option("--dry-run", "-n", help="only count the messages in the queue"),
    shared.yes,
    option(
        "--queue URL",
        help="the queue, if no stack names it (default: the output FailureQueueUrl of --stack)",
    ),
    option(
        "--discard-old",
        help="delete messages whose records are no longer in the stream; give --stack, and "
        "verify afterwards",
    ),
)
def redrive(**options: Any) -> None:
    """Retry the records in the keeper's failure queue.

    \b
    examples:
      keyhop index redrive Orders --stack Keyhop  its queue and its record
    """
