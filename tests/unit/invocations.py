"""The context that Lambda passes to a handler, and the metrics that a handler prints."""

import json
from dataclasses import dataclass


@dataclass
class Context:
    function_name: str = "f"
    memory_limit_in_mb: int = 1769
    invoked_function_arn: str = "arn:f"
    aws_request_id: str = "request-1"

    def get_remaining_time_in_millis(self) -> int:
        return 900_000


def metrics_in(printed: str) -> dict[tuple[str, str], float]:
    """Return the values of the embedded metrics by name and reason."""
    values = {}
    for line in printed.splitlines():
        record = json.loads(line)
        if "_aws" in record:
            (metrics,) = record["_aws"]["CloudWatchMetrics"]
            assert metrics["Namespace"] == "Keyhop"
            assert {"service", "table"} <= set(metrics["Dimensions"][-1])
            for metric in metrics["Metrics"]:
                (value,) = record[metric["Name"]]
                values[metric["Name"], record.get("Reason", "")] = value
    return values
