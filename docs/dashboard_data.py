"""The metrics that CloudWatch would derive from reported ones, as far as our dashboard needs them.
Pure.

Metrics come from lines of the embedded metric format. Expressions of metric math and of Logs
Insights are parsed with Python's own grammar, which is the same where the dashboard uses them.
"""

import ast
import json
import operator
import re
from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any

Series = dict[int, float]
"""Values by the beginning of their period, in seconds since 1970."""
Value = Series | float
Dimensions = frozenset[tuple[str, str]]

_OPERATORS: dict[type[ast.operator], Callable[[float, float], float]] = {
    ast.Add: operator.add,
    ast.Sub: operator.sub,
    ast.Mult: operator.mul,
    ast.Div: operator.truediv,
}
_STATISTICS: dict[str, Callable[[Iterable[float]], float]] = {"Sum": sum, "Maximum": max}


@dataclass
class Metrics:
    """All that a run's lines report. records: each line, with "timestamp" in seconds."""

    records: list[dict[str, Any]]

    @staticmethod
    def of(lines: Iterable[str]) -> "Metrics":
        records = [json.loads(line) for line in lines if line.strip()]
        for record in records:
            record["timestamp"] = record["_aws"]["Timestamp"] / 1000
        return Metrics(sorted(records, key=lambda one: float(one["timestamp"])))

    @property
    def span(self) -> tuple[int, int]:
        """From a full five minutes to the minute of the last line."""
        first, last = self.records[0]["timestamp"], self.records[-1]["timestamp"]
        return int(first // 300) * 300, int(last // 60) * 60

    def series(self, name: str, wanted: Dimensions, statistic: str, period: int) -> Series:
        """One metric, by its name and all of its dimensions."""
        found: dict[int, list[float]] = defaultdict(list)
        for record in self.records:
            for told in record["_aws"]["CloudWatchMetrics"]:
                named = name in [one["Name"] for one in told["Metrics"]]
                sets = [frozenset((key, record[key]) for key in one) for one in told["Dimensions"]]
                if named and wanted in sets:
                    found[int(record["timestamp"] // period) * period] += record[name]
        return {at: _STATISTICS[statistic](values) for at, values in sorted(found.items())}

    def search(self, expression: str, period: int) -> dict[str, Series]:
        """What a SEARCH over one namespace finds, by the values of what it leaves open."""
        schema = re.findall(r"[\w]+", re.findall(r"\{\"[^\"]*\",([^}]*)\}", expression)[0])
        fixed = dict(re.findall(r"(\w+)=\"([^\"]*)\"", expression))
        name = fixed.pop("MetricName")
        (open_,) = [one for one in schema if one not in fixed]
        found = sorted({one[open_] for one in self.records if name in one and open_ in one})
        return {
            value: self.series(name, frozenset({**fixed, open_: value}.items()), "Sum", period)
            for value in found
        }

    def drawn(self, widget: Mapping[str, Any]) -> list[tuple[str, str, Series]]:
        """The lines of a metric widget: axis (left, right), label, values; without empty ones."""
        metrics = widget["metrics"]
        inputs: dict[str, Series] = {}
        periods: dict[str, int] = {}
        for one in metrics:
            *names, options = one if isinstance(one[-1], dict) else [*one, {}]
            if names and "id" in options:
                name = options["id"]
                periods[name] = options.get("period", 300)
                inputs[name] = self._named(names, options)
        lines = []
        for one in metrics:
            *names, options = one if isinstance(one[-1], dict) else [*one, {}]
            axis = options.get("yAxis", "left")
            if options.get("visible") is False:
                continue
            text = options.get("expression", "")
            if text.startswith("SEARCH("):
                found = self.search(text, options.get("period", 300))
                lines += [(axis, label, values) for label, values in found.items()]
            elif text:
                period = options.get("period", 300)
                values = self._evaluated(text, inputs, period)
                lines.append((axis, options.get("label", text), values))
            else:
                lines.append((axis, options.get("label", names[1]), self._named(names, options)))
        return [(axis, label, values) for axis, label, values in lines if values]

    def _named(self, names: list[str], options: Mapping[str, Any]) -> Series:
        _, name, *pairs = names
        dimensions = frozenset(zip(pairs[::2], pairs[1::2], strict=True))
        statistic = options.get("stat", "Average")
        return self.series(name, dimensions, statistic, options.get("period", 300))

    def _evaluated(self, text: str, inputs: Mapping[str, Series], period: int) -> Series:
        first, last = self.span
        everywhere = range(first // period * period, last + 1, period)

        def value(node: ast.AST) -> Value:
            if isinstance(node, ast.Constant):
                return float(node.value)  # type: ignore[arg-type]
            if isinstance(node, ast.Name):
                return inputs[node.id]
            if isinstance(node, ast.BinOp):
                return _combined(_OPERATORS[type(node.op)], value(node.left), value(node.right))
            assert isinstance(node, ast.Call)
            assert isinstance(node.func, ast.Name)
            series, *more = map(value, node.args)
            assert isinstance(series, dict)
            match node.func.id:
                case "PERIOD":
                    return float(period)
                case "FILL":
                    (filling,) = more
                    assert isinstance(filling, float)
                    # Of a metric that was never reported CloudWatch has nothing to fill.
                    return {at: series.get(at, filling) for at in everywhere} if series else {}
                case "RUNNING_SUM":
                    total = 0.0
                    return {at: (total := total + one) for at, one in series.items()}
            raise ValueError(f"{node.func.id} is not known here")

        found = value(ast.parse(text, mode="eval").body)
        assert isinstance(found, dict)
        return found

    def listed(self, query: str) -> list[dict[str, Any]]:
        """The rows of a query of Logs Insights: filter by equals and ispresent, stats, sort."""
        rows = [one for one in self.records if _passes(one, _command(query, "filter"))]
        stats, _, by = _command(query, "stats").rpartition(" by ")
        groups: dict[str, list[dict[str, Any]]] = defaultdict(list)
        for row in rows:
            groups[row[by]].append(row)
        columns = [one.rpartition(" as ")[::2] for one in stats.split(", ")]
        table = [
            {by: name, **{column: _over(text, group) for text, column in columns}}
            for name, group in groups.items()
        ]
        column, _ = _command(query, "sort").split()
        return sorted(table, key=lambda row: -row[column])


def _combined(how: Callable[[float, float], float], one: Value, other: Value) -> Value:
    """At the times that both have; a division by zero has no value."""
    if isinstance(one, float) and isinstance(other, float):
        return how(one, other)
    times = [*one] if isinstance(one, dict) else [*other]  # type: ignore[misc]
    at = [time for time in times if all(time in v for v in (one, other) if isinstance(v, dict))]
    found = {}
    for time in at:
        left, right = (v[time] if isinstance(v, dict) else v for v in (one, other))
        if how is not operator.truediv or right:
            found[time] = how(left, right)
    return found


def _command(query: str, name: str) -> str:
    (text,) = [one[len(name) :] for one in re.split(r"\n?\| ", query) if one.startswith(name)]
    return text.strip()


def _passes(record: Mapping[str, Any], conditions: str) -> bool:
    for condition in conditions.split(" and "):
        present = re.fullmatch(r"ispresent\((\w+)\)", condition)
        if present:
            if present[1] not in record:
                return False
        else:
            name, _, wanted = condition.partition(" = ")
            if record.get(name) != wanted.strip('"'):
                return False
    return True


def _over(text: str, rows: list[dict[str, Any]]) -> float | None:
    """An expression of sums and maxima over rows; None if there is nothing to it."""

    def value(node: ast.AST) -> float:
        if isinstance(node, ast.Constant):
            return float(node.value)  # type: ignore[arg-type]
        if isinstance(node, ast.BinOp):
            return _OPERATORS[type(node.op)](value(node.left), value(node.right))
        assert isinstance(node, ast.Call)
        assert isinstance(node.func, ast.Name)
        (field,) = node.args
        assert isinstance(field, ast.Name)
        found = [row[field.id] for row in rows if field.id in row]
        numbers = [one[0] if isinstance(one, list) else one for one in found]
        return float(sum(numbers) if node.func.id == "sum" else max(numbers))

    readable = text.replace("@timestamp", "timestamp").replace(".0)", ")")
    try:
        return value(ast.parse(readable, mode="eval").body)
    except (ValueError, ZeroDivisionError):
        return None
