"""A re-key on DynamoDB Local, with fake followers of its streams."""

from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cache
from typing import Any

from keyhop.dynamodb.client import Connection, dynamodb_client
from keyhop.dynamodb.endpoint import Endpoint
from keyhop.dynamodb.schema import KeyAttribute, KeySpace
from keyhop.dynamodb.tables import StepResult
from keyhop.rekey.life_cycle.create import Creation, Starting
from keyhop.rekey.life_cycle.end import Ending, How
from keyhop.rekey.pair import Pair
from keyhop.rekey.side.table import SideTable

from testing.databases import Database
from tests.integration.rekey.faults import CHANGES, Doom, Killed

KEYS = KeySpace((KeyAttribute("tenant", "S"),), KeyAttribute("order", "N"))
DAY = 86_400.0
SETS_TTL = {"Enabled": True, "AttributeName": "expires"}


class Dying:
    """A client whose process is killed before, or after, its nth request that changes something."""

    def __init__(self, client: Any, dies_at: int, after: bool) -> None:
        self.client, self.doom = client, Doom(dies_at, after)

    def call(self, operation: str, **parameters: Any) -> dict[str, Any]:
        def act() -> Any:
            return self.client.call(operation, **parameters)

        return dict(self.doom.step(act, operation.startswith(CHANGES)))


@cache
def client_at(url: str) -> Any:
    """Return Keyhop's client, which needs a seventh of the time of boto3's."""
    return dynamodb_client(Endpoint(url=url))


@dataclass
class Followers:
    """Mappings that need two calls to be created, and two to be deleted."""

    streams: dict[str, str] = field(default_factory=dict)
    functions: dict[str, list[str]] = field(default_factory=dict)

    def attach(self, stream: str) -> bool:
        is_on = self.streams.get(stream) == "Creating"
        self.streams[stream] = "Enabled" if is_on or self.streams.get(stream) else "Creating"
        return is_on or self.streams[stream] == "Enabled"

    def detach(self, stream: str) -> bool:
        table = stream.partition("/stream/")[0] + "/stream/"
        for name in [name for name in self.streams if name.startswith(table)]:
            if self.streams[name] == "Deleting":
                del self.streams[name]
            else:
                self.streams[name] = "Deleting"
        return not any(name.startswith(table) for name in self.streams)

    def other_functions(self, stream: str) -> list[str]:
        return self.functions.get(stream, [])


@dataclass
class Life:
    """The life of one pair; `now` is the present time in seconds since 1970."""

    database: Database
    pair: Pair
    followers: Followers = field(default_factory=Followers)
    now: float = 1_800_000_000.0

    def creation(self, client: Any = None, **more: Any) -> Creation:
        return Creation(self._connection(client), self.pair, KEYS, **more)

    def starting(self, client: Any = None) -> Starting:
        return Starting(self._connection(client), self.pair, self.followers, lambda: self.now)

    def ending(self, how: How, client: Any = None, **options: Any) -> Ending:
        return Ending(
            self._connection(client),
            self.pair.destination,
            how,
            self.followers,
            **options,
            now=lambda: self.now,
        )

    @property
    def side(self) -> SideTable:
        return SideTable(self._connection(), self.pair.side, now=lambda: self.now)

    def begin(self) -> None:
        until_done(self.creation().step)
        until_done(self.starting().step)

    def cut_over(self) -> None:
        """Write the side table as after a cutover ten days ago."""
        control = self.side.control()
        self.side.swap(control, control.changed(serving="destination"))
        self.side.tell("turned", {"at": self.now - 10 * DAY, "serving": "destination"})

    def described(self, name: str) -> dict[str, Any]:
        return dict(self.database.client.describe_table(TableName=name)["Table"])

    def ttl_attribute(self, name: str) -> str | None:
        response = self.database.client.describe_time_to_live(TableName=name)
        return response["TimeToLiveDescription"].get("AttributeName")  # type: ignore[no-any-return]

    def snapshot(self, name: str) -> dict[str, Any]:
        """Return the parts of a table that a re-key must not change."""
        table = self.described(name)
        table.pop("LatestStreamArn", None)
        table.pop("LatestStreamLabel", None)
        items = self.database.client.scan(TableName=name)["Items"]
        return {"table": table, "items": items, "ttl": self.ttl_attribute(name)}

    def _connection(self, client: Any = None) -> Connection:
        endpoint = Endpoint(url=self.database.url)
        return Connection(client or client_at(self.database.url), endpoint)


def is_killed(step: Callable[[], StepResult]) -> bool:
    """Repeat a step until it is done, and return whether its process was killed before."""
    try:
        until_done(step)
    except Killed:
        return True
    return False


def until_done(step: Callable[[], StepResult], limit: int = 60) -> StepResult:
    for _ in range(limit):
        result = step()
        if result.done:
            return result
    raise AssertionError(f"it does not end: {result.says}")
