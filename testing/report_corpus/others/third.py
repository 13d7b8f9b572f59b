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
