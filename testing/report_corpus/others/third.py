"""More tables, planted by the meaning of the rules and not by how they are decided.

The schemas are those of public examples (ElectroDB's task application, OneTable's accounts,
dynamodb-toolbox's trainers, PynamoDB's discriminators, the samples of NoSQL Workbench, AWS's design
patterns) and of practice. Streams are thinned: a hot key's records stand for those of its metrics.
Of a rule, so many tables plant it and so many tempt it:

    rule, planted, tempted
      A1 11 13 |   A2  9 10 |   A3  9  9 |   A4  9  8 |   A5  8  8 |   A6  8  8
      A7  8 19 |   A8  9 12 |   A9 12 13 |  A10  8  8 |  A11  8  8 |  A12  8  8
     A13  8  8 |  A14  8  8 |  A15 27 15 |  A16  8  8 |  A17  8  8 |  A18 10 10
     A19  8  9 |   E1  9  8 |   E2  8  8 |   H1 14 20 |   H2  8  8 |   H3  8  8
      H4  8 14 |   H5  8  8 |   H6  8  8 |   H7  8 17 |   I3  8  8

435 tables: 237 planted, 188 decoys, 10 clean.

I1 and I2 are neither: whether all items are meant to be in an index is not to be seen.

After the tables were opened, a few were put right by the service's documentation: a read unit for
each GetItem of a small item is a consistent read (A17), so that two GetItem now take a unit;
reads of an index that its capacity throttles are no writes that it holds back (H4, not H3). An LSI
of small collections and city-17 as a sort key may be found, as the sentences of A6 and E1 say.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping
from random import Random
from typing import Any

from testing.report_corpus.case import (
    DAY,
    Case,
    Contributor,
    Index,
    Item,
    Metric,
    Schema,
    Write,
    case,
    shard_of,
)
from testing.report_corpus.virtual import Collections, Giant
from testing.report_corpus.words import (
    BASE62,
    CITIES,
    day,
    iso,
    ksuid,
    moment,
    name,
    some,
    text,
    ulid,
    uuid,
    uuid7,
)

Rows = Callable[[Random, float], Iterable[Item]]
Writes = Callable[[Random, float, list[Item]], Iterable[Write]]

KB = 1024
SK = Schema(sort="sk")
PK = Schema("pk")
ONE = {"A2": "one kind of item only: a tag is not missed"}
INDEXED = {"I1": "every item is meant to be in the index", "I2": "what an index has is a choice"}
BODY = text(Random(11), 400 * KB)


def declare(called: str, kind: Any, schema: Schema, more: dict[str, Any]) -> Case:
    if schema.indexes:
        more["allowed"] = INDEXED | dict(more.get("allowed", {}))
    return case(f"third: {called}", kind, schema, **more)


def plant(called: str, schema: Schema, *found: str, **more: Any) -> Case:
    return declare(called, "planted", schema, more | {"found": found})


def decoy(called: str, schema: Schema, traps: Mapping[str, str], **more: Any) -> Case:
    return declare(called, "decoy", schema, more | {"traps": traps})


def clean(called: str, schema: Schema, **more: Any) -> Case:
    return declare(called, "clean", schema, more)


# What tables look like when nothing is wrong


def flat(tag: str, count: int = 700, **attributes: Callable[[Random], Any]) -> Rows:
    """One kind of item under a partition key alone."""

    def rows(chance: Random, now: float) -> Iterator[Item]:
        for _ in range(count):
            yield {
                "pk": f"{tag}#{uuid(chance)}",
                "Type": tag.title(),
                "title": some(chance, 5, 60),
            } | {one: value(chance) for one, value in attributes.items()}

    return rows


def family(
    head: str, *lines: str, count: int = 110, each: tuple[int, int] = (1, 5), tag: str = "Type"
) -> Rows:
    """A head and the items below it, tagged in the keys; tag is the attribute that names a type."""

    def rows(chance: Random, now: float) -> Iterator[Item]:
        for _ in range(count):
            pk = f"{head}#{uuid(chance)}"
            yield {"pk": pk, "sk": "META", "name": name(chance), "town": chance.choice(CITIES)} | (
                {tag: head.title()} if tag else {}
            )
            for line in lines:
                for _ in range(chance.randint(*each)):
                    at = now - chance.random() * 300 * DAY
                    yield {
                        "pk": pk,
                        "sk": f"{line}#{ulid(at, chance)}",
                        f"{line.lower()}At": iso(at),
                        "note": some(chance, 5, 60),
                    } | ({tag: line.title()} if tag else {})

    return rows


def both(*parts: Rows) -> Rows:
    return lambda chance, now: (row for part in parts for row in part(chance, now))


def rows_of(*rows: Item) -> Rows:
    return lambda chance, now: rows


def spread(
    chance: Random, items: list[Item], count: int, attribute: str = "title"
) -> Iterator[Write]:
    """Ordinary writes, all over the keys and the time."""
    for _ in range(count):
        old = chance.choice(items)
        yield Write(12 + chance.random() * 850, old, old | {attribute: some(chance, 5, 50)})


def in_order(writes: Iterable[Write]) -> list[Write]:
    return sorted(writes, key=lambda one: -one.ago)


def use(read: float, write: float, **operations: float) -> tuple[Metric, ...]:
    """Of a table, in an ordinary minute; two eventually consistent reads of 4 KB take a unit."""
    told = {"GetItem": 2 * read, "PutItem": write} | operations
    return (
        Metric("ConsumedReadCapacityUnits", read, days=30),
        Metric("ConsumedWriteCapacityUnits", write, days=30),
        *(
            Metric("SuccessfulRequestLatency", number, operation=operation, days=30)
            for operation, number in told.items()
        ),
    )


def index_use(index: str, read: float, write: float) -> tuple[Metric, ...]:
    return (
        Metric("ConsumedReadCapacityUnits", read, index=index, days=30),
        Metric("ConsumedWriteCapacityUnits", write, index=index, days=30),
        Metric("SuccessfulRequestLatency", max(1.0, read / 2), operation="Query", days=30),
    )


# A1: sequential ids

for called, key, first, lines in (
    ("invoices by their number", "INV-{:06}", 1, 0),
    ("help desk tickets, counted", "TICKET#{}", 1, 3),
    ("staff numbers handed out one by one", "EMP{:05}", 10_000, 0),
    ("orders by a sequence that came from Oracle", "order_{:010}", 40_000_000, 2),
    ("shipments of the year, counted", "SHP-2026-{:06}", 1, 4),
    ("electricity meters by the number of their installation", "MTR{:09}", 700_100, 0),
    ("policies of an insurer", "POLICY#{:08}", 5_550_000, 2),
    ("reservations of a hotel by a running number", "RES{:07}", 300_000, 0),
):

    def numbered(
        chance: Random, now: float, key: str = key, first: int = first, lines: int = lines
    ) -> Iterator[Item]:
        for number in range(first, first + 800):
            if chance.random() < 0.03:
                continue
            pk = key.format(number)
            yield {"pk": pk, "sk": "HEAD#0", "Type": "Head", "who": name(chance)}
            for _ in range(chance.randint(0, lines)):
                at = now - chance.random() * 200 * DAY
                yield {"pk": pk, "sk": f"LINE#{ulid(at, chance)}", "Type": "Line", "at": iso(at)}

    plant(called, SK, "A1", items=numbered, allowed=ONE)

plant(
    "rows of a relational table, with its auto-increment",
    Schema("id:N"),
    "A1",
    items=lambda chance, now: (
        {"id": number, "Type": "Row", "email": f"{uuid(chance)}@example.org"}
        for number in range(1, 1_200)
    ),
    allowed=ONE,
)


def keyed(make: Callable[[Random, float], Any], count: int = 900) -> Rows:
    def rows(chance: Random, now: float) -> Iterator[Item]:
        for _ in range(count):
            at = now - chance.random() * 400 * DAY
            yield {"pk": make(chance, at), "Type": "Thing", "who": name(chance), "at": iso(at)}

    return rows


for called, make, reason in (
    ("bank accounts by IBAN", lambda c, at: f"IBAN#DE{c.randrange(10**20):020}", "random digits"),
    (
        "members by phone number",
        lambda c, at: f"PHONE#+49{c.randrange(10**9, 10**10)}",
        "900 of ten thousand million numbers",
    ),
    (
        "tweets by snowflake",
        lambda c, at: (int((at - 1_288_834_974) * 1000) << 22) | c.getrandbits(22),
        "a snowflake has time and chance: nothing counts by one",
    ),
    (
        "articles by their EAN",
        lambda c, at: f"SKU#{c.randrange(10**12, 10**13)}",
        "bar codes are sparse in their span",
    ),
    (
        "payments by a number drawn at random",
        lambda c, at: f"PAY-{c.randrange(10**12):012}",
        "drawn at random: no sequence",
    ),
    ("jobs by ULID", lambda c, at: f"JOB#{ulid(at, c)}", "a ULID ends in 80 random bits"),
    ("uploads by KSUID", lambda c, at: f"UPLOAD#{ksuid(at, c)}", "a KSUID ends in random bits"),
    ("sessions by UUID version 7", lambda c, at: f"SESS#{uuid7(at, c)}", "74 random bits"),
    (
        "short links of seven letters and digits",
        lambda c, at: f"LINK#{''.join(c.choices(BASE62, k=7))}",
        "random text",
    ),
):
    decoy(
        called,
        Schema("pk:N") if "snowflake" in called else PK,
        {"A1": reason},
        items=keyed(make),
        allowed=ONE,
    )

decoy(
    "episodes counted below a random series",
    SK,
    {
        "A1": "the partition key is random; the number is a sort key, which is to be in order",
        "E1": "three digits each",
    },
    items=lambda chance, now: (
        {"pk": pk, "sk": f"EPISODE#{n:03}", "Type": "Episode", "name": some(chance, 5, 40)}
        for pk in [f"SERIES#{uuid(chance)}" for _ in range(60)]
        for n in range(1, chance.randint(8, 26))
    ),
    allowed=ONE,
)
decoy(
    "accounts whose events are in ten shards each",
    SK,
    {
        "A1": "0 to 9 is a write shard behind a random id",
        "H2": "an account's events end in ten places",
    },
    items=lambda chance, now: (
        {"pk": f"{pk}#{n % 10}", "sk": uuid7(now - n * 900, chance), "Type": "Event", "n": n}
        for pk in [f"ACCOUNT#{uuid(chance)}" for _ in range(40)]
        for n in range(40)
    ),
    allowed=ONE,
)


# A2: no type tag in the keys; A18: no attribute that names the type


def mixed(kinds: tuple[str, str, str], tags: bool, attribute: str) -> Rows:
    """Three kinds of items in one collection, of quite different attributes."""

    def rows(chance: Random, now: float) -> Iterator[Item]:
        for _ in range(120):
            pk = uuid(chance)
            for kind in kinds:
                for _ in range(1 if kind == kinds[0] else chance.randint(1, 5)):
                    at = now - chance.random() * 300 * DAY
                    row: Item = {
                        "pk": f"{kinds[0].upper()}#{pk}" if tags else pk,
                        "sk": f"{kind.upper()}#{uuid(chance)}" if tags else uuid(chance),
                    }
                    if attribute:
                        row[attribute] = kind.title()
                    if kind == kinds[0]:
                        row |= {"fullName": name(chance), "city": chance.choice(CITIES)}
                    elif kind == kinds[1]:
                        row |= {"startsAt": iso(at), "minutes": chance.randint(5, 90)}
                    else:
                        row |= {"cents": chance.randint(100, 90_000), "memo": some(chance, 5, 60)}
                    yield row

    return rows


for kinds, attribute in (
    (("patient", "visit", "bill"), "kind"),
    (("pupil", "lesson", "fee"), "Type"),
    (("driver", "trip", "payout"), "entity"),
    (("farm", "milking", "sale"), "_type"),
    (("member", "course", "charge"), ""),
    (("guest", "stay", "invoice"), ""),
    (("reader", "loan", "fine"), ""),
    (("owner", "walk", "payment"), ""),
    (("tenant", "repair", "rent"), ""),
):
    plant(
        f"{kinds[0]}, {kinds[1]} and {kinds[2]} under bare UUIDs",
        SK,
        *(["A2"] if attribute else ["A2", "A18"]),
        items=mixed(kinds, False, attribute),
    )
for kinds in (
    ("customer", "call", "order"),
    ("artist", "concert", "royalty"),
    ("vessel", "voyage", "toll"),
    ("charger", "charging", "refund"),
    ("player", "match", "purchase"),
):
    plant(
        f"{kinds[0]}, {kinds[1]} and {kinds[2]}, tagged in keys alone",
        SK,
        "A18",
        items=mixed(kinds, True, ""),
    )


def library(
    keys: Callable[[Random, float], tuple[str, str, str]],
    typed: tuple[Item, Item],
    names: tuple[str, str] = ("pk", "sk"),
) -> Rows:
    """Heads and lines as a library for single tables writes them: keys gives the partition key and
    the sort keys of a head and of a line.
    """

    def rows(chance: Random, now: float) -> Iterator[Item]:
        for _ in range(130):
            pk, head, _ = keys(chance, now)
            yield {names[0]: pk, names[1]: head, "name": name(chance)} | typed[0]
            for _ in range(chance.randint(1, 6)):
                at = now - chance.random() * 300 * DAY
                yield {
                    names[0]: pk,
                    names[1]: keys(chance, at)[2],
                    "cents": chance.randint(100, 9_000),
                    "at": iso(at),
                } | typed[1]

    return rows


TAGGED = "the keys have tags, as this library writes them"
for called, keys, typed, names in (
    (
        "ElectroDB: employees and their tasks",
        lambda c, at: (
            f"$taskapp#employee_{uuid(c)}",
            "$staff#employees_1",
            f"$staff#tasks_1#task_{ulid(at, c)}",
        ),
        (
            {"__edb_e__": "employees", "__edb_v__": "1"},
            {"__edb_e__": "tasks", "__edb_v__": "1"},
        ),
        ("pk", "sk"),
    ),
    (
        "OneTable: accounts and users",
        lambda c, at: (f"account#{uuid(c)}", "account#", f"user#{ulid(at, c)}"),
        ({"_type": "Account"}, {"_type": "User"}),
        ("PK", "SK"),
    ),
    (
        "dynamodb-toolbox: trainers and their pokemons",
        lambda c, at: (f"TRAINER#{uuid(c)}", "TRAINER", f"POKEMON#{ulid(at, c)}"),
        (
            {"_et": "TRAINER", "_ct": "2026-01-01", "_md": "2026-02-01"},
            {"_et": "POKEMON", "_ct": "2026-01-01", "_md": "2026-02-01"},
        ),
        ("PK", "SK"),
    ),
    (
        "PynamoDB: a class hierarchy by its discriminator",
        lambda c, at: (f"fleet:{uuid(c)}", "fleet:", f"vehicle:{uuid(c)}"),
        ({"cls": "Fleet"}, {"cls": "Vehicle"}),
        ("pk", "sk"),
    ),
    (
        "Amplify: types by __typename",
        lambda c, at: (f"Blog#{uuid(c)}", "Blog#", f"Post#{uuid7(at, c)}"),
        ({"__typename": "Blog"}, {"__typename": "Post"}),
        ("pk", "sk"),
    ),
    (
        "identifiers as Stripe writes them",
        lambda c, at: (f"cus_{ksuid(at, c)}", f"cus_{ksuid(at, c)}", f"inv_{ksuid(at, c)}"),
        ({"object": "customer"}, {"object": "invoice"}),
        ("pk", "sk"),
    ),
    (
        "paths as keys",
        lambda c, at: (f"/projects/{uuid(c)}", "/meta", f"/builds/{ulid(at, c)}"),
        ({"recordType": "project"}, {"recordType": "build"}),
        ("pk", "sk"),
    ),
    (
        "NoSQL Workbench: a shop online",
        lambda c, at: (f"c#{uuid(c)}", "profile", f"o#{ulid(at, c)}"),
        ({"EntityType": "customer"}, {"EntityType": "order"}),
        ("PK", "SK"),
    ),
    (
        "a wiki whose tags end in a bar",
        lambda c, at: (f"SPACE|{uuid(c)}", "INFO|", f"PAGE|{ulid(at, c)}"),
        ({"itemType": "space"}, {"itemType": "page"}),
        ("pk", "sk"),
    ),
):
    decoy(
        called,
        Schema(*names),
        {"A2": TAGGED, "A18": f"`{next(iter(typed[0]))}` names the type"},
        items=library(keys, typed, names),
    )


# A3: the key is the date


def dated(form: Callable[[float], Any], days: int = 120, count: int = 1_000) -> Rows:
    def rows(chance: Random, now: float) -> Iterator[Item]:
        for _ in range(count):
            at = now - chance.random() * days * DAY
            yield {
                "pk": form(at),
                "sk": f"ENTRY#{ulid(at, chance)}",
                "Type": "Entry",
                "by": name(chance),
                "note": some(chance, 5, 80),
            }

    return rows


MANY_A_DAY = {
    "A15": "a day's entries are a collection of the day",
    "A19": "a key a day: their number follows from the design that A3 names",
    "A1": "days of the calendar, one after another",
}
for called, schema, form, days in (
    ("an audit log by the day", SK, day, 120),
    ("clicks by DATE#day", SK, lambda at: f"DATE#{day(at)}", 90),
    ("payments by the month", SK, lambda at: day(at)[:7], 3_000),
    ("bookings by a number such as 20261127", Schema("pk:N", "sk"), lambda at: int(
        moment(at).strftime("%Y%m%d")
    ), 120),
    ("log lines by the hour", SK, lambda at: iso(at)[:13], 12),
    ("energy readings by LOG#day", SK, lambda at: f"LOG#{day(at)}", 200),
    ("dispatches by the day, German style", SK, lambda at: moment(at).strftime("%d.%m.%Y"), 150),
    ("visits of a web site by day=", SK, lambda at: f"day={day(at)}", 100),
    ("trades by the trading day", SK, lambda at: moment(at).strftime("%Y/%m/%d"), 100),
):  # fmt: skip
    plant(called, schema, "A3", items=dated(form, days), allowed=ONE | MANY_A_DAY)


def by(tag: str, owners: int, form: Callable[[float, Random], str], count: int = 1_000) -> Rows:
    """Entries of owners, whose partition key ends in something of the time."""

    def rows(chance: Random, now: float) -> Iterator[Item]:
        known = [uuid(chance) for _ in range(owners)]
        for _ in range(count):
            at = now - chance.random() * 60 * DAY
            yield {
                "pk": f"{tag}#{chance.choice(known)}{form(at, chance)}",
                "sk": iso(at),
                "Type": tag.title(),
                "value": round(chance.random() * 90, 2),
            }

    return rows


for called, items, reason in (
    (
        "readings of a sensor and a month",
        by("SENSOR", 90, lambda at, c: f"#{day(at)[:7]}"),
        "the sensor is in the key: a day's writes go to as many keys as there are sensors",
    ),
    (
        "meals of a user and a day",
        by("USER", 200, lambda at, c: f"#{day(at)}"),
        "the user is in the key",
    ),
    (
        "usage of a tenant, the day as the sort key",
        by("TENANT", 120, lambda at, c: ""),
        "only the sort key is a time",
    ),
    (
        "departures of a stop and a day",
        by("STOP", 60, lambda at, c: f"|{day(at)}"),
        "the stop is in the key",
    ),
    (
        "heart rates of a patient and a week",
        by("PATIENT", 150, lambda at, c: moment(at).strftime("#%G-W%V")),
        "the patient is in the key",
    ),
):
    decoy(called, SK, {"A3": reason}, items=items, allowed=ONE)
decoy(
    "events of a day in fifty write shards",
    SK,
    {"A3": "the day has fifty shards: that is the remedy", "H2": "fifty ends, not one"},
    items=lambda chance, now: (
        {
            "pk": f"{day(now - n * 3_600)}#{chance.randrange(50):02}",
            "sk": ulid(now - n * 3_600, chance),
            "Type": "Event",
            "who": name(chance),
        }
        for n in range(1_000)
    ),
    allowed=ONE,
)
decoy(
    "an exchange rate a day",
    PK,
    {"A3": "one item a day: nothing is written often enough to be hot"},
    items=lambda chance, now: (
        {"pk": f"{day(now - n * DAY)}", "Type": "Rates", "usd": 1 + n / 9_999, "chf": 0.9}
        for n in range(700)
    ),
    allowed=ONE | {"A1": "a calendar"},
)
decoy(
    "people found by their birthday",
    Schema("pk", indexes=(Index("byBirth", "born", "name"),)),
    {"A3 byBirth": "dates of birth are all over a century: no writes go to today's"},
    items=lambda chance, now: (
        {
            "pk": f"PERSON#{uuid(chance)}",
            "Type": "Person",
            "name": name(chance),
            "born": day(now - chance.randint(6_000, 33_000) * DAY),
        }
        for _ in range(900)
    ),
    allowed=ONE,
)


# What applications ask: the request sampler watches


def seen(client: Any, table: str, count: int = 80) -> list[dict[str, Any]]:
    """Some keys of the table."""
    return list(client.scan(TableName=table, Limit=count)["Items"])


def key_of(item: Mapping[str, Any]) -> dict[str, Any]:
    return {one: item[one] for one in ("pk", "sk") if one in item}


def asks(one: Callable[[Any, str, Random, dict[str, Any]], Any], times: int = 400) -> Any:
    """An application that asks so often, each time about one of the items."""

    def work(client: Any, table: str, chance: Random) -> None:
        items = seen(client, table)
        for _ in range(times):
            one(client, table, chance, chance.choice(items))

    return work


def get(consistent: float = 0.0) -> Callable[..., Any]:
    def one(client: Any, table: str, chance: Random, item: dict[str, Any]) -> Any:
        return client.get_item(
            TableName=table, Key=key_of(item), ConsistentRead=chance.random() < consistent
        )

    return one


def query(consistent: float = 0.0, **more: Any) -> Callable[..., Any]:
    """A query of an item's collection."""

    def one(client: Any, table: str, chance: Random, item: dict[str, Any]) -> Any:
        values = {":k": item["pk"]} | more.get("values", {})
        rest = {key: value for key, value in more.items() if key not in ("values", "key")}
        return client.query(
            TableName=table,
            KeyConditionExpression=f"pk = :k{more.get('key', '')}",
            ExpressionAttributeValues=values,
            ConsistentRead=chance.random() < consistent,
            **rest,
        )

    return one


def scan(**more: Any) -> Callable[..., Any]:
    def one(client: Any, table: str, chance: Random, item: dict[str, Any]) -> Any:
        return client.scan(TableName=table, **more)

    return one


def each(*ways: Callable[..., Any]) -> Callable[..., Any]:
    """One of the ways at a time, at random."""
    return lambda client, table, chance, item: chance.choice(ways)(client, table, chance, item)


def module(body: str, of: str = "client") -> dict[str, str]:
    """The user's code: a file with a client, or a resource's table."""
    made = {
        "client": 'client = boto3.client("dynamodb")',
        "table": 'table = boto3.resource("dynamodb").Table("TABLE")',
    }[of]
    head = "import boto3\nfrom boto3.dynamodb.conditions import Attr, Key"
    return {"app.py": f"{head}\n\n{made}\n\n\n{body}"}


# A4: scans

NOTES = family("NOTEBOOK", "NOTE", count=60, each=(10, 25))
for called, ask, found in (
    ("a list page that scans", scan(), ("A4",)),
    ("a search that scans and filters", scan(
        FilterExpression="town = :t", ExpressionAttributeValues={":t": {"S": "Oslo"}}
    ), ("A4", "A5")),
    ("a count by scan at each visit", scan(Select="COUNT"), ("A4",)),
):  # fmt: skip
    plant(called, SK, *found, items=NOTES, application=asks(ask, 120))
for called, body, of, found in (
    (
        "a handler that scans the table",
        'def handler(event, context):\n    return table.scan()["Items"]\n',
        "table",
        ("A4",),
    ),
    (
        "a login that scans for an address",
        "def by_email(email):\n"
        "    answer = client.scan(\n"
        '        TableName="TABLE",\n'
        '        FilterExpression="email = :e",\n'
        '        ExpressionAttributeValues={":e": {"S": email}},\n'
        "    )\n"
        '    return answer["Items"][0]\n',
        "client",
        ("A4", "A5"),
    ),
    (
        "all pages of a scan in a request",
        "def everything():\n"
        '    pages = client.get_paginator("scan").paginate(TableName="TABLE")\n'
        '    return [item for page in pages for item in page["Items"]]\n',
        "client",
        ("A4",),
    ),
):
    plant(called, SK, *found, items=NOTES, code=module(body, of))
for called, scans, gets in (
    ("two scans of three reads, by the metrics", 600, 300),
    ("a scan a second, by the metrics", 60, 15),
    ("a dashboard that scans all day", 300, 500),
):
    plant(
        called, SK, "A4", items=NOTES,
        metrics=(*use(13 * scans + gets, 200)[:2], *use(gets, 100, Scan=scans)[2:]),
    )  # fmt: skip

for called, ask, reason in (
    ("notes by their keys", get(), "nothing but GetItem"),
    ("notebooks as collections", query(), "queries of one collection"),
    (
        "the latest ten of a notebook",
        query(Limit=10, ScanIndexForward=False),
        "ScanIndexForward is the direction of a query",
    ),
):
    decoy(
        called, SK, {"A4": reason}, items=NOTES, application=asks(ask),
    )  # fmt: skip
for called, metric, reason in (
    (
        "a backup by scan in the night",
        Metric("SuccessfulRequestLatency", 3, operation="Scan", busy=(120, 135), days=30),
        "a job of fifteen minutes a night, of a few pages",
    ),
    (
        "an export by scan a week",
        Metric(
            "SuccessfulRequestLatency", 4, operation="Scan", busy=(60, 70), every_days=7, days=30
        ),
        "ten minutes a week",
    ),
):
    decoy(called, SK, {"A4": reason}, items=NOTES, metrics=(*use(9_000, 900, Query=4_000), metric))
for called, body, reason in (
    (
        "code that scans barcodes",
        "def read(scanner):\n"
        "    code = scanner.scan(timeout=3)\n"
        '    return table.get_item(Key={"pk": code, "sk": "META"})\n',
        "the scan is that of a barcode scanner",
    ),
    (
        "code that scans folders",
        "import os\n\n\ndef names(path):\n    return [one.name for one in os.scandir(path)]\n\n\n"
        "def save(row):\n    table.put_item(Item=row)\n",
        "os.scandir is of the file system",
    ),
    (
        "code that says never to scan",
        "def notes(book):\n"
        '    """Never table.scan() here: it reads everything."""\n'
        '    return table.query(KeyConditionExpression=Key("pk").eq(book))["Items"]\n',
        "the scan is in a docstring",
    ),
):
    decoy(called, SK, {"A4": reason}, items=NOTES,
          code=module(body, "table"))  # fmt: skip


# A5: filters


def hundred(tag: str, users: int = 20) -> Rows:
    """Collections of a hundred, bucketed: `bucket < n` keeps n of a hundred."""

    def rows(chance: Random, now: float) -> Iterator[Item]:
        for _ in range(users):
            pk = f"{tag}#{uuid(chance)}"
            for number in range(100):
                yield {
                    "pk": pk,
                    "sk": f"MAIL#{number:03}",
                    "Type": "Mail",
                    "bucket": number,
                    "expires": int(now + (number + 1) * DAY),
                    "text": some(chance, 20, 90),
                }

    return rows


def kept(share: int) -> Callable[..., Any]:
    return query(
        FilterExpression="#b < :b",
        ExpressionAttributeNames={"#b": "bucket"},
        values={":b": {"N": str(share)}},
    )


for called, share in (
    ("unread mail, two of a hundred, by a filter", 2),
    ("flagged mail, five of a hundred, by a filter", 5),
    ("mail of one sender, one of a hundred, by a filter", 1),
    ("mail with files, a tenth, by a filter", 10),
):
    plant(called, SK, "A5", items=hundred("BOX"), application=asks(kept(share)), allowed=ONE)
for called, body in (
    (
        "open tasks of a project, filtered after the query",
        "def open_tasks(project):\n"
        "    return table.query(\n"
        '        KeyConditionExpression=Key("pk").eq(project),\n'
        '        FilterExpression=Attr("status").eq("open"),\n'
        '    )["Items"]\n',
    ),
    (
        "orders over a sum, filtered after the query",
        "def large(customer, cents):\n"
        "    found = table.query(\n"
        '        KeyConditionExpression=Key("pk").eq(customer),\n'
        '        FilterExpression=Attr("cents").gt(cents) & Attr("state").ne("void"),\n'
        "    )\n"
        '    return found["Items"]\n',
    ),
):
    plant(called, SK, "A5", items=hundred("PROJECT"), code=module(body, "table"), allowed=ONE)

for called, ask, reason in (
    ("a filter that drops nothing", kept(100), "all items pass"),
    ("a filter that drops one of a hundred", kept(99), "99 of a hundred pass"),
    (
        "a range of the sort key",
        query(key=" AND sk < :s", values={":s": {"S": "MAIL#005"}}),
        "a condition on the key reads only what it returns",
    ),
    (
        "a projection",
        query(ProjectionExpression="pk, sk"),
        "a projection drops attributes, no items",
    ),
    (
        "not yet deleted by time to live",
        query(
            FilterExpression="expires > :t",
            values={":t": {"N": "1000"}},
        ),
        "AWS advises to filter what has expired; all items pass",
    ),
):
    decoy(called, SK, {"A5": reason}, items=hundred("BOX"), application=asks(ask), allowed=ONE)
for called, body, reason in (
    (
        "code: sessions that have not expired",
        "import time\n\n\n"
        "def sessions(user):\n"
        "    return table.query(\n"
        '        KeyConditionExpression=Key("pk").eq(user),\n'
        '        FilterExpression=Attr("expires").gt(int(time.time())),\n'
        '    )["Items"]\n',
        "AWS advises this filter: what has expired stays until it is deleted",
    ),
    (
        "code: a put on a condition",
        "def take(seat):\n"
        '    table.put_item(Item=seat, ConditionExpression=Attr("pk").not_exists())\n',
        "a condition of a write is no filter",
    ),
    (
        "code: Python's own filter",
        "def adults(people):\n"
        '    return list(filter(lambda one: one["age"] > 17, people))\n\n\n'
        "def family(pk):\n"
        '    return table.query(KeyConditionExpression=Key("pk").eq(pk), Limit=50)["Items"]\n',
        "Python filters a list; the query has none",
    ),
):
    decoy(
        called, SK, {"A5": reason}, items=hundred("USER"), code=module(body, "table"), allowed=ONE
    )


# A6: local indexes, and the 10 GB of a collection

YEAR = (365 * DAY, 0.0)
LSI = Index("byState", "pk", "state", local=True)
LSI_KEYS = Index("byLabel", "pk", "label", local=True, projection="KEYS_ONLY")


def heavy(key: str, number: int, at: float) -> Item:
    return {"Type": "Entry", "state": "open", "label": f"l{number}", "body": BODY[:2_000]}


for called, index, giant, count in (
    ("a tenant of 9.6 GB beside a local index", LSI_KEYS, "TENANT#acme", 4_700_000),
    ("a mailbox of 8 GB beside a local index", LSI_KEYS, "BOX#support", 3_900_000),
    ("an account whose local index doubles 4.4 GB", LSI, "ACCOUNT#main", 2_150_000),
    ("a device of 7 GB beside a local index", LSI_KEYS, "DEVICE#gateway", 3_400_000),
    ("a chat room of 9 GB beside a local index", LSI_KEYS, "ROOM#general", 4_400_000),
    ("a customer of 6.5 GB beside a local index", LSI_KEYS, "CUSTOMER#wholesale", 3_200_000),
    ("a portfolio whose local index doubles 4 GB", LSI, "FUND#world", 1_980_000),
    ("a depot of 7.5 GB beside a local index", LSI_KEYS, "DEPOT#central", 3_650_000),
):
    plant(
        called, Schema(sort="sk", indexes=(index,)), "A6", "A15",
        virtual=Collections(4_000, 40, heavy, YEAR, giants=(Giant(giant, count),)),
        allowed=ONE, slow=True,
    )  # fmt: skip


def replies(tag: str, least: int, most: int) -> Rows:
    def rows(chance: Random, now: float) -> Iterator[Item]:
        for _ in range(80):
            pk = f"{tag}#{uuid(chance)}"
            for _ in range(chance.randint(least, most)):
                at = now - chance.random() * 200 * DAY
                yield {
                    "pk": pk,
                    "sk": iso(at),
                    "Type": "Reply",
                    "state": chance.choice(["open", "closed", "hidden"]),
                    "label": some(chance, 4, 20),
                }

    return rows


SMALL = "collections of a few kilobytes: the 10 GB are never in sight"
LSI_SMALL = {"A6": "an LSI is there, and its collections are small; low"}
for called, tag, index in (
    ("replies of a thread, by state too", "THREAD", LSI),
    ("photos of an album, by label too", "ALBUM", LSI_KEYS),
    ("rides of a rider, by state too", "RIDER", LSI),
    ("claims of a policy, by label too", "POLICY", LSI_KEYS),
    ("lines of a cart, by state too", "CART", LSI),
):
    decoy(
        called, Schema(sort="sk", indexes=(index,)),
        {"A6": SMALL, "A15": "collections of twenty or so, none of them a giant"},
        items=replies(tag, 8, 26), allowed=ONE | LSI_SMALL,
    )  # fmt: skip
for called, giant in (
    ("a log of 9 GB under one key without a local index", "LOG#all"),
    ("a feed of 9 GB under one key without a local index", "FEED#world"),
    ("a journal of 9 GB under one key without a local index", "JOURNAL#main"),
):
    declare(
        called, "planted", SK,
        {
            "found": ["A15"],
            "traps": {"A6": "without a local index, a collection may pass 10 GB"},
            "virtual": Collections(4_000, 40, heavy, YEAR, giants=(Giant(giant, 4_400_000),)),
            "allowed": ONE,
            "slow": True,
        },
    )  # fmt: skip


# A7: indexes


def leads(*names: str, of: int = 300, count: int = 600) -> Rows:
    def rows(chance: Random, now: float) -> Iterator[Item]:
        for _ in range(count):
            at = now - chance.random() * 300 * DAY
            yield {"pk": f"LEAD#{uuid(chance)}", "Type": "Lead", "at": iso(at)} | {
                one: f"{one}-{chance.randrange(of)}" for one in names
            }

    return rows


QUESTIONS = (
    "owner", "city", "phone", "plan", "source", "colour", "size", "team", "agent", "branch",
    "brand", "label", "route", "campaign",
)  # fmt: skip
for called, number in (
    ("an index for each of eight columns", 8),
    ("an index for each of twelve columns", 12),
    ("an index for each of fourteen columns", 14),
):
    plant(
        called,
        Schema("pk", indexes=tuple(Index(f"by-{one}", one) for one in QUESTIONS[:number])),
        "A7",
        items=leads(*QUESTIONS[:number]),
        allowed=ONE,
    )
for called, indexes in (
    (
        "two indexes of one key, under two names",
        (Index("byOwner", "owner", "at"), Index("owner-index", "owner", "at")),
    ),
    (
        "the same index of the city twice",
        (Index("city-v1", "city"), Index("city-v2", "city"), Index("byOwner", "owner")),
    ),
):
    plant(called, Schema("pk", indexes=indexes), "A7", items=leads("owner", "city"), allowed=ONE)
for called, unread in (
    ("an index of cities that nobody reads", "byCity"),
    ("an index of phones that nobody reads", "byPhone"),
    ("an index of teams that nobody reads", "byTeam"),
):
    attribute = unread[2:].lower()
    plant(
        called,
        Schema("pk", indexes=(Index("byOwner", "owner"), Index(unread, attribute))),
        f"A7 {unread}",
        items=leads("owner", attribute),
        metrics=(
            *use(3_000, 1_000, UpdateItem=300),
            *index_use("byOwner", 2_000, 900),
            Metric("ConsumedWriteCapacityUnits", 900, index=unread, days=30),
        ),
        allowed=ONE | {"I3": "an index that only costs"},
    )

for called, indexes, reason, metrics in (
    (
        "two indexes, both read all day",
        (Index("byOwner", "owner"), Index("byCity", "city")),
        "two, and both are read",
        (*index_use("byOwner", 2_000, 200), *index_use("byCity", 900, 200)),
    ),
    (
        "an index read at the end of each week only",
        (Index("byOwner", "owner"),),
        "read each week, as a weekly report needs it",
        (Metric("ConsumedReadCapacityUnits", 4_000, index="byOwner", days=30, every_days=7),),
    ),
    (
        "leads of an owner, by time and by city",
        (Index("byOwnerAt", "owner", "at"), Index("byOwnerCity", "owner", "city")),
        "one partition key, two orders: neither gives the other's",
        (*index_use("byOwnerAt", 2_000, 200), *index_use("byOwnerCity", 900, 200)),
    ),
    (
        "three indexes for three teams, all read",
        (Index("byOwner", "owner"), Index("byCity", "city"), Index("byTeam", "team")),
        "three, all of them read",
        tuple(
            metric
            for one in ("byOwner", "byCity", "byTeam")
            for metric in index_use(one, 1_500, 200)
        ),
    ),
):
    decoy(
        called, Schema("pk", indexes=indexes),
        {"A7": reason, f"A9 {indexes[0].name}": "three hundred values, all alike"},
        items=leads("owner", "city", "team"),
        metrics=(*use(6_000, 1_000), *metrics),
        allowed=ONE | {"E1": "city-17 is a number without padding, though one of no order"},
    )  # fmt: skip


def overloaded(chance: Random, now: float) -> Iterator[Item]:
    """GSI1 answers a question of each kind of item."""
    for _ in range(120):
        account = uuid(chance)
        yield {
            "pk": f"ACCOUNT#{account}", "sk": "ACCOUNT", "Type": "Account",
            "gsi1pk": f"EMAIL#{uuid(chance)}@example.org", "gsi1sk": "ACCOUNT",
        }  # fmt: skip
        for _ in range(chance.randint(1, 4)):
            project = ulid(now - chance.random() * 90 * DAY, chance)
            yield {
                "pk": f"ACCOUNT#{account}", "sk": f"PROJECT#{project}", "Type": "Project",
                "gsi1pk": f"PROJECT#{project}", "gsi1sk": "PROJECT", "label": some(chance, 4, 30),
            }  # fmt: skip


def inverted(chance: Random, now: float) -> Iterator[Item]:
    actors = [f"ACTOR#{uuid(chance)}" for _ in range(150)]
    for _ in range(160):
        film = f"FILM#{uuid(chance)}"
        for actor in chance.sample(actors, chance.randint(2, 7)):
            yield {"pk": film, "sk": actor, "Type": "Role", "as": name(chance)}


GSI1 = Schema(sort="sk", indexes=(Index("gsi1", "gsi1pk", "gsi1sk"),))
decoy(
    "one overloaded index for all questions",
    GSI1,
    {"A7": "one index", "A9 gsi1": "its keys are an address or a project each"},
    items=overloaded,
)
decoy(
    "films and actors, and the table turned round",
    Schema(sort="sk", indexes=(Index("inverted", "sk", "pk"),)),
    {"A7": "sk before pk is another order, not the table's", "A9 inverted": "150 actors"},
    items=inverted,
    allowed=ONE,
)


def listings(sparse: str, share: float, count: int = 900) -> Rows:
    """Items, of which few have the attribute of a sparse index."""

    def rows(chance: Random, now: float) -> Iterator[Item]:
        for _ in range(count):
            at = now - chance.random() * 90 * DAY
            row = {"pk": f"CASE#{uuid(chance)}", "Type": "Case", "at": iso(at)}
            yield row | ({sparse: "Y"} if chance.random() < share else {})

    return rows


for called, attribute in (
    ("cases to be reviewed, in a sparse index", "toReview"),
    ("refunds that wait for approval, in a sparse index", "waits"),
):
    decoy(
        called,
        Schema("pk", indexes=(Index("sparse", attribute, "at"),)),
        {
            "A9 sparse": "one key, but of the fifteen items that wait: a work list, kept short",
            "A7": "one index, and small",
        },
        items=listings(attribute, 0.017),
        allowed=ONE,
    )


# A8: one counter


def counted(
    share: float, attribute: str, step: int = 1, count: int = 800, other: str = "title"
) -> Writes:
    """So large a share of the writes adds to one number."""

    def writes(chance: Random, now: float, items: list[Item]) -> list[Write]:
        hot, made = items[5], []
        for number in range(int(share * count)):
            old = hot | {attribute: 50_000 + step * number}
            new = hot | {attribute: 50_000 + step * (number + 1)}
            made.append(Write(868 - number * 860 / (share * count), old, new))
        return in_order([*made, *spread(chance, items, count - int(share * count), other)])

    return writes


HOTTEST = {
    "H1": "the counter's key is the hottest of all",
    "H7": "the shard of the counter has most of the records",
}
for called, tag, attribute, share, step in (
    ("likes of the video that went viral", "VIDEO", "likes", 0.7, 1),
    ("a stock that a sale counts down", "SKU", "left", 0.6, -1),
    ("votes of the final", "POLL", "votes", 0.8, 1),
    ("downloads of the newest release", "RELEASE", "downloads", 0.55, 1),
    ("a balance through which all payments go", "WALLET", "cents", 0.65, 150),
):
    plant(
        called, PK, "A8", items=flat(tag, **{attribute: lambda c: c.randrange(900)}),
        stream=counted(share, attribute, step), allowed=ONE | HOTTEST,
    )  # fmt: skip


def hot_key(
    key: tuple[str, ...],
    units: float,
    kind: str = "Write",
    others: int = 30,
    least: float = 300.0,
    throttled: bool = True,
) -> dict[str, Any]:
    """What AWS shows of a key that takes nearly all that a partition gives: metrics, contributors,
    throttles of its key range until two hours ago.
    """
    read, write = (units * 1.3, 900.0) if kind == "Read" else (900.0, units * 1.3)
    operation, calls = ("GetItem", 2 * read) if kind == "Read" else ("UpdateItem", write)
    metrics = [
        Metric("ConsumedReadCapacityUnits", read),
        Metric("ConsumedWriteCapacityUnits", write),
        Metric("SuccessfulRequestLatency", calls, operation=operation),
    ]
    insights = [Contributor("PKC", key[:1], units, 60)]
    insights += [Contributor("PKC", (f"OTHER#{n}",), least + n, 60) for n in range(others)]
    if len(key) > 1:
        insights.append(Contributor("SKC", key, units, 60))
        insights += [Contributor("SKC", (f"OTHER#{n}", "A"), least + n, 60) for n in range(others)]
    if throttled:
        metrics += [
            Metric(f"{kind}KeyRangeThroughputThrottleEvents", 300, days=1, since=7_200),
            Metric(f"{kind}ThrottleEvents", 300, days=1, since=7_200),
        ]
        insights.append(Contributor("PKT", key[:1], 300, 60, ago=7_200))
        if len(key) > 1:
            insights.append(Contributor("SKT", key, 300, 60, ago=7_200))
    return {"metrics": tuple(metrics), "insights": tuple(insights)}


NOT_BY_CAPACITY = "on demand, and throttled by the key range: capacity is not short"
for called, key, attribute in (
    ("the number of the next order, one item for all", ("SEQUENCE#order", "NEXT"), "next"),
    ("a quota that all calls of a tenant count", ("QUOTA#acme", "CALLS"), "calls"),
    ("plays of a song on the day it comes out", ("SONG#single", "PLAYS"), "plays"),
    ("a jackpot to which each game adds", ("JACKPOT#main", "SUM"), "cents"),
):
    hot: Item = {"pk": key[0], "sk": key[1], "Type": "Counter", attribute: 9}
    plant(
        called, SK, "A8", "H1",
        items=both(family("GAME", "ROUND"), rows_of(hot)),
        stream=lambda chance, now, items, hot=hot: counted(
            0.8, [*hot][-1], other="note"
        )(chance, now, [*items[:5], hot, *items[5:]]),
        traps={"H4": NOT_BY_CAPACITY},
        allowed={"H7": HOTTEST["H7"]},
        **hot_key(key, 57_000),
    )  # fmt: skip


def written(change: Callable[[Random, Item, int], Item], keys: int = 0, count: int = 800) -> Writes:
    """Changes of random items, or of the first few."""

    def writes(chance: Random, now: float, items: list[Item]) -> list[Write]:
        state: dict[int, Item] = {}
        made = []
        for number in range(count):
            at = chance.randrange(keys or len(items))
            old = state.get(at, items[at])
            state[at] = change(chance, old, number)
            made.append(Write(868 - number * 860 / count, old, state[at]))
        return made

    return writes


def add(attribute: str, chance: Random, old: Item) -> Item:
    return old | {attribute: old.get(attribute, 0) + 1}


for called, tag, attribute, reason in (
    ("views of all pages, each its own", "PAGE", "views", "700 counters, none with much"),
    ("a version on each item for optimistic locking", "DOC", "version", "each item has its own"),
    ("scores of players in their games", "PLAYER", "score", "each player has her own"),
    ("stocks of a warehouse, filled up all over", "SKU", "left", "700 articles, all alike"),
    ("kilometres of a fleet", "TRUCK", "km", "each truck has its own"),
):
    decoy(
        called, PK,
        {"A8": reason, "H1": "no key has a hundredth of the writes", "H7": "all over the shards"},
        items=flat(tag, **{attribute: lambda c: c.randrange(500)}),
        stream=written(lambda c, old, n, attribute=attribute: add(attribute, c, old)), allowed=ONE,
    )  # fmt: skip
decoy(
    "a counter in a hundred shards",
    PK,
    {"A8": "a hundred shards share the counter's writes", "A1": "shards are counted by design"},
    items=lambda chance, now: (
        {"pk": f"VIEWS#{page}#{n:02}", "Type": "Shard", "views": chance.randrange(900)}
        for page in [uuid(chance) for _ in range(6)]
        for n in range(100)
    ),
    stream=written(lambda c, old, n: add("views", c, old)),
    allowed=ONE,
)
decoy(
    "temperatures that go up and down",
    PK,
    {"A8": "a measured value, not a sum; and each sensor has its own"},
    items=flat("SENSOR", celsius=lambda c: c.randrange(30)),
    stream=written(lambda c, old, n: old | {"celsius": c.randrange(30)}),
    allowed=ONE,
)
decoy(
    "the totals of tenants, each once a while",
    PK,
    {"A8": "150 tenants count, each for itself", "H7": "all over the shards"},
    items=flat("TENANT", 150, calls=lambda c: c.randrange(500)),
    stream=written(lambda c, old, n: add("calls", c, old)),
    allowed=ONE,
)


# A9: one key of an index has it all


def skewed(attribute: str, most: str, share: float, rest: tuple[str, ...]) -> Rows:
    def rows(chance: Random, now: float) -> Iterator[Item]:
        for _ in range(900):
            at = now - chance.random() * 200 * DAY
            yield {
                "pk": f"ROW#{uuid(chance)}",
                "Type": "Row",
                "at": iso(at),
                attribute: most if chance.random() < share or not rest else chance.choice(rest),
                "what": some(chance, 5, 50),
            }

    return rows


for called, index, attribute, most, share, rest in (
    ("orders by status, nearly all DELIVERED", "byStatus", "status", "DELIVERED", 0.95, ("NEW",)),
    ("users by country, nearly all of one", "byCountry", "country", "US", 0.93, ("CA", "MX", "BR")),
    ("subscribers by whether they are active", "byActive", "active", "true", 0.9, ("false",)),
    ("articles by category, most of them `other`", "byCategory", "category", "other", 0.85,
     ("toys", "books", "food")),
    ("files by the owner, most of them `system`", "byOwner", "owner", "system", 0.9,
     ("ada", "bea")),
    ("all posts under one key, newest first", "gsi1", "gsi1pk", "POST", 1.0, ()),
    ("all products under one key, by time", "byAll", "all", "ALL", 1.0, ()),
    ("payments by currency, nearly all EUR", "byCurrency", "currency", "EUR", 0.96,
     ("SEK", "DKK")),
):  # fmt: skip
    plant(
        called, Schema("pk", indexes=(Index(index, attribute, "at"),)), f"A9 {index}",
        items=skewed(attribute, most, share, rest),
        allowed=ONE | {"A19": "few keys of the index", "A15": "of the index"},
    )  # fmt: skip
decoy(
    "open orders in a hundred shards of an index",
    Schema("pk", indexes=(Index("open", "openShard", "at"),)),
    {"A9 open": "a hundred shards, all alike", "A1": "no key of the table is counted"},
    items=skewed("openShard", "", 0.0, tuple(f"OPEN#{n:02}" for n in range(100))),
    allowed=ONE,
)


# A10: what was just written, read from an index


def after(way: str, index: str = "byOwner", attribute: str = "owner", tag: str = "ORDER") -> Any:
    """Each time an item is written and asked for at once, in some way."""

    def work(client: Any, table: str, chance: Random) -> None:
        old = seen(client, table, 200)
        for number in range(220):
            value = f"{attribute}-{uuid(chance)}"
            key = {"pk": {"S": f"{tag}#{uuid(chance)}"}}
            attributes = {attribute: {"S": value}, "at": {"S": iso(1_700_000_000 + number)}}
            if way != "only reads":
                client.put_item(
                    TableName=table, Item=key | attributes | {"Type": {"S": tag.title()}}
                )
            if way == "table":
                client.get_item(TableName=table, Key=key, ConsistentRead=True)
            elif way != "only writes":
                asked = value if way == "index" else chance.choice(old)[attribute]["S"]
                client.query(
                    TableName=table,
                    IndexName=index,
                    KeyConditionExpression="#a = :v",
                    ExpressionAttributeNames={"#a": attribute},
                    ExpressionAttributeValues={":v": {"S": asked}},
                )

    return work


for called, index, attribute, tag in (
    ("an order, read by its owner as soon as it is written", "byOwner", "owner", "ORDER"),
    ("a user, read by her address right after she signs up", "byEmail", "email", "USER"),
    ("a booking, read by its code right after it is made", "byCode", "code", "BOOKING"),
    ("a payment, read by its reference at once", "byReference", "reference", "PAYMENT"),
    ("a parcel, read by its label at once", "byLabel", "label", "PARCEL"),
    ("an appointment, read by the doctor at once", "byDoctor", "doctor", "APPOINTMENT"),
    ("a device, read by its serial right after it registers", "bySerial", "serial", "DEVICE"),
    ("a message, read by its thread at once", "byThread", "thread", "MESSAGE"),
):
    plant(
        called, Schema("pk", indexes=(Index(index, attribute),)), f"A10 {index}",
        items=leads(attribute), application=after("index", index, attribute, tag), allowed=ONE,
    )  # fmt: skip
for called, way, reason in (
    ("an order, read by its own key when written", "table", "a consistent read of the table"),
    ("a booking, read by its own key when made", "table", "a consistent read of the table"),
    ("orders that are written, and others read by owner", "others", "others, written long ago"),
    ("users who sign up, while others are looked for", "others", "others, written long ago"),
    ("leads that are only read by owner", "only reads", "nothing is written"),
    ("accounts that are only read by owner", "only reads", "nothing is written"),
    ("orders that are only written", "only writes", "nothing is read from the index"),
    ("parcels that are only written", "only writes", "nothing is read from the index"),
):
    decoy(
        called,
        Schema("pk", indexes=(Index("byOwner", "owner"),)),
        {"A10 byOwner": reason},
        items=leads("owner"),
        application=after(way),
        allowed=ONE
        | ({"A17": "read right after the write, as it must be"} if way == "table" else {}),
    )


# A11: changes of status that go back


def lifecycle(steps: tuple[str, ...], back: float, attribute: str = "status") -> Writes:
    """Each item goes through its steps; in so many cases a late event puts it back, though it had
    already arrived.
    """

    def writes(chance: Random, now: float, items: list[Item]) -> list[Write]:
        made = []
        for item in items[:260]:
            ago, row = 400 + chance.random() * 450, item
            path = list(steps[1:])
            if chance.random() < back:
                path.append(steps[-2])
            for step in path:
                new = row | {attribute: step}
                made.append(Write(ago, row, new))
                row, ago = new, ago - 20 - chance.random() * 40
        return in_order(made)

    return writes


def born(tag: str, status: str, attribute: str = "status") -> Rows:
    return flat(tag, 500, **{attribute: lambda c: status})


PARCEL = ("created", "picked up", "in transit", "out for delivery", "delivered")
BILL = ("draft", "sent", "overdue", "paid")
for called, tag, steps, back in (
    ("parcels that a late scan brings back on the road", "PARCEL", PARCEL, 0.06),
    ("bills that are unpaid again after a late message", "BILL", BILL, 0.05),
    ("builds that an old event sets back", "BUILD", ("queued", "running", "done"), 0.08),
    ("claims that a retry reopens", "CLAIM", ("filed", "checked", "approved", "settled"), 0.05),
    ("rides that a phone without a net takes back", "RIDE", ("asked", "met", "done"), 0.1),
    ("visas that an old batch takes back", "VISA", ("lodged", "read", "decided", "issued"), 0.06),
    ("orders that the old system writes once more", "ORDER",
     ("placed", "paid", "packed", "sent", "received"), 0.07),
    ("recipes filled at the pharmacy, and then not", "RX", ("new", "checked", "filled", "given"),
     0.09),
):  # fmt: skip
    plant(
        called, PK, "A11", items=born(tag, steps[0]), stream=lifecycle(steps, back), allowed=ONE,
    )  # fmt: skip
for called, tag, steps in (
    ("parcels that only go on", "PARCEL", PARCEL),
    ("bills that only go on", "BILL", BILL),
    ("builds that pass once", "BUILD", ("queued", "running", "passed")),
    ("trips that only go on", "TRIP", ("planned", "booked", "begun", "ended")),
):
    decoy(
        called, PK, {"A11": "no transition goes back", "A8": "a status is no number"},
        items=born(tag, steps[0]), stream=lifecycle(steps, 0.0), allowed=ONE,
    )  # fmt: skip
for called, tag, attribute, states, reason in (
    ("devices that come and go", "DEVICE", "state", ("online", "offline"), "a state of the world"),
    ("doors that open and close", "DOOR", "state", ("open", "closed"), "a door is meant to"),
    ("seats that are taken and left", "SEAT", "status", ("free", "taken"), "both ways are meant"),
    ("chargers that charge and rest", "CHARGER", "status", ("idle", "charging"), "a cycle"),
):

    def toggling(chance: Random, old: Item, number: int, attribute: str = attribute,
                 states: tuple[str, str] = states) -> Item:  # fmt: skip
        return old | {attribute: states[old[attribute] == states[0]]}

    decoy(
        called, PK, {"A11": f"{reason}: half of all changes go each way"},
        items=born(tag, states[0], attribute), stream=written(toggling, keys=200), allowed=ONE,
    )  # fmt: skip


# A12: transactions of one item

CLIENTS = family("CLIENT", "ORDER", count=80)


def transaction(items: int, get_too: bool = False) -> Callable[..., Any]:
    def one(client: Any, table: str, chance: Random, item: dict[str, Any]) -> Any:
        if get_too:
            return client.transact_get_items(
                TransactItems=[{"Get": {"TableName": table, "Key": key_of(item)}}] * items
            )
        return client.transact_write_items(
            TransactItems=[
                {
                    "Put": {
                        "TableName": table,
                        "Item": {
                            "pk": item["pk"],
                            "sk": {"S": f"ORDER#{ulid(1_790_000_000 + n, chance)}"},
                            "Type": {"S": "Order"},
                        },
                    }
                }
                for n in range(items)
            ]
        )

    return one


for called, ask in (
    ("each order in a transaction of its own", transaction(1)),
    ("each reading in a transaction of its own", each(transaction(1), transaction(1), get())),
    ("a profile, read in a transaction of one", transaction(1, get_too=True)),
    ("single reads and single writes, all in transactions", each(
        transaction(1), transaction(1, get_too=True)
    )),
):  # fmt: skip
    plant(called, SK, "A12", items=CLIENTS, application=asks(ask))
for called, body in (
    (
        "code: a like in a transaction of one update",
        "def like(pk):\n"
        "    client.transact_write_items(\n"
        "        TransactItems=[\n"
        "            {\n"
        '                "Update": {\n'
        '                    "TableName": "TABLE",\n'
        '                    "Key": {"pk": {"S": pk}, "sk": {"S": "META"}},\n'
        '                    "UpdateExpression": "ADD likes :one",\n'
        '                    "ExpressionAttributeValues": {":one": {"N": "1"}},\n'
        "                }\n"
        "            }\n"
        "        ]\n"
        "    )\n",
    ),
    (
        "code: a session in a transaction of one put",
        "def save(item):\n"
        "    client.transact_write_items(\n"
        '        TransactItems=[{"Put": {"TableName": "TABLE", "Item": item}}]\n'
        "    )\n",
    ),
    (
        "code: a lock let go in a transaction of one delete",
        "def release(key):\n"
        "    return client.transact_write_items(\n"
        '        TransactItems=[{"Delete": {"TableName": "TABLE", "Key": key}}]\n'
        "    )\n",
    ),
    (
        "code: a setting read in a transaction of one get",
        "def setting(key):\n"
        "    answer = client.transact_get_items(\n"
        '        TransactItems=[{"Get": {"TableName": "TABLE", "Key": key}}]\n'
        "    )\n"
        '    return answer["Responses"][0]["Item"]\n',
    ),
):
    plant(called, SK, "A12", items=CLIENTS, code=module(body))

for called, ask, reason in (
    ("two orders in one transaction", transaction(2), "two items, all or nothing"),
    ("four lines in one transaction", transaction(4), "four items, all or nothing"),
    ("single items without transactions", get(), "no transaction at all"),
):
    decoy(called, SK, {"A12": reason}, items=CLIENTS, application=asks(ask))
UNIQUE = (
    "def sign_up(user, email):\n"
    "    client.transact_write_items(\n"
    "        TransactItems=[\n"
    '            {"Put": {"TableName": "TABLE", "Item": user}},\n'
    '            {"%s": {"TableName": "TABLE", "%s": email,\n'
    '                     "ConditionExpression": "attribute_%s(pk)"}},\n'
    "        ]\n"
    "    )\n"
)
for called, body, reason in (
    ("code: a user and her address", UNIQUE % ("Put", "Item", "not_exists"), "two items"),
    ("code: a user, if her team is there", UNIQUE % ("ConditionCheck", "Key", "exists"),
     "a second item is checked"),
    (
        "code: money that moves from one to the other",
        "def move(source, target, cents):\n"
        "    def change(key, sum_):\n"
        '        return {"Update": {"TableName": "TABLE", "Key": key,\n'
        '                           "UpdateExpression": "ADD cents :c",\n'
        '                           "ExpressionAttributeValues": {":c": {"N": str(sum_)}}}}\n\n'
        "    client.transact_write_items(\n"
        "        TransactItems=[change(source, -cents), change(target, cents)]\n"
        "    )\n",
        "two items",
    ),
    (
        "code: a put with a condition",
        "def claim(item):\n"
        "    client.put_item(\n"
        '        TableName="TABLE", Item=item, ConditionExpression="attribute_not_exists(pk)"\n'
        "    )\n",
        "a condition of one item, without a transaction: as it should be",
    ),
    (
        "code: whatever is collected, in one transaction",
        "def commit(work):\n"
        "    client.transact_write_items(\n"
        '        TransactItems=[{"Put": {"TableName": "TABLE", "Item": one}} for one in work]\n'
        "    )\n",
        "as many as there are: no sign that it is one",
    ),
):  # fmt: skip
    decoy(called, SK, {"A12": reason}, items=CLIENTS, code=module(body))


# A13: large items


def sized(tag: str, share: float, large: tuple[int, int], small: tuple[int, int]) -> Rows:
    """count: few are enough, as each tenth or twentieth is large."""

    def rows(chance: Random, now: float) -> Iterator[Item]:
        for number in range(300):
            least, most = large if number < share * 300 else small
            yield {
                "pk": f"{tag}#{uuid(chance)}",
                "Type": tag.title(),
                "body": BODY[: chance.randint(least, most)],
            }

    return rows


for called, tag, share, least in (
    ("scans of contracts inside the items", "CONTRACT", 0.08, 340),
    ("pictures as base64 inside the items", "PICTURE", 0.1, 300),
    ("carts that keep the whole history", "CART", 0.05, 350),
    ("web pages stored as they came", "PAGE", 0.06, 320),
    ("models with their weights inside", "MODEL", 0.1, 360),
    ("health records with all findings in one item", "PATIENT", 0.07, 345),
    ("chat rooms with all messages in a list", "ROOM", 0.05, 370),
    ("game states saved as one blob", "SAVE", 0.1, 310),
):
    plant(
        called, PK, "A13",
        items=sized(tag, share, (least * KB, 395 * KB), (500, 3_000)), allowed=ONE,
    )  # fmt: skip
for called, tag, most, reason in (
    ("contracts in S3, and where they are", "CONTRACT", 900, "the item only points to S3"),
    ("pictures in S3, and thumbnails of 2 KB", "PICTURE", 2_500, "thumbnails are small"),
    ("carts of a few lines", "CART", 1_500, "a kilobyte each"),
    ("articles of 3 KB", "ARTICLE", 3_300, "less than one read unit's 4 KB"),
    ("letters of 2 KB", "LETTER", 2_200, "less than 4 KB"),
    ("recipes of 3 KB", "RECIPE", 3_500, "less than 4 KB"),
    ("settings of users", "USER", 700, "less than 1 KB"),
    ("device shadows of 3 KB", "SHADOW", 3_600, "less than 4 KB"),
):
    decoy(
        called, PK, {"A13": reason},
        items=sized(tag, 0.2, (int(most * 0.8), most), (200, 600)), allowed=ONE,
    )  # fmt: skip


# A14: what a batch leaves behind

for called, body, of in (
    (
        "code: an import whose leftovers are lost",
        "def load(rows):\n"
        "    for start in range(0, len(rows), 25):\n"
        "        part = rows[start : start + 25]\n"
        "        client.batch_write_item(\n"
        '            RequestItems={"TABLE": [{"PutRequest": {"Item": row}} for row in part]}\n'
        "        )\n",
        "client",
    ),
    (
        "code: a purge whose leftovers are lost",
        "def purge(keys):\n"
        "    client.batch_write_item(\n"
        '        RequestItems={"TABLE": [{"DeleteRequest": {"Key": key}} for key in keys]}\n'
        "    )\n",
        "client",
    ),
    (
        "code: products of a cart, whichever come",
        "def products(keys):\n"
        '    answer = client.batch_get_item(RequestItems={"TABLE": {"Keys": keys}})\n'
        '    return answer["Responses"]["TABLE"]\n',
        "client",
    ),
    (
        "code: a batch that only counts what it sent",
        "def send(rows):\n"
        '    request = {"TABLE": [{"PutRequest": {"Item": row}} for row in rows]}\n'
        "    client.batch_write_item(RequestItems=request)\n"
        "    return len(rows)\n",
        "client",
    ),
    (
        "code: a batch that looks at the status alone",
        "def send(rows):\n"
        '    request = {"TABLE": [{"PutRequest": {"Item": row}} for row in rows]}\n'
        "    answer = client.batch_write_item(RequestItems=request)\n"
        '    if answer["ResponseMetadata"]["HTTPStatusCode"] != 200:\n'
        '        raise RuntimeError("not written")\n',
        "client",
    ),
    (
        "code: a batch that looks for exceptions alone",
        "def send(rows):\n"
        "    try:\n"
        "        client.batch_write_item(\n"
        '            RequestItems={"TABLE": [{"PutRequest": {"Item": row}} for row in rows]}\n'
        "        )\n"
        "    except client.exceptions.ProvisionedThroughputExceededException:\n"
        "        send(rows)\n",
        "client",
    ),
    (
        "code: users of a team by a batch, and a name for each",
        "def names(ids):\n"
        '    keys = [{"pk": {"S": f"USER#{one}"}, "sk": {"S": "META"}} for one in ids]\n'
        '    found = client.batch_get_item(RequestItems={"TABLE": {"Keys": keys}})["Responses"]\n'
        '    return [item["name"]["S"] for item in found["TABLE"]]\n',
        "client",
    ),
    (
        "code: a class that flushes and forgets",
        "class Buffer:\n"
        "    def __init__(self):\n"
        "        self.rows = []\n"
        '        self.client = boto3.client("dynamodb")\n\n'
        "    def flush(self):\n"
        '        puts = [{"PutRequest": {"Item": row}} for row in self.rows]\n'
        '        self.client.batch_write_item(RequestItems={"TABLE": puts})\n'
        "        self.rows = []\n",
        "client",
    ),
):
    plant(called, SK, "A14", items=CLIENTS, code=module(body, of))
for called, body, of, reason in (
    (
        "code: a batch writer",
        "def load(rows):\n"
        "    with table.batch_writer() as batch:\n"
        "        for row in rows:\n"
        "            batch.put_item(Item=row)\n",
        "table",
        "boto3's batch writer sends again what is left",
    ),
    (
        "code: a batch writer that deletes",
        "def purge(keys):\n"
        '    with table.batch_writer(overwrite_by_pkeys=["pk", "sk"]) as batch:\n'
        "        for key in keys:\n"
        "            batch.delete_item(Key=key)\n",
        "table",
        "boto3's batch writer sends again what is left",
    ),
    (
        "code: a batch until nothing is left",
        "def load(rows):\n"
        '    left = {"TABLE": [{"PutRequest": {"Item": row}} for row in rows]}\n'
        "    while left:\n"
        '        left = client.batch_write_item(RequestItems=left)["UnprocessedItems"]\n',
        "client",
        "it goes on with UnprocessedItems",
    ),
    (
        "code: a batch whose leftovers go to a queue",
        "def load(rows, queue):\n"
        '    sent = {"TABLE": [{"PutRequest": {"Item": row}} for row in rows]}\n'
        "    answer = client.batch_write_item(RequestItems=sent)\n"
        '    for row in answer.get("UnprocessedItems", {}).get("TABLE", []):\n'
        "        queue.append(row)\n",
        "client",
        "what is left goes to a queue",
    ),
    (
        "code: keys until none is left",
        "def products(keys):\n"
        '    asked, found = {"TABLE": {"Keys": keys}}, []\n'
        "    while asked:\n"
        "        answer = client.batch_get_item(RequestItems=asked)\n"
        '        found += answer["Responses"].get("TABLE", [])\n'
        '        asked = answer["UnprocessedKeys"]\n'
        "    return found\n",
        "client",
        "it goes on with UnprocessedKeys",
    ),
    (
        "code: an error if anything is left",
        "def load(rows):\n"
        '    sent = {"TABLE": [{"PutRequest": {"Item": row}} for row in rows]}\n'
        "    answer = client.batch_write_item(RequestItems=sent)\n"
        '    if answer["UnprocessedItems"]:\n'
        '        raise RuntimeError("some were not written")\n',
        "client",
        "it fails loudly on what is left",
    ),
    (
        "code: one put at a time",
        "def load(rows):\n"
        "    for one in rows:\n"
        '        client.put_item(TableName="TABLE", Item=one)\n',
        "client",
        "no batch",
    ),
    (
        "code: a batch of messages for a queue",
        'sqs = boto3.client("sqs")\n\n\n'
        "def tell(url, entries):\n"
        "    sqs.send_message_batch(QueueUrl=url, Entries=entries)\n\n\n"
        'def save(row):\n    client.put_item(TableName="TABLE", Item=row)\n',
        "client",
        "the batch is of SQS",
    ),
):
    decoy(called, SK, {"A14": reason}, items=CLIENTS, code=module(body, of))


# A15: collections without an end


def giant(tag: str, one: str, large: int, others: int = 450) -> Rows:
    def rows(chance: Random, now: float) -> Iterator[Item]:
        sizes = [(f"{tag}#{uuid(chance)}", chance.randint(1, 8)) for _ in range(others)]
        for pk, size in [*sizes, (f"{tag}#{one}", large)]:
            for _ in range(size):
                at = now - chance.random() * 300 * DAY
                yield {
                    "pk": pk,
                    "sk": ulid(at, chance),
                    "Type": tag.title(),
                    "what": some(chance, 20, 120),
                }

    return rows


for called, tag, one, large in (
    ("audit entries, most without an actor", "ACTOR", "unknown", 4_000),
    ("carts, and that of the guest", "CART", "guest", 3_500),
    ("followers, and those of one star", "USER", "star", 5_000),
    ("messages, most in #general", "CHANNEL", "general", 4_500),
    ("readings, most of a default device", "DEVICE", "00000000", 4_000),
    ("bookings, most by one agency", "AGENT", "bigtravel", 3_600),
    ("transfers, most of the clearing account", "ACCOUNT", "clearing", 5_000),
    ("comments, most on one film", "FILM", "blockbuster", 3_800),
):
    plant(called, SK, "A15", items=giant(tag, one, large), allowed=ONE)


def bounded(tag: str, keys: int, least: int, most: int, ending: str = "") -> Rows:
    def rows(chance: Random, now: float) -> Iterator[Item]:
        for _ in range(keys):
            pk = f"{tag}#{uuid(chance)}{ending}"
            for _ in range(chance.randint(least, most)):
                at = now - chance.random() * 30 * DAY
                yield {"pk": pk, "sk": iso(at), "Type": tag.title(), "what": some(chance, 9, 60)}

    return rows


for called, items, reason in (
    ("messages of a room and a month", bounded("ROOM", 90, 8, 20, "#2026-11"), "a month ends"),
    ("seats of a theatre", bounded("HALL", 40, 25, 30), "a hall has so many seats"),
    ("lines of an order", bounded("ORDER", 300, 1, 6), "an order has few lines"),
    ("players of a team", bounded("TEAM", 60, 11, 18), "a team has so many players"),
    ("stops of a route", bounded("ROUTE", 70, 8, 22), "a route has so many stops"),
):
    decoy(
        called, SK,
        {"A15": f"{reason}: all collections are alike and small", "A19": "dozens of keys or more"},
        items=items, allowed=ONE,
    )  # fmt: skip


# A16: time to live

EXPIRES = Schema("pk", ttl="expires")


def tokens(value: Callable[[Random, float], Any], attribute: str = "expires") -> Rows:
    return lambda chance, now: (
        {
            "pk": f"TOKEN#{uuid(chance)}",
            "Type": "Token",
            "by": name(chance),
        }
        | ({} if (at := value(chance, now)) is None else {attribute: at})
        for _ in range(800)
    )


for called, value in (
    ("sessions that end in milliseconds", lambda c, n: int(n + c.random() * DAY) * 1_000),
    ("sessions that end in microseconds", lambda c, n: int(n + c.random() * DAY) * 10**6),
    ("sessions that end at an ISO time", lambda c, n: iso(n + c.random() * DAY)),
    ("sessions that end at seconds, as text", lambda c, n: str(int(n + c.random() * DAY))),
    ("sessions that end on a day, as text", lambda c, n: day(n + c.uniform(1, 9) * DAY)),
    ("links that should have gone a month ago", lambda c, n: int(n - c.uniform(20, 60) * DAY)),
    ("codes that say how long instead of until when", lambda c, n: c.choice([300, 900, 3_600])),
    ("carts of which most should have gone", lambda c, n: int(n + c.uniform(-90, 20) * DAY)),
):  # fmt: skip
    plant(called, EXPIRES, "A16", items=tokens(value), allowed=ONE)
for called, value, reason in (
    ("sessions that end within a day", lambda c, n: int(n + c.uniform(0.1, 1) * DAY), "to come"),
    ("invitations of a fortnight", lambda c, n: int(n + c.uniform(0.1, 14) * DAY), "to come"),
    ("logs kept for a year", lambda c, n: int(n + c.uniform(1, 365) * DAY), "to come"),
    (
        "codes, some of them expired an hour ago",
        lambda c, n: int(n + c.uniform(-0.05, 0.5) * DAY),
        "DynamoDB deletes within a few days: an hour is no delay",
    ),
    (
        "notes, of which some are kept forever",
        lambda c, n: int(n + c.uniform(1, 90) * DAY) if c.random() < 0.5 else None,
        "an item without the attribute is kept, as is meant",
    ),
):
    decoy(called, EXPIRES, {"A16": f"seconds, as a number: {reason}"}, items=tokens(value),
          allowed=ONE)  # fmt: skip
decoy(
    "sessions with a time for people beside that for DynamoDB",
    EXPIRES,
    {"A16": "the attribute of the time to live is in seconds; the other is for display"},
    items=lambda chance, now: (
        row | {"validUntil": iso(row["expires"]), "validUntilMs": row["expires"] * 1_000}
        for row in tokens(lambda c, n: int(n + c.uniform(0.1, 9) * DAY))(chance, now)
    ),
    allowed=ONE,
)
decoy(
    "users who stay, and their sessions which go",
    Schema(sort="sk", ttl="expires"),
    {"A16": "only sessions have an end, all of it to come; a user has none"},
    items=lambda chance, now: (
        row | ({"expires": int(now + chance.uniform(1, 20) * DAY)} if row["sk"] != "META" else {})
        for row in family("USER", "SESSION")(chance, now)
    ),
)
decoy(
    "packets with a `ttl` of hops",
    PK,
    {"A16": "the attribute counts hops, and the table has no time to live"},
    items=flat("PACKET", ttl=lambda c: c.randrange(1, 64)),
    allowed=ONE,
)


# A17: consistent reads

CATALOGUE = family("BRAND", "MODEL", count=90)
for called, ask in (
    ("a catalogue, each read consistent", get(1.0)),
    ("profiles, nine of ten reads consistent", get(0.9)),
    ("a timetable, each query consistent", query(1.0)),
    ("articles by key and by brand, all consistent", each(get(1.0), query(1.0))),
    ("menus, each query of ten consistent", query(1.0, Limit=10)),
    ("price lists, nearly each query consistent", query(0.95)),
    ("museums and their rooms, all consistent", each(query(1.0), get(1.0), get(1.0))),
    ("weather by town, each read consistent", get(0.98)),
):
    plant(called, SK, "A17", items=CATALOGUE, application=asks(ask))
for called, ask, reason in (
    ("a catalogue, no read consistent", get(0.0), "none"),
    ("profiles, one of fifty reads consistent", get(0.02), "one of fifty, where it matters"),
    ("a timetable, no query consistent", query(0.0), "none"),
    ("articles by key and by brand, hardly any consistent", each(get(0.03), query(0.0)), "few"),
    ("menus, no query of ten consistent", query(0.0, Limit=10), "none"),
    ("price lists, one query in forty consistent", query(0.025), "one of forty"),
    ("museums and their rooms, none consistent", each(query(0.0), get(0.0)), "none"),
    ("weather by town, one read in fifty consistent", get(0.02), "one of fifty"),
):
    decoy(
        called, SK, {"A17": f"consistent: {reason}"},
        items=CATALOGUE, application=asks(ask),
    )  # fmt: skip


# A19: too few partition keys


def few(attribute: str, keys: tuple[str, ...], count: int = 2_400) -> Rows:
    def rows(chance: Random, now: float) -> Iterator[Item]:
        for _ in range(count):
            at = now - chance.random() * 200 * DAY
            yield {
                attribute: chance.choice(keys),
                "sk": f"{ulid(at, chance)}",
                "Type": "Event",
                "what": some(chance, 20, 120),
            }

    return rows


ENDLESS = {"A15": "each of so few collections has much and grows"}
for called, attribute, keys in (
    ("everything under EVENTS", "pk", ("EVENTS",)),
    ("sales by region", "region", ("north", "south", "east", "west")),
    ("jobs by priority", "priority", ("high", "normal", "low")),
    ("log lines by environment", "env", ("dev", "staging", "prod")),
    ("members by plan", "plan", ("free", "pro", "team", "enterprise")),
    ("alarms by severity", "severity", ("info", "warning", "error", "fatal")),
    ("blood donations by blood type", "blood", ("0+", "0-", "A+", "A-", "B+", "B-")),
    ("articles and orders, a key for each kind", "pk", ("PRODUCT", "ORDER")),
):
    plant(
        called, Schema(attribute, "sk"), "A19", items=few(attribute, keys), allowed=ONE | ENDLESS,
    )  # fmt: skip


def reference(*groups: tuple[str, int]) -> Rows:
    """A small table that hardly changes."""
    return lambda chance, now: (
        {"pk": pk, "sk": f"{pk}#{uuid(chance)}", "Type": pk.title(), "value": some(chance, 4, 30)}
        for pk, size in groups
        for _ in range(size)
    )


for called, groups in (
    ("settings of an application, five items", (("SETTING", 5),)),
    ("feature flags of a service", (("FLAG", 12),)),
    ("currencies and languages", (("CURRENCY", 20), ("LANGUAGE", 15))),
    ("tax rates of few states", (("RATE", 9), ("STATE", 6))),
):
    decoy(
        called, SK,
        {"A19": "a handful of items, of kilobytes: no key can be too large", "A15": "no growth"},
        items=reference(*groups), allowed=ONE,
    )  # fmt: skip


# E1: numbers in texts, not padded


def steps_of(tag: str, form: Callable[[int, Random], Any], most: int = 140) -> Rows:
    def rows(chance: Random, now: float) -> Iterator[Item]:
        for _ in range(70):
            pk = f"{tag}#{uuid(chance)}"
            for number in range(1, chance.randint(most // 3 + 1, most) + 1):
                yield {"pk": pk, "sk": form(number, chance), "Type": "Step", "by": name(chance)}

    return rows


for called, tag, form in (
    ("revisions r1 to r139", "FILE", lambda n, c: f"r{n}"),
    ("CHAPTER#1 and onwards", "BOOK", lambda n, c: f"CHAPTER#{n}"),
    ("rounds of a game, as they are counted", "GAME", lambda n, c: f"ROUND-{n}"),
    ("seats by their number", "FLIGHT", lambda n, c: f"SEAT#{n}"),
    ("questions q1 to q100", "SURVEY", lambda n, c: f"q{n}"),
    ("stops of a tour, STOP#1 to STOP#120", "TOUR", lambda n, c: f"STOP#{n}"),
    ("attempts of a job", "JOB", lambda n, c: f"ATTEMPT#{n}"),
    ("positions of an invoice", "INVOICE", lambda n, c: f"POS/{n}"),
):
    plant(called, SK, "E1", items=steps_of(tag, form), allowed=ONE)
for called, schema, tag, form, most, reason in (
    ("revisions r0001 and onwards", SK, "FILE", lambda n, c: f"r{n:04}", 140, "padded"),
    ("CHAPTER#001 and onwards", SK, "BOOK", lambda n, c: f"CHAPTER#{n:03}", 140, "padded"),
    ("rounds as numbers", Schema("pk", "sk:N"), "GAME", lambda n, c: n, 140, "of type N"),
    ("the nine holes of a course", SK, "COURSE", lambda n, c: f"HOLE#{n}", 9, "one digit each"),
    ("notes by random UUID", SK, "PAD", lambda n, c: f"NOTE#{uuid(c)}", 30, "no numbers"),
    ("budgets by year", SK, "CITY", lambda n, c: f"YEAR#{1990 + n}", 35, "four digits each"),
    ("towns by their postcode", SK, "AREA", lambda n, c: f"ZIP#{c.randrange(10**4, 10**5)}", 60,
     "five digits each"),
):  # fmt: skip
    decoy(called, schema, {"E1": reason}, items=steps_of(tag, form, most), allowed=ONE)


# E2: constraints without what they belong to


def unique(tag: str, field: str, owner: str, orphaned: float) -> Rows:
    """A value that may be used once is an item of its own; some of the owners are gone."""

    def rows(chance: Random, now: float) -> Iterator[Item]:
        for _ in range(450):
            value, key = f"{ksuid(now, chance)[-12:].lower()}", f"{owner}#{uuid(chance)}"
            yield {
                "pk": f"{tag}#{value}",
                "sk": "UNIQUE",
                "Type": "Unique",
                owner.lower(): key,
            }
            if chance.random() >= orphaned:
                yield {
                    "pk": key, "sk": "PROFILE", "Type": owner.title(), field: value,
                    "name": name(chance),
                }  # fmt: skip

    return rows


for tag, field, owner, share in (
    ("USERNAME", "username", "USER", 0.25),
    ("SLUG", "slug", "POST", 0.3),
    ("PHONE", "phone", "CUSTOMER", 0.2),
    ("DOMAIN", "domain", "TENANT", 0.35),
    ("VIN", "vin", "VEHICLE", 0.3),
    ("TAXID", "taxid", "COMPANY", 0.25),
    ("ISBN", "isbn", "BOOK", 0.4),
    ("SERIAL", "serial", "DEVICE", 0.3),
):
    plant(
        f"a {field} that stays taken when its {owner.lower()} is gone", SK, "E2",
        items=unique(tag, field, owner, share),
    )  # fmt: skip
    decoy(
        f"a {field} that is freed with its {owner.lower()}", SK,
        {"E2": "each is of an owner who is there"},
        items=unique(tag, field, owner, 0.0),
    )  # fmt: skip


# H1: a hot key

SHOP = family("CUSTOMER", "ORDER", "ADDRESS")
for called, pk, kind, units in (
    ("a concert at the minute its sale begins", "CONCERT#stadium", "Read", 171_000),
    ("a product on the front page", "PRODUCT#console", "Read", 168_000),
    ("a configuration that each request reads", "CONFIG#global", "Read", 175_000),
    ("a tenant who imports all his data", "TENANT#acme", "Write", 56_000),
    ("a device that reports in a loop", "DEVICE#broken", "Write", 58_000),
    ("a match that all the world follows", "MATCH#final", "Read", 174_000),
):
    plant(
        called, SK, "H1",
        items=both(SHOP, rows_of({"pk": pk, "sk": "META", "Type": "Head", "name": "x"})),
        traps={"H4": NOT_BY_CAPACITY},
        **hot_key((pk,), units, kind),
    )  # fmt: skip


def contributors(units: dict[str, float], minutes: int = 60) -> tuple[Contributor, ...]:
    return tuple(Contributor("PKC", (pk,), each_, minutes) for pk, each_ in units.items())


for called, units, reason in (
    (
        "customers who buy alike",
        {f"CUSTOMER#{n}": 1_500.0 + n for n in range(60)},
        "sixty keys, none with more than a few hundredths",
    ),
    (
        "a wholesaler who buys more than others",
        {"CUSTOMER#wholesale": 1_900.0} | {f"CUSTOMER#{n}": 800.0 + n for n in range(60)},
        "thirty units a second: a hundredth of what a partition gives",
    ),
    (
        "a quiet shop of which one customer is half",
        {"CUSTOMER#one": 60.0} | {f"CUSTOMER#{n}": 4.0 for n in range(15)},
        "one unit a second is nothing, whatever its share",
    ),
    (
        "a counter in twenty shards, all busy",
        {f"TOTAL#{n:02}": 4_000.0 + n for n in range(20)},
        "twenty shards at a fifteenth of a partition's writes each",
    ),
):
    decoy(
        called, SK, {"H1": reason}, items=SHOP,
        metrics=use(sum(units.values()), 900), insights=contributors(units),
    )  # fmt: skip


# H2: one collection, always at its end


def logged(pk: str, recent: int = 550, older: int = 2_400) -> Rows:
    """A log under one key, of which so many entries are of the last quarter of an hour."""

    def rows(chance: Random, now: float) -> Iterator[Item]:
        for number in range(older + recent):
            ago = 880 * (1 - (number - older) / recent) if number >= older else (
                1_000 + chance.random() * 90 * DAY
            )  # fmt: skip
            yield {
                "pk": pk,
                "sk": f"ENTRY#{iso(now - ago)}#{uuid(chance)[:4]}",
                "Type": "Entry",
                "ms": int((now - ago) * 1_000),
                "note": some(chance, 20, 90),
            }

    return rows


def appended(chance: Random, now: float, items: list[Item]) -> list[Write]:
    """The inserts of what is from the last quarter of an hour, and ordinary writes."""
    recent = [one for one in items if "ms" in one and one["ms"] > (now - 900) * 1_000]
    others = [one for one in items if "ms" not in one]
    made = [Write(max(1.0, now - float(one["ms"]) / 1_000), None, one) for one in recent]
    return in_order([*made, *spread(chance, others, 150, "note")])


for called, pk, is_hot in (
    ("an audit log of the whole company", "AUDIT#all", True),
    ("the trades of an exchange", "TRADES#spot", True),
    ("the comments under a live stream", "STREAM#launch", True),
    ("a journal of all orders", "JOURNAL#orders", True),
    ("the events of a gateway", "GATEWAY#eu", False),
    ("the messages of a channel of all staff", "CHANNEL#staff", False),
    ("the positions of all buses", "BUSES#city", False),
    ("the bids of an auction", "AUCTION#painting", False),
):
    plant(
        called, SK, "H2", "A15", *(("H1",) if is_hot else ()),
        items=both(SHOP, logged(pk)),
        stream=appended,
        allowed={"H7": "the log's shard has most records"}
        | ({} if is_hot else {"H1": "most of the stream, but a write a second"}),
        **(hot_key((pk,), 57_000) if is_hot else {}),
    )  # fmt: skip


def appended_all_over(chance: Random, now: float, items: list[Item]) -> list[Write]:
    return [
        Write(
            868 - n, None, {
                "pk": chance.choice(items)["pk"], "sk": f"MSG#{ulid(now - 868 + n, chance)}",
                "Type": "Message", "note": some(chance, 5, 60),
            },
        )
        for n in range(860)
    ]  # fmt: skip


for called, head in (("messages of many rooms", "ROOM"), ("entries of many journals", "JOURNAL"),
                     ("scans of many parcels", "PARCEL")):  # fmt: skip
    decoy(
        called, SK, {"H2": "each of a hundred collections has its end", "H1": "no key has much"},
        items=family(head, "MSG"), stream=appended_all_over,
    )  # fmt: skip
for called, head in (("tasks of boards, changed here and there", "BOARD"),
                     ("shifts of wards, changed here and there", "WARD"),
                     ("lines of budgets, changed here and there", "BUDGET")):  # fmt: skip
    decoy(
        called, SK, {"H2": "changes anywhere in 110 collections", "H7": "all over the shards"},
        items=family(head, "LINE", each=(3, 9)),
        stream=lambda chance, now, items: in_order(spread(chance, items, 700, "note")),
    )  # fmt: skip


# H3: an index that starves; H4: throttles, and not by the keys


def throttled(kind: str, why: str, number: float = 120, index: str = "") -> tuple[Metric, ...]:
    """Until an hour and a half ago, for a day. kind: Read or Write."""
    return (
        Metric(f"{kind}{why}ThrottleEvents", number, index=index, days=1, since=5_400),
        Metric(f"{kind}ThrottleEvents", number, index=index, days=1, since=5_400),
    )


def provisioned(read: int, write: int) -> dict[str, Any]:
    return {
        "ProvisionedThroughput": {"ReadCapacityUnits": read, "WriteCapacityUnits": write},
        "BillingModeSummary": {"BillingMode": "PROVISIONED"},
    }


BY_OWNER = Schema("pk", indexes=(Index("byOwner", "owner"),))
for called, kind, why, overlay in (
    ("an index with too few units to follow its table", "Write", "ProvisionedThroughput",
     provisioned(300, 300)),
    ("an index whose auto scaling was forgotten", "Write", "ProvisionedThroughput",
     provisioned(100, 500)),
    ("an index that is read beyond its units", "Read", "ProvisionedThroughput",
     provisioned(900, 200)),
    ("a page that lists by an index with fifty units", "Read", "ProvisionedThroughput",
     provisioned(500, 100)),
    ("an index under a maximum of its own", "Write", "MaxOnDemandThroughput", {}),
    ("an index under a maximum of its own reads", "Read", "MaxOnDemandThroughput", {}),
):  # fmt: skip
    plant(
        called, BY_OWNER, "H3 byOwner" if kind == "Write" else "H4",
        items=leads("owner"),
        metrics=(
            *use(3_000, 2_000), *index_use("byOwner", 2_500, 1_500),
            *throttled(kind, why, index="byOwner"),
        ),
        overlay=overlay,
        allowed=ONE | {"H4": "capacity is short, though it is that of the index"},
    )  # fmt: skip
for called, index, attribute, most in (
    ("an index of states whose one key is throttled", "byState", "state", "DONE"),
    ("an index of kinds whose one key is throttled", "byKind", "kind", "view"),
):
    plant(
        called, Schema("pk", indexes=(Index(index, attribute, "at"),)),
        f"H3 {index}", f"A9 {index}",
        items=skewed(attribute, most, 0.95, ("a", "b")),
        metrics=(
            *use(9_000, 60_000), *index_use(index, 5_000, 57_000),
            *throttled("Write", "KeyRangeThroughput", index=index),
        ),
        allowed=ONE | {"H1": "a key of the index is hot", "H4": "the index is throttled",
                       "A19": "few keys of the index"},
    )  # fmt: skip

OWN_MAXIMUM = {"OnDemandThroughput": {"MaxReadRequestUnits": 100, "MaxWriteRequestUnits": 40}}
FINE = "the table is throttled, not the index"
SPENT = {
    ("Write", "ProvisionedThroughput"): (3_000, 1_190),
    ("Read", "ProvisionedThroughput"): (2_990, 2_400),
    ("Write", "MaxOnDemandThroughput"): (3_000, 2_390),
    ("Read", "MaxOnDemandThroughput"): (5_980, 1_500),
    ("Write", "AccountLimit"): (90_000, 2_390_000),
    ("Read", "AccountLimit"): (2_390_000, 90_000),
}
"""Reads and writes a minute where so much is all that is to be had."""
for called, schema, kind, why, overlay in (
    ("twenty units for a table that needs forty", PK, "Write", "ProvisionedThroughput",
     provisioned(90, 20)),
    ("fifty units for reports that need more", PK, "Read", "ProvisionedThroughput",
     provisioned(50, 90)),
    ("a table short of units, its index not", BY_OWNER, "Write", "ProvisionedThroughput",
     provisioned(90, 20)),
    ("a table short of read units, its index not", BY_OWNER, "Read", "ProvisionedThroughput",
     provisioned(50, 90)),
    ("a maximum of writes that is too low", BY_OWNER, "Write", "MaxOnDemandThroughput",
     OWN_MAXIMUM),
    ("a maximum of reads that is too low", BY_OWNER, "Read", "MaxOnDemandThroughput",
     OWN_MAXIMUM),
    ("writes beyond what the account may", PK, "Write", "AccountLimit", {}),
    ("reads beyond what the account may", PK, "Read", "AccountLimit", {}),
):  # fmt: skip
    plant(
        called, schema, "H4",
        items=leads("owner"),
        metrics=(
            *use(*SPENT[kind, why]), *throttled(kind, why),
            *(index_use("byOwner", 1_200, 900) if schema is BY_OWNER else ()),
        ),
        overlay=overlay,
        allowed=ONE,
        traps={"H1": "capacity is short for all keys alike"}
        | ({"H3 byOwner": FINE} if schema is BY_OWNER else {}),
    )  # fmt: skip
for called, metrics, reason in (
    (
        "conditions that often fail, and an index",
        (Metric("ConditionalCheckFailedRequests", 400),),
        "a failed condition is no throttle",
    ),
    (
        "requests with mistakes, and an index",
        (Metric("UserErrors", 50), Metric("SystemErrors", 1)),
        "errors, none of them a throttle",
    ),
    (
        "transactions that meet, and an index",
        (Metric("TransactionConflict", 90),),
        "a conflict of transactions is no throttle",
    ),
    ("a busy index that keeps up", (*use(90_000, 9_000),), "busy, and never throttled"),
):
    decoy(
        called, BY_OWNER, {"H3 byOwner": reason, "H4": reason},
        items=leads("owner"),
        metrics=(*use(3_000, 2_000)[:2], *index_use("byOwner", 2_500, 1_500), *metrics)
        if "busy" not in called
        else (*metrics, *index_use("byOwner", 60_000, 9_000)),
        allowed=ONE,
    )  # fmt: skip


# H5: cold


def warm(read: int, write: int) -> dict[str, Any]:
    return {
        "WarmThroughput": {
            "ReadUnitsPerSecond": read, "WriteUnitsPerSecond": write, "Status": "ACTIVE",
        }
    }  # fmt: skip


for called, have, peak in (
    ("a ticket shop before a tour of stadiums", 4_000, 60_000),
    ("a new table before its first import", 4_000, 40_000),
    ("a shop before Black Friday", 6_000, 30_000),
    ("votes before the final", 4_000, 100_000),
    ("a game before its launch", 4_000, 25_000),
    ("meters before the day they all report at noon", 5_000, 50_000),
    ("tax returns before the last day", 4_000, 16_000),
    ("a table of notifications before a campaign", 8_000, 80_000),
):
    plant(
        called, SK, "H5", items=SHOP, overlay=warm(12_000, have), options={"peak_writes": peak},
    )  # fmt: skip
for called, have, peak in (
    ("a ticket shop, warmed for the tour", 80_000, 60_000),
    ("a table warmed for its import", 50_000, 40_000),
    ("a shop warmed for Black Friday", 40_000, 30_000),
    ("votes, warmed for the final", 150_000, 100_000),
    ("a game that has had such days before", 60_000, 25_000),
    ("meters that report a little at a time", 4_000, 400),
    ("tax returns on an ordinary day", 4_000, 900),
    ("notifications of a small town", 4_000, 50),
):
    decoy(
        called, SK, {"H5": f"{have:,} a second are warm, {peak:,} are expected"},
        items=SHOP, overlay=warm(40_000, have), options={"peak_writes": peak},
    )  # fmt: skip


# H6: a load in hash order; H7: heat of a partition


def loaded(order: Callable[[Random, list[Item]], list[Item]]) -> Writes:
    def writes(chance: Random, now: float, items: list[Item]) -> list[Write]:
        rows = order(chance, items)[:620]
        return [Write(884 - 1.4 * n, None, row) for n, row in enumerate(rows)]

    return writes


for called, tag, order in (
    ("a copy of accounts by a scan", "ACCOUNT", lambda c, i: i),
    ("a copy of sensors by a scan that skips each third", "SENSOR",
     lambda c, i: [one for n, one in enumerate(i) if n % 3]),
    ("a restore from an export, file after file", "BACKUP", lambda c, i: i[40:]),
    ("a migration of members as a scan lists them", "MEMBER", lambda c, i: i[::-1]),
    ("a new region filled by a scan of the old", "REGION", lambda c, i: i[:-60]),
    ("a copy of songs with a few left out", "SONG",
     lambda c, i: [one for one in i if c.random() < 0.9]),
    ("a table copied by one worker", "PART", lambda c, i: i[10:]),
    ("trips moved by a scan, the last page first", "TRIP", lambda c, i: i[-30::-1]),
):  # fmt: skip
    plant(
        called, PK, "H6", items=flat(tag), stream=loaded(order),
        allowed=ONE | {"H7": "one part of the table after the other"},
    )  # fmt: skip
for called, tag, order, reason in (
    ("a load that was shuffled", "ACCOUNT", lambda c, i: c.sample(i, len(i)), "at random"),
    ("members loaded by the alphabet of their keys", "MEMBER",
     lambda c, i: sorted(i, key=lambda one: str(one["pk"])), "keys in order are hashes at random"),
    ("members loaded from Z to A", "MEMBER",
     lambda c, i: sorted(i, key=lambda one: str(one["pk"]), reverse=True), "hashes at random"),
    ("books loaded by title", "BOOK",
     lambda c, i: sorted(i, key=lambda one: str(one["title"])), "a title says nothing of a hash"),
    ("films loaded by the length of their titles", "FILM",
     lambda c, i: sorted(i, key=lambda one: (len(one["title"]), str(one["pk"])[-6:])),
     "a length says nothing of a hash"),
    ("orders loaded by the end of their keys", "ORDER",
     lambda c, i: sorted(i, key=lambda one: str(one["pk"])[::-1]), "hashes at random"),
):  # fmt: skip
    decoy(
        called, PK, {"H6": reason, "H7": "all partitions at once"},
        items=flat(tag), stream=loaded(order), allowed=ONE,
    )  # fmt: skip
for called, tag in (("users who sign up as they come", "USER"), ("jobs as they come", "JOB")):
    decoy(
        called, PK, {"H6": "as people come, at random", "H7": "all partitions at once"},
        items=flat(tag),
        stream=lambda chance, now, items: loaded(lambda c, i: c.sample(i, 600))(chance, now, items),
        allowed=ONE,
    )  # fmt: skip


def warmer(shard: int, share: float, count: int = 800) -> Writes:
    """So large a share of the writes goes to the keys of one shard, to each of them a little."""

    def writes(chance: Random, now: float, items: list[Item]) -> list[Write]:
        inside = [one for one in items if shard_of(one["pk"]) == shard]
        outside = [one for one in items if shard_of(one["pk"]) != shard]
        made = spread(chance, inside, int(count * share))
        return in_order([*made, *spread(chance, outside, count - int(count * share))])

    return writes


for number, (called, tag, share) in enumerate((
    ("tenants who are neighbours by hash, all busy", "TENANT", 0.9),
    ("sensors of one partition that all report", "SENSOR", 0.85),
    ("shops of one partition before Christmas", "SHOP", 0.92),
    ("games that ended up in one partition", "GAME", 0.88),
    ("buses of one partition at rush hour", "BUS", 0.95),
    ("accounts of one partition on pay day", "ACCOUNT", 0.9),
    ("turbines of one partition in a storm", "TURBINE", 0.87),
    ("wards of one partition in a night", "WARD", 0.93),
)):  # fmt: skip
    plant(called, PK, "H7", items=flat(tag), stream=warmer(number % 6, share), allowed=ONE)


# I3: what indexes cost

for called, table, costs, reads in (
    ("a state that changes all the time, in one index", 5_000, (11_500,), 300),
    ("two indexes with all attributes, changed at each write", 6_000, (9_000, 8_500), 200),
    ("three indexes that are all rewritten", 4_000, (7_000, 7_500, 6_500), 250),
    ("a last-seen time as the key of an index", 9_000, (19_500,), 100),
    ("positions of vehicles by cell and by driver", 8_000, (15_000, 9_500), 400),
    ("prices by time and by sum, both rewritten", 3_000, (6_000, 5_800), 90),
    ("a queue whose index changes with each step", 7_000, (16_000,), 500),
    ("scores by rank and by week", 5_500, (10_800, 10_100), 300),
):
    names = ("owner", "city", "team")[: len(costs)]
    plant(
        called,
        Schema("pk", indexes=tuple(Index(f"by-{one}", one) for one in names)),
        "I3",
        items=leads(*names),
        metrics=(
            *use(2_000, table),
            *(
                metric
                for one, cost in zip(names, costs, strict=True)
                for metric in index_use(f"by-{one}", reads, cost)
            ),
        ),
        allowed=ONE,
    )
for called, table, cost, reads, reason in (
    (
        "an index whose key is hardly ever written again",
        6_000,
        60,
        400,
        "a hundredth of the writes change its key",
    ),
    ("an index of a key that never changes", 6_000, 1_500, 9_000, "a quarter, and read six times"),
    ("an index that is mostly read", 5_000, 2_000, 90_000, "reads are what it is for"),
    ("an index with keys only", 8_000, 2_400, 7_000, "less than a third of the writes"),
    ("an index of owners who stay", 9_000, 900, 5_000, "a tenth of the writes reach it"),
    ("an index of towns, read by all pages", 4_000, 1_200, 60_000, "read fifty times as much"),
    ("an index of open claims", 7_000, 700, 3_000, "a tenth of the writes reach it"),
    ("an index of mail addresses", 3_000, 150, 8_000, "addresses hardly change"),
):
    decoy(
        called, BY_OWNER, {"I3": reason, "A7": "one index, and it is read"},
        items=leads("owner"),
        metrics=(*use(6_000, table), *index_use("byOwner", reads, cost)), allowed=ONE,
    )  # fmt: skip


# As one would want them

for called, items in (
    ("clean: a session store of two kinds", family("USER", "SESSION")),
    ("clean: a forum by ElectroDB's names of types", family("THREAD", "REPLY", tag="__edb_e__")),
    ("clean: trips and their legs", family("TRIP", "LEG", "TICKET")),
    ("clean: a clinic by patients", family("PATIENT", "VISIT", "RESULT", tag="_type")),
    ("clean: repositories, issues and stars", family("REPO", "ISSUE", "STAR", tag="entity")),
    ("clean: wallets and their movements", family("WALLET", "MOVE", each=(3, 12))),
):
    clean(called, SK, items=items, metrics=use(4_000, 900, Query=2_500))
for called, items in (
    ("clean: plants, panels and their yields", family("PLANT", "PANEL", "YIELD")),
    ("clean: playlists and songs", family("LIST", "SONG", each=(4, 14))),
    ("clean: depots, routes and parcels", family("DEPOT", "ROUTE", "PARCEL")),
    ("clean: players and what they carry", family("PLAYER", "ITEM", "QUEST")),
):
    clean(
        called, SK, items=items,
        stream=lambda chance, now, items: in_order(spread(chance, items, 600, "note")),
        application=asks(each(get(0.02), query())),
    )  # fmt: skip


# As published: the schemas of public examples, filled


def state_log(chance: Random, now: float) -> Iterator[Item]:
    """AWS's design patterns: a sparse index of what was escalated."""
    for _ in range(120):
        device = f"d#{uuid(chance)}"
        for _ in range(chance.randint(3, 12)):
            at = now - chance.random() * 200 * DAY
            state = chance.choice(["NORMAL", "WARNING1", "WARNING2", "WARNING4"])
            row = {
                "DeviceID": device,
                "State#Date": f"{state}#{iso(at)}",
                "Date": iso(at),
                "Operator": f"{name(chance)} {chance.randrange(9)}",
            }
            yield row | ({"EscalatedTo": name(chance)} if chance.random() < 0.06 else {})


decoy(
    "AWS: a log of devices' states",
    Schema(
        "DeviceID",
        "State#Date",
        indexes=(
            Index("GSI1", "Operator", "Date"),
            Index("GSI2", "EscalatedTo", "State#Date"),
        ),
    ),
    {
        "A9 GSI1": "hundreds of operators",
        "A9 GSI2": "sparse: what was escalated, by many supervisors",
        "A7": "two indexes of two keys",
    },
    items=state_log,
    allowed=ONE | {"A18": "one kind of item only"},
)


def online_shop(chance: Random, now: float) -> Iterator[Item]:
    """AWS's design patterns: PK and SK alike for what stands alone, and two overloaded indexes."""
    customers = [f"c#{uuid(chance)}" for _ in range(90)]
    products = [f"p#{uuid(chance)}" for _ in range(120)]
    stores = [f"w#{uuid(chance)}" for _ in range(12)]
    for kind, keys in (("customer", customers), ("product", products), ("warehouse", stores)):
        for key in keys:
            yield {"PK": key, "SK": key, "EntityType": kind, "Name": name(chance)}
    for _ in range(160):
        order, buyer = f"o#{uuid(chance)}", chance.choice(customers)
        at = iso(now - chance.random() * 200 * DAY)
        invoice, parcel = f"i#{uuid(chance)}", f"sh#{uuid(chance)}"
        yield {"PK": order, "SK": buyer, "EntityType": "order", "Date": at}
        for product in chance.sample(products, chance.randint(1, 4)):
            yield {
                "PK": order, "SK": product, "EntityType": "orderItem", "Quantity": 1,
                "GSI1-PK": product, "GSI1-SK": at, "GSI2-PK": buyer, "GSI2-SK": f"p#{at}",
            }  # fmt: skip
        yield {
            "PK": order, "SK": invoice, "EntityType": "invoice", "Amount": chance.randrange(9_000),
            "GSI1-PK": invoice, "GSI1-SK": invoice, "GSI2-PK": buyer, "GSI2-SK": f"i#{at}",
        }  # fmt: skip
        yield {
            "PK": order, "SK": parcel, "EntityType": "shipment", "Address": name(chance),
            "GSI1-PK": parcel, "GSI1-SK": parcel,
            "GSI2-PK": chance.choice(stores), "GSI2-SK": parcel,
        }  # fmt: skip


decoy(
    "AWS: a shop in one table",
    Schema(
        "PK",
        "SK",
        indexes=(Index("GSI1", "GSI1-PK", "GSI1-SK"), Index("GSI2", "GSI2-PK", "GSI2-SK")),
    ),
    {
        "A2": "c#, p#, w#, o#, i# and sh# are tags",
        "A18": "EntityType names the type",
        "A7": "two overloaded indexes answer nine questions",
        "A9 GSI2": "customers and warehouses, none with much",
    },
    items=online_shop,
)


def one_table(chance: Random, now: float) -> Iterator[Item]:
    """OneTable's overview, whose gs1 has a key for each type: `invoice#` has nearly all."""
    for _ in range(60):
        account = ulid(now - chance.random() * 300 * DAY, chance)
        yield {
            "pk": f"account#{account}", "sk": "account#", "_type": "Account", "name": name(chance),
            "gs1pk": "account#", "gs1sk": f"account#{account}",
        }  # fmt: skip
        for number in range(20):
            at = now - chance.random() * 300 * DAY
            invoice = ulid(at, chance)
            yield {
                "pk": f"account#{account}", "sk": f"invoice#{invoice}", "_type": "Invoice",
                "count": number, "gs1pk": "invoice#", "gs1sk": f"invoice#{iso(at)}#{invoice}",
            }  # fmt: skip


plant(
    "OneTable: all invoices under `invoice#` of gs1",
    Schema(sort="sk", indexes=(Index("gs1", "gs1pk", "gs1sk"),)),
    "A9 gs1",
    items=one_table,
    allowed={"A19": "an index with a key for each type", "A15": "of the index"},
)


def task_manager(chance: Random, now: float) -> Iterator[Item]:
    """ElectroDB's task manager, whose fourth index is by status."""
    people, projects = ([uuid(chance)[:8] for _ in range(n)] for n in (80, 50))
    for _ in range(900):
        who, project = chance.choice(people), chance.choice(projects)
        status = "closed" if chance.random() < 0.93 else chance.choice(["open", "in-progress"])
        head = "$task-manager"
        yield {
            "pk": f"{head}#taskname_{uuid(chance)}",
            "sk": f"$task_1#project_{project}#employee_{who}",
            "gsi1pk": f"{head}#project_{project}",
            "gsi1sk": f"$task_1#employee_{who}#status_{status}",
            "gsi3pk": f"{head}#employee_{who}",
            "gsi3sk": f"$assignments#task_1#project_{project}#status_{status}",
            "gsi4pk": f"{head}#status_{status}",
            "gsi4sk": f"$task_1#project_{project}#employee_{who}",
            "__edb_e__": "task",
            "__edb_v__": "1",
            "status": status,
        }


plant(
    "ElectroDB: tasks by their status, nearly all closed",
    Schema(
        sort="sk",
        indexes=tuple(
            Index(f"gsi{n}pk-gsi{n}sk-index", f"gsi{n}pk", f"gsi{n}sk") for n in (1, 3, 4)
        ),
    ),
    "A9 gsi4pk-gsi4sk-index",
    items=task_manager,
    allowed=ONE | {"A19": "three keys of that index", "A15": "of the index"},
)


def equipment(chance: Random, now: float) -> Iterator[Item]:
    """AWS's version control by numbers: Equipment#1, and v0 to v40."""
    for number in range(1, 90):
        latest = chance.randint(12, 40)
        for version in range(latest + 1):
            yield {
                "PK": f"Equipment#{number}", "SK": f"v{version}", "Type": "Version",
                "State": chance.choice(["OK", "WARNING1"]), "Latest": latest,
            }  # fmt: skip


plant("AWS: versions of a factory's equipment", Schema("PK", "SK"), "A1", "E1", items=equipment,
      allowed=ONE)  # fmt: skip


def players(chance: Random, now: float) -> Iterator[Item]:
    """AWS's gaming profile: player001 and his friends and items."""
    for number in range(1, 400):
        player = f"player{number:03}"
        yield {"PK": player, "SK": f"#METADATA#{player}", "Type": "Player", "nick": name(chance)}
        for other in chance.sample(range(1, 400), 2):
            yield {"PK": player, "SK": f"FRIENDS#player{other:03}", "Type": "Friend", "since": 1}
        yield {"PK": player, "SK": f"ITEMS#{uuid(chance)}", "Type": "Item", "weight": 3}


plant("AWS: profiles of players, player001 and onwards", Schema("PK", "SK"), "A1", items=players,
      allowed={"A2": "the partition key has one word for all"})  # fmt: skip


def employees(chance: Random, now: float) -> Iterator[Item]:
    aliases = [f"{name(chance).split()[0].lower()}{uuid(chance)[:6]}x" for _ in range(500)]
    for alias in aliases:
        yield {
            "LoginAlias": alias, "Type": "Employee", "FirstName": name(chance) + alias[-4:],
            "ManagerLoginAlias": chance.choice(aliases[:60]), "Skills": ["sql", "go"],
        }  # fmt: skip


decoy(
    "NoSQL Workbench: employees and their managers",
    Schema(
        "LoginAlias",
        indexes=(Index("Name", "FirstName"), Index("DirectReports", "ManagerLoginAlias")),
    ),
    {"A9 DirectReports": "sixty managers of like teams", "A7": "two questions, two indexes"},
    items=employees,
    allowed=ONE,
)


def forum_replies(chance: Random, now: float) -> Iterator[Item]:
    people = [f"{uuid(chance)[:8]}@example.org" for _ in range(120)]
    for _ in range(150):
        thread = f"DynamoDB#{some(chance, 12, 30)}{uuid(chance)[:6]}"
        for _ in range(chance.randint(1, 9)):
            yield {
                "Id": thread, "ReplyDateTime": iso(now - chance.random() * 300 * DAY),
                "Type": "Reply", "PostedBy": chance.choice(people), "Message": some(chance, 9, 80),
            }  # fmt: skip


decoy(
    "NoSQL Workbench: replies of a discussion forum",
    Schema(
        "Id", "ReplyDateTime", indexes=(Index("PostedBy-Message-Index", "PostedBy", "Message"),)
    ),
    {
        "A3": "only the sort key is a time",
        "A9 PostedBy-Message-Index": "120 people",
        "A15": "a thread has a few replies",
    },
    items=forum_replies,
    allowed=ONE,
)
