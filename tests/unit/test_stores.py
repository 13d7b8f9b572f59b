"""What a directory and a bucket both promise, and what a bucket says when S3 does not answer."""

import gzip
import threading
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from botocore.exceptions import ClientError, EndpointConnectionError
from keyhop.errors import AwsRefused, BrokenPromise, CannotStart, NotPermitted, StoreUnavailable
from keyhop.jobs.journal import Journal
from keyhop.retries import repeat
from keyhop.storage import s3 as bucket_module
from keyhop.storage.local import Directory
from keyhop.storage.s3 import Bucket, s3_client
from keyhop.storage.store import Store
from moto import mock_aws

from tests.unit.test_store import plan_of

BUCKET = "results"


@pytest.fixture
def s3(monkeypatch: pytest.MonkeyPatch) -> Iterator[Any]:
    monkeypatch.setenv("AWS_DEFAULT_REGION", "us-east-1")
    with mock_aws():
        client = s3_client()
        client.create_bucket(Bucket=BUCKET)
        yield client


@pytest.fixture(params=["directory", "bucket"])
def store(request: pytest.FixtureRequest, tmp_path: Path) -> Store:
    if request.param == "directory":
        return Directory(tmp_path / "run")
    return Bucket(request.getfixturevalue("s3"), BUCKET, "runs/a run/")


def test_what_is_there_is_not_created_again(store: Store) -> None:
    assert store.create("commits/a.json", b"first")
    assert not store.create("commits/a.json", b"second")
    assert store.read("commits/a.json") == b"first"
    store.replace("commits/a.json", b"third")
    assert store.read("commits/a.json") == b"third"


def test_a_file_is_swapped_only_for_the_version_that_was_seen(store: Store) -> None:
    assert store.look("record.json") is None
    assert not store.swap("record.json", b"never", "another")
    assert store.swap("record.json", b"first", None)
    assert not store.swap("record.json", b"second", None)
    first = store.look("record.json")
    assert first is not None
    assert (first.content, first.age < 5) == (b"first", True)
    assert store.swap("record.json", b"second", first.tag)
    assert not store.swap("record.json", b"third", first.tag)
    assert store.read("record.json") == b"second"


def test_what_is_not_there_is_told(store: Store) -> None:
    assert store.read("nothing") is None
    assert list(store.chunks("nothing")) == []
    assert store.sizes("parts") == {}
    store.delete("nothing")


def test_a_piece_of_a_file_is_read_by_itself(store: Store) -> None:
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

        def of_ten(params: dict[str, Any], **_: Any) -> None:
            params["MaxKeys"] = 10  # as the service does after 1,000

        events = request.getfixturevalue("s3").meta.events
        events.register("provide-client-params.s3.ListObjectsV2", of_ten)
    for number in range(35):
        store.replace(f"commits/{number}", b"x" * (number % 3))
    store.replace("commits-of-others/1", b"")
    sizes = store.sizes("commits")
    assert len(sizes) == 35
    assert sizes["commits/32"] == 2


def test_a_compressed_part_tells_the_segment_of_each_key(store: Store) -> None:
    journal = Journal(store)
    for format_ in ("jsonl", "csv"):
        plan = plan_of(format=format_, gzip=True)
        sink = journal.new_part(plan, 0, 0)
        for segment in (3, 1, 3, 2):
            sink.write(segment, [{"pk": {"B": b"%d-%d" % (segment, n)}} for n in range(segment)])
        (part,) = sink.close()
        assert part.name.endswith(f".{format_}.gz")
        content = store.read(part.name)
        assert content is not None
        assert len(content) == part.size
        assert len(gzip.decompress(content)) == part.header + sum(size for *_, size in part.blocks)
        assert {key["pk"]["B"] for _, key in journal.keys(plan, part, {2})} == {b"2-0", b"2-1"}
        assert len(list(journal.keys(plan, part))) == 9


@pytest.mark.parametrize("harm", ["cut", "longer", "other", "gone", "empty"])
@pytest.mark.parametrize("packed", [False, True])
def test_a_harmed_part_is_told_however_it_was_harmed(store: Store, harm: str, packed: bool) -> None:
    journal = Journal(store)
    plan = plan_of(gzip=packed)
    sink = journal.new_part(plan, 0, 0)
    sink.write(0, [{"pk": {"B": b"%d" % n}} for n in range(1_000)])
    (part,) = sink.close()
    content = store.read(part.name)
    assert content is not None
    middle = len(content) // 2
    harmed = {
        "cut": content[:-9],
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


def test_sweeping_leaves_what_is_committed(store: Store) -> None:
    journal = Journal(store)
    parts = []
    for packed in (True, True, False):
        sink = journal.new_part(plan_of(gzip=packed), 0, 0)
        sink.write(0, [{"pk": {"B": b"a"}}])
        parts += sink.close()
    assert journal.sweep(parts[:1]) == 2
    assert set(store.sizes("parts")) == {parts[0].name}


class Failing:
    """An S3 client whose calls fail as told, before any that reach S3."""

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


def test_a_conflict_of_conditional_puts_is_tried_again(
    s3: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """409 ConditionalRequestConflict: another put of the name was under way; nobody has won."""
    monkeypatch.setattr(bucket_module, "repeat", partial(repeat, sleep=lambda seconds: None))
    conflict = refusal("ConditionalRequestConflict", 409)
    assert Bucket(Failing(s3, conflict, conflict), BUCKET, "").create("a", b"1")
    endless = [conflict] * 100
    with pytest.raises(StoreUnavailable):
        Bucket(Failing(s3, *endless), BUCKET, "").create("b", b"1")


@pytest.mark.parametrize(
    ("failure", "told"),
    [
        (refusal("SlowDown", 503), StoreUnavailable),
        (refusal("InternalError", 500), StoreUnavailable),
        (EndpointConnectionError(endpoint_url="https://s3"), StoreUnavailable),
        (refusal("AccessDenied", 403), NotPermitted),
        (refusal("NoSuchBucket", 404), CannotStart),
        (refusal("InvalidRequest", 400), AwsRefused),
    ],
)
def test_what_s3_refuses_is_told_as_what_it_means(
    s3: Any, failure: Exception, told: type[Exception]
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
        with pytest.raises(told):
            call(Bucket(Failing(s3, failure), BUCKET, ""))


def test_no_reader_of_a_directory_trips_over_files_that_come_and_go(tmp_path: Path) -> None:
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
    """They would be paid for until the bucket's rule drops them; s3transfer aborts the upload."""
    asked: list[str] = []

    def ask(model: Any, **_: Any) -> None:
        asked.append(model.name)
        if model.name == operation:
            error = {"Error": {"Code": "AccessDenied"}, "ResponseMetadata": {"HTTPStatusCode": 403}}
            raise ClientError(error, operation)

    s3.meta.events.register("before-call.s3", ask)
    part = Bucket(s3, BUCKET, "runs/r/").open_part("parts/large")
    part.write(b"x" * (bucket_module.PIECE_BYTES + 1))
    with pytest.raises(NotPermitted):
        part.close()
    assert "AbortMultipartUpload" in asked
    assert "Uploads" not in s3.list_multipart_uploads(Bucket=BUCKET)
