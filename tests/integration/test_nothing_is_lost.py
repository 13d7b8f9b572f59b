"""Runs that crash, are killed, race or are resumed list each key exactly once."""

import json
import random
import signal
import subprocess
import sys
import threading
from collections import Counter
from pathlib import Path
from threading import Event

import pytest
from keyhop.dynamodb.client import connect
from keyhop.dynamodb.endpoint import Endpoint
from keyhop.dynamodb.rate_limit import Budget
from keyhop.dynamodb.tables import look_up
from keyhop.jobs.journal import Journal
from keyhop.jobs.lifecycle import sum_up
from keyhop.jobs.pages import TablePages
from keyhop.jobs.worker import GroupWorker
from keyhop.scan.reader import PageReader
from keyhop.storage.local import LOCK, Directory

from testing.databases import BY_DAY, Database, keyhop, resuming
from testing.marks import prove
from testing.standin.server import StandIn
from tests.integration.conftest import interrupting
from tests.integration.crashing import Crash, CrashingStore, new_plan

SIZES = [1, 3, 10, 1, 7, 1, 1, 30] * 10


def reader_of(url: str, table: str) -> PageReader:
    connection = connect(Endpoint(url=url))
    return PageReader(connection, look_up(connection, table).source(), Budget())


def work(store: Directory, reader: PageReader, segments: int, seconds: float = 0.01) -> None:
    """Read the table as the command does, but in slices of minimum length."""
    journal = Journal(store)
    plan = journal.plan()
    if plan is None:
        plan = new_plan(reader.source, segments)
        journal.begin(plan)
        journal.write_summary(sum_up(journal, plan)[1])
    pages = TablePages(reader, hop=True, total=segments)
    group = GroupWorker(journal, plan, 0, pages, 3)
    group.slices = seconds, seconds
    group.run()
    journal.write_summary(sum_up(journal, plan)[1])


def committed_keys(path: Path) -> Counter[str]:
    """Return all keys in the parts that the manifest names."""
    manifest = json.loads((path / "manifest.json").read_bytes())
    assert manifest["finished"]
    keys: Counter[str] = Counter()
    for part in manifest["parts"]:
        lines = (path / part["name"]).read_text().splitlines()
        assert len(lines) == part["keys"]
        keys.update(json.loads(line)["pk"]["S"] for line in lines)
    assert manifest["keys"] == sum(keys.values()) == sum(manifest["segments"]["keys"])
    return keys


@pytest.mark.parametrize("after", [False, True])
@pytest.mark.parametrize("sizes", [SIZES[:24], prove(SIZES)], ids=["small", "large"])
def test_a_crash_at_every_write_changes_nothing(
    strict: Database, table_name: str, tmp_path: Path, after: bool, sizes: list[int]
) -> None:
    expected = Counter(strict.collections(table_name, sizes, filling=3_000))
    crash_at = 0
    crashed = True
    while crashed:
        crash_at += 1
        path = tmp_path / str(crash_at)
        path.mkdir()
        try:
            work(CrashingStore(path, crash_at, after), reader_of(strict.url, table_name), 7)
            crashed = False
        except Crash:
            work(Directory(path), reader_of(strict.url, table_name), 7)
        assert committed_keys(path) == expected
    assert crash_at > 5


@pytest.mark.parametrize(("rounds", "min_crashes"), [(2, 6), prove(10, 30)])
def test_workers_that_crash_repeatedly_change_nothing(
    strict: Database, table_name: str, tmp_path: Path, rounds: int, min_crashes: int
) -> None:
    """Keys that were read before an unexpected error are committed."""
    expected = Counter(strict.collections(table_name, SIZES, filling=3_000))
    chance = random.Random(5)
    remaining = [0]
    crashes = 0
    for round_ in range(rounds):
        path = tmp_path / str(round_)
        path.mkdir()
        while True:
            reader = reader_of(strict.url, table_name)
            remaining[0] = chance.randint(1, 12)  # so that each round crashes several times
            call = reader.connection.client.call

            def crashing_call(operation, call=call, **parameters):
                remaining[0] -= operation == "scan"
                if remaining[0] < 0:
                    raise Crash
                return call(operation, **parameters)

            reader.connection.client.call = crashing_call  # type: ignore[method-assign]
            try:
                work(Directory(path), reader, 9)
                break
            except Crash:
                crashes += 1
        assert committed_keys(path) == expected
    assert crashes > min_crashes


@pytest.mark.parametrize("rounds", [1, prove(5)])
def test_concurrent_workers_of_the_same_run_change_nothing(
    strict: Database, table_name: str, tmp_path: Path, rounds: int
) -> None:
    """A deployment has no lock either. A worker that loses a commit adopts the winner's."""
    expected = Counter(strict.collections(table_name, SIZES, filling=3_000))
    for round_ in range(rounds):
        path = tmp_path / str(round_)
        path.mkdir()
        journal = Journal(Directory(path))
        reader = reader_of(strict.url, table_name)
        journal.begin(new_plan(reader.source, 11))
        errors: list[BaseException] = []

        def run_worker(path: Path = path, errors: list = errors) -> None:
            try:
                work(Directory(path), reader_of(strict.url, table_name), 11)
            except BaseException as error:
                errors.append(error)

        threads = [threading.Thread(target=run_worker) for _ in range(3)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert errors == []
        assert committed_keys(path) == expected


def test_parts_without_a_commit_do_not_count_and_are_deleted(
    strict: Database, table_name: str, tmp_path: Path
) -> None:
    expected = strict.collections(table_name, SIZES, filling=3_000)
    path = tmp_path / "out"
    path.mkdir()
    with pytest.raises(Crash):
        work(CrashingStore(path, 4, after=False), reader_of(strict.url, table_name), 5)
    stray = list((path / "parts").iterdir())
    assert stray
    result = strict.keys(table_name, "--resume", str(path), "--segments", "5")
    assert result.status == 0
    assert committed_keys(path) == Counter(expected)
    assert not any(file.exists() for file in stray)


@pytest.mark.parametrize(
    ("collections", "kills"), [prove(40, 2), prove(150, 8)], ids=["twice", "often"]
)
def test_killed_at_random_moments_and_resumed_until_done(
    dynamodb: Database, table_name: str, tmp_path: Path, collections: int, kills: int
) -> None:
    """The test kills the real command with kill -9, and sets a rate that keeps it from ending."""
    expected = Counter(dynamodb.collections(table_name, [1, 6, 1, 25] * collections, filling=700))
    chance = random.Random(17)
    path = tmp_path / "out"
    command = [sys.executable, "-m", "keyhop", "keys", table_name, "--quiet"]
    command += ["--endpoint-url", dynamodb.url, "--format", "typed-json"]
    for kill in range(kills):
        before = len(list(path.glob("commits/*")))
        where = ["--resume" if path.exists() else "--output", str(path)]
        process = subprocess.Popen([*command, *where, "--max-read-rate", "5"])
        try:
            while len(list(path.glob("commits/*"))) == before:
                assert process.poll() is None, f"it ended before kill {kill}"
                Event().wait(0.01)
            Event().wait(chance.uniform(0.0, 0.5))
        finally:
            process.kill()
            process.wait()
    subprocess.run([*command, "--resume", str(path)], check=True)
    assert committed_keys(path) == expected


@pytest.mark.parametrize(("number", "status"), [(signal.SIGINT, 130), (signal.SIGTERM, 143)])
def test_ctrl_c_ends_cleanly_and_can_be_resumed(
    strict: Database,
    table_name: str,
    tmp_path: Path,
    stand_in: StandIn,
    monkeypatch: pytest.MonkeyPatch,
    number: int,
    status: int,
) -> None:
    expected = Counter(strict.collections(table_name, SIZES, filling=3_000))
    path = tmp_path / "out"
    interrupt = interrupting(monkeypatch, number)
    stand_in.at("Scan", lambda scan: interrupt() if scan >= 60 else None)
    arguments = ("--output", str(path), "--segments", "9")
    result = strict.keys(table_name, *arguments, "--summary", str(tmp_path / "r.json"))
    stand_in.heal()
    assert result.status == status
    assert "Interrupted. Continue with --resume" in result.err
    assert not json.loads((path / "progress.json").read_bytes())["finished"]
    assert not (path / "manifest.json").exists()
    assert json.loads((tmp_path / "r.json").read_bytes())["finished"] is False
    assert strict.keys(table_name, *resuming(*arguments)).status == 0
    assert committed_keys(path) == expected


def test_an_index_is_deduplicated_across_a_resume(
    dynamodb: Database, table_name: str, tmp_path: Path
) -> None:
    """The segments of an index share keys, also on DynamoDB Local."""
    dynamodb.create(table_name, **BY_DAY)
    dynamodb.fill(
        table_name,
        (
            {"pk": {"S": f"k{n}"}, "sk": {"S": "a"}, "day": {"S": f"d{n % 40}"}}
            for n in range(2_000)
        ),
    )
    arguments = ("--index", "by-day", "--segments", "60", "--output", str(tmp_path / "out"))
    stopped = dynamodb.keys(table_name, *arguments, "--max-read-units", "10")
    assert stopped.status == 4
    assert dynamodb.keys(table_name, *resuming(*arguments)).status == 0
    days = Counter()
    for part in (tmp_path / "out" / "parts").iterdir():
        days.update(json.loads(line)["day"]["S"] for line in part.read_text().splitlines())
    assert days == Counter(f"d{n}" for n in range(40))


def test_a_directory_with_another_run_or_other_files_is_refused(
    database: Database, table_name: str, tmp_path: Path
) -> None:
    database.collections(table_name, [1] * 5)
    other = f"{table_name}-other"
    database.collections(other, [1] * 5)
    finished = tmp_path / "done"
    assert database.keys(table_name, "--output", str(finished)).status == 0
    before = {path: path.read_bytes() for path in finished.rglob("*") if path.is_file()}
    cases = {
        "holds a finished run": (table_name, "--output", finished),
        "holds a run of another table:": (other, "--resume", finished),
    }
    unfinished = tmp_path / "unfinished"
    assert database.keys(other, "--output", str(unfinished), "--max-read-units", "0.4").status == 4
    cases["holds an unfinished run"] = (other, "--output", unfinished)
    cases[f"To resume it: keyhop keys {other} --threads 2 --resume {unfinished} --format "] = (
        *(other, "--output", unfinished, "--threads", "2"),
    )
    cases["holds a run of another table"] = (table_name, "--resume", unfinished)
    cases["was begun with --format typed-json"] = (
        *(other, "--resume", unfinished, "--format", "csv"),
    )
    foreign = tmp_path / "foreign"
    foreign.mkdir()
    (foreign / "thesis.txt").write_text("mine")
    cases["holds other files"] = (table_name, "--output", foreign)
    file = tmp_path / "file"
    file.write_text("mine")
    cases["is a file"] = (table_name, "--output", file)
    for message, arguments in cases.items():
        result = database.keys(*map(str, arguments))
        assert (result.status, result.out) == (2, b"")
        assert message in result.err
        assert result.err.count("\n") == 1
    assert {path: path.read_bytes() for path in finished.rglob("*") if path.is_file()} == before
    assert [path.name for path in foreign.iterdir()] == ["thesis.txt"]


def test_a_table_that_was_created_again_is_another_table(
    database: Database, table_name: str, tmp_path: Path
) -> None:
    database.collections(table_name, [1] * 5)
    out = str(tmp_path / "out")
    assert database.keys(table_name, "--output", out, "--max-read-units", "0.4").status == 4
    database.client.delete_table(TableName=table_name)
    while table_name in database.tables():
        pass
    database.collections(table_name, [1] * 5)
    result = database.keys(table_name, "--resume", out)
    assert result.status == 2
    assert "another table" in result.err


def test_resume_accepts_a_run_that_was_killed_before_it_wrote_its_plan(
    database: Database, table_name: str, tmp_path: Path
) -> None:
    expected = Counter(database.collections(table_name, [2] * 30))
    place = tmp_path / "new"
    for _ in ("missing", "empty"):
        result = database.keys(table_name, "--resume", str(place))
        assert (result.status, "holds no run" in result.err) == (2, True)
        place.mkdir(exist_ok=True)
    (place / LOCK).touch()
    assert database.keys(table_name, "--resume", str(place)).status == 0
    assert committed_keys(place) == expected


def test_resume_of_a_finished_run_says_so(
    database: Database, table_name: str, tmp_path: Path
) -> None:
    database.collections(table_name, [2] * 30)
    where = ("--output", str(tmp_path / "out"))
    assert database.keys(table_name, *where).status == 0
    status, report = database.report(table_name, tmp_path, *resuming(*where))
    assert (status, report["out"], report["keys"], report["finished"]) == (0, [], 30, True)
    resumed = database.keys(table_name, *resuming(*where))
    assert "holds a finished run of" in resumed.err
    assert "30 keys. There is nothing more to do." in resumed.err
    assert database.keys(table_name, *resuming(*where), "--verify", "1").status == 2


@pytest.mark.parametrize("folder", ["parts", "logical/parts"])
def test_resume_of_a_finished_run_detects_a_changed_file(
    database: Database, table_name: str, tmp_path: Path, folder: str
) -> None:
    database.collections(table_name, [2] * 30)
    where = ("--output", str(tmp_path / "out"))
    assert database.keys(table_name, *where, "--logical").status == 0
    part, *_ = (tmp_path / "out" / folder).iterdir()
    part.write_bytes(part.read_bytes().replace(b"k", b"x"))
    resumed = database.keys(table_name, *resuming(*where), "--logical")
    assert (resumed.status, "was changed after its commit" in resumed.err) == (2, True)


def test_writes_during_a_list_do_not_affect_other_keys(database: Database, table_name: str) -> None:
    """Keys that exist throughout are listed exactly once, and other keys at most once."""
    stable_keys = database.collections(table_name, [1, 4, 1, 30] * 60, filling=300)
    stop = threading.Event()

    def churn() -> None:
        number = 0
        while not stop.is_set():
            number += 1
            item = {"pk": {"S": f"x{number % 500}"}, "sk": {"S": str(number % 3)}}
            database.client.put_item(TableName=table_name, Item=item)
            if number % 2:
                database.client.delete_item(TableName=table_name, Key=item)

    threads = [threading.Thread(target=churn) for _ in range(2)]
    for thread in threads:
        thread.start()
    try:
        for segments in ("1", "12"):
            result = database.keys(table_name, "--segments", segments)
            counts = Counter(key["pk"]["S"] for key in result.keys)
            assert all(counts[key] == 1 for key in stable_keys)
            assert max(counts.values()) == 1
    finally:
        stop.set()
        for thread in threads:
            thread.join()


def test_output_that_is_closed_early_prints_no_error(dynamodb: Database, table_name: str) -> None:
    dynamodb.collections(table_name, [2] * 800)
    command = f"'{sys.executable}' -m keyhop"
    ended = subprocess.run(
        f"{command} keys {table_name} --endpoint-url {dynamodb.url} --segments 40 | head -1",
        shell=True,
        capture_output=True,
        text=True,
        check=True,
    )
    assert ended.stdout.startswith("k")
    assert ended.stdout.count("\n") == 1
    assert "Traceback" not in ended.stderr
    assert "Broken" not in ended.stderr


def test_the_command_restores_the_signal_handler(strict: Database, table_name: str) -> None:
    """A program can call the command as a function, repeatedly."""
    strict.collections(table_name, [1] * 3)
    before = signal.getsignal(signal.SIGINT)
    for _ in range(2):
        assert keyhop("keys", table_name, "--endpoint-url", strict.url).status == 0
    assert signal.getsignal(signal.SIGINT) is before
