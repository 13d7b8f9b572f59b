"""`keyhop rekey ACTION TABLE`: the flags; what the actions do is in rekey_actions.py."""

import math
import re
from typing import Any

import click

from keyhop.cli import options as shared
from keyhop.cli.options import Decorator, argument, in_section, limit, number, output, together
from keyhop.errors import CannotStart
from keyhop.public.limits import DEFAULT_STACK, NO_LIMIT
from keyhop.rekey import request
from keyhop.rekey.request import SHARDS, STRAGGLERS, UNMAPPED

SHOW_KEYS = ("full", "digest")
ACCEPTS = (
    "unseen",
    "drop-indexes",
    "drop-local-indexes",
    "keep-local-indexes",
    "drop-vector-indexes",
)
"""As likeness.ACCEPTS, which no start of a command need import."""

MEMBER = re.compile(r"[A-Z][A-Za-z0-9]*(\.[A-Z][A-Za-z0-9]*)*")
"""The name of a setting of a table that Keyhop does not know, as `plan` shows it."""

option = in_section("This action")
before = in_section("Before it begins")
to = option("--to NEW", help="the table under the other primary key", required=True)
stack = shared.place(
    "--stack NAME",
    help="the deployment that start --remote records, and whose sharded tables plan knows "
    f"(default of start --remote: {DEFAULT_STACK})",
)
dry_run = before("--dry-run", "-n", help="print what the command would do, and change nothing")


def key_attribute(text: str) -> str:
    """Check that this is NAME, NAME:S, NAME:N or NAME:B."""
    try:
        request.key_attribute(text)
    except CannotStart as error:
        raise click.BadParameter(str(error)) from error
    return text


class Accepted(click.Choice):  # type: ignore[type-arg]  # no type takes one before click 8.2
    """A word of ACCEPTS, or the name of a setting that `plan` reports as unknown (Tags.Scope)."""

    def __init__(self) -> None:
        super().__init__(ACCEPTS)

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> str:
        word: str = value if MEMBER.fullmatch(value) else super().convert(value, param, ctx)
        return word


def show_keys(help: str) -> Decorator:
    """Return the option that says how to show keys."""
    return output("--show-keys HOW", help=help, type=click.Choice(SHOW_KEYS))


percent = number("a percentage, from 0 to 100", lambda value: 0 <= value <= 100)
units_a_second = number(
    "a number of write units a second, 0 or more, or none", lambda value: 0 <= value < math.inf
)


def copy_rate(text: str) -> float | str:
    """Return a rate, or NO_LIMIT."""
    return text if text == NO_LIMIT else units_a_second(text)


days = number("a number of days, 0 or more", lambda value: 0 <= value < math.inf)

lease = number("a number of seconds, from 10 to 60", lambda value: 10 <= value <= 60)
freeze = number("a number of seconds, from 6 to 20", lambda value: 6 <= value <= 20)

designing = together(
    option(
        "--template FILE",
        help="how items are mapped, as YAML or JSON (docs/reference/rekey-templates.md)",
        required=True,
    ),
    option(
        "--partition-key NAME[:TYPE]",
        help="of NEW, if it is not there yet; TYPE is S, N or B (default: as of TABLE)",
        type=key_attribute,
    ),
    option(
        "--sort-key NAME[:TYPE]",
        help="the same; --sort-key= for none (default: as of TABLE)",
        type=key_attribute,
    ),
    option(
        "--accept WHAT",
        help="continue although NEW differs from TABLE in this, as plan names it; may be repeated",
        type=Accepted(),
        multiple=True,
    ),
)
accept_loss = option(
    "--accept WHAT",
    help=f"{UNMAPPED}: lose the items of NEW that cannot be mapped back; {STRAGGLERS}: overwrite "
    "the items of writes that bypassed the routers with those that serve; may be repeated",
    type=click.Choice((UNMAPPED, STRAGGLERS)),
    multiple=True,
)
freeze_limit = option(
    "--freeze-limit SECONDS",
    help="end the change if writes would wait for longer, 6 to 20 (default: as last time, or 10)",
    type=freeze,
)
working = together(
    option(
        "--functions FILE",
        help="the file of the functions in the template, if it has any: only this text is run",
    ),
    shared.max_read_rate,
    shared.max_cost,
    shared.give_up_after,
    output(
        "--output DIR",
        "-o",
        type=shared.directory,
        help="keep the run in DIR; such a run can be resumed",
    ),
    shared.resume_anywhere,
)
follow = option("--follow", help="show the progress until the end; Ctrl-C ends only the display")


@click.group(cls=shared.Group, subcommand_metavar="ACTION TABLE")
@shared.everywhere
@stack
def rekey(**_: Any) -> None:
    """Move a live table under another primary key, and back.

    \b
    examples, for the table Orders, which is to become OrdersByTenant:
      keyhop rekey plan Orders --to OrdersByTenant --template t.yaml
      keyhop rekey create Orders --to OrdersByTenant --template t.yaml
      keyhop rekey start Orders --to OrdersByTenant --remote --follow
      keyhop rekey status Orders --to OrdersByTenant
      keyhop rekey verify Orders --to OrdersByTenant
      keyhop rekey shadow Orders 10 --to OrdersByTenant
      keyhop rekey cutover Orders --to OrdersByTenant --dry-run
      keyhop rekey rollback Orders --to OrdersByTenant
      keyhop rekey complete Orders --to OrdersByTenant

    TABLE is the old table, and NEW is the one under the other key. TABLE serves until cutover, and
    nothing in it is changed. After cutover NEW serves, TABLE is kept up to date, and a rollback is
    possible. docs/how-to/rekey.md describes each phase, and until when you can roll back.

    exit status: 0 done, 2 error, 3 plan found an obstacle, verify a difference, or a
    gate is shut, 4 --max-cost reached, 130 interrupted, 143 terminated. Each command can be started
    again.
    """


def action(*options: Decorator, argument: Decorator | None = None) -> Decorator:
    """An action with these options and those of all actions."""
    command = rekey.command(cls=shared.Command)
    first = () if argument is None else (argument,)
    return together(
        command,
        shared.table,
        *first,
        to,
        *options,
        shared.reporting,
        shared.where,
        stack,
    )


@action(
    designing,
    option("--full", help="count collisions of all items, by a scan; asks before it costs a lot"),
    limit(
        "--max-read-units RRU",
        help="the sample reads no more than this (default 200)",
        type=shared.positive,
        default=200.0,
    ),
    shared.max_read_rate,
    shared.give_up_after,
    shared.yes,
    show_keys("of ten items, before and after: full (default on a terminal), or digest"),
)
def plan(**options: Any) -> None:
    """Try the template on a sample: the new keys, the costs, and whether an index would do.

    \b
    examples:
      keyhop rekey plan Orders --to New --template t.yaml
      keyhop rekey plan Orders --to New --template t.yaml --full
      keyhop rekey plan Orders --to New --template t.yaml --partition-key tenant:S

    It reads a sample, and changes nothing.
    """


@action(
    designing,
    option(
        "--adopt",
        help="use NEW as it is: it exists with these keys and a stream, and is empty",
    ),
    option(
        "--lease SECONDS",
        help="the time from the start of a cutover or a rollback until writes wait, in which each "
        "router looks at least twice; 10 to 60 (default 30)",
        type=lease,
        default=30.0,
    ),
    dry_run,
    shared.yes,
)
def create(**options: Any) -> None:
    """Create the new table with the old one's settings, and the side table.

    \b
    examples:
      keyhop rekey create Orders --to New --template t.yaml --dry-run
      keyhop rekey create Orders --to New --template t.yaml

    Nothing is copied yet. TTL of the new table stays off until cutover.
    """


@action(
    option(
        "--remote",
        help="let the deployment follow the tables, and do the work of this and later commands",
    ),
    option(
        "--accept WHAT",
        help=f"{SHARDS}: TABLE is a sharded table, and the template handles the suffixes of its "
        "shards",
        type=click.Choice((SHARDS,)),
        multiple=True,
    ),
    follow,
    dry_run,
    shared.yes,
    shared.max_write_rate,
    working,
)
def start(**options: Any) -> None:
    """Begin to follow the old table's writes, then copy its items.

    \b
    examples:
      keyhop rekey start Orders --to New --remote --follow
      keyhop rekey start Orders --to New -o copy          from here, alone
      keyhop rekey start Orders --to New --resume copy
      keyhop rekey start Orders --to New --remote --resume RUN   after a failure

    With --remote a deployment follows the table, copies it, and does the work of later commands.
    Without it this process copies alone, and nothing follows: writes to TABLE are missed until
    verify.
    """
    shared.check_place(options["remote"], ())


@action(
    argument=argument(
        "rate",
        help=f"write units a second; 0 as pause does; {NO_LIMIT} for no limit",
        type=copy_rate,
    ),
)
def throttle(**options: Any) -> None:
    """Limit the copy to this many write units a second, from now on.

    \b
    examples:
      keyhop rekey throttle Orders 500 --to New
      keyhop rekey throttle Orders none --to New       without a limit

    The copy of live writes is never slowed. The command does not ask.
    """


@action()
def pause(**options: Any) -> None:
    """Pause the copy. Live writes are still followed.

    \b
    examples:
      keyhop rekey pause Orders --to New
      keyhop rekey resume Orders --to New
    """


@action()
def resume(**options: Any) -> None:
    """Resume the copy after a pause, at the last rate.

    \b
    examples:
      keyhop rekey resume Orders --to New
    """


@action(
    option(
        "--share SHARE",
        help="compare only this share of the items (0 to 1); opens no gate of the cutover",
        type=shared.share,
    ),
    option("--no-repair", help="report the differences without repairing them"),
    follow,
    dry_run,
    shared.yes,
    working,
)
def verify(**options: Any) -> None:
    """Compare the two tables item by item, with strong reads; repair what differs.

    \b
    examples:
      keyhop rekey verify Orders --to New --no-repair     only look
      keyhop rekey verify Orders --to New                 asks, then repairs too
      keyhop rekey verify Orders --to New --follow        if a deployment does it
      keyhop rekey verify Orders --to New --resume RUN    ... and it has failed

    A repair deletes items of the new table that should not be there, but none from which no key of
    the old table follows.
    """


@action(
    dry_run,
    shared.yes,
    argument=argument("share", help="percent of reads, 0 to 100", type=percent),
)
def shadow(**options: Any) -> None:
    """Let routers make this share of their reads on both tables, and compare.

    \b
    examples:
      keyhop rekey shadow Orders 1 --to New
      keyhop rekey shadow Orders 0 --to New             no more

    The serving table answers the reads. After a real difference the share cannot be raised.
    """


@action(
    dry_run,
    option(
        "--expect N",
        help="how many routers must have reported (default: as the control item says)",
        type=shared.whole(0, 100_000),
    ),
    freeze_limit,
    accept_loss,
    follow,
    shared.yes,
)
def cutover(**options: Any) -> None:
    """Let the new table serve; writes wait for a few seconds, reads never.

    \b
    examples:
      keyhop rekey cutover Orders --to New --dry-run    which gates are open?
      keyhop rekey cutover Orders --to New
      keyhop rekey rollback Orders --to New             ... and back

    All gates must be open. If a step fails before the turn, the old table keeps serving.
    """


@action(dry_run, shared.yes)
def redrive(**options: Any) -> None:
    """Retry the records in the failure queue of the deployment's functions.

    \b
    examples:
      keyhop rekey redrive Orders --to New

    Records that were settled leave the queue. A late or repeated retry does no harm.
    """


@action(
    dry_run,
    freeze_limit,
    accept_loss,
    follow,
    shared.yes,
)
def rollback(**options: Any) -> None:
    """Let the old table serve again, by the steps of a cutover.

    \b
    examples:
      keyhop rekey rollback Orders --to New --dry-run  which writes would be lost?
      keyhop rekey rollback Orders --to New
      keyhop rekey rollback Orders --to New --freeze-limit 20

    Possible from cutover until complete. A write that bypassed the routers (a straggler) shuts a
    gate: settling overwrites its item with that of NEW. Without --accept the command asks, and
    --yes alone does not accept it.
    """


@action(
    dry_run,
    option(
        "--window DAYS",
        help="how long after the cutover a rollback must be possible (default 7)",
        type=days,
        default=7.0,
    ),
    option("--export BUCKET", help="first export TABLE to this bucket (point-in-time recovery)"),
    option(
        "--delete-source NAME",
        help="delete TABLE at the end; NAME must repeat its name (default: TABLE is kept)",
    ),
    shared.yes,
)
def complete(**options: Any) -> None:
    """End the re-key permanently after a cutover, and remove everything that Keyhop made.

    \b
    examples:
      keyhop rekey complete Orders --to New --dry-run
      keyhop rekey complete Orders --to New             the old table is kept
      keyhop rekey complete Orders --to New --delete-source Orders
    """


@action(
    dry_run,
    option("--keep-new", help="do not delete NEW"),
    shared.yes,
)
def cancel(**options: Any) -> None:
    """End the re-key before a cutover, and leave everything as it was before create.

    \b
    examples:
      keyhop rekey cancel Orders --to New --dry-run
      keyhop rekey cancel Orders --to New
    """


@action(
    show_keys("full: name some of the items that collide, and of the stragglers"),
)
def status(**options: Any) -> None:
    """Show the progress of the re-key, its problems, and what to do next.

    \b
    examples:
      keyhop rekey status Orders --to New
      keyhop rekey status Orders --to New -f json | jq .next
    """
