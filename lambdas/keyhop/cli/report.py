"""`keyhop report TABLE`: the flags; what the command does is in report_actions.py."""

from typing import Any

import click

from keyhop.cli import options as shared
from keyhop.cli.options import in_section, limit, output, positive, whole
from keyhop.public.limits import SEVERITIES, SHOW_KEYS
from keyhop.report.request import (
    DEFAULT_UNITS,
    LIKE_A_TIME,
    MOST_CONFIRMED,
    THROTTLED,
    is_time,
    seconds_of,
)

FORMATS = (*shared.FORMATS, "html")

reading = in_section("Sources")
judged = in_section("Judgement")

LOCAL = ("code", "requests", "output", "give_up_after")


def time_span(text: str) -> str:
    """A time as 14d, 6h, 15m or 30s."""
    if not is_time(text):
        raise click.BadParameter(f"{text!r} is not {LIKE_A_TIME}")
    return text


def seconds(text: str) -> float:
    """The same, in seconds."""
    return seconds_of(time_span(text))


@click.command(
    "report",
    cls=shared.Command,
    short_help="Report the problems of a table's keys, with advice.",
)
@shared.table
@reading("--dry-run", "-n", help="read no data; print what the sample may cost")
@reading(
    "--exhaustive",
    help="read every partition key instead of a sample; asks before it costs more than $1",
)
@reading("--control-plane-only", help="read nothing of the table's data")
@reading(
    "--since TIME", help="how far back metrics go (default 14d)", type=time_span, default="14d"
)
@reading(
    "--stream TIME", help="read the end of the table's stream, such as the last 15m", type=seconds
)
@reading("--insights", help="ask Contributor Insights for the most accessed keys, where it is on")
@reading("--code DIR", help="look for calls in your application's Python files; runs none of them")
@reading(
    "--requests FILE",
    help="the requests that keyhop.report.sampler has recorded in your application",
)
@reading(
    "--accept WHAT",
    help=f"{THROTTLED}: read the table even if its key ranges were throttled within the last hour",
    type=click.Choice((THROTTLED,)),
    multiple=True,
)
@judged("--peak-writes W", help="write units a second that you expect", type=positive)
@judged(
    "--candidate KEY",
    help="another partition key, such as 'PK=DEVICE#{deviceId}#{ts:day}': judge how "
    "your items would be under it; may be repeated",
    multiple=True,
)
@judged(
    "--confirm N",
    help="look again at the N largest collections, by more reads (default 3)",
    type=whole(0, MOST_CONFIRMED),
    default=3,
)
@limit(
    "--max-read-units RRU",
    help=f"the sample reads no more than this (default {DEFAULT_UNITS:,.0f})",
    type=positive,
)
@limit(
    "--max-cost DOLLARS",
    help="the same in dollars of reads; with --exhaustive, refuse or end above it, with status 4",
    type=positive,
)
@shared.max_read_rate
@shared.give_up_after
@shared.yes
@output(
    "--format FORMAT",
    "-f",
    help="text (default); json; csv: a row for each finding; typed-json: as json; html: the page",
    type=click.Choice(FORMATS),
)
@output("--verbose", help="print all evidence, all steps, and why rules are clear")
@output(
    "--output DIR", "-o", type=shared.directory, help="write report.html and report.json to DIR"
)
@output(
    "--show-keys HOW",
    help="digest (default): no key is written; prefix: the first characters; full",
    type=click.Choice(SHOW_KEYS),
    default="digest",
)
@output(
    "--baseline OLD.json",
    help="print the changes since this report; with --remote: since that of the run OLD",
)
@output(
    "--fail-on SEVERITY",
    help="exit status 5 for a finding of this severity or worse; with --baseline for new ones",
    type=click.Choice(SEVERITIES),
)
@output("--strict", help="exit status 6 if a rule is unknown and a flag would answer it")
@shared.quiet
@shared.remotely
@shared.max_concurrency
@shared.where
@shared.stack
def run(**options: Any) -> None:
    """Report the problems of a live table's keys, with evidence, advice and its costs. It reads a
    sample, and writes nothing.

    \b
    examples:
      keyhop report Orders                       a sample of 2,000 RRU: $0.0003
      keyhop report Orders --dry-run             what would it cost?
      keyhop report Orders -o report             the page: report/report.html
      keyhop report Orders --stream 15m          who is written most
      keyhop report Orders --code src --requests requests.jsonl
      keyhop report Orders --candidate 'PK=CUSTOMER#{customerId}'
      keyhop report Orders --fail-on high --baseline report/report.json
      keyhop report Orders --remote --follow     by a deployment

    The result of each rule is found, clear or unknown. It is clear only if the data excludes the
    problem; an unknown one has the price of an answer. docs/how-to/report.md explains the rules.

    exit status: 0 done, 2 error, 4 --max-cost reached, 5 a finding as severe as --fail-on, 6 an
    unknown rule with --strict, 130 interrupted, 143 terminated. With --remote: 0 started.
    """
    shared.check_place(options["remote"], LOCAL)
    if options["remote"] and options["format"] == "html":
        raise click.UsageError(
            "--format html does not work with --remote: the deployment writes the page to its "
            "bucket",
            click.get_current_context(),
        )
