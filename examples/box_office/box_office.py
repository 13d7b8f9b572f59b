"""A box office on one DynamoDB table: events, their seats, and orders. Plain boto3.

When seats of a popular event go on sale, all requests are about one partition key. The table may be
boto3's `Table` or Keyhop's `ShardedTable`; nothing else differs (README.md).

    event (partition key)   entry (sort key)
    ana-live-2027           info                title, on_sale, sold
    ana-live-2027           seat#A-07           status: free, held or sold; price, customer, until
    ana-live-2027           order#<time>#<id>   customer, seats, total

Indexes: by-customer (customer, entry), by-status (event, status).
"""

import base64
import json
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from decimal import Decimal
from typing import Any

from boto3.dynamodb.conditions import Attr, Key

SEAT, ORDER = "seat#", "order#"
FREE, HELD, SOLD = "free", "held", "sold"
HOLD_SECONDS = 600
MAX_KEYS = 100
"""The maximum number of keys in a BatchGetItem."""


class BoxOfficeError(Exception):
    """An error that the caller can handle."""


class EventExists(BoxOfficeError):
    """There is already an event of this name."""


class NotOnSale(BoxOfficeError):
    """The event does not exist, or its sale is closed."""


class SeatTaken(BoxOfficeError):
    """A seat is not available.

    Attributes:
        seat: The seat.
        status: Its status.
        customer: The customer who holds it, or has bought it.
    """

    def __init__(self, seat: str, status: str, customer: str | None) -> None:
        super().__init__(f"{seat} is {status}")
        self.seat, self.status, self.customer = seat, status, customer


class NoSuchOrder(BoxOfficeError):
    """The order was cancelled, or never placed."""


@dataclass(frozen=True, slots=True)
class Order:
    """An order of a customer for seats of an event, at a time in ISO 8601."""

    event: str
    id: str
    at: str
    customer: str
    seats: tuple[str, ...]
    total: Decimal

    @property
    def entry(self) -> str:
        return f"{ORDER}{self.at}#{self.id}"


@dataclass(frozen=True, slots=True)
class OrderPage:
    """A page of orders, and the token of the next page; None at the end."""

    orders: list[Order]
    next: str | None


@dataclass(slots=True)
class Units:
    """The consumed capacity units, as DynamoDB reports them."""

    read: float = 0.0
    written: float = 0.0


@dataclass(slots=True)
class BoxOffice:
    """The box office.

    Attributes:
        table: boto3's Table, or a ShardedTable.
        batch_get_item: The method of boto3's resource, or of the ShardedTable.
        units: The consumed capacity units.
    """

    table: Any
    batch_get_item: Callable[..., dict[str, Any]]
    units: Units = field(default_factory=Units)

    # Events

    def create_event(
        self, event: str, title: str, rows: Sequence[str], seats: int, price: Decimal
    ) -> None:
        """Create an event that is not on sale yet, with `seats` seats in each row.

        Raise EventExists, and change nothing, if the name is taken.
        """
        try:
            answer = self.table.put_item(
                Item={"event": event, "entry": "info", "title": title, "on_sale": False, "sold": 0},
                ConditionExpression=Attr("entry").not_exists(),
                ReturnConsumedCapacity="TOTAL",
            )
        except self.table.meta.client.exceptions.ConditionalCheckFailedException:
            raise EventExists(event) from None
        self._wrote(answer)
        with self.table.batch_writer() as batch:
            for row in rows:
                for number in range(1, seats + 1):
                    seat = {"event": event, "entry": f"{SEAT}{row}-{number:02}", "status": FREE}
                    batch.put_item(Item={**seat, "price": price})

    def open_sale(self, event: str, on_sale: bool = True) -> bool:
        """Open or close the sale, and return whether it was open before.

        Raise NotOnSale if the event does not exist.
        """
        try:
            answer = self.table.update_item(
                Key={"event": event, "entry": "info"},
                UpdateExpression="SET on_sale = :on_sale",
                ConditionExpression="attribute_exists(entry)",
                ExpressionAttributeValues={":on_sale": on_sale},
                ReturnValues="UPDATED_OLD",
                ReturnConsumedCapacity="TOTAL",
            )
        except self.table.meta.client.exceptions.ConditionalCheckFailedException:
            raise NotOnSale(event) from None
        self._wrote(answer)
        return bool(answer["Attributes"]["on_sale"])

    def info(self, event: str) -> dict[str, Any] | None:
        """Return the title, whether the sale is open, and the number of sold seats."""
        answer = self.table.get_item(
            Key={"event": event, "entry": "info"},
            ProjectionExpression="title, on_sale, #sold",
            ExpressionAttributeNames={"#sold": "sold"},
            ConsistentRead=True,
        )
        item: dict[str, Any] | None = answer.get("Item")
        return item

    def remove_event(self, event: str) -> int:
        """Delete all items of an event, and return their number."""
        removed = 0
        with self.table.batch_writer() as batch:
            for page in self._pages(
                KeyConditionExpression=Key("event").eq(event),
                ProjectionExpression="#event, #entry",
                ExpressionAttributeNames={"#event": "event", "#entry": "entry"},
                ConsistentRead=True,
            ):
                for key in page["Items"]:
                    batch.delete_item(Key=key)
                    removed += 1
        return removed

    # Seats

    def seat_map(self, event: str) -> dict[str, int]:
        """Return the numbers of free, held and sold seats, by an eventually consistent read."""
        return {
            status: sum(
                page["Count"]
                for page in self._pages(
                    IndexName="by-status",
                    KeyConditionExpression=Key("event").eq(event) & Key("status").eq(status),
                    Select="COUNT",
                )
            )
            for status in (FREE, HELD, SOLD)
        }

    def free_seats(self, event: str, row: str, max_price: Decimal | None = None) -> list[str]:
        """Return the free seats of a row in order, up to a price."""
        condition = Attr("status").eq(FREE)
        if max_price is not None:
            condition &= Attr("price").lte(max_price)
        return [
            item["entry"].removeprefix(SEAT)
            for page in self._pages(
                KeyConditionExpression=Key("event").eq(event)
                & Key("entry").begins_with(f"{SEAT}{row}-"),
                FilterExpression=condition,
                ProjectionExpression="entry",
                ConsistentRead=True,
            )
            for item in page["Items"]
        ]

    def seats(self, event: str, names: Sequence[str]) -> dict[str, dict[str, Any]]:
        """Return the items of the seats that exist, by their names."""
        items: dict[str, dict[str, Any]] = {}
        for at in range(0, len(names), MAX_KEYS):
            keys = [
                {"event": event, "entry": f"{SEAT}{name}"} for name in names[at : at + MAX_KEYS]
            ]
            request: dict[str, Any] = {self.table.name: {"Keys": keys, "ConsistentRead": True}}
            while request:
                answer = self.batch_get_item(RequestItems=request, ReturnConsumedCapacity="TOTAL")
                self.units.read += sum(
                    units["CapacityUnits"] for units in answer["ConsumedCapacity"]
                )
                for item in answer["Responses"][self.table.name]:
                    items[item["entry"].removeprefix(SEAT)] = item
                request = answer["UnprocessedKeys"]
        return items

    def hold(self, event: str, seat: str, customer: str, now: int) -> dict[str, Any]:
        """Hold a seat for a customer for ten minutes, and return the seat; raise SeatTaken.

        An expired hold does not count, and the customer's own hold is extended.
        """
        usable = (
            Attr("status").eq(FREE)
            | (Attr("status").eq(HELD) & Attr("until").lt(now))
            | (Attr("status").eq(HELD) & Attr("customer").eq(customer))
        )
        try:
            answer = self.table.update_item(
                Key=self._seat(event, seat),
                UpdateExpression="SET #status = :held, customer = :customer, #until = :until",
                ConditionExpression=usable,
                ExpressionAttributeNames={"#status": "status", "#until": "until"},
                ExpressionAttributeValues={
                    ":held": HELD,
                    ":customer": customer,
                    ":until": now + HOLD_SECONDS,
                },
                ReturnValues="ALL_NEW",
                ReturnValuesOnConditionCheckFailure="ALL_OLD",
                ReturnConsumedCapacity="TOTAL",
            )
        except self.table.meta.client.exceptions.ConditionalCheckFailedException as error:
            item = error.response.get("Item", {})  # boto3 leaves it in DynamoDB JSON
            status = item.get("status", {"S": "no seat"})["S"]
            raise SeatTaken(seat, status, item.get("customer", {}).get("S")) from None
        self._wrote(answer)
        held_seat: dict[str, Any] = answer["Attributes"]
        return held_seat

    def release(self, event: str, seat: str, customer: str) -> bool:
        """Free a held or sold seat; return False if it was not this customer's."""
        try:
            self.table.update_item(
                Key=self._seat(event, seat),
                UpdateExpression="SET #status = :free REMOVE customer, #until",
                ConditionExpression="customer = :customer",
                ExpressionAttributeNames={"#status": "status", "#until": "until"},
                ExpressionAttributeValues={":free": FREE, ":customer": customer},
            )
        except self.table.meta.client.exceptions.ConditionalCheckFailedException:
            return False
        return True

    # Orders

    def buy(self, order: Order, now: int) -> int:
        """Sell held seats, and return the number of sold seats of the event.

        This is not a transaction: an order that fails frees its seats. An order that is sent again,
        because the response was lost, counts once. Raise NotOnSale or SeatTaken.
        """
        about = self.info(order.event)
        if about is None or not about["on_sale"]:
            raise NotOnSale(order.event)
        sold: list[str] = []
        try:
            for seat in order.seats:
                self._sell(order, seat, now)
                sold.append(seat)
        except SeatTaken:
            for seat in sold:
                self.release(order.event, seat, order.customer)
            raise
        item = {"event": order.event, "entry": order.entry, "customer": order.customer}
        before = self.table.put_item(
            Item={**item, "seats": list(order.seats), "total": order.total}, ReturnValues="ALL_OLD"
        )
        return self._count_sold(order.event, 0 if "Attributes" in before else len(order.seats))

    def cancel(self, order: Order) -> int:
        """Cancel an order, and return the number of sold seats of the event; raise NoSuchOrder."""
        answer = self.table.delete_item(
            Key={"event": order.event, "entry": order.entry}, ReturnValues="ALL_OLD"
        )
        if "Attributes" not in answer:
            raise NoSuchOrder(order.id)
        seats = answer["Attributes"]["seats"]
        released = [self.release(order.event, seat, order.customer) for seat in seats]
        return self._count_sold(order.event, -sum(released))

    def orders(
        self, event: str, first: str, last: str, limit: int = 20, token: str | None = None
    ) -> OrderPage:
        """Return a page of up to `limit` orders between two times, the latest first."""
        start = {} if token is None else {"ExclusiveStartKey": _decoded(token)}
        answer = self.table.query(
            KeyConditionExpression=Key("event").eq(event)
            & Key("entry").between(f"{ORDER}{first}", f"{ORDER}{last}~"),
            ScanIndexForward=False,
            Limit=limit,
            **start,
        )
        last_key = answer.get("LastEvaluatedKey")
        orders = [_order(item) for item in answer["Items"]]
        return OrderPage(orders, None if last_key is None else _encoded(last_key))

    def orders_of(self, customer: str) -> list[Order]:
        """Return a customer's orders of all events by time, by an eventually consistent read."""
        query = {
            "IndexName": "by-customer",
            "KeyConditionExpression": "customer = :customer AND begins_with(entry, :order)",
            "ExpressionAttributeValues": {":customer": customer, ":order": ORDER},
        }
        return [_order(item) for page in self._pages(**query) for item in page["Items"]]

    def _sell(self, order: Order, seat: str, now: int) -> None:
        is_own = Attr("customer").eq(order.customer)
        try:
            self.table.update_item(
                Key=self._seat(order.event, seat),
                UpdateExpression="SET #status = :sold REMOVE #until",
                ConditionExpression=is_own & (Attr("status").eq(SOLD) | Attr("until").gte(now)),
                ExpressionAttributeNames={"#status": "status", "#until": "until"},
                ExpressionAttributeValues={":sold": SOLD},
            )
        except self.table.meta.client.exceptions.ConditionalCheckFailedException:
            raise SeatTaken(seat, "not held by this customer", None) from None

    def _count_sold(self, event: str, more: int) -> int:
        answer = self.table.update_item(
            Key={"event": event, "entry": "info"},
            UpdateExpression="ADD sold :more",
            ExpressionAttributeValues={":more": more},
            ReturnValues="ALL_NEW",
        )
        return int(answer["Attributes"]["sold"])

    def _seat(self, event: str, seat: str) -> dict[str, str]:
        return {"event": event, "entry": f"{SEAT}{seat}"}

    def _pages(self, **query: Any) -> Iterator[dict[str, Any]]:
        """Yield the pages of a query, and add up their units."""
        while True:
            page = self.table.query(**query, ReturnConsumedCapacity="TOTAL")
            self.units.read += page["ConsumedCapacity"]["CapacityUnits"]
            yield page
            if "LastEvaluatedKey" not in page:
                return
            query["ExclusiveStartKey"] = page["LastEvaluatedKey"]

    def _wrote(self, answer: dict[str, Any]) -> None:
        assert answer["ResponseMetadata"]["HTTPStatusCode"] == 200
        self.units.written += answer["ConsumedCapacity"]["CapacityUnits"]


def _order(item: dict[str, Any]) -> Order:
    at, id_ = item["entry"].removeprefix(ORDER).split("#")
    return Order(item["event"], id_, at, item["customer"], tuple(item["seats"]), item["total"])


def _encoded(key: dict[str, Any]) -> str:
    return base64.urlsafe_b64encode(json.dumps(key).encode()).decode()


def _decoded(token: str) -> dict[str, Any]:
    key: dict[str, Any] = json.loads(base64.urlsafe_b64decode(token))
    return key
