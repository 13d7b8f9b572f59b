"""What is random or bound to time, replaced; JSON with a line for each entry. No project code."""

import json
import re
from collections.abc import Mapping
from typing import Any

RANDOM = (
    (r"(/[\w.-]+)+/keyhop/key-index/[\w.-]+/?", "<registry>"),
    (r"\b[0-9a-f]{64}\b", "<sha256>"),
    (r"\b[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}\b", "<uuid>"),
    (r"\b[0-9a-f]{32}\b", "<id>"),
    (r"(?<=-)[0-9a-f]{12}\b", "<attempt>"),
    (r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d[0-9.]*(Z|[+-]\d\d:?\d\d)?", "<time>"),
    (r"http://(127\.0\.0\.1|localhost):\d{4,}", "<endpoint>"),
)
VARYING = {
    *("requests", "items_read", "read_units", "no_progress_hops", "retries", "seconds", "dollars"),
    *(
        "planning_seconds",
        "worker_seconds",
        "invocations",
        "strong_reads",
        "write_units",
        "write_requests",
        "age_seconds",
    ),
}
"""Names of numbers that depend on time, or that a better way of reading may change."""
UNORDERED = {"missing", "surplus", "late", "occupied", "DependsOn"}
"""Names of lists whose order is not promised: examples of keys, what CloudFormation makes first."""
HIDDEN = {"attempt", "worker", "software_version", "identity"}
"""Names of texts that no other run, or no other version, has."""


def text(said: str) -> str:
    """A text without what is random in it."""
    for pattern, name in RANDOM:
        said = re.sub(pattern, name, said)
    return said


def normal(value: Any, name: str = "") -> Any:
    """JSON without what is random; numbers that vary become <number>."""
    if isinstance(value, Mapping):
        if name == "cost":
            return shape([value])
        return {text(str(key)): normal(one, str(key)) for key, one in value.items()}
    if isinstance(value, list | tuple):
        return sorted(map(normal, value), key=repr) if name in UNORDERED else [*map(normal, value)]
    if name in VARYING and isinstance(value, int | float) and not isinstance(value, bool):
        return "<number>"
    if name in HIDDEN and value:
        return f"<{name}>"
    return text(value) if isinstance(value, str) else value


def shape(values: list[Any]) -> Any:
    """What values have in common: names and types; numbers as names are one name."""
    if values and all(isinstance(value, Mapping) for value in values):
        named: dict[str, list[Any]] = {}
        for value in values:
            for key, one in value.items():
                named.setdefault("<n>" if str(key).isdigit() else key, []).append(one)
        return {key: shape(named[key]) for key in sorted(named)}
    if values and all(isinstance(value, list) for value in values):
        inner = [one for value in values for one in value]
        return [shape(inner)] if inner else []
    return " or ".join(sorted({"null" if v is None else type(v).__name__ for v in values}))


def pattern_of(path: str) -> str:
    """A file's name without numbers and random parts."""
    return re.sub(r"\d+(?=[-./]|$)", "<n>", text(path))


def dump(value: Any, depth: int, indent: str = "") -> str:
    """JSON with sorted names, opened to `depth`: below that, an entry is one line."""
    if depth and value and isinstance(value, Mapping):
        items = (
            f"{indent} {json.dumps(name)}: {dump(value[name], depth - 1, indent + ' ')}"
            for name in sorted(value)
        )
        return "{\n" + ",\n".join(items) + f"\n{indent}}}"
    if depth and value and isinstance(value, list):
        items = (f"{indent} {dump(one, depth - 1, indent + ' ')}" for one in value)
        return "[\n" + ",\n".join(items) + f"\n{indent}]"
    return json.dumps(value, sort_keys=True, ensure_ascii=False)
