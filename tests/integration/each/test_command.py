"""The command `keyhop each`: its question, effects, report and undo."""

import json
import os
import shlex
import signal
from collections import Counter
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from keyhop.dynamodb.tables import Table

from testing.databases import Database, Result, keyhop
from testing.marks import prove
from testing.standin.server import StandIn
from tests.integration.conftest import Interrupt

SIZES = [1, 3, 2] * 40
ITEM = {"sk": "#feature", "tier": "free", "of": "${key}", "by": "${run}"}


@pytest.fixture
def item(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    """The file of a template, in an otherwise empty working directory."""
    monkeypatch.chdir(tmp_path)
    Path("item.json").write_text(json.dumps(ITEM))
    return "item.json"


class Each:
    """The command `keyhop each` for one table, and the items of the table."""

    def __init__(self, database: Database, table: str) -> None:
        self.database, self.table = database, table

    def __call__(self, *arguments: str) -> Result:
        return keyhop("each", self.table, "--endpoint-url", self.database.url, *arguments)

    def report(self, *arguments: str) -> tuple[int, dict[str, Any]]:
        result = self(*arguments, "--yes", "-q", "-f", "json")
        return result.status, json.loads(result.out)

    def items(self) -> dict[tuple[str, str], Any]:
        pages = self.database.client.get_paginator("scan").paginate(TableName=self.table)
        return {
            (item["pk"]["S"], item["sk"]["S"]): item for page in pages for item in page["Items"]
        }


@pytest.fixture
def each(dynamodb_local_url: str, table_name: str) -> Each:
    database = Database("dynamodb_local", dynamodb_local_url)
    database.collections(table_name, SIZES)
    return Each(database, table_name)


@pytest.fixture
def each_of_30(strict: Database, table_name: str) -> Each:
    """The command for 30 collections on the stand-in, so that it can be interrupted."""
    strict.collections(table_name, [1] * 30)
    return Each(strict, table_name)


def test_an_item_is_put_into_each_collection_and_removed_by_an_undo(each: Each, item: str) -> None:
    before = each.items()
    keys = {partition for partition, _ in before}
    status, report = each.report("--put", item, "-o", "run")
    assert (status, report["outcomes"]) == (0, {"put": len(keys)})
    assert report["write_units"] == pytest.approx(len(keys))
    new_items = {key: new for key, new in each.items().items() if key not in before}
    assert set(new_items) == {(key, "#feature") for key in keys}
    assert all(new["of"] == {"S": key[0]} for key, new in new_items.items())
    assert len({new["by"]["S"] for new in new_items.values()}) == 1
    changed, *_ = sorted(keys)
    each.database.client.update_item(
        TableName=each.table,
        Key={"pk": {"S": changed}, "sk": {"S": "#feature"}},
        UpdateExpression="SET tier = :p",
        ExpressionAttributeValues={":p": {"S": "gold"}},
    )
    status, report = each.report("--undo", "run")
    assert (status, report["outcomes"]) == (3, {"deleted": len(keys) - 1, "changed": 1})
    assert set(each.items()) == {*before, (changed, "#feature")}


@pytest.mark.prove
def test_another_run_does_not_replace_existing_items(each: Each, item: str) -> None:
    keys = {partition for partition, _ in each.items()}
    assert each.report("--put", item, "-o", "one")[0] == 0
    before = each.items()
    status, report = each.report("--put", item, "-o", "two", "--keys", "one/keys")
    assert (status, report["outcomes"], report["list"]) == (0, {"there": len(keys)}, None)
    assert each.report("--undo", "two", "-o", "undo")[1]["outcomes"] == {}
    assert each.items() == before


def test_a_dry_run_estimates_the_cost_and_writes_nothing(each: Each, item: str) -> None:
    before = each.items()
    result = each("--put", item, "--dry-run", "-f", "json")
    estimate = json.loads(result.out)
    assert result.status == 0
    assert estimate["keys"] == str(len(SIZES))
    assert estimate["writes"].startswith(f"about {len(SIZES)} WRU, 1 for each key")
    assert each.items() == before
    assert [*Path().iterdir()] == [Path("item.json")]


def test_a_dry_run_says_that_vector_indexes_are_not_in_the_estimate(
    each: Each, item: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert "not in it" not in json.loads(each("--put", item, "--dry-run", "-f", "json").out)
    monkeypatch.setattr(Table, "vector_indexes", ("by-meaning", "by-look"))
    facts = json.loads(each("--put", item, "--dry-run", "-f", "json").out)
    assert "vector indexes by-meaning, by-look" in facts["not in it"]


def test_without_a_yes_nothing_is_read_or_written(each: Each, item: str) -> None:
    result = each("--put", item)
    assert (result.status, "add --yes" in result.err) == (2, True)
    assert [*Path().iterdir()] == [Path("item.json")]


@pytest.mark.parametrize(("number", "status"), [(signal.SIGINT, 130), (signal.SIGTERM, 143)])
def test_a_signal_at_the_question_is_one_sentence(
    each: Each, item: str, monkeypatch: pytest.MonkeyPatch, number: int, status: int
) -> None:
    def interrupted_select(*_: object) -> tuple[list[object], ...]:
        os.kill(os.getpid(), number)
        return [], [], []

    monkeypatch.setattr("keyhop.cli.session.is_terminal", lambda: True)
    monkeypatch.setattr("keyhop.cli.session.select", SimpleNamespace(select=interrupted_select))
    result = each("--put", item)
    assert result.status == status
    assert result.err.endswith("\nkeyhop: Interrupted. Nothing was done.\n")
    assert "? [y/N] " in result.err
    assert "error" not in result.err


def test_one_item_of_each_is_updated_and_deleted(each: Each, item: str) -> None:
    sort_keys = Counter(sort for _, sort in each.items())
    sort, count = min(sort_keys.items(), key=lambda entry: entry[1])
    absent = len(SIZES) - count
    assert absent > 0
    where = ("--item", json.dumps({"sk": sort}))
    update = ("--update", "SET plan = :free", "--values", '{":free": "free"}', *where)
    status, report = each.report(*update, "-o", "update")
    assert (status, report["outcomes"]) == (0, {"updated": count, "gone": absent})
    assert sum("plan" in each_item for each_item in each.items().values()) == count
    status, report = each.report("--delete", *where, "-o", "delete")
    assert (status, report["outcomes"]) == (0, {"deleted": count, "gone": absent})
    assert sort not in {sort_key for _, sort_key in each.items()}


def test_a_condition_selects_keys(each: Each, item: str) -> None:
    selected = {partition for partition, _ in each.items() if partition.startswith("k1")}
    status, report = each.report("--put", item, "--where", "begins_with(k1)")
    assert (status, report["outcomes"]) == (0, {"put": len(selected)})
    assert {key for key, sort in each.items() if sort == "#feature"} == selected


def test_a_run_writes_at_most_max_write_units(each: Each, item: str) -> None:
    status, report = each.report("--put", item, "-o", "run", "--max-write-units", "50")
    assert (status, report["finished"]) == (4, False)
    assert report["write_units"] <= 50
    assert 0 < report["outcomes"]["put"] < len(SIZES)
    status, report = each.report("--resume", "run")
    assert (status, report["outcomes"]) == (0, {"put": len(SIZES)})


def test_an_interrupted_run_says_how_to_continue(
    each_of_30: Each, stand_in: StandIn, item: str, interrupt: Interrupt
) -> None:
    stand_in.at("Scan", lambda number: interrupt())
    result = each_of_30("--put", item, "--yes", "-o", "run")
    assert (result.status, "Continue with --resume run." in result.err) == (130, True)


@pytest.mark.parametrize("operation", ["Scan", "PutItem"])
def test_an_interrupted_run_without_output_prints_the_command_that_resumes_it(
    each_of_30: Each, stand_in: StandIn, item: str, interrupt: Interrupt, operation: str
) -> None:
    stand_in.at(operation, lambda number: interrupt())
    result = each_of_30("--put", item, "--yes")
    assert result.status == 130
    (line,) = (line for line in result.err.splitlines() if "continues the run" in line)
    program, *arguments = shlex.split(line.partition(": ")[2])
    stand_in.heal()
    assert (program, keyhop(*arguments).status) == ("keyhop", 0)
    assert Counter(sort for _, sort in each_of_30.items())["#feature"] == 30


@pytest.mark.parametrize(
    ("operation", "arguments"),
    [
        ("Scan", ["--put", "{item}", "-o", "run"]),
        ("PutItem", ["--put", "{item}", "-o", "run"]),
        prove("DeleteItem", ["--undo", "put", "--max-write-rate", "10"]),
    ],
)
def test_an_unfinished_directory_is_refused_with_the_command_that_resumes_it(
    each_of_30: Each,
    stand_in: StandIn,
    item: str,
    interrupt: Interrupt,
    operation: str,
    arguments: list[str],
) -> None:
    if "--undo" in arguments:
        assert each_of_30("--put", item, "--yes", "-o", "put").status == 0
    stand_in.at(operation, lambda number: interrupt())
    words = [word.format(item=item) for word in arguments]
    assert each_of_30(*words, "--yes").status == 130
    stand_in.heal()
    result = each_of_30(*words, "--yes")
    assert result.status == 2
    program, *advised = shlex.split(result.err.partition("To resume it: ")[2])
    assert (program, keyhop(*advised).status) == ("keyhop", 0)
    remaining = Counter(sort for _, sort in each_of_30.items())["#feature"]
    assert remaining == (0 if "--undo" in arguments else 30)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ([], "give one thing to do"),
        (["--put", "item.json", "--delete"], "--put and --delete"),
        (["--put", "none.json"], "none.json cannot be read"),
        (["--put", "item.json", "--guard", "perhaps"], "'perhaps' is not one of"),
        (["--put", "item.json", "--overwrite", "--guard", "look"], "needs --guard transaction"),
        (["--put", "item.json", "--item", "sk=1"], "--item is for --update and --delete"),
        (["--update", "SET n = n + :a", "--values", '{":a": 1}', "--item", "sk=1"], "made of n"),
        (["--update", "SET n = :a", "--item", "sk=1"], ":a"),
        (
            ["--update", "SET n = :a", "--values", "{", "--item", "sk=1"],
            "--values cannot be read as JSON",
        ),
        (["--delete", "--item", "PROFILE"], "NAME=VALUE"),
        (["--delete"], "sort key"),
        (["--delete", "--item", "sk=!keyhop"], "where the key index has its sentinels"),
        (["--update", "REMOVE n", "--item", "sk=!keyhop"], "where the key index has its sentinels"),
        (["--put", "item.json", "--where", "like(x)"], "begins_with(TEXT)"),
        (["--put", "item.json", "--where", "matches(()"], "not a regular expression"),
        (
            ["--put", "item.json", "--where", f"matches({'x' * 501})"],
            "may have 500 characters; this one has 501",
        ),
        (["--put", "item.json", "--keys", "nowhere"], "nowhere holds no finished run"),
        (["--undo", "nowhere"], "nowhere holds no finished run"),
        (["--put", "item.json", "--resume", "run"], "run holds no run that could be resumed"),
        (["--put", "item.json", "--resume", "a", "-o", "b"], "leave --output out"),
        (["--resume", "run", "--dry-run"], "--resume and --dry-run exclude each other"),
        (["--put", "item.json", "--batch", "5"], "--batch is for"),
        (["--queue", "todo"], "must be the URL of a queue"),
        (["--start-machine", "Welcome"], "must be the ARN of a state machine"),
    ],
)
def test_an_invalid_input_is_reported_in_one_line(
    each: Each, item: str, arguments: list[str], message: str
) -> None:
    before = each.items()
    result = each(*arguments, "--yes")
    assert (result.status, result.out) == (2, b"")
    assert message in result.err
    assert result.err.count("\n") == 1
    assert each.items() == before
    assert [*Path().iterdir()] == [Path("item.json")]
