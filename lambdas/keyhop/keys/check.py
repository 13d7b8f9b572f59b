"""State VerifyRun: the sampled check of a finished run, over as many invocations as it needs."""

import time
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

from keyhop.dynamodb.rate_limit import Budget
from keyhop.dynamodb.usage import Usage
from keyhop.errors import KeysMissing, SegmentsTooLarge
from keyhop.jobs.journal import Journal
from keyhop.jobs.lifecycle import begun_task
from keyhop.jobs.model import Record, RunPlan
from keyhop.jobs.price import FunctionSize, check_cost, with_check
from keyhop.jobs.runs import DeploymentSettings
from keyhop.jobs.scan_segments import patience_within, working_seconds
from keyhop.jobs.task import Tasks
from keyhop.keys.verify import Verdict, verify
from keyhop.scan.in_flight import MOST
from keyhop.scan.reader import PageReader
from keyhop.wording import counted

VERDICT = "verify.json"


@dataclass(slots=True)
class Check(Record):
    """The check of a run, which is stored with the files of the run.

    Attributes:
        execution: The execution that began it. It continues the check over several invocations,
            and so does an execution that resumes it.
        verdict: The result so far, with examples of keys.
        read_units: The read units of all invocations so far.
        seconds: Their seconds.
        invocations: Their number.
        number: The number of the check among those of the run, from 1.
    """

    execution: str
    verdict: Verdict
    read_units: float = 0.0
    seconds: float = 0.0
    invocations: int = 0
    number: int = 1

    @classmethod
    def stored(cls, journal: Journal, plan: RunPlan, share: float, execution: str) -> "Check":
        """Load the check; begin a new one if the share differs or the last one is complete."""
        fresh = Verdict.of_none(plan, share)
        stored_check = journal.load(VERDICT)
        check = cls(execution, fresh) if stored_check is None else cls.from_json(stored_check)
        is_another = check.verdict.drawn != fresh.drawn
        is_over = check.verdict.is_whole and check.execution != execution
        if is_another or is_over:
            number = check.number + 1
            return replace(check, execution=execution, verdict=fresh, number=number)
        return check

    def summary(self) -> dict[str, Any]:
        """Return the counts, for the output of the execution and the manifest."""
        counts = self.verdict.to_json()
        del counts["examples"]
        return {**counts, "read_units": self.read_units, "seconds": round(self.seconds, 3)}


def verify_run(
    state: Mapping[str, Any],
    deployment: DeploymentSettings,
    tasks: Tasks,
    worker: FunctionSize,
    remaining_seconds: float,
    usage: Usage,
) -> tuple[dict[str, Any], Verdict]:
    """Check a share of the segments; return the next state and the result so far.

    Args:
        state: The state.
        deployment: The runs and tables of the deployment.
        tasks: The kinds of job.
        worker: The size of the function, for the cost.
        remaining_seconds: The seconds until the function's deadline.
        usage: Counts everything that is read, even if this function raises.

    Raises:
        KeysMissing: All segments were checked, and keys were missing.
        SegmentsTooLarge: There was no time to read a segment to its end.
    """
    began = time.monotonic()
    journal, plan = deployment.runs.open_run(state["run"])
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
