"""Replace random and time-dependent values, and format JSON with one line per entry.

This module uses no project code.
"""

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
    *("planning_seconds", "worker_seconds", "invocations", "strong_reads"),
    *("write_units", "write_requests", "age_seconds"),
}
"""The names of numbers that depend on time, or that a better way of reading may change."""
UNORDERED = {"missing", "surplus", "late", "occupied", "DependsOn"}
"""The names of lists without a guaranteed order: examples of keys, and dependencies."""
HIDDEN = {"attempt", "worker", "software_version", "identity"}
"""The names of texts that differ between runs or versions."""


def text(value: str) -> str:
    """Replace the random parts of a text."""
    for pattern, name in RANDOM:
        value = re.sub(pattern, name, value)
    return value


def normal(value: Any, name: str = "") -> Any:
    """Replace the random values in JSON, and replace varying numbers with <number>."""
    if isinstance(value, Mapping):
        if name == "cost":
            return shape([value])
        return {text(str(key)): normal(item, str(key)) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return sorted(map(normal, value), key=repr) if name in UNORDERED else [*map(normal, value)]
    if name in VARYING and isinstance(value, int | float) and not isinstance(value, bool):
        return "<number>"
    if name in HIDDEN and value:
        return f"<{name}>"
    return text(value) if isinstance(value, str) else value


def shape(values: list[Any]) -> Any:
    """Return the common structure of values: names and types, with numeric names merged."""
    if values and all(isinstance(value, Mapping) for value in values):
        values_by_name: dict[str, list[Any]] = {}
        for value in values:
            for key, item in value.items():
                values_by_name.setdefault("<n>" if str(key).isdigit() else key, []).append(item)
        return {key: shape(values_by_name[key]) for key in sorted(values_by_name)}
    if values and all(isinstance(value, list) for value in values):
        inner = [item for value in values for item in value]
        return [shape(inner)] if inner else []
    types = {"null" if value is None else type(value).__name__ for value in values}
    return " or ".join(sorted(types))


def pattern_of(path: str) -> str:
    """Return the name of a file without numbers and random parts."""
    return re.sub(r"\d+(?=[-./]|$)", "<n>", text(path))


def dump(value: Any, depth: int, indent: str = "") -> str:
    """Format JSON with sorted names; below `depth`, each entry is one line."""
    if depth and value and isinstance(value, Mapping):
        items = (
            f"{indent} {json.dumps(name)}: {dump(value[name], depth - 1, indent + ' ')}"
            for name in sorted(value)
        )
        return "{\n" + ",\n".join(items) + f"\n{indent}}}"
    if depth and value and isinstance(value, list):
        items = (f"{indent} {dump(item, depth - 1, indent + ' ')}" for item in value)
        return "[\n" + ",\n".join(items) + f"\n{indent}]"
    return json.dumps(value, sort_keys=True, ensure_ascii=False)
