"""Checks of inputs: of executions, events and settings. Pure.

A *shape* is a frozen dataclass. The type of each field has a check and its description, such as
`Annotated[int, Must(whole(1, 9), "a whole number from 1 to 9"), "how many there are"]`. The last
text is the meaning of the field in the JSON Schemas that are made from the shapes. The names in an
input are those of the fields in camelCase. cattrs reads an input, and this module turns its errors
into one sentence.
"""

import dataclasses
import difflib
import re
from collections.abc import Callable, Mapping, Sequence
from functools import cache
from typing import TYPE_CHECKING, Annotated, Any, TypeVar, get_type_hints

from keyhop.errors import CannotStart, InvalidInput

if TYPE_CHECKING:  # imported when something is read: a command begins sooner
    from cattrs import ClassValidationError, Converter

T = TypeVar("T")
MOST_NUMBER = 1e15
MOST_SHOWN = 100
"""Characters of a wrong value that a message shows."""

STARTED_BY = "AWS_STEP_FUNCTIONS_STARTED_BY_EXECUTION_ID"
"""The field in which Step Functions records the execution that started another one."""

HALF_A_PAIR = "a text in it has half of a surrogate pair, which is not a character"

_NOT_EMPTY = re.compile(".+", re.DOTALL)


@dataclasses.dataclass(frozen=True, slots=True)
class Check:
    """A check of a value, with the same check as a JSON Schema, if that can express it."""

    holds: Callable[[Any], bool]
    schema: Mapping[str, Any] = dataclasses.field(hash=False)

    def __call__(self, value: Any) -> bool:
        return self.holds(value)


@dataclasses.dataclass(frozen=True, slots=True)
class Must:
    """A requirement on a value: `be` describes a right value, and `read` converts it."""

    check: Callable[[Any], bool]
    be: str
    read: Callable[[Any], Any] = lambda value: value


class Wrong(ValueError):
    """A value that is not what it must be."""

    def __init__(self, must: Must, value: object) -> None:
        super().__init__(f"must be {must.be}, not {shown(value)}")
        self.must = must
        self.value = value


@dataclasses.dataclass(eq=False)
class Unreadable(Exception):
    """An input does not have the shape. All names are those of the input."""

    unknown: list[str]
    missing: list[str]
    wrong: dict[str, Wrong]


def read(shape: type[T], value: object, like: str) -> T:
    """Read an input as a shape; raise InvalidInput, which names all that is wrong.

    `like` is an example, as JSON.
    """
    if not isinstance(value, Mapping):
        raise InvalidInput(f"The input must be a JSON object such as {like}, not {shown(value)}.")
    try:
        check_characters(value)
    except ValueError as error:
        raise InvalidInput(f"The input cannot be read: {error}.") from error
    value = without_origin(value)
    try:
        return structured(shape, value)
    except Unreadable as error:
        raise wrong_input(_sentences(shape, error, like)) from error


def check_characters(document: object) -> None:
    """Raise ValueError unless all texts of a JSON value, names among them, are UTF-8 text.

    JSON can write half of a surrogate pair as an escape.
    """
    remaining = [document]
    while remaining:  # without recursion: a value may be nested too deeply for that
        value = remaining.pop()
        if isinstance(value, str) and not value.isascii():
            try:
                value.encode()
            except UnicodeEncodeError as error:
                raise ValueError(HALF_A_PAIR) from error
        elif isinstance(value, Mapping):
            remaining += [*value, *value.values()]
        elif isinstance(value, list | tuple):
            remaining += value


def without_origin(job_input: Any) -> dict[str, Any]:
    """Return an input without what Step Functions puts into it."""
    return {str(name): value for name, value in job_input.items() if name != STARTED_BY}


def wrong_input(problems: Sequence[str]) -> InvalidInput:
    """Return an error that names all problems."""
    return InvalidInput(f"The input is wrong: {'; '.join(problems)}.")


def structured(shape: type[T], value: Mapping[str, Any]) -> T:
    """Read a JSON object as a shape; raise Unreadable."""
    from cattrs import ClassValidationError

    try:
        return _converter().structure(value, shape)
    except ClassValidationError as error:
        raise _unreadable(error) from error


def requirements_of(shape: type) -> dict[str, Must]:
    """Return the requirement on each field of a shape that has one, by the field's name."""
    hints = get_type_hints(shape, include_extras=True)
    first = {
        name: next(iter(getattr(hint, "__metadata__", ())), None) for name, hint in hints.items()
    }
    return {name: must for name, must in first.items() if isinstance(must, Must)}


def check_arguments(arguments: Mapping[str, Any], requirements: Mapping[str, Must]) -> None:
    """Raise CannotStart for an argument of a public call that is wrong; None is the default."""
    for name, must in requirements.items():
        value = arguments.get(name)
        if isinstance(value, str) and must.read is tuple:
            raise CannotStart(f"{name} must be a list of texts: give [{shown(value)}].")
        if value is not None and not must.check(list(value) if must.read is tuple else value):
            raise CannotStart(f"{name} must be {must.be}, not {shown(value)}.")


def names_of(shape: type) -> tuple[str, ...]:
    """Return the names of a shape's fields in an input."""
    return tuple(camel(field.name) for field in dataclasses.fields(shape))


def hint(name: str, names: Sequence[str]) -> str:
    """Suggest a known name for an unknown one; return "" if none is similar."""
    close = difflib.get_close_matches(name, names, 1)
    return f"did you mean {close[0]}?" if close else ""


def shown(value: object) -> str:
    """Format a value for a message: short, and without control characters."""
    if isinstance(value, (Mapping, list)):
        return "an object" if isinstance(value, Mapping) else "an array"
    if value is None or isinstance(value, bool):
        return {None: "null", True: "true", False: "false"}[value]
    text = repr(value) if isinstance(value, str) else str(value)
    return text if len(text) <= MOST_SHOWN else text[:MOST_SHOWN] + "..."


def camel(name: str) -> str:
    """Convert a name such as max_read_rate to maxReadRate."""
    first, *rest = name.split("_")
    return first + "".join(word.capitalize() for word in rest)


def is_number(value: object) -> bool:
    """Return whether a value is a number; true and false are not numbers."""
    return isinstance(value, (int, float)) and not isinstance(value, bool)


def number(low: float, high: float = MOST_NUMBER) -> Check:
    """Return a check for a number from `low` to `high`."""
    schema = {"type": "number", "minimum": low, "maximum": high}
    return Check(lambda value: is_number(value) and low <= value <= high, schema)


def whole(low: int, high: float = MOST_NUMBER) -> Check:
    """Return a check for a whole number from `low` to `high`."""
    schema = {"type": "integer", "minimum": low, "maximum": int(high)}
    return Check(
        lambda value: is_number(value) and low <= value <= high and value == int(value), schema
    )


def one_of(*choices: str) -> Check:
    """Return a check for one of several texts."""
    return Check(lambda value: isinstance(value, str) and value in choices, {"enum": [*choices]})


def some_of(*choices: str) -> Check:
    """Return a check for a list of texts from `choices`."""
    return Check(
        lambda value: (
            isinstance(value, list | tuple) and all(member in choices for member in value)
        ),
        {"type": "array", "items": {"enum": [*choices]}},
    )


def text(*patterns: re.Pattern[str]) -> Check:
    """Return a check for a text that a pattern matches as a whole; without one, not empty."""
    allowed = patterns or (_NOT_EMPTY,)
    # JSON Schema's expressions are those of JavaScript, which writes named groups otherwise.
    expressions = [re.sub(r"\?P<\w+>", "?:", pattern.pattern) for pattern in patterns]
    pattern = {"pattern": f"^(?:{'|'.join(expressions)})$"} if patterns else {"minLength": 1}
    return Check(
        lambda value: isinstance(value, str) and any(p.fullmatch(value) for p in allowed),
        {"type": "string", **pattern},
    )


Truth = Annotated[
    bool, Must(Check(lambda value: isinstance(value, bool), {"type": "boolean"}), "true or false")
]


def _sentences(shape: type, error: Unreadable, like: str) -> list[str]:
    sentences = []
    fields = names_of(shape)
    if error.unknown:
        names = ", ".join(shown(name) for name in error.unknown[:5])
        suggestion = hint(error.unknown[0], fields)
        hinted = f", {suggestion}" if suggestion else ""
        sentences.append(f"unknown: {names}{hinted}; the fields are {', '.join(fields)}")
    sentences += [f"{name} is missing: {like}" for name in error.missing]
    sentences += [f"{name} {wrong}" for name, wrong in error.wrong.items()]
    return sentences


def _unreadable(error: "ClassValidationError") -> Unreadable:
    from cattrs import ForbiddenExtraKeysError

    result = Unreadable([], [], {})
    with_notes, without_notes = error.group_exceptions()
    for each in without_notes:
        if not isinstance(each, ForbiddenExtraKeysError):
            raise each
        result.unknown += sorted(each.extra_fields)
    for each, note in with_notes:
        if isinstance(each, KeyError):
            result.missing.append(camel(note.name))
        elif isinstance(each, Wrong):
            result.wrong[camel(note.name)] = each
        else:
            raise each
    return result


def _read_must(value: Any, type_: Any) -> Any:
    must: Must = type_.__metadata__[0]
    if not must.check(value):
        raise Wrong(must, value)
    return must.read(value)


def _by_names_in_camel_case(shape: type, converter: "Converter") -> Callable[[Any, Any], Any]:
    from cattrs.gen import make_dict_structure_fn, override

    names: Any = {f.name: override(rename=camel(f.name)) for f in dataclasses.fields(shape)}
    return make_dict_structure_fn(shape, converter, **names)


@cache
def _converter() -> "Converter":
    from cattrs import Converter

    converter = Converter(forbid_extra_keys=True)
    converter.register_structure_hook_func(lambda type_: hasattr(type_, "__metadata__"), _read_must)
    converter.register_structure_hook_factory(
        dataclasses.is_dataclass, lambda shape: _by_names_in_camel_case(shape, converter)
    )
    return converter
