"""The table as a whole: what CloudWatch says of it, and raising its provisioned writes."""

import datetime
from dataclasses import dataclass, field
from threading import Lock
from typing import Any

from botocore.exceptions import BotoCoreError, ClientError

from keyhop.sharding.store.requests import Requests

REFRESH_SECONDS = 60.0
"""CloudWatch has a value for each minute."""
MINUTES = 3
STEP = 1.5
"""By how much provisioned writes are raised at once."""
_METRICS = (
    ("consumed", "ConsumedWriteCapacityUnits", "Sum"),
    ("provisioned", "ProvisionedWriteCapacityUnits", "Maximum"),
)


@dataclass(frozen=True, slots=True)
class Provisioned:
    """Bounds within which a provisioned table's write units may be raised by a writer.

    least: never set fewer, as a floor of auto scaling. most: never set more. Lowering is not done:
    auto scaling, or the owner, does that.
    """

    least: int
    most: int

    def __post_init__(self) -> None:
        if not 1 <= self.least <= self.most:
            raise ValueError(f"least {self.least} and most {self.most} are no bounds")

    def raised(self, present: int) -> int:
        """The write units to set; never fewer than at present."""
        wanted = max(self.least, int(present * STEP), present + 1)
        return max(present, min(self.most, wanted))


@dataclass(slots=True)
class Capacity:
    """Provisioned write units of one table. cloudwatch: boto3's client, None if there is none."""

    requests: Requests
    table: str
    bounds: Provisioned | None
    cloudwatch: Any
    _refreshed: float = float("-inf")
    _consumption: tuple[float | None, float | None] = (None, None)
    _raised: float = float("-inf")
    _lock: Lock = field(default_factory=Lock)

    def consumption(self) -> tuple[float | None, float | None]:
        """Consumed and provisioned write units a second, None where nothing is known."""
        if self.cloudwatch is None:
            return None, None
        with self._lock:
            now = self.requests.clock.monotonic()
            if now - self._refreshed >= REFRESH_SECONDS:
                self._refreshed = now
                self._consumption = self._read_cloudwatch()
            return self._consumption

    def raise_if_allowed(self) -> None:
        """Raise the provisioned writes by a step, within the bounds; once in a minute.

        However many writers see the throttle, the table is raised once: UpdateTable is refused
        while another is under way, and who comes later finds the new figure.
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
            wanted = self.bounds.raised(write)
            raised = present.get("LastIncreaseDateTime")  # by whomever
            if raised and self.requests.clock.time() - raised.timestamp() < REFRESH_SECONDS:
                return
            if table["TableStatus"] == "ACTIVE" and write and wanted > write:
                self.requests.once(
                    "update_table",
                    TableName=self.table,
                    ProvisionedThroughput={
                        "ReadCapacityUnits": present["ReadCapacityUnits"],
                        "WriteCapacityUnits": wanted,
                    },
                )
        except (ClientError, BotoCoreError):
            return  # another writer is at it, or may not: the write backs off as it does anyway

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
        values = {one["Id"]: one["Values"] for one in answer["MetricDataResults"]}
        consumed = max(values.get("consumed", ()), default=None)
        provisioned = values.get("provisioned") or [None]
        return None if consumed is None else consumed / 60, provisioned[0]
