"""The commands `keyhop rekey plan`, `start` and `verify`."""

import json
from pathlib import Path
from typing import Any

import pytest
from keyhop import Rekey
from keyhop.errors import Stopped

from tests.integration.rekey.pairs import REGION, Pairs, create_rekey, in_order, items_of, orders

pytestmark = pytest.mark.usefixtures("nothing_waits")

FUNCTIONS = """
def forward(item):
    return {"day": item["day"], "order": {"S": item["customer"]["S"] + "#" + item["order"]["S"]}}


def backward(item):
    customer, _, order = item["order"]["S"].partition("#")
    return {"day": item["day"], "customer": {"S": customer}, "order": {"S": order}}
"""

FUNCTIONS_TEMPLATE = """
transform: by_day.py:forward
inverse: by_day.py:backward
keep: {customer: wasCustomer, order: wasOrder}
reads: [day]
"""


def test_a_local_copy_puts_every_item_and_says_that_no_function_follows(
    pairs: Pairs, template: Path
) -> None:
    items = create_rekey(pairs, template)
    dry = pairs.rekey("start", "--dry-run")
    assert (dry.status, "RRU" in dry.out.decode()) == (0, True)
    assert pairs.rekey("start", yes=False).status == 2
    assert items_of(pairs, pairs.destination) == []
    result = pairs.rekey("start")
    assert result.status == 0, result.err
    assert "No function follows" in result.err
    expected = [
        {"day": item["day"], "order": {"S": f"{item['customer']['S']}#{item['order']['S']}"}}
        for item in items
    ]
    assert items_of(pairs, pairs.destination) == in_order(expected)
    assert pairs.status()["phase"] == "copied"


def test_no_item_of_a_collision_is_lost(pairs: Pairs, template: Path) -> None:
    """One item has the place; the other one is a claim, which prevents the cutover."""
    template.write_text(
        "items:\n- set: {day: '{day}', order: '{order}'}\n  keep: {customer: oldCustomer}\n"
    )
    items = create_rekey(pairs, template)
    contender = {"customer": {"S": "other"}, "order": items[0]["order"], "day": items[0]["day"]}
    pairs.database.client.put_item(TableName=pairs.source, Item=contender)
    result = pairs.rekey("start")
    assert result.status == 0
    assert "claimed              1" in result.out.decode()
    status = pairs.status()
    assert status["claims"] == 1
    assert "collide" in status["troubles"][0]
    owners = {"other", items[0]["customer"]["S"]}
    assert not any(text in pairs.rekey("status").out.decode() for text in ('"other"', "wants {"))
    text = pairs.rekey("status", "--show-keys", "full").out.decode()
    assert any(f'"S":"{owner}"' in text.replace(" ", "") for owner in owners)
    assert len(items_of(pairs, pairs.source)) == len(items) + 1
    assert len(items_of(pairs, pairs.destination)) == len(items)


def test_an_item_that_cannot_be_mapped_is_counted_and_stays(pairs: Pairs, template: Path) -> None:
    items = create_rekey(pairs, template)
    without = {"customer": {"S": "secret-name"}, "order": {"S": "9"}}
    pairs.database.client.put_item(TableName=pairs.source, Item=without)
    result = pairs.rekey("start")
    assert result.status == 0
    status = pairs.status()
    assert status["unmappable"] == 1
    assert "cannot be mapped" in status["troubles"][0]
    text = result.out.decode() + pairs.rekey("status").out.decode()
    assert "day" in text
    assert "secret-name" not in text, "values of items are in no message"
    assert len(items_of(pairs, pairs.destination)) == len(items)
    assert without in items_of(pairs, pairs.source)


def test_verify_finds_an_item_that_was_written_since_the_copy_and_repairs_it_after_a_yes(
    pairs: Pairs, template: Path
) -> None:
    create_rekey(pairs, template)
    assert pairs.rekey("start").status == 0
    client = pairs.database.client
    new = {"customer": {"S": "late"}, "order": {"S": "1"}, "day": {"S": "2026-11-09"}}
    client.put_item(TableName=pairs.source, Item=new)
    comparison = pairs.rekey("verify", "--no-repair", yes=False)
    assert comparison.status == 3, comparison.err
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
    assert pairs.status()["phase"] == "verified", "as for the gate, no difference remains"
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
def test_verify_repairs_items_whatever_the_names_and_types_of_their_keys(
    pairs: Pairs, template: Path, rule: str
) -> None:
    """The partition key's name sorts after the sort key's, and 1E+1 is a form of a number."""
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
    report = json.loads(pairs.rekey("verify", "-f", "json").out)["verify"]
    assert items_of(pairs, new) == copied
    names = ("missing", "changed", "contended", "surplus", "repaired", "left")
    assert [report[name] for name in names] == [2, 2, 0, 0, 4, 0]


def test_plan_asks_whether_an_index_would_do_and_shows_ten_items(
    pairs: Pairs, template: Path
) -> None:
    orders(pairs)
    plan = ("plan", "--template", template, "--partition-key", "day")
    result = pairs.rekey(*plan, "--show-keys", "full")
    assert result.status == 0, result.err
    assert result.lines[0].startswith("Would a global index do?")
    assert sum(line.startswith("    -> day=2026-11-") for line in result.lines) == 10
    assert "2026-11-" not in pairs.rekey(*plan).out.decode()
    report = json.loads(pairs.rekey(*plan, "-f", "json").out)
    assert (report["class"], report["blocks"]) == ("bijective", [])
    assert report["collisions"]["how"] == "none"
    assert pairs.destination not in pairs.database.tables()


def test_plan_names_the_obstacles(pairs: Pairs, template: Path) -> None:
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
    create_rekey(pairs, template)
    metadata = f"Mine-shards-{pairs.source}"
    pairs.database.create(metadata)
    result = pairs.rekey("start", "--stack", "Mine")
    pairs.database.client.delete_table(TableName=metadata)
    assert (result.status, f"{pairs.source!r} is sharded" in result.err) == (2, True)
    assert not pairs.side.control().replicating, "nothing was started"


def test_functions_run_only_if_their_unchanged_file_is_passed(pairs: Pairs, template: Path) -> None:
    template.write_text(FUNCTIONS_TEMPLATE)
    code = template.with_name("by_day.py")
    code.write_text(FUNCTIONS)
    items = create_rekey(pairs, template)
    changed_code = template.with_name("other.py")
    changed_code.write_text(f"{FUNCTIONS}# changed")
    for more in ((), ("--functions", changed_code)):
        refused = pairs.rekey("start", *more)
        assert (refused.status, "are not those of this deployment" in refused.err) == (2, True)
    assert items_of(pairs, pairs.destination) == []
    assert pairs.rekey("start", "--functions", code).status == 0
    assert len(items_of(pairs, pairs.destination)) == len(items)


def test_a_copy_and_a_comparison_that_cost_too_much_are_not_started(
    pairs: Pairs, template: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    items = create_rekey(pairs, template)
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
    create_rekey(pairs, template)
    assert pairs.rekey("start").status == 0
    monkeypatch.setenv("KEYHOP_PRICES", '{"reads": 1000000, "writes": 1000000}')
    expected = json.loads(pairs.rekey("verify", "--dry-run", "-f", "json").out)["dollars"]
    spent = pairs.rekey("verify", "-o", tmp_path / "run", "--max-cost", expected + 0.01)
    assert (spent.status, spent.out) == (4, b"")
    assert "is spent, and the maximum is $" in spent.err
    assert pairs.rekey("verify", "--resume", tmp_path / "run").status == 0


def test_a_comparison_without_repair_asks_if_it_is_not_cheap(
    pairs: Pairs, template: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    create_rekey(pairs, template)
    assert pairs.rekey("start").status == 0
    assert pairs.rekey("verify", "--no-repair", yes=False).status == 0
    monkeypatch.setattr("keyhop.cli.rekey_actions.ASK_ABOVE", 0.0)
    question = pairs.rekey("verify", "--no-repair", yes=False)
    assert question.status == 2
    assert (
        f"compare {pairs.source} and {pairs.destination}, but there is no terminal" in question.err
    )
    assert pairs.rekey("verify", "--no-repair").status == 0


def test_an_interrupted_run_in_a_directory_continues_with_resume(
    pairs: Pairs, monkeypatch: pytest.MonkeyPatch
) -> None:
    def interrupted(*_: Any, **__: Any) -> None:
        raise Stopped

    orders(pairs, 1)
    monkeypatch.setattr(Rekey, "start", interrupted)
    message = pairs.rekey("start", "-o", "run").err
    assert message.startswith("keyhop: Interrupted. To go on: keyhop rekey ")
    words = {"start", pairs.source, "--to", pairs.destination, "--region", REGION}
    assert {*words, "--resume", "run"} <= {*message.split()}
    assert "-o" not in message.split()
    repeat = "keyhop: Interrupted. Start the same command again: it goes on."
    assert pairs.rekey("start").err.strip() == repeat
    assert pairs.rekey("start", "--resume", "run").err.strip() == repeat
