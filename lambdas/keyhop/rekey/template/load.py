"""Read a template and make a Transform of it; messages about a wrong template are here.

    {"separator": "#", "items": [{"name", "match", "set", "keep"}, ..., {"otherwise": "refuse"}]}
    {"transform": "file.py:forward", "inverse": "file.py:backward", "keep": {...}, "reads": [...]}

The functions of the second kind are executed only if their text is the trusted one.
"""

import json
from collections.abc import Mapping, Sequence
from decimal import Decimal
from itertools import chain
from pathlib import Path
from typing import Any

from keyhop.checks import check_characters, hint, shown
from keyhop.dynamodb.schema import KeySpace
from keyhop.dynamodb.values import KeyType, TypedValue, is_number
from keyhop.errors import CannotStart
from keyhop.rekey.template.functions import loaded
from keyhop.rekey.template.rules import Rules, WrittenRule, proved
from keyhop.rekey.transform import KeyNames, Transform
from keyhop.template import Compiled, Field, compiled, parsed, whole

OTHERWISE = ("refuse", "copy", "skip")
"""The treatment of an item that no rule matches; the first one is the default."""
_OF_RULE = ("name", "match", "set", "keep")


def read(path: Path) -> tuple[dict[str, Any], str]:
    """Read a template's file, and the file with functions that it may name, without executing them.

    Return the template as a JSON object, and the text of the functions' file beside it, if any.
    The suffix .json means JSON, any other YAML. Raise CannotStart for a file that is not valid.
    """
    text = text_of(path)
    try:
        content = json.loads(text) if path.suffix == ".json" else _of_yaml(text)
        check_characters(content)
    except ValueError as error:
        raise CannotStart(f"{str(path)!r} is not a template: {error}.") from error
    except RecursionError as error:
        raise CannotStart(f"{str(path)!r} is not a template: it is nested too deeply.") from error
    if not isinstance(content, dict):
        raise CannotStart(f"{str(path)!r} is not a template: it has no object with items.")
    file, _, _ = str(content.get("transform", "")).partition(":")
    if not file:
        return content, ""
    if Path(file).name != file:
        raise CannotStart(
            f"The file {file!r} of the transform must be in the folder of the template."
        )
    return content, text_of(path.parent / file)


def _of_yaml(text: str) -> Any:
    import yaml  # not in the functions' layer, where a template comes from the plan

    try:
        content = yaml.safe_load(text)
        text = json.dumps(content, allow_nan=False)  # as in the plan: no dates, no cycles
    except (yaml.YAMLError, TypeError) as error:
        line = getattr(error, "problem_mark", None)
        if "'\\t'" in (getattr(error, "problem", None) or "") and line:
            raise ValueError(
                f"line {line.line + 1} has a tab where YAML expects spaces: indent with spaces"
            ) from error
        where = f" in line {line.line + 1}" if line else ""
        raise ValueError(f"it is not YAML that JSON can hold{where}") from error
    _check_names_are_strings(content)
    return json.loads(text)


def _check_names_are_strings(content: Any) -> None:
    """Raise ValueError for a name that is not a string: YAML reads No and on as booleans."""
    if isinstance(content, dict) and not all(isinstance(name, str) for name in content):
        raise ValueError(
            "a name in it is not a text for YAML: put names such as No and on, and numbers, in "
            "quotes"
        )
    elements = content.values() if isinstance(content, dict) else content
    for element in elements if isinstance(content, dict | list) else ():
        _check_names_are_strings(element)


def text_of(path: Path) -> str:
    """Return the text of a file, or raise CannotStart."""
    try:
        return path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise CannotStart(f"The file {str(path)!r} cannot be read: {error}.") from error


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
            "The template copies items that match no rule, but the keys of the tables differ in "
            "names or types: write a rule for these items, or otherwise: skip."
        )
    owner = chain.from_iterable(rule.owner_attributes for rule in every)
    reverse = chain.from_iterable(rule.reverse_owner_attributes for rule in every)
    names = KeyNames.of_schema(source), KeyNames.of_schema(destination)
    return Rules(
        every, otherwise, *names, tuple(dict.fromkeys(owner)), tuple(dict.fromkeys(reverse))
    )


def _rules(
    template: Mapping[str, Any], source: KeySpace, destination: KeySpace
) -> tuple[list[WrittenRule], str]:
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
        raise CannotStart(
            "Two rules of the template have the same name: give them different names."
        )
    return rules, otherwise


def _rule(
    rule: Any, number: int, separator: str, source: KeySpace, destination: KeySpace
) -> WrittenRule:
    name = rule.get("name", f"number {number}") if isinstance(rule, Mapping) else ""
    if not isinstance(name, str) or not name:
        raise CannotStart(
            f"Rule number {number} of the template is not an object with match and set."
        )
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
    return WrittenRule(name, *names, of_match, of_sets, keep)


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
                f"{where}: {{{field.field.shown}}} names the value that stands there, so it is "
                "one name, without a default."
            )
        type_ = field.bound_type
        if field.undo is None or type_ is None:
            raise CannotStart(f"{where}: {{{name}}} can have the filters pad, num and str only.")
        if name in keys and name != attribute:
            raise CannotStart(f"{where}: {name!r} is a key of the source: choose another name.")
        if types.setdefault(name, type_) != type_:
            raise CannotStart(f"{where}: {name!r} has another type than earlier in the template.")


def _of_constant(constant: TypedValue) -> Compiled:
    ((type_, content),) = constant.items()

    def split(value: TypedValue) -> Sequence[Any] | None:
        if type_ not in value:
            return None
        same = Decimal(value["N"]) == Decimal(content) if type_ == "N" else value == constant
        return () if same else None

    return Compiled((), lambda _scope: constant, split, type_, constant=content)


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
        raise ValueError("it is not a number that DynamoDB keeps") from None
    if not is_number(text):
        raise ValueError(f"{text} is not a number that DynamoDB keeps")
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
                f"Rule {name!r} keeps {attribute!r} as {new!r}, which it also sets: choose "
                "another name."
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
