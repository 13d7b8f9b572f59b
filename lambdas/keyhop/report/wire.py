"""The facts of a source as JSON, from one state of ReportKeys to a later one. Pure.

The JSON is in a file of a run between two functions. The public form is in the report (pages/).
"""

import math
from collections.abc import Mapping
from functools import cache
from typing import TYPE_CHECKING, Any, TypeVar, get_args, get_origin

from keyhop.report.facts import Absent

if TYPE_CHECKING:
    from cattrs import Converter

T = TypeVar("T")


def told(facts: object) -> dict[str, Any]:
    """Return a source's facts, or its absence, as plain JSON."""
    kind = "absent" if isinstance(facts, Absent) else "seen"
    return {kind: _converter().unstructure(facts)}


def seen(shape: type[T], content: Mapping[str, Any] | None) -> T | Absent:
    """Return facts from their JSON; None means that the source was not read."""
    if content is None:
        return Absent("It was not looked at.")
    if "absent" in content:
        return _converter().structure(content["absent"], Absent)
    return _converter().structure(content["seen"], shape)


def _is_keyed_by_tuples(type_: Any) -> bool:
    names = get_args(type_)
    return get_origin(type_) is Mapping and len(names) == 2 and get_origin(names[0]) is tuple


@cache
def _converter() -> "Converter":
    from cattrs import Converter

    converter = Converter()
    # JSON has no infinity, and no keys but texts.
    converter.register_unstructure_hook(
        float, lambda number: number if math.isfinite(number) else str(number)
    )
    converter.register_unstructure_hook_factory(
        _is_keyed_by_tuples,
        lambda type_: (
            lambda mapping: [
                [list(key), converter.unstructure(value, get_args(type_)[1])]
                for key, value in mapping.items()
            ]
        ),
    )
    converter.register_structure_hook_factory(
        _is_keyed_by_tuples,
        lambda type_: (
            lambda pairs, _: {
                converter.structure(key, get_args(type_)[0]): converter.structure(
                    value, get_args(type_)[1]
                )
                for key, value in pairs
            }
        ),
    )
    return converter
