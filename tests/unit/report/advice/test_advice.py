"""Tests of the advice of findings: shards, buckets, indexes, costs, and existing commands."""

import json
import re
import shlex
from typing import Any

import click
import pytest
from keyhop.cli.main import command as keyhop
from keyhop.dynamodb.schema import KeyAttribute, KeySpace
from keyhop.dynamodb.units import Prices
from keyhop.rekey.template.load import load
from keyhop.report.advice import (
    PATTERNS,
    bucket,
    bucket_steps,
    money,
    naming,
    of_index,
    of_table,
    peak_of,
    sharding_command,
    shards_for,
    stays_small,
    with_local,
    with_new_key,
    writing,
)
from keyhop.report.facts import HotKey, KeyTraffic, RequestShape, Tag, Throttles
from keyhop.report.rules.judge import judge

from tests.unit.report.rules.world import GB, NOW, facts, finding_of, gsi, lsi, sampled, share


@pytest.mark.parametrize(
    ("peak", "minimum", "roomy"),
    [(1.0, 1, 1), (500.0, 1, 1), (501.0, 1, 2), (1000.0, 1, 2), (1001.0, 2, 3), (5000.0, 5, 10)],
)
def test_shards(peak: float, minimum: int, roomy: int) -> None:
    shards = shards_for(peak)
    assert (shards.minimum, shards.roomy) == (minimum, roomy)


def test_transactions_need_twice_as_many_shards() -> None:
    assert shards_for(2500.0, transactional=True).minimum == 5


def test_the_peak_of_a_key_includes_its_throttled_writes() -> None:
    traffic = (KeyTraffic("k", 9, 9, 9.0, 800.0), KeyTraffic("c", 9, 9, 99.0, 10.0))
    assert peak_of(facts(stream={"traffic": traffic})) == 800.0
    throttled = {"throttled": {"": (HotKey("k", 18_000.0, 1.0),)}}
    assert peak_of(facts(stream={"traffic": traffic}, insights=throttled)) == 1_100.0
    accessed = {"accessed": {"": (HotKey("k", 180_000.0, 1.0),)}}
    assert peak_of(facts(insights=accessed)) == 1_000.0
    assert peak_of(facts()) is None


@pytest.mark.parametrize(
    ("daily", "has_lsi", "unit"),
    [
        (1e6, True, "year"),
        (1e8, True, "month"),
        (4e9, True, "day"),
        (6e9, True, "hour"),
        (6e9, False, "year"),
        (1e12, True, "hour"),
    ],
)
def test_buckets(daily: float, has_lsi: bool, unit: str) -> None:
    assert bucket(daily, has_lsi) == unit


def test_buckets_do_not_spread_a_rate() -> None:
    assert not any("shards" in step for step in bucket_steps("day", 1_000.0))
    assert any("2 shards" in step for step in bucket_steps("day", 1_001.0))


def test_an_lsi_stays_only_if_it_stays_small() -> None:
    table = {"bytes": 2 * GB, "items": 2_000_000, "indexes": (lsi(bytes=1 * GB),)}
    assert with_local(facts(table)) == 1.5
    assert not stays_small(facts(table))
    assert stays_small(facts(table, stream={"growth": {"k": 100.0}}))
    assert not stays_small(facts(table, stream={"growth": {"k": 10_000.0}}))


def test_costs_have_the_date_and_the_region_of_their_prices() -> None:
    assert money(facts(), 2.0, 1.0).priced == "on demand, us-east-1, 2026-08"
    other_region = money(facts({"region": "eu-west-1"}), 2.0, 1.0)
    assert "as those of eu-west-1 are not known here" in other_region.priced
    custom = money(facts(prices=Prices(1e-6, 2e-6, "at your own prices")), 2.0, 1.0)
    assert custom.priced == "on demand, at your own prices"
    assert money(facts({"table_class": "STANDARD_INFREQUENT_ACCESS"}), 2.0, 1.0) is None


def test_the_monthly_cost_of_a_table() -> None:
    """The table has 1 GB, and a million reads and a million writes in 14 days."""
    metrics = {"consumed": {("read", ""): 1e6, ("write", ""): 1e6}}
    month = 730 / (14 * 24)
    assert of_table(facts(metrics=metrics)) == pytest.approx(0.25 + month * 0.75)
    assert of_table(facts()) is None
    provisioned = of_table(facts({"throughput": (10, 10)}))
    assert provisioned == pytest.approx(0.25 + 7300 * (0.00013 + 0.00065))
    assert writing(facts({"throughput": (10, 10)}), 3600.0, 3600.0) == pytest.approx(730 * 0.00065)


def test_an_index_costs_its_provisioned_units_whether_used_or_not() -> None:
    """A user's prices of units on demand do not apply."""
    index = gsi("one", bytes=10**9, throughput=(10, 20))
    prices = Prices(1.0, 1.0, "at your own prices")
    metrics = {"consumed": {("write", "one"): 1e9}}
    table = {"throughput": (10, 10), "indexes": (index,)}
    provisioned = facts(table, metrics=metrics, prices=prices)
    assert of_index(provisioned, "one") == pytest.approx(0.25 + 7300 * 0.00013 + 14600 * 0.00065)
    cost = money(provisioned, 1.0, 1.0)
    assert cost is not None
    assert cost.priced == "provisioned, us-east-1, 2026-08"


def test_another_key_costs_one_read_and_one_write_of_the_whole_table() -> None:
    """A table with 1 GB in items of 1,000 bytes takes 122,070 read and a million write units."""
    cost = with_new_key(facts(metrics={}), ("P1",), "Do.").cost
    assert cost.today == cost.advised == 0.25
    assert cost.one_off == pytest.approx(0.625 + 122_070 * 0.125e-6, rel=1e-3)


def test_another_key_is_a_re_key_of_the_table() -> None:
    steps = with_new_key(facts({"name": "Orders.v2"}), ("P1",), "Do.").steps
    (command,) = re.findall(r"keyhop rekey .* FILE", "\n".join(steps))
    assert command == "keyhop rekey plan Orders.v2 --to NEW --template FILE"
    parse(command)


SOURCES_OF_FINDINGS: list[dict[str, Any]] = [
    {"stream": {"traffic": (KeyTraffic("k", 9, 9, 9e4, 4_800.0),), "inserts": 9}},
    {"stream": {"counter": share(0.9)}},
    {"stream": {"traffic": (KeyTraffic("k", 999, 999, 9e4, 900.0, 998),), "inserts": 999}},
    {"sample": {"dated": share(1.0), "unpadded": share(1.0), "orphans": share(1.0)}},
    {"sample": {"numbered": share(1.0), "density": share(0.9), "unseen": share(0.5)}},
    {
        "sample": {
            "typed": share(0.0),
            "tags": (Tag("ORDER", share(0.5), "ORDER#"), Tag("USER", share(0.4))),
        }
    },
    {"sample": {"largest_item": 399 * 1024, "indexes": sampled("by-status", top_share=share(0.9))}},
    {"metrics": {"throttles": {("write", "key range", "by-status"): Throttles(50, NOW - 60)}}},
    {"requests": {"shapes": (RequestShape("Query", "", ("pk",), ("a",), 500, 1, 9, 9.0, 500),)}},
]


@pytest.mark.parametrize("sources", SOURCES_OF_FINDINGS)
@pytest.mark.parametrize("sort", [None, "sk"])
def test_advice_names_existing_patterns_and_commands(
    sources: dict[str, Any], sort: str | None
) -> None:
    findings = judge(facts({"indexes": (gsi(), lsi()), "sort": sort}, **sources))
    advice_of_findings = [finding.advice for finding in findings if finding.advice is not None]
    assert advice_of_findings
    for advice in advice_of_findings:
        assert set(advice.patterns) <= set(PATTERNS)
        assert all(
            step[0].isupper() and step.endswith((".", '#status = :pending".'))
            for step in advice.steps
        )
        if advice.command:
            parse(advice.command.splitlines()[-1])


def parse(text: str) -> None:
    """Parse a command line. Raise a UsageError if it is not valid."""
    _, *words = shlex.split(text)
    command: click.Command = keyhop
    while isinstance(command, click.Group):
        command = command.commands[words.pop(0)]
    command.make_context(text, words, help_option_names=["-h", "--help"])


def test_advised_commands_are_valid() -> None:
    command = sharding_command("Orders", shards_for(4_800))
    assert command.startswith("keyhop shards add Orders KEY --count 9")
    parse(command)
    parse(naming("Orders", "Type", Tag("USER", share(0.6), "USER#")))


@pytest.mark.parametrize(
    ("fields", "shards"),
    [
        ({}, 8),
        ({"types": {"pk": "S", "sk": "N"}}, 8),
        ({"types": {"pk": "N", "sk": "S"}}, 0),
        ({"sort": None}, 0),
        ({"partition": "it's"}, 0),
    ],
)
def test_the_template_of_an_advised_key_spreads_items_over_the_shards(
    fields: dict[str, Any], shards: int
) -> None:
    """Eight shards for each of five keys give 40 keys, enough to use the quota of a table."""
    few_keys = facts({**fields, "items": 5_000_000}, sample={"keys": share(5)})
    advice = finding_of("A19", few_keys).advice
    assert advice is not None
    if not shards:
        assert advice.command == ""
        return
    writes, plans = advice.command.splitlines()
    _, template, _, file = shlex.split(writes)
    assert plans == f"keyhop rekey plan Orders --to Orders-sharded --template {file}"
    keys = KeySpace((KeyAttribute("pk", "S"),), KeyAttribute("sk", few_keys.table.types["sk"]))
    transform = load(json.loads(template), keys, keys)
    items = [{"pk": {"S": "a"}, "sk": {keys.sort.type: f"{number}"}} for number in range(99)]
    rekeyed = [transform.forward(item) for item in items]
    assert {item["pk"]["S"] for item in rekeyed} == {f"a#{shard}" for shard in range(shards)}
    assert [transform.back(item) for item in rekeyed] == items


def test_keyhop_each_names_the_kind_in_a_table_without_a_sort_key() -> None:
    tags = (Tag("USER", share(0.6), "USER#"), Tag("ORDER", share(0.4), "ORDER#"))
    untyped = facts({"sort": None}, sample={"typed": share(0.0), "tags": tags})
    command = finding_of("A18", untyped).advice.command  # type: ignore[union-attr]
    assert "matches(^USER#" in command
