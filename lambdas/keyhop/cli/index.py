"""`keyhop index ACTION TABLE`: the flags; what the actions do is in index_actions.py."""

import argparse
from typing import Any

from keyhop.cli import index_actions
from keyhop.cli.options import positive, rate
from keyhop.dynamodb.requester import DEFAULT_PATIENCE_SECONDS
from keyhop.key_index.task import GRACE_SECONDS

DEFAULT_WRITE_RATE = 1000.0
"""Write units a second: 500 sentinels."""

EPILOG = """\
A key index holds one tiny item, a sentinel, for each partition key of the table; reading it costs
0.5 read units for each 4 KB of keys. It stays true only while a keeper follows the table's stream:
deploy one with keyIndex, see the README. Without a keeper it is as true as its last audit.

examples:
  keyhop index build Orders --plan       what would it cost?
  keyhop index build Orders              add the index, put the sentinels, audit
  keyhop index status Orders
  keyhop keys Orders --method index      read the keys from it
  keyhop index audit Orders --no-repair  only look
  keyhop index reconcile Orders --queue URL
  keyhop index remove Orders             delete the sentinels and the index

exit status: 0 done, 2 error, 3 the audit found drift, 130 interrupted, 143 terminated. Each command
can be started again after an interruption. Reports name up to ten keys of each kind of drift.
"""


def add_command(commands: Any) -> None:
    """Add `index` to the command line."""
    command = commands.add_parser(
        "index",
        help="build, audit or remove the key index of a table",
        description="A list of the partition keys that is always there: the key index.",
        epilog=EPILOG,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    actions = command.add_subparsers(title="actions", metavar="ACTION", required=True)
    build = _action(
        actions, "build", index_actions.build, "add the index, put a sentinel for each key, audit"
    )
    _writing(build)
    build.add_argument("--plan", action="store_true", help="sample, and print what it would cost")
    audit = _action(
        actions, "audit", index_actions.audit, "walk the table and compare; repair what is wrong"
    )
    _writing(audit)
    audit.add_argument("--no-repair", action="store_true", help="only look")
    audit.add_argument(
        "--grace",
        type=_seconds,
        default=GRACE_SECONDS,
        metavar="SECONDS",
        help=f"how long a keeper may be behind (default {GRACE_SECONDS:g})",
    )
    remove = _action(
        actions, "remove", index_actions.remove, "delete the sentinels, then the index"
    )
    _writing(remove)
    remove.add_argument(
        "--sweep",
        action="store_true",
        help="look for sentinels also where no index is known: one strong read for each collection",
    )
    remove.add_argument(
        "--no-keeper",
        action="store_true",
        help="go on where it cannot be seen whether a keeper follows the table: you know of none",
    )
    _action(actions, "status", index_actions.status, "what there is, and what the last audit found")
    reconcile = _action(
        actions,
        "reconcile",
        index_actions.reconcile,
        "work what lies in the keeper's failure queue",
    )
    reconcile.add_argument(
        "--queue", required=True, metavar="URL", help="the output FailureQueueUrl of the stack"
    )
    reconcile.add_argument(
        "--discard-old",
        action="store_true",
        help="delete messages whose records the stream has forgotten; audit afterwards",
    )


def _action(actions: Any, name: str, run: Any, help_: str) -> argparse.ArgumentParser:
    parser: argparse.ArgumentParser = actions.add_parser(
        name, help=help_, description=help_[0].upper() + help_[1:] + "."
    )
    parser.set_defaults(run=run)
    parser.add_argument("table", metavar="TABLE", help="name or ARN of the table")
    parser.add_argument("--report", metavar="FILE", help="write the result to FILE as JSON")
    parser.add_argument("--quiet", action="store_true", help="no progress, no summary")
    place = parser.add_argument_group("where the table is")
    place.add_argument("--region", help="AWS region (default: from your AWS configuration)")
    place.add_argument("--profile", help="AWS profile")
    place.add_argument("--endpoint-url", metavar="URL", help="another endpoint")
    return parser


def _writing(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--max-write-rate",
        type=rate,
        default=DEFAULT_WRITE_RATE,
        metavar="WRU_PER_SECOND",
        help=f"hold writes under this (default {DEFAULT_WRITE_RATE:g}); a sentinel costs two",
    )
    parser.add_argument(
        "--max-read-rate", type=rate, metavar="RRU_PER_SECOND", help="hold reads under this"
    )
    parser.add_argument(
        "--sentinel",
        metavar="SORT_KEY",
        help="the sentinels' sort key, binary as base64 (default: that of the build, else the "
        "least one)",
    )
    parser.add_argument(
        "--output", metavar="DIR", help="keep the walks in DIR; such a walk can be resumed"
    )
    parser.add_argument("--resume", action="store_true", help="go on with the walks in DIR")
    parser.add_argument(
        "--give-up-after",
        type=positive,
        default=DEFAULT_PATIENCE_SECONDS,
        metavar="SECONDS",
        help=f"end when nothing has succeeded for so long (default {DEFAULT_PATIENCE_SECONDS:g})",
    )


def _seconds(text: str) -> float:
    return 0.0 if text.strip() in ("0", "0.0") else positive(text)
