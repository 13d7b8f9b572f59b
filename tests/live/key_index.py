"""A key index from its build to its removal, on tables that differ in what they were before."""

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
"""For the keeper: a new mapping takes up to a minute or two to begin."""

INDEX_SECONDS = 3_600.0
"""For a build or a removal: DynamoDB takes many minutes to add an index, also to a small table."""

OLD_SECONDS = 300.0
"""How old EARLY is, at least, when a keeper gets it. No record of a later write is so old."""

FORMER_RECORDS = 600
"""Of the item FORMER, after EARLY: more than a batch holds. IteratorAge is the age of the last
record of a batch, so the first batch must hold old records only."""

TRUST_SECONDS = 900.0
"""Until auto reads the index. It does not while CloudWatch shows that the keeper was more than a
minute behind in the last five minutes, as it is when it begins."""

TRUST_PAUSE_SECONDS = 60.0
TELLING_SECONDS = 900.0
"""For metrics and alarms, which come minutes late."""

GRACE_SECONDS = 30
WRITE_RATE = 200
MORE_WRITES = 10
"""Of a user, and of the keeper for them."""

EARLY = {"pk": {"S": "before the keeper"}, "sk": {"S": "a"}}
"""Written after the stream was turned on and before anybody follows it."""

FORMER = {"pk": {"S": "before the keeper"}, "sk": {"S": "b"}}


@dataclass
class Life:
    """One table's; machines: the ARNs of BuildKeyIndex and RemoveKeyIndex."""

    client: Any
    runs: Runs
    machines: dict[str, str]
    ways: Ways
    table: Fixture

    def __post_init__(self) -> None:
        self.keys = set(self.table.keys)
        self.early = datetime.now(UTC)
        self.before: Any = None
        self._done = 0

    def build_keep_read_remove(self) -> str:
        """All of it; the order is a user's."""
        if self._is_scaled:
            with _scaled(self.table.name, self.table.capacity or 0):
                return self._build_keep_read_remove()
        return self._build_keep_read_remove()

    def old_records(self) -> str:
        """Wait until the metrics show that the keeper got a batch of records from before it."""

        def age() -> str | None:
            oldest = _oldest_record(self.early)
            return f"records of {oldest:g} s" if oldest >= OLD_SECONDS else None

        return until(age, f"records of {OLD_SECONDS:g} s", TELLING_SECONDS)

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
        built = self.build()
        # The keeper of a stream that was on is there before the walk, and may put any of them.
        least = 0 if self.table.streams else len(self.keys)
        put = built["build"]["put"]
        expect(least <= put <= len(self.keys), f"{put} sentinels put for {len(self.keys)} keys")
        expect_equal(built["verification"]["remaining"], 0, "what is wrong after the build")
        index = self._describe()["GlobalSecondaryIndexes"][0]
        if self.table.capacity:
            units = index["ProvisionedThroughput"]["WriteCapacityUnits"]
            expect(units <= self.table.capacity, f"the index has {units} WCU after the build")
            if self._is_scaled:
                capacity = built["capacity"]
                expect_equal(capacity["refused"], None, "what auto scaling refused")
                expect_equal(capacity["scaled"], True, "whether the index has auto scaling")
                expect_equal(_scaled_by(self.table.name), SCALED, "what scales the index")
        self._follow()
        output = self._list_by_index()
        expect_equal(output["keys"], len(self.keys), "keys by the index")
        self._put({"pk": {"S": "new"}, "sk": {"S": "a"}}, back=True)
        self.remove()
        expect_equal(self._items(), self.before, "the items after the removal")
        told = self._describe()
        expect(not told.get("GlobalSecondaryIndexes"), "an index is left")
        if self._is_scaled:
            expect_equal(_scaled_by(self.table.name), [], "what scales the index that is gone")
        on = bool((told.get("StreamSpecification") or {}).get("StreamEnabled"))
        expect_equal(on, self.table.streams, "whether the stream is on")
        return f"{put} sentinels put by the build, {output['read_units']:g} read units by the index"

    @property
    def _has_metrics(self) -> bool:
        return "cloudwatch" not in self.ways.lacks

    def _list_by_index(self) -> dict[str, Any]:
        """Return the output of a run by method auto, as soon as one has read the index."""
        deadline = time.monotonic() + (TRUST_SECONDS if self._has_metrics else 0.0)
        number = 1
        while True:
            run = self.runs.start(f"{self.table.label}-auto-{number}", {"table": self.table.name})
            output = self.runs.output(run)
            if output["method"] == "index":
                return output
            why = self.runs.manifest(run).get("reason")
            expect(time.monotonic() < deadline, f"auto chose {output['method']}: {why}")
            time.sleep(TRUST_PAUSE_SECONDS)
            number += 1

    def build(self) -> dict[str, Any]:
        """The output of BuildKeyIndex."""
        return self._do("build", {"graceSeconds": GRACE_SECONDS, "maxWriteRate": WRITE_RATE})

    def remove(self) -> None:
        """RemoveKeyIndex; raises Differs if the table is not as before."""
        expect_equal(self._do("remove", {})["as_before"], True, "the table is as before")

    def _follow(self) -> None:
        """A collection comes and another goes; the keeper puts and deletes their sentinels."""
        self._put({"pk": {"S": "new"}, "sk": {"S": "a"}})
        gone = {"pk": {"S": "k0"}, "sk": {"S": "000000"}}  # the only item of it
        item = self.client.get_item(TableName=self.table.name, Key=gone)["Item"]
        self.client.delete_item(TableName=self.table.name, Key=gone)
        self.keys.discard(comparable(gone["pk"]))
        self._wait_for_rows(self.keys)
        self.client.put_item(TableName=self.table.name, Item=item)
        self.keys.add(comparable(gone["pk"]))
        self._wait_for_rows(self.keys)

    def _put(self, item: dict[str, Any], back: bool = False) -> None:
        """back: take it away again."""
        if back:
            self.client.delete_item(TableName=self.table.name, Key=item)
            return
        self.client.put_item(TableName=self.table.name, Item=item)
        self.keys.add(comparable(item["pk"]))

    def _wait_for_rows(self, wanted: set[Any]) -> None:
        deadline = time.monotonic() + FOLLOW_SECONDS
        while True:
            page = self.client.scan(TableName=self.table.name, IndexName=INDEX)
            rows = [comparable(item["pk"]) for item in page["Items"]]
            if set(rows) == wanted or time.monotonic() > deadline:
                break
            time.sleep(self.ways.poll_seconds)
        expect_keys(rows, wanted)

    def _items(self) -> list[str]:
        """All of them; a table of this suite fits into a page."""
        page = self.client.scan(TableName=self.table.name, ConsistentRead=True)
        return sorted(map(repr, page["Items"]))

    def _describe(self) -> dict[str, Any]:
        return dict(self.client.describe_table(TableName=self.table.name)["Table"])

    def _do(self, action: str, given: dict[str, Any]) -> dict[str, Any]:
        asked = {"table": self.table.name, **given}
        self._done += 1
        what = f"{self.table.label}-{'again' if self.before is None else action}-{self._done}"
        name = self.runs.start(what, asked, self.machines[action])
        return self.runs.output(name, INDEX_SECONDS)


def life_of(client: Any, table: Fixture, runs: Runs, outputs: Mapping[str, str]) -> Life:
    """Of a table, by the state machines of a stack with these outputs."""
    machines = {name: outputs[f"{name.capitalize()}KeyIndexArn"] for name in ("build", "remove")}
    return Life(client, runs, machines, runs.ways, table)


def check_key_index(
    client: Any, tables: list[Fixture], runs: Runs, outputs: Mapping[str, str], report: Report
) -> None:
    """Each table's index; outputs: of the stack."""
    for table in tables:
        life = life_of(client, table, runs, outputs)
        names = ["index-life"]
        if table.streams:
            names += ["index-old-records", "index-stream-stays"]
        if table.capacity:
            names += ["index-capacity", "index-scaling"]
        if table.key:
            names.append("index-kms")
        came = _Once(life)
        looks = {"index-old-records": lambda came=came, life=life: came() and life.old_records()}
        for name in names:
            report.check(name, looks.get(name, came), table.name)
    if not any(table.key for table in tables):
        report.check("index-kms", _no_key)


@contextmanager
def _scaled(table: str, capacity: int) -> Iterator[None]:
    """Give a table auto scaling of its writes, which never takes it above its capacity.

    Also AWS's role for that comes into the account, if it was not there; it stays.
    """
    client = boto3.client("application-autoscaling")
    which = {
        "ServiceNamespace": "dynamodb",
        "ResourceId": f"table/{table}",
        "ScalableDimension": "dynamodb:table:WriteCapacityUnits",
    }
    client.register_scalable_target(**which, MinCapacity=capacity, MaxCapacity=capacity)
    metric = {"PredefinedMetricType": "DynamoDBWriteCapacityUtilization"}
    try:
        client.put_scaling_policy(
            **which,
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
    """Remove the auto scaling of tables and of their key indexes, which their deletion leaves;
    return what could not be removed, and why.
    """
    client = boto3.client("application-autoscaling")
    left = []
    for table in tables:
        resources = [f"table/{table}", f"table/{table}/index/{INDEX}"]
        told = client.describe_scalable_targets(ServiceNamespace="dynamodb", ResourceIds=resources)
        for target in told["ScalableTargets"]:
            names = ("ServiceNamespace", "ResourceId", "ScalableDimension")
            try:
                client.deregister_scalable_target(**{name: target[name] for name in names})
            except (BotoCoreError, ClientError) as error:
                left.append(f"auto scaling of {target['ResourceId']}: {error}")
    return left


SCALED = ["dynamodb:index:WriteCapacityUnits"]
"""The dimensions that are scaled in the index of a table that scales only its writes."""


def _scaled_by(table: str) -> list[str]:
    """Return the dimensions of a table's key index that policies scale, as the service tells."""
    told = boto3.client("application-autoscaling").describe_scaling_policies(
        ServiceNamespace="dynamodb", ResourceId=f"table/{table}/index/{INDEX}"
    )
    return [policy["ScalableDimension"] for policy in told["ScalingPolicies"]]


def _oldest_record(since: datetime) -> float:
    """Return the greatest age, in seconds, of the batches that a keeper got since a moment."""
    told = boto3.client("cloudwatch").get_metric_statistics(
        Namespace="AWS/Lambda",
        MetricName="IteratorAge",
        Dimensions=[{"Name": "FunctionName", "Value": f"{NAME}-KeepIndex"}],
        StartTime=since,
        EndTime=datetime.now(UTC) + timedelta(minutes=5),
        Period=300,
        Statistics=["Maximum"],
    )
    return max((point["Maximum"] / 1000 for point in told["Datapoints"]), default=0.0)


class _Once:
    """One life is what several checks look at: it is lived once, and each tells what it came to."""

    def __init__(self, life: Life) -> None:
        self._life = life
        self._came: str | Exception | None = None

    def __call__(self) -> str:
        if self._came is None:
            try:
                self._came = self._life.build_keep_read_remove()
            except Exception as error:
                self._came = error
        if isinstance(self._came, Exception):
            raise self._came
        return self._came


def _no_key() -> str:
    raise Differs("no table with a customer-managed key was made")
