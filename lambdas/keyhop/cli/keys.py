"""`keyhop keys TABLE`: every distinct partition key of a table, once."""

import argparse
import json
import sys
import tempfile
from pathlib import Path
from typing import Any

from keyhop.cli.exit_status import DONE
from keyhop.cli.local_runner import Job
from keyhop.cli.logical import Folds, asked
from keyhop.cli.options import positive, rate, share, whole
from keyhop.cli.plan_view import plan_text
from keyhop.cli.session import Limits, connect, reader_of, stop_on_signals
from keyhop.cli.summary import check_report_path
from keyhop.dynamodb.client import DynamoDB, Endpoint
from keyhop.dynamodb.tables import DEFAULT_PATIENCE_SECONDS, Target
from keyhop.errors import CannotStart
from keyhop.jobs.estimate import DEFAULT_UNITS, estimate
from keyhop.jobs.formats import FORMATS
from keyhop.jobs.journal import RunLog
from keyhop.jobs.layout import MOST_WORKERS, Choice, Wishes, choose_method
from keyhop.key_index.belief import choose_source
from keyhop.key_index.registry import local_book
from keyhop.scan.reader import PageReader, Stopped
from keyhop.scan.segments import MOST_SEGMENTS
from keyhop.storage.local import Directory

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
    command.set_defaults(run=run)
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
        help=f"segments read at once (default: up to {MOST_WORKERS})",
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


def run(options: argparse.Namespace) -> int:
    """The command; returns its exit status, or raises a KeyhopError."""
    _check(options)
    endpoint = Endpoint(options.region, options.profile, options.endpoint_url)
    limits = Limits(options.max_read_rate, options.max_read_units, options.give_up_after)
    wishes = Wishes(options.segments, options.workers, options.max_read_rate, options.verify)
    # Until here there is nothing to end cleanly: signals end it at once.
    client, target, endpoint = connect(
        endpoint, options.table, options.index, options.workers or 0, options.give_up_after
    )
    target, choice = _chosen(options, client, endpoint, target)
    with stop_on_signals() as stop:
        if options.plan:
            unlimited = Limits(limits.max_rate, None, limits.patience)
            reader = reader_of(client, target, endpoint, unlimited, stop)
            try:
                by_itself = choose_method(target.space, target.index, "auto")
                return _show_plan(options, reader, by_itself, wishes)
            except Stopped:
                return stop.status
        reader = reader_of(client, target, endpoint, limits, stop)
        folds = Folds(client, endpoint)
        wanted = asked(options)
        if wanted is not None:
            folds.check(target.space, wanted)
        job = Job(options, reader, choice, wishes, stop, folds)
        if options.output:
            return job.run(lambda: job.to_directory(Path(options.output)))
        if options.verify or options.metadata:
            with tempfile.TemporaryDirectory(prefix="keyhop-") as folder:
                return job.run(lambda: job.to_directory(Path(folder), copy=True))
        return job.run(job.to_stdout)


def _check(options: argparse.Namespace) -> None:
    """Flags that do not go together; raises CannotStart."""
    for flag in ("output", "report", "separator", "metadata"):
        value = getattr(options, flag)
        if value is not None and not value:  # Python 3.11 makes an empty list of --separator=--
            raise CannotStart(f"--{flag} is empty: give it a value, or leave the flag out.")
    if sys.stdout is None and not options.output:
        raise CannotStart("Standard output is closed: open it, or write to files with --output.")
    if options.resume and not options.output:
        raise CannotStart("--resume needs --output DIR: only a run in a directory can be resumed.")
    if options.format == "json" and not options.plan:
        raise CannotStart("--format json is for --plan; keys can be text, jsonl or csv.")
    if options.plan and options.format not in (None, "text", "json"):
        raise CannotStart("--plan prints text, or --format json.")
    if options.plan and options.method == "index":
        raise CannotStart("--plan samples the table; keyhop index status tells of the key index.")
    if options.plan and (options.output or options.verify or options.report):
        raise CannotStart("--plan only estimates: it goes without --output, --report and --verify.")
    if (options.separator or options.metadata) and not options.logical:
        raise CannotStart("--separator and --metadata are for --logical: give that too.")
    if options.logical and options.index:
        raise CannotStart("--logical folds the keys of the table: leave --index out.")
    if options.logical and options.plan:
        raise CannotStart("--plan samples physical keys: leave --logical out.")
    if options.verify and options.index:
        raise CannotStart(
            "--verify does not work with --index: an index is read through by plain Scans anyway."
        )
    if options.report:
        check_report_path(options.report)


def _chosen(
    options: argparse.Namespace, client: DynamoDB, endpoint: Endpoint, target: Target
) -> tuple[Target, Choice]:
    """What to read, and how: the key index where that is asked for, or `auto` finds it good."""
    if options.method == "index" and options.index:
        raise CannotStart("--method index reads the key index: leave --index out.")
    if options.method == "index" and options.verify:
        raise CannotStart(
            "--verify does not work with --method index: keyhop index audit checks all of it."
        )
    if options.index or options.plan or options.verify or options.method in ("skip", "scan"):
        return target, choose_method(target.space, target.index, options.method)
    asked = options.method
    if options.resume:
        plan = RunLog(Directory(Path(options.output))).plan()
        if plan is not None and plan.method != "index":
            return target, choose_method(target.space, None, asked)
        asked = asked if plan is None else "index"
    return choose_source(
        client,
        endpoint,
        target,
        asked,
        lambda state: local_book(state.name, state.identity),
    )


def _show_plan(
    options: argparse.Namespace, reader: PageReader, choice: Choice, wishes: Wishes
) -> int:
    found = estimate(reader, choice, wishes, options.max_read_units or DEFAULT_UNITS)
    if options.format == "json":
        print(json.dumps(found.to_json(), indent=2, ensure_ascii=False))
    else:
        print(plan_text(found), end="")
    return DONE
