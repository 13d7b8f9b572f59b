"""`keyhop keys TABLE`: the flags; what the command does is in keys_actions.py."""

from typing import Any

import click

from keyhop.cli import options as shared
from keyhop.cli.options import in_section, limit, output, whole
from keyhop.keys.request import STALE_INDEX
from keyhop.public.limits import DEFAULT_UNITS, MOST, MOST_SEGMENTS

reading = in_section("Reading")
folding = in_section("Logical keys of a sharded table")

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
    help="the maximum number of segments that are read at once, each by a thread (default: as "
    f"many as make it faster, up to {MOST})",
    type=whole(1, MOST),
)
@reading(
    "--processes N",
    help="processes that read at once, with up to --threads each (default: one per core if each "
    "has work for 15 seconds; one for an index). Without --output they keep the keys in a "
    "temporary directory until the end",
    type=whole(1, 256),
)
@shared.max_read_rate
@limit(
    "--max-read-units RRU",
    help="stop before spending more than this (exit status 4); counts from zero at each start. "
    f"With --dry-run: what the sample may cost (default {DEFAULT_UNITS:g})",
    type=shared.positive,
)
@shared.max_cost
@limit("--limit N", help="print at most N keys, then stop reading", type=whole(1, 10**9))
@shared.give_up_after
@shared.yes
@folding(
    "--logical",
    help="list logical keys: /f.txt once for /f.txt_1, /f.txt_2, ... Every key that ends in the "
    "separator and a number from 1 to 1000 counts as a shard; other keys stay as they are. With "
    "--output, the physical keys are in DIR/parts, and the logical ones in DIR/logical",
)
@folding("--separator TEXT", help="the text between a logical key and its shard (default: _)")
@folding(
    "--metadata NAME",
    help="count only shards that are in this shard-metadata table; use it if the table also holds "
    "ordinary keys that end in _3. The keys are then printed at the end. Reading the metadata "
    "costs one read unit for each 4 KB, which the summary does not include",
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
    help="the format of the key files: jsonl (default), a line per key in DynamoDB's typed form; "
    "csv",
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
      keyhop keys Orders -o keys                 to files, kept after a crash
      keyhop keys Orders --resume keys           ... continue after a crash
      keyhop keys Orders -o keys --verify 0.01   ... check 1 % by a plain Scan
      keyhop keys Orders --max-read-rate 500     leave capacity to others
      keyhop keys Orders --index by-day          the keys of an index
      keyhop keys Audit --logical                /f.txt, not /f.txt_1, /f.txt_2
      keyhop keys Audit --logical --metadata M   ... of known shards only
      keyhop keys Orders --remote                by a deployment; prints a name
      keyhop keys Orders --remote --follow       ... wait, and print the keys
      keyhop keys Orders --remote -o keys        ... wait, and copy them to files
      keyhop keys Orders --remote --resume RUN   ... continue a failed run

    A deployment continues when this command ends, also by Ctrl-C: see keyhop runs.

    Standard output has the keys only. Standard error has the rest, and no keys except examples of
    differences that --verify found.

    exit status: 0 done, 2 error, 3 --verify found missing keys, 4 --max-read-units or --max-cost
    reached, 130 interrupted, 143 terminated. With --remote: 0 started; after waiting also 2 if the
    run has failed, and 4 if it was refused for its cost; 130 the run goes on. Set KEYHOP_DEBUG=1
    for stack traces.
    """
    shared.check_place(options["remote"], LOCAL)
