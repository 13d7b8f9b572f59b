"""The maximum cost of the suite, estimated before it starts, without any request.

The estimate excludes storage (a few MB for hours), the logs of the functions, and the features of
DynamoDB whose prices are not known here (UNKNOWN).
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
"""The maximum number of Scans of a table that confirm that it is loaded."""

SECONDS_PER_RUN = 30.0
"""The duration of all workers of a run together."""

WORKER = FunctionSize(1769, "arm64")
"""The worker of the suite's own stack."""

HOURS = 5
"""The maximum duration of a start that deploys its own stack. Most of it is waiting: DynamoDB takes
up to ten minutes to add an index, and nine are added; Lambda takes up to forty minutes to delete
functions in a VPC."""

STANDING_DOLLARS = 0.06 * HOURS
"""The hourly costs of the suite's own stack, rounded up: provisioned tables of 30 units at $0.024,
50 metrics that are written in an hour at $0.02, 40 alarms at $0.006, a dashboard at $0.004, a key
at $0.002, 30 GB-seconds of the key index's functions."""

DOLLARS_OF_INDEX = 0.025 / 1000 * 150
"""The state transitions of a build and a removal with their walks."""

DOLLARS_OF_METRICS = 0.001
"""The request of a hundred metrics from CloudWatch."""

DOLLARS_OF_QUERY = 10 / 1_000_000 * 5
"""The minimum charge of Athena for a query: 10 MB, at $5 for a TB."""

DOLLARS_PER_CHILD = 3 * DOLLARS_PER_TRANSITION + DOLLARS_PER_GET
"""The start of an execution with one state, its state and its end, and the object it reads."""

DOLLARS_OF_VPC = 0.06
"""Two interface endpoints in one zone for two hours at $0.01, and a second dashboard and alarms."""

SCHEDULED_RUNS = 6 * HOURS
"""A run every ten minutes."""

AUTO_RUNS = int(key_index.TRUST_SECONDS / key_index.TRUST_PAUSE_SECONDS)
"""The maximum number of runs of each table with a key index until method auto reads the index."""


@dataclass(frozen=True, slots=True)
class Expected:
    """The parts of the bill in dollars. `checks` has each check by name, for all its tables."""

    loading: float
    checks: Mapping[str, float]
    standing: float

    @property
    def dollars(self) -> float:
        """The total."""
        return self.loading + sum(self.checks.values()) + self.standing

    def text(self) -> str:
        """Return the estimate as text, with the date of the prices."""
        return (
            f"  loading the tables     ${self.loading:.4f}\n"
            f"  {len(self.checks):>2} checks              ${sum(self.checks.values()):.4f}"
            f"  (--dry-run lists each)\n"
            f"  alarms, metrics, a key ${self.standing:.4f}\n"
            f"  in all, at most        ${self.dollars:.2f}    "
            f"({PRICE_REGION}, {PRICE_DATE}, on demand){self._unknown()}"
        )

    def _unknown(self) -> str:
        names = ", ".join(name for name in UNKNOWN if name in self.checks)
        return f"\n  without                {names}: no price is known" if names else ""


def expected(
    tables: list[Fixture], worker: FunctionSize | None, stack_tables: OfOwnStack | None = None
) -> Expected:
    """Return the expected cost. `worker` is None if no state machine is used; `stack_tables` are
    those of the suite's own stack, if it deploys one.
    """
    checks = _service_checks(tables)
    loaded = list(tables)
    standing = 0.0
    if worker is not None:
        checks |= _run_checks(tables, worker)
    if worker is not None and stack_tables is not None:
        loaded += stack_tables.made(stack_makes_tables=True)
        checks |= _stack_checks(tables, stack_tables, worker)
        standing = STANDING_DOLLARS
    writes = sum(table.write_units for table in loaded)
    reads = LOADING_PASSES * sum(table.full_read_units for table in loaded)
    in_order = {name: checks[name] for name in CHECKS if name in checks}
    return Expected(US_EAST_1.dollars(reads, writes), in_order, standing)


def _service_checks(tables: list[Fixture]) -> dict[str, float]:
    """Return the dollars of the checks of service.py and command.py."""
    hopping = [table for table in tables if table.shape == "hops"]
    full_scans = sum(table.full_read_units for table in tables)
    pages = sum(2 * len(table.keys) + 2 * service.SEGMENTS for table in hopping)
    units = {
        "hop": full_scans + UNITS_PER_BLOCK * pages,
        "hop-from-large": full_scans,
        "foreign-segment": UNITS_PER_BLOCK * len(hopping),
        "greatest-sort-key": full_scans,
        "empty-segment": UNITS_PER_BLOCK * len(tables) * service.MAX_ATTEMPTS,
        "table-identity": 0.0,
        "index-segments": UNITS_PER_BLOCK * service.SEGMENTS + full_scans,
        "table-members": 0.0,
        "command": full_scans + UNITS_PER_BLOCK * len(tables) * command.SEGMENTS,
    }
    return {name: US_EAST_1.dollars(number) for name, number in units.items()}


def _run_checks(tables: list[Fixture], worker: FunctionSize) -> dict[str, float]:
    """Return the dollars of the checks of runs.py."""
    readable = enumerated(tables)
    (many,) = (table for table in readable if table.shape == "many")
    run = _run(worker, many)
    return {
        "run": sum(_run(worker, table) for table in readable),
        **dict.fromkeys(("run-stop", "run-groups", "run-plan"), run),
        **dict.fromkeys(("run-refusal", "run-allow-list"), run),
        **dict.fromkeys(("run-resume", "run-redrive", "run-budget"), 2 * run),
    }


def _stack_checks(
    tables: list[Fixture], stack_tables: OfOwnStack, worker: FunctionSize
) -> dict[str, float]:
    """Return the dollars of the checks that need the suite's own stack."""
    (plain,) = (table for table in tables if table.shape == "plain")
    sentinels = {
        table.name: 2 * 4 * (len(table.keys) + key_index.MORE_WRITES) for table in stack_tables.kept
    }
    index = [
        DOLLARS_OF_INDEX + US_EAST_1.dollars(4 * table.full_read_units, sentinels[table.name])
        for table in stack_tables.kept
    ]
    records = streams.ROUNDS * streams.KEYS
    keys = len(stack_tables.each.keys)
    # Both tables, the record of each write in flight, and the markers of a change.
    rekey_writes = 8 * ORDERS
    return {
        **dict.fromkeys(UNKNOWN, 0.0),
        "stream-looks": US_EAST_1.dollars(records, 2 * records),
        "stream-order": 0.0,
        "index-life": sum(index)
        + sum(AUTO_RUNS * _run(worker, table) for table in stack_tables.kept),
        "index-old-records": DOLLARS_OF_METRICS + US_EAST_1.dollars(0, key_index.FORMER_RECORDS),
        **dict.fromkeys(("index-stream-stays", "index-capacity", "index-scaling"), 0.0),
        "index-kms": 0.0,
        "each-put-undo": 3 * _run(worker, stack_tables.each, 4 * keys),
        "report-run": US_EAST_1.dollars(features.MAX_READ_UNITS)
        + _run(worker, stack_tables.days)
        + DOLLARS_OF_METRICS,
        # A copy, a verification, which reads both tables, and the change.
        "rekey-there": 3 * _run(worker, stack_tables.orders, rekey_writes),
        "rekey-back": _run(worker, stack_tables.orders, rekey_writes),
        "sharding-functions": US_EAST_1.dollars(0, 4 * hot_keys.ITEMS),
        "sharding-drain": US_EAST_1.dollars(0, 4 * hot_keys.ITEMS),
        "sharding-hot-key": US_EAST_1.dollars(0, hot_keys.HOT_WRITE_UNITS),
        "sharding-small-table": US_EAST_1.dollars(0, hot_keys.OTHER_WRITE_UNITS),
        "run-large-part": _run(worker, stack_tables.wide),
        # Loading, a hop from each key, and the worker.
        "worker-speed": US_EAST_1.dollars(UNITS_PER_BLOCK * around.QUICK_KEYS)
        + _run(worker, stack_tables.quick, around.QUICK_KEYS),
        "athena": 2 * DOLLARS_OF_QUERY,
        # The execution, a child for each part, and one for each key.
        "second-machine": _run(worker, stack_tables.each)
        + (1 + runs.GROUPS + keys) * DOLLARS_PER_CHILD,
        "metrics-at-error": DOLLARS_OF_METRICS,
        "alarm-at-error": DOLLARS_OF_METRICS,
        "schedule": SCHEDULED_RUNS * _run(worker, stack_tables.scheduled),
        "report-metrics": DOLLARS_OF_METRICS,
        "vpc-run": DOLLARS_OF_VPC + _run(worker, stack_tables.enclosed),
        "update-refused": index[0],
        "destroy-refused": index[0],
        "destroy": 0.0,
        "deploy-again": _run(worker, plain),
    }


def _run(worker: FunctionSize, table: Fixture, write_units: float = 0.0) -> float:
    """Return the maximum dollars of a run, which reads the table twice in many segments."""
    units = 2 * table.full_read_units + UNITS_PER_BLOCK * runs.SEGMENTS
    pieces = 2 * runs.GROUPS
    cost = run_cost(worker, units, SECONDS_PER_RUN, pieces, runs.GROUPS, pieces, write_units)
    return float(cost["total"])
