"""Tables of the fifth part whose load has faults, or only seems to have some."""

from collections.abc import Callable, Iterator
from random import Random
from typing import Any

from testing.report_corpus.case import Index, Item, Schema, Write, at_most, provisioned, warm
from testing.report_corpus.others.fifth_rows import (
    Key,
    Writes,
    accessed,
    among,
    anyone,
    declare,
    inserts,
    joined,
    keyed,
    known,
    known_key,
    mostly,
    of_index,
    one_after_the_other,
    raised,
    refused,
    renamed,
    rows_of,
    series,
    single,
    throttled,
    units,
    updates,
)
from testing.report_corpus.words import iso, some, ulid, uuid, uuid7

PK, BOTH = Schema("pk"), Schema("pk", "sk")
FEW_SHARDS = {"H7": "the shard of the key that is written most has most of the records"}


# A8: one counter item

for title, key, numbers, tag, spec, step, share in rows_of("""
    views of all pages in one item | STATS#views | {"views": 10} | PAGE | path | {"views": 1} | \
        0.8
    likes of a site in one item | TOTAL#likes | {"likes": 99} | POST | words | {"likes": 1} | 0.7
    the next order number in one item | SEQUENCE#order | {"next": 5_000} | ORDER | total:cents | \
        {"next": 1} | 0.75
    revenue of the day in one item | SUM#revenue | {"cents": 1, "orders": 1} | SALE | sku:hex | \
        {"cents": 900, "orders": 1} | 0.6
    votes of a referendum in one item | TALLY#yes | {"votes": 4} | VOTER | city:city | \
        {"votes": 1} | 0.9
    stock of the one product on sale | STOCK#console | {"left": 90_000, "sold": 1} | CART | \
        who:name | {"sold": 1, "left": 1} | 0.7
    requests of all tenants in one quota item | QUOTA#all | {"used": 7} | TENANT | title | \
        {"used": 3} | 0.65
    points of a guild in one item | GUILD#points | {"points": 100} | MEMBER | nick | \
        {"points": 40} | 0.8
    atomic counter of a music library | SONG#top:plays | {"plays": 1_000} | SONG | \
        title artist:name | {"plays": 1} | 0.85
"""):

    def count_up(
        chance: Random, old: Item, at: float, key: str = key, step: dict[str, int] = step
    ) -> Item:
        if old["pk"] != key:
            return renamed(chance, old, at)
        return old | {name: old[name] + chance.randint(1, limit) for name, limit in step.items()}

    declare(
        title,
        PK,
        joined(
            single(
                lambda n, c, a, key=key: key,
                "",
                1,
                **{n: lambda *_, v=v: v for n, v in numbers.items()},
            ),
            single(keyed(f"{tag}#{{}}"), spec, 500),
        ),
        "A8",
        "H2: the writes are updates; H6: the others are written in no order",
        stream=updates(mostly("pk", key, share), count_up),
        allowed=FEW_SHARDS,
    )


def counters(tag: str, spec: str, attribute: str, many: int) -> Any:
    return single(
        keyed(f"{tag}#{{}}"), spec, many, **{attribute: lambda n, c, a: c.randrange(9_000)}
    )


def versioned(chance: Random, old: Item, at: float) -> Item:
    return renamed(chance, old, at) | {"version": old["version"] + 1}


for title, rows, stream, why in (
    (
        "views counted in each page's own item",
        counters("PAGE", "path", "views", 500),
        updates(anyone, raised("views")),
        "each page has its own counter",
    ),
    (
        "likes counted in sixty shards",
        counters("LIKES", "", "likes", 60),
        updates(anyone, raised("likes", 3)),
        "the counter is sharded",
    ),
    (
        "documents with a version for optimistic locks",
        counters("DOC", "title", "version", 400),
        updates(anyone, versioned),
        "many documents, and their text changes",
    ),
    (
        "stock levels of a shop",
        counters("SKU", "label", "left", 700),
        updates(anyone, raised("left", 5)),
        "many products",
    ),
    (
        "balances of wallets",
        counters("WALLET", "who:name", "cents", 600),
        updates(anyone, raised("cents", 900)),
        "many wallets",
    ),
    (
        "quotas of tenants by tenant",
        counters("QUOTA", "plan:a|b", "used", 300),
        updates(anyone, raised("used")),
        "many quotas",
    ),
    (
        "scores of players",
        counters("PLAYER", "nick", "points", 800),
        updates(anyone, raised("points", 50)),
        "many players",
    ),
    (
        "heartbeats of machines",
        single(keyed("M#{}"), "model seen:time", 400),
        updates(anyone),
        "texts of many items",
    ),
):
    declare(
        title,
        PK,
        rows,
        "",
        f"A8: {why}; H7: the writes are spread over all items; H6: in no order; "
        "H2: updates, not inserts",
        stream=stream,
    )


# H2: a split cannot help

Sort = Callable[[Random, float, int], Any]
SORTS: dict[str, Sort] = {
    "iso": lambda chance, at, number: iso(at),
    "ulid": lambda chance, at, number: ulid(at, chance),
    "uuid7": lambda chance, at, number: uuid7(at, chance),
    "padded": lambda chance, at, number: f"{1_000_000 + number:012}",
    "ms": lambda chance, at, number: f"{int(at * 1000)}",
    "tagged": lambda chance, at, number: f"EVENT#{iso(at)}#{chance.getrandbits(24):06x}",
    "random": lambda chance, at, number: uuid(chance),
    "backwards": lambda chance, at, number: f"{9_999_999_999_999 - int(at * 1000)}",
}
STORED: dict[str, Key] = {
    "iso": keyed("{}", "iso"),
    "ulid": keyed("{}", "ulid"),
    "uuid7": keyed("{}", "uuid7"),
    "padded": keyed("{}", "{:012}"),
    "ms": keyed("{}", "ms"),
    "tagged": lambda number, chance, at: f"EVENT#{iso(at)}#{chance.getrandbits(24):06x}",
    "random": keyed("{}", "uuid"),
    "backwards": lambda number, chance, at: f"{9_999_999_999_999 - int(at * 1000)}",
}


def born(tag: str, sort: str, share: float, keys: int = 130) -> Writes:
    """Return inserts of which a share goes to the first collection, and others to any."""

    def make(chance: Random, at: float, number: int, items: list[Item]) -> Item:
        owner = 0 if chance.random() < share else chance.randrange(keys)
        row = {"pk": known(tag, owner), "sk": SORTS[sort](chance, at, number)}
        return row | {"note": some(chance, 10, 50), "at": iso(at)}

    return inserts(make)


for title, tag, sort, share in (
    ("audit trail of one tenant who imports", "TENANT", "iso", 0.95),
    ("messages of a live stream's chat", "CHAT", "ulid", 0.9),
    ("the global timeline of a network", "TIMELINE", "uuid7", 0.97),
    ("entries of the one ledger, by number", "LEDGER", "padded", 1.0),
    ("readings of the one gateway that is on", "GATEWAY", "ms", 0.92),
    ("outbox with one partition", "OUTBOX", "tagged", 1.0),
    ("queue of jobs under one key", "JOBS", "ulid", 0.94),
    ("change data capture under one topic", "TOPIC", "iso", 0.9),
):
    declare(
        title,
        BOTH,
        series(known_key(tag), STORED[sort], "note at:time", 130, (3, 6)),
        "H2",
        "A8: the writes are inserts; H6: one key has no order; A15: few items are stored yet",
        stream=born(tag, sort, share),
        allowed=FEW_SHARDS,
    )
for title, tag, sort, why in rows_of("""
    audit trails of all tenants | TENANT | iso | the inserts go to 130 collections
    messages of many chats | CHAT | ulid | the inserts go to 130 collections
    events of many carts | CART | tagged | the inserts go to 130 collections
    readings of all gateways | GATEWAY | ms | the inserts go to 130 collections
    notes of all users by random id | USER | random | random sort keys of many users
    feeds that have the newest first | FEED | backwards | \
        they go to the front of many collections
"""):
    declare(
        title,
        BOTH,
        series(known_key(tag), STORED[sort], "note at:time", 130, (3, 6)),
        "",
        f"H2: {why}; H7: the owners are written evenly; A15: the collections are about as large; "
        "A8: inserts; H6: in no order",
        stream=born(tag, sort, 0),
    )


# H7: uneven heat of partitions

for title, tag, share in (
    ("carts of a shop with one robot", "CART", 0.7),
    ("tenants of whom one has a batch", "TENANT", 0.8),
    ("machines of which one repeats itself", "MACHINE", 0.65),
    ("players of whom one is a streamer", "PLAYER", 0.75),
    ("documents of which one is edited by all", "DOC", 0.85),
    ("sessions of which one is shared", "SESSION", 0.7),
):
    declare(
        title,
        BOTH,
        series(known_key(tag), keyed("{}", "uuid"), "note updatedAt:time", 130, (3, 6)),
        "H7",
        "A8: texts change and not numbers; H2: the writes are updates; H6: in no order; "
        "A15: the collections are about as large",
        stream=updates(mostly("pk", known(tag, 0), share)),
    )
for title, tag, sort, share in (
    ("imports of one customer by random id", "CUSTOMER", "random", 0.8),
    ("feed of one star, with the newest first", "STAR", "backwards", 0.85),
):
    declare(
        title,
        BOTH,
        series(known_key(tag), STORED[sort], "note at:time", 130, (3, 6)),
        "H7",
        "H2: the sort keys are not greater than all before; A8: inserts",
        stream=born(tag, sort, share),
    )


# H6: load in the order of hashes


def as_scanned(chance: Random, items: list[Item]) -> list[Item]:
    return items


def nearly_as_scanned(chance: Random, items: list[Item]) -> list[Item]:
    """Return items in the order of a scan, in batches of 25 that are shuffled."""
    batches = [items[first : first + 25] for first in range(0, len(items), 25)]
    return [row for batch in batches for row in chance.sample(batch, len(batch))]


def shuffled(chance: Random, items: list[Item]) -> list[Item]:
    return chance.sample(items, len(items))


def by_name(chance: Random, items: list[Item]) -> list[Item]:
    return sorted(items, key=lambda row: str(row["label"]))


def by_key(chance: Random, items: list[Item]) -> list[Item]:
    return sorted(items, key=lambda row: str(row["pk"]))


def in_segments(chance: Random, items: list[Item]) -> list[Item]:
    """Return items as twelve workers of a parallel scan write them."""
    length = len(items) // 12
    return [items[worker * length + place] for place in range(length) for worker in range(12)]


def purged(chance: Random, now: float, items: list[Item]) -> Iterator[Write]:
    for number, row in enumerate(items):
        yield Write(870 - 855 * number / len(items), row, None)


ORDERS = {
    order.__name__: order
    for order in (as_scanned, nearly_as_scanned, shuffled, by_name, by_key, in_segments)
}
for title, tag, order, change in rows_of("""
    copy of a table from a scan | USER | as_scanned | None
    copy of a table from an export, file by file | ORDER | nearly_as_scanned | None
    backfill of an attribute by a scan | POST | as_scanned | renamed
    backfill by BatchWriteItem, page by page | PHOTO | nearly_as_scanned | renamed
    purge of a table by a scan | OLD | purged | None
    migration to new keys' attributes in one loop | LEAD | as_scanned | renamed
    restore from a dump in the order of the dump | ASSET | nearly_as_scanned | None
    ML features written as they were scanned | FEATURE | as_scanned | None
"""):
    declare(
        title,
        PK,
        single(keyed(f"{tag}#{{}}"), "label note", 800),
        "H6",
        "H2: there is no sort key; A8: each item is written once; "
        "H7: over the whole time all are even",
        stream=purged
        if order == "purged"
        else one_after_the_other(ORDERS[order], change and renamed),
    )
for title, tag, order, change, why in rows_of("""
    copy of a table in a shuffled order | USER | shuffled | None | the order is random
    copy of a table by a sorted list of keys | ORDER | by_key | None | hashes do not follow keys
    import sorted by name | CLIENT | by_name | None | hashes do not follow names
    copy by twelve segments at once | PHOTO | in_segments | None | twelve places at once
    backfill in a shuffled order | POST | shuffled | renamed | the order is random
"""):
    declare(
        title,
        PK,
        single(keyed(f"{tag}#{{}}"), "label note", 800),
        "",
        f"H6: {why}; H7: each item is written once; H2: there is no sort key; A8: once each",
        stream=one_after_the_other(ORDERS[order], change and renamed),
    )


# H1: hot key. H3: an index holds writes back. H4: throttled, but not by keys

OWNED = Schema("pk", indexes=(Index("byOwner", "owner", "at"),))


def owned(tag: str) -> Any:
    return single(known_key(tag), "label at:time", 600, owner=among(150, "o-"))


def hottest(tag: str, first: float, rest: float) -> Any:
    return accessed({known(tag, n): rest if n else first for n in range(10)})


for title, tag, kind, events, reads, writes in (
    ("tickets of a concert on sale", "CONCERT", "Write", 2_500, 30_000, 110_000),
    ("profile of a star that all read", "PROFILE", "Read", 8_000, 400_000, 3_000),
    ("quiz of a television show", "QUIZ", "Write", 6_000, 20_000, 150_000),
    ("configuration that each Lambda reads", "CONFIG", "Read", 4_000, 350_000, 100),
    ("one tenant's import", "TENANT", "Write", 3_000, 9_000, 90_000),
    ("live score of a final", "MATCH", "Read", 9_000, 500_000, 2_000),
):
    declare(
        title,
        OWNED,
        owned(tag),
        "H1",
        "H4: a key range is the reason; H3 byOwner: the table throttles and not its index",
        metrics=(
            *units(reads, writes),
            *of_index("byOwner", 900, 600),
            *throttled(kind, "KeyRange", events),
        ),
        insights=(*hottest(tag, 55_000, 900), refused(known(tag, 0), events)),
    )
for title, tag, events in (
    ("flight status, of which one flight is late", "FLIGHT", 5_000),
    ("carts on a day of sales", "CART", 3_500),
):
    declare(
        title,
        OWNED,
        owned(tag),
        "H1",
        "H4: a key range is the reason; H3 byOwner: its writes are not throttled",
        metrics=(
            *units(60_000, 120_000),
            *of_index("byOwner", 900, 600),
            *throttled("Write", "KeyRange", events),
        ),
    )
for title, tag, events, writes in (
    ("parcels, of which one depot scans all", "PARCEL", 4_000, 120_000),
    ("alarms, whose index has one loud device", "ALARM", 2_500, 90_000),
    ("bids, whose index by lot is hot", "BID", 7_000, 150_000),
    ("posts, whose index by group is hot", "POST", 3_000, 80_000),
    ("jobs, whose index by worker is hot", "JOB", 5_000, 100_000),
    ("orders, whose index by shop is hot", "ORDER", 6_000, 140_000),
    ("scans, whose index by gate is hot", "SCAN", 2_800, 95_000),
    ("rides, whose index by district is hot", "RIDE", 4_500, 110_000),
):
    declare(
        title,
        OWNED,
        owned(tag),
        "H3 byOwner, H1 byOwner",
        "H4: a key range of the index is the reason; H1: the table's own keys are not hot; "
        "A7: there is one index",
        metrics=(
            *units(9_000, writes),
            *of_index("byOwner", 4_000, writes * 0.9),
            *throttled("Write", "KeyRange", events, "byOwner"),
        ),
    )
CAPACITIES = {"Provisioned": provisioned, "MaxOnDemand": at_most, "AccountLimit": lambda: {}}
for title, tag, kind, reason, events, capacity, reads, writes in rows_of("""
    invoices with 50 write units | INVOICE | Write | Provisioned | 1_500 | (100, 50) | \
        2_000 | 3_000
    reports with 100 read units | REPORT | Read | Provisioned | 2_500 | (100, 50) | 6_000 | 600
    telemetry with 400 write units | TELEMETRY | Write | Provisioned | 6_000 | (50, 400) | \
        900 | 24_000
    catalogue with 20 read units | CATALOGUE | Read | Provisioned | 900 | (20, 5) | 1_200 | 60
    events with a maximum of 500 on demand | EVENT | Write | MaxOnDemand | 3_000 | (900, 500) | \
        9_000 | 30_000
    searches with a maximum of 300 on demand | SEARCH | Read | MaxOnDemand | 2_000 | \
        (300, 300) | 18_000 | 900
    clicks at the account's limit | CLICK | Write | AccountLimit | 9_000 | () | \
        60_000 | 2_400_000
    pages at the account's limit of reads | PAGE | Read | AccountLimit | 9_000 | () | \
        2_400_000 | 60_000
"""):
    declare(
        title,
        PK,
        single(known_key(tag), "label at:time", 600),
        "H4",
        "H1: the limit of the table is the reason, and no key; H2: it has no sort key",
        metrics=(*units(reads, writes), *throttled(kind, reason, events)),
        overlay=CAPACITIES[reason](*capacity),
    )
for title, tag, first, reads, writes, why in rows_of("""
    catalogue with one popular product | PRODUCT | 30_000 | 90_000 | 900 | nothing is throttled
    sessions, evenly used | SESSION | 1_000 | 60_000 | 60_000 | all keys are even
    rooms, of which one is full | ROOM | 20_000 | 40_000 | 50_000 | \
        a partition takes it with ease
    a table at rest | REST | 2 | 40 | 10 | hardly any load
    feature flags read through a cache | FLAG | 300 | 6_000 | 1 | the cache takes the load
"""):
    declare(
        title,
        OWNED,
        owned(tag),
        "",
        f"H1: {why}; H4: nothing is throttled; H3 byOwner: nothing is throttled",
        metrics=(*units(reads, writes), *of_index("byOwner", 900, writes * 0.5)),
        insights=hottest(tag, first, 800 if first > 800 else first),
    )


# H5: a table that is cold

for title, tag, capacity, peak in (
    ("tickets before a sale of 25,000 writes a second", "TICKET", warm(12_000, 4_000), 25_000),
    (
        "a game before its start, with 40,000 writes a second to come",
        "PLAYER",
        warm(12_000, 4_000),
        40_000,
    ),
    ("votes of a show with 15,000 writes a second", "VOTE", warm(14_000, 6_000), 15_000),
    ("coupons with 300 write units for 3,000", "COUPON", provisioned(900, 300), 3_000),
    ("polls with 50 write units for 2,500", "POLL", provisioned(100, 50), 2_500),
    (
        "bets with a maximum of 1,000 for 8,000",
        "BET",
        warm(12_000, 4_000) | at_most(4_000, 1_000),
        8_000,
    ),
    ("a migration of 30,000 writes a second into a new table", "ROW", warm(12_000, 4_000), 30_000),
    (
        "Black Friday orders with 1,000 write units for 12,000",
        "ORDER",
        provisioned(4_000, 1_000),
        12_000,
    ),
):
    declare(
        title,
        PK,
        single(known_key(tag), "label at:time", 500),
        "H5",
        "H1: nothing is throttled yet; H4: nothing is throttled yet",
        overlay=capacity,
        options={"peak_writes": peak},
        metrics=units(600, 300),
    )
for title, tag, capacity, peak, why in (
    ("tickets, warmed for the sale", "TICKET", warm(60_000, 50_000), 25_000, "50,000 are warm"),
    ("a game, warmed before its start", "PLAYER", warm(90_000, 80_000), 40_000, "80,000 are warm"),
    ("votes of 1,000 writes a second", "VOTE", warm(12_000, 4_000), 1_000, "4,000 are warm"),
    (
        "coupons with 9,000 units for 3,000",
        "COUPON",
        provisioned(9_000, 9_000),
        3_000,
        "9,000 are provisioned",
    ),
    ("polls with 800 units for 200", "POLL", provisioned(800, 800), 200, "800 are provisioned"),
    (
        "a table on demand without a peak to come",
        "QUIET",
        warm(12_000, 4_000),
        0,
        "no peak is expected",
    ),
    ("a migration of 2,000 writes a second", "ROW", warm(12_000, 4_000), 2_000, "4,000 are warm"),
    (
        "orders with a large maximum",
        "ORDER",
        warm(50_000, 40_000) | at_most(60_000, 50_000),
        12_000,
        "40,000 are warm",
    ),
):
    declare(
        title,
        PK,
        single(known_key(tag), "label at:time", 500),
        "",
        f"H5: {why}; H1: nothing is throttled; H4: nothing is throttled",
        overlay=capacity,
        options={"peak_writes": peak} if peak else {},
        metrics=units(600, 300),
    )
