"""What is seen of sharded tables, and when somebody is told."""

from aws_cdk import Duration
from aws_cdk import aws_cloudwatch as cw

from infra.config import Config
from infra.functions import SERVICE
from infra.graphs import MINUTE, MakesAlarms, graph, keyhop
from infra.sharding import DRAIN, ShardedTables

FIVE_MINUTES = Duration.minutes(5)
QUARTER = Duration.minutes(15)

REASONS = (
    *(
        f"{scope}Write{limit}Exceeded"
        for scope in ("Table", "Index")
        for limit in (
            *("KeyRangeThroughput", "ProvisionedThroughput"),
            *("AccountLimit", "MaxOnDemandThroughput"),
        )
    ),
    "unknown",
)
"""Why DynamoDB throttles writes; unknown: it did not say."""


class ShardingMonitoring:
    """Alarms and widgets; the topic and the dashboard are those of all."""

    def __init__(self, config: Config, sharded: ShardedTables, alarm: MakesAlarms) -> None:
        self._config = config
        self._sharded = sharded
        self._alarm = alarm
        self.alarms = [self._at_maximum(), self._failed_drain()]

    def widgets(self) -> list[list[cw.IWidget]]:
        """Rows of the dashboard."""
        return [
            [self._shards_graph(), self._throttles_graph()],
            [self._items_graph(), self._drains_graph()],
        ]

    def _at_maximum(self) -> cw.Alarm:
        return self._alarm(
            "KeyAtMaximum",
            keyhop(self._config, "KeysAtMaximum", period=QUARTER),
            1,
            "A hot key has the most shards that it may have, so its writes go on being throttled. "
            "Raise sharding.mostShards of its table in cdk.json and deploy again, or write less to "
            "it; `keyhop shards list TABLE` shows which key it is.",
        )

    def _failed_drain(self) -> cw.Alarm:
        return self._alarm(
            f"Failed{DRAIN}",
            self._sharded.drain_shards.metric_failed(period=MINUTE, statistic="Sum"),
            1,
            "A drain did not come to its end. Nothing is lost: readers go on reading every shard "
            "that may hold items. The cause of the execution, in the Step Functions console, says "
            "what happened; then start the same input again.",
        )

    def _shards_graph(self) -> cw.IWidget:
        return graph(
            "Sharded tables: shards, and hot keys",
            [
                keyhop(self._config, "ShardsAdded", "shards added"),
                keyhop(self._config, "ShardsRemoved", "shards removed"),
                keyhop(self._config, "RacesLost", "races lost"),
                keyhop(self._config, "KeysAtMaximum", "hot keys at the maximum"),
            ],
            right=[keyhop(self._config, "HotKeyThrottles", "throttles of hot keys (right)")],
        )

    def _throttles_graph(self) -> cw.IWidget:
        by_reason: list[cw.IMetric] = [
            cw.Metric(
                namespace=self._config.stack_name,
                metric_name="Throttles",
                dimensions_map={"service": SERVICE, "Reason": reason},
                label=reason,
                statistic="Sum",
                period=MINUTE,
            )
            for reason in REASONS
        ]
        return graph("Sharded tables: throttled writes, by reason", by_reason, stacked=True)

    def _items_graph(self) -> cw.IWidget:
        return graph(
            "Sharded tables: items",
            [
                keyhop(self._config, "ItemsWritten", "items written"),
                keyhop(self._config, "ItemsMoved", "items moved"),
            ],
            right=[keyhop(self._config, "ItemsFailed", "items that failed (right)")],
        )

    def _drains_graph(self) -> cw.IWidget:
        drains = self._sharded.drain_shards
        errors: list[cw.IMetric] = [
            function.metric_errors(
                label=f"{name}: errors (right)", period=FIVE_MINUTES, statistic="Sum"
            )
            for name, function in self._sharded.functions.items()
        ]
        return graph(
            "Sharded tables: drains, and errors",
            [
                keyhop(self._config, "DrainsProposed", "drains proposed", period=FIVE_MINUTES),
                drains.metric_succeeded(
                    label="drains that succeeded", period=FIVE_MINUTES, statistic="Sum"
                ),
                drains.metric_failed(
                    label="drains that failed", period=FIVE_MINUTES, statistic="Sum"
                ),
            ],
            right=errors,
        )
