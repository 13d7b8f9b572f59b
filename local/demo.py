"""`make demo`: the application deployed on this machine, run on real data, and what it costs.

`make local` (`python -m local.demo --keep`) only loads the data into DynamoDB Local, and stays.
"""

import json
import signal
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from itertools import islice
from typing import Any

from keyhop.dynamodb.capacity import PRICE_DATE, PRICE_REGION
from rich.console import Console

from local.cloud import Cloud, DeploymentError, laptop_cloud
from local.demo_index import show_key_index
from local.flights import TABLE, create_table, flights
from local.follow import Executions
from local.show import print_ways, result_text, run
from testing.baselines import Reading, full_scan, published
from testing.databases import load
from testing.servers import dynamodb_local, local_client

ITEMS = 40_000
COMPARED_SEGMENTS = 128
"""For the comparison: DynamoDB Local gets slow with the position inside a segment."""

INPUT = {"table": TABLE, "segments": 128, "maxConcurrency": 2}
"""As many workers as this machine is taken to have processors."""

TABLES = [{"table": TABLE, "keyIndex": True}]
LONGEST_SECONDS = 180.0


def main() -> int:
    """Deploy, run, compare; returns an exit status."""
    console = Console(highlight=False, soft_wrap=True)
    with laptop_cloud() as cloud:
        try:
            load_and_deploy(console, cloud)
        except DeploymentError as error:
            console.print(str(error), markup=False)
            return 1
        result = _enumerate(console, cloud)
        if result is None:
            return 1
        console.print("For comparison, the same table by the other ways ...")
        client = local_client(cloud.dynamodb)
        scanned = full_scan(client, TABLE, COMPARED_SEGMENTS)
        hopped = published(client, TABLE, COMPARED_SEGMENTS)
        _compare(console, result, scanned, hopped)
        index_is_true = show_key_index(console, cloud, result)
    console.print("All servers are stopped, and nothing of them is left.")
    return 0 if result["keys"] == scanned.keys == hopped.keys and index_is_true else 1


def only_the_data() -> int:
    """`make local`: DynamoDB Local with the flights, until Ctrl-C."""
    console = Console(highlight=False, soft_wrap=True)
    with dynamodb_local() as url:
        console.print(f"DynamoDB Local is up at {url}.")
        _load(console, url)
        console.print(
            f"\nTry:  .venv/bin/keyhop keys {TABLE} --endpoint-url {url}\n"
            f"Ctrl-C ends the database, and all that is in it."
        )
        signal.pause()
    return 0


def load_and_deploy(console: Console, cloud: Cloud) -> None:
    """The flights into DynamoDB Local, and the stack into ministack, both at the same time.

    Raises DeploymentError.
    """
    console.print(f"DynamoDB Local is up at {cloud.dynamodb}, ministack at {cloud.url}.")
    console.print(
        f"$ cdk deploy -c 'tables={json.dumps(TABLES)}'   (meanwhile, its data is loaded)",
        markup=False,
    )
    began = time.monotonic()
    with ThreadPoolExecutor(1) as pool:
        deployment = pool.submit(cloud.deploy, TABLES)
        _load(console, cloud.dynamodb)
        with console.status("Deploying ..."):
            outputs = deployment.result()
    console.print(f"Deployed {outputs['StateMachineArn']} in {time.monotonic() - began:.0f} s.")


def _load(console: Console, url: str) -> None:
    create_table(url)
    client = local_client(url)
    began = time.monotonic()
    text = "Loading the flights of New York City, 2013"
    with console.status(text) as status:
        items = islice(flights(), ITEMS)
        load(client, items, TABLE, lambda loaded: status.update(f"{text}: {loaded:,} of {ITEMS:,}"))
    console.print(
        f"Loaded {ITEMS:,} flights into the table {TABLE} in {time.monotonic() - began:.0f} s: "
        f"partition key tailnum, sort key departure."
    )


def _enumerate(console: Console, cloud: Cloud) -> dict[str, Any] | None:
    outputs = cloud.outputs
    executions = Executions(cloud.client, outputs["StateMachineArn"], outputs["ResultsBucketName"])
    console.print(f"\nStarting EnumerateKeys with {json.dumps(INPUT)} ...", markup=False)
    result: dict[str, Any] | None = run(console, executions, INPUT, LONGEST_SECONDS, "demo")
    if result is None:
        return None
    console.print(result_text(result), markup=False)
    first = [key["tailnum"]["S"] for key in islice(executions.keys("demo"), 8)]
    console.print(f"{', '.join(first)}, ... {result['keys']:,} keys\n")
    return result


def _compare(console: Console, result: dict[str, Any], scanned: Reading, hopped: Reading) -> None:
    print_ways(
        console,
        (
            ("keyhop", result["keys"], result["requests"], result["read_units"]),
            ("published: Limit=1", hopped.keys, hopped.requests, hopped.units),
            ("full scan", scanned.keys, scanned.requests, scanned.units),
        ),
    )
    console.print(
        f"\nAll three were run just now. Prices on demand, {PRICE_REGION}, {PRICE_DATE}. The others"
        f" read {COMPARED_SEGMENTS} segments, only to save time, and are not charged for empty"
        f" reads at the ends; keyhop is charged 0.5 RRU for each, as the service would."
    )


if __name__ == "__main__":
    try:
        sys.exit(only_the_data() if "--keep" in sys.argv[1:] else main())
    except KeyboardInterrupt:
        print("Interrupted; all servers are stopped.", file=sys.stderr)
        sys.exit(130)
