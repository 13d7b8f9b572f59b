"""The calls that the end-to-end tests have recorded in calls.json.

`pytest -n0 tests/e2e --record-calls` writes the file, and must run all of these tests.
"""

import json
from collections.abc import Iterable, Sequence
from pathlib import Path

from testing.iam.simulator import Call
from tests.live.fixtures import enumerated, fixtures

LIVE_PREFIX = "e2e-"
SHARDED = {"table": "Sharded", "sharding": {"partitionKey": "path"}}
METADATA = "Keyhop-shards-Sharded"
KEY_INDEXES = ("Kept", "Chaos", "Unknown", "Unbuilt", "Building", "Denied")
ON_KEYS = "arn:aws:lambda:us-east-1:000000000000:function:on-keys"
"""A function of the laptop cloud that receives keys."""
KEYS_QUEUE = "arn:aws:sqs:us-east-1:000000000000:keys"
PER_BATCH = "arn:aws:states:us-east-1:000000000000:stateMachine:PerBatch"
EACH = {
    "table": "Each",
    "each": {
        "put": True,
        "update": True,
        "delete": True,
        "functions": [ON_KEYS],
        "queues": [KEYS_QUEUE],
        "machines": [PER_BATCH],
        "attributes": ["pk", "sk", "plan"],
    },
}
REPORTED = {"table": "Reported", "report": True}
REKEY = [{"source": "Rekeyed", "destination": "RekeyedByTenant"}]
"""The pairs of tables in the context."""
TABLES = [
    *("Whole", "Small", "Slow", "Odd"),
    *({"table": name, "keyIndex": True} for name in KEY_INDEXES),
    SHARDED,
    EACH,
    REPORTED,
    *(table.name for table in enumerated(fixtures(LIVE_PREFIX))),
]
"""The tables that the deployment may use; each test module has separate ones."""

FILE = Path(__file__).with_name("calls.json")


def read() -> list[Call]:
    calls_by_caller = json.loads(FILE.read_text())
    return [Call(caller, *fields) for caller, calls in calls_by_caller.items() for fields in calls]


def write(calls: Iterable[Call]) -> None:
    FILE.write_text(to_json(calls, ("action", "resource", "context")))


def to_json(calls: Iterable[Call], fields: Sequence[str]) -> str:
    """Return fields of the calls by caller, sorted, with one line per call and no duplicates."""
    rows_by_caller: dict[str, list[list[str]]] = {}
    for call in sorted(calls):
        rows = rows_by_caller.setdefault(call.caller, [])
        if (row := [getattr(call, field) for field in fields]) not in rows:
            rows.append(row)
    text = ",\n".join(
        f"{json.dumps(caller)}: [\n" + ",\n".join(f"  {json.dumps(row)}" for row in rows) + "\n]"
        for caller, rows in rows_by_caller.items()
    )
    return f"{{\n{text}\n}}\n"
