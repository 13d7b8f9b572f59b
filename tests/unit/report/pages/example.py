"""An example report of a table that is a few years old, with all statuses and all pictures."""

import math
import random
from collections import defaultdict
from dataclasses import replace
from functools import cache
from typing import Any

from keyhop.report.estimate import Estimate
from keyhop.report.facts import (
    Absent,
    CandidateFacts,
    Collection,
    Facts,
    IndexFacts,
    IndexSample,
    KeyTraffic,
    MetricFacts,
    SampleFacts,
    StreamFacts,
    TableFacts,
    Tag,
)
from keyhop.report.findings import Advice, Evidence, Finding, Money, Price, Report, Spent
from keyhop.report.pages.document import pictures

from testing.report_corpus.facts_cases import TABLE

AT = 1_795_460_400.0
GB = 1024**3
PRICED = "2026-11-01"


def about(value: float, within: float, n: int = 385, method: str = "random segments") -> Estimate:
    return Estimate(value, value * (1 - within), value * (1 + within), n, method)


def share(value: float, low: float, high: float, n: int = 385) -> Estimate:
    return Estimate(value, low, high, n, "windows weighted by 1/P")


def heat(minutes: int = 120, keys: int = 900) -> tuple[tuple[float, int, float], ...]:
    """Return Zipf keys, a hot key from halfway on, and a load in hash order near the end."""
    chance = random.Random(7)
    places = [chance.randrange(256) for _ in range(keys)]
    cells: defaultdict[tuple[int, int], float] = defaultdict(float)
    for minute in range(minutes):
        tide = 1 + 0.5 * math.sin(minute / 17)
        for rank, place in enumerate(places, 1):
            if chance.random() < 0.55:
                cells[minute, place] += 60 * tide * chance.lognormvariate(1.6, 0.7) / rank**0.45
        if 58 <= minute < 96:
            cells[minute, 171] += 60 * chance.uniform(850, 1100)
        if minute >= 100:
            for place in range(int((minute - 100) * 12.8), int((minute - 99) * 12.8)):
                cells[minute, place] += 60 * 260
    began = AT - minutes * 60
    return tuple((began + 60 * minute, place, units) for (minute, place), units in cells.items())


def table() -> TableFacts:
    return replace(
        TABLE,
        arn="arn:aws:dynamodb:eu-west-1:111122223333:table/Orders",
        region="eu-west-1",
        items=912_400_000,
        bytes=1_020 * GB,
        created=AT - 900 * 86_400,
        ttl="expires",
        stream="arn:aws:dynamodb:eu-west-1:111122223333:table/Orders/stream/2024-01-01T00:00:00.000",
        stream_view="NEW_AND_OLD_IMAGES",
        indexes=(
            IndexFacts("byStatus", "GSI", ("status",), ("sk",), "ALL", 905_000_000, 1_011 * GB),
            IndexFacts("byCity", "GSI", ("city",), ("pk",), "KEYS_ONLY", 320_000_000, 41 * GB),
            IndexFacts("byCoupon", "GSI", ("coupon",), (), "INCLUDE", 1_900_000, GB // 3),
            IndexFacts("byAmount", "LSI", ("pk",), ("amount",), "ALL", 912_400_000, 1_020 * GB),
        ),
        insights=None,
    )


def lorenz() -> tuple[tuple[float, float], ...]:
    return tuple((x / 40, (x / 40) ** 6.2) for x in range(41))


@cache
def facts() -> Facts:
    keys = [f"#{random.Random(number).randrange(16**8):08x}" for number in range(10)]
    giants = (8.6, 6.1, 4.4, 2.9, 2.2, 1.4, 1.1, 0.8, 0.6, 0.4)
    return Facts(
        at=AT,
        table=table(),
        metrics=MetricFacts(
            began=AT - 14 * 86_400,
            ended=AT,
            consumed={
                ("read", ""): 8.1e8,
                ("write", ""): 2.4e8,
                ("write", "byStatus"): 4.1e8,
                ("read", "byStatus"): 1.2e7,
                ("write", "byCity"): 1.1e8,
                ("read", "byCity"): 4.0e6,
                ("write", "byCoupon"): 9.0e5,
                ("read", "byCoupon"): 0.0,
            },
            read_days={"byStatus": 30, "byCity": 22, "byCoupon": 0, "byAmount": None},
            minutes=tuple((AT - 60 * (240 - n), 9e3 + 5e3 * math.sin(n / 31)) for n in range(240)),
        ),
        insights=Absent("Contributor Insights is off.", "--insights"),
        stream=StreamFacts(
            began=AT - 7200,
            seconds=7200,
            records=1_840_000,
            inserts=640_000,
            view="NEW_AND_OLD_IMAGES",
            keys=880,
            traffic=tuple(
                KeyTraffic(key, 90_000 // (n + 1), 4000 // (n + 1), 9e5 / (n + 1), peak)
                for n, (key, peak) in enumerate(
                    zip(keys, (1100, 430, 310, 180, 120, 90, 60, 44, 30, 21), strict=True)
                )
            ),
            heat=heat(),
        ),
        sample=SampleFacts(
            rru=2_987.5,
            items_read=41_200,
            keys_read=1_530,
            keys=about(2_000_000, 0.05, 1_530),
            length={
                0.5: about(38, 0.12),
                0.9: about(610, 0.18),
                0.99: Estimate(9_400, 5_100, 16_800, 1_530, "random segments"),
            },
            beyond={10_000.0: share(0.61, 0.52, 0.7), 100_000.0: share(0.47, 0.38, 0.55)},
            unseen=share(0.40, 0.32, 0.48, 1_530),
            seen_largest=220_000.0,
            mean_items=about(456, 0.2),
            top=tuple(
                Collection(
                    key,
                    Estimate(giant * 9e5, giant * 8.2e5, giant * 9.9e5, 9, "windows"),
                    Estimate(giant * GB, giant * 0.92 * GB, giant * 1.09 * GB, 9, "windows"),
                    place=(n * 0.37 + 0.67) % 1,
                    by="GSI byCity" if n % 3 else "stream",
                )
                for n, (key, giant) in enumerate(zip(keys, giants, strict=True))
            ),
            biased=("GSI byCity", "stream"),
            item_bytes={
                0.5: about(640, 0.06),
                0.9: about(4_100, 0.1),
                0.99: Estimate(71_000, 44_000, 118_000, 900, "windows weighted by 1/P"),
            },
            large=share(0.0009, 0.0002, 0.0031),
            largest_item=371_200.0,
            coverage={
                "pk": share(1, 0.99, 1),
                "sk": share(1, 0.99, 1),
                "status": share(0.992, 0.975, 0.998),
                "amount": share(0.71, 0.66, 0.75),
                "city": share(0.35, 0.31, 0.4),
                "expires": share(0.12, 0.09, 0.16),
                "coupon": share(0.002, 0.0004, 0.009),
            },
            tags=(
                Tag("ORDER", share(0.62, 0.57, 0.67)),
                Tag("LINE", share(0.29, 0.25, 0.34)),
                Tag("CUSTOMER", share(0.06, 0.04, 0.09)),
                Tag("AUDIT", share(0.03, 0.02, 0.05)),
            ),
            shapes={
                "pk, sk, status, amount, city": share(0.58, 0.53, 0.63),
                "pk, sk, status, amount": share(0.3, 0.26, 0.35),
                "pk, sk, name, email, expires": share(0.12, 0.09, 0.16),
            },
            indexes={
                "byStatus": IndexSample(500, share(0.8, 0.76, 0.84), "#99c3a1f0"),
                "byCity": IndexSample(
                    500, share(0.11, 0.08, 0.14), "#0b1c22aa", share(0.35, 0.31, 0.4)
                ),
            },
            gini=Estimate(0.87, 0.85, 0.89, 1_530, "Lorenz curve"),
            lorenz=lorenz(),
        ),
        code=Absent("No code was given.", "--code DIR"),
        requests=Absent("No file of requests was given.", "--requests FILE"),
        candidates=(
            CandidateFacts(
                template="PK=ORDER#{orderId}",
                coverage=share(0.91, 0.88, 0.94),
                largest=share(0.0001, 0.00001, 0.0009),
                effective=about(9.1e6, 0.2),
                distinct=Estimate.at_least(7.7e6, 20_000, "windows"),
                monotonicity=share(0.02, -0.05, 0.09),
                throttled=share(0, 0, 0.001),
                peak=31.0,
                reads={"single": 0.74, "several": 0.0, "scatter": 0.26},
                migration=575.0,
                today=1_940.0,
                advised=1_460.0,
            ),
            CandidateFacts(
                template="PK=CUSTOMER#{customerId}#{ts:month}",
                coverage=share(0.99, 0.97, 1),
                largest=share(0.004, 0.002, 0.008),
                effective=about(310_000, 0.3),
                distinct=Estimate.at_least(260_000, 20_000, "windows"),
                monotonicity=share(0.31, 0.24, 0.38),
                throttled=share(0.021, 0.014, 0.03),
                peak=1_060.0,
                reads={"single": 0.61, "several": 0.39, "scatter": 0.0},
                migration=575.0,
                today=1_940.0,
                advised=1_610.0,
            ),
        ),
    )


FINDINGS = (
    Finding(
        "A6",
        "A local index caps its collections",
        "found",
        "high",
        "",
        "The largest collection holds 8.6 GB [7.9, 9.4]; with the local index byAmount a "
        "collection can hold 10 GB, and writes to a full one fail.",
        (
            Evidence("control plane", "local indexes", 1, 1, 1, where="byAmount"),
            Evidence(
                "sample",
                "bytes of the largest collection, with its local index",
                8.6 * GB,
                7.9 * GB,
                9.4 * GB,
                8 * GB,
                n=9,
                where="#29b4d4f8",
            ),
        ),
        Advice(
            ("P3", "P10"),
            (
                "Make byAmount a global index: nothing asks it for consistent reads.",
                "Restore into a new table with LocalSecondaryIndexOverride=[], which leaves the "
                "keys as they are.",
                "Until then, stop writing to the largest collection, or put its year in its key.",
            ),
            "keyhop report Orders --candidate 'PK=CUSTOMER#{customerId}#{ts:month}'",
            Money(1_940, 1_610, 575, PRICED),
        ),
    ),
    Finding(
        "H1",
        "A hot key",
        "found",
        "high",
        "",
        "One key was written 1,100 write units a second at its busiest: a partition takes 1,000. "
        "412 writes were throttled by key range in the last 14 days.",
        (
            Evidence(
                "stream", "write units of the busiest second", 1100, 1100, 1100, 1000, 7200, 1840000
            ),
            Evidence("metrics", "throttles by key range", 412, threshold=1, window=14 * 86400.0),
        ),
        Advice(
            ("P17", "P18"),
            (
                "Give this key 3 shards: 1,100 WCU/s by 1,000, with 50 % headroom.",
                "Readers that ask for the key read all shards as one.",
            ),
            "keyhop shards set Orders --key '#29b4d4f8' --shards 3",
            Money(1_940, 1_990, 0.4, PRICED),
        ),
    ),
    Finding(
        "A15",
        "Collections without a bound",
        "found",
        "medium",
        "",
        "40 % [32, 48] of all items are in collections larger than any that was sampled.",
        (Evidence("sample", "share of items unseen", 0.4, 0.32, 0.48, 0.05, n=1530),),
        Advice(("P10", "P5"), ("Put the month in the partition key: collections then end.",)),
    ),
    Finding(
        "A9",
        "An index with a constant key",
        "found",
        "medium",
        "byStatus",
        "80 % [76, 84] of the index's items have one key; its back-pressure throttles the table.",
        (Evidence("sample", "share of the largest key", 0.8, 0.76, 0.84, 0.2, n=500),),
        Advice(
            ("P16",),
            ("Write status with a bucket of the day, or index only open orders.",),
            cost=Money(410, 96, 120, PRICED),
        ),
    ),
    Finding(
        "A13",
        "Large items",
        "found",
        "medium",
        "",
        "The largest item that was seen has 363 KB; the limit is 400 KB.",
        (Evidence("sample", "largest item seen", 371_200, threshold=358_400, n=41_200),),
        Advice(("P13",), ("Keep the body in S3, and a pointer in the item.",)),
    ),
    Finding(
        "A7",
        "Indexes that nothing reads",
        "found",
        "low",
        "byCoupon",
        "Nothing has read this index in 30 days; it is written 900,000 times a fortnight. "
        "If a monthly job reads it, confirm that first.",
        (Evidence("metrics", "days with reads of the last 30", 0, threshold=1, window=2.6e6),),
        Advice(("P3",), ("Drop it after one more month.",), "", Money(1.2, 0, 0, PRICED)),
    ),
    Finding("A1", "Sequential ids", "found", "info", "", "12 % [9, 16] of keys end in a number."),
    Finding(
        "A5",
        "Filters that drop",
        "unknown",
        "medium",
        "",
        "CloudWatch does not say how many items a filter drops.",
        price=Price(0, "--requests FILE"),
    ),
    Finding(
        "A10",
        "Read after write by an index",
        "unknown",
        "medium",
        "",
        "Only the request sampler sees both.",
        price=Price(0, "--requests FILE"),
    ),
    Finding(
        "A14",
        "UnprocessedItems ignored",
        "unknown",
        "medium",
        "",
        "It is in the code or nowhere.",
        price=Price(0, "--code DIR"),
    ),
    Finding(
        "A16",
        "TTL for correctness",
        "unknown",
        "low",
        "",
        "Of 41 items with the attribute none had expired: 300 would exclude 1 %.",
        price=Price(2_100, "--max-read-units 5100"),
    ),
    Finding(
        "H7", "Partition heat", "unknown", "info", "", "The stream has one open shard.", price=None
    ),
    *(
        Finding(rule_id, title, "clear", "medium", "", summary)
        for rule_id, title, summary in (
            ("A2", "No type tag", "94 % [91, 96] of keys have a type tag; the rule asks for 5 %."),
            ("A3", "The key is the date", "0 % [0, 1] of keys are only a date."),
            ("A4", "Scans in production", "No Scan was answered in 14 days but ours."),
            ("A8", "One counter item", "No item has more than 2 % [1, 3] of the records."),
            ("H2", "A split cannot help", "8 % [5, 12] of inserts are at the newest sort key."),
            ("H4", "Not the keys", "No throttle by account or table limits in 14 days."),
            ("H5", "A cold table", "4,000 writes a second are warm, and 1,200 are expected."),
        )
    ),
)


def report(**changes: Any) -> Report:
    return replace(unchanged(), **changes)


@cache
def unchanged() -> Report:
    """Return the example without changes. Drawing its pictures takes half a second."""
    example = facts()
    return Report(
        table={
            "name": example.table.name,
            "arn": example.table.arn,
            "region": example.table.region,
            "partition_key": example.table.partition,
            "sort_key": example.table.sort,
            "items": example.table.items,
            "bytes": example.table.bytes,
            "billing": "on demand",
        },
        at=AT,
        spent=Spent(2_996.5, 1_873, 0.000375, 212.4),
        estimates={
            "keys": (example.sample.keys or about(1, 0)).to_json(),
            "gini": (example.sample.gini or about(1, 0)).to_json(),
            "unseen": (example.sample.unseen or about(1, 0)).to_json(),
        },
        findings=FINDINGS,
        pictures=pictures(example),
        sources={
            "control plane": "read; counts are up to 6 h old",
            "metrics": "14 days, 1-minute periods",
            "sample": "looked at",
            "stream": "2 h, 1,840,000 records",
            "insights": "not looked at: Contributor Insights is off (--insights)",
            "code": "not looked at: no code was given (--code DIR)",
            "requests": "not looked at: no file of requests was given (--requests FILE)",
        },
        not_assessed=(
            "Access patterns that the table lacks: they are in your requirements alone.",
            "Whether an ADD that is sent twice may count twice.",
            "Which reads are meant to be consistent.",
        ),
        show_keys="digest",
        options={"max_read_units": 3_000, "since": "14d", "stream": "2h"},
    )
