"""What each function reads from its environment, once, by name."""

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass, fields
from typing import Annotated, Any, Literal, Self, get_args, get_type_hints

from keyhop.jobs.costs import Worker
from keyhop.jobs.runs import Deployment, Runs
from keyhop.jobs.task import Tasks
from keyhop.key_index.deployment import KeyIndexes
from keyhop.storage.s3 import s3_client
from keyhop.tasks import tasks_of


@dataclass(frozen=True, slots=True)
class Sharded:
    """How one table is sharded. metadata: the name of its metadata table."""

    metadata: str
    placement: Literal["calculated", "random"]
    hash: Literal["jump", "modulo"]
    append_only: bool
    separator: str
    most_shards: int


@dataclass(frozen=True, slots=True)
class Variable:
    """A variable of the environment, and how its text is read; default: of one that is not set."""

    name: str
    read: Callable[[str], Any] = str
    default: str | None = None

    def of(self, env: Mapping[str, str]) -> Any:
        """Raises KeyError or ValueError for an environment that the stack would not make."""
        text = env.get(self.name, self.default)
        if text is None:
            raise KeyError(self.name)
        return self.read(text)


def _names(text: str) -> list[str]:
    tables = json.loads(text)
    if not isinstance(tables, list) or not all(isinstance(table, str) for table in tables):
        raise ValueError("KEYHOP_TABLES must be a JSON list of names and ARNs")
    return tables


def _sharded(text: str) -> dict[str, Sharded]:
    return {
        table: Sharded(
            entry["metadata"],
            entry["placement"],
            entry["hash"],
            entry["appendOnly"],
            entry["separator"],
            int(entry["mostShards"]),
        )
        for table, entry in json.loads(text).items()
    }


def _truth(text: str) -> bool:
    if text not in ("true", "false"):
        raise ValueError("KEYHOP_START_DRAINS must be true or false")
    return text == "true"


Bucket = Annotated[str, Variable("KEYHOP_BUCKET")]
Tables = Annotated[list[str], Variable("KEYHOP_TABLES", _names)]
Places = Annotated[Mapping[str, str | None], Variable("KEYHOP_KEY_INDEXES", json.loads, "{}")]
ShardedTables = Annotated[Mapping[str, Sharded], Variable("KEYHOP_SHARDING", _sharded)]
Number = Annotated[int, Variable("KEYHOP_WORKER_MEMORY_MB", int)]
Architecture = Annotated[str, Variable("KEYHOP_ARCHITECTURE")]


class Settings:
    """Settings by the types of their fields."""

    @classmethod
    def from_env(cls, env: Mapping[str, str]) -> Self:
        """Raises KeyError or ValueError for an environment that the stack would not make."""
        hints = get_type_hints(cls, include_extras=True)
        names = [field.name for field in fields(cls)]  # type: ignore[arg-type]
        return cls(**{name: get_args(hints[name])[1].of(env) for name in names})


@dataclass(frozen=True)
class JobSettings(Settings):
    """Of every function of a job.

    tables: names and ARNs that this deployment may touch. places: of those with keyIndex, the
    sentinels' sort key.
    """

    bucket: Bucket
    tables: Tables
    places: Places

    @property
    def deployment(self) -> Deployment:
        """The runs in the results bucket, and the tables."""
        return Deployment(Runs(s3_client(), self.bucket), self.tables)

    @property
    def key_indexes(self) -> KeyIndexes:
        """The key indexes of the deployment, with their registries in the results bucket."""
        return KeyIndexes(self.deployment, self.places)

    @property
    def tasks(self) -> Tasks:
        """All kinds of job."""
        indexes = self.key_indexes
        return tasks_of(indexes.believe, indexes.task)


@dataclass(frozen=True)
class WorkerSettings(JobSettings):
    """Of functions that tell what a run costs. worker: the function that reads."""

    memory_mb: Number
    architecture: Architecture

    @property
    def worker(self) -> Worker:
        """The size of the function that reads."""
        return Worker(self.memory_mb, self.architecture)


@dataclass(frozen=True)
class PlanSettings(WorkerSettings):
    """Of PlanRun. most_workers: how many can run at once, None for no limit of our own."""

    most_workers: Annotated[
        int | None,
        Variable("KEYHOP_MOST_WORKERS", lambda text: int(text) if text else None, ""),
    ]


class ScanSettings(JobSettings):
    """Of ScanSegments and WalkSegments."""


class VerifySettings(WorkerSettings):
    """Of VerifyRun."""


class FinishSettings(WorkerSettings):
    """Of FinishRun."""


@dataclass(frozen=True)
class CleanUpSettings(Settings):
    """Of CleanUp, which reads the run's files only."""

    bucket: Bucket
    memory_mb: Number
    architecture: Architecture

    @property
    def runs(self) -> Runs:
        """The runs in the results bucket."""
        return Runs(s3_client(), self.bucket)

    @property
    def worker(self) -> Worker:
        """The size of the function that reads."""
        return Worker(self.memory_mb, self.architecture)


@dataclass(frozen=True)
class ManageSettings(JobSettings):
    """Of ManageIndex. keeper, queue: ARNs. settle_seconds: longer than a keeper is at work."""

    keeper: Annotated[str, Variable("KEYHOP_KEEPER")]
    queue: Annotated[str, Variable("KEYHOP_FAILURE_QUEUE")]
    settle_seconds: Annotated[int, Variable("KEYHOP_SETTLE_SECONDS", int)]


@dataclass(frozen=True)
class KeeperSettings(Settings):
    """Of KeepIndex."""

    tables: Tables
    places: Places


@dataclass(frozen=True)
class ShardingSettings(Settings):
    """Of WriteSharded, QuerySharded and MoveShards. sharded: by the tables as they are listed."""

    tables: Tables
    sharded: ShardedTables


@dataclass(frozen=True)
class ProposeSettings(Settings):
    """Of ProposeDrains. machine: DrainShards' ARN. start: whether it is started."""

    tables: Tables
    machine: Annotated[str, Variable("KEYHOP_DRAIN_MACHINE")]
    start: Annotated[bool, Variable("KEYHOP_START_DRAINS", _truth)]
