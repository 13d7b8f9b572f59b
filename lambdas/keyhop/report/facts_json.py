"""What a sample has found as plain JSON, and back: so a function can hand it to the next. Pure."""

import math
from collections.abc import Mapping
from functools import cache
from typing import Any

from keyhop.report.estimate import Estimate
from keyhop.report.facts import SampleFacts


def estimate_of(state: Mapping[str, Any]) -> Estimate:
    """The inverse of Estimate.to_json: no upper end is an infinite one."""
    high = math.inf if state["high"] is None else state["high"]
    return Estimate(state["value"], state["low"], high, state["n"], state["method"], state["level"])


def sample_json(facts: SampleFacts) -> dict[str, Any]:
    """As plain JSON, whose objects have texts for names: a quantile is "0.5"."""
    state: dict[str, Any] = _converter().unstructure(facts)
    return state


def sample_of(state: Mapping[str, Any]) -> SampleFacts:
    """The inverse of `sample_json`."""
    facts: SampleFacts = _converter().structure(state, SampleFacts)
    return facts


@cache
def _converter() -> Any:
    from cattrs import Converter

    converter = Converter(detailed_validation=False)
    converter.register_unstructure_hook(Estimate, Estimate.to_json)
    converter.register_structure_hook(Estimate, lambda state, _: estimate_of(state))
    converter.register_unstructure_hook(float, lambda one: one)
    converter.register_unstructure_hook_func(
        lambda type_: (
            getattr(type_, "__args__", ())[:1] == (float,)
            and getattr(type_, "__origin__", None) is Mapping
        ),
        lambda by_number: {
            str(number): converter.unstructure(one) for number, one in by_number.items()
        },
    )
    return converter
