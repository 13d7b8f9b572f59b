"""Tables as users have them: shops, devices, tenants, ledgers, chats, bookings, games, queues.

Each says which rules hold for it and which it only tempts. Targets: A6, A9, I1, I2, I4 and H3 name
the index; A3, E1, H1 name it if the fault is in an index; all others are the table's.

265 tables: 147 planted, 77 decoy, 20 clean, 21 real. Of each rule, how many plant and tempt it:

rule  planted  tempted
A1          9       13
A2          7       22
A3          7       10
A6          6        7
A7          6       12
A8          7        7
A9         19       13
A13         7        6
A15        17       26
A16         8       14
A18        11       20
A19         8        6
E1          9       10
E2          6        6
H1         13        7
H2          5        6
H3          6        6
H4          6        9
H5          5        5
H6          5        5
H7          5       11
I1          9        6
I2          6        7
I3          7        5
I4          7        8
"""

from collections.abc import Callable, Iterable, Iterator
from random import Random
from typing import Any
from zlib import crc32

from testing.report_corpus import words
from testing.report_corpus.case import (
    DAY,
    Contributor,
    Index,
    Item,
    Kind,
    Metric,
    Schema,
    Write,
    case,
    shard_of,
)
from testing.report_corpus.words import day, iso, name, some, text, ulid, uuid, uuid7

Items = Iterator[Item]
Maker = Callable[[Random, float], Iterable[Item]]


def table(named: str, kind: Kind, schema: Schema, **more: Any) -> Callable[[Maker], Maker]:
    """A case whose items the decorated function makes."""

    def declare(items: Maker) -> Maker:
        case(named, kind, schema, items=items, **more)
        return items

    return declare


def when(c: Random, now: float, days: float = 365) -> float:
    """A time of the last days."""
    return now - c.random() * days * DAY


def skew(c: Random, below: int, power: float = 2.5) -> int:
    """A number below, of which low ones are common."""
    return int(below * c.random() ** power)


def code(c: Random, length: int = 10) -> str:
    return "".join(c.choices("abcdefghjkmnpqrstuvwxyz23456789", k=length))


def mail(c: Random) -> str:
    return f"{name(c).replace(' ', '.').lower()}{c.randrange(10**5)}@{code(c, 5)}.example"


def ids(c: Random, how_many: int, make: Callable[[Random], str] = uuid) -> list[str]:
    return [make(c) for _ in range(how_many)]


# Ids


@table("Rechnungen", "planted", Schema("RechnungsNr"), found=("A1",))
def rechnungen(c: Random, now: float) -> Items:
    for number in range(1, 1201):
        yield {
            "RechnungsNr": f"RE-{number:07}",
            "Kunde": name(c),
            "Datum": day(now - (1200 - number) * 0.6 * DAY),
            "BetragCent": c.randrange(500, 90_000),
            "Status": c.choice(["offen", "bezahlt", "storniert"]),
        }


@table("helpdesk-tickets", "planted", Schema("ticketId:N"), found=("A1",))
def helpdesk_tickets(c: Random, now: float) -> Items:
    for number in range(1, 1601):
        if c.random() < 0.96:
            yield {
                "ticketId": number,
                "subject": some(c, 20, 70),
                "requester": mail(c),
                "priority": c.choice(["low", "normal", "high"]),
                "openedAt": iso(now - (1601 - number) * DAY / 5),
            }


@table(
    "orders_v1",
    "planted",
    Schema("order_id", indexes=(Index("customer-index", "customer_id", "created:N"),)),
    found=("A1",),
)
def orders_v1(c: Random, now: float) -> Items:
    customers = ids(c, 400)
    for number in range(1500):
        yield {
            "order_id": str(100_001 + number),
            "customer_id": customers[skew(c, 400)],
            "created": int(now - (1500 - number) * 900),
            "total": c.randrange(5, 400) + 0.99,
            "lines": [{"sku": code(c, 8), "qty": c.randint(1, 4)} for _ in range(c.randint(1, 5))],
        }


@table("shop-single-counter-ids", "planted", Schema("PK", "SK"), found=("A1",))
def shop_single_counter_ids(c: Random, now: float) -> Items:
    order = 5000
    for user in range(1, 501):
        key = f"USER#{user}"
        yield {"PK": key, "SK": "PROFILE", "type": "User", "name": name(c), "email": mail(c)}
        for _ in range(skew(c, 6)):
            order += 1
            yield {
                "PK": f"ORDER#{order}",
                "SK": "ORDER",
                "type": "Order",
                "user": key,
                "placed": iso(now - (6000 - order) * 600),
                "total": c.randrange(900, 40_000),
            }


@table(
    "members:club",
    "planted",
    Schema("memberNo"),
    found=("A1",),
    traps={"A13": "one member has a picture of 20 KB, all others are small"},
)
def members_club(c: Random, now: float) -> Items:
    for number in range(900):
        yield {
            "memberNo": f"M|{number + 20_000:06}",
            "fullName": name(c),
            "joined": day(now - (900 - number) * 2.1 * DAY),
            "city": c.choice(words.CITIES),
            "photo": text(c, 20_000 if number == 77 else 40),
        }


@table(
    "phonebook",
    "decoy",
    Schema("msisdn:N"),
    traps={"A1": "telephone numbers are given by carriers and not counted"},
)
def phonebook(c: Random, now: float) -> Items:
    for number in {491_510_000_000 + c.randrange(10**9) for _ in range(900)}:
        yield {"msisdn": number, "owner": name(c), "since": day(when(c, now, 2000))}


@table(
    "books-by-isbn",
    "decoy",
    Schema("isbn:N", indexes=(Index("byPublisher", "publisher", "published"),)),
    traps={
        "A1": "ISBNs are given by publishers, in blocks",
        "A9 byPublisher": "forty publishers, none with more than a few percent",
        "A18": "one kind: a book may have a series or not",
    },
)
def books_by_isbn(c: Random, now: float) -> Items:
    blocks = [9_783_000_000_000 + c.randrange(10**5) * 10_000 for _ in range(40)]
    for isbn in {c.choice(blocks) + c.randrange(10_000) for _ in range(1100)}:
        book = {
            "isbn": isbn,
            "title": some(c, 10, 50),
            "publisher": f"pub-{isbn // 10_000 % 10**5}",
            "published": day(when(c, now, 9000)),
            "pages": c.randrange(60, 900),
        }
        if c.random() < 0.3:
            book["series"] = some(c, 8, 20)
        yield book


@table(
    "posts-snowflake",
    "decoy",
    Schema("id", indexes=(Index("author-index", "author", "id"),)),
    traps={"A1": "a snowflake id is a time, a machine and a number, and needs no counter"},
)
def posts_snowflake(c: Random, now: float) -> Items:
    authors = ids(c, 200, lambda c: code(c, 8))
    for _ in range(1300):
        at = when(c, now, 400)
        number = (int(at * 1000) - 1_288_834_974_657 << 22) | c.getrandbits(22)
        yield {
            "id": str(number),
            "author": authors[skew(c, 200, 1.4)],
            "body": some(c, 20, 280),
            "lang": c.choice(["en", "de", "pt"]),
        }


@table(
    "zip-areas",
    "decoy",
    Schema("zip"),
    traps={"A1": "postcodes are the world's, and the table never grows"},
)
def zip_areas(c: Random, now: float) -> Items:
    for number in sorted(c.sample(range(1067, 99_999), 1500)):
        yield {
            "zip": f"{number:05}",
            "city": c.choice(words.CITIES),
            "lat": round(47 + c.random() * 8, 5),
            "lon": round(6 + c.random() * 9, 5),
        }


@table(
    "reservations-locator",
    "decoy",
    Schema("locator"),
    traps={"A1": "random numbers of eight digits, in no order"},
)
def reservations_locator(c: Random, now: float) -> Items:
    for number in {c.randrange(10**7, 10**8) for _ in range(800)}:
        yield {
            "locator": str(number),
            "guest": name(c),
            "arrival": day(now + c.random() * 200 * DAY),
            "nights": c.randint(1, 14),
            "room": f"{c.randint(1, 5)}{c.randint(1, 30):02}",
        }


@table(
    "customer-invoices",
    "decoy",
    Schema("customerId", "invoiceNo"),
    traps={
        "A1": "the counter is in the sort key, of each customer alone",
        "E1": "the numbers are padded to six digits",
        "A15": "a handful of invoices a year",
    },
)
def customer_invoices(c: Random, now: float) -> Items:
    for customer in ids(c, 260):
        for number in range(1, c.randint(2, 9)):
            yield {
                "customerId": customer,
                "invoiceNo": f"INV-{number:06}",
                "issued": day(now - (9 - number) * 30 * DAY),
                "net": c.randrange(1000, 99_000),
            }


@table("assets-binary-key", "clean", Schema("assetId:B"))
def assets_binary_key(c: Random, now: float) -> Items:
    for _ in range(700):
        yield {
            "assetId": c.randbytes(16),
            "mime": c.choice(["image/png", "image/webp", "video/mp4"]),
            "bytes": c.randrange(1000, 9_000_000),
            "uploaded": int(when(c, now)),
        }


# Kinds and their names


@table(
    "workspace-raw-ids",
    "planted",
    Schema("id", "sub"),
    found=("A2",),
    traps={"A18": "the attribute kind names it"},
)
def workspace_raw_ids(c: Random, now: float) -> Items:
    for org in ids(c, 120):
        yield {"id": org, "sub": org, "kind": "org", "title": some(c, 5, 20), "plan": "pro"}
        for project in ids(c, c.randint(1, 5)):
            yield {
                "id": org,
                "sub": project,
                "kind": "project",
                "title": some(c, 5, 30),
                "due": day(now + 40 * DAY),
            }
        for user in ids(c, c.randint(1, 6)):
            yield {"id": user, "sub": org, "kind": "membership", "mail": mail(c), "role": "editor"}


@table("clinic", "planted", Schema("pk", "sk"), found=("A2", "A18"))
def clinic(c: Random, now: float) -> Items:
    doctors = ids(c, 25)
    for doctor in doctors:
        yield {"pk": doctor, "sk": doctor, "name": name(c), "specialty": some(c, 6, 14), "room": 4}
    for patient in ids(c, 350):
        yield {"pk": patient, "sk": patient, "name": name(c), "born": day(when(c, now, 25_000))}
        for _ in range(c.randint(0, 4)):
            yield {
                "pk": patient,
                "sk": iso(when(c, now, 700)),
                "doctor": c.choice(doctors),
                "diagnosis": c.choice(["J06.9", "M54.5", "I10", "E11.9"]),
                "note": some(c, 30, 300),
            }


@table("accounts-mixed", "planted", Schema("key"), found=("A2",))
def accounts_mixed(c: Random, now: float) -> Items:
    for _ in range(400):
        yield {
            "key": mail(c),
            "entity": "USER",
            "passwordHash": code(c, 60),
            "created": iso(when(c, now)),
        }
    for _ in range(150):
        yield {"key": code(c, 12), "entity": "TEAM", "seats": c.randint(2, 90), "owner": mail(c)}
    for _ in range(300):
        yield {"key": uuid(c), "entity": "APIKEY", "scopes": ["read", "write"], "hash": code(c, 40)}


@table("player_inventory", "planted", Schema("playerId", "id"), found=("A2", "A18"))
def player_inventory(c: Random, now: float) -> Items:
    for player in ids(c, 160, lambda c: code(c, 14)):
        yield {"playerId": player, "id": "0", "nick": name(c), "level": c.randint(1, 60)}
        for item in ids(c, c.randint(2, 7)):
            yield {
                "playerId": player,
                "id": item,
                "sword": c.random() < 0.5,
                "damage": c.randint(1, 99),
                "rarity": c.choice(["common", "rare", "epic"]),
            }
        for match in ids(c, c.randint(0, 5)):
            yield {
                "playerId": player,
                "id": match,
                "map": c.choice(["dust", "mirage"]),
                "score": c.randint(0, 40),
                "startedAt": iso(when(c, now, 90)),
            }


@table("blog-content", "planted", Schema("PK", "SK"), found=("A2",))
def blog_content(c: Random, now: float) -> Items:
    writers = ids(c, 40, lambda c: name(c).replace(" ", "").lower() + str(c.randrange(999)))
    for writer in dict.fromkeys(writers):
        yield {"PK": writer, "SK": "main", "_type": "author", "bio": some(c, 40, 200)}
    for _ in range(200):
        slug = some(c, 12, 40).strip().replace(" ", "-")
        yield {
            "PK": slug + code(c, 4),
            "SK": "main",
            "_type": "post",
            "author": c.choice(writers),
            "body": some(c, 300, 2500),
            "at": iso(when(c, now)),
        }
    for _ in range(400):
        yield {
            "PK": uuid(c),
            "SK": "main",
            "_type": "comment",
            "text": some(c, 10, 200),
            "by": c.choice(writers),
            "at": iso(when(c, now)),
        }


@table(
    "crm-tagged-no-type",
    "planted",
    Schema("PK", "SK"),
    found=("A18",),
    traps={"A2": "all keys begin with a tag"},
)
def crm_tagged_no_type(c: Random, now: float) -> Items:
    for _ in range(180):
        company = f"COMPANY#{ulid(when(c, now), c)}"
        yield {"PK": company, "SK": "COMPANY", "name": some(c, 6, 20), "vat": code(c, 9)}
        for _ in range(c.randint(1, 4)):
            yield {
                "PK": company,
                "SK": f"CONTACT#{ulid(when(c, now), c)}",
                "first": name(c),
                "email": mail(c),
            }
        for _ in range(c.randint(0, 4)):
            yield {
                "PK": company,
                "SK": f"DEAL#{ulid(when(c, now), c)}",
                "amount": c.randrange(1000, 90_000),
                "stage": c.choice(["lead", "offer", "won", "lost"]),
            }


@table("reiseportal", "planted", Schema("pk", "sk"), found=("A18",))
def reiseportal(c: Random, now: float) -> Items:
    for _ in range(90):
        hotel = f"hotel/{code(c, 8)}"
        yield {"pk": hotel, "sk": "stamm", "ort": c.choice(words.CITIES), "sterne": c.randint(1, 5)}
        for room in range(c.randint(3, 9)):
            yield {
                "pk": hotel,
                "sk": f"zimmer/{room + 101}",
                "betten": c.randint(1, 4),
                "preis": c.randrange(50, 300),
            }
        for _ in range(c.randint(0, 6)):
            yield {
                "pk": hotel,
                "sk": f"bewertung/{uuid(c)}",
                "punkte": c.randint(1, 10),
                "text": some(c, 20, 400),
            }


@table(
    "stripe-like",
    "clean",
    Schema("id"),
    traps={"A2": "ids begin with cus_, sub_ or in_, as the payment provider has them"},
)
def stripe_like(c: Random, now: float) -> Items:
    for _ in range(300):
        customer = f"cus_{code(c, 14)}"
        yield {"id": customer, "object": "customer", "email": mail(c), "created": int(when(c, now))}
        subscription = f"sub_{code(c, 14)}"
        yield {"id": subscription, "object": "subscription", "customer": customer, "plan": "basic"}
        for _ in range(c.randint(0, 3)):
            yield {
                "id": f"in_{code(c, 14)}",
                "object": "invoice",
                "subscription": subscription,
                "amount_due": c.randrange(900, 9000),
            }


@table(
    "customer-bundle",
    "decoy",
    Schema("customerId", "record"),
    traps={
        "A2": "each partition is a customer, and the sort key begins with the tag",
        "A18": "recordKind names it",
        "A15": "a customer has few records",
    },
)
def customer_bundle(c: Random, now: float) -> Items:
    for customer in ids(c, 220):
        base = {"customerId": customer}
        yield base | {"record": "PROFILE", "recordKind": "P", "name": name(c), "mail": mail(c)}
        for number in range(c.randint(1, 3)):
            yield base | {
                "record": f"ADDRESS#{code(c, 6)}",
                "recordKind": "A",
                "city": c.choice(words.CITIES),
                "main": number == 0,
            }
        for _ in range(c.randint(0, 4)):
            yield base | {
                "record": f"ORDER#{ulid(when(c, now), c)}",
                "recordKind": "O",
                "total": c.randrange(900, 30_000),
            }


@table(
    "catalog-mixed-attributes",
    "decoy",
    Schema("sku"),
    traps={
        "A2": "all items are products, only their attributes differ",
        "A18": "all items are products, and category is what differs",
    },
)
def catalog_mixed_attributes(c: Random, now: float) -> Items:
    for _ in range(900):
        product: Item = {"sku": code(c, 9).upper(), "title": some(c, 10, 40), "price": 9.5}
        match c.randrange(3):
            case 0:
                product |= {"category": "shoe", "size": c.randint(36, 47), "color": "red"}
            case 1:
                product |= {"category": "book", "pages": c.randint(80, 700), "author": name(c)}
            case _:
                product |= {"category": "lamp", "watt": c.randint(3, 60), "socket": "E27"}
        yield product


@table(
    "scuola",
    "clean",
    Schema("chiave", "ordine"),
    traps={"A18": "tipo names the kind", "A2": "keys begin with studente, corso"},
)
def scuola(c: Random, now: float) -> Items:
    courses = ids(c, 60, lambda c: code(c, 6))
    for course in courses:
        yield {
            "chiave": f"corso:{course}",
            "ordine": "dati",
            "tipo": "corso",
            "titolo": some(c, 9, 25),
        }
    for _ in range(240):
        student = f"studente:{uuid(c)}"
        yield {"chiave": student, "ordine": "dati", "tipo": "studente", "nome": name(c)}
        for course in c.sample(courses, c.randint(1, 5)):
            yield {
                "chiave": student,
                "ordine": f"iscrizione:{course}",
                "tipo": "iscrizione",
                "voto": c.randint(18, 30),
                "data": day(when(c, now, 300)),
            }


@table(
    "toolbox-pokemons",
    "real",
    Schema("PK", "SK"),
    traps={"A18": "_et names the kind", "A2": "the keys begin with a tag"},
)
def toolbox_pokemons(c: Random, now: float) -> Items:
    """dynamodb-toolbox: the entities of its documentation, with _et, _ct and _md."""
    for _ in range(150):
        trainer = code(c, 10)
        made = iso(when(c, now))
        both = {"_ct": made, "_md": made}
        yield both | {
            "PK": f"TRAINER#{trainer}",
            "SK": "TRAINER",
            "_et": "TRAINER",
            "trainerName": name(c),
        }
        for _ in range(c.randint(1, 6)):
            yield both | {
                "PK": f"TRAINER#{trainer}",
                "SK": f"POKEMON#{uuid(c)}",
                "_et": "POKEMON",
                "name": some(c, 5, 12),
                "level": c.randint(1, 99),
            }


# Time in keys


@table("events-by-day", "planted", Schema("day", "at"), found=("A3",))
def events_by_day(c: Random, now: float) -> Items:
    for _ in range(2000):
        at = when(c, now, 90)
        yield {
            "day": day(at),
            "at": f"{iso(at)}#{code(c, 6)}",
            "source": c.choice(["web", "app", "api"]),
            "payload": some(c, 50, 300),
        }


@table("access_log_hourly", "planted", Schema("hour:N", "req"), found=("A3",))
def access_log_hourly(c: Random, now: float) -> Items:
    for _ in range(2500):
        at = when(c, now, 6)
        yield {
            "hour": int(words.moment(at).strftime("%Y%m%d%H")),
            "req": ulid(at, c),
            "status": c.choice([200, 200, 200, 404, 500]),
            "path": f"/v1/{code(c, 6)}",
        }


@table(
    "deliveries",
    "planted",
    Schema("deliveryId", indexes=(Index("byCreatedDate", "createdDate", "deliveryId"),)),
    found=("A3 byCreatedDate",),
)
def deliveries(c: Random, now: float) -> Items:
    for _ in range(1400):
        at = when(c, now, 45)
        yield {
            "deliveryId": uuid(c),
            "createdDate": day(at),
            "driver": name(c),
            "parcels": c.randint(1, 30),
            "city": c.choice(words.CITIES),
        }


@table(
    "expenses",
    "planted",
    Schema("employee", "expenseId", indexes=(Index("month-index", "month", "amount:N"),)),
    found=("A3 month-index",),
)
def expenses(c: Random, now: float) -> Items:
    people = ids(c, 180)
    for _ in range(1300):
        at = when(c, now, 400)
        yield {
            "employee": c.choice(people),
            "expenseId": ulid(at, c),
            "month": day(at)[:7],
            "amount": c.randrange(300, 60_000),
            "category": c.choice(["travel", "meal", "hotel"]),
        }


@table("telemetry-day-tag", "planted", Schema("PK", "SK"), found=("A3",))
def telemetry_day_tag(c: Random, now: float) -> Items:
    sensors = ids(c, 80, lambda c: code(c, 8))
    for _ in range(2400):
        at = when(c, now, 60)
        yield {
            "PK": f"DAY#{day(at)}",
            "SK": f"SENSOR#{c.choice(sensors)}#{int(at)}",
            "type": "Reading",
            "celsius": round(c.gauss(19, 6), 2),
        }


@table(
    "exchange-rates",
    "decoy",
    Schema("date"),
    traps={"A3": "one item a day: no day gets more than one write"},
)
def exchange_rates(c: Random, now: float) -> Items:
    for back in range(700):
        yield {
            "date": day(now - back * DAY),
            "rates": {code: round(c.uniform(0.5, 2), 4) for code in ("USD", "GBP", "CHF", "SEK")},
        }


@table(
    "readings-device-month",
    "clean",
    Schema("deviceMonth", "ts:N"),
    traps={
        "A3": "the month is behind the device, so writes of a moment go to all devices",
        "A15": "a collection ends with its month",
        "E1": "the sort key is a number",
    },
)
def readings_device_month(c: Random, now: float) -> Items:
    devices = ids(c, 60, lambda c: f"dev-{code(c, 8)}")
    for _ in range(2400):
        at = when(c, now, 150)
        yield {
            "deviceMonth": f"{c.choice(devices)}#{day(at)[:7]}",
            "ts": int(at * 1000),
            "v": round(c.gauss(220, 5), 1),
        }


@table(
    "clicks-sharded-day",
    "decoy",
    Schema("bucket", "click", ttl="expires"),
    traps={
        "A3": "the day is spread over sixteen keys",
        "A15": "a bucket ends with its day, and items expire",
        "A16": "seconds, in the days to come",
    },
)
def clicks_sharded_day(c: Random, now: float) -> Items:
    for _ in range(2600):
        at = when(c, now, 14)
        yield {
            "bucket": f"{c.randrange(16):02}|{day(at)}",
            "click": uuid7(at, c),
            "campaign": f"cmp-{skew(c, 60)}",
            "expires": int(at + 15 * DAY),
        }


@table(
    "contacts-birthdays",
    "decoy",
    Schema(
        "contactId", indexes=(Index("birthday-index", "birthday", "contactId", False, "KEYS_ONLY"),)
    ),
    traps={
        "A3 birthday-index": "days of a year on which people were born, not on which is written",
        "A9 birthday-index": "no birthday has a large share",
    },
)
def contacts_birthdays(c: Random, now: float) -> Items:
    for _ in range(1500):
        yield {"contactId": uuid(c), "birthday": day(when(c, now, 20_000))[5:], "name": name(c)}


@table(
    "seats-by-route-date",
    "clean",
    Schema("routeDate", "seat"),
    traps={"A3": "route and date: many routes a day", "A15": "a plane has 60 seats"},
)
def seats_by_route_date(c: Random, now: float) -> Items:
    for _ in range(45):
        route = f"{c.choice(['LIS', 'OPO', 'BER', 'OSL'])}-{c.choice(['CDG', 'MXP', 'VIE'])}"
        key = f"{route}#{day(now + c.randrange(60) * DAY)}#{c.randrange(100, 999)}"
        for seat in range(60):
            yield {
                "routeDate": key,
                "seat": f"{seat // 6 + 1:02}{'ABCDEF'[seat % 6]}",
                "free": True,
            }


@table(
    "holidays",
    "decoy",
    Schema("date", "region"),
    traps={
        "A3": "a calendar that is written once a year",
        "A19": "hundreds of days, and a table of a few kilobytes",
    },
)
def holidays(c: Random, now: float) -> Items:
    for date in {day(now + c.randrange(-900, 900) * DAY) for _ in range(160)}:
        for region in c.sample(["BE", "BY", "HH", "NW", "SN", "TH"], c.randint(1, 6)):
            yield {"date": date, "region": region, "name": some(c, 6, 20)}


@table(
    "ReoccurringPayments",
    "real",
    Schema(
        "PK",
        "SK",
        indexes=(
            Index(
                "GSI-1",
                "NextReminderDate",
                "LastReminderDate",
                False,
                "INCLUDE",
                ("SKU", "Email", "NextPaymentDate"),
            ),
            Index(
                "GSI-2", "NextPaymentDate", "LastPaymentDate", False, "INCLUDE", ("SKU", "Email")
            ),
        ),
    ),
    found=("A3 GSI-1", "A3 GSI-2", "A18"),
    traps={"A2": "ACCOUNT#, SUB# and REC# are tags"},
)
def reoccurring_payments(c: Random, now: float) -> Items:
    """aws-dynamodb-examples, schema_design/SchemaExamples/RecurringPayments."""
    for _ in range(320):
        account = f"ACCOUNT#{code(c, 9)}"
        sku = f"SKU{code(c, 5)}"
        next_day = now + c.random() * 30 * DAY
        yield {
            "PK": account,
            "SK": f"SUB#{uuid(c)}#SKU#{sku}",
            "Email": mail(c),
            "SKU": sku,
            "PaymentAmount": c.randrange(500, 5000),
            "PaymentDay": int(day(next_day)[8:]),
            "NextPaymentDate": day(next_day),
            "LastPaymentDate": day(next_day - 30 * DAY),
            "NextReminderDate": day(next_day - 7 * DAY),
            "LastReminderDate": day(next_day - 37 * DAY),
        }
        for month in range(c.randint(0, 5)):
            at = next_day - (month + 1) * 30 * DAY
            yield {
                "PK": account,
                "SK": f"REC#{iso(at)}#SKU#{sku}",
                "ProcessedAmount": c.randrange(500, 5000),
                "ProcessedDate": iso(at),
                "Email": mail(c),
                "TTL": int(at + 365 * DAY),
            }


# Local indexes, and how many indexes


@table(
    "Thread",
    "real",
    Schema(
        "ForumName",
        "Subject",
        indexes=(Index("LastPostIndex", "ForumName", "LastPostDateTime", local=True),),
    ),
    found=("A6",),
    allowed={
        "A15": "a forum's threads do grow, slowly",
        "A19": "forums are few, but their number is the application's",
    },
)
def thread(c: Random, now: float) -> Items:
    """AWS's developer guide: the Forum, Thread and Reply tables; its LSI LastPostIndex."""
    forums = ids(c, 60, lambda c: f"Amazon {code(c, 6)}")
    for _ in range(900):
        yield {
            "ForumName": c.choice(forums),
            "Subject": some(c, 20, 60) + code(c, 5),
            "LastPostDateTime": iso(when(c, now, 900)),
            "LastPostedBy": mail(c),
            "Views": skew(c, 4000),
            "Replies": skew(c, 60),
            "Tags": ["index", "primarykey"],
        }


@table(
    "bestellungen-je-kunde",
    "planted",
    Schema(
        "kunde",
        "bestellung",
        indexes=(
            Index("nachDatum", "kunde", "datum", local=True),
            Index("nachBetrag", "kunde", "betrag:N", local=True, projection="KEYS_ONLY"),
        ),
    ),
    found=("A6",),
)
def bestellungen_je_kunde(c: Random, now: float) -> Items:
    for kunde in ids(c, 250):
        for _ in range(c.randint(1, 8)):
            yield {
                "kunde": kunde,
                "bestellung": uuid(c),
                "datum": day(when(c, now, 600)),
                "betrag": c.randrange(900, 50_000),
            }


@table(
    "photo-albums",
    "planted",
    Schema(
        "album",
        "photo",
        indexes=(Index("byTaken", "album", "takenAt", True, "INCLUDE", ("thumb",)),),
    ),
    found=("A6",),
)
def photo_albums(c: Random, now: float) -> Items:
    for album in ids(c, 90, lambda c: code(c, 12)):
        for _ in range(c.randint(3, 20)):
            yield {
                "album": album,
                "photo": code(c, 16),
                "takenAt": iso(when(c, now, 1500)),
                "thumb": f"s3://thumbs/{code(c, 20)}",
            }


@table(
    "GameScores-local",
    "planted",
    Schema("user", "game", indexes=(Index("top-score-lsi", "user", "topScore:N", local=True),)),
    found=("A6",),
)
def gamescores_local(c: Random, now: float) -> Items:
    games = ids(c, 40, lambda c: some(c, 6, 14).strip() + code(c, 2))
    for user in ids(c, 300):
        for game in c.sample(games, c.randint(1, 6)):
            yield {
                "user": user,
                "game": game,
                "topScore": skew(c, 9000),
                "wins": skew(c, 90),
                "losses": skew(c, 90),
            }


@table(
    "mailbox",
    "planted",
    Schema("mailbox", "messageId", indexes=(Index("unread-lsi", "mailbox", "unreadSince", True),)),
    found=("A6", "A15"),
)
def mailbox(c: Random, now: float) -> Items:
    boxes = ids(c, 60, mail)
    for _ in range(2800):
        at = when(c, now, 500)
        message = {
            "mailbox": boxes[skew(c, 60, 2)],
            "messageId": ulid(at, c),
            "from": mail(c),
            "subject": some(c, 10, 60),
            "snippet": some(c, 40, 120),
        }
        if c.random() < 0.2:
            message["unreadSince"] = iso(at)
        yield message


@table(
    "rentals",
    "decoy",
    Schema("tenant", "rental", indexes=(Index("byEnd", "tenant", "endsAt", False, "KEYS_ONLY"),)),
    traps={
        "A6": "the index has the table's partition key, but is global",
        "A7": "one index",
        "A9 byEnd": "no tenant has a large share",
    },
)
def rentals(c: Random, now: float) -> Items:
    for tenant in ids(c, 130):
        for _ in range(c.randint(2, 9)):
            yield {
                "tenant": tenant,
                "rental": uuid(c),
                "endsAt": iso(now + c.random() * 90 * DAY),
                "car": code(c, 7).upper(),
            }


@table(
    "courses-two-orders",
    "decoy",
    Schema(
        "courseId",
        indexes=(
            Index("teacher-by-start", "teacher", "startsOn"),
            Index("teacher-by-title", "teacher", "title"),
        ),
    ),
    traps={
        "A6": "both are global",
        "A7": "a teacher's courses by date and by title: neither order serves the other",
    },
)
def courses_two_orders(c: Random, now: float) -> Items:
    teachers = ids(c, 120)
    for _ in range(700):
        yield {
            "courseId": uuid(c),
            "teacher": c.choice(teachers),
            "startsOn": day(now + c.random() * 200 * DAY),
            "title": some(c, 12, 40),
            "seats": c.randint(5, 40),
        }


NINE = ("brand", "color", "material", "season", "supplier", "designer", "fabric", "origin", "line")


@table(
    "fashion-search",
    "planted",
    Schema("sku", indexes=tuple(Index(f"{one}-index", one, "price:N") for one in NINE)),
    found=("A7",),
    allowed={"I3": "nine indexes cost nine times the table's writes"},
)
def fashion_search(c: Random, now: float) -> Items:
    values = {one: ids(c, 30, lambda c: code(c, 6)) for one in NINE}
    for _ in range(900):
        yield {"sku": code(c, 12).upper(), "price": c.randrange(900, 30_000)} | {
            one: c.choice(values[one]) for one in NINE
        }


@table(
    "bookings-double-index",
    "planted",
    Schema(
        "bookingId",
        indexes=(
            Index("byGuest", "guestId"),
            Index("byGuestAndArrival", "guestId", "arrival"),
        ),
    ),
    found=("A7",),
)
def bookings_double_index(c: Random, now: float) -> Items:
    guests = ids(c, 300)
    for _ in range(1000):
        yield {
            "bookingId": uuid(c),
            "guestId": c.choice(guests),
            "arrival": day(now + c.randrange(-300, 90) * DAY),
            "property": code(c, 8),
            "price": c.randrange(4000, 90_000),
        }


CRM = (
    "email",
    "phone",
    "company",
    "owner",
    "region",
    "source",
    "segment",
    "zip",
    "score",
    "referrer",
    "campaign",
    "taxNumber",
)


@table(
    "crm_leads",
    "planted",
    Schema("leadId", indexes=tuple(Index(f"by_{one}", one) for one in CRM)),
    found=("A7",),
    allowed={"I3": "twelve indexes cost twelve times the table's writes"},
)
def crm_leads(c: Random, now: float) -> Items:
    values = {one: ids(c, 60, lambda c: code(c, 7)) for one in CRM}
    for _ in range(700):
        yield {"leadId": uuid(c), "name": name(c)} | {
            one: c.choice(values[one]) + (code(c, 4) if one in ("email", "phone") else "")
            for one in CRM
        }


@table(
    "users-email-twice",
    "planted",
    Schema(
        "userId",
        indexes=(
            Index("email-index", "email", None, False, "KEYS_ONLY"),
            Index("email-created-index", "email", "createdAt"),
            Index("referral-index", "referralCode", None, False, "KEYS_ONLY"),
        ),
    ),
    found=("A7",),
)
def users_email_twice(c: Random, now: float) -> Items:
    for _ in range(1000):
        yield {
            "userId": uuid(c),
            "email": mail(c),
            "createdAt": iso(when(c, now, 900)),
            "referralCode": code(c, 8),
        }


@table(
    "documents-tenant-twice",
    "planted",
    Schema(
        "documentId",
        indexes=(
            Index("tenantIdx", "tenantId", "documentId"),
            Index("tenantModifiedIdx", "tenantId", "modified:N"),
            Index("tenantModifiedIdx2", "tenantId", "modified:N", False, "KEYS_ONLY"),
        ),
    ),
    found=("A7",),
)
def documents_tenant_twice(c: Random, now: float) -> Items:
    tenants = ids(c, 90)
    for _ in range(1100):
        yield {
            "documentId": uuid(c),
            "tenantId": c.choice(tenants),
            "modified": int(when(c, now)),
            "title": some(c, 10, 50),
        }


@table(
    "overloaded-three",
    "clean",
    Schema(
        "PK",
        "SK",
        indexes=tuple(Index(f"GSI{n}", f"GSI{n}PK", f"GSI{n}SK") for n in (1, 2, 3)),
    ),
    traps={
        "A7": "three overloaded indexes serve the patterns of three kinds",
        "I4 GSI1": "kinds with different attributes share the index",
        "A9 GSI1": "its keys are users, orders and SKUs",
    },
)
def overloaded_three(c: Random, now: float) -> Items:
    for _ in range(200):
        user, email = ulid(when(c, now), c), mail(c)
        yield {
            "PK": f"USER#{user}",
            "SK": f"USER#{user}",
            "GSI1PK": f"EMAIL#{email}",
            "GSI1SK": "USER",
            "entityType": "User",
            "email": email,
        }
        for _ in range(c.randint(0, 4)):
            order, status, at = ulid(when(c, now), c), c.choice(["NEW", "SENT"]), when(c, now)
            yield {
                "PK": f"USER#{user}",
                "SK": f"ORDER#{order}",
                "GSI1PK": f"ORDER#{order}",
                "GSI1SK": "ORDER",
                "GSI2PK": f"STORE#{c.randrange(50)}",
                "GSI2SK": f"{status}#{iso(at)}",
                "entityType": "Order",
                "total": c.randrange(900, 9000),
            }
    for _ in range(200):
        sku = code(c, 8).upper()
        yield {
            "PK": f"PRODUCT#{sku}",
            "SK": f"PRODUCT#{sku}",
            "GSI1PK": f"SUPPLIER#{c.randrange(40)}",
            "GSI1SK": f"PRODUCT#{sku}",
            "GSI3PK": f"SHELF#{code(c, 4)}",
            "GSI3SK": "PRODUCT",
            "entityType": "Product",
            "title": some(c, 10, 30),
        }


@table(
    "friendships-inverted",
    "decoy",
    Schema("PK", "SK", indexes=(Index("inverted", "SK", "PK", False, "KEYS_ONLY"),)),
    traps={
        "A7": "the inverted index is the only one",
        "A6": "it is global",
        "I4 inverted": "its keys are the table's own",
    },
)
def friendships_inverted(c: Random, now: float) -> Items:
    users = ids(c, 200)
    for user in users:
        for friend in c.sample(users, c.randint(1, 9)):
            yield {
                "PK": f"USER#{user}",
                "SK": f"FRIEND#{friend}",
                "type": "friendship",
                "since": day(when(c, now, 900)),
            }


@table(
    "library-electro",
    "real",
    Schema(
        "pk",
        "sk",
        indexes=tuple(
            Index(f"gsi{n}pk-gsi{n}sk-index", f"gsi{n}pk", f"gsi{n}sk") for n in (1, 2, 3)
        ),
    ),
    traps={
        "A18": "__edb_e__ names the kind",
        "A2": "the keys begin with $library, the sort keys with the entity",
        "A7": "three overloaded indexes",
    },
    allowed={"I4": "authors' names are joined, though books and authors share the index"},
)
def library_electro(c: Random, now: float) -> Items:
    """ElectroDB: examples/library, its books, members and authors."""
    members = ids(c, 150)
    for member in members:
        yield {
            "pk": f"$library#memberid_{member}",
            "sk": "$account#member_1",
            "memberId": member,
            "name": name(c),
            "__edb_e__": "member",
            "__edb_v__": "1",
        }
    for _ in range(120):
        isbn, first, last = code(c, 13), c.choice(words.FIRST), c.choice(words.LAST)
        title, released = some(c, 8, 30), day(when(c, now, 9000))
        for book in ids(c, c.randint(1, 5)):
            item = {
                "pk": f"$library#isbn_{isbn}",
                "sk": f"$detail#book_1#bookid_{book}",
                "gsi2pk": f"$library#authorlastname_{last}#authorfirstname_{first}".lower(),
                "gsi2sk": "$works#book_1#loanenddate_",
                "gsi3pk": f"$library#booktitle_{title}",
                "gsi3sk": f"$titles#book_1#releasedate_{released}",
                "bookId": book,
                "isbn": isbn,
                "bookTitle": title,
                "releaseDate": released,
                "authorFirstName": first,
                "authorLastName": last,
                "__edb_e__": "book",
                "__edb_v__": "1",
            }
            if c.random() < 0.4:
                member, end = c.choice(members), day(now + c.random() * 20 * DAY)
                item |= {
                    "gsi1pk": f"$library#memberid_{member}",
                    "gsi1sk": f"$account#book_1#loanenddate_{end}",
                    "memberId": member,
                    "loanEndDate": end,
                    "gsi2sk": f"$works#book_1#loanenddate_{end}",
                }
            yield item


# Constant keys of indexes, and indexes that could be sparse


def states(c: Random, share: float, end: str, others: list[str]) -> str:
    return end if c.random() < share else c.choice(others)


@table(
    "jobs-by-status",
    "planted",
    Schema("jobId", indexes=(Index("byStatus", "status", "createdAt"),)),
    found=("A9 byStatus", "I1 byStatus"),
)
def jobs_by_status(c: Random, now: float) -> Items:
    for _ in range(2500):
        yield {
            "jobId": uuid(c),
            "status": states(c, 0.96, "DONE", ["QUEUED", "RUNNING", "FAILED"]),
            "createdAt": iso(when(c, now, 200)),
            "kindOfJob": c.choice(["thumbnail", "export", "mail"]),
        }


@table(
    "products-list-all",
    "planted",
    Schema("productId", indexes=(Index("allProducts", "everything", "title"),)),
    found=("A9 allProducts",),
    allowed={"I1": "the constant is on each item because all are to be listed"},
)
def products_list_all(c: Random, now: float) -> Items:
    for _ in range(2600):
        yield {
            "productId": uuid(c),
            "everything": "ALL",
            "title": some(c, 10, 40),
            "price": c.randrange(99, 99_000),
        }


@table(
    "subscriptions-active",
    "planted",
    Schema("subscriptionId", indexes=(Index("isActive-index", "isActive", "renewsOn"),)),
    found=("A9 isActive-index",),
    allowed={"I1": "the few that are not active may be what is asked for"},
)
def subscriptions_active(c: Random, now: float) -> Items:
    for _ in range(1800):
        yield {
            "subscriptionId": f"sub-{uuid(c)}",
            "isActive": "true" if c.random() < 0.93 else "false",
            "renewsOn": day(now + c.random() * 30 * DAY),
            "plan": c.choice(["S", "M", "L"]),
        }


@table(
    "single-table-type-index",
    "planted",
    Schema("PK", "SK", indexes=(Index("typeIndex", "type", "updatedAt"),)),
    found=("A9 typeIndex",),
    allowed={"I1": "an index of all types but one would be sparse"},
)
def single_table_type_index(c: Random, now: float) -> Items:
    for _ in range(220):
        site = f"SITE#{code(c, 8)}"
        yield {"PK": site, "SK": "SITE", "type": "Site", "updatedAt": iso(when(c, now))}
        for _ in range(c.randint(4, 14)):
            yield {
                "PK": site,
                "SK": f"PAGE#{uuid(c)}",
                "type": "Page",
                "updatedAt": iso(when(c, now)),
                "title": some(c, 10, 40),
            }


@table(
    "payments-country",
    "planted",
    Schema("paymentId", indexes=(Index("country-date", "country", "paidAt"),)),
    found=("A9 country-date",),
    allowed={"I1": "an index of all but one country would be sparse"},
)
def payments_country(c: Random, now: float) -> Items:
    for _ in range(2200):
        yield {
            "paymentId": uuid7(when(c, now), c),
            "country": "US" if c.random() < 0.84 else c.choice(["CA", "MX", "GB", "DE", "FR"]),
            "paidAt": iso(when(c, now)),
            "amount": c.randrange(100, 99_000),
            "method": c.choice(["card", "sepa", "paypal"]),
        }


@table(
    "messages-outbox",
    "planted",
    Schema("messageId", indexes=(Index("sent-index", "sent:N", "createdAt:N"),)),
    found=("A9 sent-index", "I1 sent-index"),
)
def messages_outbox(c: Random, now: float) -> Items:
    for _ in range(2400):
        sent = c.random() < 0.985
        yield {
            "messageId": ulid(when(c, now), c),
            "sent": int(sent),
            "createdAt": int(when(c, now, 100 if sent else 0.1) * 1000),
            "topic": c.choice(["order.placed", "order.paid", "user.created"]),
            "body": some(c, 60, 300),
        }


@table(
    "claims",
    "planted",
    Schema("claimId", indexes=(Index("claims-by-state", "state", "filed"),)),
    found=("A9 claims-by-state", "I1 claims-by-state"),
)
def claims(c: Random, now: float) -> Items:
    for _ in range(1700):
        yield {
            "claimId": code(c, 14),
            "state": states(c, 0.94, "closed", ["open", "review", "waiting"]),
            "filed": day(when(c, now, 1200)),
            "insured": name(c),
            "sum": c.randrange(10_000, 9_000_000),
        }


@table(
    "users-deleted-flag",
    "planted",
    Schema("userId", indexes=(Index("deleted-users", "deleted", "deletedAt"),)),
    found=("A9 deleted-users", "I1 deleted-users"),
)
def users_deleted_flag(c: Random, now: float) -> Items:
    for _ in range(1900):
        gone = c.random() < 0.03
        yield {
            "userId": uuid(c),
            "deleted": "Y" if gone else "N",
            "deletedAt": iso(when(c, now)) if gone else "-",
            "mail": mail(c),
        }


@table(
    "webhooks",
    "planted",
    Schema(
        "endpoint",
        "delivery",
        indexes=(Index("retry-index", "deliveryState", "nextTry"),),
        ttl="ttl",
    ),
    found=("A9 retry-index", "I1 retry-index"),
    traps={"A15": "deliveries expire after a week", "A16": "seconds of the coming week"},
)
def webhooks(c: Random, now: float) -> Items:
    endpoints = ids(c, 150)
    for _ in range(2300):
        at = when(c, now, 7)
        yield {
            "endpoint": c.choice(endpoints),
            "delivery": ulid(at, c),
            "deliveryState": states(c, 0.95, "ok", ["retry", "dead"]),
            "nextTry": int(at + 60).__str__(),
            "ttl": int(at + 8 * DAY),
        }


@table(
    "jobs-pending-sparse",
    "decoy",
    Schema("jobId", indexes=(Index("pending", "pendingFlag", "createdAt", False, "KEYS_ONLY"),)),
    traps={
        "A9 pending": "a sparse index with the few open jobs has one key by intent",
        "I1 pending": "it is sparse already",
    },
)
def jobs_pending_sparse(c: Random, now: float) -> Items:
    for _ in range(2400):
        job = {"jobId": uuid(c), "createdAt": iso(when(c, now, 100)), "input": some(c, 20, 90)}
        if c.random() < 0.01:
            job["pendingFlag"] = "P"
        yield job


@table(
    "articles-category",
    "clean",
    Schema("articleId", indexes=(Index("byCategory", "category", "published"),)),
    traps={
        "A9 byCategory": "24 categories of much the same size",
        "I1 byCategory": "a category is no state that passes",
    },
)
def articles_category(c: Random, now: float) -> Items:
    categories = ids(c, 24, lambda c: some(c, 5, 12).strip() + code(c, 2))
    for _ in range(1500):
        yield {
            "articleId": uuid(c),
            "category": c.choice(categories),
            "published": iso(when(c, now, 1500)),
            "lead": some(c, 60, 200),
        }


@table(
    "feed-sharded-all",
    "decoy",
    Schema("postId", indexes=(Index("feed", "feedShard", "postedAt", False, "INCLUDE", ("t",)),)),
    traps={"A9 feed": "all posts are spread over twenty shards", "A3 feed": "no date in its key"},
)
def feed_sharded_all(c: Random, now: float) -> Items:
    for _ in range(2200):
        yield {
            "postId": uuid(c),
            "feedShard": f"ALL#{c.randrange(20):02}",
            "postedAt": iso(when(c, now, 300)),
            "t": some(c, 10, 60),
        }


@table(
    "parcels-even-states",
    "decoy",
    Schema("parcelId", indexes=(Index("depot-state", "depot", "state"),)),
    traps={
        "A9 depot-state": "depots are many and even",
        "I1 depot-state": "depots ask for all states, which are of like size",
    },
)
def parcels_even_states(c: Random, now: float) -> Items:
    for _ in range(1600):
        yield {
            "parcelId": code(c, 14).upper(),
            "depot": f"D{c.randrange(70):03}",
            "state": c.choice(["received", "sorted", "loaded", "delivered"]),
            "weight": c.randrange(100, 30_000),
        }


@table(
    "alerts-open-only",
    "decoy",
    Schema("alertId", indexes=(Index("openByTeam", "openTeam", "raisedAt", False, "KEYS_ONLY"),)),
    traps={
        "I1 openByTeam": "closing an alert removes openTeam",
        "A9 openByTeam": "thirty teams",
    },
)
def alerts_open_only(c: Random, now: float) -> Items:
    for _ in range(1500):
        alert = {
            "alertId": ulid(when(c, now), c),
            "raisedAt": iso(when(c, now)),
            "rule": code(c, 5),
        }
        team = f"team-{c.randrange(30)}"
        alert["openTeam" if c.random() < 0.06 else "closedTeam"] = team
        yield alert


# Keys that join attributes


@table(
    "tasks-joined",
    "planted",
    Schema("taskId", indexes=(Index("assigneeStatusDue", "assignee", "statusDue"),)),
    found=("I4 assigneeStatusDue",),
)
def tasks_joined(c: Random, now: float) -> Items:
    people = ids(c, 150)
    for _ in range(1200):
        status, due = c.choice(["TODO", "DOING", "DONE"]), day(now + c.randrange(-60, 60) * DAY)
        yield {
            "taskId": uuid(c),
            "assignee": c.choice(people),
            "status": status,
            "due": due,
            "statusDue": f"{status}#{due}",
            "title": some(c, 10, 60),
        }


@table(
    "vehicles-joined",
    "planted",
    Schema("vin", indexes=(Index("make-model", "makeModel", "year:N"),)),
    found=("I4 make-model",),
)
def vehicles_joined(c: Random, now: float) -> Items:
    for _ in range(1000):
        make, model = f"make{c.randrange(25)}", f"model{c.randrange(9)}"
        yield {
            "vin": code(c, 17).upper(),
            "make": make,
            "model": model,
            "makeModel": f"{make}|{model}",
            "year": c.randint(1995, 2026),
            "km": c.randrange(300_000),
        }


@table(
    "tournaments",
    "planted",
    Schema("matchId", indexes=(Index("TournamentRegionIndex", "tourneyRegion", "roundTime"),)),
    found=("I4 TournamentRegionIndex",),
)
def tournaments(c: Random, now: float) -> Items:
    cups = ids(c, 40, lambda c: f"CUP{code(c, 5)}")
    for _ in range(900):
        cup, region = c.choice(cups), c.choice(["EU", "NA", "AP"])
        turn, at = c.choice(["SEMI", "FINAL", "GROUP"]), iso(when(c, now))
        yield {
            "matchId": uuid(c),
            "tournament": cup,
            "region": region,
            "round": turn,
            "startsAt": at,
            "tourneyRegion": f"{cup}#{region}",
            "roundTime": f"{turn}#{at}",
        }


@table(
    "listings-geo",
    "planted",
    Schema("listingId", indexes=(Index("place", "place", "priceKey"),)),
    found=("I4 place",),
    traps={"E1": "prices are padded to eight digits"},
)
def listings_geo(c: Random, now: float) -> Items:
    for _ in range(1100):
        country, city = c.choice(["DE", "FR", "PT"]), c.choice(words.CITIES)
        price = c.randrange(50_000, 900_000)
        yield {
            "listingId": uuid(c),
            "country": country,
            "city": city,
            "price": price,
            "place": f"COUNTRY#{country}#CITY#{city}",
            "priceKey": f"{price:08}",
            "rooms": c.randint(1, 7),
        }


@table(
    "tenant-audit-index",
    "planted",
    Schema("eventId", indexes=(Index("gsi1", "gsi1pk", "gsi1sk"),), ttl="expireAt"),
    found=("I4 gsi1",),
    traps={"A9 gsi1": "many tenants and actors", "A16": "seconds of the coming months"},
)
def tenant_audit_index(c: Random, now: float) -> Items:
    tenants, actors = ids(c, 50, lambda c: code(c, 8)), ids(c, 200, lambda c: code(c, 9))
    for _ in range(1600):
        tenant, actor, at = c.choice(tenants), c.choice(actors), when(c, now, 80)
        yield {
            "eventId": uuid7(at, c),
            "tenantId": tenant,
            "actorId": actor,
            "ts": iso(at),
            "gsi1pk": f"{tenant}/{actor}",
            "gsi1sk": iso(at),
            "action": c.choice(["login", "read", "write"]),
            "expireAt": int(at + 90 * DAY),
        }


@table(
    "taskr-electro",
    "real",
    Schema("pk", "sk", indexes=(Index("gsi1pk-gsi1sk-index", "gsi1pk", "gsi1sk"),)),
    found=("I4 gsi1pk-gsi1sk-index",),
    traps={"A2": "one kind, its keys begin with $taskapp"},
)
def taskr_electro(c: Random, now: float) -> Items:
    """ElectroDB: examples/taskapp, its entity tasks alone in a table, by project."""
    people, projects = ids(c, 80), ids(c, 90)
    for _ in range(1000):
        task, project, person = uuid(c), c.choice(projects), c.choice(people)
        status, points = c.choice(["open", "in-progress", "closed"]), f"{c.randint(1, 21):02}"
        yield {
            "pk": f"$taskapp#task_{task}",
            "sk": f"$tasks_1#project_{project}#employee_{person}",
            "gsi1pk": f"$taskapp#project_{project}#status_{status}",
            "gsi1sk": f"$tasks_1#employee_{person}#points_{points}",
            "task": task,
            "project": project,
            "employee": person,
            "status": status,
            "points": points,
            "__edb_e__": "tasks",
            "__edb_v__": "1",
        }


@table(
    "profiles-prefixed-email",
    "decoy",
    Schema("PK", indexes=(Index("GSI1", "GSI1PK", "GSI1SK"),)),
    traps={"I4 GSI1": "a tag and one attribute: nothing is joined"},
)
def profiles_prefixed_email(c: Random, now: float) -> Items:
    for _ in range(900):
        email, since = mail(c), iso(when(c, now, 1000))
        yield {
            "PK": f"USER#{uuid(c)}",
            "GSI1PK": f"EMAIL#{email}",
            "GSI1SK": "USER",
            "type": "user",
            "email": email,
            "since": since,
        }


@table(
    "meter-buckets-derived",
    "decoy",
    Schema("readingId", indexes=(Index("meterMonth", "meterMonth", "readAt"),)),
    traps={
        "I4 meterMonth": "the month is cut from the time: no attribute of the item has it",
        "A3 meterMonth": "the meter comes first",
    },
)
def meter_buckets_derived(c: Random, now: float) -> Items:
    meters = ids(c, 70, lambda c: f"M{code(c, 7)}")
    for _ in range(1500):
        at, meter = when(c, now, 300), c.choice(meters)
        yield {
            "readingId": ulid(at, c),
            "meter": meter,
            "readAt": iso(at),
            "meterMonth": f"{meter}#{day(at)[:7]}",
            "kwh": round(c.uniform(0.1, 9), 3),
        }


@table(
    "contracts-table-keys",
    "decoy",
    Schema("partnerYear", "contract", indexes=(Index("byManager", "manager", "contract"),)),
    traps={"I4 byManager": "what is joined is the table's key, which has one attribute at most"},
)
def contracts_table_keys(c: Random, now: float) -> Items:
    managers = ids(c, 60, mail)
    for partner in ids(c, 200, lambda c: code(c, 8)):
        for _ in range(c.randint(1, 7)):
            year = c.randint(2018, 2026)
            yield {
                "partnerYear": f"{partner}#{year}",
                "contract": uuid(c),
                "partner": partner,
                "year": year,
                "manager": c.choice(managers),
            }


# Sizes


@table("page-snapshots", "planted", Schema("url", "takenAt", ttl="exp"), found=("A13",))
def page_snapshots(c: Random, now: float) -> Items:
    for url in ids(c, 80, lambda c: f"https://{code(c, 8)}.example/{code(c, 5)}"):
        for back in range(c.randint(1, 4)):
            at = now - back * 7 * DAY - c.random() * DAY
            yield {
                "url": url,
                "takenAt": iso(at),
                "html": text(c, c.randrange(40_000, 190_000)),
                "exp": int(at + 60 * DAY),
            }


@table("avatars", "planted", Schema("userId"), found=("A13",))
def avatars(c: Random, now: float) -> Items:
    for user in ids(c, 300):
        yield {
            "userId": user,
            "png": c.randbytes(c.randrange(50_000, 120_000)),
            "updated": iso(when(c, now)),
        }


@table("whiteboards", "planted", Schema("PK", "SK"), found=("A13",))
def whiteboards(c: Random, now: float) -> Items:
    for number in range(350):
        board = f"BOARD#{uuid(c)}"
        yield {"PK": board, "SK": "META", "type": "Board", "title": some(c, 8, 30)}
        yield {
            "PK": board,
            "SK": "STATE",
            "type": "State",
            "strokes": text(c, 385_000 if number % 60 == 7 else skew(c, 90_000, 4) + 2000),
            "saved": iso(when(c, now, 100)),
        }


@table(
    "chat-history-in-one-item",
    "planted",
    Schema("conversationId"),
    found=("A13",),
    allowed={"A15": "what grows is a list in an item, not a collection"},
)
def chat_history_in_one_item(c: Random, now: float) -> Items:
    for conversation in ids(c, 260):
        at = when(c, now)
        yield {
            "conversationId": conversation,
            "lastAt": iso(at),
            "messages": [
                {"role": c.choice(["user", "assistant"]), "text": some(c, 100, 1500)}
                for _ in range(skew(c, 220, 1.5) + 3)
            ],
        }


@table("embeddings_json", "planted", Schema("docId", "chunk"), found=("A13",))
def embeddings_json(c: Random, now: float) -> Items:
    for doc in ids(c, 60):
        for chunk in range(c.randint(3, 8)):
            yield {
                "docId": doc,
                "chunk": f"{chunk:04}",
                "text": some(c, 1000, 2000),
                "vector": str([round(c.uniform(-1, 1), 9) for _ in range(3072)]),
            }


@table("risk-models", "planted", Schema("modelId", "version:N"), found=("A13",))
def risk_models(c: Random, now: float) -> Items:
    for model in ids(c, 40, lambda c: f"mdl-{code(c, 6)}"):
        for version in range(1, c.randint(2, 7)):
            yield {
                "modelId": model,
                "version": version,
                "weights": c.randbytes(c.randrange(90_000, 350_000)),
                "trained": day(when(c, now, 400)),
            }


@table(
    "delivery-notes",
    "decoy",
    Schema("noteId"),
    traps={"A13": "one to three kilobytes"},
)
def delivery_notes(c: Random, now: float) -> Items:
    for _ in range(700):
        yield {
            "noteId": uuid(c),
            "xml": f"<note>{some(c, 700, 2600)}</note>",
            "issued": day(when(c, now)),
        }


@table(
    "settings-blobs",
    "decoy",
    Schema("userId"),
    traps={"A13": "compressed to half a kilobyte", "A18": "one kind"},
)
def settings_blobs(c: Random, now: float) -> Items:
    for user in ids(c, 900):
        yield {"userId": user, "z": c.randbytes(c.randrange(200, 900)), "v": c.randint(1, 4)}


@table(
    "recipes",
    "clean",
    Schema("recipeId"),
    traps={"A13": "texts of two kilobytes, and pictures are in S3"},
)
def recipes(c: Random, now: float) -> Items:
    for _ in range(600):
        yield {
            "recipeId": ulid(when(c, now, 900), c),
            "title": some(c, 10, 40),
            "steps": [some(c, 60, 300) for _ in range(c.randint(3, 9))],
            "picture": f"s3://recipes/{code(c, 20)}.jpg",
        }


@table(
    "wishlists",
    "decoy",
    Schema("ownerId", "listId"),
    traps={"A13": "lists of at most thirty short entries", "A15": "a few lists of an owner"},
)
def wishlists(c: Random, now: float) -> Items:
    for owner in ids(c, 300):
        for _ in range(c.randint(1, 3)):
            yield {
                "ownerId": owner,
                "listId": uuid(c),
                "entries": [{"sku": code(c, 9), "n": 1} for _ in range(c.randint(1, 30))],
            }


# Collections


@table("DeviceEvents", "planted", Schema("deviceId", "timestamp:N"), found=("A15",))
def device_events(c: Random, now: float) -> Items:
    devices = ids(c, 70, lambda c: f"thermo-{code(c, 10)}")
    for _ in range(3000):
        yield {
            "deviceId": devices[skew(c, 70)],
            "timestamp": int(when(c, now, 700) * 1000),
            "event": c.choice(["on", "off", "alarm", "measure"]),
            "celsius": round(c.gauss(20, 4), 1),
        }


@table("chat_rooms", "planted", Schema("roomId", "messageId"), found=("A15",))
def chat_rooms(c: Random, now: float) -> Items:
    rooms = ids(c, 90, lambda c: f"room_{code(c, 9)}")
    for _ in range(3000):
        yield {
            "roomId": rooms[skew(c, 90, 4)],
            "messageId": ulid(when(c, now, 500), c),
            "sender": code(c, 8),
            "text": some(c, 5, 240),
        }


@table(
    "audit-trail",
    "planted",
    Schema("PK", "SK"),
    found=("A15",),
    traps={"A18": "type names the kind", "A2": "the keys are tagged"},
)
def audit_trail(c: Random, now: float) -> Items:
    tenants = ids(c, 80, lambda c: f"TENANT#{code(c, 8)}")
    for tenant in tenants:
        yield {"PK": tenant, "SK": "TENANT", "type": "Tenant", "name": some(c, 6, 18)}
    for _ in range(2800):
        at = when(c, now, 900)
        yield {
            "PK": tenants[skew(c, 80, 3)],
            "SK": f"AUDIT#{iso(at)}#{code(c, 4)}",
            "type": "AuditEvent",
            "who": mail(c),
            "did": c.choice(["login", "export", "delete", "invite"]),
            "ip": f"10.{c.randrange(255)}.{c.randrange(255)}.9",
        }


@table("ledger", "planted", Schema("account", "entry"), found=("A15",))
def ledger(c: Random, now: float) -> Items:
    accounts = ids(c, 160, lambda c: f"DE{c.randrange(10**20):020}")
    for _ in range(2900):
        at = when(c, now, 1100)
        yield {
            "account": accounts[skew(c, 160, 5)],
            "entry": uuid7(at, c),
            "bookedAt": iso(at),
            "cents": c.randrange(-90_000, 90_000),
            "text": some(c, 10, 60),
        }


@table("gps-tracks", "planted", Schema("truck", "at"), found=("A15",))
def gps_tracks(c: Random, now: float) -> Items:
    trucks = ids(c, 50, lambda c: code(c, 7).upper())
    for _ in range(2900):
        yield {
            "truck": trucks[skew(c, 50, 1.6)],
            "at": iso(when(c, now, 300)),
            "lat": round(48 + c.random() * 6, 6),
            "lon": round(8 + c.random() * 6, 6),
            "kmh": c.randrange(90),
        }


@table(
    "notifications-kept",
    "planted",
    Schema("user", "sent", indexes=(Index("byTemplate", "template", "sent", False, "KEYS_ONLY"),)),
    found=("A15",),
    traps={"A9 byTemplate": "twenty-five templates"},
)
def notifications_kept(c: Random, now: float) -> Items:
    users = ids(c, 120)
    for _ in range(2700):
        at = when(c, now, 800)
        yield {
            "user": users[skew(c, 120, 4)],
            "sent": f"{iso(at)}~{code(c, 5)}",
            "template": f"tpl-{c.randrange(25)}",
            "read": c.random() < 0.6,
        }


@table(
    "notifications-expiring",
    "decoy",
    Schema("user", "sent", ttl="expiresAt"),
    traps={"A15": "all of it expires after thirty days", "A16": "seconds, at most some hours past"},
)
def notifications_expiring(c: Random, now: float) -> Items:
    users = ids(c, 120)
    for _ in range(2500):
        at = when(c, now, 30.2)
        yield {
            "user": users[skew(c, 120, 2)],
            "sent": f"{iso(at)}~{code(c, 5)}",
            "expiresAt": int(at + 30 * DAY),
            "title": some(c, 10, 50),
        }


@table(
    "team-members",
    "clean",
    Schema("teamId", "memberId"),
    traps={"A15": "a team has its people, at most some dozens"},
)
def team_members(c: Random, now: float) -> Items:
    for team in ids(c, 90):
        for _ in range(c.randint(2, 35)):
            yield {
                "teamId": team,
                "memberId": uuid(c),
                "role": c.choice(["owner", "member", "guest"]),
                "joinedAt": iso(when(c, now, 1000)),
            }


@table(
    "ticket-comments",
    "decoy",
    Schema("ticket", "comment"),
    traps={"A15": "a ticket is closed after some days, and has some comments"},
)
def ticket_comments(c: Random, now: float) -> Items:
    for ticket in ids(c, 280, lambda c: f"T-{code(c, 9)}"):
        opened = when(c, now, 600)
        for number in range(c.randint(1, 11)):
            yield {
                "ticket": ticket,
                "comment": ulid(min(now, opened + number * 9000), c),
                "text": some(c, 20, 400),
            }


@table(
    "bible-verses",
    "decoy",
    Schema("book", "verse"),
    traps={
        "A15": "large collections, of a text that does not grow",
        "E1": "chapters and verses are padded",
    },
)
def bible_verses(c: Random, now: float) -> Items:
    for book in range(66):
        for chapter in range(1, 5):
            for verse in range(1, c.randint(5, 14)):
                yield {
                    "book": f"{book + 1:02}-{words.LAST[book % 15]}",
                    "verse": f"{chapter:03}:{verse:03}",
                    "text": some(c, 40, 200),
                }


# Time to live


def expiring(c: Random, now: float, how_many: int = 900) -> Iterator[tuple[str, float]]:
    for _ in range(how_many):
        yield uuid(c), now + c.random() * 10 * DAY


@table("sessions-text-ttl", "planted", Schema("sessionId", ttl="expiresAt"), found=("A16",))
def sessions_text_ttl(c: Random, now: float) -> Items:
    for session, ends in expiring(c, now):
        yield {"sessionId": session, "user": code(c, 9), "expiresAt": iso(ends)}


@table("carts-ms", "planted", Schema("cartId", ttl="ttl"), found=("A16",))
def carts_ms(c: Random, now: float) -> Items:
    for cart, ends in expiring(c, now):
        yield {
            "cartId": cart,
            "lines": [{"sku": code(c, 7), "n": c.randint(1, 3)}],
            "ttl": int(ends * 1000),
        }


@table("otp-codes", "planted", Schema("phone", ttl="validUntil"), found=("A16",))
def otp_codes(c: Random, now: float) -> Items:
    for _, ends in expiring(c, now):
        yield {
            "phone": f"+49151{c.randrange(10**8):08}",
            "code": f"{c.randrange(10**6):06}",
            "validUntil": str(int(ends)),
        }


@table("tokens-expired-years-ago", "planted", Schema("token", ttl="expires"), found=("A16",))
def tokens_expired_years_ago(c: Random, now: float) -> Items:
    for token, ends in expiring(c, now):
        old = c.random() < 0.4
        yield {
            "token": token,
            "scope": "upload",
            "expires": int(ends - (6 + c.random() * 2) * 365 * DAY if old else ends),
        }


@table("cache_minutes", "planted", Schema("k", ttl="until"), found=("A16",))
def cache_minutes(c: Random, now: float) -> Items:
    for key, ends in expiring(c, now):
        yield {"k": f"resp:{key}", "v": some(c, 80, 500), "until": int(ends / 60)}


@table("coupons-long-past", "planted", Schema("coupon", ttl="validTo"), found=("A16",))
def coupons_long_past(c: Random, now: float) -> Items:
    for _, ends in expiring(c, now, 1000):
        past = c.random() < 0.5
        yield {
            "coupon": code(c, 10).upper(),
            "percent": c.choice([5, 10, 20]),
            "validTo": int(ends - c.randrange(60, 300) * DAY if past else ends),
        }


@table(
    "uploads-some-expire",
    "decoy",
    Schema("uploadId", ttl="expireAt"),
    traps={"A16": "finished uploads have no expireAt, as they are to stay"},
)
def uploads_some_expire(c: Random, now: float) -> Items:
    for upload, ends in expiring(c, now):
        item: Item = {"uploadId": upload, "bucket": "inbox", "createdAtMs": int(ends * 1000 - 9e8)}
        if c.random() < 0.3:
            item["expireAt"] = int(ends)
        yield item


@table(
    "idempotency",
    "clean",
    Schema("id", ttl="expiration"),
    traps={"A16": "expired some minutes ago: DynamoDB takes its time"},
)
def idempotency(c: Random, now: float) -> Items:
    for _ in range(1200):
        yield {
            "id": f"payments.handler#{code(c, 32)}",
            "status": "COMPLETED",
            "expiration": int(now - 7200 + c.random() * 3600 * 5),
            "data": "{}",
        }


@table(
    "licences-valid-years",
    "decoy",
    Schema("licence", ttl="endsAt"),
    traps={"A16": "ten years ahead is what was sold"},
)
def licences_valid_years(c: Random, now: float) -> Items:
    for _ in range(500):
        sold = when(c, now, 900)
        yield {
            "licence": f"{code(c, 5)}-{code(c, 5)}-{code(c, 5)}".upper(),
            "sold": day(sold),
            "endsAt": int(sold + c.choice([3, 5, 10]) * 365 * DAY),
        }


@table(
    "offers-iso-end",
    "decoy",
    Schema("offerId"),
    traps={"A16": "the table has no time to live: endsAt is for people"},
)
def offers_iso_end(c: Random, now: float) -> Items:
    for offer, ends in expiring(c, now):
        yield {"offerId": offer, "endsAt": iso(ends - 40 * DAY), "price": c.randrange(99, 9999)}


# Few keys


@table(
    "stock-by-warehouse",
    "planted",
    Schema("warehouse", "sku"),
    found=("A19",),
    allowed={"A15": "the articles of a warehouse grow slowly"},
)
def stock_by_warehouse(c: Random, now: float) -> Items:
    for sku in ids(c, 800, lambda c: code(c, 9).upper()):
        for house in ("HAM", "MUC", "ROT"):
            yield {
                "warehouse": house,
                "sku": sku,
                "onHand": skew(c, 900),
                "counted": day(when(c, now, 60)),
            }


@table(
    "entities-by-kind",
    "planted",
    Schema("kind", "id"),
    found=("A19",),
    allowed={"A15": "customers grow, slowly"},
)
def entities_by_kind(c: Random, now: float) -> Items:
    for kind, how_many in (("PRODUCT", 900), ("CUSTOMER", 1200), ("SUPPLIER", 300)):
        for number in range(how_many):
            item: Item = {"kind": kind, "id": uuid(c), "name": name(c), "active": number % 9 > 0}
            if kind == "PRODUCT":
                item["price"] = c.randrange(99, 9999)
            yield item


@table(
    "queue-by-priority",
    "planted",
    Schema("priority", "enqueuedAt"),
    found=("A19",),
    allowed={"A15": "a queue is emptied, which its items do not show"},
)
def queue_by_priority(c: Random, now: float) -> Items:
    for _ in range(1800):
        yield {
            "priority": c.choice(["P0", "P1", "P1", "P2"]),
            "enqueuedAt": f"{iso(when(c, now, 2))}#{code(c, 6)}",
            "job": uuid(c),
            "payload": some(c, 60, 400),
        }


@table("orders-two-tenants", "planted", Schema("tenant", "orderId"), found=("A19", "A15"))
def orders_two_tenants(c: Random, now: float) -> Items:
    for _ in range(2600):
        at = when(c, now, 800)
        yield {
            "tenant": "shop-eu" if c.random() < 0.6 else "shop-us",
            "orderId": ulid(at, c),
            "total": c.randrange(900, 90_000),
            "customer": mail(c),
        }


@table("metrics-by-region", "planted", Schema("region", "ts"), found=("A19", "A15"))
def metrics_by_region(c: Random, now: float) -> Items:
    for _ in range(2800):
        yield {
            "region": c.choice(["eu-west-1", "us-east-1", "ap-south-1", "sa-east-1"]),
            "ts": f"{int(when(c, now, 120) * 1000)}-{code(c, 4)}",
            "host": f"i-{code(c, 8)}",
            "cpu": round(c.random() * 100, 1),
        }


@table(
    "translations-one-key",
    "planted",
    Schema("pk", "sk"),
    found=("A19",),
    allowed={"A15": "texts grow with the application"},
)
def translations_one_key(c: Random, now: float) -> Items:
    for _ in range(2000):
        yield {
            "pk": "TRANSLATION",
            "sk": f"{c.choice(['de', 'en', 'fr', 'it'])}.{code(c, 4)}.{code(c, 9)}",
            "text": some(c, 5, 120),
        }


@table(
    "configuration",
    "decoy",
    Schema("environment", "setting"),
    traps={"A19": "a configuration of some kilobytes that is read at a start"},
)
def configuration(c: Random, now: float) -> Items:
    settings = ids(c, 95, lambda c: f"app.{code(c, 5)}.{code(c, 4)}")
    for environment in ("dev", "staging", "prod"):
        for setting in settings:
            yield {"environment": environment, "setting": setting, "value": some(c, 2, 30)}


@table(
    "feature-flags",
    "decoy",
    Schema("app", "flag"),
    traps={"A19": "four applications with some flags each", "A15": "flags are few"},
)
def feature_flags(c: Random, now: float) -> Items:
    for app in ("web", "ios", "android", "backoffice"):
        for _ in range(c.randint(10, 22)):
            yield {"app": app, "flag": code(c, 12), "on": c.random() < 0.5, "owner": mail(c)}


@table(
    "unit-conversions",
    "decoy",
    Schema("dimension", "unit"),
    traps={"A19": "a list of the world's units, which never grows", "A15": "it never grows"},
)
def unit_conversions(c: Random, now: float) -> Items:
    for dimension in ("length", "mass", "time", "volume", "pressure", "energy"):
        for unit in {code(c, 4) for _ in range(c.randint(9, 50))}:
            yield {"dimension": dimension, "unit": unit, "factor": round(c.uniform(0.001, 999), 6)}


@table(
    "tenants-young",
    "decoy",
    Schema("tenantId", "entity"),
    traps={
        "A19": "a hundred tenants, more each week",
        "A2": "the sort key has the tag",
        "A18": "et names the kind",
    },
)
def tenants_young(c: Random, now: float) -> Items:
    for tenant in ids(c, 100):
        yield {"tenantId": tenant, "entity": "TENANT", "et": "tenant", "name": some(c, 5, 14)}
        for _ in range(c.randint(1, 8)):
            yield {"tenantId": tenant, "entity": f"USER#{uuid(c)}", "et": "user", "mail": mail(c)}


@table(
    "totals-sharded",
    "decoy",
    Schema("shard"),
    traps={
        "A19": "shards of a counter, spread by intent",
        "A8": "sharded",
        "A1": "numbers of shards",
        "H7": "some writes a second",
    },
    stream=lambda c, now, items: (
        Write(ago, item, item | {"total": item["total"] + 1, "at": int(now - ago)})
        for ago in sorted((c.random() * 300 for _ in range(4000)), reverse=True)
        for item in [c.choice(items)]
    ),
)
def totals_sharded(c: Random, now: float) -> Items:
    for shard in range(32):
        yield {"shard": f"visits#{shard:02}", "total": c.randrange(90_000), "at": int(now)}


# Numbers in sort keys


@table("order-lines", "planted", Schema("orderId", "line"), found=("E1",))
def order_lines(c: Random, now: float) -> Items:
    for order in ids(c, 110):
        for line in range(1, c.randint(2, 26)):
            yield {
                "orderId": order,
                "line": f"LINE#{line}",
                "sku": code(c, 8),
                "qty": c.randint(1, 5),
            }


@table("document-versions", "planted", Schema("PK", "SK"), found=("E1",))
def document_versions(c: Random, now: float) -> Items:
    for _ in range(90):
        key = f"DOC#{uuid(c)}"
        yield {"PK": key, "SK": "META", "type": "Document", "title": some(c, 8, 30)}
        for version in range(1, c.randint(2, 32)):
            yield {
                "PK": key,
                "SK": f"v{version}",
                "type": "Version",
                "author": mail(c),
                "saved": iso(when(c, now, 100)),
            }


@table("releases-semver", "planted", Schema("package", "version"), found=("E1",))
def releases_semver(c: Random, now: float) -> Items:
    for package in ids(c, 120, lambda c: f"@acme/{code(c, 7)}"):
        for minor in range(c.randint(3, 16)):
            yield {
                "package": package,
                "version": f"1.{minor}.{c.randint(0, 12)}",
                "published": iso(now - (20 - minor) * 9 * DAY),
                "sha": code(c, 40),
            }


@table("kalender", "planted", Schema("person", "termin"), found=("E1",))
def kalender(c: Random, now: float) -> Items:
    for person in ids(c, 140):
        for _ in range(c.randint(4, 18)):
            at = words.moment(now + c.randrange(-180, 180) * DAY)
            yield {
                "person": person,
                "termin": f"{at.year}-{at.month}-{at.day} {code(c, 3)}",
                "titel": some(c, 6, 40),
            }


@table(
    "auction-lots",
    "planted",
    Schema("lotId", indexes=(Index("byAuctionPrice", "auction", "priceText"),)),
    found=("E1 byAuctionPrice",),
)
def auction_lots(c: Random, now: float) -> Items:
    auctions = ids(c, 60)
    for _ in range(1300):
        yield {
            "lotId": uuid(c),
            "auction": c.choice(auctions),
            "priceText": str(skew(c, 25_000) + 5),
            "title": some(c, 10, 40),
        }


@table("chapters|pages", "planted", Schema("book", "part"), found=("E1",))
def chapters_pages(c: Random, now: float) -> Items:
    for book in ids(c, 45, lambda c: f"book:{code(c, 8)}"):
        for chapter in range(1, c.randint(4, 14)):
            for page in range(1, c.randint(2, 6)):
                yield {"book": book, "part": f"ch{chapter}|p{page}", "words": c.randrange(100, 400)}


@table(
    "levels-padded",
    "decoy",
    Schema("player", "level"),
    traps={"E1": "padded to three digits", "A15": "a game has a hundred levels"},
)
def levels_padded(c: Random, now: float) -> Items:
    for player in ids(c, 120):
        for level in range(1, c.randint(3, 24)):
            yield {
                "player": player,
                "level": f"LEVEL#{level:03}",
                "stars": c.randint(0, 3),
                "ms": c.randrange(9000, 400_000),
            }


@table(
    "revisions-number-key",
    "decoy",
    Schema("page", "revision:N"),
    traps={"E1": "the sort key is of type N"},
)
def revisions_number_key(c: Random, now: float) -> Items:
    for page in ids(c, 110, lambda c: f"wiki/{code(c, 9)}"):
        for revision in range(1, c.randint(2, 22)):
            yield {"page": page, "revision": revision, "by": mail(c), "diff": some(c, 20, 300)}


@table(
    "bids-epoch",
    "decoy",
    Schema("auction", "bid"),
    traps={
        "E1": "epoch milliseconds have thirteen digits for centuries",
        "A15": "an auction ends after a week",
    },
)
def bids_epoch(c: Random, now: float) -> Items:
    for auction in ids(c, 150):
        ends = now - c.random() * 200 * DAY
        for _ in range(c.randint(1, 18)):
            yield {
                "auction": auction,
                "bid": f"BID#{int((ends - c.random() * 7 * DAY) * 1000)}",
                "bidder": code(c, 9),
                "cents": c.randrange(100, 90_000),
            }


@table(
    "quarter-reports",
    "decoy",
    Schema("company", "period"),
    traps={"E1": "years of four digits and quarters of one"},
)
def quarter_reports(c: Random, now: float) -> Items:
    for company in ids(c, 70, lambda c: code(c, 4).upper()):
        for year in range(c.randint(2018, 2023), 2026):
            for quarter in (1, 2, 3, 4):
                yield {
                    "company": company,
                    "period": f"{year}-Q{quarter}",
                    "revenue": c.randrange(10**6, 10**9),
                }


# Constraints


def signups(
    c: Random, now: float, how_many: int, orphans: float, tag: str, value: Callable[[Random], str]
) -> Items:
    """Users, and an item for each unique value; of a share of the latter the user is gone."""
    for _ in range(how_many):
        user, unique = f"USER#{ulid(when(c, now, 700), c)}", value(c)
        if c.random() >= orphans:
            yield {
                "PK": user,
                "SK": user,
                "type": "User",
                "name": name(c),
                tag.lower(): unique,
                "createdAt": iso(when(c, now)),
            }
        yield {"PK": f"{tag}#{unique}", "SK": f"{tag}#{unique}", "type": tag.title(), "user": user}


@table("accounts-email-unique", "planted", Schema("PK", "SK"), found=("E2",))
def accounts_email_unique(c: Random, now: float) -> Items:
    yield from signups(c, now, 600, 0.06, "EMAIL", mail)


@table("accounts-username-unique", "planted", Schema("PK", "SK"), found=("E2",))
def accounts_username_unique(c: Random, now: float) -> Items:
    yield from signups(c, now, 700, 0.1, "USERNAME", lambda c: code(c, 9))


@table("accounts-phone-unique", "planted", Schema("PK", "SK"), found=("E2",))
def accounts_phone_unique(c: Random, now: float) -> Items:
    yield from signups(c, now, 500, 0.03, "PHONE", lambda c: f"+3519{c.randrange(10**8):08}")


@table("shop-slugs", "planted", Schema("pk"), found=("E2",))
def shop_slugs(c: Random, now: float) -> Items:
    for _ in range(500):
        shop, slug = uuid(c), code(c, 11)
        if c.random() < 0.92:
            yield {"pk": f"shop:{shop}", "kind": "shop", "slug": slug, "owner": mail(c)}
        yield {"pk": f"slug:{slug}", "kind": "slug", "shopId": shop}


@table("fahrzeuge-kennzeichen", "planted", Schema("pk", "sk"), found=("E2",))
def fahrzeuge_kennzeichen(c: Random, now: float) -> Items:
    for _ in range(450):
        car, plate = code(c, 17).upper(), f"B-{code(c, 2).upper()} {c.randrange(1000, 9999)}"
        if c.random() < 0.95:
            yield {
                "pk": f"FAHRZEUG/{car}",
                "sk": "FAHRZEUG",
                "art": "Fahrzeug",
                "kennzeichen": plate,
                "halter": name(c),
            }
        yield {
            "pk": f"KENNZEICHEN/{plate}",
            "sk": "KENNZEICHEN",
            "art": "Sperre",
            "gehoertZu": f"FAHRZEUG/{car}",
        }


@table(
    "accounts-all-there",
    "clean",
    Schema("PK", "SK"),
    traps={"E2": "each e-mail's user is there"},
)
def accounts_all_there(c: Random, now: float) -> Items:
    yield from signups(c, now, 600, 0.0, "EMAIL", mail)


@table(
    "login-lookup-only",
    "decoy",
    Schema("PK", "SK"),
    traps={"E2": "all users are in another table: this one has only the look-ups"},
)
def login_lookup_only(c: Random, now: float) -> Items:
    yield from signups(c, now, 700, 1.0, "EMAIL", mail)


@table(
    "accounts-held-names",
    "decoy",
    Schema("PK", "SK", ttl="heldUntil"),
    traps={
        "E2": "names held for ten minutes while someone signs up, which then expire",
        "A16": "seconds, minutes ahead",
    },
)
def accounts_held_names(c: Random, now: float) -> Items:
    yield from signups(c, now, 400, 0.0, "USERNAME", lambda c: code(c, 9))
    for _ in range(15):
        held = f"USERNAME#{code(c, 9)}"
        yield {
            "PK": held,
            "SK": held,
            "type": "Username",
            "heldUntil": int(now + c.randrange(20, 600)),
        }


@table(
    "accounts-tombstones",
    "decoy",
    Schema("PK", "SK"),
    traps={"E2": "users who left are kept with deletedAt, so that their names stay taken"},
)
def accounts_tombstones(c: Random, now: float) -> Items:
    for item in signups(c, now, 500, 0.0, "USERNAME", lambda c: code(c, 9)):
        if item["type"] == "User" and c.random() < 0.1:
            item = {k: item[k] for k in ("PK", "SK", "type")} | {"deletedAt": iso(when(c, now))}
        yield item


@table(
    "shops-domain",
    "decoy",
    Schema("PK", "SK"),
    traps={"E2": "the shop of a domain has another sort key, but is there"},
)
def shops_domain(c: Random, now: float) -> Items:
    for _ in range(350):
        shop, domain = code(c, 10), f"{code(c, 8)}.example"
        yield {"PK": f"SHOP#{shop}", "SK": "#META", "et": "Shop", "domain": domain, "plan": "S"}
        yield {"PK": f"DOMAIN#{domain}", "SK": "#META", "et": "Domain", "shop": shop}


# Traffic: what metrics, insights and streams are made of


def wcu(per_minute: float, index: str = "", **more: Any) -> Metric:
    return Metric("ConsumedWriteCapacityUnits", per_minute, index, **more)


def rcu(per_minute: float, index: str = "", **more: Any) -> Metric:
    return Metric("ConsumedReadCapacityUnits", per_minute, index, **more)


def throttles(
    of: str, cause: str, per_minute: float, index: str = "", **more: Any
) -> tuple[Metric, ...]:
    """of: Read or Write. cause: as in AWS's names of metrics, such as KeyRangeThroughput."""
    operation = "PutItem" if of == "Write" else "Query"
    return (
        Metric(f"{of}ThrottleEvents", per_minute, index, **more),
        Metric(f"{of}{cause}ThrottleEvents", per_minute, index, **more),
        Metric("ThrottledRequests", per_minute, operation=operation, **more),
    )


def provisioned(read: int, write: int) -> dict[str, Any]:
    return {
        "BillingModeSummary": {"BillingMode": "PROVISIONED"},
        "ProvisionedThroughput": {
            "ReadCapacityUnits": read,
            "WriteCapacityUnits": write,
            "NumberOfDecreasesToday": 0,
        },
    }


def capacity(read: int, write: int, index: str = "") -> tuple[Metric, ...]:
    return (
        Metric("ProvisionedReadCapacityUnits", read, index),
        Metric("ProvisionedWriteCapacityUnits", write, index),
    )


def index_capacity(index: Index, read: int, write: int) -> dict[str, Any]:
    """Of DescribeTable, a global index with a provisioned capacity of its own."""
    keys = [{"AttributeName": index.partition.partition(":")[0], "KeyType": "HASH"}]
    if index.sort:
        keys.append({"AttributeName": index.sort.partition(":")[0], "KeyType": "RANGE"})
    return {
        "IndexName": index.name,
        "KeySchema": keys,
        "Projection": {"ProjectionType": index.projection},
        "IndexStatus": "ACTIVE",
        "IndexSizeBytes": 180_000,
        "ItemCount": 900,
        "ProvisionedThroughput": {
            "ReadCapacityUnits": read,
            "WriteCapacityUnits": write,
            "NumberOfDecreasesToday": 0,
        },
    }


def warm(read: int, write: int) -> dict[str, Any]:
    return {
        "BillingModeSummary": {"BillingMode": "PAY_PER_REQUEST"},
        "WarmThroughput": {
            "ReadUnitsPerSecond": read,
            "WriteUnitsPerSecond": write,
            "Status": "ACTIVE",
        },
    }


def paced(
    per_second: float, seconds: float, make: Callable[[float, int], tuple[Item | None, Item | None]]
) -> Iterator[Write]:
    """Writes at an even pace up to half a minute ago. make: of a time and a number, the images."""
    how_many = int(per_second * seconds)
    for number in range(how_many):
        ago = 30 + seconds * (1 - number / how_many)
        old, new = make(-ago, number)
        yield Write(ago, old, new)


Stream = Callable[[Random, float, list[Item]], Iterable[Write]]


def counting(attribute: str, per_second: float, chosen: Callable[[Item], bool]) -> Stream:
    """One item of the chosen is counted up; one write in six goes to any item."""

    def stream(c: Random, now: float, items: list[Item]) -> Iterator[Write]:
        counter = next(item for item in items if chosen(item))

        def make(at: float, number: int) -> tuple[Item, Item]:
            if c.random() < 0.16:
                item = c.choice(items)
                return item, item | {"touched": int(now + at)}
            value = counter[attribute] + number
            return counter | {attribute: value}, counter | {attribute: value + 1}

        yield from paced(per_second, 120, make)

    return stream


def updates(per_second: float, seconds: float = 60, power: float = 1) -> Stream:
    """Updates of items anywhere; a power above 1 prefers the first."""

    def stream(c: Random, now: float, items: list[Item]) -> Iterator[Write]:
        def make(at: float, number: int) -> tuple[Item, Item]:
            item = items[skew(c, len(items), power)]
            return item, item | {"touched": int(now + at)}

        yield from paced(per_second, seconds, make)

    return stream


SMALL = "low traffic: the shard of the counter is far from a limit"


# Counters


@table(
    "site-stats",
    "planted",
    Schema("pk"),
    found=("A8",),
    allowed={"H7": SMALL},
    stream=counting("hits", 40, lambda item: item["pk"] == "TOTAL"),
    metrics=(wcu(2900),),
)
def site_stats(c: Random, now: float) -> Items:
    yield {"pk": "TOTAL", "type": "total", "hits": 9_102_443}
    for _ in range(600):
        yield {"pk": f"PAGE#/{code(c, 8)}", "type": "page", "hits": skew(c, 40_000)}


@table(
    "invoices-with-number-item",
    "planted",
    Schema("PK", "SK"),
    found=("A8",),
    allowed={"H7": SMALL},
    stream=counting("next", 15, lambda item: item["PK"] == "SEQUENCE#INVOICE"),
)
def invoices_with_number_item(c: Random, now: float) -> Items:
    yield {"PK": "SEQUENCE#INVOICE", "SK": "SEQUENCE", "type": "Sequence", "next": 81_244}
    for _ in range(900):
        yield {
            "PK": f"INVOICE#{uuid(c)}",
            "SK": "INVOICE",
            "type": "Invoice",
            "number": c.randrange(81_000),
            "cents": c.randrange(900, 90_000),
        }


@table(
    "campaign-budget",
    "planted",
    Schema("campaignId"),
    found=("A8",),
    allowed={"H7": SMALL, "H1": "half of what a key takes, in bursts"},
    stream=counting("spentMicros", 60, lambda item: item["campaignId"] == "superbowl"),
    metrics=(wcu(4300),),
)
def campaign_budget(c: Random, now: float) -> Items:
    yield {"campaignId": "superbowl", "budgetMicros": 10**12, "spentMicros": 4 * 10**9}
    for _ in range(450):
        yield {
            "campaignId": code(c, 10),
            "budgetMicros": c.randrange(10**9),
            "spentMicros": skew(c, 10**8),
        }


@table(
    "flash-sale-stock",
    "planted",
    Schema("sku"),
    found=("A8",),
    allowed={"H7": SMALL},
    stream=counting("sold", 35, lambda item: item["sku"] == "CONSOLE-5"),
)
def flash_sale_stock(c: Random, now: float) -> Items:
    yield {"sku": "CONSOLE-5", "sold": 1204, "stock": 50_000}
    for _ in range(500):
        yield {"sku": code(c, 9).upper(), "sold": skew(c, 900), "stock": skew(c, 2000)}


@table(
    "drive-tenant-usage",
    "planted",
    Schema("PK", "SK"),
    found=("A8",),
    allowed={"H7": SMALL},
    stream=counting("fileCount", 25, lambda item: item["PK"] == "TENANT#mega"),
)
def drive_tenant_usage(c: Random, now: float) -> Items:
    for tenant in ["mega", *ids(c, 90, lambda c: code(c, 8))]:
        yield {
            "PK": f"TENANT#{tenant}",
            "SK": "USAGE",
            "type": "Usage",
            "fileCount": skew(c, 9_000_000),
        }
        for _ in range(c.randint(1, 8)):
            yield {
                "PK": f"FILE#{uuid(c)}",
                "SK": "FILE",
                "type": "File",
                "tenant": tenant,
                "bytes": skew(c, 90_000_000),
            }


@table(
    "player-experience",
    "decoy",
    Schema("player"),
    traps={"A8": "each player has a counter, and none is written often", "H7": "players are even"},
    stream=lambda c, now, items: paced(
        30,
        100,
        lambda at, n: (item := c.choice(items), item | {"xp": item["xp"] + 5 + n % 3}),
    ),
)
def player_experience(c: Random, now: float) -> Items:
    for player in ids(c, 900):
        yield {"player": player, "xp": skew(c, 99_000), "nick": name(c)}


@table(
    "device-shadow",
    "decoy",
    Schema("thing"),
    traps={"A8": "a version that goes up with each report, of many devices"},
    stream=lambda c, now, items: paced(
        40,
        80,
        lambda at, n: (item := c.choice(items), item | {"version": item["version"] + 1, "t": n}),
    ),
)
def device_shadow(c: Random, now: float) -> Items:
    for _ in range(800):
        yield {"thing": f"lamp-{code(c, 10)}", "version": skew(c, 9000), "state": {"on": True}}


@table(
    "cron-lock",
    "decoy",
    Schema("lock"),
    traps={"A8": "a lock that is taken once in ten seconds", "H7": "a dozen writes"},
    stream=lambda c, now, items: paced(
        0.1, 600, lambda at, n: (items[0] | {"fence": n}, items[0] | {"fence": n + 1})
    ),
)
def cron_lock(c: Random, now: float) -> Items:
    yield {"lock": "nightly-report", "fence": 0, "holder": code(c, 8)}
    for _ in range(320):
        yield {"lock": f"job-{code(c, 7)}", "fence": skew(c, 90), "holder": code(c, 8)}


@table(
    "documents-saved-often",
    "decoy",
    Schema("docId"),
    traps={"A8": "an editor saves its text, and counts nothing; many documents"},
    stream=updates(20, 90, power=1.3),
)
def documents_saved_often(c: Random, now: float) -> Items:
    for doc in ids(c, 700):
        yield {"docId": doc, "text": some(c, 100, 1500), "words": c.randrange(20, 300)}


# Hot keys, and what a split can do


@table(
    "live-votes",
    "planted",
    Schema("contest", "voter"),
    found=("H1",),
    traps={"H2": "voters' ids are random: a split does help"},
    allowed={"A15": "a contest ends, which its items do not show"},
    metrics=(wcu(58_000), rcu(900), *throttles("Write", "KeyRangeThroughput", 2400)),
    insights=(
        Contributor("PKC", ("final-2026",), 55_000, 40),
        Contributor("PKC", ("semi-2026-1",), 700, 40),
        Contributor("PKT", ("final-2026",), 2400, 40),
    ),
)
def live_votes(c: Random, now: float) -> Items:
    for contest in ["final-2026", *ids(c, 60, lambda c: f"show-{code(c, 6)}")]:
        for _ in range(500 if contest == "final-2026" else c.randint(4, 30)):
            yield {"contest": contest, "voter": uuid(c), "choice": c.randint(1, 8)}


@table(
    "product-pages",
    "planted",
    Schema("productId"),
    found=("H1",),
    metrics=(rcu(176_000), wcu(60), *throttles("Read", "KeyRangeThroughput", 5200)),
    insights=(
        Contributor("PKC", ("black-friday-tv",), 168_000, 60),
        Contributor("PKC", ("headphones-9",), 3900, 60),
        Contributor("PKT", ("black-friday-tv",), 5200, 60),
    ),
)
def product_pages(c: Random, now: float) -> Items:
    for product in ["black-friday-tv", "headphones-9", *ids(c, 600, lambda c: code(c, 11))]:
        yield {"productId": product, "html": some(c, 400, 2500), "price": c.randrange(99, 99_900)}


@table(
    "shipments-hot-index",
    "planted",
    Schema("shipmentId", indexes=(Index("byState", "state", "updated"),)),
    found=("H1 byState", "H3 byState", "A9 byState", "I1 byState"),
    metrics=(
        wcu(62_000),
        wcu(61_000, "byState"),
        rcu(40_000),
        rcu(8000, "byState"),
        *throttles("Write", "KeyRangeThroughput", 3000, "byState"),
    ),
    insights=(
        Contributor("PKC", ("DELIVERED",), 57_000, 60, "byState"),
        Contributor("PKC", ("ON_THE_ROAD",), 3000, 60, "byState"),
        Contributor("PKT", ("DELIVERED",), 3000, 60, "byState"),
    ),
    allowed={"H2": "the index is written at its end of time", "I3": "as much as the table"},
)
def shipments_hot_index(c: Random, now: float) -> Items:
    for _ in range(1900):
        yield {
            "shipmentId": uuid(c),
            "state": states(c, 0.95, "DELIVERED", ["CREATED", "ON_THE_ROAD"]),
            "updated": iso(when(c, now, 90)),
        }


@table(
    "saas-noisy-tenant",
    "planted",
    Schema("PK", "SK"),
    found=("H1",),
    metrics=(wcu(64_000, busy=(540, 1020)), *throttles("Write", "KeyRangeThroughput", 900)),
    insights=(
        Contributor("PKC", ("TENANT#globex",), 52_000, 90),
        Contributor("PKC", ("TENANT#initech",), 1500, 90),
        Contributor("PKT", ("TENANT#globex",), 900, 90),
    ),
    allowed={"A15": "a tenant's contacts grow with its business"},
)
def saas_noisy_tenant(c: Random, now: float) -> Items:
    for tenant in ["globex", "initech", *ids(c, 150, lambda c: code(c, 7))]:
        for _ in range(300 if tenant == "globex" else c.randint(2, 15)):
            yield {"PK": f"TENANT#{tenant}", "SK": f"CONTACT#{uuid(c)}", "type": "Contact"}


@table(
    "session-config-hot",
    "planted",
    Schema("k"),
    found=("H1",),
    metrics=(rcu(190_000), *throttles("Read", "KeyRangeThroughput", 1100)),
    insights=(
        Contributor("PKC", ("global-config",), 171_000, 120),
        Contributor("SKC", ("global-config",), 171_000, 120),
        Contributor("PKT", ("global-config",), 1100, 120),
    ),
)
def session_config_hot(c: Random, now: float) -> Items:
    yield {"k": "global-config", "json": some(c, 900, 1000)}
    for _ in range(700):
        yield {"k": f"session-{uuid(c)}", "json": some(c, 100, 400)}


EVEN = [f"u-{number * 7_919_417 % 9_999_991:07}" for number in range(1, 26)]


@table(
    "even-traffic",
    "decoy",
    Schema("userId"),
    traps={"H1": "much traffic, and no key with more than a hundredth", "H4": "nothing throttled"},
    metrics=(rcu(400_000), wcu(90_000)),
    insights=tuple(
        Contributor("PKC", (key,), 3600 - number * 40, 60) for number, key in enumerate(EVEN)
    ),
)
def even_traffic(c: Random, now: float) -> Items:
    for key in EVEN + [f"u-{number:07}" for number in c.sample(range(10**7), 700)]:
        yield {"userId": key, "name": name(c), "seen": int(when(c, now, 3))}


@table(
    "quiet-with-favourite",
    "decoy",
    Schema("station"),
    traps={"H1": "two thirds of ten requests a second are nothing"},
    metrics=(rcu(600), wcu(20)),
    insights=(Contributor("PKC", ("central",), 400, 60), Contributor("PKC", ("harbour",), 30, 60)),
)
def quiet_with_favourite(c: Random, now: float) -> Items:
    for station in ["central", "harbour", *ids(c, 400, lambda c: code(c, 8))]:
        yield {"station": station, "departures": some(c, 100, 600)}


@table(
    "homepage-cache",
    "decoy",
    Schema("slot"),
    traps={"H1": "a tenth of what a key can be read"},
    metrics=(rcu(30_000), wcu(60)),
    insights=(Contributor("PKC", ("hero",), 17_000, 60), Contributor("PKC", ("top5",), 6000, 60)),
)
def homepage_cache(c: Random, now: float) -> Items:
    for slot in ["hero", "top5", *ids(c, 300, lambda c: code(c, 6))]:
        yield {"slot": slot, "html": some(c, 200, 900)}


@table(
    "carriers-even-index",
    "decoy",
    Schema("parcel", indexes=(Index("byCarrier", "carrier", "eta"),)),
    traps={
        "H1 byCarrier": "sixty carriers with some hundred units a minute each",
        "A9 byCarrier": "no carrier has more than a few percent",
        "H3 byCarrier": "no throttle in two weeks",
    },
    metrics=(wcu(24_000), wcu(24_000, "byCarrier"), rcu(9000, "byCarrier")),
    insights=tuple(
        Contributor("PKC", (f"carrier-{n:02}",), 420 - n * 3, 60, "byCarrier") for n in range(20)
    ),
)
def carriers_even_index(c: Random, now: float) -> Items:
    for _ in range(1200):
        yield {
            "parcel": code(c, 16),
            "carrier": f"carrier-{c.randrange(60):02}",
            "eta": iso(now + c.random() * 5 * DAY),
        }


@table(
    "one-minute-import",
    "decoy",
    Schema("feed", "row"),
    traps={"H1": "one minute of an import, and no throttle", "A15": "each import is a new feed"},
    metrics=(wcu(400),),
    insights=(Contributor("PKC", ("feed-77",), 11_000, 1, ago=40_000.0),),
)
def one_minute_import(c: Random, now: float) -> Items:
    for feed in range(60, 130):
        for _ in range(c.randint(5, 25)):
            yield {"feed": f"feed-{feed * 7919 % 997}", "row": code(c, 12), "v": some(c, 10, 90)}


ROWS = {"H7": "the hot collection's partition, which H1 says better"}


def hot(key: str, others: float = 1000) -> tuple[Contributor, ...]:
    return (
        Contributor("PKC", (key,), 46_000, 25),
        Contributor("PKC", ("another",), others, 25),
        Contributor("PKT", (key,), 1800, 25),
    )


HOT = (wcu(49_000), *throttles("Write", "KeyRangeThroughput", 1800))


def appended(partition: str, hot_key: str, sort: str, sort_of: Callable[..., Any]) -> Stream:
    """750 inserts a second, nine of ten at the end of one collection. sort_of: (chance, time)."""

    def stream(c: Random, now: float, items: list[Item]) -> Iterator[Write]:
        others = sorted({item[partition] for item in items})

        def make(at: float, number: int) -> tuple[None, Item]:
            key = hot_key if c.random() < 0.9 else c.choice(others)
            return None, {partition: key, sort: sort_of(c, now + at), "n": number, "by": code(c, 8)}

        yield from paced(750, 16, make)

    return stream


def history(
    c: Random, now: float, partition: str, hot_key: str, sort: str, sort_of: Callable[..., Any]
) -> Items:
    """What was appended in the last weeks, of which half is in the hot collection."""
    others = ids(c, 70, lambda c: code(c, 9))
    for number in range(1800):
        key = hot_key if c.random() < 0.5 else c.choice(others)
        at = when(c, now, 20)
        yield {partition: key, sort: sort_of(c, at), "n": number, "by": code(c, 8)}


def iso_key(c: Random, at: float) -> str:
    return f"{iso(at)}#{code(c, 4)}"


def ms_key(c: Random, at: float) -> int:
    return int(at * 1_000_000)


def random_key(c: Random, at: float) -> str:
    return uuid(c)


def mid(c: Random, at: float) -> str:
    return ulid(at, c)


@table(
    "match-feed",
    "planted",
    Schema("matchId", "eventId"),
    found=("H1", "H2", "A15"),
    allowed=ROWS,
    stream=appended("matchId", "cup-final", "eventId", mid),
    metrics=HOT,
    insights=hot("cup-final"),
)
def match_feed(c: Random, now: float) -> Items:
    yield from history(c, now, "matchId", "cup-final", "eventId", mid)


@table(
    "mega-chat",
    "planted",
    Schema("channel", "sentAt"),
    found=("H1", "H2", "A15"),
    allowed=ROWS,
    stream=appended("channel", "general", "sentAt", iso_key),
    metrics=HOT,
    insights=hot("general"),
)
def mega_chat(c: Random, now: float) -> Items:
    yield from history(c, now, "channel", "general", "sentAt", iso_key)


@table(
    "gateway-readings",
    "planted",
    Schema("gateway", "at:N"),
    found=("H1", "H2", "A15"),
    allowed=ROWS,
    stream=appended("gateway", "gw-plant-7", "at", ms_key),
    metrics=HOT,
    insights=hot("gw-plant-7"),
)
def gateway_readings(c: Random, now: float) -> Items:
    yield from history(c, now, "gateway", "gw-plant-7", "at", ms_key)


@table(
    "clearing-ledger",
    "planted",
    Schema("account", "entry"),
    found=("H1", "H2", "A15"),
    allowed=ROWS,
    stream=appended("account", "CLEARING", "entry", lambda c, at: uuid7(at, c)),
    metrics=HOT,
    insights=hot("CLEARING"),
)
def clearing_ledger(c: Random, now: float) -> Items:
    yield from history(c, now, "account", "CLEARING", "entry", lambda c, at: uuid7(at, c))


@table(
    "click-stream",
    "planted",
    Schema("campaign", "clickedAt"),
    found=("H1", "H2", "A15"),
    allowed=ROWS,
    stream=appended("campaign", "launch", "clickedAt", lambda c, at: f"{at:.6f}"),
    metrics=HOT,
    insights=hot("launch"),
)
def click_stream(c: Random, now: float) -> Items:
    yield from history(c, now, "campaign", "launch", "clickedAt", lambda c, at: f"{at:.6f}")


@table(
    "petition-signatures",
    "planted",
    Schema("petition", "signature"),
    found=("H1", "A15"),
    traps={"H2": "random sort keys: the collection can be split"},
    allowed=ROWS,
    stream=appended("petition", "save-the-bees", "signature", random_key),
    metrics=HOT,
    insights=hot("save-the-bees"),
)
def petition_signatures(c: Random, now: float) -> Items:
    yield from history(c, now, "petition", "save-the-bees", "signature", random_key)


@table(
    "seat-map-rush",
    "planted",
    Schema("event", "seat"),
    found=("H1",),
    traps={"H2": "updates of all seats at random, none at the end", "A15": "a hall has its seats"},
    allowed=ROWS,
    stream=lambda c, now, items: paced(
        700, 15, lambda at, n: (item := items[skew(c, 900, 1)], item | {"held": n})
    ),
    metrics=HOT,
    insights=hot("concert-1"),
)
def seat_map_rush(c: Random, now: float) -> Items:
    for number in range(900):
        yield {"event": "concert-1", "seat": f"{number // 30:02}-{number % 30:02}", "free": True}
    for event in ids(c, 60):
        for number in range(12):
            yield {"event": event, "seat": f"00-{number:02}", "free": c.random() < 0.5}


@table(
    "slow-log",
    "decoy",
    Schema("service", "at", ttl="gone"),
    traps={"H2": "ascending, but five writes a second", "A15": "expires after three days"},
    stream=lambda c, now, items: paced(
        5,
        300,
        lambda at, n: (
            None,
            {
                "service": c.choice(items)["service"],
                "at": iso(now + at) + code(c, 3),
                "gone": int(now + at + 3 * DAY),
            },
        ),
    ),
    metrics=(wcu(310),),
)
def slow_log(c: Random, now: float) -> Items:
    services = ids(c, 40, lambda c: f"svc-{code(c, 5)}")
    for _ in range(1200):
        at = when(c, now, 3)
        yield {"service": c.choice(services), "at": iso(at) + code(c, 3), "gone": int(at + 3 * DAY)}


@table(
    "sensor-fleet",
    "decoy",
    Schema("sensor", "at", ttl="ttl"),
    traps={
        "H2": "ascending in each collection, but a thousand sensors share the load",
        "H7": "even over the shards",
        "A15": "expires after two days",
    },
    stream=lambda c, now, items: paced(
        500,
        12,
        lambda at, n: (
            None,
            {
                "sensor": items[n * 7 % len(items)]["sensor"],
                "at": iso(now + at) + code(c, 3),
                "ttl": int(now + at + 2 * DAY),
            },
        ),
    ),
    metrics=(wcu(31_000),),
)
def sensor_fleet(c: Random, now: float) -> Items:
    for sensor in ids(c, 1000):
        for _ in range(2):
            at = when(c, now, 2)
            yield {"sensor": sensor, "at": iso(at), "ttl": int(at + 2 * DAY)}


@table(
    "timeline-read-hot",
    "planted",
    Schema("author", "post"),
    found=("H1",),
    traps={"H2": "hot by reads of all of its posts, hardly written"},
    allowed={"A15": "posts of a celebrity grow, slowly"},
    stream=lambda c, now, items: paced(
        0.2,
        600,
        lambda at, n: (
            None,
            {
                "author": c.choice(items)["author"],
                "post": ulid(now + at, c),
                "text": some(c, 9, 90),
            },
        ),
    ),
    metrics=(rcu(170_000), wcu(12), *throttles("Read", "KeyRangeThroughput", 900)),
    insights=(
        Contributor("PKC", ("celebrity",), 160_000, 45),
        Contributor("PKT", ("celebrity",), 900, 45),
    ),
)
def timeline_read_hot(c: Random, now: float) -> Items:
    for author in ["celebrity", *ids(c, 120)]:
        for _ in range(60 if author == "celebrity" else c.randint(1, 9)):
            yield {"author": author, "post": ulid(when(c, now, 900), c), "text": some(c, 20, 200)}


# Indexes that hold writes back, and short capacity


def people(c: Random, now: float, how_many: int = 900) -> Items:
    """Users with an e-mail, a city and a time."""
    for user in ids(c, how_many):
        yield {
            "userId": user,
            "email": mail(c),
            "city": f"{c.choice(words.CITIES)}-{c.randrange(9)}",
            "seen": iso(when(c, now, 60)),
            "name": name(c),
        }


BY_CITY = Index("byCity", "city", "seen")
BY_MAIL = Index("byMail", "email", None, False, "KEYS_ONLY")


@table(
    "users-index-underprovisioned",
    "planted",
    Schema("userId", indexes=(BY_CITY,)),
    found=("H3 byCity",),
    traps={"H4": "the table has capacity enough: it is the index that lacks"},
    overlay=provisioned(200, 200) | {"GlobalSecondaryIndexes": [index_capacity(BY_CITY, 50, 10)]},
    metrics=(
        wcu(3600),
        wcu(590, "byCity"),
        rcu(200, "byCity"),
        *capacity(200, 200),
        *capacity(50, 10, "byCity"),
        *throttles("Write", "ProvisionedThroughput", 2500, "byCity"),
    ),
)
def users_index_underprovisioned(c: Random, now: float) -> Items:
    yield from people(c, now)


@table(
    "users-mail-index-short",
    "planted",
    Schema("userId", indexes=(BY_MAIL, BY_CITY)),
    found=("H3 byMail",),
    traps={"H3 byCity": "its writes pass", "H4": "only an index is short"},
    overlay=provisioned(100, 150)
    | {
        "GlobalSecondaryIndexes": [
            index_capacity(BY_MAIL, 20, 5),
            index_capacity(BY_CITY, 100, 150),
        ]
    },
    metrics=(
        wcu(4000),
        wcu(295, "byMail"),
        wcu(3000, "byCity"),
        rcu(900, "byCity"),
        rcu(300, "byMail"),
        *capacity(100, 150),
        *capacity(20, 5, "byMail"),
        *capacity(100, 150, "byCity"),
        *throttles("Write", "ProvisionedThroughput", 700, "byMail", busy=(480, 1200)),
    ),
)
def users_mail_index_short(c: Random, now: float) -> Items:
    yield from people(c, now)


@table(
    "posts-index-throttled",
    "planted",
    Schema("postId", indexes=(Index("byTag", "tag", "postedAt", False, "KEYS_ONLY"),)),
    found=("H3 byTag",),
    metrics=(
        wcu(70_000),
        wcu(58_000, "byTag"),
        rcu(40_000, "byTag"),
        *throttles("Write", "KeyRangeThroughput", 1500, "byTag", busy=(600, 900)),
    ),
    allowed={"H1": "a tag may be hot, but no insights say so"},
)
def posts_index_throttled(c: Random, now: float) -> Items:
    for _ in range(1200):
        yield {
            "postId": uuid(c),
            "tag": f"tag{skew(c, 90, 1.2)}",
            "postedAt": iso(when(c, now, 200)),
        }


@table(
    "tasks-index-max-throughput",
    "planted",
    Schema("taskId", indexes=(Index("byWorker", "worker", "due"),)),
    found=("H3 byWorker",),
    overlay={"BillingModeSummary": {"BillingMode": "PAY_PER_REQUEST"}},
    metrics=(
        wcu(30_000),
        wcu(12_000, "byWorker"),
        rcu(9000, "byWorker"),
        *throttles("Write", "MaxOnDemandThroughput", 900, "byWorker"),
    ),
)
def tasks_index_max_throughput(c: Random, now: float) -> Items:
    for _ in range(900):
        yield {
            "taskId": uuid(c),
            "worker": f"w-{c.randrange(120)}",
            "due": day(now + c.random() * 30 * DAY),
        }


@table(
    "users-index-read-throttled",
    "decoy",
    Schema("userId", indexes=(BY_CITY,)),
    traps={"H3 byCity": "its reads are throttled, which holds no write back"},
    allowed={"H4": "the index's read capacity is short"},
    metrics=(
        wcu(1800),
        wcu(1500, "byCity"),
        rcu(3000, "byCity"),
        *capacity(100, 100),
        *capacity(50, 100, "byCity"),
        *throttles("Read", "ProvisionedThroughput", 30, "byCity"),
    ),
    overlay=provisioned(100, 100) | {"GlobalSecondaryIndexes": [index_capacity(BY_CITY, 50, 100)]},
)
def users_index_read_throttled(c: Random, now: float) -> Items:
    yield from people(c, now)


@table(
    "users-index-busy",
    "clean",
    Schema("userId", indexes=(BY_CITY,)),
    traps={"H3 byCity": "as much capacity as the table, half used", "H4": "half of it used"},
    metrics=(
        wcu(3000),
        wcu(2900, "byCity"),
        rcu(2500, "byCity"),
        *capacity(100, 100),
        *capacity(100, 100, "byCity"),
    ),
    overlay=provisioned(100, 100) | {"GlobalSecondaryIndexes": [index_capacity(BY_CITY, 100, 100)]},
)
def users_index_busy(c: Random, now: float) -> Items:
    yield from people(c, now)


@table(
    "orders-capacity-short",
    "planted",
    Schema("orderId"),
    found=("H4",),
    traps={"H1": "orders are even"},
    overlay=provisioned(100, 20),
    metrics=(
        wcu(1190, busy=(420, 1320)),
        rcu(1500),
        *capacity(100, 20),
        *throttles("Write", "ProvisionedThroughput", 600, busy=(420, 1320)),
    ),
    insights=tuple(Contributor("PKC", (f"ord-{number}",), 3, 5) for number in range(9)),
)
def orders_capacity_short(c: Random, now: float) -> Items:
    for number in ids(c, 900, lambda c: f"ord-{code(c, 12)}"):
        yield {"orderId": number, "total": c.randrange(99, 99_000), "at": iso(when(c, now))}


@table(
    "profiles-account-limit",
    "planted",
    Schema("profileId"),
    found=("H4",),
    metrics=(
        rcu(2_390_000, busy=(1080, 1260)),
        wcu(9000),
        *throttles("Read", "AccountLimit", 8000, busy=(1080, 1260)),
    ),
    allowed={"H5": "the evening's peak is high, but it is the quota that ends it"},
)
def profiles_account_limit(c: Random, now: float) -> Items:
    for profile in ids(c, 800):
        yield {"profileId": profile, "nick": name(c), "bio": some(c, 10, 200)}


@table(
    "imports-max-on-demand",
    "planted",
    Schema("rowId"),
    found=("H4",),
    overlay={
        "BillingModeSummary": {"BillingMode": "PAY_PER_REQUEST"},
        "OnDemandThroughput": {"MaxReadRequestUnits": 500, "MaxWriteRequestUnits": 100},
    },
    metrics=(wcu(5950), rcu(900), *throttles("Write", "MaxOnDemandThroughput", 4000)),
)
def imports_max_on_demand(c: Random, now: float) -> Items:
    for row in ids(c, 900):
        yield {"rowId": row, "source": c.choice(["sap", "csv"]), "v": some(c, 20, 200)}


@table(
    "catalog-reads-short",
    "planted",
    Schema("sku"),
    found=("H4",),
    overlay=provisioned(25, 5),
    metrics=(
        rcu(1500),
        wcu(20),
        *capacity(25, 5),
        *throttles("Read", "ProvisionedThroughput", 350),
    ),
)
def catalog_reads_short(c: Random, now: float) -> Items:
    for _ in range(700):
        yield {"sku": code(c, 10), "title": some(c, 10, 60), "price": c.randrange(99, 9999)}


@table(
    "nightly-batch-short",
    "planted",
    Schema("customer", "statement"),
    found=("H4",),
    overlay=provisioned(50, 50),
    metrics=(
        wcu(2990, busy=(120, 180)),
        wcu(40, busy=(180, 1440)),
        *capacity(50, 50),
        *throttles("Write", "ProvisionedThroughput", 5000, busy=(120, 180)),
    ),
)
def nightly_batch_short(c: Random, now: float) -> Items:
    for customer in ids(c, 300):
        for month in range(1, c.randint(2, 6)):
            yield {
                "customer": customer,
                "statement": f"2026-{month:02}",
                "cents": c.randrange(9999),
            }


@table(
    "three-throttles",
    "decoy",
    Schema("id"),
    traps={"H4": "three throttled requests in two weeks, which the SDK repeats"},
    overlay=provisioned(100, 100),
    metrics=(
        wcu(2400),
        *capacity(100, 100),
        *throttles("Write", "ProvisionedThroughput", 3, busy=(600, 601), every_days=14),
    ),
)
def three_throttles(c: Random, now: float) -> Items:
    for one in ids(c, 500):
        yield {"id": one, "v": some(c, 10, 80)}


@table(
    "users-autoscaled",
    "clean",
    Schema("userId"),
    traps={"H4": "seventy percent of the capacity, which scales itself", "H5": "no peaks"},
    overlay=provisioned(600, 300),
    metrics=(wcu(12_600), rcu(25_000), *capacity(600, 300)),
)
def users_autoscaled(c: Random, now: float) -> Items:
    yield from people(c, now)


# Peaks


WEEKLY: dict[str, Any] = {"busy": (1200, 1260), "every_days": 7}
START: dict[str, Any] = {"busy": (1200, 1206), "every_days": 7}
AT_START = {"H4": "the throttles of the first minutes are the cold table's"}


@table(
    "ticket-sale-weekly",
    "planted",
    Schema("reservation"),
    found=("H5",),
    allowed=AT_START,
    options={"peak_writes": 9_000},
    overlay=warm(12_000, 4000),
    metrics=(wcu(540_000, **WEEKLY), *throttles("Write", "KeyRangeThroughput", 40_000, **START)),
)
def ticket_sale_weekly(c: Random, now: float) -> Items:
    for one in ids(c, 700):
        yield {"reservation": one, "seat": code(c, 4), "at": iso(when(c, now, 30))}


@table(
    "quiz-show-answers",
    "planted",
    Schema("answerId"),
    found=("H5",),
    allowed=AT_START,
    options={"peak_writes": 15_000},
    overlay=warm(12_000, 4000),
    metrics=(
        wcu(900_000, busy=(1215, 1275), every_days=7),
        wcu(300),
        *throttles("Write", "KeyRangeThroughput", 90_000, busy=(1215, 1222), every_days=7),
    ),
)
def quiz_show_answers(c: Random, now: float) -> Items:
    for one in ids(c, 900):
        yield {"answerId": one, "q": c.randint(1, 9), "choice": c.choice("ABCD")}


@table(
    "morning-app-start",
    "planted",
    Schema("deviceToken"),
    found=("H5",),
    allowed=AT_START,
    overlay=warm(12_000, 4000),
    metrics=(
        rcu(1_500_000, busy=(420, 440)),
        rcu(9000, busy=(440, 1440)),
        *throttles("Read", "KeyRangeThroughput", 70_000, busy=(420, 424)),
    ),
)
def morning_app_start(c: Random, now: float) -> Items:
    for _ in range(800):
        yield {"deviceToken": code(c, 40), "locale": c.choice(["de", "en"]), "app": "4.2"}


@table(
    "payroll-runs",
    "planted",
    Schema("payslip"),
    found=("H5",),
    allowed=AT_START,
    options={"peak_writes": 7_000},
    overlay=warm(12_000, 4000),
    metrics=(
        wcu(420_000, busy=(60, 90), every_days=7),
        wcu(60),
        *throttles("Write", "KeyRangeThroughput", 30_000, busy=(60, 66), every_days=7),
    ),
)
def payroll_runs(c: Random, now: float) -> Items:
    for one in ids(c, 600):
        yield {"payslip": one, "net": c.randrange(100_000, 900_000), "month": "2026-10"}


@table(
    "drops-sneakers",
    "planted",
    Schema("entry"),
    found=("H5",),
    allowed=AT_START,
    options={"peak_writes": 10_000},
    overlay=warm(14_000, 4500),
    metrics=(
        wcu(600_000, busy=(1080, 1095), every_days=4),
        rcu(1_800_000, busy=(1080, 1095), every_days=4),
        *throttles("Write", "KeyRangeThroughput", 60_000, busy=(1080, 1085), every_days=4),
    ),
)
def drops_sneakers(c: Random, now: float) -> Items:
    for one in ids(c, 700):
        yield {"entry": one, "size": c.randint(36, 48), "mail": mail(c)}


@table(
    "weekly-peak-warmed",
    "decoy",
    Schema("reservation"),
    traps={"H5": "warmed to 20,000 writes a second, twice the peak"},
    overlay=warm(60_000, 20_000),
    metrics=(wcu(540_000, **WEEKLY),),
)
def weekly_peak_warmed(c: Random, now: float) -> Items:
    for one in ids(c, 700):
        yield {"reservation": one, "seat": code(c, 4), "at": iso(when(c, now, 30))}


@table(
    "lunch-orders",
    "decoy",
    Schema("orderId"),
    traps={"H5": "a daily peak of a hundred writes a second, which any table takes"},
    overlay=warm(12_000, 4000),
    metrics=(wcu(6000, busy=(690, 750)), wcu(120, busy=(750, 1440))),
)
def lunch_orders(c: Random, now: float) -> Items:
    for one in ids(c, 800):
        yield {"orderId": one, "dish": some(c, 6, 20), "at": iso(when(c, now, 14))}


@table(
    "steady-stream",
    "clean",
    Schema("id"),
    traps={"H5": "three thousand a second day and night, and no peak"},
    overlay=warm(30_000, 12_000),
    metrics=(wcu(180_000), rcu(240_000)),
)
def steady_stream(c: Random, now: float) -> Items:
    for one in ids(c, 800):
        yield {"id": one, "v": some(c, 10, 80)}


@table(
    "evening-provisioned",
    "decoy",
    Schema("id"),
    traps={"H5": "the evening's peak is provisioned for", "H4": "nothing is throttled"},
    overlay=provisioned(2000, 4000) | {"WarmThroughput": warm(30_000, 12_000)["WarmThroughput"]},
    metrics=(wcu(150_000, busy=(1140, 1260)), wcu(9000), *capacity(2000, 4000)),
)
def evening_provisioned(c: Random, now: float) -> Items:
    for one in ids(c, 800):
        yield {"id": one, "v": some(c, 10, 80)}


# Heat by hash


def hash_order(partition: str, items: list[Item]) -> list[Item]:
    return sorted(
        items, key=lambda item: (shard_of(item[partition]), crc32(str(item[partition]).encode()))
    )


def once(
    per_second: float,
    order: Callable[[Random, list[Item]], list[Item]],
    images: Callable[[Item], tuple[Item | None, Item | None]],
) -> Stream:
    """Each item is written once, in this order."""

    def stream(c: Random, now: float, items: list[Item]) -> Iterator[Write]:
        ordered = order(c, items)
        yield from paced(
            per_second, len(ordered) / per_second, lambda at, n: images(ordered[n % len(ordered)])
        )

    return stream


def shuffled(c: Random, items: list[Item]) -> list[Item]:
    return c.sample(items, len(items))


def scanned(c: Random, items: list[Item]) -> list[Item]:
    """As a scan meets them, in which order the items are given."""
    return items


def inserted(item: Item) -> tuple[Item | None, Item | None]:
    return None, item


def removed(item: Item) -> tuple[Item | None, Item | None]:
    return item, None


def backfilled(item: Item) -> tuple[Item | None, Item | None]:
    return item, item | {"schemaVersion": 2}


BULK = (wcu(52_000), *throttles("Write", "KeyRangeThroughput", 1300))
ONE_BY_ONE = {"H7": "over the whole load the partitions are even: one after the other is hot"}


def bulk(c: Random, key: str, how_many: int = 6000, tag: str = "") -> Items:
    for _ in range(how_many):
        yield {key: tag + uuid(c), "body": some(c, 900, 1900), "n": c.randrange(99)}


@table(
    "customers-copied",
    "planted",
    Schema("customerId"),
    found=("H6",),
    allowed=ONE_BY_ONE,
    stream=once(450, scanned, inserted),
    metrics=BULK,
)
def customers_copied(c: Random, now: float) -> Items:
    yield from bulk(c, "customerId")


@table(
    "articles-backfill",
    "planted",
    Schema("PK"),
    found=("H6",),
    allowed=ONE_BY_ONE,
    stream=once(400, scanned, backfilled),
    metrics=BULK,
)
def articles_backfill(c: Random, now: float) -> Items:
    yield from bulk(c, "PK", tag="ARTICLE#")


@table(
    "carts-purged-by-scan",
    "planted",
    Schema("cart"),
    found=("H6",),
    allowed=ONE_BY_ONE,
    stream=once(500, scanned, removed),
    metrics=BULK,
)
def carts_purged_by_scan(c: Random, now: float) -> Items:
    yield from bulk(c, "cart", 5000)


@table(
    "users-migrated",
    "planted",
    Schema("pk", "sk"),
    found=("H6",),
    allowed=ONE_BY_ONE,
    stream=once(450, scanned, inserted),
    metrics=BULK,
)
def users_migrated(c: Random, now: float) -> Items:
    for item in bulk(c, "pk", 1800, "USER|"):
        for part in ("profile", "settings", "consent"):
            yield item | {"sk": part, "type": part}


@table(
    "measurements-restored",
    "planted",
    Schema("probe", "at:N", ttl="ttl"),
    found=("H6",),
    allowed=ONE_BY_ONE,
    stream=once(420, scanned, inserted),
    metrics=BULK,
    traps={"A15": "expires after ninety days", "A16": "seconds ahead"},
)
def measurements_restored(c: Random, now: float) -> Items:
    for probe in ids(c, 500, lambda c: f"probe-{code(c, 8)}"):
        for number in range(11):
            at = int(now - number * 7 * DAY - c.random() * DAY)
            yield {"probe": probe, "at": at, "raw": some(c, 900, 1900), "ttl": at + int(90 * DAY)}


@table(
    "customers-loaded-shuffled",
    "decoy",
    Schema("customerId"),
    traps={"H6": "the load was shuffled", "H7": "and so is even"},
    stream=once(450, shuffled, inserted),
    metrics=(wcu(52_000),),
)
def customers_loaded_shuffled(c: Random, now: float) -> Items:
    yield from bulk(c, "customerId", 4500)


@table(
    "parts-loaded-alphabetically",
    "decoy",
    Schema("part"),
    traps={"H6": "in the order of names, which is none of hashes"},
    stream=once(450, lambda c, items: sorted(items, key=lambda item: item["part"]), inserted),
    metrics=(wcu(50_000),),
)
def parts_loaded_alphabetically(c: Random, now: float) -> Items:
    yield from bulk(c, "part", 4500, "part-")


@table(
    "orders-backfill-by-time",
    "decoy",
    Schema("orderId"),
    traps={"H6": "in the order of time", "H7": "even over the shards"},
    stream=once(400, lambda c, items: sorted(items, key=lambda item: item["placed"]), backfilled),
    metrics=(wcu(47_000),),
)
def orders_backfill_by_time(c: Random, now: float) -> Items:
    for item in bulk(c, "orderId", 4000):
        yield item | {"placed": iso(when(c, now))}


@table(
    "accounts-daily-traffic",
    "clean",
    Schema("account"),
    traps={"H6": "users at work, in no order", "H7": "even", "A8": "no item is written often"},
    stream=updates(60, 60),
    metrics=(wcu(3600),),
)
def accounts_daily_traffic(c: Random, now: float) -> Items:
    for account in ids(c, 1500):
        yield {"account": account, "balance": c.randrange(90_000), "holder": name(c)}


@table(
    "leads-slow-backfill",
    "decoy",
    Schema("lead"),
    traps={"H6": "in the order of a Scan, but three a second: no partition feels it"},
    stream=once(3, scanned, backfilled),
    metrics=(wcu(190),),
)
def leads_slow_backfill(c: Random, now: float) -> Items:
    for lead in ids(c, 900):
        yield {"lead": lead, "mail": mail(c)}


def uneven(partition: str, shard: int, weight: float, per_second: float, seconds: float) -> Stream:
    """Items of one shard are chosen more often than others."""

    def stream(c: Random, now: float, items: list[Item]) -> Iterator[Write]:
        weights = [weight if shard_of(item[partition]) == shard else 1 for item in items]
        chosen = c.choices(items, weights, k=int(per_second * seconds) + 1)
        yield from paced(
            per_second, seconds, lambda at, n: (chosen[n], chosen[n] | {"touched": int(now + at)})
        )

    return stream


WARMER = (wcu(60_000), *throttles("Write", "KeyRangeThroughput", 1200))


@table(
    "stores-stock-heat",
    "planted",
    Schema("store", "sku"),
    found=("H7",),
    traps={"H1": "no store has much of it: some dozens are on one partition"},
    stream=uneven("store", 2, 25, 650, 14),
    metrics=WARMER,
)
def stores_stock_heat(c: Random, now: float) -> Items:
    for store in ids(c, 200, lambda c: f"store-{code(c, 6)}"):
        for sku in ids(c, 8, lambda c: code(c, 8)):
            yield {"store": store, "sku": sku, "n": skew(c, 90), "note": some(c, 900, 1500)}


@table(
    "wallets-heat",
    "planted",
    Schema("walletId"),
    found=("H7",),
    stream=uneven("walletId", 4, 30, 600, 15),
    metrics=WARMER,
)
def wallets_heat(c: Random, now: float) -> Items:
    for wallet in ids(c, 900):
        yield {"walletId": wallet, "cents": c.randrange(99_000), "memo": some(c, 900, 1900)}


@table(
    "rides-cells-heat",
    "planted",
    Schema("cell", "driver"),
    found=("H7",),
    stream=uneven("cell", 0, 20, 700, 13),
    metrics=WARMER,
)
def rides_cells_heat(c: Random, now: float) -> Items:
    for cell in ids(c, 150, lambda c: f"8{code(c, 9)}fff"):
        for _ in range(c.randint(4, 12)):
            yield {
                "cell": cell,
                "driver": code(c, 10),
                "heading": c.randrange(360),
                "route": some(c, 900, 1500),
            }


@table(
    "tenants-heat",
    "planted",
    Schema("PK", "SK"),
    found=("H7",),
    stream=uneven("PK", 5, 40, 550, 16),
    metrics=WARMER,
)
def tenants_heat(c: Random, now: float) -> Items:
    for tenant in ids(c, 180, lambda c: f"TENANT#{code(c, 8)}"):
        for record in ids(c, 8):
            yield {
                "PK": tenant,
                "SK": f"RECORD#{record}",
                "type": "Record",
                "data": some(c, 900, 1900),
            }


@table(
    "guilds-heat",
    "planted",
    Schema("guild", "member"),
    found=("H7",),
    stream=uneven("guild", 3, 22, 650, 14),
    metrics=WARMER,
)
def guilds_heat(c: Random, now: float) -> Items:
    for guild in ids(c, 160, lambda c: code(c, 9)):
        for member in ids(c, c.randint(5, 15)):
            yield {
                "guild": guild,
                "member": member,
                "power": skew(c, 900),
                "log": some(c, 900, 1500),
            }


@table(
    "wallets-even",
    "clean",
    Schema("walletId"),
    traps={"H7": "six shards of much the same heat"},
    stream=uneven("walletId", 4, 1, 600, 12),
    metrics=(wcu(60_000),),
)
def wallets_even(c: Random, now: float) -> Items:
    for wallet in ids(c, 1500):
        yield {"walletId": wallet, "cents": c.randrange(99_000), "memo": some(c, 900, 1900)}


@table(
    "wallets-few-writes",
    "decoy",
    Schema("walletId"),
    traps={"H7": "thirty writes in ten minutes say nothing of partitions"},
    stream=uneven("walletId", 1, 12, 0.05, 600),
    metrics=(wcu(4),),
)
def wallets_few_writes(c: Random, now: float) -> Items:
    for wallet in ids(c, 900):
        yield {"walletId": wallet, "cents": c.randrange(99_000)}


@table(
    "guests-slightly-uneven",
    "decoy",
    Schema("guest"),
    traps={"H7": "a fifth more than the mean: chance"},
    stream=uneven("guest", 3, 1.25, 300, 15),
    metrics=(wcu(30_000),),
)
def guests_slightly_uneven(c: Random, now: float) -> Items:
    for guest in ids(c, 1200):
        yield {"guest": guest, "name": name(c), "wifi": code(c, 8)}


# What indexes cost


@table(
    "articles-copied-whole",
    "planted",
    Schema("articleId", indexes=(Index("byAuthor", "author", "updated"),)),
    found=("I2 byAuthor",),
    allowed={"A13": "eight kilobytes of text are to be read"},
    metrics=(wcu(60_000), wcu(58_000, "byAuthor"), rcu(90_000), rcu(3, "byAuthor")),
)
def articles_copied_whole(c: Random, now: float) -> Items:
    authors = ids(c, 90)
    for article in ids(c, 500):
        yield {
            "articleId": article,
            "author": c.choice(authors),
            "updated": iso(when(c, now, 90)),
            "html": some(c, 5000, 11_000),
        }


@table(
    "orders-copied-whole",
    "planted",
    Schema("PK", "SK", indexes=(Index("GSI1", "GSI1PK", "GSI1SK"),)),
    found=("I2 GSI1",),
    allowed={"A13": "six kilobytes of lines"},
    metrics=(wcu(42_000), wcu(41_000, "GSI1"), rcu(70_000), rcu(1, "GSI1")),
)
def orders_copied_whole(c: Random, now: float) -> Items:
    for _ in range(500):
        order = ulid(when(c, now), c)
        yield {
            "PK": f"ORDER#{order}",
            "SK": "ORDER",
            "type": "Order",
            "GSI1PK": f"CARRIER#{code(c, 2)}",
            "GSI1SK": f"ORDER#{order}",
            "document": some(c, 4000, 9000),
        }


@table(
    "applications",
    "planted",
    Schema("applicationId", indexes=(Index("by-position", "position", "receivedAt"),)),
    found=("I2 by-position",),
    allowed={"A13": "letters of ten kilobytes"},
    metrics=(wcu(24_000), wcu(23_500, "by-position"), rcu(9000), rcu(2, "by-position")),
)
def applications(c: Random, now: float) -> Items:
    positions = ids(c, 60, lambda c: f"pos-{code(c, 6)}")
    for one in ids(c, 400):
        yield {
            "applicationId": one,
            "position": c.choice(positions),
            "receivedAt": iso(when(c, now, 200)),
            "letter": some(c, 7000, 14_000),
            "name": name(c),
        }


@table(
    "twin-states",
    "planted",
    Schema("twin", indexes=(Index("modelIndex", "model", "twin"),)),
    found=("I2 modelIndex",),
    allowed={"A13": "a state of seven kilobytes, written often"},
    metrics=(wcu(90_000), wcu(89_000, "modelIndex"), rcu(20_000), rcu(0.1, "modelIndex")),
)
def twin_states(c: Random, now: float) -> Items:
    for twin in ids(c, 500):
        yield {"twin": twin, "model": f"m{c.randrange(50)}", "state": some(c, 5000, 9000)}


@table(
    "policies-three-copies",
    "planted",
    Schema(
        "policy",
        indexes=(
            Index("holderIdx", "holder", "policy"),
            Index("agentIdx", "agent", "policy"),
            Index("renewalIdx", "renewalMonth", "policy", False, "KEYS_ONLY"),
        ),
    ),
    found=("I2 holderIdx", "I2 agentIdx", "I3"),
    traps={"I2 renewalIdx": "keys only", "A7": "three patterns, three indexes"},
    allowed={"A13": "six kilobytes", "A3": "renewals are spread over the months"},
    metrics=(
        wcu(36_000),
        wcu(36_000, "holderIdx"),
        wcu(36_000, "agentIdx"),
        wcu(900, "renewalIdx"),
        rcu(50_000),
        rcu(2, "holderIdx"),
        rcu(1, "agentIdx"),
        rcu(900, "renewalIdx"),
    ),
)
def policies_three_copies(c: Random, now: float) -> Items:
    for policy in ids(c, 500):
        yield {
            "policy": policy,
            "holder": code(c, 9),
            "agent": f"agent-{c.randrange(80)}",
            "renewalMonth": f"{c.choice([2026, 2027])}-{c.randint(1, 12):02}#{code(c, 1)}",
            "terms": some(c, 4000, 8000),
        }


@table(
    "articles-keys-only",
    "decoy",
    Schema("articleId", indexes=(Index("byAuthor", "author", "updated", False, "KEYS_ONLY"),)),
    traps={"I2 byAuthor": "keys only", "I3": "a fifth of the table's writes"},
    allowed={"A13": "five kilobytes"},
    metrics=(wcu(30_000), wcu(6000, "byAuthor"), rcu(20_000), rcu(2, "byAuthor")),
)
def articles_keys_only(c: Random, now: float) -> Items:
    authors = ids(c, 90)
    for article in ids(c, 400):
        yield {
            "articleId": article,
            "author": c.choice(authors),
            "updated": iso(when(c, now, 90)),
            "html": some(c, 4000, 6000),
        }


@table(
    "links-small-all",
    "clean",
    Schema("short", indexes=(Index("byOwner", "owner", "made"),)),
    traps={"I2 byOwner": "items of two hundred bytes", "I3": "one write for one write"},
    metrics=(wcu(6000), wcu(6000, "byOwner"), rcu(60_000), rcu(40, "byOwner")),
)
def links_small_all(c: Random, now: float) -> Items:
    owners = ids(c, 200)
    for _ in range(1200):
        yield {
            "short": code(c, 7),
            "owner": c.choice(owners),
            "made": iso(when(c, now)),
            "url": f"https://{code(c, 20)}.example/{code(c, 12)}",
        }


@table(
    "profiles-index-read",
    "decoy",
    Schema("profile", indexes=(Index("byHandle", "handle"),)),
    traps={"I2 byHandle": "all reads go through the index and want the whole item"},
    allowed={"A13": "four kilobytes"},
    metrics=(wcu(9000), wcu(9000, "byHandle"), rcu(200), rcu(240_000, "byHandle")),
)
def profiles_index_read(c: Random, now: float) -> Items:
    for profile in ids(c, 500):
        yield {"profile": profile, "handle": code(c, 11), "page": some(c, 3000, 5000)}


@table(
    "manuals-rarely-written",
    "decoy",
    Schema("manual", indexes=(Index("byProduct", "product", "language"),)),
    traps={"I2 byProduct": "large items, but a dozen writes a day"},
    allowed={"A13": "nine kilobytes"},
    metrics=(wcu(0.1), wcu(0.1, "byProduct"), rcu(300), rcu(0.5, "byProduct")),
)
def manuals_rarely_written(c: Random, now: float) -> Items:
    for manual in ids(c, 400):
        yield {
            "manual": manual,
            "product": code(c, 6),
            "language": c.choice(["de", "en", "fr"]),
            "text": some(c, 7000, 11_000),
        }


@table(
    "cases-include-few",
    "decoy",
    Schema("case", indexes=(Index("byLawyer", "lawyer", "due", False, "INCLUDE", ("title",)),)),
    traps={"I2 byLawyer": "the title alone is copied", "I3": "a sixth of the table's writes"},
    allowed={"A13": "six kilobytes"},
    metrics=(wcu(18_000), wcu(3000, "byLawyer"), rcu(9000), rcu(5, "byLawyer")),
)
def cases_include_few(c: Random, now: float) -> Items:
    for one in ids(c, 400):
        yield {
            "case": one,
            "lawyer": f"lawyer-{c.randrange(70)}",
            "due": day(now + c.random() * 90 * DAY),
            "title": some(c, 10, 50),
            "facts": some(c, 4000, 8000),
        }


def moving(*indexes: str) -> tuple[Index, ...]:
    return tuple(Index(f"{one}-index", one, "updatedAt") for one in indexes)


@table(
    "tickets-moving-keys",
    "planted",
    Schema("ticket", indexes=moving("assignee", "queue", "customer")),
    found=("I3",),
    traps={"A7": "three patterns with three keys"},
    metrics=(
        wcu(12_000),
        wcu(24_000, "assignee-index"),
        wcu(24_000, "queue-index"),
        wcu(24_000, "customer-index"),
        rcu(9000),
        rcu(9000, "assignee-index"),
        rcu(12_000, "queue-index"),
        rcu(4000, "customer-index"),
    ),
)
def tickets_moving_keys(c: Random, now: float) -> Items:
    for _ in range(1100):
        yield {
            "ticket": code(c, 12),
            "assignee": f"agent-{c.randrange(90)}",
            "queue": f"q-{c.randrange(40)}",
            "customer": code(c, 6),
            "updatedAt": iso(when(c, now, 40)),
        }


@table(
    "scooters",
    "planted",
    Schema("scooter", indexes=moving("cell", "battery", "city")),
    found=("I3",),
    metrics=(
        wcu(30_000),
        wcu(60_000, "cell-index"),
        wcu(60_000, "battery-index"),
        wcu(60_000, "city-index"),
        rcu(30_000, "cell-index"),
        rcu(3000, "battery-index"),
        rcu(6000, "city-index"),
    ),
)
def scooters(c: Random, now: float) -> Items:
    for _ in range(1200):
        yield {
            "scooter": code(c, 8),
            "cell": code(c, 3),
            "battery": f"{c.randrange(20) * 5:03}",
            "city": f"{c.choice(words.CITIES)}{c.randrange(4)}",
            "updatedAt": iso(when(c, now, 1)),
        }


@table(
    "inventory-four-indexes",
    "planted",
    Schema("sku", indexes=moving("shelf", "supplier", "brand", "colour")),
    found=("I3",),
    allowed={"A7": "four indexes, each with a pattern of its own"},
    metrics=(
        wcu(9000),
        *(wcu(16_000, f"{one}-index") for one in ("shelf", "supplier", "brand", "colour")),
        *(rcu(2000, f"{one}-index") for one in ("shelf", "supplier", "brand", "colour")),
    ),
)
def inventory_four_indexes(c: Random, now: float) -> Items:
    for _ in range(1100):
        yield {
            "sku": code(c, 10),
            "shelf": code(c, 3),
            "supplier": f"sup{c.randrange(60)}",
            "brand": f"brand{c.randrange(50)}",
            "colour": f"col{c.randrange(40)}",
            "updatedAt": iso(when(c, now, 30)),
        }


@table(
    "devices-last-seen",
    "planted",
    Schema("device", indexes=(Index("byFirmware", "firmware", "lastSeen"), BY_CITY)),
    found=("I3",),
    metrics=(
        wcu(40_000),
        wcu(80_000, "byFirmware"),
        wcu(40_000, "byCity"),
        rcu(600, "byFirmware"),
        rcu(900, "byCity"),
    ),
)
def devices_last_seen(c: Random, now: float) -> Items:
    for _ in range(1000):
        at = iso(when(c, now, 1))
        yield {
            "device": uuid(c),
            "firmware": f"{c.randrange(9)}.{c.randrange(9)}",
            "lastSeen": at,
            "city": f"{c.choice(words.CITIES)}-{c.randrange(9)}",
            "seen": at,
        }


@table(
    "invoices-sparse-indexes",
    "decoy",
    Schema(
        "invoice",
        indexes=(
            Index("overdue", "overdueOf", "dueOn", False, "KEYS_ONLY"),
            Index("disputed", "disputedBy", "dueOn", False, "KEYS_ONLY"),
        ),
    ),
    traps={"I3": "two sparse indexes with a tenth of the writes", "I1 overdue": "sparse already"},
    metrics=(
        wcu(9000),
        wcu(500, "overdue"),
        wcu(100, "disputed"),
        rcu(900, "overdue"),
        rcu(90, "disputed"),
    ),
)
def invoices_sparse_indexes(c: Random, now: float) -> Items:
    for _ in range(1300):
        item: Item = {"invoice": uuid(c), "dueOn": day(now + c.randrange(-30, 30) * DAY), "c": 9}
        if c.random() < 0.06:
            item["overdueOf"] = f"seller-{c.randrange(40)}"
        if c.random() < 0.02:
            item["disputedBy"] = f"buyer-{code(c, 5)}"
        yield item


@table(
    "events-two-indexes-kept",
    "clean",
    Schema(
        "event",
        indexes=(
            Index("byVenue", "venue", "starts", False, "KEYS_ONLY"),
            Index("byBand", "band", "starts", False, "KEYS_ONLY"),
        ),
    ),
    traps={"I3": "index keys do not change: updates of the rest cost no index write"},
    metrics=(
        wcu(9000),
        wcu(1200, "byVenue"),
        wcu(1200, "byBand"),
        rcu(5000, "byVenue"),
        rcu(1000, "byBand"),
    ),
)
def events_two_indexes_kept(c: Random, now: float) -> Items:
    for event in ids(c, 700):
        yield {
            "event": event,
            "venue": f"venue-{c.randrange(90)}",
            "band": f"band-{c.randrange(200)}",
            "starts": iso(now + c.random() * 90 * DAY),
            "sold": skew(c, 900),
        }


# More of published schemas


@table(
    "Chat",
    "real",
    Schema("PK", "SK", indexes=(Index("RoomID_Comment_IDX", "RoomID", "CreatedAt"),)),
    found=("A18",),
    traps={"A2": "User: and Room: are tags"},
    allowed={
        "A15": "a user's comments grow, slowly",
        "A9": "a favourite room",
    },
)
def chat(c: Random, now: float) -> Items:
    """aws-dynamodb-examples, schema_design/SchemaExamples/ChatSystem."""
    rooms, users = (
        ids(c, 50, lambda c: some(c, 5, 9) + code(c, 2)),
        ids(c, 250, lambda c: code(c, 7)),
    )
    for room in rooms:
        yield {"PK": f"Room:{room}", "SK": "meta", "CreatedBy": c.choice(users)}
    for _ in range(1600):
        at = iso(when(c, now, 300))
        yield {
            "PK": f"User:{c.choice(users)}",
            "SK": at,
            "RoomID": rooms[skew(c, 50, 1.3)],
            "Comment": some(c, 5, 90),
            "CreatedAt": at,
        }


@table(
    "session_store",
    "real",
    Schema("PK", "SK", indexes=(Index("GSI1_inverse", "SK", "PK"),)),
    found=("A18",),
    traps={"A2": "suuid#, c# and child# are tags", "I4 GSI1_inverse": "the table's own keys"},
)
def session_store(c: Random, now: float) -> Items:
    """aws-dynamodb-examples, schema_design/SchemaExamples/SessionManagement."""
    for session in ids(c, 500, lambda c: f"suuid#{code(c, 8)}"):
        yield {
            "PK": session,
            "SK": f"c#{code(c, 6).upper()}",
            "last_login_time": iso(when(c, now, 20)),
            "access_token": code(c, 8),
            "session_state": c.choice(["active", "closing"]),
        }
        for _ in range(c.randint(0, 3)):
            yield {
                "PK": session,
                "SK": f"child#suuid#{code(c, 8)}",
                "access_token": code(c, 8),
                "session_state": "active",
            }


@table(
    "SNS",
    "real",
    Schema("PK", "SK"),
    found=("A18",),
    traps={"A2": "u# and p# are tags, and the part of it follows", "A1": "ids are random"},
    allowed={"A15": "followers of a celebrity"},
)
def sns(c: Random, now: float) -> Items:
    """aws-dynamodb-examples, schema_design/SchemaExamples/SocialNetwork."""
    users = [f"u#{c.randrange(10**8, 10**9)}" for _ in range(150)]
    for user in users:
        yield {"PK": user, "SK": "info", "name": name(c), "content": some(c, 20, 90)}
        yield {"PK": user, "SK": "count", "follower#": skew(c, 90), "following#": skew(c, 90)}
        for other in c.sample(users, c.randint(1, 6)):
            yield {"PK": f"{user}#follower", "SK": other}
            yield {"PK": f"{user}#following", "SK": other}


@table(
    "onetable-overview",
    "real",
    Schema("pk", "sk", indexes=(Index("gs1", "gs1pk", "gs1sk", False, "KEYS_ONLY"),)),
    found=("A9 gs1",),
    traps={"A18": "_type names the kind", "A2": "account#, user#, product#, invoice# are tags"},
    allowed={"I4": "name and id are joined, in an index of four kinds"},
)
def onetable_overview(c: Random, now: float) -> Items:
    """OneTable: samples/overview; each kind has one key in gs1."""
    for _ in range(120):
        account, title = ulid(when(c, now), c), some(c, 6, 14)
        key = f"account#{account}"
        yield {
            "pk": key,
            "sk": "account#",
            "_type": "Account",
            "id": account,
            "name": title,
            "gs1pk": "account#",
            "gs1sk": f"account#{title}{account}",
        }
        for _ in range(c.randint(1, 2)):
            user, who, email = ulid(when(c, now), c), name(c), mail(c)
            yield {
                "pk": key,
                "sk": f"user#{email}",
                "_type": "User",
                "id": user,
                "name": who,
                "email": email,
                "gs1pk": "user#",
                "gs1sk": f"user#{who}#{user}",
            }
        for _ in range(c.randint(3, 14)):
            invoice, at = ulid(when(c, now), c), iso(when(c, now))
            yield {
                "pk": key,
                "sk": f"invoice#{invoice}",
                "_type": "Invoice",
                "id": invoice,
                "date": at,
                "total": c.randrange(99, 9999),
                "gs1pk": "invoice#",
                "gs1sk": f"invoice#{at}#{invoice}",
            }


@table(
    "Music",
    "real",
    Schema("Artist", "SongTitle", indexes=(Index("AlbumTitle-index", "AlbumTitle"),)),
    traps={"A15": "an artist's songs", "A2": "one kind", "A18": "one kind"},
)
def music(c: Random, now: float) -> Items:
    """AWS's developer guide: the table Music."""
    for artist in ids(c, 150, lambda c: f"{name(c)} Band {code(c, 3)}"):
        for _ in range(c.randint(1, 3)):
            album = some(c, 6, 25) + code(c, 2)
            for _ in range(c.randint(1, 5)):
                yield {
                    "Artist": artist,
                    "SongTitle": some(c, 6, 25) + code(c, 3),
                    "AlbumTitle": album,
                    "Awards": skew(c, 12),
                }


@table(
    "GameScores",
    "real",
    Schema("UserId", "GameTitle", indexes=(Index("GameTitleIndex", "GameTitle", "TopScore:N"),)),
    traps={"A9 GameTitleIndex": "forty games", "A6": "the index is global", "A15": "few games"},
)
def game_scores(c: Random, now: float) -> Items:
    """AWS's developer guide: the table GameScores and its index GameTitleIndex."""
    games = ids(c, 40, lambda c: some(c, 6, 16) + code(c, 2))
    for user in ids(c, 400, lambda c: code(c, 10)):
        for game in c.sample(games, c.randint(1, 5)):
            yield {
                "UserId": user,
                "GameTitle": game,
                "TopScore": skew(c, 9000),
                "TopScoreDateTime": iso(when(c, now, 900)),
                "Wins": skew(c, 80),
                "Losses": skew(c, 80),
            }


@table(
    "ProductCatalog",
    "real",
    Schema("Id:N"),
    found=("A1",),
    traps={"A18": "ProductCategory names Book and Bicycle", "A2": "all are products"},
)
def product_catalog(c: Random, now: float) -> Items:
    """AWS's developer guide: the table ProductCatalog, with its ids from 101 on."""
    for number in range(101, 801):
        item: Item = {"Id": number, "Title": some(c, 8, 30), "Price": c.randrange(5, 900)}
        if number % 3:
            item |= {"ProductCategory": "Book", "ISBN": code(c, 13), "PageCount": 300}
        else:
            item |= {"ProductCategory": "Bicycle", "Brand": code(c, 5), "Color": ["Red", "Black"]}
        yield item


@table(
    "Reply",
    "real",
    Schema(
        "Id",
        "ReplyDateTime",
        indexes=(Index("PostedBy-Message-Index", "PostedBy", "Message", False, "KEYS_ONLY"),),
    ),
    traps={
        "I4 PostedBy-Message-Index": "forum and subject are joined in the table's key",
        "A15": "a thread has some replies",
    },
)
def reply(c: Random, now: float) -> Items:
    """AWS's developer guide: the table Reply, whose Id is forum and subject."""
    people_ = ids(c, 120, mail)
    for _ in range(300):
        thread_id = f"Amazon {code(c, 6)}#{some(c, 20, 40)}{code(c, 3)}"
        for _ in range(c.randint(1, 8)):
            yield {
                "Id": thread_id,
                "ReplyDateTime": iso(when(c, now, 700)),
                "Message": some(c, 20, 200),
                "PostedBy": c.choice(people_),
            }


@table(
    "pynamo-threads",
    "real",
    Schema("forum_name", "subject", indexes=(Index("view-index", "views:N"),)),
    found=("A9 view-index",),
    allowed={"I1": "what is asked for may be those with some views"},
)
def pynamo_threads(c: Random, now: float) -> Items:
    """PynamoDB's documentation: Thread with ViewIndex, an index by the number of views."""
    forums = ids(c, 90, lambda c: code(c, 8))
    for _ in range(1100):
        yield {
            "forum_name": c.choice(forums),
            "subject": some(c, 15, 50) + code(c, 4),
            "views": 0 if c.random() < 0.8 else skew(c, 500),
            "replies": skew(c, 9),
            "last_post_datetime": iso(when(c, now)),
        }


@table(
    "Complaint_management_system",
    "real",
    Schema(
        "PK",
        "SK",
        indexes=(
            Index("Customer_Complaint_GSI", "customer_id", "complaint_id"),
            Index("Escalations_GSI", "escalated_to", "escalation_time"),
            Index("Agents_Comments_GSI", "agentID", "comm_date"),
        ),
    ),
    found=("A18",),
    traps={
        "A7": "each index has the items of one question",
        "A2": "metadata and comm# tell the kind",
        "A1": "Complaint and a number, but with gaps and in no order",
        "A6": "all are global",
    },
)
def complaint_management_system(c: Random, now: float) -> Items:
    """aws-dynamodb-examples, schema_design/SchemaExamples/ComplainManagement."""
    agents, customers = ids(c, 70, lambda c: f"Agent{code(c, 4)}"), ids(c, 300)
    for number in c.sample(range(10**6, 10**7), 350):
        key, made = f"Complaint{number}", when(c, now, 700)
        item = {
            "PK": key,
            "SK": "metadata",
            "customer_id": c.choice(customers),
            "complaint_id": key,
            "current_state": c.choice(["waiting", "assigned", "investigating", "resolved"]),
            "creation_time": iso(made),
            "severity": c.choice(["P1", "P2", "P3"]),
            "complaint_description": some(c, 30, 200),
        }
        if c.random() < 0.15:
            item |= {"escalated_to": c.choice(agents), "escalation_time": iso(made + 90_000)}
        yield item
        for step in range(c.randint(0, 5)):
            at, comment = iso(made + step * 40_000), code(c, 6)
            yield {
                "PK": key,
                "SK": f"comm#{at}#{comment}",
                "comm_id": comment,
                "comm_date": at,
                "complaint_state": "investigating",
                "comm_text": some(c, 20, 200),
                "agentID": c.choice(agents),
            }


@table(
    "orders-consumer-leases",
    "real",
    Schema("leaseKey"),
    traps={
        "A1": "Kinesis gives shards their numbers, and they are few",
        "A8": "leaseCounter goes up every few seconds, of each shard: that is a heartbeat",
        "H7": "some writes a second",
    },
    stream=lambda c, now, items: paced(
        12, 120, lambda at, n: (x := items[n % len(items)], x | {"leaseCounter": 90_000 + n})
    ),
    metrics=(wcu(720), rcu(300)),
)
def orders_consumer_leases(c: Random, now: float) -> Items:
    """The Kinesis Client Library: its lease table, an item for each shard."""
    for shard in range(64):
        yield {
            "leaseKey": f"shardId-{shard:012}",
            "leaseCounter": c.randrange(90_000),
            "leaseOwner": uuid(c),
            "checkpoint": str(c.randrange(10**55, 10**56)),
            "ownerSwitchesSinceCheckpoint": 0,
        }


@table("terraform-locks", "real", Schema("LockID"))
def terraform_locks(c: Random, now: float) -> Items:
    """Terraform: the lock table of its S3 backend."""
    for _ in range(300):
        yield {
            "LockID": f"acme-state/{code(c, 8)}/{c.choice(['dev', 'prod'])}/terraform.tfstate-md5",
            "Digest": code(c, 32),
        }


@table(
    "express-sessions",
    "real",
    Schema("id", ttl="expires"),
    traps={"A16": "seconds, of the coming day", "A2": "one kind, with the prefix sess:"},
)
def express_sessions(c: Random, now: float) -> Items:
    """connect-dynamodb: the sessions of an Express application."""
    for _ in range(900):
        yield {
            "id": f"sess:{code(c, 32)}",
            "expires": int(now + c.random() * DAY),
            "type": "connect-session",
            "sess": '{"cookie":{"originalMaxAge":86400000},"u":"' + code(c, 8) + '"}',
        }


@table(
    "next-auth",
    "real",
    Schema("pk", "sk", indexes=(Index("GSI1", "GSI1PK", "GSI1SK"),), ttl="expires"),
    traps={
        "A18": "type names USER, ACCOUNT and SESSION",
        "I4 GSI1": "three kinds with different attributes",
        "A16": "seconds, of sessions alone",
        "E2": "accounts lie beside their users",
    },
)
def next_auth(c: Random, now: float) -> Items:
    """Auth.js: the table of its DynamoDB adapter."""
    for user in ids(c, 350):
        email, key = mail(c), f"USER#{user}"
        yield {
            "pk": key,
            "sk": key,
            "GSI1PK": f"USER#{email}",
            "GSI1SK": f"USER#{email}",
            "id": user,
            "type": "USER",
            "email": email,
        }
        account = f"ACCOUNT#github#{c.randrange(10**7, 10**8)}"
        yield {
            "pk": key,
            "sk": account,
            "GSI1PK": account,
            "GSI1SK": account,
            "type": "ACCOUNT",
            "userId": user,
        }
        for session in ids(c, c.randint(0, 2)):
            yield {
                "pk": key,
                "sk": f"SESSION#{session}",
                "GSI1PK": f"SESSION#{session}",
                "GSI1SK": f"SESSION#{session}",
                "type": "SESSION",
                "userId": user,
                "expires": int(now + c.random() * 30 * DAY),
            }


@table(
    "Post-amplify",
    "real",
    Schema("id", indexes=(Index("postsByDate", "type", "createdAt"), Index("byBlog", "blogID"))),
    found=("A9 postsByDate",),
    traps={"A18": "one kind", "A7": "two questions", "I1 postsByDate": "type is no state"},
)
def post_amplify(c: Random, now: float) -> Items:
    """AWS Amplify: a model with the constant attribute type, to list all by date."""
    blogs = ids(c, 80)
    for one in ids(c, 1500):
        at = iso(when(c, now, 900))
        yield {
            "id": one,
            "type": "Post",
            "__typename": "Post",
            "blogID": c.choice(blogs),
            "title": some(c, 10, 60),
            "createdAt": at,
            "updatedAt": at,
        }


@table(
    "version-control-electro",
    "real",
    Schema(
        "pk",
        "sk",
        indexes=tuple(Index(f"gsi{n}pk-gsi{n}sk-index", f"gsi{n}pk", f"gsi{n}sk") for n in (1, 2)),
    ),
    traps={
        "A18": "__edb_e__ names the kind",
        "A7": "two overloaded indexes",
        "E1": "issue numbers have four digits",
    },
    allowed={"I4": "keys join owner and name, of issues and comments in one index"},
)
def version_control_electro(c: Random, now: float) -> Items:
    """ElectroDB: examples/versionControl, its issues and their comments."""
    users = ids(c, 120, lambda c: code(c, 8))
    repos = [(c.choice(users), code(c, 9)) for _ in range(90)]
    for number in c.sample(range(1, 9000), 350):
        owner, repo = c.choice(repos)
        issue, user, status = f"{number:04}", c.choice(users), c.choice(["Open", "Closed"])
        at = iso(when(c, now, 600))
        key = f"$version-control#repoowner_{owner}#reponame_{repo}#issuenumber_{issue}"
        base = {"pk": key, "repoOwner": owner, "repoName": repo, "issueNumber": issue}
        yield base | {
            "sk": "$issuereview#issue_1",
            "gsi1pk": f"$version-control#username_{user}",
            "gsi1sk": f"$managed#issue_1#status_{status}#createdat_{at}".lower(),
            "gsi2pk": f"$version-control#repoowner_{owner}#reponame_{repo}",
            "gsi2sk": f"$activity#issue_1#status_{status}#createdat_{at}".lower(),
            "username": user,
            "status": status,
            "createdAt": at,
            "subject": some(c, 10, 50),
            "__edb_e__": "issue",
            "__edb_v__": "1",
        }
        for comment in ids(c, c.randint(0, 4)):
            who, to = c.choice(users), c.choice(users)
            yield base | {
                "sk": f"$issuereview#issue-comment_1#commentid_{comment}",
                "gsi1pk": f"$version-control#username_{who}",
                "gsi1sk": f"$conversations#issue-comment_1#repoowner_{owner}#reponame_{repo}",
                "gsi2pk": f"$version-control#replyto_{to}",
                "gsi2sk": f"$inbox#issue-comment_1#updatedat_{at}".lower(),
                "commentId": comment,
                "username": who,
                "replyTo": to,
                "body": some(c, 20, 200),
                "__edb_e__": "issue-comment",
                "__edb_v__": "1",
            }


# Several faults at once, as old tables have them


@table(
    "legacy_orders",
    "planted",
    Schema(
        "OrderNumber:N", indexes=(Index("StatusIdx", "OrderStatus", "CreatedOn"),), ttl="PurgeOn"
    ),
    found=("A1", "A9 StatusIdx", "I1 StatusIdx", "A16"),
)
def legacy_orders(c: Random, now: float) -> Items:
    for number in range(40_001, 41_501):
        at = now - (41_501 - number) * 0.2 * DAY
        yield {
            "OrderNumber": number,
            "OrderStatus": "SHIPPED" if number < 41_430 else c.choice(["NEW", "PICKED", "PACKED"]),
            "CreatedOn": iso(at),
            "PurgeOn": day(at + 900 * DAY),
            "Customer": mail(c),
        }


@table("impressions", "planted", Schema("hour", "impression", ttl="ttl"), found=("A3", "A16"))
def impressions(c: Random, now: float) -> Items:
    for _ in range(2600):
        at = when(c, now, 4)
        yield {
            "hour": iso(at)[:13],
            "impression": uuid(c),
            "placement": code(c, 5),
            "ttl": int((at + 7 * DAY) * 1000),
        }


@table(
    "tour-stops",
    "planted",
    Schema("tour", "stop", indexes=(Index("by-window", "tour", "window", local=True),)),
    found=("A6", "E1"),
)
def tour_stops(c: Random, now: float) -> Items:
    for tour in ids(c, 110, lambda c: f"TOUR-{code(c, 8)}"):
        for stop in range(1, c.randint(4, 19)):
            yield {
                "tour": tour,
                "stop": f"STOP/{stop}",
                "window": f"{7 + stop // 2:02}:{stop % 2 * 30:02}",
                "address": f"{c.choice(words.CITIES)} {c.randrange(99)}",
            }


@table("loyalty", "planted", Schema("pk", "sk"), found=("A1", "A18", "A15"))
def loyalty(c: Random, now: float) -> Items:
    for number in range(1, 301):
        key = f"CARD#{number:08}"
        yield {"pk": key, "sk": "HOLDER", "name": name(c), "mail": mail(c), "points": skew(c, 9000)}
        for _ in range(700 if number == 12 else 300 if number == 40 else skew(c, 9)):
            yield {
                "pk": key,
                "sk": f"TX#{iso(when(c, now, 900))}",
                "shop": f"shop-{code(c, 3)}",
                "delta": c.randrange(-90, 90),
            }


@table(
    "work_queue",
    "planted",
    Schema("queue", "slot"),
    found=("A19", "E1"),
    allowed={"A15": "a queue is emptied"},
)
def work_queue(c: Random, now: float) -> Items:
    for number in range(1, 1201):
        yield {"queue": "QUEUE", "slot": f"{number}", "job": uuid(c), "tries": skew(c, 4)}


@table(
    "community",
    "planted",
    Schema("PK", "SK", indexes=(Index("rooms", "listing", "lastAt"),)),
    found=("A9 rooms", "A15"),
    traps={"A18": "t names the kind"},
    allowed={"I1": "rooms alone are in the index"},
)
def community(c: Random, now: float) -> Items:
    rooms = ids(c, 400, lambda c: f"ROOM#{code(c, 8)}")
    for room in rooms:
        yield {
            "PK": room,
            "SK": "ROOM",
            "t": "room",
            "listing": "ROOMS",
            "lastAt": iso(when(c, now, 60)),
            "title": some(c, 5, 20),
        }
    for _ in range(2400):
        yield {
            "PK": rooms[skew(c, 400, 5)],
            "SK": f"MSG#{ulid(when(c, now, 800), c)}",
            "t": "message",
            "text": some(c, 5, 200),
        }


@table(
    "contracts-archive",
    "planted",
    Schema(
        "contractId",
        indexes=(
            Index("byPartner", "partner"),
            Index("byPartnerSigned", "partner", "signed"),
            Index("byState", "state", "signed", False, "KEYS_ONLY"),
        ),
    ),
    found=("A7", "A13", "A9 byState", "I1 byState"),
)
def contracts_archive(c: Random, now: float) -> Items:
    partners = ids(c, 80, lambda c: f"p-{code(c, 6)}")
    for one in ids(c, 350):
        yield {
            "contractId": one,
            "partner": c.choice(partners),
            "signed": day(when(c, now, 2500)),
            "state": states(c, 0.93, "ARCHIVED", ["DRAFT", "ACTIVE"]),
            "pdfBase64": text(c, c.randrange(30_000, 120_000)),
        }


@table(
    "spielstände",
    "planted",
    Schema("spieler:N", "runde"),
    found=("A1", "E1"),
    traps={"A15": "ein Spiel hat höchstens vierzig Runden"},
)
def spielstaende(c: Random, now: float) -> Items:
    for player in range(1, 161):
        for turn in range(1, c.randint(5, 24)):
            yield {"spieler": player, "runde": f"Runde {turn}", "punkte": skew(c, 900)}


@table(
    "flags-by-bool",
    "planted",
    Schema("active", "itemId"),
    found=("A19",),
    allowed={"A15": "the items of a value grow"},
)
def flags_by_bool(c: Random, now: float) -> Items:
    for one in ids(c, 1600):
        yield {"active": "true" if c.random() < 0.7 else "false", "itemId": one, "n": skew(c, 99)}


@table(
    "marketplace",
    "planted",
    Schema("PK", "SK", indexes=(Index("GSI1", "entity", "updated"),)),
    found=("A9 GSI1", "E2"),
    traps={"A18": "entity names the kind", "A2": "the keys begin with a tag"},
)
def marketplace(c: Random, now: float) -> Items:
    for _ in range(220):
        seller, email = f"SELLER#{uuid(c)}", mail(c)
        if c.random() < 0.9:
            yield {
                "PK": seller,
                "SK": seller,
                "entity": "Seller",
                "email": email,
                "updated": iso(when(c, now)),
            }
            for _ in range(c.randint(3, 12)):
                yield {
                    "PK": seller,
                    "SK": f"OFFER#{ulid(when(c, now), c)}",
                    "entity": "Offer",
                    "updated": iso(when(c, now)),
                    "price": skew(c, 9000),
                }
        yield {
            "PK": f"SELLEREMAIL#{email}",
            "SK": f"SELLEREMAIL#{email}",
            "entity": "SellerEmail",
            "seller": seller,
            "updated": iso(when(c, now)),
        }


@table(
    "hotel-nights",
    "planted",
    Schema("night", indexes=(Index("hotelDate", "hotelRoomType", "date"),), ttl="drop"),
    found=("I4 hotelDate",),
    traps={"A16": "seconds ahead", "A3 hotelDate": "the date is the sort key"},
)
def hotel_nights(c: Random, now: float) -> Items:
    hotels = ids(c, 60, lambda c: f"H{code(c, 5)}")
    for _ in range(1400):
        hotel, kind = c.choice(hotels), c.choice(["single", "double", "suite"])
        at = now + c.random() * 300 * DAY
        yield {
            "night": uuid(c),
            "hotel": hotel,
            "roomType": kind,
            "hotelRoomType": f"{hotel}:{kind}",
            "date": day(at),
            "drop": int(at + 30 * DAY),
            "free": skew(c, 20),
        }


@table(
    "uploads_by_ms",
    "decoy",
    Schema("createdMs:N"),
    traps={
        "A3": "a millisecond of its own for each item: no two writes share a key",
        "A1": "times, not a counter",
    },
)
def uploads_by_ms(c: Random, now: float) -> Items:
    for at in {int(when(c, now, 90) * 1000) for _ in range(800)}:
        yield {"createdMs": at, "file": code(c, 12), "bytes": skew(c, 9_000_000)}


@table(
    "shoe-sizes",
    "decoy",
    Schema("model", "size"),
    traps={"E1": "sizes from 36 to 47.5 sort as they should", "A15": "some sizes of a model"},
)
def shoe_sizes(c: Random, now: float) -> Items:
    for model in ids(c, 120, lambda c: f"shoe-{code(c, 6)}"):
        for half in sorted(c.sample(range(72, 96), c.randint(4, 14))):
            yield {
                "model": model,
                "size": f"{half / 2:g}",
                "stock": skew(c, 40),
            }


@table(
    "events-ksuid",
    "clean",
    Schema("id", indexes=(Index("local-time-index", "site", "localTime"),)),
    traps={
        "A1": "KSUIDs begin with a time, and are random behind it",
        "A6": "local is the time, not the index",
    },
)
def events_ksuid(c: Random, now: float) -> Items:
    for _ in range(1000):
        at = when(c, now)
        yield {
            "id": words.ksuid(at, c),
            "site": f"site-{code(c, 2)}",
            "localTime": iso(at + 7200)[:19],
            "what": c.choice(["open", "close", "alarm"]),
        }


@table(
    "users-index-once-throttled",
    "decoy",
    Schema("userId", indexes=(BY_MAIL,)),
    traps={"H3 byMail": "four throttled writes in two weeks", "H4": "four requests"},
    metrics=(
        wcu(6000),
        wcu(900, "byMail"),
        rcu(2000, "byMail"),
        *throttles("Write", "KeyRangeThroughput", 4, "byMail", busy=(3, 4), every_days=14),
    ),
)
def users_index_once_throttled(c: Random, now: float) -> Items:
    yield from people(c, now)


@table(
    "rooms-same-partition",
    "decoy",
    Schema(
        "building",
        "room",
        indexes=(
            Index("LSI-like-capacity", "building", "capacity:N"),
            Index("LSI-like-floor", "building", "floor:N"),
        ),
    ),
    traps={
        "A6": "named so, but both are global",
        "A7": "by capacity and by floor are two orders",
        "A15": "a building has its rooms",
    },
)
def rooms_same_partition(c: Random, now: float) -> Items:
    for building in ids(c, 80, lambda c: f"B-{code(c, 5)}"):
        for floor in range(c.randint(1, 4)):
            for number in range(1, c.randint(2, 9)):
                yield {
                    "building": building,
                    "room": f"{floor}.{number:02}",
                    "capacity": c.randint(1, 40),
                    "floor": floor,
                }


@table(
    "cohorts",
    "decoy",
    Schema("pk", "sk"),
    traps={
        "A2": "kinds are told by the sort key's first letter and a colon",
        "A18": "k names the kind",
        "A1": "numbers given by the ministry, with gaps",
    },
)
def cohorts(c: Random, now: float) -> Items:
    for school in c.sample(range(100_000, 999_999), 120):
        key = f"school:{school}"
        yield {"pk": key, "sk": "s:main", "k": "school", "city": c.choice(words.CITIES)}
        for _ in range(c.randint(1, 6)):
            yield {
                "pk": key,
                "sk": f"c:{c.randint(2018, 2026)}:{code(c, 4)}",
                "k": "class",
                "pupils": c.randint(12, 30),
            }


# A second helping of some rules


@table("pharmacy", "planted", Schema("id"), found=("A2", "A18"))
def pharmacy(c: Random, now: float) -> Items:
    drugs = ids(c, 250, lambda c: f"{c.randrange(10**8):08}")
    for drug in drugs:
        yield {"id": drug, "substance": some(c, 6, 16), "mg": c.choice([5, 10, 200]), "otc": True}
    for _ in range(350):
        yield {"id": uuid(c), "patient": name(c), "insurance": code(c, 10), "born": "1980-04-02"}
    for _ in range(400):
        yield {
            "id": code(c, 14),
            "drug": c.choice(drugs),
            "doctor": name(c),
            "redeemed": c.random() < 0.7,
            "issued": day(when(c, now, 100)),
        }


@table("energy-portal", "planted", Schema("Partition", "Sort"), found=("A2",))
def energy_portal(c: Random, now: float) -> Items:
    for customer in ids(c, 180, lambda c: f"{c.randrange(10**9, 10**10)}"):
        yield {"Partition": customer, "Sort": "-", "ObjectType": "Customer", "name": name(c)}
        for _ in range(c.randint(1, 3)):
            meter = f"{c.randrange(10**9, 10**10)}"
            yield {
                "Partition": customer,
                "Sort": meter,
                "ObjectType": "Contract",
                "tariff": "eco",
                "kwhPrice": 0.31,
            }
            yield {
                "Partition": meter,
                "Sort": customer,
                "ObjectType": "Meter",
                "readOn": day(when(c, now, 300)),
                "value": skew(c, 90_000),
            }


@table(
    "podcast-downloads",
    "planted",
    Schema("PK", "SK"),
    found=("A8",),
    allowed={"H7": SMALL},
    stream=counting("downloads", 30, lambda item: item["SK"] == "TOTALS"),
    traps={"A18": "type names the kind"},
)
def podcast_downloads(c: Random, now: float) -> Items:
    yield {"PK": "NETWORK#acme", "SK": "TOTALS", "type": "Totals", "downloads": 77_120_341}
    for _ in range(160):
        show = f"SHOW#{code(c, 8)}"
        yield {"PK": show, "SK": "SHOW", "type": "Show", "title": some(c, 6, 30)}
        for _ in range(c.randint(1, 6)):
            yield {"PK": show, "SK": f"EPISODE#{ulid(when(c, now), c)}", "type": "Episode"}


@table(
    "api-quota",
    "planted",
    Schema("apiKey", "window"),
    found=("A8",),
    allowed={"H7": SMALL, "H1": "a fifth of what a key takes"},
    stream=counting("used", 90, lambda item: item["apiKey"] == "partner-xl"),
    metrics=(wcu(6400),),
)
def api_quota(c: Random, now: float) -> Items:
    for key in ["partner-xl", *ids(c, 400, lambda c: f"key-{code(c, 12)}")]:
        yield {"apiKey": key, "window": "month", "used": c.randrange(10**6), "plan": "M"}


@table(
    "contacts-index-short",
    "planted",
    Schema("contact", indexes=(Index("byCompany", "company", "lastName"),)),
    found=("H3 byCompany",),
    traps={"H4": "the table has four times what it needs"},
    overlay=provisioned(400, 400)
    | {
        "GlobalSecondaryIndexes": [
            index_capacity(Index("byCompany", "company", "lastName"), 100, 20)
        ]
    },
    metrics=(
        wcu(6000),
        wcu(1190, "byCompany"),
        rcu(2000, "byCompany"),
        *capacity(400, 400),
        *capacity(100, 20, "byCompany"),
        *throttles("Write", "ProvisionedThroughput", 3200, "byCompany"),
    ),
)
def contacts_index_short(c: Random, now: float) -> Items:
    for one in ids(c, 900):
        yield {"contact": one, "company": f"co-{code(c, 3)}", "lastName": c.choice(words.LAST)}


@table(
    "carts-index-room",
    "clean",
    Schema("cart", indexes=(Index("byShopper", "shopper", "changed"),), ttl="ttl"),
    traps={
        "H3 byShopper": "half of the table's capacity, which its writes do not fill",
        "A16": "seconds of the coming week",
    },
    overlay=provisioned(200, 200)
    | {
        "GlobalSecondaryIndexes": [
            index_capacity(Index("byShopper", "shopper", "changed"), 50, 100)
        ]
    },
    metrics=(
        wcu(7200),
        wcu(2400, "byShopper"),
        rcu(900, "byShopper"),
        *capacity(200, 200),
        *capacity(50, 100, "byShopper"),
    ),
)
def carts_index_room(c: Random, now: float) -> Items:
    for cart in ids(c, 800):
        yield {
            "cart": cart,
            "shopper": code(c, 9),
            "changed": iso(when(c, now, 3)),
            "ttl": int(now + c.random() * 7 * DAY),
        }


@table(
    "loyalty-points-short",
    "planted",
    Schema("card", "month"),
    found=("H4",),
    overlay=provisioned(300, 40),
    metrics=(
        wcu(2380, busy=(600, 1200)),
        wcu(300, busy=(1200, 1440)),
        rcu(5000),
        *capacity(300, 40),
        *throttles("Write", "ProvisionedThroughput", 1500, busy=(600, 1200)),
    ),
)
def loyalty_points_short(c: Random, now: float) -> Items:
    for card in ids(c, 250):
        for month in range(1, c.randint(2, 9)):
            yield {"card": card, "month": f"2026-{month:02}", "points": skew(c, 900)}


@table(
    "scans-copied-whole",
    "planted",
    Schema("scan", indexes=(Index("byPatient", "patient", "taken"), Index("byDevice", "device"))),
    found=("I2 byDevice", "I3"),
    traps={"I2 byPatient": "read all day", "A7": "two questions"},
    allowed={"A13": "seven kilobytes"},
    metrics=(
        wcu(21_000),
        wcu(20_500, "byPatient"),
        wcu(20_500, "byDevice"),
        rcu(2000),
        rcu(60_000, "byPatient"),
        rcu(1, "byDevice"),
    ),
)
def scans_copied_whole(c: Random, now: float) -> Items:
    patients = ids(c, 200)
    for scan in ids(c, 450):
        yield {
            "scan": scan,
            "patient": c.choice(patients),
            "device": f"mrt-{code(c, 3)}",
            "taken": iso(when(c, now)),
            "report": some(c, 5000, 9000),
        }


@table(
    "auctions-moving-price",
    "planted",
    Schema(
        "auction",
        indexes=(
            Index("category-price", "category", "price:N"),
            Index("seller-price", "seller", "price:N"),
        ),
    ),
    found=("I3",),
    metrics=(
        wcu(15_000),
        wcu(30_000, "category-price"),
        wcu(30_000, "seller-price"),
        rcu(60_000, "category-price"),
        rcu(9000, "seller-price"),
    ),
)
def auctions_moving_price(c: Random, now: float) -> Items:
    categories = ids(c, 40, lambda c: code(c, 6))
    for auction in ids(c, 1000):
        yield {
            "auction": auction,
            "category": c.choice(categories),
            "seller": code(c, 7),
            "price": skew(c, 90_000),
        }


@table(
    "newsletter",
    "planted",
    Schema("subscriber", indexes=(Index("confirmed-index", "confirmed", "since"),)),
    found=("A9 confirmed-index",),
    allowed={"I1": "the few to be reminded may be what is asked for"},
    traps={"A2": "one kind"},
)
def newsletter(c: Random, now: float) -> Items:
    for _ in range(1500):
        yield {
            "subscriber": mail(c),
            "confirmed": "yes" if c.random() < 0.91 else "no",
            "since": day(when(c, now, 1500)),
        }


@table(
    "moderation",
    "planted",
    Schema("post", indexes=(Index("review", "reviewState", "at", False, "INCLUDE", ("by",)),)),
    found=("A9 review", "I1 review"),
)
def moderation(c: Random, now: float) -> Items:
    for _ in range(2000):
        yield {
            "post": ulid(when(c, now), c),
            "reviewState": states(c, 0.975, "approved", ["pending", "flagged"]),
            "at": iso(when(c, now)),
            "by": code(c, 8),
            "text": some(c, 20, 280),
        }


@table(
    "letters-scanned-links",
    "decoy",
    Schema("letter"),
    traps={"A13": "the scans are in S3; two items have a long text of 30 KB"},
)
def letters_scanned_links(c: Random, now: float) -> Items:
    for number, letter in enumerate(ids(c, 800)):
        yield {
            "letter": letter,
            "scan": f"s3://scans/{code(c, 20)}.tiff",
            "ocr": text(c, 30_000 if number in (100, 500) else c.randrange(100, 900)),
            "received": day(when(c, now, 700)),
        }
