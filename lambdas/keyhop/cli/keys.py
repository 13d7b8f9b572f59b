"""`keyhop keys TABLE`: every distinct partition key of a table, once."""

import argparse
from typing import Any

from keyhop.cli import keys_actions
from keyhop.cli.options import positive, rate, share, whole
from keyhop.dynamodb.requester import DEFAULT_PATIENCE_SECONDS
from keyhop.jobs.estimate import DEFAULT_UNITS
from keyhop.jobs.formats import FORMATS
from keyhop.jobs.layout import MOST_THREADS
from keyhop.scan.segments import MOST_SEGMENTS

EPILOG = """\
examples:
  keyhop keys Orders                              print the keys
  keyhop keys Orders --plan                       first see what it would cost
  keyhop keys Orders --output keys --format jsonl into files; add --resume to continue
  keyhop keys Orders --max-read-rate 500          spare production
  keyhop keys Orders --index by-day               the keys of an index
  keyhop keys Orders --output keys --verify 0.01  check 1 % of the result by a plain Scan
  keyhop keys Audit --logical                     /f.txt once, not /f.txt_1, /f.txt_2, ...
  keyhop keys Audit --logical --metadata shards   ... and a key that only looks like a shard stays

exit status: 0 done, 2 error, 3 --verify found missing keys, 4 --max-read-units reached,
130 interrupted, 143 terminated.
Set KEYHOP_DEBUG=1 for stack traces. Standard output carries keys only; the rest goes to standard
error, and holds no keys but the examples that --verify names.
"""


def add_command(commands: Any) -> None:
    """Add `keys` to the command line."""
    command = commands.add_parser(
        "keys",
        help="list the distinct partition keys of a table",
        description="Print every distinct partition key of a table, or of an index, once.",
        epilog=EPILOG,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    command.set_defaults(run=keys_actions.run)
    command.add_argument("table", metavar="TABLE", help="name or ARN of the table")
    command.add_argument("--index", metavar="NAME", help="list the keys of this index instead")

    reading = command.add_argument_group("reading")
    reading.add_argument(
        "--method",
        choices=("auto", "skip", "scan", "index"),
        default="auto",
        help="skip: hop from key to key; scan: read everything; index: read the key index; auto "
        "(default): choose, say why",
    )
    reading.add_argument(
        "--segments",
        type=whole(1, MOST_SEGMENTS),
        metavar="N",
        help="parts of the hash space to read independently (default: planned from the table)",
    )
    reading.add_argument(
        "--workers",
        type=whole(1, 256),
        metavar="N",
        help=f"segments read at once (default: up to {MOST_THREADS})",
    )
    reading.add_argument(
        "--max-read-rate",
        type=rate,
        metavar="RRU_PER_SECOND",
        help="hold the whole run under this many read units a second",
    )
    reading.add_argument(
        "--max-read-units",
        type=positive,
        metavar="RRU",
        help="stop before spending more than this (exit status 4); counts from zero at each start. "
        f"With --plan: what the sample may cost (default {DEFAULT_UNITS:g})",
    )
    reading.add_argument(
        "--give-up-after",
        type=positive,
        default=DEFAULT_PATIENCE_SECONDS,
        metavar="SECONDS",
        help="end the run when nothing but throttling and failures came for this long (default "
        f"{DEFAULT_PATIENCE_SECONDS:g})",
    )
    reading.add_argument(
        "--plan",
        action="store_true",
        help="read a small sample only, and print what each method would cost",
    )

    folding = command.add_argument_group(
        "logical keys, of a table with sharded keys",
        "With --output, the physical keys are in DIR/parts, and the logical ones in DIR/logical.",
    )
    folding.add_argument(
        "--logical",
        action="store_true",
        help="list logical keys: /f.txt once for /f.txt_1, /f.txt_2, ... Every key that ends in "
        "the separator and a number from 1 to 1000 is taken for a shard; others stay as they are",
    )
    folding.add_argument(
        "--separator", metavar="TEXT", help="between a logical key and its shard (default: _)"
    )
    folding.add_argument(
        "--metadata",
        metavar="NAME",
        help="take for a shard only what this shard-metadata table knows as one; for a table that "
        "also holds ordinary keys that end in _3. Keys are printed at the end then. Reading the "
        "metadata costs one read unit for each 4 KB, which are not in the summary",
    )

    output = command.add_argument_group("output")
    output.add_argument(
        "--format",
        choices=(*FORMATS, "json"),
        help="text (default): a key a line, binary as base64, a string with control characters as "
        'a JSON string; jsonl: {"pk": {"S": "a"}}; csv: with a header; json: for --plan only',
    )
    output.add_argument(
        "--output",
        metavar="DIR",
        help="write the keys to DIR/parts and a DIR/manifest.json; such a run can be resumed",
    )
    output.add_argument("--resume", action="store_true", help="continue the unfinished run in DIR")
    output.add_argument("--report", metavar="FILE", help="write the summary to FILE as JSON")
    output.add_argument(
        "--verify",
        type=share,
        metavar="SHARE",
        help="afterwards read this share of the table (0 to 1) by plain Scans, and compare",
    )
    output.add_argument("--quiet", action="store_true", help="no progress, no summary")

    place = command.add_argument_group("where the table is")
    place.add_argument("--region", help="AWS region (default: from your AWS configuration)")
    place.add_argument("--profile", help="AWS profile")
    place.add_argument(
        "--endpoint-url",
        metavar="URL",
        help="another endpoint, such as DynamoDB Local; on this machine it needs no credentials",
    )
