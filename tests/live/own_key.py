"""A customer-managed key for one table of the suite."""

from typing import Any

import boto3
from botocore.exceptions import BotoCoreError, ClientError

from tests.live.workshop import TAG

PENDING_DAYS = 7
"""The least that KMS allows; a key that waits for its deletion is not charged."""


class OwnKey:
    """One key, tagged, that goes when the suite ends."""

    def __init__(self, suite: str) -> None:
        self._suite = suite
        self._client: Any = None
        self.arn: str | None = None

    def make(self) -> str:
        """Create it; its policy is KMS's default, by which IAM decides."""
        self._client = boto3.client("kms")
        made = self._client.create_key(
            Description="Keyhop's live suite: of one table, for an hour",
            Tags=[{"TagKey": TAG, "TagValue": self._suite}],
        )
        self.arn = str(made["KeyMetadata"]["Arn"])
        return self.arn

    def remove(self) -> list[str]:
        """Have it deleted; returns what could not be removed, and why."""
        if self.arn is None:
            return []
        try:
            self._client.schedule_key_deletion(KeyId=self.arn, PendingWindowInDays=PENDING_DAYS)
        except (BotoCoreError, ClientError) as error:
            return [f"key {self.arn}: {error}"]
        return []
