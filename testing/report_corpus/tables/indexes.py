"""A7, A9, H3 and the choice of indexes."""

from random import Random

from testing.report_corpus.case import DAY, Index, Metric, Schema, case, table
from testing.report_corpus.tables.clean import HIGH_SHARE, ONE_ENTITY
from testing.report_corpus.words import CITIES, day, iso, name, some, ulid, uuid

READ = 600.0


def reads(*indexes: str) -> tuple[Metric, ...]:
    """Return the metrics of a table and indexes that are read all day."""
    return (
        *(
            Metric("ConsumedReadCapacityUnits", READ, index=name, days=30)
            for name in ("", *indexes)
        ),
        Metric("ConsumedWriteCapacityUnits", 100, days=30),
    )


# A9: one key of an index has most of the entries


def orders(chance: Random, now: float, common: str, share: float, count: int = 2_500):
    for _ in range(count):
        at = now - chance.random() * 90 * DAY
        yield {
            "pk": f"ORDER#{uuid(chance)}",
            "status": common if chance.random() < share else f"s{chance.randrange(400)}",
            "placed": iso(at),
            "to": name(chance),
        }


CONSTANT = HIGH_SHARE | ONE_ENTITY
for called, status, share in (
    ("orders by status, four fifths pending", "PENDING", 0.8),
    ("orders by status, nearly all done", "DONE", 0.97),
    ("orders by status, a third of them new", "NEW", 0.33),
):
    case(
        called,
        "planted",
        Schema("pk", indexes=(Index("byStatus", "status", "placed"),)),
        items=lambda chance, now, status=status, share=share: orders(chance, now, status, share),
        found=["A9 byStatus"],
        allowed=CONSTANT,
    )


@table(
    "an index by type of item",
    "planted",
    Schema("pk", indexes=(Index("gsi1", "gsi1pk", "gsi1sk"),)),
    found=["A9 gsi1"],
    allowed=HIGH_SHARE,
)
def of_type(chance: Random, now: float):
    for _ in range(600):
        city = chance.choice(CITIES)
        for kind in ("Listing", "Photo", "Host"):
            yield {
                "pk": f"{kind.upper()}#{uuid(chance)}",
                "Type": kind,
                "gsi1pk": kind,
                "gsi1sk": f"{city}#{ulid(now - chance.random() * DAY, chance)}",
                "text": some(chance, 5, 90),
            }


case(
    "an index by a number that is 0 or 1",
    "planted",
    Schema("pk", indexes=(Index("byActive", "active:N", projection="KEYS_ONLY"),)),
    items=lambda chance, now: (
        {"pk": f"USER#{uuid(chance)}", "active": int(chance.random() < 0.7), "n": name(chance)}
        for _ in range(2_000)
    ),
    found=["A9 byActive"],
    allowed=CONSTANT,
)
case(
    "an index by day, all of one launch",
    "planted",
    Schema("pk", indexes=(Index("byDay", "day", projection="KEYS_ONLY"),)),
    items=lambda chance, now: (
        {
            "pk": f"SIGNUP#{uuid(chance)}",
            "day": day(now - (9 if chance.random() < 0.45 else chance.randrange(300)) * DAY),
        }
        for _ in range(2_500)
    ),
    found=["A9 byDay"],
    allowed=CONSTANT | {"A3": "a date is the index's key"},
)
case(
    "an index that is throttled by its key range",
    "planted",
    Schema("pk", indexes=(Index("byStatus", "status", "placed"),)),
    items=lambda chance, now: orders(chance, now, "PENDING", 0.9),
    metrics=(
        *reads("byStatus"),
        Metric("WriteKeyRangeThroughputThrottleEvents", 40, index="byStatus", since=1_800, days=1),
        Metric("WriteThrottleEvents", 40, index="byStatus", since=1_800, days=1),
    ),
    options={"accept": ("throttled",)},
    found=["A9 byStatus", "H3 byStatus"],
    allowed=CONSTANT | {"H1": "a key of the index is hot"},
)
case(
    "an index with too few provisioned units",
    "planted",
    Schema("pk", indexes=(Index("byOwner", "owner"),)),
    items=lambda chance, now: many(chance, now, ("owner",)),
    metrics=(
        *reads("byOwner"),
        Metric(
            "WriteProvisionedThroughputThrottleEvents", 70, index="byOwner", since=9_000, days=1
        ),
        Metric("WriteThrottleEvents", 70, index="byOwner", since=9_000, days=1),
    ),
    overlay={"ProvisionedThroughput": {"ReadCapacityUnits": 90, "WriteCapacityUnits": 90}},
    found=["H3 byOwner"],
    allowed=CONSTANT | {"H4": "capacity is short, and no key is hot"},
    traps={"A9 byOwner": "three hundred owners, evenly", "H1": "no key range"},
)
case(
    "a sparse index of five open complaints",
    "decoy",
    Schema("pk", indexes=(Index("open", "open", "since"),)),
    items=lambda chance, now: (
        {"pk": f"CASE#{uuid(chance)}", "text": some(chance, 20, 90)}
        | ({"open": "1", "since": iso(now - n * 900)} if n < 5 else {})
        for n in range(2_000)
    ),
    allowed=ONE_ENTITY,
    traps={"A9 open": "a tiny index: one key is right for it"},
)
case(
    "an index of two hundred even categories",
    "decoy",
    Schema("pk", indexes=(Index("byCategory", "category"),)),
    items=lambda chance, now: (
        {
            "pk": f"BOOK#{uuid(chance)}",
            "category": f"cat-{chance.randrange(200)}",
            "n": name(chance),
        }
        for _ in range(3_000)
    ),
    allowed=CONSTANT,
    traps={"A9 byCategory": "the largest of 200 has some 1 %"},
)
case(
    "an index with a largest key of an eighth",
    "decoy",
    Schema("pk", indexes=(Index("byCity", "city", "pk"),)),
    items=lambda chance, now: (
        {"pk": f"USER#{uuid(chance)}", "city": chance.choice(CITIES + [f"t{n}" for n in range(40)])}
        if chance.random() > 0.1
        else {"pk": f"USER#{uuid(chance)}", "city": "Bonn"}
        for _ in range(4_000)
    ),
    allowed=CONSTANT,
    traps={"A9 byCity": "an eighth is below a fifth"},
)

# A7: an index for every question

TEN = ["status", "city", "owner", "phone", "plan", "source", "month", "colour", "size", "team"]


def many(chance: Random, now: float, names):
    for _ in range(600):
        yield {"pk": f"LEAD#{uuid(chance)}"} | {
            attribute: f"{attribute}-{chance.randrange(300)}" for attribute in names
        }


case(
    "ten indexes, one a question",
    "planted",
    Schema("pk", indexes=tuple(Index(f"by-{key}", key, projection="KEYS_ONLY") for key in TEN)),
    items=lambda chance, now: many(chance, now, TEN),
    found=["A7"],
    allowed=CONSTANT,
)
case(
    "two indexes with one schema",
    "planted",
    Schema(
        "pk",
        indexes=(
            Index("byOwner", "owner", "placed", projection="KEYS_ONLY"),
            Index("byOwnerAll", "owner", "placed"),
        ),
    ),
    items=lambda chance, now: (
        {"pk": f"X#{uuid(chance)}", "owner": f"o{chance.randrange(300)}", "placed": iso(now - n)}
        for n in range(1_000)
    ),
    found=["A7"],
    allowed=CONSTANT,
)
case(
    "an index that nobody has read for a month",
    "planted",
    Schema("pk", indexes=(Index("byOwner", "owner"), Index("byCity", "city"))),
    items=lambda chance, now: many(chance, now, ("owner", "city")),
    metrics=reads("byOwner"),
    found=["A7 byCity"],
    allowed=CONSTANT,
)
case(
    "an index that a job reads once a month",
    "decoy",
    Schema("pk", indexes=(Index("byOwner", "owner"), Index("byCity", "city"))),
    items=lambda chance, now: many(chance, now, ("owner", "city")),
    metrics=(
        *reads("byOwner"),
        Metric(
            "ConsumedReadCapacityUnits", 90, index="byCity", days=30, busy=(60, 75), every_days=22
        ),
    ),
    allowed=CONSTANT | {"A7": "told to confirm; low"},
)
case(
    "four indexes that are all read",
    "decoy",
    Schema("pk", indexes=tuple(Index(f"by-{key}", key) for key in TEN[:4])),
    items=lambda chance, now: many(chance, now, TEN[:4]),
    metrics=reads(*(f"by-{key}" for key in TEN[:4])),
    allowed=CONSTANT,
    traps={"A7": "four, of four schemas, all read"},
)

# Choice and use: writes to indexes

case(
    "indexes that cost twice the table's writes",
    "planted",
    Schema("pk", indexes=(Index("byOwner", "owner"), Index("byCity", "city"))),
    items=lambda chance, now: many(chance, now, ("owner", "city")),
    metrics=(
        *reads("byOwner", "byCity")[:-1],
        Metric("ConsumedWriteCapacityUnits", 6_000, days=30),
        Metric("ConsumedWriteCapacityUnits", 6_500, index="byOwner", days=30),
        Metric("ConsumedWriteCapacityUnits", 6_200, index="byCity", days=30),
    ),
    found=["I3"],
    allowed=CONSTANT,
)
case(
    "an index that is read more by ten than it is written",
    "decoy",
    Schema("pk", indexes=(Index("byOwner", "owner"),)),
    items=lambda chance, now: many(chance, now, ("owner",)),
    metrics=(
        Metric("ConsumedReadCapacityUnits", 900, days=30),
        Metric("ConsumedReadCapacityUnits", 90_000, index="byOwner", days=30),
        Metric("ConsumedWriteCapacityUnits", 6_000, days=30),
        Metric("ConsumedWriteCapacityUnits", 3_000, index="byOwner", days=30),
    ),
    allowed=CONSTANT,
    traps={"I3": "half of the table's writes"},
)
