"""What `keyhop keys` does: choose what to read, list the keys, or only estimate."""

import json
import sys
import tempfile
from contextlib import ExitStack
from pathlib import Path

from keyhop.cli.exit_status import DONE
from keyhop.cli.keys_run import KeysRun
from keyhop.cli.local_runner import job_in
from keyhop.cli.options import Options
from keyhop.cli.plan_view import plan_text
from keyhop.cli.session import Stop, connection_of, stop_on_signals
from keyhop.cli.summary import check_report_path
from keyhop.dynamodb.client import Connection
from keyhop.dynamodb.requester import Stopped
from keyhop.dynamodb.tables import Source, Table, look_up
from keyhop.errors import CannotStart
from keyhop.jobs.estimate import estimate
from keyhop.jobs.layout import DEFAULT_UNITS, Wishes
from keyhop.jobs.request import Request
from keyhop.key_index.belief import choose_source
from keyhop.key_index.registry import local_registry
from keyhop.keys.request import keys_options, wanted_options
from keyhop.keys.task import choose_method
from keyhop.scan.rate_limit import Budget
from keyhop.scan.reader import PageReader
from keyhop.tasks import tasks_of


def run(options: Options) -> int:
    """The command; returns its exit status, or raises a KeyhopError."""
    _check(options)
    request = request_of(options)
    # Until here there is nothing to end cleanly: signals end it at once.
    connection = connection_of(options, options.threads or 0)
    table = look_up(connection, options.table, options.give_up_after)
    with stop_on_signals() as stop, ExitStack() as cleaning:
        if options.plan:
            return _show_plan(options, connection, table, stop)
        path = options.output
        if path is None and (options.verify or options.metadata):
            path = cleaning.enter_context(tempfile.TemporaryDirectory(prefix="keyhop-"))
        is_kept = path is not None
        tasks = tasks_of(believe, folds=is_kept)
        place = Path(path) if is_kept else None
        with job_in(place, request, tasks, connection, options, stop) as job:
            job.prepare(table)
            return KeysRun(job, options, stop, is_kept).run()


def request_of(options: Options) -> Request:
    """The flags as a job."""
    logical = (options.logical, options.separator, options.metadata)
    return Request(
        table=options.table,
        task="keys",
        options=keys_options(*logical),
        wanted=wanted_options(*logical),
        index=options.index,
        method=options.method,
        segments=options.segments,
        threads=options.threads,
        max_read_rate=options.max_read_rate,
        max_read_units=options.max_read_units,
        format=None if options.format == "json" else options.format,
        verify_share=options.verify,
    )


def believe(connection: Connection, table: Table, method: str) -> tuple[Source | None, str]:
    """Whether the keys are read from the key index, by what this user has on record."""
    return choose_source(table, method, local_registry)


def _check(options: Options) -> None:
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
    if options.method == "index" and options.index:
        raise CannotStart("--method index reads the key index: leave --index out.")
    if options.method == "index" and options.verify:
        raise CannotStart(
            "--verify does not work with --method index: keyhop index audit checks all of it."
        )
    if options.report:
        check_report_path(options.report)


def _show_plan(options: Options, connection: Connection, table: Table, stop: Stop) -> int:
    source = table.source(options.index)
    reader = PageReader(
        connection,
        source,
        Budget(options.max_read_rate),
        patience=options.give_up_after,
        stop=stop.event,
    )
    method, reason = choose_method(source.space, source.index, "auto")
    wishes = Wishes(options.segments, options.threads, options.max_read_rate)
    try:
        found = estimate(reader, method, reason, wishes, options.max_read_units or DEFAULT_UNITS)
    except Stopped:
        return stop.status
    if options.format == "json":
        print(json.dumps(found.to_json(), indent=2, ensure_ascii=False))
    else:
        print(plan_text(found))
    return DONE
