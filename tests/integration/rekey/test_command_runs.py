"""`keyhop rekey` as a person meets it: plan, start and verify."""

import json
from pathlib import Path
from typing import Any

import pytest
from keyhop import Rekey
from keyhop.errors import Stopped

from tests.integration.rekey.pairs import REGION, Pairs, in_order, items_of, made, orders

pytestmark = pytest.mark.usefixtures("nothing_waits")

FUNCTIONS = """
def forward(item):
    return {"day": item["day"], "order": {"S": item["customer"]["S"] + "#" + item["order"]["S"]}}


def backward(item):
    customer, _, order = item["order"]["S"].partition("#")
    return {"day": item["day"], "customer": {"S": customer}, "order": {"S": order}}
"""

OF_FUNCTIONS = """
transform: by_day.py:forward
inverse: by_day.py:backward
keep: {customer: wasCustomer, order: wasOrder}
reads: [day]
"""


def test_a_copy_from_here_puts_every_item_and_says_that_nobody_follows(
    pairs: Pairs, template: Path
) -> None:
    items = made(pairs, template)
    dry = pairs.rekey("start", "--dry-run")
    assert (dry.status, "RRU" in dry.out.decode()) == (0, True)
    assert pairs.rekey("start", yes=False).status == 2
    assert items_of(pairs, pairs.destination) == []
    result = pairs.rekey("start")
    assert result.status == 0, result.err
    assert "No function follows" in result.err
    expected = [
        {**one, "order": {"S": f"{one['customer']['S']}#{one['order']['S']}"}} for one in items
    ]
    for one in expected:
        del one["customer"]
    assert items_of(pairs, pairs.destination) == in_order(expected)
    assert pairs.status()["phase"] == "copied"


def test_of_two_items_that_collide_none_is_lost(pairs: Pairs, template: Path) -> None:
    """One has the place; the other is a claim, which stands in the way of the cutover."""
    template.write_text(
        "items:\n- set: {day: '{day}', order: '{order}'}\n  keep: {customer: oldCustomer}\n"
    )
    items = made(pairs, template)
    both = {"customer": {"S": "other"}, "order": items[0]["order"], "day": items[0]["day"]}
    pairs.database.client.put_item(TableName=pairs.source, Item=both)
    result = pairs.rekey("start")
    assert result.status == 0
    assert "claimed              1" in result.out.decode()
    told = pairs.status()
    assert told["claims"] == 1
    assert "collide" in told["troubles"][0]
    owners = {"other", items[0]["customer"]["S"]}
    assert not any(one in pairs.rekey("status").out.decode() for one in ('"other"', "wants {"))
    shown = pairs.rekey("status", "--show-keys", "full").out.decode()
    assert any(f'"S":"{one}"' in shown.replace(" ", "") for one in owners)
    assert len(items_of(pairs, pairs.source)) == len(items) + 1
    assert len(items_of(pairs, pairs.destination)) == len(items)


def test_an_item_that_cannot_be_mapped_is_counted_and_stays(pairs: Pairs, template: Path) -> None:
    items = made(pairs, template)
    without = {"customer": {"S": "secret-name"}, "order": {"S": "9"}}
    pairs.database.client.put_item(TableName=pairs.source, Item=without)
    result = pairs.rekey("start")
    assert result.status == 0
    told = pairs.status()
    assert told["unmappable"] == 1
    assert "cannot be mapped" in told["troubles"][0]
    text = result.out.decode() + pairs.rekey("status").out.decode()
    assert "day" in text
    assert "secret-name" not in text, "values of items are in no message"
    assert len(items_of(pairs, pairs.destination)) == len(items)
    assert without in items_of(pairs, pairs.source)


def test_verify_finds_what_was_written_meanwhile_and_repairs_it_after_a_yes(
    pairs: Pairs, template: Path
) -> None:
    made(pairs, template)
    assert pairs.rekey("start").status == 0
    client = pairs.database.client
    new = {"customer": {"S": "late"}, "order": {"S": "1"}, "day": {"S": "2026-11-09"}}
    client.put_item(TableName=pairs.source, Item=new)
    looked = pairs.rekey("verify", "--no-repair", yes=False)
    assert looked.status == 3, looked.err
    assert len(items_of(pairs, pairs.destination)) == 30
    assert pairs.status()["figures"]["verify"]["missing"] == 1
    planned = pairs.rekey("verify", "--dry-run", yes=False)
    assert planned.status == 0, planned.err
    facts = planned.out.decode()
    assert "about 31, by DynamoDB's count" in facts
    assert "about 2.5 WRU for each item up to 1 KB that differs" in facts
    assert len(items_of(pairs, pairs.destination)) == 30
    assert pairs.rekey("verify", yes=False).status == 2
    repaired = pairs.rekey("verify")
    assert repaired.status == 3, repaired.err
    assert len(items_of(pairs, pairs.destination)) == 31
    assert pairs.status()["phase"] == "verified", "as the gate has it: nothing is left"
    assert pairs.rekey("verify", "--no-repair").status == 0
    assert pairs.status()["phase"] == "verified"
    sample = pairs.rekey("verify", "--share", "0.5", "--no-repair")
    assert sample.status == 0, sample.err
    assert pairs.status()["phase"] == "copied", "a sample opens no gate"


@pytest.mark.parametrize(
    "rule",
    [
        "- set: {tenant: '{owner}', id: '{number|str}'}",
        "- set: {tenant: '{owner}', id: '{number|mod:7}#{more}'}\n  keep: {number: wasNumber}",
    ],
    ids=["bijective", "recoverable"],
)
def test_verify_repairs_whatever_the_keys_names_and_types_are(
    pairs: Pairs, template: Path, rule: str
) -> None:
    """The partition key's name comes after the sort key's, and of a number 1E+1 is a form."""
    template.write_text(f"items:\n{rule}\n")
    client, new = pairs.database.client, pairs.destination
    pairs.database.create(pairs.source, ("number", "N"), None)
    for number in range(0, 60, 10):
        item = {"number": {"N": str(number)}, "owner": {"S": "o"}, "more": {"S": "m"}}
        client.put_item(TableName=pairs.source, Item=item)
    keys = ("--partition-key", "tenant:S", "--sort-key", "id:S")
    assert pairs.rekey("create", "--template", template, *keys).status == 0
    assert pairs.rekey("start").status == 0
    copied = items_of(pairs, new)
    for number, item in enumerate(copied[:4]):
        if number < 2:
            place = {name: item[name] for name in ("tenant", "id")}
            client.delete_item(TableName=new, Key=place)
        else:
            client.put_item(TableName=new, Item={**item, "more": {"S": "changed"}})
    told = json.loads(pairs.rekey("verify", "-f", "json").out)["verify"]
    assert items_of(pairs, new) == copied
    names = ("missing", "changed", "contended", "surplus", "repaired", "left")
    assert [told[name] for name in names] == [2, 2, 0, 0, 4, 0]


def test_plan_asks_whether_an_index_would_do_and_shows_ten_items(
    pairs: Pairs, template: Path
) -> None:
    orders(pairs)
    asked = ("plan", "--template", template, "--partition-key", "day")
    result = pairs.rekey(*asked, "--show-keys", "full")
    assert result.status == 0, result.err
    assert result.lines[0].startswith("Would a global index do?")
    shown = [line for line in result.lines if line.startswith("    -> day=2026-11-")]
    assert len(shown) == 10
    hidden = pairs.rekey(*asked).out.decode()
    assert "2026-11-" not in hidden
    told = json.loads(pairs.rekey(*asked, "-f", "json").out)
    assert (told["class"], told["collisions"]["how"], told["blocks"]) == ("bijective", "none", [])
    assert pairs.destination not in pairs.database.tables()


def test_plan_names_what_stands_in_the_way(pairs: Pairs, template: Path) -> None:
    orders(pairs, StreamSpecification={"StreamEnabled": True, "StreamViewType": "KEYS_ONLY"})
    item = {"customer": {"S": "c"}, "order": {"S": "none"}}
    pairs.database.client.put_item(TableName=pairs.source, Item=item)
    for more in ((), ("--full",)):
        result = pairs.rekey("plan", "--template", template, "--partition-key", "day", *more)
        assert result.status == 3, result.err
        text = result.out.decode()
        assert "1 item cannot be mapped" in text
        assert "is on with KEYS_ONLY" in text


def test_a_table_that_the_deployment_shards_is_refused_by_name(
    pairs: Pairs, template: Path
) -> None:
    made(pairs, template)
    metadata = f"Mine-shards-{pairs.source}"
    pairs.database.create(metadata)
    result = pairs.rekey("start", "--stack", "Mine")
    pairs.database.client.delete_table(TableName=metadata)
    assert (result.status, f"{pairs.source!r} is sharded" in result.err) == (2, True)
    assert not pairs.side.control().replicating, "nothing was begun"


def test_functions_run_if_their_file_is_given_and_the_same(pairs: Pairs, template: Path) -> None:
    template.write_text(OF_FUNCTIONS)
    code = template.with_name("by_day.py")
    code.write_text(FUNCTIONS)
    items = made(pairs, template)
    other = template.with_name("other.py")
    other.write_text(f"{FUNCTIONS}# changed")
    for more in ((), ("--functions", other)):
        refused = pairs.rekey("start", *more)
        assert (refused.status, "are not those of this deployment" in refused.err) == (2, True)
    assert items_of(pairs, pairs.destination) == []
    assert pairs.rekey("start", "--functions", code).status == 0
    assert len(items_of(pairs, pairs.destination)) == len(items)


def test_a_copy_and_a_comparison_are_not_begun_if_they_cost_more_for_sure(
    pairs: Pairs, template: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    items = made(pairs, template)
    monkeypatch.setenv("KEYHOP_PRICES", '{"reads": 1000000, "writes": 1000000}')
    refused = pairs.rekey("start", "--max-cost", "0.01")
    assert (refused.status, refused.out) == (4, b"")
    assert "This costs at least $" in refused.err
    assert items_of(pairs, pairs.destination) == []
    assert pairs.rekey("start", "--max-cost", "1000000").status == 0
    assert len(items_of(pairs, pairs.destination)) == len(items)
    for more in ((), ("--no-repair",)):
        refused = pairs.rekey("verify", "--max-cost", "0.01", *more)
        assert (refused.status, "so nothing was started." in refused.err) == (4, True)
    assert pairs.rekey("verify", "--max-cost", "1000000").status == 0


def test_a_comparison_ends_when_its_dollars_are_spent(
    pairs: Pairs, template: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    made(pairs, template)
    assert pairs.rekey("start").status == 0
    monkeypatch.setenv("KEYHOP_PRICES", '{"reads": 1000000, "writes": 1000000}')
    expected = json.loads(pairs.rekey("verify", "--dry-run", "-f", "json").out)["dollars"]
    spent = pairs.rekey("verify", "-o", tmp_path / "run", "--max-cost", expected + 0.01)
    assert (spent.status, spent.out) == (4, b"")
    assert "is spent, and the maximum is $" in spent.err
    assert pairs.rekey("verify", "--resume", tmp_path / "run").status == 0


def test_a_comparison_that_only_looks_asks_if_it_costs_more_than_a_little(
    pairs: Pairs, template: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    made(pairs, template)
    assert pairs.rekey("start").status == 0
    assert pairs.rekey("verify", "--no-repair", yes=False).status == 0
    monkeypatch.setattr("keyhop.cli.rekey_actions.ASK_ABOVE", 0.0)
    asked = pairs.rekey("verify", "--no-repair", yes=False)
    assert asked.status == 2
    assert f"compare {pairs.source} and {pairs.destination}, but there is no terminal" in asked.err
    assert pairs.rekey("verify", "--no-repair").status == 0


def test_an_interrupted_run_in_a_directory_goes_on_with_resume(
    pairs: Pairs, monkeypatch: pytest.MonkeyPatch
) -> None:
    def interrupted(*_given: Any, **_more: Any) -> None:
        raise Stopped

    orders(pairs, 1)
    monkeypatch.setattr(Rekey, "start", interrupted)
    words = (
        "start",
        pairs.source,
        "--to",
        pairs.destination,
        "--region",
        REGION,
        "--resume",
        "run",
    )
    told = pairs.rekey("start", "-o", "run").err
    assert told.startswith("keyhop: Interrupted. To go on: keyhop rekey ")
    assert all(word in told.split() for word in words)
    assert "-o" not in told.split()
    again = "keyhop: Interrupted. Start the same command again: it goes on."
    assert pairs.rekey("start").err.strip() == again
    assert pairs.rekey("start", "--resume", "run").err.strip() == again
