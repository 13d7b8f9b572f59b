"""`keyhop keys` asks before reads of more than a dollar, and --max-cost ends a run."""

import pytest
from keyhop.jobs import lifecycle

from testing.databases import Database, resuming

SIZES = [1, 6, 1, 25, 2] * 60


@pytest.fixture(autouse=True)
def dear(monkeypatch: pytest.MonkeyPatch) -> None:
    """A dollar for a unit: so a table of a few hundred keys costs as much as one of a billion."""
    monkeypatch.setenv("KEYHOP_PRICES", '{"reads": 1000000, "writes": 1000000}')


def test_without_a_terminal_a_dear_run_needs_a_yes(
    strict: Database, table_name: str, tmp_path
) -> None:
    strict.collections(table_name, SIZES, filling=800)
    refused = strict.keys(table_name, "--output", str(tmp_path / "out"))
    assert (refused.status, refused.out) == (2, b"")
    read = f"This would read {table_name} for more than $1, but there is no terminal"
    assert read in refused.err
    assert not (tmp_path / "out" / "run.json").exists()
    listed = strict.keys(table_name, "--yes")
    assert (listed.status, len(listed.keys)) == (0, len(SIZES))
    assert "(on demand, at your own prices)" in listed.err


def test_a_limit_is_an_answer_and_is_kept(strict: Database, table_name: str, tmp_path) -> None:
    strict.collections(table_name, SIZES, filling=800)
    segments = ("--segments", "60")  # Without a first look, which may refuse to begin.
    status, report = strict.report(table_name, tmp_path, *segments, "--max-cost", "30")
    assert status == 4
    assert 20 < report["dollars"] <= 30
    assert strict.keys(table_name, "--max-read-units", "1").status == 4


def test_a_few_keys_are_not_asked_about(
    strict: Database, table_name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Two cents for a unit: all keys cost several dollars, and three keys a few cents."""
    monkeypatch.setenv("KEYHOP_PRICES", '{"reads": 20000, "writes": 20000}')
    strict.collections(table_name, SIZES, filling=800)
    assert strict.keys(table_name).status == 2
    listed = strict.keys(table_name, "--limit", "3")
    assert (listed.status, len(listed.keys)) == (0, 3)
    assert strict.keys(table_name, "--limit", "299").status == 2


def test_a_wrong_first_guess_of_the_keys_does_not_answer_the_question(
    strict: Database, table_name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A sample that follows it has its own number of keys: 299 of 300 are nearly all."""
    monkeypatch.setenv("KEYHOP_PRICES", '{"reads": 20000, "writes": 20000}')
    monkeypatch.setattr(lifecycle, "rough_keys", lambda looks, item_count: 3_000.0)
    strict.collections(table_name, SIZES, filling=800)
    assert strict.keys(table_name, "--limit", "299").status == 2


def test_a_small_table_is_not_asked_about(strict: Database, table_name: str) -> None:
    strict.collections(table_name, [2] * 40)
    assert strict.keys(table_name).status == 0


def test_of_a_run_that_goes_on_only_the_rest_counts(
    strict: Database, table_name: str, tmp_path
) -> None:
    strict.collections(table_name, SIZES, filling=800)
    where = ("--output", str(tmp_path / "out"), "--segments", "60")
    assert strict.keys(table_name, *where, "--max-cost", "100").status == 4
    assert strict.keys(table_name, *resuming(*where)).status == 2
    assert strict.keys(table_name, *resuming(*where), "--yes").status == 0
