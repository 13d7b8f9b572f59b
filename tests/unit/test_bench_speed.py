"""The benchmark of speed says of each bar what it was, what is wanted, what it is, and whether."""

from typing import Any

import pytest

from bench.speed_report import speed_lines

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
ROW = {"keys": 2_000, "requests": 10, "units": 5.0, "seconds": 1.0, "in_flight": 64}
GOOD: dict[str, Any] = {
    "client_cpu": {
        items: {"boto3 client.scan": 500.0, "keyhop": 70.0, "walk": 200.0}
        for items in ("1", "10", "100")
    },
    "million": [{**ROW, "way": "to standard output", "megabytes": 80.0}],
    "speed": {
        "base": "424f7d7",
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


def bars(results: dict[str, Any]) -> list[list[str]]:
    lines = list(speed_lines(results))
    begin = next(n for n, line in enumerate(lines) if line.endswith("| kept |")) + 2
    rows = lines[begin : lines.index("", begin)]
    return [[cell.strip() for cell in row.strip("|").split("|")] for row in rows]


def test_each_bar_is_told() -> None:
    found = bars(GOOD)
    assert len(found) == 12
    assert {row[-1] for row in found} == {"yes"}
    assert found[0][1:] == ["118", "at least 1,500", "1,600", "yes"]


@pytest.mark.parametrize(
    ("number", "part", "name", "value"),
    [
        (0, "far", "requests_per_second", 1_499.0),
        (1, "near", "cpu_share", 0.89),
        (6, "small", "ratio", 1.01),
        (11, "throttled", "throttled", 0.03),
        (10, "throttled", "used", 0.89),
        (7, "in_flight", "many", 0.51),
    ],
)
def test_one_that_is_missed_is_told_as_such(
    number: int, part: str, name: str, value: float
) -> None:
    speed = GOOD["speed"]
    old = speed[part]
    new = {**old, name: value} if isinstance(old, dict) else [{**old[0], name: value}]
    found = bars({**GOOD, "speed": {**speed, part: new}})
    assert [at for at, row in enumerate(found) if row[-1] == "**no**"] == [number]
