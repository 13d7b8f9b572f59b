"""The traffic of the audit-log example: many writers, and a reader that checks each read."""

import random
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing, contextmanager
from dataclasses import dataclass, field
from threading import Event, Thread

from botocore.exceptions import BotoCoreError, ClientError
from keyhop.clock import Clock, SystemClock
from keyhop.errors import KeyhopError
from keyhop.sharding.key.shards import Phase, Shards
from keyhop.sharding.key.texts import history_chart
from keyhop.sharding.table import ShardedTable

from local.cloud import console
from testing.databases import Database
from testing.partitions import partitions
from testing.servers import dynamodb_local

TABLE = "Audit"
HOT = "/srv/share/budget.xlsx"
COLD = ("/srv/share/minutes.docx", "/srv/share/holidays.ics", "/srv/share/menu.pdf")
COLD_SHARE = 0.03

KEY_RATE = 40.0
"""Write units a second of one partition key; DynamoDB gives about 1,000."""

PATIENCE_SECONDS = 10.0
"""The time to wait for the threads at the end, because they may be in a back-off."""

STOP_SECONDS = 1.0
"""The same after Ctrl-C."""

Record = Callable[[ShardedTable, str, str], str]
Read = Callable[[ShardedTable, str], list[str]]


@dataclass(frozen=True, slots=True)
class Second:
    """The events of one second.

    Attributes:
        reads: The number of reads that were checked so far.
        shards: The number of shards of the hot file.
    """

    at: int
    acknowledged: int
    throttled: int
    shards: Shards
    reads: int


@dataclass
class Traffic:
    """Writers of one hot file and a few cold ones, and a reader with a separate log.

    Attributes:
        rate: The writes per second that all writers together attempt.
        pause: The seconds between two reads.
        acknowledged: The accesses whose write was answered, by file.
        faults: The reads that were incomplete, and the writes that gave up.
    """

    log: ShardedTable
    readers_log: ShardedTable
    record: Record
    read: Read
    seconds: float = 30.0
    writers: int = 24
    rate: float = 200.0
    pause: float = 0.1
    clock: Clock = field(default_factory=SystemClock)
    acknowledged: dict[str, list[str]] = field(
        default_factory=lambda: {path: [] for path in (HOT, *COLD)}
    )
    reads: int = 0
    items_read: int = 0
    faults: list[str] = field(default_factory=list)
    stop: Event = field(default_factory=Event)

    def warm_up(self) -> None:
        """Record an access to each cold file, so that connections exist and keys are registered."""
        for path in COLD:
            self.acknowledged[path].append(self.record(self.log, path, "user-00"))
            self.check(path)

    def functions(self) -> list[Callable[[], None]]:
        """Return the functions of the writers and of the reader."""
        return [*(lambda n=n: self._write(n) for n in range(self.writers)), self._read_on]

    def by_second(self) -> Iterator[Second]:
        """Yield the events of each second until time is over."""
        began = self.clock.monotonic()
        written = throttles = 0
        for second in range(1, round(self.seconds) + 1):
            self.clock.sleep(max(0.0, began + second - self.clock.monotonic()))
            before = written, throttles
            written, throttles = self.written, self.throttles
            more = written - before[0], throttles - before[1]
            yield Second(second, *more, self.shards(), self.reads)
        self.stop.set()

    @property
    def written(self) -> int:
        return sum(map(len, self.acknowledged.values()))

    @property
    def throttles(self) -> int:
        return self.log.usage.counters["hot_throttles"]

    def shards(self, path: str = HOT) -> Shards:
        """Return the shards of a file, as its writers know them."""
        return self.log.metadata.of({"S": path}).shards

    def check(self, path: str) -> None:
        """Read a file's accesses, and compare them with those acknowledged before."""
        promised = list(self.acknowledged[path])
        listed = self.read(self.readers_log, path)
        if wrong := fault(promised, listed):
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
            with self._noting("A write was given up"):
                accessed = self.record(self.log, path, f"user-{number:02}")
                self.acknowledged[path].append(accessed)
            due = max(due + pause, self.clock.monotonic())  # nobody makes up for a delay

    def _read_on(self) -> None:
        while not self.stop.is_set():
            for path in (HOT, COLD[self.reads % len(COLD)]):
                with self._noting("A read has failed"):
                    self.check(path)
                self.clock.sleep(self.pause)

    @contextmanager
    def _noting(self, what: str) -> Iterator[None]:
        try:
            yield
        except (KeyhopError, ClientError, BotoCoreError) as error:
            if not self.stop.is_set():
                self.faults.append(f"{what}: {error}")


def fault(promised: Sequence[str], listed: Sequence[str]) -> str | None:
    """Return the fault of a read after these accesses were acknowledged, or None."""
    missing = set(promised).difference(listed)
    if missing:
        return f"{len(missing):,} of {len(promised):,} accesses were missing, {min(missing)!r}"
    if len(set(listed)) < len(listed):
        return f"{len(listed) - len(set(listed)):,} accesses were listed twice"
    if list(listed) != sorted(listed):
        return "its order was wrong"
    return None


def run(
    open_log: Callable[[str], ShardedTable], record: Record, read: Read, seconds: float = 30.0
) -> int:
    """Run the example on this machine; return an exit status, 1 if a read was incomplete."""
    with (
        dynamodb_local() as url,
        partitions(url, rate=KEY_RATE, tables={TABLE}) as model,
        closing(open_log(model.url)) as log,
        closing(open_log(model.url)) as readers_log,
    ):
        create_tables(Database("dynamodb_local", url))
        traffic = Traffic(log, readers_log, record, read, seconds)
        traffic.warm_up()
        console.print(
            f"DynamoDB Local is up, behind a model of partitions: each physical key may write "
            f"{KEY_RATE:.0f} units a second.\n{traffic.writers} writers would like to record "
            f"{traffic.rate:.0f} accesses a second, nearly all of {HOT},\nwhile a reader reads "
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
            patience = PATIENCE_SECONDS if traffic.stop.is_set() else STOP_SECONDS
            traffic.stop.set()
            deadline = time.monotonic() + patience
            for thread in threads:
                thread.join(max(0.0, deadline - time.monotonic()))
        for path in traffic.acknowledged:
            traffic.check(path)
        for text in summary(traffic, time.time()):
            console.print(text, markup=False)
    return 1 if traffic.faults else 0


HEADING = "  time   writes/s  throttled/s  reads checked  shards"


def line(second: Second) -> str:
    """Return the line about one second."""
    shards = second.shards
    phase = f" ({shards.before} -> {shards.number} {shards.phase})"
    return (
        f"{second.at:4.0f} s {second.acknowledged:10,} {second.throttled:12,} {second.reads:14,}  "
        f"{shards.writable:>6}{'' if shards.phase is Phase.STEADY else phase}"
    )


def summary(traffic: Traffic, now: float) -> Iterator[str]:
    """Return the history of shards, the totals, and the result of the checks."""
    yield f"\nShards of {HOT} over time (UTC):"
    for text in history_chart(traffic.shards(), now):
        yield f"  {text}".rstrip()
    cold = ", ".join(str(traffic.shards(path).number) for path in COLD)
    usage = traffic.log.usage
    yield (
        f"The other files have {cold}.\n\n"
        f"{traffic.written:,} accesses were recorded for {usage.write_units:,.0f} write units, "
        f"after {traffic.throttles:,} throttles;\nthe reader has read "
        f"{traffic.items_read:,} items."
    )
    yield from traffic.faults[:10]
    if not traffic.faults:
        yield f"Every one of {traffic.reads:,} reads was whole: nothing was missing, nothing twice."


def create_tables(database: Database, table: str = TABLE) -> None:
    """Create the log and its shard-metadata table."""
    database.create(table, ("path", "S"), ("accessed", "S"))
    database.create(f"{table}-shards", ("path", "S"), None)
