"""What a put into each collection costs, beside a loop over boto3's Table: `python -m bench.each`.

Both list the keys and put one item for each, with the same guard, on DynamoDB Local; the CPU is
that of the client's process. The loop is what people write: `Table.scan(Limit=1)` from key to key,
and a conditional `Table.put_item`.
"""

import argparse
import json
import tempfile
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import boto3
from boto3.dynamodb.conditions import Attr, Key
from botocore.exceptions import ClientError
from keyhop.dynamodb.client import connect
from keyhop.dynamodb.endpoint import Endpoint
from keyhop.dynamodb.schema import GREATEST_SORT_KEY
from keyhop.dynamodb.tables import look_up
from keyhop.each.template import template_json
from keyhop.jobs.journal import Journal
from keyhop.jobs.local import LocalJob, opened
from keyhop.jobs.request import Request
from keyhop.storage.local import Directory
from keyhop.tasks import tasks_of

from bench.markdown import markdown
from testing.databases import Database
from testing.servers import LOCAL_CREDENTIALS, dynamodb_local

KEYS = 3_000
ITEMS = 3
GUARDS = ("none", "look", "transaction")
THEORY = {"none": (1.0, 0.0), "look": (1.0, 1.0), "transaction": (4.0, 1.0)}
"""WRU and RRU of a small item for each key, beside the enumeration's."""


@dataclass(frozen=True, slots=True)
class Cost:
    """Of one way. cpu, seconds: of the whole. listing: read units of the list alone."""

    keys: int
    cpu: float
    seconds: float
    write_units: float
    read_units: float
    listing: float


def measured(way: Callable[[], tuple[int, float, float, float]]) -> Cost:
    """What one way has cost."""
    began, cpu = time.monotonic(), time.process_time()
    keys, write_units, read_units, listing = way()
    used, took = time.process_time() - cpu, time.monotonic() - began
    return Cost(keys, used, took, write_units, read_units, listing)


def keyhop(url: str, table: str, guard: str, number: int) -> tuple[int, float, float, float]:
    """`keyhop each --put`, without the command: its list, and then its puts."""
    connection = connect(Endpoint(url=url), 32)
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder)

        def job(name: str, request: Request) -> tuple[Any, dict[str, Any]]:
            tasks = tasks_of(journal_of=lambda run: Journal(Directory(path / run)))
            made = LocalJob(request, tasks, connection, opened(path / name, False))
            made.prepare(look_up(connection, table))
            made.begin()
            if not made.work():
                raise SystemExit("the run did not come to its end")
            return made.finish()

        _, listed = job("list", Request(table, "keys", format="jsonl"))
        effect = {
            "kind": "put",
            "item": template_json({"sk": f"#{guard}{number}", "run": "${run}"}),
            "guard": guard,
            "overwrite": False,
        }
        own = {"effect": effect, "keys": "list", "max_write_rate": None, "max_write_units": None}
        _, done = job("run", Request(table, "each", own, format="jsonl"))
    if done["counts"] != {"put": listed["keys"]}:
        raise SystemExit(f"not all were put: {done['counts']}")
    listing = listed["read_units"]
    return listed["keys"], done["write_units"], listing + done["read_units"], listing


def loop(url: str, table: str, guard: str, number: int) -> tuple[int, float, float, float]:
    """One key after the other."""
    resource = boto3.resource("dynamodb", endpoint_url=url, **LOCAL_CREDENTIALS)
    of = resource.Table(table)
    units = {"write": 0.0, "read": 0.0, "listing": 0.0}
    keys, more, place = 0, {}, f"#{guard}{number}"
    while True:
        page = of.scan(Limit=1, ReturnConsumedCapacity="TOTAL", **more)
        units["listing"] += page["ConsumedCapacity"]["CapacityUnits"]
        if not page["Items"]:
            break
        key = page["Items"][0]["pk"]
        keys += 1
        more = {"ExclusiveStartKey": {"pk": key, "sk": GREATEST_SORT_KEY["S"]["S"]}}
        _put(resource, of, guard, {"pk": key, "sk": place, "run": "x" * 32}, units)
    return keys, units["write"], units["listing"] + units["read"], units["listing"]


def _put(resource: Any, of: Any, guard: str, item: dict[str, Any], units: dict[str, float]) -> None:
    told = {"ReturnConsumedCapacity": "TOTAL"}
    absent = Attr("pk").not_exists()
    others = {
        "KeyConditionExpression": Key("pk").eq(item["pk"]),
        "ConsistentRead": True,
        "ScanIndexForward": False,
        "Limit": 1,
        **told,
    }
    if guard == "transaction":
        found = of.query(**others)
        units["read"] += found["ConsumedCapacity"]["CapacityUnits"]
        witness = {name: found["Items"][0][name] for name in ("pk", "sk")}
        check = {"Key": witness, "ConditionExpression": "attribute_exists(pk)"}
        put = {"Item": item, "ConditionExpression": "attribute_not_exists(pk)"}
        answer = resource.meta.client.transact_write_items(
            TransactItems=[
                {"ConditionCheck": {"TableName": of.name, **check}},
                {"Put": {"TableName": of.name, **put}},
            ],
            **told,
        )
        units["write"] += sum(one["CapacityUnits"] for one in answer["ConsumedCapacity"])
        return
    try:
        answer = of.put_item(Item=item, ConditionExpression=absent, **told)
    except ClientError as error:
        raise SystemExit("an item was there already") from error
    units["write"] += answer["ConsumedCapacity"]["CapacityUnits"]
    if guard == "look":
        found = of.query(**others)
        units["read"] += found["ConsumedCapacity"]["CapacityUnits"]
        if all(one["sk"] == item["sk"] for one in found["Items"]):
            raise SystemExit("an item stands alone")


def main() -> None:
    """Prints a table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--keys", type=int, default=KEYS)
    parser.add_argument("--json", action="store_true")
    given = parser.parse_args()
    found: dict[str, tuple[Cost, Cost]] = {}
    with dynamodb_local() as url:
        database = Database("dynamodb_local", url)
        database.collections("Bench", [ITEMS] * given.keys, filling=200)
        # What both do once: imports, first connections.
        keyhop(url, "Bench", "none", 0)
        for guard in GUARDS:
            found[guard] = (
                measured(lambda: keyhop(url, "Bench", guard, 1)),  # noqa: B023
                measured(lambda: loop(url, "Bench", guard, 2)),  # noqa: B023
            )
    rows = [
        (
            f"`{guard}`",
            f"{mine.write_units / mine.keys:.2f} ({THEORY[guard][0]:g})",
            f"{mine.read_units / mine.keys:.2f} "
            f"({mine.listing / mine.keys:.2f} + {THEORY[guard][1]:g})",
            f"{theirs.write_units / theirs.keys:.2f}",
            f"{theirs.read_units / theirs.keys:.2f}",
            f"{mine.keys / mine.cpu:,.0f}",
            f"{theirs.keys / theirs.cpu:,.0f}",
            f"{theirs.cpu / mine.cpu:.1f} x",
        )
        for guard, (mine, theirs) in found.items()
    ]
    headings = (
        "guard",
        "WRU a key (theory)",
        "RRU a key (list + theory)",
        "loop: WRU",
        "loop: RRU",
        "keys/s of a vCPU",
        "loop",
        "more",
    )
    if given.json:
        print(json.dumps({guard: theirs.cpu / mine.cpu for guard, (mine, theirs) in found.items()}))
    else:
        print("\n".join(markdown(headings, rows)))


if __name__ == "__main__":
    main()
