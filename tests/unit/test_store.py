"""The store and the run's files, raced and crashed on purpose."""

import subprocess
import sys
import threading
from pathlib import Path

import pytest
from keyhop.dynamodb.schema import KeyAttribute, KeySpace
from keyhop.dynamodb.usage import Usage
from keyhop.errors import BrokenPromise, RunConflict
from keyhop.jobs.formats import Encoder
from keyhop.jobs.journal import Checkpoint, Commit, Journal, Part, RunPlan, Totals, manifest
from keyhop.scan.skip_scan import Position
from keyhop.storage.local import Directory

SPACE = KeySpace((KeyAttribute("pk", "B"),), KeyAttribute("sk", "S"))


def plan_of(segments: int = 4, **more) -> RunPlan:
    fields = {
        "id": "run",
        "table": "Orders",
        "index": None,
        "identity": "arn#1",
        "space": SPACE,
        "method": "skip",
        "reason": "why",
        "segments": segments,
        "groups": 1,
        "format": "jsonl",
        "started": "2026-01-01T00:00:00+00:00",
    }
    return RunPlan(**{**fields, **more})


def commit_of(attempt: str, parts: tuple[Part, ...] = (), ended: int = 0, **more) -> Commit:
    position = Position({"pk": {"B": b"\x00"}, "sk": {"S": "x"}}, {"pk": {"B": b"\x00"}}, True)
    fields = {
        "group": 0,
        "slice": 0,
        "attempt": attempt,
        "parts": parts,
        "ended": ended,
        "usage": Usage(requests=3, items=9, read_units=1.5),
        "seconds": 1.0,
        "checkpoint": Checkpoint(2, {1: position}, {"mean": 1.0}),
        "finished": False,
    }
    return Commit(**{**fields, **more})


def test_of_twenty_writers_one_creates_and_no_reader_sees_half(tmp_path: Path) -> None:
    store = Directory(tmp_path)
    for repetition in range(10):
        name = f"commits/c{repetition}"
        wins = []
        gate = threading.Barrier(21)

        def write(number: int, name: str = name, wins: list = wins, gate=gate) -> None:
            gate.wait()
            if store.create(name, b"%d" % number * 100_000):
                wins.append(number)

        seen = []

        def look(name: str = name, gate=gate, seen: list = seen) -> None:
            gate.wait()
            for _ in range(50):
                seen.append(store.read(name))

        threads = [threading.Thread(target=write, args=(number,)) for number in range(20)]
        threads.append(threading.Thread(target=look))
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert len(wins) == 1
        whole = b"%d" % wins[0] * 100_000
        assert store.read(name) == whole
        assert set(seen) <= {None, whole}
    assert [path.name for path in (tmp_path / "commits").iterdir() if "tmp" in path.name] == []


def test_plan_commit_and_checkpoint_survive_json(tmp_path: Path) -> None:
    journal = Journal(Directory(tmp_path))
    plan = plan_of(planning=Usage(requests=2, read_units=1.0))
    assert journal.begin(plan)
    assert journal.plan() == plan
    commit = commit_of("a")
    assert journal.commit(commit)
    assert journal.commit_of(0, 0) == commit


def test_a_second_run_or_attempt_in_the_same_place_loses(tmp_path: Path) -> None:
    journal = Journal(Directory(tmp_path))
    assert journal.begin(plan_of())
    assert not journal.begin(plan_of(id="other"))
    assert journal.commit(commit_of("first"))
    assert not journal.commit(commit_of("second"))
    assert [commit.attempt for commit in journal.commits(0)] == ["first"]


def test_a_part_tells_the_segment_of_each_key(tmp_path: Path) -> None:
    journal = Journal(Directory(tmp_path))
    for format_ in ("text", "jsonl", "csv"):
        plan = plan_of(format=format_)
        sink = journal.new_part(plan, 0, 0)
        for segment in (3, 1, 3, 2):
            sink.write(segment, [{"pk": {"B": b"%d-%d" % (segment, n)}} for n in range(segment)])
        (part,) = sink.close()
        assert part.keys == 9
        assert sorted((segment, keys) for segment, keys, _ in part.blocks) == [
            (1, 1),
            (2, 2),
            (3, 6),
        ]
        assert {key["pk"]["B"] for _, key in journal.keys(plan, part, {2})} == {b"2-0", b"2-1"}
        everything = list(journal.keys(plan, part))
        assert all(key["pk"]["B"].startswith(b"%d-" % segment) for segment, key in everything)
        header = Encoder(format_, SPACE).header()
        content = (tmp_path / part.name).read_bytes()
        assert content.startswith(header)
        assert len(content) == part.size


def test_no_key_no_part(tmp_path: Path) -> None:
    journal = Journal(Directory(tmp_path))
    assert journal.new_part(plan_of(), 0, 0).close() == ()
    assert journal.store.sizes("parts") == {}


def test_a_part_that_was_tampered_with_is_told(tmp_path: Path) -> None:
    journal = Journal(Directory(tmp_path))
    sink = journal.new_part(plan_of(), 0, 0)
    sink.write(0, [{"pk": {"B": b"a"}}, {"pk": {"B": b"b"}}])
    (part,) = sink.close()
    path = tmp_path / part.name
    path.write_bytes(path.read_bytes().splitlines(keepends=True)[0])
    with pytest.raises(BrokenPromise, match="was changed after its commit"):
        list(journal.keys(plan_of(), part))
    path.unlink()
    with pytest.raises(BrokenPromise):
        list(journal.keys(plan_of(), part))


def test_parts_that_no_commit_names_are_swept(tmp_path: Path) -> None:
    journal = Journal(Directory(tmp_path))
    parts = []
    for _ in range(3):
        sink = journal.new_part(plan_of(), 0, 0)
        sink.write(0, [{"pk": {"B": b"a"}}])
        parts += sink.close()
    assert journal.sweep(parts[:1]) == 2
    assert journal.store.sizes("parts") == {parts[0].name: parts[0].size}


def test_a_damaged_file_is_told_by_its_name(tmp_path: Path) -> None:
    journal = Journal(Directory(tmp_path))
    journal.store.create("commits/g00000-s000000.json", b"{half")
    with pytest.raises(BrokenPromise, match=r"s000000\.json is damaged"):
        list(journal.commits(0))


def test_a_run_of_another_layout_is_refused(tmp_path: Path) -> None:
    journal = Journal(Directory(tmp_path))
    journal.store.create("run.json", b'{"layout": 99, "software_version": "9.9"}')
    with pytest.raises(BrokenPromise, match=r"run\.json .* keyhop 9\.9 with layout 99"):
        journal.plan()


def test_only_one_process_works_on_a_directory(tmp_path: Path) -> None:
    first, second = Directory(tmp_path), Directory(tmp_path)
    first.lock()
    with pytest.raises(RunConflict, match="Another process"):
        second.lock()


def test_a_process_that_inherited_the_lock_does_not_keep_it(tmp_path: Path) -> None:
    """As a fork of the caller's does, or a program between its fork and its exec."""
    first, second = Directory(tmp_path), Directory(tmp_path)
    first.lock()
    program = [sys.executable, "-c", "import sys; print(flush=True); sys.stdin.read()"]
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE}
    with subprocess.Popen(program, pass_fds=first.locked_by, **pipes) as heir:
        assert heir.stdin is not None
        assert heir.stdout is not None
        heir.stdout.readline()
        first.unlock()
        second.lock()
        second.unlock()
        heir.stdin.close()


def test_an_attempt_whose_answer_was_lost_has_won_its_own_race(tmp_path: Path) -> None:
    """S3 creates the commit, the answer is lost, and the SDK asks again: "it is there"."""
    journal = Journal(Directory(tmp_path))
    assert journal.commit(commit_of("mine"))
    assert journal.commit(commit_of("mine"))
    assert not journal.commit(commit_of("another"))


def test_a_late_summary_does_not_take_the_manifest_back(tmp_path: Path) -> None:
    journal = Journal(Directory(tmp_path))
    journal.write_summary({"finished": False})
    assert not journal.is_finished()
    journal.write_summary({"finished": True})
    journal.write_summary({"finished": False})
    assert journal.is_finished()


def test_the_manifest_counts_what_the_commits_say_and_the_planning() -> None:
    part = Part.from_json(
        {"name": "p", "size": 9, "sha256": "x", "header": 0, "blocks": [[1, 2, 4], [0, 3, 5]]}
    )
    plan = plan_of(segments=2, planning=Usage(requests=1, read_units=0.5), planning_seconds=0.5)
    told = manifest(plan, Totals(plan, [commit_of("a", (part,), 2)]), True, "now")
    assert (told["keys"], told["requests"], told["read_units"]) == (5, 4, 2.0)
    assert told["segments"] == {
        "total": 2,
        "ended": 2,
        "most_keys": 3,
        "mean_keys": 2.5,
        "skew": 1.2,
        "keys": [3, 2],
    }
    assert told["seconds"] == 1.5
    assert "2026-08" in told["price"]
