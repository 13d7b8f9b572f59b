"""The input of ForEachKey, with its condition on keys. Pure.

A condition on the partition key selects keys of a list. It saves no reads.
"""

import re
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass
from decimal import Decimal
from typing import Annotated, Any, ClassVar, Self

from keyhop.checks import Check, Must, Truth, number, one_of, text, whole
from keyhop.dynamodb.schema import KeySpace
from keyhop.dynamodb.units import DEFAULT_WRITE_RATE
from keyhop.dynamodb.values import Key, is_number
from keyhop.each.allowed import MACHINE
from keyhop.each.outcomes import DEFAULT_BATCH, GUARDS, MOST_BATCH
from keyhop.each.template import template_json
from keyhop.errors import InvalidInput
from keyhop.jobs.request import A_METHOD, A_RUN, A_TABLE, Request, RunInput

FORMS = "begins_with(TEXT), between(LOW, HIGH) or matches(REGULAR EXPRESSION)"
FORM = re.compile(r"\s*(begins_with|between|matches)\s*\(([\s\S]*)\)\s*")
MOST_PATTERN = 500
"""The maximum length of a regular expression."""

KINDS = ("put", "update", "delete", "invoke", "queue", "start_machine", "undo")
_OBJECT = Must(
    Check(lambda value: isinstance(value, Mapping), {"type": "object"}), "a JSON object", dict
)

_QUEUE = re.compile(r"https?://[^/\s@]+/[0-9]{12}/[\w-]{1,80}(\.fifo)?", re.ASCII)
_TRUE = Must(Check(lambda value: value is True, {"const": True}), "true")


@dataclass(frozen=True, slots=True, kw_only=True)
class EachInput(RunInput):
    """The input of ForEachKey: one of KINDS, and its settings."""

    LIKE: ClassVar[str] = '{"table": "Orders", "put": {"sk": "#feature", "plan": "free"}}'

    table: Annotated[str, A_TABLE, "a table that has `each` in this deployment"]
    put: Annotated[
        dict[str, Any] | None,
        _OBJECT,
        "the item to put into each collection, without its partition key",
    ] = None
    update: Annotated[
        str | None, Must(text(), "an update expression"), "of the item, where it exists"
    ] = None
    delete: Annotated[bool | None, _TRUE, "delete the item, where it exists"] = None
    invoke: Annotated[
        str | None, Must(text(), "the ARN of a function"), "gets the keys in batches"
    ] = None
    queue: Annotated[
        str | None, Must(text(), "the URL of a queue"), "gets a message for each batch of keys"
    ] = None
    start_machine: Annotated[
        str | None,
        Must(text(), "the ARN of a state machine"),
        "an execution is started for each batch of keys",
    ] = None
    undo: Annotated[
        str | None,
        A_RUN,
        "delete what this run has put, where nobody has changed it since",
    ] = None
    item: Annotated[
        dict[str, Any] | None,
        _OBJECT,
        "with update and delete: which item of each collection, by its sort key",
    ] = None
    values: Annotated[
        dict[str, Any] | None, _OBJECT, "with update: the values of :names in the expression"
    ] = None
    names: Annotated[
        dict[str, Any] | None, _OBJECT, "with update: the values of #names in the expression"
    ] = None
    guard: Annotated[
        str | None,
        Must(one_of(*GUARDS), '"none", "look" or "transaction"'),
        "with put: how it is kept from creating a collection; look if left out",
    ] = None
    overwrite: Annotated[
        Truth, "with put: over an item that is there; needs guard transaction, cannot be undone"
    ] = False
    batch: Annotated[
        int | None,
        Must(whole(1, MOST_BATCH), f"a whole number from 1 to {MOST_BATCH:,}", int),
        f"keys in a batch; {DEFAULT_BATCH} if left out",
    ] = None
    where: Annotated[str | None, Must(text(FORM), FORMS), "only keys of which this holds"] = None
    keys: Annotated[
        str | None,
        A_RUN,
        "the keys of this finished run; they are listed first if left out",
    ] = None
    method: Annotated[str, A_METHOD, "how the keys are listed"] = "auto"
    max_write_rate: Annotated[
        float,
        Must(number(1), "a number of write units a second, at least 1", float),
        f"the maximum write units a second, of all workers together; {DEFAULT_WRITE_RATE:g} by "
        "default",
    ] = DEFAULT_WRITE_RATE
    max_write_units: Annotated[
        float | None,
        Must(number(1), "a number of write units, at least 1"),
        "end the run before it writes more than this; no limit by default",
    ] = None

    def _request(self, job_input: Mapping[str, Any]) -> Request:
        """RunInput._request."""
        has_effect = any(getattr(self, kind) is not None for kind in KINDS)
        effect = self._effect() if has_effect else {}
        options: dict[str, Any] = {
            "effect": effect,
            "keys": self.undo or self.keys,
            "max_write_rate": self.max_write_rate,
            "max_write_units": self.max_write_units,
        }
        if self.where is not None:
            options["where"] = Where.parse(self.where).to_json()
        return Request(
            self.table,
            "each",
            options=options,
            wanted={"effect": effect} if self.resume and effect and not self.undo else {},
            method=self.method,
            max_write_units=self.max_write_units,
            format="jsonl",
            job_input=job_input,
            **self._of_every_run(),
        )

    def _effect(self) -> dict[str, Any]:
        """Return the effect on each key as plain JSON: its `kind`, and the settings of it."""
        if self.put is not None:
            guard = self.guard or ("transaction" if self.overwrite else "look")
            item = template_json(self.put)
            return {"kind": "put", "item": item, "guard": guard, "overwrite": self.overwrite}
        if self.update is not None:
            return {
                "kind": "update",
                "expression": self.update,
                "values": template_json(self.values or {}),
                "names": dict(self.names or {}),
                "item": template_json(self.item or {}),
            }
        if self.delete:
            return {"kind": "delete", "item": template_json(self.item or {})}
        if self.undo is not None:
            return {"kind": "undo"}
        targets = {"invoke": self.invoke, "queue": self.queue, "machine": self.start_machine}
        ((kind, target),) = ((kind, value) for kind, value in targets.items() if value is not None)
        return {"kind": kind, "target": target, "batch": self.batch or DEFAULT_BATCH}

    def contradictions(self, called: Callable[[str], str]) -> list[str]:
        """RunInput.contradictions."""
        fields = asdict(self)
        kinds = [kind for kind in KINDS if fields[kind] is not None]
        names = [called(kind) for kind in KINDS]
        some = f"{', '.join(names[:-1])} or {names[-1]}"
        if len(kinds) > 1 or not (kinds or self.resume):
            actual = "nothing" if not kinds else " and ".join(map(called, kinds))
            return [f"give one thing to do, {some}; there is {actual}"]
        rules = {
            f"{called('guard')} and {called('overwrite')} are for {called('put')}": (
                self.guard is not None or self.overwrite
            )
            and self.put is None,
            f"{called('overwrite')} needs {called('guard')} transaction: the old item cannot be "
            "restored": self.overwrite and self.guard in ("none", "look"),
            f"{called('item')} is for {called('update')} and {called('delete')}": self.item
            is not None
            and self.update is None
            and not self.delete,
            f"{called('values')} and {called('names')} are for {called('update')}": (
                self.values is not None or self.names is not None
            )
            and self.update is None,
            f"{called('batch')} is for {called('invoke')}, {called('queue')} and "
            f"{called('start_machine')}": self.batch is not None
            and not (self.invoke or self.queue or self.start_machine),
            f"{called('queue')} must be the URL of a queue": self.queue is not None
            and not _QUEUE.fullmatch(self.queue),
            f"{called('start_machine')} must be the ARN of a state machine": (
                self.start_machine is not None and not MACHINE.fullmatch(self.start_machine)
            ),
            f"{called('undo')} uses the keys of the run that it undoes: leave "
            f"{called('keys')} out": self.undo is not None and self.keys is not None,
        }
        return [sentence for sentence, is_broken in rules.items() if is_broken]


@dataclass(frozen=True, slots=True)
class Where:
    """A condition on keys. form: None for all keys. arguments: texts, also for numeric bounds."""

    form: str | None = None
    arguments: tuple[str, ...] = ()

    @classmethod
    def parse(cls, text: str) -> Self:
        """Parse a condition as a user writes it. Raise InvalidInput."""
        match = FORM.fullmatch(text)
        if match is None:
            raise InvalidInput(f"The condition on keys must be {FORMS}, not {text!r}.")
        form, inner = match.groups()
        arguments = tuple(map(_unquoted, inner.split(",", 1) if form == "between" else [inner]))
        if form == "between" and len(arguments) != 2:
            raise InvalidInput(f"between takes two values: between(a, b), not {text!r}.")
        if form == "matches":
            if len(arguments[0]) > MOST_PATTERN:
                raise InvalidInput(
                    f"A regular expression may have {MOST_PATTERN} characters; this one has "
                    f"{len(arguments[0]):,}."
                )
            try:
                re.compile(arguments[0])
            except re.error as error:
                raise InvalidInput(
                    f"{arguments[0]!r} is not a regular expression: {error}."
                ) from error
        return cls(form, arguments)

    @classmethod
    def from_json(cls, state: Mapping[str, Any] | None) -> Self:
        return cls() if state is None else cls(state["form"], tuple(state["arguments"]))

    def to_json(self) -> dict[str, Any]:
        return {"form": self.form, "arguments": [*self.arguments]}

    def check(self, space: KeySpace) -> None:
        """Raise InvalidInput if the condition is not for keys of this type."""
        (attribute,) = space.partition
        if self.form is None:
            return
        if attribute.type == "B":
            raise InvalidInput(
                "A condition on keys works for texts and numbers, but these keys are binary."
            )
        if attribute.type == "N":
            if self.form != "between":
                raise InvalidInput(f"{self.form} works for texts, but these keys are numbers.")
            for bound in self.arguments:
                if not is_number(bound):
                    raise InvalidInput(f"{bound!r} must be a number, as these keys are.")

    def holds(self, key: Key, space: KeySpace) -> bool:
        """Return whether the condition holds for a row's key."""
        if self.form is None:
            return True
        (attribute,) = space.partition
        content = key[attribute.name][attribute.type]
        return _TESTS[self.form](content, attribute.type, *self.arguments)


def _between(content: str, type_: str, low: str, high: str) -> bool:
    if type_ == "N":
        return Decimal(low) <= Decimal(content) <= Decimal(high)
    # The service orders texts by their bytes in UTF-8.
    return low.encode() <= content.encode() <= high.encode()


_TESTS: dict[str, Callable[..., bool]] = {
    "begins_with": lambda content, type_, start: content.startswith(start),
    "between": _between,
    "matches": lambda content, type_, pattern: re.search(pattern, content) is not None,
}


def _unquoted(text: str) -> str:
    text = text.strip()
    if len(text) >= 2 and text[0] == text[-1] and text[0] in "'\"":
        return text[1:-1]
    return text
