"""The task `each`: an operation on each key of a list, once.

The list is a finished run of the task `keys`, or for an undo, of this task (jobs/pages.py). The
operation is an effect (effect.py). The outcome of each key is a row of the result, which is counted
with its commit, so each key counts once, even if it is processed twice after a crash.
"""

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from threading import Event
from typing import Any

from keyhop.clock import now
from keyhop.dynamodb.client import Connection
from keyhop.dynamodb.rate_limit import Budget
from keyhop.dynamodb.schema import KeySpace
from keyhop.dynamodb.tables import Source, Table
from keyhop.dynamodb.usage import Usage
from keyhop.dynamodb.values import Key, from_json, to_json
from keyhop.each.attempts import Attempts
from keyhop.each.effect import Batch, Effect, Work
from keyhop.each.outcomes import ERROR, LIMITS, OUTCOME, per_key
from keyhop.each.request import Where
from keyhop.errors import CannotStart
from keyhop.jobs.formats import FIRST
from keyhop.jobs.journal import Journal, RunPlan
from keyhop.jobs.layout import Layout
from keyhop.jobs.pages import ListedPages, ListInCells, Pages
from keyhop.jobs.request import Request
from keyhop.jobs.task import Ended, Summary, Task, TaskOptions, TaskPlan
from keyhop.key_index.index import SentinelsOf
from keyhop.scan.page_size import Ledger
from keyhop.scan.reader import PageReader

ROWS_PER_WORKER = 20_000
"""A fleet gets a worker for each such number of rows: half a minute of writes."""

FOLDED = "logical"
"""The folder of the result files of a list of logical keys (keys/task.py)."""

WRITES = ("put", "update", "delete")
"""The kinds of effects that write to the table itself."""


MakeEffect = Callable[[TaskOptions, Work], Effect]
"""Returns the effect for a run's options; raises CannotStart if the table does not permit it."""


ListOf = Callable[[Request, Sequence[str]], Request]
Permit = Callable[[str, TaskOptions, KeySpace], None]


def check_rows(options: TaskOptions, space: KeySpace) -> None:
    """Check that a table's keys can have the rows and the condition of a run, before listing keys.

    Raises CannotStart, InvalidInput.
    """
    names = {OUTCOME, ERROR, FIRST} & {*space.names}
    if names:
        raise CannotStart(
            f"The partition key is called {names.pop()!r}, which is also the name of an attribute "
            "in a run's files."
        )
    Where.from_json(options.get("where")).check(space)


def effect_of(options: TaskOptions, work: Work) -> Effect:
    """Return the effect for a run's options. Raise CannotStart if the table does not permit it."""
    effect = options["effect"]
    if effect["kind"] in ("invoke", "queue", "machine"):
        from keyhop.each.deliver import delivery  # with boto3's clients of those services

        return delivery(effect, work)
    from keyhop.each.write import writing

    return writing(effect, work, Budget(options["max_write_rate"], options["max_write_units"]))


def checked_effect(
    connection: Connection,
    table: Table,
    options: TaskOptions,
    sentinels_of: SentinelsOf,
    effect_of: MakeEffect = effect_of,
) -> Effect:
    """Return the effect of a run's options, checked before keys are listed for it.

    Raises:
        CannotStart: The effect is not possible on this table.
    """
    source = table.source()
    check_rows(options, source.space)
    sentinels = sentinels_of(table)
    item = None if sentinels is None else sentinels.item
    return effect_of(options, Work(connection, source, "", now(), Usage(), Event(), sentinel=item))


class EachTask(Task):
    """The task `each`.

    options: `effect`, as effect_of takes it; `keys`, the run that listed them; `where`, a condition
    on keys (request.Where); `max_write_rate`. journal_of: returns a run's files by its name.
    sentinels_of: returns what identifies the key index's items in a table. list_of: returns the
    request for a list of keys, with these attributes of first items. permit: raises CannotStart for
    an effect that is not permitted on a table.
    """

    visits = True
    outputs: Mapping[str, str] = {"counts": "outcomes", "write_units": "writeUnits"}

    def __init__(
        self,
        connection: Connection,
        options: TaskOptions,
        journal_of: Callable[[str], Journal],
        effect_of: MakeEffect = effect_of,
        sentinels_of: SentinelsOf = lambda table: None,
        list_of: ListOf | None = None,
        permit: Permit = lambda table, effect, space: None,
    ) -> None:
        super().__init__()
        self.max_write_rate = options.get("max_write_rate")
        self._connection = connection
        self._options = options
        self._journal_of = journal_of
        self._effect_of = effect_of
        self._sentinels_of = sentinels_of
        self._list_of = list_of
        self._permit = permit

    def before(self, table: Table, request: Request) -> Request | None:
        """Task.before: check the effect before keys are listed for it."""
        space = table.source().space
        effect = self._options["effect"]
        if not effect:
            raise CannotStart("The run to continue was listing keys: give the action as well.")
        self._permit(request.table, effect, space)
        first: Sequence[str] = ()
        if effect["kind"] == "undo":
            check_rows(self._options, space)
        else:
            checked = checked_effect(
                self._connection, table, self._options, self._sentinels_of, self._effect_of
            )
            first = sorted(checked.first)
        if self._options["keys"] is not None or self._list_of is None:
            return None
        return self._list_of(request, first)

    def after(self, request: Request, run: str) -> Request:
        """Task.after: from now on only the effect reads from the table."""
        options = {**request.options, "keys": run}
        return replace(
            request, options=options, method="auto", max_read_rate=None, max_read_units=None
        )

    def units_per_key(self, source: Source) -> tuple[float, float]:
        """Task.units_per_key; the list of an undo is the run that has put the items."""
        effect = self._options["effect"]
        if effect["kind"] == "undo":
            effect = self._effect_with(self._listing().plan, source)
        item_bytes = self._made(effect, source).item_bytes
        return per_key(effect, item_bytes, source.mean_item_bytes or 0.0)

    def undo(self, plan: RunPlan) -> Mapping[str, Any] | None:
        effect = plan.options["effect"]
        is_undone = effect["kind"] == "put" and not effect["overwrite"]
        return {"table": plan.table, "undo": plan.id} if is_undone else None

    def plan(self, table: Table, request: Request) -> TaskPlan:
        """Task.plan: the run reads the list, which must be a list of this table's keys."""
        source = table.source()
        listing = self._listing()
        listed = listing.plan
        if (listed.identity, listed.index) != (source.identity, None):
            raise CannotStart(
                f"The run {self._list!r} lists keys of {listed.title} ({listed.identity}), and not "
                f"those of table {source.title} ({source.identity})."
            )
        cells = max(1, listing.cells)
        groups = min(cells, max(1, listing.groups))
        at_once = min(groups, max(1, round(listing.rows / ROWS_PER_WORKER)))
        layout = Layout(cells, 1, at_once, groups)
        check_rows(self._options, source.space)
        options = {**self._options, "effect": self._effect_with(listed, source)}
        if (sentinels := self._sentinels_of(table)) is not None:
            options["sentinel"] = to_json(sentinels.item)
        reason = f"the keys of run {self._list}"
        return TaskPlan(source, "listed", reason, options, layout=layout, rows=listing.rows)

    def settings(self) -> Mapping[str, Any]:
        return {"keys": self._list, "effect": self._options["effect"]}

    def pages(
        self, journal: Journal, plan: RunPlan, reader: PageReader, ledger: Ledger | None = None
    ) -> Pages:
        options = {**plan.options, **{name: self._options.get(name) for name in LIMITS}}
        work = Work(
            self._connection,
            reader.source,
            plan.id,
            plan.started,
            reader.usage,
            reader.stop,
            reader.patience,
            from_json(options["sentinel"]) if "sentinel" in options else None,
        )
        self._effect = effect = self._effect_of(options, work)
        where = Where.from_json(options.get("where"))
        attempts = Attempts(journal.store)

        def process(
            cell: int, number: int, rows: Sequence[Key], over: Event
        ) -> tuple[Sequence[Key], Mapping[str, int]]:
            if effect.is_marked:
                attempts.enter(cell, number)
            results = effect.apply(
                Batch(
                    f"{plan.id}.{cell}.{number}",
                    rows,
                    over,
                    lambda: attempts.was_tried(cell),
                    lambda text: attempts.kept_text(cell, number, text),
                )
            )
            if effect.is_marked and not results:
                attempts.leave(cell, number)
            return results, Counter(row[OUTCOME]["S"] for row in results)

        return ListedPages(
            self._listing(),
            effect.at_once,
            process,
            reader.usage,
            reader.stop,
            reader.in_flight,
            began=attempts.begin_slice,
            wanted=lambda row, space: effect.wants(row) and where.holds(row, space),
        )

    def finish(self, ended: Ended) -> Summary:
        """Task.finish: requests are included in the units."""
        return {name: value for name, value in ended.summary.items() if name != "index_walk"}

    def limit_writes(self, max_rate: float) -> None:
        self._effect.limit_writes(max_rate)

    def allow_writes(self, units: float | None) -> None:
        self._effect.allow_writes(units)

    def _made(self, effect: TaskOptions, source: Source) -> Effect:
        """Return an effect that is not applied."""
        work = Work(self._connection, source, "", now(), Usage(), Event())
        return self._effect_of({**self._options, "effect": effect}, work)

    def _effect_with(self, listed: RunPlan, source: Source) -> TaskOptions:
        """Return the effect; for an undo, together with the effect of the run to undo."""
        effect = dict(self._options["effect"])
        name = f"The run {self._list!r}"
        if effect["kind"] != "undo":
            if listed.task == "each":
                raise CannotStart(f"{name} has no list of keys: it used the list of another run.")
            if listed.task == "fold" and effect["kind"] in WRITES:
                raise CannotStart(
                    f"{name} lists logical keys, and ShardedTable decides where their items are: "
                    "pass the keys on (invoke, queue, start-machine), and write with "
                    "ShardedTable there."
                )
            listed_first = listed.options.get("first", ())
            if missing := self._made(effect, source).first.difference(listed_first):
                raise CannotStart(
                    f"{name} does not have the attributes {', '.join(sorted(missing))} of first "
                    "items: name no list, so that the keys are listed with them."
                )
            return effect
        if listed.task != "each" or listed.options["effect"]["kind"] != "put":
            raise CannotStart(f"{name} has put no items, so there is nothing to undo.")
        if listed.options["effect"]["overwrite"]:
            raise CannotStart(
                f"{name} replaced existing items, which are lost: an undo would delete your data."
            )
        return {**listed.options["effect"], **effect, "id": listed.id, "started": listed.started}

    @property
    def _list(self) -> str:
        return str(self._options["keys"])

    def _listing(self) -> ListInCells:
        return ListInCells.of(self._journal_of(self._list), self._list, FOLDED)
