"""A1, A2, A3, A18 and the texts in keys: tables by the form of their keys."""

from random import Random

from testing.report_corpus.case import DAY, Metric, Schema, Write, case, table
from testing.report_corpus.tables.clean import ONE_ENTITY
from testing.report_corpus.words import CITIES, day, iso, moment, name, some, ulid, uuid

DENSE = {"A1": "the numbers are dense, whoever gave them out; low"}

# A1: sequential ids


@table("invoices numbered from 1", "planted", Schema("invoice"), found=["A1"])
def invoices(chance: Random, now: float, count: int = 1_500):
    for number in range(1, count + 1):
        yield {"invoice": f"INV-{number:07}", "cents": chance.randint(1, 10**6), "to": name(chance)}


case(
    "invoices of three years",
    "planted",
    Schema("id:N"),
    items=lambda chance, now: (
        {"id": 200_000 + number, "cents": chance.randint(1, 999), "paid": chance.random() < 0.5}
        for number in range(3_000)
    ),
    found=["A1"],
    allowed=ONE_ENTITY,
)


@table("tickets, a third of them deleted", "planted", Schema(sort="sk"), found=["A1"])
def tickets(chance: Random, now: float):
    for number in range(10_000, 13_000):
        if chance.random() < 0.65:
            yield {
                "pk": f"TICKET#{number}",
                "sk": "HEAD",
                "Type": "Ticket",
                "t": some(chance, 9, 60),
            }
            for comment in range(chance.randint(0, 3)):
                yield {
                    "pk": f"TICKET#{number}",
                    "sk": f"COMMENT#{comment:04}",
                    "Type": "Comment",
                    "t": some(chance, 9, 200),
                }


def numbered_writes(chance: Random, now: float, items):
    for number in range(600):
        ago = 890 - number * 1.4
        yield Write(ago, None, {"id": 5_000_000 + number * 7, "w": uuid(chance)})


case(
    "a sequence in steps of seven",
    "planted",
    Schema("id:N"),
    items=lambda chance, now: ({"id": 4_000_000 + n * 7, "w": uuid(chance)} for n in range(1_000)),
    stream=numbered_writes,
    found=["A1"],
    allowed=ONE_ENTITY,
)


def random_stops(chance: Random, now: float, items):
    numbers = list(range(1, 400))
    chance.shuffle(numbers)
    for at, number in enumerate(numbers):
        yield Write(880 - 2 * at, None, {"stop": f"{9_000 + number}", "c": "x"})


case(
    "bus stops, numbered by others",
    "decoy",
    Schema("stop"),
    items=lambda chance, now: (
        {"stop": f"{number}", "city": chance.choice(CITIES), "roof": chance.random() < 0.4}
        for number in range(1_000, 3_000)
        if chance.random() < 0.9
    ),
    stream=random_stops,
    allowed=ONE_ENTITY | DENSE,
)
case(
    "order numbers drawn at random",
    "decoy",
    Schema("order"),
    items=lambda chance, now: (
        {"order": f"O-{chance.randrange(10**8):08}", "cents": chance.randint(1, 999)}
        for _ in range(2_000)
    ),
    allowed=ONE_ENTITY,
    traps={"A1": "eight random digits: 2,000 of 100,000,000", "A3": "eight digits are no date"},
)
case(
    "random hexadecimal keys that often end in digits",
    "decoy",
    Schema("id"),
    items=lambda chance, now: (
        {"id": f"{chance.getrandbits(64):016x}", "v": some(chance, 20, 200)} for _ in range(2_000)
    ),
    allowed=ONE_ENTITY,
    traps={"A1": "a random text's last digits are 0 to 99 and dense by chance"},
)

case(
    "keys with a shard's number behind a hash sign",
    "decoy",
    Schema(sort="sk"),
    items=lambda chance, now: (
        {"pk": f"POLL#{poll}#{shard}", "sk": "VOTES", "Type": "Votes", "n": chance.randrange(900)}
        for poll in [uuid(chance) for _ in range(150)]
        for shard in range(10)
    ),
    allowed=ONE_ENTITY,
    traps={"A1": "ten numbers for all polls", "A15": "one item each"},
)
case(
    "rooms of hotels",
    "decoy",
    Schema("room"),
    items=lambda chance, now: (
        {"room": f"HOTEL#{hotel}#ROOM#{floor}{door:02}", "Type": "Room", "beds": 2}
        for hotel in [uuid(chance)[:8] for _ in range(25)]
        for floor in range(1, 6)
        for door in range(1, 13)
    ),
    allowed=ONE_ENTITY,
    traps={"A1": "each hotel has its 101"},
)
case(
    "telephone numbers",
    "decoy",
    Schema("phone"),
    items=lambda chance, now: (
        {"phone": f"+4930{chance.randrange(10**7):07}", "n": name(chance)} for _ in range(1_500)
    ),
    allowed=ONE_ENTITY,
    traps={"A1": "1,500 of ten million"},
)
case(
    "orders of a year and a number",
    "planted",
    Schema("pk"),
    items=lambda chance, now: (
        {"pk": f"ORDER-2026-{number:05}", "cents": chance.randint(1, 99_999), "to": name(chance)}
        for number in range(1, 2_200)
    ),
    found=["A1"],
    allowed=ONE_ENTITY,
)

# A2: no type tag; A18: no attribute that names it


@table("customers and orders, all by plain ids", "planted", Schema(sort="sk"), found=["A2", "A18"])
def mixed(chance: Random, now: float):
    """Yield customers, orders and payments under plain ids, without an attribute for the kind."""
    for _ in range(300):
        pk = uuid(chance)
        yield {"pk": pk, "sk": pk, "name": name(chance), "email": f"{pk[:8]}@example.org"}
        for _ in range(chance.randint(1, 5)):
            at = now - chance.random() * 300 * DAY
            yield {
                "pk": pk,
                "sk": ulid(at, chance),
                "cents": chance.randint(1, 10**6),
                "status": chance.choice(["open", "paid"]),
            }


@table("players and matches, without a sort key", "planted", Schema("id"), found=["A2", "A18"])
def players(chance: Random, now: float):
    for _ in range(900):
        yield {"id": uuid(chance), "nick": some(chance, 4, 12), "rank": chance.randint(1, 5_000)}
        if chance.random() < 0.8:
            yield {
                "id": uuid(chance),
                "map": chance.choice(CITIES),
                "winner": uuid(chance),
                "rounds": [chance.randint(0, 9) for _ in range(6)],
            }


@table("patients and visits by numbers", "planted", Schema("p:N", "s:N"), found=["A2", "A18"])
def hospital(chance: Random, now: float):
    for _ in range(500):
        patient = chance.getrandbits(60)
        yield {"p": patient, "s": 0, "born": day(now - chance.random() * 30_000 * DAY)}
        for visit in range(chance.randint(1, 3)):
            yield {
                "p": patient,
                "s": 1 + visit,
                "ward": chance.randint(1, 9),
                "note": some(chance, 9, 90),
            }


@table(
    "one kind of item with many optional attributes",
    "decoy",
    Schema("id"),
    allowed=ONE_ENTITY,
    traps={"A2": "64 sets of names, and yet one kind of item"},
)
def optional(chance: Random, now: float):
    for _ in range(1_500):
        row = {"id": uuid(chance), "name": name(chance), "since": day(now - 9 * DAY)}
        for extra in ("phone", "fax", "street", "vat", "title", "note"):
            if chance.random() < 0.5:
                row[extra] = some(chance, 4, 20)
        yield row


def colons(separator: str):
    def rows(chance: Random, now: float):
        for _ in range(300):
            user = uuid(chance)
            yield {
                "pk": f"user{separator}{user}",
                "sk": "profile",
                "_type": "user",
                "n": name(chance),
            }
            for _ in range(chance.randint(1, 4)):
                badge = uuid(chance)
                yield {
                    "pk": f"user{separator}{user}",
                    "sk": f"badge{separator}{badge}",
                    "_type": "badge",
                    "won": day(now - chance.random() * 99 * DAY),
                }

    return rows


for sign, called in ((":", "colons"), ("/", "slashes"), ("|", "bars"), ("_", "underscores")):
    case(
        f"tags with {called}, in small letters",
        "decoy" if sign in ":/" else "clean",
        Schema(sort="sk"),
        items=colons(sign),
        traps={"A2": "tagged, with another separator", "A18": "`_type` names the type"},
    )


@table("accounts without a type", "planted", Schema(sort="sk"), found=["A18"])
def untyped(chance: Random, now: float, share: float = 0.0):
    for _ in range(250):
        pk = f"ACCOUNT#{uuid(chance)}"
        for kind, sk in (
            ("Account", "ACCOUNT"),
            ("Card", f"CARD#{chance.getrandbits(40):x}"),
            ("Limit", f"LIMIT#{chance.choice(CITIES)}"),
        ):
            row = {"pk": pk, "sk": sk, "changed": iso(now - chance.random() * 9 * DAY)}
            yield row | ({"Type": kind} if chance.random() < share else {})


case(
    "accounts, three quarters with a type",
    "planted",
    Schema(sort="sk"),
    items=lambda chance, now: untyped(chance, now, 0.75),
    found=["A18"],
)
case(
    "clubs and members, told apart in the partition key alone",
    "planted",
    Schema("key"),
    items=lambda chance, now: (
        {"key": f"{kind}#{uuid(chance)}", "label": some(chance, 4, 30)}
        for _ in range(700)
        for kind in ("CLUB", "MEMBER", "VENUE")
    ),
    found=["A18"],
)
case(
    "accounts, the type called entityType",
    "decoy",
    Schema(sort="sk"),
    items=lambda chance, now: (
        {("entityType" if k == "Type" else k): v for k, v in row.items()}
        for row in untyped(chance, now, 1.0)
    ),
    traps={"A18": "the type is there under another name"},
)

# A3: the key is the date


def by_date(template: str, days: int = 60, each: int = 30):
    def rows(chance: Random, now: float):
        for back in range(days):
            for _ in range(each):
                at = now - (back + chance.random()) * DAY
                yield {
                    "pk": moment(at).strftime(template),
                    "sk": f"{iso(at)}#{uuid(chance)[:8]}",
                    "path": some(chance, 10, 60),
                    "ms": chance.randint(1, 900),
                }

    return rows


def todays(template: str):
    def writes(chance: Random, now: float, items):
        for number in range(500):
            ago = 850 - number
            new = {
                "pk": moment(now - ago).strftime(template),
                "sk": f"{iso(now - ago)}#{number}",
                "ms": 5,
            }
            yield Write(ago, None, new)

    return writes


for template, called in (
    ("%Y-%m-%d", "log lines by day"),
    ("%Y%m%d", "log lines by day, without hyphens"),
    ("%Y/%m/%d", "log lines by day, with slashes"),
    ("%Y-%m-%dT%H", "log lines by hour"),
    ("LOG#%Y-%m-%d", "log lines by a tag and the day"),
):
    case(
        called,
        "planted",
        Schema(sort="sk"),
        items=by_date(template),
        found=["A3"],
        allowed=ONE_ENTITY,
        traps={"A1": "the days of a month are no sequence of ids"},
    )
case(
    "metrics by month",
    "planted",
    Schema(sort="sk"),
    items=by_date("%Y-%m", 700, 3),
    found=["A3"],
    allowed=ONE_ENTITY,
)
case(
    "log lines by day, seen in the stream",
    "planted",
    Schema(sort="sk"),
    items=by_date("%Y-%m-%d"),
    stream=todays("%Y-%m-%d"),
    found=["A3", "H2"],
    allowed=ONE_ENTITY | {"H7": "all is written to one shard"},
)
case(
    "an archive by day, to which nobody writes",
    "decoy",
    Schema(sort="sk"),
    items=lambda chance, now: by_date("%Y-%m-%d", 90, 20)(chance, now - 400 * DAY),
    stream=lambda chance, now, items: (),
    metrics=(Metric("ConsumedReadCapacityUnits", 30),),
    allowed=ONE_ENTITY | {"A3": "an archive: the day is what one asks for; low"},
    traps={},
)
case(
    "events by day and one of 16 shards",
    "decoy",
    Schema(sort="sk"),
    items=lambda chance, now: (
        row | {"pk": f"{row['pk']}.{chance.randrange(16)}"}
        for row in by_date("%Y-%m-%d", 30, 60)(chance, now)
    ),
    allowed=ONE_ENTITY,
    traps={"A3": "the day is sharded", "A1": "the number is a shard's"},
)
case(
    "dates of birth beside the person",
    "decoy",
    Schema("who", "born"),
    items=lambda chance, now: (
        {"who": uuid(chance), "born": day(now - chance.random() * 30_000 * DAY), "n": name(chance)}
        for _ in range(1_500)
    ),
    allowed=ONE_ENTITY,
    traps={"A3": "the date is the sort key"},
)

# E: texts in keys


@table("versions v1 to v129", "planted", Schema(sort="sk"), found=["E1"])
def unpadded(chance: Random, now: float):
    for _ in range(80):
        pk = f"DOCUMENT#{uuid(chance)}"
        for version in range(1, chance.randint(3, 130)):
            yield {"pk": pk, "sk": f"v{version}", "Type": "Version", "by": name(chance)}


case(
    "scores as plain text",
    "planted",
    Schema("board", "score"),
    items=lambda chance, now: (
        {
            "board": uuid7,
            "score": str(chance.randint(1, 10 ** chance.randint(1, 6))),
            "n": name(chance),
        }
        for uuid7 in [f"BOARD#{uuid(chance)}" for _ in range(50)]
        for _ in range(40)
    ),
    found=["E1"],
    allowed=ONE_ENTITY,
)
case(
    "page numbers behind a tag",
    "planted",
    Schema(sort="sk"),
    items=lambda chance, now: (
        {"pk": f"BOOK#{book}", "sk": f"PAGE#{page}", "Type": "Page", "t": some(chance, 9, 90)}
        for book in [uuid(chance) for _ in range(30)]
        for page in range(1, 60)
    ),
    found=["E1"],
    allowed=ONE_ENTITY,
)
case(
    "padded versions",
    "decoy",
    Schema(sort="sk"),
    items=lambda chance, now: (
        {"pk": f"DOC#{doc}", "sk": f"v{version:06}", "Type": "Version", "by": name(chance)}
        for doc in [uuid(chance) for _ in range(60)]
        for version in range(1, 40)
    ),
    allowed=ONE_ENTITY,
    traps={"E1": "padded: all are of one width"},
)
case(
    "ten-digit epochs as text",
    "decoy",
    Schema("who", "at"),
    items=lambda chance, now: (
        {"who": f"USER#{who}", "at": str(int(now - chance.random() * 900 * DAY)), "v": uuid(chance)}
        for who in [uuid(chance) for _ in range(200)]
        for _ in range(8)
    ),
    allowed=ONE_ENTITY,
    traps={"E1": "numbers as text, and all of one width"},
)


def orphans(chance: Random, now: float, share: float):
    for number in range(500):
        email = f"p{number}@example.org"
        user = uuid(chance)
        yield {"pk": f"EMAIL#{email}", "sk": "UNIQUE", "Type": "Unique", "user": f"USER#{user}"}
        if chance.random() >= share:
            yield {"pk": f"USER#{user}", "sk": "PROFILE", "Type": "User", "email": email}


case(
    "addresses reserved by users who are gone",
    "planted",
    Schema(sort="sk"),
    items=lambda chance, now: orphans(chance, now, 0.3),
    found=["E2"],
)
case(
    "addresses reserved by users who are there",
    "decoy",
    Schema(sort="sk"),
    items=lambda chance, now: orphans(chance, now, 0.0),
    traps={"E2": "each constraint has its primary"},
)
