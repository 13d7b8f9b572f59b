"""The method `auto` never returns a partial list, whatever happens to a key index.

Builds, verifications and removals advance step by step, two at a time, and are stopped anywhere,
also in the middle of a walk. Users write, deploy, and turn the stream and the mapping off and on.
At any of these moments, and between any two writes of a walk, `auto` lists the keys. Events also
happen between its first check of the index and its last.
"""

import random
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

import pytest
from keyhop.errors import KeyhopError
from keyhop.jobs.runs import ExecutionContext
from keyhop.key_index.keeper import Collections, keep

from testing.databases import Database
from testing.key_index_tables import Stream, collections_of
from testing.marks import prove, prove_long
from tests.integration.key_index.machines import Machines
from tests.integration.key_index.test_trust import turns_the_stream_off

NAMES = [f"k{number}" for number in range(12)]
ACTIONS = ("build", "verify", "verify", "remove")


class Killed(Exception):
    """The simulated end of an execution, in the middle of a walk."""


@dataclass
class Life:
    """A table with a key index, to which random events happen.

    Attributes:
        items: The sort keys of the table's items, by partition key.
        active: The executions in flight, by id, which are advanced by `next`.
    """

    database: Database
    table: str
    machines: Machines
    chance: random.Random
    items: dict[str, set[str]] = field(default_factory=dict)
    active: dict[str, Iterator[None]] = field(default_factory=dict)
    streams: dict[str, Stream] = field(default_factory=dict)
    counts: Counter[str] = field(default_factory=Counter)
    is_walking: bool = False

    @property
    def lists(self) -> int:
        return self.counts["auto by index"] + self.counts["auto by skip"]

    def has_seen_enough(self, runs: int) -> bool:
        """Return whether enough lists used the index, and enough executions ended."""
        return self.counts["auto by index"] > runs / 50 and self.counts["ended"] > runs / 100

    def happen(self) -> None:
        """Let a random event happen."""
        mappings = self.machines.lambdas.mappings.values()
        is_off = any(mapping["State"] == "Disabled" for mapping in mappings)
        weighted = {
            self.start: 1,
            self.advance: 25,
            self.stop: 0.3,
            self.write: 8,
            self.deploy: 0.3 if self.machines.machine.places else 5,
            self.turn_mapping: 5 if is_off else 0.5,
            self.turn_stream: 0.1,
            self.auto: 12,
        }
        (event,) = self.chance.choices(list(weighted), list(weighted.values()))
        event()
        self.keep()

    def start(self) -> None:
        if len(self.active) < 2:
            execution = self.machines.machine.execution()
            self.machines.running.add(execution.id)
            action = self.chance.choice(ACTIONS)
            self.active[execution.id] = self._action(action, execution)

    def advance(self) -> None:
        if self.active:
            name = self.chance.choice(list(self.active))
            try:
                next(self.active[name])
            except StopIteration:
                self._end(name, "ended")
            except (Killed, KeyhopError) as error:
                self._end(name, type(error).__name__)

    def stop(self) -> None:
        if self.active:
            self._end(self.chance.choice(list(self.active)), "stopped")

    def write(self) -> None:
        name, sort = self.chance.choice(NAMES), self.chance.choice("ab")
        key = {"pk": {"S": name}, "sk": {"S": sort}}
        sorts = self.items.setdefault(name, set())
        if sort in sorts:
            self.database.client.delete_item(TableName=self.table, Key=key)
            sorts.remove(sort)
        else:
            self.database.client.put_item(TableName=self.table, Item=key)
            sorts.add(sort)

    def deploy(self) -> None:
        """Deploy without the table's keyIndex, so that ReleaseKeeper runs; or with it again."""
        if self.machines.machine.places:
            self.machines.machine.places = {}
            self.machines.lambdas.mappings.clear()
        else:
            self.machines.machine.places = {self.table: None}

    def turn_mapping(self) -> None:
        """Turn the mapping off; or on a day later, when the stream's records have expired."""
        for uuid, mapping in self.machines.lambdas.mappings.items():
            is_on = mapping["State"] == "Enabled"
            self.machines.lambdas.update_event_source_mapping(uuid, Enabled=not is_on)
            if not is_on and (stream := self._stream()) is not None:
                stream.new()

    def turn_stream(self) -> None:
        if self._arn():
            turns_the_stream_off(self.machines)

    def auto(self) -> None:
        """List the keys, and check that no key is missing that existed throughout."""
        before = self._keys()
        machine = self.machines.machine
        scan, is_first = machine.scan, [True]

        def interrupted(*args: Any, **kwargs: Any) -> Any:
            if is_first and is_first.pop() and self.chance.random() < 0.3:
                self.counts["interrupted"] += 1
                for _ in range(self.chance.randrange(1, 4)):
                    (event,) = self.chance.choices(
                        [self.advance, self.write, self.turn_mapping, self.stop], [6, 3, 2, 1]
                    )
                    event()
                self.keep()
            return scan(*args, **kwargs)

        if not self.is_walking:
            machine.scan = interrupted
        try:
            read = machine.start({"table": self.table})
        finally:
            machine.scan = scan
        listed = {key["pk"]["S"] for key in machine.keys(read["run"])}
        missing = (before & self._keys()) - listed
        assert not missing, (missing, read, self.counts)
        self.counts[f"auto by {read['method']}"] += 1
        self.counts["anew"] += read["run"].endswith("-anew")

    def keep(self) -> None:
        """Let the keeper process the stream's records, if its mapping is enabled."""
        stream = self._stream()
        mappings = self.machines.lambdas.mappings.values()
        enabled = [m for m in mappings if m["State"] == "Enabled"]
        if stream is None or all(m["EventSourceArn"] != self._arn() for m in enabled):
            return
        while records := stream.new():
            keep(records, collections_of(self.database, self.table), withdraw=lambda: None)

    def _action(self, action: str, execution: ExecutionContext) -> Iterator[None]:
        fields: dict[str, Any] = {"table": self.table}
        if action != "remove":
            fields["graceSeconds"] = 0
        state: dict[str, Any] = {"next": "wait"}
        step = "prepare"
        while state["next"] != "end":
            state = self.machines.step(action, step, fields, execution, state)
            yield
            if state["next"] == "walk":
                for job, walked in (("walk", "walked"), ("verify", "verified")):
                    if job in state:
                        self.is_walking = True
                        try:
                            result = self.machines.machine.start(state[job], walk=True)
                        finally:
                            self.is_walking = False
                        state[walked] = {"run": result["run"]}
                        yield
            if state["next"] in ("walk", "finish"):
                step = "finish"

    def _end(self, name: str, reason: str) -> None:
        self.active.pop(name, None)
        self.machines.running.discard(name)
        self.counts[reason] += 1

    def _keys(self) -> set[str]:
        return {name for name, sorts in self.items.items() if sorts}

    def _arn(self) -> str:
        table = self.machines.described()
        is_on = table.get("StreamSpecification", {}).get("StreamEnabled")
        return str(table["LatestStreamArn"]) if is_on else ""

    def _stream(self) -> Stream | None:
        arn = self._arn()
        if arn and arn not in self.streams:
            self.streams[arn] = Stream(self.database, self.table)
        return self.streams.get(arn)


@pytest.mark.timeout(1200)
@pytest.mark.parametrize("runs", [prove(200), prove_long(1_000)])
def test_auto_never_returns_a_partial_list(
    dynamodb: Database,
    table_name: str,
    machines: Machines,
    monkeypatch: pytest.MonkeyPatch,
    runs: int,
) -> None:
    chance = random.Random(runs)
    dynamodb.collections(table_name, [])
    life = Life(dynamodb, table_name, machines, chance)
    writes = {name: getattr(Collections, name) for name in ("put", "delete")}

    def disturbed(name: str) -> Any:
        def call(collections: Collections, *args: Any) -> Any:
            """Perform a write of a walk, sometimes after a list, or kill the walk instead."""
            if life.is_walking and collections.is_fenced:
                dice = chance.random()
                if dice < 0.02:
                    raise Killed
                if dice < 0.10:
                    life.auto()
            return writes[name](collections, *args)

        return call

    for name in writes:
        monkeypatch.setattr(Collections, name, disturbed(name))
    for _ in range(10):
        life.write()
    machines.build()
    while life.lists < runs or not life.has_seen_enough(runs):
        life.happen()
        assert life.lists < 5 * runs, life.counts
    if runs >= 1_000:
        assert life.counts["anew"] > 0, life.counts
        assert life.counts["Killed"] > 0, life.counts
    print(dict(life.counts))
