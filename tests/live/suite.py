"""One start of the suite: where it is, what it will make, and for how much."""

from dataclasses import dataclass
from typing import Any

from tests.live.catalogue import CHECKS
from tests.live.cost import UNKNOWN, WORKER, Expected, expected
from tests.live.deployed import Deployed
from tests.live.fixtures import Fixture, OfOwnStack
from tests.live.stack import ENCLOSED, NAME
from tests.live.ways import Ways
from tests.live.workshop import TAG


@dataclass(frozen=True)
class Suite:
    """One start of the suite, with all that was found out before anything is made.

    deployed: a deployment that was there. own: whether the suite deploys a stack of its own.
    """

    id: str
    account: str
    client: Any
    prefix: str
    tables: list[Fixture]
    deployed: Deployed | None
    own: bool
    ways: Ways

    @property
    def region(self) -> str:
        """Where the tables are made."""
        return str(self.client.meta.region_name)

    @property
    def expected(self) -> Expected:
        """What it will cost."""
        worker = WORKER if self.own else self.deployed and self.deployed.worker
        return expected(self.tables, worker, self.others if self.own else None)

    @property
    def others(self) -> OfOwnStack:
        """The tables of a stack of its own, for what is told before there is a key."""
        return OfOwnStack.of(self.prefix, "a key")

    def announcement(self) -> str:
        """What it will do, where, and for how much."""
        tables = list(self.tables)
        what, more, minutes = "left out", "", "a few minutes"
        if self.deployed:
            what = f"{self.deployed.arn}\n    results in {self.deployed.bucket}"
        if self.own:
            what = f"a stack of its own, {NAME}: deployed, destroyed, deployed again, and removed"
            has_keys = "kms" not in self.ways.lacks
            tables += OfOwnStack.of(self.prefix, "a key" if has_keys else None).made(
                self.ways.stack_makes_tables
            )
            more = "\n  key       one of KMS, for one table; deleted (7 days)" if has_keys else ""
            minutes = "an hour and a half"
            if "vpc" not in self.ways.lacks:
                what += f"\n            and {ENCLOSED}, in a VPC: deployed and destroyed"
            more += f"\n  re-key    makes {' and '.join(self.others.made_by_rekey)}; deleted"
        names = "".join(f"\n    {table.name}" for table in tables)
        return (
            f"The live suite of Keyhop, start {self.id}, on {self.ways.where}\n"
            f"  account   {self.account}, region {self.region}\n"
            f"  tables    {len(tables)}, made, tagged {TAG}={self.id}, and deleted:{names}\n"
            f"  machine   {what}{more}\n"
            f"{self.expected.text()}\n"
            f"  It takes {minutes}. No other table is touched; what the runs write to the "
            f"bucket is deleted."
        )

    def checks(self) -> str:
        """Each check with its cost, and what it would show; those that cannot be made here."""
        costs, lines = self.expected.checks, []
        for name, check in CHECKS.items():
            cost = "unknown" if name in UNKNOWN else f"${costs.get(name, 0.0):.4f}"
            if check.needs in self.ways.lacks:
                cost = "skipped"
            elif name not in costs:
                cost = "left out"
            lines.append(f"  {name:<22}{cost:>9}  {check.shows}")
        return "\n".join(("Checks, each with its cost at most:", *lines))
