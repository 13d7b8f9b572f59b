"""The tables of the page, with bars for estimates and their intervals."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from keyhop.dynamodb.units import PARTITION_WRITE_UNITS
from keyhop.dynamodb.values import MOST_ITEM_BYTES
from keyhop.report import figures
from keyhop.report.pages.markup import Child, Markup, join, tag
from keyhop.report.pages.pictures import Scale, bar, by_powers, shares, up_to

Row = Sequence[Child]
PARTITION_WRITES = float(PARTITION_WRITE_UNITS)
LARGEST_ITEM = float(MOST_ITEM_BYTES)
NOTHING = "-"
SHORT_NAME = 60


def table(caption: str, heads: Sequence[str], rows: Iterable[Row], numbers: int = 0) -> Markup:
    """Return a table whose last `numbers` columns are figures; a row begins with its head."""
    first = len(heads) - numbers
    head = tag(
        "tr",
        [
            tag("th", name, scope="col", class_="n" if at >= first else None)
            for at, name in enumerate(heads)
        ],
    )
    body = []
    for name, *cells in rows:
        row_cells = [
            tag("td", cell, class_="n" if at >= first else None)
            for at, cell in enumerate(cells, start=1)
        ]
        body.append(tag("tr", tag("th", name, scope="row"), row_cells))
    element = tag("table", tag("caption", caption), tag("thead", head), tag("tbody", body))
    return tag("div", element, class_="scroll")


def barred(
    caption: str,
    head: str,
    figure: str,
    rows: Iterable[tuple[Child, Mapping[str, Any] | None, str]],
    scale: Scale,
    mark: float | None = None,
) -> Markup:
    """Return a table of rows of a name, an estimate as a bar, and the figure in words."""
    return table(
        caption,
        (head, "", figure),
        (
            (name, tag("span", bar(estimate, scale, mark), class_="bar") if estimate else "", words)
            for name, estimate, words in rows
        ),
        numbers=1,
    )


def of_shares(caption: str, head: str, rows: Sequence[Mapping[str, Any]]) -> Markup:
    """Return the table of tags, shapes or attributes with their shares."""
    return barred(
        caption,
        head,
        "of items",
        (
            (code(row["name"]) if row["name"] else "(none)", row["share"], _share(row["share"]))
            for row in rows
        ),
        shares(),
    )


def top(data: Mapping[str, Any], limit: float | None) -> Markup:
    """Return the table of the largest collections, with a limit in bytes."""
    rows = data["collections"]
    sized = all(row["bytes"] for row in rows)
    estimates = [row["bytes"] if sized else row["items"] for row in rows]
    write = figures.size_within if sized else figures.count_within
    mark = limit if sized else None
    scale = up_to(estimates, *([mark] if mark else []))
    return barred(
        "Largest collections",
        "key",
        "size" if sized else "items",
        (
            (_key(row), estimate, write(estimate))
            for row, estimate in zip(rows, estimates, strict=True)
        ),
        scale,
        mark,
    )


def _key(row: Mapping[str, Any]) -> list[Markup]:
    return [code(row["key"]), tag("small", f" by {row['by']}")]


def item_bytes(data: Mapping[str, Any]) -> Markup:
    """Return the table of the sizes of items, with DynamoDB's limit."""
    names = {0.5: "median", 0.9: "p90", 0.99: "p99"}
    rows = [
        (names.get(row["quantile"], f"{row['quantile']:g}"), row["bytes"])
        for row in data["quantiles"]
    ]
    if figures.is_known(data["largest"]):
        rows.append(("largest seen", {"value": data["largest"]}))
    scale = by_powers([row for _, row in rows], LARGEST_ITEM)
    bars: list[tuple[Child, Mapping[str, Any] | None, str]] = [
        (name, row, figures.size_within(row)) for name, row in rows
    ]
    if data["large"]:
        bars.append(("350 KB or more", None, f"{_share(data['large'])} of items"))
    return barred(
        "Sizes of items, logarithmic; the line is the limit, 400 KB",
        "item",
        "size",
        bars,
        scale,
        LARGEST_ITEM,
    )


def writers(rows: Sequence[Mapping[str, Any]]) -> Markup:
    """Return the table of keys by their busiest second."""
    estimates = [{"value": row["peak"]} for row in rows]
    by_minute = any(row["by"] == "insights" for row in rows)
    what = "busiest minute, mean a second" if by_minute else "busiest second"
    return barred(
        f"Keys written most ({what}); the line is what a partition takes",
        "key",
        "WCU/s",
        (
            (code(row["key"]), estimate, figures.units(row["peak"]))
            for row, estimate in zip(rows, estimates, strict=True)
        ),
        up_to(estimates, PARTITION_WRITES),
        PARTITION_WRITES,
    )


def indexes(rows: Sequence[Mapping[str, Any]]) -> Markup:
    """Return the table of the indexes."""
    return table(
        "Indexes",
        ("index", "key", "of the table's items", "size", "read", "written", "largest key"),
        ((_name(row), _keyed(row), *_used(row)) for row in rows),
        numbers=5,
    )


def _name(row: Mapping[str, Any]) -> list[Markup]:
    projection = row["projection"].lower().replace("_", " ")
    return [code(row["name"]), tag("small", f" {row['kind']}, {projection}")]


def _keyed(row: Mapping[str, Any]) -> Child:
    parts = [part for part in (row["partition"], row["sort"]) if part]
    return [code(" / ".join(" + ".join(part) for part in parts))]


def _used(row: Mapping[str, Any]) -> tuple[Child, ...]:
    share = row["sparse"] or ({"value": row["share"]} if row["share"] is not None else None)
    days = row["read_days"]
    read = figures.count(row["read"]) if figures.is_known(row["read"]) else NOTHING
    if days is not None:
        read = f"{read} on {days} of 30 days" if days else "not in 30 days"
    written = figures.count(row["written"]) if figures.is_known(row["written"]) else NOTHING
    top: Child = NOTHING
    if row["top_share"]:
        top = [code(row["top_key"]), tag("small", f" {_share(row['top_share'])}")]
    return (_share(share) if share else NOTHING, figures.size(row["bytes"]), read, written, top)


def candidates(rows: Sequence[Mapping[str, Any]]) -> Markup:
    """Return the table of candidate keys, with a column for each."""
    lines: list[Row] = [
        ("items that can have it", *(_share(row["coverage"]) for row in rows)),
        ("items in its largest key", *(_share(row["largest"]) for row in rows)),
        ("effective keys", *(figures.count_within(row["effective"]) for row in rows)),
        ("distinct keys", *(figures.count_within(row["distinct"]) for row in rows)),
        ("rises with time (tau)", *(_tau(row["monotonicity"]) for row in rows)),
        ("writes that would be throttled", *(_share(row["throttled"]) for row in rows)),
        ("its busiest key", *(_peak(row["peak"]) for row in rows)),
        ("reads", *(_reads(row["reads"]) for row in rows)),
        ("migration", *(figures.dollars(row["migration"]) for row in rows)),
        ("a month, today", *(figures.dollars(row["today"]) for row in rows)),
        ("a month, then", *(figures.dollars(row["advised"]) for row in rows)),
    ]
    heads = ["", *(row["template"] for row in rows)]
    return table("Candidate keys", heads, lines, numbers=len(rows))


def _peak(peak: float | None) -> str:
    return f"{figures.units(peak)} WCU/s" if figures.is_known(peak) else figures.UNKNOWN


def _tau(estimate: Mapping[str, Any] | None) -> str:
    if not estimate or not figures.is_known(estimate["value"]):
        return figures.UNKNOWN
    if not figures.is_known(estimate["low"]) or not figures.is_known(estimate["high"]):
        return f"{estimate['value']:.2f}"
    return f"{estimate['value']:.2f} [{estimate['low']:.2f}, {estimate['high']:.2f}]"


def _reads(reads: Mapping[str, float | None]) -> str:
    words = {"single": "one key", "several": "several keys", "scatter": "all keys"}
    parts = [
        f"{figures.share(part)} {words.get(name, name)}" for name, part in reads.items() if part
    ]
    return ", ".join(parts) or figures.UNKNOWN


def costs(findings: Iterable[Mapping[str, Any]]) -> Markup | None:
    """Return the table of the costs of each advice, in the order of the findings."""
    rows = [
        (finding, finding["advice"]["cost"])
        for finding in findings
        if finding["status"] == "found" and finding["advice"] and finding["advice"]["cost"]
    ]
    if not rows:
        return None
    dates = sorted({cost["priced"] for _, cost in rows if cost["priced"]})
    priced = f"Prices of {', '.join(dates)}." if dates else ""
    costs_table = table(
        "Cost of the advice",
        ("advice for", "today, a month", "advised, a month", "once"),
        (
            (
                f"{finding['id']} {finding['target']}".strip(),
                *(figures.dollars(cost[name]) for name in ("today", "advised", "one_off")),
            )
            for finding, cost in rows
        ),
        numbers=3,
    )
    return join(costs_table, tag("p", priced, class_="soft") if priced else "")


def _share(estimate: Mapping[str, Any] | None) -> str:
    return figures.share_within(estimate) if estimate else figures.UNKNOWN


def code(words: str) -> Markup:
    """Return a name as code; a long name is cut, with the full name as title."""
    short = words if len(words) <= SHORT_NAME else f"{words[: SHORT_NAME - 1]}…"
    return tag("code", short, title=words if short != words else None)
