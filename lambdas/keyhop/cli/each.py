"""`keyhop each TABLE`: the flags; what the command does is in each_actions.py."""

from typing import Any

import click

from keyhop.cli import options as shared
from keyhop.cli.options import in_section, limit, output, whole
from keyhop.public.limits import DEFAULT_BATCH, GUARDS, MOST_BATCH

doing = in_section("The action for each key: give one")
how = in_section("How")
which = in_section("Which keys")

LOCAL = ("output", "give_up_after")


@click.command(
    "each", cls=shared.Command, short_help="Perform one action for each item collection."
)
@shared.table
@doing("--put FILE", help="put the item in FILE (JSON, without its partition key)")
@doing("--update EXPRESSION", help="update the item that --item names, where it exists")
@doing("--delete", help="delete the item that --item names, where it exists")
@doing("--invoke FUNCTION", help="invoke this function with batches of keys")
@doing("--queue URL", help="send a message for each batch of keys")
@doing("--start-machine ARN", help="start an execution for each batch of keys")
@doing(
    "--undo RUN",
    help="delete the items that the run in this directory (with --remote: of this name) put, if "
    "they are unchanged",
)
@how(
    "--item NAME=VALUE",
    help="with --update and --delete: the item's sort key, such as sk=PROFILE; or JSON",
)
@how(
    "--values JSON", help="with --update: the values of :names in the expression, as JSON or a file"
)
@how(
    "--names JSON", help="with --update: the values of #names in the expression, as JSON or a file"
)
@how(
    "--guard HOW",
    help="with --put: look (default) deletes the item again if the collection has no other one; "
    "transaction writes it only beside another item; none trusts the list",
    type=click.Choice(GUARDS),
)
@how("--overwrite", help="with --put: replace an item that exists; this cannot be undone")
@how(
    "--batch N",
    help=f"with --invoke, --queue and --start-machine: keys in a batch (default {DEFAULT_BATCH})",
    type=whole(1, MOST_BATCH),
)
@which(
    "--where CONDITION",
    help="only keys that match begins_with(TEXT), between(LOW, HIGH) or matches(REGULAR "
    "EXPRESSION). It filters the list, and saves no reads",
)
@which(
    "--keys RUN",
    help="use the keys of the finished run in this directory (with --remote: of this name); this "
    "reads nothing",
)
@shared.method
@shared.max_write_rate
@limit(
    "--max-write-units WRU",
    help="stop before writing more than this (exit status 4)",
    type=shared.positive,
)
@shared.max_read_rate
@limit(
    "--max-read-units RRU",
    help="stop before the list of keys reads more than this (exit status 4)",
    type=shared.positive,
)
@shared.max_cost
@shared.give_up_after
@in_section("Before it begins")(
    "--dry-run",
    "-n",
    help="read a small sample, print what it would write and cost, and write nothing",
)
@shared.yes
@output(
    "--output DIR",
    "-o",
    type=shared.directory,
    help="keep the run in DIR (default: a new directory here, named after the table and the time)",
)
@shared.resume_anywhere
@shared.reporting
@shared.remotely
@shared.max_concurrency
@shared.where
@shared.stack
def run(**options: Any) -> None:
    """Perform one action for each partition key: put, update or delete an item, or pass on the key.

    \b
    examples:
      keyhop each Orders --put item.json --dry-run        what would it cost?
      keyhop each Orders --put item.json -o run           asks, then puts
      keyhop each Orders --put item.json --resume run     ... continue
      keyhop each Orders --undo run                       delete what it has put
      keyhop each Orders --put item.json --keys list      for these keys
      keyhop each Orders --delete --item sk=OLD           one item of each
      keyhop each Orders --invoke my-function --batch 50  batches to a function
      keyhop each Orders --put item.json --remote         by a deployment

    The item is JSON, plain or in DynamoDB's typed form. Its texts may hold ${key}, ${run}, ${now}
    and ${first.NAME} (docs/how-to/each.md). A put never replaces an item, except with --overwrite,
    and never creates an item collection. The directory of the run holds each key and its outcome.

    exit status: 0 done, 2 error, 3 some keys failed or were changed since, 4 --max-write-units,
    --max-read-units or --max-cost reached, 130 interrupted, 143 terminated. With --remote: 0
    started.
    """
    shared.check_place(options["remote"], LOCAL)
