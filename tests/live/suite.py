"""One start of the suite: where it runs, what it creates, and what it costs."""

from dataclasses import dataclass
from typing import Any

from tests.live.catalogue import CHECKS
from tests.live.cost import HOURS, UNKNOWN, WORKER, Expected, expected
from tests.live.deployed import Deployed
from tests.live.fixtures import Fixture, OfOwnStack
from tests.live.stack import ENCLOSED, NAME, READER
from tests.live.ways import Ways
from tests.live.workshop import TAG

MAY_EXPIRE = (
    "THE CREDENTIALS ARE TEMPORARY, and cannot be renewed here: they must be valid for longer than "
    "that, or nothing can be removed at the end."
)


@dataclass(frozen=True)
class Suite:
    """One start of the suite, with everything that is known before it creates anything.

    Attributes:
        deployed: An existing deployment that the suite uses.
        has_own_stack: Whether the suite deploys its own stack.
        may_expire: Whether the credentials are temporary and cannot be renewed here.
    """

    id: str
    account: str
    client: Any
    prefix: str
    tables: list[Fixture]
    deployed: Deployed | None
    has_own_stack: bool
    ways: Ways
    may_expire: bool = False

    @property
    def region(self) -> str:
        return str(self.client.meta.region_name)

    @property
    def expected(self) -> Expected:
        worker = WORKER if self.has_own_stack else self.deployed and self.deployed.worker
        return expected(self.tables, worker, self.stack_tables if self.has_own_stack else None)

    @property
    def costs(self) -> dict[str, float]:
        """Return the maximum cost of each check whose price is known, in dollars."""
        costs = self.expected.checks.items()
        return {name: cost for name, cost in costs if name not in UNKNOWN}

    @property
    def stack_tables(self) -> OfOwnStack:
        """The tables of the suite's own stack, as announced before the suite has a KMS key."""
        return OfOwnStack.of(self.prefix, "a key")

    def announcement(self) -> str:
        """Return what the suite will do, where, and what that costs."""
        tables = list(self.tables)
        text, more, minutes = "left out", "", "a few minutes"
        if self.deployed:
            text = f"{self.deployed.arn}\n    results in {self.deployed.bucket}"
        if self.has_own_stack:
            text = f"a stack of its own, {NAME}: deployed, destroyed, deployed again, and removed"
            has_keys = "kms" not in self.ways.lacks
            tables += OfOwnStack.of(self.prefix, "a key" if has_keys else None).made(
                self.ways.stack_makes_tables
            )
            more = "\n  key       one of KMS, for one table; deleted (7 days)" if has_keys else ""
            minutes = f"up to {HOURS} hours"
            text += f"\n            and {READER}, a machine that reads keys: deployed and destroyed"
            if "vpc" not in self.ways.lacks:
                text += f"\n            and {ENCLOSED}, in a VPC: deployed and destroyed"
            more += f"\n  re-key    makes {' and '.join(self.stack_tables.made_by_rekey)}; deleted"
        warning = f"\n  {MAY_EXPIRE}" if self.may_expire else ""
        names = "".join(f"\n    {table.name}" for table in tables)
        return (
            f"The live suite of Keyhop, start {self.id}, on {self.ways.where}\n"
            f"  account   {self.account}, region {self.region}\n"
            f"  tables    {len(tables)}, made, tagged {TAG}={self.id}, and deleted:{names}\n"
            f"  machine   {text}{more}\n"
            f"{self.expected.text()}\n"
            f"  It takes {minutes}. No other table is touched; what the runs write to the "
            f"bucket is deleted.{warning}"
        )

    def checks(self) -> str:
        """Return a line for each check: its name, its cost or why it has none, and its claim."""
        costs, known_costs, lines = self.expected.checks, self.costs, []
        for name, check in CHECKS.items():
            cost = f"${known_costs[name]:.4f}" if name in known_costs else "unknown"
            if check.needs in self.ways.lacks:
                cost = "skipped"
            elif name not in costs:
                cost = "left out"
            lines.append(f"  {name:<22}{cost:>9}  {check.shows}")
        return "\n".join(("Checks, each with its cost at most:", *lines))
