"""Draw docs/dashboard.svg: the deployed dashboard, with the metrics of a run on a laptop.

    python -m docs.draw_dashboard            draw it from docs/dashboard.jsonl
    python -m docs.draw_dashboard record     make a run first, in about nine minutes

The lines in docs/dashboard.jsonl are the metrics as the deployed functions printed them. A laptop
lacks the metrics that only AWS measures (errors and durations of functions, executions, DynamoDB's
own count), so the picture omits rows that show only those.
"""

import json
import re
import sys
import time
from collections.abc import Mapping, Sequence
from html import escape
from textwrap import wrap
from typing import Any

from aws_cdk import App, assertions

from docs.dashboard_data import Metrics, Series
from infra.config import Config
from infra.functions import SERVICE
from infra.monitoring import ANY_TABLE
from infra.stack import KeyhopStack
from local.cloud import Cloud, exit_with, laptop_cloud
from local.laptop import load_flights
from testing.dark import for_dark_pages
from testing.executions import Executions
from testing.flights import BY_AIRCRAFT
from testing.servers import ROOT

PICTURE = ROOT / "docs" / "dashboard.svg"
LINES = ROOT / "docs" / "dashboard.jsonl"
RUN_INPUT = {"table": BY_AIRCRAFT, "segments": 128, "maxConcurrency": 2, "maxReadRate": 1.2}
"""The rate is low, so the run takes minutes, as a run of a large table does."""

UNIT, ROW = 48, 46
"""The width of a column and the height of a row of the dashboard's grid, in pixels."""
TEXT_LINE = 18
INK, GREY, LINK, RULE = "#16191f", "#687078", "#0972d3", "#d5dbdb"
COLOURS = ("#2074d5", "#d6591b", "#178037", "#8c3ba8", "#c33d69")
GOOD = "#178037"
Line = tuple[str, str, Series]


def dashboard() -> dict[str, Any]:
    """Return the dashboard's body for the demo's table, with this table selected."""
    app = App(context={"aws:cdk:bundling-stacks": []}, stack_traces=False)
    template = assertions.Template.from_stack(
        KeyhopStack(app, Config.from_context({"tables": BY_AIRCRAFT}))
    )
    (resource,) = template.find_resources("AWS::CloudWatch::Dashboard").values()
    text = _resolve(resource["Properties"]["DashboardBody"])
    return dict(json.loads(text.replace(ANY_TABLE, BY_AIRCRAFT)))


def _resolve(value: Any) -> str:
    """Replace intrinsic functions by names: the picture does not show addresses."""
    if isinstance(value, str):
        return value
    ((function, arguments),) = value.items()
    if function == "Fn::Join":
        return str(arguments[0]).join(map(_resolve, arguments[1]))
    return str(arguments if isinstance(arguments, str) else arguments[0])


def draw(body: Mapping[str, Any], metrics: Metrics) -> str:
    """Return the picture."""
    rows: dict[int, list[Mapping[str, Any]]] = {}
    for widget in body["widgets"]:
        rows.setdefault(widget["y"], []).append(widget)
    parts: list[str] = []
    top = 34
    for row in rows.values():
        if not any(_has_content(widget, metrics) for widget in row):
            continue
        height = max(_height(widget) for widget in row)
        for widget in row:
            parts += _widget(widget, top, height, metrics)
        top += height + 8
    (variable,) = body["variables"]
    head = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {24 * UNIT} {top}" '
        'font-family="Helvetica, Arial, sans-serif">',
        "<title>Keyhop's dashboard, with a run on a laptop</title>",
        f'<rect width="{24 * UNIT}" height="{top}" fill="#f2f3f3"/>',
        _text(12, 22, f"{variable['label']}:", 12, GREY),
        f'<rect x="56" y="8" width="160" height="20" rx="3" fill="white" stroke="{GREY}"/>',
        _text(64, 22, f"{variable['defaultValue']}", 12),
        _text(200, 22, "▾", 12, GREY),
    ]
    return for_dark_pages("\n".join([*head, *parts, "</svg>", ""]))


def _has_content(widget: Mapping[str, Any], metrics: Metrics) -> bool:
    return widget["type"] != "metric" or bool(metrics.widget_lines(widget["properties"]))


def _height(widget: Mapping[str, Any]) -> int:
    if widget["type"] == "text":
        return TEXT_LINE * len(_paragraphs(widget["properties"]["markdown"])) + 34
    if widget["type"] == "log":
        return 100
    return int(widget["height"] * ROW)


def _widget(widget: Mapping[str, Any], top: int, height: int, metrics: Metrics) -> list[str]:
    x, width = widget["x"] * UNIT + 4, widget["width"] * UNIT - 8
    properties = widget["properties"]
    parts = [
        f'<rect x="{x}" y="{top}" width="{width}" height="{height}" rx="4" fill="white" '
        f'stroke="{RULE}"/>'
    ]
    if widget["type"] == "text":
        return parts + _markdown(properties["markdown"], x + 14, top + 30)
    parts.append(_text(x + 12, top + 20, properties["title"], 13, INK, bold=True))
    if widget["type"] == "alarm":
        return parts + _alarms(properties["alarms"], x + 12, top + 34)
    if widget["type"] == "log":
        return parts + _table(metrics.query_rows(properties["query"]), x + 12, top + 46, width - 24)
    lines = metrics.widget_lines(properties)
    if properties.get("view") == "singleValue":
        return parts + _number(lines, x, top, width)
    ours = any(SERVICE in json.dumps(metric) for metric in properties["metrics"])
    if_none = "none in the time shown" if ours else "measured by AWS itself, not on a laptop"
    return parts + _graph(lines, x, top, width, height, metrics.span, if_none)


def _alarms(arns: Sequence[str], start_x: float, top: float) -> list[str]:
    parts = []
    for number, arn in enumerate(arns):
        x = start_x + number * 230
        name = re.sub(r"^(Default)?Monitoring|[0-9A-F]{8}$", "", arn)
        parts += [
            f'<rect x="{x}" y="{top}" width="220" height="40" rx="3" fill="#f2fcf3" '
            f'stroke="{GOOD}"/>',
            _text(x + 10, top + 25, f"✓ {name}", 13, GOOD),
        ]
    return parts


def _paragraphs(markdown: str) -> list[str]:
    lines = []
    for line in markdown.splitlines():
        if set(line) - set("-|"):
            long = "|" not in line and "](" not in line and len(line) > 190
            lines += wrap(line, 180) if long else [line]
    return lines


def _markdown(text: str, start_x: float, top: float) -> list[str]:
    """Draw a heading, a line of links, a table of two columns, and a paragraph."""
    parts = []
    for number, line in enumerate(_paragraphs(text)):
        y = top + number * TEXT_LINE
        if line.startswith("# "):
            parts.append(_text(start_x, y - 4, line[2:], 18, INK, bold=True))
        elif " | " in line:
            is_head = line.startswith("what you see")
            for column, cell in zip((0, 260), line.split(" | "), strict=True):
                plain = cell.replace("`", "")
                parts.append(_text(start_x + column, y, plain, 12, GREY if is_head else INK))
        else:
            linked = re.sub(
                r"\[([^]]+)\]\([^)]*\)",
                rf'</tspan><tspan fill="{LINK}" text-decoration="underline">\1</tspan><tspan>',
                escape(line.replace("*", ""), quote=False),
            )
            parts.append(
                f'<text x="{start_x}" y="{y}" font-size="12" fill="{INK}">'
                f"<tspan>{linked}</tspan></text>"
            )
    return parts


def _table(
    rows: Sequence[Mapping[str, Any]], start_x: float, top: float, width: float
) -> list[str]:
    parts = [f'<path d="M{start_x} {top + 7}h{width}" stroke="{RULE}"/>']
    columns = list(rows[0]) if rows else []
    step = width / max(1, len(columns))
    for number, column in enumerate(columns):
        x = start_x + number * step
        parts.append(_text(x, top, column, 12, GREY, bold=True))
        for place, row in enumerate(rows, 1):
            value = row[column]
            cell = _time(value) if column.startswith("last") else _amount(value)
            parts.append(_text(x, top + 6 + place * 20, cell, 12))
    return parts


def _number(lines: Sequence[Line], start_x: float, top: float, width: float) -> list[str]:
    if not lines:
        return [_text(start_x + 12, top + 76, "no data", 22, GREY)]
    _, label, values = lines[0]
    return [
        _text(start_x + 12, top + 76, _amount(values[max(values)]), 32, COLOURS[0]),
        *(
            _text(start_x + 12, top + 104 + 14 * number, line, 11, GREY)
            for number, line in enumerate(wrap(label, int(width / 6.2)))
        ),
    ]


def _graph(
    lines: Sequence[Line],
    start_x: float,
    top: float,
    width: float,
    height: int,
    span: tuple[int, int],
    if_none: str,
) -> list[str]:
    x0, x1, y0, y1 = start_x + 62, start_x + width - 62, top + 38, top + height - 58
    first, last = span
    parts = [f'<path d="M{x0} {y1}H{x1}" stroke="{GREY}"/>']
    for place in range(5):
        at = first + (last - first) * place / 4
        x = x0 + (x1 - x0) * place / 4
        parts.append(_text(x, y1 + 16, _time(at), 11, GREY, anchor="middle"))
    for axis, anchor, x in (("left", "end", x0 - 6), ("right", "start", x1 + 6)):
        axis_values = [values for side, _, values in lines if side == axis]
        highest = max((max(values.values()) for values in axis_values), default=0.0)
        maximum = _round_up(highest)
        for place in range(5) if axis_values else ():
            y = y1 - (y1 - y0) * place / 4
            if axis == "left" or not any(side == "left" for side, _, _ in lines):
                parts.append(f'<path d="M{x0} {y:.0f}H{x1}" stroke="{RULE}" stroke-width=".7"/>')
            parts.append(_text(x, y + 4, _amount(maximum * place / 4), 11, GREY, anchor=anchor))
        for number, (side, _, values) in enumerate(lines):
            if side == axis:
                points = [
                    (
                        x0 + (x1 - x0) * (at - first) / max(1, last - first),
                        y1 - (y1 - y0) * value / maximum if maximum else y1,
                    )
                    for at, value in sorted(values.items())
                    if first <= at <= last
                ]
                parts.append(_line(points, COLOURS[number % len(COLOURS)]))
    if not lines:
        parts.append(_text((x0 + x1) / 2, (y0 + y1) / 2, if_none, 13, GREY, "middle"))
    x = x0
    for number, (side, label, _) in enumerate(lines):
        name = label if side == "left" or "(right)" in label else f"{label} (right)"
        parts.append(
            f'<rect x="{x}" y="{y1 + 31}" width="14" height="4" '
            f'fill="{COLOURS[number % len(COLOURS)]}"/>'
        )
        parts.append(_text(x + 20, y1 + 37, name, 11))
        x += 40 + 6.1 * len(name)
    return parts


def _line(points: Sequence[tuple[float, float]], colour: str) -> str:
    path = " ".join(f"{x:.1f},{y:.1f}" for x, y in points)
    if len(points) == 1:
        ((x, y),) = points
        return f'<circle cx="{x:.1f}" cy="{y:.1f}" r="3" fill="{colour}"/>'
    return f'<polyline points="{path}" fill="none" stroke="{colour}" stroke-width="2"/>'


def _text(
    x: float,
    y: float,
    text: str,
    size: int,
    fill: str = INK,
    anchor: str = "start",
    bold: bool = False,
) -> str:
    weight = ' font-weight="bold"' if bold else ""
    end = f' text-anchor="{anchor}"' if anchor != "start" else ""
    return (
        f'<text x="{x:.0f}" y="{y:.0f}" font-size="{size}" fill="{fill}"{end}{weight}>'
        f"{escape(text, quote=False)}</text>"
    )


def _amount(value: Any) -> str:
    if value is None:
        return ""
    if isinstance(value, str):
        return value
    if value == int(value) or value >= 100:
        return f"{value:,.0f}"
    return f"{value:.6f}" if value < 0.001 else f"{value:.3g}"


def _round_up(value: float) -> float:
    """Round up to a value with which an axis may end."""
    if value <= 0:
        return 0.0
    size = 10.0 ** (len(f"{int(value)}") - 1) if value >= 1 else 10.0 ** -_leading_zeros(value)
    return next(size * step for step in (1, 1.2, 1.6, 2, 3, 4, 5, 6, 8, 10) if size * step >= value)


def _leading_zeros(value: float) -> int:
    zeros = 1
    while value * 10.0**zeros < 1:
        zeros += 1
    return zeros


def _time(seconds: float) -> str:
    return time.strftime("%H:%M", time.gmtime(seconds))


def record(cloud: Cloud) -> list[str]:
    """Make a run, and return the lines of metrics in the functions' logs, in the order of time."""
    outputs = cloud.deploy([BY_AIRCRAFT])
    load_flights(cloud.dynamodb)
    executions = Executions(cloud.client, outputs["StateMachineArn"], outputs["ResultsBucketName"])
    executions.follow(executions.start(RUN_INPUT, "nightly"), 1800)
    logs = cloud.client("logs")
    messages: list[tuple[int, str]] = []
    for group in logs.describe_log_groups()["logGroups"]:
        pages = logs.get_paginator("filter_log_events")
        for page in pages.paginate(logGroupName=group["logGroupName"]):
            messages += [(event["timestamp"], event["message"]) for event in page["events"]]
    return [message.strip() for _, message in sorted(messages) if '"_aws"' in message]


def main() -> int:
    """Draw the picture, and return an exit status."""
    if sys.argv[1:] == ["record"]:
        with laptop_cloud() as cloud:
            LINES.write_text("".join(f"{line}\n" for line in record(cloud)))
    PICTURE.write_text(draw(dashboard(), Metrics.parse(LINES.read_text().splitlines())))
    return 0


if __name__ == "__main__":
    exit_with(main)
