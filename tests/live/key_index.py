"""A key index from its build to its removal, on tables that differ in what they were before."""

import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import boto3
from keyhop.key_index.sentinel import INDEX

from tests.live.fixtures import Fixture, comparable
from tests.live.report import Differs, Report, expect, expect_equal, expect_keys
from tests.live.runs import Runs
from tests.live.ways import Ways

FOLLOW_SECONDS = 300.0
"""For the keeper: a new mapping takes up to a minute or two to begin."""

GRACE_SECONDS = 30
WRITE_RATE = 200
MORE_WRITES = 10
"""Of a user, and of the keeper for them."""

EARLY = {"pk": {"S": "before the keeper"}, "sk": {"S": "a"}}
"""Written after the stream was turned on and before anybody follows it."""


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
        self.before: Any = None
        self._done = 0

    def build_keep_read_remove(self) -> str:
        """All of it; the order is a user's."""
        if self.table.capacity and "scaling" not in self.ways.lacks:
            with _scaled(self.table.name, self.table.capacity):
                return self._build_keep_read_remove()
        return self._build_keep_read_remove()

    def _build_keep_read_remove(self) -> str:
        if self.table.streams:
            self._put(EARLY)
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
            if "scaling" not in self.ways.lacks:
                capacity = built["capacity"]
                expect_equal(capacity["refused"], None, "what auto scaling refused")
                expect_equal(capacity["scaled"], True, "whether the index has auto scaling")
        self._follow()
        run = self.runs.start(f"{self.table.label}-auto", {"table": self.table.name})
        output = self.runs.output(run)
        expect_equal(output["method"], "index", "what auto chose")
        expect_equal(output["keys"], len(self.keys), "keys by the index")
        self._put({"pk": {"S": "new"}, "sk": {"S": "a"}}, back=True)
        self.remove()
        expect_equal(self._items(), self.before, "the items after the removal")
        told = self._describe()
        expect(not told.get("GlobalSecondaryIndexes"), "an index is left")
        on = bool((told.get("StreamSpecification") or {}).get("StreamEnabled"))
        expect_equal(on, self.table.streams, "whether the stream is on")
        return f"{put} sentinels put by the build, {output['read_units']:g} read units by the index"

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
        return self.runs.output(name)


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
        for name in names:
            report.check(name, came, table.name)
    if not any(table.key for table in tables):
        report.check("index-kms", _no_key)


@contextmanager
def _scaled(table: str, capacity: int) -> Iterator[None]:
    """Give a table auto scaling of its writes, which never takes it above its capacity."""
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
        client.deregister_scalable_target(**which)


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
