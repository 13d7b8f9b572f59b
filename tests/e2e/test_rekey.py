"""A re-key on the laptop cloud: by the deployed functions and state machines, there and back."""

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

SOURCE, DESTINATION = REKEY[0]["source"], REKEY[0]["destination"]
TEMPLATE = {
    "items": [
        {
            "name": "order",
            "match": {"pk": "USER#{user}", "sk": "ORDER#{order}"},
            "set": {"pk": "TENANT#{tenant}", "sk": "ORDER#{order}"},
            "keep": {"pk": "oldPk"},
        }
    ]
}
KEYS = KeySpace((KeyAttribute("pk", "S"),), KeyAttribute("sk", "S"))
PAIR = Pair(SOURCE, DESTINATION, TEMPLATE)
ITEMS = 300
MOST_STEPS = 200
MOST_TRIES = 4


def order(number: int, tenant: int = 0, amount: int = 1) -> Item:
    return {
        "pk": {"S": f"USER#{number % 40}"},
        "sk": {"S": f"ORDER#{number}"},
        "tenant": {"S": str(tenant or number % 7)},
        "amount": {"N": str(amount)},
    }


def until_done(step: Callable[[], StepResult]) -> None:
    for _ in range(MOST_STEPS):
        found = step()
        if found.done:
            return
    raise TimeoutError(found.says)


def ended(deployed: Deployed, name: str, **given: Any) -> Run:
    """An execution of one of the three machines."""
    return deployed.run({"rekey": DESTINATION, **given}, machine=name)


def done(deployed: Deployed, name: str, **given: Any) -> Any:
    """Its output."""
    return deployed.done({"rekey": DESTINATION, **given}, machine=name).output


@pytest.fixture(scope="module")
def bridge(deployed: Deployed) -> StreamBridge:
    return bridge_for(deployed.cloud)


@pytest.fixture(scope="module")
def connection(deployed: Deployed) -> Connection:
    return Connection(deployed.database.client)


@pytest.fixture(scope="module")
def replicate(deployed: Deployed, connection: Connection) -> Mappings:
    """Of the pair, which `create` has made and `start` has begun. The source has items already."""
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
    """Puts, changes, moves and deletes of items of the source, until the block ends."""
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
        at_work = [pool.submit(write, seed) for seed in range(many)]
        try:
            yield
        finally:
            over.set()
    assert all(one.result() for one in at_work)


def differences(deployed: Deployed) -> set[str]:
    """Items of one table that the other one lacks, or has otherwise."""
    transform = load(TEMPLATE, KEYS, KEYS)
    wanted = {_shown(transform.forward(item)) for item in scanned(deployed.database, SOURCE)}
    there = {_shown(item) for item in scanned(deployed.database, DESTINATION)}
    return wanted ^ there


def serve(deployed: Deployed, connection: Connection, to: str) -> float:
    """Have that table serve; for how many seconds writes have waited.

    On a busy machine the streams are carried late: so it is told that they are not, and a change
    that is called off, or whose rehearsal takes too long, is tried again, as an operator would.
    """
    given = {"to": to, "freezeLimit": 20}
    side = SideTable(connection, PAIR.side)
    for _ in range(MOST_TRIES):
        direction = "forward" if to == "destination" else "reverse"
        side.tell(f"lag.{direction}", {"seconds": 0.0, "at": time.time()})
        looked = done(deployed, "RekeyCutOver", **given, dryRun=True)
        assert all(gate["open"] for gate in looked["gates"]), looked
        execution = ended(deployed, "RekeyCutOver", **given)
        if execution.status == "SUCCEEDED":
            output: Any = execution.output
            assert output["control"]["serving"] == to
            return float(output["pause"])
        assert execution.error in ("CalledOff", "GateShut"), execution
    raise TimeoutError(str(execution))


def _shown(item: Any) -> str:
    return str(sorted(item.items()))


@pytest.mark.timeout(900)
def test_there_and_back(
    deployed: Deployed, connection: Connection, bridge: StreamBridge, replicate: Mappings
) -> None:
    """Copied while it is written to, compared, cut over, gone back, as a table is re-keyed."""
    quiet = done(deployed, "RekeyVerify", scheduled=True)
    assert quiet["skipped"] == "the backfill has not ended"
    refused = ended(deployed, "RekeyCutOver")
    assert refused.error == "GateShut", "nothing was compared yet"
    with bridge.running(), writers(deployed):
        copied = done(deployed, "RekeyBackfill")
        assert copied["outcomes"]["copied"]
    bridge.deliver_all()
    # What was read before a write, and put after it, is left for the comparison.
    gone = next(iter(scanned(deployed.database, DESTINATION)))
    key = {name: gone[name] for name in ("pk", "sk")}
    deployed.database.client.delete_item(TableName=DESTINATION, Key=key)
    with bridge.running():
        found = done(deployed, "RekeyVerify", repair=True)["compared"]
        assert found["missing"] >= 1
        assert found["left"] == 0
    bridge.deliver_all()
    assert differences(deployed) == set()
    assert done(deployed, "RekeyVerify", scheduled=True)["compared"]["is_clean"]

    with bridge.running():
        assert 0 < serve(deployed, connection, "destination") < 20
    assert ended(deployed, "RekeyBackfill").error == "CannotStart"
    skipped = done(deployed, "RekeyVerify", scheduled=True)["skipped"]
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
