"""The key index on the laptop cloud, built by its state machine and maintained by the keeper."""

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
OPTIONS = {"graceSeconds": 1, "maxWriteRate": 100_000}
MAX_KILLS = 10


@pytest.fixture(autouse=True)
def own_state(at_the_cloud: None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))


def run(deployed: Deployed, action: str, table: str, **options: Any) -> Run:
    """Run an execution of BuildKeyIndex, VerifyKeyIndex or RemoveKeyIndex."""
    return deployed.run({"table": table, **options}, machine=f"{action.capitalize()}KeyIndex")


def complete(deployed: Deployed, action: str, table: str, **options: Any) -> Any:
    """Run an execution that must succeed, and return its output."""
    machine = f"{action.capitalize()}KeyIndex"
    return deployed.complete({"table": table, **options}, machine=machine).output


def reason_of(deployed: Deployed, run: Run) -> str:
    """Return the reason for the method of a run."""
    key = f"runs/{run.output['run']}/run.json"
    return str(json.loads(deployed.executions.read(key))["reason"])


def sentinel_of(deployed: Deployed, table: str) -> Sentinel:
    return Sentinel.of(table_of(deployed.database, table).space)


def index(deployed: Deployed, action: str, table: str, *more: str) -> Result:
    yes = () if action == "status" else ("--yes",)
    return keyhop("index", action, table, "--endpoint-url", deployed.cloud.dynamodb, *yes, *more)


def mappings(deployed: Deployed, table: str) -> list[dict[str, Any]]:
    page = deployed.cloud.client("lambda").list_event_source_mappings(FunctionName=KEEPER)
    rows = page["EventSourceMappings"]
    return [row for row in rows if f":table/{table}/" in row["EventSourceArn"]]


class Disorder:
    """A disturbance that AWS may cause: some records are repeated after later ones of their item.

    The order of the items is random, and the order of each item's records is preserved. Records
    are disturbed within `repeating` only.
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
        repeated = self._late
        self._late = [record for record in page if self._chance.random() < self._share]
        self.repeated += len(repeated)
        of_item: dict[str, deque[Record]] = defaultdict(deque)
        for record in page:
            of_item[str(record["dynamodb"]["Keys"])].append(record)
        turns = [item for item, records in of_item.items() for _ in records]
        self._chance.shuffle(turns)
        shuffled = [of_item[item].popleft() for item in turns]
        for record in repeated:
            shuffled.insert(self._chance.randint(0, len(shuffled)), record)
        return shuffled


@pytest.fixture(scope="module")
def disorder() -> Disorder:
    return Disorder()


@pytest.fixture(scope="module")
def bridge(deployed: Deployed, disorder: Disorder) -> StreamBridge:
    """A bridge for all tests, so that each one continues where the previous one ended."""
    return bridge_for(deployed.cloud, disorder)


@pytest.fixture(scope="module")
def chaos(deployed: Deployed) -> Sentinel:
    """The sentinel of the table Chaos, which has a key index."""
    deployed.database.collections("Chaos", [1, 2] * 10)
    complete(deployed, "build", "Chaos", **OPTIONS)
    return sentinel_of(deployed, "Chaos")


def test_a_day_of_a_key_index(deployed: Deployed, bridge: StreamBridge) -> None:
    """Build, maintain, read, break, verify, repair and remove a key index."""
    database = deployed.database
    expected = database.collections("Kept", [1, 6, 1, 25, 2] * 20)
    before = sorted(map(repr, scanned(database, "Kept")))
    sentinel = sentinel_of(deployed, "Kept")
    assert complete(deployed, "build", "Kept", dryRun=True)["write_units"] == 200
    build = complete(deployed, "build", "Kept", **OPTIONS)
    assert (build["build"]["put"], build["verification"]["drift"]) == (100, 0)
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
    listing = deployed.run({"table": "Kept", "method": "auto"})
    assert listing.output["method"] == "index", reason_of(deployed, listing)
    assert set(deployed.listed_keys(listing.output["run"])) == expected | {"new"}
    assert index(deployed, "status", "Kept").out.decode().count(KEEPER) == 1
    assert index(deployed, "remove", "Kept").status == 2, "the index has a keeper"

    put("while nobody looks", "a")
    delete("new", "a")
    delete("new", "b")
    database.client.delete_item(TableName="Kept", Key=sentinel.key_of({"pk": {"S": min(expected)}}))
    counts = complete(deployed, "verify", "Kept", repair=False, graceSeconds=0)["verification"]
    assert (counts["missing"], counts["surplus"], counts["repaired"]) == (2, 1, 0)
    assert deployed.run({"table": "Kept"}).output["method"] == "skip"
    counts = complete(deployed, "verify", "Kept", graceSeconds=0)["verification"]
    assert counts["repaired"] == 3
    assert drift(database, "Kept", sentinel) == (set(), set())
    bridge.deliver_all()
    assert complete(deployed, "verify", "Kept", graceSeconds=1)["verification"]["drift"] == 0

    (mapping,) = mappings(deployed, "Kept")
    functions = deployed.cloud.client("lambda")
    functions.update_event_source_mapping(UUID=mapping["UUID"], Enabled=False)
    assert complete(deployed, "verify", "Kept", graceSeconds=0)["verification"]["drift"] == 0

    delete("while nobody looks", "a")
    bridge.deliver_all()
    assert [row["State"] for row in mappings(deployed, "Kept")] == ["Enabled"]
    removal = complete(deployed, "remove", "Kept")
    assert (removal["as_before"], removal["mappings"]) == (True, 0)
    assert mappings(deployed, "Kept") == []
    assert sorted(map(repr, scanned(database, "Kept"))) == before
    description = database.client.describe_table(TableName="Kept")["Table"]
    assert not description.get("GlobalSecondaryIndexes")
    assert not (description.get("StreamSpecification") or {}).get("StreamEnabled")


def test_a_refused_input_is_the_cause_of_the_failure(deployed: Deployed) -> None:
    failed = run(deployed, "build", "Small")
    assert (failed.status, failed.error) == ("FAILED", "InvalidInput")
    assert "has no keyIndex in this deployment" in failed.cause
    failed = run(deployed, "verify", "Chaos", maxConcurency=3)
    assert "did you mean maxConcurrency" in failed.cause


@pytest.mark.usefixtures("chaos")
def test_a_stopped_walk_is_reported_with_the_input_to_continue(deployed: Deployed) -> None:
    """A stopped execution has neither an error nor a cause."""
    verifications = deployed.machine("VerifyKeyIndex")
    values = {"table": "Chaos", "graceSeconds": 0}
    verification = verifications.start(values)
    arn = verifications.state_machine.replace("VerifyKeyIndex", "WalkKeyIndexes")
    running = {"stateMachineArn": arn, "statusFilter": "RUNNING"}
    while not (walks := verifications.states.list_executions(**running)["executions"]):
        pass
    (walk,) = walks
    verifications.states.stop_execution(executionArn=walk["executionArn"])
    failed = verifications.follow(verification, LONGEST_SECONDS)
    assert (failed.status, failed.error) == ("FAILED", "RunEnded")
    assert f"{walk['executionArn']} over the table is ABORTED" in failed.cause
    advised = json.loads(failed.cause.partition("start again with ")[2])
    assert advised == values
    assert complete(deployed, "verify", **advised)["verification"]["drift"] == 0


@contextmanager
def disturbed(deployed: Deployed) -> Iterator[Refusals]:
    """Let the keeper reach DynamoDB through a proxy that refuses some requests."""
    client = deployed.cloud.client("lambda")
    environment = client.get_function_configuration(FunctionName=KEEPER)["Environment"]["Variables"]

    def update(variables: dict[str, str]) -> None:
        client.update_function_configuration(
            FunctionName=KEEPER, Environment={"Variables": variables}
        )

    refusals = Refusals()
    with proxy_before(deployed.cloud.database, refusals) as url:
        try:
            update({**environment, "AWS_ENDPOINT_URL_DYNAMODB": url})
            yield refusals
        finally:
            update(environment)


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
    deployed: Deployed, bridge: StreamBridge, disorder: Disorder, chaos: Sentinel, writes: int
) -> None:
    """Write from 8 threads while the keeper gets repeated and reordered records, and is killed and
    throttled.
    """
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
            # Between two kills the keeper delivers something, or a batch would run out of retries.
            # On a busy machine the disturbance may start late, so the writers continue.
            while (pending := wait(writers, timeout=0.5).not_done) or not is_disturbed():
                if not pending:
                    seed = len(writers)
                    writers.append(pool.submit(write_at_random, deployed, seed, writes // 8))
                if kills < MAX_KILLS and bridge.counts["delivered"] > delivered:
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
    assert drift(deployed.database, "Chaos", chaos) == (set(), set())
    items = [item for item in scanned(deployed.database, "Chaos") if not chaos.is_one(item)]
    assert len({item["pk"]["S"] for item in items}) > min(writes, 500) / 5
    assert complete(deployed, "verify", "Chaos", graceSeconds=0)["verification"]["drift"] == 0


@pytest.fixture
def few_retries(deployed: Deployed, chaos: Sentinel) -> Iterator[None]:
    """Reduce the retries of the mapping of the table Chaos."""
    functions = deployed.cloud.client("lambda")
    (mapping,) = mappings(deployed, "Chaos")
    retries = mapping["MaximumRetryAttempts"]
    assert retries == 16
    functions.update_event_source_mapping(UUID=mapping["UUID"], MaximumRetryAttempts=3)
    yield
    functions.update_event_source_mapping(UUID=mapping["UUID"], MaximumRetryAttempts=retries)


@pytest.mark.usefixtures("few_retries")
def test_a_poison_record_goes_to_the_queue_and_does_not_block_others(
    deployed: Deployed, bridge: StreamBridge, chaos: Sentinel
) -> None:
    database = deployed.database
    url = deployed.cloud.outputs["FailureQueueUrl"]
    with disturbed(deployed) as proxy:
        bridge.deliver_all()
        proxy.poison = "new13"
        for number in range(30):
            item = {"pk": {"S": f"new{number}"}, "sk": {"S": "a"}}
            database.client.put_item(TableName="Chaos", Item=item)
        bridge.deliver_all()
        assert drift(database, "Chaos", chaos) == ({("S", "new13")}, set())
        queue = deployed.cloud.client("sqs")
        attributes = queue.get_queue_attributes(QueueUrl=url, AttributeNames=["All"])["Attributes"]
        assert int(attributes["ApproximateNumberOfMessages"]) >= 1
        first = index(deployed, "redrive", "Chaos", "--queue", url)
        assert first.status == 0, first.err
        assert drift(database, "Chaos", chaos) == (set(), set())
        second = index(deployed, "redrive", "Chaos", "--queue", url)
        assert (second.status, b"0 messages" in second.out) == (0, True)
        proxy.poison = None
        bridge.deliver_all()
    assert complete(deployed, "verify", "Chaos", graceSeconds=0)["verification"]["drift"] == 0
