"""An item that moves while it is copied, and goes on changing while the tables are compared."""

import time
from itertools import count
from typing import Any

import pytest
from keyhop.dynamodb.client import Connection
from keyhop.rekey.backfill import Copier, Destination
from keyhop.rekey.worker.replicate import Replicator

from testing.databases import Database
from testing.rekey_pairs import ByTenant, RekeyTables, create, order
from tests.integration.rekey.conftest import Begin


class Busy:
    """One source item that the application changes, and the worker that follows it."""

    def __init__(self, rekey: RekeyTables, connection: Connection, item: dict[str, Any]) -> None:
        self.rekey, self.item = rekey, item
        self.numbers = count(1)
        rekey.put([item])
        self.worker = Replicator(
            rekey.pair, "forward", ByTenant(), lambda name: connection, side=rekey.side
        )

    def change(self, **more: Any) -> None:
        """One write of the application, which the stream brings at once."""
        number = next(self.numbers)
        before, self.item = self.item, {**self.item, "total": {"N": str(number)}, **more}
        self.rekey.database.client.put_item(TableName=self.rekey.pair.source, Item=self.item)
        told = {
            "Keys": {name: self.item[name] for name in ("pk", "sk")},
            "OldImage": before,
            "NewImage": self.item,
            "SequenceNumber": str(number),
            "StreamViewType": "NEW_AND_OLD_IMAGES",
            "ApproximateCreationDateTime": time.time(),
        }
        self.worker.work([{"eventID": f"e{number}", "dynamodb": told}])


@pytest.mark.parametrize("looks_again", [True, False], ids=["", "the copy is killed before it"])
@pytest.mark.parametrize("repair", [True, False], ids=["repair", "no repair"])
def test_it_is_in_the_new_table_once_or_no_gate_opens(
    looks_again: bool,
    repair: bool,
    dynamodb: Database,
    connection: Connection,
    table_name: str,
    backfill: Begin,
    verify: Begin,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    rekey = create(dynamodb, connection, table_name)
    rekey.put(order(number) for number in range(1, 20))
    busy = Busy(rekey, connection, order(0))
    put = Destination.put_if_absent

    def putting(self: Destination, item: Any, partition: str) -> Any:
        if item["sk"] == {"S": "user0#order0"} and item["pk"] == {"S": "t0"}:
            busy.change(tenant={"S": "elsewhere"})
        return put(self, item, partition)

    monkeypatch.setattr(Destination, "put_if_absent", putting)
    if not looks_again:
        monkeypatch.setattr(Copier, "_look_again", lambda self, puts, page: None)
    job = backfill(rekey)
    assert job.work()
    job.finish()
    assert len(rekey.side.claims("forward")) == looks_again
    assert ("t0", "user0#order0") in rekey.copied(), "the stale copy lies at its old place"
    busy.change()
    compared = verify(rekey, repair=repair, task={"pauses": (0.001, 0.001)})

    def wait(seconds: float) -> bool:
        busy.change()
        return False

    compared.stop.wait = wait  # type: ignore[method-assign]
    assert compared.work()
    told = compared.finish()[1]["verify"]
    is_stale = ("t0", "user0#order0") in rekey.copied()
    assert is_stale == (not repair and not looks_again)
    assert told["is_clean"] == (not is_stale)
    assert len(rekey.copied()) == 20 + is_stale
    assert rekey.side.claims("forward") == []
