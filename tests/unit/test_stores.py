"""Check the promises of all stores, and the files of a run in them under races and damage."""

import gzip
import subprocess
import sys
import threading
from collections.abc import Iterator
from functools import partial
from io import BytesIO
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
from botocore.exceptions import ClientError, EndpointConnectionError
from keyhop.dynamodb.schema import KeyAttribute, KeySpace
from keyhop.dynamodb.usage import Usage
from keyhop.errors import (
    AwsRefused,
    BrokenPromise,
    CannotStart,
    NotPermitted,
    RunConflict,
    StoreUnavailable,
)
from keyhop.jobs.formats import Encoder
from keyhop.jobs.journal import (
    Checkpoint,
    Commit,
    EndedSegments,
    Journal,
    Part,
    RunPlan,
    Totals,
    manifest,
)
from keyhop.retries import repeat
from keyhop.scan.segments import group_order
from keyhop.scan.skip_scan import BEGINNING, Position
from keyhop.storage import s3 as bucket_module
from keyhop.storage.local import Directory
from keyhop.storage.s3 import Bucket, s3_client
from keyhop.storage.store import Memory, Store
from moto import mock_aws

from testing.s3 import MemoryS3

BUCKET = "results"
SPACE = KeySpace((KeyAttribute("pk", "B"),), KeyAttribute("sk", "S"))


@pytest.fixture
def s3(monkeypatch: pytest.MonkeyPatch) -> Iterator[Any]:
    monkeypatch.setenv("AWS_DEFAULT_REGION", "us-east-1")
    with mock_aws():
        client = s3_client()
        client.create_bucket(Bucket=BUCKET)
        yield client


@pytest.fixture(params=["directory", "bucket", "memory"])
def store(request: pytest.FixtureRequest, tmp_path: Path) -> Store:
    if request.param == "directory":
        return Directory(tmp_path / "run")
    if request.param == "memory":
        return Memory()
    return Bucket(request.getfixturevalue("s3"), BUCKET, "runs/a run/")


@pytest.fixture
def journal(tmp_path: Path) -> Journal:
    return Journal(Directory(tmp_path))


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


def test_an_existing_file_is_not_created_again(store: Store) -> None:
    assert store.create("commits/a.json", b"first")
    assert not store.create("commits/a.json", b"second")
    assert store.read("commits/a.json") == b"first"
    store.replace("commits/a.json", b"third")
    assert store.read("commits/a.json") == b"third"


def test_a_file_is_swapped_only_if_its_version_is_unchanged(store: Store) -> None:
    assert store.look("record.json") is None
    assert not store.swap("record.json", b"never", "another")
    assert store.swap("record.json", b"first", None)
    assert not store.swap("record.json", b"second", None)
    first = store.look("record.json")
    assert (first.content, first.age < 5) == (b"first", True)
    assert store.swap("record.json", b"second", first.tag)
    assert not store.swap("record.json", b"third", first.tag)
    assert store.read("record.json") == b"second"


def test_a_missing_file_is_reported(store: Store) -> None:
    assert store.read("nothing") is None
    assert list(store.chunks("nothing")) == []
    assert store.sizes("parts") == {}
    store.delete("nothing")


def test_a_piece_of_a_file_is_read_alone(store: Store) -> None:
    store.replace("parts/p", bytes(range(256)))
    assert store.span("parts/p", 10, 5) == bytes(range(10, 15))
    assert store.span("parts/p", 250, 6) == bytes(range(250, 256))
    assert store.span("nothing", 0, 5) is None


def test_one_of_many_writers_creates(store: Store) -> None:
    """moto looks and writes in two steps, so its writers go one by one; see also tests/e2e."""
    wins = [number for number in range(20) if store.create("commits/a", b"%d" % number)]
    assert wins == [0]


@pytest.mark.parametrize("size", [0, 1, 6 << 20, 8 << 20, (20 << 20) + 1])
def test_a_part_of_any_size(store: Store, size: int) -> None:
    """A bucket takes more than 8 MB in several pieces."""
    part = store.open_part("parts/p")
    content = bytes(range(256)) * (size // 256 + 1)
    for at in range(0, size, 1_000_003):
        part.write(content[at : min(size, at + 1_000_003)])
    part.close()
    assert store.sizes("parts") == {"parts/p": size}
    assert b"".join(store.chunks("parts/p")) == content[:size]


def test_folders_are_listed_with_more_files_than_a_page_holds(
    store: Store, request: pytest.FixtureRequest
) -> None:
    if isinstance(store, Bucket):

        def limit_page(params: dict[str, Any], **_: Any) -> None:
            params["MaxKeys"] = 10  # as the service does after 1,000

        events = request.getfixturevalue("s3").meta.events
        events.register("provide-client-params.s3.ListObjectsV2", limit_page)
    for number in range(35):
        store.replace(f"commits/{number}", b"x" * (number % 3))
    store.replace("commits-of-others/1", b"")
    sizes = store.sizes("commits")
    assert len(sizes) == 35
    assert sizes["commits/32"] == 2


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

        contents = []

        def look(name: str = name, gate=gate, contents: list = contents) -> None:
            gate.wait()
            for _ in range(50):
                contents.append(store.read(name))

        threads = [threading.Thread(target=write, args=(number,)) for number in range(20)]
        threads.append(threading.Thread(target=look))
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert len(wins) == 1
        complete = b"%d" % wins[0] * 100_000
        assert store.read(name) == complete
        assert set(contents) <= {None, complete}
    assert [path.name for path in (tmp_path / "commits").iterdir() if "tmp" in path.name] == []


def part_of(journal: Journal, plan: RunPlan, *segments: int) -> Part:
    """Return a closed part; segment n has n keys, each named after the segment."""
    sink = journal.new_part(plan, 0, 0)
    for segment in segments:
        sink.write(segment, [{"pk": {"B": b"%d-%d" % (segment, n)}} for n in range(segment)])
    (part,) = sink.close()
    return part


@pytest.mark.parametrize(
    ("format_", "packed"),
    [("text", False), ("jsonl", False), ("csv", False), ("jsonl", True), ("csv", True)],
)
def test_a_part_knows_the_segment_of_each_key(store: Store, format_: str, packed: bool) -> None:
    journal = Journal(store)
    plan = plan_of(format=format_, gzip=packed)
    part = part_of(journal, plan, 3, 1, 3, 2)
    assert part.keys == 9
    assert sorted((segment, keys) for segment, keys, _ in part.blocks) == [(1, 1), (2, 2), (3, 6)]
    assert part.name.endswith(f".{format_}.gz") is packed
    content = store.read(part.name)
    assert len(content) == part.size
    plain = gzip.decompress(content) if packed else content
    assert plain.startswith(Encoder(format_, SPACE).header())
    assert len(plain) == part.header + sum(size for *_, size in part.blocks)
    assert {key["pk"]["B"] for _, key in journal.keys(plan, part, {2})} == {b"2-0", b"2-1"}
    everything = list(journal.keys(plan, part))
    assert len(everything) == 9
    assert all(key["pk"]["B"].startswith(b"%d-" % segment) for segment, key in everything)


def test_a_part_without_keys_is_not_written(journal: Journal) -> None:
    assert journal.new_part(plan_of(), 0, 0).close() == ()
    assert journal.store.sizes("parts") == {}


@pytest.mark.parametrize("harm", ["cut", "one line", "longer", "other", "gone", "empty"])
@pytest.mark.parametrize("packed", [False, True])
def test_a_damaged_part_is_reported(store: Store, harm: str, packed: bool) -> None:
    journal = Journal(store)
    plan = plan_of(gzip=packed)
    part = part_of(journal, plan, 1_000)
    content = store.read(part.name)
    middle = len(content) // 2
    harmed = {
        "cut": content[:-9],
        "one line": content.splitlines(keepends=True)[0],
        "longer": content + content,
        "other": content[:middle] + bytes([content[middle] ^ 1]) + content[middle + 1 :],
        "empty": b"",
    }
    store.delete(part.name)
    if harm != "gone":
        store.replace(part.name, harmed[harm])
    with pytest.raises(BrokenPromise, match="was changed after its commit"):
        list(journal.keys(plan, part))
    with pytest.raises(BrokenPromise, match="was changed after its commit"):
        journal.check_content([part])


def test_sweeping_leaves_the_committed_parts(store: Store) -> None:
    journal = Journal(store)
    first, *_ = [part_of(journal, plan_of(gzip=packed), 1) for packed in (True, True, False)]
    assert journal.sweep([first]) == 2
    assert store.sizes("parts") == {first.name: first.size}


def test_plan_commit_and_checkpoint_survive_json(journal: Journal) -> None:
    plan = plan_of(planning=Usage(requests=2, read_units=1.0))
    assert journal.begin(plan)
    assert journal.plan() == plan
    commit = commit_of("a")
    assert journal.commit(commit)
    assert journal.commit_of(0, 0) == commit


def test_a_second_run_or_attempt_in_the_same_place_loses(journal: Journal) -> None:
    """An attempt whose answer was lost wins: S3 creates the commit, and the SDK sends it again."""
    assert journal.begin(plan_of())
    assert not journal.begin(plan_of(id="other"))
    assert journal.commit(commit_of("first"))
    assert journal.commit(commit_of("first"))
    assert not journal.commit(commit_of("second"))
    assert [commit.attempt for commit in journal.commits(0)] == ["first"]


def test_a_damaged_file_is_reported_by_name(journal: Journal) -> None:
    journal.store.create("commits/g00000-s000000.json", b"{half")
    with pytest.raises(BrokenPromise, match=r"s000000\.json is damaged"):
        list(journal.commits(0))


def test_a_run_of_another_layout_is_refused(journal: Journal) -> None:
    journal.store.create("run.json", b'{"layout": 99, "software_version": "9.9"}')
    with pytest.raises(BrokenPromise, match=r"run\.json .* keyhop 9\.9 with layout 99"):
        journal.plan()


@pytest.mark.parametrize(("field", "value"), [("format", "parquet"), ("method", "warp")])
def test_a_plan_with_an_unknown_value_is_refused(journal: Journal, field: str, value: str) -> None:
    journal.keep("run.json", {**plan_of().to_json(), field: value})
    with pytest.raises(RunConflict, match="is not the plan of a run"):
        journal.plan()


def test_a_late_summary_does_not_replace_the_manifest(journal: Journal) -> None:
    journal.write_summary({"finished": False})
    assert not journal.is_finished()
    journal.write_summary({"finished": True})
    journal.write_summary({"finished": False})
    assert journal.is_finished()


def test_the_manifest_counts_the_commits_and_the_planning() -> None:
    part = Part.from_json(
        {"name": "p", "size": 9, "sha256": "x", "header": 0, "blocks": [[1, 2, 4], [0, 3, 5]]}
    )
    plan = plan_of(segments=2, planning=Usage(requests=1, read_units=0.5), planning_seconds=0.5)
    summary = manifest(plan, Totals(plan, [commit_of("a", (part,), 2)]), True, "now")
    assert (summary["keys"], summary["requests"], summary["read_units"]) == (5, 4, 2.0)
    assert summary["segments"] == {
        "total": 2,
        "ended": 2,
        "most_keys": 3,
        "mean_keys": 2.5,
        "skew": 1.2,
        "keys": [3, 2],
    }
    assert summary["seconds"] == 1.5
    assert "2026-08" in summary["price"]


def test_a_directory_is_empty_until_it_has_a_run(tmp_path: Path) -> None:
    store = Directory(tmp_path / "run")
    assert store.is_empty()
    store.path.mkdir()
    assert store.is_empty()
    store.create("run.json", b"{}")
    assert not store.is_empty()


def test_only_one_process_works_on_a_directory(tmp_path: Path) -> None:
    first, second = Directory(tmp_path), Directory(tmp_path)
    first.lock()
    with pytest.raises(RunConflict, match="Another process"):
        second.lock()


def test_a_process_that_inherited_the_lock_does_not_keep_it(tmp_path: Path) -> None:
    """A fork of the caller inherits it, and so does a program between its fork and its exec."""
    first, second = Directory(tmp_path), Directory(tmp_path)
    first.lock()
    program = [sys.executable, "-c", "import sys; print(flush=True); sys.stdin.read()"]
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE}
    with subprocess.Popen(program, pass_fds=first.locked_by, **pipes) as heir:
        heir.stdout.readline()
        first.unlock()
        second.lock()
        second.unlock()
        heir.stdin.close()


class Failing:
    """An S3 client whose first calls raise these failures. Later calls reach S3."""

    def __init__(self, client: Any, *failures: Exception) -> None:
        self._client = client
        self._failures = list(failures)

    def __getattr__(self, name: str) -> Any:
        def call(*place: Any, **parameters: Any) -> Any:
            if self._failures:
                raise self._failures.pop(0)
            return getattr(self._client, name)(*place, **parameters)

        return call


def refusal(code: str, status: int) -> ClientError:
    return ClientError(
        {"Error": {"Code": code, "Message": "m"}, "ResponseMetadata": {"HTTPStatusCode": status}},
        "PutObject",
    )


def test_conflicting_conditional_puts_are_retried(s3: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """409 ConditionalRequestConflict: another put of the name was in flight, and nobody has won."""
    monkeypatch.setattr(bucket_module, "repeat", partial(repeat, sleep=lambda seconds: None))
    conflict = refusal("ConditionalRequestConflict", 409)
    assert Bucket(Failing(s3, conflict, conflict), BUCKET, "").create("a", b"1")
    endless = [conflict] * 100
    with pytest.raises(StoreUnavailable):
        Bucket(Failing(s3, *endless), BUCKET, "").create("b", b"1")


@pytest.mark.parametrize(
    ("failure", "error"),
    [
        (refusal("SlowDown", 503), StoreUnavailable),
        (refusal("InternalError", 500), StoreUnavailable),
        (EndpointConnectionError(endpoint_url="https://s3"), StoreUnavailable),
        (refusal("AccessDenied", 403), NotPermitted),
        (refusal("NoSuchBucket", 404), CannotStart),
        (refusal("InvalidRequest", 400), AwsRefused),
    ],
)
def test_an_error_of_s3_becomes_an_error_of_the_library(
    s3: Any, failure: Exception, error: type[Exception]
) -> None:
    calls = [
        lambda bucket: bucket.create("a", b""),
        lambda bucket: bucket.replace("a", b""),
        lambda bucket: bucket.read("a"),
        lambda bucket: bucket.delete("a"),
        lambda bucket: list(bucket.chunks("a")),
        lambda bucket: bucket.open_part("a").close(),
    ]
    for call in calls:
        with pytest.raises(error):
            call(Bucket(Failing(s3, failure), BUCKET, ""))


def test_a_reader_of_a_directory_ignores_temporary_files(tmp_path: Path) -> None:
    store = Directory(tmp_path)
    store.create("commits/first", b"1")
    over = threading.Event()

    def write() -> None:
        while not over.is_set():
            store.replace("commits/second", b"22")

    writer = threading.Thread(target=write)
    writer.start()
    for _ in range(300):
        assert set(store.sizes("commits")) <= {"commits/first", "commits/second"}
    over.set()
    writer.join()


@pytest.mark.parametrize("operation", ["UploadPart", "CompleteMultipartUpload"])
def test_an_upload_in_pieces_that_fails_leaves_no_pieces(s3: Any, operation: str) -> None:
    """The bucket would charge for them until its rule deletes them. s3transfer aborts uploads."""
    operations: list[str] = []

    def record(model: Any, **_: Any) -> None:
        operations.append(model.name)
        if model.name == operation:
            error = {"Error": {"Code": "AccessDenied"}, "ResponseMetadata": {"HTTPStatusCode": 403}}
            raise ClientError(error, operation)

    s3.meta.events.register("before-call.s3", record)
    part = Bucket(s3, BUCKET, "runs/r/").open_part("parts/large")
    part.write(b"x" * (bucket_module.PIECE_BYTES + 1))
    with pytest.raises(NotPermitted):
        part.close()
    assert "AbortMultipartUpload" in operations
    assert "Uploads" not in s3.list_multipart_uploads(Bucket=BUCKET)


SEGMENTS = 10
GROUPS = 2
"""The segments and groups of a run whose segments are checked by name, not only by their sum."""


def commit(group: int, place: int, unread: set[int], ended: int, filled: tuple[int, ...] = ()):
    blocks = tuple((segment, 1, 1) for segment in filled)
    parts = (Part("p", len(blocks), "", 0, blocks),) if blocks else ()
    checkpoint = Checkpoint(place, dict.fromkeys(unread, BEGINNING))
    return commit_of("a", parts, ended, group=group, checkpoint=checkpoint)


def complete_run(plan: RunPlan) -> list[Commit]:
    """Return three commits of each group. One segment remains open from each commit to the next."""
    commits = []
    for group in range(plan.groups):
        order = list(group_order(group, plan.groups, plan.segments))
        unread: set[int] = set()
        for previous, place in pairwise([0, 2, 4, len(order)]):
            active = unread | set(order[previous:place])
            unread = {order[place - 1]} if place < len(order) else set()
            commits.append(commit(group, place, unread, len(active - unread), tuple(active)))
    return commits


@pytest.fixture
def plan() -> RunPlan:
    return plan_of(SEGMENTS, groups=GROUPS)


def test_a_complete_run_has_each_segment_once(plan: RunPlan) -> None:
    ended = EndedSegments(plan)
    for commit in complete_run(plan):
        ended.add(commit)
    ended.check_complete()


def test_a_segment_without_an_end_is_reported_by_name(plan: RunPlan) -> None:
    ended = EndedSegments(plan)
    for each in complete_run(plan)[:-1]:
        ended.add(each)
    last = list(group_order(1, GROUPS, SEGMENTS))[-1]
    with pytest.raises(BrokenPromise, match=rf"{last} \(0 times\).* Do not use its result"):
        ended.check_complete()


def test_a_correct_sum_does_not_hide_a_segment_that_was_ended_twice(plan: RunPlan) -> None:
    """A segment that is skipped, and another that is ended twice, leave the count unchanged."""
    order = list(group_order(0, GROUPS, SEGMENTS))
    ended = EndedSegments(plan)
    ended.add(commit(0, 2, set(), 2))
    with pytest.raises(BrokenPromise, match="does not belong to it"):
        ended.add(commit(0, 5, {order[0]}, 3))


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        (commit(0, 2, set(), 1), "ended 1 segment by its count, 2 by name"),
        (commit(0, 6, set(), 6), "is at place 6"),
        (commit(2, 0, set(), 0), "is at place 0"),
        (commit(0, 0, {3}, 0), "has read segment 3"),
        (commit(0, 1, set(), 1, filled=(7,)), "has read segment 7"),
    ],
)
def test_an_impossible_commit_is_reported(plan: RunPlan, wrong: Commit, message: str) -> None:
    with pytest.raises(BrokenPromise, match=message):
        EndedSegments(plan).add(wrong)


def test_places_never_decrease(plan: RunPlan) -> None:
    ended = EndedSegments(plan)
    ended.add(commit(0, 2, set(), 2))
    with pytest.raises(BrokenPromise, match="is at place 1"):
        ended.add(commit(0, 1, set(), 0))


IN = {"Bucket": BUCKET}
AT = {**IN, "Key": "runs/a/x"}
NOWHERE = {"Bucket": "nobodys", "Key": "x"}
CALLS: list[tuple[str, dict[str, Any]]] = [
    ("list_objects_v2", IN),
    ("get_object", AT),
    ("delete_object", AT),
    ("put_object", {**AT, "Body": b"never", "IfMatch": '"another"'}),
    ("put_object", {**AT, "Body": b"the first", "IfNoneMatch": "*"}),
    ("put_object", {**AT, "Body": b"never", "IfNoneMatch": "*"}),
    ("get_object", AT),
    ("put_object", {**AT, "Body": b"never", "IfMatch": '"another"'}),
    ("put_object", {**AT, "Body": b"2", "IfMatch": '"7e79441b624883ef4f3216c5b1ef2e3a"'}),
    ("put_object", {**AT, "Body": b"0123456789"}),
    ("put_object", {**AT, "Body": b"0123456789", "IfMatch": '"781e5e245d69b566979b86e28d23f2c7"'}),
    *(("get_object", {**AT, "Range": f"bytes={r}"}) for r in ("0-3", "2-2", "4-99", "10-12")),
    *(("put_object", {**IN, "Key": key}) for key in ("runs/a/é", "runs/a/y", "runs/b", "runs/a0")),
    ("list_objects_v2", {**IN, "Prefix": "runs/a/"}),
    ("list_objects_v2", {**IN, "Prefix": "nothing/"}),
    ("list_objects_v2", {**IN, "Prefix": "runs/", "MaxKeys": 2}),
    ("delete_object", AT),
    ("list_objects_v2", IN),
    ("delete_bucket", IN),
    ("get_object", NOWHERE),
    ("put_object", NOWHERE),
    ("delete_object", NOWHERE),
    ("list_objects_v2", {"Bucket": "nobodys"}),
    ("delete_bucket", {"Bucket": "nobodys"}),
]


@pytest.fixture
def both(s3: Any) -> tuple[Any, Any]:
    """Return moto's S3, and the S3 in memory that other tests use instead of it."""
    return s3, MemoryS3(BUCKET)


def answer_of(client: Any, operation: str, arguments: dict[str, Any]) -> Any:
    """Return the parts of an answer, or of an error, that do not depend on the time."""
    try:
        answer = dict(getattr(client, operation)(**arguments))
    except ClientError as error:
        status = error.response["ResponseMetadata"]["HTTPStatusCode"]
        return error.operation_name, error.response["Error"]["Code"], status
    fields = ("ETag", "ContentLength", "ContentRange", "KeyCount", "IsTruncated", "Prefix")
    parts = {name: answer[name] for name in fields if name in answer}
    parts["status"] = answer["ResponseMetadata"]["HTTPStatusCode"]
    if "Body" in answer:
        parts["body"] = b"".join(answer["Body"].iter_chunks(3))
        parts["changed"] = answer["LastModified"].tzinfo is not None
    if "Contents" in answer:
        parts["contents"] = [
            {name: entry[name] for name in ("Key", "Size", "ETag")} for entry in answer["Contents"]
        ]
    return parts


def test_both_answer_each_call_alike(both: tuple[Any, Any]) -> None:
    moto, memory = both
    for call in CALLS:
        assert answer_of(memory, *call) == answer_of(moto, *call), call


def test_pages_and_uploads_are_alike(both: tuple[Any, Any]) -> None:
    listed = []
    for client in both:
        for number in range(25):
            client.upload_fileobj(BytesIO(b"x" * number), BUCKET, f"parts/{number}")
        pages = client.get_paginator("list_objects_v2").paginate(**IN, MaxKeys=10)
        listed.append([[(e["Key"], e["Size"]) for e in page["Contents"]] for page in pages])
    assert listed[0] == listed[1]
    assert len(listed[0]) == 3
