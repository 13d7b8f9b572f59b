"""An item moves to another destination key while the copy is under way, and keeps changing."""

import time
from collections.abc import Callable
from typing import Any

import pytest
from keyhop.dynamodb.client import Connection
from keyhop.rekey.worker.replicate import Replicator

from testing.databases import Database
from testing.rekey_pairs import ByTenant, RekeyTables, create, order
from tests.integration.rekey.conftest import Begin

MOVED = 7
"""The number of the order that moves."""


class Application:
    """Writes one order of the source; the stream's worker works each change at once."""

    def __init__(self, rekey: RekeyTables, connection: Connection) -> None:
        self._rekey = rekey
        self._worker = Replicator(rekey.pair, "forward", ByTenant(), lambda name: connection)
        self._item = order(MOVED)
        self._writes = 0

    def write(self, **changes: dict[str, Any]) -> None:
        """Change attributes of the order, and let the worker work the stream's record."""
        self._writes += 1
        old, self._item = self._item, {**self._item, **changes}
        self._rekey.database.client.put_item(TableName=self._rekey.pair.source, Item=self._item)
        self._worker.work(
            [
                {
                    "eventID": f"event {self._writes}",
                    "eventName": "MODIFY",
                    "dynamodb": {
                        "Keys": {name: self._item[name] for name in ("pk", "sk")},
                        "OldImage": old,
                        "NewImage": self._item,
                        "SequenceNumber": str(self._writes),
                        "ApproximateCreationDateTime": time.time(),
                    },
                }
            ]
        )

    def move(self) -> None:
        """Change the attribute that the destination key is made of."""
        self.write(tenant={"S": "elsewhere"})

    def count(self) -> None:
        """Change an attribute that is in no key."""
        self.write(visits={"N": str(self._writes)})


def before_its_put(job: Any, act: Callable[[], None]) -> None:
    """Act once, between the copy's read of the moved order and its write."""
    destination = job.task._destination
    put = destination.put_if_absent
    waiting = [act]

    def slow_put(item: Any, partition: str) -> Any:
        if waiting and item["sk"]["S"].endswith(f"#order{MOVED}"):
            waiting.pop()()
        return put(item, partition)

    destination.put_if_absent = slow_put


def during_each_pause(job: Any, act: Callable[[], None]) -> None:
    def wait(seconds: float) -> bool:
        act()
        return False

    job.stop.wait = wait


def finished(job: Any) -> dict[str, Any]:
    assert job.work()
    return dict(job.finish()[1])


@pytest.fixture
def rekey(dynamodb: Database, connection: Connection, table_name: str) -> RekeyTables:
    made = create(dynamodb, connection, table_name)
    made.put(order(number) for number in range(20))
    return made


def stale_place(rekey: RekeyTables) -> None:
    """Put the order where it lay before it moved, as a copy does that is killed after its put."""
    there = ByTenant().forward(order(MOVED))
    rekey.database.client.put_item(TableName=rekey.pair.destination, Item=there)


def copies(rekey: RekeyTables) -> list[str]:
    """The partition keys under which the moved order lies in the destination."""
    return sorted(pk for pk, sk in rekey.copied() if sk.endswith(f"#order{MOVED}"))


def test_a_copy_claims_the_place_of_an_item_that_moved_before_its_put(
    rekey: RekeyTables, connection: Connection, backfill: Begin
) -> None:
    application = Application(rekey, connection)
    job = backfill(rekey, maxWriteRate=20)
    before_its_put(job, application.move)
    summary = finished(job)
    assert summary["counts"] == {"copied": 20}
    (claim,) = rekey.side.claims("forward")
    there = ByTenant().forward(order(MOVED))
    assert there is not None
    assert claim.place == ByTenant().destination.of(there)
    worker = Replicator(rekey.pair, "forward", ByTenant(), lambda name: connection)
    assert worker.sweep() == 1
    assert copies(rekey) == ["elsewhere"]
    assert rekey.side.claims("forward") == []


def test_a_verify_removes_a_stale_item_whose_source_item_keeps_changing(
    rekey: RekeyTables, connection: Connection, backfill: Begin, verify: Begin
) -> None:
    application = Application(rekey, connection)
    finished(backfill(rekey))
    application.move()
    stale_place(rekey)
    assert len(copies(rekey)) == 2
    job = verify(rekey, repair=True, task={"pauses": (0.001, 0.001)})
    during_each_pause(job, application.count)
    compared = finished(job)["verify"]
    assert (compared["surplus"], compared["repaired"]) == (1, 1)
    assert compared["is_clean"]
    assert copies(rekey) == ["elsewhere"]
    assert rekey.side.claims("forward") == []


def test_a_verify_without_repair_counts_a_stale_item_whose_source_item_keeps_changing(
    rekey: RekeyTables, connection: Connection, backfill: Begin, verify: Begin
) -> None:
    application = Application(rekey, connection)
    finished(backfill(rekey))
    application.move()
    stale_place(rekey)
    job = verify(rekey, task={"pauses": (0.001, 0.001)})
    during_each_pause(job, application.count)
    compared = finished(job)["verify"]
    assert (compared["surplus"], compared["left"], compared["is_clean"]) == (1, 1, False)
