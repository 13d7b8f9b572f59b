"""Conditions on the partition key, which select keys of a list. They save no reads. Pure."""

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from decimal import Decimal
from typing import Any, Self

from keyhop.checks import InvalidInput
from keyhop.dynamodb.schema import KeySpace
from keyhop.dynamodb.values import Key

FORMS = "begins_with(TEXT), between(LOW, HIGH) or matches(REGULAR EXPRESSION)"
FORM = re.compile(r"\s*(begins_with|between|matches)\s*\(([\s\S]*)\)\s*")
MOST_PATTERN = 500
"""The maximum length of a regular expression."""


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
                    f"{arguments[0]!r} is no regular expression: {error}."
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
                "A condition on keys is for texts and numbers, and these are binary."
            )
        if attribute.type == "N":
            if self.form != "between":
                raise InvalidInput(f"{self.form} is for texts, and these keys are numbers.")
            for bound in self.arguments:
                try:
                    Decimal(bound)
                except ArithmeticError as error:
                    raise InvalidInput(f"{bound!r} is no number, as these keys are.") from error

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
