"""Tables of the fifth part that have, or only seem to have, faults in their global indexes."""

from collections.abc import Callable, Iterator
from random import Random

from testing.report_corpus.case import Index, Item, Schema
from testing.report_corpus.others.fifth_rows import (
    BOOK,
    KB,
    Rows,
    among,
    bodies,
    changed,
    declare,
    entities,
    fields,
    keyed,
    of_index,
    past,
    rows_of,
    series,
    single,
    units,
    weighted,
)
from testing.report_corpus.words import iso, moment, uuid

ALL_IN = {"I1": "the index is for all items"}
EVEN = "150 values, evenly"


# A7: an index for each access pattern


def by_attribute(tag: str, names: str, count: int = 600) -> Rows:
    """Return items that have one of 150 values of each attribute."""
    return single(
        keyed(f"{tag}#{{}}"),
        "label",
        count,
        **{name: among(150, name[:3]) for name in names.split()},
    )


for title, tag, names, projection in rows_of("""
    a CRM with an index for each column of its grid | CONTACT | \
      owner company city zip phone source campaign segment stage partner team sector | ALL
    flats with an index for each filter | FLAT | \
      agent district street rooms price rent area heating floor built parking garden owner | \
      ALL
    used cars with fourteen indexes | CAR | \
      maker model colour dealer km price seats fuel power gears doors year import owner | \
      KEYS_ONLY
    laboratory samples with fourteen indexes | SAMPLE | \
      patient doctor ward panel device batch courier shelf rack result reagent method study lot | \
      ALL
    vacancies with an index for each search field | JOB | \
      employer city title salary field degree hours contract benefit tongue travel grade boss | \
      KEYS_ONLY
"""):
    declare(
        title,
        Schema(
            "pk", indexes=tuple(Index(f"by-{n}", n, projection=projection) for n in names.split())
        ),
        by_attribute(tag, names),
        "A7",
        f"A9 by-{names.split()[0]}: {EVEN}; A2: all items are of one kind",
    )
for title, tag, first, second, spec in (
    (
        "orders with two indexes by customer, one of keys",
        "ORDER",
        Index("byCustomer", "customer", "placed"),
        Index("byCustomerKeys", "customer", "placed", projection="KEYS_ONLY"),
        "placed:time total:cents",
    ),
    (
        "tickets with an index by agent and one by agent and time",
        "TICKET",
        Index("byAgent", "customer"),
        Index("byAgentTime", "customer", "opened"),
        "opened:time subject",
    ),
    (
        "parcels with the same index twice after a renaming",
        "PARCEL",
        Index("gsi-driver-v1", "customer", "loaded"),
        Index("gsi-driver-v2", "customer", "loaded"),
        "loaded:time to:city",
    ),
    (
        "posts with an index by author and a wider copy of it",
        "POST",
        Index("author", "customer", "at", projection="INCLUDE", include=("title",)),
        Index("authorFull", "customer", "at"),
        "at:time title words",
    ),
):
    declare(
        title,
        Schema("pk", indexes=(first, second)),
        single(keyed(f"{tag}#{{}}"), spec, 600, customer=among(150, "c-")),
        "A7",
        f"A9 {first.name}: {EVEN}; I4 {first.name}: the key is one attribute",
    )
for title, tag, indexes, spec in (
    (
        "orders by customer in two orders",
        "ORDER",
        (Index("byTime", "customer", "placed"), Index("byTotal", "customer", "total:N")),
        "placed:time total:cents",
    ),
    (
        "photos by owner and by place",
        "PHOTO",
        (Index("byOwner", "customer", "taken"), Index("byPlace", "place", "taken")),
        "taken:time width:int",
    ),
    (
        "parcels by driver and by depot",
        "PARCEL",
        (Index("driver", "customer"), Index("depot", "place")),
        "to:city grams:int",
    ),
    (
        "three indexes of three attributes",
        "LEAD",
        (Index("by_a", "customer"), Index("by_b", "place"), Index("by_c", "partner")),
        "words",
    ),
    (
        "bids by bidder and by amount of a lot",
        "BID",
        (Index("bidder", "customer", "at"), Index("lot", "place", "amount:N")),
        "at:time amount:cents",
    ),
):
    attributes = {index.partition for index in indexes}
    declare(
        title,
        Schema("pk", indexes=indexes),
        single(
            keyed(f"{tag}#{{}}"),
            spec,
            600,
            **{name: among(150, name[:2]) for name in sorted(attributes)},
        ),
        "",
        f"A7: no index can replace another; A9 {indexes[0].name}: {EVEN}; "
        f"I1 {indexes[0].name}: no value is frequent; "
        f"I4 {indexes[0].name}: the key is one attribute",
    )


# A9: constant key of an index. I1: an index that could be sparse

for title, tag, key, spec in (
    ("posts with an index over all by time", "POST", "POST", "title words"),
    ("products with GSI1PK=PRODUCT for a listing", "PRODUCT", "PRODUCT", "label price:cents"),
    ("customers listed by name under one key", "CUSTOMER", "ALL_CUSTOMERS", "who:name city:city"),
    ("Dynamoose users with a constant rangeKey trick", "user", "1", "mail:mail who:name"),
    ("leaderboard of a game under GLOBAL", "SCORE", "GLOBAL", "nick points:int"),
    ("devices listed under dummy", "DEVICE", "dummy", "model:a|b firmware:hex"),
    ("articles of a blog under __typename", "Article", "Article", "title words"),
    ("outbox rows under PENDING_OR_DONE", "OUTBOX", "OUT", "event body"),
):
    declare(
        title,
        Schema("pk", indexes=(Index("listing", "GSI1PK", "GSI1SK"),)),
        single(
            keyed(f"{tag}#{{}}"),
            spec,
            700,
            GSI1PK=lambda n, c, a, key=key: key,
            GSI1SK=lambda n, c, a: iso(a),
        ),
        "A9 listing",
        "A7: there is one index; A3 listing: the day is in the sort key; "
        "I4 listing: the keys join nothing",
        allowed=ALL_IN,
    )
for title, tag, attribute, usual, share, rare, spec in rows_of("""
    tasks by done, most are | TASK | done | yes | 0.96 | no | title who:name
    payments by state, most are settled | PAYMENT | state | settled | 0.95 | open|failed | \
        amount:cents
    accounts by deleted, most are not | ACCOUNT | deleted | false | 0.97 | true | mail:mail
    mails by read, most are | MAIL | isRead | "1" | 0.94 | "0" | subject sender:mail
    reviews by flagged, hardly any | REVIEW | flagged | N | 0.98 | Y | stars:int words
    jobs by state, most are finished | JOB | jobState | FINISHED | 0.95 | QUEUED|RUNNING | \
        payload
    orders by fulfilment, most are shipped | ORDER | fulfilment | shipped | 0.93 | new|packed | \
        total:cents
    documents by approval, most have none | DOC | approval | none | 0.95 | asked|given | title
"""):
    index = f"by-{attribute}"
    declare(
        title,
        Schema("pk", indexes=(Index(index, attribute, "updatedAt"),)),
        single(
            keyed(f"{tag}#{{}}"),
            spec + " updatedAt:time",
            700,
            **{attribute: weighted(usual, share, rare)},
        ),
        f"I1 {index}, A9 {index}",
        "A7: there is one index; A18: all items are of one kind",
    )


def sparse(tag: str, spec: str, attribute: str, values: int, share: float) -> Rows:
    """Return items of which a share has the attribute, with one of so many values, evenly."""
    pick = among(values, "v")
    return changed(
        single(keyed(f"{tag}#{{}}"), spec + " updatedAt:time", 900),
        lambda row, chance, now, number: (
            {attribute: pick(number, chance, now)} if chance.random() < share else {}
        ),
    )


for title, tag, attribute, values, share, spec, why in rows_of("""
    tasks by assignee while they are open | TASK | openFor | 160 | 0.12 | title | \
        only open tasks have the attribute
    parcels by van while under way | PARCEL | onVan | 120 | 0.2 | to:city | \
        the index is sparse already
    games by waiting room while unfilled | GAME | waitingIn | 100 | 0.1 | map:a|b | \
        the index is sparse already
    leads by next caller | LEAD | callNext | 160 | 0.3 | who:name | \
        only leads to be called have it
    invoices by debtor while unpaid | INVOICE | unpaidBy | 200 | 0.15 | total:cents | \
        sparse already
    machines by alarm | MACHINE | alarm | 240 | 0.08 | model:a|b | sparse already
"""):
    index = f"by-{attribute}"
    declare(
        title,
        Schema("pk", indexes=(Index(index, attribute, "updatedAt"),)),
        sparse(tag, spec, attribute, values, share),
        "",
        f"I1 {index}: {why}; A9 {index}: no value has more than others; A7: one index; "
        f"I4 {index}: the key is an attribute of its own",
    )
for title, tag, prefix, spec in (
    ("products listed over a hundred shards", "PRODUCT", "LIST#", "label price:cents"),
    ("users by organization", "USER", "ORG#", "who:name"),
):
    declare(
        title,
        Schema("pk", indexes=(Index("gsi1", "GSI1PK", "GSI1SK"),)),
        single(
            keyed(f"{tag}#{{}}"),
            spec,
            800,
            GSI1PK=among(100, prefix),
            GSI1SK=lambda n, c, a: iso(a),
        ),
        "",
        "A9 gsi1: a hundred values, evenly; I1 gsi1: no value is frequent; A7: one index",
    )
declare(
    "overloaded GSI1 of DeBrie's e-commerce design",
    BOOK.schema(Index("GSI1", "GSI1PK", "GSI1SK")),
    entities(
        BOOK,
        "Customer uuid who:name",
        "Order 1-4 ulid total:cents",
        extra=lambda kind, chance, at: {
            "GSI1PK": f"{kind.upper()}#{uuid(chance)}",
            "GSI1SK": f"{kind.upper()}#{iso(at)}",
        },
    ),
    "",
    "A9 GSI1: each item has a key of its own; A7: one index for many patterns; "
    "A2: each key has a tag; A18: EntityType names the kind",
)


# I2: an index copies whole items

SENDER = Schema("pk", indexes=(Index("bySender", "sender", "sent"),))
for title, tag, attribute, size, written, read in (
    ("letters, whole in an index that is hardly read", "LETTER", "body", 5 * KB, 9_000, 6),
    (
        "inspection reports, whole in an index by inspector",
        "REPORT",
        "findings",
        5 * KB,
        24_000,
        20,
    ),
    ("claims of an insurer, whole in an index by broker", "CLAIM", "story", 6 * KB, 6_000, 3),
    ("webhook payloads, whole in an index by source", "HOOK", "payload", 6 * KB, 60_000, 40),
    ("chat transcripts, whole in an index by agent", "CHAT", "transcript", 5 * KB, 12_000, 4),
    ("recipes, whole in an index by cook", "RECIPE", "steps", 4 * KB, 4_000, 2),
    ("crash dumps, whole in an index by version", "CRASH", "trace", 7 * KB, 90_000, 50),
    ("CVs, whole in an index by recruiter", "CV", "resume", 6 * KB, 8_000, 5),
):
    declare(
        title,
        SENDER,
        bodies(
            single(keyed(f"{tag}#{{}}"), "sent:time title", 400, sender=among(150, "s-")),
            attribute,
            size,
        ),
        "I2 bySender",
        f"A9 bySender: {EVEN}; I3: the index takes no more than the table",
        metrics=(*units(5_000, written), *of_index("bySender", read, written * 0.9)),
    )
for title, tag, size, written, read, projection, include, why in rows_of("""
    letters in an index of keys | LETTER | 5_120 | 9_000 | 6 | KEYS_ONLY | () | \
        the index has keys alone
    reports in an index with their titles | REPORT | 5_120 | 24_000 | 20 | INCLUDE | ("title",) | \
        it has titles alone
    claims, whole and read a lot | CLAIM | 6_144 | 6_000 | 30_000 | ALL | () | \
        it is read more than written
    chats, whole and read as often as written | CHAT | 7_168 | 9_000 | 9_000 | ALL | () | \
        it is read a lot
    likes, whole and small | LIKE | 20 | 9_000 | 5 | ALL | () | an item has 150 bytes
    votes, whole and small | VOTE | 40 | 60_000 | 30 | ALL | () | an item has 170 bytes
    CVs, whole and read by recruiters all day | CV | 5_120 | 1_000 | 20_000 | ALL | () | \
        it is read a lot
    hooks in an index of keys | HOOK | 7_168 | 60_000 | 40 | KEYS_ONLY | () | \
        the index has keys alone
"""):
    writes = written * (0.9 if projection == "ALL" else 0.9 / max(1, size / KB))
    declare(
        title,
        Schema(
            "pk",
            indexes=(Index("bySender", "sender", "sent", projection=projection, include=include),),
        ),
        bodies(
            single(keyed(f"{tag}#{{}}"), "sent:time title", 400, sender=among(150, "s-")),
            "body",
            size,
        ),
        "",
        f"I2 bySender: {why}; I3: the index takes less than the table; A7: one index",
        metrics=(*units(5_000, written), *of_index("bySender", read, writes)),
    )


# I3: writes cost more in indexes than in the table

FIVE = {"A7": "five indexes may be said to be many"}
for title, tag, names, written, factor in rows_of("""
    vehicles whose five index keys change with each report | VEHICLE | \
        cell zone speed driver route | 20_000 | 2.0
    quotes of shares, in five indexes by moving values | QUOTE | price change volume rank trend | \
        60_000 | 2.0
    players in five leaderboards | PLAYER | kills wins ratio streak hours | 15_000 | 1.9
    parcels in five indexes of their last scan | PARCEL | hub belt truck handler state2 | 30_000 | \
        2.0
    calls of a switchboard in five indexes | CALL | queue agent line skill campaign | 9_000 | 1.8
    auctions by five values that each bid changes | AUCTION | leader top second bidders minutes | \
        24_000 | 2.0
    robots by five states | ROBOT | cell task battery fault zone | 45_000 | 1.9
    elevators by five measures | LIFT | floor load door speed fault | 12_000 | 2.0
"""):
    split = names.split()
    declare(
        title,
        Schema("pk", indexes=tuple(Index(f"by-{n}", n) for n in split)),
        by_attribute(tag, names),
        "I3",
        f"A9 by-{split[0]}: {EVEN}; I2 by-{split[0]}: an item has less than 200 bytes",
        metrics=(
            *units(40_000, written),
            *(m for n in split for m in of_index(f"by-{n}", 9_000, written * factor)),
        ),
        allowed=FIVE,
    )
for title, tag, names, shares, why in rows_of("""
    orders in one index that follows each write | ORDER | customer | (0.9,) | \
        one index, as much as the table
    tasks in a sparse index | TASK | assignee | (0.1,) | a tenth of the writes reach it
    leads in two indexes that rarely change | LEAD | owner city | (0.2, 0.3) | \
        half of what the table takes
    photos in two indexes whose keys rarely change | PHOTO | album place | (0.3, 0.3) | \
        moves are rare
    jobs in three sparse indexes | JOB | worker group site | (0.1, 0.1, 0.2) | \
        less than half of it
"""):
    split = names.split()
    declare(
        title,
        Schema("pk", indexes=tuple(Index(f"by-{n}", n) for n in split)),
        by_attribute(tag, names),
        "",
        f"I3: {why}; A7: few indexes; A9 by-{split[0]}: {EVEN}; I2 by-{split[0]}: small items",
        metrics=(
            *units(40_000, 20_000),
            *(
                m
                for n, s in zip(split, shares, strict=True)
                for m in of_index(f"by-{n}", 9_000, 20_000 * s)
            ),
        ),
    )


# I4: an index key that joins other attributes


def composed(
    tag: str, spec: str, attribute: str, make: Callable[[Item, Random, float], str]
) -> Rows:
    """Return items of ninety tenants, with an attribute that is made of the item."""

    def rows(chance: Random, now: float) -> Iterator[Item]:
        for number in range(800):
            at = past(chance, now)
            tenant = f"t-{Random(number % 90).getrandbits(32):08x}"
            row = {"pk": f"{tag}#{uuid(chance)}", "tenant": tenant, "createdAt": iso(at)}
            row |= fields(spec, chance, at)
            yield row | {attribute: make(row, chance, at)}

    return rows


PARTITION = Schema("pk", indexes=(Index("byJoined", "joined", "createdAt"),))
SORT = Schema("pk", indexes=(Index("byJoined", "tenant", "joined"),))
for title, tag, joined, spec, template in rows_of("""
    tickets by tenant and state | TICKET | partition | state:open|waiting|closed subject | \
        {tenant}#{state}
    orders by tenant, then state and time | ORDER | sort | state:new|paid|sent total:cents | \
        {state}#{createdAt}
    stores by country, region and town | STORE | sort | country:DE|FR region:n|s|e town:city | \
        {country}#{region}#{town}
    tasks by tenant and who does them | TASK | partition | who:name title | {tenant}|{who}
    tests by suite and result | TEST | partition | suite:hex result:ok|bad | {suite}_{result}
    files by kind and size | FILE | sort | mime:png|pdf|txt folder:hex | {mime}/{folder}
    bookings by tenant and room | BOOKING | partition | room:city nights:int | {room}:{tenant}
    campaign hits by channel and time | HIT | sort | channel:mail|web|app | \
        {channel}#{createdAt}
    ElectroDB orders by tenant and tier | ELECTRO | partition | tier:gold|silver|iron | \
        $app#tenant_{tenant}#tier_{tier}
"""):
    declare(
        title,
        PARTITION if joined == "partition" else SORT,
        composed(tag, spec, "joined", lambda row, c, a, template=template: template.format(**row)),
        "I4 byJoined",
        "A9 byJoined: there are many values; A7: one index; I1 byJoined: no value is frequent",
    )
for title, tag, schema, make, why in (
    (
        "tickets by tenant and month",
        "TICKET",
        PARTITION,
        lambda row, c, a: f"{row['tenant']}#{moment(a):%Y-%m}",
        "the month is computed from the time",
    ),
    (
        "orders by a random shard",
        "ORDER",
        PARTITION,
        lambda row, c, a: f"SHARD#{c.getrandbits(8):02x}",
        "the shard is no attribute",
    ),
    (
        "users by the hash of their address",
        "USER",
        PARTITION,
        lambda row, c, a: f"{c.getrandbits(40):x}",
        "a hash",
    ),
    (
        "posts by their thread",
        "POST",
        PARTITION,
        lambda row, c, a: f"THREAD#{c.getrandbits(20):x}",
        "one id with its tag",
    ),
    (
        "files by tenant and a random id",
        "FILE",
        SORT,
        lambda row, c, a: f"FILE#{uuid(c)}",
        "one id with its tag",
    ),
    (
        "leads by tenant and first letter",
        "LEAD",
        PARTITION,
        lambda row, c, a: f"{row['tenant']}#{c.choice('abcdefgh')}",
        "the letter is no attribute",
    ),
    (
        "hits by rank",
        "HIT",
        SORT,
        lambda row, c, a: f"{c.random():.9f}",
        "a number that nothing else has",
    ),
    (
        "calls by minute of the day",
        "CALL",
        PARTITION,
        lambda row, c, a: f"{moment(a):%H:%M}",
        "computed from the time",
    ),
):
    declare(
        title,
        schema,
        composed(tag, "who:name words", "joined", make),
        "",
        f"I4 byJoined: {why}; A9 byJoined: there are many values; A7: one index",
    )
declare(
    "rows of a shop by an inverted index",
    Schema("pk", "sk", (Index("inverted", "sk", "pk"),)),
    series(keyed("SHOP#{}"), keyed("ITEM#{}"), "label price:cents"),
    "",
    "I4 inverted: the keys of the table in the other order; A7: one index; A9 inverted: uuids",
)
