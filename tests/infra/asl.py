"""An interpreter for the Choice, Pass, Fail and RaiseAlarm states that follow a failure.

A path that leads nowhere ends an execution on AWS with States.Runtime, and here with KeyError.
"""

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass
from fnmatch import fnmatchcase
from typing import Any

_CALL = re.compile(r"States\.(\w+)\((.*)\)")


@dataclass(frozen=True)
class End:
    """The last state of an execution, with its error and cause, and the number of alarms raised."""

    state: str
    error: str
    cause: str
    alarms: int = 0


def end_of(
    states: Mapping[str, Any], name: str, data: Any, context: Mapping[str, Any] | None = None
) -> End:
    """Follow the states from `name`, with its input, to the Fail state at the end."""
    alarms = 0
    while states[name]["Type"] != "Fail":
        state = states[name]
        if name == "RaiseAlarm":
            assert state["ResultPath"] is None, "the state goes on as it is"
            (catch,) = state["Catch"]
            assert (catch["Next"], catch["ResultPath"]) == (state["Next"], None)
            alarms += 1
            name = state["Next"]
            continue
        if state["Type"] == "Choice":
            rules = state["Choices"]
            matching = [rule["Next"] for rule in rules if _is_met(rule, data, context or {})]
            name = matching[0] if matching else state["Default"]
            continue
        assert state["Type"] == "Pass", state
        if "InputPath" in state:
            data = value_of(state["InputPath"], data, {})
        result = (
            parameters(state["Parameters"], data, context or {}) if "Parameters" in state else data
        )
        result_key = state.get("ResultPath", "$").removeprefix("$").removeprefix(".")
        data = {**data, result_key: result} if result_key else result
        name = state["Next"]
    error, cause = (_text(states[name], field, data) for field in ("Error", "Cause"))
    return End(name, error, cause, alarms)


def parameters(template: Any, data: Any, context: Mapping[str, Any]) -> Any:
    """Return a template with the values of its paths."""
    if not isinstance(template, dict):
        return template
    return {
        key.removesuffix(".$"): value_of(value, data, context)
        if key.endswith(".$")
        else parameters(value, data, context)
        for key, value in template.items()
    }


def value_of(expression: str, data: Any, context: Mapping[str, Any]) -> Any:
    """Return the value of a path or of a call of an intrinsic function."""
    call = _CALL.fullmatch(expression)
    if call is None:
        return (
            _at(expression[1:], context) if expression.startswith("$$") else _at(expression, data)
        )
    function, arguments = call.groups()
    if function == "Format":
        text, paths = re.fullmatch(r"'([^']*)'((?:, \$[\w.]+)*)", arguments).groups()  # type: ignore[union-attr]
        values = [value_of(path, data, context) for path in paths.split(", ")[1:]]
        assert text.count("{}") == len(values)
        assert all(isinstance(value, str) for value in values)
        return text.format(*values)
    value = value_of(arguments, data, context)
    return {"StringToJson": json.loads, "JsonToString": json.dumps}[function](value)


def _at(path: str, data: Any) -> Any:
    for part in path.removeprefix("$").split(".")[1:]:
        data = data[part]
    return data


def _is_met(rule: Mapping[str, Any], data: Any, context: Mapping[str, Any]) -> bool:
    if "And" in rule:
        return all(_is_met(part, data, context) for part in rule["And"])
    if "Or" in rule:
        return any(_is_met(part, data, context) for part in rule["Or"])
    if "IsPresent" in rule:
        try:
            value_of(rule["Variable"], data, context)
        except KeyError:
            return not rule["IsPresent"]
        return bool(rule["IsPresent"])
    value = value_of(rule["Variable"], data, context)
    if "BooleanEquals" in rule:
        return bool(value is rule["BooleanEquals"])
    if "StringMatches" in rule:
        assert not set(rule["StringMatches"]) & set("[]?\\"), "which fnmatch would read"
        return fnmatchcase(value, rule["StringMatches"])
    return bool(value == rule["StringEquals"])


def _text(state: Mapping[str, Any], field: str, data: Any) -> str:
    """Return a field of a Fail state, which must be a string; its path cannot use the context."""
    text = value_of(state[f"{field}Path"], data, {}) if f"{field}Path" in state else state[field]
    assert isinstance(text, str)
    return text
