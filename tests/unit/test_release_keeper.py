"""Check ReleaseKeeper: its refusals, what it releases and protects, and that it always answers."""

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
    """Mappings by table; the first `busy` deletions have no effect, as if one were changing."""

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
    """CloudFormation with a server at `url`, which collects the answers of the function."""

    def __init__(self, url: str, functions: Lambda) -> None:
        self.url, self.functions = url, functions
        self.answers: list[dict[str, Any]] = []

    def send(
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
    """Return CloudFormation for a stack whose keeper follows the tables Kept and Old."""

    class Handler(BaseHTTPRequestHandler):
        def do_PUT(self) -> None:
            content = self.rfile.read(int(self.headers["Content-Length"]))
            service.answers.append(json.loads(content))
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
        service = CloudFormation(f"http://127.0.0.1:{server.server_port}/answer", functions)
        thread = Thread(target=server.serve_forever, args=(0.01,), daemon=True)
        thread.start()
        yield service
        server.shutdown()
        thread.join()


def build(table: str, name: str = ENTRY, sentinel: Any = SENTINEL) -> str:
    """Record a key index, and return the URL of the record."""
    store = Bucket(boto3.client("s3"), BUCKET, f"key-index/{table}-0123/")
    state = {"identity": IDENTITY.format(table), "sentinel": sentinel}
    store.replace(name, json.dumps(state).encode())
    return store.url(name)


@pytest.mark.parametrize(
    ("kind", "listed", "before", "remaining"),
    [
        ("Create", ["Kept"], None, ["Kept", "Old"]),
        ("Update", ["Kept"], ["Kept", "Old"], ["Kept"]),
        ("Update", ["Kept", "Old"], ["Kept"], ["Kept", "Old"]),
        ("Delete", ["Kept", "Old"], None, []),
    ],
)
def test_mappings_are_released_for_tables_without_a_key_index(
    cloudformation: CloudFormation, kind: str, listed: list[str], before: Any, remaining: list[str]
) -> None:
    build("Old", sentinel=None)  # a key index that was built once, and removed
    answer = cloudformation.send(kind, listed, before)
    assert (answer["Status"], answer["PhysicalResourceId"]) == ("SUCCESS", MADE)
    assert list(cloudformation.functions.mappings) == remaining


def test_a_table_with_a_key_index_is_not_released(cloudformation: CloudFormation) -> None:
    record = build("Old")
    answer = cloudformation.send("Update", ["Kept"], ["Kept", "Old"])
    assert answer["Status"] == "FAILED"
    assert "The key index of Old stands" in answer["Reason"]
    assert 'start Keyhop-RemoveKeyIndex with {"table": "Old"}' in answer["Reason"]
    assert record in answer["Reason"], "the way out, if the table itself is gone"
    assert list(cloudformation.functions.mappings) == ["Kept", "Old"], (
        "the keeper still follows both"
    )
    rollback = cloudformation.send("Update", ["Kept", "Old"], ["Kept"])
    assert rollback["Status"] == "SUCCESS", "CloudFormation's rollback of that update"


def test_the_arn_and_the_name_of_a_table_are_equivalent(cloudformation: CloudFormation) -> None:
    kept, old = (IDENTITY.format(name).partition("#")[0] for name in ("Kept", "Old"))
    build("Old")
    assert cloudformation.send("Update", [kept], [kept, old])["Status"] == "FAILED"
    assert cloudformation.send("Update", ["Kept", old], [kept, "Old"])["Status"] == "SUCCESS"
    build("Old", sentinel=None)
    assert cloudformation.send("Update", [kept], [kept, old])["Status"] == "SUCCESS"
    assert list(cloudformation.functions.mappings) == ["Kept"]


def test_the_last_table_with_a_key_index_is_not_released(cloudformation: CloudFormation) -> None:
    build("Old")
    assert cloudformation.send("Update", [], ["Old"])["Status"] == "FAILED"


def test_a_stack_is_not_deleted_while_a_key_index_exists(cloudformation: CloudFormation) -> None:
    build("Kept")
    answer = cloudformation.send("Delete", ["Kept"])
    assert (answer["Status"], answer["PhysicalResourceId"]) == ("FAILED", MADE)
    assert len(cloudformation.functions.mappings) == 2


def test_a_stack_is_deleted_after_its_record_was_deleted(cloudformation: CloudFormation) -> None:
    record = build("Kept")
    key = record.removeprefix(f"s3://{BUCKET}/")
    boto3.client("s3").delete_object(Bucket=BUCKET, Key=key)
    assert cloudformation.send("Delete", ["Kept"])["Status"] == "SUCCESS"
    assert not cloudformation.functions.mappings


def test_a_stack_is_deleted_if_its_bucket_is_missing(cloudformation: CloudFormation) -> None:
    boto3.client("s3").delete_bucket(Bucket=BUCKET)
    assert cloudformation.send("Delete", ["Kept"])["Status"] == "SUCCESS"


def test_a_key_index_outside_the_deployment_is_ignored(
    cloudformation: CloudFormation,
) -> None:
    """`keyhop index build Another --stack ...` writes into the same registry."""
    build("Another")
    assert cloudformation.send("Update", [], ["Old"])["Status"] == "SUCCESS"


def test_the_rollback_of_a_first_creation_refuses_nothing(cloudformation: CloudFormation) -> None:
    """This holds even if the bucket of the deployment already has a key index on record."""
    build("Kept")
    failed = cloudformation.send("Create", ["Kept"], metadata=["Missing"])
    assert (failed["Status"], failed["PhysicalResourceId"]) == ("FAILED", NOT_MADE)
    assert cloudformation.send("Delete", ["Kept"], physical_id=NOT_MADE)["Status"] == "SUCCESS"


def test_a_failure_is_answered(cloudformation: CloudFormation) -> None:
    answer = cloudformation.send("Delete", ["Old"], context=Hurried())
    assert answer["Status"] == "FAILED"
    assert "delete it in Lambda" in answer["Reason"]


def test_a_missing_permission_is_reported_at_once(
    cloudformation: CloudFormation, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The stack must fail now, and not when the function runs out of time."""
    table = "arn:aws:dynamodb:us-east-1:111122223333:table/Keyhop-shards-Audit"
    role = "arn:aws:sts::111122223333:assumed-role/Keyhop-ReleaseKeeper/Keyhop-ReleaseKeeper"
    requests = []

    class Refusing:
        def describe_table(self, **arguments: str) -> Any:
            requests.append(arguments)
            message = (
                f"User: {role} is not authorized to perform: dynamodb:DescribeTable on resource: "
                f"{table} because no identity-based policy allows the dynamodb:DescribeTable action"
            )
            error = {"Code": "AccessDeniedException", "Message": message}
            raise ClientError({"Error": error}, "DescribeTable")

    monkeypatch.setattr(release_keeper.boto3, "client", lambda name, **options: Refusing())
    answer = cloudformation.send("Create", ["Kept"], metadata=["Keyhop-shards-Audit"])
    assert (answer["Status"], answer["PhysicalResourceId"]) == ("FAILED", NOT_MADE)
    assert answer["Reason"].startswith("Permission is missing: ")
    assert "dynamodb:DescribeTable" in answer["Reason"]
    assert table in answer["Reason"]
    assert len(requests) == 1


def test_an_answer_is_never_too_long(cloudformation: CloudFormation) -> None:
    """CloudFormation ignores an answer above 4,096 bytes, and keeps waiting."""
    tables = [f"{number:03}{'x' * 250}" for number in range(100)]
    for table in tables:
        build(table)
    answer = cloudformation.send("Delete", tables)
    assert "and 97 more" in answer["Reason"]
    assert len(json.dumps(answer)) < 4096


def is_protected(table: str) -> bool:
    table_description = boto3.client("dynamodb").describe_table(TableName=table)["Table"]
    return bool(table_description["DeletionProtectionEnabled"])


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
    assert cloudformation.send("Create", [], metadata=metadata)["Status"] == "SUCCESS"
    assert all(map(is_protected, metadata))
    assert cloudformation.send("Update", [], [], metadata=metadata)["Status"] == "SUCCESS"
    assert cloudformation.send("Delete", [], metadata=metadata)["Status"] == "SUCCESS"
    assert all(map(is_protected, metadata)), (
        "the table outlives the stack, and so does its protection"
    )


def test_a_creation_that_fails_at_the_last_moment_can_be_rolled_back_and_repeated(
    cloudformation: CloudFormation, metadata: list[str]
) -> None:
    boto3.client("dynamodb").delete_table(TableName=metadata[1])
    answer = cloudformation.send("Create", [], metadata=metadata)
    assert (answer["Status"], answer["PhysicalResourceId"]) == ("FAILED", NOT_MADE)
    assert is_protected(metadata[0]), "the first table was protected before the failure"
    answer = cloudformation.send("Delete", [], metadata=metadata, physical_id=NOT_MADE)
    assert answer["Status"] == "SUCCESS"
    assert not is_protected(metadata[0])


def test_the_first_record_of_a_build_counts_as_a_key_index(aws: None) -> None:
    store = Bucket(boto3.client("s3"), BUCKET, "key-index/Orders-0123/")
    registry = Registry(store, IDENTITY.format("Orders"))
    registry.take("somebody", "build", lambda lease, age: True)
    assert not built_indexes(boto3.client("s3"), BUCKET)
    registry.change("somebody", sentinel=SENTINEL)
    assert [table for table, _ in built_indexes(boto3.client("s3"), BUCKET)] == ["Orders"]
    registry.change("somebody", sentinel=None)
    assert not built_indexes(boto3.client("s3"), BUCKET)


FOLLOWED = ["Kept", "KeptByTenant"]
"""A pair with a table whose stream is followed."""
NEW = ["Orders", "OrdersByTenant"]


@pytest.mark.parametrize("pairs", [[], [NEW]])
def test_a_pair_that_is_being_rekeyed_is_not_released(
    cloudformation: CloudFormation, pairs: list[list[str]]
) -> None:
    answer = cloudformation.send("Update", [], [], pairs=pairs, pairs_before=[NEW, FOLLOWED])
    assert answer["Status"] == "FAILED"
    assert "Kept is being re-keyed as KeptByTenant" in answer["Reason"]
    assert "`keyhop rekey complete`" in answer["Reason"]
    assert cloudformation.functions.mappings.keys() == {"Kept", "Old"}


def test_a_stack_is_not_deleted_while_a_pair_is_rekeyed(
    cloudformation: CloudFormation,
) -> None:
    answer = cloudformation.send("Delete", [], pairs=[FOLLOWED])
    assert (answer["Status"], answer["PhysicalResourceId"]) == ("FAILED", MADE)


def test_a_pair_that_is_not_followed_is_released_and_one_that_stays_is_not_checked(
    cloudformation: CloudFormation,
) -> None:
    for pairs in ([FOLLOWED], [FOLLOWED, ["A", "B"]]):
        answer = cloudformation.send("Update", [], [], pairs=pairs, pairs_before=[NEW, FOLLOWED])
        assert answer["Status"] == "SUCCESS", answer
    assert cloudformation.send("Delete", [], pairs=[NEW])["Status"] == "SUCCESS"


def test_an_unmade_resource_is_deleted_during_a_rekey(
    cloudformation: CloudFormation,
) -> None:
    answer = cloudformation.send("Delete", [], pairs=[FOLLOWED], physical_id=NOT_MADE)
    assert answer["Status"] == "SUCCESS"
