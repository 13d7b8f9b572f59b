"""The capacity of the whole table: CloudWatch's metrics, and increases of provisioned writes."""

import datetime
from dataclasses import dataclass, field
from threading import Lock
from typing import Any

from botocore.exceptions import BotoCoreError, ClientError

from keyhop.sharding.store.requests import Requests

REFRESH_SECONDS = 60.0
"""CloudWatch has one value for each minute."""
MINUTES = 3
STEP = 1.5
"""The factor by which provisioned writes are increased."""
_METRICS = (
    ("consumed", "ConsumedWriteCapacityUnits", "Sum"),
    ("provisioned", "ProvisionedWriteCapacityUnits", "Maximum"),
)


@dataclass(frozen=True, slots=True)
class Provisioned:
    """Bounds within which writers may increase a provisioned table's write units, with the minimum
    of auto scaling. Writers never decrease them; auto scaling or the owner does.
    """

    least: int
    most: int

    def __post_init__(self) -> None:
        if not 1 <= self.least <= self.most:
            raise ValueError(f"least {self.least} and most {self.most} are not bounds")

    def raised(self, present: int) -> int:
        """Return the write units to set, which are never fewer than at present."""
        target = max(self.least, int(present * STEP), present + 1)
        return max(present, min(self.most, target))


@dataclass(slots=True)
class Capacity:
    """Provisioned write units of one table. cloudwatch: boto3's client, or None."""

    requests: Requests
    table: str
    bounds: Provisioned | None
    cloudwatch: Any
    _refreshed: float = float("-inf")
    _consumption: tuple[float | None, float | None] = (None, None)
    _raised: float = float("-inf")
    _lock: Lock = field(default_factory=Lock)

    def consumption(self) -> tuple[float | None, float | None]:
        """Return the consumed and provisioned write units a second; None if unknown."""
        if self.cloudwatch is None:
            return None, None
        with self._lock:
            now = self.requests.clock.monotonic()
            if now - self._refreshed >= REFRESH_SECONDS:
                self._refreshed = now
                self._consumption = self._read_cloudwatch()
            return self._consumption

    def raise_if_allowed(self) -> None:
        """Increase the provisioned writes by one step within the bounds, at most once a minute.

        Even if many writers are throttled, there is one increase: UpdateTable is refused during
        another one, and later writers find the new value.
        """
        if self.bounds is None:
            return
        with self._lock:
            now = self.requests.clock.monotonic()
            if now - self._raised < REFRESH_SECONDS:
                return
            self._raised = now
        try:
            table = self.requests.once("describe_table", TableName=self.table)["Table"]
            present = table.get("ProvisionedThroughput", {})
            write = int(present.get("WriteCapacityUnits", 0))
            target = self.bounds.raised(write)
            raised = present.get("LastIncreaseDateTime")  # by any client
            if raised and self.requests.clock.time() - raised.timestamp() < REFRESH_SECONDS:
                return
            if table["TableStatus"] == "ACTIVE" and write and target > write:
                self.requests.once(
                    "update_table",
                    TableName=self.table,
                    ProvisionedThroughput={
                        "ReadCapacityUnits": present["ReadCapacityUnits"],
                        "WriteCapacityUnits": target,
                    },
                )
        except (ClientError, BotoCoreError):
            return  # another writer changes it, or this one has no permission: the write backs off

    def _read_cloudwatch(self) -> tuple[float | None, float | None]:
        until = datetime.datetime.fromtimestamp(self.requests.clock.time(), datetime.UTC)
        metric = {
            "Namespace": "AWS/DynamoDB",
            "Dimensions": [{"Name": "TableName", "Value": self.table}],
        }
        try:
            answer = self.cloudwatch.get_metric_data(
                StartTime=until - datetime.timedelta(minutes=MINUTES),
                EndTime=until,
                MetricDataQueries=[
                    {
                        "Id": id_,
                        "MetricStat": {
                            "Metric": {**metric, "MetricName": name},
                            "Period": 60,
                            "Stat": statistic,
                        },
                    }
                    for id_, name, statistic in _METRICS
                ],
            )
        except (ClientError, BotoCoreError):
            return None, None
        values = {result["Id"]: result["Values"] for result in answer["MetricDataResults"]}
        consumed = max(values.get("consumed", ()), default=None)
        provisioned = values.get("provisioned") or [None]
        return None if consumed is None else consumed / 60, provisioned[0]
