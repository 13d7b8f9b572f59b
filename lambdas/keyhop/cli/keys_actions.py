"""What `keyhop keys` does: choose what to read, list the keys, or only estimate."""

import argparse
import json
import sys
import tempfile
from pathlib import Path

from keyhop.cli.exit_status import DONE
from keyhop.cli.local_runner import Job
from keyhop.cli.logical import Folds, asked
from keyhop.cli.plan_view import plan_text
from keyhop.cli.session import Limits, connect, reader_of, stop_on_signals
from keyhop.cli.summary import check_report_path
from keyhop.dynamodb.client import DynamoDB, Endpoint
from keyhop.dynamodb.tables import Target
from keyhop.errors import CannotStart
from keyhop.jobs.estimate import estimate
from keyhop.jobs.journal import RunLog
from keyhop.jobs.layout import DEFAULT_UNITS, Choice, Wishes, choose_method
from keyhop.key_index.belief import choose_source
from keyhop.key_index.registry import local_book
from keyhop.scan.reader import PageReader, Stopped
from keyhop.storage.local import Directory


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
