"""What `keyhop report` does: read all sources, judge them, and print the report."""

import json
import sys
from collections.abc import Callable
from dataclasses import fields
from pathlib import Path
from typing import TYPE_CHECKING, Any

from keyhop.checks import check_characters
from keyhop.cli.exit_status import DONE
from keyhop.cli.options import Options, flag
from keyhop.cli.output import encodable, put_out, width_of
from keyhop.cli.progress import StatusLine
from keyhop.cli.session import (
    ASK_ABOVE,
    Facts,
    Stop,
    confirm,
    connection_of,
    place,
    stop_on_signals,
)
from keyhop.errors import CannotStart
from keyhop.jobs.request import table_name
from keyhop.public.examination import Examination, examine
from keyhop.public.runs import Progress
from keyhop.public.tables import NamedTable, suggesting
from keyhop.report.request import ReportInput

if TYPE_CHECKING:
    from keyhop.dynamodb.client import Connection

HTML, JSON = "report.html", "report.json"
STYLES = {
    "title": "bold",
    "high": "bold red",
    "medium": "yellow",
    "low": "cyan",
    "info": "blue",
    "body": "",
    "unknown": "magenta",
    "clear": "green",
    "command": "bold",
    "quiet": "dim",
}
_FIELDS = {field.name for field in fields(ReportInput)}
ARGUMENTS = (
    *("stack", "exhaustive", "control_plane_only", "since", "stream", "insights", "code"),
    *("requests", "accept", "peak_writes", "confirm", "max_read_units", "max_read_rate"),
    *("max_cost", "show_keys", "dry_run"),
)
OF_A_REPORT = ("output", "baseline", "fail_on", "strict")
"""Flags for a report, of which --dry-run makes none."""
ACTIVITIES = {"metrics": "looking at the metrics of {}", "stream": "reading the stream"}


def run(options: Options) -> int:
    """Run the command; return its exit status, or raise a KeyhopError."""
    if options.remote:
        from keyhop.cli.runs_actions import input_of, start  # They load boto3's transfers.

        values = input_of(ReportInput, options, candidates=options.candidate)
        return start(options, "ReportKeys", values)
    _check(options)
    baseline = None if options.baseline is None else _old(options.baseline)
    _check_output(options.output)
    with stop_on_signals("No report was made.") as stop:
        return _put_out(options, _examine(options, baseline, stop))
    return stop.status


def _check(options: Options) -> None:
    """Raise CannotStart for flags that exclude each other, by their names."""
    if options.dry_run and any(getattr(options, name) for name in OF_A_REPORT):
        raise CannotStart(f"--dry-run only prints the price: leave out {_listed(OF_A_REPORT)}.")
    if options.dry_run and options.format == "html":
        raise CannotStart("--dry-run has no page: leave out --format html.")
    values = {name: value for name, value in _arguments(options).items() if name in _FIELDS}
    report_input = ReportInput(table=options.table, **{**values, "baseline": None})
    for sentence in report_input.contradictions(flag):
        raise CannotStart(f"{sentence}.")


def _listed(names: tuple[str, ...]) -> str:
    return ", ".join(map(flag, names[:-1])) + f" and {flag(names[-1])}"


def _old(path: str) -> Any:
    try:
        report = json.loads(Path(path).read_bytes())
        check_characters(report)
        return report
    except (OSError, ValueError, RecursionError) as error:
        raise CannotStart(f"--baseline: {path} cannot be read as JSON: {error}.") from error


def _check_output(path: str | None) -> None:
    """Raise CannotStart, before anything is read, if the page could not be written."""
    if path is None:
        return
    try:
        Path(path).mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise CannotStart(f"--output {path}: {error.strerror}.") from error


def _arguments(options: Options) -> dict[str, Any]:
    """Return the flags that are arguments of keyhop.examine."""
    values = {name: getattr(options, name) for name in ARGUMENTS}
    return {**values, "candidates": tuple(options.candidate), "patience": options.give_up_after}


def _examine(options: Options, baseline: Any, stop: Stop) -> Examination:
    """Examine the table, ask about the price, and show the progress."""
    connection = connection_of(options)

    def show(progress: Progress) -> None:
        text = ACTIVITIES.get(progress.activity, f"{progress.read_units:,.0f} RRU read")
        share = progress.share if progress.activity == "sample" and not options.exhaustive else None
        status.now(progress.activity, text.format(table_name(options.table)), share)

    def ask(price: Examination) -> None:
        if options.max_cost is None and (price.dollars is None or price.dollars > ASK_ABOVE):
            act = f"look at every partition key of {price.table}"
            act = act if options.exhaustive else f"read a sample of {price.table}"
            confirm(act, lambda: _price_facts(price, connection), options.yes, stop.event)

    with suggesting(connection, options.table), StatusLine(options.quiet) as status:
        return examine(
            NamedTable(connection, options.table),
            **_arguments(options),
            baseline=baseline,
            progress=show,
            approve=ask,
            stop=stop.event,
        )


def _price_facts(price: Examination, connection: "Connection") -> Facts:
    yield from place(price.arn, connection.endpoint)
    items, dollars = price.to_json()["items"], price.dollars
    yield "items", f"{items:,}" if items else "not known yet"
    about = "not known yet" if dollars is None else f"up to about ${dollars:,.2f}"
    yield "cost", f"{about} ({connection.prices.on_demand})"


def _put_out(options: Options, examination: Examination) -> int:
    if examination.dry_run:
        put_out(options.format, examination.to_json(), examination.to_text)
        return DONE
    if options.output is not None:
        folder = Path(options.output)
        (folder / HTML).write_text(examination.to_html(), encoding="utf-8")
        (folder / JSON).write_text(_json(examination), encoding="utf-8")
    forms: dict[str, Callable[[Examination], str]] = {
        "json": _json,
        "typed-json": _json,
        "html": Examination.to_html,
    }
    if options.format in forms:
        sys.stdout.write(encodable(forms[options.format](examination)))
    elif options.format == "csv":
        put_out("csv", examination.to_json()["findings"], str)
    else:
        _print(examination, options.verbose)
        if options.output is not None:
            print(f"\nThe page, with pictures: {Path(options.output) / HTML}")
    return examination.exit_status(options.fail_on, options.strict)


def _width() -> int:
    """Return the width of the terminal; 0 means no limit."""
    return width_of(sys.stdout) if sys.stdout.isatty() else 0


def _json(examination: Examination) -> str:
    return json.dumps(examination.to_json(), indent=2, ensure_ascii=False) + "\n"


def _print(examination: Examination, verbose: bool) -> None:
    lines = examination.lines(_width(), verbose)
    if not sys.stdout.isatty():
        for line in lines:
            print(encodable(line.text))
        return
    from rich.console import Console
    from rich.text import Text

    console = Console(highlight=False, soft_wrap=True)
    for line in lines:
        console.print(Text(line.text, style=STYLES[line.tone]))
