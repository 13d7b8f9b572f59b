"""Tables of the fifth part that have, or only seem to have, faults in their keys and items."""

from collections.abc import Callable, Iterator
from random import Random
from typing import Any

from testing.report_corpus.case import DAY, Index, Item, Schema
from testing.report_corpus.others.fifth_rows import (
    BOOK,
    KB,
    ONETABLE,
    Key,
    Rows,
    bodies,
    changed,
    declare,
    entities,
    fields,
    joined,
    keyed,
    past,
    rows_of,
    series,
    single,
    style_of,
    unique_value,
)
from testing.report_corpus.virtual import Collections, few
from testing.report_corpus.words import iso, moment, ulid, uuid

PK, BOTH = Schema("pk"), Schema("pk", "sk")
ONE_KIND = "all items are of one kind"
NOT_DENSE = "the numbers are far apart"


def running(template: str, start: int = 1) -> Key:
    """Return a function that numbers keys one after the other."""
    return lambda number, chance, at: template.format(start + number)


def positions(template: str, start: int = 1) -> Key:
    """Return a function of sort keys that number the items of a collection."""
    return running(template, start)


# A1: sequential ids

declare(
    "Northwind orders with the numbers of the old database",
    PK,
    single(running("ORDER#{}", 10_248), "employee:name shipCity:city freight:cents", 830),
    "A1",
    f"A2: {ONE_KIND}; A18: {ONE_KIND}; A3: the key is a number and not a date",
)
declare(
    "Sakila rentals by their numeric id",
    Schema("rental_id:N"),
    single(lambda n, c, a: 1 + n, "inventory:hex rented:time staff:name", 900, "rental_id"),
    "A1",
    "A2: numeric keys have no tag, but there is one kind",
)
declare(
    "Chinook customers and invoices, with customers counted from 1",
    BOOK.schema(),
    entities(BOOK, "Customer {:} who:name city:city", "Invoice 1-4 ulid total:cents", owners=320),
    "A1",
    "A2: each key has a tag; A18: EntityType names the kind",
)
declare(
    "ElectroDB help desk with ticket numbers",
    Schema("pk", "sk"),
    series(
        running("$desk#ticketid_{}", 100_001),
        lambda n, c, a: f"$message_1#id_{ulid(a, c)}",
        "author:name words",
        300,
        (1, 4),
        __edb_e__=lambda n, c, a: "message",
    ),
    "A1",
    "E1: the sort keys are ULIDs; A15: each ticket has a few messages",
)
declare(
    "OneTable accounts with an increasing number",
    ONETABLE.schema(),
    entities(ONETABLE, "Account {:06} title owner:mail", "User 1-3 ulid who:name", owners=350),
    "A1",
    "A18: _type names the kind; E1: the numbers are padded, and are not in sort keys",
)
declare(
    "PynamoDB posts imported from a forum",
    Schema("forum_post:N", "revision:N"),
    series(
        lambda n, c, a: 7_000_000 + n,
        lambda n, c, a: n,
        "title author:name",
        420,
        (1, 3),
        "forum_post",
        "revision",
    ),
    "A1",
    "E1: revisions are numbers and not text",
)
declare(
    "thermometers of a warehouse by number",
    BOTH,
    series(running("sensor-{:04}"), lambda n, c, a: iso(a), "celsius:float", 400, (2, 4)),
    "A1",
    "A3: the date is in the sort key; A19: 400 keys with few readings",
)
declare(
    "policies of an insurer in the order of signing",
    PK,
    single(running("DE-POL-{:08}", 4_410_000), "holder:name premium:cents begins:day", 700),
    "A1",
    "A13: an item has less than 200 bytes",
)
declare(
    "lottery tickets counted per draw",
    PK,
    single(running("draw-2026w48/ticket/{}", 1), "owner:mail bought:time stake:cents", 900),
    "A1",
    "A3: the week of the draw is in the key, and each ticket has its own",
)
for title, key, spec, why in (
    (
        "articles by EAN",
        lambda n, c, a: f"EAN#{c.randrange(4 * 10**12, 5 * 10**12)}",
        "label price:cents",
        NOT_DENSE,
    ),
    (
        "subscribers by phone number",
        lambda n, c, a: f"+4917{c.randrange(10**7, 10**8)}",
        "who:name plan:pre|post",
        NOT_DENSE,
    ),
    (
        "tweets by snowflake",
        lambda n, c, a: f"tweet#{(int(a * 1000) << 22) | c.getrandbits(22)}",
        "handle:hex words",
        "snowflakes have gaps of millions",
    ),
    (
        "loans by a random number of eight digits",
        lambda n, c, a: f"LOAN-{c.randrange(10**7, 10**8)}",
        "borrower:name sum:cents",
        NOT_DENSE,
    ),
    (
        "addresses by postal code and house",
        lambda n, c, a: f"{c.randrange(10**9, 10**10)}",
        "city:city street",
        NOT_DENSE,
    ),
    (
        "uploads by the millisecond in which they began",
        lambda n, c, a: f"upload-{int(a * 1000)}",
        "bytes:int owner:name",
        "milliseconds over ten months, of which few are taken",
    ),
):
    declare(title, PK, single(key, spec, 650), "", f"A1: {why}; A2: {ONE_KIND}; A18: {ONE_KIND}")
declare(
    "shopping carts with a random shard number in the key",
    BOTH,
    series(
        lambda n, c, a: f"CART#{uuid(c)}#{c.randrange(16):02}",
        lambda n, c, a: f"SKU#{c.getrandbits(40):x}",
        "quantity:int price:cents",
    ),
    "",
    f"A1: the number is that of a shard; A15: each cart has a few lines; A18: {ONE_KIND}",
)


# A2: keys without a type tag. A18: no attribute names the kind

for title, style, root, children, found, tempts in rows_of("""
    Amplify models in one table by uuid | BARE pk=id sk=ref label=__typename | Blog uuid title | \
        ["Post 1-4 uuid words likes:int"] | A2 | {"A18": "__typename names it"}
    a clinic with bare ids and the attribute kind | BARE label=kind | \
        Patient nano who:name born:day | ["Visit 1-4 nano ward:city notes"] | A2 | \
        {"A18": "the attribute kind names it"}
    Mongo documents moved with their object ids | BARE label=collection | \
        customers hex who:name mail:mail | ["orders 1-5 hex total:cents items:list"] | A2 | \
        {"A18": "collection names it", "A1": "object ids are not counted"}
    CRM leads and calls by KSUID | BARE pk=hk sk=rk label=object | \
        lead ksuid who:name source:web|fair | ["call 1-4 ksuid minutes:int words"] | A2 | \
        {"A18": "the attribute object names it, as in Stripe's API"}
    fleet, vehicles and trips by uuid | BARE label=$type | Vehicle uuid7 plate:hex maker | \
        ["Trip 1-4 uuid7 km:int began:time"] | A2 | {"A18": "$type names it"}
    library of books and copies without tags or types | NOTHING | \
        Book uuid title author:name isbn:hex | ["Copy 1-5 uuid shelf:city bought:day"] | \
        A2, A18 | {"A15": "a book has few copies"}
    courses and enrolments by nano id | NOTHING pk=PK sk=SK | Course nano title credits:int | \
        ["Enrolment 1-6 nano student:name grade:a|b|c"] | A2, A18 | \
        {"E1": "nano ids are no numbers"}
    albums and tracks by hexadecimal id | NOTHING pk=partition sk=sort | \
        Album hex title artist:name | ["Track 2-6 hex seconds:int title"] | A2, A18 | {}
    gym members, bookings and payments by ULID | NOTHING | Member ulid who:name since:day | \
        ["Booking 1-3 ulid course room:city", "Payment 1-3 ulid amount:cents method:card|cash"] | \
        A2, A18 | {"H2": "there is one collection for each member"}
    DeBrie's GitHub: repositories and issues, untyped | UNLABELED | \
        Repo nano owner:name stars:int | ["Issue 1-4 ulid title state:open|closed"] | A18 | \
        {"A2": "REPO# and ISSUE# are tags"}
    Workbench's discussion forum, untyped | UNLABELED child={KIND}|{id} | \
        Thread uuid subject views:int | ["Reply 1-5 iso author:name words"] | A18 | \
        {"A2": "tags in front of # and |", "A3": "dates are in the sort key"}
    hotel and rooms in the style of a URL, untyped | \
        NOTHING owner=/{low}s/{id} root=/ child=/{low}s/{id} | \
        Hotel hex title city:city stars:int | ["Room 2-5 hex beds:int rate:cents"] | A18 | \
        {"A2": "the segment of the path is a tag"}
    donors and donations with short tags, untyped | \
        PYNAMO pk=p sk=s owner={low}.{id} child={low}.{id} label= | Donor nano who:name | \
        ["Gift 1-5 ulid amount:cents thanks"] | A18 | {"A2": "donor. and gift. are tags"}
    Stripe-like customers and charges, untyped | NOTHING owner=cus_{id} root=cus child=ch_{id} | \
        Customer nano mail:mail | ["Charge 1-5 nano amount:cents currency:eur|chf"] | A18 | \
        {"A2": "cus_ and ch_ are tags", "A1": "nano ids may end in a digit, and are not counted"}
    AWS accounts and findings by ARN, untyped | \
        NOTHING owner=arn:aws:account::{id} root=arn:aws:account child=arn:aws:finding::{id} | \
        Account hex owner:mail | ["Finding 1-4 uuid severity:low|high words"] | A18 | \
        {"A2": "ARNs tell the kind"}
    a game's guilds and members, untyped | UNLABELED pk=gpk sk=gsk | Guild uuid title motto | \
        ["Member 1-6 uuid rank:a|b joined:day"] | A18 | {"A2": "tagged"}
    vendors and purchase orders in URNs, untyped | \
        NOTHING pk=urn sk=sub owner=urn:erp:{low}:{id} root=root child=urn:erp:{low}:{id} | \
        Vendor uuid title country:de|fr | ["Purchase 1-4 ulid total:cents due:day"] | A18 | \
        {"A2": "URNs tell the kind"}
"""):
    style = style_of(style)
    declare(title, style.schema(), entities(style, root, *children), found, tempts)

for title, style, root, children, why in rows_of("""
    ElectroDB tasks of employees | ELECTRO | Employee nano who:name team:city | \
        ["Task 1-5 ulid title due:day", "Office 0-1 nano address:city"] | __edb_e__
    dynamodb-toolbox shop | TOOLBOX | Customer uuid who:name mail:mail | \
        ["Order 1-4 ulid total:cents", "Address 1-2 hex street city:city"] | _et
    OneTable tenants and users | ONETABLE | Tenant ulid title plan:free|pro | \
        ["User 2-6 ulid mail:mail role:admin|user"] | _type
    TypeDORM courses | TYPEDORM | Teacher uuid who:name | ["Course 1-4 uuid title"] | __en
    PynamoDB polymorphic media | PYNAMO | Artist uuid who:name | \
        ["Song 1-4 uuid seconds:int", "Video 1-2 uuid width:int"] | cls
    Dynamoose documents | DYNAMOOSE | Project nano title | ["Ticket 2-5 nano words"] | docType
    AppSync rooms and messages | APPSYNC | Room uuid title | \
        ["Message 2-6 ulid author:name words"] | __typename
    music library of the NoSQL Workbench | BOOK | Song uuid title artist:name | \
        ["Download 1-5 uuid at:time bytes:int"] | EntityType
"""):
    style = style_of(style)
    declare(
        title,
        style.schema(),
        entities(style, root, *children),
        "",
        f"A2: each key has a tag in the library's manner; A18: {why} names the kind; "
        "A15: no owner has many children; E2: no item reserves a unique value; "
        "A19: 130 keys with a few items each",
    )


# A3: the key is the date


def daily(template: str, form: str, spec: str, days: int = 100, each: int = 9, **more: Key) -> Rows:
    """Return items of the last days under a key of their day, today's too."""

    def rows(chance: Random, now: float) -> Iterator[Item]:
        for back in range(days):
            for _ in range(each):
                at = now - back * DAY - chance.random() * 300
                written = moment(at).strftime(form)
                key = template.format(written)
                row = {"pk": key, "sk": f"{iso(at)}#{chance.getrandbits(32):08x}"}
                yield (
                    row
                    | fields(spec, chance, at)
                    | {name: make(0, chance, at) for name, make in more.items()}
                )

    return rows


for title, template, form, spec in rows_of("""
    CloudTrail events by day | "{}" | %Y-%m-%d | caller:name action source
    access log of a shop by day | LOG#{} | %Y%m%d | path status:200|404 agent
    meter readings of a town by day | readings/{} | %Y/%m/%d | meter:hex kwh:float
    trades of a stock exchange by day | TRADES#{} | %d.%m.%Y | symbol:hex price:cents size:int
    webhook deliveries by day | delivery_{} | %Y_%m_%d | url status:ok|late attempts:int
    outbox of domain events by day | $outbox#date_{} | %Y-%m-%d | aggregate:uuid event body
"""):
    declare(
        title,
        BOTH,
        daily(template, form, spec),
        "A3",
        f"A2: {ONE_KIND}; A1: days are no running numbers; E1: sort keys have one width",
    )


def with_day(attribute: str, form: str = "%Y-%m-%d", back: float = 100) -> Rows:
    """Return items with a random key and, for an index, the day on which they were written."""

    def rows(chance: Random, now: float) -> Iterator[Item]:
        for number in range(900):
            at = now - number / 9 * DAY * back / 100 - chance.random() * 300
            yield {
                "pk": f"E#{uuid(chance)}",
                attribute: moment(at).strftime(form),
                "at": iso(at),
            } | (fields("who:name words", chance, at))

    return rows


for title, attribute, form in (
    ("orders with an index by day", "orderDate", "%Y-%m-%d"),
    ("sign-ups with an index by day", "createdDay", "%Y%m%d"),
    ("incidents with an index by day of opening", "openedOn", "%d-%m-%Y"),
):
    declare(
        title,
        Schema("pk", indexes=(Index("byDay", attribute, "at"),)),
        with_day(attribute, form),
        "A3 byDay",
        "A3: the table's own key is a uuid; A9 byDay: a day has about one in a hundred",
    )


def ahead(template: str, form: str, spec: str, first: int, last: int) -> Rows:
    """Return items under days of another meaning than their writing."""

    def rows(chance: Random, now: float) -> Iterator[Item]:
        for _ in range(1_200):
            at = now + chance.uniform(first, last) * DAY
            key = template.format(moment(at).strftime(form))
            written = past(chance, now, 90)
            row = {"pk": key, "sk": uuid(chance), "createdAt": iso(written)}
            yield row | fields(spec, chance, written)

    return rows


for title, template, form, spec, first, last, why in rows_of("""
    room nights by the night booked | NIGHT#{} | %Y-%m-%d | guest:name rate:cents | 2 | 330 | \
        guests book nights of the whole year ahead
    flight seats by day of departure | "{}" | %Y%m%d | seat:hex flight:hex | 1 | 240 | \
        flights are sold months ahead
    birthdays of members by month and day | BDAY#{} | %m-%d | who:name mail:mail | -360 | 0 | \
        members are born on all days of a year
    delivery windows by day | slot/{} | %Y-%m-%d | van:hex zone:city | 3 | 200 | \
        customers choose a day of the next half-year
    concerts by evening | CONCERT#{} | %Y-%m-%d | act:name hall:city | 10 | 400 | \
        concerts are planned for a year ahead
    history of exchange rates, loaded once | fx:{} | %Y-%m-%d | pair:hex rate:float | -4_000 | \
        -3_200 | the days are years ago, and nobody adds any
"""):
    declare(title, BOTH, ahead(template, form, spec, first, last), "", f"A3: {why}; A15: evenly")
declare(
    "steps of users by user and month",
    BOTH,
    series(
        lambda n, c, a: f"USER#{uuid(c)}#{moment(a):%Y-%m}",
        lambda n, c, a: f"{moment(a):%Y-%m-%d}T{n:02}",
        "steps:int km:float",
        150,
        (5, 9),
        days=25,
    ),
    "",
    f"A3: each user has a key of their own for the month; A2: {ONE_KIND}",
)
declare(
    "log lines by host and day",
    BOTH,
    series(
        lambda n, c, a: f"host-{c.getrandbits(32):08x}#{moment(a):%Y-%m-%d}",
        lambda n, c, a: f"{n:02}:{c.randrange(60):02}:{c.randrange(60):02}Z",
        "level:info|warn words",
        160,
        (4, 9),
        days=1,
    ),
    "",
    "A3: 160 hosts have one key each today; A1: the key ends with a date; A15: evenly",
)


# E1: numbers in sort keys without padding


def unpadded(title: str, key: Key, sort: Key, spec: str, each: tuple[int, int]) -> None:
    declare(
        title,
        BOTH,
        series(key, sort, spec, 70, each),
        "E1",
        "A15: all collections have about as many; A1: only the sort keys are counted",
    )


for title, key, kind, sort, spec, each in rows_of("""
    order lines counted from 1 | ORDER#{} | uuid | LINE#{} | sku:hex price:cents | (14, 26)
    chapters of audiobooks | BOOK#{} | hex | chapter-{} | title seconds:int | (15, 30)
    versions of documents, counted | doc:{} | ulid | v{} | author:name words | (12, 24)
    frames of a chess game | GAME#{} | uuid | MOVE#{} | san:hex clock:int | (30, 60)
    levels of a player | PLAYER#{} | uuid | LEVEL#{} | stars:int best:int | (14, 40)
    pages of scanned files | $scan#fileid_{} | nano | $page_1#page_{} | ocr bytes:int | (11, 30)
"""):
    unpadded(title, keyed(key, kind), positions(sort), spec, each)
unpadded(
    "scores as text in the sort key",
    keyed("BOARD#{}"),
    lambda n, c, a: f"{int(10 ** c.uniform(1, 6))}",
    "player:name",
    (9, 20),
)
unpadded(
    "bids by amount in cents",
    keyed("AUCTION#{}"),
    lambda n, c, a: f"BID#{int(10 ** c.uniform(2, 6))}#{c.getrandbits(40):010x}",
    "bidder:name",
    (9, 16),
)
unpadded(
    "releases of packages by semantic version",
    keyed("pkg/{}", "hex"),
    lambda n, c, a: f"{n // 12 + 1}.{n % 12 + 1}.{c.randrange(30)}",
    "checksum:hex published:time",
    (18, 24),
)
for title, schema, key, sort, spec, why in (
    (
        "order lines with three digits",
        BOTH,
        keyed("ORDER#{}"),
        positions("LINE#{:03}"),
        "sku:hex",
        "padded to three digits",
    ),
    (
        "ledger entries with a number key",
        Schema("pk", "sk:N"),
        keyed("ACCT#{}"),
        lambda n, c, a: n + 1,
        "amount:cents",
        "the sort key is a number",
    ),
    (
        "events by epoch second as text",
        BOTH,
        keyed("ROBOT#{}"),
        lambda n, c, a: str(int(a)),
        "state:on|off",
        "ten digits each",
    ),
    (
        "events by epoch millisecond as text",
        BOTH,
        keyed("door:{}", "hex"),
        lambda n, c, a: f"t{int(a * 1000)}",
        "state:open|shut",
        "thirteen digits each",
    ),
    (
        "prices padded to ten digits",
        BOTH,
        keyed("ITEM#{}"),
        lambda n, c, a: f"{int(10 ** c.uniform(1, 6)):010}#{c.getrandbits(32):08x}",
        "seller:name",
        "padded to ten digits",
    ),
    (
        "quarters of a year as sort keys",
        BOTH,
        keyed("FUND#{}"),
        lambda n, c, a: f"{2018 + n // 4}-Q{n % 4 + 1}",
        "yield:float",
        "a year has four digits and a quarter one",
    ),
    (
        "versions in ElectroDB's padding",
        BOTH,
        keyed("$cms#page_{}"),
        lambda n, c, a: f"$rev_1#n_{n:06}",
        "words",
        "padded",
    ),
    (
        "likes by the id of a user",
        BOTH,
        keyed("POST#{}"),
        lambda n, c, a: f"LIKE#{uuid(c)}",
        "at:time",
        "random ids with digits are no numbers",
    ),
    (
        "plans with one digit for the weekday",
        BOTH,
        keyed("SHIFT#{}"),
        lambda n, c, a: f"DAY#{n}",
        "who:name from:time",
        "there are seven days, with one digit each",
    ),
):
    declare(title, schema, series(key, sort, spec, 140, (4, 7)), "", f"E1: {why}; A2: {ONE_KIND}")


# E2: constraint items without their primary


def guarded(
    kind: str,
    spec: str,
    unique: dict[str, str],
    orphans: float,
    template: str = "{tag}#{value}",
    reference: str = "",
    label: str = "entity",
) -> Rows:
    """Return items and constraint items of their unique attributes.

    Args:
        kind: The kind of the primary items.
        spec: Their fields.
        unique: The tag of the constraint items of each unique attribute.
        orphans: The share of primaries that were deleted while their constraint items stayed.
        template: How the key of a constraint item is written.
        reference: The attribute of a constraint item that has the id of its primary, if any.
        label: The attribute that names the kind.
    """

    def rows(chance: Random, now: float) -> Iterator[Item]:
        for _ in range(260):
            at, id_ = past(chance, now), uuid(chance)
            values = {attribute: unique_value(attribute, chance) for attribute in unique}
            if chance.random() >= orphans:
                key = f"{kind.upper()}#{id_}"
                yield (
                    {"pk": key, "sk": key, label: kind, "id": id_}
                    | fields(spec, chance, at)
                    | values
                )
            for attribute, tag in unique.items():
                key = template.format(tag=tag, value=values[attribute])
                row = {"pk": key, "sk": key, label: f"{kind}{tag.title()}"}
                yield row | ({reference: id_} if reference else {})

    return rows


for title, kind, spec, unique, reference, share in rows_of("""
    users whose addresses outlived them | User | who:name joined:day | {"email": "EMAIL"} | \
        userId | 0.45
    DeBrie's unique e-mail and name, with leftovers | Customer | who:name | \
        {"email": "CUSTOMEREMAIL"} | | 0.4
    players with a reserved nick, of whom many left | Player | level:int | {"nick": "NICK"} | \
        playerId | 0.5
    shops with reserved domains, some deleted | Shop | title owner:name | {"domain": "DOMAIN"} | \
        shopId | 0.35
    tenants with a reserved slug, half of them gone | Tenant | plan:free|pro | {"slug": "SLUG"} | \
        tenantId | 0.5
    accounts with two unique attributes, badly cleaned | Account | who:name | \
        {"email": "MAIL", "phone": "PHONE"} | accountId | 0.4
    devices with reserved serials after a purge | Device | model:a|b | {"serial": "SERIAL"} | \
        deviceId | 0.6
    drivers with reserved plates after a purge | Driver | who:name city:city | \
        {"plate": "PLATE"} | driverId | 0.45
"""):
    declare(
        title,
        BOTH,
        guarded(kind, spec, unique, share, reference=reference),
        "E2",
        "A2: USER# and the like are tags; A18: entity names the kind",
    )
for title, kind, spec, unique, reference, template in rows_of("""
    users with unique addresses | User | who:name joined:day | {"email": "EMAIL"} | userId | \
        {tag}#{value}
    customers with unique addresses and no reference | Customer | who:name | \
        {"email": "CUSTOMEREMAIL"} | | {tag}#{value}
    players with unique nicks | Player | level:int | {"nick": "NICK"} | playerId | {tag}|{value}
    shops with unique domains | Shop | title owner:name | {"domain": "DOMAIN"} | shopId | \
        UNIQUE#{tag}#{value}
    tenants with unique slugs | Tenant | plan:free|pro | {"slug": "SLUG"} | tenantId | \
        {tag}:{value}
    OneTable's _unique items | Account | who:name | {"email": "email"} | accountId | \
        _unique#Account#{tag}#{value}
    ElectroDB users with a constraint entity | User | who:name | {"email": "email"} | userId | \
        $auth#{tag}_{value}
    drivers with unique plates and phones | Driver | who:name | \
        {"plate": "PLATE", "phone": "PHONE"} | driverId | {tag}#{value}
"""):
    declare(
        f"{title}, each with its primary",
        BOTH,
        guarded(kind, spec, unique, 0, template, reference),
        "",
        "E2: each constraint item has its primary; A2: tagged; A18: entity names it",
    )


# A6: local secondary index


def local(name: str, sort: str, projection: str = "ALL", partition: str = "pk") -> Index:
    return Index(name, partition, sort, local=True, projection=projection)


for title, sort, spec, projection in rows_of("""
    threads with the guide's LastPostIndex | lastPost | lastPost:time author:name | KEYS_ONLY
    music with the guide's AlbumTitleIndex | albumTitle | albumTitle year:int | ALL
    tasks of a project by due day | due | due:day title who:name | ALL
    mails of a mailbox by sender | sender | sender:mail subject size:int | KEYS_ONLY
    cells of a sheet by value | shown | shown formula | ALL
    matches of a player by opponent | opponent | opponent:name result:won|lost | ALL
    bookings of a doctor by patient | patient | patient:name minutes:int | ALL
    photos of an album by size | size:N | size:int camera | KEYS_ONLY
    notes of a user by title | title | title words tags:list | ALL
"""):
    attribute = sort.partition(":")[0]
    declare(
        title,
        Schema("pk", "sk", (local(f"by-{attribute}", sort, projection),)),
        series(keyed("OWNER#{}"), keyed("R#{}", "ulid"), spec),
        "A6",
        "A7: there is one index; A15: each owner has a few items",
    )
for title, name, sort, projection, spec in rows_of("""
    threads with a global index of the same partition | LSI1 | lastPost | ALL | \
        lastPost:time who:name
    tasks with a global index named local | local-by-due | due | ALL | due:day title
    mails with a global index by sender | bySender | sender | ALL | sender:mail subject
    Amplify's global index on the owner | lsi2 | createdAt | ALL | createdAt:time title
    photos by size, in a global index | bySize | size:N | ALL | size:int camera
    notes by title, in a global index of keys | byTitle | title | KEYS_ONLY | title words
    visits by patient, in a global index | perPatient | patient | ALL | patient:name ward:city
    bids by time, in a global index | LSI-bids | placed | ALL | placed:time amount:cents
"""):
    declare(
        title,
        Schema("pk", "sk", (Index(name, "pk", sort, projection=projection),)),
        series(keyed("OWNER#{}", "nano"), keyed("R#{}", "uuid"), spec),
        "",
        "A6: it is a global index with the table's partition key; A7: it is the only one",
    )


# A13: large items


def blob(attribute: str, size: int, share: float, spec: str, tag: str, count: int = 60) -> Rows:
    return bodies(single(keyed(f"{tag}#{{}}"), spec, count), attribute, size, share)


for title, tag, attribute, kilobytes, share, spec in rows_of("""
    contracts with their PDF as text | CONTRACT | pdf | 180 | 1.0 | party:name signed:day
    sessions with a whole basket of HTML | SESSION | html | 90 | 0.8 | user:hex
    CMS pages with all revisions in one item | PAGE | revisions | 220 | 0.4 | title author:name
    chat rooms with their messages in a list | ROOM | messages | 300 | 0.3 | topic
    ML features with an embedding as text | FEATURE | vector | 60 | 1.0 | model:a|b
    e-mails with attachments in base 64 | MAIL | attachment | 250 | 0.25 | sender:mail
    game saves with the whole world | SAVE | world | 310 | 0.6 | player:name
    maps with polygons as GeoJSON | REGION | polygon | 130 | 0.5 | city:city
"""):
    declare(
        title,
        PK,
        blob(attribute, kilobytes * KB, share, spec, tag),
        "A13",
        f"A2: {ONE_KIND}; A1: uuids are not counted",
    )
for title, tag, attribute, size, share, spec, why in rows_of("""
    contracts with their PDF in S3 | CONTRACT | abstract | 600 | 1.0 | s3:hex bytes:int | \
        the item has a pointer
    sessions with a token | SESSION | token | 900 | 1.0 | user:hex | an item has one KB
    comments under articles | COMMENT | words | 500 | 1.0 | author:name | an item has half a KB
    product texts | PRODUCT | description | 1_200 | 0.6 | price:cents | an item has about one KB
    push tokens of phones | PUSH | endpoint | 300 | 1.0 | os:ios|android | small
    compressed settings | SETTINGS | gzip | 700 | 1.0 | who:name | compressed to 0.7 KB
    audit entries with a diff | AUDIT | diff | 800 | 0.5 | who:name action | a diff is short
    profiles with a short biography | PROFILE | biography | 400 | 0.7 | who:name | short
"""):
    declare(
        title,
        PK,
        blob(attribute, size, share, spec, tag, 500),
        "",
        f"A13: {why}; A2: {ONE_KIND}; A18: {ONE_KIND}",
    )


# A15: collections without a bound


def lopsided(tag: str, giant: int, spec: str, sort: str = "ulid", keys: int = 120) -> Rows:
    """Return collections of two to eight items, and one that has `giant`."""
    return joined(
        series(lambda n, c, a: f"{tag}#main", keyed("{}", sort), spec, 1, (giant, giant), days=200),
        series(keyed(f"{tag}#{{}}"), keyed("{}", sort), spec, keys, (2, 8), days=200),
    )


for title, tag, giant, spec, sort in (
    ("followers of a star", "FOLLOWERS", 1_800, "who:name since:day", "ulid"),
    ("messages of the company-wide channel", "CHANNEL", 1_500, "author:name words", "ksuid"),
    ("audit trail of one large tenant", "TENANT", 2_000, "actor:name action", "iso"),
    ("readings of a chatty gateway", "GATEWAY", 1_600, "celsius:float", "iso"),
    ("ledger of the settlement account", "LEDGER", 1_700, "debit:cents text", "ulid"),
    ("reviews of a best-seller", "PRODUCT", 1_400, "stars:int words", "uuid7"),
    ("jobs of the default queue", "QUEUE", 1_900, "payload tries:int", "ulid"),
    ("clicks of one campaign", "CAMPAIGN", 1_500, "referrer browser:a|b", "uuid"),
):
    declare(
        title,
        BOTH,
        lopsided(tag, giant, spec, sort),
        "A15",
        "A19: there are 121 keys; A13: small items; E1: ids are no numbers",
    )
for title, tag, spec, each, why in rows_of("""
    lines of invoices | INVOICE | sku:hex price:cents | (1, 12) | \
        an invoice has up to twelve lines
    steps of recipes | RECIPE | words minutes:int | (4, 9) | a recipe has a few steps
    seats of cinemas | CINEMA | row:int state:free|sold | (20, 30) | a hall has some 25 seats
    tags of articles | ARTICLE | weight:int | (1, 5) | an article has up to five
    months of a meter | METER | kwh:float | (10, 12) | a year has twelve
    cards of boards | BOARD | title who:name | (8, 30) | the largest has four times the least
"""):
    declare(
        title,
        BOTH,
        series(keyed(f"{tag}#{{}}", "hex"), keyed("{}", "ulid"), spec, 130, each),
        "",
        f"A15: {why}; A2: {ONE_KIND}",
    )


# A16: time to live does not do its work

EXPIRING = {
    "iso": lambda at: iso(at),
    "ms": lambda at: int(at * 1000),
    "s": lambda at: int(at),
    "text": lambda at: str(int(at)),
}


def expiring(
    tag: str, spec: str, attribute: str, form: str, first: float, last: float, share: float = 1.0
) -> Rows:
    """Return items of which a share expires between `first` and `last` days from now."""

    def expiry(row: Item, chance: Random, now: float, number: int) -> dict[str, Any]:
        at = now + chance.uniform(first, last) * DAY
        return {attribute: EXPIRING[form](at)} if chance.random() < share else {}

    return changed(single(keyed(f"{tag}#{{}}"), spec, 500, days=30), expiry)


for title, tag, spec, attribute, form, first, last in rows_of("""
    sessions that expire in ISO format | SESSION | user:hex agent | expiresAt | iso | 1 | 20
    password resets with an ISO date | RESET | mail:mail | validUntil | iso | 1 | 3
    tokens that expire in milliseconds | TOKEN | scope:read|write | exp | ms | 1 | 30
    carts with Date.now() as their end | CART | total:cents | ttl | ms | 2 | 40
    locks that expire in milliseconds | LOCK | holder:name | lease | ms | 1 | 4
    coupons with seconds as text | COUPON | percent:int | expires | text | 3 | 90
    invitations that expired a year ago | INVITE | mail:mail role:a|b | ttl | s | -500 | -300
    cached answers of two years ago | CACHE | body etag:hex | expireAt | s | -800 | -500
    idempotency keys that nothing deletes | IDEMPOTENT | status:done|failed | expiration | s | \
        -400 | -200
"""):
    declare(
        title,
        Schema("pk", ttl=attribute),
        expiring(tag, spec, attribute, form, first, last),
        "A16",
        f"A2: {ONE_KIND}; A18: {ONE_KIND}",
    )
for title, tag, spec, attribute, form, first, last, share, ttl, why in rows_of("""
    sessions that expire in seconds | SESSION | user:hex | expiresAt | s | 1 | 20 | 1.0 | True | \
        seconds, in the future
    tokens of whom a fifth expires | TOKEN | scope | exp | s | 1 | 60 | 0.2 | True | \
        others are to stay
    rows that expire in ten years | ARCHIVE | words | ttl | s | 3_500 | 3_700 | 1.0 | True | \
        they are meant to stay so long
    coupons with an ISO end and no TTL | COUPON | percent:int | expires | iso | -30 | 90 | 1.0 | \
        False | TTL is not enabled
    leases in milliseconds without TTL | LEASE | holder:name | leaseUntil | ms | -1 | 1 | 1.0 | \
        False | TTL is not enabled
    carts that expired within the last hours | CART | total:cents | ttl | s | -0.4 | 10 | 1.0 | \
        True | TTL deletes within days
    Powertools' idempotency records | IDEMPOTENCY | data status:COMPLETED|INPROGRESS | \
        expiration | s | 0.01 | 0.05 | 1.0 | True | an hour ahead
    one-time codes | CODE | digits:hex | expires_at | s | 0.001 | 0.01 | 1.0 | True | \
        some minutes ahead
"""):
    declare(
        title,
        Schema("pk", ttl=attribute if ttl else None),
        expiring(tag, spec, attribute, form, first, last, share),
        "",
        f"A16: {why}; A2: {ONE_KIND}",
    )


# A19: too few partition keys


def filled(spec: str, seed: str) -> Callable[[str, int, float], Item]:
    row = fields(spec, Random(seed), 1_790_000_000)
    return lambda key, number, at: row | {"serial": f"{number * 2_654_435_761 % 2**32:08x}"}


for title, keys, each, spec in rows_of("""
    orders by country | DE FR IT ES NL | 6_000_000 | customer:name total:cents address:long
    log lines by level | INFO WARN ERROR | 20_000_000 | host:hex words:long
    events by region of AWS | us-east-1 us-west-2 eu-west-1 eu-central-1 | 9_000_000 | \
        source event:long
    devices by their model | model-a model-b model-x | 5_000_000 | owner:name firmware:hex
    tickets by state | OPEN WAITING CLOSED | 8_000_000 | subject agent:name words:long
    items by category | BOOKS MUSIC FOOD TOYS GARDEN | 4_000_000 | label price:cents words:long
    messages of an e-mail service by provider | gmail outlook yahoo other | 10_000_000 | \
        to:mail subject words:long
    players by platform | pc xbox playstation switch | 7_000_000 | nick level:int inventory:list
"""):
    sizes = {key: int(each * (0.92 + 0.03 * place)) for place, key in enumerate(keys.split())}
    declare(
        title,
        BOTH,
        None,
        "A19",
        f"A15: the collections are about as large; A2: {ONE_KIND}; A13: small items",
        virtual=few(sizes, filled(spec, title), (365 * DAY, 0.0)),
    )
for title, keys, each, spec, why in rows_of("""
    feature flags by environment | dev test stage prod | 60 | on:flag share:int | \
        a few hundred items
    exchange rates by base currency | EUR USD CHF GBP JPY | 30 | rate:float | 150 small items
    holidays by country | DE FR IT ES NL BE | 25 | title day:day | a reference table
    settings of the application | ui mail billing search | 15 | value | 60 settings
    tariffs by product line | home mobile cloud | 40 | price:cents | 120 tariffs
    menus of restaurants in one town | north south centre | 50 | dish price:cents | 150 dishes
    translations by language | de fr it en es pl | 120 | words | 700 short texts
"""):
    names = keys.split()
    declare(
        title,
        BOTH,
        series(
            lambda n, c, a, names=names: names[n],
            keyed("{}", "hex"),
            spec,
            len(names),
            (each, each),
        ),
        "",
        f"A19: {why}, which one partition holds without strain; A15: evenly",
    )
declare(
    "tenants with many items each, in ten thousand collections",
    BOTH,
    None,
    "",
    "A19: there are 10,000 keys; A15: evenly; A13: small items",
    virtual=Collections(10_000, 4_000, filled("who:name words", "tenants"), (365 * DAY, 0.0)),
)
