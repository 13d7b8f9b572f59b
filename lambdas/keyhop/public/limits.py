"""Defaults and limits of the arguments of public calls, which load no AWS and no other package."""

from keyhop.dynamodb.units import DEFAULT_WRITE_RATE
from keyhop.each.outcomes import DEFAULT_BATCH, GUARDS, MOST_BATCH
from keyhop.jobs.layout import DEFAULT_UNITS, MOST_CONCURRENCY
from keyhop.jobs.request import DEFAULT_STACK
from keyhop.key_index.protocol import GRACE_SECONDS, UNSEEN_KEEPER
from keyhop.rekey.control import NO_LIMIT
from keyhop.report.findings import SEVERITIES
from keyhop.report.forms import SHOW_KEYS
from keyhop.retries import DEFAULT_PATIENCE_SECONDS
from keyhop.scan.in_flight import MOST
from keyhop.scan.segments import MOST_SEGMENTS
from keyhop.sharding.key.shards import MOST_SHARDS

__all__ = [
    "DEFAULT_BATCH",
    "DEFAULT_PATIENCE_SECONDS",
    "DEFAULT_STACK",
    "DEFAULT_UNITS",
    "DEFAULT_WRITE_RATE",
    "GRACE_SECONDS",
    "GUARDS",
    "MOST",
    "MOST_BATCH",
    "MOST_CONCURRENCY",
    "MOST_SEGMENTS",
    "MOST_SHARDS",
    "NO_LIMIT",
    "SEVERITIES",
    "SHOW_KEYS",
    "UNSEEN_KEEPER",
]
