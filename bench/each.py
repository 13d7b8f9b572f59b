"""The cost of a put into each collection, compared with a loop over boto3's Table.

`python -m bench.each` lists keys and puts an item for each in both ways, with the same guard, on
DynamoDB Local. The CPU time is that of the client's process. The loop is the usual one:
`Table.scan(Limit=1)` from key to key, and a conditional `Table.put_item`.
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
"""The expected WRU and RRU for each key with a small item, without the list of keys."""


@dataclass(frozen=True, slots=True)
class Cost:
    """The cost of one way to put the items.

    Attributes:
        cpu, seconds: of the whole run
        listing: the read units of the list alone
    """

    keys: int
    cpu: float
    seconds: float
    write_units: float
    read_units: float
    listing: float


def measure(way: Callable[[], tuple[int, float, float, float]]) -> Cost:
    """Execute one way, and return its cost."""
    began, cpu = time.monotonic(), time.process_time()
    keys, write_units, read_units, listing = way()
    used, took = time.process_time() - cpu, time.monotonic() - began
    return Cost(keys, used, took, write_units, read_units, listing)


def keyhop(url: str, table: str, guard: str, number: int) -> tuple[int, float, float, float]:
    """List the keys and put the items as `keyhop each --put` does, without the command."""
    connection = connect(Endpoint(url=url), 32)
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder)

        def job(name: str, request: Request) -> tuple[Any, dict[str, Any]]:
            tasks = tasks_of(journal_of=lambda run: Journal(Directory(path / run)))
            local_job = LocalJob(request, tasks, connection, opened(path / name, False))
            local_job.prepare(look_up(connection, table))
            local_job.begin()
            if not local_job.work():
                raise SystemExit("The run did not finish.")
            return local_job.finish()

        _, listed = job("list", Request(table, "keys", format="jsonl"))
        effect = {
            "kind": "put",
            "item": template_json({"sk": f"#{guard}{number}", "run": "${run}"}),
            "guard": guard,
            "overwrite": False,
        }
        parameters = {
            "effect": effect,
            "keys": "list",
            "max_write_rate": None,
            "max_write_units": None,
        }
        _, result = job("run", Request(table, "each", parameters, format="jsonl"))
    if result["counts"] != {"put": listed["keys"]}:
        raise SystemExit(f"Some items were not put: {result['counts']}")
    listing = listed["read_units"]
    return listed["keys"], result["write_units"], listing + result["read_units"], listing


def loop(url: str, table: str, guard: str, number: int) -> tuple[int, float, float, float]:
    """List the keys and put the items one after the other, with boto3's Table."""
    resource = boto3.resource("dynamodb", endpoint_url=url, **LOCAL_CREDENTIALS)
    items = resource.Table(table)
    units = {"write": 0.0, "read": 0.0, "listing": 0.0}
    keys, more, place = 0, {}, f"#{guard}{number}"
    while True:
        page = items.scan(Limit=1, ReturnConsumedCapacity="TOTAL", **more)
        units["listing"] += page["ConsumedCapacity"]["CapacityUnits"]
        if not page["Items"]:
            break
        key = page["Items"][0]["pk"]
        keys += 1
        more = {"ExclusiveStartKey": {"pk": key, "sk": GREATEST_SORT_KEY["S"]["S"]}}
        _put(resource, items, guard, {"pk": key, "sk": place, "run": "x" * 32}, units)
    return keys, units["write"], units["listing"] + units["read"], units["listing"]


def _put(
    resource: Any, table: Any, guard: str, item: dict[str, Any], units: dict[str, float]
) -> None:
    with_capacity = {"ReturnConsumedCapacity": "TOTAL"}
    absent = Attr("pk").not_exists()
    last_item = {
        "KeyConditionExpression": Key("pk").eq(item["pk"]),
        "ConsistentRead": True,
        "ScanIndexForward": False,
        "Limit": 1,
        **with_capacity,
    }
    if guard == "transaction":
        page = table.query(**last_item)
        units["read"] += page["ConsumedCapacity"]["CapacityUnits"]
        witness = {name: page["Items"][0][name] for name in ("pk", "sk")}
        check = {"Key": witness, "ConditionExpression": "attribute_exists(pk)"}
        put = {"Item": item, "ConditionExpression": "attribute_not_exists(pk)"}
        response = resource.meta.client.transact_write_items(
            TransactItems=[
                {"ConditionCheck": {"TableName": table.name, **check}},
                {"Put": {"TableName": table.name, **put}},
            ],
            **with_capacity,
        )
        units["write"] += sum(used["CapacityUnits"] for used in response["ConsumedCapacity"])
        return
    try:
        response = table.put_item(Item=item, ConditionExpression=absent, **with_capacity)
    except ClientError as error:
        raise SystemExit("An item with this key exists already.") from error
    units["write"] += response["ConsumedCapacity"]["CapacityUnits"]
    if guard == "look":
        page = table.query(**last_item)
        units["read"] += page["ConsumedCapacity"]["CapacityUnits"]
        if all(found_item["sk"] == item["sk"] for found_item in page["Items"]):
            raise SystemExit("The item is alone in its collection.")


def main() -> None:
    """Measure both ways with each guard, and print a table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--keys", type=int, default=KEYS)
    parser.add_argument("--json", action="store_true")
    arguments = parser.parse_args()
    costs: dict[str, tuple[Cost, Cost]] = {}
    with dynamodb_local() as url:
        database = Database("dynamodb_local", url)
        database.collections("Bench", [ITEMS] * arguments.keys, filling=200)
        # Imports and first connections are not measured.
        keyhop(url, "Bench", "none", 0)
        for guard in GUARDS:
            costs[guard] = (
                measure(lambda: keyhop(url, "Bench", guard, 1)),  # noqa: B023
                measure(lambda: loop(url, "Bench", guard, 2)),  # noqa: B023
            )
    rows = [
        (
            f"`{guard}`",
            f"{ours.write_units / ours.keys:.2f} ({THEORY[guard][0]:g})",
            f"{ours.read_units / ours.keys:.2f} "
            f"({ours.listing / ours.keys:.2f} + {THEORY[guard][1]:g})",
            f"{theirs.write_units / theirs.keys:.2f}",
            f"{theirs.read_units / theirs.keys:.2f}",
            f"{ours.keys / ours.cpu:,.0f}",
            f"{theirs.keys / theirs.cpu:,.0f}",
            f"{theirs.cpu / ours.cpu:.1f} x",
        )
        for guard, (ours, theirs) in costs.items()
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
    if arguments.json:
        print(json.dumps({guard: theirs.cpu / ours.cpu for guard, (ours, theirs) in costs.items()}))
    else:
        print("\n".join(markdown(headings, rows)))


if __name__ == "__main__":
    main()
