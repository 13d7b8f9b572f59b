"""What each function reads from its environment, once, by name."""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

from keyhop.jobs.costs import Worker
from keyhop.jobs.runs import Runs
from keyhop.key_index.fleet import KeyIndexes
from keyhop.storage.s3 import s3_client


@dataclass(frozen=True, slots=True)
class PlanSettings:
    """Of PlanRun.

    tables: names and ARNs that this deployment may touch. most_workers: how many can run at once,
    None for no limit of the deployment's own.
    """

    bucket: str
    tables: list[str]
    worker: Worker
    most_workers: int | None
    places: Mapping[str, str | None]

    @classmethod
    def from_env(cls, env: Mapping[str, str]) -> "PlanSettings":
        """Raises KeyError or ValueError for an environment that the stack would not make."""
        reserved = env.get("KEYHOP_MOST_WORKERS")
        most_workers = int(reserved) if reserved else None
        return cls(env["KEYHOP_BUCKET"], _tables(env), _worker(env), most_workers, _places(env))


@dataclass(frozen=True, slots=True)
class ScanSettings:
    """Of ScanSegments."""

    bucket: str
    tables: list[str]
    places: Mapping[str, str | None]

    @classmethod
    def from_env(cls, env: Mapping[str, str]) -> "ScanSettings":
        """Raises KeyError or ValueError for an environment that the stack would not make."""
        return cls(env["KEYHOP_BUCKET"], _tables(env), _places(env))


@dataclass(frozen=True, slots=True)
class KeeperSettings:
    """Of KeepIndex."""

    tables: list[str]
    places: Mapping[str, str | None]

    @classmethod
    def from_env(cls, env: Mapping[str, str]) -> "KeeperSettings":
        """Raises KeyError or ValueError for an environment that the stack would not make."""
        return cls(_tables(env), _places(env))


@dataclass(frozen=True, slots=True)
class ManageSettings:
    """Of ManageIndex. keeper, queue: ARNs. settle_seconds: longer than a keeper is at work."""

    bucket: str
    tables: list[str]
    places: Mapping[str, str | None]
    keeper: str
    queue: str
    settle_seconds: int

    @classmethod
    def from_env(cls, env: Mapping[str, str]) -> "ManageSettings":
        """Raises KeyError or ValueError for an environment that the stack would not make."""
        return cls(
            env["KEYHOP_BUCKET"],
            _tables(env),
            _places(env),
            env["KEYHOP_KEEPER"],
            env["KEYHOP_FAILURE_QUEUE"],
            int(env["KEYHOP_SETTLE_SECONDS"]),
        )


@dataclass(frozen=True, slots=True)
class VerifySettings:
    """Of VerifyRun. worker: that function itself."""

    bucket: str
    tables: list[str]
    worker: Worker

    @classmethod
    def from_env(cls, env: Mapping[str, str]) -> "VerifySettings":
        """Raises KeyError or ValueError for an environment that the stack would not make."""
        return cls(env["KEYHOP_BUCKET"], _tables(env), _worker(env))


@dataclass(frozen=True, slots=True)
class FinishSettings:
    """Of FinishRun."""

    bucket: str
    worker: Worker

    @classmethod
    def from_env(cls, env: Mapping[str, str]) -> "FinishSettings":
        """Raises KeyError or ValueError for an environment that the stack would not make."""
        return cls(env["KEYHOP_BUCKET"], _worker(env))


class CleanUpSettings(FinishSettings):
    """Of CleanUp."""


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
class ShardingSettings:
    """Of WriteSharded, QuerySharded and MoveShards. sharded: by the tables as they are listed."""

    tables: list[str]
    sharded: Mapping[str, Sharded]

    @classmethod
    def from_env(cls, env: Mapping[str, str]) -> "ShardingSettings":
        """Raises KeyError or ValueError for an environment that the stack would not make."""
        return cls(_tables(env), _sharded(env))


@dataclass(frozen=True, slots=True)
class ProposeSettings:
    """Of ProposeDrains. machine: DrainShards' ARN. start: whether it is started."""

    tables: list[str]
    machine: str
    start: bool

    @classmethod
    def from_env(cls, env: Mapping[str, str]) -> "ProposeSettings":
        """Raises KeyError or ValueError for an environment that the stack would not make."""
        start = {"true": True, "false": False}.get(env["KEYHOP_START_DRAINS"])
        if start is None:
            raise ValueError("KEYHOP_START_DRAINS must be true or false")
        return cls(_tables(env), env["KEYHOP_DRAIN_MACHINE"], start)


def runs_in(bucket: str) -> Runs:
    """The runs in the results bucket."""
    return Runs(s3_client(), bucket)


def key_indexes_of(runs: Runs, places: Mapping[str, str | None]) -> KeyIndexes:
    """The key indexes of the deployment, with their books in the results bucket."""
    return KeyIndexes(runs, places)


def _places(env: Mapping[str, str]) -> dict[str, str | None]:
    """Tables with keyIndex; the stack sets none where there is no such table."""
    return dict(json.loads(env.get("KEYHOP_KEY_INDEXES", "{}")))


def _tables(env: Mapping[str, str]) -> list[str]:
    tables = json.loads(env["KEYHOP_TABLES"])
    if not isinstance(tables, list) or not all(isinstance(table, str) for table in tables):
        raise ValueError("KEYHOP_TABLES must be a JSON list of names and ARNs")
    return tables


def _sharded(env: Mapping[str, str]) -> dict[str, Sharded]:
    return {
        table: Sharded(
            told["metadata"],
            told["placement"],
            told["hash"],
            told["appendOnly"],
            told["separator"],
            int(told["mostShards"]),
        )
        for table, told in json.loads(env["KEYHOP_SHARDING"]).items()
    }


def _worker(env: Mapping[str, str]) -> Worker:
    return Worker(int(env["KEYHOP_WORKER_MEMORY_MB"]), env["KEYHOP_ARCHITECTURE"])
