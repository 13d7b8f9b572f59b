"""The task `keys`: every distinct partition key of a table, or of an index, once."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any

from keyhop.dynamodb.client import Connection
from keyhop.dynamodb.schema import KeySpace
from keyhop.dynamodb.tables import Source, Table
from keyhop.dynamodb.values import from_json, to_json
from keyhop.errors import BrokenPromise, CannotStart
from keyhop.jobs.layout import Method
from keyhop.jobs.plan import check_can_be_verified
from keyhop.jobs.request import Request
from keyhop.jobs.task import Ended, Options, ReadingTask, Result, TaskPlan
from keyhop.keys.logical import Fold, check_can_fold, folded

Believe = Callable[[Connection, Table, str], tuple[Source | None, str]]
"""From a table and a method ("auto" or "index") to the index that lists its keys, and why it is
believed; or to None, and why not ("" if there is none)."""

FoldOf = Callable[[Connection, KeySpace, Options, str], Fold]
"""From the key space, what the plan says of folding, and when the run began, to what folds keys.
Reads the metadata, if the fold goes by that; with an empty moment it only checks whether it can."""


def no_index(connection: Connection, table: Table, method: str) -> tuple[Source | None, str]:
    """Where nobody knows of key indexes."""
    if method == "index":
        raise CannotStart("Method index needs a key index, and none is set up here for this table.")
    return None, ""


@dataclass(slots=True)
class KeysTask(ReadingTask):
    """Lists keys. options: `fold`, what is told of logical keys; `place`, which rows count.

    folds: whether the keys are folded when all are read; otherwise whoever takes them does it.
    """

    connection: Connection
    options: Options
    fold_of: FoldOf
    believe: Believe = no_index
    folds: bool = True

    def __post_init__(self) -> None:
        self.examples = {}
        self.outputs = {"logical": "logical"}

    def plan(self, table: Table, request: Request) -> TaskPlan:
        """Task.plan: the key index has a say, unless it is about the table or an index itself."""
        check_can_be_verified(request.index, request)
        source = table.source(request.index)
        if self._fold is not None:
            check_can_fold(source.space)
            self.fold_of(self.connection, source.space, self._fold, "")
        listing, why = None, ""
        by_itself = request.index is not None or request.verify_share is not None
        if request.method in ("auto", "index") and not by_itself and not request.plan_only:
            listing, why = self.believe(self.connection, table, request.method)
        if listing is not None:
            place = {"place": to_json(listing.only or {})}
            return TaskPlan(listing, "index", why, {**self.options, **place})
        method, reason = choose_method(source.space, source.index, request.method)
        if why:
            reason = f"{reason}; not its key index: {why}"
        return TaskPlan(source, method, reason, self.options)

    def view(self, source: Source) -> Source:
        of_layout_2 = self.options.get("sentinel") or {}
        place = self.options.get("place") or of_layout_2.get("place")
        return source if place is None else replace(source, only=from_json(place))

    def settings(self) -> Mapping[str, Any]:
        fold = self._fold or {"separator": None, "metadata": None}
        return {"logical": self._fold is not None, **fold}

    def finish(self, ended: Ended) -> Result:
        """Task.finish: logical keys are folded."""
        plan, totals = ended.plan, ended.totals
        elsewhere = totals.usage.counters["rows_elsewhere"]
        if plan.method == "index" and elsewhere and elsewhere == totals.usage.items:
            raise BrokenPromise(
                f"The key index has {elsewhere:,} rows, but none with the sentinels' sort key: it "
                f"was built with another one (--sentinel, sentinelSortKey)."
            )
        if self._fold is None or not self.folds:
            return Result(ended.summary, totals.parts)
        return self._folded(ended, self._fold)

    def too_slow(self, done: int) -> str:
        return (
            f"There was no time left after {done:,} physical keys were folded, in one place: list "
            f"the keys without logical, or with keyhop keys --logical, which has no deadline."
        )

    def _folded(self, ended: Ended, fold: Options) -> Result:
        plan = ended.plan
        found = folded(
            ended.journal,
            plan,
            ended.totals.parts,
            lambda: self.fold_of(self.connection, plan.space, fold, plan.started),
            ended.check,
        )
        summary = {
            **ended.summary,
            "keys": found.keys,
            "logical": {**fold, "physical_keys": ended.totals.keys, "folded": found.shards},
            "parts": [part.summary() for part in found.parts],
        }
        return Result(summary, found.parts)

    @property
    def _fold(self) -> Options | None:
        return self.options.get("fold")


def choose_method(space: KeySpace, index: str | None, wanted: str) -> tuple[Method, str]:
    """The method for `wanted` (auto, skip or scan), and why; raises CannotStart if it cannot be."""
    if index is not None:
        why = "an index has no promised order among equal keys, so it is read through"
    elif space.sort is None:
        why = "the table has no sort key, so each item is a key of its own"
    else:
        why = ""
    if wanted == "skip" and why:
        raise CannotStart(f"Method skip cannot work here: {why}; use scan or auto.")
    if wanted == "scan":
        return "scan", "asked for"
    if why:
        return "scan", why
    if wanted == "skip":
        return "skip", "asked for"
    return "skip", "the table has a sort key, so the rest of a collection can be hopped over"
