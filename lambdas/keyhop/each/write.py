"""The effects that write to the table itself: put, update, delete, and the undo of a put."""

from abc import abstractmethod
from collections.abc import Callable, Sequence
from functools import cache
from typing import Any, TypeVar

from keyhop.dynamodb.rate_limit import Budget
from keyhop.dynamodb.requester import Stopped, is_of_the_item, is_over
from keyhop.dynamodb.units import MOST_KEYS_AT_ONCE
from keyhop.dynamodb.values import Item, canonical, same_item
from keyhop.each.effect import Batch, Effect, Work
from keyhop.each.expression import Update
from keyhop.each.outcomes import (
    CHANGED,
    DELETED,
    ERROR,
    FAILED,
    GONE,
    OUTCOME,
    PUT,
    UPDATED,
    Row,
    done,
)
from keyhop.each.protocol import FOUND, Answer, Call, Rules
from keyhop.each.template import NotRendered, Template, Variables
from keyhop.each.writer import Writer
from keyhop.errors import BudgetSpent, GaveUp, KeyhopError
from keyhop.jobs.task import TaskOptions

T = TypeVar("T")
MOST_CALLS = 100
"""The maximum number of calls for one row; only constant writes to its collection need more."""

MAY_BE_A_USERS = "It was there already when the row was worked again, with the same content."


def writing(effect: TaskOptions, work: Work, budget: Budget | None = None) -> Effect:
    """Return the effect for a run's options. Raise CannotStart if the table does not permit it.

    budget: of write units.
    """
    space = work.source.space
    (key,) = space.partition
    variables = Variables(key, effect.get("id", work.id), effect.get("started", work.started))
    writer = Writer(work, budget or Budget())
    kind = effect["kind"]
    if kind in ("put", "undo"):
        types = {} if space.sort is None else {space.sort.name: space.sort.type}
        template = Template.of_item(effect["item"], space, types, variables)
        work.check_place(template.constants)
        if kind == "undo":
            return UndoEffect(writer, work, template, variables)
        rules = Rules(effect["guard"], effect["overwrite"], variables.tells)
        return PutEffect(writer, work, template, variables, rules)
    template = Template.of_key(effect["item"], space, variables)
    work.check_place(template.constants)
    if kind == "delete":
        return DeleteEffect(writer, work, template, variables)
    update = Update.of(effect["expression"], effect["values"], effect["names"], space, variables)
    return UpdateEffect(writer, work, template, variables, update)


class _Writes(Effect):
    """The common part of all effects that write to the table."""

    def __init__(
        self, writer: Writer, work: Work, template: Template, variables: Variables
    ) -> None:
        self._writer = writer
        self._stop = work.stop
        self._template = template
        self.item_bytes = float(template.constant_bytes)
        self.first = frozenset(variables.first)

    def limit_writes(self, max_rate: float) -> None:
        self._writer.limit_writes(max_rate)

    def allow_writes(self, units: float | None) -> None:
        self._writer.allow_writes(units)


class _OneByOne(_Writes):
    """Processes rows one after the other, so that a batch may end after any of them."""

    def apply(self, batch: Batch) -> list[Row]:
        was_tried = cache(batch.was_tried)
        rows: list[Row] = []
        for row in batch.rows:
            if is_over(self._stop, batch.over):
                break
            try:
                rows.append(self._worked(row, was_tried))
            except _NotBegun as error:
                if rows:
                    break
                raise error.error from error
        if not rows and self._stop.is_set():
            raise Stopped
        return rows

    def _worked(self, row: Row, was_tried: Callable[[], bool]) -> Row:
        try:
            outcome = self.work(row, was_tried)
            return done(row, PUT, MAY_BE_A_USERS) if outcome == FOUND else done(row, outcome)
        except NotRendered as error:
            return done(row, FAILED, str(error))
        except KeyhopError as error:
            if not is_of_the_item(error):
                raise
            return done(row, FAILED, _without(row, str(error)))

    @abstractmethod
    def work(self, row: Row, was_tried: Callable[[], bool]) -> str:
        """Process one row, and return its outcome, or FOUND."""


class PutEffect(_OneByOne):
    """Puts an item by a course of the protocol."""

    is_marked = True

    def __init__(
        self, writer: Writer, work: Work, template: Template, variables: Variables, rules: Rules
    ) -> None:
        super().__init__(writer, work, template, variables)
        self._rules = rules

    def work(self, row: Row, was_tried: Callable[[], bool]) -> str:
        item = self._template.render(row)
        course = self._rules.course(self._rules)
        is_unsure = False
        witness: Item = {}
        witness_units = 0.0
        call = next(course)
        for _ in range(MOST_CALLS):
            match call:
                case Call.PUT:
                    answer, unsure = _first(lambda: self._writer.put(item))
                    is_unsure = is_unsure or unsure
                case Call.CHECKED_PUT:
                    overwrite = self._rules.overwrite
                    answer = _first(
                        lambda: self._writer.put_checked(
                            item,
                            witness,  # noqa: B023
                            witness_units,  # noqa: B023
                            overwrite,  # noqa: B023
                        )
                    )
                case Call.REPLACE:
                    answer = _first(lambda: self._writer.put_over(item))
                case Call.ASK:
                    answer = Answer.EQUAL if is_unsure or was_tried() else Answer.FREE
                case Call.LOOK:
                    answer, witness, witness_units = self._writer.look(item)
                case Call.READ:
                    answer = self._writer.read(item)
                case Call.TAKE_BACK:
                    written = self._writer.take_back(item)
                    changed = written.refused is not None and written.old is not None
                    answer = Answer.OTHER if changed else Answer.FREE
            try:
                call = course.send(answer)
            except StopIteration as end:
                return str(end.value)
        raise GaveUp("An item collection was written to all the time while one was put into it.")


class UpdateEffect(_OneByOne):
    """Updates one named item, if it exists."""

    def __init__(
        self, writer: Writer, work: Work, template: Template, variables: Variables, update: Update
    ) -> None:
        super().__init__(writer, work, template, variables)
        self._update = update

    def work(self, row: Row, was_tried: Callable[[], bool]) -> str:
        key, values = self._template.render(row), self._update.values(row)
        update = self._update
        written = _first(lambda: self._writer.update(key, update.expression, update.names, values))
        return UPDATED if written.refused is None else GONE


class _Removes(_Writes):
    """Deletes a batch's items that exist. A batch is processed as a whole.

    Before the first delete, the batch's existing items are recorded. So if a batch is processed
    again, a missing item counts as deleted if it existed then, and otherwise as gone.
    """

    at_once = MOST_KEYS_AT_ONCE
    reads_items = False

    def apply(self, batch: Batch) -> list[Row]:
        if self._stop.is_set():
            raise Stopped
        if batch.over.is_set():
            return []
        rendered = [self._rendered(row) for row in batch.rows]
        items = [item for item in rendered if not isinstance(item, str)]
        existing = {self._name(item): item for item in self._read(items)}
        verdicts = "".join(
            "-" if isinstance(item, str) else self.judged(item, existing.get(self._name(item)))
            for item in rendered
        )
        before = batch.noted(verdicts)
        rows = []
        for row, item, now, then in zip(
            batch.rows, rendered, verdicts, before or verdicts, strict=True
        ):
            plain_row = {name: value for name, value in row.items() if name not in (OUTCOME, ERROR)}
            if isinstance(item, str):
                rows.append(done(plain_row, CHANGED if item == MAY_BE_A_USERS else FAILED, item))
            else:
                if_missing = DELETED if before is not None and then == "y" else GONE
                rows.append(done(plain_row, self._removed(item, now, if_missing)))
        return rows

    def judged(self, item: Item, existing: Item | None) -> str:
        """Return "y" to delete the existing item, "n" to keep it, or "-" if there is none."""
        return "-" if existing is None else "y"

    @abstractmethod
    def remove(self, item: Item) -> tuple[bool, bool]:
        """Delete an item; return whether it was deleted, and if not, whether it still exists."""

    def _removed(self, item: Item, now: str, if_missing: str) -> str:
        if now != "y":
            return if_missing if now == "-" else CHANGED
        was_deleted, is_there = self.remove(item)
        if was_deleted:
            return DELETED
        return CHANGED if is_there else if_missing

    def _read(self, items: Sequence[Item]) -> list[Item]:
        if not items:
            return []
        return self._writer.read_many(
            [self._writer.key_of(item) for item in items], self.reads_items
        )

    def _rendered(self, row: Row) -> Item | str:
        """Return the item for a row, or the reason why there is none."""
        try:
            return self._template.render(row)
        except NotRendered as error:
            return str(error)

    def _name(self, item: Item) -> tuple[Any, ...]:
        return tuple(canonical(value) for value in self._writer.key_of(item).values())


class DeleteEffect(_Removes):
    """Deletes one named item, if it exists."""

    def remove(self, item: Item) -> tuple[bool, bool]:
        written = self._writer.delete(item)
        return written.refused is None or written.unsure, False


class UndoEffect(_Removes):
    """Deletes what another run has put, if no attribute was changed since."""

    reads_items = True

    def wants(self, row: Row) -> bool:
        return bool(row[OUTCOME]["S"] == PUT)

    def judged(self, item: Item, existing: Item | None) -> str:
        if existing is None:
            return "-"
        return "y" if same_item(item, existing) else "n"

    def remove(self, item: Item) -> tuple[bool, bool]:
        written = self._writer.take_back(item)
        if written.refused is None:
            return True, False
        return written.unsure and written.old is None, written.old is not None

    def _rendered(self, row: Row) -> Item | str:
        return MAY_BE_A_USERS if ERROR in row else super()._rendered(row)


class _NotBegun(Exception):
    """The budget did not allow the first write of a row."""

    def __init__(self, error: BudgetSpent) -> None:
        super().__init__(str(error))
        self.error = error


def _first(write: Callable[[], T]) -> T:
    """Run the first write of a row, before which the row has changed nothing."""
    try:
        return write()
    except BudgetSpent as error:
        raise _NotBegun(error) from error


def _without(row: Row, text: str) -> str:
    """Return a message of the service, or if it contains a value of the row, a general message."""
    for value in row.values():
        for content in value.values():
            if isinstance(content, str) and content and content in text:
                return "DynamoDB did not accept the item."
    return text
