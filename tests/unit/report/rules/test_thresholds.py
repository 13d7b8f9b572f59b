"""Tests of each threshold of report-rules.md from both sides."""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import pytest
from keyhop.report.estimate import Estimate
from keyhop.report.facts import (
    TABLE,
    Absent,
    CodeFacts,
    CodeLine,
    Collection,
    HotKey,
    IndexSample,
    KeyTraffic,
    RequestShape,
    Tag,
    Throttles,
    TtlFacts,
)
from keyhop.report.findings import Advice, Finding

from tests.unit.report.rules.world import (
    DAY,
    GB,
    NOW,
    SOURCES,
    THROTTLES,
    facts,
    finding_of,
    gsi,
    lsi,
    sampled,
    share,
)

KB = 1024
HOUR = 3600
INDEX = "by-status"
AGAIN = "0 use the table for a day, then run the same command again"
GSI = {"indexes": (gsi(),)}
ZERO = share(0.0, 0.0, 0.009)
ALL = share(1.0, 0.991, 1.0)
CASES: list[Any] = []


def case(rule: str, expected: str, table: Any = None, **fields: Any) -> None:
    """Add a case to the table.

    Args:
        rule: The rule, and the index if it is about one.
        expected: Clear, unknown, or the severity of the finding.
        table: The fields of the table that differ from those of Orders.
        fields: The sources of the facts, and the expected parts of the finding by their names in
            `parts`. The expected text need only be contained in the finding's text. Requests may
            be a list of their shapes.
    """
    if isinstance(requests := fields.get("requests"), list):
        fields["requests"] = {"shapes": tuple(requests)}
    name = f"{rule} {sum(param.values[0] == rule for param in CASES)}"
    CASES.append(pytest.param(rule, expected, table, fields, id=name))


def parts(finding: Finding) -> dict[str, str]:
    """Return the parts of a finding as short texts."""
    advice, price = finding.advice or Advice(), finding.price
    cost = advice.cost
    return {
        "evidence": ", ".join(
            row.source if row.threshold is None else f"{row.source} {row.threshold:g}"
            for row in finding.evidence
        ),
        "where": " ".join(row.where for row in finding.evidence),
        "price": f"{price.rru:g} {price.remedy}" if price else "",
        "patterns": " ".join(advice.patterns),
        "command": advice.command,
        "cost": f"{cost.today} {cost.advised} {cost.one_off}" if cost else "",
        "one_off": str(cost.one_off) if cost else "",
        "text": " ".join(
            (finding.summary, *(row.signal for row in finding.evidence), *advice.steps)
        ),
    }


# Keys


def numbers(*density: float, **more: Any) -> dict[str, Any]:
    return {"numbered": ALL, "density": share(*density), **more}


DENSE = numbers(0.8, 0.74, 0.86)
BOTH = {"evidence": "sample 0.5, sample 0.5"}
case("A1", "low", sample=DENSE, **BOTH, text="use 80 % of their range.")
case("A1", "low", sample=numbers(0.5))
case("A1", "unknown", sample=numbers(0.5, 0.499, 0.55), **BOTH)
case("A1", "clear", sample=numbers(0.47, 0.45, 0.499), **BOTH)
case("A1", "low", sample=numbers(1.5, 1.09, 2.0), text="use 100 % of")
case("A1", "clear", sample=numbers(1.5, 1.1, 2.0))
case("A1", "low", sample={**DENSE, "numbered": share(0.6, 0.5, 0.7)})
case("A1", "unknown", sample={**DENSE, "numbered": share(0.6, 0.499, 0.7)})
case("A1", "unknown", sample={**DENSE, "numbered": share(0.4, 0.3, 0.5)})
case("A1", "clear", sample={**DENSE, "numbered": share(0.4, 0.3, 0.499)})
case("A1", "unknown", sample={"numbered": ALL}, evidence="sample 0.5")
case("A1", "unknown", sample={"density": share(0.9)}, evidence="sample 0.5")
case("A1", "low", sample={**DENSE, "keys": share(100, 50, 100)})
case("A1", "clear", sample={**DENSE, "keys": share(60, 50, 99)}, text="too few to be ids")
case("A1", "clear", {"partition": "Zip"}, sample=DENSE)
case("A1", "low", {"partition": "number"}, sample=DENSE)
case("A1", "low", sample=DENSE, stream={"tau": share(0.6, 0.5, 0.7)})
case("A1", "clear", sample=DENSE, stream={"tau": share(0.6, 0.5, 0.699)})
case("A1", "low", sample=DENSE, stream={})
case(
    "A1", "clear", sample=DENSE, stream={"records": 385, "inserts": 0}, text="no new keys are added"
)
case("A1", "low", sample=DENSE, stream={"records": 384, "inserts": 0})
case("A1", "low", sample=DENSE, stream={"records": 385, "inserts": 1})
case("A1", "clear", {"partition": "Bed"}, sample=DENSE)
case("A1", "low", stream={"tau": share(0.8, 0.7, 0.9)}, evidence="stream 0.7")
case("A1", "unknown", stream={"tau": share(0.8, 0.69, 0.9)})

# The price is that of a sample four times as large, and at least what an ordinary table needs.
case("A1", "unknown", price="30 without --control-plane-only")
case("A1", "unknown", sample={"rru": 7}, price="30 --max-read-units 30")
case("A1", "unknown", sample={"rru": 8}, price="32 --max-read-units 32")
ALL_KEYS = {"rru": 8, "all_keys": True, "all_units": 80.5}
case("A1", "unknown", sample=ALL_KEYS, price="81 --max-read-units 81")
case("A1", "unknown", sample={"rru": 8, "all_units": 80.0}, price="32 --max-read-units 32")
case("A1", "unknown", sample={"all_items": True}, price="0 ")

TWO_KINDS = {"cents,paid,pk,sk": share(0.6), "email,name,pk,sk": share(0.4)}


def shapes(*names: str, last: float | None = None) -> dict[str, Any]:
    """Return kinds of items without a tag, equally frequent unless the last has its own share."""
    rest = 1 / len(names) if last is None else (1 - last) / (len(names) - 1)
    shares = {name: share(rest) for name in names}
    if last is not None:
        shares[names[-1]] = share(last)
    return {"tagged": ZERO, "shapes": shares}


def tagged(*estimate: float) -> dict[str, Any]:
    return {"tagged": share(*estimate), "shapes": TWO_KINDS}


case("A2", "low", sample=tagged(0.049, 0.04, 0.099), patterns="P1")
case("A2", "unknown", sample=tagged(0.05, 0.04, 0.099))
case("A2", "unknown", sample=tagged(0.04, 0.0, 0.1), evidence="sample 0.05, sample")
case("A2", "clear", sample=tagged(0.1, 0.05, 0.2), evidence="sample 0.05")
case("A2", "unknown", sample=tagged(0.1, 0.049, 0.2))
case("A2", "unknown", sample={"shapes": TWO_KINDS})
case("A2", "unknown", sample={"tagged": ZERO}, evidence="sample 0.05")
case("A2", "clear", sample={"tagged": ZERO, "shapes": {"cents": share(1.0, 0.95, 1.0)}})
case("A2", "unknown", sample={"tagged": ZERO, "shapes": {"cents": share(1.0, 0.949, 1.0)}})
case("A2", "low", sample=shapes("a,pk", "b,pk", last=0.01))
case("A2", "clear", sample=shapes("a,pk", "b,pk", last=0.0099))
case("A2", "low", sample=shapes("a,b,c,d", "c,d,e,f"))
case("A2", "clear", sample=shapes("a,b,c", "b,c,d"))
case("A2", "clear", sample=shapes("a,b,c,d", "b,c,d,e"))
case("A2", "clear", sample=shapes("a,b,c,d,e", "a"))
case("A2", "clear", sample=shapes("a", "a,b,c,d,e"))
case("A2", "clear", sample=shapes("a,b", "c,d", "a,b,c,d"))  # The third joins the other two.
case("A2", "low", sample=shapes("pk,sk", "a,pk,sk"))
case("A2", "clear", sample=shapes("pk,sk", "pk,sk,updated_At"))
case("A2", "low", sample=shapes("createdAt,name,type", "cents,createdAt,type"))
IN_INDEX = {"indexes": (gsi(sort=("day",)),)}
case("A2", "low", sample=shapes("day,pk,sk", "pk,sk,status", "a"), text="3 kinds")
case("A2", "clear", IN_INDEX, sample=shapes("day,pk,sk", "pk,sk,status"))
# A tag in each sort key identifies the kind, too.
for at_sort_keys, expected in ((ZERO, "low"), (share(0.9), "low"), (ALL, "clear")):
    case("A2", expected, sample={**shapes("a,pk,sk", "b,pk,sk"), "sort_tagged": at_sort_keys})


def dated(*estimate: float) -> dict[str, Any]:
    return {"dated": share(*estimate)}


def hot(units: float) -> dict[str, Any]:
    """Return stream facts with a key whose busiest second takes this many write units."""
    return {"traffic": (KeyTraffic("k", 900, 900, 9e3, units),)}


def rekeyed(shards: int) -> str:
    """Return the commands that plan to spread each partition key over this many shards."""
    return """echo '{"items": [{"name": "item", "set": {"pk": "{pk}#{sk|shard:N}", "sk": "{sk}"}, \
"keep": {"pk": "old_pk"}}, {"otherwise": "refuse"}]}' > template.json
keyhop rekey plan Orders --to Orders-sharded --template template.json""".replace(
        "shard:N", f"shard:{shards}"
    )


DATES = dated(0.99, 0.97, 1.0)
case("A3", "low", sample=dated(0.95, 0.85, 1.0), evidence="sample 0.95")
case("A3", "unknown", sample=dated(0.949, 0.85, 1.0))
case("A3", "unknown", sample=dated(0.99, 0.849, 1.0))
case("A3", "unknown", sample=dated(0.9, 0.87, 0.95))
case("A3", "clear", sample=dated(0.9, 0.87, 0.949))
case("A3", "unknown", sample={})
case("A3", "low", sample=DATES, stream=hot(499.0), text="No shard is needed for 499 write")
case("A3", "medium", sample=DATES, stream=hot(500.0), command="")
case("A3", "medium", sample=DATES, stream=hot(501.0), command=rekeyed(2), text="2 shards keep half")
for units, text in (
    (1000.0, "For 1,000 write units a second, one key is"),
    (1001.0, "1,001 write units a second, 2 shards are"),
):
    case("A3", "medium", sample=DATES, stream=hot(units), text=text)
case("A3", "low", stream={"date_share": share(0.6, 0.5, 0.7)}, patterns="P17")
case("A3", "unknown", stream={"date_share": share(0.6, 0.49, 0.7)})
TODAY = {"evidence": "stream 0.5, sample 0.95"}
case("A3", "info", sample=DATES, stream={"date_share": share(0.4, 0.3, 0.499)}, **TODAY)
case("A3", "low", sample=DATES, stream={"date_share": share(0.4, 0.3, 0.5)}, **TODAY)
case("A3", "info", sample=DATES, stream={"inserts": 0, "records": 0})
case("A3", "low", sample=DATES, stream={"inserts": 0, "seconds": 0})
case("A3", "info", sample=DATES, metrics={"consumed": {("read", TABLE): 9.0}})
case("A3", "info", sample=DATES, metrics={"calls": {"Query": 9.0}})
case("A3", "low", sample=DATES, metrics={"consumed": {("write", TABLE): 9.0}})
case("A3", "low", sample=DATES, metrics={})
case("A3", "clear", {"sort": None}, sample=DATES)  # Dates with one item each are not hot keys.
BY_DAY = {"indexes": (gsi("by-day", partition=("day",)),)}
for estimate, expected in (
    (share(0.99, 0.97, 1.0), "low"),
    (share(0.5, 0.4, 0.6), "clear"),
    (share(1.0, 0.84, 1.0), "unknown"),
    (None, "unknown"),
):
    case("A3 by-day", expected, BY_DAY, sample={"indexes": sampled("by-day", dated=estimate)})

TAGS = (Tag("ORDER", share(0.7), "ORDER#"), Tag("USER", share(0.3)))


def typed(*tags: Tag, **more: Any) -> dict[str, Any]:
    return {"typed": ZERO, "tags": tags, **more}


case("A18", "low", sample={"typed": share(0.66, 0.6, 0.949), "tags": TAGS})
case("A18", "unknown", sample={"typed": share(0.66, 0.6, 0.95), "tags": TAGS})
case("A18", "unknown", sample={"typed": share(0.97, 0.949, 0.99), "tags": TAGS})
case("A18", "clear", sample={"typed": share(0.97, 0.95, 0.99)}, evidence="sample 0.95")
case("A18", "clear", sample={"typed": ALL, "type_name": "entity"}, text="entity")
case("A18", "low", sample=typed(*TAGS), command="")
NAMING = """keyhop each Orders --update 'SET #kind = if_not_exists(#kind, :kind)' \
--names '{"#kind": "Type"}' --values '{":kind": "Order"}' \
--where 'matches(^ORDER#[^#|:/~$=]*$)' --dry-run"""
case("A18", "low", {"sort": None}, sample=typed(*TAGS), command=NAMING)
case("A18", "unknown", sample={"tags": TAGS})
case("A18", "clear", sample={"tags": TAGS[:1], "all_items": True})
case("A18", "unknown", sample={"tags": TAGS[:1]})
case("A18", "unknown", sample={"tags": TAGS[:1], "all_items": True, "items_read": 0})
case("A18", "unknown", sample={"tags": TAGS, "all_items": True})
case("A18", "low", sample=typed(Tag("ORDER", share(0.9)), Tag("USER", share(0.01))))
case("A18", "unknown", sample=typed(Tag("ORDER", share(0.9)), Tag("USER", share(0.0099))))
case("A18", "clear", sample=typed(Tag("ORDER", ALL), Tag("USER", share(0.95))))
case("A18", "low", sample=typed(Tag("ORDER", ALL), Tag("USER", share(0.949))))
case("A18", "unknown", sample=typed(Tag("ORDER", ALL), Tag("USER", share(1.0, 0.949, 1.0))))
case("A18", "clear", sample=typed(Tag("ORDER", share(1.0, 0.95, 1.0))))
case("A18", "unknown", sample=typed(Tag("ORDER", share(1.0, 0.949, 1.0))))
UNTAGGED = share(0.0, 0.0, 0.099)
case("A18", "clear", sample=typed(shapes={"a,pk": ALL}, keys_read=3))
case("A18", "unknown", sample=typed(shapes={"a,pk": ALL}, keys_read=2))
case("A18", "unknown", sample=typed(tagged=share(0.0, 0.0, 0.1)))
case("A18", "unknown", sample=typed())
case("A18", "clear", sample=typed(shapes={"a,pk": ALL}, unrepresented=share(0.0, 0.0, 0.099)))
case("A18", "unknown", sample=typed(shapes={"a,pk": ALL}, unrepresented=share(0.0, 0.0, 0.1)))
WORDS = tuple(Tag(f"D{number}", share(0.16), f"D{number}#") for number in range(6))
IN_SORT_KEYS = tuple(Tag(word, share(0.5)) for word in ("signup", "reset"))
ONE_KIND = {"a,b,pk,sk": ALL}
case("A18", "clear", sample=typed(shapes=ONE_KIND, tagged=ZERO))
case("A18", "low", sample=typed(*WORDS[:5], shapes=ONE_KIND))
case("A18", "clear", sample=typed(*WORDS, shapes=ONE_KIND))
case("A18", "clear", sample=typed(*IN_SORT_KEYS, shapes=ONE_KIND))
case("A18", "low", sample=typed(*IN_SORT_KEYS, WORDS[0], shapes=ONE_KIND))
case("A18", "low", sample=typed(shapes=TWO_KINDS, tagged=ZERO))
# This many prefixes of keys may be names of people, which no command may show.
NAMES = tuple(Tag(f"D{number}", share(0.05), f"D{number}#") for number in range(16))
case("A18", "low", {"sort": None}, sample=typed(*NAMES, shapes=TWO_KINDS), command="")
case("A18", "unknown", sample=typed(shapes={}, tagged=ZERO))

case("E1", "low", sample={"unpadded": share(0.1, 0.05, 0.2)}, patterns="P11")
case("E1", "unknown", sample={"unpadded": share(0.1, 0.049, 0.2)})
case("E1", "unknown", sample={"unpadded": share(0.0, 0.0, 0.05)})
case("E1", "clear", sample={"unpadded": share(0.0, 0.0, 0.049)}, evidence="sample 0.05")
case("E1", "unknown", sample={})
case("E1", "clear", {"sort": None})
case("E1", "clear", {"types": {"pk": "S", "sk": "N"}})
BY_PRICE = {"indexes": (gsi("by-price", sort=("price",)),), "types": {"price": "S"}}
for estimate, expected in ((share(0.5, 0.4, 0.6), "low"), (ZERO, "clear"), (None, "unknown")):
    entries = sampled("by-price", unpadded=estimate)
    case("E1 by-price", expected, BY_PRICE, sample={"indexes": entries})
case("E1 by-price", "clear", {**BY_PRICE, "types": {"price": "N"}})

case("E2", "low", sample={"orphans": share(0.03, 0.02, 0.05)}, patterns="P2")
case("E2", "unknown", sample={"orphans": share(0.03, 0.019, 0.05)})
case("E2", "unknown", sample={"orphans": share(0.0, 0.0, 0.02)})
case("E2", "clear", sample={"orphans": share(0.0, 0.0, 0.019)}, evidence="sample 0.02")
case("E2", "unknown", sample={})

# Collections and items


def largest(*size: float, items: float = 1000.0, by: str = "stream") -> dict[str, Any]:
    """Return a sample whose largest collection has this many bytes and items."""
    small = Collection("small", Estimate.exactly(9.0, 9, ""), share(9.0))
    big = Collection("big", Estimate.exactly(items, 9, "counted"), share(*size), by=by)
    return {"top": (small, big)}


def gigabytes(*size: float) -> dict[str, Any]:
    return largest(*(figure * GB for figure in size))


DOUBLED = {"bytes": 32 * GB, "indexes": (lsi(bytes=32 * GB),)}
"""A table whose LSI doubles the size of each collection."""
case("A6", "clear")
case("A6", "high", DOUBLED, sample=gigabytes(4, 2.5, 5), text="LSIs included (x 2.00)")
case("A6", "medium", DOUBLED, sample=gigabytes(4, 2.49, 5))
case("A6", "medium", DOUBLED, sample=gigabytes(3.99, 3.9, 5))
case("A6", "medium", DOUBLED, sample=gigabytes(2.5, 2.5, 5), text="has 5.0 GB")
case("A6", "low", DOUBLED, sample=gigabytes(2.49, 2.4, 5), text="seen has 5.0 GB")
case("A6", "medium", DOUBLED, sample={"unseen": share(0.2, 0.125, 0.3)})
case("A6", "low", DOUBLED, sample={"unseen": share(0.2, 0.124, 0.3)})
case("A6", "low", DOUBLED, sample={}, text="is not known")
case("A6", "low", {"bytes": 0, "indexes": (lsi(),)}, sample={"unseen": share(0.2)})
HALF = {"bytes": 5 * GB // 2, "indexes": (lsi(bytes=5 * GB // 2),)}
case("A6", "low", HALF, text="the size of the largest collection is not known")
case("A6", "low", {**HALF, "bytes": HALF["bytes"] - 9}, text="more than 5.0 GB yet")
case(
    "A6",
    "low",
    {"bytes": 10**9, "indexes": (lsi(items=10**6, bytes=1025 * 10**6),)},
    metrics={},
    evidence="control plane 8.58993e+09, control plane",
    where=" by-date",
    patterns="P15 P10",
    cost="0.5062 0.5062 1.25",
)

for size, words in ((KB - 1, "1,023 bytes"), (KB, "1.0 KB"), (KB**2, "1.0 MB"), (GB, "1.0 GB")):
    index = lsi(bytes=0)
    case("A6", "low", {"bytes": size, "indexes": (index,)}, text=f"has more than {words} yet")

# The table's consistent reads need the LSI. A collection has 1.25 GB now, 10 GB in three years.
NEEDED = {"shapes": (RequestShape("Query", "by-date", ("pk",), (), 500, 500, 500, 500.0, 500),)}
QUARTER = {"indexes": (lsi(bytes=250_000_000),), "bytes": 10**9}
case("A6", "clear", QUARTER, requests=NEEDED, stream={"growth": {"k": 6931.0}})
case("A6", "low", QUARTER, requests=NEEDED, stream={"growth": {"k": 6932.0}})
case("A6", "low", QUARTER, requests=NEEDED)
case("A6", "low", QUARTER, stream={"growth": {"k": 10.0}})
for size, expected in ((10_737_418, "clear"), (10_737_419, "low")):
    case("A6", expected, {"indexes": (lsi(bytes=0),), "bytes": size}, requests=NEEDED)


def items(**fields: Any) -> dict[str, Any]:
    """Return a sample in which no item is large."""
    return {"large": ZERO, "item_bytes": {0.99: share(900, 800, 999)}, **fields}


SIZES = {"evidence": "sample 358400, sample 0, sample 102400"}
case("A13", "high", sample=items(largest_item=350 * KB), **SIZES)
case("A13", "clear", sample=items(largest_item=350 * KB - 1), **SIZES)
case("A13", "high", sample={"largest_item": 350 * KB}, text="350 KB; the limit is 400 KB")
case("A13", "medium", sample={"item_bytes": {0.99: share(250 * KB, 200 * KB, 300 * KB)}})
case("A13", "low", sample={"item_bytes": {0.99: share(250 * KB, 199 * KB, 300 * KB)}})
case("A13", "low", sample={"item_bytes": {0.99: share(120 * KB, 100 * KB, 190 * KB)}})
case("A13", "unknown", sample=items(item_bytes={0.99: share(120 * KB, 99 * KB, 190 * KB)}))
case("A13", "unknown", sample=items(item_bytes={0.99: share(90 * KB, 80 * KB, 100 * KB)}))
case("A13", "clear", sample=items(item_bytes={0.99: share(90 * KB, 80 * KB, 99 * KB)}))
case("A13", "clear", sample=items(large=share(0.0, 0.0, 0.0124)), text="have less than 1.0 KB")
case("A13", "unknown", sample=items(large=share(0.0, 0.0, 0.0125)))
case("A13", "unknown", sample=items(item_bytes={}), text="The sample has too few items.")
case("A13", "unknown", sample=items(large=None), text="The sample has too few items.")
case("A13", "clear", sample={"all_items": True, "largest_item": 100 * KB - 1})
case("A13", "unknown", sample={"all_items": True, "largest_item": 100 * KB})
case("A13", "unknown", sample={"largest_item": 9000})
case("A13", "unknown", sample={"all_items": True})
case("A13", "unknown", sample={"rru": 74}, price="300 --max-read-units 300")
case("A13", "unknown", sample={"rru": 76}, price="304 --max-read-units 304")
case("A13", "unknown", price="300 without --control-plane-only")

# DescribeTable gives the mean size of all items, even without a sample.
for kb, expected in ((31, "unknown"), (32, "low"), (199, "low"), (200, "medium")):
    case("A13", expected, {"items": 1000, "bytes": kb * KB * 1000})
case("A13", "clear", {"items": 1000, "bytes": 31 * KB * 1000}, sample=items())
BROAD = {"items": 1000, "bytes": 32 * KB * 1000}
case("A13", "low", BROAD, sample=items())
case("A13", "low", BROAD, sample=items(item_mean=share(30 * KB, 20 * KB, 32 * KB)))
case("A13", "clear", BROAD, sample=items(item_mean=share(30 * KB, 20 * KB, 32 * KB - 1)))

CROWD = {"items": 10_000}
"""With 100 collections, one of 1,681 items or more has over 20 times the mean of the others."""
MEAN = {"mean_items": share(100, 90, 100)}
case("A15", "clear", {"sort": None})
case(
    "A15",
    "low",
    CROWD,
    sample={**largest(9, items=1681), **MEAN},
    evidence="sample 0.05",
    where="big",
    patterns="P10 P5",
    text="(stream)",
)
case("A15", "unknown", CROWD, sample={**largest(9, items=1680), **MEAN})
case("A15", "low", CROWD, sample={"seen_largest": 1681, "keys": share(110, 100, 120)})
case("A15", "unknown", CROWD, sample={"seen_largest": 1680, "keys": share(110, 100, 120)})
case("A15", "unknown", CROWD, sample={"seen_largest": 1681})
case("A15", "low", CROWD, sample={"seen_largest": 500, "mean_items": share(1)})
case("A15", "unknown", CROWD, sample={"seen_largest": 499, "mean_items": share(1)})
case("A15", "low", CROWD, sample={"seen_largest": 95234, "mean_items": share(5000)})
case("A15", "unknown", CROWD, sample={"seen_largest": 9523, "mean_items": share(5000)})
case("A15", "unknown", CROWD, sample={"seen_largest": 10_000, "mean_items": share(10_000)})
# Without times in sort keys, such as for the seats of a hall, a collection needs 10,000 items.
for count, grown, expected in (
    (10_000, 0.049, "low"),
    (9999, 0.049, "unknown"),
    (9999, 0.05, "low"),
):
    seats = {**largest(9, items=count), **MEAN, "growing": share(0.0, 0.0, grown)}
    case("A15", expected, {"items": 100_000}, sample=seats)
case("A15", "low", sample={"unseen": share(0.06, 0.05, 0.08)}, text="[5.0, 8.0]")
case("A15", "unknown", sample={"unseen": share(0.06, 0.049, 0.08)})
SMALL = {"unseen": share(0.01, 0.0, 0.049), "seen_largest": 49_999.0}
TWO = {"evidence": "sample 0.05, sample 0.05"}
case("A15", "clear", sample=SMALL, **TWO, text="random segment")
case("A15", "unknown", sample={**SMALL, "unseen": share(0.01, 0.0, 0.05)})
case("A15", "unknown", sample={**SMALL, "seen_largest": 50000.0})
case("A15", "unknown", sample={**SMALL, "seen_largest": None}, evidence="sample 0.05")
case("A15", "unknown", {"items": 0}, sample={**SMALL, "items_read": 0})
QUARTERS = {"unseen": share(0.3, 0.25, 0.4)}
case("A15", "medium", {"bytes": 4 * GB}, sample=QUARTERS)
case("A15", "low", {"bytes": 4 * GB - 9}, sample=QUARTERS)
case("A15", "info", {"bytes": 4 * GB, "items": 199}, sample=QUARTERS)
case("A15", "medium", {"bytes": 4 * GB, "items": 200}, sample=QUARTERS)
BIG = {**largest(9, items=2500), **MEAN}
case("A15", "medium", {**CROWD, "bytes": 4 * GB}, sample=BIG)
case("A15", "low", {**CROWD, "bytes": 4 * GB - 9}, sample=BIG)
case("A15", "clear", sample={"all_items": True}, text="The whole table was read")
case("A15", "unknown", sample={"all_items": True, "items_read": 0})
KNOWN = {**SMALL, "seen_largest": 50_000.0, "all_keys": True, "all_units": 9_000.0}
GROWS = {**KNOWN, "seen_largest": 50_001.0, "growing": share(0.06, 0.05, 0.08)}
case("A15", "low", sample=GROWS, text="added for 60 days or more")
case("A15", "unknown", sample={**GROWS, "growing": share(0.06, 0.049, 0.08)})
case("A15", "clear", sample={**GROWS, "seen_largest": 49_999.0})
case("A15", "unknown", {"ttl": "expires"}, sample=GROWS)
case("A15", "unknown", sample={**GROWS, **dated(0.95, 0.9, 0.96)})
case("A15", "unknown", sample=KNOWN, **TWO, price="0 --stream 15m")
case("A15", "unknown", sample=KNOWN, stream={}, price="9000 --max-read-units 9000")
case("A15", "unknown", sample={"rru": 740}, price="3000 --max-read-units 3000")
case("A15", "unknown", sample={"rru": 760}, price="3040 --max-read-units 3040")
case("A15", "unknown", price="3000 without --control-plane-only")


def growing(daily: float, inserts: int = 60) -> dict[str, Any]:
    traffic = (KeyTraffic("k", inserts, inserts, 9.0, 1.0), KeyTraffic("x", 99, 99, 9.0, 1.0))
    return {"growth": {"k": daily, "x": 1.0}, "traffic": traffic}


LARGE_LATER = {"evidence": "stream 5.36871e+09", "where": "k", "text": "5.0 GB in 3 years"}
case("A15", "low", stream=growing(4903.0), **LARGE_LATER)
case("A15", "unknown", stream=growing(4902.0))
case("A15", "unknown", {"ttl": "expires"}, stream=growing(4903.0))
case("A15", "unknown", stream=growing(4903.0, inserts=59))
case("A15", "medium", {"indexes": (lsi(),)}, stream=growing(4903.0))
case("A15", "low", sample=dated(0.949, 0.9, 0.96), stream=growing(4903.0))
case("A15", "unknown", sample=dated(0.95, 0.9, 0.96), stream=growing(4903.0))

# Buckets of a table with an LSI have at most 5,000,000,000 bytes: 13.7 MB a day are a year's.
PLAIN = {"indexes": (lsi(bytes=0),), "items": 10_000}
for size, unit in ((5.47e9, "year"), (5.49e9, "month"), (6.66e10, "month"), (6.68e10, "day")):
    case("A15", "low", PLAIN, sample={**largest(size, items=1681), **MEAN}, text=f"by {unit},")
YOUNG = {**PLAIN, "created": NOW - 60}
case("A15", "low", YOUNG, sample={**largest(13000000.0, items=1681), **MEAN}, text="by year,")
case("A15", "low", YOUNG, sample={**largest(14000000.0, items=1681), **MEAN}, text="by month,")
for daily, unit in ((13_698, "year"), (13_699, "month"), (166_666, "month"), (166_667, "day")):
    case("A15", "medium", {"indexes": (lsi(bytes=0),)}, stream=growing(daily), text=f"by {unit},")


def ttl(*shares: Any) -> dict[str, Any]:
    return {"ttl": TtlFacts(*shares, missing=share(0.8))}


TTL = {"ttl": "expires"}
SOME, FEW, OPEN = share(0.05, 0.02, 0.1), share(0.0, 0.0, 0.019), share(0.0, 0.0, 0.02)
THREE = {"evidence": "sample 0.02, sample 0.02, sample 0.02"}
case("A16", "clear")
case("A16", "low", sample=ttl(SOME, FEW, FEW), **THREE, text="Of the times of expiry, ")
case("A16", "clear", sample=ttl(FEW, FEW, FEW), text="is off")
case("A16", "low", TTL, sample=ttl(SOME, FEW, FEW), **THREE, text="over 7 days ago")
case("A16", "low", TTL, sample=ttl(FEW, SOME, FEW), text="are not numbers")
case("A16", "low", TTL, sample=ttl(FEW, FEW, SOME), cost="0.0125 0.0 0.0")
case("A16", "low", TTL, sample=ttl(ALL, ALL, FEW), cost="0.25 0.0 0.0")
case("A16", "unknown", TTL, sample=ttl(share(0.05, 0.019, 0.1), FEW, FEW), **THREE)
case("A16", "unknown", TTL, sample=ttl(FEW, OPEN, FEW))
case("A16", "unknown", TTL, sample=ttl(FEW, FEW, OPEN))
case("A16", "clear", TTL, sample=ttl(FEW, FEW, FEW), **THREE)
case("A16", "unknown", TTL, sample={"rru": 37}, price="150 --max-read-units 150")
case("A16", "unknown", TTL, sample={"rru": 38}, price="152 --max-read-units 152")
UNTOLD = {"untold": {"ttl": Absent("denied.", "the right dynamodb:DescribeTimeToLive")}}
case("A16", "unknown", UNTOLD, price="0 the right dynamodb:DescribeTimeToLive")


def keys(*count: float) -> dict[str, Any]:
    return {"keys": share(*count)}


def load(writes: float, reads: float = 0.0) -> dict[str, Any]:
    """Return metrics of two weeks with these peaks, in units a second."""
    return {"peak": {("write", TABLE): writes, ("read", TABLE): reads}}


MANY, TEN_SECONDS = {"items": 5_000_000}, {"items": 10_000, "bytes": 5_000_000}
case("A19", "low", MANY, sample=keys(39), evidence="sample 40, sample 60", command=rekeyed(2))
case("A19", "clear", MANY, sample=keys(40), evidence="sample 40")
case("A19", "unknown", MANY, sample=keys(38, 35, 41))
case("A19", "unknown", MANY, sample={})
ONLY = {**largest(1e6, items=5_000_000), **keys(1)}
case("A19", "low", MANY, sample=ONLY, text="1 partition key for 5,000,000 items.")
case("A19", "low", MANY, sample=keys(5), metrics=load(1))
case("A19", "low", {"bytes": 5 * GB - 9}, sample=keys(5))
case("A19", "medium", {"bytes": 5 * GB}, sample=keys(5))
case("A19", "low", {"bytes": 5 * GB}, sample=keys(5), metrics=load(1))
# A minute of writes at full rate, 60,000 items of 1 KB, separates small tables from large ones.
case("A19", "low", {"items": 60000, "bytes": 0}, sample=keys(1))
LEAST = {"items": 999, "bytes": 9}
case("A19", "unknown", LEAST, sample={**keys(9), "items_read": 999}, text="load is not")
case("A19", "low", LEAST, sample={**keys(9), "items_read": 1000}, text="at most 9,000 write units")
case("A19", "low", {"items": 1000, "bytes": 9}, sample={**keys(9), "items_read": 999})
case("A19", "unknown", {"items": 1000, "bytes": 9}, sample=keys(10))
case("A19", "unknown", {"items": 1000, "bytes": 9}, sample=keys(9, 8, 10))
case("A19", "low", {"items": 500, "bytes": 60000 * KB}, sample=keys(1))
case("A19", "unknown", {"items": 500, "bytes": 59999 * KB}, sample={**keys(1), "items_read": 999})
case("A19", "low", {"items": 500, "bytes": 59999 * KB}, sample={**keys(1), "items_read": 1000})
case("A19", "unknown", {"items": 30000, "bytes": 30000 * KB}, sample=keys(5), metrics=load(1))
case("A19", "clear", {"items": 29999, "bytes": 30000 * KB}, sample=keys(5), metrics=load(1))
case("A19", "low", {"items": 200, "bytes": 0}, sample={**keys(1), "items_read": 60000})
case("A19", "info", {"items": 199, "bytes": 0}, sample={**keys(1), "items_read": 60000})
# If one of ten keys has nearly all items, it may be large although a tenth of the items is not.
NINETY = {"items": 90_000, "bytes": 0}
case("A19", "unknown", NINETY, sample=keys(10), text="It is not known whether there are enough")
SKEWED = {**largest(1e6, items=60000), **keys(10)}
case("A19", "low", NINETY, sample=SKEWED, text="; the largest holds 67 % of them.")
case("A19", "unknown", NINETY, sample={**largest(1e6, items=59999), **keys(10)})
LENGTHS = {**keys(10), "all_keys": True, "unseen": ZERO}
case("A19", "clear", NINETY, sample={**largest(9 * KB, items=59990), **LENGTHS}, metrics=load(1))
case("A19", "unknown", NINETY, sample={**largest(10 * KB, items=59990), **LENGTHS}, metrics=load(1))
case("A19", "unknown", NINETY, sample={**largest(KB, items=9), **keys(10)}, metrics=load(1))
# A small table is clear if its load is known to be small, and not before.
case("A19", "unknown", TEN_SECONDS, sample=keys(10), price="0 the right cloudwatch:GetMetricData")
case("A19", "unknown", TEN_SECONDS, sample=keys(10), metrics={}, price=AGAIN)
evidence = "sample 40, metrics 0.5, sample 60"
case("A19", "clear", TEN_SECONDS, sample=keys(5), metrics=load(49), evidence=evidence)
case("A19", "low", TEN_SECONDS, sample=keys(5), metrics=load(50), text="at most 5,000 write units")
case("A19", "clear", TEN_SECONDS, sample=keys(10), metrics=load(4999))
case("A19", "low", TEN_SECONDS, sample=keys(5), metrics=load(2499))
case("A19", "medium", TEN_SECONDS, sample=keys(5), metrics=load(2500), patterns="P5 P17")
case("A19", "clear", TEN_SECONDS, sample=keys(5), metrics=load(9, 149))
case("A19", "low", TEN_SECONDS, sample=keys(5), metrics=load(9, 150))
case("A19", "low", TEN_SECONDS, sample=keys(5), metrics=load(9, 7499))
case("A19", "medium", TEN_SECONDS, sample=keys(5), metrics=load(9, 7500), text="takes 50 % or")
case("A19", "medium", TEN_SECONDS, sample=keys(60), metrics=load(30000))
case("A19", "medium", TEN_SECONDS, sample=keys(5), peak_writes=2500.0)
case("A19", "low", TEN_SECONDS, sample=keys(5), peak_writes=2499.0)
# A table with many keys may have even more of them by the time of a future peak.
case("A19", "medium", TEN_SECONDS, sample=keys(39), peak_writes=19500.0)
case("A19", "clear", TEN_SECONDS, sample=keys(40), peak_writes=90000.0)
DAY_OLD, YOUNGER = {"created": NOW - DAY}, {"created": NOW - DAY + 1}
case("A19", "clear", {**TEN_SECONDS, **DAY_OLD}, sample=keys(5), metrics=load(1))
case("A19", "unknown", {**TEN_SECONDS, **YOUNGER}, sample=keys(10), metrics=load(1))

# Heat


def throttled(
    way: str, cause: str, events: float = 50.0, ago: float | None = 60.0, at: str = TABLE
) -> Any:
    """Return complete metrics of throttles, in which only one kind has events."""
    last = None if ago is None else NOW - ago
    return {**THROTTLES, (way, cause, at): Throttles(events, last)}


def calm(write: float = 10.0, read: float = 10.0, **more: Any) -> dict[str, Any]:
    return {
        "throttles": THROTTLES,
        "peak": {("read", TABLE): read, ("write", TABLE): write},
        **more,
    }


for way, patterns in (("read", "P18 P17"), ("write", "P17 P18")):
    for events, ago, severity in (
        (1, 60, "high"),
        (500, HOUR - 1, "high"),
        (500, HOUR, "medium"),
        (10, 5 * DAY, "medium"),
        (10, None, "medium"),
    ):
        metrics = {"throttles": throttled(way, "key range", events, ago)}
        case("H1", severity, metrics=metrics, patterns=patterns, evidence="metrics 1")
for events, ago, words in (
    (1, 60, "throttled 1 time, the last under an hour ago."),
    (20, 2 * HOUR, "throttled 20 times, the last 2 h ago."),
    (20, None, "throttled 20 times."),
):
    metrics = {"throttles": throttled("write", "key range", events, ago)}
    case("H1", "high" if ago == 60 else "medium", metrics=metrics, text=words)
OLD = throttled("write", "key range", 50, HOUR)
NO_READ = {("read", "key range", TABLE): Throttles(0, NOW)}
case("H1", "medium", metrics={"throttles": {**OLD, **NO_READ}})
case("H1", "clear", metrics=calm(), evidence="metrics 1")
# All load may go to one key, for which a write counts three times as much as a read.
case("H1", "clear", metrics=calm(499.0, 2.0))
case("H1", "unknown", metrics=calm(499.0, 3.0))
case("H1", "clear", metrics=calm(0.0, 1499.0))
case("H1", "unknown", metrics=calm(500.0, 9.0), price="0 --insights")
case("H1", "unknown", metrics=calm(0.0, 1500.0))
case("H1", "unknown", metrics=calm(period=61))
case("H1", "unknown", metrics=calm(peak={("write", TABLE): 9.0}))
case("H1", "unknown", metrics=calm(peak={("read", TABLE): 9.0}))
case("H1", "unknown", metrics=calm(throttles={}), text="did not report all throttles")
case("H1", "clear", DAY_OLD, metrics=calm())
case("H1", "unknown", YOUNGER, metrics=calm(), price=AGAIN)


def accessed(units: float, at: str = TABLE) -> dict[str, Any]:
    return {"accessed": {at: (HotKey("c", 1.0, 1.0), HotKey("k", units, units))}}


INSIGHTS = {"evidence": "metrics 1, insights 90000"}
case(
    "H1",
    "medium",
    metrics=calm(9e3),
    insights=accessed(90001.0),
    **INSIGHTS,
    text="took 50 % of",
)
case("H1", "clear", metrics=calm(9000.0), insights=accessed(90000.0), **INSIGHTS, where=" k")
# Of 100,000 units a minute, at most half are writes up to 277.7 write units a second.
case("H1", "medium", metrics=calm(277.0), insights=accessed(100000.0), patterns="P18 P17")
case("H1", "medium", metrics=calm(0.0), insights=accessed(100000.0), command="")
case("H1", "medium", metrics=calm(278.0), insights=accessed(100000.0), patterns="P17 P18")
case("H1", "clear", metrics=calm(9000.0), insights={"accessed": {TABLE: ()}})
case("H1", "unknown", metrics=calm(9000.0), insights={"throttled": {TABLE: ()}}, text="keys only")
case("H1", "unknown", insights=accessed(9.0))
case("H1 by-status", "medium", GSI, metrics=calm(), insights=accessed(100000.0, INDEX))
case("H1 by-status", "unknown", GSI, metrics=calm(), stream=hot(900.0))
WRITES = {"throttles": throttled("write", "key range", at=INDEX)}
case("H1 by-status", "high", GSI, metrics=WRITES, text="A key range was throttled 50 times")
REFUSED = {"throttled": {INDEX: (HotKey("c", 1.0, 1.0), HotKey("k", 5.0, 9.0))}}
case("H1 by-status", "high", GSI, metrics=WRITES, insights=REFUSED, where=" k")
REFUSED_BY_TABLE = {"throttled": {TABLE: (HotKey("k", 1, 1),)}}
case("H1 by-status", "high", GSI, metrics=WRITES, insights=REFUSED_BY_TABLE)
for events, expected in ((10, "medium"), (9, "unknown")):
    FEW = {
        **calm(),
        "throttles": {**THROTTLES, **throttled("write", "key range", events, HOUR, INDEX)},
    }
    case("H1 by-status", expected, GSI, metrics={**FEW, "period": 61}, insights=REFUSED)
case("H1 by-status", "high", GSI, metrics={"throttles": throttled("read", "key range", at=INDEX)})
case("H1", "clear", GSI, metrics=calm(), insights=accessed(100000.0, INDEX))


def busy(peak: float, units: float) -> dict[str, Any]:
    return {"traffic": (KeyTraffic("a", 1, 1, 9e9, 1.0), KeyTraffic("k", 900, 900, units, peak))}


SHARDS = {"text": "No shard is needed for 500 write units a second", "command": ""}
case("H1", "medium", stream=busy(500.0, 5000.0), **SHARDS, evidence="stream 500", where="k")
case("H1", "info", stream=busy(500.0, 4999.0), text="in a short burst")
case("H1", "unknown", stream=busy(499.0, 90000.0))
case("H1", "unknown", stream={})
case(
    "H1",
    "medium",
    stream=busy(1000.0, 10000.0),
    command="keyhop shards add Orders KEY --count 1 --metadata Orders-shards",
)
metrics = {"throttles": throttled("read", "key range")}
case("H1", "high", metrics=metrics, stream=busy(500.0, 90000.0), command="")
case("H1", "medium", stream=busy(500.0, 90000.0), text="names the keys (--insights)")
# The stream shows no hot key but a range of many keys that are written one after the other.
for peak, records, ago, expected in (
    (499.0, 385, 60, "clear"),
    (500.0, 385, 60, "high"),
    (499.0, 384, 60, "high"),
    (499.0, 385, HOUR, "medium"),  # The stream was read later.
):
    refused = {
        way: {"throttles": throttled(way, "key range", 50, ago)} for way in ("read", "write")
    }
    ranged = {**busy(peak, 9e4), "records": records, "hash_rho": share(0.8, 0.7, 0.9)}
    even = {**ranged, "hash_rho": share(0.1, 0.0, 0.2)}
    case("H1", expected, metrics=refused["write"], stream=ranged)
    severity = "high" if expected == "clear" else expected
    case("H1", severity, metrics=refused["read"], stream=ranged)
    case("H1", severity, metrics=refused["write"], stream=even)
# A table that takes more than its warm throughput is cold, and its keys may be fine.
for peak, heat, cold in ((4001.0, "unknown", "medium"), (4000.0, "medium", "unknown")):
    metrics = {**load(peak, 9.0), "throttles": throttled("write", "key range", 50, 5 * DAY)}
    case("H1", heat, metrics=metrics)
    case("H5", cold, metrics=metrics)


def log(inserts: int, newest: int, peak: float = 9.0, total: int = 0) -> dict[str, Any]:
    traffic = (KeyTraffic("log", inserts, inserts, 9.0, peak, newest), KeyTraffic("x", 9, 9, 9, 1))
    return {"inserts": total or inserts, "traffic": traffic}


# Of 1,000 inserts, the interval begins at 90 % from 919 on, and ends below it up to 880.
LOG = {"evidence": "stream 0.5, stream 0.9"}
case("H2", "clear", {"sort": None}, stream=log(1000, 999))
case("H2", "low", stream=log(1000, 919), evidence="stream 0.9", where="log", patterns="P17")
case("H2", "unknown", stream=log(1000, 918))
case("H2", "unknown", stream=log(1000, 881), **LOG)
case("H2", "clear", stream=log(1000, 880), **LOG)
case("H2", "low", stream=log(60, 60))
case("H2", "unknown", stream=log(59, 59))
case("H2", "low", stream=log(1000, 999, 499.0), text="of all inserts, and 100 % [99, 100]")
case("H2", "medium", stream=log(1000, 999, 500.0), text="of its inserts")
case("H2", "medium", stream=log(60, 60, 500.0, total=9000))
case("H2", "clear", stream=log(59, 59, 500.0, total=9000))
# Of 1,000 inserts, the interval begins at a half from 532 on, and ends below it up to 468.
case("H2", "low", stream=log(532, 531, total=1000))
case("H2", "unknown", stream=log(531, 530, total=1000), **LOG)
case("H2", "unknown", stream=log(469, 468, total=1000))
case("H2", "clear", stream=log(468, 468, total=1000), **LOG)
# This is one of many keys that grow at their end, and partitions can split between the keys.
case("H2", "clear", stream=log(1000, 999, total=9000))
case("H2", "clear", stream=log(385, 9))
case("H2", "unknown", stream=log(384, 9), evidence="")
case("H2", "unknown", stream={"inserts": 1000})

CAPACITY = ("provisioned", "maximum", "account")
WORDS = ("provisioned capacity", "configured maximum", "account's limit")
for cause, words in zip(CAPACITY, WORDS, strict=True):
    for way in ("read", "write"):
        for events, ago in ((1, 60), (10, HOUR)):
            metrics = {"throttles": throttled(way, cause, events, ago)}
            case("H4", "medium", metrics=metrics, text=words)
        few = {**THROTTLES, **throttled(way, cause, 9, HOUR)}
        case("H4", "clear", metrics=calm(throttles=few), text="9 times, the last 1 h ago: the SDK")
    case("H1", "unknown", metrics={"throttles": throttled("write", cause)})
PROVISIONED = throttled("write", "provisioned")
HEAT = {("write", "key range", TABLE): Throttles(1, NOW)}
case("H4", "info", metrics={"throttles": {**PROVISIONED, **HEAT}})
for cause in CAPACITY:
    for events, ago, expected in ((1, 60, "medium"), (10, HOUR, "medium"), (9, HOUR, "clear")):
        of_index = {**THROTTLES, **throttled("read", cause, events, ago, INDEX)}
        text = "Reads of by-status were throttled" if expected == "medium" else ""
        case("H4", expected, GSI, metrics=calm(throttles=of_index), text=text)
BOTH_SHORT = {**PROVISIONED, ("read", "provisioned", INDEX): Throttles(99, NOW)}
case("H4", "medium", GSI, metrics={"throttles": BOTH_SHORT}, text="by the provisioned capacity")
HOT_INDEX = {**THROTTLES, **throttled("read", "key range", at=INDEX)}
case("H4", "clear", GSI, metrics=calm(throttles=HOT_INDEX))
case("H4", "clear", metrics=calm(), evidence="metrics 1")
case("H4", "unknown", metrics={})
case("H4", "clear", DAY_OLD, metrics=calm())
case("H4", "unknown", YOUNGER, metrics=calm())

for cause, events, ago, severity in (
    ("key range", 1, HOUR - 1, "high"),
    ("key range", 10, HOUR, "medium"),
    ("provisioned", 500, 60, "medium"),
    ("maximum", 500, 60, "medium"),
    ("account", 500, 60, "medium"),
    ("provisioned", 10, HOUR, "medium"),
):
    metrics = {"throttles": throttled("write", cause, events, ago, INDEX)}
    words = "key range was too hot" if cause == "key range" else "capacity was too low"
    case("H3 by-status", severity, GSI, metrics=metrics, text=words)
    case("H4", "clear", GSI, metrics=metrics)
for cause in ("key range", "provisioned"):
    few = {**THROTTLES, **throttled("write", cause, 9, HOUR, INDEX)}
    text = "9 times, the last 1 h ago: the SDK"
    case("H3 by-status", "clear", GSI, metrics=calm(throttles=few), text=text)
MIXED = throttled("write", "provisioned", 50, 60, INDEX)
OLD_HEAT = {("write", "key range", INDEX): Throttles(50, NOW - 2 * HOUR)}
metrics = {"throttles": {**MIXED, **OLD_HEAT}}
case("H3 by-status", "medium", GSI, metrics=metrics, text="key range was too hot")
case("H3 by-status", "clear", GSI, metrics=calm(), evidence="metrics 1")
case("H3 by-status", "unknown", GSI, metrics={})
case("H3 by-status", "clear", {**GSI, **DAY_OLD}, metrics=calm())
case("H3 by-status", "unknown", {**GSI, **YOUNGER}, metrics=calm())

case("H5", "medium", peak_writes=4001.0, evidence="control plane 4001")
case("H5", "clear", peak_writes=4000.0, evidence="control plane 4000")
case("H5", "unknown", price="0 --peak-writes W")
case("H5", "unknown", {"warm": None}, peak_writes=100.0)
case("H5", "medium", {"throughput": (500, 99)}, peak_writes=100.0, text="only 99 are provisioned")
case("H5", "clear", {"throughput": (5, 100)}, peak_writes=100.0)
text = "only 99 are configured as the maximum"
case("H5", "medium", {"maximum": (500, 99)}, peak_writes=100.0, text=text)
case("H5", "clear", {"maximum": (50, 100)}, peak_writes=100.0)
case("H5", "clear", {"maximum": (50, -1)}, peak_writes=100.0)

for estimate, expected in (
    ((0.6, 0.5, 0.7), "low"),
    ((0.6, 0.49, 0.7), "unknown"),
    ((-0.6, -0.7, -0.5), "low"),
    ((-0.6, -0.7, -0.49), "unknown"),
    ((0.0, -0.49, 0.49), "clear"),
    ((0.0, -0.49, 0.5), "unknown"),
    ((0.0, -0.5, 0.49), "unknown"),
):
    case("H6", expected, stream={"hash_rho": share(*estimate)}, evidence="stream 0.5")
case("H6", "unknown", stream={}, price="20 --stream 1h")
case("H6", "unknown", stream={"hash_rho": share(0.6, 0.49, 0.7)}, price="20 --stream 1h")
for count, records, turn, expected in (
    (4, 385, 0.5, "low"),
    (3, 385, 0.5, "unknown"),
    (4, 384, 0.5, "unknown"),
    (4, 385, 0.49, "unknown"),
):
    turns = {"shards": dict.fromkeys(range(count), 99), "records": records, "in_turn": turn}
    case("H6", expected, stream=turns)
case("H6", "low", stream={"hash_rho": share(0.9), "peak": 100.0})
SLOW = {"peak": 99.0, "inserts": 9000}
QUIET_TURNS = {"shards": dict.fromkeys(range(4), 99), "records": 385, "in_turn": 0.5, "peak": 99.0}
case("H6", "info", stream={"hash_rho": share(0.9), **SLOW}, text="99 write units in the busiest")
case("H6", "info", stream={"hash_rho": share(0.9), "peak": 1.0}, text="do no harm yet")
case("H6", "info", stream=QUIET_TURNS)
case("H6", "info", stream={**QUIET_TURNS, "peak": 10.0})
case("H6", "clear", stream={**QUIET_TURNS, "peak": 9.9}, text="too few to load a partition")
case("H6", "clear", stream={"hash_rho": share(0.1), **SLOW})


def shards(*counts: int, **more: Any) -> dict[str, Any]:
    return {"shards": {f"s{number}": count for number, count in enumerate(counts)}, **more}


# Of 1,000 records, the first count is the least whose interval begins at the threshold.
for counts, threshold, expected in (
    ((532, 156, 156, 156), 0.5, "low"),
    ((531, 157, 156, 156), 0.5, "unknown"),
    ((468, 178, 177, 177), 0.5, "clear"),
    ((697, 152, 151), 2 / 3, "info"),
    ((696, 152, 152), 2 / 3, "unknown"),
    ((778, 222), 0.75, "info"),
    ((777, 223), 0.75, "unknown"),
    ((722, 278), 0.75, "clear"),
):
    case("H7", expected, stream=shards(*counts), evidence=f"stream {threshold:g}", where="s0")
case("H7", "unknown", stream=shards(1000))
case("H7", "low", stream=shards(300, 30, 30, 25))
case("H7", "unknown", stream=shards(300, 30, 30, 24), evidence="")
case(
    "H7", "clear", stream=shards(250, 250, 250, 250, split_shards=2), evidence="stream 0.5, stream"
)

FEW_WRITES = {"text": "The stream shows too few writes."}
case("A8", "low", stream={"counter": share(0.3, 0.2, 0.4)}, evidence="stream 0.2", patterns="P20")
case("A8", "unknown", stream={"counter": share(0.3, 0.19, 0.4)}, **FEW_WRITES)
case("A8", "unknown", stream={"counter": share(0.1, 0.0, 0.2)})
case("A8", "clear", stream={"counter": share(0.1, 0.0, 0.199)}, evidence="stream 0.2")
case("A8", "low", stream={"counter": ALL, **hot(499.0)})
for units, text in (
    (500.0, "one key takes 1,000. When the load comes near"),
    (501.0, "half of each free. Count in several"),
):
    case("A8", "medium", stream={"counter": ALL, **hot(units)}, text=text)
case("A8", "unknown", stream={"records": 384}, **FEW_WRITES)
case("A8", "unknown", stream={"records": 385}, text="Only a stream with old and new images")
HOT_ITEM = {"items": {TABLE: (HotKey("c", 1.0, 1.0), HotKey("i", 90_001.0, 1.0))}}
case("A8", "low", insights=HOT_ITEM, evidence="insights 90000", where="i")
case("A8", "unknown", insights={"items": {TABLE: (HotKey("i", 90000.0, 1.0),)}})
for writes, period, expected in ((500.0, 60, "low"), (499.0, 61, "low"), (499.0, 60, "unknown")):
    case("A8", expected, insights=HOT_ITEM, metrics=calm(writes, 3000.0, period=period))
case("A8", "low", insights=HOT_ITEM, metrics={})
# A status item is not a counter. Only the stream shows that none of its numbers changes.
case("A8", "clear", insights=HOT_ITEM, stream={"counter": ZERO})
for seconds, expected in ((1996, "clear"), (1995, "low")):
    seldom = {"counter": share(0.9, 0.8, 1.0), "records": 399, "seconds": seconds}
    case("A8", expected, stream=seldom)

# Indexes

TEN = tuple(gsi(f"i{n}", partition=(f"a{n}",)) for n in range(10))


def pair(first: tuple[str, ...], second: tuple[str, ...], **more: Any) -> dict[str, Any]:
    return {"indexes": (gsi("one", sort=first, **more), gsi("two", sort=second))}


case("A7", "low", {"indexes": TEN[:6]}, evidence="control plane 6", text="6 GSIs.")
text = "The table has 5 GSIs; no two"
case("A7", "clear", {"indexes": TEN[:5]}, evidence="control plane 6", text=text)
case("A7", "clear", text="The table has no GSI.")
case(
    "A7", "low", pair(("day",), ("day",), items=9), text="The GSIs one and two have the same keys."
)
case("A7", "low", pair((), ("day",)))
case("A7", "low", pair(("day", "city"), ("day",)))
case("A7", "clear", pair(("day", "city"), ("city",)))
case("A7", "clear", pair((), ("day",), items=9))  # Only one of them has items without a day.
case("A7", "clear", {"indexes": (gsi("one", items=0), gsi("two", sort=("day",), items=0))})
case("A7", "clear", {"indexes": (gsi("one", partition=("a",)), gsi("two", partition=("b",)))})


def unread(days: int | None, written: float = 1e9) -> dict[str, Any]:
    consumed = {("write", INDEX): written, ("read", TABLE): 1.0}
    return {"read_days": {INDEX: days}, "consumed": consumed}


MONTH = {**GSI, "created": NOW - 30 * DAY}
case("A7 by-status", "medium", MONTH, metrics=unread(0), evidence="metrics 1", text="in 30 days.")
UNDER_A_MONTH = {**GSI, "created": NOW - 30 * DAY + 1}
case("A7 by-status", "low", UNDER_A_MONTH, metrics=unread(0), text="30 days old.")
# 14 days of a month of 730 hours; storage is 2.5 cents. A dollar is 1.56 million writes.
case("A7 by-status", "low", MONTH, metrics=unread(0, 717000.0), cost="0.9986 0.0 0.0")
case("A7 by-status", "medium", MONTH, metrics=unread(0, 719000.0))
case("A7 by-status", "clear", MONTH, metrics=unread(1), text="1 of 30 days")
case("A7 by-status", "unknown", MONTH, metrics=unread(None))
NO_READS = {"read_days": {INDEX: 0}, "consumed": {("write", INDEX): 1e9}}
case("A7 by-status", "unknown", MONTH, metrics=NO_READS, text="Neither the table nor")


def skewed(*top: float, read: int = 3000, **more: Any) -> dict[str, Any]:
    """Return the sample of an index in which one key has this share of the items."""
    return {"indexes": {INDEX: IndexSample(read, share(*top), "p", **more)}}


def rate(units: float) -> dict[str, Any]:
    return {"peak": {("write", INDEX): units}}


def of_items(count: int) -> dict[str, Any]:
    return {"indexes": (gsi(items=count),)}


TOP = {"evidence": "sample 0.2", "where": "p"}
case("A9", "clear", {"indexes": (gsi(partition=("pk",)), lsi())})
case("A9 by-status", "low", GSI, sample=skewed(0.3, 0.2, 0.4), **TOP, patterns="P16 P3")
case("A9 by-status", "unknown", GSI, sample=skewed(0.3, 0.19, 0.4), **TOP)
case("A9 by-status", "unknown", GSI, sample=skewed(0.1, 0.05, 0.2))
case("A9 by-status", "clear", GSI, sample=skewed(0.1, 0.05, 0.199), **TOP)
case("A9 by-status", "unknown", GSI, sample={"rru": 62}, price="250 --max-read-units 250")
case("A9 by-status", "unknown", GSI, sample={"rru": 63}, price="252 --max-read-units 252")
NO_SAMPLE = {"price": "250 without --control-plane-only"}
case("A9 by-status", "unknown", GSI, **NO_SAMPLE)
FEW_READ = skewed(0.6, 0.5, 0.7, read=20)
case("A9 by-status", "medium", of_items(1000), sample=FEW_READ)
case("A9 by-status", "low", of_items(999), sample=FEW_READ)
case("A9 by-status", "low", of_items(1000), sample=skewed(0.6, 0.49, 0.7, read=20))
case("A9 by-status", "low", of_items(100), sample=FEW_READ)
case(
    "A9 by-status", "clear", of_items(99), sample=FEW_READ, evidence="control plane 100, sample 0.2"
)
case("A9 by-status", "low", of_items(0), sample=skewed(0.6, 0.5, 0.7, read=100))
case("A9 by-status", "medium", of_items(999), sample=FEW_READ, metrics=rate(1000.0))
case("A9 by-status", "low", of_items(999), sample=FEW_READ, metrics=rate(999.0))
case("A9 by-status", "medium", of_items(1000), sample=FEW_READ, metrics=rate(100.0))
case("A9 by-status", "low", of_items(1000), sample=FEW_READ, metrics=rate(99.0))
case("A9 by-status", "medium", of_items(1000), sample=FEW_READ, metrics={})
case("A9 by-status", "unknown", GSI, metrics={"throttles": few}, **NO_SAMPLE)
MAYBE, BOTH = skewed(0.3, 0.19, 0.4), {"evidence": "sample 0.2, metrics 1"}
for events, ago, severity in ((1, HOUR - 1, "high"), (10, HOUR, "medium")):
    metrics = {"throttles": throttled("write", "key range", events, ago, INDEX)}
    words = "by-status: a key range of it was throttled"
    case("A9 by-status", severity, GSI, metrics=metrics, sample=MAYBE, **BOTH, text=words)
case("A9 by-status", "unknown", GSI, metrics=WRITES)
case("H1 by-status", "unknown", GSI, metrics=WRITES, sample=skewed(0.3, 0.2, 0.4))
case("A9 by-status", "high", of_items(99), sample=FEW_READ, metrics=WRITES)
case("A9 by-status", "high", GSI, sample=skewed(0.1, 0.05, 0.2), metrics=WRITES)
case("A9 by-status", "clear", GSI, sample=skewed(0.1, 0.05, 0.199), metrics=WRITES)
case("A9 by-status", "unknown", GSI, metrics=calm())
# Each item is written once and its index entry twice: 3 or 5 units an item.
for index_bytes, table_bytes, one_off in (
    (1024 * 1000, 1024 * 10**6, "0.001875"),
    (1025 * 1000, 1024 * 10**6, "0.003125"),
    (1024 * 1000, 1025 * 10**6, "0.0025"),
):
    table = {"indexes": (gsi(items=1000, bytes=index_bytes),), "bytes": table_bytes}
    case("A9 by-status", "medium", table, sample=FEW_READ, one_off=one_off)
PARTS = {"indexes": (gsi(partition=("status", "city")),)}
case("A9 by-status", "medium", PARTS, sample=skewed(0.6, 0.5, 0.7), text="status and city. Readers")
case("A9 by-status", "medium", GSI, sample=skewed(0.6, 0.5, 0.7), text="status, or one attribute")


def sparse(*of_table: float, top: tuple[float, ...] = (0.7, 0.6, 0.8), **more: Any) -> Any:
    return skewed(*top, sparse=share(*of_table) if of_table else None, **more)


FULL = {"evidence": "sample 0.4, sample 0.6"}
case("I1 by-status", "low", GSI, sample=sparse(0.5, 0.4, 0.6), **FULL, patterns="P3")
case("I1 by-status", "unknown", GSI, sample=sparse(0.5, 0.39, 0.6), **FULL)
case("I1 by-status", "unknown", GSI, sample=sparse(0.3, 0.2, 0.4), **FULL)
case("I1 by-status", "clear", GSI, sample=sparse(0.3, 0.2, 0.399), evidence="sample 0.4")
case("I1 by-status", "unknown", GSI, sample=sparse(0.5, 0.4, 0.6, top=(0.7, 0.59, 0.8)))
case("I1 by-status", "unknown", GSI, sample=sparse(0.5, 0.4, 0.6, top=(0.5, 0.4, 0.6)))
case("I1 by-status", "clear", GSI, sample=sparse(0.5, 0.4, 0.6, top=(0.5, 0.4, 0.599)))
# All items have one key, or the key is the kind of an item, which never changes like a state.
case("I1 by-status", "clear", GSI, sample=sparse(1.0, 1.0, 1.0, top=(1.0, 0.95, 1.0)))
case("I1 by-status", "low", GSI, sample=sparse(1.0, 1.0, 1.0, top=(1.0, 0.949, 1.0)))
case("I1 by-status", "low", GSI, sample=sparse(1.0, 1.0, 1.0, top=(0.999, 0.95, 1.0)))
for names, expected in ((("status",), "clear"), (("kind",), "low")):
    case("I1 by-status", expected, GSI, sample={**sparse(0.5, 0.4, 0.6), "kind_names": names})
COUNTS = {"evidence": "control plane 0.4, sample 0.6"}
case("I1 by-status", "low", of_items(400001), sample=sparse(), **COUNTS)
case("I1 by-status", "clear", of_items(400000), evidence="control plane 0.4")
case("I1 by-status", "clear", {**of_items(9), "created": NOW - 6 * HOUR})
case("I1 by-status", "unknown", {**of_items(9), "created": NOW - 6 * HOUR + 1}, sample={})
case("I1 by-status", "unknown", of_items(0), sample={})
case("I1 by-status", "low", of_items(100), sample=sparse(0.5, 0.4, 0.6, read=9))
case("I1 by-status", "clear", of_items(99), sample=sparse(0.5, 0.4, 0.6, read=9))
case("I1 by-status", "low", of_items(99), sample=sparse(0.5, 0.4, 0.6, read=100))


def use(read: float, written: float) -> dict[str, Any]:
    return {"consumed": {("read", INDEX): read, ("write", INDEX): written}}


def wide(item_bytes: int) -> dict[str, Any]:
    return {"indexes": (gsi(projection="ALL", items=1000, bytes=item_bytes * 1000),)}


EMPTY = {"indexes": (gsi(projection="ALL", items=0),)}
NO_BYTES = {"indexes": (gsi(projection="ALL", bytes=0),)}
HARDLY = {"evidence": "metrics 0.1, control plane 1024", "patterns": "P15"}
case("I2 by-status", "low", wide(3000), metrics=use(99.0, 1000.0), **HARDLY)
case(
    "I2 by-status",
    "clear",
    wide(3000),
    metrics=use(100.0, 1000.0),
    text="is read often enough",
)
case("I2 by-status", "low", wide(1025), metrics=use(0.0, 1000.0))
case("I2 by-status", "clear", wide(1024), metrics=use(0.0, 1000.0), text="would not save write")
case("I2 by-status", "unknown", wide(3000), metrics=use(0.0, 0.0), evidence="metrics 0.1")
case("I2 by-status", "unknown", EMPTY, metrics=use(0.0, 9.0))
case("I2 by-status", "unknown", NO_BYTES, metrics=use(0.0, 9.0))
case("I2 by-status", "unknown", {**wide(3000), **YOUNGER}, metrics=use(0.0, 9.0))
case("I2 by-status", "low", {**wide(3000), **DAY_OLD}, metrics=use(0.0, 9.0))
case("I2 by-status", "clear", GSI, metrics=use(0.0, 1e9))
# Two of three units are saved: a dollar a month by 1.11 million units in 14 days.
case("I2 by-status", "low", wide(3000), metrics=use(0.0, 1104000.0))
case("I2 by-status", "medium", wide(3000), metrics=use(0.0, 1105000.0))
LARGE = {**wide(3000), "bytes": 10**9}
case("I2 by-status", "medium", LARGE, metrics=use(0.0, 3e6), cost="4.074 1.358 0.0")


def writes(table: float, index: float) -> dict[str, Any]:
    return {"consumed": {("write", TABLE): table, ("write", INDEX): index}}


case("I3", "clear")
case(
    "I3",
    "low",
    GSI,
    metrics=writes(1e6, 1.5e6),
    evidence="metrics 1.5",
    cost="3.395 2.716 0.0",
)
case("I3", "clear", GSI, metrics=writes(1e6, 1490000.0), evidence="metrics 1.5")
case("I3", "unknown", GSI, metrics=writes(0.0, 1e6))
case("I3", "low", {**GSI, **DAY_OLD}, metrics=writes(1e6, 1500000.0))
case("I3", "unknown", {**GSI, **YOUNGER}, metrics=writes(1e6, 1500000.0))

GSI1 = gsi("GSI1", partition=("GSI1PK",), sort=("GSI1SK",))


def joins(*ratio: float, index: Any = GSI1, names: tuple[str, ...] = ("status", "placed")) -> Any:
    """Return an index whose sort key joins attributes in this share of its items."""
    composed = {"": ((), share(*ratio)), "GSI1SK": (names, share(*ratio))}
    sample = {"indexes": {"GSI1": IndexSample(3000, composed=composed)}}
    return {"table": {"indexes": (index,)}, "sample": sample}


text = "key GSI1PK and the sort key"
case("I4 GSI1", "low", **joins(0.95, 0.9, 1.0), evidence="sample 0.9", text=text)
case("I4 GSI1", "low", **joins(0.95), text="GSI1: GSI1SK only joins status and placed.")
case("I4 GSI1", "unknown", **joins(0.95, 0.89, 1.0))
case("I4 GSI1", "unknown", **joins(0.5, 0.2, 0.9))
case("I4 GSI1", "clear", **joins(0.5, 0.2, 0.899), evidence="sample 0.9")
BEGINS = gsi("GSI1", partition=("GSI1SK",), sort=("placed",))
case("I4 GSI1", "low", **joins(0.95, index=BEGINS), text="key status and placed: a GSI")
case("I4 GSI1", "low", **joins(0.95, names=("a", "b", "c", "d")), text="a and b and c and d: a GSI")
case("I4 GSI1", "low", **joins(0.95, names=tuple("abcde")), text="with up to four of these")
case("I4 GSI1", "unknown", {"indexes": (GSI1,)}, sample={})
case("I4 GSI1", "unknown", {"indexes": (GSI1,)})
for high, expected in ((0.899, "clear"), (0.9, "unknown")):
    sample = {"indexes": sampled("GSI1", composed={"": ((), share(0.0, 0.0, high))})}
    case("I4 GSI1", expected, {"indexes": (GSI1,)}, sample=sample, evidence="sample 0.9")
case("I4", "clear", sample={})

# Requests and code


def calls(consumed: Any = None, returned: Any = None, **more: float) -> dict[str, Any]:
    counts = {"GetItem": 1e6, "PutItem": 1e6, "Scan": 0.0, "TransactWriteItems": 0.0, **more}
    used = {("read", TABLE): 1e6, ("write", TABLE): 1e6} if consumed is None else consumed
    return {"calls": counts, "consumed": used, "returned": {"Scan": returned} if returned else {}}


def line(
    kind: Any, table: str = "", attribute: str = "", file: str = "app/a.py", **more: Any
) -> CodeFacts:
    return CodeFacts(3, (CodeLine(kind, file, 17, "table.scan()", table, attribute),), **more)


def shape(operation: str, times: int, **fields: Any) -> RequestShape:
    """Return a request that was made this often, with one item and one unit each time."""
    plain = RequestShape(operation, "", ("pk",), (), times, times, times, float(times), 0)
    return replace(plain, **fields)


def reads(units: float) -> Mapping[tuple[str, str], float]:
    return {("read", TABLE): units}


case("A4", "low", metrics=calls(Scan=1.0), evidence="metrics 1", patterns="P12 P15")
case("A4", "clear", metrics=calls(), evidence="metrics 1")
case("A4", "unknown", metrics={"calls": {"GetItem": 9.0}}, evidence="")
case("A4", "clear", DAY_OLD, metrics=calls())
case("A4", "unknown", YOUNGER, metrics=calls())
case("A4", "unknown", metrics=calls(ExecuteStatement=9.0), price="0 --code DIR")
# A page takes 128 read units; a table of ten blocks takes five, and an empty one half a unit.
case("A4", "medium", metrics=calls(reads(1280000000.0), Scan=1e6), cost="34.76 None 0.0")
case("A4", "low", metrics=calls(reads(1281000000.0), Scan=1e6))
case("A4", "low", metrics=calls({}, Scan=1e6))
case("A4", "low", metrics=calls(reads(1.0), Scan=28700.0), cost="0.9977 None 0.0")
case("A4", "medium", metrics=calls(reads(1.0), Scan=28800.0))
case("A4", "medium", {"bytes": 40960}, metrics=calls(Scan=1e6), cost="1.358 None 0.0")
case("A4", "medium", {"bytes": 0}, metrics=calls(Scan=10000000.0), cost="1.358 None 0.0")
# An export reads a million items of 1,000 bytes by 954 pages of 1,048 items.
EXPORT = 14 * 954.0
case("A4", "clear", metrics=calls(Scan=EXPORT, returned=7010000.0), evidence="metrics 1")
case("A4", "low", metrics=calls(reads(1e9), Scan=EXPORT, returned=6990000.0))
case("A4", "clear", metrics=calls(Scan=1.5 * EXPORT, returned=21000000.0))
case("A4", "low", metrics=calls(reads(1e9), Scan=1.5 * EXPORT, returned=21100000.0))
case("A4", "low", {"items": 0}, metrics=calls(reads(1e9), Scan=EXPORT, returned=7010000.0))
case("A4", "clear", {"items": 9, "bytes": 9000}, metrics=calls(Scan=9.0, returned=81.0))
# Three hours of a day are 42 of 14 days.
for hours, expected in ((0, "low"), (1, "clear"), (42, "clear"), (43, "low")):
    IN_HOURS = {**calls(reads(1e9), Scan=900.0), "hours": {"Scan": hours}}
    case("A4", expected, metrics=IN_HOURS, evidence="metrics 1")
case("A4", "low", YOUNGER, metrics={**calls(reads(1e9), Scan=9.0), "hours": {"Scan": 1}})
case("A4", "low", {"items": 9, "bytes": 0}, metrics=calls(Scan=9.0, returned=81.0))
case("A4", "low", code=line("scan"), evidence="code", where="app/a.py:17")
case("A4", "low", code=line("scan", "Orders"))
case("A4", "unknown", code=line("scan", "Others"))
case("A4", "unknown", code=line("filter"))
case("A4", "info", code=line("scan"), metrics=calls(), evidence="metrics 1, code")
for file, expected in (
    ("app/tests/a.py", "unknown"),
    ("test_a.py", "unknown"),
    ("a_test.py", "unknown"),
    ("conftest.py", "unknown"),
    ("scripts/a.py", "unknown"),
    ("ops/nightly_export.py", "unknown"),
    ("backfill_orders.py", "unknown"),
    ("migrations/0001.py", "unknown"),
    ("latest/a.py", "low"),
    ("exporter/a.py", "low"),
):
    case("A4", expected, code=line("scan", file=file))
    case("A5", expected, code=line("filter", file=file))
case("A11", "low", code=line("status", file="scripts/a.py"))
case("A11", "unknown", code=line("status", file="tests/a.py"))
TWO_LINES = CodeFacts(3, line("scan").lines * 2)
case("A4", "low", code=TWO_LINES, text="app/a.py:17 and 1 more: the code calls Scan.")
# Of 1,000 reads, the interval begins at 1 % from 18 on.
case("A4", "low", requests=[shape("Scan", 18), shape("GetItem", 982)], evidence="requests 0.01")
case("A4", "unknown", requests=[shape("Scan", 17), shape("Query", 983), shape("PutItem", 1)])
case("A4", "low", requests=[shape("Scan", 18), shape("PutItem", 9000)])
case("A4", "low", requests=[shape("Scan", 5)])
case("A4", "unknown", requests=[shape("Scan", 4)])
case("A4", "unknown", requests=[shape("PutItem", 9000)])


def filtered(count: int, scanned: int = 10_000, calls: int = 1000, **fields: Any) -> RequestShape:
    """Return a query with a filter that keeps this many of the items that it reads."""
    fields = {"filters": ("state",), "units": 500.0, **fields}
    return shape("Query", calls, count=count, scanned=scanned, **fields)


# Of 1,000 calls, the interval ends below 90 % up to 880, and begins at it from 919 on.
KEPT = {"evidence": "requests 0.9"}
case("A5", "low", requests=[filtered(8800)], **KEPT, patterns="P14 P3")
case("A5", "unknown", requests=[filtered(8810)], **KEPT, price="0 --requests FILE")
case("A5", "unknown", requests=[filtered(9180)])
case("A5", "clear", requests=[filtered(9190)], **KEPT)
case("A5", "clear", requests=[filtered(10000, calls=385)])
case("A5", "unknown", requests=[filtered(10000, calls=384)], text="384 queries and scans were")
case("A5", "unknown", requests=[filtered(1, 1, calls=1)], text="1 query or scan was recorded")
# The end of a page makes no difference.
case("A5", "clear", requests=[filtered(5000, filters=())])
case("A5", "unknown", requests=[shape("GetItem", 9000)])
case("A5", "unknown", requests=[filtered(0, 0)])
case(
    "A5",
    "low",
    requests=[filtered(0), filtered(8000, units=9.0)],
    text="returns 0 % [0.0, 0.4] of the items that it reads; other such requests: 1.",
)
# Half of the read units of an hour are dropped: a dollar a month by 21,918 of them.
case("A5", "low", requests=[filtered(5000, units=21900.0)], cost="1.998 0.9992 0.0")
case("A5", "medium", requests=[filtered(5000, units=21930.0)])
BY_DAY = filtered(0, index="by-day", conditions=("city", "day"))
case("A5", "low", requests=[BY_DAY], text="of by-day by city, day, filter state", where="by-day")
case("A5", "low", requests=[filtered(0, conditions=())], text="Query, filter state, returns")
# Code shows that a filter selects some of many items. How many an exclusion drops is unknown.
case("A5", "low", code=line("filter"), where="app/a.py:17", patterns="P14 P3")
case("A5", "low", code=line("filter", attribute="state,sum"), text="a filter on state,sum. ")
case("A5", "unknown", code=line("exclusion"), where="app/a.py:17", price="0 --requests FILE")
case("A5", "unknown", code=line("filter"), requests={}, where="app/a.py:17")
for names, expected in (
    ("ttl", "unknown"),
    ("expiresAt", "unknown"),
    ("expire_at", "unknown"),
    ("expires,ttl", "unknown"),
    ("expires,state", "low"),
    ("experience", "low"),
):
    case("A5", expected, code=line("filter", attribute=names))
case("A5", "unknown", {"ttl": "gone"}, code=line("filter", attribute="gone"))
case("A5", "unknown", price="0 --requests FILE")


def read_after_write(hits: int, read_count: int) -> dict[str, Any]:
    return {"followed": {INDEX: (hits, read_count)}}


# Of 1,000 reads, the interval begins at 1 % from 18 on, and ends below it up to 3.
case("A10", "clear")
case("A10 by-status", "low", GSI, requests=read_after_write(18, 1000), evidence="requests 0.01")
case("A10 by-status", "unknown", GSI, requests=read_after_write(17, 1000), evidence="requests 0.01")
case("A10 by-status", "unknown", GSI, requests=read_after_write(4, 1000))
case("A10 by-status", "clear", GSI, requests=read_after_write(3, 1000), evidence="requests 0.01")
case("A10 by-status", "unknown", GSI, requests=read_after_write(0, 0), evidence="")


def reversals(back: int, total: int = 1600, **more: Any) -> dict[str, Any]:
    return {"reversals": {"status": (total, back)}, **more}


BACK = {"evidence": "stream 0.005"}
case("A11", "low", stream=reversals(1), **BACK, patterns="P16")
case("A11", "low", stream=reversals(159), text="9.9 % [")
case("A11", "clear", stream=reversals(160), **BACK, text="so many seem to be intended")
case("A11", "clear", stream=reversals(0, 737), **BACK)
case("A11", "clear", stream=reversals(0, 736))
case("A11", "unknown", stream=reversals(0, 730), price="0 --stream 1h")
case("A11", "unknown", stream={"reversals": {"status": (1600, 0), "state": (9, 0)}})
case("A11", "unknown", stream=reversals(0, 0), evidence="")
case("A11", "unknown", stream={})
case("A11", "unknown", stream={"view": ""}, text="The stream contains no images:")
case("A11", "unknown", stream={"view": "NEW_IMAGE"}, text="The stream contains NEW_IMAGE:")
case("A11", "unknown", stream={"view": "KEYS_ONLY"}, price="0 a stream with NEW_AND_OLD_IMAGES")
case("A11", "low", code=line("status"), evidence="code")
case("A11", "unknown", code=CodeFacts(3))


def transactions(count: float, plain: float, **more: float) -> dict[str, Any]:
    return calls(PutItem=plain, TransactWriteItems=count, **more)


PLAIN_CALLS = {"UpdateItem": 2.0, "DeleteItem": 3.0, "BatchWriteItem": 4.0}
case("A12", "low", metrics=transactions(9001.0, 999.0), evidence="metrics 0.9", patterns="P2")
case("A12", "clear", metrics=transactions(9000.0, 1000.0), evidence="metrics 0.9")
case("A12", "clear", metrics=transactions(90.0, 1.0, **PLAIN_CALLS))
case("A12", "low", metrics=transactions(60.0, 0.0), cost="1.358 0.6789 0.0")
case("A12", "unknown", metrics=transactions(59.0, 0.0))
case("A12", "low", DAY_OLD, metrics=transactions(60.0, 0.0))
case("A12", "unknown", YOUNGER, metrics=transactions(60.0, 0.0))
case("A12", "unknown", requests={})


def one_item(count: int, units: float, **fields: Any) -> RequestShape:
    return shape("TransactWriteItems", 400, units=units, one_item_transactions=count, **fields)


# Half of their cost is saved: a dollar a month from 4,384 units an hour on.
case("A12", "low", requests=[one_item(400, 4380.0)], cost="1.998 0.9992 0.0")
case("A12", "medium", requests=[one_item(400, 4390.0)])
case("A12", "low", requests=[one_item(200, 8760.0)], cost="1.998 0.9992 0.0")
case("A12", "low", requests=[one_item(400, 2190.0, metered=200)], cost="1.998 0.9992 0.0")
case(
    "A12",
    "low",
    requests={"shapes": (one_item(400, 2190.0),), "sampled": 0.5},
    cost="1.998 0.9992 0.0",
)
case("A12", "low", requests=[one_item(400, 8.0)], text="400 transactions had only one item")
# Of 400 transactions, the interval begins at 30 % from 139 on.
case("A12", "low", requests=[one_item(139, 8.0)], evidence="requests 0.3")
case("A12", "unknown", requests=[one_item(138, 8.0), shape("PutItem", 400)])
READS = shape("TransactGetItems", 400, units=4380.0, one_item_transactions=400)
AS_READ = "Read one item with GetItem and ConsistentRead"
case("A12", "low", requests=[READS], cost="0.3997 0.1998 0.0", text=AS_READ)
case("A12", "medium", requests=[READS, one_item(400, 4380.0)], cost="2.398 1.199 0.0")


# Of 1,000 write calls, the interval begins at 90 % from 919 on.
def write_calls(count: int, plain: int) -> list[RequestShape]:
    plain_writes = [shape("PutItem", plain)] if plain else []
    return [shape("TransactWriteItems", count), *plain_writes]


case("A12", "low", requests=write_calls(919, 81), evidence="requests 0.9", patterns="P2")
case("A12", "unknown", requests=write_calls(918, 82))
case("A12", "low", requests=write_calls(60, 0))
case("A12", "unknown", requests=write_calls(59, 0))
case("A12", "clear", requests=write_calls(999, 1), metrics=transactions(100.0, 1e6))
case("A12", "low", code=line("transaction"), where="app/a.py:17", patterns="P2")
case("A12", "low", code=line("transaction"), requests=[one_item(1, 8.0)], evidence="code")
case("A12", "unknown", code=line("transaction", "Others"))
case("A12", "clear", requests=[one_item(0, 800.0)], metrics=transactions(100.0, 1e6))

case("A14", "low", code=line("unprocessed"), evidence="code")
case("A14", "clear", code=line("unprocessed", "Others"), evidence="code")
case("A14", "unknown", code=line("batch_write"), price="0 read these lines of code")
case("A14", "clear", code=CodeFacts(3))
case("A14", "unknown", code=CodeFacts(0))
case("A14", "unknown", code=CodeFacts(3, unreadable=("b.py",)))
case("A14", "unknown", price="0 --code DIR")


def gets(consistent: int, **fields: Any) -> dict[str, Any]:
    return {"requests": [shape("GetItem", 1000, consistent=consistent, **fields)]}


# Of 1,000 reads, the interval begins at 80 % from 825 on, and ends below it up to 774.
case("A17", "low", **gets(825), evidence="requests 0.8")
case("A17", "unknown", **gets(824))
case("A17", "unknown", **gets(775))
case("A17", "clear", **gets(774), evidence="requests 0.8")
# Half of their cost is saved: a dollar a month from 21,918 units an hour on.
case("A17", "low", **gets(1000, units=21900.0), cost="1.998 0.9992 0.0")
case("A17", "medium", **gets(1000, units=21930.0))
case("A17", "low", **gets(900, units=1000.0), cost="0.08212 0.04106 0.0")
BLOCK = {"item_bytes": {0.99: share(900, 800, 4096)}}
for units, expected in (
    (1.051e6, "unknown"),
    (1.05e6, "low"),
    (0.95e6, "low"),
    (0.949e6, "unknown"),
    (0.601e6, "unknown"),
    (0.6e6, "clear"),
):
    case("A17", expected, metrics=calls(reads(units)), sample=BLOCK, evidence="metrics 0.95")
# Half of their cost is saved: a dollar a month from 7.36 million units in 14 days on.
case("A17", "low", metrics=calls(reads(7300000.0), GetItem=7300000.0), sample=BLOCK)
case("A17", "medium", metrics=calls(reads(7400000.0), GetItem=7400000.0), sample=BLOCK)
case("A17", "unknown", YOUNGER, metrics=calls(reads(600000.0)), sample=BLOCK)
case("A17", "low", metrics=calls(reads(385.0), GetItem=385.0), sample=BLOCK)
case("A17", "unknown", metrics=calls(reads(384.0), GetItem=384.0), sample=BLOCK)
case("A17", "low", metrics=calls(reads(950.0), GetItem=950.0, Query=50.0), sample=BLOCK)
case("A17", "unknown", metrics=calls(reads(949.0), GetItem=949.0, Query=51.0), sample=BLOCK)
case("A17", "unknown", metrics=calls(), sample={"item_bytes": {0.99: share(900, 800, 4097)}})
case("A17", "unknown", metrics=calls(), sample={})
case("A17", "unknown", metrics=calls())
case("A17", "unknown", metrics=calls({}), sample=BLOCK)
case("A17", "unknown", code=line("consistent"), evidence="code")
for consistent, read_count, expected in (
    (3, 3, "low"),
    (2, 2, "unknown"),
    (4, 5, "low"),
    (3, 4, "unknown"),
):
    PROGRAM = CodeFacts(1, line("consistent").lines * consistent, reads=read_count)
    case("A17", expected, code=PROGRAM)
    case("A17", expected, code=PROGRAM, metrics=calls())
    case("A17", "unknown", code=PROGRAM, requests=[shape("GetItem", 9, consistent=7)])
case("A17", "unknown", code=line("consistent"), metrics=calls(), evidence="code")
case("A17", "unknown", evidence="requests", price="0 --requests FILE")


@pytest.mark.parametrize(("rule", "expected", "table", "fields"), CASES)
def test_a_rule_changes_its_verdict_at_its_threshold(
    rule: str, expected: str, table: Any, fields: dict[str, Any]
) -> None:
    name, _, index = rule.partition(" ")
    sources = {source: fields[source] for source in fields if source in (*SOURCES, "peak_writes")}
    finding = finding_of(name, facts(table, **sources), index)
    verdict = finding.status if finding.status != "found" else finding.severity
    assert verdict == expected, finding.summary
    assert finding.status == "found" or finding.severity == "info"
    actual = parts(finding)
    assert fields.get("text", "") in actual["text"]
    expected_parts = {
        part: text for part, text in fields.items() if part not in sources and part != "text"
    }
    assert {part: actual[part] for part in expected_parts} == expected_parts
