"""Data classes as plain JSON, in files from one function to a later one. Pure.

The rows and the facts of a sample are in the files of its run, the facts of other sources in files
of the report's run. The public form is in the report (pages/). JSON has no infinity, and no names
but texts: a quantile is "0.5", and an entry whose name is a tuple is a pair.
"""

import math
from collections.abc import Mapping
from functools import cache
from typing import TYPE_CHECKING, Any, TypeVar, get_args, get_origin

from keyhop.report.estimate import Estimate
from keyhop.report.facts import Absent

if TYPE_CHECKING:
    from cattrs import Converter

T = TypeVar("T")


def to_json(value: object, compact: bool = False) -> Any:
    """Return a data class as plain JSON; without the names of its fields if it is compact.

    In the compact form, a class of which there are thousands may have its own to_row and from_row.
    """
    return _converter(compact).unstructure(value)


def from_json(shape: type[T], state: Any, compact: bool = False) -> T:
    """Reverse `to_json`."""
    return _converter(compact).structure(state, shape)


def source_json(facts: object) -> dict[str, Any]:
    """Return a source's facts, or its absence, as plain JSON."""
    kind = "absent" if isinstance(facts, Absent) else "seen"
    return {kind: to_json(facts)}


def source_of(shape: type[T], state: Mapping[str, Any] | None) -> T | Absent:
    """Reverse `source_json`. None means that the source was not read."""
    if state is None:
        return Absent("It was not looked at.")
    if "absent" in state:
        return from_json(Absent, state["absent"])
    return from_json(shape, state["seen"])


@cache
def _converter(compact: bool) -> "Converter":
    from cattrs import Converter, UnstructureStrategy

    strategy = UnstructureStrategy.AS_TUPLE if compact else UnstructureStrategy.AS_DICT
    converter = Converter(unstruct_strat=strategy, detailed_validation=False)

    def is_mapping_by(kind: type) -> Any:
        def has_names(type_: Any) -> bool:
            names = get_args(type_)[:1]
            is_mapping = get_origin(type_) is Mapping and bool(names)
            return is_mapping and (get_origin(names[0]) or names[0]) is kind

        return has_names

    def to_pairs(mapping: Mapping[Any, Any]) -> list[Any]:
        return [[list(names), converter.unstructure(value)] for names, value in mapping.items()]

    def to_texts(mapping: Mapping[Any, Any]) -> dict[str, Any]:
        return {str(number): converter.unstructure(value) for number, value in mapping.items()}

    def from_pairs(pairs: Any, type_: Any) -> dict[Any, Any]:
        names, values = get_args(type_)
        return {
            converter.structure(name, names): converter.structure(value, values)
            for name, value in pairs
        }

    converter.register_unstructure_hook(Estimate, Estimate.to_json)
    converter.register_structure_hook(Estimate, lambda state, _: Estimate.from_json(state))
    converter.register_unstructure_hook(
        float, lambda number: number if math.isfinite(number) else str(number)
    )
    converter.register_structure_hook(float | str | None, lambda state, _: state)
    if compact:
        converter.register_unstructure_hook_func(
            lambda kind: hasattr(kind, "to_row"), lambda value: value.to_row()
        )
        converter.register_structure_hook_func(
            lambda kind: hasattr(kind, "from_row"), lambda state, kind: kind.from_row(state)
        )
    converter.register_unstructure_hook_func(is_mapping_by(float), to_texts)
    converter.register_unstructure_hook_func(is_mapping_by(tuple), to_pairs)
    converter.register_structure_hook_func(is_mapping_by(tuple), from_pairs)
    return converter
