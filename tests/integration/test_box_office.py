"""The example application passes the same tests with boto3's Table and with ShardedTable."""

import random
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from decimal import Decimal

import boto3
import pytest
from keyhop.sharding.manage import TooEarly, add_shards
from keyhop.sharding.table import ShardedTable

from examples.box_office.box_office import (
    BoxOffice,
    EventExists,
    NoSuchOrder,
    NotOnSale,
    Order,
    SeatTaken,
)
from examples.box_office.tables import create_tables
from testing.databases import Database
from testing.servers import LOCAL_CREDENTIALS
from tests.integration.sharding.single import JumpingClock

EVENT = "ana-live-2027"
NOW = 1_800_000_000
WAYS = {
    "boto3": None,
    "one shard": {"placement": "calculated"},
    "calculated": {"placement": "calculated"},
    "random": {"placement": "random"},
}


@dataclass
class Office:
    """A box office, and a function that adds shards to its event if the table is sharded."""

    office: BoxOffice
    grow: Callable[[], None]


@pytest.fixture(params=WAYS)
def at(request: pytest.FixtureRequest, dynamodb: Database, table_name: str) -> Iterator[Office]:
    create_tables(dynamodb.client, table_name)
    way = WAYS[request.param]
    if way is None:
        resource = boto3.resource("dynamodb", endpoint_url=dynamodb.url, **LOCAL_CREDENTIALS)
        table = resource.Table(table_name)
        yield Office(BoxOffice(table, resource.batch_get_item), lambda: None)
        return
    clock = JumpingClock()
    sharded = ShardedTable(
        table_name,
        metadata=f"{table_name}-shards",
        endpoint_url=dynamodb.url,
        clock=clock,
        chance=random.Random(5),
        **way,
    )

    def grow() -> None:
        if request.param == "one shard":
            return
        while True:
            try:
                add_shards(sharded, EVENT, 2)
                break
            except TooEarly as early:
                clock.sleep(early.seconds)
        clock.sleep(20)  # writers use them now

    yield Office(BoxOffice(sharded, sharded.batch_get_item), grow)
    sharded.close()


def order(number: int, customer: str, *seats: str) -> Order:
    time = f"2026-11-22T10:{number:02}"
    return Order(EVENT, f"o{number}", time, customer, seats, Decimal(50 * len(seats)))


def test_an_evening_of_sales(at: Office) -> None:
    office = at.office
    office.create_event(EVENT, "Ana, live", "AB", 12, Decimal("50.00"))
    office.create_event("ben-live", "Ben, live", "A", 2, Decimal(20))
    with pytest.raises(EventExists):
        office.create_event(EVENT, "Another", "A", 1, Decimal(1))
    assert office.info(EVENT) == {"title": "Ana, live", "on_sale": False, "sold": 0}
    assert office.info("nobody") is None
    with pytest.raises(NotOnSale):
        office.buy(order(0, "eva", "A-01"), NOW)
    with pytest.raises(NotOnSale):
        office.open_sale("nobody")
    assert office.open_sale(EVENT) is False
    assert office.open_sale(EVENT) is True
    assert office.seat_map(EVENT) == {"free": 24, "held": 0, "sold": 0}
    assert office.free_seats(EVENT, "B") == [f"B-{n:02}" for n in range(1, 13)]
    assert office.free_seats(EVENT, "B", max_price=Decimal(49)) == []

    assert office.hold(EVENT, "A-03", "eva", NOW) == {
        **{"event": EVENT, "entry": "seat#A-03", "status": "held", "customer": "eva"},
        **{"price": Decimal(50), "until": NOW + 600},
    }
    with pytest.raises(SeatTaken) as error:
        office.hold(EVENT, "A-03", "tom", NOW + 10)
    assert (error.value.status, error.value.customer) == ("held", "eva")
    with pytest.raises(SeatTaken) as error:
        office.hold(EVENT, "Z-99", "tom", NOW)
    assert (error.value.status, error.value.customer) == ("no seat", None)
    assert office.hold(EVENT, "A-03", "eva", NOW + 20)["until"] == NOW + 620, "prolonged"
    assert office.hold(EVENT, "A-03", "tom", NOW + 700)["customer"] == "tom", "eva's is over"

    at.grow()
    for seat in ("A-04", "A-05", "B-01"):
        office.hold(EVENT, seat, "tom", NOW + 700)
    assert office.buy(order(1, "tom", "A-03", "A-04"), NOW + 710) == 2
    assert office.buy(order(1, "tom", "A-03", "A-04"), NOW + 711) == 2, "it counts once"
    with pytest.raises(SeatTaken, match="A-01"):
        office.buy(order(2, "tom", "A-05", "A-01"), NOW + 712)
    assert office.free_seats(EVENT, "A")[:4] == ["A-01", "A-02", "A-05", "A-06"], "given back"
    assert office.seat_map(EVENT) == {"free": 21, "held": 1, "sold": 2}

    at.grow()
    office.hold(EVENT, "A-05", "eva", NOW + 800)
    assert office.buy(order(3, "eva", "A-05"), NOW + 801) == 3
    assert office.buy(order(4, "tom", "B-01"), NOW + 802) == 4
    seats = office.seats(EVENT, ["A-03", "A-04", "A-05", "A-06", "Z-99"])
    assert {seat: entry["status"] for seat, entry in seats.items()} == {
        **{"A-03": "sold", "A-04": "sold"},
        **{"A-05": "sold", "A-06": "free"},
    }
    assert seats["A-05"]["customer"] == "eva"
    assert office.orders_of("tom") == [
        order(1, "tom", "A-03", "A-04"),
        order(4, "tom", "B-01"),
    ]
    assert office.orders_of("nobody") == []

    assert office.cancel(order(1, "tom", "A-03", "A-04")) == 2
    with pytest.raises(NoSuchOrder):
        office.cancel(order(1, "tom", "A-03", "A-04"))
    assert office.orders_of("tom") == [order(4, "tom", "B-01")]
    assert office.info(EVENT) == {"title": "Ana, live", "on_sale": True, "sold": 2}
    assert office.seat_map(EVENT) == {"free": 22, "held": 0, "sold": 2}

    assert office.remove_event(EVENT) == 24 + 1 + 2
    assert office.info(EVENT) is None
    assert office.seat_map(EVENT) == {"free": 0, "held": 0, "sold": 0}
    assert office.seat_map("ben-live")["free"] == 2
    assert office.units.read > 0
    assert office.units.written > 0


def test_orders_are_returned_in_pages_latest_first(at: Office) -> None:
    office = at.office
    office.create_event(EVENT, "Ana, live", "A", 30, Decimal(50))
    office.open_sale(EVENT)
    orders = [order(number, "eva", f"A-{number + 1:02}") for number in range(25)]
    for number, new_order in enumerate(orders):
        if number in (8, 16):
            at.grow()
        office.hold(EVENT, new_order.seats[0], "eva", NOW)
        assert office.buy(new_order, NOW) == number + 1
    listed, token, sizes = [], None, []
    while True:
        page = office.orders(EVENT, "2026-11-22T10:03", "2026-11-22T10:22", 7, token)
        listed += page.orders
        sizes.append(len(page.orders))
        token = page.next
        if token is None:
            break
    assert listed == orders[3:23][::-1]
    assert [size for size in sizes if size] == [7, 7, 6]
    assert office.orders(EVENT, "2027", "2028").orders == []
    assert replace(orders[0], id="x") not in office.orders_of("eva")
    assert len(office.orders_of("eva")) == 25
