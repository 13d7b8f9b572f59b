"""`keyhop index ACTION TABLE`: the flags; what the actions do is in index_actions.py."""

from typing import Any

import click

from keyhop.cli import options as shared
from keyhop.cli.options import Decorator, in_section, limit, output, together
from keyhop.key_index.protocol import GRACE_SECONDS

DEFAULT_WRITE_RATE = 1000.0
"""Write units a second: 500 sentinels."""

option = in_section("This action")
writing = together(
    option(
        "--sentinel SORT_KEY",
        help="the sentinels' sort key, binary as base64 (default: that of the build, else the "
        "least one)",
    ),
    limit(
        "--max-write-rate WRU_PER_SECOND",
        help="hold writes under this many write units a second (default "
        f"{DEFAULT_WRITE_RATE:g}); a sentinel costs two",
        type=shared.rate,
        default=DEFAULT_WRITE_RATE,
    ),
    shared.max_read_rate,
    shared.give_up_after,
    output("--output DIR", help="keep the walks in DIR; such a walk can be resumed"),
    output("--resume", help="continue the unfinished walks in DIR"),
)


@click.group(no_args_is_help=False, subcommand_metavar="ACTION TABLE")
def index() -> None:
    """Build, audit or remove the key index of a table.

    A key index is a list of the partition keys that is always there. It holds one tiny item, a
    sentinel, for each key; reading it costs 0.5 read units for each 4 KB of keys. It stays true
    only while a keeper follows the table's stream: deploy one with keyIndex, see the README.
    Without a keeper it is as true as its last audit.

    \b
    examples:
      keyhop index build Orders --plan       what would it cost?
      keyhop index build Orders              add the index, put the sentinels, audit
      keyhop index status Orders
      keyhop keys Orders --method index      read the keys from it
      keyhop index audit Orders --no-repair  only look
      keyhop index reconcile Orders --queue URL
      keyhop index remove Orders             delete the sentinels and the index

    exit status: 0 done, 2 error, 3 the audit found drift, 130 interrupted, 143 terminated. Each
    command can be started again after an interruption. Reports name up to ten keys of each kind of
    drift.
    """


def action(*options: Decorator) -> Decorator:
    """An action with these options and those of all actions."""
    command = index.command(cls=shared.Command)
    return together(command, shared.table, *options, shared.reporting, shared.where)


@action(option("--plan", help="read a small sample, and print what a build would cost"), writing)
def build(**options: Any) -> None:
    """Add the index, put a sentinel for each key, audit."""


@action(
    option("--no-repair", help="only look"),
    option(
        "--grace SECONDS",
        help=f"how long a keeper may be behind (default {GRACE_SECONDS:g})",
        type=shared.seconds,
        default=GRACE_SECONDS,
    ),
    writing,
)
def audit(**options: Any) -> None:
    """Compare the index with the table; repair what is wrong."""


@action(
    option(
        "--sweep",
        help="look for sentinels also where no index is known: one strong read for each collection",
    ),
    option(
        "--no-keeper",
        help="go on where it cannot be seen whether a keeper follows the table: you know of none",
    ),
    writing,
)
def remove(**options: Any) -> None:
    """Delete the sentinels, then the index."""


@action()
def status(**options: Any) -> None:
    """Show the state of the key index, and what the last audit found."""


@action(
    option("--queue URL", help="the output FailureQueueUrl of the stack", required=True),
    option(
        "--discard-old",
        help="delete messages whose records the stream has forgotten; audit afterwards",
    ),
)
def reconcile(**options: Any) -> None:
    """Repair what the messages in the keeper's failure queue are about."""
