"""What a person gives ForEachKey: the input of an execution. Pure."""

import re
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass
from typing import Annotated, Any

from keyhop.checks import (
    Check,
    Must,
    Truth,
    camel,
    number,
    one_of,
    read,
    text,
    whole,
    without_origin,
    wrong_input,
)
from keyhop.dynamodb.units import DEFAULT_WRITE_RATE
from keyhop.each.allowed import MACHINE
from keyhop.each.limits import DEFAULT_BATCH, GUARDS, MOST_BATCH
from keyhop.each.template import template_json
from keyhop.each.where import FORM, FORMS, Where
from keyhop.jobs.request import (
    A_METHOD,
    A_READ_RATE,
    A_RUN,
    A_TABLE,
    DOLLARS,
    READ_UNITS,
    WORKERS,
    Request,
)

LIKE = '{"table": "Orders", "put": {"sk": "#feature", "plan": "free"}}'
KINDS = ("put", "update", "delete", "invoke", "queue", "start_machine", "undo")

_OBJECT = Must(
    Check(lambda value: isinstance(value, Mapping), {"type": "object"}), "a JSON object", dict
)
_QUEUE = re.compile(r"https?://[^/\s@]+/[0-9]{12}/[\w-]{1,80}(\.fifo)?", re.ASCII)
_TRUE = Must(Check(lambda value: value is True, {"const": True}), "true")


@dataclass(frozen=True, slots=True)
class EachInput:
    """The input of ForEachKey: one of KINDS, and how."""

    table: Annotated[
        str,
        A_TABLE,
        "a table that has `each` in this deployment",
    ]
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
        dict[str, Any] | None, _OBJECT, "with update: what stands for :names in it"
    ] = None
    names: Annotated[
        dict[str, Any] | None, _OBJECT, "with update: what stands for #names in it"
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
    method: Annotated[
        str,
        A_METHOD,
        "how the keys are listed",
    ] = "auto"
    max_write_rate: Annotated[
        float,
        Must(number(1), "a number of write units a second, at least 1", float),
        f"for all workers together; {DEFAULT_WRITE_RATE:g} if left out",
    ] = DEFAULT_WRITE_RATE
    max_write_units: Annotated[
        float | None,
        Must(number(1), "a number of write units, at least 1"),
        "the run ends before it writes more; no limit if left out",
    ] = None
    max_read_rate: Annotated[
        float | None,
        A_READ_RATE,
        "for all workers together; no limit if left out",
    ] = None
    max_read_units: Annotated[
        float | None,
        READ_UNITS,
        "for listing the keys; no limit if left out",
    ] = None
    max_concurrency: Annotated[
        int | None,
        WORKERS,
        "workers at once, at most",
    ] = None
    max_cost: Annotated[
        float | None,
        DOLLARS,
        "refused if the upper end of the estimate is more; the deployment's maxCost if left out",
    ] = None
    plan_only: Annotated[Truth, "read a sample, and end with the estimate"] = False
    resume: Annotated[str | None, A_RUN, "go on with this run"] = None
    scheduled: Annotated[Truth, "by a schedule: an input that is refused raises the alarm"] = False


def parse(given: object) -> Request:
    """The request in an execution's input; raises InvalidInput, which names all that is wrong."""
    return each_request(read(EachInput, given, LIKE), camel, without_origin(given))


def each_request(asked: EachInput, called: Callable[[str], str], given: Any = None) -> Request:
    """A job for the task `each`.

    called: how a field is called where it was asked for. Raises InvalidInput.
    """
    if problems := contradictions(asked, called):
        raise wrong_input(problems)
    is_told = any(getattr(asked, kind) is not None for kind in KINDS)
    effect = effect_options(asked) if is_told else {}
    options: dict[str, Any] = {
        "effect": effect,
        "keys": asked.undo or asked.keys,
        "max_write_rate": asked.max_write_rate,
        "max_write_units": asked.max_write_units,
    }
    if asked.where is not None:
        options["where"] = Where.parse(asked.where).to_json()
    return Request(
        table=asked.table,
        task="each",
        options=options,
        wanted={"effect": effect} if asked.resume and effect and not asked.undo else {},
        method=asked.method,
        max_concurrency=asked.max_concurrency,
        max_read_rate=asked.max_read_rate,
        max_read_units=asked.max_read_units,
        max_write_units=asked.max_write_units,
        max_cost=asked.max_cost,
        format="jsonl",
        plan_only=asked.plan_only,
        resume=asked.resume,
        given=given or {},
    )


def effect_options(asked: EachInput) -> dict[str, Any]:
    """What is to be done for each key, as plain JSON: `kind`, and what that kind needs. A run that
    is gone on with has its own.
    """
    if asked.put is not None:
        guard = asked.guard or ("transaction" if asked.overwrite else "look")
        item = template_json(asked.put)
        return {"kind": "put", "item": item, "guard": guard, "overwrite": asked.overwrite}
    if asked.update is not None:
        return {
            "kind": "update",
            "expression": asked.update,
            "values": template_json(asked.values or {}),
            "names": asked.names or {},
            "item": template_json(asked.item or {}),
        }
    if asked.delete:
        return {"kind": "delete", "item": template_json(asked.item or {})}
    if asked.undo is not None:
        return {"kind": "undo"}
    targets = {"invoke": asked.invoke, "queue": asked.queue, "machine": asked.start_machine}
    ((kind, target),) = ((kind, one) for kind, one in targets.items() if one is not None)
    return {"kind": kind, "target": target, "batch": asked.batch or DEFAULT_BATCH}


def contradictions(asked: EachInput, called: Callable[[str], str]) -> list[str]:
    """What does not go together, and what can be no receiver."""
    fields = asdict(asked)
    kinds = [kind for kind in KINDS if fields[kind] is not None]
    names = [called(kind) for kind in KINDS]
    some = f"{', '.join(names[:-1])} or {names[-1]}"
    if len(kinds) > 1 or not (kinds or asked.resume):
        found = "nothing" if not kinds else " and ".join(map(called, kinds))
        return [f"give one thing to do, {some}; there is {found}"]
    rules = {
        f"{called('guard')} and {called('overwrite')} are for {called('put')}": (
            asked.guard is not None or asked.overwrite
        )
        and asked.put is None,
        f"{called('overwrite')} needs {called('guard')} transaction: what was there could not be "
        "brought back": asked.overwrite and asked.guard in ("none", "look"),
        f"{called('item')} is for {called('update')} and {called('delete')}": asked.item is not None
        and asked.update is None
        and not asked.delete,
        f"{called('values')} and {called('names')} are for {called('update')}": (
            asked.values is not None or asked.names is not None
        )
        and asked.update is None,
        f"{called('batch')} is for {called('invoke')}, {called('queue')} and "
        f"{called('start_machine')}": asked.batch is not None
        and not (asked.invoke or asked.queue or asked.start_machine),
        f"{called('queue')} must be the URL of a queue": asked.queue is not None
        and not _QUEUE.fullmatch(asked.queue),
        f"{called('start_machine')} must be the ARN of a state machine": (
            asked.start_machine is not None and not MACHINE.fullmatch(asked.start_machine)
        ),
        f"{called('undo')} takes the keys of the run that it undoes: leave {called('keys')} out": (
            asked.undo is not None and asked.keys is not None
        ),
    }
    return [sentence for sentence, is_broken in rules.items() if is_broken]
