"""The traffic of the audit-log example: many write, one reads all the time and checks each read."""

import random
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing
from dataclasses import dataclass, field
from threading import Event, Thread
from typing import Any

from botocore.exceptions import BotoCoreError, ClientError
from keyhop.cli.shards_view import history_chart
from keyhop.errors import KeyhopError
from keyhop.sharding.key.shards import Phase, Shards
from keyhop.sharding.store.clock import Clock, SystemClock
from keyhop.sharding.table import ShardedTable
from rich.console import Console

from testing.partitions import partitions
from testing.servers import dynamodb_local, local_client

TABLE = "Audit"
HOT = "/srv/share/budget.xlsx"
COLD = ("/srv/share/minutes.docx", "/srv/share/holidays.ics", "/srv/share/menu.pdf")
COLD_SHARE = 0.03

SECONDS = 30.0
WRITERS = 24
RATE = 200.0
"""Writes a second that the writers would like to make in all."""
KEY_RATE = 40.0
"""Write units a second of one partition key; DynamoDB gives about 1,000."""
READ_PAUSE_SECONDS = 0.1
PATIENCE_SECONDS = 10.0
"""For the threads, once time is over; whoever is in a back-off comes out of it."""

Open = Callable[[str], ShardedTable]
Record = Callable[[ShardedTable, str, str], str]
Read = Callable[[ShardedTable, str], list[str]]


@dataclass(frozen=True, slots=True)
class Second:
    """What has happened within a second; reads: checked so far. shards: of the hot file."""

    at: float
    acknowledged: int
    throttled: int
    shards: Shards
    reads: int


@dataclass
class Traffic:
    """Writers of one hot file and a few cold ones, and a reader, who has a log of his own.

    acknowledged: of each file the accesses whose write was answered. faults: of reads that were
    not whole, and writes that were given up.
    """

    log: ShardedTable
    readers_log: ShardedTable
    record: Record
    read: Read
    seconds: float = SECONDS
    writers: int = WRITERS
    rate: float = RATE
    pause: float = READ_PAUSE_SECONDS
    clock: Clock = field(default_factory=SystemClock)
    acknowledged: dict[str, list[str]] = field(
        default_factory=lambda: {path: [] for path in (HOT, *COLD)}
    )
    reads: int = 0
    items_read: int = 0
    faults: list[str] = field(default_factory=list)
    stop: Event = field(default_factory=Event)

    def warm_up(self) -> None:
        """One access to each cold file: connections are made, and keys registered."""
        for path in COLD:
            self.acknowledged[path].append(self.record(self.log, path, "user-00"))
            self.check(path)

    def functions(self) -> list[Callable[[], None]]:
        """All that goes on at once."""
        return [*(lambda n=n: self._write(n) for n in range(self.writers)), self._read_on]

    def by_second(self) -> Iterator[Second]:
        """What happens, second by second, until time is over."""
        began = self.clock.monotonic()
        acknowledged = throttled = 0
        for second in range(1, round(self.seconds) + 1):
            self.clock.sleep(max(0.0, began + second - self.clock.monotonic()))
            before = acknowledged, throttled
            acknowledged = self.written
            throttled = self.log.usage.counters["hot_throttles"]
            yield Second(
                second, acknowledged - before[0], throttled - before[1], self.shards(), self.reads
            )
        self.stop.set()

    @property
    def written(self) -> int:
        """Writes that were acknowledged."""
        return sum(map(len, self.acknowledged.values()))

    def shards(self, path: str = HOT) -> Shards:
        """Of a file, as its writers know it."""
        return self.log.metadata.of({"S": path}).shards

    def check(self, path: str) -> None:
        """Read a file's accesses, and compare them with those acknowledged before."""
        promised = list(self.acknowledged[path])
        listed = self.read(self.readers_log, path)
        wrong = fault(promised, listed)
        if wrong:
            self.faults.append(f"A read of {path} was not whole: {wrong}.")
        self.reads += 1
        self.items_read += len(listed)

    def _write(self, number: int) -> None:
        chance = random.Random(number)
        pause = self.writers / self.rate
        due = self.clock.monotonic() + pause * chance.random()
        while True:
            self.clock.sleep(max(0.0, due - self.clock.monotonic()))
            if self.stop.is_set():
                return
            path = chance.choice(COLD) if chance.random() < COLD_SHARE else HOT
            try:
                accessed = self.record(self.log, path, f"user-{number:02}")
                self.acknowledged[path].append(accessed)
            except (KeyhopError, ClientError, BotoCoreError) as error:
                if not self.stop.is_set():
                    self.faults.append(f"A write was given up: {error}")
            due = max(due + pause, self.clock.monotonic())  # nobody makes up for a delay

    def _read_on(self) -> None:
        while not self.stop.is_set():
            for path in (HOT, COLD[self.reads % len(COLD)]):
                try:
                    self.check(path)
                except (KeyhopError, ClientError, BotoCoreError) as error:
                    if not self.stop.is_set():
                        self.faults.append(f"A read has failed: {error}")
                self.clock.sleep(self.pause)


def fault(promised: Sequence[str], listed: Sequence[str]) -> str | None:
    """What is wrong with a read. promised: what was acknowledged before it began."""
    missing = set(promised).difference(listed)
    if missing:
        return f"{len(missing):,} of {len(promised):,} accesses were missing, {min(missing)!r}"
    if len(set(listed)) < len(listed):
        return f"{len(listed) - len(set(listed)):,} accesses were told twice"
    if list(listed) != sorted(listed):
        return "its order was wrong"
    return None


def run(open_log: Open, record: Record, read: Read, seconds: float = SECONDS) -> int:
    """The example on this machine; returns an exit status: 1 if a read was not whole."""
    console = Console(highlight=False, soft_wrap=True)
    with (
        dynamodb_local() as url,
        partitions(url, rate=KEY_RATE, tables={TABLE}) as model,
        closing(open_log(model.url)) as log,
        closing(open_log(model.url)) as readers_log,
    ):
        create_tables(local_client(url))
        traffic = Traffic(log, readers_log, record, read, seconds)
        traffic.warm_up()
        console.print(
            f"DynamoDB Local is up, behind a model of partitions: each physical key may write "
            f"{KEY_RATE:.0f} units a second.\n{WRITERS} writers would like to record "
            f"{RATE:.0f} accesses a second, nearly all of {HOT},\nwhile a reader reads "
            f"all of them again and again, strongly consistent, and checks each read.\n"
        )
        console.print(HEADING, style="bold")
        threads = [Thread(target=work, daemon=True) for work in traffic.functions()]
        for thread in threads:
            thread.start()
        try:
            for second in traffic.by_second():
                console.print(line(second), markup=False)
        finally:  # also after Ctrl-C: the threads end before the servers do
            traffic.stop.set()
            deadline = time.monotonic() + PATIENCE_SECONDS
            for thread in threads:
                thread.join(max(0.0, deadline - time.monotonic()))
        for path in traffic.acknowledged:
            traffic.check(path)
        for text in summary(traffic, time.time()):
            console.print(text, markup=False)
    return 1 if traffic.faults else 0


HEADING = "  time   writes/s  throttled/s  reads checked  shards"


def line(second: Second) -> str:
    """A line of the log."""
    shards = second.shards
    phase = f" ({shards.before} -> {shards.number} {shards.phase})"
    return (
        f"{second.at:4.0f} s {second.acknowledged:10,} {second.throttled:12,} "
        f"{second.reads:14,}  {shards.writable:>6}"
        f"{'' if shards.phase is Phase.STEADY else phase}"
    )


def summary(traffic: Traffic, now: float) -> Iterator[str]:
    """The end: the history, the totals, and whether every read was whole."""
    yield f"\nShards of {HOT} over time (UTC):"
    for text in history_chart(traffic.shards(), now):
        yield f"  {text}".rstrip()
    cold = ", ".join(str(traffic.shards(path).number) for path in COLD)
    usage = traffic.log.usage
    yield (
        f"The other files have {cold}.\n\n"
        f"{traffic.written:,} accesses were recorded for {usage.write_units:,.0f} write units, "
        f"after {usage.counters['hot_throttles']:,} throttles;\nthe reader has read "
        f"{traffic.items_read:,} items."
    )
    yield from traffic.faults[:10]
    if not traffic.faults:
        yield f"Every one of {traffic.reads:,} reads was whole: nothing was missing, nothing twice."


def create_tables(client: Any, table: str = TABLE) -> None:
    """The log, and its shard metadata."""
    for name, attributes in ((table, ("path", "accessed")), (f"{table}-shards", ("path",))):
        kinds = zip(attributes, ("HASH", "RANGE"), strict=False)
        client.create_table(
            TableName=name,
            KeySchema=[{"AttributeName": one, "KeyType": kind} for one, kind in kinds],
            AttributeDefinitions=[
                {"AttributeName": one, "AttributeType": "S"} for one in attributes
            ],
            BillingMode="PAY_PER_REQUEST",
        )
