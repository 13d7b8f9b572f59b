"""Defaults and limits of the arguments of public calls, each from its module when it is first used.

So a command of the command line imports only what its own options need.
"""

from importlib import import_module
from typing import Any

_MODULES = {
    "DEFAULT_BATCH": "keyhop.each.outcomes",
    "DEFAULT_PATIENCE_SECONDS": "keyhop.retries",
    "DEFAULT_STACK": "keyhop.jobs.request",
    "DEFAULT_UNITS": "keyhop.jobs.layout",
    "DEFAULT_WRITE_RATE": "keyhop.dynamodb.units",
    "GRACE_SECONDS": "keyhop.key_index.protocol",
    "GUARDS": "keyhop.each.outcomes",
    "MOST": "keyhop.scan.in_flight",
    "MOST_BATCH": "keyhop.each.outcomes",
    "MOST_CONCURRENCY": "keyhop.jobs.layout",
    "MOST_SEGMENTS": "keyhop.scan.segments",
    "MOST_SHARDS": "keyhop.sharding.key.shards",
    "NO_LIMIT": "keyhop.rekey.control",
    "SEVERITIES": "keyhop.report.findings",
    "SHOW_KEYS": "keyhop.report.forms",
    "UNSEEN_KEEPER": "keyhop.key_index.protocol",
}


def __getattr__(name: str) -> Any:
    """Return a limit (PEP 562)."""
    if name not in _MODULES:
        raise AttributeError(f"module 'keyhop.public.limits' has no attribute {name!r}")
    return getattr(import_module(_MODULES[name]), name)
