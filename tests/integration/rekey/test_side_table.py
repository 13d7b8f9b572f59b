"""The methods of the side table on DynamoDB Local, also when several callers use them at once."""

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
    """The present time, followed by the next ones, of which each is used once."""
    return [float(moment) for moment in range(1_000)]


@pytest.fixture
def side(
    dynamodb: Database, connection: Connection, table_name: str, moments: list[float]
) -> SideTable:
    dynamodb.client.create_table(**table_request(table_name))

    def now() -> float:
        return moments.pop(0) if len(moments) > 1 else moments[0]

    return SideTable(connection, table_name, now=now)


def test_a_missing_control_item_and_a_missing_plan_are_reported(side: SideTable) -> None:
    with pytest.raises(CannotStart, match="no control"):
        side.control()
    with pytest.raises(CannotStart, match="no plan"):
        side.plan()


@pytest.mark.parametrize("body", ["no JSON", "{}", '{"serving": "source"}'])
def test_a_control_item_that_keyhop_did_not_write_is_refused(
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


def test_either_an_abort_or_a_turn_succeeds(side: SideTable) -> None:
    """Of twenty threads, ten turn and ten call off; exactly one of them succeeds."""
    fenced = Control(stage="fenced", revision=7)
    side.swap(None, fenced)
    changes = [fenced.turned(), fenced.aborted()] * 10
    with ThreadPoolExecutor(20) as pool:
        results = list(pool.map(lambda new: side.swap(fenced, new), changes))
    assert sum(results) == 1
    assert side.control() == changes[results.index(True)]


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


def test_a_batch_that_begins_again_gets_the_number_of_earlier_starts(side: SideTable) -> None:
    assert side.begin("forward", "shard", "100") == 0
    assert side.begin("forward", "shard", "100") == 1
    assert side.begin("forward", "shard", "100") == 2
    assert side.begin("reverse", "shard", "100") == 0
    (batch,) = side.open_batches("forward")
    assert batch == 4.0, "the moment of its last start"
    side.end("forward", "shard", "100", tries=2)  # a start that counts as dead
    assert side.open_batches("forward") == [batch]
    side.end("forward", "shard", "100", tries=3)
    side.end("forward", "shard", "100")
    assert side.open_batches("forward") == []
    assert len(side.open_batches("reverse")) == 1


def test_each_thread_that_begins_the_same_batch_gets_another_number(side: SideTable) -> None:
    with ThreadPoolExecutor(8) as pool:
        numbers = list(pool.map(lambda _: side.begin("forward", "s", "1"), range(8)))
    assert sorted(numbers) == list(range(8))


def test_only_the_holder_of_its_token_drops_a_claim(side: SideTable) -> None:
    side.claim("forward", PLACE, OWNER)
    (first,) = side.claims("forward")
    assert (first.place, first.owner) == (PLACE, OWNER)
    second = side.claim("forward", PLACE, OWNER)
    assert not side.drop_claim(first)
    assert side.take_claim(first) is None
    assert side.claims("forward") == [second]
    third = side.take_claim(second)
    assert third is not None
    assert not side.drop_claim(second)
    assert side.drop_claim(third)
    assert side.drop_claim(third)
    assert side.claims("forward") == []


def test_only_one_of_several_threads_takes_a_claim(side: SideTable) -> None:
    claim = side.claim("forward", PLACE, OWNER)
    with ThreadPoolExecutor(8) as pool:
        results = list(pool.map(side.take_claim, [claim] * 8))
    assert [result for result in results if result is not None] == side.claims("forward")


def test_items_without_a_place_are_listed(side: SideTable) -> None:
    side.unmapped("forward", OWNER, "attribute 'tenant' is missing")
    (unmapped,) = side.all_unmapped("forward")
    assert unmapped.reason == "attribute 'tenant' is missing"
    assert (unmapped.digest, unmapped.key) == (key_digest(OWNER).hex(), OWNER)
    side.mapped("forward", OWNER)
    assert side.all_unmapped("forward") == []


def test_claims_on_keys_of_full_length_are_distinguished(side: SideTable) -> None:
    for last in "ab":
        side.claim("forward", {"PK": {"S": "x" * 2047 + last}}, OWNER)
    assert len(side.claims("forward")) == 2
    assert len(side.claims("forward", maximum=1)) == 1
    assert side.claims("reverse") == []


def test_a_marker_is_marked_as_seen(side: SideTable) -> None:
    side.put_marker("m", {"key": "k"})
    assert side.markers() == {"m": {"key": "k"}}
    side.see_marker("m", {"event": "e1"})
    assert side.markers() == {"m": {"key": "k", "seen": {"event": "e1"}}}
    side.drop_marker("m")
    side.see_marker("m", {"event": "late"})
    assert side.markers() == {}


def test_the_reports_of_clients_and_figures_are_read(side: SideTable) -> None:
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
    """Write a control item that says that `table` serves, and return it."""
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
    assert [each.settled is None for each in side.stragglers()] == [False], "it is still listed"
    claims = side.claims("reverse")
    assert [(claim.place, claim.owner, claim.at) for claim in claims] == [
        (OWNER, place(number), 0.0) for number in (1, 2, 3)
    ], "any batch settles these at once"
    side.straggler("source", OWNER, [place(4)])
    (straggler,) = side.unsettled()
    assert straggler.places == (place(4),)


def test_a_straggler_of_the_table_that_serves_again_is_settled_in_the_other_one(
    side: SideTable,
) -> None:
    side.straggler("source", OWNER, [place(1), place(2)])
    assert side.settle(side.unsettled()[0], serving(side, "source"))
    claims = [(claim.place, claim.owner) for claim in side.claims("forward")]
    assert claims == [(place(1), OWNER), (place(2), OWNER)]


def test_a_straggler_that_is_recorded_again_while_it_is_settled_stays_unsettled(
    side: SideTable,
) -> None:
    side.straggler("source", OWNER, [place(1)])
    (first,) = side.unsettled()
    side.straggler("source", OWNER, [place(2)])
    assert side.settle(first, serving(side, "destination"))
    (straggler,) = side.unsettled()
    assert straggler.places == (place(1), place(2))
    assert len(side.claims("reverse")) == 1


@pytest.mark.parametrize("places", [1, 150])
def test_a_straggler_is_not_settled_once_the_control_item_has_changed(
    side: SideTable, places: int
) -> None:
    """The table that served at the time of this decision may no longer serve."""
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
    """Each report is a write; a lag between two reports is in the next one, if that comes soon."""
    lags = []
    for at, seconds in [(0, 0.5), (4, 7.0), (11, 0.1), (15, 9.0), (100, 0.2)]:
        moments[:] = [1_000.0 + at]
        side.tell_lag("forward", seconds)
        lags.append(side.told("lag.forward")["seconds"])
    assert lags == [0.5, 0.5, 7.0, 7.0, 0.2]


def test_a_note_that_is_older_than_any_batch_is_not_an_open_batch(
    side: SideTable, moments: list[float]
) -> None:
    """The request of such a note was late, and arrived after its sender had been killed."""
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
def test_a_damaged_figure_is_named(side: SideTable, name: str, body: str) -> None:
    side.put_if({"pk": {"S": "told"}, "sk": {"S": name}, "body": {"S": body}}, {})
    with pytest.raises(CannotStart, match=f"The row told, {name} of the side table"):
        side.all_told()
    side.tell(name, None)
    assert side.all_told() == {name: None}


@pytest.mark.parametrize("deflated", [b"xx", zlib.compress(b"[]"), zlib.compress(b"{}")])
def test_a_damaged_plan_is_named(side: SideTable, deflated: bytes) -> None:
    row = {"pk": {"S": "plan"}, "sk": {"S": "plan"}, "version": {"N": "1"}}
    side.put_if({**row, "deflated": {"B": deflated}}, {})
    with pytest.raises(CannotStart, match="The plan of the side table"):
        side.plan()
