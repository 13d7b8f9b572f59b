"""An item moves while it is copied, and continues to change while the tables are compared."""

from typing import Any

import pytest
from keyhop.dynamodb.client import Connection
from keyhop.rekey.backfill import Copier, Destination

from testing.rekey_pairs import ByTenant, RekeyTables, order
from tests.integration.rekey.conftest import Begin, change, finished, worker_of

OLD = ("t0", "user0#order0")
"""The place of the item's image before the item moves."""


@pytest.mark.parametrize("looks_again", [True, False], ids=["", "the copy is killed before it"])
@pytest.mark.parametrize("repair", [True, False], ids=["repair", "no repair"])
def test_it_is_in_the_new_table_once_or_no_gate_opens(
    looks_again: bool,
    repair: bool,
    rekey: RekeyTables,
    connection: Connection,
    backfill: Begin,
    verify: Begin,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    item = order(0)
    rekey.put(order(number) for number in range(20))
    worker, put = worker_of(rekey, connection), Destination.put_if_absent

    def count(**more: Any) -> None:
        """Write the item once, and replicate the write at once."""
        nonlocal item
        before, item = item, {**item, "total": {"N": f"{float(item['total']['N']) + 1}"}, **more}
        change(rekey, worker, before, item)

    def putting(self: Destination, image: Any, partition: str) -> Any:
        if (image["pk"]["S"], image["sk"]["S"]) == OLD:
            count(tenant={"S": "elsewhere"})
        return put(self, image, partition)

    monkeypatch.setattr(Destination, "put_if_absent", putting)
    if not looks_again:
        monkeypatch.setattr(Copier, "_look_again", lambda self, puts, page: None)
    assert finished(backfill(rekey))["counts"] == {"copied": 20}
    image = ByTenant().forward(order(0))
    assert image is not None
    claimed = [claim.place for claim in rekey.side.claims("forward")]
    assert claimed == [ByTenant().destination.of(image)] * looks_again
    assert OLD in rekey.copied(), "the stale image is at its old place"
    count()
    job = verify(rekey, repair=repair, task={"pauses": (0.001, 0.001)})
    job.stop.wait = lambda seconds: bool(count())
    report = finished(job)["verify"]
    is_stale = not repair and not looks_again
    assert (OLD in rekey.copied(), len(rekey.copied())) == (is_stale, 20 + is_stale)
    expected = [not looks_again, repair and not looks_again, is_stale, not is_stale]
    assert [report[name] for name in ("surplus", "repaired", "left", "is_clean")] == expected
    assert rekey.side.claims("forward") == []
