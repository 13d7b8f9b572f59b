"""Keepers as Lambda, CloudWatch and SQS tell of them, for tests without a cloud."""

from dataclasses import dataclass, field
from typing import Any

from keyhop.streams.event_source import Watch

KEEPER = "arn:aws:lambda:us-east-1:111122223333:function:Keyhop-KeepIndex"
QUEUE = "arn:aws:sqs:us-east-1:111122223333:failures"


@dataclass
class FakeLambda:
    """Lambda's mappings; each becomes Enabled when it is looked at for the second time."""

    mappings: dict[str, dict[str, Any]] = field(default_factory=dict)
    changes: int = 0

    def create_event_source_mapping(self, **given: Any) -> None:
        self.changes += 1
        uuid = f"m{self.changes}"
        own = {"UUID": uuid, "State": "Creating", "FunctionArn": KEEPER}
        self.mappings[uuid] = {**given, **own, "LastModified": self.changes}

    def update_event_source_mapping(
        self,
        UUID: str,  # noqa: N803
        Enabled: bool = True,  # noqa: N803
        **given: Any,
    ) -> None:
        self.changes += 1
        state = "Enabled" if Enabled else "Disabled"
        self.mappings[UUID] |= {**given, "State": state, "LastModified": self.changes}

    def delete_event_source_mapping(self, UUID: str) -> None:  # noqa: N803
        del self.mappings[UUID]

    def get_paginator(self, name: str) -> "FakeLambda":
        return self

    def paginate(self, **given: str) -> "FakeLambda":
        return self

    def search(self, path: str) -> list[Any]:
        found = [dict(mapping) for mapping in self.mappings.values()]
        for mapping in self.mappings.values():
            if mapping["State"] == "Creating":
                mapping["State"] = "Enabled"
        return found


@dataclass
class Elsewhere:
    """The rest of what a watch asks: how far the keeper is behind, what lies in its queue.

    Attributes:
        age: Of the last batch that the keeper got, in seconds.
        messages: How many messages there are in its failure queue.
    """

    age: float = 0.0
    messages: int = 0

    def get_metric_statistics(self, **asked: Any) -> dict[str, Any]:
        age = 1000 * self.age if asked["Namespace"] == "AWS/Lambda" else 0.0
        return {"Datapoints": [{"Timestamp": asked["EndTime"], "Maximum": age, "Sum": age}]}

    def get_queue_url(self, **asked: str) -> dict[str, str]:
        return {"QueueUrl": asked["QueueName"]}

    def get_queue_attributes(self, **asked: Any) -> dict[str, Any]:
        names = ("ApproximateNumberOfMessages", "ApproximateNumberOfMessagesNotVisible")
        return {"Attributes": dict(zip(names, (str(self.messages), "0"), strict=True))}


def watch_of(lambdas: FakeLambda, elsewhere: Elsewhere | None = None) -> Watch:
    """What can be seen of these."""
    rest = elsewhere or Elsewhere()
    return Watch(lambda service: lambdas if service == "lambda" else rest)
