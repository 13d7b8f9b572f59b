"""JSON Schemas (2020-12) of the shapes of inputs and outputs.

An input is a dataclass whose fields have checks (keyhop.checks), from which its schema is made. An
output is a TypedDict (outputs.py), or a dataclass of a report, whose infinite numbers are null.
`Annotated[int, "..."]` describes a field.
"""

import dataclasses
from collections.abc import Mapping
from types import NoneType, UnionType
from typing import (
    Annotated,
    Any,
    Literal,
    NotRequired,
    Required,
    Union,
    get_args,
    get_origin,
    get_type_hints,
    is_typeddict,
)

from keyhop.checks import STARTED_BY, Must, camel

Schema = dict[str, Any]
IGNORED = {"description": "Step Functions puts it there; ignored."}
_PLAIN = {str: "string", int: "integer", float: "number", bool: "boolean", NoneType: "null"}


class NotDescribed(Exception):
    """A field has no check, or no description."""


def of_input(shape: type, required: tuple[str, ...], rules: list[Schema]) -> Schema:
    """Return the schema of a dataclass.

    required: The fields that are required although they have a default.
    rules: Schemas of the combinations of fields that are allowed.
    """
    hints = get_type_hints(shape, include_extras=True)
    fields = {camel(field.name): field for field in dataclasses.fields(shape)}
    schema: Schema = {
        "type": "object",
        "properties": {name: _of_field(field, hints[field.name]) for name, field in fields.items()},
        "required": [n for n, f in fields.items() if f.default is dataclasses.MISSING]
        + [*required],
        "additionalProperties": False,
    }
    schema["properties"][STARTED_BY] = IGNORED
    return {**schema, "allOf": rules} if rules else schema


def _of_field(field: "dataclasses.Field[Any]", hint: Any) -> Schema:
    must, *meaning = hint.__metadata__
    if not isinstance(must, Must) or not meaning:
        raise NotDescribed(
            f"{field.name}: write Annotated[type, Must(check, be), meaning] (keyhop/checks.py)"
        )
    schema = {**getattr(must.check, "schema", {}), "description": f"{meaning[0]} ({must.be})"}
    if field.default not in (dataclasses.MISSING, None):
        schema["default"] = field.default
    return schema


def of_output(type_: Any, strict: bool = False) -> Schema:
    """Return the schema of a TypedDict, a dataclass, or the type of a field of one.

    A strict schema, for tests, allows no other fields. Readers of outputs must accept new fields.
    """
    if type_ is Any:
        return {}
    if type_ in _PLAIN:
        return {"type": _PLAIN[type_]}
    if is_typeddict(type_):
        hints = get_type_hints(type_, include_extras=True)
        schema: Schema = {
            "type": "object",
            "properties": {name: of_output(hint, strict) for name, hint in hints.items()},
            "required": sorted(type_.__required_keys__),
        }
        return {**schema, "additionalProperties": False} if strict else schema
    if dataclasses.is_dataclass(type_):
        hints = get_type_hints(type_, include_extras=True)
        properties = {name: _or_null(of_output(hint, strict)) for name, hint in hints.items()}
        schema = {"type": "object", "properties": properties, "required": sorted(hints)}
        return {**schema, "additionalProperties": False} if strict else schema
    origin, arguments = get_origin(type_), get_args(type_)
    if origin is Annotated:
        return {**of_output(arguments[0], strict), "description": arguments[1]}
    if origin in (NotRequired, Required):
        return of_output(arguments[0], strict)
    if origin is Literal:
        return {"enum": [*arguments]}
    if origin in (Union, UnionType):
        return _either([of_output(argument, strict) for argument in arguments])
    if origin in (list, tuple):
        return {"type": "array", "items": of_output(arguments[0], strict)}
    if origin in (dict, Mapping):
        return {"type": "object", "additionalProperties": of_output(arguments[1], strict)}
    raise TypeError(f"no schema for {type_}")


def _or_null(schema: Schema) -> Schema:
    """Return the schema with null for numbers, because JSON has no infinity."""
    if schema.get("type") == "number":
        return {**schema, "type": ["number", "null"]}
    values = schema.get("additionalProperties")
    return {**schema, "additionalProperties": _or_null(values)} if values else schema


def _either(schemas: list[Schema]) -> Schema:
    if all(schema.keys() == {"type"} for schema in schemas):
        return {"type": [schema["type"] for schema in schemas]}
    return {"anyOf": schemas}
