"""`keyhop keys --logical`: which physical keys stand for which logical ones.

By suffix, or by the shard metadata: then only the shards that it knows are folded. The metadata is
read once all physical keys are known. A key's `readable` may have been lowered meanwhile, by a
drain that ended after its last shards were read: so where the metadata has changed since the run
began, the most shards that its history knows count.
"""

import argparse
import hashlib
import sqlite3
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from botocore.exceptions import BotoCoreError, ClientError

from keyhop.dynamodb.client import DynamoDB, Endpoint, explained
from keyhop.dynamodb.schema import KeySpace
from keyhop.dynamodb.tables import describe
from keyhop.dynamodb.values import Key, TypedValue
from keyhop.errors import CannotStart
from keyhop.jobs.model import SEPARATOR, RunPlan
from keyhop.keys.logical import Fold, Parse, by_suffix, check_can_fold
from keyhop.sharding.key.names import Names
from keyhop.sharding.key.shards import SETTLE_SECONDS, Shards
from keyhop.sharding.store.metadata import Metadata
from keyhop.sharding.store.requests import Requests

CLOCK_MARGIN_SECONDS = 60.0
"""How far the clocks of writers may be off."""


def asked(options: argparse.Namespace) -> dict[str, Any] | None:
    """What the plan of a new run says of folding."""
    if not options.logical:
        return None
    return {"separator": options.separator or SEPARATOR, "metadata": options.metadata}


@dataclass(frozen=True, slots=True)
class Folds:
    """Makes folds for the runs of one table."""

    client: DynamoDB
    endpoint: Endpoint

    def check(self, space: KeySpace, wanted: Mapping[str, Any]) -> None:
        """Raises CannotStart and its kin, before anything is read, if the fold cannot be made."""
        check_can_fold(space)
        parser(space, wanted)
        if wanted["metadata"] is not None:
            check_is_metadata(self.client, self.endpoint, wanted["metadata"], space)

    def of(self, plan: RunPlan) -> Fold:
        """The fold of a run; reads the metadata, if it goes by that."""
        assert plan.fold is not None
        parse = parser(plan.space, plan.fold)
        if plan.fold["metadata"] is None:
            return by_suffix(plan.space, parse)
        known = KnownShards()
        known.learn(
            self._metadata(plan.space, plan.fold), datetime.fromisoformat(plan.started).timestamp()
        )
        return by_metadata(plan.space, parse, known)

    def _metadata(
        self, space: KeySpace, wanted: Mapping[str, Any]
    ) -> Iterable[tuple[TypedValue, Shards]]:
        table = wanted["metadata"]
        metadata = Metadata(Requests(self.client), table, space.partition[0], SETTLE_SECONDS)
        try:
            for logical, shards, _ in metadata.all():
                yield logical, shards
        except (BotoCoreError, ClientError) as error:
            raise explained(error, self.endpoint, table) from error


def parser(space: KeySpace, wanted: Mapping[str, Any]) -> Parse:
    """Reads physical keys; raises CannotStart for a separator, or a key, that cannot be."""
    return Names(space.partition[0].type, wanted["separator"]).parsed


def check_is_metadata(client: DynamoDB, endpoint: Endpoint, table: str, space: KeySpace) -> None:
    """Raises CannotStart if this cannot be the shard-metadata table of a table with such keys."""
    if describe(client, endpoint, table).space != KeySpace(space.partition):
        key = space.partition[0]
        raise CannotStart(
            f"--metadata {table} is not the shard-metadata table of this table: its key would be "
            f"{key.name} ({key.type}), without a sort key."
        )


class KnownShards:
    """How many shards logical keys have had, at most, in bounded memory (as in seen.py)."""

    def __init__(self) -> None:
        self._db = sqlite3.connect("", check_same_thread=False, isolation_level=None)
        self._db.execute("PRAGMA journal_mode = OFF")
        self._db.execute("CREATE TABLE known (digest BLOB PRIMARY KEY, most INT) WITHOUT ROWID")
        self._db.execute("BEGIN")

    def learn(self, metadata: Iterable[tuple[TypedValue, Shards]], began: float) -> None:
        """Take the metadata in; began: epoch second at which the keys began to be read."""
        rows = ((_digest(logical), most_shards(shards, began)) for logical, shards in metadata)
        self._db.executemany("INSERT OR REPLACE INTO known VALUES (?, ?)", rows)

    def most(self, logical: TypedValue) -> int:
        """The most shards that it can have had; 0 if it is none."""
        found = self._db.execute("SELECT most FROM known WHERE digest = ?", (_digest(logical),))
        row = found.fetchone()
        return 0 if row is None else int(row[0])


def most_shards(shards: Shards, began: float) -> int:
    """The most shards that a key can have had at any time since `began`."""
    if shards.last_updated < began - CLOCK_MARGIN_SECONDS:
        return shards.readable
    return max(shards.readable, *(count for _, count in shards.history), 0)


def by_metadata(space: KeySpace, parse: Parse, known: KnownShards) -> Fold:
    """The fold that takes for a shard only what the metadata knows."""
    name = space.partition[0].name

    def one(key: Key) -> Key:
        parsed = parse(key[name])
        if parsed is None or parsed[1] > known.most(parsed[0]):
            return key
        return {name: parsed[0]}

    def fold(keys: Sequence[Key]) -> list[Key]:
        return [one(key) for key in keys]

    return fold


def how(wanted: Mapping[str, Any]) -> str:
    """Which keys are folded, in words."""
    suffix = f"{wanted['separator']}1 to {wanted['separator']}1000"
    if wanted["metadata"] is None:
        return f"every key that ends in {suffix} is taken for a shard"
    return f"those that end in {suffix} and that {wanted['metadata']} knows as shards"


def _digest(logical: TypedValue) -> bytes:
    ((_, content),) = logical.items()
    whole = content.encode() if isinstance(content, str) else bytes(content)
    return hashlib.blake2b(whole, digest_size=16).digest()
