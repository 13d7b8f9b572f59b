"""Tests that facts are unchanged after the JSON between the states of ReportKeys."""

import json
import math
from dataclasses import replace
from typing import Any

import pytest
from keyhop.report.estimate import Estimate
from keyhop.report.facts import (
    Absent,
    Collection,
    HotKey,
    IndexFacts,
    IndexSample,
    InsightFacts,
    KeyTraffic,
    MetricFacts,
    SampleFacts,
    StreamFacts,
    Throttles,
)
from keyhop.report.facts_json import source_json, source_of

from tests.unit.report.rules.world import TABLE_OF_ORDERS

SHARE = Estimate(0.4, 0.32, 0.48, 60, "complement against ItemCount")
INDEX = IndexFacts("byCity", "GSI", ("city",), (), "INCLUDE", 10, 100, throughput=(1, 2))
FACTS: list[Any] = [
    replace(TABLE_OF_ORDERS, maximum=(40, 40), warm=None, ttl="expires", indexes=(INDEX,)),
    MetricFacts(
        1.0,
        2.0,
        consumed={("read", ""): 5.0, ("write", "byCity"): 1.5},
        throttles={("write", "key range", ""): Throttles(3.0, None)},
        read_days={"byCity": None, "byDay": 3},
        minutes=((60.0, 1.0), (120.0, 0.0)),
    ),
    InsightFacts(1.0, 2.0, accessed={"": (HotKey("k1", 90_000.0, 1e6),)}),
    StreamFacts(
        1.0,
        2.0,
        10,
        4,
        "NEW_IMAGE",
        3,
        traffic=(KeyTraffic("k1", 1, 1, 1.0, 1.0, place=0.25),),
        tau=SHARE,
        reversals={"status": (10, 1)},
        heat=((60.0, 255, 3.5),),
    ),
    SampleFacts(
        rru=3.0,
        items_read=100,
        keys_read=8,
        keys=Estimate.at_least(10, 8, "random segments"),
        length={0.5: SHARE, 0.99: SHARE},
        top=(Collection("k1", SHARE, None, 0.5),),
        indexes={"byCity": IndexSample(10, top_share=SHARE, top_key="PENDING")},
        lorenz=((0.0, 0.0), (1.0, 1.0)),
    ),
]


@pytest.mark.parametrize("facts", FACTS, ids=lambda facts: type(facts).__name__)
def test_facts_are_unchanged_after_json(facts: Any) -> None:
    text = json.dumps(source_json(facts), allow_nan=False)
    assert source_of(type(facts), json.loads(text)) == facts


def test_an_open_end_stays_open() -> None:
    text = json.dumps(source_json(Estimate.at_least(3, 1, "probes")))
    estimate = source_of(Estimate, json.loads(text))
    assert isinstance(estimate, Estimate)
    assert math.isinf(estimate.high)


def test_an_open_end_of_an_earlier_version_is_read() -> None:
    state = source_json(Estimate.at_least(3, 1, "probes"))
    state["seen"]["high"] = "inf"
    assert source_of(Estimate, state) == Estimate.at_least(3, 1, "probes")


def test_an_absent_source_keeps_its_reason() -> None:
    absent = Absent("The stream is off.", "--stream", 1.0)
    assert source_of(StreamFacts, json.loads(json.dumps(source_json(absent)))) == absent
    assert isinstance(source_of(StreamFacts, None), Absent)
