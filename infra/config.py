"""The deployment's settings: frozen dataclasses, made from the CDK context.

A wrong value is a `ConfigError` that names the field, what it is and what is allowed. Fields are
read in config_fields.py, those of tables in config_tables.py and config_sharding.py.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from infra.config_fields import ConfigError, Fields
from infra.config_tables import Table, tables_of, with_metadata_tables

__all__ = ["Config", "ConfigError", "Logs", "Results", "Worker"]

LOG_LEVELS = ("DEBUG", "INFO", "WARNING", "ERROR")
ARCHITECTURES = {"arm64": "arm64", "x86_64": "x86_64", "x86-64": "x86_64"}

_STACK_NAME = re.compile(r"[A-Za-z][A-Za-z0-9-]{0,47}")
_EMAIL = re.compile(r"[^@\s,]+@[^@\s,]+\.[^@\s,]+")


@dataclass(frozen=True)
class Results:
    """What becomes of the results."""

    retention_days: int
    keep: bool
    """Whether the bucket stays when the stack is destroyed."""


@dataclass(frozen=True)
class Logs:
    """How much is logged, and for how long it is kept."""

    level: str
    retention_days: int


@dataclass(frozen=True)
class Worker:
    """The function that reads the table."""

    memory_mb: int
    timeout_seconds: int
    reserved_concurrency: int | None


@dataclass(frozen=True)
class Config:
    """One deployment."""

    stack_name: str
    tables: tuple[Table, ...]
    architecture: str
    """As CloudFormation writes it: arm64 or x86_64."""
    results: Results
    logs: Logs
    worker: Worker
    alarm_email: str | None
    dynamodb_endpoint: str | None
    """Only on a laptop: where DynamoDB is."""
    audit_schedule: str | None
    """When key indexes are audited, as EventBridge writes it; None: never by themselves."""
    shrink_schedule: str | None
    """When it is asked which keys have more shards than they need; None: never by itself."""
    start_drains: bool
    """Whether such shards are drained then, and not only proposed."""

    @property
    def key_index_tables(self) -> tuple[Table, ...]:
        """The tables that may have a key index."""
        return tuple(table for table in self.tables if table.key_index)

    @property
    def sharded_tables(self) -> tuple[Table, ...]:
        """The tables whose hot keys are spread over shards."""
        return tuple(table for table in self.tables if table.sharding is not None)

    @classmethod
    def from_context(cls, context: Mapping[str, Any]) -> "Config":
        """Read all fields; raises ConfigError at the first that is wrong."""
        fields = Fields(context)
        tables = tables_of(fields)
        stack_name = fields.text(
            "stackName",
            "Keyhop",
            _STACK_NAME,
            "1 to 48 letters, digits and hyphens, with a letter first",
        )
        config = cls(
            stack_name=stack_name,
            tables=with_metadata_tables(tables, stack_name),
            architecture=ARCHITECTURES[fields.choice("architecture", "arm64", ARCHITECTURES)],
            results=Results(
                retention_days=fields.number("resultsRetentionDays", 90, 1, 3650),
                keep=fields.truth("keepResults", True),
            ),
            logs=Logs(
                level=fields.choice("logLevel", "INFO", LOG_LEVELS),
                retention_days=fields.log_retention("logRetentionDays", 30),
            ),
            worker=Worker(
                memory_mb=fields.number("workerMemoryMb", 1769, 512, 10240),
                timeout_seconds=fields.number("workerTimeoutSeconds", 900, 30, 900),
                reserved_concurrency=fields.optional(
                    "reservedConcurrency", lambda name: fields.number(name, 1, 1, 1000)
                ),
            ),
            alarm_email=fields.optional(
                "alarmEmail", lambda name: fields.text(name, "", _EMAIL, "one e-mail address")
            ),
            dynamodb_endpoint=fields.optional("dynamodbEndpoint", fields.loopback),
            audit_schedule=fields.schedule("auditSchedule", "rate(7 days)"),
            shrink_schedule=fields.schedule("shrinkSchedule", "rate(1 day)"),
            start_drains=fields.truth("startDrains", False),
        )
        fields.refuse_the_rest()
        return config
