"""State VerifyRun: the sampled check of a finished run, over as many invocations as it needs."""

import random
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, replace
from threading import Event, Timer
from typing import Any

from keyhop.dynamodb.usage import Usage
from keyhop.errors import KeysMissing, SegmentsTooLarge
from keyhop.jobs.costs import Worker, check_cost, with_check
from keyhop.jobs.journal import Journal
from keyhop.jobs.layout import MOST_THREADS
from keyhop.jobs.model import Record, RunPlan
from keyhop.jobs.runs import Deployment
from keyhop.jobs.task import Tasks
from keyhop.jobs.work import begun_task, patience_within, working_seconds
from keyhop.keys.verify import Verdict, verify
from keyhop.scan.rate_limit import Budget
from keyhop.scan.reader import PageReader

VERDICT = "verify.json"


@dataclass(slots=True)
class Check(Record):
    """The check of a run; kept with its files, with examples of keys.

    execution: who began it, which goes on with it over several invocations, as does another that
    resumes it. read_units, seconds, invocations: of all checks of the run so far.
    """

    execution: str
    verdict: Verdict
    read_units: float = 0.0
    seconds: float = 0.0
    invocations: int = 0

    @classmethod
    def stored(cls, journal: Journal, plan: RunPlan, share: float, execution: str) -> "Check":
        """As it stands; one of another share, or after one that came to its end, begins anew."""
        fresh = cls(execution, Verdict.of_none(plan, share))
        found = journal.load(VERDICT)
        if found is None:
            return fresh
        check = cls.from_json(found)
        is_another = check.verdict.drawn != fresh.verdict.drawn
        is_over = check.verdict.is_whole and check.execution != execution
        if is_another or is_over:
            return replace(check, execution=execution, verdict=fresh.verdict)
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
    worker: Worker,
    remaining_seconds: float,
    usage: Usage,
    clock: Callable[[], float] = time.monotonic,
) -> tuple[dict[str, Any], Verdict]:
    """Check a share of the segments; returns the next state, and what was found so far.

    The same segments are drawn whenever it is called again. usage: gets all that is read, also if
    it ends with an error. Raises KeysMissing once all are checked and keys were missing,
    SegmentsTooLarge if none could be read to its end, and what reading can raise.
    """
    began = clock()
    journal, plan = deployment.runs.begun(state["run"])
    connection = deployment.connect(plan.table, MOST_THREADS)
    _, source = begun_task(tasks, plan, connection)
    check = Check.stored(journal, plan, state["verifyShare"], state["execution"])
    units, seconds = check.read_units, check.seconds
    check.invocations += 1
    budget = Budget(state["maxReadRate"])
    if state["readUnitsLimit"] is not None:
        by_this_start = units - state["checkUnitsBefore"]
        budget.allow_more(state["readUnitsLimit"] - state["readUnitsBefore"] - by_this_start)
    patience = patience_within(remaining_seconds)
    reader = PageReader(connection, source, budget, patience=patience, usage=usage)

    def keep(*_: int) -> None:
        check.read_units = units + usage.read_units
        check.seconds = seconds + clock() - began
        journal.keep(VERDICT, {**check.to_json(), "seconds": round(check.seconds, 3)})

    verdict, before = check.verdict, check.verdict.segments
    try:
        with _over_after(working_seconds(remaining_seconds) - (clock() - began)) as over:
            # The same segments in each invocation, and others in another check.
            chance = random.Random(f"{plan.id} {check.execution}")
            verify(journal, plan, reader, verdict.share, MOST_THREADS, chance, keep, verdict, over)
    finally:
        keep()
    if not verdict.is_whole and verdict.segments == before:
        raise SegmentsTooLarge(
            f"The check read for {clock() - began:.0f} seconds and came to the end of no segment."
        )
    if not verdict.is_whole:
        return {**state, "next": "verify"}, verdict
    cost = check_cost(worker, check.read_units, check.seconds, check.invocations)
    result = with_check(state["result"], check.summary(), cost)
    manifest = journal.manifest()
    if manifest is not None:
        journal.write_summary(with_check(manifest, check.summary(), cost))
    if verdict.missing:
        raise KeysMissing(
            f"The check of {verdict.share:.1%} of the hash space found {verdict.missing:,} keys "
            f"that the run did not report; examples are in {journal.store.url(VERDICT)}.",
            verdict.missing,
        )
    return {**state, "next": "end", "result": result}, verdict


@contextmanager
def _over_after(seconds: float) -> Iterator[Event]:
    over = Event()
    timer = Timer(seconds, over.set)
    timer.daemon = True
    timer.start()
    try:
        yield over
    finally:
        timer.cancel()
