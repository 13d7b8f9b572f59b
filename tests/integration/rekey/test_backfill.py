"""The backfill on a local database copies each item once and overwrites nothing."""

import math
from threading import Event
from typing import Any

import pytest
from keyhop.dynamodb.client import Connection
from keyhop.dynamodb.units import BLOCK_BYTES, US_EAST_1
from keyhop.dynamodb.values import size_of
from keyhop.errors import CannotStart, RunConflict
from keyhop.rekey.backfill import CLAIMED, COPIED, LEFT_OUT, OURS, THERE, UNMAPPED, Valve
from keyhop.rekey.side.layout import BACKFILL, MARKER_ATTRIBUTE
from keyhop.scan.reader import PageReader

from testing.databases import Database
from testing.rekey_pairs import RekeyTables, create, order
from tests.integration.rekey.conftest import Begin, finished


def test_every_item_is_copied_and_none_is_overwritten(rekey: RekeyTables, backfill: Begin) -> None:
    orders = [order(number) for number in range(400)]
    no_tenant = {"pk": {"S": "user"}, "sk": {"S": "none"}}
    skipped = {**order(1), "pk": {"S": "left"}, "tenant": {"S": "skip"}}
    sentinel = {"pk": {"S": "user1"}, "sk": {"S": " "}, "keyhop": {"N": "1"}}
    marker = {"pk": {"S": "m"}, "sk": {"S": "m"}, MARKER_ATTRIBUTE: {"S": "of a drain"}}
    rekey.put([*orders, no_tenant, skipped, marker])
    newer = {**order(5), "pk": {"S": "t5"}, "sk": {"S": "user1#order5"}, "total": {"N": "9"}}
    del newer["tenant"]
    rekey.database.client.put_item(TableName=rekey.pair.destination, Item=newer)
    ours = {"sk": sentinel["sk"], "keyhop": sentinel["keyhop"]}
    rekey.database.client.put_item(TableName=rekey.pair.source, Item=sentinel)

    class Sentinels:
        item = ours

    summary = finished(backfill(rekey, tasks={"sentinels_of": lambda table: Sentinels}))
    assert summary["counts"] == {COPIED: 399, THERE: 1, LEFT_OUT: 1, OURS: 2, UNMAPPED: 1}
    copied = rekey.copied()
    assert len(copied) == 400
    assert copied[("t5", "user1#order5")]["total"] == {"N": "9"}, "the stream's item is newer"
    (example,) = summary["unmappable"]
    assert example["why"] == "attribute 'tenant' is missing"
    assert "user" not in example["key"], "it is a digest"
    (unmapped,) = rekey.side.all_unmapped("forward")
    assert unmapped.reason == example["why"]
    report = rekey.side.told(BACKFILL)
    assert report["ended"] is not None
    assert report["counts"] == summary["counts"]
    assert rekey.side.claims("forward") == []


def test_a_place_of_another_owner_is_claimed_before_the_page_counts(
    contended: RekeyTables, backfill: Begin
) -> None:
    contended.put(
        {"pk": {"S": f"u{n}"}, "sk": {"S": "same" if n < 3 else f"o{n}"}} for n in range(10)
    )
    summary = finished(backfill(contended))
    assert summary["counts"] == {COPIED: 8, CLAIMED: 2}
    claims = contended.side.claims("forward")
    assert [claim.place for claim in claims] == [{"pk": {"S": "same"}, "sk": {"S": "-"}}] * 2
    owner = contended.copied()[("same", "-")]["user"]["S"]
    assert {claim.owner["pk"]["S"] for claim in claims} == {"u0", "u1", "u2"} - {owner}


def test_a_stopped_run_continues_at_the_next_item(rekey: RekeyTables, backfill: Begin) -> None:
    rekey.put(order(number) for number in range(400))
    job = backfill(rekey)
    put = job.task._copier._copied
    remaining = [150]

    def stopping(item: Any, puts: Any) -> str:
        remaining[0] -= 1
        if not remaining[0]:
            job.stop.set()
        return str(put(item, puts))

    job.task._copier._copied = stopping
    assert not job.work()
    assert 0 < len(rekey.copied()) < 400
    summary = finished(backfill(rekey, resume=True))
    assert summary["counts"] == {COPIED: 400}, "no write was made twice"
    assert len(rekey.copied()) == 400


def test_second_reads_are_counted_and_limited_by_the_read_rate(
    rekey: RekeyTables, backfill: Begin, monkeypatch: pytest.MonkeyPatch
) -> None:
    rekey.put(order(number) for number in range(300))
    booked: list[float] = []
    book = PageReader.book

    def booking(reader: PageReader, units: float) -> None:
        booked.append(units)
        book(reader, units)

    monkeypatch.setattr(PageReader, "book", booking)
    summary = finished(backfill(rekey, maxReadRate=1e6))
    assert 0 < sum(booked) < 100, "less than a read unit for each of the small items"
    assert summary["read_units"] > sum(booked)


def test_a_late_worker_writes_nothing_after_the_end(rekey: RekeyTables, backfill: Begin) -> None:
    rekey.put(order(number) for number in range(10))
    job = backfill(rekey)
    rekey.side.tell(BACKFILL, {**rekey.side.told(BACKFILL), "ended": 1.0})
    with pytest.raises(RunConflict, match="ended already"):
        job.work()
    assert rekey.copied() == {}


def test_a_copy_puts_nothing_into_a_table_that_serves(rekey: RekeyTables, backfill: Begin) -> None:
    """Items that the application has deleted there since then would come back."""
    rekey.put(order(number) for number in range(10))
    job = backfill(rekey)
    control = rekey.side.control()
    assert rekey.side.swap(control, control.changed(serving="destination"))
    with pytest.raises(RunConflict, match="serves"):
        job.work()
    assert rekey.copied() == {}


def test_a_copy_pauses_while_the_serving_table_changes(rekey: RekeyTables, backfill: Begin) -> None:
    valve = Valve(rekey.side, "r", lambda pace: None, Event())
    rekey.side.tell(BACKFILL, {"run": "r", "ended": None})
    assert not valve._look().is_paused
    control = rekey.side.control()
    assert rekey.side.swap(control, control.closed())
    valve._looked_at = None
    assert valve._look().is_paused


def test_a_backfill_that_is_not_possible_is_refused(
    dynamodb: Database, connection: Connection, table_name: str, backfill: Begin
) -> None:
    rekey = create(dynamodb, connection, table_name, replicating=False)
    with pytest.raises(CannotStart, match="Nothing replicates yet"):
        backfill(rekey)
    sharded = {"is_sharded": lambda table: table.name == table_name}
    with pytest.raises(CannotStart, match="is sharded"):
        backfill(rekey, tasks=sharded, accept=["no-stream"])
    assert backfill(rekey, tasks=sharded, accept=["no-stream", "shards"]).work()
    with pytest.raises(CannotStart, match="no re-key into"):
        backfill(RekeyTables(dynamodb, rekey.pair.__class__("x", table_name, {}), rekey.side))


def test_the_limit_of_the_copy_can_be_removed(rekey: RekeyTables, backfill: Begin) -> None:
    rekey.put(order(number) for number in range(10))
    rekey.side.tell("throttle", {"rate": "none", "paused": False})
    job = backfill(rekey)
    assert job.work()
    assert job.task._destination._writes.budget.max_rate == float("inf")


def test_a_paused_copy_writes_nothing(rekey: RekeyTables, backfill: Begin) -> None:
    rekey.put(order(number) for number in range(10))
    rekey.side.tell("throttle", {"rate": 5000, "paused": True})
    job = backfill(rekey)
    looks = []
    valve = job.task._valve
    look = valve._look

    def looking() -> Any:
        looks.append(look())
        if len(looks) == 3:
            assert rekey.copied() == {}
            rekey.side.tell("throttle", {"rate": 5000, "paused": False})
        valve._looked_at = None
        return looks[-1]

    valve._look = looking
    job.stop.wait = lambda seconds: Event.is_set(job.stop)
    assert job.work()
    assert len(rekey.copied()) == 10
    assert job.task._destination._writes.budget.max_rate == 5000


@pytest.mark.prove
def test_the_cost_of_a_backfill_and_a_verification_is_close_to_the_minimum(
    rekey: RekeyTables, backfill: Begin, verify: Begin
) -> None:
    """DynamoDB Local counts the units.

    The minimum is a scan, a put of each item, and a strongly consistent scan as the second read.
    """
    items = [order(number, size=915) for number in range(3_000)]  # a little under 1 KB
    sizes = [*map(size_of, items)]
    assert 950 < min(sizes) < max(sizes) < 1_024
    rekey.put(items)
    scan = 0.5 * math.ceil(sum(sizes) / BLOCK_BYTES)
    minimum = US_EAST_1.dollars(3 * scan, len(items))
    copied = finished(backfill(rekey))
    assert copied["write_units"] < 1.001 * len(items)
    dollars = US_EAST_1.dollars(copied["read_units"], copied["write_units"])
    print(f"backfill {dollars / minimum:.4f} x ({copied['read_units']} RRU, {minimum=})")
    assert dollars <= 1.01 * minimum
    compared = finished(verify(rekey))
    assert compared["verify"]["is_clean"]
    assert (compared["read_units"], compared.get("write_units", 0)) == (1, 0), (
        "nothing can be confirmed: only the list of unmappable items is read"
    )
    read = compared["digests"]["read_units"]
    total = dollars + US_EAST_1.dollars(read, 0)
    print(f"with verify {total / minimum:.4f} x ({read} RRU)")
    assert total <= 1.12 * minimum
