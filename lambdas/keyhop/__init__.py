"""Keyhop: know and manage the partition keys of a DynamoDB table.

The names in `__all__` are the public interface. Each is imported when it is first used, so that
`import keyhop` takes a few milliseconds and loads no other package.
"""

TYPE_CHECKING = False  # as typing's, whose import alone would take longer than all the rest
if TYPE_CHECKING:
    from typing import Any

    from keyhop import errors
    from keyhop.errors import KeyhopError
    from keyhop.public.deployment import Deployment, FetchedKeys, Run, RunProgress
    from keyhop.public.each import EachResult, for_each_key
    from keyhop.public.examination import Examination, examine
    from keyhop.public.key_index import IndexResult, IndexStatus, KeyIndex
    from keyhop.public.key_list import (
        Keys,
        KeysEstimate,
        KeysSummary,
        estimate_keys,
        list_keys,
    )
    from keyhop.public.permissions import permissions
    from keyhop.public.rekey import Rekey, RekeyResult
    from keyhop.public.runs import Progress
    from keyhop.public.shards import ShardChange, Shards
    from keyhop.rekey.plan.planning import RekeyPlan
    from keyhop.rekey.routing.router import Router
    from keyhop.rekey.standing import RekeyStatus
    from keyhop.report.findings import Finding
    from keyhop.sharding.calendar_table import CalendarTable
    from keyhop.sharding.counter import ShardedCounter
    from keyhop.sharding.manage import KeyShards
    from keyhop.sharding.recover import LostKey
    from keyhop.sharding.table import ItemTable, ShardedTable

__version__ = "0.1.0"
__all__ = [
    "CalendarTable",
    "Deployment",
    "EachResult",
    "Examination",
    "FetchedKeys",
    "Finding",
    "IndexResult",
    "IndexStatus",
    "ItemTable",
    "KeyIndex",
    "KeyShards",
    "KeyhopError",
    "Keys",
    "KeysEstimate",
    "KeysSummary",
    "LostKey",
    "Progress",
    "Rekey",
    "RekeyPlan",
    "RekeyResult",
    "RekeyStatus",
    "Router",
    "Run",
    "RunProgress",
    "ShardChange",
    "ShardedCounter",
    "ShardedTable",
    "Shards",
    "errors",
    "estimate_keys",
    "examine",
    "for_each_key",
    "list_keys",
    "permissions",
]
_MODULES = {
    "CalendarTable": "keyhop.sharding.calendar_table",
    "Deployment": "keyhop.public.deployment",
    "EachResult": "keyhop.public.each",
    "Examination": "keyhop.public.examination",
    "FetchedKeys": "keyhop.public.deployment",
    "Finding": "keyhop.report.findings",
    "IndexResult": "keyhop.public.key_index",
    "IndexStatus": "keyhop.public.key_index",
    "ItemTable": "keyhop.sharding.table",
    "KeyIndex": "keyhop.public.key_index",
    "KeyShards": "keyhop.sharding.manage",
    "KeyhopError": "keyhop.errors",
    "Keys": "keyhop.public.key_list",
    "KeysEstimate": "keyhop.public.key_list",
    "KeysSummary": "keyhop.public.key_list",
    "LostKey": "keyhop.sharding.recover",
    "Progress": "keyhop.public.runs",
    "Rekey": "keyhop.public.rekey",
    "RekeyPlan": "keyhop.rekey.plan.planning",
    "RekeyResult": "keyhop.public.rekey",
    "RekeyStatus": "keyhop.rekey.standing",
    "Router": "keyhop.rekey.routing.router",
    "Run": "keyhop.public.deployment",
    "RunProgress": "keyhop.public.deployment",
    "ShardChange": "keyhop.public.shards",
    "ShardedCounter": "keyhop.sharding.counter",
    "ShardedTable": "keyhop.sharding.table",
    "Shards": "keyhop.public.shards",
    "estimate_keys": "keyhop.public.key_list",
    "examine": "keyhop.public.examination",
    "for_each_key": "keyhop.public.each",
    "list_keys": "keyhop.public.key_list",
    "permissions": "keyhop.public.permissions",
}
"""The module of each public name; `errors` is a module itself."""

if not TYPE_CHECKING:  # a type checker would take every name for a public one

    def __getattr__(name: str) -> "Any":
        """Import a public name when it is first used (PEP 562)."""
        from importlib import import_module

        if name not in __all__:
            raise AttributeError(f"module 'keyhop' has no attribute {name!r}")
        module = import_module(_MODULES.get(name, "keyhop.errors"))
        value = globals()[name] = module if name == "errors" else getattr(module, name)
        return value

    def __dir__() -> list[str]:
        return [*__all__, "__version__"]
