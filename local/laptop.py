"""The application on this machine with real data, until Ctrl-C, by `make`.

`make laptop` runs everything that is deployed, to start runs. `make local` runs only DynamoDB Local
with the data.
"""

import json
import os
import shlex
import signal
import sys
import time
from itertools import islice
from types import FrameType

from rich.status import Status

from local.cloud import Cloud, console, exit_with, laptop_cloud
from local.stream_bridge import IDLE_SECONDS, bridge_for
from testing.databases import load
from testing.flights import BY_AIRCRAFT, BY_ROUTE, PARTITION_KEYS, create_table, flights
from testing.servers import dynamodb_local, local_client

ITEMS = 40_000
TABLES = [{"table": table, "keyIndex": True} for table in (BY_ROUTE, BY_AIRCRAFT)]
PAIRS = [{"source": BY_AIRCRAFT, "destination": "FlightsOfRoute"}]
"""The pairs of `make laptop`, to try a re-key by hand."""


def only_the_data() -> int:
    """Run DynamoDB Local with the flights until Ctrl-C."""
    with dynamodb_local() as url:
        console.print(f"DynamoDB Local is up at {url}.")
        load_flights(url)
        console.print(
            f"\nTry:  .venv/bin/keyhop keys {BY_ROUTE} --endpoint-url {url}\n"
            f"Ctrl-C ends the database, and all that is in it."
        )
        signal.pause()
    return 0


def laptop() -> int:
    """Run the application until Ctrl-C. SIGUSR1 halts the stream, to show what a verification finds
    then.
    """
    halted = False

    def toggle(_number: int, _frame: FrameType | None) -> None:
        nonlocal halted
        halted = not halted
        console.print(f"The stream is {'halted' if halted else 'carried on'}.")

    with laptop_cloud() as cloud:
        load_and_deploy(cloud, rekey=json.dumps(PAIRS))
        console.print(_what_to_do(cloud), markup=False)
        signal.signal(signal.SIGUSR1, toggle)
        bridge = bridge_for(cloud)
        while True:
            time.sleep(IDLE_SECONDS)
            if not halted:
                bridge.look()


def _what_to_do(cloud: Cloud) -> str:
    exports = "\n".join(f"export {name}={value}" for name, value in cloud.exports.items())
    job_input = shlex.quote(f'{{"table": "{BY_ROUTE}"}}')
    pair = f"{BY_AIRCRAFT} --to {PAIRS[0]['destination']}"
    template = "--template examples/rekey/flights-by-route.yaml"
    start = "aws stepfunctions start-execution --state-machine-arn"
    build, verify, remove = (
        cloud.outputs[f"{name}KeyIndexArn"] for name in ("Build", "Verify", "Remove")
    )
    return f"""
In another terminal:

{exports}

.venv/bin/keyhop keys {BY_ROUTE} --remote --follow --name first
.venv/bin/keyhop runs list
.venv/bin/keyhop runs show first
.venv/bin/keyhop keys {BY_ROUTE} --endpoint-url {cloud.dynamodb}

A key index, kept by the deployed function (keyhop runs list and show work for these too):

{start} {build} --input {job_input}
{start} {verify} --input {job_input}
{start} {remove} --input {job_input}
.venv/bin/keyhop index status {BY_ROUTE} --endpoint-url {cloud.dynamodb}

The flights by aircraft under another key (`keyhop help rekey` describes all steps):

.venv/bin/keyhop rekey plan {pair} {template} --partition-key route --sort-key leaves
.venv/bin/keyhop rekey create {pair} {template} --partition-key route --sort-key leaves
.venv/bin/keyhop rekey start {pair} --remote --follow
.venv/bin/keyhop rekey verify {pair} --follow
.venv/bin/keyhop rekey cutover {pair} --follow
.venv/bin/keyhop rekey rollback {pair} --follow
.venv/bin/keyhop rekey cancel {pair}

kill -USR1 {os.getpid()} halts the stream, so that the keeper gets no records; once more
lets it continue.
Ctrl-C ends the laptop cloud, and all that is in it."""


def load_and_deploy(cloud: Cloud, **context: str) -> None:
    """Load the flights into DynamoDB Local while the stack is deployed into ministack."""
    console.print(f"DynamoDB Local is up at {cloud.dynamodb}, ministack at {cloud.url}.")
    settings = " ".join(
        f"-c '{name}={value}'" for name, value in ({"tables": json.dumps(TABLES)} | context).items()
    )
    console.print(f"$ cdk deploy {settings}   (its data is loaded at the same time)", markup=False)
    began = time.monotonic()
    with cloud.deploying(TABLES, **context) as deployment:
        load_flights(cloud.dynamodb)
        with console.status("Deploying ..."):
            outputs = deployment.result()
    console.print(f"Deployed {outputs['StateMachineArn']} in {time.monotonic() - began:.0f} s.")


def load_flights(url: str) -> None:
    """Make the tables, and put the flights into them."""
    client = local_client(url)
    began = time.monotonic()
    items = list(islice(flights(), ITEMS))
    for table, partition_key in PARTITION_KEYS.items():
        create_table(url, table)
        text = f"Loading the flights of New York City, 2013, into {table}"
        with console.status(text) as status:

            def say(loaded: int, status: Status = status, text: str = text) -> None:
                status.update(f"{text}: {loaded / ITEMS:.0%}")

            load(client, iter(items), table, say)
        console.print(
            f"Loaded {ITEMS:,} flights into the table {table}: partition key {partition_key}, sort "
            f"key departure ({time.monotonic() - began:.0f} s)."
        )


if __name__ == "__main__":
    exit_with({"local": only_the_data, "laptop": laptop}[sys.argv[1]])
