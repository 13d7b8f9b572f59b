"""The calls that the end-to-end tests have recorded: calls.json, written by

`pytest -n0 tests/e2e --record-calls`, which has to run all of them.
"""

import json
from collections.abc import Iterable
from pathlib import Path

from testing.iam.simulator import Call
from tests.live.fixtures import enumerated, fixtures

LIVE_PREFIX = "e2e-"
SHARDED = {"table": "Sharded", "sharding": {"partitionKey": "path"}}
METADATA = "Keyhop-shards-Sharded"
KEY_INDEXES = ("Kept", "Chaos", "Unknown", "Unbuilt", "Building", "Denied")
ON_KEYS = "arn:aws:lambda:us-east-1:000000000000:function:on-keys"
"""A function of the laptop cloud that gets keys."""
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
"""The context's pairs."""
TABLES = [
    *("Whole", "Small", "Slow", "Odd"),
    *({"table": name, "keyIndex": True} for name in KEY_INDEXES),
    SHARDED,
    EACH,
    REPORTED,
    *(table.name for table in enumerated(fixtures(LIVE_PREFIX))),
]
"""What the deployment may touch; each test module has tables of its own."""

FILE = Path(__file__).with_name("calls.json")


def read() -> list[Call]:
    told = json.loads(FILE.read_text())
    return [Call(caller, *one) for caller, calls in told.items() for one in calls]


def write(calls: Iterable[Call]) -> None:
    """One line a call, in order, so that a change can be read."""
    told: dict[str, list[list[str]]] = {}
    for call in sorted(calls):
        told.setdefault(call.caller, []).append([call.action, call.resource, call.context])
    text = ",\n".join(
        f'"{caller}": [\n' + ",\n".join(f"  {json.dumps(one)}" for one in ones) + "\n]"
        for caller, ones in told.items()
    )
    FILE.write_text(f"{{\n{text}\n}}\n")
