"""One start of the suite: where it is, what it will make, and for how much."""

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
    """One start of the suite, with all that was found out before anything is made.

    deployed: a deployment that was there. own: whether the suite deploys a stack of its own.
    may_expire: whether the credentials are temporary, and nothing here can renew them.
    """

    id: str
    account: str
    client: Any
    prefix: str
    tables: list[Fixture]
    deployed: Deployed | None
    own: bool
    ways: Ways
    may_expire: bool = False

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
    def costs(self) -> dict[str, float]:
        """Return the maximum cost of each check whose price is known, in dollars."""
        costs = self.expected.checks.items()
        return {name: cost for name, cost in costs if name not in UNKNOWN}

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
            minutes = f"up to {HOURS} hours"
            what += f"\n            and {READER}, a machine that reads keys: deployed and destroyed"
            if "vpc" not in self.ways.lacks:
                what += f"\n            and {ENCLOSED}, in a VPC: deployed and destroyed"
            more += f"\n  re-key    makes {' and '.join(self.others.made_by_rekey)}; deleted"
        warning = f"\n  {MAY_EXPIRE}" if self.may_expire else ""
        names = "".join(f"\n    {table.name}" for table in tables)
        return (
            f"The live suite of Keyhop, start {self.id}, on {self.ways.where}\n"
            f"  account   {self.account}, region {self.region}\n"
            f"  tables    {len(tables)}, made, tagged {TAG}={self.id}, and deleted:{names}\n"
            f"  machine   {what}{more}\n"
            f"{self.expected.text()}\n"
            f"  It takes {minutes}. No other table is touched; what the runs write to the "
            f"bucket is deleted.{warning}"
        )

    def checks(self) -> str:
        """Each check with its cost, and what it would show; those that cannot be made here."""
        costs, known, lines = self.expected.checks, self.costs, []
        for name, check in CHECKS.items():
            cost = f"${known[name]:.4f}" if name in known else "unknown"
            if check.needs in self.ways.lacks:
                cost = "skipped"
            elif name not in costs:
                cost = "left out"
            lines.append(f"  {name:<22}{cost:>9}  {check.shows}")
        return "\n".join(("Checks, each with its cost at most:", *lines))
