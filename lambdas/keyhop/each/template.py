"""Items and values with `${...}` in them: checked at the start, rendered for each row. Pure.

    ${key}         the partition key. Alone in a text of plain JSON it has the key's type; in a
                   longer text a number is as the service writes it, and a binary key is base64
    ${run}         the run's id
    ${now}         the run's start, ISO 8601; ${now:epoch} in seconds, alone a number
    ${first.NAME}  an attribute of the collection's first item, from the list of keys;
                   alone in a text of plain JSON it may have any type
    $${            these two characters: ${

In DynamoDB JSON the type is explicit: {"N": "${key}"} needs a key of type N. The result depends
only on the row, and on the run's id and start, so rendering is repeatable.
"""

import base64
import json
import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

from keyhop.dynamodb.schema import MARKER, KeyAttribute, KeySpace
from keyhop.dynamodb.units import MOST_SORT_KEY_BYTES
from keyhop.dynamodb.values import (
    MOST_ITEM_BYTES,
    MOST_LEVELS,
    TYPES,
    Key,
    TypedValue,
    are_distinct,
    is_number,
    item_json,
    size_of,
    value_bytes,
    with_bytes,
)
from keyhop.errors import CannotStart
from keyhop.jobs.formats import FIRST

MOST_ATTRIBUTES = 140
"""The maximum number of attributes of an item to put: deleting it again has a condition on each,
and an expression may have 300 operators (AWS documentation), of which each uses two: = and AND.
"""

_PLACE = re.compile(r"\$\$\{|\$\{([^{}]*)\}|\$\{")
ALONE = "$"
"""Replaces the type where a text of plain JSON is a single variable, whose type applies."""

EPOCH = "${now:epoch}"

Render = Callable[[Key], TypedValue]
Compiled = TypedValue | Render
"""A constant, or a function that returns the value for a row."""


class NotRendered(Exception):
    """No valid item can be made for a row. The message holds nothing of the row."""


def template_json(content: Any) -> dict[str, Any]:
    """Return an item or values in the form in which a plan stores them. Raise CannotStart.

    content: plain JSON or DynamoDB JSON.
    """
    try:
        return item_json(content, lambda text: {ALONE if _is_one_variable(text) else "S": text})
    except ValueError as error:
        raise CannotStart(f"This is not an item: {error}.") from error


@dataclass(slots=True)
class Variables:
    """The values of a run's variables. started: ISO 8601.

    first: receives the names of all ${first.NAME} in use. tells: becomes true if a variable is used
    that identifies the run.
    """

    key: KeyAttribute
    run: str
    started: str
    first: set[str] = field(default_factory=set)
    tells: bool = False

    def compiled_all(
        self, values: Mapping[str, Any]
    ) -> tuple[dict[str, TypedValue], dict[str, Render]]:
        """Return the constants and the varying values, by name. Raise CannotStart."""
        constants: dict[str, TypedValue] = {}
        varying: dict[str, Render] = {}
        name = ""
        try:
            _check_names(values)
            for name, value in values.items():
                compiled = self.compiled(value)
                if isinstance(compiled, Mapping):
                    constants[name] = compiled
                else:
                    varying[name] = compiled
        except ValueError as error:
            raise CannotStart(f"The value of {name!r} is wrong: {error}.") from error
        return constants, varying

    def compiled(self, value: Any, levels: int = MOST_LEVELS) -> Compiled:
        """Compile a value of `template_json`; binary constants are decoded from base64.

        Raises ValueError for a value that is invalid for every row.
        """
        if not levels:
            raise ValueError(f"it is nested deeper than {MOST_LEVELS} levels")
        if not (isinstance(value, Mapping) and len(value) == 1):
            raise ValueError("it is not a typed value")
        ((type_, content),) = value.items()
        match type_, content:
            case (("S" | "N" | "B" | "$"), str()):
                return self._of_text(type_, content)
            case (("SS" | "NS" | "BS"), [*texts]):
                members = [self.compiled({type_[0]: text}, 1) for text in texts]
                return _made_of(members, lambda values: _set_of(type_, values))
            case "L", [*values]:
                members = [self.compiled(member, levels - 1) for member in values]
                return _made_of(members, lambda values: {"L": values})
            case "M", Mapping():
                _check_names(content)
                members = [self.compiled(member, levels - 1) for member in content.values()]
                return _made_of(
                    members, lambda values: {"M": dict(zip(content, values, strict=True))}
                )
            case ("NULL", True) | ("BOOL", True | False):
                return {type_: content}
        if type_ not in TYPES:
            raise ValueError(f"{type_!r} is not a type of DynamoDB")
        raise ValueError(f"its content is not a value of type {type_}")

    def _of_text(self, type_: str, text: str) -> Compiled:
        parts = [part for part in self._parts(text) if part != ""]
        if len(parts) == 1 and not isinstance(parts[0], str):
            return self._of_variable(type_, parts[0])
        if type_ == ALONE:
            type_ = "N" if text == EPOCH else "S"
        if all(isinstance(part, str) for part in parts):
            return _leaf(type_, "".join(map(str, parts)))
        if type_ == "B":
            raise ValueError("a binary value is base64 text, or one variable alone")

        def render(row: Key) -> TypedValue:
            texts = [part if isinstance(part, str) else _text_of(part(row)) for part in parts]
            try:
                return _leaf(type_, "".join(texts))
            except ValueError as error:
                raise NotRendered(f"The value of {text} is not of type {type_}.") from error

        return render

    def _of_variable(self, type_: str, variable: Render) -> Compiled:
        """Compile a text that consists of one variable."""
        if variable == self._key and type_ not in (ALONE, "S", self.key.type):
            raise ValueError(f"the partition key is of type {self.key.type}, not {type_}")
        if type_ == ALONE:
            return variable

        def render(row: Key) -> TypedValue:
            value = variable(row)
            if type_ in value:
                return value
            if type_ != "S":
                raise NotRendered(f"An attribute of the first item is not of type {type_}.")
            return {"S": _text_of(value)}

        return render

    def _parts(self, text: str) -> Iterator[str | Render]:
        at = 0
        for place in _PLACE.finditer(text):
            yield text[at : place.start()]
            at = place.end()
            if place[1] is not None:
                yield self._variable(place[1])
            elif place[0] == "$${":
                yield "${"
            else:
                raise ValueError("${ is not closed; for these two characters write $${")
        yield text[at:]

    def _variable(self, name: str) -> str | Render:
        if name == "key":
            return self._key
        self.tells = self.tells or name in ("run", "now", "now:epoch")
        match name:
            case "run":
                return self.run
            case "now":
                return self.started
            case "now:epoch":
                return str(int(datetime.fromisoformat(self.started).timestamp()))
        scope, _, attribute = name.partition(".")
        if scope == FIRST and attribute:
            self.first.add(attribute)
            return lambda row: _of_first(row, attribute)
        raise ValueError(
            f"there is no variable ${{{name}}}; there are ${{key}}, ${{run}}, ${{now}}, {EPOCH} "
            "and ${first.NAME}"
        )

    def _key(self, row: Key) -> TypedValue:
        return row[self.key.name]


@dataclass(frozen=True, slots=True)
class Template:
    """The item to put into each collection, or the key of the item to update or delete.

    types: the types of the attributes that are keys of the table or of an index.
    """

    space: KeySpace
    types: Mapping[str, str]
    constants: Mapping[str, TypedValue]
    varying: Mapping[str, Render]
    constant_bytes: int

    @classmethod
    def of_item(
        cls, attributes: Any, space: KeySpace, types: Mapping[str, str], variables: Variables
    ) -> "Template":
        """Return the template of an item to put. Raise CannotStart."""
        (partition,) = space.partition
        if space.sort is None:
            raise CannotStart(
                "The table has no sort key: each item has its own partition key, so nothing can "
                "be put beside it."
            )
        if len(attributes) > MOST_ATTRIBUTES:
            raise CannotStart(
                f"The item has {len(attributes):,} attributes; {MOST_ATTRIBUTES} are most."
            )
        if partition.name in attributes:
            raise CannotStart(
                f"The item has the partition key {partition.name!r}, which is filled in for each "
                "collection: leave it out."
            )
        if MARKER in attributes:
            raise CannotStart(
                f"The item has an attribute {MARKER!r}, which marks the sentinels of a key index."
            )
        return cls._of(attributes, space, types, variables)

    @classmethod
    def of_key(cls, attributes: Any, space: KeySpace, variables: Variables) -> "Template":
        """Return the template of one item's key: its sort key, if the table has one. Raise
        CannotStart.

        A text is converted to the sort key's type, because the command's --item consists of texts.
        """
        expected = [] if space.sort is None else [space.sort.name]
        if expected and not attributes:
            raise CannotStart(
                f"The item is not named: give the value of its sort key {expected[0]!r} in item=; "
                f"an execution's input has it in item."
            )
        if sorted(attributes) != expected:
            raise CannotStart(
                f"The item of each collection is named by its sort key {expected[0]!r} alone."
                if expected
                else "The table has no sort key: the item of each collection is the only one."
            )
        if space.sort is not None and "S" in attributes[space.sort.name]:
            attributes = {space.sort.name: {space.sort.type: attributes[space.sort.name]["S"]}}
        types = {} if space.sort is None else {space.sort.name: space.sort.type}
        return cls._of(attributes, space, types, variables)

    @classmethod
    def _of(
        cls, attributes: Any, space: KeySpace, types: Mapping[str, str], variables: Variables
    ) -> "Template":
        if space.sort is not None and space.sort.name not in attributes:
            raise CannotStart(f"The item has no {space.sort.name!r}, the table's sort key.")
        constants, varying = variables.compiled_all(attributes)
        template = cls(space, types, constants, varying, size_of(constants))
        try:
            for name, value in constants.items():
                template.check(name, value)
            if template.constant_bytes > MOST_ITEM_BYTES:
                raise NotRendered(f"It has {template.constant_bytes:,} bytes.")
        except NotRendered as error:
            raise CannotStart(f"The item cannot be written: {error}") from error
        return template

    def render(self, row: Key) -> dict[str, TypedValue]:
        """Return the item for a row, including its partition key. Raise NotRendered."""
        (partition,) = self.space.partition
        item = {partition.name: row[partition.name], **self.constants}
        if not self.varying:
            return item
        for name, make in self.varying.items():
            item[name] = make(row)
            self.check(name, item[name])
        if size_of(item) > MOST_ITEM_BYTES:
            raise NotRendered(f"The item would have more than {MOST_ITEM_BYTES:,} bytes.")
        return item

    def check(self, name: str, value: TypedValue) -> None:
        """Raise NotRendered if the attribute is a key and the value is not valid for it."""
        if name not in self.types:
            return
        if self.types[name] not in value:
            raise NotRendered(f"{name!r} is a key of type {self.types[name]}.")
        size = value_bytes(value)
        if not size:
            raise NotRendered(f"{name!r} is a key, and must not be empty.")
        is_sort_key = self.space.sort is not None and name == self.space.sort.name
        if is_sort_key and size > MOST_SORT_KEY_BYTES:
            raise NotRendered(f"A sort key has {MOST_SORT_KEY_BYTES:,} bytes at most.")


def _is_one_variable(text: str) -> bool:
    place = _PLACE.fullmatch(text)
    return place is not None and place[1] is not None


def _of_first(row: Key, name: str) -> TypedValue:
    attributes = json.loads(row[FIRST]["S"]) if FIRST in row else {}
    if name not in attributes:
        raise NotRendered(f"The collection's first item has no {name!r}.")
    value: TypedValue = with_bytes(attributes[name])
    return value


def _text_of(value: TypedValue) -> str:
    ((type_, content),) = value.items()
    if type_ == "B":
        return base64.b64encode(content).decode()
    if type_ not in ("S", "N"):
        raise NotRendered(f"A value of type {type_} cannot be a part of a text.")
    return str(content)


def _leaf(type_: str, text: str) -> TypedValue:
    """Return a typed value from a text. Raise ValueError if the text is not valid."""
    if type_ == "N" and not is_number(text):
        raise ValueError("it is not a number that DynamoDB can hold")
    if type_ == "S":
        text.encode()  # a lone surrogate raises UnicodeEncodeError, which is a ValueError
    return {type_: base64.b64decode(text, validate=True) if type_ == "B" else text}


def _set_of(type_: str, members: list[TypedValue]) -> TypedValue:
    content = [member[type_[0]] for member in members]
    if not content:
        raise ValueError("a set must not be empty")
    if not are_distinct(type_, content):
        raise ValueError("the members of a set must differ")
    return {type_: content}


def _made_of(
    members: list[Compiled], combine: Callable[[list[TypedValue]], TypedValue]
) -> Compiled:
    """Combine constant members into a constant, others into a function of the row."""
    if all(isinstance(member, Mapping) for member in members):
        return combine([member for member in members if isinstance(member, Mapping)])

    def render(row: Key) -> TypedValue:
        try:
            return combine(
                [member if isinstance(member, Mapping) else member(row) for member in members]
            )
        except ValueError as error:
            raise NotRendered(f"Of a value: {error}.") from error

    return render


def _check_names(names: Mapping[str, Any]) -> None:
    for name in names:
        if not name:
            raise ValueError("a name must not be empty")
        if _PLACE.search(name):
            raise ValueError(f"the name {name!r} has a variable, which only values can have")
