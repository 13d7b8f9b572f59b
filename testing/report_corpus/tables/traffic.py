"""A8, A11, A12, A4 by metrics, H1 to H7: tables by their traffic."""

from random import Random

from testing.report_corpus.case import (
    DAY,
    Contributor,
    Metric,
    Schema,
    Write,
    at_most,
    case,
    provisioned,
    shard_of,
    table,
    warm,
)
from testing.report_corpus.tables.clean import ONE_ENTITY, shop
from testing.report_corpus.words import CITIES, iso, some, text, uuid

USE = (
    Metric("ConsumedReadCapacityUnits", 3_000),
    Metric("ConsumedWriteCapacityUnits", 2_000),
    Metric("SuccessfulRequestLatency", 4_000, operation="GetItem"),
    Metric("SuccessfulRequestLatency", 1_900, operation="PutItem"),
)
"""The metrics of an ordinary day."""


def pages(chance: Random, now: float, count: int = 900):
    for number in range(count):
        yield {
            "pk": f"PAGE#{uuid(chance)}",
            "Type": "Page",
            "views": chance.randint(0, 90),
            "title": some(chance, 5, 50),
            "state": "live" if number % 3 else "draft",
        }


def spread(chance: Random, now: float, items, count: int, minimum: float = 10.0):
    """Yield ordinary writes, spread over the keys and the time."""
    for _ in range(count):
        old = chance.choice(items)
        yield Write(minimum + chance.random() * 850, old, old | {"title": some(chance, 5, 50)})


def in_order(writes):
    return sorted(writes, key=lambda write: -write.ago)


# A8: one counter


def counting(share: float, attribute: str = "views"):
    def writes(chance: Random, now: float, items):
        hot = items[7]
        count = 800
        for number in range(int(share * count)):
            old = hot | {attribute: 100 + number}
            yield Write(870 - number, old, old | {attribute: 101 + number})
        yield from spread(chance, now, items, count - int(share * count))

    return lambda chance, now, items: in_order(writes(chance, now, items))


HOT = {
    "H1": "the counter's key is the hottest",
    "H7": "so its shard of the stream has most records",
}
for called, share in (("views of the front page", 0.6), ("views of one page in three", 0.3)):
    case(
        called,
        "planted",
        Schema("pk"),
        items=pages,
        stream=counting(share),
        found=["A8"],
        allowed=ONE_ENTITY | HOT,
    )
case(
    "a stock that is counted down, among much else",
    "planted",
    Schema(sort="sk"),
    items=lambda chance, now: (
        {
            "pk": f"ITEM#{n:05}x{uuid(chance)}",
            "sk": "STOCK",
            "Type": "Stock",
            "left": 10_000,
            "v": 1,
        }
        for n in range(500)
    ),
    stream=counting(0.45, "left"),
    found=["A8"],
    allowed=ONE_ENTITY | HOT,
)
case(
    "a counter of 110,000 units a minute in Contributor Insights",
    "planted",
    Schema(sort="sk"),
    items=shop,
    insights=(
        Contributor("SKC", ("TOTALS", "ALL"), 110_000, 45),
        Contributor("PKC", ("TOTALS",), 110_000, 45),
        *(Contributor("PKC", (f"CUSTOMER#{n}",), 700) for n in range(30)),
        *(Contributor("SKC", (f"CUSTOMER#{n}", "PROFILE"), 700) for n in range(30)),
    ),
    found=["A8", "H1"],
)


def changing_state(chance: Random, now: float, items):
    hot = items[3]
    for number in range(260):
        old = hot | {"state": f"step{number % 9}"}
        yield Write(860 - 3 * number, old, old | {"state": f"step{(number + 1) % 9}"})
    yield from spread(chance, now, items, 500)


case(
    "an item that tells the state of a machine",
    "decoy",
    Schema("pk"),
    items=pages,
    stream=lambda chance, now, items: in_order(changing_state(chance, now, items)),
    allowed=ONE_ENTITY | HOT | {"A11": "steps come round again"},
    traps={"A8": "a status that changes, no number"},
)


def fifty_counters(chance: Random, now: float, items):
    for _ in range(900):
        old = items[chance.randrange(50)]
        yield Write(chance.random() * 880, old, old | {"views": old["views"] + 1})


case(
    "fifty counters, evenly",
    "decoy",
    Schema("pk"),
    items=pages,
    stream=lambda chance, now, items: in_order(fifty_counters(chance, now, items)),
    allowed=ONE_ENTITY,
    traps={"A8": "2 % each", "H1": "2 % each"},
)

# A11: changes of status that go back

STEPS = ["new", "paid", "packed", "sent", "received"]


def order_rows(chance: Random, now: float):
    for _ in range(700):
        yield {"pk": f"ORDER#{uuid(chance)}", "Type": "Order", "status": "new", "cents": 900}


def moving(backwards: float):
    def writes(chance: Random, now: float, items):
        for _ in range(1_600):
            old = chance.choice(items)
            at = chance.randrange(4)
            before, after = STEPS[at], STEPS[at + 1]
            if chance.random() < backwards:
                before, after = after, before
            ago = chance.random() * 880
            yield Write(ago, old | {"status": before}, old | {"status": after})

    return lambda chance, now, items: in_order(writes(chance, now, items))


case(
    "orders that are sometimes unpaid again",
    "planted",
    Schema("pk"),
    items=order_rows,
    stream=moving(0.015),
    found=["A11"],
    allowed=ONE_ENTITY,
)
case(
    "orders that only go on",
    "decoy",
    Schema("pk"),
    items=order_rows,
    stream=moving(0.0),
    allowed=ONE_ENTITY,
    traps={"A11": "no transition ever goes back"},
)

# A12 and A4 by metrics

case(
    "every write in a transaction",
    "planted",
    Schema(sort="sk"),
    items=shop,
    metrics=(
        *USE[:3],
        Metric("SuccessfulRequestLatency", 60, operation="PutItem"),
        Metric("SuccessfulRequestLatency", 1_900, operation="TransactWriteItems"),
    ),
    found=["A12"],
)
case(
    "a third of the writes in transactions",
    "decoy",
    Schema(sort="sk"),
    items=shop,
    metrics=(*USE, Metric("SuccessfulRequestLatency", 900, operation="TransactWriteItems")),
    traps={"A12": "a third: real invariants"},
)
case(
    "scans all day",
    "planted",
    Schema(sort="sk"),
    items=shop,
    metrics=(*USE, Metric("SuccessfulRequestLatency", 45, operation="Scan")),
    found=["A4"],
)
case(
    "scans in office hours, and the line that does it",
    "planted",
    Schema(sort="sk"),
    items=shop,
    metrics=(*USE, Metric("SuccessfulRequestLatency", 9, operation="Scan", busy=(480, 1_080))),
    code={
        "search.py": """
import boto3

table = boto3.resource("dynamodb").Table("TABLE")


def search(word):
    found = table.scan()["Items"]
    return [row for row in found if word in row["name"]]
"""
    },
    found=["A4"],
)
case(
    "an export at night",
    "decoy",
    Schema(sort="sk"),
    items=shop,
    metrics=(
        *USE,
        Metric("SuccessfulRequestLatency", 1, operation="Scan", busy=(120, 121)),
        Metric("ReturnedItemCount", 3_409, operation="Scan", busy=(120, 121)),
    ),
    allowed={"A4": "an export scans, and is meant to; low"},
)

# H1: a hot key

case(
    "a key with two thirds of a partition's units",
    "planted",
    Schema(sort="sk"),
    items=shop,
    insights=(
        Contributor("PKC", ("CUSTOMER#hot",), 120_000, 40),
        *(Contributor("PKC", (f"CUSTOMER#{n}",), 3_000 - 9 * n) for n in range(60)),
    ),
    metrics=USE,
    found=["H1"],
)
case(
    "throttles by key range, two hours ago",
    "planted",
    Schema(sort="sk"),
    items=shop,
    metrics=(
        *USE,
        Metric("WriteKeyRangeThroughputThrottleEvents", 25, since=7_200, days=1),
        Metric("WriteThrottleEvents", 25, since=7_200, days=1),
    ),
    found=["H1"],
)
case(
    "throttles of reads by key range, just now",
    "planted",
    Schema(sort="sk"),
    items=shop,
    metrics=(
        *USE,
        Metric("ReadKeyRangeThroughputThrottleEvents", 90, since=120, days=0.2),
        Metric("ReadThrottleEvents", 90, since=120, days=0.2),
    ),
    insights=(Contributor("PKT", ("CUSTOMER#hot",), 90, 20),),
    options={"accept": ("throttled",)},
    found=["H1"],
)


def burst(chance: Random, now: float, items):
    """Yield seconds in which one key has 900 write units, by few writes of large items."""
    body = text(chance, 8_900)
    for second in range(30):
        for number in range(80 if second % 2 else 30):
            new = {"pk": "TENANT#hot", "sk": f"{uuid(chance)}", "body": body}
            yield Write(600 - second - number / 100, None, new)
    for _ in range(600):
        new = {"pk": f"TENANT#{uuid(chance)}", "sk": uuid(chance), "body": "x"}
        yield Write(chance.random() * 880, None, new)


case(
    "one tenant writes 700 units a second",
    "planted",
    Schema(sort="sk"),
    items=shop,
    stream=lambda chance, now, items: in_order(burst(chance, now, items)),
    found=["H1"],
    allowed={"H7": "so one shard has most", "A15": "one collection grows"},
)
case(
    "a key with a third of a partition's units, for a minute",
    "decoy",
    Schema(sort="sk"),
    items=shop,
    insights=(
        Contributor("PKC", ("CUSTOMER#burst",), 60_000, 1),
        *(Contributor("PKC", (f"CUSTOMER#{n}",), 2_000) for n in range(60)),
    ),
    metrics=USE,
    traps={"H1": "below half, and a short burst"},
)

# H2: one collection, always at its end


def appending(at_end: float, keys: int):
    def writes(chance: Random, now: float, items):
        count = 1_000
        for number in range(count):
            ago = 880 - 0.85 * number
            at = now - ago if chance.random() < at_end else now - chance.random() * 300 * DAY
            pk = "STREAM#main" if chance.random() < 0.97 or keys == 1 else f"STREAM#{number % keys}"
            if keys > 10:
                pk = f"STREAM#{chance.randrange(keys)}"
            yield Write(ago, None, {"pk": pk, "sk": f"{iso(at)}#{number:05}", "v": 1})

    return writes


@table(
    "a log that is written at its end",
    "planted",
    Schema(sort="sk"),
    stream=appending(1.0, 1),
    found=["H2"],
    allowed=ONE_ENTITY | HOT | {"A15": "one collection gets it all", "H7": "and one shard"},
)
def stream_rows(chance: Random, now: float):
    for number in range(600):
        at = now - chance.random() * DAY
        yield {"pk": f"STREAM#{chance.choice(CITIES)}", "sk": f"{iso(at)}#{number:05}", "v": 1}


case(
    "a log written at its end, and some others",
    "planted",
    Schema(sort="sk"),
    items=stream_rows,
    stream=appending(0.99, 5),
    found=["H2"],
    allowed=ONE_ENTITY | HOT | {"A15": "one collection gets it all"},
)
case(
    "one key, at random places",
    "decoy",
    Schema(sort="sk"),
    items=stream_rows,
    stream=appending(0.0, 1),
    allowed=ONE_ENTITY | HOT | {"A15": "one collection gets it all", "H7": "and one shard"},
    traps={"H2": "inserts fall all over the collection: a split by sort key helps"},
)
case(
    "two hundred logs written at their ends",
    "decoy",
    Schema(sort="sk"),
    items=stream_rows,
    stream=appending(1.0, 200),
    allowed=ONE_ENTITY | {"A15": "they grow"},
    traps={"H2": "two hundred collections: partitions split between them"},
)

# H4: throttles, and not by the keys

for called, what, overlay in (
    (
        "throttled by what is provisioned",
        "WriteProvisionedThroughputThrottleEvents",
        provisioned(50, 20),
    ),
    ("throttled by its own maximum", "WriteMaxOnDemandThroughputThrottleEvents", at_most(500, 40)),
    ("throttled by the account's limit", "ReadAccountLimitThrottleEvents", {}),
):
    case(
        called,
        "planted",
        Schema(sort="sk"),
        items=shop,
        metrics=(*USE, Metric(what, 60, since=10_800, days=2)),
        overlay=overlay,
        found=["H4"],
        traps={"H1": "not by a key range"},
    )

# H5: cold

for called, writes, peak in (
    ("cold for a launch", 4_000, 20_000),
    ("cold for twice its warm throughput", 4_000, 8_000),
):
    case(
        called,
        "planted",
        Schema(sort="sk"),
        items=shop,
        overlay=warm(12_000, writes),
        options={"peak_writes": peak},
        found=["H5"],
    )
case(
    "warm for what is expected",
    "decoy",
    Schema(sort="sk"),
    items=shop,
    overlay=warm(40_000, 30_000),
    options={"peak_writes": 20_000},
    traps={"H5": "30,000 are warm"},
)

# H6: a load in hash order, H7: heat of a partition


def in_hash_order(chance: Random, now: float, items):
    """Yield the writes of a copy by a scan: 110 items every 12 seconds, in the given order."""
    for number, row in enumerate(items[::2][:600]):
        yield Write(880 - 12 * (number // 110), None, row)


case(
    "a table filled from a scan",
    "planted",
    Schema("pk"),
    items=pages,
    stream=in_hash_order,
    found=["H6"],
    allowed=ONE_ENTITY | {"H7": "shard after shard"},
)


case(
    "a table filled from a scan, the last page first",
    "planted",
    Schema("pk"),
    items=pages,
    stream=lambda chance, now, items: in_hash_order(chance, now, items[::-1]),
    found=["H6"],
    allowed=ONE_ENTITY | {"H7": "shard after shard"},
)


def shuffled(chance: Random, now: float, items):
    rows = items[:600]
    chance.shuffle(rows)
    for number, row in enumerate(rows):
        yield Write(880 - 1.4 * number, None, row)


case(
    "a table filled from a shuffled list",
    "decoy",
    Schema("pk"),
    items=pages,
    stream=shuffled,
    allowed=ONE_ENTITY,
    traps={"H6": "shuffled", "H7": "four shards, evenly"},
)


def one_shard(chance: Random, now: float, items):
    """Yield writes to many keys, none of them hot, which happen to be in one shard."""
    together = [row for row in items if shard_of(row["pk"]) == 0]
    for _ in range(1_000):
        old = chance.choice(together if chance.random() < 0.85 else items)
        yield Write(chance.random() * 880, old, old | {"title": some(chance, 5, 9)})


case(
    "one of the stream's shards has nearly all",
    "planted",
    Schema("pk"),
    items=pages,
    stream=lambda chance, now, items: in_order(one_shard(chance, now, items)),
    found=["H7"],
    allowed=ONE_ENTITY,
)
case(
    "much of everything, evenly",
    "decoy",
    Schema("pk"),
    items=pages,
    stream=lambda chance, now, items: in_order(spread(chance, now, items, 1_500)),
    metrics=USE,
    insights=tuple(Contributor("PKC", (f"PAGE#{n}",), 1_000 - n) for n in range(90)),
    allowed=ONE_ENTITY,
    traps={"H7": "even", "H1": "even", "A8": "titles, and no numbers"},
)
