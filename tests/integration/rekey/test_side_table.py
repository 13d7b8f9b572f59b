"""The side table on DynamoDB Local: each of its methods, and those where two may meet."""

import zlib
from concurrent.futures import ThreadPoolExecutor
from random import Random

import pytest
from keyhop.dynamodb.client import Connection
from keyhop.dynamodb.values import Key
from keyhop.errors import CannotStart
from keyhop.rekey.control import Control, Side
from keyhop.rekey.pair import Pair
from keyhop.rekey.side.layout import LONGEST_BATCH_SECONDS
from keyhop.rekey.side.table import SideTable, table_request
from keyhop.rekey.transform import key_digest

from testing.databases import Database

PLACE, OWNER = {"PK": {"S": "p"}, "SK": {"N": "1"}}, {"id": {"B": b"\x00\xff"}}


@pytest.fixture
def moments() -> list[float]:
    """The present moment, and the next ones, if there are any."""
    return [float(moment) for moment in range(1_000)]


@pytest.fixture
def side(
    dynamodb: Database, connection: Connection, table_name: str, moments: list[float]
) -> SideTable:
    dynamodb.client.create_table(**table_request(table_name))

    def now() -> float:
        return moments.pop(0) if len(moments) > 1 else moments[0]

    return SideTable(connection, table_name, now=now)


def test_without_control_and_plan_it_says_so(side: SideTable) -> None:
    with pytest.raises(CannotStart, match="no control"):
        side.control()
    with pytest.raises(CannotStart, match="no plan"):
        side.plan()


@pytest.mark.parametrize("body", ["no JSON", "{}", '{"serving": "source"}'])
def test_a_control_item_of_somebody_else_s_is_gone_by_by_nobody(
    dynamodb: Database, side: SideTable, table_name: str, body: str
) -> None:
    row = {"pk": {"S": "control"}, "sk": {"S": "control"}, "body": {"S": body}}
    dynamodb.client.put_item(TableName=table_name, Item=row)
    with pytest.raises(CannotStart, match="was not written by Keyhop"):
        side.control()


def test_a_change_of_the_control_item_is_a_swap_of_its_revision(side: SideTable) -> None:
    first = Control()
    assert side.swap(None, first)
    assert not side.swap(None, first)
    assert side.control() == first
    closing = first.closed()
    assert side.swap(first, closing)
    assert not side.swap(first, first.changed(shadow=0.5))
    assert side.control() == closing


def test_of_an_abort_and_a_turn_one_succeeds(side: SideTable) -> None:
    """Twenty threads, of which ten turn and ten call off: one has its way."""
    fenced = Control(stage="fenced", revision=7)
    side.swap(None, fenced)
    wanted = [fenced.turned(), fenced.aborted()] * 10
    with ThreadPoolExecutor(20) as pool:
        done = list(pool.map(lambda new: side.swap(fenced, new), wanted))
    assert sum(done) == 1
    assert side.control() == wanted[done.index(True)]


def test_a_side_table_of_another_layout_is_refused(
    dynamodb: Database, side: SideTable, table_name: str
) -> None:
    side.put_plan(Pair("Orders", "Orders-2", {"items": []}))
    dynamodb.client.update_item(
        TableName=table_name,
        Key={"pk": {"S": "plan"}, "sk": {"S": "plan"}},
        UpdateExpression="SET version = :other",
        ExpressionAttributeValues={":other": {"N": "2"}},
    )
    with pytest.raises(CannotStart, match=r"version 2 of its layout, .* End the re-key with that"):
        side.plan()


def test_a_plan_is_written_once(side: SideTable) -> None:
    code = "def forward(item):\n    return item  # ü\n" * 20_000
    pair = Pair("Orders", "Orders-2", {"items": [{"set": {"PK": "{a}"}}]}, code)
    assert side.put_plan(pair)
    assert side.put_plan(pair)
    assert side.plan() == pair
    assert not side.put_plan(Pair("Orders", "Orders-2", {"items": []}))


def test_a_plan_without_room_is_refused(side: SideTable) -> None:
    noise = Random(1).randbytes(500_000).hex()
    with pytest.raises(CannotStart, match="maximum that fits into an item"):
        side.put_plan(Pair("a", "b", {}, noise))


def test_a_batch_that_begins_again_is_told_so(side: SideTable) -> None:
    assert side.begin("forward", "shard", "100") == 0
    assert side.begin("forward", "shard", "100") == 1
    assert side.begin("forward", "shard", "100") == 2
    assert side.begin("reverse", "shard", "100") == 0
    (batch,) = side.open_batches("forward")
    assert batch == 4.0, "the moment of its last start"
    side.end("forward", "shard", "100", tries=2)  # of one that was taken for dead
    assert side.open_batches("forward") == [batch]
    side.end("forward", "shard", "100", tries=3)
    side.end("forward", "shard", "100")
    assert side.open_batches("forward") == []
    assert len(side.open_batches("reverse")) == 1


def test_of_threads_that_begin_the_same_batch_each_has_a_number_of_its_own(side: SideTable) -> None:
    with ThreadPoolExecutor(8) as pool:
        numbers = list(pool.map(lambda _: side.begin("forward", "s", "1"), range(8)))
    assert sorted(numbers) == list(range(8))


def test_a_claim_is_dropped_by_whom_its_token_is(side: SideTable) -> None:
    side.claim("forward", PLACE, OWNER)
    (seen,) = side.claims("forward")
    assert (seen.place, seen.owner) == (PLACE, OWNER)
    again = side.claim("forward", PLACE, OWNER)
    assert not side.drop_claim(seen)
    assert side.take_claim(seen) is None
    assert side.claims("forward") == [again]
    taken = side.take_claim(again)
    assert taken is not None
    assert not side.drop_claim(again)
    assert side.drop_claim(taken)
    assert side.drop_claim(taken)
    assert side.claims("forward") == []


def test_of_those_that_take_a_claim_one_has_it(side: SideTable) -> None:
    claim = side.claim("forward", PLACE, OWNER)
    with ThreadPoolExecutor(8) as pool:
        taken = [one for one in pool.map(side.take_claim, [claim] * 8) if one is not None]
    assert taken == side.claims("forward")


def test_items_without_a_place_are_listed(side: SideTable) -> None:
    side.unmapped("forward", OWNER, "attribute 'tenant' is missing")
    (one,) = side.all_unmapped("forward")
    assert one.reason == "attribute 'tenant' is missing"
    assert (one.digest, one.key) == (key_digest(OWNER).hex(), OWNER)
    side.mapped("forward", OWNER)
    assert side.all_unmapped("forward") == []


def test_claims_on_keys_of_full_length_are_told_apart(side: SideTable) -> None:
    for last in "ab":
        side.claim("forward", {"PK": {"S": "x" * 2047 + last}}, OWNER)
    assert len(side.claims("forward")) == 2
    assert len(side.claims("forward", maximum=1)) == 1
    assert side.claims("reverse") == []


def test_a_marker_counts_when_it_was_seen(side: SideTable) -> None:
    side.put_marker("m", {"key": "k"})
    assert side.markers() == {"m": {"key": "k"}}
    side.see_marker("m", {"event": "e1"})
    assert side.markers() == {"m": {"key": "k", "seen": {"event": "e1"}}}
    side.drop_marker("m")
    side.see_marker("m", {"event": "late"})
    assert side.markers() == {}


def test_what_clients_and_figures_tell(side: SideTable) -> None:
    side.report_client("c1", {"revision": 3})
    side.report_client("c1", {"revision": 4})
    assert side.clients() == {"c1": {"revision": 4}}
    assert side.told("verify") is None
    side.tell("verify", {"at": 0.0})
    side.tell("started", 1.5)
    assert side.told("verify") == {"at": 0.0}
    assert side.all_told()["started"] == 1.5


def place(number: int) -> Key:
    return {"PK": {"S": f"d{number}"}}


def serving(side: SideTable, table: Side) -> Control:
    """Write a control item by which `table` serves, and return it."""
    control = Control(serving=table)
    assert side.swap(None, control)
    return control


def test_a_straggler_keeps_all_places_until_it_is_settled(side: SideTable) -> None:
    side.straggler("source", OWNER, [place(1), place(2)])
    side.straggler("source", OWNER, [place(2), place(3)])
    (straggler,) = side.unsettled()
    assert (straggler.side, straggler.key, straggler.settled) == ("source", OWNER, None)
    assert straggler.places == (place(1), place(2), place(3))
    assert side.settle(straggler, serving(side, "destination"))
    assert side.unsettled() == []
    assert [one.settled is None for one in side.stragglers()] == [False], "it is still listed"
    claims = side.claims("reverse")
    assert [(one.place, one.owner, one.at) for one in claims] == [
        (OWNER, place(number), 0.0) for number in (1, 2, 3)
    ], "any batch settles these at once"
    side.straggler("source", OWNER, [place(4)])
    (again,) = side.unsettled()
    assert again.places == (place(4),)


def test_a_straggler_of_the_table_that_serves_again_is_settled_in_the_other_one(
    side: SideTable,
) -> None:
    side.straggler("source", OWNER, [place(1), place(2)])
    assert side.settle(side.unsettled()[0], serving(side, "source"))
    claims = side.claims("forward")
    assert [(one.place, one.owner) for one in claims] == [(place(1), OWNER), (place(2), OWNER)]


def test_a_straggler_that_is_noted_again_while_it_is_settled_stays_unsettled(
    side: SideTable,
) -> None:
    side.straggler("source", OWNER, [place(1)])
    (seen,) = side.unsettled()
    side.straggler("source", OWNER, [place(2)])
    assert side.settle(seen, serving(side, "destination"))
    (straggler,) = side.unsettled()
    assert straggler.places == (place(1), place(2))
    assert len(side.claims("reverse")) == 1


@pytest.mark.parametrize("places", [1, 150])
def test_a_straggler_is_not_settled_once_the_control_item_has_changed(
    side: SideTable, places: int
) -> None:
    """The table that served when this was decided may not serve any more."""
    control = serving(side, "destination")
    side.straggler("source", OWNER, [place(number) for number in range(places)])
    changed = control.changed(shadow=0.5)
    assert side.swap(control, changed)
    assert not side.settle(side.unsettled()[0], control)
    assert len(side.unsettled()) == 1
    assert side.claims("reverse") == []
    assert side.settle(side.unsettled()[0], changed)
    assert side.unsettled() == []
    assert len(side.claims("reverse")) == places


def test_a_lag_is_the_largest_of_the_last_seconds_and_no_older_one(
    side: SideTable, moments: list[float]
) -> None:
    """Each telling is a write; what came between two of them is told with the next one, if soon."""
    told = []
    for at, seconds in [(0, 0.5), (4, 7.0), (11, 0.1), (15, 9.0), (100, 0.2)]:
        moments[:] = [1_000.0 + at]
        side.tell_lag("forward", seconds)
        told.append(side.told("lag.forward")["seconds"])
    assert told == [0.5, 0.5, 7.0, 7.0, 0.2]


def test_a_note_that_is_older_than_a_batch_can_live_is_of_none_that_is_under_way(
    side: SideTable, moments: list[float]
) -> None:
    """As one whose request had no answer, and came when whoever sent it had been killed."""
    moments[:] = [1_000.0]
    side.begin("forward", "shard", "1")
    moments[:] = [1_000.0 + LONGEST_BATCH_SECONDS - 1]
    assert len(side.open_batches("forward")) == 1
    moments[:] = [1_000.0 + LONGEST_BATCH_SECONDS]
    assert side.open_batches("forward") == []
    assert side.begin("forward", "shard", "1") == 1
    assert len(side.open_batches("forward")) == 1


@pytest.mark.parametrize(
    ("name", "body"),
    [
        ("backfill", '{"run": "r"}'),
        ("verify", "[]"),
        ("lag.forward", "{}"),
        ("turned", "7"),
        ("throttle", "{"),
    ],
)
def test_a_figure_that_somebody_has_damaged_is_named(side: SideTable, name: str, body: str) -> None:
    side.put_if({"pk": {"S": "told"}, "sk": {"S": name}, "body": {"S": body}}, {})
    with pytest.raises(CannotStart, match=f"The row told, {name} of the side table"):
        side.all_told()
    side.tell(name, None)
    assert side.all_told() == {name: None}


@pytest.mark.parametrize("deflated", [b"xx", zlib.compress(b"[]"), zlib.compress(b"{}")])
def test_a_plan_that_somebody_has_damaged_is_named(side: SideTable, deflated: bytes) -> None:
    row = {"pk": {"S": "plan"}, "sk": {"S": "plan"}, "version": {"N": "1"}}
    side.put_if({**row, "deflated": {"B": deflated}}, {})
    with pytest.raises(CannotStart, match="The plan of the side table"):
        side.plan()
