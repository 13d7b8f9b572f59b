"""`keyhop rekey`, as a person meets it: what it asks, does, tells, and what it loses: nothing."""

import json
import uuid
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from keyhop.cli.rekey_pair import PairCommand
from keyhop.dynamodb.client import Endpoint, connect
from keyhop.rekey.control import Control
from keyhop.rekey.pair import Pair
from keyhop.rekey.side.layout import TTL, TURNED
from keyhop.rekey.side.table import SideTable, table_request
from keyhop.rekey.standing import COPIED

from testing.databases import Database, Result, keyhop
from testing.rekey_tasks import at_once

REGION = "us-east-1"


@dataclass
class Pairs:
    """A pair of tables in a database, and `keyhop rekey` on it."""

    database: Database
    source: str = field(default_factory=lambda: f"old-{uuid.uuid4().hex[:12]}")
    destination: str = field(default_factory=lambda: f"new-{uuid.uuid4().hex[:12]}")

    def rekey(self, action: str, *arguments: Any, yes: bool = True) -> Result:
        told = [str(one) for one in arguments]
        numbers = [one for one in told[:1] if one[:1].isdigit()]
        asked = [] if not yes or action == "status" else ["--yes"]
        return keyhop(
            "rekey",
            action,
            self.source,
            *numbers,
            *("--to", self.destination, "--endpoint-url", self.database.url, "--region", REGION),
            *told[len(numbers) :],
            *asked,
        )

    def status(self) -> dict[str, Any]:
        told: dict[str, Any] = json.loads(self.rekey("status", "-f", "json").out)
        return told

    @property
    def side(self) -> SideTable:
        endpoint = Endpoint(url=self.database.url, region=REGION)
        return SideTable(connect(endpoint), f"{self.destination}.rekey")

    def begun(self, control: Control | None = None) -> "Pairs":
        """With a side table, and a source that is empty."""
        self.database.create(self.source)
        self.database.client.create_table(**table_request(f"{self.destination}.rekey"))
        side = self.side
        assert side.put_plan(Pair(self.source, self.destination, {"items": []}))
        assert side.swap(None, control or Control())
        return self


@pytest.fixture
def pairs(dynamodb_local_url: str) -> Iterator[Pairs]:
    database = Database("dynamodb_local", dynamodb_local_url)
    pair = Pairs(database)
    yield pair
    for name in (pair.source, pair.destination, f"{pair.destination}.rekey"):
        if name in database.tables():
            database.client.delete_table(TableName=name)


BY_DAY = """
items:
- match: {customer: "{customer}", order: "{order}"}
  set: {day: "{day}", order: "{customer}#{order}"}
"""


@pytest.fixture
def template(tmp_path: Path) -> Path:
    path = tmp_path / "by-day.yaml"
    path.write_text(BY_DAY)
    return path


def orders(pairs: Pairs, count: int = 30, **more: Any) -> list[dict[str, Any]]:
    """A table of orders by customer, and its items."""
    pairs.database.create(pairs.source, ("customer", "S"), ("order", "S"), **more)
    items = [
        {
            "customer": {"S": f"c{number % 7}"},
            "order": {"S": f"{number:04}"},
            "day": {"S": f"2026-11-{1 + number % 5:02}"},
        }
        for number in range(count)
    ]
    pairs.database.fill(pairs.source, items)
    return items


def test_create_makes_what_is_asked_for_and_asks_first(pairs: Pairs, template: Path) -> None:
    orders(pairs)
    asked = ("create", "--template", template, "--partition-key", "day")
    looked = pairs.rekey(*asked, "--dry-run")
    assert (looked.status, pairs.database.tables().count(pairs.destination)) == (0, 0)
    assert "capacity" in looked.out.decode()
    assert pairs.rekey(*asked, yes=False).status == 2
    assert pairs.destination not in pairs.database.tables()
    made = pairs.rekey(*asked)
    assert made.status == 0, made.err
    assert pairs.status()["phase"] == "created"
    described = pairs.database.client.describe_table(TableName=pairs.destination)["Table"]
    assert [one["AttributeName"] for one in described["KeySchema"]] == ["day", "order"]
    assert described["StreamSpecification"]["StreamViewType"] == "NEW_AND_OLD_IMAGES"
    assert pairs.rekey(*asked).status == 0, "again: nothing is left to do"


def test_without_a_re_key_the_status_says_how_to_begin(pairs: Pairs) -> None:
    pairs.database.create(pairs.source)
    result = pairs.rekey("status")
    assert result.status == 2
    assert "begin with keyhop rekey plan, then create" in result.err


def test_of_a_new_pair_the_status_says_what_comes_next(pairs: Pairs) -> None:
    pairs.begun()
    assert pairs.status()["phase"] == "creating"
    pairs.side.tell(COPIED, [])
    told = pairs.status()
    assert (told["phase"], told["serving"], told["next"]) == (
        "created",
        "source",
        "keyhop rekey start",
    )
    lines = pairs.rekey("status").lines
    assert lines[0] == f"{pairs.source} -> {pairs.destination}: created"
    assert "  verified     never" in lines


def test_another_source_is_refused(pairs: Pairs) -> None:
    pairs.begun()
    other = Pairs(pairs.database, destination=pairs.destination)
    other.database.create(other.source)
    result = other.rekey("status")
    other.database.client.delete_table(TableName=other.source)
    assert result.status == 2
    assert f"is being made of {pairs.source}, and not of {other.source}" in result.err


def test_nothing_is_changed_without_a_yes(pairs: Pairs) -> None:
    pairs.begun()
    for action, *more in (("throttle", 5), ("pause",), ("resume",), ("shadow", 5)):
        result = pairs.rekey(action, *more, yes=False)
        assert result.status == 2
        assert "There is no terminal to ask at" in result.err
    assert pairs.status()["figures"] == {}
    assert pairs.side.control() == Control()


def test_a_pause_keeps_the_rate(pairs: Pairs) -> None:
    pairs.begun()
    for action, expected in (
        (("throttle", 500), {"rate": 500.0, "paused": False}),
        (("pause",), {"rate": 500.0, "paused": True}),
        (("resume",), {"rate": 500.0, "paused": False}),
        (("throttle", 0), {"rate": None, "paused": True}),
        (("resume",), {"rate": None, "paused": False}),
    ):
        assert pairs.rekey(*action).status == 0
        assert pairs.status()["figures"]["throttle"] == expected


def test_a_real_difference_forbids_a_larger_share(pairs: Pairs) -> None:
    pairs.begun()
    assert pairs.rekey("shadow", 10).status == 0
    assert pairs.side.control() == Control(shadow=0.1, revision=1)
    pairs.side.report_client("r", {"revision": 1, "until": 0, "shadow_real": 1})
    refused = pairs.rekey("shadow", 50)
    assert (refused.status, "1 real difference:" in refused.err) == (2, True)
    assert pairs.status()["troubles"] == ["shadow reads have found real differences: verify"]
    assert pairs.rekey("shadow", 5).status == 0
    assert pairs.side.control().shadow == 0.05


def test_a_report_is_written_to_a_file(pairs: Pairs, tmp_path: Path) -> None:
    pairs.begun()
    assert pairs.rekey("status", "--report", tmp_path / "r.json", "--quiet").out == b""
    assert json.loads((tmp_path / "r.json").read_text())["phase"] == "creating"


def made(pairs: Pairs, template: Path, **more: Any) -> list[dict[str, Any]]:
    items = orders(pairs, **more)
    asked = ("create", "--template", template, "--partition-key", "day")
    assert pairs.rekey(*asked).status == 0
    return items


def items_of(pairs: Pairs, table: str) -> list[dict[str, Any]]:
    found = pairs.database.client.scan(TableName=table, ConsistentRead=True)["Items"]
    return in_order(found)


def in_order(items: list[dict[str, Any]]) -> list[dict[str, Any]]:
    return sorted(items, key=lambda item: json.dumps(item, sort_keys=True))


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


def test_cancel_leaves_all_as_it_was(pairs: Pairs, template: Path) -> None:
    items = made(pairs, template)
    before = pairs.database.client.describe_table(TableName=pairs.source)["Table"]
    assert before["StreamSpecification"]["StreamEnabled"]
    assert pairs.rekey("start").status == 0
    dry = pairs.rekey("cancel", "--dry-run")
    assert (dry.status, pairs.destination in dry.out.decode()) == (0, True)
    assert pairs.rekey("cancel", yes=False).status == 2
    assert pairs.destination in pairs.database.tables()
    assert pairs.rekey("cancel").status == 0
    assert not {pairs.destination, f"{pairs.destination}.rekey"} & {*pairs.database.tables()}
    assert items_of(pairs, pairs.source) == in_order(items)
    after = pairs.database.client.describe_table(TableName=pairs.source)["Table"]
    assert not after.get("StreamSpecification", {}).get("StreamEnabled")
    again = pairs.rekey("cancel")
    assert (again.status, "no re-key" in again.err) == (2, True)


def test_a_cancel_may_keep_the_new_table(pairs: Pairs, template: Path) -> None:
    made(pairs, template)
    assert pairs.rekey("start").status == 0
    assert pairs.rekey("cancel", "--keep-new").status == 0
    assert len(items_of(pairs, pairs.destination)) == 30
    assert f"{pairs.destination}.rekey" not in pairs.database.tables()


def test_complete_is_refused_before_a_cutover(pairs: Pairs, template: Path) -> None:
    made(pairs, template)
    for more in ((), ("--dry-run",)):
        refused = pairs.rekey("complete", *more)
        assert (refused.status, "The source serves" in refused.err) == (2, True)
    assert pairs.status()["phase"] == "created"


def test_the_old_table_is_deleted_only_by_its_name(pairs: Pairs, template: Path) -> None:
    made(pairs, template)
    for given, why in (((), "requires an argument"), ((pairs.destination,), "give that name")):
        refused = pairs.rekey("complete", "--delete-source", *given)
        assert (refused.status, why in refused.err) == (2, True)
    refused = pairs.rekey("complete", "--delete-source", pairs.source)
    assert (refused.status, "The source serves" in refused.err) == (2, True)


def test_a_cutover_that_a_state_machine_made_is_given_again_for_the_time_to_live(
    pairs: Pairs,
) -> None:
    expires = {"Enabled": True, "AttributeName": "expires"}
    pairs.begun(Control(serving="destination", replicating=True))
    pairs.database.create(pairs.destination)
    pairs.database.client.update_time_to_live(
        TableName=pairs.source, TimeToLiveSpecification=expires
    )
    pairs.side.tell(TTL, {"attribute": "expires"})
    pairs.side.tell(TURNED, {"at": 0.0, "serving": "destination"})
    result = pairs.rekey("cutover")
    assert (result.status, "serves already" in result.err) == (2, True)
    told = [
        pairs.database.client.describe_time_to_live(TableName=name)["TimeToLiveDescription"]
        for name in (pairs.source, pairs.destination)
    ]
    assert [one["TimeToLiveStatus"] for one in told] == ["DISABLED", "ENABLED"]


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("items: []", "The template has no items"),
        ("items: [", "is no template"),
        ("items:\n- set: {day: '{day}', order: '{order|nosuch}'}", "there is no filter 'nosuch'"),
        ("items:\n- set: {day: '{day}', order: '{order}'}", "keep"),
        ("items:\n- match: {customer: '{c}'}\n  set: {order: '{c}'}", "does not set 'day'"),
    ],
)
def test_a_wrong_template_is_told_in_a_sentence_and_nothing_is_made(
    pairs: Pairs, template: Path, text: str, says: str
) -> None:
    orders(pairs)
    template.write_text(text)
    for action in (("create", "--dry-run"), ("create",)):
        result = pairs.rekey(*action, "--template", template, "--partition-key", "day")
        assert (result.status, says in result.err) == (2, True), result.err
        assert result.err.count("\n") == 1
    assert pairs.destination not in pairs.database.tables()


@pytest.mark.parametrize("name", ["", "x y", "ab", "N" * 250, "arn:aws:dynamodb:r:1:table/New"])
def test_a_name_that_no_new_table_can_have_is_told_by_the_plan(
    pairs: Pairs, template: Path, name: str
) -> None:
    """Beside it the side table must find room for its name."""
    orders(pairs)
    pairs.destination = name
    for action in (("plan",), ("create", "--dry-run"), ("create",)):
        result = pairs.rekey(*action, "--template", template, "--partition-key", "day")
        assert (result.status, "3 to 249 of" in result.err) == (2, True), result.err


def test_a_table_is_not_planned_into_itself(pairs: Pairs, template: Path) -> None:
    orders(pairs)
    pairs.destination = pairs.source
    result = pairs.rekey("plan", "--template", template, "--partition-key", "day")
    assert (result.status, "another table" in result.err) == (2, True), result.err


def test_a_plan_says_that_the_new_table_is_not_free(pairs: Pairs, template: Path) -> None:
    planned = ("plan", "--template", template, "--partition-key", "day")
    made(pairs, template)
    assert pairs.rekey(*planned).status == 0, "the same again"
    template.write_text(BY_DAY.replace("{customer}#{order}", "{order}#{customer}"))
    another = pairs.rekey(*planned)
    assert (another.status, "holds another plan" in another.out.decode()) == (3, True)
    assert pairs.rekey("cancel", "--keep-new").status == 0
    there = pairs.rekey(*planned)
    assert (there.status, "exists" in there.out.decode()) == (3, True), there.out


def test_a_template_that_is_nested_too_deeply_is_told(pairs: Pairs, tmp_path: Path) -> None:
    orders(pairs)
    for name in ("deep.json", "deep.yaml"):
        (tmp_path / name).write_text("[" * 50_000 + "]" * 50_000)
        result = pairs.rekey("plan", "--template", tmp_path / name)
        assert (result.status, "is no template" in result.err) == (2, True), result.err


def test_a_template_that_is_not_there_is_told(pairs: Pairs, tmp_path: Path) -> None:
    orders(pairs)
    result = pairs.rekey("create", "--template", tmp_path / "none.yaml")
    assert (result.status, "cannot be read" in result.err) == (2, True)


def test_a_stream_with_another_view_is_told_with_the_way_to_change_it(
    pairs: Pairs, template: Path
) -> None:
    stream = {"StreamEnabled": True, "StreamViewType": "KEYS_ONLY"}
    orders(pairs, StreamSpecification=stream)
    for action in (("create", "--dry-run"), ("create",)):
        result = pairs.rekey(*action, "--template", template, "--partition-key", "day")
        assert (result.status, "is on with KEYS_ONLY" in result.err) == (2, True), result.err
        assert "turn it off and on again" in result.err
    assert pairs.destination not in pairs.database.tables()


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
    pairs: Pairs, template: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(PairCommand, "tasks", staticmethod(at_once))
    made(pairs, template)
    assert pairs.rekey("start").status == 0
    client = pairs.database.client
    new = {"customer": {"S": "late"}, "order": {"S": "1"}, "day": {"S": "2026-11-09"}}
    client.put_item(TableName=pairs.source, Item=new)
    looked = pairs.rekey("verify", "--no-repair", yes=False)
    assert looked.status == 3, looked.err
    assert len(items_of(pairs, pairs.destination)) == 30
    assert pairs.status()["figures"]["verify"]["missing"] == 1
    assert pairs.rekey("verify", yes=False).status == 2
    repaired = pairs.rekey("verify")
    assert repaired.status == 3, repaired.err
    assert len(items_of(pairs, pairs.destination)) == 31
    assert pairs.status()["phase"] == "verified", "as the gate has it: nothing is left"
    assert pairs.rekey("verify", "--no-repair").status == 0
    assert pairs.status()["phase"] == "verified"
    sample = pairs.rekey("verify", "--sample", "0.5", "--no-repair")
    assert sample.status == 0, sample.err
    assert pairs.status()["phase"] == "copied", "a sample opens no gate"


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
        assert "the stream is on with KEYS_ONLY" in text


def test_a_cutover_looks_at_its_gates_and_is_refused_at_a_shut_one(
    pairs: Pairs, template: Path
) -> None:
    made(pairs, template)
    assert pairs.rekey("start").status == 0
    before = pairs.side.control()
    for more, yes in ((("--dry-run",), False), ((), True)):
        result = pairs.rekey("cutover", *more, yes=yes)
        assert result.status == 3, result.err
        text = result.out.decode()
        assert "SHUT  verified" in text
        assert "do: keyhop rekey verify" in text
        assert "open  claims" in text
    assert pairs.side.control() == before
    told = json.loads(pairs.rekey("cutover", "--dry-run", "-f", "json").out)
    assert {gate["name"]: gate["open"] for gate in told["gates"]}["claims"] is True


def test_a_cutover_is_refused_where_nobody_is_known_to_follow(
    pairs: Pairs, template: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(PairCommand, "tasks", staticmethod(at_once))
    made(pairs, template)
    for action in ("start", "verify"):
        assert pairs.rekey(action).status == 0
    result = pairs.rekey("cutover")
    assert result.status == 3
    shut = [line.split()[1] for line in result.lines if line.startswith("  SHUT")]
    assert shut == ["streams"]
    assert pairs.side.control().stage == "open"


def test_a_table_that_the_deployment_shards_is_refused_by_name(
    pairs: Pairs, template: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    made(pairs, template)
    monkeypatch.setattr(PairCommand, "deployed", SimpleNamespace(name="Mine"))
    metadata = f"Mine-shards-{pairs.source}"
    pairs.database.create(metadata)
    result = pairs.rekey("start")
    pairs.database.client.delete_table(TableName=metadata)
    assert (result.status, f"{pairs.source!r} is sharded" in result.err) == (2, True)
    assert not pairs.side.control().replicating, "nothing was begun"


def test_there_is_nothing_to_roll_back_before_a_cutover(pairs: Pairs, template: Path) -> None:
    made(pairs, template)
    result = pairs.rekey("rollback")
    assert (result.status, "The source serves already" in result.err) == (2, True)


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


def test_functions_run_if_their_file_is_given_and_the_same(pairs: Pairs, template: Path) -> None:
    template.write_text(OF_FUNCTIONS)
    code = template.with_name("by_day.py")
    code.write_text(FUNCTIONS)
    items = made(pairs, template)
    other = template.with_name("other.py")
    other.write_text(f"{FUNCTIONS}# changed")
    for more in ((), ("--functions", other)):
        refused = pairs.rekey("start", *more)
        assert (refused.status, "are not those that are at hand" in refused.err) == (2, True)
    assert items_of(pairs, pairs.destination) == []
    assert pairs.rekey("start", "--functions", code).status == 0
    assert len(items_of(pairs, pairs.destination)) == len(items)
