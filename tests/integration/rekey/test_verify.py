"""A verification on a local database finds the planted faults, and no others."""

import random
from collections import Counter
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from threading import Event
from typing import Any

import pytest
from keyhop.dynamodb.client import Connection
from keyhop.errors import BrokenPromise, CannotStart
from keyhop.jobs.local import Dropped
from keyhop.rekey.compare.looks import Reads
from keyhop.rekey.compare.task import look_again_at_unmappable, settle_forward
from keyhop.rekey.side.layout import BACKFILL, MARKER_ATTRIBUTE
from keyhop.rekey.task import SETTLED_SECONDS, Rekey

from testing.databases import Database
from testing.rekey_pairs import RekeyTables, create, order, transform_of
from tests.integration.rekey.conftest import Begin, finished

KINDS = ("missing", "surplus", "changed", "type")


class Orders(Sequence[dict[str, Any]]):
    """The orders with a range of numbers, which are computed and not stored."""

    def __init__(self, numbers: range) -> None:
        self.numbers = numbers

    def __len__(self) -> int:
        return len(self.numbers)

    def __getitem__(self, index: Any) -> Any:
        number = self.numbers[index]
        return Orders(number) if isinstance(number, range) else order(number)


def fill(rekey: RekeyTables, count: int) -> Orders:
    """Fill both tables with so many orders, without a difference."""
    orders = Orders(range(count))
    transform = transform_of(rekey.pair, None, None)  # type: ignore[arg-type]
    rekey.put(orders)
    rekey.database.fill(rekey.pair.destination, map(transform.forward, orders))
    return orders


def plant(rekey: RekeyTables, orders: Sequence[dict[str, Any]], faults: int) -> Counter[str]:
    """Plant so many faults of all kinds in the destination, and return their counts."""
    transform = transform_of(rekey.pair, None, None)  # type: ignore[arg-type]
    client, planted = rekey.database.client, Counter[str]()
    for number, item in enumerate(random.Random(7).sample(orders, faults)):
        kind = KINDS[number % len(KINDS)]
        planted["changed" if kind == "type" else kind] += 1
        image = dict(transform.forward(item))
        key = {name: image[name] for name in ("pk", "sk")}
        if kind == "missing":
            client.delete_item(TableName=rekey.pair.destination, Key=key)
            continue
        if kind == "surplus":
            image["sk"] = {"S": f"nobody{number}#x"}
        elif kind == "changed":
            image["total"] = {"N": "-1"}
        else:
            image["total"] = {"S": image["total"]["N"]}
        client.put_item(TableName=rekey.pair.destination, Item=image)
    return planted


def test_a_marker_of_a_drain_is_neither_a_difference_nor_copied(
    contended: RekeyTables, verify: Begin
) -> None:
    """A killed cutover may have left a marker."""
    marker = {"pk": {"S": "m"}, "sk": {"S": "m"}, MARKER_ATTRIBUTE: {"S": "of a drain"}}
    for table in (contended.pair.source, contended.pair.destination):
        contended.database.client.put_item(TableName=table, Item=marker)
    counts = finished(verify(contended, repair=True))["counts"]
    assert counts == {"ours": 2}
    assert contended.copied() == contended.originals()


@pytest.mark.parametrize(
    ("items", "faults"),
    [
        (300, 40),
        pytest.param(10_000, 500, marks=pytest.mark.prove),
        pytest.param(50_000, 1_000, marks=pytest.mark.prove_long),
    ],
)
def test_every_planted_fault_is_found_and_repaired(
    rekey: RekeyTables, verify: Begin, items: int, faults: int
) -> None:
    orders = fill(rekey, items)
    assert finished(verify(rekey))["verify"]["is_clean"]
    planted = plant(rekey, orders, faults)
    summary = finished(verify(rekey))
    report = summary["verify"]
    assert {name: report[name] for name in ("missing", "surplus", "changed")} == dict(planted)
    assert (report["left"], report["is_clean"], report["in_flight"]) == (faults, False, 0)
    assert report["items"] == items
    assert report["destination_items"] == items - planted["missing"] + planted["surplus"]
    assert summary["keys"] == faults, "each is named in a part"
    assert rekey.side.told("verify") == report
    report = finished(verify(rekey, repair=True))["verify"]
    assert (report["repaired"], report["left"], report["is_clean"]) == (faults, 0, True)
    assert rekey.side.claims("forward") == []
    assert finished(verify(rekey))["verify"]["is_clean"]
    assert len(rekey.copied()) == items


@pytest.mark.parametrize(
    ("repair", "expected"),
    [
        (False, {"changed": 1, "in_flight": 1, "unsettled": 1, "left": 2}),
        (True, {"changed": 1, "in_flight": 2, "unsettled": 0, "left": 0}),
    ],
)
def test_an_item_in_flight_is_not_a_difference(
    rekey: RekeyTables, verify: Begin, repair: bool, expected: dict[str, int]
) -> None:
    """The stream copies one item between the looks; another item is written before every look.

    Only a verification that repairs can prove that the second one is in flight, by settling it.
    """
    orders = fill(rekey, 100)
    transform = transform_of(rekey.pair, None, None)  # type: ignore[arg-type]
    late, busy, faulty = orders[5], orders[6], orders[7]
    client = rekey.database.client
    for item in (late, busy, faulty):
        client.put_item(TableName=rekey.pair.source, Item={**item, "total": {"N": "7"}})
    job = verify(rekey, repair=repair, task={"pauses": (0.001, 0.001)})
    looks: list[float] = []

    def wait(seconds: float) -> bool:
        looks.append(seconds)
        if len(looks) == 1:
            image = transform.forward({**late, "total": {"N": "7"}})
            client.put_item(TableName=rekey.pair.destination, Item=image)
        changed = {**busy, "total": {"N": f"{len(looks)}"}}
        client.put_item(TableName=rekey.pair.source, Item=changed)
        return False

    job.stop.wait = wait  # type: ignore[method-assign]
    compared = finished(job)["verify"]
    assert {name: compared[name] for name in expected} == expected
    assert compared["is_clean"] == repair
    assert rekey.side.claims("forward") == []


def test_a_place_of_two_items_is_contended_and_an_item_without_an_owner_is_foreign(
    contended: RekeyTables, verify: Begin
) -> None:
    contended.put(
        {"pk": {"S": f"u{n}"}, "sk": {"S": "same" if n < 2 else f"o{n}"}} for n in range(9)
    )
    for n in range(1, 9):
        sort = "same" if n < 2 else f"o{n}"
        item = {"pk": {"S": sort}, "sk": {"S": "-"}, "user": {"S": f"u{n}"}}
        client = contended.database.client
        client.put_item(TableName=contended.pair.destination, Item=item)
    foreign = {"pk": {"S": "x"}, "sk": {"S": "-"}}
    client.put_item(TableName=contended.pair.destination, Item=foreign)
    report = finished(verify(contended))["verify"]
    assert (report["contended"], report["surplus"], report["foreign"]) == (1, 1, 1)
    assert report["left"] == 2


def test_a_repair_leaves_the_items_of_unsettled_stragglers_alone_and_names_them(
    contended: RekeyTables, verify: Begin
) -> None:
    """The straggler may be at the place, at its owner, or at another item with this place."""
    keys = [{"pk": {"S": f"u{n}"}, "sk": {"S": f"o{n}"}} for n in range(6)]
    places = [{"pk": {"S": f"o{n}"}, "sk": {"S": "-"}} for n in range(6)]
    contended.put(keys)
    for n, key in enumerate(places):
        item = {**key, "user": {"S": f"u{n}"}, "wrong": {"BOOL": True}}
        contended.database.client.put_item(TableName=contended.pair.destination, Item=item)
    before = contended.copied()
    other_key = {"pk": {"S": "elsewhere"}, "sk": {"S": "-"}}
    contended.side.straggler("destination", places[0], [keys[0]])
    contended.side.straggler("source", keys[1], [places[1]])
    contended.side.straggler("source", other_key, [places[2]])
    contended.side.straggler("destination", other_key, [keys[3]])
    contended.side.straggler("source", keys[4], [places[4]])
    (settled,) = [each for each in contended.side.unsettled() if each.key == keys[4]]
    contended.side.resolve(settled)
    summary = finished(verify(contended, repair=True))
    names = ("changed", "bypassed", "repaired", "left", "is_clean")
    assert [summary["verify"][name] for name in names] == [6, 4, 2, 4, False]
    assert summary["keys"] == 6, "each is named in a part"
    assert {key for key, item in contended.copied().items() if item == before[key]} == {
        (f"o{n}", "-") for n in range(4)
    }
    assert contended.side.claims("forward") == []


def test_unmappable_and_irreversible_items_are_counted(rekey: RekeyTables, verify: Begin) -> None:
    lost = {**order(3), "pk": {"S": "a#b"}}  # its separator is in its key
    image = {**lost, "pk": {"S": "t3"}, "sk": {"S": "a#b#order3"}}
    del image["tenant"]
    rekey.put([order(1), {"pk": {"S": "x"}, "sk": {"S": "y"}}, lost])
    rekey.database.client.put_item(TableName=rekey.pair.destination, Item=image)
    summary = finished(verify(rekey))
    report = summary["verify"]
    assert (report["unmappable"], report["irreversible"]) == (1, 1)
    assert summary["examples"]["irreversible"][0]["why"] == "the way back changes pk, sk"


@pytest.mark.parametrize("repair", [False, True])
def test_a_verification_updates_the_list_of_unmappable_items(
    rekey: RekeyTables, verify: Begin, repair: bool
) -> None:
    """The stream's worker also updates it, but perhaps no worker follows the stream."""
    why = "attribute 'tenant' is missing"
    for number in range(3):
        key = {name: order(number)[name] for name in ("pk", "sk")}
        rekey.side.unmapped("forward", key, why)
    corrected, wrong = order(0), order(2)
    new = order(3)
    del wrong["tenant"], new["tenant"]
    rekey.put([corrected, wrong, new])  # the second one was deleted
    finished(verify(rekey, repair=repair))
    listed = rekey.side.all_unmapped("forward")
    assert sorted(item.key["sk"]["S"] for item in listed) == ["order2", "order3"]
    assert {item.reason for item in listed} == {why}


def test_an_item_that_is_recorded_as_unmappable_while_it_is_read_stays_recorded(
    rekey: RekeyTables, connection: Connection
) -> None:
    rekey.put([order(1)])
    key = {name: order(1)[name] for name in ("pk", "sk")}
    rekey.side.unmapped("forward", key, "attribute 'tenant' is missing")

    class Overtaken(Reads):
        def items(self, *arguments: Any) -> dict[str, Any]:
            items = super().items(*arguments)
            rekey.side.unmapped("forward", key, "attribute 'tenant' is missing")
            return items

    transform = transform_of(rekey.pair, None, None)  # type: ignore[arg-type]
    opened = Rekey(rekey.pair, rekey.side, None, None, transform)  # type: ignore[arg-type]
    look_again_at_unmappable(opened, Overtaken(connection, rekey.pair.source))
    assert len(rekey.side.all_unmapped("forward")) == 1
    look_again_at_unmappable(opened, Reads(connection, rekey.pair.source))
    assert rekey.side.all_unmapped("forward") == []


def test_a_sample_compares_a_share_of_both_sides(rekey: RekeyTables, verify: Begin) -> None:
    orders = fill(rekey, 200)
    plant(rekey, orders, 8)
    report = finished(verify(rekey, share=1))["verify"]
    assert not report["is_clean"]
    assert report["missing"] + report["surplus"] + report["changed"] == 8
    assert report["in_flight"] == 0


def test_a_verification_waits_for_a_backfill(rekey: RekeyTables, verify: Begin) -> None:
    rekey.side.tell(BACKFILL, {"run": "r1", "started": "", "ended": None})
    with pytest.raises(CannotStart, match="'r1' has not ended"):
        verify(rekey)
    rekey.side.tell(BACKFILL, {"run": "r1", "started": "", "ended": 1_000.0})
    waited: list[float] = []
    task = {"wait": waited.append, "now": lambda: 1_001.0}
    report = finished(verify(rekey, task=task))["verify"]
    assert (report["is_clean"], report["ended"]) == (True, 1_001.0)
    assert waited == [SETTLED_SECONDS - 1.0]


def test_nothing_is_repaired_while_nothing_replicates(
    dynamodb: Database, connection: Connection, table_name: str, verify: Begin
) -> None:
    rekey = create(dynamodb, connection, table_name, replicating=False)
    with pytest.raises(CannotStart, match="Nothing replicates at the moment"):
        verify(rekey, repair=True)
    assert finished(verify(rekey))["verify"]["is_clean"]


def test_lost_rows_make_a_verification_fail(rekey: RekeyTables, digests: Begin) -> None:
    fill(rekey, 10)
    job = digests(rekey)
    assert job.work(output=Dropped())
    with pytest.raises(BrokenPromise, match="20 items that were read, 0 were noted"):
        job.finish()


@pytest.mark.timeout(7_200)
@pytest.mark.parametrize(
    ("items", "faults", "rounds"),
    [
        (60, 12, 1),
        pytest.param(2_000, 12, 3, marks=pytest.mark.prove),
        pytest.param(10_000, 500, 1, marks=pytest.mark.prove),
        pytest.param(50_000, 1_000, 1, marks=pytest.mark.prove_long),
        pytest.param(1_000_000, 1_000, 1, marks=pytest.mark.prove_long),
    ],
)
def test_under_writes_a_verification_finds_exactly_the_planted_faults(
    rekey: RekeyTables, connection: Connection, verify: Begin, items: int, faults: int, rounds: int
) -> None:
    """Writers change items, and copy each change a moment later, as the stream does."""
    orders = fill(rekey, items)
    quiet, busy = orders[::2], orders[1::2]
    planted = plant(rekey, quiet, faults)
    steps, over = [0, 0], Event()

    def write(writer: int) -> None:
        chance = random.Random(writer)
        transform = transform_of(rekey.pair, None, None)  # type: ignore[arg-type]
        settle = settle_forward(
            connection,
            Rekey(rekey.pair, rekey.side, None, None, transform),  # type: ignore[arg-type]
        )
        while not over.is_set():
            item = chance.choice(busy[writer::2])
            changed = {**item, "total": {"N": str(steps[writer])}}
            key = {name: item[name] for name in ("pk", "sk")}
            if chance.random() < 0.2:
                rekey.database.client.delete_item(TableName=rekey.pair.source, Key=key)
            else:
                rekey.database.client.put_item(TableName=rekey.pair.source, Item=changed)
            settle([(key, transform.destination.of(transform.forward(item)))])
            steps[writer] += 1

    def wait(seconds: float) -> bool:
        """Wait until each writer has copied the change that it was making."""
        before = [*steps]
        while not over.is_set() and any(a - b < 2 for a, b in zip(steps, before, strict=True)):
            over.wait(0.01)
        return False

    with ThreadPoolExecutor(2) as pool:
        writers = [pool.submit(write, number) for number in range(2)]
        try:
            for _ in range(rounds):
                job = verify(rekey, task={"pauses": (0.001, 0.001)})
                job.stop.wait = wait  # type: ignore[method-assign]
                report = finished(job)["verify"]
                names = ("missing", "surplus", "changed")
                assert {name: report[name] for name in names} == dict(planted)
        finally:
            over.set()
        for writer in writers:
            writer.result()
    assert finished(verify(rekey, repair=True))["verify"]["is_clean"]
