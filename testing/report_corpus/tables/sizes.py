"""A6, A13, A15, A16, A19: large items, growing collections, expired items, and few keys."""

from random import Random

from testing.report_corpus.case import DAY, Index, Metric, Schema, Write, case, table
from testing.report_corpus.tables.clean import ONE_ENTITY, shop
from testing.report_corpus.virtual import Collections, Giant, few
from testing.report_corpus.words import CITIES, day, iso, name, some, text, ulid, uuid

KB = 1024
LSI_SMALL = {"A6": "an LSI is there, and its collections are small; low"}

# A13: large items


def documents(chance: Random, large: float, minimum: int, maximum: int, count: int = 400):
    for number in range(count):
        is_large = number < large * count
        size = chance.randint(minimum, maximum) * KB if is_large else chance.randint(200, 3_000)
        yield {"doc": f"DOC#{uuid(chance)}", "Type": "Doc", "body": text(chance, size)}


case(
    "documents, one in twenty nearly 400 KB",
    "planted",
    Schema("doc"),
    items=lambda chance, now: documents(chance, 0.05, 360, 395),
    found=["A13"],
    allowed=ONE_ENTITY,
)
case(
    "documents, one in thirty of 110 to 200 KB",
    "planted",
    Schema("doc"),
    items=lambda chance, now: documents(chance, 0.033, 110, 200),
    found=["A13"],
    allowed=ONE_ENTITY,
)


@table("plans of floors as binary", "planted", Schema(sort="sk"), found=["A13"])
def drawings(chance: Random, now: float):
    for _ in range(120):
        pk = f"BUILDING#{uuid(chance)}"
        yield {"pk": pk, "sk": "HEAD", "Type": "Building", "city": chance.choice(CITIES)}
        for floor in range(chance.randint(1, 4)):
            yield {
                "pk": pk,
                "sk": f"FLOOR#{floor:02}",
                "Type": "Floor",
                "plan": chance.randbytes(chance.choice((2, 4, 130, 170)) * KB),
            }


case(
    "documents of up to 60 KB",
    "decoy",
    Schema("doc"),
    items=lambda chance, now: documents(chance, 0.3, 20, 60),
    allowed=ONE_ENTITY,
    traps={"A13": "large, but below 100 KB"},
)

# A15: collections without an end


def giants(chance: Random, now: float, rest: int, giant: int, tag: str):
    for _ in range(rest):
        pk = f"{tag}#{uuid(chance)}"
        for _ in range(chance.randint(2, 12)):
            at = now - chance.random() * 300 * DAY
            yield {"pk": pk, "sk": ulid(at, chance), "what": some(chance, 10, 90)}
    pk = f"{tag}#{uuid(chance)}"
    for _ in range(giant):
        at = now - chance.random() * 300 * DAY
        yield {"pk": pk, "sk": ulid(at, chance), "what": some(chance, 10, 90)}


case(
    "events of tenants, half of them one tenant's",
    "planted",
    Schema(sort="sk"),
    items=lambda chance, now: giants(chance, now, 600, 3_500, "TENANT"),
    found=["A15"],
    allowed=ONE_ENTITY,
)
case(
    "audit entries, a third under `null`",
    "planted",
    Schema("actor", "at"),
    items=lambda chance, now: (
        {
            "actor": "null" if chance.random() < 0.35 else f"USER#{chance.randrange(1_200)}",
            "at": f"{iso(now - chance.random() * 90 * DAY)}#{n}",
            "what": some(chance, 10, 60),
        }
        for n in range(5_000)
    ),
    found=["A15"],
    allowed=ONE_ENTITY | {"A1": "users are numbered from 0 to 1,199: dense indeed"},
)


def growing(chance: Random, now: float, items):
    last = [row["pk"] for row in items[-50:]]
    pk = max({row["pk"] for row in items}, key=last.count)
    for number in range(700):
        ago = 880 - number * 1.2
        yield Write(ago, None, {"pk": pk, "sk": ulid(now - ago, chance), "what": "x"})
    for _ in range(100):
        ago = chance.random() * 880
        new = {"pk": f"TENANT#{uuid(chance)}", "sk": ulid(now - ago, chance), "what": "x"}
        yield Write(ago, None, new)


case(
    "events of tenants, and one that grows while one looks",
    "planted",
    Schema(sort="sk"),
    items=lambda chance, now: giants(chance, now, 500, 3_000, "TENANT"),
    stream=growing,
    found=["A15"],
    allowed=ONE_ENTITY
    | {"H2": "the new events go to the end of one collection", "H7": "so one shard has most"},
)
case(
    "orders of fifty lines each",
    "decoy",
    Schema(sort="sk"),
    items=lambda chance, now: (
        {"pk": f"ORDER#{order}", "sk": f"LINE#{line:03}", "Type": "Line", "sku": uuid(chance)}
        for order in [uuid(chance) for _ in range(80)]
        for line in range(50)
    ),
    allowed=ONE_ENTITY,
    traps={"A15": "every collection has its fifty"},
)
case(
    "a small table with one large parent",
    "decoy",
    Schema(sort="sk"),
    items=lambda chance, now: (
        {"pk": f"LIST#{name_}", "sk": f"{n:03}", "Type": "Entry", "v": some(chance, 4, 20)}
        for name_, count in (("countries", 190), ("currencies", 40), ("units", 12), ("tax", 6))
        for n in range(count)
    ),
    allowed=ONE_ENTITY,
    traps={"A15": "of 250 items, which all fit one page"},
)

# A6: LSI and the 10 GB of a collection


BY_STATUS = Index("byStatus", "pk", "status", local=True)
BY_NAME = Index("byName", "pk", "label", local=True, projection="KEYS_ONLY")


def virtual_items(key: str, number: int, at: float) -> dict:
    return {"status": "open", "label": f"l{number}", "body": text(Random(number % 7), 2_000)}


YEAR = (365 * DAY, 0.0)
case(
    "an LSI, and a collection of 9 GB",
    "planted",
    Schema(sort="sk", indexes=(BY_NAME,)),
    virtual=Collections(4_000, 40, virtual_items, YEAR, giants=(Giant("TENANT#huge", 4_400_000),)),
    found=["A6", "A15"],
    allowed=ONE_ENTITY,
    slow=True,
)
case(
    "an LSI that doubles a collection of 4.6 GB",
    "planted",
    Schema(sort="sk", indexes=(BY_STATUS,)),
    virtual=Collections(4_000, 40, virtual_items, YEAR, giants=(Giant("TENANT#large", 2_200_000),)),
    found=["A6", "A15"],
    allowed=ONE_ENTITY,
    slow=True,
)
case(
    "an LSI, and collections of 40 items",
    "decoy",
    Schema(sort="sk", indexes=(BY_STATUS,)),
    virtual=Collections(20_000, 40, virtual_items, YEAR),
    allowed=ONE_ENTITY | LSI_SMALL,
    traps={"A15": "all are of one size"},
    slow=True,
)
case(
    "an LSI on a small shop",
    "decoy",
    Schema(sort="sk", indexes=(Index("byPlaced", "pk", "placed", local=True),)),
    items=shop,
    allowed=LSI_SMALL,
)
case(
    "two tenants hold half of a terabyte's sample",
    "planted",
    Schema(sort="sk"),
    virtual=Collections(
        30_000,
        30,
        virtual_items,
        YEAR,
        giants=(Giant("TENANT#one", 500_000), Giant("TENANT#two", 400_000)),
    ),
    found=["A15"],
    allowed=ONE_ENTITY,
    slow=True,
)
case(
    "thirty thousand collections of some thirty items",
    "clean",
    Schema(sort="sk"),
    virtual=Collections(30_000, 30, virtual_items, YEAR),
    allowed=ONE_ENTITY,
    slow=True,
)

# A19: too few partition keys

ITEMS = 5_000_000
TENANTS = ("acme", "birch", "cobalt", "delta", "ember", "fjord", "grove", "haven", "iris", "jade")


def event(key: str, number: int, at: float) -> dict:
    return {"Type": "Event", "body": "x" * 380}


def unordered(key: str, number: int, at: float) -> str:
    """Return a sort key without a detectable order, so that no length can be estimated."""
    return f"{number * 2_654_435_761 % 2**32:08x}/{number:x}"


FEW_BY_NAME = {"A1": "names that end in numbers, and so few that they are dense"}
for called, sizes, more in (
    ("five million items under one key", {"ALL": ITEMS}, {}),
    ("five million items under true and false", {"true": 4_000_000, "false": 1_000_000}, {}),
    (
        "five million items under five statuses",
        dict.fromkeys(("NEW", "PAID", "PACKED", "SENT", "DONE"), ITEMS // 5),
        {},
    ),
    ("five million items under one key, in no order", {"ALL": ITEMS}, {"sort": unordered}),
):
    case(
        called,
        "planted",
        Schema(sort="sk"),
        virtual=few(sizes, event, YEAR, **more),
        found=["A19"],
        allowed=ONE_ENTITY | FEW_BY_NAME,
    )
case(
    "five million items of ten tenants, 91 % of them one tenant's",
    "planted",
    Schema(sort="sk"),
    virtual=few(
        {name_: ITEMS * 91 // 100 if name_ == "acme" else ITEMS // 100 for name_ in TENANTS},
        event,
        YEAR,
    ),
    found=["A15", "A19"],
    allowed=ONE_ENTITY | FEW_BY_NAME,
)
case(
    "a hundred keys of fifty thousand items",
    "decoy",
    Schema(sort="sk"),
    virtual=Collections(100, ITEMS // 100, event, YEAR),
    allowed=ONE_ENTITY,
    traps={"A19": "a hundred keys take what the quota of a table allows", "A15": "all alike"},
)


def settings(chance: Random, now: float):
    for name_ in ("web", "mobile", "mail", "print", "export"):
        for n in range(40):
            text_ = some(chance, 4, 20)
            yield {"pk": f"SETTINGS#{name_}", "sk": f"{n:03}", "Type": "Setting", "v": text_}


case(
    "settings under five keys, with little load",
    "decoy",
    Schema(sort="sk"),
    items=settings,
    metrics=(Metric("ConsumedReadCapacityUnits", 120), Metric("ConsumedWriteCapacityUnits", 6)),
    allowed=ONE_ENTITY,
    traps={"A19": "two read units a second are no load"},
)
case(
    "settings under five keys, written 4,000 times a second",
    "planted",
    Schema(sort="sk"),
    items=settings,
    metrics=(
        Metric("ConsumedReadCapacityUnits", 120),
        Metric("ConsumedWriteCapacityUnits", 4_000 * 60),
    ),
    found=["A19"],
    allowed=ONE_ENTITY,
)
case(
    "jobs by id, with a sparse index of those that failed",
    "decoy",
    Schema("job", indexes=(Index("byStatus", "failed"),)),
    items=lambda chance, now: (
        {"job": f"JOB#{uuid(chance)}", "Type": "Job", "what": some(chance, 10, 60)}
        | ({"failed": "FAILED"} if number % 100 == 0 else {})
        for number in range(6_000)
    ),
    allowed=ONE_ENTITY,
    traps={"A19": "one key of an index is no key of the table", "A9": "sixty items are few"},
)

# A16: time to live


def expiring(chance: Random, now: float, value):
    for _ in range(900):
        yield {
            "token": f"TOKEN#{uuid(chance)}",
            "Type": "Token",
            "expires": value(chance, now),
            "by": name(chance),
        }


for called, value in (
    ("tokens that expired weeks ago", lambda c, now: int(now + c.uniform(-40, 20) * DAY)),
    ("tokens whose time is text", lambda c, now: iso(now + c.uniform(0, 20) * DAY)),
    ("tokens whose time is in milliseconds", lambda c, now: int(1_000 * (now + c.random() * DAY))),
):
    case(
        called,
        "planted",
        Schema("token", ttl="expires"),
        items=lambda chance, now, value=value: expiring(chance, now, value),
        found=["A16"],
        allowed=ONE_ENTITY,
    )
case(
    "digits of a time as text, in one item in five",
    "planted",
    Schema("token", ttl="expires"),
    items=lambda chance, now: expiring(
        chance,
        now,
        lambda c, now: (int if c.random() < 0.8 else lambda at: str(int(at)))(now + 9 * DAY),
    ),
    found=["A16"],
    allowed=ONE_ENTITY,
)
case(
    "tokens that expired yesterday",
    "decoy",
    Schema("token", ttl="expires"),
    items=lambda chance, now: expiring(
        chance, now, lambda c, now: int(now + c.uniform(-1.2, 25) * DAY)
    ),
    allowed=ONE_ENTITY,
    traps={"A16": "a few days are normal"},
)
case(
    "only some items have a time to live",
    "decoy",
    Schema("token", ttl="expires"),
    items=lambda chance, now: (
        row if chance.random() < 0.2 else {k: v for k, v in row.items() if k != "expires"}
        for row in expiring(chance, now, lambda c, now: int(now + c.random() * 30 * DAY))
    ),
    allowed=ONE_ENTITY,
    traps={"A16": "items without the attribute stay, as they should"},
)
case(
    "dates of expiry without a time to live",
    "decoy",
    Schema("card"),
    items=lambda chance, now: (
        {"card": f"CARD#{uuid(chance)}", "expires": day(now + c * DAY), "n": name(chance)}
        for c in [chance.uniform(-700, 900) for _ in range(900)]
    ),
    metrics=(Metric("ConsumedReadCapacityUnits", 60),),
    allowed=ONE_ENTITY,
    traps={"A16": "the table has no time to live at all"},
)
