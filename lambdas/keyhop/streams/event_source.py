"""The keeper's event source mapping: made when an index is built, removed with it.

It is made by BuildKeyIndex and not by the stack: only then is it certain that the table has a
stream, whose ARN changes whenever somebody turns the stream off and on. So nobody types an ARN or
deploys twice, and an audit mends a mapping that points to a stream of yesterday.
"""

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from botocore.exceptions import BotoCoreError, ClientError

from keyhop.dynamodb.client import Endpoint, aws_client
from keyhop.dynamodb.requester import error_code
from keyhop.dynamodb.tables import BUSY

KEEPER = "KeepIndex"
"""The keeper function's name ends so."""

FILTER = '{"eventName": ["INSERT", "REMOVE"]}'
"""Sentinels' own writes pass: somebody must look after each of them (protocol.py)."""

SETTINGS: Mapping[str, Any] = {
    # All records since the stream began, or of a day: LATEST could miss some while it starts.
    "StartingPosition": "TRIM_HORIZON",
    "FilterCriteria": {"Filters": [{"Pattern": FILTER}]},
    "BatchSize": 500,
    "MaximumBatchingWindowInSeconds": 0,
    "ParallelizationFactor": 4,
    "BisectBatchOnFunctionError": True,
    "MaximumRetryAttempts": 16,
    # The queue's messages point into the stream, which keeps a record for 24 hours.
    "MaximumRecordAgeInSeconds": 6 * 3600,
    "FunctionResponseTypes": ["ReportBatchItemFailures"],
}
"""A record that fails again after 16 retries goes to the failure queue, so that it does not hold up
others for a day. An attempt bears throttling for most of the function's time: a quarter of an hour
in all."""


@dataclass(frozen=True, slots=True)
class Mappings:
    """The keeper's mappings. function: its name or ARN. queue: the failure queue's ARN."""

    client: Any
    function: str
    queue: str

    def attach(self, stream: str) -> bool:
        """Make sure that the keeper follows the stream, and no older stream of its table.

        Returns whether the mapping is at work; until then it has to be called again.
        """
        found = self.of_table(stream)
        current = [mapping for mapping in found if mapping["EventSourceArn"] == stream]
        for mapping in found:
            if mapping not in current:
                self._delete(mapping["UUID"])
        if not current:
            self.client.create_event_source_mapping(
                EventSourceArn=stream,
                FunctionName=self.function,
                DestinationConfig={"OnFailure": {"Destination": self.queue}},
                **SETTINGS,
            )
            return False
        (mapping, *_) = current
        if mapping["State"] == "Disabled":
            self.client.update_event_source_mapping(UUID=mapping["UUID"], Enabled=True)
            return False
        return bool(mapping["State"] == "Enabled")

    def detach(self, stream: str) -> bool:
        """Remove the mappings of the stream's table; returns whether there are none."""
        found = self.of_table(stream)
        for mapping in found:
            if mapping["State"] != "Deleting":
                self._delete(mapping["UUID"])
        return not found

    def detach_all_but(self, tables: Sequence[str]) -> bool:
        """Remove the keeper's mappings to streams of other tables; returns whether there are none.

        One that is changing at this moment is refused; so it is called again until it is true.
        """
        kept = tuple(f":table/{name}/stream/" for name in tables)
        gone = [m for m in self._all() if not any(k in m.get("EventSourceArn", "") for k in kept)]
        for mapping in gone:
            if mapping["State"] != "Deleting":
                self._delete(mapping["UUID"])
        return not gone

    def of_table(self, stream: str) -> list[dict[str, Any]]:
        """The keeper's mappings to a stream of the same table."""
        table = stream.partition("/stream/")[0] + "/stream/"
        return [m for m in self._all() if m.get("EventSourceArn", "").startswith(table)]

    def others(self, stream: str) -> list[str]:
        """Functions other than the keeper that follow the stream."""
        mine = self.function.rpartition(":")[2]
        return [name for name in _followers(self.client, stream) if name != mine]

    def _all(self) -> list[dict[str, Any]]:
        pages = self.client.get_paginator("list_event_source_mappings")
        return list(pages.paginate(FunctionName=self.function).search("EventSourceMappings[]"))

    def _delete(self, uuid: str) -> None:
        try:
            self.client.delete_event_source_mapping(UUID=uuid)
        except ClientError as error:  # gone already, or changing at this moment
            if error_code(error) not in ("ResourceNotFoundException", BUSY):
                raise


def keepers_of(stream: str | None, endpoint: Endpoint) -> list[str] | None:
    """Names of keepers that follow a stream; None if that cannot be seen from here.

    A local database has a keeper only on the laptop cloud, which its environment names.
    """
    elsewhere = os.environ.get("AWS_ENDPOINT_URL_LAMBDA") or os.environ.get("AWS_ENDPOINT_URL")
    if stream is None or (endpoint.is_loopback and not elsewhere):
        return []
    try:
        followers = _followers(aws_client("lambda", endpoint, attempts=2), stream)
        return [name for name in followers if name.endswith(KEEPER)]
    except (BotoCoreError, ClientError):
        return None


def _followers(client: Any, stream: str) -> list[str]:
    """Names of the functions that follow a stream."""
    pages = client.get_paginator("list_event_source_mappings").paginate(EventSourceArn=stream)
    return sorted({_name(arn) for arn in pages.search("EventSourceMappings[].FunctionArn") if arn})


def _name(arn: str) -> str:
    return arn.partition(":function:")[2].partition(":")[0] or arn
