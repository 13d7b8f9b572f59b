"""Use two Python functions instead of rules: `forward(item)` and `backward(item)`.

Each maps typed values (DynamoDB JSON with bytes) to typed values, or to None for an excluded item.
Nothing can be proved about them, so Keyhop always keeps the source's key in the destination item,
and removes it before `backward`. `reads` names the attributes that determine the place.
"""

import hashlib
from collections.abc import Callable, Iterable, Mapping, Sequence
from copy import deepcopy
from typing import Any

from keyhop.checks import hint, shown
from keyhop.dynamodb.schema import KeySpace
from keyhop.dynamodb.values import Item, Key, TypedValue, is_item, same_item
from keyhop.errors import CannotStart
from keyhop.rekey.template.rules import Reversed, check_equal
from keyhop.rekey.transform import KeyNames, Kind, Transform, check_key, possible_key
from keyhop.template import Unmappable

_NAMES = ("transform", "inverse", "keep", "reads")
Function = Callable[[dict[str, TypedValue]], Item | None]


def loaded(
    template: Mapping[str, Any],
    source: KeySpace,
    destination: KeySpace,
    code: str,
    trusted: str | None,
) -> "Functions":
    """Load the functions of a template, as `load` does, or raise CannotStart."""
    for name in template:
        if name not in _NAMES:
            suggestion = hint(str(name), _NAMES) or f"it may have {', '.join(_NAMES)}"
            raise CannotStart(f"The template has an unknown {shown(name)}; {suggestion}.")
    file, forward = _named(template, "transform")
    inverse_file, backward = _named(template, "inverse")
    if file != inverse_file:
        raise CannotStart("The template's transform and inverse must be in one file.")
    names = KeyNames.of_schema(source), KeyNames.of_schema(destination)
    keep, reads = _keep(template, *names), template.get("reads")
    if not isinstance(reads, list) or not all(isinstance(name, str) for name in reads):
        raise CannotStart(
            "The template with functions must have reads: the list of attributes, beside the "
            "source's key, from which the destination's key is made. The list may be empty."
        )
    if trusted is None or _digest(code) != _digest(trusted):
        raise CannotStart(
            f"The functions of the template (SHA-256 {_digest(code)[:12]}) are not those of this "
            "deployment: deploy with this file as transform in the context."
        )
    space: dict[str, Any] = {"__name__": "keyhop_template"}
    try:
        exec(compile(trusted, file, "exec"), space)  # noqa: S102 the user's code, see `load`
    except (Exception, SystemExit) as error:  # user code may raise anything
        raise CannotStart(f"{file!r} cannot be read as Python: {type(error).__name__}.") from error
    for function in (forward, backward):
        if not callable(space.get(function)):
            raise CannotStart(f"The file {file!r} has no function {function!r}.")
    types = source.types, destination.types
    return Functions(space[forward], space[backward], *names, *types, keep, reads)


class Functions(Transform):
    """A transform by two functions; `keep` names the source's key in the destination."""

    kind: Kind = "recoverable"

    def __init__(
        self,
        forward: Function,
        backward: Function,
        source: KeyNames,
        destination: KeyNames,
        source_types: Mapping[str, str],
        types: Mapping[str, str],
        keep: Mapping[str, str],
        reads: Sequence[str],
    ) -> None:
        self.source, self.destination = source, destination
        self.owner_attributes = tuple(keep[name] for name in source.all)
        self.reads = (*source.all, *reads)
        self._forward, self._backward = forward, backward
        self._source_types, self._types = source_types, types
        self._keep = {name: keep[name] for name in source.all}
        self._reverse = Reversed(self, tuple(reads), self.place_told)

    @property
    def reverse(self) -> Transform:
        return self._reverse

    def forward(self, item: Item) -> Item | None:
        mapped = self._there(item)
        if mapped is not None:
            check_equal(item, self._here(mapped), "do not come back by the inverse")
        return mapped

    def back(self, item: Item) -> Item | None:
        returned = self._here(item)
        if returned is not None:
            check_equal(item, self._there(returned), "are not as the transform makes them")
        return returned

    def owner_of(self, item: Item) -> Key | None:
        """Return the owner by the attributes that keep it."""
        kept = {name: item[kept] for name, kept in self._keep.items() if kept in item}
        try:
            return possible_key(self.source, self._source_types, kept)
        except Unmappable:
            return None

    def place_told(self, item: Item) -> Key | None:
        """Return the place of a source item, or None if it has none."""
        try:
            mapped = self._there(item)
        except Unmappable:
            return None
        return None if mapped is None else self.destination.of(mapped)

    def _there(self, item: Item) -> Item | None:
        result = _called(self._forward, item)
        if result is None:
            return None
        mapped = {**result, **{kept_name: item[name] for name, kept_name in self._keep.items()}}
        for name, type_ in self._types.items():
            if type_ not in mapped.get(name, ()):
                raise Unmappable(f"the transform makes no {name!r} of type {type_}")
        check_key(self.destination, mapped)
        return mapped

    def _here(self, item: Item) -> Item | None:
        owner = self.owner_of(item)
        if owner is None:
            raise Unmappable("the attributes that keep the source's key hold no such key")
        kept_names = set(self._keep.values())
        result = _called(
            self._backward, {n: value for n, value in item.items() if n not in kept_names}
        )
        return None if result is None else {**result, **owner}


def tried(transform: Transform, sample: Iterable[Item]) -> list[str]:
    """Return the faults of a transform on a sample of source items, each mapped twice, as parts of
    a sentence. Unmappable items are not reported here.
    """
    wrong: dict[str, None] = {}
    for item in sample:
        original = deepcopy(item)
        try:
            first, second = transform.forward(item), transform.forward(item)
        except Unmappable:
            continue
        if item != original:
            wrong["the transform changes the item that it is given"] = None
        if (first is None) != (second is None) or (first and not same_item(first, second or {})):
            wrong["the transform makes different items of one item"] = None
        if first is not None and isinstance(transform, Functions):
            few = {name: value for name, value in original.items() if name in transform.reads}
            place = transform.place_told(few)
            if place is not None and place != transform.destination.of(first):
                wrong["the new key is made of more attributes than reads says"] = None
    return list(wrong)


def _called(function: Function, item: Item) -> Item | None:
    try:
        result = function(dict(item))
    except Unmappable:
        raise
    except (
        Exception,
        SystemExit,
    ) as error:  # user code may raise anything; its text may hold values
        raise Unmappable(f"{function.__name__} raised {type(error).__name__}") from None
    if result is None or is_item(result):
        return result
    raise Unmappable(f"{function.__name__} returned no item of typed values")


def _named(template: Mapping[str, Any], field: str) -> tuple[str, str]:
    file, _, function = str(template.get(field, "")).partition(":")
    if not (file.endswith(".py") and function.isidentifier()):
        raise CannotStart(f"The template's {field} must be a file and a function, as file.py:f.")
    return file, function


def _keep(
    template: Mapping[str, Any], source: KeyNames, destination: KeyNames
) -> Mapping[str, str]:
    keep = template.get("keep", {})
    kept_names = list(keep.values()) if isinstance(keep, Mapping) else []
    names = {name for name in kept_names if isinstance(name, str) and name}
    of_all = len(names) == len(source.all) and not names & set(destination.all)
    if not isinstance(keep, Mapping) or set(keep) != set(source.all) or not of_all:
        example = ", ".join(f"{name}: old{name}" for name in source.all)
        raise CannotStart(
            "Keyhop cannot analyse functions, so the template must keep the source's key under "
            f"other names: add keep: {{{example}}}."
        )
    return keep


def _digest(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()
