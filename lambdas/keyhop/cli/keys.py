"""`keyhop keys TABLE`: the flags; what the command does is in keys_actions.py."""

from typing import Any

import click

from keyhop.cli import options as shared
from keyhop.cli.options import in_section, limit, output, whole
from keyhop.keys.request import STALE_INDEX
from keyhop.public.limits import DEFAULT_UNITS, MOST, MOST_SEGMENTS

reading = in_section("Reading")
folding = in_section("Logical keys, of a table with sharded keys")

LOCAL = ("threads", "processes", "limit", "give_up_after", "count", "summary")


@click.command(
    "keys", cls=shared.Command, short_help="List the distinct partition keys of a table."
)
@shared.table
@reading("--index NAME", help="list the keys of this index instead")
@shared.method
@reading(
    "--accept WHAT",
    help=f"{STALE_INDEX}, with --method index: read the key index even if it may be out of date; "
    "the report says why it is not trusted",
    type=click.Choice((STALE_INDEX,)),
    multiple=True,
)
@reading("--dry-run", "-n", help="read a small sample only, and print what each method would cost")
@reading(
    "--segments N",
    help="parts of the hash space to read independently (default: planned from the table)",
    type=whole(1, MOST_SEGMENTS),
)
@reading(
    "--threads N",
    help="segments read at once, at most, each by a thread: as many are as make it faster "
    f"(default: up to {MOST})",
    type=whole(1, MOST),
)
@reading(
    "--processes N",
    help="processes that read at once, with up to --threads each (default: one for each core that "
    "has 15 seconds to do; an index and a small table have one). Without --output they keep the "
    "keys in a temporary directory until the end",
    type=whole(1, 256),
)
@shared.max_read_rate
@limit(
    "--max-read-units RRU",
    help="stop before spending more than this (exit status 4); counts from zero at each start. "
    f"With --dry-run: what the sample may cost (default {DEFAULT_UNITS:g})",
    type=shared.positive,
)
@limit(
    "--max-cost DOLLARS",
    help="the same in dollars of reads, at the prices that --dry-run names. With --remote: refuse "
    "the run if the upper end of its estimate, of all services, is more (default: "
    "as the deployment is set)",
    type=shared.positive,
)
@limit("--limit N", help="print at most N keys, then stop reading", type=whole(1, 10**9))
@shared.give_up_after
@shared.yes
@folding(
    "--logical",
    help="list logical keys: /f.txt once for /f.txt_1, /f.txt_2, ... Every key that ends in the "
    "separator and a number from 1 to 1000 is taken for a shard; others stay as they are. With "
    "--output, the physical keys are in DIR/parts, and the logical ones in DIR/logical",
)
@folding("--separator TEXT", help="between a logical key and its shard (default: _)")
@folding(
    "--metadata NAME",
    help="take for a shard only what this shard-metadata table knows as one; for a table that also "
    "holds ordinary keys that end in _3. Keys are printed at the end then. Reading the metadata "
    "costs one read unit for each 4 KB, which are not in the summary",
)
@output(
    "--output DIR",
    "-o",
    type=shared.directory,
    help="write the keys to DIR/parts and a DIR/manifest.json; such a run can be resumed. With "
    "--remote: wait for the run, and copy its keys to DIR",
)
@shared.resume_anywhere
@output(
    "--verify SHARE",
    help="afterwards read this share of the table (0 to 1) by plain Scans, and compare",
    type=shared.share,
)
@shared.format_
@output("--count", help="print the number of keys only")
@output("--summary FILE", help="write the summary to FILE as JSON")
@shared.quiet
@shared.remotely
@shared.max_concurrency
@shared.remote(
    "--file-format FORMAT",
    help="of the files of keys: jsonl (default), a key in DynamoDB's typed form a line; csv",
    type=click.Choice(("jsonl", "csv")),
)
@shared.where
@shared.stack
def run(**options: Any) -> None:
    """Print every distinct partition key of a table, or of an index, once.

    \b
    examples:
      keyhop keys Orders --dry-run               what would it cost?
      keyhop keys Orders                         print the keys
      keyhop keys Orders --format json           one object a line: {"pk": "a"}
      keyhop keys Orders --limit 3               some of them
      keyhop keys Orders --count                 how many?
      keyhop keys Orders -o keys                 into files, which a crash spares
      keyhop keys Orders --resume keys           ... go on after an interruption
      keyhop keys Orders -o keys --verify 0.01   ... check 1 % by a plain Scan
      keyhop keys Orders --max-read-rate 500     spare production
      keyhop keys Orders --index by-day          the keys of an index
      keyhop keys Audit --logical                /f.txt, not /f.txt_1, /f.txt_2
      keyhop keys Audit --logical --metadata M   ... of known shards only
      keyhop keys Orders --remote                by a deployment; prints a name
      keyhop keys Orders --remote --follow       ... wait, and print the keys
      keyhop keys Orders --remote -o keys        ... wait, and copy them to files
      keyhop keys Orders --remote --resume RUN   ... go on with a failed run

    A deployment works on when this command ends, also by Ctrl-C: see keyhop runs.

    Standard output carries keys only; the rest goes to standard error, and holds no keys but the
    examples that --verify names.

    exit status: 0 done, 2 error, 3 --verify found missing keys, 4 --max-read-units or --max-cost
    reached, 130 interrupted, 143 terminated. With --remote: 0 started; after waiting also 2 if the
    run has failed, and 4 if it was refused for its cost; 130 the run goes on. Set KEYHOP_DEBUG=1
    for stack traces.
    """
    shared.check_place(options["remote"], LOCAL)
