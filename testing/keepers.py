"""Keepers as Lambda, CloudWatch and SQS report them, for tests without a cloud."""

from dataclasses import dataclass, field
from typing import Any

from keyhop.streams.event_source import Watch

KEEPER = "arn:aws:lambda:us-east-1:111122223333:function:Keyhop-KeepIndex"
QUEUE = "arn:aws:sqs:us-east-1:111122223333:failures"


@dataclass
class FakeLambda:
    """Lambda's event source mappings; each is Enabled from the second time it is listed."""

    mappings: dict[str, dict[str, Any]] = field(default_factory=dict)
    changes: int = 0

    def create_event_source_mapping(self, **request: Any) -> None:
        self.changes += 1
        uuid = f"m{self.changes}"
        mapping = {"UUID": uuid, "State": "Creating", "FunctionArn": KEEPER}
        self.mappings[uuid] = {**request, **mapping, "LastModified": self.changes}

    def update_event_source_mapping(
        self,
        UUID: str,  # noqa: N803
        Enabled: bool = True,  # noqa: N803
        **request: Any,
    ) -> None:
        self.changes += 1
        state = "Enabled" if Enabled else "Disabled"
        self.mappings[UUID] |= {**request, "State": state, "LastModified": self.changes}

    def delete_event_source_mapping(self, UUID: str) -> None:  # noqa: N803
        del self.mappings[UUID]

    def get_paginator(self, name: str) -> "FakeLambda":
        return self

    def paginate(self, **request: str) -> "FakeLambda":
        return self

    def search(self, path: str) -> list[Any]:
        mappings = [dict(mapping) for mapping in self.mappings.values()]
        for mapping in self.mappings.values():
            if mapping["State"] == "Creating":
                mapping["State"] = "Enabled"
        return mappings


@dataclass
class Elsewhere:
    """CloudWatch and SQS, as a watch calls them.

    Attributes:
        age: The age in seconds of the last batch that the keeper received.
        messages: The number of messages in its failure queue.
    """

    age: float = 0.0
    messages: int = 0

    def get_metric_statistics(self, **request: Any) -> dict[str, Any]:
        age = 1000 * self.age if request["Namespace"] == "AWS/Lambda" else 0.0
        return {"Datapoints": [{"Timestamp": request["EndTime"], "Maximum": age, "Sum": age}]}

    def get_queue_url(self, **request: str) -> dict[str, str]:
        return {"QueueUrl": request["QueueName"]}

    def get_queue_attributes(self, **request: Any) -> dict[str, Any]:
        names = ("ApproximateNumberOfMessages", "ApproximateNumberOfMessagesNotVisible")
        return {"Attributes": dict(zip(names, (str(self.messages), "0"), strict=True))}


def watch_of(lambdas: FakeLambda, services: Elsewhere | None = None) -> Watch:
    """Return a watch of these services."""
    other_services = services or Elsewhere()
    return Watch(lambda service: lambdas if service == "lambda" else other_services)
