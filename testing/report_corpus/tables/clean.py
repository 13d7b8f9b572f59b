"""Tables without faults, on which a report has no finding at or above medium."""

from random import Random

from testing.report_corpus.case import DAY, Contributor, Index, Metric, Schema, Write, case, table
from testing.report_corpus.words import CITIES, day, iso, ksuid, name, some, text, ulid, uuid, uuid7

ONE_ENTITY = {"A2": "one kind of item only: a tag is not missed; info"}
HIGH_SHARE = {"I1": "every item is in the index: no fault where the index is meant for all"}


@table("shop, tagged and typed", "clean", Schema(sort="sk"))
def shop(chance: Random, now: float, customers: int = 110):
    """Yield tagged and typed items of three kinds in one table."""
    for _ in range(customers):
        pk = f"CUSTOMER#{uuid(chance)}"
        yield {"pk": pk, "sk": "PROFILE", "Type": "Customer", "name": name(chance)}
        for _ in range(chance.randint(1, 6)):
            at = now - chance.random() * 300 * DAY
            order = ulid(at, chance)
            yield {
                "pk": pk,
                "sk": f"ORDER#{order}",
                "Type": "Order",
                "placed": iso(at),
                "cents": chance.randint(100, 90_000),
            }
            for line in range(chance.randint(1, 4)):
                yield {
                    "pk": pk,
                    "sk": f"LINE#{order}#{line:03}",
                    "Type": "Line",
                    "sku": uuid(chance),
                    "count": chance.randint(1, 9),
                }


@table("readings by device and day", "clean", Schema(sort="sk"), allowed=ONE_ENTITY)
def readings(chance: Random, now: float):
    for _ in range(40):
        device = uuid(chance)
        for back in range(14):
            for _ in range(6):
                at = now - (back + chance.random()) * DAY
                yield {
                    "pk": f"DEVICE#{device}#{day(at)}",
                    "sk": iso(at),
                    "celsius": chance.randint(-20, 40),
                }


@table("sessions with a time to live", "clean", Schema("sid", ttl="expires"), allowed=ONE_ENTITY)
def sessions(chance: Random, now: float):
    for _ in range(1_500):
        yield {
            "sid": uuid(chance),
            "user": uuid(chance),
            "expires": int(now + chance.random() * 7 * DAY),
            "blob": some(chance, 100, 900),
        }


@table(
    "products by category",
    "clean",
    Schema("sku", indexes=(Index("byCategory", "category", "price:N"),)),
    allowed=ONE_ENTITY | HIGH_SHARE,
)
def products(chance: Random, now: float):
    for _ in range(1_200):
        yield {
            "sku": f"SKU#{chance.randrange(36**8):08x}",
            "category": f"c{chance.randrange(180)}",
            "price": chance.randint(1, 9_999),
            "title": some(chance, 10, 60),
        }


@table(
    "who follows whom, with the way back",
    "clean",
    Schema(sort="sk", indexes=(Index("followers", "to", "pk", projection="KEYS_ONLY"),)),
    allowed=HIGH_SHARE,
)
def follows(chance: Random, now: float):
    people = [f"USER#{uuid(chance)}" for _ in range(300)]
    for person in people:
        yield {"pk": person, "sk": person, "Type": "User", "name": name(chance)}
        for followee in chance.sample(people, chance.randint(2, 12)):
            yield {"pk": person, "sk": f"FOLLOWS#{followee}", "Type": "Follows", "to": followee}


@table("projects of tenants", "clean", Schema(sort="sk"), allowed=ONE_ENTITY)
def tenants(chance: Random, now: float):
    for _ in range(60):
        tenant = ksuid(now - chance.random() * 900 * DAY, chance)
        for _ in range(chance.randint(1, 5)):
            pk = f"TENANT#{tenant}#PROJECT#{uuid(chance)}"
            for number in range(chance.randint(3, 25)):
                yield {
                    "pk": pk,
                    "sk": f"TASK#{number:05}",
                    "Type": "Task",
                    "title": some(chance, 5, 80),
                }


@table("binary digests as keys", "clean", Schema("hash:B"), allowed=ONE_ENTITY)
def blobs(chance: Random, now: float):
    for _ in range(1_200):
        yield {"hash": chance.randbytes(32), "size": chance.randint(1, 10**6), "etag": uuid(chance)}


@table(
    "keys with a shard's number at their end",
    "clean",
    Schema(sort="sk"),
    allowed=ONE_ENTITY,
    traps={"A1": "the numbers are shards, the same ten of every key"},
)
def sharded(chance: Random, now: float):
    for _ in range(60):
        sensor = uuid(chance)
        for shard in range(8):
            for _ in range(6):
                at = now - chance.random() * DAY
                yield {"pk": f"SENSOR#{sensor}.{shard}", "sk": iso(at), "v": chance.random().hex()}


@table("conversations, their type in `kind`", "clean", Schema(sort="sk"))
def messages(chance: Random, now: float):
    for _ in range(200):
        pk = f"CONVERSATION#{ulid(now - chance.random() * 99 * DAY, chance)}"
        yield {"pk": pk, "sk": "META", "kind": "conversation", "topic": some(chance, 5, 30)}
        for _ in range(chance.randint(2, 20)):
            at = now - chance.random() * 90 * DAY
            yield {
                "pk": pk,
                "sk": f"MESSAGE#{uuid7(at, chance)}",
                "kind": "message",
                "text": some(chance, 20, 400),
            }


@table("nine settings", "clean", Schema("scope"), allowed=ONE_ENTITY)
def settings(chance: Random, now: float):
    for number, what in enumerate(
        ["theme", "locale", "limits", "flags", "mail", "quota", "sso", "audit", "colour"]
    ):
        yield {"scope": "SETTING#" + what, "value": text(chance, 10 * number + 5)}


case("an empty table", "clean", Schema(sort="sk"), items=lambda chance, now: ())


def busy_shop(chance: Random, now: float, items):
    for _ in range(1_200):
        old = chance.choice(items)
        ago = chance.random() * 900
        if chance.random() < 0.5:
            new = {
                "pk": old["pk"],
                "sk": f"ORDER#{ulid(now - ago, chance)}",
                "Type": "Order",
                "placed": iso(now - ago),
                "cents": 700,
            }
            yield Write(ago, None, new)
        else:
            yield Write(ago, old, old | {"seen": iso(now - ago)})


def orderly(client, table, chance):
    """Send eventually consistent queries without a filter, and single puts."""
    keys = client.scan(TableName=table, Limit=60)["Items"]
    for _ in range(400):
        item = chance.choice(keys)
        client.query(
            TableName=table,
            KeyConditionExpression="pk = :k AND begins_with(sk, :o)",
            ExpressionAttributeValues={":k": item["pk"], ":o": {"S": "ORDER#"}},
        )
    for item in keys[:20]:
        client.put_item(TableName=table, Item=item)


case(
    "a busy shop, seen from everywhere",
    "clean",
    Schema(sort="sk"),
    items=shop,
    stream=busy_shop,
    application=orderly,
    metrics=(
        Metric("ConsumedWriteCapacityUnits", 3_000),
        Metric("ConsumedReadCapacityUnits", 9_000),
        Metric("SuccessfulRequestLatency", 2_400, operation="GetItem"),
        Metric("SuccessfulRequestLatency", 6_000, operation="Query"),
        Metric("SuccessfulRequestLatency", 2_500, operation="PutItem"),
    ),
    insights=tuple(Contributor("PKC", (f"CUSTOMER#c{n}",), 900.0 - n) for n in range(40)),
    code={
        "shop.py": """
import boto3
from boto3.dynamodb.conditions import Key

table = boto3.resource("dynamodb").Table("TABLE")


def orders(customer):
    return table.query(KeyConditionExpression=Key("pk").eq(f"CUSTOMER#{customer}"))["Items"]


def write(rows):
    with table.batch_writer() as batch:
        for row in rows:
            batch.put_item(Item=row)
"""
    },
)


@table("rain by station and year", "clean", Schema("station", "year:N"), allowed=ONE_ENTITY)
def stations(chance: Random, now: float):
    for number in range(200):
        place = f"{chance.choice(CITIES)}-{chance.choice(CITIES)}-{uuid(chance)[:6]}"
        for year in range(2015, 2026):
            yield {"station": place, "year": year, "mm": chance.randint(200, 1_500), "n": number}
