"""The profile's parts: whose work a function does, and what a profile itself takes is taken off."""

import xml.etree.ElementTree as ET
from typing import Any

import pytest

from bench.profile import ELSE, draw, parts_of

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
"""pstats: of each function its calls, own seconds, all seconds, and who called it how often."""


def test_a_function_of_no_part_works_for_those_that_call_it() -> None:
    found = parts_of(STATS, 0.0, 120.0)
    sign = 0.3 + 0.3 + 0.4 * 10 / 40
    gate = 0.1 + 0.1 + 0.4 * 30 / 40
    assert dict(found) == {
        "sign": round(120 * sign / (sign + gate)),
        "decide when to send (rate, in flight)": round(120 * gate / (sign + gate)),
    }


def test_what_a_profile_takes_for_each_call_is_taken_off() -> None:
    found = parts_of(STATS, 0.01, 100.0)
    sign, gate = 0.7 - 0.01 * (10 + 20 + 10), 0.5 - 0.01 * (10 + 10 + 30)
    assert gate == pytest.approx(0.0)
    assert found["sign"] == round(100 * sign / (sign + gate))


def test_what_nobody_has_called_is_all_else() -> None:
    assert parts_of({LOCK: (1, 1, 1.0, 1.0, {})}, 0.0, 7.0) == {ELSE: 7}


def test_functions_of_one_file_may_be_different_parts() -> None:
    stats: dict[Any, Any] = {SIGN: (1, 1, 0.3, 0.3, {}), HEADERS: (1, 1, 0.1, 0.1, {})}
    assert list(parts_of(stats, 0.0, 8.0).values()) == [6, 2]


def test_the_picture_has_a_bar_for_each_part_in_proportion() -> None:
    root = ET.fromstring("\n".join(draw(parts_of(STATS, 0.0, 120.0))))
    bars = [float(rect.get("width")) for rect in root.iter("{http://www.w3.org/2000/svg}rect")][1:]
    assert len(bars) == 2
    assert bars[1] / bars[0] == pytest.approx(50 / 70, abs=0.01)
