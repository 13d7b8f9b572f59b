"""A re-key and its rollback on the laptop cloud, by the deployed functions and state machines."""

import random
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from threading import Event
from typing import Any

import pytest
from keyhop.dynamodb.client import Connection
from keyhop.dynamodb.schema import KeyAttribute, KeySpace
from keyhop.dynamodb.tables import StepResult
from keyhop.dynamodb.values import Item
from keyhop.public.deployment import Run
from keyhop.rekey.life_cycle.create import Creation, Starting
from keyhop.rekey.life_cycle.end import Ending
from keyhop.rekey.pair import Pair
from keyhop.rekey.side.table import SideTable
from keyhop.rekey.template.load import load
from keyhop.rekey.worker.images import SETTINGS
from keyhop.streams.event_source import Mappings

from local.stream_bridge import StreamBridge, bridge_for
from testing.key_index_tables import scanned
from tests.e2e.conftest import Deployed
from tests.infra.recorded import REKEY
from tests.live.features import TEMPLATE

SOURCE, DESTINATION = REKEY[0]["source"], REKEY[0]["destination"]
KEYS = KeySpace((KeyAttribute("pk", "S"),), KeyAttribute("sk", "S"))
PAIR = Pair(SOURCE, DESTINATION, TEMPLATE)
ITEMS = 300
MAX_STEPS = 200
MAX_ATTEMPTS = 4


def order(number: int, tenant: int = 0, amount: int = 1) -> Item:
    return {
        "pk": {"S": f"USER#{number % 40}"},
        "sk": {"S": f"ORDER#{number}"},
        "tenant": {"S": str(tenant or number % 7)},
        "amount": {"N": str(amount)},
    }


def until_done(step: Callable[[], StepResult]) -> None:
    for _ in range(MAX_STEPS):
        result = step()
        if result.done:
            return
    raise TimeoutError(result.says)


def run(deployed: Deployed, machine: str, **options: Any) -> Run:
    """Run an execution of one of the three machines."""
    return deployed.run({"rekey": DESTINATION, **options}, machine=machine)


def complete(deployed: Deployed, machine: str, **options: Any) -> Any:
    """Run an execution that must succeed, and return its output."""
    return deployed.complete({"rekey": DESTINATION, **options}, machine=machine).output


@pytest.fixture(scope="module")
def bridge(deployed: Deployed) -> StreamBridge:
    return bridge_for(deployed.cloud)


@pytest.fixture(scope="module")
def connection(deployed: Deployed) -> Connection:
    return Connection(deployed.database.client)


@pytest.fixture(scope="module")
def replicate(deployed: Deployed, connection: Connection) -> Mappings:
    """The event source mappings of a re-key that was started, for a source with items."""
    deployed.database.create(SOURCE)
    deployed.database.fill(SOURCE, [order(number) for number in range(ITEMS)])
    until_done(Creation(connection, PAIR, KEYS).step)
    outputs = deployed.cloud.outputs
    queue = outputs["RekeyFailureQueueArn"]
    replicate = Mappings(
        deployed.cloud.client("lambda"), outputs["ReplicateArn"], queue, settings=SETTINGS
    )
    until_done(Starting(connection, PAIR, replicate).step)
    return replicate


@contextmanager
def writers(deployed: Deployed, many: int = 4) -> Iterator[None]:
    """Put, change, move and delete items of the source until the block ends."""
    client = deployed.database.client
    over = Event()

    def write(seed: int) -> int:
        chance, written = random.Random(seed), 0
        while not over.wait(0.01):
            number = many * chance.randrange(100) + seed
            item = order(number, chance.randrange(1, 5), chance.randrange(1000))
            if chance.random() < 0.25:
                key = {name: item[name] for name in ("pk", "sk")}
                client.delete_item(TableName=SOURCE, Key=key)
            else:
                client.put_item(TableName=SOURCE, Item=item)
            written += 1
        return written

    with ThreadPoolExecutor(many) as pool:
        futures = [pool.submit(write, seed) for seed in range(many)]
        try:
            yield
        finally:
            over.set()
    assert all(future.result() for future in futures)


def differences(deployed: Deployed) -> set[str]:
    """Return the items of either table that the other one lacks."""
    transform = load(TEMPLATE, KEYS, KEYS)
    expected = {_text(transform.forward(item)) for item in scanned(deployed.database, SOURCE)}
    return expected ^ {_text(item) for item in scanned(deployed.database, DESTINATION)}


def serve(deployed: Deployed, connection: Connection, to: str) -> float:
    """Let a table serve; return for how many seconds writes have waited.

    On a busy machine the streams lag. So the lag is reported as zero, and a change that is called
    off, or whose rehearsal takes too long, is retried, as an operator would do.
    """
    options = {"to": to, "freezeLimit": 20}
    side = SideTable(connection, PAIR.side)
    for _ in range(MAX_ATTEMPTS):
        direction = "forward" if to == "destination" else "reverse"
        side.tell(f"lag.{direction}", {"seconds": 0.0, "at": time.time()})
        rehearsal = complete(deployed, "RekeyCutOver", **options, dryRun=True)
        assert all(gate["open"] for gate in rehearsal["gates"]), rehearsal
        execution = run(deployed, "RekeyCutOver", **options)
        if execution.status == "SUCCEEDED":
            output: Any = execution.output
            assert output["control"]["serving"] == to
            return float(output["pause"])
        assert execution.error in ("CalledOff", "GateShut"), execution
    raise TimeoutError(str(execution))


def _text(item: Any) -> str:
    return str(sorted(item.items()))


@pytest.mark.timeout(900)
def test_a_table_is_rekeyed_and_rolled_back(
    deployed: Deployed, connection: Connection, bridge: StreamBridge, replicate: Mappings
) -> None:
    """Copy a table while it is written to, compare, cut over and roll back."""
    skipped = complete(deployed, "RekeyVerify", scheduled=True)["skipped"]
    assert skipped == "the backfill has not ended"
    refused = run(deployed, "RekeyCutOver")
    assert refused.error == "GateShut", "nothing was compared yet"
    with bridge.running(), writers(deployed):
        assert complete(deployed, "RekeyBackfill")["outcomes"]["copied"]
    bridge.deliver_all()
    # An item that was read before a write and put after it differs until the comparison.
    item = next(iter(scanned(deployed.database, DESTINATION)))
    key = {name: item[name] for name in ("pk", "sk")}
    deployed.database.client.delete_item(TableName=DESTINATION, Key=key)
    with bridge.running():
        comparison = complete(deployed, "RekeyVerify", repair=True)["compared"]
        assert comparison["missing"] >= 1
        assert comparison["left"] == 0
    bridge.deliver_all()
    assert differences(deployed) == set()
    assert complete(deployed, "RekeyVerify", scheduled=True)["compared"]["is_clean"]

    with bridge.running():
        assert 0 < serve(deployed, connection, "destination") < 20
    assert run(deployed, "RekeyBackfill").error == "CannotStart"
    skipped = complete(deployed, "RekeyVerify", scheduled=True)["skipped"]
    assert skipped == "the destination serves already"
    new = load(TEMPLATE, KEYS, KEYS).forward(order(5_000)) or {}
    deployed.database.client.put_item(TableName=DESTINATION, Item=new)
    bridge.deliver_all()
    assert differences(deployed) == set()
    with bridge.running():
        assert 0 < serve(deployed, connection, "source") < 20
    bridge.deliver_all()
    assert differences(deployed) == set()
    assert order(5_000) in scanned(deployed.database, SOURCE)

    until_done(Ending(connection, DESTINATION, "cancel", replicate).step)
    assert replicate.tables() == set()
    assert PAIR.side not in deployed.database.tables()
