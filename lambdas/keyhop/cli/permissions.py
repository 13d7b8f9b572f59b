"""`keyhop permissions COMMAND`: print the IAM policy that a command needs."""

import json

import click

from keyhop.cli import options as shared
from keyhop.cli.options import in_section
from keyhop.jobs.request import DEFAULT_STACK

option = in_section("This command")


@click.command(
    "permissions", cls=shared.Sections, short_help="Print the IAM policy that a command needs."
)
@shared.argument("command", help="keys, each, report, index, shards, rekey, runs, writer or reader")
@option("--table NAME", help="the table; all but runs need it")
@option("--to NAME", help="the other table of a re-key")
@option("--metadata NAME", help="the shard-metadata table (default: TABLE-shards)")
@option(
    "--stack NAME",
    help=f"the deployment that runs uses (default: {DEFAULT_STACK})",
    default=DEFAULT_STACK,
)
@option("--bucket NAME", help="its results bucket (default: STACK-*, as CloudFormation names it)")
@option("--region NAME", help="the region (default: any)", default="*")
@option("--account NUMBER", help="the account (default: any)", default="*")
def run(**options: str | None) -> None:
    """Print the IAM policy that a command needs, as JSON.

    \b
    examples:
      keyhop permissions keys --table Orders
      keyhop permissions rekey --table Orders --to OrdersByDay --region eu-west-1
      keyhop permissions runs --stack Keyhop       to use a deployment (--remote)

    The policy has the calls that tests have recorded. writer and reader are programs that use
    ShardedTable. This command makes no call to AWS.
    """
    from keyhop.public.permissions import permissions

    given = {name: value for name, value in options.items() if value is not None}
    click.echo(json.dumps(permissions(**given), indent=2))
