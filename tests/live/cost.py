"""What the suite will cost at most, told before it begins. Pure.

Not in it: what tables cost while they exist (a few MB for hours), the logs of the functions, and
the two features of DynamoDB whose prices are not known here (UNKNOWN).
"""

from collections.abc import Mapping
from dataclasses import dataclass

from keyhop.dynamodb.units import PRICE_DATE, PRICE_REGION, UNITS_PER_BLOCK, US_EAST_1
from keyhop.jobs.price import DOLLARS_PER_GET, DOLLARS_PER_TRANSITION, FunctionSize, run_cost

from tests.live import around, command, features, hot_keys, key_index, runs, service, streams
from tests.live.catalogue import CHECKS
from tests.live.fixtures import ORDERS, Fixture, OfOwnStack, enumerated

UNKNOWN = ("bulk-put-records", "vector-index", "vector-index-beside")
"""Checks of features without a known price; they write four small items."""

LOADING_PASSES = 2
"""How often a table is read through, at most, to see that it is loaded."""

SECONDS_PER_RUN = 30.0
"""Of all workers of a run together."""

WORKER = FunctionSize(1769, "arm64")
"""Of a stack of the suite's own."""

HOURS = 5
"""The longest time of a start with a stack of its own. Most of it is waiting: DynamoDB takes up to
ten minutes to add an index, and nine are added; Lambda takes up to forty to delete functions in a
VPC."""

STANDING_DOLLARS = 0.06 * HOURS
"""Of a stack of its own: provisioned tables of 30 units at $0.024 an hour, 50 metrics that are
written in an hour at $0.02, 40 alarms at $0.006, a dashboard at $0.004, a key at $0.002, 30
GB-seconds of the key index's functions: all by the hour, and rounded up."""

DOLLARS_OF_INDEX = 0.025 / 1000 * 150
"""State transitions of a build and a removal with their walks."""

DOLLARS_OF_METRICS = 0.001
"""A hundred metrics that are requested from CloudWatch."""

DOLLARS_OF_QUERY = 10 / 1_000_000 * 5
"""The least that Athena charges for a query: 10 MB, at $5 for a TB."""

DOLLARS_PER_CHILD = 3 * DOLLARS_PER_TRANSITION + DOLLARS_PER_GET
"""The start of an execution with one state, the state and the end, and the object that it reads."""

DOLLARS_OF_VPC = 0.06
"""Two interface endpoints in one zone for two hours at $0.01, and a second dashboard and alarms."""

SCHEDULED_RUNS = 6 * HOURS
"""One every ten minutes."""

AUTO_RUNS = int(key_index.TRUST_SECONDS / key_index.TRUST_PAUSE_SECONDS)
"""Of each table with a key index, at most, until method auto reads the index."""


@dataclass(frozen=True, slots=True)
class Expected:
    """The parts of the bill in dollars; checks: by name, of all tables together."""

    loading: float
    checks: Mapping[str, float]
    standing: float

    @property
    def dollars(self) -> float:
        """All of it."""
        return self.loading + sum(self.checks.values()) + self.standing

    def text(self) -> str:
        """For a person, with the date of the prices."""
        return (
            f"  loading the tables     ${self.loading:.4f}\n"
            f"  {len(self.checks):>2} checks              ${sum(self.checks.values()):.4f}"
            f"  (--dry-run lists each)\n"
            f"  alarms, metrics, a key ${self.standing:.4f}\n"
            f"  in all, at most        ${self.dollars:.2f}    "
            f"({PRICE_REGION}, {PRICE_DATE}, on demand){self._what_is_unknown()}"
        )

    def _what_is_unknown(self) -> str:
        names = ", ".join(name for name in UNKNOWN if name in self.checks)
        return f"\n  without                {names}: no price is known" if names else ""


def expected(
    tables: list[Fixture], worker: FunctionSize | None, others: OfOwnStack | None = None
) -> Expected:
    """worker: of the deployment; None if the state machine is left out. others: the tables of a
    stack of the suite's own.
    """
    checks = _of_the_service(tables)
    made = list(tables)
    standing = 0.0
    if worker is not None:
        checks |= _of_runs(tables, worker)
    if worker is not None and others is not None:
        made += others.made(stack_makes_tables=True)
        checks |= _of_own_stack(tables, others, worker)
        standing = STANDING_DOLLARS
    writes = sum(table.write_units for table in made)
    reads = LOADING_PASSES * sum(table.full_read_units for table in made)
    in_order = {name: checks[name] for name in CHECKS if name in checks}
    return Expected(US_EAST_1.dollars(reads, writes), in_order, standing)


def _of_the_service(tables: list[Fixture]) -> dict[str, float]:
    """The checks of service.py, and those of the command."""
    hopping = [table for table in tables if table.shape == "hops"]
    through = sum(table.full_read_units for table in tables)
    pages = sum(2 * len(table.keys) + 2 * service.SEGMENTS for table in hopping)
    units = {
        "hop": through + UNITS_PER_BLOCK * pages,
        "hop-from-large": through,
        "foreign-segment": UNITS_PER_BLOCK * len(hopping),
        "greatest-sort-key": through,
        "empty-segment": UNITS_PER_BLOCK * len(tables) * service.MOST_LOOKS,
        "table-identity": 0.0,
        "index-segments": UNITS_PER_BLOCK * service.SEGMENTS + through,
        "table-members": 0.0,
        "command": through + UNITS_PER_BLOCK * len(tables) * command.SEGMENTS,
    }
    return {name: US_EAST_1.dollars(number) for name, number in units.items()}


def _of_runs(tables: list[Fixture], worker: FunctionSize) -> dict[str, float]:
    """The checks of runs.py."""
    chosen = enumerated(tables)
    (many,) = (table for table in chosen if table.shape == "many")
    one = _run(worker, many)
    return {
        "run": sum(_run(worker, table) for table in chosen),
        "run-stop": one,
        "run-resume": 2 * one,
        "run-redrive": 2 * one,
        "run-groups": one,
        "run-plan": one,
        "run-refusal": one,
        "run-allow-list": one,
        "run-budget": 2 * one,
    }


def _of_own_stack(
    tables: list[Fixture], others: OfOwnStack, worker: FunctionSize
) -> dict[str, float]:
    """The checks that need a stack of the suite's own."""
    (plain,) = (table for table in tables if table.shape == "plain")
    sentinels = {
        table.name: 2 * 4 * (len(table.keys) + key_index.MORE_WRITES) for table in others.kept
    }
    index = [
        DOLLARS_OF_INDEX + US_EAST_1.dollars(4 * table.full_read_units, sentinels[table.name])
        for table in others.kept
    ]
    followed = streams.ROUNDS * streams.KEYS
    keys = len(others.each.keys)
    # Both tables, the record of each write in flight, and the markers of a change.
    moved = 8 * ORDERS
    return {
        **dict.fromkeys(UNKNOWN, 0.0),
        "stream-looks": US_EAST_1.dollars(followed, 2 * followed),
        "stream-order": 0.0,
        "index-life": sum(index) + sum(AUTO_RUNS * _run(worker, table) for table in others.kept),
        "index-old-records": DOLLARS_OF_METRICS + US_EAST_1.dollars(0, key_index.FORMER_RECORDS),
        **dict.fromkeys(("index-stream-stays", "index-capacity", "index-scaling"), 0.0),
        "index-kms": 0.0,
        "each-put-undo": 3 * _run(worker, others.each, 4 * keys),
        "report-run": US_EAST_1.dollars(features.MAX_READ_UNITS)
        + _run(worker, others.days)
        + DOLLARS_OF_METRICS,
        # A copy, a verification, which reads both tables, and the change.
        "rekey-there": 3 * _run(worker, others.orders, moved),
        "rekey-back": _run(worker, others.orders, moved),
        "sharding-functions": US_EAST_1.dollars(0, 4 * hot_keys.ITEMS),
        "sharding-drain": US_EAST_1.dollars(0, 4 * hot_keys.ITEMS),
        "sharding-hot-key": US_EAST_1.dollars(0, hot_keys.HOT_WRITE_UNITS),
        "sharding-small-table": US_EAST_1.dollars(0, hot_keys.OTHER_WRITE_UNITS),
        "run-large-part": _run(worker, others.wide),
        # Loading, a hop from each key, and the worker.
        "worker-speed": US_EAST_1.dollars(UNITS_PER_BLOCK * around.QUICK_KEYS)
        + _run(worker, others.quick, around.QUICK_KEYS),
        "athena": 2 * DOLLARS_OF_QUERY,
        # The execution itself, a child for each part, and one for each key.
        "second-machine": _run(worker, others.each) + (1 + runs.GROUPS + keys) * DOLLARS_PER_CHILD,
        "metrics-at-error": DOLLARS_OF_METRICS,
        "alarm-at-error": DOLLARS_OF_METRICS,
        "schedule": SCHEDULED_RUNS * _run(worker, others.scheduled),
        "report-metrics": DOLLARS_OF_METRICS,
        "vpc-run": DOLLARS_OF_VPC + _run(worker, others.enclosed),
        "update-refused": index[0],
        "destroy-refused": index[0],
        "destroy": 0.0,
        "deploy-again": _run(worker, plain),
    }


def _run(worker: FunctionSize, table: Fixture, write_units: float = 0.0) -> float:
    """Dollars of a run that reads the table twice, at most, in many segments."""
    units = 2 * table.full_read_units + UNITS_PER_BLOCK * runs.SEGMENTS
    pieces = 2 * runs.GROUPS
    cost = run_cost(worker, units, SECONDS_PER_RUN, pieces, runs.GROUPS, pieces, write_units)
    return float(cost["total"])
