"""`keyhop keys --logical` lists each logical key once, despite shards, segments and crashes."""

import csv
import io
import itertools
import json
import math
from collections import Counter
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path
from threading import Event

import pytest
from keyhop.dynamodb.client import Connection, connect
from keyhop.dynamodb.endpoint import Endpoint
from keyhop.dynamodb.rate_limit import Budget
from keyhop.dynamodb.schema import KeyAttribute, KeySpace
from keyhop.dynamodb.tables import look_up
from keyhop.errors import BrokenPromise, CannotStart, Stopped
from keyhop.jobs.journal import Journal, RunPlan
from keyhop.jobs.lifecycle import conclude, sum_up
from keyhop.jobs.pages import PartPages, TablePages
from keyhop.jobs.task import Ended, Summary
from keyhop.jobs.worker import GroupWorker
from keyhop.keys.request import keys_request
from keyhop.keys.task import Fold, KeysTask, check_can_fold, folded
from keyhop.scan.reader import PageReader
from keyhop.scan.skip_scan import PageResult
from keyhop.sharding.key.shards import Phase, Shards, to_item
from keyhop.sharding.logical_keys import KnownShards, fold_of, most_shards
from keyhop.storage.local import Directory

from testing.databases import BY_DAY, Database, keyhop, resuming
from testing.marks import prove
from tests.integration.crashing import Crash, CrashingStore, new_plan

SHARDS = [1, 2, 7, 1, 32, 1, 3, 1] * 6
PLAIN = ["/plain.txt", "/no_suffix_", "/zero_0", "/leading_01", "/large_1001", "_7", "/f3"]
"""Keys without a shard suffix, which are listed unchanged."""


def sharded(database: Database, table: str, plain: list[str] = PLAIN) -> set[str]:
    """Create a table of sharded and plain keys, and return its logical keys."""
    physical = {
        f"/f{n}.txt_{shard}" for n, count in enumerate(SHARDS) for shard in range(1, count + 1)
    }
    database.create(table, ("path", "S"), ("at", "S"))
    keys = [*sorted(physical), *plain]
    database.fill(
        table,
        (
            {"path": {"S": key}, "at": {"S": f"{n}"}}
            for key in keys
            for n in range(1 + len(key) % 3)
        ),
    )
    return {f"/f{n}.txt" for n in range(len(SHARDS))} | set(plain)


def paths(result) -> Counter[str]:
    return Counter(key["path"]["S"] for key in result.keys)


def in_files(path: Path, folder: str = "logical") -> Counter[str]:
    """Return the keys in the files that the manifest names."""
    manifest = json.loads((path / "manifest.json").read_bytes())
    assert manifest["finished"]
    keys: Counter[str] = Counter()
    for part in manifest["parts"]:
        assert part["name"].startswith(f"{folder}/")
        lines = (path / part["name"]).read_text().splitlines()
        assert len(lines) == part["keys"]
        keys.update(json.loads(line)["path"]["S"] for line in lines)
    assert manifest["keys"] == sum(keys.values())
    return keys


@pytest.mark.parametrize(
    "more", [(), ("--method", "scan"), prove(("--verify", "1")), prove(("--threads", "8"))]
)
def test_each_logical_key_is_printed_once(
    database: Database, table_name: str, more: tuple[str, ...]
) -> None:
    expected = Counter(sharded(database, table_name))
    result = database.keys(table_name, "--logical", "--segments", "9", *more)
    assert result.status == 0
    assert paths(result) == expected
    physical = sum(SHARDS) + len(PLAIN)
    assert f"{len(expected)} logical keys" in result.err
    assert f"{sum(SHARDS)} of {physical} physical keys: every key that ends in _1 to _1000" in (
        result.err
    )


def test_logical_keys_are_written_to_files_and_counted_in_the_manifest(
    strict: Database, table_name: str, tmp_path: Path
) -> None:
    expected = Counter(sharded(strict, table_name))
    where = tmp_path / "run"
    report = tmp_path / "r.json"
    options = ("--logical", "--segments", "9", "--output", str(where), "--summary", str(report))
    result = strict.keys(table_name, *options)
    assert (result.status, result.out) == (0, b"")
    assert in_files(where) == expected
    manifest = json.loads((where / "manifest.json").read_bytes())
    physical = sum(SHARDS) + len(PLAIN)
    logical = {"separator": "_", "metadata": None, "physical_keys": physical, "folded": sum(SHARDS)}
    assert manifest["logical"] == json.loads(report.read_bytes())["logical"] == logical
    assert sum(manifest["segments"]["keys"]) == physical
    assert json.loads(report.read_bytes())["keys"] == len(expected)


def test_a_run_without_logical_lists_physical_keys(
    strict: Database, table_name: str, tmp_path: Path
) -> None:
    sharded(strict, table_name)
    result = strict.keys(table_name, "--output", str(tmp_path), "--summary", str(tmp_path / "r"))
    assert result.status == 0
    for name in ("run.json", "manifest.json", "r"):
        assert not {"fold", "logical"} & set(json.loads((tmp_path / name).read_bytes()))
    assert json.loads((tmp_path / "run.json").read_bytes())["options"] == {}
    assert sum(in_files(tmp_path, "parts").values()) == sum(SHARDS) + len(PLAIN)
    assert not (tmp_path / "logical").exists()


@pytest.mark.parametrize("format_", ["text", "csv"])
def test_logical_keys_as_text_and_csv(
    strict: Database, table_name: str, tmp_path: Path, format_: str
) -> None:
    expected = Counter(sharded(strict, table_name))
    where = ("--endpoint-url", strict.url, "--output", str(tmp_path))
    assert keyhop("keys", table_name, *where, "--logical", "--format", format_).status == 0
    (part,) = (tmp_path / "logical/parts").iterdir()
    text = part.read_text()
    rows = text.splitlines()
    if format_ == "csv":
        header, *cells = csv.reader(io.StringIO(text))
        assert header == ["path"]
        rows = [row[0] for row in cells]
    assert Counter(rows) == expected


def test_binary_keys_and_another_separator(strict: Database, table_name: str) -> None:
    strict.create(table_name, ("pk", "B"), ("sk", "S"))
    physical = [b"\xff\x00::1", b"\xff\x00::2", b"a::1000", b"a::", b"b_1"]
    strict.fill(table_name, ({"pk": {"B": key}, "sk": {"S": "1"}} for key in physical))
    result = strict.keys(table_name, "--logical", "--separator", "::", "--segments", "3")
    keys = Counter(bytes(key["pk"]["B"]) for key in result.keys)
    assert keys == Counter([b"\xff\x00", b"a", b"a::", b"b_1"])
    assert "ends in ::1 to ::1000" in result.err


def test_keys_from_the_key_index_are_folded_too(
    dynamodb: Database, table_name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))
    expected = Counter(sharded(dynamodb, table_name))
    where = ("--endpoint-url", dynamodb.url)
    assert keyhop("index", "build", table_name, *where, "--yes", "--quiet").status == 0
    by_index = ("--method", "index", "--accept", "stale-index", "--logical")
    result = dynamodb.keys(table_name, *by_index)
    assert result.status == 0
    assert paths(result) == expected
    files = ("--output", str(tmp_path / "run"))
    assert dynamodb.keys(table_name, *by_index, *files).status == 0
    assert in_files(tmp_path / "run") == expected


@pytest.mark.parametrize(
    ("options", "says"),
    [
        (["--separator", "-"], "--separator and --metadata are for --logical"),
        (["--metadata", "shards"], "--separator and --metadata are for --logical"),
        (["--logical", "--separator", "1"], "The separator '1' is not possible"),
        (["--logical", "--separator", ""], "--separator is empty"),
        (["--logical", "--index", "by-day"], "--logical folds the keys of the table"),
        (["--logical", "--dry-run"], "--dry-run samples physical keys"),
        (["--logical", "--metadata", "no-such-table"], "There is no table 'no-such-table'"),
    ],
)
def test_invalid_options_for_logical_keys_are_refused(
    strict: Database, table_name: str, options: list[str], says: str
) -> None:
    strict.create(table_name, **BY_DAY)
    result = keyhop("keys", table_name, "--endpoint-url", strict.url, *options)
    assert (result.status, result.out) == (2, b"")
    assert says in result.err


def test_a_number_cannot_carry_a_suffix(strict: Database, table_name: str) -> None:
    strict.create(table_name, ("pk", "N"))
    result = strict.keys(table_name, "--logical")
    assert result.status == 2
    assert "the partition key is a number (N), which cannot carry a shard's suffix" in result.err
    with pytest.raises(CannotStart):
        check_can_fold(KeySpace((KeyAttribute("a", "S"), KeyAttribute("b", "S"))))


def metadata_table(database: Database, name: str, shards: dict[str, Shards]) -> str:
    database.create(name, ("path", "S"), None)
    items = ({"path": {"S": key}, **to_item(value)} for key, value in shards.items())
    database.fill(name, items)
    return name


def with_shards(number: int, readable: int | None = None) -> Shards:
    """Return shards that are steady, or that are being drained if `readable` is given."""
    return Shards(
        number,
        1_000,
        ((1_000, number),),
        number,
        readable or number,
        Phase.STEADY if readable is None else Phase.MOVING,
        placed_by=frozenset({number}),
    )


LOOKING_LIKE_SHARDS = ["/photo_3", "/photo_4", "/album_3", "/album", "/log", "/log_3"]
"""The logical keys of the table with metadata, which has 10 physical keys."""


def with_keys_that_look_like_shards(database: Database, table: str) -> str:
    """Create a table and its metadata table, and return the name of the latter.

    /photo_3 is an ordinary key, as /photo has no metadata and /album has only two shards.
    """
    physical = ["/album_1", "/album_2", "/log_1", "/log_2", "/log_3", "/log_3_1"]
    database.create(table, ("path", "S"), ("at", "S"))
    keys = [*LOOKING_LIKE_SHARDS[:4], *physical]
    database.fill(table, ({"path": {"S": key}, "at": {"S": "1"}} for key in keys))
    shards = {"/album": with_shards(2), "/log": with_shards(1, 3), "/log_3": with_shards(1)}
    return metadata_table(database, f"{table}-shards", shards)


@pytest.mark.parametrize("to_directory", [False, True])
def test_with_metadata_a_key_that_only_looks_like_a_shard_stays(
    database: Database, table_name: str, tmp_path: Path, to_directory: bool
) -> None:
    metadata = with_keys_that_look_like_shards(database, table_name)
    options = ["--logical", "--metadata", metadata, "--segments", "5"]
    if to_directory:
        options += ["--output", str(tmp_path / "run")]
    result = database.keys(table_name, *options)
    assert result.status == 0
    keys = in_files(tmp_path / "run") if to_directory else paths(result)
    assert keys == Counter(LOOKING_LIKE_SHARDS)
    assert "10 physical keys: those that end in _1 to _1000 and that" in result.err
    assert "  folded    6 of 10" in result.err


def test_a_metadata_table_of_another_shape_is_refused(strict: Database, table_name: str) -> None:
    sharded(strict, table_name)
    strict.create("other", ("key", "S"), None)
    for name in ("other", table_name):
        result = strict.keys(table_name, "--logical", "--metadata", name)
        assert (result.status, result.out) == (2, b"")
        assert "is not the shard-metadata table of this table: its key would be path (S)" in (
            result.err
        )


def test_shards_that_were_drained_during_the_run_are_still_folded(
    strict: Database, table_name: str
) -> None:
    """`readable` was lowered after the last shards were read, and before the fold."""
    drained = Shards(1, 5_000, ((1_000, 4), (4_000, 1)), 1, 1)
    assert most_shards(drained, began=4_500.0) == 4
    assert most_shards(drained, began=9_000.0) == 1
    grown = Shards(4, 5_000, ((1_000, 1), (5_000, 4)), 1, 4, Phase.ANNOUNCED)
    assert most_shards(grown, began=4_500.0) == most_shards(grown, began=9_000.0) == 4
    shards = KnownShards()
    shards.learn([({"S": "/f"}, drained, {})], began=4_500.0)
    assert [shards.shard_count({"S": key}) for key in ("/f", "/g")] == [4, 0]
    options = {"separator": "_", "metadata": metadata_table(strict, table_name, {"/f": drained})}
    began = datetime.fromtimestamp(4_500.0, UTC).isoformat()
    space = KeySpace((KeyAttribute("path", "S"),))
    fold = fold_of(connect(Endpoint(url=strict.url)), space, options, began)
    physical = ["/f_1", "/f_4", "/f_5", "/g_1", "/f"]
    listed = fold([{"path": {"S": key}} for key in physical])
    assert [key["path"]["S"] for key in listed] == ["/f", "/f", "/f_5", "/g_1", "/f"]


class CrashingFold(CrashingStore):
    """A crashing store that counts deletions too, as a fold that lost a race deletes its parts."""

    def delete(self, name):
        return self._step(lambda: super(CrashingFold, self).delete(name))


BY_SUFFIX = keys_request("any", logical=True).options
Run = tuple[Journal, RunPlan, KeysTask]


def task_at(connection: Connection) -> KeysTask:
    return KeysTask(connection, BY_SUFFIX)


def read_all(journal: Journal, connection: Connection, table: str) -> RunPlan:
    """Start or resume a run, and read the table completely in slices of minimum length."""
    source = look_up(connection, table).source()
    reader = PageReader(connection, source, Budget())
    plan = journal.plan()
    if plan is None:
        plan = new_plan(source, 5, **BY_SUFFIX)
        journal.begin(plan)
    group = GroupWorker(journal, plan, 0, TablePages(reader, hop=True, total=5), 3)
    group.slices = 0.01, 0.01
    assert group.run()
    return plan


def work(store: Directory, url: str, table: str) -> None:
    """Read the table and fold the keys, as the command does."""
    journal = Journal(store)
    connection = connect(Endpoint(url=url))
    plan = read_all(journal, connection, table)
    assert conclude(journal, plan, task_at(connection))[1]["finished"]


@pytest.mark.prove
@pytest.mark.parametrize("after", [prove(False), True])
def test_a_crash_at_every_write_changes_nothing(
    strict: Database, table_name: str, tmp_path: Path, after: bool, monkeypatch
) -> None:
    in_small_slices(monkeypatch)
    expected = Counter(sharded(strict, table_name))
    crash_at, crashed = 0, True
    while crashed:
        crash_at += 1
        path = tmp_path / str(crash_at)
        path.mkdir()
        try:
            work(CrashingFold(path, crash_at, after), strict.url, table_name)
            crashed = False
        except Crash:
            work(Directory(path), strict.url, table_name)
        assert in_files(path) == expected
        manifest = json.loads((path / "manifest.json").read_bytes())
        parts = {part["name"] for part in manifest["parts"]}
        assert len(parts) > 1
        files = {f"logical/{name}" for name in Directory(path / "logical").sizes("parts")}
        assert files == parts, "files of a crashed fold remain"
    assert crash_at > 8


def in_small_slices(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let a fold read few keys per page, and end its slices after two pages."""
    monkeypatch.setattr("keyhop.jobs.pages.KEYS_AT_ONCE", 10)
    step, calls = PartPages.step, itertools.count(1)

    def stopping_step(*args) -> PageResult:
        if next(calls) % 3 == 0:
            raise Stopped
        return step(*args)

    monkeypatch.setattr(PartPages, "step", stopping_step)


@pytest.fixture
def run(strict: Database, table_name: str, tmp_path: Path) -> Run:
    """A run that has read all keys, and not folded them."""
    sharded(strict, table_name)
    store = Directory(tmp_path / "run")
    store.make()
    journal = Journal(store)
    connection = connect(Endpoint(url=strict.url))
    plan = read_all(journal, connection, table_name)
    assert not journal.is_finished()
    return journal, plan, task_at(connection)


def fold(journal: Journal, plan: RunPlan, fold_of: Callable[[], Fold]) -> Summary | None:
    totals, summary = sum_up(journal, plan)
    summary["ended"] = "now"
    return folded(Ended(journal, plan, totals, summary, math.inf, Event()), fold_of, {})


def test_only_one_of_two_concurrent_folds_counts(run: Run) -> None:
    journal, plan, task = run
    inner = []

    def suffixes() -> Fold:
        return fold_of(task.connection, plan.space, BY_SUFFIX["fold"], "")

    def overtaken() -> Fold:
        inner.append(fold(journal, plan, suffixes))
        return suffixes()

    outer = fold(journal, plan, overtaken)
    assert [outer] == inner
    assert outer is not None
    files = journal.within("logical").store.sizes("parts")
    assert {f"logical/{name}" for name in files} == {part["name"] for part in outer["parts"]}
    assert outer["logical"] == {"physical_keys": sum(SHARDS) + len(PLAIN), "folded": sum(SHARDS)}


def test_a_resume_completes_an_interrupted_fold(
    run: Run, strict: Database, table_name: str
) -> None:
    journal, plan, task = run
    stop = Event()
    stop.set()
    assert conclude(journal, plan, task, stop=stop)[1] is None
    assert not journal.is_finished()
    where = str(journal.store.path)  # type: ignore[attr-defined]
    for wrong in (["--logical", "--separator", "-"], ["--logical", "--metadata", table_name]):
        refused = strict.keys(table_name, "--resume", where, *wrong)
        assert refused.status == 2
    result = strict.keys(table_name, "--resume", where)
    assert result.status == 0
    assert sum(in_files(Path(where)).values()) == len(SHARDS) + len(PLAIN)


def test_a_run_that_was_started_without_logical_cannot_be_resumed_with_it(
    strict: Database, table_name: str, tmp_path: Path
) -> None:
    sharded(strict, table_name)
    where = ("--output", str(tmp_path / "run"))
    few = ("--segments", "64", "--threads", "1", "--max-read-units", "10")
    assert strict.keys(table_name, *where, *few).status == 4
    result = strict.keys(table_name, *resuming(*where), "--logical")
    assert result.status == 2
    assert "was begun without --logical: leave it out" in result.err


@pytest.mark.parametrize("harm", ["gone", "not json", "part"])
def test_damage_to_a_fold_is_detected(run: Run, harm: str) -> None:
    journal, plan, task = run
    (part,) = conclude(journal, plan, task)[1]["parts"]
    journal.store.delete("manifest.json")
    if harm == "not json":
        journal.store.replace("logical/commits/g00000-s000000.json", b"{}")
    elif harm == "part":
        journal.store.replace(part["name"], b"x")
    else:
        journal.store.delete(part["name"])
    with pytest.raises(BrokenPromise):
        conclude(journal, plan, task)
    assert not journal.is_finished()
