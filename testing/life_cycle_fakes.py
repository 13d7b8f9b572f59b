"""What an action of a key index calls, played on a world: its store, DynamoDB, the keeper."""

import json
from dataclasses import dataclass, replace
from typing import Any

from botocore.exceptions import ClientError
from keyhop.dynamodb.tables import Table
from keyhop.key_index.registry import ENTRY
from keyhop.key_index.sentinel import Sentinel
from keyhop.key_index.trust import kept_by
from keyhop.storage.store import Version
from keyhop.streams.event_source import Follower

from testing.life_cycle_world import (
    MOMENT,
    SENTINEL,
    TABLE,
    Call,
    World,
    arn_of,
    described,
    followers_of,
    mapped,
    streamed,
)

BATCH = "DDBStreamBatchInfo"


class Pause(BaseException):
    """The actor is about to make its next call, which is made on a world."""

    def __init__(self, call: Call) -> None:
        super().__init__()
        self.call = call


@dataclass
class Calls:
    """The calls of one step: answered as they were; the first that was not is the next to make."""

    answers: tuple[str, ...]
    at: int = 0

    def make(self, call: Call) -> Any:
        if self.at == len(self.answers):
            raise Pause(call)
        self.at += 1
        return json.loads(self.answers[self.at - 1])


@dataclass
class Store:
    """The registry's store, as an actor calls it."""

    calls: Calls

    def look(self, name: str) -> Version | None:
        text = self.calls.make(lambda world: (world, world.entry))
        return Version(text.encode(), text, 0.0) if name == ENTRY and text else None

    def read(self, name: str) -> bytes | None:
        return None

    def swap(self, name: str, content: bytes, tag: str | None) -> bool:
        text = content.decode()

        def call(world: World) -> tuple[World, Any]:
            if (world.entry or None) != tag:
                return world, False
            return replace(world, entry=text), True

        return bool(self.calls.make(call))


@dataclass
class Client:
    """DynamoDB, as far as an action asks it."""

    calls: Calls

    def describe_table(self, **_: Any) -> dict[str, Any]:
        return {"Table": self.calls.make(lambda world: (world, described(world)))}

    def scan(self, **asked: Any) -> dict[str, Any]:
        sentinel = SENTINEL.item_of

        def call(world: World) -> tuple[World, Any]:
            return world, sorted(world.sentinels) if asked.get("IndexName") else []

        names = self.calls.make(call)
        return {"Items": [sentinel({"pk": {"S": name}}) for name in names]}

    def call(self, operation: str, **asked: Any) -> dict[str, Any]:
        if operation != "update_table":
            return dict(getattr(self, operation)(**asked))

        def call(world: World) -> tuple[World, Any]:
            if "StreamSpecification" in asked:
                on = asked["StreamSpecification"]["StreamEnabled"]
                return streamed(world, on), None
            (change,) = asked["GlobalSecondaryIndexUpdates"]
            return replace(world, index="Create" in change), None

        self.calls.make(call)
        return {}


@dataclass
class Keeper:
    """The keeper's mapping, as an action sees and changes it."""

    calls: Calls
    turns_stream_on = True

    def attach(self, table: Table, sentinel: Sentinel) -> bool:
        def call(world: World) -> tuple[World, Any]:
            is_on = world.mapping is not None and world.mapping[2]
            if is_on and arn_of(world.mapping[0]) == table.stream:  # type: ignore[index]
                return world, True
            if arn_of(world.stream) != table.stream:
                return world, False
            return mapped(world, True), False

        return bool(self.calls.make(call))

    def check_may_detach(self, table: Table) -> None: ...

    def detach(self, table: Table) -> bool:
        def call(world: World) -> tuple[World, Any]:
            return (world, True) if world.mapping is None else (mapped(world, False), False)

        return bool(self.calls.make(call))

    def mappings(self, table: Table) -> int:
        return int(self.calls.make(lambda world: (world, int(world.mapping is not None))))

    def shares_stream(self, table: Table) -> bool:
        return False

    def kept_now(self, table: Table) -> dict[str, str]:
        stream = table.stream
        if stream is None:
            return {}
        found = self.calls.make(lambda world: (world, followers_of(world, stream)))
        return kept_by(tuple(Follower(**one) for one in found))


@dataclass
class Queue:
    """The keeper's failure queue, as the command calls it that works it off."""

    calls: Calls

    def receive_message(self, **_: Any) -> dict[str, Any]:
        batch = {"streamArn": f"arn:x:table/{TABLE}/stream/1", "shardId": "s"}
        body = {**batch, "startSequenceNumber": "1", "endSequenceNumber": "1"}
        return {
            "Messages": [
                {"MessageId": name, "ReceiptHandle": name, "Body": json.dumps({BATCH: body})}
                for name in self.calls.make(lambda world: (world, sorted(world.letters)))
            ]
        }

    def delete_message(self, ReceiptHandle: str, **_: Any) -> None:  # noqa: N803
        def call(world: World) -> tuple[World, Any]:
            return replace(world, letters=world.letters - {ReceiptHandle}), None

        self.calls.make(call)


class ForgetfulStream:
    """A stream that has forgotten all records that a message points to."""

    def get_shard_iterator(self, **_: Any) -> None:
        raise ClientError({"Error": {"Code": "TrimmedDataAccessException"}}, "GetShardIterator")


class Journal:
    """The files of a walk whose report is in the name of its run."""

    def __init__(self, run: str) -> None:
        self._counted = json.loads(run)
        self.store = self

    def manifest(self) -> dict[str, Any]:
        figures = {"requests": 0, "items_read": 0, "read_units": 0.0, "no_progress_hops": 0}
        counted = {"index_walk": self._counted, "seconds": 0.0, "ended": MOMENT}
        return {**figures, **counted, "retries": 0, "throttles": {}}

    def plan(self) -> None:
        """Reports go by the list prices then."""

    def keep(self, name: str, content: Any) -> None: ...

    def url(self, name: str) -> str:
        return name

    def sizes(self, folder: str) -> dict[str, int]:
        return {}
