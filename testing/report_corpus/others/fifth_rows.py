"""Helpers with which the tables of the fifth part are declared: items, streams, metrics and calls.

A field is written as "total:cents placed:time", a name and a kind of value. Keys and ids are
templates or functions, so that each table can follow the conventions of its library.
"""

from ast import literal_eval
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from random import Random
from re import split
from typing import Any

from testing.report_corpus.case import DAY, Contributor, Index, Item, Metric, Schema, Write, case
from testing.report_corpus.words import (
    BASE62,
    CITIES,
    day,
    iso,
    ksuid,
    name,
    some,
    text,
    ulid,
    uuid,
    uuid7,
)

KB = 1024
Rows = Callable[[Random, float], Iterator[Item]]
Key = Callable[[int, Random, float], Any]
Writes = Callable[[Random, float, list[Item]], Iterator[Write]]


def declare(
    title: str,
    schema: Schema,
    items: Rows | None,
    found: str = "",
    tempts: str | Mapping[str, str] = "",
    **more: Any,
) -> None:
    """Declare a table.

    Args:
        title: What the table is.
        schema: Its keys and indexes.
        items: A function that yields its items.
        found: The rules that must fire, separated by commas, for example "A1, A9 byStatus".
        tempts: Rules that must not fire although the table resembles their fault, with reasons; as
            text for example "A1: random ids; A9 byStatus: a hundred values".
        more: Other fields of the case.
    """
    planted = tuple(rule.strip() for rule in found.split(",") if rule.strip())
    kind = "planted" if planted else "decoy" if tempts else "clean"
    if isinstance(tempts, str):
        tempts = dict(trap.split(": ") for trap in tempts.split("; ") if trap)
    more.setdefault("traps", tempts)
    case(f"fifth: {title}", kind, schema, items=items, found=planted, **more)  # type: ignore[arg-type]


def rows_of(text: str) -> list[tuple[Any, ...]]:
    """Return the rows of a table, a line each, whose cells have bars between them.

    A cell that is a literal of Python becomes its value; every other cell is a text.
    """
    lines = text.strip().splitlines()
    return [tuple(cell(part.strip()) for part in split(r" \|(?= |$)", line)) for line in lines]


def cell(text: str) -> Any:
    try:
        return literal_eval(text)
    except (ValueError, SyntaxError):
        return text


# Values and ids


MAKERS: dict[str, Callable[[Random, float], Any]] = {
    "": lambda chance, at: some(chance, 15, 60),
    "time": lambda chance, at: iso(at),
    "day": lambda chance, at: day(at),
    "epoch": lambda chance, at: int(at),
    "ms": lambda chance, at: int(at * 1000),
    "cents": lambda chance, at: chance.randint(99, 250_000),
    "int": lambda chance, at: chance.randint(1, 5_000),
    "float": lambda chance, at: str(round(chance.random() * 100, 3)),
    "name": lambda chance, at: name(chance),
    "city": lambda chance, at: chance.choice(CITIES),
    "mail": lambda chance, at: mail(chance),
    "flag": lambda chance, at: chance.random() < 0.5,
    "uuid": lambda chance, at: uuid(chance),
    "hex": lambda chance, at: f"{chance.getrandbits(48):012x}",
    "long": lambda chance, at: some(chance, 150, 400),
    "list": lambda chance, at: [some(chance, 3, 12) for _ in range(3)],
    "map": lambda chance, at: {"width": chance.randint(1, 99), "note": some(chance, 5, 20)},
    "point": lambda chance, at: {
        "lat": str(chance.uniform(47, 55)),
        "lon": str(chance.uniform(6, 15)),
    },
}


def value(kind: str, chance: Random, at: float) -> Any:
    """Return a value of a kind. Kinds with bars are alternatives, for example "new|paid"."""
    return MAKERS[kind](chance, at) if kind in MAKERS else chance.choice(kind.split("|"))


def mail(chance: Random) -> str:
    """Return an address that no other item has."""
    return f"{chance.choice(CITIES).lower()}.{chance.getrandbits(40):x}@example.org"


def unique_value(attribute: str, chance: Random) -> str:
    """Return a value of a unique attribute, such as an address or a number plate."""
    unique = f"{chance.getrandbits(44):x}"
    forms = {"email": "{}@example.org", "domain": "{}.example.org", "phone": "+49{}"}
    return forms.get(attribute, "{}").format(unique)


def fields(spec: str, chance: Random, at: float) -> Item:
    """Return the attributes of a specification such as "total:cents placed:time"."""
    pairs = (part.partition(":") for part in spec.split())
    return {attribute: value(kind, chance, at) for attribute, _, kind in pairs}


def identifier(kind: str, chance: Random, at: float, number: int) -> str:
    """Return an id of a kind. Every other kind is a format of `number`, for example "{:04}"."""
    match kind:
        case "uuid":
            return uuid(chance)
        case "uuid7":
            return uuid7(at, chance)
        case "ulid":
            return ulid(at, chance)
        case "ksuid":
            return ksuid(at, chance)
        case "hex":
            return f"{chance.getrandbits(64):016x}"
        case "nano":
            return "".join(chance.choices(BASE62, k=21))
        case "iso":
            return iso(at)
        case "day":
            return day(at)
        case "epoch":
            return str(int(at))
        case "ms":
            return str(int(at * 1000))
    return kind.format(number)


def past(chance: Random, now: float, days: float = 300) -> float:
    """Return a moment between one day ago and so many days ago."""
    return now - (1 + chance.random() * days) * DAY


def keyed(template: str, kind: str = "uuid") -> Key:
    """Return a function that makes keys from a template, in which {} is an id of a kind."""
    return lambda number, chance, at: template.format(identifier(kind, chance, at, number))


def known(tag: str, number: int) -> str:
    """Return the key of an item that the application can compute."""
    return f"{tag}#{Random(f'{tag}{number}').getrandbits(64):016x}"


def known_key(tag: str) -> Key:
    return lambda number, chance, at: known(tag, number)


def among(values: int, prefix: str = "") -> Key:
    """Return a function that makes one of so many values, each about as often."""

    def make(number: int, chance: Random, at: float) -> str:
        which = Random(f"{prefix}{number}").randrange(values)
        return prefix + f"{Random(f'{prefix}{which}').getrandbits(40):010x}"

    return make


def weighted(usual: Any, share: float, rare: str) -> Key:
    """Return a function that mostly makes the usual value, otherwise one of `rare`."""
    return lambda number, chance, at: (
        usual if chance.random() < share else chance.choice(rare.split("|"))
    )


# Items


def single(
    key: Key, spec: str, count: int = 600, pk: str = "pk", days: float = 300, **more: Key
) -> Rows:
    """Return rows of one kind without a sort key. `more` makes further attributes."""

    def rows(chance: Random, now: float) -> Iterator[Item]:
        for number in range(count):
            at = past(chance, now, days)
            row = {pk: key(number, chance, at)} | fields(spec, chance, at)
            yield row | {attribute: make(number, chance, at) for attribute, make in more.items()}

    return rows


def series(
    key: Key,
    sort: Key,
    spec: str,
    keys: int = 130,
    each: tuple[int, int] = (3, 9),
    pk: str = "pk",
    sk: str = "sk",
    days: float = 60,
    **more: Key,
) -> Rows:
    """Return rows of one kind in collections. `sort` gets the number within the collection."""

    def rows(chance: Random, now: float) -> Iterator[Item]:
        count = 0
        for number in range(keys):
            owner = key(number, chance, now)
            for position in range(chance.randint(*each)):
                at = past(chance, now, days)
                row = {pk: owner, sk: sort(position, chance, at)} | fields(spec, chance, at)
                yield row | {name_: make(count, chance, at) for name_, make in more.items()}
                count += 1

    return rows


@dataclass(frozen=True, slots=True)
class Style:
    """A library's form of the keys of a single-table design.

    Attributes:
        pk: The name of the partition key.
        sk: The name of the sort key.
        owner: The template of an owner's partition key, of {kind}, {KIND}, {low} and {id}.
        root: The template of the sort key of the owner's own item.
        child: The template of the sort keys of its children.
        label: The attribute that names the kind, or an empty string if there is none.
        written: The template of that attribute's value.
    """

    pk: str
    sk: str
    owner: str
    root: str
    child: str
    label: str
    written: str = "{kind}"

    def schema(self, *indexes: Index, ttl: str | None = None) -> Schema:
        return Schema(self.pk, self.sk, indexes, ttl)


ELECTRO = Style(
    "pk", "sk", "$app#{low}id_{id}", "${low}_1", "${low}_1#{low}id_{id}", "__edb_e__", "{low}"
)
TOOLBOX = Style("PK", "SK", "{KIND}#{id}", "{KIND}", "{KIND}#{id}", "_et")
ONETABLE = Style("pk", "sk", "{kind}#{id}", "{kind}#", "{kind}#{id}", "_type")
TYPEDORM = Style("PK", "SK", "{KIND}#{id}", "{KIND}#ROOT", "{KIND}#{id}", "__en", "{low}")
PYNAMO = Style("hash", "range", "{low}:{id}", "{low}", "{low}:{id}", "cls")
DYNAMOOSE = Style("id", "ref", "{low}_{id}", "{low}", "{low}_{id}", "docType", "{low}")
APPSYNC = Style("PK", "SK", "{kind}|{id}", "{kind}", "{kind}|{id}", "__typename")
BOOK = Style("PK", "SK", "{KIND}#{id}", "#METADATA", "{KIND}#{id}", "EntityType")
UNLABELED = Style("PK", "SK", "{KIND}#{id}", "#{KIND}", "{KIND}#{id}", "")
BARE = Style("pk", "sk", "{id}", "{id}", "{id}", "recordType")
NOTHING = Style("pk", "sk", "{id}", "{id}", "{id}", "")
"""Keys without a tag, and no attribute that names the kind."""

STYLES = {name: value for name, value in vars().items() if isinstance(value, Style)}


def style_of(text: str) -> Style:
    """Return a style by its name, with other fields if any, as in "BARE pk=id label=kind"."""
    name, *changes = text.split()
    return replace(STYLES[name], **dict(change.split("=") for change in changes))


Extra = Callable[[str, Random, float], Item]


def entities(
    style: Style, root: str, *children: str, owners: int = 130, extra: Extra | None = None
) -> Rows:
    """Return owners and their children.

    Args:
        style: The form of the keys.
        root: The kind, ids and fields of the owner, such as "Customer uuid who:name joined:day".
        children: The kinds of children, such as "Order 1-6 ulid total:cents" for 1 to 6 orders of
            each owner.
        owners: The number of owners.
        extra: Further attributes of an item, by its kind.
    """

    def entity(kind: str, key: Item, spec: str, chance: Random, at: float) -> Item:
        item = key | fields(spec, chance, at)
        if style.label:
            item[style.label] = style.written.format(kind=kind, low=kind.lower())
        return item | (extra(kind, chance, at) if extra is not None else {})

    def words(kind: str, id_: str) -> dict[str, str]:
        return {"kind": kind, "KIND": kind.upper(), "low": kind.lower(), "id": id_}

    def rows(chance: Random, now: float) -> Iterator[Item]:
        kind, ids, spec = (root + " ").split(" ", 2)
        for number in range(owners):
            at = past(chance, now)
            parts = words(kind, identifier(ids, chance, at, number))
            partition = style.owner.format(**parts)
            key = {style.pk: partition, style.sk: style.root.format(**parts)}
            yield entity(kind, key, spec, chance, at)
            for child in children:
                below, many, sort, more = (child + " ").split(" ", 3)
                minimum, maximum = map(int, many.split("-"))
                for position in range(chance.randint(minimum, maximum)):
                    when = past(chance, now)
                    id_ = identifier(sort, chance, when, position)
                    key = {style.pk: partition, style.sk: style.child.format(**words(below, id_))}
                    yield entity(below, key, more, chance, when)

    return rows


def joined(*parts: Rows) -> Rows:
    """Return the rows of all parts."""

    def rows(chance: Random, now: float) -> Iterator[Item]:
        for part in parts:
            yield from part(chance, now)

    return rows


def changed(rows: Rows, change: Callable[[Item, Random, float, int], Item]) -> Rows:
    """Return rows with further attributes, which `change` makes of each item and its number."""

    def more(chance: Random, now: float) -> Iterator[Item]:
        for number, row in enumerate(rows(chance, now)):
            yield row | change(row, chance, now, number)

    return more


def bodies(rows: Rows, attribute: str, size: int, share: float = 1.0) -> Rows:
    """Return rows of which a share has a text of about so many bytes."""
    return changed(
        rows,
        lambda row, chance, now, number: (
            {attribute: text(chance, int(size * (0.85 + 0.3 * chance.random())))}
            if chance.random() < share
            else {}
        ),
    )


# What CloudWatch shows


def units(reads: float, writes: float, **indexes: float) -> tuple[Metric, ...]:
    """Return the units a minute of the table, and the write units of its indexes by name."""
    return (
        Metric("ConsumedReadCapacityUnits", reads, days=30),
        Metric("ConsumedWriteCapacityUnits", writes, days=30),
        *(
            Metric("ConsumedWriteCapacityUnits", amount, index=index, days=30)
            for index, amount in indexes.items()
        ),
    )


def of_index(index: str, reads: float, writes: float) -> tuple[Metric, ...]:
    """Return the units a minute of an index."""
    return (
        Metric("ConsumedReadCapacityUnits", reads, index=index, days=30),
        Metric("ConsumedWriteCapacityUnits", writes, index=index, days=30),
    )


def requests(busy: tuple[int, int] = (0, 1440), **per_minute: float) -> tuple[Metric, ...]:
    """Return how many requests of each operation succeed a minute."""
    return tuple(
        Metric("SuccessfulRequestLatency", count, operation=operation, busy=busy)
        for operation, count in per_minute.items()
    )


def throttled(kind: str, reason: str, events: float, index: str = "") -> tuple[Metric, ...]:
    """Return throttle events a minute of the last ten hours, which still go on.

    Args:
        kind: "Read" or "Write".
        reason: "KeyRange", "Provisioned", "MaxOnDemand" or "AccountLimit".
        events: Events a minute.
        index: The index that throttles, if it is not the table.
    """
    middle = {
        "KeyRange": "KeyRangeThroughput",
        "Provisioned": "ProvisionedThroughput",
        "MaxOnDemand": "MaxOnDemandThroughput",
        "AccountLimit": "AccountLimit",
    }[reason]
    operation = "PutItem" if kind == "Write" else "Query"
    return (
        Metric(f"{kind}{middle}ThrottleEvents", events, index=index, days=0.4),
        Metric(f"{kind}ThrottleEvents", events, index=index, days=0.4),
        Metric("ThrottledRequests", events, operation=operation, days=0.4),
    )


def accessed(keys: Mapping[str, float], index: str = "") -> tuple[Contributor, ...]:
    """Return the most accessed partition keys, with their units a minute."""
    return tuple(
        Contributor("PKC", (key,), amount, minutes=240, index=index) for key, amount in keys.items()
    )


def refused(key: str, events: float, index: str = "") -> Contributor:
    """Return a partition key that is throttled."""
    return Contributor("PKT", (key,), events, minutes=240, index=index)


# What the stream shows

Change = Callable[[Random, Item, float], Item]
Pick = Callable[[Random, list[Item]], Item]


def renamed(chance: Random, old: Item, at: float) -> Item:
    """Change a text and a time, as most applications do."""
    return old | {"remark": some(chance, 10, 50), "updatedAt": iso(at)}


def raised(attribute: str, maximum: int = 1) -> Change:
    """Return a change that adds to one number."""
    return lambda chance, old, at: old | {attribute: old[attribute] + chance.randint(1, maximum)}


def updates(pick: Pick, change: Change = renamed, count: int = 800) -> Writes:
    """Return updates over a quarter of an hour; each continues from the state after the last."""

    def writes(chance: Random, now: float, items: list[Item]) -> Iterator[Write]:
        latest: dict[int, Item] = {}
        for number in range(count):
            ago = 870 - 855 * number / count
            row = pick(chance, items)
            old = latest.get(id(row), row)
            latest[id(row)] = new = change(chance, old, now - ago)
            yield Write(ago, old, new)

    return writes


def anyone(chance: Random, items: list[Item]) -> Item:
    return chance.choice(items)


def mostly(attribute: str, key: str, share: float) -> Pick:
    """Return a choice that has this partition key in a share of the cases."""

    def pick(chance: Random, items: list[Item]) -> Item:
        if chance.random() >= share:
            return chance.choice(items)
        return chance.choice([row for row in items if row[attribute] == key])

    return pick


def inserts(make: Callable[[Random, float, int, list[Item]], Item], count: int = 800) -> Writes:
    """Return inserts over a quarter of an hour, evenly."""

    def writes(chance: Random, now: float, items: list[Item]) -> Iterator[Write]:
        for number in range(count):
            ago = 870 - 855 * number / count
            yield Write(ago, None, make(chance, now - ago, number, items))

    return writes


def mixed(*streams: Writes) -> Writes:
    """Return the records of all streams."""

    def writes(chance: Random, now: float, items: list[Item]) -> Iterator[Write]:
        for stream in streams:
            yield from stream(chance, now, items)

    return writes


def one_after_the_other(
    order: Callable[[Random, list[Item]], Iterable[Item]], change: Change | None = None
) -> Writes:
    """Return writes of all items in an order: inserts of copies, or changes."""

    def writes(chance: Random, now: float, items: list[Item]) -> Iterator[Write]:
        ordered = list(order(chance, items))
        for number, row in enumerate(ordered):
            ago = 870 - 855 * number / len(ordered)
            if change is None:
                yield Write(ago, None, row)
            else:
                yield Write(ago, row, change(chance, row, now - ago))

    return writes


# Applications, which the request sampler watches

Application = Callable[[Any, str, Random], None]


def gets(tag: str, consistent: float = 0.0, count: int = 500, sort: str = "") -> Application:
    """Return an application that reads items, a share of them consistently."""

    def work(client: Any, table: str, chance: Random) -> None:
        for _ in range(count):
            key = {"pk": {"S": known(tag, chance.randrange(120))}}
            if sort:
                key["sk"] = {"S": sort}
            strong = chance.random() < consistent
            client.get_item(TableName=table, Key=key, ConsistentRead=strong)

    return work


def queries(
    tag: str,
    condition: str = "",
    values: Mapping[str, Any] | None = None,
    names: Mapping[str, str] | None = None,
    consistent: float = 0.0,
    count: int = 500,
    begins: str = "",
    **more: Any,
) -> Application:
    """Return an application that queries collections, with a filter if `condition` is given."""

    def work(client: Any, table: str, chance: Random) -> None:
        for _ in range(count):
            request: dict[str, Any] = {
                "TableName": table,
                "KeyConditionExpression": "pk = :pk",
                "ExpressionAttributeValues": {":pk": {"S": known(tag, chance.randrange(120))}},
                "ConsistentRead": chance.random() < consistent,
                **more,
            }
            if begins:
                request["KeyConditionExpression"] += " AND begins_with(sk, :begins)"
                request["ExpressionAttributeValues"][":begins"] = {"S": begins}
            if condition:
                request["FilterExpression"] = condition
                request["ExpressionAttributeValues"] |= values or {}
            if names:
                request["ExpressionAttributeNames"] = names
            client.query(**request)

    return work


def scans(
    every: int, condition: str = "", values: Mapping[str, Any] | None = None, tag: str = "ROW"
) -> Application:
    """Return an application of which one request in `every` scans the whole table."""

    def work(client: Any, table: str, chance: Random) -> None:
        for number in range(300):
            if number % every:
                key = {"pk": {"S": known(tag, chance.randrange(120))}}
                client.get_item(TableName=table, Key=key)
                continue
            request: dict[str, Any] = {"TableName": table}
            if condition:
                request |= {
                    "FilterExpression": condition,
                    "ExpressionAttributeValues": dict(values or {}),
                }
            while True:
                page = client.scan(**request)
                if "LastEvaluatedKey" not in page:
                    break
                request["ExclusiveStartKey"] = page["LastEvaluatedKey"]

    return work
