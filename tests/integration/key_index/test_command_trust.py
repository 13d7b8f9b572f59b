"""The command `keyhop keys` reads the key index of a deployment only if it is trusted."""

import json
from pathlib import Path
from typing import Any
from unittest.mock import Mock

import pytest
from botocore.exceptions import ClientError
from keyhop.errors import CannotStart, GaveUp
from keyhop.jobs.local import LocalJob
from keyhop.key_index.keeper import Collections
from keyhop.key_index.registry import Registry
from keyhop.public import key_index, tables
from keyhop.storage.local import Directory
from keyhop.streams.event_source import Watch

from testing.databases import keyhop, resuming
from testing.keepers import FakeLambda
from testing.key_index_tables import delete_index
from tests.integration.key_index.command import STACK, Index, failing_after


def test_auto_reads_a_verified_index_that_has_a_keeper(
    index: Index, lambdas: FakeLambda, monkeypatch: pytest.MonkeyPatch
) -> None:
    index.collections([2] * 5)
    index.attach(lambdas)
    index.refuses("give --stack", "build")
    index.built(*STACK)
    read, keys = index.keys(*STACK)
    assert ("index: the key index is kept" in read.err, len(keys)) == (True, 5)
    assert "no verification of it is on record" in index.keys()[0].err
    index.put_sentinels("nobody")
    assert index("verify", "--grace", "0", *STACK).status == 3
    assert index("verify", "--grace", "0", *STACK).status == 0
    read, keys = index.keys(*STACK)
    assert "found no drift" in read.err
    assert len(keys) == 5
    plan = ("keys", index.table, "--dry-run", "--endpoint-url", index.database.url, "-f", "json")
    estimate = json.loads(keyhop(*plan, *STACK).out)
    assert (estimate["method"], estimate["key_index"]["read"]) == ("index", True)
    assert estimate["methods"]["index"]["read_units"]["estimate"] == 0.5
    estimate = json.loads(keyhop(*plan).out)
    assert (estimate["method"], "index" in estimate["methods"]) == ("skip", False)
    reason = "no verification of it is on record here"
    assert estimate["key_index"] == {"read": False, "why": reason}
    status = index("status", *STACK).out.decode()
    assert "auto      reads it" in status
    assert "lease     free" in status
    index.refuses("RemoveKeyIndex", "remove", *STACK)
    monkeypatch.setattr(Watch, "followers", lambda watch, stream: None)
    assert "cannot be seen" in index.keys(*STACK)[0].err
    assert "--accept unseen-keeper" in index("remove", *STACK).err
    assert index("remove", "--accept", "unseen-keeper", *STACK).status == 0


def test_no_keys_are_printed_before_the_index_proves_trustworthy(
    index: Index, lambdas: FakeLambda, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    index.create_with_keeper(lambdas, [2] * 30)
    uuid = next(iter(lambdas.mappings))
    work = LocalJob.work

    def work_without_keeper(job: LocalJob, *args: Any, **kwargs: Any) -> bool:
        """Turn the keeper off and delete sentinels before the index is read."""
        if job.plan.method == "index":
            lambdas.update_event_source_mapping(uuid, Enabled=False)
            index.delete_sentinels("k1", "k2")
        return work(job, *args, **kwargs)

    monkeypatch.setattr(LocalJob, "work", work_without_keeper)
    for more in ((), ("--output", str(tmp_path / "run"))):
        lambdas.mappings[uuid] |= {"State": "Enabled", "LastModified": 1}
        read = index.keys(*STACK, *more)[0]
        assert read.status == 0
        assert "became out of date while it was read" in read.err
        listed = read.out or b"".join(
            part.read_bytes() for part in (tmp_path / "run" / "parts").iterdir()
        )
        assert len(listed.splitlines()) == len(set(listed.splitlines())) == 30
    manifest = json.loads((tmp_path / "run" / "manifest.json").read_text())
    assert (manifest["method"], manifest["keys"]) == ("skip", 30)
    assert "mapping is Disabled" in manifest["reason"]


def test_a_message_stays_if_the_stack_has_no_record_of_the_index(
    index: Index, lambdas: FakeLambda, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Otherwise an unused record would lose its trust, and the evidence would be deleted."""
    index.create_with_keeper(lambdas, [2] * 5)
    stream = f"arn:aws:dynamodb:us-east-1:111122223333:table/{index.table}/stream/2026-11-01"
    place = {"shardId": "s", "startSequenceNumber": "1", "endSequenceNumber": "2"}
    body = json.dumps({"DDBStreamBatchInfo": {"streamArn": stream, **place}})
    message = {"MessageId": "m", "ReceiptHandle": "r", "Body": body}
    forgotten = ClientError({"Error": {"Code": "TrimmedDataAccessException"}}, "GetShardIterator")
    client = Mock(**{"get_shard_iterator.side_effect": forgotten})
    client.receive_message.side_effect = [{"Messages": [message]}] * 2 + [{}]
    monkeypatch.setattr(key_index, "aws_client", lambda *_: client)
    discard = ("--queue", "url", "--discard-old", *STACK)
    with monkeypatch.context() as patch:
        patch.setattr(
            tables,
            "bucket_registry",
            lambda s3, bucket, table: Registry(Directory(tmp_path / "other"), table.identity),
        )
        index.refuses("no record of", "redrive", *discard)
    client.delete_message.assert_not_called()
    assert "the key index is kept" in index.keys(*STACK)[0].err
    assert index("redrive", *discard).status == 0
    client.delete_message.assert_called_once()
    assert "trust in it was withdrawn" in index.keys(*STACK)[0].err


def delete_index_before(step: str, index: Index, monkeypatch: pytest.MonkeyPatch) -> None:
    """Delete the index before this step of a job that reads it."""
    original = getattr(LocalJob, step)

    def patched(job: LocalJob, *args: Any, **kwargs: Any) -> Any:
        if job.how[0] == "index":
            delete_index(index.database, index.table)
        return original(job, *args, **kwargs)

    monkeypatch.setattr(LocalJob, step, patched)


@pytest.mark.prove
@pytest.mark.parametrize(
    ("to_directory", "step"),
    [(True, "work"), (True, "begin"), (False, "work"), (False, "begin")],
)
def test_a_list_does_not_fail_if_the_index_is_deleted_during_the_read(
    index: Index,
    lambdas: FakeLambda,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    step: str,
    to_directory: bool,
) -> None:
    """The index is deleted before its first page, or after the plan."""
    index.create_with_keeper(lambdas, [2] * 30)
    delete_index_before(step, index, monkeypatch)
    path = tmp_path / "run"
    more = ("--output", str(path)) if to_directory else ()
    read = index.keys(*STACK, *more)[0]
    assert (read.status, "The keys are found without it." in read.err) == (0, True), read.err
    listed = read.out or b"".join(part.read_bytes() for part in (path / "parts").iterdir())
    assert len(listed.splitlines()) == len(set(listed.splitlines())) == 30


@pytest.mark.prove
def test_a_run_that_starts_again_asks_before_it_reads_the_table(
    index: Index, lambdas: FakeLambda, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The question is about the cost of the table, and the units spent so far are reported."""
    index.create_with_keeper(lambdas, [1, 6, 1, 25, 2] * 60, filling=800)
    monkeypatch.setenv("KEYHOP_PRICES", '{"reads": 50000, "writes": 50000}')
    delete_index_before("work", index, monkeypatch)
    report = tmp_path / "report.json"
    command = ("keys", index.table, "--endpoint-url", index.database.url, *STACK)
    refused = keyhop(*command, "--summary", str(report))
    assert (refused.status, refused.out) == (2, b""), refused.err
    assert "The keys are found without it." in refused.err
    assert (
        f"This would read {index.table} for more than $1, but there is no terminal" in refused.err
    )
    summary = json.loads(report.read_text())
    assert 0 < summary["read_units"] < 60
    assert "add --yes" in summary["error"]


@pytest.mark.prove
def test_a_run_whose_index_was_deleted_is_resumed_without_it(
    index: Index, lambdas: FakeLambda, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    index.create_with_keeper(lambdas, [2] * 30)

    def fails(job: LocalJob, *args: Any, **kwargs: Any) -> bool:
        raise GaveUp("nothing succeeds")

    flags = (*STACK, "--output", str(tmp_path / "run"))
    with monkeypatch.context() as patch:
        patch.setattr(LocalJob, "work", fails)
        assert index.keys(*flags)[0].status != 0
    delete_index(index.database, index.table)
    read = index.keys(*resuming(*flags))[0]
    assert read.status == 0, read.err
    manifest = json.loads((tmp_path / "run" / "manifest.json").read_text())
    assert (manifest["method"], manifest["keys"]) == ("skip", 30)


@pytest.mark.prove
def test_an_index_that_is_being_removed_is_not_read(
    index: Index, lambdas: FakeLambda, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A removal failed after it had deleted some sentinels of a verified index."""
    index.create_with_keeper(lambdas, [2] * 20)
    assert "index: the key index is kept" in index.keys(*STACK)[0].err
    mappings = dict(lambdas.mappings)
    lambdas.mappings.clear()
    delete = Collections.delete
    monkeypatch.setattr(
        Collections, "delete", failing_after(7, delete, CannotStart("this far and no further"))
    )
    assert index("remove", *STACK).status == 2
    lambdas.mappings |= mappings
    read, keys = index.keys(*STACK)
    assert "no verification of it is on record" in read.err
    assert len(keys) == 20
