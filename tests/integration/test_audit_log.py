"""The audit-log example adds shards to the hot file, and checks and reports each read."""

import random

import pytest
from keyhop.dynamodb.client import dynamodb_client
from keyhop.dynamodb.endpoint import Endpoint
from keyhop.sharding.key.policy import Policy
from keyhop.sharding.table import ShardedTable

from local.audit_log import accesses, audit_log, record_access
from local.audit_traffic import COLD, HOT, Second, Traffic, create_tables, fault, line, run, summary
from testing.databases import Database
from testing.partitions import partitions
from testing.virtual_time import VirtualClock


@pytest.mark.parametrize(
    ("promised", "listed", "message"),
    [
        ([], [], None),
        (["a", "c"], ["a", "b", "c", "d"], None),
        (["a", "c"], ["a", "b"], "1 of 2 accesses were missing, 'c'"),
        (["a"], ["a", "b", "b"], "1 accesses were listed twice"),
        (["a"], ["b", "a"], "its order was wrong"),
    ],
)
def test_an_incomplete_read_is_a_fault(
    promised: list[str], listed: list[str], message: str | None
) -> None:
    assert fault(promised, listed) == message


@pytest.mark.prove
def test_the_hot_file_gets_shards_until_it_takes_all_writes(
    dynamodb: Database, table_name: str
) -> None:
    """The test takes 32 seconds of virtual time, at a sixth of the example's rates."""
    create_tables(dynamodb, table_name)
    random.seed(1)
    clock = VirtualClock()
    with partitions(dynamodb.url, rate=10, tables={table_name}, clock=clock) as model:
        logs = [
            ShardedTable(
                table_name,
                metadata=f"{table_name}-shards",
                placement="random",
                append_only=True,
                settle_seconds=2,
                policy=Policy(cooldown=2),
                client=dynamodb_client(Endpoint(url=model.url), 32),
                clock=clock,
                chance=random.Random(number),
            )
            for number in range(2)
        ]
        traffic = Traffic(
            *logs, record_access, accesses, seconds=32, writers=12, rate=50, pause=2, clock=clock
        )
        traffic.warm_up()
        seconds: list[Second] = []
        clock.run([*traffic.functions(), lambda: seconds.extend(traffic.by_second())])
        for path in (HOT, *COLD):
            traffic.check(path)
        assert traffic.faults == []
        assert [traffic.shards(path).number for path in COLD] == [1] * len(COLD)
        assert 5 <= traffic.shards().number <= 8
        assert seconds[0].shards.number == 1
        assert sum(second.acknowledged for second in seconds[-5:]) >= 5 * 40
        assert len(seconds) == 32
        assert line(seconds[0]).split()[0] == "1"
        text = "\n".join(summary(traffic, clock.time()))
        assert f"Every one of {traffic.reads} reads was whole" in text
        assert sum(1 for _ in logs[1].query(HOT)) == len(traffic.acknowledged[HOT])
        for log in logs:
            log.close()


@pytest.mark.prove
def test_the_example_fails_after_an_incomplete_read(capsys: pytest.CaptureFixture[str]) -> None:
    def forgetful(log: ShardedTable, path: str) -> list[str]:
        return accesses(log, path)[1:]

    assert run(audit_log, record_access, forgetful, seconds=1) == 1
    output = capsys.readouterr().out
    assert "was not whole: 1 of" in output
    assert "Every one" not in output


@pytest.mark.prove
def test_the_example_succeeds_if_all_reads_are_complete(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(audit_log, record_access, accesses, seconds=1) == 0
    assert "reads was whole: nothing was missing, nothing twice." in capsys.readouterr().out
