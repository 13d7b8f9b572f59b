"""Items and values with `${...}` in them: checked when they are given, rendered for each row. Pure.

    ${key}         the partition key. Alone in a text of plain JSON it has the key's type; in a
                   longer text a number is as the service writes it, and a binary key is base64
    ${run}         the run's id
    ${now}         the run's start, ISO 8601; ${now:epoch} in seconds, alone a number
    ${first.NAME}  an attribute of the collection's first item, as the list of keys has noted it;
                   alone in a text of plain JSON it may have any type
    $${            these two characters: ${

In DynamoDB JSON the type is the one that is written: {"N": "${key}"} needs a key of type N. What is
rendered depends on the row, and on the run's id and start: rendered again it is the same.
"""

import base64
import json
import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

from keyhop.dynamodb.schema import MARKER, KeyAttribute, KeySpace
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
"""Of an item that is put: it is taken back on condition that each is as it was put, and an
expression has 300 operators at most (AWS documentation): = and AND for each."""
MOST_SORT_KEY_BYTES = 1024

_PLACE = re.compile(r"\$\$\{|\$\{([^{}]*)\}|\$\{")
ALONE = "$"
"""Stands for a type where a text of plain JSON is one variable: the type is the variable's."""

EPOCH = "${now:epoch}"

Render = Callable[[Key], TypedValue]
Compiled = TypedValue | Render
"""A constant, or what makes the value of a row."""


class NotRendered(Exception):
    """A row has no such item. The message holds nothing of the row."""


def template_json(given: Any) -> dict[str, Any]:
    """What a user gives as item or as values, plain JSON or DynamoDB JSON, as a plan keeps it.

    Raises CannotStart.
    """
    try:
        return item_json(given, lambda text: {ALONE if _is_one_variable(text) else "S": text})
    except ValueError as error:
        raise CannotStart(f"This is no item: {error}.") from error


@dataclass(slots=True)
class Variables:
    """What a run's variables stand for. started: ISO 8601.

    first: gets the names of the ${first.NAME} that are asked for. tells: becomes true if something
    is asked for that tells the run from others.
    """

    key: KeyAttribute
    run: str
    started: str
    first: set[str] = field(default_factory=set)
    tells: bool = False

    def compiled_all(
        self, given: Mapping[str, Any]
    ) -> tuple[dict[str, TypedValue], dict[str, Render]]:
        """Values by name: the constants, and those that vary. Raises CannotStart."""
        constants: dict[str, TypedValue] = {}
        varying: dict[str, Render] = {}
        name = ""
        try:
            _check_names(given)
            for name, value in given.items():
                made = self.compiled(value)
                if isinstance(made, Mapping):
                    constants[name] = made
                else:
                    varying[name] = made
        except ValueError as error:
            raise CannotStart(f"The value of {name!r} is wrong: {error}.") from error
        return constants, varying

    def compiled(self, value: Any, levels: int = MOST_LEVELS) -> Compiled:
        """A value of `template_json`; a constant has bytes where that has base64.

        Raises ValueError for what can be right for no row.
        """
        if not levels:
            raise ValueError(f"it is nested deeper than {MOST_LEVELS} levels")
        if not (isinstance(value, Mapping) and len(value) == 1):
            raise ValueError("it is no typed value")
        ((type_, content),) = value.items()
        match type_, content:
            case (("S" | "N" | "B" | "$"), str()):
                return self._of_text(type_, content)
            case (("SS" | "NS" | "BS"), [*texts]):
                members = [self.compiled({type_[0]: text}, 1) for text in texts]
                return _made_of(members, lambda made: _set_of(type_, made))
            case "L", [*values]:
                members = [self.compiled(one, levels - 1) for one in values]
                return _made_of(members, lambda made: {"L": made})
            case "M", Mapping():
                _check_names(content)
                members = [self.compiled(one, levels - 1) for one in content.values()]
                return _made_of(members, lambda made: {"M": dict(zip(content, made, strict=True))})
            case ("NULL", True) | ("BOOL", True | False):
                return {type_: content}
        if type_ not in TYPES:
            raise ValueError(f"{type_!r} is no type of DynamoDB")
        raise ValueError(f"what it holds is no value of type {type_}")

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
                raise NotRendered(f"What {text} stands for is no {type_}.") from error

        return render

    def _of_variable(self, type_: str, variable: Render) -> Compiled:
        """Alone in its text."""
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
    """An item for each collection; or, of one without other attributes, an item's key.

    types: of the attributes that are keys, of the table or of an index.
    """

    space: KeySpace
    types: Mapping[str, str]
    constants: Mapping[str, TypedValue]
    varying: Mapping[str, Render]
    constant_bytes: int

    @classmethod
    def of_item(
        cls, given: Any, space: KeySpace, types: Mapping[str, str], variables: Variables
    ) -> "Template":
        """What is to be put. Raises CannotStart."""
        (partition,) = space.partition
        if space.sort is None:
            raise CannotStart(
                "The table has no sort key: each item is a collection of its own, so nothing can "
                "be put beside one."
            )
        if len(given) > MOST_ATTRIBUTES:
            raise CannotStart(
                f"The item has {len(given):,} attributes; {MOST_ATTRIBUTES} are most."
            )
        if partition.name in given:
            raise CannotStart(
                f"The item has the partition key {partition.name!r}, which is filled in for each "
                "collection: leave it out."
            )
        if MARKER in given:
            raise CannotStart(
                f"The item has an attribute {MARKER!r}, which marks the sentinels of a key index."
            )
        return cls._of(given, space, types, variables)

    @classmethod
    def of_key(cls, given: Any, space: KeySpace, variables: Variables) -> "Template":
        """Of one named item: its sort key, if the table has one. Raises CannotStart.

        A text is read as the sort key's type: the command's --item has nothing but texts.
        """
        wanted = [] if space.sort is None else [space.sort.name]
        if sorted(given) != wanted:
            raise CannotStart(
                f"The item of each collection is named by its sort key {wanted[0]!r} alone."
                if wanted
                else "The table has no sort key: the item of each collection is the only one."
            )
        if space.sort is not None and "S" in given[space.sort.name]:
            given = {space.sort.name: {space.sort.type: given[space.sort.name]["S"]}}
        types = {} if space.sort is None else {space.sort.name: space.sort.type}
        return cls._of(given, space, types, variables)

    @classmethod
    def _of(
        cls, given: Any, space: KeySpace, types: Mapping[str, str], variables: Variables
    ) -> "Template":
        if space.sort is not None and space.sort.name not in given:
            raise CannotStart(f"The item has no {space.sort.name!r}, the table's sort key.")
        constants, varying = variables.compiled_all(given)
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
        """The item for a row, with its partition key. Raises NotRendered."""
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
        """Raises NotRendered for what cannot be the value of a key."""
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
        raise NotRendered(f"A value of type {type_} is no part of a text.")
    return str(content)


def _leaf(type_: str, text: str) -> TypedValue:
    """A value of one text, which is right."""
    if type_ == "N" and not is_number(text):
        raise ValueError("it is no number that DynamoDB can hold")
    if type_ == "S":
        text.encode()  # half of a surrogate pair is no character: UnicodeEncodeError, a ValueError
    return {type_: base64.b64decode(text, validate=True) if type_ == "B" else text}


def _set_of(type_: str, members: list[TypedValue]) -> TypedValue:
    content = [one[type_[0]] for one in members]
    if not content:
        raise ValueError("a set must not be empty")
    if not are_distinct(type_, content):
        raise ValueError("the members of a set must differ")
    return {type_: content}


def _made_of(members: list[Compiled], made: Callable[[list[TypedValue]], TypedValue]) -> Compiled:
    """A constant, if all members are."""
    if all(isinstance(one, Mapping) for one in members):
        return made([one for one in members if isinstance(one, Mapping)])

    def render(row: Key) -> TypedValue:
        try:
            return made([one if isinstance(one, Mapping) else one(row) for one in members])
        except ValueError as error:
            raise NotRendered(f"Of a value: {error}.") from error

    return render


def _check_names(names: Mapping[str, Any]) -> None:
    for name in names:
        if not name:
            raise ValueError("a name must not be empty")
        if _PLACE.search(name):
            raise ValueError(f"the name {name!r} has a variable, which only values can have")
