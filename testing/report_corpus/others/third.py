"""More tables, planted by the meaning of the rules and not by how they are decided.

COUNTS
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
    """Of a table, in an ordinary minute."""
    told = {"GetItem": read, "PutItem": write} | operations
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
    return {
        "app.py": f"import boto3\nfrom boto3.dynamodb.conditions import Attr, Key\n\n{made}\n\n\n{body}"
    }


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
        metrics=(*use(90_000, 200)[:2], *use(gets, 100, Scan=scans)[2:]),
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
        called, SK, {"A4": reason, "A5": "no filter"}, items=NOTES, application=asks(ask),
    )  # fmt: skip
for called, metric, reason in (
    (
        "a backup by scan in the night",
        Metric("SuccessfulRequestLatency", 3, operation="Scan", busy=(120, 135), days=30),
        "a job of fifteen minutes a night, of a few pages",
    ),
    (
        "an export by scan a week",
        Metric("SuccessfulRequestLatency", 4, operation="Scan", busy=(60, 70), every_days=7, days=30),
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
    decoy(called, SK, {"A4": reason, "A5": "a key, not a filter"}, items=NOTES,
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
        query(ProjectionExpression="pk, sk, bucket"),
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
        items=replies(tag, 8, 26), allowed=ONE,
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
    plant(
        called, Schema("pk", indexes=indexes), "A7", items=leads("owner", "city"), allowed=ONE
    )
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
        metrics=(*use(6_000, 1_000), *metrics), allowed=ONE,
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
            "I3": "next to nothing is written to it",
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
    operation = "GetItem" if kind == "Read" else "UpdateItem"
    metrics = [
        Metric("ConsumedReadCapacityUnits", read),
        Metric("ConsumedWriteCapacityUnits", write),
        Metric("SuccessfulRequestLatency", units * 1.3, operation=operation),
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
    ("stocks of a warehouse, sold all over", "SKU", "left", "sales go to 700 articles"),
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
        allowed=ONE | {f"A19 {index}": "few keys of the index", "A15": "of the index"},
    )  # fmt: skip
decoy(
    "open orders in a hundred shards of an index",
    Schema("pk", indexes=(Index("open", "openShard", "at"),)),
    {"A9 open": "a hundred shards, all alike", "A1": "no key of the table is counted"},
    items=skewed("openShard", "", 0.0, tuple(f"OPEN#{n:02}" for n in range(100))),
    allowed=ONE,
)


# A10: what was just written, read from an index


def after(
    way: str, index: str = "byOwner", attribute: str = "owner", tag: str = "ORDER"
) -> Any:
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
        allowed=ONE,
    )
