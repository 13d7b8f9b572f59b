"""The settings that each function reads from its environment."""

import json
import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Annotated, Any, Self, get_args, get_type_hints

import boto3
from botocore.exceptions import BotoCoreError, ClientError
from keyhop.checks import structured
from keyhop.dynamodb.tables import Table
from keyhop.dynamodb.units import VARIABLE
from keyhop.each.allowed import Allowed, check_allowed
from keyhop.jobs.layout import most_of_account
from keyhop.jobs.price import FunctionSize
from keyhop.jobs.runs import Runs
from keyhop.jobs.task import Tasks
from keyhop.key_index.deployment import KeyIndexes
from keyhop.rekey.pair import Allowed as Rekeyed
from keyhop.rekey.pair import Pair, allowed_pair
from keyhop.rekey.request import BACKFILL, VERIFY
from keyhop.rekey.transform import Transform
from keyhop.storage.s3 import s3_client
from keyhop.streams.event_source import Watch, function_name
from keyhop.tasks import tasks_of, transform_of


def _names(text: str) -> list[str]:
    tables = json.loads(text)
    if not isinstance(tables, list) or not all(isinstance(table, str) for table in tables):
        raise ValueError("KEYHOP_TABLES must be a JSON list of names and ARNs")
    return tables


def _allowed(text: str) -> dict[str, Allowed]:
    return {table: structured(Allowed, entry) for table, entry in json.loads(text).items()}


def _pairs(text: str) -> tuple[Rekeyed, ...]:
    return tuple(structured(Rekeyed, entry) for entry in json.loads(text))


def _truth(text: str) -> bool:
    if text not in ("true", "false"):
        raise ValueError("KEYHOP_START_DRAINS must be true or false")
    return text == "true"


# The variable, its parser, and a default text if the variable is optional.
Bucket = Annotated[str, "KEYHOP_BUCKET", str]
Tables = Annotated[list[str], "KEYHOP_TABLES", _names]
Places = Annotated[Mapping[str, str | None], "KEYHOP_KEY_INDEXES", json.loads, "{}"]
Keeper = Annotated[str, "KEYHOP_KEEPER", str, ""]
Prices = Annotated[str, VARIABLE, str, ""]
MaxCost = Annotated[float, "KEYHOP_MAX_COST", float, "10"]
Pairs = Annotated[tuple[Rekeyed, ...], "KEYHOP_REKEY", _pairs, "[]"]
SettleSeconds = Annotated[int, "KEYHOP_SETTLE_SECONDS", int, "65"]


def deployed_transform(
    pairs: Sequence[Rekeyed], pair: Pair, source: Table, destination: Table
) -> Transform:
    """Return the transform of a pair (TransformOf); raise CannotStart for functions of a file that
    did not exist at synth.
    """
    allowed_pair(pairs, pair.destination).check(pair)
    return transform_of(pair, source, destination, trusted=pair.code)


class Settings:
    """Settings of a function. Each field's type names its variable and parser."""

    @classmethod
    def from_env(cls, env: Mapping[str, str] = os.environ) -> Self:
        """Read the settings; raise KeyError or ValueError if the environment is wrong."""
        values = {}
        for name, hint in get_type_hints(cls, include_extras=True).items():
            _, variable, read, *default = get_args(hint)
            text = env.get(variable, *default)
            if text is None:
                raise KeyError(variable)
            values[name] = read(text)
        return cls(**values)


@dataclass(frozen=True)
class CleanUpSettings(Settings):
    """Settings of CleanUp, which reads the files of a run, and the size of its workers."""

    bucket: Bucket
    memory_mb: Annotated[int, "KEYHOP_WORKER_MEMORY_MB", int]
    architecture: Annotated[str, "KEYHOP_ARCHITECTURE", str]

    @property
    def worker(self) -> FunctionSize:
        return FunctionSize(self.memory_mb, self.architecture)

    @property
    def runs(self) -> Runs:
        return Runs(s3_client(), self.bucket)


@dataclass(frozen=True)
class JobSettings(Settings):
    """Settings of every function of a job, of KeepIndex, ExamineTable and ShowReport.

    Attributes:
        tables: The names and ARNs of the tables that this deployment may use.
        places: The sort key of the sentinels, for the tables with keyIndex.
        keeper: The ARN of the keeper, or an empty text.
        settle_seconds: The time after which a detached keeper has certainly ended.
        pairs: The pairs that may be re-keyed, including tables that are not listed.
    """

    bucket: Bucket
    tables: Tables
    places: Places
    keeper: Keeper
    settle_seconds: SettleSeconds
    prices: Prices
    pairs: Pairs

    @property
    def watch(self) -> Watch | None:
        """Return what finds the keeper; None in a deployment without a keeper."""
        return Watch(boto3.client, function_name(self.keeper)) if self.keeper else None

    @property
    def deployment(self) -> Runs:
        rekeyed = [name for pair in self.pairs for name in (pair.source, pair.destination)]
        tables = list(dict.fromkeys([*self.tables, *rekeyed]))
        return Runs(s3_client(), self.bucket, tables, self.prices)

    @property
    def key_indexes(self) -> KeyIndexes:
        """Return the key indexes of the deployment, with registries in the results bucket."""
        return KeyIndexes(self.deployment, self.places, self.watch, self.settle_seconds)

    @property
    def tasks(self) -> Tasks:
        return self._tasks()

    def _tasks(self, **more: Any) -> Tasks:
        indexes = self.key_indexes
        return tasks_of(
            indexes.decide_trust,
            indexes.task,
            sentinels_of=indexes.sentinels_of,
            journal_of=indexes.deployment.journal,
            transform_of=partial(deployed_transform, self.pairs),
            **more,
        )


@dataclass(frozen=True)
class WorkerSettings(JobSettings, CleanUpSettings):
    """Settings of FinishRun and VerifyRun."""


@dataclass(frozen=True)
class PlanSettings(WorkerSettings):
    """Settings of PlanRun.

    Attributes:
        reserved: The number of workers that the deployment has reserved, if any.
        max_cost: The limit in dollars of a run whose input has none.
        each: What may be done for each key, by table.
        sharded: The sharding of each sharded table (infra/config.Sharding.for_functions).
    """

    max_cost: MaxCost
    reserved: Annotated[int | None, "KEYHOP_MOST_WORKERS", json.loads, "null"]
    each: Annotated[Mapping[str, Allowed], "KEYHOP_EACH", _allowed, "{}"]
    sharded: Annotated[Mapping[str, Any], "KEYHOP_SHARDING", json.loads, "{}"]

    @property
    def tasks(self) -> Tasks:
        """Return the tasks, which refuse a run with actions that the deployment does not allow."""
        return self._tasks(
            permit=partial(check_allowed, self.each),
            is_sharded=lambda table: bool(
                {table.name, table.bare_name, table.arn} & {*self.sharded}
            ),
        )

    def deployment_for(self, task: str) -> Runs:
        """Return the deployment's settings for a task: re-keys may use the tables of pairs only."""
        deployment = self.deployment
        if task not in (BACKFILL, VERIFY):
            return replace(deployment, tables=self.tables)
        return replace(deployment, tables=[pair.destination for pair in self.pairs])

    @property
    def most_workers(self) -> int | None:
        """Return how many workers can run at once; None if unknown: then some wait their turn."""
        if self.reserved is not None:
            return self.reserved
        try:
            limits = boto3.client("lambda").get_account_settings()["AccountLimit"]
        except (BotoCoreError, ClientError):
            return None
        return most_of_account(limits["UnreservedConcurrentExecutions"])


@dataclass(frozen=True)
class ManageSettings(JobSettings):
    """Settings of ManageIndex. `queue` is the ARN of the keeper's failure queue."""

    max_cost: MaxCost
    queue: Annotated[str, "KEYHOP_FAILURE_QUEUE", str]


@dataclass(frozen=True)
class ReplicateSettings(Settings):
    """Settings of Replicate. `queue` is the URL of the failure queue to which it sends records."""

    pairs: Annotated[tuple[Rekeyed, ...], "KEYHOP_REKEY", _pairs]
    queue: Annotated[str, "KEYHOP_FAILURE_QUEUE_URL", str]


@dataclass(frozen=True)
class CutOverSettings(Settings):
    """Settings of CutOver. `replicate` and `queue` are the ARNs of Replicate and its queue."""

    pairs: Annotated[tuple[Rekeyed, ...], "KEYHOP_REKEY", _pairs]
    replicate: Annotated[str, "KEYHOP_REPLICATE", str]
    queue: Annotated[str, "KEYHOP_FAILURE_QUEUE", str]


@dataclass(frozen=True)
class ShardingSettings(Settings):
    """Settings of WriteSharded, QuerySharded and MoveShards; `sharded` is by name in `tables`."""

    tables: Tables
    sharded: Annotated[Mapping[str, Any], "KEYHOP_SHARDING", json.loads]


@dataclass(frozen=True)
class ProposeSettings(Settings):
    """Settings of ProposeDrains. With `start` it starts `machine`, the ARN of DrainShards."""

    tables: Tables
    machine: Annotated[str, "KEYHOP_DRAIN_MACHINE", str]
    start: Annotated[bool, "KEYHOP_START_DRAINS", _truth]
