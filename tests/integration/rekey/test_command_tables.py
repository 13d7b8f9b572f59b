"""`keyhop rekey` as a person meets it: create, complete and cancel."""

import json
import time
from collections.abc import Sequence
from pathlib import Path

import pytest

from tests.integration.rekey.pairs import BY_DAY, Pairs, in_order, items_of, made, orders


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


def test_a_cancel_names_the_routers_of_the_last_day(pairs: Pairs, template: Path) -> None:
    """One that was idle for a minute is not alive, but its next write would fail."""
    made(pairs, template)
    now = time.time()
    reports = {"old-1": 25 * 3600, "idle-2": 2 * 3600, "alive-3": 5}
    for name, age in reports.items():
        pairs.side.report_client(name, {"revision": 1, "until": now - age + 60})
    told = json.loads(pairs.rekey("cancel", "--dry-run", "--format", "json").out)["routers"]
    alive, idle = told.index("alive-3 ("), told.index("idle-2 (2.0 h ago)")
    assert alive < idle
    assert "old-1" not in told


def test_a_cancel_may_keep_the_new_table(pairs: Pairs, template: Path) -> None:
    made(pairs, template)
    assert pairs.rekey("start").status == 0
    assert pairs.rekey("cancel", "--keep-new").status == 0
    assert len(items_of(pairs, pairs.destination)) == 30
    assert f"{pairs.destination}.rekey" not in pairs.database.tables()


def test_the_status_names_a_table_that_was_deleted_and_a_stream_that_is_off(
    pairs: Pairs, template: Path
) -> None:
    made(pairs, template)
    client, off = pairs.database.client, {"StreamEnabled": False}
    client.update_table(TableName=pairs.source, StreamSpecification=off)
    status = pairs.status()
    assert status["next"].startswith(f"keyhop rekey create {pairs.source} ")
    assert f"the stream of {pairs.source} is off" in status["troubles"][0]
    client.delete_table(TableName=pairs.destination)
    status = pairs.status()
    assert status["next"] == f"keyhop rekey cancel {pairs.source} --to {pairs.destination}"
    assert f"table {pairs.destination} does not exist any more" in status["troubles"][0]
    assert pairs.rekey("cancel").status == 0


def test_an_old_table_that_was_made_anew_is_another_one(pairs: Pairs, template: Path) -> None:
    made(pairs, template)
    assert pairs.rekey("start").status == 0
    pairs.database.client.delete_table(TableName=pairs.source)
    orders(pairs)
    status = pairs.status()
    assert status["next"].endswith(f"--to {pairs.destination} --keep-new")
    assert f"table {pairs.source} is another table" in status["troubles"][0]
    refused = pairs.rekey("cancel")
    assert (refused.status, "cancel with --keep-new" in refused.err) == (2, True), refused.err
    assert pairs.rekey("cancel", "--keep-new").status == 0
    assert len(items_of(pairs, pairs.destination)) == 30


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


CREATES = (("create", "--dry-run"), ("create",))
LOOKS = (("plan",), *CREATES)


def refuses(
    pairs: Pairs, template: Path, says: str, actions: Sequence[tuple[str, ...]] = CREATES
) -> None:
    """Check that the commands are refused with this text, and that nothing is made."""
    before = pairs.database.tables()
    for action in actions:
        result = pairs.rekey(*action, "--template", template, "--partition-key", "day")
        *steps, told = result.err.splitlines()
        assert (result.status, says in told) == (2, True), result.err
        assert all(step.endswith(" ...") for step in steps)
    assert pairs.database.tables() == before


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("items: []", "The template has no items"),
        ("items: [", "is not a template"),
        ("items:\n- set: {day: '{day}', order: '{order|nosuch}'}", "there is no filter 'nosuch'"),
        ("items:\n- set: {day: '{day}', order: '{order}'}", "keep"),
        ("items:\n- match: {customer: '{c}'}\n  set: {order: '{c}'}", "does not set 'day'"),
        (None, "cannot be read"),
    ],
)
def test_a_wrong_template_is_told_in_a_sentence_and_nothing_is_made(
    pairs: Pairs, template: Path, text: str | None, says: str
) -> None:
    orders(pairs)
    template.unlink()
    if text is not None:
        template.write_text(text)
    refuses(pairs, template, says, LOOKS)


def test_a_template_that_is_nested_too_deeply_is_told(pairs: Pairs, tmp_path: Path) -> None:
    orders(pairs)
    for name in ("deep.json", "deep.yaml"):
        (tmp_path / name).write_text("[" * 50_000 + "]" * 50_000)
        refuses(pairs, tmp_path / name, "is not a template", [("plan",)])


@pytest.mark.parametrize("name", ["", "x y", "ab", "N" * 250, "arn:aws:dynamodb:r:1:table/New"])
def test_a_name_that_no_new_table_can_have_is_told_by_the_plan(
    pairs: Pairs, template: Path, name: str
) -> None:
    """Beside it the side table must find room for its name."""
    orders(pairs)
    pairs.destination = name
    refuses(pairs, template, "3 to 249 of", LOOKS)


def test_a_table_is_not_planned_into_itself(pairs: Pairs, template: Path) -> None:
    orders(pairs)
    pairs.destination = pairs.source
    refuses(pairs, template, "another table", [("plan",)])


def test_a_stream_with_another_view_is_told_with_the_way_to_change_it(
    pairs: Pairs, template: Path
) -> None:
    stream = {"StreamEnabled": True, "StreamViewType": "KEYS_ONLY"}
    orders(pairs, StreamSpecification=stream)
    refuses(pairs, template, "is on with KEYS_ONLY")
    refuses(pairs, template, "turn it off and on again")
    described = pairs.database.client.describe_table(TableName=pairs.source)["Table"]
    assert described["StreamSpecification"] == stream
