"""State VerifyRun: the sampled check of a finished run, over as many invocations as it needs."""

import json
import random
import time
from collections.abc import Callable, Mapping
from typing import Any

from keyhop.enumerate.budget import Budget
from keyhop.enumerate.fleet.runs import Runs, dynamodb_for, load
from keyhop.enumerate.fleet.working import LONGEST_PATIENCE_SECONDS, check_same_table
from keyhop.enumerate.pages import PageReader
from keyhop.enumerate.plan import MOST_WORKERS
from keyhop.enumerate.table import describe
from keyhop.enumerate.tally import Tally
from keyhop.enumerate.verify import Verdict, verify
from keyhop.errors import KeysMissing

VERDICT = "verify.json"
SHARE_OF_TIME = 0.5
"""A batch of segments is not broken off, so none is begun after this share of the time."""


def verify_run(
    state: Mapping[str, Any],
    runs: Runs,
    tables: list[str],
    remaining_seconds: float,
    clock: Callable[[], float] = time.monotonic,
) -> tuple[dict[str, Any], Verdict, Tally]:
    """Check a share of the segments; returns the next state, what was found, and what was read.

    The same segments are drawn whenever it is called again. Examples of keys go to S3 only. Raises
    KeysMissing once all are checked and keys were missing, and what reading can raise.
    """
    over_at = clock() + SHARE_OF_TIME * remaining_seconds
    log, plan = runs.begun(state["run"])
    client, endpoint = dynamodb_for(plan.table, tables, MOST_WORKERS)
    target = describe(client, endpoint, plan.table, plan.index)
    check_same_table(plan, target)
    store = runs.store(plan.id)
    found = load(store, VERDICT) or {}
    share = state["verifyShare"]
    budget = Budget(state["maxReadRate"])
    read_before = found.get("read_units", 0.0)
    if state["readUnitsLimit"] is not None:
        budget.allow_more(state["readUnitsLimit"] - state["readUnitsBefore"] - read_before)
    patience = min(LONGEST_PATIENCE_SECONDS, 0.7 * remaining_seconds)
    reader = PageReader(client, target, budget, endpoint=endpoint, patience=patience)
    verdict = verify(
        log,
        plan,
        reader,
        share,
        MOST_WORKERS,
        random.Random(f"{plan.id} {share}"),
        verdict=Verdict.from_json(found["verdict"]) if found.get("share") == share else None,
        is_over=lambda: clock() >= over_at,
    )
    told = {
        "share": share,
        "read_units": read_before + reader.tally.units,
        "verdict": verdict.to_json(),
    }
    store.replace(VERDICT, json.dumps(told, ensure_ascii=False).encode())
    if verdict.is_whole and verdict.missing:
        raise KeysMissing(
            f"The check of {verdict.share:.1%} of the hash space found {verdict.missing:,} keys "
            f"that the run did not report; examples are in {store.url(VERDICT)}."
        )
    counts = {name: value for name, value in verdict.to_json().items() if name != "examples"}
    result = {**state["result"], "verify": {**counts, "read_units": told["read_units"]}}
    following = "end" if verdict.is_whole else "verify"
    return {**state, "next": following, "result": result}, verdict, reader.tally
