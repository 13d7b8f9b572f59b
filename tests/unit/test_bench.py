"""Check the benchmark's goals, and the parts of its profile."""

import xml.etree.ElementTree as ET
from typing import Any

import pytest

from bench.goals import goals
from bench.profile import ELSE, draw, parts_of

RUN = {
    "requests_per_second": 1600.0,
    "steady": 1700.0,
    "seconds": 19.5,
    "cpu_us": 200.0,
    "cpu_share": 0.95,
    "stub_share": 0.1,
    "in_flight": 90,
    "megabytes": 60.0,
}
WAYS = {  # seconds and RRU for each key
    "published, serial": (8.0, 0.5),
    "full scan, 16 segments": (1.0, 0.5),
    "keyhop, as planned": (1.0, 0.02),
    "keyhop, 16 segments": (1.0, 0.02),
}
ROW = {"keys": 2_000, "requests": 10, "units": 5.0, "seconds": 1.0, "in_flight": 64}
GOOD: dict[str, Any] = {
    "databases": {
        "DynamoDB Local": [
            {
                "table": table,
                "way": way,
                "keys": 10_000,
                "units": 10_000 * units,
                "segments": 16,
                "seconds": seconds,
            }
            for table in ("1x150", "10x500", "1000x500")
            for way, (seconds, units) in WAYS.items()
        ]
    },
    "rates": [{"steady": 0.95, "burst_pages": 0.9}],
    "client_cpu": {
        items: {"boto3 client.scan": 500.0, "keyhop": 70.0, "walk": 200.0}
        for items in ("1", "10", "100")
    },
    "rekey": {"the copy": 0.3, "boto3's put_item": 0.9, "boto3's put_item, 8 threads": 1.0},
    "report": {"items": 23_000_000, "units": 1_900.0, "cpu_seconds": 2.9},
    "million": [{**ROW, "way": "to standard output", "megabytes": 80.0}],
    "speed": {
        "base": "33c15f63",
        "minutes": 6.5,
        "far_before": {**RUN, "requests_per_second": 118.0},
        "far": RUN,
        "near": RUN,
        "processes": [RUN, RUN],
        "small": {"before": 0.5, "now": 0.45, "ratio": 0.9},
        "start": {
            "before": {"python": 20.0, "boto3": 200.0, "keyhop": 400.0},
            "now": {"python": 20.0, "boto3": 200.0, "keyhop": 280.0},
        },
        "throttled": [
            {"table": "a table", "rate": 50, "used": 0.95, "throttled": 0.01, "in_flight": 8}
        ],
        "designs": [{"way": "threads", "requests_per_second": 4_900.0, "cpu_us": 80.0}],
        "in_flight": [{"table": "zipf", "keys": 9, "few": 0.5, "many": 0.502, "in_flight": 64}],
    },
}


def test_each_goal_has_a_figure() -> None:
    rows = list(goals(GOOD))
    assert len(rows) == 23
    assert all(row[-1] for row in rows)
    assert rows[0][1:] == ("118", "at least 1,500", "1,600", True)


@pytest.mark.parametrize(
    ("figure", "part", "name", "value"),
    [
        ("requests a second on one core", "far", "requests_per_second", 1_499.0),
        ("share of the core that is used", "near", "cpu_share", 0.89),
        ("time of the whole command", "small", "ratio", 1.01),
        ("share of requests that it throttles", "throttled", "throttled", 0.03),
        ("share of a throttling table's capacity", "throttled", "used", 0.89),
        ("RRU with up to 64 requests in flight", "in_flight", "many", 0.511),
    ],
)
def test_a_goal_of_speed_can_be_missed(figure: str, part: str, name: str, value: float) -> None:
    speed = GOOD["speed"]
    old = speed[part]
    new = {**old, name: value} if isinstance(old, dict) else [{**old[0], name: value}]
    (missed,) = [row for row in goals({**GOOD, "speed": {**speed, part: new}}) if not row[-1]]
    assert missed[0].startswith(figure)


@pytest.mark.parametrize(
    ("way", "name", "value", "figures"),
    [
        ("keyhop, as planned", "seconds", 2.1, ["times as fast as the published method"]),
        ("keyhop, 16 segments", "units", 5_200.0, ["RRU without 4 for each segment"]),
        ("full scan, 16 segments", "units", 99.0, ["RRU against a full scan"]),
    ],
)
def test_a_goal_against_the_other_methods_can_be_missed(
    way: str, name: str, value: float, figures: list[str]
) -> None:
    rows = [
        {**row, name: value} if (row["table"], row["way"]) == ("1x150", way) else row
        for row in GOOD["databases"]["DynamoDB Local"]
    ]
    missed = [row for row in goals({**GOOD, "databases": {"DynamoDB Local": rows}}) if not row[-1]]
    assert len(missed) == len(figures)
    for row, figure in zip(missed, figures, strict=True):
        assert row[0].startswith(figure)


@pytest.mark.parametrize(
    ("part", "name", "value", "figure"),
    [
        ("rekey", "the copy", 0.91, "CPU of an item that a re-key copies"),
        ("report", "units", 2_001.0, "RRU of a report on 23 million items"),
        ("report", "cpu_seconds", 3.01, "its CPU"),
    ],
)
def test_a_goal_of_the_re_key_or_the_report_can_be_missed(
    part: str, name: str, value: float, figure: str
) -> None:
    (missed,) = [row for row in goals({**GOOD, part: {**GOOD[part], name: value}}) if not row[-1]]
    assert missed[0].startswith(figure)


SIGN = ("/any/lambdas/keyhop/dynamodb/transport.py", 1, "head")
HEADERS = ("/any/lambdas/keyhop/dynamodb/transport.py", 1, "headers")
GATE = ("/any/lambdas/keyhop/dynamodb/rate_limit.py", 1, "enter")
HASH = ("~", 0, "<built-in method _hashlib.openssl_sha256>")
WAIT = ("/usr/lib/python3.11/threading.py", 1, "wait")
LOCK = ("~", 0, "<method 'acquire' of '_thread.lock' objects>")


def calls(number: int) -> tuple[int, int, float, float]:
    return number, number, 0.0, 0.0


STATS: dict[Any, Any] = {
    SIGN: (10, 10, 0.3, 0.0, {}),
    HASH: (20, 20, 0.3, 0.0, {SIGN: calls(20)}),
    GATE: (10, 10, 0.1, 0.0, {}),
    WAIT: (10, 10, 0.1, 0.0, {GATE: calls(10)}),
    LOCK: (40, 40, 0.4, 0.0, {WAIT: calls(30), HASH: calls(10)}),
}
"""The format of pstats: calls, own and total seconds of each function, and its callers."""


def test_the_time_of_other_functions_counts_for_their_callers() -> None:
    parts = parts_of(STATS, 0.0, 120.0)
    sign = 0.3 + 0.3 + 0.4 * 10 / 40
    gate = 0.1 + 0.1 + 0.4 * 30 / 40
    assert dict(parts) == {
        "sign": round(120 * sign / (sign + gate)),
        "decide when to send (rate, in flight)": round(120 * gate / (sign + gate)),
    }


def test_the_overhead_of_each_profiled_call_is_subtracted() -> None:
    parts = parts_of(STATS, 0.01, 100.0)
    sign, gate = 0.7 - 0.01 * (10 + 20 + 10), 0.5 - 0.01 * (10 + 10 + 30)
    assert gate == pytest.approx(0.0)
    assert parts["sign"] == round(100 * sign / (sign + gate))


def test_a_function_without_a_caller_counts_as_else() -> None:
    assert parts_of({LOCK: (1, 1, 1.0, 1.0, {})}, 0.0, 7.0) == {ELSE: 7}


def test_functions_of_one_file_may_be_different_parts() -> None:
    stats: dict[Any, Any] = {SIGN: (1, 1, 0.3, 0.3, {}), HEADERS: (1, 1, 0.1, 0.1, {})}
    assert list(parts_of(stats, 0.0, 8.0).values()) == [6, 2]


def test_the_picture_has_a_bar_for_each_part_in_proportion() -> None:
    root = ET.fromstring("\n".join(draw(parts_of(STATS, 0.0, 120.0))))
    bars = [float(rect.get("width")) for rect in root.iter("{http://www.w3.org/2000/svg}rect")][1:]
    assert len(bars) == 2
    assert bars[1] / bars[0] == pytest.approx(50 / 70, abs=0.01)
