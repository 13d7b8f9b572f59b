"""The effects that write to the table itself: put, update, delete, and the undo of a put.

No other module of `each` writes to a user's table. All reads are strongly consistent.
"""

import uuid
from abc import abstractmethod
from collections.abc import Callable, Mapping, Sequence
from functools import cache
from typing import Any, TypeVar

from keyhop.dynamodb.rate_limit import Budget
from keyhop.dynamodb.refusals import CHECK_FAILED, cancellations
from keyhop.dynamodb.requester import ItemCalls, Written, is_of_the_item, is_over, units_of
from keyhop.dynamodb.units import MOST_KEYS_AT_ONCE, write_units
from keyhop.dynamodb.values import (
    Item,
    Key,
    TypedValue,
    canonical,
    has_values,
    same_item,
    same_value,
    size_of,
)
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
from keyhop.errors import BudgetSpent, GaveUp, KeyhopError, Stopped
from keyhop.jobs.task import TaskOptions

T = TypeVar("T")
MOST_CALLS = 100
"""The maximum number of calls for one row; only constant writes to its collection need more."""

MAY_BE_A_USERS = "It was there already when the row was worked again, with the same content."
_PARTITION = "#kh_p"
_ABSENT = f"attribute_not_exists({_PARTITION})"
_THERE = f"attribute_exists({_PARTITION})"
WRITE_UNITS_OF_A_READ_UNIT = 4.0
"""The maximum write units for an item that takes one strongly consistent read unit (4 KB), without
a transaction.
"""

LOOK_ON_ITEMS = 3
"""The page size of a search after its first item, as our item and a sentinel may precede a witness.
"""


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


class Writer(ItemCalls):
    """Reads and writes items of one table, for any number of threads.

    A started row is finished even if the run should stop, unless it would have to wait.
    """

    def __init__(self, work: Work, budget: Budget) -> None:
        super().__init__(
            work.connection,
            work.source.name,
            writes=budget,
            patience=work.patience,
            stop=work.stop,
            usage=work.usage,
        )
        space = work.source.space
        (self._partition,) = space.names
        self._sort = None if space.sort is None else space.sort.name
        self._sentinel = work.sentinel
        self._names = {_PARTITION: self._partition}
        self._seen_units = 1.0
        self._small_witness_units = WRITE_UNITS_OF_A_READ_UNIT
        keys = [self._partition, *([self._sort] if self._sort else [])]
        names = dict.fromkeys([*keys, *(work.sentinel or ())])
        self._shown = {f"#k{number}": name for number, name in enumerate(names)}
        self._key_names = keys

    def pause(self, seconds: float) -> None:
        """Wait before a call, but only if the wait is not zero; see the class."""
        if seconds > 0:
            super().pause(seconds)

    def key_of(self, item: Item) -> dict[str, TypedValue]:
        return {name: item[name] for name in self._key_names}

    def put(self, item: Item) -> tuple[Answer, bool]:
        """Put an item if no item has its key.

        Return the answer, and whether an existing item may have been put by this call.
        """
        written = self._one("put_item", size_of(item), Item=item, ConditionExpression=_ABSENT)
        if written.refused is None:
            return Answer.FREE, False
        # Deleted between refusal and answer, or a local database does not return the item.
        return self._found(item, written.old) or Answer.OTHER, written.unsure

    def put_over(self, item: Item) -> Answer:
        """Put an item if an item with its key exists."""
        written = self._one("put_item", size_of(item), Item=item, ConditionExpression=_THERE)
        return Answer.FREE if written.refused is None else Answer.LOST

    def put_checked(
        self, item: Item, witness: Key, witness_units: float, overwrite: bool
    ) -> Answer:
        """Put an item in a transaction that checks that the witness exists.

        Args:
            item: The item to put.
            witness: The key of another item of the collection.
            witness_units: The maximum write units of checking the witness, as `look` returns them.
            overwrite: Whether to replace an existing item with the same key.
        """
        check: dict[str, Any] = {
            "TableName": self._table,
            "Key": witness,
            "ConditionExpression": _THERE,
            "ExpressionAttributeNames": self._names,
        }
        put: dict[str, Any] = {"TableName": self._table, "Item": item}
        if not overwrite:
            put |= {
                "ConditionExpression": _ABSENT,
                "ExpressionAttributeNames": self._names,
                "ReturnValuesOnConditionCheckFailure": "ALL_OLD",
            }
        is_small = witness_units <= WRITE_UNITS_OF_A_READ_UNIT
        checked = self._small_witness_units if is_small else witness_units
        item_units = write_units(size_of(item))
        units = 2 * (item_units + checked)
        written = self._write(
            "transact_write_items",
            units,
            units,
            TransactItems=[{"ConditionCheck": check}, {"Put": put}],
            ClientRequestToken=uuid.uuid4().hex,  # boto3 repeats the request with the same token
        )
        if written.refused is None:
            if is_small:  # the next witness is probably as large
                measured = max(1.0, written.units / 2 - item_units)
                self._small_witness_units = min(measured, WRITE_UNITS_OF_A_READ_UNIT)
            return Answer.FREE
        if cancellations(written.refused)[1:] != [CHECK_FAILED]:
            return Answer.LOST
        reasons = written.refused.response["CancellationReasons"]
        return self._found(item, reasons[1].get("Item")) or Answer.OTHER

    def take_back(self, item: Item) -> Written:
        """Delete an item if each attribute is as it was put.

        Conditions cannot exclude additional attributes, so an attribute that a user has added is
        deleted too.
        """
        attributes = [name for name in item if name not in self._key_names]
        names = {f"#a{number}": name for number, name in enumerate(attributes)}
        values = {f":a{number}": item[name] for number, name in enumerate(attributes)}
        tests = [f"#a{number} = :a{number}" for number in range(len(attributes))]
        return self._one(
            "delete_item",
            size_of(item),
            Key=self.key_of(item),
            ConditionExpression=" AND ".join([_THERE, *tests]),
            names=names,
            **({"ExpressionAttributeValues": values} if values else {}),
        )

    def delete(self, key: Key) -> Written:
        """Delete an item if it exists."""
        return self._one("delete_item", 0, Key=key, ConditionExpression=_THERE)

    def update(
        self, key: Key, expression: str, names: Mapping[str, str], values: Mapping[str, TypedValue]
    ) -> Written:
        """Update an item if it exists."""
        return self._one(
            "update_item",
            0,
            Key=key,
            UpdateExpression=expression,
            ConditionExpression=_THERE,
            names=names,
            **({"ExpressionAttributeValues": values} if values else {}),
        )

    def look(self, item: Item) -> tuple[Answer, Key, float]:
        """Look for a witness: an item with another key that is not a sentinel.

        The search starts at the end, because sentinels, and most items that `each` puts, sort
        first.

        Returns:
            The answer, the witness's key, and the maximum write units of checking it
            without a transaction, estimated from the read units.
        """
        assert self._sort is not None
        parameters: dict[str, Any] = {
            "KeyConditionExpression": "#k0 = :p",
            "ExpressionAttributeValues": {":p": item[self._partition]},
            "ProjectionExpression": ", ".join(self._shown),
            "ExpressionAttributeNames": self._shown,
            "Select": "SPECIFIC_ATTRIBUTES",  # required by the IAM policy
            "ScanIndexForward": False,
            "Limit": 1,
        }
        result = Answer.FREE
        while True:
            answer = self._read("query", **parameters)
            for candidate in answer["Items"]:
                if same_value(candidate[self._sort], item[self._sort]):
                    result = Answer.ALONE
                elif not self._is_sentinel(candidate):
                    units = WRITE_UNITS_OF_A_READ_UNIT * max(1.0, units_of(answer))
                    return Answer.WITNESS, self.key_of(candidate), units
            if "LastEvaluatedKey" not in answer:
                return result, {}, 0.0
            parameters["ExclusiveStartKey"] = answer["LastEvaluatedKey"]
            parameters["Limit"] = LOOK_ON_ITEMS

    def read(self, item: Item) -> Answer:
        """Read the item with this key, and compare it."""
        answer = self._read("get_item", Key=self.key_of(item))
        return self._found(item, answer.get("Item")) or Answer.FREE

    def read_many(self, keys: Sequence[Key], full: bool) -> list[Item]:
        """Return the items that exist; only their keys, unless `full` is set."""
        names = {f"#k{number}": name for number, name in enumerate(self._key_names)}
        projection = {"ProjectionExpression": ", ".join(names), "ExpressionAttributeNames": names}
        return self._read_batch(keys, {} if full else projection)

    def _one(
        self, operation: str, item_bytes: float, names: Mapping[str, str] = {}, **parameters: Any
    ) -> Written:
        """Write one item. item_bytes: 0 to assume the units of the last write."""
        written = self._write(
            operation,
            write_units(item_bytes) if item_bytes else self._seen_units,
            TableName=self._table,
            ExpressionAttributeNames={**self._names, **names},
            ReturnValuesOnConditionCheckFailure="ALL_OLD",
            **parameters,
        )
        if written.refused is None:
            self._seen_units = written.units
        return written

    def _is_sentinel(self, item: Item) -> bool:
        return self._sentinel is not None and has_values(item, self._sentinel)

    def _found(self, item: Item, existing: Item | None) -> Answer | None:
        if existing is None:
            return None
        return Answer.EQUAL if same_item(item, existing) else Answer.OTHER


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
        raise GaveUp(
            "An item collection was written to continuously while an item was put into it."
        )


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
