"""`keyhop runs ACTION`: the flags; what they do is in runs_actions.py."""

from typing import Any

import click

from keyhop.cli import options as shared
from keyhop.cli.options import in_section, together, whole
from keyhop.public.limits import DEFAULT_STACK

MOST_LISTED = 1000

option = in_section("This command")
place = in_section("Where the deployment is")
everywhere = together(
    shared.account(place),
    place(
        "--stack NAME",
        help=f"the name of its stack (default: {DEFAULT_STACK})",
        default=DEFAULT_STACK,
    ),
    shared.reporting,
)
follow = option("--follow", help="show the progress until the end; Ctrl-C ends only the display")
name = shared.argument("run", help="name of a run, or ARN of an execution")


@click.group(
    "runs",
    cls=shared.Group,
    subcommand_metavar="ACTION",
    short_help="List, show, fetch or stop the runs of a deployment.",
)
@everywhere
def runs(**_: Any) -> None:
    """List, show, fetch or stop the runs of a deployment. keyhop keys --remote starts one.

    \b
    examples:
      keyhop runs list                       the latest runs
      keyhop runs show RUN --follow          the progress of one
      keyhop runs fetch RUN keys             its keys, into a directory
      keyhop runs stop RUN                   stop it
    """


@runs.command("list", cls=shared.Command, short_help="List the latest runs.")
@option("--table NAME", help="only runs of this table")
@option("--limit N", help="the number of runs (default 20)", type=whole(1, MOST_LISTED), default=20)
@everywhere
def list_runs(**options: Any) -> None:
    """List the latest runs of a deployment, the latest first.

    \b
    examples:
      keyhop runs list                       of all its state machines
      keyhop runs list --table Orders --limit 5
      keyhop runs list --format json         for programs

    Step Functions forgets an execution 90 days after its end.
    """


@runs.command("show", cls=shared.Command, short_help="Show a run.")
@name
@follow
@everywhere
def show(**options: Any) -> None:
    """Show the progress of a run of a deployment, its result, or why it failed.

    \b
    examples:
      keyhop runs show RUN                   RUN: as keyhop runs list names it
      keyhop runs show RUN --follow          until it ends
      keyhop runs show RUN --format json     for programs

    exit status: 0 shown, with --follow: finished; 2 error, with --follow: or failed; 3 its check
    has found missing keys; 4 its read units are spent; 130 Ctrl-C: the run continues.
    """


@runs.command("fetch", cls=shared.Command, short_help="Copy the keys of a run.")
@name
@shared.argument(
    "directory",
    metavar="DIR",
    help="a new or empty directory, or that of an interrupted fetch; - to print the keys",
)
@everywhere
def fetch(**options: Any) -> None:
    """Copy the keys of a finished run of a deployment into a directory.

    \b
    examples:
      keyhop runs fetch RUN keys             keys/parts, keys/manifest.json
      keyhop runs fetch RUN - --format csv   print them; nothing is kept

    The directory is like that of keyhop keys --output. The SHA-256 of each part is checked. After
    an interruption the same command continues.

    exit status: 0 done, 2 error, 130 interrupted, 143 terminated.
    """


@runs.command("stop", cls=shared.Command, short_help="Stop a run.")
@name
@everywhere
def stop(**options: Any) -> None:
    """Stop a run of a deployment. It keeps what it has committed, and does not ask.

    \b
    examples:
      keyhop runs stop RUN                   RUN: as keyhop runs list names it
      keyhop keys Orders --remote --resume RUN  continue it later

    A worker that is reading can go on until the end of its Lambda invocation. A cutover or a
    rollback of a re-key is not stopped: keyhop rekey has commands that abort it.

    exit status: 0 stopped, 2 error, or the run had ended before.
    """
