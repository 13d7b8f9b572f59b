"""The commands `keyhop rekey create`, `complete` and `cancel`."""

import json
import time
from collections.abc import Sequence
from pathlib import Path

import pytest

from tests.integration.rekey.pairs import BY_DAY, Pairs, create_rekey, in_order, items_of, orders


def test_create_asks_and_then_makes_the_new_table(pairs: Pairs, template: Path) -> None:
    orders(pairs)
    create = ("create", "--template", template, "--partition-key", "day")
    dry = pairs.rekey(*create, "--dry-run")
    assert (dry.status, pairs.database.tables().count(pairs.destination)) == (0, 0)
    assert "capacity" in dry.out.decode()
    assert pairs.rekey(*create, yes=False).status == 2
    assert pairs.destination not in pairs.database.tables()
    result = pairs.rekey(*create)
    assert result.status == 0, result.err
    assert pairs.status()["phase"] == "created"
    described = pairs.database.client.describe_table(TableName=pairs.destination)["Table"]
    assert [attribute["AttributeName"] for attribute in described["KeySchema"]] == ["day", "order"]
    assert described["StreamSpecification"]["StreamViewType"] == "NEW_AND_OLD_IMAGES"
    assert pairs.rekey(*create).status == 0, "a repetition has nothing to do"


def test_cancel_restores_everything(pairs: Pairs, template: Path) -> None:
    items = create_rekey(pairs, template)
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
    repeated = pairs.rekey("cancel")
    assert (repeated.status, "no re-key" in repeated.err) == (2, True)


def test_a_cancel_names_the_routers_of_the_last_day(pairs: Pairs, template: Path) -> None:
    """A router that was idle for a minute is not alive, but its next write would fail."""
    create_rekey(pairs, template)
    now = time.time()
    reports = {"old-1": 25 * 3600, "idle-2": 2 * 3600, "alive-3": 5}
    for name, age in reports.items():
        pairs.side.report_client(name, {"revision": 1, "until": now - age + 60})
    routers = json.loads(pairs.rekey("cancel", "--dry-run", "--format", "json").out)["routers"]
    alive, idle = routers.index("alive-3 ("), routers.index("idle-2 (2.0 h ago)")
    assert alive < idle
    assert "old-1" not in routers


def test_a_cancel_may_keep_the_new_table(pairs: Pairs, template: Path) -> None:
    create_rekey(pairs, template)
    assert pairs.rekey("start").status == 0
    assert pairs.rekey("cancel", "--keep-new").status == 0
    assert len(items_of(pairs, pairs.destination)) == 30
    assert f"{pairs.destination}.rekey" not in pairs.database.tables()


def test_the_status_names_a_table_that_was_deleted_and_a_stream_that_is_off(
    pairs: Pairs, template: Path
) -> None:
    create_rekey(pairs, template)
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


def test_a_source_that_was_deleted_and_created_again_is_another_table(
    pairs: Pairs, template: Path
) -> None:
    create_rekey(pairs, template)
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
    create_rekey(pairs, template)
    for more in ((), ("--dry-run",)):
        refused = pairs.rekey("complete", *more)
        assert (refused.status, "The source serves" in refused.err) == (2, True)
    assert pairs.status()["phase"] == "created"


def test_the_old_table_is_deleted_only_if_its_name_is_passed(pairs: Pairs, template: Path) -> None:
    create_rekey(pairs, template)
    for arguments, why in (((), "requires an argument"), ((pairs.destination,), "give that name")):
        refused = pairs.rekey("complete", "--delete-source", *arguments)
        assert (refused.status, why in refused.err) == (2, True)
    refused = pairs.rekey("complete", "--delete-source", pairs.source)
    assert (refused.status, "The source serves" in refused.err) == (2, True)


def test_a_plan_says_that_the_name_of_the_new_table_is_taken(pairs: Pairs, template: Path) -> None:
    plan = ("plan", "--template", template, "--partition-key", "day")
    create_rekey(pairs, template)
    assert pairs.rekey(*plan).status == 0, "the same again"
    template.write_text(BY_DAY.replace("{customer}#{order}", "{order}#{customer}"))
    another = pairs.rekey(*plan)
    assert (another.status, "holds another plan" in another.out.decode()) == (3, True)
    assert pairs.rekey("cancel", "--keep-new").status == 0
    existing = pairs.rekey(*plan)
    assert (existing.status, "exists" in existing.out.decode()) == (3, True), existing.out


CREATES = (("create", "--dry-run"), ("create",))
PLAN_AND_CREATES = (("plan",), *CREATES)


def check_refusal(
    pairs: Pairs, template: Path, says: str, actions: Sequence[tuple[str, ...]] = CREATES
) -> None:
    """Check that the commands are refused with this text, and that nothing is made."""
    before = pairs.database.tables()
    for action in actions:
        result = pairs.rekey(*action, "--template", template, "--partition-key", "day")
        *steps, message = result.err.splitlines()
        assert (result.status, says in message) == (2, True), result.err
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
def test_the_error_of_a_template_is_one_sentence_and_nothing_is_created(
    pairs: Pairs, template: Path, text: str | None, says: str
) -> None:
    orders(pairs)
    template.unlink()
    if text is not None:
        template.write_text(text)
    check_refusal(pairs, template, says, PLAN_AND_CREATES)


def test_a_template_that_is_nested_too_deeply_is_refused(pairs: Pairs, tmp_path: Path) -> None:
    orders(pairs)
    for name in ("deep.json", "deep.yaml"):
        (tmp_path / name).write_text("[" * 50_000 + "]" * 50_000)
        check_refusal(pairs, tmp_path / name, "is not a template", [("plan",)])


@pytest.mark.parametrize("name", ["", "x y", "ab", "N" * 250, "arn:aws:dynamodb:r:1:table/New"])
def test_a_name_that_no_new_table_can_have_is_refused(
    pairs: Pairs, template: Path, name: str
) -> None:
    """The name of the side table, which is longer, must be valid too."""
    orders(pairs)
    pairs.destination = name
    check_refusal(pairs, template, "3 to 249 of", PLAN_AND_CREATES)


def test_a_plan_from_a_table_to_itself_is_refused(pairs: Pairs, template: Path) -> None:
    orders(pairs)
    pairs.destination = pairs.source
    check_refusal(pairs, template, "another table", [("plan",)])


def test_a_stream_with_another_view_is_refused_with_a_remedy(pairs: Pairs, template: Path) -> None:
    stream = {"StreamEnabled": True, "StreamViewType": "KEYS_ONLY"}
    orders(pairs, StreamSpecification=stream)
    check_refusal(pairs, template, "is on with KEYS_ONLY")
    check_refusal(pairs, template, "turn it off and on again")
    described = pairs.database.client.describe_table(TableName=pairs.source)["Table"]
    assert described["StreamSpecification"] == stream
