"""The page's tables: what is in rows, with a bar and its interval where there is one. Pure."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from keyhop.report import figures
from keyhop.report.pages.markup import Child, Markup, join, tag
from keyhop.report.pages.svg.bars import bar, by_powers, shares, up_to
from keyhop.report.pages.svg.parts import Scale

Row = Sequence[Child]
PARTITION_WRITES = 1_000.0
"""Write units a second that a partition takes."""
LARGEST_ITEM = 400 * 1024.0
NOTHING = "-"
SHORT_NAME = 60


def table(caption: str, heads: Sequence[str], rows: Iterable[Row], numbers: int = 0) -> Markup:
    """The first cell of a row is its head. numbers: so many of the last columns are figures."""
    first = len(heads) - numbers
    head = tag(
        "tr",
        [
            tag("th", one, scope="col", class_="n" if at >= first else None)
            for at, one in enumerate(heads)
        ],
    )
    body = []
    for name, *cells in rows:
        others = [
            tag("td", cell, class_="n" if at >= first else None)
            for at, cell in enumerate(cells, start=1)
        ]
        body.append(tag("tr", tag("th", name, scope="row"), others))
    whole = tag("table", tag("caption", caption), tag("thead", head), tag("tbody", body))
    return tag("div", whole, class_="scroll")


def barred(
    caption: str,
    head: str,
    figure: str,
    rows: Iterable[tuple[Child, Mapping[str, Any] | None, str]],
    scale: Scale,
    mark: float | None = None,
) -> Markup:
    """Name, bar, figure in words."""
    return table(
        caption,
        (head, "", figure),
        (
            (name, tag("span", bar(one, scale, mark), class_="bar") if one else "", words)
            for name, one, words in rows
        ),
        numbers=1,
    )


def of_shares(caption: str, head: str, rows: Sequence[Mapping[str, Any]]) -> Markup:
    """Tags, shapes, attributes."""
    return barred(
        caption,
        head,
        "of items",
        (
            (code(one["name"]) if one["name"] else "(none)", one["share"], _share(one["share"]))
            for one in rows
        ),
        shares(),
    )


def top(data: Mapping[str, Any], limit: float | None) -> Markup:
    """The largest collections; limit: bytes, where there are local indexes."""
    rows = data["collections"]
    sized = all(one["bytes"] for one in rows)
    estimates = [one["bytes"] if sized else one["items"] for one in rows]
    told = figures.size_within if sized else figures.count_within
    mark = limit if sized else None
    scale = up_to(estimates, *([mark] if mark else []))
    return barred(
        "Largest collections",
        "key",
        "size" if sized else "items",
        (
            (_key(one), estimate, told(estimate))
            for one, estimate in zip(rows, estimates, strict=True)
        ),
        scale,
        mark,
    )


def _key(one: Mapping[str, Any]) -> list[Markup]:
    return [code(one["key"]), tag("small", f" by {one['by']}")]


def item_bytes(data: Mapping[str, Any]) -> Markup:
    """Sizes of items against the largest there can be."""
    names = {0.5: "median", 0.9: "p90", 0.99: "p99"}
    rows = [
        (names.get(one["quantile"], f"{one['quantile']:g}"), one["bytes"])
        for one in data["quantiles"]
    ]
    if figures.known(data["largest"]):
        rows.append(("largest seen", {"value": data["largest"]}))
    scale = by_powers([one for _, one in rows], LARGEST_ITEM)
    shown: list[tuple[Child, Mapping[str, Any] | None, str]] = [
        (name, one, figures.size_within(one)) for name, one in rows
    ]
    if data["large"]:
        shown.append(("350 KB or more", None, f"{_share(data['large'])} of items"))
    return barred(
        "Sizes of items, logarithmic; the line is the limit, 400 KB",
        "item",
        "size",
        shown,
        scale,
        LARGEST_ITEM,
    )


def writers(rows: Sequence[Mapping[str, Any]]) -> Markup:
    """Keys by their busiest second."""
    estimates = [{"value": one["peak"]} for one in rows]
    by_minute = any(one["by"] == "insights" for one in rows)
    what = "busiest minute, mean a second" if by_minute else "busiest second"
    return barred(
        f"Keys written most ({what}); the line is what a partition takes",
        "key",
        "WCU/s",
        (
            (code(one["key"]), estimate, figures.units(one["peak"]))
            for one, estimate in zip(rows, estimates, strict=True)
        ),
        up_to(estimates, PARTITION_WRITES),
        PARTITION_WRITES,
    )


def indexes(rows: Sequence[Mapping[str, Any]]) -> Markup:
    """One row an index."""
    return table(
        "Indexes",
        ("index", "key", "of the table's items", "size", "read", "written", "largest key"),
        ((_name(one), _keyed(one), *_used(one)) for one in rows),
        numbers=5,
    )


def _name(one: Mapping[str, Any]) -> list[Markup]:
    projection = one["projection"].lower().replace("_", " ")
    return [code(one["name"]), tag("small", f" {one['kind']}, {projection}")]


def _keyed(one: Mapping[str, Any]) -> Child:
    names = [one["partition"], *([one["sort"]] if one["sort"] else [])]
    return [code(" / ".join(names))]


def _used(one: Mapping[str, Any]) -> tuple[Child, ...]:
    """Shares, bytes, units; the largest key with its share."""
    share = one["sparse"] or ({"value": one["share"]} if one["share"] is not None else None)
    days = one["read_days"]
    read = figures.count(one["read"]) if figures.known(one["read"]) else NOTHING
    if days is not None:
        read = f"{read} on {days} of 30 days" if days else "not in 30 days"
    written = figures.count(one["written"]) if figures.known(one["written"]) else NOTHING
    top: Child = NOTHING
    if one["top_share"]:
        top = [code(one["top_key"]), tag("small", f" {_share(one['top_share'])}")]
    return (_share(share) if share else NOTHING, figures.size(one["bytes"]), read, written, top)


def candidates(rows: Sequence[Mapping[str, Any]]) -> Markup:
    """Side by side: a column each."""
    lines: list[Row] = [
        ("items that can have it", *(_share(one["coverage"]) for one in rows)),
        ("items in its largest key", *(_share(one["largest"]) for one in rows)),
        ("effective keys", *(figures.count_within(one["effective"]) for one in rows)),
        ("distinct keys", *(figures.count_within(one["distinct"]) for one in rows)),
        ("rises with time (tau)", *(_tau(one["monotonicity"]) for one in rows)),
        ("writes that would be throttled", *(_share(one["throttled"]) for one in rows)),
        ("its busiest key", *(_peak(one["peak"]) for one in rows)),
        ("reads", *(_reads(one["reads"]) for one in rows)),
        ("migration", *(figures.dollars(one["migration"]) for one in rows)),
        ("a month, today", *(figures.dollars(one["today"]) for one in rows)),
        ("a month, then", *(figures.dollars(one["advised"]) for one in rows)),
    ]
    heads = ["", *(one["template"] for one in rows)]
    return table("Candidate keys", heads, lines, numbers=len(rows))


def _peak(peak: float | None) -> str:
    return f"{figures.units(peak)} WCU/s" if figures.known(peak) else figures.UNKNOWN


def _tau(one: Mapping[str, Any] | None) -> str:
    if not one or not figures.known(one["value"]):
        return figures.UNKNOWN
    if not figures.known(one["low"]) or not figures.known(one["high"]):
        return f"{one['value']:.2f}"
    return f"{one['value']:.2f} [{one['low']:.2f}, {one['high']:.2f}]"


def _reads(reads: Mapping[str, float | None]) -> str:
    words = {"single": "one key", "several": "several keys", "scatter": "all keys"}
    told = [
        f"{figures.share(part)} {words.get(name, name)}" for name, part in reads.items() if part
    ]
    return ", ".join(told) or figures.UNKNOWN


def costs(findings: Iterable[Mapping[str, Any]]) -> Markup | None:
    """What each advice costs, in the order of the findings."""
    rows = [
        (one, one["advice"]["cost"])
        for one in findings
        if one["status"] == "found" and one["advice"] and one["advice"]["cost"]
    ]
    if not rows:
        return None
    dates = sorted({cost["priced"] for _, cost in rows if cost["priced"]})
    priced = f"Prices of {', '.join(dates)}." if dates else ""
    rows_of = table(
        "Cost of what is advised",
        ("advice for", "today, a month", "advised, a month", "once"),
        (
            (
                f"{one['id']} {one['target']}".strip(),
                *(figures.dollars(cost[name]) for name in ("today", "advised", "one_off")),
            )
            for one, cost in rows
        ),
        numbers=3,
    )
    return join(rows_of, tag("p", priced, class_="soft") if priced else "")


def _share(one: Mapping[str, Any] | None) -> str:
    return figures.share_within(one) if one else figures.UNKNOWN


def code(words: str) -> Markup:
    """A name as a program has it; cut, with the whole as its title."""
    short = words if len(words) <= SHORT_NAME else f"{words[: SHORT_NAME - 1]}…"
    return tag("code", short, title=words if short != words else None)
