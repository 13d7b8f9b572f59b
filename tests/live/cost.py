"""What the suite will cost at most, told before it begins. Pure.

Formula: write units of all items + read units of PASSES times reading all tables through + 0.5 for
each hop, and each segment's end, + the runs of the state machine (price.run_cost). Not in it: what
tables cost while they lie (a few MB for minutes), and the logs and metrics of the functions.
"""

from dataclasses import dataclass

from keyhop.dynamodb.units import PRICE_DATE, PRICE_REGION, UNITS_PER_BLOCK, US_EAST_1
from keyhop.jobs.price import FunctionSize, run_cost

from tests.live import command, hot_keys, key_index, runs, service
from tests.live.fixtures import Fixture, OfOwnStack, enumerated

DOLLARS_PER_WRITE_UNIT = 0.625 / 1_000_000
WRITE_PRICE_DATE = "2026-08"
"""On demand, us-east-1."""

PASSES = 6
"""How often a table is read through: to see that it is loaded (twice, if it takes a while), by the
checks of the service (three times), and by `keyhop keys`, at most."""

SECONDS_PER_RUN = 30.0
"""Of all workers of a run together."""

RUNS_OF_MANY = 8
"""Starts on the table of many groups, besides one on each table."""

WORKER = FunctionSize(1769, "arm64")
"""Of a stack of the suite's own."""

STANDING_DOLLARS = 0.07
"""Of a stack of its own, for an hour: 60 metrics at $0.30 a month, alarms and a dashboard at $5, a
key at $1, provisioned tables of 30 units at $0.02, 30 GB-seconds of the key index's functions, a
query of Athena of 10 MB at least: all by the hour, and rounded up."""

DOLLARS_OF_INDEXES = 0.025 / 1000 * 150
"""State transitions of a build and a removal with their walks."""


@dataclass(frozen=True, slots=True)
class Expected:
    """The parts of the bill."""

    write_units: float
    read_units: float
    executions: int
    dollars_of_runs: float
    dollars_standing: float = 0.0

    @property
    def dollars(self) -> float:
        """All of it."""
        writing = self.write_units * DOLLARS_PER_WRITE_UNIT
        return (
            writing
            + US_EAST_1.dollars(self.read_units)
            + self.dollars_of_runs
            + self.dollars_standing
        )

    def text(self) -> str:
        """For a person, with the dates of the prices."""
        writing = self.write_units * DOLLARS_PER_WRITE_UNIT
        reading = US_EAST_1.dollars(self.read_units)
        return (
            f"  writing   {self.write_units:>8,.0f} write units  ${writing:.4f}  "
            f"(on demand, us-east-1, {WRITE_PRICE_DATE})\n"
            f"  reading   {self.read_units:>8,.0f} read units   ${reading:.4f}  "
            f"(on demand, {PRICE_REGION}, {PRICE_DATE})\n"
            f"  runs      {self.executions:>8,} executions   ${self.dollars_of_runs:.4f}  "
            f"(reads, Lambda, Step Functions, S3; {PRICE_REGION}, {PRICE_DATE})\n"
            f"  standing                         ${self.dollars_standing:.4f}  "
            f"(alarms, metrics, a key, provisioned capacity, for an hour)\n"
            f"  in all, at most                  ${self.dollars:.2f}"
        )


def expected(
    tables: list[Fixture], worker: FunctionSize | None, others: OfOwnStack | None = None
) -> Expected:
    """worker: of the deployment; None if the state machine is left out. others: the tables of a
    stack of the suite's own.
    """
    hopping = [table for table in tables if table.shape == "hops"]
    hop_pages = sum(2 * len(table.keys) + 2 * service.SEGMENTS for table in hopping)
    ends = len(tables) * (command.SEGMENTS + service.MOST_LOOKS + service.SEGMENTS)
    through = sum(table.full_read_units for table in tables)
    reads = PASSES * through + UNITS_PER_BLOCK * (hop_pages + ends)
    executions = 0
    dollars = 0.0
    if worker is not None:
        chosen = enumerated(tables)
        (many,) = (table for table in chosen if table.shape == "many")
        for table in [*chosen, *[many] * RUNS_OF_MANY]:
            executions += 1
            units = 2 * table.full_read_units + UNITS_PER_BLOCK * runs.SEGMENTS
            pieces = 2 * runs.GROUPS
            dollars += run_cost(worker, units, SECONDS_PER_RUN, pieces, runs.GROUPS, pieces)[
                "total"
            ]
    writes: float = sum(table.write_units for table in tables)
    if others is None:
        return Expected(writes, reads, executions, dollars)
    made = others.made(stack_makes_tables=True)
    sentinels = 2 * sum(len(table.keys) + key_index.MORE_WRITES for table in others.kept)
    writes += sum(table.write_units for table in made) + 2 * sentinels
    writes += hot_keys.HOT_WRITE_UNITS + hot_keys.OTHER_WRITE_UNITS
    reads += PASSES * sum(table.full_read_units for table in made)
    dollars += len(others.kept) * DOLLARS_OF_INDEXES
    return Expected(writes, reads, executions + 12, dollars, STANDING_DOLLARS)
