"""Draw docs/stack.svg from the template of a deployment with every option: `make pictures`.

The roles of the state machines, the rules and the custom resources say who starts each function.
The role of a function says what the function may do. The script stops at a type of resource that it
does not know, so the picture is complete.
"""

import sys
from collections import defaultdict
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from html import escape
from pathlib import Path
from textwrap import wrap
from typing import Any

ROOT = Path(__file__).parent.parent
sys.path[:0] = [str(ROOT), str(ROOT / "lambdas")]

from keyhop.rekey.pair import SIDE_SUFFIX  # noqa: E402

from testing.dark import for_dark_pages  # noqa: E402
from tests.infra.conftest import deployed, stack_of  # noqa: E402
from tests.infra.template import BUCKET_ARN, QUEUE_ARN, Deployed  # noqa: E402

PICTURE = ROOT / "docs" / "stack.svg"
EVERY_OPTION = {
    "tables": [
        {"table": "listed", "runSchedule": "rate(1 day)"},
        {"table": "indexed", "keyIndex": True},
        {"table": "sharded", "sharding": {"partitionKey": "path"}},
        {"table": "processed", "each": {"put": True, "update": True, "delete": True}},
        {"table": "reported", "report": {"schedule": "rate(7 days)"}},
    ],
    "rekey": [{"source": "source", "destination": "destination"}],
    "verifyIndexSchedule": "rate(7 days)",
    "shrinkSchedule": "rate(1 day)",
    "startDrains": True,
    "alarmEmail": "somebody@example.com",
}
PREFIX = "Keyhop-"
FUNCTION, MACHINE = "AWS::Lambda::Function", "AWS::StepFunctions::StateMachine"
RULE, CUSTOM = "AWS::Events::Rule", "Custom::KeeperMappings"

BANDS = {
    "Enumeration": "always",
    "KeyIndex": "for tables with keyIndex",
    "Sharding": "for tables with sharding",
    "Each": "for tables with each",
    "Reports": "for tables with report",
    "Rekey": "for pairs in rekey",
}
"""The title of each band, by the construct that makes its machines and functions."""

BESIDES = {
    "a log group for each function and machine": {"AWS::Logs::LogGroup"},
    "one layer of packages": {"AWS::Lambda::LayerVersion"},
    "a role for each": {"AWS::IAM::Role", "AWS::IAM::Policy", "AWS::IAM::ManagedPolicy"},
    "a dashboard": {"AWS::CloudWatch::Dashboard"},
    "alarms, by a topic to your e-mail": {
        "AWS::CloudWatch::Alarm",
        "AWS::SNS::Topic",
        "AWS::SNS::TopicPolicy",
        "AWS::SNS::Subscription",
    },
    "an Athena table over the keys (Glue)": {"AWS::Glue::Database", "AWS::Glue::Table"},
}
"""Resources that the footer lists in words, with their types."""

DRAWN = {
    *(FUNCTION, MACHINE, RULE, CUSTOM),
    *("AWS::S3::Bucket", "AWS::S3::BucketPolicy"),
    *("AWS::SQS::Queue", "AWS::SQS::QueuePolicy"),
    *("AWS::DynamoDB::Table", "AWS::Lambda::Permission"),
}
"""Types of resources that are boxes, columns or arrows, and of their policies."""

COLUMNS = {
    "listed": "your tables, to list",
    "indexed": "your tables with keyIndex",
    "sharded": "your tables with sharding",
    "metadata": "shard metadata",
    "processed": "your tables with each",
    "reported": "your tables with report",
    "source": "sources in rekey",
    "destination": "destinations, side tables",
    "runs": "results bucket: runs/",
    "index notes": "results bucket: key-index/",
    "queue": "queue of failed records",
    "mappings": "stream mappings",
    "executions": "executions, map runs",
    "metrics": "metrics, scaling",
}
EVERYWHERE = ("logs:", "xray:", "lambda:GetAccountSettings")
"""Actions that every function or machine may do, so the picture omits them."""

READS = ("Get", "BatchGet", "List", "Describe", "Query", "Scan", "ConditionCheck")
SEES = ("dynamodb:DescribeTable", "dynamodb:ListStreams")


@dataclass
class Place:
    """A state machine or a function.

    Attributes:
        band: the construct that makes it
        starters: the names of machines that start it, or words for other starters
        rights: reads, writes, or both, by column
    """

    name: str
    band: str
    machine: bool
    starters: list[str] = field(default_factory=list)
    rights: dict[str, set[str]] = field(default_factory=dict)


def column_of(resource: str, action: str) -> str:
    """Return the column that shows a right on a resource."""
    if action.startswith(("cloudwatch:", "application-autoscaling:")):
        return "metrics"
    if action.startswith("lambda:"):
        return "mappings"
    if action.startswith("states:"):
        return "executions"
    if resource.startswith(QUEUE_ARN):
        return "queue"
    if resource.startswith(BUCKET_ARN):
        return "index notes" if "/key-index/" in resource else "runs"
    if ":table/" in resource:
        table = resource.partition(":table/")[2].partition("/")[0]
        if table.endswith(SIDE_SUFFIX):
            return "destination"
        return table if table in COLUMNS else "metadata"
    raise SystemExit(f"The picture has no column for {action} on {resource}.")


def rights_of(statements: list[dict[str, Any]]) -> dict[str, set[str]]:
    """Return what a role may do, by column: reads, writes, or both."""
    rights: dict[str, set[str]] = defaultdict(set)
    for statement in statements:
        for action in statement["Action"]:
            if action.startswith(EVERYWHERE) or action == "s3:ListBucket" or action in SEES:
                continue  # the rights on a bucket's objects decide, not those on the bucket
            way = "reads" if action.partition(":")[2].startswith(READS) else "writes"
            for resource in statement["Resource"]:
                rights[column_of(resource, action)].add(way)
    return rights


def places_of(template: Deployed) -> dict[str, Place]:
    """Return the state machines, then the functions, by name."""
    places: dict[str, Place] = {}
    by_id: dict[str, Place] = {}
    for kind, named in ((MACHINE, "StateMachineName"), (FUNCTION, "FunctionName")):
        for logical, resource in template.of_type(kind).items():
            name = resource["Properties"][named].removeprefix(PREFIX)
            band = next(band for band in BANDS if logical.startswith(band))
            places[name] = by_id[logical] = Place(name, band, kind == MACHINE)
    statements = {name: template.statements(name) for name in places}
    for name, place in places.items():
        for statement in statements[name]:
            if set(statement["Action"]) & {"lambda:InvokeFunction", "states:StartExecution"}:
                for resource in statement["Resource"]:
                    started = resource.rpartition(":")[2].removeprefix(PREFIX)
                    if started != name:
                        places[started].starters.append(name)
        if not place.machine:
            place.rights = rights_of(statements[name])
    for rule in template.of_type(RULE).values():
        for rule_target in rule["Properties"]["Targets"]:
            by_id[target(rule_target["Arn"])].starters.append("a schedule")
    for custom in template.of_type(CUSTOM).values():
        by_id[target(custom["Properties"]["ServiceToken"])].starters.append("CloudFormation")
    for name, place in places.items():
        has_machine = any(places[start].machine for start in place.starters if start in places)
        if place.machine and not has_machine:
            place.starters.insert(0, "you")
        actions = [action for statement in statements[name] for action in statement["Action"]]
        if "dynamodb:GetRecords" in actions and not has_machine:
            place.starters.append("the table's stream")
        place.starters = place.starters or ["your programs"]
    return places


def target(value: Any) -> str:
    """Return the logical id that a reference in a template names."""
    return str(value.get("Ref") or value["Fn::GetAtt"][0])


ROW, BOX_GAP, BAND_GAP, HEAD, LINE = 30, 10, 48, 150, 15
BOX_X, BOX_WIDTH = 20, 248
FUNCTION_X, FUNCTION_WIDTH = 330, 140
GRID_X, CELL, RIGHT = 486, 50, 90
WIDTH = GRID_X + CELL * len(COLUMNS) + RIGHT


@dataclass
class Box:
    """A starter of functions: a state machine with lines below its name, or something outside."""

    name: str
    machine: bool
    lines: list[str] = field(default_factory=list)
    functions: list[str] = field(default_factory=list)

    @property
    def height(self) -> int:
        return 24 + (LINE * len(self.lines) + 5 if self.lines else 2)


def boxes_of(band: str, places: Mapping[str, Place]) -> list[Box]:
    """Return a band's machines, and the other starters of its functions."""
    boxes = {}
    for name, place in places.items():
        if place.machine and place.band == band:
            invoked = [
                function.name
                for function in places.values()
                if name in function.starters and function.band != band and not function.machine
            ]
            facts = [f"started by {', '.join(place.starters)}"]
            facts += [f"and invokes {', '.join(invoked)}"] if invoked else []
            lines = [line for fact in facts for line in wrap(fact, 36)]
            boxes[name] = Box(name, True, lines)
    for place in places.values():
        if not place.machine and place.band == band:
            for starter in place.starters:
                if starter in boxes or starter not in places:
                    boxes.setdefault(starter, Box(starter, False)).functions.append(place.name)
    # A machine that another machine starts comes after it, with its functions.
    return sorted(boxes.values(), key=lambda box: (not box.machine, is_inner(box.name, places)))


def is_inner(name: str, places: Mapping[str, Place]) -> bool:
    """Return whether only machines start this machine."""
    return name in places and all(starter in places for starter in places[name].starters)


def draw(template: Deployed) -> str:
    """Return the picture."""
    unknown = {resource["Type"] for resource in template.body["Resources"].values()}
    unknown -= DRAWN.union(*BESIDES.values())
    if unknown:
        raise SystemExit(f"The picture does not know these resources: {sorted(unknown)}.")
    places = places_of(template)
    parts: list[str] = []
    top = HEAD
    for band, title in BANDS.items():
        boxes = boxes_of(band, places)
        order = [name for box in boxes for name in box.functions]
        rows = [places[name] for name in dict.fromkeys(order)]
        boxes_height = sum(box.height + BOX_GAP for box in boxes) - BOX_GAP
        height = max(ROW * len(rows), boxes_height)
        parts += band_of(title, boxes, rows, top, height)
        top += height + BAND_GAP
    parts += footer(top - 14)
    lines = [*opening(top + 62), *columns(top - BAND_GAP + 8), *parts, "</svg>", ""]
    return for_dark_pages("\n".join(lines))


def opening(height: int) -> Iterator[str]:
    """Draw the head: the title, the styles, the tip of an arrow, and the legend."""
    yield (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {height}" role="img" '
        'font-family="Helvetica, Arial, sans-serif" font-size="13">'
    )
    yield "<title>What cdk deploy makes, with every option</title>"
    yield (
        "<style>.t{fill:#1f2933;font-weight:600}.s{fill:#52606d;font-size:12px}"
        ".m{fill:#e3f2eb;stroke:#1b7f5a}.f{fill:#eef2f6;stroke:#8a93a0}"
        ".o{fill:#fff;stroke:#8a93a0;stroke-dasharray:4 3}.l{fill:none;stroke:#7b8794}"
        ".g{stroke:#e4e7eb}.r{fill:#1b7f5a}.w{fill:#c4721b}</style>"
    )
    yield (
        '<defs><marker id="tip" viewBox="0 0 8 8" refX="7" refY="4" markerWidth="7" '
        'markerHeight="7" orient="auto"><path d="M0 0 8 4 0 8z" fill="#7b8794"/></marker></defs>'
    )
    yield f'<rect width="{WIDTH}" height="{height}" fill="white"/>'
    yield text(BOX_X, 30, "What cdk deploy makes, with every option", "t", size=17)
    yield text(BOX_X, 52, "drawn from the template: roles, rules, custom resources", "s")
    yield text(BOX_X, HEAD - 36, "state machines, and what else starts functions", "s")
    yield text(FUNCTION_X, HEAD - 36, "functions", "s")
    yield f'<circle cx="{BOX_X + 7}" cy="73" r="6" class="r"/>'
    yield text(BOX_X + 20, 77, "reads", "s")
    yield f'<rect x="{BOX_X + 66}" y="67" width="12" height="12" class="w"/>'
    yield text(BOX_X + 84, 77, "writes, changes or starts", "s")


def columns(bottom: int) -> Iterator[str]:
    """Draw a slanting heading, and a line below it, for each thing to read or write."""
    for number, words in enumerate(COLUMNS.values()):
        x = GRID_X + CELL * number + CELL // 2
        yield f'<path d="M{x} {HEAD - 14}V{bottom}" class="g"/>'
        at = f"translate({x + 2} {HEAD - 20}) rotate(-42)"
        yield f'<text class="s" transform="{at}">{escape(words)}</text>'


def band_of(
    title: str, boxes: list[Box], rows: list[Place], top: int, height: int
) -> Iterator[str]:
    """Draw a band: its boxes on the left, its functions and their rights on the right."""
    yield text(BOX_X, top - 9, title, "t")
    first = top + (height - ROW * len(rows)) // 2
    middles = {row.name: first + ROW * number + ROW // 2 for number, row in enumerate(rows)}
    y = top + (height - sum(box.height + BOX_GAP for box in boxes) + BOX_GAP) // 2
    for box in boxes:
        start = y + box.height // 2
        for name in box.functions:
            x, half = BOX_X + BOX_WIDTH, (BOX_X + BOX_WIDTH + FUNCTION_X) // 2
            end = middles[name]
            curve = f"M{x} {start}C{half} {start} {half} {end} {FUNCTION_X - 1} {end}"
            yield f'<path d="{curve}" class="l" marker-end="url(#tip)"/>'
        kind = "m" if box.machine else "o"
        yield rectangle(BOX_X, y, BOX_WIDTH, box.height, kind)
        yield text(BOX_X + 10, y + 18, box.name, "t" if box.machine else "s")
        for number, line in enumerate(box.lines):
            yield text(BOX_X + 10, y + 34 + LINE * number, line, "s")
        y += box.height + BOX_GAP
    for row in rows:
        middle = middles[row.name]
        yield rectangle(FUNCTION_X, middle - 12, FUNCTION_WIDTH, 24, "f")
        yield text(FUNCTION_X + 10, middle + 5, row.name, "t")
        yield f'<path d="M{GRID_X - 14} {middle}H{WIDTH - RIGHT}" class="g"/>'
        for number, column in enumerate(COLUMNS):
            ways = row.rights.get(column, set())
            x = GRID_X + CELL * number + CELL // 2
            shift = 8 if len(ways) == 2 else 0
            if "reads" in ways:
                yield f'<circle cx="{x - shift}" cy="{middle}" r="6" class="r"/>'
            if "writes" in ways:
                corner = f'x="{x + shift - 6}" y="{middle - 6}"'
                yield f'<rect {corner} width="12" height="12" class="w"/>'


def footer(top: int) -> Iterator[str]:
    """Draw the list of resources that are not boxes."""
    words = f"Besides: {'; '.join(BESIDES)}."
    for number, line in enumerate(wrap(words, 140)):
        yield text(BOX_X, top + 20 + 18 * number, line, "s")


def rectangle(x: int, y: int, width: int, height: int, kind: str) -> str:
    """Draw a box with round corners."""
    return f'<rect x="{x}" y="{y}" width="{width}" height="{height}" rx="5" class="{kind}"/>'


def text(x: int, y: int, words: str, kind: str, size: int = 0) -> str:
    """Draw words that begin at x."""
    sized = f' font-size="{size}"' if size else ""
    return f'<text x="{x}" y="{y}" class="{kind}"{sized}>{escape(words)}</text>'


def main() -> None:
    """Write the picture."""
    PICTURE.write_text(draw(deployed(stack_of(EVERY_OPTION))))


if __name__ == "__main__":
    main()
