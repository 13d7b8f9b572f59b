"""Files that are lost, truncated or cannot be written are reported, and never used as a result."""

import errno
import json
from collections import Counter
from pathlib import Path

import pytest
from keyhop.errors import CannotStart
from keyhop.jobs import journal as log_module
from keyhop.storage.local import ASIDE, Directory
from keyhop.storage.store import PartFile

from testing.databases import Database
from tests.integration.test_nothing_is_lost import SIZES, committed_keys, reader_of, work


class FullDisk(Directory):
    """A directory on a disk that is full for one write, half of which arrives."""

    def __init__(self, path: Path, full_at: int) -> None:
        super().__init__(path)
        self.remaining = full_at

    def open_part(self, name: str) -> PartFile:
        return _FullDiskPart(self, super().open_part(name))


class _FullDiskPart:
    def __init__(self, disk: FullDisk, part: PartFile) -> None:
        self.disk = disk
        self.part = part

    def write(self, content: bytes) -> None:
        self.disk.remaining -= 1
        if self.disk.remaining == 0:
            self.part.write(content[: len(content) // 2])
            raise OSError(errno.ENOSPC, "No space left on device")
        self.part.write(content)

    def close(self) -> None:
        self.part.close()


@pytest.mark.parametrize("full_at", range(2, 9))
def test_no_key_is_listed_twice_after_the_disk_was_full(
    strict: Database,
    table_name: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    full_at: int,
) -> None:
    """The disk has space again at once, and other threads continue to write."""
    monkeypatch.setattr(log_module, "MOST_WAITING_BYTES", 100)
    expected = Counter(strict.collections(table_name, SIZES, filling=3_000))
    store = FullDisk(tmp_path, full_at)
    with pytest.raises(OSError, match="No space left"):
        work(store, reader_of(strict.url, table_name), segments=6, seconds=5)
    assert strict.keys(table_name, "--resume", str(tmp_path)).status == 0
    assert committed_keys(tmp_path) == expected


@pytest.fixture
def unfinished(strict: Database, table_name: str, tmp_path: Path) -> Path:
    """An unfinished run with several commits."""
    strict.collections(table_name, SIZES, filling=3_000)
    out = tmp_path / "out"
    for units in ("15", "20", "10"):
        arguments = ("--resume" if out.exists() else "--output", str(out), "--segments", "6")
        assert strict.keys(table_name, *arguments, "--max-read-units", units).status == 4
    return out


@pytest.mark.parametrize("harm", ["delete", "cut", "change"])
def test_a_damaged_part_is_reported_before_the_table_is_read(
    strict: Database, table_name: str, unfinished: Path, harm: str
) -> None:
    part = sorted((unfinished / "parts").iterdir())[0]
    content = part.read_bytes()
    part.unlink()
    if harm != "delete":
        part.write_bytes(content[:-3] if harm == "cut" else content.replace(b"k", b"K", 1))
    files = set(unfinished.rglob("*"))
    result = strict.keys(table_name, "--resume", str(unfinished))
    assert result.status == 2
    assert f"parts/{part.name} was changed after its commit" in result.err
    assert "Continue with" not in result.err
    assert set(unfinished.rglob("*")) == files


def test_a_lost_commit_is_reported_and_no_part_is_deleted(
    strict: Database, table_name: str, unfinished: Path
) -> None:
    sorted((unfinished / "commits").iterdir())[1].unlink()
    parts = set((unfinished / "parts").iterdir())
    result = strict.keys(table_name, "--resume", str(unfinished))
    assert result.status == 2
    assert "commits follow one another" in result.err
    assert set((unfinished / "parts").iterdir()) == parts


def test_files_of_the_user_are_not_deleted(
    strict: Database, table_name: str, unfinished: Path
) -> None:
    user_file = unfinished / "parts" / "mine.csv"
    user_file.write_text("mine")
    assert strict.keys(table_name, "--resume", str(unfinished)).status == 0
    assert user_file.read_text() == "mine"


def test_a_run_that_was_killed_before_it_wrote_its_plan_can_be_resumed(
    strict: Database, table_name: str, tmp_path: Path
) -> None:
    strict.collections(table_name, [1] * 5)
    (tmp_path / f".run.json.0{ASIDE}").write_text("{")
    assert strict.keys(table_name, "--resume", str(tmp_path)).status == 0
    assert not list(tmp_path.glob(f".*{ASIDE}"))


@pytest.mark.parametrize("content", ["[]", "{}", '{"layout": 1}', '"x"', "nonsense"])
def test_an_invalid_plan_is_reported(
    strict: Database, table_name: str, tmp_path: Path, content: str
) -> None:
    strict.collections(table_name, [1] * 5)
    (tmp_path / "run.json").write_text(content)
    result = strict.keys(table_name, "--resume", str(tmp_path))
    assert result.status == 2
    assert "run.json" in result.err or "keyhop None" in result.err
    assert "internal error" not in result.err
    assert (tmp_path / "run.json").read_text() == content


def test_a_file_system_without_hard_links_is_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(*_: object) -> None:
        raise OSError(errno.EPERM, "Operation not permitted")

    monkeypatch.setattr("os.link", refuse)
    with pytest.raises(CannotStart, match="no hard links"):
        Directory(tmp_path).create("a.json", b"{}")
    assert list(tmp_path.iterdir()) == []


def test_the_summary_counts_the_keys_in_the_parts(unfinished: Path) -> None:
    progress = json.loads((unfinished / "progress.json").read_bytes())
    counts = [(unfinished / part["name"]).read_bytes().count(b"\n") for part in progress["parts"]]
    assert sum(counts) == progress["keys"]
