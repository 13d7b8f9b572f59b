"""The key index on the laptop cloud: built by its state machine, kept by the deployed keeper."""

import json
import os
import random
import signal
from collections import defaultdict, deque
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor, wait
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from keyhop.key_index.sentinel import Sentinel
from keyhop.public.deployment import Run

from local.stream_bridge import Record, StreamBridge, bridge_for
from testing.databases import Result, keyhop
from testing.key_index_tables import drift, scanned, table_of
from tests.e2e.conftest import LONGEST_SECONDS, Deployed
from tests.e2e.processes import workers_of
from tests.recording.proxy import Refusals, proxy_before

KEEPER = "Keyhop-KeepIndex"
GIVEN = {"graceSeconds": 1, "maxWriteRate": 100_000}
MOST_KILLS = 10


@pytest.fixture(autouse=True)
def own_state(at_the_cloud: None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))


def run(deployed: Deployed, action: str, table: str, **given: Any) -> Run:
    """An execution of BuildKeyIndex, VerifyKeyIndex or RemoveKeyIndex, to its end."""
    return deployed.run({"table": table, **given}, machine=f"{action.capitalize()}KeyIndex")


def done(deployed: Deployed, action: str, table: str, **given: Any) -> Any:
    ended = run(deployed, action, table, **given)
    assert ended.status == "SUCCEEDED", ended
    return ended.output


def reason_of(deployed: Deployed, ended: Run) -> str:
    """Why the run reads what it reads."""
    key = f"runs/{ended.output['run']}/run.json"
    return str(json.loads(deployed.executions.read(key))["reason"])


def sentinel_of(deployed: Deployed, table: str) -> Sentinel:
    return Sentinel.of(table_of(deployed.database, table).space)


def index(deployed: Deployed, action: str, table: str, *more: str) -> Result:
    yes = () if action == "status" else ("--yes",)
    return keyhop("index", action, table, "--endpoint-url", deployed.cloud.dynamodb, *yes, *more)


def mappings(deployed: Deployed, table: str) -> list[dict[str, Any]]:
    told = deployed.cloud.client("lambda").list_event_source_mappings(FunctionName=KEEPER)
    return [
        one for one in told["EventSourceMappings"] if f":table/{table}/" in one["EventSourceArn"]
    ]


class Disorder:
    """What AWS may do at any time: some records come again later, after younger ones of their item.

    The order of different items is arbitrary; that of one item is kept. It is made in `repeating`.
    """

    def __init__(self) -> None:
        self.repeated = 0
        self._share = 0.0
        self._late: list[Record] = []
        self._chance = random.Random(3)

    @contextmanager
    def repeating(self, share: float) -> Iterator[None]:
        self._share = share
        try:
            yield
        finally:
            self._share, self._late = 0.0, []

    def __call__(self, page: list[Record]) -> list[Record]:
        if not self._share:
            return page
        again, self._late = self._late, [one for one in page if self._chance.random() < self._share]
        self.repeated += len(again)
        of_item: dict[str, deque[Record]] = defaultdict(deque)
        for record in page:
            of_item[str(record["dynamodb"]["Keys"])].append(record)
        turns = [item for item, records in of_item.items() for _ in records]
        self._chance.shuffle(turns)
        shuffled = [of_item[item].popleft() for item in turns]
        for record in again:
            shuffled.insert(self._chance.randint(0, len(shuffled)), record)
        return shuffled


@pytest.fixture(scope="module")
def disorder() -> Disorder:
    return Disorder()


@pytest.fixture(scope="module")
def bridge(deployed: Deployed, disorder: Disorder) -> StreamBridge:
    """One for all tests, so that each goes on where the one before has ended."""
    return bridge_for(deployed.cloud, disorder)


@pytest.fixture(scope="module")
def kept(deployed: Deployed) -> Sentinel:
    """The table Chaos with a key index, for several tests."""
    deployed.database.collections("Chaos", [1, 2] * 10)
    done(deployed, "build", "Chaos", **GIVEN)
    return sentinel_of(deployed, "Chaos")


def test_a_day_of_a_key_index(deployed: Deployed, bridge: StreamBridge) -> None:
    """Built, kept true, read, broken on purpose, found, repaired, removed."""
    database = deployed.database
    expected = database.collections("Kept", [1, 6, 1, 25, 2] * 20)
    before = sorted(map(repr, scanned(database, "Kept")))
    sentinel = sentinel_of(deployed, "Kept")
    planned = done(deployed, "build", "Kept", dryRun=True)
    assert planned["write_units"] == 200
    built = done(deployed, "build", "Kept", **GIVEN)
    assert (built["build"]["put"], built["verification"]["drift"]) == (100, 0)
    bridge.deliver_all()
    assert drift(database, "Kept", sentinel) == (set(), set())

    def put(name: str, sort: str) -> None:
        item = {"pk": {"S": name}, "sk": {"S": sort}}
        database.client.put_item(TableName="Kept", Item=item)

    def delete(name: str, sort: str) -> None:
        key = {"pk": {"S": name}, "sk": {"S": sort}}
        database.client.delete_item(TableName="Kept", Key=key)

    put("new", "a")
    put("new", "b")
    put("short-lived", "a")
    delete("short-lived", "a")
    bridge.deliver_all()
    read = deployed.run({"table": "Kept", "method": "auto"})
    assert read.output["method"] == "index", reason_of(deployed, read)
    assert set(deployed.found(read.output["run"])) == expected | {"new"}
    assert index(deployed, "status", "Kept").out.decode().count(KEEPER) == 1
    assert index(deployed, "remove", "Kept").status == 2, "a keeper is at work"

    put("while nobody looks", "a")
    delete("new", "a")
    delete("new", "b")
    database.client.delete_item(TableName="Kept", Key=sentinel.key_of({"pk": {"S": min(expected)}}))
    looked = done(deployed, "verify", "Kept", repair=False, graceSeconds=0)["verification"]
    assert (looked["missing"], looked["surplus"], looked["repaired"]) == (2, 1, 0)
    assert deployed.run({"table": "Kept"}).output["method"] == "skip"
    repaired = done(deployed, "verify", "Kept", graceSeconds=0)["verification"]
    assert repaired["repaired"] == 3
    assert drift(database, "Kept", sentinel) == (set(), set())
    bridge.deliver_all()
    assert done(deployed, "verify", "Kept", graceSeconds=1)["verification"]["drift"] == 0

    (mapping,) = mappings(deployed, "Kept")
    functions = deployed.cloud.client("lambda")
    functions.update_event_source_mapping(UUID=mapping["UUID"], Enabled=False)
    assert done(deployed, "verify", "Kept", graceSeconds=0)["verification"]["drift"] == 0

    delete("while nobody looks", "a")
    bridge.deliver_all()
    assert [one["State"] for one in mappings(deployed, "Kept")] == ["Enabled"]
    removed = done(deployed, "remove", "Kept")
    assert (removed["as_before"], removed["mappings"]) == (True, 0)
    assert mappings(deployed, "Kept") == []
    assert sorted(map(repr, scanned(database, "Kept"))) == before
    told = database.client.describe_table(TableName="Kept")["Table"]
    assert not told.get("GlobalSecondaryIndexes")
    assert not (told.get("StreamSpecification") or {}).get("StreamEnabled")


def test_the_cause_of_a_failed_walk_is_the_machines_own(deployed: Deployed) -> None:
    ended = run(deployed, "build", "Small")
    assert (ended.status, ended.error) == ("FAILED", "InvalidInput")
    assert "has no keyIndex in this deployment" in ended.cause
    ended = run(deployed, "verify", "Chaos", maxConcurency=3)
    assert "did you mean maxConcurrency" in ended.cause


@pytest.mark.usefixtures("kept")
def test_a_walk_that_somebody_stops_is_told_with_the_input_to_go_on(deployed: Deployed) -> None:
    """It has neither error nor cause."""
    verifications = deployed.machine("VerifyKeyIndex")
    given = {"table": "Chaos", "graceSeconds": 0}
    verification = verifications.start(given)
    arn = verifications.state_machine.replace("VerifyKeyIndex", "WalkKeyIndexes")
    walks = {"stateMachineArn": arn}
    found: list[Any] = []
    while not found:
        found = verifications.states.list_executions(**walks, statusFilter="RUNNING")["executions"]
    (walk,) = found
    verifications.states.stop_execution(executionArn=walk["executionArn"])
    ended = verifications.follow(verification, LONGEST_SECONDS)
    assert (ended.status, ended.error) == ("FAILED", "RunEnded")
    assert f"{walk['executionArn']} over the table is ABORTED" in ended.cause
    advised = json.loads(ended.cause.partition("start again with ")[2])
    assert advised == given
    assert done(deployed, "verify", **advised)["verification"]["drift"] == 0


@contextmanager
def disturbed(deployed: Deployed) -> Iterator[Refusals]:
    """The keeper sees DynamoDB through a proxy that refuses what it is told to."""
    functions = deployed.cloud.client("lambda")
    told = functions.get_function_configuration(FunctionName=KEEPER)["Environment"]["Variables"]
    refusals = Refusals()
    with proxy_before(deployed.cloud.database, refusals) as url:
        through = {**told, "AWS_ENDPOINT_URL_DYNAMODB": url}
        try:
            functions.update_function_configuration(
                FunctionName=KEEPER, Environment={"Variables": through}
            )
            yield refusals
        finally:
            functions.update_function_configuration(
                FunctionName=KEEPER, Environment={"Variables": told}
            )


def write_at_random(deployed: Deployed, seed: int, times: int) -> None:
    chance = random.Random(seed)
    client = deployed.database.client
    for _ in range(times):
        key = {"pk": {"S": f"k{chance.randrange(300)}"}, "sk": {"S": chance.choice("abc")}}
        if chance.random() < 0.55:
            client.delete_item(TableName="Chaos", Key=key)
        else:
            client.put_item(TableName="Chaos", Item=key)


@pytest.mark.parametrize("writes", [1_000, 10_000])
def test_chaos_leaves_no_drift(
    deployed: Deployed, bridge: StreamBridge, disorder: Disorder, kept: Sentinel, writes: int
) -> None:
    """Many writes by 8 writers; duplicates, another order, kills and throttles for the keeper."""
    before = bridge.counts.copy()
    kills, delivered = 0, -1

    def is_disturbed() -> bool:
        failed = bridge.counts["failed"] > before["failed"]
        return bool(kills and failed and proxy.refused and disorder.repeated)

    with disturbed(deployed) as proxy, disorder.repeating(0.1):
        proxy.throttled = 0.05
        with bridge.running(), ThreadPoolExecutor(8) as pool:
            writers = [
                pool.submit(write_at_random, deployed, seed, writes // 8) for seed in range(8)
            ]
            # Between two kills it gets some work done, or a batch would run out of retries; on a
            # busy machine all may begin late.
            while (left := wait(writers, timeout=0.5).not_done) or not is_disturbed():
                if not left:
                    seed = len(writers)
                    writers.append(pool.submit(write_at_random, deployed, seed, writes // 8))
                if kills < MOST_KILLS and bridge.counts["delivered"] > delivered:
                    for process in sorted(workers_of(KEEPER))[:1]:
                        delivered = bridge.counts["delivered"]
                        os.kill(process, signal.SIGKILL)
                        kills += 1
            for writer in writers:
                writer.result()
        bridge.deliver_all()
    assert kills > 0
    assert proxy.refused > 0
    assert disorder.repeated > 0
    assert bridge.counts["failed"] > before["failed"]
    assert bridge.counts["given_up"] == before["given_up"]
    assert drift(deployed.database, "Chaos", kept) == (set(), set())
    items = [item for item in scanned(deployed.database, "Chaos") if not kept.is_one(item)]
    assert len({item["pk"]["S"] for item in items}) > min(writes, 500) / 5
    assert done(deployed, "verify", "Chaos", graceSeconds=0)["verification"]["drift"] == 0


@pytest.fixture
def few_retries(deployed: Deployed, kept: Sentinel) -> Iterator[None]:
    """Of the table Chaos."""
    functions = deployed.cloud.client("lambda")
    (mapping,) = mappings(deployed, "Chaos")
    retries = mapping["MaximumRetryAttempts"]
    assert retries == 16
    functions.update_event_source_mapping(UUID=mapping["UUID"], MaximumRetryAttempts=3)
    yield
    functions.update_event_source_mapping(UUID=mapping["UUID"], MaximumRetryAttempts=retries)


@pytest.mark.usefixtures("few_retries")
def test_a_poison_record_lands_in_the_queue_and_the_others_go_on(
    deployed: Deployed, bridge: StreamBridge, kept: Sentinel
) -> None:
    database = deployed.database
    url = deployed.cloud.outputs["FailureQueueUrl"]
    names = [f"new{number}" for number in range(30)]
    with disturbed(deployed) as proxy:
        bridge.deliver_all()
        proxy.poison = "new13"
        for name in names:
            item = {"pk": {"S": name}, "sk": {"S": "a"}}
            database.client.put_item(TableName="Chaos", Item=item)
        bridge.deliver_all()
        assert drift(database, "Chaos", kept) == ({("S", "new13")}, set())
        queue = deployed.cloud.client("sqs")
        attributes = queue.get_queue_attributes(QueueUrl=url, AttributeNames=["All"])["Attributes"]
        assert int(attributes["ApproximateNumberOfMessages"]) >= 1
        cleared = index(deployed, "redrive", "Chaos", "--queue", url)
        assert cleared.status == 0, cleared.err
        assert drift(database, "Chaos", kept) == (set(), set())
        nothing = index(deployed, "redrive", "Chaos", "--queue", url)
        assert (nothing.status, b"0 messages" in nothing.out) == (0, True)
        proxy.poison = None
        bridge.deliver_all()
    assert done(deployed, "verify", "Chaos", graceSeconds=0)["verification"]["drift"] == 0
