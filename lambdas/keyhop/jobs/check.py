"""State VerifyRun: the sampled check of a finished run, over as many invocations as it needs."""

import json
import random
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from threading import Event, Timer
from typing import Any

from keyhop.dynamodb.tables import describe
from keyhop.dynamodb.usage import Tally
from keyhop.errors import KeysMissing, SegmentsTooLarge
from keyhop.jobs.costs import Worker, check_cost, with_check
from keyhop.jobs.layout import MOST_WORKERS
from keyhop.jobs.model import RunPlan
from keyhop.jobs.runs import Runs, dynamodb_for, load
from keyhop.jobs.work import LONGEST_PATIENCE_SECONDS, check_same_table, working_seconds
from keyhop.keys.verify import Verdict, verify
from keyhop.scan.rate_limit import Budget
from keyhop.scan.reader import PageReader
from keyhop.storage.s3 import Bucket

VERDICT = "verify.json"


@dataclass(slots=True)
class Check:
    """The check of a run; kept in S3, with examples of keys.

    execution: who began it, which goes on with it over several invocations, as does another that
    resumes it. read_units, seconds, invocations: of all checks of the run so far.
    """

    execution: str
    verdict: Verdict
    read_units: float = 0.0
    seconds: float = 0.0
    invocations: int = 0

    @classmethod
    def stored(cls, store: Bucket, plan: RunPlan, share: float, execution: str) -> "Check":
        """As it stands; one of another share, or after one that came to its end, begins anew."""
        fresh = cls(execution, Verdict.of_none(plan, share))
        found = load(store, VERDICT)
        if found is None:
            return fresh
        spent = (found["read_units"], found["seconds"], found["invocations"])
        verdict = Verdict.from_json(found["verdict"])
        is_another = verdict.drawn != fresh.verdict.drawn
        is_over = verdict.is_whole and found["execution"] != execution
        if is_another or is_over:
            return cls(execution, fresh.verdict, *spent)
        return cls(found["execution"], verdict, *spent)

    def keep(self, store: Bucket) -> None:
        """Write it down."""
        state = {
            "execution": self.execution,
            "read_units": self.read_units,
            "seconds": round(self.seconds, 3),
            "invocations": self.invocations,
            "verdict": self.verdict.to_json(),
        }
        store.replace(VERDICT, json.dumps(state, ensure_ascii=False).encode())

    def told(self) -> dict[str, Any]:
        """For the execution's output and the manifest: counts, and no keys."""
        counts = self.verdict.to_json()
        counts.pop("examples")
        return {**counts, "read_units": self.read_units, "seconds": round(self.seconds, 3)}


def verify_run(
    state: Mapping[str, Any],
    runs: Runs,
    tables: list[str],
    worker: Worker,
    remaining_seconds: float,
    tally: Tally,
    clock: Callable[[], float] = time.monotonic,
) -> tuple[dict[str, Any], Verdict]:
    """Check a share of the segments; returns the next state, and what was found so far.

    The same segments are drawn whenever it is called again. tally: gets all that is read, also if
    it ends with an error. Raises KeysMissing once all are checked and keys were missing,
    SegmentsTooLarge if none could be read to its end, and what reading can raise.
    """
    began = clock()
    log, plan = runs.begun(state["run"])
    client, endpoint = dynamodb_for(plan.table, tables, MOST_WORKERS)
    target = describe(client, endpoint, plan.table, plan.index)
    check_same_table(plan, target)
    store = runs.store(plan.id)
    check = Check.stored(store, plan, state["verifyShare"], state["execution"])
    units, seconds = check.read_units, check.seconds
    check.invocations += 1
    budget = Budget(state["maxReadRate"])
    if state["readUnitsLimit"] is not None:
        by_this_start = units - state["checkUnitsBefore"]
        budget.allow_more(state["readUnitsLimit"] - state["readUnitsBefore"] - by_this_start)
    patience = min(LONGEST_PATIENCE_SECONDS, 0.7 * remaining_seconds)
    reader = PageReader(client, target, budget, endpoint=endpoint, patience=patience)
    reader.tally = tally

    def keep(*_: int) -> None:
        check.read_units = units + tally.units
        check.seconds = seconds + clock() - began
        check.keep(store)

    verdict, before = check.verdict, check.verdict.segments
    try:
        with _over_after(working_seconds(remaining_seconds) - (clock() - began)) as over:
            # The same segments in each invocation, and others in another check.
            chance = random.Random(f"{plan.id} {check.execution}")
            verify(log, plan, reader, verdict.share, MOST_WORKERS, chance, keep, verdict, over)
    finally:
        keep()
    if not verdict.is_whole and verdict.segments == before:
        raise SegmentsTooLarge(
            f"The check read for {clock() - began:.0f} seconds and came to the end of no segment."
        )
    if not verdict.is_whole:
        return {**state, "next": "verify"}, verdict
    cost = check_cost(worker, check.read_units, check.seconds, check.invocations)
    result = with_check(state["result"], check.told(), cost)
    manifest = log.manifest()
    if manifest is not None:
        log.write_summary(with_check(manifest, check.told(), cost))
    if verdict.missing:
        raise KeysMissing(
            f"The check of {verdict.share:.1%} of the hash space found {verdict.missing:,} keys "
            f"that the run did not report; examples are in {store.url(VERDICT)}.",
            verdict.missing,
        )
    return {**state, "next": "end", "result": result}, verdict


def units_checked(store: Bucket) -> float:
    """Read units of all checks of a run so far."""
    found = load(store, VERDICT)
    return 0.0 if found is None else float(found["read_units"])


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
