"""State VerifyRun: the sampled check of a finished run, over as many invocations as it needs."""

import time
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

from keyhop.dynamodb.usage import Usage
from keyhop.errors import KeysMissing, SegmentsTooLarge
from keyhop.jobs.journal import Journal
from keyhop.jobs.lifecycle import begun_task
from keyhop.jobs.model import Record, RunPlan
from keyhop.jobs.price import FunctionSize, check_cost, with_check
from keyhop.jobs.runs import Deployment
from keyhop.jobs.scan_segments import patience_within, working_seconds
from keyhop.jobs.task import Tasks
from keyhop.keys.verify import Verdict, verify
from keyhop.scan.in_flight import MOST
from keyhop.scan.rate_limit import Budget
from keyhop.scan.reader import PageReader
from keyhop.wording import counted

VERDICT = "verify.json"


@dataclass(slots=True)
class Check(Record):
    """The check of a run; kept with its files, with examples of keys.

    execution: who began it, which goes on with it over several invocations, as does another that
    resumes it. number: of the run's checks, from 1. read_units, seconds, invocations: of all of
    them so far.
    """

    execution: str
    verdict: Verdict
    read_units: float = 0.0
    seconds: float = 0.0
    invocations: int = 0
    number: int = 0

    @classmethod
    def stored(cls, journal: Journal, plan: RunPlan, share: float, execution: str) -> "Check":
        """As it stands; one of another share, or after one that came to its end, begins anew."""
        fresh = Verdict.of_none(plan, share)
        found = journal.load(VERDICT)
        check = cls(execution, fresh) if found is None else cls.from_json(found)
        is_another = check.verdict.drawn != fresh.drawn
        is_over = check.verdict.is_whole and check.execution != execution
        if is_another or is_over or not check.number:  # an older version's has no number
            number = check.number + 1
            return replace(check, execution=execution, verdict=fresh, number=number)
        return check

    def summary(self) -> dict[str, Any]:
        """For the execution's output and the manifest: counts, and no keys."""
        counts = self.verdict.to_json()
        del counts["examples"]
        return {**counts, "read_units": self.read_units, "seconds": round(self.seconds, 3)}


def verify_run(
    state: Mapping[str, Any],
    deployment: Deployment,
    tasks: Tasks,
    worker: FunctionSize,
    remaining_seconds: float,
    usage: Usage,
) -> tuple[dict[str, Any], Verdict]:
    """Check a share of the segments; returns the next state, and what was found so far.

    usage: gets all that is read, also if it ends with an error. Raises KeysMissing once all are
    checked and keys were missing, SegmentsTooLarge if there was no time for anything, and what
    reading can raise.
    """
    began = time.monotonic()
    journal, plan = deployment.runs.begun(state["run"])
    connection = deployment.connect(plan.table, MOST)
    _, source = begun_task(tasks, plan, connection)
    check = Check.stored(journal, plan, state["verifyShare"], state["execution"])
    verdict, units, seconds = check.verdict, check.read_units, check.seconds
    check.invocations += 1
    budget = Budget(state["maxReadRate"])
    if state["readUnitsLimit"] is not None:
        by_this_start = units - state["checkUnitsBefore"]
        budget.allow_more(state["readUnitsLimit"] - state["readUnitsBefore"] - by_this_start)
    patience = patience_within(remaining_seconds)
    reader = PageReader(connection, source, budget, patience=patience, usage=usage)

    def keep() -> None:
        check.read_units = units + usage.read_units
        check.seconds = seconds + time.monotonic() - began
        journal.keep(VERDICT, {**check.to_json(), "seconds": round(check.seconds, 3)})

    within = journal.within(f"verify/{check.number}")
    over_at = began + working_seconds(remaining_seconds)
    try:
        has_moved = verify(journal, plan, within, reader, verdict, MOST, over_at, keep)
    finally:
        keep()
    if not verdict.is_whole:
        if not has_moved:
            took = time.monotonic() - began
            raise SegmentsTooLarge(
                f"The check read for {counted(took, 'second')} and came to the end of no segment."
            )
        return {**state, "next": "verify"}, verdict
    cost = check_cost(worker, check.read_units, check.seconds, check.invocations, plan.prices)
    result = with_check(state["result"], check.summary(), cost)
    manifest = journal.manifest()
    if manifest is not None:
        journal.write_summary(with_check(manifest, check.summary(), cost))
    if verdict.missing:
        raise KeysMissing(
            f"The check of {verdict.share:.1%} of the hash space found "
            f"{counted(verdict.missing, 'key')} that the run did not report; examples are in "
            f"{journal.store.url(VERDICT)}.",
            verdict.missing,
        )
    return {**state, "next": "end", "result": result}, verdict
