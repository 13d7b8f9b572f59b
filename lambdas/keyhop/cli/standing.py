"""How far a run of a deployment is, by what its workers have committed."""

from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field

from keyhop.jobs.fleet import ANEW
from keyhop.jobs.journal import COMMIT_NAME, READERS, Commit, Journal, RunPlan, Totals
from keyhop.jobs.runs import Runs

FIRSTS = ("keys", "digests")
"""Of runs that are made first for one (Task.first)."""


@dataclass(slots=True)
class WatchedRun:
    """A run to look at again and again, or what is made first for it. journal, plan, totals: once
    it is planned.
    """

    runs: Runs
    run: str
    journal: Journal = field(init=False)
    plan: RunPlan | None = None
    totals: Totals | None = None
    _seen: set[str] = field(default_factory=set)

    def look(self) -> Totals | None:
        """What is committed by now; None before there is a plan. Raises KeyhopError."""
        if self.plan is None or self.plan.id in self._firsts:
            for run in (self.run, *self._firsts):
                if self._begin(run):
                    break
        elif self.plan.method == "index" and self.plan.id == self.run:
            self._begin(f"{self.run}{ANEW}")  # if the index was out of date at the end
        if self.plan is None or self.totals is None:
            return None
        new = [name for name in self.journal.store.sizes("commits") if name not in self._seen]
        with ThreadPoolExecutor(READERS) as pool:
            for name, commit in zip(new, pool.map(self._commit, new), strict=True):
                self._seen.add(name)
                if commit is not None:
                    self.totals.add(commit)
        return self.totals

    @property
    def _firsts(self) -> list[str]:
        return [f"{self.run}-{first}" for first in FIRSTS]

    def _begin(self, run: str) -> bool:
        """Whether it is planned."""
        if self.plan is not None and self.plan.id == run:
            return True
        journal = self.runs.journal(run)
        plan = journal.plan()
        if plan is not None:
            self.journal, self.plan, self.totals = journal, plan, Totals.of(plan, ())
            self._seen.clear()
        return plan is not None

    def _commit(self, name: str) -> Commit | None:
        numbers = COMMIT_NAME.fullmatch(name)
        if numbers is None:
            return None
        return self.journal.commit_of(int(numbers["group"]), int(numbers["slice"]))
