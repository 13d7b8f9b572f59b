"""The report as one HTML page that needs nothing else: no script, no network, no font. Pure."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from keyhop.report import figures
from keyhop.report.advice.patterns import PATTERNS
from keyhop.report.findings import Finding, Report
from keyhop.report.pages import tables
from keyhop.report.pages.colours import PICTURES, variables
from keyhop.report.pages.document import to_json
from keyhop.report.pages.looks import PAGE
from keyhop.report.pages.markup import Child, Markup, between, join, tag
from keyhop.report.pages.svg.key_map import coarse, key_map
from keyhop.report.pages.svg.lorenz import lorenz
from keyhop.report.pages.svg.sizes import sizes
from keyhop.report.pages.tables import code, table
from keyhop.report.pages.text import keys_of, tallies
from keyhop.wording import counted, duration

POLICY = "default-src 'none'; style-src 'unsafe-inline'"
"""What a browser may load for the page: nothing, whatever anybody might get into it."""

MOST_EVIDENCE = 30
FIRST_STEPS = 2
"""Of an advice, seen at once; the others when they are asked for, and in print."""
SEVERITY_WORDS = {"high": "High", "medium": "Medium", "low": "Low", "info": "Info"}
Document = Mapping[str, Any]


def page(report: Report) -> str:
    """The whole file."""
    document = to_json(report)
    name = str(document["table"].get("name", ""))
    head = tag(
        "head",
        tag("meta", charset="utf-8"),
        tag("meta", http_equiv="Content-Security-Policy", content=POLICY),
        tag("meta", name="viewport", content="width=device-width, initial-scale=1"),
        tag("meta", name="color-scheme", content="light dark"),
        tag("title", f"Key report of {name}"),
        tag("style", Markup(styles())),
    )
    body = tag(
        "body",
        tag("header", header(document), tallied(report.findings)),
        tag("main", list(_sections(document))),
        tag("footer", _provenance(document)),
    )
    return "<!DOCTYPE html>\n" + tag("html", head, body, lang="en") + "\n"


def styles() -> str:
    """Light, and dark for who prefers that; printed it is light."""
    dark = f"@media screen and (prefers-color-scheme:dark){{:root{{{variables('dark')}}}}}"
    return f":root{{{variables('light')}}}{dark}{PICTURES}{PAGE}"


def header(document: Document) -> Markup:
    """The table, how large it is, and what the report cost."""
    told, spent = document["table"], document["spent"]
    keys = document["estimates"].get("keys")
    facts = [
        ("size", figures.size(told["bytes"]) if told.get("bytes") is not None else None),
        ("items", figures.count(told["items"]) if told.get("items") is not None else None),
        ("partition keys", keys_of(keys).replace(" keys", "") if keys else None),
        ("spent", f"{figures.units(spent['rru'])} RRU, {figures.dollars(spent['dollars'])}"),
    ]
    names = [str(told[name]) for name in ("partition_key", "sort_key") if told.get(name)]
    line = [
        f"key {' / '.join(names)}" if names else "",
        *(str(told[name]) for name in ("billing", "region") if told.get(name)),
        figures.when(document["at"]),
    ]
    return tag(
        "div",
        tag("h1", str(told.get("name", "")), tag("small", "key report")),
        tag("p", " · ".join(one for one in line if one), class_="soft"),
        tag(
            "dl",
            [
                tag("div", tag("dt", name), tag("dd", value))
                for name, value in facts
                if value is not None
            ],
        ),
        class_="head",
    )


def tallied(findings: Sequence[Finding]) -> Markup:
    """How many of each severity, each in its colour."""
    counts = [tag("span", words, class_=f"badge {name}") for name, words in tallies(findings)]
    return tag("p", between(", ", counts), class_="tally")


def _sections(document: Document) -> Iterable[Markup]:
    by_status = {
        status: [one for one in document["findings"] if one["status"] == status]
        for status in ("found", "unknown", "clear")
    }
    found = by_status["found"]
    yield section(
        "What is wrong",
        [_finding(one) for one in found] or tag("p", "Nothing was found.", class_="calm"),
    )
    yield from _pictures(document)
    yield from _unknown(by_status["unknown"])
    yield from _clear(by_status["clear"])


def section(title: str, *children: Child, class_: str | None = None) -> Markup:
    """With its heading."""
    return tag("section", tag("h2", title), *children, class_=class_)


def _finding(one: Mapping[str, Any]) -> Markup:
    """A found one, whole: what, how it is known, what to do."""
    advice = one["advice"]
    return tag(
        "article",
        tag(
            "div",
            tag("span", SEVERITY_WORDS[one["severity"]], class_=f"badge {one['severity']}"),
            tag("span", one["id"], class_="rule"),
            class_="label",
        ),
        tag(
            "div",
            tag("h3", title_of(one)),
            tag("p", one["summary"]),
            _evidence(one["evidence"]) if one["evidence"] else "",
            class_="what",
        ),
        _advice(advice) if advice else "",
        class_=f"finding {one['severity']}",
    )


def title_of(one: Mapping[str, Any]) -> Child:
    """The rule's title, and the index that it is said of."""
    title = one["title"][:1].upper() + one["title"][1:]
    return [join(title), *([join(": "), code(one["target"])] if one["target"] else [])]


def _advice(advice: Mapping[str, Any]) -> Markup:
    patterns = [
        tag("span", f"{one} {PATTERNS.get(one, '')}".strip(), class_="pattern")
        for one in advice["patterns"]
    ]
    steps = [tag("li", one) for one in advice["steps"]]
    more = len(steps) - FIRST_STEPS
    cost = advice["cost"]
    return tag(
        "div",
        tag("p", patterns, class_="patterns") if patterns else "",
        tag("ol", steps[:FIRST_STEPS]) if steps else "",
        tag(
            "details",
            tag("summary", f"{more} more"),
            tag("ol", steps[FIRST_STEPS:], start=FIRST_STEPS + 1),
        )
        if more > 0
        else "",
        tag("pre", code_whole(advice["command"])) if advice["command"] else "",
        tag("p", _money(cost), class_="money") if cost else "",
        class_="advice",
    )


def code_whole(words: str) -> Markup:
    """A command, line by line."""
    return tag("code", between(Markup("\n"), words.splitlines()))


def _money(cost: Mapping[str, Any]) -> Child:
    today, advised, once = (cost[name] for name in ("today", "advised", "one_off"))
    parts = []
    if figures.known(today) and figures.known(advised):
        parts.append(f"{figures.dollars(today)} → {figures.dollars(advised)} a month")
    elif figures.known(advised):
        parts.append(f"{figures.dollars(advised)} a month")
    if figures.known(once) and once:
        parts.append(f"{figures.dollars(once)} once")
    return ", ".join(parts)


def _evidence(rows: Sequence[Mapping[str, Any]]) -> Markup:
    heads = ("what was looked at", "source", "value", "threshold")
    cells = (
        (
            [join(one["signal"]), tag("small", f" {one['where']}") if one["where"] else Markup("")],
            one["source"],
            _value(one),
            figures.count(one["threshold"]) if figures.known(one["threshold"]) else tables.NOTHING,
        )
        for one in rows[:MOST_EVIDENCE]
    )
    more = len(rows) - MOST_EVIDENCE
    return tag(
        "details",
        tag("summary", "Evidence"),
        table("Evidence", heads, cells, numbers=2),
        tag("p", f"And {more:,} more, in the JSON.", class_="soft") if more > 0 else "",
    )


def _value(one: Mapping[str, Any]) -> str:
    told = figures.count_within(one) if figures.known(one["value"]) else tables.NOTHING
    return f"{told}, n {one['n']:,}" if one["n"] else told


def pictures_of(document: Document) -> dict[str, Markup]:
    """The drawn ones, by name."""
    data = document["pictures"]
    drawn = {}
    if "key_map" in data:
        drawn["key_map"] = key_map(coarse(data["key_map"], 90, 64)).svg()
    if "sizes" in data:
        drawn["sizes"] = sizes(data["sizes"]).svg()
    if "lorenz" in data:
        drawn["lorenz"] = lorenz(data["lorenz"]).svg()
    return drawn


def figure(title: str, *children: Child, class_: str | None = None) -> Markup:
    """A picture or a table with its heading."""
    return tag("figure", tag("figcaption", title), *children, class_=class_)


def _pictures(document: Document) -> Iterable[Markup]:
    data, drawn = document["pictures"], pictures_of(document)
    first = []
    if "key_map" in drawn:
        wide = key_map(data["key_map"], 760, 520).svg()
        first.append(
            figure(
                "Key map: writes by hash place and time",
                tag("div", wide, class_="wide"),
                tag("div", drawn["key_map"], class_="narrow"),
                class_="map",
            )
        )
    if "sizes" in drawn:
        first.append(figure("Sizes of collections", drawn["sizes"]))
    if "lorenz" in drawn:
        first.append(figure("Items over keys", drawn["lorenz"]))
    if first:
        yield section("The keys", tag("div", first, class_="grid"))
    rows = list(_rows(data))
    if rows:
        yield section("The items", tag("div", rows, class_="grid"))
    if "indexes" in data:
        yield section("Indexes", tables.indexes(data["indexes"]))
    if "candidates" in data:
        yield section("Candidate keys", tables.candidates(data["candidates"]))
    money = tables.costs(document["findings"])
    if money:
        yield section("Cost", money)


def _rows(data: Mapping[str, Any]) -> Iterable[Markup]:
    if "top" in data:
        limit = data.get("sizes", {}).get("limit")
        local = data.get("sizes", {}).get("local_indexes")
        note = ""
        if not data["top"]["biased"] and not data["top"]["exhaustive"]:
            note = "Of a uniform sample alone: larger ones may be missing."
        yield tag(
            "figure",
            tables.top(data["top"], limit if local else None),
            tag("p", note, class_="soft") if note else "",
        )
    if "writers" in data:
        yield tag("figure", tables.writers(data["writers"]))
    if "item_bytes" in data:
        yield tag("figure", tables.item_bytes(data["item_bytes"]))
    for name, caption, head in (
        ("tags", "Type tags", "tag"),
        ("shapes", "Shapes of items", "attributes"),
        ("attributes", "Attributes", "attribute"),
    ):
        if name in data:
            yield tag("figure", tables.of_shares(caption, head, data[name]))


def _unknown(findings: list[Mapping[str, Any]]) -> Iterable[Markup]:
    if not findings:
        return
    rows = []
    for one in findings:
        price = one["price_of_knowing"]
        remedy = code(price["remedy"]) if price and price["remedy"] else tables.NOTHING
        cost = f"{figures.units(price['rru'])} RRU" if price and price["rru"] else tables.NOTHING
        what = [tag("b", one["id"]), join(" "), *title_of(one)]
        rows.append((what, one["summary"], [remedy], cost))
    heads = ("rule", "why it is not known", "what would tell", "price")
    yield section("Unknown", table("Rules that nothing could be said of", heads, rows, numbers=1))


def _clear(findings: list[Mapping[str, Any]]) -> Iterable[Markup]:
    if not findings:
        return
    rows = [([tag("b", one["id"]), join(" "), *title_of(one)], one["summary"]) for one in findings]
    yield section("Clear", table("Rules that found nothing", ("rule", "by which figure"), rows))


def _provenance(document: Document) -> Markup:
    spent = document["spent"]
    told = (
        f"{figures.units(spent['rru'])} read units, {counted(spent['requests'], 'request')}, "
        f"{figures.dollars(spent['dollars'])}"
    )
    if figures.known(spent["seconds"]):
        told += f", {duration(spent['seconds'])}"
    sources = [(name, words) for name, words in document["sources"].items()]
    not_assessed = [tag("li", one) for one in document["not_assessed"]]
    options = ", ".join(f"{name} {value}" for name, value in document["options"].items())
    return join(
        section("Not to be seen from outside", tag("ul", not_assessed)) if not_assessed else "",
        section(
            "How this was found",
            table("Sources", ("source", "what was looked at"), sources) if sources else "",
            tag("p", f"Spent: {told}. Keys are shown as: {document['show_keys']}.", class_="soft"),
            tag("p", f"Asked for: {options}.", class_="soft") if options else "",
            tag(
                "p",
                "Brackets hold the truth in 95 of 100 samples. GB, MB and KB are powers of 1,024, "
                "as DynamoDB's limits are.",
                class_="soft",
            ),
        ),
    )
