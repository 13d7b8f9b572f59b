"""Make a Transform of a template; all messages about a wrong template are here.

    {"separator": "#", "items": [{"name", "match", "set", "keep"}, ..., {"otherwise": "refuse"}]}
    {"transform": "file.py:forward", "inverse": "file.py:backward", "keep": {...}, "reads": [...]}

Pure: the functions of the second kind are executed only if their text is the trusted one.
"""

from collections.abc import Mapping, Sequence
from decimal import Decimal
from itertools import chain
from typing import Any

from keyhop.checks import hint, shown
from keyhop.dynamodb.schema import KeySpace
from keyhop.dynamodb.values import KeyType, TypedValue, is_number
from keyhop.errors import CannotStart
from keyhop.rekey.template.functions import loaded
from keyhop.rekey.template.looks import Look
from keyhop.rekey.template.proof import Parts, proved
from keyhop.rekey.template.rules import Rules
from keyhop.rekey.template.text import Compiled, Field, compiled, parsed, whole
from keyhop.rekey.transform import KeyNames, Transform

OTHERWISE = ("refuse", "copy", "skip")
"""The treatment of an item that no rule matches; the first one is the default."""
_OF_RULE = ("name", "match", "set", "keep")


def load(
    template: Mapping[str, Any],
    source: KeySpace,
    destination: KeySpace,
    code: str = "",
    trusted: str | None = None,
) -> Transform:
    """Make a transform from the content of a template's file, and the keys of both tables.

    `code` is the text of the file with functions, from the plan. It is executed only if it is equal
    to the text that the caller trusts, from the file that a user passed to the command, or the file
    in a function's package. Raise CannotStart for a wrong template, or untrusted functions.
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
    owner = dict.fromkeys(chain.from_iterable(proven.owner_attributes for proven in every))
    reverse = dict.fromkeys(
        chain.from_iterable(proven.reverse_owner_attributes for proven in every)
    )
    names = KeyNames.of_schema(source), KeyNames.of_schema(destination)
    return Rules([proven.rule for proven in every], otherwise, *names, tuple(owner), tuple(reverse))


def _rules(
    template: Mapping[str, Any], source: KeySpace, destination: KeySpace
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
    rules = [_rule(item, n, separator, source, destination) for n, item in enumerate(items, 1)]
    names = [rule.name for rule in rules]
    if len(set(names)) < len(names):
        raise CannotStart("Two rules of the template have the same name: give each its own.")
    return rules, otherwise


def _rule(rule: Any, number: int, separator: str, source: KeySpace, destination: KeySpace) -> Parts:
    name = rule.get("name", f"number {number}") if isinstance(rule, Mapping) else ""
    if not isinstance(name, str) or not name:
        raise CannotStart(f"Rule number {number} of the template is no object with match and set.")
    if "otherwise" in rule:
        raise CannotStart("otherwise must be the last of the template's items.")
    _check_names(rule, _OF_RULE, f"Rule {name!r}")
    match, sets, keep = ({**_object(rule, part, name)} for part in ("match", "set", "keep"))
    source_types, destination_types = source.types, destination.types
    of_match: dict[str, Compiled] = {}
    types: dict[str, KeyType] = {}
    for attribute in [
        *source_types,
        *(extra for extra in match if extra not in source_types),
    ]:
        where = f"Rule {name!r}, match of {attribute!r}"
        key_type = source_types.get(attribute)
        if attribute in match:
            text = match[attribute]
            compiled_match = _value(text, _types_of(text, key_type), key_type, separator, where)
        else:
            compiled_match = whole(attribute, source_types[attribute])
        _bind(compiled_match, attribute, types, source_types, where)
        of_match[attribute] = compiled_match
    types = {**source_types, **types}
    for attribute, n in zip(destination_types, ("partition", "sort"), strict=False):
        if attribute not in sets:
            raise CannotStart(
                f"Rule {name!r} does not set {attribute!r}, the destination's {n} key: set it, "
                f"as {attribute}: '{{{attribute}}}' if it stays as it is."
            )
    of_sets = {
        attribute: _value(
            text,
            types,
            destination_types.get(attribute),
            separator,
            f"Rule {name!r}, set of {attribute!r}",
        )
        for attribute, text in sets.items()
    }
    _check_keep(keep, name, sets)
    names = KeyNames.of_schema(source), KeyNames.of_schema(destination)
    return Parts(name, *names, of_match, of_sets, keep)


def _value(
    content: Any,
    types: Mapping[str, KeyType],
    key_type: KeyType | None,
    separator: str,
    where: str,
) -> Compiled:
    """Compile a text with fields, or a constant."""
    try:
        if isinstance(content, str):
            return compiled(content, types, key_type, separator)
        constant = _constant(content)
        if key_type is not None and key_type not in constant:
            raise ValueError(f"the key is of type {key_type}")
    except ValueError as error:
        raise CannotStart(f"{where}: {error}.") from error
    return _of_constant(constant)


def _types_of(text: Any, key: KeyType | None) -> dict[str, KeyType]:
    """Return the types of a match's variables: texts, or the type of a lone key attribute."""
    try:
        parts = parsed(text) if isinstance(text, str) else []
    except ValueError:  # reported when the text is compiled
        return {}
    alone = key if len(parts) == 1 else None
    return {part.name: part.type or alone or "S" for part in parts if isinstance(part, Field)}


def _bind(
    match: Compiled,
    attribute: str,
    types: dict[str, KeyType],
    keys: Mapping[str, KeyType],
    where: str,
) -> None:
    """Add the types of the variables of a match to `types`."""
    for field in match.fields:
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


def _constant(content: Any) -> TypedValue:
    match content:
        case bool():
            return {"BOOL": content}
        case None:
            return {"NULL": True}
        case int() | float():
            return {"N": _number(content)}
    raise ValueError(f"it must be a text, a number, true, false or null, not {shown(content)}")


def _number(number: float) -> str:
    try:
        text = str(number)
    except ValueError:  # Python refuses to write so many digits
        raise ValueError("it is no number that DynamoDB keeps") from None
    if not is_number(text):
        raise ValueError(f"{text} is no number that DynamoDB keeps")
    return text


def _check_keep(keep: Mapping[str, Any], name: str, sets: Mapping[str, Any]) -> None:
    for attribute, new in keep.items():
        if not isinstance(new, str) or not new:
            raise CannotStart(
                f"Rule {name!r}: keep says under which name {attribute!r} is kept, not "
                f"{shown(new)}."
            )
        if new in sets:
            raise CannotStart(
                f"Rule {name!r} keeps {attribute!r} as {new!r}, which it also sets: take another "
                "name."
            )
    if len(set(keep.values())) < len(keep):
        raise CannotStart(f"Rule {name!r} keeps two attributes under one name.")


def _object(rule: Mapping[str, Any], part: str, name: str) -> Mapping[str, Any]:
    content = rule.get(part, {})
    if not isinstance(content, Mapping) or not all(
        isinstance(name_of_attribute, str) and name_of_attribute for name_of_attribute in content
    ):
        raise CannotStart(f"Rule {name!r}: {part} must be an object of attributes.")
    return content


def _check_names(content: Mapping[str, Any], allowed: Sequence[str], who: str) -> None:
    for name in content:
        if name not in allowed:
            suggestion = hint(str(name), allowed) or f"it may have {', '.join(allowed)}"
            raise CannotStart(f"{who} has an unknown {shown(name)}; {suggestion}.")
