"""Checks of a key index from its build to its removal, on different kinds of tables."""

import time
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any

import boto3
from botocore.exceptions import BotoCoreError, ClientError
from keyhop.key_index.sentinel import INDEX

from tests.live.fixtures import Fixture, comparable
from tests.live.report import Differs, Report, expect, expect_equal, expect_keys, until
from tests.live.runs import Runs
from tests.live.stack import NAME
from tests.live.ways import Ways

FOLLOW_SECONDS = 300.0
"""The limit for the keeper: a new mapping starts in a minute or two."""

INDEX_SECONDS = 3_600.0
"""The limit for a build or a removal: to add an index takes minutes, even to a small table."""

OLD_SECONDS = 300.0
"""The minimum age of EARLY when the keeper gets it. No record of a later write is as old."""

FORMER_RECORDS = 600
"""The records of the item FORMER, after EARLY: more than a batch. IteratorAge is the age of the
last record of a batch, so the first batch must have old records only."""

TRUST_SECONDS = 900.0
"""The limit for method auto to read the index. It does not while the keeper was more than a minute
behind in the last five minutes by CloudWatch, as it is at first."""

TRUST_PAUSE_SECONDS = 60.0
METRICS_SECONDS = 900.0
"""The limit for metrics and alarms, which arrive minutes late."""

GRACE_SECONDS = 30
WRITE_RATE = 200
MORE_WRITES = 10
"""Writes of a user, and of the keeper after them."""

EARLY = {"pk": {"S": "before the keeper"}, "sk": {"S": "a"}}
"""An item that is written after the stream was enabled and before anything reads the stream."""

FORMER = {"pk": {"S": "before the keeper"}, "sk": {"S": "b"}}
NEW = {"pk": {"S": "new"}, "sk": {"S": "a"}}


@dataclass
class Life:
    """The life of a table's key index. `machines` has the ARNs that `build` and `remove` it."""

    client: Any
    runs: Runs
    machines: dict[str, str]
    ways: Ways
    table: Fixture

    def __post_init__(self) -> None:
        self.keys = set(self.table.keys)
        self.early = datetime.now(UTC)
        self.before: Any = None
        self._run_count = 0

    def build_keep_read_remove(self) -> str:
        """Build, maintain, read and remove the index, in the order in which a user does."""
        if self._is_scaled:
            with _scaled(self.table.name, self.table.capacity or 0):
                return self._build_keep_read_remove()
        return self._build_keep_read_remove()

    def old_records(self) -> str:
        """Wait until the metrics show that the keeper got records from before it was created."""

        def age() -> str | None:
            oldest = _oldest_record(self.early)
            return f"records of {oldest:g} s" if oldest >= OLD_SECONDS else None

        return until(age, f"records of {OLD_SECONDS:g} s", METRICS_SECONDS)

    @property
    def _is_scaled(self) -> bool:
        return bool(self.table.capacity) and "scaling" not in self.ways.lacks

    def _build_keep_read_remove(self) -> str:
        if self.table.streams:
            self.early = datetime.now(UTC)
            self._put(EARLY)
            if self._has_metrics:
                for _ in range(FORMER_RECORDS // 2):
                    self.client.put_item(TableName=self.table.name, Item=FORMER)
                    self.client.delete_item(TableName=self.table.name, Key=FORMER)
                time.sleep(OLD_SECONDS)
        self.before = self._items()
        output = self.build()
        # If the stream was enabled before, the keeper starts first and may put any of them.
        minimum = 0 if self.table.streams else len(self.keys)
        put = output["build"]["put"]
        expect(minimum <= put <= len(self.keys), f"{put} sentinels put for {len(self.keys)} keys")
        expect_equal(output["verification"]["remaining"], 0, "what is wrong after the build")
        index = self._describe()["GlobalSecondaryIndexes"][0]
        if self.table.capacity:
            units = index["ProvisionedThroughput"]["WriteCapacityUnits"]
            expect(units <= self.table.capacity, f"the index has {units} WCU after the build")
            if self._is_scaled:
                capacity = output["capacity"]
                expect_equal(capacity["refused"], None, "what auto scaling refused")
                expect_equal(capacity["scaled"], True, "whether the index has auto scaling")
                expect_equal(_scaled_by(self.table.name), SCALED, "what scales the index")
        self._follow()
        output = self._list_by_index()
        expect_equal(output["keys"], len(self.keys), "keys by the index")
        self.client.delete_item(TableName=self.table.name, Key=NEW)
        self.remove()
        expect_equal(self._items(), self.before, "the items after the removal")
        description = self._describe()
        expect(not description.get("GlobalSecondaryIndexes"), "an index is left")
        if self._is_scaled:
            expect_equal(_scaled_by(self.table.name), [], "what scales the index that is gone")
        has_stream = bool((description.get("StreamSpecification") or {}).get("StreamEnabled"))
        expect_equal(has_stream, self.table.streams, "whether the stream is on")
        return f"{put} sentinels put by the build, {output['read_units']:g} read units by the index"

    @property
    def _has_metrics(self) -> bool:
        return "cloudwatch" not in self.ways.lacks

    def _list_by_index(self) -> dict[str, Any]:
        """Start runs by method auto until one reads the index; return its output."""
        deadline = time.monotonic() + (TRUST_SECONDS if self._has_metrics else 0.0)
        number = 1
        while True:
            run = self.runs.start(f"{self.table.label}-auto-{number}", {"table": self.table.name})
            output = self.runs.output(run)
            if output["method"] == "index":
                return output
            reason = self.runs.manifest(run).get("reason")
            expect(time.monotonic() < deadline, f"auto chose {output['method']}: {reason}")
            time.sleep(TRUST_PAUSE_SECONDS)
            number += 1

    def build(self) -> dict[str, Any]:
        """Run BuildKeyIndex and return its output."""
        return self._run("build", {"graceSeconds": GRACE_SECONDS, "maxWriteRate": WRITE_RATE})

    def remove(self) -> None:
        """Run RemoveKeyIndex; raise Differs if the table is not as before."""
        expect_equal(self._run("remove", {})["as_before"], True, "the table is as before")

    def _follow(self) -> None:
        """Add and remove item collections, whose sentinels the keeper puts and deletes."""
        self._put(NEW)
        key = {"pk": {"S": "k0"}, "sk": {"S": "000000"}}  # the only item of its collection
        item = self.client.get_item(TableName=self.table.name, Key=key)["Item"]
        self.client.delete_item(TableName=self.table.name, Key=key)
        self.keys.discard(comparable(key["pk"]))
        self._wait_for_rows()
        self._put(item)
        self._wait_for_rows()

    def _put(self, item: dict[str, Any]) -> None:
        self.client.put_item(TableName=self.table.name, Item=item)
        self.keys.add(comparable(item["pk"]))

    def _wait_for_rows(self) -> None:
        deadline = time.monotonic() + FOLLOW_SECONDS
        while True:
            page = self.client.scan(TableName=self.table.name, IndexName=INDEX)
            rows = [comparable(item["pk"]) for item in page["Items"]]
            if set(rows) == self.keys or time.monotonic() > deadline:
                break
            time.sleep(self.ways.poll_seconds)
        expect_keys(rows, self.keys)

    def _items(self) -> list[str]:
        """Return all items of the table, which fits into a page."""
        page = self.client.scan(TableName=self.table.name, ConsistentRead=True)
        return sorted(map(repr, page["Items"]))

    def _describe(self) -> dict[str, Any]:
        return dict(self.client.describe_table(TableName=self.table.name)["Table"])

    def _run(self, action: str, options: dict[str, Any]) -> dict[str, Any]:
        self._run_count += 1
        label = f"{self.table.label}-{'again' if self.before is None else action}-{self._run_count}"
        values = {"table": self.table.name, **options}
        name = self.runs.start(label, values, self.machines[action])
        return self.runs.output(name, INDEX_SECONDS)


def life_of(client: Any, table: Fixture, runs: Runs, outputs: Mapping[str, str]) -> Life:
    """Return the life of a table's index, by the state machines of a stack with these outputs."""
    machines = {name: outputs[f"{name.capitalize()}KeyIndexArn"] for name in ("build", "remove")}
    return Life(client, runs, machines, runs.ways, table)


def check_key_index(
    client: Any, tables: list[Fixture], runs: Runs, outputs: Mapping[str, str], report: Report
) -> None:
    """Check the index of each table. `outputs` are those of the stack."""
    for table in tables:
        life = life_of(client, table, runs, outputs)
        names = ["index-life"]
        if table.streams:
            names += ["index-old-records", "index-stream-stays"]
        if table.capacity:
            names += ["index-capacity", "index-scaling"]
        if table.key:
            names.append("index-kms")
        once = _Once(life)
        checks = {"index-old-records": lambda once=once, life=life: once() and life.old_records()}
        for name in names:
            report.check(name, checks.get(name, once), table.name)
    if not any(table.key for table in tables):
        report.check("index-kms", _no_key)


@contextmanager
def _scaled(table: str, capacity: int) -> Iterator[None]:
    """Give a table auto scaling of its writes, which never raises its capacity.

    This also creates AWS's role for auto scaling in the account, which remains.
    """
    client = boto3.client("application-autoscaling")
    target = {
        "ServiceNamespace": "dynamodb",
        "ResourceId": f"table/{table}",
        "ScalableDimension": "dynamodb:table:WriteCapacityUnits",
    }
    client.register_scalable_target(**target, MinCapacity=capacity, MaxCapacity=capacity)
    metric = {"PredefinedMetricType": "DynamoDBWriteCapacityUtilization"}
    try:
        client.put_scaling_policy(
            **target,
            PolicyName="keyhop-live",
            PolicyType="TargetTrackingScaling",
            TargetTrackingScalingPolicyConfiguration={
                "TargetValue": 70.0,
                "PredefinedMetricSpecification": metric,
            },
        )
        yield
    finally:
        forget_scaling([table])


def forget_scaling(tables: Iterable[str]) -> list[str]:
    """Remove the auto scaling of tables and their key indexes, which remains after their deletion;
    return what could not be removed, and why.
    """
    client = boto3.client("application-autoscaling")
    failures = []
    for table in tables:
        resources = [f"table/{table}", f"table/{table}/index/{INDEX}"]
        page = client.describe_scalable_targets(ServiceNamespace="dynamodb", ResourceIds=resources)
        for target in page["ScalableTargets"]:
            names = ("ServiceNamespace", "ResourceId", "ScalableDimension")
            try:
                client.deregister_scalable_target(**{name: target[name] for name in names})
            except (BotoCoreError, ClientError) as error:
                failures.append(f"auto scaling of {target['ResourceId']}: {error}")
    return failures


SCALED = ["dynamodb:index:WriteCapacityUnits"]
"""The scaled dimensions of the index if the table scales only its writes."""


def _scaled_by(table: str) -> list[str]:
    """Return the dimensions of a table's key index that scaling policies apply to."""
    response = boto3.client("application-autoscaling").describe_scaling_policies(
        ServiceNamespace="dynamodb", ResourceId=f"table/{table}/index/{INDEX}"
    )
    return [policy["ScalableDimension"] for policy in response["ScalingPolicies"]]


def _oldest_record(since: datetime) -> float:
    """Return the greatest age, in seconds, of the batches that the keeper got since a time."""
    statistics = boto3.client("cloudwatch").get_metric_statistics(
        Namespace="AWS/Lambda",
        MetricName="IteratorAge",
        Dimensions=[{"Name": "FunctionName", "Value": f"{NAME}-KeepIndex"}],
        StartTime=since,
        EndTime=datetime.now(UTC) + timedelta(minutes=5),
        Period=300,
        Statistics=["Maximum"],
    )
    return max((point["Maximum"] / 1000 for point in statistics["Datapoints"]), default=0.0)


class _Once:
    """The outcome of one life of an index, shared by several checks: its note, or its error."""

    def __init__(self, life: Life) -> None:
        self._life = life
        self._outcome: str | Exception | None = None

    def __call__(self) -> str:
        if self._outcome is None:
            try:
                self._outcome = self._life.build_keep_read_remove()
            except Exception as error:
                self._outcome = error
        if isinstance(self._outcome, Exception):
            raise self._outcome
        return self._outcome


def _no_key() -> str:
    raise Differs("no table with a customer-managed key was made")
