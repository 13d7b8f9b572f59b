"""The facts of a sample as plain JSON, to pass them from function to function. Pure."""

import math
from collections.abc import Mapping
from functools import cache
from typing import Any

from keyhop.report.estimate import Estimate
from keyhop.report.facts import SampleFacts


def estimate_of(state: Mapping[str, Any]) -> Estimate:
    """Reverse Estimate.to_json, where null is an infinite end."""
    high = math.inf if state["high"] is None else state["high"]
    return Estimate(state["value"], state["low"], high, state["n"], state["method"], state["level"])


def sample_json(facts: SampleFacts) -> dict[str, Any]:
    """Return facts as plain JSON. Object names are texts, so a quantile is "0.5"."""
    state: dict[str, Any] = _converter().unstructure(facts)
    return state


def sample_of(state: Mapping[str, Any]) -> SampleFacts:
    """Reverse `sample_json`."""
    facts: SampleFacts = _converter().structure(state, SampleFacts)
    return facts


@cache
def _converter() -> Any:
    from cattrs import Converter

    converter = Converter(detailed_validation=False)
    converter.register_unstructure_hook(Estimate, Estimate.to_json)
    converter.register_structure_hook(Estimate, lambda state, _: estimate_of(state))
    converter.register_unstructure_hook(float, lambda number: number)
    converter.register_unstructure_hook_func(
        lambda type_: (
            getattr(type_, "__args__", ())[:1] == (float,)
            and getattr(type_, "__origin__", None) is Mapping
        ),
        lambda by_number: {
            str(number): converter.unstructure(value) for number, value in by_number.items()
        },
    )
    return converter
