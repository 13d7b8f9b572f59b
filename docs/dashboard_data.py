"""The series that CloudWatch would show on our dashboard, calculated from reported metrics.

This module reads and writes no files. The input is lines of the embedded metric format. Python's
own parser reads the expressions of metric math and of Logs Insights: the syntax that the dashboard
uses is the same in Python.
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
"""Values by the start of their period, in seconds since 1970."""
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
    """The metrics that a run has reported.

    Attributes:
        records: the parsed lines in the order of time, each with its "timestamp" in seconds
    """

    records: list[dict[str, Any]]

    @staticmethod
    def parse(lines: Iterable[str]) -> "Metrics":
        """Parse the lines that the functions have printed."""
        records = [json.loads(line) for line in lines if line.strip()]
        for record in records:
            record["timestamp"] = record["_aws"]["Timestamp"] / 1000
        return Metrics(sorted(records, key=lambda record: float(record["timestamp"])))

    @property
    def span(self) -> tuple[int, int]:
        """Return the first and last time to show: full five minutes, and the last line's minute."""
        first, last = self.records[0]["timestamp"], self.records[-1]["timestamp"]
        return int(first // 300) * 300, int(last // 60) * 60

    def series(self, name: str, dimensions: Dimensions, statistic: str, period: int) -> Series:
        """Return the series of the metric that has this name and exactly these dimensions."""
        numbers: dict[int, list[float]] = defaultdict(list)
        for record in self.records:
            for directive in record["_aws"]["CloudWatchMetrics"]:
                has_name = name in [metric["Name"] for metric in directive["Metrics"]]
                sets = [
                    frozenset((key, record[key]) for key in keys)
                    for keys in directive["Dimensions"]
                ]
                if has_name and dimensions in sets:
                    numbers[int(record["timestamp"] // period) * period] += record[name]
        return {at: _STATISTICS[statistic](values) for at, values in sorted(numbers.items())}

    def search(self, expression: str, period: int) -> dict[str, Series]:
        """Return the series that a SEARCH finds, by the value of its one open dimension."""
        schema = re.findall(r"[\w]+", re.findall(r"\{\"[^\"]*\",([^}]*)\}", expression)[0])
        fixed = dict(re.findall(r"(\w+)=\"([^\"]*)\"", expression))
        name = fixed.pop("MetricName")
        (open_,) = [dimension for dimension in schema if dimension not in fixed]
        open_values = sorted(
            {record[open_] for record in self.records if name in record and open_ in record}
        )
        return {
            value: self.series(name, frozenset({**fixed, open_: value}.items()), "Sum", period)
            for value in open_values
        }

    def widget_lines(self, widget: Mapping[str, Any]) -> list[tuple[str, str, Series]]:
        """Return a metric widget's lines that are not empty: axis (left, right), label, values."""
        metrics = widget["metrics"]
        inputs: dict[str, Series] = {}
        periods: dict[str, int] = {}
        for metric in metrics:
            *names, options = metric if isinstance(metric[-1], dict) else [*metric, {}]
            if names and "id" in options:
                name = options["id"]
                periods[name] = options.get("period", 300)
                inputs[name] = self._named(names, options)
        lines = []
        for metric in metrics:
            *names, options = metric if isinstance(metric[-1], dict) else [*metric, {}]
            axis = options.get("yAxis", "left")
            if options.get("visible") is False:
                continue
            text = options.get("expression", "")
            if text.startswith("SEARCH("):
                results = self.search(text, options.get("period", 300))
                lines += [(axis, label, values) for label, values in results.items()]
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
                return _combine(_OPERATORS[type(node.op)], value(node.left), value(node.right))
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
                    # CloudWatch fills nothing if the metric was never reported.
                    return {at: series.get(at, filling) for at in everywhere} if series else {}
                case "RUNNING_SUM":
                    total = 0.0
                    return {at: (total := total + number) for at, number in series.items()}
            raise ValueError(f"This module cannot evaluate the function {node.func.id}.")

        series = value(ast.parse(text, mode="eval").body)
        assert isinstance(series, dict)
        return series

    def query_rows(self, query: str) -> list[dict[str, Any]]:
        """Return the rows of a Logs Insights query: filter (= and ispresent), stats and sort."""
        condition = _command(query, "filter")
        rows = [record for record in self.records if _passes(record, condition)]
        stats, _, by = _command(query, "stats").rpartition(" by ")
        groups: dict[str, list[dict[str, Any]]] = defaultdict(list)
        for row in rows:
            groups[row[by]].append(row)
        columns = [column.rpartition(" as ")[::2] for column in stats.split(", ")]
        table = [
            {by: name, **{column: _aggregate(text, group) for text, column in columns}}
            for name, group in groups.items()
        ]
        column, _ = _command(query, "sort").split()
        return sorted(table, key=lambda row: -row[column])


def _combine(operation: Callable[[float, float], float], a: Value, b: Value) -> Value:
    """Apply an operator at each time that both series have, except where it divides by zero."""
    if isinstance(a, float) and isinstance(b, float):
        return operation(a, b)
    times = [*a] if isinstance(a, dict) else [*b]  # type: ignore[misc]
    common = [time for time in times if all(time in v for v in (a, b) if isinstance(v, dict))]
    result = {}
    for time in common:
        x, y = (v[time] if isinstance(v, dict) else v for v in (a, b))
        if operation is not operator.truediv or y:
            result[time] = operation(x, y)
    return result


def _command(query: str, name: str) -> str:
    commands = re.split(r"\n?\| ", query)
    (text,) = [command[len(name) :] for command in commands if command.startswith(name)]
    return text.strip()


def _passes(record: Mapping[str, Any], conditions: str) -> bool:
    for condition in conditions.split(" and "):
        present = re.fullmatch(r"ispresent\((\w+)\)", condition)
        if present:
            if present[1] not in record:
                return False
        else:
            name, _, literal = condition.partition(" = ")
            if record.get(name) != literal.strip('"'):
                return False
    return True


def _aggregate(text: str, rows: list[dict[str, Any]]) -> float | None:
    """Evaluate an expression of sums and maxima over rows; None if no row has a value for it."""

    def value(node: ast.AST) -> float:
        if isinstance(node, ast.Constant):
            return float(node.value)  # type: ignore[arg-type]
        if isinstance(node, ast.BinOp):
            return _OPERATORS[type(node.op)](value(node.left), value(node.right))
        assert isinstance(node, ast.Call)
        assert isinstance(node.func, ast.Name)
        (field,) = node.args
        assert isinstance(field, ast.Name)
        values = [row[field.id] for row in rows if field.id in row]
        numbers = [number[0] if isinstance(number, list) else number for number in values]
        return float(sum(numbers) if node.func.id == "sum" else max(numbers))

    readable = text.replace("@timestamp", "timestamp").replace(".0)", ")")
    try:
        return value(ast.parse(readable, mode="eval").body)
    except (ValueError, ZeroDivisionError):
        return None
