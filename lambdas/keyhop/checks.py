"""What people and other programs give, checked: inputs of executions, events, settings. Pure.

A *shape* is a frozen dataclass; the type of each of its fields says what is right and how to say
that: `Annotated[int, Must(whole(1, 9), "a whole number from 1 to 9")]`. The given names are the
fields' in camelCase. cattrs does the reading; here its findings become one sentence.
"""

import dataclasses
import difflib
import re
from collections.abc import Callable, Mapping, Sequence
from typing import Annotated, Any, TypeVar, get_args, get_origin

from cattrs import ClassValidationError, Converter, ForbiddenExtraKeysError
from cattrs.gen import make_dict_structure_fn, override

from keyhop.errors import CannotStart

T = TypeVar("T")
Check = Callable[[Any], bool]
MOST_NUMBER = 1e15
MOST_SHOWN = 100
"""Characters of a wrong value that a message shows."""

STARTED_BY = "AWS_STEP_FUNCTIONS_STARTED_BY_EXECUTION_ID"
"""How Step Functions knows which execution began another; no field of ours."""


class InvalidInput(CannotStart):
    """What was given is not what is taken."""


@dataclasses.dataclass(frozen=True, slots=True)
class Must:
    """What a value must be: `check` decides, `be` says it. read: what is made of a right value."""

    check: Check
    be: str
    read: Callable[[Any], Any] = lambda value: value


class Wrong(ValueError):
    """A value that is not what it must be."""

    def __init__(self, must: Must, value: object) -> None:
        super().__init__(f"must be {must.be}, not {shown(value)}")
        self.must = must
        self.value = value


@dataclasses.dataclass(frozen=True, slots=True)
class Problems:
    """All that is wrong with what was given; names are as they were given."""

    unknown: tuple[str, ...]
    missing: tuple[str, ...]
    wrong: Mapping[str, Wrong]


class Unreadable(Exception):
    """What was given does not have the shape."""

    def __init__(self, problems: Problems) -> None:
        super().__init__("what was given does not have the shape")
        self.problems = problems


def read(shape: type[T], given: object, like: str) -> T:
    """The shape that was given; raises InvalidInput, which names all that is wrong.

    like: an example, as JSON.
    """
    if not isinstance(given, Mapping):
        raise InvalidInput(f"The input must be a JSON object such as {like}, not {shown(given)}.")
    given = {str(name): value for name, value in given.items() if name != STARTED_BY}
    try:
        return structured(shape, given)
    except Unreadable as error:
        refuse([*_sentences(shape, error.problems, like)])
        raise


def refuse(problems: Sequence[str]) -> None:
    """Raises InvalidInput if there are problems."""
    if problems:
        raise InvalidInput(f"The input is wrong: {'; '.join(problems)}.")


def structured(shape: type[T], given: Mapping[str, Any]) -> T:
    """The shape in a JSON object; raises Unreadable."""
    try:
        return _CONVERTER.structure(given, shape)
    except ClassValidationError as error:
        raise Unreadable(_problems(error)) from error


def names_of(shape: type) -> tuple[str, ...]:
    """The names that a shape's fields are given by."""
    return tuple(camel(field.name) for field in dataclasses.fields(shape))


def hint(name: str, known: Sequence[str]) -> str:
    """What may have been meant by a name that is not known; empty if nothing is like it."""
    close = difflib.get_close_matches(name, known, 1)
    return f"did you mean {close[0]}?" if close else ""


def shown(value: object) -> str:
    """What was given, for a message: short, and without control characters."""
    if isinstance(value, (Mapping, list)):
        return "an object" if isinstance(value, Mapping) else "an array"
    if value is None or isinstance(value, bool):
        return {None: "null", True: "true", False: "false"}[value]
    text = repr(value) if isinstance(value, str) else str(value)
    return text if len(text) <= MOST_SHOWN else text[:MOST_SHOWN] + "..."


def camel(name: str) -> str:
    """max_read_rate as maxReadRate."""
    first, *others = name.split("_")
    return first + "".join(other.capitalize() for other in others)


def is_number(value: object) -> bool:
    """Whether it is a number; true and false are none."""
    return isinstance(value, (int, float)) and not isinstance(value, bool)


def number(low: float, high: float = MOST_NUMBER) -> Check:
    """A number from `low` to `high`."""
    return lambda value: is_number(value) and low <= value <= high


def whole(low: int, high: float = MOST_NUMBER) -> Check:
    """A whole number from `low` to `high`."""
    return lambda value: is_number(value) and low <= value <= high and value == int(value)


def one_of(*choices: str) -> Check:
    """One of several texts."""
    return lambda value: isinstance(value, str) and value in choices


def text(*patterns: re.Pattern[str]) -> Check:
    """A text that one of the patterns matches as a whole; any text but the empty one if none."""
    if not patterns:
        return lambda value: isinstance(value, str) and value != ""
    return lambda value: isinstance(value, str) and any(p.fullmatch(value) for p in patterns)


Truth = Annotated[bool, Must(lambda value: isinstance(value, bool), "true or false")]


def _sentences(shape: type, problems: Problems, like: str) -> Sequence[str]:
    sentences = []
    known = names_of(shape)
    if problems.unknown:
        names = ", ".join(shown(name) for name in problems.unknown[:5])
        meant = hint(problems.unknown[0], known)
        sentences.append(
            f"unknown: {names}{f', {meant}' if meant else ''}; the fields are {', '.join(known)}"
        )
    sentences += [f"{name} is missing: {like}" for name in problems.missing]
    sentences += [f"{name} {wrong}" for name, wrong in problems.wrong.items()]
    return sentences


def _problems(error: ClassValidationError) -> Problems:
    unknown: list[str] = []
    missing: list[str] = []
    wrong: dict[str, Wrong] = {}
    noted, others = error.group_exceptions()
    for each in others:
        if not isinstance(each, ForbiddenExtraKeysError):
            raise each
        unknown += sorted(each.extra_fields)
    for each, note in noted:
        if isinstance(each, KeyError):
            missing.append(camel(note.name))
        elif isinstance(each, Wrong):
            wrong[camel(note.name)] = each
        else:
            raise each
    return Problems(tuple(unknown), tuple(missing), wrong)


def _must(type_: Any) -> Must | None:
    if get_origin(type_) is not Annotated:
        return None
    return next((more for more in get_args(type_)[1:] if isinstance(more, Must)), None)


def _read_must(value: Any, type_: Any) -> Any:
    must = _must(type_)
    assert must is not None
    if not must.check(value):
        raise Wrong(must, value)
    return must.read(value)


def _converter() -> Converter:
    converter = Converter(forbid_extra_keys=True, detailed_validation=True)
    converter.register_structure_hook_func(lambda type_: _must(type_) is not None, _read_must)
    converter.register_structure_hook_factory(
        dataclasses.is_dataclass,
        lambda shape: make_dict_structure_fn(
            shape,
            converter,
            _cattrs_forbid_extra_keys=True,
            **{f.name: override(rename=camel(f.name)) for f in dataclasses.fields(shape)},  # type: ignore[arg-type]
        ),
    )
    return converter


_CONVERTER = _converter()
