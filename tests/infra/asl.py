"""What follows a failure in a definition: Choice, Pass and Fail states and RaiseAlarm, as strict
as AWS.

A path that leads nowhere ends an execution of AWS with States.Runtime, and here with KeyError.
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
    """state: the last one, whose error and cause are the execution's. alarms: how often RaiseAlarm
    was passed.
    """

    state: str
    error: str
    cause: str
    alarms: int = 0


def end_of(
    states: Mapping[str, Any], name: str, given: Any, context: Mapping[str, Any] | None = None
) -> End:
    """From the state `name`, with its input, to the Fail state that it leads to."""
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
            matching = [rule["Next"] for rule in rules if _is_met(rule, given, context or {})]
            name = matching[0] if matching else state["Default"]
            continue
        assert state["Type"] == "Pass", state
        if "InputPath" in state:
            given = value_of(state["InputPath"], given, {})
        made = (
            parameters(state["Parameters"], given, context or {})
            if "Parameters" in state
            else given
        )
        where = state.get("ResultPath", "$").removeprefix("$").removeprefix(".")
        given = {**given, where: made} if where else made
        name = state["Next"]
    error, cause = (_told(states[name], field, given) for field in ("Error", "Cause"))
    return End(name, error, cause, alarms)


def parameters(template: Any, given: Any, context: Mapping[str, Any]) -> Any:
    """A template, with what its paths lead to."""
    if not isinstance(template, dict):
        return template
    return {
        key.removesuffix(".$"): value_of(value, given, context)
        if key.endswith(".$")
        else parameters(value, given, context)
        for key, value in template.items()
    }


def value_of(expression: str, given: Any, context: Mapping[str, Any]) -> Any:
    """What a path, or a call of an intrinsic function, comes to."""
    call = _CALL.fullmatch(expression)
    if call is None:
        return (
            _at(expression[1:], context) if expression.startswith("$$") else _at(expression, given)
        )
    function, arguments = call.groups()
    if function == "Format":
        text, paths = re.fullmatch(r"'([^']*)'((?:, \$[\w.]+)*)", arguments).groups()  # type: ignore[union-attr]
        values = [value_of(path, given, context) for path in paths.split(", ")[1:]]
        assert text.count("{}") == len(values)
        assert all(isinstance(value, str) for value in values)
        return text.format(*values)
    value = value_of(arguments, given, context)
    return {"StringToJson": json.loads, "JsonToString": json.dumps}[function](value)


def _at(path: str, given: Any) -> Any:
    for part in path.removeprefix("$").split(".")[1:]:
        given = given[part]
    return given


def _is_met(rule: Mapping[str, Any], given: Any, context: Mapping[str, Any]) -> bool:
    if "And" in rule:
        return all(_is_met(one, given, context) for one in rule["And"])
    if "Or" in rule:
        return any(_is_met(one, given, context) for one in rule["Or"])
    if "IsPresent" in rule:
        try:
            value_of(rule["Variable"], given, context)
        except KeyError:
            return not rule["IsPresent"]
        return bool(rule["IsPresent"])
    value = value_of(rule["Variable"], given, context)
    if "BooleanEquals" in rule:
        return bool(value is rule["BooleanEquals"])
    if "StringMatches" in rule:
        assert not set(rule["StringMatches"]) & set("[]?\\"), "which fnmatch would read"
        return fnmatchcase(value, rule["StringMatches"])
    return bool(value == rule["StringEquals"])


def _told(state: Mapping[str, Any], field: str, given: Any) -> str:
    """What a Fail state says, which must be a text; it sees no context."""
    told = value_of(state[f"{field}Path"], given, {}) if f"{field}Path" in state else state[field]
    assert isinstance(told, str)
    return told
