"""From a template, as its file has it, to a Transform: all that can be wrong with it is said here.

    {"separator": "#", "items": [{"name", "match", "set", "keep"}, ..., {"otherwise": "refuse"}]}
    {"transform": "file.py:forward", "inverse": "file.py:backward", "keep": {...}, "reads": [...]}

Pure: the functions of the second kind are executed if their text is the trusted one.
"""

from collections.abc import Mapping, Sequence
from decimal import Decimal
from itertools import chain
from typing import Any

from keyhop.checks import hint, shown
from keyhop.dynamodb.schema import KeyAttribute
from keyhop.dynamodb.values import KeyType, TypedValue, is_number
from keyhop.errors import CannotStart
from keyhop.rekey.template.functions import loaded
from keyhop.rekey.template.looks import Look
from keyhop.rekey.template.proof import Parts, proved
from keyhop.rekey.template.rules import Rules
from keyhop.rekey.template.syntax import Field, parsed
from keyhop.rekey.template.text import Compiled, compiled, whole
from keyhop.rekey.transform import KeyNames, KeySchemaOf, Transform

OTHERWISE = ("refuse", "copy", "skip")
"""What becomes of an item that no rule is for; the first unless another is said."""
_OF_RULE = ("name", "match", "set", "keep")


def load(
    template: Mapping[str, Any],
    source: KeySchemaOf,
    destination: KeySchemaOf,
    code: str = "",
    trusted: str | None = None,
) -> Transform:
    """source, destination: the tables' keys.

    code: of the plan: the text of the file with functions, if the template names one. It is
    executed only if it is `trusted`: the text that whoever calls has on his own account, from the
    file that a user gave to his own command, or from the one that a function was packaged with.
    Raises CannotStart.
    """
    if not isinstance(template, Mapping) or not template:
        raise CannotStart("The template must be an object with the rules in it, as items: [...].")
    if "transform" in template:
        return loaded(template, source, destination, code, trusted)
    _check_names(template, ("items", "separator"), "The template")
    try:
        rules, otherwise = _rules(template, source, destination)
        every = proved(rules)
    except ValueError as error:
        raise CannotStart(str(error)) from error
    if otherwise == "copy" and source != destination:
        raise CannotStart(
            "The template copies what no rule is for, and the tables' keys differ in names or "
            "types: write a rule for these items, or otherwise: skip."
        )
    owner = dict.fromkeys(chain.from_iterable(one.owner_attributes for one in every))
    reverse = dict.fromkeys(chain.from_iterable(one.reverse_owner_attributes for one in every))
    names = KeyNames.of_schema(source), KeyNames.of_schema(destination)
    return Rules([one.rule for one in every], otherwise, *names, tuple(owner), tuple(reverse))


def _rules(
    template: Mapping[str, Any], source: KeySchemaOf, destination: KeySchemaOf
) -> tuple[list[Parts], str]:
    items = template.get("items")
    if not isinstance(items, list) or not items:
        raise CannotStart("The template has no items: list rules, each with match and set.")
    separator = template.get("separator", "")
    if not isinstance(separator, str) or len(separator) > 1:
        raise CannotStart(
            f"The template's separator must be one character, not {shown(separator)}."
        )
    otherwise = OTHERWISE[0]
    if isinstance(items[-1], Mapping) and "otherwise" in items[-1]:
        *items, last = items
        _check_names(last, ("otherwise",), "The last of the items")
        otherwise = last["otherwise"]
        if otherwise not in OTHERWISE:
            raise CannotStart(f"otherwise must be refuse, copy or skip, not {shown(otherwise)}.")
    rules = [_rule(one, n, separator, source, destination) for n, one in enumerate(items, 1)]
    names = [rule.name for rule in rules]
    if len(set(names)) < len(names):
        raise CannotStart("Two rules of the template have the same name: give each its own.")
    return rules, otherwise


def _rule(
    given: Any, number: int, separator: str, source: KeySchemaOf, destination: KeySchemaOf
) -> Parts:
    name = given.get("name", f"number {number}") if isinstance(given, Mapping) else ""
    if not isinstance(name, str) or not name:
        raise CannotStart(f"Rule number {number} of the template is no object with match and set.")
    if "otherwise" in given:
        raise CannotStart("otherwise must be the last of the template's items.")
    _check_names(given, _OF_RULE, f"Rule {name!r}")
    match, sets, keep = ({**_object(given, part, name)} for part in ("match", "set", "keep"))
    here, there = _attributes(source), _attributes(destination)
    of_match: dict[str, Compiled] = {}
    types: dict[str, KeyType] = {}
    for attribute in [*here, *(one for one in match if one not in here)]:
        where = f"Rule {name!r}, match of {attribute!r}"
        wanted = here.get(attribute)
        if attribute in match:
            given = match[attribute]
            one = _value(given, _types_of(given, wanted), wanted, separator, where)
        else:
            one = whole(attribute, here[attribute])
        _bind(one, attribute, types, here, where)
        of_match[attribute] = one
    types = {**here, **types}
    for attribute, n in zip(there, ("partition", "sort"), strict=False):
        if attribute not in sets:
            raise CannotStart(
                f"Rule {name!r} does not set {attribute!r}, the destination's {n} key: set it, "
                f"as {attribute}: '{{{attribute}}}' if it stays as it is."
            )
    of_sets = {
        attribute: _value(
            text, types, there.get(attribute), separator, f"Rule {name!r}, set of {attribute!r}"
        )
        for attribute, text in sets.items()
    }
    _check_keep(keep, name, sets)
    names = KeyNames.of_schema(source), KeyNames.of_schema(destination)
    return Parts(name, *names, of_match, of_sets, keep)


def _value(
    given: Any,
    types: Mapping[str, KeyType],
    wanted: KeyType | None,
    separator: str,
    where: str,
) -> Compiled:
    """A text with fields, or a constant."""
    try:
        if isinstance(given, str):
            return compiled(given, types, wanted, separator)
        constant = _constant(given)
        if wanted is not None and wanted not in constant:
            raise ValueError(f"the key is of type {wanted}")
    except ValueError as error:
        raise CannotStart(f"{where}: {error}.") from error
    return _of_constant(constant)


def _types_of(text: Any, key: KeyType | None) -> dict[str, KeyType]:
    """Of the variables of a match, which are texts unless they say otherwise.

    key: the type of an attribute that is a key.
    """
    try:
        parts = parsed(text) if isinstance(text, str) else []
    except ValueError:  # which is said when it is compiled
        return {}
    alone = key if len(parts) == 1 else None
    return {part.name: part.type or alone or "S" for part in parts if isinstance(part, Field)}


def _bind(
    one: Compiled,
    attribute: str,
    types: dict[str, KeyType],
    keys: Mapping[str, KeyType],
    where: str,
) -> None:
    """Notes the types of the variables of a match."""
    for field in one.fields:
        name = field.field.name
        if len(field.field.path) > 1 or field.field.default is not None:
            raise CannotStart(
                f"{where}: {{{field.field.shown}}} names what is found there, so it is one name, "
                "without a default."
            )
        type_ = field.bound_type
        if field.undo is None or type_ is None:
            raise CannotStart(f"{where}: {{{name}}} can have the filters pad, num and str only.")
        if name in keys and name != attribute:
            raise CannotStart(f"{where}: {name!r} is a key of the source: take another name.")
        if types.setdefault(name, type_) != type_:
            raise CannotStart(f"{where}: {name!r} is of another type than where it stands before.")


def _of_constant(constant: TypedValue) -> Compiled:
    ((type_, content),) = constant.items()

    def split(value: TypedValue) -> Sequence[Any] | None:
        if type_ not in value:
            return None
        same = Decimal(value["N"]) == Decimal(content) if type_ == "N" else value == constant
        return () if same else None

    return Compiled((), Look(type_, constant=content), lambda _scope: constant, split)


def _constant(given: Any) -> TypedValue:
    match given:
        case bool():
            return {"BOOL": given}
        case None:
            return {"NULL": True}
        case int() | float():
            return {"N": _number(given)}
    raise ValueError(f"it must be a text, a number, true, false or null, not {shown(given)}")


def _number(given: float) -> str:
    try:
        text = str(given)
    except ValueError:  # of so many digits Python writes none
        raise ValueError("it is no number that DynamoDB keeps") from None
    if not is_number(text):
        raise ValueError(f"{text} is no number that DynamoDB keeps")
    return text


def _check_keep(keep: Mapping[str, Any], name: str, sets: Mapping[str, Any]) -> None:
    for attribute, kept in keep.items():
        if not isinstance(kept, str) or not kept:
            raise CannotStart(
                f"Rule {name!r}: keep says under which name {attribute!r} is kept, not "
                f"{shown(kept)}."
            )
        if kept in sets:
            raise CannotStart(
                f"Rule {name!r} keeps {attribute!r} as {kept!r}, which it also sets: take another "
                "name."
            )
    if len(set(keep.values())) < len(keep):
        raise CannotStart(f"Rule {name!r} keeps two attributes under one name.")


def _attributes(schema: KeySchemaOf) -> dict[str, KeyType]:
    attributes: list[KeyAttribute] = [*schema.partition]
    attributes += [] if schema.sort is None else [schema.sort]
    return {one.name: one.type for one in attributes}


def _object(rule: Mapping[str, Any], part: str, name: str) -> Mapping[str, Any]:
    given = rule.get(part, {})
    if not isinstance(given, Mapping) or not all(isinstance(one, str) and one for one in given):
        raise CannotStart(f"Rule {name!r}: {part} must be an object of attributes.")
    return given


def _check_names(given: Mapping[str, Any], known: Sequence[str], who: str) -> None:
    for name in given:
        if name not in known:
            meant = hint(str(name), known) or f"it may have {', '.join(known)}"
            raise CannotStart(f"{who} has an unknown {shown(name)}; {meant}.")
