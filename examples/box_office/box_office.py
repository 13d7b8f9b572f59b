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
MOST_KEYS = 100
"""Of one BatchGetItem."""


class BoxOfficeError(Exception):
    """What a caller can answer for."""


class EventExists(BoxOfficeError):
    """Its name is taken."""


class NotOnSale(BoxOfficeError):
    """There is no such event, or not yet, or not any more."""


class SeatTaken(BoxOfficeError):
    """status: why; customer: who has it."""

    def __init__(self, seat: str, status: str, customer: str | None) -> None:
        super().__init__(f"{seat} is {status}")
        self.seat, self.status, self.customer = seat, status, customer


class NoSuchOrder(BoxOfficeError):
    """It was cancelled, or never made."""


@dataclass(frozen=True, slots=True)
class Order:
    """Of one customer, for seats of one event. at: its time, as ISO 8601."""

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
    """next: a token for the orders that follow; None at the end."""

    orders: list[Order]
    next: str | None


@dataclass(slots=True)
class Units:
    """Capacity units that were consumed, as DynamoDB tells."""

    read: float = 0.0
    written: float = 0.0


@dataclass(slots=True)
class BoxOffice:
    """table: boto3's Table, or a ShardedTable; batch_get_item: of boto3's resource, or its own."""

    table: Any
    batch_get_item: Callable[..., dict[str, Any]]
    units: Units = field(default_factory=Units)

    # Events

    def create_event(
        self, event: str, title: str, rows: Sequence[str], seats: int, price: Decimal
    ) -> None:
        """An event that is not on sale yet, with so many seats in each row.

        Raises EventExists; nothing is changed then.
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
        """Whether it was on sale before. Raises NotOnSale for an event that there is not."""
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
        """Title, whether it is on sale, and how many seats are sold."""
        answer = self.table.get_item(
            Key={"event": event, "entry": "info"},
            ProjectionExpression="title, on_sale, #sold",
            ExpressionAttributeNames={"#sold": "sold"},
            ConsistentRead=True,
        )
        found: dict[str, Any] | None = answer.get("Item")
        return found

    def remove_event(self, event: str) -> int:
        """Remove all that belongs to an event; how many items that were."""
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
        """How many seats are free, held and sold; a moment old."""
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

    def free_seats(self, event: str, row: str, dearest: Decimal | None = None) -> list[str]:
        """The free seats of a row, in order; dearest: up to this price."""
        wanted = Attr("status").eq(FREE)
        if dearest is not None:
            wanted &= Attr("price").lte(dearest)
        return [
            item["entry"].removeprefix(SEAT)
            for page in self._pages(
                KeyConditionExpression=Key("event").eq(event)
                & Key("entry").begins_with(f"{SEAT}{row}-"),
                FilterExpression=wanted,
                ProjectionExpression="entry",
                ConsistentRead=True,
            )
            for item in page["Items"]
        ]

    def seats(self, event: str, names: Sequence[str]) -> dict[str, dict[str, Any]]:
        """What is known of these seats, by their names; those that there are."""
        found: dict[str, dict[str, Any]] = {}
        for at in range(0, len(names), MOST_KEYS):
            keys = [
                {"event": event, "entry": f"{SEAT}{name}"} for name in names[at : at + MOST_KEYS]
            ]
            wanted: dict[str, Any] = {self.table.name: {"Keys": keys, "ConsistentRead": True}}
            while wanted:
                answer = self.batch_get_item(RequestItems=wanted, ReturnConsumedCapacity="TOTAL")
                self.units.read += sum(one["CapacityUnits"] for one in answer["ConsumedCapacity"])
                for item in answer["Responses"][self.table.name]:
                    found[item["entry"].removeprefix(SEAT)] = item
                wanted = answer["UnprocessedKeys"]
        return found

    def hold(self, event: str, seat: str, customer: str, now: int) -> dict[str, Any]:
        """Keep a seat for a customer, for ten minutes; the seat. Raises SeatTaken.

        A hold that is over counts for nothing; one's own is prolonged.
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
            there = error.response.get("Item", {})  # typed, as boto3 leaves it
            status = there.get("status", {"S": "no seat"})["S"]
            raise SeatTaken(seat, status, there.get("customer", {}).get("S")) from None
        self._wrote(answer)
        held: dict[str, Any] = answer["Attributes"]
        return held

    def release(self, event: str, seat: str, customer: str) -> bool:
        """Give a held or sold seat back; False if it was not this customer's."""
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
        """Sell held seats; how many of the event are sold now.

        There is no transaction: an order that fails gives its seats back. The same order may come
        again, as after an answer that was lost: it counts once. Raises NotOnSale or SeatTaken.
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
        """Take an order back; how many seats of the event are sold now. Raises NoSuchOrder."""
        answer = self.table.delete_item(
            Key={"event": order.event, "entry": order.entry}, ReturnValues="ALL_OLD"
        )
        if "Attributes" not in answer:
            raise NoSuchOrder(order.id)
        seats = answer["Attributes"]["seats"]
        given = [self.release(order.event, seat, order.customer) for seat in seats]
        return self._count_sold(order.event, -sum(given))

    def orders(
        self, event: str, first: str, last: str, most: int = 20, token: str | None = None
    ) -> OrderPage:
        """Orders between two times, the latest first; `most` on a page."""
        more = {} if token is None else {"ExclusiveStartKey": _decoded(token)}
        answer = self.table.query(
            KeyConditionExpression=Key("event").eq(event)
            & Key("entry").between(f"{ORDER}{first}", f"{ORDER}{last}~"),
            ScanIndexForward=False,
            Limit=most,
            **more,
        )
        last_key = answer.get("LastEvaluatedKey")
        orders = [_order(item) for item in answer["Items"]]
        return OrderPage(orders, None if last_key is None else _encoded(last_key))

    def orders_of(self, customer: str) -> list[Order]:
        """A customer's orders of all events, by their time; a moment old."""
        words = {
            "IndexName": "by-customer",
            "KeyConditionExpression": "customer = :customer AND begins_with(entry, :order)",
            "ExpressionAttributeValues": {":customer": customer, ":order": ORDER},
        }
        return [_order(item) for page in self._pages(**words) for item in page["Items"]]

    def _sell(self, order: Order, seat: str, now: int) -> None:
        mine = Attr("customer").eq(order.customer)
        try:
            self.table.update_item(
                Key=self._seat(order.event, seat),
                UpdateExpression="SET #status = :sold REMOVE #until",
                ConditionExpression=mine & (Attr("status").eq(SOLD) | Attr("until").gte(now)),
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

    def _pages(self, **words: Any) -> Iterator[dict[str, Any]]:
        """All pages of a query; what they cost is noted."""
        while True:
            page = self.table.query(**words, ReturnConsumedCapacity="TOTAL")
            self.units.read += page["ConsumedCapacity"]["CapacityUnits"]
            yield page
            if "LastEvaluatedKey" not in page:
                return
            words["ExclusiveStartKey"] = page["LastEvaluatedKey"]

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
