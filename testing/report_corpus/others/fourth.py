"""512 more tables, by what a rule means and not by how it decides; 267 have faults,
231 only look so, and 14 are as they should be.

How many tables plant a rule and how many tempt it:

    rule  planted  tempts  title
    A1         11      18  sequential ids
    A2          9      18  keys without a type tag
    A3         18      18  the key is the date
    A4         10       9  Scan in production
    A5         11      10  a filter drops what was read
    A6          8       9  local secondary index
    A7          8      17  an index for each access pattern
    A8          9       8  one counter item
    A9         20      26  constant key of an index
    A10         8       8  read after write by an index
    A11         8       8  status changes without a condition
    A12         8       8  transactions for all
    A13         9       8  large items
    A14         8      17  leftovers of a batch are ignored
    A15        12      14  collections without a bound
    A16        13       8  time to live does not do its work
    A17        10      15  consistent reads everywhere
    A18        12      21  no attribute names the kind
    A19         9       8  too few partition keys
    E1          9       8  numbers in sort keys without padding
    E2          8       8  constraint items without their primary
    H1         14      40  hot key
    H2         13      19  a split cannot help
    H3          9       8  an index holds writes back
    H4          9      15  throttled, but not by keys
    H5          8       8  a table that is cold
    H6          8       8  load in the order of hashes
    H7          8      16  uneven heat of partitions
    I1          8       8  an index that could be sparse
    I2          5       5  an index copies whole items
    I3          5       5  writes cost more in indexes than in the table
    I4          5       5  an index key that joins other attributes

The tables follow public designs, freely: the library and the version control of ElectroDB's
examples; the tenants of OneTable; games and players of PynamoDB; the attributes by which
dynamodb-toolbox tells entities; recurring payments and connected vehicles of
aws-dynamodb-examples; the device state log of amazon-dynamodb-design-patterns. What a hot key or
a starved index shows is as in the developer guide's pages on metrics and on throttling.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping
from random import Random
from time import sleep
from typing import Any

from testing.report_corpus.case import (
    DAY,
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

KB = 1024
YEAR = (365 * DAY, 0.0)
SK = Schema(sort="sk")
EXPIRING = Schema(sort="sk", ttl="expires")
PK = Schema("pk")
SEVERAL: list[Any] = []
"""Rows of several kinds: to call these untagged would be false."""
ONE = {"A2": "one kind of item only, so a tag is not missed"}
ALL_IN = {"I1": "the index is for all items"}
FEW = {
    "A19": "a key a day is few keys, but that is the same fault",
    "H2": "new items go to the end of the newest key, where that is to be seen",
}
BUSY = {
    "H1": "the item that all write is also the hottest key",
    "H7": "so its shard of the stream has most of the records",
}
Key = Callable[[int, Random, float], Any]
Rows = Callable[[Random, float], Iterator[Item]]
Writes = Callable[[Random, float, list[Item]], Iterator[Write]]
SLUGS = ["north", "bay", "lime", "delta", "onyx", "quartz", "river", "summit", "tulip", "violet"]


def table(words: str) -> list[list[str]]:
    """Rows of cells between semicolons; a row that ends with one goes on in the next line."""
    lines = words.strip().replace(" ;\n", " ; ").splitlines()
    return [[cell.strip() for cell in line.split(" ; ")] for line in lines]


def plant(title: str, schema: Schema, items: Rows | None, *found: str, **more: Any) -> None:
    more.setdefault("allowed", {} if items in SEVERAL else ONE)
    case(f"fourth: {title}", "planted", schema, items=items, found=found, **more)


def decoy(
    title: str, schema: Schema, items: Rows | None, traps: Mapping[str, str], **more: Any
) -> None:
    more.setdefault("allowed", {} if items in SEVERAL else ONE)
    case(f"fourth: {title}", "decoy", schema, items=items, traps=traps, **more)


def good(title: str, schema: Schema, items: Rows | None, **more: Any) -> None:
    more.setdefault("allowed", {} if items in SEVERAL else ONE)
    case(f"fourth: {title}", "clean", schema, items=items, **more)


# What items look like


def several(rows: Rows) -> Rows:
    SEVERAL.append(rows)
    return rows


def value(kind: str, chance: Random, at: float) -> Any:
    match kind:
        case "time":
            return iso(at)
        case "day":
            return day(at)
        case "int":
            return chance.randint(1, 90_000)
        case "":
            return some(chance, 20, 80)
        case "id":
            return uuid(chance)
        case "name":
            return name(chance)
        case "city":
            return chance.choice(CITIES)
        case "flag":
            return chance.random() < 0.5
    return chance.choice(kind.split("|"))


def filled(spec: str, chance: Random, at: float) -> Item:
    """Attributes as "paid:time cents:int note state:open|closed"; without a kind it is a text."""
    pairs = (one.partition(":") for one in spec.split())
    return {named: value(kind, chance, at) for named, _, kind in pairs}


def mail(chance: Random) -> str:
    return f"{some(chance, 5, 9).strip().replace(' ', '')}.{chance.getrandbits(40):x}@example.org"


def random_id(tag: str) -> Key:
    return lambda number, chance, at: f"{tag}#{uuid(chance)}"


def ago(chance: Random, now: float, days: float = 300) -> float:
    return now - (1 + chance.random() * days) * DAY


def tree(
    tag: str, root: str, *children: str, owners: int = 150, type_: str = "Type", named: int = 0
) -> Rows:
    """Owners and what is theirs, tagged and typed: a child is "Order 1-6 paid:time cents:int".

    named: so many owners have one of SLUGS for an id.
    """

    def rows(chance: Random, now: float) -> Iterator[Item]:
        for number in range(owners):
            pk = f"{tag}#{SLUGS[number] if number < named else uuid(chance)}"
            made = ago(chance, now)
            yield {"pk": pk, "sk": f"#{tag}", type_: tag.title()} | filled(root, chance, made)
            for child in children:
                kind, many, spec = child.split(" ", 2)
                least, most = map(int, many.split("-"))
                for _ in range(chance.randint(least, most)):
                    at = ago(chance, now)
                    sk = f"{kind.upper()}#{ulid(at, chance)}"
                    yield {"pk": pk, "sk": sk, type_: kind} | filled(spec, chance, at)

    return several(rows)


def flat(key: Key, spec: str, count: int = 700, **more: Key) -> Rows:
    """One kind of item without a sort key; more: further attributes, made as the key is."""

    def rows(chance: Random, now: float) -> Iterator[Item]:
        for number in range(count):
            at = ago(chance, now)
            yield (
                {"pk": key(number, chance, at)}
                | filled(spec, chance, at)
                | {attribute: make(number, chance, at) for attribute, make in more.items()}
            )

    return rows


def series(
    key: Key, spec: str, keys: int = 120, each: int = 12, sort: Key | None = None, days: float = 20
) -> Rows:
    """Events under their owners."""

    def rows(chance: Random, now: float) -> Iterator[Item]:
        for number in range(keys):
            pk = key(number, chance, now)
            for n in range(each):
                at = now - chance.random() * days * DAY
                sk = iso(at) if sort is None else sort(n, chance, at)
                yield {"pk": pk, "sk": sk} | filled(spec, chance, at)

    return rows


def fading(*arguments: Any, **more: Any) -> Rows:
    """A series that TTL deletes within two months from now."""

    def rows(chance: Random, now: float) -> Iterator[Item]:
        for row in series(*arguments, **more)(chance, now):
            yield row | {"expires": int(now + (2 + chance.random() * 55) * DAY)}

    return rows


def widened(rows: Rows, size: int) -> Rows:
    """With a body of some `size` bytes."""

    def wider(chance: Random, now: float) -> Iterator[Item]:
        for row in rows(chance, now):
            yield row | {"body": text(chance, int(size * (0.9 + 0.2 * chance.random())))}

    return wider


def pooled(tag: str, many: int) -> Key:
    """One of so many ids, in turn."""
    return lambda number, chance, at: f"{tag}#{Random(number % many).getrandbits(64):016x}"


def both(*parts: Rows) -> Rows:
    def rows(chance: Random, now: float) -> Iterator[Item]:
        for part in parts:
            yield from part(chance, now)

    return rows


# What is seen of a table in use


def used(reads: float, writes: float, *indexes: str) -> tuple[Metric, ...]:
    """Units a minute of the table, and of its indexes as much."""
    return tuple(
        Metric(f"Consumed{kind}CapacityUnits", units, index=index, days=30)
        for index in ("", *indexes)
        for kind, units in (("Read", reads), ("Write", writes))
    )


def calls(**per_minute: float) -> tuple[Metric, ...]:
    """Requests a minute, by their operation."""
    return tuple(
        Metric("SuccessfulRequestLatency", many, operation=one) for one, many in per_minute.items()
    )


def throttled(
    kind: str, why: str, events: float, index: str = "", days: float = 0.4
) -> tuple[Metric, ...]:
    """As AWS counts it: by its reason, by its kind, and by the requests it befell."""
    span = {"days": days, "since": 9_000.0}
    operation = "PutItem" if kind == "Write" else "Query"
    return (
        Metric(f"{kind}{why}ThrottleEvents", events, index=index, **span),
        Metric(f"{kind}ThrottleEvents", events, index=index, **span),
        Metric("ThrottledRequests", events, operation=operation, **span),
    )


def top(tag: str, first: float, others: float, minutes: int = 300, **more: Any) -> tuple:
    """Contributors: the first key of SLUGS with `first` units a minute, and the others."""
    return tuple(
        Contributor("PKC", (f"{tag}#{slug}",), others if n else first, minutes=minutes, **more)
        for n, slug in enumerate(SLUGS)
    )


def refused(tag: str, events: float, **more: Any) -> Contributor:
    return Contributor("PKT", (f"{tag}#{SLUGS[0]}",), events, minutes=300, **more)


def provisioned(reads: int, writes: int) -> dict[str, Any]:
    return {
        "BillingModeSummary": {"BillingMode": "PROVISIONED"},
        "ProvisionedThroughput": {"ReadCapacityUnits": reads, "WriteCapacityUnits": writes},
    }


def limited(why: str, reads: int, writes: int) -> dict[str, Any]:
    most = {"MaxReadRequestUnits": reads, "MaxWriteRequestUnits": writes}
    if why.startswith("Prov"):
        return provisioned(reads, writes)
    return {"OnDemandThroughput": most} if why.startswith("Max") else {}


Pick = Callable[[Random, list[Item], int], Item]
Change = Callable[[Random, Item, float], Item]


def noted(chance: Random, old: Item, at: float) -> Item:
    return old | {"note": some(chance, 10, 60), "updatedAt": iso(at)}


def anyone(chance: Random, items: list[Item], number: int) -> Item:
    return chance.choice(items)


def mostly(pk: str, share: float) -> Pick:
    """An item of that key, most of the time."""

    def pick(chance: Random, items: list[Item], number: int) -> Item:
        if chance.random() >= share:
            return chance.choice(items)
        return chance.choice([one for one in items if one["pk"] == pk])

    return pick


def updates(pick: Pick = anyone, change: Change = noted, count: int = 700) -> Writes:
    """Writes one after the other; each changes its item as the last has left it."""

    def writes(chance: Random, now: float, items: list[Item]) -> Iterator[Write]:
        seen: dict[tuple, Item] = {}
        for number in range(count):
            back = 865 - 850 * number / count
            row = pick(chance, items, number)
            key = (row["pk"], row.get("sk"))
            old = seen.get(key, row)
            seen[key] = change(chance, old, now - back)
            yield Write(back, old, seen[key])

    return writes


def births(make: Callable[[Random, float, int, list[Item]], Item], count: int = 700) -> Writes:
    """New items, one after the other."""

    def writes(chance: Random, now: float, items: list[Item]) -> Iterator[Write]:
        for number in range(count):
            back = 865 - 850 * number / count
            yield Write(back, None, make(chance, now - back, number, items))

    return writes


# A1: numbers one after the other as keys


def counted(template: str, start: int = 1) -> Key:
    return lambda number, chance, at: template.format(start + number)


for title, template, start, spec in table(
    """
    invoices by their running number ; INVOICE#{:06} ; 1 ; issued:time cents:int buyer:name
    support tickets by number, from the old help desk ; TICKET-{} ; 10001 ;
    subject opened:time agent:name
    parcels by a counter of the depot ; PARCEL#{:09} ; 48100 ; to:city grams:int
    insurance policies in the order of signing ; POL-{:07} ; 1000000 ;
    holder:name begun:day premium:int
    case files of a town hall, by number of the year ; 2026/{:05} ; 1 ;
    clerk:name subject received:time
    library cards given one after the other ; CARD#{} ; 100000 ; reader:name branch:city joined:day
    jobs of a render farm, counted ; job-{:08} ; 1 ; scene frames:int queued:time
    patients by the hospital's running number ; PAT{:08} ; 20000000 ; ward:name admitted:time
    ear tags of cattle, one after the other ; DE09{:08} ; 35800000 ; breed:name born:day farm:city
    """
):
    plant(title, PK, flat(counted(template, int(start)), spec, 800), "A1")

plant(
    "accounts with an auto-increment id of MySQL",
    Schema("pk:N"),
    flat(lambda number, chance, at: 1 + number, "owner:name opened:day mail", 900),
    "A1",
)
plant(
    "orders by number, with their lines",
    Schema("pk", "sk"),
    series(
        counted("ORDER#{}", 500_001), "sku:id quantity:int", 400, 4, lambda n, *_: f"LINE#{n:03}"
    ),
    "A1",
)

for title, key, spec, why in (
    (
        "goods by EAN",
        lambda n, c, a: f"EAN#4{c.randrange(10**12):012}",
        "label cents:int",
        "numbers of others, far apart",
    ),
    (
        "subscribers by telephone number",
        lambda n, c, a: f"TEL#+49{c.randrange(10**9, 10**10)}",
        "who:name plan:a|b",
        "numbers spread over all that there are",
    ),
    (
        "accounts by IBAN",
        lambda n, c, a: f"IBAN#NL{c.randrange(10, 99)}BANK{c.randrange(10**10):010}",
        "owner:name cents:int",
        "with check digits, far apart",
    ),
    (
        "cards by token",
        lambda n, c, a: f"TOK#{c.randrange(10**15, 10**16)}",
        "issued:day owner:name",
        "tokens are random numbers",
    ),
    (
        "cars by registration",
        lambda n, c, a: f"CAR#{c.choice('ABCDEFGHKLM')}N-{c.choice('XYZ')}{c.randrange(10_000)}",
        "owner:name built:day",
        "not in order, and a letter part that differs",
    ),
    (
        "taxpayers by number",
        lambda n, c, a: f"TAX#{c.randrange(10**10, 10**11)}",
        "who:name office:city",
        "eleven digits, dealt at random",
    ),
    (
        "shipments by tracking number",
        lambda n, c, a: f"1Z{c.randrange(10**15):015}",
        "to:city sent:time",
        "few of a quadrillion are taken",
    ),
):
    decoy(title, PK, flat(key, spec, 750), {"A1": why})

decoy(
    "tweets by snowflake",
    PK,
    flat(
        lambda n, c, a: f"{(int(a * 1000) - 1_288_834_974_657) << 22 | c.getrandbits(22)}",
        "words author:id",
        750,
    ),
    {"A3": "the time is only a part of the id, and each tweet has a key of its own"},
    allowed=ONE | {"A1": "they rise with time, though far apart and in no order here"},
)
decoy(
    "wallets by a random number",
    Schema("pk:N"),
    flat(lambda number, chance, at: chance.getrandbits(60), "owner:id cents:int"),
    {"A1": "sixty random bits"},
)


# A2 and A18: several kinds, told by no tag of the keys, or by no attribute


def untagged(*specs: str, owners: int = 130, most: int = 3) -> Rows:
    """Kinds with other attributes each, under bare ids."""

    def rows(chance: Random, now: float) -> Iterator[Item]:
        for _ in range(owners):
            pk = uuid(chance)
            for spec in specs:
                for _ in range(chance.randint(1, most)):
                    yield {"pk": pk, "sk": uuid(chance)} | filled(spec, chance, ago(chance, now))

    return rows


for title, *specs in table(
    """
    clinic: visits, bills and letters, told apart by nobody ; doctor:name seen:time diagnosis ;
    cents:int due:day payer:name ; subject words posted:day
    freight: containers, seals and inspections under bare ids ; size:int owner:name line:name ;
    number:int colour:name placed:time ; officer:name port:city passed:flag when:time
    school: grades, absences and parents under the pupil ; subject:name mark:int given:day ;
    from:day to:day excuse ; guardian:name street phone:int
    bank: standing orders, cards and limits under the account ; payee:name cents:int next:day ;
    pan:id issued:day holder:name ; ceiling:int channel:name since:day
    studio: takes, mixes and contracts under the song ;
    microphone:name seconds:int recorded:time ; engineer:name loudness:int ;
    party:name share:int signed:day
    farm: fields, sprayings and yields of a grower ; hectares:int crop:name soil:name ;
    agent:name litres:int sprayed:time ; tonnes:int moisture:int harvested:day
    fleet: trips, fuel and fines of a truck ; origin:city goal:city metres:int ;
    litres:int station:city paid:int ; paragraph points:int court:city
    estate: viewings, offers and defects of a flat ; visitor:name at:time agent:name ;
    bidder:name cents:int until:day ; room:name defect fixed:flag
    """
):
    plant(title, SK, untagged(*specs), "A2", "A18", allowed={})

plant(
    "guests and rooms in one table of bare ids",
    PK,
    both(
        flat(lambda n, c, a: uuid(c), "guest:name passport:id arrived:time", 500),
        flat(lambda n, c, a: uuid(c), "beds:int floor:int view:name cents:int", 400),
        flat(lambda n, c, a: uuid(c), "room:id guest:id nights:int board:name", 500),
    ),
    "A2",
    "A18",
    allowed={},
)


def electro(service: str, root: str, *entities: str) -> Rows:
    """As ElectroDB writes: the keys have service and entity, and each item its own name."""

    def rows(chance: Random, now: float) -> Iterator[Item]:
        for _ in range(140):
            pk = f"${service}#{root}_{uuid(chance)}"
            for entity in entities:
                kind, spec = entity.split(" ", 1)
                for _ in range(chance.randint(1, 4)):
                    at = ago(chance, now)
                    yield {
                        "pk": pk,
                        "sk": f"${kind}_1#{kind}id_{uuid(chance)}",
                        "__edb_e__": kind,
                        "__edb_v__": "1",
                    } | filled(spec, chance, at)

    return several(rows)


decoy(
    "a library as ElectroDB stores it",
    SK,
    electro(
        "library", "isbn", "book title publisher:name released:day", "loan member:id until:day"
    ),
    {"A2": "the keys name service and entity", "A18": "each item has its entity in __edb_e__"},
)
decoy(
    "version control as ElectroDB stores it",
    SK,
    electro(
        "versioncontrol",
        "repo",
        "issue subject body by:name",
        "pullrequest branch by:name",
        "comment body",
    ),
    {"A2": "a key that says what it is", "A18": "__edb_e__ tells the entity"},
)
decoy(
    "accounts and users as OneTable stores them",
    SK,
    tree(
        "Account", "label", "User 1-5 mail who:name", "Invoice 1-4 cents:int due:day", type_="_type"
    ),
    {"A2": "tags in both keys", "A18": "_type tells the model"},
)
decoy(
    "pokemons and trainers as dynamodb-toolbox stores them",
    SK,
    tree(
        "TRAINER",
        "who:name",
        "Pokemon 1-6 level:int caught:time",
        "Badge 1-3 gym:city",
        type_="_et",
    ),
    {"A2": "tags in both keys", "A18": "_et tells the entity"},
)
decoy(
    "games and players with PynamoDB's discriminator",
    SK,
    tree("GAME", "map:name made:time", "UserGameMapping 2-8 place:int", type_="cls"),
    {"A2": "tags in both keys", "A18": "cls is the discriminator"},
)


def tagged_keys(*kinds: str) -> Rows:
    def rows(chance: Random, now: float) -> Iterator[Item]:
        for _ in range(150):
            pk = f"pat_{uuid(chance)}"
            for kind in kinds:
                tag, spec = kind.split(" ", 1)
                for _ in range(chance.randint(1, 4)):
                    at = ago(chance, now)
                    yield {"pk": pk, "sk": f"{tag}_{ksuid(at, chance)}"} | filled(spec, chance, at)

    return several(rows)


plant(
    "a patient's record, kinds by the prefix of the sort key",
    SK,
    tagged_keys("rx drug:name dose:int", "lab result:int unit:name", "note words by:name"),
    "A18",
    traps={"A2": "rx_, lab_ and note_ in the sort key tell the kind"},
)
plant(
    "trips by prefix: legs, seats and meals",
    SK,
    tagged_keys("leg from:city to:city", "seat row:int column:a|b|c", "meal dish:name"),
    "A18",
    traps={"A2": "the sort key begins with the kind"},
)


def optional(tag: str, required: str, *maybe: str) -> Rows:
    """One kind, of which each item has other optional attributes."""

    def rows(chance: Random, now: float) -> Iterator[Item]:
        for _ in range(800):
            at = ago(chance, now)
            spec = " ".join([required, *(one for one in maybe if chance.random() < 0.5)])
            yield {"pk": f"{tag}#{uuid(chance)}"} | filled(spec, chance, at)

    return rows


decoy(
    "profiles that leave much out",
    PK,
    optional(
        "PROFILE", "who:name joined:day", "phone:int", "motto", "town:city", "site", "pet:name"
    ),
    {"A2": "one kind with optional attributes", "A18": "there is no other kind to be told from"},
    allowed={},
)
decoy(
    "sensors with different readings",
    PK,
    optional("SENSOR", "installed:day", "celsius:int", "hpa:int", "lux:int", "ppm:int", "dB:int"),
    {"A2": "one kind: a sensor has what it can measure", "A18": "sensors only"},
    allowed={},
)


# A3: a time bucket as a partition key


def dated(template: str, spec: str, days: float = 120, each: int = 12, tag: str = "") -> Rows:
    """All that was written in a day, or an hour, is under one key."""

    def rows(chance: Random, now: float) -> Iterator[Item]:
        for number in range(int(days * each)):
            at = now - number / each * DAY - chance.random() * 3_000
            yield {
                "pk": tag + moment(at).strftime(template),
                "sk": f"{iso(at)}#{uuid(chance)}",
            } | filled(spec, chance, at)

    return rows


for title, template, tag, spec, days, each in (
    (
        "an audit log by the day",
        "%Y-%m-%d",
        "",
        "actor:name action:read|write|delete object:id",
        120,
        12,
    ),
    (
        "page visits under VISITS# and the day",
        "%Y-%m-%d",
        "VISITS#",
        "path ms:int visitor:id",
        100,
        12,
    ),
    (
        "meter readings of all houses by day without dashes",
        "%Y%m%d",
        "",
        "meter:id wh:int",
        120,
        12,
    ),
    ("payments by the day of booking", "%Y/%m/%d", "PAY#", "iban:id cents:int", 110, 14),
    ("game matches by the hour of their end", "%Y-%m-%dT%H", "", "winner:id rounds:int", 20, 72),
    ("alarms of all plants by the hour", "%Y%m%d%H", "ALARM#", "plant:city level:int", 15, 96),
):
    why = {"A1": "digits of dates are no running numbers"}
    plant(title, SK, dated(template, spec, days, each, tag), "A3", allowed=ONE | FEW, traps=why)


def with_day(attribute: str, template: str = "%Y-%m-%d", tag: str = "") -> Callable[..., Any]:
    return lambda number, chance, at: tag + moment(at).strftime(template)


for title, tag, attribute, spec, template in table(
    """
    orders, and an index by the day they were made ; ORDER ; orderDay ; cents:int buyer:name ;
    %Y-%m-%d
    claims, and an index by the day they came in ; CLAIM ; received ; policy:id cents:int ;
    %Y-%m-%d
    deliveries, and an index by the day of dispatch ; DELIVERY ; dispatched ; van:id to:city ;
    %Y%m%d
    permits, and an index by the week of application ; PERMIT ; week ; street clerk:name ;
    %G-W%V
    """
):
    plant(
        title,
        Schema("pk", indexes=(Index(f"by-{attribute}", attribute, "pk"),)),
        flat(random_id(tag), spec, 1_800, **{attribute: with_day(attribute, template)}),
        f"A3 by-{attribute}",
        allowed=ONE | ALL_IN,
        traps={f"A9 by-{attribute}": "no day, and no week, has more than a few in a hundred"},
    )

decoy(
    "bookings of a shop by tenant and day",
    EXPIRING,
    fading(lambda n, c, a: f"T#{uuid(c)}#{day(a - n % 12 * DAY)}", "who:name seats:int", 240, 6),
    {"A3": "each tenant has its own key of a day"},
)
decoy(
    "a device's events by device and month",
    EXPIRING,
    fading(
        lambda n, c, a: f"DEV#{uuid(c)}#{moment(a - n % 6 * 30 * DAY):%Y-%m}", "volt:int", 220, 7
    ),
    {"A3": "the month only cuts the device's collection into pieces"},
)
decoy(
    "events by day and one of 64 shards",
    EXPIRING,
    fading(lambda n, c, a: f"{day(a - n // 64 * DAY)}#{n % 64:02}", "source:id level:int", 512, 4),
    {"A3": "a day is spread over 64 keys", "A1": "the numbers are shards"},
)
decoy(
    "people, and an index by date of birth",
    Schema("pk", indexes=(Index("byBirth", "born", "pk"),)),
    flat(
        random_id("PERSON"),
        "who:name town:city",
        900,
        born=lambda n, c, a: day(a - c.randint(6_000, 29_000) * DAY),
    ),
    {"A9 byBirth": "births of sixty years, a few a month"},
    allowed=ONE | ALL_IN | {"A3": "its keys are dates, but nobody is registered by today's"},
)
decoy(
    "hotel nights by room and date",
    EXPIRING,
    fading(lambda n, c, a: f"ROOM#{uuid(c)}#{day(a + n % 90 * DAY)}", "guest:name", 500, 1),
    {"A3": "one key a room and night"},
)
decoy(
    "log entries by a ULID",
    PK,
    flat(lambda n, c, a: f"LOG#{ulid(a, c)}", "level:info|warn words", 800),
    {
        "A3": "begins with the time, but each key is another and hashes elsewhere",
        "A1": "no numbers",
    },
)
decoy(
    "objects by KSUID and uuid7",
    PK,
    both(
        flat(lambda n, c, a: f"OBJ#{ksuid(a, c)}", "bytes:int owner:name", 400),
        flat(lambda n, c, a: f"OBJ#{uuid7(a, c)}", "bytes:int owner:name", 400),
    ),
    {"A3": "times in ids, but a key for each object"},
)
decoy(
    "flights by number and date",
    SK,
    series(
        lambda n, c, a: (
            f"FLIGHT#{c.choice('ABDLQ')}{c.randrange(100, 9999):04}#{day(a + n % 60 * DAY)}"
        ),
        "who:name seat:id",
        300,
        5,
        lambda n, c, a: f"SEAT#{n:03}",
    ),
    {"A3": "a flight has a key of its own a day"},
)
decoy(
    "a calendar with one item a day",
    PK,
    flat(lambda n, c, a: day(1_760_000_000 + n * DAY), "holiday:flag moon:new|full", 500),
    {"A3": "one item a date, and no sort key", "A1": "digits of dates"},
)
decoy(
    "readings with the day in the sort key",
    EXPIRING,
    fading(
        random_id("METER"), "wh:int", 150, 10, lambda n, c, a: f"DAY#{day(a)}#{c.randrange(24):02}"
    ),
    {"A3": "the day is in the sort key, under the meter"},
)


# A9 and I1: indexes


def indexed(
    tag: str, spec: str, index: Index, make: Key, share: float = 1.0, count: int = 900
) -> tuple:
    """A table with an index, whose attribute `share` of the items have."""

    def rows(chance: Random, now: float) -> Iterator[Item]:
        for number in range(count):
            at = ago(chance, now)
            row = {"pk": f"{tag}#{uuid(chance)}", "updatedAt": iso(at + 40 + number)}
            row |= filled(spec, chance, at)
            if chance.random() < share:
                row[index.partition] = make(number, chance, at)
            yield row

    return Schema("pk", indexes=(index,)), rows


def one_of(values: str) -> Key:
    """One of these; the first of them in more than half of the cases."""
    split = values.split()
    return lambda number, chance, at: chance.choice(split + split[:1] * len(split))


def often(usual: str, rare: str, share: float) -> Key:
    return lambda number, chance, at: rare if chance.random() < share else usual


for title, tag, spec, attribute, values in table(
    """
    complaints, and an index by state ; COMPLAINT ; customer:id words ; state ;
    waiting assigned investigating resolved
    employees, and an index by department ; EMP ; who:name hired:day ; dept ;
    sales legal it hr ops
    trucks, and an index by fuel ; TRUCK ; plate:id built:day ; fuel ; diesel lng electric
    tenders, and an index by country ; TENDER ; title cents:int ; country ; DE FR NL PL
    subscriptions, and an index by plan ; SUB ; account:id begun:time ; plan ; free basic pro
    tickets, and an index by priority ; TICKET ; subject agent:name ; priority ; P1 P2 P3 P4 P5
    animals, and an index by species ; ANIMAL ; ear:id born:day ; species ; cow pig sheep goat
    turbines, and an index by condition ; TURBINE ; park:city kw:int ; condition ;
    running stopped fault service
    samples, and an index by laboratory ; SAMPLE ; patient:id taken:time ; lab ; Bonn Lyon Oslo
    articles, and an index by language ; ARTICLE ; headline author:name ; lang ; en de fr
    """
):
    index = Index(f"by-{attribute}", attribute, "updatedAt")
    schema, rows = indexed(tag, spec, index, one_of(values))
    plant(title, schema, rows, f"A9 by-{attribute}", allowed=ONE | ALL_IN)

for title, tag, spec, attribute, values in table(
    """
    documents, and an index of those to review ; DOC ; author:name title ; review ; no yes
    payments, and an index of the failed ; PAY ; cents:int iban:id ; failed ; N Y
    messages, and an index of the undelivered ; MSG ; sender:name words ; delivered ; true false
    leases, and an index of the terminated ; LEASE ; flat:id cents:int ; ended ; 0 1
    inverters, and an index of the faulty ; INV ; roof:id kw:int ; faulty ; OK FAULT
    posts, and an index of the reported ; POST ; author:name words ; reported ; clean reported
    freight bills, and an index of the disputed ; BILL ; carrier:name cents:int ; disputed ; n y
    prescriptions, and an index of those to renew ; RX ; drug:name doses:int ; renew ; later now
    """
):
    index = Index(f"by-{attribute}", attribute, "updatedAt")
    schema, rows = indexed(tag, spec, index, often(*values.split(), 0.03))
    plant(f"{title}, with all in it", schema, rows, f"A9 by-{attribute}", f"I1 by-{attribute}")

for title, tag, spec, attribute, share, owner, why in table(
    """
    issues, of which the escalated are in an index ; ISSUE ; subject by:name ; escalatedTo ;
    0.08 ; BOSS ; only the escalated have the attribute, under many supervisors
    games, of which the open are in an index by map and creator ; GAME ; made:time ; openBy ;
    0.1 ; PLAYER ; sparse, and a key for each creator
    loans of books, of which the overdue are in an index ; LOAN ; book:id ; overdueBy ;
    0.06 ; READER ; sparse: it holds the overdue loans only
    vehicles, of which the recalled are in an index by garage ; VIN ; colour:name ; recalledTo ;
    0.12 ; GARAGE ; sparse, spread over garages
    orders, of which those to pack are in an index by shelf ; ORDER ; cents:int ; packAt ;
    0.1 ; SHELF ; goes away when it is packed
    invoices, of which the unpaid are in an index by debtor ; INVOICE ; cents:int ; owedBy ;
    0.15 ; DEBTOR ; unpaid only
    devices, of which the unclaimed are in an index by batch ; DEVICE ; serial:id ; unclaimed ;
    0.1 ; BATCH ; a tenth of the devices
    applications, of which those with an objection are in an index ; APPLICATION ; street ;
    objector ; 0.05 ; CITIZEN ; one in twenty
    """
):
    index = Index(f"by-{attribute}", attribute, "updatedAt", projection="KEYS_ONLY")
    schema, rows = indexed(tag, spec, index, random_id(owner), float(share))
    decoy(title, schema, rows, {f"I1 by-{attribute}": why, f"A9 by-{attribute}": "many keys"})

for title, tag, spec, attribute, make, why in (
    (
        "users, and an index by mail",
        "USER",
        "who:name",
        "mail",
        lambda n, c, a: mail(c),
        "a key for each user",
    ),
    (
        "tasks, and an index by assignee",
        "TASK",
        "subject due:day",
        "assignee",
        pooled("EMP", 220),
        "two hundred and twenty assignees, evenly",
    ),
    (
        "invoices, and an index by tenant and state",
        "INV",
        "cents:int",
        "tenantState",
        lambda n, c, a: pooled("T", 90)(n, c, a) + c.choice(["#open", "#paid"]),
        "the state is combined with ninety tenants",
    ),
    (
        "jobs, and an index by state and one of 64 shards",
        "JOB",
        "script",
        "stateShard",
        lambda n, c, a: f"{c.choice(['queued', 'done'])}#{n % 64:02}",
        "a state is spread over 64 keys",
    ),
    (
        "parcels, and an index by postcode",
        "PARCEL",
        "grams:int",
        "postcode",
        lambda n, c, a: f"{n % 400 * 97 + 10_000}",
        "four hundred postcodes, evenly",
    ),
    (
        "fields, and an index by geohash",
        "FIELD",
        "crop:name",
        "geohash",
        lambda n, c, a: (
            f"u1{c.choice('hjkm')}{c.choice('0123456789bcdefg')}{c.choice('0123456789bcdefg')}"
        ),
        "a thousand cells",
    ),
):
    schema, rows = indexed(tag, spec, Index(f"by-{attribute}", attribute, "updatedAt"), make)
    decoy(title, schema, rows, {f"A9 by-{attribute}": why}, allowed=ONE | ALL_IN)


# A7: how many indexes


def many(tag: str, names: list[str], count: int = 600) -> Rows:
    """Each attribute has some two hundred and fifty values, evenly."""

    def rows(chance: Random, now: float) -> Iterator[Item]:
        for _ in range(count):
            yield {"pk": f"{tag}#{uuid(chance)}", "words": some(chance, 20, 90)} | {
                one: pooled(one, 250)(chance.randrange(250), chance, now) for one in names
            }

    return rows


MANY = {"I3": "each write of an item is also one of each index"}
for title, tag, names, projection in table(
    """
    a CRM with twelve indexes ; LEAD ;
    owner city phone campaign industry source team mail street plan referrer partner ; ALL
    a property portal with an index for each filter ; FLAT ;
    rooms price rent floor heating balcony kitchen district agent built ; ALL
    a job board with thirteen indexes ; AD ;
    employer city salary title field degree hours begin contract benefit tongue travel grade ;
    KEYS_ONLY
    used cars with an index a column ; CAR ;
    make model colour mileage power seats doors fuel price dealer ; ALL
    lab samples with eleven indexes ; SAMPLE ;
    patient doctor lab panel device reagent batch courier shelf method result ; ALL
    assets of a utility with fourteen indexes ; ASSET ;
    site feeder vendor model owner crew zone voltage phase pole meter relay breaker cable ;
    KEYS_ONLY
    tenders with ten indexes, as the old database had ; TENDER ;
    buyer region cpv lot amount deadline clerk procedure title portal ; ALL
    a music catalogue with thirteen indexes ; TRACK ;
    artist album genre label year key tempo mood composer producer studio isrc language ; ALL
    """
):
    split = names.split()
    plant(
        title,
        Schema(
            "pk", indexes=tuple(Index(f"by-{one}", one, projection=projection) for one in split)
        ),
        many(tag, split),
        "A7",
        allowed=ONE | ALL_IN | MANY,
    )

GSI1 = Index("GSI1", "GSI1PK", "GSI1SK")
GSI2 = Index("GSI2", "GSI2PK", "GSI2SK")
GSI3 = Index("GSI3", "GSI3PK", "GSI3SK")
INVERTED = Index("inverted", "sk", "pk")


def overloaded(tag: str, *kinds: str, indexes: int = 2) -> Rows:
    """Indexes that kinds of items share: GSI1 by a reference, GSI2 by another."""

    def rows(chance: Random, now: float) -> Iterator[Item]:
        for owner in range(150):
            pk = f"{tag}#{uuid(chance)}"
            for kind in kinds:
                named, spec = kind.split(" ", 1)
                for _ in range(chance.randint(1, 4)):
                    at = ago(chance, now)
                    row = {"pk": pk, "sk": f"{named.upper()}#{ulid(at, chance)}", "Type": named}
                    for one in range(1, indexes + 1):
                        row[f"GSI{one}PK"] = pooled(named.upper(), 40 * one + 90)(
                            owner + 300 * one, chance, at
                        )
                        row[f"GSI{one}SK"] = iso(at + 977 * one)
                    yield row | filled(spec, chance, at)

    return several(rows)


for title, indexes, rows, why in (
    (
        "social network with two overloaded indexes",
        (GSI1, GSI2),
        overloaded("U", "Post words", "Follow since:day", "Like by:name"),
        "two indexes for all questions",
    ),
    (
        "an online shop with three overloaded indexes",
        (GSI1, GSI2, GSI3),
        overloaded("C", "Order cents:int", "Invoice due:day", "Shipment to:city", indexes=3),
        "three indexes, of which each answers several questions",
    ),
    (
        "clinical trials with two overloaded indexes",
        (GSI1, GSI2),
        overloaded("TRIAL", "Visit dose:int", "Event grade:int"),
        "two",
    ),
    (
        "court files with three overloaded indexes",
        (GSI1, GSI2, GSI3),
        overloaded("FILE", "Hearing room:name", "Brief pages:int", indexes=3),
        "three",
    ),
    (
        "harvests with an index by buyer",
        (GSI1,),
        overloaded("FARM", "Harvest tonnes:int", "Sale cents:int", indexes=1),
        "one",
    ),
):
    decoy(title, Schema(sort="sk", indexes=indexes), rows, {"A7": why}, allowed=ALL_IN)

plant(
    "warehouse stock with an inverted index",
    Schema(sort="sk", indexes=(INVERTED,)),
    tagged_keys("stock pieces:int", "delivery from:city"),
    "A18",
    allowed=ALL_IN,
    traps={"A7": "one index", "A2": "tags in the sort keys"},
)

for title, names, why in (
    (
        "members with indexes by mail, phone and card",
        ["mail", "phone", "card"],
        "three ways to log in",
    ),
    (
        "parts with four small indexes",
        ["maker", "shelf", "drawing", "batch"],
        "four, and keys only",
    ),
):
    decoy(
        title,
        Schema(
            "pk", indexes=tuple(Index(f"by-{one}", one, projection="KEYS_ONLY") for one in names)
        ),
        many("M", names),
        {"A7": why},
        allowed=ONE | ALL_IN,
    )


# E2: items that reserve a value


def phone(chance: Random) -> str:
    return f"+49{chance.randrange(10**9, 10**10)}"


def nick(chance: Random) -> str:
    return f"{name(chance).replace(' ', '')}{chance.randrange(10**6)}"


def reserved(
    tag: str, field: str, form: str, make: Callable[[Random], str], gone: float, unmade: float = 0
) -> Rows:
    """Items and what reserves their value; a share of the items is gone, or never reserved any."""

    def rows(chance: Random, now: float) -> Iterator[Item]:
        for _ in range(500):
            pk, taken, made = f"{tag}#{uuid(chance)}", make(chance), ago(chance, now)
            if chance.random() >= gone:
                row = {"pk": pk, "sk": "PROFILE", "Type": tag.title(), field: taken}
                yield row | filled("who:name joined:day", chance, made)
            if chance.random() >= unmade:
                one = form.format(taken.lower() if "low" in form else taken).replace("low#", "")
                yield {"pk": one, "sk": one, "Type": "Unique", "owner": pk, "made": iso(made)}

    return several(rows)


for title, tag, field, form, make, gone, unmade, why in (
    ("mails of users who are gone", "USER", "email", "unique#email#{}", mail, 0.2, 0, ""),
    ("names of players who are gone", "PLAYER", "nick", "unique#nick#{}", nick, 0.15, 0, ""),
    ("phones of accounts that are gone", "ACC", "phone", "UNIQUE#PHONE#{}", phone, 0.3, 0, ""),
    ("hosts of sites that are gone", "SITE", "host", "unique#host#{}", nick, 0.1, 0, ""),
    ("serials of devices that are gone", "DEV", "serial", "UNIQUE#SERIAL#{}", uuid, 0.25, 0, ""),
    ("handles of authors who are gone", "AUTHOR", "handle", "unique#handle#{}", nick, 0.4, 0, ""),
    ("codes of vouchers that are gone", "VOUCHER", "code", "unique#code#{}", uuid, 0.12, 0, ""),
    ("mails of tenants, half of them gone", "TENANT", "email", "UNIQUE#EMAIL#{}", mail, 0.5, 0, ""),
    ("mails of users", "USER", "email", "unique#email#{}", mail, 0, 0, "all are there"),
    ("names of players", "PLAYER", "nick", "unique#nick#{}", nick, 0, 0, "all are there"),
    ("phones of accounts", "ACC", "phone", "UNIQUE#PHONE#{}", phone, 0, 0, "all are there"),
    ("handles in small letters", "AUTHOR", "handle", "low#unique#handle#{}", nick, 0, 0, "case"),
    ("serials of some devices", "DEV", "serial", "UNIQUE#SERIAL#{}", uuid, 0, 0.4, "the reverse"),
    ("codes of vouchers", "VOUCHER", "code", "unique#code#{}", uuid, 0, 0.1, "some have no code"),
):
    rows = reserved(tag, field, form, make, gone, unmade)
    if why:
        decoy(f"{title}, reserved", SK, rows, {"E2": f"no owner is gone: {why}"})
    else:
        plant(f"{title}, still reserved", SK, rows, "E2")
for title, key, spec in (
    (
        "unique visitors by site and day",
        lambda n, c, a: f"unique#{c.choice(SLUGS)}#{day(a)}",
        "n:int",
    ),
    (
        "coins of which there is one",
        lambda n, c, a: f"UNIQUE#COIN#{uuid(c)}",
        "minted:day mint:city",
    ),
):
    decoy(title, PK, flat(key, spec), {"E2": "these reserve nothing for another item"})


# E1: numbers as texts in sort keys


def numbered(template: str, most: int, start: int = 1) -> Key:
    return lambda number, chance, at: template.format(start + number % most)


def pages(tag: str, template: str, each: int, spec: str, keys: int = 110, start: int = 1) -> Rows:
    def rows(chance: Random, now: float) -> Iterator[Item]:
        for _ in range(keys):
            pk = f"{tag}#{uuid(chance)}"
            for number in range(each):
                yield {"pk": pk, "sk": template.format(start + number)} | filled(
                    spec, chance, ago(chance, now)
                )

    return rows


for title, tag, template, each, spec in (
    ("episodes of series, without zeros", "SERIES", "EPISODE#{}", 24, "title seconds:int"),
    ("lines of orders, without zeros", "ORDER", "LINE#{}", 14, "sku:id pieces:int"),
    ("versions of contracts, v1 to v30", "CONTRACT", "v{}", 30, "author:name words"),
    ("levels of players, level-1 to level-40", "PLAYER", "level-{}", 40, "stars:int seconds:int"),
    ("stops of a delivery tour by number", "TOUR", "STOP#{}", 18, "street town:city"),
    ("chapters of courses, c1 on", "COURSE", "c{}", 21, "title minutes:int"),
    ("instalments of loans by number", "LOAN", "RATE#{}", 36, "cents:int due:day"),
    ("frames of scans, frame_0 on", "SCAN", "frame_{}", 32, "exposure:int"),
    ("minutes of a council by item of the agenda", "SESSION", "TOP {}", 16, "subject votes:int"),
):
    start = 0 if "frame" in template else 1
    plant(title, SK, pages(tag, template, each, spec, start=start), "E1")

for title, schema, rows, why in (
    (
        "pages of manuals, with zeros",
        SK,
        pages("MANUAL", "PAGE#{:04}", 22, "words"),
        "padded to four digits",
    ),
    (
        "revisions as numbers",
        Schema("pk", "sk:N"),
        series(random_id("WIKI"), "words", 120, 15, lambda n, c, a: n + 1),
        "a number sorts as a number",
    ),
    (
        "points of a track by milliseconds",
        SK,
        series(
            random_id("TRACK"), "lat:int lon:int", 120, 14, lambda n, c, a: f"AT#{int(a * 1000)}"
        ),
        "thirteen digits, all of them",
    ),
    (
        "questions one to nine",
        SK,
        pages("EXAM", "Q{}", 9, "answer mark:int", 150),
        "one digit, all of them",
    ),
    (
        "seats by row and number, padded",
        SK,
        pages("HALL", "ROW03#SEAT{:03}", 30, "price:int", 90),
        "padded",
    ),
    (
        "versions by ULID",
        SK,
        series(random_id("FILE"), "bytes:int", 120, 12, lambda n, c, a: f"VERSION#{ulid(a, c)}"),
        "no numbers",
    ),
    (
        "rounds from 100 to 139",
        SK,
        pages("CUP", "ROUND#{}", 40, "home:id away:id", 90, 100),
        "all have three digits",
    ),
    (
        "blocks by hexadecimal height",
        SK,
        pages("CHAIN", "{:08x}", 30, "hash:id", 90),
        "padded hexadecimal",
    ),
):
    decoy(title, schema, rows, {"E1": why}, allowed=ONE)


# A4, A5, A14, A17: what the application asks


def sampled(client: Any, table: str, count: int = 120) -> list[Item]:
    return client.scan(TableName=table, Limit=count)["Items"]


def key_of(item: Item) -> Item:
    return {name: item[name] for name in ("pk", "sk") if name in item}


def gets(consistent: float = 0.0, count: int = 480) -> Callable[[Any, str, Random], None]:
    def work(client: Any, table: str, chance: Random) -> None:
        items = sampled(client, table)
        for _ in range(count):
            client.get_item(
                TableName=table,
                Key=key_of(chance.choice(items)),
                ConsistentRead=chance.random() < consistent,
            )

    return work


def queries(
    consistent: float = 0.0,
    where: str = "",
    names: Mapping[str, str] | None = None,
    values: Mapping[str, Any] | None = None,
    count: int = 480,
    begins: str = "",
) -> Callable[[Any, str, Random], None]:
    """Queries of collections, with a filter if `where` is one."""

    def work(client: Any, table: str, chance: Random) -> None:
        keys = sorted({one["pk"]["S"] for one in sampled(client, table, 600)})
        for _ in range(count):
            asked: dict[str, Any] = {
                "TableName": table,
                "KeyConditionExpression": "pk = :pk",
                "ExpressionAttributeValues": {":pk": {"S": chance.choice(keys)}},
                "ConsistentRead": chance.random() < consistent,
            }
            if begins:
                asked["KeyConditionExpression"] += " AND begins_with(sk, :begins)"
                asked["ExpressionAttributeValues"][":begins"] = {"S": begins}
            if where:
                asked["FilterExpression"] = where
                asked["ExpressionAttributeValues"] |= values or {}
                if names:
                    asked["ExpressionAttributeNames"] = names
            client.query(**asked)

    return work


def scans(
    every: int, where: str = "", attribute: str = "", count: int = 500
) -> Callable[[Any, str, Random], None]:
    """One request in `every` scans the whole table, for an item or for all; the others get."""

    def work(client: Any, table: str, chance: Random) -> None:
        items = sampled(client, table)
        for number in range(count):
            if number % every:
                client.get_item(TableName=table, Key=key_of(chance.choice(items)))
                continue
            asked: dict[str, Any] = {"TableName": table}
            if where:
                asked |= {
                    "FilterExpression": where,
                    "ExpressionAttributeNames": {"#a": attribute},
                    "ExpressionAttributeValues": {":v": chance.choice(items)[attribute]},
                }
            while True:
                page = client.scan(**asked)
                if "LastEvaluatedKey" not in page:
                    break
                asked["ExclusiveStartKey"] = page["LastEvaluatedKey"]

    return work


def one_by_one(client: Any, table: str, chance: Random) -> None:
    """All items of a collection, each by a request of its own."""
    whole: dict[str, list[Item]] = {}
    for item in sampled(client, table, 500):
        whole.setdefault(item["pk"]["S"], []).append(item)
    groups = [group for group in whole.values() if len(group) >= 4]
    for _ in range(110):
        for item in chance.choice(groups):
            client.get_item(TableName=table, Key=key_of(item))


def in_batches(client: Any, table: str, chance: Random) -> None:
    items = sampled(client, table, 300)
    for _ in range(90):
        asked = {table: {"Keys": [key_of(one) for one in chance.sample(items, 25)]}}
        while asked:
            asked = client.batch_get_item(RequestItems=asked).get("UnprocessedKeys", {})


def collections(client: Any, table: str, chance: Random) -> None:
    queries()(client, table, chance)


HEAD = """
import os

import boto3
from boto3.dynamodb.conditions import Attr, Key

table = boto3.resource("dynamodb").Table(os.environ["TABLE"])


"""
ORDERS = tree(
    "CUSTOMER", "who:name town:city", "Order 2-6 cents:int paid:flag", "Address 1-2 street"
)
TENANTS = tree("TENANT", "label plan:free|pro", "User 2-6 who:name", "Project 1-4 title begun:day")
DEVICES = fading(random_id("DEVICE"), "celsius:int volt:int", 130, 10)
USERS = flat(random_id("USER"), "who:name town:city joined:day", 700, mail=lambda n, c, a: mail(c))

for title, rows, schema, where, attribute, every in (
    ("a login that scans for the mail address", USERS, PK, "#a = :v", "mail", 2),
    ("a kiosk that scans for the owner of a name", USERS, PK, "#a = :v", "who", 3),
    ("a map that scans for a town", USERS, PK, "#a = :v", "town", 3),
    (
        "a goods page that reads the whole table",
        flat(random_id("SKU"), "label cents:int", 600),
        PK,
        "",
        "",
        2,
    ),
    (
        "a switchboard that reads all extensions for each call",
        flat(random_id("EXT"), "who:name room:int", 500),
        PK,
        "",
        "",
        2,
    ),
    ("a dashboard that reads all tenants each time", TENANTS, SK, "", "", 2),
):
    found = ("A4", "A5") if where else ("A4",)
    plant(title, schema, rows, *found, application=scans(every, where, attribute))

for title, body in (
    (
        "code: a handler that scans for a user",
        '''def handler(event, context):
    """Who has this mail address?"""
    answer = table.scan(FilterExpression=Attr("mail").eq(event["mail"]))
    return answer["Items"][0]
''',
    ),
    (
        "code: a route that lists all by scan",
        """def list_all(event, context):
    rows = []
    page = table.scan()
    rows.extend(page["Items"])
    while "LastEvaluatedKey" in page:
        page = table.scan(ExclusiveStartKey=page["LastEvaluatedKey"])
        rows.extend(page["Items"])
    return {"statusCode": 200, "body": rows}
""",
    ),
):
    plant(
        title,
        PK,
        USERS,
        "A4",
        code={"app.py": HEAD + body},
        metrics=(*used(520, 60), *calls(Scan=40, GetItem=60, PutItem=60)),
        allowed=ONE | {"A5": "by the code alone, a filter is a suspicion"},
    )

for title, per_minute in (
    ("metrics: a table that is scanned all day", 40),
    ("metrics: scans by a poller", 6),
):
    plant(
        title,
        SK,
        ORDERS,
        "A4",
        metrics=(
            *used(per_minute * 17 + 15, 120),
            *calls(Scan=per_minute, GetItem=30, PutItem=120),
            Metric("ReturnedItemCount", per_minute * 900, operation="Scan"),
        ),
    )

for title, code, why in (
    (
        "code: scanning barcodes",
        """
def handler(scanner, event):
    return [scanner.scan(code) for code in event["codes"]]
""",
        "a scanner of barcodes",
    ),
    (
        "code: keys of Redis by scan_iter",
        """
import redis

cache = redis.Redis()


def old():
    return [one for one in cache.scan_iter("session:*")]
""",
        "Redis, and not DynamoDB",
    ),
    (
        "code: images scanned for leaks",
        """
import boto3

ecr = boto3.client("ecr")


def check(tag):
    return ecr.start_image_scan(repositoryName="app", imageId={"imageTag": tag})
""",
        "another service",
    ),
    (
        "code: a comment that warns of scans",
        HEAD
        + """# never table.scan() here: query by the key


def orders(pk):
    return table.query(KeyConditionExpression=Key("pk").eq(pk))["Items"]
""",
        "it is a comment; the code queries",
    ),
):
    decoy(title, SK, ORDERS, {"A4": why, "A5": "no filter at all"}, code={"app.py": code})

decoy(
    "an application that queries collections only",
    SK,
    ORDERS,
    {"A4": "each request names a key", "A5": "no filter"},
    application=collections,
)
decoy(
    "metrics: a table exported by one scan a night",
    PK,
    flat(random_id("DOC"), "title", 1_600, body=lambda n, c, a: text(c, 1_400)),
    {
        "A4": "one scan at night, of three full pages, beside a million gets",
        "A17": "a get takes half a unit",
    },
    metrics=(
        *used(450, 300),
        *calls(GetItem=900, PutItem=150),
        Metric("SuccessfulRequestLatency", 3, operation="Scan", busy=(130, 131)),
        Metric("ReturnedItemCount", 1_600, operation="Scan", busy=(130, 131)),
    ),
)
decoy(
    "metrics: a table that is read by keys",
    SK,
    TENANTS,
    {"A4": "not one scan in two weeks", "A17": "a get takes half a unit"},
    metrics=(*used(1_650, 150), *calls(GetItem=3_000, Query=300, PutItem=150)),
)
decoy(
    "an application that scanned once, when it began",
    SK,
    TENANTS,
    {"A4": "one scan of some items, and then four hundred gets"},
    application=gets(),
)


def stated(tag: str, attribute: str, usual: str, rare: str, share: float, spec: str) -> Rows:
    """Sixty collections of fifty, of which a small share is in the rare state."""

    def rows(chance: Random, now: float) -> Iterator[Item]:
        for _ in range(70):
            pk = f"{tag}#{uuid(chance)}"
            for _ in range(50):
                at = ago(chance, now)
                yield {
                    "pk": pk,
                    "sk": f"AT#{iso(at)}",
                    attribute: rare if chance.random() < share else usual,
                } | filled(spec, chance, at)

    return rows


for title, tag, attribute, usual, rare, share, spec in (
    ("open orders by a filter on state", "CUSTOMER", "state", "closed", "open", 0.03, "cents:int"),
    (
        "warnings of a device by a filter on STATE",
        "d",
        "State",
        "NORMAL",
        "WARNING4",
        0.04,
        "operator:name",
    ),
    ("unread messages by a filter", "INBOX", "read", "y", "n", 0.03, "words sender:name"),
    (
        "failed payments by a filter on status",
        "ACC",
        "status",
        "settled",
        "failed",
        0.02,
        "cents:int",
    ),
    ("faulty panels by a filter", "ROOF", "condition", "fine", "faulty", 0.02, "watt:int"),
    ("late trains by a filter on delay", "LINE", "late", "no", "yes", 0.05, "stop:city"),
    ("sick cattle by a filter", "FARM", "health", "well", "sick", 0.03, "ear:id"),
    (
        "overdue loans of a branch by a filter on status",
        "BRANCH",
        "status",
        "back",
        "overdue",
        0.04,
        "book:id",
    ),
):
    plant(
        title,
        SK,
        stated(tag, attribute, usual, rare, share, spec),
        "A5",
        allowed=ONE | {"A15": "a log that nothing ends, though it grows slowly"},
        application=queries(where="#s = :s", names={"#s": attribute}, values={":s": {"S": rare}}),
    )

for title, attribute, usual, rare, why in table(
    """
    deleted notes left out by a filter ; gone ; n ; y ; the filter leaves out three in a hundred
    hidden comments left out by a filter ; hidden ; no ; yes ; nearly all that is read is returned
    """
):
    decoy(
        title,
        SK,
        stated("NOTEBOOK", attribute, usual, rare, 0.03, "words"),
        {"A5": why},
        application=queries(where="#s = :s", names={"#s": attribute}, values={":s": {"S": usual}}),
    )
decoy(
    "sessions that have expired left out by a filter, as AWS advises",
    EXPIRING,
    fading(random_id("USER"), "agent:name", 120, 8),
    {"A5": "TTL deletes them late, so the filter is needed; it leaves out next to none"},
    application=queries(where="expires > :now", values={":now": {"N": "1700000000"}}),
)
decoy(
    "orders of a customer by the prefix of the sort key",
    SK,
    ORDERS,
    {"A5": "the key condition selects them, no filter", "A4": "queries"},
    application=queries(begins="ORDER#"),
)
decoy(
    "code: conditions and policies that are no filters",
    SK,
    ORDERS,
    {"A5": "a condition of a write, a filter in Python, and a policy of SNS"},
    code={
        "app.py": HEAD
        + """sns = boto3.client("sns")


def create(row):
    table.put_item(Item=row, ConditionExpression=Attr("pk").not_exists())


def paid(pk):
    rows = table.query(KeyConditionExpression=Key("pk").eq(pk))["Items"]
    return list(filter(lambda one: one["paid"], rows))


def subscribe(topic, queue):
    sns.subscribe(TopicArn=topic, Endpoint=queue, Attributes={"FilterPolicy": "{}"})
"""
    },
)

LOOPS = (
    (
        "a basket read good by good",
        """def basket(skus):
    found = []
    for sku in skus:
        found.append(table.get_item(Key={"pk": sku})["Item"])
    return found
""",
    ),
    (
        "members of a team by a comprehension",
        """def members(ids):
    return [table.get_item(Key={"pk": f"USER#{one}"}).get("Item") for one in ids]
""",
    ),
    (
        "readings put one after the other",
        """def store(readings):
    for reading in readings:
        table.put_item(Item={"pk": reading["sensor"], "sk": reading["at"], "v": reading["v"]})
""",
    ),
    (
        "carts deleted one after the other",
        """def clear(carts):
    for cart in carts:
        table.delete_item(Key={"pk": cart})
""",
    ),
    (
        "invoices imported row by row",
        """import csv


def load(path):
    with open(path) as file:
        for row in csv.DictReader(file):
            table.put_item(Item=row)
""",
    ),
)
NO_BATCH = {"A14": "each item has a request of its own: there are no leftovers"}
for title, body in LOOPS:
    decoy(f"code: {title}", PK, USERS, NO_BATCH, code={"app.py": HEAD + body})

for title, rows in (
    ("an order and its lines, each by a get", ORDERS),
    ("a tenant's users and projects, each by a get", TENANTS),
    ("a playlist, track by track", tree("LIST", "title", "Track 6-12 artist:name seconds:int")),
    (
        "a patient's findings, one by one",
        tree("PATIENT", "who:name", "Finding 5-9 words", "Visit 2-4 at:time"),
    ),
):
    decoy(title, SK, rows, NO_BATCH, application=one_by_one)

CLIENT = HEAD.replace("\n\n\n", '\nclient = boto3.client("dynamodb")\n\n\n')
for title, body in (
    (
        "an import of 25 rows at a time",
        """def load(rows):
    for first in range(0, len(rows), 25):
        puts = [{"PutRequest": {"Item": row}} for row in rows[first : first + 25]]
        client.batch_write_item(RequestItems={"TABLE": puts})
""",
    ),
    (
        "a basket read by one batch",
        """def basket(keys):
    answer = client.batch_get_item(RequestItems={"TABLE": {"Keys": keys}})
    return answer["Responses"]["TABLE"]
""",
    ),
    (
        "carts deleted in batches",
        """def clear(keys):
    for key in keys:
        client.batch_write_item(RequestItems={"TABLE": [{"DeleteRequest": {"Key": key}}]})
""",
    ),
    (
        "batches whose costs are logged",
        """def store(puts):
    asked = {"TABLE": puts}
    answer = client.batch_write_item(RequestItems=asked, ReturnConsumedCapacity="TOTAL")
    print(answer["ConsumedCapacity"])
""",
    ),
    (
        "members of a team read in threads",
        """from concurrent.futures import ThreadPoolExecutor


def part(keys):
    return client.batch_get_item(RequestItems={"TABLE": {"Keys": keys}})["Responses"]["TABLE"]


def members(parts):
    with ThreadPoolExecutor() as pool:
        return [one for rows in pool.map(part, parts) for one in rows]
""",
    ),
    (
        "messages of a queue stored by a Lambda",
        """import json


def handler(event, context):
    rows = [json.loads(record["body"]) for record in event["Records"]]
    client.batch_write_item(
        RequestItems={os.environ["TABLE"]: [{"PutRequest": {"Item": row}} for row in rows]}
    )
""",
    ),
    (
        "batches tried again after exceptions only",
        """def store(puts):
    for _ in range(3):
        try:
            return client.batch_write_item(RequestItems={"TABLE": puts})
        except client.exceptions.ProvisionedThroughputExceededException:
            continue
    raise TimeoutError
""",
    ),
    (
        "prices read in one batch, and the missing taken for unknown",
        """def prices(skus):
    keys = [{"pk": {"S": sku}} for sku in skus]
    rows = client.batch_get_item(RequestItems={"TABLE": {"Keys": keys}})["Responses"]["TABLE"]
    known = {row["pk"]["S"]: row["cents"]["N"] for row in rows}
    return [known.get(sku, "unknown") for sku in skus]
""",
    ),
):
    plant(f"code: {title}", PK, USERS, "A14", code={"app.py": CLIENT + body})

for title, body, why in (
    (
        "a batch writer in a loop",
        """def store(rows):
    with table.batch_writer() as batch:
        for row in rows:
            batch.put_item(Item=row)
""",
        "batch_writer sends them in batches",
    ),
    (
        "attempts in a loop",
        """import time


def read(pk):
    for attempt in range(4):
        try:
            return table.get_item(Key={"pk": pk})["Item"]
        except table.meta.client.exceptions.ProvisionedThroughputExceededException:
            time.sleep(2**attempt / 10)
    raise TimeoutError(pk)
""",
        "one item, tried again after it was throttled",
    ),
    (
        "pages of a query in a loop",
        """def all_of(pk):
    asked = {"KeyConditionExpression": Key("pk").eq(pk)}
    while True:
        page = table.query(**asked)
        yield from page["Items"]
        if "LastEvaluatedKey" not in page:
            return
        asked["ExclusiveStartKey"] = page["LastEvaluatedKey"]
""",
        "pages of one query",
    ),
    (
        "counters updated in a loop",
        """def add(votes):
    for candidate, count in votes.items():
        table.update_item(
            Key={"pk": candidate},
            UpdateExpression="ADD votes :n",
            ExpressionAttributeValues={":n": count},
        )
""",
        "there is no batch for updates",
    ),
    (
        "objects of S3 in a loop",
        """s3 = boto3.client("s3")


def bodies(keys):
    for key in keys:
        yield s3.get_object(Bucket="documents", Key=key)["Body"].read()
""",
        "S3 has no batch",
    ),
    (
        "batches of a hundred keys in a loop",
        """client = boto3.client("dynamodb")


def read(keys):
    for first in range(0, len(keys), 100):
        asked = {"Users": {"Keys": keys[first : first + 100]}}
        while asked:
            answer = client.batch_get_item(RequestItems=asked)
            yield from answer["Responses"]["Users"]
            asked = answer.get("UnprocessedKeys", {})
""",
        "it is a loop of batches",
    ),
):
    decoy(
        f"code: {title}",
        PK,
        USERS,
        {"A14": why},
        code={"app.py": HEAD + body},
    )
decoy(
    "an application that reads in batches of 25",
    SK,
    TENANTS,
    {"A14": "they are batches, and what was not processed is asked for again"},
    application=in_batches,
)
decoy(
    "items asked for by many users, one each",
    PK,
    USERS,
    {
        "A14": "gets, and no batch",
        "A17": "eventually consistent",
    },
    application=gets(),
)

for title, rows, schema, work in (
    ("every get of a user consistent", USERS, PK, gets(1.0)),
    ("every query of orders consistent", ORDERS, SK, queries(1.0)),
    ("49 gets in 50 consistent", TENANTS, SK, gets(0.98)),
    ("every query by prefix consistent", ORDERS, SK, queries(1.0, begins="ORDER#")),
    ("gets of a catalogue consistent", flat(random_id("SKU"), "label cents:int"), PK, gets(1.0)),
    ("readings of devices, all consistent", DEVICES, EXPIRING, queries(1.0)),
    (
        "timetables, read consistently by all",
        tree("LINE", "label", "Stop 4-9 at:city"),
        SK,
        queries(1.0),
    ),
    ("menus, read consistently", tree("CAFE", "label", "Dish 3-8 cents:int"), SK, gets(0.98)),
):
    plant(title, schema, rows, "A17", application=work)
for title, units in (("gets that cost a unit each", 900), ("gets of a unit each by a poller", 40)):
    plant(
        f"metrics: {title}",
        PK,
        USERS,
        "A17",
        metrics=(*used(units, 90), *calls(GetItem=units, PutItem=90)),
    )
for title, rows, schema, work, why in (
    ("one get in fifty consistent, after a write", USERS, PK, gets(0.02), "few, and for a reason"),
    ("queries that are eventually consistent", ORDERS, SK, queries(0.0), "none is consistent"),
    (
        "one query in thirty consistent, before a payment",
        ORDERS,
        SK,
        queries(0.03),
        "where money is moved",
    ),
    ("gets that say ConsistentRead is false", TENANTS, SK, gets(0.0), "they say no"),
    ("two gets in a hundred consistent, of locks", TENANTS, SK, gets(0.02), "locks only"),
):
    decoy(title, schema, rows, {"A17": why}, application=work)
for title, body, why in (
    (
        "code: a lock that is read consistently",
        """def held(lock):
    return "Item" in table.get_item(Key={"pk": lock}, ConsistentRead=True)


def user(pk):
    return table.get_item(Key={"pk": pk}).get("Item")


def friend(pk):
    return table.get_item(Key={"pk": f"FRIEND#{pk}"}).get("Item")


def team(pk):
    return table.query(KeyConditionExpression=Key("pk").eq(pk))["Items"]
""",
        "only the lock's",
    ),
    (
        "code: reads that are said to be not consistent",
        """def user(pk):
    return table.get_item(Key={"pk": pk}, ConsistentRead=False).get("Item")
""",
        "False is the default",
    ),
):
    decoy(title, PK, USERS, {"A17": why}, code={"app.py": HEAD + body})


# A10: reads of an index that follow a write


def written(client: Any, table: str, way: str, item: Item, attribute: str) -> None:
    match way:
        case "put":
            client.put_item(TableName=table, Item=item)
        case "update":
            client.update_item(
                TableName=table,
                Key=key_of(item),
                UpdateExpression="SET #a = :a",
                ExpressionAttributeNames={"#a": attribute},
                ExpressionAttributeValues={":a": item[attribute]},
            )
        case "batch":
            asked = {table: [{"PutRequest": {"Item": item}}]}
            while asked:
                asked = client.batch_write_item(RequestItems=asked).get("UnprocessedItems", {})


def listed(client: Any, table: str, attribute: str, wanted: Any, **more: Any) -> None:
    client.query(
        TableName=table,
        IndexName=f"by-{attribute}",
        KeyConditionExpression="#a = :a",
        ExpressionAttributeNames={"#a": attribute},
        ExpressionAttributeValues={":a": wanted},
        **more,
    )


def followed(way: str, attribute: str, then: str) -> Callable[[Any, str, Random], None]:
    """Nine hundred writes, each of a value that no other has; then: what is read, and when.

    Others that are read have one of the first fifty values, which no item gets or loses.
    """

    def work(client: Any, table: str, chance: Random) -> None:
        items = [one for one in sampled(client, table, 900) if one[attribute]["S"][-3:] > "099"]
        later: list[Item] = []
        for number in range(900):
            old = items[number % len(items)]
            wanted = {"S": f"{attribute}-new-{number}"}
            new = old | {attribute: wanted}
            if way == "put":
                new["pk"] = {"S": f"NEW#{uuid(chance)}"}
            if then == "before":
                listed(client, table, attribute, wanted)
            written(client, table, way, new, attribute)
            match then:
                case "after":
                    listed(client, table, attribute, wanted)
                case "counted":
                    listed(client, table, attribute, wanted, Select="COUNT")
                case "mostly" if number % 3:
                    listed(client, table, attribute, wanted)
                case "others":
                    listed(client, table, attribute, {"S": f"{attribute}-{number % 50:03}"})
                case "item":
                    client.get_item(TableName=table, Key=key_of(new))
                case "consistent":
                    client.get_item(TableName=table, Key=key_of(new), ConsistentRead=True)
                    for one in chance.sample(items, 2):
                        client.get_item(TableName=table, Key=key_of(one))
                case "later":
                    later.append(wanted)
        if later:
            sleep(2.5)
        for wanted in later[:600]:
            listed(client, table, attribute, wanted)

    return work


for title, tag, attribute, way, then, why in table(
    """
    a sign-up that is looked up by its mail at once ; USER ; mail ; put ; after ; -
    a task that is assigned, and the list of its assignee ; TASK ; assignee ; update ; after ; -
    an order, and the list of its customer's ; ORDER ; customer ; put ; after ; -
    a car handed over, and found by its owner at once ; CAR ; owner ; update ; after ; -
    posts, of which each brings back its author's ; POST ; author ; put ; mostly ; -
    parcels rebooked, and the list of the depot shown again ; PARCEL ; depot ; batch ; after ; -
    tickets moved to a queue that is counted at once ; TICKET ; queue ; update ; counted ; -
    books lent, and two times in three the reader's loans ; BOOK ; reader ; update ; mostly ; -
    a sign-up, and others looked up by their mail ; USER ; mail ; put ; others ;
    what is read was written long ago
    a task that is assigned, and the lists of others ; TASK ; assignee ; update ; others ;
    those lists have not changed
    an order, read back by its key ; ORDER ; customer ; put ; item ; the table is read, no index
    a transfer, read back consistently ; TRANSFER ; account ; put ; consistent ;
    a consistent read of the table sees the write
    a mail that is looked for before it is taken ; MEMBER ; mail ; put ; before ;
    the read comes first, and is of what nobody has written
    cars handed over, and listed when all are done ; CAR ; owner ; update ; later ;
    seconds lie between
    posts stored, and listed in the next run ; POST ; author ; put ; later ; seconds lie between
    rooms changed after a look at who has them ; ROOM ; guest ; update ; before ;
    first the index is read, then the item written
    """
):
    schema = Schema("pk", indexes=(Index(f"by-{attribute}", attribute),))
    rows = flat(
        random_id(tag),
        "words",
        900,
        **{attribute: lambda n, c, a, attribute=attribute: f"{attribute}-{n % 300:03}"},
    )
    more: dict[str, Any] = {
        "application": followed(way, attribute, then),
        "allowed": ONE | ALL_IN,
    }
    if why == "-":
        plant(title, schema, rows, f"A10 by-{attribute}", **more)
    else:
        decoy(title, schema, rows, {f"A10 by-{attribute}": why}, **more)

# A12: transactions


def transacted(
    share: float, size: int, other: str = "put", count: int = 700
) -> Callable[[Any, str, Random], None]:
    """A share of the writes are transactions of so many items."""

    def work(client: Any, table: str, chance: Random) -> None:
        items = sampled(client, table, 300)
        for _ in range(count):
            some_of = [one | {"note": {"S": uuid(chance)}} for one in chance.sample(items, size)]
            if chance.random() < share:
                puts = [{"Put": {"TableName": table, "Item": one}} for one in some_of]
                client.transact_write_items(TransactItems=puts)
            elif other == "read":
                gets = [{"Get": {"TableName": table, "Key": key_of(one)}} for one in some_of]
                client.transact_get_items(TransactItems=gets)
                client.put_item(TableName=table, Item=some_of[0])
            else:
                written(client, table, other, some_of[0], "note")

    return work


for title, tag, share, size, other, why in table(
    """
    each write a transaction of two items ; SEAT ; 1 ; 2 ; put ; -
    each write a transaction of one item ; NOTE ; 1 ; 1 ; put ; -
    every second write a transaction of one item ; LEAD ; 0.5 ; 1 ; put ; -
    nearly each write a transaction of three items ; CELL ; 0.98 ; 3 ; update ; -
    log lines, each written in a transaction ; LINE ; 1 ; 1 ; put ; -
    one write in twenty a transaction of three items ; ORDER ; 0.05 ; 3 ; put ;
    few, and each of several items
    one write in ten a transfer between two accounts ; ACCOUNT ; 0.1 ; 2 ; update ;
    money moves from one item to another
    writes in batches, and no transaction ; READING ; 0 ; 3 ; batch ; a batch is no transaction
    reads of four items at one moment ; SLOT ; 0 ; 4 ; read ; it is the reads that are transactions
    updates of one item each ; SKU ; 0 ; 1 ; update ; none is a transaction
    """
):
    work = transacted(float(share), int(size), other)
    rows = flat(random_id(tag), "who:name note")
    if why == "-":
        plant(title, PK, rows, "A12", application=work)
    else:
        decoy(title, PK, rows, {"A12": why}, application=work)
for title, reads, writes, seen, why in (
    ("all in transactions", 800, 3_600, {"TransactWriteItems": 900}, ""),
    ("transactions by a framework", 90, 1_210, {"TransactWriteItems": 300, "PutItem": 4}, ""),
    ("a ledger of transactions", 500, 250, {"TransactWriteItems": 60, "UpdateItem": 1}, ""),
    ("few transactions", 800, 1_000, {"TransactWriteItems": 25, "PutItem": 900}, "one in 37"),
    ("batches", 90, 7_600, {"TransactWriteItems": 5, "BatchWriteItem": 300}, "one in sixty"),
    ("updates", 500, 1_040, {"TransactWriteItems": 60, "UpdateItem": 800}, "one in fourteen"),
):
    metrics = (*used(reads, writes), *calls(**seen))
    if why:
        decoy(f"metrics: {title}", PK, USERS, {"A12": why}, metrics=metrics)
    else:
        plant(f"metrics: {title}", PK, USERS, "A12", metrics=metrics)

# A11: a status that is changed without a condition

SETTING = """def {}(pk):
    table.update_item(
        Key={{"pk": pk}},
        UpdateExpression="SET #s = :new",{}
        ExpressionAttributeNames={{"#s": "{}"}},
        ExpressionAttributeValues={{":new": "{}"{}}},
    )
"""
for title, tag, spec, called, attribute, new, old in table(
    """
    an order is sent, whatever it was ; ORDER ; status:NEW|PAID|SENT cents:int ; send ; status ;
    SENT ; -
    a claim is paid, whatever it was ; CLAIM ; state:open|approved|paid cents:int ; pay ; state ;
    paid ; -
    a parcel is delivered, whatever it was ; PARCEL ; status:packed|sent|delivered to:city ;
    deliver ; status ; delivered ; -
    a job is done, whatever it was ; JOB ; status:queued|running|done script ; finish ; status ;
    done ; -
    an order is sent if it is paid ; ORDER ; status:NEW|PAID|SENT cents:int ; send ; status ;
    SENT ; PAID
    a claim is paid if it is approved ; CLAIM ; state:open|approved|paid cents:int ; pay ; state ;
    paid ; approved
    a job is done if it runs ; JOB ; status:queued|running|done script ; finish ; status ;
    done ; running
    a customer moves ; CUSTOMER ; who:name town:city ; move ; town ; Bonn ; =
    """
):
    rows = flat(random_id(tag), spec)
    once = old not in "-="
    if_so = '\n        ConditionExpression="#s = :old",' if once else ""
    code = HEAD + SETTING.format(called, if_so, attribute, new, f', ":old": "{old}"' * once)
    if old == "-":
        plant(f"code: {title}", PK, rows, "A11", code={"app.py": code})
    else:
        why = "there is a condition" if once else "a town is no status"
        decoy(f"code: {title}", PK, rows, {"A11": why}, code={"app.py": code})


def walking(attribute: str, states: str, back: float | None) -> Change:
    """On to the next state, and now and then back to an earlier one; None: from any to any."""
    order = states.split("|")

    def change(chance: Random, old: Item, at: float) -> Item:
        here = order.index(old[attribute])
        if back is None:
            there = chance.choice([one for one in order if one != order[here]])
        elif here and chance.random() < back:
            there = order[chance.randrange(here)]
        elif here + 1 < len(order):
            there = order[here + 1]
        else:
            return noted(chance, old, at)
        return old | {attribute: there, "updatedAt": iso(at)}

    return change


for title, tag, attribute, states, back, why in table(
    """
    orders that a late message sets back ; ORDER ; status ; new|paid|packed|sent|arrived ;
    0.05 ; -
    parcels that a slow scanner sets back ; PARCEL ; state ; labelled|picked|sorted|delivered ;
    0.04 ; -
    claims that an old form sets back ; CLAIM ; status ; filed|checked|approved|paid ;
    0.05 ; -
    trips that a phone without a net sets back ; TRIP ; status ; asked|accepted|driving|ended ;
    0.04 ; -
    orders that only go on ; ORDER ; status ; new|paid|packed|sent|arrived ; 0 ;
    each change is to the next state
    applicants who only go on ; APPLICANT ; stage ; applied|invited|tested|hired ; 0 ;
    no one goes back
    doors that open and close ; DOOR ; state ; open|closed ; * ; there is no usual order
    roads whose traffic changes ; ROAD ; state ; free|slow|jammed|closed ; * ;
    each state follows each other one, as often
    """
):
    rows = flat(random_id(tag), f"{attribute}:{states} words")
    change = walking(attribute, states, None if back == "*" else float(back))
    if why == "-":
        plant(title, PK, rows, "A11", stream=updates(anyone, change, 1_200))
    else:
        decoy(title, PK, rows, {"A11": why}, stream=updates(anyone, change, 1_200))


# A6, A13, A15, A16, A18, A19: what is large, what should have gone, few keys


def body_of(size: int) -> Callable[[str, int, float], Item]:
    """An item of about so many bytes."""
    filler = text(Random(size), size)
    return lambda key, number, at: {"label": f"l{number % 9_973:04}", "body": filler}


def huge(tag: str, keys: int, each: int, size: int, giant: int, year: str = "") -> Collections:
    """Collections of `each` items of so many bytes; of the first in SLUGS there are `giant`."""
    giants = (Giant(f"{tag}#{SLUGS[0]}", giant),) if giant else ()
    return Collections(
        keys, each, body_of(size), YEAR, giants=giants, key=lambda n, c: f"{tag}#{c:016x}{year}"
    )


def local(name: str, sort: str = "label", projection: str = "KEYS_ONLY") -> Index:
    return Index(name, "pk", sort, local=True, projection=projection)


for title, tag, size, giant in (
    ("a tenant's documents with an LSI, near 10 GB", "TENANT", 3_000, 3_020_000),
    ("the chat of a stadium with an LSI, near 10 GB", "ROOM", 2_400, 3_710_000),
    ("the ledger of one broker with an LSI, near 10 GB", "BROKER", 2_000, 4_370_000),
    ("a telescope's images with an LSI, near 10 GB", "SCOPE", 6_000, 1_570_000),
    ("events of a gateway with an LSI, near 10 GB", "GATEWAY", 2_200, 4_010_000),
    ("parcels of one large sender with an LSI, near 10 GB", "SENDER", 2_500, 3_570_000),
    ("records of a university hospital with an LSI, near 10 GB", "HOSPITAL", 4_000, 2_310_000),
    ("trades of one symbol with an LSI, near 10 GB", "SYMBOL", 5_000, 1_870_000),
):
    plant(
        title,
        Schema(sort="sk", indexes=(local("byLabel"),)),
        None,
        "A6",
        "A15",
        virtual=huge(tag, 4_000, 40, size, giant),
        slow=True,
    )

for title, tag, size, giant in (
    ("the posts of one celebrity, 4 GB", "AUTHOR", 1_000, 4_000_000),
    ("an audit log under one account, 6 GB", "ACCOUNT", 1_500, 4_000_000),
    ("all events of the default tenant, 8 GB", "TENANT", 2_000, 4_000_000),
    ("one meter that was never rolled over, 5 GB", "METER", 1_000, 5_000_000),
):
    plant(
        title,
        SK,
        None,
        "A15",
        virtual=huge(tag, 4_000, 40, size, giant),
        traps={"A6": "without an LSI a collection has no limit of 10 GB"},
        slow=True,
    )


def locally(client: Any, table: str, chance: Random) -> None:
    """What was just written is read by the local index, consistently; the rest by plain gets."""
    items = sampled(client, table, 400)
    index = client.describe_table(TableName=table)["Table"]["LocalSecondaryIndexes"][0]
    for _ in range(500):
        client.query(
            TableName=table,
            IndexName=index["IndexName"],
            KeyConditionExpression="pk = :pk",
            ExpressionAttributeValues={":pk": chance.choice(items)["pk"]},
            ConsistentRead=True,
        )
        client.get_item(TableName=table, Key=key_of(chance.choice(items)))


for title, indexes, rows, why in (
    (
        "posts of users, with an LSI by topic",
        (local("byTopic", "topic"),),
        series(random_id("U"), "topic:red|green|blue words", 130, 12),
        "a dozen small items a user",
    ),
    (
        "music by artist, with an LSI by album",
        (local("byAlbum", "album"),),
        series(random_id("ARTIST"), "album:name seconds:int", 120, 14),
        "an artist has few songs",
    ),
    (
        "steps of recipes, with an LSI by minutes",
        (local("byMinutes", "minutes:N"),),
        pages("RECIPE", "STEP#{:02}", 14, "minutes:int words"),
        "kilobytes, of 10 GB",
    ),
    (
        "lots of auctions, with an LSI by amount",
        (local("byCents", "cents:N"),),
        pages("AUCTION", "LOT#{:03}", 20, "cents:int who:name"),
        "an auction ends, and the best bid must be right",
    ),
    (
        "seats of shows, with an LSI by price",
        (local("byPrice", "price:N"),),
        pages("SHOW", "SEAT#{:03}", 40, "price:int who:name"),
        "a hall has so many seats",
    ),
):
    decoy(
        title,
        Schema(sort="sk", indexes=indexes),
        rows,
        {
            "A6": f"{why}; and consistent reads use it",
            "A7": "one local index",
            "A17": "half of the reads",
        },
        allowed=ONE | {"A15": "a user's posts grow, slowly"},
        application=locally,
    )
for title, tag, keys, each, size in (
    ("a million orders with an LSI, alike", "CUSTOMER", 25_000, 40, 900),
    ("readings with an LSI, thousands a device", "DEVICE", 1_500, 1_500, 300),
):
    decoy(
        title,
        Schema(sort="sk", indexes=(local("byLabel"),)),
        None,
        {"A15": "all alike, of half a megabyte, and of one year"},
        virtual=huge(tag, keys, each, size, 0, "#2026"),
        allowed=ONE | {"A6": "there is an LSI, whose collections are far from 10 GB"},
    )


def uneven(tag: str, owners: int, least: int, most: int, spec: str) -> Rows:
    """Collections of different sizes, and none of them is large."""

    def rows(chance: Random, now: float) -> Iterator[Item]:
        for _ in range(owners):
            pk = f"{tag}#{uuid(chance)}"
            for _ in range(chance.randint(least, most)):
                at = ago(chance, now)
                yield {"pk": pk, "sk": f"{ulid(at, chance)}", "Type": tag} | filled(
                    spec, chance, at
                )

    return rows


for title, rows, why in (
    (
        "shops of two to twenty goods",
        uneven("SHOP", 140, 2, 20, "label cents:int"),
        "a usual spread",
    ),
    ("teams of one to thirty", uneven("TEAM", 120, 1, 30, "who:name"), "thirty items are few"),
    ("herds of five to forty", uneven("HERD", 90, 5, 40, "ear:id born:day"), "none stands out"),
    ("routes of ten stops", uneven("ROUTE", 120, 10, 10, "town:city"), "all alike"),
):
    decoy(title, SK, rows, {"A15": why})
for title, tag, keys, each, size in (
    ("a large table of equal tenants", "TENANT", 2_000, 800, 700),
    ("meters by year, with a year of hours each", "METER", 400, 8_760, 120),
):
    decoy(
        title,
        SK,
        None,
        {
            "A15": "large collections, but all alike, and they end with the year in the key",
            "A19": "enough keys",
        },
        virtual=huge(tag, keys, each, size, 0, "#2026"),
    )


def heavy(tag: str, share: float, size: int, spec: str, attribute: str, count: int = 130) -> Rows:
    """A share of the items has an attribute of some `size` bytes."""

    def rows(chance: Random, now: float) -> Iterator[Item]:
        for _ in range(count):
            at = ago(chance, now)
            row = {"pk": f"{tag}#{uuid(chance)}"} | filled(spec, chance, at)
            length = int(size * (0.85 + 0.3 * chance.random()))
            yield row | {attribute: text(chance, length if chance.random() < share else 300)}

    return rows


for title, tag, share, size, attribute, spec in (
    ("letters with the PDF in them", "LETTER", 0.2, 210 * KB, "pdf", "to:name sent:day"),
    ("chats as one list a chat", "CHAT", 0.25, 180 * KB, "messages", "begun:time by:name"),
    ("product pages with their HTML", "PAGE", 0.3, 150 * KB, "html", "title"),
    ("avatars as base64", "AVATAR", 0.4, 120 * KB, "png", "user:id"),
    ("reports of a laboratory as JSON", "REPORT", 0.2, 300 * KB, "json", "patient:id made:time"),
    ("tracks of trips as polylines", "TRIP", 0.3, 140 * KB, "polyline", "driver:name km:int"),
    ("drawings near the limit", "DRAWING", 0.15, 335 * KB, "svg", "author:name"),
    (
        "energy profiles of a year in one item",
        "PROFILE",
        0.35,
        160 * KB,
        "quarters",
        "meter:id year:2024|2025",
    ),
    ("firmware in parts of 250 KB", "FIRMWARE", 0.25, 250 * KB, "blob", "version:name"),
):
    plant(title, PK, heavy(tag, share, size, spec, attribute), "A13")
for title, tag, spec, size, why in (
    (
        "letters with a pointer to S3",
        "LETTER",
        "bucket:name object:id bytes:int",
        200,
        "the file is in S3",
    ),
    ("thumbnails of two kilobytes", "THUMB", "image:id", 2 * KB, "two kilobytes"),
    ("pages of four kilobytes", "PAGE", "title", 3_500, "one read unit each"),
    ("settings of three kilobytes", "SETTINGS", "user:id", 3 * KB, "small"),
    ("recipes of a kilobyte", "RECIPE", "title cook:name", KB, "small"),
    ("notes of doctors, two kilobytes", "NOTE", "patient:id", 2 * KB, "small"),
    (
        "contracts in S3, with their length here",
        "CONTRACT",
        "object:id bytes:int sha:id",
        150,
        "bytes is a number",
    ),
    ("telegrams", "TELEGRAM", "to:name", 120, "a hundred bytes"),
):
    decoy(title, PK, heavy(tag, 1.0, size, spec, "words", 500), {"A13": why})


def expired(tag: str, spec: str, attribute: str, share: float = 0.9, count: int = 900) -> Rows:
    """Most were to be deleted days or months ago, by the attribute that says so."""

    def rows(chance: Random, now: float) -> Iterator[Item]:
        for _ in range(count):
            late = chance.random() < share
            until = now + (-4 - chance.random() * 150 if late else chance.random() * 3) * DAY
            yield {"pk": f"{tag}#{uuid(chance)}", attribute: int(until)} | filled(
                spec, chance, until - 2 * DAY
            )

    return rows


for title, tag, attribute, spec in (
    ("sessions without TTL", "SESSION", "expiresAt", "user:id agent:name"),
    ("one-time passwords without TTL", "OTP", "expires", "phone:int code:int"),
    ("carts without TTL", "CART", "ttl", "customer:id sku:id"),
    ("idempotency keys without TTL", "IDEM", "expiration", "answer"),
    ("a cache of prices without TTL", "PRICE", "expires_at", "sku:id cents:int"),
    ("locks of jobs without TTL", "LOCK", "expiry", "owner:id"),
    ("links to reset a password, without TTL", "RESET", "expireAt", "mail user:id"),
    ("tokens of devices without TTL", "TOKEN", "ttl", "device:id scope:name"),
    ("reserved seats without TTL", "HOLD", "expires", "seat:id who:name"),
):
    plant(title, PK, expired(tag, spec, attribute), "A16")


def as_written(write: Callable[[float], Any], days: float) -> Key:
    """When an item is to be deleted, some days from now, or since then."""
    return lambda number, chance, at: write(at + (302 + days * chance.random()) * DAY)


for title, tag, write, days in (
    ("sessions with TTL in milliseconds", "SESSION", lambda at: int(at * 1000), 9.0),
    ("carts with TTL as texts", "CART", iso, 9.0),
    ("invitations with TTL as numbers in texts", "INVITE", lambda at: str(int(at)), 30.0),
    ("links whose TTL passed weeks ago, all still there", "LINK", int, -500.0),
):
    rows = flat(random_id(tag), "who:name", 700, expires=as_written(write, days))
    plant(title, Schema("pk", ttl="expires"), rows, "A16")


def ended(tag: str, spec: str, attribute: str) -> Rows:
    """Records of the past that are kept."""
    return flat(random_id(tag), spec, 750, **{attribute: lambda n, c, a: day(a)})


for title, tag, attribute, spec, why in table(
    """
    certificates that were valid once ; CERT ; validTo ; subject serial:id ; kept as evidence
    births in a register ; BIRTH ; born ; who:name town:city ; a date is no time to be deleted
    concerts of the past ; CONCERT ; held ; hall:city artist:name ; an archive
    flights flown ; FLIGHT ; departed ; from:city to:city ; history
    leases that have ended ; LEASE ; until ; flat:id tenant:name ; must be kept ten years
    """
):
    decoy(title, PK, ended(tag, spec, attribute), {"A16": why})


def just_late(chance: Random, now: float) -> Iterator[Item]:
    for _ in range(12):
        until = int(now - 600 - chance.random() * 5_000)
        row = {"pk": f"USER#{uuid(chance)}", "sk": iso(until - DAY), "scope": name(chance)}
        yield row | {"expires": until}


for title, rows, why in (
    (
        "sessions with TTL",
        fading(random_id("USER"), "agent:name", 140, 6),
        "TTL is on, and nothing is late",
    ),
    (
        "tokens with TTL, and some that expired an hour ago",
        both(fading(random_id("USER"), "scope:name", 140, 6), just_late),
        "TTL deletes within days",
    ),
    (
        "reminders with TTL in a month",
        fading(random_id("PATIENT"), "words at:time", 150, 5),
        "they go after use",
    ),
):
    decoy(title, EXPIRING, rows, {"A16": why})


def relational(*tables: str, count: int = 300) -> Rows:
    """Tables of a relational database in one, each row under its own id and with foreign keys."""

    def rows(chance: Random, now: float) -> Iterator[Item]:
        ids: list[str] = []
        for one in tables:
            kind, spec = one.split(" ", 1)
            mine = [f"{kind.upper()}#{uuid(chance)}" for _ in range(count)]
            for pk in mine:
                row = {"pk": pk, "Type": kind} | filled(spec, chance, ago(chance, now))
                yield row | ({"parent": chance.choice(ids)} if ids else {})
            ids = mine

    return several(rows)


for title, *tables in table(
    """
    authors, books and copies, each under its own id ; Author who:name born:day ;
    Book title isbn:id ; Copy shelf:int state:in|out
    clubs, teams and players without a sort key ; Club label town:city ; Team label league:name ;
    Player who:name shirt:int
    farms, fields and harvests without a sort key ; Farm owner:name ; Field hectares:int ;
    Harvest tonnes:int day:day
    forums, threads and posts without a sort key ; Forum label ; Thread subject ;
    Post words at:time
    wards, patients and visits without a sort key ; Ward label ; Patient who:name ;
    Visit at:time doctor:name
    depots, vans and tours without a sort key ; Depot town:city ; Van plate:id ;
    Tour day:day km:int
    shops, orders and lines without a sort key ; Shop label ; Order cents:int ;
    Line sku:id pieces:int
    grids, stations and outages without a sort key ; Grid owner:name ; Station town:city ;
    Outage from:time to:time
    """
):
    decoy(title, PK, relational(*tables), {"A18": "Type tells the kind", "A2": "tagged keys"})
for title, rows, why in (
    (
        "short links by their code",
        flat(lambda n, c, a: f"{c.getrandbits(40):x}", "target clicks:int"),
        "one kind, read by its key",
    ),
    ("profiles by user", flat(random_id("USER"), "who:name town:city"), "a user has one profile"),
    (
        "flags of features by user",
        flat(random_id("USER"), "beta:flag dark:flag"),
        "one item a user",
    ),
    (
        "prices by article",
        flat(random_id("SKU"), "cents:int currency:EUR|USD"),
        "one price an article",
    ),
    (
        "hashes of files",
        flat(lambda n, c, a: f"{c.getrandbits(160):040x}", "object:id bytes:int"),
        "found by the hash",
    ),
    (
        "states of devices",
        flat(random_id("DEVICE"), "celsius:int seen:time"),
        "the last state only",
    ),
):
    decoy(title, PK, rows, {"A18": f"one kind: {why}"})


def crowded(keys: str, spec: str, count: int = 2_400) -> Rows:
    """So few partition keys for all items, evenly."""
    split = keys.split()

    def rows(chance: Random, now: float) -> Iterator[Item]:
        for number in range(count):
            at = ago(chance, now)
            pk = split[number % len(split)]
            yield {"pk": pk, "sk": uuid(chance)} | filled(spec, chance, at)

    return rows


def fixed(names: tuple[str, ...]) -> Callable[[int, int], str]:
    return lambda number, hashed: names[number % len(names)]


EACH = {
    "A15": "each of the few collections is a large share",
    "A18": "where the partition key is the kind, no other attribute tells it",
}
for title, keys, spec in (
    ("products and customers under the name of their kind", "PRODUCT CUSTOMER", "label since:day"),
    ("orders by region", "emea apac amer", "cents:int buyer:name"),
    ("readings by kind of sensor", "temperature humidity pressure", "sensor:id v:int"),
    ("tasks by state", "todo doing review done", "subject who:name"),
    ("citizens by district", "north south east west centre", "who:name street"),
    ("parcels by depot", "Bonn Lyon Oslo", "to:city grams:int"),
    ("everything under one key", "ALL", "label words"),
):
    plant(title, SK, crowded(keys, spec), "A19", allowed=ONE | EACH)
for title, names, each in (
    ("four plants with a million events each", "Bonn Lyon Oslo Graz", 1_000_000),
    ("three tenants with eight hundred thousand rows each", "acme globex initech", 800_000),
):
    plant(
        title,
        SK,
        None,
        "A19",
        virtual=Collections(
            len(names.split()), each, body_of(400), YEAR, key=fixed(tuple(names.split()))
        ),
        allowed=ONE | EACH,
    )

for title, rows, why in (
    (
        "a table of settings with three keys",
        crowded("mail billing search", "words", 12),
        "a dozen small items that hardly change",
    ),
    (
        "flags of features for two environments",
        crowded("staging production", "enabled:flag", 14),
        "it is tiny, and stays so",
    ),
    (
        "votes over two hundred shards",
        series(pooled("VOTE", 200), "ballot:id", 200, 6),
        "two hundred keys",
    ),
    (
        "tenants, a hundred and sixty of them",
        series(random_id("TENANT"), "who:name", 160, 7),
        "enough",
    ),
    (
        "exchange rates of six currencies",
        crowded("EUR USD GBP CHF JPY SEK", "rate:int", 18),
        "three rates a currency",
    ),
    (
        "cells of a map, three hundred",
        series(pooled("CELL", 300), "lat:int lon:int", 300, 5),
        "three hundred keys",
    ),
):
    decoy(title, SK, rows, {"A19": why, "A15": "all alike"})


# A8, H1 to H7: what is seen while a table is used


def known(tag: str) -> Key:
    """The first ten have one of SLUGS for an id."""
    return lambda n, c, a: f"{tag}#{SLUGS[n] if n < len(SLUGS) else uuid(c)}"


def stepped(attribute: str, step: Callable[[Random], int]) -> Change:
    return lambda chance, old, at: old | {attribute: old[attribute] + step(chance)}


def hot(tag: str) -> str:
    return f"{tag}#{SLUGS[0]}"


for title, tag, spec, attribute, step in (
    ("views of one page counted in its item", "PAGE", "title views:int", "views", lambda c: 1),
    (
        "likes of one post counted in its item",
        "POST",
        "author:name likes:int",
        "likes",
        lambda c: 1,
    ),
    ("a sequence that hands out numbers", "SEQ", "owner:name last:int", "last", lambda c: 1),
    (
        "votes for one candidate counted in its item",
        "CANDIDATE",
        "who:name votes:int",
        "votes",
        lambda c: 1,
    ),
    (
        "energy of a whole grid added up in one item",
        "GRID",
        "town:city wh:int",
        "wh",
        lambda c: c.randint(1, 9),
    ),
    (
        "downloads of one package counted in its item",
        "PACKAGE",
        "label downloads:int",
        "downloads",
        lambda c: 1,
    ),
):
    plant(
        title,
        PK,
        flat(known(tag), spec),
        "A8",
        stream=updates(mostly(hot(tag), 0.65), stepped(attribute, step), 900),
        allowed=ONE | BUSY,
    )

for title, tag, spec, attribute, step in (
    (
        "stock of the article on sale, at a thousand writes a second",
        "SKU",
        "label stock:int",
        "stock",
        lambda c: -1,
    ),
    (
        "the jackpot of a casino, at a thousand writes a second",
        "JACKPOT",
        "label cents:int",
        "cents",
        lambda c: 5,
    ),
    (
        "seats sold of one concert, at a thousand writes a second",
        "CONCERT",
        "hall:city sold:int",
        "sold",
        lambda c: 1,
    ),
):
    plant(
        title,
        PK,
        flat(known(tag), spec),
        "A8",
        "H1",
        stream=updates(mostly(hot(tag), 0.8), stepped(attribute, step), 1_200),
        insights=(*top(tag, 54_000, 500), refused(tag, 900)),
        metrics=(*used(3_000, 64_000), *throttled("Write", "KeyRangeThroughput", 900)),
        allowed=ONE | {"H7": BUSY["H7"]},
    )

STEPS = ["queued", "picked", "packed", "sent"]


def next_state(chance: Random, old: Item, at: float) -> Item:
    return old | {"state": STEPS[(STEPS.index(old.get("state", "sent")) + 1) % 4]}


for title, spec, pick, change, why in (
    (
        "a version in each item, for optimistic locking",
        "label version:int",
        anyone,
        stepped("version", lambda c: 1),
        "each item has its own, and none is written often",
    ),
    (
        "a conveyor whose state changes all the time",
        "label",
        mostly(hot("X"), 0.4),
        next_state,
        "a state, no number",
    ),
    (
        "the heartbeat of a scheduler",
        "label beat:time",
        mostly(hot("X"), 0.4),
        lambda c, old, at: old | {"beat": iso(at)},
        "a time, as a text: no number changes",
    ),
    (
        "the temperature of a furnace",
        "label celsius:int at:time",
        mostly(hot("X"), 0.4),
        lambda c, old, at: old | {"celsius": c.randint(1_190, 1_260), "at": iso(at)},
        "a measured value with the time of it: not only a number changes",
    ),
    (
        "views of all pages, evenly",
        "title views:int",
        anyone,
        stepped("views", lambda c: 1),
        "seven hundred counters, none of which is hot",
    ),
    (
        "positions of taxis",
        "plate:id lat:int lon:int",
        anyone,
        lambda c, old, at: old | {"lat": c.randint(1, 90_000), "lon": c.randint(1, 90_000)},
        "places, not counts",
    ),
    (
        "the price of one share",
        "label cents:int by:name",
        mostly(hot("X"), 0.4),
        lambda c, old, at: old | {"cents": c.randint(4_000, 4_400), "by": name(c)},
        "a price and who made it: not only a number changes",
    ),
):
    decoy(
        title,
        PK,
        flat(known("X"), spec),
        {"A8": why},
        stream=updates(pick, change),
        allowed=ONE
        | (BUSY if pick is not anyone else {})
        | ({"A11": "the steps come round again"} if change is next_state else {}),
    )
decoy(
    "votes over forty shards of a counter",
    SK,
    both(
        series(lambda n, c, a: f"COUNT#violet.{n:02}", "votes:int", 40, 1, lambda *_: "COUNT"),
        series(random_id("COUNT"), "votes:int", 200, 1, lambda *_: "COUNT"),
    ),
    {
        "A8": "the counter is spread over forty items",
        "A1": "the numbers are shards",
        "H1": "evenly",
    },
    stream=updates(
        lambda c, items, n: c.choice([one for one in items if "#violet" in one["pk"]]),
        stepped("votes", lambda c: 1),
    ),
    allowed=ONE | {"H7": "forty keys over six shards"},
)

ENOUGH = "a key range is throttled; the table's capacity is not the reason"
for title, tag, spec in (
    ("a row of global settings that each job writes", "CONFIG", "words"),
    ("the match that all the world comments on", "MATCH", "home:name away:name"),
    ("one large tenant of a SaaS", "TENANT", "label plan:free|pro"),
    ("the gateway through which all devices report", "GATEWAY", "town:city"),
    ("a clearing account that each payment touches", "ACCOUNT", "owner:name"),
    ("the depot of a metropolis", "DEPOT", "town:city"),
):
    plant(
        title,
        PK,
        flat(known(tag), spec),
        "H1",
        stream=updates(mostly(hot(tag), 0.8), count=1_000),
        insights=(*top(tag, 56_000, 400), refused(tag, 1_200)),
        metrics=(*used(4_000, 66_000), *throttled("Write", "KeyRangeThroughput", 1_200)),
        allowed=ONE | {"H7": BUSY["H7"]},
        traps={"H4": ENOUGH},
    )
for title, tag, spec in (
    ("the article of a television advertisement, read by all", "SKU", "label cents:int"),
    ("a timetable that every app reads each minute", "LINE", "label"),
    ("the profile of a celebrity", "USER", "who:name"),
):
    plant(
        title,
        PK,
        flat(known(tag), spec),
        "H1",
        insights=(*top(tag, 168_000, 900), refused(tag, 2_000)),
        metrics=(*used(190_000, 200), *throttled("Read", "KeyRangeThroughput", 2_000)),
        traps={"H4": ENOUGH},
    )

for title, first, others, minutes, reads, writes, why in (
    (
        "ten articles that sell equally well",
        420,
        400,
        300,
        60_000,
        4_000,
        "none stands out, and all are far below a partition's limit",
    ),
    (
        "a bestseller with three in a hundred reads",
        1_800,
        900,
        300,
        60_000,
        2_000,
        "thirty units a second, of three thousand",
    ),
    (
        "a small table whose clerk uses one key",
        40,
        3,
        300,
        60,
        12,
        "forty units a minute are nothing",
    ),
    (
        "an article in the news for two minutes",
        5_400,
        500,
        2,
        60_000,
        2_000,
        "ninety units a second for two minutes",
    ),
):
    decoy(
        title,
        PK,
        flat(known("SKU"), "label cents:int"),
        {"H1": why, "H4": "nothing is throttled"},
        insights=top("SKU", first, others, minutes),
        metrics=used(reads, writes),
    )

for title, template, tag in (
    ("clicks of today, as they come", "%Y-%m-%d", "CLICK#"),
    ("calls of today, as they come", "%Y%m%d", ""),
    ("weighings of a harvest by day, as they come", "%Y-%m-%d", "WEIGH#"),
    ("card payments of a day, as they come", "%Y/%m/%d", "CARDS#"),
    ("ticks of a stock exchange by day, as they come", "%Y-%m-%d", "TICK#"),
    ("border crossings by day, as they come", "%Y%m%d", "BORDER#"),
    ("bets by day, as they come", "%Y/%m/%d", ""),
    ("blood pressures of all patients by day, as they come", "%Y-%m-%d", ""),
):
    plant(
        title,
        SK,
        dated(template, "source:id amount:int", 110, 13, tag),
        "A3",
        "H2",
        stream=births(
            lambda c, at, n, items, tag=tag, template=template: {
                "pk": tag + moment(at).strftime(template),
                "sk": f"{iso(at)}#{uuid(c)}",
                "source": uuid(c),
                "amount": c.randint(1, 900),
            }
        ),
        allowed=ONE
        | {"A19": FEW["A19"]}
        | {"H7": "all is written to one shard", "H1": "the key of today is the hottest"},
    )


def ending(key: str, sort: Key, share: float) -> Writes:
    """New items, most of them under one key; sort: of their number, chance and time."""

    def make(chance: Random, at: float, number: int, items: list[Item]) -> Item:
        pk = key if chance.random() < share else chance.choice(items)["pk"]
        return {
            "pk": pk,
            "sk": sort(number, chance, at),
            "expires": int(at + 30 * DAY),
            "amount": chance.randint(1, 900),
        }

    return births(make)


RISING: dict[str, Key] = {
    "times": lambda n, c, a: f"{iso(a)}#{uuid(c)[:8]}",
    "ULIDs": lambda n, c, a: ulid(a, c),
    "KSUIDs": lambda n, c, a: ksuid(a, c),
    "numbers": lambda n, c, a: f"{int(a * 10):012}",
}
ELSEWHERE: dict[str, Key] = {
    "random ids": lambda n, c, a: uuid(c),
    "names": lambda n, c, a: f"{mail(c)}",
    "hashes": lambda n, c, a: f"{c.getrandbits(64):016x}",
}
for title, tag, share in (
    ("bids of one auction by {times}", "AUCTION", 0.9),
    ("the chat of one stream by {ULIDs}", "CHANNEL", 0.85),
    ("the outbox of one queue by {KSUIDs}", "QUEUE", 1.0),
    ("entries of one journal by {numbers}", "JOURNAL", 0.95),
    ("events of one gateway by {ULIDs}", "GATEWAY", 0.8),
    ("votes in one poll by {random ids}", "POLL", 0.9),
    ("members of one list by {names}", "LIST", 0.85),
    ("files of one bucket by {hashes}", "BUCKET", 0.9),
):
    sort = title.partition("{")[2].rstrip("}")
    rows = fading(known(tag), "amount:int", 150, 8, (RISING | ELSEWHERE)[sort])
    shown: dict[str, Any] = {
        "stream": ending(hot(tag), (RISING | ELSEWHERE)[sort], share),
        "allowed": ONE | {"H7": "its shard has most", "H1": "the hottest key", "A15": "it grows"},
    }
    title = title.replace("{", "").replace("}", "")
    if sort in RISING:
        plant(title, EXPIRING, rows, "H2", **shown)
    else:
        decoy(title, EXPIRING, rows, {"H2": "all over the collection, so a split helps"}, **shown)


def born_under(key: Callable[[Random, float, list[Item]], str]) -> Writes:
    def make(chance: Random, at: float, number: int, items: list[Item]) -> Item:
        return {
            "pk": key(chance, at, items),
            "sk": f"{iso(at)}#{uuid(chance)[:8]}",
            "expires": int(at + 30 * DAY),
            "amount": chance.randint(1, 900),
        }

    return births(make)


for title, key, sent, why in (
    (
        "readings under their devices, as they come",
        random_id("DEVICE"),
        lambda c, at, items: c.choice(items)["pk"],
        "over all devices",
    ),
    (
        "orders under new keys, as they come",
        random_id("ORDER"),
        lambda c, at, items: f"ORDER#{uuid(c)}",
        "each has a new key, which hashes anywhere",
    ),
    (
        "events under ULIDs, as they come",
        lambda n, c, a: f"EVENT#{ulid(a - n * 900, c)}",
        lambda c, at, items: f"EVENT#{ulid(at, c)}",
        "keys that rise do not hash beside each other",
    ),
    (
        "bookings by tenant and day, as they come",
        lambda n, c, a: f"T{Random(n % 90).getrandbits(40):010x}#{day(a - n // 90 * DAY)}",
        lambda c, at, items: f"T{Random(c.randrange(90)).getrandbits(40):010x}#{day(at)}",
        "ninety tenants have ninety keys of today",
    ),
    (
        "log lines by day over 64 shards, as they come",
        lambda n, c, a: f"{day(a - n // 64 * DAY)}#{n % 64:02}",
        lambda c, at, items: f"{day(at)}#{c.randrange(64):02}",
        "sixty-four keys of today",
    ),
    (
        "comments under their posts, as they come",
        random_id("POST"),
        lambda c, at, items: c.choice(items)["pk"],
        "over all posts",
    ),
    (
        "moves of games, as they come",
        random_id("GAME"),
        lambda c, at, items: c.choice(items)["pk"],
        "hundreds of games at a time",
    ),
    (
        "scans of parcels, as they come",
        random_id("PARCEL"),
        lambda c, at, items: c.choice(items)["pk"],
        "each parcel is scanned now and then",
    ),
):
    decoy(
        title,
        EXPIRING,
        fading(key, "amount:int", 256, 5),
        {"H2": why, "H7": "over all shards", "H1": "evenly", "A3": "no key is only a date"},
        stream=born_under(sent),
    )

for title, tag, spec, why, limit in (
    (
        "leads, whose index by owner has too few units",
        "LEAD",
        "who:name",
        "ProvisionedThroughput",
        70,
    ),
    (
        "samples, whose index by courier starves",
        "SAMPLE",
        "taken:time",
        "ProvisionedThroughput",
        400,
    ),
    ("tickets, whose index by agent starves", "TICKET", "subject", "ProvisionedThroughput", 150),
    ("pallets, whose index by shelf starves", "PALLET", "grams:int", "ProvisionedThroughput", 220),
    ("claims, whose index by clerk starves", "CLAIM", "cents:int", "ProvisionedThroughput", 90),
    ("songs, whose index by album starves", "SONG", "title", "ProvisionedThroughput", 120),
    (
        "trees of a town, whose index by street starves",
        "TREE",
        "planted:day",
        "MaxOnDemandThroughput",
        160,
    ),
):
    attribute = title.partition("by ")[2].split()[0]
    schema, rows = indexed(
        tag, spec, Index(f"by-{attribute}", attribute, "updatedAt"), pooled("A", 300)
    )
    capacity = (
        {"OnDemandThroughput": {"MaxReadRequestUnits": 600, "MaxWriteRequestUnits": 100}}
        if why.startswith("Max")
        else provisioned(200, 200)
    )
    plant(
        title,
        schema,
        rows,
        f"H3 by-{attribute}",
        metrics=(
            *used(1_200, 5_000, f"by-{attribute}"),
            *throttled("Write", why, limit, f"by-{attribute}", 2.0),
        ),
        overlay=capacity,
        allowed=ONE | ALL_IN | {"H4": "capacity is short, though only that of the index"},
        traps={f"A9 by-{attribute}": "three hundred values, evenly", "H1": "no key range"},
    )
for title, tag, attribute, values in (
    ("parcels, whose index by state is throttled", "PARCEL", "state", "new sent done"),
    ("alerts, whose index by severity is throttled", "ALERT", "severity", "low mid high"),
):
    index = Index(f"by-{attribute}", attribute, "updatedAt")
    schema, rows = indexed(tag, "words", index, one_of(values))
    plant(
        title,
        schema,
        rows,
        f"H3 by-{attribute}",
        f"A9 by-{attribute}",
        f"H1 by-{attribute}",
        metrics=(
            *used(20_000, 150_000, f"by-{attribute}"),
            *throttled("Write", "KeyRangeThroughput", 2_500, f"by-{attribute}", 2.0),
        ),
        allowed=ONE | ALL_IN,
        traps={"H4": "capacity on demand: a key range of the index is the reason"},
    )

for title, metrics, why in (
    (
        "an index that is written as much as its table",
        used(3_000, 40_000, "by-owner"),
        "nothing is throttled",
    ),
    (
        "an index that is hardly used",
        (*used(9_000, 900), *used(30, 900, "by-owner")[2:]),
        "nothing is throttled",
    ),
    (
        "an index that is read day and night",
        used(80_000, 300, "by-owner"),
        "reads do not hold up writes",
    ),
    (
        "an index that was filled last week",
        (
            *used(900, 900, "by-owner"),
            Metric(
                "OnlineIndexConsumedWriteCapacity", 6_000, index="by-owner", days=8, since=7 * DAY
            ),
        ),
        "it was built then, which throttled nothing",
    ),
):
    schema, rows = indexed(
        "LEAD", "who:name", Index("by-owner", "owner", "updatedAt"), pooled("O", 300)
    )
    decoy(
        title,
        schema,
        rows,
        {"H3 by-owner": why, "A7": "one index, which is read"},
        metrics=metrics,
        allowed=ONE | ALL_IN,
    )

# I2, I3, I4: what an index costs, and what its key is made of

for title, tag, attribute, size, units, reads, projection, why in (
    ("letters, and whole in an index by sender", "LETTER", "sender", 3 * KB, 9_000, 2, "ALL", ""),
    ("reports, and whole in an index by plant", "REPORT", "plant", 5 * KB, 24_000, 9, "ALL", ""),
    ("claims, and whole in an index by clerk", "CLAIM", "clerk", 2 * KB, 6_000, 1, "ALL", ""),
    ("recipes, and whole in an index by cook", "RECIPE", "cook", 4 * KB, 4_000, 1, "ALL", ""),
    ("events, and whole in an index by rule", "EVENT", "rule", 6 * KB, 60_000, 20, "ALL", ""),
    (
        "letters, and an index of their keys",
        "LETTER",
        "sender",
        3 * KB,
        9_000,
        2,
        "KEYS_ONLY",
        "keys",
    ),
    ("small notes, whole in an index", "NOTE", "author", 120, 9_000, 2, "ALL", "items are small"),
    ("articles, read by their index", "ARTICLE", "topic", 3 * KB, 900, 60_000, "ALL", "much read"),
    ("manuals that nobody changes", "MANUAL", "model", 5 * KB, 12, 9_000, "ALL", "hardly written"),
    ("offers, and an index of prices", "OFFER", "shop", 4 * KB, 9_000, 3, "INCLUDE", "prices only"),
):
    index = Index(
        f"by-{attribute}",
        attribute,
        "updatedAt",
        projection=projection,
        include=("cents",) if projection == "INCLUDE" else (),
    )
    schema, rows = indexed(tag, "cents:int", index, pooled("A", 300))
    if size > 200:
        rows = widened(rows, size)
    own = units if projection == "ALL" else units * KB // size
    shown: dict[str, Any] = {
        "metrics": (
            *used(8_000, units),
            Metric("ConsumedReadCapacityUnits", reads, index=index.name, days=30),
            Metric("ConsumedWriteCapacityUnits", own, index=index.name, days=30),
        ),
        "allowed": ONE | ALL_IN,
    }
    if why:
        decoy(title, schema, rows, {f"I2 {index.name}": why}, **shown)
    else:
        plant(title, schema, rows, f"I2 {index.name}", **shown)

for title, tag, names, units, each, why in table(
    """
    positions, each a new key in three indexes ; VAN ; cell driver tour ; 1000 ; 2000 ; -
    scores, each a new key in four indexes ; PLAYER ; league level club season ; 6000 ; 12000 ; -
    quotes, each a new key in three indexes ; QUOTE ; trader venue desk ; 20000 ; 40000 ; -
    works, each a new key in four indexes ; WORK ; crew site shift tool ; 900 ; 1700 ; -
    pallets, each a new key in three indexes ; PALLET ; shelf aisle gate ; 4000 ; 7900 ; -
    players, and one index written as they are ; PLAYER ; club ; 6000 ; 6000 ; as much as the table
    works whose crew seldom changes ; WORK ; crew site ; 9000 ; 700 ; a sixth of the table
    quotes, and two indexes of the few that are open ; QUOTE ; trader desk ; 20000 ; 2000 ;
    a fifth of the table
    vans, and an index by depot ; VAN ; depot ; 5000 ; 40 ; depots hardly change
    pallets, read by three indexes ; PALLET ; shelf aisle gate ; 300 ; 90 ; less than the table
    """
):
    split = names.split()
    indexes = tuple(Index(f"by-{one}", one, projection="KEYS_ONLY") for one in split)
    metrics = used(9_000, float(units))
    for one in indexes:
        metrics += used(4_000, float(each), one.name)[2:]
    shown = {"metrics": metrics, "allowed": ONE | ALL_IN}
    schema, rows = Schema("pk", indexes=indexes), many(tag, split)
    if why == "-":
        plant(title, schema, rows, "I3", **shown)
    else:
        decoy(title, schema, rows, {"I3": why}, **shown)


def joined(tag: str, spec: str, attribute: str, template: str) -> Rows:
    """One of ninety tenants' items; attribute: the template, filled with the item's own."""

    def rows(chance: Random, now: float) -> Iterator[Item]:
        for number in range(900):
            at = ago(chance, now)
            row = {"pk": f"{tag}#{uuid(chance)}", "tenant": f"t{chance.randrange(90):03}"}
            row |= filled(spec, chance, at)
            month, shard = f"{moment(at):%Y-%m}", f"{number % 64:02}"
            yield row | {attribute: template.format(**row, month=month, shard=shard)}

    return rows


for title, tag, spec, attribute, template, sorts, why in table(
    """
    orders by tenant, sorted by STATE#DATE ; ORDER ; state:open|paid|sent made:time ; stateMade ;
    {state}#{made} ; yes ; -
    users by tenant, sorted by CITY#NAME ; USER ; town:city who:name ; townWho ; {town}#{who} ;
    yes ; -
    bills, and an index by tenant and state ; BILL ; state:open|paid cents:int ; tenantState ;
    {tenant}#{state} ; no ; -
    tasks, and an index by tenant and assignee ; TASK ; assignee:name due:day ; whose ;
    {tenant}|{assignee} ; no ; -
    permits by tenant, sorted by street, number and day ; PERMIT ; street:name house:int asked:day ;
    place ; {street}#{house}#{asked} ; yes ; -
    orders by tenant, sorted by their time ; ORDER ; state:open|paid|sent ; made ; {month}-07T10 ;
    yes ; a time of its own
    jobs, and an index by state and shard ; JOB ; state:queued|done script ; stateShard ;
    {state}#{shard} ; no ; no attribute has the shard
    bills, and an index by tenant and month ; BILL ; cents:int payer:name ; tenantMonth ;
    {tenant}#{month} ; no ; no attribute has the month
    users by tenant, sorted by a code ; USER ; who:name town:city ; code ; u-{month}-{shard} ; yes ;
    the code is in no other attribute
    permits, and an index by tenant and district ; PERMIT ; street:name asked:day ; area ;
    {tenant}-d{shard} ; no ; no attribute has the district
    """
):
    index = Index("byKey", *(("tenant", attribute) if sorts == "yes" else (attribute, "pk")))
    schema, rows = Schema("pk", indexes=(index,)), joined(tag, spec, attribute, template)
    if why == "-":
        plant(title, schema, rows, "I4 byKey", allowed=ONE | ALL_IN)
    else:
        decoy(title, schema, rows, {"I4 byKey": why}, allowed=ONE | ALL_IN)


for title, tag, attribute, kind, reads, writes in (
    ("orders with too few write units", "ORDER", "buyer", "Write", 400, 100),
    ("readings with too few write units", "METER", "street", "Write", 100, 250),
    ("timetables with too few read units", "LINE", "town", "Read", 150, 20),
    ("a catalogue with too few read units", "SKU", "maker", "Read", 300, 50),
):
    schema, rows = indexed(
        tag, "words", Index(f"by-{attribute}", attribute, "updatedAt"), pooled("A", 300)
    )
    plant(
        title,
        schema,
        rows,
        "H4",
        metrics=(
            *used(reads * 58, writes * 58),
            *used(600, writes * 30, f"by-{attribute}")[2:],
            *throttled(kind, "ProvisionedThroughput", 350, days=3.0),
        ),
        overlay=provisioned(reads, writes),
        allowed=ONE | ALL_IN,
        traps={
            f"H3 by-{attribute}": "the table is throttled, and not its index",
            "H1": "no key range",
        },
    )
for title, tag, kind, why, reads, writes in (
    ("tariffs with too few read units", "TARIFF", "Read", "ProvisionedThroughput", 80, 20),
    (
        "payslips at the end of the month, with too few write units",
        "PAYSLIP",
        "Write",
        "ProvisionedThroughput",
        60,
        60,
    ),
    ("bets of a final, at the limit of the account", "BET", "Write", "AccountLimit", 900, 800),
    ("saved games under a maximum on demand", "GAME", "Write", "MaxOnDemandThroughput", 400, 150),
    ("weather under a maximum on demand", "CELL", "Read", "MaxOnDemandThroughput", 500, 50),
):
    plant(
        title,
        PK,
        flat(known(tag), "words"),
        "H4",
        metrics=(*used(reads * 58, writes * 58), *throttled(kind, why, 300, days=3.0)),
        insights=top(tag, 30, 28),
        overlay=limited(why, reads, writes),
        traps={"H1": "the hottest key has half a unit a second"},
    )


# H5: a table that is cold


def warm(reads: int, writes: int) -> dict[str, Any]:
    units = {"ReadUnitsPerSecond": reads, "WriteUnitsPerSecond": writes, "Status": "ACTIVE"}
    return {"WarmThroughput": units}


COLD = warm(12_000, 4_000)
for title, told, kind, second, peak, why in (
    ("tickets, and a sale of 20,000 writes a second", COLD, "Write", 60, 20_000, ""),
    ("a new game, and 30,000 writes a second to come", COLD, "Write", 0, 30_000, ""),
    ("a quiz on television, 15,000 writes a second to come", COLD, "Write", 5, 15_000, ""),
    ("gifts, with 500 write units for 5,000", provisioned(900, 500), "Write", 90, 5_000, ""),
    ("polls, with 100 write units for 2,000", provisioned(100, 100), "Write", 10, 2_000, ""),
    ("bets, which took more writes than are warm", COLD, "Write", 7_000, 0, ""),
    ("news, of which more was read than is warm", COLD, "Read", 21_000, 0, ""),
    ("fares, which lived on burst capacity", provisioned(900, 100), "Write", 190, 0, ""),
    ("a sale that was warmed for", warm(40_000, 40_000), "Write", 60, 20_000, "warm for twice"),
    ("gifts, with 6,000 units for 2,000", provisioned(900, 6_000), "Write", 90, 2_000, "enough"),
    ("polls of 1,000 writes a second", COLD, "Write", 10, 1_000, "a new table takes that"),
    ("bets of 1,500 writes a second", COLD, "Write", 1_500, 0, "4,000 are warm"),
    ("fares within their units", provisioned(900, 500), "Write", 300, 0, "500 are provisioned"),
    ("news, read a lot", COLD, "Read", 6_000, 0, "12,000 are warm"),
    ("a table that is hardly used", COLD, "Write", 1, 0, "nothing more is expected"),
    ("a sale that went well", warm(50_000, 30_000), "Write", 14_000, 0, "30,000 are warm"),
):
    more = {
        "overlay": told,
        "options": {"peak_writes": peak} if peak else {},
        "metrics": (
            Metric("ConsumedReadCapacityUnits", 900, days=30)
            if kind == "Write"
            else Metric("ConsumedWriteCapacityUnits", 900, days=30),
            Metric(f"Consumed{kind}CapacityUnits", second * 60, busy=(600, 603)),
        ),
    }
    rows = flat(random_id("ROW"), "label who:name")
    if why:
        decoy(title, PK, rows, {"H5": why}, **more)
    else:
        plant(title, PK, rows, "H5", **more)


def in_order_of_scan(batch: int, seconds: float, change: Change | None = None) -> Writes:
    """`items` are given as a scan returns them; they are copied, or changed, batch by batch."""

    def writes(chance: Random, now: float, items: list[Item]) -> Iterator[Write]:
        for number, row in enumerate(items[: int(840 / seconds) * batch]):
            back = 870 - seconds * (number // batch)
            if change is None:
                yield Write(back, None, row)
            else:
                yield Write(back, row, change(chance, row, now - back))

    return writes


def in_other_order(order: Callable[[Random, list[Item]], Iterable[Item]]) -> Writes:
    def writes(chance: Random, now: float, items: list[Item]) -> Iterator[Write]:
        for number, row in enumerate(list(order(chance, items))[:800]):
            yield Write(865 - number // 10 * 10.5, None, row)

    return writes


def parts(chance: Random, items: list[Item]) -> Iterable[Item]:
    """Sixteen segments side by side."""
    size = len(items) // 16
    return (items[part * size + number] for number in range(size) for part in range(16))


for title, tag, spec, batch, seconds, change in (
    ("users copied from the old table by a scan", "USER", "who:name", 25, 22, None),
    ("an export of meters loaded in its order", "METER", "street", 50, 45, None),
    ("articles that get a new attribute by a scan", "SKU", "label", 40, 36, noted),
    ("policies re-encrypted, page by page of a scan", "POLICY", "holder:name", 60, 50, noted),
    ("accounts moved to another region by a scan", "ACCOUNT", "owner:name", 100, 90, None),
    ("animals with a new tag number by a scan", "ANIMAL", "born:day", 30, 27, noted),
    ("land registry loaded from a backup", "PLOT", "street", 25, 21, None),
    ("players given a bonus by a scan", "PLAYER", "who:name", 80, 70, noted),
):
    plant(
        title,
        PK,
        flat(random_id(tag), spec, 1_000),
        "H6",
        stream=in_order_of_scan(batch, seconds, change),
        allowed=ONE | {"H7": "shard after shard"},
    )
for title, order, why in (
    (
        "users loaded in the order of a shuffled file",
        lambda c, items: c.sample(items, len(items)),
        "shuffled",
    ),
    (
        "users loaded in the order of their keys",
        lambda c, items: sorted(items, key=lambda one: one["pk"]),
        "keys in order hash anywhere",
    ),
    (
        "users loaded in the order of their names",
        lambda c, items: sorted(items, key=lambda one: one["who"]),
        "names have nothing to do with hashes",
    ),
    (
        "users copied by sixteen segments side by side",
        parts,
        "all segments are written at the same time",
    ),
    (
        "users loaded in the order in which they joined",
        lambda c, items: sorted(items, key=lambda one: one["joined"]),
        "by time",
    ),
):
    decoy(title, PK, USERS, {"H6": why, "H7": "over all shards"}, stream=in_other_order(order))
for title, rows in (
    ("orders changed here and there", ORDERS),
    ("tenants changed here and there", TENANTS),
    ("files changed here and there", tree("FILE", "title", "Page 3-6 words")),
):
    decoy(title, SK, rows, {"H6": "at random", "H7": "evenly", "H1": "evenly"}, stream=updates())


def of_shard(shard: int, share: float) -> Pick:
    def pick(chance: Random, items: list[Item], number: int) -> Item:
        if chance.random() >= share:
            return chance.choice(items)
        return chance.choice([one for one in items if shard_of(one["pk"]) == shard])

    return pick


for title, tag, spec, shard, share in (
    (
        "sensors of one part of the hashes that report all the time",
        "SENSOR",
        "celsius:int",
        0,
        0.85,
    ),
    ("players of a cup, whose keys are in one range", "PLAYER", "who:name", 1, 0.9),
    ("vans of a morning, whose keys are in one range", "VAN", "town:city", 2, 0.85),
    ("patients of a ward, whose keys are in one range", "PATIENT", "who:name", 3, 0.9),
    ("goods of a sale, whose keys are in one range", "SKU", "label", 4, 0.88),
    ("accounts of a bank run, whose keys are in one range", "ACCOUNT", "owner:name", 5, 0.9),
    ("meters of a valley, whose keys are in one range", "METER", "street", 0, 0.92),
    ("channels of an evening, whose keys are in one range", "CHANNEL", "label", 3, 0.86),
):
    plant(
        title,
        PK,
        flat(random_id(tag), spec, 900),
        "H7",
        stream=updates(of_shard(shard, share), count=1_000),
        traps={"H1": "a hundred and fifty keys share the load", "H2": "none is new"},
    )


# Tables that are as they should be

good("a shop: customers, orders, addresses", SK, ORDERS)
good("a SaaS: tenants, users, projects", SK, TENANTS)
good("devices and their readings, which TTL deletes", EXPIRING, DEVICES)
good(
    "complaints with agents in a sparse index",
    Schema(sort="sk", indexes=(GSI1,)),
    overloaded("COMPLAINT", "Comment words", "Attachment object:id", indexes=1),
    allowed=ALL_IN,
)
good(
    "subscriptions and receipts of an account",
    SK,
    tree("ACC", "mail", "Subscription 1-3 sku:id cents:int", "Receipt 2-6 cents:int"),
)
good(
    "vehicles, their features and drivers",
    SK,
    tree("VIN", "engine:petrol|diesel", "Feature 2-5 label on:flag", "Driver 1-2 who:name"),
)
good(
    "a travel plan: trips, hotels, flights",
    SK,
    tree("TRIP", "who:name", "Hotel 1-3 town:city", "Flight 1-4 from:city to:city"),
)
good(
    "a hospital's patients, stays and medication",
    SK,
    tree("PATIENT", "who:name", "Stay 1-3 ward:name", "Dose 2-6 drug:name"),
)
good(
    "a forum: threads and answers",
    SK,
    tree("THREAD", "subject by:name", "Answer 2-7 words by:name"),
)
good(
    "farms with fields and works",
    SK,
    tree("FARM", "town:city", "Field 1-4 crop:name", "Work 2-5 done:day"),
)
good(
    "chat rooms: members and messages",
    SK,
    tree("ROOM", "label", "Member 2-5 who:name", "Message 3-8 words"),
)
good("wallets and transfers", SK, tree("WALLET", "owner:name", "Transfer 2-7 cents:int"))
good(
    "films, casts and reviews",
    SK,
    tree("FILM", "title", "Role 2-6 who:name", "Review 1-4 stars:1|2|3|4|5"),
)
good(
    "building permits, plans and notices",
    SK,
    tree("PERMIT", "street", "Plan 1-4 object:id", "Notice 1-3 words"),
)
