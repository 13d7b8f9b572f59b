"""`keyhop keys` asks before it reads for more than a dollar, and --max-cost ends a run."""

import pytest
from keyhop.jobs import lifecycle

from testing.databases import Database, resuming

SIZES = [1, 6, 1, 25, 2] * 60


@pytest.fixture(autouse=True)
def prices(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let a unit cost a dollar, so that a few hundred keys cost as much as a billion really do."""
    monkeypatch.setenv("KEYHOP_PRICES", '{"reads": 1000000, "writes": 1000000}')


def test_without_a_terminal_an_expensive_run_needs_a_yes(
    strict: Database, table_name: str, tmp_path
) -> None:
    strict.collections(table_name, SIZES, filling=800)
    refused = strict.keys(table_name, "--output", str(tmp_path / "out"))
    assert (refused.status, refused.out) == (2, b"")
    message = f"This would read {table_name} for more than $1, but there is no terminal"
    assert message in refused.err
    assert not (tmp_path / "out" / "run.json").exists()
    listed = strict.keys(table_name, "--yes")
    assert (listed.status, len(listed.keys)) == (0, len(SIZES))
    assert "(on demand, at your own prices)" in listed.err


def test_a_limit_answers_the_question_and_is_not_exceeded(
    strict: Database, table_name: str, tmp_path
) -> None:
    strict.collections(table_name, SIZES, filling=800)
    segments = ("--segments", "60")  # avoids the sample, which may refuse to start
    status, report = strict.report(table_name, tmp_path, *segments, "--max-cost", "30")
    assert status == 4
    assert 20 < report["dollars"] <= 30
    assert strict.keys(table_name, "--max-read-units", "1").status == 4


def test_the_command_does_not_ask_before_it_lists_a_few_keys(
    strict: Database, table_name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A unit costs two cents, so that all keys cost several dollars, and three keys a few cents."""
    monkeypatch.setenv("KEYHOP_PRICES", '{"reads": 20000, "writes": 20000}')
    strict.collections(table_name, SIZES, filling=800)
    assert strict.keys(table_name).status == 2
    listed = strict.keys(table_name, "--limit", "3")
    assert (listed.status, len(listed.keys)) == (0, 3)
    assert strict.keys(table_name, "--limit", "299").status == 2


def test_a_wrong_rough_estimate_of_the_keys_does_not_answer_the_question(
    strict: Database, table_name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The sample that follows shows that 299 keys are nearly all keys of the table."""
    monkeypatch.setenv("KEYHOP_PRICES", '{"reads": 20000, "writes": 20000}')
    monkeypatch.setattr(lifecycle, "rough_keys", lambda looks, item_count: 3_000.0)
    strict.collections(table_name, SIZES, filling=800)
    assert strict.keys(table_name, "--limit", "299").status == 2


def test_the_command_does_not_ask_before_it_lists_a_small_table(
    strict: Database, table_name: str
) -> None:
    strict.collections(table_name, [2] * 40)
    assert strict.keys(table_name).status == 0


def test_the_question_about_a_resumed_run_is_about_the_rest(
    strict: Database, table_name: str, tmp_path
) -> None:
    strict.collections(table_name, SIZES, filling=800)
    where = ("--output", str(tmp_path / "out"), "--segments", "60")
    assert strict.keys(table_name, *where, "--max-cost", "100").status == 4
    assert strict.keys(table_name, *resuming(*where)).status == 2
    assert strict.keys(table_name, *resuming(*where), "--yes").status == 0
