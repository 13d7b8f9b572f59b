"""Tables of an engineer who knows only the rules' titles: hospitals, banks, music and video,
telemetry, delivery, CMS, identity, gaming, tickets, flags, queues, chat, energy.

245 tables; for each rule how many plant it and how many tempt it:
A1     7  17
A2     5  33
A3     8  12
A6     6   5
A7     6   6
A8     5  14
A9    12  11
A13    5   6
A15    7  31
A16    6  13
A18   11  21
A19    6   6
E1     6  12
E2     6   7
H1    14  13
H2     5   5
H3     5   5
H4     6  14
H5     5   6
H6     5  10
H7     5  10
I1     6  13
I2     5   5
I3     5   5
I4     6   9
"""

from collections.abc import Callable, Iterator
from functools import cache
from random import Random
from zlib import crc32

from .. import words
from ..case import ALL, DAY, Contributor, Index, Item, Metric, Schema, Write, case, shard_of

HOUR = 3600.0
PROVISIONED = {"BillingModeSummary": {"BillingMode": "PROVISIONED"}}
ON_DEMAND = {"BillingModeSummary": {"BillingMode": "PAY_PER_REQUEST"}}


def rows(count: int, make: Callable[[Random, float, int], Item]):
    """The items that `make` makes of the numbers below count."""

    def items(chance: Random, now: float) -> Iterator[Item]:
        for number in range(count):
            yield make(chance, now, number)

    return items


def joined(*parts):
    """Items of several functions, one after the other."""

    def items(chance: Random, now: float) -> Iterator[Item]:
        for part in parts:
            yield from part(chance, now)

    return items


@cache
def hexes(seed: str, count: int, length: int = 12) -> list[str]:
    """Fixed random ids, that several items refer to."""
    chance = Random(seed)
    return [f"{chance.getrandbits(length * 4):0{length}x}" for _ in range(count)]


@cache
def uuids(seed: str, count: int) -> list[str]:
    chance = Random(seed)
    return [words.uuid(chance) for _ in range(count)]


def skewed(chance: Random, pool, power: float = 2.0):
    """One of the pool, its first ones more often."""
    return pool[int(len(pool) * chance.random() ** power)]


def past(chance: Random, now: float, days: float) -> float:
    return now - chance.random() * days * DAY


def mostly(chance: Random, first: str, share: float, *others: str) -> str:
    return first if chance.random() < share else chance.choice(others)


def moments(chance: Random, count: int, seconds: float) -> list[float]:
    """Seconds before now, the oldest first."""
    return sorted((chance.random() * seconds for _ in range(count)), reverse=True)


def updates(count, seconds, change, hot=None, share=0.0):
    """A stream of updates of chance items; `share` of them of those that `hot` names."""

    def stream(chance: Random, now: float, items: list[Item]) -> Iterator[Write]:
        state = list(items)
        places = [place for place, item in enumerate(items) if hot and hot(item)]
        for ago in moments(chance, count, seconds):
            if places and chance.random() < share:
                place = chance.choice(places)
            else:
                place = chance.randrange(len(state))
            old = state[place]
            state[place] = {**old, **change(chance, now - ago, old)}
            yield Write(ago, old, state[place])

    return stream


def inserts(count, seconds, make):
    """A stream of new items: make(chance, at, number)."""

    def stream(chance: Random, now: float, items: list[Item]) -> Iterator[Write]:
        for number, ago in enumerate(moments(chance, count, seconds)):
            yield Write(ago, None, make(chance, now - ago, number))

    return stream


def copied(count, seconds, key, order=None, change=None):
    """A stream that loads the table's items in an order; without one in that of their hashes."""

    def stream(chance: Random, now: float, items: list[Item]) -> Iterator[Write]:
        def hashed(item: Item):
            return shard_of(item[key]), crc32(str(item[key]).encode())

        chosen = sorted(items[:count], key=order or hashed)
        for number, item in enumerate(chosen):
            ago = seconds * (1 - number / len(chosen))
            yield Write(ago, item if change else None, {**item, **(change or {})})

    return stream


def gsi(name: str, partition: str, sort: str | None = None, projection: str = "ALL", *include):
    return Index(name, partition, sort, False, projection, include)


def lsi(name: str, partition: str, sort: str, projection: str = "ALL"):
    return Index(name, partition, sort, True, projection)


# Keys that a counter makes, and keys that only look so

case(
    "second: orders of a bakery",
    "planted",
    Schema("orderNo"),
    items=rows(
        900,
        lambda r, now, i: {
            "orderNo": f"B-{100000 + i}",
            "customer": words.name(r),
            "total": r.randint(300, 9000),
            "placedAt": words.iso(now - (900 - i) * 2700),
            "lines": [{"sku": r.choice("ABCDEF"), "qty": r.randint(1, 9)} for _ in range(3)],
        },
    ),
    found=("A1",),
)

case(
    "second: Rechnungen",
    "planted",
    Schema("RechnungNr", None, (gsi("nachKunde", "Kunde", "Datum"),)),
    items=rows(
        700,
        lambda r, now, i: {
            "RechnungNr": f"RE-2026-{i + 1:06d}",
            "Kunde": skewed(r, hexes("kunden", 180)),
            "Datum": words.day(now - (700 - i) * 0.4 * DAY),
            "Betrag": r.randint(1000, 900000),
            "bezahlt": r.random() < 0.9,
        },
    ),
    found=("A1",),
)

case(
    "second: support tickets by number",
    "planted",
    Schema("ticket_id:N", None, (gsi("by-assignee", "assignee", "opened:N"),)),
    items=rows(
        1200,
        lambda r, now, i: {
            "ticket_id": i + 1,
            "assignee": words.name(r).lower().replace(" ", "."),
            "opened": int(now - (1200 - i) * 3000),
            "subject": words.some(r, 20, 70),
            "body": words.some(r, 100, 900),
            "status": mostly(r, "closed", 0.7, "open", "waiting"),
        },
    ),
    found=("A1",),
)


def product_catalog(chance: Random, now: float) -> Iterator[Item]:
    """ProductCatalog of the DynamoDB developer guide: Id is a number that counts up."""
    for number in range(400):
        book = number % 3 > 0
        yield {
            "Id": 101 + number,
            "ProductCategory": "Book" if book else "Bicycle",
            "Title": words.some(chance, 10, 40),
            "Price": chance.randint(5, 900),
            **({"ISBN": f"{chance.randrange(10**12):013d}", "PageCount": 300} if book else {}),
            **({} if book else {"BicycleType": "Road", "Brand": "Mountain A"}),
        }


case(
    "second: product catalog of the guide",
    "real",
    Schema("Id:N"),
    items=product_catalog,
    found=("A1",),
    allowed={"A2": "products of one kind with different attributes; ProductCategory tells them"},
    traps={"A18": "ProductCategory names the kind"},
)

case(
    "second: hospital patients by record number",
    "planted",
    Schema("PK", "SK"),
    items=joined(
        rows(
            500,
            lambda r, now, i: {
                "PK": f"PATIENT#{100200 + i}",
                "SK": "PROFILE",
                "name": words.name(r),
                "bloodGroup": r.choice(["A+", "B+", "0+", "AB-"]),
            },
        ),
        rows(
            1300,
            lambda r, now, i: {
                "PK": f"PATIENT#{100200 + r.randrange(500)}",
                "SK": f"VISIT#{words.iso(past(r, now, 700))}",
                "ward": r.choice(["ER", "ICU", "ORTHO", "ENT"]),
                "notes": words.some(r, 50, 600),
            },
        ),
    ),
    found=("A1", "A18"),
    traps={
        "A2": "PATIENT#, PROFILE and VISIT# tell the kinds",
        "A15": "a patient has a few visits",
    },
)

case(
    "second: beds of a hospital",
    "decoy",
    Schema("bed:N"),
    items=rows(
        420,
        lambda r, now, i: {
            "bed": i + 1,
            "ward": f"W{i // 30 + 1:02d}",
            "installed": words.day(now - 2900 * DAY),
            "patient": r.choice([None, words.uuid(r)]),
        },
    ),
    traps={"A1": "beds are a fixed set of labels on the doors: no new ones are made"},
)

case(
    "second: bank accounts with random numbers",
    "decoy",
    Schema("accountNumber", None, (gsi("byOwner", "ownerId"),)),
    items=rows(
        1500,
        lambda r, now, i: {
            "accountNumber": f"{r.randrange(10**9, 10**10)}",
            "ownerId": words.uuid(r),
            "currency": mostly(r, "EUR", 0.8, "SEK", "NOK"),
            "balance": r.randint(-50000, 9000000),
            "openedAt": words.iso(past(r, now, 3000)),
        },
    ),
    traps={"A1": "numbers of ten random digits: no order, no counter"},
)

case(
    "second: uploads with ulid keys",
    "decoy",
    Schema("uploadId"),
    items=rows(
        1000,
        lambda r, now, i: {
            "uploadId": words.ulid(now - (1000 - i) * 500, r),
            "bucket": "media-in",
            "size": r.randint(1000, 90_000_000),
            "mime": mostly(r, "image/jpeg", 0.7, "video/mp4", "image/png"),
        },
    ),
    traps={
        "A1": "a ULID is not a counter: 80 random bits follow the time",
        "A3": "the time is only the first part of a unique id: one item a key",
    },
)

case(
    "second: posts with snowflake ids",
    "decoy",
    Schema("postId", None, (gsi("byAuthor", "authorId", "postId"),)),
    items=rows(
        1200,
        lambda r, now, i: {
            "postId": str(
                (int((past(r, now, 300) - 1_288_834_974) * 1000) << 22) | r.getrandbits(22)
            ),
            "authorId": skewed(r, hexes("authors", 300)),
            "text": words.some(r, 10, 280),
            "likes": int(r.random() ** 6 * 5000),
        },
    ),
    traps={"A1": "time-ordered ids of many machines, which no counter makes"},
)

case(
    "second: postal codes",
    "decoy",
    Schema("plz"),
    items=rows(
        1800,
        lambda r, now, i: {
            "plz": f"{10115 + i * 7 + crc32(str(i).encode()) % 7:05d}",
            "ort": r.choice(words.CITIES),
            "lat": round(47 + r.random() * 7, 5),
            "lon": round(6 + r.random() * 8, 5),
        },
    ),
    traps={"A1": "codes of the post office, a lookup table that is loaded once"},
)

case(
    "second: page views over three hundred shards",
    "decoy",
    Schema("counter"),
    items=rows(300, lambda r, now, i: {"counter": f"views/{i:03d}", "n": 40000 + r.randrange(900)}),
    stream=updates(3000, 60, lambda r, at, old: {"n": old["n"] + 1}),
    metrics=(Metric("ConsumedWriteCapacityUnits", 3000),),
    traps={
        "A8": "the counter is spread over 300 items, which is the cure",
        "A1": "numbers of shards, made once",
        "A19": "300 small keys are enough for 50 writes a second",
        "H7": "all shards take the same",
    },
)

# Kinds in one table, with and without tags

case(
    "second: clinic without tags",
    "planted",
    Schema("pk", "sk"),
    items=joined(
        rows(
            300,
            lambda r, now, i: {
                "pk": uuids("clinic", 300)[i],
                "sk": uuids("clinic", 300)[i],
                "kind": "doctor",
                "name": words.name(r),
                "licence": words.some(r, 8, 12),
            },
        ),
        rows(
            1100,
            lambda r, now, i: {
                "pk": r.choice(uuids("clinic", 300)),
                "sk": words.uuid(r),
                "kind": mostly(r, "appointment", 0.6, "prescription"),
                "patient": words.name(r),
                "at": words.iso(past(r, now, 90)),
            },
        ),
    ),
    found=("A2",),
    traps={"A18": "`kind` names it"},
)

case(
    "second: music label",
    "planted",
    Schema("id", "sub"),
    items=joined(
        rows(
            200,
            lambda r, now, i: {
                "id": hexes("artists", 200)[i],
                "sub": hexes("artists", 200)[i],
                "artistName": words.name(r),
                "bio": words.some(r, 100, 500),
            },
        ),
        rows(
            700,
            lambda r, now, i: {
                "id": skewed(r, hexes("artists", 200)),
                "sub": hexes("albums", 700)[i],
                "albumTitle": words.some(r, 5, 30),
                "year": r.randint(1970, 2026),
            },
        ),
        rows(
            1600,
            lambda r, now, i: {
                "id": r.choice(hexes("albums", 700)),
                "sub": f"{r.getrandbits(48):012x}",
                "trackTitle": words.some(r, 5, 30),
                "seconds": r.randint(90, 600),
            },
        ),
    ),
    found=("A2", "A18"),
)

case(
    "second: bank documents by uuid",
    "planted",
    Schema("documentKey"),
    items=rows(
        1200,
        lambda r, now, i: {
            "documentKey": words.uuid(r),
            **(
                {"docType": "customer", "fullName": words.name(r), "born": "1980-02-03"},
                {"docType": "loan", "principal": r.randint(1000, 90000), "rate": 4, "term": 60},
                {"docType": "card", "pan": f"{r.randrange(10**15):016d}", "expires": "11/29"},
            )[i % 3],
        },
    ),
    found=("A2",),
    traps={"A18": "`docType` names it"},
)

case(
    "second: fleet of vehicles, drivers and trips",
    "planted",
    Schema("ref:N"),
    items=rows(
        1500,
        lambda r, now, i: {
            "ref": r.getrandbits(50),
            **(
                {"plate": f"B-XY {r.randint(100, 999)}", "odometer": r.randint(1, 300000)},
                {"driver": words.name(r), "licenceClass": r.choice("BCD"), "phone": "+49 30 1"},
                {"from": r.choice(words.CITIES), "to": r.choice(words.CITIES), "km": 80},
                {"from": r.choice(words.CITIES), "to": r.choice(words.CITIES), "km": 410},
            )[i % 4],
        },
    ),
    found=("A2", "A18"),
)

case(
    "second: CMS slugs of pages and authors",
    "planted",
    Schema("slug"),
    items=rows(
        800,
        lambda r, now, i: {
            "slug": f"{r.choice(words.FIRST).lower()}-{words.LAST[i % 15].lower()}-{i * 37 % 9973}",
            **(
                {"contentType": "author", "mail": "a@b.example", "avatar": "/img/a.png"},
                {"contentType": "page", "title": words.some(r, 9, 40), "markdown": "# Hello"},
                {"contentType": "page", "title": words.some(r, 9, 40), "markdown": "# News"},
                {"contentType": "redirect", "target": "/", "code": 301},
            )[i % 4],
        },
    ),
    found=("A2",),
    traps={"A18": "`contentType` names it", "A1": "slugs end with chance numbers of no counter"},
)

case(
    "second: hotel guests with many optional fields",
    "decoy",
    Schema("guestId"),
    items=rows(
        900,
        lambda r, now, i: {
            "guestId": words.uuid(r),
            "name": words.name(r),
            "since": words.day(past(r, now, 2000)),
            **({"vip": True, "perks": ["spa", "late"]} if i % 9 == 0 else {}),
            **({"allergies": ["nuts"], "diet": "vegan"} if i % 4 == 0 else {}),
            **({"company": "Acme", "vat": f"DE{r.randrange(10**9)}"} if i % 3 == 0 else {}),
        },
    ),
    traps={
        "A2": "one kind, of which some attributes are optional",
        "A18": "one kind needs no name",
    },
)


def electro_orders(chance: Random, now: float) -> Iterator[Item]:
    """A service of ElectroDB: keys $service#attribute_value, __edb_e__ names the entity."""
    for customer in hexes("electro", 250):
        yield {
            "pk": f"$shop#customerid_{customer}",
            "sk": "$customer_1",
            "customerId": customer,
            "email": f"{customer}@mail.example",
            "__edb_e__": "customer",
            "__edb_v__": "1",
        }
        for _ in range(chance.randint(0, 6)):
            order = words.ulid(past(chance, now, 400), chance)
            yield {
                "pk": f"$shop#customerid_{customer}",
                "sk": f"$order_1#orderid_{order.lower()}",
                "customerId": customer,
                "orderId": order,
                "total": chance.randint(5, 500),
                "__edb_e__": "order",
                "__edb_v__": "1",
            }


case(
    "second: ElectroDB customers and orders",
    "real",
    Schema("pk", "sk"),
    items=electro_orders,
    traps={
        "A2": "the keys carry $customer and $order",
        "A18": "__edb_e__ names the entity",
        "E1": "the _1 is the version of the model",
    },
)

case(
    "second: raw user ids with tagged sort keys",
    "decoy",
    Schema("userId", "sk"),
    items=rows(
        1400,
        lambda r, now, i: {
            "userId": uuids("tagged", 280)[i // 5],
            **(
                {"sk": "PROFILE", "type": "profile", "name": words.name(r)},
                {"sk": "PREFS", "type": "prefs", "theme": "dark", "lang": "nl"},
                {"sk": f"ADDR#{r.getrandbits(32):08x}", "type": "address", "city": "Gent"},
                {"sk": f"CARD#{r.getrandbits(32):08x}", "type": "card", "last4": "4242"},
                {"sk": f"CARD#{r.getrandbits(32):08x}", "type": "card", "last4": "1111"},
            )[i % 5],
        },
    ),
    traps={"A2": "all partition keys are users, and the sort key's tag tells the kind"},
)


def event_store(chance: Random, now: float) -> Iterator[Item]:
    """An event store as published in several blogs: aggregate id and version."""
    for aggregate in uuids("aggregates", 350):
        for version in range(1, chance.randint(2, 6)):
            yield {
                "aggregateId": aggregate,
                "version": version,
                "eventType": "Opened" if version == 1 else chance.choice(["Paid", "Shipped"]),
                "at": words.iso(past(chance, now, 300)),
                "payload": {"amount": chance.randint(1, 900)},
            }


case(
    "second: event store by version",
    "real",
    Schema("aggregateId", "version:N"),
    items=event_store,
    traps={
        "E1": "the version is a number",
        "A2": "one kind, the event",
        "A15": "an aggregate has a handful of events",
    },
)

case(
    "second: shop articles of all categories",
    "decoy",
    Schema("artikel", None, (gsi("nachKategorie", "kategorie", "preis:N"),)),
    items=rows(
        1300,
        lambda r, now, i: {
            "artikel": f"ART-{r.getrandbits(36):09x}",
            "kategorie": r.choice([f"{a}/{b}" for a in ("Haus", "Hof", "Bad") for b in "abcdefgh"]),
            "preis": r.randint(99, 99900),
            "merkmale": r.choice([{"watt": 60}, {"laenge": 20, "breite": 4}, {"farbe": "rot"}]),
        },
    ),
    traps={
        "A2": "articles of one kind with a map of properties",
        "A9 nachKategorie": "24 categories, even",
        "I4 nachKategorie": "the category is an attribute itself, not a join",
    },
)

# Keys that are dates

case(
    "second: daily log of a factory",
    "planted",
    Schema("logDay", "entry"),
    items=rows(
        2200,
        lambda r, now, i: {
            "logDay": words.day(now - (i // 40) * DAY),
            "entry": f"{r.randrange(24):02d}:{i % 60:02d}:00/{r.getrandbits(24):06x}",
            "machine": f"press-{r.choice('abcdefg')}",
            "message": words.some(r, 30, 120),
        },
    ),
    found=("A3",),
    traps={"A15": "a day's collection ends with the day", "A19": "a new key each day"},
)


def teleport_events(chance: Random, now: float) -> Iterator[Item]:
    """Audit events of Teleport: sessions and event index, index timesearchV2 by day."""
    for session in uuids("teleport", 260):
        start = past(chance, now, 60)
        for number in range(chance.randint(2, 9)):
            at = start + number * 20
            yield {
                "SessionID": session,
                "EventIndex": number,
                "CreatedAtDate": words.day(at),
                "CreatedAt": int(at),
                "EventType": chance.choice(["session.start", "session.data", "exec"]),
                "EventNamespace": "default",
                "FieldsMap": {"user": words.name(chance), "addr": "10.0.0.7"},
                "Expires": int(at + 365 * DAY),
            }


case(
    "second: Teleport audit events",
    "real",
    Schema(
        "SessionID",
        "EventIndex:N",
        (gsi("timesearchV2", "CreatedAtDate", "CreatedAt:N"),),
        "Expires",
    ),
    items=teleport_events,
    found=("A3 timesearchV2",),
    traps={"A2": "events of one kind", "A16": "Expires is in seconds and in the future"},
)


def delta_sync(chance: Random, now: float) -> Iterator[Item]:
    """AppSync's delta sync table: ds_pk is the table's name with the day."""
    for _ in range(900):
        at = past(chance, now, 5)
        yield {
            "ds_pk": f"AppSync-delta-sync-post:{words.day(at)}",
            "ds_sk": f"{words.moment(at):%H:%M:%S.%f}:{words.uuid(chance)}:{chance.randint(1, 9)}",
            "id": words.uuid(chance),
            "title": words.some(chance, 8, 40),
            "_version": chance.randint(1, 9),
            "_lastChangedAt": int(at * 1000),
            "_ttl": int(at + 6 * DAY),
        }


case(
    "second: AppSync delta sync table",
    "real",
    Schema("ds_pk", "ds_sk", ttl="_ttl"),
    items=delta_sync,
    found=("A3",),
    allowed={"A19": "a handful of keys at a time follows from the day as the key"},
    traps={
        "E1": "the version at the end does not order anything: the time comes first",
        "A16": "_lastChangedAt is milliseconds, but _ttl, the attribute, is seconds",
    },
)

case(
    "second: meter readings by day number",
    "planted",
    Schema("day:N", "meter"),
    items=rows(
        2400,
        lambda r, now, i: {
            "day": int(words.day(now - (i // 60) * DAY).replace("-", "")),
            "meter": hexes("meters", 60, 10)[i % 60],
            "kwh": round(r.random() * 30, 3),
        },
    ),
    found=("A3",),
    traps={"A1": "numbers of days, not of a counter"},
)

case(
    "second: alarms with an index by hour",
    "planted",
    Schema("alarmId", None, (gsi("byHour", "hourBucket:N", "raisedAt:N"),)),
    items=rows(
        1400,
        lambda r, now, i: {
            "alarmId": words.uuid(r),
            "hourBucket": int((now - i * 900) // HOUR),
            "raisedAt": int(now - i * 900),
            "severity": r.choice(["minor", "major", "critical"]),
            "source": f"rack-{r.choice('abcdefghij')}",
        },
    ),
    found=("A3 byHour",),
    traps={"A1": "the keys are random; the buckets of hours are no ids"},
)

case(
    "second: Bestellungen nach Tag",
    "planted",
    Schema("bestellung", None, (gsi("proTag", "tag", "uhrzeit"),)),
    items=rows(
        1100,
        lambda r, now, i: {
            "bestellung": f"{r.getrandbits(64):016x}",
            "tag": f"{words.moment(now - i * 4000):%d.%m.%Y}",
            "uhrzeit": f"{words.moment(now - i * 4000):%H:%M:%S}",
            "summe": r.randint(500, 30000),
        },
    ),
    found=("A3 proTag",),
)


def hackathon_events(chance: Random, now: float) -> Iterator[Item]:
    """An events table of an AWS hackathon (Terraform): index timestamp-index, only the time."""
    for number in range(700):
        yield {
            "event_id": words.uuid(chance),
            "timestamp": words.iso(now - number * 700 - chance.random() * 99),
            "resource": chance.choice(["vpc", "subnet", "instance"]),
            "action": chance.choice(["create", "update", "delete"]),
        }


case(
    "second: events with an index of time stamps",
    "real",
    Schema("event_id", None, (gsi("timestamp-index", "timestamp"),)),
    items=hackathon_events,
    found=("A3 timestamp-index",),
)

case(
    "second: patients by day of birth",
    "decoy",
    Schema("patientId", None, (gsi("byBirthDate", "birthDate", "lastName"),)),
    items=rows(
        1200,
        lambda r, now, i: {
            "patientId": words.uuid(r),
            "birthDate": words.day(now - r.randint(6000, 30000) * DAY),
            "lastName": r.choice(words.LAST),
            "firstName": r.choice(words.FIRST),
            "createdAt": words.iso(past(r, now, 900)),
        },
    ),
    traps={"A3 byBirthDate": "dates of birth are spread over decades: writes of now are too"},
)

case(
    "second: takings by store and day",
    "decoy",
    Schema("storeDay", "register"),
    items=rows(
        1800,
        lambda r, now, i: {
            "storeDay": f"{hexes('stores', 120, 4)[i % 120]}|{words.day(now - i // 120 * DAY)}",
            "register": f"R{i % 3 + 1}",
            "gross": r.randint(10000, 900000),
        },
    ),
    traps={
        "A3": "the store comes first: 120 keys share a day's writes",
        "E1": "registers are of one digit",
    },
)

case(
    "second: log of a busy site over sixteen shards a day",
    "decoy",
    Schema("dayShard", "at"),
    items=rows(
        2600,
        lambda r, now, i: {
            "dayShard": f"{words.day(now - (i // 90) * DAY)}#{r.randrange(16):02d}",
            "at": f"{words.iso(now - i * 960)}#{r.getrandbits(20):05x}",
            "path": r.choice(["/", "/cart", "/search", "/item"]),
            "ms": r.randint(3, 900),
        },
    ),
    traps={
        "A3": "each day is spread over 16 keys, which is the cure",
        "A15": "a day's collection ends with the day",
    },
)

case(
    "second: cards by month of expiry",
    "decoy",
    Schema("cardId", None, (gsi("byExpiry", "validThru", "cardId", "KEYS_ONLY"),)),
    items=rows(
        1500,
        lambda r, now, i: {
            "cardId": words.uuid(r),
            "validThru": words.day(now + r.randint(1, 50) * 30 * DAY)[:7],
            "network": r.choice(["visa", "mc", "amex"]),
            "holder": words.name(r),
        },
    ),
    traps={
        "A3 byExpiry": "the months lie ahead: cards of today fall into 50 of them, not one",
        "A1": "random ids",
    },
)

case(
    "second: chat by room and month",
    "decoy",
    Schema("roomMonth", "sentAt", ttl="purgeAt"),
    items=rows(
        2400,
        lambda r, now, i: (
            lambda at, room: {
                "roomMonth": f"{room}:{words.day(at)[:7]}",
                "sentAt": words.iso(at) + f"-{i % 1000:03d}",
                "from": words.name(r),
                "text": words.some(r, 3, 160),
                "purgeAt": int(at + 400 * DAY),
            }
        )(past(r, now, 360), skewed(r, hexes("rooms", 60))),
    ),
    traps={
        "A3": "the room comes first",
        "A15": "the month in the key and the time to live bound each collection",
    },
)

# Local secondary indexes


def forum_threads(chance: Random, now: float) -> Iterator[Item]:
    """Thread of the developer guide: ForumName, Subject, LSI LastPostIndex."""
    for number in range(900):
        yield {
            "ForumName": f"Amazon {skewed(chance, words.CITIES)} {number % 7}",
            "Subject": words.some(chance, 12, 40).strip() + f" {chance.getrandbits(24):06x}",
            "LastPostDateTime": words.iso(past(chance, now, 400)),
            "Replies": chance.randint(0, 30),
        }


case(
    "second: forum threads of the guide",
    "real",
    Schema("ForumName", "Subject", (lsi("LastPostIndex", "ForumName", "LastPostDateTime"),)),
    items=forum_threads,
    found=("A6",),
    allowed={"A15": "the threads of a forum grow, slowly"},
)


def music_table(chance: Random, now: float) -> Iterator[Item]:
    """Music of the guide's pages on local indexes: Artist, SongTitle, LSI AlbumTitleIndex."""
    for number in range(1200):
        yield {
            "Artist": f"{words.FIRST[number % 16]} and the {words.LAST[number // 16 % 15]}s",
            "SongTitle": f"{words.some(chance, 5, 20).strip()} {number:04d}",
            "AlbumTitle": words.some(chance, 5, 20).strip() + "!",
            "Year": chance.randint(1960, 2026),
        }


case(
    "second: music table with an LSI of albums",
    "real",
    Schema("Artist", "SongTitle", (lsi("AlbumTitleIndex", "Artist", "AlbumTitle", "KEYS_ONLY"),)),
    items=music_table,
    found=("A6",),
    traps={"E1": "numbers in titles are padded, and songs are not ordered by them"},
)

case(
    "second: orders of customers with an LSI of status",
    "planted",
    Schema("customer_id", "order_id", (lsi("lsi_status", "customer_id", "status_key"),)),
    items=rows(
        1500,
        lambda r, now, i: {
            "customer_id": r.choice(uuids("lsi", 400)),
            "order_id": words.ulid(past(r, now, 500), r),
            "status_key": r.choice(["DONE", "OPEN", "SENT"]) + "/" + words.day(now),
            "total": r.randint(10, 9999),
        },
    ),
    found=("A6",),
    traps={"I4": "a local index cannot have several key attributes"},
)

case(
    "second: sensors with two local indexes",
    "planted",
    Schema(
        "sensor",
        "ts:N",
        (lsi("byValue", "sensor", "value:N"), lsi("byQuality", "sensor", "quality")),
        "exp",
    ),
    items=rows(
        2400,
        lambda r, now, i: (
            lambda at: {
                "sensor": r.choice(hexes("lsi sensors", 80, 6)),
                "ts": int(at * 1000) + i,
                "value": round(r.gauss(20, 4), 2),
                "quality": mostly(r, "good", 0.9, "bad", "stale"),
                "exp": int(at + 30 * DAY),
            }
        )(past(r, now, 28)),
    ),
    found=("A6",),
    traps={"A15": "readings expire after 30 days", "A16": "only `ts` is in milliseconds"},
)

case(
    "second: game results with a local index of points",
    "planted",
    Schema("player:B", "match", (lsi("points", "player:B", "points:N", "KEYS_ONLY"),)),
    items=rows(
        1600,
        lambda r, now, i: {
            "player": bytes.fromhex(skewed(r, hexes("players", 300, 16))),
            "match": f"M|{words.ksuid(past(r, now, 200), r)}",
            "points": r.randint(0, 4000),
            "map": r.choice(["dust", "lake", "mill"]),
        },
    ),
    found=("A6",),
    allowed={"A15": "the matches of a player grow, slowly"},
)

case(
    "second: invoices with a GSI on the same partition key",
    "decoy",
    Schema("tenant", "invoice", (gsi("LSI1", "tenant", "due"),)),
    items=rows(
        1200,
        lambda r, now, i: {
            "tenant": f"t-{r.choice(hexes('tenants', 150, 6))}",
            "invoice": f"INV/{r.getrandbits(40):010x}",
            "due": words.day(now + r.randint(-60, 60) * DAY),
            "cents": r.randint(100, 99999),
        },
    ),
    traps={"A6": "a GSI by the name of LSI1", "A3 LSI1": "the date is its sort key"},
)

case(
    "second: playlists sorted twice",
    "decoy",
    Schema("playlist", "track", (gsi("byAdded", "playlist", "added"),)),
    items=rows(
        2000,
        lambda r, now, i: {
            "playlist": hexes("playlists", 100)[i % 100],
            "track": f"spotify:track:{r.getrandbits(64):016x}",
            "added": words.iso(past(r, now, 700)),
            "by": words.name(r),
        },
    ),
    traps={
        "A6": "same partition key, but global",
        "A15": "a playlist has some twenty tracks and is made by hand",
    },
)

case(
    "second: seats of venues",
    "decoy",
    Schema("event", "seat", (gsi("byHolder", "holder", "event"), gsi("free", "event", "hold"))),
    items=rows(
        2400,
        lambda r, now, i: {
            "event": hexes("venues", 12)[i // 200],
            "seat": f"{'ABCDEFGHIJ'[i % 200 // 20]}-{i % 20 + 1:02d}",
            "price": r.choice([29, 49, 89]),
            **({"holder": words.uuid(r)} if r.random() < 0.6 else {"hold": "FREE"}),
        },
    ),
    traps={
        "A6": "`free` is a sparse global index over the event",
        "A15": "a venue has 200 seats",
        "A19": "each concert is a new key",
        "E1": "seat numbers are padded",
        "I1 free": "the index is sparse: sold seats are not in it",
    },
)

case(
    "second: lsi names in one index",
    "decoy",
    Schema("PK", "SK", (gsi("LocalIndex-1", "LSI1PK", "LSI1SK"),)),
    items=rows(
        1000,
        lambda r, now, i: {
            "PK": f"DEVICE#{hexes('lsinames', 500)[i // 2]}",
            "SK": ("META", "OWNER")[i % 2],
            "entity": ("Device", "Owner")[i % 2],
            "LSI1PK": f"OWNER#{r.choice(hexes('owners', 200))}",
            "LSI1SK": f"DEVICE#{r.getrandbits(48):012x}",
        },
    ),
    traps={
        "A6": "attributes are named LSI1, the index is global",
        "A2": "DEVICE#, META and OWNER tell the kinds",
        "A18": "`entity` names the kind",
    },
)

# Indexes for each access pattern

case(
    "second: contacts of a CRM with nine indexes",
    "planted",
    Schema(
        "contactId",
        None,
        tuple(
            gsi(f"by_{name}", name, "createdAt")
            for name in [
                "email",
                "phone",
                "company",
                "owner",
                "city",
                "source",
                "campaign",
                "lastName",
                "taxId",
            ]
        ),
    ),
    items=rows(
        900,
        lambda r, now, i: {
            "contactId": words.uuid(r),
            "createdAt": words.iso(past(r, now, 900)),
            "email": f"{r.getrandbits(40):x}@mail.example",
            "phone": f"+49{r.randrange(10**10):010d}",
            "company": r.choice(hexes("companies", 200)),
            "owner": r.choice(hexes("sales", 60)),
            "city": f"{r.choice(words.CITIES)}-{r.randrange(20):02d}",
            "source": f"src-{r.choice(hexes('sources', 30, 3))}",
            "campaign": r.choice(hexes("campaigns", 80)),
            "lastName": f"{r.choice(words.LAST)} {r.choice(words.LAST)}",
            "taxId": f"{r.randrange(10**11):011d}",
        },
    ),
    found=("A7",),
    allowed={"I3": "nine copies of each contact; no traffic is known"},
)

case(
    "second: two indexes by user",
    "planted",
    Schema("loanId", None, (gsi("byUser", "userId"), gsi("byUserDue", "userId", "dueDate"))),
    items=rows(
        1100,
        lambda r, now, i: {
            "loanId": words.uuid(r),
            "userId": r.choice(uuids("readers", 350)),
            "dueDate": words.day(now + r.randint(-20, 40) * DAY),
            "isbn": f"978{r.randrange(10**10):010d}",
        },
    ),
    found=("A7",),
)

case(
    "second: same index twice with other projections",
    "planted",
    Schema(
        "parcel",
        None,
        (
            gsi("courier-all", "courier", "eta"),
            gsi("courier-keys", "courier", "eta", "KEYS_ONLY"),
            gsi("recipient", "recipient"),
        ),
    ),
    items=rows(
        1300,
        lambda r, now, i: {
            "parcel": f"PX{r.randrange(10**12):012d}",
            "courier": r.choice(hexes("couriers", 120, 6)),
            "eta": words.iso(now + r.random() * 3 * DAY),
            "recipient": words.uuid(r),
            "weight": r.randint(100, 30000),
        },
    ),
    found=("A7",),
)

case(
    "second: assets with an index for each column",
    "planted",
    Schema(
        "asset",
        None,
        tuple(
            gsi(f"{name}-index", name)
            for name in ["serial", "vendor", "building", "room", "holder", "model", "contract"]
        ),
    ),
    items=rows(
        800,
        lambda r, now, i: {
            "asset": f"A:{r.getrandbits(40):010x}",
            "serial": f"SN{r.getrandbits(44):011X}",
            "vendor": r.choice(hexes("vendors", 40, 4)),
            "building": r.choice(hexes("buildings", 30, 3)),
            "room": f"{r.choice('ABCDEF')}{r.randint(100, 599)}",
            "holder": words.name(r),
            "model": r.choice(hexes("models", 90, 5)),
            "contract": r.choice(hexes("contracts", 70, 5)),
        },
    ),
    found=("A7",),
)

case(
    "second: playback positions by profile, twice",
    "planted",
    Schema(
        "account",
        "title",
        (
            gsi("profile", "profileId", "updatedAt:N"),
            gsi("profile-updated", "profileId", "updatedAt:N", "INCLUDE", "position"),
        ),
    ),
    items=rows(
        1800,
        lambda r, now, i: {
            "account": uuids("accounts", 300)[i % 300],
            "title": f"movie/{r.getrandbits(32):08x}",
            "profileId": f"{uuids('accounts', 300)[i % 300]}:{r.choice('kme')}",
            "updatedAt": int(past(r, now, 100)),
            "position": r.randint(1, 9000),
        },
    ),
    found=("A7",),
    traps={"I4 profile": "the profile is an id, whose second part is no attribute"},
)

case(
    "second: players in two orders",
    "decoy",
    Schema(
        "playerId",
        None,
        (gsi("clanByLevel", "clan", "level:N"), gsi("clanByJoin", "clan", "since")),
    ),
    items=rows(
        1500,
        lambda r, now, i: {
            "playerId": words.uuid(r),
            "clan": skewed(r, hexes("clans", 120), 1.3),
            "level": r.randint(1, 90),
            "since": words.day(past(r, now, 900)),
        },
    ),
    traps={"A7": "same partition key, but two orders that are both asked for"},
)


def overloaded(chance: Random, now: float) -> Iterator[Item]:
    """GitHub of The DynamoDB Book: three overloaded indexes, type on each item."""
    for repo in hexes("repos", 180):
        owner = chance.choice(words.LAST).lower() + repo[:3]
        yield {
            "PK": f"REPO#{owner}#{repo}",
            "SK": f"REPO#{owner}#{repo}",
            "GSI1PK": f"REPO#{owner}#{repo}",
            "GSI1SK": f"REPO#{owner}#{repo}",
            "GSI3PK": f"ACCOUNT#{owner}",
            "GSI3SK": f"#{words.iso(past(chance, now, 600))}",
            "type": "Repo",
            "repoName": repo,
        }
        for number in range(1, chance.randint(2, 8)):
            issue = chance.random() < 0.6
            yield {
                "PK": f"REPO#{owner}#{repo}",
                "SK": f"{'ISSUE' if issue else 'PR'}#{number:07d}",
                "GSI1PK": f"REPO#{owner}#{repo}",
                "GSI1SK": f"{'ISSUE' if issue else 'PR'}#OPEN#{9999999 - number:07d}",
                "GSI2PK": f"USER#{words.name(chance).lower().replace(' ', '')}",
                "GSI2SK": words.iso(past(chance, now, 600)),
                "type": "Issue" if issue else "PullRequest",
                "title": words.some(chance, 10, 60),
            }


case(
    "second: repositories with three overloaded indexes",
    "real",
    Schema(
        "PK",
        "SK",
        tuple(gsi(f"GSI{n}", f"GSI{n}PK", f"GSI{n}SK") for n in (1, 2, 3)),
    ),
    items=overloaded,
    traps={
        "A7": "three overloaded indexes serve all the kinds",
        "E1": "numbers are padded to seven digits",
        "A18": "`type` names the kind",
        "I4 GSI1": "an overloaded index: its kinds have no attributes in common",
        "A2": "REPO#, ISSUE# and PR# tell the kinds",
    },
)

case(
    "second: many to many with an inverted index",
    "decoy",
    Schema("PK", "SK", (gsi("inverted", "SK", "PK"), gsi("byMail", "mail"))),
    items=joined(
        rows(
            300,
            lambda r, now, i: {
                "PK": f"USR:{hexes('m2m', 300)[i]}",
                "SK": f"USR:{hexes('m2m', 300)[i]}",
                "_et": "user",
                "mail": f"{hexes('m2m', 300)[i]}@corp.example",
            },
        ),
        rows(
            1200,
            lambda r, now, i: {
                "PK": f"USR:{hexes('m2m', 300)[i % 300]}",
                "SK": f"GRP:{hexes('m2m groups', 90)[(i * 7 + i // 300) % 90]}",
                "_et": "membership",
                "role": mostly(r, "member", 0.9, "admin"),
            },
        ),
    ),
    traps={
        "A7": "an inverted index and one for mails, which serve different questions",
        "A2": "USR: and GRP: tell the kinds",
        "A18": "`_et` names the kind, as dynamodb-toolbox writes it",
    },
)

case(
    "second: identities by three names",
    "decoy",
    Schema(
        "sub",
        None,
        tuple(gsi(f"{n}-idx", n, None, "KEYS_ONLY") for n in ("email", "username", "phone")),
    ),
    items=rows(
        1200,
        lambda r, now, i: {
            "sub": words.uuid(r),
            "email": f"{r.getrandbits(44):x}@mail.example",
            "username": f"{r.choice(words.FIRST).lower()}{r.getrandbits(24):x}",
            **({"phone": f"+33{r.randrange(10**9):09d}"} if r.random() < 0.4 else {}),
            "mfa": r.random() < 0.3,
        },
    ),
    traps={"A7": "three small indexes of keys for three ways to log in"},
)

case(
    "second: rides by driver and by rider",
    "decoy",
    Schema("ride", None, (gsi("driver", "driverId", "at:N"), gsi("rider", "riderId", "at:N"))),
    items=rows(
        1700,
        lambda r, now, i: {
            "ride": words.ksuid(past(r, now, 90), r),
            "driverId": skewed(r, hexes("drivers", 200, 8), 1.2),
            "riderId": r.choice(hexes("riders", 700, 8)),
            "at": int(past(r, now, 90)),
            "fare": r.randint(400, 9000),
        },
    ),
    traps={"A7": "two sides of a ride", "A1": "KSUIDs are no counter"},
)

# Counters in one item


def next_numbers(chance: Random, now: float) -> Iterator[Item]:
    yield {"PK": "SEQUENCE", "SK": "ORDER", "type": "Sequence", "next": 41000}
    for _ in range(900):
        yield {
            "PK": f"ORDER#{words.uuid(chance)}",
            "SK": "HEAD",
            "type": "Order",
            "number": chance.randint(1, 41000),
            "state": "new",
        }


case(
    "second: next order number in one item",
    "planted",
    Schema("PK", "SK"),
    items=next_numbers,
    stream=updates(
        3000,
        60,
        lambda r, at, old: (
            {"next": old["next"] + 1} if "next" in old else {"state": r.choice(["paid", "sent"])}
        ),
        lambda item: item["PK"] == "SEQUENCE",
        0.3,
    ),
    metrics=(Metric("ConsumedWriteCapacityUnits", 3000),),
    found=("A8",),
    allowed={"H7": "the counter's partition takes a third of the writes"},
    traps={"A1": "the number is an attribute; the keys are random", "A2": "the keys have tags"},
)

case(
    "second: likes of videos with one that goes round",
    "planted",
    Schema("videoId"),
    items=rows(
        800,
        lambda r, now, i: {
            "videoId": hexes("videos", 800, 11)[i],
            "title": words.some(r, 10, 50),
            "likes": 9_000_000 if i == 0 else r.randint(0, 900),
            "durationS": r.randint(20, 4000),
        },
    ),
    stream=updates(
        3600,
        60,
        lambda r, at, old: {"likes": old["likes"] + 1},
        lambda item: item["likes"] > 8_000_000,
        0.45,
    ),
    metrics=(Metric("ConsumedWriteCapacityUnits", 3600),),
    found=("A8",),
    allowed={"H7": "half of all writes go to one item"},
)

case(
    "second: stock of articles in a flash sale",
    "planted",
    Schema("sku"),
    items=rows(
        600,
        lambda r, now, i: {
            "sku": f"SKU-{hexes('skus', 600, 7)[i].upper()}",
            "available": 20000 if i == 3 else r.randint(0, 300),
            "reserved": 0,
            "warehouse": r.choice(words.CITIES),
        },
    ),
    stream=updates(
        3600,
        60,
        lambda r, at, old: {"available": old["available"] - 1, "reserved": old["reserved"] + 1},
        lambda item: item["available"] >= 15000,
        0.6,
    ),
    metrics=(Metric("ConsumedWriteCapacityUnits", 3600),),
    found=("A8",),
    allowed={
        "H7": "most writes go to one article",
    },
)


def ledger(chance: Random, now: float) -> Iterator[Item]:
    yield {"konto": "BANK#GEBUEHREN", "typ": "Sammelkonto", "saldo": 881230, "buchungen": 77000}
    for _ in range(1000):
        yield {
            "konto": f"KUNDE#{chance.randrange(10**10):010d}",
            "typ": "Girokonto",
            "saldo": chance.randint(0, 900000),
            "buchungen": chance.randint(3, 900),
        }


case(
    "second: fee account that all bookings add to",
    "planted",
    Schema("konto"),
    items=ledger,
    stream=updates(
        2400,
        60,
        lambda r, at, old: {
            "saldo": old["saldo"] + r.randint(1, 50),
            "buchungen": old["buchungen"] + 1,
        },
        lambda item: item["konto"] == "BANK#GEBUEHREN",
        0.5,
    ),
    metrics=(Metric("ConsumedWriteCapacityUnits", 2400),),
    found=("A8",),
    allowed={"H7": "half of all writes go to one account"},
    traps={
        "A2": "BANK# and KUNDE# tell the kinds",
        "A18": "`typ` names the kind",
    },
)


def site_totals(chance: Random, now: float) -> Iterator[Item]:
    yield {"id": "totals", "visits": 3_100_000, "signups": 8000, "bytes": 99}
    for _ in range(700):
        yield {"id": f"page-{chance.getrandbits(40):010x}", "visits": chance.randint(1, 4000)}


case(
    "second: totals of a site beside its pages",
    "planted",
    Schema("id"),
    items=site_totals,
    stream=updates(
        2400,
        60,
        lambda r, at, old: {"visits": old["visits"] + 1},
        lambda item: item["id"] == "totals",
        0.5,
    ),
    metrics=(Metric("ConsumedWriteCapacityUnits", 2400),),
    found=("A8",),
    allowed={
        "H7": "half of all writes go to one item",
        "A2": "one item of totals beside the pages",
        "A18": "one item of totals beside the pages",
    },
)

case(
    "second: scores of players, each their own",
    "decoy",
    Schema("player", None, (gsi("board", "league", "score:N", "KEYS_ONLY"),)),
    items=rows(
        1500,
        lambda r, now, i: {
            "player": words.uuid(r),
            "league": f"L-{r.choice(hexes('leagues', 40, 4))}",
            "score": r.randint(0, 90000),
        },
    ),
    stream=updates(3000, 60, lambda r, at, old: {"score": old["score"] + r.randint(1, 9)}),
    metrics=(Metric("ConsumedWriteCapacityUnits", 3000),),
    traps={
        "A8": "counters of 1,500 players, none of them often",
        "H7": "even",
        "A9 board": "40 leagues of like sizes",
    },
)

case(
    "second: positions of couriers",
    "decoy",
    Schema("courier"),
    items=rows(
        500,
        lambda r, now, i: {
            "courier": f"rider~{r.getrandbits(40):010x}",
            "lat": round(52 + r.random(), 5),
            "lon": round(13 + r.random(), 5),
            "seq": r.randint(1, 9000),
        },
    ),
    stream=updates(
        2000,
        300,
        lambda r, at, old: {"lat": round(52 + r.random(), 5), "seq": old["seq"] + 1},
    ),
    metrics=(Metric("ConsumedWriteCapacityUnits", 400),),
    traps={"A8": "each courier counts its own reports, once in some seconds"},
)

case(
    "second: settings that are read much and set rarely",
    "decoy",
    Schema("setting"),
    items=rows(
        320,
        lambda r, now, i: {
            "setting": f"app.{r.choice('abcd')}.{r.getrandbits(28):07x}",
            "value": words.some(r, 3, 40),
            "revision": r.randint(1, 40),
        },
    ),
    stream=updates(25, DAY / 2, lambda r, at, old: {"revision": old["revision"] + 1}),
    metrics=(
        Metric("ConsumedReadCapacityUnits", 900),
        Metric("ConsumedWriteCapacityUnits", 0.035),
    ),
    traps={"A8": "revisions grow a few times a day", "H7": "25 writes say nothing"},
)

case(
    "second: one vehicle that reports its state often",
    "decoy",
    Schema("vin"),
    items=rows(
        400,
        lambda r, now, i: {
            "vin": f"WVW{hexes('vins', 400, 14)[i].upper()}",
            "state": "parked",
            "fuel": r.randint(5, 60),
            "seenAt": words.iso(past(r, now, 1)),
        },
    ),
    stream=updates(
        900,
        1800,
        lambda r, at, old: {"state": r.choice(["drive", "stop"]), "seenAt": words.iso(at)},
        lambda item: item["vin"] == f"WVW{hexes('vins', 400, 14)[7].upper()}",
        0.12,
    ),
    metrics=(Metric("ConsumedWriteCapacityUnits", 30),),
    traps={
        "A8": "an item that is updated now and then, without a count",
        "H7": "one write in two seconds heats nothing",
    },
)

# Constant keys of indexes, and indexes that could be sparse

case(
    "second: queue of jobs by status",
    "planted",
    Schema("jobId", None, (gsi("byStatus", "status", "createdAt"),)),
    items=rows(
        1800,
        lambda r, now, i: {
            "jobId": words.uuid(r),
            "status": mostly(r, "DONE", 0.95, "QUEUED", "RUNNING", "FAILED"),
            "createdAt": words.iso(past(r, now, 60)),
            "payload": {"to": words.name(r), "template": r.choice("abc")},
            "attempts": r.randint(1, 3),
        },
    ),
    found=("A9 byStatus", "I1 byStatus"),
)

case(
    "second: outbox with an index of what is sent",
    "planted",
    Schema("messageId", None, (gsi("sent-index", "sent", "createdAt:N"),)),
    items=rows(
        1500,
        lambda r, now, i: {
            "messageId": words.ulid(past(r, now, 30), r),
            "sent": "Y" if r.random() < 0.98 else "N",
            "createdAt": int(past(r, now, 30)),
            "topic": f"order.{r.choice(['created', 'paid', 'shipped'])}",
            "body": words.some(r, 60, 400),
        },
    ),
    found=("A9 sent-index", "I1 sent-index"),
)

case(
    "second: payments to be matched",
    "planted",
    Schema("paymentRef", None, (gsi("offen", "abgleich", "valuta"),)),
    items=rows(
        1300,
        lambda r, now, i: {
            "paymentRef": f"{r.getrandbits(60):015X}",
            "abgleich": mostly(r, "ABGEGLICHEN", 0.97, "OFFEN"),
            "valuta": words.day(past(r, now, 400)),
            "betrag": r.randint(100, 1_000_000),
            "iban": f"DE{r.randrange(10**20):020d}",
        },
    ),
    found=("A9 offen", "I1 offen"),
)

case(
    "second: comments and their moderation",
    "planted",
    Schema(
        "article", "commentId", (gsi("moderation", "state", "commentId", "INCLUDE", "article"),)
    ),
    items=rows(
        2200,
        lambda r, now, i: {
            "article": r.choice(hexes("articles", 300, 8)),
            "commentId": words.ulid(past(r, now, 200), r),
            "state": mostly(r, "approved", 0.96, "pending", "spam"),
            "author": words.name(r),
            "text": words.some(r, 10, 400),
        },
    ),
    found=("A9 moderation", "I1 moderation"),
    traps={"A15": "an article gets a few comments while it is new"},
)

case(
    "second: prescriptions, valid or not",
    "planted",
    Schema("rx", None, (gsi("validity", "isValid:N", "issued"), gsi("patient", "patientId"))),
    items=rows(
        1400,
        lambda r, now, i: {
            "rx": f"RX{r.getrandbits(48):012x}",
            "isValid": 0 if r.random() < 0.94 else 1,
            "issued": words.day(past(r, now, 700)),
            "patientId": r.choice(uuids("rx patients", 500)),
            "drug": words.some(r, 6, 14),
        },
    ),
    found=("A9 validity", "I1 validity"),
)


def amplify_posts(chance: Random, now: float) -> Iterator[Item]:
    """Amplify's example of sorting all posts: type is "Post" on each, index postsByDate."""
    for _ in range(1200):
        at = words.iso(past(chance, now, 500))
        yield {
            "id": words.uuid(chance),
            "__typename": "Post",
            "type": "Post",
            "title": words.some(chance, 10, 60),
            "owner": words.uuid(chance),
            "createdAt": at,
            "updatedAt": at,
        }


case(
    "second: Amplify posts by date",
    "real",
    Schema("id", None, (gsi("postsByDate", "type", "createdAt"),)),
    items=amplify_posts,
    found=("A9 postsByDate",),
    traps={"I1 postsByDate": "the query asks for all posts in order, so all belong in it"},
)


def audit_timeline(chance: Random, now: float) -> Iterator[Item]:
    """An audit log as in public single-table code: AUDIT#actor, GSI1PK is AUDITLOG on all."""
    for number in range(1600):
        at = words.iso(past(chance, now, 300))
        yield {
            "PK": f"AUDIT#{hexes('actors', 400)[number % 400]}",
            "SK": f"{at}#{chance.getrandbits(24):06x}",
            "GSI1PK": "AUDITLOG",
            "GSI1SK": at,
            "action": chance.choice(["org.create", "user.update", "rule.delete", "lead.import"]),
            "actor": hexes("actors", 400)[number % 400],
        }


case(
    "second: audit log with one timeline of all",
    "real",
    Schema("PK", "SK", (gsi("GSI1", "GSI1PK", "GSI1SK"),)),
    items=audit_timeline,
    found=("A9 GSI1",),
    allowed={"A15": "the log of an actor grows as long as it works"},
    traps={"I1 GSI1": "the timeline wants all items"},
)

case(
    "second: shops by country, most of one",
    "planted",
    Schema("shopId", None, (gsi("country-name", "country", "name"),)),
    items=rows(
        1100,
        lambda r, now, i: {
            "shopId": f"shop_{r.getrandbits(40):010x}",
            "country": mostly(r, "DE", 0.9, "AT", "CH", "LU", "NL"),
            "name": words.name(r) + " GmbH",
            "plan": r.choice(["s", "m", "l"]),
        },
    ),
    found=("A9 country-name",),
    traps={"I1 country-name": "a country is no state that ends: all shops are asked for"},
)

case(
    "second: users that are active",
    "planted",
    Schema("user_id", None, (gsi("active_idx", "is_active", "last_login"),)),
    items=rows(
        1500,
        lambda r, now, i: {
            "user_id": words.uuid(r),
            "is_active": "true" if r.random() < 0.93 else "false",
            "last_login": words.iso(past(r, now, 90)),
            "email": f"{r.getrandbits(40):x}@mail.example",
        },
    ),
    found=("A9 active_idx",),
    allowed={"I1": "if only the inactive are asked for; the table does not tell"},
)

case(
    "second: appointments of clinics, asked for while open",
    "planted",
    Schema("appointment", None, (gsi("clinicState", "clinic", "state"),)),
    items=rows(
        2400,
        lambda r, now, i: {
            "appointment": words.uuid(r),
            "clinic": f"clinic-{r.choice(hexes('clinics', 40, 4))}",
            "state": mostly(r, "closed", 0.97, "open"),
            "slot": words.iso(past(r, now, 500)),
            "patient": words.name(r),
        },
    ),
    insights=tuple(
        Contributor("SKC", (f"clinic-{one}", "open"), 300 - 5 * n, index="clinicState")
        for n, one in enumerate(hexes("clinics", 40, 4)[:10])
    ),
    found=("I1 clinicState",),
    traps={"A9 clinicState": "40 clinics of like sizes"},
)

case(
    "second: tasks with a sparse index of the pending",
    "decoy",
    Schema("taskId", None, (gsi("pending", "pendingSince", None, "KEYS_ONLY"),)),
    items=rows(
        1400,
        lambda r, now, i: {
            "taskId": words.uuid(r),
            "doneAt": words.iso(past(r, now, 30)),
            **({"pendingSince": f"{r.choice('abcdefgh')}-queue"} if i % 35 == 0 else {}),
        },
    ),
    traps={
        "I1 pending": "it is sparse: one item in 35",
        "A9 pending": "eight queues of a few items each",
    },
)

case(
    "second: claims with an index of the open ones only",
    "decoy",
    Schema("claim", None, (gsi("openClaims", "open", "filed"),)),
    items=rows(
        1600,
        lambda r, now, i: {
            "claim": f"CL.{r.getrandbits(44):011x}",
            "filed": words.day(past(r, now, 900)),
            "amount": r.randint(100, 90000),
            **({"open": "OPEN"} if r.random() < 0.03 else {"closed": words.day(now)}),
        },
    ),
    allowed={"A9": "one value, but of 3 % of the items: a sparse index as the guide draws it"},
    traps={"I1 openClaims": "the index holds only the open claims already"},
)

case(
    "second: articles of a paper over ten shards of the index",
    "decoy",
    Schema("articleId", None, (gsi("latest", "feed", "publishedAt"),)),
    items=rows(
        1500,
        lambda r, now, i: {
            "articleId": words.uuid(r),
            "feed": f"ARTICLE.{r.randrange(10)}",
            "publishedAt": words.iso(past(r, now, 700)),
            "headline": words.some(r, 20, 80),
        },
    ),
    traps={"A9 latest": "the constant has ten shards, which is the cure"},
)

case(
    "second: devices of tenants, one of them large",
    "decoy",
    Schema("deviceId", None, (gsi("tenant", "tenantId", "deviceId"),)),
    items=rows(
        1800,
        lambda r, now, i: {
            "deviceId": f"dev-{r.getrandbits(48):012x}",
            "tenantId": uuids("dev tenants", 90)[0 if r.random() < 0.12 else r.randrange(90)],
            "firmware": r.choice(["4.1.0", "4.2.1"]),
        },
    ),
    traps={"A9 tenant": "the largest tenant has an eighth of the index"},
)

case(
    "second: deliveries in eight even states",
    "decoy",
    Schema("delivery", None, (gsi("state", "stateDepot", "eta:N"),)),
    items=rows(
        1700,
        lambda r, now, i: {
            "delivery": words.ksuid(past(r, now, 20), r),
            "stateDepot": f"{r.choice('ABCDEFGH')}@{r.choice(hexes('depots', 30, 3))}",
            "eta": int(now + r.random() * DAY),
        },
    ),
    insights=tuple(
        Contributor("PKC", (f"{s}@{hexes('depots', 30, 3)[n]}",), 400 - n, index="state")
        for n, s in enumerate("ABCDEFGH")
    ),
    traps={
        "I1 state": "all states are read",
        "I4 state": "neither part is an attribute of its own",
        "A9 state": "240 keys",
    },
)

# Index keys that join other attributes

case(
    "second: orders by status and date in one text",
    "planted",
    Schema("orderId", None, (gsi("customerStatusDate", "customerId", "statusDate"),)),
    items=rows(
        1500,
        lambda r, now, i: (
            lambda status, day: {
                "orderId": words.uuid(r),
                "customerId": r.choice(uuids("i4", 300)),
                "status": status,
                "date": day,
                "statusDate": f"{status}#{day}",
            }
        )(r.choice(["OPEN", "PAID", "SENT"]), words.day(past(r, now, 300))),
    ),
    found=("I4 customerStatusDate",),
    traps={"A3 customerStatusDate": "the date is in the sort key"},
)

case(
    "second: stores by country, state and city in one text",
    "planted",
    Schema("storeId", None, (gsi("place", "countryStateCity", "zip"),)),
    items=rows(
        1200,
        lambda r, now, i: (
            lambda country, state, city: {
                "storeId": f"ST-{r.getrandbits(36):09x}",
                "country": country,
                "state": state,
                "city": city,
                "zip": f"{r.randrange(99999):05d}",
                "countryStateCity": f"{country}|{state}|{city}",
            }
        )(
            r.choice(["US", "CA", "MX"]),
            r.choice(["AA", "BB", "CC", "DD", "EE"]),
            r.choice(words.CITIES),
        ),
    ),
    found=("I4 place",),
)

case(
    "second: matches by tournament, region and round",
    "planted",
    Schema("matchId", None, (gsi("TournamentRegion", "tournament_region", "round_bracket"),)),
    items=rows(
        1600,
        lambda r, now, i: (
            lambda t, region, turn, bracket: {
                "matchId": words.uuid(r),
                "tournament": t,
                "region": region,
                "round": turn,
                "bracket": bracket,
                "tournament_region": f"{t}#{region}",
                "round_bracket": f"{turn}#{bracket}",
                "winner": words.name(r),
            }
        )(
            f"CUP-{r.choice(hexes('cups', 25, 4))}",
            r.choice(["EU", "NA", "KR", "BR"]),
            r.choice(["FINAL", "SEMI", "QUARTER", "GROUP"]),
            r.choice(["UPPER", "LOWER"]),
        ),
    ),
    found=("I4 TournamentRegion",),
)

case(
    "second: deployments by tenant and environment",
    "planted",
    Schema("deployId", None, (gsi("gsi1", "tenantEnv", "startedAt:N"),)),
    items=rows(
        1300,
        lambda r, now, i: (
            lambda tenant, env: {
                "deployId": words.ulid(past(r, now, 200), r),
                "tenant": tenant,
                "env": env,
                "tenantEnv": f"{tenant}:{env}",
                "startedAt": int(past(r, now, 200)),
                "sha": f"{r.getrandbits(160):040x}",
            }
        )(f"acme-{r.choice(hexes('i4 tenants', 60, 4))}", r.choice(["prod", "stage", "dev"])),
    ),
    found=("I4 gsi1",),
)

case(
    "second: tickets of a desk by queue, priority and time",
    "planted",
    Schema("caseNo", None, (gsi("queue", "queue", "priorityOpened"),)),
    items=rows(
        1400,
        lambda r, now, i: (
            lambda priority, opened: {
                "caseNo": f"{r.getrandbits(40):010x}",
                "queue": r.choice(["net", "hr", "it", "pay", "law", "ops", "web", "app", "car"]),
                "priority": priority,
                "openedAt": opened,
                "priorityOpened": f"{priority}/{opened}",
                "subject": words.some(r, 10, 60),
            }
        )(r.choice(["P1", "P2", "P3"]), words.iso(past(r, now, 100))),
    ),
    found=("I4 queue",),
    traps={"A9 queue": "nine queues, even"},
)

case(
    "second: sharded index key",
    "decoy",
    Schema("readingId", None, (gsi("siteShard", "siteShard", "at:N"),)),
    items=rows(
        1500,
        lambda r, now, i: (
            lambda site: {
                "readingId": words.uuid(r),
                "site": site,
                "siteShard": f"{site}#{r.randrange(8)}",
                "at": int(past(r, now, 5)),
                "watt": r.randint(0, 4000),
            }
        )(r.choice(hexes("sites", 50, 5))),
    ),
    traps={
        "I4 siteShard": "the shard is chance, no attribute of the item",
        "A15": "the keys are ids: no collections",
    },
)

# Large items


def chat_histories(chance: Random, now: float) -> Iterator[Item]:
    """Chat histories as LangChain's DynamoDBChatMessageHistory keeps them: one list an item."""
    for _ in range(320):
        turns = int(chance.random() ** 5 * 300) + 1
        yield {
            "SessionId": words.uuid(chance),
            "History": [
                {
                    "type": "human" if t % 2 == 0 else "ai",
                    "data": {"content": words.text(chance, 1100)},
                }
                for t in range(turns)
            ],
        }


case(
    "second: chat histories of a language model",
    "real",
    Schema("SessionId"),
    items=chat_histories,
    found=("A13",),
)

case(
    "second: CMS pages with their whole markup",
    "planted",
    Schema("page", "lang"),
    items=rows(
        300,
        lambda r, now, i: {
            "page": f"/{hexes('pages', 150, 8)[i // 2]}",
            "lang": ("de", "fr")[i % 2],
            "html": words.text(r, 150_000 if i % 6 == 0 else 22_000),
            "publishedAt": words.iso(past(r, now, 900)),
        },
    ),
    found=("A13",),
)

case(
    "second: scanned findings inside the items",
    "planted",
    Schema("befundId", None, (gsi("patient", "patient", "datum", "KEYS_ONLY"),)),
    items=rows(
        300,
        lambda r, now, i: {
            "befundId": words.uuid(r),
            "patient": r.choice(uuids("befund", 120)),
            "datum": words.day(past(r, now, 900)),
            "pdf": r.randbytes(r.choice([9_000, 14_000, 60_000, 240_000]) if i % 3 else 8_000),
        },
    ),
    found=("A13",),
)

case(
    "second: saved games near the limit",
    "planted",
    Schema("player", "slot:N"),
    items=rows(
        300,
        lambda r, now, i: {
            "player": hexes("savers", 100)[i // 3],
            "slot": i % 3,
            "world": r.randbytes(360_000 if i % 15 == 0 else 2_000),
            "savedAt": int(past(r, now, 60)),
        },
    ),
    found=("A13",),
)

case(
    "second: telemetry that is packed by the hour",
    "planted",
    Schema("machine", "hour"),
    items=rows(
        300,
        lambda r, now, i: {
            "machine": f"cnc-{hexes('cnc', 60, 4)[i % 60]}",
            "hour": words.iso(now - i // 60 * HOUR)[:13],
            "samples": [
                {"t": t, "rpm": r.randint(900, 9000), "c": r.randint(20, 90)} for t in range(1800)
            ],
        },
    ),
    found=("A13",),
    allowed={"A15": "a machine gets a key's item each hour"},
    traps={"A3": "the hour is the sort key"},
)

case(
    "second: recipes of a few kilobytes",
    "decoy",
    Schema("recipe"),
    items=rows(
        600,
        lambda r, now, i: {
            "recipe": f"rezept/{r.getrandbits(40):010x}",
            "title": words.some(r, 10, 40),
            "steps": [words.some(r, 60, 240) for _ in range(8)],
            "image": f"s3://recipes/{r.getrandbits(64):016x}.jpg",
        },
    ),
    traps={"A13": "items of one to two KB; the pictures are in S3"},
)

case(
    "second: documents whose bodies are in S3",
    "decoy",
    Schema("documentId", "version:N"),
    items=rows(
        900,
        lambda r, now, i: {
            "documentId": uuids("s3 docs", 300)[i // 3],
            "version": i % 3 + 1,
            "bodyKey": f"s3://docs/{r.getrandbits(64):016x}",
            "bytes": r.randint(100_000, 30_000_000),
            "summary": words.some(r, 200, 700),
        },
    ),
    traps={"A13": "`bytes` tells the object's size, not the item's", "E1": "versions are numbers"},
)

case(
    "second: user profiles with a hundred attributes",
    "decoy",
    Schema("uid"),
    items=rows(
        500,
        lambda r, now, i: {
            "uid": words.uuid(r),
            **{f"pref_{n:02d}": r.choice(["on", "off"]) for n in range(90)},
        },
    ),
    traps={"A13": "many attributes, but of one KB together"},
)

case(
    "second: product texts in four languages",
    "decoy",
    Schema("sku"),
    items=rows(
        400,
        lambda r, now, i: {
            "sku": f"{r.getrandbits(40):010X}",
            "texts": {lang: words.some(r, 200, 800) for lang in ("de", "en", "fr", "it")},
        },
    ),
    traps={"A13": "two KB: a read costs one unit"},
)

case(
    "second: rules of a firewall, one list longer",
    "decoy",
    Schema("group"),
    items=rows(
        350,
        lambda r, now, i: {
            "group": f"sg-{r.getrandbits(68):017x}",
            "rules": [f"10.{n}.0.0/16:443" for n in range(220 if i == 20 else 12)],
        },
    ),
    traps={"A13": "the longest item has 4 KB"},
)

# Collections without a bound


def telemetry(chance: Random, now: float) -> Iterator[Item]:
    """Device status of the guide's design pages: DeviceID and State#Date, no time to live."""
    for number in range(3000):
        at = now - number * 0.2 * DAY - chance.random() * 9000
        yield {
            "DeviceID": f"d#{skewed(chance, hexes('a15 devices', 40, 5))}",
            "State#Date": f"{mostly(chance, 'NORMAL', 0.8, 'WARNING1')}#{words.iso(at)}",
            "Operator": chance.choice(words.FIRST),
            "Date": words.iso(at),
            "EscalatedTo": "Sara",
        }


case(
    "second: states of devices over the years",
    "real",
    Schema("DeviceID", "State#Date"),
    items=telemetry,
    found=("A15",),
    traps={
        "I4": "the joined text is the key of the table, not of an index",
        "E1": "WARNING1 to WARNING4 have one digit",
    },
)

case(
    "second: messages of rooms for ever",
    "planted",
    Schema("room", "sentAt:N"),
    items=rows(
        3000,
        lambda r, now, i: {
            "room": f"room:{skewed(r, hexes('a15 rooms', 60, 6), 3)}",
            "sentAt": int((now - (3000 - i) * 0.25 * DAY) * 1000) + r.randrange(999),
            "from": words.name(r),
            "text": words.some(r, 3, 300),
        },
    ),
    found=("A15",),
    traps={"A16": "no time to live at all: sentAt is only a time in milliseconds"},
)

case(
    "second: bookings of current accounts",
    "planted",
    Schema("iban", "buchung"),
    items=rows(
        3000,
        lambda r, now, i: {
            "iban": f"DE{skewed(r, hexes('a15 ibans', 70, 14), 2.5)}",
            "buchung": f"{words.iso(now - (3000 - i) * 0.4 * DAY)}/{r.getrandbits(32):08x}",
            "betrag": r.randint(-90000, 90000),
            "zweck": words.some(r, 5, 60),
        },
    ),
    found=("A15",),
)

case(
    "second: heart rates of wearables",
    "planted",
    Schema("wearer", "at"),
    items=rows(
        3000,
        lambda r, now, i: {
            "wearer": skewed(r, uuids("a15 wearers", 45), 1.5),
            "at": words.iso(now - (3000 - i) * 3600 * 5),
            "bpm": r.randint(48, 180),
            "hrv": r.randint(10, 120),
        },
    ),
    found=("A15",),
)

case(
    "second: audit trail of tenants",
    "planted",
    Schema("pk", "sk", (gsi("byActor", "actor", "sk"),)),
    items=rows(
        2800,
        lambda r, now, i: {
            "pk": f"TENANT#{skewed(r, hexes('a15 tenants', 50, 6), 2.5)}",
            "sk": f"AUDIT#{words.ulid(now - (2800 - i) * 20000, r)}",
            "actor": r.choice(hexes("a15 actors", 200, 6)),
            "type": "Audit",
            "action": r.choice(["create", "update", "delete", "login"]),
        },
    ),
    found=("A15",),
)

case(
    "second: episodes of series",
    "decoy",
    Schema("series", "episode"),
    items=rows(
        1500,
        lambda r, now, i: {
            "series": hexes("series", 50)[i // 30],
            "episode": f"S{i % 30 // 10 + 1:02d}E{i % 10 + 1:02d}",
            "title": words.some(r, 6, 40),
            "runtime": r.randint(20, 70),
        },
    ),
    traps={"A15": "a series ends, and has some thirty episodes", "E1": "padded to two digits"},
)

# Time to live

case(
    "second: sessions with a time to live in text",
    "planted",
    Schema("sid", None, ttl="expiresAt"),
    items=rows(
        900,
        lambda r, now, i: {
            "sid": f"sess:{r.getrandbits(128):032x}",
            "user": words.uuid(r),
            "expiresAt": words.iso(now + r.randint(-40, 14) * DAY),
        },
    ),
    found=("A16",),
)

case(
    "second: one-time codes that expire in milliseconds",
    "planted",
    Schema("phone", "code", ttl="ttl"),
    items=rows(
        1000,
        lambda r, now, i: {
            "phone": f"+46{r.randrange(10**9):09d}",
            "code": f"{r.randrange(10**6):06d}",
            "ttl": int((past(r, now, 50) + 300) * 1000),
            "tries": r.randint(0, 3),
        },
    ),
    found=("A16",),
)

case(
    "second: carts whose expiry is set but not switched on",
    "planted",
    Schema("cartId", "line"),
    items=rows(
        1500,
        lambda r, now, i: {
            "cartId": uuids("carts", 400)[i % 400],
            "line": f"sku~{r.getrandbits(40):010x}",
            "qty": r.randint(1, 5),
            "ttl": int(now - 300 * DAY + i % 400 * DAY),
        },
    ),
    found=("A16",),
)

case(
    "second: cache with seconds in text",
    "planted",
    Schema("key", None, ttl="expires_at"),
    items=rows(
        1200,
        lambda r, now, i: {
            "key": f"cache/{r.getrandbits(80):020x}",
            "value": words.some(r, 20, 900),
            "expires_at": str(int(now + r.randint(-30, 5) * DAY)),
        },
    ),
    found=("A16",),
)

case(
    "second: imported history with expiry of long ago",
    "planted",
    Schema("visitor", "seen:N", ttl="purge"),
    items=rows(
        1300,
        lambda r, now, i: (
            lambda at: {
                "visitor": words.uuid(r),
                "seen": int(at),
                "purge": int(at + 30 * DAY),
                "agent": "Mozilla/5.0",
            }
        )(now - r.randint(2300, 3200) * DAY),
    ),
    found=("A16",),
)


def powertools(chance: Random, now: float) -> Iterator[Item]:
    """Idempotency records of Powertools for Lambda: id, expiration in seconds, status, data."""
    for _ in range(900):
        yield {
            "id": f"orders-fn.handler#{chance.getrandbits(128):032x}",
            "expiration": int(now + (chance.random() - 0.1) * 3600),
            "in_progress_expiration": int((now + 30) * 1000),
            "status": "COMPLETED",
            "data": '{"statusCode": 200}',
        }


case(
    "second: idempotency records of Powertools",
    "real",
    Schema("id", None, ttl="expiration"),
    items=powertools,
    traps={
        "A16": "some are past for minutes, and the milliseconds are of another attribute",
        "A1": "hashes",
    },
)


def auth_js(chance: Random, now: float) -> Iterator[Item]:
    """Auth.js's adapter: pk USER#id, sk, GSI1PK and GSI1SK, type, expires in seconds."""
    for user in uuids("authjs", 300):
        yield {
            "pk": f"USER#{user}",
            "sk": f"USER#{user}",
            "GSI1PK": f"USER#{user[:8]}@mail.example",
            "GSI1SK": f"USER#{user[:8]}@mail.example",
            "type": "USER",
            "email": f"{user[:8]}@mail.example",
            "id": user,
        }
        yield {
            "pk": f"USER#{user}",
            "sk": f"ACCOUNT#github#{user[9:13]}",
            "GSI1PK": "ACCOUNT#github",
            "GSI1SK": f"ACCOUNT#{user[9:13]}{user[:8]}",
            "type": "ACCOUNT",
            "userId": user,
        }
        if chance.random() < 0.6:
            token = words.uuid(chance)
            yield {
                "pk": f"USER#{user}",
                "sk": f"SESSION#{token}",
                "GSI1PK": f"SESSION#{token}",
                "GSI1SK": f"SESSION#{token}",
                "type": "SESSION",
                "expires": int(now + chance.random() * 30 * DAY),
            }


case(
    "second: Auth.js users, accounts and sessions",
    "real",
    Schema("pk", "sk", (gsi("GSI1", "GSI1PK", "GSI1SK"),), "expires"),
    items=auth_js,
    allowed={"A9": "a provider's accounts have one key of the index, a third of it here"},
    traps={
        "A16": "only sessions expire; the others have no such attribute",
        "A2": "USER#, ACCOUNT# and SESSION# tell the kinds",
        "A18": "`type` names the kind",
        "I4 GSI1": "an overloaded index",
        "E2": "the mail is an index key of the user itself, not a constraint item",
    },
)

# No attribute names the kind

case(
    "second: shop in one table without kinds",
    "planted",
    Schema("PK", "SK"),
    items=joined(
        rows(
            300,
            lambda r, now, i: {
                "PK": f"CUST|{hexes('a18 shop', 300)[i]}",
                "SK": "CUST",
                "name": words.name(r),
            },
        ),
        rows(
            800,
            lambda r, now, i: {
                "PK": f"CUST|{r.choice(hexes('a18 shop', 300))}",
                "SK": f"ORDER|{words.ulid(past(r, now, 300), r)}",
                "total": r.randint(5, 900),
            },
        ),
        rows(
            400,
            lambda r, now, i: {
                "PK": f"PROD|{r.getrandbits(40):010x}",
                "SK": "PROD",
                "price": r.randint(1, 99),
                "stock": r.randint(0, 900),
            },
        ),
    ),
    found=("A18",),
    traps={"A2": "CUST|, ORDER| and PROD| tell the kinds", "A15": "orders of a customer are few"},
)

case(
    "second: school with tags of two letters",
    "planted",
    Schema("k", "s"),
    items=joined(
        rows(
            120,
            lambda r, now, i: {
                "k": f"cl:{hexes('classes', 120, 5)[i]}",
                "s": "cl",
                "teacher": words.name(r),
                "room": f"{r.choice('ABC')}{r.randint(100, 399)}",
            },
        ),
        rows(
            1500,
            lambda r, now, i: {
                "k": f"cl:{hexes('classes', 120, 5)[i % 120]}",
                "s": f"pu:{r.getrandbits(40):010x}",
                "pupil": words.name(r),
                "grade": r.randint(1, 6),
            },
        ),
        rows(
            600,
            lambda r, now, i: {
                "k": f"pa:{r.getrandbits(40):010x}",
                "s": "pa",
                "parent": words.name(r),
                "mail": "p@mail.example",
            },
        ),
    ),
    found=("A18",),
    traps={"A2": "cl:, pu: and pa: tell the kinds", "A15": "a class has a dozen pupils"},
)

# Few partition keys


def teleport_backend(chance: Random, now: float) -> Iterator[Item]:
    """State of Teleport: HashKey is "teleport" on all items, FullPath sorts them."""
    for _ in range(1800):
        kind = chance.choice(["nodes/default", "tokens", "sessions/web", "roles", "locks"])
        yield {
            "HashKey": "teleport",
            "FullPath": f"teleport/{kind}/{words.uuid(chance)}",
            "Value": chance.randbytes(chance.randint(60, 700)),
            "Timestamp": int(past(chance, now, 30)),
            "Expires": int(now + chance.random() * 9 * DAY),
            "ID": chance.getrandbits(40),
        }


case(
    "second: Teleport state under one key",
    "real",
    Schema("HashKey", "FullPath", ttl="Expires"),
    items=teleport_backend,
    metrics=(
        Metric("ConsumedWriteCapacityUnits", 9000),
        Metric("ConsumedReadCapacityUnits", 30000),
    ),
    found=("A19",),
    allowed={
        "A2": "one key for all; the kinds are in the path of the sort key",
        "A18": "a store of values: the kinds are in the path",
        "A15": "one collection is the whole table",
    },
)

case(
    "second: kinds as partition keys",
    "planted",
    Schema("kind", "id"),
    items=rows(
        2400,
        lambda r, now, i: {
            "kind": r.choice(["USERS", "ORDERS", "ORDERS", "INVOICES"]),
            "id": words.ulid(past(r, now, 400), r),
            "data": {"name": words.name(r), "total": r.randint(1, 900)},
        },
    ),
    metrics=(Metric("ConsumedWriteCapacityUnits", 12000),),
    found=("A19",),
    allowed={"A15": "all orders are one collection"},
    traps={"A2": "the key is the tag itself", "A18": "`kind` names the kind"},
)

case(
    "second: leaderboards of four regions",
    "planted",
    Schema("region", "player", (gsi("top", "region", "score:N", "KEYS_ONLY"),)),
    items=rows(
        2600,
        lambda r, now, i: {
            "region": r.choice(["eu", "na", "asia", "latam"]),
            "player": words.uuid(r),
            "score": r.randint(0, 10**6),
        },
    ),
    metrics=(Metric("ConsumedWriteCapacityUnits", 24000),),
    found=("A19",),
    allowed={
        "A15": "all players of a region are one collection",
        "A9": "a quarter of the index has one key: the same fault, seen at the index",
    },
    traps={"A6": "the index by score is global"},
)

case(
    "second: events of three tenants",
    "planted",
    Schema("tenantId", "eventId"),
    items=rows(
        2700,
        lambda r, now, i: {
            "tenantId": r.choice(["umbrella", "initech", "hooli"]),
            "eventId": words.ksuid(now - (2700 - i) * 4000, r),
            "name": r.choice(["login", "click", "buy"]),
        },
    ),
    metrics=(Metric("ConsumedWriteCapacityUnits", 15000),),
    found=("A19", "A15"),
    traps={"A1": "KSUIDs in sort keys"},
)

case(
    "second: jobs with their state as the key",
    "planted",
    Schema("state", "job"),
    items=rows(
        2500,
        lambda r, now, i: {
            "state": mostly(r, "finished", 0.7, "queued", "running", "failed"),
            "job": words.uuid7(past(r, now, 60), r),
            "worker": f"w-{r.choice('abcdef')}",
        },
    ),
    metrics=(Metric("ConsumedWriteCapacityUnits", 18000),),
    found=("A19",),
    allowed={"A15": "all finished jobs are one collection"},
)

case(
    "second: feature flags of four environments",
    "decoy",
    Schema("env", "flag"),
    items=rows(
        320,
        lambda r, now, i: {
            "env": ["prod", "stage", "test", "dev"][i % 4],
            "flag": f"flag.{hexes('flags', 80, 6)[i // 4]}",
            "on": r.random() < 0.5,
            "rollout": r.choice([0, 10, 50, 100]),
        },
    ),
    metrics=(
        Metric("ConsumedReadCapacityUnits", 60),
        Metric("ConsumedWriteCapacityUnits", 0.05),
    ),
    traps={
        "A19": "80 flags in each: a small table that is cached",
        "A15": "flags are made by hand",
    },
)

case(
    "second: exchange rates of a few currencies",
    "decoy",
    Schema("base", "quote"),
    items=rows(
        400,
        lambda r, now, i: {
            "base": f"{'ABCDEFGHIJKLMNOPQRST'[i // 20]}UR",
            "quote": f"{'ABCDEFGHIJKLMNOPQRST'[i % 20]}OL",
            "rate": round(r.random() * 5, 5),
        },
    ),
    metrics=(Metric("ConsumedWriteCapacityUnits", 400),),
    traps={"A19": "20 keys of 20 small items, with seven writes a second"},
)

# Numbers in sort keys

case(
    "second: order lines without padding",
    "planted",
    Schema("PK", "SK"),
    items=rows(
        2000,
        lambda r, now, i: {
            "PK": f"ORDER#{hexes('e1 orders', 100)[i % 100]}",
            "SK": f"LINE#{i // 100 + 1}",
            "type": "Line",
            "sku": f"{r.getrandbits(40):010x}",
            "qty": r.randint(1, 9),
        },
    ),
    found=("E1",),
    traps={"A15": "an order has twenty lines"},
)

case(
    "second: versions of documents as v9 and v10",
    "planted",
    Schema("doc", "rev"),
    items=rows(
        1800,
        lambda r, now, i: {
            "doc": uuids("e1 docs", 120)[i % 120],
            "rev": f"v{i // 120 + 1}",
            "author": words.name(r),
            "sha": f"{r.getrandbits(160):040x}",
        },
    ),
    found=("E1",),
)

case(
    "second: Kapitel eines Buches",
    "planted",
    Schema("buch", "teil"),
    items=rows(
        1600,
        lambda r, now, i: {
            "buch": f"978{hexes('books', 80, 8)[i % 80]}",
            "teil": f"kapitel/{i // 80 + 1}/seite/{r.randint(1, 400)}",
            "text": words.some(r, 80, 600),
        },
    ),
    found=("E1",),
)

case(
    "second: board of scores in text",
    "planted",
    Schema("gamer", None, (gsi("board", "boardId", "rank"),)),
    items=rows(
        1500,
        lambda r, now, i: {
            "gamer": words.uuid(r),
            "boardId": f"board-{r.choice(hexes('boards', 40, 4))}",
            "rank": f"SCORE#{int(r.random() ** 2 * 120000)}",
        },
    ),
    found=("E1 board",),
)

case(
    "second: releases of packages by dotted version",
    "planted",
    Schema("package", "release"),
    items=rows(
        1500,
        lambda r, now, i: {
            "package": f"npm:{hexes('packages', 100, 6)[i % 100]}",
            "release": f"{i // 100 // 5 + 1}.{i // 100 * 3 % 14}.{r.randrange(30)}",
            "publishedAt": words.iso(past(r, now, 2000)),
        },
    ),
    found=("E1",),
)

# Constraint items


def members(seed, count, lost, mark="#", tags=("USER", "EMAIL"), refer="userId", kinds=True):
    """Users, and an item that reserves each one's mail; a share `lost` of the users is gone."""

    def items(chance: Random, now: float) -> Iterator[Item]:
        for user in uuids(seed, count):
            mail = f"{user[:8]}@mail.example"
            if chance.random() >= lost:
                yield {
                    "PK": f"{tags[0]}{mark}{user}",
                    "SK": f"{tags[0]}{mark}{user}",
                    "email": mail,
                    "name": words.name(chance),
                    "joined": words.iso(past(chance, now, 900)),
                    **({"entity": tags[0].title()} if kinds else {}),
                }
            yield {
                "PK": f"{tags[1]}{mark}{mail}",
                "SK": f"{tags[1]}{mark}{mail}",
                refer: user,
                **({"entity": tags[1].title()} if kinds else {}),
            }

    return items


case(
    "second: users with mails of the deleted",
    "planted",
    Schema("PK", "SK"),
    items=members("e2 a", 600, 0.08),
    found=("E2",),
    traps={"A2": "USER# and EMAIL# tell the kinds", "A18": "`entity` names the kind"},
)

case(
    "second: members with nicknames of the deleted",
    "planted",
    Schema("PK", "SK"),
    items=members("e2 b", 500, 0.15, ":", ("MEMBER", "NICKNAME"), "ownerId"),
    found=("E2",),
)

case(
    "second: clients with tax numbers of the deleted",
    "planted",
    Schema("PK", "SK"),
    items=members("e2 c", 700, 0.05, "|", ("CLIENT", "TAXID"), "clientId", kinds=False),
    found=("E2", "A18"),
)

case(
    "second: players with handles of the deleted",
    "planted",
    Schema("PK", "SK"),
    items=members("e2 d", 450, 0.25, "#", ("PLAYER", "HANDLE"), "playerId"),
    found=("E2",),
)

case(
    "second: students with mails of the deleted",
    "planted",
    Schema("PK", "SK"),
    items=members("e2 e", 800, 0.04, "/", ("STUDENT", "MAIL"), "studentId"),
    found=("E2",),
)

case(
    "second: users whose mails are all there",
    "clean",
    Schema("PK", "SK"),
    items=members("e2 f", 600, 0.0),
    traps={"E2": "each constraint has its user", "A2": "the keys have tags"},
)


def invited(chance: Random, now: float) -> Iterator[Item]:
    yield from members("e2 g", 400, 0.0)(chance, now)
    for _ in range(120):
        mail = f"{chance.getrandbits(40):010x}@mail.example"
        yield {
            "PK": f"INVITE#{mail}",
            "SK": f"INVITE#{mail}",
            "entity": "Invite",
            "email": mail,
            "invitedBy": chance.choice(uuids("e2 g", 400)),
        }


case(
    "second: users and invitations",
    "decoy",
    Schema("PK", "SK"),
    items=invited,
    traps={"E2": "an invitation has no user yet, that is its sense", "A18": "`entity`"},
)

case(
    "second: subscribers by mail",
    "decoy",
    Schema("pk"),
    items=rows(
        1100,
        lambda r, now, i: {
            "pk": f"EMAIL#{r.getrandbits(40):010x}@mail.example",
            "confirmed": r.random() < 0.8,
            "lists": ["news"],
        },
    ),
    traps={"E2": "the mail is the subscriber itself; there is no other item", "A2": "one kind"},
)


def soft_deleted(chance: Random, now: float) -> Iterator[Item]:
    for item in members("e2 h", 550, 0.0)(chance, now):
        gone = item["entity"] == "User" and chance.random() < 0.1
        yield {**item, **({"deletedAt": words.iso(now), "status": "deleted"} if gone else {})}


case(
    "second: users that are only marked as deleted",
    "decoy",
    Schema("PK", "SK"),
    items=soft_deleted,
    traps={"E2": "the marked user is still there, and its mail stays reserved on purpose"},
)

# Indexes that copy and cost


def letters(least, most, **more):
    """Letters with bodies, of one attribute `folder` and `mailbox` that indexes use."""
    return rows(
        320,
        lambda r, now, i: {
            "letterId": words.uuid(r),
            "mailbox": r.choice(hexes("mailboxes", 90, 6)),
            "folder": f"{r.choice(hexes('mailboxes', 90, 6))}:{r.choice(['in', 'out', 'bin'])}",
            "at": words.iso(past(r, now, 90)),
            "body": words.some(r, least, most),
            **more,
        },
    )


def copying(index, writes, reads, index_writes):
    """Metrics of a table and one index of it, in units a minute."""
    return (
        Metric("ConsumedWriteCapacityUnits", writes),
        Metric("ConsumedReadCapacityUnits", writes / 2),
        Metric("ConsumedWriteCapacityUnits", index_writes, index=index),
        Metric("ConsumedReadCapacityUnits", reads, index=index),
    )


BODIES = {"A13": "bodies of several KB, which are what this table is for"}

case(
    "second: letters copied whole into an index that is not read",
    "planted",
    Schema("letterId", None, (gsi("mailbox-index", "mailbox", "at"),)),
    items=letters(5000, 9000),
    metrics=copying("mailbox-index", 12000, 0.3, 12000),
    found=("I2 mailbox-index",),
    allowed=BODIES,
)

case(
    "second: letters by folder, whole",
    "planted",
    Schema("letterId", None, (gsi("folder", "folder", "at"),)),
    items=letters(7000, 12000, lang="en"),
    metrics=copying("folder", 30000, 2, 30000),
    found=("I2 folder",),
    allowed=BODIES,
)

case(
    "second: medical reports copied by doctor",
    "planted",
    Schema("report", None, (gsi("byDoctor", "doctor", "signedAt:N"),)),
    items=rows(
        320,
        lambda r, now, i: {
            "report": words.ksuid(past(r, now, 90), r),
            "doctor": r.choice(hexes("i2 doctors", 70, 6)),
            "signedAt": int(past(r, now, 90)),
            "sections": [{"title": words.some(r, 9, 30), "text": words.text(r, 1200)}] * 6,
        },
    ),
    metrics=copying("byDoctor", 8000, 0.05, 8000),
    found=("I2 byDoctor",),
    allowed=BODIES,
)

case(
    "second: game states copied by server",
    "planted",
    Schema("match", None, (gsi("server-ix", "server", "startedAt"),)),
    items=rows(
        320,
        lambda r, now, i: {
            "match": words.uuid(r),
            "server": f"eu-{r.choice(hexes('i2 servers', 50, 4))}",
            "startedAt": words.iso(past(r, now, 3)),
            "state": r.randbytes(r.randint(6000, 9000)),
            "tick": r.randint(1, 90000),
        },
    ),
    stream=updates(3000, 60, lambda r, at, old: {"tick": old["tick"] + 1}),
    metrics=copying("server-ix", 24000, 1, 24000),
    found=("I2 server-ix",),
    allowed=BODIES,
    traps={"A8": "each match counts its own ticks"},
)

case(
    "second: job payloads copied by customer",
    "planted",
    Schema("job", None, (gsi("customer_idx", "customer", "queued"),)),
    items=rows(
        320,
        lambda r, now, i: {
            "job": f"job_{r.getrandbits(64):016x}",
            "customer": r.choice(hexes("i2 customers", 120, 6)),
            "queued": words.iso(past(r, now, 9)),
            "payload": words.some(r, 4500, 9000),
        },
    ),
    metrics=copying("customer_idx", 15000, 0, 15000),
    found=("I2 customer_idx",),
    allowed=BODIES,
)

case(
    "second: small letters copied whole",
    "decoy",
    Schema("letterId", None, (gsi("mailbox-index", "mailbox", "at"),)),
    items=letters(40, 200),
    metrics=copying("mailbox-index", 3000, 0.2, 3000),
    traps={"I2 mailbox-index": "items of 300 bytes: a copy costs the least that there is"},
)

case(
    "second: letters whose index is read all day",
    "decoy",
    Schema("letterId", None, (gsi("mailbox-index", "mailbox", "at"),)),
    items=letters(5000, 9000),
    metrics=copying("mailbox-index", 6000, 90000, 6000),
    allowed=BODIES,
    traps={"I2 mailbox-index": "it is read fifteen times as much as it is written"},
)

case(
    "second: letters of which the index has keys only",
    "decoy",
    Schema("letterId", None, (gsi("mailbox-index", "mailbox", "at", "KEYS_ONLY"),)),
    items=letters(5000, 9000),
    metrics=copying("mailbox-index", 12000, 0.2, 1500),
    allowed=BODIES,
    traps={"I2 mailbox-index": "only keys are copied"},
)

case(
    "second: letters that are hardly written",
    "decoy",
    Schema("letterId", None, (gsi("mailbox-index", "mailbox", "at"),)),
    items=letters(5000, 9000),
    metrics=copying("mailbox-index", 0.4, 0.2, 0.4),
    allowed=BODIES,
    traps={"I2 mailbox-index": "an archive: some writes an hour"},
)

case(
    "second: letters of which the index includes a subject",
    "decoy",
    Schema(
        "letterId", None, (gsi("mailbox-index", "mailbox", "at", "INCLUDE", "subject", "read"),)
    ),
    items=letters(5000, 9000, subject="Re: hello", read=False),
    metrics=copying("mailbox-index", 12000, 3, 1600),
    allowed=BODIES,
    traps={"I2 mailbox-index": "two short attributes are copied"},
)


def parcels(names, size=(10, 60)):
    """Parcels with an attribute for each of the indexes, of ids or of the time."""
    return rows(
        900,
        lambda r, now, i: {
            "parcel": words.uuid(r),
            "changedAt": words.iso(past(r, now, 9)),
            **{name: r.choice(hexes(f"i3 {name}", 150, 6)) for name in names},
            "note": words.some(r, *size),
        },
    )


def costs(table, **indexes):
    """Write units a minute of a table and its indexes, each read well."""
    return (
        Metric("ConsumedWriteCapacityUnits", table),
        Metric("ConsumedReadCapacityUnits", table * 3),
        *(Metric("ConsumedWriteCapacityUnits", n, index=name) for name, n in indexes.items()),
        *(Metric("ConsumedReadCapacityUnits", n * 2, index=name) for name, n in indexes.items()),
    )


def moved(a_minute, *names):
    """Changes of the attributes that are keys of indexes: a delete and a put in each."""
    return updates(
        1500,
        1500 / a_minute * 60,
        lambda r, at, old: {
            "changedAt": words.iso(at),
            **{name: f"{r.getrandbits(24):06x}" for name in names},
        },
    )


case(
    "second: parcels of which each move changes three indexes",
    "planted",
    Schema("parcel", None, tuple(gsi(n, n, "changedAt") for n in ("truck", "depot", "route"))),
    items=parcels(["truck", "depot", "route"]),
    stream=moved(6000, "truck", "depot", "route"),
    metrics=costs(6000, truck=12000, depot=12000, route=12000),
    found=("I3",),
)

case(
    "second: beds of wards with four indexes by time of change",
    "planted",
    Schema(
        "parcel",
        None,
        tuple(gsi(f"{n}-x", n, "changedAt") for n in ("ward", "nurse", "doctor", "device")),
    ),
    items=parcels(["ward", "nurse", "doctor", "device"]),
    stream=moved(3000, "nurse"),
    metrics=costs(3000, **{"ward-x": 6000, "nurse-x": 6000, "doctor-x": 6000, "device-x": 6000}),
    found=("I3",),
    allowed={"A7": "four indexes, arguably many"},
)

case(
    "second: adverts with six indexes",
    "planted",
    Schema(
        "parcel",
        None,
        tuple(gsi(n, n, "changedAt") for n in ("seller", "brand", "area", "shelf", "lot", "tag")),
    ),
    items=parcels(["seller", "brand", "area", "shelf", "lot", "tag"]),
    stream=moved(2400, "shelf"),
    metrics=costs(2400, seller=4800, brand=4800, area=4800, shelf=4800, lot=4800, tag=4800),
    found=("I3", "A7"),
)

case(
    "second: positions of vessels in two indexes by cell",
    "planted",
    Schema(
        "parcel", None, (gsi("cell6", "cell6", "changedAt"), gsi("cell4", "cell4", "changedAt"))
    ),
    items=parcels(["cell6", "cell4"]),
    stream=moved(18000, "cell6", "cell4"),
    metrics=costs(18000, cell6=36000, cell4=36000),
    found=("I3",),
)

case(
    "second: meters with three indexes by last reading",
    "planted",
    Schema(
        "parcel", None, tuple(gsi(f"by-{n}", n, "changedAt") for n in ("grid", "feeder", "flat"))
    ),
    items=parcels(["grid", "feeder", "flat"]),
    stream=moved(4500),
    metrics=costs(4500, **{"by-grid": 9000, "by-feeder": 9000, "by-flat": 9000}),
    found=("I3",),
)

case(
    "second: parcels with three indexes that updates do not touch",
    "decoy",
    Schema(
        "parcel", None, tuple(gsi(n, n, None, "KEYS_ONLY") for n in ("truck", "depot", "route"))
    ),
    items=parcels(["truck", "depot", "route"]),
    stream=moved(6000),
    metrics=costs(6000, truck=300, depot=300, route=300),
    traps={"I3": "only new parcels write the indexes, for they have keys alone"},
)

case(
    "second: parcels with one index",
    "decoy",
    Schema("parcel", None, (gsi("truck", "truck"),)),
    items=parcels(["truck"]),
    metrics=costs(6000, truck=5200),
    traps={"I3": "the index costs less than the table"},
)

case(
    "second: parcels whose indexes are read much",
    "decoy",
    Schema("parcel", None, (gsi("truck", "truck"), gsi("depot", "depot", None, "KEYS_ONLY"))),
    items=parcels(["truck", "depot"]),
    metrics=(
        *costs(6000, truck=2000),
        Metric("ConsumedWriteCapacityUnits", 400, index="depot"),
        Metric("ConsumedReadCapacityUnits", 60000, index="depot"),
    ),
    traps={"I3": "the indexes cost reads, not writes"},
)

case(
    "second: parcels with sparse indexes of claims",
    "decoy",
    Schema("parcel", None, (gsi("claim", "claimOf", "changedAt"), gsi("lost", "lostAt"))),
    items=joined(
        parcels(["truck"]),
        rows(
            40,
            lambda r, now, i: {
                "parcel": words.uuid(r),
                "changedAt": words.iso(past(r, now, 9)),
                "truck": "none",
                "claimOf": f"{r.getrandbits(32):08x}",
                "lostAt": r.choice(hexes("places", 20, 4)),
                "note": "missing",
            },
        ),
    ),
    metrics=costs(6000, claim=120, lost=60),
    traps={
        "I3": "few items are in the indexes",
        "I1 claim": "it is sparse",
        "A2": "parcels of one kind, some of them with a claim",
    },
)

case(
    "second: parcels of a quiet depot with four indexes",
    "decoy",
    Schema("parcel", None, tuple(gsi(n, n) for n in ("truck", "depot", "route", "crew"))),
    items=parcels(["truck", "depot", "route", "crew"]),
    metrics=costs(2, truck=1, depot=0.2, route=0.2, crew=0.2),
    allowed={"A7": "four indexes, arguably many"},
    traps={"I3": "two writes a minute, and less in the indexes"},
)

# Hot keys


def shape(seed: str) -> int:
    """Which of four ways a table of traffic has of naming its key and of writing its ids."""
    return crc32(seed.encode()) % 4


def key_of(seed: str) -> str:
    return ("pk", "userId", "ID", "objekt")[shape(seed)]


@cache
def ids(seed: str, count: int) -> list[str]:
    known = hexes(seed, count)
    if shape(seed) == 0:
        return [f"USER#{one}" for one in known]
    if shape(seed) == 1:
        return uuids(seed, count)
    return [one.upper() for one in known] if shape(seed) == 2 else [f"o/{one}" for one in known]


def entities(seed, count=900, size=(20, 90)):
    """Items of one kind with random ids, which only their traffic makes interesting."""
    extra = (
        lambda r: {"score": r.randint(0, 900), "tags": ["a", "b"]},
        lambda r: {"city": r.choice(words.CITIES), "active": r.random() < 0.7},
        lambda r: {"price": r.randint(1, 9999), "size": {"w": r.randint(1, 90), "h": 4}},
        lambda r: {"stand": r.randint(1, 90), "typ": "zaehler"},
    )[shape(seed)]
    return rows(
        count,
        lambda r, now, i: {
            key_of(seed): ids(seed, count)[i],
            "name": words.name(r),
            "changed": words.iso(past(r, now, 30)),
            "about": words.some(r, *size),
            **extra(r),
        },
    )


def warmed(seed, first, rest=40.0, pool=900):
    """Insights of such a table: the first key's units a minute, and those of the others."""
    return tuple(
        Contributor("PKC", (one,), first if n == 0 else rest * (1 - n / 40))
        for n, one in enumerate(ids(seed, pool)[:10])
    )


def heat(seed, first, rest=40.0, kind="PKC", count=10, index="", width=12, pool=900):
    """Insights of a table: the first key's units a minute, and those of the others."""
    return tuple(
        Contributor(kind, (one,), first if n == 0 else rest * (1 - n / 40), index=index)
        for n, one in enumerate(hexes(seed, pool, width)[:count])
    )


case(
    "second: profile of a star that all read",
    "planted",
    Schema(key_of("h1 star")),
    items=entities("h1 star"),
    metrics=(
        Metric("ConsumedReadCapacityUnits", 230_000, busy=(1020, 1380)),
        Metric("ConsumedWriteCapacityUnits", 600),
    ),
    insights=warmed("h1 star", 171_000, 900),
    found=("H1",),
)

case(
    "second: room of a live show that all write to",
    "planted",
    Schema("room", "message", ttl="purge"),
    items=rows(
        2500,
        lambda r, now, i: (
            lambda at: {
                "room": hexes("h1 show", 900)[int(r.random() ** 2 * 900)],
                "message": words.uuid(r),
                "text": words.some(r, 2, 90),
                "purge": int(at + 2 * DAY),
            }
        )(past(r, now, 1.8)),
    ),
    metrics=(
        Metric("ConsumedWriteCapacityUnits", 78_000),
        Metric("WriteThrottleEvents", 900),
        Metric("WriteKeyRangeThroughputThrottleEvents", 900),
    ),
    insights=(
        *heat("h1 show", 58_000, 300),
        Contributor("PKT", (hexes("h1 show", 900)[0],), 880),
    ),
    found=("H1",),
    traps={
        "H4": "the throttles are of one key, as the insights tell",
        "H2": "the sort keys are random: a split would help",
        "A15": "messages expire after two days",
    },
)

case(
    "second: venue of a concert in the index",
    "planted",
    Schema("ticket", None, (gsi("venue", "venueId", "soldAt"),)),
    items=rows(
        1800,
        lambda r, now, i: {
            "ticket": words.uuid(r),
            "venueId": r.choice(hexes("h1 venue", 300)),
            "soldAt": f"{words.iso(past(r, now, 60))}/{r.getrandbits(20):05x}",
            "price": r.choice([39, 59, 99]),
        },
    ),
    metrics=(
        Metric("ConsumedWriteCapacityUnits", 66_000, busy=(600, 720)),
        Metric("ConsumedWriteCapacityUnits", 66_000, "venue", busy=(600, 720)),
    ),
    insights=heat("h1 venue", 54_000, 200, index="venue", pool=300),
    found=("H1 venue",),
)

case(
    "second: settings of an app in one item that each request reads",
    "planted",
    Schema(key_of("h1 config")),
    items=entities("h1 config", 400),
    metrics=(Metric("ConsumedReadCapacityUnits", 190_000), Metric("ConsumedWriteCapacityUnits", 9)),
    insights=warmed("h1 config", 178_000, 60, pool=400),
    found=("H1",),
)

case(
    "second: auction that ends, with all bids at one lot",
    "planted",
    Schema("lot", "bidder"),
    items=rows(
        2200,
        lambda r, now, i: {
            "lot": hexes("h1 lots", 400)[int(r.random() ** 2 * 400)],
            "bidder": words.uuid(r),
            "cents": r.randint(100, 90000),
        },
    ),
    metrics=(Metric("ConsumedWriteCapacityUnits", 62_000, busy=(1080, 1140)),),
    insights=heat("h1 lots", 56_000, 150, pool=400),
    found=("H1",),
    traps={"H2": "bidders are random", "A15": "a lot's bids end with the auction"},
)

case(
    "second: most read of many articles",
    "decoy",
    Schema(key_of("h1 decoy a")),
    items=entities("h1 decoy a"),
    metrics=(Metric("ConsumedReadCapacityUnits", 240_000),),
    insights=warmed("h1 decoy a", 7_000, 6_500),
    traps={"H1": "the first key takes 3 % of the reads, and 4 % of a partition's limit"},
)

case(
    "second: one key of a small tool",
    "decoy",
    Schema(key_of("h1 decoy b")),
    items=entities("h1 decoy b", 320),
    metrics=(Metric("ConsumedReadCapacityUnits", 300), Metric("ConsumedWriteCapacityUnits", 60)),
    insights=warmed("h1 decoy b", 270, 3, pool=320),
    traps={"H1": "nine tenths of the traffic, but five units a second"},
)

case(
    "second: key with a minute's burst",
    "decoy",
    Schema(key_of("h1 decoy c")),
    items=entities("h1 decoy c", 700),
    metrics=(Metric("ConsumedWriteCapacityUnits", 9_000),),
    insights=(
        *warmed("h1 decoy c", 500, 400, pool=700),
        Contributor("PKC", (ids("h1 decoy c", 700)[60],), 14_000, minutes=1, ago=40_000.0),
    ),
    traps={"H1": "a quarter of the limit, for a minute, half a day ago"},
)

case(
    "second: carts in the evening",
    "clean",
    Schema(key_of("h1 decoy d")),
    items=entities("h1 decoy d", 1200),
    metrics=(
        Metric("ConsumedWriteCapacityUnits", 90_000, busy=(1080, 1320)),
        Metric("ConsumedReadCapacityUnits", 150_000, busy=(1080, 1320)),
    ),
    insights=warmed("h1 decoy d", 260, 250, pool=1200),
    traps={"H1": "much traffic, which 1,200 keys share", "H5": "each evening the same"},
)

case(
    "second: largest customer of a warehouse",
    "decoy",
    Schema("customer", "stockItem"),
    items=rows(
        2400,
        lambda r, now, i: {
            "customer": hexes("h1 decoy e", 300)[int(r.random() ** 3 * 300)],
            "stockItem": f"bin|{r.getrandbits(48):012x}",
            "pieces": r.randint(0, 900),
        },
    ),
    metrics=(Metric("ConsumedWriteCapacityUnits", 18_000),),
    insights=heat("h1 decoy e", 4_000, 900, pool=300),
    traps={
        "H1": "67 writes a second to the largest, of a thousand that go",
        "A15": "bins of a warehouse are a bounded set",
    },
)

# A split cannot help


def growing(seed, hot_share, key="pk", sort="sk", width=12, make=None, ttl=None):
    """New items at the end of collections; `hot_share` of them in the first one."""

    def one(chance: Random, at: float, number: int) -> Item:
        pool = hexes(seed, 400, width)
        place = 0 if chance.random() < hot_share else chance.randrange(1, 400)
        return {
            key: pool[place],
            sort: make(at, number, chance) if make else f"{words.iso(at)}#{number:05d}",
            "value": chance.randint(1, 900),
            **({ttl: int(at + 3 * DAY)} if ttl else {}),
        }

    return one


def collections(seed, key="pk", sort="sk", hot=700, width=12, make=None, ttl=None):
    """400 collections, of which the first is the largest; the items of the last hours."""

    def items(chance: Random, now: float) -> Iterator[Item]:
        for number in range(hot + 1600):
            pool = hexes(seed, 400, width)
            at = now - (hot + 1600 - number) * 20
            yield {
                key: pool[0 if number % (hot + 1600) < hot else number % 400],
                sort: make(at, number, chance) if make else f"{words.iso(at)}#{number:05d}",
                "value": chance.randint(1, 900),
                **({ttl: int(at + 3 * DAY)} if ttl else {}),
            }

    return items


HOT_END = {"H7": "the hot key's partition takes most writes: the same fault as H1"}


def epoch_end(at, number, chance):
    return int(at * 1000) * 10 + number % 10


def ulid_end(at, number, chance):
    return words.ulid(at, chance)


for name, seed, key, sort, make, ttl in (
    ("messages at the end of a hot room", "h2 a", "roomId", "sentAt", None, "purgeAt"),
    ("readings at the end of a busy gateway", "h2 b", "gateway", "ms:N", epoch_end, "expire"),
    ("bids at the end of a hot auction", "h2 c", "auction", "bid", ulid_end, "ttl"),
    ("clicks of a large campaign in order", "h2 d", "campaign", "click", ulid_end, "gone"),
    ("log lines of one service in order", "h2 e", "service", "line", None, "drop"),
):
    attribute = sort.partition(":")[0]
    case(
        f"second: {name}",
        "planted",
        Schema(key, sort, ttl=ttl),
        items=collections(seed, key, attribute, make=make, ttl=ttl),
        stream=inserts(4500, 5, growing(seed, 0.92, key, attribute, make=make, ttl=ttl)),
        metrics=(
            Metric("ConsumedWriteCapacityUnits", 54_000),
            Metric("WriteThrottleEvents", 700),
            Metric("WriteKeyRangeThroughputThrottleEvents", 700),
        ),
        insights=(
            *heat(seed, 49_500, 30, pool=400),
            Contributor("PKT", (hexes(seed, 400)[0],), 690),
        ),
        found=("H1", "H2"),
        allowed=HOT_END,
        traps={"H4": "one key is throttled, not the table", "A15": "items expire in three days"},
    )


def random_end(at, number, chance):
    return words.uuid(chance)


case(
    "second: likes of a hot video by user",
    "planted",
    Schema("video", "user", ttl="forget"),
    items=collections("h2 x", "video", "user", make=random_end, ttl="forget"),
    stream=inserts(4500, 5, growing("h2 x", 0.92, "video", "user", make=random_end, ttl="forget")),
    metrics=(Metric("ConsumedWriteCapacityUnits", 54_000),),
    insights=heat("h2 x", 49_500, 30, pool=400),
    found=("H1",),
    allowed=HOT_END,
    traps={
        "H2": "users are random: a split of the collection spreads them",
        "A15": "likes are forgotten after three days",
    },
)

case(
    "second: readings in order over many even gateways",
    "decoy",
    Schema("gateway", "at", ttl="expire"),
    items=collections("h2 y", "gateway", "at", hot=6, ttl="expire"),
    stream=inserts(4500, 5, growing("h2 y", 0.0025, "gateway", "at", ttl="expire")),
    metrics=(Metric("ConsumedWriteCapacityUnits", 54_000),),
    insights=heat("h2 y", 150, 145, pool=400),
    traps={
        "H2": "each collection is written at its end, but none is hot",
        "H1": "400 keys share the writes",
        "H7": "even",
        "A15": "items expire in three days",
    },
)

case(
    "second: seats of a hot concert",
    "planted",
    Schema("concert", "seat"),
    items=rows(
        2600,
        lambda r, now, i: {
            "concert": hexes("h2 z", 400)[0 if i < 1000 else 1 + (i - 1000) // 8],
            "seat": f"{i % 1000 // 40:02d}-{i % 40:02d}",
            "state": "free",
        },
    ),
    stream=updates(
        4500,
        5,
        lambda r, at, old: {"state": r.choice(["held", "sold", "free"])},
        lambda item: item["concert"] == hexes("h2 z", 400)[0],
        0.9,
    ),
    metrics=(Metric("ConsumedWriteCapacityUnits", 54_000),),
    insights=heat("h2 z", 48_800, 30, pool=400),
    found=("H1",),
    allowed=HOT_END,
    traps={
        "H2": "updates all over the collection, none at its end",
        "A15": "a hall has so many seats",
    },
)


def capacity(read, write):
    return {
        **PROVISIONED,
        "ProvisionedThroughput": {
            "ReadCapacityUnits": read,
            "WriteCapacityUnits": write,
            "NumberOfDecreasesToday": 0,
        },
    }


def index_units(index, table, given):
    """Of DescribeTable: a table and its index by owner, each with its write units."""
    return {
        **capacity(500, int(table)),
        "GlobalSecondaryIndexes": [
            {
                "IndexName": index,
                "KeySchema": [
                    {"AttributeName": "owner", "KeyType": "HASH"},
                    {"AttributeName": "since", "KeyType": "RANGE"},
                ],
                "Projection": {"ProjectionType": "ALL"},
                "IndexStatus": "ACTIVE",
                "ProvisionedThroughput": {
                    "ReadCapacityUnits": 500,
                    "WriteCapacityUnits": int(given),
                    "NumberOfDecreasesToday": 0,
                },
                "IndexSizeBytes": 190_000,
                "ItemCount": 900,
            }
        ],
    }


# Indexes that hold writes back


def held(index, table, given, wants, throttled):
    """Metrics of a provisioned table of which an index has `given` write units a second."""
    return (
        Metric("ConsumedWriteCapacityUnits", table * 60),
        Metric("ProvisionedWriteCapacityUnits", table * 1.5),
        Metric("ConsumedWriteCapacityUnits", wants * 60, index),
        Metric("ProvisionedWriteCapacityUnits", given, index),
        Metric("ConsumedReadCapacityUnits", wants * 90, index),
        *((Metric("WriteThrottleEvents", throttled, index),) if throttled else ()),
        *((Metric("WriteThrottleEvents", throttled),) if throttled else ()),
    )


def indexed(seed):
    """Items with an index by owner."""
    return rows(
        900,
        lambda r, now, i: {
            "pk": hexes(seed, 900)[i],
            "owner": r.choice(hexes(f"{seed} owners", 200)),
            "since": words.iso(past(r, now, 90)),
            "data": words.some(r, 20, 200),
        },
    )


for name, seed, index, table, given, throttled in (
    ("subscriptions whose index has too few units", "h3 a", "owner-index", 400, 100, 600),
    ("policies whose index is starved", "h3 b", "byOwner", 200, 25, 2000),
    ("shipments whose index was set by hand", "h3 c", "GSI1", 90, 40, 120),
    ("licences whose index scales late", "h3 d", "ownerIx", 300, 220, 90),
):
    case(
        f"second: {name}",
        "planted",
        Schema("pk", None, (gsi(index, "owner", "since"),)),
        items=indexed(seed),
        metrics=held(index, table, given, given * 0.98, throttled),
        overlay=index_units(index, table * 1.5, given),
        found=(f"H3 {index}",),
        traps={"H4": "the table has units to spare; its index refuses the writes"},
    )

case(
    "second: orders of an on-demand table held back by their index",
    "planted",
    Schema("pk", None, (gsi("owner", "owner", "since"),)),
    items=indexed("h3 e"),
    metrics=(
        Metric("ConsumedWriteCapacityUnits", 50_000),
        Metric("ConsumedWriteCapacityUnits", 50_000, "owner"),
        Metric("ConsumedReadCapacityUnits", 80_000, "owner"),
        Metric("WriteThrottleEvents", 900),
        Metric("WriteThrottleEvents", 900, "owner"),
        Metric("WriteKeyRangeThroughputThrottleEvents", 900, "owner"),
    ),
    insights=(
        Contributor("PKC", (hexes("h3 e owners", 200)[0],), 47_000, index="owner"),
        Contributor("PKT", (hexes("h3 e owners", 200)[0],), 890, index="owner"),
    ),
    overlay=ON_DEMAND,
    found=("H3 owner", "H1 owner"),
    traps={"H4": "a key of the index is throttled"},
)

for name, seed, metrics, units, trap in (
    (
        "subscriptions whose index has few units but few items",
        "h3 f",
        held("byOwner", 400, 50, 8, 0),
        (600, 50),
        "it needs 8 of 50 units",
    ),
    (
        "policies whose index is near to its units",
        "h3 g",
        held("byOwner", 200, 400, 198, 0),
        (300, 400),
        "half of its units are used",
    ),
    (
        "shipments whose index is throttled at reads",
        "h3 h",
        (
            *held("byOwner", 90, 120, 60, 0),
            Metric("ReadThrottleEvents", 50, "byOwner"),
            Metric("ProvisionedReadCapacityUnits", 60, "byOwner"),
        ),
        (135, 120),
        "reads are throttled, which refuses no writes",
    ),
    (
        "licences whose index was throttled once",
        "h3 i",
        (
            *held("byOwner", 90, 120, 60, 0),
            Metric("WriteThrottleEvents", 1, "byOwner", busy=(610, 611), since=11 * DAY),
        ),
        (135, 120),
        "a minute each day until eleven days ago, and none since",
    ),
    (
        "orders that are throttled, and their index is not",
        "h3 j",
        (
            Metric("ConsumedWriteCapacityUnits", 2_990),
            Metric("ProvisionedWriteCapacityUnits", 50),
            Metric("WriteThrottleEvents", 300),
            Metric("WriteProvisionedThroughputThrottleEvents", 300),
            Metric("ConsumedWriteCapacityUnits", 2_900, "byOwner"),
            Metric("ProvisionedWriteCapacityUnits", 200, "byOwner"),
        ),
        (50, 200),
        "the table itself is short",
    ),
):
    case(
        f"second: {name}",
        "planted" if seed == "h3 j" else "decoy",
        Schema("pk", None, (gsi("byOwner", "owner", "since"),)),
        items=indexed(seed),
        metrics=metrics,
        overlay=index_units("byOwner", *units),
        found=("H4",) if seed == "h3 j" else (),
        allowed={"H4": "reads of the index are throttled for its units"} if seed == "h3 h" else {},
        traps={"H3 byOwner": trap},
    )

# Throttled, but not by keys


def short(kind, cause, events, units, given, busy=(0, 1440)):
    """Metrics of a table that is throttled for its capacity, or an account's."""
    return (
        Metric(f"Consumed{kind}CapacityUnits", units * 60, busy=busy),
        *((Metric(f"Provisioned{kind}CapacityUnits", given),) if given else ()),
        Metric(f"{kind}ThrottleEvents", events, busy=busy),
        Metric(f"{kind}{cause}ThrottleEvents", events, busy=busy),
    )


case(
    "second: students with ten write units",
    "planted",
    Schema(key_of("h4 a")),
    items=entities("h4 a"),
    metrics=short("Write", "ProvisionedThroughput", 240, 9.9, 10),
    insights=warmed("h4 a", 4, 4),
    overlay=capacity(50, 10),
    found=("H4",),
    traps={"H1": "no key has more than the others"},
)

case(
    "second: catalogue whose reads outgrew its units",
    "planted",
    Schema(key_of("h4 b")),
    items=entities("h4 b"),
    metrics=short("Read", "ProvisionedThroughput", 1500, 398, 400, (480, 1200)),
    insights=warmed("h4 b", 60, 58),
    overlay=capacity(400, 100),
    found=("H4",),
)

case(
    "second: events above their own on-demand maximum",
    "planted",
    Schema(key_of("h4 c")),
    items=entities("h4 c"),
    metrics=short("Write", "MaxOnDemandThroughput", 3000, 199, 0),
    insights=warmed("h4 c", 30, 29),
    overlay={
        **ON_DEMAND,
        "OnDemandThroughput": {"MaxReadRequestUnits": 1000, "MaxWriteRequestUnits": 200},
    },
    found=("H4",),
)

case(
    "second: clicks at the limit of the account",
    "planted",
    Schema(key_of("h4 d")),
    items=entities("h4 d", 1200),
    metrics=short("Write", "AccountLimit", 20_000, 39_500, 0, (1140, 1200)),
    insights=warmed("h4 d", 900, 890, pool=1200),
    overlay={
        **ON_DEMAND,
        "WarmThroughput": {
            "ReadUnitsPerSecond": 60_000,
            "WriteUnitsPerSecond": 80_000,
            "Status": "ACTIVE",
        },
    },
    found=("H4",),
    traps={"H5": "warm for 80,000 writes a second; the account allows 40,000"},
)

case(
    "second: export of the night that takes all read units",
    "planted",
    Schema(key_of("h4 e")),
    items=entities("h4 e"),
    metrics=short("Read", "ProvisionedThroughput", 700, 100, 100, (120, 180)),
    overlay=capacity(100, 20),
    found=("H4",),
    allowed={"H5": "a peak each night that the units do not cover"},
)

case(
    "second: two throttles in a fortnight",
    "decoy",
    Schema(key_of("h4 f")),
    items=entities("h4 f"),
    metrics=(
        Metric("ConsumedWriteCapacityUnits", 3_000),
        Metric("ProvisionedWriteCapacityUnits", 100),
        Metric("WriteThrottleEvents", 1, busy=(300, 301), every_days=7),
    ),
    overlay=capacity(100, 100),
    traps={"H4": "an event a week, which the SDK retried; half of the units are used"},
)

case(
    "second: table with all its units used but no throttles",
    "decoy",
    Schema(key_of("h4 g")),
    items=entities("h4 g"),
    metrics=(
        Metric("ConsumedWriteCapacityUnits", 4_100),
        Metric("ProvisionedWriteCapacityUnits", 100),
    ),
    overlay=capacity(100, 100),
    traps={"H4": "70 % of the units, as its scaling is set to; nothing is refused"},
)

case(
    "second: wallet with conflicts of transactions",
    "decoy",
    Schema(key_of("h4 h")),
    items=entities("h4 h"),
    metrics=(
        Metric("ConsumedWriteCapacityUnits", 9_000),
        Metric("TransactionConflict", 90, operation="TransactWriteItems"),
        Metric("ConditionalCheckFailedRequests", 200),
    ),
    overlay=ON_DEMAND,
    traps={"H4": "conflicts and failed conditions are no throttles"},
)

# Tables that are cold


def warm(read, write):
    return {
        **ON_DEMAND,
        "WarmThroughput": {
            "ReadUnitsPerSecond": read,
            "WriteUnitsPerSecond": write,
            "Status": "ACTIVE",
        },
    }


def peak(kind, usual, height, busy, every=7, events=0):
    """A peak of `height` units a second above the usual."""
    return (
        Metric(f"Consumed{kind}CapacityUnits", usual * 60),
        Metric(f"Consumed{kind}CapacityUnits", height * 60, busy=busy, every_days=every),
        *(
            (Metric(f"{kind}ThrottleEvents", events, busy=busy, every_days=every),)
            if events
            else ()
        ),
        *(
            (
                Metric(
                    f"{kind}KeyRangeThroughputThrottleEvents", events, busy=busy, every_days=every
                ),
            )
            if events
            else ()
        ),
    )


for name, seed, metrics, overlay in (
    (
        "tickets that go on sale each Friday",
        "h5 a",
        peak("Write", 30, 6_800, (600, 612), 7, 9_000),
        warm(12_000, 4_000),
    ),
    (
        "votes of a show on Saturday night",
        "h5 b",
        peak("Write", 5, 11_000, (1260, 1275), 7, 40_000),
        warm(12_000, 4_000),
    ),
    (
        "meters that all report at midnight",
        "h5 c",
        peak("Write", 100, 5_600, (0, 6), 1, 4_000),
        warm(12_000, 4_000),
    ),
    (
        "timetable that all read at eight",
        "h5 d",
        peak("Read", 300, 21_000, (480, 495), 1, 15_000),
        warm(12_000, 4_000),
    ),
    (
        "players that return after the weekly reset",
        "h5 e",
        peak("Write", 400, 9_000, (540, 570), 7, 20_000),
        warm(14_000, 4_600),
    ),
):
    case(
        f"second: {name}",
        "planted",
        Schema(key_of(seed)),
        items=entities(seed, 1100),
        metrics=metrics,
        insights=warmed(seed, 4, 4, pool=1100),
        overlay=overlay,
        found=("H5",),
        allowed={"H4": "throttled in the peak, for the table's lack of warmth: the same"},
        traps={"H1": "1,100 keys share the peak"},
    )

for name, seed, metrics, overlay, trap in (
    (
        "tickets of a small theatre",
        "h5 f",
        peak("Write", 1, 90, (600, 612)),
        warm(12_000, 4_000),
        "90 writes a second of 4,000 that are warm",
    ),
    (
        "votes of a table that was warmed",
        "h5 g",
        peak("Write", 5, 11_000, (1260, 1275)),
        warm(40_000, 30_000),
        "warmed for three times the peak",
    ),
    (
        "steady stream of a large game",
        "h5 h",
        peak("Write", 2_900, 3_100, (1140, 1260), 1),
        warm(24_000, 9_000),
        "the evening is 7 % above the day",
    ),
    (
        "orders with a peak at noon that is served",
        "h5 i",
        peak("Write", 200, 2_400, (700, 760), 1),
        warm(12_000, 4_000),
        "60 % of what is warm",
    ),
):
    case(
        f"second: {name}",
        "decoy",
        Schema(key_of(seed)),
        items=entities(seed, 1000),
        metrics=metrics,
        overlay=overlay,
        traps={"H5": trap},
    )

# Loads in the order of hashes

LOADED = {"H7": "at each moment one partition takes all writes: the same fault"}

for name, seed, seconds, change in (
    ("copy of a table by Scan and BatchWriteItem", "h6 a", 5, None),
    ("backfill of an attribute by Scan", "h6 b", 10, {"schemaVersion": 3}),
    ("restore of an export file by file", "h6 c", 6, None),
    ("backfill of expiry by Scan", "h6 d", 20, {"expiresAt": 1_900_000_000}),
    ("new names for an attribute, by Scan", "h6 e", 8, {"fullName": "x"}),
):
    case(
        f"second: {name}",
        "planted",
        Schema(key_of(seed)),
        items=entities(seed, 3000),
        stream=copied(3000, seconds, key_of(seed), None, change),
        metrics=(Metric("ConsumedWriteCapacityUnits", 3000 / seconds * 60, busy=(0, 1440)),),
        found=("H6",),
        allowed=LOADED,
    )


def by_chance(item):
    return crc32(f"{item['about']} in any order".encode())


for name, seed, seconds, order, change, trap in (
    ("copy of a table that was shuffled first", "h6 f", 5, by_chance, None, "shuffled"),
    (
        "import in the order of names",
        "h6 g",
        10,
        lambda item: (item["name"], item["about"]),
        None,
        "names know nothing of hashes",
    ),
    (
        "backfill in the order of changes",
        "h6 h",
        8,
        lambda item: item["changed"],
        {"schemaVersion": 3},
        "times know nothing of hashes",
    ),
    (
        "import sorted by its random ids",
        "h6 i",
        6,
        lambda item: item[key_of("h6 i")],
        None,
        "the order of the keys' text is not that of their hashes",
    ),
):
    case(
        f"second: {name}",
        "decoy",
        Schema(key_of(seed)),
        items=entities(seed, 3000),
        stream=copied(3000, seconds, key_of(seed), order, change),
        metrics=(Metric("ConsumedWriteCapacityUnits", 3000 / seconds * 60),),
        traps={"H6": trap, "H7": "all partitions take the same"},
    )

case(
    "second: users of a busy day",
    "clean",
    Schema(key_of("h6 j")),
    items=entities("h6 j", 2000),
    stream=updates(3000, 30, lambda r, at, old: {"changed": words.iso(at)}),
    metrics=(Metric("ConsumedWriteCapacityUnits", 6000),),
    traps={"H6": "updates of users as they come", "A8": "no item is updated often"},
)

# Uneven heat

for name, seed, shard, share, changed in (
    ("players of which one partition's are awake", "h7 a", 2, 0.65, "changed"),
    ("parcels of which a part of the keys moves", "h7 b", 4, 0.6, "changed"),
    ("devices of which a range of hashes reports", "h7 c", 0, 0.7, "about"),
    ("carts of an uneven sale", "h7 d", 5, 0.55, "changed"),
    ("wallets of an uneven morning", "h7 e", 1, 0.75, "name"),
):
    case(
        f"second: {name}",
        "planted",
        Schema(key_of(seed)),
        items=entities(seed, 1800),
        stream=updates(
            6000,
            12,
            lambda r, at, old, changed=changed: {changed: words.iso(at)},
            lambda item, shard=shard, seed=seed: shard_of(item[key_of(seed)]) == shard,
            share,
        ),
        metrics=(Metric("ConsumedWriteCapacityUnits", 30_000),),
        found=("H7",),
        traps={
            "H6": "the same partition all the time, not one after the other",
            "A8": "no counter",
        },
    )

case(
    "second: devices of which some report more",
    "decoy",
    Schema(key_of("h7 f")),
    items=entities("h7 f", 1800),
    stream=updates(
        6000,
        12,
        lambda r, at, old: {"changed": words.iso(at)},
        lambda item: str(item[key_of("h7 f")])[-1] in "01",
        0.3,
    ),
    metrics=(Metric("ConsumedWriteCapacityUnits", 30_000),),
    traps={
        "H7": "220 devices of all partitions report more than the others",
        "H1": "no key is hot",
    },
)

# More tables that are published


def lease_table(chance: Random, now: float) -> Iterator[Item]:
    """Leases of the Kinesis Client Library: leaseKey is the shard's name, leaseOwner an index."""
    for shard in range(320):
        yield {
            "leaseKey": f"shardId-{shard:012d}",
            "leaseOwner": f"worker-{hexes('kcl', 24, 8)[shard % 24]}",
            "leaseCounter": chance.randint(1, 90_000),
            "checkpoint": f"{49_600_000_000 + shard}{chance.randrange(10**45):045d}",
            "checkpointSubSequenceNumber": 0,
            "ownerSwitchesSinceCheckpoint": 0,
        }


case(
    "second: leases of the Kinesis Client Library",
    "real",
    Schema(
        "leaseKey", None, (gsi("LeaseOwnerToLeaseKeyIndex", "leaseOwner", "leaseKey", "KEYS_ONLY"),)
    ),
    items=lease_table,
    stream=updates(1920, 60, lambda r, at, old: {"leaseCounter": old["leaseCounter"] + 1}),
    metrics=(Metric("ConsumedWriteCapacityUnits", 1920),),
    traps={
        "A1": "Kinesis names its shards; the table has one small item for each",
        "A8": "each lease counts its own renewals",
        "I1 LeaseOwnerToLeaseKeyIndex": "all owners are asked for",
    },
)


def game_scores(chance: Random, now: float) -> Iterator[Item]:
    """GameScores of the developer guide: UserId, GameTitle, index GameTitleIndex by TopScore."""
    titles = ["Galaxy Invaders", "Meteor Blasters", "Starship X", "Alien Adventure", "Attack Ships"]
    for user in hexes("game scores", 900, 8):
        for place, title in enumerate(titles):
            if chance.random() < (0.2 if place else 0.95):
                yield {
                    "UserId": user,
                    "GameTitle": title,
                    "TopScore": chance.randint(0, 6000),
                    "TopScoreDateTime": words.iso(past(chance, now, 300)),
                    "Wins": chance.randint(0, 90),
                    "Losses": chance.randint(0, 90),
                }


case(
    "second: game scores of the guide",
    "real",
    Schema("UserId", "GameTitle", (gsi("GameTitleIndex", "GameTitle", "TopScore:N"),)),
    items=game_scores,
    found=("A9 GameTitleIndex",),
    traps={"A19": "the few titles are keys of the index; users are the table's"},
)


def lucia(chance: Random, now: float) -> Iterator[Item]:
    """Lucia's adapter: sid, index Gs1 by user, index Gs2 with typ = Session and exp."""
    for _ in range(1100):
        yield {
            "sid": f"{chance.getrandbits(200):050x}",
            "uid": skewed(chance, uuids("lucia", 500), 1.2),
            "typ": "Session",
            "exp": int(now + chance.random() * 30 * DAY),
        }


case(
    "second: sessions of Lucia",
    "real",
    Schema("sid", None, (gsi("Gs1", "uid"), gsi("Gs2", "typ", "exp:N")), "exp"),
    items=lucia,
    found=("A9 Gs2",),
    traps={"I1 Gs2": "all sessions are of one type", "A16": "exp is in seconds and ahead"},
)


def recurring(chance: Random, now: float) -> Iterator[Item]:
    """Recurring payments of the guide: ACC#, SUB# and RECEIPT; indexes by the next dates."""
    for account in hexes("recurring", 300):
        for sku in chance.sample(hexes("recurring sku", 40, 6), 2):
            ahead = chance.randint(1, 30)
            yield {
                "PK": f"ACC#{account}",
                "SK": f"SUB#{account}#SKU#{sku}",
                "Email": f"{account}@mail.example",
                "PaymentDay": chance.randint(1, 28),
                "PaymentAmount": chance.randint(5, 90),
                "NextPaymentDate": words.day(now + ahead * DAY),
                "LastPaymentDate": words.day(now + (ahead - 31) * DAY),
                "NextReminderDate": words.day(now + (ahead - 7) * DAY),
                "LastReminderDate": words.day(now + (ahead - 38) * DAY),
                "SKU": sku,
                "CreatedDate": words.iso(past(chance, now, 600)),
            }
            for back in range(1, 4):
                yield {
                    "PK": f"ACC#{account}",
                    "SK": f"REC#{words.iso(now - back * 30 * DAY)}#SKU#{sku}",
                    "Email": f"{account}@mail.example",
                    "SKU": sku,
                    "ProcessedAmount": chance.randint(5, 90),
                    "TTL": int(now + (365 - back * 30) * DAY),
                }


case(
    "second: recurring payments of the guide",
    "real",
    Schema(
        "PK",
        "SK",
        (
            gsi("GSI-1", "NextReminderDate", "LastReminderDate"),
            gsi("GSI-2", "NextPaymentDate", "LastPaymentDate"),
        ),
        "TTL",
    ),
    items=recurring,
    found=("A18",),
    allowed={"A3": "all that is renewed today gets the same next date: the guide does it so"},
    traps={
        "A2": "ACC#, SUB# and REC# tell the kinds",
        "A16": "only receipts expire",
        "I1 GSI-2": "receipts are not in the index",
        "A7": "two dates that are asked for apart",
    },
)


def complaints(chance: Random, now: float) -> Iterator[Item]:
    """Complaint management of the guide: metadata and communications, four indexes."""
    for number in range(400):
        complaint = f"Complaint{hexes('complaints', 400, 8)[number]}"
        opened = past(chance, now, 300)
        yield {
            "PK": complaint,
            "SK": "metadata",
            "customer_id": f"custXYZ{chance.choice(hexes('complainers', 200, 6))}",
            "severity": mostly(chance, "P3", 0.7, "P1", "P2"),
            "creation_time": words.iso(opened),
            "complaint_description": words.some(chance, 40, 200),
            **(
                {
                    "escalated_to": f"Agent{chance.choice('ABCDEFGH')}",
                    "escalation_time": words.iso(now),
                }
                if number % 12 == 0
                else {}
            ),
        }
        for _ in range(chance.randint(1, 5)):
            at = words.iso(opened + chance.random() * DAY)
            yield {
                "PK": complaint,
                "SK": f"comm#{at}#{chance.getrandbits(20):05x}",
                "comm_date": at,
                "agentID": f"Agent{chance.choice(hexes('agents', 90, 4))}",
                "comm_text": words.some(chance, 20, 300),
            }


case(
    "second: complaints of the guide",
    "real",
    Schema(
        "PK",
        "SK",
        (
            gsi("Customer_complaint_GSI", "customer_id", "PK"),
            gsi("Severity_GSI", "severity", "PK"),
            gsi("Escalations_GSI", "escalated_to", "escalation_time"),
            gsi("Agents_Comments_GSI", "agentID", "comm_date"),
        ),
    ),
    items=complaints,
    found=("A9 Severity_GSI", "A18"),
    allowed={"A7": "four indexes, each of its own kind of item; two overloaded ones would do"},
    traps={
        "A2": "metadata and comm# tell the kinds",
        "I1 Escalations_GSI": "only escalated complaints are in it",
        "A9 Escalations_GSI": "eight agents of a sparse index",
    },
)


def game_profile(chance: Random, now: float) -> Iterator[Item]:
    """Game profile of the guide: playerID, and sort keys #METADATA#, FRIENDS# and ITEMS#."""
    for player in hexes("profiles", 260, 10):
        yield {
            "PK": f"player{player}",
            "SK": f"#METADATA#player{player}",
            "email": f"{player}@mail.example",
            "money": chance.randint(0, 9000),
            "experience": chance.randint(0, 90000),
        }
        for friend in chance.sample(hexes("profiles", 260, 10), 3):
            yield {"PK": f"player{player}", "SK": f"FRIENDS#player{friend}", "since": "2026"}
        for item in chance.sample(["Sword", "Shield", "Bow", "Helmet", "Boots"], 2):
            yield {
                "PK": f"player{player}",
                "SK": f"ITEMS#{item}",
                "price": chance.randint(1, 900),
                "attack": chance.randint(1, 99),
            }


case(
    "second: game profiles of the guide",
    "real",
    Schema("PK", "SK"),
    items=game_profile,
    found=("A18",),
    traps={"A2": "#METADATA#, FRIENDS# and ITEMS# tell the kinds", "A15": "friends are few"},
)


def social_network(chance: Random, now: float) -> Iterator[Item]:
    """Social network of the guide: u#id, u#id#follower, u#id#post, p#id#likelist, p#id#count."""
    users = hexes("social", 150, 10)
    for user in users:
        yield {
            "PK": f"u#{user}",
            "SK": "info",
            "name": words.name(chance),
            "content": words.some(chance, 10, 80),
            "imageUrl": "s3://pics/x",
        }
        for other in chance.sample(users, 4):
            yield {"PK": f"u#{user}#follower", "SK": f"u#{other}"}
        for _ in range(2):
            post = words.ulid(past(chance, now, 300), chance)
            yield {
                "PK": f"u#{user}#post",
                "SK": f"p#{post}",
                "content": words.some(chance, 10, 200),
                "timestamp": int(past(chance, now, 300)),
            }
            yield {"PK": f"p#{post}#likecount", "SK": "count", "etc": chance.randint(0, 90)}
            for other in chance.sample(users, 2):
                yield {"PK": f"p#{post}#likelist", "SK": f"u#{other}"}


case(
    "second: social network of the guide",
    "real",
    Schema("PK", "SK"),
    items=social_network,
    found=("A18",),
    allowed={"A8": "a post's likes are one item each"},
    traps={"A2": "u# and p# begin the keys, and their ends tell the rest"},
)


def twitter(chance: Random, now: float) -> Iterator[Item]:
    """scalable-twitter on GitHub: ID and DataType, GSI-1 by DataValue and DataType."""
    users = uuids("scalable twitter", 220)
    for user in users:
        yield {
            "ID": user,
            "DataType": "userProfile",
            "DataValue": f"{words.name(chance).replace(' ', '_').lower()}_{user[:4]}",
        }
        for other in chance.sample(users, 3):
            yield {"ID": user, "DataType": f"followee_{other}", "DataValue": other}
        for _ in range(3):
            tweet = words.ulid(past(chance, now, 90), chance)
            yield {"ID": user, "DataType": f"timeline_{tweet}", "DataValue": tweet}


case(
    "second: timeline of a scalable twitter",
    "real",
    Schema("ID", "DataType", (gsi("GSI-1", "DataValue", "DataType"),)),
    items=twitter,
    allowed={"A15": "a timeline grows", "A18": "DataType begins with the kind, and goes on"},
    traps={"A2": "the sort key begins with userProfile, followee_ or timeline_"},
)


def shopping_cart(chance: Random, now: float) -> Iterator[Item]:
    """aws-serverless-shopping-cart: user# and cart# with product#, expirationTime; totals."""
    products = uuids("cart products", 60)
    for product in products:
        yield {"pk": f"product#{product}", "sk": "totalquantity", "quantity": chance.randint(1, 40)}
    for number in range(300):
        owner = ("user#", "cart#")[number % 2] + uuids("cart owners", 300)[number]
        for product in chance.sample(products, chance.randint(1, 6)):
            yield {
                "pk": owner,
                "sk": f"product#{product}",
                "quantity": chance.randint(1, 4),
                "productDetail": {"name": words.some(chance, 5, 20), "price": 900},
                "expirationTime": int(now + chance.random() * 7 * DAY),
            }


case(
    "second: serverless shopping cart",
    "real",
    Schema("pk", "sk", ttl="expirationTime"),
    items=shopping_cart,
    found=("A18",),
    traps={
        "A8": "a total for each product, of sixty",
        "A2": "user#, cart# and product# tell the kinds",
        "A16": "totals do not expire, on purpose",
    },
)


def onetable(chance: Random, now: float) -> Iterator[Item]:
    """OneTable's sample: account and user with _type, pk account#id, gs1pk by email."""
    for account in words_of("onetable", 150, now):
        yield {
            "pk": f"account#{account}",
            "sk": "account#",
            "_type": "Account",
            "id": account,
            "name": words.name(chance),
        }
        for _ in range(chance.randint(1, 6)):
            user = words.ulid(past(chance, now, 400), chance)
            mail = f"{user[-8:].lower()}@mail.example"
            yield {
                "pk": f"account#{account}",
                "sk": f"user#{user}",
                "_type": "User",
                "id": user,
                "accountId": account,
                "email": mail,
                "gs1pk": f"user#{mail}",
                "gs1sk": "user#",
            }


def words_of(seed: str, count: int, now: float) -> list[str]:
    """ULIDs of the last year."""
    chance = Random(seed)
    return [words.ulid(past(chance, now, 365), chance) for _ in range(count)]


case(
    "second: accounts of OneTable",
    "real",
    Schema("pk", "sk", (gsi("gs1", "gs1pk", "gs1sk"),)),
    items=onetable,
    traps={
        "A18": "`_type` names the kind",
        "A2": "account# and user# tell the kinds",
        "I4 gs1": "one attribute with a tag is not a join of several",
        "A9 gs1": "each mail is its own key",
    },
)


def iceberg(chance: Random, now: float) -> Iterator[Item]:
    """Iceberg's DynamoDB catalog: identifier and namespace, index namespace-identifier."""
    for space in hexes("iceberg", 20, 5):
        yield {
            "identifier": "NAMESPACE",
            "namespace": f"db_{space}",
            "v": words.uuid(chance),
            "created_at": int(past(chance, now, 900) * 1000),
            "p.owner": "etl",
        }
        for _ in range(24):
            yield {
                "identifier": f"db_{space}.t_{chance.getrandbits(36):09x}",
                "namespace": f"db_{space}",
                "v": words.uuid(chance),
                "updated_at": int(past(chance, now, 90) * 1000),
                "p.table_type": "ICEBERG",
                "p.metadata_location": f"s3://lake/{chance.getrandbits(64):016x}.json",
            }


case(
    "second: Iceberg's catalog",
    "real",
    Schema("identifier", "namespace", (gsi("namespace-identifier", "namespace", "identifier"),)),
    items=iceberg,
    allowed={
        "A2": "tables have no tag, but NAMESPACE has",
        "A18": "no attribute names tables and namespaces",
    },
    traps={"A16": "no time to live: times in milliseconds are only times"},
)


def loki_index(chance: Random, now: float) -> Iterator[Item]:
    """Index of Cortex and Loki: h is tenant, day and label; r and c are binary."""
    for _ in range(1500):
        day = int(now // DAY) - chance.randrange(20)
        label = chance.choice(["job", "pod", "namespace", "level", "app"])
        yield {
            "h": f"{chance.choice(hexes('loki', 30, 4))}:d{day}:logs:{label}",
            "r": chance.randbytes(24),
            "c": chance.randbytes(12),
        }


case(
    "second: index of Loki",
    "real",
    Schema("h", "r:B"),
    items=loki_index,
    traps={
        "A3": "the day stands between the tenant and the label",
        "A15": "a new key for each day",
        "E1": "sort keys are binary",
    },
)


def express_sessions(chance: Random, now: float) -> Iterator[Item]:
    """connect-dynamodb: id sess:…, expires in seconds, sess as JSON text."""
    for _ in range(1000):
        yield {
            "id": f"sess:{chance.getrandbits(180):045x}",
            "expires": int(now + chance.random() * DAY),
            "type": "connect-session",
            "sess": '{"cookie":{"originalMaxAge":86400000,"expires":"2026-12-01T00:00:00Z"}}',
        }


case(
    "second: sessions of Express",
    "real",
    Schema("id", None, ttl="expires"),
    items=express_sessions,
    traps={
        "A16": "`expires` is in seconds; the text inside `sess` is the cookie's",
        "A2": "one kind",
        "A18": "one kind, and `type` names it",
    },
)


def iot_rule(chance: Random, now: float) -> Iterator[Item]:
    """What an AWS IoT rule writes in many tutorials: deviceid, timestamp in ms, payload."""
    for number in range(3000):
        yield {
            "deviceid": f"sensor-{skewed(chance, hexes('iot rule', 50, 6), 1.5)}",
            "timestamp": int((now - (3000 - number) * 9000) * 1000) + number % 997,
            "payload": {"temperature": chance.randint(-9, 40), "humidity": chance.randint(9, 99)},
        }


case(
    "second: readings that an IoT rule writes",
    "real",
    Schema("deviceid", "timestamp:N"),
    items=iot_rule,
    found=("A15",),
    traps={"A16": "no time to live: the time stamp is only in milliseconds"},
)


def feast(chance: Random, now: float) -> Iterator[Item]:
    """Feast's online store: entity_id, event_ts and the map values."""
    for _ in range(900):
        yield {
            "entity_id": f"{chance.getrandbits(128):032x}",
            "event_ts": words.moment(past(chance, now, 9)).isoformat(),
            "values": {"conv_rate": chance.randbytes(9), "acc_rate": chance.randbytes(9)},
        }


case(
    "second: online features of Feast",
    "real",
    Schema("entity_id"),
    items=feast,
    traps={"A1": "hashes of entities", "A13": "items of 150 bytes"},
)


def terraform_locks(chance: Random, now: float) -> Iterator[Item]:
    """Terraform's lock table: LockID is the path of a state, and of its digest."""
    for number in range(330):
        path = f"tf-states/{hexes('tf', 330, 6)[number]}/{chance.choice(['prod', 'dev'])}.tfstate"
        yield {"LockID": f"{path}-md5", "Digest": f"{chance.getrandbits(128):032x}"}
        if number % 40 == 0:
            yield {"LockID": path, "Info": '{"Operation":"OperationTypeApply","Who":"ci"}'}


case(
    "second: locks of Terraform",
    "real",
    Schema("LockID"),
    items=terraform_locks,
    allowed={
        "A2": "locks and digests, which end with -md5, in one small table",
        "A18": "locks and digests, which no attribute names",
    },
    traps={"E2": "a digest has no lock while nobody works", "A1": "paths"},
)


def commerce(chance: Random, now: float) -> Iterator[Item]:
    """E-commerce of The DynamoDB Book: CUSTOMER#, CUSTOMEREMAIL#, ORDER# and ITEM#, Type."""
    for number, name in enumerate(hexes("commerce", 250, 8)):
        yield {
            "PK": f"CUSTOMER#{name}",
            "SK": f"CUSTOMER#{name}",
            "Type": "Customer",
            "Username": name,
            "Email": f"{name}@mail.example",
        }
        yield {
            "PK": f"CUSTOMEREMAIL#{name}@mail.example",
            "SK": f"CUSTOMEREMAIL#{name}@mail.example",
            "Type": "CustomerEmail",
            "Username": name,
        }
        for _ in range(number % 4):
            order = words.ksuid(past(chance, now, 300), chance)
            yield {
                "PK": f"CUSTOMER#{name}",
                "SK": f"#ORDER#{order}",
                "GSI1PK": f"ORDER#{order}",
                "GSI1SK": f"ORDER#{order}",
                "Type": "Order",
                "Status": chance.choice(["PLACED", "SHIPPED"]),
            }
            line = f"{chance.getrandbits(32):08x}"
            yield {
                "PK": f"ORDER#{order}#ITEM#{line}",
                "SK": f"ORDER#{order}#ITEM#{line}",
                "GSI1PK": f"ORDER#{order}",
                "GSI1SK": f"ITEM#{line}",
                "Type": "OrderItem",
                "Amount": chance.randint(1, 9),
            }


case(
    "second: shop of the book with mails",
    "real",
    Schema("PK", "SK", (gsi("GSI1", "GSI1PK", "GSI1SK"),)),
    items=commerce,
    traps={
        "E2": "each mail has its customer",
        "A2": "CUSTOMER#, ORDER# and ITEM# tell the kinds",
        "A18": "`Type` names the kind",
        "A15": "a customer has a few orders",
    },
)

# Other ways of the same faults

case(
    "second: employees by personnel number",
    "planted",
    Schema("emp", None, (gsi("byDept", "dept", "hired"),)),
    items=rows(
        600,
        lambda r, now, i: {
            "emp": f"EMP{i + 1:06d}",
            "dept": f"{r.choice(words.CITIES)}/{r.choice(['ops', 'dev', 'hr', 'law'])}",
            "hired": words.day(now - (600 - i) * 5 * DAY),
            "name": words.name(r),
        },
    ),
    found=("A1",),
)

case(
    "second: parking tickets with their collection of photos",
    "planted",
    Schema("ticketNo:N", "part"),
    items=rows(
        1500,
        lambda r, now, i: {
            "ticketNo": 8_400_000 + i // 3,
            "part": ("head", "photo/front", "photo/rear")[i % 3],
            "kind": ("head", "photo", "photo")[i % 3],
            "at": words.iso(now - (1500 - i) * 600),
            **({"plate": f"B-{r.randint(100, 999)}"} if i % 3 == 0 else {"s3": "s3://p/x.jpg"}),
        },
    ),
    found=("A1",),
    traps={"A2": "one partition key for tickets; the parts have tags", "A18": "`kind` names it"},
)

case(
    "second: subscriptions by month of creation",
    "planted",
    Schema("subscription", None, (gsi("by_month", "created_month", "subscription"),)),
    items=rows(
        1400,
        lambda r, now, i: {
            "subscription": words.uuid(r),
            "created_month": words.day(now - (1400 - i) * 0.9 * DAY)[:7],
            "plan": r.choice(["s", "m", "l"]),
            "seats": r.randint(1, 90),
        },
    ),
    found=("A3 by_month",),
)

case(
    "second: drafts whose expiry has another name than the setting",
    "planted",
    Schema("draft", None, ttl="ttl"),
    items=rows(
        900,
        lambda r, now, i: {
            "draft": words.ulid(past(r, now, 200), r),
            "TTL": int(past(r, now, 170)),
            "text": words.some(r, 20, 400),
            **({"ttl": int(now + r.random() * 9 * DAY)} if i < 5 else {}),
        },
    ),
    found=("A16",),
)

case(
    "second: offers by price in text",
    "planted",
    Schema("offer", None, (gsi("cheapest", "product", "price"),)),
    items=rows(
        1500,
        lambda r, now, i: {
            "offer": words.uuid(r),
            "product": f"ean:{r.choice(hexes('eans', 150, 10))}",
            "price": f"EUR {int(10 ** (r.random() * 4))}",
            "shop": words.name(r),
        },
    ),
    found=("E1 cheapest",),
)


def wallets(chance: Random, now: float) -> Iterator[Item]:
    for wallet in hexes("e2 wallets", 500, 16):
        if chance.random() >= 0.1:
            yield {
                "id": f"wallet:{wallet}",
                "type": "wallet",
                "handle": f"@{wallet[:6]}",
                "cents": chance.randint(0, 90000),
            }
        yield {"id": f"handle:@{wallet[:6]}", "type": "handle", "walletId": f"wallet:{wallet}"}


case(
    "second: wallets with handles of the closed",
    "planted",
    Schema("id"),
    items=wallets,
    found=("E2",),
    traps={"A2": "wallet: and handle: tell the kinds", "A18": "`type` names the kind"},
)

case(
    "second: machines on and off",
    "planted",
    Schema("online:N", "machine"),
    items=rows(
        2000,
        lambda r, now, i: {
            "online": 1 if r.random() < 0.7 else 0,
            "machine": f"m-{r.getrandbits(44):011x}",
            "since": words.iso(past(r, now, 9)),
        },
    ),
    metrics=(
        Metric("ConsumedWriteCapacityUnits", 21_000),
        Metric("ConsumedReadCapacityUnits", 40_000),
    ),
    found=("A19",),
    allowed={"A15": "all machines are in two collections"},
)

case(
    "second: one stock price that all ask for",
    "planted",
    Schema("isin", "kind"),
    items=rows(
        900,
        lambda r, now, i: {
            "isin": f"DE{hexes('isins', 300, 10)[i // 3].upper()}",
            "kind": ("price", "depth", "news")[i % 3],
            "value": r.randint(1, 90000),
        },
    ),
    metrics=(Metric("ConsumedReadCapacityUnits", 260_000, busy=(540, 1050)),),
    insights=(
        *(
            Contributor("PKC", (f"DE{one.upper()}",), 176_000 if n == 0 else 700 - n)
            for n, one in enumerate(hexes("isins", 300, 10)[:10])
        ),
        Contributor("SKC", (f"DE{hexes('isins', 300, 10)[0].upper()}", "price"), 174_000),
    ),
    found=("H1",),
    traps={"A2": "the parts of a share's data; the sort key tells them"},
)

case(
    "second: flights by airport and day in one text",
    "planted",
    Schema("flightId", None, (gsi("departures", "originDate", "departsAt"),)),
    items=rows(
        1700,
        lambda r, now, i: (
            lambda origin, at: {
                "flightId": f"{r.choice(['LH', 'AF', 'SK'])}-{r.getrandbits(40):010x}",
                "origin": origin,
                "day": words.day(at),
                "originDate": f"{origin}_{words.day(at)}",
                "departsAt": words.iso(at),
                "gate": f"{r.choice('ABC')}{r.randint(10, 59)}",
            }
        )(r.choice([c.upper() for c in words.CITIES]), now + r.random() * 30 * DAY),
    ),
    found=("I4 departures",),
    traps={"A3 departures": "the airport comes first"},
)

case(
    "second: exams of schools with an LSI of marks",
    "planted",
    Schema("school", "exam", (lsi("marks", "school", "mark:N", "KEYS_ONLY"),)),
    items=rows(
        1800,
        lambda r, now, i: {
            "school": f"school/{r.choice(hexes('schools', 150, 5))}",
            "exam": words.uuid(r),
            "mark": r.randint(1, 6),
            "pupil": words.name(r),
        },
    ),
    found=("A6",),
)

# Well-made tables


def booking(chance: Random, now: float) -> Iterator[Item]:
    for hotel in hexes("clean hotels", 120, 8):
        yield {
            "PK": f"HOTEL#{hotel}",
            "SK": "META",
            "entityType": "Hotel",
            "name": words.name(chance),
            "city": chance.choice(words.CITIES),
        }
        for room in range(chance.randint(3, 9)):
            yield {
                "PK": f"HOTEL#{hotel}",
                "SK": f"ROOM#{room + 1:03d}",
                "entityType": "Room",
                "beds": chance.randint(1, 3),
            }
        for _ in range(chance.randint(1, 8)):
            guest = chance.choice(hexes("clean guests", 300, 8))
            stay = words.ulid(past(chance, now, 200), chance)
            yield {
                "PK": f"HOTEL#{hotel}",
                "SK": f"STAY#{stay}",
                "GSI1PK": f"GUEST#{guest}",
                "GSI1SK": f"STAY#{stay}",
                "entityType": "Stay",
                "nights": chance.randint(1, 9),
            }


case(
    "second: hotel stays in one table",
    "clean",
    Schema("PK", "SK", (gsi("GSI1", "GSI1PK", "GSI1SK"),)),
    items=booking,
    traps={"E1": "rooms are padded to three digits", "A18": "`entityType` names the kind"},
)

case(
    "second: songs that listeners like",
    "clean",
    Schema("listener", "song", (gsi("bySong", "song", "listener", "KEYS_ONLY"),)),
    items=rows(
        2400,
        lambda r, now, i: {
            "listener": f"u_{hexes('listeners', 400)[i % 400]}",
            "song": f"s_{hexes('songs', 900)[(i * 7 + i // 400 * 131) % 900]}",
            "likedAt": int(past(r, now, 700)),
        },
    ),
)

case(
    "second: verification codes with seconds",
    "clean",
    Schema("address", "purpose", ttl="expiresAt"),
    items=rows(
        700,
        lambda r, now, i: {
            "address": f"{r.getrandbits(44):011x}@mail.example",
            "purpose": r.choice(["signup", "reset", "delete"]),
            "codeHash": f"{r.getrandbits(256):064x}",
            "expiresAt": int(now + (r.random() - 0.2) * 1800),
        },
    ),
    traps={"A16": "past by some minutes: deletion takes its time"},
)

case(
    "second: tariffs of an energy supplier",
    "clean",
    Schema("tariff", "validFrom"),
    items=rows(
        900,
        lambda r, now, i: {
            "tariff": f"tarif:{hexes('tariffs', 180, 6)[i % 180]}",
            "validFrom": words.day(now - (i // 180) * 365 * DAY),
            "centPerKwh": round(20 + r.random() * 20, 2),
            "base": r.randint(500, 1500),
        },
    ),
    traps={"A15": "a price a year", "A3": "the date is the sort key"},
)

case(
    "second: queue of mails with a sparse index of what is due",
    "clean",
    Schema("mail", None, (gsi("due", "dueShard", "dueAt:N", "KEYS_ONLY"),), "keepUntil"),
    items=rows(
        1600,
        lambda r, now, i: {
            "mail": words.uuid(r),
            "keepUntil": int(now + r.random() * 30 * DAY),
            "to": f"{r.getrandbits(40):010x}@mail.example",
            **(
                {"dueShard": f"due-{r.randrange(8)}", "dueAt": int(now + r.random() * DAY)}
                if i % 20 == 0
                else {"sentAt": int(past(r, now, 3))}
            ),
        },
    ),
    traps={"I1 due": "sparse already", "A9 due": "eight shards of few items"},
)

case(
    "second: wards, beds and stays of a hospital",
    "clean",
    Schema("pk", "sk", (gsi("patient", "patientKey", "admittedAt"),)),
    items=joined(
        rows(
            400,
            lambda r, now, i: {
                "pk": f"WARD:{hexes('wards', 50, 5)[i // 8]}",
                "sk": f"BED:{i % 8 + 1:02d}",
                "recordType": "bed",
                "monitor": r.random() < 0.5,
            },
        ),
        rows(
            1200,
            lambda r, now, i: {
                "pk": f"WARD:{r.choice(hexes('wards', 50, 5))}",
                "sk": f"STAY:{words.ulid(past(r, now, 200), r)}",
                "recordType": "stay",
                "patientKey": f"PATIENT:{r.choice(uuids('ward patients', 500))}",
                "admittedAt": words.iso(past(r, now, 200)),
            },
        ),
    ),
    allowed={"A15": "the stays of a ward grow, slowly"},
    traps={"A2": "WARD:, BED: and STAY: tell the kinds", "A18": "`recordType` names the kind"},
)

case(
    "second: watch list of profiles",
    "clean",
    Schema("profile:B", "title:N"),
    items=rows(
        1800,
        lambda r, now, i: {
            "profile": bytes.fromhex(hexes("watchers", 300, 32)[i % 300]),
            "title": r.getrandbits(30),
            "addedAt": int(past(r, now, 400)),
            "progress": round(r.random(), 3),
        },
    ),
)

case(
    "second: tokens of an identity provider",
    "clean",
    Schema("tokenHash:B", None, (gsi("bySubject", "subject", "issuedAt:N", "KEYS_ONLY"),), "exp"),
    items=rows(
        1300,
        lambda r, now, i: {
            "tokenHash": r.randbytes(32),
            "subject": f"auth0|{r.choice(hexes('subjects', 500, 24))}",
            "issuedAt": int(past(r, now, 9)),
            "exp": int(now + r.random() * 9 * DAY),
            "scope": "openid profile",
        },
    ),
    stream=updates(600, 60, lambda r, at, old: {"lastUsed": int(at)}),
    metrics=(
        Metric("ConsumedWriteCapacityUnits", 600),
        Metric("ConsumedReadCapacityUnits", 4000),
        Metric("ConsumedWriteCapacityUnits", 60, "bySubject"),
        Metric("ConsumedReadCapacityUnits", 300, "bySubject"),
    ),
)

case(
    "second: flags with their history, bounded",
    "clean",
    Schema("flag", "change", ttl="forgetAt"),
    items=rows(
        1500,
        lambda r, now, i: (
            lambda at: {
                "flag": f"flags/{hexes('flag history', 200, 6)[i % 200]}",
                "change": words.iso(at) + f"/{i:04d}",
                "by": words.name(r),
                "to": r.choice(["on", "off"]),
                "forgetAt": int(at + 90 * DAY),
            }
        )(past(r, now, 89)),
    ),
    traps={"A15": "changes are forgotten after 90 days"},
)


def counts() -> Iterator[str]:
    """The lines of the table in this module's docstring."""
    mine = [one for name, one in ALL.items() if name.startswith("second: ")]
    yield f"{len(mine)} tables; for each rule how many plant it and how many tempt it:"
    known = {rule for one in mine for rule, _ in (*one.found, *one.traps)}
    for rule in sorted(known, key=lambda text: (text[0], int(text[1:]))):
        planted = sum(any(rule == found for found, _ in one.found) for one in mine)
        tempted = sum(any(rule == trap for trap, _ in one.traps) for one in mine)
        yield f"{rule:<4}{planted:>4}{tempted:>4}"
