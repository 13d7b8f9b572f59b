"""Draw docs/dashboard.svg: the dashboard's own body, with what a run on a laptop has reported.

    python -m docs.draw_dashboard            draw it, from docs/dashboard.jsonl
    python -m docs.draw_dashboard record     before that, run: some nine minutes

The lines are the metrics as the deployed functions printed them. What AWS alone measures (errors
and durations of functions, executions, DynamoDB's own count) is not there on a laptop, so rows that
show nothing else are left out.
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
GIVEN = {"table": BY_AIRCRAFT, "segments": 128, "maxConcurrency": 2, "maxReadRate": 1.2}
"""So slow that the run takes minutes, as one of a large table does."""

UNIT, ROW = 48, 46
"""Pixels of a dashboard's column and of a row of its grid."""
TEXT_LINE = 18
INK, GREY, LINK, RULE = "#16191f", "#687078", "#0972d3", "#d5dbdb"
COLOURS = ("#2074d5", "#d6591b", "#178037", "#8c3ba8", "#c33d69")
GOOD = "#178037"
Line = tuple[str, str, Series]


def dashboard() -> dict[str, Any]:
    """The body that a deployment of the demo's table has, with the table chosen."""
    app = App(context={"aws:cdk:bundling-stacks": []}, stack_traces=False)
    template = assertions.Template.from_stack(
        KeyhopStack(app, Config.from_context({"tables": BY_AIRCRAFT}))
    )
    (found,) = template.find_resources("AWS::CloudWatch::Dashboard").values()
    text = _resolved(found["Properties"]["DashboardBody"])
    return dict(json.loads(text.replace(ANY_TABLE, BY_AIRCRAFT)))


def _resolved(value: Any) -> str:
    """Intrinsic functions by names: addresses are not seen in the picture."""
    if isinstance(value, str):
        return value
    ((function, given),) = value.items()
    if function == "Fn::Join":
        return str(given[0]).join(map(_resolved, given[1]))
    return str(given if isinstance(given, str) else given[0])


def drawn(body: Mapping[str, Any], metrics: Metrics) -> str:
    """The picture."""
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
    return widget["type"] != "metric" or bool(metrics.drawn(widget["properties"]))


def _height(widget: Mapping[str, Any]) -> int:
    if widget["type"] == "text":
        return TEXT_LINE * len(_paragraphs(widget["properties"]["markdown"])) + 34
    if widget["type"] == "log":
        return 100
    return int(widget["height"] * ROW)


def _widget(widget: Mapping[str, Any], top: int, height: int, metrics: Metrics) -> list[str]:
    left, width = widget["x"] * UNIT + 4, widget["width"] * UNIT - 8
    shown = widget["properties"]
    parts = [
        f'<rect x="{left}" y="{top}" width="{width}" height="{height}" rx="4" fill="white" '
        f'stroke="{RULE}"/>'
    ]
    if widget["type"] == "text":
        return parts + _markdown(shown["markdown"], left + 14, top + 30)
    parts.append(_text(left + 12, top + 20, shown["title"], 13, INK, bold=True))
    if widget["type"] == "alarm":
        return parts + _alarms(shown["alarms"], left + 12, top + 34)
    if widget["type"] == "log":
        return parts + _table(metrics.listed(shown["query"]), left + 12, top + 46, width - 24)
    lines = metrics.drawn(shown)
    if shown.get("view") == "singleValue":
        return parts + _number(lines, left, top, width)
    ours = any(SERVICE in json.dumps(one) for one in shown["metrics"])
    if_none = "none in the time shown" if ours else "measured by AWS itself, not on a laptop"
    return parts + _graph(lines, left, top, width, height, metrics.span, if_none)


def _alarms(arns: Sequence[str], left: float, top: float) -> list[str]:
    parts = []
    for number, arn in enumerate(arns):
        x = left + number * 230
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


def _markdown(text: str, left: float, top: float) -> list[str]:
    """A heading, a line of links, a table of two columns, and a paragraph."""
    parts = []
    for number, line in enumerate(_paragraphs(text)):
        y = top + number * TEXT_LINE
        if line.startswith("# "):
            parts.append(_text(left, y - 4, line[2:], 18, INK, bold=True))
        elif " | " in line:
            is_head = line.startswith("what you see")
            for column, cell in zip((0, 260), line.split(" | "), strict=True):
                plain = cell.replace("`", "")
                parts.append(_text(left + column, y, plain, 12, GREY if is_head else INK))
        else:
            linked = re.sub(
                r"\[([^]]+)\]\([^)]*\)",
                rf'</tspan><tspan fill="{LINK}" text-decoration="underline">\1</tspan><tspan>',
                escape(line.replace("*", ""), quote=False),
            )
            parts.append(
                f'<text x="{left}" y="{y}" font-size="12" fill="{INK}">'
                f"<tspan>{linked}</tspan></text>"
            )
    return parts


def _table(rows: Sequence[Mapping[str, Any]], left: float, top: float, width: float) -> list[str]:
    parts = [f'<path d="M{left} {top + 7}h{width}" stroke="{RULE}"/>']
    columns = list(rows[0]) if rows else []
    step = width / max(1, len(columns))
    for number, column in enumerate(columns):
        x = left + number * step
        parts.append(_text(x, top, column, 12, GREY, bold=True))
        for place, row in enumerate(rows, 1):
            value = row[column]
            shown = _time(value) if column.startswith("last") else _amount(value)
            parts.append(_text(x, top + 6 + place * 20, shown, 12))
    return parts


def _number(lines: Sequence[Line], left: float, top: float, width: float) -> list[str]:
    if not lines:
        return [_text(left + 12, top + 76, "no data", 22, GREY)]
    _, label, values = lines[0]
    return [
        _text(left + 12, top + 76, _amount(values[max(values)]), 32, COLOURS[0]),
        *(
            _text(left + 12, top + 104 + 14 * number, line, 11, GREY)
            for number, line in enumerate(wrap(label, int(width / 6.2)))
        ),
    ]


def _graph(
    lines: Sequence[Line],
    left: float,
    top: float,
    width: float,
    height: int,
    span: tuple[int, int],
    if_none: str,
) -> list[str]:
    x0, x1, y0, y1 = left + 62, left + width - 62, top + 38, top + height - 58
    first, last = span
    parts = [f'<path d="M{x0} {y1}H{x1}" stroke="{GREY}"/>']
    for place in range(5):
        at = first + (last - first) * place / 4
        x = x0 + (x1 - x0) * place / 4
        parts.append(_text(x, y1 + 16, _time(at), 11, GREY, anchor="middle"))
    for axis, anchor, x in (("left", "end", x0 - 6), ("right", "start", x1 + 6)):
        on_it = [values for side, _, values in lines if side == axis]
        most = _round_up(max((max(values.values()) for values in on_it), default=0.0))
        for place in range(5) if on_it else ():
            y = y1 - (y1 - y0) * place / 4
            if axis == "left" or not any(side == "left" for side, _, _ in lines):
                parts.append(f'<path d="M{x0} {y:.0f}H{x1}" stroke="{RULE}" stroke-width=".7"/>')
            parts.append(_text(x, y + 4, _amount(most * place / 4), 11, GREY, anchor=anchor))
        for number, (side, _, values) in enumerate(lines):
            if side == axis:
                points = [
                    (
                        x0 + (x1 - x0) * (at - first) / max(1, last - first),
                        y1 - (y1 - y0) * value / most if most else y1,
                    )
                    for at, value in sorted(values.items())
                    if first <= at <= last
                ]
                parts.append(_line(points, COLOURS[number % len(COLOURS)]))
    if not lines:
        parts.append(_text((x0 + x1) / 2, (y0 + y1) / 2, if_none, 13, GREY, "middle"))
    x = x0
    for number, (side, label, _) in enumerate(lines):
        shown = label if side == "left" or "(right)" in label else f"{label} (right)"
        parts.append(
            f'<rect x="{x}" y="{y1 + 31}" width="14" height="4" '
            f'fill="{COLOURS[number % len(COLOURS)]}"/>'
        )
        parts.append(_text(x + 20, y1 + 37, shown, 11))
        x += 40 + 6.1 * len(shown)
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
    """Run, and read the functions' logs: lines of metrics, in order."""
    outputs = cloud.deploy([BY_AIRCRAFT])
    load_flights(cloud.dynamodb)
    executions = Executions(cloud.client, outputs["StateMachineArn"], outputs["ResultsBucketName"])
    executions.follow(executions.start(GIVEN, "nightly"), 1800)
    logs = cloud.client("logs")
    found: list[tuple[int, str]] = []
    for group in logs.describe_log_groups()["logGroups"]:
        pages = logs.get_paginator("filter_log_events")
        for page in pages.paginate(logGroupName=group["logGroupName"]):
            found += [(event["timestamp"], event["message"]) for event in page["events"]]
    return [message.strip() for _, message in sorted(found) if '"_aws"' in message]


def main() -> int:
    """Returns an exit status."""
    if sys.argv[1:] == ["record"]:
        with laptop_cloud() as cloud:
            LINES.write_text("".join(f"{line}\n" for line in record(cloud)))
    PICTURE.write_text(drawn(dashboard(), Metrics.of(LINES.read_text().splitlines())))
    return 0


if __name__ == "__main__":
    exit_with(main)
