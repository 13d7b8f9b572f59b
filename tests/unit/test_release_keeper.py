"""ReleaseKeeper: what it refuses, what it lets go, what it protects; that it always answers."""

import json
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, HTTPServer
from threading import Thread
from typing import Any

import boto3
import pytest
from botocore.exceptions import ClientError
from handlers import release_keeper
from keyhop.key_index.registry import ENTRY, Registry, built_indexes
from keyhop.storage.s3 import Bucket
from moto import mock_aws

from testing.keepers import FakeLambda
from tests.unit.invocations import Context

BUCKET = "results"
IDENTITY = "arn:aws:dynamodb:us-east-1:111122223333:table/{}#2026"
SENTINEL = {"space": {}, "sort": "!keyhop"}
MADE, NOT_MADE = release_keeper.MADE, release_keeper.NOT_MADE


class Lambda(FakeLambda):
    """Mappings, by their tables; one that is changing is not deleted at the first call."""

    def __init__(self, *tables: str, busy: int = 0) -> None:
        self.busy = busy
        arn = "arn:aws:dynamodb:us-east-1:111122223333:table/{}/stream/x"
        super().__init__(
            {
                table: {"UUID": table, "EventSourceArn": arn.format(table), "State": "Enabled"}
                for table in tables
            }
        )

    def delete_event_source_mapping(self, UUID: str) -> None:  # noqa: N803
        if self.busy:
            self.busy -= 1
        else:
            super().delete_event_source_mapping(UUID)


class Patient(Context):
    log_stream_name = "stream"


class Hurried(Patient):
    def get_remaining_time_in_millis(self) -> int:
        return 5_000


class CloudFormation:
    """Where CloudFormation waits. answers: what it was told."""

    def __init__(self, url: str, functions: Lambda) -> None:
        self.url, self.functions = url, functions
        self.answers: list[dict[str, Any]] = []

    def asks(
        self,
        kind: str,
        listed: list[str],
        before: list[str] | None = None,
        metadata: list[str] | None = None,
        physical_id: str = MADE,
        context: Context | None = None,
        pairs: list[list[str]] | None = None,
        pairs_before: list[list[str]] | None = None,
    ) -> dict[str, Any]:
        event: dict[str, Any] = {
            "RequestType": kind,
            "ResponseURL": self.url,
            "StackId": "s",
            "RequestId": "r",
            "LogicalResourceId": "KeeperMappings",
            "ResourceProperties": {
                "Tables": listed,
                "Protected": metadata or [],
                **_rekeyed(pairs),
            },
        }
        if kind != "Create":
            event["PhysicalResourceId"] = physical_id
        if before is not None:
            event["OldResourceProperties"] = {"Tables": before, **_rekeyed(pairs_before)}
        release_keeper.handler(event, context or Patient())
        return self.answers[-1]


def _rekeyed(pairs: list[list[str]] | None) -> dict[str, Any]:
    replicate = "arn:aws:lambda:us-east-1:111122223333:function:Keyhop-Replicate"
    return {"Replicate": replicate, "Rekeyed": pairs} if pairs else {}


@pytest.fixture
def aws(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    for name, value in {
        "KEYHOP_BUCKET": BUCKET,
        "KEYHOP_KEEPER": "arn:aws:lambda:us-east-1:111122223333:function:Keyhop-KeepIndex",
        "KEYHOP_REMOVAL": "Keyhop-RemoveKeyIndex",
        "AWS_DEFAULT_REGION": "us-east-1",
        "AWS_ACCESS_KEY_ID": "test",
        "AWS_SECRET_ACCESS_KEY": "test",
    }.items():
        monkeypatch.setenv(name, value)
    with mock_aws():
        boto3.client("s3").create_bucket(Bucket=BUCKET)
        yield


@pytest.fixture
def cloudformation(aws: None, monkeypatch: pytest.MonkeyPatch) -> Iterator[CloudFormation]:
    """Whose keeper follows the tables Kept and Old."""

    class Handler(BaseHTTPRequestHandler):
        def do_PUT(self) -> None:
            content = self.rfile.read(int(self.headers["Content-Length"]))
            told.answers.append(json.loads(content))
            self.send_response(200)
            self.end_headers()

        def log_message(self, *arguments: object) -> None:
            pass

    make = boto3.client
    functions = Lambda("Kept", "Old", busy=2)
    monkeypatch.setattr(
        release_keeper.boto3,
        "client",
        lambda name, **options: functions if name == "lambda" else make(name, **options),
    )
    monkeypatch.setattr(release_keeper, "PAUSE_SECONDS", 0)
    with HTTPServer(("127.0.0.1", 0), Handler) as server:
        told = CloudFormation(f"http://127.0.0.1:{server.server_port}/answer", functions)
        thread = Thread(target=server.serve_forever, args=(0.01,), daemon=True)
        thread.start()
        yield told
        server.shutdown()
        thread.join()


def build(table: str, name: str = ENTRY, sentinel: Any = SENTINEL) -> str:
    """A key index on record; where."""
    store = Bucket(boto3.client("s3"), BUCKET, f"key-index/{table}-0123/")
    state = {"identity": IDENTITY.format(table), "sentinel": sentinel}
    store.replace(name, json.dumps(state).encode())
    return store.url(name)


@pytest.mark.parametrize(
    ("kind", "listed", "before", "left"),
    [
        ("Create", ["Kept"], None, ["Kept", "Old"]),
        ("Update", ["Kept"], ["Kept", "Old"], ["Kept"]),
        ("Update", ["Kept", "Old"], ["Kept"], ["Kept", "Old"]),
        ("Delete", ["Kept", "Old"], None, []),
    ],
)
def test_mappings_are_released_where_no_key_index_stands(
    cloudformation: CloudFormation, kind: str, listed: list[str], before: Any, left: list[str]
) -> None:
    build("Old", sentinel=None)  # one that was built once, and removed
    told = cloudformation.asks(kind, listed, before)
    assert (told["Status"], told["PhysicalResourceId"]) == ("SUCCESS", MADE)
    assert list(cloudformation.functions.mappings) == left


def test_a_table_whose_key_index_stands_is_not_let_go(cloudformation: CloudFormation) -> None:
    record = build("Old")
    told = cloudformation.asks("Update", ["Kept"], ["Kept", "Old"])
    assert told["Status"] == "FAILED"
    assert "The key index of Old stands" in told["Reason"]
    assert 'start Keyhop-RemoveKeyIndex with {"table": "Old"}' in told["Reason"]
    assert record in told["Reason"], "the way out, if the table itself is gone"
    assert list(cloudformation.functions.mappings) == ["Kept", "Old"], "the keeper goes on"
    again = cloudformation.asks("Update", ["Kept", "Old"], ["Kept"])
    assert again["Status"] == "SUCCESS", "CloudFormation's roll-back of that update"


def test_a_table_is_the_same_by_its_arn_and_by_its_name(cloudformation: CloudFormation) -> None:
    kept, old = (IDENTITY.format(name).partition("#")[0] for name in ("Kept", "Old"))
    build("Old")
    assert cloudformation.asks("Update", [kept], [kept, old])["Status"] == "FAILED"
    assert cloudformation.asks("Update", ["Kept", old], [kept, "Old"])["Status"] == "SUCCESS"
    build("Old", sentinel=None)
    assert cloudformation.asks("Update", [kept], [kept, old])["Status"] == "SUCCESS"
    assert list(cloudformation.functions.mappings) == ["Kept"]


def test_the_last_table_with_a_key_index_is_not_let_go(cloudformation: CloudFormation) -> None:
    build("Old")
    assert cloudformation.asks("Update", [], ["Old"])["Status"] == "FAILED"


def test_a_stack_is_not_deleted_while_a_key_index_stands(cloudformation: CloudFormation) -> None:
    build("Kept")
    told = cloudformation.asks("Delete", ["Kept"])
    assert (told["Status"], told["PhysicalResourceId"]) == ("FAILED", MADE)
    assert len(cloudformation.functions.mappings) == 2


def test_deleting_the_record_is_the_way_out(cloudformation: CloudFormation) -> None:
    record = build("Kept")
    key = record.removeprefix(f"s3://{BUCKET}/")
    boto3.client("s3").delete_object(Bucket=BUCKET, Key=key)
    assert cloudformation.asks("Delete", ["Kept"])["Status"] == "SUCCESS"
    assert not cloudformation.functions.mappings


def test_a_bucket_that_is_gone_keeps_no_stack_alive(cloudformation: CloudFormation) -> None:
    boto3.client("s3").delete_bucket(Bucket=BUCKET)
    assert cloudformation.asks("Delete", ["Kept"])["Status"] == "SUCCESS"


def test_an_index_of_a_table_that_is_not_of_this_deployment_is_nobodys_business(
    cloudformation: CloudFormation,
) -> None:
    """`keyhop index build Another --stack ...` writes into the same registry."""
    build("Another")
    assert cloudformation.asks("Update", [], ["Old"])["Status"] == "SUCCESS"


def test_the_roll_back_of_a_first_creation_refuses_nothing(cloudformation: CloudFormation) -> None:
    """Also if the deployment has taken up a bucket in which a key index is on record."""
    build("Kept")
    failed = cloudformation.asks("Create", ["Kept"], metadata=["Missing"])
    assert (failed["Status"], failed["PhysicalResourceId"]) == ("FAILED", NOT_MADE)
    told = cloudformation.asks("Delete", ["Kept"], physical_id=NOT_MADE)
    assert told["Status"] == "SUCCESS"


def test_what_goes_wrong_is_answered(cloudformation: CloudFormation) -> None:
    told = cloudformation.asks("Delete", ["Old"], context=Hurried())
    assert told["Status"] == "FAILED"
    assert "delete it in Lambda" in told["Reason"]


def test_a_right_that_is_missing_is_named_at_once(
    cloudformation: CloudFormation, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Deployed without it, the stack is to fail now, and not when the function has no time left."""
    table = "arn:aws:dynamodb:us-east-1:111122223333:table/Keyhop-shards-Audit"
    role = "arn:aws:sts::111122223333:assumed-role/Keyhop-ReleaseKeeper/Keyhop-ReleaseKeeper"
    requests = []

    class Refusing:
        def describe_table(self, **given: str) -> Any:
            requests.append(given)
            message = (
                f"User: {role} is not authorized to perform: dynamodb:DescribeTable on resource: "
                f"{table} because no identity-based policy allows the dynamodb:DescribeTable action"
            )
            error = {"Code": "AccessDeniedException", "Message": message}
            raise ClientError({"Error": error}, "DescribeTable")

    monkeypatch.setattr(release_keeper.boto3, "client", lambda name, **options: Refusing())
    told = cloudformation.asks("Create", ["Kept"], metadata=["Keyhop-shards-Audit"])
    assert (told["Status"], told["PhysicalResourceId"]) == ("FAILED", NOT_MADE)
    assert told["Reason"].startswith("Permission is missing: ")
    assert "dynamodb:DescribeTable" in told["Reason"]
    assert table in told["Reason"]
    assert len(requests) == 1


def test_an_answer_is_never_too_long(cloudformation: CloudFormation) -> None:
    """Longer than 4,096 bytes, CloudFormation would not take it, and wait on."""
    tables = [f"{number:03}{'x' * 250}" for number in range(100)]
    for table in tables:
        build(table)
    told = cloudformation.asks("Delete", tables)
    assert "and 97 more" in told["Reason"]
    assert len(json.dumps(told)) < 4096


def is_protected(table: str) -> bool:
    told = boto3.client("dynamodb").describe_table(TableName=table)["Table"]
    return bool(told["DeletionProtectionEnabled"])


@pytest.fixture
def metadata(aws: None) -> list[str]:
    names = ["Keyhop-shards-A", "Keyhop-shards-B"]
    for name in names:
        boto3.client("dynamodb").create_table(
            TableName=name,
            AttributeDefinitions=[{"AttributeName": "pk", "AttributeType": "S"}],
            KeySchema=[{"AttributeName": "pk", "KeyType": "HASH"}],
            BillingMode="PAY_PER_REQUEST",
        )
    return names


def test_metadata_is_protected_once_the_deployment_has_succeeded(
    cloudformation: CloudFormation, metadata: list[str]
) -> None:
    assert cloudformation.asks("Create", [], metadata=metadata)["Status"] == "SUCCESS"
    assert all(map(is_protected, metadata))
    assert cloudformation.asks("Update", [], [], metadata=metadata)["Status"] == "SUCCESS"
    assert cloudformation.asks("Delete", [], metadata=metadata)["Status"] == "SUCCESS"
    assert all(map(is_protected, metadata)), "the table outlives the stack, and so does this"


def test_a_creation_that_fails_at_the_last_moment_can_be_rolled_back_and_repeated(
    cloudformation: CloudFormation, metadata: list[str]
) -> None:
    boto3.client("dynamodb").delete_table(TableName=metadata[1])
    told = cloudformation.asks("Create", [], metadata=metadata)
    assert (told["Status"], told["PhysicalResourceId"]) == ("FAILED", NOT_MADE)
    assert is_protected(metadata[0]), "it had come so far"
    told = cloudformation.asks("Delete", [], metadata=metadata, physical_id=NOT_MADE)
    assert told["Status"] == "SUCCESS"
    assert not is_protected(metadata[0])


def test_what_a_build_notes_first_of_all_is_what_stands(aws: None) -> None:
    store = Bucket(boto3.client("s3"), BUCKET, "key-index/Orders-0123/")
    registry = Registry(store, IDENTITY.format("Orders"))
    registry.take("somebody", "build", lambda lease, age: True)
    assert not built_indexes(boto3.client("s3"), BUCKET)
    registry.change("somebody", sentinel=SENTINEL)
    assert [table for table, _ in built_indexes(boto3.client("s3"), BUCKET)] == ["Orders"]
    registry.change("somebody", sentinel=None)
    assert not built_indexes(boto3.client("s3"), BUCKET)


FOLLOWED = ["Kept", "KeptByTenant"]
"""A pair of which a stream is followed."""
NEW = ["Orders", "OrdersByTenant"]


@pytest.mark.parametrize("pairs", [[], [NEW]])
def test_a_pair_that_is_being_rekeyed_is_not_let_go(
    cloudformation: CloudFormation, pairs: list[list[str]]
) -> None:
    told = cloudformation.asks("Update", [], [], pairs=pairs, pairs_before=[NEW, FOLLOWED])
    assert told["Status"] == "FAILED"
    assert "Kept is being re-keyed as KeptByTenant" in told["Reason"]
    assert "`keyhop rekey complete`" in told["Reason"]
    assert cloudformation.functions.mappings.keys() == {"Kept", "Old"}


def test_nor_does_the_stack_go_while_a_pair_is_being_rekeyed(
    cloudformation: CloudFormation,
) -> None:
    told = cloudformation.asks("Delete", [], pairs=[FOLLOWED])
    assert (told["Status"], told["PhysicalResourceId"]) == ("FAILED", MADE)


def test_a_pair_that_nobody_follows_is_let_go_and_one_that_stays_is_not_asked_about(
    cloudformation: CloudFormation,
) -> None:
    for pairs in ([FOLLOWED], [FOLLOWED, ["A", "B"]]):
        told = cloudformation.asks("Update", [], [], pairs=pairs, pairs_before=[NEW, FOLLOWED])
        assert told["Status"] == "SUCCESS", told
    assert cloudformation.asks("Delete", [], pairs=[NEW])["Status"] == "SUCCESS"


def test_what_was_never_made_goes_whatever_is_being_rekeyed(cloudformation: CloudFormation) -> None:
    told = cloudformation.asks("Delete", [], pairs=[FOLLOWED], physical_id=NOT_MADE)
    assert told["Status"] == "SUCCESS"
